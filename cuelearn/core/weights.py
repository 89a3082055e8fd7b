r"""Weights of the losses: by sample, by class, and their product.

With weights :math:`s_i`, :math:`W = \sum_i s_i` and class weights :math:`c`, every regularised problem of the
package becomes

.. math:: \frac\lambda2 \|w\|^2 + \alpha \|w\|_{2,1} + \frac1W \sum_i s_i c_{y_i} \ell_i(w), \qquad
          \lambda = \frac1{CW} .

Weight 2 duplicates a sample, weight 0 omits it. Multiplied by :math:`CW`, the losses have the factors
:math:`C s_i c_{y_i}`, as in scikit-learn's SVC.
"""

from numbers import Number

import numpy as np

from cuelearn.expect import expect

__all__ = [
    "check_sample_weight",
    "class_weights",
    "loss_weights",
    "repeated_rows",
    "visit_weights",
    "with_weight",
]

# Range of positive weights, for sums and quotients in float64.
SMALLEST_WEIGHT = 1e-50
LARGEST_WEIGHT = 1e50


def _checked(sample_weight, n_samples):
    if isinstance(sample_weight, Number):
        sample_weight = np.full(n_samples, sample_weight)
    weights = expect("sample_weight", sample_weight, shape=(n_samples,), low=0, high=LARGEST_WEIGHT)
    positive = weights[weights > 0.0]
    if positive.size and positive.min() < SMALLEST_WEIGHT:
        raise ValueError(f"sample_weight must be 0 or at least {SMALLEST_WEIGHT:g}, got {positive.min():g}")
    return weights.copy()


def check_sample_weight(sample_weight, n_samples):
    """Sample weights as float64, or None; ValueError if all are zero."""
    if sample_weight is None:
        return None
    weights = _checked(sample_weight, n_samples)
    if not weights.any():
        raise ValueError("sample_weight must hold at least one positive weight, got zeros only")
    return weights


def with_weight(labels, n_classes, sample_weight):
    """Which classes have a sample of positive weight; ValueError if fewer than two."""
    if sample_weight is None:
        return np.ones(n_classes, dtype=bool)
    present = np.bincount(labels, weights=sample_weight, minlength=n_classes) > 0.0
    if np.count_nonzero(present) < 2:
        raise ValueError("sample_weight must be positive for samples of at least two classes")
    return present


def repeated_rows(sample_weight, most):
    """Numbers of samples, each as often as its weight says, at most `most` of these evenly spaced.

    Weights that are not whole numbers are divided by their mean and rounded.
    """
    counts = sample_weight
    if np.any(counts != np.round(counts)):
        counts = np.round(counts / counts[counts > 0.0].mean())
    ends = np.cumsum(counts)
    places = np.linspace(0.0, ends[-1] - 1.0, int(min(ends[-1], most))).round()
    return np.searchsorted(ends, places, side="right")


def visit_weights(sample_weight, n_samples, stream=False):
    """Factors on the updates of an online learner, by default 1; a batch of a `stream` may have only
    zeros."""
    if sample_weight is None:
        return np.ones(n_samples)
    return (_checked if stream else check_sample_weight)(sample_weight, n_samples)


def class_weights(class_weight, classes, labels, sample_weight=None):
    """Weight of each class's losses, a dict class -> weight; `labels` are indices into `classes`.

    "positive" gives the second of two classes the weight n_first / n_second, the first 1.
    """
    keys = classes.tolist()
    if class_weight is None:
        return dict.fromkeys(keys, 1.0)
    if isinstance(class_weight, dict):
        unknown = set(class_weight) - set(keys)
        if unknown and not set(keys) <= set(class_weight):  # else the classes are those of all folds
            names = sorted(map(str, unknown))
            raise ValueError(f"class_weight names classes of which y has no sample with weight: {names}")
        return {c: expect(f"class_weight[{c!r}]", class_weight.get(c, 1.0), above=0) for c in keys}
    counts = np.bincount(labels, weights=sample_weight, minlength=classes.size).astype(np.float64)
    if not counts.all():
        empty = keys[int(np.argmin(counts))]
        raise ValueError(f"class_weight={class_weight!r} needs samples with weight of every class: {empty!r}")
    if class_weight == "balanced":
        return dict(zip(keys, (counts.sum() / (classes.size * counts)).tolist(), strict=True))
    if classes.size != 2:
        raise ValueError(
            f"class_weight='positive' needs exactly 2 classes, y has {classes.size}; use 'balanced' or a dict"
        )
    return {keys[0]: 1.0, keys[1]: float(counts[0] / counts[1])}


def loss_weights(sample_weight, class_weight, classes, labels):
    """Products of sample and class weights, (n_samples,), or None if all are 1."""
    if class_weight is None:
        return sample_weight
    known = class_weights(class_weight, classes, labels, sample_weight)
    per_sample = np.array([known[c] for c in classes.tolist()])[labels]
    if sample_weight is None:
        return per_sample
    return per_sample * sample_weight

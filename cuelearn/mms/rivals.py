"""Base of the rivals of MMS."""

from dataclasses import field
from functools import partial

import numpy as np
from joblib import Parallel, delayed
from sklearn.utils.validation import validate_data

from cuelearn.core.checks import FLOATS
from cuelearn.core.docs import documented
from cuelearn.core.estimator import COUNT, POSITIVE, Estimator, StrOptions, parameters, validated
from cuelearn.core.linear_svm import linear_svm
from cuelearn.kernels.tiles import linear_algebra
from cuelearn.mms.base import BagClassifier
from cuelearn.mms.candidates import check_bag_weights, check_candidates, starts_of_bags

__all__ = ["BagRival", "Rival", "documented_rival", "expanded", "reduced"]

#: Score of an untrained label.
NEVER = -1.0

documented_rival = partial(
    documented,
    texts={
        "C": ("float > 0", "Weight of the losses."),
        "class_weight": (
            'None or "balanced"',
            '"balanced" gives both sides of each SVM the same total weight. The thesis and the papers use '
            "none, so that w = 0 is often best.",
        ),
        "tol": ("float > 0", "Relative duality gap."),
        "max_iter": ("int >= 1", "Steps of the interior-point method."),
        "n_jobs": ("int or None", "Threads over labels; equal results."),
        "random_state": ("int, Generator or None", "As in other learners of bags; not used here."),
        "trained_": (
            "ndarray of bool, shape (n_labels,)",
            "False for labels in no candidate: they score -1 and are predicted only if all candidates have "
            "them.",
        ),
        "null_": ("int or None", "Number of the null label."),
        "coef_": ("ndarray, shape (n_labels, n_features)", ""),
        "intercept_": ("ndarray, shape (n_labels,)", ""),
        "duality_gap_": ("ndarray, shape (n_labels,)", "Certified, relative."),
        "n_iter_": ("ndarray of int, shape (n_labels,)", "Steps."),
    },
)


def side_weights(class_weight, signs, weights):
    """Weights of the losses; "balanced" gives both sides the same total and keeps the sum."""
    positive = signs > 0.0
    if class_weight is None or positive.all() or not positive.any():
        return weights
    if weights is None:
        weights = np.ones(signs.size)
    half = 0.5 * weights.sum()
    return weights * np.where(positive, half / weights[positive].sum(), half / weights[~positive].sum())


def reduced(X):
    """X in float64 and None, or if smaller its coordinates in an orthonormal basis of its rows, and that
    basis."""
    X = np.ascontiguousarray(X, dtype=np.float64)
    if X.shape[1] <= X.shape[0]:
        return X, None
    basis, coordinates = np.linalg.qr(X.T)
    return np.ascontiguousarray(coordinates.T), basis


def expanded(coef, basis):
    """Feature weights from those of `reduced` coordinates."""
    if basis is None:
        return coef
    return np.stack([basis @ row for row in coef])


@parameters
class Rival(BagClassifier):
    """Base; subclasses have ``_train(X, candidates, weights or None)`` and ``_scores(X)``."""

    _parameter_constraints = {
        **Estimator._parameter_constraints,
        "class_weight": [StrOptions({"balanced"}), None],
        "tol": POSITIVE,
        "max_iter": COUNT,
    }

    C: float = field(default=1.0, kw_only=False)
    class_weight: object = None
    tol: float = 1e-5
    max_iter: int = 200
    n_jobs: object = None
    random_state: object = None

    @validated
    def fit(self, X, candidates, sample_weight=None):
        """Train.

        Parameters
        ----------
        X : array-like, shape (n, n_features)
            Instances of all bags, bag after bag.
        candidates : CandidateSet
            Of the same bags; for `MIMLSVM` and `M3MIML` with one attribute.
        sample_weight : array-like, shape (n_bags,) or (n_instances,), optional
            Weights of the *bags*, factors on C: 2 repeats a bag (except in the choice of `MIMLSVM`'s
            medoids), 0 leaves it out.

        Returns
        -------
        self
        """
        check_candidates(candidates)
        X = validate_data(self, X, dtype=FLOATS)
        check_candidates(candidates, len(X))
        weights = check_bag_weights(sample_weight, candidates)
        if weights is not None and not weights.all():
            kept = np.flatnonzero(weights)
            X = X[candidates.rows(kept)]
            candidates = candidates.take(kept)
            weights = weights[kept]
        self.n_attributes_ = candidates.n_attributes
        self._train(X, candidates, weights)
        return self

    def _fit_labels(self, to_train, sample, n_columns, **options):
        """SVMs of a mask of labels from ``sample(label)``: rows, signs, weights or None; returns the
        solutions, and coef, intercept, gap, n_iter of all labels."""
        options |= {"tol": self.tol, "max_iter": self.max_iter}

        def solve(k):
            rows, signs, weights = sample(k)
            weights = side_weights(self.class_weight, signs, weights)
            return linear_svm(rows, signs, float(self.C), weights=weights, **options)

        labels = np.flatnonzero(to_train)
        with linear_algebra().limit(limits=1):  # the same sums for any n_jobs
            fits = Parallel(n_jobs=self.n_jobs, require="sharedmem")(delayed(solve)(k) for k in labels)
        coef = np.zeros((to_train.size, n_columns))
        intercept = np.full(to_train.size, NEVER)
        gap = np.full(to_train.size, np.nan)
        n_iter = np.zeros(to_train.size, dtype=int)
        for k, fit in zip(labels, fits, strict=True):
            coef[k] = fit.coef
            intercept[k] = fit.intercept
            gap[k] = fit.gap
            n_iter[k] = fit.n_iter
        return fits, coef, intercept, gap, n_iter

    def _possible(self, scores):
        trained = self._list(self.trained_)
        return [np.where(known, part, -np.inf) for part, known in zip(scores, trained, strict=True)]


class BagRival(Rival):
    """Base of methods that use labels of bags only; subclasses have ``_bag_scores(X, starts)``."""

    def _start_bags(self, candidates):
        """The bags' labels without null, (n_bags, n_labels), and a mask of labels to train."""
        if candidates.n_attributes != 1:
            raise ValueError(
                f"candidates must have one attribute, got {candidates.n_attributes}; "
                "candidates.attribute(p) selects one"
            )
        self.classes_ = candidates.classes[0]
        self.null_ = None
        if candidates.null is not None:
            self.null_ = candidates.null[0]
        labels = candidates.bag_mask(0)
        self.trained_ = labels.any(axis=0)
        if self.null_ is not None:
            labels[:, self.null_] = False
            self.trained_[self.null_] = True
        return labels, labels.any(axis=0) & ~labels.all(axis=0)

    def _keep(self, labels, solved):
        fits, self.coef_, self.intercept_, self.duality_gap_, self.n_iter_ = solved
        self.intercept_[labels.all(axis=0)] = 1.0
        return fits

    def _instance_scores(self, X):
        """A single instance is a bag of one."""
        return self._bag_scores(X, np.arange(len(X) + 1))

    def _with_null(self, scores):
        if self.null_ is not None:
            scores[:, self.null_] = 0.0
        return scores

    def _scores(self, X):
        return [self._with_null(self._instance_scores(self._check_new(X)))]

    def bag_decision_function(self, X, bag_sizes):
        """Scores of all labels for whole bags, shape (n_bags, n_labels); X holds their instances."""
        X = self._check_new(X)
        return self._with_null(self._bag_scores(X, starts_of_bags(bag_sizes, len(X))))

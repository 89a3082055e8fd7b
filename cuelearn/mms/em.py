r"""EM over candidate labelings (thesis section 5.7).

A bag's labeling is drawn from its candidates, and its labels generate the appearances,

.. math:: p(\mathcal X_i \mid \mathcal Z_i)
    = \sum_{Z \in \mathcal Z_i} p(Z) \prod_m \prod_p p_p\bigl(x_m^{(p)} \mid z_m^{(p)}\bigr).
"""

import math
from functools import partial

import numpy as np
from scipy.special import logsumexp
from sklearn.utils.validation import check_array

from cuelearn.core.checks import FLOATS
from cuelearn.core.docs import documented
from cuelearn.core.estimator import NON_NEGATIVE, Estimator, StrOptions, parameters, validated
from cuelearn.core.run import Run
from cuelearn.mms.base import BagClassifier
from cuelearn.mms.candidates import check_bag_weights, check_candidates, once_or_each
from cuelearn.mms.inference import best_candidates, mean_candidates
from cuelearn.mms.matching import Scratch

__all__ = ["EMNaming", "documented_naming", "evenly_spaced"]

documented_naming = partial(
    documented,
    texts={
        "assignment": (
            '{"soft", "hard"}',
            "Fit appearances to the posterior of all candidates, or to the best candidate of each bag.",
        ),
        "columns": (
            "slice or sequence of int, or a sequence with one per attribute; optional",
            "Columns of X for each attribute; all by default.",
        ),
        "tol": ("float >= 0", "Stops when the relative rise of the objective is at most this."),
        "random_state": ("int, Generator or None", "As in other learners of bags; not used here."),
        "classes_": ("ndarray, or list of ndarray for several attributes", ""),
        "assignment_": (
            "ndarray, shape (n_instances,), or (n_instances, n_attributes)",
            "Labels of the training instances: the best candidate of each bag.",
        ),
        "responsibilities_": (
            "ndarray, shape (n_instances, n_labels), or list of one per attribute",
            "Probability of each label of each training instance given the candidates.",
        ),
        "label_weights_": (
            "ndarray, shape (n_labels,), or list",
            "Share of the instances with each label: its prior without a caption.",
        ),
        "converged_": ("bool", ""),
    },
)
#: Below this total responsibility a label's appearance is kept.
NO_MASS = 1e-12


def is_one_choice(columns):
    whole = (int, np.integer, np.bool_)
    return isinstance(columns, slice) or (len(columns) > 0 and all(isinstance(c, whole) for c in columns))


def evenly_spaced(n, most):
    if n <= most:
        return np.arange(n)
    return np.linspace(0, n - 1, most).astype(int)


@parameters
class EMNaming(BagClassifier):
    """Base: the EM loop and the predictions.

    Subclasses have ``_models(parts, candidates, weights)``, one per attribute with ``update(weighted
    responsibilities)``, ``scores()`` of the training instances and ``log_prior()``; ``_finish(models,
    responsibilities)``; and ``_appearance(parts)``, scores of new instances.
    """

    _parameter_constraints = {
        **Estimator._parameter_constraints,
        "assignment": [StrOptions({"soft", "hard"})],
        "columns": [slice, list, tuple, np.ndarray, None],
        "tol": NON_NEGATIVE,
    }

    assignment: str = "soft"
    columns: object = None
    max_iter: int = 100
    tol: float = 1e-6
    random_state: object = None

    @validated
    def fit(self, X, candidates, sample_weight=None):
        """Estimate the appearance of every label and the labeling of every bag.

        Parameters
        ----------
        X : array-like, shape (n_instances, n_features)
            The instances of all bags in order.
        candidates : CandidateSet
        sample_weight : array-like, shape (n_bags,) or (n_instances,), optional
            Weights of the *bags*: 2 repeats a bag, 0 excludes it from the appearances (its labeling is still
            estimated). `DistNaming` takes none.

        Returns
        -------
        self
        """
        run = Run()
        check_candidates(candidates)
        weights = self._check_weights(sample_weight, candidates)
        n = candidates.n_instances
        packed = candidates.packed
        self.n_attributes_ = P = candidates.n_attributes
        self.n_features_ = ()
        parts = self._parts(X, candidates)
        first = packed.column
        columns = np.empty((n, P), dtype=np.int32)
        log_size = np.array([math.log(number) for number in candidates.n_candidates])
        listed = np.flatnonzero(packed.count)
        log_size[listed] = np.log(np.add.reduceat(packed.weight, packed.listed_start[listed]))

        scratch = Scratch.of(packed)
        totals = np.empty(candidates.n_bags)

        def e_step(scores, hard):
            posterior = np.zeros((n, first[-1]))
            if hard:
                best_candidates(packed, scores, True, columns.reshape(-1), totals, scratch)
                posterior[np.arange(n)[:, None], columns] = 1.0
            else:
                mean_candidates(packed, 0, len(totals), scores, True, posterior, 0.0, totals, scratch)
            return np.split(posterior, first[1:-1], axis=1), float(np.sum(weights * (totals - log_size)))

        models = self._models(parts, candidates, weights[candidates.bag_of])
        shares, _ = e_step(np.zeros((n, first[-1])), False)  # from the priors alone
        before = -np.inf
        self.converged_ = False
        for iteration in range(self.max_iter + 1):
            for model, share in zip(models, shares, strict=True):
                model.update(weights[candidates.bag_of, None] * share)
            scores = np.hstack([model.scores() for model in models])
            shares, likelihood = e_step(scores, self.assignment == "hard")
            objective = likelihood + sum(model.log_prior() for model in models)
            run.end(iteration, None, log_likelihood=likelihood, objective=objective)
            if objective - before <= self.tol * max(1.0, abs(objective)):
                self.converged_ = True
                break
            before = objective
        best_candidates(packed, scores, True, columns.reshape(-1), totals, scratch)
        self.classes_ = self._one(list(candidates.classes))
        self.null_ = candidates.null
        self.n_features_ = tuple(part.shape[1] for part in parts)
        self.assignment_ = candidates.named(columns - first[:-1])
        self.responsibilities_ = self._one(shares)
        own = weights[candidates.bag_of] * (n / weights[candidates.bag_of].sum())
        self.label_weights_ = self._one([(own[:, None] * share).mean(axis=0) for share in shares])
        self.history_ = run.history()
        self.n_iter_ = len(run.rows) - 1
        self._finish(models, shares)
        return self

    def _check_weights(self, sample_weight, candidates):
        weights = check_bag_weights(sample_weight, candidates)
        if weights is None:
            return np.ones(candidates.n_bags)
        return weights

    def _parts(self, X, candidates=None):
        X = check_array(X, dtype=FLOATS, input_name="X")
        if candidates is not None:
            check_candidates(candidates, len(X))
        arrays = [X] * self.n_attributes_
        if self.columns is not None:
            columns = once_or_each("columns", self.columns, self.n_attributes_, is_one_choice)
            arrays = [chosen_columns(X, own) for own in columns]
        for part, width in zip(arrays, self.n_features_, strict=False):
            if part.shape[1] != width:
                raise ValueError(f"X must have {width} columns as in fit, got {part.shape[1]}")
        return arrays

    def _log_priors(self):
        """Log of each label's share of the training instances, -inf if none."""
        with np.errstate(divide="ignore"):
            return [np.log(weights) for weights in self._list(self.label_weights_)]

    def _score_ones(self):
        return self._one(self._log_probabilities([np.ones((1, width)) for width in self.n_features_]))

    def _scores(self, X):
        return self._log_probabilities(self._parts(X))

    def _log_probabilities(self, parts):
        appearances = self._calibrated(self._appearance(parts))
        joints = [scores + prior for scores, prior in zip(appearances, self._log_priors(), strict=True)]
        return [joint - logsumexp(joint, axis=1, keepdims=True) for joint in joints]

    def _calibrated(self, scores):
        return scores

    def _within(self, X, candidates):
        scores = np.hstack(self._appearance(self._parts(X, candidates)))
        columns = np.empty((candidates.n_instances, candidates.n_attributes), dtype=np.int32)
        best = np.empty(candidates.n_bags)
        scratch = Scratch.of(candidates.packed)
        best_candidates(candidates.packed, scores, True, columns.reshape(-1), best, scratch)
        return columns - candidates.packed.column[:-1]


def chosen_columns(array, columns):
    try:
        part = array[:, columns if isinstance(columns, slice) else np.asarray(columns)]
    except (IndexError, TypeError):
        part = array[:, :0]
    if part.ndim != 2 or part.shape[1] == 0:
        n = array.shape[1]
        raise ValueError(f"columns must choose from the {n} columns of X for each attribute, got {columns!r}")
    return part

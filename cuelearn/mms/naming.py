r"""EM over candidate labelings (thesis section 5.7), with two models of appearance: GMM and DIST.

A bag's labeling is drawn from its candidates, and its labels generate the appearances,

.. math:: p(\mathcal X_i \mid \mathcal Z_i)
    = \sum_{Z \in \mathcal Z_i} p(Z) \prod_m \prod_p p_p\bigl(x_m^{(p)} \mid z_m^{(p)}\bigr).

GMM: Berg et al. 2004. DIST: Jie, Caputo, Ferrari, NIPS 2009.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral, Real
from typing import Literal, Self

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import minimize
from scipy.sparse import csr_array
from scipy.special import logsumexp
from sklearn.decomposition import PCA
from sklearn.utils.validation import check_array

from cuelearn.core.docs import documented
from cuelearn.core.estimator import (
    COUNT,
    NON_NEGATIVE,
    POSITIVE,
    SEQUENCE,
    Number,
    StrOptions,
    parameters,
    validated,
)
from cuelearn.core.run import Run
from cuelearn.core.samples import FLOATS, InputLike
from cuelearn.expect import expect, expect_shape, expect_word
from cuelearn.kernels.types import RandomState, SampleWeight
from cuelearn.mms.candidates import CandidateSet, check_bag_weights, check_candidates, once_or_each
from cuelearn.mms.inference import best_columns, mean_candidates
from cuelearn.mms.matching import Scratch
from cuelearn.mms.mms import BagClassifier

__all__ = ["DistNaming", "GMMNaming"]

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
        "random_state": ("int, Generator or None", "Not used."),
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
    """Base; subclasses have ``_models(parts, candidates, weights)``, one per attribute with ``update(weighted
    responsibilities)``, ``scores()`` of the training instances and ``log_prior()``; ``_finish(models,
    responsibilities)``; and ``_appearance(parts)``, scores of new instances."""

    _parameter_constraints = {
        "assignment": [StrOptions({"soft", "hard"})],
        "columns": [slice, *SEQUENCE, None],
        "tol": NON_NEGATIVE,
    }

    assignment: Literal["soft", "hard"] = "soft"
    columns: slice | Sequence | np.ndarray | None = None
    max_iter: int = 100
    tol: float = 1e-6
    random_state: RandomState = None

    @validated
    def fit(self, X: InputLike, candidates: CandidateSet, sample_weight: SampleWeight = None) -> Self:
        """Estimate the appearance of every label and the labeling of every bag.

        Parameters
        ----------
        X : array-like, shape (n_instances, n_features)
            Bag after bag.
        candidates : CandidateSet
        sample_weight : array-like, shape (n_bags,) or (n_instances,), optional
            Weights of the *bags*: 2 repeats a bag, 0 excludes it from the appearances. `DistNaming` takes
            none.

        Returns
        -------
        self
        """
        run = Run()
        check_candidates(candidates)
        weights = self._check_weights(sample_weight, candidates)
        n = candidates.n_instances
        packed = candidates.packed
        self.n_attributes_ = candidates.n_attributes
        self.n_features_ = ()
        parts = self._parts(X, candidates)
        first = packed.column
        log_size = np.array([math.log(number) for number in candidates.n_candidates])
        listed = np.flatnonzero(packed.count)
        log_size[listed] = np.log(np.add.reduceat(packed.weight, packed.listed_start[listed]))
        scratch = Scratch.of(packed)

        def e_step(scores, hard):
            posterior = np.zeros((n, first[-1]))
            if hard:
                columns, totals = best_columns(scores, candidates, True)
                posterior[np.arange(n)[:, None], columns] = 1.0
            else:
                totals = np.empty(candidates.n_bags)
                mean_candidates(packed, 0, len(totals), scores, True, posterior, 0.0, totals, scratch)
            return np.split(posterior, first[1:-1], axis=1), float(np.sum(weights * (totals - log_size)))

        own = weights[candidates.bag_of]
        models = self._models(parts, candidates, own)
        shares, _ = e_step(np.zeros((n, first[-1])), False)  # from the priors alone
        before = -np.inf
        self.converged_ = False
        for iteration in range(self.max_iter + 1):
            for model, share in zip(models, shares, strict=True):
                model.update(own[:, None] * share)
            scores = np.hstack([model.scores() for model in models])
            shares, likelihood = e_step(scores, self.assignment == "hard")
            objective = likelihood + sum(model.log_prior() for model in models)
            run.end(iteration, None, log_likelihood=likelihood, objective=objective)
            if objective - before <= self.tol * max(1.0, abs(objective)):
                self.converged_ = True
                break
            before = objective
        columns, _ = best_columns(scores, candidates, True)
        self.classes_ = self._one(list(candidates.classes))
        self.null_ = candidates.null
        self.n_features_ = tuple(part.shape[1] for part in parts)
        self.assignment_ = candidates.named(columns - first[:-1])
        self.responsibilities_ = self._one(shares)
        own = own[:, None] * (n / own.sum())
        self.label_weights_ = self._one([(own * share).mean(axis=0) for share in shares])
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
            expect_shape("X", part, (len(X), width))
        return arrays

    def _log_priors(self):
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
        return best_columns(scores, candidates, True)[0] - candidates.packed.column[:-1]


def chosen_columns(array, columns):
    try:
        part = array[:, columns if isinstance(columns, slice) else np.asarray(columns)]
    except (IndexError, TypeError):
        part = array[:, :0]
    if part.ndim != 2 or part.shape[1] == 0:
        n = array.shape[1]
        raise ValueError(f"columns must choose from the {n} columns of X for each attribute, got {columns!r}")
    return part


def log_densities(X, means, covariance):
    """log p(x | label) of Gaussians with one covariance, shape (n, n_labels)."""
    root = cholesky(covariance, lower=True)
    X, means = (solve_triangular(root, part.T, lower=True).T for part in (X, means))
    log_det = 2.0 * np.log(np.diag(root)).sum()
    distance = X**2 @ np.ones_like(means).T - 2.0 * (X @ means.T) + (means**2).sum(axis=1)
    return -0.5 * (np.maximum(distance, 0.0) + log_det + X.shape[1] * math.log(2.0 * math.pi))


def moments(X, weights):
    weights = (weights * (len(X) / weights.sum()))[:, None]
    mean = (weights * X).mean(axis=0)
    return mean, (weights * (X - mean) ** 2).mean(axis=0)


class GaussianModel:
    """Appearances of one attribute; `strength` is `regularization`."""

    def __init__(self, X, n_labels, strength, weights):
        self.X = X
        self.strength = strength
        mean, variance = moments(X, weights)
        typical = float(variance.mean())
        self.spread = np.maximum(variance, 1e-6 * typical) if typical > 0.0 else np.ones(X.shape[1])
        self.means = np.zeros((n_labels, X.shape[1])) + mean

    def update(self, responsibilities):
        X = self.X
        mass = responsibilities.sum(axis=0)
        sums = responsibilities.T @ X
        taken = mass > NO_MASS
        means = np.where(taken[:, None], sums / np.where(taken, mass, 1.0)[:, None], self.means)
        rest = means.T @ sums
        scatter = (X.T * responsibilities.sum(axis=1)) @ X - rest - rest.T + (means.T * mass) @ means
        scatter = 0.5 * (scatter + scatter.T) + self.strength * np.diag(self.spread)
        count = mass.cumsum()[-1] + self.strength
        self.means = means
        self.covariance = scatter / count

    def scores(self):
        return log_densities(self.X, self.means, self.covariance)

    def log_prior(self):
        """Log-density of the covariance, up to a constant."""
        root = cholesky(self.covariance, lower=True)
        inverse = solve_triangular(root, np.diag(np.sqrt(self.spread)), lower=True)
        return -0.5 * self.strength * (2.0 * np.log(np.diag(root)).sum() + np.sum(inverse**2))


@documented_naming
@parameters
class GMMNaming(EMNaming):
    r"""GMM: a Gaussian for every label including null, fitted by EM over the candidate labelings.

    .. math::
        \max_{\mu, \Sigma} \; \sum_i \log \sum_{Z \in \mathcal Z_i} p(Z)
        \prod_{m, p} N\bigl(x_{i,m}^{(p)}; \mu_{z}, \Sigma\bigr) + \log p(\Sigma), \qquad z = z_m^{(p)}

    All labels share a covariance. EM starts from all candidates with their priors. `decision_function` is the
    logarithm of a label's probability, -inf if no instance took it.

    Parameters
    ----------
    n_components_pca : float in (0, 1), int >= 1 or None, or a sequence with one per attribute; default 0.95
        Project on principal components first: the share of variance to keep, or their number.
    regularization : float > 0, default 1
        The covariance's prior counts as this many instances with the variances of the whole data.
    $assignment $columns $max_iter $tol $random_state

    Attributes
    ----------
    $classes_ $assignment_ $responsibilities_ $label_weights_
    means_, covariances_ : list with one per attribute
        Shapes (n_labels, d) and (1, d, d), after the projection. A label that no instance takes keeps its
        mean, or has the overall mean if it is in no candidate.
    history_ : DataFrame
        step, seconds, log_likelihood, objective (with the prior's logarithm). The objective never falls.
    $converged_ $n_iter_

    Notes
    -----
    An iteration costs O((n + K) d^2 + n K d + d^3), and the E-step O(number of candidates times their
    length), or O(M W 2^W) for a `Matching`.

    Berg et al. first project faces by kernel PCA and linear discriminants and fix the covariance. As in the
    thesis their language model is left out; `CandidateSet` takes such weights as `priors`.

    References
    ----------
    Berg, Berg, Edwards, Forsyth: Who's in the Picture, NIPS 2004, section 2.3; thesis section 5.7.3, "GMM".

    Examples
    --------
    >>> import numpy as np
    >>> from cuelearn.mms import CandidateSet, GMMNaming
    >>> X = np.array([[0.0], [5.0], [0.1], [5.1], [0.2]])
    >>> either = [[0, 1], [1, 0]]
    >>> GMMNaming().fit(X, CandidateSet([either, either, [[0]]])).assignment_
    array([0, 1, 0, 1, 0])
    """

    _parameter_constraints = {
        "n_components_pca": [*COUNT, Number(Real, 0, 1, closed="neither"), list, tuple, None],
        "regularization": POSITIVE,
    }

    n_components_pca: float | Sequence[float | None] | None = 0.95
    regularization: float = 1.0

    def _models(self, parts, candidates, weights):
        P = len(parts)
        given = self.n_components_pca
        numbers = once_or_each("n_components_pca", given, P, lambda n: n is None or np.isscalar(n))
        self.projections_ = [projection(part, k, weights) for part, k in zip(parts, numbers, strict=True)]
        pairs = zip(self._projected(parts), candidates.n_labels, strict=True)
        return [GaussianModel(X, size, float(self.regularization), weights) for X, size in pairs]

    def _projected(self, parts):
        projected = []
        for part, (mean, axes) in zip(parts, self.projections_, strict=True):
            centred = np.asarray(part, dtype=np.float64) - mean
            projected.append(centred if axes is None else centred @ axes)
        return projected

    def _finish(self, models, shares):
        self.means_ = [model.means for model in models]
        self.covariances_ = [model.covariance[None] for model in models]

    def _appearance(self, parts):
        fitted = zip(self.means_, self.covariances_, self._projected(parts), strict=True)
        return [log_densities(X, means, covariances[0]) for means, covariances, X in fitted]


def projection(part, number, weights):
    """Weighted mean, and principal components (d, r) or None."""
    part = np.asarray(part, dtype=np.float64)
    mean, variance = moments(part, weights)
    share = isinstance(number, Real) and not isinstance(number, Integral) and 0.0 < number < 1.0
    if number is None or (share and not np.any(variance > 0.0)):
        return mean, None
    if not share:
        expect("n_components_pca", number, kind="whole", low=1, high=min(part.shape))
    solver = "full"
    if part.shape[0] > part.shape[1]:
        solver = "covariance_eigh"
    pca = PCA(n_components=float(number) if share else int(number), svd_solver=solver)
    if np.all(weights == weights[0]):
        return mean, pca.fit(part).components_.T
    rows = np.sqrt(weights)[:, None] * (part - mean)
    return mean, pca.fit(np.vstack([rows, -rows])).components_.T  # both signs: their mean is 0


METRICS = ("cosine", "sqeuclidean")
#: Most samples whose pairs set a scale by rule.
SCALE_SAMPLES = 2000
#: Most samples that calibrate the scores.
CALIBRATION_SAMPLES = 5000
#: Least ratio of a label's affinity to that of null.
LEAST = 1e-300
#: Most steps tried in the M-step, each half as long.
HALVINGS = 8
#: Bounds in `calibrate`: separable labels have no finite optimum.
MOST_SLOPE = 100.0
MOST_OFFSET = 20.0
#: Most distances computed at once.
BLOCK = 2**22


@dataclass(frozen=True)
class Distances:
    """Distances to one attribute's training instances, kernel exp(-d / scale)."""

    metric: str | Sequence[str]
    centre: np.ndarray  # (d,): subtracted for "sqeuclidean"
    X: np.ndarray  # (n, d): training instances, `prepared`
    scale: float | str | Sequence[float | str] = 1.0

    @classmethod
    def of(cls, X, metric, scale):
        centre = np.zeros(X.shape[1])
        if metric == "sqeuclidean":
            centre = X.mean(axis=0, dtype=np.float64)
        made = cls(metric, centre, cls(metric, centre, X).prepared(X))
        if isinstance(scale, str):
            rows = evenly_spaced(len(X), SCALE_SAMPLES)
            distance = made.among(rows)[~np.eye(rows.size, dtype=bool)]
            spread = 0.0
            if distance.size:
                spread = float(distance.mean() if scale == "mean" else 0.5 * distance.std())
            scale = spread or 1.0
        return replace(made, scale=scale)

    def prepared(self, X):
        """Rows of length 1 (or 0) for "cosine", else centred; float64."""
        X = X - self.centre
        if self.metric == "cosine":
            length = np.sqrt((X * X).sum(axis=1, keepdims=True))
            X /= np.where(length > 0.0, length, 1.0)
        return X

    def to(self, rows, Y):
        inner = rows @ Y.T
        if self.metric == "cosine":
            return np.clip(1.0 - inner, 0.0, 2.0)
        return np.maximum((rows * rows).sum(axis=1)[:, None] - 2.0 * inner + (Y * Y).sum(axis=1), 0.0)

    def among(self, rows):
        return self.to(self.X[rows], self.X[rows])

    def blocks(self, X):
        """Slices of rows, with distances to all training instances."""
        step = max(1, BLOCK // len(self.X))
        for start in range(0, len(X), step):
            part = X[start : start + step]
            yield slice(start, start + len(part)), self.to(part, self.X)

    def null_levels(self, X, leave_out=False):
        """Log of the mean kernel value to all training instances, or with `leave_out` to all others."""
        out = np.zeros(len(X))
        number = len(self.X) - leave_out
        for rows, distance in self.blocks(X if number else X[:0]):
            value = distance / -self.scale
            if leave_out:
                value[np.arange(len(value)), np.arange(rows.start, rows.stop)] = -np.inf
            top = value.max(axis=1, keepdims=True)
            out[rows] = top[:, 0] + np.log(np.exp(value - top).sum(axis=1) / number)
        return out

    def ratio(self, distance, level):
        return np.exp(np.minimum(distance / -self.scale - level[:, None], 700.0))

    def scores(self, matrix, X, levels, own=None):
        """Log-affinities over null's (`levels`) from exemplar weights (n_labels, n), 0 without; `own`
        numbers rows that are training instances."""
        out = np.empty((len(X), matrix.shape[0]))
        for rows, distance in self.blocks(X):
            value = self.ratio(distance, levels[rows])
            if own is not None:  # no evidence for itself
                value[np.arange(len(value)), own[rows]] = 1.0
            out[rows] = log_ratio((matrix @ value.T).T)
        out[:, np.diff(matrix.indptr) == 0] = 0.0
        return out


def log_ratio(value):
    return np.log(np.maximum(value, LEAST))


class Exemplars:
    """Appearances of one attribute: a label's exemplars are the instances with it in the `mask` (n,
    n_labels); its score is their log-affinity over null's."""

    def __init__(self, distances, mask, null, memory):
        self.distances = distances
        self.mask = mask
        self.level = distances.null_levels(distances.X, leave_out=True)
        self.rows = [np.flatnonzero(column & (k != null)) for k, column in enumerate(mask.T)]
        self.blocks = None
        if 8 * sum(rows.size**2 for rows in self.rows) <= memory:
            self.blocks = list(map(self._block, self.rows))
        self.weights = {}  # of labels with exemplars
        self.values = {}

    def _block(self, rows):
        block = self.distances.ratio(self.distances.among(rows), self.level[rows])
        np.fill_diagonal(block, 1.0)  # no evidence for itself
        return block

    def update(self, responsibilities):
        """Generalised M-step: towards the responsibilities while the expected log-likelihood rises."""
        for k, rows in enumerate(self.rows):
            own = responsibilities[rows, k]
            mass = own.sum()
            if mass <= NO_MASS:
                continue
            weights = own / mass
            values = (self.blocks[k] if self.blocks is not None else self._block(rows)) @ weights
            if k in self.weights:
                old_weights = self.weights[k]
                old_values = self.values[k]
                before = own @ log_ratio(old_values)
                for halving in range(HALVINGS):
                    share = 0.5**halving
                    mixed = (1.0 - share) * old_values + share * values
                    if own @ log_ratio(mixed) >= before:
                        break
                else:
                    continue
                values = mixed
                weights = (1.0 - share) * old_weights + share * weights
            self.weights[k] = weights
            self.values[k] = values

    def scores(self):
        """Of the training instances, each without itself as exemplar."""
        out = np.zeros(self.mask.shape)
        for k, values in self.values.items():
            out[self.rows[k], k] = log_ratio(values)
        return out

    def log_prior(self):
        return 0.0

    def matrix(self):
        dense = np.zeros(self.mask.shape[::-1])
        for k, weights in self.weights.items():
            dense[k, self.rows[k]] = weights
        return csr_array(dense)


def calibrate(scores, responsibilities, prior, null):
    r"""Slope a >= 0 and null's offset b (0 without null) of :math:`\max_{a, b} \frac1n \sum_i \sum_k r_{ik}
    \log p_{ik}`, :math:`p_{ik} \propto \pi_k \exp(a s_{ik} + b [k = 0])`, with log pi `prior`."""
    seen = prior > -np.inf
    scores = scores[:, seen]
    responsibilities = responsibilities[:, seen]
    prior = prior[seen]
    is_null = (np.flatnonzero(seen) == null).astype(float)

    def loss(ab):
        joint = ab[0] * scores + ab[1] * is_null + prior
        log_p = joint - logsumexp(joint, axis=1, keepdims=True)
        excess = np.exp(log_p) - responsibilities
        slope = np.array([np.sum(excess * scores), np.sum(excess @ is_null)])
        return -np.sum(responsibilities * log_p) / len(scores), slope / len(scores)

    offset = (0.0, 0.0)
    if is_null.any() and not is_null.all():
        offset = (-MOST_OFFSET, MOST_OFFSET)
    bounds = [(0.0, MOST_SLOPE), offset]
    return minimize(loss, np.array([1.0, 0.0]), jac=True, method="L-BFGS-B", bounds=bounds).x


@documented_naming
@parameters
class DistNaming(EMNaming):
    r"""DIST: labels modelled by distances to exemplars, fitted by EM over the candidate labelings.

    .. math::
        \max_w \; \sum_i \log \sum_{Z \in \mathcal Z_i} p(Z)
        \prod_{m, p} \frac{p(x_{i,m}^{(p)} \mid z_m^{(p)})}{p(x_{i,m}^{(p)} \mid 0)},
        \qquad p(x \mid k) \propto \sum_j w_{jk} \, e^{-d(x, x_j) / \text{scale}}

    over exemplar weights with :math:`\sum_j w_{jk} = 1`. The exemplars of label k are the training instances
    with k among their candidates; null is the density of all training instances.

    Parameters
    ----------
    metric : {"cosine", "sqeuclidean"}, or a sequence with one per attribute
        "cosine" is ``1 - x'x'' / (|x| |x''|)``, 1 from a zero vector.
    scale : {"spread", "mean"}, float > 0, or a sequence with one per attribute
        Divisor of the distances: by rule half their standard deviation, or their mean, over pairs of
        different training instances (at most 2,000).
    $assignment $columns
    memory : float > 0, default 2e9
        Bytes for the distances among the exemplars of all labels; beyond, each iteration recomputes them.
    $max_iter $tol $random_state

    Attributes
    ----------
    $classes_ $assignment_ $responsibilities_ $label_weights_
    history_ : DataFrame
        step, seconds, log_likelihood (over null's), objective (the same). The objective never falls.
    $converged_ $n_iter_
    scale_ : ndarray, shape (n_attributes,)
    calibration_ : ndarray, shape (n_attributes, 2)
        Slope of scores and offset of null without a caption, fitted to `responsibilities_`.
    exemplar_weights_ : list of sparse arrays, shape (n_labels, n_instances), one per attribute

    Notes
    -----
    The model of faces and poses, joined through name-verb pairs, the EM, distances and kernels are the
    thesis's (5.7.3); exemplars weighted by responsibilities, null as the density of all instances, and a
    scale by rule (there cross-validated) are ours.

    No instance is evidence for itself: its own affinity is null's, so the labeling of the training set is
    `assignment_`, not `predict`. The M-step moves the weights towards the responsibilities by the longest of
    the steps 1, 1/2, ..., 2^-7 that does not lower the expected log-likelihood, or by 0.

    Cost: O(n^2 d) distances once for null, and O(sum of n_k^2) time per iteration and memory, n_k the number
    of instances that may have label k.

    References
    ----------
    Jie, Caputo, Ferrari: Who's Doing What, NIPS 2009; thesis section 5.7, "DIST". Generalised EM: Neal and
    Hinton, in Learning in Graphical Models, 1998.

    Examples
    --------
    >>> import numpy as np
    >>> from cuelearn.mms import CandidateSet, DistNaming
    >>> X = np.array([[0.0], [5.0], [0.1], [5.1], [0.2]])
    >>> either = [[0, 1], [1, 0]]
    >>> DistNaming(metric="sqeuclidean").fit(X, CandidateSet([either, either, [[0]]])).assignment_
    array([0, 1, 0, 1, 0])
    """

    _parameter_constraints = {
        "metric": [StrOptions(set(METRICS)), list, tuple],
        "scale": [*POSITIVE, StrOptions({"spread", "mean"}), list, tuple],
        "memory": POSITIVE,
    }

    metric: str | Sequence[str] = "cosine"
    scale: float | str | Sequence[float | str] = "spread"
    memory: float = 2e9

    def _check_weights(self, sample_weight, candidates):
        if sample_weight is not None:
            raise ValueError(
                "sample_weight must be None for DistNaming: an instance is no evidence for itself, but would "
                "be for its copy in a bag given twice"
            )
        return super()._check_weights(None, candidates)

    def _models(self, parts, candidates, weights):
        metrics = once_or_each("metric", self.metric, self.n_attributes_)
        metrics = [expect_word("metric", metric, METRICS) for metric in metrics]
        scales = once_or_each("scale", self.scale, self.n_attributes_)
        scales = [expect("scale", scale, above=0, words=("spread", "mean")) for scale in scales]
        self.distances_ = list(map(Distances.of, parts, metrics, scales))
        self.scale_ = np.array([distances.scale for distances in self.distances_])
        nulls = candidates.null or [None] * len(parts)
        masks = map(candidates.mask, range(len(parts)))
        return [Exemplars(*given, self.memory) for given in zip(self.distances_, masks, nulls, strict=True)]

    def _finish(self, models, shares):
        self.exemplar_weights_ = [model.matrix() for model in models]
        calibration = []
        priors = self._log_priors()
        nulls = self.null_ or [None] * len(models)
        for p, (model, share) in enumerate(zip(models, shares, strict=True)):
            own = evenly_spaced(len(share), CALIBRATION_SAMPLES)
            rows = model.distances.X[own]
            scores = model.distances.scores(self.exemplar_weights_[p], rows, model.level[own], own)
            calibration.append(calibrate(scores, share[own], priors[p], nulls[p]))
        self.calibration_ = np.array(calibration)

    def _appearance(self, parts):
        scores = []
        for distances, matrix, part in zip(self.distances_, self.exemplar_weights_, parts, strict=True):
            X = distances.prepared(part)
            scores.append(distances.scores(matrix, X, distances.null_levels(X)))
        return scores

    def _calibrated(self, scores):
        for p, (slope, offset) in enumerate(self.calibration_):
            scores[p] = slope * scores[p]
            if self.null_ is not None:
                scores[p][:, self.null_[p]] += offset
        return scores

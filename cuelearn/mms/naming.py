r"""EM over candidate labeling sets: the constrained Gaussian mixture (GMM) and the distance-based model (DIST) of thesis section 5.7.

Both hold that a bag's labeling is drawn from its candidates and that the labels then draw the appearances,

.. math:: p(\mathcal X_i \mid \mathcal Z_i) = \sum_{Z \in \mathcal Z_i} p(Z) \prod_m \prod_p p_p\bigl(x_m^{(p)} \mid z_m^{(p)}\bigr).

They differ in what a label's appearance model is.
"""

import math
import time

import numpy as np
import pandas as pd
from numba import njit
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import minimize
from scipy.sparse import csr_array
from scipy.special import logsumexp
from sklearn.base import BaseEstimator
from sklearn.decomposition import PCA
from sklearn.utils.validation import check_is_fitted

from cuelearn.core.checks import check_count, check_non_negative, check_positive, unchanged_on_error
from cuelearn.mms.candidates import CandidateSet, matching_best, word_values
from cuelearn.mms.inference import write_listed, write_words

__all__ = ["DistNaming", "GMMNaming"]

#: Pairs of at most that many samples, evenly spaced, give a gamma by rule.
GAMMA_SAMPLES = 2000
#: At most that many samples, evenly spaced, calibrate the scores.
CALIBRATION_SAMPLES = 5000
#: Responsibilities that add up to less leave a label's appearance as it was.
NO_MASS = 1e-12
#: Least ratio of a label's affinity to that of null; below, exemplars say nothing.
LEAST = 1e-300
HALVINGS = 8
#: Distances as far below 0, against 1 or the largest, pass for 0.
ROUNDING = 1e-5
MOST_SLOPE, MOST_OFFSET = (
    100.0,
    20.0,
)  # of `calibrate`; labels that the scores tell apart without an error have no finite optimum
BLOCK = 2**22  # values held at once where rows of distances are computed


# ------------------------------------------------------------------ the step over candidates


@njit(cache=True, nogil=True)
def _log_add(a, b):
    if a < b:
        a, b = b, a
    return a if b == -np.inf else a + math.log1p(math.exp(b - a))


@njit(cache=True, nogil=True)
def _listed_values(packed, i, scores, values):
    """Logarithm of weight times likelihood of the candidates of bag i into `values`; returns the number of the first largest."""
    first, P = packed.row[i], packed.n_attributes
    n_slots = (packed.row[i + 1] - first) * P
    best, at = 0, packed.start[i]
    for c in range(packed.count[i]):
        weight = packed.weight[packed.listed_start[i] + c]
        total = math.log(weight) if weight > 0.0 else -np.inf
        for s in range(n_slots):
            total += scores[first + s // P, packed.labels[at + s]]
        at += n_slots
        values[c] = total
        if total > values[best]:
            best = c
    return best


@njit(cache=True, nogil=True)
def _matching_posterior(packed, i, values, posterior):
    """Forward and backward sums over the subsets of a matching's words; adds to `posterior` (n_regions, n_columns).

    Parameters
    ----------
    values : ndarray, shape (n_regions, n_words + 1)
        Log-likelihood of each region with each word.

    Returns
    -------
    float
        Logarithm of the sum over all candidates. Time O(n_regions n_words 2^n_words).
    """
    n_regions, n_words, P = values.shape[0], values.shape[1] - 1, packed.n_attributes
    n_subsets = 1 << n_words
    for m in range(n_regions):
        for w in range(n_words + 1):
            if not packed.allowed[packed.allowed_start[i] + m * (n_words + 1) + w]:
                values[m, w] = -np.inf
    forward, backward = (
        np.full((n_regions + 1, n_subsets), -np.inf),
        np.full((n_regions + 1, n_subsets), -np.inf),
    )
    forward[0, 0] = 0.0
    backward[n_regions, 1:] = 0.0  # not the empty subset: the all-null labeling is no candidate
    for m in range(n_regions):
        for subset in range(n_subsets):
            if forward[m, subset] == -np.inf:
                continue
            forward[m + 1, subset] = _log_add(forward[m + 1, subset], forward[m, subset] + values[m, 0])
            for w in range(n_words):
                if not subset >> w & 1:
                    there = subset | 1 << w
                    forward[m + 1, there] = _log_add(
                        forward[m + 1, there], forward[m, subset] + values[m, w + 1]
                    )
    for step in range(n_regions):
        m = n_regions - 1 - step
        for subset in range(n_subsets):
            total = backward[m + 1, subset] + values[m, 0]
            for w in range(n_words):
                if not subset >> w & 1:
                    total = _log_add(total, backward[m + 1, subset | 1 << w] + values[m, w + 1])
            backward[m, subset] = total
    everything = backward[0, 0]
    for m in range(n_regions):
        for w in range(n_words + 1):
            share = 0.0
            for subset in range(n_subsets):
                if w == 0 or not subset >> (w - 1) & 1:
                    there = subset if w == 0 else subset | 1 << (w - 1)
                    share += math.exp(forward[m, subset] + values[m, w] + backward[m + 1, there] - everything)
            for p in range(P):
                column = packed.null[p] if w == 0 else packed.labels[packed.start[i] + (w - 1) * P + p]
                posterior[m, column] += share
    return everything


@njit(cache=True, nogil=True)
def expect(packed, scores, posterior):
    """Posterior probability of every label of every slot, given the candidates, and the sum over each bag's candidates.

    Parameters
    ----------
    packed : PackedCandidates
    scores : ndarray, shape (n_instances, n_columns)
        log p(x | label), the attributes' labels side by side.
    posterior : ndarray of zeros, shape (n_instances, n_columns)
        Filled.

    Returns
    -------
    ndarray, shape (n_bags,)
        log sum_Z w(Z) p(X | Z), with the candidates' weights w (1 for those of a `Matching`).
    """
    n_bags, P = packed.count.shape[0], packed.n_attributes
    totals, values = np.empty(n_bags), np.empty(max(1, packed.count.max()))
    for i in range(n_bags):
        first, last = packed.row[i], packed.row[i + 1]
        if packed.n_words[i] > 0:
            totals[i] = _matching_posterior(
                packed, i, word_values(packed, i, scores[first:last]), posterior[first:last]
            )
            continue
        top, number = values[_listed_values(packed, i, scores, values)], 0.0
        for c in range(packed.count[i]):
            values[c] = math.exp(values[c] - top)
            number += values[c]
        totals[i] = top + math.log(number)
        n_slots, at = (last - first) * P, packed.start[i]
        for c in range(packed.count[i]):
            share = values[c] / number
            for s in range(n_slots):
                posterior[first + s // P, packed.labels[at + s]] += share
            at += n_slots
    return totals


@njit(cache=True, nogil=True)
def choose(packed, scores, columns):
    """The best candidate of every bag, the first among equals.

    Parameters
    ----------
    packed : PackedCandidates
    scores : ndarray, shape (n_instances, n_columns)
    columns : ndarray of int, shape (n_instances, n_attributes)
        Filled with the labels, as columns.

    Returns
    -------
    ndarray, shape (n_bags,)
        max_Z log w(Z) p(X | Z).
    """
    n_bags, P = packed.count.shape[0], packed.n_attributes
    totals, values = np.empty(n_bags), np.empty(max(1, packed.count.max()))
    labels = columns.reshape(-1)
    for i in range(n_bags):
        first, last = packed.row[i], packed.row[i + 1]
        if packed.n_words[i] > 0:
            totals[i], words = matching_best(packed, i, word_values(packed, i, scores[first:last]))
            write_words(packed, i, words, labels[first * P : last * P])
            continue
        best = _listed_values(packed, i, scores, values)
        totals[i] = values[best]
        write_listed(packed, i, best, labels[first * P : last * P])
    return totals


# ------------------------------------------------------------------ what both methods share


def _one_each(name, value, P, single):
    """A parameter given once or once per attribute, as a list of P; `single` says what counts as given once."""
    values = [value] * P if single(value) else list(value) if hasattr(value, "__len__") else None
    if values is None or len(values) != P:
        raise ValueError(f"{name} must be given once or once for each of the {P} attributes, got {value!r}")
    return values


def _is_one_choice(columns):
    """Whether these are columns of one attribute rather than a sequence of such."""
    numbers = (
        hasattr(columns, "__len__")
        and len(columns) > 0
        and all(isinstance(c, (int, np.integer, np.bool_)) for c in columns)
    )
    return isinstance(columns, slice) or numbers


def _spaced(n, most):
    """Numbers below n, all of them or `most` evenly spaced."""
    return np.arange(n) if n <= most else np.linspace(0, n - 1, most).astype(int)


def _is_one_number(value):
    return value is None or np.isscalar(value)


def _among(name, value, options):
    if not isinstance(value, str) or value not in options:
        raise ValueError(
            f"{name} must be {', '.join(map(repr, options[:-1]))} or {options[-1]!r}, got {value!r}"
        )
    return value


def _matrix(name, X):
    """A finite matrix of floats, or an error that names it."""
    try:
        X = np.asarray(X)
        X = X if X.dtype.kind == "f" else X.astype(np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must hold numbers in rows of one length") from None
    if X.ndim != 2 or X.shape[1] == 0:
        raise ValueError(f"{name} must have two dimensions and at least one column, got shape {X.shape}")
    if not np.all(np.isfinite(X)):
        raise ValueError(f"{name} must be finite, got NaN or infinity")
    return X


class _EMNaming(BaseEstimator):
    """Base: the loop and the predictions; subclasses have appearance models.

    Subclasses implement ``_check(P)``, ``_begin(parts, candidates)``, which makes ``_models`` with an ``update(responsibilities)`` each,
    ``_scores()`` of the training instances, ``_log_prior()``, ``_finish()`` and ``_appearance(parts)``, the scores of others.
    """

    def fit(self, X, candidates):
        """Estimate the appearance of every label and the labeling of every bag.

        Parameters
        ----------
        X : array-like, shape (n_instances, n_features), or list of n_attributes such arrays
            The instances of all bags in order; a list has an array of its own for each attribute (`columns` then chooses in each).
        candidates : CandidateSet
            Single mode is that of one attribute, ``candidates.attribute(p)``.

        Returns
        -------
        self

        Raises
        ------
        TypeError
            If `candidates` is not a CandidateSet.
        ValueError
            If rows, columns or parameters do not fit, or X is not finite.
        """
        with unchanged_on_error(self):
            begun = time.perf_counter()
            if not isinstance(candidates, CandidateSet):
                raise TypeError(f"candidates must be a CandidateSet, got {type(candidates).__name__}")
            P = candidates.n_attributes
            hard = _among("assignment", self.assignment, ("soft", "hard")) == "hard"
            _among("label_prior", self.label_prior, ("frequency", "uniform"))
            max_iter, tol = check_count("max_iter", self.max_iter), check_non_negative("tol", self.tol)
            self._check(P)
            parts = self._parts(X, P, candidates.n_instances)
            self._sets, self.classes_ = (
                candidates.take([0]),
                candidates.classes[0] if P == 1 else list(candidates.classes),
            )
            self.n_features_ = tuple(part.shape[1] for part in parts)
            return self._iterate(parts, candidates, hard, max_iter, tol, begun)

    def _iterate(self, parts, candidates, hard, max_iter, tol, begun):
        packed, n, P = candidates.packed, candidates.n_instances, candidates.n_attributes
        column, log_size = packed.column, self._log_weights(candidates)
        columns = np.empty((n, P), dtype=np.int64)

        def step(scores, hard):
            """Responsibilities of each attribute's labels, and the log-likelihood."""
            posterior = np.zeros((n, column[-1]))
            totals = choose(packed, scores, columns) if hard else expect(packed, scores, posterior)
            if hard:
                posterior[np.arange(n)[:, None], columns] = 1.0
            return [posterior[:, column[p] : column[p + 1]] for p in range(P)], float(
                np.sum(totals - log_size)
            )

        self._begin(parts, candidates)
        posteriors, _ = step(np.zeros((n, column[-1])), False)  # by the priors alone
        history, self.converged_ = [], False
        for iteration in range(max_iter + 1):
            self._update(posteriors)
            scores = np.hstack(self._scores())
            posteriors, likelihood = step(scores, hard)
            objective = likelihood + self._log_prior()
            history.append((iteration, likelihood, objective, time.perf_counter() - begun))
            if iteration > 0 and objective - history[-2][2] <= tol * max(1.0, abs(objective)):
                self.converged_ = True
                break
        choose(packed, scores, columns)
        self.assignment_ = candidates.named(columns - column[:-1])
        weights = [posterior.mean(axis=0) for posterior in posteriors]
        self._label_priors = [self._log_label_prior(weight) for weight in weights]
        self.responsibilities_, self.label_weights_ = (
            (posteriors[0], weights[0]) if P == 1 else (posteriors, weights)
        )
        self.history_ = pd.DataFrame(history, columns=["iteration", "log_likelihood", "objective", "seconds"])
        self.n_iter_ = len(history) - 1
        self._finish()
        return self

    @staticmethod
    def _log_weights(candidates):
        """Logarithm of the sum of the weights of each bag's candidates, shape (n_bags,)."""
        packed = candidates.packed
        out = np.array([math.log(number) for number in candidates.n_candidates])
        listed = np.flatnonzero(packed.count > 0)
        if listed.size:
            out[listed] = np.log(np.add.reduceat(packed.weight, packed.listed_start[listed]))
        return out

    # ------------------------------------------------------------------ input

    def _parts(self, X, P, n_rows=None):
        """The columns of each attribute: list of P arrays."""
        several = (
            isinstance(X, (list, tuple)) and len(X) > 0 and all(getattr(part, "ndim", 0) == 2 for part in X)
        )
        if several and len(X) != P:
            raise ValueError(
                f"X must be one array or a list of {P}, one for each attribute, got a list of {len(X)}"
            )
        arrays = [_matrix(f"X[{p}]", part) for p, part in enumerate(X)] if several else [_matrix("X", X)] * P
        for p, array in enumerate(arrays):
            name = f"X[{p}]" if several else "X"
            if n_rows is not None and array.shape[0] != n_rows:
                raise ValueError(
                    f"{name} must have one row for each of the {n_rows} instances of candidates, got {array.shape[0]}"
                )
            if array.shape[0] != arrays[0].shape[0]:
                raise ValueError(
                    f"{name} must have as many rows as X[0], {arrays[0].shape[0]}, got {array.shape[0]}"
                )
        if self.columns is None:
            return arrays
        chosen = []
        for array, columns in zip(arrays, _one_each("columns", self.columns, P, _is_one_choice), strict=True):
            try:
                part = array[:, columns if isinstance(columns, slice) else np.asarray(columns)]
            except (IndexError, TypeError):
                part = None
            if part is None or part.ndim != 2 or part.shape[1] == 0:
                raise ValueError(
                    f"columns must choose from the {array.shape[1]} columns of X for each attribute, got {columns!r}"
                )
            chosen.append(part)
        return chosen

    def _known(self, X, n_rows=None):
        """`_parts` of other instances, with the widths of those of `fit`."""
        check_is_fitted(self, "history_")
        parts = self._parts(X, self._sets.n_attributes, n_rows)
        for part, width in zip(parts, self.n_features_, strict=True):
            if part.shape[1] != width:
                raise ValueError(
                    f"X must have {width} columns for an attribute, as in fit, got {part.shape[1]}"
                )
        return parts

    # ------------------------------------------------------------------ predictions

    def decision_function(self, X):
        r"""Logarithm of the probability of every label, :math:`\log p(k \mid x) = \log \pi_k + \log p(x \mid k) - \log \sum_{k'} \dots`

        Parameters
        ----------
        X : as in `fit`

        Returns
        -------
        ndarray, shape (n, n_labels), or list of one for each attribute
            -inf for labels that no training instance took.
        """
        parts = self._known(X)
        single = len(parts) == 1
        out = []
        for p, (scores, prior) in enumerate(zip(self._appearance(parts), self._label_priors, strict=True)):
            joint = self._calibrated(scores, p) + prior
            out.append(joint - logsumexp(joint, axis=1, keepdims=True))
        return out[0] if single else out

    def predict(self, X, candidates=None):
        """The most probable label of every instance, or the best candidate of every bag.

        Parameters
        ----------
        X : as in `fit`
        candidates : CandidateSet, optional
            Of the same labels as in `fit`. Without it every instance counts for itself and every label, null among them, is open.
            For the instances of `fit` see `assignment_`: here they would be compared with themselves.

        Returns
        -------
        ndarray, shape (n,), or (n, n_attributes) of objects for several attributes
            Labels as the candidates' `classes` call them.
        """
        if candidates is None:
            values = self.decision_function(X)
            values = [values] if self._sets.n_attributes == 1 else values
            return self._sets.named(np.stack([value.argmax(axis=1) for value in values], axis=1))
        check_is_fitted(self, "history_")
        if not isinstance(candidates, CandidateSet):
            raise TypeError(f"candidates must be a CandidateSet, got {type(candidates).__name__}")
        if candidates.n_labels != self._sets.n_labels or any(
            not np.array_equal(a, b) for a, b in zip(candidates.classes, self._sets.classes, strict=True)
        ):
            raise ValueError(
                f"candidates must have the labels of fit, {self._sets.n_labels} of them, got {candidates.n_labels}"
            )
        parts = self._known(X, candidates.n_instances)
        columns = np.empty((candidates.n_instances, candidates.n_attributes), dtype=np.int64)
        choose(candidates.packed, np.hstack(self._appearance(parts)), columns)
        return candidates.named(columns - candidates.packed.column[:-1])

    def _log_label_prior(self, weights):
        """Logarithm of the prior of each label where there is no caption, shape (n_labels,)."""
        prior, taken = np.full(weights.shape, -np.inf), weights > 0.0
        prior[taken] = np.log(weights[taken]) if self.label_prior == "frequency" else -math.log(taken.sum())
        return prior

    def _calibrated(self, scores, p):
        return scores

    def _update(self, posteriors):
        for model, posterior in zip(self._models, posteriors, strict=True):
            model.update(posterior)

    def _log_prior(self):
        return 0.0


# ------------------------------------------------------------------ GMM


class _Gaussians:
    """Gaussians of the labels of one attribute, updated from responsibilities.

    Parameters
    ----------
    X : ndarray, shape (n, d)
        Training instances.
    n_labels : int
    covariance, per_label, strength
        `covariance`, `per_label` and `regularization` of `GMMNaming`.
    """

    def __init__(self, X, n_labels, covariance, per_label, strength):
        self.X, self.covariance, self.strength = X, covariance, strength
        self.group = np.arange(n_labels) if per_label else np.zeros(n_labels, dtype=int)
        variance = X.var(axis=0)
        typical = float(variance.mean())
        spread = np.maximum(variance, 1e-6 * typical) if typical > 0.0 else np.ones(X.shape[1])
        self.spread = np.full(X.shape[1], spread.mean()) if covariance == "spherical" else spread
        self.means = np.zeros((n_labels, X.shape[1])) + X.mean(axis=0)
        self.covariances = None

    def update(self, responsibilities):
        X, mass = self.X, responsibilities.sum(axis=0)
        sums = responsibilities.T @ X
        taken = mass > NO_MASS
        self.means = np.where(taken[:, None], sums / np.where(taken, mass, 1.0)[:, None], self.means)
        count = np.bincount(self.group, weights=mass) + self.strength
        if self.covariance == "tied":
            rest = self.means.T @ sums
            scatter = (
                (X.T * responsibilities.sum(axis=1)) @ X - rest - rest.T + (self.means.T * mass) @ self.means
            )
            self.covariances = (0.5 * (scatter + scatter.T) + self.strength * np.diag(self.spread))[
                None
            ] / count[0]
            return
        scatter = responsibilities.T @ X**2 - 2.0 * self.means * sums + mass[:, None] * self.means**2
        scatter = np.maximum(
            np.stack([np.bincount(self.group, weights=column) for column in scatter.T], axis=1), 0.0
        )  # of each group
        if self.covariance == "spherical":
            scatter = np.repeat(scatter.mean(axis=1, keepdims=True), X.shape[1], axis=1)
        self.covariances = (scatter + self.strength * self.spread) / count[:, None]

    def log_density(self, X):
        """log p(x | label), shape (n, n_labels)."""
        means = self.means
        if self.covariance == "tied":
            root = cholesky(self.covariances[0], lower=True)
            X, means = (solve_triangular(root, part.T, lower=True).T for part in (X, means))
            scale, log_det = np.ones_like(means), np.full(len(means), 2.0 * np.log(np.diag(root)).sum())
        else:
            scale = 1.0 / self.covariances[self.group]
            log_det = -np.log(scale).sum(axis=1)
        distance = X**2 @ scale.T - 2.0 * (X @ (means * scale).T) + (means**2 * scale).sum(axis=1)
        return -0.5 * (np.maximum(distance, 0.0) + log_det + X.shape[1] * math.log(2.0 * math.pi))

    def log_prior(self):
        """Log-density of the covariances' prior, up to a constant."""
        if self.covariance == "tied":
            root = cholesky(self.covariances[0], lower=True)
            inverse = solve_triangular(root, np.diag(np.sqrt(self.spread)), lower=True)
            return -0.5 * self.strength * (2.0 * np.log(np.diag(root)).sum() + np.sum(inverse**2))
        return -0.5 * self.strength * float(np.sum(np.log(self.covariances) + self.spread / self.covariances))


class GMMNaming(_EMNaming):
    r"""GMM: a Gaussian for every label, null among them, and EM over the candidate labelings.

    .. math::
        \max_{\mu, \Sigma} \; \sum_i \log \sum_{Z \in \mathcal Z_i} p(Z) \prod_{m, p} N\bigl(x_{i,m}^{(p)}; \mu_{z}, \Sigma_{z}\bigr)
        + \log p(\Sigma), \qquad z = z_m^{(p)}

    The E-step gives the probability of every candidate of a bag, the M-step means and covariances from instances weighted so. With
    ``assignment="hard"`` the sum is a maximum: the best candidate of each bag counts alone. Both start from all candidates by their
    priors, equal ones by default, and nothing is random.

    Parameters
    ----------
    covariance : {"tied", "diagonal", "spherical"}, default "tied"
        A full matrix that all labels share; variances of the columns; one variance.
    per_label : bool, default False
        Every label has "diagonal" or "spherical" variances of its own. Few instances per label then decide for labels of large variance.
    assignment : {"soft", "hard"}
    n_components_pca : float in (0, 1), int >= 1 or None, or a sequence with one per attribute; default 0.95
        Project on principal components first: which share of the variance they keep, or how many they are.
    regularization : float > 0, default 1
        The prior of each covariance counts as that many instances with the variances of the whole data.
    columns : slice or sequence of int, or a sequence with one per attribute; optional
        Columns of X that show each attribute; all of them by default.
    label_prior : {"frequency", "uniform"}
        Prior of the labels where there is no caption: how often training instances take them, or equal for those that any takes.
    max_iter : int >= 1, default 100
    tol : float >= 0, default 1e-6
        Stops when the objective rises by at most this part of itself.

    Attributes
    ----------
    classes_ : ndarray, or list of ndarray for several attributes
        Labels.
    assignment_ : ndarray, shape (n_instances,), or (n_instances, n_attributes)
        Labels of the training instances: the best candidate of each bag.
    responsibilities_ : ndarray, shape (n_instances, n_labels), or list of one per attribute
        Probability of each label of each training instance given the candidates.
    label_weights_ : ndarray, shape (n_labels,), or list
        Share of the instances that take each label.
    means_, covariances_ : list with one per attribute
        Shapes (n_labels, d) and (1 or n_labels, d), or (1, d, d) for "tied", after the projection. A label that no instance takes keeps
        its mean, the mean of all if no candidate has it.
    history_ : DataFrame
        iteration, log_likelihood, objective (with the prior's logarithm), seconds. The objective never falls.
    converged_ : bool
    n_iter_ : int

    Notes
    -----
    An iteration costs O(n K d) and, for "tied", O((n + K) d^2 + d^3), with O(number of candidates times their length) for the E-step. A
    `Matching` is not listed: its sum is taken over the subsets of its words, O(M W 2^W), exactly.

    Berg et al. project faces by kernel PCA and linear discriminants first, after which one fixed covariance serves all names; here "tied"
    estimates that metric along with the means. Their language model of the caption, which weights
    candidates by the names' context, is left out as in the thesis; `CandidateSet` takes such weights as `priors`.

    References
    ----------
    Berg, Berg, Edwards, Forsyth: Who's in the Picture, NIPS 2004, section 2.3; thesis section 5.7.3, "GMM".

    Examples
    --------
    >>> import numpy as np
    >>> from cuelearn.mms import CandidateSet
    >>> X = np.array([[0.0], [5.0], [0.1], [5.1], [0.2]])
    >>> either = [[0, 1], [1, 0]]
    >>> GMMNaming().fit(X, CandidateSet([either, either, [[0]]])).assignment_
    array([0, 1, 0, 1, 0])
    """

    def __init__(
        self,
        *,
        covariance="tied",
        per_label=False,
        assignment="soft",
        n_components_pca=0.95,
        regularization=1.0,
        columns=None,
        label_prior="frequency",
        max_iter=100,
        tol=1e-6,
    ):
        self.covariance = covariance
        self.per_label = per_label
        self.assignment = assignment
        self.n_components_pca = n_components_pca
        self.regularization = regularization
        self.columns = columns
        self.label_prior = label_prior
        self.max_iter = max_iter
        self.tol = tol

    def _check(self, P):
        _among("covariance", self.covariance, ("tied", "diagonal", "spherical"))
        if not isinstance(self.per_label, (bool, np.bool_)):
            raise ValueError(f"per_label must be True or False, got {self.per_label!r}")
        if self.per_label and self.covariance == "tied":
            raise ValueError("per_label must be False where covariance is 'tied', which all labels share")
        check_positive("regularization", self.regularization)
        _one_each("n_components_pca", self.n_components_pca, P, _is_one_number)

    def _begin(self, parts, candidates):
        numbers = _one_each("n_components_pca", self.n_components_pca, len(parts), _is_one_number)
        self._projections = [
            self._projection(part, number) for part, number in zip(parts, numbers, strict=True)
        ]
        self._models = [
            _Gaussians(X, size, self.covariance, self.per_label, float(self.regularization))
            for X, size in zip(self._projected(parts), candidates.n_labels, strict=True)
        ]

    @staticmethod
    def _projection(part, number):
        """Mean and components, (d, r) or None."""
        part = np.asarray(part, dtype=np.float64)
        if number is None:
            return part.mean(axis=0), None
        share = isinstance(number, (float, np.floating)) and 0.0 < number < 1.0
        if share and not np.any(part.var(axis=0) > 0.0):
            return part.mean(axis=0), None
        if not share and check_count("n_components_pca", number) > min(part.shape):
            raise ValueError(
                f"n_components_pca must be at most {min(part.shape)} for an attribute of shape {part.shape}, got {number!r}"
            )
        solver = "covariance_eigh" if part.shape[0] > part.shape[1] else "full"
        pca = PCA(n_components=float(number) if share else int(number), svd_solver=solver).fit(part)
        return pca.mean_, pca.components_.T

    def _projected(self, parts):
        centred = [
            np.asarray(part, dtype=np.float64) - mean
            for part, (mean, _) in zip(parts, self._projections, strict=True)
        ]
        return [
            X if axes is None else X @ axes for X, (_, axes) in zip(centred, self._projections, strict=True)
        ]

    def _scores(self):
        return [model.log_density(model.X) for model in self._models]

    def _log_prior(self):
        return sum(model.log_prior() for model in self._models)

    def _finish(self):
        for model in self._models:
            model.X = None
        self.means_, self.covariances_ = (
            [model.means for model in self._models],
            [model.covariances for model in self._models],
        )

    def _appearance(self, parts):
        return [model.log_density(X) for model, X in zip(self._models, self._projected(parts), strict=True)]


# ------------------------------------------------------------------ DIST


def _distances(metric, X, Y):
    """Distances of the rows of X to those of Y, which `_Exemplars` has prepared: of length 1 (or 0) for "cosine", centred otherwise."""
    inner = X @ Y.T
    if metric == "cosine":
        return np.clip(1.0 - inner, 0.0, 2.0)
    return np.maximum((X * X).sum(axis=1)[:, None] - 2.0 * inner + (Y * Y).sum(axis=1), 0.0)


class _Exemplars:
    """Weighted exemplars of the labels of one attribute.

    A label's score at an instance is the logarithm of its appearance over that of null, so null scores 0, and so does a label without
    exemplars. Only instances that may have a label are its exemplars, so that a label of n_k such instances needs n_k^2 distances.

    Parameters
    ----------
    X : ndarray, shape (n, d), or (n, n) for metric "precomputed"
    mask : ndarray of bool, shape (n, n_labels)
        Labels that an instance may have.
    null : int or None
    metric, gamma, kernel, background, memory
        As of `DistNaming`; `kernel` for ``appearance="kernel"``, `background` for ``null_model="background"``.
    """

    def __init__(self, X, mask, null, metric, gamma, kernel, background, memory):
        self.metric, self.kernel, self.background = metric, kernel, background
        self.centre = np.zeros(X.shape[1]) if metric != "sqeuclidean" else X.mean(axis=0, dtype=np.float64)
        self.X, self.n_labels = self._prepared(X), mask.shape[1]
        self.gamma = self._gamma(gamma)
        own = self._null_levels(self.X, leave_out=True)
        self.constant = float(logsumexp(own) - math.log(own.size)) if kernel else float(own.mean())
        self.level = own if background else np.full(own.size, self.constant)
        self.rows = [
            np.flatnonzero(mask[:, k]) if k != null else np.zeros(0, dtype=int) for k in range(self.n_labels)
        ]
        fits = 8 * sum(rows.size**2 for rows in self.rows) <= memory
        self.blocks = [self._block(rows) for rows in self.rows] if fits else None
        self.weights, self.values = [None] * self.n_labels, [None] * self.n_labels

    def _prepared(self, X):
        if self.metric == "precomputed":
            return X
        X = X - self.centre  # float64
        if self.metric == "cosine":
            length = np.sqrt((X * X).sum(axis=1, keepdims=True))
            X /= np.where(length > 0.0, length, 1.0)
        return X

    def _between(self, rows, others):
        if self.metric == "precomputed":
            return np.asarray(self.X[np.ix_(rows, others)], dtype=np.float64)
        return _distances(self.metric, self.X[rows], self.X[others])

    def _gamma(self, gamma):
        """gamma as a number: by rule over pairs of different training instances."""
        if not isinstance(gamma, str):
            return float(gamma)
        rows = _spaced(self.X.shape[0], GAMMA_SAMPLES)
        distance = self._between(rows, rows)[~np.eye(rows.size, dtype=bool)]
        value = float(distance.mean() if gamma == "mean" else 0.5 * distance.std()) if distance.size else 0.0
        return value if value > 0.0 else 1.0

    def _distance_rows(self, X):
        """Distances of rows of X to all training instances, block by block."""
        n = self.X.shape[0]
        step = max(1, BLOCK // n)
        for start in range(0, X.shape[0], step):
            part = X[start : start + step]
            here = (
                np.asarray(part, dtype=np.float64)
                if self.metric == "precomputed"
                else _distances(self.metric, part, self.X)
            )
            yield slice(start, start + here.shape[0]), here

    def _null_levels(self, X, leave_out=False):
        """How near the training instances as a whole are: log of the mean kernel value, or minus the mean distance over gamma.

        With `leave_out`, X are the training instances and none counts for itself.
        """
        out = np.zeros(X.shape[0])
        number = self.X.shape[0] - leave_out
        if number == 0:
            return out
        for rows, distance in self._distance_rows(X):
            value = distance / -self.gamma
            if leave_out:
                value[np.arange(value.shape[0]), np.arange(rows.start, rows.stop)] = (
                    -np.inf if self.kernel else 0.0
                )
            if self.kernel:
                top = value.max(axis=1, keepdims=True)
                out[rows] = top[:, 0] + np.log(np.exp(value - top).sum(axis=1) / number)
            else:
                out[rows] = value.sum(axis=1) / number
        return out

    def _relative(self, distance, level):
        """What exemplars at some distances say of an instance, relative to null: added up by their weights in `_score`."""
        value = distance / -self.gamma - level[:, None]
        return np.exp(np.minimum(value, 700.0)) if self.kernel else value

    def _block(self, rows):
        block = self._relative(self._between(rows, rows), self.level[rows])
        np.fill_diagonal(
            block, 1.0 if self.kernel else 0.0
        )  # no instance is evidence for itself: there it is as near as null
        return block

    def _score(self, value):
        return np.log(np.maximum(value, LEAST)) if self.kernel else value

    def update(self, responsibilities):
        """Exemplars weigh as their responsibilities, as far as that raises the expected log-likelihood (generalised M-step)."""
        for k, rows in enumerate(self.rows):
            mine = responsibilities[rows, k]
            mass = mine.sum()
            if mass <= NO_MASS:
                continue
            weights = mine / mass
            block = self.blocks[k] if self.blocks is not None else self._block(rows)
            values = block @ weights
            if self.weights[k] is not None:
                before, share = mine @ self._score(self.values[k]), 1.0
                for _ in range(HALVINGS):
                    mixed = (1.0 - share) * self.values[k] + share * values
                    if mine @ self._score(mixed) >= before:
                        break
                    share *= 0.5
                else:
                    continue
                values, weights = mixed, (1.0 - share) * self.weights[k] + share * weights
            self.weights[k], self.values[k] = weights, values

    def all_scores(self, chosen):
        """As `scores`, but of every label at some training instances; after `finish`."""
        out = np.empty((chosen.size, self.n_labels))
        for rows, distance in self._distance_rows(self.X[chosen]):
            value = self._relative(distance, self.level[chosen[rows]])
            value[np.arange(len(value)), chosen[rows]] = 1.0 if self.kernel else 0.0
            out[rows] = self._score((self.matrix @ value.T).T)
        out[:, self.empty] = 0.0
        return out

    def scores(self):
        """Of the training instances, each left out of its own labels' exemplars; 0 where an instance cannot have a label."""
        out = np.zeros((self.X.shape[0], self.n_labels))
        for k, rows in enumerate(self.rows):
            if self.values[k] is not None:
                out[rows, k] = self._score(self.values[k])
        return out

    def finish(self):
        """The weights as a sparse matrix, (n_labels, n)."""
        used = [k for k in range(self.n_labels) if self.weights[k] is not None]
        data = np.concatenate([self.weights[k] for k in used] + [np.zeros(0)])
        where = np.concatenate([self.rows[k] for k in used] + [np.zeros(0, dtype=int)])
        label = np.repeat(used, [self.rows[k].size for k in used]).astype(int)
        self.matrix = csr_array((data, (label, where)), shape=(self.n_labels, self.X.shape[0]))
        self.matrix.eliminate_zeros()
        self.empty = np.diff(self.matrix.indptr) == 0
        self.blocks = self.rows = self.weights = self.values = None
        return self.matrix

    def forget(self):
        """Drop what other instances do not need."""
        self.level = None
        if self.metric == "precomputed":
            self.X = np.empty((self.X.shape[0], 0))

    def scores_of(self, X):
        """Of other instances, shape (n_new, n_labels)."""
        X = self._prepared(X)
        levels = self._null_levels(X) if self.background else np.full(X.shape[0], self.constant)
        out = np.empty((X.shape[0], self.n_labels))
        for rows, distance in self._distance_rows(X):
            out[rows] = self._score((self.matrix @ self._relative(distance, levels[rows]).T).T)
        out[:, self.empty] = 0.0
        return out


def calibrate(scores, responsibilities, prior, null):
    r"""Slope and null's offset with which scores without a caption fit what the captions told.

    .. math:: \max_{a, b} \; \frac1n \sum_i \sum_k r_{ik} \log p_{ik}, \qquad p_{ik} \propto \pi_k \exp(a s_{ik} + b [k = 0])

    Parameters
    ----------
    scores, responsibilities : ndarray, shape (n, n_labels)
    prior : ndarray, shape (n_labels,)
        log pi; -inf leaves a label out.
    null : int or None
        Without it b is 0.

    Returns
    -------
    a, b : float
        The problem is concave; a is at least 0.
    """
    seen = prior > -np.inf
    scores, responsibilities, prior = scores[:, seen], responsibilities[:, seen], prior[seen]
    is_null = np.zeros(seen.size) if null is None else (np.arange(seen.size) == null).astype(float)
    is_null = is_null[seen]

    def loss(ab):
        joint = ab[0] * scores + ab[1] * is_null + prior
        log_p = joint - logsumexp(joint, axis=1, keepdims=True)
        excess = np.exp(log_p) - responsibilities
        slope = np.array([np.sum(excess * scores), np.sum(excess @ is_null)])
        return -np.sum(responsibilities * log_p) / len(scores), slope / len(scores)

    bounds = [
        (0.0, MOST_SLOPE),
        (-MOST_OFFSET, MOST_OFFSET) if is_null.any() and not is_null.all() else (0.0, 0.0),
    ]
    return tuple(
        map(float, minimize(loss, np.array([1.0, 0.0]), jac=True, method="L-BFGS-B", bounds=bounds).x)
    )


class DistNaming(_EMNaming):
    r"""DIST: a label looks like the instances that have it, by distances to them; EM over the candidate labelings.

    .. math::
        \max_w \; \sum_i \log \sum_{Z \in \mathcal Z_i} p(Z) \prod_{m, p} rac{p(x_{i,m}^{(p)} \mid z_m^{(p)})}{p(x_{i,m}^{(p)} \mid 0)},
        \qquad p(x \mid k) \propto \sum_j w_{jk} \, e^{-d(x, x_j) / \gamma} \quad (	ext{or } e^{-\sum_j w_{jk} d(x, x_j) / \gamma})

    over weights of exemplars: the training instances whose candidates have label k, :math:`\sum_j w_{jk} = 1`. Faces and poses have each
    their own distance and are joined through the candidates, whose name and verb belong to one person.

    Parameters
    ----------
    metric : {"cosine", "sqeuclidean", "precomputed"}, or a sequence with one per attribute
        "cosine" is 1 - x'x'' / (|x| |x''|), 1 from a zero vector. For "precomputed" X holds the distances of its rows to the training
        instances.
    gamma : {"spread", "mean"}, float > 0, or a sequence with one per attribute
        Scale of the distances: by rule half their standard deviation, or their mean, over pairs of different training instances (of 2,000
        evenly spaced ones if there are more).
    appearance : {"kernel", "mean"}
        Mean kernel value, or exponential of the mean distance, to the exemplars by their weights.
    null_model : {"background", "constant"}
        null looks like any training instance: the same mean with equal weights on all of them, at every instance for itself or, constant,
        on average over the training instances. Without a null label this is an offset that no posterior feels.
    assignment : {"soft", "hard"}
        Exemplars by the probabilities of the candidates, or by the best candidate of each bag alone.
    columns, label_prior, max_iter, tol
        See `GMMNaming`.
    calibrated : bool, default True
        Without a caption a label's score, times a slope and with an offset for null, is the logarithm of its appearance; the two numbers
        are those that fit the responsibilities of the training instances best. Otherwise they are 1 and 0. Candidates do without.
    memory : float > 0, default 2e9
        Bytes for the distances among the exemplars of all labels; more are computed anew in every iteration.

    Attributes
    ----------
    classes_, assignment_, responsibilities_, label_weights_, history_, converged_, n_iter_
        See `GMMNaming`; the log-likelihood is that over null's, and the objective is the same. It never falls.
    gamma_ : ndarray, shape (n_attributes,)
    calibration_ : ndarray, shape (n_attributes, 2)
        Slope and offset.
    exemplar_weights_ : list of sparse arrays, shape (n_labels, n_instances), one per attribute

    Notes
    -----
    What is known of the original (thesis 5.7.3, the paper's abstract): a generative model of faces and poses, joined through name-verb
    pairs, fitted by EM; cosine distance of faces, one minus a mean similarity of poses; kernels :math:`e^{-d/\gamma}` of these distances,
    which MMS took over from it. The rest is our reading: exemplars weighted by responsibilities, as the kernel density of the label or,
    ``appearance="mean"``, by the mean distance; null as the density of all instances; gamma by a rule where the thesis cross-validates it.

    No instance is evidence for itself: at its own place its affinity is null's. So training instances are scored by the others, and
    `assignment_`, not `predict`, is the labeling of the training set. Weights equal to the responsibilities do not maximise the expected
    log-likelihood, so the M-step is a generalised one: it goes towards them by the longest of the steps 1, 1/2, ..., 2^-7 that does not
    lower it, or stays.

    Cost: distances O(n^2 d) once for null, O(sum of n_k^2) time per iteration and memory for labels that n_k instances may have.

    References
    ----------
    Jie, Caputo, Ferrari: Who's Doing What: Joint Modeling of Names and Verbs for Simultaneous Face and Pose Annotation, NIPS 2009; thesis
    section 5.7, "DIST". Generalised EM: Neal and Hinton, in Learning in Graphical Models, 1998.

    Examples
    --------
    >>> import numpy as np
    >>> from cuelearn.mms import CandidateSet
    >>> X = np.array([[0.0], [5.0], [0.1], [5.1], [0.2]])
    >>> either = [[0, 1], [1, 0]]
    >>> DistNaming(metric="sqeuclidean").fit(X, CandidateSet([either, either, [[0]]])).assignment_
    array([0, 1, 0, 1, 0])
    """

    def __init__(
        self,
        *,
        metric="cosine",
        gamma="spread",
        appearance="kernel",
        null_model="background",
        assignment="soft",
        columns=None,
        label_prior="frequency",
        calibrated=True,
        memory=2e9,
        max_iter=100,
        tol=1e-6,
    ):
        self.metric = metric
        self.gamma = gamma
        self.appearance = appearance
        self.null_model = null_model
        self.assignment = assignment
        self.columns = columns
        self.label_prior = label_prior
        self.calibrated = calibrated
        self.memory = memory
        self.max_iter = max_iter
        self.tol = tol

    def _check(self, P):
        for metric in self._metrics(P):
            _among("metric", metric, ("cosine", "sqeuclidean", "precomputed"))
        for gamma in self._gammas(P):
            if isinstance(gamma, str):
                _among("gamma", gamma, ("spread", "mean"))
            else:
                check_positive("gamma", gamma)
        _among("appearance", self.appearance, ("kernel", "mean"))
        _among("null_model", self.null_model, ("background", "constant"))
        check_positive("memory", self.memory)
        if not isinstance(self.calibrated, (bool, np.bool_)):
            raise ValueError(f"calibrated must be True or False, got {self.calibrated!r}")
        if self.columns is not None and "precomputed" in self._metrics(P):
            raise ValueError(
                "columns must be None where a metric is 'precomputed'; give X as a list with one array per attribute"
            )

    def _metrics(self, P):
        return _one_each("metric", self.metric, P, lambda value: isinstance(value, str))

    def _gammas(self, P):
        return _one_each("gamma", self.gamma, P, _is_one_number)

    def _parts(self, X, P, n_rows=None):
        parts = super()._parts(X, P, n_rows)
        for p, (part, metric) in enumerate(zip(parts, self._metrics(P), strict=True)):
            if metric == "precomputed" and part.size and part.min() < 0.0:
                if part.min() < -ROUNDING * max(1.0, part.max()):
                    raise ValueError(
                        f"X must hold distances >= 0 where the metric is 'precomputed', got {part.min()} for attribute {p}"
                    )
                parts[p] = np.maximum(part, 0.0)
        return parts

    def _begin(self, parts, candidates):
        P = candidates.n_attributes
        self._null = candidates.null if candidates.null is not None else [None] * P
        settings = zip(parts, self._null, self._metrics(P), self._gammas(P), strict=True)
        kernel, background = self.appearance == "kernel", self.null_model == "background"
        self._models = []
        for p, (part, label, metric, gamma) in enumerate(settings):
            if metric == "precomputed" and part.shape[0] != part.shape[1]:
                raise ValueError(
                    f"X must be the square matrix of distances of the training instances for attribute {p}, got {part.shape}"
                )
            self._models.append(
                _Exemplars(
                    part, candidates.mask(p), label, metric, gamma, kernel, background, float(self.memory)
                )
            )
        self.gamma_ = np.array([model.gamma for model in self._models])

    def _scores(self):
        return [model.scores() for model in self._models]

    def _finish(self):
        self.exemplar_weights_ = [model.finish() for model in self._models]
        slopes = np.tile([1.0, 0.0], (len(self._models), 1))
        if self.calibrated:
            shares = [self.responsibilities_] if len(self._models) == 1 else self.responsibilities_
            for p, (model, share) in enumerate(zip(self._models, shares, strict=True)):
                rows = _spaced(len(share), CALIBRATION_SAMPLES)
                slopes[p] = calibrate(
                    model.all_scores(rows), share[rows], self._label_priors[p], self._null[p]
                )
        self.calibration_ = slopes
        for model in self._models:
            model.forget()

    def _calibrated(self, scores, p):
        scores = self.calibration_[p, 0] * scores
        if self._null[p] is not None:
            scores[:, self._null[p]] += self.calibration_[p, 1]
        return scores

    def _appearance(self, parts):
        return [model.scores_of(part) for model, part in zip(self._models, parts, strict=True)]

"""DIST: a label looks like the instances that have it, by distances to them (NIPS 2009; thesis 5.7.3)."""

from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import csr_array
from scipy.special import logsumexp

from cuelearn.core.checks import check_positive
from cuelearn.core.estimator import POSITIVE, StrOptions, parameters
from cuelearn.mms.em import NO_MASS, EMNaming, documented_naming, evenly_spaced, once_or_each

__all__ = ["DistNaming"]

METRICS = ("cosine", "sqeuclidean", "precomputed")
#: Pairs of at most that many samples, evenly spaced, give a scale by rule.
SCALE_SAMPLES = 2000
#: At most that many samples, evenly spaced, calibrate the scores.
CALIBRATION_SAMPLES = 5000
#: Least ratio of a label's affinity to that of null; below, exemplars say nothing.
LEAST = 1e-300
#: Steps of the M-step that are tried, each half as long.
HALVINGS = 8
#: Distances as far below 0, against 1 or the largest, pass for 0.
ROUNDING = 1e-5
#: Of `calibrate`; labels that the scores tell apart without an error have no finite optimum.
MOST_SLOPE, MOST_OFFSET = 100.0, 20.0
#: Values held at once where rows of distances are computed.
BLOCK = 2**22


@dataclass(frozen=True)
class Distances:
    """Distances to the training instances of one attribute, and the kernel exp(-d / scale) on them."""

    metric: str
    centre: np.ndarray  # (d,): taken off for "sqeuclidean"
    X: np.ndarray  # (n, d): training instances, `prepared`; "precomputed" (n, n), or (n, 0) after the fit
    scale: float = 1.0

    @classmethod
    def of(cls, X, metric, scale):
        """Of training instances; scale a number, or by rule over pairs of different ones."""
        centre = np.zeros(X.shape[1]) if metric != "sqeuclidean" else X.mean(axis=0, dtype=np.float64)
        made = cls(metric, centre, cls(metric, centre, X).prepared(X))
        if isinstance(scale, str):
            rows = evenly_spaced(len(X), SCALE_SAMPLES)
            distance = made.among(rows)[~np.eye(rows.size, dtype=bool)]
            spread = 0.0
            if distance.size:
                spread = float(distance.mean() if scale == "mean" else 0.5 * distance.std())
            scale = spread if spread > 0.0 else 1.0
        return replace(made, scale=scale)

    def prepared(self, X):
        """Rows of length 1 (or 0) for "cosine", centred ones otherwise, in float64."""
        if self.metric == "precomputed":
            return X
        X = X - self.centre
        if self.metric == "cosine":
            length = np.sqrt((X * X).sum(axis=1, keepdims=True))
            X /= np.where(length > 0.0, length, 1.0)
        return X

    def to(self, rows, Y):
        """From prepared rows; of a precomputed metric they are the distances."""
        if self.metric == "precomputed":
            return np.asarray(rows, dtype=np.float64)
        inner = rows @ Y.T
        if self.metric == "cosine":
            return np.clip(1.0 - inner, 0.0, 2.0)
        return np.maximum((rows * rows).sum(axis=1)[:, None] - 2.0 * inner + (Y * Y).sum(axis=1), 0.0)

    def among(self, rows):
        """Between some training instances."""
        if self.metric == "precomputed":
            return self.to(self.X[np.ix_(rows, rows)], None)
        return self.to(self.X[rows], self.X[rows])

    def blocks(self, X):
        """Of prepared rows to all training instances, block by block: slice, distances."""
        step = max(1, BLOCK // len(self.X))
        for start in range(0, len(X), step):
            part = X[start : start + step]
            yield slice(start, start + len(part)), self.to(part, self.X)

    def null_levels(self, X, leave_out=False):
        """Log-affinity of null at prepared rows: the log of the mean kernel value to all training instances.
        With `leave_out` the rows are these themselves, and none counts for itself."""
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
        """Kernel values over null's affinity."""
        return np.exp(np.minimum(distance / -self.scale - level[:, None], 700.0))

    def scores(self, matrix, X, levels, own=None):
        """Log-affinities of all labels over null's, the `levels`, from exemplar weights (n_labels, n), at
        prepared rows; 0 for labels without exemplars. Training instances come with their numbers, `own`."""
        out = np.empty((len(X), matrix.shape[0]))
        for rows, distance in self.blocks(X):
            value = self.ratio(distance, levels[rows])
            if own is not None:  # no instance is evidence for itself: there it is as near as null
                value[np.arange(len(value)), own[rows]] = 1.0
            out[rows] = log_ratio((matrix @ value.T).T)
        out[:, np.diff(matrix.indptr) == 0] = 0.0
        return out


def log_ratio(value):
    return np.log(np.maximum(value, LEAST))


class Exemplars:
    """The appearance model of one attribute: weighted exemplars of every label.

    A label's score at an instance is the logarithm of its affinity over that of null, so null scores 0, and
    so does a label without exemplars. Only instances that may have a label, by the `mask` (n, n_labels), are
    its exemplars, so that a label of n_k such instances needs n_k^2 distances; `memory` is for all of them.
    """

    def __init__(self, distances, mask, null, memory):
        self.distances, self.mask = distances, mask
        self.level = distances.null_levels(distances.X, leave_out=True)
        self.rows = [np.flatnonzero(column & (k != null)) for k, column in enumerate(mask.T)]
        fits = 8 * sum(rows.size**2 for rows in self.rows) <= memory
        self.blocks = [self._block(rows) for rows in self.rows] if fits else None
        self.weights, self.values = {}, {}  # of the labels that have exemplars

    def _block(self, rows):
        block = self.distances.ratio(self.distances.among(rows), self.level[rows])
        np.fill_diagonal(block, 1.0)  # no instance is evidence for itself: there it is as near as null
        return block

    def update(self, responsibilities):
        """Exemplars weigh as their responsibilities, as far as that raises the expected log-likelihood
        (generalised M-step)."""
        for k, rows in enumerate(self.rows):
            own = responsibilities[rows, k]
            mass = own.sum()
            if mass <= NO_MASS:
                continue
            weights = own / mass
            values = (self.blocks[k] if self.blocks is not None else self._block(rows)) @ weights
            if k in self.weights:
                old_weights, old_values = self.weights[k], self.values[k]
                before = own @ log_ratio(old_values)
                for halving in range(HALVINGS):
                    share = 0.5**halving
                    mixed = (1.0 - share) * old_values + share * values
                    if own @ log_ratio(mixed) >= before:
                        break
                else:
                    continue
                values, weights = mixed, (1.0 - share) * old_weights + share * weights
            self.weights[k], self.values[k] = weights, values

    def scores(self):
        """Of the training instances, each left out of the exemplars; 0 for labels that it cannot have."""
        out = np.zeros(self.mask.shape)
        for k, values in self.values.items():
            out[self.rows[k], k] = log_ratio(values)
        return out

    def log_prior(self):
        return 0.0

    def matrix(self):
        """The weights as a sparse matrix, (n_labels, n)."""
        dense = np.zeros(self.mask.shape[::-1])
        for k, weights in self.weights.items():
            dense[k, self.rows[k]] = weights
        return csr_array(dense)


def calibrate(scores, responsibilities, prior, null):
    r"""Slope a >= 0 and null's offset b with which scores without a caption fit what the captions told.

    .. math:: \max_{a, b} \; \frac1n \sum_i \sum_k r_{ik} \log p_{ik}, \qquad
        p_{ik} \propto \pi_k \exp(a s_{ik} + b [k = 0])

    `scores` and `responsibilities` have shape (n, n_labels), `prior` is log pi, -inf where a label is left
    out. Without `null` b is 0. The problem is concave.
    """
    seen = prior > -np.inf
    scores, responsibilities, prior = scores[:, seen], responsibilities[:, seen], prior[seen]
    is_null = (np.flatnonzero(seen) == null).astype(float)

    def loss(ab):
        joint = ab[0] * scores + ab[1] * is_null + prior
        log_p = joint - logsumexp(joint, axis=1, keepdims=True)
        excess = np.exp(log_p) - responsibilities
        slope = np.array([np.sum(excess * scores), np.sum(excess @ is_null)])
        return -np.sum(responsibilities * log_p) / len(scores), slope / len(scores)

    offset = (-MOST_OFFSET, MOST_OFFSET) if is_null.any() and not is_null.all() else (0.0, 0.0)
    bounds = [(0.0, MOST_SLOPE), offset]
    return minimize(loss, np.array([1.0, 0.0]), jac=True, method="L-BFGS-B", bounds=bounds).x


@documented_naming
@parameters
class DistNaming(EMNaming):
    r"""DIST: a label looks like the instances that have it, by distances to them; EM over the candidate
    labelings.

    .. math::
        \max_w \; \sum_i \log \sum_{Z \in \mathcal Z_i} p(Z)
        \prod_{m, p} \frac{p(x_{i,m}^{(p)} \mid z_m^{(p)})}{p(x_{i,m}^{(p)} \mid 0)},
        \qquad p(x \mid k) \propto \sum_j w_{jk} \, e^{-d(x, x_j) / \text{scale}}

    over weights of exemplars: the training instances whose candidates have label k, :math:`\sum_j w_{jk} =
    1`; null looks like any training instance. Faces and poses have each their own distance and are joined
    through the candidates, whose name and verb belong to one person.

    Parameters
    ----------
    metric : {"cosine", "sqeuclidean", "precomputed"}, or a sequence with one per attribute
        "cosine" is ``1 - x'x'' / (|x| |x''|)``, 1 from a zero vector. For "precomputed" X holds the distances
        of its rows to the training instances.
    scale : {"spread", "mean"}, float > 0, or a sequence with one per attribute
        Divisor of the distances: by rule half their standard deviation, or their mean, over pairs of
        different training instances (of 2,000 evenly spaced ones if there are more).
    $assignment $columns
    memory : float > 0, default 2e9
        Bytes for the distances among the exemplars of all labels; more are computed anew in every iteration.
    $max_iter $tol

    Attributes
    ----------
    $classes_ $assignment_ $responsibilities_ $label_weights_
    history_ : DataFrame
        iteration, log_likelihood (over null's), objective (the same), seconds. The objective never falls.
    $converged_ $n_iter_
    scale_ : ndarray, shape (n_attributes,)
    calibration_ : ndarray, shape (n_attributes, 2)
        Without a caption a label's score, times a slope and with an offset for null, is the logarithm of its
        appearance; these two numbers fit the responsibilities of the training instances best. Candidates do
        without.
    exemplar_weights_ : list of sparse arrays, shape (n_labels, n_instances), one per attribute

    Notes
    -----
    Known of the original (thesis 5.7.3, the paper's abstract) are: a generative model of faces and poses,
    joined through name-verb pairs, fitted by EM; the distances; kernels :math:`e^{-d/\text{scale}}` of these.
    The rest is our reading: exemplars weighted by responsibilities, as the kernel density of the label; null
    as the density of all instances; scale by a rule where the thesis cross-validates it.

    No instance is evidence for itself: at its own place its affinity is null's. So `assignment_`, not
    `predict`, is the labeling of the training set. Weights equal to the responsibilities do not maximise the
    expected log-likelihood, so the M-step goes towards them by the longest of the steps 1, 1/2, ..., 2^-7
    that does not lower it, or stays.

    Cost: distances O(n^2 d) once for null, O(sum of n_k^2) time per iteration and memory for labels that n_k
    instances may have.

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
        **EMNaming._parameter_constraints,
        "metric": [StrOptions(set(METRICS)), list, tuple],
        "scale": [*POSITIVE, StrOptions({"spread", "mean"}), list, tuple],
        "memory": POSITIVE,
    }

    metric: object = "cosine"
    scale: object = "spread"
    memory: float = 2e9

    def _metrics(self):
        metrics = once_or_each("metric", self.metric, self.n_attributes_, lambda m: isinstance(m, str))
        for metric in metrics:
            if metric not in METRICS:
                raise ValueError(f"metric must be one of {METRICS}, got {metric!r}")
        if self.columns is not None and "precomputed" in metrics:
            instead = "give X as a list, one array each"
            raise ValueError(f"columns must be None where a metric is 'precomputed'; {instead}")
        return metrics

    def _scales(self):
        scales = once_or_each("scale", self.scale, self.n_attributes_, lambda s: s is None or np.isscalar(s))
        for scale in scales:
            if isinstance(scale, str) and scale not in ("spread", "mean"):
                raise ValueError(f"scale must be 'spread' or 'mean' or a number, got {scale!r}")
        return [scale if isinstance(scale, str) else check_positive("scale", scale) for scale in scales]

    def _parts(self, X, candidates=None):
        metrics, parts = self._metrics(), super()._parts(X, candidates)
        for p, (part, metric) in enumerate(zip(parts, metrics, strict=True)):
            if metric == "precomputed" and part.min() < 0.0:
                if part.min() < -ROUNDING * max(1.0, part.max()):
                    what = f"got {part.min()} for attribute {p}"
                    raise ValueError(f"X must hold distances >= 0 where the metric is 'precomputed', {what}")
                parts[p] = np.maximum(part, 0.0)
        return parts

    def _check_weights(self, sample_weight, candidates):
        if sample_weight is not None:
            why = "an instance is no evidence for itself, but would be for its copy in a bag given twice"
            raise ValueError(f"sample_weight must be None for DistNaming: {why}")
        return super()._check_weights(None, candidates)

    def _models(self, parts, candidates, weights):
        self.distances_, models = [], []
        nulls = candidates.null or [None] * len(parts)
        for p, (part, metric, scale) in enumerate(zip(parts, self._metrics(), self._scales(), strict=True)):
            if metric == "precomputed" and part.shape[0] != part.shape[1]:
                what = f"for attribute {p}, got {part.shape}"
                raise ValueError(f"X must be the square matrix of distances of the training instances {what}")
            self.distances_.append(Distances.of(part, metric, scale))
            models.append(Exemplars(self.distances_[p], candidates.mask(p), nulls[p], self.memory))
        self.scale_ = np.array([distances.scale for distances in self.distances_])
        return models

    def _finish(self, models, shares):
        self.exemplar_weights_ = [model.matrix() for model in models]
        calibration, priors, nulls = [], self._log_priors(), self.null_ or [None] * len(models)
        for p, (model, share) in enumerate(zip(models, shares, strict=True)):
            distances, own = model.distances, evenly_spaced(len(share), CALIBRATION_SAMPLES)
            rows, level = distances.X[own], model.level[own]
            scores = distances.scores(self.exemplar_weights_[p], rows, level, own)
            calibration.append(calibrate(scores, share[own], priors[p], nulls[p]))
            if distances.metric == "precomputed":  # what a prediction does not need
                self.distances_[p] = replace(distances, X=np.empty((len(share), 0)))
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

    def _fitted_state(self):
        parts = [(m.data, m.indices, m.indptr, m.shape) for m in self.exemplar_weights_]
        return {**super()._fitted_state(), "exemplar_weights_": parts}

    def _set_fitted_state(self, state):
        super()._set_fitted_state(state)
        self.exemplar_weights_ = [csr_array(part[:3], shape=part[3]) for part in state["exemplar_weights_"]]
        for matrix in self.exemplar_weights_:
            matrix.check_format()

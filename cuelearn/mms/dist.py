"""DIST (Jie, Caputo, Ferrari, NIPS 2009; thesis 5.7.3)."""

from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import csr_array
from scipy.special import logsumexp

from cuelearn.core.estimator import POSITIVE, StrOptions, parameters
from cuelearn.expect import expect, expect_word
from cuelearn.mms.candidates import once_or_each
from cuelearn.mms.em import NO_MASS, EMNaming, documented_naming, evenly_spaced

__all__ = ["DistNaming"]

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

    metric: str
    centre: np.ndarray  # (d,): subtracted for "sqeuclidean"
    X: np.ndarray  # (n, d): training instances, `prepared`
    scale: float = 1.0

    @classmethod
    def of(cls, X, metric, scale):
        centre = np.zeros(X.shape[1]) if metric != "sqeuclidean" else X.mean(axis=0, dtype=np.float64)
        made = cls(metric, centre, cls(metric, centre, X).prepared(X))
        if isinstance(scale, str):
            rows = evenly_spaced(len(X), SCALE_SAMPLES)
            distance = made.among(rows)[~np.eye(rows.size, dtype=bool)]
            spread = 0.0
            if distance.size:
                spread = float(distance.mean() if scale == "mean" else 0.5 * distance.std())
            scale = 1.0
            if spread > 0.0:
                scale = spread
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
        """Slices of prepared rows, with distances to all training instances."""
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
        """Log-affinities over null's (`levels`) from exemplar weights (n_labels, n), 0 without exemplars;
        `own` numbers rows that are training instances."""
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
    """Appearance model of one attribute: a label's exemplars are the instances with it in the `mask` (n,
    n_labels); its score is their log-affinity over null's."""

    def __init__(self, distances, mask, null, memory):
        self.distances = distances
        self.mask = mask
        self.level = distances.null_levels(distances.X, leave_out=True)
        self.rows = [np.flatnonzero(column & (k != null)) for k, column in enumerate(mask.T)]
        fits = 8 * sum(rows.size**2 for rows in self.rows) <= memory
        self.blocks = None
        if fits:
            self.blocks = [self._block(rows) for rows in self.rows]
        self.weights, self.values = {}, {}  # of labels with exemplars

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
    r"""Slope a >= 0 and null's offset b of :math:`\max_{a, b} \frac1n \sum_i \sum_k r_{ik} \log p_{ik}`,
    :math:`p_{ik} \propto \pi_k \exp(a s_{ik} + b [k = 0])`; log pi is -inf for excluded labels, b is 0
    without `null`."""
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
        Slope of a label's score and offset of null without a caption, fitted to the responsibilities of the
        training instances.
    exemplar_weights_ : list of sparse arrays, shape (n_labels, n_instances), one per attribute

    Notes
    -----
    The thesis (5.7.3) gives a generative model of faces and poses, joined through name-verb pairs and fitted
    by EM, the distances and the kernels. Our additions are exemplars weighted by responsibilities, null as
    the density of all instances, and a scale by rule (cross-validated in the thesis).

    No instance is evidence for itself: at its own place its affinity is null's, so the labeling of the
    training set is `assignment_`, not `predict`. The M-step moves the weights towards the responsibilities by
    the longest of the steps 1, 1/2, ..., 2^-7 that does not lower the expected log-likelihood, or by 0.

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
        return [expect_word("metric", metric, METRICS) for metric in metrics]

    def _scales(self):
        scales = once_or_each("scale", self.scale, self.n_attributes_, lambda s: s is None or np.isscalar(s))
        return [expect("scale", scale, above=0, words=("spread", "mean")) for scale in scales]

    def _check_weights(self, sample_weight, candidates):
        if sample_weight is not None:
            raise ValueError(
                "sample_weight must be None for DistNaming: an instance is no evidence for itself, but would "
                "be for its copy in a bag given twice"
            )
        return super()._check_weights(None, candidates)

    def _models(self, parts, candidates, weights):
        self.distances_ = []
        models = []
        nulls = candidates.null or [None] * len(parts)
        for p, (part, metric, scale) in enumerate(zip(parts, self._metrics(), self._scales(), strict=True)):
            self.distances_.append(Distances.of(part, metric, scale))
            models.append(Exemplars(self.distances_[p], candidates.mask(p), nulls[p], self.memory))
        self.scale_ = np.array([distances.scale for distances in self.distances_])
        return models

    def _finish(self, models, shares):
        self.exemplar_weights_ = [model.matrix() for model in models]
        calibration = []
        priors = self._log_priors()
        nulls = self.null_ or [None] * len(models)
        for p, (model, share) in enumerate(zip(models, shares, strict=True)):
            distances = model.distances
            own = evenly_spaced(len(share), CALIBRATION_SAMPLES)
            rows = distances.X[own]
            level = model.level[own]
            scores = distances.scores(self.exemplar_weights_[p], rows, level, own)
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

"""Rivals of MMS (thesis 5.5, 5.6): CL-SVM, M3MIML, MIMLSVM, and the SVM on true labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from functools import partial
from numbers import Real
from typing import Literal, Self

import numpy as np
from joblib import Parallel, delayed
from sklearn.utils.validation import validate_data

from cuelearn.compiled import njit
from cuelearn.core.docs import documented
from cuelearn.core.estimator import COUNT, POSITIVE, Number, StrOptions, parameters, validated
from cuelearn.core.linear_svm import linear_svm
from cuelearn.core.samples import (
    FLOATS,
    InputLike,
    as_generator,
    check_sample_weight,
    classes_and_labels,
    labels_of,
    loss_weights,
)
from cuelearn.kernels.tiles import linear_algebra
from cuelearn.kernels.types import ArrayLike, ClassWeight, RandomState, SampleWeight
from cuelearn.mms.candidates import CandidateSet, batches, check_bag_weights, check_candidates, starts_of_bags
from cuelearn.mms.mms import BagClassifier

__all__ = ["CLSVM", "M3MIML", "MIMLSVM", "SupervisedSVM"]

#: Score of an untrained label.
NEVER = -1.0

documented_rival = partial(
    documented,
    texts={
        "C": ("float > 0", "Weight of the losses."),
        "class_weight": (
            'None or "balanced"',
            '"balanced" gives both sides of each SVM the same total weight. The papers use none, so that '
            "w = 0 is often best.",
        ),
        "tol": ("float > 0", "Relative duality gap."),
        "max_iter": ("int >= 1", "Steps of the interior-point method."),
        "n_jobs": ("int or None", "Threads over labels; equal results."),
        "random_state": ("int, Generator or None", "Not used."),
        "trained_": (
            "ndarray of bool, shape (n_labels,)",
            "False for labels in no candidate: they score -1, and are predicted only within candidates.",
        ),
        "null_": ("int or None", "Number of the null label."),
        "coef_": ("ndarray, shape (n_labels, n_features)", ""),
        "intercept_": ("ndarray, shape (n_labels,)", ""),
        "duality_gap_": ("ndarray, shape (n_labels,)", "Certified, relative."),
        "n_iter_": ("ndarray of int, shape (n_labels,)", "Steps."),
    },
)


def side_weights(class_weight, signs, weights):
    """Weights of the losses; "balanced" keeps their sum."""
    positive = signs > 0.0
    if class_weight is None or positive.all() or not positive.any():
        return weights
    if weights is None:
        weights = np.ones(signs.size)
    half = 0.5 * weights.sum()
    return weights * np.where(positive, half / weights[positive].sum(), half / weights[~positive].sum())


def reduced(X):
    """X and None, or if smaller its coordinates in an orthonormal basis of its rows, and that basis."""
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

    _parameter_constraints = {"class_weight": [StrOptions({"balanced"}), None], "tol": POSITIVE}

    C: float = field(default=1.0, kw_only=False)
    class_weight: ClassWeight = None
    tol: float = 1e-5
    max_iter: int = 200
    n_jobs: int | None = None
    random_state: RandomState = None

    @validated
    def fit(self, X: InputLike, candidates: CandidateSet, sample_weight: SampleWeight = None) -> Self:
        """Train.

        Parameters
        ----------
        X : array-like, shape (n_instances, n_features)
            Bag after bag.
        candidates : CandidateSet
            For `MIMLSVM` and `M3MIML` with one attribute.
        sample_weight : array-like, shape (n_bags,) or (n_instances,), optional
            Factors on C of the *bags*: 2 repeats a bag (but for `MIMLSVM`'s medoids), 0 leaves it out.

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
        """SVMs of a mask of labels from ``sample(label)``: rows, signs, weights; returns the solutions, and
        coef, intercept, gap, n_iter of all labels."""
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
        labels = candidates.bag_mask()
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

    def bag_decision_function(self, X: InputLike, bag_sizes: Sequence[int]) -> np.ndarray:
        """Scores of all labels for whole bags, shape (n_bags, n_labels); X holds their instances."""
        X = self._check_new(X)
        return self._with_null(self._bag_scores(X, starts_of_bags(bag_sizes, len(X))))


@documented_rival
class CLSVM(Rival):
    r"""CL-SVM: every possible label of an instance counts as true.

    For each label y a linear SVM separates the instances that can have it from the others,

    .. math:: \min_{w_y, b_y} \frac12\|w_y\|^2 + \frac12 b_y^2
        + C \sum_m [1 - s_{my} (w_y \cdot x_m + b_y)]_+ ,

    where :math:`s_{my}` is 1 for :math:`y \in \mathcal Z(m)`, else -1, and the bias is the weight of a
    constant feature. Attributes are trained separately; null is a label like any other.

    Parameters
    ----------
    $C $class_weight $tol $max_iter $n_jobs $random_state

    Attributes
    ----------
    classes_ : ndarray; for several attributes this and the following are lists
    $coef_ $intercept_ $trained_ $duality_gap_ $n_iter_
    n_attributes_, n_features_in_ : int

    Notes
    -----
    Time: 10 to 40 steps of n n_features^2 operations per label.

    References
    ----------
    Thesis 5.5, "CL-SVM".

    Examples
    --------
    >>> import numpy as np
    >>> from cuelearn.mms import CLSVM, CandidateSet
    >>> y = np.array([[0, 1], [1, 2], [2, 0]] * 9)
    >>> X = np.eye(3)[y.ravel()]
    >>> pairs = CandidateSet([[row, row[::-1]] for row in y])  # which of the two is which is not known
    >>> CLSVM(C=10.0).fit(X, pairs).score(X, y.ravel())
    1.0
    """

    def _train(self, X, candidates, weights):
        rows, basis = reduced(X)
        masks = [candidates.mask(p) for p in range(candidates.n_attributes)]
        if weights is not None:
            weights = weights[candidates.bag_of]
        solved = []
        for mask in masks:

            def sample(k, mask=mask):
                return rows, np.where(mask[:, k], 1.0, -1.0), weights

            solved.append(self._fit_labels(mask.any(axis=0), sample, rows.shape[1], free_bias=False)[1:])
        coefs, *others = map(list, zip(*solved, strict=True))
        self.coef_ = self._one([expanded(coef, basis) for coef in coefs])
        self.intercept_, self.duality_gap_, self.n_iter_ = map(self._one, others)
        self.trained_ = self._one([mask.any(axis=0) for mask in masks])
        self.classes_ = self._one(list(candidates.classes))

    def _scores(self, X):
        return self._linear_scores(self._check_new(X))


@documented_rival
class M3MIML(BagRival):
    r"""M3MIML: a maximum margin for every label, on the bags' instances.

    A bag scores as its best instance, :math:`f_l(\mathcal X) = \max_{x \in \mathcal X} w_l \cdot x + b_l`,
    above 1 for its labels and below -1, with every instance, for others. The former is not convex: it is
    imposed on the *mean* instance :math:`\bar x_i`, which never scores above the best. With :math:`S_l` the
    bags that can have label l,

    .. math::

        \min_{w, b}\ P = \sum_l \Big( \frac12\|w_l\|^2 + C \sum_{i \in S_l} [1 - (w_l \cdot \bar x_i + b_l)]_+
                + C \sum_{i \notin S_l} \sum_{m} [1 + (w_l \cdot x_{i,m} + b_l)]_+ \Big)

    .. math::

        \max_{0 \le \alpha, \beta \le C}\ D = \sum_l \Big( \sum_{i \in S_l} \alpha_{il}
        + \sum_{i \notin S_l} \sum_m \beta_{iml} - \frac12\|w_l\|^2 \Big), \quad
        w_l = \sum_{i \in S_l} \alpha_{il} \bar x_i - \sum_{i \notin S_l} \sum_m \beta_{iml} x_{i,m}, \quad
        \sum_{i \in S_l} \alpha_{il} = \sum_{i \notin S_l} \sum_m \beta_{iml} .

    The problem separates into one per label.

    Parameters
    ----------
    $C $class_weight $tol $max_iter $n_jobs $random_state

    Attributes
    ----------
    classes_ : ndarray
    $coef_ $intercept_ $duality_gap_ $n_iter_
    primal_objective_, dual_objective_ : float
        P at the solution, and D at a feasible point, a lower bound on the least P.
    $null_ $trained_
    n_features_in_ : int

    Notes
    -----
    The authors' program takes five Frank-Wolfe steps on the dual, with kernels between all instances. Here an
    interior-point method solves every problem until the duality gap certifies `tol`: 10 to 40 steps of n
    n_features^2 operations, 8 n n_features bytes per thread.

    Null has no classifier and score 0, as in `MIMLSVM`. A label of every bag has w = 0 and b = 1, one of no
    bag b = -1.

    References
    ----------
    M.-L. Zhang, Z.-H. Zhou: M3MIML: A maximum margin method for multi-instance multi-label learning, ICDM
    2008; thesis 5.5. The dual and its bounds are from the authors' published program.

    Examples
    --------
    >>> import numpy as np
    >>> from cuelearn.mms import M3MIML, CandidateSet
    >>> y = np.array([[0, 1], [1, 2], [2, 0]] * 9)
    >>> X = np.eye(3)[y.ravel()]
    >>> pairs = CandidateSet([[row, row[::-1]] for row in y])
    >>> M3MIML(C=10.0).fit(X, pairs).score(X, y.ravel(), pairs)
    1.0
    """

    def _train(self, X, candidates, weights):
        labels, to_train = self._start_bags(candidates)
        rows, basis = reduced(X)
        means = np.add.reduceat(rows, candidates.bag_starts[:-1], axis=0) / candidates.bag_sizes[:, None]

        def sample(k):
            positive = labels[:, k]
            negative = ~positive[candidates.bag_of]
            stacked = np.vstack([means[positive], rows[negative]])
            signs = np.where(np.arange(len(stacked)) < np.count_nonzero(positive), 1.0, -1.0)
            if weights is None:
                return stacked, signs, None
            return stacked, signs, np.concatenate([weights[positive], weights[candidates.bag_of][negative]])

        fits = self._keep(labels, self._fit_labels(to_train, sample, rows.shape[1]))
        self.coef_ = expanded(self.coef_, basis)
        self.primal_objective_ = float(sum(fit.primal for fit in fits))
        self.dual_objective_ = float(sum(fit.dual for fit in fits))

    def _bag_scores(self, X, starts):
        return np.maximum.reduceat(X @ self.coef_.T + self.intercept_, starts[:-1], axis=0)


#: Bytes of squared distances held at a time.
BLOCK = 64_000_000
#: Most alternations of `k_medoids`; a few suffice.
MOST_ROUNDS = 300


@njit(cache=True, nogil=True)
def reduce_pairs(squares, rows, columns, out):
    """Squared Hausdorff distances of bags that start at `rows` and `columns`."""
    nearest = np.empty(squares.shape[1], np.float32)  # of each column, to the row bag
    for i in range(rows.shape[0] - 1):
        nearest[:] = np.inf
        out[i, :] = 0.0
        for r in range(rows[i], rows[i + 1]):
            for j in range(columns.shape[0] - 1):
                low = np.float32(np.inf)
                for c in range(columns[j], columns[j + 1]):
                    low = min(low, squares[r, c])
                    nearest[c] = min(nearest[c], squares[r, c])
                out[i, j] = max(out[i, j], low)
        for j in range(columns.shape[0] - 1):
            for c in range(columns[j], columns[j + 1]):
                out[i, j] = max(out[i, j], nearest[c])


def hausdorff_distances(X, starts, Y=None, Y_starts=None, *, n_jobs=None):
    r"""Hausdorff distances between the bags of X, or from X to Y: float32, (n_bags, n_bags of Y).

    .. math:: d_H(A, B) = \max\Big\{\max_{a \in A} \min_{b \in B} \|a - b\|,\ \max_{b \in B} \min_{a \in
        A} \|b - a\|\Big\}

    Distances below about 3e-4 of the norms (after subtracting the mean of `Y`) are rounding.
    """
    same = Y is None
    Y, Y_starts = (X, starts) if same else (Y, Y_starts)
    starts = np.asarray(starts, dtype=np.int64)
    Y_starts = np.asarray(Y_starts, dtype=np.int64)
    for name, part, ends in (("starts", X, starts), ("Y_starts", Y, Y_starts)):
        if ends[0] != 0 or ends[-1] != len(part) or np.any(np.diff(ends) < 1):
            raise ValueError(f"{name} must ascend from 0 to the number of instances, {len(part)}")
    mean = np.mean(Y, axis=0, dtype=np.float64)
    right = np.ascontiguousarray(Y - mean, dtype=np.float32)
    left = right
    if not same:
        left = np.ascontiguousarray(X - mean, dtype=np.float32)
    right_norms = np.einsum("ij,ij->i", right, right)
    left_norms = np.einsum("ij,ij->i", left, left)
    out = np.empty((starts.size - 1, Y_starts.size - 1), dtype=np.float32)
    room = max(1, BLOCK // (4 * len(right)))  # rows of a block
    blocks = list(batches(starts, room))

    def one(begin, end):
        first = begin if same else 0  # distances are symmetric
        low = starts[begin]
        high = starts[end]
        offset = Y_starts[first]
        squares = left[low:high] @ right[offset:].T
        squares *= -2.0
        squares += left_norms[low:high, None]
        squares += right_norms[None, offset:]
        np.maximum(squares, 0.0, out=squares)
        part = np.empty((end - begin, out.shape[1] - first), dtype=np.float32)
        reduce_pairs(squares, starts[begin : end + 1] - low, Y_starts[first:] - offset, part)
        out[begin:end, first:] = np.sqrt(part)

    with linear_algebra().limit(limits=1):  # the same sums for any number of threads
        Parallel(n_jobs=n_jobs, require="sharedmem")(delayed(one)(*block) for block in blocks)
    if same:
        for begin, end in blocks:
            out[end:, begin:end] = out[begin:end, end:].T
            above = np.triu(out[begin:end, begin:end], 1)  # set the diagonal to 0
            out[begin:end, begin:end] = above + above.T
    return out


def nearest_distances(X, Y, Y_starts, n_jobs=None):
    """Distances of instances to each bag's nearest instance: float32, (n, n_bags)."""
    out = np.empty((len(X), len(Y_starts) - 1), dtype=np.float32)
    room = max(1, BLOCK // (4 * len(Y)))
    alone = np.arange(len(Y) + 1)
    for begin in range(0, len(X), room):
        rows = X[begin : begin + room]
        distances = hausdorff_distances(rows, np.arange(len(rows) + 1), Y, alone, n_jobs=n_jobs)
        out[begin : begin + room] = np.minimum.reduceat(distances, Y_starts[:-1], axis=1)
    return out


def k_medoids(distances, n_clusters, random_state=None):
    """Medoids, ascending: items go to their nearest medoid, clusters take the item of least total distance
    (Zhou and Zhang, NIPS 2006, table 2, steps 2 and 3)."""
    medoids = np.sort(as_generator(random_state).choice(len(distances), n_clusters, replace=False))
    for _ in range(MOST_ROUNDS):
        labels = np.argmin(distances[:, medoids], axis=1)
        labels[medoids] = np.arange(n_clusters)
        updated = medoids.copy()
        for k in range(n_clusters):
            members = np.flatnonzero(labels == k)
            totals = distances[np.ix_(members, members)].sum(axis=1, dtype=np.float64)
            own = totals[np.searchsorted(members, medoids[k])]
            if totals.min() < own:  # ties keep the medoid
                updated[k] = members[np.argmin(totals)]
        updated = np.sort(updated)
        if np.array_equal(updated, medoids):
            break
        medoids = updated
    return medoids


@documented_rival
@parameters
class MIMLSVM(BagRival):
    r"""MIMLSVM: one SVM per label on the bags' Hausdorff distances to k medoid bags.

    The medoids :math:`M_1, \dots, M_k` of the training bags map bag :math:`\mathcal X` to
    :math:`\phi(\mathcal X) = (d_H(\mathcal X, M_1), \dots, d_H(\mathcal X, M_k))` with Hausdorff distances
    :math:`d_H`. For each label y, with :math:`s_{iy} = 1` if a candidate vector of bag i has y, else -1,

    .. math:: \min_{w_y, b_y} \frac12\|w_y\|^2
        + C \sum_i [1 - s_{iy} (w_y \cdot \phi(\mathcal X_i) + b_y)]_+ .

    The authors' program tests whole bags. The Hausdorff distance of a single instance, a bag of one, is that
    to a medoid's *farthest* instance, larger than between bags: labels of instances are ranked poorly. The
    nearest (see `instances`) ranks them better (figure 5.3), but is below the distances in training, so that
    hardly any instance is null: on names in captions it labels 17 to 20% of the faces correctly, the farthest
    72%.

    Parameters
    ----------
    $C
    ratio : float in (0, 1], default 0.2
        k over the number of bags, rounded down, at least 1 and at most the clustered bags.
    max_clustered : int, default 5000
        Most bags to cluster, drawn at random if there are more; 5000 take 100 MB of distances.
    instances : {"auto", "nearest", "farthest"}, default "auto"
        Instance of a medoid to which the distance of a single instance is taken in `decision_function` and
        `predict`. "auto" is the farthest if the candidates have a null label, else the nearest.
    $class_weight $tol $max_iter $n_jobs
    random_state : int, Generator or None, default 0
        Of the first medoids and of the bags drawn for clustering.

    Attributes
    ----------
    classes_ : ndarray
    $null_ $trained_
    medoids_ : ndarray of int, shape (k,)
        Medoid bags, numbered among those of positive weight.
    medoid_rows_, medoid_starts_ : ndarrays
        Their instances, and the start of each.
    coef_, intercept_ : ndarrays, shapes (n_labels, k) and (n_labels,)
    $duality_gap_ $n_iter_
    n_features_in_ : int

    Notes
    -----
    The SVMs are linear, as in the thesis; the paper's are Gaussian. Null has no SVM: null instances are
    negative for every label (thesis 5.6.3), so its score is 0. A label of every bag scores 1, one of no bag
    -1.

    Time for n instances in N bags: n^2 n_features / 2 for the distances of at most `max_clustered` bags, 10
    to 40 steps of N k^2 per label; memory 4 N_c^2 + 8 N k bytes, N_c the clustered bags.

    References
    ----------
    Zhou and Zhang: Multi-instance multi-label learning, NIPS 2006, table 2; thesis 5.5 and 5.6.3.

    Examples
    --------
    >>> import numpy as np
    >>> from cuelearn.mms import MIMLSVM, CandidateSet
    >>> y = np.array([[0, 1], [1, 2], [2, 0]] * 9)
    >>> X = np.eye(3)[y.ravel()]
    >>> pairs = CandidateSet([[row, row[::-1]] for row in y])
    >>> MIMLSVM(C=10.0).fit(X, pairs).coef_.shape  # of 27 bags a fifth are medoids
    (3, 5)
    """

    _parameter_constraints = {
        "ratio": [Number(Real, 0, 1, closed="right")],
        "max_clustered": COUNT,
        "instances": [StrOptions({"auto", "nearest", "farthest"})],
    }

    ratio: float = 0.2
    max_clustered: int = 5000
    instances: Literal["auto", "nearest", "farthest"] = "auto"
    random_state: RandomState = 0

    def _train(self, X, candidates, weights):
        labels, to_train = self._start_bags(candidates)
        mapped = self._cluster(X, candidates)

        def sample(k):
            return mapped, np.where(labels[:, k], 1.0, -1.0), weights

        self._keep(labels, self._fit_labels(to_train, sample, mapped.shape[1]))

    def _cluster(self, X, candidates):
        """Set the medoids; returns all bags' distances to them."""
        rng = as_generator(self.random_state)
        n_bags = candidates.n_bags
        sizes = candidates.bag_sizes
        drawn = np.arange(n_bags)
        if n_bags > self.max_clustered:
            drawn = np.sort(rng.choice(n_bags, self.max_clustered, replace=False))
        part = X[candidates.rows(drawn)]
        distances = hausdorff_distances(part, starts_of_bags(sizes[drawn], len(part)), n_jobs=self.n_jobs)
        n_medoids = min(max(1, int(self.ratio * n_bags + 1e-9)), drawn.size)
        chosen = k_medoids(distances, n_medoids, rng)
        self.medoids_ = drawn[chosen]
        self.medoid_rows_ = X[candidates.rows(self.medoids_)]
        self.medoid_starts_ = starts_of_bags(sizes[self.medoids_], len(self.medoid_rows_))
        mapped = distances[:, chosen] if drawn.size == n_bags else self._map(X, candidates.bag_starts)
        return np.ascontiguousarray(mapped, dtype=np.float64)

    def _map(self, X, starts):
        return hausdorff_distances(X, starts, self.medoid_rows_, self.medoid_starts_, n_jobs=self.n_jobs)

    def _scores_at(self, distances):
        return distances.astype(np.float64) @ self.coef_.T + self.intercept_

    def _bag_scores(self, X, starts):
        return self._scores_at(self._map(X, starts))

    def _instance_scores(self, X):
        farthest = self.null_ is not None if self.instances == "auto" else self.instances == "farthest"
        if farthest:
            return super()._instance_scores(X)
        return self._scores_at(nearest_distances(X, self.medoid_rows_, self.medoid_starts_, self.n_jobs))


# score of a label absent in training
ABSENT = -1e9


@documented
@parameters
class SupervisedSVM(BagClassifier):
    """Linear multiclass SVM on true labels: its lead over `MMS` is the cost of candidate sets.

    Parameters
    ----------
    C : float > 0, default 1.0
        Weight of the sum of losses.
    multi_class : {"crammer_singer", "ovr"}, default "crammer_singer"
        One multiclass SVM (MC-SVM), or one-vs-all with the hinge loss (1vA-SVM).
    class_weight : None, "balanced" or dict, default None
        Weights of the classes' losses; "balanced" gives all classes the same total.
    tol : float > 0, default 1e-2
        Of liblinear's stopping rule.
    max_iter : int >= 1, default 500
    random_state : int or None, default 0
        Of liblinear's order of visits.

    Attributes
    ----------
    classes_ : ndarray
    coef_ : ndarray, shape (n_labels, n_features)
    intercept_ : ndarray, shape (n_labels,)
        -1e9 for labels absent in training.
    n_features_in_ : int

    References
    ----------
    Thesis 5.6; Crammer and Singer (2002); Fan et al., LIBLINEAR, JMLR 9 (2008).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from cuelearn.mms import SupervisedSVM
    >>> X, y = load_iris(return_X_y=True)
    >>> SupervisedSVM(C=1, max_iter=5000).fit(X, y).score(X, y) > 0.9
    True
    """

    _parameter_constraints = {"multi_class": [StrOptions({"crammer_singer", "ovr"})], "tol": POSITIVE}

    C: float = 1.0
    multi_class: Literal["crammer_singer", "ovr"] = "crammer_singer"
    class_weight: ClassWeight = None
    tol: float = 1e-2
    max_iter: int = 500
    random_state: RandomState = 0

    @validated
    def fit(self, X: InputLike, y: ArrayLike | CandidateSet, sample_weight: SampleWeight = None) -> Self:
        """Train.

        Parameters
        ----------
        X : array-like, shape (n, n_features)
        y : array-like, shape (n,), or a CandidateSet with one candidate per bag and one attribute
        sample_weight : array-like, shape (n,), or (n_bags,) with a CandidateSet; optional
            Factors on C of the samples or bags: 2 repeats one, 0 leaves it out.

        Returns
        -------
        self
        """
        from sklearn.svm import LinearSVC  # a slow import

        X = validate_data(self, X, dtype=FLOATS)
        labels = self._labels(y, len(X))
        if isinstance(y, CandidateSet):
            weights = check_bag_weights(sample_weight, y)
            if weights is not None:
                weights = weights[y.bag_of]
        else:
            weights = check_sample_weight(sample_weight, len(X))
        if weights is not None:
            kept = weights > 0.0
            X = X[kept]
            labels = labels[kept]
            weights = weights[kept]
        present, numbers = np.unique(labels, return_inverse=True)
        weights = loss_weights(weights, self.class_weight, self.classes_[present], numbers)
        options = {"loss": "hinge", "multi_class": self.multi_class, "tol": self.tol}
        svm = LinearSVC(C=self.C, max_iter=self.max_iter, random_state=self.random_state, **options)
        svm.fit(X, labels, sample_weight=weights)
        sides = np.ones((1, 1))
        if len(svm.coef_) == 1:  # two classes
            sides = np.array([[-1.0], [1.0]])
        self.coef_ = np.zeros((len(self.classes_), X.shape[1]))
        self.intercept_ = np.full(len(self.classes_), ABSENT)
        self.coef_[present] = sides * svm.coef_
        self.intercept_[present] = sides[:, 0] * svm.intercept_
        return self

    def _labels(self, y, n_samples):
        self.n_attributes_ = 1
        if not isinstance(y, CandidateSet):
            self.classes_, labels = classes_and_labels(labels_of(self, y, n_samples))
            return labels
        check_candidates(y, n_samples)
        if max(y.n_candidates) > 1 or y.n_attributes > 1:
            raise ValueError("candidates must hold one candidate per bag, the true labeling")
        self.classes_ = y.classes[0]
        return np.concatenate([y.bag(i)[0, :, 0] for i in range(y.n_bags)])

    def _scores(self, X):
        return self._linear_scores(self._check_new(X))

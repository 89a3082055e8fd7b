"""MIMLSVM (thesis 5.5)."""

from numbers import Real

import numpy as np
from joblib import Parallel, delayed

from cuelearn.codecache import njit
from cuelearn.core.checks import as_generator
from cuelearn.core.estimator import COUNT, Number, StrOptions, parameters
from cuelearn.kernels.tiles import linear_algebra
from cuelearn.mms.candidates import batches, starts_of_bags
from cuelearn.mms.rivals import BagRival, documented_rival

__all__ = ["MIMLSVM", "hausdorff_distances", "k_medoids"]

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
    r"""Hausdorff distances between the bags of X, or from X to Y: float32, (n_bags, n_bags of Y), equal for
    any number of threads.

    .. math:: d_H(A, B) = \max\Big\{\max_{a \in A} \min_{b \in B} \|a - b\|,\ \max_{b \in B} \min_{a \in
        A} \|b - a\|\Big\}

    Distances below about 3e-4 of the norms (after subtracting the mean of `Y`) are rounding.
    """
    same = Y is None
    Y, Y_starts = (X, starts) if same else (Y, Y_starts)
    starts = np.asarray(starts, dtype=np.int64)
    Y_starts = np.asarray(Y_starts, dtype=np.int64)
    for name, part, ends in (("starts", X, starts), ("Y_starts", Y, Y_starts)):
        if ends[0] != 0 or ends[-1] != len(part) or np.any(np.diff(ends) < 1):  # e.g. in an altered file
            raise ValueError(f"{name} must ascend from 0 to the number of instances, {len(part)}")
    mean = np.mean(Y, axis=0, dtype=np.float64)
    right = np.ascontiguousarray(Y - mean, dtype=np.float32)
    left = right
    if not same:
        left = np.ascontiguousarray(X - mean, dtype=np.float32)
    right_norms, left_norms = (np.einsum("ij,ij->i", side, side) for side in (right, left))
    out = np.empty((starts.size - 1, Y_starts.size - 1), dtype=np.float32)
    room = max(1, BLOCK // (4 * len(right)))  # rows of a block
    blocks = list(batches(starts, room))

    def one(begin, end):
        first = 0
        if same:  # distances are symmetric
            first = begin
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

    The authors' program tests whole bags. For a single instance, a bag of one, the Hausdorff distance is that
    to a medoid's *farthest* instance, larger than between bags: labels of new bags are ranked well, those of
    instances poorly. The nearest (see `instances`) ranks them better (figure 5.3), but is below the distances
    in training, so that hardly any instance is null: on names in captions it labels 17 to 20% of the faces
    correctly, the farthest 72%.

    Parameters
    ----------
    $C
    ratio : float in (0, 1], default 0.2
        k over the number of bags, rounded down, at least 1 and at most the clustered bags.
    max_clustered : int, default 5000
        Most bags to cluster, drawn at random if there are more; 5000 take 100 MB of distances.
    instances : {"auto", "nearest", "farthest"}, default "auto"
        Instance of a medoid that defines the distance of a single instance in `decision_function` and
        `predict` (`bag_decision_function` uses Hausdorff distances). "auto" is the farthest if the candidates
        have a null label, else the nearest.
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
        Instances of the medoids, and the start of each.
    coef_, intercept_ : ndarrays, shapes (n_labels, k) and (n_labels,)
    $duality_gap_ $n_iter_
    n_features_in_ : int

    Notes
    -----
    The SVMs are linear, as in the thesis; the paper's are Gaussian. Null has no SVM: null instances are
    negative for every label (thesis 5.6.3), so its score is 0, and an instance is null if all other scores
    are negative. A label of every bag scores 1, one of no bag -1.

    Time for n instances in N bags: n^2 n_features / 2 for the distances of at most `max_clustered` bags, 10
    to 40 steps of N k^2 per label; memory 4 N_c^2 + 8 N k bytes, N_c the clustered bags.

    References
    ----------
    Zhou and Zhang: Multi-instance multi-label learning, NIPS 2006, table 2; thesis 5.5 and 5.6.3.

    Examples
    --------
    >>> import numpy as np
    >>> from cuelearn.mms import MIMLSVM, CandidateSet
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(3, size=(60, 2))
    >>> X = np.eye(3)[y.ravel()] + 0.1 * rng.standard_normal((120, 3))
    >>> pairs = CandidateSet([[row, row[::-1]] for row in y])  # which of the two is which is not known
    >>> model = MIMLSVM(C=10.0).fit(X, pairs)
    >>> model.medoids_.size, model.coef_.shape
    (12, (3, 12))
    """

    _parameter_constraints = {
        **BagRival._parameter_constraints,
        "ratio": [Number(Real, 0, 1, closed="right")],
        "max_clustered": COUNT,
        "instances": [StrOptions({"auto", "nearest", "farthest"})],
    }

    ratio: float = 0.2
    max_clustered: int = 5000
    instances: str = "auto"
    random_state: object = 0

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

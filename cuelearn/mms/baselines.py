r"""What MMS is compared with: CL-SVM, and the multi-instance multi-label methods MIMLSVM and M3MIML (thesis 5.5).

All three are linear support vector machines, one per label, trained on what the candidate sets say. CL-SVM asks which labels an instance
can have. The other two see only which labels a bag can have, and score single instances at test time.
"""

import numpy as np
from joblib import Parallel, delayed
from numba import njit
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.svm import SVC, LinearSVC
from sklearn.utils.validation import check_is_fitted, validate_data
from threadpoolctl import threadpool_limits

from cuelearn.core.checks import as_generator, check_count, check_positive, unchanged_on_error
from cuelearn.core.linear_svm import linear_svm
from cuelearn.mms.candidates import CandidateSet
from cuelearn.mms.inference import best_labelings

__all__ = ["CLSVM", "M3MIML", "MIMLSVM", "hausdorff_distances", "k_medoids"]

#: Bytes of the squared distances that are held at a time.
BLOCK = 64_000_000
#: Score of a label that was not trained.
NEVER = -1.0


def _choice(name, value, options):
    if value not in options:
        raise ValueError(f"{name} must be one of {options}, got {value!r}")
    return value


def _side_weights(class_weight, signs):
    """Weight of each sample's loss: 1, or with "balanced" the same total on both sides, on average 1."""
    if class_weight is None:
        return None
    n_positive = int(np.count_nonzero(signs > 0.0))
    if n_positive in (0, signs.size):
        return None
    return np.where(signs > 0.0, 0.5 * signs.size / n_positive, 0.5 * signs.size / (signs.size - n_positive))


def _bag_starts(bag_sizes, n_rows):
    """First row of each bag and the end, or an error that says what does not fit."""
    sizes = np.asarray(bag_sizes)
    if (
        sizes.ndim != 1
        or sizes.size == 0
        or sizes.dtype.kind not in "iu"
        or sizes.min() < 1
        or sizes.sum() != n_rows
    ):
        raise ValueError(f"bag_sizes must be integers >= 1 that add up to the {n_rows} rows of X")
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


# ------------------------------------------------------------------ distances between bags, and their clusters


@njit(cache=True, nogil=True)
def reduce_pairs(squares, rows, columns, out):
    """Squared Hausdorff distances of bags from the squared distances of their instances.

    Parameters
    ----------
    squares : ndarray of float32, shape (n_rows, n_columns)
    rows, columns : ndarray of int64
        First row (column) of each bag, and the end.
    out : ndarray of float32, shape (number of row bags, number of column bags)
    """
    nearest = np.empty(squares.shape[1], np.float32)  # of each column, to the row bag
    for i in range(rows.shape[0] - 1):
        nearest[:] = np.inf
        out[i, :] = 0.0
        for r in range(rows[i], rows[i + 1]):
            for j in range(columns.shape[0] - 1):
                low = np.float32(np.inf)
                for c in range(columns[j], columns[j + 1]):
                    value = squares[r, c]
                    if value < low:
                        low = value
                    if value < nearest[c]:
                        nearest[c] = value
                if low > out[i, j]:
                    out[i, j] = low
        for j in range(columns.shape[0] - 1):
            for c in range(columns[j], columns[j + 1]):
                if nearest[c] > out[i, j]:
                    out[i, j] = nearest[c]


def hausdorff_distances(X, starts, Y=None, Y_starts=None, *, n_jobs=None):
    r"""Hausdorff distances between bags of instances.

    .. math:: d_H(A, B) = \max\Big\{\max_{a \in A} \min_{b \in B} \|a - b\|,\ \max_{b \in B} \min_{a \in A} \|b - a\|\Big\}

    Parameters
    ----------
    X : ndarray, shape (n, n_features)
        Instances, bag after bag.
    starts : ndarray of int, shape (n_bags + 1,)
        First row of each bag, and n.
    Y, Y_starts : optional
        Other bags; those of `X` by default.
    n_jobs : int or None
        Threads over blocks of bags.

    Returns
    -------
    ndarray of float32, shape (n_bags, n_bags of Y)

    Notes
    -----
    Squared distances come from products in float32, a block of 64 MB at a time, after the mean of `Y` is taken off; a distance below
    about 3e-4 of the norms that are left is rounding. Time O(n n_Y n_features), for the bags of `X` themselves half of it; memory
    4 n_bags n_bags_Y bytes.
    """
    same = Y is None
    Y, Y_starts = (X, starts) if same else (Y, Y_starts)
    for name, part, ends in (("starts", X, starts), ("Y_starts", Y, Y_starts)):
        if (
            np.ndim(ends) != 1
            or len(ends) < 2
            or ends[0] != 0
            or ends[-1] != len(part)
            or np.any(np.diff(ends) < 1)
        ):
            raise ValueError(f"{name} must ascend from 0 to the number of instances, {len(part)}")
    mean = np.mean(Y, axis=0, dtype=np.float64)
    right = np.ascontiguousarray(Y - mean, dtype=np.float32)
    left = right if same else np.ascontiguousarray(X - mean, dtype=np.float32)
    right_norms = np.einsum("ij,ij->i", right, right)
    left_norms = right_norms if same else np.einsum("ij,ij->i", left, left)
    starts, Y_starts = np.asarray(starts, dtype=np.int64), np.asarray(Y_starts, dtype=np.int64)
    n_bags = starts.size - 1
    out = np.empty((n_bags, Y_starts.size - 1), dtype=np.float32)
    room = max(1, BLOCK // (4 * len(right)))  # rows of a block
    ends, blocks = 0, []
    while ends < n_bags:
        begin, ends = ends, max(ends + 1, int(np.searchsorted(starts, starts[ends] + room, side="right")) - 1)
        blocks.append((begin, ends))

    def one(begin, end):
        first = begin if same else 0  # the distances are symmetric
        low, high, offset = starts[begin], starts[end], Y_starts[first]
        squares = left[low:high] @ right[offset:].T
        squares *= -2.0
        squares += left_norms[low:high, None]
        squares += right_norms[None, offset:]
        np.maximum(squares, 0.0, out=squares)
        part = np.empty((end - begin, out.shape[1] - first), dtype=np.float32)
        reduce_pairs(squares, starts[begin : end + 1] - low, Y_starts[first:] - offset, part)
        np.sqrt(part, out=part)
        out[begin:end, first:] = part

    with threadpool_limits(1, user_api="blas"):  # the same sums for any number of threads
        Parallel(n_jobs=n_jobs, prefer="threads")(delayed(one)(*block) for block in blocks)
    if same:
        for begin, end in blocks:
            out[end:, begin:end] = out[begin:end, end:].T
            above = np.triu(out[begin:end, begin:end], 1)  # the diagonal is 0, but for rounding
            out[begin:end, begin:end] = above + above.T
    return out


def k_medoids(distances, n_clusters, random_state=None, max_iter=300):
    r"""k-medoids by alternation: every item goes to its nearest medoid, every cluster takes the item with the least total distance.

    .. math:: \min_{M \subset \{1..N\},\ |M| = k} \sum_i \min_{m \in M} d(i, m)

    Parameters
    ----------
    distances : ndarray, shape (n, n)
        Symmetric, zeros on the diagonal.
    n_clusters : int
        k, at most n.
    random_state : None, int or Generator
        Of the first medoids, drawn without replacement.
    max_iter : int

    Returns
    -------
    medoids : ndarray of int, shape (n_clusters,)
        Ascending; a local optimum of the alternation.
    labels : ndarray of int, shape (n,)
        Number of the medoid that each item belongs to; the first of equally near ones, a medoid's own for itself.

    Notes
    -----
    O(n k + sum of squared cluster sizes) for each round, of which a few suffice.

    References
    ----------
    Zhou and Zhang, NIPS 2006, table 2, steps 2 and 3.
    """
    n = len(distances)
    if distances.shape != (n, n):
        raise ValueError(f"distances must be a square matrix, got shape {distances.shape}")
    n_clusters = check_count("n_clusters", n_clusters)
    if n_clusters > n:
        raise ValueError(f"n_clusters must be at most the number of items, {n}, got {n_clusters}")
    medoids = np.sort(as_generator(random_state).choice(n, n_clusters, replace=False))
    for _ in range(max_iter):
        labels = np.argmin(distances[:, medoids], axis=1)
        labels[medoids] = np.arange(n_clusters)
        order = np.argsort(labels, kind="stable")
        ends = np.cumsum(np.bincount(labels, minlength=n_clusters))
        updated = medoids.copy()
        for k, members in enumerate(np.split(order, ends[:-1])):
            totals = distances[np.ix_(members, members)].sum(axis=1, dtype=np.float64)
            best = members[np.argmin(totals)]
            own = totals[np.searchsorted(members, medoids[k])]
            if totals.min() < own:  # a medoid stays where it is as good as another
                updated[k] = best
        updated = np.sort(updated)
        if np.array_equal(updated, medoids):
            break
        medoids = updated
    labels = np.argmin(distances[:, medoids], axis=1)
    labels[medoids] = np.arange(n_clusters)
    return medoids, labels


# ------------------------------------------------------------------ what the three have in common


class _Rival(BaseEstimator):
    """Base: input checks, one SVM per label, prediction with and without a caption."""

    _sparse = False

    def _check_fit(self, X, candidates):
        """Check parameters and input; returns X."""
        check_positive("C", self.C)
        check_positive("tol", self.tol)
        check_count("max_iter", self.max_iter)
        _choice("class_weight", self.class_weight, (None, "balanced"))
        self._check_set(candidates)
        X = validate_data(
            self, X, dtype=[np.float64, np.float32], accept_sparse="csr" if self._sparse else False
        )
        self._check_rows(X, candidates)
        return X

    @staticmethod
    def _check_set(candidates):
        if not isinstance(candidates, CandidateSet):
            raise TypeError(f"candidates must be a CandidateSet, got {type(candidates).__name__}")

    @staticmethod
    def _check_rows(X, candidates):
        if X.shape[0] != candidates.n_instances:
            raise ValueError(
                f"X must have one row per instance of candidates, {candidates.n_instances}, got {X.shape[0]}"
            )

    def _check_new(self, X):
        check_is_fitted(self)
        return validate_data(
            self,
            X,
            dtype=[np.float64, np.float32],
            accept_sparse="csr" if self._sparse else False,
            reset=False,
        )

    def _solve_all(self, problems):
        """Fit the SVM of every label.

        Parameters
        ----------
        problems : list of callables without arguments
            Each returns a `LinearSolution`.
        """
        with threadpool_limits(1, user_api="blas"):  # the same sums for any n_jobs
            return Parallel(n_jobs=self.n_jobs, prefer="threads")(delayed(problem)() for problem in problems)

    def _parts(self):
        """Classes, and whether each was trained, of every attribute."""
        return [self.classes_], [self.trained_]

    def _named(self, labels):
        classes = self._parts()[0]
        if len(classes) == 1:
            return classes[0][labels[:, 0]]
        return np.stack([classes[p][labels[:, p]].astype(object) for p in range(len(classes))], axis=1)

    def _own(self, candidates):
        """The candidates of the attributes that were trained."""
        return candidates

    def predict(self, X, candidates=None):
        """Labels of instances.

        Parameters
        ----------
        X : array-like, shape (n, n_features)
        candidates : CandidateSet, optional
            With a caption: every bag is given its candidate vector with the largest sum of scores, the first of several.

        Returns
        -------
        ndarray, shape (n,), or for several attributes (n, n_attributes) of objects
            Names from `classes_`. Without candidates the label with the largest score among those trained, the first of several.
        """
        scores = self.decision_function(X)
        classes, trained = self._parts()
        if candidates is None:
            scores = scores if isinstance(scores, list) else [scores]
            labels = [
                np.argmax(np.where(known, part, -np.inf), axis=1)
                for part, known in zip(scores, trained, strict=True)
            ]
            return self._named(np.stack(labels, axis=1))
        self._check_set(candidates)
        self._check_rows(scores[0] if isinstance(scores, list) else scores, candidates)
        candidates = self._own(candidates)
        if len(candidates.classes) != len(classes) or any(
            map(lambda a, b: not np.array_equal(a, b), candidates.classes, classes)
        ):
            raise ValueError("candidates must have the classes that the model was trained with")
        return self._named(best_labelings(scores, candidates))

    def score(self, X, y, candidates=None):
        """Share of labels that are right.

        Parameters
        ----------
        X : array-like, shape (n, n_features)
        y : array-like, shape (n,) or (n, n_attributes)
            Names from `classes_`.
        candidates : CandidateSet, optional

        Returns
        -------
        float
        """
        predicted = self.predict(X, candidates)
        y = np.asarray(y)
        if y.shape != predicted.shape:
            raise ValueError(f"y must have shape {predicted.shape}, got {y.shape}")
        return float(np.mean(predicted == y))


class CLSVM(_Rival):
    r"""CL-SVM: every label that an instance can have is taken for a true one.

    For each label y a linear SVM separates the instances that can have it from those that cannot,

    .. math::

        \min_{w_y, b_y} \frac12\|w_y\|^2 + \frac12 b_y^2 + C \sum_m [1 - s_{my} (w_y \cdot x_m + b_y)]_+ , \qquad
        s_{my} = \begin{cases} +1 & y \in \mathcal Z(m) \\ -1 & \text{otherwise,}\end{cases}

    the bias being the weight of a constant feature, as LIBLINEAR has it. An instance gets the label with the largest
    :math:`w_y \cdot x + b_y`.

    Parameters
    ----------
    C : float > 0, default 1.0
    attribute : int or None, default None
        The attribute to learn; None learns each, one apart from the other.
    solver : {"interior-point", "liblinear"}
        The first reaches the optimum at any C and certifies it, at a cost of n n_features^2 a step. LIBLINEAR's coordinate ascent takes
        sparse X and many features, but does not converge within `max_iter` passes for large C.
    class_weight : None or "balanced"
        Balanced: both sides of each SVM have the same total weight. The thesis has none; few labels are possible for an instance,
        so that without it the negative side often wins everywhere (w = 0).
    tol : float > 0, default 1e-5
        Relative duality gap; for liblinear its own tolerance on the gradient.
    max_iter : int, default 200
        Steps, or passes of liblinear.
    n_jobs : int or None
        Threads over labels; equal results.
    random_state : int, default 0
        Of liblinear's order.

    Attributes
    ----------
    classes_ : ndarray, or list of them for several attributes
    coef_ : ndarray, shape (n_labels, n_features), or list
    intercept_ : ndarray, shape (n_labels,), or list
    trained_ : ndarray of bool, shape (n_labels,), or list
        False for labels that no instance can have: they score -1 and are predicted only where all candidates ask for them.
    duality_gap_ : ndarray, shape (n_labels,), or list
        Certified, relative; NaN with liblinear.
    n_iter_ : ndarray of int, shape (n_labels,), or list
    n_features_in_ : int

    Raises
    ------
    TypeError
        If `candidates` is no CandidateSet.
    ValueError
        If X has not one row per instance of the candidates, or holds NaN.

    Notes
    -----
    The null label is one of the labels. Time 10 to 40 steps of n n_features^2 operations for each label: 10,000 instances with 200
    features and 26 labels take 9 seconds on one core.

    References
    ----------
    Thesis 5.5, "CL-SVM"; LIBLINEAR: Fan et al., JMLR 9 (2008).

    Examples
    --------
    >>> import numpy as np
    >>> from cuelearn.mms import CandidateSet
    >>> from cuelearn.mms.baselines import CLSVM
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(3, size=(60, 2))
    >>> X = np.eye(3)[y.ravel()] + 0.1 * rng.standard_normal((120, 3))
    >>> pairs = CandidateSet([[row, row[::-1]] for row in y])  # which of the two is which is not known
    >>> model = CLSVM(C=10.0).fit(X, pairs)
    >>> bool(model.score(X, y.ravel()) > 0.95), bool(model.score(X, y.ravel(), pairs) == 1.0)
    (True, True)
    """

    _sparse = True

    def __init__(
        self,
        C=1.0,
        *,
        attribute=None,
        solver="interior-point",
        class_weight=None,
        tol=1e-5,
        max_iter=200,
        n_jobs=None,
        random_state=0,
    ):
        self.C = C
        self.attribute = attribute
        self.solver = solver
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X, candidates):
        """Train.

        Parameters
        ----------
        X : array-like or csr_matrix, shape (n, n_features)
            Instances of all bags, bag after bag.
        candidates : CandidateSet
            Of the same bags.

        Returns
        -------
        self
        """
        with unchanged_on_error(self):
            _choice("solver", self.solver, ("interior-point", "liblinear"))
            X = self._check_fit(X, candidates)
            as_generator(self.random_state)
            several = self.attribute is None and candidates.n_attributes > 1
            attributes = (
                range(candidates.n_attributes)
                if several
                else [0 if self.attribute is None else self.attribute]
            )
            masks = [candidates.mask(p) for p in attributes]
            rows, basis = self._rows(X)
            problems = [
                self._problem(rows, mask[:, k]) for mask in masks for k in np.flatnonzero(mask.any(axis=0))
            ]
            found = iter(self._solve_all(problems))
            fits = [self._tables(mask.any(axis=0), found, X.shape[1], basis) for mask in masks]
            names = ("trained_", "coef_", "intercept_", "duality_gap_", "n_iter_")
            for name, values in zip(names, zip(*fits, strict=True), strict=True):
                setattr(self, name, list(values) if several else values[0])
            classes = [candidates.classes[p] for p in attributes]
            self.classes_ = classes if several else classes[0]
            self.n_attributes_ = candidates.n_attributes
        return self

    def _rows(self, X):
        if self.solver == "liblinear":
            return X.astype(np.float64), None
        return reduced(X.toarray() if sparse.issparse(X) else X)

    def _problem(self, rows, possible):
        signs = np.where(possible, 1.0, -1.0)

        def exact():
            weights = _side_weights(self.class_weight, signs)
            return linear_svm(
                rows,
                signs,
                float(self.C),
                weights=weights,
                free_bias=False,
                tol=self.tol,
                max_iter=self.max_iter,
            )

        def liblinear():
            if possible.all():  # LIBLINEAR asks for two classes; this is the SVM with a free bias
                return None
            seed = int(as_generator(self.random_state).integers(2**31 - 1))
            machine = LinearSVC(
                C=self.C,
                loss="hinge",
                dual=True,
                tol=self.tol,
                max_iter=self.max_iter,
                class_weight=self.class_weight,
                random_state=seed,
            )
            return machine.fit(rows, signs)

        return exact if self.solver == "interior-point" else liblinear

    def _tables(self, trained, found, n_features, basis):
        """Arrays over the labels of one attribute, from the next fits."""
        coef, intercept = np.zeros((trained.size, n_features)), np.full(trained.size, NEVER)
        gaps, steps = np.full(trained.size, np.nan), np.zeros(trained.size, dtype=int)
        for k in np.flatnonzero(trained):
            fit = next(found)
            if fit is None:
                intercept[k] = 1.0
            elif isinstance(fit, LinearSVC):
                coef[k], intercept[k], steps[k] = fit.coef_[0], fit.intercept_[0], fit.n_iter_
            else:
                coef[k], intercept[k] = expanded(fit.coef, basis), fit.intercept
                gaps[k], steps[k] = fit.gap, fit.n_iter
        return trained, coef, intercept, gaps, steps

    def _parts(self):
        if isinstance(self.classes_, list):
            return self.classes_, self.trained_
        return [self.classes_], [self.trained_]

    def _own(self, candidates):
        if isinstance(self.classes_, list) or candidates.n_attributes == 1:
            return candidates
        if candidates.n_attributes != self.n_attributes_:
            raise ValueError(
                f"candidates must have {self.n_attributes_} attributes, as in training, got {candidates.n_attributes}"
            )
        return candidates.attribute(0 if self.attribute is None else self.attribute)

    def decision_function(self, X):
        """Scores of all labels.

        Parameters
        ----------
        X : array-like or csr_matrix, shape (n, n_features)

        Returns
        -------
        ndarray of float64, shape (n, n_labels), or a list of one per attribute
        """
        X = self._check_new(X)
        if isinstance(self.classes_, list):
            return [
                np.asarray(X @ coef.T) + bias for coef, bias in zip(self.coef_, self.intercept_, strict=True)
            ]
        return np.asarray(X @ self.coef_.T) + self.intercept_


def reduced(X):
    """X in float64; with more features than rows, its coordinates in an orthonormal basis of the rows' span, and the basis."""
    X = np.ascontiguousarray(X, dtype=np.float64)
    if X.shape[1] <= X.shape[0]:
        return X, None
    basis, coordinates = np.linalg.qr(X.T)
    return np.ascontiguousarray(coordinates.T), basis


def expanded(coef, basis):
    """Weights of the features from those of the coordinates that `reduced` gave."""
    return coef if basis is None else basis @ coef


class _BagRival(_Rival):
    """Base of the methods that see the labels of bags only."""

    def _start(self, X, candidates):
        """Check; sets classes and which labels to train; returns X and the labels of the bags, null left out."""
        X = self._check_fit(X, candidates)
        if candidates.n_attributes != 1:
            raise ValueError(
                f"candidates must have one attribute, got {candidates.n_attributes}; candidates.attribute(p) is one alone"
            )
        self.classes_ = candidates.classes[0]
        self.null_ = None if candidates.null is None else candidates.null[0]
        labels = candidates.bag_mask(0)
        self.trained_ = labels.any(axis=0)
        if self.null_ is not None:
            labels[:, self.null_] = False
            self.trained_[self.null_] = True
        return X, labels

    def _with_null(self, scores):
        if self.null_ is not None:
            scores[:, self.null_] = 0.0  # null where all others are negative
        return scores

    def bag_decision_function(self, X, bag_sizes):
        """Scores of all labels for whole bags.

        Parameters
        ----------
        X : array-like, shape (n, n_features)
            Instances, bag after bag.
        bag_sizes : array-like of int, shape (n_bags,)

        Returns
        -------
        ndarray of float64, shape (n_bags, n_labels)
        """
        X = self._check_new(X)
        return self._with_null(self._bag_scores(X, _bag_starts(bag_sizes, X.shape[0])))

    def predict_bags(self, X, bag_sizes):
        """Label sets of whole bags, by the T-criterion: every label with a positive score; where there is none, the best.

        Parameters
        ----------
        X : array-like, shape (n, n_features)
        bag_sizes : array-like of int, shape (n_bags,)

        Returns
        -------
        ndarray of bool, shape (n_bags, n_labels)
            With a null label that is the best where no other is positive.
        """
        scores = self.bag_decision_function(X, bag_sizes)
        scores[:, ~self.trained_] = -np.inf
        chosen = scores > 0.0
        empty = np.flatnonzero(~chosen.any(axis=1))
        chosen[empty, np.argmax(scores[empty], axis=1)] = True
        return chosen

    def decision_function(self, X):
        """Scores of all labels for single instances, each a bag of its own.

        Parameters
        ----------
        X : array-like, shape (n, n_features)

        Returns
        -------
        ndarray of float64, shape (n, n_labels)
        """
        X = self._check_new(X)
        return self._with_null(self._bag_scores(X, np.arange(X.shape[0] + 1)))


class MIMLSVM(_BagRival):
    r"""MIMLSVM: bags become their Hausdorff distances to k typical bags, on which one SVM per label is trained.

    k medoids :math:`M_1, \dots, M_k` of the training bags, clustered by the Hausdorff distance, make bag :math:`\mathcal X` the vector
    :math:`\phi(\mathcal X) = (d_H(\mathcal X, M_1), \dots, d_H(\mathcal X, M_k))`; then for each label y

    .. math::

        \min_{w_y, b_y} \frac12\|w_y\|^2 + C \sum_i [1 - s_{iy} (w_y \cdot \phi(\mathcal X_i) + b_y)]_+ , \qquad
        s_{iy} = \begin{cases} +1 & \text{y in a candidate vector of bag i} \\ -1 & \text{otherwise.}\end{cases}

    A single instance is scored as a bag of one, whose distance to a medoid is that to its farthest instance.

    Parameters
    ----------
    C : float > 0, default 1.0
    ratio : float in (0, 1], default 0.2
        k over the number of clustered bags, rounded down, at least 1.
    max_clustered : int, default 5000
        Bags that are clustered, drawn at random where there are more; the others are only mapped. Distances between all clustered bags
        are held, 100 MB for 5000.
    kernel : {"linear", "rbf"}
        On the k distances. The thesis takes the linear one everywhere, the paper had the Gaussian.
    gamma : float > 0, default 0.1
        Of the Gaussian kernel :math:`\exp(-\gamma\|\phi - \phi'\|^2)`.
    class_weight, tol, max_iter, n_jobs
        See `CLSVM`; `tol` is a relative duality gap for the linear kernel, LIBSVM's own tolerance (not below 1e-3) for the Gaussian.
    random_state : int, Generator or None, default 0
        Of the first medoids and of the bags drawn for clustering.

    Attributes
    ----------
    classes_, n_features_in_
        See `CLSVM`.
    null_ : int or None
        Number of the null label.
    trained_ : ndarray of bool, shape (n_labels,)
        False for labels that no bag can have.
    medoids_ : ndarray of int, shape (k,)
        Numbers of the bags that are medoids.
    clusters_ : ndarray of int, shape (n_bags,)
        Nearest medoid of each bag.
    medoid_rows_, medoid_starts_ : ndarrays
        Instances of the medoids, and where each begins.
    coef_, intercept_, duality_gap_, n_iter_ : ndarrays
        See `CLSVM`; over the k distances, linear kernel only.
    machines_ : dict, label number to SVC
        Gaussian kernel only.

    Raises
    ------
    TypeError
        If `candidates` is no CandidateSet.
    ValueError
        If X has not one row per instance of the candidates, or holds NaN, or the candidates have more than one attribute.

    Notes
    -----
    Null has no SVM: null instances are negative for every label (thesis 5.6.3), so its score is 0, and an instance is null where all
    others are negative. A label of every bag scores 1, one of no bag -1.

    Time for n instances in N bags: n^2 n_features / 2 for the distances of at most `max_clustered` bags, 10 to 40 steps of N k^2 for each
    label; memory 4 N_c^2 + 8 N k bytes, N_c the clustered bags. 2500 bags of 4 instances with 200 features and 26 labels:
    6 to 15 seconds on one core, of which the distances take 1. The steps grow with k^2: where there are hundreds of labels,
    a smaller `max_clustered` saves most of the time.

    References
    ----------
    Z.-H. Zhou, M.-L. Zhang: Multi-instance multi-label learning with application to scene classification, NIPS 2006, table 2; the
    T-criterion: Boutell, Luo, Shen, Brown, Pattern Recognition 37 (2004); thesis 5.5 and 5.6.3.
    """

    def __init__(
        self,
        C=1.0,
        *,
        ratio=0.2,
        max_clustered=5000,
        kernel="linear",
        gamma=0.1,
        class_weight=None,
        tol=1e-5,
        max_iter=200,
        n_jobs=None,
        random_state=0,
    ):
        self.C = C
        self.ratio = ratio
        self.max_clustered = max_clustered
        self.kernel = kernel
        self.gamma = gamma
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X, candidates):
        """Train.

        Parameters
        ----------
        X : array-like, shape (n, n_features)
            Instances of all bags, bag after bag.
        candidates : CandidateSet
            Of the same bags, with one attribute.

        Returns
        -------
        self
        """
        with unchanged_on_error(self):
            ratio = check_positive("ratio", self.ratio)
            if ratio > 1.0:
                raise ValueError(f"ratio must be at most 1, got {self.ratio!r}")
            most = check_count("max_clustered", self.max_clustered)
            _choice("kernel", self.kernel, ("linear", "rbf"))
            check_positive("gamma", self.gamma)
            rng = as_generator(self.random_state)
            X, labels = self._start(X, candidates)
            mapped = self._cluster(X, candidates, ratio, most, rng)
            n_labels = labels.shape[1]
            to_train = np.flatnonzero(labels.any(axis=0) & ~labels.all(axis=0))
            self.intercept_ = np.where(labels.all(axis=0), 1.0, NEVER)
            if self.kernel == "rbf":
                machines = self._solve_all([self._machine(mapped, labels[:, k]) for k in to_train])
                self.machines_ = dict(zip(to_train.tolist(), machines, strict=True))
                return self
            self.coef_ = np.zeros((n_labels, mapped.shape[1]))
            self.duality_gap_, self.n_iter_ = np.full(n_labels, np.nan), np.zeros(n_labels, dtype=int)
            problems = [self._problem(mapped, labels[:, k]) for k in to_train]
            for k, fit in zip(to_train, self._solve_all(problems), strict=True):
                self.coef_[k], self.intercept_[k], self.duality_gap_[k], self.n_iter_[k] = (
                    fit.coef,
                    fit.intercept,
                    fit.gap,
                    fit.n_iter,
                )
        return self

    def _cluster(self, X, candidates, ratio, most, rng):
        """Find the medoids; returns the distances of all bags to them, in float64."""
        starts, n_bags = candidates.bag_starts, candidates.n_bags
        if n_bags > most:
            drawn = np.sort(rng.choice(n_bags, most, replace=False))
            part, part_starts = (
                X[candidates.rows(drawn)],
                _bag_starts(candidates.bag_sizes[drawn], candidates.bag_sizes[drawn].sum()),
            )
        else:
            drawn, part, part_starts = np.arange(n_bags), X, starts
        distances = hausdorff_distances(part, part_starts, n_jobs=self.n_jobs)
        chosen, _ = k_medoids(distances, max(1, int(ratio * drawn.size + 1e-9)), rng)
        self.medoids_ = drawn[chosen]
        self.medoid_rows_ = X[candidates.rows(self.medoids_)]
        self.medoid_starts_ = _bag_starts(candidates.bag_sizes[self.medoids_], len(self.medoid_rows_))
        mapped = distances[:, chosen] if n_bags <= most else self._map(X, starts)
        self.clusters_ = np.argmin(mapped, axis=1)
        self.clusters_[self.medoids_] = np.arange(self.medoids_.size)
        return np.ascontiguousarray(mapped, dtype=np.float64)

    def _map(self, X, starts):
        return hausdorff_distances(X, starts, self.medoid_rows_, self.medoid_starts_, n_jobs=self.n_jobs)

    def _problem(self, mapped, positive):
        signs = np.where(positive, 1.0, -1.0)
        weights = _side_weights(self.class_weight, signs)
        return lambda: linear_svm(
            mapped, signs, float(self.C), weights=weights, tol=self.tol, max_iter=self.max_iter
        )

    def _machine(self, mapped, positive):
        machine = SVC(
            C=self.C,
            gamma=self.gamma,
            class_weight=self.class_weight,
            tol=max(self.tol, 1e-3),
            cache_size=500,
        )
        return lambda: machine.fit(mapped, positive)

    def _bag_scores(self, X, starts):
        mapped = self._map(X, starts).astype(np.float64)
        if self.kernel == "linear":
            return mapped @ self.coef_.T + self.intercept_
        scores = np.tile(self.intercept_, (len(mapped), 1))
        for k, machine in self.machines_.items():
            scores[:, k] = machine.decision_function(mapped)
        return scores


class M3MIML(_BagRival):
    r"""M3MIML: a maximum margin for every label, over the bags' instances themselves.

    A bag's score is that of its best instance, :math:`f_l(\mathcal X) = \max_{x \in \mathcal X} w_l \cdot x + b_l`, and should be above 1
    for the bag's labels and below -1 for the others. Below -1 means so for every instance. Above 1 is not convex; the authors ask more,
    that the *mean* instance :math:`\bar x_i`, which never scores above the best one, be above. With :math:`S_l` the bags that can have
    label l,

    .. math::

        \min_{w, b}\ P = \sum_l \Big( \frac12\|w_l\|^2 + C \sum_{i \in S_l} [1 - (w_l \cdot \bar x_i + b_l)]_+
                + C \sum_{i \notin S_l} \sum_{m} [1 + (w_l \cdot x_{i,m} + b_l)]_+ \Big)

    .. math::

        \max_{\alpha, \beta}\ D = \sum_l \Big( \sum_{i \in S_l} \alpha_{il} + \sum_{i \notin S_l} \sum_m \beta_{iml}
        - \frac12\|w_l\|^2 \Big), \quad w_l = \sum_{i \in S_l} \alpha_{il} \bar x_i - \sum_{i \notin S_l} \sum_m \beta_{iml} x_{i,m}, \\
        0 \le \alpha, \beta \le C, \qquad \sum_{i \in S_l} \alpha_{il} = \sum_{i \notin S_l} \sum_m \beta_{iml} .

    No constraint joins two labels, so that each has a problem of its own.

    Parameters
    ----------
    C : float > 0, default 1.0
    class_weight : None or "balanced"
        Balanced: the positive bags and the negative instances of each label have the same total weight. The paper has none; negative
        instances outnumber positive bags by far, so that often w = 0 is the paper's optimum, and balanced is the stronger rival.
    tol, max_iter, n_jobs
        See `CLSVM`.

    Attributes
    ----------
    classes_, coef_, intercept_, duality_gap_, n_iter_, n_features_in_
        See `CLSVM`.
    primal_objective_, dual_objective_ : float
        P at the solution, and D at a feasible point: a lower bound on the least P.
    null_, trained_
        See `MIMLSVM`.

    Raises
    ------
    TypeError
        If `candidates` is no CandidateSet.
    ValueError
        If X has not one row per instance of the candidates, or holds NaN, or the candidates have more than one attribute.

    Notes
    -----
    The authors solve the dual by Frank and Wolfe's method, a linear program over all labels in each step, on kernels between all instances;
    the thesis therefore ran it on its small problems only. Here every label's problem is solved in primal and dual by an
    interior-point method, until the duality gap certifies `tol`; nothing of size n x n is made. Time 10 to 40 steps of n n_features^2
    operations for each label; memory 8 n n_features bytes for each thread. 10,000 instances in 2500 bags with 200 features and 26 labels
    take 3 to 5 seconds on one core.

    Null has no classifier and score 0, as for `MIMLSVM`. A label of every bag has w = 0 and b = 1, one of no bag b = -1.

    References
    ----------
    M.-L. Zhang, Z.-H. Zhou: M3MIML: A maximum margin method for multi-instance multi-label learning, ICDM 2008; thesis 5.5. The dual and
    its bounds are those of the authors' published program.
    """

    def __init__(self, C=1.0, *, class_weight=None, tol=1e-5, max_iter=200, n_jobs=None):
        self.C = C
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs

    def fit(self, X, candidates):
        """Train.

        Parameters
        ----------
        X : array-like, shape (n, n_features)
            Instances of all bags, bag after bag.
        candidates : CandidateSet
            Of the same bags, with one attribute.

        Returns
        -------
        self
        """
        with unchanged_on_error(self):
            X, labels = self._start(X, candidates)
            rows, basis = reduced(X)
            means = np.add.reduceat(rows, candidates.bag_starts[:-1], axis=0) / candidates.bag_sizes[:, None]
            n_labels = labels.shape[1]
            self.coef_, self.intercept_ = (
                np.zeros((n_labels, X.shape[1])),
                np.where(labels.all(axis=0), 1.0, NEVER),
            )
            self.duality_gap_, self.n_iter_ = np.full(n_labels, np.nan), np.zeros(n_labels, dtype=int)
            self.primal_objective_ = self.dual_objective_ = 0.0
            to_train = np.flatnonzero(labels.any(axis=0) & ~labels.all(axis=0))
            problems = [self._problem(rows, means, labels[:, k], candidates.bag_of) for k in to_train]
            for k, fit in zip(to_train, self._solve_all(problems), strict=True):
                self.coef_[k], self.intercept_[k] = expanded(fit.coef, basis), fit.intercept
                self.duality_gap_[k], self.n_iter_[k] = fit.gap, fit.n_iter
                self.primal_objective_ += fit.primal
                self.dual_objective_ += fit.dual
        return self

    def _problem(self, rows, means, positive, bag_of):
        def solve():
            stacked = np.vstack([means[positive], rows[~positive[bag_of]]])
            signs = np.ones(len(stacked))
            signs[np.count_nonzero(positive) :] = -1.0
            weights = _side_weights(self.class_weight, signs)
            return linear_svm(
                stacked, signs, float(self.C), weights=weights, tol=self.tol, max_iter=self.max_iter
            )

        return solve

    def _bag_scores(self, X, starts):
        return np.maximum.reduceat(X @ self.coef_.T + self.intercept_, starts[:-1], axis=0)

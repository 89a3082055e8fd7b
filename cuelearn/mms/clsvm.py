"""CL-SVM (thesis 5.5)."""

import numpy as np

from cuelearn.mms.rivals import Rival, documented_rival, expanded, reduced

__all__ = ["CLSVM"]


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
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(3, size=(60, 2))
    >>> X = np.eye(3)[y.ravel()] + 0.1 * rng.standard_normal((120, 3))
    >>> pairs = CandidateSet([[row, row[::-1]] for row in y])  # which of the two is which is not known
    >>> model = CLSVM(C=10.0).fit(X, pairs)
    >>> bool(model.score(X, y.ravel()) > 0.95), bool(model.score(X, y.ravel(), pairs) == 1.0)
    (True, True)
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
        coefs, intercepts, gaps, steps = zip(*solved, strict=True)
        self.coef_ = self._one([expanded(coef, basis) for coef in coefs])
        self.intercept_, self.duality_gap_, self.n_iter_ = map(
            self._one, map(list, (intercepts, gaps, steps))
        )
        self.trained_ = self._one([mask.any(axis=0) for mask in masks])
        self.classes_ = self._one(list(candidates.classes))

    def _scores(self, X):
        return self._linear_scores(self._check_new(X))

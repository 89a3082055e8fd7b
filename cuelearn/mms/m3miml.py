"""M3MIML (thesis 5.5)."""

import numpy as np

from cuelearn.mms.rivals import BagRival, documented_rival, expanded, reduced

__all__ = ["M3MIML"]


@documented_rival
class M3MIML(BagRival):
    r"""M3MIML: a maximum margin for every label, on the bags' instances.

    A bag scores as its best instance, :math:`f_l(\mathcal X) = \max_{x \in \mathcal X} w_l \cdot x + b_l`,
    and should score above 1 for its labels and below -1 for others. The latter is a condition on every
    instance; the former is not convex, so the authors impose it on the *mean* instance :math:`\bar x_i`,
    which never scores above the best. With :math:`S_l` the bags that can have label l,

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
    The authors' program solves the dual by five Frank-Wolfe steps on kernels between all instances. Here an
    interior-point method solves every label's problem until the duality gap certifies `tol`: 10 to 40 steps
    of n n_features^2 operations, 8 n n_features bytes per thread.

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
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(3, size=(60, 2))
    >>> X = np.eye(3)[y.ravel()] + 0.1 * rng.standard_normal((120, 3))
    >>> pairs = CandidateSet([[row, row[::-1]] for row in y])  # which of the two is which is not known
    >>> model = M3MIML(C=10.0).fit(X, pairs)
    >>> bool(model.score(X, y.ravel(), pairs) > 0.9)
    True
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

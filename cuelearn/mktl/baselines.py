"""Baselines of transfer: none, the priors alone, and both with equal weights.

All are one-against-rest SVMs with hinge loss and bias.
"""

import numpy as np

from cuelearn.core.estimator import parameters
from cuelearn.core.linear_svm import linear_svm
from cuelearn.kernels.rows import combined_kernel
from cuelearn.mkl.rivals.svm import one_versus_rest, problem_weights, targets_of
from cuelearn.mktl.base import TransferClassifier, documented

__all__ = ["AverageTL", "NoTransfer", "PriorFeatures"]


@parameters
class OneSVM(TransferClassifier):
    """Base: one SVM per class on the mean kernel, which includes the scores if `averages_scores`."""

    memory: float = 2e9
    n_jobs: object = None

    averages_scores = False

    def _train(self, labels, S, sample_weight):
        n_kernels = self.bank_.n_kernels
        n_classes = self.classes_.size
        share = 1.0 / (n_kernels + (S.shape[1] if self.averages_scores else 0))
        weights = np.full(n_kernels, share)
        transfer = np.zeros((n_classes, S.shape[1]))
        kernel = combined_kernel(self.bank_, weights, 1.0)
        if self.averages_scores:  # not by BLAS, whose sums may depend on its threads
            kernel += share * np.einsum("ik,jk->ij", S, S)
        targets = targets_of(labels, n_classes)
        losses = problem_weights(targets, sample_weight, self.class_weight, self.classes_, labels)
        coef, bias = one_versus_rest(kernel, labels, n_classes, self.C, self.n_jobs, losses)
        if self.averages_scores:
            transfer = share * np.einsum("ic,ik->ck", coef, S)
        self._set(coef, weights, transfer, bias)


@documented
class NoTransfer(OneSVM):
    r"""SVM on the kernels of the new samples alone; scores of priors are read but not used.

    .. math:: \min_{w,b} \frac12\|w\|^2 + C \sum_i \big[1 - y_i (w\cdot\phi(x_i) + b)\big]_+
        \quad\text{with}\quad \phi\cdot\phi' = \frac1{F_0} \sum_j k_j , \quad y_i = \pm1 ,

    one class against the rest: `cuelearn.mkl.AverageKernelSVM` with the arguments of the transfer learners.
    A method below it has negative transfer.

    Parameters
    ----------
    $kernels $priors $C $class_weight $scaling $normalize $memory $n_jobs

    Attributes
    ----------
    $classes_ $dual_coef_ $support_ $kernel_weights_ $prior_names_ $score_scale_ $intercept_
    transfer_weights_ : ndarray, shape (n_classes, K)
        Zeros.

    Notes
    -----
    Cost: libsvm's n^2 to n^3 operations per class; one n x n matrix in float64.

    References
    ----------
    "No-Transfer" of thesis 6.5; libsvm through scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> from cuelearn.mktl import NoTransfer
    >>> y = np.arange(60) % 3
    >>> X = np.eye(3)[y] + 0.2 * np.random.default_rng(0).normal(size=(60, 3))
    >>> NoTransfer().fit(X, y).score(X, y)
    1.0
    """


@documented
@parameters
class PriorFeatures(TransferClassifier):
    r"""Linear SVM on the scores of the priors alone; the kernels are not used.

    .. math:: \min_{v,b} \frac12\|v\|^2 + C \sum_i \big[1 - y_i (v\cdot s_i + b)\big]_+ , \quad y_i = \pm1 ,

    with :math:`s_i` the scaled scores of all priors on sample i (at least one column), one class against the
    rest.

    Parameters
    ----------
    $kernels $priors $C $class_weight $scaling $normalize $memory

    Attributes
    ----------
    $classes_ $dual_coef_ $support_ $prior_names_ $score_scale_ $intercept_
    kernel_weights_ : ndarray, shape (n_kernels,)
        Zeros.
    transfer_weights_ : ndarray, shape (n_classes, K)
        The hyperplanes v.

    Notes
    -----
    Cost: some twenty interior-point steps of O(n K^2) operations per class for any C; libsvm, used in the
    thesis, needs minutes at C = 1000 for the same hyperplane. If the optimal biases form an interval, the
    bias may differ from libsvm's.

    References
    ----------
    "Prior-Features" of thesis 6.5; after the classemes of Torresani, Szummer, Fitzgibbon, ECCV 2010.

    Examples
    --------
    Each new class has a prior that resembles it:

    >>> import numpy as np
    >>> from cuelearn.mktl import PriorFeatures
    >>> y = np.arange(60) % 3
    >>> X = np.eye(3)[y] + 0.2 * np.random.default_rng(0).normal(size=(60, 3))
    >>> model = PriorFeatures(priors=[("resemblance", "passthrough")]).fit(X, y)
    >>> model.transfer_weights_.argmax(axis=1), float(model.score(X, y))
    (array([0, 1, 2]), 1.0)
    """

    memory: float = 2e9

    _uses_kernels = False

    def _train(self, labels, S, sample_weight):
        if S.shape[1] == 0:
            raise ValueError(
                "PriorFeatures needs at least one column of scores: pass priors, or scores to fit"
            )
        machines = []
        coefs = []
        targets = targets_of(labels, self.classes_.size)
        losses = problem_weights(targets, sample_weight, self.class_weight, self.classes_, labels)
        for k, target in enumerate(targets):
            signs = np.where(target, 1.0, -1.0)
            if losses is None:
                weights = np.ones(labels.size)
            else:
                weights = losses[k]
            kept = np.flatnonzero(weights)
            machines.append(linear_svm(S[kept], signs[kept], self.C, weights=weights[kept], tol=1e-8))
            coefs.append(np.zeros(labels.size))
            coefs[k][kept] = signs[kept] * machines[k].dual_coef
        transfer = np.array([machine.coef for machine in machines])
        bias = np.array([machine.intercept for machine in machines])
        self._set(np.array(coefs).T, np.zeros(self.bank_.n_kernels), transfer, bias)


@documented
class AverageTL(OneSVM):
    r"""SVM on the mean of all kernels: those of the new samples, and a linear one per column of scores.

    .. math:: \min_{w,b} \frac12\|w\|^2 + C \sum_i \big[1 - y_i (w\cdot\phi(x_i) + b)\big]_+
        \quad\text{with}\quad
        \phi\cdot\phi' = \frac1{F_0 + K} \Big( \sum_{j=1}^{F_0} k_j + \sum_{z=1}^K s_z s_z' \Big), \quad
        y_i = \pm1 ,

    one class against the rest; :math:`s_z` is the scaled score of prior z. More priors reduce the weight of
    the sample's own kernels. Without scores this is `NoTransfer`.

    Parameters
    ----------
    $kernels $priors $C $class_weight $scaling $normalize $memory $n_jobs

    Attributes
    ----------
    $classes_ $dual_coef_ $support_ $prior_names_ $score_scale_ $intercept_
    kernel_weights_ : ndarray, shape (n_kernels,)
        All 1/(F0 + K).
    transfer_weights_ : ndarray, shape (n_classes, K)
        The hyperplanes in the scores.

    Notes
    -----
    Cost: libsvm's n^2 to n^3 operations per class; one n x n matrix in float64.

    References
    ----------
    "Average-TL" of thesis 6.5; averaging as a rival of learned weights: Gehler, Nowozin, ICCV 2009.

    Examples
    --------
    >>> import numpy as np
    >>> from cuelearn.mktl import AverageTL
    >>> y = np.arange(60) % 3
    >>> X = np.eye(3)[y] + 0.2 * np.random.default_rng(0).normal(size=(60, 3))
    >>> model = AverageTL(priors=[("resemblance", "passthrough")]).fit(X, y)
    >>> model.kernel_weights_, float(model.score(X, y))
    (array([0.25]), 1.0)
    """

    averages_scores = True

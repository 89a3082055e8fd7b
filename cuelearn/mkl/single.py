r"""One kernel only: the average of all, or the best of them. SVM in batch, Passive-Aggressive online.

The baselines of the thesis's figures 4.3 to 4.8: what a method that learns kernel weights has to beat.
"""

import contextlib
import sys
from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed
from numba import njit
from sklearn import config_context
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import SVC
from tqdm.auto import tqdm

from cuelearn.core.checks import as_generator, check_count, check_positive
from cuelearn.core.losses import competitor
from cuelearn.core.progress import BAR_AFTER
from cuelearn.mkl.base import KernelClassifier, two_columns
from cuelearn.mkl.multilabel import MultiLabelMKL, is_indicator
from cuelearn.mkl.problem import combined_kernel
from cuelearn.mkl.training import History, draw_order

try:
    from sklearn.svm import _libsvm
except ImportError:
    _libsvm = None

__all__ = ["AverageKernelSVM", "BestKernelSVM", "KernelPA", "passive_aggressive"]


def cross_validated_accuracy(bank, labels, fit_scores, n_folds, seed):
    """Mean accuracy of every kernel alone over stratified folds.

    Parameters
    ----------
    bank : KernelBank
    labels : ndarray of int
    fit_scores : callable(kernel_train, labels_train, kernel_test) -> ndarray (n_test, n_classes)
    n_folds : int
    seed : int

    Returns
    -------
    ndarray, shape (n_kernels,)
    """
    smallest = np.bincount(labels).min()
    if smallest < 2:
        raise ValueError(
            "y must hold at least 2 samples of every class to choose a kernel by cross-validation"
        )
    folds = list(
        StratifiedKFold(min(n_folds, smallest), shuffle=True, random_state=seed).split(labels, labels)
    )
    accuracy = np.zeros(bank.n_kernels)
    for j in tqdm(
        range(bank.n_kernels), desc="choosing a kernel", delay=BAR_AFTER, leave=False, file=sys.stderr
    ):
        kernel = combined_kernel(bank.select([j]), np.ones(1), 1.0)
        for train, test in folds:
            scores = fit_scores(kernel[np.ix_(train, train)], labels[train], kernel[np.ix_(test, train)])
            accuracy[j] += np.mean(np.argmax(scores, axis=1) == labels[test]) / len(folds)
    return accuracy


class BinarySVM(NamedTuple):
    """A trained binary SVM: support samples, their signed coefficients, bias, iterations of libsvm."""

    support: np.ndarray
    coef: np.ndarray
    intercept: float
    n_iter: int


def fit_svc(kernel, target, C, tol=1e-3, weights=None):
    """libsvm on a kernel matrix that was checked before.

    Around a small SVM the checks of scikit-learn's `SVC` take ten times as long as libsvm itself; methods that train hundreds of them
    would be timed by that. So the routine below `SVC` is called, and `SVC` where that routine has changed.

    Parameters
    ----------
    kernel : ndarray of float64, shape (n, n), C-contiguous
    target : ndarray, shape (n,)
        Two values; the larger one is the positive class.
    C, tol : float
    weights : ndarray of float > 0, shape (n,), optional
        Factors on C.

    Returns
    -------
    BinarySVM
        Same bits as `SVC`.
    """
    low, high = target.min(), target.max()
    if _libsvm is not None and low < high:
        with contextlib.suppress(AttributeError, TypeError, ValueError):
            _libsvm.set_verbosity_wrap(0)
            signs = (target == high).astype(np.float64)
            options = {
                "svm_type": 0,
                "kernel": "precomputed",
                "C": float(C),
                "tol": float(tol),
                "cache_size": 1000.0,
                "class_weight": np.ones(2),
            }
            if weights is not None:
                options["sample_weight"] = np.ascontiguousarray(weights, dtype=np.float64)
            support, _, _, coef, intercept, *_, n_iter = _libsvm.fit(kernel, signs, **options)
            return BinarySVM(support, -coef[0], -float(intercept[0]), int(np.ravel(n_iter)[0]))
    with config_context(assume_finite=True, skip_parameter_validation=True):
        machine = SVC(C=C, kernel="precomputed", tol=tol, cache_size=1000).fit(
            kernel, target, sample_weight=weights
        )
    return BinarySVM(
        machine.support_, machine.dual_coef_[0], float(machine.intercept_[0]), int(machine.n_iter_[0])
    )


def balance_weights(target):
    """Weights n / (2 n_side) of the samples, for the zeros and the ones of a target: scikit-learn's "balanced"."""
    positive = np.asarray(target) > 0
    n, n_positive = positive.size, int(np.count_nonzero(positive))
    return np.where(positive, n / (2.0 * max(1, n_positive)), n / (2.0 * max(1, n - n_positive)))


def one_versus_rest(kernel, labels, n_classes, C, n_jobs=None, weights=None):
    """One SVM with bias per class against the rest; `weights` makes weights of the samples of a target (`balance_weights`).

    Returns
    -------
    dual_coef : ndarray, shape (n, n_classes)
    intercept : ndarray, shape (n_classes,)
        For two classes one SVM, whose decision value is the difference of the two columns.
    """
    if n_classes == 2:
        column, bias = svms_of(kernel, [labels], C, n_jobs, weights)
        return two_columns(column), two_columns(bias)
    return svms_of(kernel, [(labels == c).astype(int) for c in range(n_classes)], C, n_jobs, weights)


def svms_of(kernel, targets, C, n_jobs=None, weights=None):
    """One SVM with bias for each target of zeros and ones.

    Returns
    -------
    dual_coef : ndarray, shape (n, n_targets)
    intercept : ndarray, shape (n_targets,)
    """
    n = kernel.shape[0]

    def one(target):
        svm = fit_svc(kernel, target, C, weights=None if weights is None else weights(target))
        column = np.zeros(n)
        column[svm.support] = svm.coef
        return column, svm.intercept

    if n_jobs in (None, 1):
        fits = map(one, targets)  # starting a pool takes longer than a small SVM
    else:
        fits = Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator")(
            delayed(one)(target) for target in targets
        )
    fits = list(
        tqdm(
            fits,
            total=len(targets),
            desc="one class against the rest",
            delay=BAR_AFTER,
            leave=False,
            file=sys.stderr,
        )
    )
    return np.stack([f[0] for f in fits], axis=1), np.array([f[1] for f in fits])


class AverageKernelSVM(MultiLabelMKL):
    r"""SVM on the unweighted mean of the kernels, one class against the rest.

    .. math:: \min_{w,b} \frac12\|w\|^2 + C \sum_i [1 - y_i (w\cdot\phi(x_i) + b)]_+ \quad\text{with}\quad
              \phi\cdot\phi' = \frac1F \sum_j k_j

    Parameters
    ----------
    kernels : list of (name, kernel, columns), "precomputed" or None
        See `OM2`.
    C : float > 0, default 1.0
    normalize : bool, default True
    memory : float, default 2e9
    n_jobs : int or None
        Threads over classes.

    Attributes
    ----------
    classes_, dual_coef_, support_, kernel_weights_, intercept_
    skipped_classes_ : ndarray of int
        Classes of an indicator matrix without positive or without negative samples.
    history_ : DataFrame
        One row, for the whole training: step, seconds (of combining the kernels and solving the SVMs), n_updates (SVMs solved),
        n_support, objective (of the problem above, summed over the classes).
    path_ : ndarray, shape (2, n_kernels)
        Kernel weights at the start and at the end, for curves over time next to those of methods that learn them: here twice the same.

    References
    ----------
    "Average Kernel" of thesis 4.4.5 and JMLR 5; libsvm through scikit-learn.
    """

    def __init__(self, kernels=None, *, C=1.0, normalize=True, memory=2e9, n_jobs=None):
        self.kernels = kernels
        self.C = C
        self.normalize = normalize
        self.memory = memory
        self.n_jobs = n_jobs

    def fit(self, X, y):
        """Train.

        Parameters
        ----------
        X : array-like, shape (n, n_features), or (n_kernels, n, n) for precomputed kernels, or a KernelBank
        y : array-like, shape (n,) or (n, n_classes)
            Class labels, or an indicator matrix.

        Returns
        -------
        self
        """
        C = check_positive("C", self.C)
        labels = self._start(X, y)
        signs = self._problem_signs(labels)
        history = History()
        weights = self._choose_weights(labels)
        kernel = combined_kernel(self.bank_, weights, 1.0)
        coef, bias = svms_of(kernel, (signs > 0.0).astype(int), C, self.n_jobs)
        history.pause()
        self._keep_problems(coef, weights, bias)
        scores = kernel @ coef
        losses = np.maximum(0.0, 1.0 - signs.T * (scores + bias)).sum()
        history.add(
            stage="batch",
            step=1,
            epoch=1,
            seconds=history.seconds,
            n_updates=len(signs),
            n_support=self.support_.size,
            objective=float(0.5 * np.sum(coef * scores) + C * losses),
        )
        self.history_, self.path_ = history.frame().dropna(axis=1, how="all"), np.stack([weights, weights])
        return self

    def _choose_weights(self, labels):
        return np.full(self.bank_.n_kernels, 1.0 / self.bank_.n_kernels)


class BestKernelSVM(AverageKernelSVM):
    """SVM on the single kernel with the best cross-validated accuracy.

    Parameters
    ----------
    kernels, C, normalize, memory, n_jobs
        See `AverageKernelSVM`.
    cv : int, default 5
        Stratified folds for the choice; fewer where a class has fewer samples.
    random_state : int, default 0
        Of the folds.

    Attributes
    ----------
    best_kernel_ : str
        Name of the chosen kernel; ties go to the first.
    kernel_accuracy_ : ndarray, shape (n_kernels,)
        Cross-validated accuracy of every kernel.
    history_, path_
        As of `AverageKernelSVM`: the seconds are with the choice, n_updates counts the SVMs on the chosen kernel.
    """

    def __init__(self, kernels=None, *, C=1.0, cv=5, normalize=True, memory=2e9, n_jobs=None, random_state=0):
        super().__init__(kernels, C=C, normalize=normalize, memory=memory, n_jobs=n_jobs)
        self.cv = cv
        self.random_state = random_state

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = False
        return tags

    def _check_labels(self, y):
        super()._check_labels(y)
        if is_indicator(y):
            raise ValueError(
                "y must be class labels to choose a kernel by cross-validated accuracy, got an indicator matrix"
            )

    def _choose_weights(self, labels):
        n_classes = self.classes_.size

        def fit_scores(train, labels_train, test):
            coef, bias = one_versus_rest(
                np.ascontiguousarray(train), labels_train, n_classes, self.C, self.n_jobs
            )
            return test @ coef + bias

        seed = int(as_generator(self.random_state).integers(2**31 - 1))
        self.kernel_accuracy_ = cross_validated_accuracy(
            self.bank_, labels, fit_scores, check_count("cv", self.cv, 2), seed
        )
        best = int(np.argmax(self.kernel_accuracy_))
        self.best_kernel_ = self.bank_.names[best]
        return np.eye(self.bank_.n_kernels)[best]


@njit(cache=True)
def passive_aggressive(kernel, labels, order, aggressiveness, coef, scores, mistakes):
    r"""One pass of multiclass PA-I on one kernel.

    On a visit with loss, :math:`\tau = \min\{C, \ell / (2 k(x_i, x_i))\}` is added to the label's coefficient and taken from the
    rival's; a sample with :math:`k(x_i, x_i) = 0` cannot change anything and is passed over.

    Parameters
    ----------
    kernel : ndarray, shape (n, n)
    labels, order : ndarray of int
    aggressiveness : float
        C of PA-I.
    coef : ndarray, shape (n_classes, n)
        Changed in place.
    scores : ndarray, shape (n_classes, n)
        ``coef @ kernel``, kept up to date.
    mistakes : ndarray of bool
        Receives the 0/1 sequence.

    Returns
    -------
    int
        Updates.

    References
    ----------
    Crammer, Dekel, Keshet, Shalev-Shwartz, Singer (2006), sections 3 and 8.
    """
    n_updates = 0
    here = np.empty(coef.shape[0])
    for position in range(order.shape[0]):
        i = order[position]
        for c in range(here.shape[0]):
            here[c] = scores[c, i]
        rival, margin = competitor(here, labels[i])
        mistakes[position] = margin <= 0.0
        if margin >= 1.0 or kernel[i, i] <= 0.0:
            continue
        step = min(aggressiveness, (1.0 - margin) / (2.0 * kernel[i, i]))
        coef[labels[i], i] += step
        coef[rival, i] -= step
        up, down, row = scores[labels[i]], scores[rival], kernel[i]
        for k in range(row.shape[0]):
            up[k] += step * row[k]
            down[k] -= step * row[k]
        n_updates += 1
    return n_updates


class KernelPA(KernelClassifier):
    r"""Multiclass Passive-Aggressive (PA-I) on one kernel: the average of the cues, or the best of them.

    Parameters
    ----------
    kernels : list of (name, kernel, columns), "precomputed" or None
        See `OM2`.
    kernel : "average", "best", int or str, default "average"
        Which kernel to learn on; "best" is the one with the best cross-validated accuracy of PA-I itself; an index or a name
        chooses one.
    C : float > 0, default 1.0
        Aggressiveness: the largest step.
    n_epochs : int, default 1
    cv : int, default 5
        Folds for ``kernel="best"``.
    shuffle : bool, default False
        Permute the first pass too; later passes always are.
    normalize : bool, default True
    memory : float, default 2e9
    random_state : int, Generator or None

    Attributes
    ----------
    classes_, dual_coef_, support_, kernel_weights_, n_updates_, online_errors_
    best_kernel_ : str
        With ``kernel="best"``.

    References
    ----------
    Crammer, Dekel, Keshet, Shalev-Shwartz, Singer, JMLR 7 (2006); thesis 4.3.4.
    """

    def __init__(
        self,
        kernels=None,
        *,
        kernel="average",
        C=1.0,
        n_epochs=1,
        cv=5,
        shuffle=False,
        normalize=True,
        memory=2e9,
        random_state=None,
    ):
        self.kernels = kernels
        self.kernel = kernel
        self.C = C
        self.n_epochs = n_epochs
        self.cv = cv
        self.shuffle = shuffle
        self.normalize = normalize
        self.memory = memory
        self.random_state = random_state

    def fit(self, X, y):
        """Train in passes over the data.

        Parameters
        ----------
        X : array-like, shape (n, n_features), or (n_kernels, n, n) for precomputed kernels, or a KernelBank
        y : array-like, shape (n,)

        Returns
        -------
        self
        """
        C, n_epochs = check_positive("C", self.C), check_count("n_epochs", self.n_epochs)
        labels = self._start(X, y)
        rng = as_generator(self.random_state)
        weights = self._choose_weights(labels, C, n_epochs, rng)
        orders = [
            draw_order(labels.size, rng, shuffle=self.shuffle or epoch > 0) for epoch in range(n_epochs)
        ]
        coef, self.n_updates_, self.online_errors_ = self._pass(
            combined_kernel(self.bank_, weights, 1.0), labels, orders, C
        )
        self._keep(coef, weights)
        return self

    def _pass(self, kernel, labels, orders, C):
        coef, scores = (
            np.zeros((self.classes_.size, labels.size)),
            np.zeros((self.classes_.size, labels.size)),
        )
        errors, n_updates = [], 0
        for order in orders:
            mistakes = np.zeros(order.size, dtype=np.bool_)
            n_updates += passive_aggressive(kernel, labels, order, C, coef, scores, mistakes)
            errors.append(mistakes)
        return coef.T.copy(), n_updates, np.concatenate(errors)

    def _choose_weights(self, labels, C, n_epochs, rng):
        n_kernels = self.bank_.n_kernels
        if isinstance(self.kernel, (int, np.integer)) and not isinstance(self.kernel, bool):
            if not 0 <= self.kernel < n_kernels:
                raise ValueError(f"kernel must be an index below {n_kernels}, got {self.kernel}")
            return np.eye(n_kernels)[self.kernel]
        if self.kernel == "average":
            return np.full(n_kernels, 1.0 / n_kernels)
        if self.kernel in self.bank_.names:
            return np.eye(n_kernels)[self.bank_.names.index(self.kernel)]
        if self.kernel != "best":
            raise ValueError(
                f"kernel must be 'average', 'best', an index or one of {self.bank_.names}, got {self.kernel!r}"
            )
        seed = int(rng.integers(2**31 - 1))

        def fit_scores(train, labels_train, test):
            fold_rng = np.random.default_rng(seed)
            orders = [fold_rng.permutation(labels_train.size) for _ in range(n_epochs)]
            return test @ self._pass(np.ascontiguousarray(train), labels_train, orders, C)[0]

        self.kernel_accuracy_ = cross_validated_accuracy(
            self.bank_, labels, fit_scores, check_count("cv", self.cv, 2), seed
        )
        best = int(np.argmax(self.kernel_accuracy_))
        self.best_kernel_ = self.bank_.names[best]
        return np.eye(n_kernels)[best]

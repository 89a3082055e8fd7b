r"""OM-2: online multiclass multi-kernel learning (thesis Algorithm 4)."""

import numpy as np
from sklearn.utils.validation import validate_data

from cuelearn.core.checks import check_count, classes_of_stream, labels_within
from cuelearn.kernels import KernelBank
from cuelearn.mkl.base import StochasticMKL
from cuelearn.mkl.problem import MKLProblem
from cuelearn.mkl.rules import OM2 as OM2_RULE
from cuelearn.mkl.stream import Stream
from cuelearn.mkl.training import Training

__all__ = ["OM2", "solve_om2"]


def solve_om2(problem, *, n_epochs=1, until_no_loss=False, **options):
    r"""Run OM-2 over whole epochs.

    With the regulariser :math:`h(\bar w) = \frac q2 \|\bar w\|_{2,p}^2` (the paper's :math:`\lambda/2` is a misprint; its gradient
    shows it) each visit with loss does :math:`\bar\theta \leftarrow \bar\theta - \eta_t \bar z_t` with :math:`\eta_t` of equation 4.5
    and :math:`w^j = \frac1q (\|\theta^j\| / \|\bar\theta\|_{2,q})^{q-2} \theta^j`.

    Parameters
    ----------
    problem : MKLProblem
    n_epochs : int >= 1
        One pass is the online algorithm; more cycle through the samples in fresh permutations.
    until_no_loss : bool
        End after an epoch without an update.
    **options
        See `Training`.

    Returns
    -------
    Result

    References
    ----------
    Thesis Algorithm 4, equations 4.4 and 4.5, theorem 4.1; Jie, Orabona, Fornoni, Caputo, Cesa-Bianchi (2010), Algorithm 1.
    """
    n_epochs = check_count("n_epochs", n_epochs)
    training = Training(problem, name="OM-2", long_run=n_epochs > 1, **options)
    training.run_stage("online", OM2_RULE, n_epochs, until_no_loss=until_no_loss)
    return training.finish()


class OM2(StochasticMKL):
    r"""OM-2, online multi-kernel learning with a multiclass loss and a (2,p) group norm.

    Follow-the-regularised-leader with :math:`h(\bar w) = \frac q2\|\bar w\|_{2,p}^2`. On a visit whose margin over the best wrong
    class is below 1,

    .. math:: \bar\theta_{t+1} = \bar\theta_t - \eta_t \bar z_t, \qquad
              w^j = \frac1q \Big(\frac{\|\theta^j\|_2}{\|\bar\theta\|_{2,q}}\Big)^{q-2} \theta^j, \qquad
              \eta_t = \min\{1 + 2\,\bar w_t\cdot\bar z_t / \|\bar z_t\|_{2,q}^2,\; 1\}.

    Parameters
    ----------
    kernels : list of (name, kernel, columns), "precomputed" or None
        Cues, as in ColumnTransformer; None is one `RBF` over all columns. With "precomputed", X has shape (n_kernels, n, n).
    p : float in (1, 2] or "auto", default "auto"
        Group norm; towards 1 few kernels are used, 2 weighs all alike. "auto" is ``q = 2 ln F``.
    n_epochs : int, default 1
        Passes over the data. The given order is kept on the first (a stream), later ones are permuted.
    C, alpha : float
        Enter only the objective and the duality gap that are reported.
    loss : {"multiclass", "hinge"}, default "multiclass"
    tol : float or None
        Stop when the duality gap falls to `tol` times the objective.
    shuffle : bool, default False
        Permute the first pass too.
    measure : {"auto", "geometric", "every", "end"}, default "auto"
        When objective and gap are measured (a read of all kernel rows, with the clock stopped): after every epoch; after epochs 1,
        2, 3, 4, 6, 9, ...; at the end only; "auto" is "geometric" where `tol` is set, else "end".
    scores : {"auto", "recompute", "maintain"}, default "auto"
        How class scores are had: from the visited kernel rows, or from scores kept up to date for all samples; "auto" chooses.
        Results agree to rounding.
    normalize : bool, default True
        Scale kernels computed from X to unit diagonal; the bounds assume it.
    memory : float, default 2e9
        Bytes the kernel bank may hold.
    random_state : int, Generator or None
    callback : callable(estimator, step), optional
        Called after every epoch with the estimator at its present point (`kernel_weights_`, `history_`, ready to predict) and the
        number of visits; a true return value ends the run. The clock of `history_` stops meanwhile.
    verbose : bool, default True
        Show a progress bar on runs that take more than two seconds.

    Attributes
    ----------
    classes_, dual_coef_, support_, kernel_weights_, n_updates_, history_, objective_, dual_gap_, online_errors_
        See the package's README. `online_errors_` is the 0/1 sequence of mistakes over all visits.
    support_vectors_ : ndarray, shape (n_support, n_features)
        For kernels computed from X; `partial_fit` goes on from them.

    Notes
    -----
    Cost per visit: one read of the visited kernel rows, O(n F), independent of the number of classes. A tie counts as a mistake.

    References
    ----------
    Thesis Algorithm 4, theorem 4.1. Jie, Orabona, Fornoni, Caputo, Cesa-Bianchi: OM-2, OLCV 2010.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from cuelearn.kernels import RBF
    >>> from cuelearn.mkl import OM2
    >>> X, y = load_iris(return_X_y=True)
    >>> cues = [("sepal", RBF(), [0, 1]), ("petal", RBF(), [2, 3])]
    >>> model = OM2(kernels=cues, p=1.1, n_epochs=5, shuffle=True, random_state=0).fit(X, y)
    >>> bool(model.kernel_weights_[1] > model.kernel_weights_[0])
    True
    """

    def __init__(
        self,
        kernels=None,
        *,
        p="auto",
        n_epochs=1,
        C=1.0,
        alpha=0.0,
        loss="multiclass",
        tol=None,
        measure="auto",
        shuffle=False,
        normalize=True,
        memory=2e9,
        scores="auto",
        random_state=None,
        callback=None,
        verbose=True,
    ):
        self.kernels = kernels
        self.p = p
        self.n_epochs = n_epochs
        self.C = C
        self.alpha = alpha
        self.loss = loss
        self.tol = tol
        self.measure = measure
        self.shuffle = shuffle
        self.normalize = normalize
        self.memory = memory
        self.scores = scores
        self.random_state = random_state
        self.callback = callback
        self.verbose = verbose

    def fit(self, X, y):
        super().fit(X, y)
        if not self._is_precomputed():
            self.support_vectors_ = np.asarray(X)[self.support_]
        return self

    fit.__doc__ = StochasticMKL.fit.__doc__

    def _solve(self, problem, options):
        return solve_om2(problem, n_epochs=self.n_epochs, **options)

    def partial_fit(self, X, y, classes=None):
        """Go on learning from a batch, in the given order: the online algorithm proper.

        Only samples with a coefficient are kept. A ``gamma="mean"`` or ``"dim"`` is set by the first batch and stays; for a stream
        whose first batch is small, give numbers. Goes on from `fit` or a loaded model just as well.

        Parameters
        ----------
        X : array-like, shape (n, n_features)
            The batch. With precomputed kernels shape (n_kernels, n, n_seen + n): kernels of the batch with all samples seen so
            far, in order, and with itself.
        y : array-like, shape (n,)
        classes : array-like, optional
            All classes; needed at the first call.

        Returns
        -------
        self

        Notes
        -----
        Cost per sample: its kernel row against support and batch, and one visit. Objective and gap are not measured.
        """
        self.classes_, first = classes_of_stream(self, classes, fitted="dual_coef_")
        rows, diagonal, finish = self._batch_rows(X, first)
        n_batch, n_known = rows.shape[1], rows.shape[2] - rows.shape[1]
        y = np.asarray(y)
        if y.shape != (n_batch,):
            raise ValueError(f"y must have one label per sample, {n_batch}, got shape {y.shape}")
        labels = labels_within(y, self.classes_)
        bank = _BatchBank(rows, diagonal)
        known = np.zeros(n_known, dtype=np.int64)
        problem = MKLProblem(
            bank, np.concatenate([known, labels]), self.classes_.size, p=self.p, loss=self.loss
        )
        if first:  # nothing can fail from here on: a bad batch or parameter leaves the estimator as it was
            self.dual_coef_, self.support_ = np.zeros((0, self.classes_.size)), np.zeros(0, dtype=np.int64)
            self.block_norms_sq_ = np.zeros(rows.shape[0])
            self.n_updates_, self.n_seen_, self.online_errors_ = 0, 0, np.zeros(0, dtype=np.bool_)
        stream = Stream(
            problem, scores="recompute", start=(self.dual_coef_ / problem.factor, self.block_norms_sq_)
        )
        stream.start_stage(OM2_RULE)
        mistakes = stream.visit(np.arange(n_known, n_known + n_batch))

        coef, self.kernel_weights_ = stream.point()
        kept = np.flatnonzero(coef.any(axis=1))
        seen = np.concatenate([self.support_, self.n_seen_ + np.arange(n_batch)])
        self.support_, self.dual_coef_ = seen[kept], problem.factor * coef[kept]
        self.block_norms_sq_ = np.maximum(0.0, stream.norms_sq)
        self.n_updates_ += stream.n_updates
        self.n_seen_ += n_batch
        self.online_errors_ = np.concatenate([self.online_errors_, mistakes])
        self.p_, self.q_ = problem.p, problem.q
        finish(kept)
        return self

    def _batch_rows(self, X, first):
        """Kernel rows of a batch against the kept samples and itself, their diagonal, and what to do with the samples kept."""
        if self._is_precomputed():
            X = np.asarray(X)
            n_seen = 0 if first else self.n_seen_
            if X.ndim != 3 or X.shape[2] != n_seen + X.shape[1] or not np.isfinite(X).all():
                raise ValueError(
                    f"X must be finite, of shape (n_kernels, n, {n_seen} + n): the batch against all seen so far and itself; "
                    f"got shape {X.shape}"
                )
            if not first and X.shape[0] != self.kernel_weights_.size:
                raise ValueError(
                    f"X must hold {self.kernel_weights_.size} kernels, as before, got {X.shape[0]}"
                )
            known = np.zeros(0, dtype=np.int64) if first else self.support_
            columns = np.concatenate([known, n_seen + np.arange(X.shape[1])])
            diagonal = np.zeros((X.shape[0], columns.size))
            diagonal[:, known.size :] = np.diagonal(X[:, :, n_seen:], axis1=1, axis2=2)
            dtype = X.dtype if X.dtype in (np.float32, np.float64) else np.dtype(np.float64)

            def finish(kept):
                self.n_features_in_ = self.n_seen_
                vars(self).pop("bank_", None)  # of an earlier fit

            return np.ascontiguousarray(X[:, :, columns], dtype=dtype), diagonal, finish
        checked = validate_data(self, X, dtype=[np.float64, np.float32], reset=first)
        if first:
            bank = KernelBank(
                self.kernels, X if hasattr(X, "iloc") else checked, normalize=self.normalize, memory=0.0
            )
            n_known, samples = 0, checked
        else:
            n_known = self.support_vectors_.shape[0]
            samples = np.concatenate([self.support_vectors_, checked])
            bank = KernelBank(self.bank_.triples, samples, normalize=self.normalize, memory=0.0)
        rows = np.empty((bank.n_kernels, samples.shape[0] - n_known, samples.shape[0]), dtype=bank.dtype)
        bank.rows_into(np.arange(n_known, samples.shape[0]), rows)

        def finish(kept):
            self.support_vectors_ = samples[kept]
            self.bank_ = bank.restrict(kept if kept.size else [0], resident=False)
            self.bank_support_ = np.arange(kept.size)

        return rows, bank.diagonal, finish


class _BatchBank:
    """The rows of one batch in the form a `Stream` reads: they are at hand, the rows of earlier samples are never asked for."""

    resident = False
    memory = 0.0

    def __init__(self, rows, diagonal):
        self.batch = rows
        self.diagonal = diagonal
        self.dtype = rows.dtype
        self.n_kernels, self.n_batch, self.n_samples = rows.shape

    @property
    def rows_at_hand(self):
        """Flat rows, their place per sample, and the strides of a sample and of a kernel."""
        place = np.full(self.n_samples, -1)
        place[self.n_samples - self.n_batch :] = np.arange(self.n_batch)
        return self.batch.reshape(-1), place, self.n_samples, self.n_batch * self.n_samples

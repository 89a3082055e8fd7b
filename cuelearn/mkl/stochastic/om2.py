"""OM-2 (thesis Algorithm 4)."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from scipy.sparse import csr_array, issparse, vstack

from cuelearn.compiled import inlined, loop, njit
from cuelearn.core.docs import documented
from cuelearn.core.estimator import COUNT, parameters, validated
from cuelearn.core.query import Query, requested_labels, score_margin
from cuelearn.core.samples import (
    InputLike,
    classes_of_stream,
    labels_of,
    labels_within,
    loss_weights,
    visit_weights,
    warn_if_sorted,
)
from cuelearn.expect import expect
from cuelearn.kernels import RBF, FeatureScaleWarning
from cuelearn.kernels.features import taken
from cuelearn.kernels.matrices import check_batch, indefinite_batch, warn_indefinite, zero_blocks
from cuelearn.kernels.specifications import as_samples, check_first_batch, check_kernels, check_samples
from cuelearn.kernels.stack import new_kernels
from cuelearn.kernels.types import ArrayLike, SampleWeight
from cuelearn.mkl.base import StochasticMKL
from cuelearn.mkl.optimum.blocks import BlockProblem
from cuelearn.mkl.optimum.problem import MKLProblem, Result
from cuelearn.mkl.stochastic.blocks import BlockStream
from cuelearn.mkl.stochastic.training import Rows, Stream, Training, add_update, predict, refresh_link

#: Passes of a fit without a query.
N_EPOCHS = 5


class Batch:
    """Kernels of a batch with the kept samples and itself, `rows` (n_kernels, n_batch, n)."""

    resident = False
    memory = 0.0
    indefinite = {}  # `partial_fit` warns

    def __init__(self, rows, diagonal):
        self.rows = rows
        self.diagonal = diagonal
        self.n_kernels, _, self.n_samples = rows.shape
        self.dtype = rows.dtype


@njit(cache=True)
def om2_step_size(margin, gradient_norm_sq):
    """Thesis equation 4.5, for a margin below 1; clipped at 0 (kernels without unit diagonal)."""
    if gradient_norm_sq <= 0.0:
        return 0.0
    return max(0.0, min(1.0, 1.0 - 2.0 * margin / gradient_norm_sq))


@inlined
def learn_om2(i, rival, margin, run):
    if margin < 1.0:
        eta = om2_step_size(margin, run.samples.gradient_norm_sq[i])
        if eta > 0.0:
            add_update(i, rival, eta * run.samples.cost[i], run)
            refresh_link(0.0, run)


@loop
def visit_om2(order, start, mistakes, run):
    """Thesis Algorithm 4; returns the position where kernel rows are missing."""
    q = run.setting.q
    now = run.dual.now
    for position in range(start, order.shape[0]):
        i = order[position]
        rival, margin = predict(i, now.scale / q, run)
        if rival < 0:
            return position
        mistakes[position] = margin <= 0.0
        now.step += 1.0
        learn_om2(i, rival, margin, run)
    return order.shape[0]


@loop
def visit_om2_querying(order, start, mistakes, run, limits, queried):
    """`visit_om2`, where visit number t requests the label if the margin of the scores is at most
    ``limits[t]``; also returns where a requested label is unknown, -1."""
    q = run.setting.q
    now = run.dual.now
    for position in range(start, order.shape[0]):
        i = order[position]
        rival, margin = predict(i, now.scale / q, run)
        if rival < 0:
            return position
        visit = int(now.step)
        if run.setting.factor * now.scale / q * score_margin(run.work.scores) <= limits[visit]:
            if run.samples.labels[i] < 0:
                return position
            queried[visit] = True
            mistakes[position] = margin <= 0.0
            learn_om2(i, rival, margin, run)
        now.step += 1.0
    return order.shape[0]


def solve_om2(
    problem: MKLProblem,
    *,
    n_epochs: int = 1,
    until_no_loss: bool = False,
    query: Query | None = None,
    **options: Any,
) -> Result:
    """Run OM-2, see `OM2`; a `Result`.

    Parameters
    ----------
    problem : MKLProblem
    n_epochs : int >= 1
        Later passes permute the samples.
    until_no_loss : bool
        Stop after an epoch without an update.
    query : Query or None
        As in `OM2`; ``extra["queried"]`` has the visits whose label was requested.
    **options
        As in `solve_obscure`, without finish.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from cuelearn.kernels import KernelBank
    >>> from cuelearn.mkl import MKLProblem, solve_om2
    >>> X, y = load_iris(return_X_y=True)
    >>> bank = KernelBank([("sepal", "rbf", [0, 1]), ("petal", "rbf", [2, 3])], X)
    >>> result = solve_om2(MKLProblem(bank, y, 3, p=1.1), n_epochs=5, rng=np.random.default_rng(0))
    >>> int(result.kernel_weights.argmax())  # the petals
    1
    """
    n_epochs = expect("n_epochs", n_epochs, kind="whole", low=1)
    route = {"long_run": n_epochs > 1, "cost": problem.loss_weights}
    stage = {"n_epochs": n_epochs, "until_no_loss": until_no_loss}
    if query is not None:
        if options.get("tol") is not None:
            raise ValueError("tol must be None with a query: the duality gap needs all labels")
        options |= {"scores": "recompute", "measure": "end", "certify": False}
    training = Training(problem, name="OM-2", **route, **options)
    if query is None:
        training.run_stage("online", visit_om2, **stage)
        return training.finish()
    n_visits = training.stream.visited.size
    limits = query.limits(0, n_epochs * n_visits)
    queried = np.zeros(limits.size, dtype=np.bool_)
    training.run_stage("online", visit_om2_querying, limits, queried, **stage)
    queried = queried[: training.step]
    result = training.finish()
    mistakes = result.online_errors.reshape(-1, n_visits).sum(axis=1)
    result.history["online_error"] = mistakes / np.maximum(1, queried.reshape(-1, n_visits).sum(axis=1))
    result.extra["queried"] = queried
    return result


@documented
@parameters
class OM2(StochasticMKL):
    r"""OM-2, online multi-kernel learning with a multiclass loss and a (2,p) group norm.

    Follow-the-regularised-leader with :math:`h(\bar w) = \frac q2\|\bar w\|_{2,p}^2` (the paper's
    :math:`\lambda/2` is a misprint, as its gradient shows). If the margin over the best wrong class is below
    1,

    .. math:: \bar\theta_{t+1} = \bar\theta_t - \eta_t \bar z_t, \qquad
        w^j = \frac1q \Big(\frac{\|\theta^j\|_2}{\|\bar\theta\|_{2,q}}\Big)^{q-2} \theta^j, \qquad
        \eta_t = \min\{1 + 2\,\bar w_t\cdot\bar z_t / \|\bar z_t\|_{2,q}^2,\; 1\}.

    Parameters
    ----------
    $kernels $p
    n_epochs : int or None, default None
        Passes of `fit`; 1 is the algorithm of the theorem. The first keeps the given order, later ones are
        permuted. None: 5, with a `query` 1, since each pass asks anew. On ten sets of 89 to 400 samples the
        accuracy of 1, 5 and 20 passes was 79, 89 and 89% in the mean.
    C : float > 0, default 1.0
        Used only in the reported objective and duality gap.
    class_weight : None, "balanced" or dict, default None
        Factors on the updates of each class, like `sample_weight`; `partial_fit` rejects "balanced". The
        bound of theorem 4.1 then holds with mistakes and losses counted s times and :math:`q L^2 \|\bar
        u\|^2` multiplied by :math:`\max\{1, \max_t s_t\}`.
    $query
    $tol $shuffle $run

    Attributes
    ----------
    $classes_ $of_run_ $online_errors_ $visits_ $queried_ $n_queries_
    support_vectors_ : ndarray, shape (n_support, n_features)
        For kernels computed from X; `partial_fit` continues from them.

    See Also
    --------
    solve_om2 : The solver, on an `MKLProblem`.
    OBSCURE : Continues to the optimum, with a certified gap.

    Notes
    -----
    Cost per visit: one read of the visited kernel rows, O(n F) for any number of classes. A tie counts as a
    mistake.

    References
    ----------
    Thesis Algorithm 4, equations 4.4 and 4.5, theorem 4.1. Jie, Orabona, Fornoni, Caputo, Cesa-Bianchi: OM-2,
    OLCV 2010, Algorithm 1.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from cuelearn.mkl import OM2
    >>> from cuelearn.omcl import MarginQuery
    >>> X, y = load_iris(return_X_y=True)
    >>> cues = [("sepal", "rbf", [0, 1]), ("petal", "rbf", [2, 3])]
    >>> model = OM2(kernels=cues, p=1.1, n_epochs=5, shuffle=True, random_state=0).fit(X, y)
    >>> bool(model.kernel_weights_[1] > model.kernel_weights_[0])
    True

    A stream in which a label is looked up only on request:

    >>> import numpy as np
    >>> new = np.random.default_rng(0).permutation(150)
    >>> stream = OM2(cues, p=1.1, query=MarginQuery(0.1)).partial_fit(X[new], lambda i: y[new[i]], range(3))
    >>> bool(stream.n_queries_ < 120), bool(stream.score(X, y) > 0.9)
    (True, True)
    """

    _parameter_constraints = {"n_epochs": [*COUNT, None], "query": [Query, None]}

    n_epochs: int | None = None
    query: Query | None = None
    shuffle: bool = False

    _doubted = False  # whether a kernel was indefinite

    def _solve(self, problem, options):
        n_epochs = self.n_epochs or (N_EPOCHS if self.query is None else 1)
        warn_if_sorted(self, problem.labels, n_epochs)
        given = {"n_epochs": n_epochs, "query": self.query, "shuffle": self.shuffle}
        return solve_om2(problem, **given, **options)

    def _take_run(self, result):
        super()._take_run(result)
        self.queried_: np.ndarray = result.extra.get("queried", np.ones(self.visits_.size, dtype=np.bool_))

    @property
    def n_queries_(self) -> int:
        return int(self.queried_.sum())

    def _refuse_balanced(self):
        if self.class_weight == "balanced":
            raise ValueError(
                'class_weight must be None or a dict with a query and for partial_fit: "balanced" needs all y'
            )

    @validated
    def fit(self, X: InputLike, y: ArrayLike | None = None, sample_weight: SampleWeight = None) -> Self:
        """As in the other methods; `sample_weight` are factors on the updates."""
        if self.query is not None:
            self._refuse_balanced()
        super().fit(X, y, sample_weight)
        self._doubted = bool(self.bank_.indefinite)
        if not self._is_precomputed() and not self._takes_blocks():
            rows = taken(check_samples(X)[0], self.support_)
            self.support_vectors_: np.ndarray = self._checked(rows, ensure_min_samples=0)
        return self

    @validated
    def partial_fit(
        self, X: InputLike, y: ArrayLike, classes: ArrayLike | None = None, sample_weight: SampleWeight = None
    ) -> Self:
        """Continue training, also from `fit` or a loaded model, on a batch in the given order; returns self.

        Only samples with a coefficient are kept. The first batch fixes ``scale="mean"``: if it is small, pass
        numbers. Cost per sample: its kernel row against support and batch, and one visit; objective and gap
        are not computed.

        Parameters
        ----------
        X : array-like or sparse, shape (n, n_features)
            The batch. Precomputed kernels: shape (n_kernels, n, n_seen + n), the batch against all samples
            seen so far, in order, and itself; of one kernel also (n, n_seen + n).
        y : array-like, shape (n,), or callable
            With a `query` also a function of the position in the batch, called for requested labels only. If
            it raises, nothing of the batch is kept.
        classes : array-like, optional
            All classes; required at the first call.
        sample_weight : array-like of float >= 0, shape (n,), or None
            Factors on the updates; samples of weight 0 are not visited.
        """
        self.classes_, first = classes_of_stream(self, classes, fitted="dual_coef_")
        if first:
            self.dual_coef_ = np.zeros((0, self.classes_.size))
            self.block_norms_sq_ = 0.0
            self.support_ = np.zeros(0, dtype=np.int64)
            self.n_updates_ = self.n_seen_ = 0
            self._doubted = False
            self.online_errors_ = self.queried_ = np.zeros(0, dtype=np.bool_)
            self.visits_ = np.zeros(0, dtype=np.uint8)
            vars(self).pop("absent_", None)
        kept = self.support_.size
        given = self._is_precomputed()
        blocks = self._takes_blocks()
        if given:
            batch, doubts = self._given_batch(X, first)
        elif blocks:
            batch, doubts = self._feature_batch(X, first), {}
        else:
            batch, doubts, samples, bank = self._new_batch(X, first)
        n_batch = batch.n_samples - kept
        labels = np.full(n_batch, -1)
        if not callable(y):
            labels = labels_within(labels_of(self, y, n_batch), self.classes_)
        self._refuse_balanced()
        weights = visit_weights(sample_weight, n_batch, stream=True)
        cost = loss_weights(weights, self.class_weight, self.classes_, labels)
        visited = np.flatnonzero(weights > 0.0)
        if not self._doubted:  # warn once per stream
            self._doubted = warn_indefinite(doubts)
        earlier = np.zeros(kept, dtype=np.int64)
        cost = np.concatenate([earlier, cost])
        if blocks:
            problem = BlockProblem(batch, labels, self.classes_.size, p=self.p, certified=False)
            start = None if first else (np.concatenate(self.blocks_), self.block_norms_sq_)
            stream = BlockStream(problem, start=start, cost=cost)
        else:
            problem = MKLProblem(batch, np.concatenate([earlier, labels]), self.classes_.size, p=self.p)
            place = np.arange(-kept, n_batch)  # negative: earlier samples
            rows = Rows(batch.rows.reshape(-1), place, batch.n_samples, n_batch * batch.n_samples)
            start = self.dual_coef_, self.block_norms_sq_
            stream = Stream(problem, scores="recompute", start=start, rows=rows, cost=cost)
        if callable(y):
            stream.reveal = self._revealing(y, stream.samples, weights)
        queried = np.full(visited.size, self.query is None)
        if self.query is None:
            stream.start_stage(visit_om2)
        else:
            limits = self.query.limits(self.visits_.size, visited.size)
            stream.start_stage(visit_om2_querying, limits, queried)
        mistakes = stream.visit(kept + visited)

        coef, self.kernel_weights_, *_ = stream.point()
        support = np.flatnonzero(coef.any(axis=1))
        if not blocks:
            self.support_ = self._joined(n_batch)[support]
            self.dual_coef_ = coef[support]
        self.block_norms_sq_ = np.maximum(0.0, stream.dual.norms_sq)
        self.n_updates_ += stream.n_updates
        numbers = self.n_seen_ + visited
        self.n_seen_ += n_batch
        self.online_errors_ = np.concatenate([self.online_errors_, mistakes])
        self.queried_ = np.concatenate([self.queried_, queried])
        self.visits_ = np.concatenate([self.visits_, numbers.astype(np.min_scalar_type(self.n_seen_))])
        self.p_ = problem.p
        self.q_ = problem.q
        if given:
            self.n_features_in_ = self.n_seen_
            vars(self).pop("bank_", None)
        elif blocks:
            self.bank_ = batch.on()
            self._keep_blocks(coef, self.kernel_weights_, self.n_seen_)
        else:
            self.support_vectors_ = samples[support]
            self.bank_support_ = np.arange(support.size)
            self.bank_ = bank.restrict(support if support.size else [0], resident=False)
        return self

    def _revealing(self, y, samples, weights):
        """A function that sets label and loss weight of a sample in a batch."""
        requested = requested_labels(self, y, weights.size)
        kept = samples.labels.size - weights.size

        def reveal(i):
            one = slice(i - kept, i - kept + 1)
            label = np.asarray(requested[one])
            samples.labels[i] = label[0]
            samples.cost[i] = loss_weights(weights[one], self.class_weight, self.classes_, label)[0]

        return reveal

    def _joined(self, n_batch):
        """The support and the samples of a batch."""
        return np.concatenate([self.support_, self.n_seen_ + np.arange(n_batch)])

    def _given_batch(self, X, first):
        """The batch, and {name: how} of the kernels that are indefinite on it."""
        seen = self.n_seen_
        n_kernels = "n_kernels"
        if not first:
            n_kernels = self.kernel_weights_.size
        if self.missing == "zero":
            X, self.absent_ = zero_blocks(X, getattr(self, "absent_", None))
        X = new_kernels(X, n_kernels, "n_seen + n", least=1)
        check_batch(X, seen)
        columns = self._joined(X.shape[1])
        diagonal = np.zeros((X.shape[0], columns.size))
        diagonal[:, -X.shape[1] :] = np.diagonal(X[:, :, seen:], axis1=1, axis2=2)
        return Batch(np.ascontiguousarray(X[:, :, columns]), diagonal), indefinite_batch(X, seen)

    def _feature_batch(self, X, first):
        X = as_samples(X)
        checked = self._checked(X, reset=first)
        samples = X if hasattr(X, "iloc") else checked
        if first:
            return self._bank_of(self.kernels, samples, 0.0)
        return self.bank_.on(samples)

    def _new_batch(self, X, first):
        """As `_given_batch`; the support's samples and those of the batch, and their bank."""
        X = as_samples(X)
        checked = self._checked(X, reset=first)
        n_batch = checked.shape[0]
        if first:
            samples = checked
            kernels = check_kernels([RBF()] if self.kernels is None else self.kernels)
            check_first_batch([kernel for _, kernel, _ in kernels], n_batch)
        else:
            both = [self.support_vectors_, checked]
            if any(map(issparse, both)):
                samples = vstack([csr_array(part) for part in both], format="csr")
            else:
                samples = np.concatenate(both)
            kernels = self.bank_.triples
        named = X if first and hasattr(X, "iloc") else samples
        with warnings.catch_warnings():
            if not first:
                warnings.simplefilter("ignore", FeatureScaleWarning)  # once per stream
            bank = self._bank_of(kernels, named, 0.0)
        rows = np.empty((bank.n_kernels, n_batch, bank.n_samples), dtype=bank.dtype)
        bank.rows_into(np.arange(bank.n_samples)[-n_batch:], rows)
        doubts = {}
        if (self.n_seen_ + n_batch).bit_length() > self.n_seen_.bit_length():
            doubts = bank.indefinite
        return Batch(rows, bank.diagonal), doubts, samples, bank

r"""OMCL: two layers of online learners (thesis Algorithms 1 and 2), and its rivals Flat and Vote (3.4).

Section 3.3 averages the product of both layers. With :math:`V_s = \sum_{t \le s} W_t` of the second layer,
each :math:`W_t` times the weight of its sample, and the change :math:`\delta_s` of a cue's coefficients at
visit s,

.. math:: \sum_{t=1}^T W_t A_t = V_T A_T - \sum_s V_{s-1}\, \delta_s ,

so these sums too change only where the coefficients do.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Sequence
from dataclasses import field

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, clone
from sklearn.utils.metaestimators import _BaseComposition

from cuelearn.checkpoint import Changing
from cuelearn.compiled import njit
from cuelearn.core.estimator import HasMethods, parameters
from cuelearn.core.query import Query, requested_labels, score_margin
from cuelearn.core.samples import InputLike, classes_of_stream
from cuelearn.expect import expect
from cuelearn.kernels import RBF
from cuelearn.kernels.features import add_rows
from cuelearn.kernels.growing import filled, resolve_kernel
from cuelearn.kernels.matrices import zero_blocks
from cuelearn.kernels.specifications import (
    extract_columns,
    feature_places,
    is_frame,
    lacking,
    refuse_empty,
    resolve_columns,
)
from cuelearn.kernels.types import ArrayLike, ColumnSpec, Missing, SampleWeight
from cuelearn.omcl.base import N_LOG, OnlineClassifier, Trace, documented
from cuelearn.omcl.learners import (
    CueLearner,
    KernelLearner,
    LinearLearner,
    PassiveAggressive,
    ProjectronPlusPlus,
)

NEEDS_OWN = "average=True needs learners of cuelearn.omcl for the cues and a linear one as integrator"


@njit(cache=True)
def add_products(log, n_log, weights, sums_before, first, out):
    r"""Add :math:`V_{s-1}\delta_s` of a cue's logged updates to `out` (n_classes, width); `first` is the
    cue's first score, ``sums_before[t]`` is :math:`V_{t-1}`."""
    for e in range(n_log):
        entry = log.entries[e]
        t = entry[0]
        label = entry[1]
        rival = entry[2]
        start = entry[3]
        length = entry[4]
        slot = entry[5]
        for c in range(out.shape[0]):
            weight = sums_before[t, c, first + label] - sums_before[t, c, first + rival]
            if weight == 0.0:
                continue
            if length == 0:
                out[c, slot] += weight * weights[t]
            for i in range(length):
                out[c, i] += weight * log.values[start + i]


class Adapted(Changing):
    """Another library's classifier as a `CueLearner`."""

    n_updates_ = 0

    def __init__(self, learner, n_classes, started=False):
        self.learner = learner
        self.n_classes = n_classes
        self.started = started

    def _start(self, X, classes):
        pass

    _skip = _start

    def _check_batch(self, X):
        pass

    def _n_support(self):
        return 0

    def _learn(self, X, labels, weights, log=False, sums=False):
        scores = np.empty((X.shape[0], self.n_classes))
        self.learner = copy.deepcopy(self.learner)  # the one before is kept by a checkpoint
        for t in range(X.shape[0]):
            scores[t] = self._scores(X[t : t + 1])[0]
            if weights[t] == 0.0 or np.isnan(X[t, 0]):
                continue
            options = {"classes": np.arange(self.n_classes)}
            if weights[t] != 1.0:
                options["sample_weight"] = weights[t : t + 1]
            self.learner.partial_fit(X[t : t + 1], labels[t : t + 1], **options)
            self.started = True
        return Trace(scores, np.zeros(labels.size, dtype=np.int64))

    def _scores(self, X, average=None):
        """0 before the first sample, without the cue and where not finite, as of naive Bayes at first."""
        X, absent = filled(X)
        if not self.started:
            return np.zeros((X.shape[0], self.n_classes))
        method = "decision_function" if hasattr(self.learner, "decision_function") else "predict_proba"
        values = np.asarray(getattr(self.learner, method)(X), dtype=np.float64)
        if values.ndim == 1:
            values = np.column_stack([-0.5 * values, 0.5 * values])
        return np.where(np.isfinite(values) & ~absent[:, None], values, 0.0)

    def _state(self):
        return dict(vars(self))

    @classmethod
    def _from_state(cls, state):
        return cls(**state)


def check_learner(learner, what):
    scores = hasattr(learner, "decision_function") or hasattr(learner, "predict_proba")
    if not (scores and hasattr(learner, "partial_fit")):
        raise TypeError(
            f"{what} must have partial_fit, and decision_function or predict_proba, got "
            f"{type(learner).__name__}"
        )


@parameters
class MultiCueClassifier(OnlineClassifier, _BaseComposition):
    """Base of classifiers with a learner per cue; `cues` lists (name, learner, columns)."""

    _parameter_constraints = {"cues": [list, None]}
    _learnt = ("_columns",)
    _kernel_dims = 3

    cues: Sequence[tuple[str, BaseEstimator, ColumnSpec]] | None = field(default=None, kw_only=False)

    @property
    def _pairs(self):  # for scikit-learn's composition
        if self._well_formed():
            return [(name, learner) for name, learner, _ in self.cues]
        return []

    @_pairs.setter
    def _pairs(self, pairs):
        columns = [c for _, _, c in self.cues]
        self.cues = [(name, learner, c) for (name, learner), c in zip(pairs, columns, strict=True)]

    def get_params(self, deep=True):
        """Parameters by name; those of a cue's learner as ``<cue>__<parameter>``."""
        return self._get_params("_pairs", deep=deep)

    def set_params(self, **params):
        """Set parameters by the names of `get_params`."""
        self._set_params("_pairs", **params)
        return self

    def _well_formed(self):
        def triple(cue):
            named = isinstance(cue, tuple) and len(cue) == 3 and isinstance(cue[0], str)
            return named and hasattr(cue[1], "get_params")

        return isinstance(self.cues, list) and all(map(triple, self.cues))

    def _triples(self):
        if self.cues is None:
            return [("all", ProjectronPlusPlus(), slice(None))]
        if not (self._well_formed() and self.cues):
            raise ValueError(f"cues must be a non-empty list of (name, learner, columns), got {self.cues!r}")
        return self.cues

    def _explicit(self):
        if not self._well_formed():
            return False
        return all(getattr(learner, "_map", None) is not None for _, learner, _ in self.cues)

    def _used(self, first):
        kernels = [(name, getattr(learner, "_map", None), c) for name, learner, c in self._triples()]
        if not first:
            kernels = [(*pair, c) for (*pair, _), c in zip(kernels, self._columns, strict=True)]
        return kernels

    def _precomputed_learners(self):
        return [getattr(learner, "kernel", None) == "precomputed" for _, learner, _ in self._triples()]

    def _is_precomputed(self):
        return (self.cues is None or self._well_formed()) and any(self._precomputed_learners())

    def _check_precomputed(self, X):
        if not all(self._precomputed_learners()):
            raise ValueError("cues: either all learners or none may have kernel='precomputed'")
        return super()._check_precomputed(X)

    def _set_columns(self, given, X):
        """Column numbers of each cue; for precomputed kernels the kernel's number."""
        triples = self._triples()
        try:
            self._validate_names([name for name, _, _ in triples])
        except ValueError as error:
            raise ValueError(f"cues: {error}") from None
        for name, learner, _ in triples:
            check_learner(learner, f"cues: the learner of {name!r}")
        if self._is_precomputed():
            name = "the columns of a cue in cues, with precomputed kernels the number of one,"
            limits = {"low": 0, "high": len(X) - 1}
            self._columns = [expect(name, columns, kind="int", **limits) for _, _, columns in triples]
            return
        places = feature_places(getattr(self, "feature_names_in_", None))
        seen = X
        if is_frame(given):  # functions get it
            seen = given
        self._columns = [resolve_columns(name, c, seen, X.shape[1], places) for name, _, c in triples]

    def _part(self, X, j):
        columns = self._columns[j]
        if X.ndim == 3:
            return X[columns]
        if is_frame(X):  # with texts
            name, kernel, _ = self._used(False)[j]
            if getattr(kernel, "takes_text", False):
                return X.iloc[:, columns]
            return extract_columns(X, columns, name, missing=self.missing == "zero")
        if issparse(X):
            return X[:, columns]
        return X.take(columns, axis=1)

    def _parts(self, X):
        """Each learner with its part of X."""
        for j, learner in enumerate(self.learners_):
            yield learner, self._part(X, j)

    def _copy_of(self, learner, n_classes):
        learner = clone(learner)
        if not isinstance(learner, CueLearner):
            return Adapted(learner, n_classes)
        learner.set_params(record=learner.record and self.record)
        learner._validate_params()
        return learner

    def _open(self, X, n_classes):
        self.learners_ = [self._copy_of(learner, n_classes) for _, learner, _ in self._triples()]
        for learner, part in self._parts(X):
            learner._start(part, np.arange(n_classes))

    def _layers(self):
        return {f"the learner of {name!r}": learner for name, learner, _ in self._triples()}

    def _check_weights(self, sample_weight, n_samples, stream=False):
        for what, learner in self._layers().items() if sample_weight is not None else ():
            if "sample_weight" not in inspect.signature(learner.partial_fit).parameters:
                refusing = f"{type(learner).__name__}.partial_fit, {what}, takes no weights"
                raise ValueError(f"sample_weight must be None: {refusing}")
        return super()._check_weights(sample_weight, n_samples, stream)

    def _check_batch(self, X):
        for learner, part in self._parts(X):
            learner._check_batch(part)

    def _doubts(self, X):
        doubts = {}
        for (name, _, _), (learner, part) in zip(self._triples(), self._parts(X), strict=True):
            if isinstance(learner, CueLearner):
                doubts |= {name: how for how in learner._doubts(part).values()}
        return doubts

    def _observe_cues(self, X, labels, weights, log=False):
        """Traces of all cues, and the sizes of all support sets together."""
        traces = [learner._learn(part, labels, weights, log=log) for learner, part in self._parts(X)]
        return traces, np.sum([trace.sizes for trace in traces], axis=0)

    def _cue_scores(self, X, average=None):
        """A list; None is each learner's own `average`."""
        return [learner._scores(part, average) for learner, part in self._parts(X)]

    def cue_scores(self, X: InputLike) -> np.ndarray:
        """Class scores of every cue's learner, shape (n_cues, n, n_classes)."""
        return np.stack(self._cue_scores(self._check_new(X)))

    def _n_support(self):
        return sum(learner._n_support() for learner in self.learners_)


@documented
@parameters
class OMCL(MultiCueClassifier):
    r"""Online multi-cue learning: a learner per cue, and one that learns to combine their scores.

    At each visit the second layer receives all class scores of the first,

    .. math:: S_t = [s^1(x_t, 1), \dots, s^1(x_t, M), \dots, s^F(x_t, M)] \in \mathbb{R}^{FM},

    and predicts; then the label is revealed and every learner updates on its own.

    Parameters
    ----------
    $cues
    integrator : classifier, default ``PassiveAggressive(C=1.0)``
        The second layer.
    average : bool, default True
        Predict with the mean over all visits of the *product* of both layers' hyperplanes (section 3.3)
        instead of the last ones; may be changed after training. Needs learners of this chapter, the second
        linear.
    $query $missing $run

    Attributes
    ----------
    learners_ : list
        Of the cues, in order, with their own `online_errors_`, `support_` etc. (classes 0..M-1).
    integrator_ : classifier
    weights_ : ndarray, shape (n_classes, n_cues * n_classes)
        Last weights of a linear second layer: row y combines the scores for class y.
    $visits $support_sizes_ $queried_ $n_queries_

    See Also
    --------
    ProjectronPlusPlus, KernelPerceptron, PassiveAggressive : Learners of single cues.
    Vote, Flat : Its rivals.

    Notes
    -----
    Averaging costs O(M) per new support sample and O(M S) per projected update; prediction costs the kernel
    of the samples with all support sets. Learners with a `FeatureMap` keep no samples; X may have columns of
    texts, and be sparse where all cues are such. With a `query` the margin of the second layer's last
    hypothesis decides for all learners, and visits are made one by one. Visits without a label count in the
    mean with their unchanged hypotheses: the bound on the mean's error is one on the losses at all visits
    (Cesa-Bianchi, Conconi, Gentile 2004).

    References
    ----------
    Thesis Algorithms 1 and 2, theorem 3.1, section 3.3. Jie, Orabona, Caputo: An online framework for
    learning novel concepts over multiple cues, ACCV 2009.

    Examples
    --------
    OMCL-BM, of bounded memory (OMCL-PERC: the same with ``KernelPerceptron(RBF())``):

    >>> from cuelearn.datasets import load_mfeat
    >>> from cuelearn.kernels import RBF
    >>> from cuelearn.omcl import OMCL, ProjectronPlusPlus
    >>> data = load_mfeat()
    >>> cues = [(cue, ProjectronPlusPlus(RBF(), eta=0.3), data.cues[cue]) for cue in ("pix", "fac", "kar")]
    >>> bounded = OMCL(cues, shuffle=True, random_state=0).fit(data.X, data.y)
    >>> bool(bounded.score(data.X, data.y) > 0.95)
    True

    With fewer labels:

    >>> from cuelearn.omcl import MarginQuery
    >>> saving = OMCL(cues, query=MarginQuery(0.3), shuffle=True, random_state=0).fit(data.X, data.y)
    >>> bool(saving.score(data.X, data.y) > 0.95), bool(saving.n_queries_ < 0.4 * len(data.y))
    (True, True)
    """

    _parameter_constraints = {"integrator": [HasMethods("partial_fit"), None], "query": [Query, None]}
    _learnt = ("_columns", "_delayed", "_absent")
    _absent = None  # which visited samples lack which precomputed kernel

    integrator: BaseEstimator | None = field(default=None, kw_only=False)
    query: Query | None = None
    missing: Missing = "error"

    def _check_samples(self, X, y, first):
        if self.missing == "zero" and self._is_precomputed():
            X, self._absent = zero_blocks(X, None if first else self._absent)
        return super()._check_samples(X, y, first)

    def _check_new(self, X):
        if self.missing == "zero" and self._is_precomputed():
            X, _ = zero_blocks(X, self._absent)
        return super()._check_new(X)

    def _within_range(self, X):
        if self.missing == "error":
            return super()._within_range(X)
        names = [f"cue {name!r}" for name, _, _ in self._triples()]
        refuse_empty([lacking(self._part(X, j), name) for j, name in enumerate(names)])
        super()._within_range(np.where(np.isnan(X), 0.0, X))
        return X

    def _admit_batch(self, X, y, classes, sample_weight):
        if not callable(y):
            return super()._admit_batch(X, y, classes, sample_weight)
        known, _ = classes_of_stream(self, classes)
        n = np.shape(X)[-2:][0]
        X, _, weights = super()._admit_batch(X, np.repeat(known[:1], n), classes, sample_weight)
        return X, requested_labels(self, y, n), weights

    def _start(self, X, classes):
        super()._start(X, classes)
        self.n_queries_: int = 0

    def _learn(self, X, labels, weights):
        """Visit a batch; with a query one by one, by the margin of the second layer."""
        if self.query is None:
            self.n_queries_ += labels.size
            return super()._learn(X, labels, weights)
        seen = self.n_seen_
        limits = self.query.limits(seen, labels.size)
        for t in range(labels.size):
            one = slice(t, t + 1)
            row = self._rows_of(X, one, seen)
            new = row
            if self._is_precomputed():
                new = row[..., :-1]
            margin = score_margin(self._scores(new, average=False)[0])
            if margin <= limits[t] and weights[t] > 0.0:
                super()._learn(row, np.asarray(labels[one]), weights[one])
                self.n_queries_ += 1
            else:
                self._skip(row, weights[t])
            if not isinstance(labels, np.ndarray):  # a label given on request is not asked for again
                self._checkpoint.take()

    def _skip(self, X, weight):
        for learner, part in self._parts(X):
            learner._skip(part, weight)
        self.integrator_._skip(X, weight)
        super()._skip(X, weight)

    def _n_labels(self):
        return max(1, self.n_queries_)

    @property
    def queried_(self) -> np.ndarray:
        return self._recorded("queried")

    def _open(self, X, n_classes):
        integrator = PassiveAggressive() if self.integrator is None else self.integrator
        check_learner(integrator, "integrator")
        if getattr(integrator, "kernel", None) == "precomputed":
            raise ValueError("integrator must compute its kernel from the scores, got kernel='precomputed'")
        if isinstance(integrator, LinearLearner) and integrator._explicit():
            raise ValueError("integrator must be linear in the scores")
        if self.query is not None and isinstance(integrator, KernelLearner):
            raise ValueError("integrator must not have a kernel with a query")
        integrator = self._copy_of(integrator, n_classes)
        super()._open(X, n_classes)
        self.integrator_ = integrator
        if self.average:
            self._check_average()
        if isinstance(integrator, KernelLearner):  # its scale comes from the first scores
            resolve_kernel(integrator.kernel or RBF(), np.zeros((X.shape[-2], 1)))
        if isinstance(integrator, LinearLearner):
            integrator._start(np.zeros((1, n_classes * len(self.learners_))), np.arange(n_classes))
        self._delayed = [np.zeros((n_classes, 0)) for _ in self.learners_]

    def _layers(self):
        return super()._layers() | {"the integrator": self.integrator or PassiveAggressive()}

    @property
    def _can_average(self):
        own = all(isinstance(learner, CueLearner) for learner in self.learners_)
        return own and isinstance(self.integrator_, LinearLearner)

    def _check_average(self):
        if not self._can_average:
            raise ValueError(f"{NEEDS_OWN}: give average=False")

    def _observe(self, X, labels, weights):
        average = self._can_average
        traces, sizes = self._observe_cues(X, labels, weights, log=average)
        S = np.concatenate([trace.scores for trace in traces], axis=1)
        if self.n_seen_ == 0 and isinstance(self.integrator_, KernelLearner):
            self.integrator_._start(S, np.arange(S.shape[1] // len(traces)))
        second = self.integrator_._learn(S, labels, weights, sums=average)
        if average:
            self._add_products(traces, weights, second.sums_before)
        return Trace(second.scores, sizes)

    def _grown(self, j):
        """A copy of the sums of cue j, with zeros for what joined since."""
        width = self.learners_[j]._hypothesis.width
        held = self._delayed[j][:, :width]
        grown = np.zeros((len(held), width))
        grown[:, : held.shape[1]] = held
        return grown

    def _add_products(self, traces, weights, before):
        n_classes = before.shape[1]
        products = []
        for j, trace in enumerate(traces):
            first = j * n_classes
            delayed = self._grown(j)
            n_log = int(self.learners_[j]._hypothesis.counts[N_LOG])
            if trace.rows is None:
                add_products(trace.log, n_log, weights, before, first, delayed)
            else:
                t, label, rival = trace.log.entries[:n_log, :3].T
                change = before[t, :, first + label] - before[t, :, first + rival]
                rows = trace.rows._replace(place=trace.rows.place[t])
                add_rows(rows, change * trace.log.values[:n_log, None], delayed)
            products.append(delayed)
        self._delayed = products

    def _count_updates(self):
        return self.integrator_.n_updates_

    def _averaged_coef(self, j):
        """Averaged product of both layers for cue j, a row per class."""
        hypothesis = self.learners_[j]._hypothesis
        n_classes = self.classes_.size
        sums = self.integrator_._hypothesis.sums[:, j * n_classes : (j + 1) * n_classes]
        last = hypothesis.coef[:, : hypothesis.width]
        return (sums @ last - self._grown(j)) / (hypothesis.weight or 1.0)

    def _scores(self, X, average):
        if not average:
            return self.integrator_._scores(np.concatenate(self._cue_scores(X, False), axis=1), False)
        self._check_average()
        parts = enumerate(self._parts(X))
        return sum(learner._products(part, self._averaged_coef(j)) for j, (learner, part) in parts)

    @property
    def weights_(self) -> np.ndarray:
        if not isinstance(self.integrator_, LinearLearner):
            raise AttributeError("weights_ needs a linear integrator of cuelearn.omcl")
        return self.integrator_._hypothesis.coefficients(False)


@documented
@parameters
class Flat(OnlineClassifier):
    """Low-level integration: one online learner on the concatenated vectors of all cues (equation 2.1).

    The learner's kernel uses all columns. The other reading of the equation, concatenated feature *maps*, is
    the mean of the cues' kernels: give these as a precomputed stack.

    Parameters
    ----------
    learner : online learner of this chapter, default ``ProjectronPlusPlus()``
        With ``kernel="precomputed"`` X is a stack (F, n, n_seen), whose mean is used.
    average : bool, default True
        This and the following parameters override the learner's own.
    $run

    Attributes
    ----------
    learner_ : online learner
        Classes counted 0..M-1.
    $visits $support_sizes_

    References
    ----------
    Thesis equation 2.1, section 3.4.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from cuelearn.datasets import load_mfeat
    >>> from cuelearn.omcl import Flat
    >>> data = load_mfeat()
    >>> model = make_pipeline(StandardScaler(), Flat(shuffle=True, random_state=0))
    >>> bool(model.fit(data.X, data.y).score(data.X, data.y) > 0.5)
    True
    """

    _parameter_constraints = {"learner": [CueLearner, None]}
    _kernel_dims = 3

    learner: CueLearner | None = field(default=None, kw_only=False)

    def _is_precomputed(self):
        return isinstance(self.learner, CueLearner) and self.learner._is_precomputed()

    @property
    def _map(self):
        return getattr(self.learner, "_map", None)

    def _check_precomputed(self, X):
        return super()._check_precomputed(X).mean(axis=0)

    def _open(self, X, n_classes):
        learner = clone(ProjectronPlusPlus() if self.learner is None else self.learner)
        learner.set_params(average=self.average, record=False)
        learner._validate_params()
        learner._start(X, np.arange(n_classes))
        self.learner_ = learner

    def _check_batch(self, X):
        self.learner_._check_batch(X)

    def _doubts(self, X):
        return self.learner_._doubts(X)

    def _observe(self, X, labels, weights):
        return self.learner_._learn(X, labels, weights)

    def _scores(self, X, average):
        return self.learner_._scores(X, average)

    def _count_updates(self):
        return self.learner_.n_updates_

    def _n_support(self):
        return self.learner_._n_support()


def count_votes(scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Votes for each class when every cue votes for its best one.

    Parameters
    ----------
    scores : ndarray, shape (n_cues, n, n_classes)

    Returns
    -------
    votes : ndarray of int, shape (n, n_classes)
    tied : ndarray of bool, shape (n,)
        Whether several classes share the largest number of votes.

    Examples
    --------
    >>> import numpy as np
    >>> from cuelearn.omcl import count_votes
    >>> three_cues = np.array([[[1.0, 0.0]], [[0.0, 1.0]], [[2.0, 1.0]]])  # of one sample
    >>> count_votes(three_cues)
    (array([[2, 1]]), array([False]))
    """
    best = np.argmax(scores, axis=2)
    votes = np.stack([(best == c).sum(axis=0) for c in range(scores.shape[2])], axis=1)
    return votes, (votes == votes.max(axis=1, keepdims=True)).sum(axis=1) > 1


@documented
class Vote(MultiCueClassifier):
    """Majority vote of one online learner per cue.

    Ties count as errors in `score` and `online_errors_`, as in the thesis; `predict` returns the first tied
    class.

    Parameters
    ----------
    $cues $average $run

    Attributes
    ----------
    learners_ : list
        Of the cues, in order.
    $classes_ $n_seen_ $n_updates_ $n_mistakes_ $history_ $online_errors_ $support_sizes_

    References
    ----------
    Thesis section 3.4.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from cuelearn.omcl import KernelPerceptron, Vote
    >>> X, y = load_iris(return_X_y=True)
    >>> cues = [(f"cue {j}", KernelPerceptron(), [j]) for j in range(4)]
    >>> model = Vote(cues, shuffle=True, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.8), bool(model.ties(X).any())
    (True, True)
    """

    def _observe(self, X, labels, weights):
        traces, sizes = self._observe_cues(X, labels, weights)
        votes, _ = count_votes(np.stack([trace.scores for trace in traces]))
        return Trace(votes.astype(np.float64), sizes)

    def _count_updates(self):
        return sum(learner.n_updates_ for learner in self.learners_)

    def _cue_scores(self, X, average=None):
        return super()._cue_scores(X, self.average)

    def _votes(self, X):
        return count_votes(np.stack(self._cue_scores(X)))

    def _scores(self, X, average):
        return self._votes(X)[0].astype(np.float64)

    def ties(self, X: InputLike) -> np.ndarray:
        """Whether several classes share the largest number of votes; bool, shape (n,)."""
        return self._votes(self._check_new(X))[1]

    def score(self, X: InputLike, y: ArrayLike, sample_weight: SampleWeight = None) -> float:
        """Accuracy, with ties as errors."""
        votes, tied = self._votes(self._check_new(X))
        right = (self.classes_[np.argmax(votes, axis=1)] == np.asarray(y)) & ~tied
        return float(np.average(right, weights=sample_weight))

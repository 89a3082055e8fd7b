r"""Two layers of online learners (thesis Algorithm 1)."""

import numpy as np
from sklearn.base import clone
from sklearn.utils.metaestimators import _BaseComposition
from sklearn.utils.validation import check_is_fitted, validate_data

from cuelearn.kernels import RBF, feature_places, resolve_columns, resolve_kernel
from cuelearn.omcl import engine
from cuelearn.omcl.base import OnlineClassifier, pack, unpack
from cuelearn.omcl.learners import ProjectronPlusPlus, _KernelLearner
from cuelearn.omcl.linear import PassiveAggressive, _LinearLearner
from cuelearn.omcl.states import Trace

__all__ = ["OMCL"]


def own_scores(learner, X, n_classes, present):
    """Scores of any classifier, a column for each of `n_classes`; `present` are the columns that it knows.

    What is not finite, as the probabilities of a naive Bayes classifier that has seen a class once only, counts as 0.
    """
    values = (
        learner.decision_function(X) if hasattr(learner, "decision_function") else learner.predict_proba(X)
    )
    values = np.asarray(values, dtype=np.float64)
    if values.ndim == 1:
        values = np.column_stack([-0.5 * values, 0.5 * values])
    out = np.zeros((X.shape[0], n_classes))
    out[:, present] = np.where(np.isfinite(values), values, 0.0)
    return out


def is_own(learner):
    """Whether it is a learner of one cue of this chapter, whose scores before each update come with a compiled pass."""
    return isinstance(learner, (_KernelLearner, _LinearLearner))


def check_learner(learner, what):
    """A TypeError unless `learner` can be one of either layer."""
    if not hasattr(learner, "partial_fit"):
        raise TypeError(f"{what} must have partial_fit, {type(learner).__name__} has not")
    if not (hasattr(learner, "decision_function") or hasattr(learner, "predict_proba")):
        raise TypeError(
            f"{what} must have decision_function or predict_proba, {type(learner).__name__} has neither"
        )


class _Foreign:
    """Any classifier with `partial_fit` and `decision_function` (or `predict_proba`) as one of the learners."""

    def __init__(self, learner, n_classes):
        self.learner, self.n_classes, self.started = learner, n_classes, False

    def observe(self, X, labels):
        """Predict, then learn, sample after sample; before the first one all scores are 0."""
        scores = np.zeros((X.shape[0], self.n_classes))
        for t in range(X.shape[0]):
            if self.started:
                scores[t] = self.scores(X[t : t + 1])[0]
            self.learner.partial_fit(X[t : t + 1], labels[t : t + 1], classes=np.arange(self.n_classes))
            self.started = True
        return scores

    def scores(self, X):
        """Class scores, shape (n, n_classes)."""
        if not self.started:
            return np.zeros((X.shape[0], self.n_classes))
        return own_scores(self.learner, X, self.n_classes, np.arange(self.n_classes))


class MultiCueClassifier(OnlineClassifier, _BaseComposition):
    """Base of classifiers with one online learner for each cue: `OMCL` and `Vote`.

    Subclasses have the parameter `cues`, a list of (name, learner, columns).
    """

    # scikit-learn's composition takes pairs
    @property
    def _pairs(self):
        return [(name, learner) for name, learner, _ in self.cues] if self._well_formed() else []

    @_pairs.setter
    def _pairs(self, pairs):
        self.cues = [
            (name, learner, columns)
            for (name, learner), (_, _, columns) in zip(pairs, self.cues, strict=True)
        ]

    def get_params(self, deep=True):
        """Parameters by name; those of a cue's learner as ``<cue>__<parameter>``."""
        out = OnlineClassifier.get_params(self, deep=deep)
        if deep:
            for name, learner in self._pairs:
                out[name] = learner
                out |= {f"{name}__{key}": value for key, value in learner.get_params(deep=True).items()}
        return out

    def set_params(self, **params):
        """Set parameters by name; those of a cue's learner as ``<cue>__<parameter>``."""
        self._set_params("_pairs", **params)
        return self

    def _well_formed(self):
        return isinstance(self.cues, list) and all(
            isinstance(cue, tuple)
            and len(cue) == 3
            and isinstance(cue[0], str)
            and hasattr(cue[1], "get_params")
            for cue in self.cues
        )

    def _triples(self):
        if self.cues is None:
            return [("all", ProjectronPlusPlus(), slice(None))]
        if not (self._well_formed() and self.cues):
            raise ValueError(
                f"cues must be a non-empty list of (name, learner, columns), learners being classifiers with partial_fit, got {self.cues!r}"
            )
        return self.cues

    def _check_cues(self):
        """What need not be looked at again with every sample."""
        names, parameters = [name for name, _, _ in self._triples()], self._get_param_names()
        if len(set(names)) < len(names):
            raise ValueError(f"cues must have different names, got {names}")
        taken = [name for name in names if "__" in name or name in parameters]
        if taken:
            raise ValueError(
                f"cues must have names without '__' and other than this estimator's parameters, got {taken[0]!r}"
            )
        for name, learner, _ in self._triples():
            check_learner(learner, f"cues: the learner of {name!r}")

    def _is_precomputed(self):
        return any(getattr(learner, "kernel", None) == "precomputed" for _, learner, _ in self._triples())

    def _check_precomputed(self, X):
        X = np.asarray(X)
        if X.dtype.kind != "f":
            X = X.astype(np.float64)
        if not all(getattr(learner, "kernel", None) == "precomputed" for _, learner, _ in self._triples()):
            raise ValueError("cues: either all learners or none may have kernel='precomputed'")
        if X.ndim != 3 or not np.isfinite(X).all():
            raise ValueError(
                f"X must be finite, of shape (n_kernels, n, n_seen), for precomputed kernels, got shape {X.shape}"
            )
        return X

    def _check_samples(self, X, y, first):
        names = list(X.columns) if hasattr(X, "columns") else None
        X, y = super()._check_samples(X, y, first)
        if first:
            self._check_cues()
            self._columns = self._find_columns(X, names)
        return X, y

    def _find_columns(self, X, names):
        if self._is_precomputed():
            kernels = [columns for _, _, columns in self._triples()]
            if not all(isinstance(k, (int, np.integer)) and 0 <= k < X.shape[0] for k in kernels):
                raise ValueError(
                    f"cues: with precomputed kernels columns must be the number of a kernel below {X.shape[0]}, got {kernels}"
                )
            return [int(k) for k in kernels]
        return [
            resolve_columns(name, columns, X, X.shape[1], feature_places(names))
            for name, _, columns in self._triples()
        ]

    def _n_rows(self, X):
        return X.shape[1] if X.ndim == 3 else X.shape[0]

    def _rows_of(self, X, rows, seen):
        return X[:, rows, :seen] if X.ndim == 3 else X[rows]

    def _part(self, X, j):
        """What cue j sees of X."""
        columns = self._columns[j]
        if X.ndim == 3:
            return X[columns]
        first, last = columns[0], columns[-1]
        if last - first + 1 == columns.size and (columns.size < 2 or (np.diff(columns) == 1).all()):
            return np.ascontiguousarray(X[:, first : last + 1])
        return np.ascontiguousarray(X[:, columns])

    def _open_learners(self, X, n_classes):
        opened = []
        for j, (_, learner, _) in enumerate(self._triples()):
            learner = clone(learner)
            if is_own(learner):
                learner.set_params(record=learner.record and self.record)
                learner._start(self._part(X, j), np.arange(n_classes))
                opened.append(learner)
            else:
                opened.append(_Foreign(learner, n_classes))
        self.learners_ = opened

    def _check_batch(self, X):
        for j, learner in enumerate(self.learners_):
            if is_own(learner):
                learner._check_batch(self._part(X, j))

    def _observe_cue(self, X, labels, j, log=False):
        learner = self.learners_[j]
        part = self._part(X, j)
        if isinstance(learner, _Foreign):
            scores = learner.observe(part, labels)
            return Trace(scores, np.zeros(labels.size, np.int64), np.empty((0, 6), np.int64), np.empty(0), 0)
        return learner._learn(part, labels, log=log)

    def _cue_scores(self, X, j):
        learner = self.learners_[j]
        return (
            learner.scores(self._part(X, j))
            if isinstance(learner, _Foreign)
            else learner._scores(self._part(X, j))
        )

    def cue_scores(self, X):
        """Class scores of every cue's own learner.

        Parameters
        ----------
        X : as in `decision_function`

        Returns
        -------
        ndarray, shape (n_cues, n, n_classes)
        """
        X = self._check_new(X)
        return np.stack([self._cue_scores(X, j) for j in range(len(self.learners_))])

    def _check_new(self, X):
        check_is_fitted(self, "classes_")
        if self._is_precomputed():
            return self._check_precomputed(X)
        return validate_data(self, X, dtype=[np.float64, np.float32], reset=False, order="C")

    def _n_support(self):
        return sum(learner._n_support() for learner in self.learners_ if is_own(learner))

    @property
    def cue_names_(self):
        """Names of the cues, in order."""
        return [name for name, _, _ in self._triples()]

    def _pack_learners(self, prefix, arrays):
        for name, learner in zip(self.cue_names_, self.learners_, strict=True):
            if isinstance(learner, _Foreign):
                raise TypeError(
                    f"the learner of cue {name!r} is a {type(learner.learner).__name__}, which cannot be saved without pickle"
                )
        return {
            "learners": [pack(learner, f"{prefix}{j}/", arrays) for j, learner in enumerate(self.learners_)],
            "columns": [c if isinstance(c, int) else c.tolist() for c in self._columns],
        }

    def _unpack_learners(self, plain, prefix, arrays):
        self.learners_ = [unpack(head, f"{prefix}{j}/", arrays) for j, head in enumerate(plain["learners"])]
        self._columns = [c if isinstance(c, int) else np.array(c, dtype=np.intp) for c in plain["columns"]]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        precomputed = self._well_formed() and bool(self.cues) and self._is_precomputed()
        tags.input_tags.two_d_array = not precomputed
        tags.input_tags.three_d_array = precomputed
        return tags


class OMCL(MultiCueClassifier):
    r"""Online multi-cue learning: a learner for each cue, and one more that learns to combine their scores.

    At each visit the first layer's learners give their class scores, the second layer sees all of them,

    .. math:: S_t = [s^1(x_t, 1), \dots, s^1(x_t, M), \dots, s^F(x_t, M)] \in \mathbb{R}^{FM},

    and predicts; then the label is shown and every learner updates on its own. OMCL-BM, the thesis' algorithm of bounded memory, is

    >>> from cuelearn.datasets import load_mfeat
    >>> from cuelearn.kernels import RBF
    >>> from cuelearn.omcl import KernelPerceptron, OMCL, ProjectronPlusPlus
    >>> data = load_mfeat()
    >>> bounded = OMCL([(cue, ProjectronPlusPlus(RBF(), eta=0.3), columns) for cue, columns in data.cues.items()])

    and OMCL-PERC the same with ``KernelPerceptron(RBF())``.

    Parameters
    ----------
    cues : list of (name, learner, columns), or None
        Learners are classifiers with `partial_fit` and `decision_function` (or `predict_proba`), those of this chapter or any of
        scikit-learn's; columns as in ColumnTransformer. With learners on precomputed kernels X has shape (F, n, n_seen), and
        `columns` is the number of the kernel. None is one `ProjectronPlusPlus` on all columns.
    integrator : classifier, default ``PassiveAggressive(C=1.0)``
        The second layer.
    average : bool, default True
        Predict with the mean over all visits of the *product* of both layers' hyperplanes (section 3.3), not with the last ones.
        Needs learners of this chapter, the second layer linear. May be changed after training.
    n_epochs, shuffle, record, random_state, callback, verbose
        See `KernelPerceptron`. ``record=False`` holds for the learners too.

    Attributes
    ----------
    learners_ : list
        Of the cues, in order; those of this chapter with their own `online_errors_`, `support_` and so on (classes counted 0..M-1).
    integrator_ : classifier
    weights_ : ndarray, shape (n_classes, n_cues * n_classes)
        Last weights of a linear second layer: row y combines the scores for class y.
    support_sizes_ : ndarray
        Sum over the cues after each visit.
    classes_, n_seen_, n_updates_, n_mistakes_, cumulative_loss_, history_, online_errors_, online_losses_
        Of the second layer; see `KernelPerceptron`.

    Notes
    -----
    Averaging costs O(M) at a new support sample and O(M S) at a projected update, since
    :math:`\sum_t W_t A_t = V_T A_T - \sum_s V_{s-1} \delta_s` with :math:`V_s = \sum_{t \le s} W_t`. Prediction costs the kernel of the
    samples with all support sets.

    References
    ----------
    Thesis Algorithms 1 and 2, theorem 3.1, section 3.3. Jie, Orabona, Caputo: An online framework for learning novel concepts over
    multiple cues, ACCV 2009.

    Examples
    --------
    >>> bool(bounded.set_params(shuffle=True, random_state=0).fit(data.X, data.y).score(data.X, data.y) > 0.95)
    True
    """

    def __init__(
        self,
        cues=None,
        integrator=None,
        *,
        average=True,
        n_epochs=1,
        shuffle=False,
        record=True,
        random_state=None,
        callback=None,
        verbose=True,
    ):
        self.cues = cues
        self.integrator = integrator
        self.average = average
        self.n_epochs = n_epochs
        self.shuffle = shuffle
        self.record = record
        self.random_state = random_state
        self.callback = callback
        self.verbose = verbose

    def _open(self, X, n_classes):
        integrator = clone(PassiveAggressive() if self.integrator is None else self.integrator)
        check_learner(integrator, "integrator")
        if getattr(integrator, "kernel", None) == "precomputed":
            raise ValueError("integrator must compute its kernel from the scores, got kernel='precomputed'")
        if isinstance(integrator, _KernelLearner):
            resolve_kernel(
                integrator.kernel or RBF(), np.zeros((X.shape[-2], 1))
            )  # before the first layer has learnt anything
        own = [is_own(learner) for _, learner, _ in self._triples()]
        can_average = all(own) and isinstance(integrator, _LinearLearner)
        if self.average and not can_average:
            raise ValueError(
                "average=True needs learners of cuelearn.omcl for the cues and a linear one as integrator: give average=False"
            )
        self._open_learners(X, n_classes)
        self._can_average = can_average
        self._n_scores = n_classes * len(self.learners_)
        if is_own(integrator):
            integrator.set_params(record=integrator.record and self.record)
            if isinstance(integrator, _LinearLearner):
                integrator._start(np.zeros((1, self._n_scores)), np.arange(n_classes))
            self.integrator_ = integrator
        else:
            self.integrator_ = _Foreign(integrator, n_classes)
        self._delayed = [np.zeros((n_classes, 0)) for _ in self.learners_]

    def _observe(self, X, labels, log=False):
        traces = [self._observe_cue(X, labels, j, log=self._can_average) for j in range(len(self.learners_))]
        S = np.concatenate([trace.scores for trace in traces], axis=1)
        sizes = np.sum([trace.sizes for trace in traces], axis=0)
        if isinstance(self.integrator_, _Foreign):
            scores = self.integrator_.observe(S, labels)
        elif isinstance(self.integrator_, _LinearLearner):
            second = self.integrator_._learn(S, labels, sums=self._can_average)
            scores = second.scores
            if self._can_average:
                self._add_products(traces, second.sums_before)
        else:
            if not hasattr(self.integrator_, "classes_"):
                self.integrator_._start(S, np.arange(traces[0].scores.shape[1]))
            scores = self.integrator_._learn(S, labels).scores
        return Trace(scores, sizes, np.empty((0, 6), np.int64), np.empty(0), 0)

    def _add_products(self, traces, before):
        n_classes = before.shape[1]
        for j, (learner, trace) in enumerate(zip(self.learners_, traces, strict=True)):
            width = learner._state.width
            if self._delayed[j].shape[1] < width:
                grown = np.zeros((n_classes, max(width, 2 * self._delayed[j].shape[1])))
                grown[:, : self._delayed[j].shape[1]] = self._delayed[j]
                self._delayed[j] = grown
            engine.add_products(
                trace.log, trace.log_values, trace.n_log, before, j * n_classes, self._delayed[j]
            )

    def _count_updates(self):
        return getattr(self.integrator_, "n_updates_", 0)

    def averaged_coef(self, j):
        """Coefficients of cue j in the averaged product of both layers, shape (n_classes, n_support or n_features of the cue)."""
        state, n_classes = self.learners_[j]._state, self.classes_.size
        sums = self.integrator_._state.sums[:, j * n_classes : (j + 1) * n_classes]
        last = state.coef[:, : state.width]
        return (sums @ last - self._delayed[j][:, : state.width]) / max(1, self.n_seen_)

    def _scores(self, X):
        if self.average and not self._can_average:
            raise ValueError(
                "average=True needs learners of cuelearn.omcl for the cues and a linear one as integrator"
            )
        if not self.average:
            parts = []
            for j, learner in enumerate(self.learners_):
                if isinstance(learner, _Foreign):
                    parts.append(learner.scores(self._part(X, j)))
                else:
                    parts.append(self._inputs(X, j) @ learner._state.hypothesis(False).T)
            S = np.concatenate(parts, axis=1)
            if isinstance(self.integrator_, _Foreign):
                return self.integrator_.scores(S)
            if isinstance(self.integrator_, _LinearLearner):
                return S @ self.integrator_._state.hypothesis(False).T
            return self.integrator_._support.cross(S) @ self.integrator_._state.hypothesis(False).T
        return sum(self._inputs(X, j) @ self.averaged_coef(j).T for j in range(len(self.learners_)))

    def _inputs(self, X, j):
        """Kernel values with the support set of cue j, or its features."""
        part, learner = self._part(X, j), self.learners_[j]
        return part if isinstance(learner, _LinearLearner) else learner._support.cross(part)

    @property
    def weights_(self):
        """Last weights of a linear second layer, shape (n_classes, n_cues * n_classes)."""
        if not isinstance(self.integrator_, _LinearLearner):
            raise AttributeError("weights_ needs a linear integrator of cuelearn.omcl")
        return self.integrator_._state.hypothesis(False)

    def _pack_state(self, prefix, arrays):
        if isinstance(self.integrator_, _Foreign):
            raise TypeError(
                f"the integrator is a {type(self.integrator_.learner).__name__}, which cannot be saved without pickle"
            )
        for j, delayed in enumerate(self._delayed):
            arrays[f"{prefix}delayed/{j}"] = delayed
        return {
            **self._pack_learners(prefix, arrays),
            "integrator": pack(self.integrator_, f"{prefix}integrator/", arrays),
        }

    def _unpack_state(self, plain, prefix, arrays):
        self._unpack_learners(plain, prefix, arrays)
        self.integrator_ = unpack(plain["integrator"], f"{prefix}integrator/", arrays)
        self._delayed = [arrays[f"{prefix}delayed/{j}"] for j in range(len(self.learners_))]
        self._n_scores = self.classes_.size * len(self.learners_)
        self._can_average = isinstance(self.integrator_, _LinearLearner)

"""What the online learners of the chapter share: predictors that grow, input forms, classes one by one, saving."""

import time
from typing import NamedTuple

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data
from tqdm.auto import tqdm

from cuelearn.core.checks import (
    as_generator,
    check_count,
    classes_of_stream,
    labels_within,
    unchanged_on_error,
)
from cuelearn.core.estimator import Estimator, load
from cuelearn.kernels import RBF, KernelBank
from cuelearn.oks.engine import Predictors, Samples, outputs, set_probabilities
from cuelearn.oks.sources import Columns, Given, bank_of

__all__ = ["Learner", "OnlineKernels", "Result", "StreamingKernels", "check_two_classes", "load", "signs_of"]

CHUNK = 16  # least visits between two looks at the outside world
BAR_AFTER = 2.0
NOTHING = Samples(np.empty((0, 0)), np.empty((0, 0)), np.empty((0, 0, 0)))


class Result(NamedTuple):
    """Outcome of a solver of the chapter.

    Attributes
    ----------
    kernel_probabilities, sampling_probabilities : ndarray, shape (n_kernels,)
    support, dual_coef : list of ndarray
        Samples and coefficients of every kernel's predictor.
    history : DataFrame
    probability_history : ndarray, shape (rows of history, n_kernels)
    n_updates, n_evaluations : int
    learner : Learner
        The state itself, ready to go on.
    """

    kernel_probabilities: np.ndarray
    sampling_probabilities: np.ndarray
    support: list
    dual_coef: list
    history: pd.DataFrame
    probability_history: np.ndarray
    n_updates: int
    n_evaluations: int
    learner: object


class Learner:
    """The state of one binary problem: a predictor and a weight for every kernel.

    Subclasses implement ``visit(samples, order, targets)``, which learns from some samples in order.

    Parameters
    ----------
    kernels : engine.Kernels
    rng : numpy.random.Generator
    """

    def __init__(self, kernels, rng):
        m = kernels.kind.shape[0]
        self.kernels, self.rng = kernels, rng
        self.log_weights, self.q, self.p = np.zeros(m), np.full(m, 1.0 / m), np.full(m, 1.0 / m)
        self.predictors = Predictors(
            np.zeros((m, 16), dtype=np.int64),
            np.zeros((m, 16)),
            np.zeros(m, dtype=np.int64),
            np.full((m, 0), -1, dtype=np.int32),
        )
        self.n_seen = self.n_updates = self.n_evaluations = self.n_mistakes = 0
        self._records = {}

    # ------------------------------------------------------------ what happened

    def note(self, **arrays):
        """Keep what happened at some visits."""
        for name, values in arrays.items():
            self._records.setdefault(name, []).append(values)

    def record(self, name, dtype):
        """Everything noted under a name, in the order of the visits."""
        parts = self._records.get(name)
        return np.concatenate(parts) if parts else np.empty(0, dtype)

    # ------------------------------------------------------------ storage of the predictors

    def reserve(self, n_samples, n_visits):
        """Room for samples numbered below `n_samples`, and for as many new members as there are visits."""
        support, coef, count, slot = self.predictors
        need = int(count.max()) + n_visits
        if need > support.shape[1]:
            more = max(need, 2 * support.shape[1]) - support.shape[1]
            support, coef = np.pad(support, ((0, 0), (0, more))), np.pad(coef, ((0, 0), (0, more)))
        if n_samples > slot.shape[1]:
            grown = np.full((slot.shape[0], max(n_samples, 2 * slot.shape[1])), -1, dtype=np.int32)
            grown[:, : slot.shape[1]] = slot
            slot = grown
        self.predictors = Predictors(support, coef, count, slot)

    def cut(self, rows):
        """Copies of what counts of `support` or `coef`, one array per kernel."""
        return [row[:c].copy() for row, c in zip(rows, self.predictors.count, strict=True)]

    def members(self):
        """Sorted numbers of all samples in any support."""
        return np.unique(np.concatenate(self.cut(self.predictors.support)))

    def renumber(self, places, n_samples):
        """Samples get new numbers: `places[old]`."""
        support, coef, count, _ = self.predictors
        slot = np.full((support.shape[0], n_samples), -1, dtype=np.int32)
        for j, c in enumerate(count):
            support[j, :c] = places[support[j, :c]]
            slot[j, support[j, :c]] = np.arange(c)
        self.predictors = Predictors(support, coef, count, slot)

    def outputs(self, here, held, kernels=None):
        """Predictions of some kernels (all by default), shape (n, number of them)."""
        members = np.arange(self.q.size) if kernels is None else np.atleast_1d(kernels)
        n = here.stack.shape[1] if here.stack.size else here.data.shape[0]
        out = np.empty((n, members.size))
        outputs(self.kernels, members, here, held, self.predictors, out)
        return out

    @property
    def best(self):
        """Index of the kernel with the largest weight; the first on ties."""
        return int(np.argmax(self.log_weights))

    def start_epoch(self, epoch):
        """Called before each pass."""
        set_probabilities(self.log_weights, 0.0, self.q, self.p)

    def history(self):
        """What `run` noted after each chunk."""
        columns = ["step", "epoch", "seconds", "n_updates", "n_support", "online_error", "n_evaluations"]
        return pd.DataFrame(self.table, columns=columns)

    # ------------------------------------------------------------ passes

    def run(self, samples, targets, n_epochs, *, rows=None, shuffle=False, chunk=None, watch=None, bar=None):
        """Passes over samples; returns the `Result`.

        Parameters
        ----------
        samples : Samples
        targets : ndarray
        n_epochs : int
        rows : ndarray of int, optional
            The samples that are visited; all by default.
        shuffle : bool
            Permute the first pass too; later ones always are.
        chunk : int, optional
            Visits between two rows of the history.
        watch : callable(learner, step), optional
            Called after each chunk, with the clock stopped; a true value ends the run.
        bar : tqdm, optional
        """
        visited = np.arange(targets.size) if rows is None else rows
        n = visited.size
        self.table, self.trail = table, trail = [], []
        chunk = chunk or max(CHUNK, n * n_epochs // 200)
        begun, stopped = time.perf_counter(), False
        for epoch in range(n_epochs):
            self.start_epoch(epoch)
            order = visited[self.rng.permutation(n)] if shuffle or epoch else visited
            uniforms = self.rng.random(n)
            for start in range(0, n, chunk):
                part = order[start : start + chunk]
                self.reserve(targets.size, part.size)
                self.visit(samples, part, targets, uniforms[start : start + chunk])
                support = int(self.predictors.count.sum())
                seconds, errors = time.perf_counter() - begun, self.n_mistakes / self.n_seen
                table.append(
                    (self.n_seen, epoch + 1, seconds, self.n_updates, support, errors, self.n_evaluations)
                )
                trail.append(self.q.copy())
                if bar is not None:
                    bar.update(part.size)
                if watch is not None:
                    paused = time.perf_counter()
                    stopped = bool(watch(self, self.n_seen))
                    begun += time.perf_counter() - paused
                    if stopped:
                        break
            if stopped:
                break
        return Result(
            self.q.copy(),
            self.p.copy(),
            self.cut(self.predictors.support),
            self.cut(self.predictors.coef),
            self.history(),
            np.array(trail),
            self.n_updates,
            self.n_evaluations,
            self,
        )

    # ------------------------------------------------------------ saving

    def arrays(self):
        """The state as arrays."""
        support, coef, count, _ = self.predictors
        counters = np.array([self.n_seen, self.n_updates, self.n_evaluations, self.n_mistakes])
        width = int(count.max(initial=0))
        return {
            "log_weights": self.log_weights,
            "q": self.q,
            "p": self.p,
            "support": support[:, :width],
            "coef": coef[:, :width],
            "count": count,
            "counters": counters,
        }

    def restore(self, arrays, n_samples):
        """The inverse of `arrays`."""
        self.log_weights, self.q, self.p = (arrays[name].copy() for name in ("log_weights", "q", "p"))
        self.predictors = Predictors(
            arrays["support"].copy(), arrays["coef"].copy(), arrays["count"].copy(), None
        )
        self.renumber(np.arange(n_samples), n_samples)
        self.n_seen, self.n_updates, self.n_evaluations, self.n_mistakes = (
            int(v) for v in arrays["counters"]
        )


def check_two_classes(estimator, y):
    """Classes of y, and an error where a binary method gets more than two without one_vs_rest."""
    classes = np.unique(y)
    name = type(estimator).__name__
    if classes.size < 2:
        raise ValueError(f"y must hold at least 2 classes, got 1 class: {classes[:1].tolist()[0]!r}")
    if classes.size > 2 and not estimator.one_vs_rest:
        raise ValueError(
            "Only binary classification is supported. The type of the target is multiclass: "
            f"y must hold 2 classes for {name}, got {classes.size}; one_vs_rest=True trains one problem per class"
        )
    return classes


def signs_of(labels, n_classes):
    """Targets of the binary problems: one of -1 and 1 for two classes, else one per class against the rest."""
    positive = [1] if n_classes == 2 else range(n_classes)
    return [np.where(labels == c, 1.0, -1.0) for c in positive]


class OnlineKernels(ClassifierMixin, Estimator):
    """Base of the online learners of the chapter.

    Subclasses have the parameters kernels, normalize, n_epochs, shuffle, one_vs_rest, n_jobs, random_state, callback, verbose, and
    implement ``_learner(kernels, rng, n_rounds)`` (a fresh `Learner`; checks the parameters) and ``_decide(learner, here, held)``
    (decision values of one binary problem).
    """

    def _is_precomputed(self):
        if isinstance(self.kernels, str) and self.kernels != "precomputed":
            raise ValueError(
                f"kernels must be a list of (name, kernel, columns), None or 'precomputed', got {self.kernels!r}"
            )
        return isinstance(self.kernels, str)

    def _checked(self, X, y, reset):
        if y is None:
            raise ValueError(
                f"This {type(self).__name__} estimator requires y to be passed, but the target y is None."
            )
        if self._is_precomputed():
            if not isinstance(X, KernelBank) and (np.ndim(X) != 3 or np.shape(X)[1] != np.shape(X)[2]):
                raise ValueError(
                    f"X must have shape (n_kernels, n, n) for kernels='precomputed', got {np.shape(X)}"
                )
            n = X.n_samples if isinstance(X, KernelBank) else np.shape(X)[1]
            if reset:
                self.n_features_in_ = n
        else:
            if isinstance(X, KernelBank):
                raise ValueError("X is a KernelBank, which needs kernels='precomputed'")
            checked, y = validate_data(self, X, y, dtype=[np.float64, np.float32], reset=reset)
            X, n = (X if hasattr(X, "iloc") else checked), len(checked)
        check_classification_targets(y)
        y = column_or_1d(y, warn=True)
        if y.shape[0] != n:
            raise ValueError(f"y must have one label per training sample, {n}, got {y.shape[0]}")
        return X, y

    def fit(self, X, y):
        """Learn from scratch, in `n_epochs` passes.

        Parameters
        ----------
        X : array-like, shape (n, n_features), or (n_kernels, n, n) for precomputed kernels, or a KernelBank that is in memory
        y : array-like, shape (n,)
            Two classes; more with ``one_vs_rest=True``.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            With one sentence that names the argument, on any bad input.
        """
        with unchanged_on_error(self):
            return self._fit(X, y)

    def _fit(self, X, y):
        n_epochs = check_count("n_epochs", self.n_epochs)
        rng = as_generator(self.random_state)
        if self.callback is not None and not callable(self.callback):
            raise TypeError(f"callback must be callable, got {type(self.callback).__name__}")
        X, y = self._checked(X, y, reset=True)
        classes = check_two_classes(self, y)
        source, samples = bank_of(self, X)
        self.classes_, self._source = classes, source
        targets = signs_of(np.searchsorted(classes, y), classes.size)
        n = y.size
        self._begin(source, rng, n * n_epochs)
        self._held, self._numbers = samples, np.arange(n)
        results = [None] * len(targets)
        options = {
            "desc": type(self).__name__,
            "unit": "sample",
            "delay": BAR_AFTER,
            "leave": False,
            "disable": not self.verbose,
        }
        with tqdm(total=n * n_epochs * len(targets), **options) as bar:

            def one(k):
                def watch(learner, step):
                    self.history_, self.probability_history_ = learner.history(), np.array(learner.trail)
                    return self.callback(self, step)

                results[k] = self._run(
                    self._learners[k], samples, targets[k], n_epochs, watch if self.callback else None, bar
                )

            n_jobs = self.n_jobs if self.callback is None else 1
            Parallel(n_jobs=n_jobs, prefer="threads")(delayed(one)(k) for k in range(len(targets)))
        if source.given:
            self._held = NOTHING
        else:
            self._keep(samples)
        self.history_, self.probability_history_ = results[0].history, results[0].probability_history
        if len(targets) > 1:
            self.history_ = pd.concat(
                [r.history.assign(target=c) for c, r in zip(classes, results, strict=True)], ignore_index=True
            )
            self.probability_history_ = [r.probability_history for r in results]
        self.n_iter_ = n_epochs
        return self

    def _run(self, learner, samples, targets, n_epochs, watch, bar):
        return learner.run(samples, targets, n_epochs, shuffle=self.shuffle, watch=watch, bar=bar)

    def _begin(self, source, rng, n_rounds):
        n_problems = 1 if self.classes_.size == 2 else self.classes_.size
        rngs = [rng] if n_problems == 1 else rng.spawn(n_problems)
        self._learners = [self._learner(source.kernels, r, n_rounds) for r in rngs]

    def _keep(self, samples):
        """Forget the samples that no predictor uses."""
        members = np.unique(np.concatenate([learner.members() for learner in self._learners]))
        places = np.full(len(samples.data), -1)
        places[members] = np.arange(members.size)
        for learner in self._learners:
            learner.renumber(places, members.size)
        self._held = Samples(samples.data[members], samples.scale[members], samples.stack)
        self._numbers = self._numbers[members]

    # ------------------------------------------------------------ prediction

    def _new_samples(self, X):
        check_is_fitted(self, "classes_")
        if self._source.given:
            return self._source.pack(X)
        if hasattr(X, "iloc"):
            validate_data(self, X, reset=False, skip_check_array=True)
            return self._source.pack(X)
        return self._source.pack(validate_data(self, X, dtype=[np.float64, np.float32], reset=False))

    def decision_function(self, X):
        """Decision values.

        Parameters
        ----------
        X : array-like, shape (n, n_features), or for precomputed kernels (n_kernels, n, n_train)

        Returns
        -------
        ndarray
            Shape (n,), positive for ``classes_[1]``; with several problems (n, n_classes).
        """
        here = self._new_samples(X)
        columns = [self._decide(learner, here, self._held) for learner in self._learners]
        return columns[0] if len(columns) == 1 else np.stack(columns, axis=1)

    def _decide(self, learner, here, held):
        return learner.outputs(here, held, learner.best)[:, 0]

    def predict(self, X):
        """Class by the sign of the decision value (the first class at 0), or the class with the largest.

        Parameters
        ----------
        X : as in `decision_function`

        Returns
        -------
        ndarray, shape (n,)
        """
        values = self.decision_function(X)
        return self.classes_[(values > 0.0).astype(int) if values.ndim == 1 else np.argmax(values, axis=1)]

    # ------------------------------------------------------------ fitted attributes

    def _rounds_of_saved(self):
        """T for a model that was saved."""
        return None

    def _of_all(self, get):
        check_is_fitted(self, "classes_")
        values = [get(learner) for learner in self._learners]
        return values[0] if len(values) == 1 else values

    @property
    def kernel_probabilities_(self):
        """Normalised weights q of the kernels, shape (n_kernels,), or (n_classes, n_kernels)."""
        return np.asarray(self._of_all(lambda learner: learner.q.copy()))

    @property
    def best_index_(self):
        """Number of the kernel with the largest weight (the first on ties), or an array of them, one per class."""
        best = self._of_all(lambda learner: learner.best)
        return np.asarray(best) if isinstance(best, list) else best

    @property
    def best_kernel_(self):
        """Name of that kernel, or a list of names."""
        return self._of_all(lambda learner: self._source.names[learner.best])

    @property
    def support_(self):
        """For every kernel the training samples in its predictor (numbers of visits after `partial_fit`), in the order they joined."""
        return self._of_all(
            lambda learner: [self._numbers[s] for s in learner.cut(learner.predictors.support)]
        )

    @property
    def dual_coef_(self):
        """For every kernel the coefficients that go with `support_`."""
        return self._of_all(lambda learner: learner.cut(learner.predictors.coef))

    @property
    def n_updates_(self):
        """Updates of predictors."""
        return self._of_all(lambda learner: learner.n_updates)

    @property
    def n_evaluations_(self):
        """Kernel values computed in training."""
        return self._of_all(lambda learner: learner.n_evaluations)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = bool(self.one_vs_rest)
        tags.input_tags.two_d_array = not isinstance(self.kernels, str)
        tags.input_tags.three_d_array = isinstance(self.kernels, str)
        return tags

    # ------------------------------------------------------------ saving

    def _saved_parameters(self):
        parameters = super()._saved_parameters()
        if hasattr(self, "_source") and not self._source.given:
            parameters["kernels"] = self._source.triples  # with numbers for gamma and for columns
        return parameters

    def _fitted_state(self):
        """Without the record of the visits; a loaded model draws again from `random_state`."""
        names = ("classes_", "n_features_in_", "feature_names_in_")
        state = {name: value for name, value in vars(self).items() if name in names}
        state |= {"names": self._source.names, "numbers": self._numbers}
        if not self._source.given:
            state["held"] = self._held
        return state | {"learners": [learner.arrays() for learner in self._learners]}

    def _set_fitted_state(self, state):
        super()._set_fitted_state({name: value for name, value in state.items() if name.endswith("_")})
        self._numbers, learners = state["numbers"], state["learners"]
        if "held" in state:
            self._held, n = state["held"], len(state["held"].data)
            self._source = Columns(self.kernels, self.normalize)
        else:
            self._held, n = NOTHING, self.n_features_in_
            self._source = Given(len(state["names"]), n, state["names"])
        rng = as_generator(self.random_state)
        rngs = [rng] if len(learners) == 1 else rng.spawn(len(learners))
        self._learners = [self._learner(self._source.kernels, r, self._rounds_of_saved()) for r in rngs]
        for learner, arrays in zip(self._learners, learners, strict=True):
            learner.restore(arrays, n)


class StreamingKernels(OnlineKernels):
    """Online learners that can go on learning."""

    @property
    def online_errors_(self):
        """Whether each visit was a mistake, shape (n_visits,)."""
        return self._of_all(lambda learner: learner.record("mistakes", bool))

    def partial_fit(self, X, y, classes=None):
        """Go on learning from a batch of any size, in the given order: the online algorithm proper.

        Parameters
        ----------
        X : array-like, shape (n, n_features)
            Kernels must be computed from X.
        y : array-like, shape (n,)
        classes : array-like, optional
            All classes; needed at the first call.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            On bad input, before anything has been learnt from it.

        Notes
        -----
        A stream is one pass: `delta` stays at its first value. A ``gamma="mean"`` is set by the first batch and stays; for a stream of
        single samples give a number. Only samples that are in some predictor's support are kept.
        """
        with unchanged_on_error(self):
            return self._partial_fit(X, y, classes)

    def _partial_fit(self, X, y, classes):
        if self._is_precomputed():
            raise ValueError("kernels must be computed from X for partial_fit, got 'precomputed'")
        known, first = classes_of_stream(self, classes)
        check_two_classes(self, known)
        X, y = self._checked(X, y, reset=first)
        labels = labels_within(y, known)
        if first:
            kernels = [RBF()] if self.kernels is None else [kernel for _, kernel, _ in self.kernels]
            if X.shape[0] < 2 and any(
                isinstance(getattr(k, "gamma", 0), str) and k.gamma == "mean" for k in kernels
            ):
                raise ValueError(
                    "kernels take gamma from the first batch, which must hold at least 2 samples, got 1: give gamma as a number"
                )
            rng = as_generator(self.random_state)
            source, samples = bank_of(self, X)
            self.classes_ = known
            self._begin(source, rng, None)
            self._source, self._numbers = source, np.empty(0, dtype=np.int64)
            self._held = Samples(np.empty((0, source.width)), np.empty((0, len(source))), samples.stack)
            for learner in self._learners:
                learner.start_epoch(0)
        else:
            samples = self._source.pack(X)
        held, n, seen = len(self._held.data), y.size, self._learners[0].n_seen
        before = sum(learner.n_updates for learner in self._learners)
        data, scale = (
            np.concatenate([getattr(part, name) for part in (self._held, samples)])
            for name in ("data", "scale")
        )
        together = Samples(data, scale, samples.stack)
        self._numbers = np.concatenate([self._numbers, seen + np.arange(n)])
        for learner, targets in zip(self._learners, signs_of(labels, known.size), strict=True):
            targets = np.concatenate([np.zeros(held), targets])
            learner.reserve(held + n, n)
            learner.visit(together, np.arange(held, held + n), targets, learner.rng.random(n))
        if (
            sum(learner.n_updates for learner in self._learners) == before
        ):  # an update takes its sample in: nobody joined
            self._numbers = self._numbers[:held]
        else:
            self._keep(together)
        return self

"""Base of the online learners."""

from __future__ import annotations

import functools
import math
from dataclasses import field
from numbers import Real
from typing import Any, Self

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from sklearn.model_selection import train_test_split
from sklearn.utils.validation import check_is_fitted

from cuelearn.checkpoint import Changing
from cuelearn.core import docs
from cuelearn.core.estimator import SEQUENCE, Number, ScoreClassifier, parameters, validated
from cuelearn.core.run import Record, Run, history_of, progress
from cuelearn.core.samples import (
    InputLike,
    as_generator,
    classes_and_labels,
    classes_of_stream,
    given_kernels,
    labels_of,
    labels_within,
    new_samples,
    single_samples,
    training_samples,
    visit_weights,
    warn_if_sorted,
)
from cuelearn.expect import expect
from cuelearn.kernels import RBF
from cuelearn.kernels.specifications import check_first_batch, check_kernels
from cuelearn.kernels.stack import training_bank
from cuelearn.kernels.types import ArrayLike, Callback, KernelList, RandomState, SampleWeight
from cuelearn.mkl.base import kernel_summary, two_columns
from cuelearn.mkl.rivals.svm import targets_of
from cuelearn.oks.kernels import (
    Columns,
    Given,
    Predictors,
    Samples,
    Visits,
    Weights,
    bank_of,
    has_functions,
    outputs,
    set_probabilities,
)

CHUNK = 16  # least visits between two callbacks
#: Recorded at every visit.
RECORDED = [("visits", int), ("drawn", np.int32), ("mistakes", bool), ("losses", float)]
NOTHING = Samples(np.empty((0, 0)), np.empty((0, 0)), np.empty((0, 0, 0)))
#: Default kernels.
DEFAULT = [("rbf", RBF(), slice(None))]
INSIDE = [Number(Real, 0, 1, closed="neither")]

TEXTS = {
    "kernels": (
        'list of (name, kernel, columns), "precomputed" or None',
        "Cues, as in ColumnTransformer; None is one `RBF` over all columns, "
        '"precomputed" an X of shape (n_kernels, n, n). A ``scale="mean"`` uses at most 500 evenly spaced '
        "samples; if one is a function, `fit` computes the matrices of all kernels.",
    ),
    "delta": (
        "float in (0, 1] or a sequence of them",
        "Share of uniform draws; one value per epoch, the last persists.",
    ),
    "eta": (
        'float > 0 or "auto"',
        r'Step of the weights; "auto" is :math:`\sqrt{2(1-\delta)\ln m/(mT)}` with T the visits of `fit`. '
        "When `partial_fit` exceeds T visits (initially 1), T doubles for all visits (Bubeck and "
        "Cesa-Bianchi 2012, Regret analysis of bandit problems, theorem 3.1).",
    ),
    "beta": ("float in (0, 1)", "Discount of a kernel that erred."),
    "one_vs_rest": ("bool", "More than two classes: one problem per class, each with its own kernel."),
    "random_state": ("int, Generator or None", "Of the draws and permutations."),
    "callback": (
        "callable(estimator, step)",
        "Called up to about 200 times in `fit`, at least once per pass; a true value ends the run, with "
        "one_vs_rest only that of the current class.",
    ),
    "sample_weight": (
        "array-like of float >= 0, shape (n,), or None",
        "Factors on the predictors' updates and on the losses in the kernel weights. Weight 2 differs from "
        "two visits, the second of which sees the first update.",
    ),
    "validation": (
        "float in (0, 1), or array of int",
        "Share of training samples held out, drawn at random with every class in it; or their indices.",
    ),
    "kernel_probabilities_": (
        "ndarray, shape (n_kernels,), or (n_classes, n_kernels)",
        "Final normalised weights q.",
    ),
    "sampling_probabilities_": (
        "ndarray, shape (n_kernels,), or (n_classes, n_kernels)",
        "Probabilities p of the next draw.",
    ),
    "best_index_": ("int", "The kernel with the largest weight or accuracy; with one_vs_rest one per class."),
    "best_kernel_": ("str", "Its name."),
    "support_": (
        "list of ndarray",
        "The samples in each kernel's predictor; with one_vs_rest one such list per class.",
    ),
    "dual_coef_": ("list of ndarray", "Coefficients of `support_`."),
    "drawn_": ("ndarray, shape (n_visits,)", "The kernel drawn at each visit."),
    "mistakes_per_kernel_": (
        "ndarray of int, shape (n_kernels,), or (n_classes, n_kernels)",
        "Of each kernel's Perceptron in training.",
    ),
    "n_evaluations_": ("int", "Kernel values computed in training."),
    "history_": ("DataFrame", "step, epoch, seconds, n_updates, n_support, online_error, n_evaluations."),
    "probability_history_": ("ndarray, shape (n_rows of the history, n_kernels)", "q along the run."),
}
GROUPS = {
    "run": "$n_epochs $shuffle $one_vs_rest $normalize $n_jobs $random_state $callback $verbose",
    "selection": "$classes_ $kernel_probabilities_ $sampling_probabilities_ $best_index_ $best_kernel_ "
    "$support_ $dual_coef_ $drawn_ $visits_ $online_errors_ $n_updates_ $n_evaluations_ $history_ "
    "$probability_history_",
    "svm": "$classes_ $dual_coef_ $support_ $kernel_weights_ $intercept_ $best_index_ $best_kernel_ $C_",
}


documented = functools.partial(docs.documented, texts=TEXTS, groups=GROUPS)


class Learner(Changing):
    """State of one binary problem: a predictor and a weight per kernel.

    Subclasses implement ``_pass(samples, visits)``, which returns the numbers of updates and kernel values.
    """

    #: Saved besides the predictors.
    SAVED = ("log_weights", "q", "p", "n_seen", "n_updates", "n_evaluations", "n_mistakes")

    def __init__(self, kernels, rng):
        m = kernels.quantity.shape[0]
        self.kernels = kernels
        self.rng = rng
        self.log_weights = np.zeros(m)
        self.q = np.full(m, 1.0 / m)
        self.p = np.full(m, 1.0 / m)
        support = np.zeros((m, 16), dtype=np.int64)
        self.predictors = Predictors(support, np.zeros((m, 16)), np.zeros(m, dtype=np.int64))
        self.n_seen = self.n_updates = self.n_evaluations = self.n_mistakes = 0
        self.first = 0  # number of the first sample
        self.record = Record(RECORDED)

    def _own(self):
        super()._own()
        self.predictors = Predictors(*(array.copy() for array in self.predictors))

    def visit(self, samples, order, targets, sample_weights, uniforms):
        """Visit, count and record samples; see `Visits`."""
        n = order.size
        notes = {"drawn": np.zeros(n, np.int32), "mistakes": np.zeros(n, np.bool_), "losses": np.zeros(n)}
        visits = Visits(order, targets, sample_weights, uniforms, **notes)
        n_updates, n_evaluations = self._pass(samples, visits)
        self.n_seen += n
        self.n_updates += n_updates
        self.n_evaluations += n_evaluations
        self.n_mistakes += int(visits.mistakes.sum())
        self.record.add(n, visits=self.first + order, **notes)

    def reserve(self, n_visits):
        """Make room for a new member at each visit."""
        support, coef, count = self.predictors
        capacity = support.shape[1]
        missing = int(count.max()) + n_visits - capacity
        if missing > 0:
            room = ((0, 0), (0, max(missing, capacity)))
            self.predictors = Predictors(np.pad(support, room), np.pad(coef, room), count)

    def _cut(self, rows):
        return [row[:c].copy() for row, c in zip(rows, self.predictors.count, strict=True)]

    @property
    def support(self):
        return self._cut(self.predictors.support)

    @property
    def dual_coef(self):
        return self._cut(self.predictors.coef)

    def outputs(self, here, held, *kernels):
        """Predictions of these kernels (default all), shape (n, number)."""
        members = np.array(kernels or range(self.q.size))
        out = np.empty((len(here.scale), members.size))
        outputs(self.kernels, self.predictors, members, here, held, out)
        return out

    @property
    def weights(self):
        return Weights(self.log_weights, self.q, self.p)

    @property
    def best(self):
        """The first kernel with the largest weight."""
        return int(np.argmax(self.log_weights))

    def start_epoch(self, epoch):
        set_probabilities(self.weights, 0.0)

    def run(
        self,
        samples,
        targets,
        n_epochs,
        *,
        sample_weights=None,
        rows=None,
        shuffle=False,
        chunk=None,
        watch=None,
        bar=None,
    ):
        """Passes over `samples` or these `rows`; returns the learner.

        After every `chunk` visits the history gets a row and ``watch(learner, step)`` is called; a true value
        ends the run. Later passes are always permuted.
        """
        visited = np.arange(targets.size) if rows is None else rows
        if sample_weights is None:
            sample_weights = np.ones(targets.size)
        chunk = chunk or max(CHUNK, visited.size * n_epochs // 200)
        run = Run(watch, bar=bar)
        self._rows = run.rows
        self._trail = []
        for epoch in range(n_epochs):
            self.start_epoch(epoch)
            order = visited
            if shuffle or epoch:
                order = visited[self.rng.permutation(visited.size)]
            uniforms = self.rng.random(visited.size)
            for start in range(0, visited.size, chunk):
                part = order[start : start + chunk]
                self.reserve(part.size)
                self.visit(samples, part, targets, sample_weights, uniforms[start : start + chunk])
                run.pause()
                self._trail.append(self.q.copy())
                row = {"epoch": epoch + 1, "n_updates": self.n_updates, "n_evaluations": self.n_evaluations}
                row["n_support"] = int(self.predictors.count.sum())
                row["online_error"] = self.n_mistakes / self.n_seen
                if run.end(self.n_seen, lambda: self, done=part.size, **row):
                    return self
        return self

    @property
    def history(self):
        return history_of(self._rows)

    @property
    def probability_history(self):
        return np.array(self._trail)

    def state(self):
        support, coef, count = self.predictors
        width = int(count.max(initial=0))
        predictors = {"support": support[:, :width], "coef": coef[:, :width], "count": count}
        return predictors | {name: getattr(self, name) for name in self.SAVED}

    def restore(self, state, n_samples):
        """Inverse of `state`; ValueError for wrong shapes or sample numbers."""
        m = self.q.size
        width = state["support"].shape[-1]
        shapes = dict.fromkeys(("support", "coef"), (m, width))
        shapes |= dict.fromkeys(("count", "q", "p", "log_weights"), (m,))
        sound = np.isin(state["count"], np.arange(width + 1)).all()
        sound = sound and np.isin(state["support"], np.arange(n_samples)).all()
        if not sound or any(state[name].shape != shape for name, shape in shapes.items()):
            raise ValueError("predictors of different sizes")
        for name in self.SAVED:
            setattr(self, name, state[name])
        self.predictors = Predictors(state["support"], state["coef"], state["count"])


def refuse_many_classes(estimator, classes):
    if classes.size > 2 and not estimator.one_vs_rest:
        raise ValueError(
            "Only binary classification is supported. The type of the target is multiclass: "
            f"y must hold 2 classes for {type(estimator).__name__}, got {classes.size}; one_vs_rest=True "
            "trains one problem per class"
        )


def signs_of(labels, n_classes):
    """Targets -1 and 1 of the binary problems, see `targets_of`."""
    return [np.where(target, 1.0, -1.0) for target in targets_of(labels, n_classes)]


def held_back(labels, share, rng, sample_weight):
    """Sorted indices of training and held-out samples of positive weight, with all classes in both, but those
    of one sample in the former; `share` may be the latter."""
    every = np.arange(len(labels))
    weighted = every
    if sample_weight is not None:
        weighted = np.flatnonzero(sample_weight)
    if np.ndim(share) == 1:
        rows = expect("validation", share, kind="int", shape=("k",), low=0, high=every.size - 1)
        train = np.setdiff1d(every, rows)
        test = np.unique(rows)
        if np.unique(labels[np.intersect1d(train, weighted)]).size < np.unique(labels).size:
            raise ValueError("validation must leave training samples, with sample_weight > 0, of every class")
        if not np.isin(test, weighted).any():
            raise ValueError("validation must have a sample with sample_weight > 0")
        return train, test
    alone, weighted = single_samples(weighted, labels)
    classes = np.unique(labels[weighted])
    n = weighted.size
    size = min(max(round(share * n), classes.size), n - classes.size)
    options = {"stratify": labels[weighted], "random_state": int(rng.integers(2**31 - 1))}
    train, test = train_test_split(weighted, test_size=size, **options)
    return np.sort(np.concatenate([train, alone])), np.sort(test)


@parameters
class OnlineKernels(ScoreClassifier):
    """Base: subclasses have ``_learner(kernels, rng, n_rounds)`` and ``_decide(learner, here, held)``,
    decision values of one problem."""

    _parameter_constraints = {
        "one_vs_rest": ["boolean"],
        "delta": [Number(Real, 0, 1, closed="both"), *SEQUENCE],
        "beta": INSIDE,
        "validation": [*INSIDE, *SEQUENCE],
    }

    kernels: KernelList = field(default=None, kw_only=False)
    one_vs_rest: bool = False
    normalize: bool = True
    random_state: RandomState = None
    callback: Callback = None
    verbose: bool = False

    n_epochs: int = 1
    shuffle: bool = False
    n_jobs: int | None = None

    def _is_precomputed(self):
        return isinstance(self.kernels, str)

    def _used(self, first=False):
        return lambda: given_kernels(self.kernels) if first else self._source.triples

    def _checked(self, X, y, reset):
        if not self._is_precomputed():
            samples, y = training_samples(self, X, y, used=self._used(reset), reset=reset)
            if reset:  # later `labels_within` checks
                labels_of(self, y, len(y))
            return samples, y
        bank = training_bank(X)
        self.n_features_in_ = bank.n_samples
        return bank, labels_of(self, y, bank.n_samples)

    @documented
    @validated
    def fit(self, X: InputLike, y: ArrayLike, sample_weight: SampleWeight = None) -> Self:
        """Train from scratch, in `n_epochs` passes.

        Parameters
        ----------
        X : array-like, shape (n, n_features), or (n_kernels, n, n) if precomputed
            Or a KernelBank in memory, or a KernelStack.
        y : array-like, shape (n,)
            Two classes; more with ``one_vs_rest=True``.
        $sample_weight

        Returns
        -------
        self
        """
        X, y = self._checked(X, y, reset=True)
        rng = as_generator(self.random_state)
        classes, labels = classes_and_labels(y)
        refuse_many_classes(self, classes)
        sample_weights = visit_weights(sample_weight, y.size)
        warn_if_sorted(self, labels, self.n_epochs)
        self._source, samples = bank_of(self, X)
        self.classes_ = classes
        targets = signs_of(labels, classes.size)
        n_visits = y.size * self.n_epochs
        self._begin(rng, n_visits)
        self._held = samples
        self._numbers = np.arange(y.size)
        options = {"name": type(self).__name__, "total": n_visits * len(targets), "unit": "sample"}
        with progress(**options, verbose=self.verbose) as bar:
            Parallel(n_jobs=self.n_jobs if self.callback is None else 1, require="sharedmem")(
                delayed(self._run)(learner, samples, signs, sample_weights, bar)
                for learner, signs in zip(self._learners, targets, strict=True)
            )
        if self._source.width:
            self._keep(samples)
        else:  # matrices
            self._held = NOTHING
        self._show_run(self._learners[0])
        if len(targets) > 1:
            runs = zip(classes, self._learners, strict=True)
            tables = [learner.history.assign(target=c) for c, learner in runs]
            self.history_: pd.DataFrame = pd.concat(tables, ignore_index=True)
            self.probability_history_ = [learner.probability_history for learner in self._learners]
        self.n_iter_ = self.n_epochs
        self._finish()
        return self

    def _finish(self):
        """Hook after training."""

    def _run(self, learner, samples, targets, sample_weights, bar, rows=None):
        watch = None if self.callback is None else self._watch
        options = {"rows": rows, "shuffle": self.shuffle, "watch": watch, "bar": bar}
        learner.run(samples, targets, self.n_epochs, sample_weights=sample_weights, **options)

    def _show_run(self, learner):
        self.history_ = learner.history
        self.probability_history_ = learner.probability_history

    def _watch(self, learner, step):
        self._show_run(learner)
        return self.callback(self, step)

    def _begin(self, rng, n_rounds):
        rngs = [rng]
        if self.classes_.size != 2:
            rngs = rng.spawn(self.classes_.size)
        self._learners = [self._learner(self._source.kernels, r, n_rounds) for r in rngs]

    def _keep(self, samples):
        """Hold the support samples only, with new numbers."""
        members = np.unique(np.concatenate([rows for learner in self._learners for rows in learner.support]))
        places = np.full(len(samples.data), -1)
        places[members] = np.arange(members.size)
        for learner in self._learners:
            for row, count in zip(learner.predictors.support, learner.predictors.count, strict=True):
                row[:count] = places[row[:count]]
        self._held = Samples(samples.data[members], samples.scale[members], samples.stack)
        self._numbers = self._numbers[members]

    def _class_scores(self, X):
        check_is_fitted(self, "classes_")
        samples = X
        if not self._source.given:
            samples = new_samples(self, X, used=self._used())
        here = self._source.pack(samples)
        values = np.stack([self._decide(learner, here, self._held) for learner in self._learners], axis=1)
        if values.shape[1] == 1:
            return two_columns(values)
        return values

    def _decide(self, learner, here, held):
        return learner.outputs(here, held, learner.best)[:, 0]

    def _of_learners(self, get, several=np.asarray):
        """Of the only learner, or of each class's."""
        check_is_fitted(self, "classes_")
        values = [get(learner) for learner in self._learners]
        if len(values) == 1:
            return values[0]
        return several(values)

    @property
    def kernel_probabilities_(self) -> np.ndarray:
        return self._of_learners(lambda learner: learner.q.copy())

    @property
    def best_index_(self) -> int | Any:
        return self._of_learners(lambda learner: learner.best)

    @property
    def visits_(self) -> np.ndarray | Any:
        return self._of_learners(lambda learner: learner.record["visits"], list)

    @property
    def n_updates_(self) -> int | Any:
        return self._of_learners(lambda learner: learner.n_updates, list)

    @property
    def n_evaluations_(self) -> int | Any:
        return self._of_learners(lambda learner: learner.n_evaluations, list)

    @property
    def dual_coef_(self) -> list:
        return self._of_learners(lambda learner: learner.dual_coef, list)

    @property
    def best_kernel_(self) -> str | Any:
        best = self.best_index_
        if np.ndim(best) == 0:
            return self._source.names[best]
        return [self._source.names[j] for j in best]

    @property
    def support_(self) -> list:
        check_is_fitted(self, "classes_")
        joined = [[self._numbers[members] for members in learner.support] for learner in self._learners]
        if len(joined) == 1:
            return joined[0]
        return joined

    def summary(self) -> pd.DataFrame:
        """Contribution of each kernel to the fitted model.

        Returns
        -------
        DataFrame
            One row per kernel, and per class with one_vs_rest (column class): name; weight and share, of its
            probability; norm and support of its predictor (norm NaN for given matrices).
        """
        check_is_fitted(self, "classes_")
        norms = np.full((len(self._learners), len(self._source)), np.nan)
        if self._source.width:
            for row, learner in zip(norms, self._learners, strict=True):
                values = learner.outputs(self._held, self._held)
                pairs = zip(learner.support, learner.dual_coef, strict=True)
                row[:] = [math.sqrt(max(0.0, c @ values[s, j])) for j, (s, c) in enumerate(pairs)]
        weights = np.array([learner.q for learner in self._learners])
        support = np.array([learner.predictors.count for learner in self._learners])
        return kernel_summary(self._source.names, weights, norms, support, self.classes_)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = bool(self.one_vs_rest)
        tags.input_tags.two_d_array = not self._is_precomputed()
        tags.input_tags.three_d_array = tags.input_tags.pairwise = self._is_precomputed()
        return tags

    def _saved_parameters(self):
        parameters = super()._saved_parameters()
        if hasattr(self, "_source") and not self._source.given:
            parameters["kernels"] = self._source.triples  # with resolved scales and columns
        return parameters

    def _score_ones(self):
        given = self._source.given
        n = self.n_features_in_
        return self.decision_function(np.ones((len(self._source), 1, n) if given else (1, n)))

    def _fitted_state(self):
        """Without records; a loaded model draws anew from `random_state`."""
        names = ("classes_", "n_features_in_", "feature_names_in_")
        state = {name: value for name, value in vars(self).items() if name in names}
        state |= {"names": self._source.names, "numbers": self._numbers}
        if self._source.width:
            state["held"] = self._held
        return state | {"learners": [learner.state() for learner in self._learners]}

    def _set_fitted_state(self, state):
        super()._set_fitted_state({name: value for name, value in state.items() if name.endswith("_")})
        self._numbers = state["numbers"]
        learners = state["learners"]
        if "held" in state:
            self._held = state["held"]
            n = len(state["held"].data)
            self._source = Columns(self.kernels, self.normalize)
            if [part.shape[1] for part in self._held[:2]] != [self._source.width, len(self._source)]:
                raise ValueError("samples of another width than the kernels' columns")
        else:
            self._held, n = NOTHING, self.n_features_in_
            self._source = Given(len(state["names"]), n, state["names"])
        self._begin(as_generator(self.random_state), 1)
        for learner, part in zip(self._learners, learners, strict=True):
            learner.restore(part, n)


class StreamingKernels(OnlineKernels):
    @property
    def online_errors_(self) -> np.ndarray | Any:
        return self._of_learners(lambda learner: learner.record["mistakes"], list)

    @documented
    @validated
    def partial_fit(
        self, X: InputLike, y: ArrayLike, classes: ArrayLike | None = None, sample_weight: SampleWeight = None
    ) -> Self:
        """Continue training on a batch of any size, in the given order.

        Parameters
        ----------
        X : array-like, shape (n, n_features)
            Kernels must be computed from X.
        y : array-like, shape (n,)
        classes : array-like, optional
            All classes; needed at the first call.
        $sample_weight

        Returns
        -------
        self

        Notes
        -----
        A stream is one pass: `delta` stays at its first value. Batch sizes do not matter, except that the
        first batch sets a ``scale="mean"``; give a number for a stream of single samples. Only samples in the
        support of some predictor are kept.
        """
        if self._is_precomputed():
            raise ValueError("kernels must be computed from X for partial_fit, got 'precomputed'")
        if has_functions(check_kernels(self.kernels or DEFAULT)):
            raise ValueError("kernels must be those of cuelearn.kernels for partial_fit, got a function")
        known, first = classes_of_stream(self, classes)
        refuse_many_classes(self, known)
        X, y = self._checked(X, y, reset=first)
        labels = labels_within(y, known)
        sample_weights = visit_weights(sample_weight, y.size, stream=True)
        samples = self._open(X, known) if first else self._source.pack(X)
        held = len(self._held.data)
        n = y.size
        seen = self._learners[0].n_seen
        before = sum(learner.n_updates for learner in self._learners)
        data = np.concatenate([self._held.data, samples.data])
        together = Samples(data, np.concatenate([self._held.scale, samples.scale]), samples.stack)
        self._numbers = np.concatenate([self._numbers, seen + np.arange(n)])
        sample_weights = np.concatenate([np.zeros(held), sample_weights])
        for learner, targets in zip(self._learners, signs_of(labels, known.size), strict=True):
            targets = np.concatenate([np.zeros(held), targets])
            learner._own()
            learner.reserve(n)
            learner.first = seen - held
            learner.visit(together, held + np.arange(n), targets, sample_weights, learner.rng.random(n))
        if sum(learner.n_updates for learner in self._learners) > before:
            self._keep(together)
        else:  # no update, no new member
            self._numbers = self._numbers[:held]
        return self

    def _open(self, X, classes):
        """Start a stream; returns the packed first batch."""
        kernels = [kernel for _, kernel, _ in check_kernels(self.kernels or DEFAULT)]
        check_first_batch(kernels, X.shape[0])
        self._source, samples = bank_of(self, X)
        self.classes_ = classes
        self._numbers = np.empty(0, dtype=np.int64)
        self._begin(as_generator(self.random_state), 1)
        self._held = Samples(samples.data[:0], samples.scale[:0], samples.stack)
        for learner in self._learners:
            learner.start_epoch(0)
        return samples

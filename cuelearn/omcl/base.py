"""What the estimators of the chapter share: input forms, the loop over batches, records, prediction, saving."""

import time

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data
from tqdm.auto import tqdm

from cuelearn.core.checks import as_generator, check_count, classes_of_stream, labels_within
from cuelearn.core.losses import margins
from cuelearn.core.storage import Loadable, read_parts, write_parts
from cuelearn.kernels import Kernel

__all__ = ["OnlineClassifier", "load"]

FORMAT = 1
CHUNK = 256  # samples visited between two looks at the outside world: history, callback, progress
BAR_AFTER = 2.0


class Record:
    """Growing columns of what happened at each visit; appending costs the same however long they are."""

    FIELDS = {"mistake": np.bool_, "loss": np.float64, "n_support": np.int32}

    def __init__(self):
        self.n = 0
        self._held = {name: np.empty(0, dtype) for name, dtype in self.FIELDS.items()}

    def add(self, **values):
        """Append arrays of one length."""
        count = len(next(iter(values.values())))
        for name, value in values.items():
            held = self._held[name]
            if held.size < self.n + count:
                grown = np.empty(max(self.n + count, 2 * held.size), held.dtype)
                grown[: self.n] = held[: self.n]
                self._held[name] = held = grown
            held[self.n : self.n + count] = value
        self.n += count

    def __getitem__(self, name):
        return self._held[name][: self.n]


class OnlineClassifier(Loadable, ClassifierMixin, BaseEstimator):
    """Base of the online learners.

    Subclasses implement

    ``_open(X, n_classes)``
        Start anew; X is the first batch, checked.
    ``_observe(X, labels, log=False)``
        Visit a batch in order and learn; returns a `Trace`, with a log of all updates if `log`.
    ``_scores(X)``
        Class scores of new samples, shape (n, n_classes).
    ``_pack_state(prefix, arrays)``, ``_unpack_state(plain, prefix, arrays)``
        The learnt state for `save`: returns its plain part, arrays go into `arrays` under `prefix`; and the inverse.
    """

    # ------------------------------------------------------------ subclasses' hooks

    def _is_precomputed(self):
        return False

    def _n_rows(self, X):
        return X.shape[0]

    def _n_support(self):
        return 0

    def _check_batch(self, X):
        """Raise what `_observe` would raise, before anything has been learnt from X."""

    # ------------------------------------------------------------ learning

    def fit(self, X, y):
        """Learn from scratch, in `n_epochs` passes; the first keeps the given order unless `shuffle` is set.

        Parameters
        ----------
        X : array-like, shape (n, n_features), or the kernel matrix (n, n) where kernels are precomputed
        y : array-like, shape (n,)

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            With one sentence that names the argument, on any bad input.
        """
        n_epochs = check_count("n_epochs", self.n_epochs)
        rng = as_generator(self.random_state)
        X, y = self._check_samples(X, y, first=True)
        check_classification_targets(y)
        classes, labels = np.unique(y, return_inverse=True)
        if classes.size < 2:
            raise ValueError(f"y must hold at least 2 classes, got 1 class: {classes[0]!r}")
        if self._is_precomputed() and (n_epochs > 1 or self.shuffle):
            self._refuse_reordering()
        if self.callback is not None and not callable(self.callback):
            raise TypeError(f"callback must be callable, got {type(self.callback).__name__}")
        self._start(X, classes)
        self._run(X, labels.astype(np.int64), n_epochs, rng)
        return self

    def _refuse_reordering(self):
        raise ValueError(
            "n_epochs must be 1 and shuffle False with precomputed kernels: permute rows and columns of X instead"
        )

    def _run(self, X, labels, n_epochs, rng):
        n, rows, stopped = labels.size, [], False
        begun = time.perf_counter()
        name = type(self).__name__
        with tqdm(
            total=n * n_epochs,
            desc=name,
            unit="sample",
            delay=BAR_AFTER,
            leave=False,
            disable=not self.verbose,
        ) as bar:
            for epoch in range(1, n_epochs + 1):
                order = rng.permutation(n) if self.shuffle or epoch > 1 else None
                for start in range(0, n, CHUNK):
                    stop = min(n, start + CHUNK)
                    if order is None:
                        batch = self._rows_of(X, slice(start, stop), stop)
                    else:
                        batch = X[order[start:stop]]
                    self._learn(batch, labels[slice(start, stop) if order is None else order[start:stop]])
                    bar.update(stop - start)
                    rows.append(
                        (
                            self.n_seen_,
                            epoch,
                            time.perf_counter() - begun,
                            self.n_updates_,
                            self._n_support(),
                            self.n_mistakes_,
                        )
                    )
                    if self.callback is not None:
                        paused = time.perf_counter()
                        self._publish(rows)
                        stopped = bool(self.callback(self, self.n_seen_))
                        begun += time.perf_counter() - paused  # the clock of the history stops meanwhile
                    if stopped:
                        break
                if stopped:
                    break
        self._publish(rows)

    def _rows_of(self, X, rows, seen):
        """Part of the training data, as `partial_fit` would get it."""
        return X[rows]

    def _publish(self, rows):
        table = pd.DataFrame(
            rows, columns=["step", "epoch", "seconds", "n_updates", "n_support", "n_mistakes"]
        )
        table.insert(5, "online_error", table.pop("n_mistakes") / table["step"])
        self.history_ = table

    def partial_fit(self, X, y, classes=None):
        """Go on learning from a batch of any size, in the given order: the online algorithm proper.

        Parameters
        ----------
        X : array-like, shape (n, n_features)
            With precomputed kernels (n, n_seen + n): the kernel of the batch with all samples seen so far, in order, and itself.
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
        A ``gamma="mean"`` is set by the first batch and stays; for a stream of single samples give a number.
        """
        known, first = classes_of_stream(self, classes)
        X, y = self._check_samples(X, y, first)
        labels = labels_within(y, known)
        if first:
            self._start(X, known)
        else:
            self._check_batch(X)
        labels, seen = labels.astype(np.int64), self.n_seen_
        for start in range(0, labels.size, CHUNK):  # a batch of any size costs the memory of a small one
            rows = slice(start, min(labels.size, start + CHUNK))
            self._learn(self._rows_of(X, rows, seen + rows.stop), labels[rows])
        return self

    def _check_samples(self, X, y, first):
        """X and y as arrays: floating point, finite, of matching lengths."""
        if y is None:
            raise ValueError(
                f"This {type(self).__name__} estimator requires y to be passed, but the target y is None."
            )
        if self._is_precomputed():
            X = self._check_precomputed(X)
            y = column_or_1d(y, warn=True)
        else:
            X, y = validate_data(self, X, y, dtype=[np.float64, np.float32], reset=first, order="C")
        if y.shape[0] != self._n_rows(X):
            raise ValueError(f"y must have one label per sample, {self._n_rows(X)}, got {y.shape[0]}")
        if self._is_precomputed():
            seen = 0 if first else self.n_seen_
            if X.shape[-1] != seen + y.shape[0]:
                raise ValueError(
                    f"X must have shape ({'' if X.ndim == 2 else 'n_kernels, '}n, {seen} + n), the kernel of a batch with all samples "
                    f"seen so far and itself, got {X.shape}"
                )
        return X, y

    def _check_precomputed(self, X):
        X = np.asarray(X)
        if X.dtype.kind != "f":
            X = X.astype(np.float64)
        if X.ndim != 2 or not np.isfinite(X).all():
            raise ValueError(f"X must be a finite kernel matrix of shape (n, n_seen), got shape {X.shape}")
        return X

    def _start(self, X, classes):
        self._open(X, classes.size)  # may fail: the attributes below then stay as they were
        self.classes_ = classes
        self.n_seen_ = self.n_updates_ = self.n_mistakes_ = 0
        self.cumulative_loss_ = 0.0
        self._record = Record() if self.record else None
        vars(self).pop("history_", None)

    def _learn(self, X, labels, **wanted):
        """Visit a batch, keep the records; returns the `Trace` of `_observe`."""
        trace = self._observe(X, labels, **wanted)
        margin = margins(trace.scores, labels)
        losses = np.maximum(0.0, 1.0 - margin)
        self.n_seen_ += labels.size
        self.n_mistakes_ += int(np.sum(margin <= 0.0))
        self.cumulative_loss_ += float(losses.sum())
        self.n_updates_ = self._count_updates()
        if self._record is not None:
            self._record.add(mistake=margin <= 0.0, loss=losses, n_support=trace.sizes)
        return trace

    def _count_updates(self):
        return self._state.n_updates

    # ------------------------------------------------------------ records

    def _recorded(self, name):
        check_is_fitted(self, "classes_")
        if self._record is None:
            raise AttributeError(f"{type(self).__name__} keeps no sequences with record=False")
        return self._record[name].copy()

    @property
    def online_errors_(self):
        """0/1 sequence of mistakes over all visits; a tie counts as a mistake."""
        return self._recorded("mistake")

    @property
    def online_losses_(self):
        """Multiclass hinge loss at each visit, before the update."""
        return self._recorded("loss")

    @property
    def support_sizes_(self):
        """Size of the support set after each visit (of all cues together where there are several)."""
        return self._recorded("n_support")

    # ------------------------------------------------------------ prediction

    def _class_scores(self, X):
        check_is_fitted(self, "classes_")
        if self._is_precomputed():
            X = self._check_precomputed(X)
        else:
            X = validate_data(self, X, dtype=[np.float64, np.float32], reset=False, order="C")
        return self._scores(X)

    def decision_function(self, X):
        """Class scores of the averaged hypothesis, or of the last one with ``average=False``.

        Parameters
        ----------
        X : array-like, shape (n, n_features), or kernels with all samples seen in training

        Returns
        -------
        ndarray
            Shape (n, n_classes); for two classes shape (n,), the second class's score minus the first's.
        """
        scores = self._class_scores(X)
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    def predict(self, X):
        """Class with the largest score; the first on ties.

        Parameters
        ----------
        X : as in `decision_function`

        Returns
        -------
        ndarray, shape (n,)
        """
        best = np.argmax(self._class_scores(X), axis=1)
        return self.classes_[best]

    # ------------------------------------------------------------ saving

    def save(self, path):
        """Save the model as one .npz file without pickle; `load` reads it back and can go on learning.

        The sequences of the record, a callback and a `random_state` other than None or an int are left out.

        Parameters
        ----------
        path : str or path-like
            Written whole or not at all.

        Raises
        ------
        TypeError
            If a learner or parameter cannot be written without pickle.
        """
        check_is_fitted(self, "classes_")
        arrays = {}
        head = {"format": FORMAT, "model": pack(self, "", arrays)}
        write_parts(path, head, arrays)

    @staticmethod
    def _rebuild(head, arrays):
        return _rebuild(head, arrays)


# ------------------------------------------------------------ packing without pickle


def pack_value(value, what):
    """A parameter as a JSON-able value."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, Kernel):
        return {"__kernel__": value.to_dict()}
    if isinstance(value, slice):
        return {"__slice__": [pack_value(v, what) for v in (value.start, value.stop, value.step)]}
    if isinstance(value, np.ndarray):
        return [pack_value(v, what) for v in value]
    if isinstance(value, OnlineClassifier):
        return {"__learner__": type(value).__name__, "parameters": pack_parameters(value)}
    if isinstance(value, (list, tuple)):
        return (
            {"__tuple__": [pack_value(v, what) for v in value]}
            if isinstance(value, tuple)
            else [pack_value(v, what) for v in value]
        )
    raise TypeError(f"{what} holds a {type(value).__name__}, which cannot be saved without pickle")


def pack_parameters(model):
    """Constructor arguments of an estimator, without what is not data."""
    parameters = model.get_params(deep=False)
    parameters.pop("callback", None)
    if not isinstance(parameters.get("random_state"), (type(None), int, np.integer)):
        parameters["random_state"] = None
    return {
        name: pack_value(value, f"parameter {name!r} of {type(model).__name__}")
        for name, value in parameters.items()
    }


def unpack_value(value):
    """Inverse of `pack_value`."""
    if isinstance(value, list):
        return [unpack_value(v) for v in value]
    if not isinstance(value, dict):
        return value
    if "__kernel__" in value:
        return Kernel.from_dict(value["__kernel__"])
    if "__slice__" in value:
        return slice(*value["__slice__"])
    if "__tuple__" in value:
        return tuple(unpack_value(v) for v in value["__tuple__"])
    return estimator_class(value["__learner__"])(
        **{k: unpack_value(v) for k, v in value["parameters"].items()}
    )


def estimator_class(name):
    """One of the chapter's estimators by its name."""
    import cuelearn.omcl

    cls = getattr(cuelearn.omcl, name, None)
    if not (isinstance(cls, type) and issubclass(cls, OnlineClassifier)):
        raise ValueError(f"no estimator {name!r}")
    return cls


def pack(model, prefix, arrays):
    """A fitted estimator as a JSON-able dict and arrays under `prefix`."""
    classes = model.classes_
    arrays[f"{prefix}classes"] = classes.astype(str) if classes.dtype == object else classes
    plain = {
        name: getattr(model, name) for name in ("n_seen_", "n_updates_", "n_mistakes_", "cumulative_loss_")
    }
    if hasattr(model, "n_features_in_"):
        plain["n_features_in_"] = int(model.n_features_in_)
    if hasattr(model, "feature_names_in_"):
        arrays[f"{prefix}feature_names"] = model.feature_names_in_.astype(str)
    return {
        "class": type(model).__name__,
        "parameters": pack_parameters(model),
        "plain": plain,
        "state": model._pack_state(prefix, arrays),
    }


def unpack(head, prefix, arrays):
    """Inverse of `pack`."""
    model = estimator_class(head["class"])(**{k: unpack_value(v) for k, v in head["parameters"].items()})
    model.classes_ = arrays[f"{prefix}classes"]
    for name, value in head["plain"].items():
        setattr(model, name, value)
    if f"{prefix}feature_names" in arrays:
        model.feature_names_in_ = arrays[f"{prefix}feature_names"].astype(object)
    model._record = Record() if model.record else None
    model._unpack_state(head["state"], prefix, arrays)
    return model


def load(path):
    """Load any estimator of this chapter from a file written by its `save`.

    Parameters
    ----------
    path : str or path-like

    Returns
    -------
    estimator

    Raises
    ------
    ValueError
        If the file is damaged or not one of ours.
    """
    return read_parts(path, _rebuild)


def _rebuild(head, arrays):
    if head["format"] != FORMAT:
        raise ValueError(f"format {head['format']}")
    return unpack(head["model"], "", arrays)

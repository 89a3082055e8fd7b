r"""What OMCL is compared with: one learner on all cues at once, and a majority vote (thesis 3.4)."""

import numpy as np
from sklearn.base import clone

from cuelearn.kernels import RBF, SupportSet, feature_places, resolve_columns
from cuelearn.omcl.base import OnlineClassifier, pack, unpack
from cuelearn.omcl.framework import MultiCueClassifier
from cuelearn.omcl.learners import ProjectronPlusPlus, _KernelLearner
from cuelearn.omcl.linear import _LinearLearner
from cuelearn.omcl.states import Trace

__all__ = ["Flat", "Vote", "count_votes"]

SCALES = ("none", "deviation")


class SumSupport:
    """Samples of several cues with the mean of the cues' kernels: the kernel of the concatenated feature maps."""

    precomputed = False
    kernel = "mean of the cues' kernels"

    def __init__(self, kernels, columns, normalize, first):
        self.columns = columns
        self.parts = [
            SupportSet(kernel, normalize, self._part(first, c))
            for kernel, c in zip(kernels, columns, strict=True)
        ]
        self.size = 0
        self._samples = np.empty((0, first.shape[1]), dtype=first.dtype)

    @staticmethod
    def _part(X, columns):
        return np.ascontiguousarray(X[:, columns])

    @property
    def samples(self):
        """The samples kept, all columns."""
        return self._samples[: self.size]

    def check(self, X):
        """See `SupportSet.check`."""
        for part, c in zip(self.parts, self.columns, strict=True):
            part.check(self._part(X, c))
        return X

    def batch(self, X):
        """See `SupportSet.batch`."""
        rows, diagonal, columns, places = self.parts[0].batch(self._part(X, self.columns[0]))
        for part, c in zip(self.parts[1:], self.columns[1:], strict=True):
            more, more_diagonal, _, _ = part.batch(self._part(X, c))
            rows, diagonal = rows + more, diagonal + more_diagonal
        return rows / len(self.parts), diagonal / len(self.parts), columns, places

    def add(self, X, chosen):
        """See `SupportSet.add`."""
        for part, c in zip(self.parts, self.columns, strict=True):
            part.add(self._part(X, c), chosen)
        new = self.size + len(chosen)
        if new > self._samples.shape[0]:
            grown = np.empty((max(new, 2 * self._samples.shape[0]), X.shape[1]), dtype=self._samples.dtype)
            grown[: self.size] = self.samples
            self._samples = grown
        self._samples[self.size : new] = X[chosen]
        self.size = new

    def cross(self, X):
        """See `SupportSet.cross`."""
        return sum(
            part.cross(self._part(X, c)) for part, c in zip(self.parts, self.columns, strict=True)
        ) / len(self.parts)


class Flat(OnlineClassifier):
    r"""Low-level integration: the cues' vectors put end to end, and one online learner on the long vector (equation 2.1).

    Read literally, the feature *vectors* are concatenated and the learner's kernel works on all columns; with `cues`, the feature *maps*
    of the cues' own kernels are, :math:`\bar\phi = [\phi^1, \dots, \phi^F]`, so that the kernel is the mean of the cues' kernels.

    Parameters
    ----------
    learner : online learner of this chapter, default ``ProjectronPlusPlus()``
        With ``kernel="precomputed"`` X is a stack (F, n, n_seen), whose mean is used.
    cues : list of (name, kernel, columns) or None, default None
        None concatenates vectors, else feature maps.
    scale : {"none", "deviation"}, default "none"
        Divide every column by its standard deviation over the first batch; only without `cues`.
    average, n_epochs, shuffle, record, random_state, callback, verbose
        See `KernelPerceptron`; they take the place of the learner's own.

    Attributes
    ----------
    learner_ : online learner
        Classes counted 0..M-1.
    classes_, n_seen_, n_updates_, n_mistakes_, cumulative_loss_, history_, online_errors_, online_losses_, support_sizes_
        See `KernelPerceptron`.

    References
    ----------
    Thesis equation 2.1, section 3.4.

    Examples
    --------
    >>> from cuelearn.datasets import load_mfeat
    >>> from cuelearn.omcl import Flat
    >>> data = load_mfeat()
    >>> bool(Flat(shuffle=True, random_state=0).fit(data.X, data.y).score(data.X, data.y) > 0.5)
    True
    """

    def __init__(
        self,
        learner=None,
        *,
        cues=None,
        scale="none",
        average=True,
        n_epochs=1,
        shuffle=False,
        record=True,
        random_state=None,
        callback=None,
        verbose=True,
    ):
        self.learner = learner
        self.cues = cues
        self.scale = scale
        self.average = average
        self.n_epochs = n_epochs
        self.shuffle = shuffle
        self.record = record
        self.random_state = random_state
        self.callback = callback
        self.verbose = verbose

    def _is_precomputed(self):
        return getattr(self.learner, "kernel", None) == "precomputed"

    def _check_precomputed(self, X):
        X = np.asarray(X, dtype=np.float64 if np.asarray(X).dtype.kind != "f" else None)
        if X.ndim != 3 or not np.isfinite(X).all():
            raise ValueError(
                f"X must be finite, of shape (n_kernels, n, n_seen), for precomputed kernels, got shape {X.shape}"
            )
        return X.mean(axis=0)

    def _rows_of(self, X, rows, seen):
        return X[rows, :seen] if self._is_precomputed() else X[rows]

    def _check_samples(self, X, y, first):
        self._names = list(X.columns) if hasattr(X, "columns") else None
        return super()._check_samples(X, y, first)

    def _open(self, X, n_classes):
        if self.scale not in SCALES:
            raise ValueError(f"scale must be one of {SCALES}, got {self.scale!r}")
        learner = clone(ProjectronPlusPlus() if self.learner is None else self.learner)
        if not isinstance(learner, (_KernelLearner, _LinearLearner)):
            raise TypeError(
                f"learner must be an online learner of one cue of cuelearn.omcl, got {type(learner).__name__}"
            )
        if self.cues is not None and (
            self.scale != "none" or self._is_precomputed() or not isinstance(learner, _KernelLearner)
        ):
            raise ValueError(
                "cues must be None where scale is set, kernels are precomputed or the learner has no kernel"
            )
        support = None
        if self.cues is not None:
            triples = self._triples()
            columns = [
                resolve_columns(name, c, X, X.shape[1], feature_places(self._names)) for name, _, c in triples
            ]
            support = SumSupport([kernel for _, kernel, _ in triples], columns, learner.normalize, X)
            learner.set_params(kernel=RBF(gamma=1.0))  # stands for that of the cues
        scale = None
        if self.scale == "deviation" and not self._is_precomputed():
            deviation = X.std(axis=0, dtype=np.float64)
            scale = np.where(deviation > 0.0, deviation, 1.0)
        learner.set_params(average=self.average, record=False)
        learner._start(X if scale is None else (X / scale).astype(X.dtype), np.arange(n_classes))
        if support is not None:
            learner._support = support
        self.learner_, self.scale_ = learner, scale

    def _triples(self):
        form = isinstance(self.cues, list) and all(
            isinstance(cue, tuple) and len(cue) == 3 for cue in self.cues
        )
        if not (form and self.cues):
            raise ValueError(
                f"cues must be None or a non-empty list of (name, kernel, columns), got {self.cues!r}"
            )
        names = [name for name, _, _ in self.cues]
        if len(set(names)) < len(names):
            raise ValueError(f"cues must have different names, got {names}")
        return self.cues

    def _scaled(self, X):
        return X if self.scale_ is None else (X / self.scale_).astype(X.dtype)

    def _check_batch(self, X):
        self.learner_._check_batch(self._scaled(X))

    def _observe(self, X, labels, log=False):
        return self.learner_._learn(self._scaled(X), labels, log=log)

    def _scores(self, X):
        self.learner_.average = self.average
        return self.learner_._scores(self._scaled(X))

    def _count_updates(self):
        return self.learner_.n_updates_

    def _n_support(self):
        return self.learner_._n_support()

    def _pack_state(self, prefix, arrays):
        if self.cues is not None:
            raise TypeError("a Flat on the cues' own kernels cannot be saved; save an OM2 or an OMCL instead")
        if self.scale_ is not None:
            arrays[f"{prefix}scale"] = self.scale_
        return {"learner": pack(self.learner_, f"{prefix}learner/", arrays)}

    def _unpack_state(self, plain, prefix, arrays):
        self.scale_ = arrays.get(f"{prefix}scale")
        self.learner_ = unpack(plain["learner"], f"{prefix}learner/", arrays)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = not self._is_precomputed()
        tags.input_tags.three_d_array = self._is_precomputed()
        return tags


def count_votes(scores):
    """Votes for each class when every cue votes for its best one.

    Parameters
    ----------
    scores : ndarray, shape (n_cues, n, n_classes)

    Returns
    -------
    votes : ndarray of int, shape (n, n_classes)
    tied : ndarray of bool, shape (n,)
        Where two or more classes share the largest number of votes.
    """
    best = np.argmax(scores, axis=2)
    votes = np.stack([(best == c).sum(axis=0) for c in range(scores.shape[2])], axis=1)
    return votes, (votes == votes.max(axis=1, keepdims=True)).sum(axis=1) > 1


class Vote(MultiCueClassifier):
    """Majority vote of one online learner for each cue.

    Two or more classes with the same number of votes are a tie, for which the thesis counts an error. `ties` reports them, `score`
    and `online_errors_` count them as errors; `predict`, which has to answer, gives the first of the tied classes.

    Parameters
    ----------
    cues : list of (name, learner, columns), or None
        See `OMCL`.
    average : bool, default True
        Of the learners: takes the place of their own.
    n_epochs, shuffle, record, random_state, callback, verbose
        See `KernelPerceptron`.

    Attributes
    ----------
    learners_, classes_, n_seen_, n_updates_, n_mistakes_, history_, online_errors_, support_sizes_
        See `OMCL`.

    References
    ----------
    Thesis section 3.4.

    Examples
    --------
    >>> from cuelearn.datasets import load_mfeat
    >>> from cuelearn.kernels import RBF
    >>> from cuelearn.omcl import KernelPerceptron, Vote
    >>> data = load_mfeat()
    >>> cues = [(cue, KernelPerceptron(RBF()), columns) for cue, columns in data.cues.items()]
    >>> model = Vote(cues, shuffle=True, random_state=0).fit(data.X, data.y)
    >>> bool(model.ties(data.X).mean() < 0.1)
    True
    """

    def __init__(
        self,
        cues=None,
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
        self.average = average
        self.n_epochs = n_epochs
        self.shuffle = shuffle
        self.record = record
        self.random_state = random_state
        self.callback = callback
        self.verbose = verbose

    def _open(self, X, n_classes):
        self._open_learners(X, n_classes)

    def _observe(self, X, labels, log=False):
        traces = [self._observe_cue(X, labels, j) for j in range(len(self.learners_))]
        votes, _ = count_votes(np.stack([trace.scores for trace in traces]))
        sizes = np.sum([trace.sizes for trace in traces], axis=0)
        return Trace(votes.astype(np.float64), sizes, np.empty((0, 6), np.int64), np.empty(0), 0)

    def _count_updates(self):
        return sum(getattr(learner, "n_updates_", 0) for learner in self.learners_)

    def _votes(self, X):
        for learner in self.learners_:
            if isinstance(learner, OnlineClassifier):
                learner.average = self.average
        return count_votes(np.stack([self._cue_scores(X, j) for j in range(len(self.learners_))]))

    def _scores(self, X):
        return self._votes(X)[0].astype(np.float64)

    def ties(self, X):
        """Where two or more classes share the largest number of votes.

        Parameters
        ----------
        X : as in `decision_function`

        Returns
        -------
        ndarray of bool, shape (n,)
        """
        return self._votes(self._check_new(X))[1]

    def score(self, X, y, sample_weight=None):
        """Share of samples predicted rightly, a tie counting as an error.

        Parameters
        ----------
        X : as in `decision_function`
        y : array-like, shape (n,)
        sample_weight : array-like, optional

        Returns
        -------
        float
        """
        votes, tied = self._votes(self._check_new(X))
        right = (self.classes_[np.argmax(votes, axis=1)] == np.asarray(y)) & ~tied
        return float(np.average(right, weights=sample_weight))

    def _pack_state(self, prefix, arrays):
        return self._pack_learners(prefix, arrays)

    def _unpack_state(self, plain, prefix, arrays):
        self._unpack_learners(plain, prefix, arrays)

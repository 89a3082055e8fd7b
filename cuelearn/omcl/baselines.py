r"""What OMCL is compared with: one learner on all cues at once, and a majority vote (thesis 3.4)."""

from dataclasses import field

import numpy as np
from sklearn.base import clone

from cuelearn.core.estimator import StrOptions, parameters
from cuelearn.kernels import RBF
from cuelearn.kernels.growing import SupportSet
from cuelearn.omcl.base import CueLearner, OnlineClassifier, documented
from cuelearn.omcl.omcl import MultiCueClassifier
from cuelearn.omcl.perceptron import KernelLearner
from cuelearn.omcl.projectron import ProjectronPlusPlus
from cuelearn.omcl.visits import Trace

__all__ = ["Flat", "Vote", "count_votes"]


class SumSupport:
    """A `SupportSet` of several cues with the mean of their kernels, the kernel of the concatenated feature
    maps."""

    precomputed = False
    kernel = "mean of the cues' kernels"

    def __init__(self, kernels, columns, normalize, first):
        self.columns = columns
        pairs = zip(kernels, self._split(first), strict=True)
        self.parts = [SupportSet(kernel, normalize, part) for kernel, part in pairs]
        self.samples = np.empty((0, first.shape[1]), dtype=first.dtype)

    def _split(self, X):
        return [np.ascontiguousarray(X[:, columns]) for columns in self.columns]

    def check(self, X):
        """X, or a ValueError where a kernel is not defined on it."""
        for support, part in zip(self.parts, self._split(X), strict=True):
            support.check(part)
        return X

    def doubt(self, X):
        """How far the first indefinite one of the kernels is from a kernel, or None."""
        doubts = (support.doubt(part) for support, part in zip(self.parts, self._split(X), strict=True))
        return next((how for how in doubts if how is not None), None)

    def batch(self, X):
        """Kernel rows of a batch, their diagonal, and where members and batch stand in them."""
        batches = [s.batch(part) for s, part in zip(self.parts, self._split(X), strict=True)]
        rows, diagonal, columns, places = batches[0]
        for more, more_diagonal, _, _ in batches[1:]:
            rows, diagonal = rows + more, diagonal + more_diagonal
        return rows / len(self.parts), diagonal / len(self.parts), columns, places

    def add(self, X, chosen):
        """Take samples of a batch into the set."""
        for support, part in zip(self.parts, self._split(X), strict=True):
            support.add(part, chosen)
        if len(chosen):
            self.samples = np.concatenate([self.samples, X[chosen]])

    def cross(self, X):
        """Kernel of new samples with the set."""
        crosses = [s.cross(part) for s, part in zip(self.parts, self._split(X), strict=True)]
        return sum(crosses) / len(self.parts)


@documented
@parameters
class Flat(OnlineClassifier):
    """Low-level integration: the cues' vectors put end to end, and one online learner on the long vector
    (equation 2.1).

    Read literally, the feature *vectors* are concatenated and the learner's kernel works on all columns; with
    `cues`, the feature *maps* of the cues' own kernels are, so that the kernel is the mean of the cues'
    kernels.

    Parameters
    ----------
    learner : online learner of this chapter, default ``ProjectronPlusPlus()``
        With ``kernel="precomputed"`` X is a stack (F, n, n_seen), whose mean is used.
    cues : list of (name, kernel, columns) or None, default None
        None concatenates vectors, else feature maps.
    scale : {"none", "deviation"}, default "none"
        Divide every column by its standard deviation over the first batch; only without `cues`.
    average : bool, default True
        This and what follows take the place of the learner's own.
    $n_epochs $shuffle $record $random_state $callback $verbose

    Attributes
    ----------
    learner_ : online learner
        Classes counted 0..M-1.
    $classes_ $n_seen_ $n_updates_ $n_mistakes_ $cumulative_loss_ $history_ $online_errors_ $online_losses_
    $support_sizes_

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

    _parameter_constraints = {
        "learner": [CueLearner, None],
        "cues": [list, None],
        "scale": [StrOptions({"none", "deviation"})],
    }
    _learnt = ("_columns",)
    _kernel_dims = 3

    learner: object = field(default=None, kw_only=False)
    cues: object = None
    scale: str = "none"

    def _is_precomputed(self):
        return isinstance(self.learner, CueLearner) and self.learner._is_precomputed()

    def _check_precomputed(self, X):
        return super()._check_precomputed(X).mean(axis=0)

    def _open(self, X, n_classes):
        learner = clone(ProjectronPlusPlus() if self.learner is None else self.learner)
        support, self.scale_ = None, None
        if self.cues is not None:
            given = self.scale != "none" or self._is_precomputed()
            if given or not isinstance(learner, KernelLearner):
                raise ValueError(
                    "cues must be None where scale is set, kernels are precomputed or the learner has no "
                    "kernel"
                )
            kernels = [kernel for _, kernel, _ in self._triples()]
            support = SumSupport(kernels, self._columns, learner.normalize, X)
            learner.set_params(kernel=RBF(scale=1.0))  # stands for that of the cues
        elif self.scale == "deviation" and not self._is_precomputed():
            deviation = X.std(axis=0, dtype=np.float64)
            self.scale_ = np.where(deviation > 0.0, deviation, 1.0)
        learner.set_params(average=self.average, record=False)
        learner._validate_params()
        learner._start(self._scaled(X), np.arange(n_classes))
        if support is not None:
            learner._support = support
        self.learner_ = learner

    def _find_columns(self, given, X):
        return None if self._is_precomputed() else super()._find_columns(given, X)

    def _triples(self):
        if self.cues is None:
            return None
        triples = self.cues if isinstance(self.cues, list) else []
        if not triples or not all(isinstance(cue, tuple) and len(cue) == 3 for cue in triples):
            raise ValueError(
                f"cues must be None or a non-empty list of (name, kernel, columns), got {self.cues!r}"
            )
        names = [name for name, _, _ in triples]
        if len(set(names)) < len(names):
            raise ValueError(f"cues must have different names, got {names}")
        return triples

    def _scaled(self, X):
        return X if self.scale_ is None else (X / self.scale_).astype(X.dtype)

    def _check_batch(self, X):
        self.learner_._check_batch(self._scaled(X))

    def _doubts(self, X):
        return self.learner_._doubts(self._scaled(X))

    def _observe(self, X, labels, weights):
        return self.learner_._learn(self._scaled(X), labels, weights)

    def _scores(self, X, average=None):
        return self.learner_._scores(self._scaled(X), self.average if average is None else average)

    def _count_updates(self):
        return self.learner_.n_updates_

    def _n_support(self):
        return self.learner_._n_support()


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
    """Majority vote of one online learner for each cue.

    Two or more classes with the same number of votes are a tie, for which the thesis counts an error. `ties`
    reports them, `score` and `online_errors_` count them as errors; `predict`, which has to answer, gives the
    first of the tied classes.

    Parameters
    ----------
    $cues
    average : bool, default True
        Of the learners: takes the place of their own.
    $n_epochs $shuffle $record $random_state $callback $verbose

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
        traces = [self._observe_cue(X, labels, weights, j) for j in range(len(self.learners_))]
        votes, _ = count_votes(np.stack([trace.scores for trace in traces]))
        return Trace(votes.astype(np.float64), np.sum([trace.sizes for trace in traces], axis=0))

    def _count_updates(self):
        return sum(learner.n_updates_ for learner in self.learners_)

    def _cue_scores(self, X, average=None):
        return super()._cue_scores(X, self.average if average is None else average)

    def _votes(self, X):
        return count_votes(np.stack(self._cue_scores(X)))

    def _scores(self, X, average=None):
        return self._votes(X)[0].astype(np.float64)

    def ties(self, X):
        """Where two or more classes share the largest number of votes; bool, shape (n,)."""
        return self._votes(self._check_new(X))[1]

    def score(self, X, y, sample_weight=None):
        """Share of samples predicted rightly, a tie counting as an error; arguments as of scikit-learn's
        classifiers."""
        votes, tied = self._votes(self._check_new(X))
        right = (self.classes_[np.argmax(votes, axis=1)] == np.asarray(y)) & ~tied
        return float(np.average(right, weights=sample_weight))

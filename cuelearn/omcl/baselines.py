"""Rivals of OMCL (thesis 3.4)."""

from dataclasses import field

import numpy as np
from sklearn.base import clone

from cuelearn.core.estimator import parameters
from cuelearn.omcl.base import CueLearner, OnlineClassifier, documented
from cuelearn.omcl.omcl import MultiCueClassifier
from cuelearn.omcl.projectron import ProjectronPlusPlus
from cuelearn.omcl.visits import Trace

__all__ = ["Flat", "Vote", "count_votes"]


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

    learner: object = field(default=None, kw_only=False)

    def _is_precomputed(self):
        return isinstance(self.learner, CueLearner) and self.learner._is_precomputed()

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

    def _scores(self, X, average=None):
        return self.learner_._scores(X, self.average if average is None else average)

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
    $cues
    $average $n_epochs $shuffle $record $random_state $callback $verbose

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
        """Whether several classes share the largest number of votes; bool, shape (n,)."""
        return self._votes(self._check_new(X))[1]

    def score(self, X, y, sample_weight=None):
        """Accuracy, with ties as errors."""
        votes, tied = self._votes(self._check_new(X))
        right = (self.classes_[np.argmax(votes, axis=1)] == np.asarray(y)) & ~tied
        return float(np.average(right, weights=sample_weight))

r"""All kernels at once: OM-1, which lets their Perceptrons vote, and MuTron, which keeps the best one."""

import math

import numpy as np
from joblib import Parallel, delayed

from cuelearn.oks.base import Learner, OnlineKernels, StreamingKernels
from cuelearn.oks.engine import Samples, committee_pass
from cuelearn.oks.selection import check_beta
from cuelearn.oks.validation import held_back

__all__ = ["Committee", "MuTron", "OM1"]


class Committee(Learner):
    """State of a Perceptron per kernel, with weights that discount a kernel's own mistakes.

    Parameters
    ----------
    kernels : engine.Kernels
    rng : numpy.random.Generator
    discount : float
        -log(beta); 0 leaves the weights alone.
    n_jobs : int or None
        Threads over the kernels, where they do not vote (discount 0).
    """

    def __init__(self, kernels, rng, *, discount, n_jobs=None):
        super().__init__(kernels, rng)
        self.discount, self.n_jobs = discount, n_jobs
        self.own_mistakes = np.zeros(self.q.size, dtype=np.int64)

    def visit(self, samples, order, targets, uniforms):
        """Learn from samples in order."""
        mistakes = np.zeros(order.size, dtype=np.bool_)

        def some(members):
            return committee_pass(
                self.kernels,
                members,
                samples,
                order,
                targets,
                self.discount,
                self.log_weights,
                self.q,
                self.p,
                self.predictors,
                mistakes if self.discount > 0.0 else np.empty(order.size, dtype=np.bool_),
                self.own_mistakes,
            )

        everyone = np.arange(self.q.size)
        if self.discount > 0.0:
            updates, evaluations = some(everyone)
            self.note(mistakes=mistakes)
            self.n_mistakes += int(mistakes.sum())
        else:  # no vote: the kernels do not know of each other
            groups = np.array_split(everyone, min(everyone.size, 8))
            counts = Parallel(n_jobs=self.n_jobs, prefer="threads")(
                delayed(some)(members) for members in groups
            )
            updates, evaluations = np.sum(counts, axis=0)
            self.n_mistakes = float(self.own_mistakes.mean())
        self.n_seen += order.size
        self.n_updates += int(updates)
        self.n_evaluations += int(evaluations)

    def arrays(self):
        """The state as arrays."""
        return super().arrays() | {"own_mistakes": self.own_mistakes}

    def restore(self, arrays, n_samples):
        """The inverse of `arrays`."""
        super().restore(arrays, n_samples)
        self.own_mistakes = arrays["own_mistakes"].copy()


class _Perceptrons:
    """What OM1 and MuTron share."""

    @property
    def mistakes_per_kernel_(self):
        """Mistakes of each kernel's Perceptron, shape (n_kernels,), or (n_classes, n_kernels)."""
        return np.asarray(self._of_all(lambda learner: learner.own_mistakes.copy()))


class OM1(_Perceptrons, StreamingKernels):
    r"""OM-1: deterministic online multiple kernel learning; all kernels learn, the weighted vote decides.

    .. math:: \hat y = \operatorname{sign} \sum_i q_i \operatorname{sign} f_i(x), \qquad
              z_i = 1[y f_i(x) \le 0], \qquad w_i \leftarrow \beta^{z_i} w_i, \qquad f_i \leftarrow f_i + z_i\, y\, k_i(x, \cdot) .

    Parameters
    ----------
    kernels, one_vs_rest, normalize, n_jobs, random_state, callback, verbose
        See `OKS`.
    beta : float in (0, 1), default 0.8
        Discount of a kernel that erred.
    n_epochs : int, default 1
    shuffle : bool, default False
        Permute the first pass too; later passes always are.

    Attributes
    ----------
    classes_, kernel_probabilities_, best_index_, best_kernel_, support_, dual_coef_, online_errors_, n_updates_, n_evaluations_, history_
        See `OKS`; `online_errors_` are those of the vote.
    mistakes_per_kernel_ : ndarray of int, shape (n_kernels,)

    Notes
    -----
    A visit costs O(m S d): every kernel with its own support.

    References
    ----------
    Jin, Hoi, Yang: Online multiple kernel learning: algorithms and mistake bounds, ALT 2010, Algorithm 1.
    """

    def __init__(
        self,
        kernels=None,
        *,
        beta=0.8,
        n_epochs=1,
        shuffle=False,
        one_vs_rest=False,
        normalize=True,
        n_jobs=None,
        random_state=None,
        callback=None,
        verbose=True,
    ):
        self.kernels = kernels
        self.beta = beta
        self.n_epochs = n_epochs
        self.shuffle = shuffle
        self.one_vs_rest = one_vs_rest
        self.normalize = normalize
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.callback = callback
        self.verbose = verbose

    def _learner(self, kernels, rng, n_rounds):
        return Committee(kernels, rng, discount=-math.log(check_beta(self.beta)))

    def _decide(self, learner, here, held):
        return np.sign(learner.outputs(here, held)) @ learner.q


class MuTron(_Perceptrons, OnlineKernels):
    """MuTron: a Perceptron for every kernel, and the one that errs least on held-back samples.

    Parameters
    ----------
    kernels, one_vs_rest, normalize, random_state, callback, verbose
        See `OKS`.
    validation : float in (0, 1), default 0.1
        Share of the training samples that is held back, drawn at random.
    n_epochs : int, default 1
    shuffle : bool, default False
        Permute the first pass too; later passes always are.
    n_jobs : int or None
        Threads over the kernels (or, with one_vs_rest, over the classes).

    Attributes
    ----------
    classes_, support_, dual_coef_, n_updates_, n_evaluations_, history_
        See `OKS`.
    validation_accuracy_ : ndarray, shape (n_kernels,), or (n_classes, n_kernels)
        On the held-back samples.
    mistakes_per_kernel_ : ndarray of int, shape (n_kernels,), or (n_classes, n_kernels)
        While learning; `history_` has their mean as online_error.
    best_index_, best_kernel_ : int, str
        The most accurate kernel; the first on ties.

    Notes
    -----
    The step size that the paper tunes cannot change a Perceptron that starts from 0: all coefficients scale with it, and only signs
    count. There is none here.

    References
    ----------
    Yang et al., AAAI 2012, "MuTron"; Rosenblatt's Perceptron with kernels.
    """

    def __init__(
        self,
        kernels=None,
        *,
        validation=0.1,
        n_epochs=1,
        shuffle=False,
        one_vs_rest=False,
        normalize=True,
        n_jobs=None,
        random_state=None,
        callback=None,
        verbose=True,
    ):
        self.kernels = kernels
        self.validation = validation
        self.n_epochs = n_epochs
        self.shuffle = shuffle
        self.one_vs_rest = one_vs_rest
        self.normalize = normalize
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.callback = callback
        self.verbose = verbose

    def _learner(self, kernels, rng, n_rounds):
        return Judged(kernels, rng, discount=0.0, n_jobs=self.n_jobs if self.classes_.size == 2 else None)

    def _run(self, learner, samples, targets, n_epochs, watch, bar):
        train, test = held_back(targets, self.validation, learner.rng)
        theirs = Samples(
            samples.data[test],
            samples.scale[test],
            samples.stack[:, test] if self._source.given else samples.stack,
        )
        result = learner.run(
            samples, targets, n_epochs, rows=train, shuffle=self.shuffle, watch=watch, bar=bar
        )
        learner.judge(learner.outputs(theirs, samples), targets[test])
        return result

    @property
    def validation_accuracy_(self):
        """Accuracy of each kernel on the held-back samples."""
        return np.asarray(self._of_all(lambda learner: learner.accuracy))


class Judged(Committee):
    """A committee of which one kernel is kept, by its accuracy on held-back samples."""

    def __init__(self, kernels, rng, **options):
        super().__init__(kernels, rng, **options)
        self.accuracy = np.zeros(self.q.size)

    def judge(self, outputs, targets):
        """Note the accuracy of each kernel's decision values, shape (n, n_kernels)."""
        self.accuracy = np.mean(np.where(outputs > 0.0, 1.0, -1.0) == targets[:, None], axis=0)

    @property
    def best(self):
        """The most accurate kernel; the first on ties."""
        return int(np.argmax(self.accuracy))

    def arrays(self):
        """The state as arrays."""
        return super().arrays() | {"accuracy": self.accuracy}

    def restore(self, arrays, n_samples):
        """The inverse of `arrays`."""
        super().restore(arrays, n_samples)
        self.accuracy = arrays["accuracy"].copy()

r"""Online kernel selection by sampling: OKS (Yang et al. 2012) and SOM (Jin, Hoi and Yang 2010)."""

import math
import numbers
import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from cuelearn.core.checks import as_generator, check_count, check_positive
from cuelearn.oks.base import Learner, StreamingKernels
from cuelearn.oks.engine import (
    HINGE,
    LOGISTIC,
    OKS_RULE,
    REGRET_RULE,
    SOM_RULE,
    SQUARE,
    selection_pass,
    set_probabilities,
)

__all__ = ["OKS", "OKSRegret", "SOM", "Selector", "solve_selection"]

DIVERGED = 1e6  # a loss that no sensible predictor meets
LOSSES = {"hinge": HINGE, "logistic": LOGISTIC, "square": SQUARE}


def _check_delta(delta, rule):
    delta = delta.tolist() if isinstance(delta, np.ndarray) else delta
    values = (
        [delta]
        if isinstance(delta, numbers.Real)
        else list(delta)
        if isinstance(delta, (list, tuple))
        else []
    )
    least_open = rule != SOM_RULE  # SOM divides by no probability
    ok = values and all(
        isinstance(d, numbers.Real)
        and not isinstance(d, bool)
        and (0.0 < d <= 1.0 if least_open else 0.0 <= d <= 1.0)
        for d in values
    )
    if not ok:
        raise ValueError(
            f"delta must be a number in {'(0' if least_open else '[0'}, 1], or one per epoch, got {delta!r}"
        )
    return [float(d) for d in values]


class Selector(Learner):
    """State of a selection algorithm: one kernel is drawn at each visit, evaluated, and perhaps updated.

    Parameters
    ----------
    kernels : engine.Kernels
    rng : numpy.random.Generator
    rule : {OKS_RULE, REGRET_RULE, SOM_RULE}
    delta : sequence of float
        One per epoch; the last one persists.
    eta : float or "auto"
        Step of the weights; "auto" is :math:`\\sqrt{2(1-\\delta)\\ln m/(mT)}` with the epoch's delta.
    step : float
        Step of the predictors, lambda in the paper.
    loss : int
    n_rounds : int or None
        T of "auto".
    """

    def __init__(self, kernels, rng, *, rule, delta, eta, step, loss=HINGE, n_rounds=None):
        super().__init__(kernels, rng)
        self.rule, self.deltas, self.eta, self.step, self.loss, self.n_rounds = (
            rule,
            delta,
            eta,
            step,
            loss,
            n_rounds,
        )
        self.delta = delta[0]

    def start_epoch(self, epoch):
        """The epoch's delta."""
        self.delta = self.deltas[min(epoch, len(self.deltas) - 1)]
        set_probabilities(self.log_weights, self.delta, self.q, self.p)

    def arrays(self):
        """The state as arrays."""
        return super().arrays() | {"rates": np.array([self.delta, self.n_rounds or 0])}

    def restore(self, arrays, n_samples):
        """The inverse of `arrays`."""
        super().restore(arrays, n_samples)
        self.delta, self.n_rounds = float(arrays["rates"][0]), int(arrays["rates"][1]) or None

    @property
    def rate(self):
        """eta of the present epoch."""
        if self.eta != "auto":
            return self.eta
        m = self.q.size
        return math.sqrt(2.0 * (1.0 - self.delta) * math.log(m) / (m * self.n_rounds))

    def visit(self, samples, order, targets, uniforms):
        """Learn from samples in order; `uniforms` are the random numbers of the draws."""
        n = order.size
        drawn, mistakes, losses = np.empty(n, dtype=np.int32), np.empty(n, dtype=np.bool_), np.empty(n)
        updates, evaluations = selection_pass(
            self.kernels,
            samples,
            order,
            targets,
            uniforms,
            self.rule,
            self.delta,
            self.rate,
            self.step,
            self.loss,
            self.log_weights,
            self.q,
            self.p,
            self.predictors,
            drawn,
            mistakes,
            losses,
        )
        self.note(drawn=drawn, mistakes=mistakes, losses=losses)
        self.n_seen += n
        self.n_updates += int(updates)
        self.n_evaluations += int(evaluations)
        self.n_mistakes += int(mistakes.sum())


def solve_selection(
    source,
    samples,
    targets,
    *,
    rule=OKS_RULE,
    n_epochs=2,
    delta=(0.5, 0.2),
    eta="auto",
    step=1.0,
    loss="hinge",
    shuffle=False,
    rng=None,
    chunk=None,
    watch=None,
):
    r"""Run a selection algorithm over samples.

    Parameters
    ----------
    source : sources.Columns or sources.Given
    samples : engine.Samples
        Of ``source.pack``.
    targets : ndarray, shape (n,)
        -1 or 1; real numbers for the square loss.
    rule : {OKS_RULE, REGRET_RULE, SOM_RULE}
        Algorithm 2, Algorithm 1, SOM.
    n_epochs, delta, eta, step, shuffle
        See `OKS`; for SOM `eta` is -log(beta).
    loss : {"hinge", "logistic", "square"}
        Of Algorithm 1.
    rng : Generator, int or None
    chunk, watch
        See `Learner.run`; ``chunk=1`` with a `watch` sees every visit.

    Returns
    -------
    Result

    Notes
    -----
    A visit costs O(S d + m): the values of the drawn kernel with its own S support samples of d features, and the draw among m.

    References
    ----------
    Yang, Mahdavi, Jin, Yi, Hoi: Online Kernel Selection, AAAI 2012, Algorithms 1 and 2. Jin, Hoi, Yang: Online Multiple Kernel Learning,
    ALT 2010, Algorithm 3.
    """
    learner = Selector(
        source.kernels,
        as_generator(rng),
        rule=rule,
        delta=_check_delta(delta, rule),
        eta=eta,
        step=step,
        loss=LOSSES[loss],
        n_rounds=n_epochs * len(targets),
    )
    return learner.run(
        samples, np.asarray(targets, dtype=np.float64), n_epochs, shuffle=shuffle, chunk=chunk, watch=watch
    )


class _Sampling(StreamingKernels):
    """What OKS, OKSRegret and SOM share."""

    @property
    def sampling_probabilities_(self):
        """Probabilities p from which the next kernel would be drawn, shape (n_kernels,), or (n_classes, n_kernels)."""
        return np.asarray(self._of_all(lambda learner: learner.p.copy()))

    @property
    def drawn_(self):
        """Kernel drawn at each visit, shape (n_visits,)."""
        return self._of_all(lambda learner: learner.record("drawn", np.int32))

    def _rounds_of_saved(self):
        return self.horizon or 1

    def _rounds(self, n_rounds):
        if self.horizon is not None:
            return check_count("horizon", self.horizon)
        if n_rounds is None and isinstance(self.eta, str):
            raise ValueError(
                "horizon must be given for partial_fit with eta='auto': the number of visits to expect"
            )
        return n_rounds

    def _eta(self):
        if isinstance(self.eta, str):
            if self.eta != "auto":
                raise ValueError(f"eta must be a positive number or 'auto', got {self.eta!r}")
            return "auto"
        return check_positive("eta", self.eta)


class OKS(_Sampling):
    r"""Online kernel selection for classification: finds a good one of many kernels at the cost of one.

    At each visit one kernel is drawn from :math:`p = (1-\delta) q + \delta/m`. If its predictor errs,
    :math:`z = 1[y f_i(x) \le 0]`,

    .. math:: w_i \leftarrow w_i \exp(-\eta z / p_i), \qquad f_i \leftarrow f_i + \lambda\, y z\, k_i(x, \cdot) / p_i, \qquad
              q = w / \textstyle\sum_j w_j .

    Dividing by the probability makes both estimates unbiased. The other kernels are not even computed.

    Parameters
    ----------
    kernels : list of (name, kernel, columns), "precomputed" or None
        Cues, as in ColumnTransformer; None is one `RBF` over all columns. With "precomputed", X has shape (n_kernels, n, n). A
        ``gamma="mean"`` is taken over at most 500 evenly spaced samples: over all pairs it would cost as much as a kernel matrix.
    delta : float in (0, 1] or a sequence of them, default (0.5, 0.2)
        Share of the draws that is uniform; one value per epoch, the last persists.
    eta : float > 0 or "auto", default "auto"
        Step of the weights; "auto" is the theorem's :math:`\sqrt{2(1-\delta)\ln m/(mT)}` with T the number of visits of `fit`.
    step : float > 0, default 1.0
        Step of the predictors (:math:`\lambda`). Only signs matter to Algorithm 2: neither draws, nor mistakes, nor probabilities depend
        on it.
    n_epochs : int, default 2
    shuffle : bool, default True
        Permute the first pass too; later passes always are.
    one_vs_rest : bool, default False
        For more than two classes: one problem per class, each with its own kernel. Without it they are an error.
    normalize : bool, default True
        Scale linear and polynomial kernels to unit diagonal.
    horizon : int, optional
        T of "auto" in place of n_samples * n_epochs; `partial_fit` needs it with "auto".
    n_jobs : int or None
        Threads over the problems of `one_vs_rest`; the bits do not depend on it.
    random_state : int, Generator or None
    callback : callable(estimator, step), optional
        Called up to some 200 times in `fit`, at least once in every pass; a true return value ends the run (with `one_vs_rest` that of the
        present class).
    verbose : bool, default True
        A progress bar on runs of more than two seconds.

    Attributes
    ----------
    classes_, n_updates_, n_evaluations_
    kernel_probabilities_, sampling_probabilities_ : ndarray, shape (n_kernels,)
        q and p at the end.
    best_index_, best_kernel_ : int, str
        The kernel with the largest q; `decision_function` is its predictor.
    support_, dual_coef_ : list of ndarray
        For each kernel.
    drawn_, online_errors_ : ndarray, shape (n_visits,)
        The kernel drawn, and whether it erred.
    history_ : DataFrame
        step, epoch, seconds, n_updates, n_support, online_error, n_evaluations.
    probability_history_ : ndarray, shape (rows of history_, n_kernels)

    Notes
    -----
    A visit costs O(S d + m): the drawn kernel's values with its own S support samples of d features. With one_vs_rest the attributes hold
    one entry per class.

    References
    ----------
    Yang, Mahdavi, Jin, Yi, Hoi: Online Kernel Selection, AAAI 2012, Algorithm 2 and theorem 3.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from cuelearn.kernels import RBF
    >>> from cuelearn.oks import OKS
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> cues = [("mean", RBF(), slice(0, 10)), ("error", RBF(), slice(10, 20)), ("worst", RBF(), slice(20, 30))]
    >>> model = OKS(cues, n_epochs=5, random_state=0).fit(X, y)
    >>> model.best_kernel_ in ("mean", "worst")
    True
    """

    def __init__(
        self,
        kernels=None,
        *,
        delta=(0.5, 0.2),
        eta="auto",
        step=1.0,
        n_epochs=2,
        shuffle=True,
        one_vs_rest=False,
        normalize=True,
        horizon=None,
        n_jobs=None,
        random_state=None,
        callback=None,
        verbose=True,
    ):
        self.kernels = kernels
        self.delta = delta
        self.eta = eta
        self.step = step
        self.n_epochs = n_epochs
        self.shuffle = shuffle
        self.one_vs_rest = one_vs_rest
        self.normalize = normalize
        self.horizon = horizon
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.callback = callback
        self.verbose = verbose

    def _learner(self, kernels, rng, n_rounds):
        return Selector(
            kernels,
            rng,
            rule=OKS_RULE,
            delta=_check_delta(self.delta, OKS_RULE),
            eta=self._eta(),
            step=check_positive("step", self.step),
            n_rounds=self._rounds(n_rounds),
        )


class OKSRegret(_Sampling):
    r"""Online kernel selection for any convex loss.

    At each visit one kernel is drawn from :math:`p = (1-\delta) q + \delta/m`, and whatever its predictor says,

    .. math:: w_i \leftarrow w_i \exp(-\eta\, \ell(f_i(x), y) / p_i), \qquad
              f_i \leftarrow f_i - \lambda\, \ell'(f_i(x), y)\, k_i(x, \cdot) / p_i .

    Parameters
    ----------
    kernels, delta, n_epochs, shuffle, one_vs_rest, normalize, horizon, n_jobs, random_state, callback, verbose
        See `OKS`.
    loss : {"hinge", "logistic", "square"}, default "hinge"
        :math:`[1 - yf]_+`, :math:`\ln(1 + e^{-yf})`, :math:`\frac12(f - y)^2`, with y of -1 or 1.
    eta : float > 0 or "auto", default "auto"
        Step of the weights; "auto" as in `OKS`, for losses up to about 1.
    step : float > 0 or "auto", default "auto"
        Step of the predictors; "auto" is :math:`\sqrt{\delta/(mT)}` with the smallest delta, which balances theorem 1's terms for a
        comparator of norm 1 and slopes up to 1.

    Warns
    -----
    ConvergenceWarning
        If losses grew beyond all bounds: with the square loss a long step makes predictors swing.

    Attributes
    ----------
    See `OKS`; online_losses_ : ndarray, shape (n_visits,), the loss of the drawn kernel.

    References
    ----------
    Yang, Mahdavi, Jin, Yi, Hoi: Online Kernel Selection, AAAI 2012, Algorithm 1, theorem 1, corollary 2.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from cuelearn.kernels import RBF
    >>> from cuelearn.oks import OKSRegret
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = OKSRegret([("mean", RBF(), slice(0, 10)), ("error", RBF(), slice(10, 20))], loss="logistic", random_state=0).fit(X, y)
    >>> float(model.kernel_probabilities_.sum().round(6))
    1.0
    """

    def __init__(
        self,
        kernels=None,
        *,
        loss="hinge",
        delta=(0.5, 0.2),
        eta="auto",
        step="auto",
        n_epochs=2,
        shuffle=True,
        one_vs_rest=False,
        normalize=True,
        horizon=None,
        n_jobs=None,
        random_state=None,
        callback=None,
        verbose=True,
    ):
        self.kernels = kernels
        self.loss = loss
        self.delta = delta
        self.eta = eta
        self.step = step
        self.n_epochs = n_epochs
        self.shuffle = shuffle
        self.one_vs_rest = one_vs_rest
        self.normalize = normalize
        self.horizon = horizon
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.callback = callback
        self.verbose = verbose

    def _learner(self, kernels, rng, n_rounds):
        if not isinstance(self.loss, str) or self.loss not in LOSSES:
            raise ValueError(f"loss must be one of {', '.join(LOSSES)}, got {self.loss!r}")
        delta, rounds = _check_delta(self.delta, REGRET_RULE), self._rounds(n_rounds)
        if isinstance(self.step, str):
            if self.step != "auto":
                raise ValueError(f"step must be a positive number or 'auto', got {self.step!r}")
            if rounds is None:
                raise ValueError(
                    "horizon must be given for partial_fit with step='auto': the number of visits to expect"
                )
            step = math.sqrt(min(delta) / (kernels.kind.shape[0] * rounds))
        else:
            step = check_positive("step", self.step)
        return Selector(
            kernels,
            rng,
            rule=REGRET_RULE,
            delta=delta,
            eta=self._eta(),
            step=step,
            loss=LOSSES[self.loss],
            n_rounds=rounds,
        )

    def _fit(self, X, y):
        super()._fit(X, y)
        largest = max(learner.record("losses", float).max() for learner in self._learners)
        if not largest < DIVERGED:
            text = f"OKSRegret: losses grew to {largest:.3g}; step={self.step!r} is too long for the {self.loss} loss"
            warnings.warn(text, ConvergenceWarning, stacklevel=3)
        return self

    @property
    def online_losses_(self):
        """Loss of the drawn kernel at each visit, shape (n_visits,)."""
        return self._of_all(lambda learner: learner.record("losses", float))


class SOM(_Sampling):
    r"""Stochastic online multiple kernel learning with a single update: OKS without its unbiased estimates.

    One kernel is drawn from :math:`p = (1-\delta) q + \delta/m`; if it errs, :math:`w_i \leftarrow \beta w_i` and
    :math:`f_i \leftarrow f_i + y\, k_i(x, \cdot)`.

    Parameters
    ----------
    kernels, n_epochs, shuffle, one_vs_rest, normalize, n_jobs, random_state, callback, verbose
        See `OKS`.
    beta : float in (0, 1), default 0.8
        Discount of a kernel that erred.
    delta : float in [0, 1] or a sequence of them, default 0.2
        Share of the draws that is uniform.

    Attributes
    ----------
    See `OKS`.

    References
    ----------
    Jin, Hoi, Yang: Online multiple kernel learning: algorithms and mistake bounds, ALT 2010, Algorithm 3.
    """

    horizon = None

    def __init__(
        self,
        kernels=None,
        *,
        beta=0.8,
        delta=0.2,
        n_epochs=2,
        shuffle=True,
        one_vs_rest=False,
        normalize=True,
        n_jobs=None,
        random_state=None,
        callback=None,
        verbose=True,
    ):
        self.kernels = kernels
        self.beta = beta
        self.delta = delta
        self.n_epochs = n_epochs
        self.shuffle = shuffle
        self.one_vs_rest = one_vs_rest
        self.normalize = normalize
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.callback = callback
        self.verbose = verbose

    def _learner(self, kernels, rng, n_rounds):
        return Selector(
            kernels,
            rng,
            rule=SOM_RULE,
            delta=_check_delta(self.delta, SOM_RULE),
            eta=-math.log(check_beta(self.beta)),
            step=1.0,
        )


def check_beta(beta):
    """`beta` as a float in (0, 1), or an error."""
    if not isinstance(beta, numbers.Real) or isinstance(beta, bool) or not 0.0 < beta < 1.0:
        raise ValueError(f"beta must be a number in (0, 1), got {beta!r}")
    return float(beta)

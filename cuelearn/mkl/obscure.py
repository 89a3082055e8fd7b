r"""OBSCURE: online-batch strongly convex multi-kernel learning (thesis Algorithm 5, JMLR Algorithms 1 and 2)."""

import math

from cuelearn.core.checks import check_count, check_positive
from cuelearn.mkl.base import StochasticMKL
from cuelearn.mkl.rules import BATCH, FIXED
from cuelearn.mkl.training import Training

__all__ = ["OBSCURE", "PegasosMKL", "solve_obscure", "solve_pegasos_mkl"]


def solve_obscure(problem, *, n_epochs_online=5, n_epochs=50, eta=0.5, radius="capped", **options):
    r"""Run both stages of OBSCURE.

    Parameters
    ----------
    problem : MKLProblem
        Its `alpha` must be 0.
    n_epochs_online : int >= 0
        Most epochs of the online stage (OM-2's update with a fixed step size); it ends early after an epoch without loss.
    n_epochs : int >= 0
        Epochs of the batch stage.
    eta : float > 0
        Step size of the online stage, equation 4.6.
    radius : {"capped", "online"} or float
        Bound R of the optimum's norm. "online" is :math:`\sqrt{\|\bar w_O\|_{2,p}^2 + \frac{2}{\lambda n}\sum_i \ell_i(\bar w_O)}`;
        "capped" is at most :math:`\sqrt{2/\lambda}`, which bounds the norm too because the objective at 0 is 1.
    **options
        See `Training`.

    Returns
    -------
    Result
        `extra` holds `radius`, the R used, `radius_online`, the uncapped one, and `n_updates_online`.

    References
    ----------
    Thesis Algorithm 5, theorems 4.2 and 4.3. JMLR Algorithm 3 lost a `t` that the thesis has; stage 2 counts `t` from 1 again.
    """
    if problem.alpha != 0.0:
        raise ValueError(f"alpha must be 0 for OBSCURE, got {problem.alpha!r}; UFOMKL takes the (2,1) norm")
    training = Training(problem, name="OBSCURE", **options)
    n_epochs_online = check_count("n_epochs_online", n_epochs_online, 0)
    n_epochs = check_count("n_epochs", n_epochs, 0)
    if n_epochs_online:
        training.run_stage(
            "online",
            FIXED,
            n_epochs_online,
            until_no_loss=True,
            certify=False,
            eta=check_positive("eta", eta),
        )
    else:
        training.stream.start_stage(FIXED)
    _, loss, norm = training.stream.objective()
    online = math.sqrt(norm**2 + 2.0 * loss / problem.regularization)
    if radius == "capped":
        used = min(online, math.sqrt(2.0 * problem.mean_loss_at_zero / problem.regularization))
    elif radius == "online":
        used = online
    elif isinstance(radius, str):
        raise ValueError(f"radius must be 'capped', 'online' or a positive number, got {radius!r}")
    else:
        used = math.inf if radius == math.inf else check_positive("radius", radius)
    training.extra.update(radius=used, radius_online=online, n_updates_online=training.stream.n_updates)
    if n_epochs and used > 0.0 and not training.stopped:
        training.run_stage("batch", BATCH, n_epochs, radius=used)
    return training.finish(certify=n_epochs > 0)


def solve_pegasos_mkl(problem, *, n_epochs=50, **options):
    r"""Pegasos-MKL: OBSCURE's batch stage from 0 with :math:`s_t = 0`, i.e. step size :math:`q/(\lambda t)` (JMLR 5.3).

    Parameters
    ----------
    problem : MKLProblem
        Its `alpha` must be 0.
    n_epochs : int >= 1
    **options
        See `Training`.

    Returns
    -------
    Result
    """
    if problem.alpha != 0.0:
        raise ValueError(f"alpha must be 0 for Pegasos-MKL, got {problem.alpha!r}")
    training = Training(problem, name="Pegasos-MKL", **options)
    training.run_stage("batch", BATCH, check_count("n_epochs", n_epochs), radius=math.inf)
    return training.finish()


class OBSCURE(StochasticMKL):
    r"""OBSCURE, batch multi-kernel learning with a (2,p) group norm.

    .. math:: \min_{\bar w} \frac\lambda2 \|\bar w\|_{2,p}^2 + \frac1n\sum_i \ell(\bar w; x_i, y_i), \qquad \lambda = \frac1{Cn}

    An online stage (OM-2's update, step size `eta`) finds the region of the optimum and a bound R of its norm; the batch stage is
    stochastic proximal projected subgradient descent whose step sizes adapt to R.

    Parameters
    ----------
    kernels : list of (name, kernel, columns), "precomputed" or None
        See `OM2`.
    p : float in (1, 2] or "auto", default "auto"
    C : float > 0, default 1.0
        ``lambda = 1 / (C n)``.
    n_epochs_online : int, default 5
    n_epochs : int, default 50
        Epochs of the batch stage.
    eta : float > 0, default 0.5
    radius : {"capped", "online"} or float, default "capped"
    loss : {"multiclass", "hinge"}, default "multiclass"
    tol : float or None, default None
        Stop when the duality gap falls to `tol` times the objective; warns when it does not.
    shuffle : bool, default True
        False keeps the given order in the first epoch; later ones are permuted all the same.
    sampling : {"permutation", "iid"}, default "permutation"
        Whole permutations, or independent draws as the theorems assume.
    measure, scores, normalize, memory, random_state, callback, verbose
        See `OM2`.

    Attributes
    ----------
    classes_, dual_coef_, support_, kernel_weights_, n_updates_, history_, objective_, dual_gap_, online_errors_
        See the package's README.
    radius_ : float
        R as used; `radius_online_` before the cap.

    Notes
    -----
    Cost per visit as for OM2; visits without loss only scale, which is kept in one number. The theoretical rate is
    :math:`O(q \log T / (\lambda T))` or :math:`O(R\sqrt{q \log T / T})`, whichever is smaller: at large C the certificate says how far
    from the optimum the run ended, and `solve_reference` gets there.

    References
    ----------
    Thesis Algorithm 5, theorems 4.2, 4.3. Orabona, Jie, Caputo, JMLR 13 (2012), Algorithms 1 and 2.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from cuelearn.kernels import RBF
    >>> from cuelearn.mkl import OBSCURE
    >>> X, y = load_iris(return_X_y=True)
    >>> cues = [("sepal", RBF(), [0, 1]), ("petal", RBF(), [2, 3])]
    >>> model = OBSCURE(kernels=cues, C=10, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.9
    True
    """

    def __init__(
        self,
        kernels=None,
        *,
        p="auto",
        C=1.0,
        n_epochs_online=5,
        n_epochs=50,
        eta=0.5,
        radius="capped",
        loss="multiclass",
        tol=None,
        measure="auto",
        shuffle=True,
        sampling="permutation",
        normalize=True,
        memory=2e9,
        scores="auto",
        random_state=None,
        callback=None,
        verbose=True,
    ):
        self.kernels = kernels
        self.p = p
        self.C = C
        self.n_epochs_online = n_epochs_online
        self.n_epochs = n_epochs
        self.eta = eta
        self.radius = radius
        self.loss = loss
        self.tol = tol
        self.measure = measure
        self.shuffle = shuffle
        self.sampling = sampling
        self.normalize = normalize
        self.memory = memory
        self.scores = scores
        self.random_state = random_state
        self.callback = callback
        self.verbose = verbose

    def _solve(self, problem, options):
        result = solve_obscure(
            problem,
            n_epochs_online=self.n_epochs_online,
            n_epochs=self.n_epochs,
            eta=self.eta,
            radius=self.radius,
            **options,
        )
        self.radius_ = result.extra["radius"]
        self.radius_online_ = result.extra["radius_online"]
        return result


class PegasosMKL(StochasticMKL):
    r"""Pegasos extended to MKL: the same problem as OBSCURE, step size :math:`q/(\lambda t)`, no online stage (JMLR 5.3).

    Parameters
    ----------
    kernels, p, C, n_epochs, loss, tol, measure, shuffle, sampling, normalize, memory, scores, random_state, callback, verbose
        See `OBSCURE`.

    References
    ----------
    Orabona, Jie, Caputo, JMLR 13 (2012), section 5.3; Shalev-Shwartz, Singer, Srebro (2007).
    """

    def __init__(
        self,
        kernels=None,
        *,
        p="auto",
        C=1.0,
        n_epochs=50,
        loss="multiclass",
        tol=None,
        measure="auto",
        shuffle=True,
        sampling="permutation",
        normalize=True,
        memory=2e9,
        scores="auto",
        random_state=None,
        callback=None,
        verbose=True,
    ):
        self.kernels = kernels
        self.p = p
        self.C = C
        self.n_epochs = n_epochs
        self.loss = loss
        self.tol = tol
        self.measure = measure
        self.shuffle = shuffle
        self.sampling = sampling
        self.normalize = normalize
        self.memory = memory
        self.scores = scores
        self.random_state = random_state
        self.callback = callback
        self.verbose = verbose

    def _solve(self, problem, options):
        return solve_pegasos_mkl(problem, n_epochs=self.n_epochs, **options)

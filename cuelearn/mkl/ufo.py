r"""UFO-MKL: ultra-fast optimisation of sparse multi-kernel learning (thesis Algorithm 7)."""

from cuelearn.core.checks import check_count
from cuelearn.mkl.base import StochasticMKL
from cuelearn.mkl.rules import DUAL_AVERAGING
from cuelearn.mkl.training import Training

__all__ = ["UFOMKL", "solve_ufo"]


def solve_ufo(problem, *, n_epochs=50, **options):
    r"""Run UFO-MKL over whole epochs.

    Parameters
    ----------
    problem : MKLProblem
    n_epochs : int >= 1
    **options
        See `Training`. With ``sampling="iid"`` visit counts per sample may exceed the epochs; they are clipped, the bound is looser.

    Returns
    -------
    Result

    References
    ----------
    Thesis Algorithm 7, theorems 4.5 and 4.6. There is no 1/q in line 8, unlike in OM-2.
    """
    training = Training(problem, name="UFO-MKL", **options)
    training.run_stage("batch", DUAL_AVERAGING, check_count("n_epochs", n_epochs))
    return training.finish()


class UFOMKL(StochasticMKL):
    r"""UFO-MKL, sparse multi-kernel learning with an elastic group norm.

    .. math:: \min_{\bar w} \frac\lambda2\|\bar w\|_{2,p}^2 + \alpha\|\bar w\|_{2,1} + \frac1n\sum_i\ell(\bar w; x_i, y_i),
              \qquad p = \frac{2\ln F}{2\ln F - 1}, \quad \lambda = \frac1{Cn}

    Each visit with loss does :math:`\bar\theta \leftarrow \bar\theta - \bar z_t`; the primal vector is the gradient of the conjugate
    at :math:`\bar\theta/t`, so kernels with :math:`\|\theta^j\| \le \alpha t` have weight exactly 0 and are not computed at prediction.

    Parameters
    ----------
    kernels : list of (name, kernel, columns), "precomputed" or None
        See `OM2`.
    alpha : float >= 0, default 0.0
        Sparsity; 0 is the p-norm problem that OBSCURE solves.
    C : float > 0, default 1.0
    p : float in (1, 2] or "auto", default "auto"
        "auto" is the thesis's choice; clipped to q >= 2 for F <= 2.
    n_epochs : int, default 50
    loss, tol, measure, shuffle, sampling, normalize, memory, scores, random_state, callback, verbose
        See `OBSCURE`.

    Attributes
    ----------
    classes_, dual_coef_, support_, kernel_weights_, n_updates_, history_, objective_, dual_gap_, online_errors_
        See the package's README.

    References
    ----------
    Thesis 4.5: equation 4.9, Algorithm 7, theorems 4.5 and 4.6.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from cuelearn.kernels import RBF
    >>> from cuelearn.mkl import UFOMKL
    >>> X, y = load_iris(return_X_y=True)
    >>> cues = [("sepal", RBF(), [0, 1]), ("petal", RBF(), [2, 3])]
    >>> model = UFOMKL(kernels=cues, C=10, alpha=0.05, random_state=0).fit(X, y)
    >>> float(model.kernel_weights_[0])
    0.0
    """

    def __init__(
        self,
        kernels=None,
        *,
        p="auto",
        C=1.0,
        alpha=0.0,
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
        self.alpha = alpha
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
        return solve_ufo(problem, n_epochs=self.n_epochs, **options)

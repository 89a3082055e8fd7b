r"""MKTL (thesis chapter 6): OBSCURE on kernels of the new samples and one scalar block per new class and
prior score.

With scores :math:`s_{iz}` of K priors, M new classes and F0 kernels (thesis 6.2, 6.3) the objective of `MKTL`
has the F0 + M K blocks

.. math:: \bar w = [w^1, \dots, w^{F_0}, w^{(1,1)}, \dots, w^{(M,K)}] .

A score's block is one number, :math:`\theta^{(y,z)} = \sum_i A_{iy} s_{iz}`: with the coefficient matrix A of
chapter 4 all are :math:`A^\top S`, without kernel matrices or score vectors per block. Two classes with the
hinge loss have one block per score.

Equation 6.2 prints a sum of losses with :math:`\lambda = 1/(CN)`; here it is the mean, as in equation 4.3.
"""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from cuelearn.core.estimator import NON_NEGATIVE, SEQUENCE, Number, StrOptions, parameters
from cuelearn.core.formulas import first_best, resolve_p
from cuelearn.core.samples import as_generator, class_weights
from cuelearn.expect import expect, expect_list
from cuelearn.kernels import KernelBank
from cuelearn.kernels.types import ArrayLike, Callback, ClassWeight, RandomState
from cuelearn.mkl.optimum.problem import MKLProblem, Result, weights_of
from cuelearn.mkl.rivals.single import stratified_folds
from cuelearn.mkl.stochastic.obscure import solve_obscure
from cuelearn.mktl.base import TransferClassifier, documented


class TransferProblem(MKLProblem):
    """An MKL problem with scores of priors and weights of the losses, see `MKTL`.

    Parameters
    ----------
    bank, labels, n_classes
        Kernels of the new samples and their classes, as in `MKLProblem`.
    scores : ndarray of float64, shape (n_samples, K)
        Scores of the priors, already scaled; K may be 0.
    p : float in (1, 2], "auto" or "auto-priors"
        "auto": q = 2 ln F with F all blocks (section 6.3, theorem 4.2); "auto-priors": q = 2 ln K (section
        6.5.2). Both are clipped to q >= 2.
    C, loss, sample_weight, class_weight
        As in `MKLProblem`: the weights c of `MKTL` are :math:`s_i c_{y_i} n / W`.

    Examples
    --------
    >>> import numpy as np
    >>> from cuelearn.kernels import KernelBank
    >>> from cuelearn.mktl import TransferProblem
    >>> y = np.arange(60) % 3
    >>> X = np.eye(3)[y] + 0.2 * np.random.default_rng(0).normal(size=(60, 3))
    >>> problem = TransferProblem(KernelBank([("all", "rbf", [0, 1, 2])], X), y, 3, scores=X[:, :2])
    >>> problem.n_groups  # a kernel, and two scores for each of three classes
    7
    """

    many_kernels = False

    def __init__(
        self, bank: KernelBank, labels: ArrayLike, n_classes: int, scores: ArrayLike, **options: Any
    ):
        super().__init__(bank, labels, n_classes, scores=scores, **options)

    def _resolve_p(self, p):
        if isinstance(p, str) and p == "auto-priors":
            return resolve_p("auto", self.scores.shape[1])
        return resolve_p(p, self.n_groups)


#: Exponents of thesis 6.5.
P_RANGE = (1.01, 1.05, 1.10, 1.15, 1.20, 1.25, 1.30, 1.40, 1.50)
WORDS = {"auto", "auto-priors", "cv"}
#: Stratified folds for choosing p; fewer if a class has fewer samples, at least 2.
FOLDS = 5


def solve_mktl(
    problem: TransferProblem,
    *,
    tol: float | None = 1e-3,
    finish: bool = True,
    n_epochs: int = 50,
    scores: str = "maintain",
    **options: Any,
) -> Result:
    """Solve a transfer problem by OBSCURE, followed by dual ascent if a gap is left.

    Parameters
    ----------
    problem : TransferProblem
    tol : float or None
        Relative duality gap to reach; None runs OBSCURE's epochs only.
    finish : bool
        Whether dual ascent may follow.
    n_epochs, scores, **options
        Of `solve_obscure`: n_epochs_online, eta, radius, measure, rng, shuffle, sampling, callback, verbose.

    Returns
    -------
    Result
        `kernel_weights` of all blocks: kernels, then class by class. A missed `tol` is a ConvergenceWarning.

    Examples
    --------
    >>> import numpy as np
    >>> from cuelearn.kernels import KernelBank
    >>> from cuelearn.mktl import TransferProblem, solve_mktl
    >>> y = np.arange(60) % 3
    >>> X = np.eye(3)[y] + 0.2 * np.random.default_rng(0).normal(size=(60, 3))
    >>> problem = TransferProblem(KernelBank([("all", "rbf", [0, 1, 2])], X), y, 3, scores=X[:, :2])
    >>> solution = solve_mktl(problem)
    >>> solution.converged, solution.kernel_weights.shape
    (True, (7,))
    """
    options |= {"tol": tol, "finish": finish, "n_epochs": n_epochs, "scores": scores, "name": "MKTL"}
    return solve_obscure(problem, **options)


@documented
@parameters
class MKTL(TransferClassifier):
    r"""Multi kernel transfer learning: new classes from few samples and the scores of any other models.

    .. math:: \min_{\bar w} \frac\lambda2 \|\bar w\|_{2,p}^2 + \frac1n \sum_i c_i\, \ell(\bar w; x_i, y_i),
        \qquad
        s(x, y) = w^0_y \cdot \phi(x) + \sum_{z=1}^{K} w_{yz}\, s_p(x, z), \qquad \lambda = \frac1{Cn}

    Each pair of a new class y and a prior score z is a group, as are the kernels on the new samples. So the
    group norm decides for each new class from where and how much to transfer; with p near 1 few groups are
    used.

    Parameters
    ----------
    $kernels $priors
    p : float in (1, 2], "auto", "auto-priors", "cv" or sequence of floats, default "auto"
        "auto" is q = 2 ln F, with F all groups (section 6.3); "auto-priors" takes the number of prior scores,
        as section 6.5.2 prints; "cv" selects from `P_RANGE`, a sequence from itself, by stratified
        cross-validation (5 folds), with scales and kernel widths of all training samples.
    $C
    class_weight : None, "positive", "balanced" or dict, default None
        Loss weights of the classes. "positive", as in the thesis for two classes: N-/N+ for the second in
        sorted order and 1 for the other; "balanced" as in scikit-learn.
    $scaling
    tol : float or None, default 1e-3
        Relative duality gap to reach, by OBSCURE and, if needed, dual ascent; None is plain OBSCURE.
    n_epochs : int >= 0, default 20
        Epochs of OBSCURE's batch stage. With 0 and a `tol` the dual ascent starts from zero, without the
        online stage: fastest for few samples.
    $missing $normalize $random_state $callback $verbose

    Attributes
    ----------
    $classes_ $dual_coef_ $support_ $n_updates_ $objective_ $dual_gap_ $online_errors_ $visits_ $n_iter_
    $converged_
    kernel_weights_ : ndarray, shape (n_kernels,)
        Of the kernels only.
    history_ : DataFrame
        As in OBSCURE; rows with stage "dual" are the ascent's.
    transfer_weights_ : ndarray, shape (n_classes, K)
        :math:`w_{yz}` for the scaled scores. For two classes the rows are -w/2 and w/2.
    $prior_names_ $score_scale_
    block_norms_ : ndarray, shape (F,)
        Primal norms of all groups: kernels first, then class by class.
    p_, q_ : float
    p_scores_ : dict
        Cross-validated accuracy of each p, if p was chosen.
    class_weight_ : dict
    radius_ : float
        OBSCURE's norm bound, as used.

    See Also
    --------
    solve_mktl : The solver, on a `TransferProblem`.
    cuelearn.mkl.OBSCURE : The algorithm behind it.

    Notes
    -----
    Cost: O(M (F0 + K)) per visit, O(F0 n + F) per update; 10 classes of 100 samples with 40 priors take 0.2
    to 3 s, up to 10 s for large C and p near 1. Memory for the scores: n x K, and O(M K).

    In scikit-learn's searches and pipelines `scores` need metadata routing, as the message of `predict`
    without them explains; "passthrough" columns do not.

    The regulariser can drop every prior, so in the objective useless priors are no worse than none; on new
    samples they can be, see the chapter's notebook.

    References
    ----------
    Thesis chapter 6, equations 6.1 and 6.2, section 6.3; Algorithm 5. Jie, Tommasi, Caputo, ICCV 2011.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.svm import SVC
    >>> from cuelearn.mktl import MKTL
    >>> X, y = load_iris(return_X_y=True)
    >>> new = np.r_[0:5, 50:55, 100:105]
    >>> old = np.r_[5:50, 55:100]  # setosa and versicolor, known by their sepals
    >>> known = SVC().fit(X[old, :2], y[old])
    >>> model = MKTL(priors=[("sepals", known, [0, 1])], C=10, random_state=0).fit(X[new], y[new])
    >>> model.transfer_weights_.shape, model.prior_names_
    ((3, 1), ['sepals'])
    >>> model.score(X, y) > 0.9
    True
    """

    _parameter_constraints = {
        "p": [Number(numbers.Real, 1, 2, closed="right"), StrOptions(WORDS), *SEQUENCE],
        "class_weight": [StrOptions({"positive", "balanced"}), dict, None],
        "tol": [*NON_NEGATIVE, None],
        "n_epochs": [Number(numbers.Integral, 0, 2**31 - 1, closed="both")],
    }

    class_weight: ClassWeight | Literal["positive"] = None
    p: float | Literal["auto", "auto-priors", "cv"] | Sequence[float] = "auto"
    tol: float | None = 1e-3
    n_epochs: int = 20
    random_state: RandomState = None
    callback: Callback = None
    verbose: bool = False

    def _train(self, labels, scores, sample_weight):
        rng = as_generator(self.random_state)
        self.class_weight_ = class_weights(self.class_weight, self.classes_, labels, sample_weight)
        p = self._chosen_p(labels, scores, sample_weight, rng)
        problem = self._problem(self.bank_, labels, scores, sample_weight, p)
        result = self._solve(problem, rng, callback=self._watch(), verbose=self.verbose)
        self._show(problem, result.dual_coef, result.kernel_weights)
        self._take_run(result)
        self.block_norms_: np.ndarray = result.kernel_weights * np.sqrt(result.block_norms_sq)
        self.p_: float = problem.p
        self.q_ = problem.q
        self.radius_: float = result.extra["radius"]

    def _loss(self):
        """Two classes share their score groups."""
        if self.classes_.size == 2:
            return "hinge"
        return "multiclass"

    def _problem(self, bank, labels, scores, sample_weight, p):
        options = {"p": p, "C": self.C, "loss": self._loss()}
        options |= weights_of(self.class_weight_, self.classes_, labels, sample_weight)
        return TransferProblem(bank, labels, self.classes_.size, scores, **options)

    def _solve(self, problem, rng, **options):
        if self.n_epochs == 0 and self.tol is not None and not problem.bank.indefinite:
            options["n_epochs_online"] = 0
        return solve_mktl(problem, tol=self.tol, n_epochs=self.n_epochs, rng=rng, **options)

    def _chosen_p(self, labels, scores, sample_weight, rng):
        """The exponent, cross-validated if several are given; the largest on ties."""
        given = P_RANGE if isinstance(self.p, str) and self.p == "cv" else self.p
        vars(self).pop("p_scores_", None)
        if isinstance(given, (str, numbers.Real)) or not hasattr(given, "__iter__"):
            return given
        tried = [expect("p", p, above=1, high=2) for p in expect_list("p", given, "exponents in (1, 2]")]
        weight = np.ones(labels.size) if sample_weight is None else sample_weight
        with_weight = np.flatnonzero(weight)
        accuracy = dict.fromkeys(tried, 0.0)
        for fold in stratified_folds(labels[with_weight], FOLDS, rng):
            train, test = (with_weight[part] for part in fold)
            bank = self.bank_.restrict(train)
            cross = self.bank_.rows(test)[:, :, train]
            for p in tried:
                problem = self._problem(bank, labels[train], scores[train], weight[train], p)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", ConvergenceWarning)
                    result = self._solve(problem, np.random.default_rng(0))
                of_kernels, of_scores = problem.split(result.kernel_weights)
                held = scores[test] @ (of_scores * problem.score_blocks(result.dual_coef)).T
                held += np.tensordot(of_kernels, cross, axes=1) @ result.dual_coef
                right = np.argmax(held, axis=1) == labels[test]
                accuracy[p] += float(weight[test] @ right) / float(weight.sum())
        self.p_scores_: np.ndarray = accuracy
        largest_first = sorted(accuracy, reverse=True)
        return largest_first[first_best([accuracy[p] for p in largest_first])]

    def _show(self, problem, coef, weights):
        of_kernels, of_scores = problem.split(weights)
        blocks = problem.factor * problem.score_blocks(coef)
        self._set(problem.factor * coef, of_kernels.copy(), of_scores * blocks)

r"""One class against the rest, each with kernel weights of its own: what SILP, SimpleMKL and p-norm MKL share.

Each class has the binary problem

.. math:: \min_{\bar w, b} \frac12 \|\bar w\|_{2,p}^2 + C \sum_i \big[1 - y_i (\bar w\cdot\bar\phi(x_i) + b)\big]_+

with the dual :math:`\max_a \sum_i a_i - \frac12 \|(a^\top Y K_j Y a)_j^{1/2}\|_q^2` over :math:`0 \le a_i \le C`,
:math:`a^\top y = 0` (p = 1: the largest :math:`a^\top Y K_j Y a` in place of the norm). For fixed kernel weights *d* it is an SVM on
:math:`\sum_j d_j K_j`, which libsvm solves; a method says how *d* moves (`Machine.move`), and that is all that one file holds.

The classes run in lock step: a *round* solves one SVM for each class that has not converged, then measures the norms of all their blocks
in one pass over the kernels. So a classifier of all classes exists after every round, and its accuracy can be drawn over time.
"""

import sys
import warnings

import numpy as np
from joblib import Parallel, delayed
from sklearn.exceptions import ConvergenceWarning
from tqdm.auto import tqdm

from cuelearn.core.checks import check_count, check_positive
from cuelearn.core.groupnorm import group_norm
from cuelearn.core.progress import BAR_AFTER
from cuelearn.mkl.multilabel import MultiLabelMKL
from cuelearn.mkl.problem import combined_kernel, quadratic_forms
from cuelearn.mkl.single import fit_svc
from cuelearn.mkl.training import History

__all__ = ["BinaryMKL", "Machine", "OneVersusAllMKL", "Solution"]

# libsvm's own tolerance at first, and the least; it is tightened only when the SVM's own gap is what is left
SVM_TOLERANCE = 1e-3
SMALLEST_TOLERANCE = 1e-9
# share of the wanted gap that the SVM's own gap may take
OWN_SHARE = 0.2
# the newest objective counts as better only by more than rounding
BETTER = 1e-12


class Solution:
    """An SVM for fixed kernel weights.

    Attributes
    ----------
    weights : ndarray, shape (n_kernels,)
        Kernel weights d.
    coef : ndarray, shape (n_samples,)
        :math:`a_i y_i`.
    bias : float
    total : float
        :math:`\\sum_i a_i`.
    quadratic : float
        ``coef @ K_d @ coef``.
    hinge : float
        Sum of the hinge losses.
    n_iter : int
        Iterations of libsvm, each of which changes two coefficients.
    multiple : float
        The primal point is this multiple of libsvm's (`best_multiple`): its coefficients are ``multiple * coef``; `bias` and
        `hinge` are those of the primal point. The dual point is `coef` itself.
    """

    def __init__(self, weights, coef, bias, total, quadratic, hinge, n_iter, multiple=1.0):
        self.weights, self.coef, self.bias = weights, coef, bias
        self.total, self.quadratic, self.hinge, self.n_iter, self.multiple = (
            total,
            quadratic,
            hinge,
            n_iter,
            multiple,
        )

    @property
    def dual(self):
        """Dual value of the SVM for these weights."""
        return self.total - 0.5 * self.quadratic

    def primal(self, C):
        """Primal value of the SVM for these weights."""
        return 0.5 * self.multiple**2 * self.quadratic + C * self.hinge


def best_multiple(margins, quadratic, C):
    r"""The t > 0 with the least :math:`\frac{t^2}{2} Q + C \sum_i [1 - t m_i]_+`, exactly; 1 where that would be 0.

    libsvm keeps the kernel in float32, so its margins are off by 1e-7 and more. At large C that is not little: with :math:`n C` in
    front it exceeds the norm. Stretching the point by as much as the margins are off takes these losses away and hardly changes
    the norm.

    Parameters
    ----------
    margins : ndarray, shape (n_samples,)
        :math:`m_i = y_i f(x_i)`, the bias included.
    quadratic : float >= 0
        Q, the squared norm.
    C : float > 0

    Returns
    -------
    float
    """
    positive = np.sort(margins[margins > 0.0])[::-1]
    if quadratic <= 0.0 or positive.size == 0:
        return 1.0
    # C times the sum of the margins that still cost something, once the largest 0, 1, 2, ... are beyond 1
    pull = C * (margins[margins < 0.0].sum() + np.r_[np.cumsum(positive[::-1])[::-1], 0.0])
    k = int(np.argmax(np.r_[quadratic / positive >= pull[1:], True]))
    low, high = 1.0 / positive[k - 1] if k > 0 else 0.0, 1.0 / positive[k] if k < positive.size else np.inf
    multiple = min(max(pull[k] / quadratic, low), high)
    return multiple if multiple > 0.0 else 1.0


class BinaryMKL:
    """The binary problems of a labelled kernel bank.

    Parameters
    ----------
    bank : KernelBank
    signs : ndarray of float64, shape (n_problems, n_samples)
        -1 or 1.
    C : float > 0
        libsvm's C, which is the C of `MKLProblem` too: its objective is this one divided by ``C * n_samples``.
    p : float in [1, 2]
        Exponent of the group norm over kernels.
    """

    def __init__(self, bank, signs, C, p):
        self.bank, self.signs, self.C, self.p = bank, signs, C, p
        self.n_problems = len(self.signs)

    def svm(self, k, weights, tolerance):
        """Solve the SVM of problem `k` for kernel weights.

        Parameters
        ----------
        k : int
        weights : ndarray, shape (n_kernels,)
        tolerance : float
            libsvm's.

        Returns
        -------
        Solution
        """
        signs = self.signs[k]
        kernel = combined_kernel(self.bank, weights, 1.0)
        machine = fit_svc(kernel, signs, self.C, tolerance)
        coef = np.zeros(signs.size)
        coef[machine.support] = machine.coef
        bias = machine.intercept
        scores = kernel[:, machine.support] @ machine.coef
        margins, quadratic = signs * (scores + bias), float(coef @ scores)
        multiple = best_multiple(margins, quadratic, self.C)
        hinge = float(np.maximum(0.0, 1.0 - multiple * margins).sum())
        total, n_iter = float(np.abs(coef).sum()), machine.n_iter
        return Solution(weights, coef, multiple * bias, total, quadratic, hinge, n_iter, multiple)

    def block_norms_sq(self, coefs):
        """Squared norms of the dual blocks of several problems in one pass over the kernels.

        Parameters
        ----------
        coefs : ndarray, shape (n_samples, n_active)

        Returns
        -------
        ndarray, shape (n_kernels, n_active)
            ``coefs[:, c] @ K_j @ coefs[:, c]``.
        """
        return quadratic_forms(self.bank, coefs)

    def value(self, solution, norms_sq):
        r"""Objective at a solution's :math:`(\bar w, b)`: the regulariser is that of the block norms, not of the weights that led there."""
        norms = solution.multiple * solution.weights * np.sqrt(norms_sq)
        return 0.5 * group_norm(norms, self.p) ** 2 + self.C * solution.hinge

    def bound(self, solution, norms_sq):
        """Dual value of a solution's dual point for the problem over all kernels: never above the optimum."""
        dual = (
            norms_sq.max() if self.p == 1.0 else group_norm(np.sqrt(norms_sq), self.p / (self.p - 1.0)) ** 2
        )
        return solution.total - 0.5 * dual


class Machine:
    """One class on its way: its kernel weights, its best point and the best lower bound so far.

    A method is a subclass with `move`.

    Parameters
    ----------
    problem : BinaryMKL
    k : int
        Which of its binary problems.
    tol : float
        Wanted gap relative to the objective.
    """

    def __init__(self, problem, k, tol):
        self.problem, self.k, self.tol = problem, k, tol
        self.tolerance = SVM_TOLERANCE
        self.n_solved = self.n_updates = 0
        self.weights = self.first_weights(problem.bank.n_kernels)
        self.solution = None
        self.best = None
        self.objective, self.lower = np.inf, 0.0
        self.converged = self.stalled = False

    def first_weights(self, n_kernels):
        """Equal weights in the feasible set."""
        power = self.problem.p / (2.0 - self.problem.p) if self.problem.p < 2.0 else np.inf
        return np.full(n_kernels, n_kernels ** (-1.0 / power))

    def svm(self, weights):
        """SVM for some weights; the last one solved is kept."""
        if self.solution is None or not np.array_equal(self.solution.weights, weights):
            self.solution = self.problem.svm(self.k, weights, self.tolerance)
            self.n_solved += 1
            self.n_updates += self.solution.n_iter
        return self.solution

    def solve(self):
        """SVM for the present weights, accurate enough for the gap that is wanted."""
        while True:
            found = self.svm(self.weights)
            own = found.primal(self.problem.C) - found.dual
            limit = OWN_SHARE * max(self.tol * abs(found.dual), 0.1 * min(self.gap, abs(found.dual)))
            if own <= limit or self.tolerance <= SMALLEST_TOLERANCE:
                return found
            self.tolerance = max(SMALLEST_TOLERANCE, 0.1 * self.tolerance)
            self.solution = None

    def measure(self, norms_sq):
        """Take over the objective and the bound of the present solution."""
        found = self.solution
        value = self.problem.value(found, norms_sq)
        if value < self.objective * (1.0 - BETTER):
            self.objective, self.best = value, found
        self.lower = max(self.lower, self.problem.bound(found, norms_sq))
        self.check()

    def check(self):
        """Whether the gap is small enough."""
        self.converged = self.gap <= self.tol * self.objective

    @property
    def gap(self):
        """Certified distance of the best point from the optimum."""
        return self.objective - self.lower

    def move(self, norms_sq):
        """Set `weights` for the next round.

        Parameters
        ----------
        norms_sq : ndarray, shape (n_kernels,)
            Squared norms of the dual blocks of the present solution.
        """
        raise TypeError(f"{type(self).__name__} does not say how its kernel weights move")

    def exhausted(self):
        """Whether nothing can be made more accurate."""
        return self.tolerance <= SMALLEST_TOLERANCE

    def advance(self, norms_sq):
        """One round after its SVM: measure, and move if the class has not converged."""
        self.measure(norms_sq)
        if not self.converged:
            before = self.weights
            self.move(norms_sq)
            self.check()
            if np.array_equal(before, self.weights):  # only more accuracy can bring anything new
                self.stalled = self.exhausted()
                self.tolerance, self.solution = max(SMALLEST_TOLERANCE, 0.1 * self.tolerance), None


class OneVersusAllMKL(MultiLabelMKL):
    """Base of the estimators with a binary problem and kernel weights for each class.

    A subclass names its `machine` (a subclass of `Machine`) and the exponent `_exponent(n_kernels)` of its group norm.

    Attributes
    ----------
    kernel_weights_ : ndarray, shape (n_classes, n_kernels)
        Of the best point of every class; two equal rows for two class labels, 0 for skipped classes.
    path_ : ndarray, shape (n_iter_ + 1, n_classes, n_kernels)
        Kernel weights at the start and after each round, which are those that the next round tries; entry t + 1 belongs to row t of
        `history_`. The last entry need not be the best point.
    history_ : DataFrame
        One row for each round: step, seconds, n_updates (iterations of libsvm so far), n_support, objective and dual_gap, summed over the
        classes.
    objectives_, dual_gaps_ : ndarray, shape (n_classes,), or (1,) for two class labels, which are one problem
        NaN for skipped classes.
    objective_, dual_gap_ : float
        Their sums over the classes that were trained.
    """

    machine = Machine

    def __init__(
        self,
        kernels=None,
        *,
        C=1.0,
        tol=1e-3,
        max_iter=500,
        normalize=True,
        memory=2e9,
        n_jobs=None,
        callback=None,
        verbose=False,
    ):
        self.kernels = kernels
        self.C = C
        self.tol = tol
        self.max_iter = max_iter
        self.normalize = normalize
        self.memory = memory
        self.n_jobs = n_jobs
        self.callback = callback
        self.verbose = verbose

    def _exponent(self, n_kernels):
        return 1.0

    def fit(self, X, y):
        """Train.

        Parameters
        ----------
        X : array-like, shape (n, n_features), or (n_kernels, n, n) for precomputed kernels, or a KernelBank
        y : array-like, shape (n,) or (n, n_classes)
            Class labels, or an indicator matrix.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            With one sentence that names the argument, on any bad input.

        Warns
        -----
        ConvergenceWarning
            If `max_iter` rounds did not bring the gap of every class down to `tol`.
        """
        C, tol, max_iter = (
            check_positive("C", self.C),
            check_positive("tol", self.tol),
            check_count("max_iter", self.max_iter),
        )
        self._check_callback()
        signs = self._problem_signs(self._start(X, y))
        problem = BinaryMKL(self.bank_, signs, C, self._exponent(self.bank_.n_kernels))
        machines = [self.machine(problem, k, tol) for k in range(problem.n_problems)]
        stopped = self._run(machines, max_iter)
        missed = [m for m in machines if not m.converged]
        self.converged_ = not missed
        if missed and not stopped:
            worst = max(m.gap / m.objective for m in missed)
            advice = (
                "raise max_iter or tol"
                if self.n_iter_ == max_iter
                else "libsvm's accuracy is exhausted, raise tol"
            )
            warnings.warn(
                f"{type(self).__name__} did not reach tol={tol:g} for {len(missed)} of {len(machines)} binary problems: the largest "
                f"relative duality gap is {worst:.2g} after {self.n_iter_} rounds; {advice}",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def _run(self, machines, max_iter):
        history, path = History(), [np.stack([m.weights for m in machines])]
        bar = tqdm(
            total=max_iter,
            desc=type(self).__name__,
            unit="round",
            delay=BAR_AFTER,
            leave=False,
            disable=not self.verbose,
            file=sys.stderr,
        )
        with bar, Parallel(n_jobs=self.n_jobs, prefer="threads") as parallel:
            for step in range(1, max_iter + 1):
                active = [m for m in machines if not (m.converged or m.stalled)]
                found = parallel(delayed(m.solve)() for m in active)
                norms_sq = active[0].problem.block_norms_sq(np.stack([f.coef for f in found], axis=1))
                parallel(delayed(m.advance)(norms_sq[:, i]) for i, m in enumerate(active))
                history.pause()
                path.append(np.stack([m.weights for m in machines]))
                self._record(history, machines, step)
                bar.update()
                bar.set_postfix_str(f"{sum(not m.converged for m in machines)} classes to go", refresh=False)
                stop = self._call_back(history, path, machines, step)
                history.go()
                if stop or all(m.converged or m.stalled for m in machines):
                    break
        self._take(machines, path)
        self.history_ = history.frame()
        self.n_iter_ = step
        return stop

    def _record(self, history, machines, step):
        scale = machines[0].problem.C * machines[0].problem.signs.shape[1]
        history.add(
            stage="batch",
            step=step,
            epoch=step,
            seconds=history.seconds,
            n_updates=sum(m.n_updates for m in machines),
            n_support=int(np.count_nonzero(np.any([m.best.coef != 0.0 for m in machines], axis=0))),
            objective=sum(m.objective for m in machines) / scale,
            dual_gap=sum(m.gap for m in machines) / scale,
        )

    def _call_back(self, history, path, machines, step):
        if self.callback is None:
            return False
        self._take(machines, path)
        self.history_ = history.frame()
        return bool(self.callback(self, step))

    def _take(self, machines, path):
        """Fitted attributes from the best point of every class, and the kernel weights of all rounds."""
        coef = np.stack([m.best.multiple * m.best.coef for m in machines], axis=1)
        bias = np.array([m.best.bias for m in machines])
        self._keep_problems(coef, np.stack([m.best.weights for m in machines]), bias)
        problem = machines[0].problem
        scale = problem.C * problem.signs.shape[1]
        objectives, gaps = (
            np.array([m.objective for m in machines]) / scale,
            np.array([m.gap for m in machines]) / scale,
        )
        self.objectives_, self.dual_gaps_ = self._one_by_one(objectives), self._one_by_one(gaps)
        self.objective_, self.dual_gap_ = float(objectives.sum()), float(gaps.sum())
        self.path_ = self._rows(np.array(path))
        self.n_updates_, self.n_solved_ = (
            sum(m.n_updates for m in machines),
            sum(m.n_solved for m in machines),
        )

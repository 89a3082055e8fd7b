r"""VSKL: kernels in groups, sparse within a group and not across groups, by mirror descent over a product of simplices.

With the kernels of group j numbered (j, k), block norms :math:`\|w_{jk}\|` and :math:`N_j = \sum_k \|w_{jk}\|`, each class has the problem

.. math:: \min_w \frac12 \|(N_j)_j\|_s^2 + C \sum_i \big[1 - y_i \textstyle\sum_{jk} w_{jk} \cdot \phi_{jk}(x_i)\big]_+ ,
          \qquad 2 \le s \le \infty ,

:math:`\ell_1` within the groups, :math:`\ell_s` across them. With :math:`q_{jk}(\alpha) = (\alpha \circ y)^\top K_{jk} (\alpha \circ y)`,
:math:`1/r = 1 - 1/s`, one simplex for the weights of each group and :math:`\gamma \ge 0`,
:math:`\sum_j \gamma_j^{s/(s-2)} \le 1` (s = 2: :math:`\gamma_j \le 1`), its optimum is

.. math:: \min_{\lambda_j \in \Delta} G(\lambda), \qquad
          G(\lambda) = \max_{0 \le \alpha \le C,\ \gamma} \alpha^\top 1
          - \frac12 \sum_j \frac{1}{\gamma_j} \sum_k \lambda_{jk} q_{jk}(\alpha) ,

and also :math:`\max_{0 \le \alpha \le C} \alpha^\top 1 - \frac12 \|(\max_k q_{jk}(\alpha)^{1/2})_j\|_r^2`. The kernel weights are
:math:`d_{jk} = \lambda_{jk} / \gamma_j`.
"""

import math
import numbers
import re
import warnings

import numpy as np

from cuelearn.core.checks import check_count, check_positive
from cuelearn.core.groupnorm import group_norm
from cuelearn.mkl.gmkl import ClassMachine, PerClassMKL, run_classes

__all__ = ["VSKL", "MirrorMachine", "group_scales", "resolve_groups", "solve_vskl"]

# most SVMs for one value of G
MOST_INNER = 20
# shares of the wanted gap: what G may be off by, and of that, what its SVM may be off by
INNER_SHARE = 0.1
SVM_SHARE = 0.3
LEAST_INNER_SHARE = 1e-3
# gamma goes at most this power of the way to its best value for the present alpha
LONGEST = 4.0
# a class that does not gain for so many steps, its inner values as exact as they get, is given up
PATIENCE = 20
# weights in a simplex below this are 0 in the combined kernel
ZERO_WEIGHT = 1e-12
GROW = 2.0
SHRINK = 0.3
MOST_TRIALS = 8


def resolve_groups(groups, names):
    """The number of each kernel's group.

    Parameters
    ----------
    groups : None, "prefix" or array-like, shape (n_kernels,)
        None: all in one. "prefix": by what comes in the names before the first of ``_ - : / .`` or a space. Else a label for each kernel.
    names : list of str
        Of the kernels.

    Returns
    -------
    ndarray of int, shape (n_kernels,)
        0, 1, ... in the order of first appearance.

    Raises
    ------
    ValueError
    """
    if groups is None:
        return np.zeros(len(names), dtype=np.int64)
    if isinstance(groups, str):
        if groups != "prefix":
            raise ValueError(
                f"groups must be None, 'prefix' or a list of one label per kernel, got {groups!r}"
            )
        labels = [re.split(r"[_\-:/. ]", name, maxsplit=1)[0] for name in names]
    else:
        try:
            labels = np.asarray(groups).tolist()
        except (TypeError, ValueError):
            labels = None
        if (
            not isinstance(labels, list)
            or len(labels) != len(names)
            or not all(isinstance(g, (int, str)) for g in labels)
        ):
            raise ValueError(
                f"groups must be None, 'prefix' or a list of {len(names)} labels, one per kernel, got {groups!r}"
            )
    seen = {}
    return np.array([seen.setdefault(label, len(seen)) for label in labels], dtype=np.int64)


def check_exponent(s):
    """s as a float in [2, inf], or an error that names it."""
    if not isinstance(s, numbers.Real) or isinstance(s, bool) or not s >= 2.0:
        raise ValueError(f"s must be a number in [2, inf], got {s!r}")
    return float(s)


def group_scales(quadratics, s, least=0.0):
    r"""The :math:`\gamma` that is best for given :math:`D_j = \sum_k \lambda_{jk} q_{jk}`, in closed form.

    .. math:: \gamma_j = \Big( D_j^{r/2} \big/ \sum_l D_l^{r/2} \Big)^{1 - 2/s}

    Parameters
    ----------
    quadratics : ndarray, shape (n_groups,)
        D.
    s : float in [2, inf]
    least : float
        Smallest share of a group in the sum, so that no kernel weight becomes infinite.

    Returns
    -------
    ndarray, shape (n_groups,)
    """
    if s == 2.0 or quadratics.size == 1:
        return np.ones_like(quadratics)
    largest = quadratics.max()
    shares = (quadratics / largest) ** (0.5 * dual_exponent(s)) if largest > 0.0 else np.ones_like(quadratics)
    shares = np.maximum(shares / shares.sum(), least)
    return (shares / shares.sum()) ** (1.0 - 2.0 / s)


def dual_exponent(s):
    """r with 1/r + 1/s = 1."""
    return 1.0 if math.isinf(s) else s / (s - 1.0)


class MirrorMachine(ClassMachine):
    """Mirror descent with the entropy of each simplex, and SVMs in alternation with gamma for each value of G.

    Parameters
    ----------
    problem, k, tol
        As of `ClassMachine`.
    groups : ndarray of int, shape (n_kernels,)
    s : float in [2, inf]
    eta : float or None
        See `solve_vskl`.
    """

    def __init__(self, problem, k, tol, groups, s, eta):
        super().__init__(problem, k, tol)
        self.groups, self.s, self.eta = groups, s, eta
        self.members = [np.flatnonzero(groups == j) for j in range(groups.max() + 1)]
        sizes = np.bincount(groups)
        self.largest_group = int(sizes.max())
        self.logs = -np.log(sizes[groups].astype(float))
        self.gamma = np.full(sizes.size, sizes.size ** -(1.0 - 2.0 / s))
        self.weights = np.exp(self.logs) / self.gamma[groups]
        self.share, self.floor, self.idle = INNER_SHARE, 0.0, 0
        self.length, self.n_steps, self.value, self.slope = None, 0, None, None
        # shares of the groups are gamma to this power
        self.power = 1.0 / (1.0 - 2.0 / s) if s > 2.0 else 1.0

    def wanted(self):
        """How much G may be off by, absolutely."""
        return self.share * max(self.tol * self.objective, 0.5 * self.gap)

    def least(self):
        """Smallest share of a group: what the groups that are held there cost is below what G may be off by."""
        return max(self.floor, 0.5 * self.wanted() / self.objective / self.gamma.size)

    def towards(self, gamma, best, before):
        r"""The next gamma, beyond the one that is best for the present alpha where alpha follows gamma (Aitken's rule in logarithms).

        `before` is the logarithmic distance to the best and the step taken of the round before; returns gamma and the same of this round.
        """
        ahead = np.log(best / gamma)
        factor = np.ones_like(ahead)
        if before is not None:
            last, taken = before
            moved = np.abs(taken) > 1e-12
            factor[moved] = 1.0 / np.clip((last[moved] - ahead[moved]) / taken[moved], 1.0 / LONGEST, 1.0)
        shares = np.exp(self.power * (np.log(gamma) + factor * ahead))
        shares = np.maximum(shares / shares.sum(), self.least())
        new = (shares / shares.sum()) ** (1.0 / self.power)
        return new, (ahead, np.log(new / gamma))

    def evaluate(self, simplex, gamma):
        """G by alternation; returns a lower end of it, its gradient, gamma and the kernel weights of the last SVM."""
        group, s, before = self.groups, self.s, None
        used = np.where(simplex < ZERO_WEIGHT, 0.0, simplex)
        for _ in range(MOST_INNER):
            weights = used / gamma[group]
            known = math.isfinite(self.objective)
            found = self.svm(
                weights, SVM_SHARE * (self.wanted() / self.objective if known else self.share * self.tol)
            )
            missed = found.gap > 1.5 * self.problem.svm_tol * (found.value + found.gap)
            quadratics = yield
            total = float(found.alpha.sum())
            losses = max(0.0, 2.0 * found.value + found.gap - total)  # C times the hinge losses
            inner = np.bincount(group, used * quadratics)
            value = total - 0.5 * group_norm(np.sqrt(inner), dual_exponent(s)) ** 2
            above = 0.5 * group_norm(np.sqrt(inner) / gamma, s) ** 2 + losses
            self._certify(found.alpha, weights, simplex, quadratics, losses)
            best = group_scales(inner, s, self.least())
            if above - value <= self.wanted() or self.converged:
                break
            if missed:  # weights too unequal for the solver of the SVM
                self.floor = max(
                    self.floor, min(float((gamma**self.power).min()), 0.25 * self.tol / gamma.size)
                )
            gamma, before = self.towards(gamma, best, before)
        return value, -0.5 * quadratics / best[group], best, weights

    def _certify(self, alpha, weights, simplex, quadratics, losses):
        """Objective and lower bound of the whole problem at one SVM."""
        norms = np.sqrt(quadratics)
        lengths = np.bincount(self.groups, weights * norms)
        objective = 0.5 * group_norm(lengths, self.s) ** 2 + losses
        largest = np.array([norms[members].max() for members in self.members])
        total, squared = float(alpha.sum()), group_norm(largest, dual_exponent(self.s)) ** 2
        scale = self.problem.C / float(alpha.max()) if total > 0.0 else 0.0
        if squared > 0.0:
            scale = min(scale, total / squared)
        lower = scale * total - 0.5 * scale**2 * squared
        self.measure(np.where(norms > 0.0, weights, 0.0), alpha, objective, lower, simplex=simplex.copy())

    def start(self):
        """Measure the first point."""
        self.value, self.slope, self.gamma, self.weights = yield from self.evaluate(
            np.exp(self.logs), self.gamma
        )

    def _moved(self, length, slope):
        """Logarithms after an entropic step."""
        logs = self.logs - length * slope
        for members in self.members:
            logs[members] -= np.logaddexp.reduce(logs[members])
        return logs

    def step(self):
        """One step of mirror descent."""
        slope, old, gap = self.slope.copy(), np.exp(self.logs), self.gap
        for members in self.members:  # a constant in a group moves nothing
            slope[members] -= slope[members].min()
        spread = float(slope.max())
        self.n_steps += 1
        if spread <= 0.0:
            length = 0.0
        elif self.eta is not None:
            length = self.eta * math.sqrt(2.0 * math.log(self.largest_group) / self.n_steps) / spread
        else:
            length = self.length or 1.0 / spread
        for trial in range(MOST_TRIALS):
            logs = self._moved(length, slope)
            new = np.exp(logs)
            found = yield from self.evaluate(new, self.gamma)
            divergence = float(new @ np.maximum(logs - self.logs, -700.0))
            promised = (
                self.value + float(self.slope @ (new - old)) + (divergence / length if length > 0.0 else 0.0)
            )
            if (
                self.eta is not None
                or length == 0.0
                or self.converged
                or found[0] <= promised + self.wanted()
                or trial == MOST_TRIALS - 1
            ):
                break
            length *= SHRINK
        self.logs, self.length = logs, GROW * length if length > 0.0 else None
        self.value, self.slope, self.gamma, self.weights = found
        if self.gap > 0.99 * gap:  # slow: let the inner values not be the reason
            self.idle += self.share <= LEAST_INNER_SHARE
            self.stalled = self.idle >= PATIENCE
            self.share = max(LEAST_INNER_SHARE, 0.5 * self.share)


def solve_vskl(
    problem, *, groups=None, s=np.inf, eta="auto", tol=1e-2, max_iter=500, callback=None, verbose=False
):
    r"""VSKL of every class: mirror descent on the weights within groups, SVMs in alternation with the weights of groups.

    Parameters
    ----------
    problem : SharedProblem
        Its `svm_tol` is set anew for every SVM.
    groups : None, "prefix" or array-like, shape (n_kernels,)
        See `resolve_groups`.
    s : float in [2, inf]
        Exponent of the norm across groups.
    eta : "auto" or float > 0
        "auto": steps grow and shrink by whether G keeps below its model (descent lemma for the entropy). A number: step t has the
        length :math:`\eta \sqrt{2 \ln n_{max} / t}` over the largest difference of gradient entries in a group, :math:`n_{max}`
        the kernels of the largest group: the schedule of mirror descent for a function that is not smooth.
    tol : float > 0
        A class stops when its certified gap is at most this share of its objective.
    max_iter : int
        Most rounds.
    callback : callable(result, step) or None
    verbose : bool

    Returns
    -------
    ClassesResult
        `extra` holds :math:`\lambda` as ``simplex``.

    Notes
    -----
    Every SVM certifies: its :math:`\alpha`, multiplied by the best number, gives a lower bound by the dual of the module's text, and its
    :math:`w_{jk} = d_{jk} \sum_i \alpha_i y_i \phi_{jk}(x_i)` an objective. So the gap holds whatever steps were taken and however
    exact G was.
    """
    check = check_exponent(s)
    if isinstance(eta, str):
        if eta != "auto":
            raise ValueError(f"eta must be 'auto' or a positive number, got {eta!r}")
        length = None
    else:
        length = check_positive("eta", eta)
    tol, max_iter = check_positive("tol", tol), check_count("max_iter", max_iter)
    numbered = resolve_groups(groups, problem.bank.names)
    machines = [MirrorMachine(problem, k, tol, numbered, check, length) for k in range(problem.n_problems)]
    return run_classes(problem, machines, max_iter, callback=callback, verbose=verbose, name="VSKL")


class VSKL(PerClassMKL):
    r"""Variable sparsity kernel learning: kernels in groups, the sparse choice within each group, all groups taking part.

    .. math:: \min_w \frac12 \Big\| \Big( \sum_k \|w_{jk}\| \Big)_j \Big\|_s^2
              + C \sum_i \big[1 - y_i \textstyle\sum_{jk} w_{jk} \cdot \phi_{jk}(x_i)\big]_+

    for each class, k running over the kernels of group j. With s infinite (the default) no group can be left out for another; one
    group is the :math:`\ell_1` MKL of `SimpleMKL` (without bias) for any s. Solved as :math:`\min_\lambda \max_{\alpha, \gamma}`, by
    mirror descent over one simplex for each group.

    Parameters
    ----------
    kernels : list of (name, kernel, columns), "precomputed" or None
        See `OM2`.
    groups : None, "prefix" or list, default None
        None puts all kernels into one group. "prefix" goes by the kernels' names, up to the first of ``_ - : / .`` or a space (with a
        warning where that puts every kernel into a group of its own: kernels given as matrices are named k0, k1, ...). A list has a
        label (int or str) for each kernel.
    s : float in [2, inf], default inf
        Exponent of the norm across groups; 2 puts no coupling between them.
    C : float > 0, default 1.0
        Of the SVMs (without bias).
    eta : "auto" or float > 0, default "auto"
        Step sizes, see `solve_vskl`.
    tol : float > 0, default 1e-2
        A class stops when its duality gap is at most this share of its objective.
    max_iter : int, default 500
        Most rounds; a round is one mirror descent step of every class.
    normalize, memory
        See `OM2`.
    callback : callable(estimator, step) or None
        Called after every round, with the best point of every class so far; the clock stops meanwhile. A true result ends the run.
    verbose : bool, default False

    Attributes
    ----------
    kernel_weights_ : ndarray, shape (n_classes, n_kernels)
        :math:`\lambda_{jk} / \gamma_j` of every class: with one group they sum to 1. 0 for skipped classes.
    simplex_weights_ : ndarray, shape (n_classes, n_kernels)
        :math:`\lambda`: they sum to 1 in every group. 0 for skipped classes.
    groups_ : ndarray of int, shape (n_kernels,)
        The group of each kernel.
    classes_, dual_coef_, support_, path_, history_, objectives_, dual_gaps_, objective_, dual_gap_, skipped_classes_, n_iter_, n_solved_, \
    n_updates_, converged_
        As of `GMKL`; `path_` holds the weights of every round, `kernel_weights_` those of the best point.

    Notes
    -----
    A value of G costs one SVM where there is one group or s = 2, else a few (SVM and :math:`\gamma` in alternation, each from the
    last), each with a read of the kernels to combine them, and one read of all kernels for all classes together.

    References
    ----------
    Saketha Nath, Dinesh, Raman, Bhattacharyya, Ben-Tal, Ramakrishnan, "On the algorithmics and applications of a mixed-norm based kernel
    learning formulation", NIPS 2009: :math:`\ell_\infty` across components and :math:`\ell_1` within, mirror descent over a product of
    simplices; Aflalo, Ben-Tal, Bhattacharyya, Saketha Nath, Raman, "Variable sparsity kernel learning", JMLR 12 (2011), gives it its
    name and :math:`\ell_s`, :math:`s \ge 2`. The formulation is as their abstracts state it; derivation, duals and constants are worked
    out here. Different: no bias; a certified gap ends the run; step sizes adapt themselves unless `eta` is a number.

    Examples
    --------
    >>> import numpy as np
    >>> from cuelearn.kernels import RBF
    >>> from cuelearn.mkl.vskl import VSKL
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat([-1, 1], 30)
    >>> X = rng.normal(size=(60, 4))
    >>> X[:, 0] += 2.0 * y
    >>> X[:, 2] += 1.0 * y
    >>> cues = [("shape_a", RBF(), [0]), ("shape_b", RBF(), [1]), ("colour_a", RBF(), [2]), ("colour_b", RBF(), [3])]
    >>> model = VSKL(cues, groups="prefix").fit(X, y)
    >>> model.groups_, bool(model.simplex_weights_[0, 0] > 0.9)  # the useless shape kernel is hardly used
    (array([0, 0, 1, 1]), True)
    >>> bool(np.bincount(model.groups_, model.kernel_weights_[0]).min() > 0.99)  # but both groups are
    True
    """

    def __init__(
        self,
        kernels=None,
        *,
        groups=None,
        s=np.inf,
        C=1.0,
        eta="auto",
        tol=1e-2,
        max_iter=500,
        normalize=True,
        memory=2e9,
        callback=None,
        verbose=False,
    ):
        self.kernels = kernels
        self.groups = groups
        self.s = s
        self.C = C
        self.eta = eta
        self.tol = tol
        self.max_iter = max_iter
        self.normalize = normalize
        self.memory = memory
        self.callback = callback
        self.verbose = verbose

    def _solve(self, problem, callback):
        names = problem.bank.names
        if (
            isinstance(self.groups, str)
            and len(names) > 1
            and resolve_groups(self.groups, names).max() + 1 == len(names)
        ):
            warnings.warn(
                f"groups='prefix' puts each of the {len(names)} kernels into a group of its own, since no two names ({names[0]}, {names[1]}"
                f"{', ...' if len(names) > 2 else ''}) begin alike; give groups as a list of one label per kernel",
                UserWarning,
                stacklevel=3,
            )
        return solve_vskl(
            problem,
            groups=self.groups,
            s=self.s,
            eta=self.eta,
            tol=self.tol,
            max_iter=self.max_iter,
            callback=callback,
            verbose=self.verbose,
        )

    def _take(self, result):
        super()._take(result)
        self.simplex_weights_ = self._rows(np.array([extra["simplex"] for extra in result.extra]))
        self.groups_ = resolve_groups(self.groups, self.bank_.names)

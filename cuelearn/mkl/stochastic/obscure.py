"""OBSCURE (thesis Algorithm 5, JMLR 1 and 2), and its batch stage alone, Pegasos-MKL (JMLR 5.3)."""

from __future__ import annotations

import math
from numbers import Integral
from typing import Any, Literal

from cuelearn.compiled import loop, njit
from cuelearn.core.estimator import POSITIVE, Number, StrOptions, parameters
from cuelearn.core.formulas import group_norm
from cuelearn.expect import expect
from cuelearn.mkl.base import BatchMKL, documented
from cuelearn.mkl.optimum.losses import add_response, output_scores, respond
from cuelearn.mkl.optimum.problem import MKLProblem, Result
from cuelearn.mkl.stochastic.training import Training, add_update, predict, project, refresh_link, shrink

#: Of the parameters of both stages.
CONSTRAINTS = {
    "n_epochs_online": [Number(Integral, 0, 2**31 - 1, closed="both")],
    "n_epochs": [Number(Integral, 0, 2**31 - 1, closed="both")],
    "eta": [*POSITIVE, StrOptions({"auto"})],
}


@njit(cache=True)
def proximal_strength(strength, t, regularization, q, dual_norm, gradient_norm, radius):
    """Next :math:`s_t`, thesis Algorithm 5 lines 6 and 7; 0 for infinite `radius` R, as in Pegasos-MKL."""
    d = regularization * t + strength
    bound = (regularization / q * dual_norm + gradient_norm) / radius
    return strength + 0.5 * (math.sqrt(d * d + q * bound * bound) - d)


@loop
def visit_obscure(order, start, mistakes, run, online, parameter):
    """A stage of thesis Algorithm 5, as in `visit_om2`. `parameter` is the online step size (equation 4.6) or
    R."""
    q = run.setting.q
    regularization = run.setting.regularization
    now = run.dual.now
    for position in range(start, order.shape[0]):
        i = order[position]
        rival, margin = predict(i, now.scale / q, run)
        if rival < 0:
            return position
        mistakes[position] = margin <= 0.0
        now.step += 1.0
        step_size = parameter
        if not online:
            cost = run.samples.cost[i] if margin < 1.0 else 0.0
            gradient_norm = cost * math.sqrt(run.samples.gradient_norm_sq[i])
            dual_norm = now.scale * now.norm
            now.strength = proximal_strength(
                now.strength, now.step, regularization, q, dual_norm, gradient_norm, parameter
            )
            d = regularization * now.step + now.strength
            shrink(max(0.0, 1.0 - regularization / d), run)
            step_size = q / d / now.scale
        if margin < 1.0:
            add_update(i, rival, step_size * run.samples.cost[i], run)
            refresh_link(0.0, run)
        if not online:  # line 10, also without loss: the start may lie outside a capped R
            project(q * parameter, run.dual)
    return order.shape[0]


@loop
def visit_obscure_loss(order, start, mistakes, run, loss, response, online, parameter):
    """For any loss, with implicit steps, see `cuelearn.mkl.optimum.losses`."""
    q = run.setting.q
    regularization = run.setting.regularization
    now = run.dual.now
    for position in range(start, order.shape[0]):
        i = order[position]
        if run.rows.place[i] < 0:
            return position
        mistakes[position] = output_scores(i, now.scale / q, run)
        now.step += 1.0
        step_size = parameter
        if not online:
            gradient_norm = respond(i, 0.0, loss, response, run)
            dual_norm = now.scale * now.norm
            now.strength = proximal_strength(
                now.strength, now.step, regularization, q, dual_norm, gradient_norm, parameter
            )
            d = regularization * now.step + now.strength
            shrink(max(0.0, 1.0 - regularization / d), run)
            step_size = q / d
        if respond(i, step_size * (q - 1.0) / q, loss, response, run) > 0.0:
            add_response(i, step_size / now.scale * run.samples.cost[i], response, run)
            refresh_link(0.0, run)
        if not online:
            project(q * parameter, run.dual)
    return order.shape[0]


def refuse_alpha(problem):
    if problem.alpha != 0.0:
        raise ValueError(f"alpha must be 0, got {problem.alpha!r}; solve_ufo takes the (2,1) norm")


def solve_obscure(
    problem: MKLProblem,
    *,
    n_epochs_online: int = 5,
    n_epochs: int = 50,
    eta: float | Literal["auto"] = 0.5,
    radius: str | float = "capped",
    name: str = "OBSCURE",
    **options: Any,
) -> Result:
    r"""Run both stages of OBSCURE on a problem with alpha = 0; a `Result`.

    Parameters
    ----------
    problem : MKLProblem
    n_epochs_online, n_epochs, eta
        As in `OBSCURE`; the online stage stops after an epoch without loss.
    radius : {"capped", "online"} or float
        Bound R on the optimum's norm. "online" is :math:`\sqrt{\|\bar w_O\|_{2,p}^2 + \frac{2}{\lambda
        n}\sum_i \ell_i(\bar w_O)}`; "capped" is at most :math:`\sqrt{2 P(0)/\lambda}`, also a bound; the
        objective at 0, P(0), is 1 for the hinge loss.
    name, **options
        Of `Training`: tol, finish, measure, rng, shuffle, sampling, callback, verbose, scores, certify.

    Notes
    -----
    `extra` of the result holds `radius`, the R used, `radius_online`, the uncapped one, and `eta`. Stage 2
    counts `t` from 1 again; JMLR Algorithm 3 omits a `t` that the thesis has.

    eta "auto" is :math:`F^{-2/q}`, the rule of the authors' library. For kernels with diagonals of at most 1,
    gradients of a loss have norms of at most L with :math:`L^2 = 2F^{2/q}`, so :math:`\eta L^2 = 2` for any F
    and p: theorem 4.3 then bounds the updates by :math:`2qL^2\|\bar u\|^2`, and R by :math:`4\|\bar u\|`, for
    any separator u.

    Examples
    --------
    >>> import numpy as np
    >>> from cuelearn.kernels import KernelBank
    >>> from cuelearn.mkl import MKLProblem, solve_obscure
    >>> problem = MKLProblem(KernelBank.from_stack(np.eye(4)), [0, 0, 1, 1], 2, C=10)
    >>> result = solve_obscure(problem, tol=0.01, finish=True)
    >>> bool(result.dual_gap <= 0.01 * result.objective)
    True
    """
    refuse_alpha(problem)
    training = Training(problem, name=name, **options)
    n_epochs_online = expect("n_epochs_online", n_epochs_online, kind="whole", low=0)
    n_epochs = expect("n_epochs", n_epochs, kind="whole", low=0)
    eta = expect("eta", eta, above=0, words=("auto",))
    if eta == "auto":
        eta = problem.bank.n_kernels ** (-2.0 / problem.q)
    visit = problem.visits(visit_obscure, visit_obscure_loss)
    if n_epochs_online:
        stage = {"n_epochs": n_epochs_online, "until_no_loss": True, "certify": False}
        training.run_stage("online", *visit, True, eta, **stage)
    point = training.stream.point(scores=True)
    loss = problem.mean_loss(point.scores)
    norm = group_norm(point.norms, problem.p)
    online = math.sqrt(norm**2 + 2.0 * loss / problem.regularization)
    if radius == "capped":
        used = min(online, math.sqrt(2.0 * problem.mean_loss_at_zero / problem.regularization))
    elif radius == "online":
        used = online
    else:
        used = expect("radius", radius, above=0, finite=False, words=("capped", "online"))
    training.extra.update(radius=used, radius_online=online, eta=eta)
    if n_epochs and used > 0.0 and not training.run.stopped:
        training.run_stage("batch", *visit, False, used, n_epochs=n_epochs)
    return training.finish(certify=n_epochs > 0)


@documented
@parameters
class OBSCURE(BatchMKL):
    r"""OBSCURE, batch multi-kernel learning with a (2,p) group norm.

    .. math:: \min_{\bar w} \frac\lambda2 \|\bar w\|_{2,p}^2 + \frac1n\sum_i \ell(\bar w; x_i, y_i),
        \qquad \lambda = \frac1{Cn}

    An online stage (OM-2's update, step size `eta`) finds the region of the optimum and a bound R on its
    norm; the batch stage is stochastic proximal projected subgradient descent with steps that adapt to R.

    Parameters
    ----------
    $kernels $p $C $loss $class_weight
    n_epochs_online : int >= 0, default 5
        Maximum epochs of the online stage, which stops after one without loss. The authors' experiments run
        until then: ``n_epochs_online=100, eta="auto"``, 0.8 to 1.7 times the time of a default fit. At large
        C a truncated stage gives a far too large R, and the batch stage loses the start.
    n_epochs : int >= 0, default 50
        Epochs of the batch stage.
    eta : float > 0 or "auto", default 0.5
        Step size of the online stage; "auto": :math:`F^{-2/q}` for F kernels.
    $tol $finish $run

    Attributes
    ----------
    $classes_ $of_run_ $online_errors_ $visits_
    radius_ : float
        R as used; `radius_online_` before the cap.

    See Also
    --------
    solve_obscure : The solver, with other bounds R, visiting orders, and the hinge loss.
    UFOMKL : The same problem, and a sparser one, without an online stage.

    Notes
    -----
    Cost per visit as for OM2; visits without loss only rescale, lazily. The rate is :math:`O(q \log T /
    (\lambda T))` or :math:`O(R\sqrt{q \log T / T})`, whichever is smaller: at large C many epochs end far
    above the optimum. By default dual ascent replaces them, see `finish`.

    References
    ----------
    Thesis Algorithm 5, equation 4.6, theorems 4.2, 4.3. Orabona, Jie, Caputo, JMLR 13 (2012), Algorithms 1
    and 2.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from cuelearn.mkl import OBSCURE
    >>> X, y = load_iris(return_X_y=True)
    >>> cues = [("sepal", "rbf", [0, 1]), ("petal", "rbf", [2, 3])]
    >>> model = OBSCURE(kernels=cues, C=10, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.9
    True
    """

    _parameter_constraints = CONSTRAINTS

    n_epochs_online: int = 5
    eta: float | Literal["auto"] = 0.5

    def _solve(self, problem, options):
        options |= {"n_epochs_online": self.n_epochs_online, "n_epochs": self.n_epochs, "eta": self.eta}
        result = solve_obscure(problem, **options)
        self.radius_: float = result.extra["radius"]
        self.radius_online_: float = result.extra["radius_online"]
        return result


def solve_pegasos_mkl(problem: MKLProblem, *, n_epochs: int = 50, **options: Any) -> Result:
    """Run Pegasos-MKL, OBSCURE's batch stage from 0 without a norm bound; a `Result`.

    `problem` is an `MKLProblem` with alpha = 0; `n_epochs` >= 1; `options` as in `solve_obscure`.

    Examples
    --------
    >>> import numpy as np
    >>> from cuelearn.kernels import KernelBank
    >>> from cuelearn.mkl import MKLProblem, solve_pegasos_mkl
    >>> problem = MKLProblem(KernelBank.from_stack(np.eye(4)), [0, 0, 1, 1], 2, C=10)
    >>> solve_pegasos_mkl(problem, tol=0.01, finish=True).converged
    True
    """
    refuse_alpha(problem)
    training = Training(problem, name="Pegasos-MKL", **options)
    visit = problem.visits(visit_obscure, visit_obscure_loss)
    n_epochs = expect("n_epochs", n_epochs, kind="whole", low=1)
    training.run_stage("batch", *visit, False, math.inf, n_epochs=n_epochs)
    return training.finish()


@documented
@parameters
class PegasosMKL(BatchMKL):
    r"""Pegasos extended to MKL: OBSCURE's problem, step size :math:`q/(\lambda t)`, no online stage.

    Parameters
    ----------
    $kernels $p $C $loss $class_weight $n_epochs $tol $finish $run

    Attributes
    ----------
    $classes_ $of_run_ $online_errors_ $visits_

    References
    ----------
    Orabona, Jie, Caputo, JMLR 13 (2012), section 5.3; Shalev-Shwartz, Singer, Srebro (2007).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from cuelearn.mkl import PegasosMKL
    >>> X, y = load_iris(return_X_y=True)
    >>> PegasosMKL(random_state=0).fit(X, y).score(X, y) > 0.9
    True
    """

    def _solve(self, problem, options):
        return solve_pegasos_mkl(problem, n_epochs=self.n_epochs, **options)

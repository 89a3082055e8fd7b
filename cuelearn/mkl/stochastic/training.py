"""Results of solvers, epochs of stochastic methods."""

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from cuelearn.core.run import Run
from cuelearn.expect import expect
from cuelearn.mkl.optimum.dual import finish_dual
from cuelearn.mkl.optimum.problem import Result
from cuelearn.mkl.stochastic.stream import Stream
from cuelearn.warn import warn_user

__all__ = ["Training", "draw_order"]

SMALLEST = np.finfo(float).tiny


def draw_order(n_samples, rng, *, shuffle=True, sampling="permutation"):
    """Visits of one epoch: a permutation, the given order, or independent draws ("iid")."""
    if sampling == "iid":
        return rng.integers(n_samples, size=n_samples)
    if sampling != "permutation":
        raise ValueError(f"sampling must be 'permutation' or 'iid', got {sampling!r}")
    if shuffle:
        return rng.permutation(n_samples)
    return np.arange(n_samples)


class Training:
    """One stochastic run: stages of epochs of a compiled loop, with history, callback and stopping rule.

    `measure`: objective and gap are computed, with the clock stopped, after "every" epoch; "geometric", at
    epochs 1, 2, 3, 4, 6, 9, ... and the last of a stage; at the "end"; "auto" is "geometric" if `tol` is set,
    else "end". Without `shuffle` the first epoch keeps the given order; `sampling="iid"` draws visits
    independently, as the theorems assume. `callback(training, step)` is called after every epoch. Without
    `certify` the end point is not measured. With `finish`, `finish_dual` takes over from the first epoch that
    `certify` follows and a point precedes, if the samples with a coefficient fit its memory, else after the
    last epoch; with `measure` "auto" its certificate is the first. `route` goes to `Stream`.
    """

    def __init__(
        self,
        problem,
        *,
        tol=None,
        measure="auto",
        rng=None,
        shuffle=True,
        sampling="permutation",
        callback=None,
        verbose=False,
        certify=True,
        finish=False,
        name="",
        **route,
    ):
        if measure not in ("auto", "geometric", "every", "end"):
            raise ValueError(f"measure must be 'auto', 'geometric', 'every' or 'end', got {measure!r}")
        self.problem = problem
        self.name = name
        self.certify = certify
        self.certifiable = not problem.bank.indefinite
        self.ascends = finish and tol is not None and self.certifiable
        self.ascent = None
        self.waits = self.ascends and measure == "auto"  # for the ascent's certificate
        self.tol = None
        if tol is not None:
            self.tol = expect("tol", tol, low=0)
        self.measure = ("end" if tol is None else "geometric") if measure == "auto" else measure
        self.rng = rng
        if rng is None:
            self.rng = np.random.default_rng()
        self.shuffle = shuffle
        self.sampling = sampling
        self.run = Run(callback, verbose=verbose)
        self.stream = Stream(problem, **route)
        self.step = 0
        self.epoch = 0
        self.visits = []
        self.errors = []
        self.extra = {}
        self.converged = tol is None and self.certifiable
        self._bound = 0.0
        self._measured_at = -1

    def run_stage(
        self, stage, loop, *parameters, n_epochs, averages=False, until_no_loss=False, certify=True
    ):
        """Run up to `n_epochs` epochs; `until_no_loss` stops after one without update (thesis theorem 4.3);
        without `certify` there is no dual point."""
        stream = self.stream
        stream.start_stage(loop, *parameters, averages=averages)
        n = self.problem.bank.n_samples
        next_measure = 1
        visited = stream.visited
        for epoch in self.run.rounds(n_epochs, f"{self.name} {stage}".strip(), unit="epoch"):
            if certify and self.step > 0 and self.ascends and self.ascent is None:
                self.waits = False
                self.ascent = self._ascend()
                if self.ascent.fits:
                    break
            before = stream.n_updates
            shuffle = self.shuffle or self.epoch > 0
            order = visited[draw_order(visited.size, self.rng, shuffle=shuffle, sampling=self.sampling)]
            mistakes = stream.visit(order)
            self.run.pause()
            self.epoch += 1
            self.step += mistakes.size
            self.errors.append(mistakes)
            self.visits.append(order.astype(np.min_scalar_type(n)))
            ends = epoch == n_epochs or (until_no_loss and stream.n_updates == before)
            scheduled = self.measure == "every"
            if self.measure == "geometric" and (epoch >= next_measure or ends):
                scheduled = not self.waits
                next_measure = max(next_measure + 1, int(1.5 * epoch))
            value, gap = self.measure_now(certify) if scheduled else (np.nan, np.nan)
            row = {"stage": stage, "epoch": self.epoch, "online_error": float(mistakes.mean())}
            row |= {"n_updates": stream.n_updates, "n_support": stream.n_support}
            stopped = self.run.end(self.step, lambda: self, objective=value, dual_gap=gap, **row)
            if ends or stopped or (certify and self.tol is not None and self.converged):
                break

    def measure_now(self, certify=True):
        """Objective of the current point and its distance from the best bound."""
        value = self.problem.primal(self.stream.point(scores=True))
        if certify:
            self._bound = max(self._bound, self.problem.dual_bound(*self.stream.dual_point())[0])
        if self.certifiable:
            gap = value - self._bound
        else:
            gap = np.nan
        self._measured_at = self.step
        if self.tol is not None:
            self.converged = gap <= self.tol * max(value, SMALLEST)
        return value, gap

    def finish(self, *, certify=True):
        """Measure the end point and ascend if required; the `Result`."""
        run = self.run
        run.pause()
        last = {}
        if run.rows:
            last = run.rows[-1]
        ascents = []
        if self.ascent is not None:
            ascents = [self.ascent]
        if ascents and self.ascent.fits:
            value = np.inf
            gap = np.inf
        elif last and self._measured_at == self.step:
            value = last["objective"]
            gap = last["dual_gap"]
        elif not self.certify:
            value = np.nan
            gap = np.nan
        else:
            value, gap = last["objective"], last["dual_gap"] = self.measure_now(certify)
        stream = self.stream
        self.extra["stopped"] = run.stopped
        self.extra["visits"] = np.concatenate([np.zeros(0, dtype=np.uint8), *self.visits])
        coef, weights, *_ = stream.point()
        norms_sq = np.maximum(0.0, stream.dual.norms_sq * stream.scale**2)
        effort = f"{self.epoch} epochs"
        if self.ascends and not self.converged and not run.stopped:
            if not ascents or not self.ascent.fits:
                ascents.append(self._ascend())
            ascent = min(ascents, key=lambda end: end.objective)
            bound = max(self._bound, *(end.objective - end.gap for end in ascents))
            if ascent.objective < value:  # not if the samples with a coefficient exceeded the memory
                value = ascent.objective
                norms_sq = ascent.norms_sq
                coef = ascent.dual_coef
                weights = ascent.group_weights
            gap = max(0.0, value - bound)
            self.converged = gap <= self.tol * max(value, SMALLEST)
            effort += f" and {ascent.n_rounds} rounds of dual ascent"
        if self.tol is not None and self.certifiable and not self.converged:
            raised = "tol, or set finish=True"
            if self.ascends:
                raised = "tol"
            if self.ascends and not self.problem.bank.resident:
                raised = "tol or memory"
            warn_user(
                f"{self.name or 'the solver'} did not reach tol={self.tol:g}: the relative duality gap is "
                f"{gap / max(value, SMALLEST):.2g} after {effort}; raise n_epochs or {raised}",
                ConvergenceWarning,
            )
        return Result(
            coef,
            weights,
            history=run.history(),
            objective=value,
            dual_gap=gap,
            n_iter=self.epoch,
            n_updates=stream.n_updates,
            converged=self.converged,
            online_errors=np.concatenate([np.zeros(0, dtype=np.bool_), *self.errors]),
            block_norms_sq=norms_sq,
            extra=self.extra,
        )

    def _ascend(self):
        """Dual ascent to the tolerance; each pass over all samples is a history row."""
        run = self.run
        run.go()

        def record(number, objective, gap):
            note = f"relative gap {gap / max(objective, SMALLEST):.1e}"
            run.add(note=note, stage="dual", epoch=number, objective=objective, dual_gap=gap)

        with run.under_bar(f"{self.name} dual".strip(), unit="look"):
            B, norms_sq = self.stream.dual_point()
            return finish_dual(self.problem, B, tol=self.tol, norms_sq=norms_sq, record=record)

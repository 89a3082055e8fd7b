"""The epoch loop around a `Stream`: history, callback, certificate, stopping.

Every stochastic solver of this package is a few stages of this loop. A stage visits whole epochs under one rule; after each epoch it
writes a row of the history, calls the callback, and at chosen epochs measures objective and duality gap, with the clock stopped.
"""

import sys
import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from tqdm.auto import tqdm

from cuelearn.core.checks import check_non_negative
from cuelearn.mkl.stream import History, Result, Stream, draw_order

__all__ = ["Training"]

# a progress bar appears on runs that take longer than this many seconds
BAR_AFTER = 2.0


class Training:
    """One solver run: a stream of visits with history, callback and stopping rule.

    Parameters
    ----------
    problem : MKLProblem
    tol : float or None
        Stop once the duality gap is at most `tol` times the objective; None runs all epochs.
    measure : {"auto", "geometric", "every", "end"}
        When objective and gap are measured: "every" epoch; "geometric" at epochs 1, 2, 3, 4, 6, 9, ... (each half as long again)
        and the last of a stage; at the "end" only; "auto" is "geometric" if `tol` is set, else "end". The clock stops meanwhile.
    rng : numpy.random.Generator
    shuffle : bool
        Permute the first epoch too; False keeps its given order (a stream). Later epochs always draw a fresh permutation.
    sampling : {"permutation", "iid"}
        See `draw_order`.
    callback : callable(training, step) or None
    verbose : bool or int
        Show a progress bar once the run takes more than two seconds.
    scores : str
        Route, see `Stream`, as `long_run`.
    certify : bool
        False leaves objective and gap of the end point unmeasured (NaN) where they were not scheduled: for kernels computed on
        demand the certificate reads every row once more.
    stream : callable
        Makes the state of the run of a problem: `Stream`, or one that knows more kinds of blocks.
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
        scores="auto",
        name="",
        long_run=True,
        certify=True,
        stream=Stream,
    ):
        if measure not in ("auto", "geometric", "every", "end"):
            raise ValueError(f"measure must be 'auto', 'geometric', 'every' or 'end', got {measure!r}")
        if tol is not None:
            tol = check_non_negative("tol", tol)
        if callback is not None and not callable(callback):
            raise TypeError(f"callback must be callable, got {type(callback).__name__}")
        self.problem = problem
        self.tol = tol
        self.measure = ("end" if tol is None else "geometric") if measure == "auto" else measure
        self.rng = np.random.default_rng() if rng is None else rng
        self.shuffle, self.sampling = shuffle, sampling
        self.callback = callback
        self.verbose = verbose
        self.name = name
        self.certify = certify
        self.history = History()
        self.stream = stream(problem, scores=scores, long_run=long_run)
        self.step = 0
        self.epoch = 0
        self.errors = []
        self.converged = tol is None
        self.stopped = False  # by the callback
        self.extra = {}
        self._bound = 0.0
        self._measured_at = -1

    def run_stage(self, stage, rule, n_epochs, *, until_no_loss=False, certify=True, **rule_params):
        """Run up to `n_epochs` epochs under one rule.

        Parameters
        ----------
        stage : str
            Name in the history's column `stage`.
        rule : int
            See `rules.py`.
        n_epochs : int
        until_no_loss : bool
            End the stage after an epoch without an update: the online stage has then converged (thesis theorem 4.3).
        certify : bool
            Whether this stage's coefficients give a dual point; False measures the objective only.
        **rule_params
            `eta`, `radius`.

        Returns
        -------
        bool
            Whether the tolerance was reached.
        """
        stream, history = self.stream, self.history
        stream.start_stage(rule, **rule_params)
        bar = tqdm(
            total=n_epochs,
            desc=f"{self.name} {stage}".strip(),
            unit="epoch",
            delay=BAR_AFTER,
            leave=False,
            disable=not self.verbose,
            file=sys.stderr,
        )
        next_measure = 1
        with bar:
            for epoch in range(1, n_epochs + 1):
                before = stream.n_updates
                mistakes = stream.visit(
                    draw_order(
                        self.problem.bank.n_samples,
                        self.rng,
                        shuffle=self.shuffle or self.epoch > 0,
                        sampling=self.sampling,
                    )
                )
                history.pause()
                self.epoch += 1
                self.step += mistakes.size
                self.errors.append(mistakes)
                last = epoch == n_epochs
                quiet = until_no_loss and stream.n_updates == before
                ends = last or quiet
                scheduled = self.measure == "every" or (
                    self.measure == "geometric" and (epoch >= next_measure or ends)
                )
                if scheduled:
                    next_measure = max(next_measure + 1, int(1.5 * epoch))
                self._record(stage, mistakes, scheduled, certify)
                bar.update()
                self.stopped = self._call_back()
                history.go()
                if quiet or self.stopped or (certify and self.tol is not None and self.converged) or last:
                    break
        return certify and self.tol is not None and self.converged

    def _record(self, stage, mistakes, scheduled, certify):
        stream = self.stream
        row = {
            "stage": stage,
            "step": self.step,
            "epoch": self.epoch,
            "seconds": self.history.seconds,
            "n_updates": stream.n_updates,
            "n_support": stream.n_support,
            "online_error": float(mistakes.mean()) if mistakes.size else np.nan,
        }
        if scheduled:
            row["objective"], row["dual_gap"] = self.measure_now(certify)
        self.history.add(**row)

    def measure_now(self, certify=True):
        """Objective of the present point and its distance from the best lower bound so far."""
        value, _, _ = self.stream.objective()
        if certify:
            self._bound = max(self._bound, self.stream.bound())
        gap = value - self._bound
        self._measured_at = self.step
        if self.tol is not None:
            self.converged = gap <= self.tol * max(value, np.finfo(float).tiny)
        return value, gap

    def _call_back(self):
        return bool(self.callback(self, self.step)) if self.callback is not None else False

    def finish(self, *, certify=True):
        """Measure the end point, warn where the tolerance was missed, and return the `Result`."""
        self.history.pause()
        coef, weights = self.stream.point()
        last = self.history.rows[-1] if self.history.rows else None
        if last is not None and self._measured_at == self.step:
            value, gap = last["objective"], last["dual_gap"]
        elif not self.certify:
            value, gap = np.nan, np.nan
        else:
            value, gap = self.measure_now(certify)
            if last is not None:
                last["objective"], last["dual_gap"] = value, gap
        if self.tol is not None and not self.converged:
            warnings.warn(
                f"{self.name or 'the solver'} did not reach tol={self.tol:g}: the relative duality gap is "
                f"{gap / max(value, np.finfo(float).tiny):.2g} after {self.epoch} epochs; raise n_epochs or tol",
                ConvergenceWarning,
                stacklevel=3,
            )
        self.extra["stopped"] = self.stopped
        errors = np.concatenate(self.errors) if self.errors else np.zeros(0, dtype=np.bool_)
        return Result(
            coef,
            weights,
            self.history.frame(),
            value,
            gap,
            self.epoch,
            self.stream.n_updates,
            self.converged,
            errors,
            np.maximum(0.0, self.stream.norms_sq * self.stream.scale**2),
            self.extra,
        )

"""What every solver returns and records, and the epoch loop of the stochastic ones.

A stochastic solver is a few stages of `Training.run_stage`. A stage visits whole epochs by one compiled loop;
after each epoch it writes a row of the history, calls the callback, and at chosen epochs measures objective
and duality gap, with the clock stopped.
"""

import time
import warnings
from typing import NamedTuple

import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning

from cuelearn.core.checks import check_non_negative
from cuelearn.core.progress import progress
from cuelearn.mkl.stream import Stream

__all__ = ["History", "Result", "Training", "draw_order"]

SMALLEST = np.finfo(float).tiny


class Result(NamedTuple):
    """What every MKL solver returns.

    Attributes
    ----------
    dual_coef : ndarray, shape (n_samples, n_classes)
        Coefficients A shared by all kernels.
    kernel_weights : ndarray, shape (n_kernels,)
        Decision values are ``sum_j kernel_weights[j] * K_j @ dual_coef``. With scores of priors the weights
        of all blocks.
    history : DataFrame
        One row per epoch: step, epoch, seconds, n_updates, n_support, online_error, objective, dual_gap.
    objective, dual_gap : float
        Of the returned point; ``objective - dual_gap`` never exceeds the optimum.
    n_iter : int
        Epochs run.
    n_updates : int
    converged : bool
        Whether the relative gap fell to the tolerance (True where no tolerance was set).
    online_errors : ndarray of bool
        The 0/1 sequence of mistakes of the online visits.
    block_norms_sq : ndarray, shape (n_kernels,)
        Squared norms of the dual blocks, from which an online run goes on.
    extra : dict
        What is particular to one algorithm; of those that run a `Training`, `stopped`: whether the callback
        ended it.
    """

    dual_coef: np.ndarray
    kernel_weights: np.ndarray
    history: pd.DataFrame
    objective: float
    dual_gap: float
    n_iter: int
    n_updates: int
    converged: bool
    online_errors: np.ndarray
    block_norms_sq: np.ndarray
    extra: dict


class History:
    """Rows of the training history; the clock stops while the history itself is measured."""

    COLUMNS = "stage step epoch seconds n_updates n_support online_error objective dual_gap".split()

    def __init__(self):
        self.rows = []
        self._spent = 0.0
        self._started = time.perf_counter()

    def pause(self):
        """Stop the clock."""
        self._spent += time.perf_counter() - self._started

    def go(self):
        """Let the clock run on."""
        self._started = time.perf_counter()

    @property
    def seconds(self):
        """Seconds of training so far (while paused)."""
        return self._spent

    def add(self, **values):
        """Append a row; columns not given are NaN."""
        self.rows.append({**dict.fromkeys(self.COLUMNS, np.nan), **values})

    def frame(self):
        """The history as a DataFrame."""
        return pd.DataFrame(self.rows, columns=self.COLUMNS)


def draw_order(n_samples, rng, *, shuffle=True, sampling="permutation"):
    """Order of one epoch's visits: a fresh permutation, the given order, or ("iid") independent draws, as
    the theorems assume.

    Parameters
    ----------
    n_samples : int
    rng : numpy.random.Generator
    shuffle : bool
    sampling : {"permutation", "iid"}

    Returns
    -------
    ndarray of int, shape (n_samples,)
    """
    if sampling == "iid":
        return rng.integers(n_samples, size=n_samples)
    if sampling != "permutation":
        raise ValueError(f"sampling must be 'permutation' or 'iid', got {sampling!r}")
    return rng.permutation(n_samples) if shuffle else np.arange(n_samples)


class Training:
    """One solver run: a stream of visits with history, callback and stopping rule.

    Parameters
    ----------
    problem : MKLProblem
    tol : float or None
        Stop once the duality gap is at most `tol` times the objective; None runs all epochs.
    measure : {"auto", "geometric", "every", "end"}
        When objective and gap are measured: "every" epoch; "geometric" at epochs 1, 2, 3, 4, 6, 9, ... (each
        half as long again) and the last of a stage; at the "end" only; "auto" is "geometric" if `tol` is set,
        else "end". The clock stops meanwhile.
    rng : numpy.random.Generator
    shuffle : bool
        Permute the first epoch too; False keeps its given order (a stream). Later epochs always draw a fresh
        permutation.
    sampling : {"permutation", "iid"}
        See `draw_order`.
    callback : callable(training, step) or None
        Called after every epoch; a true return value ends the run. The present point is
        ``training.stream.point()``.
    verbose : bool or int
        Show a progress bar once the run takes more than two seconds.
    scores : {"auto", "recompute", "maintain"}
        Route, see `Stream`, as `long_run`.
    certify : bool
        False leaves objective and gap of the end point unmeasured (NaN) where they were not scheduled: for
        kernels computed on demand the certificate reads every row once more.
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
    ):
        if measure not in ("auto", "geometric", "every", "end"):
            raise ValueError(f"measure must be 'auto', 'geometric', 'every' or 'end', got {measure!r}")
        if callback is not None and not callable(callback):
            raise TypeError(f"callback must be callable, got {type(callback).__name__}")
        self.problem = problem
        self.tol = None if tol is None else check_non_negative("tol", tol)
        self.measure = ("end" if tol is None else "geometric") if measure == "auto" else measure
        self.rng = np.random.default_rng() if rng is None else rng
        self.shuffle, self.sampling = shuffle, sampling
        self.callback, self.verbose, self.name = callback, verbose, name
        self.certify = certify
        self.history = History()
        self.stream = Stream(problem, scores=scores, long_run=long_run)
        self.step = self.epoch = 0
        self.errors = []
        self.converged = tol is None
        self.stopped = False  # by the callback
        self.extra = {}
        self._bound = 0.0
        self._measured_at = -1

    def run_stage(
        self, stage, loop, *parameters, n_epochs, averages=False, until_no_loss=False, certify=True
    ):
        """Run up to `n_epochs` epochs of a compiled loop.

        Parameters
        ----------
        stage : str
            Name in the history's column `stage`.
        loop, *parameters, averages
            See `Stream.start_stage`.
        n_epochs : int
        until_no_loss : bool
            End the stage after an epoch without an update: the online stage has then converged (thesis
            theorem 4.3).
        certify : bool
            Whether this stage's coefficients give a dual point; False measures the objective only.
        """
        stream, history = self.stream, self.history
        stream.start_stage(loop, *parameters, averages=averages)
        next_measure = 1
        bar = progress(
            name=f"{self.name} {stage}".strip(), total=n_epochs, unit="epoch", verbose=self.verbose
        )
        with bar:
            for epoch in range(1, n_epochs + 1):
                before = stream.n_updates
                shuffle = self.shuffle or self.epoch > 0
                order = draw_order(
                    self.problem.bank.n_samples, self.rng, shuffle=shuffle, sampling=self.sampling
                )
                mistakes = stream.visit(order)
                history.pause()
                self.epoch += 1
                self.step += mistakes.size
                self.errors.append(mistakes)
                ends = epoch == n_epochs or (until_no_loss and stream.n_updates == before)
                scheduled = self.measure == "every"
                if self.measure == "geometric" and (epoch >= next_measure or ends):
                    scheduled, next_measure = True, max(next_measure + 1, int(1.5 * epoch))
                self._record(stage, mistakes, scheduled, certify)
                bar.update()
                self.stopped = self.callback is not None and bool(self.callback(self, self.step))
                history.go()
                if ends or self.stopped or (certify and self.tol is not None and self.converged):
                    break

    def _record(self, stage, mistakes, scheduled, certify):
        measured = self.measure_now(certify) if scheduled else (np.nan, np.nan)
        self.history.add(
            stage=stage,
            step=self.step,
            epoch=self.epoch,
            seconds=self.history.seconds,
            n_updates=self.stream.n_updates,
            n_support=self.stream.n_support,
            online_error=float(mistakes.mean()),
            objective=measured[0],
            dual_gap=measured[1],
        )

    def measure_now(self, certify=True):
        """Objective of the present point and its distance from the best lower bound so far."""
        value, _, _ = self.stream.objective()
        if certify:
            self._bound = max(self._bound, self.problem.dual_bound(*self.stream.dual_point())[0])
        gap = value - self._bound
        self._measured_at = self.step
        if self.tol is not None:
            self.converged = gap <= self.tol * max(value, SMALLEST)
        return value, gap

    def finish(self, *, certify=True):
        """Measure the end point, warn where the tolerance was missed, and return the `Result`."""
        self.history.pause()
        last = self.history.rows[-1] if self.history.rows else {}
        if last and self._measured_at == self.step:
            value, gap = last["objective"], last["dual_gap"]
        elif not self.certify:
            value, gap = np.nan, np.nan
        else:
            value, gap = last["objective"], last["dual_gap"] = self.measure_now(certify)
        if self.tol is not None and not self.converged:
            warnings.warn(
                f"{self.name or 'the solver'} did not reach tol={self.tol:g}: the relative duality gap is "
                f"{gap / max(value, SMALLEST):.2g} after {self.epoch} epochs; raise n_epochs or tol",
                ConvergenceWarning,
                stacklevel=3,
            )
        self.extra["stopped"] = self.stopped
        stream = self.stream
        return Result(
            *stream.point(),
            history=self.history.frame(),
            objective=value,
            dual_gap=gap,
            n_iter=self.epoch,
            n_updates=stream.n_updates,
            converged=self.converged,
            online_errors=np.concatenate([np.zeros(0, dtype=np.bool_), *self.errors]),
            block_norms_sq=np.maximum(0.0, stream.dual.norms_sq * stream.scale**2),
            extra=self.extra,
        )

"""Plots of fitted models, in scikit-learn's Display style."""

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from cuelearn.core.optional import require
from cuelearn.expect import expect_word

__all__ = ["ConvergenceDisplay", "KernelWeightsDisplay", "kernel_summary"]


def kernel_summary(names, weights, norms, support, classes=None):
    """A model's `summary`; `weights` and `norms` have one row, or one per class."""
    n_rows, n_kernels = weights.shape
    total = np.abs(weights).sum(axis=1, keepdims=True)
    columns = {
        "name": np.tile(np.array(names, dtype=object), n_rows),
        "weight": weights.ravel(),
        "share": (np.abs(weights) / np.where(total > 0.0, total, 1.0)).ravel(),
        "norm": np.ravel(norms),
        "support": np.broadcast_to(support, weights.shape).ravel(),
    }
    if n_rows > 1:
        columns = {"class": np.repeat(classes, n_kernels), **columns}
    return pd.DataFrame(columns)


def axes_of(ax):
    require("plots", "matplotlib")
    import matplotlib.pyplot as plt

    if ax is None:
        return plt.subplots(layout="constrained")[1]
    return ax


class KernelWeightsDisplay:
    r"""Bar chart of the kernels' shares, :math:`|\alpha_j|/\sum_k |\alpha_k|`.

    Parameters
    ----------
    summary : DataFrame
        ``model.summary()``.

    Attributes
    ----------
    ax_, figure_ : matplotlib objects, once drawn

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from cuelearn.kernels import RBF
    >>> from cuelearn.mkl import OBSCURE, KernelWeightsDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> model = OBSCURE([("sepal", RBF(), [0, 1]), ("petal", RBF(), [2, 3])], random_state=0).fit(X, y)
    >>> KernelWeightsDisplay.from_estimator(model).ax_.get_xlabel()
    'share of the kernel weights'
    """

    def __init__(self, summary):
        self.summary = summary

    @classmethod
    def from_estimator(cls, estimator, *, ax=None, most=30):
        """Draw the `most` largest weights of a fitted estimator that has `summary`."""
        check_is_fitted(estimator)
        if not hasattr(estimator, "summary"):
            raise ValueError(f"estimator must have kernel weights, got {type(estimator).__name__}")
        return cls(estimator.summary()).plot(ax, most=most)

    def plot(self, ax=None, *, most=30):
        """Draw on `ax` or a new figure; returns self."""
        self.ax_ = axes_of(ax)
        self.figure_ = self.ax_.figure
        shares = self.summary.groupby("name", sort=False)["share"].mean()
        shown = shares.sort_values()[-most:]
        self.ax_.barh(np.arange(shown.size), shown.to_numpy())
        self.ax_.set_yticks(np.arange(shown.size), shown.index)
        self.ax_.set_xlabel("share of the kernel weights")
        left = shares.size - shown.size
        if left:
            rest = float(shares.sum() - shown.sum())
            self.ax_.set_title(f"{left} further kernels have {rest:.1%} together", fontsize="small")
        return self


class ConvergenceDisplay:
    """Objective and certified lower bound during a fit, with the final relative gap.

    For online learners without an objective: the share of mistakes so far; for `MLMKLSA`: the change of the
    kernel weights.

    Parameters
    ----------
    history : DataFrame
        A model's `history_`.
    x : str
        Its column "seconds", "epoch" or "step".
    y : {"objective", "online_error", "change"}

    Attributes
    ----------
    ax_, figure_ : matplotlib objects, once drawn

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from cuelearn.mkl import OBSCURE, ConvergenceDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> model = OBSCURE(C=100, random_state=0).fit(X, y)
    >>> ConvergenceDisplay.from_estimator(model).ax_.get_xlabel()
    'seconds of training'
    """

    X = {"seconds": "seconds of training", "epoch": "epochs", "step": "steps"}
    Y = {"objective": "objective", "online_error": "share of mistakes so far"}
    Y |= {"change": "relative change of the kernel weights"}

    def __init__(self, history, x="seconds", y="objective"):
        for name, value, known in (("x", x, self.X), ("y", y, self.Y)):
            there = [column for column in known if column in history]
            expect_word(f"{name}, a column of history_,", value, there)
        self.history = history
        self.x = x
        self.y = y

    @classmethod
    def from_estimator(cls, estimator, *, x="seconds", ax=None):
        """Draw the `history_` of a fitted estimator."""
        check_is_fitted(estimator)
        if not hasattr(estimator, "history_"):
            raise ValueError(f"estimator must have history_, got {type(estimator).__name__}")
        history = estimator.history_
        measured = getattr(
            estimator, "_convergence", "objective" if "objective" in history else "online_error"
        )
        return cls(history, x, measured).plot(ax)

    def plot(self, ax=None):
        """Draw on `ax` or a new figure; returns self."""
        self.ax_ = axes_of(ax)
        self.figure_ = self.ax_.figure
        seen = self.history.dropna(subset=[self.x, self.y])
        if seen.empty:
            raise ValueError(
                f"history_ holds no measured {self.y}: fit with tol= or measure it in a callback"
            )
        runs = seen.groupby("target") if "target" in seen else [(self.y.replace("_", " "), seen)]
        for label, run in runs:
            self.ax_.plot(run[self.x], run[self.y], marker=".", label=str(label))
        self.ax_.set_xlabel(self.X[self.x])
        self.ax_.set_ylabel(self.Y[self.y])
        bound = self._draw_bound(seen)
        if (seen[self.y] > 0.0).all() and (bound > 0.0).all() and self.y != "online_error":
            self.ax_.set_yscale("log")
        self.ax_.legend()
        return self

    def _draw_bound(self, seen):
        # gaps of "relaxed" problems are no bounds
        if self.y != "objective" or "dual_gap" not in seen or "relaxed" in seen:
            return np.zeros(0)
        measured = seen.dropna(subset=["dual_gap"])
        bound = np.maximum.accumulate((measured["objective"] - measured["dual_gap"]).to_numpy())
        if bound.size:
            self.ax_.plot(measured[self.x], bound, marker=".", label="certified lower bound")
            last = measured.iloc[-1]
            gap = last["dual_gap"] / max(last["objective"], np.finfo(float).tiny)
            self.ax_.set_title(f"relative gap at the end {gap:.1e}", fontsize="small")
        return bound

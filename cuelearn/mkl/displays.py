"""Pictures of fitted models, in scikit-learn's Display style: ``Display.from_estimator(model)``."""

import numpy as np
from sklearn.utils.validation import check_is_fitted

from cuelearn.core.optional import require

__all__ = ["ConvergenceDisplay", "KernelWeightsDisplay"]


def axes_of(ax):
    """The axes to draw on, new ones where none are given."""
    require("plots", "matplotlib")
    import matplotlib.pyplot as plt

    return plt.subplots(layout="constrained")[1] if ax is None else ax


class KernelWeightsDisplay:
    """Bars of the kernels' shares in the model, from :math:`|\\alpha_j|/\\sum_k |\\alpha_k|`.

    Parameters
    ----------
    summary : DataFrame
        ``model.summary()``: columns name, weight, share, norm, and class where classes have their own.

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
        """Draw the weights of a fitted estimator that has `summary`; `most` kernels at most, the heaviest."""
        check_is_fitted(estimator)
        return cls(estimator.summary()).plot(ax, most=most)

    def plot(self, ax=None, *, most=30):
        """Draw on `ax`, or on a new figure; returns the display."""
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
    """Objective and certified lower bound over the course of a fit, with the relative gap at its end.

    Parameters
    ----------
    history : DataFrame
        A model's `history_`.
    x : {"seconds", "epoch", "step"}

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

    LABELS = {"seconds": "seconds of training", "epoch": "epochs", "step": "visits"}

    def __init__(self, history, x="seconds"):
        if x not in self.LABELS:
            raise ValueError(f"x must be one of {sorted(self.LABELS)}, got {x!r}")
        self.history, self.x = history, x

    @classmethod
    def from_estimator(cls, estimator, *, x="seconds", ax=None):
        """Draw the `history_` of a fitted estimator."""
        check_is_fitted(estimator)
        if not hasattr(estimator, "history_"):
            name = type(estimator).__name__
            raise ValueError(f"estimator must keep a history_ of its fit, {name} has none")
        return cls(estimator.history_, x).plot(ax)

    def plot(self, ax=None):
        """Draw on `ax`, or on a new figure; returns the display."""
        self.ax_ = axes_of(ax)
        self.figure_ = self.ax_.figure
        seen = self.history.dropna(subset=[self.x, "objective"])
        if seen.empty:
            raise ValueError(
                "history_ holds no measured objective: fit with tol= or measure it in a callback"
            )
        measured = seen.dropna(subset=["dual_gap"])
        self.ax_.plot(seen[self.x], seen["objective"], marker=".", label="objective")
        bound = np.maximum.accumulate((measured["objective"] - measured["dual_gap"]).to_numpy())
        if bound.size:
            self.ax_.plot(measured[self.x], bound, marker=".", label="certified lower bound")
            last = measured.iloc[-1]
            gap = last["dual_gap"] / max(last["objective"], np.finfo(float).tiny)
            self.ax_.set_title(f"relative gap at the end {gap:.1e}", fontsize="small")
        if (seen["objective"] > 0.0).all() and (bound > 0.0).all():
            self.ax_.set_yscale("log")
        self.ax_.set_xlabel(self.LABELS[self.x])
        self.ax_.set_ylabel("objective")
        self.ax_.legend()
        return self

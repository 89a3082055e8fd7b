"""Online learners side by side: error while learning, and on new samples after more and more epochs (thesis figures 4.3 and 4.4)."""

import time

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin

from cuelearn.experiments.mkl.rivals import METHODS, Method, build, held_kernels, warm_up_method
from cuelearn.experiments.mkl.tasks import get_task
from cuelearn.kernels import CrossBank
from cuelearn.mkl.stream import draw_order
from cuelearn.omcl import OMCL, KernelPerceptron, PassiveAggressive

ONLINE = ("OM2", "OMCL-PERC", "KernelPA", "KernelPA best")
POINTS = 20  # of a curve of the online error, at least


class OMCLOnKernels(ClassifierMixin, BaseEstimator):
    """OMCL-PERC on a bank of kernels: a Perceptron for each kernel, PA-I on their scores, averaged (thesis section 3.3).

    Later epochs visit the training samples in a new order, as samples of their own.

    Parameters
    ----------
    kernels : "precomputed"
    C : float > 0, default 1.0
        Largest step of the second layer.
    n_epochs : int, default 1
    random_state : int or None

    Attributes
    ----------
    online_errors_ : ndarray of bool
        0/1 sequence of mistakes of the first epoch.
    """

    def __init__(self, kernels="precomputed", *, C=1.0, n_epochs=1, random_state=None):
        self.kernels = kernels
        self.C = C
        self.n_epochs = n_epochs
        self.random_state = random_state

    def fit(self, bank, y):
        """Learn from a KernelBank and labels."""
        self.classes_, labels = np.unique(y, return_inverse=True)
        n = labels.size
        rng = np.random.default_rng(self.random_state)
        learners = [(f"cue {j}", KernelPerceptron("precomputed"), j) for j in range(bank.n_kernels)]
        self.model_ = OMCL(learners, PassiveAggressive(C=self.C), verbose=False)
        self.order_ = np.concatenate(
            [draw_order(n, rng, shuffle=epoch > 0) for epoch in range(self.n_epochs)]
        )
        for start in range(0, self.order_.size, n):
            now, seen = self.order_[start : start + n], self.order_[: start + n]
            rows = bank.rows(now)
            self.model_.partial_fit(
                np.ascontiguousarray(rows[:, :, seen]), labels[now], classes=np.arange(self.classes_.size)
            )
        self.online_errors_ = self.model_.online_errors_[:n]
        self.kernel_weights_ = np.ones(bank.n_kernels)
        return self

    def predict(self, X):
        """Classes of new samples, a CrossBank or an array (n_kernels, n, n_train)."""
        parts = X.blocks() if isinstance(X, CrossBank) else [(slice(None), np.asarray(X))]
        return self.classes_[
            np.concatenate(
                [self.model_.predict(np.ascontiguousarray(block[:, :, self.order_])) for _, block in parts]
            )
        ]


METHODS["OMCL-PERC"] = Method(OMCLOnKernels, {"C": (0.01, 0.1, 1.0, 10.0)})


def online_curves(task, n_train, n_test, seed, method, params, epochs, cues=None):
    """One online learner: its error over the first pass, and the test error after some numbers of epochs.

    The first pass keeps the order of the task, later ones are permuted. Every number of epochs is a fit of its own.

    Parameters
    ----------
    task, n_train, n_test, seed, cues
        See `get_task`.
    method : str
    params : dict
    epochs : list of int

    Returns
    -------
    DataFrame
        Columns what ("online" or "test"), at (samples or epochs), error, seconds.
    """
    warm_up_method(method)
    loaded = get_task(task, n_train, n_test, seed, cues=cues)
    rows, test = [], held_kernels(loaded)
    for n_epochs in epochs:
        model = build(method, params, seed, n_epochs=n_epochs, shuffle=False)
        began = time.perf_counter()
        model.fit(loaded.bank, loaded.labels)
        seconds = time.perf_counter() - began
        if hasattr(model, "best_kernel_"):  # chosen once, on the training part
            params = {**params, "kernel": model.best_kernel_}
        error = float(np.mean(model.predict(test) != loaded.test_labels))
        rows.append({"what": "test", "at": n_epochs, "error": error, "seconds": seconds})
    mistakes = model.online_errors_[: loaded.labels.size]
    step = 10 ** max(
        0, int(np.log10(mistakes.size / POINTS))
    )  # the same points for permutations of different length
    at = np.r_[1, np.arange(step, mistakes.size + 1, step)] if step > 1 else np.arange(1, mistakes.size + 1)
    running = np.cumsum(mistakes)[at - 1] / at
    rows += [
        {"what": "online", "at": int(a), "error": float(e), "seconds": np.nan}
        for a, e in zip(at, running, strict=True)
    ]
    return pd.DataFrame(rows)

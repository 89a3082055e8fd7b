"""A task with priors that the tests of several methods share."""

import numpy as np
from plain_kernels import whole_of
from plain_mkl import draw
from sklearn.ensemble import AdaBoostClassifier
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from cuelearn.kernels import RBF, KernelBank, Linear

CUES = [("shape", RBF(), [0, 1]), ("colour", Linear(), slice(2, 4))]
NAMES = ["height", "width", "red", "green", "fine", "coarse"]


class Task:
    """Training and new samples, and priors of two kinds that were fitted on other data and other columns.

    `n_rare`: the number of samples that stay of class 0.
    """

    def __init__(self, n_classes, n_rare=60):
        self.n_classes = n_classes
        X, y = draw(60, n_classes, 0)
        rows = np.flatnonzero((y != 0) | (np.cumsum(y == 0) <= n_rare))
        self.X, self.y = X[rows], y[rows]
        positive = [1] if n_classes == 2 else range(n_classes)
        self.targets = [(self.y == c).astype(int) for c in positive]
        self.new, self.y_new = draw(40, n_classes, 1)
        old, y_old = draw(100, 4, 2)
        svm = SVC(C=10.0).fit(old[:, 2:], y_old > 1)
        tree = DecisionTreeClassifier(max_depth=2)
        boosted = AdaBoostClassifier(tree, n_estimators=10, random_state=0).fit(old, y_old)
        self.priors = [("svm", svm, slice(2, 6)), ("boosted", boosted)]

        def scores(X):
            return np.column_stack([svm.decision_function(X[:, 2:]), boosted.decision_function(X)])

        self.S, self.S_new = scores(self.X), scores(self.new)
        self.bank = KernelBank(CUES, self.X)
        self.stack = self.bank.stack.astype(np.float64)
        self.cross = whole_of(self.bank.cross(self.new)).astype(np.float64)

    def fit(self, cls, **options):
        return cls(CUES, self.priors, **options).fit(self.X, self.y)


def svc(targets, kernel, of_new, sample_weight=None, **options):
    columns = []
    for target in targets:
        machine = SVC(kernel="precomputed", **options).fit(kernel, target, sample_weight=sample_weight)
        columns.append(machine.decision_function(of_new))
    return columns[0] if len(columns) == 1 else np.stack(columns, axis=1)


def scale_of(S, scaling):
    scales = {"rms": np.sqrt(np.mean(S**2, axis=0)), "max": np.abs(S).max(axis=0)}
    return scales.get(scaling, np.ones(S.shape[1]))

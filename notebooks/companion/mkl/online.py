"""OMCL in the form of the chapter's methods, to stand beside its online learners."""

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from cuelearn.kernels import CrossBank
from cuelearn.mkl.stochastic.training import draw_order
from cuelearn.omcl import OMCL, KernelPerceptron, PassiveAggressive


class OMCLOnKernels(ClassifierMixin, BaseEstimator):
    """OMCL-PERC on a bank: a Perceptron for each kernel, PA-I on their scores, averaged (thesis 3.3).
    Later epochs visit the training samples in a new order, as samples of their own.
    """

    def __init__(self, kernels="precomputed", *, C=1.0, n_epochs=1, random_state=None):
        self.kernels = kernels
        self.C = C
        self.n_epochs = n_epochs
        self.random_state = random_state

    def fit(self, bank, y):
        self.classes_, labels = np.unique(y, return_inverse=True)
        n, classes = labels.size, np.arange(self.classes_.size)
        rng = np.random.default_rng(self.random_state)
        learners = [(f"cue {j}", KernelPerceptron("precomputed"), j) for j in range(bank.n_kernels)]
        self.model_ = OMCL(learners, PassiveAggressive(C=self.C))
        orders = [draw_order(n, rng, shuffle=epoch > 0) for epoch in range(self.n_epochs)]
        self.order_ = np.concatenate(orders)
        for epoch, now in enumerate(orders):
            seen = self.order_[: (epoch + 1) * n]
            rows = np.ascontiguousarray(bank.rows(now)[:, :, seen])
            self.model_.partial_fit(rows, labels[now], classes=classes)
        self.online_errors_ = self.model_.online_errors_[:n]
        self.kernel_weights_ = np.ones(bank.n_kernels)
        return self

    def predict(self, X):
        blocks = [b for _, b in X.blocks()] if isinstance(X, CrossBank) else [np.asarray(X)]
        parts = [self.model_.predict(np.ascontiguousarray(b[:, :, self.order_])) for b in blocks]
        return self.classes_[np.concatenate(parts)]

"""Experiments on losses beyond the hinge: regression, and the logistic loss's probabilities.

Each point is one split: every method's parameters are chosen there by the same inner folds, then it is fitted
on all training samples. y has standard deviation 1 on these.
"""

from functools import lru_cache

import numpy as np
import pandas as pd
from scipy.special import softmax
from sklearn import datasets as toy
from sklearn.calibration import CalibratedClassifierCV
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import SVC, SVR

from companion.cue_tasks import standardised
from companion.mkl.tasks import get_task
from companion.protocol import fitted, grid_points, load_set, quiet
from companion.study import best_of
from cuelearn import mkl
from cuelearn.kernels import RBF, KernelBank

#: Noise of Friedman's three functions: 1 as in his first, else a third of the signal's deviation.
NOISE = {"friedman1": 1.0, "friedman2": 125.0, "friedman3": 0.1}
TASKS = ("diabetes", *NOISE, "mfeat")
#: The morphological feature of a digit that is predicted from its other cues: the first continuous one whose
#: values do not go round, as an angle's do.
PROPERTY = 4
#: Of the epsilon-insensitive losses, in standard deviations of y.
EPSILON = 0.1
BINS = 15
#: The p-norm SVR stops at this relative change of its weights.
CHANGE = 1e-3
MOST_ROUNDS = 100
ENDS = {"n_epochs": 5, "tol": 0.01}


@lru_cache(maxsize=1)
def regression_task(name, n_train, n_test, seed):
    """Training kernels and targets, test kernels and targets."""
    rng = np.random.default_rng([seed, 12])
    if name == "mfeat":
        data = load_set("mfeat")
        X = data.X
        y = X[:, data.cues["mor"]][:, PROPERTY]
        cues = {cue: columns for cue, columns in data.cues.items() if cue != "mor"}
    else:
        if name == "diabetes":
            X, y = toy.load_diabetes(return_X_y=True)
        else:
            make = getattr(toy, f"make_{name}")
            X, y = make(n_train + n_test, noise=NOISE[name], random_state=seed)
        cues = {str(k): [k] for k in range(X.shape[1])} | {"all": slice(None)}
    order = rng.permutation(y.size)
    train = order[:n_train]
    test = order[n_train : n_train + n_test]
    X = standardised(X, train)
    bank = KernelBank([(cue, RBF(), columns) for cue, columns in cues.items()], X[train])
    y = (y - y[train].mean()) / y[train].std()
    across = np.concatenate([block for _, block in bank.cross(X[test]).blocks()], axis=1)
    return bank.stack, y[train], across, y[test]


class AverageKernel:
    """A method of scikit-learn on the mean of all kernels; y is centred where the method has no bias."""

    def __init__(self, model, centre=False):
        self.model = model
        self.centre = centre

    def fit(self, K, y):
        self.mean = y.mean() if self.centre else 0
        self.model.fit(K.mean(axis=0), y - self.mean if self.centre else y)
        return self

    def predict(self, K):
        return self.model.predict(K.mean(axis=0)) + self.mean

    def predict_proba(self, K):
        if hasattr(self.model, "predict_proba"):
            return self.model.predict_proba(K.mean(axis=0))
        scores = self.model.decision_function(K.mean(axis=0))
        return softmax(scores, axis=1)


class PNormSVR:
    """p-norm MKL with epsilon-SVR, as SHOGUN's MKLRegression: SVRs on the combined kernel in turn with the
    closed form of the weights (Kloft et al., JMLR 12, 2011, equation 26)."""

    def __init__(self, C, p):
        self.svr = SVR(kernel="precomputed", C=C, epsilon=EPSILON)
        self.p = p

    def fit(self, K, y):
        weights = np.full(len(K), len(K) ** (1.0 - 2.0 / self.p))  # of norm 1
        for _ in range(MOST_ROUNDS):
            self.weights = weights
            self.svr.fit(np.tensordot(weights, K, 1), y)
            support = self.svr.support_
            coef = self.svr.dual_coef_[0]
            near = K[:, support[:, None], support]
            norms = weights * np.sqrt(np.maximum(0.0, np.einsum("i,jik,k->j", coef, near, coef)))
            size = np.sum(norms**self.p) ** ((2.0 - self.p) / self.p)
            weights = norms ** (2.0 - self.p) / max(size, 1e-300)
            if np.abs(weights - self.weights).max() <= CHANGE * self.weights.max():
                break
        return self

    def predict(self, K):
        return self.svr.predict(np.tensordot(self.weights, K, 1))


def regressor(method, params, seed):
    C = params["C"]
    if method == "kernel ridge, average":
        return AverageKernel(KernelRidge(alpha=1.0 / C, kernel="precomputed"), centre=True)
    if method == "SVR, average":
        return AverageKernel(SVR(kernel="precomputed", C=C, epsilon=EPSILON))
    if method == "p-norm SVR":
        return PNormSVR(**params)
    insensitive = mkl.EpsilonInsensitive(EPSILON)
    loss = insensitive if method == "OBSCURE, insensitive" else "squared"
    cls = mkl.UFOMKLRegressor if method == "UFO-MKL, squared" else mkl.OBSCURERegressor
    return cls("precomputed", loss=loss, random_state=seed, **params, **ENDS)


#: The parameters that are chosen for each method.
REGRESSORS = {
    "OBSCURE, squared": ("C", "p"),
    "OBSCURE, insensitive": ("C", "p"),
    "UFO-MKL, squared": ("C", "alpha"),
    "kernel ridge, average": ("C",),
    "SVR, average": ("C",),
    "p-norm SVR": ("C", "p"),
}
#: Whose error is compared to whose.
PAIRS = {
    "OBSCURE, squared": "kernel ridge, average",
    "UFO-MKL, squared": "kernel ridge, average",
    "OBSCURE, insensitive": "SVR, average",
}


def chosen_by_folds(build, grid, K, y, folds, loss):
    """The point of the grid with the least mean loss of held-back samples."""
    points = grid_points(**grid)
    if len(points) == 1:
        return points[0]
    losses = []
    for params in points:
        each = []
        for train, test in folds:
            model = fitted(build(params), np.ascontiguousarray(K[:, train[:, None], train]), y[train])
            each.append(loss(model, K[:, test[:, None], train], y[test]))
        losses.append(np.mean(each))
    return points[best_of(points, [-value for value in losses])]


def root_mean_square(model, K, y):
    return float(np.sqrt(np.mean((model.predict(K) - y) ** 2)))


def compare_regressors(task, n_train, n_test, n_folds, grids, seed):
    """Test error of every regressor on one split, over the standard deviation of the training targets."""
    K, y, across, test_y = regression_task(task, n_train, n_test, seed)
    folds = list(KFold(n_folds, shuffle=True, random_state=seed).split(y))
    rows = []
    for method, names in REGRESSORS.items():
        grid = {name: grids[name] for name in names}

        def build(params, method=method):
            return regressor(method, params, seed)

        params = chosen_by_folds(build, grid, K, y, folds, root_mean_square)
        model = fitted(build(params), K, y)
        error = root_mean_square(model, across, test_y)
        rows.append({"method": method, "error": error, "chosen": str(params)})
    return pd.DataFrame(rows)


# --- probabilities ------------------------------------------------------------------------------------------

PROBABILISTIC = {
    "OBSCURE, logistic": ("C", "p"),
    "SVM with Platt's method": ("C",),
    "SVM with softmax": ("C",),
    "SVM with temperature": ("C",),
}
PROBABILITY_TASKS = {"mfeat": "mfeat-6", "htad": "htad-2", "pendigits": "pendigits-4"}


def probabilistic(method, params, seed):
    if method == "OBSCURE, logistic":
        return mkl.OBSCURE("precomputed", loss="logistic", random_state=seed, **params, **ENDS)
    svm = OneVsRestClassifier(SVC(kernel="precomputed", **params))
    scaling = {"SVM with Platt's method": "sigmoid", "SVM with temperature": "temperature"}.get(method)
    if scaling is not None:
        svm = CalibratedClassifierCV(svm, method=scaling, cv=2, ensemble=False)
    return AverageKernel(svm)


def probabilities(model, K):
    return np.maximum(model.predict_proba(K), 1e-12)


def log_loss(model, K, labels):
    return float(-np.mean(np.log(probabilities(model, K)[np.arange(labels.size), labels])))


def compare_probabilities(task, n_train, n_test, n_folds, grids, seed):
    """Log loss, and by bins of the largest probability the numbers of samples and of right ones."""
    split = get_task(PROBABILITY_TASKS[task], n_train, n_test, seed)
    K = split.bank.stack
    labels = split.labels
    across = np.concatenate([block for _, block in split.cross.blocks()], axis=1)
    folds = list(StratifiedKFold(n_folds, shuffle=True, random_state=seed).split(labels, labels))
    tables = []
    for method, names in PROBABILISTIC.items():
        grid = {name: grids[name] for name in names}

        def build(params, method=method):
            return probabilistic(method, params, seed)

        with quiet():
            params = chosen_by_folds(build, grid, K, labels, folds, log_loss)
            model = fitted(build(params), K, labels)
        shares = probabilities(model, across)
        sure = shares.max(axis=1)
        right = shares.argmax(axis=1) == split.test_labels
        place = np.minimum((sure * BINS).astype(int), BINS - 1)
        sums = [np.bincount(place, weights, BINS) for weights in (np.ones(sure.size), sure, right)]
        table = pd.DataFrame(dict(zip(("count", "confidence", "right"), sums, strict=True)))
        calibration = np.abs(table["confidence"] - table["right"]).sum() / sure.size
        loss = log_loss(model, across, split.test_labels)
        more = {"method": method, "log_loss": loss, "calibration": calibration, "error": 1 - right.mean()}
        tables.append(table.rename_axis("bin").reset_index().assign(**more, chosen=str(params)))
    return pd.concat(tables, ignore_index=True)

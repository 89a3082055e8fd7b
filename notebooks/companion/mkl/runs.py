"""Runs of the stochastic solvers, experiments on losses, and the theorems of thesis chapter 4, measured.

Functions on the solvers take the arguments of `get_task` as ``**where``. In experiments on losses each point
is one split: every method's parameters are chosen there by the same inner folds, then it is fitted on all
training samples. y has standard deviation 1 on these.
"""

import math
import time
from functools import cache, lru_cache, partial

import numpy as np
import pandas as pd
from scipy.special import softmax
from sklearn import datasets as toy
from sklearn.calibration import CalibratedClassifierCV
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import SVC, SVR

from companion.mkl import get_task, kernel_set, load_task, test_error
from companion.pictures import standardised
from companion.protocol import FIRST_STAGE, fitted, grid_points, in_turn, load_set, looks, quiet, timed
from companion.study import best_of
from cuelearn import datasets, mkl
from cuelearn.core.formulas import group_norm, margins
from cuelearn.kernels import RBF, KernelBank, Linear
from cuelearn.kernels.rows import combined_kernel
from cuelearn.mkl import MKLProblem, solve_obscure, solve_om2

SOLVERS = {
    "OM2": mkl.solve_om2,
    "OBSCURE": partial(mkl.solve_obscure, **FIRST_STAGE),
    "OBSCURE 5": partial(mkl.solve_obscure, **FIRST_STAGE | {"n_epochs_online": 5}),
    "PegasosMKL": mkl.solve_pegasos_mkl,
    "UFOMKL": mkl.solve_ufo,
}


def solve(method, problem, *, n_epochs, seed, **options):
    """Run a solver by name with its own generator, silent where it does not converge."""
    with quiet():
        return SOLVERS[method](problem, n_epochs=n_epochs, rng=np.random.default_rng([seed, 2]), **options)


def reference(problem, tol=1e-3, time_limit=20.0, **options):
    with quiet():
        return mkl.solve_reference(problem, tol=tol, time_limit=time_limit, **options)


def loaded(seed, p="auto", C=1.0, alpha=0.0, **where):
    """A task and the problem that it poses, everything compiled that a timed run will use."""
    warm_up()
    task = get_task(seed=seed, **where)
    return task, MKLProblem(task.bank, task.labels, task.n_classes, p=p, C=C, alpha=alpha)


def outcome(task, result, stage=""):
    """Of a run: its test error, updates, kernel rows (without those of a dual ascent) and seconds."""
    last = result.history.ffill().iloc[-1]
    return {
        f"{stage or 'test_'}error": test_error(task, result.dual_coef, result.kernel_weights),
        f"{stage}updates": int(result.n_updates),
        f"{stage}rows": int(rows_read(task.bank, last)),
        f"{stage}seconds": float(last["seconds"]),
    }


def rows_read(bank, history):
    """Rows of single kernels that a stochastic run has read: a visit those of all, an update again."""
    return bank.n_kernels * (history["step"] + history["n_updates"])


@cache
def warm_up():
    """No time contains a compilation."""
    X = np.random.default_rng(0).normal(size=(12, 2))
    labels = np.arange(12) % 3
    for memory in (1e6, 0.0):
        bank = KernelBank([("a", RBF(), [0]), ("b", RBF(), [1])], X, memory=memory)
        for scores in ("recompute", "maintain"):
            options = {"n_epochs": 2, "seed": 0, "scores": scores, "measure": "every", "shuffle": True}
            for method in SOLVERS:
                solve(method, MKLProblem(bank, labels, 3, p=1.5), **options)
        solve("UFOMKL", MKLProblem(bank, labels, 3, alpha=0.01), n_epochs=2, seed=0)
    reference(MKLProblem(bank, labels, 3), max_rounds=2)


def three_class(seed, p_om2=1.01, p_obscure=1.0001, C=10.0, noise=0.05):
    """Weights, of sum 1, on the three-class problem; `target`: the class told from the rest, 0 for all."""
    data = datasets.make_three_class(noise=noise, random_state=seed)
    bank = KernelBank(data.triples(Linear()), data.X)
    online = solve("OM2", MKLProblem(bank, data.y, 3, p=p_om2), n_epochs=5, seed=seed, shuffle=True)
    batch = solve("OBSCURE", MKLProblem(bank, data.y, 3, p=p_obscure, C=C), n_epochs=50, seed=seed)
    binary = mkl.SILPMKL("precomputed", C=C, tol=1e-4).fit(bank, data.y)
    drawn = [("SILPMKL", c + 1, 1.0, weights) for c, weights in enumerate(binary.kernel_weights_)]
    drawn += [("OM2", 0, p_om2, online.kernel_weights), ("OBSCURE", 0, p_obscure, batch.kernel_weights)]
    rows = [(m, t, p, j + 1, w) for m, t, p, weights in drawn for j, w in enumerate(weights / weights.sum())]
    return pd.DataFrame(rows, columns=["method", "target", "p", "kernel", "weight"])


def training_curve(method, n_epochs, seed, C=1.0, p="auto", alpha=0.0, hold_test=True, tol=None, **where):
    """Test error, objective and gap over time and work of one solver, the clock stopped meanwhile."""
    task, problem = loaded(seed, p, C, alpha, **where)
    blocks = list(task.cross.blocks(memory=2e8)) if hold_test else None
    rows = []

    def note(row, *point):
        rows.append({**row, "test_error": test_error(task, *point, blocks)})

    def watch(training, step):
        row = training.run.rows[-1]
        if np.isfinite(row["objective"]):
            note(row, *training.stream.point()[:2])

    options = {"measure": "geometric", "callback": watch, "tol": tol}
    result = solve(method, problem, n_epochs=n_epochs, seed=seed, **options)
    if rows[-1]["step"] != result.history.step.iloc[-1]:
        note(result.history.iloc[-1], result.dual_coef, result.kernel_weights)
    frame = pd.DataFrame(rows).assign(n_kernels_used=float(np.count_nonzero(result.kernel_weights)))
    return frame.assign(stage=frame["stage"].astype(str), rows=rows_read(task.bank, frame))


def optimum(C, p, seed, **where):
    """Certified optimum: the best objective known and the lower bound."""
    _, problem = loaded(seed, p, C, n_test=1, **where)
    result = reference(problem, tol=1e-4, time_limit=30.0)
    seconds = float(result.history.seconds.iloc[-1])
    return {"objective": result.objective, "lower": result.objective - result.dual_gap, "seconds": seconds}


def alike(bank, labels):
    """Number of samples that no kernel tells from one of another class: a loss on one of these stays."""
    same = np.min(bank.stack, axis=0) > 1.0 - 1e-6
    return int((same & (labels[:, None] != labels)).any(axis=1).sum())


def online_run(p, n_epochs, most_epochs, seed, method="OM2", **where):
    """OM-2, or OBSCURE's online stage, until it updates on no more visits than samples are `alike`."""
    task, problem = loaded(seed, p, **where)
    n = task.labels.size
    n_alike = alike(task.bank, task.labels)

    def run(epochs):
        if method == "OM2":
            return solve("OM2", problem, n_epochs=epochs, seed=seed, shuffle=True, until_no_loss=True)
        return solve("OBSCURE", problem, n_epochs=0, n_epochs_online=epochs, seed=seed)

    early = run(n_epochs)
    late = run(most_epochs)
    done = np.flatnonzero(np.diff(late.history["n_updates"], prepend=0) <= n_alike)
    at = late.history.iloc[done[0] if done.size else -1]
    return {
        "test_error": test_error(task, early.dual_coef, early.kernel_weights),
        "online_error": float(early.online_errors[:n].mean()),
        "final_error": test_error(task, late.dual_coef, late.kernel_weights),
        "epochs": int(at["epoch"]),
        "visits": int(at["epoch"]) * n,
        "updates": int(at["n_updates"]),
        "rows": int(rows_read(task.bank, at)),
        "seconds": float(at["seconds"]),
        "alike": n_alike,
        "converged": bool(done.size),
    }


def two_stages(p, C, n_epochs, tol, seed, **where):
    """OBSCURE's online stage alone, and both stages to a certified gap."""
    task, problem = loaded(seed, p, C, **where)
    online = solve("OBSCURE", problem, n_epochs=0, seed=seed)
    both = solve("OBSCURE", problem, n_epochs=n_epochs, tol=tol, seed=seed)
    end = {
        "relative_gap": both.dual_gap / both.objective,
        "converged": bool(both.converged),
        "online_epochs": online.n_iter,
        "epochs": both.n_iter,
    }
    return outcome(task, online, "online_") | outcome(task, both) | end


def many_kernels(method, C, n_epochs, seed, p="auto", alpha=0.0, tol=None, finish=False, at=(), **where):
    """One solver on up to 1,400 kernels; a visit reads the rows of those with weight when its epoch ended.
    `clock`: CPU seconds and rows after the epochs `at`."""
    task, problem = loaded(seed, p, C, alpha, **where)
    active = []

    def watch(training, step):
        active.append(int(training.stream.dual.now.n_active))

    options = {"tol": tol, "finish": finish, "callback": watch}
    result = solve(method, problem, n_epochs=n_epochs, seed=seed, **options)
    end = outcome(task, result)
    read = task.bank.n_samples * np.cumsum(active)
    updates = task.bank.n_kernels * result.history["n_updates"]
    seconds = result.history["seconds"]
    clock = [{"seconds": seconds.iloc[e - 1], "rows": read[e - 1] + updates.iloc[e - 1]} for e in at]
    return {
        "seconds": end["seconds"],
        "rows": read[-1] + task.bank.n_kernels * end["updates"],
        "test_error": end["test_error"],
        "n_used": int(np.count_nonzero(result.kernel_weights)),
        "objective": result.objective,
        "dual_gap": result.dual_gap,
        "n_updates": end["updates"],
        "clock": clock,
    }


def against_alpha(alphas, C, tol, epochs, seed, **where):
    """UFO-MKL at several alpha, in turn on one split: few steps, then ascent to a certified `gap`; of the
    smallest and the largest the time of so many `epochs` at C = 1000."""
    where |= {"method": "UFOMKL", "seed": seed}
    rows = []
    for alpha in in_turn(list(alphas), seed):
        end = many_kernels(C=C, alpha=alpha, n_epochs=5, tol=tol, finish=True, **where)
        rows.append({"what": "gap", "alpha": alpha, **end})
    for alpha in in_turn([min(alphas), max(alphas)], seed) if epochs else ():
        long = many_kernels(C=1000.0, alpha=alpha, n_epochs=max(epochs), at=epochs, **where)
        rows += [
            {"what": f"{n} epochs", "alpha": alpha, **clock}
            for n, clock in zip(epochs, long["clock"], strict=True)
        ]
    return pd.DataFrame(rows).drop(columns="clock")


def first_stages(stages, p, C, n_epochs, seed, **where):
    """What OBSCURE comes to after online stages of several lengths and step sizes, a list of dicts."""
    task, problem = loaded(seed, p, C, **where)
    best = reference(problem)
    rows = []
    for stage in stages:
        result = solve("OBSCURE", problem, n_epochs=n_epochs, seed=seed, measure="geometric", **stage)
        history = result.history
        online = history[history["stage"] == "online"]
        end = outcome(task, result)
        row = {"n_epochs_online": stage["n_epochs_online"], "eta": str(stage["eta"]), "epochs": len(online)}
        row |= {"radius": result.extra["radius"], "suboptimality": history["objective"].min()}
        rows.append(row | {name: end[name] for name in ("test_error", "rows", "seconds")})
    frame = pd.DataFrame(rows)
    lower = best.objective - best.dual_gap
    return frame.assign(suboptimality=(frame["suboptimality"] - lower) / lower)


def all_of_mnist(n_train, n_test, C, p, n_epochs, seed):
    """OBSCURE on up to 60,000 digits, kernels computed on demand.

    The online stage takes one epoch where there are too few for it to end.
    """
    task, problem = loaded(seed, p, C, task="mnist-12", n_train=n_train, n_test=n_test)
    at = looks(1.3)
    rows = []

    def note(row, *point):
        rows.append({**row, "test_error": test_error(task, *point)})

    def watch(training, step):
        if training.epoch in at:
            note(training.run.rows[-1], *training.stream.point()[:2])

    online = FIRST_STAGE["n_epochs_online"]
    online = online if n_epochs > online else 1
    options = {"n_epochs_online": online, "callback": watch, "certify": False}
    result = solve("OBSCURE", problem, n_epochs=n_epochs - online, seed=seed, **options)
    note(result.history.iloc[-1], result.dual_coef, result.kernel_weights)
    frame = pd.DataFrame(rows).drop(columns=["objective", "dual_gap"])
    return frame.assign(stage=frame["stage"].astype(str))


def times_beside_svm(n_train, C, repeats, seed):
    """CPU seconds of default fits on kernels in memory, and of SVC on their average, for each C: medians.

    `averaging` is SVC's own, `ascent` the share of the dual ascent, without the time of its certificates.
    """
    task = get_task("pendigits-4", n_train, 1, seed)
    runs = []
    for n in (min(100, n_train), n_train):  # the first compiles
        bank = task.bank if n == n_train else task.bank.restrict(np.arange(n))
        runs = [
            {"C": value, "method": method, **time_of_fit(method, bank, task.labels[:n], value, seed)}
            for value in C
            for _ in range(repeats)
            for method in in_turn(["OBSCURE", "UFOMKL", "AverageKernelSVM"], seed)
        ]
    return pd.DataFrame(runs).groupby(["C", "method"], sort=False).median().reset_index()


def time_of_fit(method, bank, labels, C, seed):
    if method == "AverageKernelSVM":
        average, averaging = timed(combined_kernel, bank, np.full(bank.n_kernels, 1.0 / bank.n_kernels), 1.0)
        _, seconds = timed(SVC(C=C, kernel="precomputed").fit, average, labels)
        return {"seconds": seconds, "averaging": averaging}
    model = getattr(mkl, method)("precomputed", C=C, random_state=seed)
    _, seconds = timed(model.fit, bank, labels)
    history = model.history_
    epochs = history.loc[history["stage"] != "dual", "seconds"].iloc[-1]
    parts = {"epochs": epochs, "ascent": history["seconds"].iloc[-1] - epochs}
    return {"seconds": seconds, **parts, "gap": model.dual_gap_ / model.objective_}


def gap_on_all_digits(n_train, tol, seed):
    """Certified gap of a default fit on MNIST over CPU seconds, 12 kernels computed on demand in 2 GB."""
    warm_up()
    data = datasets.load_mnist(n_train=n_train, n_test=1)
    rows = []
    start = time.process_time()

    def watch(model, step):
        rows.append({"stage": "epoch", "seconds": time.process_time() - start, "gap": np.nan})

    options = {"C": 1.0, "tol": tol, "random_state": seed, "callback": watch}
    model = mkl.OBSCURE(kernel_set("mnist-12", data), **options)
    with quiet():
        model.fit(data.X[:n_train], data.y[:n_train])
    rows.append(
        {"stage": "end", "seconds": time.process_time() - start, "gap": model.dual_gap_ / model.objective_}
    )
    return pd.DataFrame(rows).assign(n_support=model.support_.size)


def suboptimality(curve, lower):
    """Relative distance of a curve's objective from a certified lower bound of the optimum."""
    return (curve["objective"] - lower) / lower


# --- losses -------------------------------------------------------------------------------------------------

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


# --- theorems -----------------------------------------------------------------------------------------------

N_CLASSES = 5  # of a random stream
N_FEATURES = 5  # of each kernel
MOST_EPOCHS = 200  # of an online stage that is to end without loss


def norm_of(problem, result):
    return group_norm(result.kernel_weights * np.sqrt(problem.block_norms_sq(result.dual_coef)), problem.p)


def ones_norm(problem):
    """The (q/2)-norm of ones: what the kernels, of at most 1 on the diagonal, add to a bound."""
    return group_norm(np.ones(problem.bank.n_kernels), problem.q / 2.0)


def comparators(problem):
    """Batch optima for several C, at several lengths, as comparators u: norm, and sum of losses."""
    pairs = []
    for C in (0.1, 1.0, 10.0, 100.0):
        batch = MKLProblem(problem.bank, problem.labels, problem.n_classes, p=problem.p, C=C)
        result = reference(batch, time_limit=10.0)
        norm = norm_of(batch, result)
        own = margins(batch.training_scores(result.dual_coef, result.kernel_weights), batch.labels)
        for length in (0.25, 0.5, 1.0, 2.0, 4.0):
            pairs.append((length * norm, float(np.maximum(0.0, 1.0 - length * own).sum())))
    return pairs


def stream_problem(kind, n_samples, seed, n_kernels=6, p="auto", C=1.0):
    """A stream: "mfeat-6", of "random" labels, or with "one useful" kernel, the first, among useless ones."""
    if kind == "mfeat-6":
        task = load_task("mfeat-6", n_samples, 1, seed)
        return MKLProblem(task.bank, task.labels, task.n_classes, p=p, C=C)
    rng = np.random.default_rng([seed, 3])
    labels = rng.integers(N_CLASSES, size=n_samples)
    labels[:N_CLASSES] = np.arange(N_CLASSES)
    features = rng.normal(size=(n_samples, n_kernels, N_FEATURES))
    if kind == "one useful":
        features[:, 0] = 0.6 * features[:, 0] + 2.0 * np.eye(N_CLASSES)[labels]
    kernels = [(f"k{j}", RBF(), slice(N_FEATURES * j, N_FEATURES * (j + 1))) for j in range(n_kernels)]
    bank = KernelBank(kernels, features.reshape(n_samples, -1))
    return MKLProblem(bank, labels, N_CLASSES, p=p, C=C)


def one_pass(problem, seed):
    return solve_om2(problem, n_epochs=1, rng=np.random.default_rng(seed), shuffle=False)


def mistake_bound(kind, n_samples, seed, p):
    """Theorem 4.1 on one pass: mistakes of OM-2 and the bound, at the best comparator."""
    problem = stream_problem(kind, n_samples, seed, p=p)
    result = one_pass(problem, seed)
    mistakes = int(result.online_errors.sum())
    eta_sum = float(result.dual_coef[np.arange(n_samples), problem.labels].sum())
    lipschitz_sq = float(2.0 * ones_norm(problem))
    bounds = []
    for norm, losses in comparators(problem):
        c = problem.q * lipschitz_sq * norm**2
        bounds.append(c + losses + math.sqrt(losses * c) - (eta_sum - mistakes))
    return {"mistakes": mistakes, "bound": min(bounds), "updates": result.n_updates}


def useless_kernels(n_kernels, n_samples, seed, p="auto"):
    """Corollary 4.1: mistakes of OM-2 with one useful kernel among F."""
    result = one_pass(stream_problem("one useful", n_samples, seed, n_kernels=n_kernels, p=p), seed)
    weights = result.kernel_weights
    return {"mistakes": int(result.online_errors.sum()), "weight": float(weights[0] / weights.sum())}


def least_separator(problem, C=1000.0):
    """A certified lower bound of the norm of any classifier without loss, whose objective is lambda / 2 times
    its square and so above the lower bound of the optimum; tighter for larger C."""
    hard = MKLProblem(problem.bank, problem.labels, problem.n_classes, p=problem.p, C=C)
    best = reference(hard)
    return math.sqrt(2.0 * max(0.0, best.objective - best.dual_gap) / hard.regularization)


def update_bound(n_samples, seed, p, eta):
    """Theorem 4.3: updates of the online stage until it converges, its R, and their bounds."""
    problem = stream_problem("mfeat-6", n_samples, seed, p=p, C=10.0)
    rng = np.random.default_rng(seed)
    result = solve_obscure(problem, n_epochs_online=MOST_EPOCHS, n_epochs=0, eta=eta, rng=rng)
    step = result.extra["eta"]
    lipschitz_sq = 2.0 * ones_norm(problem)
    strength = problem.q * (2.0 / step + lipschitz_sq)
    bounds = []
    for norm, losses in comparators(problem):
        # losses of the rounds with an update: at most all visits of all epochs, counted at their largest
        total = losses * result.n_iter
        bounds.append(strength * norm**2 + total + norm * math.sqrt(strength * total))
    return {
        "updates": result.n_updates,
        "bound": min(bounds),
        "radius": result.extra["radius_online"],
        "optimum_norm": norm_of(problem, reference(problem)),
        "epochs": result.n_iter,
        "without_loss": result.n_iter < MOST_EPOCHS,
        "separable_radius": (2.0 + step * lipschitz_sq) * least_separator(problem),
    }


def suboptimality_bound(method, n_samples, seed, C, p, n_epochs, streams):
    """Theorems 4.2 and 4.5 (in expectation): suboptimality over independent draws, and the bound."""
    problem = stream_problem("mfeat-6", n_samples, seed, p=p, C=C)
    best = reference(problem, tol=1e-4)
    strength = problem.regularization
    options = {"n_epochs": n_epochs, "sampling": "iid", "measure": "geometric"}
    rows = []
    for stream in range(streams):
        result = solve(method, problem, seed=1000 * seed + stream, **options)
        history = result.history[result.history.stage == "batch"].dropna(subset=["objective"])
        steps = (history.epoch - history.epoch.iloc[0] + 1) * n_samples
        logs = 1.0 + np.log(steps)
        if method == "OBSCURE":
            radius = result.extra["radius"]
            rate = (strength * radius + math.sqrt(2.0 * ones_norm(problem))) * np.sqrt(problem.q * logs)
            bound = rate * np.minimum(rate / (strength * steps), 4.0 * radius / np.sqrt(steps))
        else:
            kernels = max(1.0, math.log(problem.bank.n_kernels))
            bound = math.e * 2.0 * logs * kernels / (strength * steps)
        gap = history.objective - (best.objective - best.dual_gap)
        rows.append(pd.DataFrame({"stream": stream, "step": steps, "suboptimality": gap, "bound": bound}))
    return pd.concat(rows, ignore_index=True)

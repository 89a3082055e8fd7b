"""The multi-label experiments and their drawings: which samples are used for what, what the numbers mean."""

import itertools
import json
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex
from numpy.testing import assert_allclose
from scipy.stats import gmean
from sklearn.metrics import average_precision_score
from sklearn.svm import LinearSVC

from companion import multilabel as exp
from companion import pictures
from companion.multilabel.claims import SHARED
from companion.plots import multilabel as draw
from companion.run.claims import judge
from companion.run.figures import method_style
from cuelearn import datasets
from cuelearn.kernels import RBF, Chi2, KernelBank, Linear, Poly
from cuelearn.mkl import saddle_gap
from cuelearn.mkl.mlmkl import SharedProblem, solve_mlmkl_sa, solve_mlmkl_sum

NO_EMOJI = ["yeast", *exp.CLASS_SETS, *exp.ORIGINAL_SETS]
GROUPS = (0, 0, 0, 1, 1, 1, 2, 2, 2)
FIGURE_1 = ("MLMKLSA", "MLMKLSum", "GMKL", "VSKL")
EQUAL = np.full(9, 1.0 / 9.0)
PRINTED = "MLMKLSA printed"

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning", "ignore:classes without positive"
)


# ------------------------------------------------------------------ small sets


def loaded(name):
    """A set, or the end of the test where its files are missing."""
    try:
        return exp.load_multilabel(name)
    except datasets.DataFileError as error:
        pytest.skip(str(error))


def toy(whole, seed=0, n=160):
    """Five classes on three cues of two columns; a last column, which no kernel sees, numbers the rows.

    Unless whole, class "c" has no positive among the training samples and class "d" none among the others.
    """
    rng = np.random.default_rng([700, seed])
    Y = (rng.random((n, 5)) < [0.5, 0.3, 0.4, 0.4, 0.2]).astype(np.int8)
    X = 1.2 * rng.normal(size=(n, 6))
    X[:, :2] += 2.0 * Y[:, :2]
    X[:, 2] += 1.5 * Y[:, 2] - 1.5 * Y[:, 3]
    X[:, 4] += 2.0 * Y[:, 4]
    train, test = np.split(rng.permutation(n), [90])
    if not whole:
        Y[train, 2] = 0
        Y[test, 3] = 0
    kinds = (("linear", Linear()), ("quadratic", Poly(degree=2)), ("RBF", RBF()))
    cues = [(f"cue{j}", slice(2 * j, 2 * j + 2)) for j in range(3)]
    kernels = [(f"{cue} {kind}", kernel, columns) for cue, columns in cues for kind, kernel in kinds]
    X = np.c_[X, np.arange(n)]
    data = SimpleNamespace(X=X, y=Y, train=train, test=test, target_names=list("abcde"))
    return exp.LabelSet(data, kernels, GROUPS)


@pytest.fixture
def toys(monkeypatch):
    """In place of the sets: "whole", "partial" and "unsplit"; tests may change them."""
    sets = {"whole": toy(True), "partial": toy(False), "unsplit": toy(True)}
    sets["unsplit"].data.train = sets["unsplit"].data.test = None
    monkeypatch.setattr(exp, "load_multilabel", sets.__getitem__)
    return sets


def rows_of(X):
    """Numbers of a toy's rows."""
    return X[:, -1].astype(int)


def signs_of(Y):
    """Signs of the classes that have both, a row each."""
    usable = Y.any(axis=0) & ~Y.all(axis=0)
    return np.where(Y[:, usable] > 0, 1.0, -1.0).T.copy(), usable


def mean_precision(scores, Y, usable):
    """Mean average precision of the usable classes that have both signs here, and their number."""
    judged = [k for k in np.flatnonzero(usable) if 0 < Y[:, k].sum() < len(Y)]
    return np.mean([average_precision_score(Y[:, k], scores[:, k]) for k in judged]), len(judged)


# ------------------------------------------------------------------ sets


@pytest.mark.parametrize("name", NO_EMOJI)
def test_a_set_has_three_kernels_on_each_of_three_groups(name):
    data, kernels, groups, families = loaded(name)
    assert data.y.shape == (len(data.X), len(data.target_names)) and families is None
    assert set(np.unique(data.y)) == {0, 1} and data.y.any(axis=0).all()
    assert len({kernel[0] for kernel in kernels}) == len(kernels) == 9 and groups == GROUPS
    everything = np.arange(data.X.shape[1])
    parts = []
    for first in (0, 3, 6):
        three = kernels[first : first + 3]
        assert [type(kernel[1]) for kernel in three] == [Linear, Poly, RBF]
        columns = [everything[kernel[2]].tolist() for kernel in three]
        assert columns[0] == columns[1] == columns[2] and len(columns[0]) > 1
        parts.append(set(columns[0]))
    assert set.union(*parts) == set(everything)
    if name == "yeast":  # two parts, and all
        assert parts[2] == parts[0] | parts[1] and not parts[0] & parts[1]
    else:
        assert sum(map(len, parts)) == everything.size


@pytest.mark.parametrize("name", NO_EMOJI)
def test_tasks_are_drawn_within_the_published_parts_and_fewer_classes_are_the_first_of_more(name):
    data = loaded(name).data
    # covers all classes: the same samples for any number of them
    n = {"leaves": 210, "corel5k": 410}.get(name, 60)
    task, again = (exp.multilabel_task(name, 3, n, 70) for _ in range(2))
    other, fewer = exp.multilabel_task(name, 4, n, 70), exp.multilabel_task(name, 3, n, 1, 5)
    assert len(task.X_train) == n and len(task.X_test) == 70
    for part in ("X_train", "X_test", "Y_train"):
        assert np.array_equal(getattr(task, part), getattr(again, part))
        assert not np.array_equal(getattr(task, part), getattr(other, part))
    assert np.array_equal(task.X_train, fewer.X_train), "the choice of C would train on other samples"
    columns = [task.names.index(label) for label in fewer.names]
    assert len(columns) == 5 and np.array_equal(fewer.Y_train, task.Y_train[:, columns])
    assert set(exp.multilabel_task(name, 3, n, 1, 3).names) < set(fewer.names)
    if data.train is not None:
        every = exp.multilabel_task(name, 3, 10**6, 10**6)
        assert np.array_equal(np.sort(every.X_train, axis=0), np.sort(data.X[data.train], axis=0))
        assert np.array_equal(np.sort(every.X_test, axis=0), np.sort(data.X[data.test], axis=0))


def test_whole_families_are_on_one_side():
    rng = np.random.default_rng(0)
    for n in (90, 123):
        families, Y = rng.permutation(np.arange(n) // 3), np.eye(2, dtype=int)[np.arange(n) % 2]
        train, test = exp.halves(Y, families, rng)
        held, rest = exp.held_back(families)
        for part, other in ((train, test), (held, rest)):
            assert sorted([*part, *other]) == list(range(n))
            assert not set(families[part]) & set(families[other])
        assert len(set(families[train])) == len(set(families)) // 2 and n // 4 - 3 < held.size <= n // 4


@pytest.mark.long  # describes pictures
def test_families_of_emoji_stay_on_one_side(monkeypatch):
    monkeypatch.setattr(exp, "KINDS", {"colour": ("RGB 1x1",), "silhouette": ("moments",)})
    exp.load_multilabel.cache_clear()
    data, kernels, groups, families = exp.load_multilabel("emoji")
    assert [kernel[0] for kernel in kernels] == ["RGB 1x1", "moments"] and groups == (0, 1)
    assert [type(kernel[1]) for kernel in kernels] == [Chi2, RBF]
    assert data.y.shape == (len(data.X), 131) and data.y.any(axis=1).all()
    family_of = {row.tobytes(): family for row, family in zip(data.X, families, strict=True)}
    for seed in (0, 1):
        train, test = exp.halves(data.y, families, np.random.default_rng(seed))
        assert sorted([*train, *test]) == list(range(len(data.y)))
        assert not set(families[train]) & set(families[test])
        assert data.y[train].any(axis=0).all(), "a keyword cannot be learnt"
        task = exp.multilabel_task("emoji", seed, 150, 300)
        assert [family_of[row.tobytes()] for row in task.X_train] == task.families.tolist()
        assert not {family_of[row.tobytes()] for row in task.X_test} & set(task.families)
    exp.load_multilabel.cache_clear()


def test_covering_rows_hold_positives_of_every_class():
    drawn = set()
    for seed in range(20):
        rng = np.random.default_rng(seed)
        Y = (rng.random((60, 8)) < rng.choice([0.02, 0.05, 0.3], 8)).astype(np.int8)
        rows = exp.covering_rows(Y, np.random.default_rng(seed))
        assert len(set(rows.tolist())) == len(rows) and rows.dtype.kind == "i"
        assert (Y[rows].sum(axis=0) >= np.minimum(2, Y.sum(axis=0))).all()
        assert len(rows) <= np.minimum(2, Y.sum(axis=0)).sum() and Y[rows].any(axis=1).all()
        assert np.array_equal(rows, exp.covering_rows(Y, np.random.default_rng(seed)))
        others = (exp.covering_rows(Y, np.random.default_rng([seed, k])) for k in range(3))
        drawn |= {(seed, *sorted(rows)) for rows in others}
    assert len(drawn) > 45, "nothing is drawn"
    assert exp.covering_rows(np.zeros((5, 2), dtype=int), np.random.default_rng(0)).size == 0
    # the rarest class is covered first, and its rows count for the others
    Y = np.zeros((40, 3), dtype=int)
    Y[:30, 0] = Y[:20, 1] = Y[[4, 7], 2] = 1
    for seed in range(5):
        assert sorted(exp.covering_rows(Y, np.random.default_rng(seed))) == [4, 7]


def test_sets_without_files_are_left_out(monkeypatch, capsys, tmp_path):
    def missing():
        raise datasets.DataFileError("no files")

    exp.load_multilabel.cache_clear()
    for place in ("", str(tmp_path)):
        monkeypatch.setenv("CUELEARN_DATA", place)
        assert exp.available_sets(True) == list(exp.SETS)
        messages = capsys.readouterr().out.splitlines()
        assert all(name in line for name, line in zip(exp.ORIGINAL_SETS, messages, strict=True))
    assert exp.available_sets(False) == list(exp.SETS) and not capsys.readouterr().out
    monkeypatch.setattr(exp, "ORIGINAL_SETS", {"missing": missing, "present": lambda: toy(True)})
    assert exp.available_sets(True) == [*exp.SETS, "present"] and "no files" in capsys.readouterr().out
    monkeypatch.setattr(exp, "ORIGINAL_SETS", {"broken": lambda: 1 / 0})
    with pytest.raises(ZeroDivisionError):
        exp.available_sets(True)
    exp.load_multilabel.cache_clear()


# ------------------------------------------------------------------ choice of C


@pytest.fixture
def watched(monkeypatch):
    """Rows that banks are made of ("trained") and that they are compared with ("judged")."""
    seen = {"trained": [], "judged": []}

    class Watched(KernelBank):
        def __init__(self, kernels, X, **options):
            seen["trained"].append(rows_of(X))
            super().__init__(kernels, X, **options)

        def cross(self, X_new, *args, **options):
            seen["judged"].append(rows_of(X_new))
            return super().cross(X_new, *args, **options)

    monkeypatch.setattr(exp, "KernelBank", Watched)
    return seen


@pytest.mark.parametrize("name", ["whole", "partial", "unsplit"])
def test_C_is_the_best_of_the_grid_on_training_samples_that_were_held_back(name, toys, watched):
    grid = [1e-3, 0.1, 1000.0]
    choice = exp.chosen_C(name, "MLMKLSum", 1, 61, grid)
    trained, judged = watched["trained"][0], watched["judged"][0]
    task = exp.multilabel_task(name, 1, 61, 80)
    assert not set(trained) & set(judged) and len(judged) == 15 == int(exp.VALIDATION * 61)
    assert sorted([*trained, *judged]) == sorted(rows_of(task.X_train))
    assert not {*trained, *judged} & set(rows_of(task.X_test))
    data, kernels, *_ = toys[name]
    bank, (_, usable) = KernelBank(kernels, data.X[trained]), signs_of(data.y[trained])
    values = []
    for C in grid:
        model = exp.METHODS["MLMKLSum"](C, 1, GROUPS).fit(bank, data.y[trained].astype(int))
        scores = model.decision_function(bank.cross(data.X[judged]))
        values.append(mean_precision(scores, data.y[judged], usable)[0])
    assert len(set(values)) > 1
    assert choice["validation"] == pytest.approx(max(values), abs=1e-9)
    assert choice["C"] == grid[int(np.argmax(values))] and isinstance(choice["C"], float)


# ------------------------------------------------------------------ table 1


@pytest.mark.parametrize("method", exp.METHODS)
def test_the_table_holds_what_a_plain_fit_gives(method, toys):
    row = exp.compare_multilabel("partial", method, 2, 40, 60, 3.0)
    task = exp.multilabel_task("partial", 2, 40, 60)
    bank = KernelBank(task.kernels, task.X_train)
    model = exp.METHODS[method](3.0, 2, task.groups).fit(bank, task.Y_train)
    usable = signs_of(task.Y_train)[1]
    assert usable.tolist() == [True, True, False, True, True]
    scores = model.decision_function(bank.cross(task.X_test))
    auc, n_judged = mean_precision(scores, task.Y_test, usable)
    assert row["auc"] == pytest.approx(auc, abs=1e-9) and row["skipped"] == 2 == 5 - n_judged
    n_solved, shared = getattr(model, "n_solved_", 0), model.kernel_weights_.ndim == 1
    assert row["seconds"] > 0 and row["n_solved"] == n_solved + shared * usable.sum() > 0
    assert row["n_combined"] == (getattr(model, "n_iter_", 0) + 1 if shared else n_solved)
    weights = np.atleast_2d(model.kernel_weights_).mean(axis=0)
    shares = [float(entry.rsplit(" ", 1)[1]) for entry in row["kernels"].split(", ")]
    assert shares == pytest.approx(np.sort(weights / weights.sum())[:-4:-1], abs=0.0051)


# ------------------------------------------------------------------ cost until the gap

GENES = {"name": "yeast", "seed": 0, "n_train": 40, "n_classes": 4, "C": 10.0}


def problem_of(name, seed, n_train, n_classes, C, svm_tol=1e-3):
    task = exp.multilabel_task(name, seed, n_train, 1, n_classes)
    return SharedProblem(KernelBank(task.kernels, task.X_train), signs_of(task.Y_train)[0], C, svm_tol)


def rerun(method, n_iter, seed, delta=0.2, problem=None, **point):
    problem = problem_of(seed=seed, **point) if problem is None else problem
    if method == "MLMKLSum":
        return solve_mlmkl_sum(problem, n_iter=n_iter, tol=None)
    options = {"delta": delta, "corrected": method == "MLMKLSA", "rng": np.random.default_rng(seed)}
    return solve_mlmkl_sa(problem, n_iter=n_iter, tol=None, **options)


def exact_gap(method, weights, gamma, **point):
    """Relative gap of the saddle point; for Sum, how far the mean optimum is above the least."""
    judge = problem_of(**point, svm_tol=1e-6)
    if method != "MLMKLSum":
        result = saddle_gap(judge, weights, gamma, tol=1e-5)
        return result.gap / result.worst
    m = judge.n_problems
    least = saddle_gap(judge, EQUAL, np.full(m, 1.0 / m), tol=1e-5).least
    return np.mean([judge.solve(k, weights).value for k in range(m)]) / least - 1.0


@pytest.fixture
def measured(monkeypatch):
    """Kernel weights whose certified gap was computed."""
    seen = []

    def spy(problem, weights, gamma, **options):
        seen.append(np.array(weights))
        return saddle_gap(problem, weights, gamma, **options)

    monkeypatch.setattr(exp, "saddle_gap", spy)
    return seen


@pytest.mark.parametrize(
    "method, wanted, seed", [("MLMKLSA", 0.1, 0), (PRINTED, 0.25, 0), ("MLMKLSum", 0.005, 1)]
)
def test_the_gap_was_reached_at_the_end_and_not_a_look_before(method, wanted, seed, measured):
    point = {**GENES, "seed": seed}
    cost = exp.cost_to_gap(method=method, wanted=wanted, most=2000, **point)
    m = problem_of(**point).n_problems
    assert cost["reached"] and cost["gap"] <= wanted and cost["seconds"] > 0 and cost["n_iter"] > 2
    assert cost["n_solved"] == cost["n_iter"] * (m if method == "MLMKLSum" else 1)
    run = rerun(method, cost["n_iter"], **point)
    assert run.n_solved == cost["n_solved"]
    start = exact_gap(method, EQUAL, np.full(m, 1.0 / m), **point)
    end = exact_gap(method, run.kernel_weights, run.gamma, **point)
    assert end <= wanted + 1e-4 and cost["gap"] >= end - 2e-4
    if method == "MLMKLSum":
        assert cost["start"] == pytest.approx(start, rel=0.05 * wanted, abs=0.1 * wanted)
        assert cost["gap"] == pytest.approx(end, abs=0.08 * wanted)
        looks = list(range(1, cost["n_iter"] + 1))
    else:  # all that is needed is that the start has not reached it
        assert wanted < cost["start"] <= start + 1e-4
        # the very averages of this run, and no others
        steps = range(1, run.n_iter + 1)
        looks = [next(t for t in steps if np.array_equal(run.path[t], weights)) for weights in measured[1:]]
        assert np.array_equal(measured[0], EQUAL) and looks[:4] == [1, 2, 3, 4][: len(looks)]
        assert all(a < b <= max(a + 1, 1.5 * a) for a, b in itertools.pairwise(looks))
        assert all(b > 1.4 * a for a, b in itertools.pairwise(looks) if a >= 30)
    assert looks[-1] == cost["n_iter"]
    before = rerun(method, looks[-2], **point)
    assert exact_gap(method, before.kernel_weights, before.gamma, **point) > 0.94 * wanted


@pytest.mark.parametrize("method", ["MLMKLSA", "MLMKLSum"])
def test_a_run_is_abandoned_after_so_many_svms(method, toys, monkeypatch):
    cost = exp.cost_to_gap("MLMKLSum", 0, 10.0, 0.02, 100, name="partial", n_train=40)
    assert cost["n_solved"] == 4 * cost["n_iter"]  # a class that cannot be learnt costs nothing
    assert np.isfinite(cost["gap"]) and cost["reached"]
    monkeypatch.undo()
    m, looks = problem_of(**GENES).n_problems, []
    for most in (8, 23):
        cost = exp.cost_to_gap(method, wanted=1e-3, most=most, **GENES)
        assert not cost["reached"] and cost["gap"] > 1e-3
        assert cost["n_iter"] == (most // m if method == "MLMKLSum" else most)
        assert most - m < cost["n_solved"] <= most
        looks.append(cost["gap"])
    assert looks[0] != looks[1]


@pytest.mark.parametrize("method", ["MLMKLSA", PRINTED])
def test_gaps_along_a_run_are_those_of_separate_runs(method):
    point, at = {**GENES, "seed": 2}, (3, 12, 40)
    table = exp.gap_after(**point, at=at, corrected=method == "MLMKLSA")
    assert table["n_iter"].tolist() == list(at) and table["slack"].between(0, 3e-4).all()
    for _, row in table.iterrows():
        run = rerun(method, int(row["n_iter"]), **point)
        gap = exact_gap(method, run.kernel_weights, run.gamma, **point)
        assert row["gap"] == pytest.approx(gap, abs=4e-4)


# ------------------------------------------------------------------ paths


@pytest.mark.parametrize("method", FIGURE_1)
def test_paths_of_kernel_weights_are_shares_from_equal_ones_on(method, toys):
    table = exp.weight_paths("partial", method, 1, 40, 2.0)
    task = exp.multilabel_task("partial", 1, 40, 1)
    names = [kernel[0] for kernel in task.kernels]
    assert table.columns.tolist() == ["seconds", *names]
    shares, seconds = table[names].to_numpy(), table["seconds"]
    assert shares.sum(axis=1) == pytest.approx(1.0) and (shares >= 0.0).all()
    assert shares[0] == pytest.approx(EQUAL)
    assert seconds.iloc[0] == 0.0 < seconds.iloc[1] and seconds.is_monotonic_increasing
    model = exp.METHODS[method](2.0, 1, task.groups)
    model.fit(KernelBank(task.kernels, task.X_train), task.Y_train)
    assert len(table) == len(model.history_) + 1 == len(model.path_) > 2
    for t in (1, len(table) // 2, -1):
        weights = np.atleast_2d(model.path_[t])
        weights = weights[weights.sum(axis=1) > 0.0]  # 0 for classes that were not trained
        assert shares[t] == pytest.approx((weights / weights.sum(axis=1, keepdims=True)).mean(axis=0))


def liblinear_auc(task, C, weights):
    """Average precision of liblinear's SVMs on features whose inner products are the combined kernel."""
    bank, n = KernelBank(task.kernels, task.X_train), len(task.X_train)
    across = next(iter(bank.cross(task.X_test).blocks()))[1]
    both = np.concatenate([bank.rows(np.arange(n)), across], axis=1).astype(float)
    combined = np.tensordot(weights, both, axes=1)
    values, vectors = np.linalg.eigh(combined[:n])
    features = combined @ (vectors / np.sqrt(np.maximum(values, 1e-7)))
    svm = LinearSVC(C=C, loss="hinge", dual=True, fit_intercept=False, tol=1e-7, max_iter=10**6)
    fits = (svm.fit(features[:n], y) for y in task.Y_train.T)
    scores = np.stack([fit.decision_function(features[n:]) for fit in fits], axis=1)
    return average_precision_score(task.Y_test, scores)


@pytest.mark.parametrize(
    "method, steps",
    [("MLMKLSA", {}), (PRINTED, {}), ("MLMKLSum", {}), (PRINTED, {"delta": 0.8, "factor": 30.0})],
)
def test_auc_over_time_is_that_of_svms_on_the_weights_of_the_run(method, steps, toys, monkeypatch):
    exact = lambda bank, signs, C, *svm_tol: SharedProblem(bank, signs, C, 1e-9, 100_000)
    monkeypatch.setattr(exp, "SharedProblem", exact)
    point, at = {"name": "whole", "seed": 3, "n_train": 40, "n_test": 70, "C": 2.0, **steps}, [0, 1, 4, 12]
    table = exp.over_time(method=method, n_iter=12, at=(*at, 13, 100), **point)
    task = exp.multilabel_task("whole", 3, 40, 70)
    problem = exact(KernelBank(task.kernels, task.X_train), signs_of(task.Y_train)[0], 2.0)
    if steps:
        options = {"eta": 30.0 / (40 * 2.0), "delta": 0.8, "corrected": False}
        run = solve_mlmkl_sa(problem, n_iter=12, tol=None, rng=np.random.default_rng(3), **options)
    else:
        run = rerun(method, 12, 3, problem=problem)
    assert table["iteration"].tolist() == at
    seconds = table["seconds"]
    assert seconds.iloc[0] == 0.0 < seconds.iloc[1] and seconds.is_monotonic_increasing
    names = [kernel[0] for kernel in task.kernels]
    assert table[names].to_numpy() == pytest.approx(run.path[at], abs=1e-12)
    for t, auc in zip(at, table["auc"], strict=True):
        assert auc == pytest.approx(liblinear_auc(task, 2.0, run.path[t]), abs=3e-4)
    moves = np.abs(np.diff(run.iterates, axis=0)).sum(axis=1)
    swings = [0.0, moves[:1].sum(), moves[1:4].sum(), moves[4:12].sum()]
    assert table["swing"].tolist() == pytest.approx(swings)


# ------------------------------------------------------------------ drawings


@pytest.fixture(autouse=True)
def _closed():
    """Every figure can be drawn."""
    yield
    for number in plt.get_fignums():
        plt.figure(number).canvas.draw()
    plt.close("all")


def runs_of(methods, x, y, names=("yeast",)):
    """Three draws of each set and method with a made-up number for every value of `x`."""
    rows = list(itertools.product(names, methods, range(3), *x.values()))
    table = pd.DataFrame(rows, columns=["name", "method", "seed", *x])
    rng = np.random.default_rng(0)
    return table.assign(**{column: rng.uniform(0.2, 0.9, len(table)).cumsum() for column in y})


def line_through(ax, x, y):
    """The line of a panel that goes through these points."""
    points = np.column_stack([np.asarray(x, dtype=float), np.asarray(y, dtype=float)])
    data = [(line, np.asarray(line.get_xydata(), dtype=float)) for line in ax.lines]
    (line,) = [line for line, xy in data if xy.shape == points.shape and np.allclose(xy, points, rtol=1e-9)]
    return line


def coloured(line, method):
    return to_hex(line.get_color()) == to_hex(method_style(method)["color"])


def test_drawn_costs_and_gaps_are_geometric_means():
    table = runs_of(SHARED, {"n_classes": (2, 4, 8)}, ["n_solved", "n_iter"])
    table["reached"] = table["seed"] > 0
    powers = pd.DataFrame(itertools.product(["yeast"], SHARED, (0, 1)), columns=["name", "method", "seed"])
    powers = powers.assign(exponent=0.3 + 0.2 * np.arange(4), factor=2.0 + np.arange(4))
    (ax,) = draw.cost_against_classes(table, powers).axes
    m = np.array([2.0, 4.0, 8.0])
    for k, method in enumerate(SHARED):
        runs, fit = table[table["method"] == method], powers[powers["method"] == method]
        aside = 1.05 ** (k - 1)  # points of different methods do not hide each other
        power = gmean(fit["factor"]) * m ** fit["exponent"].mean()
        means = runs.groupby("n_classes")["n_solved"].apply(gmean)
        assert coloured(line_through(ax, m * aside, means), method)
        assert coloured(line_through(ax, m, power), method)
        for reached, part in runs.groupby("reached"):
            points = line_through(ax, part["n_classes"] * aside, part["n_solved"])
            assert (points.get_marker() == "x") == (not reached)
        if method == "MLMKLSum":
            passes = line_through(ax, m * aside, runs.groupby("n_classes")["n_iter"].apply(gmean))
            assert passes.get_markerfacecolor() == "white"

    methods = ("MLMKLSA", PRINTED)
    table = runs_of(methods, {"n_iter": (4, 8, 16)}, ["gap"])
    (ax,) = draw.gap_over_iterations(table, dict.fromkeys(methods, -0.6)).axes
    for method, runs in table.groupby("method"):
        assert coloured(line_through(ax, [4, 8, 16], runs.groupby("n_iter")["gap"].apply(gmean)), method)
    line_through(ax, [4, 8, 16], table["gap"].max() * np.array([1.0, 0.5, 0.25]) ** 0.5)


def test_keywords_share_things_by_rows():
    images, texts, share = exp.keywords_together()
    assert len(images) == len(texts) == len(exp.SHOWN_THINGS) and images.shape[-1] == 3
    assert dict(texts)["rice ball"] == ["ball", "food", "japanese", "rice"]
    emoji = pictures.emoji()
    held = emoji.keywords[pictures.things()] > 0
    ice, sweet = (held[:, emoji.keyword_names.tolist().index(name)] for name in ("ice", "sweet"))
    assert share.loc["ice", "sweet"] == (ice & sweet).sum() / ice.sum()
    assert share.loc["sweet", "ice"] == (ice & sweet).sum() / sweet.sum()


def test_powers_are_those_of_each_draw_and_leave_out_abandoned_runs():
    points = list(itertools.product("ab", (0, 1, 2), (2, 4, 8, 16)))
    table = pd.DataFrame(points, columns=["method", "seed", "m"])
    table["cost"] = 3.0 * table["m"] ** (1.0 + table["seed"])
    powers = exp.powers(table, "cost", "m")
    assert_allclose(powers["exponent"], [1.0, 2.0, 3.0, 1.0, 2.0, 3.0])
    assert_allclose(powers["factor"], 3.0)
    table["reached"] = [point not in {("a", 1, 16), ("b", 0, 2), ("b", 0, 4)} for point in points]
    table.loc[~table["reached"], "cost"] = 1.0
    powers = exp.powers(table, "cost", "m")
    assert list(powers["method"] + powers["seed"].astype(str)) == ["a0", "a1", "a2", "b1", "b2"]
    assert_allclose(powers["exponent"], 1.0 + powers["seed"])
    assert exp.powers(table[table["m"] < 8], "cost", "m").empty


def test_a_run_is_shown_with_its_classes(toys):
    point = {"seed": 1, "name": "partial", "n_train": 40, "n_iter": 25}
    path, classes, _ = exp.watch_labels(None, 0.3, 10.0, corrected=False, **point)
    task = exp.multilabel_task("partial", 1, 40, 1)
    problem = SharedProblem(KernelBank(task.kernels, task.X_train), signs_of(task.Y_train)[0], 10.0)
    run = rerun(PRINTED, 25, 1, delta=0.3, problem=problem)
    assert path.columns.tolist() == [kernel[0] for kernel in task.kernels] and np.array_equal(path, run.path)
    assert classes["class"].tolist() == ["a", "b", "d", "e"]
    assert classes["weight"].to_numpy() == pytest.approx(run.gamma)
    assert classes["draws"].tolist() == [int((run.drawn == k).sum()) for k in range(4)]
    assert not path.equals(exp.watch_labels(None, 0.3, 10.0, **point)[0])


# ------------------------------------------------------------------ claims


@pytest.fixture
def judged(tmp_path):
    """The verdict on a claim, from a table and the record of what made it."""

    def verdict(claim, figure, table, key="", names=("yeast", "emoji")):
        table.to_csv(tmp_path / f"{figure}{key}.csv", index=False)
        record = {"data": [{"name": name, "tier": "bundled"} for name in names], "our_data": ", ".join(names)}
        (tmp_path / f"{figure}.json").write_text(json.dumps(record))
        return judge(claim, tmp_path)

    return verdict


def of_methods(column, values):
    """Three draws of both sets and every method, with a number that grows with the draw."""
    points = itertools.product(("yeast", "emoji"), values, range(3))
    rows = [(name, method, seed, values[method] * (1 + 0.01 * seed)) for name, method, seed in points]
    return pd.DataFrame(rows, columns=["name", "method", "seed", column])


def test_accuracy_and_work_are_judged_set_by_set(judged):
    methods = ("MLMKLSA", "MLMKLSum", "GMKL", "SimpleMKL", "VSKL", "AverageKernelSVM")
    table = of_methods("auc", dict(zip(methods, (0.8, 0.7, 0.6, 0.6, 0.5, 0.4), strict=True)))
    assert judged("mlmkl-1", "mlmkl-tab-1", table, ".runs").verdict == "holds"
    table.loc[(table["name"] == "emoji") & (table["method"] == "GMKL"), "auc"] += 0.3
    verdict = judged("mlmkl-1", "mlmkl-tab-1", table, ".runs")
    assert (verdict.verdict, len(verdict.parts), verdict.unit, verdict.n) == ("mixed", 10, "draw", 3)

    work = of_methods("n_solved", dict(zip(methods, (20, 30, 100, 100, 100), strict=False)))
    work = work.assign(seconds=1.0, n_combined=1.0)
    verdict = judged("mlmkl-2", "mlmkl-tab-1", work, ".runs")
    assert verdict.verdict == "holds" and "combinations of kernels: MLMKLSA 1 (yeast)" in verdict.text
    numbers = sorted(part.number for _, part in verdict.parts)
    assert numbers == pytest.approx([0.2] * 6 + [0.3] * 6)
    work.loc[work["method"] == "VSKL", "n_solved"] /= 2
    assert judged("mlmkl-2", "mlmkl-tab-1", work, ".runs").verdict == "mixed"

    way = of_methods("moved", {"MLMKLSA": 1.0, "MLMKLSum": 3.0})
    way["swing"] = way["moved"].where(way["method"] == "MLMKLSA", 0.1 * way["moved"])
    verdict = judged("mlmkl-4", "mlmkl-fig-2", way)
    assert verdict.verdict == "mixed" and verdict.number == pytest.approx(0.3)


def test_costs_are_judged_by_runs_that_reached_the_gap(judged):
    names = ("emoji", "leaves")
    points = itertools.product(names, ("MLMKLSA", PRINTED, "MLMKLSum"), range(3), (4, 16, 100))
    table = pd.DataFrame(points, columns=["name", "method", "seed", "n_classes"]).assign(reached=True)
    power = table["method"].map({"MLMKLSA": 1.3, PRINTED: 0.5, "MLMKLSum": 1.0}) + 0.01 * table["seed"]
    table["n_solved"] = table["n_classes"] ** power
    verdict = judged("mlmkl-3", "mlmkl-cor-1", table, names=names)
    assert verdict.verdict == "mixed" and verdict.number == pytest.approx(1.31)
    assert "Runs left out" not in verdict.text
    abandoned = (table["name"] == "leaves") & (table["method"] == PRINTED) & (table["n_classes"] == 100)
    table.loc[abandoned, ["reached", "n_solved"]] = False, 1.0
    verdict = judged("mlmkl-3", "mlmkl-cor-1", table, names=names)
    assert len(verdict.parts) == 5 and "9 of 9 of MLMKLSA printed on leaves" in verdict.text
    assert "Open: leaves, SA with the paper's estimates" in verdict.text


def test_steps_and_gaps_are_judged_draw_by_draw(judged):
    ends = {(0.0, 30.0): 0.1, (0.2, 30.0): 0.2, (0.6, 30.0): 0.2, (1.0, 30.0): 0.15}
    ends |= {(0.0, 3.0): 0.2, (0.0, 0.3): 0.2}
    points = itertools.product(ends.items(), range(3), (0, 9))
    rows = [(d, f, s, t, (t > 0) * (end + 0.001 * s * d)) for ((d, f), end), s, t in points]
    table = pd.DataFrame(rows, columns=["delta", "factor", "seed", "iteration", "auc"])
    with pytest.raises(FileNotFoundError, match="mlmkl-fig-4"):
        judged("mlmkl-5", "mlmkl-fig-3", table[table["factor"] == 30.0], names=("emoji",))
    steps = table[table["delta"] == 0.0]
    assert judged("mlmkl-5", "mlmkl-fig-4", steps, names=("emoji",)).verdict == "holds"
    table.loc[table["delta"] == 1.0, "auc"] += 0.1
    deltas = table[table["factor"] == 30.0]
    assert judged("mlmkl-5", "mlmkl-fig-3", deltas, names=("emoji",)).verdict == "mixed"

    points = itertools.product(("MLMKLSA", PRINTED), range(3), (10, 100, 1000))
    gaps = pd.DataFrame(points, columns=["method", "seed", "n_iter"])
    gaps["gap"] = gaps["n_iter"] ** -(0.5 + 0.01 * gaps["seed"])
    assert judged("mlmkl-6", "mlmkl-thm-1", gaps, names=("emoji",)).verdict == "holds"
    gaps.loc[gaps["method"] == PRINTED, "gap"] = 1.0 - 1e-4 * gaps["n_iter"] - 1e-3 * gaps["seed"]
    assert judged("mlmkl-6", "mlmkl-thm-1", gaps, names=("emoji",)).verdict == "mixed"

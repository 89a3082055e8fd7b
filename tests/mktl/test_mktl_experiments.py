"""Figures 6.2 and 6.3: who sees which samples, how parameters are chosen, what the numbers mean."""

import itertools
import types

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from companion import protocol
from companion.mktl import compare, settings, tasks, timing
from companion.mktl.tasks import TransferTask
from companion.run.claims import claims
from cuelearn.kernels import RBF
from cuelearn.mktl import MKTL, P_RANGE, AverageTL, MultiKT, NoTransfer, PriorFeatures

EFFORT = {"n_epochs": 3, "tol": 1e-2}
GRIDS = {"C": [0.1, 10.0], "p": [1.1, 1.5]}
CLASSES = {cls.__name__: cls for cls in (NoTransfer, PriorFeatures, AverageTL, MultiKT)}
REWEIGHTED = tuple(f"{name} weighted" for name in ("NoTransfer", "PriorFeatures", "AverageTL"))


# ------------------------------------------------------------------ small tasks, and methods that only watch


def made_task(names, n_priors, drawings, views, seed, numbered=False):
    """Random samples in any order; numbered: the first score column tells the row, in `same` with a minus."""
    X, y, scores = timing.random_problem(len(names), n_priors, drawings * views, seed)
    rng = np.random.default_rng(seed)
    order = rng.permutation(y.size)
    drawing = np.repeat(np.arange(len(names) * drawings), views)[order]
    X, y, scores = X[order], np.array(names)[y[order]], scores[order]
    same = scores + rng.normal(size=scores.shape)
    if numbered:
        scores = np.arange(y.size)[:, None] + 1.0 + 1000.0 * np.arange(n_priors)
        same = -scores
    priors = tuple(f"old {k}" for k in range(n_priors))
    width = float(2.0 * X.var(axis=0, ddof=1).sum())  # mean squared distance of different rows
    about = settings.SIMULATED, np.arange(y.size), list(range(X.shape[1])), (), (), width
    return TransferTask(X, y, scores, same, priors, drawing, None, *about)


def made_tasks(numbered=False):
    """By name the task of a figure, and that of other classes; of the last fewer samples can be drawn."""
    return {
        "few": (
            made_task(list("cadb"), 5, 8, 2, 1, numbered),
            made_task(list("efgh"), 5, 8, 2, 11, numbered),
        ),
        "one": (made_task(list("xyz"), 4, 7, 3, 2, numbered), made_task(list("uvw"), 4, 7, 3, 12, numbered)),
        "wide": (made_task(list("ba"), 4, 24, 1, 3, numbered), made_task(list("dc"), 4, 16, 1, 13, numbered)),
    }


SIZES = {"few": (3, 5), "one": (4,), "wide": (4,)}


def made_binary(numbered=False):
    """Six targets against a background (0); the last two are others."""
    found = {}
    for k, target in enumerate("ABCDEF"):
        task = made_task([1, 0], 4, 130, 1, 20 + k, numbered)
        few = np.flatnonzero((task.y == 0) | (task.drawing % 16 == 0))
        found[target] = task._replace(
            **{name: getattr(task, name)[few] for name in ("X", "y", "scores", "same", "drawing")}
        )
        if numbered:
            scores = np.arange(few.size)[:, None] + 1.0 + 1000.0 * np.arange(4)
            found[target] = found[target]._replace(scores=scores, same=-scores)
    return found


def placed(patch, multiclass=None, binary=None):
    """Put tasks in the place of the data sets'."""
    if multiclass:
        for module in (compare, timing):
            patch.setattr(module, "load_task", lambda name, others=False: multiclass[name][int(others)])
        setups = {name: tasks.Setup("cue", (), SIZES.get(name, (4,))) for name in multiclass}
        patch.setattr(compare, "TASKS", setups)
    if binary:
        patch.setattr(compare, "binary_task", lambda target: binary[target])
        patch.setattr(
            compare, "binary_targets", lambda others=False: list(binary)[4:] if others else list(binary)[:4]
        )


class Spy:
    """Stands in for an estimator: writes down what it is given, and is as right as it is told to be."""

    def __init__(self, notes, right, **asked):
        self.notes, self.right, self.note = notes, right, types.SimpleNamespace(**asked)
        if "MKTL" in asked["method"]:
            self.dual_gap_, self.objective_ = 0.01 * asked["C"], 4.0

    def fit(self, bank, y, scores=None):
        self.note.bank, self.note.y, self.note.scores = bank, y, scores
        return self

    def score(self, rows, y, sample_weight=None, scores=None):
        self.note.rows, self.note.y_judged, self.note.judged = rows, y, scores
        self.note.weight = sample_weight
        self.notes.append(self.note)
        return self.right(self.note)


def spied(patch, right=lambda note: 0.5):
    """Spies in the place of all methods; returns their notes, one per training."""
    notes = []
    for name, method in list(compare.METHODS.items()):

        def make(C, p, effort, seed, name=name, **chosen):
            return Spy(notes, right, method=name, C=C, p=p, effort=effort, seed=seed, more=chosen)

        patch.setitem(compare.METHODS, name, method._replace(make=make))
    return notes


def rows_of(scores):
    """Row numbers, from the first column of a numbered task."""
    return (np.abs(scores[:, 0]) - 1.0).astype(int)


def rbf(A, B, width):
    """Values between A and B; the width is a squared distance."""
    return np.exp(-((A[:, None] - B) ** 2).sum(axis=2) / width)


def cue(task):
    """The kernel of all methods for a task, as a user would write it."""
    return [("all", RBF(scale=task.width), slice(None))]


def some_parameters(method, C, p=1.1, class_weight=None):
    """Parameters of a method, in the form in which they are chosen."""
    found = {"C": C, "p": p if compare.METHODS[method].has_p else ""}
    return {**found, "class_weight": class_weight} if method == "MultiKT" else found


def check_note(note, task, n_priors=None):
    """A training saw these samples and no others, and one kernel; returns the rows."""
    train, judged = rows_of(note.scores), rows_of(note.judged)
    X = task.X[train]
    assert_array_equal(note.y, task.y[train])
    assert_array_equal(note.y_judged, task.y[judged])
    assert_allclose(note.bank.rows(np.arange(train.size))[0], rbf(X, X, task.width), atol=1e-5)
    assert_allclose(note.rows, rbf(task.X[judged], X, task.width)[None], atol=1e-5)
    source = task.same if compare.METHODS[note.method].same else task.scores
    assert_array_equal(note.scores, source[train][:, :n_priors])
    assert_array_equal(note.judged, source[judged][:, :n_priors])
    assert np.unique(train).size == train.size
    assert np.unique(judged).size == judged.size
    assert not set(train) & set(judged)
    return train, judged


def validated(method, n_priors=None, useless="", name="few", n=2, grids=GRIDS, draws=2, seed=0):
    return compare.validated(method, name, n, n_priors, useless, grids, EFFORT, draws, seed)


def picked(method, *given, run=0, grids=GRIDS, **more):
    """Parameters for the run of a seed."""
    return compare.picked(validated(method, *given, grids=grids, **more), method, grids, run)


def multiclass_accuracies(name, n, n_priors, useless, seed, chosen, effort):
    place = {"name": name, "n_per_class": n, "n_priors": n_priors, "useless": useless}
    return compare.accuracies(seed, chosen, effort, **place)


def binary_accuracies(target, seed, n_positive, chosen, effort):
    return compare.accuracies(seed, chosen, effort, target=target, n_positive=n_positive)


# ------------------------------------------------------------------ methods


@pytest.mark.parametrize(
    "right, C, p",
    [
        (lambda n: 0.5, 10.0, 1.5),
        (lambda n: 0.5 + 0.1 * (n.C != 10.0), 100.0, 1.5),  # the nearest to 10, whose end is further off
        (lambda n: 0.5 + 0.1 * ((n.C, n.p) in ((0.1, 1.5), (10.0, 1.1))), 10.0, 1.1),  # C before p
        (lambda n: 0.9 if (n.C, n.p) == (0.1, 1.1) else 0.8, 0.1, 1.1),
    ],
)
def test_ties_of_the_choice(monkeypatch, right, C, p):
    """Whatever the order of the grid; Multi-KT chooses its class weights too."""
    placed(monkeypatch, made_tasks(), made_binary())
    spied(monkeypatch, right)
    for C_grid, p_grid in (((0.1, 10.0, 100.0), (1.1, 1.5)), ((100.0, 0.1, 10.0), (1.5, 1.1))):
        grids = {"C": list(C_grid), "p": list(p_grid)}
        chosen = picked("MKTL", grids=grids, draws=1)
        assert chosen == {"C": C, "p": p, "validation": right(types.SimpleNamespace(C=C, p=p))}
    binary = compare.validated_binary("MKTL weighted", 2, grids, EFFORT, 1, 0)
    chosen = compare.picked(binary, "MKTL weighted", grids, 0)
    assert (chosen["C"], chosen["p"]) == (C, p)
    spied(monkeypatch, lambda n: 0.7 + 0.1 * (n.more == {"class_weight": None}))
    assert picked("MKTL auto") == {"C": 10.0, "p": "", "validation": 0.7}
    assert picked("MultiKT", draws=1) == {"C": 10.0, "p": "", "class_weight": None, "validation": 0.7 + 0.1}


def test_every_run_picks_on_a_sample_of_the_draws():
    """Means over draws taken with replacement; the same for all methods, others for another seed."""
    tried = np.random.default_rng(0).integers(0, 100, (2, 6)) / 100 + np.array([[0.0], [0.1]])
    picks = {}
    for seed in range(200):
        found = [
            compare.picked({"tried": tried.tolist()}, m, GRIDS, seed) for m in ("NoTransfer", "AverageTL")
        ]
        assert found[0] == found[1]
        picks.setdefault(found[0]["C"], []).append(found[0]["validation"])
    means = tried.mean(axis=1)
    better = compare.candidates("NoTransfer", GRIDS)[means.argmax()]["C"]
    assert len(picks) == 2 and len(picks[better]) > 100  # the better one more often, not always
    assert np.unique(picks[better]).size > 20
    assert np.mean(picks[better]) == pytest.approx(means.max(), abs=0.15)
    # a sum's rounding is no difference
    assert compare.picked({"tried": np.full((2, 3), 0.1).tolist()}, "NoTransfer", GRIDS, 3)["C"] == 10.0
    almost = [[0.2 - 1e-16, 0.2, 0.2], [0.2] * 3]
    assert compare.picked({"tried": almost}, "NoTransfer", GRIDS, 3)["C"] == 10.0


# ------------------------------------------------------------------ who sees what


@pytest.mark.parametrize(
    "name, n, trained, judged_on", [("few", 2, 2, 6), ("one", 6, 6, 6), ("wide", 15, 10, 6)]
)
def test_rows_of_validation(monkeypatch, name, n, trained, judged_on):
    """Samples of the other classes; the same draws and kernel for all methods and parameters.

    Where they have too few, fewer are trained on.
    """
    task = made_tasks(numbered=True)[name][1]
    placed(monkeypatch, {name: (None, task)})
    notes = spied(monkeypatch)
    seen, classes = {}, np.unique(task.y).size
    for method in compare.MULTICLASS:
        notes.clear()
        validated(method, name=name, n=n, draws=3)
        drawn = []
        for note in notes:
            train, judged = check_note(note, task)
            assert np.unique(task.y[train], return_counts=True)[1].tolist() == [trained] * classes
            assert np.unique(task.y[judged], return_counts=True)[1].tolist() == [judged_on] * classes
            kernel = note.bank.rows(np.arange(train.size))
            drawn.append(tuple(part.tobytes() for part in (train, judged, kernel, note.rows)))
        seen[method] = set(drawn)
        assert len(seen[method]) == 3 and all(drawn.count(one) == len(drawn) // 3 for one in seen[method])
    assert all(found == seen["NoTransfer"] for found in seen.values())


def test_draws_of_validation_are_those_of_no_other_seed(monkeypatch):
    """Those with more samples contain those with fewer."""
    placed(monkeypatch, made_tasks(numbered=True))
    notes = spied(monkeypatch)

    def drawn(**given):
        notes.clear()
        validated("AverageTL", grids={"C": [1.0], "p": []}, **given)
        return [rows_of(note.scores) for note in notes]

    first, other = drawn(draws=5), drawn(draws=5, seed=1)
    assert len({rows.tobytes() for rows in (*first, *other)}) == 10
    assert all(set(a) <= set(b) for a, b in zip(first, drawn(draws=5, n=4), strict=True))


def test_rows_of_the_binary_figure(monkeypatch):
    """Few of the target and 80 of the background train; parameters are chosen on other targets."""
    made = made_binary(numbered=True)
    placed(monkeypatch, binary=made)
    notes = spied(monkeypatch)
    seen = {}
    for method in compare.BINARY:
        notes.clear()
        compare.validated_binary(method, 3, GRIDS, EFFORT, 2, 4)
        seen[method] = []
        for target, note in zip("EEFF" * (len(notes) // 4), notes, strict=True):
            task = made[target]
            train, judged = check_note(note, task)
            assert np.bincount(task.y[train]).tolist() == [settings.N_NEGATIVE, 3]
            # both sides count the same
            sides = [note.weight[task.y[judged] == side].sum() for side in (0, 1)]
            assert_allclose(sides, judged.size / 2)
            seen[method].append((target, train.tobytes(), judged.tobytes()))
        assert len(set(seen[method])) == 4 and seen[method] == seen[method][:4] * (len(notes) // 4)
    assert all(set(found) == set(seen["MKTL"]) for found in seen.values())


def recorded(patch):
    """The true methods; their models in the order in which they are made."""
    models = []
    for name, method in list(compare.METHODS.items()):

        def make(*given, real=method.make, **chosen):
            models.append(real(*given, **chosen))
            return models[-1]

        if name != "MKTL auto":  # which is made by MKTL
            patch.setitem(compare.METHODS, name, method._replace(make=make))
    return models


def spoiled(task, kept):
    """A task whose samples are noise with other labels, besides those that are kept."""
    rng = np.random.default_rng(5)
    X, y, scores, same = task.X.copy(), task.y.copy(), task.scores.copy(), task.same.copy()
    lost = np.setdiff1d(np.arange(y.size), kept)
    for values in (X, scores, same):
        values[lost] = 50.0 * rng.normal(size=values[lost].shape)
    return task._replace(X=X, y=y, scores=scores, same=same)


def test_test_samples_reach_no_model(monkeypatch):
    """With noise in their place the true methods choose the same parameters and train the same models.

    No sample of the figure's classes takes part in the choice.
    """
    made, binary, told = made_tasks(), made_binary(), []
    few, pair = (
        tasks.draw(made["few"][0], 3, 1)[0],
        tasks.draw(binary["C"], {0: settings.N_NEGATIVE, 1: 2}, 1)[0],
    )
    for change in (lambda task, kept: task, spoiled):
        with monkeypatch.context() as patch:
            models = recorded(patch)
            placed(
                patch,
                {"few": (change(made["few"][0], few), made["few"][1])},
                {**binary, "C": change(binary["C"], pair)},
            )
            kinds = [*((m, "") for m in compare.MULTICLASS), ("MKTL", "noise 3")]
            found = {(m, u): validated(m, useless=u, draws=1) for m, u in kinds}
            found |= {m: compare.validated_binary(m, 2, GRIDS, EFFORT, 1, 0) for m in compare.BINARY}
            of_all = {m: compare.picked(found[m, ""], m, GRIDS, 1) for m in compare.MULTICLASS}
            of_two = {m: compare.picked(found[m], m, GRIDS, 1) for m in compare.BINARY}
            table = multiclass_accuracies("few", 3, 3, "", 1, of_all, EFFORT)
            two = binary_accuracies("C", 1, 2, of_two, EFFORT)
            told.append((found, models, [*table["accuracy"], *two["accuracy"]]))
    (found, models, right), (others, other_models, wrong) = told
    assert found == others and len(models) == len(other_models) > 50
    for one, other in zip(models, other_models, strict=True):
        assert_array_equal(one.dual_coef_, other.dual_coef_)
        assert_array_equal(one.transfer_weights_, other.transfer_weights_)
    assert np.mean(right) > np.mean(wrong) + 0.1


def test_accuracies_are_those_of_the_estimators(monkeypatch):
    """Each method as a user would call it: an RBF on all columns, scores beside them; the gaps too."""
    task, pair = made_tasks()["few"][0], made_binary()["E"]
    placed(monkeypatch, {"few": (task, None)}, {"E": pair})
    several = multiclass_accuracies(
        "few", 4, 3, "", 2, {m: some_parameters(m, 10.0) for m in compare.MULTICLASS}, EFFORT
    )
    two = {}
    for weight in ("balanced", None):
        chosen = {m: some_parameters(m, 10.0, 1.1, weight) for m in compare.BINARY}
        two[weight] = binary_accuracies("E", 2, 6, chosen, EFFORT)
    rows = tasks.draw(pair, {0: settings.N_NEGATIVE, 1: 6}, 2)
    for table, weight, data, (train, test), cut in (
        (several, None, task, tasks.draw(task, 4, 2), 3),
        *((found, weight, pair, rows, 4) for weight, found in two.items()),
    ):
        for method, found, gap in zip(table["method"], table["accuracy"], table["gap"], strict=True):
            if method in REWEIGHTED:
                model = CLASSES[method.removesuffix(" weighted")](cue(data), C=10.0, class_weight="balanced")
            elif method == "MultiKT":
                model = MultiKT(cue(data), C=10.0, class_weight=weight)
            elif method in CLASSES:
                model = CLASSES[method](cue(data), C=10.0)
            else:
                of_classes = "positive" if method == "MKTL weighted" else None
                p = "auto" if method == "MKTL auto" else 1.1
                model = MKTL(cue(data), C=10.0, p=p, class_weight=of_classes, random_state=2, **EFFORT)
            scores = (data.same if method == "MultiKT" else data.scores)[:, :cut]
            model.fit(data.X[train], data.y[train], scores=scores[train])
            right = model.predict(data.X[test], scores=scores[test]) == data.y[test]
            by_class = [right[data.y[test] == label].mean() for label in np.unique(data.y)]
            assert found == pytest.approx(np.mean(by_class), abs=1e-12)
            if isinstance(model, MKTL):
                assert 0.0 <= gap <= EFFORT["tol"]
                assert gap == pytest.approx(model.dual_gap_ / model.objective_, abs=1e-9)
            else:
                assert np.isnan(gap)


# ------------------------------------------------------------------ useless scores


def test_useless_scores():
    """Whole rows dealt out at random, or noise with nothing of the task in it; by the seed."""
    task = made_tasks()["few"][0]
    n = len(task.y)
    assert compare.useless_scores(task, "", 0) is None
    assert compare.useless_scores(task, "none", 0).shape == (n, 0)
    dealt = compare.useless_scores(task, "shuffled", 0)
    assert sorted(map(tuple, dealt)) == sorted(map(tuple, task.scores))
    assert np.mean((dealt == task.scores).all(axis=1)) < 0.2
    hidden = task._replace(y=task.y[::-1], X=task.X[::-1])
    assert_array_equal(dealt, compare.useless_scores(hidden, "shuffled", 0))
    noise = compare.useless_scores(task, "noise 17", 3)
    assert noise.shape == (n, 17) and not np.array_equal(noise, compare.useless_scores(task, "noise 17", 4))
    other = task._replace(scores=task.scores[:, :2] + 3.0, same=-task.same)
    assert_array_equal(noise, compare.useless_scores(other, "noise 17", 3))
    large = compare.useless_scores(task._replace(y=np.zeros(40_000)), "noise 3", 0)
    assert_allclose(np.cov(large.T), np.eye(3), atol=0.03)


@pytest.mark.parametrize("kind", ["none", "shuffled", "noise 6"])
def test_useless_scores_take_the_place_of_all(monkeypatch, kind):
    """In validation and in the figure, for Multi-KT too; rows belong to the samples."""
    task, others = made_tasks(numbered=True)["few"]
    placed(monkeypatch, {"few": (task, others)})
    notes = spied(monkeypatch)
    some = ("NoTransfer", "MultiKT", "MKTL")
    wanted = compare.useless_scores(task, kind, 2)
    multiclass_accuracies("few", 3, None, kind, 2, {m: some_parameters(m, 1.0) for m in some}, EFFORT)
    assert len(notes) == 3
    for note in notes:
        for found, rows in zip((note.scores, note.judged), tasks.draw(task, 3, 2), strict=True):
            assert_array_equal(found, wanted[rows])
    notes.clear()
    validated("MultiKT", useless=kind, seed=2)
    assert len(notes) == 2 * len(GRIDS["C"]) * 2  # draws, C and class weights
    first = compare.FIRST_VALIDATION_SEED + 200
    wanted = np.vstack([compare.useless_scores(others, kind, first + k) for k in range(2)])
    for note in notes:
        rows = [{tuple(row) for row in found} for found in (note.scores, note.judged)]
        assert rows[0] | rows[1] <= {tuple(row) for row in wanted}
        assert note.scores.shape == (8, wanted.shape[1])
        assert_array_equal(np.unique(note.y, return_counts=True)[1], [2] * 4)


# ------------------------------------------------------------------ whole figures


def odd(note):
    """An accuracy that depends on all a point may depend on: parameters in the wrong place show."""
    weighted = 2.0 * (note.more.get("class_weight") is not None)
    given = 3.0 * note.rows.sum() + 5.0 * note.scores.shape[1] + len(note.method)
    return float(np.cos(7.0 * note.C + given + (note.p or 0.0) + weighted))


def check_points(table, names, wanted, chosen):
    """Every point once, with its accuracy, its gap and the parameters chosen for it."""
    assert {*names, "accuracy", "gap", "C", "p"} <= set(table)
    found = list(table[names].itertuples(index=False, name=None))
    assert len(found) == len(set(found)) and set(found) == set(wanted)
    for row in table.itertuples(index=False):
        one = chosen(row)
        assert (row.C, row.p) == (one["C"], one["p"]), row


def test_multiclass_has_every_point(monkeypatch, sweep):
    placed(monkeypatch, made_tasks())
    notes = spied(monkeypatch, odd)
    o = {"few": (1, 4), "one": (2,), "draws": 2}
    table = compare.multiclass(sweep, ["few", "one"], [3, 5], o, GRIDS, EFFORT)
    before = len(notes)
    places = list(itertools.product((1, 4), (3, 5), compare.MULTICLASS))
    places = [place for place in places if place[1:] != (3, "NoTransfer")]  # which has no priors
    wanted = {("few", n, k, s, m) for n, k, m in places for s in (3, 5)}
    wanted |= {("one", 2, 4, s, m) for s in (3, 5) for m in compare.MULTICLASS}
    tried = [len(compare.candidates(m, GRIDS)) for m in [*(m for _, _, m in places), *compare.MULTICLASS]]
    assert before == len(wanted) + 2 * sum(tried)  # on two draws

    def chosen(row):  # with the first seed, by the point's own method, number of samples and of priors
        place = row.method, row.name, row.n_per_class, row.n_priors
        found = compare.validated(*place, "", GRIDS, EFFORT, 2, 3)
        return compare.picked(found, row.method, GRIDS, row.seed)

    check_points(table, ["name", "n_per_class", "n_priors", "seed", "method"], wanted, chosen)
    assert table.groupby(["method"])["C"].nunique().max() == 2  # the check above can tell them apart
    before = len(notes)
    again = compare.multiclass(sweep, ["few", "one"], [3, 5], o, GRIDS, EFFORT)
    pd.testing.assert_frame_equal(table, again)
    assert len(notes) == before  # all of it was kept


def test_lost():
    """Against No-Transfer on the same draw, not in the mean."""
    rows = [("none", "NoTransfer", n, s, 0.5 + 0.1 * s) for n in (1, 5) for s in (0, 1, 2)]
    rows += [("shuffled", "MKTL", n, s, 0.4 + 0.1 * s - 0.01 * n) for n in (1, 5) for s in (0, 1, 2)]
    table = pd.DataFrame(rows, columns=["useless", "method", "n_per_class", "seed", "accuracy"])
    found = compare.lost(table.sample(frac=1, random_state=0)).set_index(["useless", "method", "n_per_class"])
    assert_allclose(found.loc[("shuffled", "MKTL")].loc[[1, 5]], [[-11.0] * 3, [-15.0] * 3])
    assert len(found) == 2


def test_binary_has_every_point(monkeypatch, sweep):
    placed(monkeypatch, binary=made_binary())
    spied(monkeypatch, odd)
    o = {"n_positive": (1, 5), "targets": 3, "draws": 1}
    table = compare.binary(sweep, [1, 4], o, GRIDS, EFFORT)
    targets = list(dict.fromkeys(table["target"]))
    assert targets == list("ABC")
    seeds = {"A": (1, 4), "B": (3, 6), "C": (5, 8)}  # each target has draws of its own
    places = itertools.product((1, 5), compare.BINARY)
    wanted = [(t, s, n, m) for n, m in places for t, mine in seeds.items() for s in mine]
    validations = {
        (m, n): compare.validated_binary(m, n, GRIDS, EFFORT, 1, 1)
        for m, n in itertools.product(compare.BINARY, (1, 5))
    }

    def chosen(row):
        return compare.picked(validations[row.method, row.n_positive], row.method, GRIDS, row.seed)

    check_points(table, ["target", "seed", "n_positive", "method"], wanted, chosen)
    for row in table.itertuples():  # and these were trained with, class weights and all
        one = {row.method: chosen(row)}
        again = binary_accuracies(row.target, row.seed, row.n_positive, one, EFFORT)
        assert again["accuracy"].tolist() == [row.accuracy]
        assert_array_equal(again["gap"], [row.gap])


def test_more_draws_have_the_parameters_of_the_figure(monkeypatch, sweep):
    monkeypatch.setitem(SIZES, "objects", (3, 5))
    placed(monkeypatch, {"objects": made_tasks()["few"]})
    notes = spied(monkeypatch, odd)
    o = {"objects": (1, 4), "draws": 2}
    curves = compare.multiclass(sweep, ["objects"], [3, 5], o, GRIDS, EFFORT)
    before = len(notes)
    table = compare.number_of_priors(sweep, range(3, 8), o, GRIDS, EFFORT)
    assert len(notes) - before == len(table) == 2 * 2 * 5  # nothing was validated again
    assert set(table["method"]) == {"MKTL"} and set(table["seed"]) == set(range(3, 8))
    both = curves.merge(table, on=["n_per_class", "n_priors", "seed", "method"])
    assert len(both) == 2 * 2 * 2
    for name in ("accuracy", "C", "p"):
        assert (both[f"{name}_x"] == both[f"{name}_y"]).all()


# ------------------------------------------------------------------ fitted models


def test_confusion(monkeypatch):
    """Of each class the shares are those of all its test samples, over all runs, each with its parameters."""
    placed(monkeypatch, {"few": (made_tasks()["few"][0], None)})
    place, runs = {"name": "few", "n_per_class": 3, "n_priors": 4}, []
    for seed, C in ((0, 1.0), (4, 100.0)):
        chosen = {m: some_parameters(m, C) for m in ("MKTL", "NoTransfer", "PriorFeatures")}
        found = multiclass_accuracies("few", 3, 4, "", seed, chosen, EFFORT)
        parameters = pd.DataFrame([chosen[m] for m in found["method"]])
        runs.append(pd.concat([found, parameters], axis=1).assign(seed=seed, **place))
    curves = pd.concat([*runs, runs[0].assign(n_per_class=1), runs[0].assign(name="other")])
    table = compare.confusion(curves, "few", 3, ("MKTL", "PriorFeatures"), EFFORT)
    assert table.columns.tolist() == ["method", "true", "said", "share"]
    assert_allclose(table.groupby(["method", "true"])["share"].sum(), 1.0)
    assert set(table["method"]) == {"MKTL", "PriorFeatures"}
    right = pd.concat(runs).groupby("method")["accuracy"].mean()
    for method, mine in table[table["true"] == table["said"]].groupby("method"):
        assert mine["share"].sum() / 4 == pytest.approx(right[method], abs=1e-12)


@pytest.mark.parametrize("n_priors", [None, 2])
def test_transfer_weights(monkeypatch, n_priors):
    task = made_tasks()["few"][0]
    placed(monkeypatch, {"few": (task, None)})
    chosen = {"C": 10.0, "p": 1.2}
    table = compare.transfer_weights("few", 3, 5, chosen, EFFORT, n_priors)
    trial = compare.multiclass_trial("few", 5, n_priors, "", 3)
    model = trial.fitted("MKTL", chosen, EFFORT, 3)
    names = [f"old {k}" for k in range(n_priors or 5)]
    expected = list(itertools.product("abcd", names))
    assert list(table[["new", "prior"]].itertuples(index=False, name=None)) == expected
    train, test = tasks.draw(task, 5, 3)
    S = task.scores[:, :n_priors]
    own = MKTL(cue(task), C=10.0, p=1.2, random_state=3, **EFFORT)
    own.fit(task.X[train], task.y[train], scores=S[train])
    assert_allclose(table["weight"], own.transfer_weights_.ravel(), atol=1e-9)
    X = task.X[train][own.support_]
    K = rbf(X, X, task.width)
    block = own.kernel_weights_[0] * np.sqrt(np.einsum("ic,ij,jc->", own.dual_coef_, K, own.dual_coef_))
    assert_allclose(table["kernel"], block, rtol=1e-4)
    assert np.ptp(table["kernel"]) == 0.0 and np.ptp(table["weight"]) > 0.0
    # the weights are those of scaled scores: with the kernel's part they make the decision values
    scaled = S[test] / np.sqrt(np.mean(S[train] ** 2, axis=0))
    parts = scaled @ table.pivot(index="new", columns="prior", values="weight")[names].to_numpy().T
    parts += own.kernel_weights_[0] * rbf(task.X[test], X, task.width) @ own.dual_coef_
    assert_allclose(model.decision_function(trial.rows, scores=trial.scores[False][1]), parts, atol=1e-4)
    assert_array_equal(trial.y_judged, task.y[test])
    expected = np.mean(np.array(list("abcd"))[parts.argmax(axis=1)] == trial.y_judged)
    assert trial.accuracy("MKTL", chosen, EFFORT, 3) == expected


@pytest.mark.parametrize("p", [1.01, 2.0, "auto"])
def test_along_p(monkeypatch, p):
    task = made_tasks()["few"][0]
    silent = task._replace(scores=np.zeros_like(task.scores))
    placed(monkeypatch, {"few": (task, None), "silent": (silent, None)})
    loose = {"n_epochs": 3, "tol": 0.5}
    found = compare.along_p("few", 2, 6, p, 10.0, loose)
    train, test = tasks.draw(task, 6, 2)
    model = MKTL(cue(task), C=10.0, p=p, random_state=2, n_epochs=3, tol=1e-3)
    model.fit(task.X[train], task.y[train], scores=task.scores[train])
    expected = model.score(task.X[test], task.y[test], scores=task.scores[test])
    assert found["accuracy"] == pytest.approx(expected, abs=1e-12)
    weights = np.abs(model.transfer_weights_)
    assert found["used"] == np.sum(weights >= 0.01 * weights.max()) / 4
    assert found["objective"] == pytest.approx(model.objective_, abs=1e-9)
    assert found["gap"] == pytest.approx(model.dual_gap_, abs=1e-9)
    assert 0.0 <= found["gap"] <= 1e-3 * found["objective"]  # however loose the effort
    q = 2.0 * np.log(1 + 4 * 5)
    assert found["p_found"] == pytest.approx(q / (q - 1.0) if p == "auto" else p)
    found_silent = compare.along_p("silent", 2, 6, p, 10.0, loose)  # scores that are all 0
    assert found_silent["used"] == 0.0 and 0.0 <= found_silent["gap"] <= 1e-3 * found_silent["objective"]
    if p in (1.01, 2.0):
        assert 0.0 < found["used"] <= 5.0 and (found["used"] < 5.0) == (p == 1.01)


# ------------------------------------------------------------------ training time


@pytest.mark.parametrize("memory", [False, True])
def test_seconds_are_the_least_and_the_first_training_does_not_count(monkeypatch, memory):
    """The first is one on every fifth sample; one more measures the memory, if asked for."""
    clock, trainings = [0.0], []
    lasts = [0.5, 3.0, 1.0, 2.0, 0.7]
    _, labels, values = timing.random_problem(10, 40, 3, 0)

    class Slow:
        def fit(self, bank, y, scores=None):
            wanted = slice(None) if trainings else slice(None, None, 5)
            for given, true in zip((y, scores), (labels[wanted], values[wanted]), strict=True):
                assert_array_equal(given, true)
            assert bank.n_samples == y.size == (30 if trainings else 6)
            clock[0] += lasts[len(trainings)]
            trainings.append(bank)
            return self

    monkeypatch.setitem(compare.METHODS, "MKTL", compare.Method(lambda *given: Slow()))
    monkeypatch.setattr(protocol, "time", types.SimpleNamespace(perf_counter=lambda: clock[0]))
    found = timing.training_time("random", "MKTL", 3, 1.0, 1.1, EFFORT, 3, 0, memory)
    assert found["seconds"] == 1.0 and np.isnan(found["memory"]) != memory
    # the kernel matrix is made every time
    assert len(trainings) == 4 + memory == len({id(bank) for bank in trainings})


# ------------------------------------------------------------------ settings


@pytest.mark.parametrize("profile", ["quick", "full"])
def test_grids_hold_the_ranges_of_the_thesis(profile):
    """And nothing lies beyond their ends in p; draws are as many as planned for the claims."""
    size = settings.settings(profile)
    assert set(settings.C_RANGE) < set(size["C"]) < set(size["binary"]["C"])
    assert {min(size["p"]), max(size["p"])} == {1.01, 2.0}
    assert profile != "full" or set(P_RANGE) < set(size["p"])
    planned = claims("mktl")[profile]
    assert (planned[["mktl-3", "mktl-5"]] == str(size["multiclass"]["seeds"])).all()
    assert int(planned["mktl-4"]) == size["multiclass"]["more_seeds"] >= size["multiclass"]["seeds"]
    targets = planned[["mktl-1", "mktl-2"]].str.split(" ").str[0]
    assert (targets == str(size["binary"]["targets"])).all()

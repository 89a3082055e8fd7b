"""Figures 6.2 and 6.3: who sees which samples, how parameters are chosen, what the numbers mean."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from companion import mktl as exp
from companion.mktl import TransferTask
from cuelearn.kernels import RBF
from cuelearn.mktl import MKTL, AverageTL, MultiKT, NoTransfer, PriorFeatures

EFFORT = {"n_epochs": 3, "tol": 1e-2}
GRIDS = {"C": [0.1, 10.0], "p": [1.1, 1.5]}
CLASSES = {cls.__name__: cls for cls in (NoTransfer, PriorFeatures, AverageTL, MultiKT)}


def made_task(names, n_priors, drawings, views, seed):
    X, y, scores = exp.random_problem(len(names), n_priors, drawings * views, seed)
    rng = np.random.default_rng(seed)
    order = rng.permutation(y.size)
    drawing = np.repeat(np.arange(len(names) * drawings), views)[order]
    X, y, scores = X[order], np.array(names)[y[order]], scores[order]
    same = scores + rng.normal(size=scores.shape)
    priors = tuple(f"old {k}" for k in range(n_priors))
    width = float(2.0 * X.var(axis=0, ddof=1).sum())  # mean squared distance of different rows
    rest = exp.SIMULATED, np.arange(y.size), list(range(X.shape[1])), (), (), width
    return TransferTask(X, y, scores, same, priors, drawing, None, *rest)


def few():
    """A task of the figure, and that of other classes; of the latter at most five samples can be drawn."""
    return made_task(list("cadb"), 5, 8, 2, 1), made_task(list("efgh"), 5, 8, 1, 11)


def made_binary():
    """Six targets against a background (0); the last two are those that parameters are chosen on."""
    made = {}
    for k, target in enumerate("ABCDEF"):
        task = made_task([1, 0], 4, 130, 1, 20 + k)
        rows = np.flatnonzero((task.y == 0) | (task.drawing % 16 == 0))
        names = ("X", "y", "scores", "same", "drawing")
        made[target] = task._replace(**{name: getattr(task, name)[rows] for name in names})
    return made


def placed(patch, multiclass, binary):
    patch.setattr(exp, "load_task", lambda name, others=False: multiclass[int(others)])
    patch.setattr(exp, "TASKS", {"objects": exp.Setup("cue", (), (3, 5))})
    patch.setattr(exp, "binary_task", lambda target: binary[target])
    ends = {False: list("ABCD"), True: list("EF")}
    patch.setattr(exp, "binary_targets", lambda others=False: ends[others])


@pytest.fixture
def made(monkeypatch):
    multiclass, binary = few(), made_binary()
    placed(monkeypatch, multiclass, binary)
    return multiclass, binary


def parameters(method, C, p=1.1):
    chosen = {"C": C, "p": p if method in ("MKTL", "MKTL weighted") else ""}
    return {**chosen, "class_weight": "balanced"} if method == "MultiKT" else chosen


def place(n_per_class):
    return {"name": "objects", "n_per_class": n_per_class, "n_priors": 3, "useless": ""}


def by_hand(task, method, chosen, rows, n_priors=None, seed=0):
    """Accuracy (mean over the classes) and certified gap of a method as a user would call it."""
    train, test = rows
    cue = [("all", RBF(scale=task.width), slice(None))]
    weight = chosen.get("class_weight")
    if method.startswith("MKTL"):
        p = chosen["p"] or method.removeprefix("MKTL ")
        weight = "positive" if method == "MKTL weighted" else None
        model = MKTL(cue, C=chosen["C"], p=p, class_weight=weight, random_state=seed, **EFFORT)
    else:
        name, _, weighted = method.partition(" ")
        model = CLASSES[name](cue, C=chosen["C"], class_weight="balanced" if weighted else weight)
    scores = (task.same if method == "MultiKT" else task.scores)[:, :n_priors]
    model.fit(task.X[train], task.y[train], scores=scores[train])
    right = model.predict(task.X[test], scores=scores[test]) == task.y[test]
    accuracy = np.mean([right[task.y[test] == label].mean() for label in np.unique(task.y)])
    return accuracy, model.dual_gap_ / model.objective_ if method.startswith("MKTL") else np.nan


@pytest.mark.parametrize(
    "accuracy, C, p",
    [
        (lambda C, p: 0.5, 10.0, 1.5),
        (lambda C, p: 0.5 + 0.1 * (C != 10.0), 100.0, 1.5),  # the nearest to 10, whose end is further off
        (lambda C, p: 0.5 + 0.1 * ((C, p) in ((0.1, 1.5), (10.0, 1.1))), 10.0, 1.1),  # C before p
        (lambda C, p: 0.2 - 1e-16 * (C == 10.0), 10.0, 1.5),  # a sum's rounding is no difference
    ],
)
def test_ties_of_the_choice(accuracy, C, p):
    """Whatever the order of the grid."""
    for C_grid, p_grid in (((0.1, 10.0, 100.0), (1.1, 1.5)), ((100.0, 0.1, 10.0), (1.5, 1.1))):
        grids = {"C": list(C_grid), "p": list(p_grid)}
        tried = [[accuracy(point["C"], point["p"])] * 3 for point in exp.candidates("MKTL", grids)]
        chosen = exp.picked({"tried": tried}, "MKTL", grids, 0)
        assert (chosen["C"], chosen["p"]) == (C, p)


def test_every_run_picks_on_a_sample_of_the_draws():
    """The same for all methods, others for another seed: the better one more often, not always."""
    tried = [[0.0, 0.9, 0.2, 0.7], [0.5, 0.8, 0.6, 0.1]]
    picks = []
    for seed in range(200):
        one, other = (exp.picked({"tried": tried}, m, GRIDS, seed) for m in ("NoTransfer", "AverageTL"))
        assert one == other
        picks.append(one["C"])
    better = exp.candidates("NoTransfer", GRIDS)[1]["C"]
    assert 100 < picks.count(better) < 200


def spoiled(task, kept):
    """A task whose samples are noise, besides those that are kept."""
    rng = np.random.default_rng(5)
    lost = np.setdiff1d(np.arange(task.y.size), kept)
    changed = {name: getattr(task, name).copy() for name in ("X", "scores", "same")}
    for values in changed.values():
        values[lost] = 50.0 * rng.normal(size=values[lost].shape)
    return task._replace(**changed)


def test_test_samples_reach_no_model(monkeypatch, recorded):
    """With noise in their place the true methods choose the same parameters and train the same models.

    No sample of the figure's classes takes part in the choice.
    """
    (task, other), binary, results = few(), made_binary(), []
    size = {0: exp.N_NEGATIVE, 1: 2}
    train, pair = exp.draw(task, 3, 1)[0], exp.draw(binary["C"], size, 1)[0]
    for change in (lambda task, kept: task, spoiled):
        with monkeypatch.context() as patch:
            models = recorded(patch, exp, "model_of")
            placed(patch, (change(task, train), other), {**binary, "C": change(binary["C"], pair)})
            chosen, of_two = {}, {}
            for m in exp.MULTICLASS:
                validation = exp.validated(m, GRIDS, EFFORT, 1, 0, **{**place(2), "n_priors": None})
                chosen[m] = exp.picked(validation, m, GRIDS, 1)
            for m in exp.BINARY:
                validation = exp.validated(m, GRIDS, EFFORT, 1, 0, n_positive=2)
                of_two[m] = exp.picked(validation, m, GRIDS, 1)
            table = exp.accuracies(1, chosen, EFFORT, **place(3))
            two = exp.accuracies(1, of_two, EFFORT, target="C", n_positive=2)
            results.append((chosen, of_two, models, [*table["accuracy"], *two["accuracy"]]))
    (*one, models, right), (*other, other_models, wrong) = results
    assert one == other and len(models) == len(other_models) > 50
    for first, second in zip(models, other_models, strict=True):
        assert_array_equal(first.dual_coef_, second.dual_coef_)
        assert_array_equal(first.transfer_weights_, second.transfer_weights_)
    assert np.mean(right) > np.mean(wrong) + 0.1


def test_accuracies_are_those_of_the_estimators(made):
    (task, _), binary = made
    several = {m: parameters(m, 10.0) for m in exp.MULTICLASS}
    of_two = {m: parameters(m, 10.0) for m in exp.BINARY}
    pair, size = binary["E"], {0: exp.N_NEGATIVE, 1: 6}
    for table, chosen, data, rows, n_priors in (
        (exp.accuracies(2, several, EFFORT, **place(4)), several, task, exp.draw(task, 4, 2), 3),
        (
            exp.accuracies(2, of_two, EFFORT, target="E", n_positive=6),
            *(of_two, pair, exp.draw(pair, size, 2), None),
        ),
    ):
        assert table["method"].tolist() == list(chosen)
        for row in table.itertuples():
            wanted = by_hand(data, row.method, chosen[row.method], rows, n_priors, 2)
            assert_allclose((row.accuracy, row.gap), wanted, atol=1e-9)
            assert not row.gap > EFFORT["tol"]


@pytest.mark.parametrize("kind", ["none", "shuffled", "noise 3"])
def test_useless_scores(made, kind):
    task = made[0][0]
    useless = exp.useless_scores(task, kind, 2)
    if kind == "shuffled":
        assert sorted(map(tuple, useless)) == sorted(map(tuple, task.scores))
        assert np.mean((useless == task.scores).all(axis=1)) < 0.2
    else:
        other = task._replace(scores=task.scores[:, :2] + 3.0, same=-task.same)
        assert_array_equal(useless, exp.useless_scores(other, kind, 2))
    trial = exp.multiclass_trial("objects", 3, None, kind, 2)
    for method in ("MKTL", "MultiKT"):
        for part, rows in zip(trial.scores_for(method), exp.draw(task, 3, 2), strict=True):
            assert_array_equal(part, useless[rows])

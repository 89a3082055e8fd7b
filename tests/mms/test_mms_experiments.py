"""Figures 5.3 and 5.6, tables 5.1 to 5.4: who sees what, and that their numbers are those of plain counts."""

import inspect
import itertools
import json
import types

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist
from sklearn.svm import LinearSVC

from companion.mms import artificial, methods, naming, poses, printed
from companion.mms.claims import with_all
from companion.mms.settings import C_RANGE, settings
from companion.protocol import GridEdgeWarning
from companion.run.claims import claims
from cuelearn.datasets import VERBS
from cuelearn.datasets.captioned import POSE_CUES
from cuelearn.mms import MMS, CandidateSet, Matching, best_labelings, most_violating

EFFORT = {"n_epochs": 3, "n_rounds": 2}
MADE = {"n_candidates": 4, "p_correlated": 0.25, "p_ambiguous": 0.5}
LETTERS = {"name": "letter", "n_bags": 16, "n_test": 40, **MADE}
NEWS = {"seed": 1, "n_items": 80, "n_names": 30, "protocol": "I", "occurrences": 3}
PLACED = {**NEWS, "protocol": "II", "occurrences": 2}
POSED = {"seed": 1, "n_items": 110, "n_test": 25, "n_names": 30}
SOME = {"C": 1.0, "class_weight": "", "width": 0.5, "components": 5}


@pytest.fixture
def bags():
    return artificial.bags_of(seed=0, **LETTERS)


def recorded(monkeypatch, module, of="make"):
    """The models that a module makes, in the order in which they are made."""
    real, models = getattr(module, of), []

    def make(*given):
        model = real(*given)
        models.append(model)
        return model

    monkeypatch.setattr(module, of, make)
    return models


def assert_equal_scores(models, others, X):
    assert len(models) == len(others) > 0
    for one, other in zip(models, others, strict=True):
        a, b = one.decision_function(X), other.decision_function(X)
        for p, q in zip(*((s if isinstance(s, list) else [s]) for s in (a, b)), strict=True):
            assert_array_equal(p, q)


def moments_of_random(sets, labels):
    """Mean and variance of RANDOM's share of right labels, by listing every bag's candidates."""
    total = variance = 0.0
    for i in range(sets.n_bags):
        truth = labels[sets.bag_starts[i] : sets.bag_starts[i + 1]]
        right = np.array([(z[:, 0] == truth).sum() for z in sets.iterate(i)])
        total, variance = total + right.mean(), variance + right.var()
    return total / len(labels), variance / len(labels) ** 2


def objective(w, b, X, sets, C, inference="heap"):
    """(5.3) of hyperplanes with a bias, bag by bag."""
    scores, total = X @ w.T + b, 0.0
    best = best_labelings(scores, sets)[:, 0]
    for i in range(sets.n_bags):
        part = slice(sets.bag_starts[i], sets.bag_starts[i + 1])
        value = most_violating(scores[part], sets, i, inference)[1]
        total += max(0.0, value - scores[part][np.arange(sets.bag_sizes[i]), best[part]].sum())
    return 0.5 / (C * sets.n_bags) * (np.sum(w**2) + np.sum(b**2)) + total / sets.n_bags


# ------------------------------------------------------------------ settings


def test_settings_can_be_carried_out():
    for sizes in map(settings, ("smoke", "quick", "full")):
        json.dumps(sizes)
        grids = (sizes["grid"], sizes["poses"]["C"], sizes["artificial"]["L"], sizes["poses"]["widths"])
        assert all(list(g) == sorted(set(g)) and g[0] > 0 for g in grids)  # ties take the first
        assert set(sizes["grid"]) | set(sizes["poses"]["C"]) <= set(C_RANGE)
        for o in (sizes["rounds"], sizes["search"]["trained"], sizes["bound"]):
            assert set(o["names"]) <= set(sizes["artificial"]["names"])
    assert set(C_RANGE) > {0.1, 1, 10, 100, 1000} and sizes["grid"] == C_RANGE  # the thesis's, and more
    assert sizes["naming"]["occurrences"] == {"I": 20, "II": 3}
    assert sizes["poses"]["n_items"] - sizes["poses"]["n_test"] == 1600
    for name in ("letter", "pendigits", "satimage"):
        assert 5 * sizes["artificial"]["n_bags"] <= len(artificial.load_set(name).train)


def test_as_many_runs_as_the_claims_were_planned_with():
    for profile in ("quick", "full"):
        sizes = settings(profile)
        artificial = sizes["artificial"]
        parts = [artificial, {"seeds": artificial["more_seeds"]}, artificial]
        parts += [sizes["rounds"], sizes["search"]["trained"]]
        parts += [sizes["naming"], {"seeds": sizes["naming"]["placed"]}, sizes["poses"]]
        parts += [sizes["bound"]] * 2
        assert claims("mms")[profile].astype(int).tolist() == [part["seeds"] for part in parts]
        assert sizes["naming"]["placed"] <= sizes["naming"]["seeds"]
        assert artificial["seeds"] <= artificial["more_seeds"]


# ------------------------------------------------------------------ methods


class Spy:
    """Notes what it is given; its answers are right for a share that depends on C, or the same for all C."""

    def __init__(self, C, weight, notes, truth, good):
        self.C, self.weight, self.notes, self.truth, self.good = C, weight, notes, truth, good

    def fit(self, X, candidates):
        self.notes.append((self.C, self.weight, X[:, 0].astype(int), candidates))
        return self

    def decision_function(self, X):
        rows = X[:, 0].astype(int)
        self.notes[-1] += (rows,)
        labels = (
            self.truth[rows] if self.C == self.good else (self.truth[rows] + 1 + np.arange(len(rows)) % 2) % 3
        )
        return np.eye(3)[labels]


def spied(monkeypatch, truth, good=None, name="spy"):
    notes = []
    monkeypatch.setitem(
        methods.METHODS, name, lambda C, weight, seed, effort: Spy(C, weight, notes, truth, good)
    )
    return notes


def test_parameters_are_chosen_on_bags_that_were_held_back(monkeypatch):
    rng = np.random.default_rng(0)
    sizes = rng.integers(1, 4, size=23)
    truth = rng.integers(3, size=sizes.sum())
    sets = CandidateSet.from_labels(truth, sizes, n_labels=3)
    X = np.arange(len(truth), dtype=float)[:, None]
    notes = spied(monkeypatch, truth)
    found = methods.choose("spy", X, sets, truth, (0.1, 1.0, 10.0), 3, EFFORT)
    assert found == {"C": 0.1, "class_weight": ""}  # all equally bad
    assert [note[0] for note in notes] == [0.1, 1.0, 10.0]
    for _, weight, rows, inner, held in notes:
        assert weight is None
        assert_array_equal(np.sort(np.concatenate([rows, held])), np.arange(len(truth)))
        assert inner.n_bags == 23 - int(methods.VALIDATION * 23) and len(rows) == inner.n_instances
        for i in range(inner.n_bags):  # whole bags, each with its own candidates
            mine = rows[inner.bag_starts[i] : inner.bag_starts[i + 1]]
            (bag,) = set(sets.bag_of[mine])
            assert len(mine) == sizes[bag]
            assert_array_equal(inner.bag(i), sets.bag(bag))
        assert len(set(sets.bag_of[held]) & set(sets.bag_of[rows])) == 0
    assert len({tuple(note[4]) for note in notes}) == 1  # the same bags for every C
    spied(monkeypatch, truth, good=10.0)
    assert methods.choose("spy", X, sets, truth, (0.1, 1.0, 10.0), 3, EFFORT)["C"] == 10.0
    notes = spied(monkeypatch, truth, good=1.0, name="CLSVM")
    found = methods.choose("CLSVM", X, sets, truth, (0.1, 1.0), 3, EFFORT)
    assert found == {"C": 1.0, "class_weight": ""}  # without weights where both do as well
    assert [note[:2] for note in notes] == [(C, w) for C in (0.1, 1.0) for w in (None, "balanced")]


@pytest.mark.parametrize("P", [1, 2])
def test_share_consistent_is_a_plain_count(P):
    rng = np.random.default_rng(P)
    lists = [rng.integers(3, size=(rng.integers(1, 5), m, P)) for m in (1, 2, 3, 4, 2)]
    sets = CandidateSet(lists, n_labels=3)
    labels = rng.integers(3, size=(12, P))
    lost = sum(
        min(np.sum(z != labels[a : a + len(z)]) for z in zs)
        for zs, a in zip(lists, sets.bag_starts, strict=False)
    )
    expected = pytest.approx(1.0 - lost / (12 * P), abs=1e-12)
    assert methods.share_consistent(labels if P > 1 else labels[:, 0], sets) == expected
    assert 0 < lost < 12 * P


def test_share_consistent_with_a_matching():
    """Two faces, three names: a face may have null, but not both, nor the same name."""
    sets = CandidateSet(
        [Matching(np.array([[1], [2], [3]]), np.ones((2, 4), dtype=bool))], n_labels=5, null=0
    )
    for labels, lost in (([1, 2], 0), ([0, 3], 0), ([0, 0], 1), ([2, 2], 1), ([4, 1], 1), ([4, 4], 2)):
        # (4, 4): one of the two slots can be null, the other a name, neither is 4
        assert methods.share_consistent(np.array(labels), sets) == 1.0 - lost / 2


@pytest.mark.parametrize("multi_class", ["crammer_singer", "ovr"])
@pytest.mark.parametrize("shown", [(1, 3), (0, 2, 4)])
def test_labels_that_training_did_not_show(multi_class, shown):
    rng = np.random.default_rng(0)
    y = np.resize(shown, 60)
    X = np.eye(5)[y] + 0.1 * rng.standard_normal((60, 5))
    model = methods.SupervisedSVM(C=10.0, multi_class=multi_class)
    model.fit(X, CandidateSet.from_labels(y, np.full(20, 3), n_labels=5))
    new = rng.standard_normal((50, 5))
    scores = model.decision_function(new)
    assert scores.shape == (50, 5)
    missing = [k for k in range(5) if k not in shown]
    assert scores[:, missing].max() < scores[:, list(shown)].min() - 1e6
    assert set(methods.predicted(model, new)) == set(shown)
    assert (methods.predicted(model, X) == y).all()
    options = {"loss": "hinge", "multi_class": multi_class, "tol": 1e-2, "max_iter": 500, "random_state": 0}
    plain = LinearSVC(C=10.0, **options).fit(X, y)
    assert_array_equal(methods.predicted(model, new), plain.predict(new))
    # within a caption that offers nothing else, such a label is still assigned
    only = CandidateSet([[[missing[0]]]] * 50, n_labels=5)
    assert (methods.assigned(model, new, only) == missing[0]).all()


def test_who_is_given_the_truth(monkeypatch, bags):
    """Supervised methods are fitted on one candidate per bag, which is the truth, and take no more."""
    data, _, _ = bags
    seen, real = [], methods.SupervisedSVM.fit
    monkeypatch.setattr(
        methods.SupervisedSVM, "fit", lambda self, X, sets: seen.append((X, sets)) or real(self, X, sets)
    )
    artificial.accuracies(0, dict.fromkeys(methods.SUPERVISED, SOME), EFFORT, **LETTERS)
    assert len(seen) == 2
    for X, sets in seen:
        assert sets.n_candidates == [1] * 16
        assert_array_equal(sets.classes[0][np.concatenate([sets.bag(i)[0, :, 0] for i in range(16)])], data.y)
        assert_array_equal(X, data.X)
    for name in methods.SUPERVISED:
        with pytest.raises(ValueError, match="candidates must hold one candidate per bag"):
            methods.make(name, SOME, 0, EFFORT).fit(data.X, data.candidates)
    assert set(methods.METHODS) == {*methods.WEAK, *methods.SUPERVISED}
    assert not set(methods.WEAK) & set(methods.SUPERVISED)


def test_parameters_arrive():
    """C, class weight, seed and effort arrive."""
    chosen = {"C": 7.0, "class_weight": "balanced"}
    for name in methods.METHODS:
        model = methods.make(name, chosen, 9, EFFORT)
        assert model.C == 7.0
        unweighted = name in methods.SUPERVISED  # the protocol has no weights for it
        assert getattr(model, "class_weight", "balanced") == (None if unweighted else "balanced")
        assert (
            methods.make(name, {**chosen, "class_weight": ""}, 9, EFFORT).__dict__.get("class_weight") is None
        )
    model = methods.make("MMS", chosen, 9, EFFORT)
    assert (model.n_epochs, model.n_rounds, model.random_state, model.inference) == (3, 2, 9, "heap")


def test_every_choice_at_an_end_is_told():
    """Also where the first draw chose well."""
    table = pd.DataFrame({"method": ["A", "A", "B"], "C": [1.0, 10.0, 1.0]})
    with pytest.warns(GridEdgeWarning):
        said = methods.edges(table, ["method"], C=(0.1, 1.0, 10.0))
    assert said == "A: C = 10 is the largest tried (1 of 2)"


# ------------------------------------------------------------------ figure 5.3


@pytest.mark.parametrize("method", list(methods.METHODS))
def test_hidden_labels_reach_only_those_who_are_given_them(monkeypatch, bags, method):
    """With the truth permuted, and other test samples, the same C and the same models."""
    data, X_test, y_test = bags
    grid = (0.1, 10.0)

    def trained(*made):
        with monkeypatch.context() as patch:
            patch.setattr(artificial, "bags_of", lambda *a, **k: made)
            models = recorded(patch, methods)
            chosen = artificial.validated("letter", method, 0, 16, grid, EFFORT)
            table = artificial.accuracies(0, {method: SOME}, EFFORT, **LETTERS)
            return chosen, models, table

    hidden = data._replace(y=np.random.default_rng(8).permutation(data.y))
    chosen, models, table = trained(data, X_test, y_test)
    other, others, changed = trained(hidden, X_test[::-1] + 1.0, y_test)
    if method in methods.WEAK:
        assert chosen == other
        assert_equal_scores(models, others, X_test)
        assert table["assignment"][0] != changed["assignment"][0]  # which is counted against the truth
    else:
        assert not np.array_equal(models[-1].decision_function(X_test), others[-1].decision_function(X_test))


def test_training_bags_and_test_samples():
    """They come from the two parts of a data set; scales from the training part; the mean of 2 x 2 pixels."""
    for name in ("letter", "satimage", "pendigits"):
        data = artificial.load_set(name)
        assert_array_equal(
            artificial.samples(name).X, artificial.features(name, data, np.arange(len(data.y)))
        )
        assert not set(data.train) & set(data.test)
        bags, X_test, y_test = artificial.bags_of(name, 3, 10, 25, **MADE)
        rows = np.random.default_rng([3, 50]).permutation(data.train)[:50][bags.order]
        assert_array_equal(bags.y, data.y[rows])
        assert_array_equal(bags.X, artificial.features(name, data, rows))
        new = np.random.default_rng([3, 57]).permutation(data.test)[:25]
        assert_array_equal(y_test, data.y[new])
        assert_array_equal(X_test, artificial.features(name, data, new))
        whole = artificial.features(name, data, data.train)
        used = whole.min(axis=0) < whole.max(axis=0)
        assert np.allclose(whole.min(axis=0)[used], -1.0) and np.allclose(whole.max(axis=0)[used], 1.0)
        assert bags.X.dtype == np.float32 and bags.candidates.bag_sizes.tolist() == [5] * 10
        assert all(n == 5 for n in bags.candidates.n_candidates)  # L ambiguous ones and the right one
        harder, _, _ = artificial.bags_of(name, 3, 10, 25, n_candidates=9, p_correlated=0.25, p_ambiguous=0.0)
        assert_array_equal(harder.y, bags.y)  # the same samples, in the same bags
    assert artificial.features("pendigits", artificial.load_set("pendigits"), [0]).shape == (1, 16)
    rng = np.random.default_rng(0)
    image = rng.integers(256, size=784).astype(float)
    pixels = rng.permutation(784)  # columns by pixel, in any order
    tiny = types.SimpleNamespace(
        X=np.stack([np.zeros(784), image[pixels]]), pixels=pixels, train=np.arange(2)
    )
    blocks = [np.hsplit(rows, 14) for rows in np.vsplit(image.reshape(28, 28), 14)]
    wanted = np.mean(blocks, axis=(2, 3)).ravel() / 255
    assert_allclose(artificial.features("mnist", tiny, [1])[0], wanted, rtol=1e-6)


def test_curves_have_every_point(sweep):
    o = {"n_bags": 12, "n_test": 30, "L": (1, 4), "hardness": ((0.0, 0.0), (0.25, 0.5))}
    assert inspect.signature(artificial.curves).parameters["methods"].default == tuple(methods.METHODS)
    four = ("MMS", "CLSVM", "MC-SVM", "1vA-SVM")
    table = artificial.curves(sweep, ("satimage",), (5, 6), o, (0.1, 10.0), EFFORT, four, further=(7,))
    columns = ["seed", "n_candidates", "p_correlated", "p_ambiguous", "method"]
    pairs = [(seed, method) for seed in (5, 6) for method in four] + [(7, "MMS"), (7, "MC-SVM")]
    wanted = {(s, L, *hard, m) for (s, m), L, hard in itertools.product(pairs, o["L"], o["hardness"])}
    points = list(table[columns].itertuples(index=False, name=None))
    assert len(points) == len(wanted) and set(points) == wanted
    assert with_all(table)["seed"].unique().tolist() == [5, 6]
    given = table["method"].isin(methods.SUPERVISED)
    assert (table[given].groupby(["seed", "method"])["accuracy"].nunique() == 1).all()
    assert (table.loc[given, "assignment"] == 1.0).all() and (table.loc[~given, "assignment"] < 1.0).any()
    assert table[given].groupby("method")["accuracy"].nunique().min() > 1  # each seed has its own
    chosen = {
        m: artificial.validated("satimage", m, 6, 12, (0.1, 10.0), EFFORT) for m in ("MMS", "CLSVM", "MC-SVM")
    }
    place = {"n_candidates": 1, "p_correlated": 0.0, "p_ambiguous": 0.0}
    own = artificial.accuracies(6, chosen, EFFORT, name="satimage", n_bags=12, n_test=30, **place)
    rows = table[(table[["seed", *place]] == [6, *place.values()]).all(axis=1)].set_index("method")
    for method, parameters in chosen.items():
        assert rows.loc[method, ["C", "class_weight"]].tolist() == list(parameters.values())
    compared = ["accuracy", "assignment"]
    pd.testing.assert_frame_equal(rows.loc[list(chosen), compared], own.set_index("method")[compared])


@pytest.mark.parametrize(
    "solver, inference", [("frank-wolfe", "heap"), ("pegasos", "heap"), ("frank-wolfe", "exact")]
)
def test_accuracy_by_round_is_that_of_its_round(solver, inference):
    """The hyperplanes that give a round's accuracy give its objective (5.3), counted anew."""
    made = {**LETTERS, "n_candidates": 8, "n_test": 200}
    table = artificial.by_round(2, 4, solver, 0.7, inference, **made)
    bags, X_test, y_test = artificial.bags_of(seed=2, **made)
    sets, seen = bags.candidates, []
    model = MMS(C=0.7, n_rounds=50, n_epochs=4, solver=solver, inference=inference, random_state=2)
    model.set_params(
        callback=lambda m, r: seen.append((m.coef_.astype(float), m.intercept_.astype(float))) or False
    ).fit(bags.X, sets)
    assert len(table) == len(seen) > 1 and table["round"].tolist() == list(range(1, len(seen) + 1))
    truth = np.searchsorted(sets.classes[0], y_test)
    for row, (w, b) in zip(table.itertuples(), seen, strict=True):
        assert row.objective == pytest.approx(objective(w, b, bags.X, sets, 0.7, inference), rel=1e-4)
        assert row.accuracy == pytest.approx(np.mean(np.argmax(X_test @ w.T + b, axis=1) == truth), abs=1e-12)
    assert table["accuracy"].nunique() > 1


# ------------------------------------------------------------------ tables 5.1 to 5.4


@pytest.mark.parametrize("where", [NEWS, PLACED], ids=["I", "II"])
def test_null_is_label_0_and_the_truth_counts_as_the_candidates_do(where):
    data, sets, labels = naming.problem(**where)
    names = data.names_with(where["occurrences"])
    assert sets.null == (0,)
    assert sets.classes[0].tolist() == ["null", *sets.classes[0][1:]]
    assert set(sets.classes[0][1:]) == set(names)
    assert sets.n_instances == len(labels) == len(data.faces)
    assert sets.bag_sizes.tolist() == data.bag_sizes.tolist()
    known = labels > 0
    assert 0.1 < known.mean() < 0.9
    assert_array_equal(sets.classes[0][labels[known]], data.names[known])  # who it is
    offered = sets.bag_mask()[sets.bag_of, labels]
    assert offered[known].all()  # no name that the caption does not have
    assert all(
        sets.contains(i, labels[sets.rows([i])]) for i in range(sets.n_bags) if known[sets.rows([i])].any()
    )
    said = data.mentions.assign(label=data.labels[data.mentions["name"]])
    for i in range(sets.n_bags):
        expected = set(said.loc[said["item"] == i, "label"]) & set(names)
        assert set(sets.classes[0][1:][sets.bag_mask()[i, 1:]]) == expected
    often = said[~data.is_test[said["item"]]].groupby("label")["item"].nunique()
    assert set(names) == set(often.index[often >= where["occurrences"]])


def test_training_items_are_no_test_items():
    data, sets, labels = naming.problem(**NEWS)
    train, test = np.flatnonzero(~data.is_test), np.flatnonzero(data.is_test)
    assert len(train) and len(test)
    weak, given, half = (naming.training(m, **NEWS) for m in ("MMS", "MC-SVM", "MC-SVM half"))
    assert_array_equal(weak[0], data.faces[sets.rows(train)])
    assert_array_equal(given[0], weak[0])
    seen = {face.tobytes() for face in weak[0]}
    assert not seen & {face.tobytes() for face in data.faces[sets.rows(test)]}
    assert weak[1].n_candidates == [sets.n_candidates[i] for i in train] and max(weak[1].n_candidates) > 1
    assert_array_equal(given[2], labels[sets.rows(train)])
    # half of the training items, as they are
    assert half[1].n_bags == len(train) // 2
    assert {face.tobytes() for face in half[0]} < seen and len(half[0]) == len(half[2]) == half[1].n_instances
    truth = {face.tobytes(): label for face, label in zip(given[0], given[2], strict=True)}
    assert [truth[face.tobytes()] for face in half[0]] == half[2].tolist()
    again = naming.training("MC-SVM half", **NEWS)
    assert_array_equal(again[0], half[0])
    other = naming.training("MC-SVM half", **{**NEWS, "seed": 2})
    assert other[0].shape != half[0].shape or not np.array_equal(other[0], half[0])


def test_positions_are_constraint_d_and_nothing_else():
    data, plain, labels = naming.problem(**PLACED, constraints="ABC")
    same, placed, again = naming.problem(**PLACED, constraints="ABCD")
    assert same is data
    assert_array_equal(labels, again)
    assert_array_equal(plain.classes[0], placed.classes[0])
    fewer = 0
    for i in range(plain.n_bags):
        wide, narrow = ({z.tobytes() for z in sets.iterate(i)} for sets in (plain, placed))
        assert narrow <= wide
        fewer += narrow < wide
        assert data.has_position[i] or narrow == wide
    assert fewer > 0
    assert not data.is_test[data.has_position].any()
    own, with_places = naming.training("MMS", **PLACED), naming.training("MMS positions", **PLACED)
    assert_array_equal(own[0], with_places[0])
    assert_array_equal(own[2], with_places[2])
    assert sum(with_places[1].n_candidates) < sum(own[1].n_candidates)
    expected = ["MMS", "MC-SVM", "RANDOM", "1vA-SVM"]
    assert [naming.half_of(m) for m in ("MMS positions", "MC-SVM half", "RANDOM", "1vA-SVM")] == expected


def test_random_is_near_its_expectation():
    for where, names in ((NEWS, ("RANDOM",)), (PLACED, ("RANDOM", "RANDOM positions"))):
        table = naming.naming_run(**where, chosen=dict.fromkeys(names, SOME), effort=EFFORT).set_index(
            "method"
        )
        data, sets, labels = naming.problem(**where, constraints="ABC")
        test = np.flatnonzero(data.is_test)
        for name in names:
            _, part, truth = naming.training(name, **where)
            for column, given, right in (
                ("assignment", part, truth),
                ("recognition", sets.take(test), labels[sets.rows(test)]),
            ):
                mean, variance = moments_of_random(given, right)
                assert abs(table.loc[name, column] - mean) <= 4.0 * np.sqrt(variance / naming.DRAWS) + 1e-12
                assert variance > 0.0
            assert table.loc[name, "n_train"] == len(truth)
            assert table.loc[name, "n_test"] == len(sets.rows(test))
            assert table.loc[name, "null"] == np.mean(labels[sets.rows(test)] == 0)
            assert table.loc[name, "n_names"] == len(data.names_with(where["occurrences"]))
    assert table.loc["RANDOM positions", "assignment"] > table.loc["RANDOM", "assignment"]


@pytest.mark.parametrize(
    "where, method",
    [(NEWS, m) for m in ("RANDOM", "CLSVM", "MIMLSVM", "MC-SVM half")]
    + [(PLACED, m) for m in ("RANDOM positions", "MMS positions", "1vA-SVM")],
)
def test_captions_are_all_that_weak_methods_see(monkeypatch, where, method):
    """With the truth permuted and other faces on the test items, the same C and the same models."""
    faces = naming.problem(**where)[0].faces.copy()
    runs = []
    for hidden in (False, True):
        with monkeypatch.context() as patch:
            if hidden:
                real = naming.problem

                def other(*a, real=real, **k):
                    data, sets, labels = real(*a, **k)
                    rng = np.random.default_rng(4)
                    changed = data.faces.copy()
                    rows = sets.rows(np.flatnonzero(data.is_test))
                    changed[rows] = rng.random((len(rows), changed.shape[1]))
                    return data._replace(faces=changed), sets, rng.permutation(labels)

                patch.setattr(naming, "problem", other)
            models = recorded(patch, methods)
            alone = naming.half_of(method) == "RANDOM"
            plain, options = naming.half_of(method), {"grid": (0.1, 10.0), "effort": EFFORT}
            chosen = None if alone else naming.naming_parameters(plain, **where, **options)
            table = naming.naming_run(**where, chosen={method: SOME}, effort=EFFORT)
            runs.append((chosen, models, table.iloc[0]))
    (chosen, models, row), (other_chosen, others, other_row) = runs
    if naming.half_of(method) == "RANDOM":
        assert models == others == []
    elif naming.half_of(method) in methods.WEAK:
        assert chosen == other_chosen
        assert_equal_scores(models, others, faces)
        assert row["assignment"] != other_row["assignment"]
    else:
        assert np.isnan(row["assignment"])
        assert not np.array_equal(models[-1].decision_function(faces), others[-1].decision_function(faces))


def test_assignment_and_recognition_are_plain_counts(monkeypatch):
    models = recorded(monkeypatch, methods)
    row = naming.naming_run(**PLACED, chosen={"MMS positions": SOME}, effort=EFFORT).iloc[0]
    (model,) = models
    data, placed, labels = naming.problem(**PLACED, constraints="ABCD")
    right = {True: [], False: []}
    for i in range(placed.n_bags):
        rows = placed.rows([i])
        scores, truth = model.decision_function(data.faces[rows]), labels[rows]
        if data.is_test[i]:
            right[True] += (scores.argmax(axis=1) == truth).tolist()
        else:
            best = max(placed.iterate(i), key=lambda z, s=scores: s[np.arange(len(s)), z[:, 0]].sum())
            right[False] += (best[:, 0] == truth).tolist()
    assert row["assignment"] == pytest.approx(np.mean(right[False]))
    assert row["recognition"] == pytest.approx(np.mean(right[True]))


def test_both_searches_on_captions():
    table = naming.naming_with_each_search(
        **NEWS, effort=EFFORT, most_items=20, most_faces=2, most_candidates=3
    )
    assert table["inference"].tolist() == ["heap", "exact"]
    assert table["same"].between(0.0, 1.0).all() and table["accuracy"].between(0.0, 1.0).all()
    data, sets, labels = naming.problem(**NEWS, constraints="ABC")
    small = [
        i for i in np.flatnonzero(~data.is_test) if sets.bag_sizes[i] <= 2 and sets.n_candidates[i] <= 3
    ][:20]
    assert (table["compared"] == -(-len(small) // 5)).all() and 0 < len(small)
    part, test = sets.take(small), sets.rows(np.flatnonzero(data.is_test))
    X = data.faces[sets.rows(small)]
    for row in table.itertuples():
        model = methods.make("MMS", SOME, 1, EFFORT).set_params(inference=row.inference).fit(X, part)
        assert row.accuracy == np.mean(methods.predicted(model, data.faces[test]) == labels[test])
        scores = np.split(model.decision_function(X), part.bag_starts[1:-1])
        values = [
            [most_violating(scores[i], part, i, method)[1] for method in ("heap", "exact")]
            for i in range(0, part.n_bags, 5)
        ]
        assert row.same == np.mean([np.isclose(a, b, rtol=1e-9) for a, b in values])


def test_what_the_criterion_prefers(monkeypatch):
    """Both objectives are of the same candidate sets, one at hyperplanes trained with the truth."""
    real, models = naming.make_mms, []
    monkeypatch.setattr(naming, "make_mms", lambda *a: models.append(real(*a)) or models[-1])
    told = naming.objective_at_truth(**NEWS, C=5.0, n_epochs=4)
    X, sets, labels = naming.training("MMS", **NEWS)
    for what, model, fitted in zip(
        ("found", "truth"), models, (sets, methods.truth_set(labels, sets)), strict=True
    ):
        again = real(5.0, 1, 4, 10 if what == "found" else 1).fit(X, fitted)
        assert_array_equal(again.coef_, model.coef_)
        w, b = model.coef_.astype(float), model.intercept_.astype(float)
        assert told[what] == pytest.approx(objective(w, b, X.astype(float), sets, 5.0), rel=1e-4)
        expected = pytest.approx(np.mean(best_labelings(model.decision_function(X), sets)[:, 0] == labels))
        assert told[f"assignment_{what}"] == expected
    assert told["assignment_truth"] > told["assignment_found"]


def test_both_protocols_over_all_seeds(sweep):
    o = {"n_items": 60, "n_names": 30, "occurrences": {"I": 3, "II": 2}, "placed": 1}
    table = naming.protocols(sweep, o, (4, 5), (0.1, 10.0), EFFORT)
    wanted = [("I", s, m) for s in (4, 5) for m in naming.PROTOCOL_I]
    wanted += [("II", 4, m) for m in naming.PROTOCOL_II]
    assert sorted(table[["protocol", "seed", "method"]].itertuples(index=False, name=None)) == sorted(wanted)
    assert table["recognition"].notna().all()
    assert_array_equal(
        table["assignment"].isna(), table["method"].map(naming.half_of).isin(methods.SUPERVISED)
    )
    assert_array_equal(table["C"].isna(), table["method"].str.startswith("RANDOM"))
    at = table.set_index(["protocol", "method", "seed"]).sort_index()
    assert at.loc[("I", "MC-SVM half"), "C"].tolist() == at.loc[("I", "MC-SVM"), "C"].tolist()
    assert at.loc[("II", "MMS positions"), "C"].tolist() == at.loc[("II", "MMS"), "C"].tolist()
    for number, protocol in (("5.1", "I"), ("5.3", "II")):
        ours = naming.as_printed(table, protocol, "assignment")
        assert set(printed(number)["method"]) <= set(ours["method"])


def test_means_and_deviations_as_printed():
    mms = [("I", "MMS", a, r, 10.0) for a, r in ((0.5, 0.1), (0.7, 0.2), (0.9, 0.6))]
    rows = [*mms, *[("I", "MC-SVM", np.nan, 0.4, 1.0)] * 3, ("II", "MMS", 0.0, 0.0, 5.0)]
    table = pd.DataFrame(rows, columns=["protocol", "method", "assignment", "recognition", "C"]).assign(
        class_weight=""
    )
    told = naming.as_printed(table, "I", "assignment")
    assert told.columns.tolist() == ["method", "accuracy", "sd", "C", "class_weight"]
    assert told["method"].tolist() == ["MMS"]
    assert told.iloc[0, 1:4].tolist() == pytest.approx([70.0, 20.0, 10.0])
    told = naming.as_printed(table, "I", "recognition")
    assert told["method"].tolist() == ["MMS", "MC-SVM"]
    assert told["accuracy"].tolist() == pytest.approx([30.0, 40.0])
    assert told["sd"].tolist() == pytest.approx([100 * np.sqrt(0.07), 0.0])
    assert naming.as_printed(table, "II", "recognition")["C"].tolist() == [5.0]


def test_real_ambiguous_labels(monkeypatch):
    """Bags of one instance in folds; scales and parameters from the training part alone."""
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=90)
    X = 5.0 * np.eye(3)[y] + rng.standard_normal((90, 3)) + 7.0
    sets = CandidateSet(
        [[[k], [(k + 1 + i % 2) % 3]] if i % 3 else [[k]] for i, k in enumerate(y)], n_labels=3
    )
    folds = [(np.arange(60), np.arange(60, 90)), (np.arange(30, 90), np.arange(30))]
    made = types.SimpleNamespace(X=X, y=y, candidates=sets, folds=folds)
    monkeypatch.setattr(naming, "load_original", lambda name: made)
    which = ["RANDOM", "MMS", "CLSVM", "MC-SVM"]
    runs = []
    for change in (0.0, 100.0):
        made.X = X.copy()
        made.X[folds[1][1]] += change
        with monkeypatch.context() as patch:
            models = recorded(patch, methods)
            runs.append(
                (naming.partial_labels("lost", 1, which, (1.0, 10.0), EFFORT).set_index("method"), models)
            )
    (table, models), (other, others) = runs
    assert table.index.tolist() == which and table["recognition"].notna().all()
    assert_equal_scores(models, others, rng.random((20, 3)))
    pd.testing.assert_frame_equal(table[["assignment", "C"]], other[["assignment", "C"]])
    assert np.isnan(table.loc["MC-SVM", "assignment"])
    assert table.loc[["MMS", "MC-SVM"], "recognition"].min() > 0.9
    for column, part in (("assignment", folds[1][0]), ("recognition", folds[1][1])):
        mean, variance = moments_of_random(sets.take(part), y[part])
        assert abs(table.loc["RANDOM", column] - mean) <= 4.0 * np.sqrt(variance / naming.DRAWS)


# ------------------------------------------------------------------ figure 5.6


def cosine(X, Z):
    """1 - cos of the angle, by the formula."""
    X, Z = X.astype(float), Z.astype(float)
    return 1.0 - X @ Z.T / np.outer(np.linalg.norm(X, axis=1), np.linalg.norm(Z, axis=1))


def squared(X, Z):
    return cdist(X.astype(float), Z.astype(float), "sqeuclidean")


def test_features_of_faces_and_bodies():
    data, X, parts = poses.table_of(**POSED)
    assert X.dtype == np.float32 and X.shape == (len(data.faces), max(p.stop for p in parts.values()))
    assert_allclose(np.linalg.norm(X[:, parts["face"]], axis=1), 1.0, atol=1e-5)
    expected = cosine(data.faces[:9], data.faces[9:20])
    assert_allclose(cosine(X[:9, parts["face"]], X[9:20, parts["face"]]), expected, atol=1e-5)
    assert list(parts) == ["face", *POSE_CUES, "pose"]
    train = data.rows(~data.is_test)
    each = []
    for cue, part in data.pose_cues.items():
        assert_array_equal(X[:, parts[cue]], data.poses[:, part])
        block = data.poses[:, part]
        each.append(squared(block, block) / squared(block[train], block[train]).mean())
    assert_allclose(squared(X[:, parts["pose"]], X[:, parts["pose"]]), sum(each), atol=1e-4)


@pytest.mark.parametrize(
    "modelled, groups", [("name", ["face"]), ("verb", ["body"]), ("both", ["face", "body"])]
)
def test_kernels_of_mms(modelled, groups):
    """A trained model's scores from kernels written out; for poses the mean of three."""
    _, X, parts = poses.table_of(**POSED)
    sets, _ = poses.problem_of(**POSED, modelled=modelled)
    inner, width = np.arange(25), 0.4
    rows, new = sets.rows(inner), sets.rows(np.arange(25, 40))
    model = poses.build("MMS", modelled, {**SOME, "C": 2.0, "width": width}, X[rows], parts, 3, EFFORT)
    assert (model.C, model.random_state, model.n_epochs) == (2.0, 3, 3)
    expected = [["face"] if g == "face" else [*POSE_CUES] for g in groups]
    assert [[name for name, _, _ in group] for group in model.kernels] == expected
    scores = poses.scores_of(model.fit(X[rows], sets.take(inner)), X[new], len(groups))
    coefs = model.dual_coef_ if len(groups) > 1 else [model.dual_coef_]
    weights = model.kernel_weights_ if len(groups) > 1 else [model.kernel_weights_]
    for group, own, coef, weight in zip(groups, scores, coefs, weights, strict=True):
        kernels = []
        for name in [group] if group == "face" else POSE_CUES:
            distance = cosine if name == "face" else squared
            A = X[rows][:, parts[name]]
            B = X[new][:, parts[name]]
            kernels.append(np.exp(-distance(B, A) / (width * distance(A, A).mean())))
        assert_allclose(weight, 1.0 / len(kernels))
        expected = (np.mean(kernels, axis=0)[:, model.support_] + 1.0) @ coef
        assert_allclose(own, expected, atol=2e-3 * np.abs(own).max())


def test_units_of_dist_and_gmm():
    _, X, parts = poses.table_of(**POSED)
    chosen = {"C": 0.0, "width": 0.25, "components": 7}
    faces, bodies = (
        d(X[:, parts[name]], X[:, parts[name]]).mean() for d, name in ((cosine, "face"), (squared, "pose"))
    )
    for modelled, metric, scale in (
        ("name", ["cosine"], [faces]),
        ("verb", ["sqeuclidean"], [bodies]),
        ("both", ["cosine", "sqeuclidean"], [faces, bodies]),
    ):
        model = poses.build("DistNaming", modelled, chosen, X, parts, 0, EFFORT)
        assert model.metric == metric
        assert_allclose(model.scale, 0.25 * np.array(scale), rtol=1e-3)
        assert model.columns == [parts[{"cosine": "face", "sqeuclidean": "pose"}[m]] for m in metric]
    model = poses.build("GMMNaming", "name", chosen, X, parts, 0, EFFORT)
    assert model.n_components_pca == 7 and model.columns == [parts["face"]]
    grid = poses.choices("MMS", (0.25, 1.0), (1.0, 10.0))
    assert [(c["width"], c["C"]) for c in grid] == [(0.25, 1.0), (0.25, 10.0), (1.0, 1.0), (1.0, 10.0)]
    assert [c["width"] for c in poses.choices("DistNaming", (), ())] == list(poses.DIST_WIDTHS)
    assert poses.choices("RANDOM", (), ()) == [poses.NONE]


def test_names_and_verbs_count_as_the_candidates_do():
    data, _, _ = poses.table_of(**POSED)
    alone = {m: poses.problem_of(**POSED, modelled=m) for m in ("name", "verb", "both")}
    both, labels = alone["both"]
    assert both.null == (0, 0)
    assert both.classes[1].tolist()[0] == "null"
    assert set(both.classes[1][1:]) == set(VERBS)
    for p, modelled in enumerate(("name", "verb")):
        sets, own = alone[modelled]
        assert sets.n_attributes == 1 and own.shape == (len(data.faces), 1)
        assert_array_equal(own[:, 0], labels[:, p])
        assert_array_equal(sets.classes[0], both.classes[p])
    named, acted = labels[:, 0] > 0, labels[:, 1] > 0
    assert_array_equal(both.classes[0][labels[named, 0]], data.names[named])
    assert_array_equal(both.classes[1][labels[acted, 1]], data.verbs[acted])
    assert not (acted & ~named).any() and named.any() and acted.any()
    inside = [
        both.contains(i, labels[both.rows([i])]) for i in range(both.n_bags) if named[both.rows([i])].any()
    ]
    assert len(inside) > 50 and all(inside)


@pytest.mark.parametrize(
    "method, modelled", [("GMMNaming", "name"), ("DistNaming", "both"), ("MMS", "verb"), ("MMS", "both")]
)
def test_no_truth_in_names_and_verbs(monkeypatch, method, modelled):
    """With the truth permuted and noise as test items, the same parameters and the same models."""
    probe, (sets, _) = poses.table_of(**POSED)[1].copy(), poses.problem_of(**POSED, modelled=modelled)
    runs = []
    monkeypatch.setattr(poses, "DIST_WIDTHS", (0.06, 0.5))
    for hidden in (False, True):
        with monkeypatch.context() as patch:
            if hidden:
                real_problem, real_table = poses.problem_of, poses.table_of

                def problem(*a, real=real_problem, **k):
                    sets, labels = real(*a, **k)
                    return sets, np.random.default_rng(0).permutation(labels)

                def table(*a, real=real_table, **k):
                    data, X, parts = real(*a, **k)
                    X, rows = X.copy(), sets.rows(np.flatnonzero(data.is_test))
                    X[rows] = np.random.default_rng(1).random(X[rows].shape)
                    return data, X, parts

                patch.setattr(poses, "problem_of", problem)
                patch.setattr(poses, "table_of", table)
            models = recorded(patch, poses, "build")
            chosen = poses.pose_parameters(
                method, modelled, **POSED, widths=(0.5,), grid=(1.0, 10.0), effort=EFFORT
            )
            told = poses.pose_run(modelled, **POSED, chosen={method: SOME}, effort=EFFORT)
            runs.append((chosen, models, told))
    (chosen, models, told), (other_chosen, others, other_told) = runs
    assert chosen == other_chosen
    assert_equal_scores(models, others, probe)
    assert not np.array_equal(told["assignment"], other_told["assignment"])


def test_shares_of_right_names_and_verbs(monkeypatch):
    """All three shares from the model's scores, counted item by item; RANDOM from all candidates."""
    data, X, _ = poses.table_of(**POSED)
    sets, labels = poses.problem_of(**POSED, modelled="both")
    models = recorded(monkeypatch, poses, "build")
    told = poses.pose_run("both", **POSED, chosen={"MMS": SOME}, effort=EFFORT)
    assert told["attribute"].tolist() == ["name", "verb"]
    own, captioned, alone = [], [], []
    for i in range(sets.n_bags):
        rows = sets.rows([i])
        scores, truth = models[0].decision_function(X[rows]), labels[rows]
        at = np.arange(len(rows))
        best = max(
            sets.iterate(i), key=lambda z, s=scores, a=at: s[0][a, z[:, 0]].sum() + s[1][a, z[:, 1]].sum()
        )
        (captioned if data.is_test[i] else own).extend(best == truth)
        if data.is_test[i]:
            alone.extend(np.stack([s.argmax(axis=1) for s in scores], axis=1) == truth)
    for column, right in (("assignment", own), ("recognition", alone), ("with_caption", captioned)):
        assert_allclose(told[column], np.mean(right, axis=0), atol=1e-12)
    told = poses.pose_run("both", **POSED, chosen={"RANDOM": SOME}, effort=EFFORT)
    assert told["recognition"].isna().all()
    for column, test in (("assignment", False), ("with_caption", True)):
        share = np.zeros(2)
        items = np.flatnonzero(data.is_test == test)
        for i in items:
            share += np.mean([(z == labels[sets.rows([i])]).sum(axis=0) for z in sets.iterate(i)], axis=0)
        n = len(sets.rows(items))
        assert_allclose(told[column], share / n, atol=4.0 * np.sqrt(0.5 / n / poses.DRAWS))


def test_all_models_are_there(sweep, monkeypatch):
    monkeypatch.setattr(poses, "DIST_WIDTHS", (0.1, 0.5))
    o = {"n_items": 110, "n_test": 25, "n_names": 30, "widths": (0.5,), "C": (1.0, 10.0)}
    composed = []

    def kept(make, **options):
        composed.append(options["random_state"])
        return make(**options)

    monkeypatch.setattr(poses, "kept", kept)
    poses.table_of.cache_clear()
    table = poses.all_models(sweep, o, (3, 4), EFFORT)
    assert composed == [3, 4]  # each corpus once
    cases = {*poses.MODELS, ("RANDOM", "both")}
    wanted = [
        (m, a, p, s) for m, a in cases for p in (("name", "verb") if a == "both" else (a,)) for s in (3, 4)
    ]
    columns = ["method", "modelled", "attribute", "seed"]
    assert sorted(table[columns].itertuples(index=False, name=None)) == sorted(wanted)
    assert table[["assignment", "with_caption"]].notna().all(axis=None)
    assert_array_equal(table["recognition"].isna(), table["method"] == "RANDOM")
    assert table.loc[table["method"] == "MMS", "C"].isin([1.0, 10.0]).all() and "chosen" not in table
    assert table.loc[table["method"] == "DistNaming", "width"].isin([0.1, 0.5]).all()
    # chosen once, with the first seed
    assert (table.groupby(["method", "modelled"])[["C", "width", "components"]].nunique() == 1).all(axis=None)


# ------------------------------------------------------------------ what the thesis prints


def test_methods_of_the_thesis_are_run():
    for number in ("5.1", "5.2", "5.3", "5.4"):
        ours = naming.PROTOCOL_I if number < "5.3" else naming.PROTOCOL_II
        table = printed(number)
        assert table.columns.tolist() == ["method", "accuracy", "sd"] and set(table["method"]) <= set(ours)

"""Pairs and what is compared on them; the theorems measured, against a conic solver and watched runs."""

import math
from types import SimpleNamespace

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from oks_twins import convex
from plain_mkl import minimum

from companion import oks as exp
from companion import pictures
from cuelearn.oks import OKS
from cuelearn.oks.kernels import Given
from cuelearn.oks.online import Selector, oks_pass, regret_pass

LOSSES = ("hinge", "logistic", "square")


@pytest.mark.parametrize("kind", ["keyword", "category"])
def test_pairs_follow_the_rule(kind):
    """No label twice, enough drawings and families on either side, no thing of both; fewer are the first."""
    emoji, pairs = pictures.emoji(), exp.pairs(kind, 9)
    assert len(pairs) == 9 and pairs[:6] == exp.pairs(kind, 6)
    assert len({label for name in pairs for label in name.partition(" ")[2].split("/")}) == 18
    keywords = emoji.keyword_names.tolist()
    for name in pairs:
        rows, labels = exp.drawings(name, 10**6, np.random.default_rng(0))
        assert np.bincount(labels).tolist() == [rows.size / 2] * 2 and rows.size >= 200
        assert np.unique(rows).size == rows.size
        things = emoji.thing[rows]
        assert not np.isin(things, pictures.word_things()).any()
        for label, word in enumerate(name.partition(" ")[2].split("/")):
            if kind == "keyword":
                has = emoji.keywords[things, keywords.index(word)] == 1
            else:
                has = emoji.subgroup[things] == word
            assert (has == (labels == label)).all()
            assert np.unique(emoji.family[things[labels == label]]).size >= 10


def test_families_stay_on_one_side():
    """Of test, and of what is held back; test samples are drawings themselves, training samples all views."""
    emoji = pictures.emoji()
    (pair,) = exp.describe_pairs(exp.pairs("keyword", 1), 0, 20, n_views=2).values()
    train, test = pair.drawings
    families = emoji.family[emoji.thing[train]]
    assert_array_equal(families, pair.families)
    assert not np.isin(emoji.family[emoji.thing[test]], families).any()
    assert (np.unique(train, return_counts=True)[1] == 2).all()
    assert np.unique(test).size == test.size == len(pair.X_test)
    assert len(pair.kernels) == 60 and pair.X_train.min() >= 0.0
    inner, outer = exp.held_apart(pair, np.random.default_rng(3))
    assert inner.size + outer.size == train.size and outer.size >= 0.1 * train.size
    assert not np.isin(families[inner], families[outer]).any()
    assert set(pair.y_train[inner]) == set(pair.y_train[outer]) == {0, 1}


def test_pairs_of_corel5k(monkeypatch):
    rng = np.random.default_rng(0)
    Y = rng.integers(0, 2, (400, 3))
    fake = SimpleNamespace(X=rng.integers(0, 2, (400, 499)), y=Y, target_names=["sky", "tree", "people"])
    monkeypatch.setattr(exp, "load_set", lambda name: fake)
    name = exp.ORIGINAL_TASKS[0]
    pair = exp.describe_pairs([name], 0, 60, n_pictures=120)[name]
    assert pair.X_train.shape == (120, 499) and len(pair.kernels) == 4
    one = Y[:, 0] != Y[:, 2]
    assert pair.y_test.size == pytest.approx(one.sum() / 10, abs=1)
    assert_array_equal(Y[pair.families, 2], pair.y_train)
    assert one[pair.families].all()
    assert exp.held_apart(pair, np.random.default_rng(0))[1].size == 12


def test_work_is_counted():
    name, grids = exp.pairs("leaves", 1)[0], {"C": (0.5, 2.0, 32.0), "beta": (0.3, 0.7), "p": (1.25, 2.0)}
    pair = exp.describe_pairs([name], 0, 30)[name]
    runs = exp.compare(name, [*exp.METHODS, *exp.TWICE], 0, grids, {name: pair}).assign(name=name)
    work, n = runs.set_index("method"), pair.y_train.size
    matrix = n * (n + 1) // 2
    for method in ("OM2", "AlignmentSVM", "MuSVM", "SimpleMKL"):
        assert work.loc[method, "kernel_values"] == 12 * matrix
    assert work["svms"].drop(["SimpleMKL", "MuSVM"]).tolist() == [0, 0, 0, 4, 4, 4, 4, 4]
    assert work.loc["MuSVM", "svms"] == 12 * 3 + 1 and work.loc["SimpleMKL", "svms"] > 4
    few = [0.5] * 5 + [0.2] * 5
    for method, delta in {"OKS": few, "OKS two passes": [0.5, 0.2]}.items():
        oks = OKS(pair.kernels, delta=delta, n_epochs=len(delta), random_state=0)
        oks.fit(pair.X_train, pair.y_train)
        assert work.loc[method, "kernel_values"] == matrix + oks.n_evaluations_


def test_rounds_are_those_of_the_paper():
    """2,374 to 6,868 of sixty kernels: two passes over many samples, ten over few."""
    assert [exp.passes(n) for n in (240, 519, 1187, 3434)] == [10, 10, 2, 2]
    assert exp.deltas([0.5, 0.2], 1) == [0.5]
    assert exp.deltas([0.5, 0.2], 5) == [0.5, 0.5, 0.5, 0.2, 0.2]


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("step", [0.02, 30.0])
def test_comparators_against_a_conic_solver(loss, step):
    stream = exp.stream_of("pendigits", 40, 0)
    for j in (0, 1):
        K, y = stream.stack[j].astype(float), stream.signs
        w, total = convex(K, y, loss)
        wanted = minimum(total + cp.sum_squares(w) / (2.0 * step))
        bound, coef, point = exp.least_loss(stream.stack[j], y, step, loss)
        assert wanted * (1.0 - 2e-3) - 1e-6 <= bound <= wanted * (1.0 + 1e-5)  # kernels in float32
        found = exp.loss_of(loss, K @ coef, y)[0].sum() + coef @ K @ coef / (2.0 * step)
        assert wanted * (1.0 - 1e-5) <= found <= wanted * (1.0 + 3e-3) + 1e-6
        if loss == "hinge":
            assert point.min() >= 0.0 and point.max() <= 1.0 + 1e-12
            again, _, _ = exp.least_loss(stream.stack[j], y, step, loss, start=point)
            assert again == pytest.approx(bound, rel=2e-3)


def test_loss_in_the_ball_and_what_the_theorem_allows():
    """Lagrange's bound lies below the constrained optimum, not far; the bound is the least over the steps."""
    T, radius, delta = 40, 3.0, 0.3
    stream = exp.stream_of("pendigits", T, 0)
    table = exp.mistakes_against_bound("pendigits", T, 0, [delta], draws=2, radius=radius)
    wanted = math.inf
    for K in stream.stack:
        w, total = convex(K, stream.signs, "hinge")
        wanted = min(wanted, minimum(total, [cp.norm(w) <= radius]))
    assert 0.8 * wanted <= table["loss"].iloc[0] <= wanted * (1.0 + 1e-6)
    m = len(stream.stack)
    added = lambda step: exp.surplus(m, T, delta, exp.weights_step(m, T, delta), step)
    least = lambda step: min(exp.least_loss(K, stream.signs, step)[0] for K in stream.stack)
    found = min(radius**2 / (2.0 * step) + added(step) for step in np.geomspace(1e-3, 3.0, 2000))
    smallest = min(least(step) + added(step) for step in np.array(exp.RADII) / math.sqrt(m * T))
    assert table["allowed"].iloc[0] == pytest.approx(found, rel=1e-5)
    assert table["bound"].iloc[0] == pytest.approx(smallest, rel=1e-3)


def test_mistakes_by_brute_force():
    stream = exp.stream_of("pendigits", 50, 2)
    m, delta = len(stream.stack), 0.5
    table = exp.mistakes_against_bound("pendigits", 50, 2, [delta], draws=3)
    source = Given(m, 50)
    samples = source.pack(stream.stack)
    for run, rng in enumerate(np.random.default_rng([2, 14]).spawn(3)):
        total = [1.0]  # before the first visit all predictors are 0: all mistaken, weights sum to 1

        def look(learner, visits):
            if visits < 50:
                wrong = stream.signs[visits] * learner.outputs(samples, samples)[visits] <= 0.0
                total[0] += learner.q @ wrong

        eta = exp.weights_step(m, 50, delta)
        rates = {"rule": oks_pass, "delta": [delta], "eta": eta}
        run_of = Selector(source.kernels, rng, **rates).run(samples, stream.signs, 1, chunk=1, watch=look)
        assert table["mistakes"][run] == pytest.approx(total[0], abs=1e-9)
        assert table["drawn_mistakes"][run] == run_of.n_mistakes


def test_quantiles_and_expectations_on_small_tables():
    kernels = {"drawn_kernel": ["a"] * 4 + ["b"] * 6, "largest_kernel": "a", "best_kernel": "a"}
    table = pd.DataFrame({"run": range(10), "drawn": np.arange(10.0), "largest": -np.arange(10.0), **kernels})
    table = table.assign(kind="random", n_visits=10, seed=0, bound=2.0)
    quantiles = exp.quantiles(table, (0.5, 0.1)).set_index("epsilon")
    assert quantiles["drawn"].tolist() == [4.0, 8.0]  # of 10 runs at most 5, at most 1 lie above
    assert quantiles["largest"].tolist() == [-5.0, -1.0]
    assert quantiles["bound"].tolist() == [4.0, 20.0]
    runs = pd.DataFrame({"T": [1, 1, 2, 2], "run": [0, 1, 0, 1], "x": [0.0, 2.0, 3.0, 3.0], "bound": 5})
    means = exp.expectations(runs, "x", ["T"])
    assert means["mean"].tolist() == [1.0, 3.0]
    assert means["high"].tolist() == pytest.approx([1.0 + 12.706204736, 3.0])


def test_corollary_by_brute_force():
    options = {"n_samples": 80, "n_held": 60, "delta": 0.4}
    table = exp.selection_quality("one useful", [50], 3, draws=4, **options)
    stream = exp.stream_of("one useful", 80, 3, 60)
    m, source = len(stream.stack), Given(8, 80)
    samples, held = source.pack(stream.stack), source.pack(stream.held)
    step, eta = table["best_norm"][0] * math.sqrt(0.4 / (m * 50)), exp.weights_step(m, 50, 0.4)
    for run, rng in enumerate(np.random.default_rng([3, 50, 15]).spawn(4)):
        learner = Selector(source.kernels, rng, rule=regret_pass, delta=[0.4], eta=eta, step=step)
        stop = {"chunk": 50, "watch": lambda learner, visits: True}
        learner.run(samples, stream.signs, 1, shuffle=True, **stop)
        outputs = learner.outputs(held, samples)
        assert learner.n_seen == 50
        losses = np.maximum(0.0, 1.0 - stream.held_signs[:, None] * outputs).mean(axis=0)
        excess = losses - table["best_loss"][run]
        best = int(np.argmax(learner.q))
        assert table["largest"][run] == pytest.approx(excess[best], abs=1e-5)
        assert table["largest_kernel"][run] == stream.names[best]
        expected = pytest.approx(excess[stream.names.index(table["drawn_kernel"][run])], abs=1e-5)
        assert table["drawn"][run] == expected

"""MMS: optima, certificates, limits, forms."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from cuelearn.datasets import load_pendigits
from cuelearn.kernels import RBF, FeatureScaleWarning, KernelBank, Linear
from cuelearn.mms import MMS, CandidateSet, most_violating
from cuelearn.mms.convex import KernelSpace, LinearSpace
from cuelearn.mms.solver import ConvexProblem, objective_of, solve_mms


@pytest.fixture(scope="module")
def digits():
    data = load_pendigits()
    X = data.X[data.train].astype(float)
    X = X[:, :64]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    return X / np.linalg.norm(X, axis=1, keepdims=True), data.y[data.train]


def ambiguous(X, y, rng, n_bags=60, size=3, n_vectors=4, K=10):
    """Bags with the true vector and shuffled or partly changed copies."""
    rows = rng.permutation(len(y))[: n_bags * size]
    bags = []
    for i in range(n_bags):
        truth = y[rows[i * size : (i + 1) * size]]
        bag = [truth]
        for _ in range(n_vectors - 1):
            changed = truth.copy()
            changed[rng.integers(size)] = rng.choice(truth)
            bag.append(changed)
        bags.append(np.array(bag)[rng.permutation(n_vectors)])
    return X[rows], y[rows], CandidateSet(bags, n_labels=K)


@pytest.mark.parametrize("kernels", [None, [("rbf", RBF(), slice(None))]])
def test_objective_never_rises_beyond_the_gap(digits, kernels):
    """F(w_next) <= relaxed optimum + gap <= F(w) + gap, by exact search."""
    rng = np.random.default_rng(3)
    X, _, sets = ambiguous(*digits, rng, n_bags=40, n_vectors=8)
    options = {"inference": "exact", "n_epochs": 400, "tol": 1e-3, "random_state": 0}
    history = MMS(kernels, C=10.0, **options).fit(X, sets).history_
    assert len(history) > 1
    assert np.all(history.dual_gap >= -1e-9)
    assert np.all(np.diff(history.objective) < 0.0)
    # the best candidates' largest is at least their mean
    assert np.all(history.objective <= history.relaxed + 1e-9)
    assert history.objective.iloc[-1] < 0.9 * history.objective.iloc[0]


def plain_pegasos(X, sets, lam, visits, weights):
    """Round one of Algorithm 9 by hand, one vector of hyperplanes; bags have weights."""
    K = sets.n_labels[0]
    weights = weights / np.mean(weights)
    W = np.zeros((K, X.shape[1]))
    radius = np.sqrt(2.0 * sets.bag_sizes.max() / lam)
    for t, i in enumerate(np.ravel(visits), sets.n_bags + 1):
        x = X[sets.bag_starts[i] : sets.bag_starts[i + 1]]
        scores = x @ W.T
        listed = sets.bag(i)[:, :, 0]
        mean = np.stack([(listed == k).mean(axis=0) for k in range(K)], axis=1)
        worst, value = most_violating(scores, sets, i)
        W *= 1.0 - 1.0 / t
        if value - np.sum(mean * scores) > 0.0:
            W += weights[i] / (lam * t) * (mean - np.eye(K)[worst[:, 0]]).T @ x
        W *= min(1.0, radius / max(np.linalg.norm(W), 1e-300))
    return W


def test_blocks_are_the_sequential_algorithm(digits):
    """Visiting bags in blocks gives what one bag after the other gives; in kernel form too."""
    rng = np.random.default_rng(5)
    X, _, sets = ambiguous(*digits, rng, n_bags=40)
    Z = np.column_stack([X, np.ones(len(X))])
    weights, lam = rng.integers(0, 4, 40), 1.0 / (7.0 * 40)
    options = {"solver": "pegasos", "lam": lam, "n_rounds": 1, "n_epochs": 3, "sample_weight": weights}
    linear = LinearSpace(Z, (10,))
    result = solve_mms(linear, sets, rng=0, **options)
    assert result.visits.shape == (3, 40)
    W = plain_pegasos(Z, sets, lam, result.visits, weights)
    assert_allclose(linear.weights, W, atol=1e-9)
    bank = KernelBank([("linear", Linear(), slice(None))], X, normalize=False)
    kernel = KernelSpace([bank], (10,), 2e9)
    solve_mms(kernel, sets, rng=0, **options)
    assert_allclose(kernel.scores(slice(None)), Z @ W.T, rtol=1e-4, atol=1e-4)


def test_two_attributes(digits):
    X, y = digits
    rng = np.random.default_rng(7)
    n = 200
    rows, other = rng.permutation(len(y))[:n], rng.permutation(len(y))[:n]
    both = np.column_stack([X[rows], X[other]])
    truth = np.stack([y[rows], y[other] % 3], axis=1)
    bags = [np.stack([truth[[i, i + 1]], truth[[i + 1, i]]]) for i in range(0, n, 2)]
    sets = CandidateSet(bags, n_labels=(10, 3))
    d = X.shape[1]
    model = MMS(C=10.0, random_state=0).fit(both, sets)
    scores = model.decision_function(both)
    assert [s.shape for s in scores] == [(n, 10), (n, 3)]
    assert_allclose(scores[1], both @ model.coef_[1].T + model.intercept_[1], atol=1e-12)
    assert np.mean(model.predict(both, sets) == truth) > 0.8  # chance is a half and more
    banks = [[("rbf", RBF(), slice(0, d))], [("rbf", RBF(), slice(d, None)), ("l", Linear(), slice(d, None))]]
    kernel = MMS(banks, C=10.0, random_state=0).fit(both, sets)
    assert np.mean(kernel.predict(both, sets) == truth) > 0.8


def told(model, X, sets):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", FeatureScaleWarning)
        model.fit(X, sets)
    assert all(w.category is ConvergenceWarning and w.filename == __file__ for w in caught)
    return model, "; ".join(str(w.message) for w in caught)


def test_what_is_not_certified_warns(digits):
    X, _, sets = ambiguous(*digits, np.random.default_rng(18))
    few = {"n_epochs": 2, "random_state": 0}
    for model, said in [
        (MMS(n_rounds=2, tol=0.0, **few), "did not converge in 2 rounds"),
        (MMS(C=3.0, n_rounds=1, **few), "far from solved, duality gap [0-9.]+, .* raise n_epochs"),
        (MMS(C=100.0, solver="pegasos", **few), "no certificate, its duality gap is nan; take solver"),
        (MMS(C=100.0, solver="pegasos", **few), "not below that of w = 0, 3; .*frank-wolfe"),
        (MMS(C=10.0, solver="pegasos", **few), "rose by [0-9.e-]+ in a round"),
    ]:
        model, found = told(model, X, sets)
        assert re.search(said, found), found
        assert not model.converged_
    for model in (MMS(), MMS(callback=lambda m, r: True)):
        assert told(model, X, sets)[1] == ""
    with pytest.raises(ValueError, match="the hyperplanes overflow: standardise the features"):
        MMS(C=10.0, solver="pegasos").fit(1e30 * X, sets)
    rng = np.random.default_rng(1)
    y = rng.integers(4, size=(10, 4))
    X = np.eye(4)[y.ravel()] + 0.6 * rng.standard_normal((40, 4))
    sets = CandidateSet([[t, *(rng.permutation(t) for _ in range(5))] for t in y], n_labels=4)
    model, found = told(MMS(C=10.0, inference="algorithm-10", random_state=0), X, sets)
    assert re.search("missed losses, [0-9.]+ at least; inference='exact'", found) and not model.converged_
    assert np.isnan(model.dual_gap_) and np.isnan(model.history_["dual_gap"]).all()  # no bound


def test_the_last_bit_of_the_data_chooses_no_step(digits):
    X, _, sets = ambiguous(*digits, np.random.default_rng(5))
    for inference in ("algorithm-10", "exact"):
        model = MMS(n_epochs=20, n_rounds=1, inference=inference, random_state=0)
        plain, moved = (told(clone(model), X * (1.0 + bit), sets)[0] for bit in (0.0, 2.3e-16))
        assert_allclose(moved.coef_, plain.coef_, rtol=1e-6, atol=1e-9)


def own_data():
    """Bags as they come: few, of random candidates, of one candidate, symmetric, one instance each."""
    rng = np.random.default_rng(20)
    y = rng.integers(5, size=18)
    X = np.eye(5, 8)[y] + 0.4 * rng.standard_normal((18, 8))
    shuffled = [[t, *(rng.permutation(t) for _ in range(3))] for t in y.reshape(6, 3)]
    yield "six bags", X, CandidateSet([np.unique(bag, axis=0) for bag in shuffled], n_labels=5)
    yield "random", X, CandidateSet([rng.integers(5, size=(size, 3)) for size in rng.integers(1, 6, 6)])
    yield "one candidate", X, CandidateSet.from_labels(y, [3] * 6, n_labels=5)
    yield "symmetric", X[:12], CandidateSet([[[0, 1], [1, 0]]] * 6)
    possible = (rng.random((18, 5)) < 0.4) | np.eye(5, dtype=bool)[y]
    yield "partial labels", X, CandidateSet.from_indicator(possible)
    yield "in the thousands", 1e4 * X, CandidateSet.from_indicator(possible)


@pytest.mark.parametrize(
    "name, X, sets", list(own_data()), ids=lambda value: value if isinstance(value, str) else ""
)
def test_defaults_end_certified_or_say_so(name, X, sets):
    for C in (0.01, 1.0, 30.0, 1000.0):
        model, found = told(MMS(C=C, random_state=0), X, sets)
        kept = model.history_.loc[model.history_["objective"].idxmin()]
        assert model.objective_ == kept["objective"] and model.dual_gap_ == kept["dual_gap"]
        certified = 0.0 <= model.dual_gap_ <= 0.01 * max(kept["dual_bound"], 1e-7)
        falls = np.all(np.diff(model.history_["objective"]) < 0.01 * 1e-7)  # to what gaps are told by
        assert model.converged_ == (found == "") and (found or certified and falls)
        assert found == "" or name == "in the thousands", (C, found)
        space = LinearSpace(np.column_stack([X, np.ones(len(X))]), sets.n_labels)
        zero = objective_of(space, sets, 1.0, "exact")
        space.weights[:] = np.column_stack([model.coef_, model.intercept_])
        exact = objective_of(space, sets, 1.0 / (C * sets.n_bags), "exact")
        assert exact == pytest.approx(model.objective_, rel=1e-9)
        assert exact < zero or found


def test_further_starts_find_lower_objectives():
    rng = np.random.default_rng(2)
    X, sets = rng.standard_normal((20, 4)), CandidateSet([rng.integers(3, size=(4, 2)) for _ in range(10)])
    one, ten = (MMS(C=10.0, n_init=n_init, random_state=0).fit(X, sets) for n_init in (1, 10))
    alone = ten.history_[ten.history_["start"] == 0].drop(columns="seconds")
    pd.testing.assert_frame_equal(alone, one.history_.drop(columns="seconds"))
    assert ten.objective_ == ten.history_["objective"].min() < 0.5 * one.objective_


def test_candidates_within_the_gap_are_averaged():
    space = LinearSpace(np.eye(2), (3,))
    sets = CandidateSet([[[0, 1], [1, 0], [2, 2]]], n_labels=3)
    work = ConvexProblem(space, sets, 1.0, "exact", np.random.default_rng(0))
    space.weights[:] = [[1.0, 0.0], [0.0, 1.0 - 1e-3], [0.0, 0.0]]
    work.fresh_target()
    assert_allclose(work.target, np.eye(2, 3))
    space.weights[:2] = [[1.0, 1.0], [1.0, 1.0 - 1e-3]]
    for slack, share in ((0.0, 0.0), (1e-4, 0.0), (2e-3, 0.5)):
        work.fresh_target(slack)
        assert_allclose(work.target, np.array([[share, 1.0 - share, 0.0], [1.0 - share, share, 0.0]]))

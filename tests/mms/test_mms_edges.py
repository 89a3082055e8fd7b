"""MMS at its edges."""

import itertools

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from plain_mkl import minimum
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from cuelearn.kernels import RBF, KernelBank, Linear
from cuelearn.mms import CLSVM, M3MIML, MIMLSVM, MMS, CandidateSet, DistNaming, GMMNaming, load
from cuelearn.mms.convex import LinearSpace, frank_wolfe, pegasos
from cuelearn.mms.solver import ConvexProblem


class NoBar:
    def update(self, n):
        pass


def bags(rng, n_bags=20, size=3, K=4, d=5, L=3, dtype=np.float64):
    y = rng.integers(0, K, n_bags * size)
    X = (rng.normal(size=(K, d))[y] + rng.normal(size=(y.size, d))).astype(dtype)
    return X, y, [np.array([t, *(rng.permutation(t) for _ in range(L - 1))]) for t in y.reshape(n_bags, size)]


@pytest.mark.parametrize("dtype, priors", [(np.float64, False), (np.float32, False), (np.float64, True)])
def test_certificate_against_a_conic_solver(dtype, priors):
    """With the exact search: dual bound <= optimum of the relaxed problem <= its value, for both solvers."""
    rng = np.random.default_rng(3)
    for C in (0.1, 10.0):
        X, _, lists = bags(rng, n_bags=6, size=2, K=3, d=3)
        lists, X = [np.unique(b, axis=0) for b in lists], X.astype(dtype)
        weights = [0.1 + rng.random(len(b)) for b in lists] if priors else None
        sets = CandidateSet(lists, n_labels=3, priors=weights)
        lam = 1.0 / (C * sets.n_bags)
        s = rng.integers(0, 4, sets.n_bags) + np.eye(6)[0] if priors else np.ones(sets.n_bags)
        work = ConvexProblem(LinearSpace(X, (3,)), sets, lam, "exact", np.random.default_rng(0), s)
        work.fresh_target()
        W, xi, limits = cp.Variable((3, 3)), cp.Variable(sets.n_bags, nonneg=True), []
        scores = X.astype(float) @ W.T
        for i in range(sets.n_bags):
            rows = range(sets.bag_starts[i], sets.bag_starts[i + 1])
            aim = sum(work.target[r, k] * scores[r, k] for r in rows for k in range(3))
            for z in itertools.product(range(3), repeat=len(rows)):
                if not sets.contains(i, np.array(z)):
                    total = sum(scores[r, k] for r, k in zip(rows, z, strict=True))
                    limits.append(sets.loss(i, np.array(z)) + total - aim <= xi[i])
        optimum, near = minimum(0.5 * lam * cp.sum_squares(W) + (s / s.sum()) @ xi, limits), 1e-5
        bound, *_ = frank_wolfe(work, None, 2000, 1e-4, NoBar())
        assert bound <= optimum + near and work.value()[0] >= optimum - near
        assert bound >= optimum * (1.0 - 2e-3) - near
        work.space.weights[:] = 0.0
        bound, _ = pegasos(work, 30, NoBar())
        assert not bound > optimum + near
        assert work.value()[0] >= optimum - near


@pytest.mark.parametrize("solver", ["pegasos", "frank-wolfe"])
@pytest.mark.parametrize("inference", ["algorithm-10", "exact"])
def test_degenerate_sets(solver, inference):
    X = np.random.default_rng(4).normal(size=(4, 3))
    model = MMS(solver=solver, inference=inference, n_epochs=3, random_state=0)
    everything = CandidateSet([list(itertools.product(range(2), repeat=2))] * 2, n_labels=2)
    assert model.fit(X, everything).objective_ == 0.0  # nothing can be wrong
    assert not model.coef_.any()
    one_label = CandidateSet([[[0, 0, 0, 0]]], n_labels=1)
    assert model.fit(X, one_label).predict(X).tolist() == [0] * 4
    # one bag; labels 2 to 5 never occur
    one = model.fit(X, CandidateSet([[[0, 1, 0, 1], [1, 0, 1, 0]]], n_labels=6))
    assert one.decision_function(X).shape == (4, 6) and one.coef_.shape == (6, 3)
    assert np.isfinite(one.objective_)


@pytest.mark.parametrize("solver, n_epochs", [("pegasos", 4), ("frank-wolfe", 2000)])
def test_forms_agree(solver, n_epochs):
    """Linear, linear kernel, precomputed, a bank, on-demand rows: one model; float32 near it.

    Pegasos is compared step by step; the dual solver, whose choice between equal labelings hangs on the last
    digit, by its optimum.
    """
    rng = np.random.default_rng(6)
    X, _, lists = bags(rng)
    sets = CandidateSet(lists, n_labels=4)
    # with the exact search, for Algorithm 10's answers do not make a convex problem
    common = {"solver": solver, "C": 0.3, "inference": "exact", "n_rounds": 1}
    common |= {"n_epochs": n_epochs, "tol": 1e-5, "random_state": 0}
    plain = MMS(**common).fit(X, sets)
    K, want, kernel = (X @ X.T)[None], plain.decision_function(X), [("linear", Linear(), slice(None))]
    for form, given, new, near in [
        (MMS("precomputed"), K, K, 1e-8),
        (MMS("precomputed", memory=1000.0), KernelBank(kernel, X, normalize=False, memory=1000.0), K, 1e-3),
        (MMS(), X.astype(np.float32), X.astype(np.float32), 1e-3),
    ]:
        model = form.set_params(**common).fit(given, sets)
        if solver == "pegasos":
            assert_allclose(model.decision_function(new), want, rtol=near, atol=near)
        else:
            assert model.history_["relaxed"][0] == pytest.approx(plain.history_["relaxed"][0], rel=1e-4)
            assert_allclose(model.decision_function(new), want, atol=0.05)


def test_every_form_is_saved(tmp_path):
    rng = np.random.default_rng(7)
    X = rng.normal(size=(12, 6))
    frame = pd.DataFrame(X, columns=list("abcdef"))
    pairs = [np.stack([rng.integers(0, 3, (3, 3)), rng.integers(0, 2, (3, 3))], axis=2) for _ in range(4)]
    sets = CandidateSet(pairs, n_labels=(3, 2), classes=[["x", "y", "z"], ["u", "v"]])
    K = np.stack([X @ X.T, np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2))])
    rbf, linear = RBF(), Linear()
    forms = [
        (MMS(), X, X),
        (MMS([[("r", rbf, ["a", "b"])], [("l", linear, ["c"]), ("r", rbf, ["d", "e"])]]), frame, frame),
        (MMS("precomputed"), [K, K[:1]], [K[:, :5], K[:1, :5]]),
    ]
    for number, (model, train, new) in enumerate(forms):
        model.set_params(n_rounds=2, n_epochs=3, random_state=0, callback=lambda m, r: False).fit(train, sets)
        path = tmp_path / f"{number}.npz"
        model.save(path)
        load(path).save(path)
        for a, b in zip(load(path).decision_function(new), model.decision_function(new), strict=True):
            assert_allclose(a, b, atol=1e-9)
        assert_array_equal(load(path).predict(new), model.predict(new))


@pytest.mark.parametrize("model", [MMS(), CLSVM(), MIMLSVM(), M3MIML(), GMMNaming(), DistNaming()])
def test_errors_of_all(model):
    X, y, lists = bags(np.random.default_rng(0), n_bags=5)
    sets = CandidateSet(lists, n_labels=4)
    other = CandidateSet(lists, n_labels=5)
    model = clone(model)
    with pytest.raises(NotFittedError):
        model.predict(X, sets)
    fewer = "X must have one row per instance of candidates, 15, got "
    refused = [
        (lambda: model.fit(X, y), TypeError, "candidates must be a CandidateSet"),
        (lambda: model.fit(X[1:], sets), ValueError, fewer + "14"),
        (lambda: model.fit(np.full_like(X, np.nan), sets), ValueError, "NaN"),
        (lambda: model.fit(X, sets).predict(X[:, :3]), ValueError, "5 features|X must have 5 columns"),
        (lambda: model.predict(X[:4], sets), ValueError, fewer + "4"),
        (lambda: model.predict(X, other), ValueError, "candidates must have the labels of training"),
        (lambda: model.score(X, y[1:]), ValueError, "y must have shape"),
    ]
    for call, error, words in refused:
        with pytest.raises(error, match=words):
            call()
    if isinstance(model, (MIMLSVM, M3MIML)):
        both = CandidateSet.from_labels(np.stack([y, y], axis=1))
        one = "candidates must have one attribute, got 2; candidates.attribute"
        with pytest.raises(ValueError, match=one):
            model.fit(X, both)
        assert model.fit(X, both.attribute(1)).predict(X).shape == y.shape

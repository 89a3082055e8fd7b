"""The most violating labeling: branch and bound, its relaxation and its limit, against an integer program."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mms_twins import matching_labelings, random_matching, random_scores, tuples, violation
from scipy.optimize import milp
from sklearn.exceptions import ConvergenceWarning

from cuelearn.mms import MMS, CandidateSet, Matching, inference
from cuelearn.mms.relaxation import PRICE_STEPS


def program(scores, listed, *, whole=True, least=1.0):
    """Value of the program of `cuelearn.mms.relaxation`, by HiGHS; `whole`: x is whole; `least`: of theta."""
    M, K = scores.shape
    of_slots = np.kron(np.eye(M), np.ones(K))
    chosen = np.zeros((len(listed), M * K + 1))
    for c, labeling in enumerate(listed):
        for m, (k,) in enumerate(labeling):
            chosen[c, m * K + k] = 1.0
    chosen[:, -1] = 1.0  # theta + agreeing labels <= M
    one_each = (np.column_stack([of_slots, np.zeros(M)]), 1.0, 1.0)
    highs = np.append(np.ones(M * K), np.inf)
    found = milp(
        -np.append(scores.ravel(), 1.0),
        constraints=[one_each, (chosen, -np.inf, M)],
        bounds=(np.append(np.zeros(M * K), least), highs),
        integrality=np.append(np.full(M * K, int(whole)), 0),
    )
    return -found.fun


def larger_bag(rng):
    """Scores, the candidates as a set and as a list: a bag too large to enumerate its labelings."""
    M, K = int(rng.integers(4, 7)), 6
    (scores,) = random_scores(rng, M, (K,))
    if rng.random() < 0.5:
        listed = tuples(rng.integers(K, size=(int(rng.integers(1, 25)), M)))
        return scores, CandidateSet([np.array(listed)], n_labels=K), sorted(set(listed), key=listed.index)
    words, allowed = random_matching(rng, M, (K,), (0,), most_words=4)
    return (
        scores,
        CandidateSet([Matching(words, allowed)], n_labels=K, null=0),
        matching_labelings(words, allowed, (0,)),
    )


def price_bound(scores, listed):
    """The bound of the root: least over prices of fictitious play, and over single candidates as prices."""
    M = len(scores)
    indicators = np.zeros((len(listed), *scores.shape))
    for indicator, labeling in zip(indicators, listed, strict=True):
        indicator[np.arange(M), [k for (k,) in labeling]] = 1.0
    bounds = [(scores + 1.0 - indicator).max(axis=1).sum() for indicator in indicators]
    price = np.zeros_like(scores)
    answers = np.zeros_like(scores)
    for step in range(PRICE_STEPS + 1):
        if step > 0:
            nearest = np.argmax((indicators * answers).sum(axis=(1, 2)))
            price += (indicators[nearest] - price) / step
        priced = scores + 1.0 - price
        bounds.append(priced.max(axis=1).sum())
        answers[np.arange(M), priced.argmax(axis=1)] += 1.0
    return min(bounds)


@settings(max_examples=60)
@given(st.integers(0, 2**32 - 1))
def test_searches_against_an_integer_program(seed):
    scores, sets, listed = larger_bag(np.random.default_rng(seed))
    largest = program(scores, listed)
    found = {}
    for method in inference.METHODS:
        labeling, value, bound = inference.most_violating(scores, sets, method=method, return_bound=True)
        labeling = tuples(labeling[None])[0]
        assert labeling not in listed and value == pytest.approx(violation([scores], labeling, listed))
        assert value <= largest + 1e-6 and bound >= largest - 1e-6
        found[method] = value, bound
    value, bound = found["exact"]
    assert value == pytest.approx(largest, abs=1e-6) and bound == value
    assert found["algorithm-10"][0] - 1e-9 <= found["lp"][0]
    # whole <= theta at least 1 <= relaxation <= prices
    relaxed = [program(scores, listed, whole=False, least=least) for least in (1.0, 0.0)]
    assert value <= relaxed[0] + 1e-6 and relaxed[0] <= relaxed[1] + 1e-6
    assert found["lp"][1] >= relaxed[1] - 1e-6


def test_prices_are_those_of_the_twin():
    rng = np.random.default_rng(3)
    for _ in range(20):
        scores = rng.normal(size=(5, 6))
        listed = list(dict.fromkeys(tuples(rng.integers(4, size=(12, 5)))))
        sets = CandidateSet([np.array(listed)], n_labels=6)
        _, value, bound = inference.most_violating(scores, sets, method="lp", return_bound=True)
        assert bound == pytest.approx(max(value, price_bound(scores, listed)), abs=1e-8)


def test_two_attributes_of_a_matching():
    """Against the same candidates, listed."""
    rng = np.random.default_rng(5)
    for _ in range(20):
        words, allowed = random_matching(rng, 4, (4, 3), (0, 0), most_words=4)
        implicit = CandidateSet([Matching(words, allowed)], n_labels=(4, 3), null=0)
        explicit = CandidateSet([implicit.bag(0)], n_labels=(4, 3), null=0)
        scores = random_scores(rng, 4, (4, 3), spread=1.0)
        for method in ("lp", "exact"):
            value, bound, twin = (
                *inference.most_violating(scores, implicit, method=method, return_bound=True)[1:],
                inference.most_violating(scores, explicit, method="exact")[1],
            )
            assert value <= twin + 1e-9 and bound >= twin - 1e-9
        assert value == pytest.approx(twin, abs=1e-9)


def test_a_search_that_ends_at_its_limit(monkeypatch):
    rng = np.random.default_rng(0)
    vectors = rng.integers(3, size=(2, 12, 6))
    X = rng.normal(size=(12, 4))
    sets = CandidateSet(list(vectors), n_labels=8)
    scores = rng.normal(size=(6, 8))
    whole = inference.most_violating(scores, sets, method="exact")[1]
    first = inference.most_violating(scores, sets)[1]
    monkeypatch.setitem(inference.METHODS, "exact", 1)
    _, value, bound = inference.most_violating(scores, sets, method="exact", return_bound=True)
    assert first - 1e-9 <= value <= whole + 1e-9 < bound
    with pytest.warns(ConvergenceWarning, match="partial labelings do not prove those of [12] bags; inf"):
        model = MMS(inference="exact", random_state=0).fit(X, sets)
    assert np.isnan(model.dual_gap_) and not model.converged_ and model.history_["n_unproven"].iloc[-1] > 0


def test_default_searches():
    """Exact for small bags, listed or not; the relaxation beyond; with Pegasos Algorithm 10."""
    rng = np.random.default_rng(1)
    cases = ((12, 6, "frank-wolfe", "exact"), (13, 6, "frank-wolfe", "lp"), (12, 200, "frank-wolfe", "lp"))
    for M, size, solver, chosen in (*cases, (3, 6, "pegasos", "algorithm-10")):
        sets = CandidateSet(list(rng.integers(3, size=(3, size, M))), n_labels=4)
        X = rng.normal(size=(3 * M, 5))
        options = {"C": 0.1, "n_rounds": 1, "n_epochs": 10, "tol": 0.5, "solver": solver, "random_state": 0}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            models = [MMS(inference=search, **options).fit(X, sets) for search in ("auto", chosen)]
        assert np.array_equal(models[0].coef_, models[1].coef_)
    two = Matching(np.array([[1], [2]]), np.ones((2, 3), dtype=bool))
    sets = CandidateSet([two, two], n_labels=4, null=0)
    assert MMS(random_state=0).fit(rng.normal(size=(4, 3)), sets).dual_gap_ >= 0.0

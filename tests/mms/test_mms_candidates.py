"""Candidate sets, listed and as matchings, and the searches on them, against plain enumeration."""

import itertools
import math
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mms_twins import (
    algorithm_10,
    all_labelings,
    ambiguous_loss,
    best_average,
    best_by_slots,
    best_value,
    matching_labelings,
    most_violating,
    random_listed,
    random_matching,
    random_scores,
    score,
    slot_loss,
    slot_set,
    tuples,
    violation,
    weighted,
)
from scipy.optimize import milp
from scipy.sparse import coo_array
from scipy.stats import chisquare
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score

from cuelearn.mms import MMS, CandidateSet, Matching, inference
from cuelearn.mms.inference import PRICE_STEPS


def random_set(rng, *, matchings=True, priors=False, most_instances=3):
    """A CandidateSet, and the plain list of each bag's labelings (in any order for a matching)."""
    P = int(rng.integers(1, 3))
    n_labels = tuple(int(k) for k in rng.integers(2, 5 if P == 1 else 4, P))
    null = tuple(int(rng.integers(k)) for k in n_labels)
    bags, plain, weights = [], [], []
    for _ in range(int(rng.integers(1, 5))):
        M = int(rng.integers(1, most_instances + 1 if P == 1 else 3))
        if matchings and rng.random() < 0.5:
            words, allowed = random_matching(rng, M, n_labels, null)
            bags.append(Matching(words, allowed))
            plain.append(matching_labelings(words, allowed, null))
            weights.append(None)
            continue
        listed = random_listed(rng, M, n_labels)
        plain.append(listed)
        array = np.array(listed)
        bags.append(array[:, :, 0] if P == 1 and rng.random() < 0.5 else array)
        weights.append(rng.random(len(listed)) + 0.05 if rng.random() < 0.7 else None)
    made = CandidateSet(bags, n_labels=n_labels, null=null, priors=weights if priors else None)
    return made, plain, n_labels, null, weights if priors else [None] * len(plain)


def bag_scores(rng, made, i):
    parts = random_scores(rng, int(made.bag_sizes[i]), made.n_labels)
    return parts, parts[0] if len(parts) == 1 else parts


@settings(max_examples=60)
@given(st.integers(0, 2**32 - 1))
def test_reading_a_set(seed):
    rng = np.random.default_rng(seed)
    made, plain, n_labels, _, _ = random_set(rng)
    P, sizes = len(n_labels), [len(listed[0]) for listed in plain]
    found = made.n_bags, made.n_attributes, made.n_labels, made.n_instances
    assert found == (len(plain), P, n_labels, sum(sizes))
    assert made.bag_sizes.tolist() == sizes and made.bag_starts.tolist() == [0, *itertools.accumulate(sizes)]
    assert made.bag_of.tolist() == [i for i, size in enumerate(sizes) for _ in range(size)]
    assert made.n_candidates == [len(listed) for listed in plain]
    for i, listed in enumerate(plain):
        array = made.bag(i)
        assert array.dtype == np.int32 and array.shape == (len(listed), sizes[i], P)
        assert sorted(tuples(array)) == sorted(listed)
        if made.is_listed(i):
            assert tuples(array) == listed  # in the order given
        assert tuples(np.array(list(made.iterate(i)))) == tuples(array)
        part = list(made.iterate(i, 1, 3))
        assert [tuples(z[None])[0] for z in part] == tuples(array)[1:3]
        for labeling in all_labelings(sizes[i], n_labels):
            assert made.contains(i, labeling) == (labeling in listed)
            assert made.loss(i, labeling) == ambiguous_loss(labeling, listed)
    for p in range(P):
        mask = np.zeros((sum(sizes), n_labels[p]), dtype=bool)
        for i, listed in enumerate(plain):
            for m in range(sizes[i]):
                mask[made.bag_starts[i] + m, sorted(slot_set(listed, m, p))] = True
        assert np.array_equal(made.mask(p), mask)
        assert np.array_equal(
            made.bag_mask(p), [mask[made.bag_of == i].any(axis=0) for i in range(len(plain))]
        )


@settings(max_examples=40)
@given(st.integers(0, 2**32 - 1))
def test_parts_of_a_set(seed):
    rng = np.random.default_rng(seed)
    made, plain, n_labels, null, weights = random_set(rng, priors=rng.random() < 0.5)
    order = rng.integers(0, made.n_bags, rng.integers(1, 6))
    part = made.take(order)
    assert part.n_labels == n_labels and part.null == null
    for new, old in enumerate(order):
        assert sorted(tuples(part.bag(new))) == sorted(plain[old])
        before, after = made.priors(old), part.priors(new)
        assert (before is None) == (after is None) and (before is None or np.array_equal(before, after))
    rows = made.rows(order)
    assert rows.tolist() == [r for i in order for r in range(made.bag_starts[i], made.bag_starts[i + 1])]
    chosen = np.zeros(made.n_bags, dtype=bool)
    chosen[order] = True
    assert made.take(chosen).n_candidates == [len(plain[i]) for i in range(made.n_bags) if chosen[i]]
    for p in range(len(n_labels)):
        alike = any(
            not made.is_listed(i)
            and (len(set(words := made._bags[i].words[:, p].tolist())) < len(words) or null[p] in words)
            for i in range(made.n_bags)
        )
        if alike:
            with pytest.raises(ValueError, match="does not tell the words of bag"):
                made.attribute(p)
            continue
        alone = made.attribute(p)
        assert alone.n_labels == (n_labels[p],) and alone.null == (null[p],)
        for i, listed in enumerate(plain):
            single = list(dict.fromkeys(tuple((row[p],) for row in z) for z in listed))
            assert sorted(tuples(alone.bag(i))) == sorted(single)
            if alone.priors(i) is not None:  # priors of vectors that are alike now add up
                sums = dict.fromkeys(single, 0.0)
                for w, z in zip(weights[i], listed, strict=True):
                    sums[tuple((row[p],) for row in z)] += w
                assert np.allclose(alone.priors(i), np.array([*sums.values()]) / max(sums.values()))


@settings(max_examples=60)
@given(st.integers(0, 2**32 - 1))
def test_best_candidates_and_the_average_of_their_indicators(seed):
    rng = np.random.default_rng(seed)
    made, plain, n_labels, _, weights = random_set(rng, priors=rng.random() < 0.5)
    columns = np.cumsum([0, *n_labels])
    every = [bag_scores(rng, made, i)[0] for i in range(made.n_bags)]
    if rng.random() < 0.2:  # the first round of Algorithm 8: all candidates are best
        every = [[np.zeros_like(part) for part in parts] for parts in every]
    stacked = [np.concatenate([parts[p] for parts in every]) for p in range(len(n_labels))]
    answers = inference.best_labelings(stacked[0] if len(stacked) == 1 else stacked, made)
    for i, (listed, parts, prior) in enumerate(zip(plain, every, weights, strict=True)):
        whole = np.ascontiguousarray(np.concatenate(parts, axis=1))
        target = np.empty_like(whole)
        best = np.empty(1)
        scratch = inference.Scratch.of(made.packed)
        inference.mean_candidates(made.packed, i, i + 1, whole, False, target, 0.0, best, scratch)
        assert best[0] == pytest.approx(best_value(parts, listed, prior), abs=1e-9)
        expected = best_average(parts, listed, n_labels, prior)
        for p in range(len(n_labels)):
            assert np.allclose(target[:, columns[p] : columns[p + 1]], expected[p], atol=1e-9)
        answer = tuples(answers[made.bag_of == i][None])[0]
        values = weighted(parts, listed, prior)
        assert answer in listed and values[listed.index(answer)] == pytest.approx(max(values), abs=1e-9)


@settings(max_examples=80)
@given(st.integers(0, 2**32 - 1))
def test_the_most_violating_labeling(seed):
    rng = np.random.default_rng(seed)
    made, plain, n_labels, _, _ = random_set(rng)
    for i, listed in enumerate(plain):
        parts, given_scores = bag_scores(rng, made, i)
        exact, _ = most_violating(parts, listed, n_labels)
        if exact == -np.inf:
            with pytest.raises(ValueError, match=f"every labeling of bag {i} is a candidate"):
                inference.most_violating(given_scores, made, i)
            continue
        labeling, value = inference.most_violating(given_scores, made, i)
        labeling = tuples(labeling[None])[0]
        twin, pops = algorithm_10(parts, listed, n_labels)
        assert labeling not in listed and value == pytest.approx(violation(parts, labeling, listed))
        assert pops <= len(listed) + 1
        # Algorithm 10 ends at the largest sum of slot losses and scores; its U lies between it and the exact
        by_slots = best_by_slots(parts, listed, n_labels)
        for found in (labeling, twin):
            assert slot_loss(found, listed) + score(parts, found) == pytest.approx(by_slots, abs=1e-9)
        assert by_slots - 1e-9 <= value <= exact + 1e-9
        _, value, bound = inference.most_violating(given_scores, made, i, method="lp", return_bound=True)
        assert value <= exact + 1e-9 and bound >= exact - 1e-9
        labeling, value = inference.most_violating(given_scores, made, i, method="exact")
        assert value == pytest.approx(exact, abs=1e-9)
        assert violation(parts, tuples(labeling[None])[0], listed) == pytest.approx(exact, abs=1e-9)


def test_the_example_of_the_thesis():
    """z1 = [1, 2], z2 = [2, 1]: [1, 3] by Algorithm 10, [1, 1] exactly. Labels count from 0 here."""
    listed = tuples([[0, 1], [1, 0]])
    parts, heap = [np.array([[3.0, 2.0, 1.0], [1.0, 1.0, 0.99]])], ((0,), (2,))
    for printed in (False, True):
        assert algorithm_10(parts, listed, (3,), printed=printed)[0] == heap
    value, best = most_violating(parts, listed, (3,))
    assert best == [((0,), (0,))] and value == 5.0
    assert violation(parts, heap, listed) == pytest.approx(4.99)
    made = CandidateSet([np.array(listed)], n_labels=3)
    assert inference.most_violating(parts[0], made)[0].ravel().tolist() == [0, 2]
    assert inference.most_violating(parts[0], made, method="exact")[0].ravel().tolist() == [0, 0]


def test_what_the_corrections_of_algorithm_10_mend():
    # 1. sums without the losses. After [2, 2], a candidate, [1, 2] has score 0.9, no loss, [2, 1] 0.3 and one
    listed = tuples([[0, 2], [1, 1]])
    parts = [np.array([[0.0, 1.1, -2.0], [-0.8, 0.9, -0.4]])]
    corrected, printed = (algorithm_10(parts, listed, (3,), printed=flag)[0] for flag in (False, True))
    assert corrected == ((1,), (0,)) and printed == ((0,), (1,))
    best = best_by_slots(parts, listed, (3,))
    assert best == pytest.approx(1.3) == slot_loss(corrected, listed) + score(parts, corrected)
    made = CandidateSet([np.array(listed)], n_labels=3)
    assert inference.most_violating(parts[0], made)[0].ravel().tolist() == [1, 0]
    # 2. index vectors with several positive entries have as many parents: more than L + 1 pops
    listed = all_labelings(2, (3,))
    parts = [np.tile([3.0, 2.0, 1.0, -9.0, -9.5], (2, 1))]
    pops, more = (algorithm_10(parts, listed, (5,), printed=flag)[1] for flag in (False, True))
    assert pops == len(listed) + 1 < more
    # 3. an index passes the last label
    with pytest.raises(IndexError):
        algorithm_10([part[:, :4] for part in parts], listed, (4,), printed=True)
    assert algorithm_10([part[:, :3] for part in parts], listed, (3,)) == (None, 9)


def test_counts_and_order_of_matchings():
    def number(f, w):
        return sum(math.comb(f, j) * math.comb(w, j) * math.factorial(j) for j in range(1, min(f, w) + 1))

    made = CandidateSet([Matching(np.array([[1], [2]]), np.ones((2, 3), dtype=bool))], null=0)
    figure_5_4 = [[1, 2], [1, 0], [0, 2], [2, 1], [0, 1], [2, 0]]
    assert sorted(made.bag(0)[:, :, 0].tolist()) == sorted(figure_5_4)
    large = CandidateSet([Matching(np.arange(1, 10)[:, None], np.ones((15, 10), dtype=bool))], null=0)
    assert large.n_candidates == [number(15, 9)]
    with pytest.raises(ValueError, match=f"^bag 0 has {number(15, 9)} candidates, more than 10000"):
        large.bag(0)
    first = [z.ravel().tolist() for z in large.iterate(0, 0, 3)]
    assert all(large.contains(0, z) for z in first) and len({tuple(z) for z in first}) == 3


def test_draws_are_uniform_over_the_candidates():
    rng = np.random.default_rng(0)
    allowed = np.array([[True, True, False], [True, True, True]])
    kinds = [Matching(np.array([[1], [2]]), allowed), np.array([[0, 1], [1, 0], [2, 2]])]
    made = CandidateSet([kinds[k % 2] for k in range(6000)], n_labels=3, null=0)
    drawn = made.draw(rng).reshape(-1, 2)
    for kind, every in enumerate((matching_labelings([[1], [2]], allowed, (0,)), tuples(kinds[1]))):
        counts = dict.fromkeys(every, 0)
        for a, b in drawn[kind::2].tolist():
            counts[((a,), (b,))] += 1  # a KeyError would be no candidate
        assert chisquare(list(counts.values())).pvalue > 1e-3
    assert np.array_equal(made.draw(3), made.draw(3))


def test_repeats_count_once_and_known_labels_have_one_candidate():
    made = CandidateSet([[[1, 0], [0, 1], [1, 0]]], priors=[[0.2, 0.5, 0.4]])
    assert made.bag(0)[:, :, 0].tolist() == [[1, 0], [0, 1]] and np.allclose(made.priors(0), [1.0, 0.5 / 0.6])
    impossible = CandidateSet([[[0, 1], [1, 0], [1, 1]]], priors=[[0.6, 0.3, 0.0]])
    assert impossible.n_candidates == [2]
    y = np.array([2, 0, 1, 1])
    sure = CandidateSet.from_labels(y, [1, 3], n_labels=4)
    assert sure.n_candidates == [1, 1] and sure.bag(1).tolist() == [[[0], [1], [1]]] and sure.n_labels == (4,)
    assert np.array_equal(sure.mask(), np.eye(4, dtype=bool)[y])
    assert CandidateSet.from_labels(y).bag_sizes.tolist() == [1] * 4


@pytest.mark.parametrize(
    ("given_set", "options", "message"),
    [
        ([], {}, "candidates must be a list .*, at least 1, got 0"),
        ([[[0, 1]], [[0, 1], [0]]], {}, r"candidates\[1\] must .*, got rows of different lengths"),
        ([[[0, 4]]], {"n_labels": 3}, r"candidates\[0\] must hold labels from 0 to 2, got 4"),
        ([[["Ada", "Alan"]]], {}, r"candidates\[0\] must .*, got dtype <U4 .* go to classes="),
        ([[[0, 2**31]]], {}, r"candidates\[0\] must .*, got 2147483648"),
        ([[[[0, 1]]]], {"n_labels": (3,)}, "n_labels must be given once or once for each"),
        ([Matching(np.array([[1]]), np.ones((1, 2), bool))], {}, "null must be given where a bag is a Match"),
        ([Matching(np.array([[0]]), np.ones((1, 2), bool))], {"null": 0}, ".* no word whose labels are all"),
        ([Matching(np.array([[1]]), np.eye(1, 2) > 0)], {"null": 0}, ".* allow at least one labeling vector"),
        ([Matching(np.arange(1, 19), np.ones((1, 19), bool))], {"null": 0}, ".* have at most 16 words"),
        ([Matching(np.array([[1]]), np.ones((1, 3), bool))], {"null": 0}, ".*allowed must have shape"),
    ],
)
def test_bad_sets(given_set, options, message):
    with pytest.raises((TypeError, ValueError), match=f"^{message}"):
        CandidateSet(given_set, **options)


def test_partial_labels_from_an_indicator_matrix():
    possible = np.array([[1, 0, 1], [0, 1, 0]])
    frame = pd.DataFrame({"a": [True, False], "b": [0, 1], "c": [1, 0]})  # of several types
    unsorted = coo_array(([1, 1, 1], ([0, 1, 0], [2, 1, 0])), shape=(2, 3))
    for form in (possible, frame, unsorted):
        sets = CandidateSet.from_indicator(form)
        assert sets.n_labels == (3,) and [sets.bag(i)[:, 0, 0].tolist() for i in (0, 1)] == [[0, 2], [1]]
    assert CandidateSet.from_indicator(frame).classes[0].tolist() == ["a", "b", "c"]
    for bad, message in ((possible * 2, "booleans, got 2"), (possible * [[1], [0]], "row 1")):
        with pytest.raises(ValueError, match=message):
            CandidateSet.from_indicator(bad)


def test_bags_in_scikit_learns_tools():
    y = np.arange(24) % 3
    X = np.eye(3)[y]
    bags = CandidateSet([[part, part[::-1]] for part in y.reshape(-1, 2)], n_labels=3)
    assert bags.shape == (24,) and len(bags[[4, 5, 0, 1]]) == 2
    with pytest.raises(ValueError, match=r"whole bags.*groups=candidates.bag_of with cv=GroupKFold"):
        bags[np.array([1, 0])]
    model = MMS(random_state=0)
    search = GridSearchCV(model, {"C": [0.1, 1.0]}, cv=GroupKFold(3)).fit(X, bags, groups=bags.bag_of)
    assert search.best_score_ == 1.0 and search.predict(X).shape == (24,)
    single = CandidateSet.from_labels(y)
    assert cross_val_score(model, X, single, cv=3, error_score="raise").tolist() == [1.0] * 3
    wrong = CandidateSet.from_labels((y + (y == 0)) % 3, n_labels=3)
    assert model.fit(X, single).score(X, wrong) == pytest.approx(2 / 3)


# --- the most violating labeling of larger bags: branch and bound, its relaxation and its limit


def program(scores, listed, *, whole=True, least=1.0):
    """Value of the program of `cuelearn.mms.inference`, by HiGHS; `whole`: x is whole; `least`: of theta."""
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

"""Artificial ambiguous data: what section 5.5 says of it, by counting."""

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from scipy import sparse
from scipy.stats import chisquare

from cuelearn.datasets.ambiguous import make_ambiguous


def labelled(n, n_classes, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n)
    y[:n_classes] = np.arange(n_classes)
    return rng.normal(size=(n, 3)), y


def partners(pairs):
    return {a: b for pair in pairs for a, b in (pair, pair[::-1])}


def bags(data):
    """Of each bag: its rows, its true labels and its vectors (tuples)."""
    sets = data.candidates
    for i in range(sets.n_bags):
        rows = slice(sets.bag_starts[i], sets.bag_starts[i + 1])
        yield rows, tuple(data.labels()[rows].tolist()), [tuple(v) for v in sets.bag(i)[:, :, 0].tolist()]


def meeting(data):
    """Of either class of each pair: how many of its instances meet the other in their bag, (n_pairs, 2)."""
    met = Counter()
    for _, truth, _ in bags(data):
        met.update((k, z) for k in truth for z in set(truth))
    met = {pair: count / np.sum(data.labels() == pair[0]) for pair, count in met.items()}
    return np.array([[met.get((a, b), 0.0), met.get((b, a), 0.0)] for a, b in data.correlated.tolist()])


@pytest.mark.parametrize("p_ambiguous", [0.0, 0.5, 1.0])
@pytest.mark.parametrize(("n", "size", "L"), [(103, 4, 6), (60, 5, 400), (30, 1, 5)])
def test_vectors_are_distinct_hold_the_truth_once_and_come_from_the_pool(n, size, L, p_ambiguous):
    X, y = labelled(n, 5)
    options = {"bag_size": size, "n_candidates": L, "p_correlated": 0.25 * (size > 1)}
    data = make_ambiguous(X, y, p_ambiguous=p_ambiguous, random_state=3, **options)
    assert sorted(data.order) == list(range(n))
    assert np.array_equal(data.X, X[data.order])
    assert np.array_equal(data.y, y[data.order])
    sizes = [size] * (n // size) + [n % size] * (n % size > 0)
    assert data.candidates.bag_sizes.tolist() == sizes  # the last is smaller; nothing is lost
    other = partners(data.ambiguous.tolist())
    for _, truth, vectors in bags(data):
        assert vectors.count(truth) == 1 and len(set(vectors)) == len(vectors)
        own = set(truth)
        most = own | {other[k] for k in own if k in other}
        used = set(itertools.chain(*vectors))
        assert own <= used <= most
        if p_ambiguous in (0.0, 1.0):  # the pool is known
            pool = most if p_ambiguous else own
            assert len(vectors) == 1 + min(L, len(pool) ** len(truth) - 1)
            if L >= len(pool) ** len(truth) - 1:
                assert set(vectors) == set(itertools.product(pool, repeat=len(truth)))


def test_a_vector_has_the_probability_that_the_text_gives_it():
    """One wrong vector over bags of three: b from 1 to 3, b of the instances, labels from the pool's rest."""
    y = np.tile([0, 1, 2], 5000)
    data = make_ambiguous(np.zeros((y.size, 1)), y, bag_size=3, n_candidates=1, random_state=1)
    seen, places = Counter(), np.zeros(2, dtype=int)
    for _, truth, vectors in bags(data):
        if len(set(truth)) == 3:
            places[vectors.index(truth)] += 1
            (wrong,) = (v for v in vectors if v != truth)
            seen[tuple((w - t) % 3 for w, t in zip(wrong, truth))] += 1
    total = sum(seen.values())
    assert total > 1000 and len(seen) == 3**3 - 1
    expected = []
    for change in seen:
        b = sum(shift > 0 for shift in change)
        expected.append(total / 3 / math.comb(3, b) / 2**b)
    assert chisquare(list(seen.values()), expected).pvalue > 1e-3
    assert chisquare(places).pvalue > 1e-3  # and the truth has no place of its own


def test_an_ambiguous_partner_is_in_the_pool_of_a_bag_with_its_probability():
    X, y = labelled(8_000, 8)
    data = make_ambiguous(X, y, bag_size=2, n_candidates=100, p_ambiguous=0.3, random_state=0)
    other, there, possible = partners(data.ambiguous.tolist()), 0, 0
    for _, truth, vectors in bags(data):
        used = set(itertools.chain(*vectors))
        for k in set(truth):
            if other[k] not in truth:
                possible += 1
                there += other[k] in used
    assert abs(there / possible - 0.3) < 4 * math.sqrt(0.3 * 0.7 / possible)


@pytest.mark.parametrize("p_correlated", [0.0, 0.5])
def test_correlated_classes_meet_as_often_as_asked(p_correlated):
    y = np.repeat(np.arange(10), 400)
    data = make_ambiguous(np.zeros((4000, 1)), y, p_correlated=p_correlated, n_candidates=0, random_state=2)
    shares = meeting(data)
    assert shares.min() >= p_correlated
    chance = 1.0 - math.comb(3599, 4) / math.comb(3999, 4)
    if p_correlated == 0.0:
        assert abs(shares.mean() - chance) < 0.03


def test_of_unequal_classes_the_smaller_one_counts():
    y = np.array([0] * 3000 + [1] * 600 + [2] * 20000)
    X, options = np.zeros((y.size, 1)), {"bag_size": 6, "p_correlated": 0.5, "n_candidates": 0}
    for k in range(20):  # until the pair is the one wanted
        data = make_ambiguous(X, y, random_state=k, **options)
        if set(pair := data.correlated[0].tolist()) == {0, 1}:
            break
    large, small = meeting(data)[0, [pair.index(0), pair.index(1)]]
    by_chance = [1.0 - (1.0 - size / y.size) ** 5 for size in (600, 3000)]
    assert abs(large - (0.1 + 0.9 * by_chance[0])) < 0.04 and abs(small - (0.5 + 0.5 * by_chance[1])) < 0.06
    assert small >= 0.5


def test_co_occurrence_by_counting():
    X, y = labelled(200, 6)
    names = np.array(["f", "e", "d", "c", "b", "a"])
    options = {"bag_size": 3, "n_candidates": 4, "p_correlated": 0.3, "p_ambiguous": 0.5}
    data = make_ambiguous(X, names[y], random_state=5, **options)
    assert data.candidates.classes[0].tolist() == sorted(names)
    assert np.array_equal(data.y, names[y][data.order])
    counts = np.zeros((6, 6))
    for _, truth, vectors in bags(data):
        for m, k in enumerate(truth):
            counts[k, sorted({v[m] for v in vectors})] += 1
    shares = data.co_occurrence()
    assert np.allclose(shares, counts / np.bincount(data.labels())[:, None])
    assert np.all(np.diag(shares) == 1.0)


def test_streams_of_draws_are_apart():
    X, y = labelled(300, 7)
    first = make_ambiguous(X, y, n_candidates=5, p_correlated=0.25, random_state=4)
    options = {"n_candidates": 9, "p_correlated": 0.25, "p_ambiguous": 0.5}
    same = make_ambiguous(X, y, random_state=np.random.default_rng(4), **options)
    other = make_ambiguous(X, y, n_candidates=5, p_correlated=0.25, random_state=5)
    again = make_ambiguous(sparse.csr_matrix(X), y, n_candidates=5, p_correlated=0.25, random_state=4)
    assert np.array_equal(first.order, same.order) and not np.array_equal(first.order, other.order)
    assert np.array_equal(first.ambiguous, same.ambiguous)
    assert np.array_equal(first.correlated, same.correlated)
    # seven classes: one has no partner
    assert len(first.correlated) == 3 and len(np.unique(first.correlated)) == 6
    assert sparse.issparse(again.X) and np.array_equal(again.X.toarray(), first.X)
    assert all(np.array_equal(first.candidates.bag(i), again.candidates.bag(i)) for i in range(60))


def test_bad_input_in_one_sentence():
    X, y = labelled(20, 4)
    for given, words in [
        ({"X": X[:5]}, "X must have shape"),
        ({"y": np.zeros(20)}, "y must hold at least 2 classes, got 1"),
        ({"bag_size": 1, "p_correlated": 0.5}, "p_correlated must be smaller for bags of 1"),
    ]:
        with pytest.raises(ValueError, match=f"^{words}"):
            make_ambiguous(**{"X": X, "y": y, **given})

"""Votes of annotators and links."""

import itertools
import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from cuelearn.mms import MMS, CandidateSet, candidates_from_annotators, candidates_from_links, dawid_skene


def crowd(seed, n=40, n_labels=3, n_annotators=4, voting=0.8):
    rng = np.random.default_rng(seed)
    truth = rng.integers(n_labels, size=n)
    confusion = rng.dirichlet(np.ones(n_labels), size=(n_annotators, n_labels)) * 0.5
    confusion += 0.5 * np.eye(n_labels)
    votes = np.array([[rng.choice(n_labels, p=pi[k]) for pi in confusion] for k in truth])
    votes[rng.random(votes.shape) > voting] = -1
    return votes


def plain_dawid_skene(votes, K, sigma, n_iter):
    """EM in loops: posteriors, confusions, shares of classes, and objectives."""
    n, A = votes.shape
    T = np.empty((n, K))
    for i in range(n):
        own = [v for v in votes[i] if v >= 0]
        T[i] = [own.count(k) / len(own) for k in range(K)] if own else np.full(K, 1 / K)
    objectives = []
    for _ in range(n_iter):
        share = T.sum(axis=0) + sigma
        share /= share.sum()
        pi = np.full((A, K, K), sigma)
        for i, a in np.ndindex(n, A):
            if votes[i, a] >= 0:
                pi[a, :, votes[i, a]] += T[i]
        pi /= pi.sum(axis=2, keepdims=True)
        objective = sigma * (np.log(share).sum() + np.log(pi).sum())
        for i in range(n):
            joint = share.copy()
            for a in range(A):
                if votes[i, a] >= 0:
                    joint *= pi[a, :, votes[i, a]]
            objective += np.log(joint.sum())
            T[i] = joint / joint.sum()
        objectives.append(objective)
    return T, pi, share, np.array(objectives)


@pytest.mark.parametrize("smoothing", [0.01, 6.0])
def test_em_equals_its_twin_and_never_falls(smoothing):
    votes = crowd(0, n=25)
    votes[0] = -1  # an item without votes
    result = dawid_skene(votes, 3, smoothing=smoothing, tol=1e-10, max_iter=5000)
    plain = plain_dawid_skene(votes, 3, smoothing / 3, len(result.history))
    for value, expected in zip(result, plain, strict=False):
        assert_allclose(value, expected, rtol=1e-9, atol=1e-12)
    assert result.converged
    assert np.diff(result.history).min() >= -1e-9


def test_candidates_are_the_probable_labels_with_posteriors_as_priors():
    votes = crowd(1)
    result = candidates_from_annotators(votes, threshold=0.3)
    assert_array_equal(result.posterior, dawid_skene(votes, 3).posterior)
    assert_array_equal(result.labels(), result.posterior.argmax(axis=1))
    counts = np.stack([(votes == k).sum(axis=1) for k in range(3)], axis=1)
    voted = counts.any(axis=1)
    shares = counts[voted] / counts[voted].sum(axis=1, keepdims=True)
    assert_allclose(candidates_from_annotators(votes, method="majority").posterior[voted], shares)
    for i, shares in enumerate(result.posterior):
        kept = np.flatnonzero(shares >= 0.3 * shares.max())
        assert_array_equal(result.candidates.bag(i)[:, 0, 0], kept)
        assert_allclose(result.candidates.priors(i), shares[kept] / shares.max())
    assert set(candidates_from_annotators(votes, threshold=1.0).candidates.n_candidates) == {1}
    assert set(candidates_from_annotators(votes, threshold=0.0).candidates.n_candidates) == {3}
    equal = result.candidates.without_priors()
    assert equal.n_candidates == result.candidates.n_candidates
    assert all(equal.priors(i) is None for i in range(len(equal)))
    assert np.all(equal.packed.weight == 1.0) and not np.all(result.candidates.packed.weight == 1.0)


def test_forms_of_votes_agree():
    votes = crowd(2)
    names = np.array(["a", "b", "c"])
    text = np.where(votes >= 0, names[votes], None)
    item, annotator = np.nonzero(votes >= 0)
    order = np.random.default_rng(0).permutation(item.size)
    rows = {"item": item[order], "annotator": annotator[order], "label": text[item, annotator][order]}
    expected = candidates_from_annotators(votes)
    missing = np.where(votes >= 0, votes, np.nan)
    nullable = pd.DataFrame(missing).astype("Int64")
    empty = np.where(votes >= 0, names[votes], "")
    floats = pd.DataFrame(rows).astype({"item": float})
    for given in (text, pd.DataFrame(text), pd.DataFrame(rows), missing, nullable, empty, floats):
        result = candidates_from_annotators(given)
        assert_allclose(result.posterior, expected.posterior, rtol=1e-12)
        assert_array_equal(result.annotators, range(4))
    more = candidates_from_annotators(text, classes=["c", "b", "a", "d"])
    assert more.candidates.n_labels == (4,)
    assert list(more.candidates.classes[0]) == ["c", "b", "a", "d"]


@pytest.mark.parametrize("n, n_annotators, n_labels, accuracy", [(60, 3, 2, 0.92), (60, 5, 3, 0.8)])
def test_votes_that_do_not_determine_confusions(n, n_annotators, n_labels, accuracy):
    """Where 0 to 100% of the items have a second vote, labels are about as good as the votes themselves."""
    rng = np.random.default_rng(0)
    truth = rng.integers(n_labels, size=n)
    warned = []
    for overlap in (0.0, 0.2, 0.5, 1.0):
        difference = []
        for _ in range(5):
            votes = np.full((n, n_annotators), -1)
            for i in range(n):
                for a in rng.choice(n_annotators, 1 + (rng.random() < overlap), replace=False):
                    wrong = (truth[i] + rng.integers(1, n_labels)) % n_labels
                    votes[i, a] = truth[i] if rng.random() < accuracy else wrong
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                result = candidates_from_annotators(votes, classes=range(n_labels))
            majority = candidates_from_annotators(votes, classes=range(n_labels), method="majority")
            difference.append(np.mean(result.labels() == truth) - np.mean(majority.labels() == truth))
        warned.append(len(caught))
        assert np.mean(difference) > -0.02
    assert warned[0] == 1 and sorted(warned, reverse=True) == warned
    n_pairs = 5 * n_annotators * n_labels * (n_labels - 1)
    assert (warned[-1] == 0) == (n >= n_pairs)


@pytest.mark.parametrize(
    "change, message",
    [
        ({"votes": [[None, None]]}, "votes must hold at least one label"),
        ({"classes": [0, 1]}, "votes must be among 0, 1, got 2"),
        (
            {"votes": pd.DataFrame({"item": [0, 0], "annotator": [1, 1], "label": [0, 1]})},
            "votes: pairs of item and annotator must be distinct",
        ),
        ({"votes": pd.DataFrame({"item": [0, np.nan], "annotator": 1, "label": 0})}, "the row of X, must"),
        ({"votes": pd.DataFrame({"item": [0, 9], "a": [1, 1]})}, "columns item, annotator, label or none"),
        ({"votes": pd.DataFrame({"item": [0, 999], "annotator": 1, "label": 0})}, "got 2 up to 999"),
        ({"votes": [[-1, 1], [1, 1]]}, "classes must not include -1"),
        ({"votes": [[1, "a"], ["a", 1]]}, "votes must be numbers or text"),
    ],
)
def test_bad_votes(change, message):
    given = {"votes": [[0, 1], [2, -1]]} | change
    with pytest.raises(ValueError, match=message):
        candidates_from_annotators(given.pop("votes"), **given)


def test_all_labels_as_candidates_are_doubted():
    items = candidates_from_annotators(crowd(0), threshold=0.0)
    X = np.random.default_rng(0).normal(size=(items.candidates.n_bags, 3))
    with pytest.warns(ConvergenceWarning, match="MMS has learned nothing"):
        MMS(random_state=0).fit(X, items.candidates)


def test_em_that_stops_early_warns():
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        assert not dawid_skene(crowd(0), 3, max_iter=2).converged


def plain_links(sets, same, different, starts):
    """Labelings of merged bags that obey the links, with products of priors, by brute force."""
    result = []
    for a, b in itertools.pairwise(starts):
        merged = [i for i in range(sets.n_bags) if a <= sets.bag_starts[i] < b]
        allowed = {}
        for choice in itertools.product(*(range(len(sets.bag(i))) for i in merged)):
            chosen = list(zip(merged, choice, strict=True))
            z = np.concatenate([sets.bag(i)[c] for i, c in chosen])
            good = all(np.array_equal(z[u - a], z[v - a]) for u, v in same if a <= u < b)
            if good and not any(np.array_equal(z[u - a], z[v - a]) for u, v in different if a <= u < b):
                given = [(sets.priors(i), c) for i, c in chosen]
                allowed[tuple(z.ravel())] = np.prod([p[c] for p, c in given if p is not None])
        result.append(allowed)
    return result


@pytest.mark.parametrize("n_attributes", [1, 2])
@pytest.mark.parametrize("seed", range(4))
def test_links_equal_brute_force(seed, n_attributes):
    rng = np.random.default_rng(seed)
    sizes = [1, 2, 1, 1, 2, 3]
    starts = np.array([0, 4, 10])
    truth = rng.integers(3, size=(10, n_attributes))
    bags, priors, at = [], [], 0
    for size in sizes:
        wrong = rng.integers(3, size=(4, size, n_attributes))
        bags.append(np.unique(np.concatenate([truth[None, at : at + size], wrong]), axis=0))
        priors.append(rng.random(len(bags[-1])) + 0.1)
        at += size
    priors[1] = None
    sets = CandidateSet(bags, priors=priors, n_labels=[3] * n_attributes)
    pairs = [p for a, b in itertools.pairwise(starts) for p in itertools.permutations(range(a, b), 2)]
    pairs = [pairs[k] for k in rng.choice(len(pairs), 8, replace=False)]
    same = [p for p in pairs if np.array_equal(*truth[list(p)])]
    different = [p for p in pairs if not np.array_equal(*truth[list(p)])]
    linked = candidates_from_links(sets, same, different, bag_sizes=[4, 6])
    for i, allowed in enumerate(plain_links(sets, same, different, starts)):
        given = {tuple(z.ravel()): p for z, p in zip(linked.bag(i), linked.priors(i), strict=True)}
        assert given.keys() == allowed.keys()
        top = max(allowed.values())
        assert all(given[z] == pytest.approx(allowed[z] / top) for z in given)
        fewer = candidates_from_links(sets, same, different, bag_sizes=[4, 6], threshold=0.3)
        assert {tuple(z.ravel()) for z in fewer.bag(i)} == {z for z, p in given.items() if p >= 0.3}


def test_limits_of_links():
    items = CandidateSet([[[0], [1], [2]]] * 4)
    assert candidates_from_links(items).n_candidates == items.n_candidates  # bags stay
    star = candidates_from_links(items, [[0, 3], [1, 3], [2, 3]], bag_sizes=[4], most=9)
    assert_array_equal(star.bag(0)[:, :, 0], np.repeat([[0], [1], [2]], 4, axis=1))


@pytest.mark.parametrize(
    "change, message",
    [
        ({"must_link": [[0, 1]], "cannot_link": [[1, 0]]}, "links of bag 0 leave its first 2 instances no"),
        ({"bag_sizes": [5], "most": 31}, "bag 0 has more than 31 labelings of its first 5 instances"),
        ({"must_link": [[1, 2]]}, r"must_link must link two instances of one bag, got rows \[1, 2\]"),
        ({"cannot_link": [[1, 1]]}, r"cannot_link must link two instances of one bag, got rows \[1, 1\]"),
        ({"bag_sizes": [2, 2]}, "bag_sizes must add up to the 5 rows"),
    ],
)
def test_bad_links(change, message):
    items = CandidateSet([[[0], [1]]] * 5)
    with pytest.raises(ValueError, match=message):
        candidates_from_links(items, **({"bag_sizes": [2, 3]} | change))


def test_bags_are_merged_whole():
    pairs = CandidateSet([[[0, 1], [1, 0]], [[0, 0, 1]]])
    with pytest.raises(ValueError, match="bag_sizes must merge whole bags"):
        candidates_from_links(pairs, bag_sizes=[1, 4])

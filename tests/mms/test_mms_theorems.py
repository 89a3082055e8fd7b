"""Propositions 5.2 and 5.3, and where they end."""

import itertools

import numpy as np
import pytest
from mms_twins import (
    ambiguous_loss,
    hamming,
    prediction,
    random_listed,
    random_scores,
    slot_loss,
    surrogate,
    tuples,
)

from companion import mms as exp
from cuelearn.datasets.ambiguous import AmbiguousData, make_ambiguous
from cuelearn.mms import CandidateSet

SETTINGS = [(0.0, 0.0, 3), (0.5, 0.5, 20), (0.25, 0.5, 200)]


def labels_only(n, seed, n_classes=6, **options):
    p = np.arange(1, n_classes + 1) / (n_classes * (n_classes + 1) / 2)
    y = np.random.default_rng(seed).choice(n_classes, size=n, p=p)
    return make_ambiguous(np.zeros((n, 1)), y, random_state=7, **options)


def by_hand(y, candidates, classes=3):
    sets = CandidateSet([np.array(sorted(z))[:, None] for z in candidates], n_labels=classes)
    y, none = np.array(y), np.empty((0, 2), dtype=int)
    return AmbiguousData(np.zeros((y.size, 1)), y, sets, np.arange(y.size), none, none, "by hand")


def test_the_measurement_by_hand():
    data = labels_only(60, 0, bag_size=4, n_candidates=3, p_ambiguous=0.5)
    rng, sets, classes = np.random.default_rng(1), data.candidates, data.candidates.classes[0]
    predicted = np.where(rng.random(60) < 0.4, data.y, rng.choice(classes, 60))
    answer, labels = np.searchsorted(classes, predicted), data.labels()
    shares = data.co_occurrence().to_numpy()
    degrees = [max(shares[k, z] for z in range(classes.size) if z != k) for k in range(classes.size)]
    true = slots = joint = label_bound = expected = 0.0
    for i in range(sets.n_bags):
        rows = range(sets.bag_starts[i], sets.bag_starts[i + 1])
        listed = tuples(sets.bag(i))
        z, y = (tuple((given[r],) for r in rows) for given in (answer, labels))
        true += hamming(z, y)
        slots += slot_loss(z, listed)
        joint += ambiguous_loss(z, listed)
        for m, r in enumerate(rows):
            outside = all(other[m][0] != answer[r] for other in listed)
            label_bound += outside / (1.0 - degrees[y[m][0]])
            expected += (z[m] != y[m]) * (1.0 - shares[y[m][0], answer[r]])
    found, N = exp.bound_of(predicted, data, data.co_occurrence(), n_bootstrap=50), sets.n_bags
    means = {"true": true / N, "slots": slots / N, "joint": joint / N, "expected_slots": expected / N}
    assert {name: found[name] for name in means} == pytest.approx(means)
    assert (found["eta"], found["eta_least"]) == pytest.approx((max(degrees), min(degrees)))
    bounds = joint / (1 - max(degrees)), slots / (1 - max(degrees)), label_bound
    for name, bound in zip(("", "slots_", "label_"), bounds, strict=True):
        assert found[f"{name}bound"] == pytest.approx(bound / N)
        assert found[f"{name}ratio"] == pytest.approx(true / bound)
        assert found[f"{name}ratio_low"] < found[f"{name}ratio"] < found[f"{name}ratio_high"]
    assert found["out_of_order"] == 0 and found["n_bags"] == N
    losses = exp.losses_of(predicted, data)
    assert losses[["true", "slots", "joint"]].sum().tolist() == [true, slots, joint]


@pytest.mark.parametrize(("p_correlated", "p_ambiguous", "L"), SETTINGS)
def test_the_proposition_for_any_classifier_on_fresh_bags(p_correlated, p_ambiguous, L):
    options = {"p_correlated": p_correlated, "p_ambiguous": p_ambiguous, "n_candidates": L, "bag_size": 3}
    data = labels_only(1500, 3, **options)
    shares = exp.shares_of(data.y, 7, **options)
    # the same pairs, more bags
    apart = np.abs(shares - data.co_occurrence()).to_numpy() * np.sqrt(np.bincount(data.labels()))[:, None]
    assert apart.max() < 4.5 * 0.5
    worst = np.where(np.eye(6, dtype=bool), -1.0, shares).argmax(axis=1)
    rng = np.random.default_rng(0)
    for wrong in (worst, np.zeros(6, int), (np.arange(6) + 1) % 6):  # a constant one, another
        for rate in (1.0, 0.2):
            answer = np.where(rng.random(1500) < rate, wrong[data.labels()], data.labels())
            found = exp.bound_of(data.candidates.classes[0][answer], data, shares, n_bootstrap=100)
            assert found["out_of_order"] == 0 and found["slots"] <= found["joint"] <= found["true"]
            assert found["ratio"] < 1.0  # the proposition
            assert found["slots_ratio_low"] < 1.0 and found["label_ratio_low"] < 1.0
            near = 4.0 * np.sqrt(found["slots"] / found["n_bags"])
            assert abs(found["slots"] - found["expected_slots"]) < near
            if wrong is worst:  # attained where each class has its own degree
                within = found["label_ratio_low"] < 1.0 < found["label_ratio_high"]
                assert within or found["label_ratio"] == pytest.approx(1.0, abs=0.05)
    perfect = exp.bound_of(data.y, data, shares, n_bootstrap=10)
    assert perfect["ratio"] == perfect["ratio_high"] == 0.0 and perfect["joint"] == 0.0


def test_it_fails_with_the_averaged_degree_where_noise_follows_the_features():
    """Half of class 0 always has candidate 1, the other half never; the degree given x is 1, averaged 1/2."""
    data = by_hand([0] * 40 + [1] * 40, [{0, 1}] * 20 + [{0}] * 20 + [{1}] * 40)
    answer = np.array([1] * 20 + [0] * 20 + [1] * 40)
    found = exp.bound_of(answer, data, data.co_occurrence(), n_bootstrap=10)
    assert found["eta"] == 0.5 and found["true"] == 0.25 and found["bound"] == 0.0


def random_bags(rng, n, K=4):
    listed = [random_listed(rng, int(rng.integers(1, 4)), (K,), most=20) for _ in range(n)]
    sets = CandidateSet([np.array(z)[:, :, 0] for z in listed], n_labels=K)
    scores = [random_scores(rng, len(z[0]), (K,), spread=1.0)[0] for z in listed]
    return listed, sets, scores


def test_surrogate_losses_by_enumeration():
    rng = np.random.default_rng(3)
    listed, sets, scores = random_bags(rng, 60)
    found = exp.surrogates(np.concatenate(scores), sets)
    for i, z in enumerate(listed):
        ahead = prediction([scores[i]], len(z[0]))
        assert found.loc[i, "joint"] == ambiguous_loss(ahead, z)
        assert found.loc[i, "slots"] == slot_loss(ahead, z)
        assert found.loc[i, "exact"] == pytest.approx(surrogate([scores[i]], z, (4,)), abs=1e-9)
    assert (found["exact"] >= found["joint"] - 1e-9).all()  # proposition 5.3
    assert (found["heap"] >= found["slots"] - 1e-9).all() and (found["heap"] <= found["exact"] + 1e-9).all()
    assert (found["heap"] < found["exact"] - 1e-6).any()
    # one label and nothing else: every labeling is a candidate, both losses are 0
    every = CandidateSet([list(itertools.product(range(2), repeat=2))], n_labels=2)
    full = exp.surrogates(np.zeros((2, 2)), every)
    assert full[["joint", "exact", "heap"]].to_numpy().tolist() == [[0, 0.0, 0.0]]
    # without scores the labeling farthest away: a label outside Z(m) for every instance
    assert exp.surrogates(np.zeros((2, 4)), CandidateSet([[[0, 1]]], n_labels=4))["exact"].tolist() == [2.0]


def test_algorithm_10_breaks_proposition_5_3_on_the_example_of_the_thesis():
    sets = CandidateSet([[[0, 1], [1, 0]]], n_labels=3)
    scores = np.array([[3.0, 2.0, 1.0], [1.001, 1.0, 0.99]])
    found = exp.surrogates(scores, sets).iloc[0]
    assert found["joint"] == 1 and found["slots"] == 0
    # below the ambiguous loss of 1
    assert found["exact"] == pytest.approx(1.001) and found["heap"] == pytest.approx(0.99)


def test_priors_break_proposition_5_3_where_scores_are_negative():
    listed, scores = [((0,),), ((1,),)], [np.array([[-10.0, -1.5, -1.0]])]
    assert ambiguous_loss(prediction(scores, 1), listed) == 1
    assert surrogate(scores, listed, (3,)) == 1.5
    assert surrogate(scores, listed, (3,), priors=[1.0, 0.5]) == 0.75

"""The simulated three-class problem: its form, its determinism, and the property that figure 4.1 rests on."""

import cvxpy as cp
import numpy as np
import pytest
from numpy.testing import assert_array_equal

from cuelearn.datasets import make_three_class

OWN_CUE = {0: 1, 1: 2, 2: 0}  # class -> index of the cue made for it


def test_same_seed_same_bits():
    assert_array_equal(make_three_class(random_state=3).X, make_three_class(random_state=3).X)
    assert not np.array_equal(make_three_class(random_state=3).X, make_three_class(random_state=4).X)
    # The stream itself is part of the promise: a fixed value guards it across versions.
    assert make_three_class(n_per_class=1, noise=1.0).X[0, 0] == pytest.approx(0.25 + 1.764052345967664)


def test_cue_4_separates_each_class_as_well_as_the_cue_made_for_it():
    data = make_three_class(n_per_class=1, noise=0.0)
    for single, cue in OWN_CUE.items():
        distances = []
        for columns in (data.cues[f"cue {cue + 1}"], data.cues["cue 4"]):
            prototypes = data.X[:, columns]
            rest = np.delete(prototypes, single, axis=0).mean(axis=0)
            distances.append(np.linalg.norm(prototypes[single] - rest))
        assert distances[0] == pytest.approx(distances[1]) == pytest.approx(np.sqrt(1.5))


def normalised_cues(data):
    """Features of the linear kernel of each cue, normalised to unit diagonal."""
    return [data.X[:, c] / np.linalg.norm(data.X[:, c], axis=1, keepdims=True) for c in data.cues.values()]


def share_of_norms(cues, scores_to_loss, C, n_outputs):
    """Solve l1-MKL (sum of group norms, squared) exactly and return each cue's share of the norm."""
    weights = [cp.Variable((cue.shape[1], n_outputs)) for cue in cues]
    scores = sum(cue @ w for cue, w in zip(cues, weights))
    loss, extra = scores_to_loss(scores)
    norms = cp.sum([cp.norm(w, "fro") for w in weights])
    cp.Problem(cp.Minimize(cp.square(norms) / 2 + C * loss), extra).solve(solver="CLARABEL")
    sizes = np.array([np.linalg.norm(w.value) for w in weights])
    return sizes / sizes.sum()


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("C", [1.0, 100.0])
def test_one_against_rest_takes_two_kernels_and_multiclass_the_fourth(seed, C):
    data = make_three_class(random_state=seed)
    cues = normalised_cues(data)
    for single, own in OWN_CUE.items():
        sign = np.where(data.y == single, 1.0, -1.0)

        def hinge(scores):
            bias = cp.Variable()
            return cp.sum(cp.pos(1 - cp.multiply(sign, scores[:, 0] + bias))), []

        share = share_of_norms(cues, hinge, C, 1)
        assert share[own] > 0.1 and share[3] > 0.1
        assert share[own] + share[3] > 0.999

    truth = np.eye(3)[data.y]

    def multiclass_hinge(scores):
        slack = cp.Variable(len(truth), nonneg=True)
        own_score = cp.sum(cp.multiply(scores, truth), axis=1)
        rival = scores + (1 - truth) - 10 * truth  # the own class is no rival
        return cp.sum(slack), [slack >= rival[:, k] - own_score for k in range(3)]

    assert share_of_norms(cues, multiclass_hinge, C, 3)[3] > 0.95

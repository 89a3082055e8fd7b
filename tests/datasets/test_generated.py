"""The simulated three-class problem, and the property that figure 4.1 rests on."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from plain_kernels import plain_kernel
from plain_mkl import conic_solution

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


@pytest.mark.parametrize("seed, C", [(0, 1.0), (1, 100.0)])
def test_one_against_rest_takes_two_kernels_and_multiclass_the_fourth(seed, C):
    data = make_three_class(random_state=seed)
    kernels = [plain_kernel("linear", data.X[:, c], data.X[:, c]) for c in data.cues.values()]
    for single, own in OWN_CUE.items():
        norms = conic_solution(kernels, (data.y == single).astype(int), 1.0, C, loss="hinge", bias=True)[1]
        share = norms / norms.sum()
        assert share[own] > 0.1 and share[3] > 0.1
        assert share[own] + share[3] > 0.999
    norms = conic_solution(kernels, data.y, 1.0, C)[1]
    assert norms[3] > 0.95 * norms.sum()

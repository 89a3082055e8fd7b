"""The chapter's exercises: what their solutions say, done as they say, in the profile quick."""

import numpy as np
import pytest

from companion.mkl import tasks
from cuelearn.kernels import KernelBank
from cuelearn.mkl import UFOMKL, BestKernelSVM, MKLProblem, solve_obscure

seed = 0


@pytest.fixture(scope="module")
def digits():
    return tasks.get_task("mfeat-6", 200, 500, seed)


@pytest.mark.long  # exercise 4
def test_copies_of_one_kernel_need_fewer_updates(digits):
    for F, updates in ((1, 1650), (8, 790), (32, 500)):
        copies = KernelBank.from_stack(np.stack([digits.bank.stack[0]] * F))
        problem = MKLProblem(copies, digits.labels, 10, p=1.25, C=10)
        for r in range(3):
            rng = np.random.default_rng(r)
            found = solve_obscure(problem, n_epochs_online=500, n_epochs=0, rng=rng)
            assert found.converged
            assert found.n_updates == pytest.approx(updates, rel=0.05)


@pytest.mark.long  # exercise 3
def test_the_last_cue_is_left_by_chance_and_the_last_two_are_not(digits):
    left, error = _left(digits, C=1.0, alpha=0.2, random_state=seed)
    assert left == ["mor"] and error > 0.3
    others = [_left(digits, C=1.0, alpha=0.2, random_state=r)[0] for r in range(8)]
    assert ["fac"] in others and [] in others
    optimum = UFOMKL("precomputed", C=1.0, alpha=0.2, tol=1e-4, random_state=seed)
    optimum.fit(digits.bank, digits.labels)
    assert not optimum.kernel_weights_.any()
    assert optimum.dual_gap_ <= 1e-4
    for r in range(8):
        left, error = _left(digits, C=10.0, alpha=0.12, random_state=r)
        assert left == ["fac", "mor"] and error == pytest.approx(0.05, abs=0.015)

    best = BestKernelSVM("precomputed").fit(digits.bank, digits.labels)
    ranked = np.array(digits.bank.names)[np.argsort(-best.kernel_accuracy_, kind="stable")]
    assert best.best_kernel_ == "pix"
    assert (ranked[[0, 1, -1]] == ["pix", "fac", "mor"]).all()


def _left(digits, **params):
    """The cues with weight, and the test error."""
    model = UFOMKL("precomputed", **params).fit(digits.bank, digits.labels)
    left = [digits.bank.names[j] for j in np.flatnonzero(model.kernel_weights_)]
    return left, 1 - model.score(digits.cross, digits.test_labels)

"""The chapter's exercises: what their solutions say, done as they say, in the profile quick."""

import numpy as np
import pandas as pd
import pytest

from companion.mkl import runs, settings, tasks
from cuelearn.kernels import KernelBank
from cuelearn.mkl import OM2, UFOMKL, AverageKernelSVM, BestKernelSVM, MKLProblem, solve_obscure

seed, size = 0, settings.settings("quick")
n_things = size["objects"]["n_classes"]
objects, different = f"objects-{n_things}", f"different-{size['categories']['n_classes']}"
many = f"{objects}-1400"


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """Pictures described once, kept apart from those of the checkout."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CUELEARN_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def digits():
    return tasks.get_task("mfeat-6", 200, 500, seed)


@pytest.mark.long  # exercise 6
def test_three_different_cues_err_as_rarely_as_all(pictures):
    n = size["objects"]["n_train"]
    task = tasks.get_task(objects, n, 10_000, seed)
    everything = range(len(task.bank.names))

    def error(some):
        model = AverageKernelSVM("precomputed", C=10).fit(task.bank.select(some), task.labels)
        return 1 - model.score(task.cross.select(some, range(n)), task.test_labels)

    taken = []
    for _ in range(3):
        taken.append(min(set(everything) - set(taken), key=lambda j: error([*taken, j])))
    assert [task.bank.names[j] for j in taken] == ["words 4x4", "shape", "PHOG 2"]
    best = sorted(everything, key=lambda j: error([j]))[:3]
    assert {"HOG", "PHOG 3"} < {task.bank.names[j] for j in best}
    assert error(taken) < 1.05 * error(list(everything)) < error(best)


@pytest.mark.long  # exercise 5
def test_more_noise_leaves_all_weight_on_kernel_4_and_a_larger_p_does_not():
    splits = range(seed, seed + size["three_class"]["seeds"])
    for split in splits:
        assert _on_kernel_4(split, noise=0.08).min() > 0.999
    at = {
        p: pd.DataFrame([_on_kernel_4(split, p_om2=p, p_obscure=p) for split in splits])
        for p in (1.05, 1.1, 1.25, 2.0)
    }
    for p, om2, obscure, within in ((1.05, 0.99, 0.96, 0.025), (1.1, 0.86, 0.76, 0.03)):
        np.testing.assert_allclose(at[p]["OM2"], om2, rtol=0, atol=within)
        np.testing.assert_allclose(at[p]["OBSCURE"], obscure, rtol=0, atol=within)
    assert at[1.25].to_numpy().max() < 0.5
    np.testing.assert_allclose(at[2.0], 0.25, rtol=1e-9)


def _on_kernel_4(split, **options):
    """Share of kernel 4 in the weights of both multiclass methods."""
    found = runs.three_class(split, **options)
    return found[(found["target"] == 0) & (found["kernel"] == 4)].set_index("method")["weight"]


@pytest.mark.long  # exercise 7
def test_the_six_cues_without_self_similarity_err_less(pictures):
    errors = pd.DataFrame(
        {"split": split, "r": r, "without": cue, "error": error}
        for split in (seed, seed + 1, seed + 2)
        for cue, r, error in _errors_without_a_cue(split)
    )
    orders = errors.groupby(["split", "without"])["error"].std().mean()
    assert 1.0 < orders < 2.0
    mean = errors.groupby("without")["error"].mean()
    loss = (mean - mean["none"]).drop("none")
    assert loss.idxmin() == "self-similarity 1x1"
    assert -2.0 < loss.min() < -0.5
    for cue in ("PHOG 2", "shape"):  # edges, outline
        assert 1.0 < loss[cue] < 3.0


def _errors_without_a_cue(split):
    task = tasks.get_task(different, 900, 10_000, split)
    for cue in ("none", *task.bank.names):
        kept = [j for j, name in enumerate(task.bank.names) if name != cue]
        bank, cross = task.bank.select(kept), task.cross.select(kept, range(900))
        for r in range(10):
            model = OM2("precomputed", p=1.5, n_epochs=10, shuffle=True, random_state=r)
            yield cue, r, 100 * (1 - model.fit(bank, task.labels).score(cross, task.test_labels))


@pytest.mark.long  # exercise 9
def test_the_radius_helps_at_a_large_C_by_short_first_steps_and_its_cap_never(pictures):
    task = tasks.get_task(objects, 204, 10_000, seed)
    objective = {}
    for C in (0.1, 1.0, 1000.0):
        problem = MKLProblem(task.bank, task.labels, n_things, p=1.01, C=C)
        (capped, norms), (free, norms_free), (uncapped, _) = (
            _run_and_norms(problem, radius) for radius in ("capped", np.inf, "online")
        )
        objective[C], radius = (capped.objective, free.objective), capped.extra["radius"]
        assert radius == capped.extra["radius_online"]
        np.testing.assert_array_equal(capped.dual_coef, uncapped.dual_coef)
        assert max(norms) < radius / 2
    assert objective[0.1][1] == pytest.approx(objective[0.1][0], rel=0.002)
    assert objective[1.0] == pytest.approx((0.72, 0.69), abs=0.01)
    assert objective[1000.0][1] / objective[1000.0][0] == pytest.approx(10, rel=0.15)
    assert norms_free[5] / radius == pytest.approx(27, rel=0.05)  # after five epochs online


def _run_and_norms(problem, radius):
    """The solution's call, and the norm of the weights after every epoch."""
    norms = []
    options = {"n_epochs": 30, "finish": False, "rng": np.random.default_rng(seed)}
    note = lambda training, step: norms.append(training.stream.objective()[2])
    return solve_obscure(problem, radius=radius, callback=note, **options), norms


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


@pytest.mark.long  # exercise 3
def test_of_the_1400_kernels_narrow_ones_of_every_distance_survive(pictures):
    task = tasks.get_task(many, 204, 10_000, seed, 1400)
    kernels = pd.DataFrame([name.split("*") for name in task.bank.names], columns=["cue", "width"])
    kernels["width"] = kernels["width"].astype(float)
    for alpha in (0.02, 0.01):  # the widest go first
        model = UFOMKL("precomputed", C=1, alpha=alpha, n_epochs=10, tol=0.05, random_state=seed)
        kernels[alpha] = model.fit(task.bank, task.labels).kernel_weights_
    kept = kernels[kernels[0.02] > 0]
    assert kept["cue"].nunique() == kernels["cue"].nunique() == 35
    assert 2.0 < kept["width"].max() < 3.0 < kernels.loc[kernels[0.01] > 0, "width"].max()
    for _, of_one in kernels.sort_values("width").groupby("cue"):
        assert (of_one[0.02] > 0).astype(int).is_monotonic_decreasing
    narrow = kernels["width"] < 0.11
    assert kernels.loc[narrow, 0.02].sum() / kernels[0.02].sum() == pytest.approx(0.75, abs=0.05)

    among = task.bank.stack[:, ~np.eye(204, dtype=bool)]
    values = (
        kernels.assign(mean=among.mean(axis=1), spread=among.std(axis=1))
        .groupby("width")
        .mean(numeric_only=True)
    )
    assert values.loc[:0.11, "mean"].max() < 0.01
    assert values.loc[1.0:, "spread"].is_monotonic_decreasing and values.loc[10.0:, "spread"].max() < 0.03

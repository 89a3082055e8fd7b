"""The theorems of thesis chapter 4 hold on random streams, whatever the comparator."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from plain_mkl import block_norms, class_scores, conic_optimum, make_stack, plain_losses, plain_norm

from cuelearn.kernels import KernelBank
from cuelearn.mkl import MKLProblem, solve_obscure, solve_om2, solve_reference, solve_ufo
from cuelearn.mkl.stochastic.obscure import visit_obscure
from cuelearn.mkl.stochastic.training import Stream


@st.composite
def streams(draw):
    """A stream of 10 to 60 samples with kernels of unit diagonal, and labels from separable to pure noise."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_classes = draw(st.integers(2, 6))
    n, n_kernels = draw(st.integers(max(10, n_classes), 60)), draw(st.integers(1, 6))
    p = draw(st.sampled_from([1.0001, 1.01, 1.05, 1.25, 1.7, 2.0, "auto"]))
    K, y = make_stack(rng, n, n_kernels, n_classes)
    if draw(st.booleans()):
        noisy = rng.uniform(size=n) < draw(st.sampled_from([0.1, 0.5, 1.0]))
        y = np.where(noisy, rng.integers(n_classes, size=n), y)
    loss = "hinge" if n_classes == 2 and draw(st.booleans()) else "multiclass"
    return MKLProblem(KernelBank.from_stack(K), y, n_classes, p=p, loss=loss), K, rng


@st.composite
def comparators(draw):
    return draw(st.sampled_from(["random", "one block", "labels", "optimum"])), draw(
        st.sampled_from([0.0, 0.05, 0.3, 1.0, 2.0, 8.0])
    )


def comparator(kind, length, problem, K, rng):
    """Norm ||u||_{2,p} and loss of u on every sample; coefficients B and block weights may be anything."""
    n, n_classes = problem.labels.size, problem.n_classes
    B, weights = rng.normal(size=(n, n_classes)), rng.normal(size=len(K))
    if kind == "one block":
        weights = np.eye(len(K))[rng.integers(len(K))]
    elif kind == "labels":
        B = np.eye(n_classes)[problem.labels] - 1.0 / n_classes
        weights = np.abs(weights)
    elif kind == "optimum":
        batch = MKLProblem(problem.bank, problem.labels, n_classes, p=problem.p, C=10.0, loss=problem.loss)
        result = solve_reference(batch, tol=1e-2)
        B, weights = result.dual_coef, result.kernel_weights
        length = length if length != 2.0 else None  # the optimum itself
    norm = plain_norm(np.abs(weights) * block_norms(K, B, problem.factor), problem.p)
    scale = 1.0 if length is None or norm == 0.0 else length / norm
    losses = plain_losses(scale * class_scores(K, B, weights, problem.factor), problem.labels)
    return scale * norm, losses


def lipschitz(problem):
    """L of lemma 4.1 for unit diagonals: sqrt(2) F^(1/q), and F^(1/q) for the hinge loss."""
    return np.sqrt(2.0 * problem.factor) * problem.bank.n_kernels ** (1.0 / problem.q)


@given(streams(), st.lists(comparators(), min_size=1, max_size=3), st.sampled_from([None, 0.5, 5.0]))
@settings(max_examples=120)
def test_mistake_bound_of_om2(stream, wanted, largest):
    """Theorem 4.1, one pass; the sum of step sizes over margin errors sharpens it. With weights mistakes,
    losses and steps count so many times, and the first term is as many times as large as the largest."""
    problem, K, rng = stream
    weight = np.ones(problem.labels.size)
    if largest is not None:
        weight = np.maximum(0.0, rng.uniform(-0.3 * largest, largest, size=weight.size))
        weight[0] = largest
        given = {"p": problem.p, "loss": problem.loss, "sample_weight": weight}
        problem = MKLProblem(problem.bank, problem.labels, problem.n_classes, **given)
    result = solve_om2(problem, n_epochs=1, shuffle=False, rng=rng, certify=False)
    wrong = np.zeros(weight.size, dtype=bool)
    wrong[result.extra["visits"]] = result.online_errors
    mistakes = weight[wrong].sum()
    # in one pass the coefficient at the label is the step size of the sample's only visit; 1 on a mistake
    step_sizes = result.dual_coef[np.arange(problem.labels.size), problem.labels]
    assert step_sizes.min() >= 0.0 and np.all(step_sizes <= weight)
    assert_allclose(step_sizes[wrong], weight[wrong])
    margin_errors = step_sizes[~wrong].sum()
    for kind, length in wanted:
        norm, losses = comparator(kind, length, problem, K, rng)
        c, s = problem.q * lipschitz(problem) ** 2 * norm**2 * max(1.0, weight.max()), weight @ losses
        assert mistakes <= c + s + np.sqrt(s * c) - margin_errors + 1e-9


@given(
    streams(),
    st.lists(comparators(), min_size=1, max_size=2),
    st.sampled_from([0.1, 0.5, 1.0, 3.0]),
    st.integers(1, 3),
)
@settings(max_examples=60)
def test_update_bound_of_the_online_stage(stream, wanted, eta, n_epochs):
    """Theorem 4.3; the sum of losses is over the visits that update."""
    problem, K, rng = stream
    run = Stream(problem, scores="recompute")
    run.start_stage(visit_obscure, True, eta)
    updated = []
    for _ in range(n_epochs):
        for i in rng.permutation(problem.labels.size):
            before = run.n_updates
            run.visit([i])
            if run.n_updates > before:
                updated.append(i)
    for kind, length in wanted:
        norm, losses = comparator(kind, length, problem, K, rng)
        c, s = problem.q * (2.0 / eta + lipschitz(problem) ** 2) * norm**2, losses[updated].sum()
        assert len(updated) <= c + s + np.sqrt(c * s) + 1e-9


@pytest.mark.parametrize("p, loss", [(1.05, "multiclass"), (2.0, "hinge")])
def test_the_step_size_of_the_library_makes_both_terms_of_the_bound_equal(p, loss):
    K, y = make_stack(np.random.default_rng(3), 30, 3, 2 if loss == "hinge" else 4)
    problem = MKLProblem(KernelBank.from_stack(K), y, int(y.max()) + 1, p=p, loss=loss)
    result = solve_obscure(problem, n_epochs=0, eta="auto", rng=np.random.default_rng(0))
    assert_allclose(result.extra["eta"] * lipschitz(problem) ** 2, 2.0 * problem.factor)
    with pytest.raises(ValueError, match="eta must be 'auto' or a finite number > 0, got 'F'"):
        solve_obscure(problem, eta="F")


@pytest.mark.parametrize("largest", [1.0, 4.0])
@pytest.mark.parametrize("radius", ["capped", "online"])
@pytest.mark.parametrize("p, C, loss", [(1.05, 0.1, "multiclass"), (2.0, 10.0, "hinge")])
def test_R_bounds_the_norm_of_the_optimum(p, C, loss, radius, largest):
    """Thesis 4.4.4, after any number of online epochs; the cap sqrt(2/lambda) never undercuts it."""
    K, y = make_stack(np.random.default_rng(int(10 * p)), 40, 3, 2 if loss == "hinge" else 4)
    weight = np.random.default_rng(0).uniform(1.0, largest, 40)
    _, norms = conic_optimum(K, y, p, C, 0.0, loss, weight=weight)
    wanted = plain_norm(norms, p)
    given = {"p": p, "C": C, "loss": loss, "sample_weight": weight}
    problem = MKLProblem(KernelBank.from_stack(K), y, int(y.max()) + 1, **given)
    for n_epochs_online in (0, 1, 5, 50):
        options = {"n_epochs_online": n_epochs_online, "n_epochs": 0, "radius": radius}
        result = solve_obscure(problem, rng=np.random.default_rng(0), **options)
        assert result.extra["radius"] >= wanted * (1.0 - 1e-6)
        assert result.extra["radius"] <= result.extra["radius_online"]
        if radius == "capped":
            assert result.extra["radius"] <= np.sqrt(2.0 * C * weight.sum()) * (1.0 + 1e-12)


@pytest.mark.parametrize("C, p", [(0.1, 2.0), (1.0, 1.5)])
def test_ufo_rate(C, p):
    """Theorem 4.5's bound of the expectation (delta = 1, with the strong convexity 1/q of this p)."""
    K, y = make_stack(np.random.default_rng(5), 30, 4, 3)
    best, _ = conic_optimum(K, y, p, C)
    problem = MKLProblem(KernelBank.from_stack(K), y, 3, p=p, C=C)
    options = {"n_epochs": 10, "sampling": "iid", "measure": "every"}
    runs = [solve_ufo(problem, rng=np.random.default_rng(seed), **options) for seed in range(10)]
    mean = np.mean([run.history.objective for run in runs], axis=0)
    steps = 30.0 * np.arange(1, 11)
    rate = (1.0 + np.log(steps)) / (2.0 * problem.regularization * steps)
    assert (mean - best <= lipschitz(problem) ** 2 * problem.q * rate).all()

"""Multi-KT."""

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from plain_mkl import minimum
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from cuelearn.mktl.baselines import MultiKT, hinge_in_ball, solve_multikt


def make(n, n_scores, n_classes, seed=0, unequal=False):
    """A kernel, labels, and scores that tell something of them."""
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % n_classes
    if unequal:
        labels = np.where(np.arange(n) < 4 * n_classes, labels, 0)
    rng.shuffle(labels)
    X = rng.normal(size=(n, 4)) + rng.normal(size=(n_classes, 4))[labels]
    scores = 0.8 * rng.normal(size=(n, n_scores)) + rng.normal(size=(n_classes, n_scores))[labels]
    distances = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    return np.exp(-distances / distances.mean()), labels, scores


def plain_weights(positive, class_weight):
    n = len(positive)
    if class_weight is None:
        return np.ones(n)
    n_positive = sum(positive)
    return np.array([n / (2 * n_positive) if p else n / (2 * (n - n_positive)) for p in positive])


def plain_ls_svm(kernel, targets, weights, C):
    """The bordered system as it stands."""
    n = len(kernel)
    system = np.zeros((n + 1, n + 1))
    system[:n, :n] = kernel + np.diag(1.0 / (C * weights))
    system[:n, n] = system[n, :n] = 1.0
    solution = np.linalg.solve(system, np.append(targets, 0.0))
    return solution[:n], solution[n]


def plain_leave_one_out(kernel, signs, scores, weights, C, beta):
    """One refit for every sample, with beta and the weights of the other samples as they are."""
    n, predictions = len(signs), []
    for i in range(n):
        rest = np.delete(np.arange(n), i)
        a, b = plain_ls_svm(kernel[np.ix_(rest, rest)], (signs - scores @ beta)[rest], weights[rest], C)
        predictions.append(kernel[i, rest] @ a + b + scores[i] @ beta)
    return np.array(predictions)


def problems(labels, n_classes):
    """Signs of every binary problem."""
    return [np.where(labels == c, 1.0, -1.0) for c in ([1] if n_classes == 2 else range(n_classes))]


def conic(offsets, slopes, weights, radius):
    """Optimal value of the problem in the ball."""
    beta = cp.Variable(slopes.shape[1])
    loss = cp.sum(cp.multiply(weights / weights.sum(), cp.pos(offsets - slopes @ beta)))
    return minimum(loss, [cp.norm(beta, 2) <= radius])


@pytest.mark.parametrize("class_weight", ["balanced", None])
@pytest.mark.parametrize("C", [0.1, 10.0, 1000.0])
@pytest.mark.parametrize("n_classes, n_scores", [(2, 0), (2, 6), (5, 6)])
def test_leave_one_out_equals_refits(n_classes, n_scores, C, class_weight):
    kernel, labels, scores = make(35, n_scores, n_classes, seed=n_classes, unequal=True)
    found = solve_multikt(kernel, labels, n_classes, scores, C=C, weights=class_weight)
    signs = problems(labels, n_classes)
    for k, s in enumerate(signs):
        weights = plain_weights(s > 0.0, class_weight)
        wanted = plain_leave_one_out(kernel, s, scores, weights, C, found.beta[k])
        assert_allclose(found.leave_one_out[:, k], wanted, atol=1e-8)
        a, b = plain_ls_svm(kernel, s - scores @ found.beta[k], weights, C)
        assert_allclose(found.dual_coef[:, k], a, atol=1e-9 * max(1.0, np.abs(a).max()))
        assert_allclose(found.intercept[k], b, atol=1e-9)
        losses = np.maximum(0.0, 1.0 - s * wanted)
        assert found.objective[k] == pytest.approx(np.mean(weights * losses), abs=1e-9)


def test_weights_of_the_classes():
    """A dict weighs each sample by its own class in every problem; classes that it lacks count 1."""
    kernel, labels, scores = make(30, 4, 3, seed=5)
    model = MultiKT("precomputed", C=2.0, class_weight={0: 5.0, 2: 0.3}, scaling=None)
    model.fit(kernel[None], labels, scores=scores)
    weights = np.array([5.0, 1.0, 0.3])[labels]
    for k, s in enumerate(problems(labels, 3)):
        wanted = plain_leave_one_out(kernel, s, scores, weights, 2.0, model.beta_[k])
        assert_allclose(model.leave_one_out_[:, k], wanted, atol=1e-8)
        loss = np.average(np.maximum(0.0, 1.0 - s * wanted), weights=weights)
        assert model.loo_objective_[k] == pytest.approx(loss, abs=1e-9)


@pytest.mark.parametrize("class_weight", ["balanced", None])
@pytest.mark.parametrize("radius", [0.2, 1.0, 50.0])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_beta_is_the_best_in_the_ball(n_classes, radius, class_weight):
    """The conic problem is built from refits alone: with beta = 0, and with each unit vector."""
    kernel, labels, scores = make(30, 5, n_classes, seed=n_classes, unequal=True)
    found = solve_multikt(kernel, labels, n_classes, scores, C=5.0, weights=class_weight, max_radius=radius)
    assert found.converged and (found.gap <= 1e-6 * np.maximum(1.0, found.objective)).all()
    for k, s in enumerate(problems(labels, n_classes)):
        weights = plain_weights(s > 0.0, class_weight)
        start = plain_leave_one_out(kernel, s, scores, weights, 5.0, np.zeros(5))
        moved = [plain_leave_one_out(kernel, s, scores, weights, 5.0, unit) - start for unit in np.eye(5)]
        optimum = conic(1.0 - s * start, s[:, None] * np.stack(moved, axis=1), weights, radius)
        assert found.objective[k] == pytest.approx(optimum, abs=1e-6)
        assert found.objective[k] - found.gap[k] <= optimum + 1e-7
        assert np.linalg.norm(found.beta[k]) <= radius * (1.0 + 1e-12)


@given(
    st.tuples(st.integers(2, 40), st.integers(1, 30)),
    st.sampled_from([1e-300, 1e-5, 1.0, 1e5]),
    st.sampled_from([(0, 0), (5, 0), (0, 5)]),
    st.sampled_from([1e-3, 1.0, 100.0]),
    st.sampled_from([1.0, 1e4]),
    st.booleans(),
    st.integers(0, 2**31 - 1),
)
def test_the_gap_is_honest(shape, size, powers, radius, largest_offset, equal, seed):
    rng = np.random.default_rng(seed)
    n, K = shape
    of_columns, of_rows = powers
    slopes = size * np.round(rng.normal(size=shape), 8 if seed % 2 else 0)
    slopes *= 10.0 ** rng.uniform(-of_columns, of_columns, size=K)
    slopes *= 10.0 ** rng.uniform(-of_rows, of_rows, size=(n, 1))
    if equal:
        slopes[:] = slopes[:, :1]
    offsets = largest_offset * (rng.normal(size=n) + rng.choice([-0.5, 0.0, 1.0]))
    weights = rng.choice([0.5, 500.0], size=n)
    found = hinge_in_ball(offsets, slopes, weights, radius)
    share = weights / weights.mean()
    assert np.linalg.norm(found.beta) <= radius * (1.0 + 1e-12)
    assert (found.dual_coef >= 0.0).all() and (found.dual_coef <= share).all()
    value = np.mean(share * np.maximum(0.0, offsets - slopes @ found.beta))
    bound = (found.dual_coef @ offsets - radius * np.linalg.norm(found.dual_coef @ slopes)) / n
    unit = max(1.0, value)
    assert found.objective == pytest.approx(value, abs=1e-12 * unit)
    assert found.dual == pytest.approx(bound, abs=1e-12 * unit)
    assert found.gap == pytest.approx(max(0.0, value - bound), abs=1e-12 * unit)
    assert found.gap <= 1e-6 * unit and found.n_iter <= 50
    assert bound <= value + 1e-9 * unit
    for point in rng.normal(size=(20, K)):
        point *= radius / np.linalg.norm(point)
        assert np.mean(share * np.maximum(0.0, offsets - slopes @ point)) >= bound - 1e-9 * unit


def test_the_shortest_of_the_best():
    """Any beta with 2 b1 >= 1 has no loss: the shortest is (1/2, 0); two equal columns share."""
    weights = np.ones(4)
    slopes = np.stack([np.full(4, 2.0), np.zeros(4)], axis=1)
    assert_allclose(hinge_in_ball(np.ones(4), slopes, weights).beta, [0.5, 0.0], atol=1e-5)
    assert_allclose(hinge_in_ball(np.ones(4), slopes[:, [0, 0]], weights).beta, [0.25, 0.25], atol=1e-5)
    found = hinge_in_ball(-np.ones(4), slopes, weights)  # no loss to begin with
    assert not found.beta.any() and found.objective == found.gap == 0.0
    for bad in (1e101, np.inf, np.nan):
        with pytest.raises(OverflowError, match="slopes must be numbers of at most 1e100"):
            hinge_in_ball(np.ones(4), np.full((4, 3), bad), weights)


def test_a_tolerance_that_is_missed_warns():
    kernel, labels, scores = make(50, 6, 3, seed=2)
    with pytest.warns(ConvergenceWarning, match="did not reach tol=1e-30 for [1-3] of 3 binary problems"):
        model = MultiKT("precomputed", tol=1e-30).fit(kernel[None], labels, scores=scores)
    assert not model.converged_ and model.loo_gap_.max() < 1e-9
    model = MultiKT("precomputed", tol=1e-3).fit(kernel[None], labels, scores=scores)
    assert model.converged_ and (model.loo_gap_ <= 1e-3).all() and model.n_iter_ >= 1


def test_the_bits_do_not_depend_on_the_threads_of_blas():
    kernel, labels, scores = make(300, 24, 3)
    found = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            found.append(solve_multikt(kernel, labels, 3, scores))
    for one, other in zip(*found, strict=True):
        assert_array_equal(one, other)


def test_scores_that_overflow():
    kernel, labels, scores = make(20, 2, 2)
    with np.errstate(all="ignore"), pytest.raises(ValueError, match="scores are too large: they overflow"):
        MultiKT("precomputed", scaling=None, C=1e6).fit(kernel[None], labels, scores=1e306 * scores)


def test_a_matrix_that_is_no_kernel():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(30, 30))
    matrix = A + A.T
    np.fill_diagonal(matrix, 1.0)
    with pytest.raises(ValueError, match="kernels must be positive semidefinite.* lower C"):
        MultiKT("precomputed", C=100.0).fit(matrix[None], np.arange(30) % 2)
    assert np.isfinite(MultiKT("precomputed", C=0.01).fit(matrix[None], np.arange(30) % 2).dual_coef_).all()

"""LP-beta and LP-B."""

import functools

import cvxpy as cp
import numpy as np
import pytest
from mkl_data import CUES, make_data, plain_svms
from numpy.testing import assert_allclose, assert_array_equal
from plain_mkl import make_stack, minimum
from sklearn.model_selection import StratifiedKFold

from cuelearn.mkl.rivals.lpbeta import NU_GRID, LPBeta, solve_lp_beta

DATA, NEW = make_data(90), make_data(40, seed=1)


def make_outputs(seed, n=60, n_kernels=6, n_classes=4):
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % n_classes
    outputs = -0.8 + 0.5 * rng.normal(size=(n_kernels, n, n_classes)) + 0.3 * rng.normal(size=(n, n_classes))
    outputs[:, np.arange(n), labels] += np.linspace(0.0, 1.5, n_kernels)[:, None] * rng.uniform(0.3, 1.5, n)
    return outputs, labels


# --- the program


@functools.cache
def conic_lp(nu, per_class):
    """The primal of the outputs of seed 0 with all its rows, by an interior-point solver."""
    outputs, labels = make_outputs(0, n=30)
    n_kernels, n, n_classes = outputs.shape
    B = cp.Variable((n_classes, n_kernels), nonneg=True)
    slack, rho = cp.Variable(n, nonneg=True), cp.Variable()
    constraints = [cp.sum(B, axis=1) == 1.0]
    if not per_class:
        constraints += [B[c] == B[0] for c in range(1, n_classes)]
    for i, label in enumerate(labels):
        for c in range(n_classes):
            if c != label:
                margin = outputs[:, i, label] @ B[label] - outputs[:, i, c] @ B[c]
                constraints.append(margin + slack[i] >= rho)
    return minimum(-rho + cp.sum(slack) / (nu * n), constraints), B.value


def plain_margins(outputs, labels, weights):
    scores = np.einsum("cm,mic->ic", np.broadcast_to(weights, (outputs.shape[2], outputs.shape[0])), outputs)
    own = scores[np.arange(labels.size), labels].copy()
    scores[np.arange(labels.size), labels] = -np.inf
    return own - scores.max(axis=1)


def plain_value(outputs, labels, nu, weights, rho):
    slack = np.maximum(0.0, rho - plain_margins(outputs, labels, weights))
    return -rho + slack.sum() / (nu * labels.size)


@pytest.mark.parametrize("per_class", [False, True])
@pytest.mark.parametrize("scale, nu", [(1.0, 0.01), (1.0, 0.35), (1.0, 0.999), (1e-4, 0.1), (1e4, 0.35)])
def test_optimum_of_a_conic_solver(scale, nu, per_class):
    outputs, labels = make_outputs(0, n=30)
    wanted, weights = conic_lp(nu, per_class)
    found = solve_lp_beta(scale * outputs, labels, nu, per_class)
    assert found.objective / scale == pytest.approx(wanted, abs=1e-6)
    assert 0.0 <= found.dual_gap <= 1e-7 * scale
    assert found.weights.shape == ((4, 6) if per_class else (6,))
    assert found.weights.min() >= 0.0
    assert_allclose(found.weights.sum(axis=-1), 1.0, atol=1e-12)
    value = plain_value(scale * outputs, labels, nu, found.weights, found.margin)
    assert value == pytest.approx(found.objective, abs=1e-9 * scale)
    if not per_class and nu > 0.05:
        assert_allclose(found.weights, weights[0], atol=1e-4)


@pytest.mark.parametrize("per_class", [False, True])
def test_the_interior_point_route_is_the_same_program(per_class, monkeypatch):
    outputs, labels = make_outputs(2, n=80)
    wanted = solve_lp_beta(outputs, labels, 0.3, per_class)
    monkeypatch.setattr("cuelearn.mkl.rivals.lpbeta.MANY_WEIGHTS", 0)
    found = solve_lp_beta(outputs, labels, 0.3, per_class)
    assert found.objective == pytest.approx(wanted.objective, abs=1e-9) and found.dual_gap < 1e-7
    assert_allclose(found.weights, wanted.weights, atol=1e-6)


# --- the two stages


@pytest.mark.parametrize("per_class", [False, True])
def test_the_whole_method_from_its_parts(per_class):
    K, y = make_stack(np.random.default_rng(0), 75, 4, 3)
    train, test = np.arange(60), np.arange(60, 75)
    K_train, y_train = K[:, train][:, :, train], y[train]
    model = LPBeta("precomputed", C=2.0, per_class=per_class).fit(K_train, y_train)
    folds = list(StratifiedKFold(5, shuffle=True, random_state=0).split(y_train, y_train))
    held = [np.concatenate([test for _, test in pairs]) for pairs in (model.folds_, folds)]
    assert_array_equal(*held)
    outputs = np.empty((4, 60, 3))  # cross-validated
    for output, kernel in zip(outputs, K_train, strict=True):
        for others, fold in folds:
            output[fold] = plain_svms(kernel, y_train, others, fold, 2.0)
    assert_allclose(model.kernel_accuracy_, (outputs.argmax(axis=2) == y_train).mean(axis=1))
    right = np.zeros(len(NU_GRID))
    for others, fold in folds:
        for k, nu in enumerate(NU_GRID):
            weights = solve_lp_beta(outputs[:, others], y_train[others], nu, per_class).weights
            scores = np.einsum("cm,mic->ic", np.broadcast_to(weights, (3, 4)), outputs[:, fold])
            right[k] += np.sum(scores.argmax(axis=1) == y_train[fold])
    assert_allclose(model.nu_accuracy_, right / 60)
    assert model.nu_ == max(nu for nu, count in zip(NU_GRID, right, strict=True) if count == right.max())
    found = solve_lp_beta(outputs, y_train, model.nu_, per_class)
    assert_allclose(model.kernel_weights_, found.weights, atol=1e-6)
    assert model.objective_ == pytest.approx(found.objective, abs=1e-7)
    assert model.margin_ == pytest.approx(found.margin, abs=1e-6)
    wanted = np.zeros((15, 3))
    for j, weights in enumerate(np.broadcast_to(model.kernel_weights_, (3, 4)).T):
        wanted += weights * plain_svms(K[j], y, train, test, 2.0)
    assert_allclose(model.decision_function(K[:, test][:, :, train]), wanted, atol=1e-6)


# --- the estimator


def test_fewer_folds_where_a_class_is_small():
    X, y = DATA
    keep = np.concatenate([np.flatnonzero(y == 0)[:2], np.flatnonzero(y > 0)])
    model = LPBeta(CUES).fit(X[keep], y[keep])
    assert len(model.folds_) == 2
    keep = np.concatenate([np.flatnonzero(y == 0)[:1], np.flatnonzero(y > 0)])
    model = LPBeta(CUES).fit(X[keep], y[keep])
    assert all(0 in train and 0 not in test for train, test in model.folds_)

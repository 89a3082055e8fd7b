"""Theorems 1 and 3 of the paper, exactly on short streams and on every path."""

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from oks_engine import State
from oks_twins import best_in_space, convex, plain_loss
from plain_mkl import minimum

RULES = [("oks", "hinge"), ("regret", "hinge"), ("regret", "square")]


def random_stack(rng, n, m):
    """Positive semi-definite matrices with a diagonal of at most 1, some of them of low rank or with
    repeated samples."""
    K = np.empty((m, n, n))
    for j in range(m):
        Z = rng.normal(size=(n, rng.integers(1, 5)))
        if n > 2 and rng.random() < 0.4:
            Z[rng.integers(n)] = Z[rng.integers(n)]
        Z /= np.linalg.norm(Z, axis=1, keepdims=True)
        K[j] = Z @ Z.T
        if rng.random() >= 0.5:
            K[j] = np.exp(-((Z[:, None] - Z[None]) ** 2).sum(axis=2) * rng.choice([0.3, 2.0, 20.0]))
        if rng.random() < 0.2:
            K[j] *= rng.random()  # shorter than 1
    return 0.5 * (K + K.transpose(0, 2, 1))


@st.composite
def streams(draw, longest, most):
    """A stream with labels from one class only to pure noise, and parameters over several powers of ten."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, m = int(rng.integers(1, longest + 1)), int(rng.integers(1, most + 1))
    y = rng.choice([-1.0, 1.0], size=n, p=(lambda a: [a, 1.0 - a])(draw(st.sampled_from([0.0, 0.2, 0.5]))))
    delta = draw(st.sampled_from([0.01, 0.2, 0.5, 0.9]))
    eta, step = draw(st.sampled_from([1e-3, 0.1, 1.0, 10.0])), draw(st.sampled_from([1e-2, 0.1, 1.0, 10.0]))
    return random_stack(rng, n, m), y, delta, eta, step, rng


def all_draws(state, y, delta, eta, step, losses_of):
    """Expectations over every sequence of draws, by walking the tree of them.

    Returns E sum_t q_t . l_t, E sum_t (m_it / p_it) l_it for every kernel i, E sum_t l_it, the largest loss
    and slope met anywhere, and the sum of the probabilities of all paths.
    """
    m, total = len(state.q), np.zeros(5, dtype=object)
    largest = [0.0, 0.0]

    def walk(state, t, chance, mixed, weighted, plain):
        if t == len(y):
            total[:4] += np.array([chance * mixed, chance * weighted, chance * plain, chance], dtype=object)
            return
        loss, slope = losses_of(state.values_at(t), y[t])
        largest[0], largest[1] = max(largest[0], loss.max()), max(largest[1], np.abs(slope).max())
        cumulative = np.concatenate([[0.0], np.cumsum(state.p)])
        for j in range(m):
            child, p = state.copy(), state.p[j]
            drawn, _, found = child.run([t], y, [0.5 * (cumulative[j] + cumulative[j + 1])], delta, eta, step)
            assert drawn[0] == j
            assert found[0] == pytest.approx(loss[j], abs=1e-9)
            here = np.where(np.arange(m) == j, loss / p, 0.0)
            walk(child, t + 1, chance * p, mixed + state.q @ loss, weighted + here, plain + loss)

    walk(state, 0, 1.0, 0.0, np.zeros(m), np.zeros(m))
    return (*total[:4], *largest)


def surplus(m, T, delta, eta, step, G=1.0, L=1.0):
    return step * m * T * G**2 / (2 * delta) + eta * m * T * L**2 / (2 * (1 - delta)) + np.log(m) / eta


def zero_one(outputs, y):
    wrong = (y * outputs <= 0.0).astype(float)
    return wrong, -y * wrong


@pytest.mark.parametrize("rule, loss", RULES)
@given(stream=streams(longest=4, most=3))
@settings(max_examples=40)
def test_theorems_1_and_3_exactly(rule, loss, stream):
    """The expectation over all m^T draws against the bound; the importance-weighted losses are unbiased on
    the way. L and G are the largest loss and slope that any predictor meets on any path, in theorem 3 both 1.
    """
    K, y, delta, eta, step, rng = stream
    if loss == "square":
        y = y * rng.random(len(y))
    m, T = len(K), len(y)

    def losses_of(outputs, target):
        if rule == "oks":
            return zero_one(outputs, target)
        pairs = np.array([plain_loss(loss, output, target) for output in outputs])
        return pairs[:, 0], pairs[:, 1]

    state = State(K, rule, loss)
    expected, weighted, plain, chance, L, G = all_draws(state, y, delta, eta, step, losses_of)
    assert chance == pytest.approx(1.0, abs=1e-12)
    assert_allclose(weighted, plain, rtol=1e-9, atol=1e-9)
    best = min(best_in_space(K[j], y, step, loss) for j in range(m))
    bound = best + surplus(m, T, delta, eta, step, *((G, L) if rule == "regret" else ()))
    assert expected <= bound * (1.0 + 1e-12) + 1e-9


@pytest.mark.parametrize("rule, loss", RULES)
@given(stream=streams(longest=60, most=4))
@settings(max_examples=60)
def test_the_proof_on_every_path(rule, loss, stream):
    """Before expectations are taken both halves of the proof hold for any draws, much tighter than it.

    Weights: sum_t q_t . v_t <= sum_t v_it + eta/2 sum_t q_t . v_t^2 + ln(m) / eta with v_it = m_it l_it /
    p_it, for every i. Predictors: sum_t (m_it/p_it) (l_it - l(f(x_t))) <= |f|^2 / (2 lambda) + lambda/2 sum_t
    m_it g_it^2 k_i(x_t, x_t) / p_it^2 for every f.
    """
    K, y, delta, eta, step, rng = stream
    if loss == "square":
        y = y * rng.random(len(y))
    state, m, T = State(K, rule, loss), len(K), len(y)
    mixed, second, estimates = 0.0, 0.0, np.zeros(m)
    share, price = np.zeros((m, T)), np.zeros(m)
    for t in range(T):
        q, p = state.q.copy(), state.p.copy()
        assert_allclose(p, (1.0 - delta) * q + delta / m, rtol=1e-12)
        outputs = state.values_at(t)
        j = state.run([t], y, [rng.random()], delta, eta, step)[0][0]
        value, slope = (v[j] for v in zero_one(outputs, y[t]))
        if rule == "regret":
            value, slope = plain_loss(loss, outputs[j], y[t])
        estimate = value / p[j]
        mixed, second = mixed + q[j] * estimate, second + q[j] * estimate**2
        estimates[j] += estimate
        # Algorithm 2 steps on mistakes only, and counts only them
        share[j, t] = (1.0 if rule == "regret" else float(value > 0.0)) / p[j]
        price[j] += (slope / p[j]) ** 2 * K[j, t, t]
    slack = 1e-9 * (1.0 + abs(mixed) + eta * second)
    assert mixed <= estimates.min() + 0.5 * eta * second + np.log(m) / eta + slack
    for j in range(m):
        best = best_in_space(K[j], y, step, loss, weights=share[j])
        assert estimates[j] <= best + 0.5 * step * price[j] + 1e-9 * (1.0 + estimates[j] + step * price[j])


@pytest.mark.parametrize("loss", ["hinge", "square"])
def test_comparators_are_the_least_values(loss):
    rng = np.random.default_rng(0)
    for step, weighted in ((0.1, False), (3.0, False), (1.0, True)):
        K, y = random_stack(rng, 8, 1)[0], rng.choice([-1.0, 1.0], 8)
        c = rng.random(8) * (rng.random(8) < 0.7) if weighted else np.ones(8)
        w, losses = convex(K, y, loss, c)
        wanted = minimum(losses + cp.sum_squares(w) / (2 * step))
        assert best_in_space(K, y, step, loss, weights=c) == pytest.approx(wanted, rel=1e-6, abs=1e-7)

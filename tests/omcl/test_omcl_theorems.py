"""Bounds of the theorems, on random streams."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from omcl_twins import make_stream
from plain_kernels import plain_kernel
from plain_mkl import plain_losses

from cuelearn.kernels import RBF, Linear
from cuelearn.omcl import (
    OMCL,
    KernelPerceptron,
    OnlineGradientDescent,
    PassiveAggressive,
    Projectron,
    ProjectronPlusPlus,
)

FEW = settings(max_examples=12)
SEEDS = st.integers(0, 10_000)
CLASSES = st.sampled_from([2, 3, 5])
STEPS = st.floats(1e-3, 10.0)


def stream(seed, n_classes, n=120):
    rng = np.random.default_rng(seed)
    X, y = make_stream(
        n, 6, n_classes, seed=seed, noise=rng.choice([0.0, 0.2, 1.0]), spread=rng.choice([0.05, 0.3])
    )
    return X, y


def comparators(model, seed):
    """Zero, the hypothesis that a learner arrives at, and random ones."""
    rng, shape = np.random.default_rng(seed), model.coef_.shape
    return [np.zeros(shape), model.coef_, *(size * rng.normal(size=shape) for size in (0.1, 1.0, 10.0))]


@FEW
@given(seed=SEEDS, n_classes=CLASSES, step=STEPS)
def test_theorem_3_1(seed, n_classes, step):
    """Loss of two layers: at most the best cue's plus the second layer's regret against its selector.

    The selector u_y picks the cue's score of class y, so that its loss is the cue's and ||u||^2 = M.
    """
    X, y = stream(seed, n_classes, n=60)
    cues = [
        ("a", ProjectronPlusPlus(RBF(scale=0.5), eta=0.3), [0, 1]),
        ("b", KernelPerceptron(RBF(scale=0.5)), [2, 3]),
        ("c", PassiveAggressive(), [4, 5]),
        ("useless", KernelPerceptron(Linear()), [0]),
    ]
    model = OMCL(cues, OnlineGradientDescent(step), average=False)
    S = []
    for t in range(y.size):
        x = X[t : t + 1]
        S.append(np.hstack(model._cue_scores(x, average=False))[0] if t else np.zeros(4 * n_classes))
        model.partial_fit(X[t : t + 1], y[t : t + 1], classes=range(n_classes))
    S = np.array(S)
    lossy = model.online_losses_ > 0.0
    regret = n_classes / (2.0 * step) + step * (S[lossy] ** 2).sum()
    own = [learner.online_losses_.sum() for learner in model.learners_]
    for j, learner in enumerate(model.learners_):
        selector = np.zeros((n_classes, 4 * n_classes))
        selector[np.arange(n_classes), j * n_classes + np.arange(n_classes)] = 1.0
        assert_allclose(plain_losses(S @ selector.T, y), learner.online_losses_, atol=1e-8)
    assert model.cumulative_loss_ <= min(own) + regret + 1e-8
    assert model.n_mistakes_ <= model.cumulative_loss_ + 1e-8


@FEW
@given(seed=SEEDS, n_classes=CLASSES, step=STEPS)
def test_regret_of_gradient_descent(seed, n_classes, step):
    X, y = stream(seed, n_classes)
    model = OnlineGradientDescent(step, average=False).fit(X, y)
    lossy = model.online_losses_ > 0.0
    for u in comparators(model, seed):
        regret = (u**2).sum() / (2.0 * step) + step * (X[lossy] ** 2).sum()
        assert model.cumulative_loss_ <= plain_losses(X @ u.T, y).sum() + regret + 1e-8


@FEW
@given(seed=SEEDS, n_classes=CLASSES, C=st.floats(1e-3, 100.0))
def test_bounds_of_passive_aggressive(seed, n_classes, C):
    """Crammer et al. (2006), lemma 1 and theorem 4, for the multiclass loss."""
    X, y = stream(seed, n_classes)
    model = PassiveAggressive(C, average=False).fit(X, y)
    losses, length_sq = model.online_losses_, (X**2).sum(axis=1)
    steps = np.minimum(C, np.divide(losses, 2.0 * length_sq, out=np.zeros(y.size), where=length_sq > 0.0))
    for u in comparators(model, seed):
        bound = (u**2).sum() + 2.0 * C * plain_losses(X @ u.T, y).sum()
        assert (steps * losses).sum() <= bound + 1e-8
        assert model.n_mistakes_ <= max(2.0 * length_sq.max(), 1.0 / C) * bound + 1e-8


@FEW
@given(seed=SEEDS, n_classes=CLASSES)
def test_bound_of_the_perceptron(seed, n_classes):
    """``M <= L + D + sqrt(D L)`` for any u with hinge losses of sum L on the mistakes and D = 2 ||u||^2
    (unit diagonal)."""
    X, y = stream(seed, n_classes)
    K = plain_kernel("sqeuclidean", X, X, scale=0.5)
    model = KernelPerceptron("precomputed", average=False).fit(K, y)
    rng = np.random.default_rng(seed)
    wrong = np.flatnonzero(model.online_errors_)
    for u in (
        np.zeros((n_classes, y.size)),
        *(size * (np.eye(n_classes)[:, y] + rng.normal(size=(n_classes, y.size))) for size in (0.05, 0.3)),
    ):
        D = 2.0 * np.einsum("ci,ij,cj->", u, K, u)
        L = plain_losses(K[wrong] @ u.T, y[wrong]).sum()
        assert wrong.size <= L + D + np.sqrt(D * L) + 1e-8


@FEW
@given(seed=SEEDS, eta=st.sampled_from([0.05, 0.1, 0.3, 0.7, 1.2]), plus=st.booleans())
def test_support_is_spread_out(seed, eta, plus):
    """Orabona et al. (2009), theorem 1: members lie eta / sqrt 2 off the span of the earlier ones.

    On an interval two members x, z have ``k(x, z) <= 1 - eta^2 / 4``, which leaves room for a number that can
    be counted.
    """
    rng = np.random.default_rng(seed)
    X, y = rng.random((600, 1)), rng.integers(0, 3, 600)
    cls = ProjectronPlusPlus if plus else Projectron
    model = cls(RBF(scale=0.05), eta=eta).fit(X, y)
    members = model.support_vectors_
    K = plain_kernel("sqeuclidean", members, members, scale=0.05)
    pivots = np.diag(np.linalg.cholesky(K)) ** 2  # squared distances from the span of the earlier members
    assert pivots.min() > 0.5 * eta**2 * (1.0 - 1e-6)
    gap = np.sqrt(-0.05 * np.log(1.0 - eta**2 / 4.0))
    assert len(members) <= 1.0 / gap + 1.0
    order = np.sort(members[:, 0])
    assert len(members) == 1 or np.diff(order).min() >= gap * (1.0 - 1e-9)


def test_an_eta_beyond_the_diameter_keeps_one_sample():
    X, y = make_stream(300, 6, 3, noise=1.0)
    for cls in (Projectron, ProjectronPlusPlus):
        model = cls(RBF(scale=0.5), eta=np.sqrt(2.0) + 1e-9).fit(X, y)
        assert model.support_.tolist() == [0]

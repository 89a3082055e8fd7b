"""The compiled solvers against their plain twins, update by update."""

import numpy as np
import pytest
from mkl_data import solved
from numpy.testing import assert_allclose, assert_array_equal
from plain_mkl import (
    PlainDual,
    TwinBatch,
    TwinOM2,
    block_norms,
    class_scores,
    make_stack,
    plain_competitor,
    plain_link,
)

from cuelearn.kernels import KernelBank
from cuelearn.mkl import OBSCURE, OM2, UFOMKL, KernelPA, MKLProblem, PegasosMKL
from cuelearn.mkl.stochastic.obscure import visit_obscure
from cuelearn.mkl.stochastic.om2 import visit_om2
from cuelearn.mkl.stochastic.training import Stream
from cuelearn.mkl.stochastic.ufo import visit_ufo
from cuelearn.omcl import MarginQuery, RandomQuery, ThresholdQuery

ROUTES = ["recompute", "maintain"]


class TwinUFO(PlainDual):
    """Thesis Algorithm 7."""

    def __init__(self, *args, C, alpha=0.0, **kwargs):
        super().__init__(*args, **kwargs)
        self.lam, self.alpha, self.t = 1.0 / (C * self.y.size), alpha, 0

    def point(self):
        t = max(1, self.t)
        return self.A.copy(), plain_link(self.norms(), self.q, self.alpha * self.t) / (t * self.lam)

    def step(self, i):
        rival, margin = self.visit(i, self.point()[1])
        self.t += 1
        if 1.0 - margin > 0.0:
            self.add(i, rival, 1.0)
        return margin <= 0.0


def twin_passive_aggressive(kernel, y, n_classes, C, order, weights=None):
    weights = np.ones(y.size) if weights is None else weights
    A = np.zeros((y.size, n_classes))
    for i in order:
        scores = kernel[i] @ A
        rival = plain_competitor(scores, y[i])
        margin = scores[y[i]] - scores[rival]
        loss = max(0.0, 1.0 - margin)
        if loss > 0.0 and kernel[i, i] > 0.0:
            tau = min(weights[i] * C, loss / (2.0 * kernel[i, i]))
            A[i, y[i]] += tau
            A[i, rival] -= tau
        yield A.copy(), margin <= 0.0


def follow(stream, twin, order, rtol=1e-9):
    for i in order:
        mistake = stream.visit(np.array([i]))[0]
        assert mistake == twin.step(i)
        coef, weights, *_ = stream.point()
        wanted, wanted_weights = twin.point()
        assert_allclose(coef, wanted, atol=rtol * max(np.abs(wanted).max(), 1.0))
        assert_allclose(weights, wanted_weights, atol=1e-2 * rtol + rtol * wanted_weights.max(), rtol=0)


def small_problem(n=30, n_kernels=4, n_classes=3, seed=0, loss="multiclass", **settings):
    rng = np.random.default_rng(seed)
    K, y = make_stack(rng, n, n_kernels, n_classes)
    problem = MKLProblem(KernelBank.from_stack(K), y, n_classes, loss=loss, **settings)
    return K, y, problem, rng


def started(problem, route, loop, *parameters, averages=False):
    stream = Stream(problem, scores=route)
    stream.start_stage(loop, *parameters, averages=averages)
    return stream


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize(
    "size, scale, dtype, sample_major",
    [
        ({"n": 60, "n_classes": 12}, 1.0, np.float64, False),  # the sparse products of many classes
        ({}, [0.01, 0.1, 0.3, 0.02], np.float64, False),  # the real diagonal; a negative step size is 0
        ({}, 1.0, np.float64, True),  # the other order of the stack in memory
        ({"n": 60}, 1.0, np.float32, False),
    ],
)
def test_om2_steps_on_other_kernels(size, scale, dtype, sample_major, route):
    K, y, problem, rng = small_problem(p=1.1, **size)
    K = (K * np.reshape(scale, (-1, 1, 1))).astype(dtype)
    if sample_major:
        K = np.ascontiguousarray(K.transpose(1, 0, 2)).transpose(1, 0, 2)
    problem = MKLProblem(KernelBank.from_stack(K), y, problem.n_classes, p=1.1)
    order = rng.integers(y.size, size=90)
    twin = TwinOM2(K, y, problem.n_classes, 1.1)
    follow(started(problem, route, visit_om2), twin, order, 1e-9 if dtype == np.float64 else 1e-6)


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("loss, n_classes, factor", [("multiclass", 3, 1.0), ("hinge", 2, 0.5)])
@pytest.mark.parametrize(
    "rule, p, C, alpha",
    [
        ("om2", 1.02, 1.0, 0.0),
        ("om2", 2.0, 1.0, 0.0),
        ("online", 1.3, 2.0, 0.0),
        ("batch", 1.02, 1.0, 0.0),
        ("batch", 2.0, 1.0, 0.0),
        ("pegasos", 1.02, 1.0, 0.0),
        ("pegasos", 1.3, 1000.0, 0.0),
        ("ufo", 1.02, 1.0, 0.0),
        ("ufo", 2.0, 10.0, 0.2),
        ("ufo", 1.5, 0.1, 0.6),
    ],
)
def test_steps(rule, p, C, alpha, loss, n_classes, factor, weighted, route):
    """An update is multiplied by the weight of its loss; OM-2, which knows no mean, takes it as is."""
    rng = np.random.default_rng(5)
    s = np.ones(30)
    c = np.ones(n_classes)
    if weighted:
        s = rng.integers(0, 4, size=30) * rng.uniform(0.5, 2.0, size=30)
        c = np.array([0.5, 3.0, 1.0])[:n_classes]
    weights = {"sample_weight": s, "class_weight": dict(enumerate(c))}
    K, y, problem, rng = small_problem(p=p, C=C, alpha=alpha, loss=loss, n_classes=n_classes, **weights)
    visited = np.flatnonzero(s)
    raw = s * c[y]
    cost = raw * visited.size / s.sum()  # mean 1 over the samples that are visited, but for the classes
    C = C * s.sum() / y.size
    given = K, y, n_classes, p, factor
    makes = {
        "om2": (visit_om2, (), TwinOM2(*given, cost=raw)),
        "online": (visit_obscure, (True, 0.5), TwinOM2(*given, cost=cost, eta=0.5)),
        "batch": (visit_obscure, (False, 0.3), TwinBatch(*given, cost=cost, C=C, radius=0.3)),
        "pegasos": (visit_obscure, (False, np.inf), TwinBatch(*given, cost=cost, C=C)),
        "ufo": (visit_ufo, (), TwinUFO(*given, cost=cost, C=C, alpha=alpha)),
    }
    loop, parameters, twin = makes[rule]
    stream = Stream(problem, scores=route, cost=raw if rule == "om2" else None)
    assert_array_equal(stream.visited, visited)
    stream.start_stage(loop, *parameters, averages=rule == "ufo")
    follow(stream, twin, rng.choice(visited, size=150))
    assert stream.n_updates > 4
    assert np.array_equal(stream.point()[1] == 0.0, twin.point()[1] == 0.0)


def run_twin(twin, order):
    return [twin.step(i) for i in order]


@pytest.mark.parametrize("sampling", ["permutation", "iid"])
@pytest.mark.parametrize("cls", [OM2, OBSCURE, UFOMKL, PegasosMKL])
def test_a_run_is_replayed_from_its_visits(cls, sampling):
    K, y, _, _ = small_problem(seed=8)
    more = {"n_epochs_online": 2, "radius": "online", "eta": 0.25} if cls is OBSCURE else {}
    options = {"p": 1.2, "alpha": 0.01, "n_epochs": 3, "sampling": sampling, **more}
    _, result = solved(cls, K, y, seed=None, **options)
    twin = {OM2: TwinOM2, UFOMKL: TwinUFO}.get(cls, TwinBatch)
    made = {"C": 1.0, "alpha": 0.01} if cls is UFOMKL else {} if cls is OM2 else {"C": 1.0}
    visits, errors = result.extra["visits"], []
    assert visits.dtype == np.uint8
    if cls is OM2:  # which keeps the given order in the first pass
        assert sampling == "iid" or (np.diff(visits[:30]) == 1).all()
    if cls is OBSCURE:
        online, errors, visits = TwinOM2(K, y, 3, 1.2, eta=0.25), visits[:60], visits[60:]
        errors = run_twin(online, errors)
        radius = online.radius(1.0)
        assert result.extra["radius"] == result.extra["radius_online"] == pytest.approx(radius, rel=1e-10)
        made |= {"radius": radius, "A": online.A}
    twin = twin(K, y, 3, 1.2, **made)
    assert_array_equal(result.online_errors, [*errors, *run_twin(twin, visits)])
    assert_allclose(result.dual_coef, twin.A, atol=1e-9)
    assert_allclose(result.kernel_weights, twin.point()[1], rtol=1e-9)


@pytest.mark.parametrize("C, n_epochs", [(1.0, 1), (0.05, 3)])
def test_passive_aggressive_equals_its_twin(C, n_epochs):
    K, y, _, _ = small_problem(n=40, n_classes=4, seed=9)
    K[0] *= 2.0  # a diagonal other than 1
    K[:, 5], K[:, :, 5] = 0.0, 0.0  # a sample that every kernel maps to 0
    rng = np.random.default_rng(2)
    order = np.concatenate([np.arange(40), *(rng.permutation(40) for _ in range(n_epochs - 1))])
    steps = list(twin_passive_aggressive(K.mean(axis=0), y, 4, C, order))
    model = KernelPA("precomputed", C=C, n_epochs=n_epochs, random_state=2).fit(K, y)
    assert_array_equal(model.online_errors_, [mistake for _, mistake in steps])
    assert_allclose(model.dual_coef_, steps[-1][0][model.support_], atol=1e-12)
    assert 5 not in model.support_
    single = KernelPA("precomputed", kernel="k2", C=C, n_epochs=n_epochs, random_state=2)
    weights = rng.choice([0.0, 0.1, 1.0, 2.0], 40)
    steps = list(twin_passive_aggressive(K[2], y, 4, C, order, weights))
    single.fit(K, y, sample_weight=weights)
    assert_allclose(single.dual_coef_, steps[-1][0][single.support_], atol=1e-12)
    assert weights[single.support_].all()


def test_long_runs_do_not_drift():
    K, y, _, _ = small_problem(n=60, n_classes=3, seed=14)
    problem = MKLProblem(KernelBank.from_stack(K.astype(np.float32)), y, 3, p=1.1, C=1.0)
    for route in ROUTES:
        stream = started(problem, route, visit_ufo, averages=True)
        rng = np.random.default_rng(0)
        for _ in range(400):
            stream.visit(rng.permutation(60))
        exact = block_norms(K, stream.dual.coef.T)
        assert_allclose(np.sqrt(stream.dual.norms_sq), exact, rtol=1e-5)
        point = stream.point(scores=True)
        scores = class_scores(K, point.dual_coef, point.weights)
        assert_allclose(point.scores, scores, atol=1e-4 * np.abs(scores).max())


class TwinQuerying(TwinOM2):
    def step_within(self, i, limit):
        """Whether the label was requested, and a mistake."""
        scores = np.sort(self.scores([i], self.point()[1])[0])
        if scores[-1] - scores[-2] > limit:
            return False, False
        return True, self.step(i)


@pytest.mark.parametrize("query", [MarginQuery(0.3), ThresholdQuery(0.4), RandomQuery(0.4)])
@pytest.mark.parametrize("p, n_classes", [(1.05, 4), (2.0, 2)])
def test_requested_labels_are_those_of_the_twin(p, n_classes, query):
    """tests/core has what all learners that take a query do."""
    K, y = make_stack(np.random.default_rng(0), 80, 4, n_classes)
    model = OM2("precomputed", p=p, query=query).fit(K, y)
    twin = TwinQuerying(K, y, n_classes, p)
    limits = query.limits(0, 80)
    queried, mistakes = np.transpose([twin.step_within(i, limits[i]) for i in range(80)])
    assert 1 <= model.n_queries_ == queried.sum() <= 80
    assert_array_equal(model.queried_, queried)
    assert_array_equal(model.online_errors_, mistakes)
    assert_allclose(model.dual_coef_, twin.A[model.support_], atol=1e-9)
    assert_allclose(model.kernel_weights_, twin.point()[1], rtol=1e-9)
    assert model.history_["online_error"].item() == pytest.approx(mistakes.sum() / queried.sum())
    assert np.isnan([model.objective_, model.dual_gap_]).all()

"""The compiled solvers against their plain twins, update by update."""

import numpy as np
import pytest
from mkl_twins import (
    TwinBatch,
    TwinOM2,
    TwinUFO,
    block_norms,
    class_scores,
    make_stack,
    plain_losses,
    twin_om2_rows,
    twin_passive_aggressive,
)
from numpy.testing import assert_allclose, assert_array_equal

from cuelearn.datasets import load_mnist
from cuelearn.kernels import RBF, KernelBank, Linear, Poly
from cuelearn.mkl import (
    OBSCURE,
    OM2,
    UFOMKL,
    KernelPA,
    MKLProblem,
    PegasosMKL,
    solve_obscure,
    solve_om2,
    solve_pegasos_mkl,
    solve_ufo,
)
from cuelearn.mkl import stream as stream_module
from cuelearn.mkl.obscure import visit_obscure
from cuelearn.mkl.om2 import visit_om2
from cuelearn.mkl.stream import Stream
from cuelearn.mkl.training import draw_order
from cuelearn.mkl.ufo import visit_ufo

ROUTES = ["recompute", "maintain"]


# ------------------------------------------------------------------ OM-2 on 1,000 digits


@pytest.fixture(scope="module")
def digits():
    """1,000 digits, a Linear, a Poly and an RBF kernel on each quadrant of the image."""
    data = load_mnist(n_train=1000)
    X, y = data.X[data.train][:1000], data.y[data.train][:1000]
    kinds = {"linear": Linear(), "poly": Poly(), "rbf": RBF()}
    cues = [(f"{cue}-{kind}", k, columns) for cue, columns in data.cues.items() for kind, k in kinds.items()]
    assert len(cues) == 12
    return KernelBank(cues, X), y.astype(int)


@pytest.fixture(scope="module")
def twin_runs(digits):
    """Coefficients and mistakes of the plain twin after each of five epochs, per p."""
    bank, y = digits
    rows = list(bank.stack.transpose(1, 0, 2).astype(np.float64))
    orders = five_orders(y.size)
    return {p: list(twin_om2_rows(rows, y, 10, p, orders)) for p in (1.01, 2.0)}


def five_orders(n):
    rng = np.random.default_rng(3)
    return [rng.permutation(n) for _ in range(5)]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("scores", ROUTES)
@pytest.mark.parametrize("p", [1.01, 2.0])
def test_om2_equals_its_twin_on_digits(digits, twin_runs, p, scores, dtype):
    bank, y = digits
    if dtype == "float64":  # the same values: what differs from the twin is the order of sums
        bank = KernelBank.from_stack(bank.stack.astype(np.float64), validate=False)
    tolerance = 1e-9 if dtype == "float64" else 1e-6
    seen = []

    def watch(training, step):
        seen.append(training.stream.point()[0])

    options = {"n_epochs": 5, "shuffle": True, "scores": scores, "certify": False}
    rng = np.random.default_rng(3)
    result = solve_om2(MKLProblem(bank, y, 10, p=p), rng=rng, callback=watch, **options)
    for epoch, (coef, mistakes) in enumerate(twin_runs[p]):
        assert_array_equal(result.online_errors[1000 * epoch : 1000 * (epoch + 1)], mistakes)
        assert np.abs(seen[epoch] - coef).max() <= tolerance * np.abs(coef).max(), f"epoch {epoch + 1}"


@pytest.mark.parametrize("p", [1.01, 2.0])
def test_the_fast_twin_equals_the_plain_one(p):
    K, y = make_stack(np.random.default_rng(0), 40, 3, 4)
    plain = TwinOM2(K, y, 4, p)
    orders = [np.random.default_rng(seed).permutation(40) for seed in range(3)]
    rows = list(K.transpose(1, 0, 2))
    for order, (coef, mistakes) in zip(orders, twin_om2_rows(rows, y, 4, p, orders), strict=True):
        assert [plain.step(i) for i in order] == list(mistakes)
        assert_allclose(plain.A, coef, atol=1e-10)


# ------------------------------------------------------------------ every step of every rule, small problems


def follow(stream, twin, order, rtol=1e-9):
    """Visit by visit: the same mistakes, coefficients and kernel weights."""
    for i in order:
        mistake = stream.visit(np.array([i]))[0]
        assert mistake == twin.step(i)
        coef, weights = stream.point()
        wanted, wanted_weights = twin.point()
        assert_allclose(coef, wanted, atol=rtol * max(np.abs(wanted).max(), 1.0))
        assert_allclose(weights, wanted_weights, atol=1e-2 * rtol + rtol * wanted_weights.max(), rtol=0)


def small_problem(n=30, n_kernels=4, n_classes=3, seed=0, loss="multiclass", scale=None, **settings):
    rng = np.random.default_rng(seed)
    K, y = make_stack(rng, n, n_kernels, n_classes)
    if scale is not None:
        K *= np.asarray(scale)[:, None, None]
    problem = MKLProblem(KernelBank.from_stack(K), y, n_classes, loss=loss, **settings)
    return K, y, problem, rng


of_steps = lambda test: pytest.mark.parametrize("route", ROUTES)(
    pytest.mark.parametrize("loss, n_classes, factor", [("multiclass", 3, 1.0), ("hinge", 2, 0.5)])(test)
)


@of_steps
@pytest.mark.parametrize("p", [1.02, 2.0])
def test_om2_steps(p, loss, n_classes, factor, route):
    K, y, problem, rng = small_problem(p=p, loss=loss, n_classes=n_classes)
    stream = Stream(problem, scores=route)
    stream.start_stage(visit_om2)
    follow(stream, TwinOM2(K, y, n_classes, p, factor), rng.integers(30, size=120))
    assert stream.n_updates > 10


@pytest.mark.parametrize("route", ROUTES)
def test_om2_steps_with_many_classes_take_the_sparse_products(route):
    """With 12 classes two of them never hold a quarter of the samples: `pair_products` stays sparse."""
    K, y, problem, rng = small_problem(n=60, n_classes=12, p=1.1)
    stream = Stream(problem, scores=route)
    stream.start_stage(visit_om2)
    follow(stream, TwinOM2(K, y, 12, 1.1), rng.permutation(60))


@pytest.mark.parametrize(("n", "route"), [(60, "recompute"), (61, "maintain")])
def test_scores_of_many_classes_are_not_kept_where_visits_are_idle(n, route, monkeypatch):
    """A visit would read n_classes scores of every kernel, scattered, instead of n values in a row."""
    monkeypatch.setattr(stream_module, "CACHE_BYTES", 0)
    _, _, problem, rng = small_problem(n=n, n_classes=12, p=1.1)
    stream = Stream(problem)
    stream.start_stage(visit_om2)
    for _ in range(300):
        stream.visit(rng.permutation(n))
    assert stream.update_share == 0
    assert stream.route == route


def test_om2_steps_on_unnormalised_kernels():
    """The real diagonal enters ||z||_{2,q}; a step size that would be negative is 0."""
    K, y, problem, rng = small_problem(p=1.2, scale=[0.01, 0.1, 0.3, 0.02])
    stream = Stream(problem, scores="recompute")
    stream.start_stage(visit_om2)
    twin = TwinOM2(K, y, 3, 1.2)
    order = rng.integers(30, size=200)
    follow(stream, twin, order)
    assert stream.n_updates < 200


@of_steps
@pytest.mark.parametrize("p, C, cap", [(1.02, 1.0, True), (1.3, 100.0, False), (2.0, 1.0, 0.3)])
def test_obscure_steps(p, C, cap, loss, n_classes, factor, route):
    """Both stages, R and the projection (a small R makes every update leave the ball)."""
    K, y, problem, rng = small_problem(p=p, C=C, loss=loss, n_classes=n_classes, seed=1)
    stream = Stream(problem, scores=route)
    stream.start_stage(visit_obscure, True, 0.5)
    online = TwinOM2(K, y, n_classes, p, factor, eta=0.5)
    follow(stream, online, rng.permutation(30))

    radius = online.radius(C)
    value, loss_now, norm = stream.objective()
    assert np.sqrt(norm**2 + 2.0 * loss_now / problem.regularization) == pytest.approx(radius, rel=1e-10)
    radius = cap if not isinstance(cap, bool) else min(radius, np.sqrt(2.0 * C * 30)) if cap else radius
    stream.start_stage(visit_obscure, False, radius)
    batch = TwinBatch(K, y, n_classes, p, factor, C=C, radius=radius, A=online.A)
    follow(stream, batch, rng.integers(30, size=150))


@pytest.mark.parametrize("route", ROUTES)
def test_obscure_projects_on_a_visit_without_loss_too(route):
    """A start outside the ball (R below the online stage's norm) is brought in by the first visit."""
    K, y, problem, rng = small_problem(p=1.5, C=1.0, seed=2)
    stream = Stream(problem, scores=route)
    stream.start_stage(visit_obscure, True, 0.5)
    online = TwinOM2(K, y, 3, 1.5, eta=0.5)
    for _ in range(10):
        follow(stream, online, rng.permutation(30))
    A, weights = online.point()
    norm = (weights * block_norms(K, A)).sum()
    quiet = np.flatnonzero(plain_losses(class_scores(K, A, weights), y) == 0.0)
    assert quiet.size
    radius = 0.2 * norm
    stream.start_stage(visit_obscure, False, radius)
    order = np.concatenate([quiet[:3], rng.integers(30, size=40)])
    follow(stream, TwinBatch(K, y, 3, 1.5, C=1.0, radius=radius, A=online.A), order)


@of_steps
@pytest.mark.parametrize("p, C", [(1.02, 1.0), (1.3, 1000.0)])
def test_pegasos_steps(p, C, loss, n_classes, factor, route):
    """From 0, and from a vector that the first shrink factor 0 must forget."""
    K, y, problem, rng = small_problem(p=p, C=C, loss=loss, n_classes=n_classes, seed=3)
    stream = Stream(problem, scores=route)
    stream.start_stage(visit_obscure, False, np.inf)
    follow(stream, TwinBatch(K, y, n_classes, p, factor, C=C), rng.integers(30, size=150))

    stream.start_stage(visit_obscure, False, np.inf)
    twin = TwinBatch(K, y, n_classes, p, factor, C=C, A=stream.point()[0])
    follow(stream, twin, rng.integers(30, size=50))


@of_steps
@pytest.mark.parametrize("p, C, alpha", [(1.02, 1.0, 0.0), (2.0, 10.0, 0.2), (1.5, 0.1, 0.6)])
def test_ufo_steps(p, C, alpha, loss, n_classes, factor, route):
    K, y, problem, rng = small_problem(p=p, C=C, alpha=alpha, loss=loss, n_classes=n_classes, seed=4)
    stream = Stream(problem, scores=route)
    stream.start_stage(visit_ufo, averages=True)
    twin = TwinUFO(K, y, n_classes, p, factor, C=C, alpha=alpha)
    follow(stream, twin, rng.integers(30, size=200))
    if alpha > 0.1:
        assert np.array_equal(stream.point()[1] == 0.0, twin.point()[1] == 0.0)


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("rule", ["om2", "online", "batch", "pegasos", "ufo"])
def test_weighted_steps(rule, route):
    """A visit's update is multiplied by the weight of its loss; OM-2, which knows no mean, takes it as is."""
    rng = np.random.default_rng(5)
    s, c = rng.integers(0, 4, size=30) * rng.uniform(0.5, 2.0, size=30), {0: 0.5, 1: 3.0, 2: 1.0}
    alpha = 0.02 if rule == "ufo" else 0.0
    weights = {"sample_weight": s, "class_weight": c}
    K, y, problem, rng = small_problem(p=1.3, C=2.0, alpha=alpha, **weights)
    visited = np.flatnonzero(s)
    raw = s * np.array([c[label] for label in y])
    cost = raw * visited.size / s.sum()  # mean 1 over the samples that are visited, but for the classes
    C = 2.0 * s.sum() / y.size
    makes = {
        "om2": (visit_om2, (), TwinOM2(K, y, 3, 1.3, cost=raw)),
        "online": (visit_obscure, (True, 0.5), TwinOM2(K, y, 3, 1.3, cost=cost, eta=0.5)),
        "batch": (visit_obscure, (False, 3.0), TwinBatch(K, y, 3, 1.3, cost=cost, C=C, radius=3.0)),
        "pegasos": (visit_obscure, (False, np.inf), TwinBatch(K, y, 3, 1.3, cost=cost, C=C)),
        "ufo": (visit_ufo, (), TwinUFO(K, y, 3, 1.3, cost=cost, C=C, alpha=alpha)),
    }
    loop, parameters, twin = makes[rule]
    stream = Stream(problem, scores=route, cost=raw if rule == "om2" else None)
    assert_array_equal(stream.visited, visited)
    stream.start_stage(loop, *parameters, averages=rule == "ufo")
    follow(stream, twin, rng.choice(visited, size=150))


# ------------------------------------------------------------------ whole runs: orders, stages, samplings


def run_twin(twin, orders):
    return np.concatenate([[twin.step(i) for i in order] for order in orders])


def orders_of(n, seed, epochs, **options):
    rng = np.random.default_rng(seed)
    return [draw_order(n, rng, **options) for _ in range(epochs)]


@pytest.mark.parametrize("sampling", ["permutation", "iid"])
def test_whole_run_of_obscure(sampling):
    K, y, problem, _ = small_problem(p=1.2, C=1.0, seed=6)
    orders = orders_of(30, 9, 8, sampling=sampling)
    options = {"n_epochs_online": 3, "n_epochs": 5, "radius": "online", "eta": 0.25, "sampling": sampling}
    result = solve_obscure(problem, rng=np.random.default_rng(9), **options)
    online = TwinOM2(K, y, 3, 1.2, eta=0.25)
    errors = run_twin(online, orders[:3])
    radius = online.radius(1.0)
    assert result.extra["radius"] == result.extra["radius_online"] == pytest.approx(radius, rel=1e-10)
    assert result.extra["n_updates_online"] == result.history.n_updates.iloc[2]
    batch = TwinBatch(K, y, 3, 1.2, C=1.0, radius=radius, A=online.A)
    errors = np.concatenate([errors, run_twin(batch, orders[3:])])
    assert_array_equal(result.online_errors, errors)
    assert_allclose(result.dual_coef, batch.A, atol=1e-9)


@pytest.mark.parametrize("sampling", ["permutation", "iid"])
def test_whole_runs_of_ufo_and_pegasos(sampling):
    K, y, problem, _ = small_problem(p=1.2, C=1.0, alpha=0.01, seed=7)
    orders = orders_of(30, 9, 6, sampling=sampling)
    result = solve_ufo(problem, n_epochs=6, rng=np.random.default_rng(9), sampling=sampling)
    twin = TwinUFO(K, y, 3, 1.2, C=1.0, alpha=0.01)
    assert_array_equal(result.online_errors, run_twin(twin, orders))
    assert_array_equal(result.dual_coef, twin.A)
    assert_allclose(result.kernel_weights, twin.point()[1], rtol=1e-9)

    problem = MKLProblem(problem.bank, y, 3, p=1.2, C=1.0)
    result = solve_pegasos_mkl(problem, n_epochs=6, rng=np.random.default_rng(9), sampling=sampling)
    twin = TwinBatch(K, y, 3, 1.2, C=1.0)
    assert_array_equal(result.online_errors, run_twin(twin, orders))
    assert_allclose(result.dual_coef, twin.A, atol=1e-9)


@pytest.mark.parametrize("cls", [OM2, OBSCURE, UFOMKL, PegasosMKL])
def test_a_fit_is_replayed_from_its_visits(cls):
    """Also where nobody can draw them again."""
    K, y, _, _ = small_problem(seed=8)
    options = {"p": 1.2, "n_epochs": 3, "random_state": np.random.default_rng()}
    published = {} if cls is OM2 else {"finish": False, "tol": None}
    model = cls("precomputed", **options, **published).fit(K, y)
    made = {"C": 1.0, "alpha": model.alpha} if cls is UFOMKL else {} if cls is OM2 else {"C": 1.0}
    twin, visits, errors = {OM2: TwinOM2, UFOMKL: TwinUFO}.get(cls, TwinBatch), model.visits_, []
    assert visits.dtype == np.uint8
    if cls is OBSCURE:
        first = int(model.history_.query("stage == 'online'").step.max())
        online, visits = TwinOM2(K, y, 3, 1.2, eta=0.5), visits[first:]
        errors = run_twin(online, [model.visits_[:first]])
        made |= {"radius": model.radius_, "A": online.A}
    twin = twin(K, y, 3, 1.2, **made)
    assert_array_equal(model.online_errors_, np.concatenate([errors, run_twin(twin, [visits])]))
    assert_allclose(model.dual_coef_, twin.A[model.support_], atol=1e-9)


def test_online_stage_ends_with_an_epoch_without_loss():
    """A separable stream: after the first quiet epoch the online stage stops (theorem 4.3)."""
    K = np.eye(12)[None] + 0.1
    y = np.arange(12) % 3
    problem = MKLProblem(KernelBank.from_stack(K), y, 3, p=2.0)
    result = solve_obscure(problem, n_epochs_online=200, n_epochs=0, rng=np.random.default_rng(0))
    assert result.n_iter < 100
    assert result.history.n_updates.iloc[-1] == result.history.n_updates.iloc[-2]
    coef, weights = result.dual_coef, result.kernel_weights
    assert plain_losses(class_scores(K, coef, weights), y).max() < 1e-12


def test_om2_keeps_the_given_order_in_the_first_pass_and_permutes_later_ones():
    """As its documentation says of ``shuffle=False``."""
    K, y, _, _ = small_problem(seed=8)
    model = OM2("precomputed", p=1.2, n_epochs=3, random_state=5).fit(K, y)
    rng = np.random.default_rng(5)
    orders = [np.arange(30), rng.permutation(30), rng.permutation(30)]
    twin = TwinOM2(K, y, 3, 1.2)
    assert_array_equal(model.online_errors_, run_twin(twin, orders))
    assert_allclose(model.dual_coef_, twin.A[model.support_], atol=1e-9)


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
    assert_allclose(model.kernel_weights_, 0.25)
    if n_epochs == 1:  # every row is the step of its visit
        assert model.n_updates_ == np.count_nonzero(steps[-1][0].any(axis=1))

    single = KernelPA("precomputed", kernel="k2", C=C, n_epochs=n_epochs, random_state=2).fit(K, y)
    steps = list(twin_passive_aggressive(K[2], y, 4, C, order))
    assert_allclose(single.dual_coef_, steps[-1][0][single.support_], atol=1e-12)
    assert_array_equal(single.kernel_weights_, [0.0, 0.0, 1.0, 0.0])

    weights = rng.choice([0.0, 0.1, 1.0, 2.0], 40)
    steps = list(twin_passive_aggressive(K[2], y, 4, C, order, weights))
    single.fit(K, y, sample_weight=weights)
    assert_allclose(single.dual_coef_, steps[-1][0][single.support_], atol=1e-12)
    assert weights[single.support_].all()
    chosen = KernelPA("precomputed", kernel="best", C=C).fit(K, y, weights)
    assert all(weights[np.concatenate(pair)].all() for pair in chosen.folds_)


# ------------------------------------------------------------------ pieces of the compiled loop


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("sampling", ["permutation", "iid"])
@pytest.mark.parametrize("solver", [solve_om2, solve_obscure, solve_pegasos_mkl, solve_ufo])
def test_kernels_computed_on_demand_give_the_same_run(solver, sampling, dtype):
    """A bank that can hold a few rows only, against the resident one."""
    rng = np.random.default_rng(12)
    n = 150
    y = rng.integers(4, size=n)
    X = rng.normal(size=(n, 9)) + 1.5 * rng.normal(size=(4, 9))[y]
    kernels = [RBF(), Linear(), Poly(), RBF(factor=2.0)]
    cues = [(str(j), kernel, slice(3 * (j % 3), 3 * (j % 3) + 3)) for j, kernel in enumerate(kernels)]
    whole = KernelBank(cues, X, dtype=dtype)
    row_bytes = 4 * n * np.dtype(dtype).itemsize
    settings = {"p": 1.3, "C": 1.0, "alpha": 0.02 if solver is solve_ufo else 0.0}
    special = {solve_om2: {"shuffle": True}, solve_obscure: {"n_epochs_online": 2}}

    def solve(bank, scores="auto"):
        options = {"n_epochs": 4, "sampling": sampling, "scores": scores, **special.get(solver, {})}
        return solver(MKLProblem(bank, y, 4, **settings), rng=np.random.default_rng(0), **options)

    wanted = solve(whole)
    tolerance = 1e-9 if dtype == np.float64 else 2e-4  # a rounding of the kernels, over many updates
    for rows, scores in ((6, "recompute"), (40, "recompute"), (40, "maintain"), (40, "auto")):
        bank = KernelBank(cues, X, dtype=dtype, memory=rows * row_bytes)
        assert not bank.resident
        result = solve(bank, scores)
        assert_array_equal(result.online_errors, wanted.online_errors)
        assert result.n_updates == wanted.n_updates
        assert_allclose(result.dual_coef, wanted.dual_coef, atol=tolerance * np.abs(wanted.dual_coef).max())
        assert_allclose(result.kernel_weights, wanted.kernel_weights, rtol=tolerance)
        assert result.objective == pytest.approx(wanted.objective, rel=tolerance)
        assert result.dual_gap == pytest.approx(wanted.dual_gap, abs=tolerance * wanted.objective)


@pytest.mark.parametrize("major", ["sample", "kernel"])
@pytest.mark.parametrize("route", ROUTES)
def test_either_order_of_the_stack_in_memory(route, major):
    K, y, problem, rng = small_problem(n=40, p=1.1, seed=13)
    if major == "sample":
        stack = np.ascontiguousarray(K.transpose(1, 0, 2)).transpose(1, 0, 2)
        problem = MKLProblem(KernelBank.from_stack(stack), y, 3, p=1.1)
    stream = Stream(problem, scores=route)
    stream.start_stage(visit_om2)
    follow(stream, TwinOM2(K, y, 3, 1.1), rng.integers(40, size=60))


def test_long_runs_do_not_drift():
    """Incremental block norms and maintained scores in float32 stay with the coefficients."""
    K, y, _, _ = small_problem(n=60, n_classes=3, seed=14)
    problem = MKLProblem(KernelBank.from_stack(K.astype(np.float32)), y, 3, p=1.1, C=1.0)
    for route in ROUTES:
        stream = Stream(problem, scores=route)
        stream.start_stage(visit_ufo, averages=True)
        rng = np.random.default_rng(0)
        for _ in range(400):
            stream.visit(rng.permutation(60))
        exact = block_norms(K, stream.dual.coef.T)
        assert_allclose(np.sqrt(stream.dual.norms_sq), exact, rtol=1e-5)
        coef, weights = stream.point()
        scores = class_scores(K, coef, weights)
        assert_allclose(stream.scores_now(coef, weights), scores, atol=1e-4 * np.abs(scores).max())

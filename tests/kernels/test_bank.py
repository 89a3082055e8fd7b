"""The kernel bank."""

import multiprocessing
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import plain_kernels
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_allclose
from plain_kernels import whole_of
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import pairwise
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from cuelearn.core.storage import pack, unpack
from cuelearn.kernels import (
    RBF,
    Chi2,
    ExpDistance,
    FeatureScaleWarning,
    KernelBank,
    Linear,
    Poly,
    Precomputed,
    kernel_values,
    tiles,
)
from cuelearn.kernels import fitted as fitted_module
from cuelearn.mkl import OM2, AverageKernelSVM
from cuelearn.omcl import KernelPerceptron

CLOSE = {"rtol": 0, "atol": 2e-6}  # float32 kernels of unit diagonal

ALL = [
    ("linear", Linear(), slice(0, 10)),
    ("poly", Poly(degree=3), slice(0, 10)),
    ("rbf", RBF(), slice(0, 10)),
    ("wide", RBF(factor=3.0), slice(0, 10)),
    ("euclidean", ExpDistance("euclidean"), slice(10, 20)),
    ("squared", ExpDistance("sqeuclidean", scale=1.5), slice(10, 20)),
    ("cityblock", ExpDistance("cityblock"), slice(10, 20)),
    ("chi2", Chi2(factor=0.5), slice(20, 30)),
    ("chi2-given", ExpDistance("chi2", scale=0.7), slice(20, 30)),
]


@pytest.fixture(scope="module")
def X():
    return np.random.default_rng(0).random((150, 30))


@pytest.fixture(scope="module")
def X_new():
    return np.random.default_rng(1).random((37, 30))


@pytest.fixture(scope="module")
def bank(X):
    return KernelBank(ALL, X)


def on_all(**kernels):
    return [(name, kernel, slice(None)) for name, kernel in kernels.items()]


def frame(X):
    return pd.DataFrame(X, columns=[f"{'cbh'[i // 10]}{i % 10}" for i in range(30)])


def plain_matrix(kernel, train, left, normalize=True):
    if isinstance(kernel, Linear):
        return plain_kernels.plain_kernel("linear", left, train, normalize=normalize)
    if isinstance(kernel, Poly):
        scale = "dim" if kernel.gamma is None else 1 / kernel.gamma
        options = {"scale": scale, "degree": kernel.degree, "coef0": kernel.coef0}
        return plain_kernels.plain_kernel("poly", left, train, normalize=normalize, **options)
    scale = kernel.scale
    if scale == "mean":
        distances = plain_kernels.distances(kernel.quantity, train, train)
        scale = kernel.factor * distances.sum() / (len(train) * (len(train) - 1))
    return plain_kernels.plain_kernel(kernel.quantity, left, train, scale=scale)


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "kernel", [kernel for _, kernel, _ in ALL] + [Poly(1, 0.0, gamma=0.4), Poly(5, 0.3)], ids=str
)
def test_against_plain_formula(kernel, dtype, normalize):
    rng = np.random.default_rng(3)
    X, X_new = rng.random((21, 5)), rng.random((6, 5))
    bank = KernelBank(on_all(k=kernel), X, dtype=dtype, normalize=normalize)
    tolerance = 2e-6 if dtype is np.float32 else 1e-12
    expected = plain_matrix(kernel, X, X, normalize)
    assert_allclose(bank.stack[0], expected, rtol=tolerance, atol=tolerance)
    assert_allclose(bank.diagonal[0], np.diagonal(expected), rtol=1e-12)
    assert_allclose(
        whole_of(bank.cross(X_new))[0],
        plain_matrix(kernel, X, X_new, normalize),
        rtol=tolerance,
        atol=tolerance,
    )


def test_gamma_is_that_of_sklearn(X, X_new):
    cases = [
        (RBF(gamma=0.3), pairwise.rbf_kernel(X_new, X, gamma=0.3)),
        (Chi2(gamma=np.float32(2.0)), pairwise.chi2_kernel(X_new, X, gamma=2.0)),
        (Poly(2, 0.5, gamma=0.3), pairwise.polynomial_kernel(X_new, X, degree=2, gamma=0.3, coef0=0.5)),
    ]
    for kernel, expected in cases:
        bank = KernelBank(on_all(k=kernel), X, normalize=False, dtype=np.float64)
        assert_allclose(whole_of(bank.cross(X_new))[0], expected, rtol=1e-6)
        assert_allclose(kernel_values(kernel, X_new, X), expected, rtol=1e-6)


def test_mean_rule_subsamples_large_sets(X, monkeypatch):
    monkeypatch.setattr(fitted_module, "MEAN_EXACT_LIMIT", 100)
    monkeypatch.setattr(fitted_module, "MEAN_SUBSAMPLE", 50)
    scale = KernelBank(on_all(k=ExpDistance("cityblock")), X).kernels_[0].scale
    chosen = X[np.linspace(0, 149, 50).round().astype(int)]
    assert scale == pytest.approx(pairwise.manhattan_distances(chosen).sum() / (50 * 49), rel=1e-6)


def test_float32_exponential_is_within_1e7():
    distance = np.linspace(0, 100, 4097, dtype=np.float32)[None]
    flat = np.empty(4097, np.float32)
    tiles.exp_into(distance, 1, 4097, np.array([-1], np.float32), np.array([0]), flat, 4097)
    exact = np.exp(-distance[0].astype(float))
    normal = distance[0] <= 87
    assert_allclose(flat[normal], exact[normal], rtol=1e-7)
    assert np.all(flat[~normal] == 0)
    assert flat[0] == 1


@pytest.mark.parametrize("memory", [2e9, 1.0])
def test_diagonal_is_exactly_one_and_zero_vectors_are_zero(X, memory):
    X = X.copy()
    X[[4, 17]] = 0
    bank = KernelBank(on_all(linear=Linear(), poly=Poly(2, 0.0), rbf=RBF()), X, memory=memory)
    expected = np.ones((3, 150))
    expected[:2, [4, 17]] = 0
    assert np.array_equal(bank.diagonal, expected)
    rows = np.stack([bank.rows([i])[:, 0] for i in range(150)], axis=1)
    assert np.array_equal(np.einsum("fii->fi", rows), expected)
    assert not rows[:2, 4].any() and not rows[:2, :, 17].any()
    block = whole_of(bank.cross(np.vstack([np.zeros(30), X[:1]])))
    assert not block[:2, 0].any()
    assert_allclose(block[:, 1, 0], 1, atol=1e-6)


@pytest.mark.parametrize("scale", [1e-140, 1e-3, 1e140])
def test_scale_of_the_columns_does_not_matter(X, scale):
    kernels = on_all(l=Linear(), r=RBF(), e=ExpDistance(), c=Chi2(), p=Poly(3, 0.0))
    assert_allclose(KernelBank(kernels, scale * X).stack, KernelBank(kernels, X).stack, **CLOSE)


def test_far_from_the_origin_distances_keep_their_digits(X):
    kernels = on_all(l=Linear(), r=RBF(), e=ExpDistance())
    near, far = KernelBank(kernels, X), KernelBank(kernels, X + 1000.0)
    assert_allclose(far.stack[1:], near.stack[1:], **CLOSE)


def test_extremes_of_distances_give_no_nan(X):
    doubled = np.vstack([X, X[:20]])
    bank = KernelBank(on_all(r=RBF(), e=ExpDistance(), c=Chi2()), doubled, memory=2e5)
    assert np.all(bank.rows([0])[:, 0, 150] == 1)  # equal samples
    assert np.all(whole_of(bank.cross(X[:20]))[:, np.arange(20), np.arange(20)] == 1)
    stack = KernelBank(on_all(r=RBF(scale=1e-60), w=RBF(scale=1e60)), X).stack
    assert np.array_equal(stack[0], np.eye(150)) and np.all(stack[1] == 1)
    constant = [("r", RBF(), [0]), ("c", Chi2(), [0]), ("l", Linear(), [1])]
    bank = KernelBank(constant, np.tile([3.0, 0.0], (5, 1)))
    assert bank.kernels_[:2] == [RBF(scale=1.0), Chi2(scale=1.0)]
    assert np.all(bank.stack[:2] == 1) and not bank.stack[2].any()
    assert KernelBank(None, [[1.0, 2.0]]).stack.tolist() == [[[1.0]]]


# --- one bank, several forms


def banks_of(kernels, X):
    """Resident, with kept distances, computed on demand."""
    n = len(X)
    resident = KernelBank(kernels, X)
    kept = KernelBank(kernels, X, memory=4 * n * n * len(kernels) - 1)
    demand = KernelBank(kernels, X, memory=1e5)
    assert resident.resident and not kept.resident and not demand.resident
    assert kept._store.shared and not demand._store.shared
    return resident, kept, demand


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_on_demand_equals_resident(X, dtype):
    X = np.random.default_rng(2).random((333, 30))
    extra = [(f"r{g}", RBF(scale=float(g)), slice(0, 10)) for g in range(1, 5)]
    n = len(X)
    size = np.dtype(dtype).itemsize
    resident = KernelBank(ALL + extra, X, dtype=dtype)
    stack = resident.stack
    assert stack.transpose(1, 0, 2).flags.c_contiguous and stack.shape == (13, n, n) and stack.dtype == dtype
    assert np.array_equal(stack, stack.transpose(0, 2, 1))
    subset = np.random.default_rng(0).permutation(n)[:70]
    assert np.shares_memory(resident.rows(slice(3, 9)), stack)
    for memory in (size * n * n * 13 - 1, size * n * 13 * 100):
        other = KernelBank(ALL + extra, X, memory=memory, dtype=dtype)
        assert not other.resident and other.stack is None
        assert other.kernels_ == resident.kernels_
        assert np.array_equal(other.diagonal, resident.diagonal)
        for indices in (subset, slice(5, 40, 3), np.arange(n) == 8, [-1], []):
            assert_allclose(other.rows(indices), resident.rows(indices), atol=1e-6, rtol=0)
    assert_allclose(whole_of(resident.cross(X[:20])), stack[:, :20], **CLOSE)


def test_rows_into_a_part_of_a_larger_array(X):
    resident, kept, demand = banks_of(ALL, X)
    expected = resident.rows(slice(0, 7))
    for bank in (resident, kept, demand):
        outer = np.full((12, 9, 340), -7.0, np.float32)
        out = outer[2:9, ::-1, 20:320:2].transpose(1, 0, 2)
        assert bank.rows_into(np.arange(7), out) is out
        assert_allclose(out, expected, atol=1e-6, rtol=0)
        out[:] = -7
        assert np.all(outer == -7)


@pytest.mark.parametrize("memory", [2e9, 3e5, 1e5])
def test_bits_do_not_depend_on_threads(memory):
    X = np.random.default_rng(5).random((733, 401), dtype=np.float32)
    X_new = np.random.default_rng(6).random((301, 401), dtype=np.float32)
    kernels = on_all(l=Linear(), p=Poly(), r=RBF())
    for name, kernel in {"e": ExpDistance(), "c": ExpDistance("cityblock"), "h": Chi2()}.items():
        kernels.append((name, kernel, slice(0, 37)))
    results = []
    for threads in (1, 2):
        with threadpool_limits(threads, "blas"):
            bank = KernelBank(kernels, X, memory=memory)
            blocks = [block.copy() for _, block in bank.cross(X_new).blocks(memory=4e6)]
            rows = bank.rows(slice(0, bank.block_rows()))
            results.append((bank.kernels_, rows, np.concatenate(blocks, axis=1)))
    (kernels, rows, new), (kernels_2, rows_2, new_2) = results
    assert kernels == kernels_2 and np.array_equal(rows, rows_2) and np.array_equal(new, new_2)


def test_concurrent_callers_and_forked_children(X):
    X = np.tile(X, (4, 1)) + np.arange(600)[:, None] / 600
    bank = KernelBank(ALL, X, memory=1e6)
    expected = bank.rows(slice(0, 20))
    with threadpool_limits(2, "blas"), ThreadPoolExecutor(4) as pool:
        for rows in pool.map(lambda _: bank.rows(slice(0, 20)), range(12)):
            assert np.array_equal(rows, expected)
    if "fork" not in multiprocessing.get_all_start_methods():
        return
    with warnings.catch_warnings():  # newer Pythons warn of forks beside threads
        warnings.simplefilter("ignore", DeprecationWarning)
        with multiprocessing.get_context("fork").Pool(1) as pool:
            rows = pool.apply_async(bank.rows, (slice(0, 20),)).get(timeout=60)
    assert np.array_equal(rows, expected)


def count_tiles(monkeypatch):
    seen = []
    original = tiles.Pair.base

    def counted(pair, root, tile):
        seen.append(root.kind)
        return original(pair, root, tile)

    monkeypatch.setattr(tiles.Pair, "base", counted)
    return seen


def test_one_product_and_many_scales_are_shared(X, monkeypatch):
    kinds = {"l": Linear(), "p": Poly(), "r": RBF(), "q": Poly(3), "e": ExpDistance("sqeuclidean")}
    kernels = [(f"{k}{c}", kinds[k], slice(10 * c, 10 * c + 10)) for c in range(3) for k in kinds]
    bank = KernelBank(kernels, X, memory=1e5)
    seen = count_tiles(monkeypatch)
    bank.rows(slice(0, 10))
    assert seen == ["product"] * 3
    kernels = [
        (f"{c}-{g}", RBF(factor=2.0**g), slice(10 * c, 10 * c + 10)) for c in range(3) for g in range(9)
    ]
    kernels += [(f"h{g}", Chi2(scale=2.0**g), slice(0, 10)) for g in range(5)]
    seen.clear()
    kept = KernelBank(kernels, X, memory=1e6)
    assert len(seen) == 4  # n = 150 is one tile
    kept.rows(slice(0, 10))
    assert len(seen) == 4  # only exponentials are left
    demand = KernelBank(kernels, X, memory=5e5)
    seen.clear()
    demand.rows(slice(0, 10))
    assert len(seen) == 4


def test_cross_computes_only_what_is_asked(X, X_new, bank, monkeypatch):
    whole = whole_of(bank.cross(X_new))
    support = np.array([3, 140, 7, 7])
    seen = count_tiles(monkeypatch)
    block = whole_of(bank.cross(X_new, kernels=[7, 2], support=support))
    assert sorted(seen) == ["chi2", "product"]
    assert_allclose(block, whole[[7, 2]][:, :, support], **CLOSE)
    # columns of kernels that are not asked for are not even looked at
    broken = X_new.copy()
    broken[:, 10:20] = np.nan
    assert np.array_equal(whole_of(bank.cross(broken, kernels=[7, 2], support=support)), block)


def test_blocks_respect_memory(X_new, bank):
    cross = bank.cross(X_new)
    whole = whole_of(cross)
    row = 9 * 150 * 4
    for reuse, size in [(True, 10), (False, 5)]:
        starts = []
        for rows, block in cross.blocks(memory=10 * row, reuse=reuse):
            assert_allclose(block, whole[:, rows], atol=1e-6, rtol=0)
            starts.append(rows.start)
        assert starts == list(range(0, 37, size))
    demand = KernelBank(ALL, np.random.default_rng(0).random((150, 30)), memory=10.5 * row)
    assert demand.block_rows() == 10 and demand.block_rows(0) == 1
    with pytest.raises(ValueError, match="10 fit the bank's memory"):
        demand.rows(slice(0, 11))
    assert list(bank.cross(X_new[:0]).blocks()) == []


def test_columns_in_every_form(X, X_new):
    """Also by functions: tests/common."""
    X_frame = frame(X)
    mask = np.isin(np.arange(30), np.arange(10, 20))
    expected = KernelBank([("k", RBF(), slice(10, 20))], X).stack
    for columns in (range(10, 20), list(range(-20, -10)), slice(-20, -10), mask.tolist(), slice("b0", "b9")):
        assert np.array_equal(KernelBank([("k", RBF(), columns)], X_frame).stack, expected)
    # new samples: by name whatever the order, by place when they come without names
    bank = KernelBank([("k", RBF(), slice("b0", "b9")), ("c", Chi2(), slice("h0", None))], X_frame)
    shuffled = frame(X_new).assign(text="ignored").iloc[:, ::-1]
    assert np.array_equal(whole_of(bank.cross(X_new)), whole_of(bank.cross(shuffled)))
    with pytest.raises(ValueError, match="'k': column 'b3' is not in X"):
        bank.cross(frame(X_new).drop(columns="b3"))


def test_subsets_keep_scales_and_share(X, X_new):
    some = np.random.default_rng(0).permutation(150)[:61]
    whole = whole_of(KernelBank(ALL, X).cross(X_new))
    for bank in banks_of(ALL, X):
        small = bank.restrict(some)
        assert small.n_samples == 61 and small.kernels_ == bank.kernels_ and small.resident == bank.resident
        every = np.concatenate([small.rows(slice(s, min(s + 10, 61))) for s in range(0, 61, 10)], axis=1)
        expected = np.concatenate([bank.rows([i]) for i in some], axis=1)[:, :, some]
        assert_allclose(every, expected, atol=1e-6, rtol=0)
        assert np.array_equal(small.diagonal, bank.diagonal[:, some])
        assert_allclose(whole_of(small.cross(X_new)), whole[:, :, some], atol=1e-6, rtol=0)
        assert not bank.restrict(some, resident=False).resident
        assert bank.restrict(slice(0, 20), resident=True).resident
        for chosen in ([8, 0, 4], np.arange(9) > 6):
            part, index = bank.select(chosen), np.arange(9)[chosen]
            assert_allclose(part.rows([4, 9]), bank.rows([4, 9])[index], atol=1e-6, rtol=0)
            assert np.array_equal(part.diagonal, bank.diagonal[index])
            assert_allclose(whole_of(part.cross(X_new)), whole[index], atol=1e-6, rtol=0)
    resident, kept, _ = banks_of(ALL, X)
    assert np.shares_memory(resident.select([1, 2]).stack, resident.stack)
    assert all(
        any(d is e for e in kept._store.shared.values()) for d in kept.select([4, 7])._store.shared.values()
    )


# --- precomputed


def test_from_stack(bank):
    K = bank.stack
    stack = KernelBank.from_stack(K)
    assert stack.stack is K and stack.resident and stack.names == [f"k{f}" for f in range(9)]
    assert np.array_equal(stack.diagonal, bank.diagonal)
    part = whole_of(stack.cross(K[:, :20], kernels=[3, 1], support=[5, 6, 9]))
    assert np.array_equal(part, K[[3, 1], :20][:, :, [5, 6, 9]])
    block = whole_of(stack.restrict([7, 3, 20]).cross(K[:, 50:60][:, :, [7, 3, 20]].astype(np.float64)))
    assert block.dtype == np.float32 and np.array_equal(block, K[:, 50:60][:, :, [7, 3, 20]])


def test_validation_of_a_stack_finds_every_entry():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((2, 300, 300))
    K = A @ A.transpose(0, 2, 1)
    K = (K + K.transpose(0, 2, 1)) / 2
    KernelBank.from_stack(K)

    def refused(f, i, j, value, message):
        broken = K.copy()
        broken[f, i, j] = value
        with pytest.raises(ValueError, match=f"'k{f}' of the stack {message}"):
            KernelBank.from_stack(broken)

    for _ in range(6):
        f, i, j = rng.integers(2), rng.integers(150), rng.integers(150, 300)
        refused(f, [i, j], [j, i], np.nan, "holds NaN or infinite")
        refused(f, i, i, -0.5, "must have a non-negative diagonal, got -0.5")
        refused(f, i, j, K[f, i, j] + 1e-3 * np.abs(K).max(), "must be symmetric")


def test_precomputed_columns(X, X_new):
    def wide(A):
        return np.hstack([A, A @ X.T, plain_kernels.distances("chi2", A[:, 20:], X[:, 20:])])

    kernels = [
        ("given", Precomputed(), slice(30, 180)),
        ("distance", ExpDistance("precomputed"), slice(180, 330)),
        ("chi2", Chi2(), slice(20, 30)),
    ]
    for memory in (2e9, 1e5):
        bank = KernelBank(kernels, wide(X), memory=memory)
        rows, block = bank.rows(slice(0, 9)), whole_of(bank.cross(wide(X_new)))
        for values, samples in ((rows, X[:9]), (block, X_new)):
            assert_allclose(values[0], samples @ X.T, rtol=1e-6)
            assert_allclose(values[1], values[2], **CLOSE)
        assert_allclose(bank.diagonal[0], (X**2).sum(axis=1), rtol=1e-6)
        small = bank.restrict([3, 100, 50])
        assert_allclose(small.rows([1])[:, 0], bank.rows([100])[:, 0, [3, 100, 50]], atol=1e-6)
        part = whole_of(unpack(*pack(small)).restrict([1]).cross(wide(X_new)))
        assert_allclose(part, block[:, :, [100]], atol=1e-6)


def test_save_and_load(X, X_new):
    """With the columns' names, and a given stack without itself; tests/common saves all estimators."""
    small = KernelBank(ALL, X, memory=1e5).select([8, 0, 4, 1, 6]).restrict(np.arange(0, 150, 2))
    again = unpack(*pack(small))
    assert (again.names, again.kernels_, again.memory) == (small.names, small.kernels_, small.memory)
    assert np.array_equal(again.rows([3, 5]), small.rows([3, 5]))
    named = KernelBank([("k", RBF(), slice("b0", "b9"))], frame(X))
    again = unpack(*pack(named))
    assert np.array_equal(whole_of(again.cross(frame(X_new).iloc[:, ::-1])), whole_of(named.cross(X_new)))
    light = unpack(*pack(KernelBank.from_stack(named.stack)))
    assert np.array_equal(whole_of(light.cross(named.stack[:, :3])), named.stack[:, :3])
    with pytest.raises(ValueError, match="saved without its stack"):
        light.rows([0])


def scale_warnings(fit):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit()
    return [str(w.message) for w in caught if w.category is FeatureScaleWarning]


def test_columns_of_different_units_warn_once():
    cancer, y = (part[:90] for part in load_breast_cancer(return_X_y=True))
    for model in (AverageKernelSVM(), KernelPerceptron(RBF(gamma=0.1))):
        (message,) = scale_warnings(lambda model=model: model.fit(cancer, y))
        assert "make_pipeline(StandardScaler(), model)" in message
        assert ("columns of the kernel differ" in message) == isinstance(model, KernelPerceptron)
        assert not scale_warnings(lambda model=model: make_pipeline(StandardScaler(), model).fit(cancer, y))
    stream = OM2()
    assert scale_warnings(lambda: stream.partial_fit(cancer[:60], y[:60], classes=[0, 1]))
    assert not scale_warnings(lambda: stream.partial_fit(cancer[60:], y[60:]))
    histograms = np.random.default_rng(0).poisson(10.0 ** np.linspace(2, -4, 60), (200, 60))
    assert not scale_warnings(lambda: KernelBank(None, histograms, memory=0))
    assert not scale_warnings(lambda: KernelBank(on_all(products=Linear()), cancer))


def one_of(kernel, columns=slice(None)):
    return lambda X: KernelBank([("a", kernel, columns)], X)


@pytest.mark.parametrize(
    "message, make",
    [
        ("Chi2: give gamma or scale, got gamma=2.0 and scale=3.0", lambda X: Chi2(gamma=2.0, scale=3.0)),
        ("factor multiplies scale='mean' only", lambda X: RBF(scale=2.0, factor=3.0)),
        ("Poly: degree must be", lambda X: Poly(degree=0)),
        ("ExpDistance: metric must be", lambda X: ExpDistance("cosine")),
        ("cue 'a': column 'red' is not in X", lambda X: one_of(RBF(), "red")(frame(X))),
        ("cue 'a': columns must .* from -30 to 29, got 30", one_of(RBF(), [0, 30])),
        ("cue 'a': columns must select at least one", one_of(RBF(), [])),
        ("more than once", lambda X: one_of(RBF(), "x")(pd.DataFrame(np.ones((3, 2)), columns=["x", "x"]))),
        ("names must be unique", lambda X: KernelBank([("a", RBF(), [0]), ("a", RBF(), [1])], X)),
        (r"cue 'a'.*square.*\(150, 30\)", one_of(Precomputed())),
        ("non-negative", lambda X: one_of(ExpDistance("precomputed"))(np.eye(4) - 1)),
        ("indices must be .* from -150 to 149", lambda X: KernelBank(None, X).rows([150])),
        ("X_new has 29 columns", lambda X: KernelBank(None, X).cross(X[:, :29])),
        (r"\(1, rows, 3\)", lambda X: KernelBank.from_stack(np.eye(3)).cross(np.ones((1, 2, 4)))),
        ("at most once", lambda X: KernelBank.from_stack(np.eye(3)).select([0, 0])),
    ],
)
def test_errors(X, message, make):
    with pytest.raises(ValueError, match=message):
        make(X)


@settings(max_examples=60, deadline=None)
@given(
    X=hnp.arrays(
        np.float64,
        st.tuples(st.integers(1, 12), st.integers(1, 6)),
        elements=st.one_of(st.just(0.0), st.floats(1e-100, 1e3), st.sampled_from([1.0, 2.0, 1e-6, 1e6])),
    ),
    dtype=st.sampled_from([np.float32, np.float64]),
)
def test_kernels_are_positive_semidefinite(X, dtype):
    products = on_all(linear=Linear(), poly=Poly(3), flat=Poly(2, 0.0))
    distances = on_all(rbf=RBF(), euclidean=ExpDistance(), cityblock=ExpDistance("cityblock"), chi2=Chi2())
    bank = KernelBank(products + distances, X, dtype=dtype)
    assert np.isfinite(bank.stack).all()
    assert np.array_equal(bank.stack, bank.stack.transpose(0, 2, 1))
    assert np.array_equal(np.einsum("fii->fi", bank.stack), bank.diagonal)
    assert set(np.unique(bank.diagonal)) <= {0.0, 1.0} and np.all(bank.diagonal[3:] == 1)
    norms = np.linalg.norm(X / max(np.abs(X).max(), 1e-100), axis=1)
    assert np.all(bank.diagonal[0][norms > 2e-15] == 1) and np.all(bank.diagonal[0][norms < 5e-16] == 0)
    assert np.linalg.eigvalsh(bank.stack.astype(np.float64)).min() >= -1e-5
    assert np.abs(bank.stack).max() <= 1 + 1e-5

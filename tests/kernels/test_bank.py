"""The kernel bank against plain formulas, scikit-learn's pairwise kernels and itself in its other forms."""

import copy
import multiprocessing
import pickle
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.compose import make_column_selector
from sklearn.datasets import load_breast_cancer, load_digits
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
from cuelearn.kernels import bank as bank_module
from cuelearn.mkl import OM2, AverageKernelSVM
from cuelearn.oks import OKS, SelectedSVM
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
    """Triples of kernels on all columns."""
    return [(name, kernel, slice(None)) for name, kernel in kernels.items()]


def whole_of(cross):
    """All blocks of a CrossBank in one array."""
    return np.concatenate([block for _, block in cross.blocks()], axis=1)


# ------------------------------------------------------------------ the slow twin


def plain_distance(metric, x, z):
    if metric == "chi2":
        top, bottom = (x - z) ** 2, x + z
        return sum(t / b for t, b in zip(top, bottom, strict=False) if b > 0)
    if metric == "cityblock":
        return np.abs(x - z).sum()
    squared = ((x - z) ** 2).sum()
    return squared if metric == "sqeuclidean" else np.sqrt(squared)


def plain_kernel(kernel, train, x, z):
    """One value of a kernel that is not normalised, straight from its formula."""
    if isinstance(kernel, Linear):
        return x @ z
    if isinstance(kernel, Poly):
        gamma = 1 / len(x) if kernel.gamma is None else kernel.gamma
        return (x @ z * gamma + kernel.coef0) ** kernel.degree
    metric = {RBF: "sqeuclidean", Chi2: "chi2"}.get(type(kernel)) or kernel.metric
    scale = kernel.scale if kernel.gamma is None else 1 / kernel.gamma
    if scale == "mean":
        n = len(train)
        pairs = [plain_distance(metric, train[i], train[j]) for i in range(n) for j in range(n) if i != j]
        scale = kernel.factor * np.mean(pairs)
    return np.exp(-plain_distance(metric, x, z) / scale)


def plain_matrix(kernel, train, left, normalize=True):
    out = np.empty((len(left), len(train)))
    fixed = kernel
    if kernel.unresolved:  # once, not for every entry
        metric = {RBF: "sqeuclidean", Chi2: "chi2"}.get(type(kernel)) or kernel.metric
        probe = ExpDistance(metric, factor=kernel.factor)
        value = plain_kernel(probe, train, train[0], train[1])
        fixed = ExpDistance(metric, scale=-plain_distance(metric, train[0], train[1]) / np.log(value))
    for i, x in enumerate(left):
        for j, z in enumerate(train):
            value = plain_kernel(fixed, train, x, z)
            if normalize:
                own = plain_kernel(fixed, train, x, x) * plain_kernel(fixed, train, z, z)
                value = value / np.sqrt(own) if own > 0 else 0.0
            out[i, j] = value
    return out


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
    ((rows, block),) = bank.cross(X_new).blocks()
    assert rows == slice(0, 6) and block.dtype == dtype
    assert_allclose(block[0], plain_matrix(kernel, X, X_new, normalize), rtol=tolerance, atol=tolerance)


def test_gamma_is_that_of_sklearn(X, X_new):
    cases = [
        (RBF(gamma=0.3), pairwise.rbf_kernel(X_new, X, gamma=0.3)),
        (Chi2(gamma=np.float32(2.0)), pairwise.chi2_kernel(X_new, X, gamma=2.0)),
        (ExpDistance("cityblock", gamma=1), pairwise.laplacian_kernel(X_new, X, gamma=1)),
        (ExpDistance("chi2", gamma=0.5), pairwise.chi2_kernel(X_new, X, gamma=0.5)),
        (Poly(2, 0.5, gamma=0.3), pairwise.polynomial_kernel(X_new, X, degree=2, gamma=0.3, coef0=0.5)),
        (Poly(3), pairwise.polynomial_kernel(X_new, X, degree=3)),
    ]
    for kernel, expected in cases:
        bank = KernelBank(on_all(k=kernel), X, normalize=False, dtype=np.float64)
        ((_, block),) = bank.cross(X_new).blocks()
        assert_allclose(block[0], expected, rtol=1e-6)
        assert_allclose(kernel_values(kernel, X_new, X), expected, rtol=1e-6)
        assert bank.kernels_ == [kernel] and not kernel.unresolved


def test_mean_rule_is_the_mean_over_pairs(X, bank):
    off = ~np.eye(len(X), dtype=bool)
    cases = {
        "rbf": pairwise.euclidean_distances(X[:, :10], squared=True),
        "euclidean": pairwise.euclidean_distances(X[:, 10:20]),
        "cityblock": pairwise.manhattan_distances(X[:, 10:20]),
        "chi2": -pairwise.additive_chi2_kernel(X[:, 20:]) * 0.5,
    }
    for name, distances in cases.items():
        scale = bank.kernels_[bank.names.index(name)].scale
        assert scale == pytest.approx(distances[off].mean(), rel=1e-6), name
    assert bank.kernels_[3].scale == pytest.approx(3 * bank.kernels_[2].scale)


def test_mean_rule_subsamples_large_sets(X, monkeypatch):
    exact = KernelBank(on_all(k=ExpDistance("cityblock")), X).kernels_[0].scale
    monkeypatch.setattr(bank_module, "MEAN_EXACT_LIMIT", 100)
    monkeypatch.setattr(bank_module, "MEAN_SUBSAMPLE", 50)
    scale = KernelBank(on_all(k=ExpDistance("cityblock")), X).kernels_[0].scale
    chosen = X[np.linspace(0, 149, 50).round().astype(int)]
    assert scale == pytest.approx(pairwise.manhattan_distances(chosen).sum() / (50 * 49), rel=1e-6)
    assert scale == pytest.approx(exact, rel=0.05)


# ------------------------------------------------------------------ the exponential


def test_float32_exponential_is_within_1e7(X):
    distance = np.linspace(0, 100, 4097, dtype=np.float32)[None]
    flat = np.empty(4097, np.float32)
    tiles.exp_into(distance, 1, 4097, np.array([-1], np.float32), np.array([0]), flat, 4097)
    exact = np.exp(-distance[0].astype(float))
    normal = distance[0] <= 87
    assert_allclose(flat[normal], exact[normal], rtol=1e-7)
    assert np.all(flat[~normal] == 0)
    assert flat[0] == 1


# ------------------------------------------------------------------ normalisation, zero vectors


@pytest.mark.parametrize("memory", [2e9, 1.0])
def test_diagonal_is_exactly_one_and_zero_vectors_are_zero(X, memory):
    X = X.copy()
    X[[4, 17]] = 0
    bank = KernelBank(on_all(linear=Linear(), poly=Poly(2, 0.0), rbf=RBF()), X, memory=memory)
    expected = np.ones((3, 150))
    expected[:2, [4, 17]] = 0
    assert np.array_equal(bank.diagonal, expected)
    rows = np.stack([bank.rows([i])[:, 0] for i in range(150)], axis=1)
    assert np.isfinite(rows).all()
    assert np.array_equal(np.einsum("fii->fi", rows), expected)
    assert not rows[:2, 4].any() and not rows[:2, :, 17].any()
    block = bank.cross(np.vstack([np.zeros(30), X[:1]])).rows_into(
        slice(0, 2), np.empty((3, 2, 150), np.float32)
    )
    assert np.isfinite(block).all() and not block[:2, 0].any()
    assert_allclose(block[:, 1, 0], 1, atol=1e-6)


def test_unnormalised_keeps_the_real_diagonal(X):
    bank = KernelBank(
        [("l", Linear(), [0, 1]), ("p", Poly(2, 1.0, gamma=1.0), [0, 1])], 100 * X, normalize=False
    )
    own = (1e4 * X[:, :2] ** 2).sum(axis=1)
    assert_allclose(bank.diagonal, [own, (own + 1) ** 2], rtol=1e-12)
    assert np.array_equal(np.einsum("fii->fi", bank.stack), bank.diagonal.astype(np.float32))


@pytest.mark.parametrize("scale", [1e-140, 1e-25, 1e-3, 1e12, 1e30, 1e140])
def test_scale_of_the_columns_does_not_matter(X, scale):
    kernels = on_all(l=Linear(), r=RBF(), e=ExpDistance(), c=Chi2(), p=Poly(3, 0.0))
    assert_allclose(KernelBank(kernels, scale * X).stack, KernelBank(kernels, X).stack, **CLOSE)


def test_far_from_the_origin_distances_keep_their_digits(X):
    kernels = on_all(l=Linear(), r=RBF(), e=ExpDistance())
    near, far = KernelBank(kernels, X), KernelBank(kernels, X + 1000.0)
    assert near.bases == [("l", "product")]
    assert far.bases == [("l", "product"), ("l", "sqeuclidean")]
    assert_allclose(far.stack[1:], near.stack[1:], **CLOSE)


def test_equal_samples_have_kernel_one(X):
    doubled = np.vstack([X, X[:20]])
    bank = KernelBank(on_all(r=RBF(), e=ExpDistance(), c=Chi2()), doubled, memory=2e5)
    assert np.all(bank.rows([0])[:, 0, 150] == 1)
    block = whole_of(bank.cross(X[:20]))
    assert np.all(block[:, np.arange(20), np.arange(20)] == 1)


def test_constant_cue_and_single_sample():
    bank = KernelBank(
        [("r", RBF(), [0]), ("c", Chi2(), [0]), ("l", Linear(), [1])], np.tile([3.0, 0.0], (5, 1))
    )
    assert bank.kernels_[:2] == [RBF(scale=1.0), Chi2(scale=1.0)]
    assert np.all(bank.stack[:2] == 1) and not bank.stack[2].any()
    assert KernelBank(None, [[1.0, 2.0]]).stack.tolist() == [[[1.0]]]


def test_tiny_scale_and_huge_distance_give_no_nan(X):
    stack = KernelBank(on_all(r=RBF(scale=1e-60), w=RBF(scale=1e60)), X).stack
    assert np.array_equal(stack[0], np.eye(150)) and np.all(stack[1] == 1)


# ------------------------------------------------------------------ one bank, several forms


def banks_of(kernels, X):
    """Resident, with kept distances, computed on demand."""
    n = len(X)
    resident = KernelBank(kernels, X)
    kept = KernelBank(kernels, X, memory=4 * n * n * len(kernels) - 1)
    demand = KernelBank(kernels, X, memory=1e5)
    assert resident.resident and not kept.resident and not demand.resident
    assert kept._stored and not demand._stored
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
    some = np.random.default_rng(0).permutation(n)[:70]
    assert np.array_equal(resident.rows(some), stack[:, some])
    assert np.shares_memory(resident.rows(slice(3, 9)), stack)
    for memory in (size * n * n * 13 - 1, size * n * 13 * 100):
        other = KernelBank(ALL + extra, X, memory=memory, dtype=dtype)
        assert not other.resident and other.stack is None
        assert bool(other._stored) == (memory > size * n * n * 12)
        assert other.kernels_ == resident.kernels_
        assert np.array_equal(other.diagonal, resident.diagonal)
        for indices in (some, slice(5, 40, 3), np.arange(n) == 8, [0], [-1], []):
            assert_allclose(other.rows(indices), resident.rows(indices), atol=1e-6, rtol=0)
    cross = whole_of(resident.cross(X[:20]))
    assert_allclose(cross, stack[:, :20], **CLOSE)


def test_rows_into_any_layout(X):
    resident, kept, demand = banks_of(ALL, X)
    expected = resident.rows(slice(0, 7))
    layouts = {
        "own": np.empty((9, 7, 150), np.float32),
        "slice": np.empty((9, 20, 150), np.float32)[:, 4:11],
        "rows first": np.empty((12, 9, 150), np.float32)[2:9].transpose(1, 0, 2),
        "columns": np.empty((9, 7, 200), np.float32)[:, :, 9:159],
        "stepped": np.empty((9, 7, 300), np.float32)[:, :, ::2],
        "reversed": np.empty((9, 7, 150), np.float32)[:, ::-1],
    }
    for bank in (resident, kept, demand):
        for name, out in layouts.items():
            out.fill(np.nan)
            assert bank.rows_into(np.arange(7), out) is out
            assert_allclose(out, expected, atol=1e-6, rtol=0, err_msg=name)
        outer = np.full((9, 9, 170), -7.0, np.float32)
        bank.rows_into([3, 1, 2], outer[:, 2:5, 10:160])
        outer[:, 2:5, 10:160] = -7
        assert np.all(outer == -7)  # its surroundings are left alone


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
            results.append(
                (bank.kernels_, bank.rows(slice(0, bank.block_rows())), np.concatenate(blocks, axis=1))
            )
    assert results[0][0] == results[1][0]
    assert np.array_equal(results[0][1], results[1][1])
    assert np.array_equal(results[0][2], results[1][2])


def test_blas_threads_are_restored_after_an_error(X, monkeypatch):
    from threadpoolctl import threadpool_info

    def blas():
        return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]

    def fail(*arguments):
        raise RuntimeError("on purpose")

    before = blas()
    bank = KernelBank(ALL, np.tile(X, (4, 1)), memory=1e6)
    monkeypatch.setattr(tiles.Pair, "base", fail)
    with pytest.raises(RuntimeError, match="on purpose"):
        bank.rows(slice(0, 20))
    assert blas() == before


def test_concurrent_callers_and_forked_children(X):
    X = np.tile(X, (4, 1)) + np.arange(600)[:, None] / 600
    bank = KernelBank(ALL, X, memory=1e6)
    expected = bank.rows(slice(0, 20))
    with threadpool_limits(2, "blas"), ThreadPoolExecutor(4) as pool:
        for rows in pool.map(lambda _: bank.rows(slice(0, 20)), range(12)):
            assert np.array_equal(rows, expected)
        assert np.array_equal(bank.rows(slice(0, 20)), expected)
    if "fork" not in multiprocessing.get_all_start_methods():
        return
    with warnings.catch_warnings():  # newer Pythons warn of forks beside threads
        warnings.simplefilter("ignore", DeprecationWarning)
        with multiprocessing.get_context("fork").Pool(1) as pool:
            rows = pool.apply_async(bank.rows, (slice(0, 20),)).get(timeout=60)
    assert np.array_equal(rows, expected)


# ------------------------------------------------------------------ sharing


def count_tiles(monkeypatch):
    seen = []
    original = tiles.Pair.base

    def counted(pair, root, tile):
        seen.append(root.kind)
        return original(pair, root, tile)

    monkeypatch.setattr(tiles.Pair, "base", counted)
    return seen


def test_one_product_serves_linear_poly_and_rbf(X, monkeypatch):
    kinds = {"l": Linear(), "p": Poly(), "r": RBF(), "q": Poly(3), "e": ExpDistance("sqeuclidean")}
    kernels = [(f"{k}{c}", kinds[k], slice(10 * c, 10 * c + 10)) for c in range(3) for k in kinds]
    bank = KernelBank(kernels, X, memory=1e5)
    assert bank.bases == [("l0", "product"), ("l1", "product"), ("l2", "product")]
    seen = count_tiles(monkeypatch)
    bank.rows(slice(0, 10))
    assert seen == ["product"] * 3


def test_many_scales_share_a_distance(X, monkeypatch):
    kernels = [
        (f"{c}-{g}", RBF(factor=2.0**g), slice(10 * c, 10 * c + 10)) for c in range(3) for g in range(-5, 5)
    ]
    kernels += [(f"h{g}", Chi2(scale=2.0**g), slice(0, 10)) for g in range(5)]
    seen = count_tiles(monkeypatch)
    kept = KernelBank(kernels, X, memory=1e6)
    assert len(kept.bases) == 4 and sorted(set(seen)) == ["chi2", "sqeuclidean"]
    assert len(seen) == 4  # n = 150 is one tile
    assert sum(d.nbytes for d in kept._stored.values()) == 4 * 4 * 150**2
    seen.clear()
    kept.rows(slice(0, 10))
    assert seen == []  # only exponentials are left
    demand = KernelBank(kernels, X, memory=5e5)
    seen.clear()
    demand.rows(slice(0, 10))
    assert len(seen) == 4


def test_cross_computes_only_what_is_asked(X, X_new, bank, monkeypatch):
    whole = whole_of(bank.cross(X_new))
    support = np.array([3, 140, 7, 7])
    seen = count_tiles(monkeypatch)
    part = bank.cross(X_new, kernels=[7, 2], support=support)
    assert (part.n_rows, part.n_kernels, part.n_columns) == (37, 2, 4)
    block = whole_of(part)
    assert sorted(seen) == ["chi2", "product"]
    assert_allclose(block, whole[[7, 2]][:, :, support], **CLOSE)
    # columns of kernels that are not asked for are not even looked at
    broken = X_new.copy()
    broken[:, 10:20] = np.nan
    again = whole_of(bank.cross(broken, kernels=[7, 2], support=support))
    assert np.array_equal(again, block)
    with pytest.raises(ValueError, match="'euclidean'.*NaN"):
        bank.cross(broken)


def test_blocks_respect_memory(X_new, bank):
    cross = bank.cross(X_new)
    whole = whole_of(cross)
    row = 9 * 150 * 4
    for reuse, size in [(True, 10), (False, 5)]:
        out = np.empty_like(whole)
        starts = []
        for rows, block in cross.blocks(memory=10 * row, reuse=reuse):
            assert block.shape == (9, rows.stop - rows.start, 150) and block.shape[1] <= size
            out[:, rows] = block
            starts.append(rows.start)
        assert starts == list(range(0, 37, size))
        assert_allclose(out, whole, atol=1e-6, rtol=0)
    assert cross.block_rows(1) == 1 and cross.block_rows(1e9) == 37
    demand = KernelBank(ALL, np.random.default_rng(0).random((150, 30)), memory=10.5 * row)
    assert demand.block_rows() == 10 and demand.block_rows(3 * row) == 3 and demand.block_rows(0) == 1
    with pytest.raises(ValueError, match="10 fit the bank's memory"):
        demand.rows(slice(0, 11))
    assert list(bank.cross(X_new[:0]).blocks()) == []


# ------------------------------------------------------------------ columns


def frame(X):
    return pd.DataFrame(X, columns=[f"{'cbh'[i // 10]}{i % 10}" for i in range(30)])


def test_columns_in_every_form(X, X_new):
    X_frame = frame(X)
    mask = np.isin(np.arange(30), np.arange(10, 20))
    expected = KernelBank([("k", RBF(), slice(10, 20))], X).stack
    numbers = [range(10, 20), list(range(10, 20)), np.arange(10, 20), list(range(-20, -10)), slice(-20, -10)]
    words = [f"b{i}" for i in range(10)]
    names = [slice("b0", "b9"), words, pd.Index(words)]
    for columns in [*numbers, *names, make_column_selector(pattern="^b"), mask, mask.tolist()]:
        assert np.array_equal(KernelBank([("k", RBF(), columns)], X_frame).stack, expected)
    for columns in (4, "b4", np.int64(4), [4]):
        place = 14 if columns == "b4" else 4
        bank = KernelBank([("k", Linear(), columns)], X_frame, normalize=False)
        assert_allclose(bank.stack[0], np.outer(X[:, place], X[:, place]), rtol=1e-6)
    # new samples: by name whatever the order, by place when they come without names
    bank = KernelBank([("k", RBF(), slice("b0", "b9")), ("c", Chi2(), slice("h0", None))], X_frame)
    shuffled = frame(X_new).assign(text="ignored").iloc[:, ::-1]
    assert np.array_equal(whole_of(bank.cross(X_new)), whole_of(bank.cross(shuffled)))
    with pytest.raises(ValueError, match="'k': column 'b3' is not in X"):
        bank.cross(frame(X_new).drop(columns="b3"))
    for place in (30, -31, 2**70):
        for columns in ([0, place], np.array([0, place])):
            with pytest.raises(ValueError, match=f"column {place} is not in X"):
                KernelBank([("k", RBF(), columns)], X)


def test_input_is_not_changed_and_types_do_not_matter(X):
    for original in (X.copy(), frame(X), np.asfortranarray(X), X.astype(np.float32)):
        before = np.array(original, copy=True)
        KernelBank(ALL, original)
        assert np.array_equal(np.asarray(original), before)
    whole = (100 * X).astype(np.uint8)
    assert np.array_equal(KernelBank(ALL, whole).stack, KernelBank(ALL, whole.astype(float)).stack)
    assert np.array_equal(KernelBank(None, X).stack, KernelBank(on_all(r=RBF()), X).stack)
    X.setflags(write=False)
    KernelBank(ALL, X)
    X.setflags(write=True)


# ------------------------------------------------------------------ subsets


def test_restrict_keeps_scales(X, X_new):
    some = np.random.default_rng(0).permutation(150)[:61]
    whole = whole_of(KernelBank(ALL, X).cross(X_new))
    for bank in banks_of(ALL, X):
        small = bank.restrict(some)
        assert small.n_samples == 61 and small.kernels_ == bank.kernels_ and small.resident == bank.resident
        every = np.concatenate([small.rows(slice(s, min(s + 10, 61))) for s in range(0, 61, 10)], axis=1)
        expected = np.concatenate([bank.rows([i]) for i in some], axis=1)[:, :, some]
        assert_allclose(every, expected, atol=1e-6, rtol=0)
        assert np.array_equal(small.diagonal, bank.diagonal[:, some])
        block = whole_of(small.cross(X_new))
        assert_allclose(block, whole[:, :, some], atol=1e-6, rtol=0)
        assert small.restrict([5, 2]).rows([1]).shape == (9, 1, 2)
        light = bank.restrict(np.isin(np.arange(150), some), resident=False)
        assert not light.resident and light.n_samples == 61
        assert bank.restrict(slice(0, 20), resident=True).resident
    mask = bank.restrict(slice(10, 40))
    assert mask.n_samples == 30


def test_select_shares(X, X_new):
    whole = whole_of(KernelBank(ALL, X).cross(X_new))
    for bank in banks_of(ALL, X):
        for chosen in ([1, 2, 3], [8, 0, 4], np.arange(9) > 6, slice(2, 5)):
            part = bank.select(chosen)
            index = np.arange(9)[chosen]
            assert part.names == [bank.names[f] for f in index] and part.n_kernels == len(index)
            assert_allclose(part.rows([4, 9]), bank.rows([4, 9])[index], atol=1e-6, rtol=0)
            assert np.array_equal(part.diagonal, bank.diagonal[index])
            block = whole_of(part.cross(X_new))
            assert_allclose(block, whole[index], atol=1e-6, rtol=0)
            twice = part.select([0]).restrict([1, 3])
            assert twice.names == [bank.names[index[0]]] and twice.n_samples == 2
    resident = KernelBank(ALL, X)
    assert np.shares_memory(resident.select([1, 2]).stack, resident.stack)
    assert resident.select([2, 0]).stack.transpose(1, 0, 2).flags.c_contiguous
    kept = banks_of(ALL, X)[1]
    assert all(any(d is e for e in kept._stored.values()) for d in kept.select([4, 7])._stored.values())


# ------------------------------------------------------------------ precomputed


def test_from_stack(bank):
    K = bank.stack
    given = KernelBank.from_stack(K)
    assert given.stack is K and given.resident and given.names == [f"k{f}" for f in range(9)]
    assert given.kernels_ == [Precomputed()] * 9
    assert given.diagonal.dtype == np.float64 and np.array_equal(given.diagonal, bank.diagonal)
    assert KernelBank.from_stack(K.astype(np.float64)).dtype == np.float64
    assert KernelBank.from_stack(K, dtype=np.float64).dtype == np.float64
    assert KernelBank.from_stack((K > 0.5).astype(int)).dtype == np.float32
    assert KernelBank.from_stack(np.asfortranarray(K)).stack.flags.c_contiguous
    cross = given.cross(K[:, :20])
    ((rows, block),) = cross.blocks()
    assert rows == slice(0, 20) and np.shares_memory(block, K)
    part = whole_of(given.cross(K[:, :20], kernels=[3, 1], support=[5, 6, 9]))
    assert np.array_equal(part, K[[3, 1], :20][:, :, [5, 6, 9]])
    small = given.restrict([7, 3, 20])
    assert np.array_equal(small.stack, K[:, [7, 3, 20]][:, :, [7, 3, 20]])
    block = whole_of(small.cross(K[:, 50:60][:, :, [7, 3, 20]].astype(np.float64)))
    assert block.dtype == np.float32 and np.array_equal(block, K[:, 50:60][:, :, [7, 3, 20]])
    assert given.select([2]).cross(K[2:3, :4]).n_rows == 4


@pytest.mark.parametrize("n", [1, 5, 64, 200, 300])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_validation_of_a_stack_finds_every_entry(n, dtype):
    rng = np.random.default_rng(n)
    A = rng.standard_normal((2, n, n))
    K = (A @ A.transpose(0, 2, 1)).astype(dtype)
    K = (K + K.transpose(0, 2, 1)) / 2
    KernelBank.from_stack(K)
    for _ in range(6):
        f, i, j = rng.integers(2), rng.integers(n), rng.integers(n)
        for value in (np.nan, np.inf, -np.inf):
            broken = K.copy()
            broken[f, i, j] = broken[f, j, i] = value
            with pytest.raises(ValueError, match=f"'k{f}' of the stack holds NaN or infinite"):
                KernelBank.from_stack(broken)
        if i != j:
            broken = K.copy()
            broken[f, i, j] += 1e-3 * np.abs(K).max()
            with pytest.raises(ValueError, match=f"'k{f}' of the stack must be symmetric"):
                KernelBank.from_stack(broken)
            assert KernelBank.from_stack(broken, validate=False).resident
        broken = K.copy()
        broken[f, i, i] = -0.5
        with pytest.raises(ValueError, match="non-negative diagonal, got -0.5"):
            KernelBank.from_stack(broken)


def test_precomputed_columns(X, X_new):
    def wide(A):
        return np.hstack(
            [A, pairwise.linear_kernel(A, X), -pairwise.additive_chi2_kernel(A[:, 20:], X[:, 20:])]
        )

    kernels = [
        ("given", Precomputed(), slice(30, 180)),
        ("distance", ExpDistance("precomputed"), slice(180, 330)),
        ("twice", ExpDistance("precomputed", factor=2.0), slice(180, 330)),
        ("chi2", Chi2(), slice(20, 30)),
    ]
    for memory in (2e9, 1e5):
        bank = KernelBank(kernels, wide(X), memory=memory)
        rows, block = bank.rows(slice(0, 9)), whole_of(bank.cross(wide(X_new)))
        for found, samples in ((rows, X[:9]), (block, X_new)):
            assert_allclose(found[0], samples @ X.T, rtol=1e-6)
            assert_allclose(found[1], found[3], **CLOSE)
        assert_allclose(bank.diagonal[0], (X**2).sum(axis=1), rtol=1e-6)
        assert bank.kernels_[2].scale == pytest.approx(2 * bank.kernels_[1].scale)
        small = bank.restrict([3, 100, 50])
        assert_allclose(small.rows([1])[:, 0], bank.rows([100])[:, 0, [3, 100, 50]], atol=1e-6)
        part = whole_of(small.cross(wide(X_new), support=[2, 0]))
        assert_allclose(part, block[:, :, [50, 3]], atol=1e-6)
        part = whole_of(unpack(*pack(small)).restrict([1]).cross(wide(X_new)))
        assert_allclose(part, block[:, :, [100]], atol=1e-6)


# ------------------------------------------------------------------ saving


def test_save_and_load(X, X_new):
    """By the codec of files, and pickled."""
    for bank in banks_of(ALL, X):
        small = bank.select([8, 0, 4, 1, 6]).restrict(np.arange(0, 150, 2), resident=False)
        for again in (unpack(*pack(small)), pickle.loads(pickle.dumps(small))):
            assert (again.names, again.kernels_, again.bases) == (small.names, small.kernels_, small.bases)
            assert (again.memory, again.triples) == (small.memory, small.triples) and not again.resident
            assert np.array_equal(again.diagonal, small.diagonal)
            assert np.array_equal(again.rows([3, 5]), small.rows([3, 5]))
            assert np.array_equal(whole_of(again.cross(X_new)), whole_of(small.cross(X_new)))
    assert pickle.loads(pickle.dumps(bank.cross(X_new))).n_rows == 37
    assert repr(bank) == "KernelBank(n_kernels=9, n_samples=150, dtype=float32, on demand)"


def test_save_and_load_frames_and_stacks(X, X_new, bank):
    named = KernelBank([("k", RBF(), slice("b0", "b9"))], frame(X), memory=np.inf)
    again = unpack(*pack(named))
    assert np.array_equal(whole_of(again.cross(frame(X_new).iloc[:, ::-1])), whole_of(named.cross(X_new)))
    given = KernelBank.from_stack(bank.stack)
    light = unpack(*pack(given))
    assert not light.resident and np.array_equal(light.diagonal, given.diagonal)
    assert np.array_equal(whole_of(light.cross(bank.stack[:, :3])), bank.stack[:, :3])
    with pytest.raises(ValueError, match="saved without its stack"):
        light.rows([0])


def scale_warnings(fit):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit()
    return [str(w.message) for w in caught if w.category is FeatureScaleWarning]


def test_columns_of_different_units_warn_once():
    cancer, y = load_breast_cancer(return_X_y=True)
    parts = {"mean": slice(0, 10), "error": slice(10, 20), "worst": slice(20, 30)}
    models = [
        AverageKernelSVM(),
        KernelPerceptron(RBF()),
        KernelPerceptron(RBF(gamma=0.1)),
        SelectedSVM(OKS(random_state=0), C=1.0),
    ]
    for model in models:
        (message,) = scale_warnings(lambda model=model: model.fit(cancer, y))
        assert "make_pipeline(StandardScaler(), model)" in message
        assert ("columns of cue 'kernel' differ" in message) == isinstance(model, KernelPerceptron)
        assert not scale_warnings(lambda model=model: make_pipeline(StandardScaler(), model).fit(cancer, y))
    stream = OM2()
    (message,) = scale_warnings(lambda: stream.partial_fit(cancer[:60], y[:60], classes=[0, 1]))
    assert not scale_warnings(lambda: stream.partial_fit(cancer[60:90], y[60:90]))
    (message,) = scale_warnings(lambda: KernelBank([(n, RBF(), c) for n, c in parts.items()], cancer))
    assert "cue 'mean', 'error', 'worst' differ" in message
    quiet = [
        ([("counts", Chi2(), slice(None))], cancer),
        ([("products", Linear(), slice(None)), ("one", RBF(), [3])], cancer),
        (None, cancer[:19]),
        (None, load_digits().data),
    ]
    for kernels, data in quiet:
        assert not scale_warnings(lambda kernels=kernels, data=data: KernelBank(kernels, data, memory=0))
    histograms = np.random.default_rng(0).poisson(10.0 ** np.linspace(2, -4, 60), (200, 60))
    assert not scale_warnings(lambda: KernelBank(None, histograms))


# ------------------------------------------------------------------ kernel classes


@pytest.mark.parametrize("kernel", [kernel for _, kernel, _ in ALL] + [Precomputed()], ids=str)
def test_kernels_are_values(kernel):
    assert unpack(*pack(kernel)) == kernel
    assert eval(repr(kernel)) == kernel and hash(eval(repr(kernel))) == hash(kernel)
    assert type(kernel)(**kernel.get_params()) == kernel == clone(kernel)
    with pytest.raises(AttributeError):
        kernel.gamma = 2.0
    assert clone([("name", kernel, slice(0, 3))], safe=False) == [("name", kernel, slice(0, 3))]
    assert pickle.loads(pickle.dumps(kernel)) == kernel == copy.deepcopy(kernel)


class OldPickle:
    """What an earlier version wrote of a kernel whose gamma was a divisor."""

    def __reduce__(self):
        return object.__new__, (RBF,), {"gamma": 4.0, "factor": 1.0}


def test_old_pickles_are_not_read_in_another_sense():
    with pytest.raises(ValueError, match="RBF was pickled by an earlier version.*gamma was a divisor"):
        pickle.loads(pickle.dumps(OldPickle()))


KERNEL_ERRORS = {
    "RBF: gamma must be positive and finite, got 0": lambda: RBF(gamma=0),
    "RBF: scale must be positive and finite, got -1": lambda: RBF(scale=-1.0),
    "RBF: scale must be 'mean' or a positive number, got 'median'": lambda: RBF(scale="median"),
    "RBF: gamma is scikit-learn's factor.*scale.*'mean'; got 'mean'": lambda: RBF(gamma="mean"),
    "Chi2: give gamma or scale, got gamma=2.0 and scale=3.0": lambda: Chi2(gamma=2.0, scale=3.0),
    "factor multiplies scale='mean' only, got factor=3.0 .*scale=2.0": lambda: RBF(scale=2.0, factor=3.0),
    "factor multiplies scale='mean' only, got factor=3.0 .*gamma=2.0": lambda: RBF(gamma=2.0, factor=3.0),
    "Poly: degree must be at least 1, got 0": lambda: Poly(degree=0),
    "Poly: coef0": lambda: Poly(coef0=-1),
    "Poly: gamma is .*None, 1 / the number of columns; got 'dim'": lambda: Poly(gamma="dim"),
    "ExpDistance: metric must be one of": lambda: ExpDistance("cosine"),
}
KERNEL_TYPE_ERRORS = {
    "RBF.* positional": lambda: RBF(2.0),
    "Chi2.* positional": lambda: Chi2(2.0),
    "ExpDistance.* positional": lambda: ExpDistance("euclidean", 2.0),
    "Poly.* positional": lambda: Poly(2, 1.0, 3.0),
    "Poly: degree must be an integer": lambda: Poly(degree=2.0),
}


@pytest.mark.parametrize(
    "error, words, make",
    [(ValueError, *case) for case in KERNEL_ERRORS.items()]
    + [(TypeError, *case) for case in KERNEL_TYPE_ERRORS.items()],
)
def test_kernel_errors(error, words, make):
    with pytest.raises(error, match=words):
        make()


# ------------------------------------------------------------------ errors of the bank


def changed(X, value):
    X = X.copy()
    X[3, 12] = value
    return X


def one_of(kernel, columns=slice(None)):
    """A bank of one kernel, as a function of X."""
    return lambda X: KernelBank([("a", kernel, columns)], X)


def stack_of(matrices=(np.eye(3),), **options):
    return KernelBank.from_stack(np.array(matrices), **options)


EVERY = slice(None)
TWINS = pd.DataFrame(np.ones((3, 2)), columns=["x", "x"])
BANK_ERRORS = [
    ("cue 'euclidean'.*NaN", lambda X: KernelBank(ALL, changed(X, np.nan))),
    ("cue 'euclidean'.*infinite", lambda X: KernelBank(ALL, changed(X, np.inf))),
    ("cue 'euclidean'.*beyond 1e.150", lambda X: KernelBank(ALL, changed(X, -1e200))),
    ("cue 'a': chi2.*-0.1", lambda X: one_of(Chi2(), slice(10, 20))(changed(X, -0.1))),
    ("cue 'a': column 30 is not in X, which has 30", one_of(RBF(), [0, 30])),
    ("cue 'a': column 'red' is not in X", lambda X: one_of(RBF(), "red")(frame(X))),
    ("cue 'a': columns can be given by name only", one_of(RBF(), "red")),
    ("cue 'a': no columns", one_of(RBF(), [])),
    ("cue 'a': the boolean mask has length 2", one_of(RBF(), [True, False])),
    ("more than once", lambda X: one_of(RBF(), "x")(TWINS)),
    (r"names must be unique, got \['a'\]", lambda X: KernelBank([("a", RBF(), [0]), ("a", RBF(), [1])], X)),
    ("triples", lambda X: KernelBank([("a", RBF())], X)),
    ("non-empty list", lambda X: KernelBank([], X)),
    (r"X must be 2-D .* got shape \(30,\)", lambda X: KernelBank(None, X[0])),
    ("from_stack", lambda X: KernelBank(None, X[None])),
    ("at least one row", lambda X: KernelBank(None, X[:0])),
    ("cue 'rbf'.*real numbers", lambda X: KernelBank(None, X + 1j)),
    ("cue 'rbf'.*real numbers", lambda X: KernelBank(None, X.astype(str).astype(object) + "x")),
    (r"cue 'a'.*square.*\(150, 30\)", one_of(Precomputed())),
    ("cue 'a'.*symmetric", lambda X: one_of(Precomputed())(X[:30])),
    ("zero diagonal", lambda X: one_of(ExpDistance("precomputed"))(np.ones((4, 4)))),
    ("non-negative", lambda X: one_of(ExpDistance("precomputed"))(np.eye(4) - 1)),
    (
        "cue 'a'.*cannot serve",
        lambda X: KernelBank([("a", Precomputed(), EVERY), ("r", RBF(), EVERY)], np.eye(4)),
    ),
    (r"shape \(n_kernels, n, n\), got \(150, 30\)", lambda X: KernelBank.from_stack(X)),
    ("shape", lambda X: KernelBank.from_stack(X[None])),
    ("real numbers", lambda X: stack_of([np.eye(3) * 1j])),
    ("names must be 1 strings", lambda X: stack_of(names=["a", "b"])),
    ("unique", lambda X: stack_of([np.eye(3)] * 2, names=["a", "a"])),
    (r"\[0, 150\)", lambda X: KernelBank(None, X).rows([150])),
    ("out must be an array", lambda X: KernelBank(None, X).rows_into([0], np.empty((1, 2, 150), np.float32))),
    ("float32, got shape", lambda X: KernelBank(None, X).rows_into([0], np.empty((1, 1, 150)))),
    ("X_new has 29 columns", lambda X: KernelBank(None, X).cross(X[:, :29])),
    ("X_new must be 2-D", lambda X: KernelBank(None, X).cross(X[0])),
    ("cue 'a': chi2", lambda X: one_of(Chi2(), [0])(X).cross(-X)),
    (r"\(1, rows, 3\)", lambda X: stack_of().cross(np.ones((1, 2, 4)))),
    ("NaN", lambda X: list(stack_of().cross(np.full((1, 2, 3), np.nan)).blocks())),
    ("at least one sample", lambda X: KernelBank(None, X).restrict([])),
    ("at least one kernel", lambda X: KernelBank(None, X).select([])),
    ("at most once", lambda X: KernelBank(None, X).select([0, 0])),
]
BANK_TYPE_ERRORS = [
    ("cue 'a'", one_of(RBF(), None)),
    ("cue 'a': columns must be", one_of(RBF(), [0.5])),
    ("kernels: 'a' must come with a kernel", one_of(3, [0])),
    ("a name must be a string", lambda X: KernelBank([(1, RBF(), [0])], X)),
    ("cue 'a': columns must be.* got True", one_of(RBF(), [True, 2])),
    ("integers", lambda X: KernelBank(None, X).rows([0.5])),
]


@pytest.mark.parametrize(
    "error, words, make",
    [(ValueError, *case) for case in BANK_ERRORS] + [(TypeError, *case) for case in BANK_TYPE_ERRORS],
)
def test_bank_errors(X, error, words, make):
    with pytest.raises(error, match=words) as caught:
        make(X)
    assert "\n" not in str(caught.value)


# ------------------------------------------------------------------ properties


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

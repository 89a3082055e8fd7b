"""Sparse samples: the results of dense ones, without ever making a cue dense."""

import pickle
import tracemalloc

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from cuelearn.core.estimator import load
from cuelearn.kernels import RBF, Chi2, ExpDistance, FeatureScaleWarning, KernelBank, Linear, Poly
from cuelearn.kernels.specifications import uneven_spread
from cuelearn.mkl import OM2, UFOMKL, AverageKernelSVM
from cuelearn.mktl import MKTL
from cuelearn.oks import OKS
from cuelearn.omcl import OMCL, Flat, ProjectronPlusPlus

KERNELS = [
    ("linear", Linear(), slice(0, 60)),
    ("poly", Poly(3), slice(0, 60)),
    *[(f"near {k}", RBF(gamma=0.01 * k), slice(0, 60)) for k in range(1, 9)],
    ("mean", RBF(), slice(40, 100)),
    ("root", ExpDistance(), [90, 7, 3, 55]),
    ("offset", RBF(), [100]),
    ("both", Linear(), [100]),
]


def counts(n=90, d=101, seed=0):
    """Integers with equal and empty samples, and a column far from 0."""
    rng = np.random.default_rng(seed)
    X = rng.poisson(2.0, (n, d)) * (rng.random((n, d)) < 0.15)
    X[5] = X[7]
    X[9] = 0
    X[:, -1] = 2_000 + rng.integers(0, 9, n)
    return X


def untidy(X):
    """The same matrix, entries in two parts and in no order, with zeros."""
    rows, columns = np.nonzero(X)
    data = np.concatenate([X[rows, columns] - 1.0, np.ones(rows.size), np.zeros(50)])
    rows, columns = (np.concatenate([i, i, np.arange(50) % 9]) for i in (rows, columns))
    order = np.random.default_rng(0).permutation(data.size)
    order = order[np.argsort(rows[order], kind="stable")]
    start = np.searchsorted(rows[order], np.arange(len(X) + 1))
    return sparse.csr_matrix((data[order], columns[order], start), shape=X.shape)


FORMS = [untidy, sparse.csc_array, sparse.coo_matrix, lambda X: sparse.csr_array(X.astype(np.int16))]


def blocks(bank, X):
    return np.concatenate([block for _, block in bank.cross(X).blocks()], axis=1)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("memory", [2e9, 7e5, 0.0], ids=["stack", "kept", "on demand"])
@pytest.mark.parametrize("normalize", [True, False])
def test_a_bank_agrees_with_the_dense_one(form, memory, normalize):
    X, new = counts(), counts(20, seed=1)
    options = {"normalize": normalize, "dtype": np.float64, "memory": memory}
    bank, dense = KernelBank(KERNELS, form(X), **options), KernelBank(KERNELS, X, **options)
    assert bank.resident == (memory == 2e9) and bool(bank._store.shared) == (memory == 7e5)
    close = {"rtol": 1e-10, "atol": 1e-10}
    for i in (5, 7, 9, 50):
        np.testing.assert_allclose(bank.rows([i]), dense.rows([i]), **close)
    np.testing.assert_allclose(blocks(bank, form(new)), blocks(dense, new), **close)
    np.testing.assert_array_equal(blocks(bank, form(new)), blocks(bank, new))  # dense new samples
    np.testing.assert_allclose(blocks(dense, form(new)), blocks(dense, new), **close)
    half, wanted = (each.restrict(np.arange(30, 3, -1)) for each in (bank, dense))
    np.testing.assert_allclose(half.rows([2]), wanted.rows([2]), **close)
    if memory == 2e9:
        single = KernelBank(KERNELS, form(X), normalize=normalize).stack
        np.testing.assert_allclose(single, dense.stack, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kernel", [Chi2(), "laplacian", lambda A, B: A @ B.T])
def test_kernels_without_sparse_products(kernel):
    """They take few columns, made dense, beside a wide sparse cue; many are refused by name."""
    rng = np.random.default_rng(0)
    few = rng.random((30, 4))
    wide = sparse.random(30, 3000, 0.01, random_state=0)
    X = sparse.hstack([wide, few]).tocsr()
    cues = [("text", Linear(), slice(0, 3000)), ("hue", kernel, slice(3000, 3004))]
    bank = KernelBank(cues, X)
    dense = KernelBank(cues, X.toarray())
    np.testing.assert_allclose(bank.rows(np.arange(30)), dense.rows(np.arange(30)), atol=1e-6)
    new = np.concatenate([block for _, block in bank.cross(X[:7]).blocks()], axis=1)
    np.testing.assert_allclose(new, bank.rows(np.arange(7)), atol=1e-6)
    with pytest.raises(ValueError, match="kernel 'hue' takes at most 1,000 sparse columns, got 3,000 for"):
        KernelBank([("hue", kernel, slice(0, 3000))], X)


def test_dense_learners_and_lists_of_blocks():
    X, y = sparse.csr_matrix(counts()), np.arange(90) % 2
    for cls in (OMCL, Flat, OKS, ProjectronPlusPlus):
        with pytest.raises(TypeError, match=f"{cls.__name__} takes dense samples, got a sparse X: use X.to"):
            cls().fit(X, y)
    text = sparse.random(90, 300, 0.05, random_state=0)
    cues = [("words", Linear(), slice(0, 300)), ("counts", RBF(), slice(300, None))]
    joined = UFOMKL(cues, **SEED).fit(sparse.hstack([text, X]), y)
    blocks = UFOMKL(cues, **SEED).fit([text, counts()], y)
    np.testing.assert_array_equal(blocks.dual_coef_, joined.dual_coef_)
    scores = blocks.decision_function([text.tocsr()[:7], counts()[:7]])
    np.testing.assert_array_equal(scores, joined.decision_function(sparse.hstack([text, X]).tocsr()[:7]))
    np.testing.assert_array_equal(KernelBank(cues, [text, counts()]).stack, joined.bank_.stack)
    with pytest.raises(TypeError, match="OKS takes dense samples"):
        OKS().fit([text, X], y)
    with pytest.raises(ValueError, match="X as a list of blocks must hold matrices of the same samples"):
        UFOMKL(cues).fit([text, counts()[:80]], y)


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e200])
def test_invalid_entries(value):
    X = sparse.csr_array(counts().astype(float))
    X.data[X.indices == 4] = value
    for call in (KernelBank, lambda kernels, X: UFOMKL(kernels).fit(X, np.arange(90) % 2)):
        with pytest.raises(ValueError, match=r"cue '.*': column 4 of X holds (NaN or inf|values beyond)"):
            call(KERNELS, X)
    UFOMKL(KERNELS[-4:-3]).fit(X, np.arange(90) % 2)  # a column that no cue uses
    with pytest.raises(ValueError, match="real numbers"):
        KernelBank(KERNELS, sparse.csr_array(counts() * 1j))


def test_spread_is_that_of_dense_columns():
    rng = np.random.default_rng(0)
    for density in (0.2, 0.26, 0.5, 1.0):
        for unit in (1.0, 1e4):
            X = rng.random((101, 8)) * (rng.random((101, 8)) < density) * np.r_[unit, np.ones(7)]
            assert uneven_spread(sparse.csr_array(X)) == uneven_spread(X)
    with pytest.warns(FeatureScaleWarning, match="'rbf'"):
        KernelBank(None, sparse.csr_array(X))


CUES = [("one", Linear(), slice(0, 60)), ("two", RBF(gamma=0.02), slice(0, 60)), ("three", Poly(), [3, 70])]


SEED = {"random_state": 0}


MODELS = [UFOMKL(CUES, **SEED), AverageKernelSVM(CUES), OM2(CUES, **SEED), MKTL(CUES, **SEED)]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_an_estimator_agrees_with_the_dense_fit(model, tmp_path):
    """Products of counts are exact, in both precisions."""
    X, y = counts(), np.arange(90) % 3
    dense, model = clone(model).fit(X, y), model.fit(untidy(X), y)
    wanted = dense.decision_function(X)
    np.testing.assert_allclose(model.decision_function(untidy(X)), wanted, rtol=1e-10, atol=1e-10)
    model.save(tmp_path / "model")
    for found in (load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(found.decision_function(X), model.decision_function(untidy(X)))
        assert all(map(sparse.issparse, (held["plain"].values for held in found.bank_._fitted.train.arrays)))


def test_streams_may_mix_sparse_and_dense_batches(tmp_path):
    X, y = counts(), np.arange(90) % 3
    models = OM2(CUES), OM2(CUES)
    for k, start in enumerate(range(0, 90, 30)):
        batch, labels = X[start : start + 30], y[start : start + 30]
        for model, given in zip(models, (batch, batch if k == 1 else untidy(batch)), strict=True):
            model.partial_fit(given, labels, classes=[0, 1, 2]).save(tmp_path / "model")
    wanted, found = (model.decision_function(X) for model in (models[0], load(tmp_path / "model")))
    np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-10)


def test_priors_of_sparse_columns():
    X, y = counts(), np.arange(90) % 3
    prior = LogisticRegression().fit(X[:, :9], y)
    priors = [("other", prior, slice(0, 9)), ("own", "passthrough", [3, 4])]
    dense, model = (MKTL(CUES, priors=priors, **SEED).fit(given, y) for given in (X, sparse.csr_matrix(X)))
    np.testing.assert_allclose(model.decision_function(untidy(X)), dense.decision_function(X), rtol=1e-6)


def test_wide_cues_take_little_memory(tmp_path):
    """A dense copy of one cue would take 1.6 GB."""
    columns = np.random.default_rng(0).integers(0, 400_000, 80_000)
    X = sparse.csr_array((np.ones(80_000), columns, np.arange(0, 80_001, 40)), shape=(2_000, 400_000))
    y = np.arange(2_000) % 2
    cues = [("words", Linear(), slice(0, 200_000)), ("characters", RBF(), slice(200_000, None))]
    AverageKernelSVM(cues).fit(X[:90], y[:90]).predict(X[:9])  # compiles
    tracemalloc.start()
    model = AverageKernelSVM(cues).fit(X, y)
    model.decision_function(X[:300])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 150e6, peak
    model.save(tmp_path / "model")
    assert (tmp_path / "model").stat().st_size < 5e6

"""Matrices that are no kernels are found, kernels never are, whatever their rank, scale and precision."""

import warnings

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.base import clone

from cuelearn.kernels import (
    RBF,
    ExpDistance,
    IndefiniteKernelWarning,
    KernelBank,
    KernelStack,
    Linear,
    Poly,
    Precomputed,
    nearest_psd,
)
from cuelearn.mkl import OM2, AverageKernelSVM
from cuelearn.oks import OKS
from cuelearn.omcl import OMCL, KernelPerceptron

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 3))
Y = np.arange(120) % 2
K = 1.0 - cdist(X, X)  # eigenvalues from -150 to 30


def no_kernel(A, B):
    return 1.0 - cdist(A, B)


def bank(kernel, columns, values, **options):
    return KernelBank([("good", RBF(), [0]), ("bad", kernel, columns)], values, normalize=False, **options)


def silent(model, method, *args, **kwargs):
    with warnings.catch_warnings():
        warnings.simplefilter("error", IndefiniteKernelWarning)
        return getattr(model, method)(*args, **kwargs)


def told(call, *args, **kwargs):
    with pytest.warns(IndefiniteKernelWarning) as caught:
        result = call(*args, **kwargs)
    (message,) = [str(w.message) for w in caught if w.category is IndefiniteKernelWarning]
    return message, result


@pytest.mark.parametrize("memory", [2e9, 0.0])
def test_what_a_bank_finds(memory):
    index = np.arange(120)
    steep = np.exp(np.abs(RNG.normal(size=(120, 120))))
    distance = np.triu(steep, 1) + np.triu(steep, 1).T  # of no metric
    found = bank(no_kernel, slice(None), X, memory=memory).indefinite
    assert list(found) == ["bad"]
    assert found["bad"].smallest == pytest.approx(np.linalg.eigvalsh(K)[0], rel=1e-5)
    assert list(bank(Precomputed(), index, K, memory=memory).indefinite) == ["bad"]
    assert list(bank(ExpDistance("precomputed"), index, distance, memory=memory).indefinite) == ["bad"]
    assert bank(ExpDistance("precomputed"), index, cdist(X, X), memory=memory).indefinite == {}
    bad = bank(no_kernel, slice(None), X, memory=memory)
    assert bad.select([0]).indefinite == {} and list(bad.select([1]).indefinite) == ["bad"]
    assert bad.restrict([5]).indefinite == {}  # one sample: a kernel


def test_one_bad_pair_of_many_samples_is_found():
    wrong = np.eye(2000, dtype=np.float32)
    wrong[700, 1900] = wrong[1900, 700] = 1.001
    (found,) = KernelBank.from_stack(wrong).indefinite.values()
    assert found.ratio == pytest.approx(1.001) and found.smallest >= 0.0
    assert "1 times" in str(found)
    assert list(KernelBank.from_stack([np.zeros((2, 2)), 1 - np.eye(2)]).indefinite) == ["k1"]


@pytest.mark.parametrize("scale", [1e-15, 1e15])
def test_distances_are_no_kernel(scale):
    """Their diagonal is 0."""
    distances = scale * cdist(X, X)
    (found,) = KernelBank.from_stack(distances.astype(np.float32)).indefinite.values()
    assert found.smallest == pytest.approx(np.linalg.eigvalsh(distances)[0], rel=1e-4)
    message, model = told(AverageKernelSVM("precomputed").fit, distances, Y)
    assert "on 120 samples range from -" in message and "k(x, x) is 0 where k(x, z) is not" in message
    with pytest.raises(ValueError, match=r"must not have k\(x, x\) = 0 where k\(x, z\) is not 0"):
        AverageKernelSVM([("d", cdist, [0, 1, 2])]).fit(scale * X, Y)


def test_kernels_are_never_doubted():
    n, rng = 2000, np.random.default_rng(1)
    columns = rng.normal(size=(n, 40))
    columns[n // 2 :] = columns[: n // 2]  # duplicates
    columns[:5] = 0.0
    lengths = np.exp(3.0 * rng.normal(size=(n, 1)))
    triples = [("rbf", RBF(), slice(None)), ("linear", Linear(), slice(None)), ("poly", Poly(), slice(None))]
    computed = KernelBank(triples, columns, normalize=False).stack
    long = (lengths * columns).astype(np.float32)
    stack = [*computed, long @ long.T, np.outer(lengths, lengths), np.zeros((n, n)), np.ones((n, n))]
    for scale in (1e-15, 1.0, 1e15):
        for dtype in (np.float32, np.float64):
            for k in stack:
                matrix = np.asarray(scale / k.max() * k if k.max() else k, dtype=dtype)
                assert KernelBank.from_stack(matrix).indefinite == {}
    assert KernelBank.from_stack(computed[:2, :300, :300].astype(np.float16)).indefinite == {}


@pytest.mark.parametrize(
    "model",
    [
        KernelPerceptron(no_kernel, normalize=False),
        OMCL([("a", KernelPerceptron(), [0]), ("b", KernelPerceptron(no_kernel), [1, 2])]),
        OM2([("a", "rbf", [0]), ("b", no_kernel, [1, 2])], normalize=False),
        OKS([("a", "rbf", [0]), ("b", no_kernel, [1, 2])], random_state=0),
    ],
)
def test_functions_of_growing_sets(model):
    message, _ = told(model.fit, X, Y)
    assert "eigenvalues" in message
    if not isinstance(model, OKS):  # takes no function there
        silent(model, "partial_fit", X[:1], Y[:1])  # once is enough
        told(clone(model).partial_fit, X, Y, classes=[0, 1])


def test_given_kernels_of_growing_sets():
    for model, given in ((KernelPerceptron("precomputed"), K), (OM2("precomputed"), K[None])):
        silent(model, "partial_fit", given[..., :1, :1], Y[:1], classes=[0, 1])
        told(model.partial_fit, given[..., 1:40, :40], Y[1:40])
        silent(model, "partial_fit", given[..., 40:80, :80], Y[40:80])
    stream = KernelPerceptron("precomputed").partial_fit(K[:1, :1], Y[:1], classes=[0, 1])
    message, _ = told(lambda: [stream.partial_fit(K[i : i + 1, : i + 1], Y[i : i + 1]) for i in range(1, 30)])
    assert "times sqrt" in message  # single samples, each by its values with the support


@pytest.mark.parametrize("method", ["clip", "shift"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_nearest_kernel(method, dtype):
    stack = np.stack([K, np.exp(-cdist(X, X))])[:, :60, :60].astype(dtype)
    repaired, new = nearest_psd(stack, method, new=stack[:, :7])
    np.testing.assert_array_equal(nearest_psd(KernelStack(stack), method).bank().stack, repaired)
    assert repaired.dtype == new.dtype == dtype and repaired.shape == stack.shape
    assert KernelBank.from_stack(repaired).indefinite == {}
    np.testing.assert_allclose(repaired[1], stack[1], atol=1e-5)  # was a kernel
    off = ~np.eye(60, dtype=bool)
    if method == "shift":
        np.testing.assert_array_equal(repaired[0][off], stack[0][off])
        np.testing.assert_array_equal(new, stack[:, :7])
    else:  # training samples that come again have the values of training
        np.testing.assert_allclose(new[0], repaired[0, :7], atol=1e-4)
        distance = np.linalg.norm(repaired[0] - stack[0])
        others = (nearest_psd(stack[0], "shift"), repaired[0] + 1e-2 * np.eye(60))
        assert all(np.linalg.norm(other - stack[0]) > distance for other in others)


def test_nearest_psd_refuses():
    for wrong, match in (
        ((K, "cut"), "method must be 'clip' or 'shift', got 'cut'"),
        (([[1, 5], [-3, 1]],), "K must be symmetric, got entries that differ by 8"),
    ):
        with pytest.raises(ValueError, match=match):
            nearest_psd(*wrong)

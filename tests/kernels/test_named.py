"""Kernels by name, functions as kernels, and their parameters inside estimators."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.metrics.pairwise import linear_kernel

from cuelearn import mkl, mktl, oks
from cuelearn.kernels import KERNELS, RBF, Chi2, Function, KernelBank, Linear, Poly, as_kernel
from cuelearn.mms import MMS
from cuelearn.omcl import OMCL, Flat, KernelPerceptron, ProjectronPlusPlus

X, Y = load_iris(return_X_y=True)
FEW = np.random.default_rng(0).permutation(150)[:50]
X, Y = X[FEW], Y[FEW]
ESTIMATORS = [mkl.OM2(), mktl.MKTL(), oks.OKS(), MMS()]


def gauss(A, B):
    return np.exp(-0.5 * ((A[:, None] - B) ** 2).sum(axis=2))


def test_names():
    assert as_kernel("rbf") == RBF() and as_kernel("poly") == Poly() and as_kernel(Chi2()) == Chi2()
    KERNELS["mine"] = RBF(scale=3.0)
    try:
        assert KernelBank([("a", "mine", [0])], X).kernels_ == [RBF(scale=3.0)]
        assert KernelPerceptron("mine").fit(X, Y).kernel_ == RBF(scale=3.0)
    finally:
        del KERNELS["mine"]
    with pytest.raises(ValueError, match="a kernel's name must be 'linear', .*got 'mine'"):
        as_kernel("mine")
    with pytest.raises(TypeError, match="or a function of two arrays, got"):
        as_kernel(RBF)


@pytest.mark.parametrize("memory", [2e9, 5e4, 1e3])
@pytest.mark.parametrize("normalize", [True, False])
def test_a_function_is_the_kernel_that_it_computes(memory, normalize):
    options = {"normalize": normalize, "dtype": np.float64, "memory": memory}
    functions = [("l", linear_kernel, [0, 1]), ("g", lambda A, B: 9 * gauss(A, B), [2, 3])]
    factor = 1.0 if normalize else 9.0
    bank = KernelBank(functions, 10 * X, **options)
    wanted = KernelBank([("l", Linear(), [0, 1]), ("g", RBF(scale=2.0), [2, 3])], 10 * X, **options)
    for i in range(0, 50, 7):
        part, (linear, rbf) = bank.rows([i]), wanted.rows([i])
        assert_allclose(part, [linear, factor * rbf], rtol=1e-9, atol=1e-12)
    assert_allclose(bank.diagonal, wanted.diagonal * [[1.0], [factor]])
    (_, new), (_, expected) = (next(b.cross(X[:4] + 1, support=[3, 40]).blocks()) for b in (bank, wanted))
    assert_allclose(new, expected * [[[1.0]], [[factor]]], rtol=1e-9, atol=1e-12)
    (_, few), (_, all_of) = (next(b.cross(X[:1]).blocks()) for b in (bank.restrict([5, 9]), bank))
    assert_allclose(few, all_of[:, :, [5, 9]], rtol=1e-9)
    assert bank.kernels_[0] == Function(linear_kernel)


@pytest.mark.parametrize(
    "function, words", [(lambda A, B: A @ B[:1].T, r"must have shape \(50, 50\) .*, got shape \(50, 1\)")]
)
def test_functions_that_are_no_kernels(function, words):
    for call in (
        lambda: KernelBank([("a", function, [0, 1])], X),
        lambda: KernelPerceptron(function).fit(X, Y),
    ):
        with pytest.raises(ValueError, match=words):
            call()


def test_functions_have_no_place_in_files(tmp_path):
    kernels = [("g", gauss, [2, 3])]
    with pytest.raises(TypeError, match="is a function, which cannot be saved without pickle"):
        mkl.OM2(kernels).fit(X, Y).save(tmp_path / "model")


CUES = [("colour", "rbf", [0, 1]), ("shape", Poly(), [2, 3]), ("own", gauss, [0])]


@pytest.mark.parametrize("model", ESTIMATORS, ids=lambda model: type(model).__name__)
def test_parameters_within(model):
    model = clone(model).set_params(kernels=CUES)
    known = model.get_params()
    assert known["kernels__colour"] == "rbf" and known["kernels__colour__scale"] == "mean"
    other = clone(model).set_params(
        kernels__colour__gamma=2.0, kernels__shape=Chi2(), kernels__shape__gamma=0.5
    )
    assert other.kernels == [("colour", RBF(gamma=2.0), [0, 1]), ("shape", Chi2(gamma=0.5), [2, 3]), CUES[2]]
    assert model.kernels is CUES  # nothing that is shared was changed
    for wrong in ("kernels__colour__degree", "kernels__smell", "kernels__own__gamma", "kernel__gamma"):
        with pytest.raises(ValueError, match="Invalid parameter"):
            clone(model).set_params(**{wrong: 1.0})
    with pytest.raises(ValueError, match="RBF: give gamma or scale"):
        clone(other).set_params(kernels__colour__scale=3.0)
    other.set_params(kernels__colour__scale=3.0, kernels__colour__gamma=None)  # checked together
    assert other.kernels[0][1] == RBF(scale=3.0)


def test_parameters_within_online_learners():
    model = OMCL([("a", ProjectronPlusPlus("rbf"), [0, 1]), ("b", KernelPerceptron(Poly()), [2, 3])])
    other = clone(model).set_params(a__kernel__gamma=2.0, b__kernel="chi2", a__eta=0.5)
    assert [learner.kernel for _, learner, _ in other.cues] == [RBF(gamma=2.0), "chi2"]
    flat = Flat(ProjectronPlusPlus("rbf")).set_params(learner__kernel__gamma=3.0)
    assert flat.learner.kernel == RBF(gamma=3.0)

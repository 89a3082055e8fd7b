"""Kernel matrices of the caller's: a sensible scale works or ends with a warning, others are refused."""

import inspect
import re
import warnings

import numpy as np
import pytest
from estimators import CUES, ESTIMATORS, data, make
from scipy.spatial.distance import cdist

from cuelearn.kernels import IndefiniteKernelWarning, KernelBank, nearest_psd
from cuelearn.oks import OKS
from cuelearn.omcl import KernelPerceptron

THREE = [(name, KernelPerceptron("precomputed"), j) for j, name in enumerate("abc")]
#: How to tell an estimator that its kernels are given.
GIVEN = {
    **{name: {"cues": THREE} for name in ("OMCL", "Vote")},
    "Flat": {"learner": KernelPerceptron("precomputed")},
    "MMS": {"kernels": "precomputed", "n_epochs": 30},  # enough; huge kernels want very many
    "SelectedSVM": {"selector": OKS("precomputed", one_vs_rest=True, random_state=0)},
}
SCORES = np.random.default_rng(0).normal(size=(36, 3))


def given_kernels(name):
    """An instance on given kernels, its further arguments, axes of its X; None if it takes none."""
    known = inspect.signature(ESTIMATORS[name]).parameters
    if name in GIVEN or "kernels" in known:
        more = {"scores": SCORES} if name == "PriorFeatures" else {}
        options = GIVEN.get(name, {"kernels": "precomputed"}) | (
            {"priors": None} if "priors" in known else {}
        )
        return make(name, **options), more, 3
    return (make(name, kernel="precomputed"), {}, 2) if "kernel" in known else None


NAMES = [name for name in ESTIMATORS if given_kernels(name) is not None]


def kernels(name, axes=3):
    """Kernels among 36 samples, two of full rank and one of low rank, and labels; as `fit` takes them."""
    X, y = data(name, 36)
    K = KernelBank(CUES, X, normalize=False, dtype=np.float64).stack
    return (K if axes == 3 else K[1]), y


def finite_scores(model, K, more):
    scores = getattr(model, "decision_function", model.predict)  # regressors have no scores
    return bool(np.isfinite(scores(K, **more)).all())


@pytest.mark.parametrize("name", NAMES)
def test_scales(name):
    """K times 1e9 or 1e-9 is fitted, or ends with a warning; far beyond, one sentence says what to do."""
    model, more, axes = given_kernels(name)
    K, y = kernels(name, axes)
    for scale in (1e-9, 1e9):
        assert finite_scores(model.fit(scale * K, y, **more), scale * K, more)
    for scale in (1e-300, 1e-30, 1e30, 1e307):
        with pytest.raises(
            ValueError, match="got .*: divide it by its mean|up to .*: divide by the mean diagonal"
        ):
            model.fit(scale * K, y, **more)
        if scale > 1 and name != "PriorFeatures":  # which does not look at kernels
            with pytest.raises(ValueError, match="X.* holds kernel values up to"):
                model.predict(scale * K, **more)


ALL = slice(None)
#: One of a pair, both, at the ends of the diagonal, all of it, everything.
PLACES = [(30, 9), ([30, 9], [9, 30]), (0, 0), (-1, -1), (range(31), range(31)), (ALL, ALL)]


@pytest.mark.parametrize("name", NAMES)
def test_what_is_no_kernel(name):
    model, more, axes = given_kernels(name)
    K, y = kernels(name, axes)
    lopsided, negative, broken = K.copy(), K.copy(), K.copy()
    lopsided[..., 0, 1] += 1.0
    negative[..., 2, 2] = -1.0
    broken[..., 3, 4] = broken[..., 4, 3] = np.nan
    words = {"must be symmetric": lopsided, "must have a non-negative diagonal": negative}
    words |= {"holds NaN": broken, "hold real numbers, got dtype complex128": K + 1j}
    for match, wrong in words.items():
        with pytest.raises(ValueError, match=match):
            model.fit(wrong, y, **more)
    for value in (np.inf, -np.inf, np.nan, 1e300):  # neither the mirror entry nor a normal diagonal hides it
        for rows, columns in PLACES:
            large = K.copy()
            large[(1, rows, columns) if axes == 3 else (rows, columns)] = value
            with pytest.raises(ValueError, match="'k1'|kernel 1 of X" if axes == 3 else "^X|^kernel"):
                model.fit(large, y, **more)
    model.fit(K, y, **more)
    for wrong in (broken, K + 1j):
        if name != "PriorFeatures":
            with pytest.raises(ValueError, match="X"):
                model.predict(wrong, **more)


def indefinite(n=50):
    """1 - distance / 2 on features of three sizes, whose eigenvalues have both signs, and labels."""
    X, y = data("OBSCURE", n)
    return np.stack([1.0 - 2.0 * cdist(X[:, c], X[:, c]) for c in ([0, 1], [2, 3], [4, 5])]), y


@pytest.mark.parametrize("name", [name for name in NAMES if name != "PriorFeatures"])  # which uses none
def test_an_indefinite_kernel_is_told_once_and_nothing_is_certified(name):
    model, _, axes = given_kernels(name)
    K, _ = indefinite()
    _, y = data(name, len(K[0]))
    K = K if axes == 3 else K[1]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(K, y)
    assert [w.category for w in caught] == [IndefiniteKernelWarning], [str(w.message) for w in caught]
    assert caught[0].filename == __file__  # points to the line of the user
    assert re.search("eigenvalues on 50 samples range from -.*nearest_psd", str(caught[0].message))
    known = vars(model)
    for gap in ("dual_gap_", "dual_gaps_", "loo_gap_"):
        assert np.isnan(known.get(gap, np.nan)).all()
    assert np.isnan(known.get("history_", {}).get("dual_gap", np.nan)).all()
    if name not in ("MLMKLSA", "MLMKLSum"):  # whose rule is about the weights
        assert not known.get("converged_", False)
    assert finite_scores(model, K, {})
    repaired = np.stack([nearest_psd(k) for k in K]) if axes == 3 else nearest_psd(K)
    with warnings.catch_warnings():
        warnings.simplefilter("error", IndefiniteKernelWarning)
        model.fit(repaired, y)


#: Whose problem has no other scale than C: K s with C / s is the same.
INVARIANT = (
    "OBSCURE PegasosMKL UFOMKL SILPMKL SimpleMKL LpMKL MCMKL VSKL MLMKLSum AverageKernelSVM BestKernelSVM "
    "KernelPA NoTransfer AverageTL MultiKT MKTL MuSVM"
).split()


@pytest.mark.parametrize("name", INVARIANT)
def test_the_scale_is_that_of_C(name):
    K, y = kernels(name)
    certified = {"tol": 1e-5} if name in ("OBSCURE", "PegasosMKL", "UFOMKL", "MKTL") else {}
    wanted = given_kernels(name)[0].set_params(C=2.0, **certified).fit(K, y).decision_function(K)
    for power in (-30, 30):
        model = given_kernels(name)[0].set_params(C=2.0 ** (1 - power), **certified)
        found = model.fit(2.0**power * K, y).decision_function(2.0**power * K)
        np.testing.assert_allclose(found, wanted, rtol=0, atol=5e-3 * np.abs(wanted).max())

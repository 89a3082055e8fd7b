"""Data, cues and estimators that the tests of the MKL chapter share."""

import inspect
import re
from pathlib import Path

import numpy as np
from plain_mkl import draw
from sklearn.kernel_approximation import RBFSampler
from sklearn.svm import SVC

from cuelearn.kernels import RBF, FeatureMap, KernelBank, Linear, Poly
from cuelearn.mkl import (
    MCMKL,
    OBSCURE,
    OM2,
    SILPMKL,
    UFOMKL,
    AverageKernelSVM,
    BestKernelSVM,
    KernelPA,
    LPBeta,
    LpMKL,
    MKLProblem,
    PegasosMKL,
    SimpleMKL,
    solve_obscure,
    solve_om2,
    solve_ufo,
)
from cuelearn.mkl.stochastic.obscure import solve_pegasos_mkl

STOCHASTIC = [OM2, OBSCURE, PegasosMKL, UFOMKL]
SOLVERS = {OM2: solve_om2, OBSCURE: solve_obscure, PegasosMKL: solve_pegasos_mkl, UFOMKL: solve_ufo}
SINGLE = [AverageKernelSVM, BestKernelSVM, KernelPA]
ONE_VERSUS_ALL = [SILPMKL, SimpleMKL, LpMKL]  # kernel weights for each class
ROUNDS = [*ONE_VERSUS_ALL, MCMKL]  # a history of rounds, a certified gap
ALL = STOCHASTIC + SINGLE + ROUNDS

# fitted, so that batches do not change them
MAPS = [RBFSampler(gamma=0.3, n_components=8, random_state=k).fit(np.zeros((1, 2))) for k in range(2)]
EXPLICIT_CUES = [
    ("shape", FeatureMap(MAPS[0]), [0, 1]),
    ("size", FeatureMap(MAPS[1]), [2, 3]),
    ("line", Linear(), [4, 5]),
]
CUES = [("shape", RBF(), [0, 1]), ("colour", Linear(), slice(2, 4)), ("texture", Poly(degree=2), [4, 5])]


def blocks_of_the_book(section):
    """The code blocks of a section of the page about extensions."""
    page = Path(__file__).resolve().parents[2] / "notebooks" / "book" / "extend.md"
    text = page.read_text(encoding="utf-8").split(f"## {section}")[1].split("\n## ")[0]
    return re.findall(r"```python\n(.*?)```", text, re.DOTALL)


def make_data(n, seed=0, n_classes=3):
    """The first cue tells the classes apart well, the second a little, the third not at all."""
    return draw(n, n_classes, seed, strengths=(3.0, 0.7, 0.0))


def make(cls, kernels=None, **options):
    if "random_state" in inspect.signature(cls).parameters:
        options.setdefault("random_state", 0)
    if cls is LPBeta:
        options.setdefault("nu", 0.3)  # not chosen by 50 further linear programs
    return cls(kernels, **options)


def solved(cls, K, y, *, seed=0, p="auto", C=1.0, alpha=0.0, loss="multiclass", **options):
    """An estimator's problem, without the (2,1) norm where it has none, and what its solver returns."""
    alpha = alpha if cls in (OM2, UFOMKL) else 0.0
    bank = K if isinstance(K, KernelBank) else KernelBank.from_stack(K)
    problem = MKLProblem(bank, y, int(y.max()) + 1, p=p, C=C, alpha=alpha, loss=loss)
    options = {"shuffle": cls is not OM2, **options}
    return problem, SOLVERS[cls](problem, rng=np.random.default_rng(seed), **options)


def several_labels(seed=0, n=80, m=4, noise=0.4):
    """Features, an indicator matrix of m columns, and two kernels that see the labels and one that sees
    noise."""
    rng = np.random.default_rng(seed)
    Y = rng.integers(0, 2, size=(n, m))
    X = np.hstack([Y + noise * rng.normal(size=(n, m)), rng.normal(size=(n, 3))])
    useful, noisy = slice(0, m), slice(m, m + 3)
    return (
        X,
        Y,
        [("useful_rbf", RBF(), useful), ("useful_linear", Linear(), useful), ("noise_rbf", RBF(), noisy)],
    )


def plain_svms(kernel, y, train, test, C, tol=1e-3):
    """scikit-learn's decision values of each class against the rest on one kernel; of two classes one."""
    found = []
    for c in [1] if y.max() == 1 else range(y.max() + 1):
        svm = SVC(C=C, kernel="precomputed", tol=tol).fit(kernel[np.ix_(train, train)], y[train] == c)
        found.append(svm.decision_function(kernel[np.ix_(test, train)]))
    return found[0] if y.max() == 1 else np.stack(found, axis=1)

"""The common objectives, by brute force from features; `objective_`: tests of each chapter."""

import estimators
import numpy as np
import pytest
from plain_mkl import features_of

from cuelearn.mkl import common_objective
from cuelearn.mms import CLSVM, SupervisedSVM
from cuelearn.mms import common_objective as common_bag_objective

METHODS = (
    "OM2 OBSCURE UFOMKL PegasosMKL MKTL MCMKL SILPMKL SimpleMKL LpMKL GMKL VSKL LPBeta AverageKernelSVM "
    "BestKernelSVM KernelPA"
).split()


def blocks(model):
    """Hyperplanes (n_classes, dim) of every kernel, with features whose inner products are the kernels, and
    the scores of the samples."""
    n, found, scores = model.bank_.n_samples, [], 0.0
    weights = np.broadcast_to(model.kernel_weights_, (model.classes_.size, model.bank_.n_kernels))
    for j, K in enumerate(model.bank_.rows(np.arange(n)).astype(float)):
        features = features_of(K)
        coef = model.dual_coef_ if model.dual_coef_.ndim == 2 else model.dual_coef_[:, j]
        found.append(weights[:, j, None] * (features[model.support_].T @ coef).T)
        scores = scores + features @ found[-1].T
    return found, scores + getattr(model, "intercept_", 0.0)


def brute(found, scores, labels, C, p, alpha=0.0):
    n = labels.size
    norms = np.array([np.linalg.norm(w) for w in found])
    wrong = np.where(np.eye(scores.shape[1], dtype=bool)[labels], -np.inf, scores).max(axis=1)
    losses = np.maximum(0.0, 1.0 - scores[np.arange(n), labels] + wrong)
    return 0.5 / (C * n) * (norms**p).sum() ** (2.0 / p) + alpha * norms.sum() + losses.mean()


@pytest.mark.parametrize("name", METHODS)
def test_any_model_in_the_common_problem(fitted, name):
    model, X, y = fitted(name)
    found, scores = blocks(model) if name != "LPBeta" else (blocks(model)[0], model.decision_function(X))
    for C, p, alpha in ((2.0, 1.3, 0.1), (1.0, 1, 0.0)):
        value = brute(found, scores, y, C, p, alpha)
        assert common_objective(model, X, y, C=C, p=p, alpha=alpha) == pytest.approx(value, rel=1e-5)


def test_two_classes_and_what_is_refused():
    X, y = estimators.data("OM2")
    named = np.array(["b", "a"])[(y == 1).astype(int)]
    for name in ("OM2", "OBSCURE", "UFOMKL", "PegasosMKL", "MCMKL"):
        model = estimators.make(name).fit(X, named)
        p = 1.0 if name == "MCMKL" else getattr(model, "p_", "auto")
        value = common_objective(model, X, named, C=model.C, p=p)
        assert model.objective_ == pytest.approx(value, rel=1e-5), name
    for bad in (y[:5], np.where(y == 0, "c", named)):
        with pytest.raises(ValueError, match="y must have shape|y must be among"):
            common_objective(model, X, bad)


def test_bag_objectives():
    X, sets = estimators.data("MMS")
    found = estimators.make("MMS", C=3.0).fit(X, sets)
    assert common_bag_objective(found, X, sets, C=3.0) == pytest.approx(found.objective_, rel=1e-9)
    rivals = [CLSVM().fit(X, sets), SupervisedSVM(max_iter=9000).fit(X, sets.draw(0)[:, 0])]
    for model in rivals:
        total = 0.0
        for i in range(sets.n_bags):
            s = X[sets.bag_starts[i] : sets.bag_starts[i + 1]] @ model.coef_.T + model.intercept_
            total_of = lambda z, s=s: sum(s[m, k] for m, k in enumerate(z))  # noqa: E731
            inside = [tuple(z.ravel()) for z in sets.bag(i)]
            outside = [z for z in np.ndindex(*(s.shape[1],) * len(s)) if z not in inside]
            loss = [min(sum(a != b for a, b in zip(z, q, strict=True)) for q in inside) for z in outside]
            worst = max(a + total_of(z) for a, z in zip(loss, outside, strict=True))
            total += max(0.0, worst - max(map(total_of, inside)))
        norm_sq = np.sum(model.coef_**2) + np.sum(model.intercept_**2)
        value = 0.5 * norm_sq / (2.0 * sets.n_bags) + total / sets.n_bags
        assert common_bag_objective(model, X, sets, C=2.0) == pytest.approx(value, rel=1e-9)
    with pytest.raises(ValueError, match="linear"):
        common_bag_objective(estimators.make("MMS", kernels=estimators.PAIR).fit(X, sets), X, sets)

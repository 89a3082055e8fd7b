"""Weights of bags: 2 is the bag twice, 0 the bag left out."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.model_selection import GroupKFold, cross_validate
from sklearn.svm import LinearSVC

from cuelearn.kernels import RBF
from cuelearn.mms import (
    CLSVM,
    M3MIML,
    MMS,
    CandidateSet,
    DistNaming,
    GMMNaming,
    SupervisedSVM,
    common_objective,
)

KERNEL = [("all", RBF(scale=2.0), slice(None))]
PRECISE = {"C": 3.0, "tol": 1e-4, "n_epochs": 20_000, "random_state": 0}
SVM = {"tol": 1e-7, "max_iter": 10**6}
#: Models, and how far their scores may be from those of repeated bags.
MODELS = [
    (MMS(**PRECISE), 1e-2),
    (MMS(KERNEL, **PRECISE), 1e-2),
    (CLSVM(3.0, tol=1e-8), 1e-3),
    (CLSVM(3.0, tol=1e-8, class_weight="balanced"), 1e-3),
    (M3MIML(3.0, tol=1e-8, class_weight="balanced"), 1e-3),
    (SupervisedSVM(**SVM), 1e-5),
    (SupervisedSVM(class_weight="balanced", multi_class="ovr", **SVM), 1e-5),
    (SupervisedSVM(class_weight={0: 3.0}, **SVM), 1e-5),
    (GMMNaming(n_components_pca=2, tol=1e-13, max_iter=500), 1e-9),
]


def bags(model=None, n=18, seed=0):
    """Pairs of instances, which of the two is which is not known; for an SVM of known labels the truth."""
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=(n, 2))
    X = np.eye(3)[y.ravel()] + 0.6 * rng.standard_normal((2 * n, 3))
    lists = [[row] if isinstance(model, SupervisedSVM) else [row, row[::-1]] for row in y]
    return X, CandidateSet(lists, n_labels=4), rng.integers(0, 4, n)


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("model, tolerance", MODELS)
def test_weights_repeat_bags(model, tolerance):
    X, sets, weights = bags(model)
    repeated = np.repeat(np.arange(sets.n_bags), weights)
    wanted = model.fit(X[sets.rows(repeated)], sets.take(repeated)).decision_function(X)
    objective = getattr(model, "objective_", None)
    found = model.fit(X, sets, weights).decision_function(X)
    assert_allclose(found, wanted, atol=tolerance)
    if objective is not None:
        assert model.objective_ == pytest.approx(objective, rel=2e-4) and model.converged_
    plain = model.fit(X, sets).decision_function(X)
    assert_array_equal(model.fit(X, sets, np.ones(sets.n_bags)).decision_function(X), plain)
    known = np.isfinite(plain)  # a label that none has scores -inf
    assert np.abs(plain[known] - found[known]).max() > 10.0 * tolerance


@pytest.mark.parametrize(
    "solver, sizes", [("frank-wolfe", None), ("pegasos", None), ("frank-wolfe", [3] * 12)]
)
def test_weighted_svm_and_objective(solver, sizes):
    """With one candidate each, MMS is the multiclass SVM, of which scikit-learn's takes weights too; the loss
    of a bag is the sum of its instances' losses."""
    X = bags()[0]
    y = X.argmax(axis=1)
    y[::5] = 0
    sets = CandidateSet.from_labels(y, sizes)
    weights = 3.0 * np.random.default_rng(1).random(sets.n_bags)
    model = MMS(C=0.5, solver=solver, tol=2e-4, n_epochs=500, random_state=0)
    model.fit(X, sets, sample_weight=weights)
    assert model.n_iter_ == 1  # nothing to choose anew
    svm = LinearSVC(multi_class="crammer_singer", C=0.5, fit_intercept=False, tol=1e-7, max_iter=10**6)
    svm.fit(np.column_stack([X, np.ones(36)]), y, sample_weight=weights[sets.bag_of])
    svm.coef_, svm.intercept_ = svm.coef_[:, :-1], svm.coef_[:, -1]
    least = common_objective(svm, X, sets, C=0.5, sample_weight=weights)
    assert common_objective(model, X, sets, C=0.5, sample_weight=weights) == pytest.approx(model.objective_)
    gap = 2e-4 if solver == "frank-wolfe" else 5e-2
    assert least * (1.0 - 1e-6) <= model.objective_ <= least * (1.0 + gap)
    assert not model.dual_gap_ < model.objective_ - least - 1e-6


@pytest.mark.parametrize("model", [MMS(), SupervisedSVM(), GMMNaming()])
def test_bad_weights(model):
    X, sets, weights = bags(model)
    for bad, message in [
        (np.ones(35), "sample_weight must have shape .* one weight per bag"),
        (np.arange(36.0), "sample_weight must be the same for all instances of a bag"),
        (np.zeros(18), "(?i)sample.weight"),
    ]:
        with pytest.raises(ValueError, match=message):
            model.fit(X, sets, sample_weight=bad)
    with pytest.raises(ValueError, match="sample_weight must be None for DistNaming"):
        DistNaming().fit(X, sets, sample_weight=weights)


def test_weights_of_bags_in_cross_validation():
    """As weights of instances, which scikit-learn's tools index; routing hands them to `score`, too."""
    X, sets, weights = bags()
    of_instances, folds, wanted = weights[sets.bag_of], GroupKFold(3), []
    for train, test in folds.split(X, groups=sets.bag_of):
        numbers = MMS(random_state=0).fit(X[train], sets[train], of_instances[train]).predict(X[test])
        losses = [sets[test].loss(i, numbers[2 * i : 2 * i + 2, None]) for i in range(test.size // 2)]
        wanted.append(1.0 - np.average(losses, weights=of_instances[test][::2]) / 2)
    with config_context(enable_metadata_routing=True):
        routed = MMS(random_state=0).set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        options = {"cv": folds, "params": {"sample_weight": of_instances, "groups": sets.bag_of}}
        scores = cross_validate(routed, X, sets, error_score="raise", **options)["test_score"]
    assert_allclose(scores, wanted)

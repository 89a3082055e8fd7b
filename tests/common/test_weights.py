"""Weights of samples and classes: weight 2 is the sample twice, weight 0 the sample left out."""

import numpy as np
import pytest
from estimators import ESTIMATORS
from sklearn.datasets import load_iris
from sklearn.ensemble import BaggingClassifier
from sklearn.svm import SVC

from cuelearn.kernels import RBF, ExpDistance
from cuelearn.mkl import OBSCURE, AverageKernelSVM
from cuelearn.oks import OKS, SelectedSVM

N = 30
TIGHT = {"tol": 1e-5, "C": 2.0}
#: name -> options that make the result exact enough to compare.
BINARY_SVMS = {
    "AverageKernelSVM": {"C": 2.0},
    "BestKernelSVM": {"C": 2.0, "folds": ...},
    "SILPMKL": TIGHT,
    "SimpleMKL": TIGHT,
    "LpMKL": TIGHT,
    "GMKL": TIGHT,
    "VSKL": TIGHT,
    "LPBeta": {"C": 2.0, "folds": ..., "nu": 0.3},
    "MLMKLSA": {"C": 2.0, "n_iter": 200, "random_state": 0},
    "MLMKLSum": {"C": 2.0},
    "MuSVM": {"C": (0.5, 2.0), "validation": ..., "one_vs_rest": True},
    "AlignmentSVM": {"C": (0.5, 2.0), "validation": ..., "one_vs_rest": True},
}
MULTICLASS = {
    "OBSCURE": {**TIGHT, "random_state": 0},
    "UFOMKL": {**TIGHT, "p": 1.25, "alpha": 0.05, "random_state": 0},
    "PegasosMKL": {**TIGHT, "p": 2.0, "n_epochs": 3, "random_state": 0},
    "MCMKL": TIGHT,
    "MultiKT": {"C": 2.0},  # without scores: of these a sample is left out with all of its weight
}
TRANSFER = {
    "MKTL": {"tol": 1e-7, "C": 2.0, "p": 1.25, "random_state": 0},
    **{name: {"C": 2.0} for name in ("NoTransfer", "AverageTL", "PriorFeatures")},
}
WEIGHTED = {**BINARY_SVMS, **MULTICLASS, **TRANSFER}
#: Estimators whose stopping rule is not a gap of the objective: (relative) difference of decision values.
LOOSE = {"MLMKLSA": 0.03, "MLMKLSum": 0.01}


def problem(seed=0):
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat([0, 1, 2], [N // 2, N // 3, N - N // 2 - N // 3]))
    X = np.eye(3, 4)[y] + rng.normal(scale=0.6, size=(N, 4))
    K = np.stack([np.exp(-((X[:, None, c] - X[None, :, c]) ** 2).sum(axis=2)) for c in ([0, 1], [2, 3])])
    weights = rng.integers(0, 4, size=N).astype(float)
    return K, y, weights


def make(name, folds=None, **options):
    chosen = {**WEIGHTED[name], **options}
    if chosen.get("folds") is ...:
        chosen["folds"] = folds
    if chosen.get("validation") is ...:
        chosen["validation"] = 0.3 if folds is None else folds[0][1]
    return ESTIMATORS[name](kernels="precomputed", **chosen)


def given(name, y, rows=slice(None)):
    """What an estimator takes besides kernels and labels."""
    if name not in TRANSFER:
        return {}
    return {"scores": (np.eye(3)[y] + np.random.default_rng(1).normal(size=(N, 3)))[rows]}


def both(name, y, weights, **options):
    """Models of the weighted samples and of the repeated ones, and their scores of all samples."""
    K, rows = problem()[0], np.repeat(np.arange(N), weights.astype(int))
    halves = np.arange(N) % 2 == 0
    folds = [
        [(np.flatnonzero(f[r]), np.flatnonzero(~f[r])) for f in (halves, ~halves)]
        for r in (np.arange(N), rows)
    ]
    scores = given(name, y)
    weighted = make(name, folds[0], **options).fit(K, y, sample_weight=weights, **scores)
    repeated = make(name, folds[1], **options)
    repeated.fit(K[:, rows[:, None], rows], y[rows], **given(name, y, rows))
    wanted = repeated.decision_function(K[:, :, rows], **scores)
    return weighted, repeated, weighted.decision_function(K, **scores), wanted


@pytest.mark.parametrize("name", WEIGHTED)
@pytest.mark.parametrize("class_weight", ["balanced", {0: 2.0, 2: 0.5}], ids=str)
def test_weights_repeat_and_leave_out(name, class_weight):
    _, y, weights = problem()
    weighted, repeated, scores, wanted = both(name, y, weights, class_weight=class_weight)
    assert np.abs(scores - wanted).max() < LOOSE.get(name, 5e-3) * np.abs(wanted).max()
    if hasattr(weighted, "objective_"):
        slack = weighted.dual_gap_ + repeated.dual_gap_ + 1e-3 * abs(repeated.objective_) * (name == "LPBeta")
        assert abs(weighted.objective_ - repeated.objective_) <= slack
    for values in ("kernel_accuracy_", "nu_accuracy_", "validation_accuracy_", "alignment_"):
        if hasattr(weighted, values):
            np.testing.assert_allclose(getattr(weighted, values), getattr(repeated, values), atol=1e-12)
    assert not np.isin(weighted.support_, np.flatnonzero(weights == 0.0)).any()


@pytest.mark.parametrize("name", WEIGHTED)
def test_weights_are_refused_by_name(name):
    K, y, weights = problem()
    bad = {
        "positive for samples of at least two classes": np.where(y == 1, 1.0, 0.0),
        r"sample_weight must have shape \(30,\)": weights[1:],
        "sample_weight must be 0 or at least": np.where(y == 1, 1e-310, 1.0),
    }
    for message, wrong in bad.items():
        with pytest.raises(ValueError, match=message):
            make(name).fit(K, y, sample_weight=wrong)
    with pytest.raises(ValueError, match="names classes of which y has no sample with weight: .*9"):
        make(name, class_weight={9: 1.0}).fit(K, y, **given(name, y))


@pytest.mark.parametrize("name", WEIGHTED)
def test_a_class_without_weight_is_not_trained(name):
    """As a fit without its samples, and it is never predicted; weights for classes of other folds are
    accepted."""
    K, y, _ = problem()
    kept, scores = np.flatnonzero(y != 1), given(name, y)
    options = {"class_weight": {0: 1.0, 1: 5.0, 2: 2.0}}
    fold = np.arange(0, N, 2), np.arange(1, N, 2)
    model = make(name, [fold], **options).fit(K, y, **scores, sample_weight=1.0 * (y != 1))
    within = tuple(np.flatnonzero(np.isin(kept, rows)) for rows in fold)
    part = {key: value[kept] for key, value in scores.items()}
    alone = make(name, [within], **options).fit(K[:, kept][:, :, kept], y[kept], **part)
    assert model.classes_.tolist() == [0, 1, 2] and model.untrained_classes_.tolist() == [1]
    decision = model.decision_function(K, **scores)
    expected = alone.decision_function(K[:, :, kept], **scores)
    near = LOOSE.get(name, 5e-3) * np.abs(expected).max()
    np.testing.assert_allclose(decision[:, 2] - decision[:, 0], expected, atol=near)
    np.testing.assert_allclose(decision[:, 1], decision[:, [0, 2]].min(axis=1) - 1.0)
    assert set(model.predict(K, **scores)) <= {0, 2}


def test_probabilities_of_a_class_without_weight():
    K, y, _ = problem()
    model = OBSCURE("precomputed", loss="logistic", random_state=0).fit(K, y, sample_weight=1.0 * (y != 0))
    probabilities = model.predict_proba(K)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    assert not probabilities[:, 0].any()
    assert np.isneginf(model.predict_log_proba(K)[:, 0]).all()


@pytest.mark.parametrize("kernel", [RBF(), ExpDistance("cityblock")])
def test_the_mean_scale_counts_weights(kernel):
    rng = np.random.default_rng(0)
    X, y, counts = rng.normal(size=(N, 3)), np.arange(N) % 2, rng.integers(0, 4, size=N)

    def scale(X, y, weights):
        model = AverageKernelSVM([("all", kernel, slice(None))]).fit(X, y, sample_weight=weights)
        return model.bank_.kernels_[0].scale

    twice, plain = scale(np.repeat(X, counts, axis=0), np.repeat(y, counts), None), scale(X, y, None)
    assert scale(X, y, counts) == pytest.approx(twice, rel=1e-6) != plain
    assert scale(X, y, np.full(N, 0.3)) == scale(X, y, 1.0 + 0.01 * rng.random(N)) == plain


def test_ensembles_of_a_rare_class():
    """Bootstrap counts leave out a class of three samples in some of the ten fits."""
    X, y = load_iris(return_X_y=True)
    X, y = X[:103], y[:103]
    bagged = BaggingClassifier(ESTIMATORS["OM2"](), 10, random_state=0).fit(X, y)
    assert any(hasattr(member, "untrained_classes_") for member in bagged.estimators_)
    assert bagged.score(X, y) > 0.95


@pytest.mark.parametrize("name", ["AverageKernelSVM", "SILPMKL", "GMKL"])
def test_labels_of_an_indicator_matrix(name):
    """A dict weighs the positive samples of its columns, "balanced" both sides of each; a column whose
    positive samples have no weight is not trained."""
    K, y, weights = problem()
    Y = np.eye(3, dtype=int)[y]
    for class_weight in ({1: 3.0}, "balanced"):
        model = make(name, class_weight=class_weight).fit(K, Y, sample_weight=weights)
        for c, positive in enumerate(Y.T):
            of_column = weights * np.where(positive & (c == 1), 3.0, 1.0)
            if class_weight == "balanced":
                sides = np.bincount(positive, weights)
                of_column = weights * weights.sum() / (2.0 * sides[positive])
            wanted = make(name).fit(K, positive, sample_weight=of_column).decision_function(K)
            found = model.decision_function(K)[:, c]
            np.testing.assert_allclose(found, wanted, atol=5e-3 * np.abs(wanted).max())
    with pytest.warns(UserWarning, match=r"not trained: \[1\]"):
        model = make(name).fit(K, Y, sample_weight=np.where(y == 1, 0.0, 1.0))
    assert model.skipped_classes_.tolist() == [1] and (model.decision_function(K)[:, 1] == -1.0).all()


def test_selected_svm_weighs_its_machines():
    K, y, weights = problem()
    model = SelectedSVM(OKS("precomputed", one_vs_rest=True, random_state=0), C=2.0, class_weight={1: 2.0})
    scores = model.fit(K, y, sample_weight=weights).decision_function(K)
    for c, j in enumerate(model.best_index_):
        given = weights * np.where(y == 1, 2.0, 1.0)
        kept = given > 0.0  # with weights of 0 SVC takes rows of a given kernel for others
        machine = SVC(C=2.0, kernel="precomputed").fit(K[j][kept][:, kept], y[kept] == c, given[kept])
        np.testing.assert_allclose(scores[:, c], machine.decision_function(K[j][:, kept]), atol=1e-9)


def test_folds_of_one_class_are_named():
    X, y, rows = np.random.default_rng(0).normal(size=(30, 4)), np.arange(30) % 3, np.arange(30)
    model = ESTIMATORS["LPBeta"](folds=[(rows[:15], rows[15:]), (rows[15:], rows[:15])])
    with pytest.raises(ValueError, match="sample_weight > 0 of at least two classes"):
        model.fit(X, y, sample_weight=np.where((y > 0) & (rows < 15), 0.0, 1.0))
    with pytest.raises(ValueError, match="folds must have a test sample with sample_weight > 0"):
        model.fit(X, y, sample_weight=np.where(rows < 15, 1.0, 0.0))

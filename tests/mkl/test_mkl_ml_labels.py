"""Labels of several classes per sample, for all methods."""

import functools
import warnings

import numpy as np
import pandas as pd
import pytest
from mkl_data import several_labels
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.exceptions import DataConversionWarning
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.model_selection import KFold, cross_val_predict, cross_val_score
from sklearn.svm import SVC

from cuelearn.kernels import KernelBank, Linear
from cuelearn.mkl import MLMKLSA, SILPMKL, AverageKernelSVM, BestKernelSVM, LpMKL, MLMKLSum, SimpleMKL, load
from cuelearn.mkl.gmkl import GMKL
from cuelearn.mkl.multilabel import is_indicator, mean_auc, signs_of
from cuelearn.mkl.vskl import VSKL

OPTIONS = {MLMKLSA: {"random_state": 0, "n_iter": 60}, MLMKLSum: {"n_iter": 40}, LpMKL: {"p": 1.5}}
SHARED = [MLMKLSA, MLMKLSum]  # for several labels by design: a single column is an indicator matrix
ONE_BY_ONE = [SimpleMKL, SILPMKL, LpMKL]
PER_CLASS = [GMKL, VSKL, *ONE_BY_ONE]
SIX = [*SHARED, GMKL, VSKL, SimpleMKL, AverageKernelSVM]

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


toy = functools.partial(several_labels, n=60, noise=0.6)


def make(cls, kernels, **options):
    return cls(kernels, **{**OPTIONS.get(cls, {}), **options})


def quietly(model, X, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, y)


def constants(Y):
    """Column 1 without positives, column 2 without negatives."""
    Y = Y.copy()
    Y[:, 1], Y[:, 2] = Y.min(), 1
    return Y


# ------------------------------------------------------------------ columns


@pytest.mark.parametrize(
    "cls, columns", [(cls, 2) for cls in (*SHARED, GMKL, AverageKernelSVM)] + [(cls, 1) for cls in SHARED]
)
def test_scorers_take_indicator_columns(cls, columns):
    """Two columns of 0 and 1 look like two classes; one like labels of two."""
    X, Y, cues = toy(m=2)
    Y, folds = Y[:, :columns], KFold(3)
    model = make(cls, cues).fit(X, Y)
    assert model.classes_.tolist() == [0, 1] and model.n_outputs_ == columns
    wanted = {"roc_auc": [], "accuracy": []}
    for train, test in folds.split(X):
        scores = make(cls, cues).fit(X[train], Y[train]).decision_function(X[test])
        wanted["roc_auc"].append(
            np.mean([roc_auc_score(y, s) for y, s in zip(Y[test].T, scores.T, strict=True)])
        )
        wanted["accuracy"].append(np.mean(((scores > 0) == Y[test]).all(axis=1)))
    for scoring, values in wanted.items():
        assert_allclose(cross_val_score(make(cls, cues), X, Y, scoring=scoring, cv=folds), values, rtol=1e-12)
    assert cross_val_predict(make(cls, cues), X, Y, cv=folds).shape == (60, columns)


@pytest.mark.parametrize("cls", SHARED)
def test_one_column_is_a_problem_of_two_classes(cls):
    X, Y, cues = toy()
    model, two = make(cls, cues).fit(X, Y[:, :1]), make(cls, cues).fit(X, Y[:, 0])
    assert model.classes_.tolist() == [0, 1] and model.n_outputs_ == 1
    assert model.indicator_ and model.dual_coef_.shape[1] == 1
    assert model.skipped_classes_.size == two.skipped_classes_.size == 0
    scores, wanted = model.decision_function(X), two.decision_function(X)
    assert scores.shape == model.predict(X).shape == (60, 1) and wanted.shape == (60,)
    assert_allclose(scores[:, 0], wanted, rtol=1e-4, atol=1e-4)
    assert_array_equal(model.predict(X)[:, 0], two.predict(X))
    with pytest.warns(DataConversionWarning, match="column-vector y"):  # elsewhere it holds class labels
        assert not GMKL(cues).fit(X, Y[:, :1]).indicator_


@pytest.mark.parametrize("cls", SIX)
def test_a_column_for_each_label(cls):
    X, Y, cues = several_labels()
    model, other = (quietly(make(cls, cues), X, y) for y in (Y, 2 * Y - 1))
    scores = model.decision_function(X)
    assert scores.shape == (80, 4) and model.dual_coef_.shape == (model.support_.size, 4)
    assert (model.predict(X) == Y).mean() > 0.85
    assert_array_equal(scores, other.decision_function(X))
    cross = KernelBank(cues, X).stack[:, :, model.support_].astype(float)
    weights = np.broadcast_to(model.kernel_weights_, (4, 3))
    wanted = np.einsum("ca,ain,nc->ic", weights, cross, model.dual_coef_) + getattr(model, "intercept_", 0.0)
    assert_allclose(scores, wanted, rtol=1e-4, atol=1e-4)
    if cls in SHARED:
        weights = model.kernel_weights_
        assert weights.shape == (3,) and abs(weights.sum() - 1.0) < 1e-12 and weights[2] < weights[:2].sum()
    if cls in (SimpleMKL, AverageKernelSVM):  # column by column the binary problem alone
        for k in range(4):
            alone = make(cls, cues).fit(X, Y[:, k]).decision_function(X)
            assert_allclose(scores[:, k], alone, rtol=1e-3, atol=1e-3)


CODINGS = {
    "integers": lambda Y: Y,
    "floats": lambda Y: Y.astype(float),
    "truth values": lambda Y: Y.astype(bool),
    "sparse": sparse.csr_matrix,
    "lists": lambda Y: Y.tolist(),
    "a table": pd.DataFrame,
    "signs": lambda Y: 2 * Y - 1,
    "float signs": lambda Y: 2.0 * Y - 1.0,
    "lists of signs": lambda Y: (2 * Y - 1).tolist(),
}


@pytest.mark.parametrize("coding", CODINGS)
@pytest.mark.parametrize("cls", [MLMKLSum, GMKL, AverageKernelSVM])
def test_predict_answers_in_the_coding_of_y(cls, coding):
    X, Y, cues = toy(n=40, m=2)
    coded, no = CODINGS[coding](Y), -1 if "signs" in coding else 0
    for model, given in ((make(cls, cues), X), (make(cls, "precomputed"), KernelBank(cues, X).stack)):
        model.fit(given, coded)
        assert set(np.unique(model.predict(given))) == {no, 1} and model.coding_.tolist() == [no, 1]
        wanted = np.mean(((model.decision_function(given) > 0) == Y).all(axis=1))
        assert model.score(given, coded) == pytest.approx(wanted) and wanted > 0.5


def test_a_model_forgets_the_labels_of_an_earlier_fit(tmp_path):
    X, Y, cues = toy()
    model = AverageKernelSVM(cues).fit(X, 2 * Y - 1).fit(X, np.where(Y[:, 0] > 0, "yes", "no"))
    assert not hasattr(model, "coding_") and model.n_outputs_ == 1 and set(model.predict(X)) == {"yes", "no"}
    model.save(tmp_path / "labels.npz")
    assert_array_equal(load(tmp_path / "labels.npz").predict(X), model.predict(X))
    model.fit(X, Y)
    assert model.n_outputs_ == 4 and model.classes_.tolist() == [0, 1, 2, 3]
    assert model.predict(X).shape == (60, 4)


# ------------------------------------------------------------------ classes left out


@pytest.mark.parametrize("cls", PER_CLASS)
def test_classes_left_out_have_no_weights_and_no_objective(cls):
    X, Y, cues = toy()
    model, few = quietly(make(cls, cues), X, constants(Y)), quietly(make(cls, cues), X, Y[:, [0, 3]])
    for name in ("kernel_weights_", "objectives_", "dual_gaps_"):
        assert_allclose(getattr(model, name)[[0, 3]], getattr(few, name), rtol=1e-7)
    assert (model.kernel_weights_[[1, 2]] == 0.0).all() and (model.path_[:, [1, 2]] == 0.0).all()
    assert_allclose(model.path_[:, [0, 3]], few.path_, rtol=1e-7)
    assert np.isnan(model.objectives_[[1, 2]]).all() and np.isnan(model.dual_gaps_[[1, 2]]).all()
    assert model.objective_ == pytest.approx(np.nansum(model.objectives_))
    assert model.dual_gap_ == pytest.approx(np.nansum(model.dual_gaps_))
    scores = model.decision_function(X)
    assert_allclose(scores[:, [0, 3]], few.decision_function(X), rtol=1e-5, atol=1e-6)
    assert not model.dual_coef_[:, [1, 2]].any()
    assert not model.history_[["objective", "dual_gap", "seconds"]].isna().any(axis=None)
    with pytest.raises(ValueError, match="y must have a class with positive and negative samples"):
        make(cls, cues).fit(X, np.ones_like(Y))


@pytest.mark.parametrize("cls", [*SIX, SILPMKL, LpMKL])
def test_classes_left_out_are_constants_in_the_coding_of_y_and_named_at_the_caller_s_line(cls, tmp_path):
    X, Y, cues = toy()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = make(cls, cues).fit(X, constants(2 * Y - 1))
    notes = [w for w in caught if "not trained: [1, 2]" in str(w.message)]
    assert len(notes) == 1 and notes[0].filename == __file__
    scores = model.decision_function(X)
    assert model.skipped_classes_.tolist() == [1, 2]
    assert np.isfinite(scores).all() and (scores[:, 1] == -1.0).all() and (scores[:, 2] == 1.0).all()
    assert (model.predict(X)[:, [1, 2]] == [-1, 1]).all() and model.score(X, model.predict(X)) == 1.0
    if cls in SHARED:
        assert model.gamma_[1] == model.gamma_[2] == 0.0
    auc = mean_auc(scores, constants(Y))
    assert auc.skipped == [1, 2] and np.isnan(auc.per_class[[1, 2]]).all()
    each = [average_precision_score(Y[:, k], scores[:, k]) for k in (0, 3)]
    assert auc.mean == pytest.approx(np.mean(each))

    model.save(tmp_path / "model.npz")
    loaded = load(tmp_path / "model.npz")
    assert type(loaded) is cls and loaded.indicator_ and loaded.n_outputs_ == 4
    assert_allclose(loaded.decision_function(X), scores, rtol=1e-6, atol=1e-6)
    assert_array_equal(loaded.predict(X), model.predict(X))
    for name in ("path_", "skipped_classes_", "objectives_"):
        if hasattr(model, name):
            assert_array_equal(getattr(loaded, name), getattr(model, name))


def test_prediction_reads_only_kernels_with_a_weight():
    X, Y, cues = toy(n=100)
    X = X * np.r_[np.ones(4), 0.0, 1.0, 1.0]
    model = SimpleMKL([*cues, ("nothing", Linear(), slice(4, 5))], tol=1e-4)
    used = np.flatnonzero(quietly(model, X, constants(Y)).kernel_weights_[[0, 3]].any(axis=0))
    assert 0 < used.size < 4
    read, cross = [], model.bank_.cross

    def watched(new, kernels=None, **options):
        read.append(np.asarray(kernels).tolist())
        return cross(new, kernels=kernels, **options)

    model.bank_.cross = watched
    model.decision_function(X)
    assert read == [used.tolist()]


# ------------------------------------------------------------------ weights over time


@pytest.mark.parametrize("cls", ONE_BY_ONE)
def test_path_goes_with_the_history(cls):
    X, Y, cues = toy()
    model = cls(cues).fit(X, Y)
    assert model.path_.shape == (model.n_iter_ + 1, 4, 3) and len(model.history_) == model.n_iter_ > 1
    assert model.history_["seconds"].is_monotonic_increasing and (model.history_["seconds"] > 0.0).all()
    assert np.ptp(model.path_[0]) == 0.0 and (model.path_ >= 0.0).all()
    power = model.p_ / (2.0 - model.p_) if cls is LpMKL else 1.0
    assert_allclose((model.path_**power).sum(axis=-1), 1.0, rtol=1e-9)
    for k in range(4):  # the best point is among those that were tried
        assert (model.path_[:, k] == model.kernel_weights_[k]).all(axis=1).any()
    three, two = cls(cues).fit(X, Y[:, :3].argmax(axis=1)), cls(cues).fit(X, Y[:, 0])
    assert three.path_.shape == (three.n_iter_ + 1, 3, 3) and two.path_.shape == (two.n_iter_ + 1, 2, 3)
    assert_array_equal(two.path_[:, 0], two.path_[:, 1])
    assert three.objectives_.shape == (3,) and two.objectives_.shape == two.dual_gaps_.shape == (1,)


def test_average_kernel_has_a_history_of_one_row():
    X, Y, cues = toy(n=80)
    model = quietly(AverageKernelSVM(cues, C=2.0), X, constants(Y))
    (row,) = model.history_.to_dict("records")
    assert row["n_updates"] == 2 and row["seconds"] > 0.0 and row["n_support"] == model.support_.size
    assert_array_equal(model.path_, np.full((2, 3), 1.0 / 3.0))
    kernel, wanted = KernelBank(cues, X).stack.mean(axis=0, dtype=np.float64), 0.0
    for k in (0, 3):
        machine = SVC(C=2.0, kernel="precomputed", tol=1e-6).fit(kernel, Y[:, k])
        coef, signs = np.zeros(80), 2.0 * Y[:, k] - 1.0
        coef[machine.support_] = machine.dual_coef_[0]
        losses = np.maximum(0.0, 1.0 - signs * machine.decision_function(kernel))
        wanted += 0.5 * coef @ kernel @ coef + 2.0 * losses.sum()
    assert row["objective"] == pytest.approx(wanted, rel=1e-2)
    for y, solved in ((Y[:, 0], 1), (Y[:, :3].argmax(axis=1), 3), (Y, 4)):
        assert AverageKernelSVM(cues).fit(X, y).history_["n_updates"].tolist() == [solved]
    best = BestKernelSVM(cues).fit(X, Y[:, 0])
    assert len(best.history_) == 1
    assert_array_equal(best.path_, [best.kernel_weights_] * 2)


# ------------------------------------------------------------------ means of AUC


def test_mean_auc_leaves_out_what_was_not_trained():
    X, Y, cues = toy()
    model = quietly(AverageKernelSVM(cues), X[:30], np.c_[np.zeros(30, int), Y[:30, 1:]])
    scores = model.decision_function(X[30:])
    kept, every = mean_auc(scores, Y[30:], skip=model.skipped_classes_), mean_auc(scores, Y[30:])
    assert kept.skipped == [0] and np.isnan(kept.per_class[0]) and every.skipped == []
    assert_array_equal(kept.per_class[1:], every.per_class[1:])
    assert kept.mean == pytest.approx(every.per_class[1:].mean()) and kept.mean > every.mean
    targets = Y[30:].copy()
    targets[:, 2] = 1
    assert (
        mean_auc(scores, targets, skip=[0]).skipped
        == mean_auc(scores, targets, skip=(2, 0, 2)).skipped
        == [0, 2]
    )
    nothing = mean_auc(scores, targets, skip=range(4))
    assert np.isnan(nothing.mean) and nothing.skipped == [0, 1, 2, 3]
    for bad in ([4], [-1], [0.5], "0", 0, [[0]], [True], ["a"], [0, [1]]):
        with pytest.raises(ValueError, match="skip must hold numbers of classes, 0 to 3"):
            mean_auc(scores, Y[30:], skip=bad)


def test_mean_auc_takes_all_codings():
    rng = np.random.default_rng(0)
    Y, scores = rng.integers(0, 2, size=(30, 3)), rng.normal(size=(30, 3))
    each = [average_precision_score(Y[:, k], scores[:, k]) for k in range(3)]
    for coding, change in CODINGS.items():
        assert mean_auc(scores, change(Y)).mean == pytest.approx(np.mean(each)), coding
        for column in (Y[:, :1], Y[:, 0]):
            if column.ndim == 2 or coding not in ("sparse", "a table"):
                assert mean_auc(scores[:, 0], change(column)).mean == pytest.approx(each[0])
    for values in (scores.tolist(), pd.DataFrame(scores)):
        assert mean_auc(values, Y).mean == pytest.approx(np.mean(each))
    assert mean_auc(scores[:, :1], Y[:, 0]).mean == pytest.approx(each[0])


SCORES, TARGETS = np.linspace(-1.0, 1.0, 27).reshape(9, 3), np.arange(27).reshape(9, 3) % 2


@pytest.mark.parametrize(
    "scores, targets, message",
    [
        (np.where(TARGETS, np.nan, SCORES), TARGETS, "scores must be finite"),
        (np.where(TARGETS, np.inf, SCORES), TARGETS, "scores must be finite"),
        (SCORES.astype(str), TARGETS, "scores must hold numbers"),
        ([["a"] * 3] * 9, TARGETS, "scores must hold numbers"),
        ([[1.0], [1.0, 2.0]], TARGETS, "scores must be an array"),
        (SCORES[None], TARGETS, "scores must have shape"),
        (1.0, TARGETS, "scores must have shape"),
        (None, TARGETS, "scores must"),
        (SCORES, TARGETS[:, :2], "scores must have the shape of"),
        (SCORES[:, 0], TARGETS, "scores must have the shape of"),
        (SCORES[:5], TARGETS, "targets must have one row per sample, 5"),
        (SCORES, TARGETS[None], "targets must have one row"),
        (SCORES[:, 0], np.arange(9) % 3, "targets must hold 0 and 1"),
        (SCORES, TARGETS + 1, "targets must hold 0 and 1"),
        (SCORES, TARGETS.astype(str), "targets must hold 0 and 1"),
        (SCORES[:, 0], np.array(list("ababababa")), "targets must hold 0 and 1"),
        (SCORES, np.where(TARGETS, 0.7, 0.1), "targets must hold 0 and 1"),
        (SCORES, np.where(TARGETS, np.nan, 1.0), "targets must hold 0 and 1"),
        (SCORES, [(0, 1), (2,)], "targets must be an array"),
        (SCORES, None, "targets must"),
    ],
)
def test_mean_auc_refuses_the_rest_with_one_sentence(scores, targets, message):
    with pytest.raises(ValueError, match=rf"^{message}") as caught:
        mean_auc(scores, targets)
    assert "\n" not in str(caught.value)


# ------------------------------------------------------------------ errors and warnings

FORMS = r"^y must be class labels, shape \(n,\), or an indicator matrix"
VALUES = r"^y must hold 0 and 1 \(or -1 and 1\)"
PATTERN = np.arange(80).reshape(40, 2) % 2
BAD_LABELS = [
    ([(0, 1), (2,)] * 20, FORMS),
    ([{0, 1}, {2}] * 20, FORMS),
    (np.array([[0, 1], [2]] * 20, dtype=object), FORMS),
    (pd.Series([[0, 1], [2]] * 20), FORMS),
    (np.zeros((40, 2, 2), int), FORMS),
    (3, FORMS),
    (np.where(PATTERN, "yes", "no"), VALUES),
    (PATTERN.astype(str), VALUES),
    ([("a", "b"), ("c", "d")] * 20, VALUES),
    (PATTERN + 1, VALUES),
]


@pytest.mark.parametrize("y, message", BAD_LABELS)
@pytest.mark.parametrize("cls", SIX)
def test_bad_labels_are_one_error_that_names_y(cls, y, message):
    X, _, cues = toy(n=40)
    for model, data in ((make(cls, cues), X), (make(cls, "precomputed"), KernelBank(cues, X).stack)):
        with pytest.raises(ValueError, match=message) as caught:
            model.fit(data, y)
        assert "\n" not in str(caught.value)


def test_matrices_of_objects_and_methods_that_take_none():
    X, Y, cues = toy(n=40)
    assert_array_equal(signs_of(Y.astype(object), 40), signs_of(Y, 40))
    assert_array_equal(signs_of(pd.DataFrame(Y).astype("Int64"), 40), signs_of(Y, 40))
    assert not is_indicator(np.array(["a", 3], dtype=object))
    assert is_indicator([[0, 1], [1, 0]]) and not is_indicator(None) and not is_indicator([["a"], ["b"]])
    for bad, word in ((np.zeros((3, 2), int), "one row per sample"), (np.zeros((2, 0)), "a column")):
        with pytest.raises(ValueError, match=word):
            signs_of(bad, 2)
    for y in (constants(Y), Y[:, :2], sparse.csr_matrix(Y)):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(ValueError, match="y must be class labels to choose a kernel"):
                BestKernelSVM(cues).fit(X, y)


def test_gmkl_at_large_C_on_linear_kernels_is_certified_in_float64_and_says_so():
    """What a kernel costs is a small difference of large numbers there, below what float32 can hold."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(70, 12))
    Y = (X[:, :2] + rng.normal(size=(70, 2)) > 0).astype(int)
    columns = [slice(4 * i, 4 * i + 4) for i in range(3)]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        cues = [(f"l{i}", Linear(), part) for i, part in enumerate(columns)]
        coarse = GMKL(cues, C=1000.0, max_iter=40).fit(X, Y)
    parts = [X[:, part] / np.linalg.norm(X[:, part], axis=1, keepdims=True) for part in columns]
    fine = GMKL("precomputed", C=1000.0).fit(np.array([F @ F.T for F in parts]), Y)
    assert fine.converged_ and (fine.dual_gaps_ <= 1e-2 * fine.objectives_).all()
    lower = coarse.objectives_ - coarse.dual_gaps_
    assert coarse.converged_ or any("did not reach tol" in str(w.message) for w in caught)
    assert (lower <= fine.objectives_ * (1.0 + 1e-3)).all()

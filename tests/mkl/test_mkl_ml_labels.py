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

OPTIONS = {MLMKLSA: {"random_state": 0, "n_iter": 60}, MLMKLSum: {"n_iter": 40}}
SIX = [MLMKLSA, MLMKLSum, GMKL, VSKL, SimpleMKL, AverageKernelSVM]
ASKED = [MLMKLSA, MLMKLSum]  # for labels: a single column is one
ONE_BY_ONE = [SimpleMKL, SILPMKL, LpMKL]
PER_CLASS = [GMKL, VSKL, *ONE_BY_ONE]

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


# ------------------------------------------------------------------ one column


@pytest.mark.parametrize("cls", ASKED)
def test_scorers_take_one_column(cls):
    X, Y, cues = toy()
    column, folds = Y[:, :1], KFold(3)
    by_hand = {"roc_auc": [], "average_precision": [], "accuracy": []}
    for train, test in folds.split(X):
        model = make(cls, cues).fit(X[train], column[train])
        scores, truth = model.decision_function(X[test])[:, 0], Y[test, 0]
        by_hand["roc_auc"].append(roc_auc_score(truth, scores))
        by_hand["average_precision"].append(average_precision_score(truth, scores))
        by_hand["accuracy"].append(np.mean((scores > 0) == truth))
    for scoring, wanted in by_hand.items():
        assert_allclose(
            cross_val_score(make(cls, cues), X, column, scoring=scoring, cv=folds), wanted, rtol=1e-12
        )
    assert np.mean(by_hand["roc_auc"]) > 0.7
    for scoring in ("f1", "precision", "balanced_accuracy"):
        assert_allclose(
            cross_val_score(make(cls, cues), X, column, scoring=scoring, cv=folds),
            cross_val_score(make(cls, cues), X, Y[:, 0], scoring=scoring, cv=folds),
            atol=1e-12,
        )
    assert cross_val_predict(make(cls, cues), X, column, cv=folds).shape == (60, 1)


@pytest.mark.parametrize("cls", PER_CLASS)
def test_elsewhere_a_column_holds_class_labels(cls):
    X, Y, cues = toy()
    with pytest.warns(DataConversionWarning, match="column-vector y"):
        model = make(cls, cues).fit(X, Y[:, :1])
    wanted = make(cls, cues).fit(X, Y[:, 0])
    assert not model.indicator_ and model.predict(X).shape == (60,)
    assert_array_equal(model.decision_function(X), wanted.decision_function(X))


@pytest.mark.parametrize("cls", ASKED)
def test_one_column_is_a_problem_of_two_classes(cls):
    X, Y, cues = toy()
    model, two = make(cls, cues).fit(X, Y[:, :1]), make(cls, cues).fit(X, Y[:, 0])
    assert model.classes_.tolist() == [0, 1] and model.n_outputs_ == 1
    assert model.indicator_ and model.dual_coef_.shape[1] == 1
    assert model.skipped_classes_.size == two.skipped_classes_.size == 0
    found, wanted = model.decision_function(X), two.decision_function(X)
    assert found.shape == model.predict(X).shape == (60, 1) and wanted.shape == (60,)
    assert_allclose(found[:, 0], wanted, rtol=1e-4, atol=1e-4)
    assert_array_equal(model.predict(X)[:, 0], two.predict(X))
    signed = make(cls, cues).fit(X, 2 * Y[:, :1] - 1)
    assert signed.classes_.tolist() == [-1, 1]
    assert_array_equal(signed.predict(X), 2 * model.predict(X) - 1)


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


@pytest.mark.parametrize("cls", SIX)
def test_scorers_take_several_columns(cls):
    X, Y, cues = toy(m=2)  # two columns: numbers 0 and 1, which look like two classes
    model = make(cls, cues).fit(X, Y)
    assert model.classes_.tolist() == [0, 1] and model.n_outputs_ == 2
    folds, wanted = KFold(3), {"roc_auc": [], "accuracy": []}
    for train, test in folds.split(X):
        scores = make(cls, cues).fit(X[train], Y[train]).decision_function(X[test])
        wanted["roc_auc"].append(np.mean([roc_auc_score(Y[test, k], scores[:, k]) for k in range(2)]))
        wanted["accuracy"].append(np.mean(((scores > 0) == Y[test]).all(axis=1)))
    for scoring, values in wanted.items():
        assert_allclose(cross_val_score(make(cls, cues), X, Y, scoring=scoring, cv=folds), values, rtol=1e-12)
    for scoring in ("average_precision", "f1_macro"):
        assert cross_val_score(make(cls, cues), X, Y, scoring=scoring, cv=folds).mean() > 0.5


# ------------------------------------------------------------------ codings


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
@pytest.mark.parametrize("cls", SIX)
def test_predict_answers_in_the_coding_of_y(cls, coding):
    X, Y, cues = toy(n=40, m=2)
    coded = CODINGS[coding](Y)
    model = make(cls, cues).fit(X, coded)
    found, no = model.predict(X), -1 if "signs" in coding else 0
    assert set(np.unique(found)) == {no, 1} and model.coding_.tolist() == [no, 1]
    wanted = np.mean(((model.decision_function(X) > 0) == Y).all(axis=1))
    assert model.score(X, coded) == pytest.approx(wanted) and wanted > 0.5


def test_precomputed_kernels_take_every_coding():
    X, Y, cues = toy(n=40)
    stack = KernelBank(cues, X).stack
    for coding, change in CODINGS.items():
        model = AverageKernelSVM("precomputed").fit(stack, change(Y))
        assert set(np.unique(model.predict(stack))) == {-1 if "signs" in coding else 0, 1}, coding


def test_a_model_forgets_the_labels_of_an_earlier_fit(tmp_path):
    X, Y, cues = toy()
    model = AverageKernelSVM(cues).fit(X, 2 * Y[:, :1] - 1).fit(X, np.where(Y[:, 0] > 0, "yes", "no"))
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
    options = {"p": 1.5} if cls is LpMKL else {}
    model = quietly(make(cls, cues, **options), X, constants(Y))
    few = quietly(make(cls, cues, **options), X, Y[:, [0, 3]])
    assert model.skipped_classes_.tolist() == [1, 2]
    for name in ("kernel_weights_", "objectives_", "dual_gaps_"):
        found, wanted = getattr(model, name), getattr(few, name)
        assert len(found) == 4
        assert_allclose(found[[0, 3]], wanted, rtol=1e-7)
    assert (model.kernel_weights_[[1, 2]] == 0.0).all() and (model.path_[:, [1, 2]] == 0.0).all()
    assert_allclose(model.path_[:, [0, 3]], few.path_, rtol=1e-7)
    assert np.isnan(model.objectives_[[1, 2]]).all() and np.isnan(model.dual_gaps_[[1, 2]]).all()
    assert model.objective_ == pytest.approx(np.nansum(model.objectives_))
    assert model.dual_gap_ == pytest.approx(np.nansum(model.dual_gaps_))
    scores = model.decision_function(X)
    assert (scores[:, 1] == -1.0).all() and (scores[:, 2] == 1.0).all()
    assert_allclose(scores[:, [0, 3]], few.decision_function(X), rtol=1e-5, atol=1e-6)
    assert (model.predict(X)[:, [1, 2]] == [0, 1]).all() and not model.dual_coef_[:, [1, 2]].any()
    assert not model.history_[["objective", "dual_gap", "seconds"]].isna().any(axis=None)
    assert np.isfinite(mean_auc(scores, constants(Y)).mean)
    with pytest.raises(ValueError, match="y must have a class with positive and negative samples"):
        make(cls, cues).fit(X, np.ones_like(Y))


def test_prediction_reads_only_kernels_with_a_weight():
    X, Y, cues = toy(n=100)
    model = quietly(
        SimpleMKL([*cues, ("nothing", Linear(), slice(4, 5))], tol=1e-4),
        X * np.r_[np.ones(4), 0.0, 1.0, 1.0],
        constants(Y),
    )
    used = np.flatnonzero(model.kernel_weights_[[0, 3]].any(axis=0))
    assert 0 < used.size < 4
    read, cross = [], model.bank_.cross

    def watched(new, kernels=None, **options):
        read.append(np.asarray(kernels).tolist())
        return cross(new, kernels=kernels, **options)

    model.bank_.cross = watched
    model.decision_function(X)
    assert read == [used.tolist()]


@pytest.mark.parametrize("cls", SIX)
def test_classes_left_out_in_the_coding_of_y(cls):
    X, Y, cues = toy()
    model = quietly(make(cls, cues), X, constants(2 * Y - 1))
    scores = model.decision_function(X)
    assert model.skipped_classes_.tolist() == [1, 2]
    assert np.isfinite(scores).all() and (scores[:, 1] == -1.0).all() and (scores[:, 2] == 1.0).all()
    assert (model.predict(X)[:, [1, 2]] == [-1, 1]).all() and model.score(X, model.predict(X)) == 1.0
    if cls in (MLMKLSA, MLMKLSum):
        assert model.gamma_[1] == model.gamma_[2] == 0.0
    found = mean_auc(scores, constants(Y))
    assert found.skipped == [1, 2] and np.isnan(found.per_class[[1, 2]]).all()
    assert found.mean == pytest.approx(
        np.mean([average_precision_score(Y[:, k], scores[:, k]) for k in (0, 3)])
    )


def test_warning_about_classes_left_out_names_the_caller_s_line():
    X, Y, cues = toy()
    for cls in SIX:
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            make(cls, cues).fit(X, constants(Y))
        said = [w for w in said if "not trained: [1, 2]" in str(w.message)]
        assert len(said) == 1 and said[0].filename == __file__


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
    for k in range(4):  # the best point is one that was tried
        assert (model.path_[:, k] == model.kernel_weights_[k]).all(axis=1).any()
    three, two = cls(cues).fit(X, Y[:, :3].argmax(axis=1)), cls(cues).fit(X, Y[:, 0])
    assert three.path_.shape == (three.n_iter_ + 1, 3, 3) and two.path_.shape == (two.n_iter_ + 1, 2, 3)
    assert_array_equal(two.path_[:, 0], two.path_[:, 1])
    assert three.objectives_.shape == (3,) and two.objectives_.shape == two.dual_gaps_.shape == (1,)


def test_average_kernel_has_a_history_of_one_row():
    X, Y, cues = toy(n=80)
    model = quietly(AverageKernelSVM(cues, C=2.0), X, constants(Y))
    history = model.history_
    assert len(history) == 1
    assert {"step", "seconds", "n_updates", "n_support", "objective"} <= set(history.columns)
    assert history["n_updates"][0] == 2 and history["seconds"][0] > 0.0
    assert history["n_support"][0] == model.support_.size
    assert_array_equal(model.path_, np.full((2, 3), 1.0 / 3.0))
    kernel, wanted = KernelBank(cues, X).stack.mean(axis=0, dtype=np.float64), 0.0
    for k in (0, 3):
        machine = SVC(C=2.0, kernel="precomputed", tol=1e-6).fit(kernel, Y[:, k])
        coef, signs = np.zeros(80), 2.0 * Y[:, k] - 1.0
        coef[machine.support_] = machine.dual_coef_[0]
        wanted += (
            0.5 * coef @ kernel @ coef
            + 2.0 * np.maximum(0.0, 1.0 - signs * machine.decision_function(kernel)).sum()
        )
    assert history["objective"][0] == pytest.approx(wanted, rel=1e-2)
    for y, solved in ((Y[:, 0], 1), (Y[:, :3].argmax(axis=1), 3), (Y, 4)):
        assert AverageKernelSVM(cues).fit(X, y).history_["n_updates"].tolist() == [solved]
    best = BestKernelSVM(cues).fit(X, Y[:, 0])
    assert len(best.history_) == 1
    assert_array_equal(best.path_, [best.kernel_weights_] * 2)


@pytest.mark.parametrize(
    "cls, columns", [(cls, 4) for cls in [*SIX, SILPMKL, LpMKL]] + [(cls, 1) for cls in ASKED]
)
def test_saved_models_of_indicator_matrices(cls, columns, tmp_path):
    X, Y, cues = toy()
    model = quietly(make(cls, cues), X, constants(2 * Y - 1)[:, :columns])
    model.save(tmp_path / "model.npz")
    loaded = load(tmp_path / "model.npz")
    assert type(loaded) is cls and loaded.indicator_ and loaded.n_outputs_ == columns
    assert_allclose(loaded.decision_function(X), model.decision_function(X), rtol=1e-6, atol=1e-6)
    assert_array_equal(loaded.predict(X), model.predict(X))
    for name in ("path_", "classes_", "skipped_classes_", "objectives_"):
        if hasattr(model, name):
            assert_array_equal(getattr(loaded, name), getattr(model, name))
    pd.testing.assert_frame_equal(loaded.history_, model.history_)


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
    assert mean_auc(scores, targets, skip=[0]).skipped == [0, 2]
    assert mean_auc(scores, targets, skip=(2, 0, 2)).skipped == [0, 2]
    nothing = mean_auc(scores, targets, skip=range(4))
    assert np.isnan(nothing.mean) and nothing.skipped == [0, 1, 2, 3]
    for bad in ([4], [-1], [0.5], "0", 0, [[0]], [True], ["a"], [0, [1]]):
        with pytest.raises(ValueError, match="skip must hold numbers of classes, 0 to 3"):
            mean_auc(scores, Y[30:], skip=bad)


def test_mean_auc_takes_all_codings():
    rng = np.random.default_rng(0)
    Y, scores = rng.integers(0, 2, size=(30, 3)), rng.normal(size=(30, 3))
    wanted = np.mean([average_precision_score(Y[:, k], scores[:, k]) for k in range(3)])
    for coding, change in CODINGS.items():
        assert mean_auc(scores, change(Y)).mean == pytest.approx(wanted), coding
    assert (
        mean_auc(scores.tolist(), Y).mean == mean_auc(pd.DataFrame(scores), Y).mean == pytest.approx(wanted)
    )
    one = average_precision_score(Y[:, 0], scores[:, 0])
    for targets in (
        Y[:, 0],
        Y[:, :1],
        2 * Y[:, 0] - 1,
        Y[:, 0] > 0,
        Y[:, 0].tolist(),
        sparse.csc_matrix(Y[:, :1]),
    ):
        for values in (scores[:, 0], scores[:, :1]):
            assert mean_auc(values, targets).mean == pytest.approx(one)


def test_mean_auc_refuses_the_rest_with_one_sentence():
    rng = np.random.default_rng(0)
    Y, scores = rng.integers(0, 2, size=(9, 3)), rng.normal(size=(9, 3))
    unknown, endless = scores.copy(), scores.copy()
    unknown[3, 1], endless[3, 1] = np.nan, np.inf
    cases = [
        (unknown, Y, "scores must be finite"),
        (endless, Y, "scores must be finite"),
        (scores.astype(str), Y, "scores must hold numbers"),
        ([["a"] * 3] * 9, Y, "scores must hold numbers"),
        ([[1.0], [1.0, 2.0]], Y, "scores must be an array"),
        (scores[None], Y, "scores must have shape"),
        (1.0, Y, "scores must have shape"),
        (scores, Y[:, :2], "scores must have the shape of"),
        (scores[:, 0], Y, "scores must have the shape of"),
        (scores[:5], Y, "targets must have one row per sample, 5"),
        (scores, Y[None], "targets must have one row"),
        (scores, np.arange(9) % 3, "targets must hold 0 and 1"),
        (scores[:, 0], np.arange(9) % 3, "targets must hold 0 and 1"),
        (scores, Y + 1, "targets must hold 0 and 1"),
        (scores, Y.astype(str), "targets must hold 0 and 1"),
        (scores[:, 0], np.array(list("ababababa")), "targets must hold 0 and 1"),
        (scores, np.where(Y > 0, 0.7, 0.1), "targets must hold 0 and 1"),
        (scores, [(0, 1), (2,)], "targets must be an array"),
        (scores, np.where(Y > 0, np.nan, 1.0), "targets must hold 0 and 1"),
        (scores, None, "targets must"),
        (None, Y, "scores must"),
    ]
    for values, targets, words in cases:
        with pytest.raises(ValueError, match=rf"^{words}") as caught:
            mean_auc(values, targets)
        assert "\n" not in str(caught.value)


# ------------------------------------------------------------------ errors and warnings


BAD_FORMS = {
    "label sets": [(0, 1), (2,)] * 20,
    "sets": [{0, 1}, {2}] * 20,
    "lists in an array": np.array([[0, 1], [2]] * 20, dtype=object),
    "a series of lists": pd.Series([[0, 1], [2]] * 20),
    "three dimensions": np.zeros((40, 2, 2), int),
    "a number": 3,
}


@pytest.mark.parametrize("form", BAD_FORMS)
@pytest.mark.parametrize("cls", SIX)
def test_a_bad_form_is_one_error_that_names_y(cls, form):
    X, _, cues = toy(n=40)
    for model, data in ((make(cls, cues), X), (make(cls, "precomputed"), KernelBank(cues, X).stack)):
        with pytest.raises(
            ValueError, match=r"^y must be class labels, shape \(n,\), or an indicator matrix"
        ) as caught:
            model.fit(data, BAD_FORMS[form])
        assert "\n" not in str(caught.value)


def test_matrices_of_words_and_of_objects():
    X, Y, cues = toy(n=40)
    for bad in (np.where(Y > 0, "yes", "no"), Y.astype(str), [("a", "b"), ("c", "d")] * 20, Y + 1):
        with pytest.raises(ValueError, match=r"^y must hold 0 and 1 \(or -1 and 1\)"):
            AverageKernelSVM(cues).fit(X, bad)
    assert_array_equal(signs_of(Y.astype(object), 40), signs_of(Y, 40))
    assert_array_equal(signs_of(pd.DataFrame(Y).astype("Int64"), 40), signs_of(Y, 40))
    assert not is_indicator(np.array(["a", 3], dtype=object))
    with pytest.raises(ValueError, match="y must be class labels"):
        is_indicator([(0, 1), (2,)])
    assert is_indicator([[0, 1], [1, 0]]) and not is_indicator(None) and not is_indicator([["a"], ["b"]])
    for bad, word in ((np.zeros((3, 2), int), "one row per sample"), (np.zeros((2, 0)), "a column")):
        with pytest.raises(ValueError, match=word):
            signs_of(bad, 2)


def test_best_kernel_refuses_an_indicator_matrix_before_anything_else():
    X, Y, cues = toy()
    for y in (constants(Y), Y[:, :2], sparse.csr_matrix(Y)):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(ValueError, match="y must be class labels to choose a kernel"):
                BestKernelSVM(cues).fit(X, y)


def test_gmkl_at_large_C_on_linear_kernels_is_certified_in_float64_and_says_so():
    """What one kernel costs is a small difference of large numbers there, below what float32 can hold."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(70, 12))
    Y = (X[:, :2] + rng.normal(size=(70, 2)) > 0).astype(int)
    cues = [(f"l{i}", Linear(), slice(4 * i, 4 * i + 4)) for i in range(3)]
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        coarse = GMKL(cues, C=1000.0, max_iter=40).fit(X, Y)
    parts = [
        X[:, 4 * i : 4 * i + 4] / np.linalg.norm(X[:, 4 * i : 4 * i + 4], axis=1, keepdims=True)
        for i in range(3)
    ]
    fine = GMKL("precomputed", C=1000.0).fit(np.array([F @ F.T for F in parts]), Y)
    assert fine.converged_ and (fine.dual_gaps_ <= 1e-2 * fine.objectives_).all()
    lower = coarse.objectives_ - coarse.dual_gaps_
    assert coarse.converged_ or any("did not reach tol" in str(w.message) for w in said)
    assert (lower <= fine.objectives_ * (1.0 + 1e-3)).all()

"""Labels of several classes per sample, for all methods."""

import functools
import warnings

import numpy as np
import pandas as pd
import pytest
from mkl_data import several_labels
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.model_selection import KFold, cross_val_predict, cross_val_score

from cuelearn.kernels import KernelBank
from cuelearn.mkl import MLMKLSA, SILPMKL, AverageKernelSVM, BestKernelSVM, LpMKL, MLMKLSum, SimpleMKL, load
from cuelearn.mkl.perlabel import GMKL, VSKL
from cuelearn.mkl.rivals.perclass import mean_auc

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


# --- columns


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


@pytest.mark.parametrize("cls", SIX)
def test_a_column_for_each_label(cls):
    X, Y, cues = several_labels()
    model = quietly(make(cls, cues), X, Y)
    scores = model.decision_function(X)
    assert scores.shape == (80, 4) and model.dual_coef_.shape == (model.support_.size, 4)
    assert (model.predict(X) == Y).mean() > 0.85
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
    "truth values": lambda Y: Y.astype(bool),
    "sparse": sparse.csr_matrix,
    "lists": lambda Y: Y.tolist(),
    "a table": pd.DataFrame,
    "float signs": lambda Y: 2.0 * Y - 1.0,
}


@pytest.mark.parametrize("coding", CODINGS)
@pytest.mark.parametrize("cls", [MLMKLSum, AverageKernelSVM])
def test_predict_answers_in_the_coding_of_y(cls, coding):
    X, Y, cues = toy(n=40, m=2)
    coded, no = CODINGS[coding](Y), -1 if "signs" in coding else 0
    model = make(cls, cues).fit(X, coded)
    assert set(np.unique(model.predict(X))) == {no, 1}
    scores = model.decision_function(X)
    assert model.score(X, coded) == pytest.approx(np.mean(((scores > 0) == Y).all(axis=1)))
    each = [average_precision_score(Y[:, k], scores[:, k]) for k in range(2)]
    assert mean_auc(scores, coded).mean == pytest.approx(np.mean(each))
    # a second fit forgets the first one's labels
    model.fit(X, np.where(Y[:, 0] > 0, "yes", "no"))
    assert set(model.predict(X)) == {"yes", "no"}


# --- classes left out


@pytest.mark.parametrize("cls", [*SIX, SILPMKL, LpMKL])
def test_classes_left_out_are_constants_and_named_at_the_caller_s_line(cls, tmp_path):
    X, Y, cues = toy()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = make(cls, cues).fit(X, constants(2 * Y - 1))
    notes = [w for w in caught if "not trained: [1, 2]" in str(w.message)]
    assert len(notes) == 1 and notes[0].filename == __file__
    scores = model.decision_function(X)
    assert model.skipped_classes_.tolist() == [1, 2]
    assert np.isfinite(scores).all() and (scores[:, 1] == -1.0).all() and (scores[:, 2] == 1.0).all()
    assert (model.predict(X)[:, [1, 2]] == [-1, 1]).all()
    few = quietly(make(cls, cues), X, Y[:, [0, 3]])
    if cls is not MLMKLSA:  # which draws classes
        assert_allclose(scores[:, [0, 3]], few.decision_function(X), rtol=1e-5, atol=1e-6)
    if cls in PER_CLASS:
        for name in ("kernel_weights_", "objectives_", "dual_gaps_"):
            assert_allclose(getattr(model, name)[[0, 3]], getattr(few, name), rtol=1e-7)
        assert (model.kernel_weights_[[1, 2]] == 0.0).all() and np.isnan(model.objectives_[[1, 2]]).all()
        assert model.objective_ == pytest.approx(np.nansum(model.objectives_))
    auc = mean_auc(scores, constants(Y))
    assert auc.skipped == [1, 2] and np.isnan(auc.per_class[[1, 2]]).all()
    model.save(tmp_path / "model.npz")
    loaded = load(tmp_path / "model.npz")
    assert_allclose(loaded.decision_function(X), scores, rtol=1e-6, atol=1e-6)
    assert_array_equal(loaded.predict(X), model.predict(X))
    with pytest.raises(ValueError, match="y must have a class with positive and negative samples"):
        make(cls, cues).fit(X, np.ones_like(Y))


# --- means of AUC


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
    assert mean_auc(scores, targets, skip=(2, 0, 2)).skipped == [0, 2]
    assert np.isnan(mean_auc(scores, targets, skip=range(4)).mean)
    for bad in ([4], [-1], [0.5], "0"):
        with pytest.raises(ValueError, match="skip must be a list of integers from 0 to 3"):
            mean_auc(scores, Y[30:], skip=bad)


# --- errors


@pytest.mark.parametrize("cls", [MLMKLSum, GMKL, AverageKernelSVM])
def test_bad_labels_are_one_error_that_names_y(cls):
    X, Y, cues = toy(n=40)
    for y in ([(0, 1), (2,)] * 20, np.zeros((40, 2, 2), int), 3, np.where(Y, "yes", "no"), Y + 1):
        with pytest.raises(ValueError, match="^y must"):
            make(cls, cues).fit(X, y)


def test_what_several_labels_do_not_go_with():
    X, Y, cues = toy(n=40)
    for y in (constants(Y), sparse.csr_matrix(Y)):
        with pytest.raises(ValueError, match="y must be class labels to choose a kernel"):
            BestKernelSVM(cues).fit(X, y)
    for targets in (Y[:30], Y + 1):
        with pytest.raises(ValueError, match="^targets must"):
            mean_auc(Y.astype(float), targets)

"""A cue that a sample lacks is a zero block of kernels, in all estimators that take missing="zero"."""

import inspect

import numpy as np
import pandas as pd
import pytest
from estimators import CUES, ESTIMATORS, data, make
from plain_mkl import auto_p, conic_optimum
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.model_selection import GridSearchCV

from cuelearn.core.estimator import load
from cuelearn.kernels import RBF, KernelBank, KernelStack, Linear
from cuelearn.mkl import OBSCURE, OM2, UFOMKL
from cuelearn.mktl import MKTL
from cuelearn.omcl import OMCL, KernelPerceptron, MarginQuery, PassiveAggressive, ProjectronPlusPlus

TAKE = sorted(n for n, cls in ESTIMATORS.items() if "missing" in inspect.signature(cls).parameters)
TAKE.remove("PriorFeatures")  # which does not look at kernels
OF_KERNELS = [name for name in TAKE if name != "OMCL"]
PLACES = [[0, 1], [2, 3], [4, 5]]
FIXED = [("a", RBF(gamma=1.0), [0, 1]), ("b", Linear(), [2, 3]), ("c", RBF(gamma=0.5), [4, 5])]


def draw(n=60, seed=0):
    """Samples, labels, samples with NaN in some cues, and a mask of these."""
    X, y = data("OBSCURE", n, seed)
    absent = np.random.default_rng(seed).random((3, n)) < 0.3
    absent[0, absent.all(axis=0)] = False
    absent[:, :4] = np.array([0, 0, 1], dtype=bool)[:, None]  # a whole batch lacks the last
    with_nan = X.copy()
    for lacks, columns in zip(absent, PLACES, strict=True):
        with_nan[np.ix_(lacks, columns)] = np.nan
    return X, y, with_nan, absent


def stacks(with_nan, absent, cues=CUES):
    """Kernels with zeros, and with NaN, for absent cues."""
    zeroed = KernelBank(cues, with_nan, missing="zero").stack
    unknown = zeroed.copy()
    for kernel, lacks in zip(unknown, absent, strict=True):
        kernel[lacks] = kernel[:, lacks] = np.nan
    return zeroed, unknown


@pytest.mark.parametrize("name", OF_KERNELS)
def test_equal_to_zero_blocks(name, tmp_path):
    _, y, with_nan, absent = draw()
    zeroed, unknown = stacks(with_nan, absent)
    wanted = make(name, kernels="precomputed").fit(zeroed, y)
    answer = "decision_function" if hasattr(wanted, "decision_function") else "predict"
    target = getattr(wanted, answer)(zeroed[:, :10])
    given = "precomputed"
    stack = KernelStack(unknown, missing="zero")
    forms = [(given, unknown, unknown[:, :10]), (given, stack, unknown[:, :10]), (given, stack, stack[:10])]
    for kernels, X, new in (*forms, (CUES, with_nan, pd.DataFrame(with_nan[:10]))):
        model = make(name, kernels=kernels, missing="zero").fit(X, y)
        np.testing.assert_array_equal(model.dual_coef_, wanted.dual_coef_)
        model.save(tmp_path / "model")
        for each in (model, load(tmp_path / "model")):
            np.testing.assert_allclose(getattr(each, answer)(new), target, atol=1e-5 * np.abs(target).max())
    assert model.__sklearn_tags__().input_tags.allow_nan


@pytest.mark.parametrize("name", TAKE)
def test_refused(name):
    X, y, with_nan, absent = draw()
    model = make(name)
    with pytest.raises(ValueError, match="NaN"):
        model.fit(with_nan, y)
    model.set_params(missing="zero").fit(with_nan, y)
    partial, empty = with_nan.copy(), with_nan.copy()
    partial[7] = X[7]
    partial[7, 1] = empty[5] = np.nan
    wrong = [("'shape': sample 7 must", model, partial), ("none of sample 5", model, empty)]
    if name in OF_KERNELS:
        _, unknown = stacks(with_nan, absent)
        given = make(name, kernels="precomputed", missing="zero").fit(unknown, y)
        unknown[1, 8] = np.where(np.arange(60) == np.flatnonzero(~absent[1])[0], 1.0, np.nan)
        wrong.append(("kernel 1 of X: sample 8 must", given, unknown))
    for match, fitted, new in wrong:
        with pytest.raises(ValueError, match=match):
            fitted.predict(new)
        with pytest.raises(ValueError, match=match):
            fitted.fit(new, y)


def test_certificates_hold():
    """The optimum of a conic solver on the matrices with zero rows is within the gap."""
    _, y, with_nan, absent = draw(n=36)
    zeroed, _ = stacks(with_nan, absent)
    model = UFOMKL(CUES, C=1.0, tol=1e-3, missing="zero", random_state=0).fit(with_nan, y)
    optimum, _ = conic_optimum(zeroed.astype(np.float64), y, auto_p(3), 1.0)
    assert model.objective_ - model.dual_gap_ - 1e-6 <= optimum <= model.objective_ + 1e-6


def test_grid_search():
    _, y, with_nan, _ = draw()
    search = GridSearchCV(OBSCURE(CUES, missing="zero", random_state=0), {"C": [0.1, 10.0]}, cv=2)
    assert search.fit(with_nan, y).best_score_ > 0.5


STREAMS = {
    "OM2": (OM2(FIXED), OM2("precomputed")),
    "OMCL": (
        OMCL([(name, KernelPerceptron(kernel), columns) for name, kernel, columns in FIXED]),
        OMCL([(name, KernelPerceptron("precomputed"), j) for j, (name, _, _) in enumerate(FIXED)]),
    ),
}


@pytest.mark.parametrize("name", STREAMS)
def test_streams(name, tmp_path):
    """Also from a first batch without one of the cues."""
    _, y, with_nan, absent = draw()
    zeroed, unknown = stacks(with_nan, absent, FIXED)
    computed, given = STREAMS[name]
    found = []
    for model, X in ((computed, with_nan), (given, unknown), (given, zeroed)):
        model = clone(model).set_params(missing="zero")
        for start, stop in ((0, 4), (4, 5), (5, 60)):
            rows = X[start:stop] if X.ndim == 2 else X[:, start:stop, :stop]
            model.partial_fit(rows, y[start:stop], [0, 1, 2])
        model.save(tmp_path / "model")
        found.append(load(tmp_path / "model").decision_function(X))
    np.testing.assert_allclose(found[0], found[2], atol=1e-5)
    np.testing.assert_array_equal(found[1], found[2])


@pytest.mark.parametrize("last", [PassiveAggressive(0.5), SGDClassifier(random_state=0)])
@pytest.mark.parametrize("query", [None, MarginQuery(0.5)])
def test_omcl(last, query):
    """The score of an absent cue is 0, and its learner does not change."""
    _, y, with_nan, absent = draw()
    learners = [ProjectronPlusPlus(RBF(scale=1.0), eta=0.3), KernelPerceptron(Linear()), last]
    cues = [(f"cue{j}", learner, PLACES[j]) for j, learner in enumerate(learners)]
    options = {"missing": "zero", "query": query, "average": isinstance(last, PassiveAggressive)}
    model = OMCL(cues, **options).fit(with_nan, y)
    found = model.cue_scores(with_nan)
    assert not found[absent].any() and found[~absent].any(axis=1).mean() > 0.9
    for j in range(2):
        assert not absent[j, model.learners_[j].support_].any()
    stream = OMCL(cues, **options)
    for part in (slice(4), slice(4, 60)):
        stream.partial_fit(with_nan[part], y[part], classes=[0, 1, 2])
    wanted = model.decision_function(with_nan)
    np.testing.assert_allclose(stream.decision_function(with_nan), wanted, atol=1e-9)


@pytest.mark.parametrize("form", [np.asarray, pd.DataFrame])
def test_a_prior_without_its_columns_scores_zero(form):
    """Its scale comes from the samples that have them."""
    X, y, with_nan, absent = draw()
    old, labels, _, _ = draw(seed=1)
    known = LogisticRegression().fit(old[:, :2], labels > 0)
    priors = [("known", known, [0, 1]), ("raw", "passthrough", [2])]
    options = {"missing": "zero", "random_state": 0}
    model = MKTL(CUES, priors=priors, **options).fit(form(with_nan), y)
    raw = np.stack([known.decision_function(X[:, :2]), X[:, 2]], axis=1)
    raw[absent[:2].T] = 0.0
    scale = np.sqrt((raw**2).sum(axis=0) / (~absent[:2]).sum(axis=1))
    np.testing.assert_allclose(model.score_scale_, scale)
    given = MKTL(CUES, scaling=None, **options).fit(with_nan, y, scores=raw / scale)
    wanted = given.decision_function(with_nan, scores=raw / scale)
    for part in (np.arange(60), np.flatnonzero(absent[0])[:1]):
        np.testing.assert_allclose(model.decision_function(form(with_nan[part])), wanted[part], atol=1e-6)

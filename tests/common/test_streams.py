"""Learners with `partial_fit`."""

import numpy as np
import pytest
from estimators import ESTIMATORS, OF_SAMPLES, data, make
from sklearn.exceptions import NotFittedError

from cuelearn.core.estimator import load
from cuelearn.kernels import RBF, Chi2
from cuelearn.mkl import OM2
from cuelearn.omcl import KernelPerceptron, PassiveAggressive, ProjectronPlusPlus

ONLINE = [name for name in OF_SAMPLES if hasattr(ESTIMATORS[name], "partial_fit")]
LINEAR = ("OnlineGradientDescent", "PassiveAggressive")  # which take negative entries
DRAWING = ("OKS", "OKSRegret", "SOM")
#: Scales in numbers: the mean of the first batch would depend on its size.
SHAPE, COLOUR = RBF(scale=1.0), Chi2(scale=0.5)
CUES = [("shape", SHAPE, [0, 1]), ("colour", COLOUR, slice(2, 4))]
LEARNERS = [
    ("shape", ProjectronPlusPlus(SHAPE, eta=0.3), [0, 1]),
    ("colour", KernelPerceptron(COLOUR), slice(2, 4)),
    ("texture", PassiveAggressive(0.5), [4, 5]),
]
OPTIONS = {
    "OMCL": {"cues": LEARNERS},
    "Vote": {"cues": LEARNERS},
    "Flat": {"learner": ProjectronPlusPlus(COLOUR)},
    **{name: {"kernel": COLOUR} for name in ("KernelPerceptron", "Projectron", "ProjectronPlusPlus")},
    **{name: {} for name in LINEAR},
    "OKS": {"kernels": CUES, "eta": 0.03},
    "OKSRegret": {"kernels": CUES, "eta": 0.03, "step": 0.02},
}
CLASSES = {"classes": [0, 1, 2]}


def learner(name):
    """An instance of one pass in the given order, without defaults that depend on the number of visits."""
    return make(name, n_epochs=1, shuffle=False, **OPTIONS.get(name, {"kernels": CUES}))


def stream(n=150):
    X, y = data("OMCL", n)
    return X, np.where(np.arange(n) % 20 == 0, 0, y)


def same(found, wanted, X):
    near = 1e-5 if isinstance(found, OM2) else 1e-12  # whose kernels are in single precision
    scores = found.decision_function(X), wanted.decision_function(X)
    np.testing.assert_allclose(*scores, rtol=near, atol=near)
    np.testing.assert_array_equal(found.predict(X), wanted.predict(X))
    np.testing.assert_array_equal(found.n_updates_, wanted.n_updates_)


@pytest.mark.parametrize(
    "size, labels", [(1, ["ant", "bee", "cat"]), (64, [False, True, True])], ids=["words", "two classes"]
)
@pytest.mark.parametrize("name", ONLINE)
def test_batches_of_any_size_are_one_pass(name, size, labels):
    X, y = stream()
    labels = np.array(labels)
    y = labels[y]
    weights = np.random.default_rng(0).choice([0.0, 0.5, 1.0, 2.0], len(y))
    for given in (None, weights):
        whole = learner(name).fit(X, y, sample_weight=given)
        parts = learner(name)
        for start in range(0, len(y), size):
            rows = slice(start, start + size)
            part = None if given is None else given[rows]
            assert parts.partial_fit(X[rows], y[rows], classes=labels, sample_weight=part) is parts
        same(parts, whole, X)
        np.testing.assert_array_equal(parts.online_errors_, whole.online_errors_)


@pytest.mark.parametrize("name", ONLINE)
def test_fit_forgets_and_learning_goes_on(name, tmp_path):
    """Also from a file, where nothing is drawn as without it."""
    X, y = stream()
    whole = learner(name).fit(X, y)
    parts = learner(name).fit(X[:90], y[:90])
    parts.save(tmp_path / "model")
    loaded = [load(tmp_path / "model") for _ in range(2)]
    same(loaded[0], parts, X)
    for each in (parts, *loaded):
        each.partial_fit(X[90:], y[90:])
    same(parts, whole, X)
    same(loaded[1], loaded[0], X)
    if name not in DRAWING:
        same(loaded[0], parts, X)
    same(parts.fit(X, y), whole, X)
    np.testing.assert_array_equal(parts.online_errors_, whole.online_errors_)


@pytest.mark.parametrize("name", ONLINE)
def test_a_refused_batch_leaves_no_trace(name):
    """A new model stays unfitted; another learns afterwards what it would have learnt."""
    X, y = stream()
    new = learner(name)
    with pytest.raises(ValueError, match="classes must be given at the first call of partial_fit"):
        new.partial_fit(X, y)
    with pytest.raises(NotFittedError):
        new.predict(X)
    model, sound = (learner(name).partial_fit(X[:50], y[:50], **CLASSES) for _ in range(2))
    batch, labels, missing = X[50:100], y[50:100], X[50:100].copy()
    missing[40, 2] = np.nan
    refused = [
        (missing, labels, {}, "NaN"),
        (batch, labels[:49], {}, "inconsistent numbers|y must have shape"),
        (batch, labels + 1, {}, r"y must be among 0, 1, 2, got 3"),
        (batch, labels, {"classes": [0, 1]}, "classes must not change"),
        (batch, labels, {"sample_weight": np.ones(49)}, r"must have shape \(50,\)"),
    ]
    if name not in LINEAR:
        refused.append((np.where(missing == missing, batch, -1.0), labels, {}, "negative"))
    for bad, given, options, match in refused:
        with pytest.raises(ValueError, match=match):
            model.partial_fit(bad, given, **options)
        same(model, sound, X)
    for each in (model, sound):
        each.partial_fit(X[50:], y[50:])
    same(model, sound, X)
    np.testing.assert_array_equal(model.online_errors_, sound.online_errors_)

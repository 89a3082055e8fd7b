"""Saved models of the chapter: the same bits after loading, and the same way on from there."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from omcl_twins import make_stream
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import SGDClassifier

from cuelearn.kernels import RBF, Chi2, ExpDistance, Linear, Poly
from cuelearn.omcl import (
    OMCL,
    Flat,
    KernelPerceptron,
    OnlineGradientDescent,
    PassiveAggressive,
    Projectron,
    ProjectronPlusPlus,
    Vote,
    load,
)

QUIET = {"verbose": False}
COLUMNS = ["a", "b", "c", "d", "e", "f"]
CUES = [
    ("shape", ProjectronPlusPlus(RBF(), eta=0.3), [0, 1]),
    ("colour", KernelPerceptron(Chi2(scale=0.5)), slice(2, 4)),
    ("texture", PassiveAggressive(np.float32(0.5)), np.array([4, 5])),
]
NAMED = [(name, learner, COLUMNS[2 * j : 2 * j + 2]) for j, (name, learner, _) in enumerate(CUES)]
MODELS = {
    "KernelPerceptron": KernelPerceptron(Poly(degree=3), **QUIET),
    "Projectron": Projectron(ExpDistance("cityblock"), eta=0.2, **QUIET),
    "Projectron with defaults": Projectron(**QUIET),
    "ProjectronPlusPlus": ProjectronPlusPlus(
        Linear(), eta=np.float64(0.4), normalize=False, n_epochs=2, shuffle=True, random_state=7, **QUIET
    ),
    "PassiveAggressive": PassiveAggressive(np.inf, average=False, **QUIET),
    "PassiveAggressive without C": PassiveAggressive(None, record=False, **QUIET),
    "OnlineGradientDescent": OnlineGradientDescent(0.3, **QUIET),
    "OMCL": OMCL(CUES, PassiveAggressive(0.3), **QUIET),
    "OMCL with defaults": OMCL(**QUIET),
    "OMCL with a kernel on top": OMCL(CUES, ProjectronPlusPlus(RBF(scale=4.0)), average=False, **QUIET),
    "Vote": Vote(CUES, **QUIET),
    "Flat": Flat(KernelPerceptron(), scale="deviation", **QUIET),
    "Flat with defaults": Flat(**QUIET),
}


def data(n=200, seed=0, n_classes=3):
    return make_stream(n, 6, n_classes, seed=seed, noise=0.1, spread=0.1)


def same(loaded, model, new):
    assert type(loaded) is type(model)
    for average in (True, False):
        if getattr(model, "_can_average", True) or not average:
            found, wanted = loaded.set_params(average=average), model.set_params(average=average)
            assert_array_equal(found.decision_function(new), wanted.decision_function(new))
    counts = {"n_seen_", "n_updates_", "n_mistakes_", "cumulative_loss_"}
    learnt = {"support_", "dual_coef_", "coef_", "support_vectors_", "n_projected_", "inverse_error_"}
    learnt |= {"weights_"}
    for name in counts | {name for name in learnt if hasattr(model, name)}:
        assert_array_equal(getattr(loaded, name), getattr(model, name), err_msg=name)


@pytest.mark.parametrize("words", [[10, 20, 30], [False, True, True]], ids=["several", "two classes"])
@pytest.mark.parametrize("name", MODELS)
def test_a_loaded_model_goes_on(name, words, tmp_path):
    """The same bits, and the same way on from there."""
    X, y = data()
    new, more, words = data(40, seed=1)[0], data(60, seed=2), np.array(words)
    model = clone(MODELS[name]).fit(X, words[y])
    model.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    same(loaded, model, new)
    for each in (model, loaded):
        each.partial_fit(more[0], words[more[1]])
    same(loaded, model, new)
    if MODELS[name].record:
        assert_array_equal(loaded.online_errors_, model.online_errors_[-60:])


def test_named_columns(tmp_path):
    X, y = data()
    frame = pd.DataFrame(X, columns=COLUMNS)
    for model in (OMCL(NAMED, **QUIET), Vote(NAMED, **QUIET), Flat(**QUIET), PassiveAggressive(**QUIET)):
        model.fit(frame, y).save(tmp_path / "model")
        loaded = load(tmp_path / "model")
        assert_array_equal(loaded.decision_function(frame), model.decision_function(frame))
        with pytest.raises(ValueError, match="feature names should match"):
            loaded.predict(frame[COLUMNS[::-1]])


def test_precomputed_kernels(tmp_path):
    X, y = data()
    parts = X[:, :3], X[:, 3:]
    K = np.stack([np.exp(-((part[:, None] - part) ** 2).sum(axis=2)) for part in parts])
    cues = [("a", Projectron("precomputed", eta=0.2), 1), ("b", KernelPerceptron("precomputed"), 0)]
    for whole in (
        OMCL(cues, **QUIET),
        Vote(cues, **QUIET),
        Flat(Projectron("precomputed"), **QUIET),
        Projectron("precomputed", **QUIET),
    ):
        stack = K if not isinstance(whole, Projectron) else K[0]
        half = clone(whole).fit(stack[..., :120, :120], y[:120])
        half.save(tmp_path / "model")
        loaded = load(tmp_path / "model").partial_fit(stack[..., 120:, :], y[120:])
        expected = whole.fit(stack, y).decision_function(stack)
        assert_allclose(loaded.decision_function(stack), expected, atol=1e-12)


def test_a_model_without_support(tmp_path):
    X, y = np.zeros((30, 6)), np.arange(30) % 3
    for model in (
        ProjectronPlusPlus(Linear(), **QUIET),
        OMCL([("a", KernelPerceptron(Linear()), [0])], **QUIET),
        PassiveAggressive(**QUIET),
    ):
        model.fit(X, y).save(tmp_path / "model")
        loaded = load(tmp_path / "model")
        assert_array_equal(loaded.decision_function(np.ones((4, 6))), np.zeros((4, 3)))
        for each in (model, loaded):
            each.partial_fit(*data())
        assert_array_equal(loaded.decision_function(X), model.decision_function(X))


def test_what_cannot_be_saved(tmp_path):
    X, y = data()
    foreign = OMCL([("theirs", SGDClassifier(random_state=0), [0, 1])], average=False, **QUIET).fit(X, y)
    above = OMCL(CUES, SGDClassifier(random_state=0), average=False, **QUIET).fit(X, y)
    called = Vote([("a", KernelPerceptron(), lambda X: [0])], **QUIET).fit(X, y)
    maps = Flat(cues=[("a", RBF(), [0])], **QUIET).fit(X, y)
    for model, match in (
        (foreign, "SGDClassifier"),
        (above, "SGDClassifier"),
        (called, "function"),
        (maps, "Flat"),
    ):
        with pytest.raises(TypeError, match=f"{match}.* cannot be saved"):
            model.save(tmp_path / "model")
        assert not list(tmp_path.iterdir())
    with pytest.raises(NotFittedError):
        OMCL().save(tmp_path / "model")
    assert not list(tmp_path.iterdir())

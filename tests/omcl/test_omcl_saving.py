"""Saved models of the chapter: the same bits after loading, and the same way on from there."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from omcl_twins import make_stream
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import SGDClassifier

from cuelearn.kernels import RBF, Chi2, Linear
from cuelearn.omcl import (
    OMCL,
    Flat,
    KernelPerceptron,
    PassiveAggressive,
    Projectron,
    ProjectronPlusPlus,
    Vote,
    load,
)

CUES = [
    ("shape", ProjectronPlusPlus(RBF(), eta=0.3), [0, 1]),
    ("colour", KernelPerceptron(Chi2(scale=0.5)), slice(2, 4)),
    ("texture", PassiveAggressive(np.float32(0.5)), np.array([4, 5])),
]
MODELS = {
    "a kernel by its name": Projectron("laplacian"),
    "an unnormalised kernel, by several passes": ProjectronPlusPlus(
        Linear(), eta=np.float64(0.4), normalize=False, n_epochs=2, shuffle=True, random_state=7
    ),
    "no largest step": PassiveAggressive(None, record=False, average=False),
    "defaults of both layers": OMCL(),
    "cues": OMCL(CUES, PassiveAggressive(0.3)),
    "a kernel on top": OMCL(CUES, ProjectronPlusPlus(RBF(scale=4.0)), average=False),
    "divided by the deviation": Flat(KernelPerceptron(), scale="deviation"),
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


@pytest.mark.parametrize("name", MODELS)
def test_a_loaded_model_goes_on(name, tmp_path):
    """The same bits, and the same way on from there."""
    X, y = data()
    new, more, words = data(40, seed=1)[0], data(60, seed=2), np.array(["ant", "bee", "cat"])
    model = clone(MODELS[name]).fit(X, words[y])
    model.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    same(loaded, model, new)
    for each in (model, loaded):
        each.partial_fit(more[0], words[more[1]])
    same(loaded, model, new)
    if MODELS[name].record:
        assert_array_equal(loaded.online_errors_, model.online_errors_[-60:])


def test_precomputed_kernels(tmp_path):
    X, y = data()
    parts = X[:, :3], X[:, 3:]
    K = np.stack([np.exp(-((part[:, None] - part) ** 2).sum(axis=2)) for part in parts])
    cues = [("a", Projectron("precomputed", eta=0.2), 1), ("b", KernelPerceptron("precomputed"), 0)]
    for whole in (OMCL(cues), Vote(cues), Flat(Projectron("precomputed")), Projectron("precomputed")):
        stack = K if not isinstance(whole, Projectron) else K[0]
        half = clone(whole).fit(stack[..., :120, :120], y[:120])
        half.save(tmp_path / "model")
        loaded = load(tmp_path / "model").partial_fit(stack[..., 120:, :], y[120:])
        expected = whole.fit(stack, y).decision_function(stack)
        assert_allclose(loaded.decision_function(stack), expected, atol=1e-12)


def test_a_model_without_support(tmp_path):
    X, y = np.zeros((30, 6)), np.arange(30) % 3
    for model in (
        ProjectronPlusPlus(Linear()),
        OMCL([("a", KernelPerceptron(Linear()), [0])]),
        PassiveAggressive(),
    ):
        model.fit(X, y).save(tmp_path / "model")
        loaded = load(tmp_path / "model")
        assert_array_equal(loaded.decision_function(np.ones((4, 6))), np.zeros((4, 3)))
        for each in (model, loaded):
            each.partial_fit(*data())
        assert_array_equal(loaded.decision_function(X), model.decision_function(X))


def test_what_cannot_be_saved(tmp_path):
    X, y = data()
    foreign = OMCL([("theirs", SGDClassifier(random_state=0), [0, 1])], average=False).fit(X, y)
    above = OMCL(CUES, SGDClassifier(random_state=0), average=False).fit(X, y)
    called = Vote([("a", KernelPerceptron(), lambda X: [0])]).fit(X, y)
    maps = Flat(cues=[("a", RBF(), [0])]).fit(X, y)
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

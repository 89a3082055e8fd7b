"""The estimators as scikit-learn's users meet them."""

import re

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from omcl_twins import make_stream
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import MinMaxScaler

from cuelearn.kernels import RBF, Chi2, Linear, Poly, Precomputed
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

KERNEL = [KernelPerceptron, Projectron, ProjectronPlusPlus]
LINEAR = [PassiveAggressive, OnlineGradientDescent]
MULTI = [OMCL, Vote]
ALL = [*KERNEL, *LINEAR, *MULTI, Flat]

CUES = [
    ("shape", ProjectronPlusPlus(RBF(scale=1.0), eta=0.3), [0, 1]),
    ("colour", KernelPerceptron(Chi2(scale=0.5)), slice(2, 4)),
    ("texture", PassiveAggressive(0.5), [4, 5]),
]


def data(n=150, seed=0, n_classes=3):
    return make_stream(n, 6, n_classes, seed=seed, noise=0.05, duplicates=0.05, spread=0.1)


def make(cls, **options):
    """An estimator whose kernels need no first batch."""
    if cls in MULTI:
        options.setdefault("cues", CUES)
    if cls in KERNEL:
        options.setdefault("kernel", RBF(scale=1.0))
    if cls is Flat:
        options.setdefault("learner", ProjectronPlusPlus(RBF(scale=1.0)))
    return cls(**options)


def test_parameters_of_a_cue():
    model = make(OMCL)
    assert model.get_params()["shape__eta"] == 0.3 and model.get_params()["colour"] is CUES[1][1]
    model = clone(model).set_params(shape__eta=0.7, texture__C=2.0, colour=Projectron(RBF()))
    assert (model.cues[0][1].eta, model.cues[2][1].C) == (0.7, 2.0)
    assert isinstance(model.cues[1][1], Projectron) and CUES[0][1].eta == 0.3
    assert [(name, columns) for name, _, columns in model.cues] == [(name, c) for name, _, c in CUES]
    model = clone(make(OMCL, integrator=PassiveAggressive())).set_params(integrator__C=3.0)
    assert model.integrator.C == 3.0
    with pytest.raises(ValueError, match="Invalid parameter 'smell'"):
        model.set_params(smell__eta=1.0)
    assert OMCL("wrong").set_params(cues=CUES).get_params()["shape__eta"] == 0.3


@pytest.mark.parametrize("cls", [Projectron, OMCL])
def test_epochs_and_permutations(cls):
    X, y = data()
    ordered = make(cls).fit(X, y)
    twice = make(cls, n_epochs=2, random_state=3).fit(X, y)
    order = np.random.default_rng(3).permutation(150)
    ordered.partial_fit(X[order], y[order])  # the first pass keeps the order
    assert_array_equal(twice.online_errors_, ordered.online_errors_)
    shuffled = make(cls, shuffle=True, random_state=np.random.default_rng(3)).fit(X, y)
    assert_array_equal(shuffled.online_errors_, make(cls).fit(X[order], y[order]).online_errors_)


@pytest.mark.parametrize("cls", ALL)
def test_records(cls):
    X, y = data(600)
    model = make(cls).fit(X, y)
    history = model.history_
    assert list(history.columns) == ["step", "epoch", "seconds", "n_updates", "n_support", "online_error"]
    assert history.step.tolist() == [256, 512, 600] and (history.epoch == 1).all()
    assert_allclose(history.online_error, [model.online_errors_[:n].mean() for n in (256, 512, 600)])
    assert history.n_support.iloc[-1] == model.support_sizes_[-1]
    assert history.n_updates.iloc[-1] == model.n_updates_
    assert model.n_mistakes_ == model.online_errors_.sum()
    assert model.cumulative_loss_ == pytest.approx(model.online_losses_.sum())
    assert_array_equal(model.online_losses_ >= 1.0, model.online_errors_)
    silent = make(cls, record=False).fit(X, y)
    assert_array_equal(silent.decision_function(X), model.decision_function(X))
    assert (silent.n_mistakes_, silent.n_updates_) == (model.n_mistakes_, model.n_updates_)
    with pytest.raises(AttributeError, match="keeps no sequences with record=False"):
        silent.online_errors_  # noqa: B018
    with pytest.raises(NotFittedError):
        make(cls).online_errors_  # noqa: B018


FACES = r"cues must be a non-empty list of \(name, learner, columns\)"
PERCEPTRON, GIVEN = KernelPerceptron(), KernelPerceptron("precomputed")
REFUSED = [
    (KernelPerceptron(Precomputed()), "kernel must be computed from X here"),
    (OMCL([("a", PERCEPTRON)]), FACES),
    (OMCL([*CUES[:2], CUES[0]]), "cues: .*shape"),
    (OMCL([("average", PERCEPTRON, [0])]), "cues: .*average"),
    (Vote([("a__b", PERCEPTRON, [0])]), "cues: .*a__b"),
    (OMCL([("a", PERCEPTRON, [0, 6])]), "cue 'a': columns must .* from -6 to 5, got 6"),
    (OMCL(CUES, GIVEN, average=False), "integrator must compute its kernel from the scores"),
    (OMCL([("a", GIVEN, 0), CUES[1]]), "either all learners or none may have kernel='precomputed'"),
    (OMCL([("a", RBF(), [0])]), "cues: the learner of 'a' must have partial_fit, .* got RBF"),
    (OMCL([("a", MinMaxScaler(), [0])]), "decision_function or predict_proba, got MinMaxScaler"),
]


@pytest.mark.parametrize("model, match", REFUSED)
def test_bad_parameters(model, match):
    X, y = data()
    for call in (lambda: model.fit(X, y), lambda: model.partial_fit(X, y, classes=[0, 1, 2])):
        with pytest.raises((ValueError, TypeError), match=match):
            call()
    assert not hasattr(model, "classes_")


LATE = OMCL([("a", KernelPerceptron(RBF(scale=1.0)), [0])], KernelPerceptron(), average=False)


@pytest.mark.parametrize("model", [PERCEPTRON, Flat(), LATE])
def test_a_scale_of_one_sample_is_refused(model):
    X, y = data()
    with pytest.raises(ValueError, match="must hold at least 2 samples .* give gamma or scale as a number"):
        model.partial_fit(X[:1], y[:1], classes=[0, 1, 2])


def gram(X, Z):
    return np.exp(-((X[:, None] - Z[None]) ** 2).sum(axis=2))


def test_a_model_of_the_last_kernel_alone_is_saved(tmp_path):
    X, y = data()
    K = np.stack([gram(X[:, :3], X[:, :3]), gram(X[:, 3:], X[:, 3:])])
    model = OMCL([("b", KernelPerceptron("precomputed"), 1)]).fit(K, y)
    model.save(tmp_path / "model.npz")
    assert_array_equal(OMCL.load(tmp_path / "model.npz").predict(K), model.predict(K))


def test_precomputed_kernels():
    X, y = data()
    K = np.stack([gram(X[:, :3], X[:, :3]), gram(X[:, 3:], X[:, 3:])])
    cues = [("a", Projectron("precomputed"), 0), ("b", KernelPerceptron("precomputed"), 1)]
    for model in (OMCL(cues), Vote(cues), Flat(Projectron("precomputed")), Projectron("precomputed")):
        stacked = not isinstance(model, Projectron)
        given = K if stacked else K[0]
        tags = model.__sklearn_tags__().input_tags
        assert tags.three_d_array == stacked and tags.pairwise != stacked
        for options in ({"n_epochs": 2}, {"shuffle": True}):
            with pytest.raises(ValueError, match="n_epochs must be 1 and shuffle False with precomputed"):
                clone(model).set_params(**options).fit(given, y)
        model.partial_fit(given[..., :100, :100], y[:100], classes=[0, 1, 2])
        with pytest.raises(ValueError, match=r"X must have shape \(.*n, 100 \+ n\)"):
            model.partial_fit(given[..., 100:, 100:], y[100:])
        with pytest.raises(ValueError, match=r"X must have shape \(n, 100\)"):
            model.predict(given)
        model.partial_fit(given[..., 100:, :], y[100:])
        assert model.n_seen_ == 150 and model.score(given, y) > 0.8
    with pytest.raises(AttributeError, match="precomputed kernels have no support vectors"):
        model.support_vectors_  # noqa: B018
    for columns in (2, [0, 1]):
        with pytest.raises(ValueError, match="precomputed kernels the number of one, must be an integer"):
            OMCL([cues[0], ("b", GIVEN, columns)]).fit(K, y)


@pytest.mark.parametrize("cls", ALL)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sizes_of_X(cls, dtype):
    unit, y = data(30)
    for largest in (1e4, 1e14, 1e37, 1e150, 1e200, 1e300):
        with np.errstate(over="ignore"):
            X = (unit * largest / unit.max()).astype(dtype)
        if not np.isfinite(X).all():
            continue
        model = make(cls)
        try:
            model.fit(X, y)
        except ValueError as error:
            assert largest > 1e15 and re.search("X must (hold no values beyond|be scaled)", str(error))
            continue
        assert np.isfinite(model.decision_function(X)).all()
        if cls not in LINEAR and dtype == np.float32:  # what was learnt in single precision stays there
            with pytest.raises(ValueError, match="X must"):
                model.decision_function(X * np.float64(1e140))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("cls", ALL)
def test_degenerate_streams(cls):
    y = np.arange(60) % 3
    kernels = [Linear(), Poly(degree=3), Chi2(scale=1.0), RBF()] if cls in KERNEL else []
    for X in (np.zeros((60, 6)), np.ones((60, 6)), np.tile([[0.0] * 6, [1.0] * 6], (30, 1))):
        for model in (make(cls), *(make(cls, kernel=kernel) for kernel in kernels)):
            assert np.isfinite(model.fit(X, y).decision_function(X)).all()
            if cls in KERNEL[1:]:
                assert len(model.support_) <= 2
    assert make(cls).fit(np.eye(2, 6), [4, 2]).predict(np.eye(2, 6)).shape == (2,)


@pytest.mark.parametrize("learnt", [True, False])
def test_a_loaded_model_goes_on(learnt, tmp_path):
    """With a kernel on top; also where nothing had been learnt."""
    X, y = data()
    model = OMCL(CUES, ProjectronPlusPlus(RBF(scale=4.0)), average=False).fit(learnt * X, y)
    model.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    for each in (model, loaded):
        each.partial_fit(*data(60, seed=2))
    assert_array_equal(loaded.decision_function(X), model.decision_function(X))

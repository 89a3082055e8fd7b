"""The estimators as scikit-learn's users meet them."""

import re
import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from omcl_twins import make_stream
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.svm import SVC

from cuelearn.kernels import RBF, Chi2, ExpDistance, Linear, Poly, Precomputed
from cuelearn.omcl import (
    OMCL,
    Flat,
    KernelPerceptron,
    OnlineGradientDescent,
    PassiveAggressive,
    Projectron,
    ProjectronPlusPlus,
    Vote,
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


# ------------------------------------------------------------------ scikit-learn


@pytest.mark.parametrize("cls", MULTI)
def test_learners_are_cloned(cls):
    make(cls).fit(*data())
    assert all(not hasattr(learner, "classes_") for _, learner, _ in CUES)


def test_parameters_of_a_cue():
    model = make(OMCL)
    assert model.get_params()["shape__eta"] == 0.3 and model.get_params()["colour"] is CUES[1][1]
    model = clone(model).set_params(
        shape__eta=0.7, texture__C=2.0, colour=Projectron(RBF()), integrator=PassiveAggressive(3.0)
    )
    assert model.cues[0][1].eta == 0.7
    assert model.cues[2][1].C == 2.0
    assert isinstance(model.cues[1][1], Projectron)
    assert model.cues[0][2] == [0, 1]
    assert [name for name, _, _ in model.cues] == ["shape", "colour", "texture"]
    model.set_params(colour__eta=0.2, integrator__C=0.5)
    assert model.cues[1][1].eta == 0.2 and model.integrator.C == 0.5
    assert CUES[0][1].eta == 0.3
    with pytest.raises(ValueError, match="Invalid parameter 'smell'"):
        model.set_params(smell__eta=1.0)
    assert OMCL().set_params(cues=CUES).get_params()["shape__eta"] == 0.3
    assert OMCL("wrong").set_params(cues=CUES).get_params()["shape__eta"] == 0.3


def test_grid_search():
    X, y = data(240)
    grid = {"integrator": [PassiveAggressive()], "integrator__C": [1e-3, 1.0], "shape__eta": [0.1, 1.4]}
    search = GridSearchCV(make(OMCL), grid, cv=3).fit(X, y)
    assert search.best_score_ > 0.8
    assert search.best_estimator_.cues[0][1].eta == search.best_params_["shape__eta"]
    assert len(set(np.round(search.cv_results_["mean_test_score"], 6))) > 1
    pipeline = make_pipeline(MinMaxScaler(clip=True), make(Vote))
    assert GridSearchCV(pipeline, {"vote__shape__eta": [0.1, 0.5]}, cv=3).fit(X, y).best_score_ > 0.6
    grid = {"learner__eta": [0.1, 1.4], "scale": ["none", "deviation"]}
    search = GridSearchCV(make(Flat), grid, cv=3).fit(X, y)
    assert search.best_params_["learner__eta"] == 0.1 and search.best_score_ > 0.8


# ------------------------------------------------------------------ passes and records


@pytest.mark.parametrize("cls", [ProjectronPlusPlus, OMCL])
def test_large_batches_cost_no_more_memory(cls):
    """A batch is visited in parts: no matrix of its length squared appears."""
    X, y = data(6000)
    make(cls).partial_fit(X[:300], y[:300], classes=[0, 1, 2])
    model = make(cls)
    tracemalloc.start()
    try:
        model.partial_fit(X, y, classes=[0, 1, 2])
        assert tracemalloc.get_traced_memory()[1] < 0.1 * 6000**2 * 8
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("cls", [Projectron, OMCL])
def test_epochs_and_permutations(cls):
    X, y = data()
    ordered = make(cls).fit(X, y)
    twice = make(cls, n_epochs=2, random_state=3).fit(X, y)
    assert_array_equal(twice.online_errors_[:150], ordered.online_errors_)  # the first pass keeps the order
    order = np.random.default_rng(3).permutation(150)
    assert_array_equal(twice.online_errors_, ordered.partial_fit(X[order], y[order]).online_errors_)
    shuffled = make(cls, shuffle=True, random_state=3).fit(X, y)
    assert_array_equal(shuffled.online_errors_, make(cls).fit(X[order], y[order]).online_errors_)
    again = make(cls, shuffle=True, n_epochs=2, random_state=np.random.default_rng(3)).fit(X, y)
    assert_array_equal(again.online_errors_[:150], shuffled.online_errors_)


@pytest.mark.parametrize("cls", ALL)
def test_records(cls):
    X, y = data(600)
    seen = []

    def watch(estimator, step):
        seen.append((step, estimator.n_seen_, len(estimator.history_)))

    model = make(cls, callback=watch).fit(X, y)
    assert seen == [(256, 256, 1), (512, 512, 2), (600, 600, 3)]
    history = model.history_
    assert list(history.columns) == ["step", "epoch", "seconds", "n_updates", "n_support", "online_error"]
    assert history.step.tolist() == [256, 512, 600]
    assert (history.epoch == 1).all()
    assert (history.seconds.diff()[1:] > 0).all()
    assert_allclose(history.online_error, [model.online_errors_[:n].mean() for n in (256, 512, 600)])
    assert history.n_support.iloc[-1] == model.support_sizes_[-1]
    assert history.n_updates.iloc[-1] == model.n_updates_
    assert model.n_mistakes_ == model.online_errors_.sum()
    assert model.cumulative_loss_ == pytest.approx(model.online_losses_.sum())
    assert_array_equal(model.online_losses_ >= 1.0, model.online_errors_)
    stopped = make(cls, callback=lambda estimator, step: step >= 512, n_epochs=3).fit(X, y)
    assert stopped.n_seen_ == 512 and len(stopped.history_) == 2
    silent = make(cls, record=False).fit(X, y)
    assert_array_equal(silent.decision_function(X), model.decision_function(X))
    assert (silent.n_mistakes_, silent.n_updates_) == (model.n_mistakes_, model.n_updates_)
    for name in ("online_errors_", "online_losses_", "support_sizes_"):
        with pytest.raises(AttributeError, match="keeps no sequences with record=False"):
            getattr(silent, name)
        with pytest.raises(NotFittedError):
            getattr(make(cls), name)
    if cls in MULTI:
        assert all(learner._record is None for learner in silent.learners_)


@pytest.mark.parametrize("cls", ALL)
def test_single_precision(cls):
    X, y = data(300)
    double, single = make(cls).fit(X, y), make(cls).fit(X.astype(np.float32), y)
    assert np.mean(double.online_errors_ == single.online_errors_) > 0.98
    assert_array_equal(single.predict(X), single.predict(X.astype(np.float32)))
    assert single.score(X, y) > 0.8
    if cls in KERNEL:
        assert single.support_vectors_.dtype == np.float32


@pytest.mark.parametrize("cls", ALL)
def test_averaging_may_be_changed_after_training(cls):
    X, y = data()
    model, last = make(cls).fit(X, y), make(cls, average=False).fit(X, y)
    wanted = model.decision_function(X)
    assert_array_equal(model.set_params(average=False).decision_function(X), last.decision_function(X))
    assert_array_equal(last.set_params(average=True).decision_function(X), wanted)


@pytest.mark.parametrize("cls", LINEAR)
def test_the_first_of_tied_classes(cls):
    """Zero coefficients, so that all scores are equal."""
    model = make(cls).partial_fit(np.zeros((1, 6)), ["b"], classes=["b", "c", "a"])
    assert model.predict(np.ones((2, 6))).tolist() == ["a", "a"]


def test_the_mean_rule_takes_the_first_batch():
    X, y = data()
    mean = np.mean([((a - b) ** 2).sum() for i, a in enumerate(X) for j, b in enumerate(X) if i != j])
    model = KernelPerceptron(RBF()).fit(X, y)
    assert model.kernel_.scale == pytest.approx(mean, rel=1e-6)
    model = KernelPerceptron(RBF()).partial_fit(X, y, classes=[0, 1, 2])
    assert model.kernel_.scale == pytest.approx(mean, rel=1e-6)
    scale = model.kernel_.scale
    assert model.partial_fit(5.0 * X, y).kernel_.scale == scale


# ------------------------------------------------------------------ bad input: one clear sentence each


FACES = r"cues must be a non-empty list of \(name, learner, columns\)"
MAPS = r"cues must be None or a non-empty list of \(name, kernel, columns\)"
ONE_BATCH = "from the first batch, which must hold at least 2 samples .* give gamma or scale as a number"
PERCEPTRON, GIVEN = KernelPerceptron(), KernelPerceptron("precomputed")
REFUSED = [
    (Projectron(RBF(scale=1.0), eta=-0.1), "'eta' parameter of Projectron must be a float .* Got -0.1"),
    (KernelPerceptron(Precomputed()), "kernel must be computed from X here"),
    (KernelPerceptron(ExpDistance("precomputed")), "kernel must be computed from X here"),
    (KernelPerceptron(RBF), "'kernel' parameter of KernelPerceptron must be .* Got <class"),
    (PassiveAggressive(0.0), "'C' parameter of PassiveAggressive must be .* Got 0.0"),
    (PassiveAggressive(-np.inf), "'C' parameter of PassiveAggressive must be .* Got -inf"),
    (OnlineGradientDescent(-1), "'step' parameter of OnlineGradientDescent must be .* Got -1"),
    (OMCL([]), FACES),
    (OMCL([("a", PERCEPTRON)]), FACES),
    (OMCL([*CUES[:2], CUES[0]]), r"cues must have different names, got \['shape', 'colour', 'shape'\]"),
    (OMCL([("average", PERCEPTRON, [0])]), "other than this estimator's parameters, got 'average'"),
    (Vote([("a__b", PERCEPTRON, [0])]), "cues must have names without '__' .*, got 'a__b'"),
    (OMCL([("a", PERCEPTRON, [0, 6])]), "cue 'a': column 6 is not in X, which has 6 columns"),
    (OMCL([("a", PERCEPTRON, "red")]), "cue 'a': columns can be given by name only for a DataFrame"),
    (OMCL([("a", PERCEPTRON, [])]), "cue 'a'"),
    (OMCL([("a", Projectron(eta=-1), [0])]), "'eta' parameter of Projectron must be"),
    (OMCL(CUES, GIVEN, average=False), "integrator must compute its kernel from the scores"),
    (OMCL([("a", GIVEN, 0), CUES[1]]), "either all learners or none may have kernel='precomputed'"),
    (OMCL([("a", RBF(), [0])]), "cues: the learner of 'a' must have partial_fit, RBF has not"),
    (OMCL([("a", MinMaxScaler(), [0])]), "must have decision_function or predict_proba, MinMaxScaler has"),
    (OMCL(CUES, SVC()), "'integrator' parameter of OMCL must be .*'partial_fit'"),
    (Flat(cues=[("a", RBF(), [0])], scale="deviation"), "cues must be None where scale is set"),
    (Flat(PassiveAggressive(), cues=[("a", RBF(), [0])]), "cues must be None where scale is set"),
    (Flat(cues=[]), MAPS),
    (Flat(cues=[("a", RBF())]), MAPS),
    (Flat(cues=[("a", RBF(), [0]), ("a", RBF(), [1])]), "cues must have different names"),
    (Flat(cues=[("a", "gaus", [0])]), "a kernel's name must be one of"),
    (Flat(cues=[("a", RBF(), [7])]), "cue 'a': column 7 is not in X"),
    (Flat(SGDClassifier()), "'learner' parameter of Flat must be .*CueLearner"),
]


@pytest.mark.parametrize("model, match", REFUSED)
def test_bad_parameters(model, match):
    X, y = data()
    for call in (lambda: model.fit(X, y), lambda: model.partial_fit(X, y, classes=[0, 1, 2])):
        with pytest.raises((ValueError, TypeError), match=match):
            call()
    assert not hasattr(model, "classes_")


ONE_CUE = [("a", KernelPerceptron(RBF(scale=1.0)), [0])]
FROM_THE_FIRST = [
    PERCEPTRON,
    OMCL([("a", PERCEPTRON, [0])]),
    Flat(),
    Flat(cues=[("a", RBF(), [0])]),
    OMCL(),
    Vote(),
]


@pytest.mark.parametrize("model", [*FROM_THE_FIRST, OMCL(ONE_CUE, KernelPerceptron(), average=False)])
def test_a_scale_of_one_sample_is_refused(model):
    X, y = data()
    with pytest.raises(ValueError, match=ONE_BATCH):
        model.partial_fit(X[:1], y[:1], classes=[0, 1, 2])
    assert not hasattr(model, "classes_")


@pytest.mark.parametrize("kernel", [Chi2(), ExpDistance("chi2", scale=1.0)])
def test_negative_entries(kernel):
    X, y = data()
    bad = X.copy()
    bad[3, 2] = -0.1
    cues = [*ONE_CUE, ("b", KernelPerceptron(kernel), [2])]
    learner = KernelPerceptron(kernel)
    for model in (learner, OMCL(cues), Flat(learner), Flat(cues=[("a", kernel, [2])])):
        with pytest.raises(ValueError, match="negative"):
            model.fit(bad, y)
        assert not hasattr(model, "classes_")
        with pytest.raises(ValueError, match="X must not be negative for a chi-squared kernel"):
            model.fit(X, y).predict(bad)


# ------------------------------------------------------------------ precomputed kernels


def gram(X, Z):
    return np.exp(-((X[:, None] - Z[None]) ** 2).sum(axis=2))


def test_precomputed_shapes():
    X, y = data()
    K = gram(X, X)
    model = Projectron("precomputed")
    for bad, match in (
        (K[:, :149], r"X must have shape \(n, 0 \+ n\).*got \(150, 149\)"),
        (np.stack([K, K]), r"X must have shape \(n, n_seen\) for precomputed .* \(2, 150, 150\)"),
        (K[:149], "y must have one label per sample, 149, got 150"),
    ):
        with pytest.raises(ValueError, match=match):
            model.fit(bad, y)
        with pytest.raises(ValueError, match=match):
            model.partial_fit(bad, y, classes=[0, 1, 2])
        assert not hasattr(model, "classes_")
    for options in ({"n_epochs": 2}, {"shuffle": True}):
        with pytest.raises(ValueError, match="n_epochs must be 1 and shuffle False with precomputed"):
            Projectron("precomputed", **options).fit(K, y)
    model.partial_fit(K[:100, :100], y[:100], classes=[0, 1, 2])
    with pytest.raises(ValueError, match=r"X must have shape \(n, 100 \+ n\).*got \(50, 50\)"):
        model.partial_fit(K[100:, 100:], y[100:])
    with pytest.raises(ValueError, match=r"X must have shape \(n, 100\), the kernel with all samples seen"):
        model.predict(K[100:])
    assert model.n_seen_ == 100
    model.partial_fit(K[100:], y[100:])
    assert_array_equal(model.online_errors_, Projectron(RBF(scale=1.0)).fit(X, y).online_errors_)
    with pytest.raises(AttributeError, match="precomputed kernels have no support vectors"):
        model.support_vectors_  # noqa: B018
    assert model.kernel_ == "precomputed"
    lists = Projectron("precomputed").fit(K.tolist(), y.tolist())
    assert_array_equal(lists.online_errors_, model.online_errors_)


def test_precomputed_stacks():
    X, y = data()
    K = np.stack([gram(X[:, :3], X[:, :3]), gram(X[:, 3:], X[:, 3:])])
    cues = [("a", Projectron("precomputed"), 0), ("b", KernelPerceptron("precomputed"), 1)]
    for model in (OMCL(cues), Vote(cues), Flat(Projectron("precomputed"))):
        tags = model.__sklearn_tags__().input_tags
        assert tags.three_d_array and not tags.two_d_array
        for bad, match in (
            (K[0, 0], r"X must have shape \(n_kernels, n, n_seen\)"),
            (K[:, :, :149], r"X must have shape \(.*n, 0 \+ n\)"),
            (K[:, :149], "y must have one label per sample, 149, got 150"),
        ):
            with pytest.raises(ValueError, match=match):
                model.fit(bad, y)
        assert not hasattr(model, "classes_")
        model.partial_fit(K[:, :100, :100], y[:100], classes=[0, 1, 2])
        with pytest.raises(ValueError, match=r"X must have shape \(.*n, 100 \+ n\)"):
            model.partial_fit(K[:, 100:, 100:], y[100:])
        with pytest.raises(ValueError, match=r"X must have shape \(n, 100\)"):
            model.predict(K)
        model.partial_fit(K[:, 100:], y[100:])
        assert model.n_seen_ == 150 and model.score(K, y) > 0.8
    for columns, given in ((2, r", got \[0, 2\]"), ([0, 1], "")):
        with pytest.raises(ValueError, match="columns must be the number of a kernel below 2" + given):
            OMCL([cues[0], ("b", GIVEN, columns)]).fit(K, y)


# ------------------------------------------------------------------ degenerate streams


@pytest.mark.parametrize("cls", ALL)
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_sizes_of_X(cls, dtype):
    """Scores are finite, or X is refused in words; whatever its type."""
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
    """All samples equal, or all zero, or one of them again and again; two samples."""
    y = np.arange(60) % 3
    for X in (np.zeros((60, 6)), np.ones((60, 6)), np.tile([[0.0] * 6, [1.0] * 6], (30, 1))):
        model = make(cls).fit(X, y)
        assert np.isfinite(model.decision_function(X)).all()
        if cls in KERNEL[1:]:
            assert len(model.support_) <= 2
        if cls in KERNEL:
            for kernel in (Linear(), Poly(degree=3), Chi2(scale=1.0), RBF()):
                fitted = make(cls, kernel=kernel).fit(X, y)
                assert np.isfinite(fitted.decision_function(X)).all()
    assert make(cls).fit(np.eye(2, 6), [4, 2]).predict(np.eye(2, 6)).shape == (2,)

"""MKTL as its users meet it: priors of every kind and every way to get them wrong, scikit-learn's habits."""

import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn
from mktl_data import NAMES as COLUMNS
from mktl_data import draw
from numpy.testing import assert_array_equal
from sklearn.base import BaseEstimator, clone
from sklearn.ensemble import AdaBoostClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

from cuelearn.kernels import RBF
from cuelearn.mktl import MKTL, MultiKT, load

CUES = [("shape", RBF(), [0, 1])]
NAMED = [("shape", RBF(), ["height", "width"])]
RAW = [("raw", "passthrough", [2, 3])]


def make_data(n, seed=0, n_classes=3):
    """Two columns for the new task, four for priors."""
    return draw(n, n_classes, seed, strengths=(0.8, 2.0, 1.5))


@pytest.fixture(scope="module")
def old():
    """What priors are trained on: other samples of other classes (five of them) on the same six columns."""
    return make_data(150, seed=9, n_classes=5)


@pytest.fixture(scope="module")
def priors(old):
    """Other features, other learners, from two to five classes."""
    X, y = old
    boosted = AdaBoostClassifier(n_estimators=10, random_state=0)
    return [
        ("birds", boosted.fit(X[:, 2:4], np.array(list("abcde"))[y]), [2, 3]),
        ("plane", make_pipeline(StandardScaler(), SVC()).fit(X[:, 4:], y == 2), [4, 5]),
        ("plants", GaussianNB().fit(X[y < 3][:, 2:], y[y < 3]), slice(2, 6)),
        ("all", LinearSVC().fit(X, y)),
    ]


@pytest.fixture(scope="module")
def data():
    return make_data(90, seed=1)


@pytest.fixture(scope="module")
def new():
    return make_data(60, seed=2)


def model_of(priors, kernels=CUES, **options):
    return MKTL(kernels, priors, random_state=0, **options)


def test_columns_of_priors(priors, data, new):
    X, y = data
    model = model_of(priors, C=10.0).fit(X, y)
    plants, everything = [f"plants: {c}" for c in range(3)], [f"all: {c}" for c in range(5)]
    assert model.prior_names_ == [*[f"birds: {c}" for c in "abcde"], "plane", *plants, *everything]

    def columns(X):
        birds, plane, plants, everything = (prior for _, prior, *_ in priors)
        return np.column_stack(
            [
                birds.decision_function(X[:, 2:4]),
                plane.decision_function(X[:, 4:]),
                plants.predict_proba(X[:, 2:]),
                everything.decision_function(X),
            ]
        )

    plain = model_of(None, C=10.0).fit(X, y, scores=columns(X))
    assert_array_equal(plain.transfer_weights_, model.transfer_weights_)
    scores = plain.decision_function(new[0], scores=columns(new[0]))
    assert_array_equal(scores, model.decision_function(new[0]))


class Fixed(BaseEstimator):
    """Answers what it was told to, and something else later."""

    def __init__(self, answer, classes=None, later=None):
        self.answers = iter([answer, later])
        if classes is not None:
            self.classes_ = np.arange(classes)

    def fit(self, X, y):
        return self

    def decision_function(self, X):
        return next(self.answers)(X)


def nan_at_row_7(X):
    out = np.ones((len(X), 3))
    out[7, 1] = np.nan
    return out


def raises(X):
    raise RuntimeError("cannot")


def bad_priors():
    X, y = make_data(120, seed=9, n_classes=4)
    frame = pd.DataFrame(X, columns=COLUMNS)
    fitted = LinearSVC().fit(X, y)
    return {
        "unfitted": SVC(),
        "NaN": Fixed(nan_at_row_7, 3),
        "too few rows": Fixed(lambda X: np.ones((len(X) - 1, 3)), 3),
        "two columns for three classes": Fixed(lambda X: np.ones((len(X), 2)), 3),
        "raises": Fixed(raises),
        "other number of features": LinearSVC().fit(X[:, :4], y),
        "same names in another order": LinearSVC().fit(frame[COLUMNS[::-1]], y),
        "regressor": LinearRegression().fit(X, y),
        "class, not instance": SVC,
        "nothing": None,
        "too many columns asked for": (fitted, [0, 1, 2, 3, 4, 6]),
        "unknown column name": (fitted, [*COLUMNS[:5], "blue"]),
        "passthrough without columns there": ("passthrough", [11]),
    }


BAD = bad_priors()


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_prior_is_one_error_that_names_it(kind, data):
    X, y = data
    X = pd.DataFrame(X, columns=COLUMNS) if "name" in kind else X
    entry = BAD[kind] if isinstance(BAD[kind], tuple) else (BAD[kind],)
    model = model_of([("fine", "passthrough", [2])], n_epochs=2, tol=None).fit(X, y)
    before = {name: value for name, value in vars(model).items() if name.endswith("_")}
    model.set_params(priors=[("fine", "passthrough", [2]), ("zebra finch", *entry)])
    with pytest.raises(ValueError, match="zebra finch") as caught:
        model.fit(X, y)
    message = str(caught.value)
    assert "\n" not in message and "fine" not in message and len(message) < 300
    assert all(vars(model)[name] is value for name, value in before.items())


@pytest.mark.parametrize(
    "priors, message",
    [
        ([*RAW, *RAW], "'raw' twice"),
        ([("alone",)], "priors must be a list of .* got the entry"),
        ("passthrough", "'priors' parameter|priors must be a list of"),
    ],
)
def test_bad_lists_of_priors(priors, message, data):
    with pytest.raises((ValueError, TypeError), match=message):
        model_of(priors).fit(*data)


@pytest.mark.parametrize("later", [lambda X: np.ones((len(X), 2)), nan_at_row_7])
def test_a_prior_that_changes_is_named_at_prediction(later, data, new):
    prior = Fixed(lambda X: X[:, :3], later=later)
    model = model_of([("fine", "passthrough", [2]), ("zebra finch", prior)]).fit(*data)
    with pytest.raises(ValueError, match="zebra finch"):
        model.predict(new[0])


def test_bad_scores(priors, data, new):
    X, y = data
    S = np.random.default_rng(0).normal(size=(90, 4))
    infinite = S.copy()
    infinite[3, 2] = -np.inf
    for bad in (S[:89], infinite):
        with pytest.raises(ValueError, match="scores must have shape"):
            model_of(None).fit(X, y, scores=bad)
    model = model_of(priors).fit(X, y, scores=S)
    for bad in (None, S[:59], S[:60, :3]):
        with pytest.raises(ValueError, match="scores must have"):
            model.predict(new[0], scores=bad)
    with pytest.raises(ValueError, match="X must be samples, not a CrossBank, if priors"):
        model.predict(model.bank_.cross(X), scores=S)
    with pytest.raises(ValueError, match="priors need X: with kernels='precomputed'"):
        MKTL("precomputed", RAW).fit(np.eye(90), y)


def test_cross_validation_of_p_with_few_samples():
    """Fewer folds where a class has fewer samples; a single sample is in all training folds."""
    X, y = make_data(30)
    y[y == 2] = 0
    y[:3] = 2
    assert model_of(RAW, p=(1.1, 1.5)).fit(X, y).p_ in (1.1, 1.5)
    y[1:3] = 0
    assert 1.0 < model_of(RAW, p="cv").fit(X, y).p_ <= 2.0


def test_grid_search_with_priors(priors, data, new):
    """A clone keeps its priors fitted; a search clones the values of its grid."""
    X, y = data
    frozen = [(name, FrozenEstimator(prior), *columns) for name, prior, *columns in priors]
    grid = {"C": [0.01, 10.0], "priors": [None, frozen]}
    search = GridSearchCV(model_of(priors), grid, cv=2).fit(X, y)
    assert search.best_params_["priors"] is not None and search.score(*new) > 0.6
    direct = clone(model_of(priors, C=search.best_params_["C"])).fit(X, y)
    assert_array_equal(search.best_estimator_.predict(new[0]), direct.predict(new[0]))


def test_grid_search_with_scores_through_metadata_routing(data):
    X, y = data
    S = np.eye(3)[y] + 0.1 * np.random.default_rng(0).normal(size=(90, 3))  # knows the answer
    with sklearn.config_context(enable_metadata_routing=True):
        model = model_of(None).set_fit_request(scores=True).set_score_request(scores=True)
        search = GridSearchCV(model, {"C": [0.1, 10.0]}, cv=3).fit(X, y, scores=S)
        piped = make_pipeline(StandardScaler(), clone(model)).fit(X, y, scores=S)
        assert piped.score(X, y, scores=S) > 0.95
    by_hand = []
    for train, test in StratifiedKFold(3).split(X, y):
        fitted = model_of(None, C=search.best_params_["C"]).fit(X[train], y[train], scores=S[train])
        by_hand.append(fitted.score(X[test], y[test], scores=S[test]))
    assert search.best_score_ == pytest.approx(np.mean(by_hand))
    # without routing scikit-learn hands over nothing to predict with, and the message says what to do
    with pytest.raises(ValueError, match=r"enable_metadata_routing=True.*set_score_request\(scores=True\)"):
        cross_val_score(MultiKT(), S, y, cv=2, params={"scores": S}, error_score="raise")


def test_data_frames_with_named_columns(old, data, new):
    X, y = data
    frame, new_frame = pd.DataFrame(X, columns=COLUMNS), pd.DataFrame(new[0], columns=COLUMNS)
    on_arrays = LinearSVC().fit(old[0][:, 2:4], old[1])
    on_frames = LinearSVC().fit(pd.DataFrame(old[0][:, 2:4], columns=["red", "green"]), old[1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        wanted = model_of([("a", on_arrays, [2, 3])]).fit(X, y).decision_function(new[0])
        for prior in (on_arrays, on_frames):
            for columns in ([2, 3], ["red", "green"], slice("red", "green")):
                named = model_of([("a", prior, columns)], NAMED).fit(frame, y)
                assert_array_equal(named.decision_function(new_frame), wanted)
    for wrong in (["red", "fine"], ["green", "red"]):
        with pytest.raises(ValueError, match="zebra finch"):
            model_of([("zebra finch", on_frames, wrong)], NAMED).fit(frame, y)
    raw = model_of([("raw", "passthrough", ["fine", "red"])], NAMED).fit(frame, y)
    assert_array_equal(raw.transfer_weights_, model_of(None).fit(X, y, scores=X[:, [4, 2]]).transfer_weights_)
    assert raw.prior_names_ == ["raw: fine", "raw: red"]


def test_saved_without_its_priors(priors, data, new, tmp_path):
    """No pickle, so no priors in the file: they are given back, or their scores are."""
    model = model_of(priors).fit(*data)
    model.save(tmp_path / "model.npz")
    loaded = load(tmp_path / "model.npz")
    with pytest.raises(ValueError, match="attach|priors"):
        loaded.predict(new[0])
    assert loaded.attach(priors) is loaded
    assert_array_equal(loaded.decision_function(new[0]), model.decision_function(new[0]))
    for others in (priors[:2], priors[::-1]):
        with pytest.raises(ValueError, match="priors must be those of the fit in their order"):
            load(tmp_path / "model.npz").attach(others)


def test_priors_trained_on_the_new_samples_warn(data, priors):
    X, y = data
    seen = SVC().fit(X[:30], y[:30])
    scaled = make_pipeline(StandardScaler(), SVC()).fit(X[:, 2:], y)
    near = KNeighborsClassifier().fit(X, y)
    for prior, columns in ((seen, slice(None)), (scaled, slice(2, 6)), (near, slice(None))):
        with pytest.warns(UserWarning, match="'own' was trained on [0-9]+ of the 90 new samples"):
            MKTL(CUES, [("own", prior, columns), *priors]).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        MKTL(CUES, [("other", SVC().fit(X[30:], y[30:])), *priors]).fit(X[:30], y[:30])

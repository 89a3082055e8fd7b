"""MKTL as its users meet it: priors of every kind and every way to get them wrong, scikit-learn's habits."""

import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn
from mktl_data import NAMES as COLUMNS
from mktl_data import draw
from mktl_twins import make_task
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator, clone
from sklearn.ensemble import AdaBoostClassifier, RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC, OneClassSVM

from cuelearn.kernels import RBF
from cuelearn.mkl import UFOMKL
from cuelearn.mktl import MKTL, MultiKT, load

CUES = [("shape", RBF(), [0, 1])]
NAMED = [("shape", RBF(), ["height", "width"])]
QUIET = {"random_state": 0}


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
        ("plane", SVC().fit(X[:, 4:], y == 2), [4, 5]),
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
    return MKTL(kernels, priors, **(QUIET | options))


# ------------------------------------------------------------------ priors that are right


def test_columns_of_priors(priors, data, new):
    """What each contributes, in their order, under its name; the same model as from the plain numbers."""
    X, y = data
    model = model_of(priors, C=10.0).fit(X, y)
    plants, everything = [f"plants: {c}" for c in range(3)], [f"all: {c}" for c in range(5)]
    assert model.prior_names_ == [*[f"birds: {c}" for c in "abcde"], "plane", *plants, *everything]
    assert model.transfer_weights_.shape == (3, 14) and model.score_scale_.shape == (14,)

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

    assert_allclose(model.score_scale_, np.sqrt((columns(X) ** 2).mean(axis=0)))
    plain = model_of(None, C=10.0).fit(X, y, scores=columns(X))
    assert_array_equal(plain.transfer_weights_, model.transfer_weights_)
    found = plain.decision_function(new[0], scores=columns(new[0]))
    assert_array_equal(found, model.decision_function(new[0]))


def test_priors_of_every_make(old, data):
    """A pipeline, a search, a forest, neighbours, a model of this package."""
    X, y = old
    makes = [
        ("pipeline", make_pipeline(StandardScaler(), LogisticRegression()).fit(X[:, :4], y), slice(0, 4)),
        ("search", GridSearchCV(SVC(), {"C": [0.1, 1.0]}, cv=3).fit(X, y)),
        ("forest", RandomForestClassifier(10, random_state=0).fit(X, y)),
        ("neighbours", KNeighborsClassifier().fit(X[:, 2:], y > 1), [2, 3, 4, 5]),
        ("kernels", UFOMKL([("a", RBF(), [0, 1])], n_epochs=3, **QUIET).fit(X[:, 2:4], y), [2, 3]),
        ("novelty", OneClassSVM().fit(X[:, :2]), [0, 1]),
        ("raw", "passthrough", [4, 5]),
        ("transfer", MKTL([("a", RBF(), [0, 1])], None, **QUIET).fit(X[:, 2:4], y), [2, 3]),
    ]
    widths = [5, 5, 5, 1, 5, 1, 2, 5]
    model = model_of(makes).fit(*data)
    assert len(set(model.prior_names_)) == len(model.prior_names_) == sum(widths)
    assert model.transfer_weights_.shape[1] == sum(widths)
    starts = [0, *np.cumsum(widths)]
    for (name, *_), start, stop in zip(makes, starts, starts[1:], strict=False):
        assert all(found.startswith(name) for found in model.prior_names_[start:stop])
    assert np.isfinite(model.decision_function(data[0])).all()
    assert {"neighbours", "novelty"} <= set(model.prior_names_)  # one column each: the prior's own name
    # of two classes the second, whose sign a decision function has
    chance = makes[3][1].predict_proba(data[0][:, 2:])[:, 1]
    plain = model_of(None).fit(*data, scores=chance)
    assert_array_equal(model_of(makes[3:4]).fit(*data).transfer_weights_, plain.transfer_weights_)


def test_scores_beside_priors(priors, data, new):
    """Those of the priors first, those given as numbers behind them, in one vector too."""
    X, y = data
    rng = np.random.default_rng(0)
    extra = rng.normal(size=(90, 2))
    model = model_of(priors).fit(X, y, scores=extra)
    assert len(model.prior_names_) == len(set(model.prior_names_)) == 16
    assert_allclose(model.score_scale_[14:], np.sqrt((extra**2).mean(axis=0)))
    f = model.decision_function(new[0], scores=np.zeros((60, 2)))
    assert f.shape == (60, 3)
    one = model_of(None).fit(X, y, scores=extra[:, 0])
    two = model_of(None).fit(X, y, scores=extra[:, [0]])
    assert_array_equal(one.transfer_weights_, two.transfer_weights_)
    listed = model_of(None).fit(X.tolist(), y.tolist(), scores=extra[:, [0]].tolist())
    assert_array_equal(one.transfer_weights_, listed.transfer_weights_)
    named = model_of(None).fit(X, y, scores=pd.DataFrame(extra, columns=["cat", "dog"]))
    assert [name.split()[-1] for name in named.prior_names_] == ["cat", "dog"]


# ------------------------------------------------------------------ priors that are wrong


class Fixed(BaseEstimator):
    """Answers what it was told to."""

    def __init__(self, answer=None, classes=None, error=None):
        self.answer = answer
        self.classes = classes
        self.error = error
        if classes is not None:
            self.classes_ = np.arange(classes)

    def fit(self, X, y):
        return self

    def decision_function(self, X):
        if self.error is not None:
            raise self.error
        return self.answer(X) if callable(self.answer) else self.answer


def nan_at_row_7(X):
    out = np.ones((len(X), 3))
    out[7, 1] = np.nan
    return out


class Lists(BaseEstimator):
    """A multi-output forest's answer."""

    def fit(self, X, y):
        return self

    def predict_proba(self, X):
        return [np.full((len(X), 2), 0.5)] * 3


def bad_priors():
    X, y = make_data(120, seed=9, n_classes=4)
    frame = pd.DataFrame(X, columns=COLUMNS)
    fitted = LinearSVC().fit(X, y)
    return {
        "unfitted": SVC(),
        "unfitted pipeline": make_pipeline(StandardScaler(), SVC()),
        "unfitted of ours": UFOMKL(CUES),
        "one against one": SVC(decision_function_shape="ovo").fit(X, y),
        "NaN": Fixed(nan_at_row_7, 3),
        "infinite": Fixed(lambda X: np.full(len(X), np.inf)),
        "text": Fixed(lambda X: np.full(len(X), "a")),
        "too few rows": Fixed(lambda X: np.ones((len(X) - 1, 3)), 3),
        "too many rows": Fixed(lambda X: np.ones(len(X) + 1)),
        "three dimensions": Fixed(lambda X: np.ones((len(X), 3, 1)), 3),
        "a number": Fixed(1.0),
        "None": Fixed(None),
        "two columns for three classes": Fixed(lambda X: np.ones((len(X), 2)), 3),
        "a list of matrices": Lists().fit(X, y),
        "other number of features": LinearSVC().fit(X[:, :4], y),
        "other feature names": LinearSVC().fit(frame.rename(columns={"red": "blue"}), y),
        "same names in another order": LinearSVC().fit(frame[COLUMNS[::-1]], y),
        "raises": Fixed(error=RuntimeError("cannot")),
        "regressor": LinearRegression().fit(X, y),
        "transformer": StandardScaler().fit(X),
        "class, not instance": SVC,
        "number": 3,
        "word": "pass",
        "nothing": None,
        "too many columns asked for": (fitted, [0, 1, 2, 3, 4, 6]),
        "columns of another number": (fitted, [0, 1, 2]),
        "unknown column name": (fitted, [*COLUMNS[:5], "blue"]),
        "no columns": (fitted, []),
        "columns of the wrong type": (fitted, 1.5),
        "passthrough without columns there": ("passthrough", [11]),
    }


BAD = bad_priors()


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_prior_is_one_error_that_names_it(kind, data):
    """One sentence; and a model fitted before stays as it was."""
    X, y = data
    X = pd.DataFrame(X, columns=COLUMNS) if "name" in kind else X
    entry = BAD[kind] if isinstance(BAD[kind], tuple) else (BAD[kind],)
    model = model_of([("fine", "passthrough", [2])], n_epochs=2, tol=None).fit(X, y)
    before = {name: value for name, value in vars(model).items() if name.endswith("_")}
    model.set_params(priors=[("fine", "passthrough", [2]), ("zebra finch", *entry)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises((ValueError, TypeError), match="zebra finch") as caught:
            model.fit(X, y)
    message = str(caught.value)
    assert "\n" not in message and "fine" not in message and len(message) < 300
    if kind not in ("class, not instance", "number", "nothing", "columns of the wrong type"):
        assert isinstance(caught.value, ValueError)
    assert all(vars(model)[name] is value for name, value in before.items())


@pytest.mark.parametrize(
    "priors, message",
    [
        ([("twin", "passthrough", [2]), ("other", "passthrough", [3]), ("twin", "passthrough", [4])], "twin"),
        ([("alone",)], "priors"),
        ([("a", "passthrough", [2], 3)], "priors"),
        ([(3, "passthrough", [2])], "priors"),
        (["passthrough"], "priors"),
        ("passthrough", "priors"),
        (3, "priors"),
        ({"a": "passthrough"}, "priors"),
        ((entry for entry in [("a", "passthrough", [2])]), "priors"),  # would be used up by the first fit
    ],
)
def test_bad_lists_of_priors(priors, message, data):
    with pytest.raises((ValueError, TypeError), match=message) as caught:
        model_of(priors).fit(*data)
    assert "\n" not in str(caught.value)


def test_a_passthrough_column_that_is_not_finite_names_the_prior_that_owns_it():
    """NaN and infinity in X are refused, with or without names of the columns."""
    X, y = make_data(60)
    for value in (np.nan, np.inf):
        broken = X.copy()
        broken[5, 2] = value
        for given in (broken, pd.DataFrame(broken, columns=COLUMNS)):
            with pytest.raises(ValueError, match="zebra finch|NaN|infinity"):
                model_of([("zebra finch", "passthrough", [2])]).fit(given, y)


class Changing(BaseEstimator):
    """A prior that breaks between training and prediction."""

    def __init__(self, answers):
        self.answers = answers
        self.calls = 0

    def fit(self, X, y):
        return self

    def decision_function(self, X):
        self.calls += 1
        return self.answers[min(self.calls, len(self.answers)) - 1](X)


@pytest.mark.parametrize(
    "later",
    [
        lambda X: np.ones((len(X), 2)),
        nan_at_row_7,
        lambda X: np.ones(len(X)),
        lambda X: np.ones((len(X) + 2, 3)),
    ],
)
def test_a_prior_that_changes_is_named_at_prediction(later, data, new):
    prior = Changing([lambda X: X[:, :3], later])
    model = model_of([("fine", "passthrough", [2]), ("zebra finch", prior)]).fit(*data)
    with pytest.raises(ValueError, match="zebra finch"):
        model.predict(new[0])


def test_bad_scores(priors, data, new):
    X, y = data
    rng = np.random.default_rng(0)
    S = rng.normal(size=(90, 4))
    ragged, text = [[1.0], [2.0, 3.0]], np.full((90, 2), "a")
    infinite = S.copy()
    infinite[3, 2] = -np.inf
    double, unknown = np.concatenate([S, S]), np.full((90, 4), np.nan)
    for bad in (S[:89], double, unknown, infinite, S[:, :, None], text, 3.0, "scores", ragged):
        with pytest.raises((ValueError, TypeError), match="scores") as caught:
            model_of(None).fit(X, y, scores=bad)
        assert "\n" not in str(caught.value)
    model = model_of(priors).fit(X, y, scores=S)
    T = rng.normal(size=(60, 4))
    for bad in (None, T[:59], T[:, :3], np.concatenate([T, T], axis=1), T[:, 0], np.full((60, 4), np.nan)):
        for ask in (model.predict, model.decision_function):
            with pytest.raises(ValueError, match="scores") as caught:
                ask(new[0], scores=bad)
            assert "\n" not in str(caught.value)
        with pytest.raises(ValueError, match="scores"):
            model.score(*new, scores=bad)
    with pytest.raises(ValueError, match="scores"):
        model_of(priors).fit(X, y).predict(new[0], scores=T)


def test_priors_need_features():
    K, S, y = make_task(0)
    with pytest.raises(ValueError, match="priors"):
        MKTL("precomputed", [("a", "passthrough", [0])]).fit(K, y)
    assert MKTL("precomputed", [], **QUIET).fit(K, y, scores=S).transfer_weights_.shape == (3, 4)


@pytest.mark.parametrize(
    "name, values",
    [
        ("p", [1.0, 2.5, 0, "car", None, True, np.nan, [], [3.0], [1.2, "a"], [1.2, 1.2, 0.5]]),
        ("class_weight", ["negative", "positive", 3, {7: 2.0}, [1.0, 1.0, 1.0]]),
        ("class_weight", [{0: 1.0, 1: value, 2: 1.0} for value in (-1.0, np.nan, np.inf, "a", None)]),
        ("scaling", ["unit", 3, True, ["rms"]]),
        ("n_epochs", [-1, 0.5, None, "1"]),
        ("tol", [-1e-3, np.nan, "small", True]),
    ],
)
def test_a_bad_parameter_is_one_error_that_names_it(name, values, data):
    for value in values:
        model = model_of([("raw", "passthrough", [2, 3])]).set_params(**{name: value})
        with pytest.raises((ValueError, TypeError), match=rf"\b{name}\b") as caught:
            model.fit(*data)
        assert "\n" not in str(caught.value)


def test_cross_validation_of_p_with_few_samples():
    """Fewer folds where a class has fewer samples, and one sentence where that cannot be."""
    X, y = make_data(30)
    y[y == 2] = 0
    y[:3] = 2
    model = model_of([("raw", "passthrough", [2, 3])], p=(1.1, 1.5)).fit(X, y)
    assert model.p_ in (1.1, 1.5)
    y[1:3] = 0
    with pytest.raises(ValueError, match=r"\by\b|\bp\b|\bcv\b|sample") as caught:
        model_of([("raw", "passthrough", [2, 3])], p="cv").fit(X, y)
    assert "\n" not in str(caught.value)


# ------------------------------------------------------------------ scikit-learn


def test_a_clone_keeps_its_priors_fitted(priors, data):
    """They are given knowledge, not part of what is learnt."""
    X, y = data
    model = model_of(priors).fit(X, y)
    copy = clone(model)
    assert not hasattr(copy, "transfer_weights_") and copy.get_params().keys() == model.get_params().keys()
    again = copy.fit(X, y)
    assert_array_equal(again.transfer_weights_, model.transfer_weights_)
    for _, prior, *_ in priors:
        assert prior.classes_.size  # still fitted, ours or not


def test_grid_search_with_priors(priors, data, new):
    X, y = data
    # a search clones the values of its grid
    frozen = [(name, FrozenEstimator(prior), *columns) for name, prior, *columns in priors]
    grid = {"C": [0.01, 10.0], "priors": [None, frozen]}
    search = GridSearchCV(model_of(priors), grid, cv=2).fit(X, y)
    assert search.best_params_["priors"] is not None
    assert search.score(*new) > 0.6
    assert not np.isnan(search.cv_results_["mean_test_score"]).any()
    direct = model_of(priors, C=search.best_params_["C"]).fit(X, y)
    assert_array_equal(search.best_estimator_.predict(new[0]), direct.predict(new[0]))


def test_grid_search_with_scores_through_metadata_routing(data):
    """The rows of `scores` follow the folds to fit and to score."""
    X, y = data
    S = np.eye(3)[y] + 0.1 * np.random.default_rng(0).normal(size=(90, 3))  # knows the answer
    with sklearn.config_context(enable_metadata_routing=True):
        model = model_of(None).set_fit_request(scores=True).set_score_request(scores=True)
        search = GridSearchCV(model, {"C": [0.1, 10.0]}, cv=3).fit(X, y, scores=S)
        assert search.best_score_ > 0.95
        piped = make_pipeline(StandardScaler(), clone(model)).fit(X, y, scores=S)
        assert piped.score(X, y, scores=S) > 0.95
    without = GridSearchCV(model_of(None), {"C": [0.1, 10.0]}, cv=3).fit(X, y)
    assert without.best_score_ < 0.9
    by_hand = []
    for train, test in StratifiedKFold(3).split(X, y):
        fitted = model_of(None, C=search.best_params_["C"]).fit(X[train], y[train], scores=S[train])
        by_hand.append(fitted.score(X[test], y[test], scores=S[test]))
    assert search.best_score_ == pytest.approx(np.mean(by_hand))


# ------------------------------------------------------------------ data frames


def test_data_frames_with_named_columns(old, data, new):
    """Priors by column names or numbers, fitted on frames or arrays: the same, and no warning about names."""
    X, y = data
    frame, new_frame = pd.DataFrame(X, columns=COLUMNS), pd.DataFrame(new[0], columns=COLUMNS)
    old_frame = pd.DataFrame(old[0], columns=COLUMNS)
    on_arrays = LinearSVC().fit(old[0][:, 2:4], old[1])
    on_frames = LinearSVC().fit(old_frame[["red", "green"]], old[1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plain = model_of([("a", on_arrays, [2, 3])]).fit(X, y)
        wanted = plain.decision_function(new[0])
        for prior in (on_arrays, on_frames):
            for columns in ([2, 3], ["red", "green"], slice(2, 4), slice("red", "green")):
                named = model_of([("a", prior, columns)], NAMED).fit(frame, y)
                assert_array_equal(named.decision_function(new_frame), wanted)
                assert named.prior_names_ == plain.prior_names_
        assert list(named.feature_names_in_) == COLUMNS and named.n_features_in_ == 6
    with pytest.warns(
        UserWarning, match="does not have valid feature names"
    ):  # scikit-learn's own word: nobody can compare names here
        mixed = model_of([("a", on_frames, [2, 3])]).fit(X, y)
        assert_array_equal(mixed.decision_function(new[0]), wanted)
    with pytest.raises(ValueError, match="feature names should match"):
        named.predict(new_frame[COLUMNS[::-1]])
    # rows of a frame may come in any order, with any index
    order = np.random.default_rng(0).permutation(60)
    assert_allclose(named.decision_function(new_frame.iloc[order]), wanted[order], rtol=1e-6, atol=1e-6)
    for wrong in (["red", "fine"], ["green", "red"]):
        with pytest.raises(ValueError, match="zebra finch"):
            model_of([("zebra finch", on_frames, wrong)], NAMED).fit(frame, y)
    raw = model_of([("raw", "passthrough", ["fine", "red"])], NAMED).fit(frame, y)
    assert_array_equal(raw.transfer_weights_, model_of(None).fit(X, y, scores=X[:, [4, 2]]).transfer_weights_)
    assert raw.prior_names_ == ["raw: fine", "raw: red"]


# ------------------------------------------------------------------ precomputed kernels


def test_a_cross_bank_has_no_features_for_priors(data):
    X, y = data
    model = model_of([("raw", "passthrough", [2, 3])]).fit(X, y)
    with pytest.raises(ValueError, match="prior") as caught:
        model.predict(model.bank_.cross(X))
    assert "\n" not in str(caught.value)


# ------------------------------------------------------------------ saving


def test_saved_without_its_priors(priors, data, new, tmp_path):
    """No pickle, so no priors in the file: they are given back, or their scores are."""
    X, y = data
    model = model_of(priors).fit(X, y)
    model.save(tmp_path / "model.npz")
    wanted = model.decision_function(new[0])
    loaded = load(tmp_path / "model.npz")
    with pytest.raises(ValueError, match="attach|priors"):
        loaded.predict(new[0])
    assert loaded.attach(priors) is loaded
    assert_array_equal(loaded.decision_function(new[0]), wanted)
    with pytest.raises(ValueError, match="prior") as caught:
        load(tmp_path / "model.npz").attach(priors[:2]).predict(new[0])
    assert "\n" not in str(caught.value)
    with pytest.raises(ValueError, match="prior"):
        load(tmp_path / "model.npz").attach(priors[::-1]).predict(new[0])
    # of plain scores nothing is missing, and a frame's names are kept
    frame, new_frame = (pd.DataFrame(values, columns=COLUMNS) for values in (X, new[0]))
    model = model_of(None, NAMED, class_weight="balanced", p=(1.1, 1.5)).fit(frame, y, scores=X[:, 2:])
    model.save(tmp_path / "named.npz")
    loaded = load(tmp_path / "named.npz")
    wanted = model.decision_function(new_frame, scores=new[0][:, 2:])
    assert_array_equal(loaded.decision_function(new_frame, scores=new[0][:, 2:]), wanted)
    again = loaded.fit(frame, y, scores=X[:, 2:])
    assert_allclose(again.transfer_weights_, model.transfer_weights_, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("cls", [MKTL, MultiKT])
def test_a_search_without_routing_says_so(cls):
    y = np.arange(30) % 3
    scores = np.eye(3)[y]
    with pytest.raises(ValueError, match=r"enable_metadata_routing=True.*set_score_request\(scores=True\)"):
        cross_val_score(cls(), scores, y, cv=2, params={"scores": scores}, error_score="raise")

"""The estimators as scikit-learn's users meet them."""

import warnings

import numba
import numpy as np
import pandas as pd
import pytest
from mkl_data import (
    ALL,
    COLUMNS,
    CUES,
    NAMED,
    ONE_VERSUS_ALL,
    ROUNDS,
    SINGLE,
    STOCHASTIC,
    make,
    make_data,
    plain_svms,
    solved,
)
from mkl_twins import make_stack
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from cuelearn.kernels import RBF, KernelBank, Linear
from cuelearn.mkl import (
    GMKL,
    MLMKLSA,
    OBSCURE,
    OM2,
    UFOMKL,
    VSKL,
    AverageKernelSVM,
    BestKernelSVM,
    KernelPA,
    LPBeta,
    LpMKL,
    PegasosMKL,
    load,
)


@pytest.fixture
def data():
    return make_data(90)


@pytest.fixture
def new():
    return make_data(40, seed=1)


def same(one, other):
    assert_array_equal(one.support_, other.support_)
    assert_array_equal(one.dual_coef_, other.dual_coef_)
    assert_array_equal(one.kernel_weights_, other.kernel_weights_)


# ------------------------------------------------------------------ scikit-learn


@pytest.mark.parametrize("cls", ALL)
def test_grid_search_over_a_pipeline_with_cues(cls, data, new):
    X, y = data
    pipeline = make_pipeline(StandardScaler(), make(cls, CUES))
    name = cls.__name__.lower()
    grid = {f"{name}__C": [0.1, 1.0], f"{name}__kernels": [CUES, CUES[1:]]}
    search = GridSearchCV(pipeline, grid, cv=3).fit(X, y)
    assert search.best_params_[f"{name}__kernels"] == CUES  # the other choice leaves the good cues out
    assert search.score(*new) > 0.85
    assert cross_val_score(search.best_estimator_, X, y, cv=3).mean() > 0.85


@pytest.mark.parametrize("cls", [*ALL, LPBeta])
def test_data_frames_with_named_columns(cls, data, new, tmp_path):
    X, y = data
    frame, new_frame = pd.DataFrame(X, columns=COLUMNS), pd.DataFrame(new[0], columns=COLUMNS)
    by_name, by_number = make(cls, NAMED).fit(frame, y), make(cls, CUES).fit(X, y)
    same(by_name, by_number)
    assert list(by_name.feature_names_in_) == COLUMNS
    assert by_name.n_features_in_ == by_number.n_features_in_ == 6
    assert_array_equal(by_name.decision_function(new_frame), by_number.decision_function(new[0]))
    by_name.save(tmp_path / "model.npz")
    loaded = load(tmp_path / "model.npz")
    assert_array_equal(loaded.decision_function(new_frame), by_name.decision_function(new_frame))
    for model in (by_name, loaded):
        with pytest.raises(ValueError, match="feature names should match"):
            model.predict(new_frame[COLUMNS[::-1]])

    # and through a pipeline that keeps the names
    pipeline = make_pipeline(StandardScaler().set_output(transform="pandas"), make(cls, NAMED)).fit(frame, y)
    assert pipeline.score(new_frame, new[1]) > 0.85


@pytest.mark.parametrize("cls", [*ALL, GMKL, VSKL, LPBeta])
def test_all_forms_of_input_agree(cls, data, new):
    """From X, from the stack, from a bank, and predictions from a cross bank: the same model."""
    X, y = data
    bank = KernelBank(CUES, X)
    cross = bank.cross(new[0])
    rows = np.concatenate([block for _, block in cross.blocks()], axis=1)
    from_X = make(cls, CUES).fit(X, y)
    from_stack = make(cls, "precomputed").fit(bank.stack, y)
    from_bank = make(cls, "precomputed").fit(bank, y)
    same(from_X, from_stack)
    same(from_X, from_bank)
    assert from_stack.n_features_in_ == from_bank.n_features_in_ == 90
    wanted = from_X.decision_function(new[0])
    for model in (from_stack, from_bank, from_X):
        for given in (cross,) if model is from_X else (rows, cross):
            assert_allclose(model.decision_function(given), wanted, atol=1e-5 * np.abs(wanted).max())
            assert_array_equal(model.predict(given), from_X.predict(new[0]))


@pytest.mark.parametrize("cls", ALL)
def test_restricted_banks_for_cross_validation(cls, data):
    """Folds of a bank, the way to cross-validate precomputed kernels."""
    X, y = data
    bank = KernelBank(CUES, X)
    for train, test in StratifiedKFold(3).split(X, y):
        model = make(cls, "precomputed").fit(bank.restrict(train), y[train])
        assert model.score(bank.stack[:, test][:, :, train], y[test]) > 0.8


@pytest.mark.parametrize("cls", ALL)
def test_defaults_are_one_rbf_over_all_columns(cls, data, new):
    X, y = data
    model, named = make(cls).fit(X, y), make(cls, [("rbf", RBF(), slice(None))]).fit(X, y)
    same(model, named)
    assert model.kernel_weights_.shape == ((3, 1) if cls in ONE_VERSUS_ALL else (1,))
    assert model.score(*new) > 0.8


@pytest.mark.parametrize("cls", ALL)
def test_shapes_and_prediction_formula(cls, data, new):
    X, y = data
    bank = KernelBank(CUES, X)
    cross = np.concatenate([block for _, block in bank.cross(new[0]).blocks()], axis=1)
    for labels in (y, (y > 0).astype(int)):
        model = make(cls, CUES).fit(X, labels)
        n_classes = labels.max() + 1
        assert model.dual_coef_.shape == (model.support_.size, n_classes)
        assert model.kernel_weights_.shape == ((n_classes, 3) if cls in ONE_VERSUS_ALL else (3,))
        assert (np.diff(model.support_) > 0).all()
        weights = np.broadcast_to(
            model.kernel_weights_, (n_classes, 3)
        )  # a row for each class, or one for all
        scores = np.einsum(
            "cj,jni,ic->nc", weights, cross[:, :, model.support_].astype(float), model.dual_coef_
        )
        scores = scores + getattr(model, "intercept_", 0.0)
        wanted = scores[:, 1] - scores[:, 0] if n_classes == 2 else scores
        found = model.decision_function(new[0])
        assert_allclose(found, wanted, atol=1e-4 * np.abs(wanted).max())
        assert_array_equal(model.predict(new[0]), model.classes_[scores.argmax(axis=1)])
        if n_classes == 2:
            assert_array_equal(model.predict(new[0]), model.classes_[(found > 0).astype(int)])


# ------------------------------------------------------------------ saving


def test_saved_models_without_support(data, new, tmp_path):
    """alpha so large that w = 0, and kernels that are all 0; an infinite radius."""
    X, y = data
    infinite = OBSCURE(CUES, n_epochs=3, random_state=0).fit(X, y)
    infinite.radius_ = np.inf
    empty = UFOMKL(CUES, alpha=1e6, random_state=0).fit(X, y)
    zeros = KernelPA([("zero", Linear(), [0])]).fit(0.0 * X, y)
    for model in (infinite, empty, zeros):
        model.save(tmp_path / "model.npz")
        loaded = load(tmp_path / "model.npz")
        same(loaded, model)
        assert vars(loaded).get("radius_") == vars(model).get("radius_")
        assert_array_equal(loaded.decision_function(new[0]), model.decision_function(new[0]))
        assert model is infinite or not loaded.decision_function(new[0]).any()


# ------------------------------------------------------------------ baselines


@pytest.mark.parametrize("C", [0.1, 10.0])
@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_average_kernel_is_libsvm_on_the_mean(n_classes, C):
    """One SVM with bias per class on the mean kernel; for two classes a single one."""
    rng = np.random.default_rng(n_classes)
    K, y = make_stack(rng, 60, 4, n_classes)
    train, test = np.arange(45), np.arange(45, 60)
    mean = K.mean(axis=0)
    model = AverageKernelSVM("precomputed", C=C).fit(K[:, train][:, :, train], y[train])
    assert_allclose(model.kernel_weights_, 0.25)
    wanted = plain_svms(mean, y, train, test, C)
    assert_allclose(model.decision_function(K[:, test][:, :, train]), wanted, atol=1e-9)
    threaded = AverageKernelSVM("precomputed", C=C, n_jobs=2).fit(K[:, train][:, :, train], y[train])
    same(model, threaded)


@pytest.mark.parametrize("cls, options", [(BestKernelSVM, {}), (KernelPA, {"kernel": "best", "n_epochs": 3})])
def test_best_kernel(cls, options, data, new):
    X, y = data
    order = [CUES[2], CUES[0], CUES[1]]
    model = make(cls, order, **options).fit(X, y)
    assert model.best_kernel_ == "shape"
    assert_array_equal(model.kernel_weights_, [0.0, 1.0, 0.0])
    assert model.kernel_accuracy_.argmax() == 1
    assert model.score(*new) > 0.85
    listed = [(train.tolist(), test.tolist()) for train, test in model.folds_]
    assert_array_equal(
        make(cls, order, folds=listed, **options).fit(X, y).kernel_accuracy_, model.kernel_accuracy_
    )
    # the others are not needed at prediction
    garbage = new[0].copy()
    garbage[:, 2:] = 1e6
    assert_array_equal(model.predict(garbage), model.predict(new[0]))

    if cls is BestKernelSVM:
        alone = AverageKernelSVM([CUES[0]]).fit(X, y)
        assert_allclose(model.decision_function(new[0]), alone.decision_function(new[0]), atol=1e-9)
    else:
        alone = KernelPA([CUES[0]], n_epochs=3, random_state=0).fit(X, y)
        assert alone.score(*new) > 0.85


def test_passive_aggressive_on_a_chosen_kernel(data):
    X, y = data
    model = KernelPA(CUES, kernel="shape").fit(X, y)
    same(KernelPA([CUES[0]]).fit(X, y), KernelPA([CUES[0]], kernel="shape").fit(X, y))
    assert_array_equal(model.kernel_weights_, [1.0, 0.0, 0.0])
    assert_array_equal(model.dual_coef_, KernelPA([CUES[0]]).fit(X, y).dual_coef_)


# ------------------------------------------------------------------ history, stopping, callbacks


COLUMNS_OF_HISTORY = set("step epoch seconds n_updates n_support online_error objective dual_gap".split())


@pytest.mark.parametrize("measure", ["auto", "end", "every", "geometric"])
@pytest.mark.parametrize("cls", STOCHASTIC)
def test_history(cls, measure, data):
    X, y = data
    _, result = solved(cls, KernelBank(CUES, X), y, n_epochs=10, measure=measure)
    history = result.history
    assert COLUMNS_OF_HISTORY <= set(history.columns)
    assert history.epoch.tolist() == list(range(1, result.n_iter + 1))
    assert history.step.tolist() == [90 * epoch for epoch in history.epoch]
    for rising in ("seconds", "n_updates", "n_support"):
        assert history[rising].is_monotonic_increasing
    assert history.n_updates.iloc[-1] == result.n_updates
    assert history.n_support.iloc[-1] == np.count_nonzero(result.dual_coef.any(axis=1))
    assert result.online_errors.shape == (90 * result.n_iter,) and result.online_errors.dtype == bool
    assert_allclose(history.online_error, result.online_errors.reshape(-1, 90).mean(axis=1))
    measured = history.objective.notna()
    assert (measured == history.dual_gap.notna()).all() and measured.iloc[-1]
    batch = history[history.stage == history.stage.iloc[-1]].reset_index(drop=True)
    if measure == "every":
        assert measured.all()
    elif measure == "geometric":
        assert {0, 1, 2, 3, 5, 8} <= set(np.flatnonzero(batch.objective.notna()))
    else:
        assert measured.sum() == 1
    assert history.objective.iloc[-1] == result.objective and history.dual_gap.iloc[-1] == result.dual_gap
    if cls is OBSCURE:
        assert set(history.stage) == {"online", "batch"}
        assert (batch.n_updates.iloc[0] > 0) and result.extra["radius"] <= result.extra["radius_online"]


@pytest.mark.parametrize("cls", [OBSCURE, UFOMKL, PegasosMKL])
def test_tol_stops_on_the_gap(cls, data):
    X, y = data
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        model = make(cls, CUES, tol=0.1, n_epochs=5000).fit(X, y)
    assert model.converged_
    assert model.dual_gap_ <= 0.1 * model.objective_
    assert model.n_iter_ < 5000
    finer = make(cls, CUES, tol=0.01, n_epochs=5000).fit(X, y)
    assert finer.n_iter_ > model.n_iter_ and finer.dual_gap_ <= 0.01 * finer.objective_


@pytest.mark.parametrize("cls", STOCHASTIC)
def test_a_tolerance_that_is_missed_warns(cls, data):
    X, y = data
    with pytest.warns(
        ConvergenceWarning, match=r"did not reach tol=1e-09: the relative duality gap is .* after \d+ epochs"
    ):
        published = {} if cls is OM2 else {"finish": False}  # an ascent may come to a gap of 0
        model = make(cls, CUES, tol=1e-9, n_epochs=3, **published).fit(X, y)
    assert not model.converged_
    assert model.dual_gap_ > 1e-9 * model.objective_
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        assert make(cls, CUES, n_epochs=3, tol=None).fit(X, y).converged_


@pytest.mark.parametrize("cls", STOCHASTIC)
def test_callback_sees_every_epoch(cls, data):
    X, y = data
    seen = []

    def watch(estimator, step):
        assert isinstance(estimator, cls)
        seen.append((step, estimator.score(X, y), len(estimator.history_), estimator.dual_coef_.copy()))

    model = make(cls, CUES, n_epochs=4, tol=None, callback=watch).fit(X, y)
    assert [step for step, *_ in seen] == [90 * (epoch + 1) for epoch in range(model.n_iter_)]
    assert [rows for _, _, rows, _ in seen] == list(range(1, model.n_iter_ + 1))
    assert_array_equal(seen[-1][3], model.dual_coef_)
    assert seen[-1][1] == model.score(X, y)
    same(model, make(cls, CUES, n_epochs=4, tol=None).fit(X, y))  # watching changes nothing


@pytest.mark.parametrize("cls", STOCHASTIC)
@pytest.mark.parametrize("epochs", [1, 3])
def test_callback_stops_the_run(cls, epochs, data):
    """A true return value ends the whole run, the batch stage that would follow too."""
    X, y = data
    calls = []

    def stop(estimator, step):
        calls.append(step)
        return len(calls) == epochs

    model = make(cls, CUES, n_epochs=20, callback=stop).fit(X, y)
    assert calls == [90 * (epoch + 1) for epoch in range(epochs)]
    assert model.n_iter_ == len(model.history_) == epochs
    assert np.isfinite([model.objective_, model.dual_gap_]).all()
    assert model.score(X, y) > 0.5


# ------------------------------------------------------------------ random states and threads


@pytest.mark.parametrize("cls", [OBSCURE, PegasosMKL, UFOMKL])
def test_random_states(cls, data):
    X, y = data
    one, again, other = (cls(CUES, n_epochs=3, random_state=state).fit(X, y) for state in (1, 1, 2))
    same(one, again)
    assert not np.array_equal(one.dual_coef_, other.dual_coef_)
    same(one, cls(CUES, n_epochs=3, random_state=np.int64(1)).fit(X, y))
    same(one, cls(CUES, n_epochs=3, random_state=np.random.default_rng(1)).fit(X, y))
    legacy = [cls(CUES, n_epochs=3, random_state=np.random.RandomState(3)).fit(X, y) for _ in range(2)]
    same(*legacy)
    drawn = [cls(CUES, n_epochs=3).fit(X, y) for _ in range(2)]  # None: fresh entropy
    assert not np.array_equal(drawn[0].dual_coef_, drawn[1].dual_coef_)
    state = np.random.get_state()[1].copy()
    cls(CUES, n_epochs=3).fit(X, y)
    assert_array_equal(np.random.get_state()[1], state)  # the global state is nobody's business


@pytest.mark.parametrize("cls", STOCHASTIC)
def test_refitting_starts_anew(cls, data):
    X, y = data
    model = make(cls, CUES, n_epochs=3)
    first = clone(model).fit(X, y)
    same(model.fit(X[:50], y[:50]).fit(X, y), first)


@pytest.mark.parametrize("memory", [2e9, 3e5])
@pytest.mark.parametrize(
    "cls, scores",
    [(cls, scores) for cls in STOCHASTIC for scores in ("recompute", "maintain")]
    + [(cls, None) for cls in SINGLE + ROUNDS],
)
def test_same_bits_for_any_number_of_threads(cls, memory, scores):
    """DESIGN, promise 4, for a resident bank and for rows computed on demand."""
    if numba.config.NUMBA_NUM_THREADS < 2:
        pytest.skip("numba was started with one thread")
    X, y = make_data(400)
    X_new, _ = make_data(150, seed=1)
    found = []
    for threads in (1, 2):
        numba.set_num_threads(threads)
        with threadpool_limits(threads):
            bank = KernelBank(CUES, X, memory=memory)
            run = solved(cls, bank, y, scores=scores, n_epochs=4)[1][:2] if scores else ()
            model = make(cls, CUES, memory=memory).fit(X, y)
            certificate = getattr(model, "objective_", 0.0), getattr(model, "dual_gap_", 0.0)
            fitted = model.dual_coef_, model.kernel_weights_, model.decision_function(X_new)
            found.append((*run, *fitted, *certificate))
    for one, two in zip(*found, strict=True):
        assert_array_equal(one, two)


# ------------------------------------------------------------------ errors

NUMBERS = [0.0, -1.0, np.nan, np.inf, "1", None, True, [1.0]]
KERNELS = ["rbf", [], [("a", RBF())], [("a", "gaus", [0])], 3, [("a", RBF(), [99])]]
#: Beyond those that the estimators of all chapters refuse.
BAD_PARAMETERS = [
    ([*ALL, GMKL, VSKL, LPBeta], "C", [True, "1"]),
    ([*ALL, GMKL, VSKL, LPBeta], "memory", [-1.0, np.nan, "2 GB", None]),
    ([*ALL, GMKL, VSKL, LPBeta], "kernels", KERNELS),
    ([*STOCHASTIC, LpMKL], "p", [0, True, [1.5]]),
    (STOCHASTIC, "tol", [-1e-3, np.nan, "small", True, [0.1]]),
    ([*ROUNDS, GMKL, VSKL], "tol", NUMBERS),
    ([*ROUNDS, GMKL, VSKL], "max_iter", [np.nan, np.inf, True, [3]]),
    ([*STOCHASTIC, KernelPA], "n_epochs", [-1, 1.5, np.inf, True, [3]]),
    ([OBSCURE], "n_epochs_online", [-1, 0.5, None, "1", np.nan]),
    ([OBSCURE], "eta", NUMBERS),
    ([UFOMKL], "alpha", [np.inf, None]),
    ([OBSCURE, UFOMKL, KernelPA, BestKernelSVM, LPBeta], "random_state", [True]),
    ([KernelPA], "kernel", ["none", 3, -1, None, True, 1.5]),
    ([VSKL], "groups", ["suffix", 3, [0, 1], [0, 1, 2.5], [[0], [1], [2]]]),
    ([VSKL], "s", [1.0, 1.99, np.nan, "inf", None, True, [2.0]]),
    ([LPBeta], "nu", [0.0, 1.0, -0.1, 2, np.nan, np.inf, "auto", None, True, [0.5]]),
    ([LPBeta], "C", [0.0, -1.0, np.nan, np.inf, None, [1.0]]),
    ([MLMKLSA], "delta", [1.5, True]),
    ([MLMKLSA], "n_iter", [0]),
    ([MLMKLSA], "tol", [-1.0]),
    ([MLMKLSA], "corrected", ["no"]),
]
SAME_MEANING = {"kernels": "kernel|column|triple"}


@pytest.mark.parametrize("classes, name, values", BAD_PARAMETERS)
def test_a_bad_parameter_is_one_error_that_names_it(classes, name, values, data):
    for cls in classes:
        for value in values:
            model = cls(CUES).set_params(**{name: value})
            with pytest.raises(
                (ValueError, TypeError), match=SAME_MEANING.get(name, rf"\b{name}\b")
            ) as caught:
                model.fit(*data)
            assert "\n" not in str(caught.value)


BAD_OPTIONS = [
    ([OBSCURE], "radius", [0.0, -1.0, np.nan, "large", None, True, [1.0]]),
    (STOCHASTIC, "loss", ["square", None, 1, ["hinge"]]),
    (STOCHASTIC, "measure", ["sometimes", None, 3]),
    (STOCHASTIC, "sampling", ["bootstrap", None, 3]),
    (STOCHASTIC, "scores", ["quickly", None, 3]),
    (STOCHASTIC, "tol", [-1e-3, np.nan, "small", True, [0.1]]),
]


@pytest.mark.parametrize("classes, name, values", BAD_OPTIONS)
def test_a_bad_option_of_a_solver_is_one_error_that_names_it(classes, name, values, data):
    bank, y = KernelBank(CUES, data[0]), data[1]
    for cls in classes:
        for value in values:
            with pytest.raises(ValueError, match=rf"\b{name}\b"):
                solved(cls, bank, y, **{name: value})


@pytest.mark.parametrize("cls", [*ALL, LPBeta])
@pytest.mark.parametrize(
    "X, y, message",
    [
        (np.zeros((10, 9)), np.arange(10) % 2, "n_kernels, n, n"),
        (np.zeros((2, 10, 9)), np.arange(10) % 2, "n_kernels, n, n"),
        (np.zeros((0, 10, 10)), np.arange(10) % 2, "n_kernels, n, n"),
        (np.stack([np.eye(10)] * 2), np.arange(9) % 2, "y must have one label per sample, 10, got 9"),
        (np.stack([np.eye(10)] * 2), np.linspace(0.0, 1.0, 20).reshape(10, 2), "y|label"),
    ],
)
def test_bad_precomputed_training_data(cls, X, y, message):
    with pytest.raises(ValueError, match=message):
        make(cls, "precomputed").fit(X, y)


@pytest.mark.parametrize("cls", [*ALL, LPBeta])
def test_bad_precomputed_test_data(cls):
    K, y = make_stack(np.random.default_rng(0), 30, 3, 3)
    model = make(cls, "precomputed").fit(K, y)
    for bad in (K[:, :, :29], K[:2], K[0], "K", None):
        with pytest.raises(ValueError, match=r"X must have shape \(3, n, 30\)|X must hold real numbers"):
            model.predict(bad)
    broken = K.copy()
    broken[:, 1, 2] = np.inf
    with pytest.raises(ValueError, match="X holds NaN or infinite values"):
        model.predict(broken)


@pytest.mark.parametrize("cls", [*ALL, LPBeta])
def test_a_cross_bank_of_another_training_set_is_refused(cls, data, new):
    """Its columns would be taken for other samples."""
    X, y = data
    model = make(cls, CUES).fit(X, y)
    assert model.score(KernelBank(CUES, X).cross(new[0]), new[1]) > 0.85
    larger = np.concatenate([X, X])
    for bank in (KernelBank(CUES, larger), KernelBank(CUES, X[:50]), KernelBank(CUES[:2], X)):
        cross = bank.cross(new[0])
        with pytest.raises(
            ValueError, match="X must be a cross bank of 3 kernels and 90 training samples, got one of"
        ):
            model.predict(cross)


def test_a_bank_needs_the_word_precomputed(data):
    X, y = data
    with pytest.raises(ValueError, match="precomputed"):
        OM2(CUES).fit(KernelBank(CUES, X), y)

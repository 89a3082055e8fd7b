"""The estimators of the chapter, beyond what tests/common has."""

import warnings

import numba
import numpy as np
import pytest
from mkl_data import ALL, CUES, STOCHASTIC, make, make_data, plain_svms, solved
from numpy.testing import assert_allclose, assert_array_equal
from plain_kernels import whole_of
from plain_mkl import all_coefficients, make_stack
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from cuelearn.kernels import RBF, KernelBank
from cuelearn.mkl import (
    GMKL,
    OBSCURE,
    OM2,
    SILPMKL,
    VSKL,
    AverageKernelSVM,
    BestKernelSVM,
    KernelPA,
    LPBeta,
    load,
)

EVERY = [*ALL, GMKL, VSKL, LPBeta]


@pytest.fixture
def data():
    return make_data(90)


@pytest.fixture
def new():
    return make_data(40, seed=1)


def same(model, other):
    for name in ("support_", "dual_coef_", "kernel_weights_"):
        assert_array_equal(getattr(model, name), getattr(other, name))


@pytest.mark.parametrize("cls", EVERY)
def test_all_forms_of_input_agree(cls, data, new):
    X, y = data
    bank = KernelBank(CUES, X)
    cross = bank.cross(new[0])
    from_X = make(cls, CUES).fit(X, y)
    wanted = from_X.decision_function(new[0])
    for given in (bank.stack, bank):
        model = make(cls, "precomputed").fit(given, y)
        same(model, from_X)
        for form in (whole_of(cross), cross):
            assert_allclose(model.decision_function(form), wanted, atol=1e-5 * np.abs(wanted).max())
            assert_array_equal(model.predict(form), from_X.predict(new[0]))
    # a fold of a bank, the way to cross-validate precomputed kernels
    fold = make(cls, "precomputed").fit(bank.restrict(np.arange(60)), y[:60])
    assert fold.score(bank.stack[:, 60:, :60], y[60:]) > 0.8
    for other in (KernelBank(CUES, X[:50]), KernelBank(CUES[:2], X)):
        with pytest.raises(ValueError, match="X must be a cross bank of 3 kernels and 90 training samples"):
            from_X.predict(other.cross(new[0]))


@pytest.mark.parametrize("cls", [OBSCURE, SILPMKL])
def test_norms_of_the_summary(cls, data, tmp_path):
    X, y = data
    model = make(cls, CUES).fit(X, y)
    table = model.summary()
    assert_allclose(table.weight, np.ravel(model.kernel_weights_))
    coef = all_coefficients(model)
    kernels = KernelBank(CUES, X).stack.astype(float)
    squares = np.array([np.sum(coef * (k @ coef), axis=0) for k in kernels])
    squares = squares.T.ravel() if cls is SILPMKL else squares.sum(axis=1)
    assert_allclose(table.norm, table.weight * np.sqrt(np.maximum(squares, 0)), rtol=1e-3, atol=1e-4)
    model.save(tmp_path / "model.npz")
    assert_allclose(load(tmp_path / "model.npz").summary().norm, table.norm, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(
    "cls, n_kernels, n_classes, options",
    [
        (AverageKernelSVM, 4, 2, {}),
        (AverageKernelSVM, 4, 5, {}),
        (LPBeta, 1, 2, {}),
        (LPBeta, 1, 2, {"per_class": True}),
        (LPBeta, 1, 3, {"nu": 0.3}),
    ],
)
def test_libsvm_on_the_mean(cls, n_kernels, n_classes, options):
    """One SVM with bias per class on the mean kernel, or on the only one; for two classes a single one."""
    K, y = make_stack(np.random.default_rng(n_classes), 60, n_kernels, n_classes)
    train, test = np.arange(45), np.arange(45, 60)
    model = cls("precomputed", C=10.0, **options).fit(K[:, :45, :45], y[train])
    shape = (n_classes, 1) if "per_class" in options else (n_kernels,)
    assert_array_equal(model.kernel_weights_, np.full(shape, 1.0 / n_kernels))
    wanted = plain_svms(K.mean(axis=0), y, train, test, 10.0)
    assert_allclose(model.decision_function(K[:, 45:, :45]), wanted, atol=1e-9)


@pytest.mark.parametrize("cls, options", [(BestKernelSVM, {}), (KernelPA, {"kernel": "best", "n_epochs": 3})])
def test_best_kernel(cls, options, data, new):
    X, y = data
    model = make(cls, [CUES[2], CUES[0], CUES[1]], **options).fit(X, y)
    assert model.best_kernel_ == "shape" and model.kernel_accuracy_.argmax() == 1
    assert_array_equal(model.kernel_weights_, [0.0, 1.0, 0.0])
    if cls is BestKernelSVM:
        alone = AverageKernelSVM([CUES[0]]).fit(X, y)
        garbage = new[0].copy()
        garbage[:, 2:] = 1e6  # the others are not needed at prediction
        assert_allclose(model.decision_function(garbage), alone.decision_function(new[0]), atol=1e-9)
    else:
        alone = KernelPA([CUES[0]], random_state=0).fit(X, y)
        chosen = KernelPA(CUES, kernel="shape", random_state=0).fit(X, y)
        assert_array_equal(chosen.dual_coef_, alone.dual_coef_)


@pytest.mark.parametrize("measure", ["end", "every", "geometric"])
@pytest.mark.parametrize("cls", STOCHASTIC)
def test_history(cls, measure, data):
    _, result = solved(cls, KernelBank(CUES, data[0]), data[1], n_epochs=10, measure=measure)
    history = result.history
    assert history.epoch.tolist() == list(range(1, result.n_iter + 1))
    assert history.step.tolist() == [90 * epoch for epoch in history.epoch]
    assert history.seconds.is_monotonic_increasing
    assert history.n_updates.iloc[-1] == result.n_updates
    assert history.n_support.iloc[-1] == np.count_nonzero(result.dual_coef.any(axis=1))
    assert_allclose(history.online_error, result.online_errors.reshape(-1, 90).mean(axis=1))
    batch = history[history.stage == history.stage.iloc[-1]].reset_index(drop=True)
    measured = np.flatnonzero(batch.objective.notna() & batch.dual_gap.notna())
    if measure == "end":
        assert history.objective.notna().sum() == 1
    else:
        assert {0, 1, 2, 3, 5, 8} <= set(measured)
        assert measure == "geometric" or history.objective.notna().all()
    assert history.objective.iloc[-1] == result.objective and history.dual_gap.iloc[-1] == result.dual_gap
    if cls is OBSCURE:
        assert set(history.stage) == {"online", "batch"}
        assert result.extra["radius"] <= result.extra["radius_online"]


@pytest.mark.parametrize("cls", STOCHASTIC)
def test_tol_stops_on_the_gap_or_a_warning_says_that_it_was_missed(cls, data):
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        assert make(cls, CUES, n_epochs=3, tol=None).fit(*data).converged_
        if cls is not OM2:
            epochs = {"C": 1.0, "n_epochs": 5000, "finish": False}
            coarse, fine = (make(cls, CUES, tol=tol, **epochs).fit(*data) for tol in (0.1, 0.01))
            assert coarse.converged_ and coarse.dual_gap_ <= 0.1 * coarse.objective_
            assert coarse.n_iter_ < fine.n_iter_ < 5000 and fine.dual_gap_ <= 0.01 * fine.objective_
    published = {} if cls is OM2 else {"finish": False}  # an ascent may reach a gap of 0
    message = r"did not reach tol=1e-09: the relative duality gap is .* after \d+ epochs"
    with pytest.warns(ConvergenceWarning, match=message):
        model = make(cls, CUES, tol=1e-9, n_epochs=3, **published).fit(*data)
    assert not model.converged_ and model.dual_gap_ > 1e-9 * model.objective_


@pytest.mark.parametrize("memory", [2e9, 9e4])
@pytest.mark.parametrize(
    "cls, options", [(cls, {}) for cls in ALL] + [(LPBeta, {"nu": "cv"}), (LPBeta, {"per_class": True})]
)
def test_same_bits_for_any_number_of_threads(cls, memory, options):
    """DESIGN, promise 4, for a resident bank and for rows computed on demand."""
    if numba.config.NUMBA_NUM_THREADS < 2:
        pytest.skip("numba was started with one thread")
    X, y = make_data(90 if cls is LPBeta else 200)
    X_new, _ = make_data(150, seed=1)
    results = []
    for threads in (1, 2):
        numba.set_num_threads(threads)
        jobs = {"n_jobs": threads} if "n_jobs" in make(cls).get_params() else {}
        with threadpool_limits(threads):
            model = make(cls, CUES, memory=memory, **jobs, **options).fit(X, y)
            runs = []
            for scores in ("recompute", "maintain") if cls in STOCHASTIC else ():
                bank = KernelBank(CUES, X, memory=memory)
                runs += solved(cls, bank, y, n_epochs=4, scores=scores)[1][:2]
        names = ("dual_coef_", "kernel_weights_", "intercept_", "intercepts_", "objective_", "dual_gap_")
        fitted = [getattr(model, name) for name in names if hasattr(model, name)]
        results.append((*runs, *fitted, model.decision_function(X_new)))
    for one_thread, two_threads in zip(*results, strict=True):
        assert_array_equal(one_thread, two_threads)


@pytest.mark.parametrize("cls", EVERY)
def test_bad_kernels_are_one_error_that_names_them(cls, data):
    """Other parameters: tests/common."""
    for kernels in ("rbf", [], [("a", RBF())], [("a", "gaus", [0])], 3, [("a", RBF(), [99])]):
        with pytest.raises((ValueError, TypeError), match="kernel|column|triple"):
            cls(kernels).fit(*data)


@pytest.mark.parametrize("name, value", [("kernel", "none"), ("kernel", 3), ("groups", [0, 1])])
def test_a_choice_among_the_kernels_fits_them(name, value, data):
    cls = KernelPA if name == "kernel" else VSKL
    with pytest.raises(ValueError, match=rf"\b{name}\b"):
        cls(CUES, **{name: value}).fit(*data)


@pytest.mark.parametrize(
    "name, value",
    [("radius", -1.0), ("loss", "square"), ("measure", "sometimes"), ("sampling", None), ("scores", 3)],
)
def test_a_bad_option_of_a_solver_is_one_error_that_names_it(name, value, data):
    with pytest.raises(ValueError, match=rf"\b{name}\b"):
        solved(OBSCURE, KernelBank(CUES, data[0]), data[1], **{name: value})


@pytest.mark.parametrize("cls", [*ALL, LPBeta])
def test_kernels_of_another_shape_are_refused(cls, data):
    y = np.arange(30) % 3
    K = np.stack([np.eye(30)] * 3)
    with pytest.raises(ValueError, match="n_kernels, n, n"):
        make(cls, "precomputed").fit(K[:, :, :29], y)
    model = make(cls, "precomputed").fit(K, y)
    for bad in (K[:, :, :29], K[:2], K[0]):
        with pytest.raises(ValueError, match=r"X must have shape \(3, n, 30\)"):
            model.predict(bad)
    with pytest.raises(ValueError, match="precomputed"):
        make(cls, CUES).fit(KernelBank(CUES, data[0]), data[1])

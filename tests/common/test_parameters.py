"""Parameters of constructors, and what `fit` makes of them."""

import inspect

import numpy as np
import pytest
from estimators import ESTIMATORS, OF_SAMPLES, data, make, outputs
from sklearn.base import clone
from sklearn.exceptions import DataConversionWarning
from sklearn.utils._param_validation import InvalidParameterError

ALL = sorted(ESTIMATORS)
CALLED_BACK = [name for name in ALL if "callback" in inspect.signature(ESTIMATORS[name]).parameters]


@pytest.mark.parametrize("name", ALL)
def test_parameters_are_stored_untouched(name, fitted):
    model, _, _ = fitted(name)
    plain = make(name)
    assert plain.get_params().keys() == model.get_params().keys() == clone(plain).get_params().keys()
    assert repr(model) == repr(plain)
    for key, value in plain.get_params(deep=False).items():
        assert vars(plain).get(key, value) is value


NONSENSE = {"an object": object(), "a word": "nonsense", "a dict": {}, "not a number": np.nan}
#: What is none: the name of a kernel, which only the data refute, and weights of no class.
SENSE = {("KernelPA", "kernel", "a word")}
for name, cls in ESTIMATORS.items():
    if dict in cls._parameter_constraints.get("class_weight", ()):
        SENSE.add((name, "class_weight", "a dict"))


@pytest.mark.parametrize("name", ALL)
def test_nonsense_is_refused_by_name(name):
    """By the name of the parameter, before anything is looked at; so every parameter has its constraints."""
    for key in inspect.signature(ESTIMATORS[name]).parameters:
        for what, value in NONSENSE.items():
            model = make(name, **{key: value})
            for method in ("fit", "partial_fit"):
                if hasattr(model, method) and (name, key, what) not in SENSE:
                    with pytest.raises(InvalidParameterError, match=f"'{key}' parameter of {name} must be"):
                        getattr(model, method)(None, None)
            assert not [k for k in vars(model) if k.endswith("_")]


NUMBERS = {
    "C": (0.0, 1e300, 1e-300, np.nan, None),
    "alpha": (-0.1, np.inf, None),
    "beta": (0.0, 1.0, True),
    "delta": (0.0, 1.1, np.nan, None, [], (0.5, 2.0), True, [[0.5]]),
    "eta": (0.0, np.inf, True),
    "max_radius": (0.0, np.inf, None),
    "memory": (-1.0, None),
    "nu": (0.0, 1.0, None, True),
    "p": (1.0, 2.5, np.nan, None, True),
    "n_epochs": (0, 1.5, None, 2**70),
    "n_epochs_online": (-1, 0.5, None),
    "max_iter": (0, 1.5, 2**70, True),
    "random_state": (-1, 1.5, 2**32),
    "n_jobs": (0, 1.5, 2**70, True),
    "s": (1.99, True),
    "scaling": (3, True),
    "step": (0.0, np.inf, True),
    "tol": (-1e-3, True),
    "validation": (0.0, 1.0, True),
    "callback": (3,),
}
#: 0 epochs leave the batch stage out.
NO_BATCH_STAGE = {(name, "n_epochs") for name in ("OBSCURE", "OBSCURERegressor", "MKTL")}
#: Of which these mean something else, or more than a number.
OTHERWISE = {("PassiveAggressive", "C"), ("MKTL", "p"), ("LPBeta", "C"), *NO_BATCH_STAGE}
#: Where 0 is a value as well.
FROM_ZERO = {("MLMKLSA", "delta"), ("SOM", "delta"), ("Projectron", "eta"), ("ProjectronPlusPlus", "eta")}


@pytest.mark.parametrize("name", ALL)
def test_values_out_of_range_are_refused_by_name(name):
    X, given = data(name, 24)
    known = inspect.signature(ESTIMATORS[name]).parameters
    for key, values in NUMBERS.items():
        for value in values if key in known and (name, key) not in OTHERWISE else ():
            if value is not known[key].default and ((name, key) not in FROM_ZERO or value != 0.0):
                with pytest.raises((ValueError, TypeError), match=f"\\b{key}\\b") as caught:
                    make(name, **{key: value}).fit(X, given)
                assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", CALLED_BACK)
def test_a_callback_sees_a_model_changes_nothing_and_can_stop_the_run(name, fitted):
    plain, X, given = fitted(name)
    steps = []

    def look(model, step):
        steps.append(step)
        assert all(len(values) for values in outputs(model, name, X, given))
        return stop

    stop = False
    watched = make(name, callback=look).fit(X, given)
    np.testing.assert_equal(outputs(watched, name, X, given), outputs(plain, name, X, given))
    n_steps, stop, steps = len(steps), True, []
    make(name, callback=look).fit(X, given)
    assert 1 <= len(steps) < max(2, n_steps)


@pytest.mark.parametrize("name", OF_SAMPLES)
def test_a_refused_fit_is_no_fit(name, fitted):
    model, X, y = fitted(name)
    wanted = model.decision_function(X)
    before = {key for key in vars(model) if key.endswith("_")}
    for bad in (np.full_like(X, np.nan), X[:0]):
        with pytest.raises(ValueError):
            model.fit(bad, y[: len(bad)])
    with pytest.raises(ValueError, match="at least 2 classes|one class"):
        model.fit(X, np.zeros(len(X)))
    assert {key for key in vars(model) if key.endswith("_")} == before
    np.testing.assert_array_equal(model.decision_function(X), wanted)


@pytest.mark.parametrize("name", OF_SAMPLES)
def test_extremes(name):
    X, y = data(name, 30)
    constant = X.copy()
    constant[:, 3] = 2.5
    for each in (1e-9 * X, 1e6 * X, constant):
        assert np.isfinite(make(name).fit(each, y).decision_function(each)).all()


@pytest.mark.parametrize("name", OF_SAMPLES)
def test_a_column_of_two_classes_is_a_vector(name):
    """Unless a method takes several labels by design, of which it may be one; scikit-learn checks three."""
    X, y = data(name, 40)
    column, model = (y == 1).astype(int)[:, None], make(name)
    if getattr(model, "_one_column", False):
        assert model.fit(X, column).indicator_
    else:
        with pytest.warns(DataConversionWarning, match="column-vector y"):
            assert model.fit(X, column).classes_.tolist() == [0, 1]


@pytest.mark.parametrize("name", ["AverageKernelSVM", "MCMKL", "MuSVM"])
def test_a_matrix_beyond_memory_is_announced(name):
    X, y = data(name)
    with pytest.warns(UserWarning, match=r"one matrix of all 60 samples takes .*: raise memory"):
        make(name, memory=2e4).fit(X, y)

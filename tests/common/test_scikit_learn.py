"""scikit-learn's own checks, over all estimators that take samples and labels."""

import inspect
import warnings

import numpy as np
import pytest
from estimators import ESTIMATORS, OF_SAMPLES, OPTIONS, VARIANTS, data, make, public
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

from cuelearn.oks import OKS
from cuelearn.omcl import KernelPerceptron

#: The checks' data have other columns than our cues.
DEFAULTS = [
    ESTIMATORS[name](**{key: OPTIONS[name][key] for key in ("C", "n_iter") if key in OPTIONS.get(name, {})})
    for name in OF_SAMPLES
    if name not in ("SelectedSVM", "PriorFeatures")  # which need a selector, and priors: see VARIANTS
]
#: Estimators whose updates depend on the predictions of the visits before.
ONLINE = {"KernelPA", "OM2", *public("omcl"), "OKS", "OKSRegret", "SOM", "OM1", "MuTron"}
TWICE = "a second visit sees what the first has learnt, so that weight 2 is not the sample twice"
MEAN = "equal to the gap, and the mean distance of RBF counts each sample once; test_weights.py has both"
EQUIVALENCE = [f"check_sample_weight_equivalence_on_{form}_data" for form in ("dense", "sparse")]


def expected_failures(estimator):
    """What cannot pass, and why."""
    if type(estimator).__name__ in ONLINE:
        return dict.fromkeys(EQUIVALENCE, TWICE)
    return dict.fromkeys(EQUIVALENCE, MEAN) if hasattr(estimator, "kernels") else {}


@parametrize_with_checks([*DEFAULTS, *VARIANTS], expected_failed_checks=expected_failures)
def test_scikit_learn_checks(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        check(estimator)


def precomputed(name):
    """An instance on given kernels, or None."""
    parameters = inspect.signature(ESTIMATORS[name]).parameters
    online, given = KernelPerceptron("precomputed"), "precomputed"
    special = {
        "Flat": {"learner": online},
        "OMCL": {"cues": [("k", online, 0)]},
        "Vote": {"cues": [("k", online, 0)]},
        "SelectedSVM": {"selector": OKS(given, one_vs_rest=True, random_state=0)},
        "PriorFeatures": None,  # is its priors
    }
    known = next(({key: given} for key in ("kernels", "kernel") if key in parameters), None)
    options = special.get(name, known)
    return options and make(name, **options)


@pytest.mark.filterwarnings(f"ignore::{ConvergenceWarning.__module__}.ConvergenceWarning")
@pytest.mark.parametrize("name", [name for name in ESTIMATORS if precomputed(name)])
def test_one_kernel_is_a_matrix_or_a_stack(name):
    X, given = data(name, 30)
    K = np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2))
    models = [clone(precomputed(name)).fit(form, given) for form in (K, K[None])]
    found = [model.predict(form) for model in models for form in (K, K[None])]
    for one in found[1:]:
        np.testing.assert_array_equal(one, found[0])


def test_none_is_left_out():
    checked = {type(estimator).__name__ for estimator in [*DEFAULTS, *VARIANTS]}
    assert checked == set(OF_SAMPLES)


pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning:sklearn.*")

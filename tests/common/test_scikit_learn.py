"""scikit-learn's own checks, over all estimators that take samples and labels."""

import warnings

import pytest
from estimators import ESTIMATORS, OF_SAMPLES, OPTIONS, VARIANTS
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

#: The checks' data have other columns than our cues.
DEFAULTS = [
    ESTIMATORS[name](**{key: OPTIONS[name][key] for key in ("C", "n_iter") if key in OPTIONS.get(name, {})})
    for name in OF_SAMPLES
    if name not in ("SelectedSVM", "PriorFeatures")  # which need a selector, and priors: see VARIANTS
]
VISITS = "partial_fit does not know the visits to come, which eta='auto' needs"


def expected_failures(estimator):
    """What cannot pass, and why."""
    if hasattr(estimator, "partial_fit") and getattr(estimator, "eta", None) == "auto":
        checks = ("check_n_features_in_after_fitting", "check_estimators_partial_fit_n_features")
        return dict.fromkeys(checks, VISITS)
    return {}


@parametrize_with_checks([*DEFAULTS, *VARIANTS], expected_failed_checks=expected_failures)
def test_scikit_learn_checks(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        check(estimator)


def test_none_is_left_out():
    checked = {type(estimator).__name__ for estimator in [*DEFAULTS, *VARIANTS]}
    assert checked == set(OF_SAMPLES)


pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning:sklearn.*")

"""scikit-learn's own checks, over all estimators that take samples and labels."""

import traceback
from unittest import SkipTest

import pytest
from estimators import ESTIMATORS, OF_NUMBERS, OF_SAMPLES, OPTIONS, VARIANTS, public
from sklearn.utils.estimator_checks import estimator_checks_generator

#: The checks' data have other columns than our cues.
DEFAULTS = [
    ESTIMATORS[name](
        **{key: OPTIONS[name][key] for key in ("C", "n_iter", "nu") if key in OPTIONS.get(name, {})}
    )
    for name in (*OF_SAMPLES, *sorted(OF_NUMBERS))
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


@pytest.mark.parametrize("estimator", [*DEFAULTS, *VARIANTS], ids=lambda estimator: type(estimator).__name__)
def test_scikit_learn_checks(estimator):
    """All in one test, which names those that failed: 3,000 tests of their own cost more than they do."""
    expected, failed = expected_failures(estimator), []
    for given, check in estimator_checks_generator(estimator, expected_failed_checks=expected, mark="skip"):
        try:
            check(given)
        except SkipTest:
            continue
        except Exception:
            failed.append(f"{check}\n{traceback.format_exc()}")
    assert not failed, "\n".join(failed)


def test_none_is_left_out():
    checked = {type(estimator).__name__ for estimator in [*DEFAULTS, *VARIANTS]}
    assert checked == set(OF_SAMPLES) | OF_NUMBERS


pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning:sklearn.*")

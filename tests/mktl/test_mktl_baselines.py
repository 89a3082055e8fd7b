"""NoTransfer, PriorFeatures and AverageTL; and what all five transfer learners share."""

import functools
import warnings

import numpy as np
import pytest
from mktl_data import CUES, Task, scale_of, svc
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.svm import SVC

from cuelearn.mktl import MKTL, AverageTL, MultiKT, NoTransfer, PriorFeatures

FIVE = [NoTransfer, PriorFeatures, AverageTL, MultiKT, functools.partial(MKTL, random_state=0)]
every_learner = pytest.mark.parametrize("cls", FIVE, ids=lambda cls: getattr(cls, "__name__", "MKTL"))
every_C = pytest.mark.parametrize("C", [0.1, 10.0])
every_weight = pytest.mark.parametrize("class_weight", ["balanced", {0: 5.0, 1: 0.4}], ids=str)


@pytest.fixture(scope="module", params=[2, 3], ids=["binary", "multiclass"])
def task(request):
    """Without most of class 0, so that weights of the classes count."""
    return Task(request.param, n_rare=8)


def weights_for_svc(task, class_weight):
    """A dict weighs the samples of a class alike in every binary problem."""
    if isinstance(class_weight, dict):
        return {"sample_weight": [class_weight.get(c, 1.0) for c in task.y.tolist()]}
    return {"class_weight": class_weight}


@every_weight
@pytest.mark.parametrize("scaling", ["rms", "max", None])
@every_C
def test_prior_features_is_a_linear_svm_on_the_scores(C, scaling, class_weight, task):
    model = task.fit(PriorFeatures, C=C, scaling=scaling, class_weight=class_weight)
    scale = scale_of(task.S, scaling)
    S, S_new = task.S / scale, task.S_new / scale
    assert_allclose(model.score_scale_, scale)
    scores = model.decision_function(task.new)
    hyperplanes, biases = model.transfer_weights_, model.intercept_
    if task.n_classes == 2:
        hyperplanes, biases = hyperplanes[1:] - hyperplanes[:1], biases[1:] - biases[:1]
    given = weights_for_svc(task, class_weight)
    sample_weight = given.pop("sample_weight", None)
    for target, v, b, column in zip(task.targets, hyperplanes, biases, scores.reshape(40, -1).T, strict=True):
        signs = 2.0 * target - 1.0
        machine = SVC(C=C, kernel="linear", tol=1e-9, **given).fit(S, signs, sample_weight=sample_weight)
        assert_allclose(v, machine.coef_[0], atol=1e-3 * np.abs(machine.coef_).max())
        share = machine.class_weight_[target] * (1.0 if sample_weight is None else np.array(sample_weight))

        def objective(v, b, signs=signs, share=share):
            return 0.5 * v @ v + C * share @ np.maximum(0.0, 1.0 - signs * (S @ v + b))

        assert objective(v, b) <= objective(machine.coef_[0], machine.intercept_[0]) * (1.0 + 1e-7)
        assert_allclose(column, S_new @ v + b, atol=1e-9 * np.abs(column).max())
    of_dual = model.dual_coef_.T @ S[model.support_]
    assert_allclose(of_dual, model.transfer_weights_, atol=1e-4 * np.abs(of_dual).max())
    assert_array_equal(model.kernel_weights_, [0.0, 0.0])


@every_weight
@pytest.mark.parametrize(
    "cls, scaling", [(NoTransfer, "rms"), *((AverageTL, scaling) for scaling in ("rms", "max", None))]
)
@every_C
def test_on_the_mean_of_kernels_it_is_libsvm(C, cls, scaling, class_weight, task):
    """Those of the cues, whatever the priors say; of AverageTL those of the scores, too."""
    options = {"C": C, "scaling": scaling, "class_weight": class_weight}
    model = task.fit(cls, **options)
    kernels, of_new = [*task.stack], [*task.cross]
    if cls is AverageTL:
        scale = scale_of(task.S, scaling)
        S, S_new = task.S / scale, task.S_new / scale
        kernels += [np.outer(column, column) for column in S.T]
        of_new += [np.outer(new, old) for new, old in zip(S_new.T, S.T, strict=True)]
    else:
        assert_array_equal(model.transfer_weights_, np.zeros((task.n_classes, 5)))
    given = weights_for_svc(task, class_weight)
    wanted = svc(task.targets, np.mean(kernels, axis=0), np.mean(of_new, axis=0), C=C, **given)
    assert_allclose(model.decision_function(task.new), wanted, atol=1e-5 * np.abs(wanted).max())
    assert_allclose(model.kernel_weights_, np.full(2, 1.0 / len(kernels)))
    precise = cls("precomputed", **options).fit(task.stack, task.y, scores=task.S)  # in float64
    scores = precise.decision_function(task.cross, task.S_new)
    near = 1e-6 if cls is AverageTL else 1e-9
    assert_allclose(scores, wanted, atol=near * np.abs(wanted).max())


def test_average_tl_without_scores_is_no_transfer(task):
    one, other = AverageTL(CUES).fit(task.X, task.y), NoTransfer(CUES).fit(task.X, task.y)
    assert_array_equal(one.decision_function(task.new), other.decision_function(task.new))
    assert one.transfer_weights_.shape == (task.n_classes, 0) and one.prior_names_ == []


@every_learner
def test_predictions_by_the_formula(cls, task):
    """Equation 6.1 from the fitted attributes alone."""
    model = task.fit(cls)
    kernel = np.einsum("j,jni->ni", model.kernel_weights_, task.cross[:, :, model.support_])
    values = kernel @ model.dual_coef_ + task.S_new / model.score_scale_ @ model.transfer_weights_.T
    values = values + getattr(model, "intercept_", 0.0)
    wanted = values[:, 1] - values[:, 0] if task.n_classes == 2 else values
    scores = model.decision_function(task.new)
    assert_allclose(scores, wanted, atol=1e-5 * np.abs(scores).max())
    assert_array_equal(model.predict(task.new), values.argmax(axis=1))
    right = model.predict(task.new) == task.y_new
    weight = np.arange(40.0)
    assert model.score(task.new, task.y_new, sample_weight=weight) == np.average(right, weights=weight)


@every_learner
def test_all_forms_of_input_agree(cls, task):
    by_priors = task.fit(cls)
    wanted = by_priors.decision_function(task.new)
    by_scores = cls(CUES).fit(task.X, task.y, scores=task.S)
    half = cls(CUES, task.priors[:1]).fit(task.X, task.y, scores=task.S[:, 1:])
    by_bank = cls("precomputed").fit(task.bank, task.y, scores=task.S)
    # columns of scores that stand in X
    wide, wide_new = np.column_stack([task.X, task.S]), np.column_stack([task.new, task.S_new])
    passed = cls(CUES, [("priors", "passthrough", slice(6, 11))]).fit(wide, task.y)
    for model, X, scores in (
        (by_scores, task.new, task.S_new),
        (half, task.new, task.S_new[:, 1:]),
        (by_bank, task.cross, task.S_new),
        (by_bank, task.bank.cross(task.new), task.S_new),
        (passed, wide_new, None),
    ):
        assert_allclose(model.decision_function(X, scores), wanted, atol=1e-5 * np.abs(wanted).max())
    assert by_priors.prior_names_ == ["svm", "boosted: 0", "boosted: 1", "boosted: 2", "boosted: 3"]
    assert by_scores.prior_names_ == [f"score {k}" for k in range(5)]


@pytest.mark.parametrize("model", [PriorFeatures(), PriorFeatures(CUES, [])])
def test_prior_features_needs_scores(model, task):
    with pytest.raises(ValueError, match="PriorFeatures needs at least one column of scores"):
        model.fit(task.X, task.y)


def test_kernels_that_are_not_used_may_be_indefinite():
    y = np.arange(40) % 2
    K = np.eye(40) - 0.9 * np.outer(y - 0.5, y - 0.5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        PriorFeatures("precomputed").fit(K, y, scores=2.0 * y[:, None] - 1.0)

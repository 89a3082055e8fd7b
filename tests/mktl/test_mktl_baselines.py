"""NoTransfer, PriorFeatures and AverageTL; and what all five transfer learners share."""

import functools
import warnings

import numpy as np
import pytest
from mktl_data import CUES, Task, scale_of, svc, targets_of
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.svm import SVC

from cuelearn.mkl import AverageKernelSVM
from cuelearn.mktl.baselines import AverageTL, NoTransfer, PriorFeatures
from cuelearn.mktl.mktl import MKTL
from cuelearn.mktl.multikt import MultiKT

ALL = [NoTransfer, PriorFeatures, AverageTL]
FIVE = [*ALL, MultiKT, functools.partial(MKTL, random_state=0)]
every_learner = pytest.mark.parametrize("cls", FIVE, ids=lambda cls: getattr(cls, "__name__", "MKTL"))


@pytest.fixture(scope="module", params=[2, 3], ids=["binary", "multiclass"])
def task(request):
    return Task(request.param)


# ------------------------------------------------------------------ each is libsvm on a kernel


@pytest.mark.parametrize("C", [0.1, 10.0])
def test_no_transfer_is_libsvm_on_the_mean_kernel(C, task):
    model = task.fit(NoTransfer, C=C)
    wanted = svc(task.targets, task.stack.mean(axis=0), task.cross.mean(axis=0), C=C)
    assert_allclose(model.decision_function(task.new), wanted, atol=1e-5 * np.abs(wanted).max())
    assert_array_equal(model.kernel_weights_, [0.5, 0.5])
    assert_array_equal(model.transfer_weights_, np.zeros((task.n_classes, 5)))
    # the estimator of the MKL chapter
    other = AverageKernelSVM(CUES, C=C).fit(task.X, task.y)
    assert_array_equal(model.decision_function(task.new), other.decision_function(task.new))
    # in float64, from the kernels themselves, whatever the priors say: nearly the same bits
    rng = np.random.default_rng(0)
    wild = NoTransfer("precomputed", C=C).fit(task.stack, task.y, scores=rng.normal(size=(60, 7)))
    found = wild.decision_function(task.cross, rng.normal(size=(40, 7)))
    assert_allclose(found, wanted, atol=1e-9 * np.abs(wanted).max())


@pytest.mark.parametrize("scaling", ["rms", "max", None])
@pytest.mark.parametrize("C", [0.1, 10.0])
def test_prior_features_is_a_linear_svm_on_the_scores(C, scaling, task):
    model = task.fit(PriorFeatures, C=C, scaling=scaling)
    scale = scale_of(task.S, scaling)
    S, S_new = task.S / scale, task.S_new / scale
    assert_allclose(model.score_scale_, scale)
    found = model.decision_function(task.new)
    hyperplanes, biases, columns = model.transfer_weights_, model.intercept_, found.reshape(40, -1).T
    if task.n_classes == 2:
        hyperplanes, biases = hyperplanes[1:] - hyperplanes[:1], biases[1:] - biases[:1]

    def objective(v, b):
        return 0.5 * v @ v + C * np.maximum(0.0, 1.0 - signs * (S @ v + b)).sum()

    for target, v, b, column in zip(task.targets, hyperplanes, biases, columns, strict=True):
        signs = 2.0 * target - 1.0
        machine = SVC(C=C, kernel="linear", tol=1e-9).fit(S, signs)
        assert_allclose(v, machine.coef_[0], atol=1e-3 * np.abs(machine.coef_).max())
        assert objective(v, b) <= objective(machine.coef_[0], machine.intercept_[0]) * (1.0 + 1e-7)
        if (np.abs(machine.dual_coef_) < C * (1.0 - 1e-6)).any():  # else the best biases are an interval
            assert_allclose(
                column, machine.decision_function(S_new), atol=2e-3 * max(1.0, np.abs(column).max())
            )
        assert_allclose(column, S_new @ v + b, atol=1e-9 * np.abs(column).max())
    of_dual = model.dual_coef_.T @ S[model.support_]
    assert_allclose(of_dual, model.transfer_weights_, atol=1e-4 * np.abs(of_dual).max())
    assert_array_equal(model.kernel_weights_, [0.0, 0.0])
    assert model.dual_coef_.shape == (model.support_.size, task.n_classes)
    # what the new samples look like does not matter
    other = PriorFeatures("precomputed", C=C, scaling=scaling).fit(
        np.stack([np.eye(60)]), task.y, scores=task.S
    )
    assert_array_equal(other.decision_function(np.ones((1, 40, 60)), task.S_new), found)


@pytest.mark.parametrize("scaling", ["rms", "max", None])
@pytest.mark.parametrize("C", [0.1, 10.0])
def test_average_tl_is_libsvm_on_the_mean_of_all_kernels(C, scaling, task):
    model = task.fit(AverageTL, C=C, scaling=scaling)
    scale = scale_of(task.S, scaling)
    S, S_new = task.S / scale, task.S_new / scale
    kernels = [*task.stack, *(np.outer(column, column) for column in S.T)]
    of_new = [*task.cross, *(np.outer(new, old) for new, old in zip(S_new.T, S.T, strict=True))]
    assert len(kernels) == 7
    wanted = svc(task.targets, np.mean(kernels, axis=0), np.mean(of_new, axis=0), C=C)
    assert_allclose(model.decision_function(task.new), wanted, atol=1e-5 * np.abs(wanted).max())
    precise = AverageTL("precomputed", C=C, scaling=scaling).fit(task.stack, task.y, scores=task.S)
    assert_allclose(
        precise.decision_function(task.cross, task.S_new), wanted, atol=1e-6 * np.abs(wanted).max()
    )
    assert_allclose(model.kernel_weights_, np.full(2, 1.0 / 7.0))
    if scaling == "rms":  # every score kernel counts as much as a normalised one
        assert_allclose([np.diag(kernel).mean() for kernel in kernels[2:]], 1.0)


def test_average_tl_without_scores_is_no_transfer(task):
    one, other = AverageTL(CUES).fit(task.X, task.y), NoTransfer(CUES).fit(task.X, task.y)
    assert_array_equal(one.decision_function(task.new), other.decision_function(task.new))
    assert one.transfer_weights_.shape == (task.n_classes, 0) and one.prior_names_ == []


# ------------------------------------------------------------------ weights of the classes


class Few:
    """The samples of a task without most of class 0, in kernel matrices and scaled scores."""

    def __init__(self, task):
        rare = np.flatnonzero(task.y == 0)[:5]
        self.rows = np.sort(np.concatenate([rare, np.flatnonzero(task.y != 0)]))
        self.y = task.y[self.rows]
        self.S = task.S[self.rows]
        scale = scale_of(self.S, "rms")
        self.scaled, self.scaled_new = self.S / scale, task.S_new / scale
        self.stack, self.cross = task.stack[:, self.rows][:, :, self.rows], task.cross[:, :, self.rows]
        self.S_new = task.S_new
        self.targets = targets_of(self.y, task.n_classes)

    def kernels(self, cls):
        """The kernel of a method, on the training samples and of the new ones."""
        if cls is NoTransfer:
            return self.stack.mean(axis=0), self.cross.mean(axis=0)
        n = len(self.stack) + self.S.shape[1]
        return tuple(
            (K.sum(axis=0) + L @ self.scaled.T) / n
            for K, L in ((self.stack, self.scaled), (self.cross, self.scaled_new))
        )

    def fit(self, cls, **options):
        return cls("precomputed", **options).fit(self.stack, self.y, scores=self.S)

    def decision(self, cls, **options):
        """Decision values of SVC for the new samples."""
        return svc(self.targets, *self.kernels(cls), **options)

    def planes(self, C, class_weight=None, sample_weight=None):
        """Hyperplanes and biases of SVC on the scaled scores."""
        machines = [
            SVC(kernel="linear", C=C, class_weight=class_weight, tol=1e-9).fit(
                self.scaled, target, sample_weight=sample_weight
            )
            for target in self.targets
        ]
        return np.concatenate([m.coef_ for m in machines]), np.concatenate([m.intercept_ for m in machines])


def planes_of(model):
    """Hyperplanes and biases of PriorFeatures; for two classes one."""
    V, b = model.transfer_weights_, model.intercept_
    return (V[1:] - V[:1], b[1:] - b[:1]) if len(V) == 2 else (V, b)


@pytest.mark.parametrize("C", [0.1, 10.0])
@pytest.mark.parametrize("cls", [NoTransfer, AverageTL])
def test_balanced_weights_are_those_of_libsvm(cls, C, task):
    """Both sides of every class's problem weigh the same."""
    few = Few(task)
    wanted = few.decision(cls, class_weight="balanced", C=C)
    found = few.fit(cls, C=C, class_weight="balanced").decision_function(few.cross, few.S_new)
    assert_allclose(found, wanted, atol=1e-9 * np.abs(wanted).max())
    plain = few.fit(cls, C=C).decision_function(few.cross, few.S_new)
    assert_allclose(plain, few.decision(cls, C=C), atol=1e-9 * np.abs(plain).max())
    assert (
        C == 10.0 or np.abs(found - plain).max() > 0.01 * np.abs(wanted).max()
    )  # samples at the limit make the weights count


@pytest.mark.parametrize("C", [0.1, 10.0])
def test_balanced_prior_features_are_a_linear_svm(C, task):
    few = Few(task)
    model = few.fit(PriorFeatures, C=C, class_weight="balanced")
    coef, bias = few.planes(C, "balanced")
    for found, wanted in zip(planes_of(model), (coef, bias), strict=True):
        assert_allclose(found, wanted, atol=1e-4)
    assert C == 10.0 or np.abs(planes_of(few.fit(PriorFeatures, C=C))[0] - coef).max() > 0.01


@pytest.mark.parametrize("cls", ALL)
def test_a_dict_weighs_the_samples_of_each_class(cls, task):
    """Of every problem alike; classes that it leaves out weigh 1."""
    few = Few(task)
    weights = {0: 5.0, 1: 0.4}
    of_sample = np.array([weights.get(c, 1.0) for c in few.y.tolist()])
    model = few.fit(cls, C=2.0, class_weight=weights)
    if cls is PriorFeatures:
        for found, wanted in zip(planes_of(model), few.planes(2.0, sample_weight=of_sample), strict=True):
            assert_allclose(found, wanted, atol=1e-4)
    else:
        wanted = few.decision(cls, sample_weight=of_sample, C=2.0)
        assert_allclose(
            model.decision_function(few.cross, few.S_new), wanted, atol=1e-9 * np.abs(wanted).max()
        )
    values = few.fit(cls, C=2.0).decision_function(few.cross, few.S_new)
    twos = dict.fromkeys(range(task.n_classes), 2.0)
    for C, class_weight, near in ((1.0, twos, 1e-4), (2.0, {}, 1e-6)):
        same = few.fit(cls, C=C, class_weight=class_weight).decision_function(few.cross, few.S_new)
        assert_allclose(same, values, atol=near * np.abs(values).max())


@pytest.mark.parametrize("cls", [NoTransfer, AverageTL])
@pytest.mark.parametrize("class_weight", ["balanced", {0: 3.0, 1: 0.5}])
def test_weights_reach_either_route_to_libsvm(cls, class_weight, task, monkeypatch):
    """The same bits through scikit-learn's SVC."""
    few = Few(task)
    direct = few.fit(cls, C=0.5, class_weight=class_weight)
    monkeypatch.setattr("sklearn.svm._libsvm", None)
    other = few.fit(cls, C=0.5, class_weight=class_weight)
    assert_array_equal(direct.dual_coef_, other.dual_coef_)
    assert_array_equal(direct.intercept_, other.intercept_)


@pytest.mark.parametrize("cls", [*ALL, MultiKT])
@pytest.mark.parametrize(
    "value, message",
    [
        ("positive", "'class_weight' parameter .* Got 'positive'"),
        ({0: -1.0}, r"class_weight\[0\]"),
        ({1: np.nan}, r"class_weight\[1\]"),
        ({1: "much"}, r"class_weight\[1\]"),
    ],
)
def test_a_bad_class_weight_is_one_error(cls, value, message, task):
    """One sentence, and a model fitted before stays as it was."""
    model = task.fit(cls)
    before = model.decision_function(task.new)
    with pytest.raises((ValueError, TypeError), match=message) as caught:
        model.set_params(class_weight=value).fit(task.X, task.y)
    assert "\n" not in str(caught.value) and caught.value.__context__ is None
    assert_array_equal(model.decision_function(task.new), before)


# ------------------------------------------------------------------ what they share


def explicit(model, task):
    """Decision values from the fitted attributes alone."""
    kernel = np.einsum("j,jni->ni", model.kernel_weights_, task.cross[:, :, model.support_])
    values = (
        kernel @ model.dual_coef_
        + task.S_new / model.score_scale_ @ model.transfer_weights_.T
        + getattr(model, "intercept_", 0.0)
    )
    return values[:, 1] - values[:, 0] if task.n_classes == 2 else values


@every_learner
def test_predictions_by_the_formula(cls, task):
    model = task.fit(cls)
    found = model.decision_function(task.new)
    assert_allclose(found, explicit(model, task), atol=1e-5 * np.abs(found).max())
    assert model.transfer_weights_.shape == (task.n_classes, 5)
    assert (np.diff(model.support_) > 0).all()
    if task.n_classes == 2:
        assert_array_equal(model.predict(task.new), (found > 0.0).astype(int))
        assert_array_equal(model.transfer_weights_[0], -model.transfer_weights_[1])
    else:
        assert_array_equal(model.predict(task.new), found.argmax(axis=1))
    assert model.score(task.new, task.y_new) == np.mean(model.predict(task.new) == task.y_new)
    weight = np.arange(40.0)
    assert model.score(task.new, task.y_new, sample_weight=weight) == np.average(
        model.predict(task.new) == task.y_new, weights=weight
    )


@every_learner
def test_all_forms_of_input_agree(cls, task):
    """Priors or their scores, features or kernels: the same model."""
    by_priors = task.fit(cls)
    wanted = by_priors.decision_function(task.new)
    by_scores = cls(CUES).fit(task.X, task.y, scores=task.S)
    half = cls(CUES, task.priors[:1]).fit(task.X, task.y, scores=task.S[:, 1:])
    by_stack = cls("precomputed").fit(task.bank.stack, task.y, scores=task.S)
    by_bank = cls("precomputed").fit(task.bank, task.y, scores=task.S)
    for model, X, scores in (
        (by_scores, task.new, task.S_new),
        (half, task.new, task.S_new[:, 1:]),
        (by_stack, task.cross, task.S_new),
        (by_bank, task.cross, task.S_new),
        (by_bank, task.bank.cross(task.new), task.S_new),
    ):
        assert_allclose(model.decision_function(X, scores), wanted, atol=1e-5 * np.abs(wanted).max())
        assert_array_equal(model.predict(X, scores), by_priors.predict(task.new))
    assert by_priors.prior_names_ == ["svm", "boosted: 0", "boosted: 1", "boosted: 2", "boosted: 3"]
    assert by_scores.prior_names_ == [f"score {k}" for k in range(5)]
    # columns of scores that stand in X
    wide, wide_new = np.column_stack([task.X, task.S]), np.column_stack([task.new, task.S_new])
    passed = cls(CUES, [("priors", "passthrough", slice(6, 11))]).fit(wide, task.y)
    assert_allclose(passed.decision_function(wide_new), wanted, atol=1e-5 * np.abs(wanted).max())


@every_learner
def test_scaled_scores_have_no_unit(cls, task):
    units = np.array([1e-3, 2.0, 1e3, 0.5, 7.0])
    for scaling in ("rms", "max"):
        one, other = (cls(CUES, scaling=scaling).fit(task.X, task.y, scores=task.S * u) for u in (1.0, units))
        wanted = one.decision_function(task.new, task.S_new)
        assert_allclose(other.decision_function(task.new, task.S_new * units), wanted, atol=1e-4)
        assert_allclose(one.score_scale_, scale_of(task.S, scaling))
        assert_allclose(other.score_scale_, one.score_scale_ * units)
    assert_array_equal(cls(CUES, scaling=None).fit(task.X, task.y, scores=task.S).score_scale_, np.ones(5))


@pytest.mark.parametrize("cls", [NoTransfer, AverageTL])
def test_threads_over_classes(cls, task):
    one, two = task.fit(cls), task.fit(cls, n_jobs=2)
    assert_array_equal(one.dual_coef_, two.dual_coef_)
    assert_array_equal(one.transfer_weights_, two.transfer_weights_)


# ------------------------------------------------------------------ what can go wrong


def test_prior_features_needs_scores(task):
    for model, X in (
        (PriorFeatures(), task.X),
        (PriorFeatures(CUES, []), task.X),
        (PriorFeatures("precomputed"), task.stack),
    ):
        with pytest.raises(ValueError, match="PriorFeatures needs one column of scores at least"):
            model.fit(X, task.y)
    with pytest.raises(ValueError, match="scores|column|feature"):
        PriorFeatures().fit(task.X, task.y, scores=np.zeros((60, 0)))


def test_kernels_that_are_not_used_may_be_indefinite():
    y = np.arange(40) % 2
    K = np.eye(40) - 0.9 * np.outer(y - 0.5, y - 0.5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        PriorFeatures("precomputed").fit(K, y, scores=2.0 * y[:, None] - 1.0)

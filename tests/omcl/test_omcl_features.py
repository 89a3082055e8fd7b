"""Learners on explicit features: those of the kernels or of the features as columns, without samples."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from omcl_twins import make_stream
from scipy import sparse
from sklearn.base import clone
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.kernel_approximation import RBFSampler
from sklearn.preprocessing import StandardScaler

from cuelearn import omcl
from cuelearn.kernels import FeatureMap
from cuelearn.kernels.features import FeatureBank
from cuelearn.omcl import OMCL, KernelPerceptron, MarginQuery, PassiveAggressive, ProjectronPlusPlus

N, M = 300, 4
DATA, Y = make_stream(N + 60, 6, M, zeros=0.02)
X, Y, NEW = DATA[:N], Y[:N], DATA[N:]
WEIGHTS = np.random.default_rng(0).choice([0.0, 0.3, 1.0, 2.5], N)
MAP = FeatureMap(RBFSampler(gamma=2.0, n_components=20, random_state=0))
SCALED = KernelPerceptron(FeatureMap(StandardScaler().fit(NEW[:, :3])))
RULES = {
    "perceptron": KernelPerceptron(MAP),
    "PA-I": PassiveAggressive(0.3, features=MAP),
    "PA": PassiveAggressive(None, features=MAP, normalize=False),
    "gradient": omcl.OnlineGradientDescent(0.2, features=MAP),
}
CUES = [(rule, RULES[rule], slice(0, 3)) for rule in RULES]
CUES += [("scaled", SCALED, [0, 1, 2]), ("line", KernelPerceptron(FeatureMap()), [3, 5, 4])]


def features(learner, columns):
    """What the learner gets, in float64."""
    bank = FeatureBank([("map", learner._map, columns)], DATA, normalize=learner.normalize)
    return bank.features(DATA).astype(np.float64)


def check(model, wanted, given):
    assert_array_equal(model.online_errors_, wanted.online_errors_)
    assert model.n_updates_ == wanted.n_updates_ and not model.support_sizes_.any()
    assert_allclose(model.online_losses_, wanted.online_losses_, atol=1e-6 * wanted.online_losses_.max())
    for average in (True, False):
        scores = wanted.set_params(average=average).decision_function(given)
        ours = model.set_params(average=average).decision_function(NEW[:, : model.n_features_in_])
        assert_allclose(ours, scores, atol=1e-6 * np.abs(scores).max())


@pytest.mark.parametrize("rule", RULES)
def test_a_learner_is_that_of_the_kernel(rule):
    phi = features(RULES[rule], slice(0, 3))
    plain = {"features": None}
    if rule == "perceptron":
        plain = {"kernel": "precomputed"}
        phi = phi @ phi[:N].T
    wanted = clone(RULES[rule]).set_params(**plain).fit(phi[:N], Y, WEIGHTS)
    for model in (clone(RULES[rule]), omcl.Flat(RULES[rule])):
        check(model.fit(X[:, :3], Y, WEIGHTS), wanted, phi[N:])
    assert model.learner_.coef_.shape == (M, 20) and model.learner_._n_support() == 0


@pytest.mark.parametrize("options", [{}, {"query": MarginQuery(0.3)}])
def test_two_layers_are_those_of_the_kernels(options):
    blocks = [features(learner, columns) for _, learner, columns in CUES]
    ends = np.cumsum([0] + [block.shape[1] for block in blocks])
    cues = []
    for j, (name, learner, _) in enumerate(CUES):
        plain = {"kernel": "linear"} if isinstance(learner, KernelPerceptron) else {"features": None}
        cues.append((name, clone(learner).set_params(**plain), slice(ends[j], ends[j + 1])))
    phi = np.concatenate(blocks, axis=1)
    wanted = OMCL(cues, **options).fit(phi[:N], Y, WEIGHTS)
    model = OMCL(CUES, **options).fit(X, Y, WEIGHTS)
    assert_array_equal(model.queried_, wanted.queried_)
    check(model, wanted, phi[N:])


def test_a_stream_keeps_no_samples(tmp_path):
    path = tmp_path / "model.npz"
    wanted = OMCL(CUES).fit(X, Y).decision_function(NEW)
    model = OMCL(CUES, record=False)
    for start in range(0, N, 50):
        model.partial_fit(X[start : start + 50], Y[start : start + 50], classes=range(M))
    assert_allclose(model.decision_function(NEW), wanted, atol=1e-9)
    sizes = []
    for _ in range(3):
        model.partial_fit(X, Y).save(path)
        sizes.append(path.stat().st_size)
    assert np.ptp(sizes) < 500
    again = omcl.load(path)
    assert_array_equal(again.partial_fit(X, Y).predict(NEW), model.partial_fit(X, Y).predict(NEW))


def test_a_cue_that_a_sample_lacks_has_score_0():
    here = np.arange(N) % 5 > 0
    lacking = np.where(here[:, None] | (np.arange(6) > 2), X, np.nan)
    model = OMCL(CUES, missing="zero").fit(lacking, Y)
    assert not model.cue_scores(lacking)[:5, ~here].any()
    alone = clone(SCALED).set_params(average=False).fit(X[here, :3], Y[here])
    assert_allclose(model.learners_[4].set_params(average=False).coef_, alone.coef_, atol=1e-9)


def test_sparse_cues_and_texts():
    table = X * (X > 0.2)
    learner = KernelPerceptron(FeatureMap())
    cues = [("a", learner, slice(0, 3)), ("b", learner, [3, 5])]
    for model in (OMCL(cues), OMCL(cues, query=MarginQuery(0.5)), learner):
        wanted = clone(model).fit(table, Y).decision_function(table)
        model.fit(sparse.csr_array(table), Y)
        assert_allclose(model.decision_function(sparse.csr_array(table)), wanted, atol=1e-5)
    frame = pd.DataFrame(X, columns=list("abcdef"))
    frame["text"] = [f"word{label} the {t % 7}" for t, label in enumerate(Y)]
    words = KernelPerceptron(FeatureMap(HashingVectorizer(n_features=64)))
    cues = [("words", words, "text"), ("near", ProjectronPlusPlus(eta=0.3), ["a", "c"])]
    assert OMCL(cues, query=MarginQuery(0.5)).fit(frame, Y).score(frame, Y) > 0.95
    scores = clone(words).fit(frame[["text"]], Y).decision_function(frame[["text"]])
    assert_array_equal(scores, omcl.Vote(cues).fit(frame, Y).cue_scores(frame)[0])


def test_what_is_refused():
    with pytest.raises(ValueError, match="integrator must be linear"):
        OMCL(CUES, PassiveAggressive(features=MAP)).fit(X, Y)
    with pytest.raises(ValueError, match="use KernelPerceptron"):
        ProjectronPlusPlus(MAP).fit(X, Y)
    with pytest.raises(AttributeError, match="see dual_coef_"):
        KernelPerceptron().fit(X, Y).coef_  # noqa: B018

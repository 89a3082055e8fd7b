"""Learners on explicit features: those of the kernels or of the features as columns, without samples."""

import pickle
import tracemalloc

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from omcl_twins import make_stream
from scipy import sparse
from sklearn.base import clone
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.kernel_approximation import RBFSampler

from cuelearn.core.estimator import load
from cuelearn.kernels import FeatureMap
from cuelearn.kernels.features import FeatureBank
from cuelearn.omcl import (
    OMCL,
    Flat,
    KernelPerceptron,
    MarginQuery,
    OnlineGradientDescent,
    PassiveAggressive,
    ProjectronPlusPlus,
    Vote,
)

N, M = 300, 4
X, Y = make_stream(N, 6, M, zeros=0.02)
NEW = make_stream(60, 6, M, seed=9)[0]
WEIGHTS = np.random.default_rng(0).choice([0.0, 0.3, 1.0, 2.5], N)
MAPS = [RBFSampler(gamma=2.0, n_components=20, random_state=k).fit(X[:, :3]) for k in range(2)]
PERCEPTRON = KernelPerceptron(FeatureMap(MAPS[0]))
RULES = {
    "perceptron": PERCEPTRON,
    "PA-I": PassiveAggressive(0.3, kernel=FeatureMap(MAPS[0])),
    "PA": PassiveAggressive(None, kernel=FeatureMap(MAPS[0]), normalize=False),
    "gradient": OnlineGradientDescent(0.2, kernel=FeatureMap(MAPS[0])),
}
CUES = [("map", PERCEPTRON, slice(0, 3)), ("aggressive", RULES["PA-I"], [0, 1, 2])]
CUES.append(("line", KernelPerceptron(FeatureMap()), slice(3, 6)))


def features(learner, samples):
    """As a learner without feature maps gets them, in float64."""
    bank = FeatureBank([("map", learner.kernel, slice(None))], samples, normalize=learner.normalize)
    return bank.features(samples).astype(np.float64)


def plain(learner, samples):
    """The learner on a precomputed kernel, or on columns, and its X."""
    phi = features(learner, samples)
    if isinstance(learner, KernelPerceptron):
        return clone(learner).set_params(kernel="precomputed"), phi @ phi[:N].T
    return clone(learner).set_params(kernel=None), phi


def check(model, given, wanted, given_new):
    """Equal scores of the mean and the last hypothesis, and equal visits."""
    assert_array_equal(model.online_errors_, wanted.online_errors_)
    assert model.n_updates_ == wanted.n_updates_ and not model.support_sizes_.any()
    assert_allclose(model.online_losses_, wanted.online_losses_, atol=1e-6 * wanted.online_losses_.max())
    for average in (True, False):
        scores = wanted.set_params(average=average).decision_function(given_new)
        limit = 1e-6 * np.abs(scores).max()
        assert_allclose(model.set_params(average=average).decision_function(given), scores, atol=limit)


@pytest.mark.parametrize("rule", RULES)
def test_a_learner_is_that_of_the_kernel(rule):
    learner = RULES[rule]
    both = np.concatenate([X, NEW])[:, :3]
    wanted, given = plain(learner, both)
    wanted.fit(given[:N], Y, WEIGHTS)
    model = clone(learner).fit(X[:, :3], Y, WEIGHTS)
    check(model, NEW[:, :3], wanted, given[N:])
    flat = Flat(learner).fit(X[:, :3], Y, WEIGHTS)
    assert_array_equal(
        flat.decision_function(NEW[:, :3]), model.set_params(average=True).decision_function(NEW[:, :3])
    )
    assert model.coef_.shape == (M, 20)
    if rule == "perceptron":
        assert model.support_.size == 0 and model.dual_coef_.shape == (0, M)


@pytest.mark.parametrize("query", [None, MarginQuery(0.3)])
@pytest.mark.parametrize("cls", [OMCL, Vote])
def test_two_layers_are_those_of_the_kernels(cls, query):
    options = {} if cls is Vote else {"query": query}
    parts = [clone(learner) for _, learner, _ in CUES]
    blocks = [
        features(learner, np.concatenate([X, NEW])[:, c])
        for learner, (_, _, c) in zip(parts, CUES, strict=True)
    ]
    ends = np.cumsum([0] + [block.shape[1] for block in blocks])
    cues = []  # Linear kernels of the normalised features
    for j, (name, learner, _) in enumerate(CUES):
        kernel = "linear" if isinstance(learner, KernelPerceptron) else None
        cues.append((name, clone(learner).set_params(kernel=kernel), slice(ends[j], ends[j + 1])))
    phi = np.concatenate(blocks, axis=1)
    wanted = cls(cues, **options).fit(phi[:N], Y, WEIGHTS)
    model = cls(CUES, **options).fit(X, Y, WEIGHTS)
    if cls is Vote:
        assert_array_equal(model.decision_function(NEW), wanted.decision_function(phi[N:]))
        assert_array_equal(model.online_errors_, wanted.online_errors_)
        return
    assert_array_equal(model.queried_, wanted.queried_)
    check(model, NEW, wanted, phi[N:])
    assert_allclose(model.weights_, wanted.weights_, atol=1e-6)


def test_a_stream_keeps_no_samples(tmp_path):
    unfitted = [(name, clone(learner), c) for name, learner, c in CUES[:2]]
    unfitted[0][1].set_params(kernel=FeatureMap(RBFSampler(random_state=0)))
    model = OMCL(unfitted, record=False)
    sizes, held = [], []
    tracemalloc.start()
    for batch in range(12):
        model.partial_fit(X, Y, classes=range(M))
        if batch % 4 == 3:
            model.save(tmp_path / "model.npz")
            sizes.append((tmp_path / "model.npz").stat().st_size)
            held.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    assert max(sizes) - min(sizes) < 500 and held[2] - held[1] < 1e5
    for again in (load(tmp_path / "model.npz"), pickle.loads(pickle.dumps(model))):
        assert_array_equal(again.decision_function(NEW), model.decision_function(NEW))
        again.partial_fit(X, Y)
    one = OMCL(CUES).fit(X, Y)
    parts = OMCL(CUES)
    for start in range(0, N, 17):
        parts.partial_fit(X[start : start + 17], Y[start : start + 17], classes=range(M))
    assert_allclose(parts.decision_function(NEW), one.decision_function(NEW), atol=1e-9)


def test_a_cue_that_a_sample_lacks_has_score_0():
    lacking = X.copy()
    lacking[::5, :3] = np.nan
    zero = OMCL(CUES, missing="zero").fit(lacking, Y)
    assert not zero.cue_scores(lacking)[:2, ::5].any()
    learner = zero.learners_[0]
    here = np.arange(N) % 5 > 0
    assert_allclose(learner.coef_, clone(PERCEPTRON).fit(X[here, :3], Y[here]).coef_ * 0 + learner.coef_)
    alone = clone(PERCEPTRON).set_params(average=False).fit(X[here, :3], Y[here])
    assert_allclose(learner._hypothesis.coef, alone.coef_, atol=1e-12)
    with pytest.raises(ValueError, match="none of sample 5"):
        zero.fit(np.where(np.arange(N)[:, None] == 5, np.nan, X), Y)


def test_sparse_cues_and_texts():
    table = X * (X > 0.5)
    cues = [
        ("a", KernelPerceptron(FeatureMap()), slice(0, 3)),
        ("b", PassiveAggressive(kernel=FeatureMap()), [3, 5]),
    ]
    for model in (OMCL(cues), OMCL(cues, query=MarginQuery(0.5)), cues[0][1]):
        wanted = clone(model).fit(table, Y).decision_function(table)
        model.fit(sparse.csr_array(table), Y)
        assert_allclose(model.decision_function(sparse.csr_array(table)), wanted, atol=1e-5)
    frame = pd.DataFrame(X, columns=list("abcdef"))
    frame["text"] = [f"word{label} the {t % 7}" for t, label in enumerate(Y)]
    words = FeatureMap(HashingVectorizer(n_features=64))
    cues = [("words", KernelPerceptron(words), "text"), ("near", ProjectronPlusPlus(eta=0.3), ["a", "c"])]
    for query in (None, MarginQuery(0.5)):
        model = OMCL(cues, query=query).fit(frame, Y)
        assert model.score(frame, Y) > 0.95
    alone = KernelPerceptron(words).fit(frame[["text"]], Y)
    assert_allclose(alone.decision_function(frame[["text"]]), Vote(cues).fit(frame, Y).cue_scores(frame)[0])


def test_what_is_refused():
    with pytest.raises(ValueError, match="integrator must be linear in the scores"):
        OMCL(CUES, PassiveAggressive(kernel=FeatureMap())).fit(X, Y)
    with pytest.raises(AttributeError, match="see dual_coef_"):
        KernelPerceptron().fit(X, Y).coef_  # noqa: B018
    with pytest.raises(ValueError, match="'kernel' parameter of PassiveAggressive"):
        PassiveAggressive(kernel="rbf").fit(X, Y)
    with pytest.raises(TypeError, match="takes dense samples"):
        ProjectronPlusPlus(FeatureMap()).fit(sparse.csr_array(X), Y)

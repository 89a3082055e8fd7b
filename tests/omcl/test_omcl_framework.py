"""Two layers of learners, and what OMCL is compared with."""

import gc
import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from omcl_twins import TwinKernel, TwinLinear, TwinOMCL, make_stream
from plain_kernels import plain_kernel
from sklearn.base import clone
from sklearn.linear_model import SGDClassifier
from sklearn.naive_bayes import GaussianNB

from cuelearn.kernels import RBF, Chi2, Linear, Poly
from cuelearn.omcl import (
    OMCL,
    Flat,
    KernelPerceptron,
    MarginQuery,
    OnlineGradientDescent,
    PassiveAggressive,
    Projectron,
    ProjectronPlusPlus,
    RandomQuery,
    Vote,
    count_votes,
)

M = 3  # classes
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning:sklearn.*")  # of naive Bayes

# name -> learner, columns, twin of it on (X, y): what the twin learns from, what predicts
CUES = {
    "rbf": (
        ProjectronPlusPlus(RBF(scale=1.0), eta=0.3),
        [0, 1, 2],
        ("projectron++", "sqeuclidean", {"scale": 1.0}, 0.3),
    ),
    "chi2": (Projectron(Chi2(scale=0.8), eta=0.4), slice(3, 6), ("projectron", "chi2", {"scale": 0.8}, 0.4)),
    "perceptron": (KernelPerceptron(Linear()), [6, 4], ("perceptron", "linear", {}, 0.0)),
    "poly": (
        ProjectronPlusPlus(Poly(gamma=0.5), eta=0.2),
        [7, 1, 3],
        ("projectron++", "poly", {"scale": 2.0}, 0.2),
    ),
    "linear": (PassiveAggressive(C=0.5), slice(2, 7), None),
    "gradient": (OnlineGradientDescent(step=0.2), [0, 5], None),
}
MIXES = {
    "one kernel": ["rbf"],
    "kernels": ["rbf", "chi2", "perceptron", "poly"],
    "linear": ["linear", "gradient"],
    "mixed": ["linear", "rbf", "gradient", "perceptron"],
}


STEPS = {"linear": lambda d, n: ("pa", d, n, 0.5), "gradient": lambda d, n: ("gradient", d, n, 0.2)}


def data(n=300, seed=0, n_classes=M):
    return make_stream(n, 8, n_classes, seed=seed, zeros=0.02)


def cues(names):
    return [(name, CUES[name][0], CUES[name][1]) for name in names]


def twin_of(name, X, n_classes=M):
    """A plain twin of a cue's learner, and what it is shown at each visit."""
    _, columns, twin = CUES[name]
    part = X[:, columns]
    if name in STEPS:
        return TwinLinear(*STEPS[name](part.shape[1], n_classes)), part
    rule, kernel, options, eta = twin
    return TwinKernel(rule, plain_kernel(kernel, part, part, **options), n_classes, eta), np.arange(len(X))


def inputs_of(name, X, new):
    """What the coefficients of a cue's twin are multiplied with for new samples, a row for each."""
    _, columns, twin = CUES[name]
    return (
        new[:, columns].T
        if name in STEPS
        else plain_kernel(twin[1], X[:, columns], new[:, columns], **twin[2])
    )


def run_twin(names, X, y, n_classes=M, C=1.0, weights=None, limits=None):
    return TwinOMCL([twin_of(name, X, n_classes) for name in names], n_classes, C).run(y, weights, limits)


def scores_of(products, names, X, new):
    return sum(product @ inputs_of(name, X, new) for product, name in zip(products, names, strict=True)).T


@pytest.mark.parametrize("n_classes", [2, 7])
@pytest.mark.parametrize("mix", MIXES)
def test_two_layers_against_the_twin(mix, n_classes):
    names = MIXES[mix]
    X, y = data(n_classes=n_classes)
    new = data(60, seed=9)[0]
    weights = np.random.default_rng(0).choice([0.0, 0.3, 1.0, 2.5], len(y))
    for C, given in ((1.0, None), (0.05, None), (1.0, weights)):
        twin = run_twin(names, X, y, n_classes, C, given)
        model = OMCL(cues(names), PassiveAggressive(C)).fit(X, y, given)
        assert_array_equal(model.online_errors_, twin.second.mistakes)
        assert_allclose(model.online_losses_, twin.second.losses, atol=1e-7)
        assert_allclose(model.weights_, twin.second.A, atol=1e-8)
        assert model.weights_.shape == (n_classes, n_classes * len(names))
        for learner, (cue, _) in zip(model.learners_, twin.cues, strict=True):
            assert_array_equal(learner.online_errors_, cue.mistakes)
        sizes = sum(np.array([len(cue.support) for cue, _ in twin.cues]))
        assert model.support_sizes_[-1] == sizes
        check_scores(model, twin, names, X, new)


def check_scores(model, twin, names, X, new):
    """Of the averages and of the last hypotheses."""
    blocks = np.hsplit(twin.second.A, len(names))
    last = [block @ cue.A for block, (cue, _) in zip(blocks, twin.cues, strict=True)]
    for average, products in ((True, twin.products), (False, last)):
        wanted = scores_of(products, names, X, new)
        scores = model.set_params(average=average)._class_scores(new)
        assert_allclose(scores, wanted, atol=1e-8 * max(1.0, np.abs(wanted).max()))


@pytest.mark.parametrize("query", [MarginQuery(0.3), RandomQuery(0.4)])
def test_requested_labels_are_those_of_the_twin(query):
    """tests/core has what all learners that take a query do."""
    names = MIXES["mixed"]
    X, y = data(150)
    twin = run_twin(names, X, y, limits=query.limits(0, 150))
    queried = twin.queried
    model = OMCL(cues(names), query=query).fit(X, y)
    assert 20 < model.n_queries_ == queried.sum() < 130
    assert_array_equal(model.queried_, queried)
    assert_array_equal(model.online_errors_[queried], twin.second.mistakes)
    assert not model.online_errors_[~queried].any()
    assert model.cumulative_loss_ == pytest.approx(twin.second.losses.sum())
    check_scores(model, twin, names, X, data(60, seed=9)[0])
    for name, learner, (plain, _) in zip(names, model.learners_, twin.cues, strict=True):
        assert name in STEPS or learner.support_.tolist() == plain.support


def stack_of(names, X, Z):
    parts = [(CUES[name][2], CUES[name][1]) for name in names]
    return np.stack([plain_kernel(twin[1], X[:, c], Z[:, c], **twin[2]) for twin, c in parts])


def on_stack(names):
    learners = [clone(CUES[name][0]).set_params(kernel="precomputed") for name in names]
    return [(name, learner, j) for j, (name, learner) in enumerate(zip(names, learners, strict=True))]


def test_precomputed_kernels():
    names = MIXES["kernels"]
    X, y = data(400)
    new = data(60, seed=9)[0]
    from_X = OMCL(cues(names)).fit(X, y)
    K, cross = stack_of(names, X, X), stack_of(names, new, X)
    fitted = OMCL(on_stack(names)).fit(K, y)
    parts = OMCL(on_stack(names))
    for start in range(0, 400, 7):
        stop = min(400, start + 7)
        parts.partial_fit(K[:, start:stop, :stop], y[start:stop], classes=range(M))
    moved = OMCL([(name, learner, 3 - j) for name, learner, j in on_stack(names)]).fit(K[::-1], y)
    assert_array_equal(fitted.decision_function(K), moved.decision_function(K[::-1]))
    for model in (fitted, parts):
        assert_array_equal(model.online_errors_, from_X.online_errors_)
        assert_array_equal(model.predict(cross), from_X.predict(new))
        assert_allclose(model.decision_function(cross), from_X.decision_function(new), atol=1e-8)
        assert_allclose(model.cue_scores(cross), from_X.cue_scores(new), atol=1e-8)


@pytest.mark.parametrize("kernel", [RBF(scale=5.0), Poly(gamma=0.5)])
def test_a_kernel_learner_as_integrator(kernel):
    X, y = data()
    new = data(60, seed=9)[0]
    names = ["rbf", "chi2"]
    twin = run_twin(names, X, y)
    model = OMCL(cues(names), ProjectronPlusPlus(kernel, eta=0.3), average=False).fit(X, y)
    second = ProjectronPlusPlus(kernel, eta=0.3, average=False).fit(np.array(twin.S), y)
    assert_array_equal(model.online_errors_, second.online_errors_)
    parts = [(cue.A @ inputs_of(name, X, new)).T for name, (cue, _) in zip(names, twin.cues, strict=True)]
    assert_array_equal(model.predict(new), second.predict(np.hstack(parts)))
    with pytest.raises(AttributeError, match="weights_ needs a linear integrator"):
        model.weights_  # noqa: B018


FOREIGN = [SGDClassifier(random_state=0), GaussianNB()]  # whose first probabilities are not numbers


def one_by_one(learner, S, y, n_classes):
    """Scores of a learner of scikit-learn before each update, 0 at first."""
    learner = clone(learner)
    scores = np.zeros((len(y), n_classes))
    predict = "decision_function" if hasattr(learner, "decision_function") else "predict_proba"
    for t in range(len(y)):
        if t:
            own = np.nan_to_num(getattr(learner, predict)(S[t : t + 1]))
            scores[t] = own if own.ndim == 2 else [-own[0] / 2, own[0] / 2]
        learner.partial_fit(S[t : t + 1], y[t : t + 1], classes=np.arange(n_classes))
    return scores


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("learner", FOREIGN)
def test_learners_of_scikit_learn_for_a_cue(learner, n_classes):
    X, y = make_stream(120, 8, n_classes, seed=2, noise=0.05, duplicates=0.0, spread=0.1)
    mixed = [("theirs", learner, slice(0, 4)), ("ours", ProjectronPlusPlus(RBF(scale=1.0)), slice(4, 8))]
    model = OMCL(mixed, average=False).fit(X, y)
    assert model.score(X, y) > 0.6
    S = one_by_one(learner, X[:, :4], y, n_classes)
    twin = TwinKernel("projectron++", plain_kernel("sqeuclidean", X[:, 4:], X[:, 4:]), n_classes, 0.1).run(y)
    second = TwinLinear("pa", 2 * n_classes, n_classes, 1.0).run(np.hstack([S, twin.scores]), y)
    assert_array_equal(model.online_errors_, second.mistakes)
    assert_allclose(model.weights_, second.A, atol=1e-9 * np.abs(second.A).max())
    assert model.cue_scores(X).shape == (2, 120, n_classes)
    with pytest.raises(
        ValueError, match="average=True needs learners of cuelearn.omcl .*: give average=False"
    ):
        OMCL(mixed).fit(X, y)


@pytest.mark.parametrize("integrator", FOREIGN)
def test_learners_of_scikit_learn_as_integrator(integrator):
    X, y = data(150)
    model = OMCL(cues(["rbf", "chi2"]), integrator, average=False).fit(X, y)
    scores = one_by_one(integrator, np.array(run_twin(["rbf", "chi2"], X, y).S), y, M)
    own = scores[np.arange(150), y]
    scores[np.arange(150), y] = -np.inf
    wrong = own <= scores.max(axis=1)
    assert np.mean(model.online_errors_ == wrong) > 0.97  # the twin's scores differ in the last digits


@pytest.mark.parametrize("learner", [ProjectronPlusPlus(RBF(scale=4.0), eta=0.3), PassiveAggressive(0.3)])
def test_flat_on_vectors(learner):
    X, y = data()
    new = data(60, seed=9)[0]
    flat = Flat(learner).fit(X, y)
    plain = clone(learner).fit(X, y)
    assert_array_equal(flat.online_errors_, plain.online_errors_)
    assert_array_equal(flat.support_sizes_, plain.support_sizes_)
    for average in (True, False):
        scores = flat.set_params(average=average).decision_function(new)
        assert_array_equal(scores, plain.set_params(average=average).decision_function(new))


@pytest.mark.parametrize("learner", [ProjectronPlusPlus("precomputed"), KernelPerceptron("precomputed")])
def test_flat_on_feature_maps_is_the_mean_kernel(learner):
    names = ["rbf", "chi2", "perceptron", "poly"]
    X, y = data(300)
    new = data(60, seed=9)[0]
    K, cross = stack_of(names, X, X), stack_of(names, new, X)
    wanted = clone(learner).fit(K.mean(axis=0), y)
    model = Flat(learner).fit(K, y)
    assert_array_equal(model.online_errors_, wanted.online_errors_)
    assert_array_equal(model.decision_function(cross), wanted.decision_function(cross.mean(axis=0)))


def loop_votes(scores):
    """Majority of the cues' best classes, sample by sample; -1 for a tie."""
    answers = []
    for sample in range(scores.shape[1]):
        votes = np.zeros(scores.shape[2], dtype=int)
        for cue in range(scores.shape[0]):
            votes[np.argmax(scores[cue, sample])] += 1
        first = [c for c in range(scores.shape[2]) if votes[c] == votes.max()]
        answers.append((first, votes))
    return answers


@pytest.mark.parametrize("average", [True, False])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_vote(n_classes, average):
    """Ties are errors for `score` and online; `predict` gives the first of the tied classes."""
    X, y = data(400, n_classes=n_classes)
    new, new_y = data(200, seed=9, n_classes=n_classes)
    names = ["rbf", "chi2", "perceptron", "gradient"]
    labels = np.array(["ant", "bee", "cat", "dog"])
    model = Vote(cues(names), average=average).fit(X, labels[y])
    alone = [clone(CUES[name][0]).set_params(average=average).fit(X[:, CUES[name][1]], y) for name in names]
    parts = [new[:, CUES[name][1]] for name in names]
    scores = np.stack([one._class_scores(part) for one, part in zip(alone, parts, strict=True)])
    assert_array_equal(model.cue_scores(new), scores)
    answers = loop_votes(scores)
    votes, tied = count_votes(scores)
    assert_array_equal(votes, [counted for _, counted in answers])
    assert_array_equal(tied, [len(first) > 1 for first, _ in answers])
    assert_array_equal(model.ties(new), tied)
    assert tied.any()
    assert_array_equal(model.predict(new), labels[[first[0] for first, _ in answers]])
    right = [first == [label] for (first, _), label in zip(answers, new_y, strict=True)]
    weight = np.random.default_rng(1).random(200)
    assert model.score(new, labels[new_y]) == pytest.approx(np.mean(right))
    assert model.score(new, labels[new_y], weight) == pytest.approx(np.average(right, weights=weight))
    online = np.stack([twin.scores for twin, _ in run_twin(names, X, y, n_classes).cues])
    wrong = [first != [label] for (first, _), label in zip(loop_votes(online), y, strict=True)]
    assert_array_equal(model.online_errors_, wrong)


def test_memory_stays_flat_on_a_stream():
    rng = np.random.default_rng(0)
    few = {"eta": 0.3, "record": False}
    members = [("a", ProjectronPlusPlus(RBF(scale=0.5), **few), [0, 1])]
    members.append(("b", Projectron(Chi2(scale=0.5), **few), [2, 3]))
    model = OMCL(members, record=False)
    sizes, held = [], []
    tracemalloc.start()
    try:
        for batch in range(30):
            X = rng.random((100, 4))
            y = (X[:, [0, 2]].sum(axis=1) * 1.5).astype(int)
            y = np.where(rng.random(100) < 0.2, rng.integers(0, 3, 100), y)
            model.partial_fit(X, y, classes=range(3))
            if batch % 10 == 9:
                gc.collect()
                held.append(tracemalloc.get_traced_memory()[0])
                sizes.append([len(part.support_) for part in model.learners_])
    finally:
        tracemalloc.stop()
    assert model.n_seen_ == 3_000 and model.n_mistakes_ > 300
    assert max(max(pair) for pair in sizes) < 100
    assert np.abs(np.diff(sizes, axis=0)).max() <= 3
    assert held[-1] - held[0] < 3e5
    assert max(part.inverse_error_ for part in model.learners_) <= 1e-6


def test_samples_of_weight_0_are_not_there():
    """But for the record of their predictions; also for learners of scikit-learn, which may count samples."""
    X, y = data(100, n_classes=2)
    weights = np.random.default_rng(1).choice([0.0, 0.5, 1.0, 2.0], len(y))
    kept = weights > 0.0
    model = OMCL([("bayes", FOREIGN[1], [0, 1]), ("linear", FOREIGN[0], [2, 3])], average=False)
    scores = model.fit(X[kept], y[kept], weights[kept]).decision_function(X)
    assert_array_equal(model.fit(X, y, weights).decision_function(X), scores)
    assert model.online_errors_.size == model.n_seen_ == len(y)


class Deaf(SGDClassifier):
    def partial_fit(self, X, y, classes=None):
        return super().partial_fit(X, y, classes)


def test_learners_without_weights_are_named():
    X, y = data(60)
    models = {
        "the learner of 'a'": Vote([("a", Deaf(), [0])]),
        "the integrator": OMCL(integrator=Deaf(), average=False),
    }
    for name, model in models.items():
        message = f"sample_weight must be None: Deaf.partial_fit, {name}, takes no weights"
        with pytest.raises(ValueError, match=message):
            model.fit(X, y, sample_weight=np.ones(len(y)))
        assert model.fit(X, y).n_seen_ == len(y)

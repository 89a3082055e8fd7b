"""Two layers of learners, the averaged product, and what OMCL is compared with."""

import functools

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from omcl_twins import TwinKernel, TwinLinear, TwinOMCL, make_stream
from plain_kernels import plain_kernel
from sklearn.linear_model import Perceptron, SGDClassifier
from sklearn.naive_bayes import GaussianNB, MultinomialNB

from cuelearn.kernels import RBF, Chi2, Linear, Poly
from cuelearn.omcl import (
    OMCL,
    Flat,
    KernelPerceptron,
    OnlineGradientDescent,
    PassiveAggressive,
    Projectron,
    ProjectronPlusPlus,
    Vote,
    count_votes,
)

M = 3  # classes

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
    "gradient": (OnlineGradientDescent(step=0.2), [0, 5], ("gradient", 0.2)),
}
MIXES = {
    "one kernel": ["rbf"],
    "kernels": ["rbf", "chi2", "perceptron", "poly"],
    "linear": ["linear", "gradient"],
    "mixed": ["linear", "rbf", "gradient", "perceptron"],
}


def data(n=300, seed=0, n_classes=M):
    return make_stream(n, 8, n_classes, seed=seed, zeros=0.02)


def chosen(columns):
    return np.arange(8)[columns]


def cues(names):
    return [(name, CUES[name][0], CUES[name][1]) for name in names]


def twin_of(name, X, n_classes=M):
    """A plain twin of a cue's learner, what it is shown at each visit, and the inputs of its coefficients
    for new samples."""
    _, columns, twin = CUES[name]
    part = X[:, chosen(columns)]
    if name in ("linear", "gradient"):
        return TwinLinear(
            "pa" if name == "linear" else "gradient",
            part.shape[1],
            n_classes,
            0.5 if name == "linear" else 0.2,
        ), part
    rule, kernel, options, eta = twin
    return TwinKernel(rule, plain_kernel(kernel, part, part, **options), n_classes, eta), np.arange(len(X))


def inputs_of(name, X, new):
    """What the coefficients of a cue's twin are multiplied with for new samples, shape (columns of the
    coefficients, n)."""
    _, columns, twin = CUES[name]
    if name in ("linear", "gradient"):
        return new[:, chosen(columns)].T
    return plain_kernel(twin[1], X[:, chosen(columns)], new[:, chosen(columns)], **twin[2])


def run_twin(names, X, y, n_classes=M, C=1.0, weights=None):
    return TwinOMCL([twin_of(name, X, n_classes) for name in names], n_classes, C).run(y, weights)


def last_products(twin, n_classes=M):
    return [
        twin.second.A[:, j * n_classes : (j + 1) * n_classes] @ cue.A for j, (cue, _) in enumerate(twin.cues)
    ]


def scores_of(products, names, X, new):
    return sum(product @ inputs_of(name, X, new) for product, name in zip(products, names, strict=True)).T


def plain_scores(model, X):
    """Class scores, two columns for two classes too."""
    return model._class_scores(X)


# ------------------------------------------------------------------ Algorithm 1 and the averaged product


@pytest.mark.parametrize("n_classes", [2, 3, 7])
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
        wanted = scores_of(twin.products, names, X, new)
        assert_allclose(plain_scores(model, new), wanted, atol=1e-8 * max(1.0, np.abs(wanted).max()))
        wanted = scores_of(last_products(twin, n_classes), names, X, new)
        assert_allclose(
            plain_scores(model.set_params(average=False), new),
            wanted,
            atol=1e-8 * max(1.0, np.abs(wanted).max()),
        )


# ------------------------------------------------------------------ all ways through the same stream


def stack_of(names, X, Z):
    parts = [(CUES[name][2], chosen(CUES[name][1])) for name in names]
    return np.stack([plain_kernel(twin[1], X[:, c], Z[:, c], **twin[2]) for twin, c in parts])


def on_stack(names):
    return [
        (name, type(CUES[name][0])(**{**CUES[name][0].get_params(deep=False), "kernel": "precomputed"}), j)
        for j, name in enumerate(names)
    ]


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
    for model in (fitted, parts):
        assert_array_equal(model.online_errors_, from_X.online_errors_)
        assert_array_equal(model.predict(cross), from_X.predict(new))
        assert_allclose(model.decision_function(cross), from_X.decision_function(new), atol=1e-8)
        assert_allclose(model.cue_scores(cross), from_X.cue_scores(new), atol=1e-8)


def test_the_order_of_kernels_in_a_stack_is_free():
    names = MIXES["kernels"]
    X, y = data()
    K = stack_of(names, X, X)
    given = OMCL(on_stack(names)).fit(K, y)
    moved = OMCL([(name, learner, 3 - j) for name, learner, j in on_stack(names)]).fit(K[::-1], y)
    assert_array_equal(given.decision_function(K), moved.decision_function(K[::-1]))


def test_a_kernel_learner_as_integrator():
    X, y = data()
    names = ["rbf", "chi2"]
    twin = run_twin(names, X, y)
    S = np.array(twin.S)
    for kernel in (RBF(scale=5.0), Poly(gamma=0.5)):
        model = OMCL(cues(names), ProjectronPlusPlus(kernel, eta=0.3), average=False).fit(X, y)
        second = ProjectronPlusPlus(kernel, eta=0.3, average=False).fit(S, y)
        assert_array_equal(model.online_errors_, second.online_errors_)
        new = data(60, seed=9)[0]
        parts = [(cue.A @ inputs_of(name, X, new)).T for name, (cue, _) in zip(names, twin.cues, strict=True)]
        assert_array_equal(model.predict(new), second.predict(np.concatenate(parts, axis=1)))
        assert model.integrator_.n_seen_ == 300
        with pytest.raises(AttributeError, match="weights_ needs a linear integrator"):
            model.weights_  # noqa: B018
    with pytest.raises(ValueError, match="average=True needs learners of cuelearn.omcl"):
        OMCL(cues(names), KernelPerceptron(RBF(scale=1.0))).fit(X, y)
    with pytest.raises(ValueError, match="average=True needs learners of cuelearn.omcl"):
        model.set_params(average=True).predict(X)


# ------------------------------------------------------------------ learners of others


FOREIGN = {
    "SGDClassifier": SGDClassifier(random_state=0),
    "Perceptron": Perceptron(random_state=0),
    "MultinomialNB": MultinomialNB(),
    "GaussianNB": GaussianNB(),  # whose first probabilities are not numbers
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning:sklearn.*")
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", FOREIGN)
def test_learners_of_scikit_learn_for_a_cue(name, n_classes):
    X, y = make_stream(120, 8, n_classes, seed=2, noise=0.05, duplicates=0.0, spread=0.1)
    mixed = [
        ("theirs", FOREIGN[name], [0, 1, 2, 3]),
        ("ours", ProjectronPlusPlus(RBF(scale=1.0)), [4, 5, 6, 7]),
    ]
    model = OMCL(mixed, average=False).fit(X, y)
    assert model.score(X, y) > 0.6
    assert model.decision_function(X).shape == ((120,) if n_classes == 2 else (120, n_classes))
    assert model.n_seen_ == 120 and model.support_sizes_[-1] == len(model.learners_[1].support_)
    # its scores by hand, before each update
    learner, S = type(FOREIGN[name])(**FOREIGN[name].get_params()), np.zeros((120, n_classes))
    for t in range(120):
        if t:
            scores = (
                learner.decision_function if hasattr(learner, "decision_function") else learner.predict_proba
            )(X[t : t + 1, :4])
            S[t] = np.nan_to_num(scores) if scores.ndim == 2 else [-scores[0] / 2, scores[0] / 2]
        learner.partial_fit(X[t : t + 1, :4], y[t : t + 1], classes=np.arange(n_classes))
    twin = TwinKernel("projectron++", plain_kernel("sqeuclidean", X[:, 4:], X[:, 4:]), n_classes, 0.1).run(y)
    second = TwinLinear("pa", 2 * n_classes, n_classes, 1.0).run(np.concatenate([S, twin.scores], axis=1), y)
    assert_array_equal(model.online_errors_, second.mistakes)
    assert_allclose(model.weights_, second.A, atol=1e-9 * np.abs(second.A).max())
    assert model.cue_scores(X).shape == (2, 120, n_classes)
    match = "average=True needs learners of cuelearn.omcl .*: give average=False"
    with pytest.raises(ValueError, match=match):
        OMCL(mixed).fit(X, y)
    with pytest.raises(ValueError, match="average=True needs learners of cuelearn.omcl"):
        model.set_params(average=True).predict(X)


@pytest.mark.filterwarnings("ignore::RuntimeWarning:sklearn.*")
@pytest.mark.parametrize(
    "integrator", [SGDClassifier(random_state=0), Perceptron(random_state=0), GaussianNB()]
)
def test_learners_of_scikit_learn_as_integrator(integrator):
    X, y = data(150)
    model = OMCL(cues(["rbf", "chi2"]), integrator, average=False).fit(X, y)
    assert model.score(X, y) > 0.5 and model.decision_function(X).shape == (150, M)
    twin = run_twin(["rbf", "chi2"], X, y)
    second = type(integrator)(**integrator.get_params())
    errors = []
    for t in range(150):
        scores = np.zeros(M)
        if t:
            predict = (
                second.decision_function if hasattr(second, "decision_function") else second.predict_proba
            )
            scores = np.nan_to_num(predict([twin.S[t]])[0])
        errors.append(scores[y[t]] <= np.delete(scores, y[t]).max())
        second.partial_fit([twin.S[t]], [y[t]], classes=np.arange(M))
    assert np.mean(model.online_errors_ == errors) > 0.97  # the twin's scores differ in the last digits
    with pytest.raises(ValueError, match="average=True needs learners of cuelearn.omcl"):
        OMCL(cues(["rbf"]), integrator).fit(X, y)


def test_composite_learners_for_a_cue():
    """An OMCL, a Vote or a Flat may be a cue's learner like any other classifier."""
    X, y = data(120)
    inner = OMCL(cues(["rbf", "chi2"]))
    model = OMCL(
        [("inner", inner, slice(None)), ("flat", Flat(PassiveAggressive()), [0, 1])], average=False
    ).fit(X, y)
    assert_array_equal(model.learners_[0].learner.online_errors_, inner.fit(X, y).online_errors_)
    assert model.score(X, y) > 0.5
    with pytest.raises(ValueError, match="average=True needs"):
        model.set_params(average=True).fit(X, y)


# ------------------------------------------------------------------ Flat


def test_flat_on_vectors():
    """One learner on all columns, as they are or each divided by its deviation."""
    X, y = data()
    X[:, 3] = 0.25  # a constant column stays as it is
    new = data(60, seed=9)[0]
    for learner in (
        ProjectronPlusPlus(RBF(scale=4.0), eta=0.3),
        PassiveAggressive(0.3),
        KernelPerceptron(Chi2(scale=2.0)),
    ):
        plain = type(learner)(**learner.get_params(deep=False))
        flat = Flat(learner).fit(X, y)
        plain.fit(X, y)
        for average in (True, False):
            found = flat.set_params(average=average).decision_function(new)
            assert_array_equal(found, plain.set_params(average=average).decision_function(new))
        assert_array_equal(flat.online_errors_, plain.online_errors_)
        assert_array_equal(flat.support_sizes_, plain.support_sizes_)
        scale = np.where(X.std(axis=0) > 0, X.std(axis=0), 1.0)
        scaled = Flat(learner, scale="deviation").fit(X, y)
        plain.set_params(average=True).fit(X / scale, y)
        assert_allclose(scaled.decision_function(new), plain.decision_function(new / scale), atol=1e-12)
        assert_array_equal(scaled.online_errors_, plain.online_errors_)


def test_flat_on_feature_maps_is_the_mean_kernel():
    names = ["rbf", "chi2", "perceptron", "poly"]
    X, y = data(300)
    new = data(60, seed=9)[0]
    K, cross = stack_of(names, X, X), stack_of(names, new, X)
    triples = [(name, CUES[name][0].kernel, CUES[name][1]) for name in names]
    for learner in (ProjectronPlusPlus(eta=0.3), KernelPerceptron()):
        wanted = type(learner)(**{**learner.get_params(deep=False), "kernel": "precomputed"})
        wanted.fit(K.mean(axis=0), y)
        flat = Flat(learner, cues=triples).fit(X, y)
        one_by_one = Flat(learner, cues=triples)
        for t in range(300):
            one_by_one.partial_fit(X[t : t + 1], y[t : t + 1], classes=range(M))
        stacked = Flat(
            type(learner)(
                "precomputed", **{k: v for k, v in learner.get_params(deep=False).items() if k == "eta"}
            )
        )
        stacked.fit(K, y)
        for model, rows in ((flat, new), (one_by_one, new), (stacked, cross)):
            assert_array_equal(model.online_errors_, wanted.online_errors_)
            expected = wanted.decision_function(cross.mean(axis=0))
            assert_allclose(model.decision_function(rows), expected, atol=1e-9)
        assert flat.learner_.support_vectors_.shape == (len(flat.learner_.support_), 8)
        assert_array_equal(flat.learner_.support_vectors_, X[wanted.support_])


# ------------------------------------------------------------------ Vote


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


def test_votes_against_a_loop():
    rng = np.random.default_rng(0)
    for n_cues, n_classes in ((1, 3), (2, 2), (4, 5), (5, 3)):
        scores = rng.normal(size=(n_cues, 200, n_classes))
        votes, tied = count_votes(scores)
        for t, (first, counted) in enumerate(loop_votes(scores)):
            assert_array_equal(votes[t], counted)
            assert tied[t] == (len(first) > 1)
        assert tied.any() == (n_cues > 1)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_vote(n_classes):
    """Ties are errors for `score` and online; `predict` gives the first of the tied classes."""
    X, y = data(400, n_classes=n_classes)
    new, new_y = data(200, seed=9, n_classes=n_classes)
    names = ["rbf", "chi2", "perceptron", "gradient"]
    labels = np.array(["ant", "bee", "cat", "dog"])
    for average in (True, False):
        model = Vote(cues(names), average=average).fit(X, labels[y])
        alone = [
            CUES[name][0].set_params(average=average).fit(X[:, chosen(CUES[name][1])], y) for name in names
        ]
        scores = np.stack(
            [m._class_scores(new[:, chosen(CUES[name][1])]) for m, name in zip(alone, names, strict=True)]
        )
        answers = loop_votes(scores)
        assert_array_equal(model.ties(new), [len(first) > 1 for first, _ in answers])
        assert_array_equal(model.predict(new), labels[[first[0] for first, _ in answers]])
        right = [first == [label] for (first, _), label in zip(answers, new_y, strict=True)]
        assert model.score(new, labels[new_y]) == pytest.approx(np.mean(right))
        weight = np.random.default_rng(1).random(200)
        assert model.score(new, labels[new_y], weight) == pytest.approx(np.average(right, weights=weight))
        assert model.ties(new).any()
        assert model.score(new, labels[new_y]) <= np.mean(model.predict(new) == labels[new_y])
        assert_array_equal(model.cue_scores(new), scores)
        for name in names:
            CUES[name][0].set_params(average=True)
    online = np.stack([twin.scores for twin, _ in run_twin(names, X, y, n_classes).cues])
    wrong = [first != [label] for (first, _), label in zip(loop_votes(online), y, strict=True)]
    assert_array_equal(model.online_errors_, wrong)


# ------------------------------------------------------------------ a stream without end


def test_memory_stays_flat_on_a_stream():
    """10,000 samples; the long test has 100,000."""
    endless(10_000, 1_000)


@pytest.mark.long
def test_memory_stays_flat_on_an_endless_stream():
    endless(100_000, 10_000)


def endless(n, first):
    """Support sets reach a plateau and nothing else grows with the number of samples."""
    import gc
    import tracemalloc

    rng = np.random.default_rng(0)
    learner = {"eta": 0.3, "record": False}
    model = OMCL(
        [
            ("a", ProjectronPlusPlus(RBF(scale=0.5), **learner), [0, 1]),
            ("b", Projectron(Chi2(scale=0.5), **learner), [2, 3]),
        ],
        record=False,
    )
    sizes, held = [], []

    def learn(samples):
        for _ in range(samples // 100):
            X = rng.random((100, 4))
            y = np.where(
                rng.random(100) < 0.2, rng.integers(0, 3, 100), (X[:, [0, 2]].sum(axis=1) * 1.5).astype(int)
            )
            model.partial_fit(X, y, classes=range(3))

    learn(first)
    tracemalloc.start()
    try:
        learn(first)
        for _ in range(4):
            learn((n - 2 * first) // 4)
            gc.collect()
            held.append(tracemalloc.get_traced_memory()[0])
            sizes.append([len(part.support_) for part in model.learners_])
    finally:
        tracemalloc.stop()
    assert model.n_seen_ >= 0.99 * n and model.n_mistakes_ > 0.1 * n
    assert all(len(part.support_) < 100 for part in model.learners_)
    assert np.abs(np.diff(sizes[1:], axis=0)).max() <= 3  # a plateau
    assert held[-1] - held[0] < 3e5
    assert max(part.inverse_error_ for part in model.learners_) <= 1e-6


# ------------------------------------------------------------------ weights


def test_samples_of_weight_0_are_not_there():
    """But for the record of their predictions; also for learners of scikit-learn, which may count samples."""
    X, y = data(100, n_classes=2)
    weights = np.random.default_rng(1).choice([0.0, 0.5, 1.0, 2.0], len(y))
    kept = weights > 0.0
    mixed = [("bayes", GaussianNB(), [0, 1]), ("linear", SGDClassifier(random_state=0), [2, 3])]
    for model in (
        OMCL(mixed, average=False),
        Vote([*mixed, ("kernel", KernelPerceptron(RBF(gamma=1.0)), [4])]),
        Flat(ProjectronPlusPlus(RBF(gamma=1.0), eta=0.3)),
    ):
        scores = model.fit(X[kept], y[kept], weights[kept]).decision_function(X)
        assert_array_equal(model.fit(X, y, weights).decision_function(X), scores)
        assert model.online_errors_.size == model.n_seen_ == len(y)
        plain = model.fit(X, y).decision_function(X)
        assert_array_equal(model.fit(X, y, np.ones(len(y))).decision_function(X), plain)
        assert np.any(plain != scores)


class NoWeights(SGDClassifier):
    """A learner whose `partial_fit` takes no weights."""

    def partial_fit(self, X, y, classes=None):
        return super().partial_fit(X, y, classes)


def test_learners_without_weights_are_named():
    X, y = data(60)
    weights = np.ones(len(y))
    deaf = NoWeights(random_state=0)
    for model, what in [
        (OMCL([("a", deaf, [0])], average=False), "the learner of 'a'"),
        (Vote([("a", deaf, [0]), ("b", KernelPerceptron(), [1])]), "the learner of 'a'"),
        (OMCL(integrator=deaf, average=False), "the integrator"),
    ]:
        message = f"sample_weight must be None: NoWeights.partial_fit, {what}, takes no weights"
        for call in (model.fit, functools.partial(model.partial_fit, classes=range(3))):
            with pytest.raises(ValueError, match=message):
                call(X, y, sample_weight=weights)
        assert not hasattr(model, "classes_")
        assert model.fit(X, y).n_seen_ == len(y)

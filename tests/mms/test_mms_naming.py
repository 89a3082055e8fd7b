"""EM over candidate labelings: the Gaussian mixture and the distance-based model."""

import warnings

import mms_naming_twins as twins
import numpy as np
import pandas as pd
import pytest
from mms_twins import matching_labelings
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logsumexp, softmax
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from cuelearn.mms import CandidateSet, DistNaming, GMMNaming, Matching
from cuelearn.mms.dist import calibrate

PLAIN = {"n_components_pca": None}
BOTH = [GMMNaming(n_components_pca=None), DistNaming(metric="sqeuclidean")]
both = pytest.mark.parametrize("model", BOTH, ids=["GMM", "DIST"])


def problem(seed, n_labels=(4,), n_bags=12, d=3, **kwargs):
    """Bags with random candidates and clustered rows: bags, a CandidateSet with null 0, X (n, d)."""
    rng = np.random.default_rng(seed)
    bags = twins.random_bags(rng, n_bags, n_labels, **kwargs)
    n = sum(len(bag[0]) for bag in bags)
    X = 2.0 * rng.normal(size=(5, d))[rng.integers(5, size=n)] + rng.normal(size=(n, d))
    return bags, CandidateSet(bags, n_labels=n_labels, null=0), X


def naming_problem(seed, n_bags=150, n_names=8, n_verbs=4, d=10, noise=0.7, stranger=0.15):
    """Captioned pictures: one to three people, words of most and sometimes of another; 0 for a stranger."""
    rng = np.random.default_rng(seed)
    faces, poses = rng.normal(size=(n_names + 1, d)), rng.normal(size=(n_verbs + 1, 6))
    X, bags, truth = [], [], []
    for _ in range(n_bags):
        people = rng.choice(n_names, size=rng.integers(1, 4), replace=False) + 1
        words, people = [], [0 if rng.random() < stranger else int(k) for k in people]
        for name in people:
            verb = int(rng.integers(1, n_verbs + 1)) if name else 0
            face = faces[name] if name else rng.normal(size=d)
            seen = face + noise * rng.normal(size=d), poses[verb] + noise * rng.normal(size=6)
            X.append(np.concatenate(seen))
            truth.append((name, verb))
            if name:
                words.append((name, verb))
        absent = int(rng.integers(1, n_names + 1))
        if absent not in people:
            words.append((absent, int(rng.integers(1, n_verbs + 1))))
        allowed = np.ones((len(people), len(words) + 1), dtype=bool)
        bags.append(matching_labelings(words, allowed, (0, 0)) or [((0, 0),) * len(people)])
    candidates = CandidateSet(bags, n_labels=(n_names + 1, n_verbs + 1), null=0)
    return np.array(X), np.array(truth), candidates


COLUMNS = [slice(0, 10), slice(10, None)]


def share(model, truth):
    return np.mean(np.asarray(model.assignment_).reshape(truth.shape) == truth)


@pytest.mark.parametrize("hard", [False, True])
def test_gmm_is_em_by_loops(hard):
    for seed, n_labels in ((0, (4,)), (1, (3, 4))):
        bags, candidates, X = problem(seed, n_labels, d=4)
        columns = [slice(0, 2), [1, 2, 3]][: len(n_labels)]
        Xs = [X[:, c] for c in columns]
        form = {"assignment": "hard" if hard else "soft", "columns": columns, "max_iter": 4, "tol": 0.0}
        model = GMMNaming(regularization=0.7, **form, **PLAIN).fit(X, candidates)
        means, covariances, shares, log_p, history = twins.gmm_em(
            Xs, bags, n_labels, strength=0.7, n_iter=model.n_iter_, hard=hard
        )
        assert_allclose(model.history_[["log_likelihood", "objective"]], history, rtol=1e-9, atol=1e-8)
        given = [model.responsibilities_] if len(n_labels) == 1 else model.responsibilities_
        for p in range(len(n_labels)):
            assert_allclose(given[p], shares[p], atol=1e-8)
            assert_allclose(model.means_[p], means[p], atol=1e-8)
            assert_allclose(model.covariances_[p], covariances[p][None], atol=1e-8)
        best = twins.best_candidates(bags, None, log_p)
        assert_array_equal(np.reshape(model.assignment_, (len(X), -1)), best)


@pytest.mark.parametrize("hard", [False, True])
def test_dist_is_generalised_em_by_loops(hard):
    cases = [(0, (4,), ("sqeuclidean",), ("spread",)), (1, (3, 4), ("cosine", "sqeuclidean"), (0.1, "mean"))]
    for seed, n_labels, metrics, scales in cases:
        bags, candidates, X = problem(seed, n_labels, d=4)
        columns = [slice(0, 2), [1, 2, 3]][: len(n_labels)]
        Ds = [twins.distances(metric, X[:, c], X[:, c]) for metric, c in zip(metrics, columns, strict=True)]
        form = {"assignment": "hard" if hard else "soft", "columns": columns, "max_iter": 4, "tol": 0.0}
        model = DistNaming(metric=metrics, scale=scales, **form).fit(X, candidates)
        pairs = zip(Ds, scales, strict=True)
        numbers = [twins.scale_by_rule(D, g) if isinstance(g, str) else g for D, g in pairs]
        assert_allclose(model.scale_, numbers, rtol=1e-10)
        W, shares, scores, history, shortened = twins.dist_em(
            Ds, bags, n_labels, scales=numbers, nulls=(0,) * len(n_labels), n_iter=model.n_iter_, hard=hard
        )
        assert shortened > 0  # or the shortening of steps would go unseen
        assert_allclose(model.history_["log_likelihood"], history, rtol=1e-9, atol=1e-8)
        given = [model.responsibilities_] if len(n_labels) == 1 else model.responsibilities_
        for p in range(len(n_labels)):
            assert_allclose(given[p], shares[p], atol=1e-8)
            assert_allclose(model.exemplar_weights_[p].toarray().T, W[p], atol=1e-8)
        best = twins.best_candidates(bags, None, scores)
        assert_array_equal(np.reshape(model.assignment_, (len(X), -1)), best)


def uncalibrated(model):
    model.calibration_[:] = 1.0, 0.0
    return model


def test_dist_scores_new_instances_by_all_exemplars():
    _, candidates, X = problem(3, (4,))
    new = np.random.default_rng(4).normal(size=(7, 3))
    model = uncalibrated(DistNaming(metric="sqeuclidean").fit(X, candidates))
    gamma, W = model.scale_[0], model.exemplar_weights_[0].toarray().T
    here = twins.distances("sqeuclidean", new, X)
    levels = [twins.null_score(row, gamma) for row in here]
    joint = twins.exemplar_scores(here, W, gamma, 0, levels, own=False) + np.log(model.label_weights_)
    assert_allclose(model.decision_function(new), joint - logsumexp(joint, axis=1, keepdims=True), atol=1e-9)


@both
def test_priors_of_candidates(model):
    bags, _, X = problem(5, (4,))
    rng = np.random.default_rng(6)
    weights = [rng.uniform(0.1, 3.0, len(bag)) if i % 3 else None for i, bag in enumerate(bags)]
    impossible = next(i for i, weight in enumerate(weights) if weight is not None and len(weight) > 1)
    weights[impossible][0] = 0.0
    model = clone(model).set_params(max_iter=3, tol=0.0)
    model = model.fit(X, CandidateSet(bags, n_labels=4, null=0, priors=weights))
    options = {"n_iter": model.n_iter_, "hard": False, "weights": weights}
    if isinstance(model, GMMNaming):
        _, _, shares, _, history = twins.gmm_em([X], bags, (4,), strength=1.0, **options)
        history = history[:, 0]
    else:
        D = twins.distances("sqeuclidean", X, X)
        _, shares, _, history, _ = twins.dist_em([D], bags, (4,), scales=model.scale_, nulls=[0], **options)
    assert_allclose(model.history_["log_likelihood"], history, rtol=1e-9)
    assert_allclose(model.responsibilities_, shares[0], atol=1e-8)
    uniform = clone(model).fit(X, CandidateSet(bags, n_labels=4, null=0))
    assert np.abs(uniform.responsibilities_ - model.responsibilities_).max() > 0.01


@pytest.mark.parametrize("assignment", ["soft", "hard"])
@both
def test_a_matching_counts_as_its_list(model, assignment):
    rng = np.random.default_rng(7)
    listed, kept = [], []
    for i in range(14):
        pool = [(a, b) for a in range(1, 6) for b in range(4)]
        words = [pool[j] for j in rng.choice(len(pool), size=rng.integers(1, 5), replace=False)]
        if i % 2:  # null as a name with a verb is a word too
            words.append((0, 2))
        allowed = rng.random((int(rng.integers(1, 4)), len(words) + 1)) < 0.8
        allowed[:, 1] = True
        allowed[1:, 0] = True  # so that something is left for all but one
        listed.append(matching_labelings(words, allowed, (0, 0)))
        kept.append(Matching(np.array(words), allowed) if i % 3 else np.array(listed[-1]))
    n = sum(len(bag[0]) for bag in listed)
    X = rng.normal(size=(n, 5))
    long = CandidateSet(listed, n_labels=(6, 4), null=0)
    short = CandidateSet(kept, n_labels=(6, 4), null=0)
    model = clone(model).set_params(assignment=assignment, columns=[slice(0, 3), slice(2, 5)])
    fits = [clone(model).fit(X, sets) for sets in (long, short)]
    assert_allclose(fits[0].history_["objective"], fits[1].history_["objective"], rtol=1e-10)
    for p in range(2):
        assert_allclose(fits[0].responsibilities_[p], fits[1].responsibilities_[p], atol=1e-9)
    assert_array_equal(fits[0].assignment_, fits[1].assignment_)
    assert_array_equal(fits[0].predict(X, long), fits[0].predict(X, short))


def test_a_matching_of_millions():
    words, people = np.arange(1, 11)[:, None], 9
    big = Matching(words, np.ones((people, 11), dtype=bool))
    big.allowed[:, 0] = False
    rng = np.random.default_rng(8)
    faces = 4.0 * rng.normal(size=(11, 6))
    X, bags, truth = [], [], []
    for _ in range(3):
        who = rng.permutation(10)[:people] + 1
        X.append(faces[who] + 0.3 * rng.normal(size=(people, 6)))
        truth.extend(who)
        bags.append(big)
    for k in range(1, 11):
        X.append(faces[[k]] + 0.3 * rng.normal(size=(1, 6)))
        truth.append(k)
        bags.append([[k]])
    candidates = CandidateSet(bags, null=0)
    assert candidates.n_candidates[0] == 3_628_800
    for model in BOTH:
        model = clone(model).fit(np.vstack(X), candidates)
        assert_allclose(model.responsibilities_.sum(axis=1), 1.0, atol=1e-9)
        assert_array_equal(model.assignment_, truth)


@pytest.mark.parametrize("assignment", ["soft", "hard"])
@pytest.mark.parametrize(
    "model",
    [
        *(GMMNaming(**PLAIN), GMMNaming(regularization=0.05, **PLAIN), GMMNaming(n_components_pca=2)),
        *(DistNaming(metric="sqeuclidean"), DistNaming(scale=0.02), DistNaming(scale="mean")),
    ],
)
def test_the_objective_never_falls(model, assignment):
    risen = 0.0
    for seed in range(8):
        _, candidates, X = problem(seed, (4, 3), n_bags=25, d=4, most=4, n_candidates=8)
        fitted = clone(model).set_params(assignment=assignment, tol=0.0, max_iter=60).fit(X, candidates)
        history = fitted.history_
        assert list(history.columns) == ["iteration", "log_likelihood", "objective", "seconds"]
        rises = np.diff(history["objective"])
        assert np.all(rises >= -1e-9 * np.abs(history["objective"].iloc[:-1]))
        assert np.all(np.diff(history["seconds"]) >= 0.0)
        risen += rises.sum()
    assert risen > 0.1


@both
def test_stopping(model):
    X, _, candidates = naming_problem(0)
    model = clone(model).set_params(columns=COLUMNS)
    full = clone(model).fit(X, candidates)
    assert full.converged_ and full.n_iter_ == len(full.history_) - 1 < 100
    objective = full.history_["objective"].to_numpy()
    parts = np.diff(objective) / np.maximum(1.0, np.abs(objective[1:]))
    assert np.all(parts[:-1] > 1e-6) and parts[-1] <= 1e-6
    short = clone(model).set_params(max_iter=2).fit(X, candidates)
    assert not short.converged_ and short.n_iter_ == 2
    assert_allclose(short.history_["objective"], objective[:3], rtol=1e-12)


@pytest.mark.parametrize("model", [*BOTH, DistNaming(metric="sqeuclidean", assignment="hard")])
def test_labels_have_no_order(model):
    bags, candidates, X = problem(9, (5,), n_bags=25)
    order = np.array([3, 0, 4, 1, 2])  # label k is called order[k]
    other = CandidateSet([order[np.array(bag)] for bag in bags], n_labels=5, null=3)
    a, b = clone(model).fit(X, candidates), clone(model).fit(X, other)
    assert_allclose(b.responsibilities_[:, order], a.responsibilities_, atol=1e-8)
    assert_allclose(b.decision_function(X)[:, order], a.decision_function(X), atol=1e-6)
    assert_array_equal(b.assignment_, order[a.assignment_])
    assert_array_equal(b.predict(X, other), order[a.predict(X, candidates)])


def test_gmm_with_one_candidate_is_discriminant_analysis():
    rng = np.random.default_rng(10)
    y = np.repeat(np.arange(3), [20, 30, 10])
    X = rng.normal(size=(3, 4))[y] + rng.normal(size=(60, 4)) @ rng.normal(size=(4, 4))
    new = X[::3] + 0.1 * rng.normal(size=(20, 4))
    known = CandidateSet.from_labels(y)
    tiny = dict(regularization=1e-10, **PLAIN)
    model = GMMNaming(**tiny).fit(X, known)
    assert model.converged_ and model.n_iter_ == 1
    wanted = LinearDiscriminantAnalysis(solver="lsqr").fit(X, y)
    assert_allclose(model.means_[0] + X.mean(axis=0), wanted.means_, atol=1e-9)
    assert_allclose(model.covariances_[0][0], wanted.covariance_, atol=1e-8)
    assert_allclose(model.decision_function(new), wanted.predict_log_proba(new), atol=1e-6)
    assert_array_equal(model.responsibilities_, np.eye(3)[y])


def test_dist_with_one_candidate_is_a_kernel_density_of_each_label():
    rng = np.random.default_rng(11)
    y = np.repeat([1, 2, 3], [8, 12, 5])
    X, new = rng.normal(size=(25, 4)), rng.normal(size=(6, 4))
    known = CandidateSet.from_labels(y, n_labels=4, null=0)
    model = uncalibrated(DistNaming(metric="sqeuclidean", scale=2.0).fit(X, known))
    D = ((new[:, None] - X) ** 2).sum(axis=2)
    parts = [np.exp(-D[:, y == k] / 2.0).mean(axis=1) * np.mean(y == k) for k in (1, 2, 3)]
    density = np.stack(parts, axis=1)
    found = model.decision_function(new)
    assert_allclose(found[:, 1:], np.log(density / density.sum(axis=1, keepdims=True)), atol=1e-9)
    assert np.all(found[:, 0] == -np.inf)  # nobody is null
    assert_array_equal(model.predict(new), 1 + density.argmax(axis=1))


@both
def test_verbs_help_names(model):
    """Two people, always together, do what tells them apart: the faces alone cannot say who is who."""
    rng = np.random.default_rng(12)
    X, truth, bags = [], [], []
    for _ in range(60):
        pair, verbs = rng.permutation([1, 2]), rng.permutation([1, 2])
        for name, verb in zip(pair, verbs, strict=True):
            face, pose = np.zeros(4), np.zeros(4)
            face[name], pose[verb] = 2.0, 4.0
            X.append(np.concatenate([face, pose]) + 0.5 * rng.normal(size=8))
            truth.append((name, verb))
        told = dict(zip(pair, verbs, strict=True))
        words = [(int(k), int(told[k])) for k in (1, 2)]
        bags.append([words, words[::-1]])
    for verb in (1, 2):  # a picture of one person, by which verbs have a name
        pose = np.zeros(4)
        pose[verb] = 4.0
        X.append(np.concatenate([rng.normal(size=4), pose]))
        truth.append((0, verb))
        bags.append([[(0, verb)]])
    X, truth, candidates = np.array(X), np.array(truth), CandidateSet(bags, n_labels=(3, 3), null=0)
    model = clone(model)
    joint = clone(model).set_params(columns=[slice(0, 4), slice(4, 8)]).fit(X, candidates)
    names_only = clone(model).set_params(columns=slice(0, 4)).fit(X, candidates.attribute(0))
    assert np.mean(joint.assignment_ == truth) > 0.95
    assert np.mean(names_only.assignment_ == truth[:, 0]) < 0.8  # either way round is as good


def test_calibration_fits_the_responsibilities():
    rng = np.random.default_rng(13)
    scores, prior = rng.normal(size=(300, 4)), np.log([0.4, 0.3, 0.2, 0.1])
    shown = softmax(2.5 * scores + prior + 1.2 * np.eye(4)[0], axis=1)
    assert_allclose(calibrate(scores, shown, prior, 0), (2.5, 1.2), atol=1e-3)
    slope, offset = calibrate(scores, softmax(2.5 * scores + prior, axis=1), prior, None)
    assert slope == pytest.approx(2.5, abs=1e-3) and offset == 0.0
    unseen = np.append(prior, -np.inf)
    wide = calibrate(np.hstack([scores, scores[:, :1]]), np.hstack([shown, np.zeros((300, 1))]), unseen, 0)
    assert_allclose(wide, (2.5, 1.2), atol=1e-3)
    _, few, Y = problem(3, (4,))
    # every training instance is left out of its own labels' exemplars
    model = DistNaming(metric="sqeuclidean").fit(Y, few)
    D, gamma = twins.distances("sqeuclidean", Y, Y), model.scale_[0]
    levels = twins.null_scores(D, gamma)
    table = twins.exemplar_scores(D, model.exemplar_weights_[0].toarray().T, gamma, 0, levels)
    wanted = calibrate(table, model.responsibilities_, np.log(model.label_weights_), 0)
    assert_allclose(model.calibration_[0], wanted, rtol=1e-6)
    X, truth, candidates = naming_problem(5, n_bags=300)
    here, there = candidates.rows(range(200)), candidates.rows(range(200, 300))
    model = DistNaming(columns=COLUMNS).fit(X[here], candidates.take(np.arange(200)))
    assert np.all(model.calibration_[:, 0] > 1.0)
    right = np.mean(model.predict(X[there]) == truth[there])
    after = np.sum(np.exp(model.decision_function(X[there])[0]), axis=1)
    assert_allclose(after, 1.0)
    assert right > np.mean(uncalibrated(model).predict(X[there]) == truth[there]) + 0.01


@both
def test_arrays_and_columns(model):
    X, _, candidates = naming_problem(6, n_bags=40)
    model = clone(model)
    wanted = clone(model).set_params(columns=COLUMNS).fit(X, candidates)
    numbers, masks = [np.arange(10), list(range(10, 16))], [np.arange(16) < 10, np.arange(16) >= 10]
    forms = [(None, [X[:, :10], X[:, 10:]]), (numbers, X), (masks, X)]
    for columns, given in [*forms, (COLUMNS, X.tolist()), (COLUMNS, pd.DataFrame(X))]:
        other = clone(model).set_params(columns=columns).fit(given, candidates)
        assert_allclose(other.history_["objective"], wanted.history_["objective"], rtol=1e-10)
        for a, b in zip(other.decision_function(given), wanted.decision_function(X), strict=True):
            assert_allclose(a, b, atol=1e-6)
    single = candidates.attribute(1)
    a = clone(model).set_params(columns=[slice(10, 16)]).fit(X, single)
    b = clone(model).fit(X[:, 10:], single)
    assert_array_equal(a.responsibilities_, b.responsibilities_)
    whole = clone(model).fit(X, candidates)  # both attributes from all columns
    assert whole.n_features_ == (16, 16)
    low = clone(model).set_params(columns=COLUMNS).fit(X.astype(np.float32), candidates)
    assert low.responsibilities_[0].dtype == np.float64
    starts = [m.history_["log_likelihood"].iloc[0] for m in (low, wanted)]
    assert_allclose(*starts, rtol=1e-4)


def test_given_distances():
    X, _, candidates = naming_problem(7, n_bags=50)
    half = candidates.take(np.arange(30))
    n = half.n_instances
    pairs = zip(("cosine", "sqeuclidean"), COLUMNS, strict=True)
    Ds = [twins.distances(metric, X[:, c], X[:n, c]) for metric, c in pairs]
    wanted = DistNaming(metric=("cosine", "sqeuclidean"), columns=COLUMNS).fit(X[:n], half)
    given = DistNaming(metric="precomputed").fit([D[:n] for D in Ds], half)
    mixed = DistNaming(metric=("precomputed", "sqeuclidean")).fit([Ds[0][:n], X[:n, COLUMNS[1]]], half)
    rest = candidates.take(np.arange(30, 50))
    for model, parts in ((given, [D[n:] for D in Ds]), (mixed, [Ds[0][n:], X[n:, COLUMNS[1]]])):
        assert_allclose(model.history_["log_likelihood"], wanted.history_["log_likelihood"], rtol=1e-8)
        assert_allclose(model.calibration_, wanted.calibration_, rtol=1e-3, atol=1e-3)
        for a, b in zip(model.decision_function(parts), wanted.decision_function(X[n:]), strict=True):
            assert_allclose(a, b, atol=0.02)
        assert_array_equal(model.predict(parts, rest), wanted.predict(X[n:], rest))
    alone = DistNaming(metric="precomputed").fit(Ds[0][:n], half.attribute(0))
    assert alone.predict(Ds[0][n:]).shape == (len(X) - n,)


def test_little_memory_changes_nothing():
    X, _, candidates = naming_problem(8, n_bags=40)
    a, b = (DistNaming(columns=COLUMNS, memory=m).fit(X, candidates) for m in (2e9, 1.0))
    pd.testing.assert_frame_equal(a.history_.drop(columns="seconds"), b.history_.drop(columns="seconds"))
    for p in range(2):
        assert_array_equal(a.decision_function(X)[p], b.decision_function(X)[p])


def test_many_instances_are_thinned_for_the_rules(monkeypatch):
    X, _, candidates = naming_problem(9, n_bags=40)
    full = DistNaming(columns=COLUMNS).fit(X, candidates)
    monkeypatch.setattr("cuelearn.mms.dist.SCALE_SAMPLES", 50)
    monkeypatch.setattr("cuelearn.mms.dist.CALIBRATION_SAMPLES", 50)
    monkeypatch.setattr("cuelearn.mms.dist.BLOCK", 500)
    rows = np.linspace(0, len(X) - 1, 50).astype(int)
    thin = DistNaming(columns=COLUMNS).fit(X, candidates)
    D = twins.distances("cosine", X[rows, :10], X[rows, :10])
    assert thin.scale_[0] == pytest.approx(twins.scale_by_rule(D, "spread"), rel=1e-10)
    assert thin.scale_[0] != full.scale_[0] and np.all(thin.calibration_ != full.calibration_)
    monkeypatch.setattr("cuelearn.mms.dist.SCALE_SAMPLES", 10**6)
    blocks = uncalibrated(DistNaming(columns=COLUMNS).fit(X, candidates))
    assert_allclose(blocks.history_["objective"], full.history_["objective"], rtol=1e-10)
    monkeypatch.undo()
    assert_array_equal(blocks.predict(X, candidates), uncalibrated(full).predict(X, candidates))


def test_projection_on_principal_components():
    X, _, candidates = naming_problem(10, n_bags=60)
    single = candidates.attribute(0)
    for number, kept in ((3, 3), (0.8, PCA(0.8, svd_solver="full").fit(X).n_components_)):
        a = GMMNaming(n_components_pca=number).fit(X, single)
        projected = PCA(kept, svd_solver="full").fit(X).transform(X)
        b = GMMNaming(**PLAIN).fit(projected, single)
        assert a.means_[0].shape == (9, kept)
        assert_allclose(a.history_["objective"], b.history_["objective"], rtol=1e-8)
        assert_allclose(a.decision_function(X), b.decision_function(projected), atol=1e-6)
    both = GMMNaming(n_components_pca=[2, None], columns=COLUMNS).fit(X, candidates)
    assert [m.shape[1] for m in both.means_] == [2, 6]


@both
def test_predictions_are_names_and_best_candidates(model):
    bags, _, X = problem(14, (4, 3), n_bags=20)
    rng = np.random.default_rng(15)
    classes = [["null", "Ann", "Bob", "Cleo"], ["null", "wave", "sit"]]
    candidates = CandidateSet(bags, classes=classes, null=0)
    model = clone(model).fit(X, candidates)
    model.label_weights_ = [(w > 0.0) / np.count_nonzero(w) for w in model.label_weights_]
    if isinstance(model, DistNaming):
        uncalibrated(model)
    assert [c.tolist() for c in model.classes_] == classes
    new = rng.normal(size=(len(X), 3))
    values = model.decision_function(new)
    assert [v.shape for v in values] == [(len(X), 4), (len(X), 3)]
    for value in values:
        assert_allclose(np.exp(value).sum(axis=1), 1.0)
    found = model.predict(new)
    assert found.shape == (len(X), 2) and set(found[:, 0]) <= set(classes[0])
    assert set(found[:, 1]) <= set(classes[1])
    assert_array_equal(found[:, 1], np.array(classes[1])[values[1].argmax(axis=1)])
    # with equal priors a candidate's score is the sum of its labels' log-probabilities, but for a constant
    best = twins.best_candidates(bags, None, values)
    assert_array_equal(model.predict(new, candidates), candidates.named(best))
    one = clone(model).fit(X, candidates.attribute(0))
    assert one.classes_.tolist() == classes[0] and one.decision_function(new).shape == (len(X), 4)
    assert one.predict(new).shape == (len(X),)
    assert one.predict(new, candidates.attribute(0)).shape == (len(X),)


@both
def test_training_instances_by_the_mixture(model):
    """`assignment_` is the best candidate; for Gaussians `predict` with the candidates says the same."""
    _, candidates, X = problem(16, (4,), n_bags=30)
    model = clone(model).fit(X, candidates)
    weights = model.responsibilities_.mean(axis=0)
    assert_allclose(model.label_weights_, weights)
    for i in range(30):
        assert candidates.contains(i, model.assignment_[candidates.rows([i])])
    if isinstance(model, GMMNaming):
        assert_array_equal(model.predict(X, candidates), model.assignment_)


@pytest.mark.parametrize(
    "model", [*BOTH, GMMNaming(assignment="hard"), DistNaming(assignment="hard"), DistNaming(scale=1e-6)]
)
def test_labels_that_nobody_takes(model):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _, _, X = problem(17, (4,), n_bags=15)
        bags = twins.random_bags(np.random.default_rng(17), 15, (4,))
        candidates = CandidateSet(bags, n_labels=6, null=0)  # no candidate has 4 and 5
        fitted = clone(model).fit(X, candidates)
        values = fitted.decision_function(X)
        assert np.all(values[:, 4:] == -np.inf)
        assert np.all(np.isfinite(values[:, fitted.label_weights_ > 0.0]))
        assert set(fitted.predict(X)) <= {0, 1, 2, 3}
        new = CandidateSet([[[5], [4]], [[4]], [[1], [5]]], n_labels=6, null=0)
        # nothing speaks for either: the first
        assert fitted.predict(X[:3], new)[0] == 5 and fitted.predict(X[:3], new)[1] == 4
        # all rows alike, then a column of zeros, then one instance
        same = clone(model).fit(np.ones_like(X), candidates)
        assert np.all(np.isfinite(same.history_["objective"]))
        blank = clone(model).fit(np.hstack([X, np.zeros_like(X)]), candidates)
        assert np.all(np.isfinite(blank.history_["objective"]))
        zero = clone(model).fit(np.vstack([0.0 * X[:1], X[1:]]), candidates)
        assert np.all(np.isfinite(zero.responsibilities_))
        lonely = clone(model).fit(X[:1], CandidateSet([[[1], [2]]], null=0))
        assert_allclose(lonely.responsibilities_[0, 1:].sum(), 1.0)
        far = fitted.decision_function(1e3 * (X + 1.0))
        assert_allclose(np.exp(far).sum(axis=1), 1.0)


def test_without_null():
    bags, _, X = problem(18, (4,), n_bags=15)
    candidates = CandidateSet(bags, n_labels=4)
    model = DistNaming(metric="sqeuclidean", max_iter=3, tol=0.0).fit(X, candidates)
    D, options = twins.distances("sqeuclidean", X, X), {"n_iter": model.n_iter_, "hard": False}
    _, shares, _, history, _ = twins.dist_em([D], bags, (4,), scales=model.scale_, nulls=[None], **options)
    assert_allclose(model.responsibilities_, shares[0], atol=1e-8)
    assert_allclose(model.history_["objective"], history, rtol=1e-9)
    assert model.calibration_[0, 1] == 0.0
    # for Gaussians null is a label like any other
    a, b = GMMNaming(**PLAIN).fit(X, candidates), GMMNaming(**PLAIN).fit(X, problem(18, (4,), n_bags=15)[1])
    assert_array_equal(a.responsibilities_, b.responsibilities_)


@both
@pytest.mark.parametrize(
    "error, words, change",
    [
        (ValueError, "Input X contains infinity", {"X": np.full((26, 3), np.inf)}),
        (ValueError, "Expected 2D array, got 1D array", {"X": np.zeros(26)}),
        (ValueError, "inhomogeneous shape", {"X": [[1.0], [1.0, 2.0]]}),
        (ValueError, r"X\[1\] must have one row", {"X": [np.zeros((26, 2)), np.zeros((2, 2))]}),
        (ValueError, "X must be one array or a list of 2, one for each", {"X": [np.zeros((26, 2))]}),
        (ValueError, "columns must choose from the 3 columns", {"columns": slice(5, 9)}),
        (ValueError, "columns must choose from the 3 columns", {"columns": [slice(0, 2), [7]]}),
        (ValueError, "columns must be given once or once for each of", {"columns": [slice(0, 2)] * 3}),
    ],
)
def test_errors_of_both(model, error, words, change):
    candidates = CandidateSet([[[[0, 1]] * 2, [[1, 0]] * 2]] * 13, null=0)
    X = change.get("X", np.random.default_rng(0).normal(size=(26, 3)))
    parameters = {k: v for k, v in change.items() if k != "X"}
    with pytest.raises(error, match=words):
        clone(model).set_params(**parameters).fit(X, candidates)


@pytest.mark.parametrize(
    "model, words",
    [
        (GMMNaming(n_components_pca=9), r"n_components_pca must be at most 3 for an attribute of shape"),
        (GMMNaming(n_components_pca=1.5), "'n_components_pca' parameter of GMMNaming must be .* Got 1.5"),
        (GMMNaming(n_components_pca=[1, 2]), "n_components_pca must be given once or once for each of the 1"),
        (DistNaming(metric="chi2"), "'metric' parameter of DistNaming must be a str among .* Got 'chi2'"),
        (DistNaming(metric=["cosine"] * 2), "metric must be given once or once for each of the 1 attributes"),
        (DistNaming(metric="precomputed"), r"X must be the square matrix of distances .* for attribute 0"),
        (DistNaming(metric="precomputed", columns=slice(0, 2)), "columns must be None where a metric is"),
        (DistNaming(scale="median"), "'scale' parameter of DistNaming must be .*'spread'.* Got 'median'"),
        (DistNaming(scale=0.0), "'scale' parameter of DistNaming must be a float .* Got 0.0"),
        (DistNaming(scale=None), "'scale' parameter of DistNaming must be a float .* Got None"),
    ],
)
def test_errors_of_one(model, words):
    candidates = CandidateSet([[[0, 1], [1, 0]]] * 13, null=0)
    X = np.abs(np.random.default_rng(0).normal(size=(26, 3)))
    with pytest.raises(ValueError, match=words):
        model.fit(X, candidates)


def test_errors_of_given_distances():
    candidates = CandidateSet([[[0, 1], [1, 0]]] * 13, null=0)
    D = np.full((26, 26), -1e-9)  # rounding
    model = DistNaming(metric="precomputed")
    with pytest.raises(ValueError, match="X must hold distances >= 0"):
        model.fit(D - 1.0, candidates)
    with pytest.raises(ValueError, match="X must have 26 columns"):
        model.fit(D, candidates).predict(np.zeros((26, 3)))

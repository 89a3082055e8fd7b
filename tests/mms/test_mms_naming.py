"""EM over candidate labelings: the Gaussian mixture and the distance-based model, against plain twins.

In the twins a bag's candidates are a list of labelings, ``labeling[m][p]``; `weights` a list of their priors
or None.
"""

import math
import warnings

import numpy as np
import pandas as pd
import pytest
from mms_twins import matching_labelings
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist
from scipy.special import logsumexp, softmax
from scipy.stats import multivariate_normal
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from cuelearn.mms import CandidateSet, DistNaming, GMMNaming, Matching
from cuelearn.mms.naming import calibrate


def random_bags(rng, n_bags, n_labels, most=3, n_candidates=5):
    """Bags of 1 to `most` instances with 1 to `n_candidates` distinct labelings."""
    bags = []
    for _ in range(n_bags):
        size = int(rng.integers(1, most + 1))
        number = int(rng.integers(1, n_candidates + 1))
        found = {
            tuple(tuple(int(rng.integers(k)) for k in n_labels) for _ in range(size)) for _ in range(number)
        }
        bags.append(sorted(found))
    return bags


def expectation(bags, weights, log_p, hard):
    """Responsibilities, one (n, K) per attribute, and the log-likelihood; `log_p[p][i][k]`."""
    shares = [np.zeros(np.shape(table)) for table in log_p]
    total, first = 0.0, 0
    for b, bag in enumerate(bags):
        prior = [1.0] * len(bag) if weights is None or weights[b] is None else list(weights[b])
        values = []
        for labeling, weight in zip(bag, prior, strict=True):
            value = math.log(weight / sum(prior)) if weight > 0.0 else -math.inf
            for m, labels in enumerate(labeling):
                for p, k in enumerate(labels):
                    value += log_p[p][first + m][k]
            values.append(value)
        top = max(values)
        if hard:
            posterior = [1.0 if c == values.index(top) else 0.0 for c in range(len(bag))]
            total += top
        else:
            posterior = [math.exp(value - top) for value in values]
            total += top + math.log(sum(posterior))
            posterior = [value / sum(posterior) for value in posterior]
        for labeling, share in zip(bag, posterior, strict=True):
            for m, labels in enumerate(labeling):
                for p, k in enumerate(labels):
                    shares[p][first + m][k] += share
        first += len(bag[0])
    return shares, total


def best_candidates(bags, weights, log_p):
    shares, _ = expectation(bags, weights, log_p, hard=True)
    return np.stack([share.argmax(axis=1) for share in shares], axis=1)


def nothing_known(n, n_labels):
    return [np.zeros((n, K)) for K in n_labels]


def spread_of(X):
    variance = X.var(axis=0)
    typical = variance.mean()
    return np.maximum(variance, 1e-6 * typical) if typical > 0.0 else np.ones(X.shape[1])


def gaussians(X, R, means, strength):
    """New means (n_labels, d) and the covariance matrix (d, d)."""
    means = means.copy()
    scatter = strength * np.diag(spread_of(X))
    for k, shares in enumerate(R.T):
        if shares.sum() > 1e-12:
            means[k] = np.average(X, axis=0, weights=shares)
        differences = X - means[k]
        scatter = scatter + differences.T @ (shares[:, None] * differences)
    return means, scatter / (strength + R.sum())


def log_densities(X, means, covariance):
    return np.stack([multivariate_normal.logpdf(X, mean, covariance) for mean in means], axis=1)


def log_prior(X, covariance, strength):
    """Of the covariance, up to a constant."""
    inverse, (_, log_det) = np.linalg.inv(covariance), np.linalg.slogdet(covariance)
    return -0.5 * strength * (log_det + np.trace(inverse @ np.diag(spread_of(X))))


def gmm_em(Xs, bags, n_labels, *, strength, n_iter, hard, weights=None):
    """EM from all candidates: means, covariances, responsibilities, log-densities, both objectives."""
    Xs = [X - X.mean(axis=0) for X in Xs]
    shares, _ = expectation(bags, weights, nothing_known(len(Xs[0]), n_labels), hard=False)
    means = [np.zeros((K, X.shape[1])) for K, X in zip(n_labels, Xs, strict=True)]
    covariances = [None] * len(Xs)
    history = []
    for _ in range(n_iter + 1):
        for p, X in enumerate(Xs):
            means[p], covariances[p] = gaussians(X, shares[p], means[p], strength)
        log_p = [log_densities(X, m, c) for X, m, c in zip(Xs, means, covariances, strict=True)]
        shares, likelihood = expectation(bags, weights, log_p, hard)
        prior = sum(log_prior(X, c, strength) for X, c in zip(Xs, covariances, strict=True))
        history.append((likelihood, likelihood + prior))
    return means, covariances, shares, log_p, np.array(history)


def others(D):
    """Distances of training instances, each to all but itself."""
    return D[~np.eye(len(D), dtype=bool)].reshape(len(D), -1)


def scale_by_rule(D, rule):
    return others(D).mean() if rule == "mean" else 0.5 * others(D).std()


def null_scores(D, scale):
    """log of what distances to training instances say of null, for every row of D."""
    return logsumexp(-D / scale, axis=1) - np.log(D.shape[1])


def label_score(row, weights, scale, null, own=None):
    """log p(x | label) - log p(x | null) from the distances of x to exemplars; at place `own`, x itself, it
    is as near as null."""
    near = np.exp(-row / scale - null)
    if own is not None:
        near[own] = 1.0
    return math.log(max(weights @ near, 1e-300))


def exemplar_scores(D, W, scale, null, levels, own=True):
    out = np.zeros((len(D), W.shape[1]))
    for i in range(len(D)):
        for k in range(W.shape[1]):
            if k != null and W[:, k].sum() > 0.0:
                out[i, k] = label_score(D[i], W[:, k], scale, levels[i], i if own else None)
    return out


def dist_em(Ds, bags, n_labels, *, scales, nulls, n_iter, hard, weights=None):
    """Generalised EM; returns weights (n, K), responsibilities, scores, log-likelihoods, shortened steps."""
    n, P = len(Ds[0]), len(Ds)
    levels = [null_scores(others(D), scale) for D, scale in zip(Ds, scales, strict=True)]
    shares, _ = expectation(bags, weights, nothing_known(n, n_labels), hard=False)
    W = [np.zeros((n, K)) for K in n_labels]
    history, shortened = [], 0
    for _iteration in range(n_iter + 1):
        for p in range(P):
            for k in range(n_labels[p]):
                mine = shares[p][:, k]
                if k == nulls[p] or mine.sum() <= 1e-12:
                    continue
                goal = mine / mine.sum()
                if W[p][:, k].sum() > 0.0:

                    def expected(w, p=p, mine=mine):
                        total = 0.0
                        for i in np.flatnonzero(mine):
                            total += mine[i] * label_score(Ds[p][i], w, scales[p], levels[p][i], i)
                        return total

                    before = expected(W[p][:, k])
                    for halving in range(8):
                        step = 0.5**halving
                        mixed = (1.0 - step) * W[p][:, k] + step * goal
                        if expected(mixed) >= before - 1e-12 * abs(before):
                            W[p][:, k] = mixed
                            break
                    shortened += halving > 0
                else:
                    W[p][:, k] = goal
        scores = [exemplar_scores(Ds[p], W[p], scales[p], nulls[p], levels[p]) for p in range(P)]
        shares, likelihood = expectation(bags, weights, scores, hard)
        history.append(likelihood)
    return W, shares, scores, np.array(history), shortened


PLAIN = {"n_components_pca": None}
BOTH = [GMMNaming(n_components_pca=None), DistNaming(metric="sqeuclidean")]
both = pytest.mark.parametrize("model", BOTH, ids=["GMM", "DIST"])


def problem(seed, n_labels=(4,), n_bags=12, d=3, **kwargs):
    """Bags with random candidates and clustered rows: bags, a CandidateSet with null 0, X (n, d)."""
    rng = np.random.default_rng(seed)
    bags = random_bags(rng, n_bags, n_labels, **kwargs)
    n = sum(len(bag[0]) for bag in bags)
    X = 2.0 * rng.normal(size=(5, d))[rng.integers(5, size=n)] + rng.normal(size=(n, d))
    return bags, CandidateSet(bags, n_labels=n_labels, null=0), X


COLUMNS = [slice(0, 3), slice(3, 6)]


def priors_of(bags):
    """Weights of the candidates of some bags, one of which is impossible."""
    rng = np.random.default_rng(6)
    weights = [rng.uniform(0.1, 3.0, len(bag)) if i % 3 else None for i, bag in enumerate(bags)]
    impossible = next(i for i, weight in enumerate(weights) if weight is not None and len(weight) > 1)
    weights[impossible][0] = 0.0
    return weights


def check_responsibilities(model, shares, best):
    given = [model.responsibilities_] if len(shares) == 1 else model.responsibilities_
    for found, wanted in zip(given, shares, strict=True):
        assert_allclose(found, wanted, atol=1e-8)
    assert_array_equal(np.reshape(model.assignment_, best.shape), best)


@pytest.mark.parametrize("hard", [False, True])
def test_gmm_is_em_by_loops(hard):
    for seed, n_labels in ((0, (4,)), (1, (3, 4))):
        bags, candidates, X = problem(seed, n_labels, d=4)
        weights = None
        if seed == 1:
            weights = priors_of(bags)
            candidates = CandidateSet(bags, n_labels=n_labels, null=0, priors=weights)
        columns = [slice(0, 2), [1, 2, 3]][: len(n_labels)]
        Xs = [X[:, c] for c in columns]
        form = {"assignment": "hard" if hard else "soft", "columns": columns, "max_iter": 4, "tol": 0.0}
        model = GMMNaming(regularization=0.7, **form, **PLAIN).fit(X, candidates)
        options = {"n_iter": model.n_iter_, "hard": hard, "weights": weights}
        means, covariances, shares, log_p, history = gmm_em(Xs, bags, n_labels, strength=0.7, **options)
        assert_allclose(model.history_[["log_likelihood", "objective"]], history, rtol=1e-9, atol=1e-8)
        for p in range(len(n_labels)):
            assert_allclose(model.means_[p], means[p], atol=1e-8)
            assert_allclose(model.covariances_[p], covariances[p][None], atol=1e-8)
        check_responsibilities(model, shares, best_candidates(bags, weights, log_p))


@pytest.mark.parametrize("hard", [False, True])
@pytest.mark.parametrize(
    "seed, n_labels, metrics, scales, null, weighted",
    [
        (0, (4,), ["sqeuclidean"], ["spread"], 0, False),
        (1, (3, 4), ["cosine", "sqeuclidean"], [0.1, "mean"], 0, True),
        (18, (4,), ["sqeuclidean"], ["spread"], None, False),
    ],
)
def test_dist_is_generalised_em_by_loops(seed, n_labels, metrics, scales, null, weighted, hard):
    bags, _, X = problem(seed, n_labels, d=4)
    weights = priors_of(bags) if weighted else None
    candidates = CandidateSet(bags, n_labels=n_labels, null=null, priors=weights)
    columns = [slice(0, 2), [1, 2, 3]][: len(n_labels)]
    Ds = [cdist(X[:, c], X[:, c], metric) for metric, c in zip(metrics, columns, strict=True)]
    form = {"assignment": "hard" if hard else "soft", "columns": columns, "max_iter": 4, "tol": 0.0}
    model = DistNaming(metric=tuple(metrics), scale=tuple(scales), **form).fit(X, candidates)
    pairs = zip(Ds, scales, strict=True)
    numbers = [scale_by_rule(D, g) if isinstance(g, str) else g for D, g in pairs]
    assert_allclose(model.scale_, numbers, rtol=1e-10)
    options = {"n_iter": model.n_iter_, "hard": hard, "weights": weights}
    W, shares, scores, history, shortened = dist_em(
        Ds, bags, n_labels, scales=numbers, nulls=[null] * len(n_labels), **options
    )
    assert shortened > 0  # or the shortening of steps would go unseen
    assert_allclose(model.history_["log_likelihood"], history, rtol=1e-9, atol=1e-8)
    for found, wanted in zip(model.exemplar_weights_, W, strict=True):
        assert_allclose(found.toarray().T, wanted, atol=1e-8)
    check_responsibilities(model, shares, best_candidates(bags, weights, scores))
    assert null is not None or model.calibration_[0, 1] == 0.0


def uncalibrated(model):
    model.calibration_[:] = 1.0, 0.0
    return model


def test_dist_scores_new_instances_by_all_exemplars():
    _, candidates, X = problem(3, (4,))
    new = np.random.default_rng(4).normal(size=(7, 3))
    model = uncalibrated(DistNaming(metric="sqeuclidean").fit(X, candidates))
    gamma, W = model.scale_[0], model.exemplar_weights_[0].toarray().T
    here = cdist(new, X, "sqeuclidean")
    levels = null_scores(here, gamma)
    joint = exemplar_scores(here, W, gamma, 0, levels, own=False) + np.log(model.label_weights_)
    assert_allclose(model.decision_function(new), joint - logsumexp(joint, axis=1, keepdims=True), atol=1e-9)


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


def test_calibration_fits_the_responsibilities():
    rng = np.random.default_rng(13)
    scores, prior = rng.normal(size=(300, 4)), np.log([0.4, 0.3, 0.2, 0.1])
    shown = softmax(2.5 * scores + prior + 1.2 * np.eye(4)[0], axis=1)
    assert_allclose(calibrate(scores, shown, prior, 0), (2.5, 1.2), atol=1e-3)
    slope, offset = calibrate(scores, softmax(2.5 * scores + prior, axis=1), prior, None)
    assert slope == pytest.approx(2.5, abs=1e-3) and offset == 0.0
    _, few, Y = problem(3, (4,))
    # every training instance is left out of its own labels' exemplars
    model = DistNaming(metric="sqeuclidean").fit(Y, few)
    D, gamma = cdist(Y, Y, "sqeuclidean"), model.scale_[0]
    levels = null_scores(others(D), gamma)
    table = exemplar_scores(D, model.exemplar_weights_[0].toarray().T, gamma, 0, levels)
    wanted = calibrate(table, model.responsibilities_, np.log(model.label_weights_), 0)
    assert_allclose(model.calibration_[0], wanted, rtol=1e-6)


@both
def test_columns_in_either_form_and_float32(model):
    _, candidates, X = problem(6, (5, 4), n_bags=20, d=6)
    wanted = clone(model).set_params(columns=COLUMNS).fit(X, candidates)
    other = clone(model).set_params(columns=[np.arange(6) < 3, [3, 4, 5]]).fit(pd.DataFrame(X), candidates)
    assert_allclose(other.history_["objective"], wanted.history_["objective"], rtol=1e-10)
    low = clone(model).set_params(columns=COLUMNS).fit(X.astype(np.float32), candidates)
    starts = [m.history_["log_likelihood"].iloc[0] for m in (low, wanted)]
    assert_allclose(*starts, rtol=1e-4)


def test_little_memory_and_small_blocks(monkeypatch):
    _, candidates, X = problem(7, (5, 4), n_bags=50, d=6)
    options = {"metric": ("cosine", "sqeuclidean"), "columns": COLUMNS}
    wanted = DistNaming(**options).fit(X, candidates)
    monkeypatch.setattr("cuelearn.mms.naming.BLOCK", 500)
    anew = DistNaming(memory=1.0, **options).fit(X, candidates)
    assert_allclose(anew.history_["objective"], wanted.history_["objective"], rtol=1e-10)


def test_projection_on_principal_components():
    _, candidates, X = problem(10, (5, 4), n_bags=60, d=6)
    single = candidates.attribute(0)
    for number, kept in ((3, 3), (0.8, PCA(0.8, svd_solver="full").fit(X).n_components_)):
        a = GMMNaming(n_components_pca=number).fit(X, single)
        projected = PCA(kept, svd_solver="full").fit(X).transform(X)
        b = GMMNaming(**PLAIN).fit(projected, single)
        assert a.means_[0].shape == (5, kept)
        assert_allclose(a.history_["objective"], b.history_["objective"], rtol=1e-8)
        assert_allclose(a.decision_function(X), b.decision_function(projected), atol=1e-6)


@both
def test_predictions_are_names_and_best_candidates(model):
    bags, _, X = problem(14, (4, 3), n_bags=20)
    classes = [["null", "Ann", "Bob", "Cleo"], ["null", "wave", "sit"]]
    candidates = CandidateSet(bags, classes=classes, null=0)
    model = clone(model).fit(X, candidates)
    # with equal priors a candidate's score is the sum of its labels' log-probabilities, but for a constant
    model.label_weights_ = [(w > 0.0) / np.count_nonzero(w) for w in model.label_weights_]
    if isinstance(model, DistNaming):
        uncalibrated(model)
    new = np.random.default_rng(15).normal(size=(len(X), 3))
    values = model.decision_function(new)
    for value in values:
        assert_allclose(np.exp(value).sum(axis=1), 1.0)
    assert_array_equal(model.predict(new)[:, 1], np.array(classes[1])[values[1].argmax(axis=1)])
    best = best_candidates(bags, None, values)
    assert_array_equal(model.predict(new, candidates), candidates.named(best))


@pytest.mark.parametrize("model", [*BOTH, DistNaming(assignment="hard"), DistNaming(scale=1e-6)])
def test_labels_that_nobody_takes_and_degenerate_data(model):
    bags, _, X = problem(17, (4,), n_bags=15)
    candidates = CandidateSet(bags, n_labels=6, null=0)  # no candidate has 4 and 5
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted = clone(model).fit(X, candidates)
        assert np.all(fitted.decision_function(X)[:, 4:] == -np.inf)
        assert set(fitted.predict(X)) <= {0, 1, 2, 3}
        # all rows alike, a column of zeros, a row of zeros, one instance
        for rows in (np.ones_like(X), np.hstack([X, np.zeros_like(X)]), np.vstack([0.0 * X[:1], X[1:]])):
            assert np.all(np.isfinite(clone(model).fit(rows, candidates).responsibilities_))
        lonely = clone(model).fit(X[:1], CandidateSet([[[1], [2]]], null=0))
        assert_allclose(lonely.responsibilities_[0, 1:].sum(), 1.0)
        far = fitted.decision_function(1e3 * (X + 1.0))
        assert_allclose(np.exp(far).sum(axis=1), 1.0)


X_26 = np.abs(np.random.default_rng(0).normal(size=(26, 3)))


@pytest.mark.parametrize(
    "model, X, message",
    [
        (GMMNaming(columns=slice(5, 9)), X_26, "columns must choose from the 3 columns"),
        (DistNaming(columns=[0, 7]), X_26, "columns must choose from the 3 columns"),
        (DistNaming(columns=[slice(0, 2)] * 3), X_26, "columns must be a list of 1 values, one for each"),
        (GMMNaming(n_components_pca=9), X_26, "n_components_pca must be an integer from 1 to 3, got 9"),
    ],
)
def test_errors(model, X, message):
    with pytest.raises(ValueError, match=message):
        model.fit(X, CandidateSet([[[0, 1], [1, 0]]] * 13, null=0))

"""The rivals of MMS and the SVM solver below them, against slow and plain versions and a conic solver."""

import cvxpy as cp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from plain_mkl import minimum
from scipy.spatial.distance import cdist, directed_hausdorff
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from cuelearn.core.linear_svm import linear_svm as solve
from cuelearn.mms import CLSVM, M3MIML, MIMLSVM, CandidateSet, best_labelings, rivals
from cuelearn.mms.rivals import hausdorff_distances, k_medoids


def svm_optimum(X, signs, bounds, free_bias=True):
    """Least objective of a linear SVM and its solution, bounds the C of each sample."""
    w, b = cp.Variable(X.shape[1]), cp.Variable()
    loss = bounds @ cp.pos(1 - cp.multiply(signs, X @ w + b))
    objective = 0.5 * cp.sum_squares(w) + loss + (0 if free_bias else 0.5 * cp.square(b))
    return minimum(objective), w.value, float(b.value)


def m3miml_optimum(bags, possible, C):
    """M3MIML as one program over all labels, its constraints written down bag by bag."""
    n_labels = possible.shape[1]
    W, b = cp.Variable((n_labels, bags[0].shape[1])), cp.Variable(n_labels)
    terms = [0.5 * cp.sum_squares(W)]
    for bag, labels in zip(bags, possible, strict=True):
        for k in range(n_labels):
            if labels[k]:
                terms.append(C * cp.pos(1 - (bag.mean(axis=0) @ W[k] + b[k])))
            else:
                terms += [C * cp.pos(1 + x @ W[k] + b[k]) for x in bag]
    return minimum(sum(terms)), W.value, b.value


def hausdorff(A, B):
    return max(directed_hausdorff(A, B)[0], directed_hausdorff(B, A)[0])


def clusters(distances, medoids):
    """The alternation of k-medoids from given first medoids, in plain loops; medoids ascending."""
    medoids = sorted(int(m) for m in medoids)
    while True:
        members = {m: [m] for m in medoids}
        for i in range(len(distances)):
            if i not in members:
                members[min(medoids, key=lambda m, i=i: (distances[i, m], m))].append(i)
        updated = []
        for m, items in members.items():
            totals = {i: float(np.sum(distances[i, sorted(items)], dtype=np.float64)) for i in sorted(items)}
            best = min(totals, key=totals.get)
            updated.append(best if totals[best] < totals[m] else m)
        updated.sort()
        if updated == medoids:
            return medoids
        medoids = updated


RIVALS = [CLSVM, MIMLSVM, M3MIML]
BAG_RIVALS = [MIMLSVM, M3MIML]


def make_binary(n=80, d=5, noise=1.0, seed=0):
    rng = np.random.default_rng(seed)
    signs = np.where(rng.random(n) < 0.35, 1.0, -1.0)
    return rng.normal(size=(n, d)) * noise + signs[:, None] * np.linspace(0.2, 0.8, d), signs


def make_bags(n_bags=40, n_labels=4, d=5, noise=0.4, seed=0, null=None, sizes=(1, 4), **options):
    """Instances, true labels and candidate sets: the truth, exchanged, or with one label replaced."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(n_labels, d))
    sets, truth = [], []
    for _ in range(n_bags):
        y = rng.integers(n_labels, size=rng.integers(*sizes))
        other, wrong = rng.permutation(y), y.copy()
        wrong[rng.integers(y.size)] = rng.integers(n_labels)
        sets.append(np.stack([y, other, wrong]))
        truth.append(y)
    y = np.concatenate(truth)
    X = centres[y] + noise * rng.normal(size=(y.size, d))
    return X, y, CandidateSet(sets, n_labels=n_labels, null=null, **options)


def bags_of(X, candidates):
    return np.split(X, candidates.bag_starts[1:-1])


@pytest.mark.parametrize("free_bias", [True, False])
@pytest.mark.parametrize("C", [1e-3, 0.3, 10.0, 1000.0])
def test_svm_reaches_the_optimum_and_certifies_it(C, free_bias):
    X, signs = make_binary()
    weights = np.random.default_rng(1).uniform(0.3, 2.0, signs.size)
    optimum, w, b = svm_optimum(X, signs, C * weights, free_bias)
    found = solve(X, signs, C, weights=weights, free_bias=free_bias, tol=1e-7)
    penalty = 0.0 if free_bias else 0.5 * found.intercept**2
    losses = np.maximum(0, 1 - signs * (X @ found.coef + found.intercept))
    primal = 0.5 * found.coef @ found.coef + penalty + C * weights @ losses
    assert found.primal == pytest.approx(primal, rel=1e-9)
    assert found.primal == pytest.approx(optimum, rel=1e-6)
    a = found.dual_coef  # the dual value, from a feasible point
    assert a.min() >= 0.0 and np.all(a <= C * weights * (1 + 1e-12))
    if free_bias:
        assert abs(a @ signs) <= 1e-9 * a.sum()
    ours = (a * signs) @ X
    dual = a.sum() - 0.5 * ours @ ours - (0.0 if free_bias else 0.5 * (a @ signs) ** 2)
    assert found.dual == pytest.approx(dual, rel=1e-8)
    assert dual <= optimum * (1 + 1e-8)
    assert found.gap == pytest.approx((found.primal - found.dual) / found.primal)
    assert found.gap <= 1e-7
    assert_allclose(found.coef, w, atol=2e-3 * np.abs(w).max())
    assert found.intercept == pytest.approx(b, abs=2e-3 * (1 + abs(b)))


def test_svm_that_stops_early_says_so_and_still_certifies():
    X, signs = make_binary()
    optimum, _, _ = svm_optimum(X, signs, np.full(signs.size, 10.0))
    with pytest.warns(ConvergenceWarning, match="relative duality gap of"):
        found = solve(X, signs, 10.0, max_iter=3)
    assert found.n_iter == 3 and found.gap > 1e-5
    assert found.dual <= optimum <= found.primal


@pytest.mark.parametrize("C", [0.1, 100.0])
def test_clsvm_is_one_svm_per_label_on_what_is_possible(C):
    X, _, candidates = make_bags()
    model = CLSVM(C, tol=1e-8).fit(X, candidates)
    for k in range(4):
        signs = np.where(candidates.mask()[:, k], 1.0, -1.0)
        _, w, b = svm_optimum(X, signs, np.full(signs.size, C), free_bias=False)
        assert_allclose(model.decision_function(X)[:, k], X @ w + b, atol=2e-3)
    assert np.all(model.duality_gap_ <= 1e-8) and np.all(model.trained_)
    assert np.array_equal(model.predict(X), np.argmax(X @ model.coef_.T + model.intercept_, axis=1))


def test_hausdorff_distances_are_those_of_the_definition(monkeypatch):
    X, _, candidates = make_bags(25)
    other, _, others = make_bags(9, seed=4)
    bags, more = bags_of(X, candidates), bags_of(other, others)
    expected = np.array([[hausdorff(a, b) for b in bags] for a in bags])
    across = np.array([[hausdorff(a, b) for b in more] for a in bags])
    for block in (64_000_000, 4 * len(X) * 5, 1):  # all bags at once, a few, one by one
        monkeypatch.setattr(rivals, "BLOCK", block)
        found = hausdorff_distances(X, candidates.bag_starts)
        assert found.dtype == np.float32 and not found.diagonal().any()
        assert_array_equal(found, found.T)
        assert_allclose(found, expected, atol=2e-3 * expected.max(), rtol=1e-4)
        two = hausdorff_distances(
            X.astype(np.float32), candidates.bag_starts, other, others.bag_starts, n_jobs=2
        )
        assert_allclose(two, across, atol=1e-3, rtol=1e-4)


@pytest.mark.parametrize("seed", range(5))
def test_k_medoids_is_the_alternation(seed):
    X, _, candidates = make_bags(50, noise=1.0, seed=seed)
    distances = hausdorff_distances(X, candidates.bag_starts)
    first = np.random.default_rng(seed).choice(50, 8, replace=False)
    medoids = k_medoids(distances, 8, seed)
    assert medoids.tolist() == clusters(distances, first)
    assert distances[:, medoids].min(axis=1).sum() <= distances[:, first].min(axis=1).sum()


@pytest.mark.parametrize("C", [0.1, 10.0])
def test_mimlsvm_is_an_svm_on_the_distances_to_the_medoids(C):
    X, _, candidates = make_bags()
    model = MIMLSVM(C, ratio=0.3, tol=1e-8, random_state=7).fit(X, candidates)
    farthest = clone(model).set_params(instances="farthest").fit(X, candidates)
    assert model.medoids_.size == 12 and np.unique(model.medoids_).size == 12
    bags = bags_of(X, candidates)
    mapped = np.array([[hausdorff(bag, bags[m]) for m in model.medoids_] for bag in bags])
    distances = [cdist(X, bags[m]) for m in model.medoids_]
    far, near = (np.stack([each(D, axis=1) for D in distances], axis=1) for each in (np.max, np.min))
    for k in range(4):
        signs = np.where(candidates.bag_mask()[:, k], 1.0, -1.0)
        _, w, b = svm_optimum(mapped, signs, np.full(40, C))
        assert_allclose(model.bag_decision_function(X, candidates.bag_sizes)[:, k], mapped @ w + b, atol=2e-2)
        assert_allclose(model.decision_function(X)[:, k], near @ w + b, atol=2e-2)
        assert_allclose(farthest.decision_function(X)[:, k], far @ w + b, atol=2e-2)


def test_mimlsvm_clusters_a_part_of_the_bags():
    X, _, candidates = make_bags(60)
    part = MIMLSVM(max_clustered=20, random_state=1).fit(X, candidates)
    drawn = np.random.default_rng(1).choice(60, 20, replace=False)
    assert part.medoids_.size == 12 and set(part.medoids_) <= set(drawn)  # a fifth of all bags
    mapped = hausdorff_distances(X, candidates.bag_starts)[:, part.medoids_]
    scores = part.bag_decision_function(X, candidates.bag_sizes)
    assert_allclose(scores, mapped @ part.coef_.T + part.intercept_, atol=1e-2)


@pytest.mark.parametrize("C", [0.05, 1.0, 100.0])
def test_m3miml_is_its_quadratic_program(C):
    X, _, candidates = make_bags(14, n_labels=3, d=4)
    bags = bags_of(X, candidates)
    optimum, W, b = m3miml_optimum(bags, candidates.bag_mask(), C)
    model = M3MIML(C, tol=1e-7).fit(X, candidates)
    assert model.primal_objective_ == pytest.approx(optimum, rel=1e-5)
    assert model.dual_objective_ <= optimum * (1 + 1e-7)
    assert model.primal_objective_ - model.dual_objective_ <= 1e-7 * model.primal_objective_
    assert_allclose(model.coef_, W, atol=5e-3 * np.abs(W).max())
    scores = np.array([(bag @ model.coef_.T + model.intercept_).max(axis=0) for bag in bags])
    assert_allclose(model.bag_decision_function(X, candidates.bag_sizes), scores, atol=1e-12)
    assert_allclose(model.decision_function(X), X @ model.coef_.T + model.intercept_, atol=1e-12)


@pytest.mark.parametrize("cls", BAG_RIVALS)
def test_null_is_where_every_label_is_negative(cls):
    X, y, candidates = make_bags(60, null=0, noise=0.2)
    model = cls(10.0, class_weight="balanced").fit(X, candidates)
    scores = model.decision_function(X)
    assert not scores[:, 0].any() and not model.coef_[0].any()
    expected = np.where(np.all(scores[:, 1:] < 0.0, axis=1), 0, 1 + np.argmax(scores[:, 1:], axis=1))
    assert_array_equal(model.predict(X), expected)
    assert 0 < np.mean(expected == 0) < 1
    unmarked = CandidateSet([candidates.bag(i) for i in range(60)], n_labels=4)
    plain = cls(10.0, class_weight="balanced").fit(X, unmarked)
    assert_array_equal(plain.coef_[1:], model.coef_[1:])  # the others do not know of it
    assert plain.coef_[0].any()


@pytest.mark.parametrize("cls", RIVALS)
def test_a_caption_chooses_among_its_candidates(cls):
    X, y, candidates = make_bags(60, noise=0.8, null=0, classes=["null", "a", "b", "c"])
    model = cls(class_weight="balanced").fit(X, candidates)
    expected = best_labelings(model.decision_function(X), candidates)
    found = model.predict(X, candidates)
    assert_array_equal(found, candidates.named(expected))
    assert model.score(X, candidates.classes[0][y], candidates) > model.score(X, candidates.classes[0][y])


@pytest.mark.parametrize("cls", RIVALS)
def test_a_label_that_never_was_possible_is_not_predicted(cls):
    X, _, candidates = make_bags(n_labels=3)
    wider = CandidateSet([candidates.bag(i) for i in range(candidates.n_bags)], n_labels=5)
    model, plain = cls().fit(X, wider), cls().fit(X, candidates)
    assert model.trained_.tolist() == [True] * 3 + [False] * 2
    assert np.all(model.decision_function(X)[:, 3:] == -1.0)
    assert_array_equal(model.predict(X), plain.predict(X))


@pytest.mark.parametrize("cls", RIVALS)
def test_balanced_gives_both_sides_the_same_weight(cls):
    X, _, candidates = make_bags(60)
    C = 0.7
    model = cls(C, class_weight="balanced", tol=1e-8).fit(X, candidates)
    k, free = 2, cls is not CLSVM
    bag_labels = candidates.bag_mask()[:, k]
    if cls is CLSVM:
        rows, signs = X, np.where(candidates.mask()[:, k], 1.0, -1.0)
    elif cls is MIMLSVM:
        rows = hausdorff_distances(X, candidates.bag_starts)[:, model.medoids_].astype(float)
        signs = np.where(bag_labels, 1.0, -1.0)
    else:
        means = np.array([bag.mean(axis=0) for bag in bags_of(X, candidates)])
        rows = np.vstack([means[bag_labels], X[~bag_labels[candidates.bag_of]]])
        signs = np.where(np.arange(len(rows)) < bag_labels.sum(), 1.0, -1.0)
    share = np.where(signs > 0, 0.5 / np.mean(signs > 0), 0.5 / np.mean(signs < 0))
    _, w, b = svm_optimum(rows, signs, C * share, free)
    assert_allclose(rows @ model.coef_[k] + model.intercept_[k], rows @ w + b, atol=5e-3)

"""Figures 5.3 and 5.6, tables 5.1 to 5.4: who sees what, and that their numbers are those of plain counts."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.svm import LinearSVC

from companion import mms as exp
from companion.mms import annotators, naming, settings
from companion.run.claims import claims
from cuelearn.mms import CandidateSet

EFFORT = {"n_epochs": 3, "n_rounds": 2}
MADE = {"n_candidates": 4, "p_correlated": 0.25, "p_ambiguous": 0.5}
LETTERS = {"name": "letter", "n_bags": 16, "n_test": 40, **MADE}
NEWS = {"seed": 1, "n_items": 60, "n_names": 30, "protocol": "I", "occurrences": 3}
PLACED = {**NEWS, "protocol": "II", "occurrences": 2}
POSED = {"seed": 1, "n_items": 110, "n_test": 25, "n_names": 30}
SOME = {"C": 1.0, "class_weight": "", "width": 0.5, "components": 5}


@pytest.fixture
def bags():
    return exp.bags_of(seed=0, **LETTERS)


def assert_equal_scores(models, others, X):
    assert len(models) == len(others) > 0
    for one, other in zip(models, others, strict=True):
        a, b = one.decision_function(X), other.decision_function(X)
        for p, q in zip(*((s if isinstance(s, list) else [s]) for s in (a, b)), strict=True):
            assert_array_equal(p, q)


class Spy:
    """Notes what it is given; its answers are right with one C alone."""

    def __init__(self, C, notes, truth):
        self.C, self.notes, self.truth = C, notes, truth

    def fit(self, X, candidates):
        self.notes.append((self.C, X[:, 0].astype(int), candidates))
        return self

    def decision_function(self, X):
        rows = X[:, 0].astype(int)
        self.notes[-1] += (rows,)
        wrong = 0 if self.C == 1.0 else 1 + np.arange(len(rows)) % 2
        return np.eye(3)[(self.truth[rows] + wrong) % 3]


def test_parameters_are_chosen_on_bags_that_were_held_back(monkeypatch):
    rng = np.random.default_rng(0)
    sizes = rng.integers(1, 4, size=23)
    truth = rng.integers(3, size=sizes.sum())
    sets = CandidateSet.from_labels(truth, sizes, n_labels=3)
    X = np.arange(len(truth), dtype=float)[:, None]
    notes = []
    monkeypatch.setitem(exp.METHODS, "spy", lambda C, weight, seed, effort: Spy(C, notes, truth))
    assert exp.choose("spy", X, sets, truth, (0.1, 1.0, 10.0), 3, EFFORT)["C"] == 1.0
    assert [note[0] for note in notes] == [0.1, 1.0, 10.0]
    for _, rows, inner, held in notes:
        assert_array_equal(np.sort(np.concatenate([rows, held])), np.arange(len(truth)))
        assert inner.n_bags == 23 - int(exp.VALIDATION * 23) and len(rows) == inner.n_instances
        assert not set(sets.bag_of[held]) & set(sets.bag_of[rows])  # whole bags
    assert len({tuple(note[3]) for note in notes}) == 1  # the same bags for every C


@pytest.mark.parametrize("multi_class, shown", [("crammer_singer", (1, 3)), ("ovr", (0, 2, 4))])
def test_labels_that_training_did_not_show(multi_class, shown):
    rng = np.random.default_rng(0)
    y = np.resize(shown, 60)
    X = np.eye(5)[y] + 0.1 * rng.standard_normal((60, 5))
    model = exp.SupervisedSVM(C=10.0, multi_class=multi_class)
    model.fit(X, CandidateSet.from_labels(y, np.full(20, 3), n_labels=5))
    new = rng.standard_normal((50, 5))
    scores = model.decision_function(new)
    missing = [k for k in range(5) if k not in shown]
    assert scores[:, missing].max() < scores[:, list(shown)].min() - 1e6
    options = {"loss": "hinge", "multi_class": multi_class, "tol": 1e-2, "max_iter": 500, "random_state": 0}
    plain = LinearSVC(C=10.0, **options).fit(X, y)
    assert_array_equal(exp.predicted(model, new), plain.predict(new))
    # within a caption that offers nothing else, such a label is still assigned
    only = CandidateSet([[[missing[0]]]] * 50, n_labels=5)
    assert (exp.assigned(model, new, only) == missing[0]).all()


@pytest.mark.parametrize("method", ["MMS", "MC-SVM"])
def test_hidden_labels_reach_only_those_who_are_given_them(monkeypatch, recorded, bags, method):
    """With the truth permuted, and other test samples, the same C and the same models."""
    data, X_test, y_test = bags

    def trained(*made):
        with monkeypatch.context() as patch:
            patch.setattr(exp, "bags_of", lambda *a, **k: made)
            models = recorded(patch, exp, "make")
            chosen = exp.validated("letter", method, 0, 16, (0.1, 10.0), EFFORT)
            table = exp.accuracies(0, {method: SOME}, EFFORT, **LETTERS)
            return chosen, models, table["assignment"][0]

    hidden = data._replace(y=np.random.default_rng(8).permutation(data.y))
    chosen, models, assignment = trained(data, X_test, y_test)
    other, others, changed = trained(hidden, X_test[::-1] + 1.0, y_test)
    if method in exp.WEAK:
        assert chosen == other and assignment != changed
        assert_equal_scores(models, others, X_test)
    else:
        assert not np.array_equal(models[-1].decision_function(X_test), others[-1].decision_function(X_test))


def test_training_bags_and_test_samples():
    data = exp.load_set("satimage")
    assert not set(data.train) & set(data.test)
    bags, X_test, y_test = exp.bags_of("satimage", 3, 10, 25, **MADE)
    rows = np.random.default_rng([3, 50]).permutation(data.train)[:50][bags.order]
    assert_array_equal(bags.X, exp.features("satimage", data, rows))
    new = np.random.default_rng([3, 57]).permutation(data.test)[:25]
    assert_array_equal(X_test, exp.features("satimage", data, new))
    assert (len(bags.y), len(y_test)) == (50, 25)
    whole = exp.features("satimage", data, data.train)
    used = whole.min(axis=0) < whole.max(axis=0)
    assert np.allclose(whole.min(axis=0)[used], -1.0) and np.allclose(whole.max(axis=0)[used], 1.0)
    assert all(n == 5 for n in bags.candidates.n_candidates)  # L ambiguous ones and the right one


def test_null_is_label_0_and_training_items_are_no_test_items():
    data, sets, labels = naming.problem(**NEWS)
    assert sets.null == (0,) and sets.classes[0][0] == "null"
    assert set(sets.classes[0][1:]) == set(data.names_with(NEWS["occurrences"]))
    known = labels > 0
    assert_array_equal(sets.classes[0][labels[known]], data.names[known])  # who it is
    assert sets.bag_mask()[sets.bag_of, labels][known].all()  # no name that the caption does not have
    train, test = np.flatnonzero(~data.is_test), np.flatnonzero(data.is_test)
    weak, given, half = (naming.training(m, **NEWS) for m in ("MMS", "MC-SVM", "MC-SVM half"))
    assert_array_equal(weak[0], data.faces[sets.rows(train)])
    assert_array_equal(given[0], weak[0])
    assert_array_equal(given[2], labels[sets.rows(train)])
    seen = {face.tobytes() for face in weak[0]}
    assert not seen & {face.tobytes() for face in data.faces[sets.rows(test)]}
    assert half[1].n_bags == len(train) // 2 and {face.tobytes() for face in half[0]} < seen


@pytest.mark.parametrize("where, method", [(PLACED, "MMS positions"), (NEWS, "MC-SVM half")])
def test_captions_are_all_that_weak_methods_see(monkeypatch, recorded, where, method):
    """With the truth permuted and other faces on the test items, the same C and the same models."""
    faces = naming.problem(**where)[0].faces.copy()
    real = naming.problem

    def other(*given, **options):
        data, sets, labels = real(*given, **options)
        rng = np.random.default_rng(4)
        changed = data.faces.copy()
        rows = sets.rows(np.flatnonzero(data.is_test))
        changed[rows] = rng.random((len(rows), changed.shape[1]))
        return data._replace(faces=changed), sets, rng.permutation(labels)

    runs = []
    for problem in (real, other):
        with monkeypatch.context() as patch:
            patch.setattr(naming, "problem", problem)
            models = recorded(patch, exp, "make")
            options = {"grid": (0.1, 10.0), "effort": EFFORT}
            chosen = naming.naming_parameters(exp.plain(method), **where, **options)
            row = naming.naming_run(**where, chosen={method: SOME}, effort=EFFORT).iloc[0]
            runs.append((chosen, models, row["assignment"]))
    (chosen, models, assignment), (other_chosen, others, other_assignment) = runs
    if exp.plain(method) in exp.WEAK:
        assert chosen == other_chosen and assignment != other_assignment
        assert_equal_scores(models, others, faces)
    else:
        assert np.isnan(assignment)
        assert not np.array_equal(models[-1].decision_function(faces), others[-1].decision_function(faces))


def test_assignment_and_recognition_are_plain_counts(monkeypatch, recorded):
    models = recorded(monkeypatch, exp, "make")
    row = naming.naming_run(**PLACED, chosen={"MMS positions": SOME}, effort=EFFORT).iloc[0]
    (model,) = models
    data, placed, labels = naming.problem(**PLACED, constraints="ABCD")
    right = {True: [], False: []}
    for i in range(placed.n_bags):
        rows = placed.rows([i])
        scores, truth = model.decision_function(data.faces[rows]), labels[rows]
        if data.is_test[i]:
            right[True] += (scores.argmax(axis=1) == truth).tolist()
        else:
            best = max(placed.iterate(i), key=lambda z, s=scores: s[np.arange(len(s)), z[:, 0]].sum())
            right[False] += (best[:, 0] == truth).tolist()
    assert row["assignment"] == pytest.approx(np.mean(right[False]))
    assert row["recognition"] == pytest.approx(np.mean(right[True]))


@pytest.mark.parametrize("method, modelled", [("DistNaming", "both"), ("MMS", "verb")])
def test_no_truth_in_names_and_verbs(monkeypatch, recorded, method, modelled):
    """With the truth permuted and noise as test items, the same parameters and the same models."""
    real_problem, real_table = naming.problem_of, naming.table_of
    probe, (sets, _) = real_table(**POSED)[1].copy(), real_problem(**POSED, modelled=modelled)
    monkeypatch.setattr(naming, "DIST_WIDTHS", (0.06, 0.5))

    def problem(*given, **options):
        sets, labels = real_problem(*given, **options)
        return sets, np.random.default_rng(0).permutation(labels)

    def table(*given, **options):
        data, X, parts = real_table(*given, **options)
        X, rows = X.copy(), sets.rows(np.flatnonzero(data.is_test))
        X[rows] = np.random.default_rng(1).random(X[rows].shape)
        return data, X, parts

    runs = []
    for pair in ((real_problem, real_table), (problem, table)):
        with monkeypatch.context() as patch:
            patch.setattr(naming, "problem_of", pair[0])
            patch.setattr(naming, "table_of", pair[1])
            models = recorded(patch, naming, "build")
            options = {"widths": (0.5,), "grid": (1.0, 10.0), "effort": EFFORT}
            chosen = naming.pose_parameters(method, modelled, **POSED, **options)
            shares = naming.pose_run(modelled, **POSED, chosen={method: SOME}, effort=EFFORT)
            runs.append((chosen, models, shares))
    (chosen, models, shares), (other_chosen, others, other_shares) = runs
    assert chosen == other_chosen
    assert_equal_scores(models, others, probe)
    assert not np.array_equal(shares["assignment"], other_shares["assignment"])


def test_annotators_vote_by_their_confusions_and_links_are_true():
    rng = np.random.default_rng(0)
    confusion = annotators.annotators(rng, 3, 4)
    assert np.ptp(confusion[0], axis=0).max() == 0.0  # a spammer
    diagonal = np.diagonal(confusion[1:], axis1=1, axis2=2)
    assert diagonal.min() > 0.39 and np.all(
        confusion[1:].max(axis=2)[diagonal > 0.5] == diagonal[diagonal > 0.5]
    )
    votes = annotators.votes_of(rng, confusion, np.repeat([2], 40_000))
    assert_allclose(np.mean(votes >= 0, axis=0), annotators.VOTES_ON, atol=0.02)
    shares = [np.bincount(column[column >= 0], minlength=4) / np.sum(column >= 0) for column in votes.T]
    assert_allclose(shares, confusion[:, 2], atol=0.02)
    labels = rng.integers(2, size=12)
    some, every = (annotators.links_of(labels, share, np.random.default_rng(1)) for share in (0.5, 1.0))
    assert [sum(map(len, links)) for links in (some, every)] == [9, 18]
    for part, whole, equal in zip(some, every, (True, False), strict=True):
        assert set(map(tuple, part)) <= set(map(tuple, whole))
        assert np.all((labels[whole[:, 0]] == labels[whole[:, 1]]) == equal)


@pytest.mark.parametrize("share", [None, 1.0])
def test_of_annotated_items_the_truth_reaches_one_svm_alone(share):
    given = annotators.problem("mfeat", 0, 40, 50, 3, share)
    other = given._replace(labels=given.labels[::-1].copy(), new=None)
    for method in annotators.VOTES if share is None else annotators.LINKS:
        models = [
            annotators.trained(method, 1.0, 0, EFFORT, g, np.arange(g.sets.n_bags)) for g in (given, other)
        ]
        same = np.array_equal(*(model.decision_function(given.X) for model in models))
        assert same == (method != "MC-SVM")
    if share:  # all links: the true pattern of equal labels
        for i in range(given.sets.n_bags):
            true = given.labels[4 * i : 4 * i + 4]
            for z in given.sets.bag(i)[:, :, 0]:
                assert_array_equal(z[:, None] == z, true[:, None] == true)


def test_as_many_runs_as_the_claims_were_planned_with():
    for profile in ("quick", "full"):
        sizes = settings(profile)
        artificial = sizes["artificial"]
        parts = [artificial] * 3
        parts += [sizes["rounds"], sizes["search"]["trained"]]
        parts += [sizes["naming"], {"seeds": sizes["naming"]["placed"]}, sizes["poses"]]
        parts += [sizes["bound"], sizes["bound"], artificial]
        parts += [sizes["annotators"]] * 4 + [sizes["inference"]] * 3
        assert claims("mms")[profile].astype(int).tolist() == [part["seeds"] for part in parts]

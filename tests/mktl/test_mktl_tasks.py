"""Transfer tasks: which things are new, known and judged on, disjoint drawings, what priors know."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from companion import pictures
from companion.mktl import tasks
from companion.mktl.tasks import TASKS, binary_targets, binary_task, describe, draw, faces, load_task
from companion.protocol import load_set
from cuelearn.datasets import AWA_TEST_CLASSES, DataFileError
from cuelearn.datasets.base import CueData
from cuelearn.kernels import RBF, KernelBank
from cuelearn.mkl import AverageKernelSVM

WIDTH = 20  # columns of a cue here
CACHED = (tasks._known, load_task, tasks._shared, binary_task)
EMOJI = pictures.emoji()


def made_up(labels, names, cues, seed=0):
    """Cues of normal numbers around a mean of each class."""
    rng = np.random.default_rng(seed)
    means = rng.normal(size=(len(names), WIDTH * len(cues)))
    X = (means[labels] + 0.5 * rng.normal(size=(len(labels), means.shape[1]))).astype(np.float32)
    columns = {cue: slice(WIDTH * k, WIDTH * (k + 1)) for k, cue in enumerate(cues)}
    features = [f"{cue} {k}" for cue in cues for k in range(WIDTH)]
    return CueData(X, labels, columns, None, None, features, names, "made up", EMOJI.provenance)


def described(rows, cues, *, n_views=1, n_jobs=1):
    """In place of the descriptors, which are tested elsewhere."""
    return made_up(np.repeat(EMOJI.thing[rows], n_views), EMOJI.names.tolist(), list(cues))


def animals_with_attributes(name):
    """As large as the part of AwA that the loader takes."""
    assert name == "awa"
    names = [*AWA_TEST_CLASSES, *(f"known {k}" for k in range(40))]
    labels = np.repeat(np.arange(50), [100] * 10 + [50] * 40)
    return made_up(labels, names, ["phog", "surf", "rgsift", "lss"])


@pytest.fixture(scope="module", autouse=True)
def _cheap():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pictures, "described", described)
        patch.setattr(tasks, "load_set", animals_with_attributes)
        for function in CACHED:
            function.cache_clear()
        yield
    for function in CACHED:
        function.cache_clear()


def check_task(task, n_classes, n_priors):
    """What holds for every task."""
    n = len(task.X)
    assert task.X.dtype == task.scores.dtype == task.same.dtype == np.float64
    assert task.scores.shape == task.same.shape == (n, n_priors)
    assert len(task.prior_names) == len(set(task.prior_names)) == n_priors
    assert task.y.shape == task.rows.shape == task.drawing.shape == (n,)
    assert np.unique(task.y).size == n_classes and np.unique(task.rows).size == n
    assert np.isfinite(task.X).all() and np.isfinite(task.scores).all() and np.isfinite(task.same).all()
    assert_array_equal(task.X, task.data.X[np.ix_(task.rows, task.columns)])
    for models, scores in ((task.priors, task.scores), (task.same_priors, task.same)):
        assert sum((prior.classes for prior in models), ()) == task.prior_names
        rows = np.r_[0:5, n - 5 : n]
        again = np.hstack([prior.scores(task.data.X[task.rows[rows]]) for prior in models])
        assert_allclose(again, scores[rows], rtol=1e-3, atol=1e-3)  # sums of float32 kernels times C
        for prior in models:
            assert not np.intersect1d(prior.train, task.rows).size
            assert np.unique(prior.train).size == prior.train.size
            assert (0.7 if prior.name.startswith("SVM") else 1.2 / len(prior.classes)) < prior.accuracy <= 1.0
    for prior in task.same_priors:  # one kernel and one width for all, as Multi-KT asks
        assert [kernel for _, kernel, _ in prior.model.kernels] == [RBF(scale=task.width)]
        assert prior.columns == task.columns


def thing_of(names):
    return np.array([EMOJI.names.tolist().index(name) for name in names])


# --- multiclass ----------------------------------------


@pytest.mark.parametrize("others", [False, True])
@pytest.mark.parametrize("name, n_new, n_known", [("animals", 10, 40), ("objects", 9, 100)])
def test_multiclass_tasks(name, n_new, n_known, others):
    task = load_task(name, others)
    check_task(task, n_new, n_known)
    new, known = thing_of(np.unique(task.y)), thing_of(task.prior_names)
    assert_array_equal(pictures.emoji().n_drawings()[new], 8)
    assert_array_equal(np.unique(task.y, return_counts=True)[1], 8 * tasks.N_VIEWS)
    second = thing_of(np.unique(load_task(name, not others).y))
    every = np.concatenate([new, second, known])
    assert np.unique(EMOJI.family[every]).size == every.size == 2 * n_new + n_known  # no two alike
    assert not np.isin(every, pictures.word_things()).any()
    assert_array_equal(np.unique(task.drawing, return_counts=True)[1], tasks.N_VIEWS)
    assert_array_equal(EMOJI.names[EMOJI.thing[task.drawing]], task.y)
    assert task.priors is not None and task.test is None
    assert [len(prior.classes) for prior in task.priors] == [size for _, _, size in TASKS[name].models]
    for prior, (learner, cues, _) in zip(task.priors, TASKS[name].models, strict=True):
        assert prior.name == f"{'SVM' if learner == 'svm' else 'boosted trees'} on {', '.join(cues)}"
        assert {task.data.feature_names[c].rpartition(" ")[0] for c in prior.columns} == set(cues)
        assert not set(prior.columns) & set(task.columns)  # other cues than the new task's
    trained = np.concatenate([prior.train for prior in task.same_priors])
    bank = KernelBank([("all", RBF(), slice(None))], task.data.X[np.ix_(trained, task.columns)])
    assert np.isclose(bank.triples[0][1].scale, task.width)
    for prior in (*task.priors, *task.same_priors):
        seen = EMOJI.names[task.data.y[prior.train]]
        assert tuple(np.unique(seen)) == prior.classes == tuple(prior.model.classes_)
        left = (
            pictures.emoji().n_drawings()[thing_of(prior.classes)] - 1
        )  # a drawing of each tells the accuracy
        assert_array_equal(np.unique(seen, return_counts=True)[1], left * tasks.N_VIEWS)
        if hasattr(prior.model, "estimators_"):  # boosting did not end after a stump that fits all
            assert len(prior.model.estimators_) == tasks.N_TREES


def test_which_things_are_where():
    every = (load_task("animals"), load_task("animals", True))
    for names in (every[0].prior_names, *(task.y for task in every)):
        assert all(EMOJI.subgroup[thing].startswith("animal-") for thing in thing_of(names))
    assert (pictures.emoji().n_drawings()[thing_of(every[0].prior_names)] >= 6).all()
    for task in (load_task("objects"), load_task("objects", True)):
        kinds = [EMOJI.subgroup[thing].partition("-")[0] for thing in thing_of(np.unique(task.y))]
        assert sorted(kinds) == ["animal"] * 3 + ["plant"] * 3 + ["transport"] * 3
    for prior, kind in zip(task.priors, ("plant-", "animal-", "transport-"), strict=False):
        assert all(EMOJI.subgroup[thing].startswith(kind) for thing in thing_of(prior.classes))
    assert TASKS["objects"].sizes == (14, 23)  # the first three models, and the fourth


def test_the_mean_of_kernels_is_what_the_svm_priors_use():
    task = load_task("animals")
    (prior,), data = task.priors, task.data
    kernels = [("HSV 1x1", RBF(), slice(0, WIDTH)), ("words 1x1", RBF(), slice(WIDTH, 2 * WIDTH))]
    X = data.X[:, [*range(*data.cues["HSV 1x1"].indices(999)), *range(*data.cues["words 1x1"].indices(999))]]
    model = AverageKernelSVM(kernels, C=tasks.PRIOR_C).fit(X[prior.train], EMOJI.names[data.y[prior.train]])
    assert_allclose(model.decision_function(X[:50]), prior.scores(data.X[:50]), atol=1e-3)


def test_faces():
    found = faces(["red apple", "tiger"], 3)
    assert found.shape == (2, 3, 64, 64, 4)
    rows = np.flatnonzero(EMOJI.names[EMOJI.thing] == "tiger")[:3]
    assert_array_equal(found[1], EMOJI.pictures[rows])


def test_describe(monkeypatch):
    """All pictures that tasks take, by so many processes."""
    animals, pair, seen = load_task("animals"), binary_task(binary_targets()[0]), []
    monkeypatch.setattr(pictures, "described", lambda rows, cues, **how: seen.append((rows, list(cues), how)))
    describe(["animals", "binary"], 3)
    assert [how for _, _, how in seen] == [{"n_views": tasks.N_VIEWS, "n_jobs": 3}] * 2
    assert [cues for _, cues, _ in seen] == [["PHOG 2", "HSV 1x1", "words 1x1"], list(tasks.BINARY_CUES)]
    assert set(animals.drawing) < set(seen[0][0])
    assert set(pair.drawing) < set(seen[1][0])


# --- binary ----------------------------------------


def test_targets():
    targets, others = binary_targets(), binary_targets(others=True)
    assert (len(targets), len(others)) == (30, 6) and not set(targets) & set(others)
    assert_array_equal(thing_of(targets + others), pictures.objects(36))


@pytest.mark.parametrize("others, k", [(False, 0), (False, 29), (True, 0), (True, 5)])
def test_binary_tasks(others, k):
    among, other = binary_targets(), binary_targets(others=True)
    target = (other if others else among)[k]
    task = binary_task(target)
    check_task(task, 2, 29)
    known = [name for name in among if name != target][:29]
    assert task.prior_names == tuple(known) and task.scores is task.same
    assert all(one is two for one, two in zip(task.priors, task.same_priors, strict=True))
    assert task.y.dtype == np.int64 and len(task.columns) == WIDTH * len(tasks.BINARY_CUES)
    names = EMOJI.names[EMOJI.thing[task.drawing]]
    assert_array_equal(task.y, names == target)
    assert np.bincount(task.y).tolist() == [tasks.BACKGROUND_THINGS * tasks.N_VIEWS, 8 * tasks.N_VIEWS]
    background = np.unique(names[task.y == 0])
    assert background.size == np.unique(task.drawing[task.y == 0]).size == tasks.BACKGROUND_THINGS
    families = EMOJI.family[thing_of([*background, *among, *other])]
    assert np.unique(families).size == families.size
    behind = [set(EMOJI.names[task.data.y[prior.train]]) - set(prior.classes) for prior in task.priors]
    assert behind == behind[:1] * 29 and len(behind[0]) == 84 and not behind[0] & {target, *background}
    for prior in task.priors:
        own = task.data.y[prior.train] == thing_of(prior.classes)[0]
        assert own.sum() == 7 * tasks.N_VIEWS
        assert prior.scores(task.data.X[prior.train[own]]).mean() > 0.0  # its own thing is the positive one


def test_backgrounds():
    """All targets share one, those that parameters are chosen on another."""
    one, two, other = (binary_task(name) for name in (*binary_targets()[:2], binary_targets(True)[0]))
    assert_array_equal(one.rows[one.y == 0], two.rows[two.y == 0])
    assert one.width == two.width == other.width
    assert not set(one.rows) & set(other.rows)


# --- draws ----------------------------------------


@pytest.mark.parametrize("seed", [0, 1, 7])
def test_draws(seed):
    task = load_task("animals")
    train, test = draw(task, 20, seed)
    assert not np.intersect1d(task.drawing[train], task.drawing[test]).size
    assert_array_equal(np.sort(np.concatenate([train, test])), np.arange(len(task.y)))
    assert_array_equal(np.unique(task.y[test], return_counts=True)[1], 3 * tasks.N_VIEWS)
    few, judged = draw(task, 5, seed)
    assert_array_equal(few, train[:50])
    assert_array_equal(judged, test)
    assert np.unique(task.drawing[few]).size == 50  # five drawings of each before a second view of any
    assert np.unique(task.drawing[train[:100]]).size == 50
    for start in range(0, 200, 10):  # one of each class in turn
        assert np.unique(task.y[train[start : start + 10]]).size == 10
    other = draw(task, 20, seed + 1)[1]
    assert not np.array_equal(other, test)
    assert tasks.n_most(task) == 20


def test_binary_draws():
    task = binary_task(binary_targets()[0])
    train, test = draw(task, {0: 80, 1: 3}, 0)
    assert np.bincount(task.y[train]).tolist() == [80, 3]
    assert np.unique(task.drawing[train]).size == 83  # of as many things
    assert np.bincount(task.y[test]).tolist() == [48 * tasks.N_VIEWS, 3 * tasks.N_VIEWS]
    assert not np.intersect1d(task.drawing[train], task.drawing[test]).size
    more = draw(task, {0: 80, 1: 10}, 0)[0]
    assert set(train) < set(more)


# --- errors ----------------------------------------


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: load_task("digits"), "name must be one of"),
        (lambda: binary_task("no such thing"), "target must be one of"),
        (lambda: draw(load_task("animals"), 21, 0), "n must be at most 20"),
        (lambda: draw(binary_task(binary_targets()[0]), {0: 80, 1: 21}, 0), "n must be at most 20"),
    ],
)
def test_wrong_arguments(call, words):
    with pytest.raises(ValueError, match=words):
        call()


# --- the original data ----------------------------------------


def test_awa_that_is_not_there(monkeypatch, tmp_path):
    monkeypatch.setenv("CUELEARN_DATA", str(tmp_path))
    monkeypatch.setattr(tasks, "load_set", load_set)
    load_set.cache_clear()
    tasks._known.cache_clear()
    with pytest.raises(DataFileError, match="'awa' was not found"):
        load_task("awa", True)


def test_awa():
    """Fifty photographs of each new animal for tests, always the same; the other fifty choose parameters."""
    task, choosing = load_task("awa"), load_task("awa", True)
    check_task(task, 10, 40)
    check_task(choosing, 10, 40)
    assert set(task.y) == set(choosing.y) == set(AWA_TEST_CLASSES)
    train, test = draw(task, 50, 0)
    assert_array_equal(test, draw(task, 1, 3)[1])
    assert_array_equal(np.unique(task.y[test], return_counts=True)[1], 50)
    assert_array_equal(np.sort(task.rows[train]), choosing.rows)
    assert tasks.n_most(task) == 50 and tasks.n_most(choosing) == 32
    few, judged = draw(choosing, 32, 0)
    assert few.size == 320 and judged.size == 180 and not set(few) & set(judged)
    (prior,), (own,) = task.priors, task.same_priors
    assert {task.data.feature_names[c].split()[0] for c in prior.columns} == {"rgsift", "surf"}
    assert {task.data.feature_names[c].split()[0] for c in own.columns} == {"phog"}
    assert prior.train.size == 40 * 44

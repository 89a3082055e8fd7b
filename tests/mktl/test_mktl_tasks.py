"""Transfer tasks."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from companion import mktl as exp
from companion import pictures
from companion.mktl import TASKS, binary_targets, binary_task, draw, load_task
from companion.originals import AWA_TEST_CLASSES
from cuelearn.datasets.base import CueData, data_module
from cuelearn.kernels import RBF, KernelBank

WIDTH = 20  # columns of a cue here
CACHED = (exp._known, load_task, exp._shared, binary_task)
EMOJI = pictures.emoji()
build = data_module("build")


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
        patch.setattr(exp, "load_set", animals_with_attributes)
        for function in CACHED:
            function.cache_clear()
        yield
    for function in CACHED:
        function.cache_clear()


def check_task(task, n_classes, n_priors):
    """What holds for every task: no prior was trained on its samples, columns of scores are the priors'."""
    n = len(task.X)
    assert task.scores.shape == task.same.shape == (n, n_priors)
    assert len(set(task.prior_names)) == n_priors
    assert np.unique(task.y).size == n_classes and np.unique(task.rows).size == n
    assert_array_equal(task.X, task.data.X[np.ix_(task.rows, task.columns)])
    for models, scores in ((task.priors, task.scores), (task.same_priors, task.same)):
        assert sum((prior.classes for prior in models), ()) == task.prior_names
        again = np.hstack([prior.scores(task.data.X[task.rows[:5]]) for prior in models])
        assert_allclose(again, scores[:5], rtol=1e-3, atol=1e-3)  # sums of float32 kernels times C
        for prior in models:
            assert not np.intersect1d(prior.train, task.rows).size
            assert (0.7 if prior.name.startswith("SVM") else 1.2 / len(prior.classes)) < prior.accuracy <= 1.0
    for prior in task.same_priors:  # one kernel and one width for all, as Multi-KT asks
        assert [kernel for _, kernel, _ in prior.model.kernels] == [RBF(scale=task.width)]
        assert prior.columns == task.columns


def thing_of(names):
    return np.array([EMOJI.names.tolist().index(name) for name in names])


def check_unlike(new, known):
    """No known thing is a near-duplicate of a new one, by its words or as it is drawn, in any style."""
    shown = {k: EMOJI.names[k].lower().replace("oncoming", "").removesuffix(" face").split() for k in new}
    for thing in known:
        words = {*EMOJI.names[thing].split(), *EMOJI.keyword_names[EMOJI.keywords[thing] > 0]}
        assert not [EMOJI.names[k] for k in new if words & set(shown[k])], EMOJI.names[thing]
    alike = []
    for style in np.unique(EMOJI.style):
        maps = [pictures_of(things, style) for things in (new, known)]
        alike.append(maps[0] @ maps[1].T)
    assert np.nanmax(alike) < 0.5 and np.nanmean(alike, axis=0).max() < 0.3


def pictures_of(things, style):
    """Where a style's drawings of things have edges, NaN where it draws a thing not."""
    rows = [np.flatnonzero((EMOJI.thing == thing) & (EMOJI.style == style)) for thing in things]
    drawn = [len(row) > 0 for row in rows]
    maps = np.full((len(things), 31 * 31), np.nan)
    maps[drawn] = build.edge_maps(EMOJI.pictures[np.concatenate(rows)])
    return maps


@pytest.mark.parametrize(
    "name, n_new, n_known", [("animals", 10, 40), ("animals 2", 10, 40), ("objects", 9, 100)]
)
def test_multiclass_tasks(name, n_new, n_known):
    """New, other and known things are no two alike; priors know other cues, and train on other drawings."""
    task, other = load_task(name), load_task(name, True)
    check_task(task, n_new, n_known)
    check_task(other, n_new, n_known)
    new, second, known = map(thing_of, (np.unique(task.y), np.unique(other.y), task.prior_names))
    check_unlike(new, np.concatenate([second, known]))
    check_unlike(second, known)
    every = np.concatenate([new, second, known])
    assert np.unique(EMOJI.family[every]).size == every.size == 2 * n_new + n_known
    assert not np.isin(every, pictures.word_things()).any()
    assert_array_equal(np.unique(task.y, return_counts=True)[1], 8 * exp.N_VIEWS)
    assert_array_equal(EMOJI.names[EMOJI.thing[task.drawing]], task.y)
    name = name.removesuffix(" 2")  # another choice of the new animals
    kinds = {EMOJI.subgroup[thing].partition("-")[0] for thing in every[: 2 * n_new]}
    assert kinds == {"animals": {"animal"}, "objects": {"animal", "plant", "transport"}}[name]
    for prior, (_, cues, size) in zip(task.priors, TASKS[name].models, strict=True):
        assert len(prior.classes) == size and prior.name.endswith(f" on {', '.join(cues)}")
        assert {task.data.feature_names[c].rpartition(" ")[0] for c in prior.columns} == set(cues)
        assert not set(prior.columns) & set(task.columns)  # other cues than the new task's
    trained = np.concatenate([prior.train for prior in task.same_priors])
    bank = KernelBank([("all", RBF(), slice(None))], task.data.X[np.ix_(trained, task.columns)])
    assert np.isclose(bank.triples[0][1].scale, task.width)


def test_binary_tasks():
    """Targets share a background, those that parameters are chosen on another; no two things are alike."""
    among, other = binary_targets(), binary_targets(others=True)
    assert (len(among), len(other)) == (30, 6) and not set(among) & set(other)
    one, two, chosen_on = (binary_task(name) for name in (*among[:2], other[0]))
    for target, task in ((among[0], one), (other[0], chosen_on)):
        check_task(task, 2, 29)
        assert task.prior_names == tuple([name for name in among if name != target][:29])
        names = EMOJI.names[EMOJI.thing[task.drawing]]
        assert_array_equal(task.y, names == target)
        assert np.bincount(task.y).tolist() == [exp.BACKGROUND_THINGS * exp.N_VIEWS, 8 * exp.N_VIEWS]
        background = np.unique(names[task.y == 0])
        families = EMOJI.family[thing_of([*background, *among, *other])]
        assert np.unique(families).size == families.size
        others = [name for name in (*among, *other) if name != target]
        check_unlike(thing_of([target]), thing_of(others))
        behind = [set(EMOJI.names[task.data.y[prior.train]]) - set(prior.classes) for prior in task.priors]
        assert behind == behind[:1] * 29 and len(behind[0]) == 84 and not behind[0] & {target, *background}
        for prior in task.priors:  # its own thing is the positive one
            own = task.data.y[prior.train] == thing_of(prior.classes)[0]
            assert prior.scores(task.data.X[prior.train[own]]).mean() > 0.0
    assert_array_equal(one.rows[one.y == 0], two.rows[two.y == 0])
    assert one.width == two.width == chosen_on.width and not set(one.rows) & set(chosen_on.rows)


def test_draws():
    """Drawings are on one side; a smaller draw is a part of a larger one; no second view before a first."""
    task = load_task("animals")
    train, test = draw(task, 20, 7)
    assert not np.intersect1d(task.drawing[train], task.drawing[test]).size
    assert_array_equal(np.sort(np.concatenate([train, test])), np.arange(len(task.y)))
    assert_array_equal(np.unique(task.y[test], return_counts=True)[1], 3 * exp.N_VIEWS)
    few, judged = draw(task, 5, 7)
    assert_array_equal(few, train[:50])
    assert_array_equal(judged, test)
    assert np.unique(task.drawing[few]).size == 50
    assert np.unique(task.y[train[:10]]).size == 10  # one of each class in turn
    assert not np.array_equal(draw(task, 20, 8)[1], test)
    task = binary_task(binary_targets()[0])
    train, test = draw(task, {0: 80, 1: 3}, 0)
    assert np.bincount(task.y[train]).tolist() == [80, 3]
    assert np.unique(task.drawing[train]).size == 83  # of as many things
    assert not np.intersect1d(task.drawing[train], task.drawing[test]).size


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
    assert draw(task, 99, 0)[0].size == 10 * 50 and draw(choosing, 99, 0)[0].size == 10 * 32

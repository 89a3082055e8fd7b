"""Transfer tasks: disjoint rows and classes, shapes, the same numbers again, what priors know."""

import os
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

from cuelearn.datasets import AWA_TEST_CLASSES, DataFileError
from cuelearn.experiments.mktl import (
    BACKGROUND,
    TASKS,
    binary_targets,
    binary_task,
    draw,
    draw_binary,
    load_task,
    tasks,
)
from cuelearn.experiments.protocol import load_set
from cuelearn.kernels import RBF, KernelBank
from cuelearn.mkl import AverageKernelSVM

REAL = Path(os.environ.get("CUELEARN_DATA", "/nowhere"))
awa_there = pytest.mark.skipif(
    not any((REAL / place / "awa_subset.npz").is_file() for place in ("", "awa")), reason="AwA is not there"
)
MULTICLASS = [
    pytest.param("letter", tuple("EGHIMPQRV"), tuple("BCDFJNOUWYAKLSTXZ"), 10, 7, id="letter"),
    pytest.param("mfeat", tuple("3589"), tuple("012467"), 6, 76, id="mfeat"),
]


def check_task(task, n_classes, n_priors, pool_rows, test_rows):
    """What holds for every task."""
    n = len(task.X)
    assert task.X.dtype == task.scores.dtype == task.same.dtype == np.float64
    assert task.scores.shape == task.same.shape == (n, n_priors)
    assert len(task.prior_names) == len(set(task.prior_names)) == n_priors
    assert task.y.shape == task.rows.shape == (n,) and np.unique(task.y).size == n_classes
    assert np.isfinite(task.X).all() and np.isfinite(task.scores).all() and np.isfinite(task.same).all()
    assert np.array_equal(np.sort(np.concatenate([task.pool, task.test])), np.arange(n))
    assert np.unique(task.rows).size == n
    assert np.array_equal(task.X, task.data.X[np.ix_(task.rows, task.columns)])
    for models, scores in ((task.priors, task.scores), (task.same_priors, task.same)):
        assert sum((prior.classes for prior in models), ()) == task.prior_names
        rows = np.r_[0:5, n - 5 : n]
        again = np.hstack([prior.scores(task.data.X[task.rows[rows]]) for prior in models])
        assert_allclose(again, scores[rows], rtol=1e-3, atol=1e-3)  # sums of float32 kernels times C
        for prior in models:
            assert not np.intersect1d(prior.train, task.rows).size
            assert np.unique(prior.train).size == prior.train.size
    assert task.pool.size == sum(pool_rows) and task.test.size == n_classes * test_rows
    for rows, sizes in ((task.pool, sorted(pool_rows)), (task.test, [test_rows] * n_classes)):
        assert sorted(np.unique(task.y[rows], return_counts=True)[1].tolist()) == sizes
    for prior in task.same_priors:  # one kernel and one width for all, as Multi-KT asks
        assert [kernel for _, kernel, _ in prior.model.kernels] == [RBF(gamma=task.gamma)]
        assert prior.columns == task.columns
    trained = np.unique(np.concatenate([prior.train for prior in task.same_priors]))
    bank = KernelBank([("all", RBF(), slice(None))], task.data.X[np.ix_(trained, task.columns)])
    if len(task.same_priors) < 20:  # binary tasks count the target's samples too: all 25 share one width
        assert np.isclose(bank.triples[0][1].gamma, task.gamma)


@pytest.mark.parametrize("name, new, old, n_first, n_columns", MULTICLASS)
def test_multiclass_tasks(name, new, old, n_first, n_columns):
    task = load_task(name)
    check_task(task, len(new), len(old), [TASKS[name].pool_rows] * len(new), TASKS[name].test_rows)
    assert task.X.shape[1] == n_columns and task.n_first == n_first
    assert tuple(np.unique(task.y)) == tuple(sorted(new)) and task.prior_names == old
    names = np.array(task.data.target_names)
    assert np.array_equal(names[task.data.y[task.rows]], task.y)
    for prior in (*task.priors, *task.same_priors):
        seen = names[task.data.y[prior.train]]
        assert set(seen) == set(prior.classes) and not set(seen) & set(new)
        assert np.unique(seen, return_counts=True)[1].tolist() == [TASKS[name].prior_rows] * len(
            prior.classes
        )
        assert tuple(prior.model.classes_) == prior.classes  # a column is the class that it is named after
    assert not any(
        set(prior.columns) & set(task.columns) for prior in task.priors
    )  # other cues than the new task's
    assert [prior.name.split(" on ")[0] for prior in task.priors][:2] == ["boosted trees", "SVM"]
    if task.data.test is not None:
        official = set(task.data.test.tolist())
        assert set(task.rows[task.test].tolist()) <= official
        assert not set(task.rows[task.pool].tolist()) & official
        assert not any(set(prior.train.tolist()) & official for prior in task.priors)


@pytest.mark.parametrize("name, new, old, n_first, n_columns", MULTICLASS)
def test_priors_know_their_own_classes(name, new, old, n_first, n_columns):
    task = load_task(name)
    for prior in (*task.priors, *task.same_priors):
        assert prior.accuracy > 0.6 > 2.0 / len(prior.classes) - 0.1
        assert 1 < len(getattr(prior.model, "estimators_", (0, 0))) and prior.accuracy <= 1.0
    for prior in task.priors:
        if hasattr(prior.model, "estimators_"):
            # boosting did not end after a tree that fits all
            assert len(prior.model.estimators_) == tasks.N_TREES


def test_the_mean_of_kernels_is_what_the_svm_priors_use():
    prior = load_task("letter").priors[1]
    data = load_set("letter")
    kernels = [("box", RBF(), slice(0, 5)), ("edges", RBF(), slice(12, 16))]
    model = AverageKernelSVM(kernels, C=tasks.PRIOR_C).fit(
        data.X[prior.train], np.array(data.target_names)[data.y[prior.train]]
    )
    assert_allclose(model.decision_function(data.X[:50]), prior.scores(data.X[:50]), atol=1e-3)


def same(one, two):
    return all(
        np.array_equal(getattr(one, field), getattr(two, field))
        for field in ("X", "y", "scores", "same", "rows", "pool", "test")
    )


def test_the_same_numbers_again():
    before = load_task("mfeat"), load_task("letter"), binary_task("A")
    assert load_task("mfeat") is before[0]
    for function in (load_task, binary_task, tasks._shared):
        function.cache_clear()
    after = load_task("mfeat"), load_task("letter"), binary_task("A")
    for one, two in zip(before, after, strict=True):
        assert one is not two and same(one, two) and one.gamma == two.gamma


# --- binary ----------------------------------------


@pytest.mark.parametrize("target", ["A", "G", "I", "Z"])
def test_binary_tasks(target):
    task = binary_task(target)
    check_task(task, 2, 24, [tasks.POOL_ROWS, tasks.BACKGROUND_ROWS], tasks.TEST_ROWS)
    letters = np.array(list("ABCDEFGHIJKLMNOPQRSTUVWXYZ"))
    assert task.prior_names == tuple(letters[(letters != target) & (letters != BACKGROUND)])
    assert task.n_first == 24 and task.X.shape[1] == 16
    assert task.scores is task.same and task.priors is task.same_priors and task.y.dtype == np.int64
    assert np.array_equal(task.y, (letters[task.data.y[task.rows]] == target).astype(int))
    assert set(letters[task.data.y[task.rows]]) == {target, BACKGROUND}
    background = [prior.train[letters[task.data.y[prior.train]] == BACKGROUND] for prior in task.priors]
    assert (
        all(np.array_equal(rows, background[0]) for rows in background)
        and background[0].size == tasks.PRIOR_ROWS
    )
    for prior, name in zip(task.priors, task.prior_names, strict=False):
        assert (
            set(letters[task.data.y[prior.train]]) == {name, BACKGROUND}
            and prior.train.size == 2 * tasks.PRIOR_ROWS
        )
        assert prior.accuracy > 0.85
        assert prior.scores(task.data.X[prior.train]).mean(axis=0)[0] == pytest.approx(0.0, abs=0.5)


def test_scores_of_a_binary_prior_are_positive_on_its_own_letter():
    task = binary_task("A")
    data = task.data
    for prior in task.priors:  # letters before and after the background in the alphabet
        own = data.y[data.test] == data.target_names.index(prior.classes[0])
        assert np.mean(prior.scores(data.X[data.test[own]][:40]) > 0) > 0.8


def test_targets_share_the_background_and_the_priors():
    assert len(binary_targets()) == 25 and BACKGROUND not in binary_targets()
    one, two = binary_task("B"), binary_task("C")
    assert np.array_equal(one.rows[one.y == 0], two.rows[two.y == 0]) and one.gamma == two.gamma
    assert one.priors[one.prior_names.index("Z")] is two.priors[two.prior_names.index("Z")]
    column = [task.scores[task.y == 0][:, task.prior_names.index("Z")] for task in (one, two)]
    assert np.array_equal(*column)


# --- draws ----------------------------------------


def test_draws():
    task = load_task("mfeat")
    rows = draw(task, 5, 0)
    assert rows.size == 20 == np.unique(rows).size and set(rows) <= set(task.pool)
    assert np.unique(task.y[rows], return_counts=True)[1].tolist() == [5] * 4
    assert np.array_equal(draw(task, 3, 0), rows[:12]) and not np.array_equal(draw(task, 5, 1), rows)
    assert np.unique(draw(task, 100, 0)).size == task.pool.size


def test_binary_draws():
    task = binary_task("A")
    rows = draw_binary(task, 3, 20, 0)
    assert task.y[rows].tolist() == [1] * 3 + [0] * 20
    assert np.unique(rows).size == 23 and set(rows) <= set(task.pool)
    more = draw_binary(task, 5, 30, 0)
    assert np.array_equal(more[:3], rows[:3]) and np.array_equal(more[5:25], rows[3:])
    assert not np.array_equal(draw_binary(task, 3, 20, 1), rows)


# --- errors ----------------------------------------


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: load_task("digits"), "name must be one of"),
        (lambda: binary_task("H"), "target must be one of"),
        (lambda: binary_task("h"), "target must be one of"),
        (lambda: draw(load_task("mfeat"), 101, 0), "n_per_class must be at most 100"),
        (lambda: draw_binary(binary_task("A"), 101, 5, 0), "n_positive must be at most 100"),
        (lambda: draw_binary(binary_task("A"), 3, 301, 0), "n_negative must be at most 300"),
    ],
)
def test_wrong_arguments(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_awa_that_is_not_there(monkeypatch, tmp_path):
    monkeypatch.setenv("CUELEARN_DATA", str(tmp_path))
    for function in (load_set, load_task):
        function.cache_clear()
    with pytest.raises(DataFileError, match="'awa' was not found"):
        load_task("awa")


@awa_there
def test_awa():
    task = load_task("awa")
    check_task(task, 10, 40, [50] * 10, 50)
    assert set(TASKS) == {"letter", "mfeat", "awa"} and task.n_first == 40 and task.X.shape == (1000, 252)
    assert set(task.y) == set(AWA_TEST_CLASSES) and not set(task.prior_names) & set(AWA_TEST_CLASSES)
    prior, own = task.priors[0], task.same_priors[0]
    assert prior.accuracy > 4 / 40 and own.accuracy > 2 / 40
    assert {task.data.feature_names[c].split()[0] for c in prior.columns} == {"rgsift", "surf"}
    assert prior.scores(task.data.X[:3]).shape == (3, 40)

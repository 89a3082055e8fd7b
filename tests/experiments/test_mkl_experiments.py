"""The protocols of the MKL chapter."""

import numpy as np
from numpy.testing import assert_allclose

from companion import mkl as exp
from companion import pictures, protocol
from companion.mkl import rivals, runs
from cuelearn.datasets import EMOJI_CUES
from cuelearn.kernels import RBF, KernelBank, distance_matrix
from cuelearn.mkl.optimum.problem import MKLProblem


def test_objects_split_by_drawing_and_smaller_parts_are_nested():
    n = np.arange(3 * 8 * 2)
    shown = exp.Pictures(None, n // 16, list("abc"), n // 2, n // 2, n % 2)
    train, test = exp.picture_split(shown, "objects", 10, 0)
    assert np.bincount(shown.labels[train]).tolist() == [10] * 3
    assert np.bincount(shown.labels[test]).tolist() == [3] * 3 and (shown.view[test] == 0).all()
    assert not set(shown.drawing[train]) & set(shown.drawing[test])
    fewer, same = exp.picture_split(shown, "objects", 2, 0)
    assert np.array_equal(same, test) and set(fewer) < set(train) and (shown.view[fewer] == 0).all()
    assert not np.array_equal(exp.picture_split(shown, "objects", 10, 1)[1], test)


def test_categories_are_tested_on_things_never_seen():
    names, things = exp.category_things(30)
    assert things.shape == (30, 8) and len(set(names)) == 30
    emoji = pictures.emoji()
    assert (emoji.subgroup[things] == np.array(names)[:, None]).all()
    assert np.unique(emoji.family[things]).size == things.size  # no two of a family
    assert not np.isin(things, pictures.word_things()).any()
    n = np.arange(2 * 8 * 5)
    shown = exp.Pictures(None, n // 40, list("ab"), n // 5, n, np.zeros_like(n))
    train, test = exp.picture_split(shown, "categories", 30, 0)
    assert (train.size, test.size) == (60, 20) and not set(shown.group[train]) & set(shown.group[test])
    assert set(exp.picture_split(shown, "categories", 7, 0)[0]) < set(train)


def test_kernels_of_pictures_have_the_mean_rule(monkeypatch):
    X = np.random.default_rng(0).random((4 * 8, len(EMOJI_CUES), 3)).astype(np.float32)
    distances = np.stack([distance_matrix(x, "sqeuclidean") for x in X.transpose(1, 0, 2)])
    n = np.arange(32)
    shown = exp.Pictures(distances, n // 8, list("abcd"), n, n, np.zeros_like(n))
    monkeypatch.setattr(exp, "load_pictures", lambda *key: shown)
    load = exp.load_picture_task.__wrapped__
    task = load("objects-4", 20, 5, 3)
    train, test = exp.picture_split(shown, "objects", 5, 3)
    assert task.bank.names == list(EMOJI_CUES) and task.test_labels.size == 5 and task.n_classes == 4
    inside = distances[7][np.ix_(train, train)]
    mean = inside.sum() / (20 * 19)
    assert_allclose(task.bank.stack[7], np.exp(-inside / mean), atol=1e-5)
    (_, across), *_ = task.cross.blocks()
    assert_allclose(across[7], np.exp(-distances[7][np.ix_(test[:5], train)] / mean), atol=1e-5)
    assert np.array_equal(task.groups, shown.group[train])
    assert load("pyramid-4", 20, 5, 3).bank.names == list(exp.PYRAMID)
    for count in (35, 1400):
        many = load("objects-4-1400", 20, 5, 3, count).bank
        assert many.n_kernels == count and len(set(many.names)) == count
    monkeypatch.setattr(exp, "described_pictures", lambda *key: (None, shown))
    monkeypatch.setattr(exp, "_distances", lambda _, rows: distances[:, rows][:, :, rows])
    among = exp.kernels_among(["HSV 1x1", "average"], "objects", 4, 2)
    assert among["HSV 1x1"].shape == (16, 16) and np.allclose(np.diag(among["average"]), 1)


def test_splits_are_stratified_disjoint_and_seeded():
    task = exp.load_task("mfeat-6", 100, 300, 3)
    assert np.bincount(task.labels).tolist() == [10] * 10 and task.test_labels.size == 300
    again = exp.load_task.__wrapped__("mfeat-6", 100, 300, 3)
    assert np.array_equal(task.bank.stack, again.bank.stack) and np.array_equal(task.labels, again.labels)
    fewer_tests = exp.load_task("mfeat-6", 100, 5, 3)
    assert np.array_equal(task.bank.stack, fewer_tests.bank.stack)  # scaled by the training part only
    other = exp.load_task("mfeat-6", 100, 300, 4)
    assert not np.array_equal(task.labels, other.labels)


def test_leaves_have_three_samples_a_species_and_wider_kernels_are_larger():
    task = exp.get_task("leaves-18", 300, 10_000, 0)
    assert np.bincount(task.labels).tolist() == [3] * 100 and task.test_labels.size == 1300
    sums = task.bank.stack.sum(axis=(1, 2)).reshape(3, 2, 3)  # cue, distance, width
    assert (np.diff(sums, axis=2) > 0).all()


def test_a_loss_that_no_kernel_can_end_does_not_keep_a_run_from_converging(monkeypatch):
    X = np.random.default_rng(0).normal(size=(30, 2))
    labels, X[:2] = np.arange(30) % 3, X[0]
    bank = KernelBank([("a", RBF(), [0]), ("b", RBF(scale=0.01), [1])], X)
    assert runs.alike(bank, labels) == 2 and runs.alike(bank, np.zeros(30)) == 0
    task = protocol.Task(bank, labels, bank.cross(X), labels, 3)
    monkeypatch.setattr(runs, "loaded", lambda seed, p, **where: (task, MKLProblem(bank, labels, 3, p=p)))
    found = runs.online_run(1.5, 5, 400, 0)
    assert found["converged"] and found["alike"] == 2 and found["visits"] == 30 * found["epochs"] < 30 * 400
    monkeypatch.setattr(runs, "alike", lambda *_: 0)
    never = runs.online_run(1.5, 5, 400, 0)
    assert not never["converged"] and never["epochs"] == 400 and never["updates"] > found["updates"]


def test_a_visit_reads_the_rows_of_all_kernels_and_an_update_once_more():
    where = {"task": "mfeat-6", "n_train": 60, "n_test": 300}
    found = runs.two_stages(1.25, 10.0, 3, 1e-9, 0, **where)
    visits = found["rows"] / 6 - found["updates"]
    assert visits % 60 == 0 and found["rows"] > found["online_rows"] > 0
    curve = runs.training_curve("UFOMKL", 4, 0, 10.0, 1.25, **where)
    assert (curve["rows"] == 6 * (curve["step"] + curve["n_updates"])).all()
    many = runs.many_kernels("UFOMKL", 10.0, 4, 0, at=(2, 4), **where)
    assert many["rows"] == 6 * (4 * 60 + many["n_updates"])
    middle, end = many["clock"]
    assert end["rows"] == many["rows"] > middle["rows"] > 0 and end["seconds"] >= middle["seconds"] > 0


def test_rows_of_batch_methods_follow_their_svms():
    """With all weights equal a round is one combination for all classes, and one read for the norms."""
    where = {"task": "mfeat-6", "n_train": 60, "n_test": 300}
    one = rivals.rival_curve("LpMKL", {"C": 10.0, "p": 2.0}, 0, **where)
    assert (one["rows"] == 2 * 60 * 6 + 2 * one["n_updates"]).all() and len(one) == 1
    more = rivals.rival_curve("SILPMKL", {"C": 10.0}, 0, **where)
    assert more["rows"].is_monotonic_increasing and len(more) > 1

"""Protocols of the OMCL chapter."""

import itertools

import numpy as np
import pytest

from companion import omcl as exp
from companion import pictures
from companion.plots import omcl as draw
from companion.run.claims import Verdict
from cuelearn import datasets


def drives(per_sequence=10):
    rows = itertools.product(pictures.WEATHERS, (1, 2), (1, 2), range(per_sequence))
    names = ("weather", "session", "repeat", "time")
    frames = {name: np.array(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)}
    return frames | {"sequence": np.repeat(np.arange(12), per_sequence)}


@pytest.mark.parametrize("k", range(12))
def test_split_of_drives_is_chronological_and_tests_the_counterparts(k):
    frames = drives()
    split = pictures.idol2_split(frames, k)
    assert split.train.size == split.test.size == 60 and not set(split.train) & set(split.test)
    assert (np.diff(frames["session"][split.train]) >= 0).all()
    sequences = frames["sequence"][split.train]
    assert np.count_nonzero(np.diff(sequences)) == 5 and np.unique(sequences).size == 6
    for s in np.unique(sequences):
        assert (np.diff(frames["time"][split.train][sequences == s]) > 0).all()
    for key in ("weather", "session"):  # each teaching sequence has its counterpart in the test set
        assert sorted(frames[key][split.train]) == sorted(frames[key][split.test])
    assert split.rounds.size == 30 and split.rounds[-1] == 60  # six sequences in five subsequences
    assert sorted([*split.inner, *split.held]) == list(range(60))
    permutations = {pictures.idol2_permutation(k) for k in range(12)}
    assert permutations == set(itertools.product(itertools.permutations(range(3)), (1, 2)))


def test_object_splits_never_show_a_test_object():
    """Nor one thing in two drawings, where a category has several things."""
    y = np.repeat(np.arange(3), (4 * 8, 2 * 8, 8))  # of four things, of two, of one; each of eight drawings
    things, objects = np.arange(y.size) // 8, np.arange(y.size)
    for k in range(5):
        for given in (None, things):
            split = pictures.object_split(y, objects, k, seed=0, things=given)
            parts = split.train[split.inner], split.train[split.held], split.test
            assert np.bincount(y[split.train]).tolist() == [6, 6, 6]
            assert not set(parts[0]) & set(parts[1]) and not set(split.train) & set(split.test)
        inner, held, test = parts
        assert np.bincount(y[test]).tolist() == [8, 8, 2]  # a whole thing, where there are several
        several = y < 2
        assert not {*things[split.train][several[split.train]]} & {*things[test][several[test]]}
        first = y == 0
        assert not {*things[inner][first[inner]]} & {*things[held][first[held]]}


def test_validation_uses_no_test_sample():
    digits = pictures.table_task(datasets.load_mfeat(), 100, 200, range(1), seed=0)
    split = digits.splits[0]
    X, y = digits.data.X.copy(), digits.data.y.copy()
    X[split.test] = y[split.test] = 0
    spoilt = digits._replace(data=digits.data._replace(X=X, y=y))
    runs = [pictures.Permutation(task, split) for task in (digits, spoilt)]
    chosen, same = map(exp.choose_parameters, runs)
    assert chosen == same


def test_drawings():
    """Those that no figure of a run at the smoke profile draws."""
    parts = (Verdict("omcl-1", "holds", number=-0.1, low=-0.2, high=0.0),)
    parts += (Verdict("omcl-1", "open", number=-0.1),)  # of a single run
    verdicts = draw.verdict_parts([Verdict("omcl-1", "holds", parts=parts)])
    for fig in (draw.idea_layers(), draw.idea_projection(), verdicts):
        assert all(ax.has_data() and ax.get_title() for ax in fig.axes)

"""Protocols of the OMCL chapter."""

import itertools

import numpy as np
import pytest

from companion import cue_tasks
from companion import omcl as exp
from companion.plots import omcl as draw
from companion.run.claims import Verdict
from companion.run.sweep import Sweep
from cuelearn import datasets


def drives(per_sequence=10):
    rows = itertools.product(cue_tasks.WEATHERS, (1, 2), (1, 2), range(per_sequence))
    names = ("weather", "session", "repeat", "time")
    frames = {name: np.array(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)}
    return frames | {"sequence": np.repeat(np.arange(12), per_sequence)}


@pytest.mark.parametrize("k", range(12))
def test_split_of_drives_is_chronological_and_tests_the_counterparts(k):
    frames = drives()
    split = cue_tasks.idol2_split(frames, k)
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
    permutations = {cue_tasks.idol2_permutation(k) for k in range(12)}
    assert permutations == set(itertools.product(itertools.permutations(range(3)), (1, 2)))


def test_object_splits_never_show_a_test_object():
    """Nor one thing in two drawings, where a category has several things."""
    y = np.repeat(np.arange(3), (4 * 8, 2 * 8, 8))  # of four things, of two, of one; each of eight drawings
    things, objects = np.arange(y.size) // 8, np.arange(y.size)
    for k in range(5):
        for given in (None, things):
            split = cue_tasks.object_split(y, objects, k, seed=0, things=given)
            parts = split.train[split.inner], split.train[split.held], split.test
            assert np.bincount(y[split.train]).tolist() == [6, 6, 6]
            assert not set(parts[0]) & set(parts[1]) and not set(split.train) & set(split.test)
        inner, held, test = parts
        assert np.bincount(y[test]).tolist() == [8, 8, 2]  # a whole thing, where there are several
        several = y < 2
        assert not {*things[split.train][several[split.train]]} & {*things[test][several[test]]}
        first = y == 0
        assert not {*things[inner][first[inner]]} & {*things[held][first[held]]}


@pytest.fixture(scope="module")
def digits():
    return cue_tasks.table_task(datasets.load_mfeat(), 100, 200, range(2), seed=0)


@pytest.fixture(scope="module")
def results(digits, tmp_path_factory):
    return exp.run_all(Sweep(tmp_path_factory.mktemp("runs"), "runs"), [digits], 0.01)


def test_runs_say_what_they_chose_and_test_every_method(results):
    chosen, curves = results["chosen"], results["curves"]
    assert (chosen["eta fac, sparser"] >= chosen["eta fac"]).all() and len(chosen) == 2
    methods = {"OMCL-BM", "OMCL-BM sparser", "OMCL-PERC", "Flat", "Flat maps", "Vote", "cue: fac"}
    assert methods <= set(curves["method"]) and curves["test_error"].between(0, 1).all()
    ends = curves[curves["method"] == "OMCL-PERC"].groupby("permutation")["test_error"]
    assert (ends.last() < 0.6 * ends.first()).all()


def test_validation_uses_no_test_sample(digits, results):
    X, y = digits.data.X.copy(), digits.data.y.copy()
    X[digits.splits[0].test] = y[digits.splits[0].test] = 0
    spoilt = digits._replace(data=digits.data._replace(X=X, y=y))
    run = cue_tasks.Permutation(spoilt, digits.splits[0])
    chosen, first = exp.choose_parameters(run), results["chosen"].iloc[0]
    assert (chosen["C"], chosen["flat"]) == (first["C"], first["flat"])
    for cue, eta in zip(run.cues, chosen["eta"]["OMCL-BM"], strict=True):
        assert (eta, chosen["factors"][cue]) == (first[f"eta {cue}"], first[f"width {cue}"])
    assert chosen["eta"]["Flat"] == first["eta Flat"] and chosen["eta"]["Flat maps"] == first["eta Flat maps"]


def test_drawings():
    """Those that no figure of a run at the smoke profile draws."""
    parts = (("digits, cue: fac", Verdict("omcl-1", "holds", -0.1, -0.2, 0.0)),)
    parts += (("digits, Vote", Verdict("omcl-1", "undecided", -0.1)),)  # of a single run
    verdicts = draw.verdict_parts([Verdict("omcl-1", "holds", parts=parts)])
    for fig in (draw.idea_layers(), draw.idea_projection(), verdicts):
        assert all(ax.has_data() and ax.get_title() for ax in fig.axes)

"""Protocols of the OMCL chapter: permutations, choices, and what the measured theorem must say."""

import itertools
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from companion import cue_tasks, pictures, protocol
from companion import omcl as exp
from companion.plots import omcl as draw
from companion.run.claims import Verdict
from companion.run.sweep import Sweep
from cuelearn import datasets
from cuelearn.omcl import KernelPerceptron


def drives(per_sequence=10):
    rows = [
        (4 * w + 2 * (session - 1) + repeat - 1, weather, session, repeat, t)
        for w, weather in enumerate(cue_tasks.WEATHERS)
        for session in (1, 2)
        for repeat in (1, 2)
        for t in range(per_sequence)
    ]
    names = ("sequence", "weather", "session", "repeat", "time")
    return {name: np.array(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)}


def test_permutations_of_drives_are_the_twelve_of_the_thesis():
    found = {cue_tasks.idol2_permutation(k) for k in range(12)}
    assert found == set(itertools.product(itertools.permutations(range(3)), (1, 2)))
    assert {cue_tasks.idol2_permutation(k)[1] for k in range(2)} == {1, 2}  # a short run has both


@pytest.mark.parametrize("k", range(12))
def test_split_of_drives_is_chronological_and_tests_the_counterparts(k):
    frames = drives()
    split = cue_tasks.idol2_split(frames, k)
    assert split.train.size == split.test.size == 60 and not set(split.train) & set(split.test)
    assert (np.diff(frames["session"][split.train]) >= 0).all()
    sequences = frames["sequence"][split.train]
    assert (
        len({s for s, _ in itertools.groupby(sequences)}) == 6 == sum(1 for _ in itertools.groupby(sequences))
    )
    for s in np.unique(sequences):
        assert (np.diff(frames["time"][split.train][sequences == s]) > 0).all()
    for key in ("weather", "session"):  # each teaching sequence has its counterpart in the test set
        assert sorted(frames[key][split.train]) == sorted(frames[key][split.test])
    assert split.rounds.size == 30 and split.rounds[-1] == 60  # six sequences in five subsequences
    assert sorted([*split.inner, *split.held]) == list(range(60))
    assert np.unique(sequences[split.held]).size == 1


def parts(split):
    return split.train[split.inner], split.train[split.held], split.test


def test_object_split_never_shows_a_test_object():
    y, objects = np.repeat(np.arange(3), 10 * 4), np.tile(np.repeat(np.arange(1, 11), 4), 3)
    splits = [cue_tasks.object_split(y, objects, k, seed=0) for k in range(5)]
    for split in splits:
        seen = [set(zip(y[rows], objects[rows], strict=True)) for rows in parts(split)]
        assert [len(found) for found in seen] == [15, 6, 9] and not set.union(*seen) ^ {*zip(y, objects)}
        assert split.train.size + split.test.size == y.size
    assert len({tuple(split.test) for split in splits}) == 5


def test_things_that_test_are_never_shown():
    y = np.repeat(np.arange(3), (4 * 8, 2 * 8, 8))  # of four things, of two, of one; each of eight drawings
    things, objects = np.arange(y.size) // 8, np.arange(y.size)
    for k in range(5):
        split = cue_tasks.object_split(y, objects, k, seed=0, things=things)
        inner, held, test = parts(split)
        assert np.bincount(y[split.train]).tolist() == [6, 6, 6]
        assert np.bincount(y[test]).tolist() == [8, 8, 2]  # a whole thing, where there are several
        several = y < 2
        assert not {*things[split.train][several[split.train]]} & {*things[test][several[test]]}
        first = y == 0
        assert not {*things[inner][first[inner]]} & {*things[held][first[held]]}
        few = cue_tasks.object_split(y, objects, k, seed=0, n_learn=3, things=things)
        assert np.bincount(y[few.train]).tolist() == [3, 3, 3]


def test_emoji_stand_for_the_objects_of_eth80():
    images = cue_tasks.emoji_objects(2, 0)
    assert images.target_names == list(cue_tasks.OBJECTS) and images.masks is not None
    named = {name.rpartition(",")[0] for name in images.frames["name"]}
    assert named == {thing for things in cue_tasks.OBJECTS.values() for thing in things}
    assert np.unique(images.frames["object"][images.y == images.target_names.index("tomato")]).size == 8
    shown = exp.sheet(images, 8)
    assert (images.y[shown] == np.arange(8)[:, None]).all() and (images.frames["view"][shown] == 0).all()
    task = cue_tasks.object_task(images, range(2), seed=0)
    by_thing = cue_tasks.thing_task(task, images.frames, range(2), seed=0)
    for where, columns, alone in ((task, "object", range(8)), (by_thing, "family", (1, 2, 3, 4, 5))):
        for split in where.splits.values():
            assert np.bincount(images.y[split.train]).tolist() == [12] * 8  # six drawings, two views
            told = {*images.frames[columns][split.train][np.isin(images.y[split.train], alone)]}
            assert not told & {*images.frames[columns][split.test][np.isin(images.y[split.test], alone)]}


def test_categories_are_tested_on_things_never_seen():
    task = cue_tasks.category_task(3, 6, range(2), seed=0)
    data, split = task.data, task.splits[0]
    assert data.target_names == ["animal-mammal", "clothing", "transport-ground"]
    assert list(data.cues) == list(cue_tasks.CATEGORY_CUES) == list(task.distances)
    assert np.bincount(data.y[split.train]).tolist() == [6, 6, 6] and split.test.size > 100
    groups = pictures.categories()
    assert len(groups) == 30 and min(map(len, groups.values())) == 9
    families = pictures.emoji().family[np.concatenate(list(groups.values()))]
    assert np.unique(families).size == families.size


@pytest.fixture(scope="module")
def digits():
    return cue_tasks.table_task(datasets.load_mfeat(), 100, 200, range(2), seed=0)


@pytest.fixture(scope="module")
def results(digits, tmp_path_factory):
    return exp.run_all(Sweep(tmp_path_factory.mktemp("runs"), "runs"), [digits], 0.01)


def test_runs_say_what_they_chose_and_test_every_method(results):
    chosen, curves = results["chosen"], results["curves"]
    assert {"permutation", "C", "flat", "eta Flat", "eta Flat maps", "width fac"} <= set(chosen)
    assert (chosen["eta fac, sparser"] >= chosen["eta fac"]).all() and len(chosen) == 2
    methods = {"OMCL-BM", "OMCL-BM sparser", "OMCL-PERC", "Flat", "Flat maps", "Vote", "cue: fac"}
    assert methods <= set(curves["method"])
    assert curves["test_error"].between(0, 1).all()
    assert (curves.groupby(["permutation", "method"]).size() == 20).all()
    learnt = (
        curves[curves["method"] == "OMCL-PERC"].sort_values("n_seen").groupby("permutation")["test_error"]
    )
    assert (learnt.last() < 0.6 * learnt.first()).all()
    assert len(results["finals"]) == 2 * 10 * curves["method"].nunique()


def test_bounds_of_theorem_3_1_hold_on_every_run(results):
    table = results["theorem"].dropna(subset="bound")
    assert (table["measured"] <= table["bound"]).all() and len(table) == 4


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


def test_tables_carry_ours_and_the_papers_numbers(digits, results):
    table = draw.error_table(results, digits.data.target_names, list(digits.data.cues), ("OMCL-BM", "Vote"))
    expected = [f"cue: {cue}" for cue in digits.data.cues] + ["OMCL-BM", "Vote", "Vote, ties"]
    assert list(table.index) == expected
    classes = table[digits.data.target_names].drop("Vote, ties")
    assert np.allclose(classes.mean(axis=1), table.drop("Vote, ties")["ALL"])
    for name, classes in (("thesis-tab-3.1", 5), ("thesis-tab-3.2", 8)):
        paper = protocol.printed(name).set_index("method")
        assert paper.shape[1] == classes + 1
        assert np.allclose(paper.iloc[:, :-1].mean(axis=1), paper["ALL"], atol=0.6)  # the thesis rounds


def test_first_layer_scores_reproduce_the_votes(digits):
    run = cue_tasks.Permutation(digits, digits.splits[0])
    model = exp.two_layers(1.0, 2)
    stack, _ = run.kernels(["fac", "mor"], {"fac": 1.0, "mor": 1.0})
    model.partial_fit(stack, run.labels, classes=np.arange(10))
    scores = model.first_layer_scores()
    assert scores.shape == (2, run.labels.size, 10)
    wrong = scores[0].argmax(axis=1) != run.labels
    assert (model.learners_[0].online_errors_ >= wrong).all()  # ties count as mistakes besides


def test_the_most_confused_pair_of_a_cue_is_read_off_the_runs(results, digits):
    shared = np.eye(10)
    shared[0, 1], shared[1, 0], shared[0, 0], shared[1, 1] = 0.4, 0.2, 0.6, 0.8
    found = {f"cue: {cue}": np.eye(10) for cue in digits.data.cues} | {"OMCL-BM": shared / 2}
    found["cue: fac"] = shared
    zeros, ones = (np.flatnonzero(digits.data.y == c) for c in (0, 1))
    X = np.abs(digits.data.X)
    X[zeros[3]] = X[ones[5]]
    task = digits._replace(data=digits.data._replace(X=X))
    images = SimpleNamespace(frames={"view": np.zeros(digits.data.y.size)})
    pairs = exp.confused_pairs([found], task, images).set_index("cue")
    assert pairs.loc["fac", ["first", "second"]].tolist() == digits.data.target_names[:2]
    assert pairs.loc["fac", ["image", "other"]].tolist() == [zeros[3], ones[5]]
    assert np.allclose(pairs.loc["fac", ["fac", "fou", "OMCL-BM"]].astype(float), [0.3, 0.0, 0.15])
    for run in results["confusions"]:  # rows add up to 1, but for ties of the vote
        assert np.allclose(run["OMCL-BM"].sum(axis=1), 1) and (run["Vote"].sum(axis=1) <= 1 + 1e-12).all()


def test_three_levels_are_measured_on_the_kernels_of_a_task(digits):
    table = exp.integration_run(0, digits, n_epochs=2)
    assert table["level"].tolist() == ["low", "middle", "middle", "high"]
    assert table["test_error"].between(0, 0.3).all()


def test_confusions_are_drawn_as_they_were_counted(results, digits):
    names, cues = digits.data.target_names, list(digits.data.cues)
    runs = results["confusions"]
    table = draw.confusion_table(runs, cues, names).set_index(["category", "taken for"])
    fig = draw.confusions(runs, cues, names)
    shown = [np.asarray(ax.images[0].get_array()) for ax in fig.axes[: len(cues) + 1]]
    for picture, column in zip(shown, table, strict=True):
        assert np.allclose(picture.ravel(), 100 * table[column])
    assert np.isclose(table.loc[(names[3], names[5]), "OMCL-BM"], np.mean([r["OMCL-BM"][3, 5] for r in runs]))
    pair = {"cue": "fac", "first": "0", "second": "1", "image": 0, "other": 1, "fac": 0.3, "OMCL-BM": 0.1}
    fig = draw.what_cues_confuse(pd.DataFrame([pair]), np.zeros((2, 8, 8, 3), np.uint8))
    first, second, bars = fig.axes
    assert (first.get_title(), second.get_title()) == ("0", "1")
    assert np.allclose([bar.get_width() for bar in bars.patches], [30, 10])


def test_a_piece_of_a_stream_may_hold_few_samples_of_many_classes(digits, recwarn):
    model = KernelPerceptron().partial_fit(digits.data.X[:24], np.arange(24), classes=np.arange(30))
    assert model.n_seen_ == 24 and not [w for w in recwarn if "unique classes" in str(w.message)]


def test_differences_are_drawn_run_by_run_and_the_papers_end_points_beside(results, digits):
    table, cues = results["curves"].copy(), list(digits.data.cues)
    table.loc[table["permutation"] == 1, "n_seen"] += 3  # as where drives differ in length
    fig = draw.learning_curves(table, cues, pd.Series({"OMCL-BM": 6.4, f"cue: {cues[0]}": 17.4}))
    _, test, difference, _ = fig.axes
    ends = table.groupby(["permutation", "method"])["test_error"].last().unstack()
    drawn = {line.get_label(): line.get_ydata() for line in difference.lines}
    assert len(drawn["Vote"]) == 20
    assert np.isclose(drawn["Vote"][-1], 100 * (ends["Vote"] - ends["OMCL-BM"]).mean())
    marks = [
        line.get_ydata()[0] for line in test.lines if line.get_marker() == "D" and len(line.get_ydata()) == 1
    ]
    assert marks == [6.4, 17.4]
    assert [ax.get_title() for ax in draw.support_sizes({"a": table, "b": table}).axes] == ["a", "b"]


def test_distances_are_made_once_and_where_they_are_used(monkeypatch):
    task, made = cue_tasks.table_task(datasets.load_htad(), 60, 40, range(1), 0), []
    true = cue_tasks.squared_distances
    monkeypatch.setattr(cue_tasks, "squared_distances", lambda *both: made.append(1) or true(*both))
    run = cue_tasks.Permutation(task, task.splits[0])
    run.choose_widths(["vectors", "vectors scaled"])
    assert len(made) == 2  # the tests' are those of one of the two alone
    for _ in range(2):
        inside, across = run.kernels(["vectors scaled"], {"vectors scaled": 2.0})
    assert len(made) == 3 and inside.shape[1:] == (60, 60) and across.shape[1:] == (40, 60)


def test_parts_of_a_verdict_are_drawn_with_their_intervals():
    parts = (
        ("digits, cue: fac", Verdict("omcl-1", "holds", -0.1, -0.2, 0.0)),
        ("one run", Verdict("omcl-1", "undecided", 0.3)),
    )
    (ax,) = draw.verdict_parts([Verdict("omcl-1", "holds", parts=parts)]).axes
    assert [label.get_text() for label in ax.get_yticklabels()] == ["digits, fac", "one run"]
    assert np.allclose(ax.lines[0].get_xdata(), [-20, 0]) and np.allclose(ax.lines[2].get_xdata(), 30)


def test_ideas_are_drawn_from_a_few_numbers(digits, results):
    assert len(draw.idea_layers().axes) == 1 and len(draw.idea_projection().axes) == 2
    assert f"{len(results['chosen'])} permutations" in draw.caption(digits, results)

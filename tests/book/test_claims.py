"""Verdicts follow mechanically from measurements, and no claim is ever lost from the book."""

import importlib
import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from companion.run import claims as book_claims
from companion.run.claims import (
    VERDICTS,
    All,
    Bound,
    Each,
    Mean,
    NotJudged,
    Results,
    Slope,
    Time,
    Verdict,
    claim,
    claims,
    combine,
    first_in_bold,
    judge,
    judge_part,
    learnt,
    number_text,
)
from companion.run.figures import FigureStore
from companion.run.records import read_parts, read_verdicts
from companion.run.verdicts import ClaimBook, before_and_after
from companion.study import interval

LOW, HIGH = [1.0, 1.1, 0.9, 1.05], [2.0, 2.2, 1.9, 2.1]
NOISE = np.array([-2, 3, -3, 2, 1, -1, 2, -2])
EQUAL = np.full(8, 0.30)


def part(values, baseline=None, about=(), **options):
    return judge_part(Mean("", "points", values, baseline, **options), "om2-4", **dict(about))


def slope(x, y, runs, **options):
    return judge_part(Slope("", "", y, x, units=runs, **options))


def bounded(values, bound, **about):
    return judge_part(Bound("", "", values, bound), **about)


def test_a_difference_is_paired_and_has_students_interval():
    assert part(LOW, HIGH, at_most=0.0)[5:8] == tuple(interval(np.subtract(LOW, HIGH)))
    ratio = part([10, 12, 11], [1, 1, 1], ratio=True, at_least=5)
    assert ratio.number == pytest.approx((10 * 12 * 11) ** (1 / 3))


ELEVEN = ([10, 12, 11], [1, 1, 1])


@pytest.mark.parametrize(
    "values, baseline, options, expected",
    [
        (LOW, None, {"at_most": 1.95}, "holds"),
        (HIGH, None, {"at_most": 1.0}, "fails"),
        (LOW, None, {"at_least": 1.0}, "open"),
        ([0, 0, 0], None, {"at_most": 0}, "holds"),
        (HIGH, LOW, {"at_most": 0.0}, "fails"),
        (HIGH, LOW, {"at_most": 2}, "holds"),  # worse, but by less than 2
        (LOW, HIGH, {"at_most": -2}, "holds, smaller"),  # better, but not by 2
        (LOW, HIGH, {"at_most": -1.0}, "open"),
        (HIGH, LOW, {"at_most": -2}, "fails"),
        (LOW, LOW, {"at_most": 0.0}, "fails"),  # equal is not better
        (LOW, LOW, {"at_least": -0.1, "at_most": 0.1}, "holds"),
        ([1, 2, 3], [2, 1, 3], {"at_least": -0.1, "at_most": 0.1}, "open"),
        (*ELEVEN, {"ratio": True, "at_least": 5, "at_most": 100}, "holds"),
        (*ELEVEN, {"ratio": True, "at_least": 20, "at_most": 100}, "fails"),
        (*ELEVEN, {"ratio": True, "at_least": 11, "at_most": 100}, "open"),
        # a difference from equal methods below a point decides, on either side of zero
        (EQUAL + NOISE / 1000, EQUAL, {"at_most": 0.0}, "fails"),
        (EQUAL + NOISE / 1000, EQUAL, {"at_least": 0.0}, "fails"),
        (EQUAL + NOISE / 1000, EQUAL, {"at_most": 0.0, "relevant": 0.0}, "open"),
        (EQUAL - 0.005 + NOISE / 1000, EQUAL, {"at_most": 0.0}, "holds, smaller"),  # small, and there
        (EQUAL - 0.005 + NOISE / 1000, EQUAL, {"at_most": 0.0, "relevant": 0.002}, "holds"),
        # so does a ratio about one where a saving that matters is stated
        (100 + NOISE, 0 * NOISE + 100, {"ratio": True, "at_most": 1.0, "relevant": 0.1}, "fails"),
        (95 + NOISE, 0 * NOISE + 100, {"ratio": True, "at_most": 1.0, "relevant": 0.1}, "holds, smaller"),
        (95 + 5 * NOISE, 0 * NOISE + 100, {"ratio": True, "at_most": 1.0, "relevant": 0.1}, "open"),
    ],
)
def test_means_differences_and_ratios(values, baseline, options, expected):
    assert part(values, baseline, **options).verdict == expected
    single = part([1], None if baseline is None else [5], **options)
    assert single.verdict == "open" and "no interval" in single.text and single.n == 1
    empty = part([], None if baseline is None else [], **options)
    assert empty.verdict == "open" and empty.text == "No run is left to judge by."


def test_slopes_are_those_of_runs():
    x = np.tile([1.0, 2, 4, 8], 3)
    exponents = np.repeat([0.9, 1.0, 1.1], 4)
    runs = np.repeat(["a", "b", "c"], 4)
    linear = {"at_least": 0.5, "at_most": 1.5}
    verdict = slope(x, 5 * x**exponents, runs, **linear)
    assert verdict.verdict == "holds" and verdict.n == 3 and verdict.number == pytest.approx(1.0)
    assert verdict[5:8] == pytest.approx(tuple(interval([0.9, 1.0, 1.1])))
    assert slope(x, x ** (1 + exponents), runs, **linear).verdict == "fails"
    logarithm = slope(x, 2 + 3 * exponents * np.log(x), runs, at_least=2.2, log_y=False)
    assert logarithm.verdict == "holds" and logarithm.number == pytest.approx(3.0)
    kept = (runs != "c") | (x < 4)
    verdict = slope(x[kept], 5 * x[kept] ** exponents[kept], runs[kept], **linear)
    assert verdict.n == 2 and "1 of 3 runs have fewer than three points" in verdict.text
    alone = slope(x[:4], 5 * x[:4] * [1.1, 1.0, 0.9, 1.0], runs[:4], **linear)
    assert alone.verdict == "open" and alone.n == 1  # points of one run are no units
    assert slope([1, 2], [1, 2], [0, 0], at_least=1).text == "No run is left to judge by."


def test_bound():
    assert bounded([1, 2], [1.5, 2]).verdict == "holds"
    broken = bounded([1, 2], [1.5, 1])
    assert broken.verdict == "fails" and broken.number == 2 and "1 of 2" in broken.text and broken.low is None
    assert bounded([0, 1], [0, 2]).number == 0.5
    assert bounded([1], [0]).verdict == "fails"
    assert bounded([1, 2], 2).verdict == "holds"  # one bound for all


@pytest.mark.parametrize(
    "values, options, message",
    [
        ([0, 1], {"baseline": [1, 1], "ratio": True, "at_most": 1}, "positive"),
        ([1, 1], {"baseline": [1, 1], "ratio": True}, "give at_least"),
        (LOW, {"at_least": 0, "units": [0, 1]}, "does not match length"),
        ([np.nan], {"at_most": 1}, "finite"),
        ([1, 2], {"baseline": [1, np.inf], "at_most": 1}, "finite"),
    ],
)
def test_wrong_measurements_are_refused(values, options, message):
    with pytest.raises(ValueError, match=message):
        part(values, **options)


@given(st.lists(st.floats(-100, 100), min_size=2, max_size=8), st.floats(-100, 100))
def test_verdict_and_interval_never_disagree(values, bound):
    verdict = part(values, at_most=bound)
    assert verdict.verdict in VERDICTS
    assert (verdict.verdict == "holds") == (verdict.high <= bound)
    assert (verdict.verdict == "fails") == (verdict.low >= bound and verdict.high > bound)
    assert part([-v for v in values], at_least=-bound).verdict == verdict.verdict


YES = bounded([1], [2], data="a")
NO = bounded([3], [2], data="b")


@pytest.fixture
def rows(monkeypatch):
    """Sets the headline of two claims and the data sets that decide."""

    def write(headline, decides):
        table = claims()
        table.loc[["obs-2", "om2-1"], ["headline", "decides"]] = headline, decides
        monkeypatch.setattr(book_claims, "claims", lambda chapter=None: table)

    return write


def alone(verdict, claim):
    """The verdict on a claim of one part."""
    return verdict._replace(claim=claim, parts=(verdict,))


def parts_of(verdicts):
    """Parts called "sooner on objects" and so on."""
    parts = []
    for name, verdict in verdicts.items():
        says, on = name.split(" on ")
        parts.append(verdict._replace(says=says, on=on))
    return parts


def test_the_headline_decides(rows):
    rows("sooner", "objects; scenes")
    unsure = part([0, 5], at_most=1)
    parts = parts_of({"as good on objects": NO, "sooner on scenes": NO, "sooner on objects": YES})
    found = combine("obs-2", parts, "A text.")
    assert (found.verdict, found.number, found.on, found.text) == ("holds", 0.5, "objects", "A text.")
    assert found.sets() == "objects: holds; scenes: fails" and found.holding() == "1 of 3"
    assert [row["is"] for row in found.part_rows()] == ["headline", "", ""]
    assert combine("obs-2", parts[:2]).verdict == "fails"  # on the next data set that is there
    assert combine("obs-2", parts[:1]).verdict == "not judged"
    # a sentence of two things holds where both do
    rows("sooner; as good", "objects")
    assert combine("obs-2", parts).number == 1.5
    rows("*", "all")
    open_one = combine("obs-2", parts_of({"a on x": YES, "b on y": unsure}))
    assert (open_one.verdict, open_one.on, open_one.number) == ("open", "y", 2.5)
    assert combine("obs-2", parts_of({"a on x": NO, "b on y": unsure})).verdict == "fails"


@pytest.mark.parametrize(
    "less, options, expected",
    [
        (0.05, {}, "better"),
        (-0.05, {}, "worse"),
        (-0.05, {"at_most": -0.2}, "worse"),  # whatever the margin
        (0.002, {}, "level"),
        (0.002, {"relevant": 0.0005}, "better"),
        (0.01, {}, "open"),  # that it is a point is not certain, nor that it is less
        (-0.05, {"at_most": 0.1}, "holds"),  # that it is not much worse: a verdict
        (0.05, {"at_least": -0.1, "at_most": 0.1}, "holds"),
    ],
)
def test_how_two_methods_compare(less, options, expected):
    noise = NOISE / (100 if less == 0.01 else 10_000)
    judged = part(EQUAL - less + noise, EQUAL, **{"at_most": 0.0, **options})
    assert judged.standing == expected


def test_what_one_learns_has_the_numbers_of_parts(rows, monkeypatch):
    rows("sooner", "objects")
    table = book_claims.claims()
    sentence = "{objects:times} times; {sooner on scenes:.2f}; {error:points}, {error on scenes:size}."
    table.loc["obs-2", "learnt"] = sentence
    verdicts = {"sooner on objects": 0.25, "sooner on scenes": 3.0, "error on scenes": -0.0123}
    parts = parts_of({name: YES._replace(number=number) for name, number in verdicts.items()})
    found = combine("obs-2", parts)
    assert learnt(found._replace(profile="full")) == "4 times; 3.00; -1.2, 1.2."
    assert learnt(found) == ""  # its words are those for the full results
    assert learnt(combine("obs-2", parts[:1])._replace(profile="full")) == ""


def test_all_of_many_parts(runs):
    """It holds where each does; it fails where one does by Bonferroni's rule."""
    results, _ = runs
    good = [Mean(f"{k}", "points", LOW, at_most=2.0) for k in range(3)]
    found = results.judge(All("each", parts=good))
    assert (found.says, found.verdict) == ("each", "holds") and "3 of 3 hold" in found.text
    barely = Mean("barely", "points", [1.0, 1.1, 1.2, 1.05, 1.3], at_most=0.96)
    assert results.judge(barely).verdict == "fails"
    found = results.judge(All("each", parts=[*good, barely]))
    assert found.verdict == "open" and "not as one of 4" in found.text
    assert results.judge(All("each", parts=[*good, Mean("", "", HIGH, at_most=1.0)])).verdict == "fails"


def timed(seconds, rival, counts, **claimed):
    ours, theirs = counts
    counts = {"counts": ours, "baseline_counts": theirs, "counted": "kernel rows"}
    return judge_part(Time("", "", seconds, rival, **counts, **{"at_most": 1.0, **claimed}))


TIMES = np.array([10.0, 11.0, 9.0, 10.5])


@pytest.mark.parametrize(
    "factor, claimed, expected",
    [
        (0.7, {}, "holds"),
        (0.9, {}, "fails"),  # less than a factor 1.25 is none
        (1.5, {}, "fails"),
        (0.095, {"at_most": 0.1}, "holds"),  # ten times as fast
        (0.115, {"at_most": 0.1}, "fails"),
        (9.0, {"at_least": 10.0, "at_most": None}, "fails"),
        (1.1, {"at_most": 1.25}, "holds"),  # as fast as
        (1.4, {"at_most": 1.25}, "fails"),
    ],
)
def test_less_than_a_factor_is_no_difference_of_times(factor, claimed, expected):
    jitter = factor * (1 + NOISE[:4] / 1000)
    found = timed(jitter * TIMES, TIMES, (jitter * TIMES, TIMES), **claimed)
    assert (found.verdict, found.count.verdict) == 2 * (expected,)


@pytest.mark.parametrize(
    "measure, limits, text, wanted",
    [
        ("error of A minus B", {"at_most": 0.0}, "-2.0 points (-2.1 to -1.9)", "below 0"),
        ("accuracy of A", {"at_least": -0.95}, "-2.0% (-2.1 to -1.9)", "at least -95.0%"),
        (
            "exponent in N of the error",
            {"at_least": -1, "at_most": 1},
            "-0.02 (-0.0209 to -0.0191)",
            "-1 to 1",
        ),
    ],
)
def test_numbers_are_shown_in_their_unit_beside_what_was_wanted(measure, limits, text, wanted):
    values = -0.02 + np.array([-0.001, 0.0, 0.001, 0.001, -0.001, 0.0])
    found = judge_part(Mean("", measure, values, np.zeros(6), **limits))
    assert (number_text(found, " ({} to {})"), found.wanted) == (text, wanted)


def test_the_clock_decides_with_the_count_beside():
    found = timed(TIMES / 3, TIMES[::-1], (15 * TIMES, TIMES))
    assert (found.verdict, found.count.verdict, found.count.measure) == ("holds", "fails", "kernel rows")
    assert found.count.number == pytest.approx(15)


def test_where_a_method_counts_nothing_the_clock_decides():
    found = timed(TIMES / 3, TIMES, (TIMES * np.nan, TIMES))
    assert (found.verdict, found.count) == ("holds", None)
    with pytest.raises(ValueError, match="finite"):
        timed(TIMES / 3, TIMES, (np.where(TIMES > 10, np.nan, TIMES), TIMES))


def test_books_list_every_claim_of_a_chapter_and_share_the_files(tmp_path):
    book = ClaimBook(FigureStore("smoke", tmp_path))
    table = read_verdicts(tmp_path)
    assert list(table["id"]) == list(claims("mkl").index) and set(table["verdict"]) == {"not judged"}
    about = {"data": "Pendigits", "profile": "smoke"}
    verdict = part(LOW, HIGH, at_most=0.0, text="One | pipe.", about=about)
    book.record(alone(verdict, "om2-4"))
    ClaimBook(FigureStore("smoke", tmp_path, chapter="oks")).record(alone(NO, "oks-5"))
    table = read_verdicts(tmp_path).set_index("id")
    assert len(table) == len(claims("mkl")) + len(claims("oks"))
    row = table.loc["om2-4"]
    assert (row["verdict"], row["n"], row["profile"]) == ("holds", "4", "smoke")
    assert row["low"] < row["number"] < 0
    text = (tmp_path / "claims.md").read_text()
    assert f"1 holds; 1 fails; {len(table) - 2} not judged" in text and "One \\| pipe" in text
    ClaimBook(FigureStore("smoke", tmp_path))  # a new run has judged none
    table = read_verdicts(tmp_path).set_index("id")
    assert table.loc["om2-4", "verdict"] == "not judged" and table.loc["oks-5", "verdict"] == "fails"
    for name, message in (("obs-99", "chapter mkl; did you mean obs-9"), ("oks-1", "not among the claims")):
        with pytest.raises(ValueError, match=message):
            book.record(Verdict(name, "holds", data="a"))


BUNDLED = {"name": "Pendigits", "tier": "bundled"}
FLOWERS = {"name": "Flowers-17", "tier": "original"}
MADE = {"name": "streams", "tier": "generated", "word": "simulated"}


def test_judged_by_the_tables_beside_the_figures(tmp_path, monkeypatch, rows):
    """The same verdict from the files as when they were written, with unit, data and tier of the figure."""
    importlib.import_module("companion.mkl.claims")  # whose own stands aside for this test
    monkeypatch.setitem(book_claims._JUDGES, "om2-1", None)
    numbers = np.random.default_rng(0).normal(1.0, 0.1, 5)

    rows("a", "Pendigits; streams")

    @claim("om2-1", "thesis-fig-4.1")
    def om2_1(results):
        values = results.table("thesis-fig-4.1")["x"]
        yield Mean("a", "points", values, at_least=0.5, of="Pendigits", unit="row")
        yield Mean("a", "points", values, at_least=2.0, of="streams")
        yield "Of all parts."

    store = FigureStore("quick", tmp_path, chapter="mkl")
    store.save_table(pd.DataFrame({"x": numbers}), "thesis-fig-4.1", provenance=[BUNDLED, MADE])
    book = ClaimBook(store)
    (verdict,) = book.judge("om2-1")
    again = judge("om2-1", tmp_path)
    assert again == verdict and again.profile == "quick"
    assert verdict.verdict == "holds" and verdict.sets() == "Pendigits: holds; streams: fails"
    assert verdict.number == numbers.mean() and verdict.unit == "row" and verdict.n == 5
    assert verdict.text == "Of all parts."
    parts = read_parts(tmp_path)
    assert parts["on"].tolist() == ["Pendigits", "streams"]
    assert parts["tier"].tolist() == ["bundled", "simulated"] and parts["is"].tolist() == ["headline", ""]
    assert float(parts["needed"][0]) == pytest.approx(verdict.needed) and 0 < verdict.needed < 5
    ClaimBook(FigureStore("quick", tmp_path, chapter="oks"))
    assert len(read_parts(tmp_path)) == 2  # of another chapter's book they stay
    shown = verdict._repr_markdown_()
    assert "**Holds** (om2-1)." in shown and "1 of 2 parts hold" in shown and "| **a** | Pendigits |" in shown
    counts = {"counts": 15 * TIMES + numbers[:4], "baseline_counts": TIMES, "counted": "rows"}
    timed = Time("a", "CPU seconds", TIMES / 3, TIMES, at_most=1.0, of="Pendigits", **counts)
    claim("om2-1", "thesis-fig-4.1")(lambda results: [timed])
    book.judge("om2-1")
    row = read_parts(tmp_path).iloc[0]
    assert (row["verdict"], row["count_verdict"], row["counted"]) == ("holds", "fails", "rows")
    assert 15 < float(row["count_low"]) < float(row["count_number"]) < 16
    text = (tmp_path / "claims.md").read_text()
    row = "| holds | 0.333 (0.333 to 0.333): CPU seconds | at most 0.8 | Pendigits: better | 1 of 1 |"
    assert row in text
    monkeypatch.delitem(book_claims._JUDGES, "om2-1")
    assert judge("om2-1", tmp_path).verdict == "not judged"


def test_original_data_beside_the_results(tmp_path, rows, runs, monkeypatch):
    """Those that lie in the same directory are judged with the others, and decide where they come first."""
    importlib.import_module("companion.mkl.claims")
    monkeypatch.setitem(book_claims._JUDGES, "om2-1", None)
    rows("a", "Flowers-17; Pendigits")
    for place, record, value in (("", BUNDLED, 1.0), ("original", FLOWERS, 3.0)):
        store = FigureStore("quick", tmp_path / place, chapter="mkl")
        table = pd.DataFrame({"x": value + np.arange(3) / 100})
        store.save_table(table, "thesis-fig-4.1", provenance=[record])
    claim("om2-1", "thesis-fig-4.1", Mean("a", "points", "x", at_most=2.0), table="thesis-fig-4.1")
    found = judge("om2-1", tmp_path)
    assert (found.verdict, found.on) == ("fails", "Flowers-17")
    assert found.sets() == "Flowers-17: fails; Pendigits: holds"
    assert first_in_bold(found.sets(), "om2-1") == "**Flowers-17: fails**; Pendigits: holds"
    (tmp_path / "original" / "thesis-fig-4.1.csv").unlink()
    assert judge("om2-1", tmp_path).on == "Pendigits"


@pytest.fixture
def runs(tmp_path):
    """Results of one figure: errors of three methods on two data sets, in three draws, each of two looks."""
    cells = itertools.product(("yeast", "emoji"), (0, 1, 2), (10, 20), ("OM2", "cue: a", "cue: b"))
    table = pd.DataFrame(cells, columns=["name", "seed", "n_seen", "method"])
    table["error"] = np.arange(len(table)) / 100
    table["mistakes"] = 7 * table["seed"] + table["n_seen"]
    store = FigureStore("quick", tmp_path, chapter="mkl")
    store.save_table(table, "thesis-fig-4.1", provenance=[BUNDLED, MADE])
    results = Results(tmp_path, "om2-1")
    results.figure = "thesis-fig-4.1"
    return results, table


def last(table, name, method):
    return table.query("name == @name and method == @method and n_seen == 20")["error"].tolist()


def test_rows_are_parts_of_every_group_and_choice(runs):
    results, table = runs
    part = Mean("{name}: {a} below {b_title}", "of {a} minus {b}", "{a}", "{b}", at_most=0.0)
    each = Each(part, by="name", where="n_seen == 20", wide="error", a="cue: *", b={"OM2": "OM-2"})
    parts = each.declared(results)
    assert [part.says for part in parts] == [
        f"{name}: cue: {cue} below OM-2" for name in ("yeast", "emoji") for cue in "ab"
    ]  # in order of appearance
    assert parts[1].measure == "of cue: b minus OM2"
    assert parts[3].values.tolist() == last(table, "emoji", "cue: b")
    assert parts[3].baseline.tolist() == last(table, "emoji", "OM2")
    assert (parts[3].at_most, parts[3].units) == (0.0, None)
    with pytest.raises(ValueError, match="duplicate"):  # both looks
        Each(part, wide="error", a=["cue: a"], b={"OM2": ""}, where="name == 'yeast'").declared(results)
    with pytest.raises(ValueError, match="no rows are left where method == 'SILP'"):
        Each(Mean("", "", "error"), where="method == '{a}'", a=["OM2", "SILP"]).declared(results)
    with pytest.raises(ValueError, match="has the rows of that one"):
        Each(Each(part, table="thesis-fig-4.2"), by="name")
    assert Each(part, where="n_seen > 20").declared(results) == []


def test_pairs_of_which_one_is_lost(runs):
    results, table = runs
    kept = table[(table["seed"] < 2) | (table["method"] != "OM2")].query("name == 'yeast' and n_seen == 10")
    how = {"table": lambda results: kept, "wide": "error"}
    pair = Mean("", "", "OM2", "cue: a", units="seed", text="More.", at_most=0.0)
    (part,) = Each(pair, lost="draws without one", **how).declared(results)
    assert part.text == "Left out (1): draws without one. More."
    assert part.units.tolist() == [0, 1] and len(part.values) == len(part.baseline) == 2
    (part,) = Each(pair, lost="", **how).declared(results)
    assert part.text == "More."
    (part,) = Each(pair, **how).declared(results)
    with pytest.raises(ValueError, match="finite"):
        judge_part(part)


def test_a_claim_has_rows_texts_and_a_function(runs, rows, monkeypatch):
    results, table = runs
    importlib.import_module("companion.mkl.claims")  # whose own stands aside for this test
    monkeypatch.setitem(book_claims._JUDGES, "om2-1", None)

    rows("error", "objects")
    each = Mean("error", "", "error", at_most=1.0, on="{name}")

    @claim("om2-1", "thesis-fig-4.1", each, "A text.", by="name")
    def _(results):
        yield NotJudged("later")
        yield "Another."

    found = judge("om2-1", results.directory)
    assert (found.verdict, found.on, found.text) == ("holds", "objects", "A text. Another.")
    assert [(part.says, part.on) for part in found.parts[:2]] == [("error", "yeast"), ("error", "objects")]
    assert found.parts[2].verdict == "not judged"
    with pytest.raises(ValueError, match="two parts of the claim om2-1 say the same"):
        claim("om2-1", "thesis-fig-4.1", Mean("of {method}", "", "error", at_most=1.0), by="name")
        judge("om2-1", results.directory)


def test_before_and_after(tmp_path):
    for name, verdict in (("before", NO), ("after", YES)):
        book = ClaimBook(FigureStore("quick", tmp_path / name))
        book.record(alone(verdict, "obs-2"))
    table = before_and_after(tmp_path / "before", tmp_path / "after")
    assert "| obs-2 | fails | holds | 1.5 | 0.5 |" in table


def test_what_a_claim_cannot_be_judged_by(tmp_path):
    with pytest.raises(ValueError, match="did you mean om2-1"):
        judge("om-1", tmp_path)
    found = Results(tmp_path, "om2-1")
    with pytest.raises(FileNotFoundError, match="om2-1 is judged by thesis-fig-4.1.csv, which is not in"):
        found.table("thesis-fig-4.1")
    FigureStore("quick", tmp_path).save_table(
        pd.DataFrame({"x": [1]}), "thesis-fig-4.1", provenance=[BUNDLED]
    )
    with pytest.raises(ValueError, match="no data set of thesis-fig-4.1 begins with 'HTAD'; there are: Pen"):
        found.about("thesis-fig-4.1", of="HTAD")

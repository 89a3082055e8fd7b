"""Verdicts follow mechanically from measurements, and no claim is ever lost from the book."""

import importlib
import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ttest_1samp

from companion.run import claims as book_claims
from companion.run.claims import (
    RELEVANT,
    VERDICTS,
    Bound,
    Each,
    Mean,
    Results,
    Slope,
    Time,
    Verdict,
    claim,
    claims,
    combine,
    judge,
    judge_part,
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
    assert part(LOW, HIGH, at_most=0.0)[2:5] == tuple(interval(np.subtract(LOW, HIGH)))
    ratio = part([10, 12, 11], [1, 1, 1], ratio=True, at_least=5)
    assert ratio.number == pytest.approx((10 * 12 * 11) ** (1 / 3))


ELEVEN = ([10, 12, 11], [1, 1, 1])


@pytest.mark.parametrize(
    "values, baseline, options, expected",
    [
        (LOW, None, {"at_most": 1.95}, "holds"),
        (HIGH, None, {"at_most": 1.0}, "fails"),
        (LOW, None, {"at_least": 1.0}, "undecided"),
        ([0, 0, 0], None, {"at_most": 0}, "holds"),
        (HIGH, LOW, {"at_most": 0.0}, "fails"),
        (HIGH, LOW, {"at_most": 2}, "holds"),  # worse, but by less than 2
        (LOW, HIGH, {"at_most": -2}, "holds, smaller"),  # better, but not by 2
        (LOW, HIGH, {"at_most": -1.0}, "undecided"),
        (HIGH, LOW, {"at_most": -2}, "fails"),
        (LOW, LOW, {"at_most": 0.0}, "fails"),  # equal is not better
        (LOW, LOW, {"at_least": -0.1, "at_most": 0.1}, "holds"),
        ([1, 2, 3], [2, 1, 3], {"at_least": -0.1, "at_most": 0.1}, "undecided"),
        (*ELEVEN, {"ratio": True, "at_least": 5, "at_most": 100}, "holds"),
        (*ELEVEN, {"ratio": True, "at_least": 20, "at_most": 100}, "fails"),
        (*ELEVEN, {"ratio": True, "at_least": 11, "at_most": 100}, "undecided"),
        # a difference from equal methods below a point decides, on either side of zero
        (EQUAL + NOISE / 1000, EQUAL, {"at_most": 0.0}, "fails"),
        (EQUAL + NOISE / 1000, EQUAL, {"at_least": 0.0}, "fails"),
        (EQUAL + NOISE / 1000, EQUAL, {"at_most": 0.0, "relevant": 0.0}, "undecided"),
        (EQUAL - 0.005 + NOISE / 1000, EQUAL, {"at_most": 0.0}, "holds, smaller"),  # small, and there
        (EQUAL - 0.005 + NOISE / 1000, EQUAL, {"at_most": 0.0, "relevant": 0.002}, "holds"),
        # so does a ratio about one where a saving that matters is stated
        (100 + NOISE, 0 * NOISE + 100, {"ratio": True, "at_most": 1.0, "relevant": 0.1}, "fails"),
        (95 + NOISE, 0 * NOISE + 100, {"ratio": True, "at_most": 1.0, "relevant": 0.1}, "holds, smaller"),
        (95 + 5 * NOISE, 0 * NOISE + 100, {"ratio": True, "at_most": 1.0, "relevant": 0.1}, "undecided"),
    ],
)
def test_means_differences_and_ratios(values, baseline, options, expected):
    assert part(values, baseline, **options).verdict == expected
    single = part([1], None if baseline is None else [5], **options)
    assert single.verdict == "undecided" and "no interval" in single.text and single.n == 1
    empty = part([], None if baseline is None else [], **options)
    assert empty.verdict == "undecided" and empty.text == "No run is left to judge by."


def test_slopes_are_those_of_runs():
    x = np.tile([1.0, 2, 4, 8], 3)
    exponents = np.repeat([0.9, 1.0, 1.1], 4)
    runs = np.repeat(["a", "b", "c"], 4)
    linear = {"at_least": 0.5, "at_most": 1.5}
    verdict = slope(x, 5 * x**exponents, runs, **linear)
    assert verdict.verdict == "holds" and verdict.n == 3 and verdict.number == pytest.approx(1.0)
    assert verdict[2:5] == pytest.approx(tuple(interval([0.9, 1.0, 1.1])))
    assert slope(x, x ** (1 + exponents), runs, **linear).verdict == "fails"
    logarithm = slope(x, 2 + 3 * exponents * np.log(x), runs, at_least=2.2, log_y=False)
    assert logarithm.verdict == "holds" and logarithm.number == pytest.approx(3.0)
    kept = (runs != "c") | (x < 4)
    verdict = slope(x[kept], 5 * x[kept] ** exponents[kept], runs[kept], **linear)
    assert verdict.n == 2 and "1 of 3 runs have fewer than three points" in verdict.text
    alone = slope(x[:4], 5 * x[:4] * [1.1, 1.0, 0.9, 1.0], runs[:4], **linear)
    assert alone.verdict == "undecided" and alone.n == 1  # points of one run are no units
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


def test_p_is_that_of_the_t_test():
    for bound in (0.5, 1.0, 1.05):
        expected = ttest_1samp(LOW, bound).pvalue
        assert part(LOW, at_most=bound).p == pytest.approx(expected)
        assert part(LOW, at_least=bound).p == pytest.approx(expected)
    # of the side that the verdict took: that the gain is below a point too is not what is claimed
    small = np.array([1, 2, 3, 2, 1, 3, 2, 2]) / 1000
    holds = part(small, 0 * small, at_least=0.0)
    assert holds.verdict == "holds, smaller" and holds.p == pytest.approx(ttest_1samp(small, 0.0).pvalue)
    fails = part(small - 0.002, 0 * small, at_least=0.0)
    assert fails.verdict == "fails" and fails.p == pytest.approx(ttest_1samp(small - 0.002, RELEVANT).pvalue)


YES = bounded([1], [2], data="a")
NO = bounded([3], [2], data="b")


def test_combine():
    unsure = part([0, 5], at_most=1)
    assert combine("obs-2", {"x": YES, "y": YES}).verdict == "holds"
    mixed = combine("obs-2", {"x": YES, "y": NO}, open_parts=["z"])
    assert mixed.verdict == "mixed" and mixed.data == "a; b" and mixed.number == 1.5  # of what fails
    assert combine("obs-2", {"y": NO, "z": unsure}).verdict == "fails"
    still_open = combine("obs-2", {"x": YES}, open_parts=["SimpleMKL"])
    assert still_open.verdict == "undecided" and "Open: SimpleMKL" in still_open.text
    assert "1 of 1 comparisons above the bound)" in mixed.text  # what is said of a part stands with it
    assert "more runs would decide)" in combine("obs-2", {"y": NO, "z": unsure}).text
    undecided = combine("obs-2", {"x": YES, "y": unsure})
    assert undecided.verdict == "undecided" and undecided.number == 2.5 and undecided.claim == "obs-2"


def test_parts_that_hold_by_less_than_counts():
    smaller = part(EQUAL - 0.005 + NOISE / 1000, EQUAL, at_most=0.0)
    found = combine("obs-2", {"x": YES, "y": smaller})
    assert (found.verdict, found.bundled, found.number) == (*2 * ["holds, smaller"], smaller.number)
    assert combine("obs-2", {"y": smaller, "z": NO}).verdict == "mixed"


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
        (0.115, {"at_most": 0.1}, "holds"),  # ten times as fast, up to the factor
        (0.15, {"at_most": 0.1}, "fails"),
        (9.0, {"at_least": 10.0, "at_most": None}, "holds"),
        (1.1, {"at_most": 1.25}, "holds"),  # as fast as
        (1.4, {"at_most": 1.25}, "fails"),
    ],
)
def test_less_than_a_factor_is_no_difference_of_times(factor, claimed, expected):
    jitter = factor * (1 + NOISE[:4] / 1000)
    found = timed(jitter * TIMES, TIMES, (jitter * TIMES, TIMES), **claimed)
    assert (found.verdict, found.clock, found.count) == 3 * (expected,)


def test_clock_and_count_that_disagree_are_mixed():
    found = timed(TIMES / 3, TIMES[::-1], (15 * TIMES, TIMES))
    assert (found.verdict, found.clock, found.count) == ("mixed", "holds", "fails")
    # one of several parts, beside one that both agree on, and one that is not about time
    agreed = timed(TIMES / 3, TIMES[::-1], (TIMES / 2, TIMES))
    claim = combine("obs-2", {"a": agreed, "b": found, "c": YES})
    assert (claim.verdict, claim.clock, claim.count) == ("mixed", "holds", "mixed")
    assert claim.number == found.number
    assert combine("obs-2", {"c": YES, "d": NO}).clock == ""
    # of both, the less certain counts for Holm
    barely = timed(TIMES / 3, TIMES[::-1], (TIMES * [1.5, 1, 1, 1.7], TIMES))
    assert barely.p == dict(barely.parts)["count"].p > dict(barely.parts)["clock"].p
    slow = timed(TIMES / 3, TIMES[::-1], (TIMES * [2, 0.6, 1, 3], TIMES))
    assert (slow.verdict, slow.count) == ("holds", "undecided")  # else the clock decides


def test_where_a_method_counts_nothing_the_clock_decides():
    found = timed(TIMES / 3, TIMES, (TIMES * np.nan, TIMES))
    assert (found.verdict, found.clock, found.count) == ("holds", "holds", "")
    with pytest.raises(ValueError, match="finite"):
        timed(TIMES / 3, TIMES, (np.where(TIMES > 10, np.nan, TIMES), TIMES))


def test_parts_are_corrected_by_holm():
    """One of ten parts just below its threshold by chance does not make a claim fail."""
    rng = np.random.default_rng(0)
    barely = part([1.0, 1.1, 1.2, 1.05, 1.3], at_most=0.96)
    assert barely.verdict == "fails" and 0.01 < barely.p < 0.05
    others = {f"part {k}": part(rng.normal(0, 1, 5), at_most=0.1) for k in range(9)}
    verdict = combine("obs-2", {"barely": barely, **others})
    assert verdict.verdict == "undecided" and "barely: undecided over all parts, alone fails" in verdict.text
    # that all parts hold needs no correction
    close = part([1.0, 1.1, 1.2, 1.05, 1.3], at_most=1.3)
    assert 0.01 < close.p < 0.05 and combine("obs-2", {"a": close, "b": close}).verdict == "holds"


def test_books_list_every_claim_of_a_chapter_and_share_the_files(tmp_path):
    book = ClaimBook(FigureStore("smoke", tmp_path))
    table = read_verdicts(tmp_path)
    assert list(table["id"]) == list(claims("mkl").index) and set(table["verdict"]) == {"open"}
    verdict = part(LOW, HIGH, at_most=0.0, text="One | pipe.", about={"data": "Pendigits"})
    book.record(verdict)
    ClaimBook(FigureStore("smoke", tmp_path, chapter="oks")).record(NO._replace(claim="oks-5"))
    table = read_verdicts(tmp_path).set_index("id")
    assert len(table) == len(claims("mkl")) + len(claims("oks"))
    row = table.loc["om2-4"]
    assert (row["verdict"], row["n"], row["profile"]) == ("holds", "4", "smoke")
    assert row["low"] < row["number"] < 0
    text = (tmp_path / "claims.md").read_text()
    assert f"1 holds; 1 fails; {len(table) - 2} open" in text and "- One | pipe." in text
    ClaimBook(FigureStore("smoke", tmp_path))  # a new run starts open
    table = read_verdicts(tmp_path).set_index("id")
    assert table.loc["om2-4", "verdict"] == "open" and table.loc["oks-5", "verdict"] == "fails"
    for name, message in (("obs-99", "chapter mkl; did you mean obs-9"), ("oks-1", "not among the claims")):
        with pytest.raises(ValueError, match=message):
            book.record(Verdict(name, "holds", data="a"))


BUNDLED = {"name": "Pendigits", "tier": "bundled"}
MADE = {"name": "streams", "tier": "generated", "word": "simulated"}


def test_judged_by_the_tables_beside_the_figures(tmp_path, monkeypatch):
    importlib.import_module("companion.mkl.claims")  # whose own stands aside for this test
    monkeypatch.setitem(book_claims._JUDGES, "om2-1", None)
    numbers = np.random.default_rng(0).normal(1.0, 0.1, 5)

    @claim("om2-1", "thesis-fig-4.1")
    def om2_1(results):
        values = results.table("thesis-fig-4.1")["x"]
        yield Mean("a", "points", values, at_least=0.5, of="Pendigits", unit="row")
        yield Mean("b", "points", values, at_least=2.0)
        yield "Of all parts."

    store = FigureStore("quick", tmp_path, chapter="mkl")
    store.save_table(pd.DataFrame({"x": numbers}), "thesis-fig-4.1", provenance=[BUNDLED, MADE])
    book = ClaimBook(store)
    (verdict,) = book.judge("om2-1")
    again = judge("om2-1", tmp_path)
    assert again == verdict._replace(profile="")
    assert (verdict.verdict, verdict.bundled, verdict.simulated) == ("holds", "holds", "fails")
    assert verdict.number == numbers.mean() and verdict.unit == "row" and verdict.n == 5
    assert verdict.text.startswith("a: holds") and verdict.text.endswith(" Of all parts.")
    parts = read_parts(tmp_path)
    assert parts["part"].tolist() == ["a", "b"] and parts["tier"].tolist() == ["bundled", "simulated"]
    assert float(parts["needed"][0]) == pytest.approx(verdict.needed) and 0 < verdict.needed < 5
    ClaimBook(FigureStore("quick", tmp_path, chapter="oks"))
    assert len(read_parts(tmp_path)) == 2  # of another chapter's book they stay
    counts = {"counts": 15 * TIMES + numbers[:4], "baseline_counts": TIMES, "counted": "rows"}
    timed = Time("", "CPU seconds", TIMES / 3, TIMES, at_most=1.0, **counts)
    claim("om2-1", "thesis-fig-4.1")(lambda results: [timed])
    book.judge("om2-1")
    row = read_parts(tmp_path).iloc[0]
    assert (row["verdict"], row["clock"], row["count"]) == ("mixed", "holds", "fails")
    assert 15 < float(row["count_low"]) < float(row["count_number"]) < 16
    monkeypatch.delitem(book_claims._JUDGES, "om2-1")
    assert judge("om2-1", tmp_path).verdict == "open"
    assert "**Holds** (om2-1)." in verdict._repr_markdown_()
    without = Verdict("om2-1", "not testable here", measure="points", data="none", text="No data.")
    assert without._repr_markdown_().endswith("(om2-1). Data: none. No data.")


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


def test_two_parts_that_say_the_same_are_refused(runs, monkeypatch):
    results, _ = runs
    importlib.import_module("companion.mkl.claims")  # whose own stands aside for this test
    monkeypatch.setitem(book_claims._JUDGES, "om2-1", None)
    with pytest.raises(ValueError, match="two parts of the claim om2-1 say the same"):
        claim("om2-1", "thesis-fig-4.1", Mean("of {method}", "", "error", at_most=1.0), by="name")
        judge("om2-1", results.directory)


def test_before_and_after(tmp_path):
    """Two folders of results, one as written when what is bundled was called real."""
    for name, verdict in (("before", NO), ("after", YES)):
        book = ClaimBook(FigureStore("quick", tmp_path / name))
        book.record(verdict._replace(claim="obs-2", bundled=verdict.verdict))
    old = tmp_path / "before" / "claims.csv"
    old.write_text(old.read_text().replace("clock,count,bundled", "a,b,real"))
    table = before_and_after(tmp_path / "before", tmp_path / "after")
    assert "| obs-2 | fails | holds |  |  | holds |  |  | 1.5 | 0.5 |" in table


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

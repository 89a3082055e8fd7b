"""Verdicts follow mechanically from measurements, and no claim is ever lost from the book."""

import importlib

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from companion.run import claims as book_claims
from companion.run.claims import (
    RELEVANT,
    VERDICTS,
    ClaimBook,
    Results,
    Verdict,
    claims,
    combine,
    holm,
    judge,
    judge_bound,
    judge_exact,
    judge_mean,
    judge_slope,
    judges,
    not_testable,
    read_parts,
    read_verdicts,
)
from companion.run.figures import FigureStore, interval

LOW, HIGH = [1.0, 1.1, 0.9, 1.05], [2.0, 2.2, 1.9, 2.1]
STATED = {"data": "Pendigits", "measure": "points"}
NOISE = np.array([-2, 3, -3, 2, 1, -1, 2, -2])
EQUAL = np.full(8, 0.30)


def test_a_difference_is_paired_and_has_students_interval():
    verdict = judge_mean("om2-4", LOW, HIGH, at_most=0.0, **STATED)
    assert verdict.verdict == "holds" and verdict.data == "Pendigits"
    assert verdict[2:5] == tuple(interval(np.subtract(LOW, HIGH)))
    undecided = judge_mean("om2-4", [1, 2, 3], [2, 1, 3.5], at_most=0.0)
    assert undecided.low < 0 < undecided.high and "more runs would decide" in undecided.text
    ratio = judge_mean("obs-3", [10, 12, 11], [1, 1, 1], ratio=True, at_least=5)
    assert ratio.number == pytest.approx((10 * 12 * 11) ** (1 / 3))


ELEVEN = ([10, 12, 11], [1, 1, 1])


@pytest.mark.parametrize(
    "values, baseline, options, expected",
    [
        (LOW, None, {"at_most": 1.95}, "holds"),
        (HIGH, None, {"at_most": 1.0}, "fails"),
        (HIGH, None, {"at_least": 1.0}, "holds"),
        (LOW, None, {"at_least": 1.0}, "undecided"),
        ([0, 0, 0], None, {"at_most": 0}, "holds"),
        (HIGH, LOW, {"at_most": 0.0}, "fails"),
        (HIGH, LOW, {"at_least": 0.0}, "holds"),
        (HIGH, LOW, {"at_most": 2}, "holds"),  # worse, but by less than 2
        (LOW, HIGH, {"at_most": -2}, "fails"),  # better, but not by 2
        (LOW, LOW, {"at_most": 0.0}, "fails"),  # equal is not better
        (LOW, LOW, {"at_most": 0.1}, "holds"),
        (LOW, LOW, {"at_least": -0.1, "at_most": 0.1}, "holds"),
        (LOW, HIGH, {"at_least": -0.1, "at_most": 0.1}, "fails"),
        ([1, 2, 3], [2, 1, 3], {"at_least": -0.1, "at_most": 0.1}, "undecided"),
        (*ELEVEN, {"ratio": True, "at_least": 5, "at_most": 100}, "holds"),
        (*ELEVEN, {"ratio": True, "at_least": 20, "at_most": 100}, "fails"),
        (*ELEVEN, {"ratio": True, "at_least": 11, "at_most": 100}, "undecided"),
        # a difference from equal methods below a point decides, on either side of zero
        (EQUAL + NOISE / 1000, EQUAL, {"at_most": 0.0}, "fails"),
        (EQUAL + NOISE / 1000, EQUAL, {"at_least": 0.0}, "fails"),
        (EQUAL + NOISE / 1000, EQUAL, {"at_most": 0.0, "relevant": 0.0}, "undecided"),
        (EQUAL + NOISE / 1000, EQUAL, {"at_most": 0.001}, "undecided"),
        (EQUAL - 0.005 + NOISE / 1000, EQUAL, {"at_most": 0.0}, "holds"),  # small, and there
        # so does a ratio about one where a saving that matters is stated
        (100 + NOISE, 0 * NOISE + 100, {"ratio": True, "at_most": 1.0, "relevant": 0.1}, "fails"),
        (100 + NOISE, 0 * NOISE + 100, {"ratio": True, "at_most": 1.0}, "undecided"),
        (95 + NOISE, 0 * NOISE + 100, {"ratio": True, "at_most": 1.0, "relevant": 0.1}, "holds"),
        (95 + 5 * NOISE, 0 * NOISE + 100, {"ratio": True, "at_most": 1.0, "relevant": 0.1}, "undecided"),
    ],
)
def test_means_differences_and_ratios(values, baseline, options, expected):
    verdict = judge_mean("om2-4", values, baseline, **options)
    assert verdict.verdict == expected
    single = judge_mean("om2-4", [1], None if baseline is None else [5], **options)
    assert single.verdict == "undecided" and "no interval" in single.text and single.n == 1
    assert single.number is not None


def test_a_difference_that_is_there_and_too_small_is_told_apart():
    assert "smaller than the 2 that counts" in judge_mean("om2-4", LOW, HIGH, at_most=-2).text
    assert judge_mean("om2-4", HIGH, LOW, at_most=-2).text == ""
    wide = judge_mean("om2-6", EQUAL + NOISE / 100, EQUAL, at_most=0.0)
    assert wide.verdict == "undecided" and wide.needed < 100  # units that tell it from a point


def test_slopes_are_those_of_runs():
    x = np.tile([1.0, 2, 4, 8], 3)
    exponents = np.repeat([0.9, 1.0, 1.1], 4)
    runs = np.repeat(["a", "b", "c"], 4)
    verdict = judge_slope("obs-7", x, 5 * x**exponents, 0.5, 1.5, runs=runs)
    assert verdict.verdict == "holds" and verdict.n == 3 and verdict.number == pytest.approx(1.0)
    assert verdict[2:5] == pytest.approx(tuple(interval([0.9, 1.0, 1.1])))
    assert judge_slope("obs-7", x, x ** (1 + exponents), 0.5, 1.5, runs=runs).verdict == "fails"
    logarithm = judge_slope("om2-8", x, 2 + 3 * exponents * np.log(x), 2.2, log_y=False, runs=runs)
    assert logarithm.verdict == "holds" and logarithm.number == pytest.approx(3.0)
    kept = (runs != "c") | (x < 4)
    verdict = judge_slope("obs-7", x[kept], 5 * x[kept] ** exponents[kept], 0.5, 1.5, runs=runs[kept])
    assert verdict.n == 2 and "1 of 3 runs have fewer than three points" in verdict.text
    alone = judge_slope("obs-7", x[:4], 5 * x[:4] * [1.1, 1.0, 0.9, 1.0], 0.5, 1.5, runs=runs[:4])
    assert alone.verdict == "undecided" and alone.n == 1  # points of one run are no units


def test_bound():
    assert judge_bound("ufo-4", [1, 2], [1.5, 2]).verdict == "holds"
    broken = judge_bound("ufo-4", [1, 2], [1.5, 1])
    assert broken.verdict == "fails" and broken.number == 2 and "1 of 2" in broken.text and broken.low is None
    assert judge_bound("ufo-4", [0, 1], [0, 2]).number == 0.5
    assert judge_bound("ufo-4", [1], [0]).verdict == "fails"


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: judge_mean("obs-3", [0, 1], [1, 1], ratio=True, at_most=1), "positive"),
        (lambda: judge_mean("obs-3", [1, 1], [1, 1], ratio=True), "give at_least"),
        (
            lambda: judge_mean("mms-8", LOW, at_least=0, blocks=[0, 1]),
            "blocks must name the unit of each of 4",
        ),
        (lambda: judge_slope("obs-7", [1, 2], [1, 2], 1, runs=[0, 0]), "three different"),
        (lambda: judge_bound("ufo-4", [np.nan], [1]), "finite"),
        (lambda: combine("obs-2", {}), "parts is empty"),
        (lambda: not_testable("obs-9", ""), "why is empty"),
    ],
)
def test_wrong_measurements_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@given(st.lists(st.floats(-100, 100), min_size=2, max_size=8), st.floats(-100, 100))
def test_verdict_and_interval_never_disagree(values, bound):
    verdict = judge_mean("obs-8", values, at_most=bound)
    assert verdict.verdict in VERDICTS
    assert (verdict.verdict == "holds") == (verdict.high <= bound)
    assert (verdict.verdict == "fails") == (verdict.low >= bound and verdict.high > bound)
    mirrored = judge_mean("obs-8", [-v for v in values], at_least=-bound)
    assert mirrored.verdict == verdict.verdict


def test_units_of_repetition():
    """Six values of three corpora are three units."""
    values, corpora = [1.0, 1.2, 3.0, 3.2, 2.0, 2.2], [0, 0, 1, 1, 2, 2]
    nested = judge_mean("mms-8", values, at_least=0.5, blocks=corpora, unit="corpus")
    means = judge_mean("mms-8", [1.1, 3.1, 2.1], at_least=0.5)
    assert (nested.n, nested.number, nested.low) == (3, means.number, means.low) and nested.unit == "corpus"
    assert judge_mean("mms-8", values, at_least=0.5).n == 6


def test_runs_that_would_decide():
    values = np.array([0.0, 1.0, -1.0, 0.8, 0.2, -0.4])  # mean 0.1, deviation 0.75
    verdict = judge_mean("obs-6", values, at_least=0.0, unit="split")
    wanted = ((1.959964 + 0.841621) * values.std(ddof=1) / values.mean()) ** 2 - 6
    assert f"about {wanted:.0f} more splits would decide" in verdict.text
    assert "more than 10,000 runs" in judge_mean("obs-6", [-1.0, 1.0, 1e-4], at_least=0.0).text


def test_p_is_that_of_the_t_test():
    from scipy.stats import ttest_1samp

    for bound in (0.5, 1.0, 1.05):
        expected = ttest_1samp(LOW, bound).pvalue
        assert judge_mean("obs-8", LOW, at_most=bound).p == pytest.approx(expected)
        assert judge_mean("obs-8", LOW, at_least=bound).p == pytest.approx(expected)
    # of the side that the verdict took: that the gain is below a point too is not what is claimed
    small = np.array([1, 2, 3, 2, 1, 3, 2, 2]) / 1000
    holds = judge_mean("mlmkl-5", small, 0 * small, at_least=0.0)
    assert holds.verdict == "holds" and holds.p == pytest.approx(ttest_1samp(small, 0.0).pvalue)
    fails = judge_mean("mlmkl-5", small - 0.002, 0 * small, at_least=0.0)
    assert fails.verdict == "fails" and fails.p == pytest.approx(ttest_1samp(small - 0.002, RELEVANT).pvalue)


def test_holm():
    assert holm([0.01, 0.04, 0.03, 0.005]).tolist() == [True, False, False, True]
    assert holm([0.04, 0.01]).tolist() == [True, True] and holm([0.03, 0.03]).tolist() == [False, False]
    assert holm([0.2]).tolist() == [False] and holm([0.0]).tolist() == [True]


def test_combine():
    yes, no = judge_bound("ufo-4", [1], [2], data="a"), judge_bound("ufo-4", [3], [2], data="b")
    unsure = judge_mean("ufo-4", [0, 5], at_most=1, data="c")
    assert combine("obs-2", {"x": yes, "y": yes}).verdict == "holds"
    mixed = combine("obs-2", {"x": yes, "y": no}, open_parts=["z"])
    assert mixed.verdict == "mixed" and mixed.data == "a; b" and mixed.number == 1.5  # of what fails
    assert combine("obs-2", {"y": no, "z": unsure}).verdict == "fails"
    still_open = combine("obs-2", {"x": yes}, open_parts=["SimpleMKL"])
    assert still_open.verdict == "undecided" and "Open: SimpleMKL" in still_open.text
    assert "1 of 1 comparisons above the bound)" in mixed.text  # what is said of a part stands with it
    assert "more runs would decide)" in combine("obs-2", {"y": no, "z": unsure}).text
    undecided = combine("obs-2", {"x": yes, "y": unsure})
    assert undecided.verdict == "undecided" and undecided.number == 2.5 and undecided.claim == "obs-2"
    assert combine("obs-2", {"y": not_testable("obs-2", "no data")}).verdict == "not testable here"


def test_parts_are_corrected_by_holm():
    """One of ten parts just below its threshold by chance does not make a claim fail."""
    rng = np.random.default_rng(0)
    barely = judge_mean("obs-2", [1.0, 1.1, 1.2, 1.05, 1.3], at_most=0.96)
    assert barely.verdict == "fails" and 0.01 < barely.p < 0.05
    others = {f"part {k}": judge_mean("obs-2", rng.normal(0, 1, 5), at_most=0.1) for k in range(9)}
    verdict = combine("obs-2", {"barely": barely, **others})
    assert verdict.verdict == "undecided" and "barely: undecided over all parts, alone fails" in verdict.text
    # that all parts hold needs no correction
    close = judge_mean("obs-2", [1.0, 1.1, 1.2, 1.05, 1.3], at_most=1.3)
    assert 0.01 < close.p < 0.05 and combine("obs-2", {"a": close, "b": close}).verdict == "holds"


def test_real_data_decides():
    made = judge_bound("omcl-1", [3], [2], data="bags", tier="simulated")
    emoji = judge_bound("omcl-1", [1], [2], data="emoji")
    verdict = combine("omcl-1", {"bags": made, "emoji": emoji})
    assert verdict[1] == verdict.real == "holds" and (verdict.simulated, verdict.original) == ("fails", "")
    assert verdict.number == 0.5 and combine("omcl-1", {"bags": made}).verdict == "fails"


def test_book_lists_every_claim_of_the_chapter(tmp_path):
    book = ClaimBook(FigureStore("smoke", tmp_path))
    table = pd.read_csv(tmp_path / "claims.csv")
    assert list(table["id"]) == list(claims("mkl").index) and set(table["verdict"]) == {"open"}
    verdict = judge_mean("om2-4", LOW, HIGH, at_most=0.0, text="One | pipe.", **STATED)
    book.record(verdict, figure="thesis-fig-4.3")
    book.record(not_testable("ufo-5", "Caltech-101 is not bundled."))
    table = read_verdicts(tmp_path).set_index("id")
    assert table.loc["om2-4", "verdict"] == "holds"
    assert table.loc["om2-4", "low"] < table.loc["om2-4", "number"] < 0
    assert table.loc["om2-4", "real"] == "holds" and table.loc["om2-4", "simulated"] == ""
    assert table.loc["om2-4", "n"] == "4"
    assert table.loc["om2-4", "profile"] == "smoke" and table.loc["om2-4", "figure"] == "thesis-fig-4.3"
    assert table.loc["ufo-5", "verdict"] == "not testable here" and len(table) == len(claims("mkl"))
    text = (tmp_path / "claims.md").read_text()
    assert "1 holds, 1 not testable here, 21 open" in text and "One \\| pipe." in text


def test_books_of_several_chapters_share_the_files(tmp_path):
    ClaimBook(FigureStore("smoke", tmp_path)).record(judge_bound("ufo-4", [1], [2], data="a"))
    ClaimBook(FigureStore("smoke", tmp_path, chapter="oks")).record(judge_exact("oks-5", False, data="b"))
    table = read_verdicts(tmp_path).set_index("id")
    assert len(table) == len(claims("mkl")) + len(claims("oks"))
    assert table.loc["ufo-4", "verdict"] == "holds" and table.loc["oks-5", "verdict"] == "fails"
    ClaimBook(FigureStore("smoke", tmp_path))  # a new run starts open
    table = read_verdicts(tmp_path).set_index("id")
    assert table.loc["ufo-4", "verdict"] == "open" and table.loc["oks-5", "verdict"] == "fails"


@pytest.mark.parametrize(
    "verdict, message",
    [
        (Verdict("obs-99", "holds", data="a"), "not among the claims of the chapter mkl; did you mean obs-9"),
        (Verdict("oks-1", "holds", data="a"), "not among the claims"),
        (Verdict("obs-9", "true", data="a"), "verdict must be one of"),
        (Verdict("obs-9", "holds"), "does not name the data"),
        (Verdict("obs-9", "mixed", data="a"), "needs a text"),
    ],
)
def test_wrong_entries_are_refused(tmp_path, verdict, message):
    book = ClaimBook(FigureStore("smoke", tmp_path))
    with pytest.raises(ValueError, match=message):
        book.record(verdict)


REAL = {"name": "Pendigits", "tier": "bundled"}
MADE = {"name": "streams", "tier": "generated", "word": "simulated"}


def test_judged_by_the_tables_beside_the_figures(tmp_path, monkeypatch):
    """The same verdict from the files as when they were written, with unit, data and tier of the figure."""
    importlib.import_module("companion.mkl.claims")  # whose own stands aside for this test
    monkeypatch.setitem(book_claims._JUDGES, "om2-1", None)
    numbers = np.random.default_rng(0).normal(1.0, 0.1, 5)

    @judges("om2-1")
    def om2_1(found):
        table = found.table("thesis-fig-4.1")
        where = found.about("thesis-fig-4.1", of="Pendigits", unit="split", measure="points")
        whole = found.about("thesis-fig-4.1", unit="split")
        assert whole["tier"] == "simulated" and where["tier"] == "real"
        parts = {"a": judge_mean("om2-1", table["x"], at_least=0.5, **where)}
        return combine("om2-1", parts | {"b": judge_mean("om2-1", table["x"], at_least=2.0, **whole)})

    store = FigureStore("quick", tmp_path, chapter="mkl")
    store.save_table(pd.DataFrame({"x": numbers}), "thesis-fig-4.1", provenance=[REAL, MADE])
    book = ClaimBook(store)
    (verdict,) = book.judge("om2-1")
    again = judge("om2-1", tmp_path)
    assert again == verdict._replace(profile="")
    assert (verdict.verdict, verdict.real, verdict.simulated) == ("holds", "holds", "fails")
    assert verdict.number == numbers.mean() and verdict.unit == "split" and verdict.n == 5
    parts = read_parts(tmp_path)
    assert parts["part"].tolist() == ["a", "b"] and parts["tier"].tolist() == ["real", "simulated"]
    assert float(parts["needed"][0]) == pytest.approx(verdict.needed) and 0 < verdict.needed < 5
    ClaimBook(FigureStore("quick", tmp_path, chapter="oks"))
    assert len(read_parts(tmp_path)) == 2  # of another chapter's book they stay
    assert "**om2-1: holds.**" in book.judge("om2-1")._repr_markdown_()


def test_what_a_claim_cannot_be_judged_by(tmp_path):
    with pytest.raises(ValueError, match="did you mean om2-1"):
        judge("om-1", tmp_path)
    found = Results(tmp_path, "om2-1")
    with pytest.raises(FileNotFoundError, match="om2-1 is judged by thesis-fig-4.1.csv, which is not in"):
        found.table("thesis-fig-4.1")
    FigureStore("quick", tmp_path).save_table(pd.DataFrame({"x": [1]}), "thesis-fig-4.1", provenance=[REAL])
    with pytest.raises(ValueError, match="no data set of thesis-fig-4.1 begins with 'HTAD'; there are: Pen"):
        found.about("thesis-fig-4.1", of="HTAD")

"""Verdicts follow mechanically from measurements, and no claim is ever lost from the book."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuelearn.book.claims import (
    VERDICTS,
    ClaimBook,
    Verdict,
    claims,
    combine,
    judge_at_least,
    judge_at_most,
    judge_bound,
    judge_close,
    judge_difference,
    judge_exact,
    judge_ratio,
    judge_slope,
    not_testable,
    read_verdicts,
)
from cuelearn.book.figures import FigureStore, interval

LOW, HIGH = [1.0, 1.1, 0.9, 1.05], [2.0, 2.2, 1.9, 2.1]
about = {"data": "Pendigits", "measure": "points"}


def test_difference():
    better = judge_difference("om2-4", LOW, HIGH, **about)
    assert better.verdict == "holds" and better.data == "Pendigits"
    assert better[2:5] == tuple(interval(np.subtract(LOW, HIGH)))
    assert judge_difference("om2-4", HIGH, LOW).verdict == "fails"
    assert judge_difference("om2-4", HIGH, LOW, lower_is_better=False).verdict == "holds"
    assert judge_difference("om2-4", LOW, HIGH, margin=2).verdict == "fails"  # better, but not by 2
    assert judge_difference("om2-4", HIGH, LOW, margin=-2).verdict == "holds"  # worse, but by less than 2
    undecided = judge_difference("om2-4", [1, 2, 3], [2, 1, 3.5])
    assert undecided.verdict == "not testable here" and "Undecided" in undecided.text
    assert undecided.low < 0 < undecided.high
    assert judge_difference("om2-4", LOW, LOW).verdict == "fails"  # equal is not better
    assert judge_difference("om2-4", LOW, LOW, margin=-0.1).verdict == "holds"


def test_single_run_decides_nothing():
    for verdict in (
        judge_difference("om2-4", [1], [5]),
        judge_at_most("om2-4", [1], 5),
        judge_ratio("om2-4", [1], [5], at_most=1),
        judge_close("om2-4", [1], [1], 1),
    ):
        assert verdict.verdict == "not testable here" and "no interval" in verdict.text
        assert verdict.number is not None


def test_at_most_and_at_least():
    assert judge_at_most("obs-8", LOW, 1.95).verdict == "holds"
    assert judge_at_most("obs-8", HIGH, 1.0).verdict == "fails"
    assert judge_at_least("obs-8", HIGH, 1.0).verdict == "holds"
    assert judge_at_least("obs-8", LOW, 1.0).verdict == "not testable here"
    assert judge_at_most("obs-8", [0, 0, 0], 0).verdict == "holds"


def test_close():
    assert judge_close("obs-5", LOW, LOW, 0.1).verdict == "holds"
    assert judge_close("obs-5", LOW, HIGH, 0.1).verdict == "fails"
    assert judge_close("obs-5", [1, 2, 3], [2, 1, 3], 0.1).verdict == "not testable here"


def test_ratio():
    verdict = judge_ratio("obs-3", [10, 12, 11], [1, 1, 1], at_least=5, at_most=100)
    assert verdict.verdict == "holds" and verdict.number == pytest.approx((10 * 12 * 11) ** (1 / 3))
    assert judge_ratio("obs-3", [10, 12, 11], [1, 1, 1], at_least=20, at_most=100).verdict == "fails"
    expected = "not testable here"
    assert judge_ratio("obs-3", [10, 12, 11], [1, 1, 1], at_least=11, at_most=100).verdict == expected
    with pytest.raises(ValueError, match="positive"):
        judge_ratio("obs-3", [0, 1], [1, 1], at_most=1)
    with pytest.raises(ValueError, match="at_least"):
        judge_ratio("obs-3", [1, 1], [1, 1])


def test_slope():
    x = np.array([1.0, 2, 4, 8, 16])
    noise = np.exp([0.01, -0.01, 0.02, -0.02, 0.0])
    verdict = judge_slope("obs-7", x, 3 * x * noise, 0.9, 1.1)
    assert verdict.verdict == "holds" and verdict.low < 1 < verdict.high
    assert judge_slope("obs-7", x, x**2 * noise, 0.9, 1.1).verdict == "fails"
    assert judge_slope("om2-8", x, 2 + 3 * np.log(x) + 0.01 * noise, 2.9, log_y=False).verdict == "holds"
    with pytest.raises(ValueError, match="three different"):
        judge_slope("obs-7", [1, 2], [1, 2], 1)


def test_bound():
    assert judge_bound("ufo-4", [1, 2], [1.5, 2]).verdict == "holds"
    broken = judge_bound("ufo-4", [1, 2], [1.5, 1])
    assert broken.verdict == "fails" and broken.number == 2 and "1 of 2" in broken.text and broken.low is None
    assert judge_bound("ufo-4", [0, 1], [0, 2]).number == 0.5
    assert judge_bound("ufo-4", [1], [0]).verdict == "fails"
    with pytest.raises(ValueError, match="finite"):
        judge_bound("ufo-4", [np.nan], [1])


@given(st.lists(st.floats(-100, 100), min_size=2, max_size=8), st.floats(-100, 100))
def test_verdict_and_interval_never_disagree(values, bound):
    verdict = judge_at_most("obs-8", values, bound)
    assert verdict.verdict in VERDICTS
    assert (verdict.verdict == "holds") == (verdict.high <= bound)
    assert (verdict.verdict == "fails") == (verdict.low >= bound and verdict.high > bound)
    mirrored = judge_at_least("obs-8", [-v for v in values], -bound)
    assert mirrored.verdict == verdict.verdict


def test_combine():
    yes, no = judge_bound("ufo-4", [1], [2], data="a"), judge_bound("ufo-4", [3], [2], data="b")
    unsure = judge_at_most("ufo-4", [0, 5], 1, data="c")
    assert combine("obs-2", {"x": yes, "y": yes}).verdict == "holds"
    assert combine("obs-2", {"x": yes, "y": no}, open_parts=["z"]).verdict == "fails"
    partly = combine("obs-2", {"x": yes}, open_parts=["SimpleMKL"])
    assert partly.verdict == "partly" and "Open: SimpleMKL" in partly.text and partly.claim == "obs-2"
    assert combine("obs-2", {"x": yes, "y": unsure}).verdict == "partly"
    assert combine("obs-2", {"y": unsure}).verdict == "not testable here"
    assert combine("obs-2", {"x": yes, "y": no}).data == "a; b"
    assert combine("obs-2", {"x": yes, "y": no}, main=1).number == 1.5
    with pytest.raises(ValueError, match="parts is empty"):
        combine("obs-2", {})


def test_book_lists_every_claim_of_the_chapter(tmp_path):
    book = ClaimBook(FigureStore("smoke", tmp_path))
    table = pd.read_csv(tmp_path / "claims.csv")
    assert list(table["id"]) == list(claims("mkl").index) and set(table["verdict"]) == {"open"}
    book.record(judge_difference("om2-4", LOW, HIGH, text="One | pipe.", **about), figure="thesis-fig-4.3")
    book.record(not_testable("ufo-5", "Caltech-101 is not bundled."))
    table = read_verdicts(tmp_path).set_index("id")
    assert table.loc["om2-4", "verdict"] == "holds"
    assert table.loc["om2-4", "low"] < table.loc["om2-4", "number"] < 0
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
        (Verdict("obs-9", "partly", data="a"), "needs a text"),
    ],
)
def test_wrong_entries_are_refused(tmp_path, verdict, message):
    book = ClaimBook(FigureStore("smoke", tmp_path))
    with pytest.raises(ValueError, match=message):
        book.record(verdict)


def test_why_is_asked_for():
    with pytest.raises(ValueError, match="why is empty"):
        not_testable("obs-9", "")

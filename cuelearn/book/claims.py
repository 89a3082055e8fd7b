"""Verdicts on the papers' claims: a number, its interval, the data, and what follows.

Every row of ``claims.csv`` gets one of

===================  =================================================================================================
holds                the whole 95% interval lies on the claimed side
fails                the whole 95% interval lies on the other side
partly               a claim of several parts, some judged to hold, none to fail; the text says what is open
not testable here    the data at hand cannot decide it: the interval contains the threshold, or the data is absent
open                 not judged yet in this run
===================  =================================================================================================

The helpers ``judge_...`` are mechanical: measurements in, verdict out, with no room for a favourable reading. An interval that
contains the threshold is never called a success nor a failure.
"""

from __future__ import annotations

import contextlib
import csv
import difflib
import io
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from cuelearn.book.figures import FigureStore, interval, markdown_table
from cuelearn.book.protocols import atomic_write, file_lock

__all__ = [
    "VERDICTS",
    "ClaimBook",
    "Verdict",
    "claims",
    "combine",
    "judge_at_least",
    "judge_at_most",
    "judge_bound",
    "judge_close",
    "judge_difference",
    "judge_exact",
    "judge_ratio",
    "judge_slope",
    "not_testable",
]

VERDICTS = ("holds", "fails", "partly", "not testable here", "open")


class Verdict(NamedTuple):
    """What became of one claim.

    Attributes
    ----------
    claim : str
        Id in ``claims.csv``.
    verdict : str
        One of `VERDICTS`.
    number : float or None
        The measured quantity that decides.
    low, high : float or None
        Its 95% interval; None for an exact quantity and for a single run.
    measure : str
        What the number is, with its unit.
    data : str
        The data it was measured on.
    profile : str
        Set by `ClaimBook.record`.
    text : str
        What follows, in a sentence or two.
    figure : str
        Id of the figure that shows it.
    """

    claim: str
    verdict: str
    number: float | None = None
    low: float | None = None
    high: float | None = None
    measure: str = ""
    data: str = ""
    profile: str = ""
    text: str = ""
    figure: str = ""

    def _repr_markdown_(self):
        """How a notebook shows it."""
        says = _claims().loc[self.claim, "claim"] if self.claim in _claims().index else ""
        number = (
            ""
            if self.number is None or not np.isfinite(self.number)
            else f"{self.measure}: {self.number:.4g}"
        )
        if number and self.low is not None and np.isfinite(self.low):
            number += f" (95% interval {self.low:.4g} to {self.high:.4g})"
        found = ". ".join(filter(None, [number, f"Data: {self.data}" if self.data else "", self.text]))
        return f"**{self.claim}: {self.verdict}.** *{says}.* {found}"


@lru_cache(maxsize=1)
def _claims():
    return pd.read_csv(Path(__file__).with_name("claims.csv"), keep_default_na=False).set_index(
        "id", drop=False
    )


def claims(chapter=None):
    """The papers' claims: id, chapter, source, claim, judged_by (DataFrame, indexed by id)."""
    rows = _claims().copy()
    return rows if chapter is None else rows[rows["chapter"] == chapter]


# --- judging -----------------------------------------------------------------------------------------------------------------


def _decide(claim, low, high, number, holds_if, threshold, **about):
    """Verdict from an interval: `holds_if` is "above" or "below" the threshold (the threshold itself holds)."""
    if low is None or not np.isfinite([low, high]).all():
        return Verdict(
            claim, "not testable here", number, None, None, **_add(about, "A single run has no interval.")
        )
    above, below = low >= threshold, high <= threshold
    if above and below:  # no spread at all, exactly on the threshold
        verdict, said = "holds", ""
    elif above or below:
        verdict, said = ("holds", "") if (above if holds_if == "above" else below) else ("fails", "")
    else:
        verdict, said = "not testable here", f"Undecided: the interval contains {threshold:.4g}."
    return Verdict(claim, verdict, number, low, high, **_add(about, said))


def _add(about, said):
    return {**about, "text": " ".join(filter(None, [about.get("text", ""), said]))}


def _samples(values, name):
    values = np.asarray(values, dtype=float).ravel()
    if values.size == 0 or not np.isfinite(values).all():
        raise ValueError(f"{name} must hold at least one number and only finite ones, got {values}")
    return values


def judge_at_most(claim, values, bound, *, measure="", data="", text="", figure=""):
    """Claim: the mean of `values` is at most `bound`.

    Parameters
    ----------
    claim : str
        Id in ``claims.csv``.
    values : array-like of shape (n_repetitions,)
    bound : float
    measure, data, text, figure : str
        As in `Verdict`.

    Returns
    -------
    Verdict
    """
    answer = interval(_samples(values, "values"))
    return _decide(
        claim,
        answer.low,
        answer.high,
        answer.mean,
        "below",
        bound,
        measure=measure,
        data=data,
        text=text,
        figure=figure,
    )


def judge_at_least(claim, values, bound, *, measure="", data="", text="", figure=""):
    """Claim: the mean of `values` is at least `bound`. Parameters as for `judge_at_most`."""
    answer = interval(_samples(values, "values"))
    return _decide(
        claim,
        answer.low,
        answer.high,
        answer.mean,
        "above",
        bound,
        measure=measure,
        data=data,
        text=text,
        figure=figure,
    )


def judge_difference(
    claim,
    ours,
    other,
    *,
    lower_is_better=True,
    margin=0.0,
    paired=True,
    measure="",
    data="",
    text="",
    figure="",
):
    """Claim: `ours` is better than `other` on average, by at least `margin`.

    Parameters
    ----------
    claim : str
    ours, other : array-like of shape (n_repetitions,)
        Paired repetitions (the same splits) unless ``paired=False``.
    lower_is_better : bool
        True for errors and times, False for accuracies.
    margin : float
        Smallest difference that counts; negative: how much worse `ours` may be (a claim of "at least as good").
    paired : bool
        False: Welch's interval for two independent samples.
    measure, data, text, figure : str
        As in `Verdict`; `measure` should say which difference, e.g. "error of OM-2 minus error of PA-I [points]".

    Returns
    -------
    Verdict
        Its number is ``mean(ours) - mean(other)``, with the sign as measured.
    """
    ours, other = _samples(ours, "ours"), _samples(other, "other")
    if paired:
        if len(ours) != len(other):
            raise ValueError(f"paired samples must have one length, got {len(ours)} and {len(other)}")
        answer = interval(ours - other)
        number, low, high = answer
    else:
        number = float(ours.mean() - other.mean())
        low = high = None
        if min(len(ours), len(other)) > 1:
            from scipy.stats import t

            a, b = ours.var(ddof=1) / len(ours), other.var(ddof=1) / len(other)
            freedom = (a + b) ** 2 / max(
                a**2 / (len(ours) - 1) + b**2 / (len(other) - 1), np.finfo(float).tiny
            )
            half = float(t.ppf(0.975, max(freedom, 1.0)) * np.sqrt(a + b))
            low, high = number - half, number + half
    threshold = -margin if lower_is_better else margin
    about = {"measure": measure, "data": data, "text": text, "figure": figure}
    verdict = _decide(claim, low, high, number, "below" if lower_is_better else "above", threshold, **about)
    if (
        margin == 0.0 and verdict.low is not None and verdict.low == verdict.high == 0.0
    ):  # "better" excludes exactly equal
        return verdict._replace(verdict="fails", text=" ".join(filter(None, [text, "No difference at all."])))
    return verdict


def judge_close(claim, ours, other, tolerance, *, measure="", data="", text="", figure=""):
    """Claim: paired `ours` and `other` are close, their mean difference within `tolerance` on either side.

    Holds if the whole interval of the difference lies within, fails if it lies wholly outside. Parameters as for
    `judge_difference`.
    """
    ours, other = _samples(ours, "ours"), _samples(other, "other")
    if len(ours) != len(other):
        raise ValueError(f"paired samples must have one length, got {len(ours)} and {len(other)}")
    number, low, high = interval(ours - other)
    about = {"measure": measure, "data": data, "text": text, "figure": figure}
    if not np.isfinite([low, high]).all():
        return Verdict(
            claim, "not testable here", number, None, None, **_add(about, "A single run has no interval.")
        )
    if -tolerance <= low and high <= tolerance:
        return Verdict(claim, "holds", number, low, high, **about)
    if low > tolerance or high < -tolerance:
        return Verdict(claim, "fails", number, low, high, **about)
    return Verdict(
        claim,
        "not testable here",
        number,
        low,
        high,
        **_add(about, f"Undecided: the interval reaches past {tolerance:.4g}."),
    )


def judge_ratio(
    claim, numerator, denominator, at_least=None, at_most=None, *, measure="", data="", text="", figure=""
):
    """Claim: the (geometric mean) ratio of paired positive measurements, times for instance, lies in a stated range.

    Parameters
    ----------
    claim : str
    numerator, denominator : array-like of shape (n_repetitions,), positive
    at_least, at_most : float, optional
        The claimed range; at least one end.
    measure, data, text, figure : str
        As in `Verdict`.

    Returns
    -------
    Verdict
        Number and interval are those of the geometric mean. With both ends given, the claim holds if the whole interval lies
        within, and fails if it lies wholly outside.
    """
    top, bottom = _samples(numerator, "numerator"), _samples(denominator, "denominator")
    if len(top) != len(bottom):
        raise ValueError(f"paired samples must have one length, got {len(top)} and {len(bottom)}")
    if min(top.min(), bottom.min()) <= 0:
        raise ValueError("numerator and denominator must be positive")
    if at_least is None and at_most is None:
        raise ValueError("give at_least, at_most, or both")
    number, low, high = (float(np.exp(v)) for v in interval(np.log(top) - np.log(bottom)))
    return _within(
        claim, number, low, high, at_least, at_most, measure=measure, data=data, text=text, figure=figure
    )


def judge_slope(
    claim,
    x,
    y,
    at_least=None,
    at_most=None,
    *,
    log_x=True,
    log_y=True,
    measure="",
    data="",
    text="",
    figure="",
):
    """Claim: the least-squares slope of y on x (by default on logarithmic axes: an exponent) lies in a stated range.

    Parameters
    ----------
    claim : str
    x, y : array-like of shape (n_points,)
        At least three points with different x, positive where the axis is logarithmic.
    at_least, at_most : float, optional
        The claimed range; at least one end.
    log_x, log_y : bool
    measure, data, text, figure : str
        As in `Verdict`.

    Returns
    -------
    Verdict
        Its interval is that of the slope in the linear model, from the scatter about the line.
    """
    from scipy.stats import linregress, t

    x, y = _samples(x, "x"), _samples(y, "y")
    if at_least is None and at_most is None:
        raise ValueError("give at_least, at_most, or both")
    if len(x) != len(y) or len(np.unique(x)) < 3:
        raise ValueError("a slope with an interval needs as many y as x, and at least three different x")
    if (log_x and x.min() <= 0) or (log_y and y.min() <= 0):
        raise ValueError("values on a logarithmic axis must be positive")
    fit = linregress(np.log(x) if log_x else x, np.log(y) if log_y else y)
    half = t.ppf(0.975, len(x) - 2) * fit.stderr
    return _within(
        claim,
        float(fit.slope),
        float(fit.slope - half),
        float(fit.slope + half),
        at_least,
        at_most,
        measure=measure,
        data=data,
        text=text,
        figure=figure,
    )


def _within(claim, number, low, high, at_least, at_most, **about):
    ends = [
        _decide(claim, low, high, number, side, end, **about)
        for side, end in (("above", at_least), ("below", at_most))
        if end is not None
    ]
    for verdict in ("fails", "not testable here", "holds"):
        for end in ends:
            if end.verdict == verdict:
                return end
    raise AssertionError("unreachable: every verdict of _decide is listed")


def judge_bound(
    claim, measured, bound, *, slack=1e-9, measure="measured over bound, largest", data="", text="", figure=""
):
    """Claim: a theorem's bound; every measured value is at most its bound.

    Parameters
    ----------
    claim : str
    measured, bound : array-like of one shape
        A bound on an expectation is to be compared with means, formed by the caller.
    slack : float
        Relative rounding allowed.
    measure, data, text, figure : str
        As in `Verdict`.

    Returns
    -------
    Verdict
        Its number is the largest ratio of measured to bound; no interval, since a bound holds on every sequence or fails. The
        text counts comparisons and violations.
    """
    measured, bound = np.broadcast_arrays(np.asarray(measured, float), np.asarray(bound, float))
    measured, bound = _samples(measured, "measured"), _samples(bound, "bound")
    violations = int((measured > bound + slack * np.abs(bound)).sum())
    ratio = float(
        np.max(np.divide(measured, bound, out=np.where(measured > 0, np.inf, 0.0), where=bound > 0))
    )
    said = f"{violations} of {len(measured)} comparisons above the bound."
    return Verdict(
        claim,
        "fails" if violations else "holds",
        ratio,
        measure=measure,
        data=data,
        figure=figure,
        text=" ".join(filter(None, [text, said])),
    )


def judge_exact(claim, true, *, number=None, measure="", data="", text="", figure=""):
    """Claim that is decided by an exact finding (a count, an identity), not by an average: `true` or not."""
    return Verdict(
        claim,
        "holds" if true else "fails",
        None if number is None else float(number),
        measure=measure,
        data=data,
        text=text,
        figure=figure,
    )


def not_testable(claim, why, *, data="", figure=""):
    """The claim cannot be judged on the data at hand; `why` says what is missing."""
    if not why:
        raise ValueError("why is empty: say what is missing")
    return Verdict(claim, "not testable here", data=data, text=why, figure=figure)


def combine(claim, parts, *, main=0, open_parts=(), text="", figure=""):
    """One verdict for a claim of several parts.

    Parameters
    ----------
    claim : str
    parts : dict of str -> Verdict
        What each part says, and its verdict.
    main : int
        The part whose number stands for the claim.
    open_parts : sequence of str
        Parts that this run does not judge, in words.
    text, figure : str
        As in `Verdict`.

    Returns
    -------
    Verdict
        Fails if any part fails; holds if all hold and nothing is open; partly if some hold and the rest is open or undecided;
        else not testable here. Its text lists the parts.
    """
    if not parts:
        raise ValueError("parts is empty: use not_testable for a claim of which nothing can be judged")
    found = [part.verdict for part in parts.values()]
    left = [*open_parts, *(what for what, part in parts.items() if part.verdict not in ("holds", "fails"))]
    if "fails" in found:
        verdict = "fails"
    elif not left:
        verdict = "holds"
    else:
        verdict = "partly" if "holds" in found else "not testable here"
    said = [f"{what}: {part.verdict}{_number(part)}." for what, part in parts.items()]
    if open_parts:
        said.append(f"Open: {'; '.join(open_parts)}.")
    first = list(parts.values())[main]
    data = "; ".join(dict.fromkeys(part.data for part in parts.values() if part.data))
    return first._replace(
        claim=claim,
        verdict=verdict,
        data=data,
        text=" ".join(filter(None, [text, *said])),
        figure=figure or first.figure,
    )


def _number(verdict):
    if verdict.number is None:
        return ""
    if verdict.low is None:
        return f" ({verdict.number:.4g})"
    return f" ({verdict.number:.4g}, 95% interval {verdict.low:.4g} to {verdict.high:.4g})"


# --- the book ----------------------------------------------------------------------------------------------------------------


class ClaimBook:
    """The verdicts of a chapter, written to ``claims.csv`` and ``claims.md`` beside its figures after every entry.

    Parameters
    ----------
    store : FigureStore
        Gives directory, chapter and profile.

    Notes
    -----
    Both files list every claim of the chapter; those not judged yet read "open". A new book starts with all of its chapter open,
    so that no verdict of an earlier run survives unless it is found again. Rows of other chapters stay as they are.
    """

    COLUMNS = (
        "id",
        "chapter",
        "source",
        "claim",
        "verdict",
        "number",
        "low",
        "high",
        "measure",
        "data",
        "profile",
        "text",
        "figure",
    )

    def __init__(self, store: FigureStore):
        self.store = store
        self.verdicts: dict[str, Verdict] = {}
        self._write()

    def record(self, verdict: Verdict, **changes) -> Verdict:
        """Enter a verdict (with fields replaced by `changes`) and write the files.

        Raises
        ------
        ValueError
            If the claim is unknown or of another chapter, if the verdict is none of `VERDICTS`, or "holds" or "fails" come
            without naming the data, or any other without a text.
        """
        verdict = verdict._replace(**{"profile": self.store.profile, **changes})
        mine = claims(self.store.chapter)
        if verdict.claim not in mine.index:
            near = difflib.get_close_matches(verdict.claim, list(mine.index), n=3)
            raise ValueError(
                f"claim {verdict.claim!r} is not among the claims of the chapter {self.store.chapter}"
                + (f"; did you mean {' or '.join(near)}?" if near else f": {', '.join(mine.index)}")
            )
        if verdict.verdict not in VERDICTS:
            raise ValueError(f"verdict must be one of {', '.join(VERDICTS)}, got {verdict.verdict!r}")
        if verdict.verdict in ("holds", "fails", "partly") and not verdict.data:
            raise ValueError(f"the verdict on {verdict.claim} does not name the data it was found on")
        if verdict.verdict in ("partly", "not testable here") and not verdict.text:
            raise ValueError(
                f"the verdict {verdict.verdict!r} on {verdict.claim} needs a text that says what is open"
            )
        self.verdicts[verdict.claim] = verdict
        self._write()
        return verdict

    def frame(self):
        """The chapter's claims with their verdicts (DataFrame, one row for each claim)."""
        rows = []
        for row in claims(self.store.chapter).itertuples():
            verdict = self.verdicts.get(row.id, Verdict(row.id, "open", profile=self.store.profile))
            rows.append(
                {
                    **verdict._asdict(),
                    "id": row.id,
                    "chapter": row.chapter,
                    "source": row.source,
                    "claim": row.claim,
                }
            )
        return pd.DataFrame(rows)[list(self.COLUMNS)]

    def _write(self):
        directory = Path(self.store.directory)
        with file_lock(directory / ".claims.lock"):
            rows = self.frame()
            others = read_verdicts(directory)
            others = others[others["chapter"] != self.store.chapter]
            order = {claim: i for i, claim in enumerate(claims().index)}
            parts = [part for part in (others, rows.astype(object)) if len(part)]
            table = pd.concat(parts, ignore_index=True).sort_values(
                "id", key=lambda ids: ids.map(order), kind="stable"
            )
            buffer = io.StringIO()
            table.to_csv(buffer, index=False, lineterminator="\n", quoting=csv.QUOTE_MINIMAL)
            atomic_write(directory / "claims.csv", buffer.getvalue())
            atomic_write(directory / "claims.md", "# Claims and verdicts\n\n" + verdict_table(table))


def read_verdicts(directory):
    """The verdicts written in `directory` (DataFrame with `ClaimBook.COLUMNS`; empty if there are none)."""
    with contextlib.suppress(FileNotFoundError, pd.errors.EmptyDataError):
        text = {column: str for column in ClaimBook.COLUMNS if column not in ("number", "low", "high")}
        table = pd.read_csv(
            Path(directory) / "claims.csv",
            dtype=text,
            keep_default_na=False,
            na_values={c: [""] for c in ("number", "low", "high")},
        )
        return table.astype(object)
    return pd.DataFrame(columns=list(ClaimBook.COLUMNS), dtype=object)


def verdict_table(table):
    """Verdicts as Markdown: a count, then one row for each claim."""
    counts = [
        f"{(table['verdict'] == verdict).sum()} {verdict}"
        for verdict in VERDICTS
        if (table["verdict"] == verdict).any()
    ]
    shown = []
    for row in table.itertuples():
        number = "" if pd.isna(row.number) else f"{row.number:.4g}"
        spread = "" if pd.isna(row.low) else f"{row.low:.4g} to {row.high:.4g}"
        shown.append(
            {
                "claim": row.id,
                "says": f"{row.claim} ({row.source})",
                "verdict": f"**{row.verdict}**" if row.verdict != "open" else "open",
                "number": number,
                "95% interval": spread,
                "measure": row.measure,
                "data": row.data,
                "profile": row.profile,
                "remark": row.text,
                "figure": row.figure,
            }
        )
    return f"{', '.join(counts)}.\n\n" + markdown_table(pd.DataFrame(shown))

"""Verdicts on the papers' claims: a number, its interval, the data, and what follows.

Every row of ``claims.csv`` gets one of

===================  ====================================================================================
holds                the whole 95% interval lies on the claimed side
fails                the whole 95% interval lies on the other side
partly               a claim of several parts, some judged to hold, none to fail; the text says what is open
not testable here    the interval contains the threshold, or the data that could decide it is absent
open                 not judged yet in this run
===================  ====================================================================================

The helpers ``judge_...`` are mechanical: measurements in, verdict out, with no room for a favourable reading.
An interval that contains the threshold is never called a success nor a failure.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from cuelearn.book.figures import FigureStore, markdown_table
from cuelearn.book.records import near, read_rows
from cuelearn.book.sweep import file_lock
from cuelearn.core.intervals import interval
from cuelearn.core.storage import atomic_write

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
        says = claims().loc[self.claim, "claim"] if self.claim in claims().index else ""
        number = ""
        if self.number is not None and np.isfinite(self.number):
            number = f"{self.measure}: {self.number:.4g}"
        if number and self.low is not None and np.isfinite(self.low):
            number += f" (95% interval {self.low:.4g} to {self.high:.4g})"
        found = ". ".join(filter(None, [number, f"Data: {self.data}" if self.data else "", self.text]))
        return f"**{self.claim}: {self.verdict}.** *{says}.* {found}"


def claims(chapter=None):
    """The papers' claims: id, chapter, source, claim, judged_by (DataFrame, indexed by id)."""
    return read_rows("claims.csv", chapter)


# --- judging ------------------------------------------------------------------------------------------------


def _joined(*texts):
    return " ".join(filter(None, texts))


def _decide(claim, spread, at_least=None, at_most=None, *, text="", **about):
    """Verdict from a mean and its interval: all within the claimed range, all outside, or neither."""
    number, low, high = spread
    if not np.isfinite([low, high]).all():
        text = _joined(text, "A single run has no interval.")
        return Verdict(claim, "not testable here", number, text=text, **about)
    ends = []
    if at_least is not None:
        ends.append((at_least, low >= at_least, high <= at_least))
    if at_most is not None:
        ends.append((at_most, high <= at_most, low >= at_most))
    crossed = [end for end, within, outside in ends if not within and not outside]
    if any(outside and not within for _, within, outside in ends):
        verdict = "fails"
    elif crossed:
        verdict, text = (
            "not testable here",
            _joined(text, f"Undecided: the interval contains {crossed[0]:.4g}."),
        )
    else:
        verdict = "holds"
    return Verdict(claim, verdict, number, low, high, text=text, **about)


def _samples(**named):
    """Arrays of finite numbers, of one length."""
    found = []
    for name, values in named.items():
        values = np.asarray(values, dtype=float).ravel()
        if values.size == 0 or not np.isfinite(values).all():
            raise ValueError(f"{name} must hold at least one number and only finite ones, got {values}")
        found.append(values)
    if len({len(values) for values in found}) > 1:
        raise ValueError(
            f"paired samples must have one length, got {' and '.join(str(len(v)) for v in found)}"
        )
    return found


def judge_at_most(claim, values, bound, **about):
    """Claim: the mean of `values` is at most `bound`.

    Parameters
    ----------
    claim : str
        Id in ``claims.csv``.
    values : array-like of shape (n_repetitions,)
    bound : float
    **about : str
        ``measure``, ``data``, ``text``, ``figure``, as in `Verdict`; so in all functions here.

    Returns
    -------
    Verdict
    """
    return _decide(claim, interval(*_samples(values=values)), at_most=bound, **about)


def judge_at_least(claim, values, bound, **about):
    """Claim: the mean of `values` is at least `bound`. Parameters as for `judge_at_most`."""
    return _decide(claim, interval(*_samples(values=values)), at_least=bound, **about)


def judge_difference(claim, ours, other, *, lower_is_better=True, margin=0.0, text="", **about):
    """Claim: `ours` is better than `other` on average, by at least `margin`.

    Parameters
    ----------
    claim : str
    ours, other : array-like of shape (n_repetitions,)
        Paired repetitions: the same splits.
    lower_is_better : bool
        True for errors and times, False for accuracies.
    margin : float
        Smallest difference that counts; negative: how much worse `ours` may be (a claim of "at least as
        good").
    text, **about : str
        `measure` should say which difference, e.g. "error of OM-2 minus error of PA-I [points]".

    Returns
    -------
    Verdict
        Its number is ``mean(ours) - mean(other)``, with the sign as measured.
    """
    ours, other = _samples(ours=ours, other=other)
    side = {"at_most": -margin} if lower_is_better else {"at_least": margin}
    verdict = _decide(claim, interval(ours - other), **side, text=text, **about)
    if margin == 0.0 and verdict.low is not None and verdict.low == verdict.high == 0.0:
        return verdict._replace(verdict="fails", text=_joined(text, "No difference at all."))
    return verdict


def judge_close(claim, ours, other, tolerance, *, text="", **about):
    """Claim: paired `ours` and `other` are close, their mean difference within `tolerance` on either side.

    Holds if the whole interval of the difference lies within, fails if it lies wholly outside. Parameters as
    for `judge_difference`.
    """
    ours, other = _samples(ours=ours, other=other)
    verdict = _decide(claim, interval(ours - other), -tolerance, tolerance, text=text, **about)
    if "Undecided" in verdict.text.removeprefix(text):
        said = f"Undecided: the interval reaches past {tolerance:.4g}."
        return verdict._replace(text=_joined(text, said))
    return verdict


def judge_ratio(claim, numerator, denominator, at_least=None, at_most=None, **about):
    """Claim: the geometric mean ratio of paired positive measurements, such as times, lies in a range.

    Parameters
    ----------
    claim : str
    numerator, denominator : array-like of shape (n_repetitions,), positive
    at_least, at_most : float, optional
        The claimed range; at least one end.

    Returns
    -------
    Verdict
        Number and interval are those of the geometric mean. With both ends given, the claim holds if the
        whole interval lies within, and fails if it lies wholly outside.
    """
    top, bottom = _samples(numerator=numerator, denominator=denominator)
    if min(top.min(), bottom.min()) <= 0:
        raise ValueError("numerator and denominator must be positive")
    if at_least is None and at_most is None:
        raise ValueError("give at_least, at_most, or both")
    spread = [float(np.exp(v)) for v in interval(np.log(top) - np.log(bottom))]
    return _decide(claim, spread, at_least, at_most, **about)


def judge_slope(claim, x, y, at_least=None, at_most=None, *, log_y=True, **about):
    """Claim: the least-squares slope of y on ln x, or of ln y on ln x (an exponent), lies in a stated range.

    Parameters
    ----------
    claim : str
    x, y : array-like of shape (n_points,)
        At least three points with different x, positive where the axis is logarithmic.
    at_least, at_most : float, optional
        The claimed range; at least one end.
    log_y : bool

    Returns
    -------
    Verdict
        Its interval is that of the slope in the linear model, from the scatter about the line.
    """
    from scipy.stats import linregress, t

    if at_least is None and at_most is None:
        raise ValueError("give at_least, at_most, or both")
    x, y = _samples(x=x, y=y)
    if len(np.unique(x)) < 3:
        raise ValueError("a slope with an interval needs at least three different x")
    if x.min() <= 0 or (log_y and y.min() <= 0):
        raise ValueError("values on a logarithmic axis must be positive")
    fit = linregress(np.log(x), np.log(y) if log_y else y)
    half = t.ppf(0.975, len(x) - 2) * fit.stderr
    spread = [float(v) for v in (fit.slope, fit.slope - half, fit.slope + half)]
    return _decide(claim, spread, at_least, at_most, **about)


def judge_bound(
    claim, measured, bound, *, slack=1e-9, measure="measured over bound, largest", text="", **about
):
    """Claim: a theorem's bound; every measured value is at most its bound.

    Parameters
    ----------
    claim : str
    measured, bound : array-like of one shape
        A bound on an expectation is to be compared with means, formed by the caller.
    slack : float
        Relative rounding allowed.

    Returns
    -------
    Verdict
        Its number is the largest ratio of measured to bound; no interval, since a bound holds on every
        sequence or fails. The text counts comparisons and violations.
    """
    measured, bound = np.broadcast_arrays(measured, bound)
    measured, bound = _samples(measured=measured, bound=bound)
    violations = int((measured > bound + slack * np.abs(bound)).sum())
    infinite = np.where(measured > 0, np.inf, 0.0)
    ratio = float(np.max(np.divide(measured, bound, out=infinite, where=bound > 0)))
    said = f"{violations} of {len(measured)} comparisons above the bound."
    verdict = "fails" if violations else "holds"
    return Verdict(claim, verdict, ratio, measure=measure, text=_joined(text, said), **about)


def judge_exact(claim, true, *, number=None, **about):
    """Claim that is decided by an exact finding (a count, an identity), not by an average: `true` or not."""
    return Verdict(claim, "holds" if true else "fails", None if number is None else float(number), **about)


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

    Returns
    -------
    Verdict
        Fails if any part fails; holds if all hold and nothing is open; partly if some hold and the rest is
        open or undecided; else not testable here. Its text lists the parts.
    """
    if not parts:
        raise ValueError("parts is empty: use not_testable for a claim of which nothing can be judged")
    found = [part.verdict for part in parts.values()]
    if "fails" in found:
        verdict = "fails"
    elif not open_parts and all(one == "holds" for one in found):
        verdict = "holds"
    else:
        verdict = "partly" if "holds" in found else "not testable here"
    said = [f"{what}: {part.verdict}{_number(part)}." for what, part in parts.items()]
    if open_parts:
        said.append(f"Open: {'; '.join(open_parts)}.")
    first = list(parts.values())[main]
    data = "; ".join(dict.fromkeys(part.data for part in parts.values() if part.data))
    about = {"data": data, "text": _joined(text, *said), "figure": figure or first.figure}
    return first._replace(claim=claim, verdict=verdict, **about)


def _number(verdict):
    if verdict.number is None:
        return ""
    spread = "" if verdict.low is None else f", 95% interval {verdict.low:.4g} to {verdict.high:.4g}"
    return f" ({verdict.number:.4g}{spread})"


# --- the book -----------------------------------------------------------------------------------------------


class ClaimBook:
    """The verdicts of a chapter, in ``claims.csv`` and ``claims.md`` beside its figures after every entry.

    Parameters
    ----------
    store : FigureStore
        Gives directory, chapter and profile.

    Notes
    -----
    Both files list every claim of the chapter; those not judged yet read "open". A new book starts with all
    of its chapter open, so that no verdict of an earlier run survives unless it is found again. Rows of other
    chapters stay as they are.
    """

    COLUMNS = tuple(
        "id chapter source claim verdict number low high measure data profile text figure".split()
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
            If the claim is unknown or of another chapter, if the verdict is none of `VERDICTS`, or "holds" or
            "fails" come without naming the data, or any other without a text.
        """
        verdict = verdict._replace(**{"profile": self.store.profile, **changes})
        mine = claims(self.store.chapter)
        if verdict.claim not in mine.index:
            raise ValueError(
                f"claim {verdict.claim!r} is not among the claims of the chapter {self.store.chapter}"
                + near(verdict.claim, mine.index)
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
            rows.append({**row._asdict(), **verdict._asdict(), "claim": row.claim})
        return pd.DataFrame(rows)[list(self.COLUMNS)]

    def _write(self):
        directory = Path(self.store.directory)
        with file_lock(directory / ".claims.lock"):
            rows = self.frame()
            others = read_verdicts(directory)
            others = others[others["chapter"] != self.store.chapter]
            parts = [part for part in (others, rows.astype(object)) if len(part)]
            table = pd.concat(parts, ignore_index=True).sort_values(
                "id", key=claims().index.get_indexer, kind="stable"
            )
            atomic_write(directory / "claims.csv", table.to_csv(index=False, lineterminator="\n"))
            atomic_write(directory / "claims.md", "# Claims and verdicts\n\n" + verdict_table(table))


def read_verdicts(directory):
    """The verdicts written in `directory` (DataFrame with `ClaimBook.COLUMNS`; empty if there are none)."""
    try:
        table = pd.read_csv(Path(directory) / "claims.csv", dtype=str, keep_default_na=False)
    except FileNotFoundError:
        return pd.DataFrame(columns=list(ClaimBook.COLUMNS), dtype=object)
    for column in ("number", "low", "high"):
        table[column] = [float(value or "nan") for value in table[column]]
    return table.astype(object)


def verdict_table(table):
    """Verdicts as Markdown: a count, then one row for each claim."""
    found = table["verdict"].value_counts()
    counts = [f"{found[verdict]} {verdict}" for verdict in VERDICTS if verdict in found]
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

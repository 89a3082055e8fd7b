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
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from cuelearn.book.figures import markdown_table
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
    """What became of one claim: `number` decides, `measure` says what it is and in which unit.

    `low` and `high` are its 95% interval, None for an exact quantity and for a single run; `ClaimBook.record`
    sets `profile`.
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
        says = claims().loc[self.claim, "claim"]
        number = ""
        if self.number is not None:
            number = f"{self.measure}: {self.number:.4g}"
            number += "" if self.low is None else f" (95% interval {self.low:.4g} to {self.high:.4g})"
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
    if at_least is None and at_most is None:
        raise ValueError("give at_least, at_most, or both")
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
        verdict = "not testable here"
        text = _joined(text, f"Undecided: the interval contains {crossed[0]:.4g}.")
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
        lengths = " and ".join(str(len(values)) for values in found)
        raise ValueError(f"paired samples must have one length, got {lengths}")
    return found


def judge_at_most(claim, values, bound, **about):
    """Claim: the mean of `values`, shape (n_repetitions,), is at most `bound`.

    `claim` is an id in ``claims.csv``; `about` has the verdict's ``measure``, ``data``, ``text`` and
    ``figure``; so in all functions here.
    """
    return _decide(claim, interval(*_samples(values=values)), at_most=bound, **about)


def judge_at_least(claim, values, bound, **about):
    """Claim: the mean of `values` is at least `bound`."""
    return _decide(claim, interval(*_samples(values=values)), at_least=bound, **about)


def judge_difference(claim, ours, other, *, lower_is_better=True, margin=0.0, text="", **about):
    """Claim: `ours` is better than `other` on average, by at least `margin`.

    Parameters
    ----------
    claim : str
    ours, other : array-like of shape (n_repetitions,)
        Paired repetitions: the same splits. The verdict's number is ``mean(ours) - mean(other)``.
    lower_is_better : bool
        True for errors and times, False for accuracies.
    margin : float
        Smallest difference that counts; negative: how much worse `ours` may be (a claim of "at least as
        good").
    """
    ours, other = _samples(ours=ours, other=other)
    side = {"at_most": -margin} if lower_is_better else {"at_least": margin}
    verdict = _decide(claim, interval(ours - other), **side, text=text, **about)
    if margin == 0.0 and verdict.low is not None and verdict.low == verdict.high == 0.0:
        return verdict._replace(verdict="fails", text=_joined(text, "No difference at all."))
    return verdict


def judge_close(claim, ours, other, tolerance, *, text="", **about):
    """Claim: paired `ours` and `other` are close, their mean difference within `tolerance` on either side.

    Holds if the whole interval of the difference lies within, fails if it lies wholly outside.
    """
    ours, other = _samples(ours=ours, other=other)
    verdict = _decide(claim, interval(ours - other), -tolerance, tolerance, text=text, **about)
    if "Undecided" in verdict.text.removeprefix(text):
        said = f"Undecided: the interval reaches past {tolerance:.4g}."
        return verdict._replace(text=_joined(text, said))
    return verdict


def judge_ratio(claim, numerator, denominator, at_least=None, at_most=None, **about):
    """Claim: the geometric mean ratio of paired positive measurements, such as times, lies in a range.

    At least one end of the range is given; the interval lies within (holds), outside (fails), or neither.
    """
    top, bottom = _samples(numerator=numerator, denominator=denominator)
    if min(top.min(), bottom.min()) <= 0:
        raise ValueError("numerator and denominator must be positive")
    spread = [float(np.exp(v)) for v in interval(np.log(top) - np.log(bottom))]
    return _decide(claim, spread, at_least, at_most, **about)


def judge_slope(claim, x, y, at_least=None, at_most=None, *, log_y=True, **about):
    """Claim: the least-squares slope of y on ln x, or of ln y on ln x (an exponent), lies in a stated range.

    At least three points with different x are needed. The interval is that of the slope in the linear model,
    from the scatter about the line.
    """
    from scipy.stats import linregress, t

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
    """Claim: a theorem's bound; every measured value is at most its bound, up to `slack` times it.

    Where the bound is on an expectation, the caller hands over means. The number is the largest ratio of
    measured to bound, without an interval, since a bound holds on every sequence or fails.
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
    """One verdict for a claim of several parts, which its text lists.

    Fails if any part fails; holds if all hold and nothing is open; partly if some hold and the rest is open
    or undecided; else not testable here.

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

    Both files list every claim of the chapter. A new book starts with all of its chapter "open", so that no
    verdict of an earlier run survives unless it is found again; rows of other chapters stay as they are.

    Parameters
    ----------
    store : FigureStore
        Gives directory, chapter and profile.
    """

    COLUMNS = "id chapter source claim verdict number low high measure data profile text figure".split()

    def __init__(self, store):
        self.store = store
        self.verdicts = {}
        self._write()

    def record(self, verdict, **changes):
        """Enter a verdict (with fields replaced by `changes`) and write the files.

        Raises
        ------
        ValueError
            If the claim is unknown or of another chapter, the verdict is none of `VERDICTS` or does not name
            its data, or a text is missing that says what is open.
        """
        verdict = verdict._replace(**{"profile": self.store.profile, **changes})
        mine = claims(self.store.chapter)
        if verdict.claim not in mine.index:
            said = f"claim {verdict.claim!r} is not among the claims of the chapter {self.store.chapter}"
            raise ValueError(f"{said}{near(verdict.claim, mine.index)}")
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
        return pd.DataFrame(rows)[self.COLUMNS]

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
        return pd.DataFrame(columns=ClaimBook.COLUMNS, dtype=object)
    for column in ("number", "low", "high"):
        table[column] = [float(value or "nan") for value in table[column]]
    return table.astype(object)


def verdict_table(table):
    """Verdicts as Markdown: a count, then one row for each claim."""
    found = table["verdict"].value_counts()
    counts = [f"{found[verdict]} {verdict}" for verdict in VERDICTS if verdict in found]
    shown = []
    for row in table.itertuples():
        cells = {
            "claim": row.id,
            "says": f"{row.claim} ({row.source})",
            "verdict": f"**{row.verdict}**" if row.verdict != "open" else "open",
            "number": "" if pd.isna(row.number) else f"{row.number:.4g}",
            "95% interval": "" if pd.isna(row.low) else f"{row.low:.4g} to {row.high:.4g}",
        }
        shown.append(cells | {name: getattr(row, name) for name in ("measure", "data", "profile")})
        shown[-1] |= {"remark": row.text, "figure": row.figure}
    return f"{', '.join(counts)}.\n\n" + markdown_table(pd.DataFrame(shown))

"""Verdicts on the papers' claims: a number, its interval, the data, and what follows.

===================  ====================================================================================
holds                every part's whole 95% interval lies on the claimed side
holds, smaller       every part holds, one of them only so far: its difference is certain, and the whole
                     interval lies below the smallest difference that counts
fails                a part's whole interval lies on the other side, or about zero below the smallest
                     difference that counts, and no part holds
mixed                some parts hold and some fail, or clock and count disagree; the text says which
undecided            nothing fails and an interval contains its threshold; the text says how many more units
                     of repetition would decide
not testable here    the data that could decide it is absent
open                 not judged yet in this run
===================  ====================================================================================

The smallest difference that counts is a point, or what the claim states in ``claims.csv``. Claims about time
are judged by the ratio of CPU seconds, and by that of a count beside: less than a factor `EQUAL_TIME` either
way counts as equal, so that "faster" must come to that factor and "k times faster" to k over it. Where one
holds and the other fails the part is mixed, else the clock decides.

``claims.csv`` fixes, before anything is run, each claim's unit of repetition, what is random in it, and the
number of units in the profiles quick and full. Each claim is declared by `claim` in
``notebooks/companion/<chapter>/claims.py``: as rows or, where that takes a computation, as a function. Both
read nothing but the tables beside the figures. So ``judge("om2-1")`` finds the verdict of figures/reference
again, ``judge("om2-1", "figures/quick")`` that of another run.

Of a claim with several parts, one that fails, or holds beside one that fails, counts only if it outlasts
Holm's correction over all parts; a mixed one has the larger of the two probabilities. Bundled data decides:
what original and simulated data say stands beside it.
"""

import fnmatch
import importlib
import inspect
import itertools
import json
import math
import re
from dataclasses import KW_ONLY, dataclass, fields, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import linregress, norm
from scipy.stats import t as student

from companion import CHECKOUT
from companion.run.figures import METHOD_STYLE
from companion.run.records import near, read_rows
from companion.study import CONFIDENCE

__all__ = ["Each", "Part", "Verdict", "claim", "claims", "judge"]

#: Letters of a text that stands beside a verdict; a longer one is folded away.
SHORT = 160
VERDICTS = ("holds", "holds, smaller", "fails", "mixed", "undecided", "not testable here", "open")
#: What data a verdict can rest on, the first of them that there is decides.
TIERS = ("bundled", "original", "simulated")
TIER_OF = {"generated": "simulated", "bundled": "bundled", "original": "original"}
HOLDING = VERDICTS[:2]
DECIDED = VERDICTS[:4]
LEVEL = 1 - CONFIDENCE
RELEVANT = 0.01  # a point of error, accuracy or area: a smaller difference is none
EQUAL_TIME = 1.25  # a smaller factor between two times, or two counts of work, is none
POWER = 0.8  # with which the units that would decide do so, if the mean stays where it is

#: Names of methods that only the code has; the longest first.
_NAMES = [re.escape(method) for method in METHOD_STYLE if re.match(r"[A-Z]\w*[A-Z0-9]\w*( |$)", method)]
IN_CODE = re.compile(rf"(?<![\w-])({'|'.join(sorted(_NAMES, key=len, reverse=True))})(?![\w-])")
#: The committed results.
REFERENCE = CHECKOUT / "figures" / "reference"


class Verdict(NamedTuple):
    """What became of one claim: `number` decides, `measure` says what it is and in which unit.

    `low` and `high` are its 95% interval over `n` units of repetition, called `unit`; None for an exact
    quantity and for a single run. `p` is the two-sided probability of a number so far from the threshold, 0
    where a finding is exact; `needed` units would tell number and threshold apart. `tier` is one of `TIERS`,
    `bundled`, `original`, `simulated` are the verdicts on each; `clock` and `count` those of the parts about
    time by CPU seconds and by what is counted, on the data that decides. `parts` are pairs of what a part
    says and a verdict; those of a part about time are its "clock" and its "count".

    Examples
    --------
    >>> from companion.run.claims import Verdict, judge
    >>> isinstance(judge("omcl-2"), Verdict)
    True
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
    n: int | None = None
    unit: str = ""
    p: float = 0.0
    needed: float | None = None
    tier: str = "bundled"
    bundled: str = ""
    original: str = ""
    simulated: str = ""
    clock: str = ""
    count: str = ""
    parts: tuple = ()

    def _repr_markdown_(self):
        """How a notebook shows it."""
        decides = "Decisive part: " if len(self.parts) > 1 else ""
        number = number_text(self) and f"{decides}{self.measure}: {number_text(self)}"
        data = self.data and f"Data: {self.data}"
        short = len(self.text) <= SHORT
        line = ". ".join(filter(None, [number, data, short and self.text]))
        if not short:
            line += f"\n\n<details><summary>Part by part</summary>\n\n{in_lines(self.text)}\n\n</details>"
        sentence = claims().loc[self.claim, "claim"]
        verdict = f"**{self.verdict.capitalize()}** ({self.claim})"
        return f"**Claim.** *{sentence}.* {verdict}. {with_labels(line)}"


def number_text(verdict, interval=", 95% interval {} to {}"):
    """The number of a verdict, or of a row of them, with its interval."""
    number = "" if pd.isna(verdict.number) else f"{verdict.number:.4g}"
    ends = "" if pd.isna(verdict.low) else interval.format(f"{verdict.low:.4g}", f"{verdict.high:.4g}")
    return number + ends


def with_labels(text):
    """A text with methods as figures name them, not as the code does."""
    return IN_CODE.sub(lambda found: METHOD_STYLE[found[0]]["label"], text)


def of_units(n, unit):
    """So many units of repetition in words; where there are none they are runs."""
    first, of, rest = (unit if unit and unit != "none" else "run").partition(" of ")
    many = "corpora" if first == "corpus" else f"{first}s"
    return f"{n} {first if str(n) == '1' else many}{of}{rest}"


def in_lines(text):
    """The parts in the text of a verdict, each in a line of a list."""
    return "\n".join(f"- {part}" for part in re.split(r"(?<=\))\. ", text))


def claims(chapter=None):
    """The papers' claims and how they are judged (DataFrame, indexed by id).

    Examples
    --------
    >>> from companion.run.claims import claims
    >>> print(claims("oks").index[0], claims("oks").iloc[0]["source"])
    oks-1 OKS tables
    """
    return read_rows("claims.csv", chapter)


# --- one part -----------------------------------------------------------------------------------------------


@dataclass
class Part:
    """A part of a claim: what it says, by what measure. Its kind has the numbers and judges them.

    ==========  ==============================================================================================
    `Mean`      the mean of `values`, one for each unit of repetition, or of their differences to the paired
                `baseline`; with `ratio` the geometric mean of their quotients
    `Slope`     the mean of the slopes of ln `values` on ln `x` (of the values themselves without `log_y`),
                one for each unit that has three different x
    `Time`      the ratio of CPU seconds and, beside it, of `counts` to `baseline_counts`, which `counted`
                names; of a method that counts nothing (all NaN) the clock alone
    `Growth`    the slope of CPU seconds and, beside it, of `counts`
    `Bound`     every value at most its `bound`, up to `slack` times it: the largest quotient
    `Finding`   exact: it is `true` or not, with its `number`
    `Given`     a `verdict` from elsewhere
    `Open`      not judged in this run
    ==========  ==============================================================================================

    The first four hold if the whole 95% interval lies from `at_least` to `at_most`, fail if all of it lies
    outside, else they are undecided. `units` names the unit of each value, where a unit has several.

    No number of runs tells the difference of two equal methods from zero: a claim that one is better fails,
    too, if the interval lies below the smallest difference that counts, and only "holds, smaller" if all of
    it lies between that and zero. What counts is the threshold of a difference, where it is not 0; else
    `relevant`, by default `RELEVANT` for differences against 0, and none for others. Bounds of a `Time` are
    taken up to `EQUAL_TIME`.

    `figure` has the data (those whose names begin with `of`; those of the figure `data_from`, if it is
    another); `data` and `unit` replace what its record and ``claims.csv`` say.

    Examples
    --------
    >>> from companion.run.claims import Bound, Mean, Part, judge_part
    >>> errors = Mean("lower", "difference of errors", [0.10, 0.11, 0.09], [0.20, 0.22, 0.19], at_most=0.0)
    >>> judge_part(errors).verdict
    'holds'
    >>> isinstance(errors, Part), judge_part(Bound("theorem 1", "", [10, 14], [20, 21])).verdict
    (True, 'holds')
    """

    says: str
    measure: str = ""
    _: KW_ONLY
    n: Any = None
    text: str = ""
    figure: str = ""
    of: str = ""  # or several
    data_from: str = ""
    data: str = ""
    unit: str = ""


@dataclass
class Mean(Part):
    values: Any = None
    baseline: Any = None
    at_least: float | None = None
    at_most: float | None = None
    ratio: bool = False
    relevant: float | None = None
    units: Any = None

    def judge(self, verdict):
        columns = _numbers(self.values, self.baseline)
        numbers = [column.to_numpy() for _, column in columns.items()]
        if self.ratio:
            numbers = [_log(column) for column in numbers]
        values = numbers[0]
        if self.baseline is not None:
            values = values - numbers[1]
        if self.units is not None and values.size:
            columns["units"] = np.ravel(self.units)
            values = np.array([values[rows].mean() for rows in columns.groupby("units").indices.values()])
        return _judge_mean(self, values, verdict)


@dataclass
class Slope(Part):
    values: Any = None
    x: Any = None
    units: Any = None
    at_least: float | None = None
    at_most: float | None = None
    log_y: bool = True
    baseline = ratio = relevant = None  # no comparison: see `_judge_mean`

    def judge(self, verdict):
        runs = _numbers(self.values, self.x)
        runs["units"] = np.ravel(self.units)
        slopes = [_slope(run["other"], run["values"], self.log_y) for _, run in runs.groupby("units")]
        long_enough = np.array([slope for slope in slopes if not math.isnan(slope)])
        if 0 < len(long_enough) < len(slopes):
            n_short = len(slopes) - len(long_enough)
            verdict = _noted(verdict, f"{n_short} of {len(slopes)} runs have fewer than three points.")
        return _judge_mean(self, long_enough, verdict)


@dataclass
class Time(Mean):
    ratio: bool = True
    relevant: float = 0.0
    counts: Any = None
    baseline_counts: Any = None
    counted: str = ""

    def judge(self, verdict):
        at_least = self.at_least and _times(self.at_least)
        at_most = self.at_most and 1 / _times(1 / self.at_most)
        counts = {"values": self.counts, "baseline": self.baseline_counts}
        return _clock_and_count(replace(self, at_least=at_least, at_most=at_most), Mean, counts, verdict)

    def both(self, seconds, count):
        """What clock and count say of two methods, in a sentence."""
        if self.at_most is None:  # the other method over this one
            seconds, count = 1 / seconds, 1 / count
        if 1 / EQUAL_TIME <= seconds <= EQUAL_TIME:
            clock = "As fast"
        elif seconds < 1.0:
            clock = f"{1 / seconds:.2g} times as fast"
        else:
            clock = f"{seconds:.2g} times as slow"
        return f"{clock} by the clock, {count:.2g} times the {self.counted}."


@dataclass
class Growth(Slope):
    counts: Any = None
    counted: str = ""

    def judge(self, verdict):
        return _clock_and_count(self, Slope, {"values": self.counts}, verdict)

    def both(self, seconds, count):
        """What clock and count say of how a method grows, in a sentence."""
        return f"An exponent of {seconds:.2g} by the clock, {count:.2g} by {self.counted}."


@dataclass
class Bound(Part):
    values: Any = None
    bound: Any = None
    slack: float = 1e-9

    def judge(self, verdict):
        columns = _numbers(self.values, self.bound)
        measured = columns["values"].to_numpy()
        bound = columns["other"].to_numpy()
        n_above = int((measured > bound + self.slack * np.abs(bound)).sum())
        infinite = np.where(measured > 0, np.inf, 0.0)
        ratio = float(np.max(np.divide(measured, bound, out=infinite, where=bound > 0)))
        measure = self.measure or "measured over bound, largest"
        text = f"{n_above} of {len(columns)} comparisons above the bound."
        return _noted(verdict, text, verdict="fails" if n_above else "holds", number=ratio, measure=measure)


@dataclass
class Finding(Part):
    true: Any = None
    number: float | None = None

    def judge(self, verdict):
        number = None if self.number is None else float(self.number)
        return verdict._replace(verdict="holds" if self.true else "fails", number=number)


@dataclass
class Given(Part):
    verdict: Any = None


class Open(Part):
    pass


def judge_part(part, claim="", **about):
    """The verdict on one `Part`; `about` has the fields of the verdict on its data."""
    verdict = Verdict(claim, "undecided", measure=part.measure, n=part.n, text=part.text)
    return part.judge(verdict._replace(**about))


def _numbers(values, other=None):
    """A table of the values and of what they are compared with; ValueError if one is not finite."""
    table = pd.DataFrame(index=range(np.size(values)))
    for name, column in (("values", values), ("other", other)):
        if column is not None:
            table[name] = np.ravel(column).astype(float) if np.ndim(column) else column
    if not np.isfinite(table).all(axis=None):
        raise ValueError(f"a part is judged by finite numbers only, got {table}")
    return table


def _clock_and_count(part, kind, counts, verdict):
    """The verdict by the clock and that by the count: mixed where one holds and the other fails."""
    clock = kind.judge(part, verdict)
    if any(column is None or (np.size(column) and pd.isna(column).all()) for column in counts.values()):
        return clock._replace(clock=clock.verdict, parts=(("clock", clock),))
    count = kind.judge(replace(part, **counts), verdict._replace(measure=part.counted, text=""))
    state, text, p = clock.verdict, clock.text, clock.p
    if {clock.verdict, count.verdict} == {"holds", "fails"}:
        state, p = "mixed", max(clock.p, count.p)
        text = _joined(part.both(clock.number, count.number), text)
    text = _joined(text, f"By {part.counted}: {count.verdict}{_details(count)}.")
    by = {"clock": clock.verdict, "count": count.verdict, "parts": (("clock", clock), ("count", count))}
    return clock._replace(verdict=state, text=text, p=p, **by)


def _times(factor):
    """How many times as fast is enough to be called so; "about as fast" (1 or less) is left as it is said."""
    return max(factor / EQUAL_TIME, EQUAL_TIME) if factor >= 1.0 else factor


def _noted(judged, text, **fields):
    """A verdict with one more sentence, and other fields."""
    return judged._replace(text=_joined(judged.text, text), **fields)


def _joined(*texts):
    return " ".join(filter(None, texts))


def _log(values):
    if (values <= 0).any():
        raise ValueError("values of a ratio or on a logarithmic axis must be positive")
    return np.log(values)


def _slope(x, y, log_y):
    """The slope of one run on logarithmic axes; NaN if it has fewer than three points."""
    if x.nunique() < 3:
        return math.nan
    y = y.to_numpy()
    return linregress(_log(x.to_numpy()), _log(y) if log_y else y).slope


def _judge_mean(part, values, verdict):
    """The verdict from an interval: all within the claimed range, all outside, or neither."""
    if not values.size:
        return _noted(verdict, "No run is left to judge by.", number=math.nan, p=1.0)
    mean = _Interval(values, part.ratio)
    verdict = verdict._replace(n=mean.n, number=mean.number)
    if mean.n == 1:
        return _noted(verdict, "A single run has no interval.", p=1.0)
    ends = ((part.at_least, 1), (part.at_most, -1))
    limits = [(bound, sign) for bound, sign in ends if bound is not None]
    if not limits:
        raise ValueError("give at_least, at_most, or both")
    first, sign = limits[0]
    # a claim that one is better, by what counts: the threshold where it is not 0
    compared = part.baseline is not None and not part.ratio
    better = compared and len(limits) == 1 and sign * first >= 0.0
    relevant = part.relevant
    if relevant is None:
        relevant = RELEVANT * (better and first == 0.0)
    low, high = mean.interval
    ends = pd.DataFrame([_end(mean, *limit, relevant, better) for limit in limits])
    crossed = ends[~ends["within"] & ~ends["outside"]]
    text = ""
    if better and low == high == 0.0:
        state, p, text = "fails", 0.0, "No difference at all."
    elif ends["smaller"].any():
        state, p = "holds, smaller", ends["p_smaller"].min()
        counts = f"factor {ends['far'].iloc[0]:g}" if part.ratio else f"{abs(first or relevant):g}"
        text = f"The difference is certain, and smaller than the {counts} that counts."
    elif (ends["outside"] & ~ends["within"]).any():
        state, p = "fails", ends["p_outside"].min()
    elif len(crossed):
        state, p = "undecided", min(ends["p_within"].max(), ends["p_outside"].min())
        more = crossed["needed"].iloc[0] - mean.n
        many = f"about {max(more, 2.0):.0f} more" if more < 10_000 else "more than 10,000"
        needed = of_units(many, verdict.unit)
        bound = crossed["bound"].iloc[0] + 0.0
        text = f"The interval contains {bound:.4g}; {needed} would decide."
        if better and bound and low * high > 0.0:
            text = f"A difference is certain; whether it is the {bound:.4g} that counts is open."
    else:
        state, p = "holds", ends["p_within"].max()
    p = min(1.0, 2 * float(p))
    needed = float(ends["needed"].max())
    return _noted(verdict, text, verdict=state, low=low, high=high, p=p, needed=needed)


class _Interval:
    """A mean with Student's interval; of logarithms, if it is to be a geometric one."""

    def __init__(self, values, geometric):
        self.forward, back = (math.log, math.exp) if geometric else (float, float)
        self.n = values.size
        self.mean = float(values.mean())
        self.number = back(self.mean)
        if self.n > 1:
            self.error = float(values.std(ddof=1) / math.sqrt(self.n))
            half = float(student.ppf((1 + CONFIDENCE) / 2, self.n - 1) * self.error)
            self.interval = back(self.mean - half), back(self.mean + half)

    def beyond(self, bound, sign):
        """Probability of a mean so far above the bound (below, by a negative sign), were it the true one."""
        distance = sign * (self.mean - self.forward(bound))
        return float(student.sf(distance / self.error, self.n - 1)) if self.error else float(distance < 0)

    def units_that_decide(self, bound):
        """With which the bound is left with `POWER`, if the mean stays."""
        distance = self.mean - self.forward(bound)
        reach = norm.ppf((1 + CONFIDENCE) / 2) + norm.ppf(POWER)
        return self.n * (reach * self.error / distance) ** 2 if distance else math.inf


def _end(mean, bound, sign, relevant, better):
    """Of an end of the claimed range whether the interval is within, or outside: also what passes the end by
    less than what is relevant; or smaller: beyond no difference, and not beyond what counts."""
    low, high = sorted(sign * end for end in mean.interval)
    far = bound + sign * relevant
    none = 0.0 if better else bound
    outside = high <= sign * far
    return {
        "bound": bound,
        "far": far,
        "within": low >= sign * bound,
        "outside": outside,
        "smaller": none != far and low >= sign * none and outside,
        "p_within": mean.beyond(bound, sign),
        "p_outside": mean.beyond(far, -sign),
        "p_smaller": mean.beyond(none, sign),
        "needed": min(mean.units_that_decide(bound), mean.units_that_decide(far)),
    }


# --- all parts ----------------------------------------------------------------------------------------------


def holm(p):
    """Which of several null hypotheses Holm's procedure rejects at `LEVEL`, from their probabilities."""
    p = np.asarray(p, dtype=float)
    order = np.argsort(p, kind="stable")
    below = p[order] <= LEVEL / np.arange(p.size, 0, -1)
    rejected = np.zeros(p.size, dtype=bool)
    rejected[order] = np.logical_and.accumulate(below)
    return rejected


def combine(claim, parts, open_parts=(), text=""):
    """One verdict for a claim of several parts (dict of what each says -> Verdict), which its text lists.

    The first tier of `TIERS` that has parts decides, and of its parts the clearest mixed one, else the
    clearest one that fails, else the least clear (of those that are smaller, where there are such): the
    claim's number is that part's.
    """
    lines = []
    verdicts = {}
    deciding = None
    for tier in TIERS:
        named = {says: part for says, part in parts.items() if part.tier == tier}
        if named:
            verdicts[tier], decides, corrected = _of_one_tier(list(named.values()), open_parts)
            deciding = deciding or decides
            for (says, part), verdict in zip(named.items(), corrected, strict=True):
                lines.append(f"{says}: {verdict}{_details(part)}.")
    if open_parts:
        lines.append(f"Open: {'; '.join(open_parts)}.")
    if not parts:
        return Verdict(claim, "open", text=_joined(text, *lines))
    timed = [dict(part.parts) for part in parts.values() if part.tier == deciding.tier and part.clock]
    for by in ("clock", "count"):
        judged = [part[by] for part in timed if by in part]
        if judged:
            verdicts[by], *_ = _of_one_tier(judged, ())
    both = ""
    if deciding.clock and deciding.verdict == "mixed":
        (says,) = [says for says, part in parts.items() if part is deciding]
        both = f"{deciding.text.partition('. ')[0]} ({says})."
    return deciding._replace(
        claim=claim,
        verdict=verdicts[deciding.tier],
        data="; ".join(dict.fromkeys(part.data for part in parts.values() if part.data)),
        text=_joined(both, *lines, text),
        parts=tuple(parts.items()),
        **{"clock": "", "count": ""} | verdicts,
    )


def _of_one_tier(parts, open_parts):
    """Verdict on a claim's parts, the part that decides, and each part's verdict once corrected.

    All parts hold and nothing is open, or else what outlasts Holm's correction counts.
    """
    plain = [part.verdict for part in parts]
    corrected = [
        verdict if sure or verdict not in DECIDED else f"undecided over all parts, alone {verdict}"
        for verdict, sure in zip(plain, holm([part.p for part in parts]), strict=True)
    ]
    least_clear = max(parts, key=lambda part: part.p)
    if set(plain) <= {*HOLDING} and not open_parts:
        verdict = max(plain, key=VERDICTS.index)
        least_clear = max((part for part in parts if part.verdict == verdict), key=lambda part: part.p)
        return verdict, least_clear, plain
    failing = [part for part, verdict in zip(parts, corrected, strict=True) if verdict in ("fails", "mixed")]
    if failing:
        verdict = "mixed" if {"mixed", *HOLDING} & set(corrected) else "fails"
        return verdict, min(failing, key=lambda part: (part.verdict == "fails", part.p)), corrected
    return "undecided", least_clear, corrected


def _details(part):
    """In parentheses: the number of a part, its interval, its text."""
    shown = "; ".join(filter(None, [number_text(part), part.text.rstrip(".")]))
    return f" ({shown})" if shown else ""


# --- from the tables beside the figures ---------------------------------------------------------------------


class _Judged(NamedTuple):
    """What judges a claim, see `claim`."""

    items: list
    figure: str
    file: str


_JUDGES = {}


def claim(name, figure="", /, *items, **rows):
    """How a claim is judged: by parts, whose fields name columns (of `Each`, with the options `rows`), by
    texts, and by the function that this decorates: of the `Results` it yields further parts and texts.

    `figure` is that of the parts which name none. A claim whose only part says nothing is that part.

    Examples
    --------
    >>> from companion.run.claims import Mean, claim
    >>> @claim("my-1", "my-figure", Mean("small", "error", "error", at_most=0.1), where="method == 'OM2'")
    ... def largest_error(results):
    ...     yield f"The largest is {results.table('my-figure')['error'].max():.2f}."
    """
    texts = [item for item in items if isinstance(item, str)]
    parts = [item for item in items if not isinstance(item, str)]
    if rows:
        parts = [Each(*parts, **rows)]
    items = [Each(part) if isinstance(part, Part) else part for part in parts] + texts
    file = inspect.currentframe().f_back.f_code.co_filename
    _JUDGES[name] = _Judged(items, figure, file)

    def judged_by(function):
        items.append(function)
        return function

    return judged_by


class Each:
    """Parts declared once for each group of rows of a table, and for each choice of names.

    In texts {column} is the value in the first row. Other fields name a column, or compute one as
    ``DataFrame.eval`` does. Where rows have columns `figure`, `of`, `data_from`, these are the part's.

    Parameters
    ----------
    *parts : Part or Each
        What is judged; an `Each` inside has the rows of this one, and its `wide`.
    table : str or function
        Name of a table, or a function of the `Results`; by default that of the figure.
    by : str or list of str
        Columns that make the groups, in order of appearance.
    where : str
        Which rows of a group count, as in ``DataFrame.query``; {names} are filled in.
    lost : str
        What pairs without a value or a baseline are called in the text, which counts them.
    wide, index : str or list of str
        Columns that are compared between methods: each method gets its own, by its name (of several "seconds
        OM2"), in a row for each `index` ("seed"). `across` has the names ("method"); `aggregate` ("mean")
        makes one of several rows of a method.
    **choices : list or dict
        Names of which every combination is judged, as {name}, of a dict also {name_title}; a pattern such as
        ``cue: *`` is all methods that match it.

    Examples
    --------
    >>> from companion.run.claims import Each, Mean
    >>> error = Mean("{data}: {a} below {b_title}", "error of {a} minus {b}", "{a}", "{b}", at_most=0.0)
    >>> Each(error, by="data", wide="error", a=["OBSCURE", "UFOMKL"], b={"SILPMKL": "SILP"}).parts == (error,)
    True
    """

    def __init__(self, *parts, table=None, by=(), where="", lost=None, wide=(), **options):
        if any(isinstance(part, Each) and part.table for part in parts):
            raise ValueError("an Each inside another has the rows of that one, and no table")
        self.parts = parts
        self.table, self.by, self.where, self.lost = table, by, where, lost
        self.wide = {"values": wide, "index": options.pop("index", "seed")}
        self.wide |= {"columns": options.pop("across", "method"), "aggregate": options.pop("aggregate", None)}
        self.choices = options

    def declared(self, results):
        """The parts with their numbers; none where no rows are left, as in small runs."""
        table = self.table or results.figure
        rows = table(results) if callable(table) else results.table(table)
        return list(self.of_rows(rows, {}, {}))

    def of_rows(self, rows, chosen, wide):
        """The parts on rows of the table, with the names and columns of an outer `Each`."""
        if self.wide["values"]:
            wide = self.wide
        groups = [rows]
        if self.by:
            groups = [group for _, group in rows.groupby(self.by, sort=False, dropna=False)]
        for group in groups:
            for choice in self._combinations(group):
                names = chosen | choice
                where = self.where.format_map(_first(group) | names)
                selected = group.query(where) if where else group
                if len(selected):
                    yield from self._of_selected(selected, names, wide)
                elif where != self.where:  # of a name that was chosen
                    raise ValueError(f"no rows are left where {where}")

    def _combinations(self, group):
        """Every combination of the choices: names with their values and titles."""
        options = []
        for name, values in self.choices.items():
            if isinstance(values, str):
                values = fnmatch.filter(sorted(group["method"].unique()), values)
            titles = values if isinstance(values, dict) else dict.fromkeys(values)
            options.append([{name: value, f"{name}_title": title} for value, title in titles.items()])
        for combination in itertools.product(*options):
            yield dict(itertools.chain.from_iterable(choice.items() for choice in combination))

    def _of_selected(self, rows, names, wide):
        columns = _of_methods(rows, **wide) if wide else rows
        for part in self.parts:
            if isinstance(part, Each):
                yield from part.of_rows(rows, names, wide)
            else:
                yield self._filled(part, columns, _first(rows) | names)

    def _filled(self, part, columns, names):
        """The part with numbers for columns, and with names in its texts."""
        filled = {name: names[name] for name in ("figure", "of", "data_from") if name in names}
        for field in fields(part):
            value = getattr(part, field.name)
            if isinstance(value, str) and value:
                value = value.format_map(names)
                if field.type is not str:
                    value = columns[value] if value in columns else columns.eval(value)
                filled[field.name] = value
        if self.lost is not None:
            filled |= _without_lost(filled, self.lost)
        return replace(part, **filled)


def _first(rows):
    """What texts may name: the values of the first row."""
    return {name: column.iloc[0] for name, column in rows.items()}


def _of_methods(rows, aggregate, **places):
    """Columns of methods: see `Each`."""
    if aggregate:
        table = rows.pivot_table(**places, aggfunc=aggregate)
    else:
        table = rows.pivot(**places)
    names = table.columns.map(str)
    if table.columns.nlevels > 1:
        names = table.columns.map(" ".join)
    return table.set_axis(names, axis=1).reset_index()


def _without_lost(filled, lost):
    """Columns of those rows that have a value and a baseline, and a text on the others."""
    kept = filled["values"].notna() & filled["baseline"].notna()
    columns = {name: column[kept] for name, column in filled.items() if isinstance(column, pd.Series)}
    text = dropped((~kept).sum(), lost) if lost else ""
    return columns | {"text": _joined(text, filled.get("text"))}


def dropped(n, what):
    """A text on runs that do not count."""
    return f"Left out ({n}): {what}." if n else ""


class Results:
    """What stands beside the figures in one directory, for the judging of one claim."""

    def __init__(self, directory, claim):
        self.directory = Path(directory)
        self.claim = claim
        self.figure = ""
        self.files = set()  # those that were read

    def _read(self, reader, file):
        self.files.add(file)
        try:
            return reader(self.directory / file)
        except FileNotFoundError:
            message = f"the claim {self.claim} is judged by {file}, which is not in {self.directory}"
            raise FileNotFoundError(f"{message}: make figures writes it") from None

    def has(self, figure):
        """Whether a figure or table is there: some are made from original data only."""
        return (self.directory / f"{figure}.json").is_file()

    def table(self, name=""):
        """The numbers of a figure or table, its own by default: ``<name>.csv``, of the reference also
        ``.csv.gz``."""
        name = name or self.figure or self.claim
        packed = f"{name}.csv.gz"
        return self._read(pd.read_csv, packed if (self.directory / packed).is_file() else f"{name}.csv")

    def tables(self, name):
        """The numbers of a figure that has several tables: key -> table."""
        files = [file.removesuffix(".gz") for file in self.record(name)["files"]]
        keys = [file.removeprefix(f"{name}.").removesuffix(".csv") for file in files if file.endswith(".csv")]
        return {key: self.table(f"{name}.{key}") for key in keys}

    def record(self, figure):
        """What made a figure: ``<figure>.json``, with its profile, parameters, note and data."""
        return json.loads(self._read(Path.read_bytes, f"{figure}.json"))

    def about(self, figure, of=None):
        """Figure, unit, data and tier of a verdict, of the data sets that begin with `of`.

        Where some of the data is simulated (or composed), all of the part is.
        """
        record = self.record(figure)
        used = [item for item in record["data"] if of is None or item["name"].startswith(of)]
        if not used:
            names = ", ".join(item["name"] for item in record["data"])
            raise ValueError(f"no data set of {figure} begins with {of!r}; there are: {names}")
        tiers = {TIER_OF[item["tier"]] for item in used}
        tier = next(tier for tier in ("simulated", "original", "bundled") if tier in tiers)
        data = record["our_data"] if of is None else ", ".join(dict.fromkeys(item["name"] for item in used))
        return {"figure": figure, "unit": claims().loc[self.claim, "unit"], "data": data, "tier": tier}

    def judge(self, part):
        """The verdict on one part of the claim, on the data of its figure."""
        if isinstance(part, Given):
            return part.verdict
        figure = part.figure or self.figure
        about = self.about(part.data_from or figure, part.of or None) | {"figure": figure}
        about["data"] = part.data or about["data"]
        about["unit"] = part.unit or about["unit"]
        return judge_part(part, self.claim, **about)

    def given(self, verdict, text, figure=""):
        """A part whose verdict no number decides."""
        about = self.about(figure or self.figure)
        return Given("", verdict=Verdict(self.claim, verdict, text=text, p=1.0, **about))

    def declared(self, item):
        """The parts and texts of an `Each`, a text, or a function."""
        if isinstance(item, str):
            return [item]
        if isinstance(item, Each):
            return item.declared(self)
        return item(self)

    def judge_all(self):
        rows = claims()
        if self.claim not in rows.index:
            raise ValueError(f"there is no claim {self.claim!r}{near(self.claim, rows.index)}")
        judged_by = judge_of(self.claim)
        if judged_by is None:
            return Verdict(self.claim, "open", text="No function judges it yet.")
        self.figure = judged_by.figure
        declared = [part for item in judged_by.items for part in self.declared(item)]
        text = _joined(*(item for item in declared if isinstance(item, str)))
        parts = [item for item in declared if isinstance(item, Part)]
        judged = {part.says: self.judge(part) for part in parts if not isinstance(part, Open)}
        open_parts = [part.says for part in parts if isinstance(part, Open)]
        if len(judged) + len(open_parts) < len(parts):
            raise ValueError(f"two parts of the claim {self.claim} say the same")
        if list(judged) == [""] and not open_parts:
            verdict = judged[""]
            alone = (("", verdict),) if verdict.clock else ()
            text = _joined(verdict.text, text)
            return verdict._replace(text=text, parts=alone, **{verdict.tier: verdict.verdict})
        return combine(self.claim, judged, open_parts, text)


def judge(claim, directory=REFERENCE):
    """The verdict on one claim, from the tables beside the figures in `directory`, where a run has put them.

    ValueError if there is no such claim, FileNotFoundError if a table that it is judged by is absent.

    Examples
    --------
    >>> from companion.run.claims import judge
    >>> judge("omcl-2").claim
    'omcl-2'
    """
    return Results(directory, claim).judge_all()


def judge_of(claim):
    """What judges a claim, with its figure and its file; None if nothing does yet."""
    for chapter in claims().query("id == @claim")["chapter"]:
        importlib.import_module(f"companion.{chapter}.claims")
    return _JUDGES.get(claim)


def files_of(claim, directory):
    """Names of the files that the verdict on a claim is computed from."""
    results = Results(directory, claim)
    results.judge_all()
    return results.files

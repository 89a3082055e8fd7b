"""Verdicts on the papers' claims: a number, its interval, the data, and what follows.

===================  ====================================================================================
holds                the whole 95% interval lies on the claimed side
holds, smaller       the difference is certain, but the whole interval lies below the smallest difference
                     that counts
fails                the whole interval lies on the wrong side, or about zero below the smallest difference
                     that counts
open                 the interval contains the threshold; the text says how many more units of repetition
                     would decide
not testable here    the data that could decide it is absent
not judged           not in this run
===================  ====================================================================================

Each claim has one headline, whose verdict is the claim's: the authors' form, setting and measure. A sentence
that says two things at once, such as "as accurate and faster", holds where both do. Where the comparison is
made on several data sets, one of them decides. Both are fixed in ``claims.csv`` before
anything is run, as are each claim's unit of repetition, what is random in it, and the number of units in the
profiles quick and full. The other parts stand beside: the same comparison on other data, other measures,
other settings.

The smallest difference that counts is a point, or what the claim states. Claims about time are judged by the
ratio of CPU seconds, with that of a count beside: less than a factor `EQUAL_TIME` either way counts as equal,
so that "faster" must come to that factor.

Each claim is declared by `claim` in ``notebooks/companion/<chapter>/claims.py``: as rows or, where that takes
a computation, as a function. Both read nothing but the tables beside the figures. So ``judge("om2-1")`` finds
the verdict of figures/reference again, ``judge("om2-1", "figures/quick")`` that of another run. Results on
original data that lie in the same directory are judged with the others.
"""

import contextlib
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
from companion.run.figures import METHOD_STYLE, markdown_table
from companion.run.records import near, read_rows
from companion.study import CONFIDENCE

__all__ = ["Each", "Part", "Verdict", "claim", "claims", "judge"]

VERDICTS = ("holds", "holds, smaller", "fails", "open", "not testable here", "not judged")
TIER_OF = {"generated": "simulated", "bundled": "bundled", "original": "original"}
HOLDING = VERDICTS[:2]
#: Verdicts on parts, the clearest first.
LEAST_CLEAR = ("holds", "holds, smaller", "open", "not judged", "not testable here", "fails")
#: Data sets as verdicts and sentences name them.
SET_NAMES = {
    "animals": "drawn animals",
    "awa": "photographed animals",
    "corel5k": "Corel5k",
    "digits": "numerals",
    "emoji": "objects",
    "friedman1": "Friedman 1",
    "friedman2": "Friedman 2",
    "friedman3": "Friedman 3",
    "htad": "activities",
    "lost": "Lost",
    "mfeat": "numerals",
    "mnist": "MNIST",
    "msrcv2": "MSRCv2",
    "pendigits": "Pendigits",
    "real digits": "numerals",
    "satimage": "Satimage",
    "usps": "USPS",
}
#: Measures that are shares of samples, which are shown in points if they are differences, else in per cent.
SHARES = re.compile(r"error|accuracy|AUC|share|recognition|assignment|fall of|captions minus")
NO_SHARES = re.compile(r"CPU seconds|exponent|slope|square")
DIFFERENCES = re.compile(r" minus |fall of|gain in|difference")
#: Words for differences below and above 0.
WORDS = {"lower": ("lower", "higher"), "behind": ("behind", "ahead of")}
#: Where in a directory of results those on original data lie.
ORIGINALS = ("original", "params/data_tier=original")
RELEVANT = 0.01  # a point of error, accuracy or area: a smaller difference is none
EQUAL_TIME = 1.25  # a smaller factor between two times, or two counts of work, is none
POWER = 0.8  # with which the units that would decide do so, if the mean stays where it is

#: Names of methods that only the code has; the longest first.
_NAMES = [re.escape(method) for method in METHOD_STYLE if re.match(r"[A-Z]\w*[A-Z0-9]\w*( |$)", method)]
IN_CODE = re.compile(rf"(?<![\w-])({'|'.join(sorted(_NAMES, key=len, reverse=True))})(?![\w-])")
#: Columns of a number with its interval.
ENDS = ("number", "low", "high")
#: How to read a verdict.
IN_SHORT = """
A claim *holds* if its whole 95% interval is as wanted, *fails* if the interval excludes that, or any gain
that counts (a point, unless another is named), and is *open* otherwise. Of several parts that decide (in
bold) the least clear one is shown. *Data* says how the methods stand there."""
#: The committed results.
REFERENCE = CHECKOUT / "figures" / "reference"


class Verdict(NamedTuple):
    """What became of a claim, or of one of its parts.

    A part says what it does by `says`, `on` which data set; of a claim these are of its headline. `number` is
    by the measure `measure`; `low` and `high` are its 95% interval over `n` units of repetition, called
    `unit`; None for an exact quantity and for a single run. `wanted` is what is claimed of it; `needed` units
    would tell number and threshold apart. `standing` of a method that is claimed to be better is "better",
    "level", "worse" or "open", whatever margin is claimed; of all else it is the verdict. `tier` says what
    data it is on, `count` is the verdict of a part about time by what is counted. `parts` are the verdicts on
    all parts of a claim.

    Examples
    --------
    >>> from companion.run.claims import Verdict, judge
    >>> isinstance(judge("omcl-2"), Verdict)
    True
    """

    claim: str
    verdict: str
    says: str = ""
    on: str = ""
    standing: str = ""
    number: float | None = None
    low: float | None = None
    high: float | None = None
    measure: str = ""
    wanted: str = ""
    n: int | None = None
    unit: str = ""
    needed: float | None = None
    tier: str = "bundled"
    data: str = ""
    figure: str = ""
    profile: str = ""
    text: str = ""
    count: Any = None
    parts: tuple = ()

    def sets(self):
        """How the two methods stand on each data set: "objects: better; HTAD: worse"."""
        by_set = headlines(self.claim, self.parts)
        first = [on for on in by_set if on == self.on]
        order = dict.fromkeys([*first, *by_set])
        return "; ".join(f"{on}: {by_set[on].standing}" for on in order)

    def holding(self):
        """How many of the parts hold, and of how many."""
        held = sum(part.verdict in HOLDING for part in self.parts)
        return f"{held} of {len(self.parts)}"

    def named(self):
        """The parts by what a sentence may call them: "on" a data set for the headline there, or what another
        part says, with " on " and a data set where it is judged on several."""
        parts = {}
        for part in self.parts:
            parts.setdefault(part.says, part)
            parts[f"{part.says} on {part.on}"] = part
            parts[f"{part.says} on {part.on}, counted"] = part.count
        return parts | headlines(self.claim, self.parts)

    def part_rows(self):
        """Rows of ``claims-parts.csv``, the headline first."""
        deciding = [part for part in self.parts if (part.says, part.on) == (self.says, self.on)]
        others = [part for part in self.parts if part not in deciding]
        rows = [_row_of_part(self.claim, part, "headline") for part in deciding]
        return rows + [_row_of_part(self.claim, part, "") for part in others]

    def _repr_markdown_(self):
        """How a notebook shows it."""
        number = number_text(self)
        facts = {"What one learns": learnt(self)}
        if number:
            sets = first_in_bold(self.sets(), self.claim)
            facts = {"Measure": self.measure, "Wanted": self.wanted, "Found": number, "Data": sets} | facts
        lines = [f"{name}: {fact.rstrip('.')}." for name, fact in facts.items() if fact]
        sentence = claims().loc[self.claim, "claim"]
        verdict = f"**{self.verdict.capitalize()}** ({self.claim})"
        shown = f"**Claim.** *{sentence}.* {verdict}. {with_labels(' '.join(lines))}"
        summary = f"{self.holding()} parts hold"
        details = part_by_part(self.part_rows(), self.text)
        return f"{shown}\n\n<details><summary>{summary}</summary>\n\n{details}\n\n</details>"


def first_in_bold(sets, claim):
    """How methods stand on each data set, with the first, if it alone decides, in bold."""
    first, others, rest = sets.partition("; ")
    if not others or claims().loc[claim, "decides"] == "all":
        return sets
    return f"**{first}**{others}{rest}"


def _row_of_part(claim, part, role):
    """A part as a row of ``claims-parts.csv``."""
    row = part._asdict()
    kept = "on verdict standing number low high wanted n unit needed tier measure data figure text".split()
    count = part.count or Verdict(claim, "")
    counted = {"counted": count.measure, "count_verdict": count.verdict}
    counted |= {f"count_{name}": getattr(count, name) for name in ("number", "low", "high")}
    named = {"claim": claim, "part": part.says, "is": role}
    return {**named, **{name: row[name] for name in kept}, **counted}


def part_by_part(rows, text=""):
    """The parts of a claim, rows as in ``claims-parts.csv``, as a Markdown table, and its text."""
    shown = []
    for row in rows:
        name = row["part"] or row["measure"]
        notes = [row["text"].rstrip(".")]
        if row["counted"]:
            number = float(row["count_number"] or "nan")  # as text from a file, where NaN is empty
            notes.insert(0, f"{row['counted']}: {row['count_verdict']}, {number:.3g}")
        shown.append(
            {
                "part": f"**{name}**" if row["is"] else name,
                "on": row["on"],
                "verdict": row["verdict"],
                "number (95% interval)": _number_of_row(row),
                "wanted": row["wanted"],
                "what else": "; ".join(filter(None, notes)),
            }
        )
    return with_labels("\n".join(filter(None, [markdown_table(pd.DataFrame(shown)) if shown else "", text])))


def _number_of_row(row):
    numbers = {name: float("nan" if row[name] == "" else row[name]) for name in ENDS if row[name] is not None}
    return number_text(Verdict("", "", measure=row["measure"], **numbers), " ({} to {})")


def number_text(verdict, interval=", 95% interval {} to {}"):
    """The number of a verdict, or of a row of them, with its interval: shares in per cent or in points."""
    form, unit = form_of(verdict.measure)
    number = "" if pd.isna(verdict.number) else f"{form(verdict.number)}{unit}"
    ends = "" if pd.isna(verdict.low) else interval.format(form(verdict.low), form(verdict.high))
    return number + ends


def form_of(measure):
    """How numbers of a measure are written, and their unit."""
    if not SHARES.search(measure) or NO_SHARES.search(measure):
        return "{:.3g}".format, ""
    if DIFFERENCES.search(measure):
        return lambda number: f"{100 * number:+.1f}", " points"
    return lambda number: f"{100 * number:.1f}", "%"


def learnt(verdict):
    """What one learns from a claim: the sentence of ``claims.csv``, with numbers of the parts that it names.

    Its words fit the results of the profile full; of others it is empty.
    """
    if verdict.profile != "full":
        return ""
    try:
        return with_numbers(claims().loc[verdict.claim, "learnt"], verdict.named())
    except KeyError:  # of a part that these results lack
        return ""


def with_numbers(sentence, parts):
    """A sentence with the numbers of parts: ``{name:form}``, where `in_words` knows the form. KeyError for a
    part that has none."""

    def number(found):
        name, _, form = found[1].rpartition(":")
        part = parts[name]
        if part is None or pd.isna(part.number):
            raise KeyError(name)
        return in_words(part.number, form)

    return re.sub(r"\{([^{}]*)\}", number, sentence)


def in_words(number, form):
    """A number in a sentence: "points" of a difference, their "size" without a sign, or with a word for it,
    "lower" (or higher) and "behind" (or ahead of); "times" of a ratio, the larger way round; or a format."""
    if form in WORDS:
        word = WORDS[form][number > 0.0]
        return f"{100 * abs(number):.1f} points {word}"
    if form == "points":
        return f"{100 * number:+.1f}"
    if form == "size":
        return f"{100 * abs(number):.1f}"
    if form == "times":
        return f"{max(number, 1 / number):.2g}"
    return format(number, form)


def with_labels(text):
    """A text with methods as figures name them, not as the code does."""
    return IN_CODE.sub(lambda found: METHOD_STYLE[found[0]]["label"], text)


def of_units(n, unit):
    """So many units of repetition in words; where there are none they are runs."""
    first, of, rest = (unit if unit and unit != "none" else "run").partition(" of ")
    many = "corpora" if first == "corpus" else f"{first}s"
    return f"{n} {first if str(n) == '1' else many}{of}{rest}"


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

    ===========  =============================================================================================
    `Mean`       the mean of `values`, one for each unit of repetition, or of their differences to the paired
                 `baseline`; with `ratio` the geometric mean of their quotients
    `Slope`      the mean of the slopes of ln `values` on ln `x` (of the values themselves without `log_y`),
                 one for each unit that has three different x
    `Time`       the ratio of CPU seconds and, beside it, of `counts` to `baseline_counts`, which `counted`
                 names; of a method that counts nothing (all NaN) the clock alone
    `Growth`     the slope of CPU seconds and, beside it, of `counts`
    `Bound`      every value at most its `bound`, up to `slack` times it: the largest quotient
    `Finding`    exact: it is `true` or not, with its `number`
    `All`        each of many `parts`, of which one fails only by Bonferroni's rule
    `NotJudged`  what this run cannot judge
    ===========  =============================================================================================

    The first four hold if the whole 95% interval lies from `at_least` to `at_most`, fail if all of it lies
    outside, else they are open. `units` names the unit of each value, where a unit has several.

    No number of runs tells the difference of two equal methods from zero: a claim that one is better fails,
    too, if the interval lies below the smallest difference that counts, and only "holds, smaller" if all of
    it lies between that and zero. What counts is the threshold of a difference, where it is not 0; else
    `relevant`, by default `RELEVANT` for differences against 0, and none for others.

    `on` is a short name of the data set, by default that of the figure's data. `figure` has the data (those
    whose names begin with `of`; those of the figure `data_from`, if it is another); `data` and `unit` replace
    what its record and ``claims.csv`` say.

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
    on: str = ""
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
    among: int = 1

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
    among = 1

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


@dataclass
class Growth(Slope):
    counts: Any = None
    counted: str = ""

    def judge(self, verdict):
        return _clock_and_count(self, Slope, {"values": self.counts}, verdict)


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
        state = "fails" if n_above else "holds"
        return _noted(verdict, text, verdict=state, number=ratio, measure=measure, wanted="at most 1")


@dataclass
class Finding(Part):
    true: Any = None
    number: float | None = None
    wanted: str = ""

    def judge(self, verdict):
        number = None if self.number is None else float(self.number)
        state = "holds" if self.true else "fails"
        return verdict._replace(verdict=state, number=number, wanted=self.wanted)


@dataclass
class All(Part):
    parts: tuple = ()


@dataclass
class NotJudged(Part):
    verdict: str = "not judged"

    def judge(self, verdict):
        return verdict._replace(verdict=self.verdict)


def judge_part(part, claim="", **about):
    """The verdict on one `Part`; `about` has the fields of the verdict on its data."""
    verdict = Verdict(claim, "open", part.says, part.on, measure=part.measure, n=part.n, text=part.text)
    judged = part.judge(verdict._replace(**about))
    return judged._replace(standing=standing(part, judged))


def standing(part, judged):
    """How two methods compare, of which one is claimed to be better; of all else the verdict."""
    if isinstance(part, (Bound, Finding, NotJudged)) or judged.low is None or not _claims_better(part):
        return judged.verdict
    ends = [judged.low, judged.high]
    smallest = RELEVANT if part.relevant is None else part.relevant
    if part.ratio:
        ends = [math.log(end) for end in ends]
        smallest = math.log(EQUAL_TIME)
    if part.at_least is None:
        ends = [-end for end in reversed(ends)]
    low, high = ends
    if max(-low, high) <= smallest:
        return "level"
    if low > 0.0:
        return "better"
    return "worse" if high < 0.0 else "open"


def _claims_better(part):
    """Whether the part says that one of two methods is better, by whatever margin."""
    limits = [limit for limit in (part.at_least, part.at_most) if limit is not None]
    if not isinstance(part, Mean) or part.baseline is None or len(limits) != 1:
        return False
    none = 1.0 if part.ratio else 0.0
    return limits[0] >= none if part.at_most is None else limits[0] <= none


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
    """The verdict by the clock, with that by the count beside."""
    clock = kind.judge(part, verdict)
    if any(column is None or (np.size(column) and pd.isna(column).all()) for column in counts.values()):
        return clock
    count = kind.judge(replace(part, **counts), verdict._replace(measure=part.counted, text=""))
    return clock._replace(count=count)


def _times(factor):
    """How many times as fast is enough: "faster" (1) must count, "about as fast" (less) is left as said."""
    return max(factor, EQUAL_TIME) if factor >= 1.0 else factor


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
        return _noted(verdict, "No run is left to judge by.", number=math.nan)
    mean = _Interval(values, part.ratio)
    ends = ((part.at_least, 1), (part.at_most, -1))
    limits = [(bound, sign) for bound, sign in ends if bound is not None]
    if not limits:
        raise ValueError("give at_least, at_most, or both")
    verdict = verdict._replace(n=mean.n, number=mean.number, wanted=_wanted(part))
    if mean.n == 1:
        return _noted(verdict, "A single run has no interval.")
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
        state, text = "fails", "No difference at all."
    elif ends["smaller"].any():
        state = "holds, smaller"
        counts = f"factor {ends['far'].iloc[0]:g}" if part.ratio else f"{abs(first or relevant):g}"
        text = f"The difference is certain, and smaller than the {counts} that counts."
    elif (ends["outside"] & ~ends["within"]).any():
        state = "fails"
        strict = _Interval(values, part.ratio, (1 - CONFIDENCE) / part.among)
        if part.among > 1 and not any(_end(strict, *limit, relevant, better)["outside"] for limit in limits):
            state = "open"
            text = f"It fails on its own, but not as one of {part.among}."
    elif len(crossed):
        state = "open"
        more = crossed["needed"].iloc[0] - mean.n
        many = f"about {max(more, 2.0):.0f} more" if more < 10_000 else "more than 10,000"
        needed = of_units(many, verdict.unit)
        bound = crossed["bound"].iloc[0] + 0.0
        text = f"The interval contains {bound:.4g}; {needed} would decide."
        if better and bound and low * high > 0.0:
            text = f"A difference is certain; whether it is the {bound:.4g} that counts is open."
    else:
        state = "holds"
    needed = float(ends["needed"].max())
    return _noted(verdict, text, verdict=state, low=low, high=high, needed=needed)


def _wanted(part):
    """The claimed range in words, in the unit of the measure."""
    form, unit = form_of(part.measure)
    if part.at_most is None:
        return f"at least {form(part.at_least)}{unit}" if part.at_least else "above 0"
    if part.at_least is None:
        return f"at most {form(part.at_most)}{unit}" if part.at_most else "below 0"
    return f"{form(part.at_least)} to {form(part.at_most)}{unit}"


class _Interval:
    """A mean with Student's interval; of logarithms, if it is to be a geometric one."""

    def __init__(self, values, geometric, level=1 - CONFIDENCE):
        self.forward, back = (math.log, math.exp) if geometric else (float, float)
        self.n = values.size
        self.mean = float(values.mean())
        self.number = back(self.mean)
        if self.n > 1:
            self.error = float(values.std(ddof=1) / math.sqrt(self.n))
            half = float(student.ppf(1 - level / 2, self.n - 1) * self.error)
            self.interval = back(self.mean - half), back(self.mean + half)

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
        "needed": min(mean.units_that_decide(bound), mean.units_that_decide(far)),
    }


# --- all parts ----------------------------------------------------------------------------------------------


def combine(claim, parts, text=""):
    """The verdict on a claim from those on its parts: that of its headline, on the first of the data sets in
    ``claims.csv`` that is there, or ("all", of theorems) where it is the least clear."""
    parts = tuple(parts)
    by_set = headlines(claim, parts)
    decides = claims().loc[claim, "decides"]
    order = decides.split("; ") if decides else list(by_set)[:1]
    deciding = [by_set[on] for on in order if on in by_set][:1]
    if decides == "all":
        deciding = list(by_set.values())
    if not deciding:
        return Verdict(claim, "not judged", text=text, parts=parts)
    return least_clear(deciding)._replace(claim=claim, text=text, parts=parts)


def headlines(claim, parts):
    """The headline of a claim on each data set: of several parts, such as "as accurate" and "faster", the
    least clear one. In ``claims.csv`` they are names, or patterns, of parts."""
    names = claims().loc[claim, "headline"].split("; ")
    by_set = {}
    for part in parts:
        if any(fnmatch.fnmatchcase(part.says, name) for name in names):
            by_set.setdefault(part.on, []).append(part)
    return {on: least_clear(same) for on, same in by_set.items()}


def least_clear(verdicts):
    """Of several verdicts the one that decides on all: the clearest that fails, else the least clear that is
    open, and so on. Of bounds it is the one that is used up most."""

    def order(verdict):
        doubt = -np.inf if verdict.number is None else verdict.number
        if verdict.needed is not None:
            doubt = verdict.needed
        if verdict.verdict == "fails":
            doubt = -doubt
        return LEAST_CLEAR.index(verdict.verdict), doubt

    return max(verdicts, key=order)


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
        unit = claims().loc[self.claim, "unit"]
        profile = record["profile"]
        return {"figure": figure, "unit": unit, "data": data, "tier": tier, "profile": profile}

    def judge(self, part):
        """The verdict on one part of the claim, on the data of its figure."""
        if isinstance(part, All):
            return self._judge_all_of(part)
        figure = part.figure or self.figure
        about = self.about(part.data_from or figure, part.of or None) | {"figure": figure}
        about["data"] = part.data or about["data"]
        about["unit"] = part.unit or about["unit"]
        on = part.on or re.sub(r" \(.*\)", "", about["data"])
        about["on"] = ", ".join(SET_NAMES.get(name.lower(), name) for name in on.split(", "))
        return judge_part(part, self.claim, **about)

    def _judge_all_of(self, part):
        """The least clear verdict on some parts, with what the others are."""
        judged = [self.judge(replace(each, among=len(part.parts))) for each in part.parts]
        weakest = least_clear(judged)
        n_held = sum(each.verdict in HOLDING for each in judged)
        listed = f"{n_held} of {len(judged)} hold; the number is that of {weakest.says}."
        text = _joined(listed, weakest.text, part.text)
        return weakest._replace(says=part.says, on=part.on or weakest.on, text=text)

    def declared(self, item):
        """The parts and texts of an `Each`, a text, or a function."""
        if isinstance(item, str):
            return [item]
        if isinstance(item, Each):
            return item.declared(self)
        return item(self)

    def judge_all(self):
        """The verdict on the claim, with what original data in the same directory say."""
        rows = claims()
        if self.claim not in rows.index:
            raise ValueError(f"there is no claim {self.claim!r}{near(self.claim, rows.index)}")
        judged_by = judge_of(self.claim)
        if judged_by is None:
            return Verdict(self.claim, "not judged", text="No function judges it yet.")
        self.figure = judged_by.figure
        parts, text = self._parts(judged_by)
        for place in ORIGINALS:
            beside = Results(self.directory / place, self.claim)
            beside.figure = self.figure
            with contextlib.suppress(FileNotFoundError):
                parts += [part for part in beside._parts(judged_by)[0] if part.tier == "original"]
        return combine(self.claim, parts, text)

    def _parts(self, judged_by):
        """Verdicts on the parts of the claim, and its text."""
        declared = [part for item in judged_by.items for part in self.declared(item)]
        text = _joined(*(item for item in declared if isinstance(item, str)))
        parts = [self.judge(item) for item in declared if isinstance(item, Part)]
        if len({(part.says, part.on) for part in parts}) < len(parts):
            raise ValueError(f"two parts of the claim {self.claim} say the same")
        return parts, text


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

"""Verdicts on the papers' claims: a number, its interval, the data, and what follows.

Every row of ``claims.csv`` gets one of

===================  ====================================================================================
holds                every part's whole 95% interval lies on the claimed side
fails                a part's whole interval lies on the other side, and no part holds
mixed                some parts hold and some fail; the text says which
undecided            nothing fails and an interval contains its threshold; the text says how many more units
                     of repetition would decide
not testable here    the data that could decide it is absent
open                 not judged yet in this run
===================  ====================================================================================

``claims.csv`` fixes, before anything is run, each claim's unit of repetition, what is random in it, and the
number of units in the profiles quick and full. Each claim is one function in
``notebooks/companion/<chapter>/claims.py`` that reads nothing but the tables beside the figures and yields
the claim's parts; `judge_part` judges each of them. So ``judge("om2-1")`` finds the verdict of
figures/reference again, ``judge("om2-1", "figures/quick")`` that of another run.

Of a claim with several parts, one that fails, or holds beside one that fails, counts only if it outlasts
Holm's correction over all parts. Real data decides: what simulated and original data say stands beside it.
"""

import importlib
import json
import math
import re
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import linregress, norm
from scipy.stats import t as student

from companion.run.figures import CHECKOUT, markdown_table
from companion.run.records import near, read_rows
from companion.run.sweep import file_lock
from cuelearn.core.intervals import CONFIDENCE
from cuelearn.core.storage import atomic_write

__all__ = ["ClaimBook", "Part", "Results", "Verdict", "claims", "judge", "judge_part", "judges"]

#: Letters of a text that stands beside a verdict; a longer one is folded away.
SHORT = 160
VERDICTS = ("holds", "fails", "mixed", "undecided", "not testable here", "open")
#: What data a verdict can rest on, the first of them that there is decides.
TIERS = ("real", "original", "simulated")
TIER_OF = {"generated": "simulated", "bundled": "real", "original": "original"}
LEVEL = 1 - CONFIDENCE
RELEVANT = 0.01  # a point of error, accuracy or area: a smaller difference is none
POWER = 0.8  # with which the units that would decide do so, if the mean stays where it is


class Verdict(NamedTuple):
    """What became of one claim: `number` decides, `measure` says what it is and in which unit.

    `low` and `high` are its 95% interval over `n` units of repetition, called `unit`; None for an exact
    quantity and for a single run. `p` is the two-sided probability of a number so far from the threshold, 0
    where a finding is exact; `needed` units would tell number and threshold apart with the probability
    `POWER`. `tier` is one of `TIERS`, and `real`, `original`, `simulated` are the verdicts on each; `parts`
    are pairs of what a part says and its verdict. `ClaimBook.record` sets `profile`.

    Examples
    --------
    >>> from companion.run.claims import Verdict, judge
    >>> verdict = judge("omcl-2")
    >>> isinstance(verdict, Verdict), verdict.low <= verdict.number <= verdict.high
    (True, True)
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
    tier: str = "real"
    real: str = ""
    original: str = ""
    simulated: str = ""
    parts: tuple = ()

    def _repr_markdown_(self):
        """How a notebook shows it."""
        number = "" if self.number is None else f"{self.measure}: {self.number:.4g}"
        if self.low is not None:
            number += f" (95% interval {self.low:.4g} to {self.high:.4g})"
        folded = len(self.text) > SHORT
        shown = [number, self.data and f"Data: {self.data}", not folded and self.text]
        line = ". ".join(filter(None, shown))
        if folded:
            line += f"\n\n<details><summary>Part by part</summary>\n\n{in_lines(self.text)}\n\n</details>"
        return f"**{self.claim}: {self.verdict}.** *{claims().loc[self.claim, 'claim']}.* {line}"


def in_lines(text):
    """The parts in the text of a verdict, each in a line of a list."""
    return "\n".join(f"- {part}" for part in re.split(r"(?<=\))\. ", text))


def claims(chapter=None):
    """The papers' claims and how they are judged (DataFrame, indexed by id).

    id, chapter, source, claim, judged_by; `unit` of repetition, what is `random` in it, and the number of
    units that the profiles `quick` and `full` have, fixed from an earlier run's spread.

    Examples
    --------
    >>> from companion.run.claims import claims
    >>> print(claims("oks").index[0], claims("oks").iloc[0]["source"])
    oks-1 OKS tables
    """
    return read_rows("claims.csv", chapter)


# --- one part -----------------------------------------------------------------------------------------------


class Part(NamedTuple):
    """A part of a claim, as the claim's function declares it: an estimate and the range that is claimed.

    The estimate is the mean of `values`, one for each unit of repetition, or of their differences to the
    paired `baseline`; with `ratio` the geometric mean of their quotients. With `x` it is the mean of the
    slopes of ln values on ln x (of the values themselves without `log_y`), one for each unit that has three
    different x. `units` names the unit of each value, where a unit has several. The part holds if the whole
    95% interval lies from `at_least` to `at_most`, fails if all of it lies outside, else it is undecided.

    Where two methods are equal, no number of runs tells their difference from zero: a claim that one is
    better fails, too, if the interval lies below the smallest difference that matters. It is `relevant`, by
    default `RELEVANT` where a difference is to be above or below 0, and otherwise 0.

    Two kinds have no interval: with `bound` every value must be at most its bound, up to `slack` times it,
    and the number is the largest quotient; `true` is an exact finding, with its `number`. A `verdict` is
    taken as it is. A part with none of these is open.

    `figure` has the data (those whose names begin with `of`; those of the figure `data_from`, if it is
    another); `data` and `unit` replace what its record and ``claims.csv`` say. `text` is a remark.

    Examples
    --------
    >>> from companion.run.claims import Part, judge_part
    >>> part = Part("at most a fifth", "share of ties", [0.04, 0.05, 0.06], at_most=0.2)
    >>> judge_part(part).verdict
    'holds'
    """

    says: str
    measure: str = ""
    values: Any = None
    baseline: Any = None
    at_least: float | None = None
    at_most: float | None = None
    ratio: bool = False
    relevant: float | None = None
    units: Any = None
    x: Any = None
    log_y: bool = True
    bound: Any = None
    slack: float = 1e-9
    true: bool | None = None
    number: float | None = None
    n: int | None = None
    verdict: Verdict | None = None
    text: str = ""
    figure: str = ""
    of: Any = None
    data_from: str = ""
    data: str = ""
    unit: str = ""

    @property
    def is_open(self):
        """Whether this run does not judge it."""
        return self.values is None and self.true is None and self.verdict is None


def judge_part(part, claim="", **about):
    """The verdict on one `Part`; `about` has the fields of the verdict on its data.

    Examples
    --------
    >>> from companion.run.claims import Part, judge_part
    >>> errors = Part("lower", "difference of errors", [0.10, 0.11, 0.09], [0.20, 0.22, 0.19], at_most=0.0)
    >>> verdict = judge_part(errors)
    >>> verdict.verdict, round(verdict.number, 3)
    ('holds', -0.103)
    >>> rows = Part("at least twice", "rows", [40, 90, 60], [10, 20, 16], ratio=True, at_least=2)
    >>> judge_part(rows).verdict
    'holds'
    >>> judge_part(Part("theorem 1", values=[10, 14], bound=[20, 21])).verdict
    'holds'
    """
    about = {"claim": claim, "measure": part.measure, "n": part.n} | about
    if part.true is not None:
        number = None if part.number is None else float(part.number)
        return Verdict(verdict=_holds(part.true), number=number, text=part.text, **about)
    if part.bound is not None:
        return _judge_bound(part, about)
    values, left_out = _of_units(part)
    text = _joined(part.text, left_out)
    if not values.size:
        text = _joined(text, "No run is left to judge by.")
        return Verdict(verdict="undecided", number=math.nan, p=1.0, text=text, **about)
    if part.at_least is None and part.at_most is None:
        raise ValueError("give at_least, at_most, or both")
    about["n"] = values.size
    scale = (math.log, math.exp) if part.ratio else (float, float)
    estimate = _Estimate(values, *scale)
    if values.size == 1:
        text = _joined(text, "A single run has no interval.")
        return Verdict(verdict="undecided", number=estimate.number, p=1.0, text=text, **about)
    verdict = _judge_estimate(part, estimate, about)
    return verdict._replace(text=_joined(text, verdict.text))


def _holds(true):
    return "holds" if true else "fails"


def _joined(*texts):
    return " ".join(filter(None, texts))


def _judge_bound(part, about):
    measured, bound = _samples(measured=part.values, bound=np.broadcast_to(part.bound, np.shape(part.values)))
    violations = int((measured > bound + part.slack * np.abs(bound)).sum())
    infinite = np.where(measured > 0, np.inf, 0.0)
    ratio = float(np.max(np.divide(measured, bound, out=infinite, where=bound > 0)))
    about["measure"] = part.measure or "measured over bound, largest"
    text = _joined(part.text, f"{violations} of {len(measured)} comparisons above the bound.")
    return Verdict(verdict=_holds(not violations), number=ratio, text=text, **about)


def _samples(**named):
    """Arrays of finite numbers, of one length."""
    arrays = [np.asarray(values, dtype=float).ravel() for values in named.values()]
    for name, values in zip(named, arrays, strict=True):
        if values.size == 0 or not np.isfinite(values).all():
            raise ValueError(f"{name} must hold at least one number and only finite ones, got {values}")
    if len({len(values) for values in arrays}) > 1:
        lengths = " and ".join(str(len(values)) for values in arrays)
        raise ValueError(f"paired samples must have one length, got {lengths}")
    return arrays


def _of_units(part):
    """One number for each unit of repetition, and a text on units that are left out."""
    if not len(part.values):
        return np.array([]), ""
    if part.x is not None:
        return _slopes(part)
    if part.baseline is None:
        (values,) = _samples(values=part.values)
    else:
        values, baseline = _samples(values=part.values, baseline=part.baseline)
        if part.ratio and min(values.min(), baseline.min()) <= 0:
            raise ValueError("values and baseline of a ratio must be positive")
        values = np.log(values) - np.log(baseline) if part.ratio else values - baseline
    if part.units is None:
        return values, ""
    units = np.asarray(part.units).ravel()
    if units.size != values.size:
        raise ValueError(f"units must name the unit of each of {values.size} values, got {units.size}")
    return np.array([values[units == unit].mean() for unit in np.unique(units)]), ""


def _slopes(part):
    x, y = _samples(x=part.x, values=part.values)
    if x.min() <= 0 or (part.log_y and y.min() <= 0):
        raise ValueError("values on a logarithmic axis must be positive")
    x = np.log(x)
    y = np.log(y) if part.log_y else y
    names = np.unique(part.units)
    runs = [np.asarray(part.units) == name for name in names]
    runs = [run for run in runs if len(np.unique(x[run])) >= 3]
    dropped = f"{len(names) - len(runs)} of {len(names)} runs have fewer than three points."
    slopes = np.array([linregress(x[run], y[run]).slope for run in runs])
    return slopes, dropped if 0 < len(runs) < len(names) else ""


class _Estimate:
    """A mean with Student's interval, on the scale to which `forward` brings bounds; `back` undoes it."""

    def __init__(self, values, forward, back):
        self.n = values.size
        self.mean = float(values.mean())
        self.error = float(values.std(ddof=1) / math.sqrt(self.n)) if self.n > 1 else math.nan
        self.forward = forward
        self.back = back

    @property
    def number(self):
        return float(self.back(self.mean))

    def interval(self):
        half = student.ppf((1 + CONFIDENCE) / 2, self.n - 1) * self.error
        return float(self.back(self.mean - half)), float(self.back(self.mean + half))

    def above(self, bound):
        """Probability of a mean so far above the bound, were it the true one."""
        distance = self.mean - self.forward(bound)
        if self.error == 0:
            return float(distance < 0)
        return float(student.sf(distance / self.error, self.n - 1))

    def units_that_decide(self, *bounds):
        """Units of repetition with which one of the bounds is left with `POWER`, if the mean stays."""
        reach = norm.ppf((1 + CONFIDENCE) / 2) + norm.ppf(POWER)
        distances = [self.mean - self.forward(bound) for bound in bounds]
        return min(self.n * (reach * self.error / d) ** 2 if d else math.inf for d in distances)


class _Side(NamedTuple):
    """An end of the claimed range: whether the interval is within or outside, with their probabilities."""

    bound: float
    within: bool
    outside: bool
    p_within: float
    p_outside: float
    units: float


def _sides(part, estimate, relevant):
    """Where the interval lies at each end of the claimed range.

    Outside is also what passes an end by less than what is relevant.
    """
    low, high = estimate.interval()
    if part.at_least is not None:
        near, far = part.at_least, part.at_least + relevant
        p = estimate.above(near), 1 - estimate.above(far)
        yield _Side(near, low >= near, high <= far, *p, estimate.units_that_decide(near, far))
    if part.at_most is not None:
        near, far = part.at_most, part.at_most - relevant
        p = 1 - estimate.above(near), estimate.above(far)
        yield _Side(near, high <= near, low >= far, *p, estimate.units_that_decide(near, far))


def _judge_estimate(part, estimate, about):
    """Verdict from an interval: all within the claimed range, all outside, or neither."""
    bounds = [bound for bound in (part.at_least, part.at_most) if bound is not None]
    differences = part.baseline is not None and not part.ratio
    better = differences and bounds == [0.0]
    relevant = part.relevant
    if relevant is None:
        relevant = RELEVANT if better else 0.0
    sides = list(_sides(part, estimate, relevant))
    crossed = [side for side in sides if not side.within and not side.outside]
    p_within = max(side.p_within for side in sides)
    p_outside = min(side.p_outside for side in sides)
    low, high = estimate.interval()
    text = ""
    if any(side.outside and not side.within for side in sides):
        verdict, p = "fails", p_outside
        right_side = high < 0.0 if part.at_least is None else low > 0.0
        if differences and len(bounds) == 1 and right_side:
            text = f"There is a difference, smaller than the {abs(bounds[0]):g} that counts."
    elif crossed:
        verdict, p = "undecided", min(p_within, p_outside)
        more = crossed[0].units - estimate.n
        unit = about.get("unit") or "run"
        needed = f"{more:.0f} more {unit}s" if more < 10_000 else f"more than 10,000 {unit}s"
        text = f"The interval contains {crossed[0].bound + 0.0:.4g}; about {needed} would decide."
    else:
        verdict, p = "holds", p_within
    if better and low == high == 0.0:
        verdict, text = "fails", "No difference at all."
    about |= {"number": estimate.number, "low": low, "high": high, "p": min(1.0, 2 * p)}
    return Verdict(verdict=verdict, text=text, needed=max(side.units for side in sides), **about)


# --- all parts ----------------------------------------------------------------------------------------------


def holm(p):
    """Which of several null hypotheses Holm's procedure rejects at `LEVEL`, from their probabilities."""
    p = np.asarray(p, dtype=float)
    order = np.argsort(p, kind="stable")
    below = p[order] <= LEVEL / np.arange(p.size, 0, -1)
    rejected = np.zeros(p.size, dtype=bool)
    rejected[order[: below.size if below.all() else below.argmin()]] = True
    return rejected


def combine(claim, parts, open_parts=(), text=""):
    """One verdict for a claim of several parts (dict of what each says -> Verdict), which its text lists.

    Of each tier: holds if all parts hold and nothing is open; else what outlasts Holm's correction counts:
    mixed if something holds and something fails, fails if something fails, else undecided. The first tier of
    `TIERS` that has parts decides. The number is that of the part that decides: the clearest one that fails,
    else the least clear.
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
    tier = next(iter(verdicts))
    return deciding._replace(
        claim=claim,
        verdict=verdicts[tier],
        data="; ".join(dict.fromkeys(part.data for part in parts.values() if part.data)),
        text=_joined(text, *lines),
        tier=tier,
        parts=tuple(parts.items()),
        **verdicts,
    )


def _of_one_tier(parts, open_parts):
    """Verdict on a claim's parts, the part that decides, and each part's verdict once corrected."""
    plain = [part.verdict for part in parts]
    corrected = [
        verdict if sure or verdict not in ("holds", "fails") else f"undecided over all parts, alone {verdict}"
        for verdict, sure in zip(plain, holm([part.p for part in parts]), strict=True)
    ]
    failing = [part for part, verdict in zip(parts, corrected, strict=True) if verdict == "fails"]
    least_clear = max(parts, key=lambda part: part.p)
    if set(plain) == {"holds"} and not open_parts:
        return "holds", least_clear, plain
    if failing:
        verdict = "mixed" if "holds" in corrected else "fails"
        return verdict, min(failing, key=lambda part: part.p), corrected
    return "undecided", least_clear, corrected


def _details(part):
    """In parentheses: the number of a part, its interval, its text."""
    number = "" if part.number is None else f"{part.number:.4g}"
    if part.low is not None:
        number += f", 95% interval {part.low:.4g} to {part.high:.4g}"
    shown = "; ".join(filter(None, [number, part.text.rstrip(".")]))
    return f" ({shown})" if shown else ""


# --- from the tables beside the figures ---------------------------------------------------------------------

_JUDGES = {}


def judges(claim, figure=""):
    """Decorator: this function of a `Results` yields the parts of a claim, and sentences on all of them.

    `figure` is that of the parts which name none. A claim whose only part says nothing is that part.

    Examples
    --------
    >>> from companion.run.claims import Part, judges
    >>> @judges("my-1", "my-figure")
    ... def error_is_small(results):
    ...     yield Part("small", "error", results.table("my-figure")["error"], at_most=0.1)
    """

    def register(function):
        _JUDGES[claim] = function, figure
        return function

    return register


class Results:
    """What stands beside the figures in one directory, for the judging of one claim.

    Examples
    --------
    >>> from companion.run.claims import Results
    >>> from companion.run.figures import CHECKOUT
    >>> results = Results(CHECKOUT / "figures" / "reference", "om2-1")
    >>> results.has("thesis-fig-4.1"), "kernel" in results.table("thesis-fig-4.1")
    (True, True)
    """

    def __init__(self, directory, claim):
        self.directory = Path(directory)
        self.claim = claim
        self.figure = ""
        self.files = set()  # those that were read

    def _read(self, file):
        self.files.add(file)
        try:
            return (self.directory / file).open(encoding="utf-8")
        except FileNotFoundError:
            message = f"the claim {self.claim} is judged by {file}, which is not in {self.directory}"
            raise FileNotFoundError(f"{message}: make figures writes it") from None

    def has(self, figure):
        """Whether a figure or table is there: some are made from original data only."""
        return (self.directory / f"{figure}.json").is_file()

    def table(self, name):
        """The numbers of a figure or table: ``<name>.csv``, of the reference also ``.csv.gz``."""
        packed = self.directory / f"{name}.csv.gz"
        if packed.is_file():
            self.files.add(packed.name)
            return pd.read_csv(packed)
        with self._read(f"{name}.csv") as file:
            return pd.read_csv(file)

    def tables(self, name):
        """The numbers of a figure that has several tables: key -> table."""
        files = [file.removesuffix(".gz") for file in self.record(name)["files"]]
        keys = [file.removeprefix(f"{name}.").removesuffix(".csv") for file in files if file.endswith(".csv")]
        return {key: self.table(f"{name}.{key}") for key in keys}

    def record(self, figure):
        """What made a figure: ``<figure>.json``, with its profile, parameters, note and data."""
        with self._read(f"{figure}.json") as file:
            return json.load(file)

    def about(self, figure, of=None):
        """Figure, unit, data and tier of a verdict: data and tier of the data sets that begin with `of`.

        Where some of the data is simulated (or composed), all of the part is.
        """
        record = self.record(figure)
        used = [item for item in record["data"] if of is None or item["name"].startswith(of)]
        if not used:
            names = ", ".join(item["name"] for item in record["data"])
            raise ValueError(f"no data set of {figure} begins with {of!r}; there are: {names}")
        tiers = {TIER_OF[item["tier"]] for item in used}
        tier = next(tier for tier in ("simulated", "original", "real") if tier in tiers)
        data = record["our_data"] if of is None else ", ".join(dict.fromkeys(item["name"] for item in used))
        return {"figure": figure, "unit": claims().loc[self.claim, "unit"], "data": data, "tier": tier}

    def judge(self, part):
        """The verdict on one part of the claim, on the data of its figure."""
        if part.verdict is not None:
            return part.verdict
        figure = part.figure or self.figure
        about = self.about(part.data_from or figure, part.of)
        own = {"figure": figure, "data": part.data, "unit": part.unit}
        return judge_part(part, self.claim, **about | {name: value for name, value in own.items() if value})


def judge(claim, directory=CHECKOUT / "figures" / "reference"):
    """The verdict on one claim, from the tables beside the figures in `directory`, where a run has put them.

    Raises
    ------
    ValueError, FileNotFoundError
        If there is no such claim, or a table that it is judged by is absent.

    Examples
    --------
    >>> from companion.run.claims import VERDICTS, judge
    >>> verdict = judge("omcl-2")
    >>> verdict.verdict in VERDICTS, verdict.claim
    (True, 'omcl-2')
    """
    return _judged(Results(directory, claim))


def files_of(claim, directory):
    """Names of the files that the verdict on a claim is computed from."""
    results = Results(directory, claim)
    _judged(results)
    return results.files


def _judged(results):
    claim = results.claim
    rows = claims()
    if claim not in rows.index:
        raise ValueError(f"there is no claim {claim!r}{near(claim, rows.index)}")
    importlib.import_module(f"companion.{rows.loc[claim, 'chapter']}.claims")
    function, results.figure = _JUDGES[claim]
    declared = list(function(results))
    text = _joined(*(item for item in declared if isinstance(item, str)))
    parts = [item for item in declared if isinstance(item, Part)]
    judged = {part.says: results.judge(part) for part in parts if not part.is_open}
    if list(judged) == [""]:
        verdict = judged[""]
        return verdict._replace(**{verdict.tier: verdict.verdict})
    return combine(claim, judged, [part.says for part in parts if part.is_open], text)


# --- the book -----------------------------------------------------------------------------------------------


#: Stands beneath the first verdict of a chapter.
HOW_TO_READ = (
    "*How verdicts read.* Mixed: one part of the claim holds, another fails. Undecided: nothing fails, and "
    'an interval contains its threshold. "Undecided over all parts, alone holds": decided if this part were '
    "the only one, not once corrected for how many there are (Holm)."
)


class Verdicts(list):
    """Several verdicts, one below the other in a notebook, and a word on how to read them."""

    note = ""

    def _repr_markdown_(self):
        shown = [verdict._repr_markdown_() for verdict in self]
        return "\n\n".join(filter(None, [*shown, self.note]))


class ClaimBook:
    """The verdicts of a chapter, in ``claims.csv`` and ``claims.md`` beside its figures after every entry.

    ``claims-parts.csv`` has the parts of each claim. A new book starts with all of its chapter "open"; rows
    of other chapters stay. Directory, chapter and profile are those of the `store`, a `FigureStore`.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from companion.run.claims import ClaimBook, Verdict
    >>> from companion.run.figures import FigureStore
    >>> with TemporaryDirectory() as directory:
    ...     book = ClaimBook(FigureStore("smoke", directory, chapter="omcl"))
    ...     book.record(Verdict("omcl-7", "holds", data="toy")).verdict
    ...     book.frame()["verdict"].value_counts().index.tolist()
    'holds'
    ['open', 'holds']
    """

    PARTS = "claim part verdict number low high n unit needed p tier measure data figure".split()
    COLUMNS = (
        "id chapter source claim verdict number low high n unit measure real original simulated data profile "
        "text figure"
    ).split()

    def __init__(self, store):
        self.store = store
        self.verdicts = {}
        self._write()

    def judge(self, *names):
        """Judge these claims by the tables saved so far, and record what was found."""
        note = "" if self.verdicts else HOW_TO_READ
        verdicts = Verdicts(self.record(judge(name, self.store.directory)) for name in names)
        verdicts.note = note
        return verdicts

    def record(self, verdict):
        """Enter a verdict and write the files; ValueError if the claim is unknown or of another chapter."""
        known = claims(self.store.chapter).index
        if verdict.claim not in known:
            message = f"claim {verdict.claim!r} is not among the claims of the chapter {self.store.chapter}"
            raise ValueError(f"{message}{near(verdict.claim, known)}")
        verdict = verdict._replace(profile=self.store.profile)
        self.verdicts[verdict.claim] = verdict
        self._write()
        return verdict

    def frame(self):
        """The chapter's claims with their verdicts (DataFrame, one row for each claim)."""
        rows = []
        for row in claims(self.store.chapter).itertuples():
            verdict = self.verdicts.get(row.id, Verdict(row.id, "open", profile=self.store.profile))
            n = "" if verdict.n is None else str(verdict.n)
            rows.append({**row._asdict(), **verdict._asdict(), "claim": row.claim, "n": n})
        return pd.DataFrame(rows)[self.COLUMNS]

    def parts(self):
        """All parts of the chapter's claims that are judged (DataFrame); a claim of one part is its own."""
        rows = []
        for verdict in self.verdicts.values():
            for what, part in verdict.parts or (("", verdict),):
                n = "" if part.n is None else str(part.n)
                rows.append({**part._asdict(), "claim": verdict.claim, "part": what, "n": n})
        return pd.DataFrame(rows, columns=self.PARTS)

    def _write(self):
        with file_lock(Path(self.store.directory) / ".claims.lock"):
            write_verdicts(self.store.directory, self.frame(), self.parts())


def write_verdicts(directory, verdicts, parts, chapters=()):
    """Write verdicts and their parts to ``claims.csv``, ``claims-parts.csv``, ``claims.md`` in `directory`.

    They replace all that is there of their chapters, and of `chapters`, which may have none left; those of
    other chapters stay.
    """
    others = read_verdicts(directory)
    others = others[~others["chapter"].isin({*verdicts["chapter"], *chapters})]
    other_parts = read_parts(directory)
    other_parts = other_parts[other_parts["claim"].isin(others["id"])]
    for name, column, tables in (
        ("claims-parts.csv", "claim", (other_parts, parts)),
        ("claims.csv", "id", (others, verdicts)),
    ):
        there = [table.astype(object) for table in tables if len(table)] or [parts]
        rows = pd.concat(there, ignore_index=True)
        rows = rows.sort_values(column, key=claims().index.get_indexer, kind="stable")
        atomic_write(Path(directory) / name, rows.to_csv(index=False, lineterminator="\n"))
    atomic_write(Path(directory) / "claims.md", "# Claims and verdicts\n\n" + verdict_table(rows))


def read_verdicts(directory):
    """The verdicts written in `directory` (DataFrame with `ClaimBook.COLUMNS`; empty if there are none)."""
    table = _read(directory, "claims.csv", ClaimBook.COLUMNS)
    for column in ("number", "low", "high"):
        table[column] = [float(value or "nan") for value in table[column]]
    return table.astype(object)


def read_parts(directory):
    """The parts written in `directory` (DataFrame with `ClaimBook.PARTS`; empty if there are none)."""
    return _read(directory, "claims-parts.csv", ClaimBook.PARTS)


def _read(directory, file, columns):
    try:
        return pd.read_csv(Path(directory) / file, dtype=str, keep_default_na=False)
    except FileNotFoundError:
        return pd.DataFrame(columns=columns, dtype=object)


def with_original(table, directory):
    """Verdicts, with the column `original` filled from a run with ``DATA=original`` where they have none.

    It says the verdict and the data: "fails: flowers17". The verdicts themselves stay as they are.
    """
    verdicts = read_verdicts(directory).set_index("id")["original"]
    parts = read_parts(directory)
    data = parts[parts["tier"] == "original"].groupby("claim", sort=False)["data"].unique()
    notes = {claim: f"{v}: {', '.join(data.get(claim, []))}" for claim, v in verdicts.items() if v}
    original = [own or notes.get(id, "") for id, own in zip(table["id"], table["original"], strict=True)]
    return table.assign(original=original)


def verdict_table(table):
    """Verdicts as Markdown: a count, then one row for each claim."""
    numbers = table["verdict"].value_counts()
    counts = [f"{numbers[verdict]} {verdict}" for verdict in VERDICTS if verdict in numbers]
    shown = []
    for row in table.itertuples():
        number = "" if pd.isna(row.number) else f"{row.number:.4g}"
        number += "" if pd.isna(row.low) else f" ({row.low:.4g} to {row.high:.4g})"
        cells = {
            "claim": row.id,
            "says": f"{row.claim} ({row.source})",
            "verdict": f"**{row.verdict}**" if row.verdict != "open" else "open",
            "unit, n": f"{row.unit}, {row.n}".removeprefix("none, ").removesuffix(", "),
            "number (95% interval)": number,
            "measure": row.measure,
        }
        data = f"{row.data} ({row.profile})" if row.data else row.profile
        tiers = {tier: getattr(row, tier) for tier in TIERS}
        shown.append(cells | tiers | {"data": data, "remark": row.text, "figure": row.figure})
    return f"{', '.join(counts)}.\n\n" + markdown_table(pd.DataFrame(shown))

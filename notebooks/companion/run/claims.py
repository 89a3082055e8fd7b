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

The helpers ``judge_...`` are mechanical: measurements in, verdict out. Measurements are one for each unit of
repetition; where several are of one unit, such as the names and verbs of one corpus, ``blocks`` says so and
their mean counts. Of a claim with several parts, one that fails, or holds beside one that fails, counts
only if it outlasts Holm's correction over all parts. That one method is better than another fails also where
the interval lies below the smallest difference that matters, a point: no number of runs would part equal
methods from zero. Real data decides: what simulated and original data say stands beside it.

``claims.csv`` fixes, before anything is run, each claim's unit of repetition, what is random in it, and the
number of units in the profiles quick and full. Each claim is one function in
``notebooks/companion/<chapter>/claims.py`` that reads nothing but the tables beside the figures, so that
``judge("om2-1")`` finds the verdict of figures/reference again, ``judge("om2-1", "figures/quick")`` that of
another run.
"""

import importlib
import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import norm
from scipy.stats import t as student

from companion.run.figures import CHECKOUT, markdown_table
from companion.run.records import near, read_rows
from companion.run.sweep import file_lock
from cuelearn.core.intervals import CONFIDENCE
from cuelearn.core.storage import atomic_write

__all__ = [
    "RELEVANT",
    "VERDICTS",
    "ClaimBook",
    "Results",
    "Verdict",
    "claims",
    "combine",
    "holm",
    "judge",
    "judge_bound",
    "judge_exact",
    "judge_mean",
    "judge_slope",
    "judges",
    "not_testable",
]

#: Letters of a text that stands beside a verdict; a longer one is folded away.
SHORT = 160
VERDICTS = ("holds", "fails", "mixed", "undecided", "not testable here", "open")
#: What data a verdict can rest on, the first of them that there is decides.
TIERS = ("real", "original", "simulated")
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
    >>> from companion.run.claims import Verdict, judge_mean
    >>> verdict = judge_mean("omcl-6", [0.04, 0.05, 0.06], at_most=0.2, measure="ties", unit="run")
    >>> isinstance(verdict, Verdict), verdict.n, round(verdict.low, 3), round(verdict.high, 3)
    (True, 3, 0.025, 0.075)
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


# --- judging ------------------------------------------------------------------------------------------------


def _joined(*texts):
    return " ".join(filter(None, texts))


class _Estimate(NamedTuple):
    """A mean and its standard error, on the scale to which `forward` brings bounds; `back` undoes it."""

    mean: float
    error: float
    n: int
    forward: Callable = float
    back: Callable = float

    def ends(self):
        half = student.ppf((1 + CONFIDENCE) / 2, self.n - 1) * self.error
        return [float(self.back(end)) for end in (self.mean, self.mean - half, self.mean + half)]

    def beyond(self, bound):
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


def _estimate(values, blocks=None, forward=float, back=float):
    """Of the mean of some values, or of blocks of them."""
    if blocks is not None:
        blocks = np.asarray(blocks).ravel()
        if blocks.size != values.size:
            raise ValueError(f"blocks must name the unit of each of {values.size} values, got {blocks.size}")
        values = np.array([values[blocks == block].mean() for block in np.unique(blocks)])
    error = values.std(ddof=1) / math.sqrt(values.size) if values.size > 1 else math.nan
    return _Estimate(float(values.mean()), float(error), values.size, forward, back)


def _decide(claim, estimate, at_least=None, at_most=None, *, relevant=0.0, text="", **details):
    """Verdict from a mean and its interval: all within the claimed range, all outside, or neither.

    Outside is also what passes the end of the range by less than `relevant`.
    """
    if at_least is None and at_most is None:
        raise ValueError("give at_least, at_most, or both")
    details["n"] = estimate.n
    if not math.isfinite(estimate.error):
        text = _joined(text, "A single run has no interval.")
        return Verdict(claim, "undecided", float(estimate.back(estimate.mean)), text=text, p=1.0, **details)
    number, low, high = estimate.ends()
    sides = []
    if at_least is not None:
        far = at_least + relevant
        p_within = estimate.beyond(at_least)
        p_outside = 1 - estimate.beyond(far)
        units = estimate.units_that_decide(at_least, far)
        sides.append(_Side(at_least, low >= at_least, high <= far, p_within, p_outside, units))
    if at_most is not None:
        far = at_most - relevant
        p_within = 1 - estimate.beyond(at_most)
        p_outside = estimate.beyond(far)
        units = estimate.units_that_decide(at_most, far)
        sides.append(_Side(at_most, high <= at_most, low >= far, p_within, p_outside, units))
    details["needed"] = max(side.units for side in sides)
    crossed = [side for side in sides if not side.within and not side.outside]
    p_within = max(side.p_within for side in sides)
    p_outside = min(side.p_outside for side in sides)
    if any(side.outside and not side.within for side in sides):
        verdict = "fails"
        p = p_outside
    elif crossed:
        verdict = "undecided"
        p = min(p_within, p_outside)
        more = crossed[0].units - estimate.n
        unit = details.get("unit") or "run"
        needed = f"{more:.0f} more {unit}s" if more < 10_000 else f"more than 10,000 {unit}s"
        end = crossed[0].bound + 0.0
        text = _joined(text, f"The interval contains {end:.4g}; about {needed} would decide.")
    else:
        verdict = "holds"
        p = p_within
    return Verdict(claim, verdict, number, low, high, text=text, p=min(1.0, 2 * p), **details)


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


def judge_mean(
    claim,
    values,
    baseline=None,
    at_least=None,
    at_most=None,
    *,
    ratio=False,
    relevant=None,
    blocks=None,
    text="",
    **details,
):
    """Claim: the mean of `values`, or of their paired differences to `baseline`, lies in a stated range.

    It holds if the whole 95% interval lies in the range, fails if all of it lies outside, else it is
    undecided. Where two methods are equal, no number of runs parts their difference from zero: a claim that
    one is better fails, too, if the interval lies below the smallest difference that matters.

    Parameters
    ----------
    claim : str
        An id in ``claims.csv``.
    values : array-like of shape (n_repetitions,)
    baseline : array-like of shape (n_repetitions,), optional
        Paired repetitions: the same splits. The verdict's number is the mean of ``values - baseline``.
    at_least, at_most : float, optional
        Ends of the range; at least one is given. "Not worse by more than a point" is ``at_most=0.01`` of an
        error and ``at_least=-0.01`` of an accuracy.
    ratio : bool
        Geometric mean of ``values / baseline``, both positive, in place of differences.
    relevant : float, optional
        Smallest difference that matters: outside is also what passes an end by less. By default `RELEVANT`, a
        point of error or accuracy, where a difference is to be above or below 0, and otherwise 0.
    blocks : array-like of shape (n_repetitions,), optional
        Each value's unit of repetition, where it has several.
    **details
        The verdict's ``measure``, ``data``, ``unit``, ``tier``, ``figure``; so in all functions here.

    Examples
    --------
    >>> from companion.run.claims import judge_mean
    >>> judge_mean("omcl-6", [0.04, 0.05, 0.06], at_most=0.2).verdict
    'holds'
    >>> verdict = judge_mean("omcl-2", [0.10, 0.11, 0.09], baseline=[0.20, 0.22, 0.19], at_most=0.0)
    >>> verdict.verdict, round(verdict.number, 3)
    ('holds', -0.103)
    >>> judge_mean("obs-2", [40, 90, 60], baseline=[10, 20, 16], ratio=True, at_least=2).verdict
    'holds'
    """
    bounds = [bound for bound in (at_least, at_most) if bound is not None]
    better = baseline is not None and not ratio and bounds == [0.0]
    if relevant is None:
        relevant = RELEVANT if better else 0.0
    (values,) = _samples(values=values)
    if baseline is not None:
        values, baseline = _samples(values=values, baseline=baseline)
        if ratio and min(values.min(), baseline.min()) <= 0:
            raise ValueError("values and baseline of a ratio must be positive")
        values = np.log(values) - np.log(baseline) if ratio else values - baseline
    scale = (math.log, math.exp) if ratio else ()
    estimate = _estimate(values, blocks, *scale)
    verdict = _decide(claim, estimate, at_least, at_most, relevant=relevant, text=text, **details)
    if baseline is None or ratio or len(bounds) > 1 or verdict.low is None:
        return verdict
    if better and verdict.low == verdict.high == 0.0:
        return verdict._replace(verdict="fails", text=_joined(text, "No difference at all."))
    right_side = verdict.high < 0.0 if at_least is None else verdict.low > 0.0
    if verdict.verdict == "fails" and right_side:
        note = f"There is a difference, smaller than the {abs(bounds[0]):g} that counts."
        return verdict._replace(text=_joined(text, note))
    return verdict


def judge_slope(claim, x, y, at_least=None, at_most=None, *, runs, log_y=True, **details):
    """Claim: the least-squares slope of y on ln x, or of ln y on ln x (an exponent), lies in a stated range.

    A slope is fitted to each of the `runs`, which names the run of each point, that has at least three
    different x; the interval is that of the slopes' mean.

    Examples
    --------
    >>> from companion.run.claims import judge_slope
    >>> x, seconds = [1000, 2000, 4000] * 2, [1.0, 2.1, 3.9, 1.1, 2.2, 4.5]
    >>> verdict = judge_slope("obs-7", x, seconds, at_least=0.5, at_most=1.5, runs=[0, 0, 0, 1, 1, 1])
    >>> verdict.verdict, round(verdict.number, 2)
    ('holds', 1.0)
    """
    from scipy.stats import linregress

    x, y = _samples(x=x, y=y)
    if x.min() <= 0 or (log_y and y.min() <= 0):
        raise ValueError("values on a logarithmic axis must be positive")
    x = np.log(x)
    y = np.log(y) if log_y else y
    names = np.unique(runs)
    parts = [np.asarray(runs) == name for name in names]
    parts = [part for part in parts if len(np.unique(x[part])) >= 3]
    if not parts:
        raise ValueError("a slope with an interval needs at least three different x")
    if len(parts) < len(names):
        dropped = f"{len(names) - len(parts)} of {len(names)} runs have fewer than three points."
        details["text"] = _joined(details.get("text", ""), dropped)
    slopes = np.array([linregress(x[part], y[part]).slope for part in parts])
    return _decide(claim, _estimate(slopes), at_least, at_most, **details)


def judge_bound(
    claim, measured, bound, *, measure="measured over bound, largest", text="", slack=1e-9, **details
):
    """Claim: a theorem's bound; every measured value is at most its bound, up to `slack` times it.

    Where the bound is on an expectation, the caller hands over means. The number is the largest ratio of
    measured to bound, without an interval, since a bound holds on every sequence or fails.

    Examples
    --------
    >>> from companion.run.claims import judge_bound
    >>> verdict = judge_bound("om2-7", measured=[10, 14], bound=[20, 21])
    >>> verdict.verdict, round(verdict.number, 3)
    ('holds', 0.667)
    """
    measured, bound = np.broadcast_arrays(measured, bound)
    measured, bound = _samples(measured=measured, bound=bound)
    violations = int((measured > bound + slack * np.abs(bound)).sum())
    infinite = np.where(measured > 0, np.inf, 0.0)
    ratio = float(np.max(np.divide(measured, bound, out=infinite, where=bound > 0)))
    text = _joined(text, f"{violations} of {len(measured)} comparisons above the bound.")
    return Verdict(claim, "fails" if violations else "holds", ratio, measure=measure, text=text, **details)


def judge_exact(claim, true, *, number=None, **details):
    """Claim that is decided by an exact finding (a count, an identity), not by an average: `true` or not.

    Examples
    --------
    >>> from companion.run.claims import judge_exact
    >>> judge_exact("omcl-7", 3 <= 5, number=3).verdict
    'holds'
    """
    return Verdict(claim, "holds" if true else "fails", None if number is None else float(number), **details)


def not_testable(claim, why, *, data="", figure=""):
    """The claim cannot be judged on the data available; `why` says what is missing.

    Examples
    --------
    >>> from companion.run.claims import not_testable
    >>> not_testable("obs-8", "all of MNIST is needed").verdict
    'not testable here'
    """
    if not why:
        raise ValueError("why is empty: say what is missing")
    return Verdict(claim, "not testable here", data=data, text=why, figure=figure, p=1.0)


def holm(p):
    """Which of several null hypotheses Holm's procedure rejects at `LEVEL`, from their probabilities.

    Examples
    --------
    >>> from companion.run.claims import holm
    >>> holm([0.001, 0.04, 0.03])
    array([ True, False, False])
    """
    p = np.asarray(p, dtype=float)
    order = np.argsort(p, kind="stable")
    below = p[order] <= LEVEL / np.arange(p.size, 0, -1)
    rejected = np.zeros(p.size, dtype=bool)
    rejected[order[: below.size if below.all() else below.argmin()]] = True
    return rejected


def combine(claim, parts, *, open_parts=(), text="", figure=""):
    """One verdict for a claim of several parts, which its text lists.

    Of each tier: holds if all parts hold and nothing is open; else what outlasts Holm's correction counts:
    mixed if something holds and something fails, fails if something fails, else undecided. The first tier of
    `TIERS` that has parts decides. The number is that of the part that decides: the clearest one that fails,
    else the least clear.

    Parameters
    ----------
    claim : str
    parts : dict of str -> Verdict
        What each part says, and its verdict.
    open_parts : sequence of str
        Parts that this run does not judge, in words.
    text, figure : str

    Examples
    --------
    >>> from companion.run.claims import combine, judge_mean
    >>> small = judge_mean("omcl-6", [0.1, 0.2, 0.15], at_most=1.0)
    >>> large = judge_mean("omcl-6", [9.0, 9.1, 8.9], at_most=1.0)
    >>> combine("omcl-6", {"the first": small, "the second": large}).verdict
    'mixed'
    """
    if not parts:
        raise ValueError("parts is empty: use not_testable for a claim of which nothing can be judged")
    lines = []
    verdicts = {}
    deciding = None
    for tier in TIERS:
        named = {what: part for what, part in parts.items() if part.tier == tier}
        if named:
            verdicts[tier], decides, corrected = _of_one_tier(list(named.values()), open_parts)
            deciding = deciding or decides
            for (what, part), verdict in zip(named.items(), corrected, strict=True):
                lines.append(f"{what}: {verdict}{_details(part)}.")
    if open_parts:
        lines.append(f"Open: {'; '.join(open_parts)}.")
    tier = next(iter(verdicts))
    return deciding._replace(
        claim=claim,
        verdict=verdicts[tier],
        data="; ".join(dict.fromkeys(part.data for part in parts.values() if part.data)),
        text=_joined(text, *lines),
        figure=figure or deciding.figure,
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
    if set(plain) == {"not testable here"}:
        return "not testable here", parts[0], plain
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


def judges(claim):
    """Decorator: this function of a `Results` gives the verdict on a claim.

    Examples
    --------
    >>> from companion.run.claims import judge_mean, judges
    >>> @judges("my-1")
    ... def error_is_small(results):
    ...     return judge_mean(results.claim, results.table("my-figure")["error"], at_most=0.1)
    """

    def register(function):
        _JUDGES[claim] = function
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

    def about(self, figure, of=None, **more):
        """For `judge_mean` and its like: figure, unit, data and tier, and `more`.

        Data and tier are those of the figure, or of those of its data sets whose names begin with `of`. Where
        some of the data is simulated (or composed), all of the part is.
        """
        record = self.record(figure)
        used = [item for item in record["data"] if of is None or item["name"].startswith(of)]
        if not used:
            names = ", ".join(item["name"] for item in record["data"])
            raise ValueError(f"no data set of {figure} begins with {of!r}; there are: {names}")
        names = {"generated": "simulated", "bundled": "real", "original": "original"}
        tiers = {names[item["tier"]] for item in used}
        tier = next(tier for tier in ("simulated", "original", "real") if tier in tiers)
        data = record["our_data"] if of is None else ", ".join(dict.fromkeys(item["name"] for item in used))
        unit = claims().loc[self.claim, "unit"]
        return {"figure": figure, "unit": unit, "data": data, "tier": tier} | more

    def mean(self, figure, *values, of=None, **options):
        """`judge_mean` of the claim on the data of a figure; undecided where there is no run to judge by.

        `of` and `options` as in `about`.
        """
        options = self.about(figure, of, **options)
        if not len(values[0]):
            return self._without_runs(options)
        return judge_mean(self.claim, *values, **options)

    def slope(self, figure, x, y, of=None, *, runs, **options):
        """`judge_slope` over runs, likewise; undecided where no run has a slope."""
        options = self.about(figure, of, **options)
        runs = np.asarray(runs)
        if not any(np.unique(np.asarray(x)[runs == run]).size > 2 for run in np.unique(runs)):
            return self._without_runs(options)
        return judge_slope(self.claim, x, y, runs=runs, **options)

    def _without_runs(self, options):
        options = {name: value for name, value in options.items() if name in Verdict._fields}
        text = _joined(options.pop("text", ""), "No run is left to judge by.")
        return Verdict(self.claim, "undecided", math.nan, p=1.0, text=text, **options)

    def bound(self, figure, measured, bound, of=None, **options):
        """`judge_bound` of the claim on the data of a figure."""
        return judge_bound(self.claim, measured, bound, **self.about(figure, of, **options))

    def exact(self, figure, true, of=None, **options):
        """`judge_exact` of the claim on the data of a figure."""
        return judge_exact(self.claim, true, **self.about(figure, of, **options))


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
    claim, rows = results.claim, claims()
    if claim not in rows.index:
        raise ValueError(f"there is no claim {claim!r}{near(claim, rows.index)}")
    importlib.import_module(f"companion.{rows.loc[claim, 'chapter']}.claims")
    return _in_its_column(_JUDGES[claim](results))


def _in_its_column(verdict):
    """A verdict of one part stands in the column of its tier."""
    if verdict.real or verdict.original or verdict.simulated:
        return verdict
    return verdict._replace(**{verdict.tier: verdict.verdict})


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

    ``claims-parts.csv`` has the parts of each claim. A new book starts with all of its chapter "open", so
    that no verdict of an earlier run survives unless it is reached again; rows of other chapters stay as
    they are. Directory, chapter and profile are those of the `store`, a `FigureStore`.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from companion.run.claims import ClaimBook, judge_exact
    >>> from companion.run.figures import FigureStore
    >>> with TemporaryDirectory() as directory:
    ...     book = ClaimBook(FigureStore("smoke", directory, chapter="omcl"))
    ...     book.record(judge_exact("omcl-7", True, data="toy")).verdict
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

    def record(self, verdict, **changes):
        """Enter a verdict (with fields replaced by `changes`) and write the files.

        Raises
        ------
        ValueError
            If the claim is unknown or of another chapter, the verdict is none of `VERDICTS` or does not name
            its data, or a text is missing that says what is open.
        """
        verdict = _in_its_column(verdict._replace(**{"profile": self.store.profile, **changes}))
        known = claims(self.store.chapter).index
        if verdict.claim not in known:
            message = f"claim {verdict.claim!r} is not among the claims of the chapter {self.store.chapter}"
            raise ValueError(f"{message}{near(verdict.claim, known)}")
        if verdict.verdict not in VERDICTS:
            raise ValueError(f"verdict must be one of {', '.join(VERDICTS)}, got {verdict.verdict!r}")
        if verdict.verdict in ("holds", "fails", "mixed", "undecided") and not verdict.data:
            raise ValueError(f"the verdict on {verdict.claim} does not name the data it was found on")
        if verdict.verdict in ("mixed", "undecided", "not testable here") and not verdict.text:
            raise ValueError(f"the verdict {verdict.verdict!r} on {verdict.claim} needs a text")
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
    others, other_parts = read_verdicts(directory), read_parts(directory)
    others = others[~others["chapter"].isin({*verdicts["chapter"], *chapters})]
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

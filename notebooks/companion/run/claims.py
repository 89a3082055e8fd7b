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

The helpers ``judge_...`` are mechanical: measurements in, verdict out, with no room for a favourable reading.
Measurements are one for each unit of repetition; where several are of one unit, such as the names and verbs
of one corpus, ``blocks`` says so and their mean counts. Where a claim has several parts, that one of them
fails, or holds beside one that fails, is said only where it outlasts Holm's correction over all parts; that
all hold needs none. That one method is better than another fails also where the interval lies below the
smallest difference that matters, a point: no number of runs would part equal methods from zero. Real data
decides: what simulated and original data say stands beside it.

``claims.csv`` fixes, before anything is run, each claim's unit of repetition, what is random in it, and of
how many units the profiles quick and full have results. What is measured against which threshold stands in
one function for each claim, in ``notebooks/companion/<chapter>/claims.py``, and reads nothing but the tables
that stand beside the figures, so that `judge` finds every verdict again: ``judge("om2-1")`` that of
figures/reference, ``judge("om2-1", "figures/quick")`` that of another run.
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
    >>> found = judge_mean("omcl-6", [0.04, 0.05, 0.06], at_most=0.2, measure="ties", unit="run")
    >>> isinstance(found, Verdict), found.n, round(found.low, 3), round(found.high, 3)
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
        says = claims().loc[self.claim, "claim"]
        number = ""
        if self.number is not None:
            number = f"{self.measure}: {self.number:.4g}"
            number += "" if self.low is None else f" (95% interval {self.low:.4g} to {self.high:.4g})"
        found = [number, f"Data: {self.data}" if self.data else ""]
        folded = len(self.text) > SHORT
        said = ". ".join(filter(None, found if folded else [*found, self.text]))
        if folded:
            said += f"\n\n<details><summary>Part by part</summary>\n\n{in_lines(self.text)}\n\n</details>"
        return f"**{self.claim}: {self.verdict}.** *{says}.* {said}"


def in_lines(text):
    """What the parts of a verdict say, each in a line of a list."""
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
    """A mean, its standard error and degrees of freedom; `back` brings it to the unit it is told in."""

    mean: float
    error: float
    freedom: int
    back: Callable = float

    @property
    def n(self):
        return self.freedom + 1

    def ends(self):
        half = student.ppf((1 + CONFIDENCE) / 2, self.freedom) * self.error
        return [float(self.back(end)) for end in (self.mean, self.mean - half, self.mean + half)]

    def beyond(self, bound):
        """Probability of a mean so far above the bound, were it the true one."""
        if self.error == 0:
            return float(self.mean < bound)
        return float(student.sf((self.mean - bound) / self.error, self.freedom))

    def units_that_decide(self, bound):
        """Units of repetition with which the bound would be left with `POWER`, if the mean stays."""
        if self.mean == bound:
            return math.inf
        reach = norm.ppf((1 + CONFIDENCE) / 2) + norm.ppf(POWER)
        return self.n * (reach * self.error / (self.mean - bound)) ** 2


def _estimate(values, blocks=None, back=float):
    """Of the mean of some values, or of blocks of them."""
    if blocks is not None:
        blocks = np.asarray(blocks).ravel()
        if blocks.size != values.size:
            raise ValueError(f"blocks must name the unit of each of {values.size} values, got {blocks.size}")
        values = np.array([values[blocks == one].mean() for one in np.unique(blocks)])
    error = values.std(ddof=1) / math.sqrt(values.size) if values.size > 1 else math.nan
    return _Estimate(float(values.mean()), float(error), values.size - 1, back)


def _decide(claim, estimate, at_least=None, at_most=None, *, relevant=0.0, text="", **about):
    """Verdict from a mean and its interval: all within the claimed range, all outside, or neither.

    Outside is also what passes the end of the range by less than `relevant`.
    """
    if at_least is None and at_most is None:
        raise ValueError("give at_least, at_most, or both")
    about["n"] = estimate.n
    if not math.isfinite(estimate.error):
        text, number = _joined(text, "A single run has no interval."), float(estimate.back(estimate.mean))
        return Verdict(claim, "undecided", number, text=text, p=1.0, **about)
    number, low, high = estimate.ends()
    ends, inside, outside = [], [], []
    if at_least is not None:
        beyond = at_least + relevant
        ends.append((at_least, low >= at_least, high <= beyond, _units(estimate, at_least, beyond)))
        inside.append(estimate.beyond(_forward(estimate, at_least)))
        outside.append(1 - estimate.beyond(_forward(estimate, beyond)))
    if at_most is not None:
        beyond = at_most - relevant
        ends.append((at_most, high <= at_most, low >= beyond, _units(estimate, at_most, beyond)))
        outside.append(estimate.beyond(_forward(estimate, beyond)))
        inside.append(1 - estimate.beyond(_forward(estimate, at_most)))
    about["needed"] = max(units for *_, units in ends)
    crossed = [(end, units) for end, within, without, units in ends if not within and not without]
    if any(without and not within for _, within, without, _ in ends):
        verdict, p = "fails", min(outside)
    elif crossed:
        verdict, p = "undecided", min(max(inside), min(outside))
        end, units = crossed[0]
        more = units - estimate.n
        unit = about.get("unit") or "run"
        some = f"{more:.0f} more {unit}s" if more < 10_000 else f"more than 10,000 {unit}s"
        text = _joined(text, f"The interval contains {end + 0.0:.4g}; about {some} would decide.")
    else:
        verdict, p = "holds", max(inside)
    return Verdict(claim, verdict, number, low, high, text=text, p=min(1.0, 2 * p), **about)


def _units(estimate, *bounds):
    """Units of repetition that decide against the bound that is easier to keep apart from."""
    return min(estimate.units_that_decide(_forward(estimate, bound)) for bound in bounds)


def _forward(estimate, bound):
    """A bound in the unit in which the mean is taken."""
    return math.log(bound) if estimate.back is math.exp else bound


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
    **about,
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
    **about
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
    estimate = _estimate(values, blocks, math.exp if ratio else float)
    verdict = _decide(claim, estimate, at_least, at_most, relevant=relevant, text=text, **about)
    if baseline is None or ratio or len(bounds) > 1 or verdict.low is None:
        return verdict
    if better and verdict.low == verdict.high == 0.0:
        return verdict._replace(verdict="fails", text=_joined(text, "No difference at all."))
    right_side = verdict.high < 0.0 if at_least is None else verdict.low > 0.0
    if verdict.verdict == "fails" and right_side:
        note = f"There is a difference, smaller than the {abs(bounds[0]):g} that counts."
        return verdict._replace(text=_joined(text, note))
    return verdict


def judge_slope(claim, x, y, at_least=None, at_most=None, *, log_y=True, runs=None, **about):
    """Claim: the least-squares slope of y on ln x, or of ln y on ln x (an exponent), lies in a stated range.

    At least three points with different x are needed. With `runs`, which names the run of each point, a slope
    is fitted to each run that has as many, and the interval is that of their mean; without, it is that of the
    slope in the linear model, from the scatter about the line.

    Examples
    --------
    >>> from companion.run.claims import judge_slope
    >>> seconds = [1.0, 2.1, 3.9, 8.0]
    >>> found = judge_slope("obs-7", [1000, 2000, 4000, 8000], seconds, at_least=0.75, at_most=1.25)
    >>> found.verdict, round(found.number, 2)
    ('holds', 0.99)
    """
    from scipy.stats import linregress

    x, y = _samples(x=x, y=y)
    if x.min() <= 0 or (log_y and y.min() <= 0):
        raise ValueError("values on a logarithmic axis must be positive")
    x, y = np.log(x), np.log(y) if log_y else y
    all_parts = (
        [np.ones(x.size, bool)] if runs is None else [np.asarray(runs) == one for one in np.unique(runs)]
    )
    parts = [part for part in all_parts if len(np.unique(x[part])) >= 3]
    if not parts:
        raise ValueError("a slope with an interval needs at least three different x")
    fits = [linregress(x[part], y[part]) for part in parts]
    if runs is None:
        estimate = _Estimate(float(fits[0].slope), float(fits[0].stderr), x.size - 2)
    else:
        estimate = _estimate(np.array([fit.slope for fit in fits]))
    if len(parts) < len(all_parts):
        dropped = f"{len(all_parts) - len(parts)} of {len(all_parts)} runs have fewer than three points."
        about["text"] = _joined(about.get("text", ""), dropped)
    return _decide(claim, estimate, at_least, at_most, **about)


def judge_bound(
    claim, measured, bound, *, slack=1e-9, measure="measured over bound, largest", text="", **about
):
    """Claim: a theorem's bound; every measured value is at most its bound, up to `slack` times it.

    Where the bound is on an expectation, the caller hands over means. The number is the largest ratio of
    measured to bound, without an interval, since a bound holds on every sequence or fails.

    Examples
    --------
    >>> from companion.run.claims import judge_bound
    >>> found = judge_bound("om2-7", measured=[10, 14], bound=[20, 21])
    >>> found.verdict, round(found.number, 3)
    ('holds', 0.667)
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
    """Claim that is decided by an exact finding (a count, an identity), not by an average: `true` or not.

    Examples
    --------
    >>> from companion.run.claims import judge_exact
    >>> judge_exact("omcl-7", 3 <= 5, number=3).verdict
    'holds'
    """
    return Verdict(claim, "holds" if true else "fails", None if number is None else float(number), **about)


def not_testable(claim, why, *, data="", figure=""):
    """The claim cannot be judged on the data at hand; `why` says what is missing.

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
    said, found, deciding = [], {}, {}
    for tier in TIERS:
        mine = {what: part for what, part in parts.items() if part.tier == tier}
        if mine:
            found[tier], deciding[tier], corrected = _of_one_tier(list(mine.values()), open_parts)
            named = zip(mine.items(), corrected, strict=True)
            said += [f"{what}: {verdict}{_told(part)}." for (what, part), verdict in named]
    if open_parts:
        said.append(f"Open: {'; '.join(open_parts)}.")
    tier = next(iter(found))
    data = "; ".join(dict.fromkeys(part.data for part in parts.values() if part.data))
    first = deciding[tier]
    about = {"data": data, "text": _joined(text, *said), "figure": figure or first.figure}
    about |= {"tier": tier, "parts": tuple(parts.items())}
    return first._replace(claim=claim, verdict=found[tier], **about, **found)


def _of_one_tier(parts, open_parts):
    """Verdict on a claim's parts, the part that decides, and what each part's verdict is once corrected."""
    plain = [part.verdict for part in parts]
    outlasts = holm([part.p for part in parts])
    kept = [
        verdict if sure or verdict not in ("holds", "fails") else f"undecided over all parts, alone {verdict}"
        for verdict, sure in zip(plain, outlasts, strict=True)
    ]
    clear = [part.p for part in parts]
    failing = [i for i, verdict in enumerate(kept) if verdict == "fails"]
    least = int(np.argmax(clear))
    if set(plain) == {"holds"} and not open_parts:
        return "holds", parts[least], plain
    if failing:
        verdict = "mixed" if "holds" in kept else "fails"
        return verdict, parts[min(failing, key=clear.__getitem__)], kept
    if set(plain) == {"not testable here"}:
        return "not testable here", parts[0], plain
    return "undecided", parts[least], kept


def _told(part):
    """In parentheses: the number of a part, its interval, and what is said of it besides."""
    told = [] if part.number is None else [f"{part.number:.4g}"]
    if part.low is not None:
        told[0] += f", 95% interval {part.low:.4g} to {part.high:.4g}"
    told += [part.text.rstrip(".")] if part.text else []
    return f" ({'; '.join(told)})" if told else ""


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

    Parameters
    ----------
    directory : str or Path
    claim : str

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
            said = f"the claim {self.claim} is judged by {file}, which is not in {self.directory}"
            raise FileNotFoundError(f"{said}: make figures writes it") from None

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
        mine = [one for one in record["data"] if of is None or one["name"].startswith(of)]
        if not mine:
            names = ", ".join(one["name"] for one in record["data"])
            raise ValueError(f"no data set of {figure} begins with {of!r}; there are: {names}")
        tiers = {{"generated": "simulated", "bundled": "real"}.get(one["tier"], one["tier"]) for one in mine}
        tier = next(tier for tier in ("simulated", "original", "real") if tier in tiers)
        data = record["our_data"] if of is None else ", ".join(dict.fromkeys(one["name"] for one in mine))
        found = {"figure": figure, "unit": claims().loc[self.claim, "unit"], "data": data, "tier": tier}
        return found | more

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
    """The verdict on one claim, computed from the tables beside the figures in `directory`.

    Parameters
    ----------
    claim : str
        An id of ``claims.csv``.
    directory : str or Path
        Where a run has put its results; by default those committed with the project.

    Returns
    -------
    Verdict

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
WORDS = (
    "*How verdicts read.* Mixed: one part of the claim holds, another fails. Undecided: nothing fails, and "
    'an interval contains its threshold. "Undecided over all parts, alone holds": decided if this part were '
    "the only one, not once corrected for how many there are (Holm)."
)


class Verdicts(list):
    """Several verdicts, one below the other in a notebook, and a word on how to read them."""

    words = ""

    def _repr_markdown_(self):
        said = [verdict._repr_markdown_() for verdict in self]
        return "\n\n".join(filter(None, [*said, self.words]))


class ClaimBook:
    """The verdicts of a chapter, in ``claims.csv`` and ``claims.md`` beside its figures after every entry.

    ``claims-parts.csv`` has the parts of each claim, with what they would need to be decided. The others list
    every claim of the chapter. A new book starts with all of its chapter "open", so that no
    verdict of an earlier run survives unless it is found again; rows of other chapters stay as they are.

    Parameters
    ----------
    store : FigureStore
        Gives directory, chapter and profile.

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
        words = "" if self.verdicts else WORDS
        found = Verdicts(self.record(judge(name, self.store.directory)) for name in names)
        found.words = words
        return found

    def record(self, verdict, **changes):
        """Enter a verdict (with fields replaced by `changes`) and write the files.

        Raises
        ------
        ValueError
            If the claim is unknown or of another chapter, the verdict is none of `VERDICTS` or does not name
            its data, or a text is missing that says what is open.
        """
        verdict = _in_its_column(verdict._replace(**{"profile": self.store.profile, **changes}))
        mine = claims(self.store.chapter)
        if verdict.claim not in mine.index:
            said = f"claim {verdict.claim!r} is not among the claims of the chapter {self.store.chapter}"
            raise ValueError(f"{said}{near(verdict.claim, mine.index)}")
        if verdict.verdict not in VERDICTS:
            raise ValueError(f"verdict must be one of {', '.join(VERDICTS)}, got {verdict.verdict!r}")
        if verdict.verdict in ("holds", "fails", "mixed", "undecided") and not verdict.data:
            raise ValueError(f"the verdict on {verdict.claim} does not name the data it was found on")
        if verdict.verdict in ("mixed", "undecided", "not testable here") and not verdict.text:
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
            told = {**verdict._asdict(), "claim": row.claim, "n": "" if verdict.n is None else str(verdict.n)}
            rows.append({**row._asdict(), **told})
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
    try:
        table = pd.read_csv(Path(directory) / "claims.csv", dtype=str, keep_default_na=False)
    except FileNotFoundError:
        return pd.DataFrame(columns=ClaimBook.COLUMNS, dtype=object)
    for column in ("number", "low", "high"):
        table[column] = [float(value or "nan") for value in table[column]]
    return table.astype(object)


def read_parts(directory):
    """What ``claims-parts.csv`` in `directory` holds (DataFrame with `ClaimBook.PARTS`; empty without it)."""
    try:
        return pd.read_csv(Path(directory) / "claims-parts.csv", dtype=str, keep_default_na=False)
    except FileNotFoundError:
        return pd.DataFrame(columns=ClaimBook.PARTS, dtype=object)


def with_original(table, directory):
    """Verdicts, with the column `original` filled from a run with ``DATA=original`` where they have none.

    It says the verdict and the data: "fails: flowers17". The verdicts themselves stay as they are.
    """
    theirs, parts = read_verdicts(directory).set_index("id")["original"], read_parts(directory)
    data = parts[parts["tier"] == "original"].groupby("claim", sort=False)["data"].unique()
    told = {
        claim: f"{verdict}: {', '.join(data.get(claim, []))}" for claim, verdict in theirs.items() if verdict
    }
    found = [own or told.get(claim, "") for claim, own in zip(table["id"], table["original"], strict=True)]
    return table.assign(original=found)


def verdict_table(table):
    """Verdicts as Markdown: a count, then one row for each claim."""
    found = table["verdict"].value_counts()
    counts = [f"{found[verdict]} {verdict}" for verdict in VERDICTS if verdict in found]
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

"""Figures and tables: one style, and a store that keeps the plotted numbers and their provenance beside every picture.

A figure or table belongs to one row of ``catalogue.csv``. `FigureStore.save_figure` and `FigureStore.save_table` write it under
the row's id; the file ``<id>[-suffix].json`` beside it says what made it, on which data.
"""

from __future__ import annotations

import contextlib
import dataclasses
import difflib
import io
import json
import os
import platform
import re
import subprocess
import time
from collections.abc import Mapping
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

import cuelearn
from cuelearn.book.protocols import atomic_write

__all__ = [
    "METHOD_STYLE",
    "FigureStore",
    "Interval",
    "atomic_write",
    "band",
    "catalogue",
    "interval",
    "markdown_table",
    "method_style",
    "name_methods",
    "use_style",
]

PROFILES = ("smoke", "quick", "full", "reference")
CONFIDENCE = 0.95
#: Parameters that say how a run is carried out, not what it computes.
NOT_PARAMETERS = ("figures_dir", "n_jobs", "scheduler", "profile")

# --- style -------------------------------------------------------------------------------------------------------------------

# The palette of Okabe and Ito, which people with any common form of colour blindness can tell apart; without its yellow, too pale
# for a line on white, and with a grey.
BLUE, ORANGE, GREEN, RED, PURPLE, SKY, BLACK, GREY = (
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#D55E00",
    "#CC79A7",
    "#56B4E9",
    "#000000",
    "#7F7F7F",
)
PALETTE = (BLUE, RED, GREEN, ORANGE, PURPLE, SKY, BLACK, GREY)

_STYLE = {
    "figure.figsize": (5.2, 3.6),
    "figure.dpi": 100,
    "figure.constrained_layout.use": True,
    "savefig.dpi": 150,
    "font.family": "DejaVu Sans",  # ships with matplotlib: the same figure on every machine
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.labelsize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#E3E3E3",
    "grid.linewidth": 0.6,
    "axes.prop_cycle": mpl.cycler(color=PALETTE),
    "lines.linewidth": 1.6,
    "lines.markersize": 4.5,
    "legend.fontsize": 8,
    "legend.frameon": True,
    "legend.framealpha": 0.8,
    "legend.edgecolor": "none",
    "image.cmap": "cividis",
    "svg.hashsalt": "cuelearn",  # element ids, and so the bytes of an SVG, depend on the drawing alone
    "svg.fonttype": "path",
}


def use_style():
    """Use the project's style for all figures drawn from now on (matplotlib's rcParams)."""
    mpl.rcParams.update(_STYLE)


def _row(label, color, marker, linestyle="-"):
    return {"label": label, "color": color, "marker": marker, "linestyle": linestyle}


#: Method -> label, colour, marker and line style, the same in every figure. Keys are the names of the public interface; a few
#: variants that the papers plot as methods of their own follow them.
METHOD_STYLE = {
    # multiple kernel learning
    "OM2": _row("OM-2", GREEN, "o"),
    "OBSCURE": _row("OBSCURE", BLUE, "s"),
    "OBSCURE online": _row("OBSCURE, online stage", SKY, "s", "--"),
    "UFOMKL": _row("UFO-MKL", RED, "^"),
    "UFOMKL sparse": _row("UFO-MKL, alpha = 0.005", RED, "v", "--"),
    "PegasosMKL": _row("Pegasos-MKL", PURPLE, "v", "-."),
    "SILPMKL": _row("SILP (1-vs-All)", ORANGE, "D", "--"),
    "SimpleMKL": _row("SimpleMKL (1-vs-All)", ORANGE, "x", ":"),
    "LpMKL": _row("p-norm MKL (1-vs-All)", BLACK, "P", "--"),
    "LpMKL sparse": _row("p-norm MKL, p = 1.01 (Kloft's 1.02)", GREY, "P", ":"),
    "MCMKL": _row("MC-MKL", GREY, "X", "-."),
    "LPBeta": _row("LP-beta", PURPLE, "d", "--"),
    "LPBeta per class": _row("LP-B (weights per class)", PURPLE, "1", ":"),
    "AverageKernelSVM": _row("SVM, average kernel", BLACK, "+", ":"),
    "BestKernelSVM": _row("SVM, best kernel", GREY, "1", ":"),
    "KernelPA": _row("PA-I, average kernel", ORANGE, "<", "-."),
    "KernelPA best": _row("PA-I, best kernel", GREY, ">", "-."),
    "MLMKLSA": _row("ML-MKL-SA", BLUE, "o"),
    "MLMKLSA printed": _row("ML-MKL-SA, paper's estimates", SKY, "D", "-."),
    "MLMKLSum": _row("ML-MKL-Sum", RED, "s", "--"),
    "GMKL": _row("GMKL", GREEN, "^", "-."),
    "VSKL": _row("VSKL", PURPLE, "v", ":"),
    # two-layer online learning
    "OMCL": _row("OMCL", SKY, "D"),
    "OMCL-BM": _row("OMCL-BM", BLUE, "o"),
    "OMCL-BM sparser": _row("OMCL-BM (sparser)", SKY, "o", "--"),
    "OMCL-PERC": _row("OMCL-PERC", RED, "s", "--"),
    "KernelPerceptron": _row("Perceptron", GREY, "x", ":"),
    "Projectron": _row("Projectron", GREEN, "v", "-."),
    "ProjectronPlusPlus": _row("Projectron++", GREEN, "^"),
    "PassiveAggressive": _row("Passive-Aggressive", ORANGE, "<", "-."),
    "Flat": _row("Flat (long vector)", PURPLE, "d", "--"),
    "Flat maps": _row("Flat (feature maps)", PURPLE, "D", ":"),
    "Vote": _row("Vote", BLACK, "P", ":"),
    "gradient descent": _row("OMCL, gradient descent on top", GREEN, "", "-."),
    # candidate labeling sets
    "MMS": _row("MMS", BLUE, "o"),
    "CLSVM": _row("CL-SVM", GREEN, "^", "--"),
    "MIMLSVM": _row("MIMLSVM", ORANGE, "s", "-."),
    "M3MIML": _row("M3MIML", PURPLE, "v", ":"),
    "GMMNaming": _row("GMM", RED, "D", "--"),
    "DistNaming": _row("DIST", SKY, "X", "-."),
    "MC-SVM": _row("MC-SVM (all labels)", BLACK, "P", "--"),
    "1vA-SVM": _row("1vA-SVM (all labels)", GREY, "x", ":"),
    "RANDOM": _row("RANDOM", GREY, "1", ":"),
    # transfer
    "MKTL": _row("MKTL", BLUE, "o"),
    "MKTL auto": _row("MKTL, p auto", PURPLE, "v", ":"),
    "MKTL weighted": _row("MKTL, weighted", SKY, "o", "--"),
    "MultiKT": _row("Multi-KT", RED, "s", "--"),
    "AverageTL": _row("Average-TL", GREEN, "^", "-."),
    "PriorFeatures": _row("Prior-Features", ORANGE, "D", ":"),
    "NoTransfer": _row("No-Transfer", BLACK, "x", "--"),
    "AverageTL weighted": _row("Average-TL, weighted", GREEN, "v", ":"),
    "PriorFeatures weighted": _row("Prior-Features, weighted", ORANGE, "d", "-."),
    "NoTransfer weighted": _row("No-Transfer, weighted", GREY, "+", ":"),
    # kernel selection
    "OKS": _row("OKS-SVM", BLUE, "o"),
    "OKSRegret": _row("OKS (regret)", SKY, "o", "--"),
    "OM1": _row("OM-1", ORANGE, "s", "-."),
    "SOM": _row("SOM-SVM", RED, "^", "--"),
    "MuTron": _row("MuTron", GREY, "x", ":"),
    "MuSVM": _row("MuSVM", BLACK, "P", "--"),
    "AlignmentSVM": _row("AlSVM", PURPLE, "v", ":"),
    # reference lines
    "optimum": _row("certified optimum", BLACK, "", ":"),
    "bound": _row("bound of the theorem", RED, "", "--"),
}


def method_style(method, **changes):
    """Keyword arguments for ``ax.plot`` that draw `method` as everywhere else.

    Parameters
    ----------
    method : str
        A key of `METHOD_STYLE`.
    **changes
        Replace or add arguments, e.g. ``label="OBSCURE, p = 1.1"`` or ``marker=""``.

    Raises
    ------
    ValueError
        If the method is unknown; near names are listed.
    """
    if method not in METHOD_STYLE:
        raise ValueError(f"method {method!r} has no style{_near(method, METHOD_STYLE)}")
    return {**METHOD_STYLE[method], **changes}


def name_methods(names):
    """Give a style to every method that has none yet: its name as the label, a grey of its own and a free marker.

    Parameters
    ----------
    names : iterable of str
    """
    unnamed = [name for name in names if name not in METHOD_STYLE]
    for i, name in enumerate(unnamed):
        METHOD_STYLE[name] = _row(
            name, mpl.colors.to_hex(str(0.25 + 0.12 * (i % 4))), "*ph8H"[i % 5], (0, (1, 1))
        )


def _near(name, names):
    near = difflib.get_close_matches(str(name), list(names), n=4, cutoff=0.5)
    return f"; did you mean {' or '.join(near)}?" if near else f"; there are: {', '.join(names)}"


# --- intervals ---------------------------------------------------------------------------------------------------------------


class Interval(NamedTuple):
    """A mean and its 95% interval; arrays where several means were asked for at once."""

    mean: float | np.ndarray
    low: float | np.ndarray
    high: float | np.ndarray


def interval(values, axis=0):
    """Mean of repeated measurements and its 95% interval, from Student's t distribution.

    Parameters
    ----------
    values : array-like
        Independent repetitions along `axis`: splits, permutations or seeds. Any NaN along it makes the answer there NaN.
    axis : int, default=0

    Returns
    -------
    Interval
        ``mean``, ``low``, ``high``. With a single repetition ``low`` and ``high`` are NaN: one run has no interval.
    """
    from scipy.stats import t

    values = np.asarray(values, dtype=float)
    n = values.shape[axis] if values.ndim else 1
    if n == 0:
        raise ValueError("values is empty: an interval needs at least one measurement")
    mean = values.mean(axis=axis) if values.ndim else values
    half = (
        np.full_like(mean, np.nan)
        if n < 2
        else t.ppf((1 + CONFIDENCE) / 2, n - 1) * values.std(axis=axis, ddof=1) / np.sqrt(n)
    )
    answer = Interval(mean, mean - half, mean + half)
    return answer if np.ndim(mean) else Interval(*(float(v) for v in answer))


def band(ax, x, samples, method=None, alpha=0.2, geometric=False, **style):
    """Draw the mean of repeated curves and its 95% interval as a band.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
    x : array-like of shape (n_points,)
    samples : array-like of shape (n_repetitions, n_points)
    method : str, optional
        Key of `METHOD_STYLE`.
    alpha : float
        Opacity of the band.
    geometric : bool
        Geometric mean, and the interval of the logarithms: for positive quantities that spread over orders of magnitude.
    **style
        Passed to ``ax.plot``; wins over the method's style. What the band means goes into the footer of the saved figure.

    Returns
    -------
    Interval
        What was drawn, each an array of shape (n_points,).
    """
    style = {**(method_style(method) if method else {}), **style}
    samples = np.atleast_2d(np.asarray(samples, dtype=float))
    drawn = Interval(*np.exp(interval(np.log(samples)))) if geometric else interval(samples)
    (line,) = ax.plot(x, drawn.mean, **style)
    if len(samples) > 1:
        ax.fill_between(
            x,
            drawn.low,
            drawn.high,
            color=line.get_color(),
            alpha=alpha,
            linewidth=0,
            zorder=line.get_zorder() - 0.1,
        )
        ax.cuelearn_band = f"{'geometric ' if geometric else ''}mean of {len(samples)} runs, band: {CONFIDENCE:.0%} interval of the mean"
    return drawn


def _band_names(fig):
    """What the bands in a figure are, each wording once, in drawing order."""
    return list(dict.fromkeys(ax.cuelearn_band for ax in fig.axes if hasattr(ax, "cuelearn_band")))


# --- catalogue ---------------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def _catalogue():
    return pd.read_csv(Path(__file__).with_name("catalogue.csv"), keep_default_na=False).set_index(
        "id", drop=False
    )


def catalogue(chapter=None):
    """The list of figures and tables: id, chapter, source, shows, papers_data, bundled_data (DataFrame, indexed by id)."""
    rows = _catalogue().copy()
    return rows if chapter is None else rows[rows["chapter"] == chapter]


def _catalogue_row(figure_id):
    rows = _catalogue()
    if figure_id not in rows.index:
        raise ValueError(f"id {figure_id!r} is not in catalogue.csv{_near(figure_id, rows.index)}")
    return rows.loc[figure_id]


# --- tables as text ----------------------------------------------------------------------------------------------------------


def _cell(value, digits):
    if value is None or (isinstance(value, float) and np.isnan(value)):
        return ""
    if isinstance(value, (bool, np.bool_)):
        return "yes" if value else "no"
    if isinstance(value, (float, np.floating)):
        return f"{value:.{digits}g}"
    return str(value).replace("|", "\\|").replace("\n", " ")


def markdown_table(rows, digits=4):
    """A DataFrame as a Markdown table (without its index); floats with `digits` significant digits, missing values empty."""
    columns = [str(column) for column in rows.columns]
    numeric = [
        pd.api.types.is_numeric_dtype(dtype) and not pd.api.types.is_bool_dtype(dtype)
        for dtype in rows.dtypes
    ]
    lines = [
        "| " + " | ".join(columns) + " |",
        "|" + "|".join("---:" if right else "---" for right in numeric) + "|",
    ]
    for row in rows.itertuples(index=False, name=None):
        lines.append("| " + " | ".join(_cell(value, digits) for value in row) + " |")
    return "\n".join(lines) + "\n"


# --- provenance --------------------------------------------------------------------------------------------------------------

_TIERS = ("bundled", "generated", "original")


def _as_provenance(item):
    """One data set's provenance, of whatever form, as a dict with at least name and tier."""
    if hasattr(item, "provenance"):  # the data set itself was handed over
        item = item.provenance
    if isinstance(item, Mapping):
        record = dict(item)
    elif hasattr(item, "_asdict"):
        record = item._asdict()
    elif dataclasses.is_dataclass(item) and not isinstance(item, type):
        record = dataclasses.asdict(item)
    else:
        raise TypeError(f"provenance must hold records with the fields name and tier, got {item!r}")
    record = {key: value for key, value in record.items() if value is not None}
    if not record.get("name") or record.get("tier") not in _TIERS:
        raise ValueError(
            f"a provenance record needs a name and a tier out of {', '.join(_TIERS)}, got {record}"
        )
    return record


def _made_word(record):
    """How data that is not a recording is called wherever it is shown; empty for real data."""
    if record["tier"] != "generated":
        return ""
    return next(
        (
            str(record[key])
            for key in ("word", "kind")
            if record.get(key) in ("simulated", "composed", "rendered")
        ),
        "simulated",
    )


def _data_line(records):
    parts = []
    for record in records:
        word = _made_word(record) or record["tier"]
        parts.append(record["name"] if word in record["name"] else f"{record['name']} ({word})")
    return ", ".join(dict.fromkeys(parts))


@lru_cache(maxsize=1)
def _surroundings():
    """Versions, platform and commit: the same for all figures of a process."""
    versions = {"python": platform.python_version(), "cuelearn": cuelearn.__version__}
    for package in (
        "numpy",
        "scipy",
        "pandas",
        "matplotlib",
        "numba",
        "scikit-learn",
        "scikit-image",
        "joblib",
    ):
        with contextlib.suppress(PackageNotFoundError):
            versions[package] = version(package)
    checkout = Path(cuelearn.__file__).resolve().parents[1]
    commit = None
    if (checkout / ".git").exists():
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            git = ["git", "-C", str(checkout)]
            commit = subprocess.run(
                [*git, "rev-parse", "HEAD"], capture_output=True, text=True, timeout=10, check=True
            ).stdout.strip()
            changed = subprocess.run(
                [*git, "status", "--porcelain", "-uno", "--", "cuelearn", "notebooks", "data"],
                capture_output=True,
                text=True,
                timeout=10,
                check=True,
            ).stdout.strip()
            commit += " with changes" if changed else ""
    return {
        "versions": versions,
        "platform": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "commit": commit,
    }


def _jsonable(value):
    if isinstance(value, Mapping):
        return {str(k): _jsonable(v) for k, v in value.items()}
    if isinstance(value, (list, tuple, set)):
        return [_jsonable(v) for v in value]
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)


def _checked_name(name, what):
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._]*(-[A-Za-z0-9._]+)*", name):
        raise ValueError(f"{what} must be made of letters, digits, '.', '_' and '-', got {name!r}")
    return name


# --- the store ---------------------------------------------------------------------------------------------------------------


class FigureStore:
    """Writes the figures and tables of one chapter, at one profile.

    Parameters
    ----------
    profile : {"smoke", "quick", "full", "reference"}
    figures_dir : str or Path, optional
        Directory that takes the files. None: ``figures/<profile>`` of the checkout. The runner hands over the directory of the
        run, which differs where parameters were changed.
    chapter : str, default="mkl"
        Only ids of this chapter are taken.
    parameters : dict, optional
        The notebook's parameters, kept with every figure. ``seed`` among them becomes the figure's seed.

    Attributes
    ----------
    directory : Path
        Where the files go.
    cache_dir : Path
        Where sweeps of this profile keep their points.
    saved : list of str
        Names (id and suffix) saved so far.

    Notes
    -----
    For an id and optional suffix, ``name = id`` or ``id-suffix``:

    ==========================  ===============================================================================
    ``name.png``, ``name.svg``  the figure
    ``name.csv``                the plotted numbers (``name.<key>.csv`` for each of several tables)
    ``name.md``                 the table as Markdown (tables only)
    ``name.json``               what made it: data, parameters, seeds, versions, commit, platform, seconds
    ==========================  ===============================================================================

    Every file appears whole or not at all, and the JSON file last: a figure without it is unfinished. ``seconds`` is the time
    since the previous figure was saved (since the store was made, for the first), unless given.
    """

    def __init__(self, profile, figures_dir=None, chapter="mkl", parameters=None):
        if profile not in PROFILES:
            raise ValueError(f"profile must be one of {', '.join(PROFILES)}, got {profile!r}")
        if chapter not in set(_catalogue()["chapter"]):
            raise ValueError(
                f"chapter must be one of {', '.join(dict.fromkeys(_catalogue()['chapter']))}, got {chapter!r}"
            )
        checkout = Path(cuelearn.__file__).resolve().parents[1]
        self.profile = profile
        self.chapter = chapter
        self.directory = Path(figures_dir) if figures_dir is not None else checkout / "figures" / profile
        self.cache_dir = Path(os.environ.get("CUELEARN_CACHE") or checkout / ".cache") / "sweeps" / profile
        self.parameters = {
            k: _jsonable(v) for k, v in dict(parameters or {}).items() if k not in NOT_PARAMETERS
        }
        self.saved: list[str] = []
        self._clock = time.perf_counter()

    def save_figure(
        self, fig: Figure, id, data, suffix=None, provenance=(), note="", paper=None, seeds=None, seconds=None
    ):
        """Write a figure with its numbers and what made it.

        Parameters
        ----------
        fig : matplotlib.figure.Figure
            Gets a footer that names the data and the bands; where data is not a recording, the word for it is put into the
            picture itself. The figure object is left as it was.
        id : str
            Row of ``catalogue.csv``.
        data : DataFrame or dict of DataFrame
            The plotted numbers.
        suffix : str, optional
            Tells panels or data sets of one id apart.
        provenance : sequence
            The ``provenance`` of each data set shown (or the data sets themselves). Must not be empty.
        note : str
            What a reader must know beside the picture.
        paper : dict or DataFrame, optional
            The paper's own numbers, kept beside ours.
        seeds : optional
            Seeds used, if they are more than the parameter ``seed``.
        seconds : float, optional
            What the figure took, if not the time since the previous one.

        Returns
        -------
        Path
            The PNG file.

        Raises
        ------
        ValueError
            If the id is unknown or of another chapter, or no provenance is given.
        """
        name, row, records = self._check(id, suffix, provenance)
        tables = {"": data} if isinstance(data, pd.DataFrame) else data
        if (
            not isinstance(tables, Mapping)
            or not tables
            or not all(isinstance(table, pd.DataFrame) for table in tables.values())
        ):
            raise TypeError(
                f"data must be a DataFrame or a dict of DataFrames (the plotted numbers), got {type(data).__name__}"
            )
        pictures = self._draw(fig, records)
        csv = {
            f"{name}.{_checked_name(key, 'key of data')}.csv" if key else f"{name}.csv": table
            for key, table in tables.items()
        }
        contents = {
            f"{name}.png": pictures["png"],
            f"{name}.svg": pictures["svg"],
            **{file: table.to_csv(index=False, lineterminator="\n") for file, table in csv.items()},
        }
        self._write(name, "figure", row, suffix, records, contents, note, paper, seeds, seconds)
        return self.directory / f"{name}.png"

    def save_table(
        self, df, id, suffix=None, provenance=(), note="", paper=None, seeds=None, seconds=None, digits=4
    ):
        """Write a table as CSV and Markdown, the paper's own numbers beside ours.

        Parameters
        ----------
        df : DataFrame
            Our numbers; the index is written only if it has a name.
        paper : DataFrame or dict of column -> values, optional
            The paper's numbers, in the order of the rows of `df` (a DataFrame with a named index is aligned on it). They become
            columns named ``paper: <column>``, each right after ours of the same name, or at the end.
        digits : int
            Significant digits in the Markdown file.
        id, suffix, provenance, note, seeds, seconds
            As for `save_figure`.

        Returns
        -------
        Path
            The Markdown file.
        """
        name, row, records = self._check(id, suffix, provenance)
        table = df.copy()
        if paper is not None:
            theirs = paper if isinstance(paper, pd.DataFrame) else pd.DataFrame(paper, index=table.index)
            if theirs.index.name is not None and theirs.index.name == table.index.name:
                theirs = theirs.reindex(table.index)
            if len(theirs) != len(table):
                raise ValueError(
                    f"paper must have one value for each of the {len(table)} rows of df, got {len(theirs)}"
                )
            for column in theirs.columns:
                at = list(table.columns).index(column) + 1 if column in table.columns else len(table.columns)
                table.insert(at, f"paper: {column}", theirs[column].to_numpy())
        if table.index.name is not None:
            table = table.reset_index()
        head = f"**{row['source']}**: {row['shows']}\n\n"
        tail = f"\nData: {_data_line(records)}; the paper's: {row['papers_data']}. Profile {self.profile}.{' ' + note if note else ''}\n"
        contents = {
            f"{name}.csv": table.to_csv(index=False, lineterminator="\n"),
            f"{name}.md": head + markdown_table(table, digits) + tail,
        }
        self._write(name, "table", row, suffix, records, contents, note, paper, seeds, seconds)
        return self.directory / f"{name}.md"

    # -- inside --

    def _check(self, id, suffix, provenance):
        row = _catalogue_row(id)
        if row["chapter"] != self.chapter:
            raise ValueError(f"id {id!r} belongs to the chapter {row['chapter']}, not to {self.chapter}")
        if (
            isinstance(provenance, Mapping)
            or hasattr(provenance, "_asdict")
            or hasattr(provenance, "provenance")
        ):
            provenance = [provenance]
        records = [_as_provenance(item) for item in provenance]
        if not records:
            raise ValueError("provenance is empty: every figure and table says which data it is on")
        return (f"{id}-{_checked_name(suffix, 'suffix')}" if suffix else id), row, records

    def _draw(self, fig, records):
        """PNG and SVG bytes of the figure with its footer."""
        words = list(dict.fromkeys(filter(None, map(_made_word, records))))
        footer = f"Data: {_data_line(records)}. Profile: {self.profile}."
        bands = _band_names(fig)
        if bands:
            footer += " " + "; ".join(bands)[0].upper() + "; ".join(bands)[1:] + "."
        # Outside the canvas, which the tight bounding box then includes: nothing drawn can be covered.
        extra = [fig.text(0.0, -0.015, footer, fontsize=6, color="#555555", ha="left", va="top", wrap=False)]
        if words:
            extra.append(
                fig.text(
                    1.0,
                    1.005,
                    f"{' and '.join(words)} data",
                    fontsize=7,
                    color=RED,
                    ha="right",
                    va="bottom",
                    style="italic",
                )
            )
        pictures = {}
        engine = fig.get_layout_engine()
        try:
            # The layout moves a little with each of its runs: settle it, then hold it, so that both files show the same picture.
            for _ in range(3 if engine is not None else 0):
                fig.draw_without_rendering()
            fig.set_layout_engine("none")
            for kind, metadata in (("png", {"Software": None}), ("svg", {"Date": None})):
                buffer = io.BytesIO()
                with mpl.rc_context({"svg.hashsalt": _STYLE["svg.hashsalt"], "svg.fonttype": "path"}):
                    fig.savefig(
                        buffer,
                        format=kind,
                        metadata=metadata,
                        bbox_inches="tight",
                        pad_inches=0.06,
                        facecolor="white",
                        dpi=_STYLE["savefig.dpi"],
                    )
                pictures[kind] = buffer.getvalue()
        finally:
            fig.set_layout_engine(engine)
            for text in extra:
                text.remove()
        return pictures

    def _write(self, name, kind, row, suffix, records, contents, note, paper, seeds, seconds):
        now = time.perf_counter()
        sidecar = self.directory / f"{name}.json"
        record = {
            "id": row["id"],
            "suffix": suffix,
            "kind": kind,
            "chapter": self.chapter,
            "source": row["source"],
            "shows": row["shows"],
            "papers_data": row["papers_data"],
            "our_data": _data_line(records),
            "tier": "+".join(sorted({record["tier"] for record in records})),
            "data": _jsonable(records),
            "profile": self.profile,
            "parameters": self.parameters,
            "seeds": _jsonable(seeds if seeds is not None else self.parameters.get("seed")),
            **_surroundings(),
            "seconds": round(float(seconds) if seconds is not None else now - self._clock, 2),
            "note": note,
            "paper": _jsonable(paper.to_dict("list") if isinstance(paper, pd.DataFrame) else paper),
            "files": sorted(contents),
        }
        sidecar.unlink(
            missing_ok=True
        )  # from here on, until it is written again, the figure counts as unfinished
        for file, content in contents.items():
            atomic_write(self.directory / file, content)
        atomic_write(sidecar, json.dumps(record, indent=1, ensure_ascii=False) + "\n")
        self.saved.append(name)
        self._clock = time.perf_counter()


def saved_items(directory):
    """What is finished in `directory`: the records of all figures and tables whose files are all there, in catalogue order."""
    items = []
    for sidecar in Path(directory).glob("*.json"):
        with contextlib.suppress(OSError, ValueError):
            record = json.loads(sidecar.read_text(encoding="utf-8"))
            if isinstance(record, dict) and {"id", "files", "chapter"} <= set(record):
                if all((sidecar.parent / file).is_file() for file in record["files"]):
                    items.append({**record, "name": sidecar.stem})
    order = {figure_id: i for i, figure_id in enumerate(_catalogue().index)}
    return sorted(items, key=lambda item: (order.get(item["id"], len(order)), item["name"]))

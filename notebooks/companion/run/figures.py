"""Figures and tables: one style, and a store that keeps numbers and provenance beside every picture; words of
comparison, which a text takes from results and never has typed in.
"""

import contextlib
import io
import json
import os
import platform
import re
import subprocess
import textwrap
from functools import lru_cache
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.pyplot import close
from PIL import Image

import cuelearn
from companion import CHECKOUT
from companion.run.records import (
    NOT_PARAMETERS,
    PROFILES,
    catalogue,
    changed_parameters,
    cpu_seconds,
    near,
    results_directory,
    several,
    versions,
)
from companion.study import CONFIDENCE, Interval, interval
from cuelearn.core.storage import atomic_write

#: What the first number is to the second: below it, equal, above it.
WORDS = {
    "below": ("below", "equal to", "above"),
    "fewer": ("fewer than", "as many as", "more than"),
    "worse": ("worse than", "as well as", "better than"),
    "behind": ("behind", "tied with", "ahead of"),
    "slower": ("slower than", "as fast as", "faster than"),
    "falls": ("falls", "stays", "rises"),
}


def than(ours, theirs, words, within=0.0):
    """Of `WORDS` those for two numbers, equal where they differ by at most `within`."""
    lower, equal, higher = WORDS[words]
    if abs(ours - theirs) <= within:
        return equal
    return lower if ours < theirs else higher


def certain(differences, words, within=0.0):
    """Of `WORDS` those for the mean of paired differences; equal where its 95% interval contains 0, too."""
    mean, low, high = interval(differences)
    return than(mean if low > 0 or high < 0 else 0.0, 0.0, words, within)


def enumerated(names):
    """a, b and c."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def extremes(numbers):
    """Facts on numbers by name (Series): the least and the most, and whose they are."""
    return {
        "least": numbers.min(),
        "least_of": numbers.idxmin(),
        "most": numbers.max(),
        "most_of": numbers.idxmax(),
    }


# --- style --------------------------------------------------------------------------------------------------

# The palette of Okabe and Ito, which people with any common form of colour blindness can tell apart; without
# its yellow, too pale for a line on white, and with a grey.
COLORS = {
    "blue": "#0072B2",
    "red": "#D55E00",
    "green": "#009E73",
    "orange": "#E69F00",
    "purple": "#CC79A7",
    "sky": "#56B4E9",
    "black": "#000000",
    "grey": "#7F7F7F",
}
PALETTE = tuple(COLORS.values())
#: Darker and lighter tones, for chapters of more methods than colours.
TONES = {
    "brown": "#7A4A00",
    "violet": "#4B2E83",
    "lilac": "#A893D0",
    "olive": "#8A8500",
    "plum": "#8C3B63",
    "salmon": "#F0A58A",
}
BLUE, RED, GREEN, ORANGE, PURPLE, SKY, BLACK, GREY = PALETTE

STYLE = {
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
    mpl.rcParams.update(STYLE)


#: Method -> label, colour, marker and line style, the same in every figure. Keys are the names of the public
#: interface, and a few variants that the papers plot as methods of their own.
METHOD_STYLE = (
    pd.read_csv(Path(__file__).with_name("methods.csv"), dtype=str, keep_default_na=False, index_col="method")
    .replace({"color": COLORS | TONES})
    .to_dict("index")
)


def method_style(method, **changes):
    """Keyword arguments for ``ax.plot`` that draw `method` as everywhere else; `changes` win.

    "SILPMKL, C = 0.01" is SILPMKL with a C of its own: a dotted line without markers.
    """
    name, with_C, C = method.partition(", C = ")
    if name not in METHOD_STYLE:
        raise ValueError(f"method {method!r} has no style{near(method, METHOD_STYLE)}")
    style = METHOD_STYLE[name]
    if with_C:
        style = {**style, "label": f"{style['label']}, C = {C}", "linestyle": ":", "marker": ""}
    return {**style, **changes}


def name_of(method):
    """A method as figures name it."""
    return method_style(method)["label"]


def name_methods(names):
    """Give every method that has no style one: its name as the label, a grey of its own, a free marker."""
    for i, name in enumerate([name for name in names if name not in METHOD_STYLE]):
        color = mpl.colors.to_hex(str(0.25 + 0.12 * (i % 4)))
        style = {"label": name, "color": color, "marker": "*ph8H"[i % 5], "linestyle": (0, (1, 1))}
        METHOD_STYLE[name] = style


# --- bands --------------------------------------------------------------------------------------------------


def band(ax, x, samples, method=None, alpha=0.2, geometric=False, **style):
    """Draw the mean of repeated curves and its 95% interval as a band, which the saved figure's footer names.

    `samples` has the shape (n_repetitions, n_points); `geometric` means are for positive quantities that
    spread over orders of magnitude. Returns the `Interval` that was drawn.
    """
    style = {**(method_style(method) if method else {}), **style}
    samples = np.atleast_2d(np.asarray(samples, dtype=float))
    drawn = Interval(*np.exp(interval(np.log(samples)))) if geometric else interval(samples)
    (line,) = ax.plot(x, drawn.mean, **style)
    if len(samples) > 1:
        shade = {"color": line.get_color(), "alpha": alpha, "linewidth": 0, "zorder": line.get_zorder() - 0.1}
        ax.fill_between(x, drawn.low, drawn.high, **shade)
        mean = f"{'geometric ' if geometric else ''}mean of {len(samples)} runs"
        ax.cuelearn_band = f"{mean}, band: {CONFIDENCE:.0%} interval of the mean"
    return drawn


def stamp(ax, word):
    """Say of one panel that its data is "bundled", "simulated", "composed", or "bundled and simulated".

    For figures whose panels differ. One of which nothing is stamped gets one word for all, by its provenance.
    """
    made = {"fontsize": 6, "style": "italic", "ha": "right", "va": "bottom", "transform": ax.transAxes}
    ax.cuelearn_stamp = ax.text(1.0, 1.005, word, color="#555555" if word == "bundled" else RED, **made)


# --- tables as text -----------------------------------------------------------------------------------------


def _cell(value, digits):
    if isinstance(value, (bool, np.bool_)):
        return "yes" if value else "no"
    if pd.isna(value):
        return ""
    if isinstance(value, (float, np.floating)):
        return f"{value:.{digits}g}"
    return str(value).replace("|", "\\|").replace("\n", " ")


def markdown_table(rows, digits=4):
    """A DataFrame as Markdown, without its index; floats with `digits` significant digits, gaps empty."""
    ends = ["---:" if dtype.kind in "iuf" else "---" for dtype in rows.dtypes]
    lines = [f"| {' | '.join(map(str, rows.columns))} |", f"|{'|'.join(ends)}|"]
    for row in rows.itertuples(index=False, name=None):
        lines.append(f"| {' | '.join(_cell(value, digits) for value in row)} |")
    return "\n".join(lines) + "\n"


# --- provenance ---------------------------------------------------------------------------------------------

TIERS = ("bundled", "generated", "original")
#: Words for generated data; "composed" is made of real pictures.
MADE = ("simulated", "composed")
#: A picture with more colours is a photograph.
PHOTOGRAPH = 30_000
#: Width in inches of a figure for a narrow screen, most panels of one, letters of long names (legend, axis).
NARROW, MOST_STACKED, LONG_NAME, LONG_TICK = 3.6, 9, 26, 18
#: Of saved pictures, and what a browser takes for an inch.
DPI, CSS_DPI = 150, 96


def _records(provenance):
    """The provenance of one or several data sets as dicts with at least name and tier."""
    items = [item._asdict() if hasattr(item, "_asdict") else item for item in several(provenance)]
    if not items:
        raise ValueError("provenance is empty: every figure and table says which data it is on")
    for item in items:
        if not isinstance(item, dict) or not item.get("name") or item.get("tier") not in TIERS:
            tiers = ", ".join(TIERS)
            raise ValueError(f"a provenance record needs a name and a tier out of {tiers}, got {item!r}")
    return [{key: value for key, value in item.items() if value is not None} for item in items]


def _made_word(record):
    """How data that is not a recording is called wherever it is shown; empty for real data."""
    if record["tier"] != "generated":
        return ""
    return next((record[key] for key in ("word", "kind") if record.get(key) in MADE), MADE[0])


def _data_line(records):
    """The names of data sets, each with its word or tier."""
    words = [_made_word(record) or record["tier"] for record in records]
    names = [record["name"] for record in records]
    pairs = zip(names, words, strict=True)
    return ", ".join(dict.fromkeys(name if word in name else f"{name} ({word})" for name, word in pairs))


@lru_cache(maxsize=1)
def _surroundings():
    """Versions, platform and commit: the same for all figures of a process."""

    # GIT_DIR and the like would name another repository
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}

    def git(*arguments):
        command = ["git", "-C", str(CHECKOUT), *arguments]
        options = {"capture_output": True, "text": True, "timeout": 10, "check": True}
        return subprocess.run(command, env=environment, **options).stdout.strip()

    commit = None
    if (CHECKOUT / ".git").exists():
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            changed = git("status", "--porcelain", "-uno", "--", "cuelearn", "notebooks", "data")
            commit = git("rev-parse", "HEAD") + (" with changes" if changed else "")
    return {
        "versions": {"cuelearn": cuelearn.__version__, **versions()},
        "platform": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "commit": commit,
    }


def _plain(value):
    """For JSON: NumPy's and pandas' numbers and arrays; anything else by its name."""
    if isinstance(value, pd.DataFrame):
        return value.astype(object).where(value.notna(), None).to_dict("list")  # JSON has no NaN
    return value.tolist() if hasattr(value, "tolist") else str(value)


def _checked(name, what):
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._]*(-[A-Za-z0-9._]+)*", name):
        raise ValueError(f"{what} must be made of letters, digits, '.', '_' and '-', got {name!r}")
    return name


def compressed(png):
    """A picture in a third of the bytes: drawings with a palette, photographs packed better."""
    picture = Image.open(io.BytesIO(png)).convert("RGB")
    if picture.getcolors(PHOTOGRAPH):
        # colours of large areas, such as grey bands, exactly: without kmeans they may become pink or green
        picture = picture.quantize(256, method=Image.Quantize.MAXCOVERAGE, kmeans=1)
    buffer = io.BytesIO()
    picture.save(buffer, "PNG", optimize=True)
    return min(buffer.getvalue(), png, key=len)


def stacked(fig):
    """Put the panels of a figure below each other, for a narrow screen; returns whether that was done.

    It is for four to `MOST_STACKED` panels, or three side by side.
    """
    panels = [ax for ax in fig.axes if ax.get_subplotspec() is not None]
    grids = {ax.get_gridspec() for ax in panels}
    if len(grids) != 1 or len(panels) > MOST_STACKED:
        return False
    n_rows, n_columns = grids.pop().get_geometry()
    if n_columns == 1 or (len(panels) <= 3 and n_columns < 3):
        return False
    width, height = fig.get_size_inches()
    panel_height = min(0.8 * NARROW, height / n_rows * NARROW / (width / n_columns))
    places = [ax.get_subplotspec() for ax in panels]
    for ax, place in zip(panels, places, strict=True):
        row = [a for a, other in zip(panels, places, strict=True) if other.rowspan == place.rowspan]
        column = [a for a, other in zip(panels, places, strict=True) if other.colspan == place.colspan]
        ax.set_title(ax.get_title() or column[0].get_title())
        ax.set_ylabel(ax.get_ylabel() or row[0].get_ylabel())
        ax.set_xlabel(ax.get_xlabel() or column[-1].get_xlabel())
        _name_ticks(ax, row[0])
        ax.tick_params(labelleft=row[0].yaxis.get_tick_params().get("labelleft", True))
        ax.tick_params(labelbottom=column[-1].xaxis.get_tick_params().get("labelbottom", True))
    for ax, place in zip(panels, fig.add_gridspec(len(panels), 1), strict=True):
        ax.set_subplotspec(place)
    title = textwrap.fill(fig.get_suptitle(), 40)
    if title:
        fig.suptitle("" if fig.legends else title)
    for legend in list(fig.legends):
        names = [text.get_text() for text in legend.get_texts()]
        n_columns = 2 if max(map(len, names)) <= LONG_NAME else 1
        place = {"loc": "outside upper center", "ncols": n_columns, "title": title}
        fig.legend(legend.legend_handles, names, **place)
        legend.remove()
    fig.set_size_inches(NARROW, panel_height * len(panels))
    return True


def _name_ticks(ax, first):
    """Give a panel the names on the first one's y axis if it has none of its own; long ones smaller."""
    own, names = ([label.get_text() for label in panel.get_yticklabels()] for panel in (ax, first))
    if not any(own) and isinstance(ax.yaxis.get_major_locator(), mpl.ticker.FixedLocator):
        ax.set_yticks(first.get_yticks(), names)
    if max(map(len, own + names), default=0) > LONG_TICK:
        ax.tick_params(axis="y", labelsize=7)


def css_width(png):
    """Width of a saved picture in a browser, in CSS pixels."""
    return Image.open(io.BytesIO(png)).width * CSS_DPI // DPI


def _with_paper(table, paper):
    """A table with the paper's numbers beside ours, its index as a column if it has a name."""
    table = table.copy()
    if paper is not None:
        printed = paper if isinstance(paper, pd.DataFrame) else pd.DataFrame(paper, index=table.index)
        if printed.index.name is not None and printed.index.name == table.index.name:
            printed = printed.reindex(table.index)
        if len(printed) != len(table):
            message = f"paper must have one value for each of the {len(table)} rows of df"
            raise ValueError(f"{message}, got {len(printed)}")
        for column in printed.columns:
            at = list(table.columns).index(column) + 1 if column in table.columns else len(table.columns)
            table.insert(at, f"paper: {column}", printed[column].to_numpy())
    return table if table.index.name is None else table.reset_index()


# --- the store ----------------------------------------------------------------------------------------------


class FigureStore:
    """Writes the figures and tables of one chapter, at one profile, and keeps numbers and provenance.

    For a row of ``catalogue.csv``, ``name = id`` or ``id-suffix``: ``name.png`` (the figure),
    ``name.narrow.png`` (its panels below each other, where they are many), ``name.csv`` (the plotted numbers,
    ``name.<key>.csv`` for each of several tables; panels of one id that show the same numbers share one
    file), ``name.md`` (a table as Markdown) and, last, ``name.json`` (what made it): a figure without it is
    unfinished.

    They go to `directory`, by default ``figures/<profile>`` beside the notebooks' folder, or a folder of its
    own in there if `parameters` are not the published ones. `made_from` is a fingerprint that the records
    hold. Figures are drawn as SVG too with `svg`, by default if ``CUELEARN_SVG`` is set.
    """

    def __init__(self, profile, figures_dir=None, chapter="mkl", parameters=None, svg=None, made_from=None):
        if profile not in PROFILES:
            raise ValueError(f"profile must be one of {', '.join(PROFILES)}, got {profile!r}")
        self.profile = profile
        self.chapter = chapter
        parameters = dict(parameters or {})
        changed = changed_parameters(chapter, parameters)
        self.directory = Path(figures_dir or results_directory(CHECKOUT / "figures", profile, changed))
        self.cache_dir = Path(os.environ.get("CUELEARN_CACHE") or CHECKOUT / ".cache") / "sweeps" / profile
        self.parameters = {k: v for k, v in parameters.items() if k not in NOT_PARAMETERS}
        self.svg = bool(os.environ.get("CUELEARN_SVG")) if svg is None else svg
        self.made_from = made_from
        self._tables = {}  # (id, text) -> the file that holds these numbers
        self._held = None  # records to be written together: file -> text
        self._clock = cpu_seconds()

    @contextlib.contextmanager
    def all_or_none(self):
        """What is saved in this block counts as finished at its end: its records are written then."""
        self._held = {}
        self._clock = cpu_seconds()
        try:
            yield
            for sidecar, text in self._held.items():
                atomic_write(sidecar, text)
        finally:
            self._held = None

    def save_figure(self, fig, id, data, suffix=None, provenance=(), **about):
        """Write a figure with its numbers and what made it; returns the PNG file.

        It gets a footer that names data and bands, and the word for data that is not a recording. `data` are
        the plotted numbers (DataFrame or dict of these), `provenance` the data sets shown or their records;
        `suffix` tells panels of one id apart. `about` may have a ``note`` (what a reader must know beside the
        picture), ``paper`` (the paper's own numbers), ``seeds`` (if they are more than the parameter
        ``seed``) and ``shows`` (where the catalogue's words tell of another panel).
        """
        name, row, records = self._check(id, suffix, provenance)
        tables = {"": data} if isinstance(data, pd.DataFrame) else data
        if not isinstance(tables, dict) or not all(isinstance(t, pd.DataFrame) for t in tables.values()):
            raise TypeError(f"data must hold the plotted numbers, DataFrame or dict, got {type(data)}")
        contents = self._draw(fig, name, records)
        if stacked(fig):
            contents |= self._draw(fig, f"{name}.narrow", records)
        for key, table in tables.items():
            text = table.to_csv(index=False, lineterminator="\n")
            file = f"{name}.{_checked(key, 'key of data')}.csv" if key else f"{name}.csv"
            contents[self._tables.setdefault((id, text), file)] = text
        self._write(name, "figure", row, suffix, records, contents, **about)
        close(fig)
        return self.directory / f"{name}.png"

    def save_table(self, df, id, suffix=None, provenance=(), *, paper=None, digits=4, note="", **about):
        """Write a table as CSV and Markdown, the paper's own numbers beside ours; returns the Markdown file.

        The index of `df` is written only if it has a name. Of a dict ``""`` is the table, the others are
        written beside it. `paper` (DataFrame or dict of columns, in the order of the rows; aligned where it
        has an index of the same name) becomes columns ``paper: <column>`` right after ours of the same name,
        or at the end. The rest is as of `save_figure`.
        """
        name, row, records = self._check(id, suffix, provenance)
        tables = {"": df} if isinstance(df, pd.DataFrame) else dict(df)
        tables[""] = table = _with_paper(tables[""], paper)
        contents = {}
        for key, more in tables.items():
            file = f"{name}.{_checked(key, 'key of df')}.csv" if key else f"{name}.csv"
            contents[file] = more.to_csv(index=False, lineterminator="\n")
        data = f"Data: {_data_line(records)}; the paper's: {row['papers_data']}. Profile {self.profile}."
        head = f"**{row['source']}**: {about.get('shows') or row['shows']}\n"
        text = f"{head}\n{markdown_table(table, digits)}\n{f'{data} {note}'.strip()}\n"
        contents[f"{name}.md"] = text
        self._write(name, "table", row, suffix, records, contents, note=note, paper=paper, **about)
        return self.directory / f"{name}.md"

    def _check(self, id, suffix, provenance):
        rows = catalogue()
        if id not in rows.index:
            raise ValueError(f"id {id!r} is not in catalogue.csv{near(id, rows.index)}")
        row = rows.loc[id]
        if row["chapter"] != self.chapter:
            raise ValueError(f"id {id!r} belongs to the chapter {row['chapter']}, not to {self.chapter}")
        return f"{id}-{_checked(suffix, 'suffix')}" if suffix else id, row, _records(provenance)

    def _draw(self, fig, name, records):
        """File -> bytes of the figure with its footer; the figure itself is left as it was."""
        footer = f"Data: {_data_line(records)}. Profile: {self.profile}."
        bands = "; ".join(dict.fromkeys(ax.cuelearn_band for ax in fig.axes if hasattr(ax, "cuelearn_band")))
        if bands:
            footer += f" {bands[0].upper()}{bands[1:]}."
        footer = textwrap.fill(footer, int(21 * fig.get_figwidth()))
        # Outside the canvas, which the tight bounding box then includes: nothing drawn can be covered.
        extra = [fig.text(0.0, -0.015, footer, fontsize=6, color="#555555", ha="left", va="top", wrap=False)]
        kinds = list(dict.fromkeys(filter(None, map(_made_word, records))))
        if kinds and not any(hasattr(ax, "cuelearn_stamp") for ax in fig.axes):
            made = {"fontsize": 7, "color": RED, "ha": "right", "va": "bottom", "style": "italic"}
            extra.append(fig.text(1.0, 1.005, f"{' and '.join(kinds)} data", **made))
        options = {"bbox_inches": "tight", "pad_inches": 0.06, "facecolor": "white", "dpi": DPI}
        metadata = {"png": {"Software": None}, "svg": {"Date": None}}
        engine = fig.get_layout_engine()
        contents = {}
        try:
            # The layout moves a little with each of its runs: settle it, then hold it, so that all files show
            # the same picture.
            for _ in range(3 if engine is not None else 0):
                engine.execute(fig)
            fig.set_layout_engine("none")
            with mpl.rc_context({key: STYLE[key] for key in ("svg.hashsalt", "svg.fonttype")}):
                for kind in ("png", "svg") if self.svg else ("png",):
                    buffer = io.BytesIO()
                    fig.savefig(buffer, format=kind, metadata=metadata[kind], **options)
                    contents[f"{name}.{kind}"] = buffer.getvalue()
        finally:
            fig.set_layout_engine(engine)
            for text in extra:
                text.remove()
        contents[f"{name}.png"] = compressed(contents[f"{name}.png"])
        return contents

    def _write(self, name, kind, row, suffix, records, contents, note="", paper=None, seeds=None, shows=None):
        sidecar = self.directory / f"{name}.json"
        record = {
            "id": row["id"],
            "suffix": suffix,
            "kind": kind,
            "chapter": self.chapter,
            "source": row["source"],
            "shows": shows or row["shows"],
            "papers_data": row["papers_data"],
            "our_data": _data_line(records),
            "tier": "+".join(sorted({record["tier"] for record in records})),
            "data": records,
            "profile": self.profile,
            "parameters": self.parameters,
            "made_from": self.made_from or os.environ.get("CUELEARN_MADE_FROM"),
            "seeds": self.parameters.get("seed") if seeds is None else seeds,
            **_surroundings(),
            "seconds": round(cpu_seconds() - self._clock, 2),  # of the processor, since the previous figure
            "note": note,
            "paper": paper,
            "files": sorted(contents),
        }
        sidecar.unlink(missing_ok=True)  # until it is written again, the figure counts as unfinished
        for file, content in contents.items():
            atomic_write(self.directory / file, content)
        text = json.dumps(record, indent=1, ensure_ascii=False, default=_plain) + "\n"
        if self._held is None:
            atomic_write(sidecar, text)
        else:
            self._held[sidecar] = text
        self._clock = cpu_seconds()

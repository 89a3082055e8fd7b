"""A figure is a function: what a chapter shows, each by its name.

A module of a chapter registers its figures and tables::

    @figure("oks-thm-3", claims="oks-3")
    def mistakes_and_their_bound(run):
        \"\"\"Do the mistakes of Algorithm 2 stay below the bound of theorem 3?\"\"\"
        table = run.sweep("theorem-3").frame(mistakes_at, points, data=pendigits)
        run.save_figure(draw.mistake_bound(table), "oks-thm-3", table, provenance=[pendigits], note=note)


    @mistakes_and_their_bound.facts
    def _(results):
        table = results.table()
        return {"share": (table["high"] / table["bound"]).max()}


    mistakes_and_their_bound.title("Algorithm 2 makes at most {share:.0%} of the mistakes that it may make.")
    mistakes_and_their_bound.see("The bound is far from tight: ...")

A notebook opens its chapter and shows a figure in one line: ``show("oks-thm-3")``. Its facts, numbers and
words that its title and the text of "what to see" refer to, are computed from the saved tables: the same
whether it was made now or is the committed one.
"""

import contextlib
import inspect
import os
import re
from importlib import import_module
from string import Formatter

from companion.run.claims import IN_SHORT, Results, files_of, judge, number_text
from companion.run.figures import FigureStore, css_width, name_methods, use_style
from companion.run.records import (
    DEFAULTS,
    catalogue,
    changed_parameters,
    files_of_items,
    longest_start,
    made_from,
    near,
    read_verdicts,
    row_of,
    saved_items,
    short,
)
from companion.run.sweep import Sweep
from companion.run.verdicts import ClaimBook

#: Rows of a table that a notebook shows; longer ones are folded.
LONG_TABLE = 14
#: Notes of up to so many characters are part of the caption; longer ones are folded.
SHORT_NOTE = 240

_ENTRIES = {}


class Entry:
    """One figure or table: how it is made, what to see in it, the claims that it decides.

    `name` is a row of the catalogue, or a row with a suffix for a panel that is shown at a place of its own.
    """

    def __init__(self, name, make, claims):
        self.name = name
        self.make = make
        self.claims = claims
        self.text = ""
        self.heading = ""
        self.numbers = None

    @property
    def question(self):
        """The first paragraph of the function's docstring."""
        return " ".join(inspect.getdoc(self.make).split("\n\n")[0].split())

    def facts(self, function):
        """Decorator: `function` of the `Results` gives, by name, the numbers and words of the texts."""
        self.numbers = function
        return function

    def title(self, text):
        """What the figure shows in one sentence, with facts as fields: "{share:.0%} of the mistakes"."""
        self.heading = text
        return text

    def see(self, text):
        """The text of "what to see", with facts as fields."""
        self.text = text
        return text

    def written(self, text, results):
        """A text with the facts of some results."""
        if not text:
            return ""
        facts = {}
        if self.numbers is not None:
            facts = self.numbers(results)
        for _, field, _, _ in Formatter().parse(text):
            name = re.split(r"[.\[]", field or "")[0]
            if name and name not in facts:
                raise ValueError(f"the text of {self.name} names {name!r}, which is not among its facts")
        return text.format_map(facts).strip()

    def source(self):
        """The protocol: the source of the function, and of its facts."""
        functions = filter(None, [self.make, self.numbers])
        return "\n\n".join(inspect.getsource(function).rstrip() for function in functions)


def figure(name, claims=()):
    """Decorator: this function of a `Chapter` makes the figure or table `name` and decides `claims`."""

    def register(make):
        entry = Entry(name, make, [claims] if isinstance(claims, str) else list(claims))
        _ENTRIES[name] = entry
        return entry

    return register


def entries(chapter):
    """The figures of a chapter by name, in the order of its module ``companion.<chapter>.figures``.

    Of the module's `METHODS`, if it has any, those that were added get a style of their own.
    """
    module = import_module(f"companion.{chapter}.figures")
    name_methods(getattr(module, "METHODS", ()))
    rows = catalogue(chapter).index
    return {name: entry for name, entry in _ENTRIES.items() if longest_start(name, rows)}


def title_of(chapter, name, directory):
    """What a figure or table in `directory` shows, in one sentence from its numbers; empty where none is."""
    known = entries(chapter)
    entry = known.get(longest_start(name, known))
    if entry is None:
        return ""
    try:
        return " ".join(entry.written(entry.heading, Results(directory, entry.name)).split())
    except (FileNotFoundError, KeyError):  # a table or a column that it is computed from was not made
        return ""


class Chapter:
    """One run of a chapter: its parameters, its sizes, where its results go, and its figures by name.

    `profile` is smoke, quick, full or reference; with "reference" nothing is computed: the results are those
    committed. `figures_dir` is as in `FigureStore`, `n_jobs` are the processes of a sweep; `parameters` are
    those of the notebook, what is not given is as published.
    """

    def __init__(self, name, profile="quick", figures_dir=None, n_jobs=1, **parameters):
        published = DEFAULTS[name]
        unknown = [key for key in parameters if key not in published]
        if unknown:
            raise ValueError(f"chapter {name} has no parameter {unknown[0]!r}{near(unknown[0], published)}")
        use_style()
        self.name = name
        self.profile = profile
        self.reference = profile == "reference"
        self.n_jobs = n_jobs
        parameters = published | parameters
        vars(self).update(parameters)
        changed = changed_parameters(name, parameters)
        svg = bool(os.environ.get("CUELEARN_SVG"))
        self.identity = short(made_from(profile, changed, self.data_tier, svg))
        self.store = FigureStore(profile, figures_dir, name, parameters, svg=svg, made_from=self.identity)
        self.save_figure = self.store.save_figure
        self.save_table = self.store.save_table
        self.entries = entries(name)
        settings = import_module(f"companion.{name}").settings
        self.size = settings("quick" if self.reference else profile)
        self.book = None if self.reference else ClaimBook(self.store)

    def sweep(self, name, n_jobs=None):
        """A `Sweep` of this chapter, in `n_jobs` processes; by default as many as the run has."""
        return Sweep(self.store.cache_dir, f"{self.name}-{name}", n_jobs or self.n_jobs, alone=n_jobs == 1)

    def seeds(self, sizes):
        """The seeds of an experiment of these sizes: the parameter `seed` and those that follow."""
        return list(range(self.seed, self.seed + sizes["seeds"]))

    def table(self, name):
        """The numbers of a figure or table as saved (DataFrame)."""
        return self._results(name).table(name)

    def _results(self, name):
        return Results(self.store.directory, name)

    def _entry(self, name):
        if name not in self.entries:
            raise ValueError(f"chapter {self.name} has no figure {name!r}{near(name, self.entries)}")
        return self.entries[name]

    def _items(self, name):
        """Records of what is saved of an entry, the one of its own name first."""
        items = saved_items(self.store.directory)
        own = [item for item in items if longest_start(item["name"], self.entries) == name]
        return sorted(own, key=lambda item: item["name"])

    def file(self, name):
        """The saved picture or table of an entry, of several the first; None if this data has none."""
        for item in self._items(name):
            end = ".png" if item["kind"] == "figure" else ".md"
            return self.store.directory / f"{item['name']}{end}"
        return None

    def is_current(self, name):
        """Whether an entry was made with these parameters, this code and this data."""
        items = self._items(name)
        return bool(items) and all(item["made_from"] == self.identity for item in items)

    def make(self, name):
        """Make an entry unless it is current. A reference run makes nothing."""
        entry = self._entry(name)
        if self.reference:
            return
        if self.is_current(name):
            for item in self._items(name):  # it belongs to this run, too
                os.utime(self.store.directory / f"{item['name']}.json")
        else:
            with self.store.all_or_none():
                entry.make(self)

    def verdicts(self, *claims):
        """The verdicts on some claims, from the saved tables; a run enters them in its ``claims.csv``."""
        if self.reference:
            return [judge(claim, self.store.directory) for claim in claims]
        return self.book.judge(*claims)

    def judge_what_is_current(self):
        """Judge the claims that rest on current figures alone; the others stay as they are."""
        items = saved_items(self.store.directory)
        current = files_of_items(item for item in items if item["made_from"] == self.identity)
        verdicts = []
        for claim in (claim for entry in self.entries.values() for claim in entry.claims):
            with contextlib.suppress(FileNotFoundError):
                if files_of(claim, self.store.directory) <= current:
                    verdicts.append(judge(claim, self.store.directory))
        self.book.record(*verdicts)

    def summary(self):
        """The chapter's claims with their verdicts (DataFrame), judged by what this run has made."""
        if self.book:
            self.judge_what_is_current()
        table = read_verdicts(self.store.directory).set_index("id")
        table = table[(table["chapter"] == self.name) & (table["verdict"] != "not judged")]
        table["number"] = [number_text(row, " ({} to {})") for row in table.itertuples()]
        return table[["verdict", "number", "wanted", "sets", "n", "unit"]].replace("none", "")

    def title(self, name):
        """What a figure or table shows, in one sentence from its numbers; empty where it is not made."""
        return title_of(self.name, name, self.store.directory) if self._items(name) else ""

    # --- in a notebook

    def show(self, name):
        """Show a figure or table, made if it is not current: title, pictures, question, text, verdicts."""
        from IPython.display import Image, Markdown, display

        self.make(name)
        title = self.title(name)
        if title:
            display(Markdown(f"**{title}**"))
        for item in self._items(name):
            metadata = {"cuelearn": item["name"]}
            if item["kind"] == "figure":
                png = (self.store.directory / f"{item['name']}.png").read_bytes()
                display(Image(png, width=css_width(png)), metadata=metadata)
            else:
                display(Markdown(self._table_text(item["name"])), metadata=metadata)
        display(Markdown(self.text(name)))
        for claim in self._entry(name).claims:
            with contextlib.suppress(FileNotFoundError):  # judged by figures that follow, too: see `summary`
                display(*self.verdicts(claim))

    def committed(self, *claims):
        """Show the verdicts on some claims from the committed results, whatever this run has made so far."""
        from IPython.display import Markdown, display

        display(Markdown(IN_SHORT), *map(judge, claims))

    def text(self, name):
        """The question of an entry, how it was made and what to see, as Markdown."""
        entry = self._entry(name)
        items = self._items(name)
        source = catalogue().loc[row_of(name), "source"]
        data = ", ".join(dict.fromkeys(item["our_data"] for item in items))
        runs = max((len(item["seeds"]) for item in items if isinstance(item["seeds"], list)), default=1)
        made = f" Data: {data}{f'; {runs} runs' if runs > 1 else ''}." if data else ""
        notes = list(dict.fromkeys(item["note"] for item in items if item["note"]))
        short = [note for note in notes if len(note) <= SHORT_NOTE]
        caption = "".join(f" {note[0].upper()}{note[1:].rstrip('.')}." for note in short)
        parts = [f"**{source[0].upper()}{source[1:]}.** *{entry.question}*{made}{caption}"]
        if not items:
            parts.append(f"Not among the results in `{self.store.directory.name}`.")
        elif entry.text:
            parts.append(f"**What to see.** {entry.written(entry.text, self._results(name)).strip()}")
        long = [note for note in notes if note not in short]
        if long:
            parts.append("<details><summary>How it was made</summary>")
            parts += [*long, "</details>"]
        return "\n\n".join(parts)

    def _table_text(self, name):
        """A saved table as Markdown; a long one is folded."""
        text = (self.store.directory / f"{name}.md").read_text(encoding="utf-8")
        n_rows = sum(line.startswith("|") for line in text.split("\n")) - 2
        if n_rows <= LONG_TABLE:
            return text
        return f"<details><summary>{name}: {n_rows} rows</summary>\n\n{text}\n</details>"

    def source(self, name):
        """Show the protocol of a figure or table: the function that makes it, and its text."""
        from IPython.display import Code, display

        display(Code(self._entry(name).source(), language="python"))

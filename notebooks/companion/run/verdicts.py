"""The verdicts of a run as files: what is judged is entered, listed beside the figures, and mapped.

``python -m companion.run.verdicts BEFORE AFTER`` compares those of two folders of results, claim by claim.
"""

import contextlib
import os
import sys
from pathlib import Path

import pandas as pd

from companion import CHECKOUT
from companion.run.claims import (
    VERDICTS,
    Verdict,
    claims,
    first_in_bold,
    judge,
    judge_of,
    learnt,
    number_text,
    of_units,
    part_by_part,
    with_labels,
)
from companion.run.figures import markdown_table
from companion.run.records import COLUMNS, PARTS, near, read_parts, read_verdicts
from companion.run.sweep import file_lock
from cuelearn.core.storage import atomic_write

#: How to read a verdict; a notebook that was downloaded lies without it.
RULES = CHECKOUT / "notebooks/book/_verdicts.md"


class ClaimBook:
    """The verdicts of a chapter, written beside its figures after every entry; in a new book none is judged.

    Directory, chapter and profile are those of the `store`, a `FigureStore`; rows of other chapters stay.
    """

    def __init__(self, store):
        self.store = store
        names = claims(store.chapter).index
        self.verdicts = {name: Verdict(name, "not judged", profile=store.profile) for name in names}
        self._write()

    def judge(self, *names):
        """Judge these claims by the tables saved so far, and record what was found."""
        return self.record(*(judge(name, self.store.directory) for name in names))

    def record(self, *verdicts):
        """Enter verdicts and write the files; ValueError if a claim is unknown or of another chapter."""
        for verdict in verdicts:
            if verdict.claim not in self.verdicts:
                message = (
                    f"claim {verdict.claim!r} is not among the claims of the chapter {self.store.chapter}"
                )
                raise ValueError(f"{message}{near(verdict.claim, self.verdicts)}")
        before = dict(self.verdicts)
        self.verdicts |= {verdict.claim: verdict for verdict in verdicts}
        if self.verdicts != before:
            self._write()
        return verdicts

    def _write(self):
        rows = []
        parts = []
        for row in claims(self.store.chapter).itertuples():
            verdict = self.verdicts[row.id]
            rows.append({**row._asdict(), **_fields(verdict), "claim": row.claim})
            parts += verdict.part_rows()
        verdicts, parts = pd.DataFrame(rows, columns=COLUMNS), pd.DataFrame(parts, columns=PARTS)
        with file_lock(Path(self.store.directory) / ".claims.lock"):
            write_verdicts(self.store.directory, verdicts, parts)


def _fields(verdict):
    """The fields of a verdict; `n` as text, since a gap would make floats of the whole column."""
    count = "" if verdict.n is None else str(verdict.n)
    said = {"sets": verdict.sets(), "holding": verdict.holding(), "learnt": learnt(verdict)}
    return verdict._asdict() | {"n": count, **said}


def judge_again(directory):
    """Write the verdicts in `directory` anew, from the tables there, with those on original data. One whose
    tables are not there stays."""
    written = read_verdicts(directory)
    verdicts = []
    parts = []
    for row in claims().loc[written["id"]].itertuples():
        with contextlib.suppress(FileNotFoundError):
            verdict = judge(row.id, directory)
            verdicts.append({**row._asdict(), **_fields(verdict), "claim": row.claim})
            parts += verdict.part_rows()
    verdicts, parts = pd.DataFrame(verdicts, columns=COLUMNS), pd.DataFrame(parts, columns=PARTS)
    kept = written[~written["id"].isin(verdicts["id"])]
    old_parts = read_parts(directory)
    old_parts = old_parts[old_parts["claim"].isin(kept["id"])]
    write_verdicts(directory, pd.concat([kept.astype(object), verdicts]), pd.concat([old_parts, parts]))


def write_verdicts(directory, verdicts, parts, chapters=()):
    """Write verdicts and their parts (DataFrames) to ``claims.csv``, ``claims-parts.csv``, ``claims.md``.

    They replace all that is there of their chapters, and of `chapters`, which may have none left; those of
    other chapters stay.
    """
    directory = Path(directory)
    others = read_verdicts(directory)
    others = others[~others["chapter"].isin({*verdicts["chapter"], *chapters})]
    other_parts = read_parts(directory)
    other_parts = other_parts[other_parts["claim"].isin(others["id"])]
    parts = _in_order("claim", other_parts, parts)
    atomic_write(directory / "claims-parts.csv", parts.to_csv(index=False, lineterminator="\n"))
    verdicts = _in_order("id", others, verdicts)
    atomic_write(directory / "claims.csv", verdicts.to_csv(index=False, lineterminator="\n"))
    rules = [RULES.read_text(encoding="utf-8")] if RULES.is_file() else []
    listed = [*rules, verdict_table(verdicts, directory, directory), every_part(verdicts, parts)]
    atomic_write(directory / "claims.md", "\n".join(["# Claims and verdicts\n", *listed]))


def _in_order(column, *tables):
    """The rows of some tables in the order of ``claims.csv``; objects, so that no number is rewritten."""
    rows = pd.concat([table.astype(object) for table in tables], ignore_index=True)
    return rows.sort_values(column, key=claims().index.get_indexer, kind="stable")


def count_of(verdicts):
    """How many of some verdicts (Series) hold, fail and so on, in words."""
    numbers = verdicts.value_counts()
    return "; ".join(f"{numbers[verdict]} {verdict}" for verdict in VERDICTS if verdict in numbers) + "."


def verdict_map(table, links, tile=str, claim="**{0.id}** {0.claim} ({0.source})".format):
    """Verdicts as Markdown, one row a claim: what it says, the verdict and number of its headline, how that
    is on each data set, how many parts hold, what one learns, where to look.

    `links` gives the links of a row, `tile` how a verdict is shown.
    """
    rows = []
    for row in table.itertuples():
        number = number_text(row, " ({} to {})")
        rows.append(
            {
                "claim": claim(row),
                "verdict": tile(row.verdict),
                "headline (95% interval)": f"{number}: {with_labels(row.measure)}" if number else "",
                "wanted": row.wanted,
                "on each data set": first_in_bold(row.sets, row.id),
                "parts that hold": row.holding,
                "what one learns": row.learnt,
                "see": ", ".join(links(row)),
            }
        )
    return markdown_table(pd.DataFrame(rows))


def verdict_table(table, directory, home):
    """The map of the verdicts of `directory`, with links from `home` to figures and to what judges."""

    def links(row):
        for file in (f"{row.figure}.png", f"{row.figure}.md"):
            if (directory / file).is_file():
                yield f"[{row.figure}]({_link(directory / file, home)})"
        judged_by = judge_of(row.id)
        if judged_by:
            yield f"[{row.id.replace('-', '_')}]({_link(judged_by.file, home)})"

    return f"{count_of(table['verdict'])}\n\n" + verdict_map(table, links)


def _link(file, home):
    return os.path.relpath(file, home).replace(os.sep, "/")


def every_part(verdicts, parts):
    """Of every claim that was judged: verdict, units, data and what its parts say, as Markdown."""
    lines = []
    parts = dict(tuple(parts.groupby("claim")))
    for row in verdicts[verdicts["verdict"] != "not judged"].itertuples():
        units = f"The headline is of {of_units(row.n, row.unit)}. " if row.n else ""
        lines += [f"## {row.id}: {row.verdict}", "", f"{units}Data: {row.data}. Profile {row.profile}.", ""]
        lines += [part_by_part(parts[row.id].to_dict("records"), row.text), ""]
    return "\n".join(lines)


def before_and_after(before, after):
    """The verdicts in two folders of results beside each other, as Markdown: old results, new results."""
    tables = []
    for directory in (before, after):
        table = read_verdicts(directory).reindex(
            columns=["id", "verdict", "number", "low", "high", "measure", "sets", "learnt"]
        )
        table["number"] = [number_text(row, " ({} to {})") for row in table.itertuples()]
        shown = table.astype(object).fillna("").set_index("id")
        tables.append(shown[["verdict", "number", "sets", "learnt"]])
    both = tables[1].join(tables[0][["verdict", "number"]].add_suffix(" before"), how="outer").fillna("")
    both = both.reset_index().sort_values("id", key=claims().index.get_indexer)
    order = ["id", "verdict before", "verdict", "number before", "number", "sets", "learnt"]
    return markdown_table(both[order])


if __name__ == "__main__":
    print(before_and_after(*sys.argv[1:]))

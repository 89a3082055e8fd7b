"""The verdicts of a run as files: what is judged is entered, listed beside the figures, and mapped.

``python -m companion.run.verdicts BEFORE AFTER`` compares those of two folders of results, claim by claim.
"""

import os
import sys
from pathlib import Path

import pandas as pd

from companion import CHECKOUT
from companion.run.claims import (
    TIERS,
    VERDICTS,
    Verdict,
    claims,
    in_lines,
    judge,
    judge_of,
    number_text,
    of_units,
    with_labels,
)
from companion.run.figures import markdown_table
from companion.run.records import COLUMNS, PARTS, near, read_parts, read_verdicts
from companion.run.sweep import file_lock
from cuelearn.core.storage import atomic_write

#: What a row of the map has a tile for: the verdict by data, and by clock and count.
TILES = (*TIERS, "clock", "count")
#: How to read a verdict; a notebook that was downloaded lies without it.
RULES = CHECKOUT / "notebooks/book/_verdicts.md"


class ClaimBook:
    """The verdicts of a chapter, written beside its figures after every entry; a new book starts open.

    Directory, chapter and profile are those of the `store`, a `FigureStore`; rows of other chapters stay.
    """

    def __init__(self, store):
        self.store = store
        names = claims(store.chapter).index
        self.verdicts = {name: Verdict(name, "open", profile=store.profile) for name in names}
        self._write()

    def judge(self, *names):
        """Judge these claims by the tables saved so far, and record what was found."""
        return self.record(*(judge(name, self.store.directory) for name in names))

    def record(self, *verdicts):
        """Enter verdicts and write the files; ValueError if a claim is unknown or of another chapter."""
        verdicts = [verdict._replace(profile=self.store.profile) for verdict in verdicts]
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
            if verdict.verdict != "open":
                parts += part_rows(verdict)
        verdicts, parts = pd.DataFrame(rows, columns=COLUMNS), pd.DataFrame(parts, columns=PARTS)
        with file_lock(Path(self.store.directory) / ".claims.lock"):
            write_verdicts(self.store.directory, verdicts, parts)


def _fields(verdict):
    """The fields of a verdict; `n` as text, since a gap would make floats of the whole column."""
    return verdict._asdict() | {"n": "" if verdict.n is None else str(verdict.n)}


def part_rows(verdict):
    """Rows of ``claims-parts.csv`` on a verdict: a claim of one part is its own."""
    rows = []
    for says, part in verdict.parts or [("", verdict)]:
        count = dict(part.parts).get("count", Verdict(verdict.claim, ""))
        counted = {"count_number": count.number, "count_low": count.low, "count_high": count.high}
        rows.append({**_fields(part), **counted, "claim": verdict.claim, "part": says})
    return rows


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
    verdicts = with_original(_in_order("id", others, verdicts), directory)
    atomic_write(directory / "claims.csv", verdicts.to_csv(index=False, lineterminator="\n"))
    rules = [RULES.read_text(encoding="utf-8")] if RULES.is_file() else []
    listed = [*rules, verdict_table(verdicts, directory, directory), part_by_part(verdicts)]
    atomic_write(directory / "claims.md", "\n".join(["# Claims and verdicts\n", *listed]))


def _in_order(column, *tables):
    """The rows of some tables in the order of ``claims.csv``; objects, so that no number is rewritten."""
    rows = pd.concat([table.astype(object) for table in tables], ignore_index=True)
    return rows.sort_values(column, key=claims().index.get_indexer, kind="stable")


def with_original(table, directory):
    """Verdicts, with the column `original` filled from a run with ``DATA=original`` that lies in `directory`.

    It says verdict, data and profile: "fails: flowers17 (full)". The verdicts themselves stay as they are.
    """
    places = (Path(directory) / place for place in ("original", "params/data_tier=original"))
    notes = {}
    for place in places:
        parts = read_parts(place)
        data = parts[parts["tier"] == "original"].groupby("claim", sort=False)["data"].unique()
        for row in read_verdicts(place).itertuples():
            if row.original:
                names = ", ".join(data.get(row.id, [])).replace(" (original)", "")
                notes[row.id] = f"{row.original}: {names} ({row.profile})"
    own = table["original"].where(~table["original"].str.contains(": "), "")  # not of an earlier run
    return table.assign(original=[notes.get(id, old) for id, old in zip(table["id"], own, strict=True)])


def count_of(verdicts):
    """How many of some verdicts (Series) hold, fail and so on, in words."""
    numbers = verdicts.value_counts()
    return "; ".join(f"{numbers[verdict]} {verdict}" for verdict in VERDICTS if verdict in numbers) + "."


def verdict_map(table, links, tile=str, claim="**{0.id}** {0.claim} ({0.source})".format):
    """Verdicts as Markdown, one row a claim: what it says, its tiles, the number that decides, where to look.

    `links` gives the links of a row, `tile` how a verdict is shown. A claim that no data decided has its
    verdict under bundled.
    """
    rows = []
    for row in table.itertuples():
        tiles = {by: getattr(row, by) for by in TILES}
        if not any(tiles.values()):
            tiles["bundled"] = row.verdict
        number = number_text(row, " ({} to {})")
        rows.append(
            {
                "claim": claim(row),
                **{by: tile(verdict) if verdict else "" for by, verdict in tiles.items()},
                "number (95% interval)": f"{number} {with_labels(row.measure)}" if number else "",
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

    decided = table["original"] if directory.name == "original" else table["verdict"]
    return f"{count_of(decided)}\n\n" + verdict_map(table, links)


def _link(file, home):
    return os.path.relpath(file, home).replace(os.sep, "/")


def part_by_part(table):
    """Of every claim that was judged: verdict, units, data and what its parts say, as Markdown."""
    lines = []
    for row in table[table["verdict"] != "open"].itertuples():
        units = f"The number that decides is of {of_units(row.n, row.unit)}. " if row.n else ""
        data = f"Data: {row.data}. " if row.data else ""
        lines += [f"## {row.id}: {row.verdict}", "", f"{units}{data}Profile {row.profile}.", ""]
        lines += [in_lines(row.text), ""] if row.text else []
    return "\n".join(lines)


def before_and_after(before, after):
    """The verdicts in two folders of results beside each other, as Markdown: old results, new results."""
    columns = ["verdict", *TILES, "number"]
    tables = []
    for directory in (before, after):
        table = read_verdicts(directory).rename(columns={"real": "bundled"})  # as once written
        table = with_original(table, directory).reindex(columns=["id", *columns, "low", "high"])
        table["number"] = [number_text(row, " ({} to {})") for row in table.itertuples()]
        tables.append(table.astype(object).fillna("").set_index("id")[columns])
    both = tables[1].join(tables[0][["verdict", "number"]].add_suffix(" before"), how="outer").fillna("")
    both = both.reset_index().sort_values("id", key=claims().index.get_indexer)
    order = ["id", "verdict before", "verdict", "clock", "count", *TIERS, "number before", "number"]
    return markdown_table(both[order])


if __name__ == "__main__":
    print(before_and_after(*sys.argv[1:]))

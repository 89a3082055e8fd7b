"""The reference results: those on bundled data, and those on originals beside them; pages of chapters."""

import re
from pathlib import Path

import pandas as pd
import pytest

from companion.run.claims import Results, Verdict
from companion.run.figures import FigureStore
from companion.run.gallery import MOST_BYTES, PAGES, manifest, reference
from companion.run.records import DEFAULTS, read_parts, read_verdicts
from companion.run.verdicts import ClaimBook, write_verdicts

ROOT = Path(__file__).resolve().parents[2]
YEAST, FLOWERS = {"name": "yeast", "tier": "bundled"}, {"name": "flowers17", "tier": "original"}


def results(root, *place, profile="quick", chapter="mkl", **tables):
    """A run with these tables (id with underscores: data, rows), mkl finished, and its book of verdicts."""
    store = FigureStore(profile, root / "figures" / profile / "/".join(place), chapter=chapter)
    for name, (data, rows) in tables.items():
        table = pd.DataFrame({"a": range(rows)})
        store.save_table(table, name.replace("_", "-"), provenance=data)
    if chapter == "mkl":
        finish(store.directory)
    return ClaimBook(store)


def finish(directory, chapter="mkl", seconds=1):
    """What the runner leaves of a chapter that was made."""
    stamp = directory / "notebooks" / f"{chapter}.json"
    stamp.parent.mkdir(parents=True, exist_ok=True)
    stamp.write_text(f'{{"seconds": {seconds}}}')


def alone(claim, data, **about):
    """The verdict on a claim of one part, which holds."""
    part = Verdict(claim, "holds", data=data, **about)
    return part._replace(parts=(part,))


@pytest.fixture(autouse=True)
def judged(monkeypatch):
    """The directories whose verdicts are written anew, of figures that these tests do not make."""
    directories = []
    monkeypatch.setattr("companion.run.gallery.judge_again", directories.append)
    return directories


def test_verdicts_on_originals_stand_beside_the_bundled_ones(tmp_path, monkeypatch, judged):
    monkeypatch.setattr("companion.run.gallery.files_of", lambda *_: {"jmlr-fig-5.csv", "jmlr-fig-6.csv"})
    monkeypatch.setitem(MOST_BYTES, "original", 30_000)
    book = results(tmp_path, jmlr_fig_6=(YEAST, 1))
    book.record(alone("obs-1", "yeast"))
    book.record(alone("obs-2", "flowers17", tier="original"))
    with pytest.raises(FileNotFoundError, match="PROFILE=quick DATA=original"):
        reference(tmp_path, "quick", "original")
    theirs = results(
        tmp_path, "params", "data_tier=original", jmlr_fig_6=(FLOWERS, 1), jmlr_fig_5=(YEAST, 1),
        jmlr_fig_4=(FLOWERS, 20_000),
    )  # fmt: skip
    for claim in ("obs-1", "obs-2"):
        theirs.record(alone(claim, "flowers17", tier="original"))
    theirs.record(alone("obs-3", "yeast"))
    for _ in range(2):  # also where it is there already
        reference(tmp_path, "quick", "original")
        reference(tmp_path, "quick")
    there = tmp_path / "figures" / "reference"
    made = {"claims.csv", "claims.md", "claims-parts.csv"}
    made |= {f"jmlr-fig-6.{end}" for end in ("csv", "md", "json")}
    assert {file.name for file in there.iterdir()} == made | {"times.csv", "original"}
    # of original data, and small, and what a verdict on original data is computed from
    made |= {"jmlr-fig-4.json", "jmlr-fig-5.csv", "README.md"}
    assert {file.name for file in (there / "original").iterdir()} == made
    assert read_verdicts(there / "original")["id"].tolist() == ["obs-1", "obs-2"]
    # what an earlier run left of a chapter of which nothing rests on original data any more is gone
    old = read_verdicts(there / "original").assign(id="omcl-1", chapter="omcl")[:1]
    its_part = read_parts(there / "original")[:1].assign(claim="omcl-1")
    write_verdicts(there / "original", old, its_part)
    finish(theirs.store.directory, "omcl")
    reference(tmp_path, "quick", "original")
    assert read_verdicts(there / "original")["id"].tolist() == ["obs-1", "obs-2"]
    assert judged == [there / "original", there] * 5  # after each copy, both
    assert "](reference/original/README.md)" in (tmp_path / "figures" / "README.md").read_text()


def test_a_finished_chapter_replaces_its_own_results_only(tmp_path):
    book = results(tmp_path, jmlr_fig_6=(YEAST, 1), jmlr_fig_5=(YEAST, 1))
    book.record(alone("obs-2", "yeast"))
    other = results(tmp_path, chapter="oks", oks_tab_1=(YEAST, 1))
    other.record(alone("oks-1", "yeast"))
    there = tmp_path / "figures" / "reference"
    reference(tmp_path, "quick")
    assert not (there / "oks-tab-1.csv").exists()  # the chapter is not finished
    finish(other.store.directory, "oks")
    reference(tmp_path, "quick")
    full = results(tmp_path, profile="full", jmlr_fig_6=(YEAST, 2))
    full.record(alone("obs-2", "yeast")._replace(verdict="fails"))
    reference(tmp_path, "full")
    assert len(pd.read_csv(there / "jmlr-fig-6.csv")) == 2 and not (there / "jmlr-fig-5.csv").exists()
    assert (there / "oks-tab-1.csv").exists()
    verdicts = read_verdicts(there).set_index("id").loc[["obs-2", "oks-1"], ["profile", "verdict"]]
    assert verdicts.values.tolist() == [["", "fails"], ["", "holds"]]
    assert read_parts(there)["claim"].tolist() == ["obs-2", "oks-1"]


def test_a_large_table_is_packed_and_judged_from(tmp_path, monkeypatch):
    monkeypatch.setitem(MOST_BYTES, "bundled", 10_000)
    there = tmp_path / "figures" / "reference"
    store = results(tmp_path).store
    for n_rows, name in ((2, "jmlr-fig-6.runs.csv"), (5_000, "jmlr-fig-6.runs.csv.gz")):
        tables = {"": pd.DataFrame({"a": [1]}), "runs": pd.DataFrame({"a": [0.5] * n_rows})}
        store.save_table(tables, "jmlr-fig-6", provenance=YEAST)
        reference(tmp_path, "quick")
        assert [file.name for file in there.glob("jmlr*.runs.*")] == [name]
        assert len(Results(there, "obs-2").table("jmlr-fig-6.runs")) == n_rows
        assert f"[{name}](reference/{name})" in (tmp_path / "figures" / "README.md").read_text()


def test_committed_chapters_are_pages_whose_links_lead_somewhere():
    chapters = ROOT / "figures" / "chapters"
    pages = {f"{chapter}{end}" for chapter in DEFAULTS for end in PAGES}
    assert {page.stem for page in chapters.glob("*.md")} == pages
    linked = set()
    for page in chapters.glob("*.md"):
        text = page.read_text(encoding="utf-8")
        assert text.splitlines()[2].startswith("# ")
        linked |= {(chapters / link).resolve() for link in re.findall(r"\]\(([^):#]+)\)", text)}
    assert all(file.is_file() for file in linked)
    assert set(chapters.iterdir()) <= linked  # no picture that an earlier run has left


def test_codecheck_lists_what_is_committed():
    files = re.compile(r"^  - file: (.+)$", re.MULTILINE)
    listed = files.findall((ROOT / "codecheck.yml").read_text(encoding="utf-8"))
    assert listed == files.findall(manifest(ROOT / "figures" / "reference"))
    assert all((ROOT / file).is_file() for file in listed)

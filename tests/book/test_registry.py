"""The registry of figures."""

import pytest

from companion.run.claims import claims
from companion.run.records import catalogue, row_of
from companion.run.registry import Chapter, entries

CHAPTERS = ["mkl", "mktl", "mms", "multilabel", "oks", "omcl"]
REFERENCE = {name: Chapter(name, profile="reference") for name in CHAPTERS}
ENTRIES = [(chapter, name) for chapter in CHAPTERS for name in entries(chapter)]


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_every_row_of_the_catalogue_has_its_figure(chapter):
    assert {row_of(name) for name in entries(chapter)} == set(catalogue(chapter).index)


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_every_claim_is_decided_by_one_figure(chapter):
    decided = [claim for entry in entries(chapter).values() for claim in entry.claims]
    assert sorted(decided) == sorted(claims(chapter).index)


@pytest.mark.parametrize(("chapter", "name"), ENTRIES)
def test_the_committed_result_has_its_text(chapter, name):
    text = REFERENCE[chapter].text(name)
    assert text.count("?*") == 1, "the docstring of a figure is a question"
    assert "nan" not in text.lower().split()


def test_wrong_names_list_the_right_ones():
    with pytest.raises(ValueError, match="did you mean oks-thm-3"):
        REFERENCE["oks"].source("oks-thm-4")
    with pytest.raises(ValueError, match="no parameter 'sed'; did you mean seed"):
        Chapter("oks", sed=3)


def test_a_reference_run_computes_and_writes_nothing(monkeypatch):
    run = REFERENCE["oks"]
    entry = run.entries["oks-thm-3"]
    assert entry.source().startswith('@figure("oks-thm-3"') and "results.table(" in entry.source()
    monkeypatch.setattr(entry, "make", None)
    run.make("oks-thm-3")
    assert run.book is None and len(run.summary()) == len(claims("oks"))

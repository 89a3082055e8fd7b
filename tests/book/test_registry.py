"""The registry of figures."""

import pytest

from companion.run.claims import claims
from companion.run.records import catalogue, row_of
from companion.run.registry import Chapter, entries

CHAPTERS = ["mkl", "mktl", "mms", "multilabel", "oks", "omcl"]


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_every_row_of_the_catalogue_has_its_figure(chapter):
    assert {row_of(name) for name in entries(chapter)} == set(catalogue(chapter).index)


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_every_claim_is_decided_by_one_figure(chapter):
    decided = [claim for entry in entries(chapter).values() for claim in entry.claims]
    assert sorted(decided) == sorted(claims(chapter).index)


def test_wrong_names_list_the_right_ones():
    with pytest.raises(ValueError, match="did you mean oks-thm-3"):
        Chapter("oks", profile="reference").source("oks-thm-4")
    with pytest.raises(ValueError, match="no parameter 'sed'; did you mean seed"):
        Chapter("oks", sed=3)


def test_a_reference_run_computes_and_writes_nothing(monkeypatch):
    run = Chapter("oks", profile="reference")
    entry = run.entries["oks-thm-3"]
    assert entry.source().startswith('@figure("oks-thm-3"') and "results.table(" in entry.source()
    assert f"*{entry.question}*" in run.text("oks-thm-3")
    monkeypatch.setattr(entry, "make", None)
    run.make("oks-thm-3")
    assert run.book is None and len(run.summary()) == len(claims("oks"))

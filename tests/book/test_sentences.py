"""Sentences beside figures and on the front pages say what their numbers say.

No test reads English. What these hold: each comparison has its words from two numbers, lower and higher the
right way round; each text is made of results, so that it changes with them.
"""

import re
from pathlib import Path

import numpy as np
import pytest

from companion.run.claims import Results
from companion.run.figures import WORDS, certain, enumerated, than
from companion.run.findings import FINDINGS, finding, in_readme
from companion.run.records import DEFAULTS
from companion.run.registry import entries

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = ROOT / "figures" / "reference"


class Mirrored(Results):
    """Results whose numbers of a kind are turned over: the largest of a column is the smallest."""

    kind = "floating"

    def table(self, name=""):
        table = super().table(name)
        for column in table.select_dtypes(self.kind):
            table[column] = table[column].min() + table[column].max() - table[column]
        return table


class MirroredThroughout(Mirrored):
    kind = "number"


def changes(entry, text, results):
    """Whether a text is another with other results, or cannot be written of them."""
    try:
        return entry.written(entry.text, results) != text
    except (KeyError, IndexError, ValueError):
        return True


@pytest.mark.parametrize("chapter", DEFAULTS)
def test_every_text_is_made_of_results(chapter):
    absent = []
    for name, entry in entries(chapter).items():
        assert entry.question.endswith("?"), name
        try:
            text = entry.written(entry.text, Results(REFERENCE, name))
            heading = entry.written(entry.heading, Results(REFERENCE, name))
        except (FileNotFoundError, KeyError) as error:  # made by earlier code, or not at all
            absent.append(f"{name}: {error}")
            continue
        words = re.sub(r"\$[^$]*\$", "", text + heading)
        assert not re.search(r"\bnan\b|\binf\b|\{|None", words), (name, words)
        turned = (kind(REFERENCE, name) for kind in (Mirrored, MirroredThroughout))
        assert not entry.text or any(changes(entry, text, results) for results in turned), name
    if absent:
        pytest.skip(f"not in these results: {'; '.join(absent)}")


@pytest.mark.parametrize("words", WORDS)
def test_words_turn_with_their_numbers(words):
    lower, equal, higher = WORDS[words]
    assert than(1.0, 2.0, words) == lower and than(2.0, 1.0, words) == higher
    assert than(1.0, 1.0, words) == than(1.0, 1.1, words, within=0.2) == equal
    differences = np.array([1.9, 2.0, 2.1])
    assert certain(differences, words) == higher and certain(-differences, words) == lower
    assert certain([-1.0, 2.0], words) == certain([1.0], words) == certain(differences, words, 5.0) == equal
    assert enumerated(["a"]) == "a" and enumerated("abc") == "a, b and c"


def test_the_findings_of_readme_and_paper_are_those_of_the_reference():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    paper = (ROOT / "paper.md").read_text(encoding="utf-8")
    assert in_readme(readme) == readme and in_readme(paper) == paper
    notebooks = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "notebooks").glob("*.ipynb"))
    assert set(re.findall(r'finding\(\\"(\w+)\\"', notebooks)) <= set(FINDINGS)
    assert all(finding(name) in " ".join(readme.split()) for name in FINDINGS)

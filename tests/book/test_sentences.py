"""Sentences beside figures and on the front pages say what their numbers say."""

from pathlib import Path

import numpy as np
import pytest

from companion.findings import FINDINGS, finding, in_readme
from companion.words import WORDS, certain, enumerated, than

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = ROOT / "figures" / "reference"


@pytest.mark.parametrize("words", WORDS)
def test_words_turn_with_their_numbers(words):
    lower, equal, higher = WORDS[words]
    assert than(1.0, 2.0, words) == lower and than(2.0, 1.0, words) == higher
    assert than(1.0, 1.0, words) == than(1.0, 1.1, words, within=0.2) == equal
    differences = np.array([1.9, 2.0, 2.1])
    assert certain(differences, words) == higher and certain(-differences, words) == lower
    assert certain([-1.0, 2.0], words) == certain([1.0], words) == certain(differences, words, 5.0) == equal
    assert enumerated(["a"]) == "a" and enumerated("abc") == "a, b and c"


def test_the_findings_of_the_readme_are_those_of_the_reference():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert in_readme(readme, REFERENCE) == readme
    assert all(f"<!-- {name} -->" in readme for name in FINDINGS)
    assert "not made" in finding("cues", REFERENCE / "none") and "not made" not in readme

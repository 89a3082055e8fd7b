"""Sentences beside figures and on the front pages say what their numbers say.

No test reads English. What these hold: no text types in a comparison (a word such as "less", "falls",
"nearly", or a percentage); each comparison has its words from two numbers, lower and higher the right way
round; each text is made of results, so that it changes with them.
"""

import ast
import inspect
import re
import textwrap
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

#: Words that say that one thing is more than another, goes up or down, or is good or bad.
EXTREME = "best|worst|most|least|largest|smallest|highest|lowest|fastest|slowest|nearest"
COMPARISONS = re.compile(
    "\\b(more|less|fewer|better|worse|larger|smaller|higher|lower|faster|slower|longer|shorter|ahead|behind|"
    rf"above|below|beats?|outperforms?|falls?|rises?|{EXTREME})\b|\d+(\.\d+)? ?(%|points)"
)
SUPERLATIVES = re.compile(rf"\b({EXTREME})\b")
TAKES_EXTREMES = re.compile(r"idxmin|idxmax|extremes\(|largest_falls|nlargest|sort_values|\bmin\(|\bmax\(")
#: A sentence with one of these says how often something is so, by how much, or what the paper has.
MEASURED = re.compile(r"\{\} (of|above|points|times) |[Oo]f \{\} \w+ \{\}|(by|in) \{\}")
THEIRS = re.compile(r"thesis|paper|theorem|proposition|proof|Caltech")
#: Phrases that define, name what is shown, or follow from an algorithm whatever the results are.
DEFINED = re.compile(
    r"at (least|most|worst)|and more|may rise|fall of AUC|gap of \d+%|names held-back bags better|"
    "pictured most often|nearest instance|largest (weight of its row|step)"
)


def functions_of(text):
    """The function of a text, and those of the same chapter that it calls."""
    found = []
    waiting = [text]
    while waiting:
        function = waiting.pop()
        if function not in found:
            found.append(function)
            called = (function.__globals__.get(name) for name in function.__code__.co_names)
            waiting += [f for f in called if inspect.isfunction(f) and ".figures" in f.__module__]
    return [f for f in found if not f.__module__.startswith("companion.run")]


def sentences(text):
    """A text, or what a function writes, sentence by sentence, {} where a value goes, $ where a formula."""
    if isinstance(text, str):
        return in_sentences(re.sub(r"(?<!\{)\{[^{}]*\}", "{}", text))
    inside = set()
    texts = []
    for node in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(text)))):
        if isinstance(node, ast.JoinedStr) and id(node) not in inside:
            inside |= {id(part) for part in ast.walk(node)}
            texts.append("".join(v.value if isinstance(v, ast.Constant) else "{}" for v in node.values))
    return in_sentences(" ".join(texts))


def in_sentences(text):
    body = " ".join(text.split())
    return re.split(r"(?<=[.;:]) ", re.sub(r"\$[^$]*\$", "$", body))


@pytest.mark.parametrize("chapter", DEFAULTS)
def test_no_text_has_a_comparison_typed_in(chapter):
    typed = []
    for name, entry in entries(chapter).items():
        functions = functions_of(entry.numbers) if entry.numbers else []
        extremes = any(TAKES_EXTREMES.search(inspect.getsource(function)) for function in functions)
        for sentence in sum(map(sentences, [*functions, entry.heading, entry.text]), []):
            said = DEFINED.sub("", SUPERLATIVES.sub("", sentence) if extremes else sentence)
            word = COMPARISONS.search(said)
            if word and not MEASURED.search(sentence) and not THEIRS.search(sentence):
                typed.append(f"{name}: '{word[0]}' in '{sentence}'")
    assert not typed, "\n".join(typed)


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


def test_the_findings_of_the_readme_are_those_of_the_reference():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert in_readme(readme) == readme
    notebooks = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "notebooks").glob("*.ipynb"))
    assert set(re.findall(r'finding\(\\"(\w+)\\"', notebooks)) <= set(FINDINGS)
    assert all(finding(name) in " ".join(readme.split()) for name in FINDINGS)

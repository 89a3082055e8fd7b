"""The README's examples run as pasted, in order; those of the book's pages each by itself."""

import contextlib
import io
import re
from pathlib import Path

import matplotlib.pyplot as plt
import pytest
from sklearn.model_selection import cross_val_score

ROOT = Path(__file__).resolve().parents[2]


def blocks(file):
    text = (ROOT / file).read_text(encoding="utf-8")
    found = re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    assert found and max(len(line) for block in found for line in block.splitlines()) <= 120
    return found


def test_readme_in_order():
    found, names, said = blocks("README.md"), {}, io.StringIO()
    assert len(found) == 2 and max(len(block.strip().splitlines()) for block in found) <= 10
    with contextlib.redirect_stdout(said):
        for block in found:
            exec(compile(block, "README.md", "exec"), names)
    assert names["model"].dual_gap_ <= 0.01 * names["model"].objective_ and "pixels" in said.getvalue()
    assert names["search"].best_score_ > 0.9


def test_readme_is_short_and_its_links_lead_somewhere():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.split()) <= 1100
    for page in (ROOT / "README.md", *(ROOT / "notebooks" / "book").glob("*.md")):
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
            made = target in ("verdicts.md", "reference.md")  # with the book
            assert made or (page.parent / target).exists(), f"{page.name}: {target}"


def test_pages_run_as_pasted(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    found = []
    for block in blocks("notebooks/book/own_kernels.md") + blocks("notebooks/book/own_images.md"):
        names = {}
        exec(compile(block, "page", "exec"), names)
        found.append(names)
    plt.close("all")
    scaled, _, search, split, _, stream, kinds, bags, transfer, photos = found
    assert cross_val_score(scaled["model"], scaled["X"], scaled["y"]).mean() > 0.96
    assert search["search"].best_score_ > 0.8
    numbers, y = split["test"], split["y"]
    assert split["bagged"].score(numbers[:, None], y[numbers]) > 0.8
    assert stream["model"].online_errors_.mean() < 0.4
    assert kinds["model"].score(kinds["data"].X, kinds["data"].y) > 0.9
    assert bags["model"].predict(bags["X"], bags["sets"]).tolist()[2] == "Ada Lovelace"
    new = transfer["new"][60:]
    assert transfer["model"].score(transfer["X"][new], transfer["y"][new]) > 0.6
    data = photos["data"]
    assert len(data.cues) == 7 and photos["model"].score(data.X[data.test], data.y[data.test]) > 0.6


BEYOND = {
    "annotators": "model.score(X, truth) > 0.9",
    "coming_from": "same and (more_chances.argmax(axis=1) == y[test]).mean() > 0.9",
    "few_labels": "model.n_queries_ < 600 and model.score(digits.X[new], digits.y[new]) > 0.9",
    "inference": "bound == value",
    "losses": "model.dual_gap_ <= 0.01 * model.objective_",
    "speed": "model.score(kernels, digits.y[rows]) > 0.99",
}


@pytest.mark.parametrize("page", BEYOND)
def test_pages_beyond_the_papers_run_as_pasted(page):
    names = {}
    for block in blocks(f"notebooks/book/{page}.md"):
        exec(compile(block, page, "exec"), names)
    assert eval(BEYOND[page], names)

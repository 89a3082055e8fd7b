"""Sliders and guesses."""

import base64
import io
import json
import re
import sys

import numpy as np
import pytest
from PIL import Image

from companion.plots.explore import Control, default_picture, explore, predict

CONTROLS = {"p": Control("norm p", (1.0, 1.5, 2.0), 2.0), "C": Control("weight of the losses C", (1, 10), 10)}


def line(calls):
    def draw(ax, p, C):
        calls.append((p, C))
        ax.plot([0, 1], [0, p * C], label="a line")
        ax.set(xlim=(0, 1), ylim=(0, 20))

    return draw


def test_a_move_draws_one_picture_over_the_default(monkeypatch):
    monkeypatch.delenv("CUELEARN_RUN", raising=False)
    calls = []
    box = explore(line(calls), CONTROLS, caption="data")
    *sliders, picture, caption = box.children
    assert caption.value == "data"
    first = picture.value
    assert sliders[0].description == "norm p" and calls == [(2.0, 10)]
    sliders[0].value = 1.5
    assert picture.value != first and calls[1:] == [(2.0, 10), (1.5, 10)]
    sliders[0].value = 2.0
    assert picture.value == first and len(calls) == 3  # kept, not drawn again


def test_a_page_holds_every_position_of_two_sliders(monkeypatch):
    monkeypatch.setenv("CUELEARN_RUN", "1")
    controls = CONTROLS | {"seed": Control("seed of the draw", (0, 1), 1)}
    drawn = []

    def two_panels(axes, p, C, seed):
        drawn.append((p, C, seed))
        for ax in axes:
            ax.plot([0, p], [0, C])

    html = explore(two_panels, controls, panels=2, caption="data").data
    together = {(p, C, 1) for p in (1.0, 1.5, 2.0) for C in (1, 10)}
    assert set(drawn) == together | {(2.0, 10, 0)}  # the third moves alone, from the defaults
    assert "the others go back when one of these moves: seed of the draw." in html
    assert "http" not in html and html.count('type="range"') == 3 and html.count("aria-label=") == 3
    data = json.loads(re.search(r'"application/json">(.*?)</script>', html, flags=re.DOTALL)[1])
    assert data["values"] == [["1", "1.5", "2"], ["1", "10"], ["0", "1"]] and data["start"] == "2,1,1"
    assert len(data["frames"]) == 7 and all(len(parts) == 2 for parts in data["frames"].values())
    assert len({part for part, _ in data["frames"].values()}) == 7  # every position has its own picture
    pictures = [data["pictures"][number] for number in data["frames"]["2,1,1"]]
    left, right = (Image.open(io.BytesIO(base64.b64decode(picture))) for picture in pictures)
    both = np.asarray(Image.open(io.BytesIO(base64.b64decode(default_picture(html)))))
    assert np.array_equal(both, np.hstack([left, right]))


def test_of_sliders_that_move_alone_equal_pictures_stand_once(monkeypatch):
    monkeypatch.setenv("CUELEARN_RUN", "1")
    html = explore(lambda ax, p, C: ax.set(xlim=(0, p)), CONTROLS, together=1).data
    data = json.loads(re.search(r'"application/json">(.*?)</script>', html, flags=re.DOTALL)[1])
    assert data["frames"] == {"0,1": [0], "1,1": [1], "2,1": [2], "2,0": [2]} and len(data["pictures"]) == 3


def test_an_answer_is_shown_after_the_guess(monkeypatch):
    monkeypatch.delenv("CUELEARN_RUN", raising=False)
    outcome = explore(line([]), CONTROLS)
    box = predict("samples kept", range(0, 601, 50), 23, "of 600", outcome)
    guess, button = box.children
    assert guess.description == "Your guess: samples kept" and guess.value == 300
    guess.value = 50
    button.click()
    _, _, answer, sentence, shown = box.children
    assert answer.value == 0 and answer.disabled  # of the values the nearest to it
    assert sentence.value == "You said 50, it is 23 of 600." and shown is outcome
    alone = predict("p", (1.0, 1.5, 2.0), 1.5)
    alone.children[1].click()
    assert alone.children[-1].value == "You said 1.5, it is 1.5."


def test_a_page_has_the_answer_and_the_outcome_of_a_guess(monkeypatch):
    monkeypatch.setenv("CUELEARN_RUN", "1")
    outcome = explore(line([]), CONTROLS)
    html = predict("samples < 600", range(0, 601, 50), 23.5, "of 600", outcome).data
    data = json.loads(re.search(r'"application/json">(.*?)</script>', html, flags=re.DOTALL)[1])
    assert data["sentence"] == "You said {}, it is 23.5 of 600." and data["labels"][1] == "50"
    assert "http" not in html and 'aria-label="Your guess: samples &lt; 600"' in html
    assert outcome.data in html and default_picture(html) == default_picture(outcome.data)


def test_a_default_outside_its_values_is_refused():
    with pytest.raises(ValueError, match="default of p must be one of its values"):
        explore(line([]), {"p": Control("norm p", (1.0, 2.0), 1.5)})


@pytest.mark.parametrize("package, run", [("ipywidgets", ""), ("IPython", "1")])
def test_what_sliders_need_is_named(package, run, monkeypatch):
    monkeypatch.setenv("CUELEARN_RUN", run)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=rf"{package} is not installed: .*cuelearn\[notebooks\]"):
        explore(line([]), CONTROLS)
    with pytest.raises(ImportError, match=package):
        predict("p", (1, 2), 1)

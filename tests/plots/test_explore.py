"""Sliders: every move draws one picture, the defaults stay behind it in grey; frames need no network."""

import sys

import pytest

from companion.plots.explore import Control, explore

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
    *sliders, picture = box.children
    first = picture.value
    assert sliders[0].description == "norm p" and calls == [(2.0, 10)]
    sliders[0].value = 1.5
    assert picture.value != first and calls[1:] == [(2.0, 10), (1.5, 10)]
    sliders[0].value = 2.0
    assert picture.value == first and len(calls) == 3  # kept, not drawn again


def test_frames_without_a_kernel(monkeypatch):
    monkeypatch.setenv("CUELEARN_RUN", "1")
    html = explore(line([]), CONTROLS).data
    assert html.count("frames[") >= 3 and "http" not in html and 'type="range"' in html


def test_a_default_outside_its_values_is_refused():
    with pytest.raises(ValueError, match="default of p must be one of its values"):
        explore(line([]), {"p": Control("norm p", (1.0, 2.0), 1.5)})


@pytest.mark.parametrize("package, run", [("ipywidgets", ""), ("IPython", "1")])
def test_what_sliders_need_is_named(package, run, monkeypatch):
    monkeypatch.setenv("CUELEARN_RUN", run)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=rf"{package} is not installed: .* \"\.\[notebooks\]\""):
        explore(line([]), CONTROLS)

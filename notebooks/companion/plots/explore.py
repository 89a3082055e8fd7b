"""Sliders above the picture that they change; in the book, where no kernel runs, its frames."""

import io
import os
import re
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import matplotlib as mpl
from matplotlib.animation import HTMLWriter
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from cuelearn.core.optional import require

__all__ = ["Control", "explore"]

DPI = 96
SIZE = (8.0, 3.4)  # inches
GHOST = {"color": "#bbbbbb", "zorder": 0}


class Control(NamedTuple):
    """One parameter: what it is, with unit, its values from end to end, and the one that papers or we use."""

    words: str
    values: tuple
    default: Any

    def label(self, value):
        return f"{value:g}" if isinstance(value, float) else str(value)


def explore(draw, controls, *, panels=1, caption=""):
    """A picture with sliders: drawn anew at each move, the picture at the defaults in grey behind it.

    Without a running kernel, in the book, the first slider's pictures are frames computed beforehand.

    ``draw(axes, **values)`` gets one value for each of `controls` (name -> Control), draws lines, points and
    bars on `axes` (one, or a list of `panels`) and fixes their limits.
    """
    for name, control in controls.items():
        if control.default not in control.values:
            raise ValueError(f"the default of {name} must be one of its values, got {control.default!r}")
    pictures = _Pictures(draw, controls, panels, caption)
    return _frames(pictures) if os.environ.get("CUELEARN_RUN") else _widget(pictures)


class _Pictures:
    """Draws the picture for some values; keeps what was drawn."""

    def __init__(self, draw, controls, panels, caption):
        self.draw, self.controls, self.panels, self.kept = draw, controls, panels, {}
        self.figure = Figure(figsize=SIZE, dpi=DPI, layout="none")
        FigureCanvasAgg(self.figure)
        self.caption = caption

    def defaults(self):
        return {name: control.default for name, control in self.controls.items()}

    def onto_figure(self, values):
        self.figure.clear()
        axes = list(self.figure.subplots(1, self.panels, squeeze=False)[0])
        self.figure.subplots_adjust(left=0.08, right=0.98, top=0.86, bottom=0.24, wspace=0.25)
        if self.caption:
            self.figure.text(0.01, 0.01, self.caption, fontsize=8, color="#555555")
        target = axes[0] if self.panels == 1 else axes
        with mpl.rc_context({"axes.spines.top": False, "axes.spines.right": False}):
            if values != self.defaults():
                self.draw(target, **self.defaults())
                for ax in axes:
                    _fade(ax)
            self.draw(target, **values)

    def png(self, values):
        key = tuple(values.values())
        if key not in self.kept:
            self.onto_figure(values)
            buffer = io.BytesIO()
            self.figure.canvas.print_png(buffer)
            self.kept[key] = buffer.getvalue()
        return self.kept[key]


def _fade(ax):
    """Grey what was drawn, and take its names out of the legend and its texts away."""
    for artist in (*ax.lines, *ax.collections, *ax.patches):
        artist.set(**GHOST)
        artist.set_label("_")
    for text in list(ax.texts):
        text.remove()
    ax.set_prop_cycle(None)


def _widget(pictures):
    require("notebooks", "ipywidgets")
    import ipywidgets as w

    wide = w.Layout(width="640px")
    sliders = {}
    for name, control in pictures.controls.items():
        options = [(control.label(value), value) for value in control.values]
        ends = f"{control.label(control.values[0])} to {control.label(control.values[-1])}"
        sliders[name] = w.SelectionSlider(
            options=options,
            value=control.default,
            description=f"{control.words} ({ends})",
            style={"description_width": "320px"},
            layout=wide,
        )
    height = f"{int(pictures.figure.get_figheight() * DPI)}px"
    picture = w.Image(format="png", layout=w.Layout(height=height, object_fit="contain"))
    reset = w.Button(description="as it was", tooltip="all sliders back to their defaults")

    def show(*_):
        picture.value = pictures.png({name: slider.value for name, slider in sliders.items()})

    def back(_):
        for name, slider in sliders.items():
            slider.value = pictures.controls[name].default

    for slider in sliders.values():
        slider.observe(show, "value")
    reset.on_click(back)
    show()
    return w.VBox([*sliders.values(), picture, reset])


def _frames(pictures):
    """The first slider's pictures as HTML with a slider of its own: all in one piece, nothing is loaded."""
    require("notebooks", "IPython")
    from IPython.display import HTML

    (name, control), *_ = pictures.controls.items()

    figure, writer = pictures.figure, HTMLWriter(fps=2, embed_frames=True, default_mode="once")
    no_layout = mpl.rc_context({"figure.constrained_layout.use": False})  # savefig brings the style's back
    with TemporaryDirectory() as directory, no_layout:
        film = Path(directory, "film.html")
        with writer.saving(figure, film, DPI):
            for value in control.values:
                pictures.onto_figure(pictures.defaults() | {name: value})
                figure.text(0.5, 0.94, f"{control.words}: {control.label(value)}", ha="center")
                writer.grab_frame()
        html = film.read_text(encoding="utf-8")
    html = re.sub(r"<link[^>]*>", "", html)  # which would fetch icons of buttons from the network
    # at first the default, as with a kernel
    start = control.values.index(control.default)
    made = re.compile(r"(anim\w+) = new Animation\([^)]*\);")
    return HTML(made.sub(rf"\g<0> \1.set_frame({start});", html))

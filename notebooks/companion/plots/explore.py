"""Sliders above the picture that they change; in the book, where no kernel runs, its frames."""

import io
import os
import re
from functools import cache
from typing import Any, NamedTuple

import matplotlib as mpl
from matplotlib.animation import FuncAnimation
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from cuelearn.core.optional import require

__all__ = ["Control", "explore"]


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
    defaults = {name: control.default for name, control in controls.items()}
    figure = Figure(figsize=(8.0, 3.4), dpi=96, layout="none")
    FigureCanvasAgg(figure)

    def picture(**values):
        figure.clear()
        axes = list(figure.subplots(1, panels, squeeze=False)[0])
        figure.subplots_adjust(left=0.08, right=0.98, top=0.86, bottom=0.24, wspace=0.25)
        figure.text(0.01, 0.01, caption, fontsize=8, color="#555555")
        target = axes[0] if panels == 1 else axes
        if values != defaults:
            draw(target, **defaults)
            for ax in axes:
                _fade(ax)
        draw(target, **values)

    if os.environ.get("CUELEARN_RUN"):
        return _frames(figure, picture, controls, defaults)
    return _widget(figure, picture, controls)


def _fade(ax):
    """Grey what was drawn, and take its names out of the legend and its texts away."""
    for artist in (*ax.lines, *ax.collections, *ax.patches):
        artist.set(color="#bbbbbb", zorder=0, label="_")
    for bars in ax.containers:
        bars.set_label("_")
    for text in list(ax.texts):
        text.remove()
    ax.set_prop_cycle(None)


def _widget(figure, picture, controls):
    require("notebooks", "ipywidgets")
    import ipywidgets as w

    image = w.Image(format="png")
    sliders = []
    for control in controls.values():
        slider = w.SelectionSlider(
            options=[(control.label(value), value) for value in control.values],
            value=control.default,
            description=control.words,
            style={"description_width": "320px"},
            layout=w.Layout(width="640px"),
        )
        sliders.append(slider)

    @cache
    def png(*values):
        picture(**dict(zip(controls, values, strict=True)))
        buffer = io.BytesIO()
        figure.canvas.print_png(buffer)
        return buffer.getvalue()

    def show(*_):
        image.value = png(*(slider.value for slider in sliders))

    for slider in sliders:
        slider.observe(show, "value")
    show()
    return w.VBox([*sliders, image])


def _frames(figure, picture, controls, defaults):
    """The first slider's pictures as HTML with a slider of its own: all in one piece, nothing is loaded."""
    require("notebooks", "IPython")
    from IPython.display import HTML

    (name, control), *_ = controls.items()

    def frame(value):
        picture(**defaults | {name: value})
        figure.text(0.5, 0.94, f"{control.words}: {control.label(value)}", ha="center")

    film = FuncAnimation(figure, frame, control.values, init_func=lambda: None, repeat=False)
    # savefig would bring the style's back
    with mpl.rc_context({"figure.constrained_layout.use": False, "savefig.dpi": "figure"}):
        html = film.to_jshtml(fps=2)
    html = re.sub(r"<link[^>]*>", "", html)  # which would fetch icons of buttons from the network
    # at first the default, as with a kernel
    start = control.values.index(control.default)
    made = re.compile(r"(anim\w+) = new Animation\([^)]*\);")
    return HTML(made.sub(rf"\g<0> \1.set_frame({start});", html))

"""Sliders above the picture that they change; a page without a kernel holds one picture for each position."""

import base64
import io
import itertools
import json
import os
import re
import uuid
from functools import cache
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

from companion.run.figures import CSS_DPI
from cuelearn.expect import require

__all__ = ["Control", "explore"]

#: How many controls move together on a page without a kernel; each of the others moves alone, from the
#: defaults.
TOGETHER = 2
SIZE = (8.0, 3.4)  # inches
PAGE_DPI = 112
SCRIPT = Path(__file__).with_name("explore.js")
STYLE = """
.explore label { display: flex; flex-wrap: wrap; gap: 0 1rem; align-items: center; margin: 0.3rem 0; }
.explore label span { flex: 1 1 14rem; }
.explore input { flex: 2 1 14rem; min-width: 10rem; height: 1.6rem; }
.explore output { flex: 0 0 4rem; font-variant-numeric: tabular-nums; font-weight: 600; }
.explore .panels { display: flex; flex-wrap: wrap; }
.explore .panels img { flex: 1 1 20rem; min-width: 0; max-width: min(26rem, 100%); background: white; }
.explore p { font-size: 0.85rem; }
"""


class Control(NamedTuple):
    """One parameter: what it is, with unit, its values from end to end, and the one that papers or we use."""

    words: str
    values: tuple
    default: Any

    def label(self, value):
        return f"{value:g}" if isinstance(value, float) else str(value)


def explore(draw, controls, *, panels=1, caption=""):
    """A picture with sliders: drawn anew at each move, the picture at the defaults in grey behind it.

    Run by papermill, it returns HTML for the book, where no kernel runs: with a picture for each position of
    the first two sliders, and of each further one with the others at their defaults.

    ``draw(axes, **values)`` gets one value for each of `controls` (name -> Control), draws lines, points and
    bars on `axes` (one, or a list of `panels`) and fixes their limits.
    """
    for name, control in controls.items():
        if control.default not in control.values:
            raise ValueError(f"the default of {name} must be one of its values, got {control.default!r}")
    defaults = {name: control.default for name, control in controls.items()}
    figure = Figure(figsize=SIZE, dpi=CSS_DPI, layout="none")
    FigureCanvasAgg(figure)

    def picture(**values):
        figure.clear()
        axes = list(figure.subplots(1, panels, squeeze=False)[0])
        figure.subplots_adjust(left=0.08, right=0.98, top=0.92, bottom=0.16, wspace=0.25)
        target = axes[0] if panels == 1 else axes
        if values != defaults:
            draw(target, **defaults)
            for ax in axes:
                _fade(ax)
        draw(target, **values)

    if os.environ.get("CUELEARN_RUN"):
        return _page(figure, picture, controls, panels, caption)
    return _widget(figure, picture, controls, caption)


def _fade(ax):
    """Grey what was drawn, and take its names out of the legend and its texts away."""
    for artist in (*ax.lines, *ax.collections, *ax.patches):
        artist.set(color="#bbbbbb", zorder=0, label="_")
    for bars in ax.containers:
        bars.set_label("_")
    for text in list(ax.texts):
        text.remove()
    ax.set_prop_cycle(None)


def _widget(figure, picture, controls, caption):
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
    return w.VBox([*sliders, image, w.HTML(escape(caption))])


def _page(figure, picture, controls, panels, caption):
    """Sliders as HTML that needs no kernel and no network: the pictures of all positions as JSON."""
    require("notebooks", "IPython")
    from IPython.display import HTML

    figure.set_dpi(PAGE_DPI)
    frames = {}
    for position in _positions(controls):
        picked = zip(controls.items(), position, strict=True)
        picture(**{name: control.values[index] for (name, control), index in picked})
        frames[",".join(map(str, position))] = _panels(figure, panels)
    values = [[control.label(value) for value in control.values] for control in controls.values()]
    start = ",".join(map(str, _defaults(controls)))
    data = json.dumps({"values": values, "start": start, "together": TOGETHER, "frames": frames})
    sliders = [_slider(control) for control in controls.values()]
    images = [f'<img alt="{escape(caption)}, panel {k + 1} of {panels}">' for k in range(panels)]
    alone = [control.words for control in list(controls.values())[TOGETHER:]]
    note = f" On this page the others go back when one of these moves: {'; '.join(alone)}." if alone else ""
    name = f"explore-{uuid.uuid5(uuid.NAMESPACE_OID, data)}"
    return HTML(
        f"""<style>{STYLE}</style><div class="explore" id="{name}">
{"".join(sliders)}<div class="panels">{"".join(images)}</div><p>{escape(caption + note)}</p>
<script type="application/json">{data}</script>
<script>({SCRIPT.read_text(encoding="utf-8")})(document.getElementById("{name}"))</script></div>"""
    )


def _defaults(controls):
    return tuple(control.values.index(control.default) for control in controls.values())


def _positions(controls):
    """Of the sliders, as numbers of their values: those of which a page has a picture."""
    start = _defaults(controls)
    ranges = [range(len(control.values)) for control in controls.values()]
    positions = [(*moved, *start[TOGETHER:]) for moved in itertools.product(*ranges[:TOGETHER])]
    for k in range(TOGETHER, len(ranges)):
        positions += [(*start[:k], index, *start[k + 1 :]) for index in ranges[k] if index != start[k]]
    return positions


def default_picture(html):
    """The picture at the defaults out of a page's HTML, as PNG in base64."""
    data = json.loads(re.search(r'"application/json">(.*?)</script>', html, flags=re.DOTALL)[1])
    parts = [Image.open(io.BytesIO(base64.b64decode(part))) for part in data["frames"][data["start"]]]
    buffer = io.BytesIO()
    Image.fromarray(np.hstack([np.asarray(part) for part in parts])).save(buffer, "PNG")
    return base64.b64encode(buffer.getvalue()).decode()


def _slider(control):
    """A labelled range input, at first at the default."""
    start = control.values.index(control.default)
    words = escape(control.words)
    ends = f'min="0" max="{len(control.values) - 1}" step="1" value="{start}"'
    slider = f'<input type="range" {ends} aria-label="{words}">'
    return f"<label><span>{words}</span>{slider}<output></output></label>\n"


def _panels(figure, panels):
    """What is drawn as a WebP picture for each panel, in base64."""
    figure.canvas.draw()
    pixels = np.asarray(figure.canvas.buffer_rgba())[..., :3]
    return [_webp(part) for part in np.array_split(pixels, panels, axis=1)]


def _webp(pixels):
    buffer = io.BytesIO()
    picture = Image.fromarray(np.ascontiguousarray(pixels))
    reduced = picture.quantize(24, method=Image.Quantize.MAXCOVERAGE, kmeans=1).convert("RGB")
    reduced.save(buffer, "WEBP", lossless=True, method=6)
    return base64.b64encode(buffer.getvalue()).decode()

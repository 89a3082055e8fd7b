"""Guesses, and sliders above the picture that they change; a page has a picture for each position."""

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

__all__ = ["Control", "explore", "predict"]

HEIGHT = 3.4  # inches
WIDTH = 4.0  # of a panel
PAGE_DPI = 112
SHOW = "Show the answer"
STYLE = """
.explore label, .predict label { display: flex; flex-wrap: wrap; align-items: center; }
.explore label, .predict label { gap: 0 1rem; margin: 0.3rem 0; }
.explore span, .predict span { flex: 1 1 14rem; }
.explore input, .predict input { flex: 2 1 14rem; min-width: 10rem; height: 1.6rem; }
.explore output, .predict output { flex: 0 0 4rem; font-variant-numeric: tabular-nums; font-weight: 600; }
.predict [inert] { accent-color: #b34700; }
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


def explore(draw, controls, *, panels=1, caption="", together=2):
    """A picture with sliders: drawn anew at each move, the picture at the defaults in grey behind it.

    Run by papermill, it returns HTML for the book, where no kernel runs: with a picture for each position of
    the first `together` sliders, and of each further one with the others at their defaults.

    ``draw(axes, **values)`` gets one value for each of `controls` (name -> Control), draws lines, points and
    bars on `axes` (one, or a list of `panels`) and fixes their limits.
    """
    for name, control in controls.items():
        if control.default not in control.values:
            raise ValueError(f"the default of {name} must be one of its values, got {control.default!r}")
    defaults = {name: control.default for name, control in controls.items()}
    columns = max(panels, 2)
    figure = Figure(figsize=(columns * WIDTH, HEIGHT), dpi=CSS_DPI, layout="none")
    FigureCanvasAgg(figure)

    def picture(**values):
        figure.clear()
        axes = list(figure.subplots(1, panels, squeeze=False)[0])
        sides = {"left": 0.16 / columns, "right": 1.0 - 0.04 / columns}
        figure.subplots_adjust(**sides, top=0.92, bottom=0.16, wspace=0.25)
        target = axes[0] if panels == 1 else axes
        if values != defaults:
            draw(target, **defaults)
            for ax in axes:
                _fade(ax)
        draw(target, **values)

    if os.environ.get("CUELEARN_RUN"):
        return _page(figure, picture, controls, panels, caption, together)
    return _widget(figure, picture, controls, caption)


def predict(question, values, answer, unit="", outcome=None):
    """A guess among `values`; then the `answer` on the same scale, and `outcome`, what `explore` returned."""
    values = tuple(values)
    nearest = min(values, key=lambda value: abs(value - answer))
    guess = Control(f"Your guess: {question}", values, values[len(values) // 2])
    truth = Control("the answer", values, nearest)
    sentence = f"You said {{}}, it is {guess.label(answer)} {unit}".rstrip() + "."
    build = _guess_page if os.environ.get("CUELEARN_RUN") else _guess_widget
    return build(guess, truth, sentence, outcome)


def _fade(ax):
    """Grey what was drawn, and take its names out of the legend and its texts away."""
    for artist in (*ax.lines, *ax.collections, *ax.patches):
        artist.set(color="#bbbbbb", zorder=0, label="_")
    for bars in ax.containers:
        bars.set_label("_")
    for text in list(ax.texts):
        text.remove()
    ax.set_prop_cycle(None)


def _ipywidgets():
    require("notebooks", "ipywidgets")
    import ipywidgets

    return ipywidgets


def _slider_widget(control):
    w = _ipywidgets()
    return w.SelectionSlider(
        options=[(control.label(value), value) for value in control.values],
        value=control.default,
        description=control.words,
        style={"description_width": "400px"},
        layout=w.Layout(width="720px"),
    )


def _guess_widget(guess, truth, sentence, outcome):
    w = _ipywidgets()
    slider = _slider_widget(guess)
    answer = _slider_widget(truth)
    answer.disabled = True
    comparison = w.HTML()
    button = w.Button(description=SHOW)
    box = w.VBox([slider, button])

    def show(_):
        comparison.value = sentence.format(guess.label(slider.value))
        shown = (slider, button, answer, comparison, outcome)
        box.children = [widget for widget in shown if widget is not None]

    button.on_click(show)
    return box


def _widget(figure, picture, controls, caption):
    w = _ipywidgets()
    image = w.Image(format="png")
    sliders = [_slider_widget(control) for control in controls.values()]

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


def _html(name, body, data):
    """HTML that needs no kernel and no network: JSON, `body`, and the script of this name that reads both."""
    require("notebooks", "IPython")
    from IPython.display import HTML

    data = json.dumps(data)
    unique = f"{name}-{uuid.uuid5(uuid.NAMESPACE_OID, data)}"
    script = Path(__file__).with_name(f"{name}.js").read_text(encoding="utf-8")
    return HTML(
        f"""<style>{STYLE}</style><div class="{name}" id="{unique}">
<script type="application/json">{data}</script>
{body}
<script>({script})(document.getElementById("{unique}"))</script></div>"""
    )


def _guess_page(guess, truth, sentence, outcome):
    labels = [guess.label(value) for value in guess.values]
    body = f"""{_slider(guess)}<div class="after" inert>{_slider(truth)}</div>
<button type="button">{SHOW}</button><p role="status"></p>
<div class="after">{"" if outcome is None else outcome.data}</div>"""
    return _html("predict", body, {"labels": labels, "sentence": sentence})


def _page(figure, picture, controls, panels, caption, together):
    """Sliders, and the pictures of all positions, each of which stands once."""
    figure.set_dpi(PAGE_DPI)
    frames = {}
    pictures = {}
    for position in _positions(controls, together):
        picked = zip(controls.items(), position, strict=True)
        picture(**{name: control.values[index] for (name, control), index in picked})
        numbers = [pictures.setdefault(part, len(pictures)) for part in _panels(figure, panels)]
        frames[",".join(map(str, position))] = numbers
    values = [[control.label(value) for value in control.values] for control in controls.values()]
    start = ",".join(map(str, _defaults(controls)))
    data = {"values": values, "start": start, "together": together, "frames": frames}
    data["pictures"] = list(pictures)
    sliders = [_slider(control) for control in controls.values()]
    images = [f'<img alt="{escape(_shown(ax, caption))}">' for ax in figure.axes[:panels]]
    alone = [control.words for control in list(controls.values())[together:]]
    note = f". On this page the others go back when one of these moves: {'; '.join(alone)}." if alone else ""
    text = escape(caption + note)
    body = f"""{"".join(sliders)}<div class="panels">{"".join(images)}</div><p>{text}</p>"""
    return _html("explore", body, data)


def _shown(ax, caption):
    """For who does not see it: what a panel has on its axes, and of what."""
    axes = " against ".join(filter(None, (ax.get_ylabel(), ax.get_xlabel())))
    return re.sub(r"[$\\]", "", "; ".join(filter(None, (axes, caption))))


def _defaults(controls):
    return tuple(control.values.index(control.default) for control in controls.values())


def _positions(controls, together):
    """Of the sliders, as numbers of their values: those of which a page has a picture."""
    start = _defaults(controls)
    ranges = [range(len(control.values)) for control in controls.values()]
    positions = [(*moved, *start[together:]) for moved in itertools.product(*ranges[:together])]
    for k in range(together, len(ranges)):
        positions += [(*start[:k], index, *start[k + 1 :]) for index in ranges[k] if index != start[k]]
    return positions


def default_picture(html):
    """The picture at the defaults out of a page's HTML, as PNG in base64."""
    _, _, page = html.partition('class="explore"')
    data = json.loads(re.search(r'"application/json">(.*?)</script>', page, flags=re.DOTALL)[1])
    parts = [data["pictures"][number] for number in data["frames"][data["start"]]]
    parts = [Image.open(io.BytesIO(base64.b64decode(part))) for part in parts]
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
    reduced.save(buffer, "WEBP", lossless=True, quality=100, method=4)
    return base64.b64encode(buffer.getvalue()).decode()

"""Reading drawn figures: where words stand, which curve is whose."""

import itertools
import warnings

import numpy as np
from matplotlib.colors import same_color

from companion.run.figures import method_style


def within(box, frame, slack=0.0):
    low = box.x0 >= frame.x0 - slack and box.y0 >= frame.y0 - slack
    return low and box.x1 <= frame.x1 + slack and box.y1 <= frame.y1 + slack


def drawn(fig, everything=True):
    """The figure after drawing, without a warning; every curve is finite, every text inside the page."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fig.canvas.draw()
    for ax in fig.axes:
        for line in ax.lines:
            assert np.isfinite(line.get_xydata().astype(float)).all()
        for band in ax.collections:
            assert all(np.isfinite(path.vertices).all() for path in band.get_paths())
    assert all(within(box, fig.bbox, 1.0) for box in boxes(fig, everything).values())
    return fig


def boxes(fig, everything=True):
    """Where the words of all panels stand; `everything`: those of ticks and legends too."""
    found = {}
    for ax in filter(lambda ax: ax.get_visible(), fig.axes):
        texts = [*ax.texts, ax.title]
        if ax.axison:
            texts += [ax.xaxis.label, ax.yaxis.label]
            for axis, ends in ((ax.xaxis, ax.get_xlim()), (ax.yaxis, ax.get_ylim())):
                inner = [t.label1 for t in axis.get_major_ticks() if min(ends) <= t.get_loc() <= max(ends)]
                texts += [label for label in inner if everything and label.get_visible()]
        found.update({id(text): text for text in texts if text.get_text() and text.get_visible()})
    legends = [*fig.legends, *(ax.get_legend() for ax in fig.axes if ax.get_legend())]
    for key in legends if everything else ():
        found.update({id(text): text for text in key.get_texts()})
    return {f"{text.get_text()} {k}": text.get_window_extent() for k, text in enumerate(found.values())}


def apart(fig):
    """No word stands upon another."""
    for (one, a), (other, b) in itertools.combinations(boxes(fig).items(), 2):
        wide, high = min(a.x1, b.x1) - max(a.x0, b.x0), min(a.y1, b.y1) - max(a.y0, b.y0)
        assert wide <= 1.0 or high <= 1.0, (one, other)


def named(ax, method):
    (line,) = [line for line in ax.lines if line.get_label() == method_style(method)["label"]]
    assert same_color(line.get_color(), method_style(method)["color"])
    return line


def shuffled(table):
    return table.sample(frac=1.0, random_state=0)

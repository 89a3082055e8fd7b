"""Pictures of figures drawn before: a second run of a chapter draws nothing that has not changed."""

import hashlib
import io
import itertools
import pickle

from matplotlib.transforms import TransformNode

from companion.run.sweep import keep, load

__all__ = ["drawn"]


class _Content(pickle.Pickler):
    """Pickles a figure without the addresses of its parts, which differ from process to process."""

    def reducer_override(self, thing):
        if isinstance(thing, itertools.count):  # that of a text axis; Python 3.14 does not pickle it
            return str, (repr(thing),)
        if not isinstance(thing, TransformNode):
            return NotImplemented
        make, arguments, state, *_ = thing.__reduce_ex__(pickle.HIGHEST_PROTOCOL)
        return make, arguments, state | {"_parents": [*state["_parents"].values()]}


def drawn(kept, fig, salt, draw):
    """File -> bytes of a figure: as kept if nothing changed, else what `draw()` gives, which is kept.

    Parameters
    ----------
    kept : str or Path
        The file that keeps them.
    fig : Figure
    salt : str
        What else than the figure's content decides how it is drawn: style, versions, the code that draws.
    draw : callable
    """
    key = _key(fig, salt)
    if key is None:
        return draw()
    if (found := load(kept, key)) is not None:
        return found[0]
    files = draw()
    keep(kept, key, pickle.dumps(files))
    return files


def _key(fig, salt):
    """Hash of all that a figure holds; None if a part of it, such as a lambda, cannot be pickled."""
    content = io.BytesIO()
    try:
        _Content(content, pickle.HIGHEST_PROTOCOL).dump(fig)
    except Exception:  # from any part of the figure
        return None
    return hashlib.sha256(salt.encode() + content.getvalue()).hexdigest()

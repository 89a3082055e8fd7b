"""Pictures of figures drawn before: a second run of a chapter draws nothing that has not changed."""

import hashlib
import pickle
from pathlib import Path

from matplotlib.transforms import TransformNode

from cuelearn.core.storage import atomic_write

__all__ = ["drawn"]


class _Content(pickle.Pickler):
    """Pickles a figure without the addresses of its parts, which differ from process to process."""

    def reducer_override(self, thing):
        if not isinstance(thing, TransformNode):
            return NotImplemented
        make, arguments, state, *_ = thing.__reduce_ex__(pickle.HIGHEST_PROTOCOL)
        return make, arguments, state | {"_parents": [*state["_parents"].values()]}


class _Hash:
    """A file that is not kept."""

    def __init__(self, salt):
        self.sha256 = hashlib.sha256(salt.encode())

    def write(self, content):
        self.sha256.update(content)


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
    try:
        found, files = pickle.loads(Path(kept).read_bytes())
    except Exception:  # absent or damaged
        found, files = None, None
    if key is None or found != key:
        files = draw()
        atomic_write(kept, pickle.dumps((key, files)))
    return files


def _key(fig, salt):
    """Hash of all that a figure holds; None if a part of it, such as a lambda, cannot be pickled."""
    content = _Hash(salt)
    try:
        _Content(content, pickle.HIGHEST_PROTOCOL).dump(fig)
    except Exception:  # from any part of the figure
        return None
    return content.sha256.hexdigest()

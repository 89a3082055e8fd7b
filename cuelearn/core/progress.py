"""The one progress bar of the package."""

import sys

__all__ = ["BAR_AFTER", "progress"]

# a bar appears on runs that take longer than this many seconds
BAR_AFTER = 2.0


def progress(items=None, *, name, total=None, unit="it", verbose=False):
    """A bar on stderr over `items`, or counted up by `update`; it appears late and leaves nothing behind."""
    from tqdm.auto import tqdm  # looks for notebooks, which takes long

    return tqdm(
        items,
        desc=name,
        total=total,
        unit=unit,
        delay=BAR_AFTER,
        leave=False,
        disable=not verbose,
        file=sys.stderr,
    )

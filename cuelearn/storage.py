"""Files that appear whole or not at all."""

import os
import secrets
from pathlib import Path

__all__ = ["atomic_write"]


def atomic_write(path, content):
    """Write a file so that no reader ever sees half of it.

    The content goes to a temporary file in the same directory, which then takes the name in one step. A process killed at any
    moment leaves either the old file or the new one.

    Parameters
    ----------
    path : str or Path
        Where to write. Missing directories are made.
    content : str or bytes or callable
        Text (written as UTF-8 with ``\\n``), bytes, or a function that is called with a binary file object.

    Returns
    -------
    Path
        `path`.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.tmp-{os.getpid()}-{secrets.token_hex(4)}")
    try:
        with open(temporary, "wb") as file:
            if callable(content):
                content(file)
            else:
                file.write(content.encode("utf-8") if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    return path

"""Learning from many cues: online learning and multiple kernel learning.

``kernels`` and ``core`` hold the shared mathematics, ``omcl mkl mms mktl oks`` one chapter each, ``datasets``
the data. ``experiments`` and ``plots`` are what the notebooks call; ``book`` runs these and keeps figures,
tables and verdicts. Importing ``cuelearn`` itself loads none of them.
"""

import ast as _ast
import hashlib as _hashlib
import os as _os
import sys as _sys
from fnmatch import fnmatchcase as _fnmatchcase
from functools import cache as _cache
from pathlib import Path as _Path

__version__ = "0.1.0"

#: Modules and folders that show results or set up experiments and hold no compiled code.
_NOT_COMPILED = ("__init__.py", "book/*", "experiments/*", "plots/*")


def source_hash(leave_out=(), code_only=False):
    """Fingerprint of the package's Python sources.

    Parameters
    ----------
    leave_out : sequence of str
        Names within the package, with * for any text, of files whose text does not count.
    code_only : bool
        Comments, docstrings and line breaks do not count either.

    Returns
    -------
    str
        16 hexadecimal digits. Any edit of a counted file changes them, wherever the checkout lies.
    """
    total = _hashlib.sha256()
    package = _Path(__file__).resolve().parent
    for file in sorted(package.rglob("*.py")):
        name = file.relative_to(package).as_posix()
        if not any(_fnmatchcase(name, pattern) for pattern in leave_out):
            text = _code(file.read_bytes()).encode() if code_only else file.read_bytes()
            total.update(name.encode() + b"\0" + text + b"\0")
    return total.hexdigest()[:16]


@_cache
def _code(source):
    """What a source does: its syntax tree without texts that stand alone."""
    tree = _ast.parse(source)
    for node in _ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            alone = [isinstance(n, _ast.Expr) and isinstance(n.value, _ast.Constant) for n in body]
            node.body = [n for n, text in zip(body, alone, strict=True) if not text]
    return _ast.dump(tree)


def _choose_numba_cache():
    """Point numba's cache into the checkout, keyed by the sources.

    numba does not notice an edited callee in another file, and fails where neither the package's directory
    nor the home directory can be written to. A cache directory named after the sources mends both. An
    installed package never changes under numba's feet, so only a checkout is treated so. A value that the
    user set wins.
    """
    checkout = _Path(__file__).resolve().parents[1]
    if "NUMBA_CACHE_DIR" in _os.environ or not (checkout / "pyproject.toml").is_file():
        return
    name = source_hash(leave_out=_NOT_COMPILED)
    wanted = checkout / ".cache" / "numba" / name
    try:
        wanted.mkdir(parents=True, exist_ok=True)
        if not _os.access(wanted, _os.W_OK):
            raise PermissionError(wanted)
    except OSError:  # a read-only checkout
        import tempfile

        user = _os.getuid() if hasattr(_os, "getuid") else "user"
        wanted = _Path(tempfile.gettempdir()) / f"cuelearn-numba-{user}-{name}"
        wanted.mkdir(parents=True, exist_ok=True)
    _os.environ["NUMBA_CACHE_DIR"] = str(wanted)
    if "numba" in _sys.modules:  # imported before us: it has read its environment already
        _sys.modules["numba"].config.CACHE_DIR = str(wanted)


_choose_numba_cache()

"""Learning from many cues: online learning and multiple kernel learning.

``kernels`` and ``core`` hold the shared mathematics, ``omcl mkl mms mktl oks`` one chapter each, ``datasets``
the data. ``import cuelearn`` loads none of them.
"""

import ast as _ast
import hashlib as _hashlib
import os as _os
import sys as _sys
from fnmatch import fnmatchcase as _fnmatchcase
from functools import cache as _cache
from pathlib import Path as _Path

__version__ = "0.1.0"


def source_hash(leave_out=(), code_only=False, folder=None):
    """Hash of the package's Python sources, or of another `folder`: 16 hexadecimal digits, independent of its
    location.

    Files that match a pattern of `leave_out` (names within the folder, with * for any text) are ignored; with
    `code_only` also comments, docstrings and line breaks.
    """
    total = _hashlib.sha256()
    folder = folder or _Path(__file__).resolve().parent
    for file in sorted(folder.rglob("*.py")):
        name = file.relative_to(folder).as_posix()
        if not any(_fnmatchcase(name, pattern) for pattern in leave_out):
            text = _code(file.read_bytes()).encode() if code_only else file.read_bytes()
            total.update(name.encode() + b"\0" + text + b"\0")
    return total.hexdigest()[:16]


@_cache
def _code(source):
    """Syntax tree of a source without free-standing constants."""
    tree = _ast.parse(source)
    for node in _ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            alone = [isinstance(n, _ast.Expr) and isinstance(n.value, _ast.Constant) for n in body]
            node.body = [n for n, text in zip(body, alone, strict=True) if not text]
    return _ast.dump(tree)


def _writable(folder, mode=0o777):
    """Create a folder if missing; whether it is writable."""
    from tempfile import TemporaryFile

    try:
        folder.mkdir(mode, parents=True, exist_ok=True)
        TemporaryFile(dir=folder).close()
    except OSError:
        return False
    return True


def _private(folder):
    """Whether a folder, created if missing, is writable to this user only."""
    if not _writable(folder, 0o700):
        return False
    info = folder.lstat()
    own = not hasattr(_os, "getuid") or info.st_uid == _os.getuid()
    return own and not folder.is_symlink() and not info.st_mode & 0o022


def _fallback_cache(name):
    """A folder for compiled code outside the package: in the user's cache, or a temporary one."""
    from tempfile import gettempdir

    user_cache = _os.environ.get("XDG_CACHE_HOME") or _os.path.expanduser("~/.cache")
    user = "user"
    if hasattr(_os, "getuid"):
        user = _os.getuid()
    folders = [
        _Path(user_cache) / "cuelearn" / f"numba-{name}",
        _Path(gettempdir()) / f"cuelearn-numba-{user}-{name}",
    ]
    for folder in folders:
        if folder.is_absolute() and _private(folder):  # relative if the user has no home
            return folder
    raise OSError(
        "compiled code needs a folder that this user and nobody else can write to, but neither "
        f"{folders[0]} nor {folders[1]} is one: set the environment variable NUMBA_CACHE_DIR to such a folder"
    )


def _choose_numba_cache():
    """Choose the folder of numba's cache, unless the user set one.

    In a checkout its name is a hash of the sources, because numba does not notice an edited callee in another
    file. An installed package has it next to the code. If neither is writable, a private folder is used.
    """
    if "NUMBA_CACHE_DIR" in _os.environ:
        return
    package = _Path(__file__).resolve().parent
    checkout = (package.parent / "pyproject.toml").is_file()
    if not checkout and _writable(package / "__pycache__"):
        return
    name = source_hash(leave_out=("__init__.py",))
    wanted = package.parent / ".cache" / "numba" / name
    if not checkout or not _writable(wanted):
        wanted = _fallback_cache(name)
    _os.environ["NUMBA_CACHE_DIR"] = str(wanted)
    if "numba" in _sys.modules:  # it has already read its environment
        _sys.modules["numba"].config.CACHE_DIR = str(wanted)


_choose_numba_cache()

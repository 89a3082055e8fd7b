"""What the notebooks, the runner and the tests call: experiments by chapter, drawings, figures, verdicts.

It lies beside the notebooks, which find it there; it is no part of the package ``cuelearn``.
"""

from pathlib import Path

import cuelearn

#: Where this lies.
FOLDER = Path(__file__).resolve().parent
#: The checkout, or the folder that holds a copy of the notebooks.
CHECKOUT = FOLDER.parents[1]


def source_hash(leave_out=(), code_only=False):
    """Fingerprint of the sources of the package and of the companion, less files of the latter.

    `leave_out` and `code_only` as in `cuelearn.source_hash`.
    """
    companion = cuelearn.source_hash(leave_out, code_only, FOLDER)
    return f"{cuelearn.source_hash(('__init__.py',), code_only)} {companion}"

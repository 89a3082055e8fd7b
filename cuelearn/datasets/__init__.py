"""Data with several cues: real sets bundled with the project, and simulated ones.

Every function returns a `CueData`: one matrix `X`, the classes `y`, the columns of each cue, the published split where there
is one, and the provenance. Licences, citations and checksums stand in ``data/README.md``.
"""

from ._base import CueData, DataFileError, Provenance
from .bundled import load_htad, load_letter, load_mfeat, load_mnist, load_pendigits, load_satimage, load_yeast
from .generated import make_three_class

__all__ = [
    "CueData",
    "DataFileError",
    "Provenance",
    "load_htad",
    "load_letter",
    "load_mfeat",
    "load_mnist",
    "load_pendigits",
    "load_satimage",
    "load_yeast",
    "make_three_class",
]

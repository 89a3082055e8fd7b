"""Data with several cues: bundled real sets, simulated sets, and folders of images.

A table of samples is a `CueData`; images are an `ImageData`, which `image_cues` turns into a `CueData`.
``data/README.md`` has licences, citations and checksums of the bundled sets. ``pip install "cuelearn[data]"``
brings them, except for MNIST, HTAD and yeast, which need a checkout. Modules are imported lazily.
"""

# ruff: noqa: F401
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cuelearn.datasets.ambiguous import AmbiguousData, PartialData, load_partial_labels, make_ambiguous
    from cuelearn.datasets.base import CueData, DataFileError, ImageData, Provenance
    from cuelearn.datasets.captioned import VERBS, CaptionedData, make_captioned
    from cuelearn.datasets.cues import (
        CUES,
        EMOJI_CUES,
        KIND_CUES,
        OBJECT_CUES,
        PHOTO_CUES,
        cue_kernels,
        image_cues,
    )
    from cuelearn.datasets.descriptors import BagOfWords
    from cuelearn.datasets.images import EMOJI_STYLES, EmojiData, load_emoji, load_image_folder, read_image
    from cuelearn.datasets.tables import (
        load_htad,
        load_leaves,
        load_letter,
        load_mfeat,
        load_mnist,
        load_pendigits,
        load_satimage,
        load_yeast,
        make_three_class,
    )

_NAMES = {
    "ambiguous": ("AmbiguousData", "PartialData", "load_partial_labels", "make_ambiguous"),
    "base": ("CueData", "DataFileError", "ImageData", "Provenance"),
    "captioned": ("VERBS", "CaptionedData", "make_captioned"),
    "cues": (
        *("CUES", "EMOJI_CUES", "KIND_CUES", "OBJECT_CUES", "PHOTO_CUES"),
        *("cue_kernels", "image_cues"),
    ),
    "descriptors": ("BagOfWords",),
    "images": ("EMOJI_STYLES", "EmojiData", "load_emoji", "load_image_folder", "read_image"),
    "tables": (
        *("load_htad", "load_leaves", "load_letter", "load_mfeat", "load_mnist", "load_pendigits"),
        *("load_satimage", "load_yeast", "make_three_class"),
    ),
}
_MODULE_OF = {name: module for module, names in _NAMES.items() for name in names}

__all__ = sorted(_MODULE_OF)


def __getattr__(name):
    if name in _NAMES:
        return import_module(f"{__name__}.{name}")
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    attribute = getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
    globals()[name] = attribute
    return attribute


def __dir__():
    return [*globals(), *__all__]

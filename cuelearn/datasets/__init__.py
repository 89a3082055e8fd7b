"""Data with several cues: real sets bundled with the project, simulated ones, and folders of images.

A table of samples is a `CueData`: one matrix `X`, the classes `y`, the columns of each cue, the published split where there is one,
and the provenance. Images are an `ImageData`; `image_cues` turns them into a `CueData`. Licences, citations and checksums of the
bundled sets stand in ``data/README.md``.
"""

from ._base import CueData, DataFileError, ImageData, Provenance
from .ambiguous import AmbiguousData, make_ambiguous
from .awa import AWA_TEST_CLASSES, load_awa
from .bundled import load_htad, load_letter, load_mfeat, load_mnist, load_pendigits, load_satimage, load_yeast
from .captioned import VERBS, CaptionedData, ItemPicture, make_captioned
from .cues import image_cues
from .folders import load_eth80, load_flowers17, load_idol2, load_image_folder, load_original
from .generated import make_three_class
from .kinds import ImageKinds, image_kinds, kind_kernels, letter_groups, satimage_groups, stack_kinds
from .multilabel import load_corel5k, load_scene
from .objects import make_objects, render_object
from .partial import PartialData, load_lost, load_msrcv2, load_usps
from .robot import make_robot, robot_floor

__all__ = [
    "AWA_TEST_CLASSES",
    "AmbiguousData",
    "CaptionedData",
    "CueData",
    "DataFileError",
    "ImageData",
    "ImageKinds",
    "ItemPicture",
    "PartialData",
    "Provenance",
    "VERBS",
    "image_cues",
    "image_kinds",
    "kind_kernels",
    "letter_groups",
    "load_awa",
    "load_corel5k",
    "load_eth80",
    "load_flowers17",
    "load_htad",
    "load_idol2",
    "load_image_folder",
    "load_letter",
    "load_lost",
    "load_mfeat",
    "load_mnist",
    "load_msrcv2",
    "load_original",
    "load_pendigits",
    "load_satimage",
    "load_scene",
    "load_usps",
    "load_yeast",
    "make_ambiguous",
    "make_captioned",
    "make_objects",
    "make_robot",
    "make_three_class",
    "render_object",
    "robot_floor",
    "satimage_groups",
    "stack_kinds",
]

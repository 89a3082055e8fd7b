r"""A simulated robot that drives through a floor of five rooms: the stand-in for KTH-IDOL2.

From top to bottom: the floor plan and the furniture as data, the parts that a piece of furniture is made of,
the floor put together for one session, light, the drive, the compiled camera and laser, and the two public
functions.

Everything that stands on the floor is a row of one table : an upright box, turned by any
angle, or an upright cylinder, between two heights. Camera and laser look at the same table, so what the laser
measures is what the camera sees."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numba
import numpy as np
from numba import njit
from scipy.ndimage import gaussian_filter, gaussian_filter1d

from cuelearn.datasets.robot import ROBOT_ROOMS

__all__ = ["plan", "record"]

_WEATHERS = ("cloudy", "sunny", "night")

# Streams of random numbers, each with its own generator [seed, stream, ...], so that one piece more or less
# of furniture, or frame, changes nothing else.
_COLOURS, _PLACES, _PLACES_LATER, _SMALL_THINGS, _FINISH, _DAYLIGHT, _SEQUENCE, _CAMERA_MOODS = range(8)

# ------------------------------------------------------------------------------------------------- floor plan
# All lengths in metres, x to the east, y to the north. The plan is fixed; the seed decides what stands on it.

_CEILING = 2.6
_LINTEL = 2.05  # head of a doorway

#: Inside of each room: x0, y0, x1, y1. The printer area is the open east end of the corridor.
_ROOMS = {
    "OO": (1.2, -4.6, 4.6, -0.2),
    "CR": (0.0, 0.0, 14.0, 2.2),
    "TO": (5.6, -4.6, 10.6, -0.2),
    "KT": (3.4, 2.4, 8.4, 6.4),
    "PA": (14.0, -1.4, 18.4, 3.2),
}
#: Doorways through the corridor's walls. Half of the wall's thickness belongs to the room, half to the
#: corridor.
_DOORWAYS = {"OO": (3.35, -0.2, 4.30, 0.0), "TO": (5.95, -0.2, 6.90, 0.0), "KT": (6.90, 2.2, 7.85, 2.4)}

_WALLS = (
    (-0.2, -0.2, 3.35, 0.0),
    (4.30, -0.2, 5.95, 0.0),
    (6.90, -0.2, 14.0, 0.0),  # the corridor's south wall
    (-0.2, 0.0, 0.0, 2.2),  # its west end
    (-0.2, 2.2, 6.90, 2.4),
    (7.85, 2.2, 14.0, 2.4),  # its north wall
    (1.0, -4.6, 1.2, -0.2),
    (4.6, -4.6, 4.8, -0.2),
    (1.0, -4.8, 4.8, -4.6),  # one-person office
    (5.4, -4.6, 5.6, -0.2),
    (10.6, -4.6, 10.8, -0.2),
    (5.4, -4.8, 10.8, -4.6),  # two-person office
    (3.2, 2.4, 3.4, 6.4),
    (8.4, 2.4, 8.6, 6.4),
    (3.2, 6.4, 8.6, 6.6),  # kitchen
    (13.8, -1.4, 14.0, -0.2),
    (13.8, 2.4, 14.0, 3.2),  # printer area: west, beside the corridor
    (13.8, -1.6, 18.6, -1.4),
    (13.8, 3.2, 18.6, 3.4),
    (18.4, -1.4, 18.6, 3.2),  # south, north, east
)

#: Lamps in the ceiling: room, x, y.
_LAMPS = (
    ("OO", 2.9, -1.5),
    ("OO", 2.9, -3.3),
    ("CR", 1.5, 1.1),
    ("CR", 4.5, 1.1),
    ("CR", 7.5, 1.1),
    ("CR", 10.5, 1.1),
    ("CR", 13.0, 1.1),
    ("TO", 6.9, -2.4),
    ("TO", 9.3, -2.4),
    ("KT", 4.9, 4.4),
    ("KT", 7.0, 4.4),
    ("PA", 15.2, 0.9),
    ("PA", 17.3, 0.9),
)
_LAMP_HALF = (0.6, 0.15)  # half sides of the luminous panel


class _Item(NamedTuple):
    """A piece of furniture, or something on a wall.

    Attributes
    ----------
    room, kind : str
    x, y : float
        The middle of its back, for what stands against a wall; its middle, for what stands free (`_FREE`).
    turn : float
        Degrees, counter-clockwise; 0 faces north, 90 west, 180 south, -90 east.
    size : tuple
        Width, depth and height, or what its kind needs.
    loose : float
        Range of the seed's displacement: along the wall, or in both directions and (a radian per metre) in
        angle where free.
    sessions : str
        ``"12"``, or ``"1"`` if gone by the second session, ``"2"`` if new in it.
    moved : tuple
        Displacement x, y and turn in the second session. None: a loose thing, displaced anew by the seed.
    """

    room: str
    kind: str
    x: float
    y: float
    turn: float
    size: tuple = ()
    loose: float = 0.05
    sessions: str = "12"
    moved: tuple | None = (0.0, 0.0, 0.0)


_FREE = ("chair", "stool", "round table", "bin", "plant", "extinguisher", "exit sign")

_ITEMS = (
    # one-person office
    _Item("OO", "window", 2.9, -4.6, 0, (2.2, 0.95, 2.15), 0),
    _Item("OO", "radiator", 3.3, -4.6, 0, (1.2,), 0),
    _Item("OO", "door leaf", 4.34, -0.22, -86, (0.9,), 0),
    _Item("OO", "desk", 2.25, -4.42, 0, (1.6, 0.75, 0.73), 0.12),
    _Item("OO", "chair", 2.3, -3.45, 170, (), 0.12, moved=None),
    _Item("OO", "bookshelf", 1.2, -2.15, -90, (0.9, 0.34, 2.0)),
    _Item("OO", "bookshelf", 1.2, -3.1, -90, (0.9, 0.34, 2.0), sessions="1"),
    _Item("OO", "cupboard", 1.2, -3.15, -90, (0.8, 0.42, 1.25), sessions="2"),
    _Item("OO", "cupboard", 2.1, -0.2, 180, (0.9, 0.42, 1.25), 0.15),
    _Item("OO", "bin", 3.5, -4.2, 0, (0.15, 0.35), 0.1, moved=None),
    _Item("OO", "chair", 4.2, -3.9, 60, (), 0.1, moved=None),
    _Item("OO", "whiteboard", 4.6, -2.5, 90, (1.6, 0.9, 1.95), 0.15),
    _Item("OO", "poster", 3.0, -0.2, 180, (0.5, 1.1, 1.8), 0.08),
    _Item("OO", "poster", 1.2, -1.2, -90, (0.6, 1.0, 1.85), 0.08),
    _Item("OO", "plant", 4.3, -4.3, 0, (0.16, 1.2), 0.05, sessions="2"),
    # corridor
    _Item("CR", "window", 0.0, 1.1, -90, (1.3, 0.6, 2.2), 0),
    _Item("CR", "closed door", 1.9, 2.2, 180, (0.95,), 0),
    _Item("CR", "closed door", 9.9, 2.2, 180, (0.95,), 0),
    _Item("CR", "closed door", 12.6, 2.2, 180, (0.95,), 0),
    _Item("CR", "closed door", 12.2, 0.0, 0, (0.95,), 0),
    _Item("CR", "closed door", 0.8, 0.0, 0, (0.95,), 0),
    _Item("CR", "noticeboard", 8.4, 0.0, 0, (1.5, 1.0, 1.9), 0.2),
    _Item("CR", "poster", 4.6, 2.2, 180, (0.7, 1.0, 1.9), 0.2),
    _Item("CR", "poster", 5.6, 2.2, 180, (0.7, 1.0, 1.9), 0.15),
    _Item("CR", "poster", 8.7, 2.2, 180, (0.7, 1.0, 1.9), 0.15),
    _Item("CR", "poster", 2.3, 0.0, 0, (0.7, 1.0, 1.9), 0.15),
    _Item("CR", "poster", 11.0, 0.0, 0, (0.7, 1.0, 1.9), 0.15, sessions="2"),
    _Item("CR", "cupboard", 9.9, 0.0, 0, (1.2, 0.36, 1.1), 0.2, moved=(0.4, 0.0, 0.0)),
    _Item("CR", "extinguisher", 5.05, 0.13, 0, (0.08, 0.25, 0.8), 0),
    _Item("CR", "plant", 0.35, 1.9, 0, (0.16, 1.3), 0.04),
    _Item("CR", "chair", 3.1, 1.88, 180, (), 0.05, sessions="1"),
    _Item("CR", "bookshelf", 11.2, 2.2, 180, (0.9, 0.3, 1.6), 0.1, sessions="2"),
    _Item("CR", "exit sign", 13.6, 1.1, 90, (), 0),
    # two-person office
    _Item("TO", "window", 7.0, -4.6, 0, (1.9, 0.95, 2.15), 0),
    _Item("TO", "window", 9.3, -4.6, 0, (1.9, 0.95, 2.15), 0),
    _Item("TO", "radiator", 8.2, -4.6, 0, (1.2,), 0),
    _Item("TO", "door leaf", 5.92, -0.22, -94, (0.9,), 0),
    _Item("TO", "desk", 7.0, -4.42, 0, (1.6, 0.75, 0.73), 0.12),
    _Item("TO", "chair", 7.05, -3.45, 190, (), 0.12, moved=None),
    _Item("TO", "desk", 10.6, -2.5, 90, (1.6, 0.75, 0.73), 0.12, moved=(0.0, -0.45, 0.0)),
    _Item("TO", "chair", 9.6, -2.9, -90, (), 0.12, moved=None),
    _Item("TO", "bookshelf", 5.6, -2.2, -90, (0.9, 0.34, 2.0)),
    _Item("TO", "bookshelf", 5.6, -3.15, -90, (0.9, 0.34, 2.0)),
    _Item("TO", "bookshelf", 9.1, -0.2, 180, (0.9, 0.34, 2.0), 0.1, sessions="1"),
    _Item("TO", "cupboard", 9.0, -0.2, 180, (0.9, 0.34, 1.25), 0.1, sessions="2"),
    _Item("TO", "cupboard", 10.1, -0.2, 180, (0.8, 0.42, 1.25), 0.05),
    _Item("TO", "plant", 10.25, -4.2, 0, (0.16, 1.3), 0.05, sessions="1"),
    _Item("TO", "bin", 8.4, -4.15, 0, (0.15, 0.35), 0.12, moved=None),
    _Item("TO", "poster", 10.6, -1.3, 90, (0.6, 1.0, 1.85), 0.1),
    _Item("TO", "poster", 7.6, -0.2, 180, (0.6, 1.0, 1.85), 0.1),
    _Item("TO", "whiteboard", 5.6, -1.2, -90, (0.8, 1.0, 1.9), 0.03),
    # kitchen
    _Item("KT", "window", 6.75, 6.4, 180, (1.7, 1.15, 2.15), 0),
    _Item("KT", "door leaf", 7.89, 2.42, 84, (0.9,), 0),
    _Item("KT", "tiles", 5.85, 6.4, 180, (3.3, 0.9, 1.42), 0),
    _Item("KT", "counter", 5.85, 6.4, 180, (3.3, 0.6, 0.9), 0),
    _Item("KT", "wall cupboard", 4.95, 6.4, 180, (1.5, 0.34, 1.45, 2.1), 0),
    _Item("KT", "fridge", 3.8, 6.38, 180, (0.64, 0.62, 1.8), 0),
    _Item("KT", "round table", 4.55, 3.95, 0, (0.5, 0.74), 0.06, moved=(-0.1, 0.3, 0.0)),
    _Item("KT", "stool", 4.5, 4.75, 0, (), 0.1, moved=None),
    _Item("KT", "stool", 3.85, 3.7, 0, (), 0.1, moved=None),
    _Item("KT", "stool", 4.75, 3.15, 0, (), 0.1, moved=None),
    _Item("KT", "cupboard", 8.4, 4.6, 90, (1.0, 0.4, 0.9), 0.15, sessions="2"),
    _Item("KT", "bin", 8.15, 6.0, 0, (0.2, 0.6), 0.05),
    _Item("KT", "poster", 8.4, 5.4, 90, (0.6, 1.0, 1.8), 0.1),
    _Item("KT", "noticeboard", 3.4, 4.6, -90, (1.0, 1.0, 1.8), 0.2),
    _Item("KT", "poster", 5.6, 2.4, 0, (0.6, 1.0, 1.8), 0.2),
    # printer area
    _Item("PA", "window", 18.4, 2.0, 90, (1.6, 0.95, 2.15), 0),
    _Item("PA", "window", 17.2, -1.4, 0, (1.8, 0.95, 2.15), 0),
    _Item("PA", "copier", 18.4, 0.4, 90, (1.2, 0.7, 1.05), 0.08),
    _Item("PA", "printer table", 15.2, 3.2, 180, (1.5, 0.62, 0.72), 0.1, moved=(0.5, 0.0, 0.0)),
    _Item("PA", "pigeonholes", 15.0, -1.4, 0, (1.2, 0.35, 1.7), 0.1),
    _Item("PA", "sofa", 16.7, -1.4, 0, (1.6, 0.8, 0.8), 0.1, sessions="1"),
    _Item("PA", "cupboard", 16.4, -1.4, 0, (0.9, 0.42, 1.25), 0.1, sessions="2"),
    _Item("PA", "bin", 16.9, 2.9, 0, (0.2, 0.65), 0.05, moved=(0.6, 0.0, 0.0)),
    _Item("PA", "bin", 17.4, 2.9, 0, (0.2, 0.65), 0.05, moved=(0.6, 0.0, 0.0)),
    _Item("PA", "plant", 18.05, -1.05, 0, (0.18, 1.4), 0.04, moved=(-3.65, 3.9, 0.0)),
    _Item("PA", "noticeboard", 16.6, 3.2, 180, (1.4, 1.0, 1.9), 0.2),
    _Item("PA", "poster", 14.0, -0.8, -90, (0.6, 1.0, 1.85), 0.08),
)

# -------------------------------------------------------------------------------------------------- materials

_PLAIN, _WOOD, _BOOKS, _SCREEN, _TILES, _CARPET, _LINO, _POSTER, _FABRIC, _PANELS = range(10)
_BOARD, _WINDOW, _DOOR, _MACHINE, _LEAVES, _PAPERS, _NOTICES, _GLOW, _RADIATOR, _HOLES = range(10, 20)

_BOX, _CYLINDER = 0, 1

# Columns of a scene: centre, cosine and sine of the turn, half width and half depth, radius of the circle
# round the outline, bottom and top, shape, material, colour, seed, and the index of the room it stands in, -1
# for walls.
_X, _Y, _COS, _SIN, _HX, _HY, _RADIUS, _Z0, _Z1, _SHAPE, _MATERIAL = range(11)
_RED, _GREEN, _BLUE, _SEED, _ROOM = range(11, 16)


def _palette(rng):
    """Draw the building's colours, as reflectances (linear)."""

    def colour(red, green, blue, spread):
        shown = np.array([red, green, blue]) / 255 * (
            1 + spread * rng.uniform(-1, 1)
        ) + 0.3 * spread * rng.uniform(-1, 1, 3)
        return np.clip(shown, 0.02, 0.95) ** 2.2

    return {
        "paint": colour(228, 224, 212, 0.03),
        "kitchen paint": colour(230, 222, 198, 0.03),
        "ceiling": colour(235, 235, 230, 0.02),
        "carpet": colour(104, 112, 128, 0.10),
        "lino": colour(150, 138, 120, 0.08),
        "kitchen floor": colour(168, 150, 132, 0.08),
        "wood": colour(196, 158, 110, 0.08),
        "dark wood": colour(140, 98, 62, 0.08),
        "door": colour(176, 134, 88, 0.08),
        "cabinet": colour(190, 190, 184, 0.06),
        "kitchen front": colour(206, 204, 196, 0.06),
        "white": colour(238, 238, 234, 0.02),
        "frame": colour(215, 212, 205, 0.03),
        "black": colour(44, 44, 48, 0.10),
        "steel": colour(165, 168, 172, 0.05),
        "fabric": colour(58, 76, 126, 0.25),
        "sofa": colour(138, 54, 48, 0.25),
        "stool": colour(178, 60, 44, 0.25),
        "machine": colour(198, 198, 190, 0.04),
        "leaves": colour(62, 102, 46, 0.15),
        "pot": colour(150, 84, 58, 0.15),
        "cork": colour(178, 136, 88, 0.08),
        "red": colour(190, 36, 30, 0.05),
        "blue bin": colour(52, 86, 140, 0.20),
        "green": colour(40, 190, 90, 0.05),
    }


# A part: shape, x, y, half width, half depth (local; y forward), bottom, top, material, colour. Cylinders:
# half width = radius.


def _parts(item, rng):
    """Take a piece of furniture apart; `rng` decides the small things on it."""
    kind, size, u = item.kind, item.size, rng.uniform
    corners = [(i, j) for i in (-1, 1) for j in (-1, 1)]
    if kind in ("window", "poster", "whiteboard", "noticeboard", "tiles"):
        material, colour, thick = {
            "window": (_WINDOW, "frame", 0.02),
            "poster": (_POSTER, "white", 0.005),
            "whiteboard": (_BOARD, "white", 0.015),
            "noticeboard": (_NOTICES, "cork", 0.015),
            "tiles": (_TILES, "white", 0.005),
        }[kind]
        w, bottom, top = size
        return [(_BOX, 0, thick, w / 2, thick, bottom, top, material, colour)]
    if kind == "closed door":
        return [(_BOX, 0, 0.02, size[0] / 2, 0.02, 0, 2.05, _DOOR, "door")]
    if kind == "door leaf":
        return [(_BOX, size[0] / 2, 0.02, size[0] / 2, 0.02, 0, 2.03, _DOOR, "door")]
    if kind == "radiator":
        return [(_BOX, 0, 0.07, size[0] / 2, 0.05, 0.15, 0.75, _RADIATOR, "white")]
    if kind == "exit sign":
        return [(_BOX, 0, 0, 0.2, 0.03, 2.2, 2.38, _GLOW, "green")]
    if kind == "extinguisher":
        return [(_CYLINDER, 0, 0, size[0], 0, size[1], size[2], _PLAIN, "red")]
    if kind == "bin":
        colour = ("cabinet", "blue bin", "black")[int(rng.integers(3))]
        return [(_CYLINDER, 0, 0, size[0], 0, 0, size[1], _PLAIN, colour)]
    if kind == "plant":
        radius, height = size
        return [
            (_CYLINDER, 0, 0, radius, 0, 0, 0.32, _PLAIN, "pot"),
            (_CYLINDER, 0, 0, 0.02, 0, 0.32, 0.6, _PLAIN, "dark wood"),
            (_CYLINDER, 0, 0, radius + 0.08, 0, 0.5, height - 0.25, _LEAVES, "leaves"),
            (_CYLINDER, 0.03, 0, radius, 0, height - 0.25, height, _LEAVES, "leaves"),
        ]
    if kind == "chair":
        return [
            (_BOX, 0, 0, 0.23, 0.23, 0.43, 0.49, _FABRIC, "fabric"),
            (_BOX, 0, -0.24, 0.21, 0.03, 0.56, 0.98, _FABRIC, "fabric"),
            (_BOX, 0, -0.24, 0.03, 0.02, 0.40, 0.60, _PLAIN, "black"),
            (_CYLINDER, 0, 0, 0.035, 0, 0.05, 0.43, _PLAIN, "black"),
            (_BOX, 0, 0, 0.28, 0.03, 0.03, 0.08, _PLAIN, "black"),
            (_BOX, 0, 0, 0.03, 0.28, 0.03, 0.08, _PLAIN, "black"),
        ]
    if kind == "stool":
        return [
            (_CYLINDER, 0, 0, 0.18, 0, 0.42, 0.47, _PLAIN, "stool"),
            *[(_BOX, 0.13 * i, 0.13 * j, 0.014, 0.014, 0, 0.42, _PLAIN, "steel") for i, j in corners],
        ]
    if kind == "round table":
        radius, height = size
        return [
            (_CYLINDER, 0, 0, radius, 0, height - 0.035, height, _WOOD, "wood"),
            (_CYLINDER, 0, 0, 0.05, 0, 0.03, height - 0.035, _PLAIN, "steel"),
            (_CYLINDER, 0, 0, 0.26, 0, 0, 0.03, _PLAIN, "steel"),
            (_CYLINDER, u(-0.2, 0.2), u(-0.2, 0.2), 0.04, 0, height, height + 0.1, _PLAIN, "red"),
            (_CYLINDER, u(-0.2, 0.2), u(-0.2, 0.2), 0.04, 0, height, height + 0.1, _PLAIN, "white"),
            (_BOX, u(-0.2, 0.2), u(-0.2, 0.2), 0.13, 0.1, height, height + 0.015, _PAPERS, "white"),
        ]
    if kind in ("bookshelf", "cupboard", "fridge", "pigeonholes", "wall cupboard"):
        w, d = size[:2]
        bottom, top = size[2:] if kind == "wall cupboard" else (0, size[2])
        material, colour = {
            "bookshelf": (_BOOKS, "wood"),
            "cupboard": (_PANELS, "cabinet"),
            "fridge": (_PANELS, "white"),
            "pigeonholes": (_HOLES, "wood"),
            "wall cupboard": (_PANELS, "kitchen front"),
        }[kind]
        parts = [(_BOX, 0, d / 2, w / 2, d / 2, bottom, top, material, colour)]
        if kind == "cupboard":  # with something on it
            x = u(-0.6, 0.6) * (w / 2 - 0.2)
            parts += [
                (_BOX, x, d / 2, 0.16, 0.12, top, top + u(0.08, 0.3), _PAPERS, "white"),
                (_CYLINDER, -x - 0.1, d / 2, 0.07, 0, top, top + u(0.1, 0.25), _PLAIN, "pot"),
            ]
        return parts
    if kind == "desk":
        w, d, h = size
        screen, pile = u(-0.25, 0.1), u(0.45, 0.6)
        mug = ("red", "white", "blue bin")[int(rng.integers(3))]
        return [
            (_BOX, 0, d / 2, w / 2, d / 2, h - 0.04, h, _WOOD, "wood"),
            (_BOX, -w / 2 + 0.04, d / 2, 0.02, d / 2 - 0.04, 0, h - 0.04, _PLAIN, "steel"),
            (_BOX, w / 2 - 0.04, d / 2, 0.02, d / 2 - 0.04, 0, h - 0.04, _PLAIN, "steel"),
            (_BOX, 0, 0.08, w / 2 - 0.08, 0.01, 0.25, h - 0.04, _PLAIN, "cabinet"),
            (_BOX, w / 2 - 0.3, d / 2, 0.21, d / 2 - 0.1, 0.06, 0.6, _PANELS, "cabinet"),
            (_CYLINDER, screen, 0.22, 0.1, 0, h, h + 0.08, _PLAIN, "black"),
            (_BOX, screen, 0.22, 0.22, 0.03, h + 0.08, h + 0.42, _SCREEN, "black"),
            (_BOX, screen, 0.52, 0.22, 0.08, h, h + 0.03, _PLAIN, "black"),
            (_BOX, pile, 0.35, 0.11, 0.15, h, h + u(0.03, 0.25), _PAPERS, "white"),
            (_BOX, u(-0.65, -0.5), 0.45, 0.12, 0.16, h, h + u(0.01, 0.1), _PAPERS, "white"),
            (_CYLINDER, u(0.2, 0.35), 0.5, 0.04, 0, h, h + 0.1, _PLAIN, mug),
        ]
    if kind == "counter":
        w, d, h = size
        return [
            (_BOX, 0, d / 2, w / 2, d / 2, 0.1, h - 0.04, _PANELS, "kitchen front"),
            (_BOX, 0, d / 2 - 0.03, w / 2, d / 2 - 0.03, 0, 0.1, _PLAIN, "black"),
            (_BOX, 0, d / 2 + 0.01, w / 2, d / 2 + 0.01, h - 0.04, h, _PLAIN, "steel"),
            (_CYLINDER, -0.6, 0.12, 0.015, 0, h, h + 0.28, _PLAIN, "steel"),
            (_BOX, 1.1 + u(-0.1, 0.1), 0.25, 0.24, 0.18, h, h + 0.28, _MACHINE, "black"),
            (_BOX, 0.4 + u(-0.15, 0.15), 0.22, 0.1, 0.13, h, h + 0.34, _MACHINE, "black"),
            (_CYLINDER, 0.1 + u(-0.1, 0.1), 0.3, 0.08, 0, h, h + 0.22, _PLAIN, "steel"),
            (_CYLINDER, -1.1 + u(-0.2, 0.2), 0.3, 0.05, 0, h, h + 0.25, _PLAIN, "green"),
            (_BOX, -1.4, 0.3, 0.15, 0.2, h, h + u(0.05, 0.2), _PAPERS, "white"),
        ]
    if kind == "printer table":
        w, d, h = size
        x, a, b = u(-0.35, -0.2), w / 2 - 0.04, d / 2 - 0.04
        return [
            (_BOX, 0, d / 2, w / 2, d / 2, h - 0.03, h, _WOOD, "wood"),
            *[(_BOX, i * a, d / 2 + j * b, 0.02, 0.02, 0, h - 0.03, _PLAIN, "steel") for i, j in corners],
            (_BOX, x, d / 2, 0.25, 0.22, h, h + 0.36, _MACHINE, "machine"),
            (_BOX, x + 0.7, d / 2, 0.16, 0.12, h, h + u(0.05, 0.2), _PAPERS, "white"),
            (_BOX, 0.1, d / 2, 0.3, 0.2, 0.0, 0.3, _PAPERS, "cork"),
        ]
    if kind == "copier":
        w, d, h = size
        return [
            (_BOX, 0, d / 2, w / 2 - 0.2, d / 2, 0.05, h, _MACHINE, "machine"),
            (_BOX, 0.05, d / 2, w / 2 - 0.25, d / 2 - 0.05, h, h + 0.12, _PLAIN, "machine"),
            (_BOX, w / 2 - 0.1, d / 2, 0.1, d / 2 - 0.1, 0.6, 0.65, _PLAIN, "machine"),
            (_BOX, -0.25, d - 0.1, 0.12, 0.1, h, h + 0.05, _SCREEN, "black"),
        ]
    if kind == "sofa":
        w, d, h = size
        return [
            (_BOX, 0, d / 2, w / 2, d / 2, 0.08, 0.42, _FABRIC, "sofa"),
            (_BOX, 0, 0.1, w / 2, 0.1, 0.42, h, _FABRIC, "sofa"),
            (_BOX, -w / 2 + 0.09, d / 2, 0.09, d / 2, 0.42, 0.62, _FABRIC, "sofa"),
            (_BOX, w / 2 - 0.09, d / 2, 0.09, d / 2, 0.42, 0.62, _FABRIC, "sofa"),
        ]
    raise KeyError(kind)


# --------------------------------------------------------------------------------------- the floor, furnished


class _Floor(NamedTuple):
    """The floor in one session, ready for camera and laser."""

    scene: np.ndarray  # (n, 16) float64, one row per part
    items: list  # `_Item` with its final x, y and turn
    owner: np.ndarray  # (n,) the item that each row of the scene is a part of, -1 for walls
    windows: (
        np.ndarray
    )  # (n, 8): axis (0: a wall x = const), position, from, to, bottom, top, side the room lies on, room
    paint: np.ndarray  # (5, 3, 3): walls, floor, ceiling of each room
    shade: np.ndarray  # (ny, nx) float64: how much furniture leaves of the light on the floor
    texture: int  # seed of walls and floors


_SHADE_CELL = 0.04
_SHADE_ORIGIN = (-0.4, -5.0)
_SHADE_SHAPE = (296, 480)


def _placed(item, seed, number, session):
    """Where the seed puts an item in a session."""

    def displaced(rng, loose):
        if item.kind in _FREE:
            return (*rng.uniform(-loose, loose, 2), math.degrees(2 * rng.uniform(-loose, loose)))
        along = rng.uniform(-loose, loose)
        angle = math.radians(item.turn)
        return along * math.cos(angle), along * math.sin(angle), 0.0

    dx, dy, turn = displaced(np.random.default_rng([seed, _PLACES, number]), item.loose)
    if session == 2:
        if item.moved is None:
            dx, dy, turn = displaced(np.random.default_rng([seed, _PLACES_LATER, number]), 1.5 * item.loose)
        else:
            dx, dy, turn = dx + item.moved[0], dy + item.moved[1], turn + item.moved[2]
    return item._replace(x=item.x + dx, y=item.y + dy, turn=item.turn + turn)


def _furnish(seed, session):
    """Put the floor together as it is in a session."""
    palette = _palette(np.random.default_rng([seed, _COLOURS]))
    solid = [(*wall, 0.0) for wall in _WALLS] + [(*doorway, _LINTEL) for doorway in _DOORWAYS.values()]
    rows = []
    for x0, y0, x1, y1, z0 in solid:
        place = (x0 + x1) / 2, (y0 + y1) / 2, 0.0, (x1 - x0) / 2, (y1 - y0) / 2
        rows.append(_row(*place, z0, _CEILING, palette["paint"]))

    items, windows, owner = [], [], [-1] * len(rows)
    for number, item in enumerate(_ITEMS):
        if str(session) not in item.sessions:
            continue
        item = _placed(item, seed, number, session)
        items.append(item)
        rng = np.random.default_rng([seed, _SMALL_THINGS, number, session])
        angle = math.radians(item.turn)
        c, s = math.cos(angle), math.sin(angle)
        for shape, x, y, hx, hy, z0, z1, material, colour in _parts(item, rng):
            place = item.x + c * x - s * y, item.y + s * x + c * y
            texture, room = int(rng.integers(1, 1 << 30)), ROBOT_ROOMS.index(item.room)
            rows.append(_row(*place, angle, hx, hy, z0, z1, palette[colour], shape, material, texture, room))
            owner.append(len(items) - 1)
        if item.kind == "window":
            facing_x = abs(s) > 0.5  # the wall runs along y
            middle, position = (item.y, item.x) if facing_x else (item.x, item.y)
            side = round(-s) if facing_x else round(c)
            w, z0, z1 = item.size
            windows.append(
                (0 if facing_x else 1, position, middle - w / 2, middle + w / 2, z0, z1, side, room)
            )

    office = palette["paint"], palette["carpet"], palette["ceiling"]
    passage = palette["paint"], palette["lino"], palette["ceiling"]
    kitchen = palette["kitchen paint"], palette["kitchen floor"], palette["ceiling"]
    scene = np.array(rows)
    return _Floor(
        scene=scene,
        items=items,
        owner=np.array(owner),
        windows=np.array(windows),
        paint=np.array([office, passage, office, kitchen, passage]),
        shade=_floor_shade(scene),
        texture=int(np.random.default_rng([seed, _FINISH]).integers(1, 1 << 30)),
    )


def _row(x, y, angle, hx, hy, z0, z1, colour, shape=_BOX, material=_PLAIN, texture=0, room=-1):
    radius = hx if shape == _CYLINDER else math.hypot(hx, hy)
    c, s = math.cos(angle), math.sin(angle)
    return (x, y, c, s, hx, hy, radius, z0, z1, shape, material, *colour, texture, room)


def _floor_shade(scene):
    """Darken the floor under and beside what stands on it: blurred outlines, weaker the higher they begin."""
    shade = np.zeros(_SHADE_SHAPE)
    y = _SHADE_ORIGIN[1] + _SHADE_CELL * (np.arange(_SHADE_SHAPE[0])[:, None] + 0.5)
    x = _SHADE_ORIGIN[0] + _SHADE_CELL * (np.arange(_SHADE_SHAPE[1])[None, :] + 0.5)
    for row in scene[scene[:, _Z0] < 1.0]:
        dx, dy = x - row[_X], y - row[_Y]
        if row[_SHAPE] == _CYLINDER:
            inside = dx**2 + dy**2 <= row[_HX] ** 2
        else:
            across, forward = dx * row[_COS] + dy * row[_SIN], dy * row[_COS] - dx * row[_SIN]
            inside = (abs(across) <= row[_HX]) & (abs(forward) <= row[_HY])
        shade = np.where(inside, np.maximum(shade, math.exp(-row[_Z0] / 0.7)), shade)
    return 1 - 0.55 * gaussian_filter(shade, 2.0) - 0.35 * gaussian_filter(shade, 7.0)


# ------------------------------------------------------------------------------------------------------ light


class _Light(NamedTuple):
    """Light in one weather and session; 1 is roughly what a white wall sends back under an office's lamps."""

    lamps: np.ndarray  # (n, 7): x, y, intensity RGB, room, on
    windows: (
        np.ndarray
    )  # (n, 17): the columns of `_Floor.windows`, radiance RGB, middle x, y, z, unit normal x, y, area
    first: np.ndarray  # (2, 6): where each room's lamps and windows begin in their tables
    ambient: np.ndarray  # (5, 3): what the walls throw back and forth
    sky: np.ndarray  # (2, 3): what is seen through a window, above and below the skyline
    sun: np.ndarray  # (6,): unit direction in the plan, rise per metre, irradiance RGB
    exposure_time: float  # seconds, for motion blur
    texture: int  # seed of the view from the windows


_OFFICE_LAMP, _PASSAGE_LAMP, _KITCHEN_LAMP = (1.0, 0.82, 0.58), (1.0, 0.90, 0.70), (1.0, 0.80, 0.54)
_LAMP_COLOUR = {
    "OO": _OFFICE_LAMP,
    "CR": _PASSAGE_LAMP,
    "TO": _OFFICE_LAMP,
    "KT": _KITCHEN_LAMP,
    "PA": _PASSAGE_LAMP,
}
_REFLECTANCE = 0.55  # mean of a room, for the light thrown back and forth


def _lit(floor, seed, weather, session):
    """Work out the light of a weather: sky, sun, lamps, and what the rooms' surfaces make of it."""
    rng = np.random.default_rng([seed, _DAYLIGHT, _WEATHERS.index(weather), session])
    switched_on = rng.random(5) < 0.35  # somebody left the lamps on, on a dull day
    level = rng.uniform(0.85, 1.15)
    sun = np.zeros(6)
    if weather == "cloudy":
        sky, below = level * np.array([1.35, 1.50, 1.70]), level * np.array([0.50, 0.56, 0.58])
    elif weather == "sunny":
        sky, below = level * np.array([1.60, 2.05, 2.90]), level * np.array([1.50, 1.50, 1.30])
        # From the south, at any hour near noon.
        bearing, height = math.radians(rng.uniform(-125, -60)), math.radians(rng.uniform(26, 40))
        sun[:] = math.cos(bearing), math.sin(bearing), math.tan(height), *(level * np.array([7.0, 6.4, 5.2]))
    else:
        sky, below = np.array([0.010, 0.012, 0.020]), np.array([0.006, 0.006, 0.007])

    lamps = []
    for room, x, y in _LAMPS:
        on = (
            weather == "night"
            or room in ("CR", "PA")
            or (weather == "cloudy" and switched_on[ROBOT_ROOMS.index(room)])
        )
        power = (0.75 if room == "CR" else 1.0) * rng.uniform(0.9, 1.1)
        lamps.append((x, y, *(on * power * np.array(_LAMP_COLOUR[room])), ROBOT_ROOMS.index(room), float(on)))
    lamps = np.array(lamps)

    radiance = 0.7 * sky + 0.3 * below
    along_y, position, a0, a1, z0, z1, side, _ = floor.windows.T
    along_y, middle = along_y == 0, (a0 + a1) / 2
    shapes = [
        np.where(along_y, position, middle),
        np.where(along_y, middle, position),
        (z0 + z1) / 2,
        side * along_y,
        side * ~along_y,
        (a1 - a0) * (z1 - z0),
    ]
    windows = np.column_stack([floor.windows, np.tile(radiance, (len(side), 1)), *shapes])
    ambient = np.zeros((5, 3))
    for k, room in enumerate(ROBOT_ROOMS):
        x0, y0, x1, y1 = _ROOMS[room]
        surface = 2 * (x1 - x0) * (y1 - y0) + 2 * _CEILING * (x1 - x0 + y1 - y0)
        flux = math.pi * lamps[lamps[:, 5] == k, 2:5].sum(axis=0)
        for nx, ny, area in windows[windows[:, 7] == k, 14:]:
            toward = -(nx * sun[0] + ny * sun[1]) / math.sqrt(1 + sun[2] ** 2)
            flux = flux + math.pi * 0.7 * area * radiance + area * max(0.0, toward) * sun[3:]
        ambient[k] = flux / surface * _REFLECTANCE / (1 - _REFLECTANCE)
    # Some light comes in through the open doors, and the corridor and the printer area are one space.
    corridor, area = ambient[1].copy(), ambient[4].copy()
    ambient[[0, 2, 3]] += 0.06 * corridor
    ambient[1] += 0.15 * area + 0.02 * (ambient[0] + ambient[2] + ambient[3])
    ambient[4] += 0.15 * corridor
    return _Light(
        lamps=lamps,
        windows=windows,
        first=np.array([np.searchsorted(lamps[:, 5], range(6)), np.searchsorted(windows[:, 7], range(6))]),
        ambient=ambient,
        sky=np.array([sky, below]),
        sun=sun,
        exposure_time={"cloudy": 1 / 50, "sunny": 1 / 100, "night": 1 / 25}[weather],
        texture=int(rng.integers(1, 1 << 30)),
    )


# ------------------------------------------------------------------------------------------------------ drive


class _Drive(NamedTuple):
    """A drive through the rooms, finely sampled."""

    time: np.ndarray
    x: np.ndarray
    y: np.ndarray
    heading: np.ndarray


_SPEED = 0.56  # m/s on a straight stretch
_STEP = 0.02  # m between points of the finely sampled path


def _arc(centre, radii, start, end, rng):
    """Points of a turn about `centre` from angle `start` to `end` (in turns)."""
    centre = np.array(centre) + rng.uniform(-0.10, 0.10, 2)
    radii = np.array(radii) * (1 + rng.uniform(-0.08, 0.08))
    angle = 2 * np.pi * np.linspace(start, end, int(16 * abs(end - start)) + 1)
    return centre + radii * np.column_stack([np.cos(angle), np.sin(angle)])


def _via(points, spread, rng):
    points = np.array(points, dtype=float)
    return points + rng.uniform(-spread, spread, points.shape)


def _drive(rng):
    """Drive once through all rooms: both offices, printer area, kitchen, and the corridor's west end."""
    path = np.concatenate(
        [
            _arc((3.0, -1.85), (0.85, 0.95), -1.4, 0.0, rng),
            _via([(3.83, -0.7), (3.83, -0.1), (3.85, 0.4)], 0.03, rng),
            _via([(4.4, 1.05), (5.3, 1.1), (5.9, 0.9)], 0.10, rng),
            _via([(6.40, 0.35), (6.43, -0.1), (6.45, -0.7)], 0.03, rng),
            _arc((7.65, -1.85), (1.15, 0.85), 0.5, 2.25, rng),
            _via([(6.85, -0.9), (6.45, -0.6), (6.43, -0.1), (6.45, 0.35)], 0.03, rng),
            _via([(6.9, 0.95), (8.0, 1.15), (9.5, 1.15), (11.0, 1.15), (12.5, 1.1), (13.6, 0.95)], 0.15, rng),
            _arc((16.1, 0.9), (1.15, 1.05), -0.3, 1.25, rng),
            _via([(15.0, 1.7), (13.8, 1.2), (12.0, 1.15), (10.5, 1.15), (9.2, 1.15), (8.2, 1.1)], 0.15, rng),
            _via([(7.6, 1.35), (7.38, 1.9), (7.38, 2.3), (7.4, 2.9)], 0.03, rng),
            _arc((6.5, 4.2), (0.95, 0.95), 0.0, 1.72, rng),
            _via([(7.1, 3.2), (7.38, 2.8), (7.38, 2.3), (7.3, 1.9)], 0.03, rng),
            _via([(6.8, 1.3), (5.8, 1.1), (4.5, 1.05), (3.0, 0.95), (2.0, 0.85)], 0.10, rng),
            _arc((1.25, 1.1), (0.45, 0.42), 0.75, 0.25, rng),
            _via([(2.2, 1.35), (3.2, 1.15)], 0.05, rng),
        ]
    )
    along = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(path, axis=0).T))])
    fine = np.arange(0.0, along[-1], _STEP)
    # A drive is smooth: rounding off over 0.2 m keeps within the waypoints' hull, so nothing is driven into.
    x, y = (gaussian_filter1d(np.interp(fine, along, axis), 0.2 / _STEP, mode="nearest") for axis in path.T)
    dx, dy = np.gradient(x), np.gradient(y)
    heading = np.unwrap(np.arctan2(dy, dx))
    length = np.hypot(dx, dy)
    curvature = gaussian_filter1d(
        np.abs(np.gradient(heading)) / np.maximum(length, 1e-6), 0.15 / _STEP, mode="nearest"
    )
    speed = _SPEED * rng.uniform(0.92, 1.08) / (1 + 0.55 * np.minimum(curvature, 4.0))
    speed *= 1 + 0.1 * _smooth_noise(len(fine), 1.0 / _STEP, rng)
    time = np.concatenate([[0.0], np.cumsum(length[1:] / np.maximum(speed[1:], 0.05))])
    heading += math.radians(1.5) * _smooth_noise(len(fine), 0.5 / _STEP, rng)
    return _Drive(time, x, y, heading)


def _smooth_noise(n, width, rng):
    """Noise with standard deviation 1 whose values `width` points apart are nearly independent."""
    noise = gaussian_filter1d(rng.standard_normal(n), width, mode="wrap")
    return noise * math.sqrt(2 * math.sqrt(math.pi) * width)


def _room_of(x, y):
    """Class of each position; the middle of a doorway is the border."""
    room = np.full(np.shape(x), ROBOT_ROOMS.index("CR"))
    for name, (x0, _y0, x1, y1) in _ROOMS.items():
        if name == "PA":
            room[x >= x0] = ROBOT_ROOMS.index(name)
        elif name != "CR":
            # From the middle of the wall between room and corridor.
            inside = (y < -0.1) if y1 < 0 else (y > 2.3)
            room[inside & (x >= x0 - 0.1) & (x <= x1 + 0.1)] = ROBOT_ROOMS.index(name)
    return room


# ----------------------------------------------------------------------------------------------------- camera

_CAMERA_HEIGHT = 1.0
_FIELD = math.radians(68.0)  # horizontal field of view
_HALF_PLANE = math.tan(_FIELD / 2)  # half width of the image plane at distance 1
# Height of the horizon in the image, from its lower edge, as a share of its height: the camera looks up a
# little.
_HORIZON = 0.45

_LASER_HEIGHT = 0.32
_LASER_ANGLES = np.deg2rad(np.arange(-90.0, 91.0))
_LASER_RANGE = 20.0
_LASER_NOISE = 0.01  # m, standard deviation

# Of the camera at gain 1: standard deviation, and variance per unit of signal.
_READ_NOISE, _SHOT_NOISE = 0.004, 0.0004

# What a ray meets: a side of a box (front, back, right, left), its top, its underside, a cylinder's side,
# floor, ceiling.
_FRONT, _BACK, _RIGHT, _LEFT, _TOP, _UNDER, _ROUND = range(7)
_FLOOR, _ABOVE = -1, -2

# Dividing by 0 need not be checked for: every divisor is kept away from it.
_compiled = njit(cache=True, nogil=True, error_model="numpy")


@_compiled
def _hash(i, j, seed):
    """A number in [0, 1) that looks random, of three integers; the same on every machine."""
    h = (i * 374761393 + j * 668265263 + seed * 362437) & 0xFFFFFFFF
    h = ((h ^ (h >> 13)) * 1274126177) & 0xFFFFFFFF
    h = ((h ^ (h >> 15)) * 1103515245 + 12345) & 0xFFFFFFFF
    h ^= h >> 16
    return h / 4294967296.0


@_compiled
def _mottle(u, v, seed):
    """Smooth noise in [0, 1) on the unit lattice."""
    i, j = math.floor(u), math.floor(v)
    a, b = u - i, v - j
    a, b = a * a * (3 - 2 * a), b * b * (3 - 2 * b)
    i, j = int(i), int(j)
    low = _hash(i, j, seed) * (1 - a) + _hash(i + 1, j, seed) * a
    high = _hash(i, j + 1, seed) * (1 - a) + _hash(i + 1, j + 1, seed) * a
    return low * (1 - b) + high * b


@_compiled
def _sharp(cell, pixel):
    """How much of a pattern with this period a pixel of this size still shows: 1 all, 0 only the mean."""
    return min(1.0, max(0.0, 1.5 - 1.5 * pixel / cell))


@njit(cache=True, nogil=True, error_model="numpy", inline="always")  # 15 % of a frame's time
def _crossing(scene, k, ox, oy, dx, dy, reach):
    """Where a ray, seen from above, enters and leaves the outline of a part, and through which face.

    Distances may be negative (behind the origin). A part that is missed, lies behind or beyond `reach` is
    left before it is entered: (1e9, -1e9, 0).
    """
    px, py = scene[k, _X] - ox, scene[k, _Y] - oy
    along, off = px * dx + py * dy, px * dy - py * dx
    radius = scene[k, _RADIUS]
    if off > radius or off < -radius or along < -radius or along - radius > reach:
        return 1e9, -1e9, 0
    if scene[k, _SHAPE] == _CYLINDER:
        half = math.sqrt(radius * radius - off * off)
        return along - half, along + half, _ROUND
    c, s = scene[k, _COS], scene[k, _SIN]
    lx, ly = -(px * c + py * s), px * s - py * c  # the origin and the direction as the box sees them
    vx, vy = dx * c + dy * s, dy * c - dx * s
    if abs(vx) < 1e-12:
        vx = 1e-12
    if abs(vy) < 1e-12:
        vy = 1e-12
    hx, hy = scene[k, _HX], scene[k, _HY]
    ax, bx = (-hx - lx) / vx, (hx - lx) / vx
    ay, by = (-hy - ly) / vy, (hy - ly) / vy
    leave = min(max(ax, bx), max(ay, by))
    ax, ay = min(ax, bx), min(ay, by)
    if ax > ay:
        return ax, leave, (_LEFT if vx > 0 else _RIGHT)
    return ay, leave, (_BACK if vy > 0 else _FRONT)


@_compiled
def _along_ray(ox, oy, dx, dy, scene, ceiling, met, near, far, faces):
    """List the parts above and below which a ray passes, seen from above, by distance and up to the first
    wall.

    Fills the four arrays, as long as the scene, and returns how many there are. A part around the origin
    begins at distance 0.
    """
    n = 0
    wall = 1e9
    for k in range(scene.shape[0]):
        enter, leave, face = _crossing(scene, k, ox, oy, dx, dy, wall)
        if leave <= 1e-9 or enter > leave or enter > wall:
            continue
        enter = max(enter, 0.0)
        if scene[k, _Z0] <= 0.0 and scene[k, _Z1] >= ceiling:
            wall = enter
        j = n
        while j > 0 and near[j - 1] > enter:
            met[j], near[j], far[j], faces[j] = met[j - 1], near[j - 1], far[j - 1], faces[j - 1]
            j -= 1
        met[j], near[j], far[j], faces[j] = k, enter, leave, face
        n += 1
    return n


@_compiled
def _first_hit(height, rise, n, scene, ceiling, met, near, far, faces):
    """What a ray meets first: its horizontal distance, the row of the scene (or floor, ceiling), the face."""
    best, row, face = 1e9, _FLOOR, _TOP
    if rise < 0:
        best = -height / rise
    elif rise > 0:
        best, row, face = (ceiling - height) / rise, _ABOVE, _UNDER
    for j in range(n):
        if near[j] >= best:
            break
        k = met[j]
        z = height + rise * near[j]
        if z < scene[k, _Z0]:
            if rise > 0:
                t = (scene[k, _Z0] - height) / rise
                if t < far[j] and t < best:
                    best, row, face = t, k, _UNDER
        elif z > scene[k, _Z1]:
            if rise < 0:
                t = (scene[k, _Z1] - height) / rise
                if t < far[j] and t < best:
                    best, row, face = t, k, _TOP
        else:
            best, row, face = near[j], k, faces[j]
    return best, row, face


@_compiled
def _scan(x, y, heading, angles, height, reach, scene, ranges):
    """One laser scan: the distances to what first stands at the laser's height, at most `reach`."""
    for b in range(len(angles)):
        dx, dy = math.cos(heading + angles[b]), math.sin(heading + angles[b])
        nearest = reach
        for k in range(scene.shape[0]):
            if scene[k, _Z0] <= height <= scene[k, _Z1]:
                enter, leave, _ = _crossing(scene, k, x, y, dx, dy, nearest)
                if 0.0 <= enter <= leave and enter < nearest:
                    nearest = enter
        ranges[b] = nearest


# What is printed on a surface or stands in it. All take a point `u` from the left edge and `v` from the lower
# one, in metres, the surface's width and height, its colour, its seed, and the size of a pixel there; they
# return the reflectance RGB.


@_compiled
def _books(u, v, width, height, red, green, blue, seed, pixel):
    """A shelf of books and binders: cells of 2 to 5 cm, with gaps."""
    board = 0.34
    shelf = int(v / board)
    above = v - shelf * board
    if above < 0.025 or u < 0.025 or u > width - 0.025 or v > height - 0.03:
        return 0.9 * red, 0.9 * green, 0.9 * blue
    cell = 0.025 + 0.03 * _hash(shelf, 7, seed)
    i = int(u / cell)
    tall = 0.20 + 0.10 * _hash(i, shelf, seed)
    if above > tall or _hash(int(u / 0.3), shelf, seed + 5) > 0.85:
        return 0.05, 0.04, 0.035
    if 0.4 < above / tall < 0.55 and _hash(i, shelf, seed + 4) < 0.5:
        return 0.6, 0.6, 0.55  # label
    a, b, light = _hash(i, shelf, seed + 1), _hash(i, shelf, seed + 2), _hash(i, shelf, seed + 3)
    light = 0.08 + 0.5 * light * light
    shown, mean = _sharp(cell, pixel), 0.20
    red = mean + shown * (light * (0.4 + 0.9 * a) - mean)
    green = mean + shown * (light * (0.35 + 0.75 * b) - mean)
    blue = mean + shown * (light * (1.25 - 0.5 * a - 0.4 * b) - mean)
    tone = 1 - 0.5 * shown if u / cell - i < 0.12 else 1.0
    return red * tone, green * tone, blue * tone


@_compiled
def _pigeonholes(u, v, width, height, red, green, blue, seed, pixel):
    """Pigeonholes with stacks of paper in them."""
    i, j = int(u / 0.3), int(v / 0.17)
    a, b = u - 0.3 * i, v - 0.17 * j
    tone = 0.25
    if a < 0.02 or b < 0.02:
        tone = 0.95
    elif b < 0.02 + 0.12 * _hash(i, j, seed):
        red = green = 0.45 + 0.4 * _hash(i, j, seed + 1)
        blue = red * (0.8 + 0.2 * _hash(i, j, seed + 2))
        tone = 0.85 + 0.15 * _hash(0, int(v / 0.012), seed) * _sharp(0.012, pixel)
    return red * tone, green * tone, blue * tone


@_compiled
def _poster(u, v, width, height, red, green, blue, seed, pixel):
    """A poster: a title bar, and below it six fields of pictures or text."""
    margin, title = 0.03, 0.82 * height
    if u < margin or u > width - margin or v < margin or v > height - margin:
        return red, green, blue
    if v > title:
        if _mottle(u * 25, v * 10, seed) > 0.62:
            return 0.8, 0.8, 0.75  # letters
        hue, light = _hash(3, 0, seed), 0.15 + 0.35 * _hash(4, 0, seed)
        return light * (0.4 + 1.2 * hue), light * (0.5 + 0.8 * _hash(5, 0, seed)), light * (1.5 - 1.1 * hue)
    i, j = int(2.0 * u / width), int(3.0 * v / title)
    if _hash(i, j, seed + 9) < 0.5:
        a, b, m = _hash(i, j, seed + 1), _hash(i, j, seed + 2), _mottle(u * 9, v * 9, seed + 3)
        return 0.08 + 0.7 * a * m, 0.08 + 0.6 * b * m, 0.08 + 0.7 * (1 - a) * m
    tone = 1 - 0.25 * (1 - _sharp(0.04, pixel))
    if int(v / 0.02) % 2 == 0 and _hash(int(u / 0.03), int(v / 0.02), seed + 4) < 0.8:
        tone = 1 - 0.65 * _sharp(0.04, pixel)
    return red * tone, green * tone, blue * tone


@_compiled
def _whiteboard(u, v, width, height, red, green, blue, seed, pixel):
    """A whiteboard, written on here and there with black, blue and red pens."""
    if u < 0.03 or u > width - 0.03 or v < 0.03 or v > height - 0.03:
        return 0.4, 0.4, 0.42
    if abs(_mottle(u * 14, v * 18, seed) - 0.5) < 0.035 and _mottle(u * 2.2, v * 3.0, seed + 1) > 0.5:
        pen, shown = _hash(int(u * 2), int(v * 3), seed + 2), _sharp(0.05, pixel)
        red *= 1 - shown * (0.85 if pen < 0.7 else 0.2)
        green *= 1 - shown * 0.85
        blue *= 1 - shown * (0.3 if pen < 0.4 else 0.85)
    return red, green, blue


@_compiled
def _notices(u, v, width, height, red, green, blue, seed, pixel):
    """A board of cork with sheets of paper pinned to it, some of them coloured."""
    if u < 0.03 or u > width - 0.03 or v < 0.03 or v > height - 0.03:
        return 0.35, 0.25, 0.15
    i, j = int(u / 0.26), int(v / 0.33)
    a, b = u - 0.26 * i - 0.04 * _hash(i, j, seed), v - 0.33 * j - 0.05 * _hash(i, j, seed + 1)
    if not (0.01 < a < 0.2 and 0.01 < b < 0.27 and _hash(i, j, seed + 2) < 0.8):
        tone = 0.85 + 0.3 * _mottle(u * 60, v * 60, seed) * _sharp(0.03, pixel)
        return red * tone, green * tone, blue * tone
    light, hue = 0.5 + 0.35 * _hash(i, j, seed + 3), _hash(i, j, seed + 4)
    if int(v / 0.02) % 2 == 0 and 0.03 < a < 0.17 and b > 0.04:
        light *= 1 - 0.55 * _sharp(0.04, pixel)  # lines of text
    if hue < 0.2:
        return light, light, 0.35 * light
    if hue < 0.35:
        return 0.5 * light, light, light
    if hue < 0.5:
        return light, 0.5 * light, light
    return light, light, light


@_compiled
def _outside(u, v, height, sky, view):
    """Radiance RGB of what a window shows: sky over a skyline of trees and, at night, lit windows."""
    line = 0.35 * height + 0.25 * _mottle(u * 1.7, 0.0, view) + 0.12 * _mottle(u * 9.0, 0.0, view + 1)
    if v > line:
        lift = 0.85 + 0.3 * v / height
        return sky[0, 0] * lift, sky[0, 1] * lift, sky[0, 2] * lift
    light = 0.35 + 0.7 * _mottle(u * 12.0, v * 12.0, view + 2)
    red, green, blue = 0.8 * light * sky[1, 0], light * sky[1, 1], 0.6 * light * sky[1, 2]
    if _hash(int(u * 9), int(v * 8), view + 3) < 0.06:
        return red + 0.10, green + 0.08, blue + 0.04
    return red, green, blue


@_compiled
def _surface(material, face, u, v, size, colour, seed, pixel, sky, view):
    """What a point of a surface looks like: reflectance RGB, and radiance RGB of its own."""
    (width, height), (red, green, blue) = size, colour
    glow_r = glow_g = glow_b = 0.0
    tone = 1.0
    front = face == _FRONT
    if front and material == _BOOKS:
        red, green, blue = _books(u, v, width, height, red, green, blue, seed, pixel)
    elif front and material == _HOLES:
        red, green, blue = _pigeonholes(u, v, width, height, red, green, blue, seed, pixel)
    elif front and material == _POSTER:
        red, green, blue = _poster(u, v, width, height, red, green, blue, seed, pixel)
    elif front and material == _BOARD:
        red, green, blue = _whiteboard(u, v, width, height, red, green, blue, seed, pixel)
    elif front and material == _NOTICES:
        red, green, blue = _notices(u, v, width, height, red, green, blue, seed, pixel)
    elif front and material == _WINDOW:
        if 0.06 < u < width - 0.06 and 0.06 < v < height - 0.06 and abs(u - 0.5 * width) > 0.035:
            red = green = blue = 0.03
            glow_r, glow_g, glow_b = _outside(u, v, height, sky, view)
    elif front and material == _SCREEN:
        if 0.03 < u < width - 0.03 and 0.03 < v < height - 0.03:
            if width > 0.3 and _hash(1, 1, seed) < 0.6:  # a computer's, switched on: windows with text
                light = 0.18
                if _hash(int(u * 7), int(v * 6), seed) < 0.5:
                    light = 0.42 - 0.25 * _hash(int(u * 60), int(v * 45), seed + 1) * _sharp(0.02, pixel)
                glow_r, glow_g, glow_b = light * 0.75, light * 0.9, light * 1.15
            else:
                red, green, blue = 0.03, 0.035, 0.04
    elif front and material == _PANELS:
        across = max(1, int(width / 0.45 + 0.5))
        drawers = height < 0.7
        a, b = u / width * across, v / height * (3 if drawers else 1)
        a, b = a - math.floor(a), b - math.floor(b)
        if a < 0.025 or b < 0.025:
            tone = 0.45  # gap
        elif (0.4 < a < 0.6 and 0.7 < b < 0.8) if drawers else (0.86 < a < 0.92 and 0.45 < b < 0.6):
            tone = 0.3  # handle
        else:
            tone = 0.96 + 0.06 * _mottle(u * 5, v * 5, seed)
    elif material == _WOOD or material == _BOOKS or material == _HOLES:
        grain = _mottle(u * 4.0, v * 60.0, seed) * _sharp(0.02, pixel) + _mottle(
            u * 1.5, v * 12.0, seed + 1
        ) * _sharp(0.1, pixel)
        tone = 0.85 + 0.18 * grain
    elif material == _DOOR:
        tone = 0.9 + 0.15 * _mottle(u * 40.0, v * 2.5, seed) * _sharp(0.03, pixel)
        if width > 0.2:
            if u < 0.06 or u > width - 0.06 or v > height - 0.06:
                tone *= 0.6  # frame
            elif 1.0 < v < 1.08 and width - 0.22 < u < width - 0.08:
                red, green, blue, tone = 0.5, 0.5, 0.5, 1.0  # handle
    elif material == _TILES:
        a, b = u / 0.15, v / 0.15
        i, j = math.floor(a), math.floor(b)
        shown = _sharp(0.15, 2 * pixel)
        tone = 0.92 + 0.12 * shown * (_hash(int(i), int(j), seed) - 0.5)
        if a - i < 0.06 or b - j < 0.06:
            tone *= 1 - 0.35 * shown  # joint
    elif material == _MACHINE and face < _TOP:
        b = v / 0.22
        if front and v > height - 0.12 and 0.1 < u / width < 0.6:
            red, green, blue = 0.06, 0.06, 0.07  # panel
        elif b - math.floor(b) < 0.07:
            tone = 0.4  # trays
    elif material == _RADIATOR:
        a = u / 0.06
        if a - math.floor(a) < 0.3:
            tone = 1 - 0.4 * _sharp(0.06, pixel)
    elif material == _FABRIC:
        weave = _hash(int(u * 150), int(v * 150), seed) - 0.5
        tone = 1.0 + 0.25 * weave * _sharp(0.012, pixel) + 0.2 * (_mottle(u * 5, v * 5, seed) - 0.5)
    elif material == _LEAVES:
        leaf = _mottle(u * 16, v * 13, seed)
        tone = 0.35 + 1.4 * leaf * leaf
    elif material == _PAPERS:
        if face < _TOP:  # a pile from the side
            layer = int(v / 0.022)
            a, light = _hash(layer, 0, seed), 0.35 + 0.65 * _hash(layer, 1, seed)
            red, green, blue = red * light, green * light * (0.75 + 0.25 * a), blue * light * (0.5 + 0.5 * a)
        else:
            tone = 0.9 - 0.35 * _sharp(0.04, pixel) if int(v / 0.025) % 2 == 0 else 0.9
    elif material == _GLOW:
        glow_r, glow_g, glow_b = 0.9 * red, 0.9 * green, 0.9 * blue
    elif material == _CARPET:
        pile = _hash(int(math.floor(u * 110)), int(math.floor(v * 110)), seed) - 0.5
        tone = 1.0 + 0.36 * pile * _sharp(0.016, pixel) + 0.10 * (_mottle(u * 1.3, v * 1.3, seed + 1) - 0.5)
    elif material == _LINO:
        grain = _mottle(u * 30, v * 30, seed) - 0.5
        tone = 1.0 + 0.24 * grain * _sharp(0.06, pixel) + 0.1 * (_mottle(u * 2, v * 2, seed + 1) - 0.5)
    else:
        tone = 0.96 + 0.08 * _mottle(u * 3, v * 3, seed)
    return red * tone, green * tone, blue * tone, glow_r, glow_g, glow_b


@_compiled
def _sunlit(x, y, z, nx, ny, nz, room, windows, first, sun, scene):
    """Cosine under which the sun falls on a point through one of the room's windows; 0 in the shade."""
    norm = math.sqrt(1 + sun[2] * sun[2])
    cosine = (nx * sun[0] + ny * sun[1] + nz * sun[2]) / norm
    if cosine <= 0:
        return 0.0
    for w in range(first[1, room], first[1, room + 1]):
        if windows[w, 0] == 0.0:
            toward, t = -windows[w, 6] * sun[0], (windows[w, 1] - x) / sun[0]
            across = y + sun[1] * t
        else:
            toward, t = -windows[w, 6] * sun[1], (windows[w, 1] - y) / sun[1]
            across = x + sun[0] * t
        up = z + sun[2] * t
        if toward <= 0 or t <= 0.06:
            continue
        a0, a1 = windows[w, 2], windows[w, 3]
        if across < a0 + 0.06 or across > a1 - 0.06 or up < windows[w, 4] + 0.06 or up > windows[w, 5] - 0.06:
            continue
        if abs(across - 0.5 * (a0 + a1)) < 0.035:
            continue
        # Furniture in the way.
        for k in range(scene.shape[0]):
            if scene[k, _ROOM] == room and scene[k, _MATERIAL] != _WINDOW:
                enter, leave, _ = _crossing(scene, k, x, y, sun[0], sun[1], t)
                enter = max(enter, 0.01)
                if (
                    enter < leave
                    and z + sun[2] * leave > scene[k, _Z0]
                    and z + sun[2] * enter < scene[k, _Z1]
                ):
                    return 0.0
        return cosine
    return 0.0


@_compiled
def _irradiance(x, y, z, nx, ny, nz, room, lamps, windows, first, ambient, sun, scene):
    """Light RGB that falls on a point from its room's lamps, windows and walls, and from the sun."""
    ceiling = _CEILING
    # The ambient part is a little stronger from above than from below, and weak in the room's edges.
    edge = 1.0 + 0.2 * nz
    if nz == 0.0:
        edge -= 0.30 * 0.02 / (0.02 + z * z) + 0.25 * 0.04 / (0.04 + (ceiling - z) * (ceiling - z))
    red, green, blue = edge * ambient[room, 0], edge * ambient[room, 1], edge * ambient[room, 2]
    for k in range(first[0, room], first[0, room + 1]):
        if lamps[k, 6] == 0.0:
            continue
        dx, dy, dz = lamps[k, 0] - x, lamps[k, 1] - y, ceiling - z
        # A panel that shines downwards with the cosine; surfaces turned away get a trace from its width.
        inverse = 1.0 / math.sqrt(dx * dx + dy * dy + dz * dz + 0.15)
        facing = 0.9 * (nx * dx + ny * dy + nz * dz) * inverse + 0.1
        if facing > 0.0:
            strength = facing * (dz + 0.1) * inverse * inverse * inverse
            red += strength * lamps[k, 2]
            green += strength * lamps[k, 3]
            blue += strength * lamps[k, 4]
    for w in range(first[1, room], first[1, room + 1]):
        dx, dy, dz = windows[w, 11] - x, windows[w, 12] - y, windows[w, 13] - z
        leaving = -(dx * windows[w, 14] + dy * windows[w, 15])
        square = dx * dx + dy * dy + dz * dz + 1e-6
        inverse = 1.0 / math.sqrt(square)
        facing = 0.8 * (nx * dx + ny * dy + nz * dz) * inverse + 0.2
        if leaving > 0.0 and facing > 0.0:
            area = windows[w, 16]
            strength = area * facing * leaving * inverse / (square + 0.32 * area)
            red += strength * windows[w, 8]
            green += strength * windows[w, 9]
            blue += strength * windows[w, 10]
    if sun[3] > 0.0:
        direct = _sunlit(x, y, z, nx, ny, nz, room, windows, first, sun, scene)
        red += direct * sun[3]
        green += direct * sun[4]
        blue += direct * sun[5]
    return red, green, blue


@_compiled
def _inside(x, y, rooms):
    """Index of the room that holds a point, or of the nearest one (doorways)."""
    best, nearest = 0, 1e9
    for r in range(rooms.shape[0]):
        dx = max(rooms[r, 0] - x, 0.0, x - rooms[r, 2])
        dy = max(rooms[r, 1] - y, 0.0, y - rooms[r, 3])
        if dx + dy < nearest:
            best, nearest = r, dx + dy
    return best


class _World(NamedTuple):
    """What the camera needs of a `_Floor`, and the rooms' rectangles."""

    scene: np.ndarray
    rooms: np.ndarray
    paint: np.ndarray
    shade: np.ndarray
    texture: int


@_compiled
def _render(x, y, heading, world, light, image):
    """Render one frame: radiance RGB, float32 (height, width, 3).

    The image plane is upright, so that every column of the image lies in one vertical plane: rays are traced
    in the plan once per column.
    """
    height, width = image.shape[:2]
    eye, half, horizon, ceiling, cell = _CAMERA_HEIGHT, _HALF_PLANE, _HORIZON, _CEILING, _SHADE_CELL
    scene, rooms, paint, shade, texture = world
    lamps, windows, first, ambient, sun = light.lamps, light.windows, light.first, light.ambient, light.sun
    n_parts = scene.shape[0]
    met, faces = np.empty(n_parts, np.int64), np.empty(n_parts, np.int64)
    near, far = np.empty(n_parts), np.empty(n_parts)
    fx, fy = math.cos(heading), math.sin(heading)
    step = 2 * half / width
    for column in range(width):
        right = (column + 0.5) * step - half
        length = math.sqrt(1 + right * right)
        dx, dy = (fx + right * fy) / length, (fy - right * fx) / length
        n = _along_ray(x, y, dx, dy, scene, ceiling, met, near, far, faces)
        for row in range(height):
            rise = ((height - row - 0.5) - horizon * height) * step / length
            t, k, face = _first_hit(eye, rise, n, scene, ceiling, met, near, far, faces)
            px, py, pz = x + t * dx, y + t * dy, eye + t * rise
            slant = t * math.sqrt(1 + rise * rise)
            pixel = slant * step / length
            room = _inside(px - 0.02 * dx, py - 0.02 * dy, rooms)
            nx = ny = nz = 0.0
            seen = 1.0
            if k < 0:
                u, v = px, py
                pixel *= 1.0 / math.sqrt(max(abs(rise), 0.02))  # between its width and its depth
                if k == _FLOOR:
                    nz = 1.0
                    material = _CARPET if room == 0 or room == 2 else (_TILES if room == 3 else _LINO)
                    red, green, blue = paint[room, 1, 0], paint[room, 1, 1], paint[room, 1, 2]
                    if room == 3:
                        u, v = 0.5 * u, 0.5 * v
                    i, j = int((py - _SHADE_ORIGIN[1]) / cell), int((px - _SHADE_ORIGIN[0]) / cell)
                    if 0 <= i < shade.shape[0] and 0 <= j < shade.shape[1]:
                        seen = shade[i, j]
                else:
                    nz = -1.0
                    material = _PLAIN
                    red, green, blue = paint[room, 2, 0], paint[room, 2, 1], paint[room, 2, 2]
                surface_width = surface_height = 1.0
                seed, side = texture, _TOP
            else:
                lx, ly = px - scene[k, _X], py - scene[k, _Y]
                c, s = scene[k, _COS], scene[k, _SIN]
                lx, ly = lx * c + ly * s, ly * c - lx * s
                hx, hy = scene[k, _HX], scene[k, _HY]
                material, seed, side = int(scene[k, _MATERIAL]), int(scene[k, _SEED]), face
                red, green, blue = scene[k, _RED], scene[k, _GREEN], scene[k, _BLUE]
                v, surface_width, surface_height = pz - scene[k, _Z0], 2 * hx, scene[k, _Z1] - scene[k, _Z0]
                if face == _FRONT:
                    u, nx, ny = hx - lx, -s, c
                elif face == _BACK:
                    u, nx, ny = lx + hx, s, -c
                elif face == _RIGHT:
                    u, nx, ny, surface_width = ly + hy, c, s, 2 * hy
                elif face == _LEFT:
                    u, nx, ny, surface_width = hy - ly, -c, -s, 2 * hy
                elif face == _ROUND:
                    nx, ny = (px - scene[k, _X]) / hx, (py - scene[k, _Y]) / hx
                    u = hx * (math.atan2(ny, nx) + math.pi)
                    surface_width = 2 * math.pi * hx
                else:
                    u, v, nz = lx + hx, ly + max(hx, hy), (1.0 if face == _TOP else -1.0)
                    pixel *= 1.0 / math.sqrt(max(abs(rise), 0.05))
                if nz == 0.0:
                    pixel /= math.sqrt(max(abs(nx * dx + ny * dy), 0.2))
                if scene[k, _ROOM] < 0:
                    red, green, blue = paint[room, 0, 0], paint[room, 0, 1], paint[room, 0, 2]
                    u, v, seed = px + py, pz, texture
                    if v < 0.08 and nz == 0.0:
                        red, green, blue = 0.4 * red, 0.4 * green, 0.4 * blue  # skirting
                elif face == _UNDER:
                    seen = 0.45
                elif scene[k, _Z1] < 0.72 and pz < 0.72:
                    seen = 0.85  # low things stand in the shade of higher ones
            size = surface_width, surface_height
            red, green, blue, glow_r, glow_g, glow_b = _surface(
                material, side, u, v, size, (red, green, blue), seed, pixel, light.sky, light.texture
            )
            if k == _ABOVE:
                for lamp in range(lamps.shape[0]):
                    if abs(px - lamps[lamp, 0]) < _LAMP_HALF[0] and abs(py - lamps[lamp, 1]) < _LAMP_HALF[1]:
                        glow_r, glow_g, glow_b = (
                            2.5 * lamps[lamp, 2],
                            2.5 * lamps[lamp, 3],
                            2.5 * lamps[lamp, 4],
                        )
                        if lamps[lamp, 6] == 0.0:
                            red, green, blue = 0.8 * red, 0.8 * green, 0.8 * blue
                a, b = px / 0.6, py / 0.6
                grid = max(abs(a - math.floor(a) - 0.5), abs(b - math.floor(b) - 0.5))
                if grid > 0.48 and pixel < 0.05:
                    red, green, blue = 0.8 * red, 0.8 * green, 0.8 * blue  # ceiling panels
            light_r, light_g, light_b = _irradiance(
                px, py, pz, nx, ny, nz, room, lamps, windows, first, ambient, sun, scene
            )
            image[row, column, 0] = red * seen * light_r + glow_r
            image[row, column, 1] = green * seen * light_g + glow_g
            image[row, column, 2] = blue * seen * light_b + glow_b


@_compiled
def _meter(radiance, seen):
    """Mean radiance RGB of a frame as an exposure meter takes it, bright spots cut off; fills `seen`."""
    height, width = radiance.shape[:2]
    for c in range(3):
        total = 0.0
        for row in range(height):
            for column in range(width):
                total += min(radiance[row, column, c], 1.5)
        seen[c] = total / (height * width)


@_compiled
def _develop(radiance, gain, smear, read_noise, shot_noise, seed, curve, picture):
    """From radiance to an 8-bit picture: motion blur, lens, exposure and white balance, sensor noise, tone
    curve.

    `smear`: how far the scene moves sideways during the exposure, in pixels. `curve`: picture value at
    radiance 0 to 2.
    """
    height, width = radiance.shape[:2]
    reach = int(math.ceil(0.5 * smear + 0.5))
    weights = np.empty(2 * reach + 1)
    total = 0.0
    for o in range(-reach, reach + 1):
        # A box of the smear's width over pixels that are one wide, and the lens' own blur of about a quarter
        # of a pixel.
        weights[o + reach] = min(max(0.5 * smear + 0.5 - abs(o), 0.0), 1.0) + (0.12 if abs(o) == 1 else 0.0)
        total += weights[o + reach]
    blurred = np.empty((height, width))
    last = len(curve) - 1
    for c in range(3):
        for row in range(height):
            for column in range(width):
                value = 0.0
                for o in range(-reach, reach + 1):
                    value += weights[o + reach] * min(
                        radiance[row, min(max(column + o, 0), width - 1), c], 4.0
                    )
                blurred[row, column] = value / total
        for row in range(height):
            for column in range(width):
                above, below = blurred[max(row - 1, 0), column], blurred[min(row + 1, height - 1), column]
                value = 0.8 * blurred[row, column] + 0.1 * (above + below)
                a, b = 2 * (column + 0.5) / width - 1, 2 * (row + 0.5) / height - 1
                value *= gain[c] * (1 - 0.12 * (a * a + b * b))  # darker towards the corners
                at = (c * height + row) * width + column
                # The sum of four even numbers is nearly normal; its standard deviation is 1 / sqrt(3).
                noise = (
                    _hash(at, 0, seed) + _hash(at, 1, seed) + _hash(at, 2, seed) + _hash(at, 3, seed) - 2.0
                )
                value += noise * 1.7320508 * math.sqrt(read_noise * read_noise + shot_noise * max(value, 0.0))
                picture[row, column, c] = curve[min(max(int(value * 0.5 * last + 0.5), 0), last)]


_TONES = 8192


def _tone_curve():
    """Picture value for radiance 0 to 2: linear with a soft shoulder from 0.6, then the video camera's curve
    (Rec. 709), whose straight foot keeps noise in the shadows small.
    """
    x = np.linspace(0.0, 2.0, _TONES)
    bent = np.where(x < 0.6, x, 0.6 + 0.4 * (1 - np.exp(-np.maximum(x - 0.6, 0) / 0.4)))
    return np.rint(255 * np.where(bent < 0.018, 4.5 * bent, 1.099 * bent**0.45 - 0.099)).astype(np.uint8)


# -------------------------------------------------------------------------------------------------- functions


def _in_threads(work, n, n_jobs, block=16):
    """Run ``work(first, last)`` over blocks of frames, each of which depends on its own numbers alone."""
    starts = range(0, n, block)
    with ThreadPoolExecutor(n_jobs) as pool:
        list(pool.map(lambda first: work(first, min(first + block, n)), starts))


_ROOM_RECTANGLES = np.array([_ROOMS[room] for room in ROBOT_ROOMS])


def _look(floor, light, pose, radiance):
    """Render what the camera sees from a pose (x, y, heading) into `radiance`, float32 (height, width, 3)."""
    _render(
        *pose, _World(floor.scene, _ROOM_RECTANGLES, floor.paint, floor.shade, floor.texture), light, radiance
    )


def record(n, height, width, seed, n_jobs=None):
    """Images, classes, frames, laser scans and the beams' directions of the 12 sequences of `make_robot`."""
    n_jobs = numba.get_num_threads() if n_jobs is None else n_jobs
    floors = {session: _furnish(seed, session) for session in (1, 2)}
    jobs = [(session, weather, repeat) for session in (1, 2) for weather in _WEATHERS for repeat in (1, 2)]
    images = np.empty((len(jobs) * n, height, width, 3), np.uint8)
    laser = np.empty((len(jobs) * n, len(_LASER_ANGLES)), np.float32)
    radiance = np.empty((n, height, width, 3), np.float32)
    time, x, y, heading = (np.empty(len(jobs) * n) for _ in range(4))
    curve = _tone_curve()

    for number, (session, weather, _repeat) in enumerate(jobs):
        rng = np.random.default_rng([seed, _SEQUENCE, number])
        floor, rows = floors[session], slice(number * n, (number + 1) * n)
        light = _lit(floor, seed, weather, session)
        drive = _drive(rng)
        clock = drive.time[-1] * np.arange(n) / n
        pose = [np.interp(clock, drive.time, values) for values in (drive.x, drive.y, drive.heading)]
        turning = np.interp(clock, drive.time[1:], np.diff(drive.heading) / np.diff(drive.time))
        time[rows], x[rows], y[rows], heading[rows] = clock, *pose
        seeds = rng.integers(1, 1 << 30, n)
        scans, seen = laser[rows], np.empty((n, 3))
        scan_noise = rng.normal(0.0, _LASER_NOISE, scans.shape)

        def take(first, last):
            ranges = np.empty(len(_LASER_ANGLES))
            for i in range(first, last):
                at = pose[0][i], pose[1][i], pose[2][i]
                _look(floor, light, at, radiance[i])
                _meter(radiance[i], seen[i])
                _scan(*at, _LASER_ANGLES, _LASER_HEIGHT, _LASER_RANGE, floor.scene, ranges)
                scans[i] = np.clip(ranges + scan_noise[i], 0.0, _LASER_RANGE)

        _in_threads(take, n, n_jobs)
        gains = _exposure(seen, drive, clock, np.random.default_rng([seed, _CAMERA_MOODS, number]))
        smear = np.abs(turning) * light.exposure_time * width / _FIELD
        pictures = images[rows]

        def develop(first, last):
            for i in range(first, last):
                amplified = float(gains[i].mean())
                _develop(
                    radiance[i],
                    gains[i],
                    smear[i],
                    _READ_NOISE * amplified,
                    _SHOT_NOISE * amplified,
                    seeds[i],
                    curve,
                    pictures[i],
                )

        _in_threads(develop, n, n_jobs)

    sequence = np.repeat(np.arange(len(jobs)), n)
    names = [
        f"{weather}{2 * session - 2 + repeat}-{i:04d}" for session, weather, repeat in jobs for i in range(n)
    ]
    frames = {
        "sequence": sequence,
        "weather": np.repeat([weather for _, weather, _ in jobs], n),
        "session": np.repeat([session for session, _, _ in jobs], n),
        "repeat": np.repeat([repeat for _, _, repeat in jobs], n),
        **{"time": time, "x": x, "y": y, "heading": heading, "name": np.array(names)},
    }
    return images, _room_of(x, y).astype(np.int64), frames, laser, _LASER_ANGLES.copy()


def _exposure(seen, drive, clock, rng):
    """Gain per frame and channel from the meter's means: exposure and white balance go most of the way."""
    brightness = seen @ np.array([0.3, 0.6, 0.1])
    gain = 0.25 / (brightness**0.85 * 0.30**0.15)
    balance = (brightness[:, None] / seen) ** 0.6
    hunting = np.array(
        [np.interp(clock, drive.time, _smooth_noise(len(drive.time), 0.8 / _STEP, rng)) for _ in range(3)]
    )
    gain = np.clip(gain, 0.05, 12.0) * (1 + 0.05 * hunting[0])
    balance[:, 0] *= 1 + 0.015 * hunting[1]
    balance[:, 2] *= 1 + 0.015 * hunting[2]
    return gain[:, None] * balance


def plan(seed, session):
    """Walls, doorways, rooms, furniture, kinds and outlines of the floor; see `RobotFloor`."""
    floor = _furnish(seed, session)
    outlines = [_outline(row) for row in floor.scene]
    owner = floor.owner
    boxes = [
        np.concatenate([outlines[k] for k in np.flatnonzero(owner == i)]) for i in range(len(floor.items))
    ]
    return (
        np.array(_WALLS),
        np.array(list(_DOORWAYS.values())),
        _ROOM_RECTANGLES.copy(),
        np.array([[*box.min(axis=0), *box.max(axis=0)] for box in boxes]),
        [item.kind for item in floor.items],
        [outlines[k] for k in np.flatnonzero((owner >= 0) & (floor.scene[:, _Z0] < 2.0))],
    )


def _outline(row):
    """Corners of a part seen from above, counter-clockwise."""
    if row[_SHAPE] == _CYLINDER:
        angle = 2 * np.pi * np.arange(24) / 24
        return row[[_X, _Y]] + row[_HX] * np.column_stack([np.cos(angle), np.sin(angle)])
    corners = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]]) * row[[_HX, _HY]]
    return row[[_X, _Y]] + corners @ np.array([[row[_COS], row[_SIN]], [-row[_SIN], row[_COS]]])

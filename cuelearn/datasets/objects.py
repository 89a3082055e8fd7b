r"""Simulated objects on a turntable: the stand-in for ETH-80, rendered from signed distance functions.

From top to bottom: the views, the parts that an object is made of, the eight families of objects (plain
Python that draws proportions and colours and puts parts together), the compiled renderer, and the two public
functions.

A part is a row of a table: a kind (ellipsoid, limb, box, ring, drum), where it stands, its sizes, the
material it wears, and how it joins the parts before it: smoothly or not, adding to them or cutting into them.
One compiled function evaluates the signed distance of any table, so a new category is a new builder and
nothing else."""

from __future__ import annotations

import colorsys
import numbers
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numba
import numpy as np
from numba import njit

from .base import ImageData, Provenance

__all__ = ["OBJECT_CATEGORIES", "make_objects", "render_object"]

#: Classes 0 to 7, in the order of thesis table 3.2.
OBJECT_CATEGORIES = ("apple", "car", "cow", "cup", "dog", "horse", "pear", "tomato")

# ------------------------------------------------------------------------------------------------------ views


class Views(NamedTuple):
    """Directions from which an object is seen, in degrees.

    Attributes
    ----------
    elevation : ndarray of float64, shape (n_views,)
        Above the horizon: 0 from the side, 90 from above.
    azimuth : ndarray of float64, shape (n_views,)
        In [0, 360), counter-clockwise seen from above; 0 looks an animal or a car in the face.
    names : list of str
        As ETH-80's files are named: the angle *from the zenith*, then the azimuth, both rounded:
        ``"035-045"``.
    """

    elevation: np.ndarray
    azimuth: np.ndarray
    names: list[str]


def hemisphere_views():
    """Return the 41 views of ETH-80: the corners, on the upper half, of an octahedron divided twice.

    Each division replaces a triangle by four, with the middles of its sides pushed out to the sphere: 6, 18,
    66 corners. Of the 66 (the third level, counting the octahedron itself), 41 lie on or above the horizon: 1
    at the zenith, 4 each at 22.5, 35.3 and 45 degrees from it, 8 at 65.9, 4 at 67.5, and 16 on the horizon.

    Returns
    -------
    Views
        Sorted by angle from the zenith, then by azimuth, as a folder lists the files.
    """
    axes = np.eye(3)
    faces = [[sx * axes[0], sy * axes[1], sz * axes[2]] for sx in (1, -1) for sy in (1, -1) for sz in (1, -1)]
    for _ in range(2):
        divided = []
        for a, b, c in faces:
            ab, bc, ca = ((p + q) / np.linalg.norm(p + q) for p, q in ((a, b), (b, c), (c, a)))
            divided += [[a, ab, ca], [ab, b, bc], [ca, bc, c], [ab, bc, ca]]
        faces = divided
    # Nine digits make one of the copies of a corner that neighbouring triangles hold; + 0.0 turns -0.0 into
    # 0.0.
    corners = np.unique(np.round(np.concatenate(faces), 9) + 0.0, axis=0)
    corners = corners[corners[:, 2] >= 0]
    zenith = np.round(np.degrees(np.arccos(corners[:, 2])), 6)
    azimuth = np.round(np.degrees(np.arctan2(corners[:, 1], corners[:, 0])) % 360.0, 6)
    order = np.lexsort((azimuth, zenith))
    zenith, azimuth = zenith[order], azimuth[order]
    # round() halves to even, and so do the names: 22.5 is 022, 67.5 is 068.
    return Views(90.0 - zenith, azimuth, [f"{round(z):03d}-{round(a):03d}" for z, a in zip(zenith, azimuth)])


# ------------------------------------------------------------------------------------------------------ parts

ELLIPSOID, LIMB, BOX, RING, DRUM = range(5)
ADD, CUT = range(2)

# What a part wears. Every object has all five, so that any object can wear the colours of any other.
MAIN, SECOND, ACCENT, DARK, LIGHT = range(5)

NOISE, BANDS, SPOTS, CHECKS = range(4)


class Material(NamedTuple):
    """Colours and texture of one part's surface; lengths are in units of the object's bounding radius.

    Where the pattern's value, plus ``gradient . p``, exceeds `threshold` (softly, over +- `softness`), the
    surface at point p shows `second` in place of `base`. Specks of a third colour and a mottling of the
    brightness lie over both.

    Attributes
    ----------
    base, second, speck : tuple of three floats in [0, 1]
        sRGB.
    pattern : int
        NOISE of two octaves, BANDS across `scale`, SPOTS or CHECKS around the vertical axis.
    scale : tuple of three floats
        NOISE: periods per unit length along x, y, z. BANDS: the wave vector. SPOTS, CHECKS: (number around,
        number per unit height, unused).
    threshold, softness : float
        A threshold of 9 leaves `base` alone.
    gradient : tuple of three floats
    low, high : float
        The pattern is confined to heights z between these.
    speck_scale, speck_share : float
        Cells per unit length, and the share of cells that hold a round speck.
    mottle, mottle_scale : float
        Relative amplitude and periods per unit length of the change of brightness.
    gloss : float
        Strength of the highlight.
    seed : int
        Of the noise.
    """

    base: tuple
    second: tuple = (0.0, 0.0, 0.0)
    speck: tuple = (0.0, 0.0, 0.0)
    pattern: int = NOISE
    scale: tuple = (1.0, 1.0, 1.0)
    threshold: float = 9.0
    softness: float = 0.1
    gradient: tuple = (0.0, 0.0, 0.0)
    low: float = -9.0
    high: float = 9.0
    speck_scale: float = 20.0
    speck_share: float = 0.0
    mottle: float = 0.08
    mottle_scale: float = 6.0
    gloss: float = 0.15
    seed: int = 0

    def row(self):
        """Return the material as the renderer's row of numbers, colours made linear in light."""
        values = []
        for value in self:
            values += list(value) if isinstance(value, tuple) else [float(value)]
        values[:9] = [min(max(v, 0.0), 1.0) ** 2 for v in values[:9]]
        return values


class Shape(NamedTuple):
    """An object as a table of parts, centred, with the corners of its bounding box at distance 1 or less.

    Attributes
    ----------
    kind, op, material : ndarray of int64, shape (n_parts,)
    blend : ndarray of float64, shape (n_parts,)
        Width over which the part melts into what stands before it in the table; 0 for a hard seam.
    turn : ndarray of float64, shape (n_parts, 3, 3)
        Rows are the part's own axes: local = turn @ (p - centre).
    centre : ndarray of float64, shape (n_parts, 3)
    size : ndarray of float64, shape (n_parts, 6)
        ELLIPSOID: three radii. LIMB: length along the own z axis, radius at the start, radius at the end.
        BOX: three half sides, rounding, loss of half width in x and in y per unit of height. RING: radius of
        the circle (in the own xy plane), of the tube, height of the tube over its width, depth of five lobes.
        DRUM: radius at half height, half height, rounding, loss of radius per unit of height.
    """

    kind: np.ndarray
    op: np.ndarray
    material: np.ndarray
    blend: np.ndarray
    turn: np.ndarray
    centre: np.ndarray
    size: np.ndarray


class ToyObject(NamedTuple):
    """A shape and what it wears.

    Attributes
    ----------
    shape : Shape
    materials : ndarray of float64, shape (5, 26)
        Rows MAIN, SECOND, ACCENT, DARK, LIGHT; fields as `Material.row` lays them out.
    """

    shape: Shape
    materials: np.ndarray


def _axes(z):
    """Rows of a right-handed frame whose third axis points along `z` and whose first lies as near to the x
    axis as it can.
    """
    z = np.asarray(z, dtype=float)
    z = z / np.linalg.norm(z)
    x = np.array([1.0, 0.0, 0.0]) if abs(z[0]) <= 0.99 else np.array([0.0, 1.0, 0.0])
    x = x - (x @ z) * z
    x = x / np.linalg.norm(x)
    return np.array([x, np.cross(z, x), z])


def part_reach(kind, size, directions):
    """Return how far a part reaches from its centre along unit vectors given in the part's own frame (its
    support function).

    Parameters
    ----------
    kind : int
    size : ndarray of shape (6,)
    directions : ndarray of shape (n, 3)

    Returns
    -------
    ndarray of shape (n,)
        Exact for the unblended part.
    """
    flat = np.hypot(directions[:, 0], directions[:, 1])
    up = directions[:, 2]
    if kind == ELLIPSOID:
        return np.linalg.norm(directions * size[:3], axis=1)
    if kind == LIMB:
        return np.maximum(size[1], size[0] * up + size[2])
    if kind == RING:
        return (size[0] + size[3]) * flat + size[1] * np.hypot(flat, size[2] * up)
    # Where a side leans, the rounding, a ball in the two slanted distances, is an ellipsoid in space.
    reach = []
    for end in (1.0, -1.0):
        if kind == BOX:
            aside, steep = np.abs(directions[:, :2]), np.sqrt(1.0 + size[4:6] ** 2)
            half = np.maximum(size[:2] - end * size[2] * size[4:6], 0.0)
            over = np.maximum(end * (up - aside @ size[4:6]), 0.0)
            rounding = size[3] * np.sqrt(((aside * steep) ** 2).sum(axis=1) + over**2)
            reach.append(aside @ half + end * size[2] * up + rounding)
        else:
            over = np.maximum(end * (up - size[3] * flat), 0.0)
            rounding = size[2] * np.sqrt((1.0 + size[3] ** 2) * flat**2 + over**2)
            reach.append((size[0] - end * size[1] * size[3]) * flat + end * size[1] * up + rounding)
    return np.maximum(*reach)


class _Parts:
    """Collects parts in any convenient unit, x ahead, y to the left, z up; `finish` centres and scales them.

    The methods take sizes as seen from outside (a box's half sides include its rounding), `along` for the
    direction of a part's own z axis, what the part `wears`, and the width over which it melts into the parts
    before it (`blend`).
    """

    def __init__(self):
        self._rows = []

    def _put(self, kind, centre, turn, size, wears, blend, op):
        size = np.concatenate([np.asarray(size, dtype=float), np.zeros(6 - len(size))])
        self._rows.append(
            (kind, op, wears, float(blend), np.asarray(turn, float), np.asarray(centre, float), size)
        )

    def ellipsoid(self, centre, radii, wears=MAIN, blend=0.0, along=(0, 0, 1)):
        self._put(ELLIPSOID, centre, _axes(along), radii, wears, blend, ADD)

    def ball(self, centre, radius, wears=MAIN, blend=0.0):
        self._put(ELLIPSOID, centre, np.eye(3), (radius,) * 3, wears, blend, ADD)

    def limb(self, start, end, thick, thin=None, wears=MAIN, blend=0.0):
        start, end = np.asarray(start, float), np.asarray(end, float)
        length = np.linalg.norm(end - start)
        self._put(
            LIMB,
            start,
            _axes(end - start),
            (length, thick, thick if thin is None else thin),
            wears,
            blend,
            ADD,
        )

    def box(self, centre, half, rounding, taper=(0.0, 0.0), wears=MAIN, blend=0.0, op=ADD):
        half = np.asarray(half, float) - rounding
        self._put(BOX, centre, np.eye(3), (*half, rounding, *taper), wears, blend, op)

    def ring(self, centre, radius, tube, squash=1.0, lobes=0.0, wears=MAIN, blend=0.0, along=(0, 0, 1)):
        self._put(RING, centre, _axes(along), (radius, tube, squash, lobes), wears, blend, ADD)

    def drum(
        self, centre, radius, half, rounding=0.0, taper=0.0, wears=MAIN, blend=0.0, along=(0, 0, 1), op=ADD
    ):
        self._put(
            DRUM,
            centre,
            _axes(along),
            (radius - rounding, half - rounding, rounding, taper),
            wears,
            blend,
            op,
        )

    def finish(self, materials):
        """Centre the bounding box of what was added, scale its half diagonal to 1, and dress the object."""
        kind, op, wears, blend, turn, centre, size = (np.array(column) for column in zip(*self._rows))
        reach = np.array(
            [[part_reach(k, s, sign * t.T) for sign in (1, -1)] for k, s, t in zip(kind, size, turn)]
        )
        high = (centre + reach[:, 0])[op == ADD].max(axis=0)
        low = (centre - reach[:, 1])[op == ADD].min(axis=0)
        scale = 2.0 / np.linalg.norm(high - low)
        # Ratios keep their value; every other size is a length.
        is_ratio = np.zeros(size.shape, dtype=bool)
        is_ratio[kind == BOX, 4:6] = True
        is_ratio[kind == RING, 2] = True
        is_ratio[kind == DRUM, 3] = True
        size = np.where(is_ratio, size, size * scale)
        shape = Shape(
            kind.astype(np.int64),
            op.astype(np.int64),
            wears.astype(np.int64),
            blend * scale,
            turn,
            (centre - (low + high) / 2) * scale,
            size,
        )
        return ToyObject(shape, np.array([material.row() for material in materials]))


# --------------------------------------------------------------------------------------------------- families


def _vary(rng, colour, spread=0.03):
    """A colour near `colour` (sRGB): lighter or darker as a whole, and a little other in hue."""
    tint = rng.normal(0.0, spread, size=3) * 0.6 + rng.normal(0.0, spread)
    return tuple(float(v) for v in np.clip(np.asarray(colour, float) + tint, 0.02, 0.98))


def _paint(rng, hue, saturation, value):
    """A colour of a given hue (turns), saturation and brightness, each varied a little."""
    hue = (hue + rng.normal(0.0, 0.012)) % 1.0
    saturation, value = (float(np.clip(v + rng.normal(0.0, 0.04), 0.0, 1.0)) for v in (saturation, value))
    return colorsys.hsv_to_rgb(float(hue), saturation, value)


def _seed(rng):
    return int(rng.integers(1 << 16))


_STEM = (0.36, 0.25, 0.14)
_LEAF = (0.25, 0.42, 0.14)
_BLACK = (0.09, 0.09, 0.10)
_IVORY = (0.86, 0.80, 0.66)


def _stem(parts, rng, foot, length, thick, lean, wears=ACCENT):
    """A stalk of two limbs, bent at the middle."""
    turn = rng.uniform(0, 2 * np.pi)
    aside = np.array([np.cos(turn), np.sin(turn), 0.0]) * lean * length
    foot = np.asarray(foot, float)
    knee = foot + aside * 0.3 + [0, 0, length * 0.55]
    tip = foot + aside + [0, 0, length]
    parts.limb(foot, knee, thick, thick * 0.8, wears=wears)
    parts.limb(knee, tip, thick * 0.8, thick * 1.15, wears=wears, blend=thick * 0.5)


def _apple(rng, style):
    """Apple: a body with dimples at both poles, narrower below, a short stalk; red, green, yellow or mixed,
    streaked, speckled.
    """
    red, dark_red, green, yellow = (
        (0.72, 0.11, 0.13),
        (0.52, 0.07, 0.11),
        (0.52, 0.66, 0.20),
        (0.84, 0.72, 0.28),
    )
    base, blush, threshold, softness, side = [
        (yellow, red, 0.42, 0.25, 0.25),  # red over yellow
        (green, (0.62, 0.72, 0.28), 0.55, 0.3, 0.1),  # green
        (red, dark_red, 0.5, 0.25, 0.15),  # red
        (green, red, 0.50, 0.2, 0.45),  # green with a red cheek
        (yellow, (0.88, 0.62, 0.25), 0.6, 0.3, 0.3),  # yellow
        (red, (0.80, 0.52, 0.24), 0.62, 0.15, 0.15),  # red with yellow streaks
        (green, yellow, 0.5, 0.3, 0.3),  # green going yellow
        (dark_red, red, 0.55, 0.2, 0.1),  # dark red
        (yellow, red, 0.55, 0.2, 0.5),  # yellow with a red cheek
        (green, (0.42, 0.58, 0.16), 0.5, 0.3, 0.1),  # bright green
    ][style]
    parts = _Parts()
    tube = rng.uniform(0.58, 0.66)
    radius = 1.0 - tube
    squash = rng.uniform(1.0, 1.14)
    top = tube * squash * np.sqrt(1.0 - (radius / tube) ** 2)
    parts.ring((0, 0, 0), radius, tube, squash, lobes=rng.uniform(0.0, 0.035))
    narrow = rng.uniform(0.55, 0.7)
    depth = rng.uniform(0.68, 0.9)
    parts.ring(
        (0, 0, -0.32),
        narrow * 0.45,
        narrow * 0.62,
        depth / (narrow * 0.75),
        lobes=rng.uniform(0.01, 0.05),
        blend=0.4,
    )
    _stem(parts, rng, (0, 0, top - 0.18), rng.uniform(0.35, 0.62), 0.04, rng.uniform(0.1, 0.6))
    parts.ball((0, 0, -0.32 - depth * 0.6), 0.09, wears=DARK)
    cheek = rng.uniform(0, 2 * np.pi)
    skin = Material(
        _vary(rng, base),
        _vary(rng, blush),
        _vary(rng, (0.86, 0.78, 0.52)),
        scale=(3.2, 3.2, 0.7),
        threshold=threshold,
        softness=softness,
        gradient=(side * np.cos(cheek), side * np.sin(cheek), rng.uniform(0.0, 0.25)),
        speck_scale=rng.uniform(14, 22),
        speck_share=rng.uniform(0.1, 0.5),
        mottle=0.10,
        mottle_scale=4.0,
        gloss=rng.uniform(0.15, 0.35),
        seed=_seed(rng),
    )
    stalk = Material(_vary(rng, _STEM), mottle=0.2, mottle_scale=14.0, gloss=0.05, seed=_seed(rng))
    return parts.finish(
        [
            skin,
            stalk._replace(base=_vary(rng, (0.45, 0.38, 0.18))),
            stalk,
            stalk._replace(base=_vary(rng, (0.22, 0.16, 0.10))),
            skin._replace(base=_vary(rng, yellow)),
        ]
    )


def _tomato(rng, style):
    """Tomato: flatter than an apple, smooth and shining, sometimes ribbed, with the green star of its calyx;
    red, few orange.
    """
    red, orange = (0.79, 0.13, 0.08), (0.86, 0.36, 0.10)
    base = (
        red,
        (0.70, 0.10, 0.09),
        red,
        orange,
        (0.83, 0.18, 0.09),
        red,
        (0.74, 0.13, 0.07),
        (0.82, 0.27, 0.10),
        red,
        (0.66, 0.09, 0.08),
    )[style]
    parts = _Parts()
    tube = rng.uniform(0.60, 0.72)
    radius = 1.0 - tube
    squash = rng.uniform(0.98, 1.16) if style % 4 else rng.uniform(1.16, 1.3)
    lobes = rng.uniform(0.03, 0.07) if style in (2, 6) else rng.uniform(0.0, 0.02)
    parts.ring((0, 0, 0), radius, tube, squash, lobes=lobes)
    flat = np.sqrt(1.0 - (radius / tube) ** 2)
    top = tube * squash * flat
    parts.ellipsoid((0, 0, -0.05), (0.75, 0.75, top + 0.02), blend=0.2)
    n_sepals = int(rng.integers(5, 7))
    turn = rng.uniform(0, 2 * np.pi)
    length = rng.uniform(0.34, 0.5)
    for k in range(n_sepals):
        angle = turn + 2 * np.pi * k / n_sepals + rng.normal(0, 0.08)
        out = np.array([np.cos(angle), np.sin(angle), 0.0]) * length
        # The leaf rests on the shoulder of the fruit, which is higher than the dimple that it grows from.
        shoulder = [squash * np.sqrt(tube**2 - (share * length - radius) ** 2) for share in (0.5, 1.0)]
        middle, tip = (
            out * 0.5 + [0, 0, shoulder[0] + 0.02],
            out + [0, 0, shoulder[1] + rng.uniform(-0.02, 0.10)],
        )
        parts.limb([0, 0, top + 0.01], middle, 0.06, 0.055, wears=ACCENT, blend=0.02)
        parts.limb(middle, tip, 0.055, 0.02, wears=ACCENT, blend=0.02)
    if rng.uniform() < 0.8:
        _stem(parts, rng, (0, 0, top), rng.uniform(0.12, 0.3), 0.045, rng.uniform(0.1, 0.5))
    skin = Material(
        _vary(rng, base),
        _vary(rng, (0.80, 0.42, 0.14)),
        (0.9, 0.8, 0.5),
        scale=(1.6, 1.6, 1.6),
        threshold=rng.uniform(0.75, 1.1),
        softness=0.3,
        gradient=(0, 0, rng.uniform(0.1, 0.5)),
        mottle=0.05,
        mottle_scale=3.0,
        gloss=rng.uniform(0.4, 0.7),
        seed=_seed(rng),
    )
    leaf = Material(_vary(rng, _LEAF), mottle=0.2, mottle_scale=10.0, gloss=0.05, seed=_seed(rng))
    return parts.finish(
        [
            skin,
            skin,
            leaf,
            leaf._replace(base=_vary(rng, (0.18, 0.28, 0.10))),
            skin._replace(base=_vary(rng, orange)),
        ]
    )


def _pear(rng, style):
    """Pear: a heavy lower body and a leaning neck that carries the stalk; green, yellow or russet brown,
    speckled.
    """
    green, yellow, brown = (0.58, 0.66, 0.24), (0.83, 0.73, 0.28), (0.58, 0.42, 0.20)
    base, other, threshold, side = [
        (green, (0.50, 0.58, 0.20), 0.55, 0.1),
        (yellow, (0.74, 0.66, 0.30), 0.55, 0.1),
        (brown, (0.66, 0.52, 0.26), 0.5, 0.1),
        (green, yellow, 0.5, 0.3),
        (yellow, (0.74, 0.30, 0.16), 0.62, 0.5),  # with a red cheek
        (green, brown, 0.58, 0.3),
        (brown, (0.46, 0.33, 0.17), 0.5, 0.1),
        (green, (0.66, 0.70, 0.30), 0.5, 0.2),
        (yellow, brown, 0.55, 0.2),
        (green, (0.62, 0.28, 0.18), 0.66, 0.5),
    ][style]
    parts = _Parts()
    tall = rng.uniform(0.85, 1.05)
    turn, lean = rng.uniform(0, 2 * np.pi), rng.uniform(0.0, 0.18)
    aside = np.array([np.cos(turn), np.sin(turn), 0.0]) * lean
    neck = rng.uniform(0.36, 0.50)
    height = rng.uniform(1.15, 1.6)
    parts.ring((0, 0, 0), 0.22, 0.78, tall)
    parts.limb(
        (0, 0, 0.35), aside + [0, 0, height], rng.uniform(0.6, 0.72), neck, blend=rng.uniform(0.25, 0.4)
    )
    tip = aside + np.array([0, 0, height + neck - 0.06])
    _stem(parts, rng, tip, rng.uniform(0.3, 0.55), 0.045, rng.uniform(0.2, 0.9))
    parts.ball((0, 0, -0.78 * tall * 0.96), 0.1, wears=DARK)
    cheek = rng.uniform(0, 2 * np.pi)
    skin = Material(
        _vary(rng, base),
        _vary(rng, other),
        _vary(rng, (0.42, 0.30, 0.14)),
        scale=(2.2, 2.2, 1.5),
        threshold=threshold,
        softness=0.22,
        gradient=(side * np.cos(cheek), side * np.sin(cheek), rng.uniform(-0.15, 0.15)),
        speck_scale=rng.uniform(18, 28),
        speck_share=rng.uniform(0.3, 0.9),
        mottle=0.12,
        mottle_scale=5.0,
        gloss=rng.uniform(0.05, 0.2),
        seed=_seed(rng),
    )
    stalk = Material(_vary(rng, _STEM), mottle=0.2, mottle_scale=14.0, gloss=0.05, seed=_seed(rng))
    return parts.finish(
        [
            skin,
            stalk._replace(base=_vary(rng, brown)),
            stalk,
            stalk._replace(base=_vary(rng, (0.24, 0.17, 0.10))),
            skin._replace(base=_vary(rng, yellow)),
        ]
    )


def _stride(rng, spread):
    """Fore and aft offsets of the four hooves: left fore, right fore, left hind, right hind."""
    step = rng.uniform(0.0, spread)
    return np.array([step, -step, -step, step]) + rng.normal(0.0, 0.02, size=4)


def _legs(parts, rng, *, front, back, apart, belly, thick, thin, spread, hoof, hock=0.1, sock=MAIN):
    """Four legs from `belly` height down to the ground: an upper and a lower limb each, the hind legs bent at
    the hock.

    They end in hooves of half height `hoof`, or in paws where that is 0.
    """
    steps = _stride(rng, spread)
    for k in range(4):
        hind = k >= 2
        x0 = back if hind else front
        side = apart * (1 if k % 2 == 0 else -1)
        knee = [x0 + steps[k] * 0.4 - (hock if hind else 0.0), side, belly * 0.5]
        foot = [x0 + steps[k], side, thin]
        swell = 1.35 if hind else 1.0
        parts.limb([x0, side * 0.9, belly * 1.08], knee, thick * swell, thin * 1.15, blend=thick * 0.9)
        parts.limb(knee, foot, thin * 1.15, thin, wears=sock, blend=thin * 0.8)
        if hoof:
            parts.drum(
                [foot[0] + thin * 0.2, side, hoof],
                thin * 1.45,
                hoof,
                rounding=hoof * 0.3,
                taper=0.25,
                wears=DARK,
            )
        else:
            parts.ellipsoid(
                [foot[0] + thin * 0.6, side, thin * 0.75],
                (thin * 1.8, thin * 1.25, thin * 0.8),
                wears=sock,
                blend=thin * 0.5,
            )


def _coat(
    rng,
    base,
    other=None,
    *,
    scale=1.7,
    threshold=0.5,
    softness=0.04,
    gradient=(0.0, 0.0, 0.0),
    gloss=0.12,
    mottle=0.10,
):
    """The hide of a toy animal: plain, or with patches of a second colour."""
    if other is None:
        other, threshold = base, 9.0
    return Material(
        _vary(rng, base),
        _vary(rng, other),
        scale=(scale,) * 3,
        threshold=threshold,
        softness=softness,
        gradient=gradient,
        mottle=mottle,
        mottle_scale=rng.uniform(5, 9),
        gloss=gloss,
        seed=_seed(rng),
    )


def _cow(rng, style):
    """Toy cow: a long heavy barrel on short legs, horns, udder, a thin tail with a tuft; brown, beige, or
    black and white.
    """
    white, black, beige = (0.86, 0.84, 0.79), (0.12, 0.11, 0.11), (0.74, 0.60, 0.42)
    brown, dark = (0.48, 0.28, 0.15), (0.28, 0.17, 0.11)
    coats = [
        (white, black, 0.52),
        (brown, None, 0.5),
        (beige, None, 0.5),
        (white, brown, 0.5),
        (dark, None, 0.5),
        (white, black, 0.45),
        (brown, white, 0.68),
        (black, white, 0.66),
        (beige, brown, 0.62),
        (brown, dark, 0.55),
    ]
    base, other, threshold = coats[style]
    parts = _Parts()
    long, deep, wide = rng.uniform(0.86, 1.0), rng.uniform(0.40, 0.47), rng.uniform(0.34, 0.42)
    belly = rng.uniform(0.50, 0.64)
    back = belly + deep * 0.85
    parts.ellipsoid((0.0, 0, back), (long * 0.86, wide, deep), wears=MAIN)
    parts.ellipsoid((-long * 0.55, 0, back + 0.06), (0.42, wide * 0.92, deep * 0.93), blend=0.2)
    parts.ellipsoid((long * 0.5, 0, back + 0.04), (0.42, wide * 0.9, deep), blend=0.2)
    _legs(
        parts,
        rng,
        front=long * 0.58,
        back=-long * 0.66,
        apart=wide * 0.58,
        belly=belly,
        thick=0.165,
        thin=0.085,
        spread=0.1,
        hoof=0.06,
    )
    # Neck and head: level with the back, or lowered to graze.
    grazing = rng.uniform() < 0.25
    drop = rng.uniform(0.45, 0.6) if grazing else rng.uniform(-0.22, -0.02)
    poll = np.array([long * 0.86 + rng.uniform(0.28, 0.36), 0, back + 0.16 - drop])
    parts.limb((long * 0.62, 0, back + 0.08), poll - [0.06, 0, 0.04], 0.29, 0.2, blend=0.2)
    down = rng.uniform(0.75, 1.1)
    nose = poll + np.array([np.cos(down), 0, -np.sin(down)]) * rng.uniform(0.40, 0.46)
    parts.limb(poll, nose, 0.195, 0.115, blend=0.08)
    parts.ellipsoid(nose + [0.03, 0, -0.03], (0.125, 0.135, 0.105), wears=SECOND, blend=0.04)
    out = nose - poll
    for side in (1, -1):
        root = poll + [-0.02, side * 0.13, 0.12]
        bend = root + np.array([0.02, side * rng.uniform(0.13, 0.19), 0.07])
        parts.limb(root, bend, 0.06, 0.045, wears=ACCENT)
        tip = bend + [rng.uniform(0.02, 0.1), side * 0.04, rng.uniform(0.14, 0.22)]
        parts.limb(bend, tip, 0.045, 0.015, wears=ACCENT, blend=0.03)
        parts.ellipsoid(poll + [-0.05, side * 0.29, 0.0], (0.045, 0.15, 0.075), wears=MAIN, blend=0.03)
        parts.ball(poll + out * 0.3 + [0.11, side * 0.135, 0.06], 0.035, wears=DARK)
        parts.ball(nose + [0.125, side * 0.06, 0.0], 0.025, wears=DARK)
    parts.ellipsoid((-long * 0.36, 0, belly * 0.84), (0.2, 0.16, 0.14), wears=SECOND, blend=0.05)
    for x in (-0.06, 0.06):
        for side in (1, -1):
            parts.limb(
                (-long * 0.36 + x, side * 0.07, belly * 0.75),
                (-long * 0.36 + x, side * 0.075, belly * 0.60),
                0.03,
                0.022,
                wears=SECOND,
                blend=0.02,
            )
    rump = np.array([-long * 0.98, 0, back + 0.2])
    hock = rump + [-0.1, rng.uniform(-0.06, 0.06), -0.62]
    parts.limb(rump + [0.12, 0, 0.0], rump + [-0.06, 0, -0.1], 0.06, 0.04, blend=0.05)
    parts.limb(rump + [-0.06, 0, -0.1], hock, 0.038, 0.03)
    parts.limb(hock, hock + [-0.02, 0, -0.16], 0.055, 0.03, wears=DARK, blend=0.03)
    coat = _coat(
        rng, base, other, scale=rng.uniform(1.3, 2.0), threshold=threshold, gloss=rng.uniform(0.05, 0.2)
    )
    skin = Material(_vary(rng, (0.80, 0.58, 0.52)), mottle=0.05, seed=_seed(rng))
    if style in (1, 4, 9):
        skin = skin._replace(base=_vary(rng, (0.62, 0.50, 0.42)))
    return parts.finish(
        [
            coat,
            skin,
            Material(_vary(rng, _IVORY), mottle=0.1),
            Material(_vary(rng, _BLACK, 0.02), gloss=0.3),
            Material(_vary(rng, white), gloss=0.1),
        ]
    )


def _horse(rng, style):
    """Toy horse: a slim body on long legs, a high arched neck with a mane, a full tail; brown, black, white,
    grey or pied.
    """
    bay, chestnut, blond = (0.42, 0.24, 0.13), (0.58, 0.31, 0.15), (0.82, 0.72, 0.52)
    black, white, grey = (0.13, 0.12, 0.12), (0.86, 0.84, 0.80), (0.56, 0.55, 0.54)
    base, other, threshold, mane = [
        (bay, None, 0.5, black),
        (white, None, 0.5, (0.78, 0.74, 0.68)),
        (black, None, 0.5, black),
        (chestnut, None, 0.5, (0.52, 0.27, 0.13)),
        (grey, (0.72, 0.71, 0.70), 0.55, (0.30, 0.30, 0.31)),
        (bay, None, 0.5, black),
        (chestnut, None, 0.5, blond),
        (white, (0.45, 0.26, 0.15), 0.5, (0.40, 0.24, 0.15)),
        ((0.30, 0.18, 0.11), None, 0.5, black),
        ((0.74, 0.58, 0.36), None, 0.5, (0.88, 0.82, 0.68)),
    ][style]
    parts = _Parts()
    long, deep, wide = rng.uniform(0.74, 0.86), rng.uniform(0.32, 0.38), rng.uniform(0.24, 0.30)
    belly = rng.uniform(0.92, 1.10)
    back = belly + deep * 0.8
    parts.ellipsoid((0.0, 0, back), (long * 0.85, wide, deep * 0.88))
    parts.ellipsoid((-long * 0.58, 0, back + 0.05), (0.36, wide * 1.02, deep), blend=0.18)
    parts.ellipsoid((long * 0.58, 0, back + 0.02), (0.33, wide * 0.95, deep), blend=0.18)
    stockings = rng.uniform() < 0.3
    _legs(
        parts,
        rng,
        front=long * 0.66,
        back=-long * 0.68,
        apart=wide * 0.56,
        belly=belly,
        thick=0.135,
        thin=0.06,
        spread=0.16,
        hoof=0.055,
        hock=0.12,
        sock=LIGHT if stockings else MAIN,
    )
    # An arched neck, high unless the horse grazes.
    if rng.uniform() < 0.2:
        crest = np.array([long * 0.62 + 0.5, 0, back - 0.12])
        poll = crest + [0.22, 0, -0.36]
        down = rng.uniform(0.9, 1.2)
    else:
        rise = rng.uniform(0.9, 1.15)
        crest = np.array([long * 0.66, 0, back + 0.1]) + np.array(
            [np.cos(rise), 0, np.sin(rise)]
        ) * rng.uniform(0.42, 0.5)
        poll = crest + np.array([np.cos(rise * 0.9), 0, np.sin(rise * 0.9)]) * rng.uniform(0.24, 0.32)
        down = rng.uniform(0.6, 1.05)
    root = np.array([long * 0.62, 0, back + 0.06])
    parts.limb(root, crest, 0.26, 0.175, blend=0.2)
    parts.limb(crest, poll, 0.175, 0.135, blend=0.1)
    nose = poll + np.array([np.cos(down), 0, -np.sin(down)]) * rng.uniform(0.46, 0.54)
    parts.limb(poll, nose, 0.145, 0.088, blend=0.06)
    parts.ellipsoid(poll + (nose - poll) * 0.28 + [0, 0, -0.05], (0.16, 0.105, 0.14), blend=0.06)
    parts.ellipsoid(nose + [0.01, 0, -0.01], (0.10, 0.085, 0.088), wears=ACCENT, blend=0.04)
    for side in (1, -1):
        parts.limb(
            poll + [-0.02, side * 0.075, 0.1], poll + [0.0, side * 0.10, 0.27], 0.05, 0.015, blend=0.03
        )
        parts.ball(poll + (nose - poll) * 0.3 + [0.05, side * 0.10, 0.06], 0.032, wears=DARK)
        parts.ball(nose + [0.06, side * 0.06, 0.03], 0.02, wears=DARK)
    # The mane: a sheet along the back of the neck, and a forelock.
    for a, b, wide_a, wide_b in ((root + [0.0, 0, 0.06], crest, 0.09, 0.115), (crest, poll, 0.115, 0.095)):
        along = b - a
        behind = np.array([-along[2], 0, along[0]]) / np.linalg.norm(along)
        shift = 0.155 if along[2] > -0.1 else 0.13
        parts.limb(a + behind * (shift + 0.06), b + behind * shift, wide_a, wide_b, wears=SECOND, blend=0.03)
        lower = behind * (shift - 0.03) + np.array([0, 0.10, -0.03])
        parts.limb(a + lower, b + lower, 0.07, 0.07, wears=SECOND, blend=0.05)
    parts.limb(
        poll + [0.0, 0, 0.13],
        poll + (nose - poll) * 0.25 + [0.08, 0, 0.12],
        0.055,
        0.035,
        wears=SECOND,
        blend=0.03,
    )
    rump = np.array([-long * 0.58 - 0.33, 0, back + 0.2])
    sway = rng.uniform(0.05, 0.22)
    bend = rump + [-sway, rng.uniform(-0.05, 0.05), -0.16]
    parts.limb(rump + [0.06, 0, 0], bend, 0.06, 0.085, wears=SECOND, blend=0.03)
    parts.limb(
        bend, bend + [-0.04 - sway * 0.2, 0, -rng.uniform(0.55, 0.8)], 0.095, 0.04, wears=SECOND, blend=0.06
    )
    coat = _coat(
        rng,
        base,
        other,
        scale=rng.uniform(1.4, 1.9),
        threshold=threshold,
        softness=0.2 if style == 4 else 0.04,
        gloss=rng.uniform(0.1, 0.25),
    )
    hair = Material(_vary(rng, mane), mottle=0.25, mottle_scale=14.0, gloss=0.1, seed=_seed(rng))
    muzzle = tuple(0.55 * v + 0.45 * g for v, g in zip(coat.base, (0.22, 0.20, 0.20)))
    return parts.finish(
        [
            coat,
            hair,
            Material(_vary(rng, muzzle)),
            Material(_vary(rng, _BLACK, 0.02), gloss=0.3),
            Material(_vary(rng, white), gloss=0.1),
        ]
    )


class _Breed(NamedTuple):
    """Build and coat of a breed of dog, lengths with the trunk's half length near 0.7."""

    legs: float
    trunk: float
    deep: float
    neck: float
    snout: float
    skull: float
    ears: str
    tail: str
    base: tuple
    other: tuple | None = None
    threshold: float = 0.5
    scale: float = 1.8
    mask: tuple = (0.2, 0.15, 0.12)
    gradient: tuple = (0.0, 0.0, 0.0)


_BREEDS = (
    _Breed(
        0.62, 0.70, 0.30, 0.34, 0.34, 0.23, "hang", "up", (0.76, 0.56, 0.30), mask=(0.70, 0.50, 0.28)
    ),  # retriever
    _Breed(
        0.66,
        0.68,
        0.29,
        0.36,
        0.36,
        0.22,
        "point",
        "sabre",
        (0.56, 0.38, 0.22),
        (0.13, 0.11, 0.10),
        0.72,
        1.5,
        gradient=(0, 0, 0.7),
    ),  # shepherd
    _Breed(
        0.68,
        0.66,
        0.28,
        0.40,
        0.32,
        0.21,
        "hang",
        "up",
        (0.88, 0.87, 0.84),
        (0.10, 0.10, 0.10),
        0.66,
        5.5,
        mask=(0.85, 0.83, 0.80),
    ),  # dalmatian
    _Breed(
        0.28, 0.92, 0.25, 0.30, 0.40, 0.20, "hang", "sabre", (0.42, 0.22, 0.12), mask=(0.36, 0.19, 0.11)
    ),  # dachshund
    _Breed(
        0.44, 0.56, 0.29, 0.26, 0.20, 0.24, "point", "curl", (0.84, 0.80, 0.72), mask=(0.80, 0.74, 0.66)
    ),  # terrier
    _Breed(
        0.60, 0.70, 0.30, 0.34, 0.32, 0.22, "hang", "up", (0.12, 0.11, 0.11), mask=(0.14, 0.12, 0.12)
    ),  # labrador
    _Breed(
        0.48,
        0.64,
        0.28,
        0.30,
        0.30,
        0.22,
        "hang",
        "up",
        (0.87, 0.84, 0.78),
        (0.48, 0.27, 0.14),
        0.5,
        1.5,
        mask=(0.85, 0.80, 0.74),
    ),  # beagle
    _Breed(
        0.58,
        0.66,
        0.32,
        0.30,
        0.30,
        0.24,
        "point",
        "curl",
        (0.84, 0.84, 0.84),
        (0.30, 0.31, 0.34),
        0.55,
        1.4,
        mask=(0.82, 0.82, 0.82),
        gradient=(0, 0, 0.8),
    ),  # husky
    _Breed(
        0.48, 0.58, 0.33, 0.24, 0.18, 0.265, "fold", "stub", (0.70, 0.52, 0.34), mask=(0.18, 0.14, 0.12)
    ),  # boxer, bulldog
    _Breed(
        0.70,
        0.62,
        0.27,
        0.38,
        0.34,
        0.20,
        "point",
        "sabre",
        (0.14, 0.12, 0.11),
        (0.56, 0.34, 0.17),
        0.78,
        1.5,
        mask=(0.54, 0.33, 0.17),
        gradient=(0, 0, -0.7),
    ),  # pinscher
)


def _dog(rng, style):
    """Toy dog: a deep chest and a narrow waist, paws, a muzzle with a black nose, ears and a tail that differ
    with the breed.
    """
    breed = _BREEDS[style]
    parts = _Parts()
    legs, trunk, deep = (value * rng.uniform(0.94, 1.06) for value in (breed.legs, breed.trunk, breed.deep))
    back = legs + deep * 0.75
    wide = deep * rng.uniform(0.72, 0.85)
    parts.ellipsoid((trunk * 0.48, 0, back - 0.01), (trunk * 0.55, wide, deep))
    parts.limb(
        (trunk * 0.4, 0, back + 0.03), (-trunk * 0.7, 0, back + 0.06), deep * 0.75, deep * 0.62, blend=0.12
    )
    parts.ellipsoid((-trunk * 0.72, 0, back + 0.02), (0.25, wide * 0.9, deep * 0.78), blend=0.12)
    sturdy = 1.3 if breed.deep > 0.32 else 1.0
    _legs(
        parts,
        rng,
        front=trunk * 0.68,
        back=-trunk * 0.78,
        apart=wide * 0.62,
        belly=legs,
        thick=0.115 * sturdy,
        thin=0.065 * sturdy,
        spread=0.12,
        hoof=0.0,
        hock=0.11 * min(1.0, legs / 0.5),
    )
    rise = rng.uniform(0.75, 1.05)
    skull = np.array([trunk * 0.78, 0, back + 0.12]) + np.array([np.cos(rise), 0, np.sin(rise)]) * (
        breed.neck + 0.12
    )
    parts.limb((trunk * 0.66, 0, back + 0.06), skull, deep * 0.62, breed.skull * 0.72, blend=0.1)
    size = breed.skull
    parts.ellipsoid(skull + [0.03, 0, 0.04], (size * 1.05, size * 0.92, size * 0.92), blend=0.07)
    tilt = rng.uniform(0.1, 0.4)
    ahead = np.array([np.cos(tilt), 0, -np.sin(tilt)])
    nose = skull + [0.06, 0, -0.02] + ahead * (size * 0.6 + breed.snout)
    parts.limb(skull + [size * 0.35, 0, -0.04], nose, size * 0.56, size * 0.38, wears=SECOND, blend=0.05)
    parts.ball(nose + ahead * size * 0.36 + [0, 0, size * 0.14], size * 0.2, wears=DARK)
    jaw = skull + [size * 0.6, 0, -size * 0.48]
    parts.limb(nose + [0, 0, -size * 0.34], jaw, size * 0.2, size * 0.26, wears=SECOND, blend=0.03)
    for side in (1, -1):
        parts.ball(skull + [size * 0.86, side * size * 0.42, size * 0.42], size * 0.15, wears=DARK)
        if breed.ears == "point":
            parts.limb(
                skull + [-size * 0.1, side * size * 0.58, size * 0.7],
                skull + [0.0, side * size * 0.75, size * 1.65],
                size * 0.34,
                size * 0.06,
                blend=0.03,
            )
        elif breed.ears == "fold":
            fold = skull + [size * 0.15, side * size * 0.92, size * 0.62]
            parts.ellipsoid(fold, (size * 0.3, size * 0.36, size * 0.22), blend=0.03)
        else:
            parts.ellipsoid(
                skull + [-size * 0.12, side * size * 0.98, -size * 0.22],
                (size * 0.4, size * 0.16, size * 0.85),
                wears=ACCENT,
                blend=0.02,
                along=(0.12, 0.28 * side, 1.0),
            )
    root = np.array([-trunk * 0.72 - 0.18, 0, back + deep * 0.42])
    if breed.tail == "stub":
        parts.limb(root, root + [-0.1, 0, 0.12], 0.07, 0.05, blend=0.04)
    else:
        bend, tip = {
            "up": ([-0.24, 0, 0.26], [-0.34, 0, 0.62]),
            "sabre": ([-0.28, 0, -0.02], [-0.54, 0, 0.14]),
            "curl": ([-0.14, 0, 0.28], [0.12, 0.04, 0.40]),
        }[breed.tail]
        bend, tip = (
            root + np.array(bend) * rng.uniform(0.85, 1.1),
            root + np.array(tip) * rng.uniform(0.85, 1.1),
        )
        parts.limb(root + [0.06, 0, 0], bend, 0.075, 0.06, blend=0.06)
        parts.limb(bend, tip, 0.06, 0.03, blend=0.05)
    if rng.uniform() < 0.35:
        neck = np.array([trunk * 0.66, 0, back + 0.06]) * 0.42 + skull * 0.58
        parts.ring(neck, deep * 0.62, 0.035, wears=LIGHT, along=skull - [trunk * 0.66, 0, back + 0.06])
    coat = _coat(
        rng,
        breed.base,
        breed.other,
        scale=breed.scale,
        threshold=breed.threshold,
        gradient=breed.gradient,
        softness=0.12 if any(breed.gradient) else 0.04,
        gloss=rng.uniform(0.03, 0.12),
        mottle=0.16,
    )
    muzzle = Material(_vary(rng, breed.mask), mottle=0.1, mottle_scale=10.0, gloss=0.05, seed=_seed(rng))
    ear = tuple(0.8 * v for v in (breed.other if breed.other and not any(breed.gradient) else breed.base))
    return parts.finish(
        [
            coat,
            muzzle,
            Material(_vary(rng, ear), mottle=0.15, gloss=0.05),
            Material(_vary(rng, _BLACK, 0.02), gloss=0.5),
            Material(_paint(rng, rng.choice([0.0, 0.33, 0.6]), 0.8, 0.6), gloss=0.3),
        ]
    )


_CAR_BODIES = ("saloon", "hatch", "van", "sports", "beetle", "saloon", "hatch", "pickup", "sports", "estate")
# Hue, saturation, brightness.
_CAR_PAINTS = (
    (0.0, 0.88, 0.72),
    (0.62, 0.75, 0.55),
    (0.13, 0.85, 0.88),
    (0.0, 0.0, 0.86),
    (0.36, 0.65, 0.42),
    (0.0, 0.85, 0.62),
    (0.56, 0.55, 0.72),
    (0.07, 0.85, 0.85),
    (0.0, 0.0, 0.14),
    (0.0, 0.02, 0.62),
)


def _car(rng, style):
    """Toy car: a body and a cabin with dark windows, four wheels with bright hubs, lamps and bumpers; many
    colours and types.
    """
    body = _CAR_BODIES[style]
    parts = _Parts()
    long = {"van": 0.98, "hatch": 0.88, "beetle": 0.92}.get(body, 1.08) * rng.uniform(0.95, 1.05)
    wide = rng.uniform(0.40, 0.47)
    low = body == "sports"
    wheel = rng.uniform(0.155, 0.175) if low else rng.uniform(0.175, 0.21)
    floor = wheel * 0.72
    arch = wheel * 1.12
    # The height of the window sill leaves room for the arches of the wheels below the bonnet.
    sill = max(floor + (0.22 if low else 0.30) * rng.uniform(0.95, 1.1), wheel + arch + 0.05)
    roof = sill + {"van": 0.44, "sports": 0.22, "beetle": 0.34}.get(body, 0.31) * rng.uniform(0.93, 1.07)
    middle, half = (sill + floor) / 2, (sill - floor) / 2
    axle_places = (rng.uniform(0.56, 0.62), -rng.uniform(0.56, 0.64))
    if body == "beetle":
        parts.box((0, 0, middle), (long * 0.97, wide * 0.8, half), half * 0.85, taper=(0.4, 0.2))
        for x in (0.5, -0.5):
            parts.ellipsoid((long * x, 0, sill - 0.08), (long * 0.38, wide * 0.62, 0.15), blend=0.05)
        for x in axle_places:
            for side in (1, -1):
                parts.ellipsoid(
                    (long * x, side * wide * 0.76, wheel * 1.15),
                    (wheel * 1.6, wide * 0.26, wheel * 1.1),
                    blend=0.05,
                )
    else:
        parts.box((0, 0, middle), (long, wide, half), min(0.09, half * 0.6), taper=(0.1, 0.06), blend=0.0)
    # The cabin: where it starts and ends along the car, and how steeply its front and back lean (loss of half
    # length per height).
    back, front, lean = {
        "saloon": (-0.66, 0.36, 0.62),
        "hatch": (-0.90, 0.40, 0.42),
        "van": (-0.97, 0.62, 0.22),
        "sports": (-0.62, 0.22, 0.85),
        "beetle": (-0.58, 0.40, 0.75),
        "pickup": (-0.10, 0.46, 0.45),
        "estate": (-0.95, 0.34, 0.36),
    }[body]
    centre, reach = long * (back + front) / 2, long * (front - back) / 2
    tall = (roof - sill) / 2 + 0.03
    base, side_lean = sill - 0.06 + tall, 0.2
    parts.box(
        (centre, 0, base), (reach - lean * tall, wide * 0.86, tall), 0.05, taper=(lean, side_lean), blend=0.03
    )
    if body == "beetle":
        parts.ellipsoid(
            (centre, 0, roof - 0.03), ((reach - lean * tall * 2) * 1.25, wide * 0.72, 0.06), blend=0.03
        )
    # Windows: slightly proud of the cabin, shorter than it where they should not show.
    glass_low, glass_high = sill + 0.03, roof - 0.055
    middle_glass, half_glass = (glass_low + glass_high) / 2, (glass_high - glass_low) / 2
    away = middle_glass - base
    width, length = wide * 0.86 - side_lean * away, reach - lean * tall - lean * away
    grow = 0.012
    parts.box(
        (centre, 0, middle_glass),
        (length * 0.84 if body != "pickup" else length * 0.7, width + grow, half_glass),
        0.02,
        taper=(lean, side_lean),
        wears=SECOND,
    )
    parts.box(
        (centre, 0, middle_glass),
        (length + grow * 1.6, width * 0.84, half_glass),
        0.02,
        taper=(lean, side_lean),
        wears=SECOND,
    )
    # Door posts in the colour of the body cross the side windows.
    for x in (0.05, -0.55) if body in ("estate", "van") else (0.0,):
        half_post = (0.028, width + grow * 1.9, half_glass + 0.02)
        parts.box((centre + length * x, 0, middle_glass), half_post, 0.012, taper=(0, side_lean))
    if body == "pickup":
        parts.box((-long * 0.56, 0, sill), (long * 0.38, wide * 0.72, half * 0.9), 0.02, wears=DARK, op=CUT)
    for x in (long * place for place in axle_places):
        for side in (1, -1):
            if body != "beetle":
                parts.drum(
                    (x, side * wide, wheel), arch, wide * 0.24, 0.01, wears=DARK, along=(0, 1, 0), op=CUT
                )
            parts.drum((x, side * wide * 0.9, wheel), wheel, wide * 0.15, 0.035, wears=DARK, along=(0, 1, 0))
            parts.drum(
                (x, side * wide * 0.915, wheel),
                wheel * 0.56,
                wide * 0.155,
                0.015,
                wears=ACCENT,
                along=(0, 1, 0),
            )
    for end in (1, -1):
        if rng.uniform() < 0.7:
            parts.box((end * long * 0.985, 0, floor + 0.055), (0.06, wide * 0.93, 0.04), 0.03, wears=ACCENT)
        for side in (1, -1):
            x = end * long * (0.93 if body == "beetle" else 0.965)
            lamp = LIGHT if end == 1 else DARK
            parts.ellipsoid(
                (x, side * wide * (0.6 if body == "beetle" else 0.7), middle + 0.04),
                (0.06, 0.085, 0.06),
                wears=lamp,
            )
    paint = _paint(rng, *_CAR_PAINTS[style])
    coat = Material(paint, mottle=0.03, mottle_scale=3.0, gloss=rng.uniform(0.5, 0.9), seed=_seed(rng))
    trim = rng.uniform()
    if (
        trim < 0.25
    ):  # racing stripe along the middle: one band across y, wide enough that no second one appears
        coat = coat._replace(
            second=_paint(rng, 0.0, 0.0, 0.9 if max(paint) < 0.7 else 0.15),
            pattern=BANDS,
            scale=(0.0, 0.9, 0.0),
            threshold=0.84,
            softness=0.02,
        )
    elif trim < 0.45:  # two-tone: darker below
        coat = coat._replace(
            second=tuple(v * 0.4 for v in paint),
            scale=(0.0, 0.0, 0.0),
            gradient=(0.0, 0.0, -8.0),
            threshold=1.4,
            softness=0.1,
        )
    glass = Material(_vary(rng, (0.13, 0.16, 0.19), 0.02), mottle=0.02, gloss=0.9)
    return parts.finish(
        [
            coat,
            glass,
            Material(_vary(rng, (0.72, 0.72, 0.74)), mottle=0.03, gloss=0.8),
            Material(_vary(rng, (0.09, 0.09, 0.09), 0.015), mottle=0.1, gloss=0.1),
            Material(_vary(rng, (0.92, 0.90, 0.76)), mottle=0.02, gloss=0.8),
        ]
    )


def _cup(rng, style):
    """Cup: a hollow mug, straight, tapered or rounded, with a handle; glazed in one or two colours, some with
    a printed pattern.
    """
    # Hue, saturation, brightness of the glaze and of its print; the print's form.
    glaze, ink, form = [
        ((0.0, 0.0, 0.90), (0.60, 0.75, 0.50), BANDS),
        ((0.62, 0.70, 0.48), None, None),
        ((0.0, 0.80, 0.66), None, None),
        ((0.12, 0.15, 0.90), (0.33, 0.60, 0.45), SPOTS),
        ((0.13, 0.70, 0.85), (0.02, 0.80, 0.60), BANDS),
        ((0.08, 0.55, 0.42), None, None),
        ((0.0, 0.0, 0.88), (0.95, 0.60, 0.66), NOISE),
        ((0.38, 0.45, 0.52), (0.13, 0.20, 0.88), CHECKS),
        ((0.0, 0.0, 0.14), None, None),
        ((0.55, 0.35, 0.72), (0.0, 0.0, 0.92), SPOTS),
    ][style]
    parts = _Parts()
    tall = rng.uniform(0.85, 1.2)  # height over width
    taper = rng.choice([0.0, 0.0, -0.1, -0.2]) + rng.normal(0.0, 0.015)
    wall = rng.uniform(0.055, 0.085)
    waist = rng.uniform() < 0.25
    parts.drum((0, 0, 0), 1.0, tall, rng.uniform(0.04, 0.1), taper=taper)
    if waist:
        parts.ellipsoid((0, 0, -tall * 0.35), (1.1, 1.1, tall * 0.62), blend=0.15)
    # The handle stands to the left of the front.
    loop = rng.uniform(0.36, 0.5) * min(tall, 1.1)
    thick = rng.uniform(0.085, 0.12)
    lift = rng.uniform(-0.05, 0.12) * tall
    if rng.uniform() < 0.65:
        parts.ring(
            (0, 1.0 + loop * 0.22 - taper * lift, lift),
            loop,
            thick,
            wears=ACCENT,
            blend=0.08,
            along=(1, 0, 0),
        )
    else:
        out = 1.0 + loop * 1.05
        for end in (1, -1):
            parts.limb(
                (0, 0.9, lift + end * loop),
                (0, out - 0.1, lift + end * loop * 0.85),
                thick,
                wears=ACCENT,
                blend=0.06,
            )
        parts.limb(
            (0, out - 0.1, lift + loop * 0.85),
            (0, out - 0.1, lift - loop * 0.85),
            thick,
            wears=ACCENT,
            blend=0.12,
        )
    parts.drum(
        (0, 0, wall * 2.2), 1.0 - wall * 1.6, tall, 0.08, taper=taper, wears=SECOND, blend=0.05, op=CUT
    )
    glaze_colour = _paint(rng, *glaze)
    coat = Material(glaze_colour, mottle=0.04, mottle_scale=3.0, gloss=rng.uniform(0.4, 0.8), seed=_seed(rng))
    if form == BANDS:
        coat = coat._replace(
            second=_paint(rng, *ink),
            pattern=BANDS,
            scale=(0.0, 0.0, rng.uniform(2.0, 5.0)),
            threshold=rng.uniform(0.45, 0.7),
            softness=0.05,
            low=-0.4,
            high=0.4,
        )
    elif form == SPOTS:
        coat = coat._replace(
            second=_paint(rng, *ink),
            pattern=SPOTS,
            scale=(int(rng.integers(7, 12)), rng.uniform(3.0, 4.5), 0.0),
            threshold=rng.uniform(0.35, 0.55),
            softness=0.06,
        )
    elif form == CHECKS:
        coat = coat._replace(
            second=_paint(rng, *ink),
            pattern=CHECKS,
            scale=(int(rng.integers(5, 9)), rng.uniform(2.0, 3.0), 0.0),
            threshold=0.5,
            softness=0.02,
            low=-0.25,
            high=0.3,
        )
    elif form == NOISE:
        coat = coat._replace(second=_paint(rng, *ink), scale=(5.0, 5.0, 5.0), threshold=0.58, softness=0.03)
    plain = coat._replace(threshold=9.0)
    inside = plain._replace(base=_vary(rng, (0.90, 0.89, 0.85)) if rng.uniform() < 0.6 else glaze_colour)
    handle = plain._replace(base=coat.second) if form is not None and rng.uniform() < 0.3 else plain
    return parts.finish([coat, inside, handle, plain._replace(base=_vary(rng, (0.2, 0.18, 0.17))), inside])


_BUILDERS = {
    "apple": _apple,
    "car": _car,
    "cow": _cow,
    "cup": _cup,
    "dog": _dog,
    "horse": _horse,
    "pear": _pear,
    "tomato": _tomato,
}
_N_STYLES = 10


def build_object(category, number, random_state=0):
    """Build object `number` (from 1) of a category; the result depends on the three arguments alone.

    Ten styles of colour and build are dealt out to objects 1 to 10 in a shuffled order (11 to 20 go round
    again); proportions and shades are drawn within the style.

    Returns
    -------
    ToyObject
    """
    family = OBJECT_CATEGORIES.index(category)
    order = np.random.default_rng([random_state, family]).permutation(_N_STYLES)
    rng = np.random.default_rng([random_state, family, number])
    return _BUILDERS[category](rng, int(order[(number - 1) % _N_STYLES]))


# --------------------------------------------------------------------------------------------------- renderer

# Half the frame is this much longer than the object's reach, so that nothing is cut: where parts melt
# together, the surface may swell a little beyond both.
_MARGIN = 1.06
_TILE = 8
_MAX_STEPS = 64
# Distances are bounds, not exact, where ellipsoids are flat and boxes taper: a shortened step stays on the
# safe side.
_STEP = 0.9
_HIT = 3e-3
_OCCLUSION_REACH = 0.09
# Chroma-key blue, linear in light.
_BLUE = (0.10**2, 0.22**2, 0.58**2)


@njit(cache=True, nogil=True, error_model="numpy")
def _hash(x, y, z, seed):
    """A well-mixed integer in [0, 2^24) of a lattice point; 64-bit arithmetic that wraps."""
    h = x * 374761393 + y * 668265263 + z * 2147483647 + seed * 1274126177
    h = (h ^ (h >> 15)) * 2246822519
    h = (h ^ (h >> 13)) * 3266489917
    return (h ^ (h >> 16)) & 0xFFFFFF


@njit(cache=True, nogil=True, error_model="numpy")
def _noise(x, y, z, seed):
    """Smooth noise in [0, 1]: random values on the integer lattice, blended by 3 t^2 - 2 t^3."""
    fx, fy, fz = np.floor(x), np.floor(y), np.floor(z)
    ix, iy, iz = int(fx), int(fy), int(fz)
    tx, ty, tz = x - fx, y - fy, z - fz
    tx, ty, tz = tx * tx * (3 - 2 * tx), ty * ty * (3 - 2 * ty), tz * tz * (3 - 2 * tz)
    total = 0.0
    for dx in range(2):
        wx = tx if dx else 1 - tx
        for dy in range(2):
            wy = wx * (ty if dy else 1 - ty)
            total += wy * (
                (1 - tz) * _hash(ix + dx, iy + dy, iz, seed) + tz * _hash(ix + dx, iy + dy, iz + 1, seed)
            )
    return total / 16777215.0


# Places in a row of the table that the compiled code reads: what a part is, how it stands in the view's
# frame, and numbers derived from its size once per view rather than once per step.
_KIND, _OP, _MATERIAL, _BLEND, _TURN, _SHIFT, _SIZE, _DERIVED, _ROW = 0, 1, 2, 3, 4, 13, 16, 22, 26


def _table(shape, basis):
    """Lay a shape out as rows of numbers, in the frame whose axes are the columns of `basis`."""
    table = np.zeros((len(shape.kind), _ROW))
    table[:, _KIND], table[:, _OP], table[:, _MATERIAL], table[:, _BLEND] = (
        shape.kind,
        shape.op,
        shape.material,
        shape.blend,
    )
    table[:, _TURN:_SHIFT] = (shape.turn @ basis).reshape(-1, 9)
    table[:, _SHIFT:_SIZE] = np.einsum("kij,kj->ki", shape.turn, shape.centre)
    table[:, _SIZE:_DERIVED] = shape.size
    for row, kind, size in zip(table[:, _DERIVED:], shape.kind, shape.size):
        if kind == ELLIPSOID:
            row[:3] = 1.0 / size[:3]
        elif kind == LIMB:
            row[0] = (size[1] - size[2]) / size[0]
            row[1] = np.sqrt(max(0.0, 1.0 - row[0] ** 2))
        elif kind == BOX:
            row[:2] = 1.0 / np.sqrt(1.0 + size[4:6] ** 2)
        elif kind == RING:
            row[:2] = 1.0 / size[1], 1.0 / (size[1] * size[2])
        else:
            row[0] = 1.0 / np.sqrt(1.0 + size[3] ** 2)
    return table


@njit(cache=True, nogil=True, error_model="numpy")
def _part_distances(p, k, xs, ys, zs, n, out):
    """Write the signed distances of part `k` of the table from `n` points (bounds where the true ones have no
    closed form).

    One plain loop per kind, which the compiler turns into vector instructions.
    """
    a, b, c = p[k, _TURN], p[k, _TURN + 1], p[k, _TURN + 2]
    d, e, f = p[k, _TURN + 3], p[k, _TURN + 4], p[k, _TURN + 5]
    g, h, i = p[k, _TURN + 6], p[k, _TURN + 7], p[k, _TURN + 8]
    u, v, w = p[k, _SHIFT], p[k, _SHIFT + 1], p[k, _SHIFT + 2]
    s0, s1, s2 = p[k, _SIZE], p[k, _SIZE + 1], p[k, _SIZE + 2]
    s3, s4, s5 = p[k, _SIZE + 3], p[k, _SIZE + 4], p[k, _SIZE + 5]
    r0, r1, r2 = p[k, _DERIVED], p[k, _DERIVED + 1], p[k, _DERIVED + 2]
    kind = int(p[k, _KIND])
    if kind == ELLIPSOID:
        for j in range(n):
            x = (a * xs[j] + b * ys[j] + c * zs[j] - u) * r0
            y = (d * xs[j] + e * ys[j] + f * zs[j] - v) * r1
            z = (g * xs[j] + h * ys[j] + i * zs[j] - w) * r2
            k0 = np.sqrt(x * x + y * y + z * z)
            x, y, z = x * r0, y * r1, z * r2
            out[j] = k0 * (k0 - 1.0) / max(np.sqrt(x * x + y * y + z * z), 1e-12)
    elif kind == LIMB:  # two balls and the cone that touches both
        end = s0 * r1
        for j in range(n):
            x = a * xs[j] + b * ys[j] + c * zs[j] - u
            y = d * xs[j] + e * ys[j] + f * zs[j] - v
            z = g * xs[j] + h * ys[j] + i * zs[j] - w
            flat = np.sqrt(x * x + y * y)
            along = z * r1 - flat * r0
            beyond = z - s0
            start_ball = np.sqrt(flat * flat + z * z) - s1
            end_ball = np.sqrt(flat * flat + beyond * beyond) - s2
            cone = flat * r1 + z * r0 - s1
            out[j] = start_ball if along <= 0.0 else (end_ball if along >= end else cone)
    elif kind == BOX:  # rounded, narrower towards its top
        for j in range(n):
            x = a * xs[j] + b * ys[j] + c * zs[j] - u
            y = d * xs[j] + e * ys[j] + f * zs[j] - v
            z = g * xs[j] + h * ys[j] + i * zs[j] - w
            x = (abs(x) - (s0 - s4 * z)) * r0
            y = (abs(y) - (s1 - s5 * z)) * r1
            z = abs(z) - s2
            inside = min(max(x, max(y, z)), 0.0)
            x, y, z = max(x, 0.0), max(y, 0.0), max(z, 0.0)
            out[j] = np.sqrt(x * x + y * y + z * z) + inside - s3
    elif (
        kind == RING
    ):  # its tube an ellipse, its circle perhaps with five lobes: cos 5t, a polynomial in cos t
        for j in range(n):
            x = a * xs[j] + b * ys[j] + c * zs[j] - u
            y = d * xs[j] + e * ys[j] + f * zs[j] - v
            z = g * xs[j] + h * ys[j] + i * zs[j] - w
            flat = np.sqrt(x * x + y * y)
            turn = x / max(flat, 1e-9)
            square = turn * turn
            lobe = s3 * turn * (16.0 * square * square - 20.0 * square + 5.0) * min(1.0, flat * r0)
            x, y = (flat - s0 - lobe) * r0, z * r1
            k0 = np.sqrt(x * x + y * y)
            x, y = x * r0, y * r1
            out[j] = k0 * (k0 - 1.0) / max(np.sqrt(x * x + y * y), 1e-12)
    else:  # DRUM, rounded, narrower towards its top
        for j in range(n):
            x = a * xs[j] + b * ys[j] + c * zs[j] - u
            y = d * xs[j] + e * ys[j] + f * zs[j] - v
            z = g * xs[j] + h * ys[j] + i * zs[j] - w
            x = (np.sqrt(x * x + y * y) - (s0 - s3 * z)) * r0
            z = abs(z) - s1
            inside = min(max(x, z), 0.0)
            x, z = max(x, 0.0), max(z, 0.0)
            out[j] = np.sqrt(x * x + z * z) + inside - s2


@njit(cache=True, nogil=True, error_model="numpy")
def _join(p, k, part, total, n):
    """Join the distances of part `k` to those of the parts before it, in place.

    Adding melts two surfaces together over the part's width (a quadratic smooth minimum). Cutting away is
    adding, seen from inside: max(a, -b) = -min(-a, b).
    """
    sign = 1.0 - 2.0 * p[k, _OP]
    width = p[k, _BLEND]
    if width > 0.0:
        quarter = 0.25 / width
        for j in range(n):
            before, d = sign * total[j], part[j]
            overlap = max(width - abs(before - d), 0.0)
            total[j] = sign * (min(before, d) - quarter * overlap * overlap)
    else:
        for j in range(n):
            total[j] = sign * min(sign * total[j], part[j])


@njit(cache=True, nogil=True, error_model="numpy")
def _distances(p, n_parts, xs, ys, zs, n, part, total):
    """Write to `total` the signed distances of ``(xs, ys, zs)[:n]`` from the object made of the table's first
    `n_parts` rows.
    """
    for j in range(n):
        total[j] = 1e9
    for k in range(n_parts):
        _part_distances(p, k, xs, ys, zs, n, part)
        _join(p, k, part, total, n)


@njit(cache=True, nogil=True, error_model="numpy")
def _wear(p, n_parts, xs, ys, zs, n, part, total, weights):
    """As `_distances`, and fill ``weights[:, :n]`` with the shares of the materials, which melt into each
    other as the parts do.
    """
    for j in range(n):
        total[j] = 1e9
        for m in range(weights.shape[0]):
            weights[m, j] = 0.0
    for k in range(n_parts):
        _part_distances(p, k, xs, ys, zs, n, part)
        sign, width, own = 1.0 - 2.0 * p[k, _OP], max(p[k, _BLEND], 1e-9), int(p[k, _MATERIAL])
        for j in range(n):
            share = min(max(0.5 + 0.5 * (sign * total[j] - part[j]) / width, 0.0), 1.0)
            if share > 0.0:
                for m in range(weights.shape[0]):
                    weights[m, j] *= 1.0 - share
                weights[own, j] += share
        _join(p, k, part, total, n)


@njit(cache=True, nogil=True, error_model="numpy")
def _step_between(low, high, value):
    t = min(max((value - low) / (high - low), 0.0), 1.0)
    return t * t * (3.0 - 2.0 * t)


@njit(cache=True, nogil=True, error_model="numpy")
def _colour(m, x, y, z, out):
    """Write the linear colour of a material, a row as `Material.row` lays it out, at an object point into
    `out`.
    """
    pattern, s0, s1, s2, threshold, softness = int(m[9]), m[10], m[11], m[12], m[13], m[14]
    low, high, speck_scale, speck_share, mottle, mottle_scale, seed = (
        m[18],
        m[19],
        m[20],
        m[21],
        m[22],
        m[23],
        int(m[25]),
    )
    share = 0.0
    if threshold < 8.0 and low < z < high:
        if pattern == NOISE:
            u, v, w = s0 * x, s1 * y, s2 * z
            value = (2.0 * _noise(u, v, w, seed) + _noise(2.0 * u, 2.0 * v, 2.0 * w, seed + 1)) / 3.0
        elif pattern == BANDS:
            phase = s0 * x + s1 * y + s2 * z
            value = 1.0 - 2.0 * abs(phase - np.floor(phase + 0.5))
        else:
            u, v = np.arctan2(y, x) / (2.0 * np.pi) * s0, s1 * z
            if pattern == SPOTS:
                if int(s0) % 2 == 0:  # every other column half a step higher, where the columns can pair up
                    v += 0.5 * (int(np.floor(u)) & 1)
                u, v = u - np.floor(u) - 0.5, v - np.floor(v) - 0.5
                value = 1.0 - 2.0 * np.sqrt(u * u + v * v)
            else:
                value = float((int(np.floor(2.0 * u)) + int(np.floor(2.0 * v))) & 1)
        value += m[15] * x + m[16] * y + m[17] * z
        share = _step_between(threshold - softness, threshold + softness, value)
    for c in range(3):
        out[c] = m[c] + share * (m[3 + c] - m[c])
    if speck_share > 0.0:
        u, v, w = speck_scale * x, speck_scale * y, speck_scale * z
        fu, fv, fw = np.floor(u), np.floor(v), np.floor(w)
        if (_hash(int(fu), int(fv), int(fw), seed + 4) & 0xFFFF) < speck_share * 65536.0:
            # A ball somewhere in the middle of its cell; the surface cuts a disc out of it.
            h = _hash(int(fu), int(fv), int(fw), seed + 2)
            u -= fu + 0.3 + 0.4 * (h & 255) / 255.0
            v -= fv + 0.3 + 0.4 * ((h >> 8) & 255) / 255.0
            w -= fw + 0.3 + 0.4 * (h >> 16) / 255.0
            speck = 0.75 * (1.0 - _step_between(0.2, 0.32, np.sqrt(u * u + v * v + w * w)))
            for c in range(3):
                out[c] += speck * (m[6 + c] - out[c])
    if mottle > 0.0:
        tone = 1.0 + mottle * (
            2.0 * _noise(mottle_scale * x, mottle_scale * y, mottle_scale * z, seed + 3) - 1.0
        )
        for c in range(3):
            out[c] *= tone


@njit(cache=True, nogil=True, error_model="numpy")
def _level(value, row, col, channel, seed, noise):
    """Turn linear light into a level 0..255 as a camera does: gamma (2, a square root) and the sensor's
    noise.

    The sum of the three bytes of a hash is bell-shaped enough: mean 382.5, standard deviation 128.
    """
    level = 255.0 * np.sqrt(value)
    if noise > 0.0:
        h = _hash(row, col, channel, seed)
        level += noise * ((h & 255) + ((h >> 8) & 255) + (h >> 16) - 382.5) / 128.0
    return np.uint8(min(max(level + 0.5, 0.0), 255.0))


@njit(cache=True, nogil=True, error_model="numpy")
def _trace(p, n_parts, xs, ys, n, start, stop, depth, work):
    """March `n` parallel rays from `start` until they meet the surface or pass `stop`; `depth` gets where, or
    -1e9.

    Rays that are done leave the packet, so that the others stay side by side. `work` is scratch of 6 rows.
    """
    x, y, z, part, total = work[0], work[1], work[2], work[3], work[4]
    which = work[5]
    for j in range(n):
        x[j], y[j], z[j], which[j] = xs[j], ys[j], start, j
        depth[j] = -1e9
    going = n
    for _ in range(_MAX_STEPS):
        _distances(p, n_parts, x, y, z, going, part, total)
        kept = np.int64(0)
        for j in range(going):
            d = total[j]
            if d < _HIT:
                depth[int(which[j])] = z[j] + d
            elif z[j] + d * _STEP < stop:
                x[kept], y[kept], z[kept], which[kept] = x[j], y[j], z[j] + d * _STEP, which[j]
                kept += 1
        going = kept
        if going == 0:
            break


@njit(cache=True, nogil=True, error_model="numpy")
def _render(table, low, high, materials, basis, frame, light, noise_seed, noise, image, mask):
    """Render one view. Everything is in the view's frame: x right, y up, z into the scene.

    `low`, `high` are the bounding boxes of the parts in `table`; `frame` the (x, y) of the frame's middle and
    half its side; `basis` turns view coordinates into the object's, whose textures sit in them; `light` is
    the direction to the lamp. Writes `image` and `mask`.
    """
    n_parts = table.shape[0]
    n = image.shape[0]
    # How far a part can bend the surface of others: over its own width of blending, or that of any part that
    # joins later.
    grow = np.empty(n_parts)
    widest = _OCCLUSION_REACH
    for k in range(n_parts - 1, -1, -1):
        widest = max(widest, table[k, _BLEND])
        grow[k] = widest
    p = np.empty_like(table)
    lanes = _TILE * _TILE
    work = np.empty((6, lanes))
    xs, ys, depth = np.empty(lanes), np.empty(lanes), np.empty(lanes)
    lane = np.empty(lanes, np.int64)
    part, total = np.empty(lanes), np.empty(lanes)
    normals = np.empty((3, lanes))
    room = np.empty(lanes)
    weights = np.empty((materials.shape[0], lanes))
    colour = np.empty(3)
    albedo = np.empty(3)
    pixel = 2.0 * frame[2] / n
    half_diagonal = pixel * _TILE * np.sqrt(0.5)
    # Half way between the lamp and the camera: where a surface must face to shine.
    hx, hy, hz = light[0], light[1], light[2] - 1.0
    length = np.sqrt(hx * hx + hy * hy + hz * hz)
    hx, hy, hz = hx / length, hy / length, hz / length
    for row0 in range(0, n, _TILE):
        for col0 in range(0, n, _TILE):
            row1, col1 = min(row0 + _TILE, n), min(col0 + _TILE, n)
            left, right = frame[0] - frame[2] + col0 * pixel, frame[0] - frame[2] + col1 * pixel
            top, bottom = frame[1] + frame[2] - row0 * pixel, frame[1] + frame[2] - row1 * pixel
            for row in range(row0, row1):
                fall = 1.0 - 0.12 * (row + 0.5) / n
                for col in range(col0, col1):
                    mask[row, col] = False
                    for c in range(3):
                        image[row, col, c] = _level(_BLUE[c] * fall, row, col, c, noise_seed, noise)
            # (A counter that starts as a plain 0 has the type "constant 0" at first, and all callees would be
            # compiled for it too.) Only parts whose box, grown by what they can influence, overlaps the tile
            # are looked at within it.
            n_near = np.int64(0)
            start, stop = 1e9, -1e9
            for k in range(n_parts):
                g = grow[k]
                if (
                    low[k, 0] - g < right
                    and high[k, 0] + g > left
                    and low[k, 1] - g < top
                    and high[k, 1] + g > bottom
                ):
                    for field in range(table.shape[1]):
                        p[n_near, field] = table[k, field]
                    n_near += 1
                    if table[k, _OP] == ADD:
                        start = min(start, low[k, 2] - g)
                        stop = max(stop, high[k, 2] + g)
            # All rays of the tile march together while no surface can lie within the tile's half diagonal of
            # its middle ray.
            xs[0], ys[0] = 0.5 * (left + right), 0.5 * (top + bottom)
            depth[0] = start
            for _ in range(_MAX_STEPS):
                if depth[0] >= stop:
                    break
                _distances(p, n_near, xs, ys, depth, np.int64(1), part, total)
                if total[0] - half_diagonal < 0.5 * pixel:
                    break
                depth[0] += (total[0] - half_diagonal) * _STEP
            start = depth[0]
            if start >= stop:
                continue
            count = np.int64(0)
            for row in range(row0, row1):
                for col in range(col0, col1):
                    xs[count] = frame[0] - frame[2] + (col + 0.5) * pixel
                    ys[count] = frame[1] + frame[2] - (row + 0.5) * pixel
                    lane[count] = row * n + col
                    count += 1
            _trace(p, n_near, xs, ys, count, start, stop, depth, work)
            hits = np.int64(0)
            for j in range(count):
                if depth[j] > -1e8:
                    xs[hits], ys[hits], depth[hits], lane[hits] = xs[j], ys[j], depth[j], lane[j]
                    hits += 1
            if hits == 0:
                continue
            _wear(p, n_near, xs, ys, depth, hits, part, total, weights)
            # The normal is the gradient of the distance, by differences.
            e = 2e-3
            for axis in range(3):
                for j in range(hits):
                    work[0, j] = xs[j] + (e if axis == 0 else 0.0)
                    work[1, j] = ys[j] + (e if axis == 1 else 0.0)
                    work[2, j] = depth[j] + (e if axis == 2 else 0.0)
                _distances(p, n_near, work[0], work[1], work[2], hits, part, normals[axis])
            for j in range(hits):
                nx, ny, nz = normals[0, j] - total[j], normals[1, j] - total[j], normals[2, j] - total[j]
                length = max(np.sqrt(nx * nx + ny * ny + nz * nz), 1e-12)
                normals[0, j], normals[1, j], normals[2, j] = nx / length, ny / length, nz / length
                work[0, j] = xs[j] + normals[0, j] * _OCCLUSION_REACH
                work[1, j] = ys[j] + normals[1, j] * _OCCLUSION_REACH
                work[2, j] = depth[j] + normals[2, j] * _OCCLUSION_REACH
            # A corner nearby leaves less room than the step taken out of the surface, and less light.
            _distances(p, n_near, work[0], work[1], work[2], hits, part, room)
            for j in range(hits):
                a, b, d = xs[j], ys[j], depth[j]
                x = basis[0, 0] * a + basis[0, 1] * b + basis[0, 2] * d
                y = basis[1, 0] * a + basis[1, 1] * b + basis[1, 2] * d
                z = basis[2, 0] * a + basis[2, 1] * b + basis[2, 2] * d
                for c in range(3):
                    albedo[c] = 0.0
                gloss = 0.0
                for m in range(weights.shape[0]):
                    if weights[m, j] > 1e-3:
                        _colour(materials[m], x, y, z, colour)
                        for c in range(3):
                            albedo[c] += weights[m, j] * colour[c]
                        gloss += weights[m, j] * materials[m, 24]
                nx, ny, nz = normals[0, j], normals[1, j], normals[2, j]
                lamp = max(0.0, nx * light[0] + ny * light[1] + nz * light[2])
                sky = 0.5 + 0.5 * (nx * basis[2, 0] + ny * basis[2, 1] + nz * basis[2, 2])
                openness = min(max(0.35 + 0.65 * room[j] / _OCCLUSION_REACH, 0.3), 1.0)
                shine = max(0.0, nx * hx + ny * hy + nz * hz)
                for _ in range(5):  # to the 32nd power
                    shine *= shine
                row, col = lane[j] // n, lane[j] % n
                mask[row, col] = True
                for c in range(3):
                    # Light from the blue cloth below reaches what faces down.
                    ambient = 0.20 + 0.24 * sky + 0.25 * (1.0 - sky) * _BLUE[c]
                    value = openness * (albedo[c] * (ambient + 0.75 * lamp) + 0.5 * gloss * shine)
                    image[row, col, c] = _level(value, row, col, c, noise_seed, noise)


class Camera(NamedTuple):
    """A view of one object: where its frame lies and where the light comes from.

    Attributes
    ----------
    basis : ndarray of shape (3, 3)
        Columns are the view's axes (right, up, into the scene) in the object's coordinates.
    frame : ndarray of shape (3,)
        Middle of the picture along the first two axes and half its side.
    light : ndarray of shape (3,)
        Direction to the lamp in the view's axes.
    """

    basis: np.ndarray
    frame: np.ndarray
    light: np.ndarray


# The lamp hangs high, to the left of the camera and in front of the object; it stays there while the
# turntable turns.
_LAMP_ELEVATION, _LAMP_AZIMUTH = 58.0, -38.0


def _towards(elevation, azimuth):
    elevation, azimuth = np.radians(elevation), np.radians(azimuth)
    return np.array(
        [np.cos(elevation) * np.cos(azimuth), np.cos(elevation) * np.sin(azimuth), np.sin(elevation)]
    )


def _part_boxes(shape, basis):
    """Bounding boxes of the parts along the columns of `basis`: two arrays of shape (n_parts, 3)."""
    low, high = np.empty((2, *shape.centre.shape))
    for i, (kind, turn, centre, size) in enumerate(zip(shape.kind, shape.turn, shape.centre, shape.size)):
        own = (turn @ basis).T
        middle = centre @ basis
        high[i] = middle + part_reach(kind, size, own)
        low[i] = middle - part_reach(kind, size, -own)
    return low, high


def look_at(shape, elevation, azimuth, roll=0.0, zoom=1.0):
    """Point the camera at an object from a direction (degrees) and crop the frame close around it.

    Returns
    -------
    Camera
    low, high : ndarray of shape (n_parts, 3)
        Bounding boxes of the parts in the view's frame.
    """
    towards = _towards(elevation, azimuth)
    # Looking straight down, "up" in the picture is away from where the camera would stand on the horizon.
    turned = np.radians(azimuth)
    right = np.array([-np.sin(turned), np.cos(turned), 0.0])
    up = np.cross(towards, right)
    tilt = np.radians(roll)
    right, up = np.cos(tilt) * right + np.sin(tilt) * up, np.cos(tilt) * up - np.sin(tilt) * right
    basis = np.stack([right, up, -towards], axis=1)
    low, high = _part_boxes(shape, basis)
    added = shape.op == ADD
    left_bottom, right_top = low[added, :2].min(axis=0), high[added, :2].max(axis=0)
    frame = np.array([*(left_bottom + right_top) / 2, (right_top - left_bottom).max() / 2 * _MARGIN * zoom])
    light = _towards(_LAMP_ELEVATION, azimuth + _LAMP_AZIMUTH) @ basis
    return Camera(basis, frame, light), low, high


def _render_view(toy, camera, low, high, noise_seed, noise, image, mask):
    """Render into `image` and `mask`; see `_render`."""
    _render(
        _table(toy.shape, camera.basis),
        low,
        high,
        toy.materials,
        camera.basis,
        camera.frame,
        camera.light,
        noise_seed,
        noise,
        image,
        mask,
    )


# ----------------------------------------------------------------------------------------------------- public


def _integer(name, value, least):
    """Check an integer argument and return it as int."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{name} must be an integer, got {type(value).__name__}.")
    if value < least:
        raise ValueError(f"{name} must be at least {least}, got {value}.")
    return int(value)


def _degrees(name, value, least, most):
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be a number, got {type(value).__name__}.")
    if not least <= value <= most:
        raise ValueError(f"{name} must be from {least} to {most} degrees, got {value}.")
    return float(value)


def _category(name, value):
    if value not in OBJECT_CATEGORIES:
        raise ValueError(f"{name} must be one of {', '.join(OBJECT_CATEGORIES)}, got {value!r}.")
    return value


def render_object(
    category, object=1, elevation=22.5, azimuth=45.0, size=128, colours_of=None, random_state=0
):
    """Render one simulated object from any direction, perhaps in the colours of another.

    The picture of `make_objects` without jitter of the camera and noise of the sensor. With `colours_of` the
    shape stays and all materials are exchanged, texture included: an apple's body can wear a tomato's skin, a
    horse a car's paint. Parts match by their role (main surface, second surface, trim, dark and light
    details).

    Parameters
    ----------
    category : str
        One of `OBJECT_CATEGORIES`.
    object : int, default=1
        Number of the object within its category, from 1.
    elevation : float, default=22.5
        Degrees above the horizon, in [-90, 90].
    azimuth : float, default=45.0
        Degrees, in [-360, 360]; 0 looks an animal or a car in the face, and 90 at its left side and at a
        cup's handle.
    size : int, default=128
        Side of the picture in pixels; at least 16.
    colours_of : (str, int), optional
        Category and number of the object whose colours to wear; its own by default.
    random_state : int, default=0
        Seed that the objects are drawn with; not negative.

    Returns
    -------
    image : ndarray of uint8, shape (size, size, 3)
        RGB.
    mask : ndarray of bool, shape (size, size)
        True on the object.

    Raises
    ------
    ValueError
        If a category is unknown, a number out of range, or `colours_of` no pair.
    TypeError
        If `object`, `size` or `random_state` is not an integer, or an angle is not a number.

    See Also
    --------
    make_objects : all objects from all 41 views.

    Examples
    --------
    >>> from cuelearn.datasets import render_object
    >>> image, mask = render_object("apple", 1, colours_of=("tomato", 1), size=64)
    >>> image.shape, bool(mask[32, 32]), bool(mask[0, 0])
    ((64, 64, 3), True, False)
    """
    _category("category", category)
    number = _integer("object", object, 1)
    size = _integer("size", size, 16)
    random_state = _integer("random_state", random_state, 0)
    elevation = _degrees("elevation", elevation, -90.0, 90.0)
    azimuth = _degrees("azimuth", azimuth, -360.0, 360.0)
    toy = build_object(category, number, random_state)
    if colours_of is not None:
        if not isinstance(colours_of, (tuple, list)) or len(colours_of) != 2:
            raise ValueError(f"colours_of must be a pair (category, object), got {colours_of!r}.")
        lender = _category("the category in colours_of", colours_of[0])
        number = _integer("the object in colours_of", colours_of[1], 1)
        toy = toy._replace(materials=build_object(lender, number, random_state).materials)
    image, mask = np.empty((size, size, 3), np.uint8), np.empty((size, size), np.bool_)
    _render_view(toy, *look_at(toy.shape, elevation, azimuth), 0, 0.0, image, mask)
    return image, mask


# The camera is aimed by hand: up to a degree off in each angle, the crop up to a hundredth wider than needed.
_AIM, _CROP = 1.0, 0.01
# Standard deviation of the sensor's noise in levels of 255.
_SENSOR_NOISE = 1.5


def make_objects(n_objects=10, size=128, random_state=0, n_jobs=None):
    r"""Make the simulated stand-in for ETH-80: eight categories of objects, each object in 41 views
    (simulated).

    Apples, toy cars, toy cows, cups, toy dogs, toy horses, pears and tomatoes before a blue cloth, cropped
    close. What follows ETH-80, as Leibe and Schiele and appendix A of the thesis describe it:

    * eight categories, ten objects each, 41 views per object: 3,280 pictures of 128 by 128 pixels at the
    defaults; * the views: the corners of an octahedron divided twice that lie on the upper hemisphere (see
    `hemisphere_views`), named as
      its files are, by the angle from the zenith and the azimuth;
    * a chroma-key blue background, a mask of the object with each picture, the object filling the frame up to
    a narrow margin
      (its longer side; the shape is not stretched), as in ETH-80's ``cropped-close128``;
    * objects of a category differ in build, colour and texture, and categories overlap: some apples are as
    red as tomatoes,
      pears and apples share greens and yellows, cows and horses share a body plan and their browns, animals
      of all three kinds come plain and patched, and cars and cups come in any colour.

    What is simulated, and how. Each object is a signed distance function put together from ellipsoids, limbs,
    boxes, rings and drums, melted into each other or cut away; proportions, colours and textures (blotches,
    streaks, specks, bands, spots, checks, two-tone gradients) are drawn per object. Ten styles per category
    (a bay or a pied horse, a dachshund, a van, ...) are dealt to ten objects in a shuffled order, so that ten
    objects are as diverse as a collector would choose them. Surfaces are found by sphere tracing,

    .. math:: t \leftarrow t + 0.9\, d(o + t\,v) \quad\text{until}\quad d < 0.003

    (the object's bounding radius is at most 1), and shaded with one lamp, light from the sky and from the
    cloth, a highlight, and darkening in corners. The lamp stays in the laboratory, above and to the left of
    the camera, while the object turns. The parameters were fixed from these descriptions, before any learner
    saw the pictures.

    What differs from ETH-80, to be kept in mind when reading results:

    * shapes are smooth toys with few details, and ten styles are the designer's idea of variety, not a
    shop's; * the projection is parallel (a very long lens); there is no cast shadow, no blur, and no ground
    under the objects; * masks are exact, and edges are not softened; the background is one blue, a little
    darker towards the bottom; * the camera's jitter (a degree) and the sensor's noise (1.5 of 255 levels) are
    small.

    Parameters
    ----------
    n_objects : int, default=10
        Objects per category; at least 1. Object k is the same for any `n_objects` that includes it; more than
        ten objects go through the styles again, with proportions and shades of their own.
    size : int, default=128
        Side of a picture in pixels; at least 16.
    random_state : int, default=0
        Seed; not negative. The look of an object depends on it, its category and its number alone.
    n_jobs : int, optional
        Threads; at least 1. None takes as many as numba may use.

    Returns
    -------
    ImageData
        `images` of shape (8 * n_objects * 41, size, size, 3) uint8, ordered by category
        (`OBJECT_CATEGORIES`), object, and view; `y` 0..7; `masks` bool; `frames` with ``object`` (from 1),
        ``elevation`` in degrees above the horizon, ``azimuth`` in degrees and ``name`` (``"apple1-035-045"``:
        35 degrees *from the zenith*); no laser; tier ``"generated"``. The angles are the nominal ones, as in
        ETH-80.

    Raises
    ------
    ValueError
        If `n_objects` or `n_jobs` is below 1, `size` below 16 or `random_state` negative.
    TypeError
        If one of them is not an integer.

    See Also
    --------
    render_object : one object from any direction, perhaps in the colours of another.

    Notes
    -----
    The same bits for any number of threads. At the defaults about 12 s of one core's
    time, 6 s on two cores, after 5 s of compilation on the first call ever; 215 MB for images and masks.

    References
    ----------
    Jie Luo (2011). Open-ended Learning of Visual and Multi-modal Patterns. EPFL thesis 5233, section 3.4.2
    and appendix A.
    B. Leibe and B. Schiele (2003). Analyzing Appearance and Contour Based Methods for Object Categorization.
    CVPR.
    J. C. Hart (1996). Sphere tracing: a geometric method for the antialiased ray tracing of implicit
    surfaces. The Visual Computer 12.

    Examples
    --------
    >>> from cuelearn.datasets import make_objects
    >>> data = make_objects(n_objects=1, size=16)
    >>> data
    <objects, generated: 328 images of 8 classes, masks>
    >>> data.images.shape, str(data.frames["name"][5])
    ((328, 16, 16, 3), 'apple1-035-045')
    """
    n_objects = _integer("n_objects", n_objects, 1)
    size = _integer("size", size, 16)
    random_state = _integer("random_state", random_state, 0)
    n_jobs = numba.get_num_threads() if n_jobs is None else _integer("n_jobs", n_jobs, 1)
    views = hemisphere_views()
    n_views = len(views.names)
    jobs = [
        (family, number) for family in range(len(OBJECT_CATEGORIES)) for number in range(1, n_objects + 1)
    ]
    n = len(jobs) * n_views
    images, masks = np.empty((n, size, size, 3), np.uint8), np.empty((n, size, size), np.bool_)

    def render_all_views(place):
        family, number = jobs[place]
        toy = build_object(OBJECT_CATEGORIES[family], number, random_state)
        rng = np.random.default_rng([random_state, family, number, 1])
        aim = rng.uniform(-_AIM, _AIM, size=(n_views, 3))
        crop = rng.uniform(1.0, 1.0 + _CROP, size=n_views)
        noise_seeds = rng.integers(1 << 31, size=n_views)
        for view in range(n_views):
            elevation, azimuth = views.elevation[view] + aim[view, 0], views.azimuth[view] + aim[view, 1]
            camera, low, high = look_at(toy.shape, elevation, azimuth, aim[view, 2], crop[view])
            at = place * n_views + view
            _render_view(toy, camera, low, high, int(noise_seeds[view]), _SENSOR_NOISE, images[at], masks[at])

    # Compiled code lets go of the interpreter's lock. Each picture depends on its own numbers alone, so the
    # number of threads cannot change a bit.
    with ThreadPoolExecutor(min(n_jobs, len(jobs)), "cuelearn-objects") as pool:
        for _ in pool.map(render_all_views, range(len(jobs))):
            pass

    return ImageData(
        images=images,
        y=np.repeat(np.arange(len(OBJECT_CATEGORIES), dtype=np.int64), n_objects * n_views),
        target_names=list(OBJECT_CATEGORIES),
        frames={
            "object": np.repeat(np.array([number for _, number in jobs], dtype=np.int64), n_views),
            "elevation": np.tile(views.elevation, len(jobs)),
            "azimuth": np.tile(views.azimuth, len(jobs)),
            "name": np.array(
                [
                    f"{OBJECT_CATEGORIES[family]}{number}-{view}"
                    for family, number in jobs
                    for view in views.names
                ]
            ),
        },
        masks=masks,
        laser=None,
        laser_angles=None,
        description=(
            "Simulated objects on a turntable after ETH-80: eight categories, "
            f"{n_objects} object{'s' * (n_objects > 1)} each, 41 views over the upper hemisphere, blue "
            "background, cropped close, "
            "exact masks. Rendered from signed distance functions whose proportions, colours and textures "
            "are drawn per object. "
            "Elevations count from the horizon; names count from the zenith, as ETH-80's do."
        ),
        provenance=Provenance(
            name="objects",
            tier="generated",
            licence="that of the project (simulated)",
            sha256=None,
            citation=(
                "simulated after ETH-80 (Leibe and Schiele 2003) as Jie Luo (2011), EPFL thesis 5233, "
                "appendix A describes it"
            ),
            source=f"make_objects(n_objects={n_objects}, size={size}, random_state={random_state})",
        ),
    )

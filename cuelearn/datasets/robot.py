"""A simulated robot that drives through a floor of five rooms: the stand-in for KTH-IDOL2.

The world itself, its furniture, light, drives, camera and laser, stands in ``data/simulators/robot.py``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .base import ImageData, Provenance, check_integer, simulator

__all__ = ["ROBOT_ROOMS", "RobotFloor", "make_robot", "robot_floor"]

#: Classes 0 to 4, in the order of thesis table 3.1: one-person office, corridor, two-person office, kitchen,
#: printer area.
ROBOT_ROOMS = ("OO", "CR", "TO", "KT", "PA")


def make_robot(frames_per_sequence=900, height=96, width=128, random_state=0, n_jobs=None):
    r"""Drive a simulated robot through five rooms; record camera images and laser scans.

    The stand-in for KTH-IDOL2 (the 12 sequences of the robot Dumbo), which cannot be shipped: a one-person
    office (OO), a corridor (CR), a two-person office (TO), a kitchen (KT) and a printer area (PA); drives of
    about 200 s from room to room, every frame labelled with the room in which the robot is; cloudy, sunny and
    night light in two sessions half a year apart, with two repeats each.

    **Floor.** Walls and doors are fixed (`robot_floor`). The seed decides colours, textures and small
    displacements of the furniture, some of which is gone, new or elsewhere in the second session. **Drive.**
    A smoothed path that every sequence displaces by up to 3 cm in doorways and 15 cm elsewhere, at about 0.5
    m/s. **Camera.** 1 m above the floor, 68 degrees wide; rays are cast against boxes and cylinders with
    procedural textures, under light from lamps, windows and the sun, with shadows, motion blur, exposure and
    white balance that adapt incompletely, vignetting and noise. **Laser.** 181 beams over 180 degrees to the
    front, 0.32 m above the floor, up to 20 m, with noise of 1 cm.

    IDOL2 has and this lacks people, clutter of any shape, reflections, glass, changes between the weathers of
    a session, lens distortion, a second robot, errors in the recorded position. The parameters were fixed
    from the description of the data and from optics; no learner had a part in them.

    Parameters
    ----------
    frames_per_sequence : int, default=900
        Images of each of the 12 sequences, at least 5, of the same drives.
    height, width : int, default=96 and 128
        Of the images, in pixels; at least 24 and 32. The field of view is fixed by the width.
    random_state : int, default=0
        Seed; not negative.
    n_jobs : int, optional
        Threads; at least 1. None takes as many as numba may use. The result has the same bits for any number.

    Returns
    -------
    ImageData
        ``images`` uint8 of shape (12 * frames_per_sequence, height, width, 3); ``frames`` with ``sequence`` 0
        to 11 in chronological order: first session cloudy, sunny and night, two repeats each, then the
        second; ``laser`` float32 with 181 ranges each, from -90 (right) to 90 degrees.

    Notes
    -----
    About 2.2 ms per image of 96 x 128 pixels on one core; with two cores 10,800 images take 13 s and 550 MB.

    References
    ----------
    J. Luo, A. Pronobis, B. Caputo and P. Jensfelt (2006). The KTH-IDOL2 database. KTH technical report
    CVAP304. Thesis section 3.4.1 and appendix A.

    Examples
    --------
    >>> from cuelearn.datasets import make_robot
    >>> make_robot(frames_per_sequence=5, height=24, width=32)
    <robot, generated: 60 images of 5 classes, laser>
    """
    n = check_integer("frames_per_sequence", frames_per_sequence, 5)
    height = check_integer("height", height, 24)
    width = check_integer("width", width, 32)
    seed = check_integer("random_state", random_state, 0)
    n_jobs = None if n_jobs is None else check_integer("n_jobs", n_jobs, 1)
    images, y, frames, laser, angles = simulator("robot").record(n, height, width, seed, n_jobs)
    origin = Provenance(
        "robot",
        "generated",
        "that of the project (simulated)",
        None,
        "simulated after KTH-IDOL2 as described by Jie Luo (2011), EPFL thesis 5233, section 3.4.1 and "
        "appendix A",
        f"make_robot(frames_per_sequence={n}, height={height}, width={width}, random_state={seed})",
    )
    description = (
        "Simulated robot in a simulated floor of five rooms, after KTH-IDOL2: rendered camera images and "
        "ray-cast laser scans along 12 drives, two each in three weathers and two sessions between which "
        "furniture has moved."
    )
    return ImageData(images, y, list(ROBOT_ROOMS), frames, None, laser, angles, description, origin)


class RobotFloor(NamedTuple):
    """The plan of the simulated floor in one session; lengths in metres, x to the east, y to the north.

    Attributes
    ----------
    walls, doorways, rooms, furniture : ndarray of float64, shape (n, 4)
        Rectangles x0, y0, x1, y1: of solid wall, of the open doorways (one-person office, two-person office,
        kitchen), of the rooms' insides, and round each piece of furniture and each thing on a wall.
    labels : list of str
        Classes of the rooms, `ROBOT_ROOMS`.
    kinds : list of str
        What each piece of furniture is: ``"desk"``, ``"window"``, ``"poster"`` and so on.
    outlines : list of ndarray of float64, shape (4, 2) or (24, 2)
        The exact outline of every part that stands or hangs lower than 2 m: boxes have four corners.
    """

    walls: np.ndarray
    doorways: np.ndarray
    rooms: np.ndarray
    labels: list[str]
    furniture: np.ndarray
    kinds: list[str]
    outlines: list[np.ndarray]


def robot_floor(random_state=0, session=1):
    """The plan of the floor through which the robot of `make_robot` drives (simulated), for drawing it.

    Parameters
    ----------
    random_state : int, default=0
        The seed given to `make_robot`; not negative.
    session : {1, 2}, default=1
        Before or after furniture has moved.

    Returns
    -------
    RobotFloor
        ``frames["x"]`` and ``frames["y"]`` of `make_robot` give the drives on it.

    Examples
    --------
    >>> from cuelearn.datasets import robot_floor
    >>> before, after = robot_floor(session=1), robot_floor(session=2)
    >>> "sofa" in before.kinds, "sofa" in after.kinds
    (True, False)
    """
    seed = check_integer("random_state", random_state, 0)
    if session not in (1, 2):
        raise ValueError(f"session must be 1 or 2, got {session!r}.")
    walls, doorways, rooms, furniture, kinds, outlines = simulator("robot").plan(seed, int(session))
    return RobotFloor(walls, doorways, rooms, list(ROBOT_ROOMS), furniture, kinds, outlines)

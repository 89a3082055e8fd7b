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
    r"""Drive a robot through a simulated floor of five rooms and record camera images and laser scans
    (simulated).

    The stand-in for KTH-IDOL2 (the 12 sequences of the robot Dumbo), which cannot be shipped. As there: a
    one-person office (OO), a corridor (CR), a two-person office (TO), a kitchen (KT) and a printer area (PA),
    an open end of the corridor; a drive by hand from room to room, about 200 s long, every frame labelled
    with the room in which the robot is; 12 sequences under cloudy, sunny and night light in two sessions half
    a year apart, with two repeats each.

    **Floor.** Walls and doors are fixed (`robot_floor` returns the plan). The seed decides colours, textures
    and small displacements of the furniture. In the second session some pieces are gone, new or in another
    place, and what is printed or shown on things is another. All rooms share one wall paint (the kitchen's is
    a little yellower), ceiling, doors and make of furniture; both offices share a carpet, corridor and
    printer area a linoleum.

    **Drive.** A smoothed path through waypoints that every sequence displaces by up to 3 cm in doorways and
    15 cm elsewhere, at about 0.5 m/s, slower in turns. About 12 % of it pass in the one-person office, 33 %
    in the corridor and 18 % in each of the others. `frames_per_sequence` samples it evenly in time; 900 are
    about 5 frames a second.

    **Camera.** 1 m above the floor, 68 degrees wide. Each ray is cast against upright boxes and cylinders
    with procedural textures. Light falls directly from ceiling lamps, windows and, through the windows, from
    the sun, with the shadows of the furniture in its path; what the walls throw back is one constant per
    room. Cloudy: windows bright and bluish, lamps on in corridor and printer area and, by chance, in a room.
    Sunny: brighter and bluer sky, patches of sunlight from the south. Night: dark windows, warm lamps
    everywhere. Then motion blur, exposure and white balance that adapt incompletely, vignetting, and noise
    that grows with the gain.

    **Laser.** 181 beams over 180 degrees to the front, 0.32 m above the floor, up to 20 m, with Gaussian
    noise of 1 cm.

    **What IDOL2 has and this lacks.** People, clutter of any shape, reflections, glass that a laser passes,
    changes between the three weathers of a session, lens distortion, a second robot, errors in the recorded
    position; images of 309 x 240 pixels. The parameters were fixed from the description of the data and from
    optics; no learner had a part in them.

    Parameters
    ----------
    frames_per_sequence : int, default=900
        Images of each of the 12 sequences; at least 5. Another number samples the same drives more or less
        densely.
    height, width : int, default=96 and 128
        Of the images, in pixels; at least 24 and 32. The field of view is fixed by the width.
    random_state : int, default=0
        Seed; not negative.
    n_jobs : int, optional
        Threads; at least 1. None takes as many as numba may use.

    Returns
    -------
    ImageData
        ``images`` uint8 of shape (12 * frames_per_sequence, height, width, 3); ``y`` int64 with the classes
        of `ROBOT_ROOMS`; ``frames`` as described there, ``sequence`` 0 to 11 in chronological order: first
        session cloudy, sunny and night, two repeats each, then the second; ``laser`` float32 of shape (12 *
        frames_per_sequence, 181) in metres; ``laser_angles`` from -90 (right) to 90 degrees, in radians; tier
        ``"generated"``. The same for a seed whatever the number of threads.

    Raises
    ------
    TypeError
        If an argument is not an integer.
    ValueError
        If one is below its least value.

    Notes
    -----
    About 2.2 ms per image of 96 x 128 pixels on one core; with two cores 10,800 images take 13 s and 550 MB.

    References
    ----------
    Jie Luo (2011). Open-ended Learning of Visual and Multi-modal Patterns. EPFL thesis 5233, section 3.4.1
    and appendix A.
    J. Luo, A. Pronobis, B. Caputo and P. Jensfelt (2006). The KTH-IDOL2 database. KTH technical report
    CVAP304.

    Examples
    --------
    >>> from cuelearn.datasets import make_robot
    >>> data = make_robot(frames_per_sequence=5, height=24, width=32)
    >>> data
    <robot, generated: 60 images of 5 classes, laser>
    >>> data.images.shape, data.laser.shape, data.target_names
    ((60, 24, 32, 3), (60, 181), ['OO', 'CR', 'TO', 'KT', 'PA'])
    """
    n = check_integer("frames_per_sequence", frames_per_sequence, 5)
    height = check_integer("height", height, 24)
    width = check_integer("width", width, 32)
    seed = check_integer("random_state", random_state, 0)
    n_jobs = None if n_jobs is None else check_integer("n_jobs", n_jobs, 1)
    images, y, frames, laser, angles = simulator("robot").record(n, height, width, seed, n_jobs)
    call = f"make_robot(frames_per_sequence={n}, height={height}, width={width}, random_state={seed})"
    return ImageData(
        images,
        y,
        list(ROBOT_ROOMS),
        frames,
        None,
        laser,
        angles,
        "Simulated robot in a simulated floor of five rooms, after KTH-IDOL2: rendered camera images and "
        "ray-cast laser scans "
        "along 12 drives, two each in three weathers and two sessions between which furniture has moved.",
        Provenance(
            "robot",
            "generated",
            "that of the project (simulated)",
            None,
            "simulated after KTH-IDOL2 as described by Jie Luo (2011), EPFL thesis 5233, section 3.4.1 and "
            "appendix A",
            call,
        ),
    )


class RobotFloor(NamedTuple):
    """The plan of the simulated floor in one session, for drawing; lengths in metres, x to the east, y to the
    north.

    Attributes
    ----------
    walls : ndarray of float64, shape (21, 4)
        Rectangles x0, y0, x1, y1 of solid wall.
    doorways : ndarray of float64, shape (3, 4)
        Rectangles of the open doorways: one-person office, two-person office, kitchen.
    rooms : ndarray of float64, shape (5, 4)
        Rectangles of the rooms' insides.
    labels : list of str
        Their classes, `ROBOT_ROOMS`.
    furniture : ndarray of float64, shape (n, 4)
        Rectangles, along the axes, round each piece of furniture and each thing on a wall.
    kinds : list of str
        What each is: ``"desk"``, ``"chair"``, ``"window"``, ``"poster"`` and so on.
    outlines : list of ndarray of float64, shape (4, 2) or (24, 2)
        The exact outline of every part that stands or hangs lower than 2 m, turned as it stands: boxes have
        four corners, round parts 24.
    """

    walls: np.ndarray
    doorways: np.ndarray
    rooms: np.ndarray
    labels: list[str]
    furniture: np.ndarray
    kinds: list[str]
    outlines: list[np.ndarray]


def robot_floor(random_state=0, session=1):
    """Return the plan of the floor through which the robot of `make_robot` drives (simulated), for drawing
    it.

    Parameters
    ----------
    random_state : int, default=0
        The seed given to `make_robot`; not negative.
    session : {1, 2}, default=1
        Before or after furniture has moved.

    Returns
    -------
    RobotFloor
        Walls, doorways, rooms and furniture. ``frames["x"]`` and ``frames["y"]`` of `make_robot` give the
        drives on it.

    Raises
    ------
    TypeError
        If `random_state` is not an integer.
    ValueError
        If `random_state` is negative or `session` is not 1 or 2.

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

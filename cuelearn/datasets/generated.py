"""Simulated data, called simulated wherever it is shown."""

from __future__ import annotations

import math

import numpy as np
from sklearn.utils import check_random_state

from cuelearn.expect import expect

from .base import CueData, Provenance

__all__ = ["make_three_class"]

# The class that each of cues 1 to 3 separates (thesis 4.3.4 counts from 1: classes 3, 1 and 2).
_SINGLED_OUT = (2, 0, 1)


def make_three_class(n_per_class=100, noise=0.05, random_state=0):
    r"""Make the three-class problem of thesis section 4.3.4 and figure 4.1 (simulated).

    Cue 1 separates class 3, cue 2 class 1, cue 3 class 2 (`y` counts from 0), and cue 4 all three. The thesis
    prints only the kernel matrices; here **cue 4 separates every class from the rest exactly as well as its
    own cue.** Each cue is a sample's prototype in three dimensions plus noise,

    .. math:: x^j_i = m^j_{y_i} + \sigma \varepsilon, \qquad \varepsilon \sim N(0, I_3) .

    In cue 4 the prototypes are the unit vectors :math:`e_1, e_2, e_3`, a triangle of height
    :math:`\sqrt{3/2}`. In cues 1 to 3 a unit vector *u* is the prototype of the separated class, *v* of both
    others; :math:`u \cdot v = 1/4` gives the same distance. So, with linear kernels, a one-against-rest
    problem with the l1 norm uses its own cue and cue 4; a multiclass problem costs :math:`\sqrt 2` with cue 4
    alone and 2 with cues 1 to 3, so with p near 1 it keeps only cue 4, until `noise` outweighs that
    difference (from about 0.06).

    Parameters
    ----------
    n_per_class : int >= 1, default=100
    noise : float >= 0, default=0.05
        Standard deviation :math:`\sigma` in every feature; prototypes have length 1.
    random_state : int, RandomState or None, default=0

    Returns
    -------
    CueData
        `X` of shape (3 * n_per_class, 12), float64, sorted by class as in the figure; cues ``"cue 1"`` to
        ``"cue 4"`` of three columns; no split; tier ``"generated"``.

    References
    ----------
    F. Orabona, Jie Luo and B. Caputo (2012). Multi Kernel Learning with Online-Batch Optimization. JMLR 13,
    section 5.2 and figure 1.

    Examples
    --------
    >>> from cuelearn.datasets import make_three_class
    >>> make_three_class()
    <three-class, generated: X (300, 12) float64, cues cue 1 (3), cue 2 (3), cue 3 (3), cue 4 (3)>
    """
    expect("n_per_class", n_per_class, kind="whole", low=1)
    expect("noise", noise, low=0)
    rng = check_random_state(random_state)

    y = np.repeat(np.arange(3), n_per_class)
    # u . v = 1/4: the distance sqrt(3/2) of u and v is the height of the triangle e_1, e_2, e_3.
    u = np.array([1.0, 0.0, 0.0])
    v = np.array([1.0, math.sqrt(15.0), 0.0]) / 4
    prototypes = [np.where(np.arange(3)[:, None] == single, u, v) for single in _SINGLED_OUT] + [np.eye(3)]
    X = np.hstack([means[y] for means in prototypes])
    X += noise * rng.standard_normal(X.shape)

    names = [f"cue {j}" for j in range(1, 5)]
    origin = Provenance(
        "three-class",
        "generated",
        "that of the project (simulated)",
        None,
        "simulated after Jie Luo (2011), EPFL thesis 5233, section 4.3.4",
        f"make_three_class(n_per_class={n_per_class}, noise={noise}, random_state={random_state})",
    )
    cues = {name: slice(3 * j, 3 * j + 3) for j, name in enumerate(names)}
    features = [f"{name}, x{i}" for name in names for i in (1, 2, 3)]
    classes = ["class 1", "class 2", "class 3"]
    description = (
        "Simulated three-class problem after thesis figure 4.1. Cues 1, 2 and 3 tell class 3, class 1 and "
        "class 2 from the other two; cue 4 tells all three apart, each as well as the cue made for it."
    )
    return CueData(X, y, cues, None, None, features, classes, description, origin)

r"""Hinge and multiclass hinge loss on score matrices.

Both losses live on one machinery with a column of scores per class. The multiclass loss of a sample with
scores :math:`s_y` is

.. math:: \ell^{MC} = \Big[1 - s_{y_i} + \max_{y' \ne y_i} s_{y'}\Big]_+ ,

a convex upper bound of the 0/1 loss; its competitor is the best *wrong* class, the lowest index on ties (the
pseudo-code of OM-2 maximises over all classes, which would give a zero gradient on margin errors). The binary
hinge loss :math:`[1 - y f(x)]_+` is the same loss with two classes when every kernel value is halved: with
:math:`f = s_1 - s_0` the block norms of both problems then agree. `KERNEL_FACTOR` holds that factor, so that
one set of compiled routines serves both losses.

References
----------
Thesis 1.3 and 4.2; Crammer and Singer (2002).
"""

import numpy as np
from numba import njit

__all__ = ["KERNEL_FACTOR", "kernel_factor", "competitor", "margins", "mean_loss"]

KERNEL_FACTOR = {"multiclass": 1.0, "hinge": 0.5}


def kernel_factor(loss, n_classes):
    """Factor on all kernel values under which `loss` becomes the multiclass loss.

    Parameters
    ----------
    loss : {"multiclass", "hinge"}
    n_classes : int

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If `loss` is unknown, or "hinge" is asked for with more than two classes.
    """
    if not isinstance(loss, str) or loss not in KERNEL_FACTOR:
        raise ValueError(f"loss must be one of {sorted(KERNEL_FACTOR)}, got {loss!r}")
    if loss == "hinge" and n_classes != 2:
        raise ValueError(
            f"loss='hinge' needs exactly 2 classes, y has {n_classes}; use loss='multiclass' or "
            "OneVsRestClassifier"
        )
    return KERNEL_FACTOR[loss]


@njit(cache=True)
def competitor(scores, label):
    """Best wrong class of one sample and the margin over it.

    Parameters
    ----------
    scores : ndarray, shape (n_classes,)
    label : int

    Returns
    -------
    rival : int
        Lowest index among the wrong classes with the largest score.
    margin : float
        ``scores[label] - scores[rival]``; a mistake when <= 0, a loss when < 1.
    """
    rival = -1
    for c in range(scores.shape[0]):
        if c != label and (rival < 0 or scores[c] > scores[rival]):
            rival = c
    return rival, scores[label] - scores[rival]


@njit(cache=True)
def margins(scores, labels):
    """Margins of many samples over their best wrong class.

    Parameters
    ----------
    scores : ndarray, shape (n_samples, n_classes)
    labels : ndarray of int, shape (n_samples,)

    Returns
    -------
    ndarray of float64, shape (n_samples,)
    """
    out = np.empty(labels.shape[0])
    for i in range(labels.shape[0]):
        out[i] = competitor(scores[i], labels[i])[1]
    return out


def mean_loss(scores, labels, weights=1.0):
    """Mean multiclass hinge loss of score rows, each with a weight.

    Parameters
    ----------
    scores : ndarray, shape (n_samples, n_classes)
    labels : ndarray of int, shape (n_samples,)
    weights : float or ndarray, shape (n_samples,)

    Returns
    -------
    float
    """
    return float((weights * np.maximum(0.0, 1.0 - margins(scores, labels))).mean())

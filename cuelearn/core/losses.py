r"""Hinge and multiclass hinge loss on score matrices, with a column of scores per class.

.. math:: \ell^{MC} = \Big[1 - s_{y_i} + \max_{y' \ne y_i} s_{y'}\Big]_+

is a convex upper bound of the 0/1 loss; the maximum is over *wrong* classes, the lowest index on ties. The
binary hinge loss :math:`[1 - y f(x)]_+` is the same loss with two classes and halved kernel values: with
:math:`f = s_1 - s_0` the block norms agree. Thesis 1.3 and 4.2; Crammer and Singer (2002).
"""

import numpy as np

from cuelearn.codecache import njit
from cuelearn.expect import expect_word

__all__ = ["KERNEL_FACTOR", "kernel_factor", "competitor", "margins", "mean_loss"]

KERNEL_FACTOR = {"multiclass": 1.0, "hinge": 0.5}


def kernel_factor(loss, n_classes):
    """Factor on all kernel values that turns `loss` into the multiclass loss."""
    expect_word("loss", loss, KERNEL_FACTOR)
    if loss == "hinge" and n_classes != 2:
        raise ValueError(
            f"loss='hinge' needs exactly 2 classes, y has {n_classes}; use loss='multiclass' or "
            "OneVsRestClassifier"
        )
    return KERNEL_FACTOR[loss]


@njit(cache=True)
def competitor(scores, label):
    """Best wrong class of one sample (lowest index on ties) and the margin over it: a mistake if <= 0, a loss
    if < 1."""
    rival = -1
    for c in range(scores.shape[0]):
        if c != label and (rival < 0 or scores[c] > scores[rival]):
            rival = c
    return rival, scores[label] - scores[rival]


@njit(cache=True)
def margins(scores, labels):
    """Margins of score rows (n_samples, n_classes) over their best wrong class, float64."""
    out = np.empty(labels.shape[0])
    for i in range(labels.shape[0]):
        out[i] = competitor(scores[i], labels[i])[1]
    return out


def mean_loss(scores, labels, weights=1.0):
    """Weighted mean multiclass hinge loss of score rows (n_samples, n_classes)."""
    margin = margins(np.ascontiguousarray(scores), labels)
    return float((weights * np.maximum(0.0, 1.0 - margin)).mean())

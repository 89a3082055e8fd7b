"""Visits on explicit features: steps of `linear_pass` on a block of weights (n_classes, n_features).

A visit costs O(n_features n_classes), for sparse features their entries, however many visits were before.
"""

from cuelearn.compiled import inner
from cuelearn.core.formulas import competitor
from cuelearn.kernels.features import add_row_to, block_product
from cuelearn.kernels.rows import full_dot
from cuelearn.omcl.base import N_LOG, N_UPDATES

__all__ = ["look_at", "move_by"]


@inner
def look_at(rows, t, coef, label, out):
    """Write class scores of sample t; returns best wrong class, margin and squared length."""
    row = rows.place[t]
    for c in range(out.shape[0]):
        out[c] = block_product(rows, row, 0, coef[c])
    rival, margin = competitor(out, label)
    part = rows.flat[rows.begin[row, 0] : rows.begin[row, 1]]
    return rival, margin, full_dot(part, part)


@inner
def move_by(rows, t, planes, log, label, rival, step, earlier):
    """Add ``step`` times the features to the weights of `label`, subtract it from `rival`; the log gets the
    step only."""
    row = rows.place[t]
    add_row_to(rows, row, step, planes.coef[label])
    add_row_to(rows, row, -step, planes.coef[rival])
    add_row_to(rows, row, earlier * step, planes.delayed[label])
    add_row_to(rows, row, -earlier * step, planes.delayed[rival])
    planes.counts[N_UPDATES] += 1
    if log.entries.shape[0] > 0:
        e = planes.counts[N_LOG]
        log.entries[e, 0] = t
        log.entries[e, 1] = label
        log.entries[e, 2] = rival
        log.values[e] = step
        planes.counts[N_LOG] += 1

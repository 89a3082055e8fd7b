"""Visits on explicit features: steps of `linear_pass` on blocks of weights (n_classes, n_features)."""

from cuelearn.compiled import inner
from cuelearn.core.formulas import competitor
from cuelearn.kernels.features import add_row_to, block_product
from cuelearn.kernels.rows import full_dot
from cuelearn.omcl.base import N_LOG, N_UPDATES, write_log


@inner
def look_at(rows, t, coef, label, out):
    row = rows.place[t]
    for c in range(out.shape[0]):
        out[c] = block_product(rows, row, 0, coef[c])
    rival, margin = competitor(out, label)
    part = rows.flat[rows.begin[row, 0] : rows.begin[row, 1]]
    return rival, margin, full_dot(part, part)


@inner
def move_by(rows, t, planes, log, label, rival, step, earlier):
    """The log gets the step only."""
    row = rows.place[t]
    add_row_to(rows, row, step, planes.coef[label])
    add_row_to(rows, row, -step, planes.coef[rival])
    add_row_to(rows, row, earlier * step, planes.delayed[label])
    add_row_to(rows, row, -earlier * step, planes.delayed[rival])
    planes.counts[N_UPDATES] += 1
    log.values[planes.counts[N_LOG]] = step
    write_log(log, planes.counts, t, label, rival, step, log.values, 0, -1)

r"""Stochastic runs on explicit features: the loops of the algorithms with steps on blocks of weights.

:math:`\theta^f \leftarrow \theta^f + step\, \phi^f(x_i) (e_{y_i} - e_r)^\top`; a visit costs O(n_features
n_classes), whatever the number of samples.
"""

import functools
import math
from types import FunctionType
from typing import NamedTuple

import numpy as np

from cuelearn.compiled import inlined, loop, njit
from cuelearn.core.formulas import competitor, link_weights
from cuelearn.kernels.features import FeatureRows, add_row_to, own_products, row_scores, weigh_row
from cuelearn.kernels.rows import full_dot, gathered_dot
from cuelearn.mkl.stochastic.training import (
    NOW,
    SMALLEST_SCALE,
    Samples,
    Setting,
    Stream,
    gradient_norms_sq,
    multiply,
)

__all__ = ["BlockStream", "on_blocks"]


class BlockDual(NamedTuple):
    """The dual vector; all but `norms` and `weights` up to the lazy factor ``now.scale``."""

    coef: np.ndarray  # (b + 1, n_classes), of the samples of a chunk; or empty
    norms_sq: np.ndarray  # (n_cues,)
    norms: np.ndarray
    weights: np.ndarray  # link factors
    theta: np.ndarray  # (n_classes, n_features)
    now: np.record


class BlockWork(NamedTuple):
    values: np.ndarray  # (n_features,)
    scores: np.ndarray  # (n_classes,)


class BlockState(NamedTuple):
    """As `State`, of the samples of a chunk."""

    samples: Samples
    rows: FeatureRows
    dual: BlockDual
    work: BlockWork
    setting: Setting


@inlined
def predict(i, prefactor, run):
    """Best wrong class and margin."""
    row = run.rows.place[i]
    scores = run.work.scores
    count = weigh_row(run.rows, row, run.dual.weights, run.work.values)
    row_scores(run.rows, row, run.work.values, count, run.dual.theta, scores)
    rival, margin = competitor(scores, run.samples.labels[i])
    return rival, margin * run.setting.factor * prefactor


@njit(cache=True)
def block_product(rows, row, f, theta):
    """Product of the features of cue f with its part of one class's weights."""
    part = rows.flat[rows.begin[row, f] : rows.begin[row, f + 1]]
    if rows.columns.shape[0] > 0:
        columns = rows.columns[rows.begin[row, f] : rows.begin[row, f + 1]]
        return gathered_dot(theta, columns, part, part.shape[0])
    first = rows.begin[row, f] - rows.begin[row, 0]
    return full_dot(part, theta[first : first + part.shape[0]])


@inlined
def add_update(i, rival, step, run):
    """Move the blocks of two classes by the features of sample i, with norms and coefficients."""
    rows = run.rows
    row = run.rows.place[i]
    dual = run.dual
    label = run.samples.labels[i]
    for f in range(dual.norms_sq.shape[0]):
        product = block_product(rows, row, f, dual.theta[label])
        product -= block_product(rows, row, f, dual.theta[rival])
        change = 2.0 * product + 2.0 * step * run.samples.diagonal[f, i]
        dual.norms_sq[f] += run.setting.factor * step * change
    add_row_to(rows, row, step, dual.theta[label])
    add_row_to(rows, row, -step, dual.theta[rival])
    if dual.coef.shape[0] > 0:
        dual.coef[i, label] += step
        dual.coef[i, rival] -= step
    dual.now.n_updates += 1


@inlined
def refresh_link(threshold, run):
    """Primal weights from dual norms."""
    dual = run.dual
    for f in range(dual.norms.shape[0]):
        dual.norms[f] = math.sqrt(max(0.0, dual.norms_sq[f]))
    dual.now.norm = link_weights(dual.norms, threshold, run.setting.q, dual.weights)


@inlined
def shrink(factor, run):
    run.dual.now.scale *= factor
    if run.dual.now.scale < SMALLEST_SCALE:
        fold_blocks(run.dual)


@njit(cache=True)
def fold_blocks(dual):
    """Apply the lazy scale (a scale of 0 resets exactly)."""
    now = dual.now
    multiply(dual.norms_sq, now.scale * now.scale)
    for c in range(dual.theta.shape[0]):
        multiply(dual.theta[c], now.scale)
    for i in range(dual.coef.shape[0]):
        multiply(dual.coef[i], now.scale)
    now.norm *= now.scale
    now.scale = 1.0
    if now.norm == 0.0:
        dual.weights[:] = 0.0


STEPS = {"predict": predict, "add_update": add_update, "refresh_link": refresh_link, "shrink": shrink}


@functools.cache
def on_blocks(visit, compiled=loop):
    """The loop of an algorithm with the steps of this module in place of those on kernel rows.

    Functions of the loop that make such steps are built again likewise. Both forms share a file of compiled
    code: their arguments have different types.
    """
    source = visit.py_func
    names = dict(source.__globals__)
    for name in source.__code__.co_names:
        used = getattr(getattr(names.get(name), "py_func", None), "__code__", None)
        if name in STEPS:
            names[name] = STEPS[name]
        elif used is not None and not STEPS.keys().isdisjoint(used.co_names):
            names[name] = on_blocks(names[name], inlined)
    copy = FunctionType(source.__code__, names, source.__name__, source.__defaults__)
    copy.__module__ = source.__module__
    return compiled(copy)


class BlockStream(Stream):
    """`Stream` over a `BlockProblem`; `start` are blocks (n_features, n_classes) and their squared norms."""

    def __init__(self, problem, *, scores="auto", long_run=True, start=None, cost=None):
        self.problem = problem
        self.bank = problem.bank
        n = self.bank.n_samples
        self.visited = np.flatnonzero(problem.limits)
        if cost is None:
            cost = problem.limits * (self.visited.size / n)
        # of all samples; the others are computed with the features
        self.samples = Samples(problem.labels, None, None, cost, None)
        self.setting = Setting(problem.q, problem.regularization, problem.alpha, problem.factor, -1.0, False)
        now = np.zeros(1, dtype=NOW).view(np.recarray)[0]
        now.scale = 1.0
        groups = [np.zeros(problem.n_groups) for _ in range(3)]
        theta = np.zeros((problem.n_classes, self.bank.n_features))
        self.dual = BlockDual(np.zeros((0, problem.n_classes)), *groups, theta, now)
        self.work = BlockWork(np.zeros(self.bank.n_features), np.zeros(problem.n_classes))
        self.coefs = None
        if problem.certified:
            self.coefs = self.bank.zeros(problem.n_classes)
        self.averages = False
        self.reveal = None
        if start is not None:
            theta[:] = start[0].T
            self.dual.norms_sq[:] = start[1]
            now.norm = link_weights(np.sqrt(self.dual.norms_sq), 0.0, problem.q, self.dual.weights)
        self.several_passes = problem.certified

    def start_stage(self, loop, *parameters, averages=False):
        super().start_stage(on_blocks(loop), *parameters, averages=averages)

    def arranged(self, order):
        return self.bank.arranged(order)

    def visit(self, order):
        """Visit samples in order; returns the mistakes."""
        if self.several_passes:
            self.bank.hold()
        self.several_passes = True
        mistakes = np.zeros(order.size, dtype=np.bool_)
        first = 0
        for samples, visits, rows in self.bank.chunks(order):
            run = self._chunk(samples, rows)
            own = mistakes[first : first + visits.size]
            done = self.loop(visits, 0, own, run, *self.parameters)
            while done < visits.size:  # at an unknown label
                self.reveal(samples[visits[done]])
                run = run._replace(samples=self._samples(samples, rows))
                done = self.loop(visits, done, own, run, *self.parameters)
            self._keep_coefs(samples, run.dual.coef)
            first += visits.size
        self.dual.norms_sq[:] = self.problem.norms_sq_of(self.dual.theta)
        return mistakes

    def _samples(self, samples, rows):
        diagonal = np.empty((self.bank.n_kernels, samples.size))
        own_products(rows, diagonal)
        lengths = gradient_norms_sq(self.problem, diagonal)
        priors = np.zeros((samples.size, 0))
        labels = self.samples.labels[samples]
        return Samples(labels, diagonal, lengths, self.samples.cost[samples], priors)

    def _chunk(self, samples, rows):
        dual = self.dual
        if self.coefs is not None:
            # the last row, 1, records rescaling
            coef = np.concatenate([np.asarray(self.coefs[samples]), np.ones((1, self.problem.n_classes))])
            dual = dual._replace(coef=coef)
        return BlockState(self._samples(samples, rows), rows, dual, self.work, self.setting)

    def _keep_coefs(self, samples, coef):
        if self.coefs is None:
            return
        if coef[-1, 0] != 1.0:
            self.coefs *= coef[-1, 0]
        self.coefs[samples] = coef[:-1]

    @property
    def n_support(self):
        return 0

    def _coefficients(self):
        return self.dual.theta.T

    def _scores(self, coef, weights):
        return self.problem.training_scores(coef, weights)

    def _dual_coefficients(self, factor):
        return np.multiply(self.coefs, factor, out=self.bank.zeros(self.problem.n_classes))

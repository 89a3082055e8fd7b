r"""MKL problems on explicit features, with blocks of weights in place of coefficients of samples.

The block of cue f is :math:`\theta^f = \frac1n \sum_i \phi^f(x_i) B_i^\top`, (n_features, n_classes). The
dual variables B, (n, n_classes), are needed for certificates alone.
"""

import numpy as np

from cuelearn.compiled import njit, with_steps
from cuelearn.kernels.features import add_row_to, add_rows, own_products, row_scores, score_rows
from cuelearn.mkl.optimum.dual import OWN_SHARE, Ascent, Machine, sweep_samples
from cuelearn.mkl.optimum.problem import MKLProblem

# sweeps in a round over all features in memory, or over each chunk of computed ones
SWEEPS = 4


@njit(cache=True)
def class_values(i, machine, weighted, blocks, value):
    """Class scores of a sample, plus 1 for wrong classes; `weighted`: features, weights of the cues."""
    rows, weights = weighted
    row_scores(rows, rows.place[i], weights, blocks, value)
    for c in range(value.shape[0]):
        value[c] += 0.0 if c == machine.labels[i] else 1.0


@njit(cache=True)
def move(c, i, change, machine, blocks, theta, weighted):
    add_row_to(weighted[0], weighted[0].place[i], change, blocks[c])


class BlockProblem(MKLProblem):
    """An `MKLProblem` on a `FeatureBank`; solutions have blocks (n_features, n_classes) as coefficients."""

    explicit = True

    def __init__(self, bank, labels, n_classes, *, certified=True, **options):
        super().__init__(bank, labels, n_classes, **options)
        self.certified = certified

    def blocks_of(self, dual_coef):
        """``sum_i dual_coef[i, c] * features_i``, (n_classes, n_features), in a pass over the support."""
        blocks = np.zeros((self.n_classes, self.bank.n_features))
        for samples, _, rows in self.bank.chunks(np.flatnonzero(dual_coef.any(axis=1))):
            add_rows(rows, np.asarray(dual_coef[samples]), blocks)
        return blocks

    def norms_sq_of(self, blocks):
        parts = np.split(blocks, self.bank.starts[1:-1], axis=1)
        return self.factor * np.array([(part**2).sum() for part in parts])

    def block_norms_sq(self, dual_coef):
        return self.norms_sq_of(self.blocks_of(dual_coef))

    def training_scores(self, coef, weights):
        scores = self.bank.zeros(self.n_classes)
        blocks = np.ascontiguousarray(coef.T)
        for samples, _, rows in self.bank.chunks(np.arange(self.bank.n_samples)):
            scores[samples] = score_rows(rows, self.factor * weights, blocks)
        return scores

    def ascent(self, dual_coef, norms_sq=None):
        return BlockAscent(self, dual_coef, norms_sq)


class BlockAscent(Ascent):
    """`Ascent` for a `BlockProblem`: a round is some sweeps over the working set."""

    inner_share = 0.3  # a round costs nearly as much as a look at all samples

    def __init__(self, problem, dual_point, norms_sq=None):
        bound, scale, point = problem.dual_bound(dual_point, norms_sq)
        self._begin(problem, bound)
        self.n = problem.bank.n_samples
        self.B = problem.bank.zeros(problem.n_classes)
        np.multiply(point, scale, out=self.B)
        self.blocks = problem.blocks_of(self.B) / self.n
        self.norms = np.sqrt(problem.norms_sq_of(self.blocks))
        self.usable = np.ones(problem.n_groups, dtype=bool)
        self.rng = np.random.default_rng(0)
        self._start_weights()
        self.fits = self.take_from(self.measure())

    @property
    def room(self):
        return self.n

    def take(self, samples):
        self.samples = samples
        self.problem.bank.hold(samples)

    def shrink(self, margin):
        self.take(self.samples[self.B[self.samples].any(axis=1) | (margin < 1.0)])

    def round(self, target):
        """As in `Ascent`; gap and margins are as the samples saw them."""
        problem = self.problem
        bank = problem.bank
        W = self.samples
        weights = np.exp(self.log_weights)
        tolerance = OWN_SHARE * max(self.near_relative, target) * (self.value or 1.0)
        bound = self._bound()
        scores = np.empty((W.size, problem.n_classes))
        solved = True
        for chosen, visits, rows in bank.chunks(bank.arranged(self.rng.permutation(W))):
            scores[np.searchsorted(W, chosen)] = score_rows(rows, problem.factor * weights, self.blocks)
            rows = rows._replace(place=rows.place[visits])
            worst = self._sweep(chosen[visits], rows, problem.factor * weights, tolerance)
            solved = solved and worst <= tolerance
        limits = self.limits[W] * W.size / self.n
        _, self.value, margin = self._primal(weights, scores, self.labels[W], limits)
        self.norms = np.sqrt(problem.norms_sq_of(self.blocks))
        self._bound()
        return (self.value - bound) / self.value, solved, margin

    def _sweep(self, samples, rows, weights, tolerance, sweeps=SWEEPS):
        """Sweeps in the order of the samples; returns the largest violation."""
        m = samples.size
        M = self.problem.n_classes
        no_priors = np.zeros((M, 0))
        coef = np.asarray(self.B[samples])
        own = weights @ own_products(rows)
        kernel = np.lib.stride_tricks.as_strided(own, (m, m), (own.itemsize, 0))  # only its diagonal is read
        chunk = self.labels[samples], self.limits[samples], self.n
        machine = Machine(kernel, *chunk, np.zeros((m, 0)), no_priors)
        scratch = np.zeros((4, M)), np.empty(M, dtype=np.int64)
        sweep = with_steps(sweep_samples, (class_values, move))
        state = coef, self.blocks, no_priors, (rows, weights)
        _, worst, updates = sweep(machine, *state, *scratch, tolerance, sweeps, m * sweeps)
        self.B[samples] = coef
        self.n_updates += updates
        return worst

    def _bound(self):
        bound = self.problem.dual_bound(self.B, self.norms**2 * self.n**2)[0]
        self.bound = max(self.bound, bound)
        return bound

    def _all_scores(self, weights):
        return self.problem.training_scores(self.blocks.T, weights)

    def _coefficients(self):
        return self.blocks.T.copy()

r"""MKL problems on explicit features: blocks of weights in place of coefficients of samples, and dual ascent.

The block of cue f is :math:`\theta^f = \frac1n \sum_i \phi^f(x_i) B_i^\top`, of shape (n_features, n_classes).
The dual variables B, (n, n_classes), are needed for the certificate alone.
"""

import numpy as np

from cuelearn.compiled import loop
from cuelearn.core.formulas import competitor
from cuelearn.kernels.features import add_row_to, add_rows, row_scores, weigh_row
from cuelearn.kernels.rows import full_dot
from cuelearn.mkl.optimum.dual import OWN_SHARE, Ascent, balance, best_response, optimal_scaling
from cuelearn.mkl.optimum.problem import MKLProblem

__all__ = ["BlockAscent", "BlockProblem", "sweep_blocks"]

# passes over the working set in a round; of features that are computed for each pass, sweeps over a chunk
SWEEPS = 5
CHUNK_SWEEPS = 3
# samples with a violation below this share of the tolerance are skipped
SMALL_SHARE = 0.1


@loop
def sweep_blocks(order, rows, labels, limits, n, weights, blocks, coef, margin, threshold, values, work, places):
    """Dual ascent for fixed weights of the cues, one sample at a time, see `cuelearn.mkl.optimum.dual.ascend`.

    Changes `coef`, B (b, n_classes), and `blocks`, theta (n_classes, n_features); `margin` gets those before
    a sample's update. Samples with a violation of at most `threshold` are skipped. Returns the sum of the
    weighted violations, which bounds n times the gap of the samples at that time, and the number of updates.
    Scratch: `values` (n_features,), zeros `work` (4, n_classes), `places` (n_classes,).
    """
    n_classes = coef.shape[1]
    gradient = work[0]
    curvature = work[1]
    new = work[2]
    upper = work[3]
    total = 0.0
    updates = 0
    for i in order:
        row = rows.place[i]
        label = labels[i]
        count = weigh_row(rows, row, weights, values)
        row_scores(rows, row, values, count, blocks, gradient)
        margin[i] = competitor(gradient, label)[1]
        gradient[label] -= 1.0
        largest = -np.inf
        least = np.inf
        for c in range(n_classes):
            largest = max(largest, gradient[c])
            if coef[i, c] < (limits[i] if c == label else 0.0):
                least = min(least, gradient[c])
        violation = largest - least
        total += limits[i] * violation
        if violation <= threshold:
            continue
        updates += 1
        first = rows.begin[row, 0]
        own = full_dot(values[:count], rows.flat[first : first + count]) / n
        for c in range(n_classes):
            curvature[c] = own
            gradient[c] -= coef[i, c] * own
        upper[label] = limits[i]
        best_response(gradient, upper, curvature, places, new)
        upper[label] = 0.0
        balance(new, label, limits[i])
        for c in range(n_classes):
            change = new[c] - coef[i, c]
            if change != 0.0:
                coef[i, c] = new[c]
                add_row_to(rows, row, change / n, blocks[c])
    return total, updates


class BlockProblem(MKLProblem):
    """An MKL training problem on a `FeatureBank`, with a hinge loss.

    Coefficients of its solutions are blocks, (n_features, n_classes). `certified`: whether solvers keep dual
    variables, (n, n_classes) float64, for gaps; `options` as in `MKLProblem`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.kernel_approximation import RBFSampler
    >>> from cuelearn.kernels import FeatureMap
    >>> from cuelearn.kernels.features import FeatureBank
    >>> from cuelearn.mkl import solve_ufo
    >>> from cuelearn.mkl.optimum.blocks import BlockProblem
    >>> X, y = load_iris(return_X_y=True)
    >>> bank = FeatureBank([("all", FeatureMap(RBFSampler(gamma=0.1, random_state=0)), slice(None))], X)
    >>> result = solve_ufo(BlockProblem(bank, y, 3, C=10), tol=0.01, finish=True)
    >>> result.dual_coef.shape, result.converged
    ((100, 3), True)
    """

    explicit = True

    def __init__(self, bank, labels, n_classes, *, certified=True, **options):
        super().__init__(bank, labels, n_classes, **options)
        self.certified = certified

    def blocks_of(self, dual_coef):
        """The blocks ``sum_i dual_coef[i, c] * features_i``, (n_classes, n_features), in one pass."""
        blocks = np.zeros((self.n_classes, self.bank.n_features))
        support = np.flatnonzero(dual_coef.any(axis=1))
        for samples, _, rows in self.bank.chunks(support):
            add_rows(rows, np.asarray(dual_coef[samples]), blocks)
        return blocks

    def norms_sq_of(self, blocks):
        """Squared norms of the cues' parts of `blocks`, times the factor of the loss."""
        starts = self.bank.starts
        parts = [blocks[:, starts[f] : starts[f + 1]] for f in range(self.bank.n_kernels)]
        return self.factor * np.array([np.vdot(part, part) for part in parts])

    def block_norms_sq(self, dual_coef):
        return self.norms_sq_of(self.blocks_of(dual_coef))

    def training_scores(self, coef, weights):
        """Scores of all samples for blocks (n_features, n_classes), in one pass."""
        scores = self.bank.zeros(self.n_classes)
        blocks = np.ascontiguousarray(coef.T)
        for samples, _, rows in self.bank.chunks(np.arange(self.bank.n_samples)):
            part = np.empty((samples.size, self.n_classes))
            self.bank.add_scores(rows, blocks, self.factor * weights, part)
            scores[samples] = part
        return scores

    def ascent(self, dual_coef, norms_sq=None):
        return BlockAscent(self, dual_coef, norms_sq)


class BlockAscent(Ascent):
    """`Ascent` for a `BlockProblem`: a round is some sweeps over the features of the working set."""

    def __init__(self, problem, dual_point, norms_sq=None):
        bound, scale, point = problem.dual_bound(dual_point, norms_sq)
        self.B = problem.bank.zeros(problem.n_classes)
        np.multiply(point, scale, out=self.B)
        self.blocks = problem.blocks_of(self.B) / problem.bank.n_samples
        self.rng = np.random.default_rng(0)
        self._begin(problem, bound)
        self.norms = np.sqrt(problem.norms_sq_of(self.blocks))
        self.usable = np.ones(problem.n_groups, dtype=bool)
        self._start_weights()
        self.fits = self.take_from(self.measure())

    @property
    def room(self):
        return self.problem.bank.n_samples

    def take(self, samples):
        self.samples = samples
        self.near = None
        self.near = self.problem.bank.holding(samples)

    def shrink(self, margin):
        self.samples = self.samples[self.B[self.samples].any(axis=1) | (margin < 1.0)]

    def round(self, target):
        """Sweep over the working set: relative gap as samples saw it, whether weights may move, margins."""
        problem = self.problem
        bank = self.near
        n = bank.n_samples
        W = self.samples
        weights = np.exp(self.log_weights)
        margin = np.empty(W.size)
        tolerance = OWN_SHARE * max(self.near_relative, target) * (self.value or 1.0)
        norms = self.norms
        bound = self._bound()
        solved = False
        for sweep in range(SWEEPS if bank.resident else 1):
            total = 0.0
            for samples, visits, rows in bank.chunks(bank.arranged(self.rng.permutation(W))):
                violation, own = self._sweep(samples, visits, rows, problem.factor * weights, tolerance)
                total += violation
                if sweep == 0:
                    margin[np.searchsorted(W, samples)] = own
            solved = total / n <= tolerance
            if solved:
                break
        limits = self.limits[W] * W.size / n
        linear = problem.alpha * float((weights * norms).sum())
        quadratic = problem.regularizer(weights * norms) - linear
        self.value = optimal_scaling(margin, limits, quadratic, linear)[1]
        self.norms = np.sqrt(problem.norms_sq_of(self.blocks))
        self._bound()
        return (self.value - bound) / self.value, solved, margin

    def _sweep(self, samples, visits, rows, weights, tolerance):
        """Sweeps over a chunk: violations and margins of the first."""
        problem = self.problem
        bank = self.near
        coef = np.asarray(self.B[samples])
        chosen = self.labels[samples], self.limits[samples]
        scratch = (np.empty(bank.n_features), np.zeros((4, problem.n_classes)))
        places = np.empty(problem.n_classes, dtype=np.int64)
        first = None
        for _ in range(1 if bank.resident else CHUNK_SWEEPS):
            margin = np.empty(samples.size)
            violation, updates = sweep_blocks(
                visits,
                rows,
                *chosen,
                bank.n_samples,
                weights,
                self.blocks,
                coef,
                margin,
                SMALL_SHARE * tolerance,
                *scratch,
                places,
            )
            self.n_updates += updates
            if first is None:
                first = violation, margin
        self.B[samples] = coef
        return first

    def _bound(self):
        n = self.problem.bank.n_samples
        bound = self.problem.dual_bound(self.B, self.norms**2 * n**2)[0]
        self.bound = max(self.bound, bound)
        return bound

    def _all_scores(self, weights):
        return self.problem.training_scores(self.blocks.T, weights)

    def _coefficients(self):
        return self.blocks.T.copy()

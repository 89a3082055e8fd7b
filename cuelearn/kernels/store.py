"""What a bank keeps of its matrices in memory, and how blocks of kernels are filled."""

import numpy as np

from cuelearn.kernels import tiles
from cuelearn.kernels.specifications import as_range
from cuelearn.kernels.tiles import Pair

__all__ = ["Store", "empty_stack", "fill"]

# rows per task of a copy
GATHER_ROWS = 128


def empty_stack(n_kernels, n, dtype):
    """Empty stack (F, n, n) with the rows of a sample, which solvers visit together, adjacent."""
    return np.empty((n, n_kernels, n), dtype).transpose(1, 0, 2)


class Store:
    """All matrices of a bank, `stack` (F, n, n); or `shared`, {root: (n, n)} of the quantities that its
    kernels share; or neither."""

    def __init__(self, stack=None, shared=None):
        self.stack = stack
        self.shared = shared or {}

    @classmethod
    def within(cls, memory, fitted, diagonal):
        """The stack if it fits `memory` bytes, else shared quantities that fit half of it."""
        n_kernels, n = diagonal.shape
        matrix_bytes = n**2 * fitted.dtype.itemsize
        roots = [r for r, root in enumerate(fitted.roots) if root.kind != "matrix"]
        if n_kernels * matrix_bytes <= memory:
            return cls.of_stack(fitted, diagonal)
        if len(roots) < n_kernels and len(roots) * matrix_bytes <= memory / 2:
            return cls.of_shared(fitted, roots)
        return cls()

    @classmethod
    def of_stack(cls, fitted, diagonal):
        n_kernels, n = diagonal.shape
        groups = tiles.group_kernels(fitted.forms, range(n_kernels), fitted.dtype)
        out = empty_stack(n_kernels, n, fitted.dtype)
        planes = tiles.planes_of(out)
        numbers = {r: [] for r in groups}
        for plane, form in enumerate(fitted.forms):
            numbers[form.root].append(plane)

        def write(r, tile, base, pair):
            pair.write(fitted.roots[r], groups[r], tile, base, planes)
            for plane in numbers[r]:
                tiles.mirror(planes, plane, tile)

        fitted.upper(write, groups, fitted.train)
        every = np.arange(n)
        out[:, every, every] = diagonal
        return cls(out)

    @classmethod
    def of_shared(cls, fitted, roots):
        n = fitted.train.n
        shared = {r: np.empty((n, n), fitted.dtype) for r in roots}
        planes = {r: tiles.planes_of(matrix) for r, matrix in shared.items()}

        def write(r, tile, base, pair):
            shared[r][tile.place] = base[tile.part]
            tiles.mirror(planes[r], 0, tile)

        fitted.upper(write, roots, fitted.train)
        return cls(shared=shared)

    @property
    def nbytes(self):
        return sum(matrix.nbytes for matrix in self.shared.values())

    def restrict(self, index):
        """Copies for the samples `index`."""
        if self.stack is None:
            return Store(shared={r: matrix[np.ix_(index, index)] for r, matrix in self.shared.items()})
        out = empty_stack(len(self.stack), len(index), self.stack.dtype)
        places = index.astype(np.uint64)

        def copy(first):
            rows = slice(first, first + GATHER_ROWS)
            tiles.gather_rows(self.stack, places[rows], places, out[:, rows])

        tiles.run(copy, range(0, len(index), GATHER_ROWS), out.size)
        return Store(out)

    def select(self, index, roots):
        """Of the kernels `index`, which have these roots; a view of the stack if they are consecutive."""
        shared = {r: matrix for r, matrix in self.shared.items() if r in roots}
        run = as_range(index)
        if self.stack is None:
            return Store(shared=shared)
        if run is not None:
            return Store(self.stack[run])
        out = empty_stack(len(index), self.stack.shape[1], self.stack.dtype)
        for plane, f in zip(out, index, strict=True):
            plane[...] = self.stack[f]
        return Store(out)


def fill(fitted, groups, left, right, out, store=None, rows=None):
    """Write kernels between two sides into `out`; shared quantities of `store`, at `rows`, are not computed
    again."""
    if out.size == 0:
        return
    planes = tiles.planes_of(out)
    if planes is None:
        dense = np.empty(out.shape, out.dtype)
        fill(fitted, groups, left, right, dense, store, rows)
        out[...] = dense
        return
    pair = Pair(left, right)
    shared = {}
    if store is not None:
        shared = store.shared

    def compute(task):
        r, tile = task
        if r in shared:
            base = shared[r][rows[tile.r0 : tile.r1], tile.c0 : tile.c1]
        else:
            base = pair.base(fitted.roots[r], tile)
        pair.write(fitted.roots[r], groups[r], tile, base, planes)

    strips = tiles.block_tiles(*out.shape[1:])
    tiles.run(compute, [(r, tile) for strip in strips for r in groups for tile in strip], out.size)

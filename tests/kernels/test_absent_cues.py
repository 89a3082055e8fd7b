"""Kernels of samples that lack a cue: zero blocks around the kernels of those that have it."""

import numpy as np
import pandas as pd
import pytest
from plain_kernels import distances
from scipy.sparse import csr_array

from cuelearn.kernels import RBF, Chi2, ExpDistance, KernelBank, Linear, Poly, Precomputed

N = 40
COLUMNS = [[0, 1], [2, 3], [4, 5, 6], list(range(7, 7 + N)), list(range(7 + N, 7 + 2 * N))]


def product(A, B):
    return A @ B.T + 1.0


#: Kernels of each cue.
OF_CUES = [
    [RBF(), RBF(factor=3.0)],
    [Linear(), Poly(), product],
    [Chi2(), ExpDistance("cityblock")],
    [Precomputed()],
    [ExpDistance("precomputed")],
]
KERNELS = [(str(kernel), kernel, g) for g, kernels in enumerate(OF_CUES) for kernel in kernels]
CUES = [(name, kernel, COLUMNS[g]) for name, kernel, g in KERNELS]
TWO = [("shape", RBF(), [0, 1]), ("colour", Linear(), [2, 3])]


def draw():
    """Samples, with and without NaN in absent cues, and a mask of these."""
    rng = np.random.default_rng(0)
    X = np.abs(rng.normal(size=(N, 7)))
    X = np.hstack([X, X @ X.T, distances("cityblock", X[:, :2], X[:, :2])])
    absent = rng.random((len(COLUMNS), N)) < 0.3
    absent[0, absent[:2].all(axis=0)] = False
    with_nan = X.copy()
    for lacks, columns in zip(absent, COLUMNS, strict=True):
        with_nan[np.ix_(lacks, columns)] = np.nan
        if len(columns) == N:
            with_nan[:, np.array(columns)[lacks]] = np.nan
    return X, with_nan, absent


def values(cross):
    return np.concatenate([block for _, block in cross.blocks()], axis=1)


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("memory", [2e9, 4e4, 0.0])
def test_zero_blocks(normalize, memory):
    """In the stack, from kept distances and on demand; new samples alike."""
    X, with_nan, absent = draw()
    options = {"normalize": normalize, "dtype": np.float64}
    bank = KernelBank(CUES, with_nan, memory=memory, missing="zero", **options)
    rows = np.concatenate([bank.rows([i]) for i in range(N)], axis=1)
    new = values(bank.cross(with_nan[:5]))
    for j, (name, kernel, g) in enumerate(KERNELS):
        here = np.flatnonzero(~absent[g])
        columns = np.array(COLUMNS[g])
        if columns.size == N:
            columns = columns[here]
        alone = KernelBank([(name, kernel, columns)], X[here], **options)
        wanted = np.zeros((N, N))
        wanted[np.ix_(here, here)] = alone.stack[0]
        np.testing.assert_allclose(rows[j], wanted, atol=1e-9 * wanted.max(), err_msg=name)
        np.testing.assert_allclose(new[j], wanted[:5], atol=1e-9 * wanted.max(), err_msg=name)
        np.testing.assert_array_equal(bank.diagonal[j][here], alone.diagonal[0])
        assert not bank.diagonal[j][absent[g]].any()
    few = values(bank.restrict(np.arange(10, 30)).select([8, 0]).cross(with_nan[:5]))
    np.testing.assert_allclose(few, new[[8, 0], :, 10:30], atol=1e-12)


def test_nothing_missing_changes_nothing():
    X, _, _ = draw()
    stacks = [KernelBank(CUES, X, missing=missing).stack for missing in ("error", "zero")]
    np.testing.assert_array_equal(*stacks)
    sparse = csr_array(np.where(X > 0.5, X, 0.0))  # what is not stored is zero
    stacks = [KernelBank(TWO, sparse, missing=missing).stack for missing in ("error", "zero")]
    np.testing.assert_array_equal(*stacks)
    X[4, :2] = np.nan
    frame = pd.DataFrame(X).astype("Float64")  # with pandas' NA
    np.testing.assert_array_equal(*(KernelBank(TWO, part, missing="zero").stack for part in (X, frame)))


def test_refused():
    X = draw()[0][:, :4]
    bank = KernelBank(TWO, X, missing="zero")
    X[3, 2:] = np.nan, np.inf
    for take in (bank.cross, lambda X: KernelBank(TWO, X, missing="zero")):
        for wrong in (X, pd.DataFrame(X)):
            with pytest.raises(ValueError, match="column 3 of X holds NaN or infinite"):
                take(wrong)
    X[3, 2:] = 1.0
    X[:, :2] = np.nan
    with pytest.raises(ValueError, match="'shape': no sample of X has it, so give gamma or scale"):
        KernelBank(TWO, X, missing="zero")
    fixed = KernelBank([("shape", RBF(gamma=1.0), [0, 1]), TWO[1]], X, missing="zero").stack
    assert not fixed[0].any() and fixed[1].any()

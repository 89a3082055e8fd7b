"""Norms in the summaries of fitted models; tests/common has their form, and pictures."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import load_iris

from cuelearn.kernels import RBF, KernelBank
from cuelearn.mkl import OBSCURE, SILPMKL, load

CUES = [(f"cue {k}", RBF(factor=2.0**k), [k % 4]) for k in range(6)]
X, Y = load_iris(return_X_y=True)


@pytest.mark.parametrize("cls", [OBSCURE, SILPMKL])
def test_summary(cls, tmp_path):
    model = cls(CUES).fit(X, Y)
    table, bank = model.summary(), KernelBank(CUES, X)
    assert_allclose(table.weight, np.ravel(model.kernel_weights_))
    coef = np.zeros((150, 3))
    coef[model.support_] = model.dual_coef_
    squares = np.array([np.sum(coef * (k @ coef), axis=0) for k in bank.stack.astype(float)])
    squares = squares.T.ravel() if cls is SILPMKL else squares.sum(axis=1)
    assert_allclose(table.norm, table.weight * np.sqrt(np.maximum(squares, 0)), rtol=1e-3, atol=1e-4)
    model.save(tmp_path / "model.npz")
    assert_allclose(load(tmp_path / "model.npz").summary().norm, table.norm, rtol=1e-3, atol=1e-4)

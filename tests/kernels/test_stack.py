"""Several kernels as scikit-learn's splitters index a kernel matrix."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.model_selection import StratifiedKFold, cross_val_score, train_test_split
from sklearn.multiclass import OneVsOneClassifier
from sklearn.utils import resample

from cuelearn import mkl, mktl, oks
from cuelearn.kernels import RBF, KernelBank, KernelStack

CUES = [("sepal", RBF(), [0, 1]), ("petal", RBF(), [2, 3])]
X, Y = load_iris(return_X_y=True)
FOLDS = StratifiedKFold(3, shuffle=True, random_state=0)
MODELS = [
    mkl.OBSCURE(random_state=0),
    mkl.MLMKLSum(n_iter=20),
    mktl.MKTL(random_state=0),
    oks.OKS(one_vs_rest=True, random_state=0),
]


@pytest.fixture(scope="module")
def bank():
    return KernelBank(CUES, X, dtype=np.float64)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_cross_validation_is_that_of_folds_by_hand(model, bank):
    model = clone(model).set_params(kernels="precomputed")
    by_hand = []
    for train, test in FOLDS.split(X, Y):
        K = bank.stack
        fitted = clone(model).fit(K[:, train][:, :, train], Y[train])
        by_hand.append(fitted.score(K[:, test][:, :, train], Y[test]))
    assert_array_equal(cross_val_score(model, KernelStack(bank), Y, cv=FOLDS, error_score="raise"), by_hand)
    assert np.mean(by_hand) > 0.6


def test_indices():
    K = KernelStack(np.stack([np.eye(5), np.full((5, 5), 2.0)]), names=["one", "two"])
    assert K.shape == (5, 5) and len(K) == 5 and K.n_kernels == 2 and K.names == ["one", "two"]
    part = K[np.ix_([3, 1], [0, 1, 3])]
    assert part.shape == (2, 3) and part[:1].shape == (1, 3)
    ((_, block),) = part.cross().blocks()
    assert_array_equal(block, [[[0, 0, 1], [0, 1, 0]], np.full((2, 3), 2.0)])
    with pytest.raises(ValueError, match="X must be the kernels of the training samples with each other"):
        part.bank()
    for rows in ([3, 1], np.array([False, True, False, True, False]), slice(1, 4, 2)):
        assert K[rows].shape == (2, 5) and K[..., rows].shape == (5, 2)
    again = K[np.ix_([4, 2], [4, 2])][np.ix_([1], [1])]
    assert again.bank().stack[:, 0, 0].tolist() == [1.0, 2.0]


def test_rows_as_scikit_learn_takes_them(bank):
    K = KernelStack(bank)
    numbers = np.arange(len(Y))
    train, test, train_rows, test_rows = train_test_split(numbers, K, random_state=0)
    assert train_rows.shape == (112, 150) and test_rows.shape == (38, 150)
    model = mkl.AverageKernelSVM("precomputed").fit(train_rows[:, train], Y[train])
    assert model.score(test_rows[:, train], Y[test]) > 0.9
    drawn, rows = resample(numbers, K, random_state=0)
    assert_array_equal(next(rows.cross().blocks())[1], bank.stack[:, drawn])
    with pytest.raises(ValueError, match=r"split by rows, use K\[np.ix_\(train, train\)\]"):
        model.fit(train_rows, Y[train])


def test_no_matrix(bank):
    K = KernelStack(bank)
    with pytest.raises(TypeError, match=r"is several kernels and cannot be.* K.bank\(\).stack is the array"):
        OneVsOneClassifier(mkl.AverageKernelSVM("precomputed")).fit(K, Y)


def test_a_stack_needs_the_word_precomputed(bank):
    with pytest.raises(ValueError, match="X is a KernelStack, which needs kernels='precomputed'"):
        mkl.OBSCURE(CUES).fit(KernelStack(bank), Y)

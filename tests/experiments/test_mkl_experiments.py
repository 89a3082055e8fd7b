"""The protocols of the chapters: splits, kernel sets, curves."""

import numpy as np
import pandas as pd
import pytest

from cuelearn.experiments import mkl


@pytest.mark.parametrize(
    ("name", "n_kernels"),
    [
        ("mfeat-6", 6),
        ("mfeat-pyramid", 4),
        ("mfeat-39", 39),
        ("mfeat-1400", 1400),
        ("pendigits-4", 4),
        ("mnist-12", 12),
    ],
)
def test_kernel_sets(name, n_kernels):
    triples = mkl.kernel_set(name, mkl.load_data(name))
    assert len(triples) == n_kernels and len({t[0] for t in triples}) == n_kernels


@pytest.mark.parametrize("count", [7, 70, 350, 700, 1400])
def test_widths_are_spread_over_all_distances(count):
    chosen = mkl.evenly(count)
    assert len(chosen) == count and len(set(chosen)) == count
    assert np.bincount(chosen // 200).tolist() == [count // 7] * 7


def test_splits_are_stratified_disjoint_and_seeded():
    task = mkl.load_task("mfeat-6", 100, 300, 3)
    assert np.bincount(task.labels).tolist() == [10] * 10 and task.test_labels.size == 300
    again = mkl.load_task.__wrapped__("mfeat-6", 100, 300, 3)
    assert np.array_equal(task.bank.stack, again.bank.stack) and np.array_equal(task.labels, again.labels)
    other = mkl.load_task("mfeat-6", 100, 300, 4)
    assert not np.array_equal(task.labels, other.labels)


def test_scaling_uses_the_training_part_only():
    small = mkl.load_task("mfeat-6", 100, 300, 0)
    fewer_tests = mkl.load_task("mfeat-6", 100, 5, 0)
    assert np.array_equal(small.bank.stack, fewer_tests.bank.stack)


def test_a_subset_of_kernels_is_random_but_seeded():
    names = [mkl.load_task("mfeat-39", 50, 10, seed, 5).bank.names for seed in (0, 0, 1)]
    assert names[0] == names[1] != names[2] and len(names[0]) == 5


def test_curves_measure_what_they_say():
    curve = mkl.training_curve("OBSCURE", 20, 0, 10.0, 1.25, task="mfeat-6", n_train=100, n_test=300)
    assert curve["seconds"].is_monotonic_increasing and curve["epoch"].iloc[-1] <= 25
    assert curve["test_error"].between(0, 1).all() and curve["test_error"].iloc[-1] < 0.1
    assert (curve["dual_gap"] >= 0).all()
    exact = mkl.optimum(10.0, 1.25, task="mfeat-6", n_train=100, seed=0)
    assert exact["lower"] <= exact["objective"] <= curve["objective"].min() * (1 + 1e-6)
    assert (mkl.suboptimality(curve, exact["lower"]) >= 0).all()


def test_time_to():
    curve = pd.DataFrame({"seconds": [1.0, 2.0, 3.0], "error": [0.3, 0.1, 0.2]})
    assert mkl.time_to(curve, "error", 0.15) == 2.0 and np.isnan(mkl.time_to(curve, "error", 0.05))


def test_error_of_a_zero_model_is_that_of_the_first_class():
    task = mkl.load_task("mfeat-6", 100, 300, 0)
    assert mkl.test_error(task, np.zeros((100, 10)), np.zeros(6)) == np.mean(task.test_labels != 0)

"""One kernel and a batch SVM: MuSVM, AlignmentSVM, and the kernel that an online learner selected."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from oks_problems import CUES
from oks_twins import make_data, make_stack, plain_alignment
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.svm import SVC

from cuelearn.kernels import RBF, Chi2
from cuelearn.oks import OKS, AlignmentSVM, MuSVM, MuTron, SelectedSVM, alignment, batch, select_then_fit

GRID = (0.01, 0.3, 10.0)


def split(labels, seed, share=0.1):
    """Stratified parts that are held back, until they are 200 samples or ten parts, and the rest."""
    rng, parts = np.random.default_rng(seed), []
    size = max(round(share * len(labels)), len(np.unique(labels)))
    while not parts or (size * len(parts) < 200 and len(parts) < 10):
        number = int(rng.integers(2**31 - 1))
        drawn = train_test_split(np.arange(len(labels)), test_size=size, stratify=labels, random_state=number)
        parts.append([np.sort(rows) for rows in drawn])
    return parts


def svc(kernel, y, C, rows):
    return SVC(C=C, kernel="precomputed", tol=1e-3).fit(kernel[np.ix_(rows, rows)], y[rows])


def held_back_scores(K, y, parts, grid=GRID):
    """Accuracies and mean hinge losses, each of shape (n_kernels, number of C): a plain loop over SVC."""
    if len(parts) > 1:
        return np.mean([held_back_scores(K, y, [part], grid) for part in parts], axis=0)
    (train, test), (accuracy, hinge) = parts[0], np.zeros((2, len(K), len(grid)))
    for j, kernel in enumerate(K):
        for c, C in enumerate(grid):
            machine, rows = svc(kernel, y, C, train), kernel[np.ix_(test, train)]
            accuracy[j, c] = np.mean(machine.predict(rows) == y[test])
            hinge[j, c] = np.maximum(0.0, 1.0 - (2 * y[test] - 1) * machine.decision_function(rows)).mean()
    return accuracy, hinge


def best(accuracy, hinge, grid=GRID):
    places = np.ndindex(accuracy.shape)
    j, c = min(places, key=lambda place: (-accuracy[place], hinge[place], place))
    return j, grid[c]


@pytest.mark.parametrize("seed, share", [(1, 0.3), (2, 0.02)])
def test_musvm_is_a_loop_over_svc(seed, share):
    K, y = make_stack(120, 4, seed=seed, noise=0.3)
    new = K[:, :30]
    table, hinge = held_back_scores(K, y, split(y, seed, share))
    j, C = best(table, hinge)
    wanted = svc(K[j], y, C, np.arange(120))
    model = MuSVM("precomputed", C=GRID, validation=share, random_state=seed).fit(K, y)
    assert_allclose(model.validation_accuracy_, table, atol=1e-12)
    assert (model.best_index_, model.C_) == (j, C)
    assert_array_equal(model.support_, np.sort(wanted.support_))
    assert_allclose(model.decision_function(new), wanted.decision_function(new[j]), atol=1e-9)
    assert_array_equal(model.predict(new), wanted.predict(new[j]))
    assert_array_equal(model.kernel_weights_, np.eye(4)[j])


def test_work_is_counted():
    X, y = make_data(80, seed=3, noise=0.2)
    matrix = 80 * 81 // 2
    one = MuSVM(CUES, C=GRID, random_state=5).fit(X, y)
    few = MuSVM(CUES, C=GRID, random_state=5, memory=0).fit(X, y)  # the chosen one is computed again
    assert (one.n_evaluations_, few.n_evaluations_) == (7 * matrix, 8 * matrix)
    assert one.n_solved_ == few.n_solved_ == 10 * 7 * 3 + 1  # ten times eight are held back
    aligned = AlignmentSVM(CUES, C=GRID, random_state=5).fit(X, y)
    assert (aligned.n_evaluations_, aligned.n_solved_) == (7 * matrix, 31)
    found = SelectedSVM(OKS(CUES, random_state=5), C=GRID, random_state=5).fit(X, y)
    assert found.n_evaluations_ == found.selector_.n_evaluations_ + matrix and found.n_solved_ == 31


def test_rows_that_are_held_back_are_named():
    K, y = make_stack(120, 4, seed=0, noise=0.3)
    train, test = split(y, 7)[0]
    table, _ = held_back_scores(K, y, [(train, test)])
    rows = test[::-1].tolist()
    model = MuSVM("precomputed", C=GRID, validation=rows).fit(K, y)
    assert_allclose(model.validation_accuracy_, table, atol=1e-12)
    selected = SelectedSVM(MuTron("precomputed", validation=rows), C=GRID, validation=rows).fit(K, y)
    assert_allclose(selected.validation_accuracy_, table[selected.best_index_], atol=1e-12)
    assert selected.selector_.visits_.tolist() == train.tolist()
    leaves = "validation must leave training samples, with sample_weight > 0, of every class"
    weights = np.where(y == y[0], 0.0, 1.0)
    weights[test] = 1.0
    without = np.isin(np.arange(120), train)
    for rows, sample_weight, match in (
        ([120], None, "validation must be a list of integers from 0 to 119"),
        (np.flatnonzero(y == y[0]), None, leaves),
        (test, weights, leaves),
        (test, without, "validation must have a sample with sample_weight > 0"),
    ):
        with pytest.raises(ValueError, match=match):
            MuSVM("precomputed", validation=rows).fit(K, y, sample_weight=sample_weight)


def test_ties():
    y = np.arange(60) % 2
    perfect = 0.9 * np.outer(2 * y - 1, 2 * y - 1) + 0.1 * np.eye(60)
    K = np.stack([np.eye(60), 0.5 * perfect, perfect, perfect])
    grid = (0.001, 3.0, 10.0)
    accuracy, hinge = held_back_scores(K, y, split(y, 0), grid)
    assert np.all(accuracy[1:] == 1.0) and hinge[1, 0] > hinge[1:, 1:].max()
    for C in (grid[::-1], np.array(grid)):
        model = MuSVM("precomputed", C=C, random_state=0).fit(K, y)
        assert (model.best_index_, model.C_) == best(accuracy, hinge, grid) and model.C_ > 0.001
    assert MuSVM("precomputed", C=(5.0, 5.0), random_state=0).fit(K[[0, 2, 3]], y).best_index_ == 1


@pytest.mark.parametrize("centered", [True, False])
def test_alignment_by_brute_force(centered):
    rng = np.random.default_rng(0)
    for n, share in ((2, 0.5), (51, 0.9)):
        Z = rng.normal(size=(n, 3)) + rng.normal(size=3)
        y = np.where(rng.random(n) < share, 1, -1)
        y[:2] = 1, -1
        outer = np.outer(y, y).astype(float)
        for kernel in (Z @ Z.T, np.exp(-((Z[:, None] - Z[None]) ** 2).sum(axis=2)), outer):
            wanted = pytest.approx(plain_alignment(kernel, outer, centered), abs=1e-10)
            assert alignment(kernel, np.where(y > 0, "b", "a"), centered=centered) == wanted
            # a factor does not matter, nor, after centring, a constant
            assert alignment(7.0 * kernel + 3.0 * centered, y, centered=centered) == wanted
        assert alignment(outer, y, centered=centered) == pytest.approx(1.0)
    for constant in (0.0, 1.0):
        assert alignment(np.full((4, 4), constant), [0, 1, 0, 1], centered) == pytest.approx(0.0)
    labels = rng.integers(0, 3, 51)
    kernel, same = Z @ Z.T, (labels[:, None] == labels).astype(float)
    wanted = plain_alignment(kernel, same, centered)
    assert alignment(kernel, labels, centered=centered) == pytest.approx(wanted, abs=1e-12)


@pytest.mark.parametrize("centered", [True, False])
def test_alignment_svm(centered):
    K, y = make_stack(100, 4, seed=1, noise=0.3)
    K = K[[2, 0, 3, 1]] + np.array([0.0, 0.5, 0.0, 0.0])[:, None, None]
    parts = split(y, 0)
    signs = 2.0 * y - 1.0
    wanted = [plain_alignment(kernel, np.outer(signs, signs), centered) for kernel in K]
    j = int(np.argmax(wanted))
    accuracy, hinge = held_back_scores(K[[j]], y, parts)
    table, C = accuracy[0], best(accuracy, hinge)[1]
    model = AlignmentSVM("precomputed", C=GRID, centered=centered, random_state=0).fit(K, y)
    assert_allclose(model.alignment_, wanted, atol=1e-9)
    assert_allclose(model.validation_accuracy_, table, atol=1e-12)
    assert (model.best_index_, model.C_) == (j, C)
    machine = svc(K[j], y, C, np.arange(100))
    assert_allclose(model.decision_function(K), machine.decision_function(K[j]), atol=1e-9)


def test_select_then_fit():
    """The selector is cloned; or is fitted already: then used as it is."""
    X, y = make_data(120, seed=3, noise=0.2)
    labels = np.array(["no", "yes"])[y]
    selector = OKS(CUES, random_state=1)
    model = select_then_fit(selector, X, labels, C=GRID, random_state=0)
    assert not hasattr(selector, "classes_")
    fitted = clone(selector).fit(X, labels)
    assert model.best_index_ == fitted.best_index_ and model.best_kernel_ == fitted.best_kernel_
    again = select_then_fit(fitted, X, labels, C=GRID, random_state=0)
    assert again.selector_ is fitted
    assert_array_equal(again.decision_function(X), model.decision_function(X))
    assert_array_equal(again.predict(X), labels[[0, 1]][(again.decision_function(X) > 0).astype(int)])


def test_scale_of_the_selector_is_kept():
    X, y = make_data(700, seed=3, noise=0.3)
    cues = [("a", RBF(), [0, 1, 2]), ("b", Chi2(), [3, 4, 5])]
    selector = OKS(cues, random_state=0).fit(X, y)
    model = select_then_fit(selector, X, y, C=1.0, random_state=0)
    assert model.bank_.kernels_[model.best_index_] == selector._source.triples[model.best_index_][1]
    alone = MuSVM([selector._source.triples[model.best_index_]], C=1.0, random_state=0).fit(X, y)
    assert_allclose(model.decision_function(X), alone.decision_function(X), atol=1e-3)


def test_a_fitted_selector_gets_the_columns_and_classes_it_knows():
    X, y = make_data(120, seed=2)
    frame = pd.DataFrame(X, columns=list("abcdef"))
    selector = OKS([("a", RBF(), ["a", "b"]), ("c", RBF(), ["c", "d"])], random_state=0)
    selector.fit(frame, y)
    assert select_then_fit(selector, frame, y, C=1.0).score(frame, y) > 0.5
    with pytest.raises(ValueError, match="feature names"):
        select_then_fit(selector, frame[list("fedcba")], y, C=1.0)
    with pytest.raises(ValueError, match="y must hold the classes that the selector was fitted on"):
        select_then_fit(selector, frame, y + 1, C=1.0)


@pytest.mark.parametrize("model", [MuSVM(), AlignmentSVM(), SelectedSVM(OKS())])
def test_several_classes_must_be_asked_for(model):
    X, y = make_data(60, seed=3)
    y[:9] = 2
    with pytest.raises(ValueError, match=r"y must hold 2 classes.*got 3.*one_vs_rest=True"):
        model.fit(X, y)


def test_a_choice_is_bounded_on_kernels_of_any_scale(monkeypatch):
    """No larger C is tried after one that libsvm cannot solve; one warning for all."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 4))
    y = (X[:, 0] + rng.normal(size=40) > 0.0).astype(int)
    K = np.stack([X[:, :2] @ X[:, :2].T, X[:, 2:] @ X[:, 2:].T])
    steps, solve = [], batch.fit_svc

    def counting(*args, **options):
        machine = solve(*args, **options)
        steps.append(machine.n_iter)
        return machine

    monkeypatch.setattr(batch, "fit_svc", counting)
    plain = MuSVM("precomputed", C=(0.1, 1.0), random_state=0).fit(K, y)
    assert not np.isnan(plain.validation_accuracy_).any()
    monkeypatch.setattr(batch, "CHOICE_STEPS", 60_000)
    for scale in (1e3, 1e9):
        steps.clear()
        with pytest.warns(ConvergenceWarning, match="larger C were not tried") as caught:
            model = MuSVM("precomputed", random_state=0).fit(scale * K, y)
        assert sum(w.category is ConvergenceWarning for w in caught) == 1
        assert sum(steps) < 40 * 3 * batch.CHOICE_STEPS
        tried = ~np.isnan(model.validation_accuracy_)
        assert (np.diff(tried.astype(int), axis=1) <= 0).all() and tried[:, 0].all() and not tried.all()
        assert model.score(scale * K, y) > 0.5

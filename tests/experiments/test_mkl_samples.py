"""Experiments on many samples: moved digits, patches of forest, functions of libraries."""

from types import SimpleNamespace

import numpy as np
import pytest

from companion.mkl import figures_samples as samples

FEW = {"tol": 0.05, "n_components": 16}


def test_digits_come_first_as_they_are_and_then_moved(monkeypatch):
    data = samples.load_set("mnist")
    few = data._replace(train=data.train[:50], y=data.y, X=data.X)
    monkeypatch.setattr(samples, "load_set", lambda name: few)
    monkeypatch.setattr(samples, "BATCH", 300)
    batches = list(samples.jittered_digits(50 * 25))
    X, y = (np.concatenate(parts) for parts in zip(*batches, strict=True))
    np.testing.assert_array_equal(X[:50], data.X[:50])
    np.testing.assert_array_equal(y, np.tile(data.y[:50], 25))
    digit = X[7::50]
    assert len(np.unique(digit, axis=0)) == 25  # each move once
    images = np.empty((25, 784), dtype=np.float32)
    images[:, data.pixels] = digit
    images = images.reshape(-1, 28, 28)
    moves = [(down, right) for down in range(-2, 3) for right in range(-2, 3)]
    moved = {np.roll(images[0], move, (0, 1)).tobytes() for move in moves}
    assert moved == {image.tobytes() for image in images}  # this digit has a margin of two pixels


@pytest.mark.parametrize("method", samples.DIGITS)
def test_forest_is_measured(method, monkeypatch):
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=700)
    X = np.hstack(
        [rng.normal(size=(700, 10)) + y[:, None], np.eye(4)[y], np.eye(40)[rng.integers(40, size=700)]]
    )
    monkeypatch.setattr(samples, "load_set", lambda name: SimpleNamespace(X=X, y=y))
    row = samples.on_forest(method, 400, 1.0, n_test=200, seed=0, **FEW)
    assert row["error"] < 0.1 and row["seconds"] > 0.0
    assert not row["memory"] < 0.0 and not row["gap"] > FEW["tol"]


def test_functions_of_a_library_have_two_texts():
    table = samples.functions_of("networkx", 10)
    assert len(table) > 10 and table["file"].nunique() > 3
    X, y, new, new_labels = samples.texts(table.assign(library="networkx"), 0, held_back=1)
    assert list(X) == ["documentation", "code"] and len(X) == len(y) > len(new) == len(new_labels)
    assert not set(table["file"][X.index]) & set(table["file"][new.index])

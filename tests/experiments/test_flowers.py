"""Oxford Flowers-17 as a task."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from companion import pictures
from cuelearn.datasets import load_emoji
from cuelearn.datasets.cues import PHOTO_CUES, image_cues
from cuelearn.kernels import distance_matrix


def test_splits():
    y = np.repeat(np.arange(17), 80)
    train, test = pictures.flower_split(y, 3)
    assert (train.size, test.size) == (1020, 340)
    assert np.array_equal(np.sort(np.concatenate([train, test])), np.arange(1360))
    assert np.all(np.bincount(y[train]) == 60) and np.all(np.bincount(y[test]) == 20)
    fewer, same = pictures.flower_split(y, 3, 40)
    assert np.array_equal(same, test) and np.isin(fewer, train).all()
    assert np.all(np.bincount(y[fewer]) == 40)
    assert not np.array_equal(pictures.flower_split(y, 4)[1], test)


@pytest.mark.parametrize("n_kernels", [7, 1400])
def test_kernels(n_kernels):
    triples = pictures.distance_kernels(PHOTO_CUES, 20, n_kernels)
    assert len({name for name, _, _ in triples}) == n_kernels == len(triples)
    factors = np.array([kernel.factor for _, kernel, _ in triples]).reshape(7, -1)
    assert (factors == factors[0]).all() and np.isin(factors, [1.0, *pictures.WIDTHS]).all()
    assert [columns.start for _, _, columns in triples[:: n_kernels // 7]] == list(range(0, 140, 20))
    assert n_kernels < 1400 or np.array_equal(factors[0], pictures.WIDTHS)


def test_a_task(monkeypatch):
    emoji = load_emoji("noto")
    images = emoji.on_backgrounds(rows=np.arange(0, 400, 100), n_views=12)._replace(masks=None)
    monkeypatch.setattr(pictures, "load_original", lambda name: images)
    monkeypatch.setattr(pictures, "FLOWER_WORDS", 12)
    monkeypatch.setattr(pictures, "N_TEST", 5)
    monkeypatch.setenv("CUELEARN_DATA", "painted")
    task = pictures.load_flowers(7)
    train, test = pictures.flower_split(images.y, 0, 7)
    assert np.array_equal(task.labels, images.y[train])
    assert np.array_equal(task.test_labels, images.y[test])
    assert task.bank.names == list(PHOTO_CUES) and task.n_classes == 4
    cues = image_cues(images, train=train, n_words=12)
    ((_, across),) = task.cross.blocks()
    inside = task.bank.rows(np.arange(28))
    for j, part in enumerate(cues.cues.values()):
        distance = distance_matrix(cues.X[:, part].astype(np.float64), "chi2")
        mean = distance[np.ix_(train, train)].sum() / (28 * 27)
        assert_allclose(inside[j], np.exp(-distance[np.ix_(train, train)] / mean), atol=2e-5)
        assert_allclose(across[j], np.exp(-distance[np.ix_(test, train)] / mean), atol=2e-5)
    many = pictures.load_flowers(7, 0, 1400)
    middle = np.abs(np.log(pictures.WIDTHS)).argmin()
    exponent = np.log(many.bank.rows([3])[middle, 0, :]) * pictures.WIDTHS[middle]
    assert_allclose(exponent, np.log(inside[0, 3]), rtol=1e-3, atol=1e-5)

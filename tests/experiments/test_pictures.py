"""Which drawings take part in experiments, and their cues kept on disk."""

import numpy as np
from numpy.testing import assert_array_equal

from companion import pictures


def test_words_are_learnt_from_things_that_take_part_in_nothing_else():
    apart = pictures.word_things()
    assert apart.size == 80 and not np.isin(apart, pictures.things()).any()
    families = pictures.emoji().family
    assert not np.isin(families[apart], families[pictures.things()]).any()
    assert pictures.emoji().n_drawings()[apart].max() <= 4
    assert pictures.things().size == 861 - 80


def test_objects_are_unlike_each_other_and_whole():
    found = pictures.objects()
    assert found.size == 102 and np.unique(pictures.emoji().family[found]).size == 102
    assert (pictures.emoji().n_drawings()[found] == 8).all()
    assert_array_equal(pictures.objects(10), found[:10])
    assert pictures.drawings_of(found).size == 816


def kept_files(place):
    """Results on disk and when each was written."""
    return {file: file.stat().st_mtime_ns for file in place.glob("cues/**/output.pkl")}


def test_cues_are_kept_on_disk(tmp_path, monkeypatch):
    monkeypatch.setenv("CUELEARN_CACHE", str(tmp_path))
    rows, asked = pictures.drawings_of(pictures.objects(2))[::4], ["RGB 1x1", "words 2x2", "moments"]
    first = pictures.described(rows, asked)
    assert first.X.shape == (4, 512 + 400 + 19) and list(first.cues) == asked
    assert_array_equal(first.y, pictures.emoji().thing[rows])
    files = kept_files(tmp_path)
    pictures.emoji.cache_clear()
    again = pictures.described(rows, asked, n_jobs=2)  # how many processes is no matter
    assert "pictures" not in vars(pictures.emoji())  # neither drawings nor cues are unpacked again
    assert_array_equal(again.X, first.X)
    assert files == kept_files(tmp_path)
    pictures.described(rows[:2], asked)
    assert len(kept_files(tmp_path)) == len(files) + 1  # other rows, the same words
    monkeypatch.setattr(pictures, "_sources", lambda: "changed")
    assert_array_equal(pictures.described(rows, asked).X, first.X)
    assert len(kept_files(tmp_path)) == 2 * len(files) + 1
    views = pictures.described(rows[:1], asked[:1], n_views=3)
    assert views.X.shape == (3, 512) and (views.y == views.y[0]).all()
    assert_array_equal(views.X[0], first.X[0, :512])  # the first view is the drawing itself

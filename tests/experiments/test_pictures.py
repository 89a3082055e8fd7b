"""Which drawings take part in experiments, and their cues kept on disk."""

import numpy as np
from numpy.testing import assert_array_equal

from companion import pictures


def test_words_are_learnt_from_things_that_take_part_in_nothing_else():
    apart = pictures.word_things()
    assert apart.size == 80 and pictures.things().size == 861 - 80
    families = pictures.emoji().family
    assert not np.isin(families[apart], families[pictures.things()]).any()


def test_objects_are_unlike_each_other_and_whole():
    objects = pictures.objects()
    assert objects.size == 102 and np.unique(pictures.emoji().family[objects]).size == 102
    assert_array_equal(pictures.objects(10), objects[:10])
    assert pictures.drawings_of(objects).size == 8 * 102


def test_cues_are_kept_on_disk(tmp_path, monkeypatch):
    monkeypatch.setenv("CUELEARN_CACHE", str(tmp_path))

    def kept_files():
        return {file: file.stat().st_mtime_ns for file in tmp_path.glob("cues/**/output.pkl")}

    rows, cues = pictures.drawings_of(pictures.objects(2))[::4], ["RGB 1x1", "moments"]
    first = pictures.described(rows, cues)
    assert first.X.shape == (4, 512 + 19) and list(first.cues) == cues
    assert_array_equal(first.y, pictures.emoji().thing[rows])
    views = pictures.described(rows[:1], cues[:1], n_views=3)
    assert views.X.shape == (3, 512)
    assert_array_equal(views.X[0], first.X[0, :512])  # the first view is the drawing itself
    files = kept_files()
    with monkeypatch.context() as patch:
        patch.setattr(pictures, "_sources", lambda: "changed")
        assert_array_equal(pictures.described(rows, cues).X, first.X)
    assert len(kept_files()) == len(files) + 1
    files = kept_files()
    pictures.emoji.cache_clear()
    assert_array_equal(pictures.described(rows, cues, n_jobs=2).X, first.X)
    assert "pictures" not in vars(pictures.emoji())  # the drawings are not unpacked again
    assert files == kept_files()

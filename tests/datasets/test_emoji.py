"""Emoji, as stored and on backgrounds."""

import functools
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from cuelearn.datasets import EMOJI_STYLES, DataFileError, base, load_emoji
from cuelearn.datasets.base import data_file, data_module
from cuelearn.datasets.images import changed_picture

DATA = Path(__file__).parents[2] / "data"
REGISTRY = json.loads((DATA / "datasets.json").read_text(encoding="utf-8"))
SHARE_ALIKE = ("emojione-v1", "openmoji")
build = data_module("build")


@functools.cache
def load():
    return load_emoji()


@functools.cache
def edges():
    return build.edge_maps(load().pictures)


def where(name, style):
    """The row of a thing's drawing in a style."""
    emoji = load()
    (row,) = np.flatnonzero((emoji.names[emoji.thing] == name) & (emoji.style == style))
    return row


@pytest.fixture
def copied(tmp_path, monkeypatch):
    for file in ("datasets.json", "emoji.npz", "emoji-sharealike.npz"):
        shutil.copy(data_file(file), tmp_path / file)
    monkeypatch.setattr(base, "data_folders", lambda: [tmp_path])
    return tmp_path


def test_shapes_and_counts():
    emoji = load()
    assert emoji.pictures.shape == (5513, 64, 64, 4) and emoji.pictures.dtype == np.uint8
    assert len(emoji.names) == len(set(emoji.names)) == 861
    counts = [int((emoji.style == style).sum()) for style in EMOJI_STYLES]
    assert counts == [860, 627, 366, 631, 816, 837, 520, 856]
    drawings = np.bincount(emoji.thing)
    assert len(drawings) == 861 and drawings.min() == 2 and (drawings == 8).sum() == 342
    assert (emoji.pictures[emoji.pictures[..., 3] == 0] == 0).all()
    assert (emoji.pictures[..., 3].max(axis=(1, 2)) > 100).all()  # something is drawn
    assert emoji.keywords.shape == (861, len(emoji.keyword_names)) and emoji.keywords.any(axis=1).all()
    assert "5513 pictures of 861 things" in repr(emoji)


def test_no_drawing_is_there_twice():
    assert build.new_drawings(edges(), load().thing).all()


def test_families_hold_what_is_drawn_alike():
    emoji = load()
    found = build.families(edges(), emoji.style, emoji.thing, emoji.subgroup)
    assert_array_equal(emoji.family[found], emoji.family)  # what was left out may have joined more
    assert_array_equal(emoji.subgroup[emoji.family], emoji.subgroup)
    assert (emoji.family <= np.arange(861)).all() and len(set(emoji.family)) == 729
    assert np.bincount(emoji.family)[list(emoji.names).index("alarm clock")] == 25


def test_styles_are_taken_as_named():
    emoji = load_emoji(["openmoji", "noto"])
    assert list(dict.fromkeys(emoji.style)) == ["noto", "openmoji"]
    assert_array_equal(emoji.pictures, load().pictures[np.isin(load().style, ["noto", "openmoji"])])
    assert set(load_emoji("fxemoji").style) == {"fxemoji"}
    for wrong in ("apple", ["noto", "apple"], []):
        with pytest.raises(ValueError, match="styles must be"):
            load_emoji(wrong)


def test_share_alike_may_be_left_out(copied):
    (copied / "emoji-sharealike.npz").unlink()
    emoji = load_emoji()
    assert set(emoji.style) == set(EMOJI_STYLES) - {*SHARE_ALIKE} and "SA" not in emoji.provenance.licence
    assert_array_equal(emoji.pictures, load().pictures[: len(emoji.thing)])
    assert "CC BY-SA 4.0" in load().provenance.licence
    with pytest.raises(DataFileError, match=r"emoji-sharealike\.npz is missing.*build\.py emoji-sharealike"):
        load_emoji(["openmoji"])


def test_every_style_is_credited():
    readme = (DATA / "README.md").read_text(encoding="utf-8")
    stored = [style for name in ("emoji", "emoji-sharealike") for style in REGISTRY[name]["load"]["styles"]]
    assert tuple(stored) == EMOJI_STYLES
    for style in EMOJI_STYLES:
        (line,) = [line for line in readme.splitlines() if line.startswith((f"| {style} |", f"| {style} ("))]
        assert "https://" in line and ("CC BY-SA 4.0" in line) == (style in SHARE_ALIKE)


def test_backgrounds():
    emoji = load()
    rows = np.array([where("red apple", "noto"), where("red apple", "openmoji"), where("tomato", "noto")])
    data = emoji.on_backgrounds(rows=rows)
    assert data.target_names == ["red apple", "tomato"] and data.y.tolist() == [0, 0, 1]
    assert data.frames["name"].tolist()[:2] == ["red apple, noto", "red apple, openmoji"]
    alpha = emoji.pictures[rows, ..., 3]
    assert_array_equal(data.masks, alpha >= 128)
    assert_array_equal(data.images[alpha == 255], emoji.pictures[rows][alpha == 255][:, :3])
    plain = [np.unique(image[a == 0], axis=0) for image, a in zip(data.images, alpha, strict=True)]
    assert [len(colours) for colours in plain] == [1, 1, 1] and len(np.unique(plain, axis=0)) == 3
    fewer = load_emoji(["openmoji"])  # the same colour whatever else is loaded
    apple = fewer.on_backgrounds(rows=fewer.names[fewer.thing] == "red apple")
    assert_array_equal(apple.images[0], data.images[1])
    assert emoji.on_backgrounds("style", rows).target_names == ["noto", "openmoji"]
    for wrong in ({"target": "colour"}, {"rows": [5513]}, {"random_state": -1}, {"n_views": 0}):
        with pytest.raises(ValueError, match=f"{next(iter(wrong))} must be"):
            emoji.on_backgrounds(**wrong)


def test_views():
    emoji = load()
    rows = np.array([where("red apple", "noto"), where("tomato", "noto")])
    data, plain = emoji.on_backgrounds(rows=rows, n_views=4), emoji.on_backgrounds(rows=rows)
    assert_array_equal(data.images[::4], plain.images)  # the first is the drawing itself
    assert data.frames["drawing"].tolist() == [rows[0]] * 4 + [rows[1]] * 4
    assert data.frames["view"].tolist() == [0, 1, 2, 3] * 2 and data.y.tolist() == [0] * 4 + [1] * 4
    assert len(np.unique(data.images.reshape(8, -1), axis=0)) == 8
    alone = emoji.on_backgrounds(rows=rows[1:], n_views=2)  # the same whatever else is taken
    assert_array_equal(alone.images, data.images[4:6])
    middle = np.zeros((64, 64, 4), np.uint8)
    middle[20:30, 30:34] = 200
    turned = changed_picture(middle, 90)
    assert_array_equal(turned[..., 3], np.rot90(middle[..., 3]))
    moved = changed_picture(middle, shift=(0.25, -0.125), light=0.5)
    assert_array_equal(moved[..., 3], np.roll(middle[..., 3], (-8, 16), axis=(0, 1)))
    assert moved[..., :3].max() == 100 and changed_picture(middle, size=0.5)[..., 3].astype(bool).sum() < 20

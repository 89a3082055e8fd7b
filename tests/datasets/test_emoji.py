"""Emoji: what is stored, what is left out, backgrounds, other sizes, and how build.py makes the files."""

import functools
import json
import os
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from cuelearn.datasets import EMOJI_STYLES, DataFileError, image_cues, load_emoji
from cuelearn.datasets.base import data_module
from cuelearn.datasets.emoji import changed_picture, mildly_changed

DATA = Path(__file__).parents[2] / "data"
REGISTRY = json.loads((DATA / "datasets.json").read_text(encoding="utf-8"))
SHARE_ALIKE = ("emojione-v1", "openmoji")
build = data_module("build")


@functools.cache
def load():
    """All of it, once for all tests that only read."""
    return load_emoji()


@functools.cache
def edges():
    """Edge maps of all pictures."""
    return build.edge_maps(load().pictures)


def where(name, style):
    """The row of a thing's drawing in a style."""
    emoji = load()
    (row,) = np.flatnonzero((emoji.names[emoji.thing] == name) & (emoji.style == style))
    return row


@pytest.fixture
def copied(tmp_path, monkeypatch):
    """A data directory of its own."""
    for file in ("datasets.json", "emoji.npz", "emoji-sharealike.npz", "build.py"):
        shutil.copy(DATA / file, tmp_path / file)
    monkeypatch.setenv("CUELEARN_BUNDLED", str(tmp_path))
    return tmp_path


def test_shapes_and_counts():
    emoji = load()
    assert emoji.pictures.shape == (5513, 64, 64, 4) and emoji.pictures.dtype == np.uint8
    assert len(emoji.names) == len(set(emoji.names)) == 861
    counts = {style: int((emoji.style == style).sum()) for style in EMOJI_STYLES}
    assert list(counts.values()) == [860, 627, 366, 631, 816, 837, 520, 856]
    drawings = np.bincount(emoji.thing)
    assert len(drawings) == 861 and drawings.min() == 2 and (drawings == 8).sum() == 342
    assert (emoji.pictures[emoji.pictures[..., 3] == 0] == 0).all()
    assert (emoji.pictures[..., 3].max(axis=(1, 2)) > 100).all()  # something is drawn
    assert emoji.keywords.shape == (861, len(emoji.keyword_names)) and emoji.keywords.any(axis=1).all()
    assert "5513 pictures of 861 things" in repr(emoji)


def test_what_is_known_of_an_apple():
    emoji = load()
    apple, green = (int(np.flatnonzero(emoji.names == name)[0]) for name in ("red apple", "green apple"))
    assert (emoji.group[apple], emoji.subgroup[apple]) == ("food-drink", "food-fruit")
    assert emoji.family[green] == emoji.family[apple] == apple
    assert {"apple", "fruit", "red"} <= set(emoji.keyword_names[emoji.keywords[apple] == 1])
    red, green, blue, alpha = emoji.pictures[where("red apple", "twemoji"), 40, 32].astype(int)
    assert alpha == 255 and red > 2 * max(green, blue)
    assert set(emoji.group) == {"animals-nature", "food-drink", "travel-places", "activities", "objects"}


def test_no_drawing_is_there_twice():
    assert build.new_drawings(edges(), load().thing).all()


def test_families_hold_what_is_drawn_alike():
    emoji = load()
    found = build.families(edges(), emoji.style, emoji.thing, emoji.subgroup)
    assert_array_equal(emoji.family[found], emoji.family)  # what was left out may have joined more
    assert_array_equal(emoji.subgroup[emoji.family], emoji.subgroup)
    assert (emoji.family <= np.arange(861)).all() and len(set(emoji.family)) == 729
    assert np.bincount(emoji.family)[list(emoji.names).index("alarm clock")] == 25


def test_a_moved_shrunk_recoloured_drawing_is_the_same():
    rows = [where(name, "noto") for name in ("red apple", "dog", "guitar", "bicycle")]
    pictures = load().pictures[rows]
    changed = np.zeros_like(pictures)
    changed[:, 20:52, 3:35] = pictures[:, ::2, ::2][..., [2, 0, 1, 3]]
    alike = build.edge_maps(changed) @ build.edge_maps(pictures).T
    assert alike.diagonal().min() > 0.5 > 2 * (alike - np.diag(alike.diagonal())).max()
    maps = np.repeat(build.edge_maps(pictures), 2, axis=0)
    assert_array_equal(build.new_drawings(maps, np.repeat([0, 1, 2, 3], 2)), [True, False] * 4)
    assert build.new_drawings(maps, np.arange(8)).all()  # of different things both stay


def test_styles_are_taken_as_named():
    emoji = load_emoji(["openmoji", "noto"])
    assert list(dict.fromkeys(emoji.style)) == ["noto", "openmoji"]
    assert_array_equal(emoji.pictures, load().pictures[np.isin(load().style, ["noto", "openmoji"])])
    assert set(load_emoji("fxemoji").style) == {"fxemoji"}
    for wrong in ("apple", ["noto", "apple"], []):
        with pytest.raises(ValueError, match="styles must be some of"):
            load_emoji(wrong)


def test_share_alike_may_be_left_out(copied):
    (copied / "emoji-sharealike.npz").unlink()
    emoji = load_emoji()
    assert set(emoji.style) == set(EMOJI_STYLES) - {*SHARE_ALIKE} and "SA" not in emoji.provenance.licence
    assert_array_equal(emoji.pictures, load().pictures[: len(emoji.thing)])
    assert "CC BY-SA 4.0" in load().provenance.licence
    with pytest.raises(DataFileError, match=r"emoji-sharealike\.npz is missing .*build\.py emoji-sharealike"):
        load_emoji(["openmoji"])


@pytest.mark.parametrize("file", ["emoji", "emoji-sharealike"])
def test_damage_is_refused(copied, file):
    path = copied / f"{file}.npz"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(DataFileError, match=rf"{file}\.npz is damaged.*python data/build\.py {file}"):
        load_emoji()


def test_every_style_is_credited():
    readme = (DATA / "README.md").read_text(encoding="utf-8")
    stored = [style for name in ("emoji", "emoji-sharealike") for style in REGISTRY[name]["load"]["styles"]]
    assert tuple(stored) == EMOJI_STYLES
    for style in EMOJI_STYLES:
        (line,) = [line for line in readme.splitlines() if line.startswith((f"| {style} |", f"| {style} ("))]
        assert "https://" in line and ("CC BY-SA 4.0" in line) == (style in SHARE_ALIKE)
    sizes = [(DATA / REGISTRY[name]["file"]).stat().st_size for name in ("emoji", "emoji-sharealike")]
    assert sum(sizes) < 10e6


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
    assert (emoji.on_backgrounds(rows=rows, random_state=1).images[:, 0, 0] != data.images[:, 0, 0]).any()


def test_backgrounds_are_spread_over_all_colours_and_say_nothing_of_the_class():
    emoji = load()
    rows = emoji.style == "openmoji"  # which has a margin
    colours = emoji.on_backgrounds("group", rows=rows).images[:, 0, 0].astype(float)
    assert np.abs(colours.mean(axis=0) - 127.5).max() < 10 and np.abs(colours.std(axis=0) - 74).max() < 5
    data = emoji.on_backgrounds("group", rows=rows)
    means = [colours[data.y == one].mean(axis=0) for one in range(5)]
    assert np.abs(np.array(means) - 127.5).max() < 25


@pytest.mark.parametrize(
    "target, n, first",
    [
        ("group", 5, "activities"),
        ("subgroup", 49, "animal-amphibian"),
        ("family", 728, "Christmas tree"),
        ("style", 1, "noto"),
    ],
)
def test_targets(target, n, first):
    emoji = load()
    rows = np.flatnonzero(emoji.style == "noto")
    data = emoji.on_backgrounds(target, rows)
    assert data.y.shape == (860,) and data.y.dtype == np.int64 and data.y.max() == n - 1
    assert len(data.target_names) == n and data.target_names[0] == first


def test_keywords_as_labels():
    emoji = load()
    data = emoji.on_backgrounds("keywords", [where("red apple", "noto"), where("dog", "noto")])
    assert data.y.shape == (2, 143) and data.y.dtype == np.int8 and "fruit" in data.target_names
    assert data.y[:, data.target_names.index("fruit")].tolist() == [1, 0]
    cues = image_cues(data, ["colour", "shape"])
    assert cues.y.shape == (2, 143) and list(cues.cues) == ["colour", "shape"]


def test_views():
    emoji = load()
    rows = np.array([where("red apple", "noto"), where("tomato", "noto")])
    data, plain = emoji.on_backgrounds(rows=rows, n_views=4), emoji.on_backgrounds(rows=rows)
    assert_array_equal(data.images[::4], plain.images)  # the first is the drawing itself
    assert data.frames["drawing"].tolist() == [rows[0]] * 4 + [rows[1]] * 4
    assert data.frames["view"].tolist() == [0, 1, 2, 3] * 2 and data.y.tolist() == [0] * 4 + [1] * 4
    sizes = data.masks.sum(axis=(1, 2)) / data.masks[::4].sum(axis=(1, 2)).repeat(4)
    assert (sizes > 0.5).all() and (sizes < 1.02).all() and (sizes[1:4] < 0.999).all()
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


def test_one_thing_of_each_family():
    emoji, things = load(), np.arange(861)[::-1]
    counts, kept = emoji.n_drawings(), emoji.unlike(things)
    assert counts.sum() == len(emoji.thing) and counts.size == 861
    assert_array_equal(np.unique(emoji.family), np.sort(emoji.family[kept]))
    for thing in kept:
        assert counts[thing] == counts[emoji.family == emoji.family[thing]].max()
    assert len(emoji.unlike(np.flatnonzero(emoji.family == emoji.family[kept[0]]))) == 1


def test_a_mild_change_about_a_turn():
    picture = load().pictures[where("red apple", "noto")]
    turn, dx, dy, light = np.random.default_rng(3).uniform(-1, 1, 4) * (15, 0.06, 0.06, 0.25)
    rng = np.random.default_rng(3)
    expected = mildly_changed(picture, rng, 90.0)
    size = np.random.default_rng(3).uniform(size=5)[4] * 0.25 + 0.75
    assert_array_equal(expected, changed_picture(picture, 90 + turn, size, (dx, dy), 1 + light))


def test_wrong_arguments_of_backgrounds():
    for wrong in (
        {"target": "colour"},
        {"rows": [5513]},
        {"rows": [True]},
        {"random_state": -1},
        {"n_views": 0},
    ):
        with pytest.raises(ValueError, match=f"{next(iter(wrong))} must be"):
            load().on_backgrounds(**wrong)


# ------------------------------------------------------------------------------------- drawing and making


def fake_draw(content, names, size=64):
    """Stand in for `draw_icons`: a grey picture of the seed that the style gives the thing."""
    seeds = json.loads(content)
    found = [k for k, name in enumerate(names) if name in seeds]
    pictures = np.full((len(found), size, size, 4), 255, dtype=np.uint8)
    for picture, k in zip(pictures, found, strict=True):
        cells = np.random.default_rng(seeds[names[k]]).integers(0, 256, (32, 32), dtype=np.uint8)
        picture[..., :3] = np.kron(cells, np.ones((size // 32, size // 32), np.uint8))[..., None]
    return np.array(found, dtype=np.uint16), pictures


def test_making_leaves_out_what_is_drawn_twice(monkeypatch):
    monkeypatch.setattr(build, "draw_icons", fake_draw)
    told = {"tags": ["x"], "subgroup": 9}
    listed = [
        {"label": "b", "group": 4, "order": 2, "tags": ["x", "y"], "subgroup": 9},
        {"label": "a", "group": 3, "order": 1, **told},
        {"label": "c", "group": 7, "order": 3, **told},
        {"label": "undrawn", "group": 7, "order": 4, **told},
        {"label": "flag", "group": 9, "order": 0, **told},
    ]
    groups = {"groups": {"3": "animals", "4": "food", "7": "things"}, "subgroups": {"9": "all"}}
    members = {
        "one/icons.json": {"a": 1, "b": 2, "flag": 9},
        "two/icons.json": {"a": 1, "b": 3, "c": 3},  # draws a as `one` does, and b like c
        "free/icons.json": {"b": 3, "c": 4},  # draws b as `two` does
        "emojibase-data/data.json": listed,
        "emojibase-data/groups.json": groups,
    }
    members = {name: json.dumps(content).encode() for name, content in members.items()}
    main = build.make_emoji(members, {}, {"load": {"styles": ["one", "two"]}})
    assert main["names"].tolist() == ["a", "b", "c"]
    assert main["group"].tolist() == ["animals", "food", "things"]
    drawn = np.column_stack([main["style"], main["thing"]])
    assert_array_equal(drawn, [[0, 0], [0, 1], [1, 1], [1, 2]])
    assert_array_equal(main["family"], [0, 1, 1])
    assert_array_equal(main["keywords"], [[1, 0], [1, 1], [1, 0]])
    members = {"free/icons.json": members["free/icons.json"], "none/icons.json": b"{}"}
    more = build.make_emoji_sharealike(members, {"emoji.npz": main}, {"load": {"styles": ["free", "none"]}})
    assert (more["style"].tolist(), more["thing"].tolist(), len(more["pictures"])) == ([0], [2], 1)


def test_drawing_an_icon():
    pytest.importorskip("resvg_py")
    icon = {"body": '<path fill="#f00" d="M0 0h8v16H0z"/><text y="9">x</text>'}
    icons = {"width": 16, "height": 16, "icons": {"half-a-square": icon}}
    found, pictures = build.draw_icons(json.dumps(icons), ["circle", "Half a square!"], 32)
    assert found.tolist() == [1]
    expected = np.zeros((1, 32, 32, 4))
    expected[:, :, :16] = 255, 0, 0, 255
    assert_array_equal(pictures, expected)  # text is not drawn: no fonts


def test_other_sizes_say_what_they_need(tmp_path, monkeypatch):
    monkeypatch.delenv("CUELEARN_DATA", raising=False)
    with pytest.raises(DataFileError, match="npm pack NAME@VERSION"):
        load_emoji(size=128)
    with pytest.raises(DataFileError, match=r"no package archive iconify-json-noto-1\.2\.9\.tgz"):
        load_emoji(size=128, packages=tmp_path)
    with pytest.raises(ValueError, match="size must be at least 16"):
        load_emoji(size=8)
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    with pytest.raises(build.BuildError, match=r"pip install resvg-py==0\.5\.0"):
        build.draw_icons("{}", [])


def test_other_sizes_are_the_same_drawings():
    """Needs resvg-py and, in CUELEARN_DATA, the archive of one style."""
    pytest.importorskip("resvg_py")
    if not list(Path(os.environ.get("CUELEARN_DATA", "nowhere")).glob("iconify-json-fxemoji-*.tgz")):
        pytest.skip("the package is not available")
    small, large = load_emoji("fxemoji"), load_emoji("fxemoji", size=128)
    assert large.pictures.shape == (366, 128, 128, 4)
    assert_array_equal(large.thing, small.thing)
    halved = large.pictures[..., 3].reshape(366, 64, 2, 64, 2).mean(axis=(2, 4))
    assert np.abs(halved - small.pictures[..., 3]).mean() < 2

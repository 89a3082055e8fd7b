"""The simulated objects: form, views, masks, determinism, and the renderer against a plain NumPy twin."""

import re

import numba
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from cuelearn.datasets import objects
from cuelearn.datasets.objects import (
    OBJECT_CATEGORIES,
    build_object,
    hemisphere_views,
    look_at,
    make_objects,
    render_object,
)


@pytest.fixture(scope="module")
def data():
    return make_objects(n_objects=3, size=64)


def views_of(data, category, number):
    return np.flatnonzero((data.y == OBJECT_CATEGORIES.index(category)) & (data.frames["object"] == number))


def test_form(data):
    n = 8 * 3 * 41
    assert data.images.shape == (n, 64, 64, 3) and data.images.dtype == np.uint8
    assert data.masks.shape == (n, 64, 64) and data.masks.dtype == np.bool_
    assert data.y.dtype == np.int64 and data.y.tolist() == [c for c in range(8) for _ in range(3 * 41)]
    assert data.target_names == ["apple", "car", "cow", "cup", "dog", "horse", "pear", "tomato"]
    assert set(data.frames) == {"object", "elevation", "azimuth", "name"}
    assert all(len(column) == n for column in data.frames.values())
    assert data.frames["object"][: 3 * 41].tolist() == [k for k in (1, 2, 3) for _ in range(41)]
    assert data.laser is None and data.laser_angles is None
    assert data.provenance.tier == "generated" and data.provenance.sha256 is None
    assert data.provenance.source == "make_objects(n_objects=3, size=64, random_state=0)"
    assert "imulated" in data.description


def test_names_say_category_object_and_angles_as_eth80_does(data):
    names = data.frames["name"]
    assert len(set(names)) == len(names)
    for at in (0, 5, 500, 983):
        category, number, zenith, azimuth = re.fullmatch(r"([a-z]+)(\d+)-(\d{3})-(\d{3})", names[at]).groups()
        assert category == data.target_names[data.y[at]] and int(number) == data.frames["object"][at]
        assert abs(90 - data.frames["elevation"][at] - int(zenith)) <= 0.5
        assert abs(data.frames["azimuth"][at] - int(azimuth)) <= 0.5
    # Names that occur in the published data set.
    published = "apple1-066-153 apple1-035-045 cow3-068-180 car1-066-153 tomato1-066-153"
    assert set(published.split()) <= set(names)


def test_41_views_spread_over_the_upper_hemisphere():
    views = hemisphere_views()
    assert len(views.elevation) == len(views.azimuth) == len(set(views.names)) == 41
    assert views.elevation.min() == 0 and views.elevation.max() == 90
    assert views.azimuth.min() >= 0 and views.azimuth.max() < 360
    zenith, count = np.unique(np.round(90 - views.elevation, 1), return_counts=True)
    assert dict(zip(zenith, count)) == {0.0: 1, 22.5: 4, 35.3: 4, 45.0: 4, 65.9: 8, 67.5: 4, 90.0: 16}
    el, az = np.radians(views.elevation), np.radians(views.azimuth)
    towards = np.stack([np.cos(el) * np.cos(az), np.cos(el) * np.sin(az), np.sin(el)], axis=1)
    angles = np.degrees(np.arccos(np.clip(towards @ towards.T, -1, 1)))
    nearest = np.sort(angles + 360 * np.eye(41), axis=1)[:, 0]
    assert nearest.min() > 20 and nearest.max() < 31
    assert views.names == sorted(views.names)


def test_same_seed_same_bits_on_any_number_of_threads():
    if numba.config.NUMBA_NUM_THREADS < 2:
        pytest.skip("one thread only")
    before = numba.get_num_threads()
    made = []
    try:
        for threads in (1, 2, 2):
            numba.set_num_threads(threads)
            made.append(make_objects(n_objects=1, size=48, random_state=7))
    finally:
        numba.set_num_threads(before)
    for other in made[1:]:
        assert_array_equal(made[0].images, other.images)
        assert_array_equal(made[0].masks, other.masks)


def test_an_object_does_not_depend_on_how_many_there_are(data):
    fewer = make_objects(n_objects=1, size=64)
    first = data.frames["object"] == 1
    assert_array_equal(fewer.images, data.images[first])
    assert_array_equal(fewer.masks, data.masks[first])
    assert_array_equal(fewer.frames["name"], data.frames["name"][first])


def test_the_stream_of_random_numbers_is_part_of_the_promise():
    # Fixed values guard the draws across versions; a tolerance leaves room for another machine's mathematics
    # library.
    toy = build_object("cow", 1)
    assert toy.shape.kind.shape == (36,)
    assert toy.shape.centre[0] == pytest.approx([-0.143723732322, 0.0, 0.133950676188], abs=1e-9)
    assert toy.materials[0, :3] == pytest.approx([0.524908126212, 0.337556494878, 0.161424484963], abs=1e-9)


def test_objects_fill_the_frame_and_are_not_cut(data):
    masks = data.masks
    rows, columns = masks.any(axis=2), masks.any(axis=1)
    assert rows.any(axis=1).all()
    margins = np.stack([side.argmax(axis=1) for side in (rows, rows[:, ::-1], columns, columns[:, ::-1])])
    assert margins.min() >= 1  # nothing touches the border
    extent = 64 - np.minimum(margins[0] + margins[1], margins[2] + margins[3])
    assert extent.min() >= 57
    fill = masks.mean(axis=(1, 2))
    assert 0.05 < fill.min() and fill.max() < 0.85


def test_background_is_blue_and_only_there(data):
    background = data.images[~data.masks].astype(float)
    blue = np.array([25.5, 56.1, 147.9])
    assert np.abs(background - blue).max() < 20  # fall-off to the bottom, 6 %, and the sensor's noise
    assert np.abs(background.mean(axis=0) - blue * 0.97).max() < 2
    # A blue cup or car may come near the blue of the cloth, a fruit or an animal does not.
    lively = np.isin(data.y, [OBJECT_CATEGORIES.index(c) for c in ("apple", "tomato", "pear", "horse")])
    object_pixels = data.images[lively][data.masks[lively]].astype(float)
    assert (np.abs(object_pixels - blue).max(axis=1) < 20).mean() < 0.01


def test_borrowed_colours_leave_the_shape_alone():
    own, mask = render_object("horse", 2, size=48)
    dressed, same_mask = render_object("horse", 2, size=48, colours_of=("car", 7))
    assert_array_equal(mask, same_mask)
    assert_array_equal(own[~mask], dressed[~mask])
    assert np.abs(own[mask].mean(axis=0) - dressed[mask].mean(axis=0)).max() > 15
    again, _ = render_object("horse", 2, size=48, colours_of=("horse", 2))
    assert_array_equal(own, again)


def test_renders_of_one_object_agree_with_the_data_set(data):
    """Up to jitter of the camera and noise of the sensor, `render_object` shows what `make_objects` does."""
    at = views_of(data, "cup", 2)[5]
    image, mask = render_object("cup", 2, data.frames["elevation"][at], data.frames["azimuth"][at], size=64)
    assert (mask != data.masks[at]).mean() < 0.06
    both = mask & data.masks[at]
    assert np.median(np.abs(image[both].astype(int) - data.images[at][both])) < 8


def plain_part_distance(kind, size, p):
    """Signed distance of one part from points (n, 3) in its own frame, straight from the definitions."""
    x, y, z = p.T
    flat = np.hypot(x, y)
    if kind == objects.ELLIPSOID:
        k0, k1 = np.linalg.norm(p / size[:3], axis=1), np.linalg.norm(p / size[:3] ** 2, axis=1)
        return k0 * (k0 - 1) / k1
    if kind == objects.LIMB:  # the least of |p - c(t)| - r(t) over the balls strung from one end to the other
        length, thick, thin = size[:3]
        t = np.linspace(0, 1, 301)[:, None]
        return (np.hypot(flat, z - t * length) - (thick + t * (thin - thick))).min(axis=0)
    if kind == objects.BOX:
        half_x, half_y, half_z, rounding, lean_x, lean_y = size
        q_x = (np.abs(x) - half_x + lean_x * z) / np.hypot(1, lean_x)
        q_y = (np.abs(y) - half_y + lean_y * z) / np.hypot(1, lean_y)
        q = np.stack([q_x, q_y, np.abs(z) - half_z])
        return np.linalg.norm(np.maximum(q, 0), axis=0) + np.minimum(q.max(axis=0), 0) - rounding
    if kind == objects.RING:
        radius, tube, squash, lobes = size[:4]
        radius = radius + lobes * np.cos(5 * np.arctan2(y, x)) * np.minimum(1, flat / tube)
        a, b = flat - radius, z
        k0, k1 = np.hypot(a / tube, b / (tube * squash)), np.hypot(a / tube**2, b / (tube * squash) ** 2)
        return k0 * (k0 - 1) / k1
    radius, half, rounding, lean = size[:4]
    q = np.stack([(flat - radius + lean * z) / np.hypot(1, lean), np.abs(z) - half])
    return np.linalg.norm(np.maximum(q, 0), axis=0) + np.minimum(q.max(axis=0), 0) - rounding


def plain_distance(shape, p):
    """Signed distance of a whole object from points (n, 3), part by part."""
    total = np.full(len(p), 1e9)
    for kind, op, blend, turn, centre, size in zip(
        shape.kind, shape.op, shape.blend, shape.turn, shape.centre, shape.size
    ):
        d = plain_part_distance(kind, size, (p - centre) @ turn.T)
        if op == objects.CUT:
            swell = np.maximum(blend - np.abs(total + d), 0) ** 2 / (4 * blend) if blend else 0
            total = np.maximum(total, -d) + swell
        else:
            swell = np.maximum(blend - np.abs(total - d), 0) ** 2 / (4 * blend) if blend else 0
            total = np.minimum(total, d) - swell
    return total


def compiled_distance(shape, p):
    table = objects._table(shape, np.eye(3))
    total, part = np.empty(len(p)), np.empty(len(p))
    x, y, z = (np.ascontiguousarray(column) for column in p.T)
    objects._distances(table, len(table), x, y, z, len(p), part, total)
    return total


def plain_trace(shape, origin, direction, reach=1.5):
    """Depth of the surface along each ray, in short plain steps (nan where it misses), and how near the ray
    comes to it.
    """
    at = np.full(len(origin), -reach)
    nearest = np.full(len(origin), np.inf)
    free = np.ones(len(origin), bool)
    for _ in range(400):
        d = plain_distance(shape, origin[free] + at[free, None] * direction)
        nearest[free] = np.minimum(nearest[free], d)
        at[free] += np.maximum(d * 0.5, 2e-4)
        free[free] = d > 0
        free &= at < reach
    return np.where(at < reach, at, np.nan), nearest


@pytest.mark.parametrize("category", OBJECT_CATEGORIES)
def test_distance_equals_its_plain_twin(category):
    rng = np.random.default_rng(5)
    points = rng.uniform(-1.1, 1.1, size=(300, 3))
    for number in (1, 8):
        shape = build_object(category, number).shape
        # Limbs are sampled in the twin, hence the tolerance.
        assert_allclose(compiled_distance(shape, points), plain_distance(shape, points), atol=2e-4)


@pytest.mark.parametrize("category", ["apple", "cow", "cup", "car"])
def test_picture_equals_a_plain_tracers(category):
    size, elevation, azimuth = 40, 22.5, 45.0
    toy = build_object(category, 2)
    _, mask = render_object(category, 2, elevation, azimuth, size)
    camera, low, high = look_at(toy.shape, elevation, azimuth)
    rng = np.random.default_rng(0)
    n = 150
    picked = rng.choice(size * size, n, replace=False)
    rows, columns = picked // size, picked % size
    a = camera.frame[0] + camera.frame[2] * ((columns + 0.5) * 2 / size - 1)
    b = camera.frame[1] - camera.frame[2] * ((rows + 0.5) * 2 / size - 1)
    origin = a[:, None] * camera.basis[:, 0] + b[:, None] * camera.basis[:, 1]
    plain, nearest = plain_trace(toy.shape, origin, camera.basis[:, 2])
    hit, seen = ~np.isnan(plain), mask[rows, columns]
    assert 20 < hit.sum() < n
    # The tracer calls 0.003 from the surface a hit, so rays that graze the silhouette may count as hits, and
    # no others.
    assert (seen | ~hit).all() and (nearest[seen] < 0.004).all()

    table = objects._table(toy.shape, camera.basis)
    depth, work = np.empty(n), np.empty((6, n))
    objects._trace(table, len(table), a, b, n, low[:, 2].min(), high[:, 2].max(), depth, work)
    both = hit & (depth > -1e8)
    off = np.abs(depth - plain)[both]
    assert np.median(off) < 2e-3 and np.quantile(off, 0.95) < 0.02


@pytest.mark.parametrize("category", ["cow", "pear", "cup"])
def test_tiles_do_not_show(category):
    """A tile looks only at the parts near it; all parts give the same picture up to fine shading."""
    toy = build_object(category, 3)
    camera, low, high = look_at(toy.shape, 30.0, 60.0)
    pictures = []
    for grow in (0.0, 9.0):
        image, mask = np.empty((64, 64, 3), np.uint8), np.empty((64, 64), np.bool_)
        objects._render_view(toy, camera, low - grow, high + grow, 0, 0.0, image, mask)
        pictures.append((image.astype(int), mask))
    (near, near_mask), (full, full_mask) = pictures
    assert (near_mask != full_mask).mean() < 1e-3
    both = near_mask & full_mask
    assert np.quantile(np.abs(near - full)[both], 0.999) <= 6


@pytest.mark.parametrize(
    "arguments, error, words",
    [
        ({"n_objects": 0}, ValueError, "n_objects must be at least 1, got 0"),
        ({"n_objects": 2.0}, TypeError, "n_objects must be an integer, got float"),
        ({"n_objects": True}, TypeError, "n_objects must be an integer, got bool"),
        ({"size": 15}, ValueError, "size must be at least 16, got 15"),
        ({"size": "64"}, TypeError, "size must be an integer, got str"),
        ({"random_state": -1}, ValueError, "random_state must be at least 0, got -1"),
        ({"random_state": None}, TypeError, "random_state must be an integer, got NoneType"),
    ],
)
def test_bad_arguments_of_make_objects(arguments, error, words):
    with pytest.raises(error, match=re.escape(words)):
        make_objects(**arguments)


@pytest.mark.parametrize(
    "arguments, error, words",
    [
        ({"category": "banana"}, ValueError, "category must be one of apple, car, cow"),
        ({"object": 0}, ValueError, "object must be at least 1"),
        ({"object": 1.5}, TypeError, "object must be an integer"),
        ({"size": 8}, ValueError, "size must be at least 16"),
        ({"elevation": 91}, ValueError, "elevation must be from -90.0 to 90.0 degrees, got 91"),
        ({"azimuth": float("nan")}, ValueError, "azimuth must be from"),
        ({"azimuth": "north"}, TypeError, "azimuth must be a number, got str"),
        ({"colours_of": "tomato"}, ValueError, "colours_of must be a pair"),
        ({"colours_of": ("banana", 1)}, ValueError, "the category in colours_of must be one of"),
        ({"colours_of": ("tomato", 0)}, ValueError, "the object in colours_of must be at least 1"),
    ],
)
def test_bad_arguments_of_render_object(arguments, error, words):
    with pytest.raises(error, match=re.escape(words)):
        render_object(**{"category": "apple", **arguments})


def test_small_and_odd_sizes():
    for size in (16, 17, 33):
        image, mask = render_object("dog", 4, size=size)
        assert image.shape == (size, size, 3) and 0.05 < mask.mean() < 0.9

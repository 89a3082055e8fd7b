"""The simulated robot: its form, its determinism, its floor, and camera and laser against plain ray
casters."""

import math

import numba
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from cuelearn.datasets import make_robot, robot_floor
from cuelearn.datasets.base import simulator
from cuelearn.datasets.robot import ROBOT_ROOMS

robot = simulator("robot")

N = 60
SMALL = {"height": 24, "width": 32}


@pytest.fixture(scope="module")
def data():
    return make_robot(frames_per_sequence=N, **SMALL)


@pytest.fixture(scope="module")
def floors():
    return {session: robot._furnish(0, session) for session in (1, 2)}


def poses(data, rows):
    return np.column_stack([data.frames[name][rows] for name in ("x", "y", "heading")])


def test_form(data):
    n = 12 * N
    assert data.images.shape == (n, 24, 32, 3) and data.images.dtype == np.uint8
    assert data.y.shape == (n,) and data.y.dtype == np.int64
    assert data.target_names == ["OO", "CR", "TO", "KT", "PA"] == list(ROBOT_ROOMS)
    assert data.laser.shape == (n, 181) and data.laser.dtype == np.float32
    assert data.laser.min() > 0 and data.laser.max() <= robot._LASER_RANGE
    assert_allclose(np.rad2deg(data.laser_angles), np.arange(-90, 91), atol=1e-12)
    assert set(data.frames) == set("sequence weather session repeat time x y heading name".split())
    assert all(len(values) == n for values in data.frames.values())
    assert data.masks is None and data.provenance.tier == "generated" and data.provenance.sha256 is None
    assert "imulated" in data.description and "random_state=0" in data.provenance.source
    assert len(set(data.frames["name"].tolist())) == n


def test_sequences_are_chronological(data):
    assert_array_equal(data.frames["sequence"], np.repeat(np.arange(12), N))
    of_each = [data.frames[name].reshape(12, N) for name in ("session", "weather", "repeat")]
    assert all(np.all(values == values[:, :1]) for values in of_each)
    expected = [(s, w, r) for s in (1, 2) for w in ("cloudy", "sunny", "night") for r in (1, 2)]
    assert list(zip(*(values[:, 0].tolist() for values in of_each))) == expected
    time = data.frames["time"].reshape(12, N)
    assert np.all(time[:, 0] == 0) and np.all(np.diff(time, axis=1) > 0)
    assert np.all((time[:, -1] > 150) & (time[:, -1] < 260))  # 900 frames at about 5 a second


def test_same_bits_for_a_seed_and_any_number_of_threads():
    def made(threads, **options):
        numba.set_num_threads(min(threads, numba.config.NUMBA_NUM_THREADS))
        return make_robot(frames_per_sequence=20, **SMALL, **options)

    one, two, other = made(1), made(2), made(2, random_state=1)
    for name in ("images", "laser", "y"):
        assert_array_equal(getattr(one, name), getattr(two, name))
    for name in ("x", "y", "heading", "time"):
        assert_array_equal(one.frames[name], two.frames[name])
        assert not np.array_equal(one.frames[name][1:], other.frames[name][1:])
    assert np.mean(one.images != other.images) > 0.5 and not np.array_equal(one.laser, other.laser)


def test_more_frames_sample_the_same_drive(data):
    half = make_robot(frames_per_sequence=N // 2, **SMALL)
    for name in ("x", "y", "heading", "time", "weather"):
        assert_array_equal(half.frames[name], data.frames[name][::2])


def distance_to_parts(x, y, scene):
    """Horizontal distance of points to each part, 0 inside; shape (n_parts, n_points)."""
    found = []
    for px, py, c, s, hx, hy, _, _, _, shape, *_ in scene:
        dx, dy = x - px, y - py
        if shape == 1:
            found.append(np.maximum(np.hypot(dx, dy) - hx, 0))
        else:
            across, forward = np.abs(c * dx + s * dy) - hx, np.abs(c * dy - s * dx) - hy
            found.append(np.hypot(np.maximum(across, 0), np.maximum(forward, 0)))
    return np.array(found)


@pytest.mark.parametrize("seed", range(4))
def test_drives_keep_clear_of_walls_and_furniture(seed):
    for session in (1, 2):
        scene = robot._furnish(seed, session).scene
        low = scene[scene[:, robot._Z0] < 1.5]
        for number in range(6 * session - 6, 6 * session):
            drive = robot._drive(np.random.default_rng([seed, robot._SEQUENCE, number]))
            assert distance_to_parts(drive.x[::5], drive.y[::5], low).min() > 0.2


def crossings(origin, direction, scene):
    """Ranges (enter, leave) along a ray in three dimensions, of every part: slabs and quadratics."""
    for px, py, c, s, hx, hy, _, z0, z1, shape, *_ in scene:
        dx, dy = origin[0] - px, origin[1] - py
        o = np.array([c * dx + s * dy, c * dy - s * dx, origin[2] - (z0 + z1) / 2])
        d = np.array([c * direction[0] + s * direction[1], c * direction[1] - s * direction[0], direction[2]])
        slabs = [(2, (z1 - z0) / 2)] if shape == 1 else [(0, hx), (1, hy), (2, (z1 - z0) / 2)]
        enter, leave = -np.inf, np.inf
        for axis, half in slabs:
            if d[axis] == 0:
                if abs(o[axis]) > half:
                    enter, leave = 1, 0
            else:
                ends = sorted(((-half - o[axis]) / d[axis], (half - o[axis]) / d[axis]))
                enter, leave = max(enter, ends[0]), min(leave, ends[1])
        if shape == 1:
            flat_o, flat_d = o[:2], d[:2]
            roots = np.roots([flat_d @ flat_d, 2 * flat_o @ flat_d, flat_o @ flat_o - hx**2])
            if np.iscomplexobj(roots):
                enter, leave = 1, 0
            else:
                enter, leave = max(enter, roots.min()), min(leave, roots.max())
        yield (enter, leave) if 0 <= enter < leave else (np.inf, np.inf)


@pytest.mark.parametrize("session", [1, 2])
def test_laser_agrees_with_a_plain_ray_caster(floors, data, session):
    scene = floors[session].scene
    rows = np.flatnonzero(data.frames["session"] == session)[7::83]
    for (x, y, heading), measured in zip(poses(data, rows), data.laser[rows]):
        ranges = np.empty(181)
        robot._scan(x, y, heading, data.laser_angles, robot._LASER_HEIGHT, robot._LASER_RANGE, scene, ranges)
        for beam in range(3, 181, 16):
            angle = heading + data.laser_angles[beam]
            ray = np.array([x, y, robot._LASER_HEIGHT]), np.array([math.cos(angle), math.sin(angle), 0.0])
            assert ranges[beam] == pytest.approx(min(enter for enter, _ in crossings(*ray, scene)), abs=1e-9)
        # What is delivered is that and the range noise.
        noise = measured - ranges
        assert np.abs(noise).max() < 6 * robot._LASER_NOISE and 0.5 < noise.std() / robot._LASER_NOISE < 1.5


def test_pixels_agree_with_a_plain_ray_caster(floors, data):
    scene = floors[1].scene
    rng = np.random.default_rng(0)
    n_parts = len(scene)
    met, faces = np.empty((2, n_parts), np.int64)
    near, far = np.empty((2, n_parts))
    kinds = set()
    rows = np.flatnonzero(data.frames["session"] == 1)[5::50]
    for x, y, heading in poses(data, rows):
        for _ in range(12):
            angle, rise = heading + rng.uniform(-0.6, 0.6), rng.uniform(-0.5, 0.6)
            towards = math.cos(angle), math.sin(angle)
            n = robot._along_ray(x, y, *towards, scene, robot._CEILING, met, near, far, faces)
            distance, row, face = robot._first_hit(1.0, rise, n, scene, robot._CEILING, met, near, far, faces)
            ray = np.array([x, y, 1.0]), np.array([math.cos(angle), math.sin(angle), rise])
            enter = np.array([enter for enter, _ in crossings(*ray, scene)])
            flat = -1.0 / rise if rise < 0 else (robot._CEILING - 1.0) / rise
            assert distance == pytest.approx(min(flat, enter.min()), abs=1e-9)
            assert row == (int(enter.argmin()) if enter.min() < flat else (-1 if rise < 0 else -2))
            kinds.add(face if row >= 0 else row)
    assert {-1, -2, 0, 1, 2, 3, 4} <= kinds  # floor, ceiling, all sides and tops were among them


def test_light_changes_the_images(floors):
    seen = {}
    pose = 7.6, -0.9, math.radians(-80)  # in the two-person office, towards its windows
    for weather in ("cloudy", "sunny", "night"):
        light = robot._lit(floors[1], 0, weather, 1)
        seen[weather] = np.empty((48, 64, 3), np.float32)
        robot._look(floors[1], light, pose, seen[weather])
        assert np.isfinite(seen[weather]).all() and seen[weather].min() >= 0
    mean = {weather: image.mean(axis=(0, 1)) for weather, image in seen.items()}
    assert mean["night"].sum() < mean["cloudy"].sum() < mean["sunny"].sum()
    assert mean["night"][0] / mean["night"][2] > 1.3 * mean["cloudy"][0] / mean["cloudy"][2]  # lamps are warm


def test_sunlight_falls_through_the_windows_and_furniture_shades_it(floors):
    floor = floors[1]
    light = robot._lit(floor, 0, "sunny", 1)
    x0, y0, x1, y1 = robot._ROOMS["TO"]
    x, y = np.meshgrid(np.linspace(x0, x1, 60), np.linspace(y0, y1, 60))

    def patches(scene):
        given = 0.0, 0.0, 0.0, 1.0, 2, light.windows, light.first, light.sun, scene
        return np.array([robot._sunlit(a, b, *given) for a, b in zip(x.flat, y.flat)])

    bare, furnished = patches(floor.scene[:0]), patches(floor.scene)
    assert 0 < (furnished > 0).sum() < (bare > 0).sum() < x.size / 2
    assert np.all(bare[furnished > 0] > 0)
    # Where it is sunny the way back along the sun's rays goes through a window.
    back = light.sun[:2] / light.sun[1] * (y0 - y.flat[bare > 0])[:, None]
    across, up = x.flat[bare > 0] + back[:, 0], back[:, 1] / light.sun[1] * light.sun[2]
    windows = light.windows[light.first[1, 2] : light.first[1, 3]]
    through = [
        (a0 <= across) & (across <= a1) & (z0 <= up) & (up <= z1) for _, _, a0, a1, z0, z1, *_ in windows
    ]
    assert np.any(through, axis=0).all()


def test_furniture_moves_between_the_sessions():
    before, after = robot_floor(session=1), robot_floor(session=2)
    for name in ("walls", "doorways", "rooms"):
        assert_array_equal(getattr(before, name), getattr(after, name))
    assert sorted(before.kinds) != sorted(after.kinds)
    pieces = [{tuple(r) for r in np.round(floor.furniture, 9)} for floor in (before, after)]
    same = pieces[0] & pieces[1]
    assert 0.3 * len(before.kinds) < len(same) < 0.9 * len(before.kinds)
    assert before.furniture.shape == (len(before.kinds), 4)
    assert np.all(before.furniture[:, :2] < before.furniture[:, 2:])
    # Every piece lies inside a room or on its walls.
    for x0, y0, x1, y1 in np.concatenate([before.furniture, after.furniture]):
        assert any(
            a - 0.21 <= x0 and b - 0.21 <= y0 and x1 <= c + 0.21 and y1 <= d + 0.21
            for a, b, c, d in before.rooms
        )


@pytest.mark.parametrize(
    "arguments, error, words",
    [
        ({"frames_per_sequence": 4}, ValueError, "frames_per_sequence must be at least 5, got 4"),
        ({"frames_per_sequence": 10.0}, TypeError, "frames_per_sequence must be an integer, got float"),
        ({"height": 8}, ValueError, "height must be at least 24, got 8"),
        ({"width": 31}, ValueError, "width must be at least 32, got 31"),
        ({"random_state": None}, TypeError, "random_state must be an integer, got NoneType"),
    ],
)
def test_bad_input(arguments, error, words):
    with pytest.raises(error, match=words):
        make_robot(**arguments)


def test_floor_of_an_unknown_session():
    with pytest.raises(ValueError, match="session must be 1 or 2, got 3"):
        robot_floor(session=3)

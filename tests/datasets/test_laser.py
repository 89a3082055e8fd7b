"""Features of laser scans."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from companion.folders import LASER_FEATURE_NAMES, laser_features
from companion.pictures import CAMERA_CUES, ROBOT_CUES, with_laser
from cuelearn.datasets import ImageData, image_cues

BEAMS = np.deg2rad(np.arange(-90, 91))
ROUND = np.deg2rad(np.arange(-180, 180))


def features_of(ranges, angles):
    return dict(zip(LASER_FEATURE_NAMES, laser_features(np.atleast_2d(ranges), angles)[0]))


def test_laser_in_a_round_room():
    found = features_of(np.full(360, 3.0), ROUND)
    assert found["ellipse major axis"] == pytest.approx(3, rel=1e-3) == found["ellipse minor axis"]
    assert found["centroid distance mean"] == pytest.approx(3) and found["beam length mean"] == 3
    assert found["eccentricity"] < 1e-9 and found["centroid distance std"] < 1e-9
    assert found["gaps above 0.3 m"] == found["distance of the two nearest minima"] == 0


def rectangle_scan(width, height, x=0.0, y=0.0, n=240):
    """Scan from (x, y) in a rectangle about the origin, a beam into each corner among others."""
    corners = [math.atan2(s * height / 2 - y, r * width / 2 - x) for r in (-1, 1) for s in (-1, 1)]
    angles = np.unique(np.concatenate([np.linspace(-math.pi, math.pi, n, endpoint=False), corners]))
    cos, sin = np.cos(angles), np.sin(angles)
    with np.errstate(divide="ignore"):
        along_x = np.where(cos > 0, (width / 2 - x) / cos, (-width / 2 - x) / cos)
        along_y = np.where(sin > 0, (height / 2 - y) / sin, (-height / 2 - y) / sin)
    return np.minimum(np.abs(along_x), np.abs(along_y)), angles


@pytest.mark.parametrize("place", [(0.0, 0.0), (1.2, -0.4)])
def test_laser_in_a_rectangular_room(place):
    found = features_of(*rectangle_scan(6.0, 4.0, *place))
    assert found["area"] == pytest.approx(24) and found["perimeter"] == pytest.approx(20)
    assert found["area / perimeter"] == pytest.approx(1.2)
    assert found["circularity"] == pytest.approx(400 / 24)
    assert found["normalised circularity"] == pytest.approx(4 * math.pi * 24 / 400)
    second = (6**3 * 4 / 12, 4**3 * 6 / 12)
    assert found["compactness"] == pytest.approx(24**2 / (2 * math.pi * sum(second)))
    assert found["eccentricity"] == pytest.approx((second[0] - second[1]) / sum(second))
    assert found["distance of the two nearest minima"] > 0


def test_fourier_coefficients_equal_a_sum_over_many_points_of_the_boundary():
    rng = np.random.default_rng(2)
    ranges = rng.uniform(1, 4, 30)
    angles = np.linspace(-math.pi / 2, math.pi / 2, 30)
    z = ranges * np.exp(1j * angles)
    corners = np.append(z, z[0])
    travelled = np.concatenate([[0], np.cumsum(np.abs(np.diff(corners)))])
    t = (np.arange(200_000) + 0.5) / 200_000
    walk = np.interp(t * travelled[-1], travelled, corners)
    size = {k: abs(np.mean(walk * np.exp(-2j * math.pi * k * t))) for k in range(-8, 9)}
    found = features_of(ranges, angles)
    for k in (*range(-8, 0), *range(2, 9)):
        assert found[f"Fourier coefficient {k}"] == pytest.approx(size[k] / size[1], abs=1e-6)
    assert found["ellipse major axis"] == pytest.approx(size[1] + size[-1], abs=1e-6)
    ratio = abs(size[1] - size[-1]) / (size[1] + size[-1])
    assert found["ellipse axis ratio"] == pytest.approx(ratio, abs=1e-6)


def test_beam_features_equal_their_plain_twin():
    ranges = np.random.default_rng(3).uniform(0.5, 12, 181)
    found = features_of(ranges, BEAMS)
    differences = [abs(ranges[i + 1] - ranges[i]) for i in range(180)]
    assert found["beam difference mean"] == pytest.approx(np.mean(differences))
    cut = [min(r, 5.0) for r in ranges]
    steps = [abs(b - a) for a, b in zip(cut, cut[1:])]
    assert found["beam difference mean, cut at 5 m"] == pytest.approx(np.mean(steps))
    assert found["gaps above 2 m"] == sum(d > 2 for d in differences)
    minima = [i for i in range(181) if ranges[i] == min(ranges[max(i - 5, 0) : i + 6])]
    first, second = sorted(minima, key=lambda i: ranges[i])[:2]
    assert found["angle of the two nearest minima"] == pytest.approx(abs(BEAMS[first] - BEAMS[second]))
    z = ranges * np.exp(1j * BEAMS)
    assert found["distance of the two nearest minima"] == pytest.approx(abs(z[first] - z[second]))


@pytest.mark.parametrize(
    "ranges, angles, message",
    [
        (np.ones((2, 2)), np.linspace(-1, 1, 2), "at least 3 beams"),
        (np.ones((2, 5)), np.linspace(-1, 1, 6), "one entry per beam"),
        (np.full((2, 5), "1"), np.linspace(-1, 1, 5), "ranges must be numbers"),
        (np.ones((2, 5)), np.linspace(1, -1, 5), "angles must be finite and ascend"),
        (np.ones((2, 5)) * [[1], [np.nan]], np.linspace(-1, 1, 5), r"Frame 1 \(b\) has no usable laser scan"),
    ],
)
def test_bad_input(ranges, angles, message):
    with pytest.raises(ValueError, match=message):
        laser_features(ranges, angles, names=["a", "b"])


def test_a_robot_has_the_cues_of_its_camera_and_laser():
    rng = np.random.default_rng(5)
    frames = {"name": np.arange(12).astype(str), "laser": rng.uniform(1, 6, (12, 181)).astype(np.float32)}
    images = ImageData(rng.integers(0, 256, (12, 48, 56, 3), np.uint8), np.arange(12) % 3, [*"abc"], frames)
    train = np.arange(6)
    camera = image_cues(images, CAMERA_CUES, train=train, n_words=20)
    robot = with_laser(camera, images, train)
    assert tuple(robot.cues) == ROBOT_CUES and len(robot.feature_names) == robot.X.shape[1] == 1252
    assert_array_equal(robot.X[:, :-45], camera.X)
    laser = robot.X[:, robot.cues["laser"]]
    assert laser.dtype == np.float32
    assert_allclose(laser[:6].mean(axis=0, dtype=float), 0, atol=1e-5)
    assert set(np.round(laser[:6].std(axis=0, dtype=float), 4)) <= {0.0, 1.0}
    frames["laser"][6:] *= 0.5  # test rows do not enter the training rows
    changed = with_laser(camera, images, train)
    assert_array_equal(changed.X[:6], robot.X[:6])
    assert not np.array_equal(changed.X[6:], robot.X[6:])
    with pytest.raises(ValueError, match="needs laser scans"):
        with_laser(camera, images._replace(frames={}), train)

"""Weights, features, sessions, training and the commands around them."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pytest
from rolltop_refsim.policy import (
    DISTANCES_M,
    DriverSession,
    Encoder,
    ObservationError,
    Policy,
    WeightsError,
)
from rolltop_refsim.training import evaluate as evaluate_command
from rolltop_refsim.training import train as train_command
from rolltop_refsim.training.expert import lane_ahead
from rolltop_refsim.training.progress import Progress
from rolltop_refsim.world import Pose, make_scene

TINY = [
    "--roads",
    "2",
    "--images",
    "8",
    "--rounds",
    "1",
    "--drives",
    "1",
    "--steps",
    "6",
    "--filters",
    "6",
]


@pytest.fixture
def image() -> np.ndarray:
    return np.random.default_rng(0).integers(0, 255, (64, 64, 3), dtype=np.uint8)


def test_packaged_weights_are_small() -> None:
    import rolltop_refsim.policy as package

    path = Path(package.__file__).parent / "weights.npz"
    assert path.stat().st_size < 100_000
    assert Policy.load().weights.shape == (Encoder().length, len(DISTANCES_M))


def test_features_ignore_brightness_but_not_structure(image: np.ndarray) -> None:
    encoder = Encoder()
    darker = (image // 2).astype(np.uint8)
    features = encoder.encode(image)
    np.testing.assert_allclose(encoder.encode(darker), features, atol=0.05)
    assert np.abs(encoder.encode(image[:, ::-1].copy()) - features).max() > 0.1
    assert np.isfinite(encoder.encode(np.zeros_like(image))).all()


@pytest.mark.parametrize("wrong", [np.zeros((64, 64), np.uint8), np.zeros((64, 64, 3))])
def test_features_refuse_other_images(wrong: np.ndarray) -> None:
    with pytest.raises(ValueError, match="an image is uint8"):
        Encoder().encode(wrong)


def test_weights_survive_the_file(tmp_path: Path, image: np.ndarray) -> None:
    policy = Policy.load()
    policy.save(tmp_path / "copy.npz")
    copy = Policy.load(tmp_path / "copy.npz")
    assert copy.encoder == policy.encoder
    np.testing.assert_allclose(copy.lane(image), policy.lane(image), atol=0.01)


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04nonsense", b"\x93NUMPY"])
def test_broken_weights_are_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "weights.npz"
    path.write_bytes(content)
    with pytest.raises(WeightsError, match=r"weights\.npz"):
        Policy.load(path)


def test_weights_of_another_shape_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "weights.npz"
    policy = Policy.load()
    Policy(policy.encoder, policy.weights[:-1], policy.offset).save(path)
    with pytest.raises(WeightsError, match="has weights of"):
        Policy.load(path)


def test_the_policy_does_not_leap_in_speed(image: np.ndarray) -> None:
    policy = Policy.load()
    assert policy.act(image, 2.0).target_speed_m_s == pytest.approx(4.0)
    assert policy.act(image, 8.0, limit_m_s=6.0).target_speed_m_s == pytest.approx(6.0)


def test_a_session_wants_its_observations(image: np.ndarray) -> None:
    session = DriverSession(Policy.load())
    with pytest.raises(ObservationError, match="image"):
        session.drive()
    session.submit_image_observation(image)
    with pytest.raises(ObservationError, match="egomotion"):
        session.drive()
    session.submit_egomotion_observation(8.0)
    session.submit_route(7.0)
    plan = session.drive()
    assert plan.target_speed_m_s == 7.0
    np.testing.assert_array_equal(plan.points[:, 1], Policy.load().lane(image))
    with pytest.raises(ObservationError, match="image"):
        session.drive()


def test_labels_tell_offset_and_bend() -> None:
    road = make_scene("labels", 0).road
    bend = int(np.argmax(np.abs(road.curvature) * (road.s > 20) * (road.s < 250)))
    x, y, heading = road.at(road.s[bend], 0.5)[0]
    left = lane_ahead(road, Pose(float(x), float(y), yaw=float(heading)))
    assert left[0] == pytest.approx(-0.5, abs=0.02)
    # A bend leads sideways by half its curvature times the distance squared.
    assert left[2] - left[0] == pytest.approx(road.curvature[bend] * 8.0**2 / 2, rel=0.15)


def test_training_repeats_itself_and_can_be_evaluated(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [tmp_path / "a.npz", tmp_path / "b.npz"]
    for file in files:
        assert train_command.main(["--out", str(file), *TINY]) == 0
    assert files[0].read_bytes() == files[1].read_bytes()
    capsys.readouterr()
    arguments = ["--roads", "2", "--steps", "3", "--weights", str(files[0])]
    assert evaluate_command.main(arguments) == 0
    *rows, last = capsys.readouterr().out.splitlines()
    result = json.loads(last)
    assert len(result["roads"]) == 2
    assert result["worst_m"] == max(result["roads"].values())
    assert [row.split()[0] for row in rows[-2:]] == ["median", "worst"]


def test_progress_in_a_log_is_lines() -> None:
    log = io.StringIO()
    with Progress(log) as progress:
        progress.advance("images", 1, 4)
        progress.advance("images", 2, 4)
        progress.advance("images", 4, 4)
    lines = log.getvalue().splitlines()
    assert [line.split()[-1] for line in lines] == ["1/4", "4/4"]

"""Dynamics, ground and traffic: stateless, exact on replay, and plausible."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rolltop_refsim.world import (
    Control,
    Dynamics,
    GroundProbe,
    Plan,
    Pose,
    Scene,
    StateError,
    Traffic,
    TrafficStateError,
    initial_traffic,
    make_scene,
    simulate,
    traffic_poses,
)
from rolltop_refsim.world.geometry import WHEEL_RADIUS_M, to_vehicle, to_world
from rolltop_refsim.world.tracking import Tracker
from rolltop_refsim.world.traffic import CAR_LENGTH_M, CARS, ONCOMING

BEND = Plan(np.array([[0.0, 0.0], [8.0, 0.6], [16.0, 2.4]]), 8.5)


def test_a_step_depends_on_its_state_alone(dynamics: Dynamics, scene: Scene) -> None:
    other = make_scene("another-road", 5)
    straight = [dynamics.initial_state(scene)]
    for _ in range(5):
        straight.append(dynamics.track(scene, straight[-1], BEND))
    # Another process, and one that served other scenes and times in between.
    replica = Dynamics()
    foreign = replica.initial_state(other)
    for index in (3, 0, 4, 1, 2):
        foreign = replica.track(other, foreign, BEND)
        assert replica.track(scene, straight[index], BEND) == straight[index + 1]


def test_two_half_steps_are_one_step(dynamics: Dynamics, scene: Scene) -> None:
    state, control = dynamics.initial_state(scene), Control(0.05, 0.5)
    halves = dynamics.step(scene, dynamics.step(scene, state, control, 0.05), control, 0.05)
    assert halves == dynamics.step(scene, state, control, 0.1)


def test_the_car_settles_on_its_wheels(
    dynamics: Dynamics, probe: GroundProbe, scene: Scene
) -> None:
    state = dynamics.initial_state(scene)
    for _ in range(10):
        state = dynamics.track(scene, state, Plan(np.array([[0.0, 0.0], [20.0, 0.0]]), 0.0))
    pose = dynamics.pose(state)
    ground = probe.ground_intersection(scene, [pose])[0]
    assert pose.z == pytest.approx(ground.z, abs=0.03)
    assert pose.pitch == pytest.approx(ground.pitch, abs=0.05)
    assert pose.roll == pytest.approx(ground.roll, abs=0.03)


@pytest.mark.parametrize("steer", [-0.1, 0.1])
def test_the_car_turns_where_it_steers(dynamics: Dynamics, scene: Scene, steer: float) -> None:
    state = dynamics.initial_state(scene)
    before = dynamics.pose(state)
    for _ in range(10):
        state = dynamics.step(scene, state, Control(steer, 0.0))
    after = dynamics.pose(state)
    turned = after.yaw - before.yaw
    # A car of this wheelbase turns by v * t * tan(steer) / wheelbase, less what its tyres slip.
    expected = math.tan(steer) * 8.5 / 2.7
    assert turned / expected == pytest.approx(1.0, abs=0.3)
    assert after.yaw_rate_rad_s * steer > 0


def test_the_plan_s_speed_is_reached(dynamics: Dynamics, scene: Scene) -> None:
    state = dynamics.initial_state(scene)
    for _ in range(30):
        state = dynamics.track(scene, state, Plan(np.array([[0.0, 0.0], [20.0, 0.0]]), 5.0))
    assert dynamics.pose(state).speed_m_s == pytest.approx(5.0, abs=0.4)


def test_low_friction_slides(dynamics: Dynamics, scene: Scene) -> None:
    from dataclasses import replace

    ice = replace(scene, seed=99, tyre_friction=0.1)
    hard = Control(0.4, 0.0)
    grip, slip = dynamics.initial_state(scene), dynamics.initial_state(ice)
    for _ in range(8):
        grip, slip = dynamics.step(scene, grip, hard), dynamics.step(ice, slip, hard)
    start = dynamics.pose(dynamics.initial_state(scene)).yaw
    turned = [abs(dynamics.pose(state).yaw - start) for state in (grip, slip)]
    assert turned[1] < 0.6 * turned[0]


def test_foreign_states_are_refused(dynamics: Dynamics, scene: Scene) -> None:
    with pytest.raises(StateError, match="bytes"):
        dynamics.step(scene, b"short", Control(0, 0))
    with pytest.raises(TrafficStateError, match="bytes"):
        Traffic.from_bytes(b"short")


@pytest.mark.parametrize(
    "points", [np.zeros((1, 2)), np.zeros((3, 3)), np.full((3, 2), np.nan), np.zeros(4)]
)
def test_plans_without_sense_are_refused(points: np.ndarray) -> None:
    with pytest.raises(ValueError, match="plan"):
        Tracker(Plan(points, 8.0), Pose(0, 0))


@given(st.floats(0, 290), st.floats(-8, 12), st.floats(-3.1, 3.1))
@settings(max_examples=60, deadline=None)
def test_wheels_stand_on_the_ground(
    probe: GroundProbe, scene: Scene, s: float, lateral: float, yaw: float
) -> None:
    x, y, _ = scene.road.at(s, lateral)[0]
    proposed = Pose(float(x), float(y), z=50.0, yaw=yaw, pitch=1.0, roll=-1.0, speed_m_s=8.0)
    settled = probe.ground_intersection(scene, [proposed])[0]
    assert (settled.x, settled.y, settled.yaw) == (proposed.x, proposed.y, proposed.yaw)
    assert settled.speed_m_s == 8.0
    wheels = np.array([[1.35, 0.8], [1.35, -0.8], [-1.35, 0.8], [-1.35, -0.8]])
    ground = scene.terrain.height(*to_world(proposed, wheels).T)
    slope = np.array([-math.tan(settled.pitch), math.tan(settled.roll)])
    touching = settled.z - WHEEL_RADIUS_M + wheels @ slope
    # Four wheels on a plane: what is left is the ground's own twist, and the grid's coarseness.
    assert np.abs(touching - ground).max() < 0.06
    assert probe.ground_intersection(scene, [settled])[0] == settled


def test_rays_agree_with_the_ground(probe: GroundProbe, scene: Scene) -> None:
    points = scene.road.at(np.linspace(0, 300, 40), 2.0)[:, :2]
    expected = scene.terrain.height(points[:, 0], points[:, 1])
    np.testing.assert_allclose(probe.heights(scene, points), expected, atol=0.03)
    with pytest.raises(ValueError, match="no ground"):
        probe.heights(scene, np.array([[5000.0, 0.0]]))


def test_traffic_replays_from_bytes(scene: Scene) -> None:
    ego = Pose(0.0, 0.0, speed_m_s=8.5)
    traffic = initial_traffic(scene)
    state = traffic.to_bytes()
    for _ in range(10):
        traffic = simulate(scene, traffic, ego)
        state = simulate(scene, Traffic.from_bytes(state), ego).to_bytes()
    assert traffic.to_bytes() == state


@given(st.integers(0, 500), st.floats(0, 12))
@settings(max_examples=8, deadline=None)
def test_traffic_keeps_its_distance(seed: int, ego_speed: float) -> None:
    scene = make_scene("traffic-road", seed)
    traffic = initial_traffic(scene)
    ahead = traffic.s[: CARS - ONCOMING] > 0
    oncoming = traffic.s[CARS - ONCOMING :]
    ego_s = 0.0
    for _ in range(60):
        x, y, heading = scene.road.at(ego_s)[0]
        ego = Pose(float(x), float(y), yaw=float(heading), speed_m_s=ego_speed)
        traffic = simulate(scene, traffic, ego)
        ego_s += ego_speed * 0.1
        own_lane = np.append(traffic.s[: CARS - ONCOMING], ego_s)
        behind_ego = np.abs(own_lane[:-1][~ahead] - ego_s)
        assert behind_ego.min() > CAR_LENGTH_M
        assert np.diff(np.sort(own_lane[:-1])).min() > CAR_LENGTH_M
    assert (traffic.s[CARS - ONCOMING :] < oncoming).all()


def test_traffic_stays_in_its_lanes(scene: Scene) -> None:
    for pose in traffic_poses(scene, initial_traffic(scene)):
        _, lateral = scene.road.project(pose.x, pose.y)
        ahead = to_vehicle(pose, scene.road.at(scene.road.project(pose.x, pose.y)[0] + 5)[:, :2])
        middle = 0.0 if ahead[0, 0] > 0 else 3.6
        assert lateral == pytest.approx(middle, abs=0.5)

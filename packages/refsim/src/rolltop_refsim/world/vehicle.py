"""The car: four sprung wheels, steering and drive, stepped by MuJoCo on the scene's ground.

Stepping keeps nothing between calls. The whole integration state travels as bytes, so that any
process can do any step of any rollout, and repeats it bit by bit.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from rolltop_refsim.world import heightfield
from rolltop_refsim.world.engine import load_mujoco
from rolltop_refsim.world.geometry import (
    TRACK_M,
    WHEEL_RADIUS_M,
    WHEELBASE_M,
    Control,
    FloatArray,
    Plan,
    Pose,
    euler,
    quaternion,
)
from rolltop_refsim.world.heightfield import Ground
from rolltop_refsim.world.tracking import Tracker

if TYPE_CHECKING:
    from rolltop_refsim.world.scene import Scene

TIMESTEP_S = 0.005
CONTROL_EVERY = 4
"""Physics steps per step of the tracking controller: it runs at 50 Hz."""
CHASSIS_KG = 1200.0
SPRING_N_M = 45_000.0
DAMPING_N_S_M = 4_500.0
MAX_STEER_RAD = 0.55
MAX_ACCELERATION_M_S2 = 5.0
WHEELS = ("front_left", "front_right", "rear_left", "rear_right")
_GRAVITY = 9.81


class StateError(ValueError):
    """A vehicle state that this model did not write."""


def _wheel_xml(name: str) -> str:
    front = name.startswith("front")
    x = WHEELBASE_M / 2 * (1 if front else -1)
    y = TRACK_M / 2 * (1 if name.endswith("left") else -1)
    # The spring's rest position lets the wheel stand at 0 under the car's weight.
    rest = -CHASSIS_KG * _GRAVITY / 4 / SPRING_N_M
    steer = (
        f'<joint name="{name}_steer" axis="0 0 1" damping="60" armature="1" '
        f'range="{-MAX_STEER_RAD} {MAX_STEER_RAD}"/>'
        if front
        else ""
    )
    return f"""
      <body name="{name}" pos="{x} {y} 0">
        <joint name="{name}_spring" type="slide" axis="0 0 1" range="-0.15 0.15"
          stiffness="{SPRING_N_M}" damping="{DAMPING_N_S_M}" springref="{rest}"/>
        {steer}
        <joint name="{name}_spin" axis="0 1 0" damping="0.5" armature="0.8"/>
        <geom name="{name}" type="sphere" size="{WHEEL_RADIUS_M}" mass="22" priority="1"
          condim="3" friction="1 0.005 0.0001" solref="0.01 1"/>
      </body>"""


def _xml() -> str:
    wheels = "".join(_wheel_xml(name) for name in WHEELS)
    return f"""
<mujoco model="car">
  <compiler angle="radian" autolimits="true"/>
  <option timestep="{TIMESTEP_S}" integrator="implicitfast" cone="elliptic" impratio="10"
    iterations="20" gravity="0 0 {-_GRAVITY}"/>
  <asset>{heightfield.ASSET_XML}</asset>
  <worldbody>
    {heightfield.GEOM_XML}
    <body name="chassis">
      <freejoint/>
      <inertial pos="0 0 0.18" mass="{CHASSIS_KG}" diaginertia="380 1500 1700"/>
      {wheels}
    </body>
  </worldbody>
  <actuator>
    <position name="steer_left" joint="front_left_steer" kp="4000" kv="200"
      forcerange="-3000 3000"/>
    <position name="steer_right" joint="front_right_steer" kp="4000" kv="200"
      forcerange="-3000 3000"/>
    <motor name="drive_left" joint="rear_left_spin" ctrlrange="-1200 1200"/>
    <motor name="drive_right" joint="rear_right_spin" ctrlrange="-1200 1200"/>
  </actuator>
</mujoco>"""


class Dynamics:
    """Steps cars of any scene; one compiled model per object, to be used by one thread."""

    def __init__(self) -> None:
        """Compiles the model (tens of milliseconds)."""
        self._mujoco = mujoco = load_mujoco()
        self._model: Any = mujoco.MjModel.from_xml_string(_xml())
        self._data: Any = mujoco.MjData(self._model)
        self._ground = Ground(self._model)
        self._signature = mujoco.mjtState.mjSTATE_INTEGRATION
        self._size = mujoco.mj_stateSize(self._model, self._signature)
        self._wheel_geoms = [self._model.geom(name).id for name in WHEELS]
        self._total_kg = float(self._model.body_mass.sum())

    def initial_state(self, scene: Scene) -> bytes:
        """Puts the car on the ground where the scene's rollout starts, at its speed.

        Args:
            scene: The scene.

        Returns:
            The state to step from.
        """
        x, y, heading = scene.road.at(0.0, scene.start.lateral_m)[0]
        return self.state_at(scene, float(x), float(y), float(heading + scene.start.heading_rad))

    def state_at(self, scene: Scene, x: float, y: float, yaw: float) -> bytes:
        """Puts the car, at the scene's starting speed, on the ground somewhere.

        Args:
            scene: The scene.
            x: Metres in the world.
            y: Metres in the world.
            yaw: Heading in radians.

        Returns:
            The state to step from.
        """
        self._load(scene)
        mujoco, data = self._mujoco, self._data
        mujoco.mj_resetData(self._model, data)
        z = float(scene.terrain.height(np.array(x), np.array(y))) + WHEEL_RADIUS_M
        speed = scene.start.speed_m_s
        data.qpos[:3] = x, y, z + 0.02
        data.qpos[3:7] = quaternion(yaw, 0.0, 0.0)
        data.qvel[:2] = speed * math.cos(yaw), speed * math.sin(yaw)
        for name in WHEELS:
            data.joint(f"{name}_spin").qvel[0] = speed / WHEEL_RADIUS_M
        mujoco.mj_forward(self._model, data)
        return self._get()

    def step(self, scene: Scene, state: bytes, control: Control, dt_s: float = 0.1) -> bytes:
        """Holds a control for some time.

        Args:
            scene: The scene the state belongs to.
            state: State from this class.
            control: Steering and acceleration to hold.
            dt_s: Seconds, a multiple of `TIMESTEP_S`.

        Returns:
            The state after it.

        Raises:
            StateError: The state has the wrong size.
        """
        self._load(scene)
        self._set(state)
        self._apply(control)
        self._mujoco.mj_step(self._model, self._data, _steps(dt_s))
        return self._get()

    def track(self, scene: Scene, state: bytes, plan: Plan, dt_s: float = 0.1) -> bytes:
        """Follows a plan for some time with the tracking controller in the loop.

        Args:
            scene: The scene the state belongs to.
            state: State from this class.
            plan: Path in the vehicle's frame at this state, and the speed to hold.
            dt_s: Seconds, a multiple of `CONTROL_EVERY * TIMESTEP_S`.

        Returns:
            The state after it.

        Raises:
            StateError: The state has the wrong size.
        """
        self._load(scene)
        self._set(state)
        tracker = Tracker(plan, self._pose())
        for _ in range(_steps(dt_s) // CONTROL_EVERY):
            self._apply(tracker.control(self._pose()))
            self._mujoco.mj_step(self._model, self._data, CONTROL_EVERY)
        return self._get()

    def pose(self, state: bytes) -> Pose:
        """Reads where the car is and how fast it moves.

        Args:
            state: State from this class.

        Returns:
            The chassis' pose.

        Raises:
            StateError: The state has the wrong size.
        """
        self._set(state)
        return self._pose()

    def _load(self, scene: Scene) -> None:
        self._ground.load(scene)
        self._model.geom_friction[self._wheel_geoms, 0] = scene.tyre_friction

    def _apply(self, control: Control) -> None:
        steer = min(MAX_STEER_RAD, max(-MAX_STEER_RAD, control.steer_rad))
        limit = MAX_ACCELERATION_M_S2
        wanted = min(limit, max(-limit, control.acceleration_m_s2))
        torque = wanted * self._total_kg * WHEEL_RADIUS_M / 2
        self._data.ctrl[:] = steer, steer, torque, torque

    def _pose(self) -> Pose:
        qpos, qvel = self._data.qpos, self._data.qvel
        yaw, pitch, roll = euler(qpos[3:7])
        speed = math.cos(yaw) * qvel[0] + math.sin(yaw) * qvel[1]
        x, y, z = (float(value) for value in qpos[:3])
        return Pose(x, y, z, yaw, pitch, roll, float(speed), float(qvel[5]))

    def _get(self) -> bytes:
        state: FloatArray = np.empty(self._size)
        self._mujoco.mj_getState(self._model, self._data, state, self._signature)
        return state.tobytes()

    def _set(self, state: bytes) -> None:
        if len(state) != self._size * 8:
            raise StateError(
                f"a vehicle state has {self._size * 8} bytes, not {len(state)}: "
                "was it written by another version?"
            )
        values = np.frombuffer(state, dtype=np.float64)
        self._mujoco.mj_setState(self._model, self._data, values, self._signature)


def _steps(dt_s: float) -> int:
    return round(dt_s / TIMESTEP_S)

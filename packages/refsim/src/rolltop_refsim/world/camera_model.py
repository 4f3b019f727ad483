"""The camera's MuJoCo model: slots of placeholder meshes, the sky, the cars, the sun."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rolltop_refsim.world.meshes import SURFACES
from rolltop_refsim.world.traffic import CARS

if TYPE_CHECKING:
    from rolltop_refsim.world.geometry import FloatArray
    from rolltop_refsim.world.meshes import Mesh

SLOT_GROUP = 0
HIDDEN_GROUP = 5
CAR_COLOURS = (
    (0.75, 0.10, 0.10),
    (0.15, 0.25, 0.65),
    (0.85, 0.85, 0.88),
    (0.10, 0.10, 0.12),
    (0.85, 0.65, 0.10),
    (0.25, 0.45, 0.35),
)
CAMERA_FORWARD_M = 0.9
_SKY_M = 900.0
_HORIZON_RAD = 0.14
_SKY_SIDES = 16


def geom_name(slot: int, surface: str) -> str:
    """Names the geom, and the mesh, of a surface in a slot."""
    return f"{surface}_{slot}"


def camera_xml(templates: dict[str, Mesh], *, slots: int, height: int, width: int) -> str:
    """Writes the model.

    Args:
        templates: A mesh per surface; only its numbers of vertices and its faces count.
        slots: Scenes that can be loaded at the same time.
        height: Pixels.
        width: Pixels.

    Returns:
        MJCF.
    """
    names = [(slot, surface) for slot in range(slots) for surface in SURFACES]
    shapes = {surface: _shape_xml(mesh) for surface, mesh in templates.items()}
    meshes = "".join(f'<mesh name="{geom_name(k, s)}" {shapes[s]}/>' for k, s in names)
    geoms = "".join(_mesh_geom_xml(geom_name(k, s)) for k, s in names)
    cars = "".join(_car_xml(car) for car in range(CARS))
    sky = "".join(
        f'<geom name="{name}" class="seen" type="mesh" mesh="{name}" material="sky"/>'
        for name in ("sky", "horizon")
    )
    return f"""
<mujoco model="camera">
  <statistic extent="1" center="0 0 0"/>
  <visual>
    <global offwidth="{width}" offheight="{height}"/>
    <quality offsamples="0" shadowsize="0"/>
    <map znear="0.2" zfar="2000"/>
    <headlight diffuse="0 0 0" specular="0 0 0" ambient="0.4 0.4 0.4"/>
  </visual>
  <default>
    <default class="seen"><geom contype="0" conaffinity="0" group="0" mass="0"/></default>
  </default>
  <asset>
    <material name="sky" emission="1" specular="0" shininess="0" rgba="0.5 0.6 0.9 1"/>
    <material name="matt" specular="0" shininess="0" rgba="1 1 1 1"/>
    {meshes}{_dome_xml("sky", _HORIZON_RAD, np.pi / 2)}{_dome_xml("horizon", -0.3, _HORIZON_RAD)}
  </asset>
  <worldbody>
    <light name="sun" directional="true" castshadow="false" dir="0 0 -1" specular="0 0 0"/>
    {geoms}
    <body name="ego" mocap="true">
      <camera name="front" pos="{CAMERA_FORWARD_M} 0 1.2" fovy="60"/>
      {sky}
    </body>
    {cars}
  </worldbody>
</mujoco>"""


def _numbers(values: FloatArray | np.ndarray) -> str:
    return " ".join(f"{value:.6g}" for value in np.asarray(values).ravel())


def _shape_xml(mesh: Mesh) -> str:
    faces = " ".join(map(str, mesh.faces.ravel().tolist()))
    return (
        f'inertia="shell" vertex="{_numbers(mesh.vertices)}" '
        f'normal="{_numbers(mesh.normals)}" face="{faces}"'
    )


def _mesh_geom_xml(name: str) -> str:
    return f'<geom name="{name}" class="seen" type="mesh" mesh="{name}" material="matt"/>'


def _dome_xml(name: str, low: float, high: float) -> str:
    """A band of the sky between two elevations, seen from inside."""
    angle = 2 * np.pi * np.arange(_SKY_SIDES) / _SKY_SIDES
    rings = []
    for elevation in (low, min(high, 1.5)):
        flat = _SKY_M * np.cos(elevation)
        rings.append(
            np.column_stack(
                [
                    flat * np.cos(angle),
                    flat * np.sin(angle),
                    np.full(_SKY_SIDES, _SKY_M * np.sin(elevation)),
                ]
            )
        )
    side = np.arange(_SKY_SIDES)
    after = (side + 1) % _SKY_SIDES
    lower = np.column_stack([side, side + _SKY_SIDES, after])
    upper = np.column_stack([after, side + _SKY_SIDES, after + _SKY_SIDES])
    faces = " ".join(map(str, np.concatenate([lower, upper]).ravel().tolist()))
    return (
        f'<mesh name="{name}" inertia="shell" vertex="{_numbers(np.concatenate(rings))}" '
        f'face="{faces}"/>'
    )


def _car_xml(car: int) -> str:
    colour = _numbers(np.array(CAR_COLOURS[car]))
    return f"""
    <body name="car_{car}" mocap="true" pos="0 0 -500">
      <geom class="seen" type="box" size="2.1 0.85 0.32" pos="0 0 0.25" material="matt"
        rgba="{colour} 1"/>
      <geom class="seen" type="box" size="1.05 0.74 0.28" pos="-0.2 0 0.82" material="matt"
        rgba="0.12 0.14 0.18 1"/>
      <geom class="seen" type="box" size="1.7 0.88 0.2" pos="0 0 -0.12" material="matt"
        rgba="0.05 0.05 0.05 1"/>
      <geom class="seen" type="box" size="2.13 0.7 0.08" pos="0 0 0.3" material="matt"
        rgba="0.7 0.25 0.15 1"/>
    </body>"""

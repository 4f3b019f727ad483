"""The front camera: renders scenes off screen with MuJoCo.

One model and one GL context serve all scenes of a process. The model has a number of slots, each a
set of placeholder meshes; a scene that is asked for takes the slot that was used longest ago, its
vertices are copied in and uploaded. Nothing is compiled or created per scene, so that nothing is
leaked per scene either.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rolltop_refsim.world.camera_model import (
    HIDDEN_GROUP,
    SLOT_GROUP,
    camera_xml,
    geom_name,
)
from rolltop_refsim.world.engine import load_mujoco
from rolltop_refsim.world.geometry import Pose, quaternion
from rolltop_refsim.world.gl import choose_backend
from rolltop_refsim.world.meshes import SURFACES, Mesh, make_meshes
from rolltop_refsim.world.scene import make_scene
from rolltop_refsim.world.traffic import CARS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rolltop_refsim.world.scene import Look, Scene

Image = NDArray[np.uint8]

TRUNK_COLOUR = (0.35, 0.24, 0.15)
POST_COLOUR = (0.92, 0.92, 0.92)
_PARKED_Z_M = -500.0


@dataclass(frozen=True)
class Frame:
    """A picture and what it took to have its scene at hand.

    Attributes:
        image: (H, W, 3) red, green, blue; row 0 at the top.
        cache_hit: Whether the scene was loaded already.
        load_s: Seconds it took to load it; 0 if it was.
    """

    image: Image
    cache_hit: bool
    load_s: float


@dataclass
class CacheStats:
    """What the camera's scene cache has done so far.

    Attributes:
        hits: Frames whose scene was loaded.
        misses: Frames whose scene had to be loaded.
        load_s: Seconds spent on loading.
        slots: Scenes that can be loaded at the same time.
    """

    slots: int
    hits: int = 0
    misses: int = 0
    load_s: float = field(default=0.0)


class Camera:
    """Renders what the ego car sees; to be made, used and closed in one thread."""

    def __init__(
        self, *, size: tuple[int, int] = (64, 64), cache_size: int = 4, supersampling: int = 3
    ) -> None:
        """Compiles the model and opens the GL context (a second or less).

        Args:
            size: Height and width of the pictures in pixels.
            cache_size: Scenes that are kept loaded, at least 1.
            supersampling: Pixels per side that are rendered and averaged for each one given back.

        Raises:
            ValueError: The cache size is below 1.
            GlError: No way to render off screen is found.
        """
        if cache_size < 1:
            raise ValueError(f"a camera needs a cache size of at least 1, not {cache_size}")
        backend = choose_backend()
        self._mujoco = mujoco = load_mujoco()
        self._sampling = supersampling
        self._height, self._width = (side * supersampling for side in size)
        templates = make_meshes(make_scene("template", 0))
        self._model: Any = mujoco.MjModel.from_xml_string(
            camera_xml(templates, slots=cache_size, height=self._height, width=self._width)
        )
        self._free_placeholders(cache_size)
        self._data: Any = mujoco.MjData(self._model)
        self._context_gl: Any = backend.context(self._width, self._height)
        self._context_gl.make_current()
        self._context: Any = mujoco.MjrContext(self._model, mujoco.mjtFontScale.mjFONTSCALE_50)
        mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN, self._context)
        self._prepare_view()
        self._slots: OrderedDict[int, tuple[str, int] | None] = OrderedDict(
            (slot, None) for slot in range(cache_size)
        )
        self._shown: tuple[str, int] | None = None
        self.stats = CacheStats(slots=cache_size)

    def _free_placeholders(self, slots: int) -> None:
        """Undoes the compiler's centring of the meshes: scenes are in the world's frame."""
        model = self._model
        for slot in range(slots):
            for surface in SURFACES:
                geom = model.geom(geom_name(slot, surface)).id
                model.geom_pos[geom] = 0.0
                model.geom_quat[geom] = 1.0, 0.0, 0.0, 0.0
                model.geom_sameframe[geom] = self._mujoco.mjtSameFrame.mjSAMEFRAME_NONE

    def _prepare_view(self) -> None:
        mujoco, model = self._mujoco, self._model
        self._view: Any = mujoco.MjvScene(model, maxgeom=200)
        self._view.flags[mujoco.mjtRndFlag.mjRND_SHADOW] = 0
        self._view.flags[mujoco.mjtRndFlag.mjRND_REFLECTION] = 0
        self._view.flags[mujoco.mjtRndFlag.mjRND_HAZE] = 0
        self._view.flags[mujoco.mjtRndFlag.mjRND_FOG] = 0
        self._option: Any = mujoco.MjvOption()
        self._option.geomgroup[:] = 1
        self._option.geomgroup[HIDDEN_GROUP] = 0
        self._eye: Any = mujoco.MjvCamera()
        self._eye.type = mujoco.mjtCamera.mjCAMERA_FIXED
        self._eye.fixedcamid = model.camera("front").id
        self._rect: Any = mujoco.MjrRect(0, 0, self._width, self._height)
        self._ego = int(model.body("ego").mocapid[0])
        self._cars = [int(model.body(f"car_{car}").mocapid[0]) for car in range(CARS)]
        self._sun = model.light("sun").id

    def render(self, scene: Scene, ego: Pose, traffic: Sequence[Pose] = ()) -> Frame:
        """Renders a frame.

        Args:
            scene: The scene.
            ego: Pose of the car that carries the camera.
            traffic: Poses of the other cars, the first `CARS` of which are shown.

        Returns:
            The picture.
        """
        self._context_gl.make_current()
        hit, load_s = self._show(scene)
        self._place(ego, traffic)
        mujoco = self._mujoco
        mujoco.mj_kinematics(self._model, self._data)
        mujoco.mj_camlight(self._model, self._data)
        mujoco.mjv_updateScene(
            self._model,
            self._data,
            self._option,
            None,
            self._eye,
            mujoco.mjtCatBit.mjCAT_ALL,
            self._view,
        )
        mujoco.mjr_render(self._rect, self._view, self._context)
        image = np.empty((self._height, self._width, 3), dtype=np.uint8)
        mujoco.mjr_readPixels(image, None, self._rect, self._context)
        return Frame(self._average(image[::-1]), hit, load_s)

    def close(self) -> None:
        """Frees the GL context."""
        self._context_gl.make_current()
        self._context.free()
        self._context_gl.free()

    def _average(self, image: Image) -> Image:
        side = self._sampling
        if side == 1:
            return np.ascontiguousarray(image)
        # Sums of bytes fit 16 bits up to 16 x 16 samples.
        parts = image.reshape(self._height // side, side, self._width, 3)
        rows = parts.sum(axis=1, dtype=np.uint16)
        parts = rows.reshape(self._height // side, self._width // side, side, 3)
        total = parts.sum(axis=2, dtype=np.uint16)
        averaged: Image = (total // (side * side)).astype(np.uint8)
        return averaged

    def _place(self, ego: Pose, traffic: Sequence[Pose]) -> None:
        position, turn = self._data.mocap_pos, self._data.mocap_quat
        position[self._ego] = ego.x, ego.y, ego.z
        turn[self._ego] = quaternion(ego.yaw, ego.pitch, ego.roll)
        for index, car in enumerate(self._cars):
            if index >= len(traffic):
                position[car] = 0.0, 0.0, _PARKED_Z_M
                continue
            pose = traffic[index]
            position[car] = pose.x, pose.y, pose.z
            turn[car] = quaternion(pose.yaw, pose.pitch, pose.roll)

    def _show(self, scene: Scene) -> tuple[bool, float]:
        """Makes a scene the visible one; returns whether it was loaded and the seconds it took."""
        slot = next((slot for slot, key in self._slots.items() if key == scene.key), None)
        load_s = 0.0
        if slot is None:
            slot = next(iter(self._slots))
            began = time.perf_counter()
            self._load(slot, scene)
            load_s = time.perf_counter() - began
            self.stats.misses += 1
            self.stats.load_s += load_s
        else:
            self.stats.hits += 1
        self._slots[slot] = scene.key
        self._slots.move_to_end(slot)
        if self._shown != scene.key:
            self._switch(slot, scene.look)
            self._shown = scene.key
        return load_s == 0.0, load_s

    def _load(self, slot: int, scene: Scene) -> None:
        for surface, mesh in make_meshes(scene).items():
            self._upload(self._model.mesh(geom_name(slot, surface)).id, mesh)

    def _upload(self, index: int, mesh: Mesh) -> None:
        model = self._model
        vertex, count = model.mesh_vertadr[index], model.mesh_vertnum[index]
        normal = model.mesh_normaladr[index]
        model.mesh_vert[vertex : vertex + count] = mesh.vertices
        model.mesh_normal[normal : normal + count] = mesh.normals
        self._mujoco.mjr_uploadMesh(model, self._context, index)

    def _switch(self, slot: int, look: Look) -> None:
        model = self._model
        for other in self._slots:
            group = SLOT_GROUP if other == slot else HIDDEN_GROUP
            for surface in SURFACES:
                model.geom(geom_name(other, surface)).group[0] = group
        colours = {
            "grass": look.grass,
            "verge": look.grass,
            "road": look.asphalt,
            "lines": look.line,
            "trunks": TRUNK_COLOUR,
            "crowns": look.crown,
            "posts": POST_COLOUR,
        }
        for surface, colour in colours.items():
            model.geom(geom_name(slot, surface)).rgba[:3] = colour
        # The sun and the ambient light reach the sky as well.
        model.material("sky").emission[0] = 0.8 - look.ambient
        model.geom("sky").rgba[:3] = look.sky
        model.geom("horizon").rgba[:3] = look.horizon
        model.light_dir[self._sun] = look.sun_direction
        model.light_diffuse[self._sun] = look.sun
        model.vis.headlight.ambient[:] = look.ambient
        camera = model.camera("front")
        camera.pos[2] = look.camera_height_m
        camera.fovy[0] = look.camera_fov_deg
        camera.quat[:] = _camera_turn(look.camera_pitch_rad)


def _camera_turn(pitch_rad: float) -> NDArray[np.float64]:
    """Turns MuJoCo's camera, which looks along -z with y up, forward and down by the pitch."""
    half = (np.pi / 2 - pitch_rad) / 2
    down = np.array([np.cos(half), np.sin(half), 0.0, 0.0])
    forward = quaternion(-np.pi / 2, 0.0, 0.0)
    w1, x1, y1, z1 = forward
    w2, x2, y2, z2 = down
    return np.array(
        [
            w1 * w2 - x1 * x2 - y1 * y2 - z1 * z2,
            w1 * x2 + x1 * w2 + y1 * z2 - z1 * y2,
            w1 * y2 - x1 * z2 + y1 * w2 + z1 * x2,
            w1 * z2 + x1 * y2 - y1 * x2 + z1 * w2,
        ]
    )

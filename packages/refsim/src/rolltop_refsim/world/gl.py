"""Finds a way to render off screen: EGL, or OSMesa from the system or from unpacked packages.

OSMesa is looked for on the system and then in a folder that `rolltop_refsim.world.gl_packages`
fills without root. Libraries from that folder are loaded by their paths, only those that the
system does not have, so that no search path has to be set before the process starts.
"""

from __future__ import annotations

import ctypes
import os
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

BackendName = Literal["egl", "osmesa"]

GL_DIR_VARIABLE = "ROLLTOP_REFSIM_GL_DIR"
CHOICE_VARIABLE = "MUJOCO_GL"
OSMESA_NAMES = ("libOSMesa.so.8", "libOSMesa.so.6")
_EGL_NAMES = ("libEGL.so.1", "libOpenGL.so.0")
_EGL_PLATFORM_DEVICE = 0x313F
_MAX_DEVICES = 16
CURE = (
    "install Debian's libegl1 libegl-mesa0 libopengl0 libgl1-mesa-dri or libosmesa6, "
    "or run `python -m rolltop_refsim.gl --install`, which needs no root"
)


class GlError(RuntimeError):
    """There is no way to render off screen."""


@dataclass(frozen=True)
class Backend:
    """How this process renders.

    Attributes:
        name: What MuJoCo calls it.
        source: Where its libraries come from, for people.
    """

    name: BackendName
    source: str

    def context(self, width: int, height: int) -> Any:
        """Opens a GL context.

        Args:
            width: Largest width in pixels.
            height: Largest height in pixels.

        Returns:
            MuJoCo's context object, with ``make_current`` and ``free``.

        Raises:
            GlError: The context cannot be opened.
        """
        try:
            module = import_module(f"mujoco.{self.name}")
            return module.GLContext(width, height)
        except (ImportError, RuntimeError, AttributeError) as error:
            raise GlError(f"{self.name} from {self.source} gives no context: {error}") from error


@cache
def choose_backend() -> Backend:
    """Chooses the backend of this process, loads its libraries and tells MuJoCo.

    ``MUJOCO_GL`` decides if it is set; otherwise EGL is taken where it works, then OSMesa.

    Returns:
        The backend.

    Raises:
        GlError: None is found; the message names the packages and the command that gets them.
    """
    wanted = os.environ.get(CHOICE_VARIABLE, "").lower()
    if wanted not in {"", "egl", "osmesa"}:
        raise GlError(f"{CHOICE_VARIABLE}={wanted} cannot render off screen: use egl or osmesa")
    # Mesa's software renderer would start a thread per core; a process here stands for one core.
    os.environ.setdefault("LP_NUM_THREADS", "0")
    backend = _egl() if wanted in {"", "egl"} else None
    if backend is None and wanted in {"", "osmesa"}:
        backend = _osmesa()
    if backend is None:
        raise GlError(f"no {wanted or 'EGL or OSMesa'} to render the camera with: {CURE}")
    # The native part of MuJoCo reads the variable when a context is made.
    os.environ[CHOICE_VARIABLE] = backend.name
    return backend


def library_dir() -> Path:
    """Returns the folder of unpacked libraries, whether it exists or not."""
    chosen = os.environ.get(GL_DIR_VARIABLE)
    if chosen:
        return Path(chosen)
    cache_dir = os.environ.get("ROLLTOP_CACHE_DIR")
    if cache_dir:
        return Path(cache_dir) / "gl"
    user_cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(user_cache) if user_cache else Path.home() / ".cache") / "rolltop" / "gl"


def _egl() -> Backend | None:
    try:
        egl, _ = (ctypes.CDLL(name, mode=ctypes.RTLD_GLOBAL) for name in _EGL_NAMES)
        works = _egl_device_opens(egl)
    except (OSError, AttributeError):
        return None
    return Backend("egl", "the system") if works else None


def _egl_device_opens(egl: ctypes.CDLL) -> bool:
    """Tells whether one of the EGL devices can be initialised."""
    lookup = egl.eglGetProcAddress
    lookup.restype, lookup.argtypes = ctypes.c_void_p, [ctypes.c_char_p]
    devices_at, display_at = (
        lookup(name) for name in (b"eglQueryDevicesEXT", b"eglGetPlatformDisplayEXT")
    )
    if not devices_at or not display_at:
        return False
    query = ctypes.CFUNCTYPE(
        ctypes.c_uint, ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int)
    )(devices_at)
    open_display = ctypes.CFUNCTYPE(
        ctypes.c_void_p, ctypes.c_uint, ctypes.c_void_p, ctypes.c_void_p
    )(display_at)
    initialise = egl.eglInitialize
    initialise.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
    devices = (ctypes.c_void_p * _MAX_DEVICES)()
    count = ctypes.c_int()
    if not query(_MAX_DEVICES, devices, ctypes.byref(count)):
        return False
    displays = (open_display(_EGL_PLATFORM_DEVICE, devices[i], None) for i in range(count.value))
    return any(display and initialise(display, None, None) for display in displays)


def _osmesa() -> Backend | None:
    for name in OSMESA_NAMES:
        try:
            ctypes.CDLL(name, mode=ctypes.RTLD_GLOBAL)
        except OSError:
            continue
        return Backend("osmesa", "the system")
    folder = library_dir()
    unpacked = {path.name: path for path in folder.glob("**/lib*.so*")} if folder.is_dir() else {}
    for name in OSMESA_NAMES:
        if name in unpacked and _load(name, unpacked):
            return Backend("osmesa", str(folder))
    return None


def _load(name: str, unpacked: dict[str, Path]) -> bool:
    """Loads an unpacked library and those it needs that the system lacks.

    Args:
        name: File name of the library.
        unpacked: Paths by file name.

    Returns:
        Whether it is loaded.
    """
    # Each attempt names one library that is missing, so there are no more attempts than libraries.
    for _ in range(len(unpacked) + 1):
        try:
            ctypes.CDLL(str(unpacked[name]), mode=ctypes.RTLD_GLOBAL)
        except OSError as error:
            missing = Path(str(error).partition(":")[0]).name
            if missing == name or missing not in unpacked or not _load(missing, unpacked):
                return False
        else:
            return True
    return False

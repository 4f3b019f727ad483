from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class RolloutStep(_message.Message):
    __slots__ = ("uuid", "attempt", "scene", "seed", "step")
    UUID_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    SCENE_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    uuid: str
    attempt: int
    scene: str
    seed: int
    step: int
    def __init__(self, uuid: _Optional[str] = ..., attempt: _Optional[int] = ..., scene: _Optional[str] = ..., seed: _Optional[int] = ..., step: _Optional[int] = ...) -> None: ...

class Pose(_message.Message):
    __slots__ = ("x", "y", "z", "yaw", "pitch", "roll", "speed_m_s", "yaw_rate_rad_s")
    X_FIELD_NUMBER: _ClassVar[int]
    Y_FIELD_NUMBER: _ClassVar[int]
    Z_FIELD_NUMBER: _ClassVar[int]
    YAW_FIELD_NUMBER: _ClassVar[int]
    PITCH_FIELD_NUMBER: _ClassVar[int]
    ROLL_FIELD_NUMBER: _ClassVar[int]
    SPEED_M_S_FIELD_NUMBER: _ClassVar[int]
    YAW_RATE_RAD_S_FIELD_NUMBER: _ClassVar[int]
    x: float
    y: float
    z: float
    yaw: float
    pitch: float
    roll: float
    speed_m_s: float
    yaw_rate_rad_s: float
    def __init__(self, x: _Optional[float] = ..., y: _Optional[float] = ..., z: _Optional[float] = ..., yaw: _Optional[float] = ..., pitch: _Optional[float] = ..., roll: _Optional[float] = ..., speed_m_s: _Optional[float] = ..., yaw_rate_rad_s: _Optional[float] = ...) -> None: ...

class Image(_message.Message):
    __slots__ = ("camera", "width", "height", "rgb")
    CAMERA_FIELD_NUMBER: _ClassVar[int]
    WIDTH_FIELD_NUMBER: _ClassVar[int]
    HEIGHT_FIELD_NUMBER: _ClassVar[int]
    RGB_FIELD_NUMBER: _ClassVar[int]
    camera: str
    width: int
    height: int
    rgb: bytes
    def __init__(self, camera: _Optional[str] = ..., width: _Optional[int] = ..., height: _Optional[int] = ..., rgb: _Optional[bytes] = ...) -> None: ...

class SessionRequest(_message.Message):
    __slots__ = ("rollout",)
    ROLLOUT_FIELD_NUMBER: _ClassVar[int]
    rollout: RolloutStep
    def __init__(self, rollout: _Optional[_Union[RolloutStep, _Mapping]] = ...) -> None: ...

class SessionReply(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

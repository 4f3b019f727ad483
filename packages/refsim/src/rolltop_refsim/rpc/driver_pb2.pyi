from rolltop_refsim.rpc import common_pb2 as _common_pb2
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ImageObservation(_message.Message):
    __slots__ = ("rollout", "image")
    ROLLOUT_FIELD_NUMBER: _ClassVar[int]
    IMAGE_FIELD_NUMBER: _ClassVar[int]
    rollout: _common_pb2.RolloutStep
    image: _common_pb2.Image
    def __init__(self, rollout: _Optional[_Union[_common_pb2.RolloutStep, _Mapping]] = ..., image: _Optional[_Union[_common_pb2.Image, _Mapping]] = ...) -> None: ...

class EgomotionObservation(_message.Message):
    __slots__ = ("rollout", "speed_m_s", "yaw_rate_rad_s")
    ROLLOUT_FIELD_NUMBER: _ClassVar[int]
    SPEED_M_S_FIELD_NUMBER: _ClassVar[int]
    YAW_RATE_RAD_S_FIELD_NUMBER: _ClassVar[int]
    rollout: _common_pb2.RolloutStep
    speed_m_s: float
    yaw_rate_rad_s: float
    def __init__(self, rollout: _Optional[_Union[_common_pb2.RolloutStep, _Mapping]] = ..., speed_m_s: _Optional[float] = ..., yaw_rate_rad_s: _Optional[float] = ...) -> None: ...

class RouteObservation(_message.Message):
    __slots__ = ("rollout", "points", "speed_limit_m_s")
    ROLLOUT_FIELD_NUMBER: _ClassVar[int]
    POINTS_FIELD_NUMBER: _ClassVar[int]
    SPEED_LIMIT_M_S_FIELD_NUMBER: _ClassVar[int]
    rollout: _common_pb2.RolloutStep
    points: bytes
    speed_limit_m_s: float
    def __init__(self, rollout: _Optional[_Union[_common_pb2.RolloutStep, _Mapping]] = ..., points: _Optional[bytes] = ..., speed_limit_m_s: _Optional[float] = ...) -> None: ...

class ObservationReply(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class DriveRequest(_message.Message):
    __slots__ = ("rollout",)
    ROLLOUT_FIELD_NUMBER: _ClassVar[int]
    rollout: _common_pb2.RolloutStep
    def __init__(self, rollout: _Optional[_Union[_common_pb2.RolloutStep, _Mapping]] = ...) -> None: ...

class DriveReply(_message.Message):
    __slots__ = ("plan", "route_deviation_m")
    PLAN_FIELD_NUMBER: _ClassVar[int]
    ROUTE_DEVIATION_M_FIELD_NUMBER: _ClassVar[int]
    plan: Plan
    route_deviation_m: float
    def __init__(self, plan: _Optional[_Union[Plan, _Mapping]] = ..., route_deviation_m: _Optional[float] = ...) -> None: ...

class Plan(_message.Message):
    __slots__ = ("points", "target_speed_m_s")
    POINTS_FIELD_NUMBER: _ClassVar[int]
    TARGET_SPEED_M_S_FIELD_NUMBER: _ClassVar[int]
    points: bytes
    target_speed_m_s: float
    def __init__(self, points: _Optional[bytes] = ..., target_speed_m_s: _Optional[float] = ...) -> None: ...

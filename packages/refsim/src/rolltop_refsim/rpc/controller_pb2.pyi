from rolltop_refsim.rpc import common_pb2 as _common_pb2
from rolltop_refsim.rpc import driver_pb2 as _driver_pb2
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ControllerStart(_message.Message):
    __slots__ = ("vehicle", "route", "route_spacing_m", "route_length_m")
    VEHICLE_FIELD_NUMBER: _ClassVar[int]
    ROUTE_FIELD_NUMBER: _ClassVar[int]
    ROUTE_SPACING_M_FIELD_NUMBER: _ClassVar[int]
    ROUTE_LENGTH_M_FIELD_NUMBER: _ClassVar[int]
    vehicle: Vehicle
    route: bytes
    route_spacing_m: float
    route_length_m: float
    def __init__(self, vehicle: _Optional[_Union[Vehicle, _Mapping]] = ..., route: _Optional[bytes] = ..., route_spacing_m: _Optional[float] = ..., route_length_m: _Optional[float] = ...) -> None: ...

class RunRequest(_message.Message):
    __slots__ = ("rollout", "state", "plan", "duration_s")
    ROLLOUT_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    PLAN_FIELD_NUMBER: _ClassVar[int]
    DURATION_S_FIELD_NUMBER: _ClassVar[int]
    rollout: _common_pb2.RolloutStep
    state: bytes
    plan: _driver_pb2.Plan
    duration_s: float
    def __init__(self, rollout: _Optional[_Union[_common_pb2.RolloutStep, _Mapping]] = ..., state: _Optional[bytes] = ..., plan: _Optional[_Union[_driver_pb2.Plan, _Mapping]] = ..., duration_s: _Optional[float] = ...) -> None: ...

class RunReply(_message.Message):
    __slots__ = ("vehicle",)
    VEHICLE_FIELD_NUMBER: _ClassVar[int]
    vehicle: Vehicle
    def __init__(self, vehicle: _Optional[_Union[Vehicle, _Mapping]] = ...) -> None: ...

class Vehicle(_message.Message):
    __slots__ = ("state", "pose", "progress_m", "lateral_error_m")
    STATE_FIELD_NUMBER: _ClassVar[int]
    POSE_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_M_FIELD_NUMBER: _ClassVar[int]
    LATERAL_ERROR_M_FIELD_NUMBER: _ClassVar[int]
    state: bytes
    pose: _common_pb2.Pose
    progress_m: float
    lateral_error_m: float
    def __init__(self, state: _Optional[bytes] = ..., pose: _Optional[_Union[_common_pb2.Pose, _Mapping]] = ..., progress_m: _Optional[float] = ..., lateral_error_m: _Optional[float] = ...) -> None: ...

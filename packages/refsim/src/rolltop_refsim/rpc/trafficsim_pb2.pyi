from rolltop_refsim.rpc import common_pb2 as _common_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class SimulateRequest(_message.Message):
    __slots__ = ("rollout", "state", "ego", "ego_then", "duration_s")
    ROLLOUT_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    EGO_FIELD_NUMBER: _ClassVar[int]
    EGO_THEN_FIELD_NUMBER: _ClassVar[int]
    DURATION_S_FIELD_NUMBER: _ClassVar[int]
    rollout: _common_pb2.RolloutStep
    state: bytes
    ego: _common_pb2.Pose
    ego_then: _common_pb2.Pose
    duration_s: float
    def __init__(self, rollout: _Optional[_Union[_common_pb2.RolloutStep, _Mapping]] = ..., state: _Optional[bytes] = ..., ego: _Optional[_Union[_common_pb2.Pose, _Mapping]] = ..., ego_then: _Optional[_Union[_common_pb2.Pose, _Mapping]] = ..., duration_s: _Optional[float] = ...) -> None: ...

class TrafficReply(_message.Message):
    __slots__ = ("state", "poses", "collisions")
    STATE_FIELD_NUMBER: _ClassVar[int]
    POSES_FIELD_NUMBER: _ClassVar[int]
    COLLISIONS_FIELD_NUMBER: _ClassVar[int]
    state: bytes
    poses: _containers.RepeatedCompositeFieldContainer[_common_pb2.Pose]
    collisions: int
    def __init__(self, state: _Optional[bytes] = ..., poses: _Optional[_Iterable[_Union[_common_pb2.Pose, _Mapping]]] = ..., collisions: _Optional[int] = ...) -> None: ...

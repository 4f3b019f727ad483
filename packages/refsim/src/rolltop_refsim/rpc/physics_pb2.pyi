from rolltop_refsim.rpc import common_pb2 as _common_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class GroundIntersectionRequest(_message.Message):
    __slots__ = ("rollout", "poses")
    ROLLOUT_FIELD_NUMBER: _ClassVar[int]
    POSES_FIELD_NUMBER: _ClassVar[int]
    rollout: _common_pb2.RolloutStep
    poses: _containers.RepeatedCompositeFieldContainer[_common_pb2.Pose]
    def __init__(self, rollout: _Optional[_Union[_common_pb2.RolloutStep, _Mapping]] = ..., poses: _Optional[_Iterable[_Union[_common_pb2.Pose, _Mapping]]] = ...) -> None: ...

class GroundIntersectionReply(_message.Message):
    __slots__ = ("poses",)
    POSES_FIELD_NUMBER: _ClassVar[int]
    poses: _containers.RepeatedCompositeFieldContainer[_common_pb2.Pose]
    def __init__(self, poses: _Optional[_Iterable[_Union[_common_pb2.Pose, _Mapping]]] = ...) -> None: ...

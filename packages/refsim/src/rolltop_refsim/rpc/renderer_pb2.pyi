from rolltop_refsim.rpc import common_pb2 as _common_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class BatchRenderRgbRequest(_message.Message):
    __slots__ = ("rollout", "ego", "traffic", "cameras")
    ROLLOUT_FIELD_NUMBER: _ClassVar[int]
    EGO_FIELD_NUMBER: _ClassVar[int]
    TRAFFIC_FIELD_NUMBER: _ClassVar[int]
    CAMERAS_FIELD_NUMBER: _ClassVar[int]
    rollout: _common_pb2.RolloutStep
    ego: _common_pb2.Pose
    traffic: _containers.RepeatedCompositeFieldContainer[_common_pb2.Pose]
    cameras: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, rollout: _Optional[_Union[_common_pb2.RolloutStep, _Mapping]] = ..., ego: _Optional[_Union[_common_pb2.Pose, _Mapping]] = ..., traffic: _Optional[_Iterable[_Union[_common_pb2.Pose, _Mapping]]] = ..., cameras: _Optional[_Iterable[str]] = ...) -> None: ...

class BatchRenderRgbReply(_message.Message):
    __slots__ = ("images", "scene")
    IMAGES_FIELD_NUMBER: _ClassVar[int]
    SCENE_FIELD_NUMBER: _ClassVar[int]
    images: _containers.RepeatedCompositeFieldContainer[_common_pb2.Image]
    scene: SceneLoad
    def __init__(self, images: _Optional[_Iterable[_Union[_common_pb2.Image, _Mapping]]] = ..., scene: _Optional[_Union[SceneLoad, _Mapping]] = ...) -> None: ...

class SceneLoad(_message.Message):
    __slots__ = ("hit", "seconds")
    HIT_FIELD_NUMBER: _ClassVar[int]
    SECONDS_FIELD_NUMBER: _ClassVar[int]
    hit: bool
    seconds: float
    def __init__(self, hit: _Optional[bool] = ..., seconds: _Optional[float] = ...) -> None: ...

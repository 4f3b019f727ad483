from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class LeaseRequest(_message.Message):
    __slots__ = ("worker_id",)
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    worker_id: str
    def __init__(self, worker_id: _Optional[str] = ...) -> None: ...

class LeaseEvent(_message.Message):
    __slots__ = ("assignment", "queue", "finished")
    ASSIGNMENT_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    FINISHED_FIELD_NUMBER: _ClassVar[int]
    assignment: Assignment
    queue: QueueStatus
    finished: Finished
    def __init__(self, assignment: _Optional[_Union[Assignment, _Mapping]] = ..., queue: _Optional[_Union[QueueStatus, _Mapping]] = ..., finished: _Optional[_Union[Finished, _Mapping]] = ...) -> None: ...

class Assignment(_message.Message):
    __slots__ = ("lease_id", "uuid", "scene", "seed", "first_wave", "attempt", "instances", "waited_s")
    class InstancesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: Instance
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[Instance, _Mapping]] = ...) -> None: ...
    LEASE_ID_FIELD_NUMBER: _ClassVar[int]
    UUID_FIELD_NUMBER: _ClassVar[int]
    SCENE_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    FIRST_WAVE_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    INSTANCES_FIELD_NUMBER: _ClassVar[int]
    WAITED_S_FIELD_NUMBER: _ClassVar[int]
    lease_id: int
    uuid: str
    scene: str
    seed: int
    first_wave: bool
    attempt: int
    instances: _containers.MessageMap[str, Instance]
    waited_s: float
    def __init__(self, lease_id: _Optional[int] = ..., uuid: _Optional[str] = ..., scene: _Optional[str] = ..., seed: _Optional[int] = ..., first_wave: _Optional[bool] = ..., attempt: _Optional[int] = ..., instances: _Optional[_Mapping[str, Instance]] = ..., waited_s: _Optional[float] = ...) -> None: ...

class Instance(_message.Message):
    __slots__ = ("name", "address")
    NAME_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    name: str
    address: str
    def __init__(self, name: _Optional[str] = ..., address: _Optional[str] = ...) -> None: ...

class QueueStatus(_message.Message):
    __slots__ = ("pending",)
    PENDING_FIELD_NUMBER: _ClassVar[int]
    pending: int
    def __init__(self, pending: _Optional[int] = ...) -> None: ...

class Finished(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ReportRequest(_message.Message):
    __slots__ = ("worker_id", "lease_id", "completed", "error")
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    LEASE_ID_FIELD_NUMBER: _ClassVar[int]
    COMPLETED_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    worker_id: str
    lease_id: int
    completed: bool
    error: str
    def __init__(self, worker_id: _Optional[str] = ..., lease_id: _Optional[int] = ..., completed: _Optional[bool] = ..., error: _Optional[str] = ...) -> None: ...

class ReportReply(_message.Message):
    __slots__ = ("verdict",)
    class Verdict(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        VERDICT_UNSPECIFIED: _ClassVar[ReportReply.Verdict]
        RECORDED: _ClassVar[ReportReply.Verdict]
        RETRY: _ClassVar[ReportReply.Verdict]
        ABANDONED: _ClassVar[ReportReply.Verdict]
    VERDICT_UNSPECIFIED: ReportReply.Verdict
    RECORDED: ReportReply.Verdict
    RETRY: ReportReply.Verdict
    ABANDONED: ReportReply.Verdict
    VERDICT_FIELD_NUMBER: _ClassVar[int]
    verdict: ReportReply.Verdict
    def __init__(self, verdict: _Optional[_Union[ReportReply.Verdict, str]] = ...) -> None: ...

from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable
from typing import ClassVar as _ClassVar, Optional as _Optional

DESCRIPTOR: _descriptor.FileDescriptor

class LearnerState(_message.Message):
    __slots__ = ("protocol_version", "instance_id", "run_id", "address", "weight", "usable_streams", "has_ended")
    PROTOCOL_VERSION_FIELD_NUMBER: _ClassVar[int]
    INSTANCE_ID_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    USABLE_STREAMS_FIELD_NUMBER: _ClassVar[int]
    HAS_ENDED_FIELD_NUMBER: _ClassVar[int]
    protocol_version: int
    instance_id: str
    run_id: str
    address: str
    weight: float
    usable_streams: int
    has_ended: bool
    def __init__(self, protocol_version: _Optional[int] = ..., instance_id: _Optional[str] = ..., run_id: _Optional[str] = ..., address: _Optional[str] = ..., weight: _Optional[float] = ..., usable_streams: _Optional[int] = ..., has_ended: bool = ...) -> None: ...

class LearnerShare(_message.Message):
    __slots__ = ("streams",)
    STREAMS_FIELD_NUMBER: _ClassVar[int]
    streams: int
    def __init__(self, streams: _Optional[int] = ...) -> None: ...

class StreamState(_message.Message):
    __slots__ = ("protocol_version", "instance_id", "env_id", "wanted_run", "playing", "refused_by")
    PROTOCOL_VERSION_FIELD_NUMBER: _ClassVar[int]
    INSTANCE_ID_FIELD_NUMBER: _ClassVar[int]
    ENV_ID_FIELD_NUMBER: _ClassVar[int]
    WANTED_RUN_FIELD_NUMBER: _ClassVar[int]
    PLAYING_FIELD_NUMBER: _ClassVar[int]
    REFUSED_BY_FIELD_NUMBER: _ClassVar[int]
    protocol_version: int
    instance_id: str
    env_id: str
    wanted_run: str
    playing: str
    refused_by: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, protocol_version: _Optional[int] = ..., instance_id: _Optional[str] = ..., env_id: _Optional[str] = ..., wanted_run: _Optional[str] = ..., playing: _Optional[str] = ..., refused_by: _Optional[_Iterable[str]] = ...) -> None: ...

class Assignment(_message.Message):
    __slots__ = ("learner_id", "run_id", "address")
    LEARNER_ID_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    learner_id: str
    run_id: str
    address: str
    def __init__(self, learner_id: _Optional[str] = ..., run_id: _Optional[str] = ..., address: _Optional[str] = ...) -> None: ...

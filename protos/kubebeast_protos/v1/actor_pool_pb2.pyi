from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class DType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DTYPE_INVALID: _ClassVar[DType]
    DTYPE_UINT8: _ClassVar[DType]
    DTYPE_INT8: _ClassVar[DType]
    DTYPE_INT16: _ClassVar[DType]
    DTYPE_INT32: _ClassVar[DType]
    DTYPE_INT64: _ClassVar[DType]
    DTYPE_FLOAT32: _ClassVar[DType]
    DTYPE_FLOAT64: _ClassVar[DType]
    DTYPE_BOOL: _ClassVar[DType]

class Compression(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    COMPRESSION_UNSPECIFIED: _ClassVar[Compression]
    COMPRESSION_NONE: _ClassVar[Compression]
    COMPRESSION_LZ4: _ClassVar[Compression]

class Role(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ROLE_UNSPECIFIED: _ClassVar[Role]
    ROLE_ACTION_MASK: _ClassVar[Role]
DTYPE_INVALID: DType
DTYPE_UINT8: DType
DTYPE_INT8: DType
DTYPE_INT16: DType
DTYPE_INT32: DType
DTYPE_INT64: DType
DTYPE_FLOAT32: DType
DTYPE_FLOAT64: DType
DTYPE_BOOL: DType
COMPRESSION_UNSPECIFIED: Compression
COMPRESSION_NONE: Compression
COMPRESSION_LZ4: Compression
ROLE_UNSPECIFIED: Role
ROLE_ACTION_MASK: Role

class ActRequest(_message.Message):
    __slots__ = ("hello", "observations", "bye")
    HELLO_FIELD_NUMBER: _ClassVar[int]
    OBSERVATIONS_FIELD_NUMBER: _ClassVar[int]
    BYE_FIELD_NUMBER: _ClassVar[int]
    hello: Hello
    observations: Observations
    bye: Bye
    def __init__(self, hello: _Optional[_Union[Hello, _Mapping]] = ..., observations: _Optional[_Union[Observations, _Mapping]] = ..., bye: _Optional[_Union[Bye, _Mapping]] = ...) -> None: ...

class ActResponse(_message.Message):
    __slots__ = ("welcome", "actions", "end")
    WELCOME_FIELD_NUMBER: _ClassVar[int]
    ACTIONS_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    welcome: Welcome
    actions: Actions
    end: End
    def __init__(self, welcome: _Optional[_Union[Welcome, _Mapping]] = ..., actions: _Optional[_Union[Actions, _Mapping]] = ..., end: _Optional[_Union[End, _Mapping]] = ...) -> None: ...

class LeafSpec(_message.Message):
    __slots__ = ("path", "dtype", "shape", "frame_stack", "num_categories", "bounded", "role")
    PATH_FIELD_NUMBER: _ClassVar[int]
    DTYPE_FIELD_NUMBER: _ClassVar[int]
    SHAPE_FIELD_NUMBER: _ClassVar[int]
    FRAME_STACK_FIELD_NUMBER: _ClassVar[int]
    NUM_CATEGORIES_FIELD_NUMBER: _ClassVar[int]
    BOUNDED_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    path: str
    dtype: DType
    shape: _containers.RepeatedScalarFieldContainer[int]
    frame_stack: int
    num_categories: int
    bounded: bool
    role: Role
    def __init__(self, path: _Optional[str] = ..., dtype: _Optional[_Union[DType, str]] = ..., shape: _Optional[_Iterable[int]] = ..., frame_stack: _Optional[int] = ..., num_categories: _Optional[int] = ..., bounded: bool = ..., role: _Optional[_Union[Role, str]] = ...) -> None: ...

class Hello(_message.Message):
    __slots__ = ("protocol_version", "env_server_id", "instance_id", "env_id", "num_envs", "observation", "action", "offered_compression", "protocol_minor", "env_config", "run", "num_agents", "takes_turns")
    PROTOCOL_VERSION_FIELD_NUMBER: _ClassVar[int]
    ENV_SERVER_ID_FIELD_NUMBER: _ClassVar[int]
    INSTANCE_ID_FIELD_NUMBER: _ClassVar[int]
    ENV_ID_FIELD_NUMBER: _ClassVar[int]
    NUM_ENVS_FIELD_NUMBER: _ClassVar[int]
    OBSERVATION_FIELD_NUMBER: _ClassVar[int]
    ACTION_FIELD_NUMBER: _ClassVar[int]
    OFFERED_COMPRESSION_FIELD_NUMBER: _ClassVar[int]
    PROTOCOL_MINOR_FIELD_NUMBER: _ClassVar[int]
    ENV_CONFIG_FIELD_NUMBER: _ClassVar[int]
    RUN_FIELD_NUMBER: _ClassVar[int]
    NUM_AGENTS_FIELD_NUMBER: _ClassVar[int]
    TAKES_TURNS_FIELD_NUMBER: _ClassVar[int]
    protocol_version: int
    env_server_id: str
    instance_id: str
    env_id: str
    num_envs: int
    observation: _containers.RepeatedCompositeFieldContainer[LeafSpec]
    action: _containers.RepeatedCompositeFieldContainer[LeafSpec]
    offered_compression: _containers.RepeatedScalarFieldContainer[Compression]
    protocol_minor: int
    env_config: str
    run: str
    num_agents: int
    takes_turns: bool
    def __init__(self, protocol_version: _Optional[int] = ..., env_server_id: _Optional[str] = ..., instance_id: _Optional[str] = ..., env_id: _Optional[str] = ..., num_envs: _Optional[int] = ..., observation: _Optional[_Iterable[_Union[LeafSpec, _Mapping]]] = ..., action: _Optional[_Iterable[_Union[LeafSpec, _Mapping]]] = ..., offered_compression: _Optional[_Iterable[_Union[Compression, str]]] = ..., protocol_minor: _Optional[int] = ..., env_config: _Optional[str] = ..., run: _Optional[str] = ..., num_agents: _Optional[int] = ..., takes_turns: bool = ...) -> None: ...

class Welcome(_message.Message):
    __slots__ = ("run_id", "compression", "protocol_version", "protocol_minor", "log_info", "episode_options")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    COMPRESSION_FIELD_NUMBER: _ClassVar[int]
    PROTOCOL_VERSION_FIELD_NUMBER: _ClassVar[int]
    PROTOCOL_MINOR_FIELD_NUMBER: _ClassVar[int]
    LOG_INFO_FIELD_NUMBER: _ClassVar[int]
    EPISODE_OPTIONS_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    compression: _containers.RepeatedScalarFieldContainer[Compression]
    protocol_version: int
    protocol_minor: int
    log_info: _containers.RepeatedScalarFieldContainer[str]
    episode_options: _containers.RepeatedCompositeFieldContainer[EpisodeOptions]
    def __init__(self, run_id: _Optional[str] = ..., compression: _Optional[_Iterable[_Union[Compression, str]]] = ..., protocol_version: _Optional[int] = ..., protocol_minor: _Optional[int] = ..., log_info: _Optional[_Iterable[str]] = ..., episode_options: _Optional[_Iterable[_Union[EpisodeOptions, _Mapping]]] = ...) -> None: ...

class EpisodeOptions(_message.Message):
    __slots__ = ("env", "options")
    ENV_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    env: int
    options: str
    def __init__(self, env: _Optional[int] = ..., options: _Optional[str] = ...) -> None: ...

class Observations(_message.Message):
    __slots__ = ("step", "leaves", "rewards", "terminated", "truncated", "is_first", "episodes", "interrupted", "env_us", "waiting")
    STEP_FIELD_NUMBER: _ClassVar[int]
    LEAVES_FIELD_NUMBER: _ClassVar[int]
    REWARDS_FIELD_NUMBER: _ClassVar[int]
    TERMINATED_FIELD_NUMBER: _ClassVar[int]
    TRUNCATED_FIELD_NUMBER: _ClassVar[int]
    IS_FIRST_FIELD_NUMBER: _ClassVar[int]
    EPISODES_FIELD_NUMBER: _ClassVar[int]
    INTERRUPTED_FIELD_NUMBER: _ClassVar[int]
    ENV_US_FIELD_NUMBER: _ClassVar[int]
    WAITING_FIELD_NUMBER: _ClassVar[int]
    step: int
    leaves: _containers.RepeatedScalarFieldContainer[bytes]
    rewards: bytes
    terminated: bytes
    truncated: bytes
    is_first: bytes
    episodes: _containers.RepeatedCompositeFieldContainer[Episode]
    interrupted: bytes
    env_us: int
    waiting: bytes
    def __init__(self, step: _Optional[int] = ..., leaves: _Optional[_Iterable[bytes]] = ..., rewards: _Optional[bytes] = ..., terminated: _Optional[bytes] = ..., truncated: _Optional[bytes] = ..., is_first: _Optional[bytes] = ..., episodes: _Optional[_Iterable[_Union[Episode, _Mapping]]] = ..., interrupted: _Optional[bytes] = ..., env_us: _Optional[int] = ..., waiting: _Optional[bytes] = ...) -> None: ...

class Episode(_message.Message):
    __slots__ = ("env", "episode_return", "length", "info", "exact_return")
    ENV_FIELD_NUMBER: _ClassVar[int]
    EPISODE_RETURN_FIELD_NUMBER: _ClassVar[int]
    LENGTH_FIELD_NUMBER: _ClassVar[int]
    INFO_FIELD_NUMBER: _ClassVar[int]
    EXACT_RETURN_FIELD_NUMBER: _ClassVar[int]
    env: int
    episode_return: float
    length: int
    info: _containers.RepeatedScalarFieldContainer[float]
    exact_return: float
    def __init__(self, env: _Optional[int] = ..., episode_return: _Optional[float] = ..., length: _Optional[int] = ..., info: _Optional[_Iterable[float]] = ..., exact_return: _Optional[float] = ...) -> None: ...

class Actions(_message.Message):
    __slots__ = ("step", "leaves", "traced", "episode_options")
    STEP_FIELD_NUMBER: _ClassVar[int]
    LEAVES_FIELD_NUMBER: _ClassVar[int]
    TRACED_FIELD_NUMBER: _ClassVar[int]
    EPISODE_OPTIONS_FIELD_NUMBER: _ClassVar[int]
    step: int
    leaves: _containers.RepeatedScalarFieldContainer[bytes]
    traced: bool
    episode_options: _containers.RepeatedCompositeFieldContainer[EpisodeOptions]
    def __init__(self, step: _Optional[int] = ..., leaves: _Optional[_Iterable[bytes]] = ..., traced: bool = ..., episode_options: _Optional[_Iterable[_Union[EpisodeOptions, _Mapping]]] = ...) -> None: ...

class Bye(_message.Message):
    __slots__ = ("reason", "detail")
    class Reason(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        REASON_UNSPECIFIED: _ClassVar[Bye.Reason]
        REASON_SHUTDOWN: _ClassVar[Bye.Reason]
        REASON_TERMINATED: _ClassVar[Bye.Reason]
        REASON_ENVIRONMENT_FAILED: _ClassVar[Bye.Reason]
    REASON_UNSPECIFIED: Bye.Reason
    REASON_SHUTDOWN: Bye.Reason
    REASON_TERMINATED: Bye.Reason
    REASON_ENVIRONMENT_FAILED: Bye.Reason
    REASON_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    reason: Bye.Reason
    detail: str
    def __init__(self, reason: _Optional[_Union[Bye.Reason, str]] = ..., detail: _Optional[str] = ...) -> None: ...

class End(_message.Message):
    __slots__ = ("code", "detail")
    CODE_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    code: int
    detail: str
    def __init__(self, code: _Optional[int] = ..., detail: _Optional[str] = ...) -> None: ...

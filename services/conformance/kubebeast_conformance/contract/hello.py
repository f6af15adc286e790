"""Checker of a Hello."""

import json
import math
import re
from typing import Any

import numpy as np

from kubebeast_common.spec.limits import (
    DEFAULT_MESSAGE_MIB,
    MAX_DIMS,
    MAX_ENV_CONFIG_CHARACTERS,
    MAX_FRAME_STACK,
    MAX_ID_CHARACTERS,
    MAX_LEAVES,
    MAX_PATH_BYTES,
    MAX_RUN_BYTES,
)
from kubebeast_conformance.contract.leaves import dtype_of, num_choices
from kubebeast_conformance.contract.violation import require
from kubebeast_protos.v1 import PROTOCOL_VERSION
from kubebeast_protos.v1 import actor_pool_pb2 as pb

MAX_MESSAGE_BYTES = DEFAULT_MESSAGE_MIB << 20
_FLOATS = (pb.DTYPE_FLOAT32, pb.DTYPE_FLOAT64)
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')


def check_hello(hello: pb.Hello) -> None:
    """Raises ViolationError if the Hello breaks one of the rules H2 to H9 or H12 to H14."""
    require(
        hello.protocol_version == PROTOCOL_VERSION, "H2", "hello.protocol_version", f"{hello.protocol_version}, not 1"
    )
    for name, least in (("env_server_id", 1), ("instance_id", 1), ("env_id", 0)):
        text = getattr(hello, name)
        require(least <= len(text) <= MAX_ID_CHARACTERS, "H3", f"hello.{name}", f"{len(text)} characters")
        require(_is_printable(text), "H3", f"hello.{name}", f"{text!r} is not printable ASCII")
    require(hello.num_envs >= 1, "H4", "hello.num_envs", "0")
    for name in ("observation", "action"):
        _check_leaves(hello, name)
    _check_roles(hello)
    num_offered, num_leaves = len(hello.offered_compression), len(hello.observation)
    require(
        num_offered <= num_leaves, "H8", "hello.offered_compression", f"{num_offered} entries for {num_leaves} leaves"
    )
    _check_size(hello)
    _check_env_config(hello.env_config)
    num_bytes = len(hello.run.encode())
    require(num_bytes <= MAX_RUN_BYTES, "H13", "hello.run", f"{num_bytes} bytes")
    num_agents = max(hello.num_agents, 1)
    require(hello.num_envs % num_agents == 0, "H14", "hello.num_agents", f"{num_agents} for {hello.num_envs} rows")
    require(not hello.takes_turns or num_agents > 1, "H14", "hello.takes_turns", f"true for {num_agents} agents")


def _is_printable(text: str) -> bool:
    return text.isascii() and text.isprintable()


def _check_leaves(hello: pb.Hello, name: str) -> None:
    leaves = getattr(hello, name)
    require(1 <= len(leaves) <= MAX_LEAVES, "H5", f"hello.{name}", f"{len(leaves)} leaves")
    paths: set[str] = set()
    for i, leaf in enumerate(leaves):
        place = f"hello.{name}[{i}]"
        try:
            dtype = dtype_of(leaf)
        except KeyError:
            require(False, "H5", f"{place}.dtype", f"{leaf.dtype} is no type")
            raise
        require(len(leaf.path.encode()) <= MAX_PATH_BYTES, "H5", f"{place}.path", "too long")
        require(leaf.path not in paths, "H5", f"{place}.path", f"{leaf.path!r} twice")
        paths.add(leaf.path)
        require(len(leaf.shape) <= MAX_DIMS, "H5", f"{place}.shape", f"{len(leaf.shape)} dimensions")
        require(all(dim >= 0 for dim in leaf.shape), "H5", f"{place}.shape", f"{list(leaf.shape)}")
        reason = f"{leaf.num_categories} does not fit {dtype.name}"
        require(0 <= leaf.num_categories <= _most_categories(dtype), "H5", f"{place}.num_categories", reason)


def _most_categories(dtype: np.dtype[Any]) -> int:
    if dtype.kind == "f":
        return 0
    return 2 if dtype.kind == "b" else int(np.iinfo(dtype).max) + 1


def _check_roles(hello: pb.Hello) -> None:
    num_masks = 0
    for i, leaf in enumerate(hello.observation):
        place = f"hello.observation[{i}]"
        require(leaf.frame_stack <= MAX_FRAME_STACK, "H6", f"{place}.frame_stack", f"{leaf.frame_stack}")
        require(not leaf.bounded, "H6", f"{place}.bounded", "only actions are")
        if leaf.role == pb.ROLE_ACTION_MASK:
            num_masks += 1
            require(num_masks == 1, "H7", f"{place}.role", "a second action mask")
            require(leaf.dtype == pb.DTYPE_BOOL, "H7", f"{place}.dtype", "an action mask is DTYPE_BOOL")
            require(leaf.frame_stack <= 1, "H7", f"{place}.frame_stack", "an action mask has no stack")
            size, choices = math.prod(leaf.shape), num_choices(hello)
            require(size == choices, "H12", f"{place}.shape", f"{size} elements for {choices} categories")
    for i, leaf in enumerate(hello.action):
        place = f"hello.action[{i}]"
        require(leaf.frame_stack <= 1, "H6", f"{place}.frame_stack", "actions are not stacked")
        require(not leaf.bounded or leaf.dtype in _FLOATS, "H6", f"{place}.bounded", "only floats are")
        require(leaf.role == pb.ROLE_UNSPECIFIED, "H7", f"{place}.role", "only observations hold an action mask")


def _check_size(hello: pb.Hello) -> None:
    row_bytes = sum(
        math.prod(leaf.shape) * dtype_of(leaf).itemsize * max(leaf.frame_stack, 1)
        for leaf in [*hello.observation, *hello.action]
    )
    total = row_bytes * hello.num_envs
    require(total <= MAX_MESSAGE_BYTES, "H4", "hello.num_envs", f"a step of {total} bytes is more than a message")


def _check_env_config(text: str) -> None:
    place = "hello.env_config"
    require(len(text) <= MAX_ENV_CONFIG_CHARACTERS, "H9", place, f"{len(text)} characters")
    require(_is_printable(text), "H9", place, "not printable ASCII")
    if not text:
        return
    try:
        content = json.loads(text, object_pairs_hook=_sorted_object)
    except ValueError as error:
        require(False, "H9", place, f"no JSON: {error}")
        raise
    require(isinstance(content, dict), "H9", place, "no object")
    require(" " not in _STRING.sub("", text), "H9", place, "spaces between its parts")


def _sorted_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = [name for name, _ in pairs]
    require(names == sorted(names), "H9", "hello.env_config", f"keys are not sorted: {names}")
    return dict(pairs)

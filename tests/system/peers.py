"""An older env-server, or one with frame stacks, configured by environment variables of its process.

It is the real one in everything else; environments.py applies the variables.
"""

import os
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from kubebeast_common.spec.leaves import Leaf
from kubebeast_envserver.rows import row_builder
from kubebeast_envserver.rows.action_mask import ActionMask, find_action_mask
from kubebeast_envserver.stream import session
from kubebeast_envserver.stream.codec import check_welcome, encode_observations
from kubebeast_protos.v1 import actor_pool_pb2 as pb

MAJOR, MINOR = "SYSTEM_MAJOR", "SYSTEM_MINOR"
"""Versions of the contract that it speaks."""
FRAME_STACK = "SYSTEM_FRAME_STACK"
"""Frames in a stack of every observation leaf."""


def obey() -> None:
    if major := os.environ.get(MAJOR):
        patch.object(session, "PROTOCOL_VERSION", int(major)).start()
    if minor := os.environ.get(MINOR):
        _speak_minor(int(minor))
    if frames := os.environ.get(FRAME_STACK):
        _stack_frames(int(frames))


def _speak_minor(minor: int) -> None:
    """Neither accepts nor sends the additions of later minor versions."""

    def check(welcome: pb.Welcome, offered: Any) -> list[pb.Compression]:
        welcome.protocol_minor = min(minor, welcome.protocol_minor)
        return check_welcome(welcome, offered)

    def encode(step: int, rows: Any, leaves: Any, compression: Any, env_us: int, info: Any) -> pb.ActRequest:
        return encode_observations(step, rows, leaves, compression, env_us if minor >= 2 else 0, info)

    patch.multiple(session, PROTOCOL_MINOR=minor, check_welcome=check, encode_observations=encode).start()


def _stack_frames(frames: int) -> None:
    """gymnasium's environments send whole rows; these send newest frames, as the games of the Atari presets do."""

    def stacked(observation: Any, action: Any) -> tuple[list[Leaf], ActionMask | None]:
        leaves, mask = find_action_mask(observation, action)
        return [leaf if leaf.num_categories else replace(leaf, frame_stack=frames) for leaf in leaves], mask

    patch.object(row_builder, "find_action_mask", stacked).start()

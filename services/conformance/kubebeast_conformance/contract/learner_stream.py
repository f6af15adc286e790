"""Checker of the messages of a learner, one at a time."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError

from kubebeast_common.spec.episode_options import from_text
from kubebeast_common.spec.limits import MAX_LOG_INFO
from kubebeast_common.spec.log_info import is_key
from kubebeast_conformance.contract.leaves import check_elements, dtype_of, frame_elements
from kubebeast_conformance.contract.mask import check_choices
from kubebeast_conformance.contract.rows import ADDITIONS
from kubebeast_conformance.contract.violation import ViolationError, require
from kubebeast_protos.v1 import PROTOCOL_VERSION
from kubebeast_protos.v1 import actor_pool_pb2 as pb


class LearnerStream:
    """A checker of one stream with this Hello: `open` for the Welcome, `check` for each Actions."""

    def __init__(self, hello: pb.Hello) -> None:
        self._hello = hello
        self._compression: list[int] = []

    def open(self, data: bytes) -> pb.Welcome:
        """Checks the first message and returns the Welcome. Raises ViolationError."""
        try:
            response = _parsed(data, "W1")
            require(response.HasField("welcome"), "W1", "", "the first message is no Welcome")
            self._check_welcome(response.welcome)
        except ViolationError as error:
            error.message = data
            raise
        self._compression = list(response.welcome.compression)
        return response.welcome

    def check(self, data: bytes, observations: pb.Observations) -> pb.Actions:
        """Checks the answer to these Observations. Raises ViolationError."""
        try:
            response = _parsed(data, "A1")
            self._check_no_end(response)
            require(not response.HasField("welcome"), "W1", "welcome", "a second welcome")
            require(response.HasField("actions"), "A1", "", "no Actions")
            self._check_actions(response.actions, observations)
        except ViolationError as error:
            error.message = data
            raise
        return response.actions

    def _check_welcome(self, welcome: pb.Welcome) -> None:
        version = welcome.protocol_version
        require(version == PROTOCOL_VERSION, "W2", "welcome.protocol_version", f"{version}, not {PROTOCOL_VERSION}")
        leaves, entries = len(self._hello.observation), len(welcome.compression)
        require(entries == leaves, "W3", "welcome.compression", f"{entries} entries for {leaves} leaves")
        offered = [*self._hello.offered_compression, *[pb.COMPRESSION_NONE] * leaves]
        for i, (choice, offer) in enumerate(zip(welcome.compression, offered, strict=False)):
            fits = choice in (offer, pb.COMPRESSION_NONE, pb.COMPRESSION_UNSPECIFIED)
            require(fits, "W3", f"welcome.compression[{i}]", f"{choice}, offered was {offer}")
        require(welcome.run_id != "", "W4", "welcome.run_id", "empty")
        minor, keys = self._hello.protocol_minor, list(welcome.log_info)
        known = minor >= ADDITIONS["Welcome.log_info"]
        require(not keys or known, "V4", "welcome.log_info", f"in minor {minor}")
        require(len(keys) <= MAX_LOG_INFO, "W6", "welcome.log_info", f"{len(keys)} entries")
        for i, key in enumerate(keys):
            require(is_key(key), "W6", f"welcome.log_info[{i}]", f"{key!r}")
        self._check_options(welcome.episode_options, "W7", "welcome.episode_options", set(range(self._hello.num_envs)))

    def _check_no_end(self, response: pb.ActResponse) -> None:
        minor = self._hello.protocol_minor
        is_known = minor >= ADDITIONS["End"]
        require(not response.HasField("end") or is_known, "V4", "end", f"an End in minor {minor}")

    def _check_actions(self, actions: pb.Actions, observations: pb.Observations) -> None:
        step, minor = observations.step, self._hello.protocol_minor
        require(actions.step == step, "A1", "actions.step" if actions.step else "actions", f"{actions.step} for {step}")
        known = minor >= ADDITIONS["Actions.traced"]
        require(not actions.traced or known, "V4", "actions.traced", f"in minor {minor}")
        count, wanted = len(actions.leaves), len(self._hello.action)
        require(count == wanted, "A2", "actions", f"leaves: {count} for {wanted}")
        for i, (spec, data) in enumerate(zip(self._hello.action, actions.leaves, strict=True)):
            self._check_leaf(spec, data, f"actions.leaves[{i}]")
        self._check_masks(actions, observations)
        flags = zip(observations.terminated, observations.truncated, observations.is_first, strict=True)
        over = {env for env, (terminated, truncated, first) in enumerate(flags) if (terminated or truncated) > first}
        self._check_options(actions.episode_options, "A7", "actions.episode_options", over)

    def _check_options(self, entries: Sequence[pb.EpisodeOptions], rule: str, place: str, envs: set[int]) -> None:
        """Checks options of episodes, which may be for these environments."""
        minor, left = self._hello.protocol_minor, set(envs)
        known = minor >= ADDITIONS["Actions.episode_options"]
        require(not entries or known, "V4", place, f"in minor {minor}")
        for i, entry in enumerate(entries):
            require(entry.env in left, rule, f"{place}[{i}].env", f"{entry.env}, expected one of {sorted(left)}")
            left.remove(entry.env)
            try:
                from_text(entry.options)
            except ValueError as error:
                raise ViolationError(rule, f"{place}[{i}].options", str(error)) from error

    def _check_leaf(self, spec: pb.LeafSpec, data: bytes, place: str) -> None:
        dtype = dtype_of(spec)
        size = self._hello.num_envs * frame_elements(spec) * dtype.itemsize
        require(len(data) == size, "A2", place, f"{len(data)} bytes, expected {size}")
        elements: np.ndarray[Any, Any] = np.frombuffer(data, np.uint8 if dtype == np.bool_ else dtype)
        check_elements(elements, spec, place, finite="A4", in_range="A3")

    def _check_masks(self, actions: pb.Actions, observations: pb.Observations) -> None:
        """Checks actions of rows that do not end an episode against the mask. A mask compressed with LZ4 is ignored."""
        leaves = zip(self._hello.observation, observations.leaves, self._compression, strict=True)
        for spec, data, compression in leaves:
            if spec.role != pb.ROLE_ACTION_MASK or compression == pb.COMPRESSION_LZ4:
                continue
            masks = np.frombuffer(data, np.uint8).reshape(self._hello.num_envs, -1)
            for row, mask in enumerate(masks):
                if not observations.terminated[row] and not observations.truncated[row]:
                    check_choices(list(actions.leaves), mask, row, self._hello)


def _parsed(data: bytes, rule: str) -> pb.ActResponse:
    try:
        return pb.ActResponse.FromString(data)
    except DecodeError as error:
        raise ViolationError(rule, "", "the bytes are no ActResponse") from error

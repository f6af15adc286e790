"""Checks of the refusal of invalid Hellos."""

from collections.abc import Callable

import grpc

from kubebeast_conformance.check import Check
from kubebeast_conformance.learner.subject import Learner
from kubebeast_protos.v1 import PROTOCOL_VERSION
from kubebeast_protos.v1 import actor_pool_pb2 as pb

Change = Callable[[pb.Hello], object]
MASK = pb.LeafSpec(path="mask", dtype=pb.DTYPE_BOOL, shape=[3], role=pb.ROLE_ACTION_MASK)


def set_to(name: str, value: object) -> Change:
    return lambda hello: setattr(hello, name, value)


def leaf_set_to(name: str, value: object, leaves: str = "observation") -> Change:
    """Returns a change of a field of the first leaf."""
    return lambda hello: setattr(getattr(hello, leaves)[0], name, value)


def with_shape(*shape: int) -> Change:
    def change(hello: pb.Hello) -> None:
        hello.observation[0].shape[:] = shape

    return change


def same_path_twice(hello: pb.Hello) -> None:
    hello.observation.add().CopyFrom(hello.observation[0])


def two_masks(hello: pb.Hello) -> None:
    for path in ("mask", "other mask"):
        hello.observation.add().CopyFrom(MASK)
        hello.observation[-1].path = path


def mask_of_numbers(hello: pb.Hello) -> None:
    hello.observation.add().CopyFrom(MASK)
    hello.observation[-1].dtype = pb.DTYPE_UINT8


def too_many_offers(hello: pb.Hello) -> None:
    hello.offered_compression.extend([pb.COMPRESSION_NONE] * (len(hello.observation) + 1))


def other_leaves(hello: pb.Hello) -> None:
    hello.observation.add(path="conformance", dtype=pb.DTYPE_FLOAT32, shape=[7])


def agents_that_do_not_divide_the_rows(hello: pb.Hello) -> None:
    hello.num_agents = hello.num_envs + 1


INVALID: dict[str, tuple[str, Change]] = {
    "no env_server_id": ("env_server_id", set_to("env_server_id", "")),
    "env_server_id of 254 characters": ("env_server_id", set_to("env_server_id", "x" * 254)),
    "no instance_id": ("instance_id", set_to("instance_id", "")),
    "control character in instance_id": ("instance_id", set_to("instance_id", "a\nb")),
    "env_id of 254 characters": ("env_id", set_to("env_id", "x" * 254)),
    "no environments": ("num_envs", set_to("num_envs", 0)),
    "more environments than fit": ("num_envs", set_to("num_envs", 2**31)),
    "no observation": ("observation", lambda hello: hello.ClearField("observation")),
    "no action": ("action", lambda hello: hello.ClearField("action")),
    "unknown dtype": ("dtype", leaf_set_to("dtype", pb.DTYPE_INVALID)),
    "negative dimension": ("shape", with_shape(-1)),
    "huge shape": ("", with_shape(2**40, 2**40)),
    "path twice": ("path", same_path_twice),
    "path of 256 bytes": ("path", leaf_set_to("path", "x" * 256)),
    "negative num_categories": ("num_categories", leaf_set_to("num_categories", -1)),
    "stack of 257 frames": ("frame_stack", leaf_set_to("frame_stack", 257)),
    "stacked actions": ("action", leaf_set_to("frame_stack", 2, "action")),
    "bounded observation": ("bounded", leaf_set_to("bounded", True)),
    "two action masks": ("mask", two_masks),
    "mask of numbers": ("mask", mask_of_numbers),
    "offers for leaves that are not there": ("offered_compression", too_many_offers),
    "run of 254 bytes": ("run", set_to("run", "r" * 254)),
    "agents that do not divide the rows": ("num_agents", agents_that_do_not_divide_the_rows),
    "turns of one agent": ("takes_turns", set_to("takes_turns", True)),
    "env_config of 8193 characters": ("env_config", set_to("env_config", "x" * 8193)),
}
"""By title: a name that the text of the status must contain, and the change that breaks the Hello."""

DIFFERENT: dict[str, tuple[str, Change]] = {
    "other major version": ("protocol_version", set_to("protocol_version", PROTOCOL_VERSION + 1)),
    "another run": ("run", set_to("run", "conformance-other")),
    "other leaves than the run's": ("observation", other_leaves),
}


def is_refused(rule: str, code: grpc.StatusCode, names: str, change: Change) -> Callable[[Learner], None]:
    """Returns a check of one change. A witness stream checks that other streams continue."""

    def run(subject: Learner) -> None:
        with subject.joined() as witness:
            witness.step()
            with subject.stream(change) as stream:
                stream.send(pb.ActRequest(hello=stream.hello))
                stream.expect_status(rule, code, "in answer to a Hello that breaks the contract", names=names)
            witness.play(2, "C5")

    return run


def observations_first(subject: Learner) -> None:
    with subject.stream() as stream:
        stream.send(pb.ActRequest(observations=pb.Observations()))
        stream.expect_status("S2", grpc.StatusCode.INVALID_ARGUMENT, "if the first message is no Hello")


CHECKS = (
    *(
        Check(f"hello: {title}", ("S2", "C5"), is_refused("S2", grpc.StatusCode.INVALID_ARGUMENT, names, change))
        for title, (names, change) in INVALID.items()
    ),
    *(
        Check(f"hello: {title}", ("S1", "C5"), is_refused("S1", grpc.StatusCode.FAILED_PRECONDITION, names, change))
        for title, (names, change) in DIFFERENT.items()
    ),
    Check("hello: observations in its place", ("S2",), observations_first),
)

"""A Hello with an environment that no model takes is refused with the reason, and the learner waits for the next
one.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import grpc

import kubebeast_native as native
from harness.processes.env_server import EnvServer
from harness.processes.learner_process import LearnerProcess
from kubebeast_protos.v1 import actor_pool_pb2 as pb
from tests.integration.raw_stream import converse

PRECONDITION, INVALID = grpc.StatusCode.FAILED_PRECONDITION, grpc.StatusCode.INVALID_ARGUMENT
FLAGS = ("--unroll-length=10", "--batch-size=4", "--compile=off", "--log-interval-s=0.2")
EXIT_USAGE = 2
HUGE = 2**62


def leaf(dtype: pb.DType = pb.DTYPE_FLOAT32, *shape: int, **fields: Any) -> pb.LeafSpec:
    return pb.LeafSpec(dtype=dtype, shape=shape, **fields)


def hello(
    observation: Sequence[pb.LeafSpec] = (), action: Sequence[pb.LeafSpec] = (), env_id: str = "Bomb-v0"
) -> pb.ActRequest:
    """Returns a Hello of one environment: by default a vector and a choice of three."""
    message = pb.Hello(
        protocol_version=native.PROTOCOL_VERSION,
        protocol_minor=native.PROTOCOL_MINOR,
        env_server_id="bomb",
        instance_id="1",
        env_id=env_id,
        num_envs=1,
        observation=observation or [leaf(pb.DTYPE_FLOAT32, 4)],
        action=action or [leaf(pb.DTYPE_INT64, num_categories=3)],
    )
    return pb.ActRequest(hello=message)


IMAGE = leaf(pb.DTYPE_UINT8, 3, 84, 84, path="image")
BOMBS = {
    "10^8 actions": (hello(action=[leaf(pb.DTYPE_INT64, num_categories=10**8)]), PRECONDITION, "GiB"),
    "10^12 actions": (hello(action=[leaf(pb.DTYPE_INT64, num_categories=10**12)]), PRECONDITION, "numbers, at most"),
    "10^5 choices": (hello(action=[leaf(pb.DTYPE_INT64, 10**5, num_categories=1000)]), PRECONDITION, "GiB"),
    "bool action": (hello(action=[leaf(pb.DTYPE_BOOL)]), PRECONDITION, "whole numbers without categories"),
    "action without categories": (hello(action=[leaf(pb.DTYPE_INT64)]), PRECONDITION, "without categories"),
    "action without elements": (hello(action=[leaf(pb.DTYPE_FLOAT32, 0)]), PRECONDITION, "nothing to choose"),
    "observation without elements": (hello([leaf(pb.DTYPE_FLOAT32, 0)]), PRECONDITION, "no element"),
    "bytes without elements": (hello([leaf(pb.DTYPE_UINT8, 0, 3)]), PRECONDITION, "no element"),
    "shape that overflows": (hello([leaf(pb.DTYPE_FLOAT32, 0, HUGE)]), INVALID, "a row is larger"),
    "large image": (hello([leaf(pb.DTYPE_UINT8, 3, 4000, 4000)]), PRECONDITION, "GiB"),
    "long vector": (hello([leaf(pb.DTYPE_FLOAT32, 10**7)]), PRECONDITION, "GiB"),
    "categories": (hello([leaf(pb.DTYPE_INT64, num_categories=HUGE)]), PRECONDITION, "numbers, at most"),
    "categories beside an image": (
        hello([IMAGE, leaf(pb.DTYPE_INT64, path="level", num_categories=HUGE)]),
        PRECONDITION,
        '"level"',
    ),
    "embedding beside an image": (
        hello([IMAGE, leaf(pb.DTYPE_INT64, path="level", num_categories=10**8)]),
        PRECONDITION,
        "GiB",
    ),
    "five dimensions": (hello([leaf(pb.DTYPE_UINT8, 2, 3, 84, 84, 4)]), PRECONDITION, "axes"),
    "mask of another size": (
        hello([leaf(path="a"), leaf(pb.DTYPE_BOOL, 99, path="mask", role=pb.ROLE_ACTION_MASK)]),
        PRECONDITION,
        "does not fit the action",
    ),
    "a mask alone": (hello([leaf(pb.DTYPE_BOOL, 3, role=pb.ROLE_ACTION_MASK)]), PRECONDITION, "no leaf"),
    "control characters": (
        hello([leaf(pb.DTYPE_UINT8, 2, 3, 84, 84, 4, path="[/red]\n\x1b[31mEVIL")]),
        PRECONDITION,
        "[/red]  [31mEVIL",
    ),
}


def test_specs_that_no_model_takes_are_refused_and_the_next_env_server_trains(tmp_path: Path) -> None:
    with LearnerProcess(tmp_path, *FLAGS, warm=True) as learner:
        learner.wait_listening()
        for name, (bomb, code, reason) in BOMBS.items():
            status, details = converse(learner.address, [bomb])
            assert status is code and reason in details, f"{name}: {status} {details}"
            again = converse(learner.address, [bomb])
            assert again == (status, details), f"{name}: the same for whoever comes again"
        with EnvServer(0, learner.address, tmp_path, env="CartPole-v1"):
            learner.wait_for_steps(100)
        num_tried = learner.log().count("refusing the env-servers of Bomb-v0")
        assert num_tried == sum(code is PRECONDITION for _, code, _ in BOMBS.values()), "each is tried once"
        assert "\x1b" not in learner.log()


def test_a_named_environment_that_no_model_takes_ends_the_learner(tmp_path: Path) -> None:
    with LearnerProcess(tmp_path, *FLAGS, "--env=Bomb-v0", warm=True) as learner:
        learner.wait_listening()
        status, _ = converse(learner.address, [BOMBS["bool action"][0]])
        assert status is grpc.StatusCode.UNAVAILABLE
        assert learner.wait() == EXIT_USAGE

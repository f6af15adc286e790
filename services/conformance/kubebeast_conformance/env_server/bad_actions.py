"""Checks of an env-server's reaction to invalid Actions."""

from collections.abc import Callable

import numpy as np

from kubebeast_conformance.check import Check, SkippedError
from kubebeast_conformance.contract.leaves import dtype_of
from kubebeast_conformance.contract.rows import ADDITIONS
from kubebeast_conformance.env_server.subject import EnvServer
from kubebeast_protos.v1 import actor_pool_pb2 as pb

Change = Callable[[pb.Hello, pb.Actions], pb.ActResponse | bytes]


def of_another_step(hello: pb.Hello, actions: pb.Actions) -> pb.ActResponse:
    actions.step += 1
    return pb.ActResponse(actions=actions)


def without_a_leaf(hello: pb.Hello, actions: pb.Actions) -> pb.ActResponse:
    actions.leaves.pop()
    return pb.ActResponse(actions=actions)


def too_short(hello: pb.Hello, actions: pb.Actions) -> pb.ActResponse:
    actions.leaves[0] = actions.leaves[0][:-1]
    return pb.ActResponse(actions=actions)


def beyond_the_categories(hello: pb.Hello, actions: pb.Actions) -> pb.ActResponse:
    for i, leaf in enumerate(hello.action):
        if leaf.num_categories and leaf.dtype != pb.DTYPE_BOOL:
            values = np.frombuffer(actions.leaves[i], dtype_of(leaf)).copy()
            values[-1] = leaf.num_categories
            actions.leaves[i] = values.tobytes()
            return pb.ActResponse(actions=actions)
    raise SkippedError("it has no categories")


def not_finite(hello: pb.Hello, actions: pb.Actions) -> pb.ActResponse:
    for i, leaf in enumerate(hello.action):
        if dtype_of(leaf).kind == "f":
            values = np.frombuffer(actions.leaves[i], dtype_of(leaf)).copy()
            values[-1] = np.nan
            actions.leaves[i] = values.tobytes()
            return pb.ActResponse(actions=actions)
    raise SkippedError("it has no actions of floats")


def options_of_no_environment(hello: pb.Hello, actions: pb.Actions) -> pb.ActResponse:
    if hello.protocol_minor < ADDITIONS["Actions.episode_options"]:
        raise SkippedError("it does not know options of episodes")
    actions.episode_options.add(env=hello.num_envs, options="{}")
    return pb.ActResponse(actions=actions)


def garbage(hello: pb.Hello, actions: pb.Actions) -> bytes:
    return b"\xff" * 20


def no_payload(hello: pb.Hello, actions: pb.Actions) -> bytes:
    return b""


def ends_where(change: Change) -> Callable[[EnvServer], None]:
    def run(subject: EnvServer) -> None:
        stream = subject.fresh_stream()
        stream.welcome()
        stream.play(3)
        stream.send(change(stream.hello, stream.actions()))
        stream.expect_end("A6", f"after Actions that break the contract: {_title(change)}")

    return run


def _title(change: Change) -> str:
    return change.__name__.replace("_", " ")


CHECKS = tuple(
    Check(f"actions: {_title(change)}", ("A6",), ends_where(change))
    for change in (
        of_another_step,
        without_a_leaf,
        too_short,
        beyond_the_categories,
        not_finite,
        options_of_no_environment,
        garbage,
        no_payload,
    )
)

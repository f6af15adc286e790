"""Checks of the Hello, and of the reaction to a Welcome."""

from collections.abc import Callable

from kubebeast_conformance.check import Check, SkippedError
from kubebeast_conformance.contract import answers
from kubebeast_conformance.contract.rows import ADDITIONS
from kubebeast_conformance.contract.violation import require
from kubebeast_conformance.env_server.subject import EnvServer
from kubebeast_protos.v1 import PROTOCOL_VERSION
from kubebeast_protos.v1 import actor_pool_pb2 as pb


def says_hello(subject: EnvServer) -> None:
    stream = subject.fresh_stream()
    stream.expect_silence("H1", subject.options.quiet_s, "before the Welcome", end="T1")


def shows_its_token(subject: EnvServer) -> None:
    if not subject.options.access.token_file or subject.is_dialed:
        raise SkippedError("takes --token-file, and an env-server that dials")
    subject.fresh_stream()


def has_ids_of_its_own(subject: EnvServer) -> None:
    before = subject.fresh_stream().hello
    if not subject.options.command:
        raise SkippedError("takes a command that starts the env-server")
    after = subject.fresh_stream().hello
    require(after.env_server_id == before.env_server_id, "H10", "hello.env_server_id", "changed with the process")
    require(after.instance_id != before.instance_id, "H10", "hello.instance_id", "the same in two processes")


def other_major(welcome: pb.Welcome) -> None:
    welcome.protocol_version = PROTOCOL_VERSION + 1


def too_many_compressions(welcome: pb.Welcome) -> None:
    welcome.compression.append(pb.COMPRESSION_NONE)


def compression_not_offered(welcome: pb.Welcome) -> None:
    if pb.COMPRESSION_NONE not in welcome.compression:
        raise SkippedError("every leaf offers LZ4")
    for i, choice in enumerate(welcome.compression):
        welcome.compression[i] = pb.COMPRESSION_LZ4 if choice == pb.COMPRESSION_NONE else choice


def of_another_run(welcome: pb.Welcome) -> None:
    welcome.run_id += "-other"


def options_of_no_environment(welcome: pb.Welcome) -> None:
    welcome.episode_options.add(env=1 << 31, options="{}")


def options_that_are_no_object(welcome: pb.Welcome) -> None:
    welcome.episode_options.add(env=0, options="[1]")


def ends_where(change: Callable[[pb.Welcome], None]) -> Callable[[EnvServer], None]:
    def run(subject: EnvServer) -> None:
        stream = subject.fresh_stream()
        welcome = answers.welcome(stream.hello)
        change(welcome)
        stream.send(pb.ActResponse(welcome=welcome))
        stream.expect_end("W5", "after a Welcome that breaks the contract")

    return run


def ends_with_options(change: Callable[[pb.Welcome], None]) -> Callable[[EnvServer], None]:
    def run(subject: EnvServer) -> None:
        if subject.fresh_stream().hello.protocol_minor < ADDITIONS["Welcome.episode_options"]:
            raise SkippedError("it does not know options of episodes")
        ends_where(change)(subject)

    return run


def ends_in_another_run(subject: EnvServer) -> None:
    if not subject.fresh_stream().hello.run:
        raise SkippedError("takes an env-server that serves one run only")
    ends_where(of_another_run)(subject)


def ends_without_welcome(subject: EnvServer) -> None:
    stream = subject.fresh_stream()
    stream.send(pb.ActResponse(actions=pb.Actions()))
    stream.expect_end("W5", "after Actions in place of the Welcome")


CHECKS = (
    Check(
        "hello",
        ("C1", "C2", "H1", "H2", "H3", "H4", "H5", "H6", "H7", "H8", "H9", "H12", "H13", "H14", "T1"),
        says_hello,
    ),
    Check("token", ("C4",), shows_its_token),
    Check("ids", ("H10",), has_ids_of_its_own),
    Check("welcome of another major version", ("W5",), ends_where(other_major)),
    Check("welcome with a compression too many", ("W5",), ends_where(too_many_compressions)),
    Check("welcome with a compression that was not offered", ("W5",), ends_where(compression_not_offered)),
    Check("welcome of another run", ("W5",), ends_in_another_run),
    Check("welcome with options of no environment", ("W5",), ends_with_options(options_of_no_environment)),
    Check("welcome with options that are no object", ("W5",), ends_with_options(options_that_are_no_object)),
    Check("actions in place of the welcome", ("W5",), ends_without_welcome),
)

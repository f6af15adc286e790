"""The generated Python code of the wire contract fits its definition."""

import importlib.metadata
from pathlib import Path

from kubebeast_protos.v1 import PROTOCOL_VERSION
from kubebeast_protos.v1 import actor_pool_pb2 as pb

PROTOS = Path(__file__).resolve().parents[3] / "protos"


def test_the_version_is_that_of_the_package() -> None:
    assert pb.DESCRIPTOR.package == f"kubebeast.v{PROTOCOL_VERSION}"


def test_a_message_survives_the_wire() -> None:
    episode = pb.Episode(env=3, episode_return=-21.0, length=813)
    request = pb.ActRequest(
        observations=pb.Observations(
            step=7,
            leaves=[b"\0\1"],
            rewards=bytes(4),
            terminated=b"\1",
            truncated=b"\0",
            is_first=b"\0",
            episodes=[episode],
        )
    )
    assert pb.ActRequest.FromString(request.SerializeToString()) == request


def test_every_enum_starts_with_an_invalid_or_unspecified_value() -> None:
    enums = [*pb.DESCRIPTOR.enum_types_by_name.values(), pb.Bye.DESCRIPTOR.enum_types_by_name["Reason"]]
    for enum in enums:
        assert enum.values_by_number[0].name.endswith(("_INVALID", "_UNSPECIFIED"))


def test_the_distribution_declares_the_runtime_its_code_was_generated_for() -> None:
    gencode = next(
        line.split()[-1]
        for line in (PROTOS / "kubebeast_protos/v1/actor_pool_pb2.py").read_text().splitlines()
        if line.startswith("# Protobuf Python Version:")
    )
    requirements = importlib.metadata.requires("kubebeast-protos") or []
    assert f"protobuf>={gencode.rpartition('.')[0]}" in requirements

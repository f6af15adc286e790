"""The env-server in docs/protocol.md plays with the real pool without changes."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

from kubebeast_protos.v1 import actor_pool_pb2 as pb
from tests.integration.playing_pool import PlayingPool, env_spec
from tests.unit.repository.documents import ROOT, blocks

GUIDE = ROOT / "docs" / "protocol.md"
OBSERVATION = pb.LeafSpec(dtype=pb.DTYPE_FLOAT32, shape=[1])
ACTION = pb.LeafSpec(dtype=pb.DTYPE_INT64, num_categories=2)


def test_the_env_server_of_the_guide_keeps_the_contract() -> None:
    (program,) = [block for block in blocks(GUIDE) if block.language == "python"]
    names: dict[str, Any] = {}
    exec(compile(program.text, str(program), "exec"), names)

    with PlayingPool(env_spec("Walk-v0", [OBSERVATION], [ACTION])) as pool, ThreadPoolExecutor(1) as peer:
        played = peer.submit(names["play"], pool.address, 15)
        pool.play_until(lambda: played.done() and not pool.stat("streams"))
        played.result()

        assert pool.stat("streams_ended_bye") == 1
        assert pool.stat("rows_received") == 15
        assert pool.stat("episodes") == 2

"""Valid messages of a learner: a Welcome, and random Actions for any leaves."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kubebeast_conformance.contract.leaves import dtype_of, frame_elements
from kubebeast_conformance.contract.rows import ADDITIONS
from kubebeast_protos.v1 import PROTOCOL_MINOR, PROTOCOL_VERSION
from kubebeast_protos.v1 import actor_pool_pb2 as pb

OPTIONS = '{"level":1}'
"""Options of an episode. Environments ignore keys that they do not know."""
RUN = "conformance"
"""Run id for env-servers that accept any run."""


def welcome(
    hello: pb.Hello, minor: int = PROTOCOL_MINOR, *, lz4: bool = True, with_options: bool = False
) -> pb.Welcome:
    """Returns a Welcome. If lz4, it selects LZ4 for leaves that offer it, except masks, which the suite reads.

    with_options: it has options of the first episode of each environment.
    """
    offered = [*hello.offered_compression, *[pb.COMPRESSION_NONE] * len(hello.observation)]
    chosen = [
        offer if lz4 and offer == pb.COMPRESSION_LZ4 and leaf.role != pb.ROLE_ACTION_MASK else pb.COMPRESSION_NONE
        for leaf, offer in zip(hello.observation, offered, strict=False)
    ]
    return pb.Welcome(
        run_id=hello.run or RUN,
        compression=chosen,
        protocol_version=PROTOCOL_VERSION,
        protocol_minor=minor,
        episode_options=[pb.EpisodeOptions(env=env, options=OPTIONS) for env in range(hello.num_envs * with_options)],
        log_info=["success"] if min(minor, hello.protocol_minor) >= ADDITIONS["Welcome.log_info"] else [],
    )


def actions(
    hello: pb.Hello,
    observations: pb.Observations,
    values: np.random.Generator,
    *,
    traced: bool = False,
    with_options: bool = False,
) -> pb.Actions:
    """Returns random Actions that respect the action mask, if any.

    with_options: they have options of the next episode of each environment with a final or interrupted row.
    """
    masks = _masks(hello, observations)
    leaves, start = [], 0
    for leaf in hello.action:
        count = frame_elements(leaf)
        drawn = [_row(leaf, None if masks is None else masks[row, start:], values) for row in range(hello.num_envs)]
        leaves.append(np.array(drawn, dtype_of(leaf)).tobytes())
        start += count * leaf.num_categories
    over = [a or b for a, b in zip(observations.terminated, observations.truncated, strict=True)]
    options = [pb.EpisodeOptions(env=env, options=OPTIONS) for env, is_over in enumerate(over) if is_over]
    return pb.Actions(
        step=observations.step, leaves=leaves, traced=traced, episode_options=options if with_options else []
    )


def _masks(hello: pb.Hello, observations: pb.Observations) -> NDArray[np.uint8] | None:
    for leaf, data in zip(hello.observation, observations.leaves, strict=True):
        if leaf.role == pb.ROLE_ACTION_MASK:
            return np.frombuffer(data, np.uint8).reshape(hello.num_envs, -1)
    return None


def _row(leaf: pb.LeafSpec, mask: NDArray[np.uint8] | None, values: np.random.Generator) -> list[Any]:
    """Returns the elements of one environment."""
    count, dtype = frame_elements(leaf), dtype_of(leaf)
    if dtype.kind == "f":
        return [*values.uniform(-1, 1, count)]
    if dtype.kind == "b" or not leaf.num_categories:
        return [*values.integers(2, size=count)]
    if mask is None:
        return [*values.integers(leaf.num_categories, size=count)]
    parts = mask[: count * leaf.num_categories].reshape(count, leaf.num_categories)
    return [values.choice(np.flatnonzero(part)) if part.any() else 0 for part in parts]

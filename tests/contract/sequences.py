"""Whole streams that keep to the contract: any Hello, any order of rows that the table allows, any values."""

from dataclasses import dataclass

from hypothesis import strategies as st

from kubebeast_conformance.contract.courses import Values, follow, since
from kubebeast_protos.v1 import PROTOCOL_MINOR, PROTOCOL_VERSION
from kubebeast_protos.v1 import actor_pool_pb2 as pb

MAX_STEPS = 50
DTYPES = [name for name in pb.DType.keys() if name != "DTYPE_INVALID"]  # noqa: SIM118 - it is no mapping
FLOATS = (pb.DTYPE_FLOAT32, pb.DTYPE_FLOAT64)


@dataclass(frozen=True, slots=True)
class Stream:
    """A Hello, Observations, perhaps a Bye."""

    hello: pb.Hello
    course: bytes
    """[num_steps * num_envs]: each byte chooses a row among the allowed ones."""
    seed: int
    """Seed of rewards and elements."""
    bye: pb.Bye | None

    @property
    def requests(self) -> list[pb.ActRequest]:
        steps = follow(self.hello, self.course, Values(self.seed, extreme=True))
        end = [] if self.bye is None else [pb.ActRequest(bye=self.bye)]
        return [pb.ActRequest(hello=self.hello), *steps, *end]


@st.composite
def leaf_specs(draw: st.DrawFn) -> list[pb.LeafSpec]:
    """Draws one to three leaves of an observation."""
    return [
        pb.LeafSpec(
            path=f"leaf{index}",
            dtype=draw(st.sampled_from(DTYPES)),
            shape=draw(st.lists(st.integers(0, 4), max_size=2)),
            frame_stack=draw(st.integers(0, 4)),
        )
        for index in range(draw(st.integers(1, 3)))
    ]


@st.composite
def hellos(draw: st.DrawFn) -> pb.Hello:
    leaves = draw(leaf_specs())
    for leaf in leaves:
        if leaf.dtype not in FLOATS:
            leaf.num_categories = draw(st.integers(0, 2 if leaf.dtype == pb.DTYPE_BOOL else 5))
    method = st.sampled_from(pb.Compression.keys())
    minor, num_agents = draw(st.integers(0, PROTOCOL_MINOR)), draw(st.integers(1, 3))
    knows_agents = minor >= since("Hello.num_agents")
    return pb.Hello(
        protocol_version=PROTOCOL_VERSION,
        protocol_minor=minor,
        num_agents=num_agents if knows_agents else 0,
        takes_turns=knows_agents and num_agents > 1 and draw(st.booleans()),
        env_server_id="drawn",
        instance_id="drawn",
        env_id="Drawn-v0",
        num_envs=draw(st.integers(1, 8 // num_agents)) * num_agents,
        observation=leaves,
        action=[pb.LeafSpec(dtype=pb.DTYPE_INT64, num_categories=3)],
        offered_compression=draw(st.lists(method, max_size=len(leaves))),
    )


@st.composite
def streams(draw: st.DrawFn) -> Stream:
    hello = draw(hellos())
    num_rows = draw(st.integers(0, MAX_STEPS)) * hello.num_envs
    reasons = [reason for name, reason in pb.Bye.Reason.items() if since(f"Bye.{name}") <= hello.protocol_minor]
    byes = st.builds(pb.Bye, reason=st.sampled_from(reasons), detail=st.text(max_size=200))
    course, seed = draw(st.binary(min_size=num_rows, max_size=num_rows)), draw(st.integers(0, 2**32 - 1))
    return Stream(hello, course, seed, draw(st.none() | byes))

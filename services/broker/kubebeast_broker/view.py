"""The state of a broker at one moment, as its pages show it."""

from collections.abc import Mapping
from typing import NamedTuple

from kubebeast_broker.broker import Broker


class RunView(NamedTuple):
    """A run with at least one learner. The field names are keys of the JSON object."""

    run_id: str
    learners: int
    addresses: list[str]
    weight: float
    """Sum over its learners."""
    usable_streams: int
    """Streams that its learners could use; 0: any number."""
    share: float
    """Streams that it is due."""
    streams: int
    """Streams that are assigned to it."""
    playing: int
    """Streams that play with a learner of it."""
    stream_seconds: float
    """Time that streams have played with learners of it, since the start of the broker."""


class StreamView(NamedTuple):
    """A connected stream."""

    instance_id: str
    env_id: str
    run_id: str
    """Run that it is assigned to; empty: none."""
    playing: str
    """Run that it plays for; empty: none that is registered."""
    refused_by: int
    """Learners that have refused it, or that it cannot reach."""


class View(NamedTuple):
    runs: list[RunView]
    streams: list[StreamView]
    num_moves: int
    num_lost: int
    num_refused: Mapping[str, int]


def look_at(broker: Broker, num_refused: Mapping[str, int]) -> View:
    """Returns the present state. For the event loop of the broker."""
    runs = dict.fromkeys(call.name.run_id for call in broker.learners.values())
    run_of = {name: call.name.run_id for name, call in broker.learners.items()}
    streams = [
        StreamView(
            call.name.instance_id,
            call.name.env_id,
            run_of.get(stream.learner, ""),
            run_of.get(stream.playing, ""),
            len(stream.refused_by),
        )
        for call, stream in ((call, broker.assigner.streams[key]) for key, call in broker.streams.items())
    ]
    return View(
        [_run_view(broker, run_id) for run_id in runs],
        streams,
        broker.assigner.num_moves,
        broker.num_lost,
        dict(num_refused),
    )


def _run_view(broker: Broker, run_id: str) -> RunView:
    names = [name for name, call in broker.learners.items() if call.name.run_id == run_id]
    learners = [broker.assigner.learners[name] for name in names]
    usables = [learner.claim.usable for learner in learners]
    return RunView(
        run_id,
        len(names),
        [broker.learners[name].name.address for name in names],
        sum(learner.claim.weight for learner in learners),
        0 if any(usable == 0 for usable in usables) else sum(usables),
        sum(broker.assigner.shares.get(name, 0.0) for name in names),
        sum(len(learner.streams) for learner in learners),
        sum(learner.num_playing for learner in learners),
        broker.run_seconds.get(run_id, 0.0),
    )

"""The streams of a learner as JSON, for monitoring: no metric has a series for each."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from kubebeast_common.spec.limits import MAX_ID_CHARACTERS
from kubebeast_common.text import printable

if TYPE_CHECKING:
    from kubebeast_native import StreamInfo


def encode_streams(run_id: str, streams: Sequence["StreamInfo"]) -> bytes:
    """Returns {"run_id": "...", "streams": [{"env_server_id": "...", ...}, ...]}; keys as in docs/top-and-report.md."""
    return json.dumps({"run_id": run_id, "streams": [_entry(stream) for stream in streams]}).encode()


def _entry(stream: "StreamInfo") -> dict[str, str | int | float]:
    return {
        "env_server_id": printable(stream.env_server_id, MAX_ID_CHARACTERS),
        "instance_id": printable(stream.instance_id, MAX_ID_CHARACTERS),
        "env_id": printable(stream.env_id, MAX_ID_CHARACTERS),
        "peer": stream.peer,
        "num_envs": stream.num_envs,
        "phase": stream.state,
        "connected_s": stream.connected_s,
        "steps": stream.num_steps,
        "episodes": stream.num_episodes,
        "env_s": stream.env_s,
        "action_s": stream.action_s,
        "parked_s": stream.parked_s,
    }

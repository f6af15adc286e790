"""Who holds whom up, in words."""

from dataclasses import dataclass
from typing import Literal

STARVED = 0.25
"""Share of time without rollouts from which the learner counts as starved."""
BUSY = 0.85
"""Share of time at work from which inference has nothing left to give."""
PARKED = 0.25
"""Share of time behind a full rollout queue from which streams count as held back."""


@dataclass(frozen=True, slots=True)
class Verdict:
    code: Literal["fleet", "learner", "inference", "balanced", "no-streams", "finished", "unknown"]
    """What holds the others up."""
    text: str
    advice: str
    """What would help; "" where nothing needs to."""


NO_STREAMS = Verdict("no-streams", "no env-server is connected", "look at the env-servers' logs")
FINISHED = Verdict("finished", "trained to the end", "")
FLEET = Verdict("fleet", "the fleet starves the learner", "more or faster env-servers would be used")
INFERENCE = Verdict("inference", "inference is the bottleneck", "a GPU, a smaller model or larger batches would help")
LEARNER = Verdict("learner", "the learner holds the fleet back", "env-servers wait: fewer would do as much")
BALANCED = Verdict("balanced", "balanced", "")
UNKNOWN = Verdict("unknown", "not known yet", "")


def judge(
    *,
    is_finished: bool,
    streams: float | None,
    starved_ratio: float | None,
    inference_busy_ratio: float | None,
    parked_ratio: float | None,
) -> Verdict:
    """All ratios lie in [0, 1]; None where they are not known.

    A starved learner whose inference is always at work waits for inference, not for the fleet.
    """
    if is_finished:
        return FINISHED
    if streams == 0:
        return NO_STREAMS
    if starved_ratio is None and parked_ratio is None:
        return UNKNOWN
    if starved_ratio is not None and starved_ratio >= STARVED:
        return INFERENCE if inference_busy_ratio is not None and inference_busy_ratio >= BUSY else FLEET
    return LEARNER if parked_ratio is not None and parked_ratio >= PARKED else BALANCED

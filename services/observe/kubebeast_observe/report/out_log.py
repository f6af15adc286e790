"""Notable parts of a run's out.log: warnings, errors, resumptions and the device."""

import contextlib
import re
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path

MAX_MESSAGES = 60
"""Number of newest warnings and errors that are kept."""
MAX_LINES = 30
"""Number of newest lines that are kept of a message, e.g. the end of a traceback."""

_MESSAGE = re.compile(r"\[(?P<level>[A-Z]+):\d+ (?P<logger>\S+) (?P<time>[^\]]+)\] ?(?P<text>.*)")
_RESUMED = re.compile(r"resuming .* at step (\d+) of")
_SPEC = re.compile(r"training on (?P<device>\S+): (?P<spec>.+)")


@dataclass(slots=True)
class Message:
    level: str
    """WARNING, ERROR or CRITICAL."""
    logger: str
    time: str
    lines: deque[str]


@dataclass(slots=True)
class OutLog:
    messages: deque[Message] = field(default_factory=lambda: deque(maxlen=MAX_MESSAGES))
    """Warnings and errors, the newest last."""
    num_warnings: int = 0
    num_errors: int = 0
    resumed_at_steps: list[int] = field(default_factory=list)
    device: str = ""
    """Device of the learner; "" if it is not in the log, as for `env_spec`."""
    env_spec: str = ""


def read_out_log(folder: Path) -> OutLog:
    """Reads folder/out.log line by line; returns an empty log if there is none."""
    log = OutLog()
    current: Message | None = None
    with contextlib.suppress(OSError), open(folder / "out.log", encoding="utf-8", errors="replace") as file:
        for line in file:
            found = _MESSAGE.match(line)
            if found is not None:
                current = _noted(log, found)
            elif current is not None:
                current.lines.append(line.rstrip("\n"))
    return log


def _noted(log: OutLog, found: re.Match[str]) -> Message | None:
    """Records a message; returns it if it is a warning or an error."""
    text, level = found["text"], found["level"]
    if resumed := _RESUMED.search(text):
        log.resumed_at_steps.append(int(resumed[1]))
    if spec := _SPEC.match(text):
        log.device, log.env_spec = spec["device"], spec["spec"]
    if level not in ("WARNING", "ERROR", "CRITICAL"):
        return None
    log.num_warnings += level == "WARNING"
    log.num_errors += level != "WARNING"
    message = Message(level, found["logger"], found["time"], deque([text], maxlen=MAX_LINES))
    log.messages.append(message)
    return message

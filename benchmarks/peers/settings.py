"""What is measured, for how long."""

import dataclasses
from pathlib import Path


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    rounds: int = 3
    """Measurements of each system; in a round all run, one after the other."""
    warmup_seconds: float = 15.0
    """Time a system trains after its first progress before it is measured, in seconds."""
    seconds: float = 30.0
    """Length of a measurement, in seconds."""
    start_seconds: float = 180.0
    """A system that has not trained by then has failed."""
    epochs: int = 1
    """Times that PPO and APPO pass over each sample; IMPALA does once. Their own default is 4 or 10."""
    only: tuple[str, ...] = ()
    """Systems whose name contains one of these; empty is all."""
    torchbeast: Path | None = None
    """A checkout of TorchBeast, for MonoBeast and PolyBeast."""
    work: Path = Path("build/peers")
    """Folder of the venvs and of what the systems write."""

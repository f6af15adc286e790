"""Settings of the comparison with other systems."""

import dataclasses
from pathlib import Path


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    rounds: int = 3
    """Measurements of each system; in a round, all run one after the other."""
    warmup_seconds: float = 15.0
    """Warm-up of a system after its first progress, in seconds."""
    seconds: float = 30.0
    """Length of a measurement, in seconds."""
    start_seconds: float = 180.0
    """Timeout for the progress of a system, in seconds."""
    epochs: int = 1
    """Passes of PPO and APPO over each sample; IMPALA makes one. Their own defaults are 4 or 10."""
    only: tuple[str, ...] = ()
    """Parts of names of systems to measure; if empty, all are measured."""
    torchbeast: Path | None = None
    """Checkout of TorchBeast, for MonoBeast and PolyBeast."""
    work: Path = Path("build/peers")
    """Folder of the venvs and of the systems' files."""

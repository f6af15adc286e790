"""The compared environments."""

from dataclasses import dataclass
from typing import Literal

BOX2D, MINATAR, MINIGRID = "box2d==2.3.10", "minatar==1.0.15", "minigrid==3.0.0"


@dataclass(frozen=True, slots=True)
class Task:
    name: str
    """Name in files and tables."""
    env: str
    """Id of the environment, as `kubebeast mono --env` and, but for wrappers, gymnasium take it."""
    inputs: Literal["as they are", "flattened", "image of codes", "cells"] = "as they are"
    """Input of Stable-Baselines3: the observation as it is; flattened, if it is a tuple; of MiniGrid, the image alone;
    or the cells of MinAtar as numbers, for the small network.
    """
    requirements: tuple[str, ...] = ()
    """Packages of the environment besides gymnasium."""


TASKS = (
    Task("Acrobot", "Acrobot-v1"),
    Task("LunarLander", "LunarLander-v3", requirements=(BOX2D,)),
    Task("FrozenLake", "FrozenLake-v1"),
    Task("MountainCarContinuous", "MountainCarContinuous-v0"),
    Task("Taxi", "Taxi-v4"),
    Task("Blackjack", "Blackjack-v1", "flattened"),
    Task("BipedalWalker", "BipedalWalker-v3", requirements=(BOX2D,)),
    *(
        Task(f"MinAtar-{game}", f"MinAtar/{game}-v1", "cells", (MINATAR,))
        for game in ("Asterix", "Breakout", "Freeway", "Seaquest", "SpaceInvaders")
    ),
    Task("DoorKey", "MiniGrid-DoorKey-5x5-v0", "image of codes", (MINIGRID,)),
    Task("MemoryS7", "MiniGrid-MemoryS7-v0", "image of codes", (MINIGRID,)),
)
BY_NAME = {task.name: task for task in TASKS}

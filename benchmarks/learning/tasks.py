"""The compared environments."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

ATARI_STEPS = 50_000_000
"""Env-steps of 200 million frames."""
BOX2D = ("box2d==2.3.10", "pygame==2.6.1")
"""gymnasium imports pygame with every environment of Box2D."""
MINATAR, MINIGRID = "minatar==1.0.15", "minigrid==3.0.0"
MUJOCO = ("mujoco==3.8.1", "imageio==2.38.1")
"""gymnasium imports imageio with every environment of MuJoCo."""


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
    steps: int = 300_000
    """Env-steps of a run, unless a number is given."""


TASKS = (
    Task("Acrobot", "Acrobot-v1"),
    Task("LunarLander", "LunarLander-v3", requirements=BOX2D),
    Task("FrozenLake", "FrozenLake-v1"),
    Task("MountainCarContinuous", "MountainCarContinuous-v0"),
    Task("Taxi", "Taxi-v4"),
    Task("Blackjack", "Blackjack-v1", "flattened"),
    Task("BipedalWalker", "BipedalWalker-v3", requirements=BOX2D),
    *(
        Task(f"MinAtar-{game}", f"MinAtar/{game}-v1", "cells", (MINATAR,))
        for game in ("Asterix", "Breakout", "Freeway", "Seaquest", "SpaceInvaders")
    ),
    Task("DoorKey", "MiniGrid-DoorKey-5x5-v0", "image of codes", (MINIGRID,)),
    Task("MemoryS7", "MiniGrid-MemoryS7-v0", "image of codes", (MINIGRID,)),
)
MINATAR_TASKS = tuple(replace(task, steps=500_000) for task in TASKS if MINATAR in task.requirements)
MUJOCO_TASKS = tuple(
    Task(name, f"{name}-v5", requirements=MUJOCO, steps=steps)
    for name, steps in (("HalfCheetah", 3_000_000), ("Hopper", 1_000_000), ("Walker2d", 1_000_000))
)
DEVELOPMENT = (
    Task("CartPole", "CartPole-v1", steps=100_000),
    Task("Catch", "kubebeast_envserver.catch:Catch-v0", steps=100_000),
    Task("Pong", "PongNoFrameskip-v4", steps=2_000_000),
)
"""Environments on which settings are tried."""
ATARI_5 = tuple(
    Task(f"Atari-{game}", f"ALE/{game}-v5", steps=ATARI_STEPS)
    for game in ("BattleZone", "DoubleDunk", "NameThisGame", "Phoenix", "Qbert")
)
"""Games whose scores predict the median over all games (Aitchison et al. 2022, arXiv:2210.02019); sticky actions."""
_GAMES = """
    Alien Amidar Assault Asterix Asteroids Atlantis BankHeist BattleZone BeamRider Berzerk Bowling Boxing Breakout
    Centipede ChopperCommand CrazyClimber Defender DemonAttack DoubleDunk Enduro FishingDerby Freeway Frostbite Gopher
    Gravitar Hero IceHockey Jamesbond Kangaroo Krull KungFuMaster MontezumaRevenge MsPacman NameThisGame Phoenix Pitfall
    Pong PrivateEye Qbert Riverraid RoadRunner Robotank Seaquest Skiing Solaris SpaceInvaders StarGunner Surround Tennis
    TimePilot Tutankham UpNDown Venture VideoPinball WizardOfWor YarsRevenge Zaxxon
"""
ATARI_57 = tuple(Task(f"Atari57-{game}", f"{game}NoFrameskip-v4", steps=ATARI_STEPS) for game in _GAMES.split())
"""Games of IMPALA's table, without sticky actions (Espeholt et al. 2018, arXiv:1802.01561)."""
SUITES = {
    "defaults": TASKS,
    "minatar": MINATAR_TASKS,
    "mujoco": MUJOCO_TASKS,
    "development": DEVELOPMENT,
    "atari-5": ATARI_5,
    "atari-57": ATARI_57,
}
BY_NAME = {task.name: task for suite in reversed(SUITES.values()) for task in suite}


def named(names: Iterable[str], steps: int | None = None) -> list[Task]:
    """Returns the tasks with these names, and those of the suites with these names. Raises KeyError for others.

    Args:
        names: Names of tasks and suites.
        steps: Env-steps of a run; None keeps those of each task.
    """
    found = [task for name in names for task in SUITES.get(name) or (BY_NAME[name],)]
    return found if steps is None else [replace(task, steps=steps) for task in found]

"""Training of CartPole with other trainers than KubeBeast's while their env-servers are killed and replaced:

    python -m benchmarks.fleet_trainers --total-steps 100000

Each of examples/fleet_ppo.py and examples/fleet_sb3.py trains on env-servers of one environment each. After every
`lines_between_kills` rollouts, the oldest env-server gets SIGKILL, with all of its processes, and a new one starts. The
second trainer needs stable-baselines3, which KubeBeast does not require; without it, its row has the reason.
"""

import dataclasses
import importlib.util
import time

import tyro

from benchmarks import report
from harness.ports import free_address
from harness.processes.fleet_trainers import EnvServers, lines_of

TRAINERS = {"CleanRL's manner": "fleet_ppo.py", "Stable-Baselines3": "fleet_sb3.py"}


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    total_steps: int = 100_000
    """Steps of each trainer."""
    num_envs: int = 8
    """Environments that train; there is one more env-server than these need."""
    lines_between_kills: int = 20
    """Rollouts between two kills, of 32 steps in every environment."""
    seed: int = 1
    """Seed of the trainers."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    trainer: str
    steps: int = 0
    seconds: float = 0.0
    env_servers_killed: int = 0
    environments_lost: int = 0
    return_at_half: float = 0.0
    """Mean return of the newest 100 episodes after half of the steps."""
    return_at_end: float = 0.0
    not_run: str = ""


def train(name: str, script: str, settings: Settings) -> Row:
    address = free_address()
    servers, begin, num_killed, half = EnvServers(address), time.monotonic(), 0, 0.0
    step, mean, lost = 0, 0.0, 0
    num_envs, total_steps = settings.num_envs, settings.total_steps
    try:
        for _ in range(num_envs + 1):
            servers.start()
        rollouts = lines_of(script, address, total_steps=total_steps, num_envs=num_envs, seed=settings.seed)
        for number, rollout in enumerate(rollouts, start=1):
            step, mean, lost = rollout
            half = mean if step <= total_steps / 2 else half
            if number % settings.lines_between_kills == 0:
                servers.kill_oldest()
                servers.start()
                num_killed += 1
    finally:
        servers.kill_all()
    return Row(
        trainer=name,
        steps=step,
        seconds=time.monotonic() - begin,
        env_servers_killed=num_killed,
        environments_lost=lost,
        return_at_half=half,
        return_at_end=mean,
    )


def main() -> None:
    settings = tyro.cli(Settings, description=__doc__)
    rows = []
    for name, script in TRAINERS.items():
        if script == "fleet_sb3.py" and importlib.util.find_spec("stable_baselines3") is None:
            rows.append(Row(trainer=name, not_run="stable-baselines3 is not installed"))
        else:
            rows.append(train(name, script, settings))
    report.print_table("CartPole on a fleet that is killed and replaced", rows)
    print("Results:", report.write_json("fleet_trainers", settings, {"rows": rows}))


if __name__ == "__main__":
    main()

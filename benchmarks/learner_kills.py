"""A learner that is killed repeatedly: time until its env-servers return, lost steps, and final return.

    python -m benchmarks.learner_kills --kills 10

A real `kubebeast learner` on Catch is killed with SIGKILL at random steps and restarted on the same address; the
processes of its env-servers are left alone. The same training without kills, with several seeds, is the reference for
the final return.
"""

import dataclasses
import math
import random
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
import psutil
import tyro

from benchmarks import report
from benchmarks.fleet import Fleet
from harness.processes.learner_process import XPID, LearnerProcess, Progress

mpl.use("Agg")
from matplotlib import pyplot as plt

ENV = "kubebeast_envserver.catch:Catch-v0"
BACK_SHARE = 0.99
"""Share of the streams that must return."""
LAST_KILL = 0.8
"""Share of the training from which the random steps are drawn."""
CATCH = (
    "--model=mlp",
    "--hidden-sizes",
    "64",
    "64",
    "--unroll-length=10",
    "--batch-size=8",
    "--learning-rate=0.003",
    "--entropy-cost=0.01",
)
"""Flags of `kubebeast train --recipe Catch`."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    kills: int = 10
    """Number of kills of the learner."""
    servers: int = 8
    """Number of env-server processes."""
    envs: int = 4
    """Environments of each env-server."""
    total_steps: int = 400_000
    """Env-steps of a training."""
    checkpoint_interval_s: float = 1.0
    """Time between two checkpoints, in seconds."""
    undisturbed: int = 5
    """Trainings without a kill, one per seed."""
    seed: int = 1
    """Seed of the random steps and of the training."""
    quick: bool = False
    """Few kills and short trainings as a smoke test; the result has a separate name."""

    def scaled(self) -> "Settings":
        if not self.quick:
            return self
        return dataclasses.replace(self, kills=2, servers=2, total_steps=20_000, undisturbed=1)


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Kill:
    number: int
    step: int
    """Newest step that the killed learner had reported."""
    resumed_step: int
    lost_steps: int
    lost_s: float
    """Age of the resumed checkpoint at the kill, in seconds."""
    port_open_after_s: float
    """Time from the start of the new process until its port is open."""
    streams_back_s: float
    """Time from the opening of its port until 99 % of the streams are back."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Summary:
    slowest_return_s: float
    """Longest streams_back_s."""
    most_lost_s: float
    same_env_servers: bool
    """True if every env-server process is the same at the beginning and the end."""
    final_return: float
    """Mean return of the newest episodes of the killed training."""
    undisturbed_mean: float
    undisturbed_lowest: float
    undisturbed_highest: float
    errors: int
    """Number of errors in the learner's log."""


def flags(settings: Settings, seed: int) -> list[str]:
    interval = f"--checkpoint-interval-minutes={settings.checkpoint_interval_s / 60}"
    return [f"--seed={seed}", interval, "--compile=off", "--log-interval-s=0.1", *CATCH]


def wait_for_checkpoint(learner: LearnerProcess, step: int) -> None:
    """Blocks until `step`, and until this life has saved a checkpoint, so that every life makes progress."""
    learner.wait_until(lambda values: values["step"] >= step and values["checkpoint_age_s"] is not None)


def kill_and_restart(learner: LearnerProcess, number: int, num_streams: int) -> Kill:
    """Kills and restarts the learner, and returns after its streams are back."""
    learner.kill()
    killed_at, step = time.time(), learner.newest["step"]
    checkpoints = {int(p.stem.split("-")[1]): p for p in (learner.folder / XPID).glob("checkpoint-*.pt")}
    saved_at = {saved: path.stat().st_mtime for saved, path in checkpoints.items()}
    started_at = time.monotonic()
    learner.start()
    listening_at = learner.wait_listening()
    back = learner.wait_until(lambda values: values["streams"] >= math.ceil(BACK_SHARE * num_streams))
    resumed = learner.resumed_steps()[number - 1]
    return Kill(
        number=number,
        step=step,
        resumed_step=resumed,
        lost_steps=max(0, step - resumed),
        lost_s=killed_at - saved_at[resumed],
        port_open_after_s=listening_at - started_at,
        streams_back_s=back.time_s - listening_at,
    )


def train_killed(settings: Settings, folder: Path) -> tuple[list[Kill], bool, LearnerProcess]:
    """Runs the killed training; the flag in the result is True if its env-servers are still the same processes."""
    generator, kills = random.Random(settings.seed), []
    steps = sorted(generator.randrange(round(LAST_KILL * settings.total_steps)) for _ in range(settings.kills))
    learner = LearnerProcess(folder, *flags(settings, settings.seed), total_steps=settings.total_steps)
    with learner, Fleet(learner.address, folder, num_envs=settings.envs, env=ENV) as fleet:
        fleet.scale(settings.servers)
        processes = [psutil.Process(server.pid) for server in fleet.servers]
        for number, target in enumerate(steps, start=1):
            wait_for_checkpoint(learner, target)
            kills.append(kill_and_restart(learner, number, settings.servers))
            print(f"{kills[-1]}, of {settings.kills}", flush=True)
        assert learner.wait() == 0, learner.errors()
        return kills, all(process.is_running() for process in processes), learner


def train_undisturbed(settings: Settings, seed: int, folder: Path) -> list[Progress]:
    learner = LearnerProcess(folder, *flags(settings, seed), total_steps=settings.total_steps)
    with learner, Fleet(learner.address, folder, num_envs=settings.envs, env=ENV) as fleet:
        fleet.scale(settings.servers)
        assert learner.wait() == 0, learner.errors()
    print(f"undisturbed, seed {seed}: {learner.newest['mean_episode_return']}", flush=True)
    return learner.history


def draw(path: Path, killed: Sequence[Progress], kills: Sequence[Kill], undisturbed: Sequence[list[Progress]]) -> None:
    """Draws the mean return against env-steps, of the killed training and of the undisturbed ones."""
    figure, axes = plt.subplots(figsize=(10, 4), layout="constrained")
    for index, history in enumerate([*undisturbed, killed]):
        points = [(p.values["step"], p.values["mean_episode_return"]) for p in history]
        steps, returns = zip(*[point for point in points if point[1] is not None], strict=True)
        is_killed = index == len(undisturbed)
        axes.plot(steps, returns, color="tab:red" if is_killed else "0.6", label="killed" if is_killed else "_")
    for kill in kills:
        axes.plot([kill.resumed_step, kill.step], [-1, -1], color="tab:red", linewidth=4, solid_capstyle="butt")
    axes.set(xlabel="env-steps (red at the bottom: trained again)", ylabel="mean return of 100 games, Catch")
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    figure.savefig(path, dpi=120)
    plt.close(figure)


def run(settings: Settings) -> Path:
    with tempfile.TemporaryDirectory() as name:
        kills, same, learner = train_killed(settings, Path(name))
        errors = len(learner.errors())
    others = []
    for seed in range(settings.seed, settings.seed + settings.undisturbed):
        with tempfile.TemporaryDirectory() as name:
            others.append(train_undisturbed(settings, seed, Path(name)))
    finals = [history[-1].values["mean_episode_return"] for history in others]
    summary = Summary(
        slowest_return_s=max(kill.streams_back_s for kill in kills),
        most_lost_s=max(kill.lost_s for kill in kills),
        same_env_servers=same,
        final_return=learner.newest["mean_episode_return"],
        undisturbed_mean=statistics.mean(finals),
        undisturbed_lowest=min(finals),
        undisturbed_highest=max(finals),
        errors=errors,
    )
    report.print_table("kills", kills)
    report.print_table("learner kills", [summary])
    results = {"summary": summary, "kills": kills, "undisturbed_returns": finals}
    path = report.write_json("learner_kills-quick" if settings.quick else "learner_kills", settings, results)
    draw(path.with_suffix(".png"), learner.history, kills, others)
    return path


def main() -> None:
    print("Results:", run(tyro.cli(Settings, description=__doc__).scaled()))


if __name__ == "__main__":
    main()

"""A long training under continuous disturbances: loss of throughput, growth of memory, and lost steps.

    python -m benchmarks.soak --minutes 30 --servers 8 --kill-share 0.3 --interval-s 60
    python -m benchmarks.soak --raise-every 300 --nan-every 2000 --hang-every 20000
    python -m benchmarks.soak --freeze 2 --full-disk-s 120 --huge-every 5000 --attackers 2

A real `kubebeast learner` with a model of negligible cost, and env-servers in separate processes. First they are left
alone, then killed with SIGKILL at random moments of every interval and restarted at once, like by Kubernetes. From then
on, environments may also fail by themselves, env-servers may freeze with open connections, the disk of the run may be
full, and raw connections may attack the learner's port from another address.

The loss of throughput is compared with the share of time in which environments did not play: an environment is away
from its last step before a failure, a kill, or a hang in the same process until the first step of its replacement, and
while it is frozen.

At the end, the learner must still run, its books must balance, and every checkpoint must be readable and finite.

Environments sleep in each step (--env-ms), so that throughput follows the number of env-servers and the machine's cores
are not saturated; on a saturated machine, a killed env-server would make the others faster.
"""

import contextlib
import dataclasses
import os
import random
import sys
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import tyro

from benchmarks import attackers, report
from benchmarks.disturbances import Disturbance, draw_freezes, draw_kills_of, fill_disk, small_disk
from benchmarks.fleet import LEARNER_FLAGS, Account, Fleet, settle
from benchmarks.timeline import Timeline
from harness import checkpoints
from harness.chaos import flaky_env
from harness.processes.learner_process import XPID, LearnerProcess
from harness.processes.small_volume import SmallVolume

WARMUP_S = 10.0
REPORT_S = 10.0
"""Time between two lines of progress."""
ALLOWANCE = 0.05
"""Allowed loss of throughput besides the absence of environments."""
ATTACKS = ("rapid reset of Act", "endless headers", "pings", "health checks", attackers.SILENT)
ATTACKER = "127.0.0.2"
"""Address other than that of the env-servers, so that the learner does not penalize them for the attacks."""
KEPT_CHECKPOINTS = 3
CHECKPOINT_FLAGS = ("--checkpoint-interval-minutes=0.25", f"--keep-checkpoints={KEPT_CHECKPOINTS}")
FAILURE_WINDOW_S = 2.0
"""Failure window of the env-servers: an environment that plays for longer restarts without a long delay."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    minutes: float = 30.0
    """Length of the disturbed phase."""
    baseline_minutes: float = 5.0
    """Length of the undisturbed phase before it."""
    servers: int = 8
    """Number of env-server processes."""
    envs: int = 4
    """Environments of each env-server."""
    env_ms: float = 4.0
    """Sleep in a step of an environment, in milliseconds."""
    kill_share: float = 0.3
    """Minimum share of the env-servers that are killed in every interval."""
    interval_s: float = 60.0
    """Interval in which every chosen env-server is killed once, in seconds."""
    raise_every: int = 0
    """Mean number of steps between errors of an environment; 0 for none."""
    nan_every: int = 0
    """Mean number of steps between observations of NaN; 0 for none."""
    hang_every: int = 0
    """Mean number of steps between hangs of an environment; 0 for none."""
    huge_every: int = 0
    """Mean number of steps between finite observations with an infinite square, after which the environment plays on; 0
    for none. If set, the learner normalizes observations."""
    freeze: int = 0
    """Env-servers that freeze together in every interval."""
    freeze_s: float = 20.0
    """Length of a freeze, in seconds."""
    full_disk_s: float = 0.0
    """Time for which the run's disk is full, in the middle of the disturbed phase, in seconds; needs root or user
    namespaces."""
    attackers: int = 0
    """Concurrent connections of each of ATTACKS, from 127.0.0.2."""
    env_timeout_s: float = 10.0
    """Time after which a hanging process is replaced, in seconds."""
    seed: int = 1
    """Seed of the kills and of the failures of environments."""
    quick: bool = False
    """Two short phases as a smoke test; the result has a separate name."""

    def scaled(self) -> "Settings":
        if not self.quick:
            return self
        return dataclasses.replace(
            self,
            minutes=0.5,
            baseline_minutes=0.3,
            servers=4,
            interval_s=10.0,
            freeze_s=min(self.freeze_s, 5.0),
            full_disk_s=min(self.full_disk_s, 10.0),
        )


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Summary:
    baseline_steps_per_s: float
    steps_per_s: float
    throughput_loss: float
    """1 - steps_per_s / baseline_steps_per_s."""
    away_share: float
    """Share of the time of all environments in which they did not play."""
    frozen_share: float
    """Share of the same time in which they were frozen."""
    is_within_allowance: bool
    """True if the loss is at most the sum of both shares and ALLOWANCE."""
    killed_share: float
    """Share of the time of all env-servers in which killed ones were away."""
    kills: int
    raised: int
    returned_nan: int
    hung: int
    huge: int
    freezes: int
    full_disk_s: float
    attacks: int
    """Ended connections of attackers."""
    rss_mib_per_minute: float
    fds_per_minute: float
    errors: int
    """Number of errors in the learner's log."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """Conditions at the end of a sound run, regardless of the disturbances."""

    lives: bool
    """True if the learner trained to the end and exited with 0 on SIGTERM."""
    books_balance: bool
    """True if the books account for every env-step, and none was trained on twice."""
    keeps_checkpoints: bool
    """True if there are KEPT_CHECKPOINTS checkpoints, each readable and finite."""

    @property
    def is_sound(self) -> bool:
        return self.lives and self.books_balance and self.keeps_checkpoints


class LearnerEndedError(RuntimeError):
    """Raised if the learner ended early; the message has its last errors."""


class Soak:
    """One run of all phases, with its summary."""

    def __init__(
        self, settings: Settings, learner: LearnerProcess, fleet: Fleet, folder: Path, disk: SmallVolume | None = None
    ) -> None:
        """Prepares a run.

        Args:
            folder: Folder of the fleet's accounts.
            disk: Volume of the run, if it can be filled.
        """
        self.timeline = Timeline(learner)
        self._settings = settings
        self._learner = learner
        self._fleet = fleet
        self._folder = folder
        self._disk = disk
        self._attacks = 0

    def run(self) -> Summary:
        """Runs all phases; raises LearnerEndedError if the learner ends early."""
        settings, timeline = self._settings, self.timeline
        self._watch(settings.baseline_minutes * 60, "undisturbed")
        plan, length_s = self._plan()
        with contextlib.ExitStack() as stack:
            floods = [stack.enter_context(self._attacking(name)) for name in ATTACKS * (settings.attackers > 0)]
            flaky_env.unleash(self._folder)
            disturbed_s = timeline.seconds  # attackers take seconds to start
            for disturbance in plan:
                self._watch(disturbed_s + disturbance.at_s - timeline.seconds, "disturbed")
                disturbance.act()
                timeline.note(disturbance.what)
            self._watch(disturbed_s + length_s - timeline.seconds, "disturbed")
            self._attacks = sum(num_ended() for num_ended in floods)
        return self._summary(disturbed_s, timeline.seconds)

    def _attacking(self, name: str) -> AbstractContextManager[Callable[[], int]]:
        last_core = max(os.sched_getaffinity(0))
        return attackers.attacking(name, self._learner.address, ATTACKER, self._settings.attackers, "", last_core)

    def _plan(self) -> tuple[list[Disturbance], float]:
        """Returns the disturbances in order of time, and the length of the phase in seconds."""
        settings, plan = self._settings, list[Disturbance]()
        generator = random.Random(settings.seed)
        num_intervals = max(1, round(settings.minutes * 60 / settings.interval_s))
        length_s = num_intervals * settings.interval_s
        for number in range(num_intervals):
            drawn = draw_kills_of(self._fleet, generator, settings.kill_share, settings.interval_s)
            drawn += draw_freezes(self._fleet, generator, settings.freeze, settings.freeze_s, settings.interval_s)
            began_s = number * settings.interval_s
            plan += [dataclasses.replace(each, at_s=began_s + each.at_s) for each in drawn]
        if self._disk is not None:
            full_s = min(settings.full_disk_s, length_s / 2)
            plan += fill_disk(self._disk, (length_s - full_s) / 2, full_s)
        return sorted(plan, key=lambda each: each.at_s), length_s

    def _watch(self, seconds: float, phase: str) -> None:
        timeline, until_s = self.timeline, self.timeline.seconds + seconds
        total_s = (self._settings.baseline_minutes + self._settings.minutes) * 60
        while (left_s := until_s - timeline.seconds) > 0:
            timeline.watch(min(left_s, REPORT_S))
            if not self._learner.is_running:
                raise LearnerEndedError("\n".join(["the learner ended", *self._learner.errors()[-5:]]))
            newest, now = self._learner.newest, timeline.samples[-1]
            print(
                f"{now.seconds:6.0f} of {total_s:.0f} s, {phase}: step {now.step:,}, {newest.get('sps') or 0:,.0f} "
                f"steps/s, {now.streams} streams, {len(self._fleet.kills)} kills, {now.rss_mib:.0f} MiB, {now.fds} fds",
                flush=True,
            )

    def _summary(self, disturbed_s: float, end_s: float) -> Summary:
        timeline, size = self.timeline, self._settings.servers
        baseline = timeline.throughput(0.0, disturbed_s)
        disturbed = timeline.throughput(disturbed_s, end_s)
        since, until = timeline.began_at + disturbed_s, timeline.began_at + end_s
        away_share = self._fleet.away_share(since, until)
        frozen_share = self._fleet.frozen_share(since, until)
        failures = flaky_env.failures(self._folder)
        loss = 1 - disturbed / baseline
        return Summary(
            baseline_steps_per_s=baseline,
            steps_per_s=disturbed,
            throughput_loss=loss,
            away_share=away_share,
            frozen_share=frozen_share,
            is_within_allowance=loss <= away_share + frozen_share + ALLOWANCE,
            killed_share=self._fleet.away_s(until) / (size * (end_s - disturbed_s)),
            kills=len(self._fleet.kills),
            raised=failures["raise"],
            returned_nan=failures["nan"],
            hung=failures["hang"],
            huge=flaky_env.num_huge(self._folder),
            freezes=len(self._fleet.freezes),
            full_disk_s=0.0 if self._disk is None else self._settings.full_disk_s,
            attacks=self._attacks,
            rss_mib_per_minute=timeline.trend("rss_mib", disturbed_s)["slope_per_minute"],
            fds_per_minute=timeline.trend("fds", disturbed_s)["slope_per_minute"],
            errors=len(self._learner.errors()),
        )


def make_fleet(settings: Settings, address: str, folder: Path) -> Fleet:
    every = {"raise": settings.raise_every, "nan": settings.nan_every, "hang": settings.hang_every}
    return Fleet(
        address,
        folder,
        f"--seed={settings.seed}",
        f"--env-timeout-s={settings.env_timeout_s}",
        f"--max-failures={10**9}",  # env-servers never give up
        f"--failure-window-s={FAILURE_WINDOW_S}",
        num_envs=settings.envs,
        env=flaky_env.ENV_ID,
        env_kwargs={"env_ms": settings.env_ms, "every": every, "huge_every": settings.huge_every},
    )


def run(settings: Settings, folder: Path) -> tuple[Summary, Account, Verdict, Timeline]:
    flags = (*LEARNER_FLAGS, *CHECKPOINT_FLAGS, *["--normalise-observations"] * (settings.huge_every > 0))
    with contextlib.ExitStack() as stack:
        disk = stack.enter_context(small_disk(folder / XPID)) if settings.full_disk_s else None
        learner = stack.enter_context(LearnerProcess(folder, *flags, volume=disk))
        fleet = stack.enter_context(make_fleet(settings, learner.address, folder))
        fleet.scale(settings.servers)
        learner.wait_until(lambda values: values["streams"] == settings.servers)
        Timeline(learner).watch(WARMUP_S)
        soak = Soak(settings, learner, fleet, folder, disk)
        summary = soak.run()
        learner.wait_for_steps(1)
        fleet.scale(0)
        learner.wait_until(lambda values: values["streams"] == 0)
        account = settle(learner, folder)
        return summary, account, judge(account, learner.terminate(), learner.run_folder), soak.timeline


def judge(account: Account, status: int, folder: Path) -> Verdict:
    """Returns the verdict on a learner that has ended with `status`; `folder` is that of its run."""
    found = checkpoints.examine(folder)
    for name in found.unhealthy:
        print(f"not healthy: {name}", flush=True)
    return Verdict(
        lives=status == 0,
        books_balance=account.imbalance == account.duplicated == account.torn == 0,
        keeps_checkpoints=not found.unhealthy and len(found.healthy) == KEPT_CHECKPOINTS,
    )


def main() -> None:
    settings = tyro.cli(Settings, description=__doc__).scaled()
    with tempfile.TemporaryDirectory() as folder:
        try:
            summary, account, verdict, timeline = run(settings, Path(folder))
        except LearnerEndedError as error:
            sys.exit(str(error))
    report.print_table("soak", [summary])
    report.print_table("env-steps", [account])
    report.print_table("verdict", [verdict])
    disturbed_s = settings.baseline_minutes * 60
    trends = {field: timeline.trend(field, disturbed_s) for field in ("rss_mib", "fds")}
    results = {
        "summary": summary,
        "account": account,
        "verdict": verdict,
        "trends": trends,
        "samples": timeline.samples,
    }
    path = report.write_json("soak-quick" if settings.quick else "soak", settings, results)
    timeline.draw(path.with_suffix(".png"), f"{settings.kill_share:.0%} killed every {settings.interval_s:g} s")
    print("Results:", path)
    sys.exit(0 if verdict.is_sound else 1)


if __name__ == "__main__":
    main()

"""A long training whose env-servers are killed all the time: what it costs, and whether anything grows or is lost.

    python -m benchmarks.soak --minutes 30 --servers 8 --kill-share 0.3 --interval-s 60
    python -m benchmarks.soak --raise-every 300 --nan-every 2000 --hang-every 20000

A real `kubebeast learner` with a model that costs nothing, and env-servers as processes of their own. First they are
left alone, then killed with SIGKILL at random moments of every interval and started again at once, as Kubernetes
does; environments may fail by themselves from then on, too.

The loss of throughput is compared with the share of time in which environments did not play: an environment is away
from its last step before a failure, a kill or a hang of one that it shares a process with, to the first step of the one
that replaced it.

Environments sleep through a step (--env-ms), so that throughput follows the number of env-servers and the cores of this
machine have time to spare; on a saturated machine a killed env-server would make the others faster.
"""

import dataclasses
import random
import tempfile
from pathlib import Path

import tyro

from benchmarks import report
from benchmarks.fleet import LEARNER_FLAGS, Account, Fleet, draw_kills, settle
from benchmarks.timeline import Timeline
from harness.chaos import flaky_env
from harness.processes.learner_process import LearnerProcess

WARMUP_S = 10.0
REPORT_S = 10.0
"""Time between two lines of progress."""
ALLOWANCE = 0.05
"""Loss of throughput that needs no environment to be away."""
FAILURE_WINDOW_S = 2.0
"""An environment that plays for longer comes back soon after its next failure."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    minutes: float = 30.0
    """Length of the disturbed phase."""
    baseline_minutes: float = 5.0
    """Length of the undisturbed phase before it."""
    servers: int = 8
    """Env-server processes."""
    envs: int = 4
    """Environments of each."""
    env_ms: float = 4.0
    """What a step of an environment takes, asleep, in milliseconds."""
    kill_share: float = 0.3
    """At least this share of the env-servers is killed in every interval."""
    interval_s: float = 60.0
    """Time in which every chosen env-server is killed once, in seconds."""
    raise_every: int = 0
    """An environment raises in one of so many steps; 0: never."""
    nan_every: int = 0
    """It returns NaN."""
    hang_every: int = 0
    """It hangs."""
    env_timeout_s: float = 10.0
    """When a process that hangs is replaced, in seconds."""
    seed: int = 1
    """Of who is killed when, and which environment fails when."""
    quick: bool = False
    """Two short phases, to see that it works; the result has a name of its own."""

    def scaled(self) -> "Settings":
        if not self.quick:
            return self
        return dataclasses.replace(self, minutes=0.5, baseline_minutes=0.3, servers=4, interval_s=10.0)


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Summary:
    baseline_steps_per_s: float
    steps_per_s: float
    throughput_loss: float
    """1 - steps_per_s / baseline_steps_per_s."""
    away_share: float
    """Of the time of all environments: in which they did not play."""
    is_within_allowance: bool
    """Whether the loss is at most that share and ALLOWANCE."""
    killed_share: float
    """Seconds that killed env-servers were away over the seconds of all."""
    kills: int
    raised: int
    returned_nan: int
    hung: int
    rss_mib_per_minute: float
    fds_per_minute: float
    errors: int
    """Lines in the learner's log that tell of one."""


class Soak:
    """One run: the phases, and what is known after them."""

    def __init__(self, settings: Settings, learner: LearnerProcess, fleet: Fleet, folder: Path) -> None:
        """folder: of the fleet's accounts."""
        self.timeline = Timeline(learner)
        self._settings = settings
        self._learner = learner
        self._fleet = fleet
        self._folder = folder

    def run(self) -> Summary:
        settings, timeline = self._settings, self.timeline
        self._watch(settings.baseline_minutes * 60, "undisturbed")
        disturbed_s = timeline.seconds
        flaky_env.unleash(self._folder)
        generator = random.Random(settings.seed)
        for _ in range(max(1, round(settings.minutes * 60 / settings.interval_s))):
            began_s = timeline.seconds
            for moment, place in draw_kills(generator, settings.servers, settings.kill_share, settings.interval_s):
                self._watch(began_s + moment - timeline.seconds, "disturbed")
                self._fleet.kill(place)
                timeline.note(f"kill {place}")
            self._watch(began_s + settings.interval_s - timeline.seconds, "disturbed")
        return self._summary(disturbed_s, timeline.seconds)

    def _watch(self, seconds: float, phase: str) -> None:
        timeline, until_s = self.timeline, self.timeline.seconds + seconds
        total_s = (self._settings.baseline_minutes + self._settings.minutes) * 60
        while (left_s := until_s - timeline.seconds) > 0:
            timeline.watch(min(left_s, REPORT_S))
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
        failures = flaky_env.failures(self._folder)
        loss = 1 - disturbed / baseline
        return Summary(
            baseline_steps_per_s=baseline,
            steps_per_s=disturbed,
            throughput_loss=loss,
            away_share=away_share,
            is_within_allowance=loss <= away_share + ALLOWANCE,
            killed_share=self._fleet.away_s(until) / (size * (end_s - disturbed_s)),
            kills=len(self._fleet.kills),
            raised=failures["raise"],
            returned_nan=failures["nan"],
            hung=failures["hang"],
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
        f"--max-failures={10**9}",  # nothing is given up
        f"--failure-window-s={FAILURE_WINDOW_S}",
        num_envs=settings.envs,
        env=flaky_env.ENV_ID,
        env_kwargs={"env_ms": settings.env_ms, "every": every},
    )


def run(settings: Settings, folder: Path) -> tuple[Summary, Account, Timeline]:
    with (
        LearnerProcess(folder, *LEARNER_FLAGS) as learner,
        make_fleet(settings, learner.address, folder) as fleet,
    ):
        fleet.scale(settings.servers)
        learner.wait_until(lambda values: values["streams"] == settings.servers)
        Timeline(learner).watch(WARMUP_S)
        soak = Soak(settings, learner, fleet, folder)
        summary = soak.run()
        fleet.scale(0)
        learner.wait_until(lambda values: values["streams"] == 0)
        account = settle(learner, folder)
        learner.terminate()
        return summary, account, soak.timeline


def main() -> None:
    settings = tyro.cli(Settings, description=__doc__).scaled()
    with tempfile.TemporaryDirectory() as folder:
        summary, account, timeline = run(settings, Path(folder))
    report.print_table("soak", [summary])
    report.print_table("env-steps", [account])
    disturbed_s = settings.baseline_minutes * 60
    trends = {field: timeline.trend(field, disturbed_s) for field in ("rss_mib", "fds")}
    results = {"summary": summary, "account": account, "trends": trends, "samples": timeline.samples}
    path = report.write_json("soak-quick" if settings.quick else "soak", settings, results)
    timeline.draw(path.with_suffix(".png"), f"{settings.kill_share:.0%} killed every {settings.interval_s:g} s")
    print("Results:", path)


if __name__ == "__main__":
    main()

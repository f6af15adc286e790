"""Cost of metrics: the speed of a real run scraped every second over its speed unscraped, and the cost of counting.

    python -m benchmarks.metrics_overhead --seconds 10 --rounds 8

During one run, windows with scrapes of the learner and its env-servers alternate with windows without scrapes. Each
window with scrapes is compared with the mean of the two around it, and the result is the median of these ratios. The
noise between windows is above 1 %, so CPU times are reported too: of a scrape, and of one counted value of an
env-server.
"""

import contextlib
import dataclasses
import itertools
import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import psutil
import tyro

from benchmarks import report
from kubebeast_common.histogram import SecondsHistogram

TIMEOUT_S = 60.0


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    seconds: float = 10.0
    """Length of each window, in seconds."""
    rounds: int = 8
    """Windows with scrapes."""
    warmup_seconds: float = 20.0
    interval_s: float = 1.0
    """Time between two scrapes of the same process, in seconds."""
    env: str = "PongNoFrameskip-v4"
    num_actors: int = 32
    num_servers: int = 3


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Summary:
    unscraped_steps_per_s: float
    scraped_steps_per_s: float
    ratio: float
    """Median over the rounds."""
    worst_ratio: float
    best_ratio: float
    learner_ms_per_scrape: float
    """CPU time in the learner's process while it trains, measured with ten times as many scrapes."""
    learner_percent_of_a_core: float
    """Share of a core for scrapes at the interval."""
    envserver_us_per_observation: float
    """CPU time of one value that an env-server counts; it counts two per step of all its environments."""


class Site:
    """A run and the processes that can be scraped."""

    def __init__(self, port: int, process: psutil.Process) -> None:
        self.learner = f"http://127.0.0.1:{port}"
        self.process = process
        targets = json.loads(_get(f"{self.learner}/targets"))
        self.urls = [f"{self.learner}/metrics"] + [f"http://{target['targets'][0]}/metrics" for target in targets]

    def steps(self) -> float:
        """Returns the number of env-steps delivered to the learner."""
        match = re.search(r'^kubebeast_steps_total\{outcome="delivered"\} (.+)$', self.scrape_learner(), re.MULTILINE)
        assert match is not None
        return float(match[1])

    def scrape_learner(self) -> str:
        return _get(f"{self.learner}/metrics")

    def cpu_s(self) -> float:
        times = self.process.cpu_times()
        return float(times.user + times.system)


@contextlib.contextmanager
def training(settings: Settings) -> Iterator[Site]:
    """Starts a run and yields it after the warm-up."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "stderr")
        command = [
            sys.executable,
            "-m",
            "kubebeast_learner",
            "train",
            "--env",
            settings.env,
            "--total-steps=1000000000",
        ]
        command += [f"--num-actors={settings.num_actors}", f"--num-servers={settings.num_servers}"]
        command += ["--disable-checkpoint", "--http-address=127.0.0.1:0", "--progress=json", f"--savedir={folder}"]
        with open(log, "wb") as stderr:
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=stderr)
        try:
            site = Site(_port(log), psutil.Process(process.pid))
            while site.steps() == 0:
                time.sleep(0.5)
            time.sleep(settings.warmup_seconds)
            yield site
        finally:
            process.terminate()
            process.wait(TIMEOUT_S)


def _port(log: Path) -> int:
    deadline = time.monotonic() + TIMEOUT_S
    while time.monotonic() < deadline:
        if match := re.search(r"serving HTTP on port (\d+)", log.read_text()):
            return int(match[1])
        time.sleep(0.2)
    raise RuntimeError(f"the run does not serve:\n{log.read_text()}")


def _get(url: str) -> str:
    with urllib.request.urlopen(url, timeout=TIMEOUT_S) as response:
        text: str = response.read().decode()
    return text


def window(site: Site, settings: Settings, *, scraped: bool) -> float:
    """Returns the steps per second over one window."""
    before, since = site.steps(), time.monotonic()
    while time.monotonic() < since + settings.seconds:
        if scraped:
            for url in site.urls:
                _get(url)
        time.sleep(settings.interval_s)
    after, now = site.steps(), time.monotonic()
    return (after - before) / (now - since)


def scrape_cost_s(site: Site, settings: Settings) -> float:
    """Returns the learner's CPU seconds per scrape: its use with frequent scrapes less its use without them."""
    interval_s = settings.interval_s / 10
    used = []
    for asks in (False, True, False):
        cpu_s, since, num_scrapes = site.cpu_s(), time.monotonic(), 0
        steps = site.steps()
        while time.monotonic() < since + settings.seconds:
            if asks:
                site.scrape_learner()
                num_scrapes += 1
            time.sleep(interval_s)
        # The cost of a step is assumed constant; the excess is the cost of scrapes.
        used.append((site.cpu_s() - cpu_s, site.steps() - steps, num_scrapes))
    (alone_s, alone_steps, _), (asked_s, asked_steps, num_scrapes), (again_s, again_steps, _) = used
    per_step_s = (alone_s + again_s) / (alone_steps + again_steps)
    return (asked_s - per_step_s * asked_steps) / num_scrapes


def observation_cost_s() -> float:
    """Returns the CPU seconds of one value in an env-server's histogram."""
    histogram, count = SecondsHistogram(), 200_000
    started = time.process_time()
    for _ in range(count):
        histogram.observe(0.003)
    return (time.process_time() - started) / count


def measure(settings: Settings) -> Summary:
    with training(settings) as site:
        unscraped, scraped = [window(site, settings, scraped=False)], []
        for number in range(1, settings.rounds + 1):
            scraped.append(window(site, settings, scraped=True))
            unscraped.append(window(site, settings, scraped=False))
            print(f"{number} of {settings.rounds}: {scraped[-1]:,.0f} scraped, {unscraped[-1]:,.0f} not", flush=True)
        cost_s = scrape_cost_s(site, settings)
    references = [(before + after) / 2 for before, after in itertools.pairwise(unscraped)]
    ratios = [each / reference for each, reference in zip(scraped, references, strict=True)]
    return Summary(
        unscraped_steps_per_s=statistics.median(unscraped),
        scraped_steps_per_s=statistics.median(scraped),
        ratio=statistics.median(ratios),
        worst_ratio=min(ratios),
        best_ratio=max(ratios),
        learner_ms_per_scrape=cost_s * 1e3,
        learner_percent_of_a_core=cost_s / settings.interval_s * 100,
        envserver_us_per_observation=observation_cost_s() * 1e6,
    )


def main() -> None:
    settings = tyro.cli(Settings, description=__doc__)
    summary = measure(settings)
    report.print_table(f"{settings.env}, scraped every {settings.interval_s:g} s", [summary])
    print("Results:", report.write_json("metrics_overhead", settings, {"summary": summary}))


if __name__ == "__main__":
    main()

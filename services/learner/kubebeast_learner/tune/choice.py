"""Choice of the settings for a machine, by an explicit model of the time that a training takes.

A training is four stages that work at the same time, and the slowest sets the pace (env-steps per second):

environments   P B / (B c + l + i(B))   P processes, each B environments in lock-step: it computes B c, then waits for
                                        the message l and the model i
inference      P B / i(P B)             one thread; all environments wait for its batches
update         S / u                    S env-steps per update, which takes u
CPU            C / sum                  C cores over the CPU time of an env-step in all processes
"""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kubebeast_learner.tune.pieces import LearnerCost, Pieces

LOCK_STEP = 0.8
"""Efficiency of several processes: those that wait for the same model do not alternate perfectly."""
BUSY_CORES = 0.9
"""Usable share of the cores: stages that wait for each other leave some idle at times."""
TOLERANCE = 0.03
"""Relative slowdown within which settings count as equally fast; the smallest of them is chosen."""
MAX_BATCHES_IN_FLIGHT = 2
"""Maximum number of environments, in batches of the learner, as in recipes; more make the training data older."""
MAX_ENVS_PER_SERVER = 128


@dataclass(frozen=True, kw_only=True, slots=True)
class Choice:
    """Settings of `kubebeast train` under their names."""

    device: str
    precision: str
    learner_threads: int
    num_servers: int
    num_actors: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Expected:
    """Prediction of the model for a choice."""

    choice: Choice
    paces: Mapping[str, float]
    """Env-steps per second of each stage alone: environments, inference, update, CPU."""
    inference_rows: float
    """Rows of an inference batch at the pace of the environments."""

    @property
    def steps_per_s(self) -> float:
        return min(self.paces.values())

    @property
    def saturates(self) -> str:
        """The limiting stage; of several, the last in `paces`, which more environments would not speed up."""
        busy = [stage for stage, pace in self.paces.items() if pace * (1 - TOLERANCE) <= self.steps_per_s]
        return busy[-1]


def choices(pieces: Pieces, most_actors: int) -> list[Choice]:
    """Returns all candidates, with at most as many env-server processes as cores, and most_actors environments."""
    sizes = [2**power * pieces.unit for power in range(MAX_ENVS_PER_SERVER.bit_length())]
    most = max(most_actors, pieces.unit)
    return [
        Choice(
            device=learner.device,
            precision=learner.precision,
            learner_threads=learner.threads,
            num_servers=num_servers,
            num_actors=num_servers * num_envs,
        )
        for learner, num_servers, num_envs in itertools.product(pieces.learners, range(1, pieces.cores + 1), sizes)
        if num_servers * num_envs <= most and learner.threads <= pieces.cores
    ]


def most_actors(batch_size: int, num_actors: int) -> int:
    """Returns the bound of `choices` for training batches of batch_size fresh unrolls and the user's num_actors."""
    return max(MAX_BATCHES_IN_FLIGHT * batch_size, num_actors)


def expect(choice: Choice, pieces: Pieces) -> Expected:
    """Predicts the pace of each stage. `pieces` must contain the choice's device, precision and threads."""
    learner = _learner_of(choice, pieces.learners)
    num_envs = choice.num_actors // choice.num_servers
    server = pieces.env_server(num_envs)
    compute_s = num_envs * server.process_cpu_s
    rows = _rows_of_batch(learner, num_envs, choice.num_servers, compute_s + server.latency_s)
    cycle_s = compute_s + server.latency_s + learner.inference_of(num_envs).wall_s
    cpu_s = (
        server.process_cpu_s
        + server.pool_cpu_s
        + learner.inference_of(rows).cpu_s / rows
        + learner.update.cpu_s / pieces.steps_per_update
    )
    return Expected(
        choice=choice,
        paces={
            "environments": (LOCK_STEP if choice.num_servers > 1 else 1.0) * choice.num_actors / cycle_s,
            "inference": choice.num_actors / learner.inference_of(choice.num_actors).wall_s,
            "update": pieces.steps_per_update / learner.update.wall_s,
            "CPU": BUSY_CORES * pieces.cores / cpu_s,
        },
        inference_rows=rows,
    )


def choose(expected: Sequence[Expected]) -> Expected:
    """Returns the fastest; of equals, that with fewer processes, then threads, then environments, and with float32."""
    fastest = max(each.steps_per_s for each in expected)
    as_fast = [each for each in expected if each.steps_per_s >= (1 - TOLERANCE) * fastest]
    return min(as_fast, key=_size)


def best_of_each_size(expected: Iterable[Expected]) -> list[Expected]:
    """Returns the best choice for every device, precision, number of threads and of processes, fastest first."""

    def kind(each: Expected) -> tuple[str, str, int, int]:
        choice = each.choice
        return choice.device, choice.precision, choice.learner_threads, choice.num_servers

    groups = itertools.groupby(sorted(expected, key=kind), key=kind)
    return sorted((choose(list(group)) for _, group in groups), key=lambda each: -each.steps_per_s)


def _size(each: Expected) -> tuple[int, int, int, bool, float]:
    choice = each.choice
    is_low = choice.precision != "fp32"
    return choice.num_servers, choice.learner_threads, choice.num_actors, is_low, -each.steps_per_s


def _learner_of(choice: Choice, learners: Iterable[LearnerCost]) -> LearnerCost:
    wanted = (choice.device, choice.precision, choice.learner_threads)
    return next(cost for cost in learners if (cost.device, cost.precision, cost.threads) == wanted)


def _rows_of_batch(learner: LearnerCost, num_envs: int, num_servers: int, away_s: float) -> float:
    """Returns the rows that arrive while a batch is computed: at least one stream's, at most all streams'.

    away_s: time between a stream's reply and its next rows. Rows and their computing time depend on each other; the
    result is their fixed point.
    """
    rows = float(num_envs)
    for _ in range(32):
        busy_s = learner.inference_of(rows).wall_s
        arriving = num_envs * num_servers * busy_s / (away_s + busy_s)
        rows = 0.5 * rows + 0.5 * min(max(arriving, num_envs), num_envs * num_servers)
    return rows

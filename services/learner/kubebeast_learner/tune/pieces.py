"""Measurements of a machine: the cost of each piece of a training, interpolated between the measured sizes.

Times are seconds. wall: elapsed time; cpu: CPU time of all threads of the process.
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class EnvServerCost:
    """One env-server process with num_envs environments on one stream; costs are per env-step."""

    num_envs: int
    env_step_s: float
    """Time inside the environments."""
    process_cpu_s: float
    """CPU time of the env-server's processes, including env.step."""
    pool_cpu_s: float
    """CPU time of the learner's process without a model: decoding, batching, replies, rollouts."""
    latency_s: float
    """Round trip of a message without the time in the environments, for all num_envs together."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Call:
    """One call of a repeated function."""

    wall_s: float
    cpu_s: float


@dataclass(frozen=True, kw_only=True, slots=True)
class LearnerCost:
    """The model on a device, in a precision, with `threads` threads per operation on the CPU."""

    device: str
    precision: str
    threads: int
    update: Call
    """Batch to the device, update, weights published."""
    inference: Mapping[int, Call]
    """Rows of a batch to the time of its answer; at least two sizes."""

    def inference_of(self, rows: float) -> Call:
        """Interpolates linearly between measured sizes, and extrapolates from the nearest two; always positive."""
        sizes = sorted(self.inference)
        low, high = next(((a, b) for a, b in itertools.pairwise(sizes) if rows <= b), (sizes[-2], sizes[-1]))
        share = (rows - low) / (high - low)
        a, b = self.inference[low], self.inference[high]
        return Call(wall_s=_between(a.wall_s, b.wall_s, share), cpu_s=_between(a.cpu_s, b.cpu_s, share))


@dataclass(frozen=True, kw_only=True, slots=True)
class Pieces:
    """All measurements behind the choice."""

    cores: int
    """Cores that the machine or the container may use at once."""
    env_servers: Sequence[EnvServerCost]
    """Costs for at least two numbers of environments, or for one."""
    learners: Sequence[LearnerCost]
    """One for every candidate device, precision and number of threads."""
    steps_per_update: int
    """Env-steps per update."""
    unit: int = 1
    """Agents of one environment: numbers of environments are multiples of it."""
    cores_used_by_others: float = 0.0
    """Mean number of cores that other processes used meanwhile, which slows down the measurements."""

    def env_server(self, num_envs: int) -> EnvServerCost:
        """Returns the cost with num_envs environments: a part divided by num_envs, and a constant part."""
        costs = sorted(self.env_servers, key=lambda cost: cost.num_envs)
        few, many = costs[0], costs[-1]

        def of_step(name: str) -> float:
            """Returns a / num_envs + b through both measurements."""
            at_few, at_many = float(getattr(few, name)), float(getattr(many, name))
            if few.num_envs == many.num_envs:
                return at_few
            of_message = max(0.0, (at_few - at_many) / (1 / few.num_envs - 1 / many.num_envs))
            return max(0.0, at_many + of_message * (1 / num_envs - 1 / many.num_envs))

        slope = (many.latency_s - few.latency_s) / max(1, many.num_envs - few.num_envs)
        return EnvServerCost(
            num_envs=num_envs,
            env_step_s=of_step("env_step_s"),
            process_cpu_s=of_step("process_cpu_s"),
            pool_cpu_s=of_step("pool_cpu_s"),
            latency_s=few.latency_s + max(0.0, slope) * (num_envs - few.num_envs),
        )


def _between(a: float, b: float, share: float) -> float:
    return max(min(a, b) * 0.01, a + (b - a) * share)

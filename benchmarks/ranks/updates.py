"""Updates of one rank among several with batches that are always ready, on a dedicated core.

    python -m benchmarks.ranks.updates FOLDER SECONDS MODEL UNROLL_LENGTH BATCH_SIZE

writes FOLDER/<number of ranks>-<rank>.json and, for the first rank, FOLDER/trace.json.
"""

import json
import os
import sys
import time
from pathlib import Path

import torch

from kubebeast_common.spec.env_spec import EnvSpec
from kubebeast_envserver.envs.factory import make_vector_env
from kubebeast_learner.algorithm.learner import Learner
from kubebeast_learner.algorithm.made_up import made_up_rollout
from kubebeast_learner.config import LossConfig, ModelConfig, OptimizerConfig
from kubebeast_learner.models import make_model
from kubebeast_learner.profiling.trace import RECORDED_UPDATES, SKIPPED_UPDATES, Profiler
from kubebeast_learner.ranks.group import open_group
from kubebeast_learner.ranks.place import Place
from kubebeast_learner.ranks.turns import Turns

NULL_ENV = "Mock"


def measure(
    place: Place, folder: Path, seconds: float, model: str, unroll_length: int, batch_size: int
) -> dict[str, float]:
    """Measures updates for `seconds`, then records a trace of some more; blocks meanwhile."""
    env = make_vector_env(NULL_ENV, 1, seed=1, full_stacks=False)
    spec = EnvSpec.of(NULL_ENV, env.spec_observation, env.spec_action)
    network = make_model(spec.observation, spec.action, ModelConfig(model=model))
    rollout = made_up_rollout(network, spec.observation, unroll_length, batch_size)
    learner = Learner(network, OptimizerConfig(), LossConfig(), schedule_steps=1, compile="off")
    turns, num_valid = Turns(place.num_ranks, patience_s=60.0), int(rollout.valid.sum())

    def update(*, stop: bool = False) -> bool:
        turn = turns.agree(has_batch=True, num_valid=num_valid, num_fresh=num_valid, stop=stop)
        learner.update(rollout, step=0, share=turn.share)
        return turn.is_last

    for _ in range(SKIPPED_UPDATES):
        update()
    since, num_updates, is_last = time.perf_counter(), 0, False
    while not is_last:
        is_last = update(stop=place.is_first and time.perf_counter() - since > seconds)
        num_updates += 1
    update_s = (time.perf_counter() - since) / num_updates
    with Profiler(place.is_first, folder) as profiler:
        for _ in range(SKIPPED_UPDATES + RECORDED_UPDATES):
            update()
            profiler.step()
    num_bytes = sum(parameter.nbytes for parameter in network.parameters())
    return {"update_s": update_s, "gradient_mib": num_bytes / 2**20}


def main() -> None:
    folder, seconds, model, unroll_length, batch_size = sys.argv[1:]
    place, cores = Place.read(os.environ), sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, [cores[place.local_rank % len(cores)]])
    torch.set_num_threads(1)
    with open_group(place, torch.device("cpu"), timeout_s=60.0):
        result = measure(place, Path(folder), float(seconds), model, int(unroll_length), int(batch_size))
    Path(folder, f"{place.num_ranks}-{place.rank}.json").write_text(json.dumps(result))


if __name__ == "__main__":
    main()

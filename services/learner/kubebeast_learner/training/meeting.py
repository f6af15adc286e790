"""The beginning of a training: every rank waits until all know what is acted in."""

import threading

import torch

from kubebeast_learner.actors.base import Actors
from kubebeast_learner.actors.env_spec import EnvSpec
from kubebeast_learner.config import ConfigError
from kubebeast_learner.ranks.group import gather, sum_over_ranks
from kubebeast_learner.training.monitor import Monitor


def wait_for_env_spec(
    actors: Actors, monitor: Monitor, num_ranks: int, poll_ms: int, stop: threading.Event
) -> EnvSpec | None:
    """What is acted in, once one rank knows it; None when one was stopped before. ConfigError where ranks differ.

    poll_ms: longest wait of a rank before it hears of the others. One that has met no env-server yet expects what the
    others have: few env-servers may leave it without any.
    """
    while True:
        monitor.note_turn()
        spec = actors.wait_env_spec(poll_ms)
        known, stops = sum_over_ranks(torch.tensor([spec is not None, stop.is_set()]).int()).tolist()
        if stops:
            return None
        if spec is not None and known == num_ranks:
            return _require_same(spec)
        if known:
            specs = gather(None if spec is None else spec.to_plain())
            actors.expect(EnvSpec.from_plain(next(filter(None, specs))))
        actors.check()


def _require_same(spec: EnvSpec) -> EnvSpec:
    for rank, plain in enumerate(gather(spec.to_plain())):
        if difference := EnvSpec.from_plain(plain).difference(spec):
            raise ConfigError(f"the env-servers of rank {rank} have another environment: {difference}")
    return spec

"""Clients with one connection per episode train a policy as well as any, with every size of a batch."""

import os
import queue
import random
import signal
import threading
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import grpc
import numpy as np
import pytest

from harness.ports import free_port
from kubebeast_learner.commands import train
from kubebeast_learner.config import (
    LearnerConfig,
    LossConfig,
    ModelConfig,
    OptimizerConfig,
    PoolConfig,
    RolloutConfig,
    RunConfig,
)
from kubebeast_protos.v1 import PROTOCOL_VERSION
from kubebeast_protos.v1 import actor_pool_pb2 as pb
from kubebeast_protos.v1 import actor_pool_pb2_grpc as pb_grpc

End = Literal["bye", "close"]

NUM_ARMS = 3
NUM_CLIENTS = 4
UNROLL_LENGTH = 5
RECENT_EPISODES = 100
THRESHOLD = 0.7
"""Share of right decisions; a random player takes 1 / NUM_ARMS, with a standard deviation of 0.05 in those episodes."""
MAX_STEPS = 10_000
"""Ten times the need of a training that learns, so that only one that does not reaches it."""
WAIT_S = 300.0
"""Less than the test's limit: before its first answer the learner imports for half a minute on a busy machine."""
NOBODY_LISTENS = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.OUT_OF_RANGE, grpc.StatusCode.CANCELLED)
"""Statuses without a learner, after the run, and if the server shuts down under a call that has just begun."""


class Scores:
    """Shares of right decisions in the newest episodes of all clients."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self._shares: deque[float] = deque(maxlen=RECENT_EPISODES)
        self._lock = threading.Lock()

    def add(self, share: float) -> None:
        """Adds a share. Sends this process SIGTERM, which ends the training, when THRESHOLD is first reached."""
        with self._lock:
            self._shares.append(share)
            is_learnt = len(self._shares) == RECENT_EPISODES and np.mean(self._shares) >= THRESHOLD
            if is_learnt and not self.reached.is_set():
                self.reached.set()
                os.kill(os.getpid(), signal.SIGTERM)


class EpisodicClient:
    """Plays a contextual bandit: the arm to pull is the one that the observation, one-hot, shows.

    Each episode of num_decisions is a connection. Its last row carries no flag: the episode is over because the client
    leaves with a Bye ("bye": terminated) or hangs up ("close": truncated).
    """

    def __init__(self, address: str, num_decisions: int, end: End, seed: int, scores: Scores) -> None:
        self.error: BaseException | None = None
        self._address = address
        self._num_decisions = num_decisions
        self._end = end
        self._random = random.Random(seed)
        self._scores = scores
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(WAIT_S)

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._scores.add(self._play() / self._num_decisions)
            except grpc.RpcError as error:
                if error.code() not in NOBODY_LISTENS:
                    self.error = error
                    return
                self._stop.wait(0.05)

    def _play(self) -> float:
        """Plays one connection; returns the sum of rewards."""
        requests: queue.SimpleQueue[pb.ActRequest | None] = queue.SimpleQueue()
        with grpc.insecure_channel(self._address, options=[("grpc.use_local_subchannel_pool", 1)]) as channel:
            replies = iter(pb_grpc.ActorPoolStub(channel).Act(iter(requests.get, None), timeout=WAIT_S))
            try:
                requests.put(pb.ActRequest(hello=hello()))
                next(replies)
                total, reward = 0.0, 0.0
                for step in range(self._num_decisions):
                    arm = self._random.randrange(NUM_ARMS)
                    requests.put(observations(step, arm, reward))
                    (action,) = np.frombuffer(next(replies).actions.leaves[0], np.int64)
                    reward = float(action == arm)
                    total += reward
                requests.put(observations(self._num_decisions, self._random.randrange(NUM_ARMS), reward))
                if self._end == "bye":
                    requests.put(pb.ActRequest(bye=pb.Bye(reason="REASON_TERMINATED")))
                    for _ in replies:
                        pass
                else:
                    next(replies)  # data in transit may be lost when a client hangs up
            finally:
                requests.put(None)
        return total


def hello() -> pb.Hello:
    return pb.Hello(
        protocol_version=PROTOCOL_VERSION,
        env_server_id="episodic",
        instance_id="episodic",
        env_id="Bandit-v0",
        num_envs=1,
        observation=[pb.LeafSpec(dtype=pb.DTYPE_FLOAT32, shape=[NUM_ARMS])],
        action=[pb.LeafSpec(dtype=pb.DTYPE_INT64, num_categories=NUM_ARMS)],
    )


def observations(step: int, arm: int, reward: float) -> pb.ActRequest:
    row = np.eye(NUM_ARMS, dtype=np.float32)[arm]
    return pb.ActRequest(
        observations=pb.Observations(
            step=step,
            leaves=[row.tobytes()],
            rewards=np.float32(reward).tobytes(),
            terminated=b"\0",
            truncated=b"\0",
            is_first=bytes([step == 0]),
        )
    )


def config(address: str, savedir: Path, batch_size: int) -> LearnerConfig:
    return LearnerConfig(
        run=RunConfig(xpid="run", savedir=str(savedir), total_steps=MAX_STEPS, compile="off", progress="none"),
        rollout=RolloutConfig(unroll_length=UNROLL_LENGTH, batch_size=batch_size),
        model=ModelConfig(model="mlp", hidden_sizes=(16,), initialisation="orthogonal"),
        loss=LossConfig(discounting=0.5, entropy_cost=0.01, loss_reduction="mean"),
        optimizer=OptimizerConfig(optimizer="adam", learning_rate=0.03, learning_rate_schedule="constant"),
        pool=PoolConfig(address=address),
    )


@pytest.fixture
def scores() -> Iterator[Scores]:
    """Scores during which SIGTERM is ignored, so that one that comes after the learner's own end does no harm."""
    former = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    yield Scores()
    signal.signal(signal.SIGTERM, former)


@pytest.mark.parametrize(("num_decisions", "end"), [(1, "bye"), (3, "close")])
@pytest.mark.parametrize("batch_size", [1, 3, 8])
def test_a_policy_is_learnt_from_connections_that_are_episodes(
    tmp_path: Path, scores: Scores, batch_size: int, num_decisions: int, end: End
) -> None:
    address = f"127.0.0.1:{free_port()}"
    clients = [EpisodicClient(address, num_decisions, end, seed, scores) for seed in range(NUM_CLIENTS)]
    try:
        assert train.learn(config(address, tmp_path, batch_size)) == 0
    finally:
        for client in clients:
            client.stop()

    assert [client.error for client in clients] == [None] * NUM_CLIENTS
    assert scores.reached.is_set()

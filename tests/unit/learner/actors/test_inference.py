"""The inference worker answers the prepared batches of a pool that keeps the replies."""

import ctypes
import queue
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from kubebeast_learner.actors.core_states import CoreStateTable
from kubebeast_learner.actors.inference import InferenceWorker
from kubebeast_learner.actors.pool_thread import InferenceError
from kubebeast_learner.actors.weights import WeightPublisher
from kubebeast_learner.config import ModelConfig
from kubebeast_learner.models import Model, ModelInputs, make_model
from kubebeast_learner.models.actor_critic import ActorCritic
from tests.unit.learner.algorithm.learning_data import VECTOR, Leaf, discrete, make_mlp

A = 3
TIMEOUT_S = 30.0


@dataclass
class Reply:
    actions: list[NDArray[Any]]
    policy_logits: NDArray[np.float32]
    baseline: NDArray[np.float32]
    policy_version: int
    core_state: NDArray[np.float32] | None
    opponents: NDArray[np.int64] | None = None


@dataclass
class FakeBatch:
    """A kubebeast_native.InferenceBatch of the VECTOR leaf."""

    replies: "queue.SimpleQueue[Reply]"
    slots: NDArray[np.int32]
    is_first: NDArray[np.bool_]
    unroll_start: NDArray[np.bool_]
    observation: list[NDArray[Any]] = field(init=False)
    rewards: NDArray[np.float32] = field(init=False)
    last_actions: list[NDArray[Any]] = field(init=False)
    task: NDArray[np.int64] = field(init=False)
    opponent: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, np.bool_))

    def __post_init__(self) -> None:
        self.observation = [np.random.rand(self.num_rows, 5).astype(np.float32)]
        self.rewards = np.random.rand(self.num_rows).astype(np.float32)
        self.last_actions = [np.random.randint(A, size=self.num_rows)]
        self.task = np.arange(self.num_rows)

    @property
    def num_rows(self) -> int:
        return len(self.slots)

    def reply(self, *outputs: Any) -> None:
        self.replies.put(Reply(*outputs))

    def model_inputs(self) -> ModelInputs:
        observation, reward, last_action, is_first = (
            torch.from_numpy(x).unsqueeze(0)
            for x in (self.observation[0], self.rewards, self.last_actions[0], self.is_first)
        )
        return ModelInputs((observation,), reward, last_action, is_first)


class FakePool:
    def __init__(self) -> None:
        self.batches: queue.SimpleQueue[FakeBatch | Exception] = queue.SimpleQueue()
        self.replies: queue.SimpleQueue[Reply] = queue.SimpleQueue()

    def next_inference(self, timeout_ms: int) -> Any:
        try:
            item = self.batches.get(timeout=timeout_ms / 1000)
        except queue.Empty:
            return None
        if isinstance(item, Exception):
            raise item
        return item

    def ask(
        self,
        slots: list[int],
        *,
        is_first: list[bool] | None = None,
        unroll_start: list[bool] | None = None,
        opponent: list[bool] | None = None,
    ) -> tuple[FakeBatch, Reply]:
        no = [False] * len(slots)
        first, start, other = (np.array(flag or no) for flag in (is_first, unroll_start, opponent))
        batch = FakeBatch(self.replies, np.array(slots, np.int32), first, start, opponent=other)
        self.batches.put(batch)
        return batch, self.replies.get(timeout=TIMEOUT_S)


@pytest.fixture
def pool() -> FakePool:
    return FakePool()


def make_worker(pool: FakePool, model: Model, **options: Any) -> tuple[InferenceWorker, WeightPublisher]:
    weights = WeightPublisher(model, version=1)
    if model.core_state_size:
        options["core_states"] = CoreStateTable(model, max_envs=8)
    worker = InferenceWorker(pool, weights, **options)
    worker.start()
    return worker, weights


def test_reply_holds_the_models_outputs(pool: FakePool) -> None:
    action = Leaf((), "int32", "action", num_categories=A)
    model = make_model([VECTOR], [action], ModelConfig(model="mlp", hidden_sizes=(8,)))
    worker, weights = make_worker(pool, model)
    batch, reply = pool.ask([4, 0, 2])
    worker.stop()
    with torch.no_grad(), weights.acquire() as (replica, _):
        output, _ = replica(batch.model_inputs(), ())
    np.testing.assert_allclose(reply.policy_logits, output.policy_logits[0], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(reply.baseline, output.baseline[0], rtol=1e-5, atol=1e-6)
    assert reply.policy_logits.dtype == reply.baseline.dtype == np.float32
    (actions,) = reply.actions
    assert actions.dtype == np.int32
    assert actions.shape == (3,)
    assert ((actions >= 0) & (actions < A)).all()
    assert reply.policy_version == 1
    assert reply.core_state is None


def test_rows_are_valued_as_those_of_their_task(pool: FakePool) -> None:
    model = make_model([VECTOR], [discrete(A)], ModelConfig(hidden_sizes=(8,), normalise_values=True), num_tasks=3)
    worker, _ = make_worker(pool, model)
    batch, reply = pool.ask([4, 0, 2])
    worker.stop()
    inputs = batch.model_inputs()
    with torch.no_grad():
        for row in range(3):
            output, _ = model(inputs._replace(task=torch.full((1, 3), row)), ())
            np.testing.assert_allclose(reply.baseline[row], output.baseline[0, row], rtol=1e-4, atol=1e-5)


def test_rows_wait_until_they_may_be_answered_and_get_the_weights_of_then(pool: FakePool) -> None:
    may_answer = threading.Event()
    worker, weights = make_worker(pool, make_mlp(A), may_answer=may_answer)
    pool.batches.put(batch := FakeBatch(pool.replies, np.array([0], np.int32), *[np.array([False])] * 2))
    while not pool.batches.empty():  # the worker has it
        pass
    weights.publish(2)
    assert pool.replies.empty()
    may_answer.set()
    assert batch.replies.get(timeout=TIMEOUT_S).policy_version == 2
    worker.stop()


def test_a_worker_ends_while_rows_wait(pool: FakePool) -> None:
    worker, _ = make_worker(pool, make_mlp(A), may_answer=threading.Event())
    pool.batches.put(FakeBatch(pool.replies, np.array([0], np.int32), *[np.array([False])] * 2))
    while not pool.batches.empty():
        pass
    worker.stop()
    assert not worker.is_alive()


def test_newly_published_weights_act_at_once(pool: FakePool) -> None:
    model = make_mlp(A)
    assert isinstance(model, ActorCritic)
    worker, weights = make_worker(pool, model)
    pool.ask([0])
    with torch.no_grad():
        model.baseline.weight.zero_()
        model.baseline.bias.fill_(42.0)
    weights.publish(2)
    _, reply = pool.ask([0])
    worker.stop()
    assert reply.policy_version == 2
    assert reply.baseline == 42.0


def test_core_states_follow_their_slots(pool: FakePool) -> None:
    model = make_mlp(A, use_lstm=True)
    worker, _ = make_worker(pool, model)
    state = {slot: model.initial_state(1) for slot in range(8)}
    generator = np.random.default_rng(0)
    for _ in range(6):
        slots = generator.permutation(8)[:3].tolist()
        is_first = (generator.random(3) < 0.3).tolist()
        batch, reply = pool.ask(slots, is_first=is_first, unroll_start=[True, False, True])
        assert reply.core_state is not None
        expected_before = [model.pack_core_state(state[slots[row]]) for row in (0, 2)]
        np.testing.assert_allclose(reply.core_state, torch.cat(expected_before), rtol=1e-5, atol=1e-6)
        inputs = batch.model_inputs()
        for row, slot in enumerate(slots):
            one = inputs.map(lambda x, row=row: x[:, [row]])
            with torch.no_grad():
                output, state[slot] = model(one, state[slot])
            np.testing.assert_allclose(reply.baseline[row], output.baseline.item(), rtol=1e-4, atol=1e-5)
    worker.stop()


def test_unroll_start_gets_the_state_from_before_is_first_is_applied(pool: FakePool) -> None:
    worker, _ = make_worker(pool, make_mlp(A, use_lstm=True))
    pool.ask([5])
    _, reply = pool.ask([5], is_first=[True], unroll_start=[True])
    worker.stop()
    assert reply.core_state is not None
    assert np.abs(reply.core_state).sum() > 0


def test_batch_without_unroll_start_sends_no_rows_of_state(pool: FakePool) -> None:
    model = make_mlp(A, use_lstm=True)
    worker, _ = make_worker(pool, model)
    _, reply = pool.ask([1, 2])
    worker.stop()
    assert reply.core_state is not None
    assert reply.core_state.shape == (0, model.core_state_size)


def test_same_seed_draws_the_same_actions(pool: FakePool) -> None:
    draws = []
    for seed in (3, 3, 4):
        worker, _ = make_worker(pool, make_mlp(A), seed=seed)
        np.random.seed(0)
        draws.append(pool.ask([0] * 64)[1].actions[0].tolist())
        worker.stop()
    assert draws[0] == draws[1] != draws[2]


def test_error_in_the_thread_reaches_the_caller(pool: FakePool) -> None:
    worker, _ = make_worker(pool, make_mlp(A))
    worker.raise_error()
    pool.batches.put(OSError("the pool broke"))
    worker.join(TIMEOUT_S)
    with pytest.raises(InferenceError, match="the pool broke") as caught:
        worker.raise_error()
    assert isinstance(caught.value.__cause__, OSError)
    with pytest.raises(InferenceError, match="the pool broke"):
        worker.stop()


def test_batch_the_model_cannot_take_ends_the_worker_with_its_error(pool: FakePool) -> None:
    worker, _ = make_worker(pool, make_mlp(A))
    batch = FakeBatch(pool.replies, np.zeros(1, np.int32), np.zeros(1, np.bool_), np.zeros(1, np.bool_))
    batch.observation = [np.zeros((1, 9), np.float32)]
    pool.batches.put(batch)
    worker.join(TIMEOUT_S)
    with pytest.raises(InferenceError):
        worker.raise_error()


def test_pool_that_closes_while_stopping_is_no_error() -> None:
    entered, closed = threading.Event(), threading.Event()

    class ClosingPool(FakePool):
        def next_inference(self, timeout_ms: int) -> Any:
            entered.set()
            closed.wait(TIMEOUT_S)
            raise RuntimeError("closed")

    worker, _ = make_worker(ClosingPool(), make_mlp(A))
    assert entered.wait(TIMEOUT_S)
    stopper = threading.Thread(target=worker.stop)
    stopper.start()
    assert worker.stopping.wait(TIMEOUT_S)
    closed.set()
    stopper.join(TIMEOUT_S)
    worker.raise_error()


def test_idle_worker_stops(pool: FakePool) -> None:
    worker, _ = make_worker(pool, make_mlp(A))
    worker.stop(TIMEOUT_S)


def openmp_threads() -> int:
    """Returns the number of threads that a parallel region of the calling thread gets."""
    libraries = {line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if "libgomp" in line}
    return int(ctypes.CDLL(libraries.pop()).omp_get_max_threads())


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_worker_computes_with_as_many_threads_as_were_set(pool: FakePool) -> None:
    before = torch.get_num_threads()
    seen: list[int] = []
    torch.set_num_threads(before + 1)
    try:
        worker = InferenceWorker(pool, WeightPublisher(make_mlp(A)))
        next_inference = pool.next_inference

        def look(timeout_ms: int) -> Any:
            seen.append(openmp_threads())
            return next_inference(timeout_ms)

        pool.next_inference = look  # type: ignore[method-assign]
        worker.start()
        pool.ask([0])
        worker.stop()
    finally:
        torch.set_num_threads(before)
    assert set(seen) == {before + 1}

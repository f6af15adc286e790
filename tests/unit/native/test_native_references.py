"""The native pool releases arrays, their memory and the arguments of a reply with their last reference."""

import gc
import sys
import weakref
from typing import Any

import numpy as np
import psutil
import pytest
from numpy.typing import NDArray

import kubebeast_native as native
from kubebeast_common.spec.leaves import Leaf
from kubebeast_envserver.rows.rows import StepRows, WithoutOptions
from tests.unit.native.native_client import NUM_LOGITS, PATIENCE_MS, Client, T, next_batch, outputs, roll
from tests.unit.native.native_host import hosted

LARGE_ROW_BYTES = 1 << 20
NUM_LARGE_STEPS = 200


def assert_released(batch: Any, names: str) -> None:
    """Checks that the attributes of `batch` in `names`, arrays or lists of arrays, die with their last reference."""
    before = sys.getrefcount(batch)
    values = [getattr(batch, name) for name in names.split()]
    arrays = [array for value in values for array in (value if isinstance(value, list) else [value])]
    dead = [weakref.ref(array) for array in arrays]
    del values, arrays
    gc.collect()
    assert [reference() for reference in dead] == [None] * len(dead)
    assert sys.getrefcount(batch) == before


def test_arrays_of_an_inference_batch_are_released(pool: native.ActorPool, client: Client) -> None:
    client.observe()
    batch = next_batch(pool)
    assert_released(batch, "observation rewards terminated truncated is_first last_actions slots unroll_start")
    batch.reply(**outputs(batch))


def test_arrays_of_a_rollout_batch_are_released(pool: native.ActorPool, client: Client) -> None:
    roll(pool, client, T + 1)
    batch = pool.next_rollouts(PATIENCE_MS)
    assert_released(batch, "observation rewards terminated truncated is_first last_actions actions")
    assert_released(batch, "policy_logits baseline policy_version valid core_state")


@pytest.mark.parametrize("is_refused", [False, True])
def test_a_reply_keeps_no_reference_to_its_arguments(pool: native.ActorPool, client: Client, is_refused: bool) -> None:
    client.observe()
    batch = next_batch(pool)
    good = outputs(batch)
    given = good | {"policy_logits": good["policy_logits"].astype(np.float64)} if is_refused else good
    values = [*given["actions"], *given.values()]
    before = [sys.getrefcount(value) for value in values]
    if is_refused:
        with pytest.raises(ValueError, match="policy_logits"):
            batch.reply(**given)
        batch.reply(**good)
    else:
        batch.reply(**given)
    assert client.actions().tolist() == [1, 1]
    assert [sys.getrefcount(value) for value in values] == before


class LargeEnv(WithoutOptions):
    """One endless episode of one environment; every row is LARGE_ROW_BYTES of its number."""

    def __init__(self) -> None:
        self.spec_observation = [Leaf("", "uint8", (LARGE_ROW_BYTES,))]
        self.spec_action = [Leaf("", "int64", (), num_categories=4)]
        self.num_envs, self.num_agents = 1, 1
        self.takes_turns = False
        self._n = 0

    def reset(self) -> StepRows:
        return self._rows(is_first=True)

    def step(self, actions: list[NDArray[Any]]) -> StepRows:
        self._n += 1
        return self._rows(is_first=False)

    def close(self) -> None:
        pass

    def _rows(self, *, is_first: bool) -> StepRows:
        no = np.zeros(1, np.bool_)
        observation = np.full((1, LARGE_ROW_BYTES), self._n % 256, np.uint8)
        return StepRows([observation], np.zeros(1, np.float32), no, no, np.array([is_first]), [])


def test_memory_stays_flat_while_rows_come_and_go() -> None:
    pool = native.ActorPool(address="127.0.0.1:0", run_id="run", unroll_length=T, batch_size=1)
    pool.start()
    rss_bytes = []
    with hosted(LargeEnv(), pool.address):
        assert pool.wait_env_spec(PATIENCE_MS) is not None
        pool.open(NUM_LOGITS, core_state_size=0)
        for n in range(NUM_LARGE_STEPS):
            batch = next_batch(pool)
            assert (batch.observation[0][0] == n % 256).all()
            batch.reply(**outputs(batch) | {"core_state": None})
            pool.next_rollouts(0)
            rss_bytes.append(psutil.Process().memory_info().rss)
    pool.close()
    half = NUM_LARGE_STEPS // 2
    assert max(rss_bytes[half:]) - max(rss_bytes[:half]) < half * LARGE_ROW_BYTES / 4

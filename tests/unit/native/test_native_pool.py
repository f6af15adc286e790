"""Options, waiting and closing of a native actor pool work from Python."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import kubebeast_native as native
from tests.unit.native.native_client import NUM_LOGITS, PATIENCE_MS, SPEC, make_pool

BLOCKING_CALLS: list[Callable[[native.ActorPool], object]] = [
    lambda pool: pool.next_inference(PATIENCE_MS),
    lambda pool: pool.next_rollouts(PATIENCE_MS),
    lambda pool: pool.wait_env_spec(PATIENCE_MS),
]


@pytest.mark.parametrize("call", BLOCKING_CALLS)
def test_close_wakes_a_blocked_call_which_does_not_hold_the_gil(call: Callable[[native.ActorPool], object]) -> None:
    pool = make_pool(expected=None)
    pool.start()
    entered = threading.Event()

    def blocked() -> None:
        entered.set()
        call(pool)

    with ThreadPoolExecutor(max_workers=1) as executor:
        waiter = executor.submit(blocked)
        assert entered.wait()
        # If the waiter held the GIL, this thread would get here only after the call had timed out with None.
        pool.close()
        with pytest.raises(native.ClosedError, match="closed"):
            waiter.result()


@pytest.mark.parametrize("call", BLOCKING_CALLS)
def test_calls_after_close_raise_closed_error(call: Callable[[native.ActorPool], object]) -> None:
    pool = make_pool()
    pool.close()
    pool.close()
    with pytest.raises(native.ClosedError):
        call(pool)


def test_waiting_calls_return_none_at_the_timeout() -> None:
    pool = make_pool(expected=None)
    assert pool.wait_env_spec(0) is None
    assert pool.next_inference(1) is None
    assert pool.next_rollouts(1) is None
    with pytest.raises(ValueError, match="timeout_ms = -1"):
        pool.next_inference(-1)


def test_open_needs_a_spec_and_happens_once() -> None:
    pool = make_pool(expected=None)
    with pytest.raises(RuntimeError, match="wait_env_spec"):
        pool.open(NUM_LOGITS, 0)
    pool.expect(SPEC)
    pool.open(NUM_LOGITS, 0)
    with pytest.raises(RuntimeError, match="opened before"):
        pool.open(NUM_LOGITS, 0)


def test_only_stacks_of_bytes_are_interleaved() -> None:
    pool = make_pool()
    with pytest.raises(ValueError, match=r'interleaved\[1\] is true: "speed" float32 \[\] is no stack of bytes'):
        pool.open(NUM_LOGITS, 0, interleaved=[True, True])
    pool.close()


def test_an_address_in_use_is_an_os_error(pool: native.ActorPool) -> None:
    with pytest.raises(OSError, match=pool.address):
        make_pool(address=pool.address).start()


@pytest.mark.parametrize(
    ("option", "value"),
    [("unroll_length", -1), ("batch_size", 0), ("max_queued_rollouts", 1), ("max_envs", -1), ("step_timeout_ms", 0)],
)
def test_a_bad_option_is_named(option: str, value: int) -> None:
    with pytest.raises(ValueError, match=f"{option} = {value}"):
        make_pool(**{option: value})


def test_bad_task_shares_are_named() -> None:
    with pytest.raises(ValueError, match="task_shares: Test-v0 is there twice"):
        make_pool(task_shares=[("Test-v0", 1), ("Test-v0", 2)])


def test_specs_describe_themselves() -> None:
    spec = make_pool().wait_env_spec(0)
    assert spec is not None
    image, speed = spec.observation
    assert (image.path, image.dtype, image.shape, image.frame_stack) == ("image", "uint8", (2, 3), 2)
    assert image.row_shape == (2, 2, 3)
    assert (speed.row_shape, speed.num_categories) == ((), 0)
    assert spec.action[0].num_categories == 4
    assert spec.env_id == "Test-v0"
    assert repr(image) == 'LeafSpec("image" uint8 [2, 3] stack 2)'


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("x", "complex64", (1,)), "dtype 'complex64'"),
        (("x", "uint8", (-1,)), "negative dimension -1"),
        (("x", "uint8", (1,), 0), "frame_stack = 0"),
        (("x", "uint8", (1,), 1, -2), "num_categories = -2"),
    ],
)
def test_a_bad_leaf_is_refused(arguments: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        native.LeafSpec(*arguments)

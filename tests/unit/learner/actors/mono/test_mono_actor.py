"""An actor process fills blocks with overlapping rows, its actions, its policy and its core state."""

import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from kubebeast_envserver.rows.rows import StepRows
from tests.unit.envserver.envs.scripted_env import NUM_ENVS, ScriptedEnv, StridedEnv
from tests.unit.learner.actors.mono.mono_actor import T, empty_block, filled_blocks, make_actor


@pytest.fixture(autouse=True)
def inference_mode() -> Iterator[None]:
    with torch.inference_mode():
        yield


def test_the_last_row_of_a_block_is_the_first_of_the_next() -> None:
    blocks, _, _ = filled_blocks(3)
    for before, after in itertools.pairwise(blocks):
        assert torch.equal(before.observation[0][-1], after.observation[0][0])
        for name in ("rewards", "terminated", "truncated", "is_first", "last_action"):
            assert torch.equal(getattr(before, name)[-1], getattr(after, name)[0]), name
    rows = torch.cat([block.observation[0][:T, 0, 0] for block in blocks])
    assert rows.tolist() == list(range(3 * T))


def test_the_stored_actions_are_those_the_environments_took() -> None:
    blocks, env, _ = filled_blocks(3)
    stored = torch.cat([block.action for block in blocks]).numpy()
    np.testing.assert_array_equal(stored, np.stack(env.actions))
    for block in blocks:
        expected = block.action.masked_fill(block.is_first[1:], 0)
        assert torch.equal(block.last_action[1:], expected)


def test_a_transition_from_a_final_row_is_not_valid() -> None:
    blocks, _, _ = filled_blocks(4)
    for block in blocks:
        final = block.terminated | block.truncated
        assert torch.equal(block.valid, ~final[:-1])
        assert torch.equal(block.is_first[1:], final[:-1])
        assert (block.rewards[block.is_first] == 0).all()
    assert torch.cat([block.terminated[:T, 0] for block in blocks]).sum() == 3
    assert torch.cat([block.truncated[:T, 1] for block in blocks]).sum() == 2
    assert not any(block.terminated[:, 1].any() or block.truncated[:, 0].any() for block in blocks)


class InterruptedEnv(ScriptedEnv):
    """Environment 0 fails in the middle of an episode: its rows with these numbers are interrupted, or absent if an
    episode
    is due.
    """

    def __init__(self, rows: tuple[int, ...]) -> None:
        super().__init__()
        self._interrupted = rows

    def step(self, actions: list[Any]) -> StepRows:
        rows = super().step(actions)
        failed = np.array([self._n in self._interrupted, False])
        self._final = self._final | failed
        return replace(rows, truncated=rows.truncated | failed, rewards=rows.rewards * ~failed, interrupted=failed)


@pytest.mark.parametrize("rows", [(1,), (T - 1,), (T,), (T + 3,), (1, 3), (6, 8), (6, 7)])
def test_a_transition_into_or_out_of_an_interrupted_row_is_not_valid(rows: tuple[int, ...]) -> None:
    blocks, _, _ = filled_blocks(3, env=InterruptedEnv(rows))
    valid = torch.cat([block.valid[:, 0] for block in blocks])
    final_rows = (*rows, 5, 10)
    expected = [t + 1 not in rows and t not in final_rows for t in range(3 * T)]
    assert valid.tolist() == expected
    assert torch.cat([block.truncated[:T, 0] for block in blocks]).nonzero().flatten().tolist() == [*rows]
    is_first = torch.cat([block.is_first[:T, 0] for block in blocks])
    assert all(is_first[row + 1] for row in rows)


def test_the_stored_policy_is_the_one_that_acted() -> None:
    blocks, _, model = filled_blocks(2)
    for block in blocks:
        output, _ = model(block.model_inputs, ())
        torch.testing.assert_close(block.policy_logits, output.policy_logits[:-1])
        assert (block.policy_version == 7).all()


def test_a_memory_is_carried_over_eleven_blocks_and_forgotten_at_the_start_of_an_episode() -> None:
    blocks, _, model = filled_blocks(11, use_lstm=True)
    core_state = model.initial_state(NUM_ENVS)
    for block in blocks:
        for kept, expected in zip(block.core_state, core_state, strict=True):
            torch.testing.assert_close(kept, expected)
        output, _ = model(block.model_inputs, block.core_state)
        torch.testing.assert_close(block.policy_logits, output.policy_logits[:-1])
        _, core_state = model(block.model_inputs.map(lambda x: x[:-1]), core_state)


def test_published_weights_act_from_the_next_step() -> None:
    actor, _, model, weights, layout = make_actor()
    block = empty_block(layout)
    actor.fill(block)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    weights.publish(model, 8)
    actor.fill(block)
    assert (block.policy_version == 8).all()
    assert (block.policy_logits == 0).all()


def test_finished_games_are_reported() -> None:
    actor, _, _, _, layout = make_actor()
    block = empty_block(layout)
    episodes = [actor.fill(block) for _ in range(3)]
    ended = [[(episode.episode_return, episode.length) for episode in each] for each in episodes]
    assert ended == [[], [(5.0, 5), (6.0, 5)], [(10.0, 5), (12.0, 5)]]
    assert {episode.env_id for each in episodes for episode in each} == {"Scripted-v0"}


def test_every_row_is_inferred_once_the_first_and_the_shared_ones_too() -> None:
    actor, _, _, weights, layout = make_actor()
    inferred: list[float] = []
    model, _ = weights.current()
    with model.register_forward_pre_hook(lambda _, inputs: inferred.append(inputs[0].observation[0][0, 0, 0].item())):
        block = empty_block(layout)
        for _ in range(3):
            actor.fill(block)
    assert inferred == list(range(3 * T))


def test_strided_observations_are_kept_as_they_are() -> None:
    plain, _, _ = filled_blocks(3)
    strided, _, _ = filled_blocks(3, env=StridedEnv())
    for before, after in zip(plain, strided, strict=True):
        assert torch.equal(before.observation[0], after.observation[0])

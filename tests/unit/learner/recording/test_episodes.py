"""Episodes are followed from unroll to unroll of each environment, and are whole only if both ends are recorded."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from kubebeast_common.spec.env_spec import EnvSpec
from kubebeast_common.spec.leaves import Leaf
from kubebeast_learner.algorithm.rollout import Rollout, map_tensors
from kubebeast_learner.distributions import ActionDistribution
from kubebeast_learner.recording.episodes import Episode, episodes_of
from kubebeast_learner.recording.reader import read_recordings
from kubebeast_learner.recording.recorder import Limits, Recorder
from kubebeast_learner.recording.shards import RecordingError
from tests.unit.learner.recording.recorded_batches import CHOICE, record, source_of

LENGTH = 4
SPEC = EnvSpec("Numbered-v0", (Leaf("row", "float32", (1,)), Leaf("film", "uint8", (2,), frame_stack=3)), (CHOICE,))
SOURCE = source_of(SPEC, unroll_length=LENGTH, batch_size=1)
RUNNING, FIRST, TERMINATED, TRUNCATED, INTERRUPTED = " ftci"
"""Kinds of rows."""


def unrolls(kinds: str, *, stream: int = 0, env: int = 0) -> list[Rollout]:
    """Returns the unrolls of an environment with one row for each character; row n has the observation and reward n."""
    count = (len(kinds) - 1) // LENGTH
    rows = np.arange(len(kinds))
    begins = [kinds[: row + 1].rfind(FIRST) for row in rows]
    stacks = np.stack([np.maximum(rows + place, begins) for place in (-2, -1, 0)], axis=1)
    final = np.isin(list(kinds), [TERMINATED, TRUNCATED, INTERRUPTED])
    valid = ~final[:-1] & (np.array(list(kinds[1:])) != INTERRUPTED)
    made = []
    for number in range(count):
        own = slice(number * LENGTH, (number + 1) * LENGTH + 1)
        steps = slice(own.start, own.stop - 1)
        made.append(_unroll(kinds[own], rows[own], stacks[own], valid[steps], (stream, env, number)))
    return made


def _unroll(
    kinds: str, rows: np.ndarray, stacks: np.ndarray, valid: np.ndarray, origin: tuple[int, int, int]
) -> Rollout:
    flags = {kind: torch.tensor([[each == kind] for each in kinds]) for kind in (FIRST, TERMINATED, TRUNCATED)}
    numbers = torch.from_numpy(rows).unsqueeze(1)
    frames = torch.from_numpy(stacks).to(torch.uint8)[:, None, :, None].repeat(1, 1, 1, 2)
    return Rollout(
        observation=(numbers.float().unsqueeze(2), frames),
        rewards=numbers.float(),
        terminated=flags[TERMINATED],
        truncated=flags[TRUNCATED] | torch.tensor([[each == INTERRUPTED] for each in kinds]),
        is_first=flags[FIRST],
        last_action=numbers % 3 * ~flags[FIRST],
        action=numbers[1:] % 3,
        policy_logits=torch.zeros(LENGTH, 1, 3),
        valid=torch.from_numpy(valid).unsqueeze(1),
        policy_version=torch.zeros(LENGTH, 1, dtype=torch.int64),
        core_state=(),
        distribution=ActionDistribution.of(SPEC.action),
        origin=torch.tensor(origin).unsqueeze(1),
    )


def episodes(folder: Path, batches: Sequence[Rollout]) -> list[Episode]:
    record(folder, batches, SOURCE)
    (recording,) = read_recordings(folder)
    return list(episodes_of(recording))


def rows_of(episode: Episode) -> list[int]:
    return list(map(int, episode.observation[0][:, 0]))


def test_an_episode_goes_on_in_the_next_unroll(tmp_path: Path) -> None:
    first, second, rest = episodes(tmp_path, unrolls("f     tf  tf   cf"))

    assert (rows_of(first), rows_of(second)) == ([0, 1, 2, 3, 4, 5, 6], [7, 8, 9, 10])
    assert rows_of(rest) == [11, 12, 13, 14, 15]
    assert [(each.terminated, each.truncated) for each in (first, second, rest)] == [
        (True, False),
        (True, False),
        (False, True),
    ]
    assert first.is_whole and second.is_whole and rest.is_whole


def test_each_step_has_the_action_and_the_reward_that_led_to_its_result(tmp_path: Path) -> None:
    (episode,) = episodes(tmp_path, unrolls("f   t"))
    assert episode.action[0].tolist() == [1, 2, 0, 1]
    assert episode.rewards.tolist() == [1.0, 2.0, 3.0, 4.0]
    assert episode.action[0].dtype == np.int64 and episode.rewards.dtype == np.float32


def test_stacks_are_whole_again_across_unrolls(tmp_path: Path) -> None:
    (episode,) = episodes(tmp_path, unrolls("f       t"))
    assert episode.observation[1].shape == (9, 3, 2)
    assert episode.observation[1][:, :, 0].tolist() == [[max(0, n - 2), max(0, n - 1), n] for n in range(9)]


def test_an_end_in_the_last_row_of_an_unroll_is_not_repeated(tmp_path: Path) -> None:
    first, second = episodes(tmp_path, unrolls("f   tf  t"))
    assert (rows_of(first), rows_of(second)) == ([0, 1, 2, 3, 4], [5, 6, 7, 8])


def test_a_begin_in_the_last_row_of_an_unroll_is_not_lost(tmp_path: Path) -> None:
    first, second = episodes(tmp_path, unrolls("f  tf   t"))
    assert (rows_of(first), rows_of(second)) == ([0, 1, 2, 3], [4, 5, 6, 7, 8])
    assert second.is_whole


def test_what_has_no_beginning_or_no_end_is_not_whole(tmp_path: Path) -> None:
    head, tail = episodes(tmp_path, unrolls("  tf     "))
    assert (rows_of(head), rows_of(tail)) == ([0, 1, 2], [3, 4, 5, 6, 7, 8])
    assert (head.terminated, head.truncated, head.is_whole) == (True, False, False)
    assert (tail.terminated, tail.truncated, tail.is_whole) == (False, True, False)


def test_an_episode_with_a_missing_unroll_is_in_two_parts(tmp_path: Path) -> None:
    batches = unrolls("f              tf")[:4]
    before, after = episodes(tmp_path, [batches[0], batches[2], batches[3]])
    assert (rows_of(before), rows_of(after)) == ([0, 1, 2, 3, 4], list(range(8, 16)))
    assert not before.is_whole and not after.is_whole


@pytest.mark.parametrize("kinds", ["f  if  tf", "f   if  t", "f     if "])
def test_a_failed_episode_is_cut_before_the_failure(kinds: str, tmp_path: Path) -> None:
    failed, *others = episodes(tmp_path, unrolls(kinds))
    assert rows_of(failed) == list(range(kinds.index(INTERRUPTED)))
    assert (failed.terminated, failed.truncated, failed.is_whole) == (False, True, False)
    assert [each.is_whole for each in others] == [TERMINATED in kinds]


def test_the_end_of_a_stream_is_no_end_of_an_episode(tmp_path: Path) -> None:
    (unroll,) = unrolls("f c  ")
    unroll.valid[2:] = False  # padding
    (cut,) = episodes(tmp_path, [unroll])
    assert rows_of(cut) == [0, 1, 2]
    assert (cut.truncated, cut.is_whole) == (True, False)


def test_environments_and_streams_are_kept_apart(tmp_path: Path) -> None:
    kinds = "f      tf"
    mine, other, later = unrolls(kinds), unrolls(kinds, env=1), unrolls(kinds, stream=1)
    made = episodes(tmp_path, [mine[0], other[0], later[0], other[1], mine[1], later[1]])
    assert [rows_of(each) for each in made if each.is_whole] == [list(range(8))] * 3


def test_streams_of_two_processes_are_kept_apart(tmp_path: Path) -> None:
    before, after = unrolls("f      tf")
    record(tmp_path, [before], SOURCE)
    record(tmp_path, [after], SOURCE, first=1)
    (recording,) = read_recordings(tmp_path)
    assert [each.is_whole for each in episodes_of(recording)] == [False, False]


def test_replayed_unrolls_are_left_out(tmp_path: Path) -> None:
    first, second = unrolls("f      tf")
    source = replace(SOURCE, batch_size=2)
    both = _beside(second, first)
    with Recorder(tmp_path, source, update=0, limits=Limits(1 << 20, 0), failures={}) as recorder:
        recorder.add(_beside(first, first), update=0, step=0)
        recorder.add(both, update=1, step=0)
    (recording,) = read_recordings(tmp_path)
    assert [rows_of(each) for each in episodes_of(recording)] == [list(range(8))]


def _beside(mine: Rollout, replayed: Rollout) -> Rollout:
    return map_tensors(lambda a, b: torch.cat([a, b], dim=1), mine, replayed, num_replayed=1)


def test_unrolls_without_an_origin_are_named(tmp_path: Path) -> None:
    (unroll,) = unrolls("f   t")
    with pytest.raises(RecordingError, match=r"unrolls-0000000000.safetensors: its unrolls have no origin"):
        episodes(tmp_path, [replace(unroll, origin=None)])

"""A run keeps its newest and its best checkpoints, whatever it has deleted before."""

import math

from hypothesis import given
from hypothesis import strategies as st

from kubebeast_runs.best.rule import best_first, kept
from kubebeast_runs.checkpoints import SavedCheckpoint, name_of
from kubebeast_runs.storage.storage import StoredFile

SCORES = st.lists(st.sampled_from([math.nan, math.inf, None, -1.0, 0.0, 1.0, 2.5]), max_size=30)


def saved(step: int) -> SavedCheckpoint:
    return SavedCheckpoint(step, StoredFile(name_of(step), 1, 0, str(step)))


def steps(checkpoints: object) -> list[int]:
    assert isinstance(checkpoints, (list, set))
    return sorted(each.step for each in checkpoints)


@given(SCORES, st.integers(1, 4), st.integers(0, 4))
def test_what_is_kept_save_by_save_are_the_newest_and_the_best_of_the_whole_run(
    scores: list[float | None], num_newest: int, num_best: int
) -> None:
    by_step = {step: score for step, score in enumerate(scores) if score is not None}
    existing: set[SavedCheckpoint] = set()
    for step in range(len(scores)):
        existing = kept([*existing, saved(step)], num_newest, num_best, [by_step])
        past = [(score, at) for at, score in by_step.items() if at <= step and math.isfinite(score)]
        best = [at for _, at in sorted(past, reverse=True)[:num_best]]
        newest = range(max(0, step + 1 - num_newest), step + 1)
        assert steps(existing) == sorted({*newest, *best})


@given(SCORES, SCORES, st.integers(1, 4))
def test_of_several_judges_each_keeps_its_own_best(
    first: list[float | None], second: list[float | None], num_best: int
) -> None:
    judges = [{step: score for step, score in enumerate(scores) if score is not None} for scores in (first, second)]
    checkpoints = [saved(step) for step in range(max(len(first), len(second)))]
    remaining = kept(checkpoints, 1, num_best, judges)
    assert len(remaining) <= 1 + 2 * num_best
    for scores in judges:
        assert set(best_first(checkpoints, scores)[:num_best]) <= remaining


def test_of_equal_scores_the_newer_is_the_better_and_those_without_one_are_never_best() -> None:
    scores = {10: 1.0, 20: 3.0, 30: math.nan, 40: 3.0, 50: math.inf, 60: -5.0}
    assert [each.step for each in best_first(list(map(saved, range(10, 80, 10))), scores)] == [40, 20, 10, 60]

"""The built-in curricula prefer the levels that they should, and continue from a checkpoint."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from kubebeast_common.spec import peer_json
from kubebeast_common.spec.episode_options import to_text
from kubebeast_learner.curriculum.listed import ListedLevels
from kubebeast_learner.curriculum.progress import Progress
from kubebeast_learner.curriculum.success import Success
from kubebeast_learner.curriculum.uniform import Uniform

LEVELS = [{"n": n} for n in range(4)]
MANY_LEVELS = [{"n": n} for n in range(200)]
KINDS = (Uniform, Success, Progress)


def drawn(curriculum: ListedLevels, count: int = 4000) -> list[float]:
    """Returns the share of each level in further draws."""
    counts = Counter(curriculum.next_level()["n"] for _ in range(count))
    return [counts[n] / count for n in range(4)]


def play(curriculum: ListedLevels, level: int, returns: Sequence[float]) -> None:
    for episode_return in returns:
        curriculum.on_episode({"n": level}, episode_return, 10, {})


def test_uniform_draws_all_levels_alike() -> None:
    curriculum = Uniform(LEVELS, seed=1)
    play(curriculum, 2, [1.0] * 50)

    assert drawn(curriculum) == pytest.approx([0.25] * 4, abs=0.03)


def test_success_draws_levels_that_are_solved_now_and_then() -> None:
    curriculum = Success(LEVELS, seed=1, uniform_share=0.0)
    play(curriculum, 0, [1.0] * 200)
    play(curriculum, 1, [0.0, 1.0] * 100)
    play(curriculum, 2, [0.0] * 200)

    shares = drawn(curriculum)
    assert shares[1] > 0.35
    assert shares[3] > 0.35, "a level without an episode may be one of them"
    assert max(shares[0], shares[2]) < 0.1


def test_success_forgets_old_episodes() -> None:
    curriculum = Success(LEVELS, seed=1, uniform_share=0.0, window=5)
    for level in range(4):
        play(curriculum, level, [0.0] * 100)
    play(curriculum, 2, [1.0, 0.0] * 5)

    shares = drawn(curriculum)
    assert shares[2] > 0.35 > 0.25 > max(shares[0], shares[1], shares[3])


def test_success_is_a_return_above_a_threshold() -> None:
    curriculum = Success(LEVELS, seed=1, uniform_share=0.0, success_return=10.0)
    play(curriculum, 0, [10.0] * 200)
    play(curriculum, 1, [10.0, 11.0] * 100)

    assert drawn(curriculum)[1] > 3 * drawn(curriculum)[0]


def test_progress_draws_each_level_before_it_repeats_one_without_a_result() -> None:
    curriculum = Progress(LEVELS, seed=1)

    assert sorted(curriculum.next_level()["n"] for _ in range(4)) == [0, 1, 2, 3]


def test_progress_draws_each_of_many_levels_before_it_repeats_one_without_a_result() -> None:
    curriculum = Progress(MANY_LEVELS, seed=1)

    assert len(set(curriculum.next_texts(200))) == 200


def test_progress_draws_new_levels_although_another_learner_has_results() -> None:
    curriculum = Progress(LEVELS, seed=1)
    play(curriculum, 2, [0.0, 1.0])

    assert curriculum.probabilities().tolist() == [0.25] * 4


@pytest.mark.parametrize("levels", [LEVELS, MANY_LEVELS], ids=["few", "many"])
def test_progress_draws_a_level_again_whose_episode_is_lost(levels: list[dict[str, int]]) -> None:
    curriculum = Progress(levels, seed=1, staleness=0.0)
    num_lost = 0
    while num_lost < 3:
        level = curriculum.next_level()["n"]
        if level == 3:
            num_lost += 1
        else:
            play(curriculum, level, [float(level)])
    while (level := curriculum.next_level()["n"]) != 3:
        play(curriculum, level, [float(level)])
    play(curriculum, 3, [1.0])

    assert curriculum.numbers()["played_share"] == 1.0


def test_progress_does_not_repeat_a_level_without_a_result_within_as_many_draws_as_there_are_levels() -> None:
    curriculum = Progress(MANY_LEVELS, seed=1)
    texts = curriculum.next_texts(3 * len(MANY_LEVELS))

    places: dict[str, int] = {}
    for place, text in enumerate(texts):
        assert place - places.get(text, -len(MANY_LEVELS)) >= len(MANY_LEVELS)
        places[text] = place


def test_progress_replays_with_the_share_of_the_levels_with_a_result() -> None:
    curriculum = Progress(MANY_LEVELS, seed=1, staleness=0.0)
    curriculum.next_texts(150)
    for level in range(50):
        play(curriculum, level, [0.0])

    chances = curriculum.probabilities()
    assert chances[:50].sum() == pytest.approx(50 / 200)
    assert np.count_nonzero(chances[50:]) <= 50, "the others were drawn a short while ago"
    assert chances.sum() == pytest.approx(1.0)


def test_progress_knows_no_levels_as_drawn_but_those_with_a_result_after_a_resume() -> None:
    before = Progress(LEVELS, seed=1)
    before.next_texts(4)
    play(before, 2, [0.0, 1.0])
    after = Progress(LEVELS, seed=2)

    after.load_state_dict(before.state_dict())

    assert after.probabilities().tolist() == pytest.approx([0.25] * 4)


def test_progress_notes_several_draws_at_once_in_their_order() -> None:
    curriculum = Progress(MANY_LEVELS, seed=1, staleness=1.0)
    for text in curriculum.next_texts(200):
        curriculum.note_return(text, 1.0)
    texts = curriculum.next_texts(50)

    chances = dict(zip(map(to_text, MANY_LEVELS), curriculum.probabilities(), strict=True))
    newest_first = list(dict.fromkeys(reversed(texts)))
    assert chances[newest_first[0]] == 0.0
    assert sorted(newest_first, key=chances.__getitem__) == newest_first


@pytest.mark.parametrize("newest", [[0.0] * 20 + [1.0] * 5, [1.0] * 20 + [0.0] * 5], ids=["learned", "forgotten"])
def test_progress_draws_levels_with_returns_that_change(newest: list[float]) -> None:
    curriculum = Progress(LEVELS, seed=1, staleness=0.1)
    drawn(curriculum, 4)
    for level, returns in enumerate(([1.0] * 25, newest, [0.0] * 25, [0.5] * 25)):
        play(curriculum, level, returns)

    shares = drawn(curriculum)
    assert shares[1] > 0.7
    assert min(shares) > 0.02, "stale levels are drawn too"


def test_progress_draws_the_stalest_level_with_the_share_of_staleness() -> None:
    curriculum = Progress(LEVELS, seed=1, staleness=1.0)
    drawn(curriculum, 4)
    for level in range(4):
        play(curriculum, level, [float(level)])
    newest = curriculum.next_level()["n"]

    assert curriculum.probabilities()[newest] == 0.0
    assert curriculum.probabilities().sum() == pytest.approx(1.0)


def test_a_level_that_is_solved_for_good_has_no_progress_left() -> None:
    curriculum = Progress(LEVELS, seed=1, staleness=0.0)
    drawn(curriculum, 4)
    for level in range(4):
        play(curriculum, level, [0.0])
    play(curriculum, 1, [1.0] * 100)

    assert curriculum.probabilities().tolist() == pytest.approx([0.25] * 4)


def test_equal_scores_are_drawn_alike() -> None:
    curriculum = Progress(LEVELS, seed=1, staleness=0.0)
    drawn(curriculum, 4)
    for level in range(4):
        play(curriculum, level, [0.0])

    assert curriculum.probabilities().tolist() == pytest.approx([0.25] * 4)


@pytest.mark.parametrize("kind", KINDS)
def test_a_curriculum_continues_from_plain_values(kind: Callable[..., ListedLevels]) -> None:
    before = kind(LEVELS, seed=1)
    drawn(before, 10)
    for level in range(3):
        play(before, level, [0.0, 1.0, 0.5][: level + 1])
    after = kind([*LEVELS[1:], {"n": 9}], seed=2)

    state: Any = peer_json.load(peer_json.dump(before.state_dict()))
    after.load_state_dict(state)

    numbers = after.numbers()
    assert numbers["played_share"] == 0.5
    assert numbers["mean_return"] == pytest.approx((0.2 + 0.26) / 2)
    assert after.probabilities().sum() == pytest.approx(1.0)


@pytest.mark.parametrize("kind", KINDS)
def test_equal_seeds_draw_equal_levels(kind: Callable[..., ListedLevels]) -> None:
    first, second, other = kind(LEVELS, 1), kind(LEVELS, 1), kind(LEVELS, 2)

    draws = [[each.next_level()["n"] for _ in range(50)] for each in (first, second, other)]
    assert draws[0] == draws[1] != draws[2]


@pytest.mark.parametrize("kind", KINDS)
def test_several_draws_at_once_are_those_one_after_the_other(kind: Callable[..., ListedLevels]) -> None:
    one, several = kind(LEVELS, 1), kind(LEVELS, 1)
    for level in range(4):
        play(one, level, [0.0, 1.0])
        play(several, level, [0.0, 1.0])

    assert several.next_texts(50) == [to_text(one.next_level()) for _ in range(50)]


@pytest.mark.parametrize("kind", KINDS)
def test_an_episode_of_a_level_that_is_no_longer_listed_is_left_out(kind: Callable[..., ListedLevels]) -> None:
    curriculum = kind(LEVELS, 1)
    curriculum.on_episode({"n": 99}, 1.0, 10, {})

    assert curriculum.numbers()["played_share"] == 0.0
    assert np.isnan(curriculum.numbers()["mean_return"])


@pytest.mark.parametrize(
    ("kind", "options", "reason"),
    [
        (Success, {"window": 0.5}, "window = 0.5: must be at least 1"),
        (Success, {"uniform_share": 2}, "uniform_share = 2: must be from 0 to 1"),
        (Progress, {"temperature": 0}, "temperature = 0: must be above 0"),
        (Progress, {"staleness": -1}, "staleness = -1: must be from 0 to 1"),
        (Progress, {"least": 1}, "least = 1: must be from 0 to below 1"),
        (Progress, {"fast": 0.1, "slow": 0.2}, "slow = 0.2, fast = 0.1: must be 0 < slow < fast <= 1"),
    ],
)
def test_options_out_of_range_are_refused_by_name(kind: Any, options: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValueError, match=f"^{reason}"):
        kind(LEVELS, 1, **options)

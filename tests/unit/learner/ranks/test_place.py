"""The place of a process among the ranks is read from torchrun's variables."""

import pytest

from kubebeast_learner.config import ConfigError
from kubebeast_learner.ranks.place import Place

SECOND_OF_FOUR = {"RANK": "3", "WORLD_SIZE": "4", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2"}


@pytest.mark.parametrize("environ", [{}, {"WORLD_SIZE": "1", "RANK": "0"}])
def test_a_process_without_others_is_alone(environ: dict[str, str]) -> None:
    assert Place.read(environ).is_alone


def test_torchruns_variables_are_read() -> None:
    place = Place.read(SECOND_OF_FOUR)

    assert place == Place(rank=3, num_ranks=4, local_rank=1, num_local_ranks=2)
    assert not place.is_first
    assert not place.is_on_one_machine
    assert Place.read(SECOND_OF_FOUR | {"LOCAL_WORLD_SIZE": "4"}).is_on_one_machine


@pytest.mark.parametrize("changes", [{"RANK": "first"}, {"LOCAL_RANK": ""}])
def test_variables_that_are_no_numbers_are_refused(changes: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match="must be numbers"):
        Place.read(SECOND_OF_FOUR | changes)


def test_a_world_without_a_rank_is_refused() -> None:
    with pytest.raises(ConfigError, match="RANK is not: start several learners by torchrun"):
        Place.read({"WORLD_SIZE": "2"})


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("127.0.0.1:4431", "127.0.0.1:4432"),
        ("[::]:4431", "[::]:4432"),
        ("127.0.0.1:0", "127.0.0.1:0"),
        ("unix:/run/pool.sock", "unix:/run/pool.sock.1"),
        ("", ""),
    ],
)
def test_ranks_of_a_machine_listen_side_by_side(first: str, second: str) -> None:
    assert Place().address(first) == first
    assert Place.read(SECOND_OF_FOUR).address(first) == second


def test_ranks_draw_different_numbers() -> None:
    seeds = [Place(rank=rank, num_ranks=3).seed(7) for rank in range(3)]

    assert seeds[0] == 7
    assert len(set(seeds)) == 3

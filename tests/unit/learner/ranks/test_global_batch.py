"""Several ranks compute the same updates as one learner with their concatenated batches."""

from pathlib import Path
from typing import Any

import pytest
import torch

from harness.processes.rank_process import outputs, start_warm_ranks
from tests.unit.learner.ranks.updates import CASES, NUM_UPDATES, update_all

Results = dict[str, dict[str, Any]]


@pytest.fixture(scope="module", params=[2, pytest.param(4, marks=pytest.mark.slow)])
def results(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[Results]:
    """Returns the results of each rank, by case."""
    num_ranks, folder = request.param, tmp_path_factory.mktemp("ranks")
    outputs(start_warm_ranks(num_ranks, "tests.unit.learner.ranks.updates", str(folder)))
    return [torch.load(Path(folder) / f"{rank}.pt", weights_only=True) for rank in range(num_ranks)]


@pytest.mark.parametrize("name", CASES)
def test_ranks_update_as_one_learner_on_the_concatenated_batch(results: list[Results], name: str) -> None:
    expected = update_all(CASES[name], len(results))

    for of_rank in results:
        torch.testing.assert_close(of_rank[name]["model"], expected["model"], rtol=1e-6, atol=1e-6)
        for stats, expected_stats in zip(of_rank[name]["stats"], expected["stats"], strict=True):
            assert stats == pytest.approx(expected_stats, rel=1e-5, abs=1e-5, nan_ok=True)


@pytest.mark.parametrize("name", CASES)
def test_all_ranks_have_the_same_weights_to_the_last_bit(results: list[Results], name: str) -> None:
    first, *others = [of_rank[name]["model"] for of_rank in results]

    for other in others:
        torch.testing.assert_close(other, first, rtol=0, atol=0)


def test_an_update_that_is_not_finite_on_one_rank_is_skipped_by_all(results: list[Results]) -> None:
    for of_rank in results:
        assert [stats["skipped"] for stats in of_rank["not finite"]["stats"]] == [False, True, False]
        assert [stats["version"] for stats in of_rank["not finite"]["stats"]] == [1, 1, NUM_UPDATES - 1]

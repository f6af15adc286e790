"""Every other pair of an observation space and an action space is trained as well."""

from pathlib import Path

import pytest

from tests.integration.any_space_training import pairs, train_by_env_servers, train_in_mono

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("spaces", pairs(diagonal=False))
def test_env_servers_of_any_spaces_train_a_learner(spaces: dict[str, str], tmp_path: Path) -> None:
    train_by_env_servers(spaces, tmp_path)


@pytest.mark.parametrize("spaces", pairs(diagonal=False))
def test_environments_of_any_spaces_train_in_mono(spaces: dict[str, str], tmp_path: Path) -> None:
    train_in_mono(spaces, tmp_path)

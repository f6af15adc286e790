"""The real client of the Hub pushes to a server of this machine, and every failure has a reason in words."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from huggingface_hub import constants

from harness.ports import free_port
from kubebeast_learner.publish.hub import PushError, push
from tests.hub_server import TOKEN, Hub, Repository, serve_hub

pytestmark = pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning")  # of the client's upload by LFS

FILES = {
    "README.md": b"---\nlibrary_name: kubebeast\n---\n\n# A model\n",
    "weights.safetensors": bytes(range(256)) * 40,
    "eval.csv": b"# _tick,step\n0,10\n",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, content in FILES.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "notes.txt").write_text("not of the model")
    return tmp_path


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    with serve_hub() as server:
        use(server.url, monkeypatch)
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
        yield server


def use(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Does what HF_ENDPOINT does, which the client reads when it is imported."""
    monkeypatch.setattr(constants, "ENDPOINT", endpoint)


def test_all_files_are_one_commit_of_a_new_repository(hub: Hub, folder: Path) -> None:
    url = push(folder, list(FILES), "me/model", private=False)
    repository = hub.repositories["me/model"]
    assert url == f"{hub.url}/me/model/commit/{repository.sha}"
    assert (repository.files, repository.private, repository.num_commits) == (FILES, False, 1)
    assert set(hub.objects) == {hashlib.sha256(FILES["weights.safetensors"]).hexdigest()}, "by Git LFS"


def test_a_repository_that_exists_gets_a_commit(hub: Hub, folder: Path) -> None:
    push(folder, list(FILES), "me/model", private=True)
    (folder / "eval.csv").write_bytes(b"changed")
    push(folder, list(FILES), "me/model", private=True)
    repository = hub.repositories["me/model"]
    assert (repository.private, repository.num_commits) == (True, 2)
    assert repository.files["eval.csv"] == b"changed"
    assert sum(asked.startswith("PUT /lfs/") for asked in hub.asked) == 1, "the same weights are not sent again"


def test_a_private_model_is_not_pushed_to_a_public_repository(hub: Hub, folder: Path) -> None:
    hub.repositories["me/model"] = Repository(private=False)
    with pytest.raises(PushError, match="me/model exists and is public"):
        push(folder, list(FILES), "me/model", private=True)
    assert hub.repositories["me/model"].files == {}


@pytest.mark.parametrize(
    ("pattern", "status", "reason"),
    [
        ("POST /api/repos/create", 401, "HTTP 401: there is no valid token: `hf auth login`"),
        ("POST /api/repos/create", 403, "HTTP 403: the token must not write there"),
        ("POST /api/repos/create", 404, "HTTP 404: the owner or the repository does not exist"),
        ("POST /api/repos/create", 500, "500"),
        ("POST /api/models/me/model/commit", 403, "HTTP 403: the token must not write there"),
        ("POST /api/models/me/model/commit", 409, "409"),
        ("POST /api/models/me/model/commit", 503, "503"),
        ("PUT /lfs/", 403, "HTTP 403"),
    ],
)
def test_a_refusal_names_the_repository_and_the_reason_and_leaves_nothing(
    hub: Hub, folder: Path, pattern: str, status: int, reason: str
) -> None:
    hub.faults |= {pattern: status, "GET /api/models/me/model$": 404}
    with pytest.raises(PushError) as error:
        push(folder, list(FILES), "me/model", private=False)
    text = str(error.value)
    assert text.startswith(f"me/model at {hub.url}: ") and reason in text
    assert TOKEN not in text and "\n" not in text
    assert all(repository.files == {} for repository in hub.repositories.values())


def test_metadata_that_the_hub_refuses_are_an_error(hub: Hub, folder: Path) -> None:
    (folder / "README.md").write_text("# no metadata\n")
    with pytest.raises(PushError, match=r"Invalid metadata in README\.md"):
        push(folder, list(FILES), "me/model", private=False)


def test_a_hub_that_cannot_be_reached_is_an_error(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    endpoint = f"http://127.0.0.1:{free_port()}"
    use(endpoint, monkeypatch)
    with pytest.raises(PushError, match=f"me/model at {endpoint}: .*refused"):
        push(folder, list(FILES), "me/model", private=False)


def test_a_name_that_the_hub_has_no_place_for_is_an_error(hub: Hub, folder: Path) -> None:
    with pytest.raises(PushError, match=r"me/model--of-mine"):
        push(folder, list(FILES), "me/model--of-mine", private=False)

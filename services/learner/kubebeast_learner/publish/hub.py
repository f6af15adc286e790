"""The way of a folder to the Hugging Face Hub: one commit of all its files."""

from collections.abc import Sequence
from pathlib import Path

from huggingface_hub import CommitOperationAdd, HfApi
from huggingface_hub.errors import HfHubHTTPError

HINTS = {
    401: "there is no valid token: `hf auth login` saves one, and HF_TOKEN overrides it",
    403: "the token must not write there: it needs the permission to write to this repository",
    404: "the owner or the repository does not exist, or the token must not see it",
}


class PushError(RuntimeError):
    """A push that has failed; the message names the repository and the reason."""


def push(folder: Path, names: Sequence[str], repository: str, *, private: bool) -> str:
    """Commits files of `folder` to a repository, and returns the URL of the commit. Blocks.

    The repository is created if there is none. Files that it has already are not sent again. The token is that of
    huggingface_hub: HF_TOKEN, or the file of `hf auth login`.

    Raises:
        PushError: If the Hub cannot be reached or refuses, or if `private` is set and the repository is public. Files
            are then committed all or none.
    """
    api = HfApi()
    try:
        api.create_repo(repository, private=private or None, exist_ok=True)
        if private and not api.model_info(repository).private:
            raise PushError(f"{repository} exists and is public: make it private, or push without --private")
        operations = [CommitOperationAdd(path_in_repo=name, path_or_fileobj=folder / name) for name in names]
        commit = api.create_commit(repository, operations, commit_message="Publish a model of KubeBeast")
    except PushError:
        raise
    except Exception as error:  # errors of the client, of its HTTP library and of uploads have no common base
        raise PushError(f"{repository} at {api.endpoint}: {_reason(error)}") from error
    return str(commit.commit_url)


def _reason(error: BaseException) -> str:
    causes = [error]
    while causes[-1].__cause__ is not None:
        causes.append(causes[-1].__cause__)
    for cause in causes:
        if isinstance(cause, HfHubHTTPError) and cause.response.status_code in HINTS:
            return f"HTTP {cause.response.status_code}: {HINTS[cause.response.status_code]}"
    is_wrapped = type(error) is RuntimeError  # that of an upload, which names the file alone
    texts = [" ".join(str(cause).split()) or type(cause).__name__ for cause in causes[: 1 + is_wrapped]]
    return " ".join(texts)

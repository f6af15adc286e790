"""A template of Jobs is checked before a sweep begins, and a run is a copy with its own name and arguments."""

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubebeast_common.settings import ConfigError
from kubebeast_sweep.jobs.template import MAX_NAME_CHARS, JobTemplate, Owner, hash_of

JOB: dict[str, Any] = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "mine"},
    "spec": {"template": {"spec": {"containers": [{"name": "proxy"}, {"name": "learner", "args": ["old"]}]}}},
}


def template(folder: Path, content: object, owner: Owner | None = None) -> JobTemplate:
    path = folder / "job.yaml"
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    return JobTemplate(path, owner)


def changed(**fields: Any) -> dict[str, Any]:
    return {**copy.deepcopy(JOB), **fields}


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("{", "while parsing"),
        ("", "is missing or has another type"),
        ("[1]", "is missing or has another type"),
        (changed(metadata={}), "'name' is missing"),
        (changed(spec={}), "'template' is missing"),
        (changed(spec={"template": {"spec": {"containers": [{}]}}}), "'name' is missing"),
        (changed(spec={"template": {"spec": {"containers": [{"name": "other"}]}}}), "a container 'learner'"),
        (changed(kind="CronJob"), "must be a batch/v1 Job"),
        (changed(metadata={"name": "n" * (MAX_NAME_CHARS + 1)}), "at most 40 characters"),
    ],
)
def test_an_unusable_template_is_refused_with_its_file(tmp_path: Path, content: object, reason: str) -> None:
    with pytest.raises(ConfigError, match=f"job_template = '.*job.yaml': .*{reason}"):
        template(tmp_path, content)


def test_a_missing_template_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        JobTemplate(tmp_path / "none.yaml", None)


def test_a_run_has_its_own_name_labels_and_arguments(tmp_path: Path) -> None:
    arguments = ["learner", "--xpid=000-seed1", '--callback-options={"a": "$(HOME)"}']
    job = template(tmp_path, JOB).job_of("000-seed1", arguments)
    labels = {"kubebeast/sweep": "mine", "kubebeast/run": "000-seed1"}

    assert job["metadata"]["name"] == "mine-000-seed1" and job["metadata"]["labels"] == labels
    assert job["metadata"]["annotations"] == {"kubebeast/arguments": hash_of(arguments)}
    assert job["spec"]["template"]["metadata"]["labels"] == labels
    proxy, learner = job["spec"]["template"]["spec"]["containers"]
    assert proxy == {"name": "proxy"}
    assert learner["args"] == ["learner", "--xpid=000-seed1", '--callback-options={"a": "$$(HOME)"}']
    assert "ownerReferences" not in job["metadata"]


def test_copies_do_not_change_the_template(tmp_path: Path) -> None:
    made = template(tmp_path, JOB, Owner("sweep", "7d0a"))
    first = made.job_of("000-seed1", ["a"])
    made.job_of("001-seed1", ["b"])

    assert first == made.job_of("000-seed1", ["a"])
    assert first["metadata"]["ownerReferences"][0]["uid"] == "7d0a"


def test_other_arguments_have_another_hash() -> None:
    assert hash_of(["a", "b"]) != hash_of(["ab"]) != hash_of(["a,b"])

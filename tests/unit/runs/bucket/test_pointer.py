"""One process at a time changes a run in a bucket."""

import itertools
import threading
import time
from dataclasses import replace

import pytest

from harness.processes.s3_server import S3Server
from kubebeast_common.settings import ConfigError
from kubebeast_runs.bucket.lost import LeaseLostError
from kubebeast_runs.bucket.manifest import Manifest, ManifestFile, Piece
from kubebeast_runs.bucket.objects import Bucket
from kubebeast_runs.bucket.pointer import Pointer, give_back, read_manifest, take_lease
from kubebeast_runs.parts import TRAINING
from tests.faulty_s3 import FaultyProxy

KEY = "run/run.json"


def take(bucket: Bucket) -> Pointer:
    return take_lease(bucket, "run", TRAINING, threading.Event().wait)


def named(name: str) -> dict[str, ManifestFile | None]:
    return {name: ManifestFile((Piece(f"{name}/1", 3),), 1)}


def files(bucket: Bucket) -> list[str]:
    found = read_manifest(bucket, KEY)
    return [] if found is None else sorted(found[0].files)


def test_a_lease_that_was_given_back_is_taken_at_once(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    first = take(bucket)
    first.change(lambda manifest: manifest.with_files(named("a")))
    give_back(first)
    monkeypatch.setattr(time, "monotonic", lambda: 0.0)  # no time passes, so no lease runs out
    second = take(bucket)
    assert second.manifest.fence == first.manifest.fence + 1 and list(second.manifest.files) == ["a"]


def test_the_holder_of_a_lease_that_is_renewed_is_named(bucket: Bucket) -> None:
    holder, stopped = take(bucket), threading.Event()

    def renew() -> None:
        while not stopped.wait(0.01):
            holder.renew()

    renewing = threading.Thread(target=renew)
    renewing.start()
    try:
        with pytest.raises(ConfigError, match=r"xpid = 'run': process \d+ on .* trains this run; stop it or choose"):
            take(bucket)
    finally:
        stopped.set()
        renewing.join()
    holder.require()


def test_a_holder_that_wakes_up_after_its_lease_changes_nothing(bucket: Bucket) -> None:
    sleeper = take(bucket)
    heir = take(bucket)
    heir.change(lambda manifest: manifest.with_files(named("new")))
    for _ in range(2):
        with pytest.raises(LeaseLostError, match=r"run/run.json was taken over by process \d+ on"):
            sleeper.change(lambda manifest: manifest.with_files(named("old")))
    with pytest.raises(LeaseLostError):
        sleeper.require()
    assert files(bucket) == ["new"] and heir.manifest.fence == 2
    heir.renew()


def test_a_manifest_that_was_deleted_is_lost(bucket: Bucket) -> None:
    holder = take(bucket)
    bucket.delete([KEY])
    with pytest.raises(LeaseLostError, match="somebody who deleted it"):
        holder.renew()
    assert read_manifest(bucket, KEY) is None


def test_of_two_that_find_a_free_run_one_gets_it(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    replace_object, calls = Bucket.replace, itertools.count()

    def replace_later(self: Bucket, key: str, content: bytes, version: str | None) -> str:
        if next(calls) == 0:
            take(bucket)
        return replace_object(self, key, content, version)

    monkeypatch.setattr(Bucket, "replace", replace_later)
    with pytest.raises(ConfigError, match="another process trains this run; stop it"):
        take(bucket)


def test_a_change_of_which_the_answer_is_lost_is_done_once(
    s3: S3Server, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with FaultyProxy(s3, lambda method, path: "none") as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.server.environment["AWS_ENDPOINT_URL"])
        bucket = Bucket(url)
        holder = take(bucket)
        proxy.choose = lambda method, path: "lost answer" if method == "PUT" else "none"
        with pytest.raises(OSError, match=r"run\.json"):
            holder.change(lambda manifest: manifest.with_files(named("a")))
        proxy.choose = lambda method, path: "none"
        holder.change(lambda manifest: manifest.with_files(named("b")))
        holder.renew()
        assert files(bucket) == ["b"], "the failed change was repeated by nobody"


def test_a_wait_for_a_lease_ends_with_a_stop(bucket: Bucket) -> None:
    take(bucket)
    stop = threading.Event()
    stop.set()
    with pytest.raises(InterruptedError):
        take_lease(bucket, "run", TRAINING, stop.wait)


def test_a_store_that_ignores_conditions_is_refused(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    write = Bucket.replace

    def replace_anyway(self: Bucket, key: str, content: bytes, version: str | None) -> str:
        found = self.keys(key.rpartition("/")[0])
        return write(self, key, content, self.read(key).version if key in found else None)

    monkeypatch.setattr(Bucket, "replace", replace_anyway)
    with pytest.raises(ConfigError, match=r"savedir = 's3://.*': this store ignores the conditions of writes"):
        take(bucket)


def test_a_manifest_comes_back(bucket: Bucket) -> None:
    manifest = Manifest(fence=3, owner="me", holder="process 1 on a", beat=9).with_files(named("logs.csv"))
    bucket.replace(KEY, manifest.encode(), None)
    found = read_manifest(bucket, KEY)
    assert found is not None and found[0] == manifest
    assert found[0].with_files({"logs.csv": None}) == replace(manifest, files={})


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"{}",
        b'{"format": 2}',
        *(
            f'{{"format": 1, "fence": 1, "owner": "", "holder": "", "beat": 1, "files": {files}}}'.encode()
            for files in (
                '{"../logs.csv": {"saved_at_ns": 1, "pieces": []}}',
                '{"/etc/passwd": {"saved_at_ns": 1, "pieces": []}}',
                '{"a": {"saved_at_ns": 1, "pieces": [["../other/1", 1]]}}',
                '{"a": {"saved_at_ns": 1, "pieces": [["a/1", -1]]}}',
                '{"a": {"saved_at_ns": 1, "pieces": [["a/1", true]]}}',
                '{"a": {"saved_at_ns": 1, "pieces": 7}}',
                '{"a": 7}',
                "7",
                "[" * 100_000,
            )
        ),
    ],
)
def test_a_manifest_from_elsewhere_is_an_error_and_leaves_no_folder(bucket: Bucket, content: bytes) -> None:
    bucket.replace(KEY, content, None)
    with pytest.raises(OSError, match=r"run/run\.json: "):
        read_manifest(bucket, KEY)

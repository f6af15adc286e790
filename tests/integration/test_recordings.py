"""Recordings of real trainings: the learner repeats the updates from them, digit by digit, whatever happened."""

import ast
import os
import signal
import subprocess
from collections import Counter
from pathlib import Path

import minari
import pytest

from harness.processes.small_volume import MIB, SmallVolume
from harness.processes.training_process import command, environment, rows, run
from kubebeast_learner.distributions import ActionDistribution
from kubebeast_learner.recording.reader import read_recordings

SIZE = ["--batch-size=6", "--unroll-length=10", "--total-steps=3000", "--learner-threads=1", "--compile=off"]
FLEET = ["--num-actors=12", "--lag=1"]
CATCH = "--env=kubebeast_envserver.catch:Catch-v0"
SETTINGS = {
    "passes": ["--env=CartPole-v1", "--recipe=vector", "--passes=2", "--minibatches=2"],
    "stacks with memory": [CATCH, "--recipe=none", "--use-lstm", "--model=mlp"],
}
OF_LOSSES = ("step", "total_loss", "grad_norm", "learning_rate", "entropy_cost", "updates", "skipped_updates")


def trained(program: str, savedir: Path, *flags: str) -> list[dict[str, str]]:
    """Returns the rows of the log of a run."""
    words = command(program, *SIZE, *flags, "--seed=3", "--progress=none", f"--savedir={savedir}", "--xpid=run")
    done = run(words)
    assert done.returncode == 0, done.stderr
    return rows(savedir / "run")


def losses(table: list[dict[str, str]]) -> list[dict[str, str]]:
    names = [name for name in table[0] if name in OF_LOSSES or name.endswith("_loss") or name.startswith("loss/")]
    assert "total_loss" in names and len(names) >= 6
    return [{name: row[name] for name in names} for row in table]


def returns_in(table: list[dict[str, str]]) -> list[float]:
    return [value for row in table if row["episode_returns"] for value in ast.literal_eval(row["episode_returns"])]


@pytest.mark.parametrize(
    ("program", "settings"), [("mono", "passes"), ("mono", "stacks with memory"), ("train", "passes")]
)
def test_the_learner_repeats_a_run_from_its_recording(program: str, settings: str, tmp_path: Path) -> None:
    flags = SETTINGS[settings]
    recorded = trained(program, tmp_path / "first", *flags, *FLEET, f"--record={tmp_path}/recording")
    repeated = trained("learner", tmp_path / "second", *flags, f"--from-recording={tmp_path}/recording")

    assert len(recorded) >= 25
    assert losses(repeated) == losses(recorded)


def test_replayed_unrolls_are_part_of_the_recording(tmp_path: Path) -> None:
    flags = ["--env=CartPole-v1", "--recipe=vector", "--passes=1", "--minibatches=1"]
    record = f"--record={tmp_path}/recording"
    recorded = trained("mono", tmp_path / "first", *flags, *FLEET, "--replay-share=0.5", record)
    repeated = trained("learner", tmp_path / "second", *flags, f"--from-recording={tmp_path}/recording")

    (recording,) = read_recordings(tmp_path / "recording")
    assert {entry.batch.num_replayed for entry in recording.entries} == {3}
    assert losses(repeated) == losses(recorded)


def test_a_run_ends_with_its_recording(tmp_path: Path) -> None:
    flags = SETTINGS["passes"]
    trained("mono", tmp_path / "first", *flags, *FLEET, f"--record={tmp_path}/recording", "--total-steps=600")
    source = f"--from-recording={tmp_path}/recording"
    once = trained("learner", tmp_path / "once", *flags, source)
    twice = trained("learner", tmp_path / "twice", *flags, source, "--recording-passes=2")

    assert int(twice[-1]["step"]) == 2 * int(once[-1]["step"]) < 3000
    assert "the run ends: the recording has ended" in (tmp_path / "once" / "run" / "out.log").read_text()


def test_a_killed_run_leaves_whole_shards_and_continues_its_recording(tmp_path: Path) -> None:
    flags = [*SIZE, *SETTINGS["passes"], *FLEET, "--seed=3", "--progress=none", f"--savedir={tmp_path}", "--xpid=run"]
    recording = tmp_path / "recording"
    interval = "--checkpoint-interval-minutes=0.0001"
    words = command("mono", *flags, f"--record={recording}", interval)
    with subprocess.Popen(words, env=environment(), stderr=subprocess.DEVNULL) as process:
        while len(list(recording.glob("*.safetensors"))) < 5:
            assert process.poll() is None
            os.sched_yield()
        process.send_signal(signal.SIGKILL)
    (killed,) = read_recordings(recording)
    assert killed.gaps() == []
    assert all(
        killed.rollout(entry, ActionDistribution.of(killed.source.env_spec.action)).batch_size == 6
        for entry in killed.entries
    )

    done = run(command("mono", *flags, f"--record={recording}"))
    assert done.returncode == 0, done.stderr
    (continued,) = read_recordings(recording)
    assert len({entry.began_at for entry in continued.entries}) == 2
    assert continued.entries[-1].batch.step > killed.entries[-1].batch.step
    repeated = trained("learner", tmp_path / "second", *SETTINGS["passes"], f"--from-recording={recording}")
    assert losses(repeated)[-1] == losses(rows(tmp_path / "run"))[-1]


def test_each_of_several_learners_records_its_own_batches(tmp_path: Path) -> None:
    fleet = ["--num-learners=2", "--num-servers=2", "--num-actors=12", "--log-interval-s=0.1"]
    logged = trained("train", tmp_path, *SETTINGS["passes"], *fleet, f"--record={tmp_path}/recording")
    names = sorted(path.name for path in (tmp_path / "recording").iterdir())
    assert names == [f"unrolls-0000000000-rank{rank}.safetensors" for rank in range(2)]

    recordings = read_recordings(tmp_path / "recording")
    assert [recording.gaps() for recording in recordings] == [[], []]
    done = run(command("export-data", "run", f"--savedir={tmp_path}", f"--to={tmp_path}/set"))
    assert done.returncode == 0, done.stderr
    exported = Counter(float(episode.rewards.sum()) for episode in minari.MinariDataset(tmp_path / "set" / "data"))
    assert exported.total() > 20 and exported <= Counter(returns_in(logged))

    words = [*SIZE, *SETTINGS["passes"], f"--savedir={tmp_path}/other", f"--from-recording={tmp_path}/recording"]
    done = run(command("learner", *words))
    assert done.returncode == 2
    assert "it has the batches of 2 learners: one cannot repeat their updates" in done.stderr


def test_a_full_volume_costs_the_recording_and_not_the_training(tmp_path: Path) -> None:
    volume_folder = tmp_path / "volume"
    volume_folder.mkdir()
    try:
        volume = SmallVolume(volume_folder, MIB)
        with volume:
            volume.fill()
            flags = [*SIZE, *SETTINGS["passes"], *FLEET, "--seed=3", f"--savedir={tmp_path}/runs", "--xpid=run"]
            words = command("mono", *flags, "--progress=none", f"--record={volume_folder}/recording")
            done = subprocess.run(
                [*volume.words, *words], env=environment(), capture_output=True, text=True, timeout=300
            )
    except PermissionError as error:
        pytest.skip(f"no namespace of mounts: {error}")
    assert done.returncode == 0, done.stderr
    assert "is not written: No space left on device; the run goes on without it" in done.stderr
    assert int(rows(tmp_path / "runs" / "run")[-1]["step"]) >= 3000


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--env=Acrobot-v1", "--recipe=none"], "env = 'Acrobot-v1': {recording} was recorded in CartPole-v1"),
        (["--env=CartPole-v1", "--recipe=none", "--unroll-length=9"], "unroll_length = 9: {recording}/unrolls-"),
        (["--env=CartPole-v1", "--recipe=none", "--replay-share=0.5"], "replay_share = 0.5: a recording has"),
    ],
)
def test_a_recording_that_does_not_fit_is_refused(flags: list[str], message: str, recording: Path) -> None:
    savedir = recording.parent / "other"
    done = run(command("learner", *SIZE, *flags, f"--savedir={savedir}", f"--from-recording={recording}"))
    assert done.returncode == 2
    assert message.format(recording=recording) in done.stderr
    assert not savedir.exists()


def test_a_new_run_does_not_touch_the_recording_of_another(recording: Path, tmp_path: Path) -> None:
    before = {path: path.read_bytes() for path in recording.iterdir()}
    flags = [*SIZE, *SETTINGS["passes"], *FLEET, f"--savedir={tmp_path}/third", "--xpid=run", f"--record={recording}"]
    done = run(command("mono", *flags))
    assert done.returncode == 2
    assert "it has a recording already; name an empty folder for a new run" in done.stderr
    assert {path: path.read_bytes() for path in recording.iterdir()} == before


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("recorded")
    flags = ["--env=CartPole-v1", "--recipe=none", "--model=mlp", "--total-steps=300"]
    trained("mono", folder / "runs", *flags, *FLEET, f"--record={folder}/recording")
    return folder / "recording"


@pytest.mark.parametrize("program", ["mono", "train"])
def test_minari_has_the_episodes_that_the_run_has_logged(program: str, tmp_path: Path) -> None:
    flags = [
        *SETTINGS["passes"],
        *FLEET,
        f"--record={tmp_path}/recording",
    ]
    logged = trained(program, tmp_path, *flags)
    done = run(command("export-data", str(tmp_path / "run"), f"--to={tmp_path}/set"))
    assert done.returncode == 0, done.stderr

    dataset = minari.MinariDataset(tmp_path / "set" / "data")
    returns = returns_in(logged)
    assert len(returns) > 20
    assert sorted(float(episode.rewards.sum()) for episode in dataset) == sorted(returns)
    assert all(len(episode.observations) == len(episode.actions) + 1 for episode in dataset)
    assert all(episode.terminations[-1] or episode.truncations[-1] for episode in dataset)


def test_parts_of_episodes_are_exported_as_truncated(recording: Path, tmp_path: Path) -> None:
    for name, flags in {"whole": [], "parts": ["--no-whole-episodes"]}.items():
        done = run(command("export-data", str(recording), f"--to={tmp_path}/{name}", *flags))
        assert done.returncode == 0, done.stderr
    whole, parts = (minari.MinariDataset(tmp_path / name / "data") for name in ("whole", "parts"))

    (recorded,) = read_recordings(recording)
    steps = sum(int(entry.arrays()["valid"].sum()) for entry in recorded.entries)
    assert parts.total_steps == steps > whole.total_steps
    truncated = sum(bool(episode.truncations[-1]) for episode in parts)
    assert truncated == parts.total_episodes - whole.total_episodes > 0


def test_a_recording_that_is_none_is_named(tmp_path: Path) -> None:
    done = run(command("export-data", "missing", f"--to={tmp_path}/set", f"--savedir={tmp_path}"))
    assert done.returncode == 2
    assert "recording = 'missing': neither a folder with a recording nor a run" in done.stderr

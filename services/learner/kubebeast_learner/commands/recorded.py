"""`kubebeast learner --from-recording`: training on the batches of another run, without env-servers."""

from pathlib import Path

from kubebeast_common.ids.env_id import is_same_env
from kubebeast_learner.actors.recorded import RecordedActors
from kubebeast_learner.config import ConfigError, LearnerConfig
from kubebeast_learner.config.checks import require
from kubebeast_learner.ranks.place import Place
from kubebeast_learner.recording.reader import Recording, read_recordings
from kubebeast_learner.recording.shards import RecordingError
from kubebeast_learner.training import run as training
from kubebeast_learner.training.process import open_process
from kubebeast_learner.training.run import open_run


def learn(config: LearnerConfig, folder: Path, place: Place) -> int:
    """Trains on the recording in `folder`. Returns the exit status. Raises ConfigError if it cannot be used."""
    recording = _read(folder.expanduser(), config.fleet.env, place)
    with open_process(config) as process:
        is_done = False
        while not is_done:
            with (
                open_run(process, num_local_processes=lambda _: 0) as run,
                RecordedActors(run.config, recording, config.fleet.recording_passes) as actors,
            ):
                is_done = training.train(run, actors, linger_s=config.pool.longest_linger_s)
    return process.exit_status


def _read(folder: Path, env: str, place: Place) -> Recording:
    setting = f"from_recording = {str(folder)!r}"
    try:
        recordings = read_recordings(folder)
    except (RecordingError, OSError) as error:
        raise ConfigError(f"{setting}: {error}") from error
    if not place.is_alone:
        raise ConfigError(f"{setting}: one learner trains on a recording, not {place.num_ranks} together")
    if len(recordings) > 1:
        raise ConfigError(
            f"{setting}: it has the batches of {len(recordings)} learners: one cannot repeat their updates"
        )
    env_id = recordings[0].source.env_spec.env_id
    require(not env or is_same_env(env, env_id), "env", env, f"{folder} was recorded in {env_id}")
    return recordings[0]

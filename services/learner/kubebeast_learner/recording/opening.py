"""Recording of a training by its settings."""

import contextlib
from contextlib import AbstractContextManager

from kubebeast_common.cli.settings import as_settings
from kubebeast_common.spec.env_spec import EnvSpec
from kubebeast_learner.config import TrainingConfig
from kubebeast_learner.ranks.group import first_ranks
from kubebeast_learner.ranks.place import Place
from kubebeast_learner.recording.folder import continue_recording
from kubebeast_learner.recording.recorder import Limits, NoRecorder, Recorder
from kubebeast_learner.recording.shards import Source
from kubebeast_runs.log import RunLog
from kubebeast_runs.rank_log import RankLog

_MIB, _GIB = 1 << 20, 1 << 30


def open_recorder(
    config: TrainingConfig, spec: EnvSpec, place: Place, run_log: RunLog | RankLog, update: int
) -> AbstractContextManager[Recorder | NoRecorder]:
    """Opens the recording of a rank. All ranks call this together.

    Args:
        config: Settings of the training.
        spec: Its environment.
        place: Place of the rank.
        run_log: Log of the run, which counts failed writes.
        update: Number of updates at the start of this process.

    Raises:
        ConfigError: If the folder cannot be used, or has another recording.
    """
    run = config.run
    if run.record is None:
        return contextlib.nullcontext(NoRecorder())
    source = Source(
        run=run.xpid,
        rank=place.rank,
        num_ranks=place.num_ranks,
        env_spec=spec,
        unroll_length=config.rollout.unroll_length,
        batch_size=config.rollout.batch_size,
        settings=as_settings(config.model),
    )
    folder = run.record.expanduser().absolute()
    is_new_run = first_ranks(update == 0 and run_log.num_crashes == 0)  # others count no crashes
    continue_recording(folder, source, update, is_new_run=is_new_run)
    limits = Limits(run.record_shard_mib * _MIB, round(run.record_max_gib * _GIB / place.num_ranks))
    return Recorder(folder, source, update=update, limits=limits, failures=run_log.failures.counts)

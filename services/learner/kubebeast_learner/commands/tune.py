"""`kubebeast tune`: measures this machine and writes settings for training on it."""

import logging
import sys
import tempfile
from pathlib import Path

from kubebeast_common import log
from kubebeast_common.process.output import output_to_stderr
from kubebeast_learner.actors.base import ActorsError
from kubebeast_learner.actors.pool_thread import InferenceError
from kubebeast_learner.commands.train import private_address, refuse_settings_of_strangers
from kubebeast_learner.config import ConfigError, TrainConfig, TuneConfig
from kubebeast_learner.ranks.devices import choose_device
from kubebeast_learner.tune.choice import best_of_each_size, choices, choose, expect, most_actors
from kubebeast_learner.tune.measure import measure
from kubebeast_learner.tune.output import make_output
from kubebeast_learner.tune.pieces import Pieces
from kubebeast_learner.tune.settings_file import chosen_settings, render

logger = logging.getLogger(__name__)

EXIT_FAILED = 1
DISTURBED = 0.1
"""Share of the cores in use by other processes above which the results are unreliable."""


def run(config: TuneConfig) -> int:
    """Runs the command. Returns the exit status. Raises ConfigError if the settings make no training."""
    refuse_settings_of_strangers(config.pool)
    choose_device(config.run.device)
    # Messages about the assembly of a learner are for a run's log.
    log.configure("debug" if config.run.log_level == "debug" else "warning", config.run.log_format)
    output = make_output(config.run, config.tuning.seconds)
    try:
        with output_to_stderr(), tempfile.TemporaryDirectory() as folder:
            pieces, decided = measure(config, output, private_address, Path(folder), config.tuning.seconds)
    except (ActorsError, InferenceError) as error:
        logger.error("nothing could be measured: %s", error)
        return EXIT_FAILED
    if pieces.cores_used_by_others > DISTURBED * pieces.cores:
        text = "other processes used %.1f of %d cores: the expected speed is too low, and the choice may be wrong"
        logger.warning(text, pieces.cores_used_by_others, pieces.cores)
    expected = [expect(each, pieces) for each in choices(pieces, _most_actors(decided))]
    best = choose(expected)
    settings = chosen_settings(best, pieces, decided)
    output.show(best_of_each_size(expected), best, settings)
    heading = _heading(decided, pieces, best.steps_per_s, best.saturates)
    _write(render(settings, decided, heading), config.tuning.out)
    return 0


def _most_actors(config: TrainConfig) -> int:
    return most_actors(config.replay.num_fresh(config.rollout.batch_size), config.fleet.num_actors)


def _heading(config: TrainConfig, pieces: Pieces, steps_per_s: float, saturates: str) -> str:
    verb = "saturate" if saturates == "environments" else "saturates"
    return (
        f"Settings for {config.fleet.env} on {pieces.cores} cores, by kubebeast tune.\n"
        f"About {steps_per_s:,.0f} env-steps a second are expected; first {saturates} {verb}."
    )


def _write(text: str, out: Path | None) -> None:
    """Writes to `out`, or to standard output if it is None. Raises ConfigError if the file cannot be written."""
    if out is None:
        sys.stdout.write(text)
        return
    try:
        out.expanduser().write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"out = {str(out)!r}: {error.strerror}") from error

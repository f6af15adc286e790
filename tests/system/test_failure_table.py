"""Every row of the failure table in docs/reliability.md has a test, and is listed here."""

import re
from pathlib import Path

from tests.integration import (
    test_chaos,
    test_full_volume,
    test_hostile_clients,
    test_node_notice,
    test_not_finite,
    test_spec_bombs,
    test_training_commands,
)
from tests.system import test_environment_failures as environments
from tests.system import test_learner_failures as learners
from tests.system import test_process_failures as processes
from tests.system import test_refusals as refusals
from tests.unit.learner.run import test_checkpoint, test_unreadable_checkpoint
from tests.unit.learner.training import test_training
from tests.unit.native import test_native_flow

TABLE = Path(__file__).resolve().parents[2] / "docs" / "reliability.md"

TESTS = {
    "env-server killed": processes.test_an_env_server_that_is_killed_costs_the_step_under_way,
    "env-server stopped (SIGTERM)": processes.test_an_env_server_that_is_told_to_end_loses_nothing,
    "environment raises, calls `sys.exit`, or returns a wrong shape, a reward or an observation that is not finite": (
        environments.test_an_environment_that_fails_is_made_anew_and_the_others_go_on
    ),
    "`--max-failures` failures of an environment in `--failure-window-s`, under 20 steps apart": (
        processes.test_an_environment_that_fails_too_often_is_given_up_and_returns_with_its_process
    ),
    "no environment ever works: its module, its constructor (in three tries), its first reset or step fails": (
        environments.test_an_env_server_whose_environment_cannot_be_made_says_why_and_ends
    ),
    "environment hangs": (processes.test_the_learner_ends_a_stream_that_hangs_and_takes_it_again_once_it_was_replaced),
    "env-servers freeze with their connections open: a node without power, a partition, SIGSTOP": (
        test_native_flow.test_many_streams_and_consumers_lose_and_repeat_nothing_although_streams_stand_still
    ),
    "a stream's process dies (segmentation fault, OOM killer)": (
        processes.test_a_stream_whose_process_dies_or_hangs_is_replaced
    ),
    "learner killed": learners.test_a_learner_that_ends_is_resumed_and_env_servers_wait_for_it,
    "learner stopped (SIGTERM)": learners.test_a_learner_that_ends_is_resumed_and_env_servers_wait_for_it,
    "the cloud announces that it takes the learner's node": (
        test_node_notice.test_a_run_that_is_killed_after_a_notice_goes_on_from_its_checkpoint
    ),
    "network cut": test_chaos.test_a_fault_that_lasts_costs_its_own_stream_only,
    "malformed, slow, silent or flooding peer, or non-finite numbers from a peer": (
        test_hostile_clients.test_attack_is_turned_away_with_a_reason_and_disturbs_nobody
    ),
    "a learner without `--env` meets an environment that no model takes, or one that is too large": (
        test_spec_bombs.test_specs_that_no_model_takes_are_refused_and_the_next_env_server_trains
    ),
    "wrong shapes, version, run or token": refusals.test_an_env_server_that_does_not_fit_is_refused_once,
    "the run's volume full, over a quota, read-only or gone": (
        test_full_volume.test_a_run_goes_on_without_rows_and_checkpoints_until_there_is_room_again
    ),
    "the run's folder deleted while its volume is there": (
        test_training_commands.test_a_run_whose_folder_is_deleted_ends_with_a_reason_and_a_checkpoint
    ),
    "newest checkpoint damaged": test_checkpoint.test_damaged_newest_is_passed_over_with_a_warning,
    "newest checkpoint not readable here and now": (
        test_unreadable_checkpoint.test_a_newest_that_is_not_proven_damaged_stops_the_run_and_is_never_deleted
    ),
    "loss or gradient not finite": (
        learners.test_ten_updates_in_a_row_that_are_not_finite_end_the_run_with_a_checkpoint
    ),
    "an observation or a value target beyond 9e18: squared differences overflow float32": (
        test_not_finite.test_normalised_observations_leave_out_what_is_too_large_and_say_so_once
    ),
    "weights, running statistics or the optimizer's state not finite": (
        test_not_finite.test_a_run_whose_newest_checkpoint_is_not_finite_goes_back_and_on
    ),
    "out of memory in an update": test_training.test_a_lack_of_memory_says_what_to_lower,
}


def test_the_failure_table_and_the_tests_name_the_same_failures() -> None:
    table = TABLE.read_text().partition("| what fails |")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| (.*?) \|", table, re.MULTILINE)
    assert rows == list(TESTS)

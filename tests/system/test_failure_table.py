"""Every row of the failure table in docs/reliability.md is a test, and is there again here."""

import re
from pathlib import Path

from tests.integration import test_chaos, test_hostile_clients
from tests.system import test_environment_failures as environments
from tests.system import test_learner_failures as learners
from tests.system import test_process_failures as processes
from tests.system import test_refusals as refusals

TABLE = Path(__file__).resolve().parents[2] / "docs" / "reliability.md"

TESTS = {
    "env-server killed": processes.test_an_env_server_that_is_killed_costs_the_step_under_way,
    "env-server stopped (SIGTERM)": processes.test_an_env_server_that_is_told_to_end_loses_nothing,
    "environment raises, calls `sys.exit`, or returns a wrong shape, a reward or an observation that is not finite": (
        environments.test_an_environment_that_fails_is_made_anew_and_the_others_go_on
    ),
    "environment fails `--max-failures` times within `--failure-window-s`, never after 20 steps or more": (
        processes.test_an_environment_that_fails_too_often_is_given_up_and_returns_with_its_process
    ),
    "no environment ever works: its module, its constructor (in three tries), its first reset or step fails": (
        environments.test_an_env_server_whose_environment_cannot_be_made_says_why_and_ends
    ),
    "environment hangs": (processes.test_the_learner_ends_a_stream_that_hangs_and_takes_it_again_once_it_was_replaced),
    "a stream's process dies (segmentation fault, OOM killer)": (
        processes.test_a_stream_whose_process_dies_or_hangs_is_replaced
    ),
    "learner killed": learners.test_a_learner_that_ends_is_resumed_and_env_servers_wait_for_it,
    "learner stopped (SIGTERM)": learners.test_a_learner_that_ends_is_resumed_and_env_servers_wait_for_it,
    "network cut": test_chaos.test_a_fault_that_lasts_costs_its_own_stream_only,
    "malformed, slow, silent or flooding peer, or one whose numbers are not finite": (
        test_hostile_clients.test_attack_is_turned_away_with_a_reason_and_disturbs_nobody
    ),
    "wrong shapes, version or token": refusals.test_an_env_server_that_does_not_fit_is_refused_once,
    "disk full at a checkpoint": (learners.test_a_disk_that_is_full_at_a_checkpoint_is_told_of_and_training_goes_on),
    "loss or gradient not finite": (
        learners.test_ten_updates_in_a_row_that_are_not_finite_end_the_run_with_a_checkpoint
    ),
}


def test_the_failure_table_and_the_tests_name_the_same_failures() -> None:
    table = TABLE.read_text().partition("| what fails |")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| (.*?) \|", table, re.MULTILINE)
    assert rows == list(TESTS)

"""Ranks with different settings refuse to train."""

from pathlib import Path

from harness.processes.rank_process import TIMEOUT_S, start_ranks

EXIT_USAGE = 2
FLAGS = ("--address=127.0.0.1:0", "--xpid=run", "--learning-rate=0.001", "--batch-size=4")


def test_ranks_that_would_learn_different_things_refuse_and_name_both_values(tmp_path: Path) -> None:
    own = {1: ("--learning-rate=0.002", "--loss-reduction=mean", "--schedule-steps=500", "--batch-size=8")}

    ranks = start_ranks(2, "kubebeast_learner", "learner", f"--savedir={tmp_path}", *FLAGS, own=own)

    for rank in ranks:
        text = rank.communicate(timeout=TIMEOUT_S)[0]
        assert rank.returncode == EXIT_USAGE, text
        assert "learning_rate = 0.002 on rank 1 and 0.001 on rank 0" in text
        assert "loss_reduction = 'mean' on rank 1 and 'sum' on rank 0" in text
        assert "schedule_steps = 500 on rank 1 and None on rank 0" in text
        assert "batch_size" not in text
    assert list(tmp_path.iterdir()) == []

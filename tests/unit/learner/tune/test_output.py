"""`kubebeast tune` reports its results to people."""

import pytest

from kubebeast_learner.config import RunConfig
from kubebeast_learner.tune.choice import best_of_each_size, choices, choose, expect
from kubebeast_learner.tune.output import MAX_ROWS, make_output
from kubebeast_learner.tune.settings_file import Setting
from tests.unit.learner.tune.measured import learner, machine


def test_the_chosen_settings_are_marked_among_the_fastest(capsys: pytest.CaptureFixture[str]) -> None:
    pieces = machine(32, 300, [learner(20.0 / threads, threads=threads) for threads in (1, 2)])
    expected = [expect(choice, pieces) for choice in choices(pieces, 64)]
    best = choose(expected)
    output = make_output(RunConfig(log_format="text"), 60.0)

    output.show(best_of_each_size(expected), best, [Setting("num_servers", 7, "there are [many] cores")])

    printed = capsys.readouterr()
    rows = [line for line in printed.err.splitlines() if "cpu" in line]
    (marked,) = (row for row in rows if "->" in row)
    assert printed.out == "" and MAX_ROWS <= len(rows) <= MAX_ROWS + 1
    assert f"{best.steps_per_s:,.0f}" in marked and best.saturates in marked
    assert "num_servers 7: there are [many] cores" in printed.err


@pytest.mark.parametrize(("progress", "is_told"), [("auto", True), ("none", False)])
@pytest.mark.parametrize("log_format", ["text", "json"])
def test_each_measurement_is_named_with_the_time_that_is_left(
    progress: str, is_told: bool, log_format: str, capsys: pytest.CaptureFixture[str]
) -> None:
    output = make_output(RunConfig(progress=progress, log_format=log_format), 60.0)  # type: ignore[arg-type]
    with output.measuring("one thing", 20.0), output.measuring("another", 40.0):
        pass
    with output.measuring("the last", 0.0):
        pass

    error = capsys.readouterr().err
    assert ("one thing" in error) == ("the last" in error) == is_told
    assert not is_told or error.index("60") < error.index("the last") < error.rindex("0")

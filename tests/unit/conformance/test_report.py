"""Results are reported as a table, as JSON lines and as JUnit XML."""

import io
import json
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest

from kubebeast_conformance.check import Check, Result, SkippedError, run_checks
from kubebeast_conformance.contract.violation import ViolationError
from kubebeast_conformance.report.junit import write_junit
from kubebeast_conformance.report.lines import Lines
from kubebeast_protos.v1 import actor_pool_pb2 as pb


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def passes(subject: None) -> None:
    pass


def breaks_a_rule(subject: None) -> None:
    raise ViolationError("O1", "observations.step", "7, expected 1", b"\x12\x02\x08\x07")


def does_not_apply(subject: None) -> None:
    raise SkippedError("takes a token")


CHECKS = (
    Check("good", ("H1",), passes),
    Check("bad", ("O1", "O2"), breaks_a_rule),
    Check("elsewhere", ("C4",), does_not_apply),
)


@pytest.fixture
def results() -> list[Result]:
    return list(run_checks(CHECKS, None, pb.ActRequest))


def test_a_check_has_one_of_three_outcomes(results: list[Result]) -> None:
    assert [result.outcome for result in results] == ["passed", "failed", "skipped"]
    assert (results[1].rule, results[1].reason) == ("O1", "observations.step: 7, expected 1")
    assert "[07]" in results[1].evidence


def test_nothing_follows_the_first_failure_where_that_is_asked_for() -> None:
    found: Iterator[Result] = run_checks(CHECKS, None, pb.ActRequest, stop_at_failure=True)
    assert [result.check for result in found] == ["good", "bad"]


def test_programs_get_a_json_object_a_line(results: list[Result]) -> None:
    output = io.StringIO()
    lines = Lines(output)
    for result in results:
        lines.write(result)
    lines.sum_up("env-server", results)
    good, bad, _, counts = map(json.loads, output.getvalue().splitlines())
    assert "rule" not in good
    assert (bad["rule"], bad["rule_text"]) == ("O1", "step counts 0, 1, 2, ... on a stream.")
    assert {name: counts[name] for name in ("passed", "failed", "skipped")} == {"passed": 1, "failed": 1, "skipped": 1}


def test_what_was_not_seen_is_said(results: list[Result]) -> None:
    output = io.StringIO()
    Lines(output).sum_up("env-server", [*results, Result("ends", ("E5",), "passed", 0.0)])
    counts = json.loads(output.getvalue())
    assert "C4" in counts["not_looked_at"] and "H1" not in counts["not_looked_at"]
    assert "S7" not in counts["not_looked_at"]  # a rule of the learner
    assert counts["not_seen"] == {"E5": "the reported reason"}


def test_people_get_a_table_with_the_rule_and_the_bytes(results: list[Result], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    output = Terminal()
    lines = Lines(output)
    for result in results:
        lines.write(result)
    lines.sum_up("learner", results)
    text = output.getvalue()
    assert "O1 is broken: observations.step: 7, expected 1" in text
    assert "O1: step counts 0, 1, 2, ... on a stream." in text
    assert "not looked at: C1, C2, C3, C4, C5, C6, W1," in text
    assert text.endswith("1 passed, 1 failed, 1 skipped\n") and "\x1b" not in text


def test_ci_gets_junit_xml(results: list[Result], tmp_path: Path) -> None:
    path = tmp_path / "results.xml"
    write_junit(path, "learner", results)
    suite = ElementTree.parse(path).getroot()
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("3", "1", "1")
    failure = suite.find("testcase[@name='bad']/failure")
    assert failure is not None and failure.get("type") == "O1" and "[07]" in str(failure.text)
    rules = suite.findall("testcase[@name='bad']/properties/property")
    assert [rule.get("value") for rule in rules] == ["O1", "O2"]

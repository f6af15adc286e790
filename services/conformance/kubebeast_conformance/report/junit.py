"""Results as JUnit XML (https://github.com/testmoapp/junitxml) for CI systems."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

from kubebeast_conformance.check import Result
from kubebeast_conformance.report.lines import explanation


def write_junit(path: Path, suite: str, results: Sequence[Result]) -> None:
    """Writes the results and replaces the file if it exists. Raises OSError."""
    counts = Counter(result.outcome for result in results)
    attributes = {
        "name": f"kubebeast-conformance {suite}",
        "tests": str(len(results)),
        "failures": str(counts["failed"]),
        "errors": "0",
        "skipped": str(counts["skipped"]),
        "time": f"{sum(result.seconds for result in results):.3f}",
    }
    root = ElementTree.Element("testsuite", attributes)
    for result in results:
        root.append(_test_case(suite, result))
    ElementTree.indent(root)
    ElementTree.ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)


def _test_case(suite: str, result: Result) -> ElementTree.Element:
    name = {"classname": f"kubebeast-conformance.{suite}", "name": result.check, "time": f"{result.seconds:.3f}"}
    case = ElementTree.Element("testcase", name)
    properties = ElementTree.SubElement(case, "properties")
    for rule in result.rules:
        ElementTree.SubElement(properties, "property", {"name": "rule", "value": rule})
    if result.outcome == "failed":
        failure = ElementTree.SubElement(case, "failure", {"type": result.rule, "message": result.reason})
        failure.text = explanation(result)
    elif result.outcome == "skipped":
        ElementTree.SubElement(case, "skipped", {"message": result.reason})
    return case

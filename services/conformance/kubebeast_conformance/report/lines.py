"""One line per result: a table on a terminal, JSON elsewhere."""

import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TextIO

from kubebeast_conformance.check import Result
from kubebeast_conformance.rules import BY_ID, RULES

_COLOURS = {"passed": 32, "failed": 31, "skipped": 33}
"""SGR parameters of ECMA-48 by outcome."""


class Lines:
    """A writer of results, one at a time."""

    def __init__(self, output: TextIO) -> None:
        self._output = output
        self._is_terminal = output.isatty()
        self._is_coloured = self._is_terminal and not os.environ.get("NO_COLOR")

    def write(self, result: Result) -> None:
        text = self._table_line(result) if self._is_terminal else json.dumps(_entry(result))
        print(text, file=self._output, flush=True)

    def sum_up(self, peer: str, results: Sequence[Result]) -> None:
        """Writes the totals, on a terminal after the unchecked rules. peer is "env-server" or "learner"."""
        counts = Counter(result.outcome for result in results)
        numbers = {outcome: counts[outcome] for outcome in ("passed", "failed", "skipped")}
        rules = [rule for rule in RULES if rule.side in (peer, "both")]
        looked_at = {rule for result in results if result.outcome != "skipped" for rule in result.rules}
        missed = [rule.id for rule in rules if rule.id not in looked_at]
        unseen = {rule.id: rule.unseen for rule in rules if rule.unseen and rule.id in looked_at}
        if self._is_terminal:
            self._print_unseen(missed, unseen)
            text = ", ".join(f"{count} {outcome}" for outcome, count in numbers.items())
        else:
            text = json.dumps({**numbers, "not_looked_at": missed, "not_seen": unseen})
        print(text, file=self._output, flush=True)

    def _print_unseen(self, missed: Sequence[str], unseen: Mapping[str, str]) -> None:
        if missed:
            print(f"not looked at: {', '.join(missed)}", file=self._output)
        for rule, text in unseen.items():
            print(f"not seen of {rule}: {text}", file=self._output)

    def _table_line(self, result: Result) -> str:
        verdict = f"{result.outcome:<7}"
        if self._is_coloured:
            verdict = f"\x1b[{_COLOURS[result.outcome]}m{verdict}\x1b[0m"
        line = f"{verdict} {result.seconds:6.1f} s  {result.check}"
        return "\n".join([line, *(f"        {text}" for text in explanation(result).splitlines())])


def explanation(result: Result) -> str:
    """Returns the violation, its rule and the bytes, or the reason for skipping the check; "" if it passed."""
    if result.outcome != "failed":
        return result.reason
    rule = BY_ID[result.rule]
    parts = [f"{rule.id} is broken: {result.reason}", f"{rule.id}: {rule.text}", result.evidence]
    return "\n".join(filter(None, parts))


def _entry(result: Result) -> dict[str, object]:
    entry = asdict(result) | {"seconds": round(result.seconds, 3)}
    if result.rule:
        entry["rule_text"] = BY_ID[result.rule].text
    return {name: value for name, value in entry.items() if value != ""}

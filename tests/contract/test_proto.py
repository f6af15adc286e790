"""The .proto is consistent: its comments, its table of rows, its list of additions and its descriptors agree."""

import re

from kubebeast_conformance.contract.rows import ADDITIONS, DUE, PROTO, ROWS, UNDER_WAY
from kubebeast_protos.v1 import ABSENT_MINOR, PROTOCOL_MINOR, WAITING_MINOR


def test_the_table_has_a_row_for_every_state_and_no_two_alike() -> None:
    assert {row.episode for row in ROWS} == {row.then for row in ROWS} == {DUE, UNDER_WAY}
    assert len({(row.episode, row.flags) for row in ROWS}) == len(ROWS)


def test_the_row_after_a_final_row_is_first_and_no_other_is() -> None:
    for row in ROWS:
        assert row.is_first == row.whole_stack == (row.episode == DUE), row
        assert (row.terminated or row.truncated) == (row.then == DUE), row


def test_interrupted_rows_are_as_old_as_their_field() -> None:
    assert min(row.minor for row in ROWS if row.interrupted) == ADDITIONS["Observations.interrupted"]
    assert {row.minor for row in ROWS if not (row.interrupted or row.waiting)} == {0}


def test_an_absent_row_is_as_old_as_env_servers_say() -> None:
    (absent,) = (row for row in ROWS if row.is_first and row.interrupted)
    assert absent.minor == ADDITIONS["the row absent"] == ABSENT_MINOR


def test_a_waiting_row_is_as_old_as_its_field() -> None:
    (waiting,) = (row for row in ROWS if row.waiting)
    assert waiting.minor == ADDITIONS["the row waiting"] == ADDITIONS["Observations.waiting"] == WAITING_MINOR


def test_every_addition_is_marked_where_it_is_declared_and_none_is_missing_from_the_list() -> None:
    declared = re.findall(r"\bSince minor (\d+)\.\n\s*(?:[\w.]+ )*(\w+) [={]", PROTO)
    listed = {(name.rpartition(".")[2].lower(), minor) for name, minor in ADDITIONS.items() if "row" not in name}
    assert {(name.lower(), int(minor)) for minor, name in declared} == listed
    assert max(ADDITIONS.values()) == PROTOCOL_MINOR

"""Options of episodes are JSON objects of bounded size with one text for each value."""

from typing import Any

import pytest

from kubebeast_common.spec.episode_options import from_text, to_text
from kubebeast_common.spec.limits import MAX_OPTIONS_CHARACTERS


def test_equal_options_have_one_text() -> None:
    assert to_text({"size": 5, "doors": [1, 2]}) == to_text({"doors": (1, 2), "size": 5}) == '{"doors":[1,2],"size":5}'
    assert from_text('{"doors":[1,2],"size":5}') == {"doors": [1, 2], "size": 5}


def test_text_beyond_ascii_is_escaped() -> None:
    assert from_text(to_text({"name": "höhle"})) == {"name": "höhle"}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "Expecting property name"),
        ("3", "'3' is no JSON object"),
        ('{"a":Infinity}', "Infinity is no JSON"),
        ('{"a":1e999}', "1e999 is no finite number"),
        ('{"ä":1}', "a character that is not printable ASCII"),
        ('{"a":\n1}', "a character that is not printable ASCII"),
        ('{"a":' * 33 + "1" + "}" * 33, "nested too deeply"),
        (f'{{"a":"{"x" * MAX_OPTIONS_CHARACTERS}"}}', "4104 characters, at most 4096"),
    ],
)
def test_a_text_that_breaks_the_contract_is_refused_with_the_reason(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        from_text(text)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ([1], r"\[1\] is no mapping"),
        ({"a": object()}, "not JSON serializable"),
        ({"a": float("nan")}, "not JSON compliant"),
        ({"a": "x" * MAX_OPTIONS_CHARACTERS}, "at most 4096"),
    ],
)
def test_options_without_such_a_text_are_refused_with_the_reason(options: Any, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        to_text(options)

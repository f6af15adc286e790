"""Shares follow weights among the learners that a stream may play with."""

import pytest

from kubebeast_broker.assignment.shares import Claim, shares_of


def test_streams_that_fit_every_learner_even_out_those_that_do_not() -> None:
    claims = {name: Claim(1.0, 0) for name in "abc"}
    groups = {frozenset("abc"): 6, frozenset("a"): 3, frozenset("bc"): 3}

    assert shares_of(claims, groups) == pytest.approx({"a": 4.0, "b": 4.0, "c": 4.0})


def test_a_learner_gets_no_more_than_it_can_use_while_others_can() -> None:
    claims = {"a": Claim(3.0, 2), "b": Claim(1.0, 0)}

    assert shares_of(claims, {frozenset("ab"): 8}) == pytest.approx({"a": 2.0, "b": 6.0})


def test_a_learner_without_streams_that_it_may_play_with_has_no_share() -> None:
    assert shares_of({"a": Claim(1.0, 0), "b": Claim(1.0, 0)}, {frozenset("b"): 4}) == {"a": 0.0, "b": 4.0}

"""`kubebeast top` keeps polling a learner, even if the learner fails or is silent."""

import math
import queue
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

import pytest

from kubebeast_observe.errors import NotFoundError, UnavailableError, WatchError
from kubebeast_observe.fleet.state import GroupState, PodState
from kubebeast_observe.scrape import parse_metrics
from kubebeast_observe.top import poller
from kubebeast_observe.top.poller import Looks, Poller, take
from tests.unit.observe.fleet.fleet_objects import pod_state
from tests.unit.observe.top.top_learner import metrics, old_metrics, stream, streams_page

TIMEOUT_S = 300.0


class ScriptedSource:
    """A learner with queued answers to /metrics; a request waits for the next answer."""

    name = "the learner"

    def __init__(self) -> None:
        self.answers: queue.Queue[str | WatchError] = queue.Queue()
        self.troubles: Sequence[str] = ()

    def page(self, path: str) -> str:
        if path == "streams":
            return streams_page(stream("kb-envserver-0"))
        if path == "ranks":
            raise NotFoundError("an older learner has none")
        try:
            answer = self.answers.get(timeout=TIMEOUT_S)
        except queue.Empty:  # in the poller of a finished test
            raise WatchError("there is no answer") from None
        if isinstance(answer, WatchError):
            raise answer
        return answer

    def notes(self) -> Sequence[str]:
        return self.troubles

    def fleet(self) -> tuple[Mapping[str, PodState], Sequence[GroupState]]:
        return {"kb-envserver-0": pod_state()}, ()


def looks_when(poller: Poller, condition: Callable[[Looks], bool]) -> Looks:
    """Returns the first looks that meet the condition; fails after TIMEOUT_S."""
    deadline_s = time.monotonic() + TIMEOUT_S
    while not condition(looks := poller.newest()):
        assert time.monotonic() < deadline_s
        time.sleep(0.001)
    return looks


@pytest.fixture
def source(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedSource]:
    monkeypatch.setattr(poller, "INTERVAL_S", 0.001)
    source = ScriptedSource()
    yield source
    gone = WatchError("the test is over")
    for _ in range(3):
        source.answers.put(gone)


def test_a_look_brings_metrics_streams_and_pods(source: ScriptedSource) -> None:
    source.answers.put(metrics())
    look = take(source, lambda: 5.0)
    assert (look.taken_at_s, look.source, look.notes) == (5.0, "the learner", ())
    assert look.streams is not None and [one.env_server_id for one in look.streams] == ["kb-envserver-0"]
    assert set(look.pods) == {"kb-envserver-0"}


def test_what_keeps_pods_from_running_is_noted(source: ScriptedSource) -> None:
    source.answers.put(metrics())
    source.troubles = ["pod kb-envserver-b: ImagePullBackOff: no such image"]
    assert take(source).notes == ("pod kb-envserver-b: ImagePullBackOff: no such image",)


def test_a_learner_that_does_not_end_its_answer_is_given_up(source: ScriptedSource) -> None:
    with pytest.raises(WatchError, match="the learner has not answered within 0 s"):
        Poller(source).wait(1, timeout_s=0.05)


def test_a_first_look_that_fails_ends_the_wait(source: ScriptedSource) -> None:
    source.answers.put(UnavailableError("connection refused"))
    with pytest.raises(UnavailableError, match="connection refused"):
        Poller(source).wait(1)


def test_a_later_failure_leaves_the_last_look_until_the_next(source: ScriptedSource) -> None:
    source.answers.put(old_metrics(learner_step=1))
    poller = Poller(source)
    assert poller.wait(1).problem == ""
    source.answers.put(UnavailableError("connection refused"))
    looks = looks_when(poller, lambda looks: looks.problem == "connection refused")
    assert looks.now.metrics.value("kubebeast_learner_step") == 1
    source.answers.put(old_metrics(learner_step=2))
    looks = looks_when(poller, lambda looks: looks.problem == "")
    assert looks.now.metrics.value("kubebeast_learner_step") == 2 and looks.before is not None


def test_an_error_of_the_learner_is_not_a_missing_page(source: ScriptedSource) -> None:
    source.answers.put(NotFoundError("the learner is not a learner: it has no /metrics"))
    with pytest.raises(NotFoundError):
        take(source)


@pytest.mark.parametrize("text", ["a{", 'a{b="c', "a 1 2 3 4", "{} 1", "a{b} 1", 'a{b="c"} x', "<html>", "\x1b[31m"])
def test_what_is_no_metrics_page_is_said_in_printable_words(text: str, source: ScriptedSource) -> None:
    source.answers.put(text)
    with pytest.raises(WatchError, match="the learner is not a learner: /metrics ") as raised:
        take(source)
    assert str(raised.value).isprintable()


def test_labels_of_a_hostile_learner_are_harmless(source: ScriptedSource) -> None:
    text = 'a_info{run_id="\x1b[31m"} 1\na_bucket{le="x"} 1\na_bucket{le="NaN"} 2\na_bucket{le="+Inf"} 3\n'
    read = parse_metrics(text)
    assert read.label("a_info", "run_id") == " [31m" and read.buckets("a") == {math.inf: 3}
    assert read.by_label("a_info", "run_id") == {" [31m": 1}

"""The HTTP proxy of the environment is used for learners outside the cluster only, and the log names no credentials."""

import pytest

from kubebeast_common.access.proxy import ProxyUse, proxy_of

ELSEWHERE = "learner.example.com:4431", ""
OWN = "pong-learner.training.svc:4431", ""
POD = ("10.1.2.3:4431", "pong-learner-headless.training.svc")
"""An address that was resolved from the name of a Service."""
PROXY = {"https_proxy": "http://proxy.example.com:3128"}


@pytest.mark.parametrize("learner", [OWN, POD, ("127.0.0.1:4431", ""), ("unix:/tmp/learner", "")])
def test_a_learner_of_the_cluster_is_dialed_directly(learner: tuple[str, str]) -> None:
    assert proxy_of(*learner, "auto", PROXY) == ""


@pytest.mark.parametrize("variable", ["grpc_proxy", "https_proxy", "http_proxy"])
def test_a_learner_elsewhere_is_dialed_through_the_proxy_that_is_named(variable: str) -> None:
    assert proxy_of(*ELSEWHERE, "auto", {variable: "http://proxy:3128"}) == f"proxy:3128 of {variable}"
    assert proxy_of(*ELSEWHERE, "auto", {}) == ""


def test_the_setting_overrules_the_address() -> None:
    assert proxy_of(*ELSEWHERE, "never", PROXY) == ""
    assert proxy_of(*OWN, "always", PROXY) == proxy_of(*POD, "always", PROXY) != ""


@pytest.mark.parametrize(
    "no_proxy",
    ["example.com", ".example.com", "localhost, learner.example.com", "LEARNER.EXAMPLE.COM", "*", "10.0.0.0/8,*"],
)
@pytest.mark.parametrize("use", ["auto", "always"])
def test_no_proxy_is_obeyed(no_proxy: str, use: ProxyUse) -> None:
    assert proxy_of(*ELSEWHERE, use, PROXY | {"no_proxy": no_proxy}) == ""


def test_no_proxy_may_be_a_network() -> None:
    learner = ("[2001:db8::7]:4431", "")
    assert proxy_of(*learner, "auto", PROXY | {"no_proxy": "10.0.0.0/8,2001:db8::/32"}) == ""
    assert proxy_of("10.1.2.3:4431", "", "auto", PROXY | {"no_proxy": "10.0.0.0/8"}) == ""
    assert proxy_of("11.1.2.3:4431", "", "auto", PROXY | {"no_proxy": "10.0.0.0/8"}) != ""


def test_an_empty_item_of_no_proxy_covers_nothing() -> None:
    assert proxy_of(*ELSEWHERE, "auto", PROXY | {"no_proxy": ",localhost,"}) != ""


def test_what_the_proxy_asks_for_stays_out_of_the_log() -> None:
    proxy = {"http_proxy": "http://ann:secret@proxy.example.com:3128/"}
    assert proxy_of(*ELSEWHERE, "auto", proxy) == "proxy.example.com:3128 of http_proxy"

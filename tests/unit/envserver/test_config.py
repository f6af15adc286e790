"""Settings come from flags and environment variables, and the small parts of the process work."""

import json
import logging
import threading
from pathlib import Path

import grpc
import pytest

from kubebeast_common.log import JsonFormatter
from kubebeast_common.settings import ConfigError
from kubebeast_common.spec.env_config import Wrapper
from kubebeast_envserver.config import parse
from kubebeast_envserver.stream.connection import DisconnectedError, RefusedError, status_error
from kubebeast_envserver.stream.shutdown import Shutdown


def test_flags_take_hyphens_and_underscores() -> None:
    config = parse(["--env", "Mock", "--num-streams", "2", "--envs_per_stream", "3", "--env-kwargs", '{"a": 1}'], {})
    assert (config.env, config.num_streams, config.envs_per_stream, config.env_kwargs) == ("Mock", 2, 3, {"a": 1})


def test_wrappers_and_time_limit_come_from_every_source() -> None:
    config = parse(["--env", "Mock", "--wrappers", "a:B,c:D", "--time-limit", "5"], {})
    assert (config.wrappers, config.time_limit) == ((Wrapper("a:B"), Wrapper("c:D")), 5)
    config = parse(["--env", "Mock"], {"KUBEBEAST_WRAPPERS": '["a:B", {"c:D": {"x": 1}}]', "KUBEBEAST_TIME_LIMIT": "7"})
    assert (config.wrappers, config.time_limit) == ((Wrapper("a:B"), Wrapper("c:D", {"x": 1})), 7)


def test_flags_win_over_the_environment_and_that_over_defaults() -> None:
    environ = {"KUBEBEAST_ENV": "Mock", "KUBEBEAST_NUM_STREAMS": "4", "KUBEBEAST_SEED": "7"}
    config = parse(["--num-streams", "2"], environ)
    assert (config.env, config.num_streams, config.seed, config.envs_per_stream) == ("Mock", 2, 7, 16)


def test_a_file_loses_to_the_environment_and_that_to_flags(tmp_path: Path) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text("env: Mock\nnum_streams: 4\nenvs_per_stream: 5\nseed: 6\nenv_kwargs: '{\"a\": 1}'\n")
    config = parse(["--config", str(file), "--seed", "9"], {"KUBEBEAST_ENVS_PER_STREAM": "8"})
    assert (config.env, config.num_streams, config.envs_per_stream, config.seed) == ("Mock", 4, 8, 9)
    assert config.env_kwargs == {"a": 1}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("num_stream: 2\n", "num_stream = '2': file .*: there is no such setting; did you mean num_streams"),
        ("seed: [1]\n", r"seed = \['1'\]: must be a single value"),
        ("seed\n", "config = '.*settings.yaml': must hold lines of the form name: value"),
        ("seed: 1\nseed: 2\n", "config = '.*settings.yaml': not YAML: 'seed' is given twice"),
        ("seed: two\n", "seed = 'two': invalid literal"),
    ],
)
def test_what_is_wrong_in_a_file_is_named(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text(text)
    with pytest.raises(ConfigError, match=message):
        parse(["--env", "Mock", "--config", str(file)], {})


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ([], "env = '': is required"),
        (["--env", "Mock", "--num-streams", "0"], "num_streams = 0: must be at least 1"),
        (["--env", "Mock", "--num-streams", "two"], "num_streams = 'two'"),
        (["--env", "Mock", "--env-kwargs", "{"], "env_kwargs = '{'"),
        (["--env", "Mock", "--env-kwargs", '{"a": {"b": 1, "b": 2}}'], "env_kwargs = .*: 'b' is given twice"),
        (["--env", "Mock", "--env-kwargs", "[" * 30_000], "env_kwargs = .*: maximum recursion depth"),
        (["--env", "Mock", "--env-kwargs", "[1]"], r"env_kwargs = \[1\]: must be a JSON object"),
        (["--env", "Mock", "--wrappers", "mine"], "wrappers = 'mine': 'mine' is not of the form module:Name"),
        (["--env", "Mock", "--time-limit", "-1"], "time_limit = -1: must not be negative"),
        (["--env", "Mock", "--preset", "v4"], "preset = 'v4': must be one of auto"),
        (["--env", "Mock", "--compression", "zip"], "compression = 'zip'"),
        (["--env", "Mock", "--address", "localhost"], "address = 'localhost'"),
        (["--env", "Mock", "--env-server-id", "a\nb"], "env_server_id = "),
        (["--env", "Mock", "--seed", "-1"], "seed = -1"),
        (["--env", "Mock", "--max-redials", "-1"], "max_redials = -1"),
        (["--env", "Mock", "--failure-window-s", "0"], "failure_window_s = 0.0"),
        (["--env", "Mock", "--log-level", "loud"], "log_level = 'loud'"),
        (["--env", "Mock", "--env-timeout-s", "0"], "env_timeout_s = 0.0"),
        (["--env", "Mock", "--http-address", "8080"], "http_address = '8080'"),
        (["--env", "Mock", "--http-address", "localhost:65536"], "http_address = 'localhost:65536'"),
        (["--env", "Mock", "--listen", "4431"], "listen = '4431'"),
        (["--env", "Mock", "--listen", "[::]:65535", "--num-streams", "2"], "last stream would need port 65536"),
        (["--env", "Mock", "--listen", "[::]:1", "--address", "host:2"], "listen = .* excludes address = 'host:2'"),
        (["--env", "Mock", "--token-file", "/no/such"], "token_file = '/no/such': No such file"),
        (["--env", "Mock", "--tls-cert", "c.pem"], "tls_cert = 'c.pem': needs tls_key"),
        (["--env", "Mock", "--tls-key", "k.pem"], "tls_key = 'k.pem': needs tls_cert"),
        (["--env", "Mock", "--tls-cert", "c.pem", "--tls-key", "k.pem"], "tls_cert = 'c.pem': needs tls_ca"),
        (["--env", "Mock", "--tls-server-name", "learner"], "tls_server_name = 'learner': needs tls_ca"),
        (["--env", "Mock", "--listen", "[::]:1", "--tls-ca", "a.pem"], "tls_ca = 'a.pem': needs tls_cert"),
    ],
)
def test_a_bad_value_is_named_with_its_reason(flags: list[str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse(flags, {})


@pytest.mark.parametrize(
    ("code", "meaning"),
    [
        (grpc.StatusCode.UNAVAILABLE, DisconnectedError),
        (grpc.StatusCode.UNKNOWN, DisconnectedError),
        (grpc.StatusCode.INVALID_ARGUMENT, RefusedError),
    ],
)
def test_a_status_means_try_again_or_give_up(code: grpc.StatusCode, meaning: type[Exception]) -> None:
    error = status_error(code.value[0], "leaf 'image'")
    assert type(error) is meaning
    assert str(error) == f"{code.name}: leaf 'image'"


def test_a_misspelt_flag_is_refused_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        parse(["--env=Mock", "--num_steams=2", "--addres", "a:1", "what"], {})
    error = capsys.readouterr().err
    assert "unrecognized arguments: --num_steams=2 what; did you mean --num-streams?" in error


def test_files_and_sockets_have_absolute_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("token", "cert", "key", "ca"):
        (tmp_path / name).touch()
    flags = ["--token-file=token", "--tls-cert=cert", "--tls-key=key", "--tls-ca=ca", "--address=unix:a, unix:/b,c:1"]
    config = parse(["--env=Mock", *flags], {})
    paths = (config.token_file, config.tls_cert, config.tls_key, config.tls_ca)
    assert paths == tuple(str(tmp_path / name) for name in ("token", "cert", "key", "ca"))
    assert config.address == f"unix:{tmp_path}/a,unix:/b,c:1"


def test_a_shutdown_wakes_a_waiter_and_stays_requested() -> None:
    shutdown = Shutdown()
    assert shutdown.wait(0.0) is False
    woken: list[bool] = []
    waiter = threading.Thread(target=lambda: woken.append(shutdown.wait(60.0)))
    waiter.start()
    shutdown.request()
    waiter.join(60.0)
    assert woken == [True]
    assert shutdown.wait(0.0) is True


def test_a_shutdown_may_be_requested_from_within_its_own_callback() -> None:
    shutdown = Shutdown()
    calls: list[str] = []

    def again() -> None:
        calls.append("called")
        if len(calls) < 3:
            shutdown.request()

    shutdown.on_request = again
    shutdown.request()
    assert len(calls) == 3


def test_a_log_record_is_one_json_line() -> None:
    try:
        raise ValueError("two\nlines")
    except ValueError as error:
        record = logging.LogRecord("name", logging.ERROR, "", 0, "said %s", ("hello",), (ValueError, error, None))
    line = JsonFormatter().format(record)
    entry = json.loads(line)
    assert "\n" not in line
    assert (entry["level"], entry["message"]) == ("error", "said hello")
    assert "two\nlines" in entry["traceback"]

"""Misspelled variables of the environment cause a warning; variables of other programs do not."""

from dataclasses import fields

import pytest

from kubebeast_common.cli.command import find_commands
from kubebeast_common.cli.settings import setting_types
from kubebeast_common.variables import PREFIX, unknown_variables
from kubebeast_envserver.config import EnvServerConfig

ENV_SERVER = {field.name for field in fields(EnvServerConfig)}
PROGRAMS = [ENV_SERVER, *(set(setting_types(command.config_type)) for command in find_commands().values())]


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("ENV_TIMEOUT", "ENV_TIMEOUT_S"),
        ("NUM_STREAM", "NUM_STREAMS"),
        ("ENV_PER_STREAM", "ENVS_PER_STREAM"),
        ("ADRESS", "ADDRESS"),
        ("TOKENFILE", "TOKEN_FILE"),
        ("COMPRESION", "COMPRESSION"),
    ],
)
def test_a_misspelt_variable_is_told_with_the_one_that_was_meant(name: str, meant: str) -> None:
    environ = {f"KUBEBEAST_{name}": "1", "KUBEBEAST_ENV": "Mock", "PATH": ""}
    text = f"KUBEBEAST_{name} is set, and there is no such setting; did you mean KUBEBEAST_{meant}?"
    assert unknown_variables(environ, ENV_SERVER, slips_only=True) == [text]


def test_no_program_takes_a_setting_of_another_for_a_slip() -> None:
    environ = {PREFIX + setting.upper(): "" for settings in PROGRAMS for setting in settings}
    assert [unknown_variables(environ, settings, slips_only=True) for settings in PROGRAMS] == [[]] * len(PROGRAMS)


def test_variables_that_kubernetes_sets_for_services_are_passed_over() -> None:
    names = (
        "LEARNER_SERVICE_HOST",
        "LEARNER_PORT",
        "LEARNER_PORT_4431_TCP_ADDR",
        "LEARNER_SERVICE_PORT",
        "SERVICE_HOST",
    )
    environ = {f"KUBEBEAST_{name}": "10.0.0.1" for name in names}
    assert [unknown_variables(environ, settings, slips_only=True) for settings in PROGRAMS] == [[]] * len(PROGRAMS)

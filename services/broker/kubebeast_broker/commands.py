"""The command of `kubebeast` that shares a fleet."""

from kubebeast_broker.settings import BrokerConfig
from kubebeast_common.cli.command import Command

COMMANDS = {
    "broker": Command(
        summary="Share one fleet of env-servers among many runs.",
        examples=["--http-address 127.0.0.1:9092", "--address [::]:4432 --token-file token"],
        config_type=BrokerConfig,
        target="kubebeast_broker.command:run",
    ),
}

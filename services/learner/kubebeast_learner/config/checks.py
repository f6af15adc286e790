"""How a configuration says that a value cannot be used."""


class ConfigError(ValueError):
    """A configuration value that cannot be used; the message names the field, the value and the reason."""


def require(condition: bool, name: str, value: object, reason: str) -> None:
    """ConfigError unless `condition` holds; `reason` says what the value must be."""
    if not condition:
        raise ConfigError(f"{name} = {value!r}: {reason}")

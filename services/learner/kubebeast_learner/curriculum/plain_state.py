"""The state of a curriculum in types that a checkpoint can be read with."""

from typing import Any

from kubebeast_common.spec import peer_json


def plain(state: object) -> Any:
    """Returns a copy of JSON values without subclasses, such as numpy.float64, which is a float: a checkpoint with them
    cannot be read. Keys keep their types, and tuples stay tuples. Raises ValueError for a value without JSON.
    """
    peer_json.dump(state)
    return _copied(state)


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {_copied(key): _copied(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return (list if isinstance(value, list) else tuple)(map(_copied, value))
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str.__str__(value)  # an enumeration's own would be its name
    return int(value) if isinstance(value, int) else float(value)

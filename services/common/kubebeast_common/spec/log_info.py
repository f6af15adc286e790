"""Limits of Welcome.log_info (kubebeast_protos/v1/actor_pool.proto), for programs that do without the protocol, too."""

from kubebeast_common.spec.limits import MAX_INFO_CHARACTERS


def is_key(key: str) -> bool:
    """Returns True if a Welcome may have this key."""
    return 1 <= len(key) <= MAX_INFO_CHARACTERS and key.isascii() and key.isprintable()

"""Limits of Welcome.log_info (kubebeast_protos/v1/actor_pool.proto), for programs that do without the protocol, too."""

MAX_KEYS = 32
MAX_KEY_CHARACTERS = 100


def is_key(key: str) -> bool:
    """Returns True if a Welcome may have this key."""
    return 1 <= len(key) <= MAX_KEY_CHARACTERS and key.isascii() and key.isprintable()

"""What an address says about who can reach it."""


def is_local(address: str) -> bool:
    """Whether nobody but this machine can reach the address."""
    return address.startswith(("unix:", "127.", "localhost:", "[::1]:"))

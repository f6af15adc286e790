"""The loss of a lease, which readers of errors know without a client of a store."""


class LeaseLostError(RuntimeError):
    """Another process has taken over the run: this one must not go on, and has changed nothing of the other's."""

"""Errors that several packages of the learner raise."""


class ModelSpecError(ValueError):
    """Error for a model that does not fit an environment or breaks its contract; the message names the remedy."""

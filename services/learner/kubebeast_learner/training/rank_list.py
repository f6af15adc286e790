"""Statistics of several learners as JSON, available from each of them."""

import json

from kubebeast_learner.training.monitor import Monitor


def encode_ranks(monitor: Monitor) -> bytes:
    """Encodes {"ranks": [{"streams": 1, ...}, ...]}, with RankStats in the order of ranks.

    The list is empty for a single learner, and before the first exchange of statistics.
    """
    ranks = () if monitor.snapshot is None else monitor.snapshot.ranks
    return json.dumps({"ranks": [each._asdict() for each in ranks]}).encode()

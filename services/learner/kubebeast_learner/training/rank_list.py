"""How several learners do as JSON, for those who watch one of them."""

import json

from kubebeast_learner.training.monitor import Monitor


def encode_ranks(monitor: Monitor) -> bytes:
    """{"ranks": [{"streams": 1, ...}, ...]}: RankStats in the order of ranks. None of a learner that is alone, or
    before they have told each other.
    """
    ranks = () if monitor.snapshot is None else monitor.snapshot.ranks
    return json.dumps({"ranks": [each._asdict() for each in ranks]}).encode()

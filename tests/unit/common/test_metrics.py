"""Further labels apply to all rows of a table of metrics."""

from prometheus_client import CollectorRegistry

from kubebeast_common.metrics import COUNTER, GAUGE, Labelling, Row, TableCollector

TABLE = (
    Row(COUNTER, "kubebeast_steps", "Steps.", {"sampled": "sampled", "dropped": "dropped"}, ("outcome",)),
    Row(GAUGE, "kubebeast_streams", "Streams.", "streams"),
)


def test_further_labels_stand_beside_those_of_a_row() -> None:
    registry = CollectorRegistry()
    table = TableCollector(TABLE, lambda: {"sampled": 3.0, "dropped": 1.0, "streams": 2.0})
    registry.register(Labelling(table, rank="1"))

    assert registry.get_sample_value("kubebeast_steps_total", {"outcome": "sampled", "rank": "1"}) == 3.0
    assert registry.get_sample_value("kubebeast_streams", {"rank": "1"}) == 2.0
    assert registry.get_sample_value("kubebeast_streams") is None

"""Reader of the rows in the local store of a tracker, with the tracker's own code, in a process of its own.

python -m tests.integration.tracked_rows TRACKER SAVEDIR

Prints a line of JSON for each row of run "run" in the order in which the store received them: step, numbers by tag.
"""

import importlib
import json
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tensorboard.backend.event_processing.event_file_loader import EventFileLoader
from tensorboard.util import tensor_util

Row = tuple[int, dict[str, float]]

_BLOCK, _HEADER = 32768, struct.Struct("<IHB")
_WHOLE_OR_LAST = (1, 4)


def wandb_records(folder: Path) -> Iterator[Any]:
    """Yields the records of the offline folders of a run, oldest first.

    The format is that of LevelDB's log, https://github.com/google/leveldb/blob/main/doc/log_format.md, after 7 bytes.
    """
    proto = importlib.import_module("wandb.proto.wandb_internal_pb2")
    for path in sorted(folder.glob("wandb/offline-run-*/*.wandb")):
        content, place, record = path.read_bytes(), 7, b""
        while place + _HEADER.size <= len(content):
            if (left := _BLOCK - place % _BLOCK) < _HEADER.size:
                place += left
                continue
            _, size, kind = _HEADER.unpack_from(content, place)
            place += _HEADER.size + size
            record += content[place - size : place]
            if kind in _WHOLE_OR_LAST:
                yield proto.Record.FromString(record)
                record = b""


def wandb_rows(savedir: Path) -> Iterator[Row]:
    for record in wandb_records(savedir / "run"):
        if record.WhichOneof("record_type") == "history":
            items = {"/".join(item.nested_key) or item.key: json.loads(item.value_json) for item in record.history.item}
            yield items["step"], {name: value for name, value in items.items() if "/" in name}


def mlflow_rows(savedir: Path) -> Iterator[Row]:
    client = importlib.import_module("mlflow").MlflowClient(f"sqlite:///{savedir / 'mlflow.db'}")
    (run,) = client.search_runs([client.get_experiment_by_name("kubebeast").experiment_id])
    rows: dict[tuple[int, int], dict[str, float]] = {}
    for tag in run.data.metrics:
        for metric in client.get_metric_history(run.info.run_id, tag):
            rows.setdefault((metric.timestamp, metric.step), {})[tag] = metric.value
    for (_, step), numbers in sorted(rows.items(), key=lambda row: row[0][0]):
        yield step, numbers


def trackio_rows(savedir: Path) -> Iterator[Row]:
    storage = importlib.import_module("trackio.sqlite_storage").SQLiteStorage
    (run,) = storage.get_run_records("kubebeast")
    for row in storage.get_logs("kubebeast", run["name"], run_id=run["id"]):
        yield row["step"], {name: value for name, value in row.items() if "/" in name}


def tensorboard_rows(savedir: Path) -> Iterator[Row]:
    for path in sorted((savedir / "run" / "tensorboard").glob("events.*")):
        for event in EventFileLoader(str(path)).Load():
            values = {value.tag: value for value in event.summary.value if "/" in value.tag and value.tag[0] != "_"}
            if values:
                yield event.step, {tag: tensor_util.make_ndarray(value.tensor).item() for tag, value in values.items()}


ROWS = {"wandb": wandb_rows, "mlflow": mlflow_rows, "trackio": trackio_rows, "tensorboard": tensorboard_rows}

if __name__ == "__main__":
    for row in ROWS[sys.argv[1]](Path(sys.argv[2])):
        print(json.dumps(row))

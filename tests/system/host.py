"""An env-server of scripted environments, and its records: log, metrics, and the environments' accounts."""

import json
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from harness.chaos import serial_env
from harness.processes.env_server import WAIT_S, EnvServer
from tests.child_processes import SPAWNED, children
from tests.system import environments


class Host(EnvServer):
    """An env-server of scripted environments, alone in its folder."""

    def __init__(
        self,
        folder: Path,
        address: str,
        *flags: str,
        num_envs: int,
        env: str = environments.SCRIPTED,
        fault: str = "",
        again: int = 0,
        env_ms: float = environments.ENV_MS,
        variables: Mapping[str, str] | None = None,
    ) -> None:
        """address: address of the learner; "" if the flags name a port on which to wait for it."""
        folder.mkdir()
        is_scripted = env.endswith((":Scripted-v0", "/Squad"))
        script = {"fault": fault, "crowd": num_envs, "again": again, "env_ms": env_ms} if is_scripted else {}
        super().__init__(
            0,
            address,
            folder,
            "--http-address=127.0.0.1:0",
            f"--env-server-id={folder.name}",
            *flags,
            num_envs=num_envs,
            env=env,
            env_kwargs=script,
            variables={environments.FOLDER: str(folder), **(variables or {})},
        )
        self.folder = folder
        self.num_envs = num_envs

    def says(self, text: str) -> list[dict[str, Any]]:
        """Returns the lines of the log that hold `text`."""
        lines = [json.loads(line) for line in self._lines() if line.startswith("{")]
        return [line for line in lines if text in line["message"]]

    def stray_lines(self) -> list[str]:
        """Returns output outside the log format, such as a bare traceback."""
        return [line for line in self._lines() if not line.startswith("{")]

    def metrics(self) -> dict[str, float]:
        """Returns the metrics, as read_metrics; empty before they are served, and if no process runs."""
        lines = self.says("serving HTTP on port")
        if not lines or self.pid is None:
            return {}
        return read_metrics(f"127.0.0.1:{lines[-1]['message'].rpartition(' ')[2]}", "kubebeast_envserver_")

    def kill_stream(self) -> None:
        """Sends SIGKILL to the process of its only stream."""
        assert self.pid is not None
        (stream,) = children(self.pid, SPAWNED)
        stream.kill()

    def failures(self) -> dict[str, int]:
        """Returns the counted failures, by kind."""
        prefix = "env_failures_total/"
        counts = {name.removeprefix(prefix): int(n) for name, n in self.metrics().items() if name.startswith(prefix)}
        return {kind: count for kind, count in counts.items() if count}

    def decisions(self) -> dict[int, int]:
        """Returns the decisions taken by each environment, by its number."""
        accounts = serial_env.accounts(self.folder)
        used = accounts[accounts["place"] != environments.UNUSED]
        return dict(sorted(zip(used["place"].tolist(), used["decisions"].tolist(), strict=True)))

    def replacements(self) -> dict[int, int]:
        """Returns the decisions of the environments that were made later, by their numbers."""
        return {number: count for number, count in self.decisions().items() if number >= self.num_envs}

    def _lines(self) -> list[str]:
        return self.log_path.read_text().splitlines()


def read_metrics(address: str, prefix: str) -> dict[str, float]:
    """Returns samples by name, without the prefix, and label values: "steps_total/sampled"."""
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=WAIT_S) as response:
        families = list(text_string_to_metric_families(response.read().decode()))
    return {
        "/".join([sample.name.removeprefix(prefix), *sample.labels.values()]): sample.value
        for family in families
        for sample in family.samples
    }

"""docs/metrics.md names every metric that is exported."""

import subprocess
import sys
from pathlib import Path

from tests.metric_names import PROCESS, exported_metrics

DOCS = Path(__file__).resolve().parents[4] / "docs"


def test_the_reference_is_current() -> None:
    check = subprocess.run([sys.executable, DOCS / "generate", "--check"], capture_output=True, text=True, timeout=60)
    assert (check.returncode, check.stderr) == (0, "")


def test_every_metric_is_in_it() -> None:
    text = (DOCS / "metrics.md").read_text(encoding="utf-8")
    parts = ("_bucket", "_sum", "_count")
    families = {
        next((name.removesuffix(part) for part in parts if name.endswith(part)), name) for name in exported_metrics()
    }
    assert [name for name in sorted(families - PROCESS) if f"`{name}`" not in text] == []

"""Checks the packages that pip has installed: `installed.py REPORT SHA256SUMS LIMIT_MB`.

REPORT is the output of `pip install --report`. KubeBeast's archives must have the checksums of SHA256SUMS, and all
archives except PyTorch's together may have LIMIT_MB (of 10^6 bytes). Prints the archived and installed size of each.
"""

import importlib.metadata
import json
import pathlib
import sys
import urllib.parse
import urllib.request
from typing import Any


def checksum_errors(downloads: dict[str, Any], sums: pathlib.Path) -> list[str]:
    """Returns an error for each archive of KubeBeast with a checksum other than that in SHA256SUMS.

    Args:
        downloads: The report's download_info by name.
        sums: File of checksums.
    """
    expected = {name: digest for digest, name in (line.split() for line in sums.read_text().splitlines())}
    digests = {
        urllib.parse.unquote(download["url"]).rpartition("/")[2]: download["archive_info"]["hashes"]["sha256"]
        for name, download in downloads.items()
        if name.startswith("kubebeast")
    }
    if not digests:
        return ["nothing of KubeBeast was installed"]
    return [f"{name}: sha256 is {digest}" for name, digest in digests.items() if expected.get(name) != digest]


def archive_mb(url: str) -> float:
    """Returns the size of an archive as the server or the file system reports it."""
    with urllib.request.urlopen(urllib.request.Request(url, method="HEAD"), timeout=60) as answer:
        return int(answer.headers["Content-Length"]) / 1e6


def installed_mb(name: str) -> float:
    """Returns the size of an installed package on the disk, compiled files included."""
    paths = (pathlib.Path(str(file.locate())) for file in importlib.metadata.files(name) or ())
    return sum(path.stat().st_size for path in paths if path.is_file()) / 1e6


def main() -> None:
    report, sums, limit_mb = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), float(sys.argv[3])
    downloads = {item["metadata"]["name"]: item["download_info"] for item in json.loads(report.read_text())["install"]}
    sizes = {name: (archive_mb(download["url"]), installed_mb(name)) for name, download in downloads.items()}
    for name, (archive, installed) in sorted(sizes.items(), key=lambda item: -item[1][0]):
        print(f"{archive:8.1f} MB, installed {installed:8.1f} MB  {name}")
    archives, installed = map(sum, zip(*(size for name, size in sizes.items() if name != "torch"), strict=True))
    print(f"{archives:8.1f} MB, installed {installed:8.1f} MB  without torch")
    errors = checksum_errors(downloads, sums)
    if archives > limit_mb:
        errors.append(f"archives of more than {limit_mb:g} MB")
    if errors:
        sys.exit("\n".join(errors))


if __name__ == "__main__":
    main()

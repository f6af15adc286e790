"""Checks what pip has installed: `installed.py REPORT SHA256SUMS LIMIT_MB`.

REPORT is that of `pip install --report`. KubeBeast's archives must have the checksums of SHA256SUMS, and everything but
PyTorch together may have LIMIT_MB (of 10^6 bytes). Prints the sizes.
"""

import importlib.metadata
import json
import pathlib
import sys
import urllib.parse


def checksum_errors(report: pathlib.Path, sums: pathlib.Path) -> list[str]:
    """Archives of KubeBeast that are not those of SHA256SUMS."""
    expected = {name: digest for digest, name in (line.split() for line in sums.read_text().splitlines())}
    sources = [item["download_info"] for item in json.loads(report.read_text())["install"]]
    digests = {
        urllib.parse.unquote(source["url"]).rpartition("/")[2]: source["archive_info"]["hashes"]["sha256"]
        for source in sources
    }
    ours = {name: digest for name, digest in digests.items() if name.startswith("kubebeast")}
    if not ours:
        return ["nothing of KubeBeast was installed"]
    return [f"{name}: sha256 is {digest}" for name, digest in ours.items() if expected.get(name) != digest]


def sizes_mb() -> dict[str, float]:
    """Of every installed distribution, as it lies on the disk, compiled files included."""
    return {
        distribution.metadata["Name"]: sum(
            path.stat().st_size
            for file in distribution.files or ()
            if (path := pathlib.Path(str(file.locate()))).is_file()
        )
        / 1e6
        for distribution in importlib.metadata.distributions()
    }


def main() -> None:
    report, sums, limit_mb = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), float(sys.argv[3])
    sizes = sizes_mb()
    for name, size in sorted(sizes.items(), key=lambda item: -item[1]):
        print(f"{size:8.1f} MB  {name}")
    total = sum(size for name, size in sizes.items() if name not in ("torch", "pip", "setuptools"))
    print(f"{total:8.1f} MB  without torch, pip and setuptools")
    errors = checksum_errors(report, sums)
    if total > limit_mb:
        errors.append(f"more than {limit_mb:g} MB")
    sys.exit("\n".join(errors))


if __name__ == "__main__":
    main()

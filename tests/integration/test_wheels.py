"""The released wheels have the right contents, hide their symbols, and work beside torch and grpcio."""

import hashlib
import itertools
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.integration.fresh_venv import INSTALL_TIMEOUT_S, ROOT

pytestmark = [pytest.mark.slow, pytest.mark.timeout(INSTALL_TIMEOUT_S + 300)]

PROJECTS = [ROOT / "native", ROOT / "protos", *(path.parent for path in ROOT.glob("services/*/pyproject.toml"))]
"""Folders of the distributions, each of which is released as a wheel and an archive of its sources."""

PLAY = """
import importlib, sys
for name in sys.argv[1].split(","):
    importlib.import_module(name)
import concurrent.futures, torch, grpc, kubebeast_native
from pathlib import Path
from kubebeast_common.process.verdict import end_with
from tests.integration.playing_pool import PlayingPool

server = grpc.server(concurrent.futures.ThreadPoolExecutor(1))
port = server.add_insecure_port("127.0.0.1:0")
server.start()
with (
    grpc.insecure_channel(f"127.0.0.1:{port}") as channel,
    PlayingPool() as pool,
    pool.env_server(transport="grpcio") as one,
    pool.env_server(transport="native") as other,
):
    grpc.channel_ready_future(channel).result(timeout=60)
    pool.play_with(one)
    pool.play_with(other)
    torch.ones(8, 8) @ torch.ones(8, 8)
server.stop(None).wait()
print(kubebeast_native.__file__)
print(*{line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if "grpc" in line}, sep="\\n")
end_with(lambda: 0)
"""
"""Lets env-servers, on both transports, play with the native pool beside a grpcio server; prints the mapped files.

Ends as env-servers do, without finalizing: gRPC's threads may still need the interpreter then.
"""


@pytest.fixture(scope="module")
def dist() -> Path:
    """The folder with the output of scripts/release/wheels, built once for all workers and for the rehearsal."""
    script = [ROOT / "scripts" / "release" / "wheels-once"]
    done = subprocess.run(script, stdout=subprocess.PIPE, text=True, check=True, timeout=INSTALL_TIMEOUT_S)
    return Path(done.stdout.strip())


@pytest.fixture(scope="module")
def installed(dist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheels unpacked, and without dependencies."""
    folder = tmp_path_factory.mktemp("installed")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", str(folder)]
    subprocess.run([*pip, *sorted(map(str, dist.glob("*.whl")))], check=True, timeout=INSTALL_TIMEOUT_S)
    return folder


def test_every_file_has_the_checksum_that_is_published(dist: Path) -> None:
    lines = (dist / "SHA256SUMS").read_text().splitlines()
    sums = {name: digest for digest, name in map(str.split, lines)}
    files = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in dist.glob("kubebeast*")}

    assert len(files) == 2 * len(PROJECTS)
    assert sums == files


def test_the_sources_of_the_core_have_its_wire_contract(dist: Path, tmp_path: Path) -> None:
    (archive,) = dist.glob("kubebeast_native-*.tar.gz")
    subprocess.run(["tar", "-xf", archive, "-C", tmp_path, "--strip-components=1"], check=True, timeout=60)
    contract = Path("protos", "kubebeast_protos", "v1", "actor_pool.proto")

    assert not (tmp_path / contract).is_symlink()
    assert (tmp_path / contract).read_bytes() == (ROOT / contract).read_bytes()


@pytest.mark.skipif(sys.platform != "linux", reason="nm as binutils has it")
def test_the_core_exports_nothing_but_its_entry(installed: Path) -> None:
    (module,) = (installed / "kubebeast_native").glob("_core.*.so")
    nm = ["nm", "--dynamic", "--defined-only", "--format=posix", str(module)]
    lines = subprocess.run(nm, capture_output=True, text=True, check=True, timeout=60).stdout.splitlines()

    assert [line.split()[0] for line in lines] == ["PyInit__core"]


@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
@pytest.mark.parametrize(
    "order", [",".join(names) for names in itertools.permutations(("kubebeast_native", "torch", "grpc"))]
)
def test_the_core_plays_beside_torch_and_grpcio_in_every_order(order: str, installed: Path) -> None:
    environment = os.environ | {"PYTHONPATH": f"{installed}:{ROOT}", "OMP_NUM_THREADS": "1"}
    play = [sys.executable, "-W", "error", "-c", PLAY, order]
    process = subprocess.run(play, env=environment, cwd=installed, capture_output=True, text=True, timeout=240)

    assert process.returncode == 0, process.stderr
    module, *libraries = process.stdout.splitlines()
    assert Path(module).is_relative_to(installed)
    ours = {path for path in libraries if "cygrpc" not in path and "/grpc/" not in path}
    assert [path for path in ours if not Path(path).is_relative_to(installed)] == []


def test_no_time_and_no_mode_of_this_machine_is_in_a_wheel(dist: Path) -> None:
    for wheel in dist.glob("*-py3-none-any.whl"):
        with zipfile.ZipFile(wheel) as archive:
            assert len({info.date_time for info in archive.infolist()}) == 1, wheel.name
            assert {info.external_attr >> 16 & 0o777 for info in archive.infolist()} <= {0o644, 0o664}, wheel.name

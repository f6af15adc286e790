"""Builds of the C++ client library, installed for other projects, and of programs that use it."""

import fcntl
import subprocess
from pathlib import Path
from typing import Literal

ROOT = Path(__file__).resolve().parents[1]
BUILD_TIMEOUT_S = 900

Kind = Literal["shared", "static"]


def installed_client(kind: Kind) -> Path:
    """Returns the folder of an up-to-date installation, built if necessary. Blocks while another process builds it."""
    # Both kinds share a build folder: they are linked from the same objects.
    build, prefix = ROOT / "build" / "client", ROOT / "build" / f"client-{kind}-installed"
    build.mkdir(parents=True, exist_ok=True)
    with open(build / "lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        shared = "ON" if kind == "shared" else "OFF"
        options = [f"-DBUILD_SHARED_LIBS={shared}", f"-DCMAKE_INSTALL_PREFIX={prefix}"]
        _run("cmake", "-G", "Ninja", "-S", ROOT / "native" / "client", "-B", build, *options)
        _run("cmake", "--build", build, "-j", "2")
        _run("cmake", "--install", build)
    return prefix


def built_against(client: Path, source: Path, build: Path) -> Path:
    """Builds a separate CMake project that finds the installed package, and returns the folder of its programs."""
    warnings = ["-DCMAKE_COMPILE_WARNING_AS_ERROR=ON", "-DCMAKE_C_FLAGS=-Wall -Wextra -pedantic"]
    warnings.append("-DCMAKE_CXX_FLAGS=-Wall -Wextra -pedantic")
    _run("cmake", "-G", "Ninja", "-S", source, "-B", build, f"-DCMAKE_PREFIX_PATH={client}", *warnings)
    _run("cmake", "--build", build)
    return build


def _run(*words: str | Path) -> None:
    done = subprocess.run(words, capture_output=True, text=True, timeout=BUILD_TIMEOUT_S)
    assert done.returncode == 0, done.stdout + done.stderr

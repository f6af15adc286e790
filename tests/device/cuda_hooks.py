"""The library of `simulation/cuda_hooks.cc`, compiled with the headers of the installed PyTorch."""

import importlib.util
import subprocess
from pathlib import Path

SOURCE = Path(__file__).parent / "simulation/cuda_hooks.cc"
LIBRARY = "SIMULATED_CUDA_HOOKS"
"""Environment variable with the path of the compiled library."""


def compile_hooks(folder: Path) -> Path:
    """Returns the library."""
    spec = importlib.util.find_spec("torch")
    assert spec is not None and spec.origin is not None
    torch, library = Path(spec.origin).parent, folder / "cuda_hooks.so"
    command = ["c++", "-std=c++20", "-O0", "-shared", "-fPIC", str(SOURCE), "-o", str(library)]
    command += [f"-I{torch / each}" for each in ("include", "include/torch/csrc/api/include")]
    command += [f"-L{torch / 'lib'}", f"-Wl,-rpath,{torch / 'lib'}", "-lc10", "-ltorch_cpu"]
    subprocess.run(command, check=True)
    return library

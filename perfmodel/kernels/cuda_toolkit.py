"""Finds NVIDIA's runtime compiler and its headers: those of the optional extra, of CUDA 13's packages, or of a toolkit
that is installed."""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_OF_12 = ("nvidia.cuda_nvrtc", "nvidia.cuda_runtime", "nvidia.cuda_cccl", "nvidia.cuda_nvcc", "nvidia.curand")
"""Packages of CUDA 12 with the compiler and headers, which the extra brings."""
_OF_13 = ("nvidia.cu13",)
_ALWAYS = "include/cuda_runtime.h"
_USUAL = Path("/usr/local/cuda")
_VARIABLES = ("CUDA_HOME", "CUDA_PATH")


@dataclass(frozen=True)
class Toolkit:
    """Some folders of one version of CUDA, which have ``lib`` and ``include``."""

    folders: tuple[Path, ...]

    def libraries(self) -> Iterator[Path]:
        """Yields what may be the compiler's library."""
        for folder in self.folders:
            for pattern in ("lib/libnvrtc.so.*", "lib64/libnvrtc.so.*", "bin/nvrtc64_*.dll"):
                paths = sorted(folder.glob(pattern))
                yield from (path for path in paths if "alt" not in path.name and "builtins" not in path.name)

    def headers(self) -> list[Path]:
        """Returns the folders of headers that sources may include; CUDA 13 has those of its C++ library apart."""
        folders = [folder / part for folder in self.folders for part in ("include", "include/cccl")]
        return [folder for folder in folders if folder.is_dir()]


def toolkits() -> Iterator[Toolkit]:
    """Yields what may have a compiler, the best first; packages have headers of a toolkit behind their own."""
    installed = [folder for folder in dict.fromkeys(_installed()) if (folder / _ALWAYS).is_file()]
    yield Toolkit(tuple(_folders(_OF_12)))
    yield Toolkit((*_folders(_OF_13), *installed))


def _folders(packages: tuple[str, ...]) -> Iterator[Path]:
    for package in packages:
        try:
            spec = importlib.util.find_spec(package)
        except ModuleNotFoundError:
            continue
        yield from map(Path, (spec.submodule_search_locations or ()) if spec else ())


def _installed() -> Iterator[Path]:
    """Yields the folders of toolkits: named by the environment, of the compiler that is called nvcc, the usual one."""
    yield from (Path(named) for variable in _VARIABLES if (named := os.environ.get(variable)))
    if nvcc := shutil.which("nvcc"):
        yield Path(nvcc).resolve().parents[1]
    yield _USUAL

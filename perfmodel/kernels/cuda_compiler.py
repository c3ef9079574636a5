"""Compiles CUDA C++ to PTX by NVIDIA's runtime compiler, which needs neither a GPU nor a driver; results are kept on
disk."""

from __future__ import annotations

import ctypes
import importlib.util
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from perfmodel.basics.errors import KernelError, SourceError
from perfmodel.kernels.cuda_host import HEADERS, device_code
from perfmodel.kernels.hip_headers import HIP_HEADERS
from perfmodel.kernels.ptx_cache import kept

USUAL_TARGET = "compute_90"
"""The target where options name none: an H200."""
_LINES = "-lineinfo"
_FILE = "/kernel.cu"
"""The source's name in PTX, the same from every working folder, as times are kept by the text."""
_HEADERS = ("nvidia.cuda_runtime", "nvidia.cuda_cccl", "nvidia.cuda_nvcc")
"""The packages whose headers sources may include."""


def compiled(source: str, name: str, options: Sequence[str] = ()) -> tuple[str, str]:
    """Returns the PTX of a source, and the name that a kernel has there.

    Args:
        name: of the kernel, of a template with its arguments, such as ``scale<float, 4>``.
        options: of the compiler, such as ``-DWIDTH=8`` or ``--use_fast_math``.

    Raises:
        SourceError: for what is no CUDA C++, with the compiler's first words on it.
        KernelError: where the compiler is not installed.
    """
    chosen = list(options)
    if not any("-arch" in option or "--gpu-architecture" in option for option in chosen):
        chosen.append(f"--gpu-architecture={USUAL_TARGET}")
    if _LINES not in chosen:
        chosen.append(_LINES)
    library = _library()

    def compile_() -> dict[str, Any]:
        try:
            ptx, lowered = _compile(library, source, name, chosen)
        except SourceError:  # functions for the host may be what is not understood
            ptx, lowered = _compile(library, device_code(source), name, [*chosen, "-default-device"])
        return {"ptx": ptx, "name": lowered}

    found = kept([source, name, chosen, _version(library), _FILE], compile_)
    return str(found["ptx"]), str(found["name"])


@lru_cache(maxsize=1)
def _library() -> Any:
    """Loads the compiler of the optional extra."""
    folders = _package_folders("nvidia.cuda_nvrtc")
    for folder in folders:
        for path in sorted((*(folder / "lib").glob("libnvrtc.so.*"), *(folder / "bin").glob("nvrtc64_*.dll"))):
            if "alt" in path.name or "builtins" in path.name:
                continue
            with suppress(OSError):
                library = ctypes.CDLL(str(path))
                library.nvrtcGetErrorString.restype = ctypes.c_char_p
                return library
    raise KernelError(
        "CUDA C++ needs NVIDIA's compiler NVRTC, which is not installed; add it by pip install 'perfmodel[nvidia]', or "
        "give PTX text to Kernel.from_ptx"
    )


def _package_folders(package: str) -> list[Path]:
    try:
        spec = importlib.util.find_spec(package)
    except ModuleNotFoundError:
        return []
    return [] if spec is None else [Path(folder) for folder in spec.submodule_search_locations or ()]


def _version(library: Any) -> list[int]:
    major, minor = ctypes.c_int(), ctypes.c_int()
    library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
    return [major.value, minor.value]


def _compile(library: Any, source: str, name: str, options: Sequence[str]) -> tuple[str, str]:
    program = ctypes.c_void_p()
    headers = {**HEADERS, **HIP_HEADERS}
    contents, names = (
        (ctypes.c_char_p * len(headers))(*(text.encode() for text in texts)) for texts in (headers.values(), headers)
    )
    made = library.nvrtcCreateProgram(
        ctypes.byref(program), source.encode(), _FILE.encode(), len(headers), contents, names
    )
    _check(library, made)
    try:
        _check(library, library.nvrtcAddNameExpression(program, name.encode()))
        folders = [folder for package in _HEADERS for folder in _package_folders(package)]
        given = [*options, *(f"-I{folder / 'include'}" for folder in folders)]
        array = (ctypes.c_char_p * len(given))(*(option.encode() for option in given))
        status = library.nvrtcCompileProgram(program, len(given), array)
        if status:
            raise SourceError(_said(_text(library, program, "ProgramLog")) or _error(library, status))
        lowered = ctypes.c_char_p()
        _check(library, library.nvrtcGetLoweredName(program, name.encode(), ctypes.byref(lowered)))
        text = (lowered.value or b"").decode()
        return _text(library, program, "PTX"), text
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))


def _text(library: Any, program: Any, what: str) -> str:
    size = ctypes.c_size_t()
    getattr(library, f"nvrtcGet{what}Size")(program, ctypes.byref(size))
    buffer = ctypes.create_string_buffer(max(size.value, 1))
    getattr(library, f"nvrtcGet{what}")(program, buffer)
    return buffer.value.decode(errors="replace")


def _said(log: str) -> str:
    """Returns the first error of the compiler's log, in one line."""
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    first = next((line for line in lines if "error" in line), lines[0] if lines else "")
    return first.replace("error:", "").replace("  ", " ").strip().removeprefix("/")


def _error(library: Any, status: int) -> str:
    return (library.nvrtcGetErrorString(status) or b"").decode()


def _check(library: Any, status: int) -> None:
    if status:
        raise KernelError(f"NVIDIA's compiler fails ({_error(library, status)}); look at the source and its options")

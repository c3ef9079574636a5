"""Compiles CUDA C++ to PTX by NVIDIA's runtime compiler, which needs neither a GPU nor a driver; results are kept on
disk."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from perfmodel.basics.errors import KernelError, SourceError
from perfmodel.kernels import thrust_headers
from perfmodel.kernels.cuda_attempt import Attempt, absent_headers
from perfmodel.kernels.cuda_conditions import USUAL
from perfmodel.kernels.cuda_declarations import UNNAMED, base_name
from perfmodel.kernels.cuda_host import HEADERS
from perfmodel.kernels.cuda_process import CompilerProcess, CrashedError, RefusedError
from perfmodel.kernels.cuda_refusals import refused
from perfmodel.kernels.cuda_toolkit import toolkits
from perfmodel.kernels.hip_headers import HIP_HEADERS
from perfmodel.kernels.nvcc_options import of_runtime_compiler
from perfmodel.kernels.ptx_cache import kept

USUAL_TARGET = f"compute_{USUAL}"
"""The target where options name none: an H200."""
_LINES = "-lineinfo"
_FILE = f"/{UNNAMED}"
"""The source's name in PTX, the same from every working folder, as times are kept by the text."""


_MOST_ROUNDS = 64
"""So often a source is compiled again without what was not understood."""


@dataclass(frozen=True)
class CompiledText:
    """Holds what the compiler made of a source.

    Attributes:
        name: that the kernel has in the PTX.
        not_found: headers that are not there, and that the kernel does without.
    """

    ptx: str
    name: str
    not_found: tuple[str, ...] = ()


def compiled(source: str, name: str, options: Sequence[str] = (), most_s: int | None = None) -> CompiledText:
    """Returns the PTX of a kernel; of a whole program, what the kernel doesn't need need not be understood.

    Args:
        name: of the kernel, of a template with its arguments, such as ``scale<float, 4>``.
        options: of the compiler, such as ``-DWIDTH=8`` or ``--use_fast_math``; those of nvcc that are for the host's
            compiler count for nothing.
        most_s: seconds of a processor that the compiler may take, where the system knows such limits.

    Raises:
        SourceError: for what is no CUDA C++, with the compiler's first words on it.
        KernelError: where the compiler is not installed, or takes longer than it may.
    """
    chosen = of_runtime_compiler(options)
    if not any("-arch" in option or "--gpu-architecture" in option for option in chosen):
        chosen.append(f"--gpu-architecture={USUAL_TARGET}")
    if _LINES not in chosen:
        chosen.append(_LINES)
    compiler = _compiler()

    folders = [*(Path(option[2:]) for option in chosen if option.startswith("-I")), *compiler.headers]
    absent = absent_headers(source, folders)

    def compile_() -> dict[str, Any]:
        try:
            if not absent:
                ptx, lowered = _compile(compiler, source, name, chosen, HEADERS, most_s)
                return {"ptx": ptx, "name": lowered, "not_found": []}
        except (RefusedError, CrashedError):
            pass  # functions for the host may be what is not understood
        return _compile_kernel_alone(compiler, source, name, chosen, absent)

    key = [source, name, chosen, compiler.process.version, _own_headers(), list(map(str, compiler.headers)), _FILE]
    found = kept(key, compile_)
    return CompiledText(str(found["ptx"]), str(found["name"]), tuple(found.get("not_found", ())))


def _compile_kernel_alone(
    compiler: _Compiler, source: str, name: str, options: Sequence[str], absent: Sequence[str]
) -> dict[str, Any]:
    """Compiles a kernel without functions for the host, headers that are not found, and declarations that are not
    understood, as far as it does without them."""
    attempt = Attempt(source, name, options, absent, list(map(str, compiler.headers)))
    log = ""
    for _ in range(_MOST_ROUNDS):
        try:
            ptx, lowered = _compile(compiler, attempt.outline.source, name, attempt.options, attempt.headers)
            return {"ptx": ptx, "name": lowered, "not_found": attempt.not_found}
        except RefusedError as error:
            log = str(error)
            if not attempt.mend(log):
                break
        except CrashedError:
            if not attempt.shorten():
                raise SourceError(
                    f"NVIDIA's compiler crashes on what kernel {base_name(name)!r} needs of its source; give a smaller "
                    "one"
                ) from None
    raise refused(log, source, name, _FILE, attempt.not_found)


@lru_cache
def _own_headers() -> str:
    """Returns a digest of the headers that stand in for others."""
    text = json.dumps([dict(HEADERS), dict(HIP_HEADERS), thrust_headers.FUNCTIONS], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True)
class _Compiler:
    """The compiler, and the folders of its headers."""

    process: CompilerProcess
    headers: Sequence[Path]


@lru_cache(maxsize=1)
def _compiler() -> _Compiler:
    """Loads the compiler."""
    for toolkit in toolkits():
        for path in toolkit.libraries():
            with suppress(OSError):
                return _Compiler(CompilerProcess(path), toolkit.headers())
    raise KernelError(
        "CUDA C++ needs NVIDIA's compiler NVRTC, which is not installed; add it by pip install 'perfmodel[nvidia]', or "
        "give PTX text to Kernel.from_ptx"
    )


def _compile(
    compiler: _Compiler,
    source: str,
    name: str,
    options: Sequence[str],
    usual: Mapping[str, str],
    most_s: int | None = None,
) -> tuple[str, str]:
    """Returns the PTX of a kernel, and the name that it has there.

    NVRTC ends its process where it is asked for a template among whose parameters is a type that it doesn't know; what
    it refuses without being asked for one says why.
    """
    headers = {**usual, **HIP_HEADERS}
    given = [*options, *(f"-I{folder}" for folder in compiler.headers)]
    try:
        return compiler.process.made(source, _FILE, name, given, headers, most_s)
    except CrashedError:
        compiler.process.made(source, _FILE, "", given, headers)
        raise

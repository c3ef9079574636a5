"""Compiles CUDA C++ to PTX by NVIDIA's runtime compiler, which needs neither a GPU nor a driver; results are kept on
disk."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from perfmodel.basics.errors import KernelError, SourceError
from perfmodel.kernels import thrust_headers
from perfmodel.kernels.cuda_declarations import (
    UNNAMED,
    base_name,
    code_of_kernel,
    with_plain_lambdas,
    without,
    without_refusals,
    without_unmentioned,
)
from perfmodel.kernels.cuda_host import (
    HEADERS,
    ONE_ABS,
    PRE_INCLUDED,
    UNMASKED,
    is_for_the_host,
    stand_in,
)
from perfmodel.kernels.cuda_process import CompilerProcess, CrashedError, RefusedError
from perfmodel.kernels.cuda_refusals import refusal
from perfmodel.kernels.cuda_toolkit import toolkits
from perfmodel.kernels.hip_headers import HIP_HEADERS
from perfmodel.kernels.ptx_cache import kept

USUAL_TARGET = "compute_90"
"""The target where options name none: an H200."""
_LINES = "-lineinfo"
_FILE = f"/{UNNAMED}"
"""The source's name in PTX, the same from every working folder, as times are kept by the text."""


_MOST_ROUNDS = 64
"""So often a source is compiled again without what was not understood."""
_OF_THE_SYSTEM = ("-D__linux__=1", "-D__linux=1", "-D__unix__=1")
"""Compilers for the host define these, by which sources choose between systems."""
_WORDS_OF_GCC = (
    *("-D__extension__=", "-Dregister=", "-D__asm__=asm", "-D__asm=asm", "-D__volatile__=volatile"),
    *("-D__inline__=inline", "-D__inline=inline", "-D__const=const", "-D__signed__=signed"),
)
_OF_NVCC = "-D__NVCC__=1"
_OF_STD = [f"--pre-include={header}" for header in ("limits", "utility", "algorithm", "functional")]
_WITHOUT_STD = re.compile(r'"std"|^qualified name is not allowed')
"""So the compiler says that it knows nothing of a name of std, or nothing of std at all."""
_OF_ONE_ABS = f"--pre-include={ONE_ABS}"
_OF_UNMASKED = f"--pre-include={UNMASKED}"
_IS_UNMASKED = re.compile(r'identifier "__(?:shfl(?:_up|_down|_xor)?|ballot|any|all)" is undefined')
_ONLY_FOR_THE_HOST = "explicitly marked as a __host__ function"
_OF_LAMBDAS = "annotation on lambda"
_TWO_ABS = 'more than one instance of overloaded function "abs"'
_MISTAKE = re.compile(r"^/?(.*?)\((\d+)\): (?:catastrophic )?error\b:?\s*(.*)$", re.MULTILINE)
_INCLUDED = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"]([^>"\n]+)[>"]', re.MULTILINE)
_OWN = {"cuda_runtime.h", "cuda.h", "device_launch_parameters.h"}
_NOT_FOUND = re.compile(r'cannot open source file "([^"]*)"')


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
        options: of the compiler, such as ``-DWIDTH=8`` or ``--use_fast_math``.
        most_s: seconds of a processor that the compiler may take, where the system knows such limits.

    Raises:
        SourceError: for what is no CUDA C++, with the compiler's first words on it.
        KernelError: where the compiler is not installed, or takes longer than it may.
    """
    chosen = list(options)
    if not any("-arch" in option or "--gpu-architecture" in option for option in chosen):
        chosen.append(f"--gpu-architecture={USUAL_TARGET}")
    if _LINES not in chosen:
        chosen.append(_LINES)
    compiler = _compiler()

    absent = _absent(source, chosen)

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
    text, headers = code_of_kernel(source, name), {**HEADERS, **{each: stand_in(each) for each in absent}}
    given = [
        *options,
        "-default-device",
        *_WORDS_OF_GCC,
        *_OF_THE_SYSTEM,
        *(f"--pre-include={header}" for header in PRE_INCLUDED),
    ]
    own = [str(folder).lstrip("/") for folder in compiler.headers]
    for _ in range(_MOST_ROUNDS):
        try:
            ptx, lowered = _compile(compiler, text, name, given, headers)
            return {"ptx": ptx, "name": lowered, "not_found": _not_found(headers)}
        except RefusedError as error:
            log = str(error)
        except CrashedError:
            if (left := without_unmentioned(text, name)) is not None:
                text = left
                continue
            raise SourceError(
                f"NVIDIA's compiler crashes on what kernel {base_name(name)!r} needs of its source; give a smaller one"
            ) from None
        mistakes = _MISTAKE.findall(log)
        if missing := [found for *_, said in mistakes for found in _NOT_FOUND.findall(said)]:
            headers.update({each: stand_in(each) for each in missing})
            continue
        within = [
            file.rpartition("/")[2]
            for file, _, said in mistakes
            if is_for_the_host(file) or (_ONLY_FOR_THE_HOST in said and any(map(file.startswith, own)))
        ]
        if any(each not in headers for each in within):
            headers.update({each: stand_in(each) for each in within})
            continue
        of_thrust = [each for each in _INCLUDED.findall(text) if each.startswith("thrust/") and each not in headers]
        thrust = [each for each in of_thrust if each not in thrust_headers.UNDERSTOOD]
        if thrust and any(file.startswith(folder) for file, *_ in mistakes for folder in own):
            headers.update(dict.fromkeys(thrust, thrust_headers.FUNCTIONS))
            continue
        if any(_WITHOUT_STD.search(said) for *_, said in mistakes) and _OF_STD[0] not in given:
            given += _OF_STD
            continue
        if any(_TWO_ABS in said for *_, said in mistakes) and _OF_ONE_ABS not in given:
            given.append(_OF_ONE_ABS)
            continue
        if any(_IS_UNMASKED.search(said) for *_, said in mistakes) and _OF_UNMASKED not in given:
            given.append(_OF_UNMASKED)
            continue
        if any(_OF_LAMBDAS in said for *_, said in mistakes):
            plain = with_plain_lambdas(text)
            if plain != text:
                text = plain
                continue
        if _not_found(headers) and any("#error directive" in said for *_, said in mistakes):
            text = without_refusals(text)
            continue
        left = without(text, [(file, int(line)) for file, line, _ in mistakes], name)
        if left is None and "__NVCC__" in source and _OF_NVCC not in given:
            given.append(_OF_NVCC)
            left = code_of_kernel(source, name)
        if left is None:
            break
        text = left
    raise SourceError(refusal(log, source, name, _FILE, _not_found(headers)))


@lru_cache
def _own_headers() -> str:
    """Returns a digest of the headers that stand in for others."""
    text = json.dumps([dict(HEADERS), dict(HIP_HEADERS), thrust_headers.FUNCTIONS], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _absent(source: str, options: Sequence[str]) -> list[str]:
    """Returns the headers that a source includes and that are nowhere, or for the host alone."""
    folders = [Path(option[2:]) for option in options if option.startswith("-I")]
    folders += _compiler().headers
    named = dict.fromkeys(_INCLUDED.findall(source))
    known = HEADERS.keys() | HIP_HEADERS.keys() | _OWN
    return [
        each
        for each in named
        if each not in known and (is_for_the_host(each) or not any((folder / each).is_file() for folder in folders))
    ]


def _not_found(headers: Mapping[str, str]) -> list[str]:
    return [header for header in headers if header not in HEADERS]


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

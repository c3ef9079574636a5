"""Calls NVIDIA's runtime compiler, as a process of its own that answers requests: it ends its process on some sources.

It is run by its path and imports nothing of perfmodel. A request and its answer are a line of JSON each.
"""

from __future__ import annotations

import ctypes
import json
import math
import sys
from pathlib import Path
from typing import Any

try:
    import resource
except ImportError:  # on Windows
    resource = None  # type: ignore[assignment]

_BUILTINS = "libnvrtc-builtins.so.*"


def load(path: str) -> Any:
    """Loads the compiler's library; raises OSError where that is impossible."""
    for part in sorted(Path(path).parent.glob(_BUILTINS)):  # CUDA 13's package does not find it by itself
        ctypes.CDLL(str(part))
    library = ctypes.CDLL(path)
    library.nvrtcGetErrorString.restype = ctypes.c_char_p
    return library


def version(library: Any) -> list[int]:
    """Returns the compiler's version, major and minor."""
    major, minor = ctypes.c_int(), ctypes.c_int()
    library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
    return [major.value, minor.value]


def answer(library: Any, request: dict[str, Any]) -> dict[str, str]:
    """Returns what the compiler makes of a source: ``ptx`` and the kernel's ``name`` there, the ``log`` where it
    refuses it, or an ``error`` of its own.

    Args:
        request: the ``source``, what it is called (``file``), the ``name`` of a kernel or none, ``options``, and the
            text of ``headers`` by name.
    """
    program, headers, name = ctypes.c_void_p(), request["headers"], request["name"]
    contents, names = (
        (ctypes.c_char_p * len(headers))(*(text.encode() for text in texts)) for texts in (headers.values(), headers)
    )
    source, file = request["source"].encode(), request["file"].encode()
    status = library.nvrtcCreateProgram(ctypes.byref(program), source, file, len(headers), contents, names)
    if status:
        return {"error": _error(library, status)}
    try:
        if name and (status := library.nvrtcAddNameExpression(program, name.encode())):
            return {"error": _error(library, status)}
        given = request["options"]
        options = (ctypes.c_char_p * len(given))(*(option.encode() for option in given))
        if status := library.nvrtcCompileProgram(program, len(given), options):
            return {"log": _text(library, program, "ProgramLog") or _error(library, status)}
        if not name:
            return {"ptx": "", "name": ""}
        lowered = ctypes.c_char_p()
        if status := library.nvrtcGetLoweredName(program, name.encode(), ctypes.byref(lowered)):
            return {"error": _error(library, status)}
        return {"ptx": _text(library, program, "PTX"), "name": (lowered.value or b"").decode()}
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))


def _text(library: Any, program: Any, what: str) -> str:
    size = ctypes.c_size_t()
    getattr(library, f"nvrtcGet{what}Size")(program, ctypes.byref(size))
    buffer = ctypes.create_string_buffer(max(size.value, 1))
    getattr(library, f"nvrtcGet{what}")(program, buffer)
    return buffer.value.decode(errors="replace")


def _error(library: Any, status: int) -> str:
    return (library.nvrtcGetErrorString(status) or b"").decode()


def _serve(path: str) -> None:
    """Answers requests until there are no more; one that takes more than its `most_s` ends the process."""
    library = load(path)
    for line in sys.stdin:
        request = json.loads(line)
        _limit(request["most_s"])
        print(json.dumps(answer(library, request)), flush=True)


def _limit(most_s: int | None) -> None:
    """Has the system end the process after so many more seconds of a processor; None for no limit."""
    if resource is not None:
        used = resource.getrusage(resource.RUSAGE_SELF)
        soft = resource.RLIM_INFINITY if most_s is None else math.ceil(used.ru_utime + used.ru_stime) + most_s
        resource.setrlimit(resource.RLIMIT_CPU, (soft, resource.getrlimit(resource.RLIMIT_CPU)[1]))


if __name__ == "__main__":
    _serve(sys.argv[1])

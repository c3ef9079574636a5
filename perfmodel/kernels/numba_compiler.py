"""Compiles kernels of Numba to PTX by Numba itself, which needs neither a GPU nor a driver; results are kept on
disk."""

from __future__ import annotations

import hashlib
import importlib.metadata
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from types import CodeType, FunctionType, ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from perfmodel.basics.errors import KernelError, SourceError, one_line
from perfmodel.kernels.ptx_cache import kept
from perfmodel.ptx.reading.reader import read

# Functions import Numba, which is an optional dependency.

_MISSING = (
    "kernels of Numba need Numba's compiler for CUDA, which is not installed as a whole; add it by pip install "
    "'perfmodel[numba]'"
)


def types_of_numba() -> Any:
    """Returns Numba's types; KernelError where it is not installed."""
    try:
        from numba import cuda, types
    except ImportError as error:
        raise KernelError(_MISSING) from error
    if not hasattr(cuda, "compile"):
        raise KernelError(_MISSING)
    return types


def function_of(kernel: Any) -> tuple[Any, Mapping[str, Any]]:
    """Returns the Python function of a kernel under ``@cuda.jit``, or itself, and what the decorator was told."""
    function = getattr(kernel, "py_func", kernel)
    if not isinstance(function, FunctionType):
        raise KernelError("what Kernel.from_numba is given is no kernel of Numba; give a function under @cuda.jit")
    return function, getattr(kernel, "targetoptions", {})


def compiled(function: Any, signature: Sequence[Any], target: str, is_fast: bool) -> tuple[str, str]:
    """Returns the PTX of a kernel, and the name that it has there.

    Args:
        signature: Numba's types of the arguments.
        is_fast: whether floats may be computed as ``fastmath`` does.

    Raises:
        SourceError: for what Numba does not compile, with its first words on it.
        KernelError: where its compiler is not installed as a whole.
    """
    found = re.fullmatch(r"(?:sm_?|compute_?)?(\d+)(\d)a?", str(target))
    if found is None:
        raise KernelError(f"target {target!r} is none of NVIDIA's; give one such as 'sm_90'")

    def compile_() -> dict[str, Any]:
        from numba import cuda

        try:
            capability = int(found[1]), int(found[2])
            with _without_device(capability):
                text, _ = cuda.compile_ptx(function, tuple(signature), cc=capability, lineinfo=True, fastmath=is_fast)
        except Exception as error:  # Numba raises all kinds
            if type(error).__name__ in ("NvvmSupportError", "DynamicLibNotFoundError", "CudaSupportError"):
                raise KernelError(_MISSING) from error
            raise SourceError(f"Numba does not compile {function.__name__!r}: {_said(error)}") from error
        return {"ptx": text, "name": read(text).entries[0]}

    version = ""
    for package in ("numba-cuda", "numba"):
        with suppress(importlib.metadata.PackageNotFoundError):
            version += f" {package} {importlib.metadata.version(package)}"
    contents = hashlib.sha256("\n".join(_contents(function, set())).encode()).hexdigest()
    key = ["numba", version, contents, function.__name__, [str(each) for each in signature], str(target), is_fast]
    made = kept(key, compile_)
    return str(made["ptx"]), str(made["name"])


@contextmanager
def _without_device(capability: tuple[int, int]) -> Iterator[None]:
    """Lets Numba compile the functions that a kernel calls, for which it asks the device at hand what it is."""
    from numba.cuda import dispatcher

    device = SimpleNamespace(compute_capability=capability)
    before = dispatcher.get_current_device
    dispatcher.get_current_device = lambda: device
    try:
        yield
    finally:
        dispatcher.get_current_device = before


def _contents(function: Any, seen: set[int]) -> Iterator[str]:
    """Yields all that decides what a function computes: its code, and the values and functions that it names."""
    if id(function) in seen:
        return
    seen.add(id(function))
    yield from _code(function.__code__)
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=False)
    values = {name: cell.cell_contents for name, cell in cells}
    values |= {name: function.__globals__[name] for name in _names(function.__code__) if name in function.__globals__}
    for name, value in sorted(values.items()):
        inner = getattr(value, "py_func", value)
        if isinstance(inner, FunctionType):
            yield name
            yield from _contents(inner, seen)
        elif isinstance(value, ModuleType):
            yield f"{name} is {value.__name__}"
        elif isinstance(value, np.ndarray):
            yield f"{name} = {value.dtype} {value.shape} {hashlib.sha256(value.tobytes()).hexdigest()}"
        else:
            yield f"{name} = {value!r}"


def _code(code: CodeType) -> Iterator[str]:
    yield f"{code.co_name} {code.co_code.hex()} {code.co_names} {code.co_varnames} {code.co_firstlineno}"
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _code(constant)
        else:
            yield repr(constant)


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _said(error: Exception) -> str:
    """Returns the reason of Numba's error, which stands behind lines about its passes."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    reasons = [line for line in lines if not re.match(r"(Failed in|- |During|File |Invalid use|>>>)", line)]
    return reasons[0] if reasons else one_line(error)

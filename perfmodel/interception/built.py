"""Kernels as they were built: their source and build options, as far as pyopencl and the driver know them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from perfmodel.basics.errors import KernelError, PerfmodelError
from perfmodel.opencl_c.syntax import Function

_NO_SOURCE = (
    "kernel {!r} has no source, as its program was linked or built from binaries or intermediate language; build it "
    "from source to have it counted"
)
_CACHE_SUFFIX = re.compile(r"\n\n__constant int pyopencl_defeat_cache_\w+ = 0;$")


@dataclass(frozen=True)
class Built:
    """Holds a kernel as it was built.

    Attributes:
        source: None where the driver has none, for the reason in `problem`.
        parameters: how many it has.
        note: what else is not known.
    """

    name: str
    source: str | None
    options: tuple[str, ...]
    parameters: int
    problem: str = ""
    note: str = ""

    @classmethod
    def of(cls, kernel: Any, parameters: int, source: str | bytes | None = None) -> Built:
        """Reads what pyopencl tells of a kernel. Some drivers forget its program as soon as the Python object is
        gone."""
        import pyopencl as cl  # which may not load

        with suppress(
            AttributeError, TypeError
        ):  # where a binary was in pyopencl's cache, only pyopencl has the source
            source = source or kernel._source
        options, note = "", ""
        try:
            program = kernel.get_info(cl.kernel_info.PROGRAM)
            source = source or program.get_info(cl.program_info.SOURCE)
            options = _options(program)
        except cl.Error:
            note = "its build options are not known, as its program was gone before the interception began"
        source = source.decode(errors="replace") if isinstance(source, bytes) else source or ""
        source = _CACHE_SUFFIX.sub("", source)
        problem = "" if source.strip() else _NO_SOURCE.format(kernel.function_name)
        return cls(kernel.function_name, source or None, _words(options, source), parameters, problem, note)

    @property
    def function(self) -> Function:
        """Returns the kernel as its source declares it.

        Raises:
            SourceError: the source is not supported, or says other than the driver.
        """
        if self.source is None:
            raise KernelError(self.problem)
        functions = _functions(self.source, self.options, self.name)
        if isinstance(functions, PerfmodelError):
            raise functions
        found = functions.get(self.name)
        if found is None or len(found.parameters) != self.parameters:
            raise KernelError(f"the source of kernel {self.name!r} does not declare it as the driver knows it")
        return found


@lru_cache(maxsize=256)
def _functions(source: str, options: tuple[str, ...], kernel: str) -> Mapping[str, Function] | PerfmodelError:
    """Returns a kernel and the functions that it calls, or the error that says why they cannot be read."""
    from perfmodel.opencl_c.reading import read  # slow to import

    try:
        return read(source, options, kernels=(kernel,)).functions
    except PerfmodelError as error:
        return error


def _options(program: Any) -> str:
    """Returns the options that the driver got, for the first device that the program is built for."""
    import pyopencl as cl  # which may not load

    for device in program.get_info(cl.program_info.DEVICES):
        try:
            return str(program.get_build_info(device, cl.program_build_info.OPTIONS))
        except cl.Error:
            continue
    return ""


def _words(options: str, source: str) -> tuple[str, ...]:
    """Returns build options one by one, without the folder of headers that pyopencl always adds if nothing is
    included."""
    import pyopencl  # which may not load

    try:
        words = shlex.split(options)
    except ValueError:
        words = options.split()
    headers = str(Path(pyopencl.__file__).parent / "cl")
    if "#include" not in source.replace(" ", "") and words[-2:] == ["-I", headers]:
        words = words[:-2]
    return tuple(words)

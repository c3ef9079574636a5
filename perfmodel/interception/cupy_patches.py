"""Replaces CuPy's classes of kernels and its functions that copy, while a log is open and once a program imports it.

CuPy's kernels are of compiled classes: what a program makes by their names, it gets within a stand-in that launches.
"""

from __future__ import annotations

import functools
import importlib.util
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from perfmodel.interception.built import Built
from perfmodel.interception.copies import CopyRecord, Direction
from perfmodel.interception.cuda_record import CudaLaunchRecord
from perfmodel.interception.cuda_time import CudaClock
from perfmodel.interception.given import Given, GivenBuffer, GivenBytes, GivenNull, GivenOther
from perfmodel.interception.patching import Patching, warn_unrecorded
from perfmodel.interception.stand_ins import StandIn

_NO_SOURCE = "kernel {!r} has no source, as its module was loaded from a file; give its code to have it counted"
_NUMBERS = {bool: np.bool_, int: np.int64, float: np.float64, complex: np.complex128}
"""The types that CuPy passes Python's own numbers as."""


class _Made:
    """Stands for what one of CuPy's compiled classes made, but for what is done otherwise."""

    def __init__(self, inner: Any, call: Callable[..., Any] | None = None, **others: Any) -> None:
        self.__dict__.update(_inner=inner, _call=call, **others)

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return type(self._inner)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return (self._call or self._inner)(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._inner, name, value)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self._inner.__reduce_ex__(protocol)


class _Finder:
    """Notices the import of CuPy, and finds nothing itself."""

    def __init__(self, imported: Callable[[ModuleType], None]) -> None:
        self._imported, self._looks = imported, False

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name != "cupy" or self._looks:
            return None
        self._looks = True
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self._looks = False
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def execute_and_tell(module: ModuleType) -> None:
                execute(module)
                self._imported(module)

            spec.loader.exec_module = execute_and_tell  # type: ignore[method-assign]
        return spec


class CupyPatches(Patching):
    """Patches CuPy while a log is open, as soon as it is imported."""

    def __init__(self) -> None:
        super().__init__()
        self._finder = _Finder(self._install)
        self._cupy: Any = None
        self._clock: Any = None
        self._copies = threading.local()

    def _begin(self) -> None:
        if "cupy" in sys.modules:
            self._install(sys.modules["cupy"])
        else:
            sys.meta_path.insert(0, self._finder)

    def _end(self) -> None:
        with suppress(ValueError):  # CuPy was there already
            sys.meta_path.remove(self._finder)
        super()._end()

    def _install(self, cupy: Any) -> None:
        with self._lock:
            if not self._logs:
                return
            if self._cupy is not cupy:
                self._cupy, self._clock = cupy, CudaClock(cupy)
            by_identity = {
                id(cupy.RawKernel): StandIn(cupy.RawKernel, functools.partial(self._kernel, cupy.RawKernel)),
                id(cupy.RawModule): StandIn(cupy.RawModule, functools.partial(self._module, cupy.RawModule)),
                id(cupy.array): self._making(cupy.array),
                id(cupy.asarray): self._making(cupy.asarray),
            }
            for module_name, module in list(sys.modules.items()):
                # CuPy's own modules keep what they have: they ask for the compiled classes.
                if isinstance(module, ModuleType) and not module_name.startswith(("cupy.", "cupyx", "cupy_")):
                    namespace = ModuleType.__getattribute__(module, "__dict__")  # which loads no lazy module
                    for name, value in list(namespace.items()):
                        if id(value) in by_identity:
                            self._patch(module, name, by_identity[id(value)])
            with suppress(TypeError):  # a compiled class, whose copies nothing can notice
                self._patch(cupy.ndarray, "get", self._method(cupy.ndarray.get, "from", ("self", "stream")))
                self._patch(cupy.ndarray, "set", self._method(cupy.ndarray.set, "to", ("self", "arr", "stream")))

    # --- launches

    def _kernel(self, original: Any, *args: Any, **kwargs: Any) -> Any:
        kernel = original(*args, **kwargs)
        return _Made(kernel, self._launching(kernel, kernel.name))

    def _module(self, original: Any, *args: Any, **kwargs: Any) -> Any:
        module = original(*args, **kwargs)

        @functools.wraps(module.get_function)
        def get_function(name: str) -> Any:
            kernel = module.get_function(name)
            return _Made(kernel, self._launching(kernel, name))

        return _Made(module, get_function=get_function)

    def _launching(self, kernel: Any, name: str) -> Callable[..., Any]:
        """Returns what launches a kernel and records it, by the name that the program calls it by."""
        source = kernel.code
        problem = "" if source else _NO_SOURCE.format(name)
        options = self._options(source, kernel.options)

        @functools.cache  # launches of one kernel without source are known by its being one object
        def built(parameters: int) -> Built:
            return Built(name=name, source=source, options=options, parameters=parameters, problem=problem)

        @functools.wraps(kernel)
        def launch(*args: Any, **kwargs: Any) -> Any:
            logs = tuple(dict.fromkeys(self._logs))
            if not logs:
                return kernel(*args, **kwargs)
            record = start = None
            call = dict(zip(("grid", "block", "args"), args, strict=False)) | kwargs
            stream = call.get("stream")
            try:
                record = self._record(built(len(call["args"])), call)
                _ = kernel.num_regs  # compiles and loads it, which is no part of the launch's time
                start = self._clock.begun(stream)
            except Exception as error:  # most likely CuPy refuses it as well
                fault: Exception | None = error
            else:
                fault = None
            result = kernel(*args, **kwargs)
            if fault is not None or record is None:
                warn_unrecorded(name, fault)
                return result
            self._clock.ended(record, start, stream)
            for log in logs:
                log.add(record)
            return result

        return launch

    def _options(self, source: str | None, options: tuple[str, ...]) -> tuple[str, ...]:
        """Returns the compiler's options, with the folder of CuPy's own headers where they are included."""
        if not source or "cupy/" not in source:
            return tuple(options)
        return (*options, f"-I{Path(self._cupy.__file__).parent / '_core' / 'include'}")

    def _record(self, built: Built, call: Mapping[str, Any]) -> CudaLaunchRecord:
        grid, block = (tuple(map(int, call[name])) for name in ("grid", "block"))
        pairs = [self._given(argument) for argument in call["args"]]
        given, dtypes = tuple(each for each, _ in pairs), tuple(dtype for _, dtype in pairs)
        shared = int(call.get("shared_mem", 0))
        return CudaLaunchRecord(built, grid, block, given, dtypes, shared, self._clock.device_name())

    def _given(self, argument: Any) -> tuple[Given, str | None]:
        """Returns what an argument is, and numpy's name of the type of its numbers."""
        if argument is None:
            return GivenNull(), None
        if isinstance(argument, self._cupy.ndarray):
            return GivenBuffer(int(argument.data.ptr), int(argument.nbytes), 0, None), str(argument.dtype)
        if type(argument) in _NUMBERS:
            argument = _NUMBERS[type(argument)](argument)
        if isinstance(argument, np.generic | np.ndarray) and argument.size == 1 and argument.dtype.isbuiltin == 1:
            return GivenBytes(argument.tobytes()), str(argument.dtype)
        return GivenOther(type(argument).__name__), None

    # --- copies

    def _making(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """Wraps a function that makes an array, and notes the copy if what it is made of is on the host."""

        @functools.wraps(original)
        def make(*args: Any, **kwargs: Any) -> Any:
            source = args[0] if args else kwargs.get("a", kwargs.get("obj"))
            if self._is_on_device(source):
                return original(*args, **kwargs)
            return self._copied("to", None, functools.partial(original, *args, **kwargs), None)

        return make

    def _method(
        self, original: Callable[..., Any], direction: Direction, parameters: tuple[str, ...]
    ) -> Callable[..., Any]:
        @functools.wraps(original)
        def copy(*args: Any, **kwargs: Any) -> Any:
            call = dict(zip(parameters, args, strict=False)) | kwargs
            if direction == "to" and self._is_on_device(call.get("arr")):
                return original(*args, **kwargs)
            return self._copied(direction, call.get("stream"), functools.partial(original, *args, **kwargs), args[0])

        return copy

    def _is_on_device(self, source: Any) -> bool:
        first = source[0] if isinstance(source, list | tuple) and source else source
        return hasattr(first, "__cuda_array_interface__")

    def _copied(self, direction: Direction, stream: Any, copy: Callable[[], Any], array: Any) -> Any:
        """Copies, and notes it once where one such function calls another; `array` is None for the one it returns."""
        if not self._logs or getattr(self._copies, "is_inside", False):
            return copy()
        record = start = None
        with suppress(Exception):  # most likely CuPy refuses it as well
            record = CopyRecord(direction, 0, self._clock.device_name())
            start = self._clock.begun(stream)
        self._copies.is_inside = True
        try:
            result = copy()
        finally:
            self._copies.is_inside = False
        if record is not None:
            record.n_bytes = int((result if array is None else array).nbytes)
            self._clock.ended(record, start, stream)
            self._add_copy(record)
        return result


CUPY_PATCHES = CupyPatches()

"""Stands for CuPy where there is no GPU: its documented names and signatures over numpy; kernels compute nothing."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import numpy as np

from cupy._raw import RawKernel, RawModule, launched  # noqa: F401

float32, float64, int32 = np.float32, np.float64, np.int32


class ndarray:  # noqa: N801
    def __init__(self, host: Any) -> None:
        self._host = host
        self.data = SimpleNamespace(ptr=host.ctypes.data)
        self.__cuda_array_interface__ = {"version": 3}

    shape = property(lambda self: self._host.shape)
    dtype = property(lambda self: self._host.dtype)
    nbytes = property(lambda self: self._host.nbytes)
    size = property(lambda self: self._host.size)

    def get(self, stream: Any = None, order: str = "C", out: Any = None, blocking: bool = True) -> Any:
        return self._host.copy()

    def set(self, arr: Any, stream: Any = None) -> None:
        self._host[...] = arr


def array(obj: Any, dtype: Any = None, copy: bool = True) -> ndarray:
    return ndarray(np.array(obj._host if isinstance(obj, ndarray) else obj, dtype))


def asarray(a: Any, dtype: Any = None) -> ndarray:
    return a if isinstance(a, ndarray) else array(a, dtype)


def empty(shape: Any, dtype: Any = float) -> ndarray:
    return ndarray(np.zeros(shape, dtype))


zeros = empty


def asnumpy(a: Any, stream: Any = None) -> Any:
    return a.get(stream=stream) if isinstance(a, ndarray) else np.asarray(a)


class _Event:
    def __init__(self) -> None:
        self.at: float | None = None

    def record(self, stream: Any = None) -> None:
        self.at = time.perf_counter()

    def synchronize(self) -> None:
        assert self.at is not None

    @property
    def done(self) -> bool:
        return self.at is not None


def _elapsed(start: Any, end: Any) -> float:
    return float((end.at - start.at) * 1e3)


cuda = SimpleNamespace(
    Event=_Event,
    Device=lambda: SimpleNamespace(id=0),
    get_current_stream=lambda: SimpleNamespace(is_capturing=lambda: False),
    get_elapsed_time=_elapsed,
    runtime=SimpleNamespace(getDeviceProperties=lambda number: {"name": b"NVIDIA H200"}),
)

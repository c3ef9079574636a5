"""A driver of NVIDIA's that isn't there: the functions of ``cuda.bindings.driver`` over memory of the host, whose
launches run in our emulator.

`installed` puts it in place of the package; ``tests.fake_cuda:timer`` is a campaign's timer whose process does so.
"""

from __future__ import annotations

import ctypes
import math
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from enum import IntEnum
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from perfmodel.device import Device, cuda_driver
from perfmodel.measuring.isolation.child import Timer, device_timer
from perfmodel.ptx.code import code_of
from perfmodel.ptx.emulation.emulation import emulate
from perfmodel.ptx.emulation.launch import Buffer, Given, Holder, Launch

PAGE = 1 << 20
TOLD, MEMORY = 1 << 30, 1 << 22
"""The memory that the driver says a GPU has, and what is left of it."""
ATTRIBUTES = {
    "MULTIPROCESSOR_COUNT": 132,
    "CLOCK_RATE": 1980000,
    "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN": 232448,
    "MAX_THREADS_PER_BLOCK": 1024,
    "MAX_BLOCK_DIM_X": 1024,
    "MAX_BLOCK_DIM_Y": 1024,
    "MAX_BLOCK_DIM_Z": 64,
    "WARP_SIZE": 32,
    "COMPUTE_CAPABILITY_MAJOR": 9,
    "COMPUTE_CAPABILITY_MINOR": 0,
    "PCI_DOMAIN_ID": 0,
    "PCI_DEVICE_ID": 0,
}

FUNCTION = {"NUM_REGS": 24, "SHARED_SIZE_BYTES": 64, "LOCAL_SIZE_BYTES": 0}


class Status(IntEnum):
    CUDA_SUCCESS = 0
    CUDA_ERROR_INVALID_VALUE = 1
    CUDA_ERROR_OUT_OF_MEMORY = 2
    CUDA_ERROR_INVALID_PTX = 218
    CUDA_ERROR_NOT_FOUND = 500
    CUDA_ERROR_ILLEGAL_ADDRESS = 700


class Names:
    """Gives each name of an enumeration as it is."""

    def __getattr__(self, name: str) -> str:
        return name


class FakeLibrary:
    """The functions that `perfmodel.device.cuda_driver` calls, each giving a status and a value.

    Args:
        buses: the PCI buses of its GPUs, one for each.

    Attributes:
        launches: names of the kernels that ran, with their grids, blocks and shared bytes.
        allowed: dynamic shared memory that kernels were allowed.
    """

    CUdevice_attribute, CUfunction_attribute, CUjit_option = Names(), Names(), Names()

    def __init__(self, buses: tuple[int, ...] = (7,)) -> None:
        self._buses = buses
        self._memory: dict[int, np.ndarray] = {}
        self._next = PAGE
        self._clock_s = 0.0
        self._events: dict[int, float] = {}
        self.launches: list[tuple[str, tuple[int, ...], tuple[int, ...], int]] = []
        self.allowed: list[int] = []

    def cuInit(self, flags: int) -> tuple[int]:  # noqa: N802
        return (Status.CUDA_SUCCESS,)

    def __getattr__(self, name: str) -> Any:
        plain: dict[str, Any] = {
            "cuDriverGetVersion": lambda: 13000,
            "cuDeviceGetCount": lambda: len(self._buses),
            "cuDeviceGet": lambda ordinal: ordinal,
            "cuDeviceGetName": lambda length, device: b"NVIDIA H200" + b"\0" * (length - 11),
            "cuDeviceGetAttribute": self._attribute,
            "cuDeviceTotalMem": lambda device: TOLD,
            "cuDevicePrimaryCtxRetain": lambda device: f"context {device}",
            "cuCtxSetCurrent": lambda context: None,
            "cuCtxSynchronize": lambda: None,
            "cuModuleLoadDataEx": self._load,
            "cuModuleUnload": lambda module: None,
            "cuModuleGetFunction": self._function,
            "cuFuncGetAttribute": lambda which, function: FUNCTION[which.removeprefix("CU_FUNC_ATTRIBUTE_")],
            "cuFuncSetAttribute": lambda function, which, value: self.allowed.append(value),
            "cuMemAlloc": self._allocate,
            "cuMemFree": self._free,
            "cuMemcpyHtoD": lambda address, host, size: self._copy(self._at(address, size), _host(host, size)),
            "cuMemcpyDtoH": lambda host, address, size: self._copy(_host(host, size), self._at(address, size)),
            "cuMemcpyDtoD": lambda to, source, size: self._copy(self._at(to, size), self._at(source, size)),
            "cuEventCreate": self._event,
            "cuEventRecord": lambda event, stream: self._events.update({event: self._clock_s}),
            "cuEventSynchronize": lambda event: None,
            "cuEventElapsedTime": lambda start, end: 1e3 * (self._events[end] - self._events[start]),
            "cuLaunchKernel": self._launch,
        }
        if name not in plain:
            raise AttributeError(name)

        def call(*arguments: Any) -> tuple[Any, ...]:
            try:
                found = plain[name](*arguments)
            except FakeError as error:
                return (error.args[0], None)
            return (Status.CUDA_SUCCESS,) if found is None else (Status.CUDA_SUCCESS, found)

        return call

    def _event(self, flags: int) -> int:
        self._events[len(self._events)] = 0.0
        return len(self._events) - 1

    def _attribute(self, which: str, device: int) -> int:
        name = which.removeprefix("CU_DEVICE_ATTRIBUTE_")
        return self._buses[device] if name == "PCI_BUS_ID" else ATTRIBUTES[name]

    def _load(self, image: bytes, count: int, options: list[str], values: list[Any]) -> str:
        text = image.rstrip(b"\0").decode()
        if not text.lstrip().startswith((".version", "//")):
            values[options.index("CU_JIT_ERROR_LOG_BUFFER")][:20] = b"ptxas fatal, line 1;"
            raise FakeError(Status.CUDA_ERROR_INVALID_PTX)
        return text

    def _function(self, module: str, name: bytes) -> tuple[str, str]:
        if f" {name.decode()}(" not in module:
            raise FakeError(Status.CUDA_ERROR_NOT_FOUND)
        return module, name.decode()

    def _allocate(self, size: int) -> int:
        if sum(array.nbytes for array in self._memory.values()) + size > MEMORY:
            raise FakeError(Status.CUDA_ERROR_OUT_OF_MEMORY)
        address, self._next = self._next, self._next + (size // PAGE + 1) * PAGE
        self._memory[address] = np.zeros(size, np.uint8)
        return address

    def _free(self, address: int) -> None:
        del self._memory[address]

    def _at(self, address: int, size: int) -> np.ndarray:
        start = max(each for each in self._memory if each <= address)
        return self._memory[start][address - start : address - start + size]

    def _copy(self, to: np.ndarray, source: np.ndarray) -> None:
        to[:] = source

    def _launch(self, function: tuple[str, str], *given: Any) -> None:
        text, name = function
        grid, block, (shared, _, places, _) = given[:3], given[3:6], given[6:]
        if math.prod(block) > ATTRIBUTES["MAX_THREADS_PER_BLOCK"]:
            raise FakeError(Status.CUDA_ERROR_INVALID_VALUE)
        self.launches.append((name, grid, block, shared))
        if name == "perfmodel_delay":
            self._clock_s += 1e-4
            return
        if "wrong_address" in name:
            raise FakeError(Status.CUDA_ERROR_ILLEGAL_ADDRESS)
        code = code_of(text, name)
        values = [
            ctypes.string_at(ctypes.c_void_p.from_address(places + 8 * place).value or 0, parameter.n_bytes)
            for place, parameter in enumerate(code.kernel.parameters)
        ]
        addresses: dict[str, int] = {}
        arguments: list[Given] = []
        for parameter, value in zip(code.kernel.parameters, values, strict=True):
            buffers = {}
            for offset in range(0, len(value) - 7, 8):
                address = int.from_bytes(value[offset : offset + 8], "little")
                if address in self._memory:
                    buffers[offset] = Buffer(
                        f"{parameter.name}+{offset}", len(self._memory[address]), self._memory[address]
                    )
                    addresses[buffers[offset].name] = address
            is_pointer = bool(buffers) and not parameter.is_array
            arguments.append(buffers[0] if is_pointer else Holder(value, buffers) if buffers else value)
        if name != "perfmodel_reference":
            emulation = emulate(code, Launch(grid, block, tuple(arguments), shared), "all")
            for array, address in addresses.items():
                self._memory[address][:] = emulation.array(array)
        threads = math.prod(grid) * math.prod(block)
        self._clock_s += 1e-6 + (1e-9 * threads if name != "perfmodel_reference" else 3e-3)


class FakeError(Exception):
    pass


def _host(address: int, size: int) -> np.ndarray:
    return np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address))


@contextmanager
def installed(library: FakeLibrary | None) -> Iterator[FakeLibrary | None]:
    """Puts a library in the place of cuda-bindings and of the driver; None for a machine that has neither."""
    package, module = ModuleType("cuda"), ModuleType("cuda.bindings")
    module.driver = library  # type: ignore[attr-defined]
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "cuda", package)
        patch.setitem(sys.modules, "cuda.bindings", module)
        patch.setattr(cuda_driver, "is_installed", lambda: library is not None)
        patch.setattr(cuda_driver, "_VERSION", SimpleNamespace(read_text=lambda **_: "NVRM version: x  580.159.04  z"))
        cuda_driver.cuda_driver.cache_clear()
        try:
            yield library
        finally:
            cuda_driver.cuda_driver.cache_clear()


def timer(device: Device) -> Timer:
    """Returns a timer of launches on a fake device, for a measuring process."""
    _kept.enter_context(installed(FakeLibrary()))
    return device_timer(device)


_kept = ExitStack()

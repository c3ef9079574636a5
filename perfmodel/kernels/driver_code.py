"""Has a processor's driver build kernels, and takes their machine code; results are kept on disk."""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from perfmodel.basics.disk_cache import DiskCache
from perfmodel.basics.errors import DeviceError
from perfmodel.basics.version import VERSION
from perfmodel.device.device import Device, find_device
from perfmodel.kernels.driver_builds import built
from perfmodel.x86.object_code import Binaries

LINES = "-gline-tables-only"
"""An option with which Intel's compiler tells which line each instruction comes from, in code that is another one: it
keeps ids of work-items for debuggers besides."""
TARGET = "CL_CONFIG_CPU_TARGET_ARCH"
"""The environment variable by which Intel's compiler makes code for another processor than this machine's."""
_VECTORIZED = re.compile(r'Kernel "(?P<name>\w+)" was successfully vectorized \((?P<lanes>\d+)\)')
BUILT = DiskCache("driver-code", most=4096, is_packed=True)


@dataclass(frozen=True)
class DriverCode:
    """Holds the machine code that a driver makes of a source.

    Attributes:
        binaries: in the driver's format, see `perfmodel.x86.object_code`.
        lanes: work-items of a vector, by the name of each kernel that has become one over vectors.
    """

    binaries: Binaries
    lanes: dict[str, int]


@lru_cache(maxsize=1)
def intel_processor() -> Device | None:
    """Returns this machine's processor as Intel's driver has it, whose binaries can be read; None if there is none."""
    try:
        device = find_device("cpu")
    except DeviceError:
        return None
    return device if "Intel" in device.platform else None


def driver_code(source: str, name: str, options: tuple[str, ...]) -> DriverCode | None:
    """Returns the machine code of a source on this machine's processor, or on the one that `TARGET` names; None where
    no driver is here that tells it, or it does not compile."""
    return _driver_code(source, name, options, os.environ.get(TARGET, ""))


@lru_cache(maxsize=64)
def _driver_code(source: str, name: str, options: tuple[str, ...], target: str) -> DriverCode | None:
    device = intel_processor()
    if device is None:
        return None
    key = [VERSION, device.key, device.driver, target, source, name, options]
    return BUILT.kept(key, lambda: _built(device, source, name, options), _read, _plain)


def _built(device: Device, source: str, name: str, options: Sequence[str]) -> DriverCode | None:
    made = built(device.key, source, name, [options, (*options, LINES)])
    if made is None:
        return None
    executed, lined = made
    lanes = {each["name"]: int(each["lanes"]) for each in _VECTORIZED.finditer(executed.log)}
    return DriverCode(Binaries(executed.binary, lined.binary), lanes)


def _plain(made: DriverCode | None) -> Any:
    if made is None:
        return None
    return {"binaries": [base64.b64encode(each).decode() for each in made.binaries], "lanes": made.lanes}


def _read(kept: Any) -> DriverCode | None:
    if kept is None:
        return None
    return DriverCode(Binaries(*map(base64.b64decode, kept["binaries"])), dict(kept["lanes"]))

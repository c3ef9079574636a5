"""Makes of a recorded launch a kernel that can be counted, emulated and predicted."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from perfmodel.basics.errors import KernelError
from perfmodel.interception.arguments import WRITTEN, InterceptionWarning, LaunchArgument
from perfmodel.interception.built import Built
from perfmodel.interception.given import Given
from perfmodel.kernels.kernel import Kernel
from perfmodel.modelling.calibration import Calibration
from perfmodel.opencl_c import lowered_kernel
from perfmodel.opencl_c.types import Pointer, Type, Void

if TYPE_CHECKING:
    from perfmodel.opencl_c.emulation import Emulation


class Recorded(Protocol):
    """Tells what has to be known of a launch; `perfmodel.interception.LaunchRecord` does."""

    name: str
    built: Built
    given: tuple[Given, ...]
    build_options: tuple[str, ...]
    global_size: tuple[int, ...]
    global_offset: tuple[int, ...]

    @property
    def group_size(self) -> tuple[int, ...]: ...

    @property
    def arguments(self) -> tuple[LaunchArgument, ...]: ...


def kernel_of(record: Recorded, statistics: Mapping[str, float]) -> Kernel:
    """Makes the kernel of a launch; see `LaunchRecord.kernel_with`."""
    extents: dict[str, int | str] = {}
    scalars: dict[str, float] = {}
    for argument, type_ in _declared(record):
        if isinstance(type_, Pointer):
            n_bytes = _n_bytes(record, argument)
            extents[argument.name] = n_bytes if type_.space == "local" else n_bytes // _size(type_)
        elif isinstance(argument.value, np.generic):
            scalars[argument.name] = argument.value.item()
    kernel = Kernel.from_opencl(
        record.built.source or "",
        record.name,
        record.global_size,
        record.group_size,
        extents,
        record.build_options,
        statistics=statistics,
    )
    return Kernel(kernel.program, {}, None, **scalars)


def emulation_of(record: Recorded, options: Mapping[str, Any]) -> Emulation:
    """Emulates a recorded launch; see `LaunchRecord.emulate`."""
    from perfmodel.opencl_c.emulation import LocalBytes, Zeros, emulate  # slow to import

    declared = _declared(record)
    lowered = lowered_kernel(record.built.source or "", record.name, record.build_options)
    loaded = {access.variable for access in lowered.accesses if access.direction != "store"}
    arrays: dict[int, Any] = {}
    arguments: dict[str, Any] = {}
    zeros = []
    for (argument, type_), given in zip(declared, record.given, strict=True):
        if not isinstance(type_, Pointer):
            arguments[argument.name] = argument.value
        elif type_.space == "local":
            arguments[argument.name] = LocalBytes(_n_bytes(record, argument))
        else:
            n_bytes = _n_bytes(record, argument)
            contents = argument.contents
            if contents is not None:
                whole = n_bytes // _size(type_) * _size(type_)
                # An array that is given twice is one memory, which emulation knows by its being one object.
                made = arrays.setdefault(given.address, contents[: whole // contents.itemsize])  # type: ignore[union-attr]
            else:
                made = Zeros(n_bytes // _size(type_))
                if loaded & {argument.name, None} and argument.problem != WRITTEN and n_bytes:
                    zeros.append(argument)
            arguments[argument.name] = made
    if zeros:
        reasons = "; ".join(f"{argument.name!r}: {argument.problem}" for argument in zeros)
        warnings.warn(
            f"kernel {record.name!r} is emulated on zeros where its arrays' contents are not kept ({reasons}); "
            "intercept with contents=True",
            InterceptionWarning,
            stacklevel=3,
        )
    given_options = {"global_offset": record.global_offset or (0, 0, 0), **options}
    return emulate(lowered, record.global_size, record.group_size, arguments, **given_options)


def named(calibrations: Iterable[Calibration] | Mapping[str, Calibration]) -> list[tuple[str, Calibration]]:
    """Returns calibrations by the names of their devices, or by the names that they are given by."""
    if isinstance(calibrations, Mapping):
        return list(calibrations.items())
    listed = list(calibrations)
    devices = [str(each.device.get("name", "no device")) for each in listed]
    names = [
        name if devices.count(name) == 1 else f"{name} #{devices[: place + 1].count(name)}"
        for place, name in enumerate(devices)
    ]
    return list(zip(names, listed, strict=True))


def _declared(record: Recorded) -> list[tuple[LaunchArgument, Type]]:
    """Returns the arguments with their types.

    Raises:
        SourceError, KernelError: the source, or one of them, is not known.
    """
    found = [
        (argument, parameter.type)
        for argument, parameter in zip(record.arguments, record.built.function.parameters, strict=True)
    ]
    for argument, type_ in found:
        fits = argument.kind != "scalar" if isinstance(type_, Pointer) else argument.kind == "scalar"
        if argument.kind == "unknown" or not fits:
            reason = argument.problem or argument.kind
            raise KernelError(
                f"argument {argument.name!r} of kernel {record.name!r} is not known ({reason} for a {type_}); set all "
                "arguments inside the `with` block, as arrays and numbers"
            )
    return found


def _n_bytes(record: Recorded, argument: LaunchArgument) -> int:
    if argument.n_bytes is None:
        raise KernelError(
            f"argument {argument.name!r} of kernel {record.name!r} is shared virtual memory of a size that is not "
            "known; allocate it by pyopencl"
        )
    return argument.n_bytes


def _size(type_: Pointer) -> int:
    return 1 if isinstance(type_.target, Void) else max(type_.target.size, 1)

"""One launch: what was launched, on what, and how long it took."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from functools import cached_property
from math import gcd
from typing import TYPE_CHECKING, Any

import numpy as np

from perfmodel.basics.errors import KernelError, PerfmodelError
from perfmodel.interception.arguments import WRITTEN, InterceptionWarning, LaunchArgument, argument_of
from perfmodel.interception.built import Built
from perfmodel.interception.contents import Contents
from perfmodel.interception.given import Given, GivenBuffer
from perfmodel.interception.queued import Queued
from perfmodel.kernels.kernel import Kernel
from perfmodel.modelling.calibration import Calibration
from perfmodel.opencl_c import lowered_kernel
from perfmodel.opencl_c.types import Pointer, Type, Void

if TYPE_CHECKING:
    from perfmodel.opencl_c.emulation import Emulation

GROUP = 256


class LaunchRecord(Queued):
    """A launch that a program made.

    Attributes:
        name: the kernel's.
        source: None where there is none, see `problem`.
        local_size: None where the driver chose; see `group_size`.
        global_offset: empty for none.
        problem: why the kernel cannot be read, empty if it can.
    """

    def __init__(
        self,
        built: Built,
        global_size: tuple[int, ...],
        local_size: tuple[int, ...] | None,
        global_offset: tuple[int, ...],
        given: tuple[Given, ...],
        device: str,
    ) -> None:
        super().__init__(device)
        self.built, self.given = built, given
        self.global_size, self.local_size, self.global_offset = global_size, local_size, global_offset
        self.name, self.source, self.options = built.name, built.source, built.options
        self.contents: dict[int, Contents | str] = {}

    @cached_property
    def key(self) -> tuple[object, ...]:
        """A value that is equal for launches of the same kernel on the same device with the same sizes and values."""
        values = tuple(each.n_bytes if isinstance(each, GivenBuffer) else each for each in self.given)
        what = (self.source, self.options) if self.source is not None else id(self.built)
        return (self.name, what, self.global_size, self.local_size, self.global_offset, values, self.device)

    @cached_property
    def problem(self) -> str:
        try:
            _ = self.built.function
        except PerfmodelError as error:
            return str(error)
        return ""

    @cached_property
    def arguments(self) -> tuple[LaunchArgument, ...]:
        """The arguments in the kernel's order."""
        declared: list[tuple[str, Type | None]] = [(f"#{position}", None) for position in range(len(self.given))]
        if not self.problem:
            declared = [(parameter.name, parameter.type) for parameter in self.built.function.parameters]
        pairs = zip(declared, self.given, strict=True)
        return tuple(argument_of(name, type_, given, self.contents) for (name, type_), given in pairs)

    @property
    def n_bytes(self) -> int:
        """The bytes of all arrays that the launch was given, each once."""
        return sum({each.address: each.n_bytes for each in self.given if isinstance(each, GivenBuffer)}.values())

    @cached_property
    def group_size(self) -> tuple[int, ...]:
        """The local size; where the driver chose it, what the source demands, or up to 256 work-items of axis 0."""
        if self.local_size is not None:
            return self.local_size
        demanded = None if self.problem else self.built.function.work_group
        if demanded is not None:
            return demanded[: len(self.global_size)]
        return (gcd(GROUP, self.global_size[0]), *(1 for _ in self.global_size[1:]))

    @property
    def notes(self) -> tuple[str, ...]:
        """The assumptions of counting, emulation and prediction about this launch, as sentences."""
        notes = [self.built.note] if self.built.note else []
        if self.local_size is None:
            notes.append(f"the driver chose the local size; {self.group_size} is taken")
        if any(self.global_offset):
            notes.append(f"the global offset {self.global_offset} is left out of counts and predictions")
        arrays = [each for each in self.arguments if each.kind in ("array", "svm") and each.contents is None]
        notes += [f"the contents of {each.name!r} are not kept: {each.problem}" for each in arrays]
        return tuple(notes)

    # --- what follows from it

    @cached_property
    def kernel(self) -> Kernel:
        """Returns the kernel at this launch's sizes, to be counted, measured and predicted.

        Raises:
            SourceError, KernelError: for a source or arguments that perfmodel does not support.
        """
        return self.kernel_with({})

    def kernel_with(self, statistics: Mapping[str, float]) -> Kernel:
        """Returns the kernel with what its data decide: iterations of loops and probabilities of branches, as `Kernel`
        takes them.

        Raises:
            SourceError, KernelError: as for `kernel`.
        """
        extents: dict[str, int | str] = {}
        scalars: dict[str, Any] = {}
        for argument, type_ in self._declared():
            if isinstance(type_, Pointer):
                n_bytes = _n_bytes(argument, self.name)
                extents[argument.name] = n_bytes if type_.space == "local" else n_bytes // _size(type_)
            elif isinstance(argument.value, np.void | np.ndarray):
                scalars[argument.name] = argument.value
            elif isinstance(argument.value, np.generic):
                scalars[argument.name] = argument.value.item()
        kernel = Kernel.from_opencl(
            self.source or "",
            self.name,
            self.global_size,
            self.group_size,
            extents,
            self.options,
            statistics=statistics,
        )
        kernel = Kernel(kernel.program, {}, None, **scalars)
        kept = {
            argument.name: argument.contents
            for argument, type_ in self._declared()
            if isinstance(type_, Pointer) and argument.contents is not None
        }
        return kernel.as_countable(kept) if kept and not statistics else kernel

    def emulate(self, **options: Any) -> Emulation:
        """Runs work-groups of this launch in numpy, on the contents that were kept, zeros where there are none.

        Args:
            options: as for `perfmodel.opencl_c.emulation.emulate`: ``groups="all"`` and others.

        Raises:
            SourceError, KernelError, EmulationError: for what cannot be emulated.
        """
        from perfmodel.opencl_c.emulation import LocalBytes, Zeros, emulate  # slow to import

        declared = self._declared()
        lowered = lowered_kernel(self.source or "", self.name, self.options)
        loaded = {access.variable for access in lowered.accesses if access.direction != "store"}
        arrays: dict[int, Any] = {}
        arguments: dict[str, Any] = {}
        zeros = []
        for (argument, type_), given in zip(declared, self.given, strict=True):
            if not isinstance(type_, Pointer):
                arguments[argument.name] = argument.value
            elif type_.space == "local":
                arguments[argument.name] = LocalBytes(_n_bytes(argument, self.name))
            else:
                n_bytes = _n_bytes(argument, self.name)
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
                f"kernel {self.name!r} is emulated on zeros where its arrays' contents are not kept ({reasons}); "
                "intercept with contents=True",
                InterceptionWarning,
                stacklevel=2,
            )
        given_options = {"global_offset": self.global_offset or (0, 0, 0), **options}
        return emulate(lowered, self.global_size, self.group_size, arguments, **given_options)

    def predict(self, calibration: Calibration, statistics: Mapping[str, float] | None = None) -> float:
        """Returns predicted seconds; `statistics` as for `kernel_with`, errors as for it and for
        `Calibration.predict`."""
        return float(calibration.predict(self.kernel_with(statistics) if statistics else self.kernel))

    def choose(self, calibrations: Iterable[Calibration] | Mapping[str, Calibration]) -> list[tuple[str, float]]:
        """Predicts the seconds of this launch on each of several devices, the fastest first.

        Args:
            calibrations: of the devices to choose from; named by their devices if not by a mapping.
        """
        return sorted(((name, self.predict(each)) for name, each in named(calibrations)), key=lambda pair: pair[1])

    def _declared(self) -> list[tuple[LaunchArgument, Type]]:
        """Returns the arguments with their types.

        Raises:
            SourceError, KernelError: the source, or one of them, is not known.
        """
        found = [
            (argument, parameter.type)
            for argument, parameter in zip(self.arguments, self.built.function.parameters, strict=True)
        ]
        for argument, type_ in found:
            fits = argument.kind != "scalar" if isinstance(type_, Pointer) else argument.kind == "scalar"
            if argument.kind == "unknown" or not fits:
                reason = argument.problem or argument.kind
                raise KernelError(
                    f"argument {argument.name!r} of kernel {self.name!r} is not known ({reason} for a {type_}); set "
                    "all arguments inside the `with` block, as arrays and numbers"
                )
        return found

    def __repr__(self) -> str:
        return f"LaunchRecord({self.name} {self.global_size} in groups of {self.local_size or 'any size'})"


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


def _n_bytes(argument: LaunchArgument, kernel: str) -> int:
    if argument.n_bytes is None:
        raise KernelError(
            f"argument {argument.name!r} of kernel {kernel!r} is shared virtual memory of a size that is not "
            "known; allocate it by pyopencl"
        )
    return argument.n_bytes


def _size(type_: Pointer) -> int:
    return 1 if isinstance(type_.target, Void) else max(type_.target.size, 1)

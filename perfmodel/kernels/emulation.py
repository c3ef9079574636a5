"""Emulates some work-groups of a kernel, and tells what they do and what that says of the whole launch."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from perfmodel.basics.errors import KernelError
from perfmodel.counting.resampling import SAMPLES
from perfmodel.device.buffers import random_values
from perfmodel.kernels.arguments import Array, Image, LocalArray, Sampler, Struct, check_known
from perfmodel.kernels.arguments import Scalar as Number
from perfmodel.kernels.array_contents import UNSAID, ArrayContents
from perfmodel.kernels.bound_kernel import BoundKernel
from perfmodel.kernels.emulation_profile import EmulationProfile, frame
from perfmodel.kernels.launch import PTX
from perfmodel.opencl_c import lowered as low
from perfmodel.opencl_c import lowered_kernel, walks
from perfmodel.opencl_c.emulation import Emulation, Finding, LocalBytes, Machine, Random, Zeros
from perfmodel.opencl_c.emulation import Image as Pixels
from perfmodel.opencl_c.emulation import emulate as emulate_lowered
from perfmodel.opencl_c.operations import KernelOperations
from perfmodel.opencl_c.types import Pointer, Scalar, Vector, Void

if TYPE_CHECKING:
    import pandas as pd


def emulate(
    kernel: BoundKernel,
    arrays: Mapping[str, Any] | None = None,
    *,
    groups: str | Sequence[tuple[int, ...] | int] = "first",
    machine: Machine | None = None,
    checks: bool = True,
    extrapolate: bool = False,
    steps: int | None = None,
    work: float = math.inf,
    seed: int = 0,
    samples: int = SAMPLES,
) -> Profile:
    """Runs some work-groups of a kernel in numpy, on any machine, and records what they do (Panwar et al., IV-C).

    Its cost does not depend on the grid, and arrays cost only what is touched of them. A Loopy program is emulated by
    the OpenCL C that Loopy writes.

    Args:
        arrays: contents of array arguments, as numpy arrays or as words say it (`perfmodel.kernels.array_contents`); of
            those left out, random numbers as in a measurement: from 0.5 to 1.5, or whole ones from 1 to 7.
        groups: ``first``; ``sample``: one by `seed` out of each of 16 parts of the grid, or of as many as `samples`
            says; ``all``; or the ids of groups.
        machine: what is recorded depends on a device's sub-groups, transactions and banks.
        checks: whether to look for races, uninitialised local memory and divergent barriers.
        extrapolate: whether iterations of uniform loops may be counted without being run; results are unknown then.
        steps: blocks of statements that may be executed before an endless loop is assumed.
        work: statements of OpenCL C that may be executed before some iterations of long loops stand for the others;
            counts are estimates then, and results unknown.

    Raises:
        SourceError, KernelError: for what cannot be read, or arguments that don't fit.
        EmulationError: for a kernel that does not end.
    """
    kernel = BoundKernel.of(kernel)
    if not isinstance(groups, str | Sequence):
        raise KernelError(f"groups={groups!r} are no groups; give 'first', 'sample', 'all', or a list of their ids")
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise KernelError(f"seed={seed!r} begins no random numbers; give a whole number from 0")
    if arrays is not None and not isinstance(arrays, Mapping):
        raise KernelError(f"arrays={arrays!r:.60} are not by name; give a dictionary, such as {{'x': numpy.zeros(64)}}")
    launch = kernel.launch()
    if launch.language == PTX:
        from perfmodel.kernels.ptx_profile import emulate as emulate_ptx  # slow to import

        width = (machine or Machine()).subgroup_size
        found = emulate_ptx(kernel, arrays, groups, width, seed, steps, extrapolate, samples)
        return cast(Profile, found)  # which offers the same
    lowered = lowered_kernel(launch.source, launch.kernel_name, launch.options)
    given: dict[str, Any] = {}
    items = {p.name: p.type for p in lowered.parameters}
    check_known(kernel.name, arrays or {}, [argument.name for argument in launch.arrays()], "array")
    for position, argument in enumerate(launch.arguments):
        match argument:
            case Image():
                given[argument.name] = _pixels(argument, (arrays or {}).get(argument.name), seed + position)
            case Array():
                content = (arrays or {}).get(argument.name)
                if content is None or isinstance(content, ArrayContents):
                    content = _said(argument, items.get(argument.name), content or UNSAID, seed + position)
                given[argument.name] = content
            case Number():
                given[argument.name] = argument.number
            case Sampler():
                given[argument.name] = argument.flags
            case Struct():
                given[argument.name] = argument.contents
            case LocalArray():
                given[argument.name] = LocalBytes(argument.size)
    options: dict[str, Any] = {} if steps is None else {"steps": steps}
    emulation = emulate_lowered(
        lowered,
        launch.global_size,
        launch.local_size,
        given,
        groups=groups,
        machine=machine,
        checks=checks,
        extrapolate=extrapolate,
        seed=seed,
        work=work,
        samples=samples,
        **options,
    )
    return Profile(kernel, lowered, launch.global_size, launch.local_size, emulation)


def _pixels(argument: Image, content: Any, seed: int) -> Pixels:
    """Returns an image with its contents, or with random ones as in a measurement."""
    if content is None:
        content = random_values(np.random.default_rng(seed), str(argument.dtype), argument.size)
    if not isinstance(content, np.ndarray) or content.size != argument.size or content.dtype != argument.dtype:
        raise KernelError(
            f"image {argument.name!r} holds {argument.size} numbers of {argument.dtype}, of shape {argument.shape}; "
            "give an array of these"
        )
    return Pixels(content.reshape(argument.shape), argument.normalized)


def _said(argument: Array, type_: Any, said: ArrayContents, seed: int) -> NDArray[Any] | Random | Zeros:
    """Returns an array's contents as words say them; where they don't, random ones such as
    `perfmodel.device.buffers.random_values` gives to arrays that are measured."""
    if said.array is not None:
        return said.array
    own, target = np.dtype(argument.dtype), type_.target if isinstance(type_, Pointer) else None
    length = argument.size * own.itemsize // (own.itemsize if target is None else target.size)
    if said.kind == "zeros":
        return Zeros(length)
    if said.dtype is None and not isinstance(target, Scalar | Vector | Void):
        low_, high = said.bounds or (0.0, None)
        return Random(length, seed, low_, high)  # structs, by their fields
    dtype = said.dtype or own
    low_, high = said.bounds or ((0.5, 1.5) if dtype.kind == "f" else (1, 8))
    return Random(length, seed, low_, high, dtype)


class Profile(EmulationProfile):
    """Holds what the emulated groups of a launch of OpenCL C did.

    Attributes:
        emulation: the raw counts, group by group.
    """

    def __init__(
        self,
        kernel: BoundKernel,
        lowered: low.LoweredKernel,
        global_size: tuple[int, ...],
        local_size: tuple[int, ...],
        emulation: Emulation,
    ) -> None:
        self.kernel, self.lowered = kernel, lowered
        self.global_size, self.local_size, self.emulation = global_size, local_size, emulation
        self.work_groups = prod(global_size) // prod(local_size)

    @property
    def findings(self) -> tuple[Finding, ...]:
        return self.emulation.findings

    def array(self, name: str) -> NDArray[Any]:
        """Returns what an array holds after the emulated groups."""
        return self.emulation.array(name)

    @cached_property
    def operations(self) -> pd.DataFrame:
        """Returns operations by kind and type, as a DataFrame.

        ``use`` is ``values`` for what features count, ``indices`` for arithmetic of addresses, loops and conditions.
        """
        counter = KernelOperations(self.lowered)
        found: dict[tuple[str, str, str], NDArray[np.int64]] = {}
        for block in counter.blocks:
            own = counter.of(block)
            executed = self.emulation.blocks[:, block.number, 0]
            for use, operations in (("values", own.values), ("indices", own.indices)):
                for (kind, dtype), times in operations.items():
                    key = (use, kind, dtype)
                    found[key] = found.get(key, 0) + times * executed
        rows = [(*key, *_spread(counts)) for key, counts in sorted(found.items(), reverse=True)]
        return frame(["use", "kind", "dtype", *_SPREAD], rows)

    @cached_property
    def accesses(self) -> pd.DataFrame:
        """Returns a DataFrame with a row for each access of the source; ``efficiency`` is bytes asked for by bytes that
        transactions move."""
        rows = []
        for access in self.lowered.accesses:
            counts = self.emulation.accesses[:, access.number]
            mean = {name: float(counts[name].mean()) for name in counts.dtype.names or ()}
            moved = mean["transactions"] * self.emulation.machine.transaction_bytes
            rows.append(
                (
                    access.space,
                    access.direction,
                    str(access.type),
                    access.text,
                    access.place.line,
                    *_spread(counts["executions"]),
                    mean["subgroups"],
                    mean["bytes"],
                    mean["transactions"],
                    mean["bytes"] / moved if moved else float("nan"),
                    mean["bank_cycles"],
                    mean["bank_conflicts"],
                )
            )
        columns = ("subgroups", "bytes", "transactions", "efficiency", "bank_cycles", "bank_conflicts")
        return frame(["space", "direction", "type", "text", "line", *_SPREAD, *columns], rows)

    @cached_property
    def branches(self) -> pd.DataFrame:
        """Returns how often sub-groups met each branch, and how often they diverged at it, as a DataFrame."""
        rows = []
        for branch in sorted(walks.branches(self.lowered.body), key=lambda branch: branch.number):
            met, divergent = self.emulation.branches[:, branch.number].mean(axis=0)
            kind = type(branch).__name__.lower()
            rows.append((kind, branch.place.line, met, divergent, divergent / met if met else 0.0))
        return frame(["branch", "line", "subgroups", "divergent", "share"], rows)

    @cached_property
    def footprints(self) -> pd.DataFrame:
        """Returns the distinct bytes that a group touches of each array, and the blocks of a transaction's size they
        lie in, as a DataFrame."""
        rows = []
        for position, (space, name) in enumerate(self.emulation.variables):
            counts = self.emulation.footprints[:, position]
            rows.append((space, name, *(float(counts[field].mean()) for field in counts.dtype.names or ())))
        return frame(["space", "variable", *(self.emulation.footprints.dtype.names or ())], rows)

    @property
    def barriers(self) -> float:
        return float(self.emulation.barriers.sum(axis=1).mean()) if self.emulation.barriers.size else 0.0

    @property
    def is_extrapolated(self) -> bool:
        return bool(self.emulation.extrapolated)

    @property
    def emulated_groups(self) -> list[int]:
        return list(self.emulation.groups.tolist())

    def details(self) -> dict[str, Any]:
        extrapolated = [str(loop) for loop in self.emulation.extrapolated]
        return {"machine": asdict(self.emulation.machine), "extrapolated": extrapolated}

    def headings(self) -> list[str]:
        machine, emulated = self.emulation.machine, len(self.emulation.groups)
        sizes = " × ".join(map(str, self.global_size)), " × ".join(map(str, self.local_size))
        return [
            f"{self.kernel.name}: {sizes[0]} work-items in groups of {sizes[1]}, {self.work_groups} groups",
            f"{emulated} of them emulated in {self.emulation.seconds:.3g} s; counts are per group"
            + (", with their smallest and largest" if emulated > 1 else ""),
            f"sub-groups of {machine.subgroup_size}, transactions of {machine.transaction_bytes} bytes, "
            f"{machine.banks} banks of {machine.bank_bytes} bytes",
            *(f"not all iterations were run of the loop {loop}" for loop in self.emulation.extrapolated),
        ]


_SPREAD = ("count", "least", "most")


def _spread(counts: NDArray[Any]) -> tuple[float, int, int]:
    return float(counts.mean()), int(counts.min()), int(counts.max())

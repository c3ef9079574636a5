"""Emulates work-groups of a kernel, batch by batch, and says what they did."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfmodel.basics.errors import EmulationError, KernelError, nearest
from perfmodel.counting.resampling import SAMPLES
from perfmodel.device.launch_shape import check_shape
from perfmodel.opencl_c import lowered as low
from perfmodel.opencl_c.emulation.arguments import Argument, Bound, bind
from perfmodel.opencl_c.emulation.batch import Emulator
from perfmodel.opencl_c.emulation.code_generation import code_of
from perfmodel.opencl_c.emulation.extrapolation import Extrapolated, all_loops
from perfmodel.opencl_c.emulation.findings import Finding, FindingLog
from perfmodel.opencl_c.emulation.images import ImageBuffer
from perfmodel.opencl_c.emulation.lanes import Integers
from perfmodel.opencl_c.emulation.machine import Machine
from perfmodel.opencl_c.emulation.memory import Unwritten
from perfmodel.opencl_c.emulation.races import GroupRaces
from perfmodel.opencl_c.emulation.recording import ACCESS_FIELDS, Totals
from perfmodel.opencl_c.emulation.thinning import PARTS
from perfmodel.opencl_c.emulation.work_items import Size3, work_items
from perfmodel.opencl_c.types import Pointer, Scalar, Vector, element_of

STEPS = 2_000_000
_USUAL = Machine()
LANES = 16_384
"""A batch has so many work-items, unless one group has more."""
WORK_S = 6e-6
"""A statement or access of few work-items takes so long, at the nominal speed: that of one core of the machine that
perfmodel was developed on, and the same everywhere, as it decides how many groups are looked at."""
BATCH_WORK = 800
"""A batch is made ready, and its counts are taken, in as long as so many of them take."""


@dataclass
class Emulation:
    """An emulation tells what groups of a kernel did. All arrays have an axis of groups in front.

    Attributes:
        groups: their ids along the three axes.
        blocks: of each block, executions by work-items, by sub-groups (with an active work-item), by the group.
        branches: of each `If` and `Loop`, how often sub-groups met it, and how often they went both ways.
        sides: of each, who met it, for whom its condition held, and for whom not: work-items, sub-groups and groups.
        barriers: of each barrier, how often the group met it.
        accesses: of each access, by name: executions by work-items, ``subgroups``; ``bytes`` moved by work-items;
            ``transactions`` (distinct aligned blocks for each sub-group execution) of global and constant memory;
            ``bank_cycles`` of local memory, and how many of these are ``bank_conflicts``;
            ``lines``: as ``transactions``, but blocks of the machine's ``line_bytes``; and
            ``passes`` of atomics, see `perfmodel.counting.atomics`.
        footprints: of each of `variables`, by name: ``load_bytes``, ``store_bytes`` and ``any_bytes``, and
            ``…_blocks`` of a transaction's size and ``…_pages`` of `PAGE_BYTES` that they are in.
        variables: (space, name) of arguments and of objects in constant and local memory.
        findings: the kernel's mistakes.
        extrapolated: loops whose later iterations were counted without being carried out, which makes results wrong.
        parts: what estimates for such loops add to the groups' `blocks` and `sides`, by the number of their part, see
            `thinning`; none where all counts are exact.
        updated: the number of each atomic on global memory that lanes made, with their groups, by position, and
            addresses; only where some iterations may stand for others.
        steps: blocks executed in loops, over all batches.
        seconds: that it took. nominal_s: those that its work takes at a nominal speed, the same each time.
    """

    kernel: low.LoweredKernel
    machine: Machine
    local_size: Size3
    groups: Integers
    blocks: Integers
    branches: Integers
    sides: Integers
    barriers: Integers
    accesses: NDArray[Any]
    footprints: NDArray[Any]
    variables: tuple[tuple[str, str], ...]
    findings: tuple[Finding, ...]
    steps: int
    seconds: float
    nominal_s: float
    extrapolated: tuple[Extrapolated, ...] = ()
    parts: tuple[tuple[Integers, Integers], ...] = ()
    updated: tuple[tuple[int, Integers, Integers], ...] = ()
    _bound: Bound | None = field(default=None, repr=False)
    _given: Mapping[str, tuple[np.dtype[Any], tuple[int, ...]]] = field(default_factory=dict, repr=False)

    def array(self, name: str) -> NDArray[Any]:
        """Returns an argument's contents after the run.

        Raises:
            KernelError: there is no such argument in global or constant memory.
            EmulationError: iterations of loops were left out.
        """
        assert self._bound is not None
        buffers = self._bound.buffers
        if name not in buffers:
            raise KernelError(f"kernel '{self.kernel.name}' has no buffer {name!r}{nearest(name, buffers)}")
        if self.extrapolated:
            raise EmulationError(f"the contents of '{name}' are not known, as loops were extrapolated; do so without")
        buffer = buffers[name]
        buffer.fill()
        if isinstance(buffer, ImageBuffer):
            return buffer.contents()
        parameter = next(each for each in self.kernel.parameters if each.name == name)
        assert isinstance(parameter.type, Pointer)
        target = parameter.type.target
        dtype = element_of(target).numpy if isinstance(target, Scalar | Vector) else np.dtype(np.uint8)
        dtype, shape = self._given.get(name, (dtype, (-1,)))
        data = buffer.data[: buffer.size]
        # What other emulations read must stay as it is.
        return (data.copy() if isinstance(buffer, Unwritten) else data).view(dtype).reshape(shape)


def emulate(
    kernel: low.LoweredKernel,
    global_size: Sequence[int] | int,
    local_size: Sequence[int] | int,
    arguments: Mapping[str, Argument],
    *,
    groups: str | Sequence[tuple[int, ...] | int] = "first",
    machine: Machine | None = None,
    checks: bool = True,
    extrapolate: bool = False,
    steps: int = STEPS,
    work: float = math.inf,
    write_back: bool = False,
    global_offset: Sequence[int] = (0, 0, 0),
    seed: int = 0,
    samples: int = SAMPLES,
) -> Emulation:
    """Runs work-groups of a kernel.

    Args:
        arguments: by parameter: arrays (changed only if `write_back`), `Zeros`, `Random`; `LocalBytes`; numbers, arrays
            of a vector's numbers, a struct's bytes. The same array given twice is the same memory.
        groups: ``first``, ``all``, ``sample`` (one by `seed` out of each of some parts of the grid), or their ids.
        samples: so many parts of the grid.
        checks: whether races, barriers and so on are looked after; addresses are always.
        extrapolate: whether long loops may be counted from some of their iterations. Not done for ``all`` groups or
            with `write_back`, as results would be wrong.
        steps: blocks that a batch of groups may execute.
        work: statements of few work-items that may be executed before some iterations of long loops stand for others.
            Not so for ``all`` groups or with `write_back`.

    Raises:
        KernelError: sizes or arguments don't fit the kernel.
        EmulationError: the kernel took too many steps, or does what can't be emulated.
    """
    began = time.perf_counter()
    machine = machine or _USUAL
    whole, local, dimensions = _sizes(kernel, global_size, local_size)
    counts = (whole[0] // local[0], whole[1] // local[1], whole[2] // local[2])
    offset = _three(global_offset, 0, "global_offset")
    numbers = _chosen(groups, counts, seed, samples)
    bound = bind(kernel, arguments, write_back)
    code = code_of(kernel)
    findings, group_races = FindingLog(), GroupRaces(len(numbers) > 1)
    may_shorten = groups != "all" and not write_back
    record = _Record()
    at_once = max(1, LANES // prod(local))
    for start in range(0, len(numbers), at_once):
        chosen = tuple(numbers[start : start + at_once].tolist())
        items = work_items(
            (local, counts, chosen, machine.subgroup_size),
            (whole, offset, dimensions, kernel.subgroup_size or machine.subgroup_size),
        )
        emulator = Emulator.of(
            kernel=kernel,
            code=code,
            work_items=items,
            bound=bound,
            machine=machine,
            findings=findings,
            groups=group_races,
            checks=checks,
            extrapolate=extrapolate and may_shorten,
            work=work if may_shorten else math.inf,
        )
        emulator.run(steps)
        record.add(emulator, items.layout.group_ids, start)
    group_ids, blocks, branches, sides, barriers, accesses, touched = record.counts()
    return Emulation(
        kernel=kernel,
        machine=machine,
        local_size=local,
        groups=group_ids,
        blocks=blocks,
        branches=branches,
        sides=sides,
        barriers=barriers,
        accesses=np.ascontiguousarray(accesses).view(ACCESS_FIELDS)[..., 0],
        footprints=touched,
        variables=emulator.variables,
        findings=findings.all(),
        steps=record.steps,
        seconds=time.perf_counter() - began,
        nominal_s=record.work * WORK_S,
        extrapolated=all_loops(record.extrapolated),
        parts=record.estimates(),
        updated=tuple(record.updated),
        _bound=bound,
        _given={name: (array.dtype, array.shape) for name, array in arguments.items() if isinstance(array, np.ndarray)},
    )


@dataclass
class _Record:
    """Collects what batches of groups did, one batch after the other.

    Attributes:
        batches: of each batch, the groups' ids and their counts.
        steps, work: of all batches together.
        estimated: of each batch, what estimates add to its counts; None where all are exact.
    """

    batches: list[tuple[Integers, ...]] = field(default_factory=list)
    steps: int = 0
    work: float = 0.0
    extrapolated: list[Extrapolated] = field(default_factory=list)
    estimated: list[Totals | None] = field(default_factory=list)
    updated: list[tuple[int, Integers, Integers]] = field(default_factory=list)

    def add(self, emulator: Emulator, group_ids: Integers, start: int) -> None:
        """Takes in a batch that has run, whose first group is the one at position `start`."""
        self.steps += emulator.used
        self.work += emulator.work + BATCH_WORK
        if emulator.extrapolation is not None:
            self.extrapolated += emulator.extrapolation.done.values()
        self.extrapolated += emulator.thinning.done.values()
        self.estimated.append(emulator.thinning.parts)
        noted = emulator.context.updated or ()
        self.updated += [(number, groups + start, addresses) for number, groups, addresses in noted]
        self.batches.append((group_ids, *emulator.finish()))

    def counts(self) -> tuple[Integers, ...]:
        """Returns the ids of all groups, and their counts as `Emulation` has them."""
        return tuple(np.concatenate(arrays) for arrays in zip(*self.batches, strict=True))

    def estimates(self) -> tuple[tuple[Integers, Integers], ...]:
        """Returns `Emulation.parts` of all groups."""
        shape = next((each for each in self.estimated if each is not None), None)
        if shape is None:
            return ()

        def joined(name: str, number: int) -> Integers:
            own = [
                np.zeros((len(batch[0]), *getattr(shape, name).shape[2:]), np.int64)
                if each is None
                else getattr(each, name)[number]
                for each, batch in zip(self.estimated, self.batches, strict=True)
            ]
            return np.concatenate(own)

        return tuple((joined("blocks", number), joined("sides", number)) for number in range(PARTS))


def _three(sizes: Sequence[int] | int, rest: int, what: str) -> Size3:
    given = [sizes] if isinstance(sizes, int | np.integer) else list(sizes)
    if not 1 <= len(given) <= 3:
        raise KernelError(f"{what} has {len(given)} numbers; give one to three")
    x, y, z = (int(number) for number in [*given, *[rest] * (3 - len(given))])
    return x, y, z


def _sizes(
    kernel: low.LoweredKernel, global_size: Sequence[int] | int, local_size: Sequence[int] | int
) -> tuple[Size3, Size3, int]:
    whole, local = _three(global_size, 1, "global_size"), _three(local_size, 1, "local_size")
    dimensions = 1 if isinstance(global_size, int | np.integer) else len(global_size)
    _check(kernel.name, whole, local)
    if kernel.work_group is not None and local != kernel.work_group:
        raise KernelError(f"kernel '{kernel.name}' requires work-groups of {kernel.work_group}, not {local}")
    return whole, local, dimensions


_check = lru_cache(64)(check_shape)


def _chosen(groups: str | Sequence[tuple[int, ...] | int], counts: Size3, seed: int, samples: int) -> Integers:
    """Returns linear numbers of the groups to emulate."""
    total = prod(counts)
    if isinstance(groups, str):
        if groups == "first":
            return np.zeros(1, np.int64)
        if groups == "all":
            return np.arange(total)
        if groups == "sample":
            ends = np.arange(min(total, samples) + 1) * total // min(total, samples)
            return np.random.default_rng(seed).integers(ends[:-1], ends[1:])
        raise KernelError(
            f"groups={groups!r} is none of 'first', 'all' and 'sample'{nearest(groups, ('first', 'all', 'sample'))}"
        )
    numbers: list[int] = []
    for group in groups:
        if not all(
            isinstance(number, int | np.integer) for number in (group if isinstance(group, tuple) else (group,))
        ):
            raise KernelError(f"{group!r:.40} is no group's id; give whole numbers, or tuples of them")
        ids = _three(group, 0, "a group's id")
        if not all(0 <= number < count for number, count in zip(ids, counts, strict=True)):
            raise KernelError(f"there is no group {group} in a grid of {counts} groups")
        numbers.append((ids[2] * counts[1] + ids[1]) * counts[0] + ids[0])
    if not numbers:
        raise KernelError("no groups are asked for; give some, or 'first'")
    return np.array(numbers)

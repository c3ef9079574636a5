"""Makes tables of a program's counts, symbolic and at sizes, as values that JSON can hold; `count_text` shows them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import islpy as isl
import numpy as np

from perfmodel.basics.errors import CountingError, KernelError
from perfmodel.basics.json_values import plain
from perfmodel.basics.version import VERSION
from perfmodel.counting.counts import (
    SUBGROUP_SIZE,
    AccessCount,
    BranchCount,
    Executions,
    Footprint,
    KernelCounts,
)
from perfmodel.counting.isl_names import isl_list, isl_text
from perfmodel.counting.quasipolynomial import QuasiPolynomial, from_isl
from perfmodel.counting.symbolic import number
from perfmodel.kernels.kernel import Kernel
from perfmodel.kernels.opencl_program import OpenCLProgram
from perfmodel.kernels.program import EmulatesItself, Program
from perfmodel.kernels.resources import estimate

if TYPE_CHECKING:
    from perfmodel.sass.machine_code import MachineCode

DIVERGENCES = ("none", "by work-item", "by data")
"""Divergence of a branch, from the best to the worst."""

Table = dict[str, Any]
"""All that is counted of one program, at some points, each of which has all its sizes."""
Quantity = dict[str, Any]
"""A count in isl's notation (``symbolic``), and its value at each of the table's points (``at``)."""
Granular = dict[str, Quantity | None]
"""A count of executions by work-items, sub-groups and work-groups; see `perfmodel.counting.counts.Executions`."""


def count_tables(
    kernels: Sequence[Kernel], at: Sequence[Mapping[str, int]] = (), subgroup_size: int = SUBGROUP_SIZE
) -> list[Table]:
    """Returns a table for each program of the kernels, at the kernels' own sizes, or where `at` gives sizes at those.

    Raises:
        KernelError: for sizes that a kernel doesn't have, lacks or doesn't allow, and for what cannot be counted.
    """
    if subgroup_size < 1:
        raise KernelError(f"a sub-group cannot have {subgroup_size} work-items; give a positive number")
    programs: dict[tuple[Program, str], list[Kernel]] = {}
    for kernel in kernels:
        programs.setdefault((kernel.program, str(kernel.deciding)), []).append(kernel)
    tables = []
    for (program, _), siblings in programs.items():
        points = [{**kernel.sizes, **point} for point in at or ({},) for kernel in siblings]
        if not at:  # a kernel without sizes of its own is shown symbolically
            points = [point for point in points if point and len(point) == len(program.sizes)]
        for point in points:
            siblings[0].bind(point)
        distinct = [dict(items) for items in dict.fromkeys(tuple(point.items()) for point in points)]
        try:
            tables.append(
                _Tabulator(program.sizes, distinct).table(siblings[0], siblings[0].counts_at({}, subgroup_size))
            )
        except CountingError:
            if not distinct and program.sizes:
                raise
            for point in distinct or ({},):  # there may be counts for numbers
                counts = siblings[0].at(**point).counts_for(subgroup_size)
                tables.append(_Tabulator(program.sizes, [point]).table(siblings[0], counts))
    return tables


def as_json(tables: Sequence[Table]) -> dict[str, Any]:
    """Returns perfmodel's version and the tables, as values that JSON can hold."""
    return {"perfmodel": VERSION, "kernels": [plain(table) for table in tables]}


class _Tabulator:
    """Evaluates counts at points."""

    def __init__(self, sizes: Sequence[str], points: Sequence[Mapping[str, int]]) -> None:
        self.sizes = tuple(sizes)
        self.points = tuple({name: point[name] for name in self.sizes} for point in points)
        self.arrays = {name: np.array([point[name] for point in self.points], np.int64) for name in self.sizes}

    def table(self, kernel: Kernel, counts: KernelCounts) -> Table:
        return {
            "kernel": kernel.name,
            "variant": kernel.variant,
            "sizes": self.sizes,
            "points": self.points,
            "subgroup_size": counts.subgroup_size or SUBGROUP_SIZE,
            "exact": counts.exact,
            "sampled": counts.sampled,  # whether some work-groups that were emulated stand for all
            "operations": self.operations(counts),
            "chains": [
                {
                    "kind": kind,
                    "dtype": dtype,
                    "loops": chain.loops,
                    "count": self.quantity(self.total([(times, chain.iterations.workitem)])),
                }
                for chain in counts.chains
                for kind, dtype, times in chain.operations
            ],
            "accesses": [self.access(access) for access in sorted(counts.accesses, key=lambda access: access.space)],
            "footprints": [self.footprint(footprint) for footprint in counts.footprints],
            "branches": self.branches(counts),
            "resources": self.resources(kernel),
            "barriers": self.granular([(1, counts.barriers)]),
            "launches": self.quantity(counts.launches),
            "work_groups": self.quantity(counts.work_groups),
            "work_items": self.quantity(counts.work_items),
        }

    def operations(self, counts: KernelCounts) -> list[Table]:
        """Returns a row for all operations of one kind and type."""
        grouped: dict[tuple[str, str], list[tuple[int, Executions]]] = {}
        for operation in counts.operations:
            times = (operation.per_execution, operation.executions)
            grouped.setdefault((operation.kind, operation.dtype), []).append(times)
        return [
            {"kind": kind, "dtype": dtype, "count": self.granular(times)}
            for (kind, dtype), times in sorted(grouped.items())
        ]

    def access(self, access: AccessCount) -> Table:
        """Returns a row for one access, with its access-to-footprint ratio at each point, None without footprint."""
        count = self.quantity(access.executions.workitem)
        footprint = self.known(access.footprint)
        strides = {"local": access.local_strides, "group": access.group_strides}
        return {
            "text": access.text,
            "tags": sorted(access.tags),
            "space": access.space,
            "variable": access.variable,
            "direction": access.direction,
            "dtype": access.dtype,
            "bits": access.bits,
            **{f"{by}_strides": {a: self.known(s) for a, s in sorted(own.items())} for by, own in strides.items()},
            "loop_strides": {loop: self.known(stride) for loop, stride in access.loop_strides.items()},
            "count": self.granular([(1, access.executions)]),
            "footprint": footprint,
            "afr": None if footprint is None else list(map(_ratio, count["at"], footprint["at"])),
            "pattern": access.pattern,
        }

    def footprint(self, footprint: Footprint) -> Table:
        """Returns the bytes of an array that its accesses of one direction touch, and those with gaps filled."""
        size = np.dtype(footprint.dtype).itemsize
        touched, filled = (
            None if elements is None else self.quantity(self.total([(size, elements)]))
            for elements in (footprint.elements, footprint.filled)
        )
        names = {name: getattr(footprint, name) for name in ("space", "variable", "dtype", "direction")}
        return {**names, "bytes": touched, "filled_bytes": filled}

    def branches(self, counts: KernelCounts) -> list[Table]:
        """Returns one row for each branch, also for those that were counted iteration by iteration."""
        grouped: dict[tuple[str, str], list[BranchCount]] = {}
        for branch in counts.branches:
            grouped.setdefault((branch.kind, branch.text), []).append(branch)
        rows = []
        for (kind, text), same in grouped.items():
            taken = [(1, branch.taken) for branch in same if branch.taken is not None]
            divergent = [(1, branch.divergent) for branch in same if branch.divergent is not None]
            rows.append(
                {
                    "kind": kind,
                    "text": text,
                    "divergence": max((branch.divergence for branch in same), key=DIVERGENCES.index),
                    "met": self.granular([(1, branch.met) for branch in same]),
                    "taken": self.granular(taken) if len(taken) == len(same) else None,
                    "divergent": self.quantity(self.total(divergent)) if len(divergent) == len(same) else None,
                }
            )
        return rows

    def resources(self, kernel: Kernel) -> Table | None:
        """Returns what a kernel needs, see `perfmodel.kernels.resources`; None where nothing says so.

        ``source`` is ``estimate``, or ``assembler`` for machine code, of which alone the last three are known.
        """
        if isinstance(kernel.program, EmulatesItself):
            return self.of_ptx(kernel.program)
        if not isinstance(kernel.program, OpenCLProgram):
            return None
        found = estimate(kernel.program)
        return self.needed(found.registers, found.private_bytes, found.local_bytes.quasipolynomial(), "estimate", None)

    def of_ptx(self, program: Any) -> Table:
        from perfmodel.kernels.ptx_resources import ptx_resources  # slow to import, and only for PTX
        from perfmodel.sass.machine_code import machine_code_here

        found, code = ptx_resources(program, 0, None), machine_code_here(program.text, program.entry)
        shared = program.dynamic_shared.polynomial() + number(found.local_bytes)
        return self.needed(found.registers or 0, found.private_bytes, shared.quasipolynomial(), found.source, code)

    def needed(
        self,
        registers: int,
        private_bytes: int,
        local_bytes: QuasiPolynomial | None,
        source: str,
        code: MachineCode | None,
    ) -> Table:
        return {
            "registers": registers,
            "private_bytes": private_bytes,
            "local_bytes": self.known(local_bytes),
            "source": source,
            "spilled_bytes": code and code.spill_store_bytes + code.spill_load_bytes,
            "code_bytes": code and code.code_bytes,
            "loads_in_flight": code and code.loads_in_flight,
        }

    def granular(self, times: Sequence[tuple[int, Executions]]) -> Granular:
        by_subgroup = [(weight, e.subgroup) for weight, e in times if e.subgroup is not None]
        return {
            "workitem": self.quantity(self.total([(weight, e.workitem) for weight, e in times])),
            "subgroup": self.quantity(self.total(by_subgroup)) if len(by_subgroup) == len(times) else None,
            "workgroup": self.quantity(self.total([(weight, e.workgroup) for weight, e in times])),
        }

    def total(self, terms: Sequence[tuple[int, QuasiPolynomial]]) -> QuasiPolynomial:
        if [weight for weight, _ in terms] == [1]:
            return terms[0][1]

        names = isl_list(self.sizes)
        texts = [(weight, isl_text(str(count), self.sizes)) for weight, count in terms]
        first, *others = (isl.PwQPolynomial(f"[{names}] -> {{ {text} }}") * weight for weight, text in texts)
        return from_isl(sum(others, start=first))

    def known(self, count: QuasiPolynomial | None) -> Quantity | None:
        return None if count is None else self.quantity(count)

    def quantity(self, count: QuasiPolynomial) -> Quantity:
        values = np.broadcast_to(count(self.arrays), len(self.points))
        return {"symbolic": str(count), "at": list(map(_plain, values.tolist()))}


def _plain(value: float) -> float:
    return int(value) if value == int(value) else value


def _ratio(count: float, footprint: float) -> float:
    """Returns the access-to-footprint ratio, 0 where nothing is accessed."""
    return _plain(count / footprint) if footprint else 0

"""Makes tables of a program's counts: symbolic, and at sizes; as text for people, as JSON for programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import islpy as isl
import numpy as np

from perfmodel.basics.errors import CountingError, KernelError
from perfmodel.basics.json_values import plain
from perfmodel.basics.tables import grid, wrapped
from perfmodel.basics.version import VERSION
from perfmodel.counting.counts import (
    SUBGROUP_SIZE,
    AccessCount,
    BranchCount,
    Executions,
    Footprint,
    KernelCounts,
)
from perfmodel.counting.quasipolynomial import QuasiPolynomial, from_isl
from perfmodel.counting.symbolic import number
from perfmodel.kernels.kernel import Kernel
from perfmodel.kernels.opencl_program import OpenCLProgram
from perfmodel.kernels.program import EmulatesItself, Program
from perfmodel.kernels.resources import estimate

Weighted = tuple[int, QuasiPolynomial]
DIVERGENCES = ("none", "by work-item", "by data")
"""Divergence of a branch, from the best to the worst."""
GRANULARITIES = {"workitem": "work-item", "subgroup": "sub-group", "workgroup": "work-group"}


@dataclass(frozen=True)
class CountedQuantity:
    """A count in isl's notation, and its value at each of the table's points."""

    symbolic: str
    at: tuple[float, ...]


Strides = Mapping[Any, CountedQuantity | None]
"""Strides by axis, or by the name of a loop; None where the index is not affine."""


@dataclass(frozen=True)
class Granular:
    """A count of executions in four ways; see `perfmodel.counting.counts.Executions`."""

    workitem: CountedQuantity
    subgroup: CountedQuantity | None
    workgroup: CountedQuantity


@dataclass(frozen=True)
class OperationRow:
    """All operations of one kind and type."""

    kind: str
    dtype: str
    count: Granular


@dataclass(frozen=True)
class ChainRow:
    """Operations of one kind and type that one instruction does, iteration by iteration, to its own result."""

    kind: str
    dtype: str
    loops: tuple[str, ...]
    count: CountedQuantity


@dataclass(frozen=True)
class AccessRow:
    """One access; `afr` is its access-to-footprint ratio at each point, None where there is no footprint."""

    text: str
    tags: tuple[str, ...]
    space: str
    variable: str
    direction: str
    dtype: str
    bits: int
    local_strides: Strides
    group_strides: Strides
    loop_strides: Strides
    count: Granular
    footprint: CountedQuantity | None
    afr: tuple[float, ...] | None
    pattern: str


@dataclass(frozen=True)
class BranchRow:
    """A branch, with None for what is not known; see `perfmodel.counting.counts.BranchCount`."""

    kind: str
    text: str
    divergence: str
    met: Granular
    taken: Granular | None
    divergent: CountedQuantity | None


@dataclass(frozen=True)
class ResourceRow:
    """Holds what a kernel needs, see `perfmodel.kernels.resources`; None for open sizes, and for what isn't known.

    Attributes:
        source: ``estimate``, or ``assembler`` for machine code.
        spilled_bytes: of the instructions that spill registers; code_bytes: of all; loads_in_flight: see
            `perfmodel.sass.machine_code`.
    """

    registers: int
    private_bytes: int
    local_bytes: CountedQuantity | None
    source: str = "estimate"
    spilled_bytes: int | None = None
    code_bytes: int | None = None
    loads_in_flight: int | None = None


@dataclass(frozen=True)
class FootprintRow:
    """Bytes of an array that its accesses of one direction touch, and those with the strides' gaps filled."""

    space: str
    variable: str
    dtype: str
    direction: str
    bytes: CountedQuantity | None
    filled_bytes: CountedQuantity | None


@dataclass(frozen=True)
class CountTable:
    """Everything counted of one program, at some points, each of which has all its sizes.

    Attributes:
        sampled: whether some work-groups that were emulated stand for all, as counting takes too long.
    """

    kernel: str
    variant: str
    sizes: tuple[str, ...]
    points: tuple[Mapping[str, int], ...]
    subgroup_size: int
    exact: bool
    sampled: bool
    operations: tuple[OperationRow, ...]
    chains: tuple[ChainRow, ...]
    accesses: tuple[AccessRow, ...]
    footprints: tuple[FootprintRow, ...]
    branches: tuple[BranchRow, ...]
    resources: ResourceRow | None
    barriers: Granular
    launches: CountedQuantity
    work_groups: CountedQuantity
    work_items: CountedQuantity


def count_tables(
    kernels: Sequence[Kernel], at: Sequence[Mapping[str, int]] = (), subgroup_size: int = SUBGROUP_SIZE
) -> list[CountTable]:
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


def as_json(tables: Sequence[CountTable]) -> dict[str, Any]:
    """Returns perfmodel's version and the tables, as values that JSON can hold."""
    return {"perfmodel": VERSION, "kernels": [plain(asdict(table)) for table in tables]}


class _Tabulator:
    """Evaluates counts at points."""

    def __init__(self, sizes: Sequence[str], points: Sequence[Mapping[str, int]]) -> None:
        self.sizes = tuple(sizes)
        self.points = tuple({name: point[name] for name in self.sizes} for point in points)
        self.arrays = {name: np.array([point[name] for point in self.points], np.int64) for name in self.sizes}

    def table(self, kernel: Kernel, counts: KernelCounts) -> CountTable:
        return CountTable(
            kernel=kernel.name,
            variant=kernel.variant,
            sizes=self.sizes,
            points=self.points,
            subgroup_size=counts.subgroup_size or SUBGROUP_SIZE,
            exact=counts.exact,
            sampled=counts.sampled,
            operations=self.operations(counts),
            chains=tuple(
                ChainRow(kind, dtype, chain.loops, self.quantity(self.total([(times, chain.iterations.workitem)])))
                for chain in counts.chains
                for kind, dtype, times in chain.operations
            ),
            accesses=tuple(self.access(access) for access in sorted(counts.accesses, key=lambda access: access.space)),
            footprints=tuple(self.footprint(footprint) for footprint in counts.footprints),
            branches=self.branches(counts),
            resources=self.resources(kernel),
            barriers=self.granular([(1, counts.barriers)]),
            launches=self.quantity(counts.launches),
            work_groups=self.quantity(counts.work_groups),
            work_items=self.quantity(counts.work_items),
        )

    def operations(self, counts: KernelCounts) -> tuple[OperationRow, ...]:
        grouped: dict[tuple[str, str], list[tuple[int, Executions]]] = {}
        for operation in counts.operations:
            times = (operation.per_execution, operation.executions)
            grouped.setdefault((operation.kind, operation.dtype), []).append(times)
        return tuple(
            OperationRow(kind, dtype, self.granular(times)) for (kind, dtype), times in sorted(grouped.items())
        )

    def access(self, access: AccessCount) -> AccessRow:
        count = self.granular([(1, access.executions)])
        footprint = self.known(access.footprint)
        return AccessRow(
            text=access.text,
            tags=tuple(sorted(access.tags)),
            space=access.space,
            variable=access.variable,
            direction=access.direction,
            dtype=access.dtype,
            bits=access.bits,
            local_strides={axis: self.known(stride) for axis, stride in sorted(access.local_strides.items())},
            group_strides={axis: self.known(stride) for axis, stride in sorted(access.group_strides.items())},
            loop_strides={loop: self.known(stride) for loop, stride in access.loop_strides.items()},
            count=count,
            footprint=footprint,
            afr=None if footprint is None else tuple(map(_ratio, count.workitem.at, footprint.at)),
            pattern=access.pattern,
        )

    def footprint(self, footprint: Footprint) -> FootprintRow:
        size = np.dtype(footprint.dtype).itemsize
        touched, filled = (
            None if elements is None else self.quantity(self.total([(size, elements)]))
            for elements in (footprint.elements, footprint.filled)
        )
        return FootprintRow(
            space=footprint.space,
            variable=footprint.variable,
            dtype=footprint.dtype,
            direction=footprint.direction,
            bytes=touched,
            filled_bytes=filled,
        )

    def branches(self, counts: KernelCounts) -> tuple[BranchRow, ...]:
        """Returns one row for each branch, also for those that were counted iteration by iteration."""
        grouped: dict[tuple[str, str], list[BranchCount]] = {}
        for branch in counts.branches:
            grouped.setdefault((branch.kind, branch.text), []).append(branch)
        rows = []
        for (kind, text), same in grouped.items():
            met = [(1, branch.met) for branch in same]
            taken = [(1, branch.taken) for branch in same if branch.taken is not None]
            divergent = [(1, branch.divergent) for branch in same if branch.divergent is not None]
            rows.append(
                BranchRow(
                    kind=kind,
                    text=text,
                    divergence=max((branch.divergence for branch in same), key=DIVERGENCES.index),
                    met=self.granular(met),
                    taken=self.granular(taken) if len(taken) == len(same) else None,
                    divergent=self.quantity(self.total(divergent)) if len(divergent) == len(same) else None,
                )
            )
        return tuple(rows)

    def resources(self, kernel: Kernel) -> ResourceRow | None:
        if isinstance(kernel.program, EmulatesItself):
            return self.of_ptx(kernel.program)
        if not isinstance(kernel.program, OpenCLProgram):
            return None
        found = estimate(kernel.program)
        return ResourceRow(
            registers=found.registers,
            private_bytes=found.private_bytes,
            local_bytes=self.known(found.local_bytes.quasipolynomial()),
        )

    def of_ptx(self, program: Any) -> ResourceRow:
        from perfmodel.kernels.ptx_resources import machine_code_of, ptx_resources  # slow to import, and only for PTX

        found, code = ptx_resources(program, 0, None), machine_code_of(program)
        shared = program.dynamic_shared.polynomial() + number(found.local_bytes)
        return ResourceRow(
            registers=found.registers or 0,
            private_bytes=found.private_bytes,
            local_bytes=self.known(shared.quasipolynomial()),
            source=found.source,
            spilled_bytes=None if code is None else code.spill_store_bytes + code.spill_load_bytes,
            code_bytes=None if code is None else code.code_bytes,
            loads_in_flight=None if code is None else code.loads_in_flight,
        )

    def granular(self, times: Sequence[tuple[int, Executions]]) -> Granular:
        by_subgroup = [(weight, e.subgroup) for weight, e in times if e.subgroup is not None]
        return Granular(
            self.quantity(self.total([(weight, e.workitem) for weight, e in times])),
            self.quantity(self.total(by_subgroup)) if len(by_subgroup) == len(times) else None,
            self.quantity(self.total([(weight, e.workgroup) for weight, e in times])),
        )

    def total(self, terms: Sequence[Weighted]) -> QuasiPolynomial:
        if [weight for weight, _ in terms] == [1]:
            return terms[0][1]

        names = ", ".join(self.sizes)
        first, *others = (isl.PwQPolynomial(f"[{names}] -> {{ {count} }}") * weight for weight, count in terms)
        return from_isl(sum(others, start=first))

    def known(self, count: QuasiPolynomial | None) -> CountedQuantity | None:
        return None if count is None else self.quantity(count)

    def quantity(self, count: QuasiPolynomial) -> CountedQuantity:
        values = np.broadcast_to(count(self.arrays), len(self.points))
        return CountedQuantity(str(count), tuple(map(_plain, values.tolist())))


def _plain(value: float) -> float:
    return int(value) if value == int(value) else value


def _ratio(count: float, footprint: float) -> float:
    """Returns the access-to-footprint ratio, 0 where nothing is accessed."""
    return _plain(count / footprint) if footprint else 0


# --- text

LONGEST = 40
"""A symbolic count of more characters than these moves below the table."""
NOTE_WIDTH = 78
"""Characters of a line below the table; one that is longer is cut, and JSON has all of it."""
MOST_PIECES = 3
"""A symbolic count of more pieces than these, each under conditions of its own, is cut likewise."""


def as_text(table: CountTable) -> str:
    """Returns the table for people: a block of lines for each kind of count, and one with the longest symbolic
    counts."""
    return _Text(table).text()


class _Text:
    def __init__(self, table: CountTable) -> None:
        self.table = table
        self.points = [" ".join(f"{name}={value}" for name, value in point.items()) for point in table.points]
        self.notes: dict[str, str] = {}

    def text(self) -> str:
        blocks = [self.title(), self.operations(), self.chains(), self.accesses(), self.footprints()]
        blocks += [self.branches(), self.launch(), self.resources()]
        blocks.append("\n".join(_note(note, count) for count, note in self.notes.items()))
        return "\n\n".join(filter(None, blocks))

    def title(self) -> str:
        table = self.table
        sizes = f"sizes {', '.join(table.sizes)}" if table.sizes else "no sizes"
        lines = [wrapped(f"{table.kernel} {table.variant}"), f"{sizes}; sub-groups of {table.subgroup_size} work-items"]
        if not table.exact:
            lines.append("upper bounds: the installed isl library cannot count all of them exactly")
        if table.sampled:
            lines.append("from samples: some work-groups were emulated, as counting all of them takes too long")
        return "\n".join(lines)

    def operations(self) -> str:
        lines = [
            [row.kind, row.dtype, words, *self.cells(getattr(row.count, name))]
            for row in self.table.operations
            for name, words in GRANULARITIES.items()
        ]
        return grid(["operation", "type", "per", "count", *self.points], lines) if lines else ""

    def chains(self) -> str:
        lines = [[row.kind, row.dtype, ", ".join(row.loops), *self.cells(row.count)] for row in self.table.chains]
        return grid(["carried operation", "type", "loops", "count", *self.points], lines) if lines else ""

    def accesses(self) -> str:
        header = ["access", "space", "direction", "type", "bits", "local strides", "group strides", "loop strides"]
        header += ["class", "count", *self.points, "footprint", *(f"afr {point}".rstrip() for point in self.points)]
        lines = []
        for row in self.table.accesses:
            afr = [f"{ratio:.4g}" for ratio in row.afr] if row.afr is not None else ["?"] * len(self.points)
            strides = [self.strides(s) for s in (row.local_strides, row.group_strides, row.loop_strides)]
            footprint = self.short(row.footprint)
            line = [row.text, row.space, row.direction, row.dtype, str(row.bits), *strides, row.pattern or "-"]
            lines.append([*line, *self.cells(row.count.workitem), footprint, *afr])
        return grid(header, lines) if lines else ""

    def footprints(self) -> str:
        lines = []
        for row in self.table.footprints:
            names = [row.variable, row.space, row.dtype]
            lines.append([*names, row.direction, *self.cells(row.bytes)])
            if row.filled_bytes is not None:
                lines.append([*names, f"{row.direction}, gaps filled", *self.cells(row.filled_bytes)])
        return grid(["footprint", "space", "type", "direction", "bytes", *self.points], lines) if lines else ""

    def branches(self) -> str:
        lines = []
        for row in self.table.branches:
            names = [row.kind, row.text, row.divergence]
            lines.append([*names, "met by work-items", *self.cells(row.met.workitem)])
            lines.append([*names, "taken by work-items", *self.cells(row.taken.workitem if row.taken else None)])
            lines.append([*names, "met by sub-groups", *self.cells(row.met.subgroup)])
            lines.append([*names, "sub-groups parted", *self.cells(row.divergent)])
        return grid(["branch", "condition", "divergence", "", "count", *self.points], lines) if lines else ""

    def resources(self) -> str:
        found = self.table.resources
        if found is None:
            return ""
        numbers = {
            "registers of a work-item": found.registers,
            "private bytes of a work-item": found.private_bytes,
            "bytes spilled": found.spilled_bytes,
            "bytes of machine code": found.code_bytes,
            "loads in flight": found.loads_in_flight,
        }
        lines = [[label, str(n), *[f"{n:,}"] * len(self.points)] for label, n in numbers.items() if n is not None]
        lines.append(["local bytes of a work-group", *self.cells(found.local_bytes)])
        title = "estimated resources" if found.source == "estimate" else "resources by the assembler"
        return grid([title, "count", *self.points], lines)

    def launch(self) -> str:
        table = self.table
        lines = [
            [f"barriers by {words}", *self.cells(getattr(table.barriers, name))]
            for name, words in GRANULARITIES.items()
        ]
        for label, count in (
            ("launches", table.launches),
            ("work-groups", table.work_groups),
            ("work-items", table.work_items),
        ):
            lines.append([label, *self.cells(count)])
        return grid(["launch", "count", *self.points], lines)

    def cells(self, quantity: CountedQuantity | None) -> list[str]:
        values = [f"{value:,}" for value in quantity.at] if quantity else ["?"] * len(self.points)
        return [self.short(quantity), *values]

    def strides(self, strides: Strides) -> str:
        """Returns strides as names of features write them: ``{0:1;1:n}``."""
        parts = [f"{axis}:{self.short(stride)}" for axis, stride in strides.items()]
        return f"{{{';'.join(parts)}}}" if parts else "-"

    def short(self, quantity: CountedQuantity | None) -> str:
        """Returns the symbolic count, or the number of the note that has it."""
        if quantity is None:
            return "?"
        if len(quantity.symbolic) <= LONGEST:
            return quantity.symbolic
        return self.notes.setdefault(quantity.symbolic, f"[{len(self.notes) + 1}]")


def _note(note: str, count: str) -> str:
    """Returns a long symbolic count, a line for each of its pieces."""
    pieces = count.split("; ")
    left_out = [f"and {len(pieces) - MOST_PIECES} more; --json has all"] * (len(pieces) > MOST_PIECES)
    lines = [f"{note} {pieces[0]}", *(f"{' ' * len(note)} {each}" for each in [*pieces[1:MOST_PIECES], *left_out])]
    return "\n".join(line if len(line) <= NOTE_WIDTH else f"{line[: NOTE_WIDTH - 2]} …" for line in lines)

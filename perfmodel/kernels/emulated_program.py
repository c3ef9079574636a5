"""A program whose counts come from emulating some of its work-groups, instead of from its source.

The groups that ran stand for all of them (Panwar et al., section IV-C): every count is theirs, times the work-groups of
the launch for each one emulated. What emulation cannot give is no zero: whoever asks for it is told so.
"""

from __future__ import annotations

import math
import warnings
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from typing import Any

import numpy as np

from perfmodel.basics.brief import brief
from perfmodel.basics.errors import CountingError, FeatureError
from perfmodel.counting.counts import (
    FOOTPRINTS,
    RESERVED,
    AccessCount,
    BranchCount,
    CollectiveCount,
    CountingWarning,
    Executions,
    Footprint,
    KernelCounts,
    OperationCount,
)
from perfmodel.counting.quasipolynomial import Piece, QuasiPolynomial, Term
from perfmodel.counting.usual_budget import checked
from perfmodel.kernels.arguments import Array, Image
from perfmodel.kernels.bound_kernel import BoundKernel
from perfmodel.kernels.derived_program import DerivedProgram
from perfmodel.kernels.emulation import emulate
from perfmodel.kernels.opencl_program import OpenCLProgram
from perfmodel.opencl_c import lowered as low
from perfmodel.opencl_c import walks
from perfmodel.opencl_c.emulation import Emulation, Machine
from perfmodel.opencl_c.operations import KernelOperations
from perfmodel.opencl_c.static.access_tags import tags_of
from perfmodel.opencl_c.static.scratch import scratch_arrays, words_in_registers
from perfmodel.opencl_c.static.vectorization import operations_of_scalar_code
from perfmodel.opencl_c.types import element_of

Sizes = tuple[tuple[str, int], ...]
Groups = str | Sequence[tuple[int, ...] | int]


class EmulatedProgram(DerivedProgram["OpenCLProgram"]):
    """A program that is counted by emulation, see `perfmodel.Kernel.emulated`. Known at sizes that are numbers only;
    each machine is emulated once for them.

    Args:
        program: what is emulated, launched and measured.
        scalars: arguments that are no sizes, as they may decide what is done; those left out are 1.
        arrays, groups, seed: of `perfmodel.emulate`.
    """

    def __init__(
        self,
        program: OpenCLProgram,
        scalars: Mapping[str, float] | None = None,
        arrays: Mapping[str, Any] | None = None,
        groups: Groups = "first",
        seed: int = 0,
    ) -> None:
        super().__init__(program)
        self.scalars, self.arrays = dict(scalars or {}), dict(arrays or {})
        self.groups, self.seed = groups, seed
        self._runs: dict[Sizes, list[_Run]] = {}
        self._counts: dict[tuple[Sizes, int | None], KernelCounts] = {}

    def __reduce__(self) -> tuple[object, ...]:
        return (EmulatedProgram, (self.program, self.scalars, self.arrays, self.groups, self.seed))

    def with_budget(self, budget: float) -> EmulatedProgram:
        """Returns the program itself, after a look at the number: emulating takes as long as it takes."""
        checked(budget)
        return self

    def with_contents(self, contents: Mapping[str, Any]) -> EmulatedProgram:
        """Returns the program itself: it was emulated on arrays of its own."""
        return self

    @property
    def deciding(self) -> tuple[str, ...]:
        """None: the values of all arguments are this program's own."""
        return ()

    def counts_for(self, subgroup_size: int | None = None, at: Mapping[str, Any] | None = None) -> KernelCounts:
        if not set(self.sizes) <= set(at or {}):
            raise CountingError(
                f"kernel {self.name!r} is emulated, so that it is counted only at sizes that are numbers"
            )
        sizes = tuple(sorted((at or {}).items()))
        key = sizes, subgroup_size
        if key not in self._counts:
            run = self._run(sizes, subgroup_size=subgroup_size)
            self._counts[key] = _Counter(self, sizes, run, subgroup_size).counts()
        return self._counts[key]

    def knows_addresses(self, subgroup_size: int | None = None, at: Mapping[str, Any] | None = None) -> bool:
        """True: there are no counts for all sizes."""
        return True

    def prepare(self, machine: Machine, at: Mapping[str, int]) -> None:
        """Emulates for one machine now, so that nothing that a model asks of this machine is emulated apart."""
        sizes = tuple(sorted(at.items()))
        if not any(run.machine == machine for run in self._runs.get(sizes, ())):
            self._emulate(sizes, machine)

    def recorded(self, sizes: Sizes, subgroup_size: int, kind: str, size: int) -> _Run:
        """Returns a run that recorded transactions of this size (`kind` is ``block``) or this number of banks
        (``banks``)."""
        return self._run(sizes, subgroup_size, **{kind: size})

    def _run(self, sizes: Sizes, subgroup_size: int | None = None, **recorded: int) -> _Run:
        for run in self._runs.get(sizes, ()):
            machine = run.machine
            is_like = subgroup_size in (None, machine.subgroup_size)
            known = {"block": machine.transaction_bytes, "banks": machine.banks}
            if is_like and all(known[kind] == size for kind, size in recorded.items()):
                return run
        usual = Machine()
        return self._emulate(
            sizes,
            Machine(
                subgroup_size=subgroup_size or usual.subgroup_size,
                transaction_bytes=recorded.get("block", usual.transaction_bytes),
                banks=recorded.get("banks", usual.banks),
            ),
        )

    def _emulate(self, sizes: Sizes, machine: Machine) -> _Run:
        kernel = BoundKernel(self.program, {}, None, **{**self.scalars, **dict(sizes)})
        profile = emulate(
            kernel,
            self.arrays,
            groups=self.groups,
            machine=machine,
            checks=False,
            extrapolate=True,
            seed=self.seed,
        )
        beyond = [each.message for each in profile.findings if each.kind == "out of bounds"]
        if beyond and sizes not in self._runs:
            warnings.warn(
                f"kernel {self.name!r} leaves its arrays: {beyond[0]}; give larger ones, or other sizes",
                CountingWarning,
                stacklevel=2,
            )
        run = _Run(profile.emulation, profile.global_size, profile.work_groups)
        self._runs.setdefault(sizes, []).append(run)
        return run

    def __repr__(self) -> str:
        return brief(self, self.name, f"sizes {', '.join(self.sizes) or 'none'}")


class _Run:
    """Holds what is kept of one emulation: its counts, without the memory that it worked on."""

    def __init__(self, emulation: Emulation, global_size: tuple[int, ...], work_groups: int) -> None:
        self.machine, self.kernel = emulation.machine, emulation.kernel
        self.local_size = emulation.local_size[: len(global_size)]
        self.work_groups, self.work_items = work_groups, math.prod(global_size)
        self.scale = Fraction(work_groups, len(emulation.groups))
        self.blocks = emulation.blocks
        self.branches = emulation.branches.sum(axis=0)
        self.barriers = int(emulation.barriers.sum())
        self.accesses = {name: emulation.accesses[name].sum(axis=0) for name in emulation.accesses.dtype.names or ()}
        self.footprints = {
            name: emulation.footprints[:, place]
            for place, (space, name) in enumerate(emulation.variables)
            if space in ("global", "constant")
        }

    def executions(self, block: int, counts_subgroups: bool) -> Executions:
        """Returns the executions of one block. `longest` is of the group that has most, whose work-items are taken to
        do together what any of them does."""
        items, subgroups, groups = (int(each) for each in self.blocks[:, block].sum(axis=0))
        most = int(self.blocks[self._busiest, block, 2])
        return Executions(
            workitem=self.whole(items),
            subgroup=self.whole(subgroups) if counts_subgroups else None,
            workgroup=self.whole(groups),
            longest=(constant(self.work_items * most),),
        )

    @cached_property
    def _busiest(self) -> int:
        """The work-group that executes most blocks."""
        return int(self.blocks[:, :, 2].sum(axis=1).argmax())

    def whole(self, of_groups: int) -> QuasiPolynomial:
        """Returns a number of the whole launch, scaled from that of the groups that ran."""
        return constant(of_groups * self.scale)


class _Counter:
    """Counts a program from one run of it."""

    def __init__(self, program: EmulatedProgram, sizes: Sizes, run: _Run, subgroup_size: int | None) -> None:
        self.program, self.sizes, self.run, self.subgroup_size = program, sizes, run, subgroup_size
        self.kernel = run.kernel
        launch = program.launch({**dict.fromkeys(program.arguments, 1), **program.scalars, **dict(sizes)})
        self.arrays: dict[str, Array] = {array.name: array for array in launch.arrays()}

    def counts(self) -> KernelCounts:
        run = self.run
        items, met = math.prod(run.local_size), run.barriers
        launched = sum(extent.at(dict(self.sizes)) for extent in self.program.program.local_arguments)
        subgroups = None if self.subgroup_size is None else run.whole(met * math.ceil(items / self.subgroup_size))
        by_item = run.whole(met * items)
        return KernelCounts(
            operations=tuple(self.operations()),
            chains=self.unknown("operations that wait for each other ('carried')"),
            accesses=(*self.accesses(), self.private()),
            footprints=tuple(self.footprints()),
            branches=tuple(self.branches()),
            barriers=Executions(workitem=by_item, subgroup=subgroups, workgroup=run.whole(met), longest=(by_item,)),
            launches=constant(1),
            work_groups=constant(run.work_groups),
            work_items=constant(run.work_items),
            local_size=tuple(map(constant, run.local_size)),
            subgroup_size=self.subgroup_size,
            exact=True,
            collectives=tuple(self.collectives()),
            registers=words_in_registers(self.kernel, scratch_arrays(self.kernel)) + RESERVED,
            local_bytes=constant(self.kernel.local_bytes + launched),
            scalar_operations=operations_of_scalar_code(self.kernel),
        )

    def collectives(self) -> Iterator[CollectiveCount]:
        for block in self.blocks.blocks:
            for statement in block.statements:
                if isinstance(statement, low.Collective):
                    scope = "workgroup" if statement.is_of_group else "subgroup"
                    dtype = element_of(statement.result.type).dtype
                    yield CollectiveCount(statement.kind, scope, dtype, self.executions(block))

    def executions(self, block: low.Straight) -> Executions:
        return self.run.executions(block.number, self.subgroup_size is not None)

    def unknown(self, what: str) -> Any:
        return Unknown(what, self.program.name)

    @cached_property
    def blocks(self) -> KernelOperations:
        return KernelOperations(self.kernel)

    def operations(self) -> Iterator[OperationCount]:
        for block in self.blocks.blocks:
            for (kind, dtype), times in self.blocks.of(block).values.items():
                yield OperationCount(kind, dtype, times, self.executions(block))

    def accesses(self) -> Iterator[AccessCount]:
        for block in self.blocks.blocks:
            for statement in block.statements:
                for node in walks.accesses_of(statement):
                    if node.access.space == "private":
                        continue
                    yield self.access(node.access, low.direction_of(node), self.executions(block))

    def access(self, access: low.Access, direction: str, executions: Executions) -> AccessCount:
        strides = dict.fromkeys(range(3), self.unknown("strides ('lstrides', 'gstrides', 'asf')"))
        array = self.arrays.get(access.variable or "")
        return AccessCount(
            space="global" if access.space == "constant" else access.space,
            variable=access.variable or "?",
            tags=tags_of(access, array is not None, isinstance(array, Image)),
            dtype=access.dtype,
            bits=8 * (array.pixel_bytes if isinstance(array, Image) else access.bytes),
            direction=direction,
            local_strides=strides,
            group_strides=strides,
            loop_strides={"?": self.unknown("strides of loops ('loopstride')")},
            executions=executions,
            body=(),
            rounds=self.unknown("accesses that wait for each other ('rounds')"),
            footprint=self.unknown("elements that an access touches ('afr', 'ratio')"),
            text=access.text,
            instruction=str(access.place),
            pattern=self.unknown("classes of accesses ('class')"),
            recorded=partial(self.transactions, access.number),
        )

    def transactions(self, number: int, subgroup_size: int, kind: str, size: int) -> float:
        """Returns the transactions of the launch, or cycles of the busiest bank, of one access."""
        recorded = {"sector_passes": "block", "bank_passes": "banks"}.get(kind, kind)
        run = self.program.recorded(self.sizes, subgroup_size, recorded, size)
        field = {"block": "transactions", "banks": "bank_cycles"}.get(kind, "passes")
        return float(int(run.accesses[field][number]) * run.scale)

    def private(self) -> AccessCount:
        """Returns one access of unknown number in place of all accesses to registers, which are not recorded."""
        what = self.unknown("accesses to private variables ('private')")
        return AccessCount(
            space="private",
            variable="?",
            tags=frozenset(),
            dtype=what,
            bits=what,
            direction=what,
            local_strides={},
            group_strides={},
            loop_strides={},
            executions=what,
            body=(),
            rounds=what,
            footprint=what,
            text="",
            instruction="",
            pattern=what,
        )

    def footprints(self) -> Iterator[Footprint]:
        """Yields the footprints of arrays that the source accesses, or that an access of unknown address reached."""
        whole = self.unknown("bytes that work-groups touch together ('footprint' without 'granularity:workgroup')")
        filled = self.unknown("gaps between elements ('block' of a footprint)")
        directions: dict[str | None, set[str]] = defaultdict(set)
        for statement in walks.simple_statements(self.kernel.body):
            for node in walks.accesses_of(statement):
                directions[node.access.variable].add(low.direction_of(node))
        for name, touched in self.run.footprints.items():
            if name not in self.arrays:
                continue
            array = self.arrays[name]
            item = np.dtype(array.dtype).itemsize
            own = directions.get(name, set()) | directions.get(None, set())
            for direction in FOOTPRINTS:
                recorded = "store" if direction == "atomic" else direction
                n_bytes = int(touched[f"{recorded}_bytes"].sum())
                if own if direction == "any" else direction in own:
                    by_group = constant(Fraction(n_bytes, item) * self.run.scale)
                    size = constant(array.size)
                    yield Footprint(
                        space="global",
                        variable=name,
                        dtype=array.dtype,
                        direction=direction,
                        elements=whole,
                        filled=filled,
                        by_group=by_group,
                        size=size,
                    )

    def branches(self) -> Iterator[BranchCount]:
        """Yields branches by sub-groups, the only ones recorded; those of the run are of the size that was asked
        for."""
        who = self.unknown("work-items at branches ('branch' without 'granularity:subgroup')")
        for branch in walks.branches(self.kernel.body):
            met, divergent = (int(each) for each in self.run.branches[branch.number])
            kind = "loop" if isinstance(branch, low.Loop) else "choice" if branch.is_choice else "if"
            by_subgroup = None if self.subgroup_size is None else self.run.whole(met)
            executions = Executions(workitem=who, subgroup=by_subgroup, workgroup=who, longest=(who,))
            parted = None if self.subgroup_size is None else self.run.whole(divergent)
            divergence = "by work-item" if divergent else "none"
            yield BranchCount(
                kind=kind, text=str(branch.place), met=executions, taken=None, divergence=divergence, divergent=parted
            )


@dataclass(frozen=True, eq=False)
class Unknown:
    """Stands for what emulating work-groups does not tell; whoever looks at it gets a FeatureError that says so.

    Attributes:
        unknown: what it is, with the words of features that ask for it.
    """

    unknown: str
    kernel: str

    def error(self) -> FeatureError:
        return FeatureError(
            f"{self.unknown} are not known of kernel {self.kernel!r}, which was emulated; leave such features out of "
            "the model, or predict the kernel as it is, which is counted from its source"
        )

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise self.error()

    def __call__(self, *arguments: Any) -> Any:
        raise self.error()

    def __iter__(self) -> Iterator[Any]:
        raise self.error()

    def __eq__(self, other: object) -> bool:
        if other is None or other is self:
            return other is self
        raise self.error()

    __hash__ = object.__hash__


def constant(value: int | Fraction) -> QuasiPolynomial:
    """Returns a count that is the same for all sizes."""
    exact = Fraction(value)
    return QuasiPolynomial((Piece(((),), (Term(exact.numerator, (), ()),), exact.denominator),), str(exact))

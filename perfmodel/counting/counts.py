"""Holds what a kernel does, as plain data: the one form in which every kind of program hands its counts to features."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfmodel.basics.brief import brief, number_of
from perfmodel.basics.errors import PerfmodelWarning
from perfmodel.counting.atomics import Update
from perfmodel.counting.contention import Contention
from perfmodel.counting.quasipolynomial import QuasiPolynomial

FOOTPRINTS = ("load", "store", "atomic", "any")
"""The directions of accesses whose footprints are counted; ``any`` is all of them together."""
ACCESS_CLASSES = ("continuous", "constant", "interval", "identical", "complex")
"""The classes of accesses by what neighbours touch at one time, see `perfmodel.counting.access_classes`."""
SUBGROUP_SIZE = 32
"""The number of work-items of a sub-group where nothing else is said."""
RESERVED = 4
"""Registers beside those that hold values: a stack pointer, and ids and the base of an address while it is computed."""


class CountingWarning(PerfmodelWarning):
    """Warns of counts that are less sure than they could be: bounds, samples, or of a kernel beyond its arrays."""


# A stride in elements as a function of the sizes; None where the index is not affine in the axis.
Stride = QuasiPolynomial | None
# Sizes of aligned blocks in bytes, each with how many such blocks are touched on average.
Blocks = tuple[tuple[int, float], ...]
LINE_BYTES = 128
"""A GPU's caches have lines of so many bytes."""
PAGE_BYTES = 65536
"""Blocks of this size show how far the places of a work-group lie apart."""


@dataclass(frozen=True)
class Executions:
    """Holds how often something is executed, counted in four ways.

    Attributes:
        workitem: once for every work-item.
        subgroup: once for every sub-group of which at least one work-item takes part; None if it was not counted, or
            where the size of a work-group is not known before the launch.
        workgroup: once for every work-group of which at least one work-item takes part.
        longest: as `workitem` would be if all work-items did as much as the first that takes part, and as the last one:
            one of these does most in triangles. One count where all do the same;
            of an emulated kernel, the sub-group (of CUDA) or work-group (of OpenCL C) that does most in all.
        spread: of counts from a sample of work-groups, how many times as often work-items, sub-groups, work-groups and
            the longest (as work-items, where nothing else is said) do it in each of its replicas, see
            `perfmodel.counting.resampling`.
        issued: once for every sub-group that comes by, if conditions that its work-items decide differently mask them,
            as on processors, rather than branch; None where that is once for every one that takes part, or not known.
        share: of the work-items that come by, the part that data let take part; 1 where data do not decide.
    """

    workitem: QuasiPolynomial
    subgroup: QuasiPolynomial | None
    workgroup: QuasiPolynomial
    longest: tuple[QuasiPolynomial, ...]
    spread: tuple[tuple[float, ...], ...] = ()
    issued: QuasiPolynomial | None = None
    share: float = 1.0

    @property
    def unforeseen(self) -> float:
        """Twice the part of branches around it that a processor foresees wrongly at best, as it guesses what is more
        often the case: 0 where all work-items take part, or none, and 1 where data let every other one."""
        return 2 * min(self.share, 1 - self.share)

    def replica(self, number: int) -> Executions:
        """Returns these executions in one of the replicas; themselves where they are no estimate."""
        if not self.spread:
            return self
        return self._scaled(*self.spread[number])

    def scaled(self, share: float) -> Executions:
        """Returns this part of the executions."""
        return self if share == 1.0 else replace(self._scaled(share, share, share), spread=self.spread)

    def _scaled(self, item: float, subgroup: float, group: float, longest: float | None = None) -> Executions:
        return Executions(
            self.workitem.scaled(item),
            None if self.subgroup is None else self.subgroup.scaled(subgroup),
            self.workgroup.scaled(group),
            tuple(each.scaled(item if longest is None else longest) for each in self.longest),
            issued=None if self.issued is None else self.issued.scaled(subgroup),
            share=self.share,
        )


@dataclass(frozen=True)
class OperationCount:
    """Operations of one kind and type in one instruction.

    Attributes:
        kind: ``add`` (also subtraction), ``mul``, ``madd`` (a multiply that feeds an add), ``div``, ``mod``, ``pow``,
            ``min``, ``max``, ``compare``, ``bitwise``, ``shift``, or the name of a special function (``exp`` …).
        dtype: numpy's name of the result's type, e.g. ``float32``.
        per_execution: how often they occur in one execution of the instruction.
        executions: of the instruction.
    """

    kind: str
    dtype: str
    per_execution: int
    executions: Executions


@dataclass(frozen=True)
class ChainCount:
    """Operations that wait for each other: those between an instruction's result and its result of an iteration before.

    Attributes:
        operations: of one iteration, as (kind, type, number), kinds as in `OperationCount`.
        iterations: those that come one after the other. Loops that give the result an element of its own, as those
            over several accumulators, are left out: their iterations don't wait for each other.
        loops: the sequential loops around the instruction, the outermost first; then the iterations of others that were
            gone through one by one.
    """

    operations: tuple[tuple[str, str, int], ...]
    iterations: Executions
    loops: tuple[str, ...]


@dataclass(frozen=True)
class AccessCount:
    """One memory access of one instruction.

    Attributes:
        space: ``global`` (also what OpenCL calls constant), ``local``, ``private`` or ``scratch``: private arrays that
            lie in memory.
        tags: those of its Loopy program; ``image`` where it goes to an image, ``constant`` where to constant memory,
            ``hidden`` where a processor's compiler does not see whether neighbours touch neighbouring places,
            ``copied`` where data go from one memory to another, and to no work-item, ``changed`` where a store goes to
            what its iteration has just loaded, ``stored`` where a load goes to what its work-items have stored before.
        direction: ``load``, ``store`` or ``atomic``.
        bits: width of the access: of its type, times the components of a vector.
        local_strides, group_strides: element strides by axis; an axis that the index does not use is absent.
        loop_strides: element strides by the sequential loops around the access, the outermost first.
        copies: how often the last of these loops go round, if compiled code has a copy of the access for each time.
        executions: of the access.
        body: those of these loops that are not unrolled, and the iterations of others that were gone through one by
            one.
        rounds: executions with all iterations of unrolled loops counted once, as they don't wait for each other.
        entered: how often the innermost loop is begun whose rounds these are, if it is known to have any; None where a
            round waits for itself, or where data say how many there are.
        wait: the part of a wait for memory that a round of a load is, as several iterations have theirs under way.
        least: the waits of a loop of few iterations.
        level: the loads of one iteration that come one after the other, up to this one, as each needs the one before.
        depth: operations of a load's loop body that come one after the other, as a part of one round, since several
            iterations are done side by side.
        is_again: whether a load that came before in an iteration has been at the same place, or beside it.
        text, instruction: the access as it stands in the program, and the name of the instruction that makes it.
        footprint: distinct elements that this access touches over the launch, in local memory those of each
            work-group; None where it can't be derived.
        pattern: its class, one of `ACCESS_CLASSES`; empty for private memory.
        addresses: for some groups, those of their first work-items, in bytes from the least; given where the
            strides along the local axes are not constant, and these addresses are known.
        reach: about how many bytes the access touches over the launch, where that was found out from such addresses;
            of a table that the program declares in constant memory, what a work-group touches, at most all.
        missed: the part of what a group touches that a last-level cache no longer has, likewise.
        touched: blocks that a sub-group touches in one execution, as emulated groups showed where data decide on
            addresses; None where nobody looked.
        phases: places relative to sectors of 32 bytes at which a sub-group's work-items are in one execution,
            likewise; a loop leads them to other sectors so many times as often as one of them.
        shared: the part of its own blocks, by their bytes, that it counts with, as accesses to other fields of the
            record that it goes to share them; None where none do, or nobody looked.
        passes: cycles of banks that a sub-group's access to local memory takes, and passes of atomics, likewise.
        update: what an atomic does.
        contention: of an atomic or store whose places data decide, how often those of different groups go to one.
        is_tried_again: whether it is made until it succeeds; the executions are then those of the first tries.
        is_parted: whether a store to a record's field waits for what is loaded after the one to the field before.
    """

    space: str
    variable: str
    tags: frozenset[str]
    dtype: str
    bits: int
    direction: str
    local_strides: Mapping[int, Stride]
    group_strides: Mapping[int, Stride]
    loop_strides: Mapping[str, Stride]
    executions: Executions
    body: tuple[str, ...]
    rounds: Executions
    footprint: QuasiPolynomial | None
    text: str
    instruction: str
    pattern: str = ""
    addresses: tuple[tuple[int, ...], ...] | None = None
    reach: int | None = None
    missed: float | None = None
    recorded: Callable[[int, str, int], float] | None = None
    touched: Blocks | None = None
    phases: float | None = None
    shared: Blocks | None = None
    passes: float | None = None
    update: Update | None = None
    contention: Contention | None = None
    is_tried_again: bool = False
    wait: float = 1.0
    level: int = 1
    depth: float = 0.0
    entered: Executions | None = None
    least: float = 1.0
    is_again: bool = False
    copies: tuple[int, ...] = ()
    is_parted: bool = False

    @property
    def has_unknown_address(self) -> bool:
        """Returns True if its addresses are unknown, as data decide on them, or sizes that are no numbers."""
        strides = (*self.local_strides.values(), *self.group_strides.values())
        return self.addresses is None and self.touched is None and None in strides

    def __repr__(self) -> str:
        return brief(self, self.space, f"{self.direction} of {self.variable}", f"{self.dtype}", self.text)


@dataclass(frozen=True)
class BranchCount:
    """Decisions of one condition; one that is counted iteration by iteration is there once for each.

    Attributes:
        kind: ``if`` (also a case), ``choice`` (of ``&&``, ``||`` or ``?:``) or ``loop``.
        text: of OpenCL C the line and column in the source, of a Loopy program the predicate.
        met: how often it is decided; of a loop, how often it is asked whether there is another iteration.
        taken: how often the condition held; None where data decide, and no statistics say how often, and where that is
            too hard to count.
        divergence: ``none`` where the work-items of a sub-group go the same way (of a work-group, if sub-groups are
            not counted), else ``by work-item``; ``by data`` where it isn't known.
        divergent: how often sub-groups go both ways; None where data decide, where it is too hard to count, and where
            sub-groups are not counted.
        is_masked: whether work-items side by side may decide differently, as far as a compiler sees.
    """

    kind: str
    text: str
    met: Executions
    taken: Executions | None
    divergence: str
    divergent: QuasiPolynomial | None
    is_masked: bool = False


@dataclass(frozen=True)
class CollectiveCount:
    """Calls of one function by which work-items exchange values.

    Attributes:
        kind: ``reduce``, ``scan``, ``broadcast``, ``shuffle`` or ``vote``.
        scope: ``workgroup`` or ``subgroup``.
        dtype: numpy's name of the result's type.
    """

    kind: str
    scope: str
    dtype: str
    executions: Executions


@dataclass(frozen=True)
class Footprint:
    """Distinct elements of one array that all its accesses of one direction touch together (2016, Algorithm 2).

    Attributes:
        direction: one of `FOOTPRINTS`.
        elements: None where an access's index or domain is not affine.
        filled: the same with the gaps filled that strides leave along the array's fastest axis; only for ``any``.
        by_group: distinct elements of each work-group, summed over all work-groups.
        size: elements of the whole array; None where its shape does not follow from the sizes.
        touched: blocks that a work-group touches, as emulated groups showed where data decide on addresses.
        lined, paired: elements of the lines of 128 bytes that are touched, and of pairs of them, where these are known
            beside what strides fill.
    """

    space: str
    variable: str
    dtype: str
    direction: str
    elements: QuasiPolynomial | None
    filled: QuasiPolynomial | None
    by_group: QuasiPolynomial | None
    size: QuasiPolynomial | None
    touched: Blocks | None = None
    lined: QuasiPolynomial | None = None
    paired: QuasiPolynomial | None = None

    def array_bytes(self, sizes: Mapping[str, NDArray[Any]]) -> NDArray[np.float64] | None:
        """Returns the bytes of the whole array, at some sizes; None where its shape does not follow from them."""
        return None if self.size is None else self.size(sizes) * np.dtype(self.dtype).itemsize


@dataclass(frozen=True)
class Issue:
    """Tells what a kernel's machine code takes of compute units, as `perfmodel.ptx.counting.assembled` finds it.

    Attributes:
        cycles: that the instructions of all sub-groups take of each pipe of a scheduler, and of the scheduler itself.
        operations: one after the other, as many as take the time of the busiest sub-group alone with every load from
            the nearest memory, times all work-items.
        longest: how many times as many instructions the busiest sub-group executes as that of another work-group does,
            on average.
        uneven: the standard deviation of the instructions of work-groups, over their mean, by what those that follow
            each other differ.
    """

    cycles: Mapping[str, float]
    operations: float
    longest: float
    uneven: float


@dataclass(frozen=True)
class CoreWork:
    """Tells what a kernel's machine code takes of a processor's cores, as `perfmodel.x86.work` finds it.

    Attributes:
        units: operations of all work-groups for each unit of a core, by the names of `perfmodel.x86.units.UNITS`.
        waits: cycles in which nothing is done, as results are waited for, of all work-groups one after the other.
        lanes: work-items of a vector; 1 where they are done one by one.
        axis: of a work-group, along which vectors lie.
    """

    units: Mapping[str, float]
    waits: float
    lanes: int
    axis: int


@dataclass(frozen=True)
class KernelCounts:
    """Everything counted of one program, as functions of its sizes.

    Attributes:
        branches: of a Loopy program only the predicates of its instructions: the bounds of its loops, and the guards of
            tiles that stick out, become branches only when code is generated.
        barriers: local barriers, by whom they are met.
        fences: what keeps accesses in order beyond a work-group, by whom it is executed.
        launches: device kernels launched by one call.
        local_size: work-items of a work-group along each axis.
        subgroup_size: work-items of the sub-groups that `Executions.subgroup` counts; None if it counts none.
        exact: False where the installed isl library can only bound some counts from above.
        index_operations: arithmetic of addresses, loops and conditions; None where it was not counted.
        transfers: whether a launch copies what it loads to the device, and what it stores from it.
        collectives: functions by which work-items of a group or sub-group exchange values.
        sampled: whether executions follow from some work-groups that were emulated, as all are too hard to count.
        scratch: private arrays that lie in memory, as a compiler can't keep them in registers: name and bytes.
        grid: work-groups along each axis; empty where only their number is known.
        registers: words of 32 bits that a work-item holds at once, estimated; at least so many of Loopy programs as
            they stand, whose values nobody looked at.
        local_bytes: bytes of local memory that a work-group holds; None where they are not known.
        scalar_operations: how many operations an instruction does where a processor's compiler makes no vectors of
            work-items, as they call functions of vectors; 0 where it does.
        moved_words: words of 32 bits that a work-item keeps beside, if a compiler moves sums to the conditions under
            which they are stored; 0 where none can be moved, or nobody looked.
        moved_steps: instructions of the straight code that such sums are.
        issue: what machine code issues; None where it is not known.
        core: what machine code takes of a processor's cores; None where it is not known.
    """

    operations: tuple[OperationCount, ...]
    chains: tuple[ChainCount, ...]
    accesses: tuple[AccessCount, ...]
    footprints: tuple[Footprint, ...]
    branches: tuple[BranchCount, ...]
    barriers: Executions
    launches: QuasiPolynomial
    work_groups: QuasiPolynomial
    work_items: QuasiPolynomial
    local_size: tuple[QuasiPolynomial, ...]
    subgroup_size: int | None
    exact: bool
    index_operations: tuple[OperationCount, ...] | None = None
    transfers: bool = False
    collectives: tuple[CollectiveCount, ...] = ()
    fences: tuple[Executions, ...] = ()
    sampled: bool = False
    scratch: tuple[tuple[str, int], ...] = ()
    grid: tuple[QuasiPolynomial, ...] = ()
    registers: int = RESERVED
    local_bytes: QuasiPolynomial | None = None
    scalar_operations: float = 0.0
    moved_words: int = 0
    moved_steps: int = 0
    issue: Issue | None = None
    core: CoreWork | None = None

    def footprint_of(self, variable: str, direction: str = "") -> Footprint | None:
        """Returns an array's footprint in one direction, or the first one in any; None where it is not accessed so."""
        alike = (each for each in self.footprints if each.variable == variable and direction in ("", each.direction))
        return next(alike, None)

    @cached_property
    def global_accesses(self) -> dict[str, list[AccessCount]]:
        """The accesses of global memory by the array's name."""
        found = defaultdict[str, list[AccessCount]](list)
        for access in self.accesses:
            if access.space == "global":
                found[access.variable].append(access)
        return dict(found)

    @cached_property
    def unknown_addresses(self) -> int:
        """The number of accesses and footprints whose addresses are unknown: data, or sizes that are no numbers, decide
        on them."""
        accesses = sum(access.has_unknown_address for access in self.accesses)
        return accesses + sum(each.elements is None and each.touched is None for each in self.footprints)

    @property
    def can_be_observed(self) -> bool:
        """Returns True if emulated work-groups would tell something of addresses that are unknown."""
        return any(access.has_unknown_address for access in self.accesses) or any(
            each.elements is None and each.touched is None and each.by_group is None for each in self.footprints
        )

    def footprints_at(self, sizes: Mapping[str, int]) -> list[tuple[float | None, ...]]:
        """Returns the elements that each footprint counts at some sizes: touched, with gaps filled, and by group."""
        counted = [(each.elements, each.filled, each.by_group) for each in self.footprints]
        return [tuple(None if count is None else float(count(sizes)) for count in counts) for counts in counted]

    @cached_property
    def replicas(self) -> int:
        """The number of replicas that show how far counts from a sample of work-groups are off; 0 for other counts."""
        shared = [access for access in self.accesses if access.space != "private"]
        found: list[Any] = [*self.operations, *shared, *self.collectives, *(self.index_operations or ())]
        return max((len(each.executions.spread) for each in found), default=0)

    def replica(self, number: int) -> KernelCounts:
        """Returns the counts with the executions of one of the replicas."""
        known: dict[Executions, Executions] = {}

        def again(executions: Executions) -> Executions:
            if executions not in known:
                known[executions] = executions.replica(number)
            return known[executions]

        def changed(counts: Any) -> Any:
            return tuple(replace(each, executions=again(each.executions)) for each in counts)

        return replace(
            self,
            operations=changed(self.operations),
            chains=tuple(replace(chain, iterations=again(chain.iterations)) for chain in self.chains),
            accesses=tuple(
                replace(
                    access,
                    rounds=again(access.rounds),
                    entered=None if access.entered is None else again(access.entered),
                )
                for access in changed(self.accesses)
            ),
            branches=tuple(
                replace(branch, met=again(branch.met), taken=None if branch.taken is None else again(branch.taken))
                for branch in self.branches
            ),
            index_operations=None if self.index_operations is None else changed(self.index_operations),
            collectives=changed(self.collectives),
            fences=tuple(map(again, self.fences)),
        )

    def __repr__(self) -> str:
        said = (
            number_of(sum(map(len, (self.operations, self.index_operations or ()))), "kind") + " of operations",
            f"{len(self.accesses)} accesses, {len(self.footprints)} footprints, {len(self.branches)} branches",
            f"sub-groups of {self.subgroup_size}" if self.subgroup_size else "",
            "" if self.exact else "bounds from above",
            "from samples of work-groups" if self.sampled else "",
        )
        return brief(self, *said)

"""CountedKernel: a bound kernel, with what emulated work-groups show where its source doesn't say all."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

from perfmodel.basics.errors import CountingError, DecidedByDataError, OutOfBudgetError, PerfmodelError
from perfmodel.counting.counts import SUBGROUP_SIZE, CountingWarning, KernelCounts
from perfmodel.counting.usual_budget import GIVEN_MORE
from perfmodel.kernels.bound_kernel import BoundKernel
from perfmodel.kernels.compiled import Compiled
from perfmodel.kernels.core_code import CoreCode
from perfmodel.kernels.machine_code import MachineCode, as_machine_code
from perfmodel.kernels.opencl_program import OpenCLProgram
from perfmodel.kernels.program import EmulatesItself
from perfmodel.kernels.transfers import WithTransfers

if TYPE_CHECKING:
    from perfmodel.kernels.observing import Seen


class CountedKernel(BoundKernel):
    """A bound kernel whose loops, branches and addresses are seen in some work-groups, where data decide them, or
    counting takes too long."""

    __slots__ = ()

    def as_observed(self, arrays: Mapping[str, Any] | None = None, groups: str = "sample", seed: int = 0) -> Self:
        """Returns the same kernel with statistics of what data decide in it, from emulating some of its work-groups.

        So a kernel whose loops and branches depend on data can be counted, and predicted, without saying how.

        Args:
            arrays, groups, seed: see `perfmodel.emulate`.

        Warns:
            CountingWarning: beyond the budget (`with_budget`), some iterations of long loops stood for the others.
        """
        if isinstance(self.program, EmulatesItself):
            return type(self)(self.program.as_observed(arrays, groups, seed), self.tags, None, **self._arguments)
        seen = self._seen(arrays, groups, seed)
        if seen.is_cut:
            warnings.warn(_said_of_cut(self.name), CountingWarning, stacklevel=2)
        program = self.program.as_opencl().as_observed(seen.branches, touched=seen.touched).with_contents(arrays or {})
        return type(self)(program, self.tags, None, **self._arguments)

    def as_countable(self, arrays: Mapping[str, Any] | None = None) -> Self:
        """Returns the same kernel, to be counted on what its arrays hold where that decides what it does or touches.

        Nothing is emulated before counts are asked for that need it, and some models count another form of the kernel.

        Args:
            arrays: as for `as_observed`; those that are not given hold random numbers.
        """
        if not arrays:
            return self
        program = self.program.with_contents(arrays)
        bound = {name: value for name, value in self._arguments.items() if name in program.arguments}
        return type(self)(program, self.tags, None, **bound)

    @property
    def is_observed(self) -> bool:
        """True if emulated work-groups have shown what the kernel does or touches, for its counts by its source."""
        if isinstance(self.program, EmulatesItself):
            return True
        source = self.program.as_opencl()
        return bool(source.observed or source.touched or source.samples)

    def _seen(self, arrays: Mapping[str, Any] | None = None, groups: str = "sample", seed: int = 0) -> Seen:
        """Returns what some work-groups show of branches and addresses."""
        from perfmodel.kernels.observing import seen  # slow to import

        return seen(self.as_opencl(), arrays, groups, seed)

    def counts_for(self, subgroup_size: int | None = None) -> KernelCounts:
        """Returns the counts with executions by sub-groups: for all sizes, or else for the kernel's own.

        What data decide is seen in some work-groups that are emulated, on what `as_countable` was told that arrays
        hold, or else on random numbers, with a warning. What is not done within the budget (`with_budget`) is seen so,
        too, and such counts are marked as sampled. Where accesses go that follow from ids in no affine way, or from
        arrays that were given, is seen in some work-groups as well. Where arrays were given, what can't be counted by
        its source all the same is counted as machine code, see `as_machine_code`.

        Raises:
            CountingError: for what cannot be counted, as a size is open, or emulation fails.

        Warns:
            CountingWarning: data decide what the kernel does, or its counts are estimates.
        """
        if not self._is_given:
            return self._counts_by_source(subgroup_size)
        try:
            if self._has_unknown_addresses():
                return self._counts_as_seen(None, subgroup_size)
            return self._counts_by_source(subgroup_size)
        except CountingError:
            machine = type(self)(as_machine_code(self.program.as_opencl()), self.tags, None, **self._arguments)
            if not isinstance(machine.program, MachineCode) or machine.program.made_at(machine.bound) is None:
                raise
            return machine.counts_for(subgroup_size)

    def _counts_by_source(self, subgroup_size: int | None) -> KernelCounts:
        try:
            counts = super().counts_for(subgroup_size)
        except (DecidedByDataError, OutOfBudgetError) as error:
            return self._counts_as_seen(error, subgroup_size)
        if counts.can_be_observed and self._is_given:
            return self._counts_as_seen(None, subgroup_size)
        return self._with_addresses(counts) if counts.unknown_addresses else counts

    @property
    def _is_given(self) -> bool:
        """True if it is counted by its source, and nothing has been seen yet of what arrays are told to hold."""
        if len(self.sizes) < len(self.program.sizes):
            return False
        program = self.program.program if isinstance(self.program, WithTransfers) else self.program
        if isinstance(program, MachineCode) and program.made_at(self.bound) is not None:
            return False
        source = program.program if isinstance(program, Compiled | CoreCode | MachineCode) else program
        return isinstance(source, OpenCLProgram) and bool(source.contents) and source.touched is None

    def _has_unknown_addresses(self) -> bool:
        """Returns whether neither counts for all sizes nor those at the kernel's own know all addresses, where that
        shows before all is counted."""
        with suppress(CountingError):
            counts = self._counts_at_own_sizes_alone(SUBGROUP_SIZE)
            return counts is not None and counts.can_be_observed
        return False

    def _with_addresses(self, counts: KernelCounts) -> KernelCounts:
        """Returns counts with what emulated work-groups touch by accesses whose addresses ids decide."""
        from perfmodel.kernels.observing import places  # slow to import
        from perfmodel.kernels.touched import decided_by_ids  # slow to import

        program = self.program.source if isinstance(self.program, Compiled) else self.program
        if not isinstance(program, OpenCLProgram) or program.touched or len(self.sizes) < len(program.sizes):
            return counts
        key = tuple(self._arguments.items())
        if key not in program.touched_at:
            program.touched_at[key] = None
            if decided_by_ids(program.lowered, counts):
                with suppress(PerfmodelError):  # no harm is done where emulation fails
                    program.touched_at[key] = places(self.as_opencl())
        touched = program.touched_at[key]
        return counts if touched is None else touched.counts(counts)

    def _counts_as_seen(self, why: CountingError | None, subgroup_size: int | None) -> KernelCounts:
        """Returns the counts with what emulated work-groups show of branches and addresses, in the place of an error's
        reason, or of unknown addresses."""
        source, is_sampled = self.program.as_opencl(), isinstance(why, OutOfBudgetError)
        is_known = source.is_sampled or (source.observed and not is_sampled)
        if why is not None and (len(self.sizes) < len(self.program.sizes) or is_known):
            raise why
        if is_sampled and source is not self.program:  # of a Loopy program, its code may be counted at the own sizes
            plain = BoundKernel(source, self.tags, None, **self._arguments)
            with suppress(CountingError):
                return replace(plain.counts_for(subgroup_size), transfers=isinstance(self.program, WithTransfers))
        key = (is_sampled, *self._arguments.items())
        if key not in source.samples:
            try:
                seen = self._seen(source.contents)
            except PerfmodelError:
                if source.contents or why is None:
                    raise
                raise why from None
            source.samples[key] = source.as_observed({**seen.branches, **source.observed}, is_sampled, seen.touched)
            if said := _said_of_seen(self.name, is_sampled, bool(source.contents), seen.is_cut):
                warnings.warn(said, CountingWarning, stacklevel=5)
        seen_kernel = type(self)(source.samples[key], self.tags, None, **self._arguments)
        counts = (
            seen_kernel.counts_at(self.sizes, subgroup_size) if is_sampled else seen_kernel.counts_for(subgroup_size)
        )
        if isinstance(self.program, CoreCode):
            counts = replace(counts, core=self.program.work_at(self.bound, source.samples[key]))
        return replace(counts, transfers=isinstance(self.program, WithTransfers))


def _said_of_cut(kernel: str) -> str:
    return (
        f"kernel {kernel!r} takes long in the work-groups that show what data decide, and some iterations of its loops "
        "stood for the others; its counts are estimates; for more of them, give it a larger "
        f"budget {GIVEN_MORE}"
    )


def _said_of_seen(kernel: str, is_sampled: bool, is_given: bool, is_cut: bool) -> str:
    """Returns what a user is told of counts that work-groups showed; empty where these are as good as any."""
    if is_given and not is_sampled:
        return _said_of_cut(kernel) if is_cut else ""
    said = (
        f"kernel {kernel!r} takes too long to count, and a sample of work-groups showed how often its parts are "
        "executed; its counts are estimates"
        if is_sampled
        else f"data decide what kernel {kernel!r} does, and work-groups with random data showed how often; give data "
        "of your own by kernel.as_observed(arrays), or --arg NAME=FILE.npy"
    )
    return said + ("; some iterations of its long loops stood for the others" if is_cut else "")

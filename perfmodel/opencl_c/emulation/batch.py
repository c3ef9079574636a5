"""One batch of groups runs here, with what the generated code refers to."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfmodel.counting.usual_budget import MOST_BUDGETS
from perfmodel.opencl_c import lowered as low
from perfmodel.opencl_c import walks
from perfmodel.opencl_c.emulation.access_handlers import Handler
from perfmodel.opencl_c.emulation.address_space import Regions
from perfmodel.opencl_c.emulation.arguments import Bound, number_at
from perfmodel.opencl_c.emulation.atomics import AtomicHandler
from perfmodel.opencl_c.emulation.batch_context import Context
from perfmodel.opencl_c.emulation.code_generation import Code
from perfmodel.opencl_c.emulation.collectives import Teams, collective
from perfmodel.opencl_c.emulation.endless import EndlessError
from perfmodel.opencl_c.emulation.expression_code import plain
from perfmodel.opencl_c.emulation.extrapolation import Extrapolation, Watch
from perfmodel.opencl_c.emulation.findings import FindingLog
from perfmodel.opencl_c.emulation.images import ImageBuffer, ImageHandler
from perfmodel.opencl_c.emulation.lanes import Integers, Layout, Mask, Masks, Values
from perfmodel.opencl_c.emulation.machine import Machine
from perfmodel.opencl_c.emulation.races import GroupRaces, Races
from perfmodel.opencl_c.emulation.recording import Recorder, Totals, footprints, touched
from perfmodel.opencl_c.emulation.reuse import AddedUp, Shelf
from perfmodel.opencl_c.emulation.thinning import LATER, Thinning, Turn
from perfmodel.opencl_c.emulation.waiting import SOON, Waiting
from perfmodel.opencl_c.emulation.work_items import WorkItems
from perfmodel.opencl_c.meeting import given_back, retried
from perfmodel.opencl_c.syntax import Place
from perfmodel.opencl_c.types import Pointer, Vector, element_of

_TWICE = 2048
"""Numpy takes twice as long for so many lanes as for one."""
LEAST_WORK = 3_000_000
"""Loops that data or their own state end go on for so much work in any case, some twenty seconds: a public hash of
10,000 accesses takes most of it."""
_UNLIMITED = 1e15
"""Stands for work without a limit, so that what was done of it is known."""
_MOST_LANES = 1 << 20
"""Masks and patterns of so many lanes together are kept; more come from data, which repeat nothing."""


class Emulator:
    """Runs one batch after another, all of them in groups of one size with arguments of one size.

    Attributes:
        variables: see `Emulation`.
        context, recorder: what is found and counted.
        used: steps that were taken, which are those of loops.
        work: that was done: as many statements and accesses of few work-items would have taken as long.
    """

    kernel: low.LoweredKernel
    layout: Layout
    bound: Bound
    work_items: WorkItems
    races: Races
    waiting: Waiting
    extrapolation: Extrapolation | None
    thinning: Thinning

    def __init__(self, kernel: low.LoweredKernel, code: Code, layout: Layout, bound: Bound, machine: Machine) -> None:
        self.code = code
        self.regions = Regions(kernel, bound.buffers, bound.locals, bound.local_bytes, layout)
        self.context = Context(machine, self.regions)
        self.recorder = Recorder(kernel, layout, machine)
        self.masks = Masks(layout)
        self._known_totals: AddedUp[Totals] = AddedUp()
        self._known_sizes: AddedUp[NDArray[Any]] = AddedUp()
        self.variables = _variables(kernel, bound)
        self._alone = {number for number, is_update in retried(kernel).items() if is_update} | given_back(kernel)
        self._by_value = [each for each in kernel.objects if each.parameter is not None]
        self.regions.hold(bound.buffers, bound.constants, layout)
        self._function: Any = code.build(self._namespace(bound))
        self._names: dict[str, Any] = self._function.__globals__
        self._shape: Hashable = None

    @classmethod
    def of(
        cls,
        kernel: low.LoweredKernel,
        code: Code,
        work_items: WorkItems,
        bound: Bound,
        machine: Machine,
        findings: FindingLog,
        groups: GroupRaces,
        checks: bool,
        extrapolate: bool,
        work: float,
    ) -> Emulator:
        """Returns an emulator for a batch: one that an earlier batch left, or a new one."""
        layout = work_items.layout
        # Where patterns find their numbers depends on the frames, and their marks on how far groups' marks are apart.
        shape = (
            (layout.local_size, layout.groups, layout.subgroup_size, machine),
            (bound.local_bytes, *bound.locals.items()),
            tuple([(name, each.origin, each.size, each.pixel) for name, each in bound.buffers.items()]),
        )
        found = _SHELF.taken(kernel, shape) or cls(kernel, code, layout, bound, machine)
        found.kernel, found.layout, found.bound, found.work_items = kernel, layout, bound, work_items
        found._shape, found.used, found.work = shape, 0, 0.0
        found._begin(findings, groups, checks, extrapolate, work)
        return found

    def _begin(self, findings: FindingLog, groups: GroupRaces, checks: bool, extrapolate: bool, work: float) -> None:
        self.regions.hold(self.bound.buffers, self.bound.constants, self.layout)
        self.context.begin(self.layout, findings, checks)
        is_only_counted = work < _UNLIMITED
        self.context.updated = [] if is_only_counted else None
        for handler in self.recorder.handlers:
            handler.begin()
            if isinstance(handler, AtomicHandler):
                handler.is_alone = is_only_counted and handler.access.number in self._alone
        self.races = Races(self.context, groups)
        self.waiting = Waiting(self.kernel, self.regions)
        self.extrapolation = Extrapolation(self.context, self.recorder) if extrapolate and self.code.plans else None
        self._work = min(work, _UNLIMITED) / self._cost
        self.thinning = Thinning(self.recorder, self.layout, self._work, seed=0)
        names = self._names
        names["most_work"], names["late_work"] = self._work, -LATER * self._work
        names["least_work"] = self._least_work = -max(MOST_BUDGETS * self._work, LEAST_WORK / self._cost)
        names["most_logged"] = self.races.most_logged
        for number, register in enumerate(self.kernel.registers):
            names[f"start_{number}"] = self._start(register)
        self._place_parameters()

    def _place_parameters(self) -> None:
        """Puts structs by value, and other parameters that have an address, into each lane's memory."""
        frames = self.regions.private.data.reshape(self.layout.lanes, -1)
        for object_ in self._by_value:
            assert object_.parameter is not None
            data = self.bound.private[object_.parameter]
            frames[:, object_.offset : object_.offset + len(data)] = data

    def run(self, steps: int) -> None:
        """Runs all groups of the batch to their end.

        Raises:
            EndlessError: the steps were not enough.
        """
        with np.errstate(all="ignore"):
            steps_left, work_left = self._function(steps)
        self.used = steps - int(steps_left)
        self.work = (self.code.once + self._work - work_left) * self._cost
        self.races.barrier(None)

    def finish(self) -> tuple[Integers, ...]:
        """Returns all counts and the footprints of the variables, and leaves the emulator to other batches."""
        recorder, regions, machine = self.recorder, self.regions, self.context.machine
        totals = self._known_totals.once(recorder.counted(), recorder.totals)
        met = touched(regions, machine)
        sizes = self._known_sizes.once(met, lambda: footprints(regions, self.variables, machine))
        kernel = self.kernel
        for handler in recorder.handlers:
            handler.end()
        recorder.end()
        self.context.end()
        regions.release()
        self._names.update((f"start_{number}", None) for number in range(len(kernel.registers)))
        del self.kernel, self.layout, self.bound, self.work_items
        del self.races, self.waiting, self.extrapolation, self.thinning
        _SHELF.keep(kernel, self._shape, self)
        return *totals.arrays, sizes

    @property
    def _cost(self) -> float:
        """The time of a statement, one of few work-items being 1."""
        return 1 + self.layout.lanes / _TWICE

    @property
    def is_small(self) -> bool:
        recorder = self.recorder
        number = len(self.masks) + sum(len(handler.patterns) for handler in recorder.handlers) + len(recorder.known)
        return number * recorder.layout.lanes <= _MOST_LANES

    def _namespace(self, bound: Bound) -> dict[str, Any]:
        names: dict[str, Any] = {
            "full": self.masks.full,
            "union": self.masks.union,
            "where": np.where,
            "put": self._put,
            "branch": self._branch(),
            "barrier": self._barrier,
            "ordered": self._ordered,
            "collective": self._collective,
            "image_size": self._image_size,
            "divide": self._divide,
            "work_item": self._work_item,
            "turned": self._turned,
            "watch": self._watch,
            "thin": self._thin,
            "log": self.context.log,
            "soon": SOON,
        }
        for number, (access, scale) in enumerate(self.code.accesses):
            is_image = isinstance(bound.buffers.get(access.variable or ""), ImageBuffer)
            kind = AtomicHandler if access.direction == "atomic" else ImageHandler if is_image else Handler
            handler = kind(self.context, access, scale, self.recorder.fold)
            self.recorder.handlers.append(handler)
            name = {"load": "read", "store": "write"}[access.direction] if is_image else access.direction
            names[f"{access.direction}{number}"] = getattr(handler, name)
        names.update((f"block_{number}", counts) for number, counts in enumerate(self.recorder.blocks))
        return names

    def _work_item(self, function: str, axis: Any) -> Values:
        return self.work_items.value(function, axis)

    def _start(self, register: low.Register) -> Values:
        type_ = plain(register.type)
        if register.parameter is not None and register.offset is not None:
            return number_at(self.bound.private[register.parameter], register.offset, type_)
        if register.parameter is not None:
            return self.bound.values[register.parameter]
        zero = element_of(type_).numpy.type(0)
        return np.full((type_.width, 1), zero) if isinstance(type_, Vector) else zero

    # --- what the code calls

    def _branch(self) -> Callable[[Mask, Values, int], tuple[Mask | None, Mask | None]]:
        went, split = self.recorder.went, self.masks.split

        def branch(mask: Mask, condition: Values, number: int) -> tuple[Mask | None, Mask | None]:
            sides = split(mask, condition) if condition.ndim else (mask, None) if condition else (None, mask)
            went[number][sides] += 1
            return sides

        return branch

    def _put(self, vector: Values, value: Values, components: list[int]) -> Values:
        """Returns a vector with some components replaced."""
        rows = value if value.ndim == 2 else np.atleast_1d(value)[np.newaxis]
        lanes = max(vector.shape[1], rows.shape[1])
        result = np.repeat(vector, lanes, axis=1) if vector.shape[1] != lanes else vector.copy()
        result[components] = rows
        return result

    def _barrier(self, mask: Mask, number: int) -> None:
        self.recorder.barriers[number][mask] += 1
        if not self.context.checks:
            return
        if len(mask.broken_groups):
            self._report_barrier(mask, number)
        self.races.barrier(mask)

    def _collective(
        self, mask: Mask, operation: str, by: str, is_of_group: bool, dtype: str, *operands: Values
    ) -> Values:
        size = self.layout.items if is_of_group else self.work_items.subgroup_size
        return collective(Teams(self.layout, mask, size), operation, by, np.dtype(dtype), *operands)

    def _image_size(self, name: str, function: str) -> Values:
        image = self.bound.buffers[name]
        assert isinstance(image, ImageBuffer)
        return image.property(function)

    def _ordered(self, mask: Mask) -> None:
        """Ends what may race in the groups of the active lanes, though only their sub-groups met."""
        if self.context.checks:
            self.races.barrier(mask)

    def _report_barrier(self, mask: Mask, number: int) -> None:
        group = mask.broken_groups[0]
        missing = int((~mask.bits & (self.layout.group_of == group)).nonzero()[0][0])
        place = self._barrier_places()[number]
        arrived = int(mask.items_of_groups[group])
        message = (
            f"{arrived} of the group's {self.layout.items} work-items meet the barrier, and work-item "
            f"{self.layout.local_ids(missing)} does not"
        )
        self.context.find("barrier divergence", place, message, missing, len(mask.broken_groups))

    def _barrier_places(self) -> Mapping[int, Place]:
        return {
            statement.number: statement.place
            for statement in walks.simple_statements(self.kernel.body)
            if isinstance(statement, low.Barrier)
        }

    def _divide(
        self, mask: Mask, form: Callable[[Values, Values], Values], left: Values, right: Values, number: int
    ) -> Values:
        if self.context.checks:
            zero = right == 0
            if zero.any():
                wrong = np.atleast_2d(np.broadcast_to(zero, (*right.shape[:-1], self.layout.lanes))).any(axis=0)
                chosen = (wrong & mask.bits).nonzero()[0]
                if len(chosen):
                    self._report_division(number, int(chosen[0]), len(chosen))
        return form(left, right)

    def _report_division(self, number: int, lane: int, count: int) -> None:
        message = "an integer is divided by zero, which may give any number"
        self.context.find("division by zero", self.code.divisions[number], message, lane, count)

    def _watch(self, number: int) -> Watch | None:
        return self.extrapolation.watch(self.code.plans[number]) if self.extrapolation else None

    def _thin(self, number: int, *state: Any) -> tuple[Turn, tuple[Values, ...] | None]:
        return self.thinning.iteration(self.code.rough_plans[number], *state)

    def _turned(self, steps: int, work: float, number: int, mask: Mask, values: tuple[Values, ...]) -> int:
        """Does what a loop does now and then: it stops if it took too long or waits for ever, and looks at a log that
        has grown. Returns the steps that may be left when it comes again."""
        if steps < 0 or work < self._least_work:
            loop = next(loop for loop in walks.loops(self.kernel.body) if loop.number == number)
            raise EndlessError(self.kernel.name, loop.name, str(loop.place))
        if len(self.context.log) > self.races.most_logged:
            self.races.shorten()
        return self.waiting.look(steps, number, mask, values)


def _variables(kernel: low.LoweredKernel, bound: Bound) -> tuple[tuple[str, str], ...]:
    types = {parameter.name: parameter.type for parameter in kernel.parameters}
    found = [(type_.space if isinstance(type_ := types[name], Pointer) else "global", name) for name in bound.buffers]
    found += [("local", name) for name in bound.locals]
    found += [
        (object_.space, object_.name) for object_ in kernel.objects if object_.is_of_program or object_.space == "local"
    ]
    return tuple(dict.fromkeys(found))


_SHELF: Shelf[Emulator] = Shelf()

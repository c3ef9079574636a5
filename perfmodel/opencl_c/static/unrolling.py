"""Says how often compilers write out the body of a loop, so that loads of several iterations are under way together.

The compiler to PTX writes a loop out as long as the copies stay short, and the assembler does so again with short ones.
The numbers are those of NVIDIA's compilers for compute capability 9.0, as their PTX and machine code show them
(docs/gpu-counting.md).
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping

from perfmodel.opencl_c import lowered as low
from perfmodel.opencl_c import walks
from perfmodel.opencl_c.operations import KernelOperations
from perfmodel.opencl_c.optimization import SHARED
from perfmodel.opencl_c.origins import Origins
from perfmodel.opencl_c.static.loop_counters import (
    bound_of,
    condition_of,
    end_of,
    is_scaled,
    leaves,
    moved_in,
    multiplies,
    note_number,
    number_added,
    parts_of,
    start_of,
    starts_of,
    step_of,
    takes_in_end,
    whole_number,
)
from perfmodel.opencl_c.types import INT

COPIES = 4
"""So many copies of a body each of the two compilers makes, the first also half as many."""
MOST_COPIED = 150
"""The compiler to PTX makes no more than so many instructions of a loop's body."""
MOST_ISSUED, MOST_ISSUED_NEAR = 45, 34
"""The assembler writes out a loop again whose body has no more than so many machine instructions; fewer where it loads
from local memory alone."""
MOST_PREDICATED = 16
"""Processors branch over more instructions than that under a condition."""
MOST_INLINED = 300
"""A loop whose number of iterations is known is written out as a whole, up to so many instructions."""
MOST_ASKED_FOR = 16 * 1024
"""The same where a pragma asks for it: LLVM's threshold (pragma-unroll-threshold). Accesses to private arrays count,
which become registers only then."""
WHOLE, STAYS = 0, 1
"""A pragma asks for a loop to be written out as a whole, or not at all."""
OF_GROUPS = frozenset(("get_global_id", "get_group_id"))
OF_ITEMS = frozenset(("get_global_id", "get_local_id", "get_sub_group_local_id", "get_local_linear_id"))
LINEAR = frozenset("+-*")
LONG = {
    "div": 10,
    "sqrt": 4,
    "exp": 8,
    "exp2": 4,
    "exp10": 8,
    "log": 12,
    "log2": 12,
    "log10": 12,
    "tanh": 12,
    "erf": 20,
}
"""So many instructions some operations on floats become."""
LONG_QUOTIENT = 14
"""So many instructions a division of whole numbers becomes."""
ISSUED = {**LONG, "rsqrt": 4, "native": 4, "exp": 12, "exp10": 12}
"""So many machine instructions they become."""
FOLDED = {**LONG, "madd": 2}
"""So many instructions they become before a product and a sum are joined."""


class Unrolling:
    """Finds how often the loops of a kernel are written out.

    Args:
        scratch: the private arrays that lie in memory.
    """

    def __init__(self, operations: KernelOperations, origins: Origins, scratch: Container[str]) -> None:
        self.operations, self.origins, self.scratch = operations, origins, scratch
        self.sizes: dict[low.Straight, int] = {}
        self.issued: dict[low.Straight, int] = {}

    def is_in_memory(self, access: low.Access) -> bool:
        """Returns whether an access goes to memory; one to a private array may be to registers."""
        return access.space != "private" or access.variable in self.scratch

    # --- lengths

    def size_of(self, block: low.Straight) -> int:
        """Returns the instructions of a block as the compiler to PTX weighs them: an access has an index to convert."""
        if block not in self.sizes:
            found = self.operations.of(block)
            length = 2 * len(list(self._accesses(block)))
            for (kind, dtype), times in (found.values + found.indices).items():
                is_quotient = kind in ("div", "mod") and not dtype.startswith("float")
                length += times * (LONG_QUOTIENT if is_quotient else LONG.get(kind, 1))
            self.sizes[block] = length
        return self.sizes[block]

    def issued_of(self, block: low.Straight) -> int:
        """Returns the machine instructions of a block in a loop that is written out: loads from global memory have an
        address to move."""
        if block not in self.issued:
            length = sum(2 if access.space in ("global", "constant") else 1 for access in self._accesses(block))
            self.issued[block] = length + self._values_of(block, ISSUED)
        return self.issued[block]

    def _folded(self, block: low.Straight, has_arrays: bool) -> int:
        """Returns the instructions of a block in each copy of a body whose index arithmetic becomes numbers."""
        nodes = [node.access for each in block.statements for node in walks.accesses_of(each)]
        return sum(has_arrays or self.is_in_memory(each) for each in nodes) + self._values_of(block, FOLDED)

    def _accesses(self, block: low.Straight) -> Iterable[low.Access]:
        nodes = (node.access for statement in block.statements for node in walks.accesses_of(statement))
        return filter(self.is_in_memory, nodes)

    def _values_of(self, block: low.Straight, long: Mapping[str, int]) -> int:
        return sum(times * long.get(kind, 1) for (kind, _), times in self.operations.of(block).values.items())

    def is_branched(self, branch: low.If) -> bool:
        """Returns whether a processor branches over what stands under a condition, so that what was loaded for it is
        waited for there, and no load beyond is issued before."""
        return self.is_long((*branch.then, *branch.otherwise))

    def is_long(self, statements: Iterable[low.Statement]) -> bool:
        """Returns whether statements are too many to be executed under a predicate."""
        return sum(map(self.issued_of, walks.straights(statements))) > MOST_PREDICATED

    def is_loading(self, branch: low.If) -> bool:
        """Returns whether memory is loaded from under a condition."""
        under = walks.straights((*branch.then, *branch.otherwise))
        loads = (node for block in under for each in block.statements for node in walks.accesses_of(each))
        return any(isinstance(each, low.Load) and self.is_in_memory(each.access) for each in loads)

    # --- as a whole

    def iterations_of(self, loop: low.Loop, numbers: Mapping[low.Register, int]) -> int | None:
        """Returns how many iterations a loop has that a compiler writes out as a whole; None for others.

        Args:
            numbers: registers whose values are known before the loop.
        """
        iterations = self._known_iterations(loop, numbers)
        if iterations is None or loop.unroll == STAYS:
            return None
        is_asked_for = loop.unroll == WHOLE
        length = iterations * self._inlined_length(loop.body, dict(numbers), is_asked_for)
        return iterations if length <= (MOST_ASKED_FOR if is_asked_for else MOST_INLINED) else None

    def _inlined_length(
        self, statements: Iterable[low.Statement], numbers: dict[low.Register, int], has_arrays: bool
    ) -> int:
        """Returns the instructions of statements once the loops in them are written out that will be.

        Args:
            has_arrays: whether accesses to private arrays count that will be registers.
        """
        length = 0
        for statement in statements:
            match statement:
                case low.Straight():
                    length += self._folded(statement, has_arrays)
                    for simple in statement.statements:
                        note_number(simple, numbers)
                case low.If():
                    length += self._inlined_length((*statement.then, *statement.otherwise), numbers, has_arrays)
                case low.Scope():
                    length += self._inlined_length(statement.body, numbers, has_arrays)
                case low.Loop():
                    times = self.iterations_of(statement, numbers) or 1
                    length += times * self._inlined_length(statement.body, numbers, has_arrays)
        return length

    def _known_iterations(self, loop: low.Loop, numbers: Mapping[low.Register, int]) -> int | None:
        """Returns how many iterations a loop has that counts over a distance that is a number; None for others."""
        step = step_of(loop)
        if step is None or leaves(loop):
            return None
        bound, start = bound_of(loop), numbers.get(step.register)
        distance = self._distance(loop, step) if bound is None or start is None else bound - start
        if distance is None:
            return None
        by = number_added(step)
        iterations = -(-distance * (1 if by > 0 else -1) // abs(by))
        return iterations if iterations > 0 else None

    def _distance(self, loop: low.Loop, step: low.Assign) -> int | None:
        """Returns how far a counter goes from what it starts at to an end that is a number beyond the same."""
        begin, end = start_of(step, self.operations.assigned), end_of(loop)
        if begin is None or end is None:
            return None
        (base, start), (same, bound) = self._beyond(begin), self._beyond(end)
        if base is None or base is not same or base in walks.registers_set(parts_of(loop)):
            return None
        return bound - start + takes_in_end(loop)

    def _beyond(self, value: low.Expression) -> tuple[low.Register | None, int]:
        """Returns the register that a value is a number beyond, and the number; None where it is beyond nothing."""
        value = walks.unconverted(value)
        if isinstance(value, low.Read):
            given = self.operations.assigned.get(value.register, [])
            is_shared = value.register.name.startswith(SHARED) and len(given) == 1
            return self._beyond(given[0]) if is_shared else (value.register, 0)
        if isinstance(value, low.Binary) and value.operator in ("+", "-"):
            for base, other in ((value.left, value.right), (value.right, value.left)):
                number = whole_number(other)
                if number is not None and (value.operator == "+" or other is value.right):
                    register, before = self._beyond(base)
                    return register, before + (number if value.operator == "+" else -number)
        return None, 0

    # --- in part

    def copies_of(
        self, loop: low.Loop, size: int, issued: int, loads: Iterable[low.Load], numbers: Mapping[low.Register, int]
    ) -> int:
        """Returns how often a loop's body is written out: by the compiler to PTX, and by the assembler again.

        Args:
            size, issued: the body's length, as `size_of` and `issued_of` give it.
            loads: the body's.
            numbers: registers whose values are known before the loop.
        """
        if loop.unroll == STAYS or leaves(loop):
            return 1
        step, loads = step_of(loop), tuple(loads)
        iterations = self._known_iterations(loop, numbers)
        copies = _copied(size, iterations)
        if step is None:
            return copies if self._moves_on(loop) else 1
        is_left = iterations is None and self._is_left(loop, step.register, loads, step.register in numbers)
        if is_left:
            copies = 1
        is_one_block = not any(map(self.is_branched, _conditions(loop)))
        is_near = all(load.access.space == "local" for load in loads)
        is_short = copies * issued <= (MOST_ISSUED_NEAR if loads and is_near else MOST_ISSUED) and is_one_block
        return copies * COPIES if is_short and (is_left or self._is_counted(loop, step.register, loads)) else copies

    def stays(self, loop: low.Loop) -> bool:
        """Returns whether NVIDIA's compiler of OpenCL C to PTX leaves a loop as it is that its CUDA C++ would copy.

        So loops stay that sum up neighbours in an array whose first place they compute from the number of the
        work-group and the work-item's own, and those that ask for such a number to see whether they have come to an end
        that belongs to them (``k <= get_global_id(0)``). Loops of so many iterations as no compiler knows stay as well
        if all of them are asked to be written out.
        """
        step, end = step_of(loop), end_of(loop)
        if loop.unroll == WHOLE:
            moved = moved_in(loop)
            starts = [] if moved is None else starts_of(moved, self.operations.assigned)
            return end is not None and self._is_known_late([end, *starts])
        if step is None or loop.unroll is not None or leaves(loop):
            return False
        if self._ends_by_items(loop) and end is not None and self._asks(end):
            return True
        if abs(number_added(step)) != 1 or any(True for _ in walks.loops(loop.body)):
            return False
        nodes = [node for each in walks.simple_statements(loop.body) for node in walks.accesses_of(each)]
        near = [each for each in nodes if each.access.space != "private"]
        if not all(isinstance(each, low.Load) for each in near):
            return False
        behind = {each: list(self.origins.behind([each.pointer])) for each in near}
        if (
            end is not None
            and whole_number(end) is not None
            and any(each.access.space == "local" or multiplies(parts, step.register) for each, parts in behind.items())
        ):
            return False
        return any(
            each.access.space == "global"
            and any(isinstance(part, low.Read) and part.register is step.register for part in parts)
            and not multiplies(parts, step.register)
            and self._asks(each.pointer)
            and self._is_of(OF_ITEMS, each.pointer)
            and (not is_scaled(parts, step.register) or not _has_rows_of_groups(parts))
            and all(r is step.register or r.parameter is not None for r in walks.registers_read(each.pointer))
            for each, parts in behind.items()
        )

    def _is_known_late(self, values: Iterable[low.Expression]) -> bool:
        """Returns whether values follow from what only a launch tells: arguments, ids, or memory."""
        return any(
            isinstance(part, low.WorkItem | low.Load)
            or (isinstance(part, low.Read) and part.register.parameter is not None)
            for part in self.origins.behind(values)
        )

    def _moves_on(self, loop: low.Loop) -> bool:
        """Returns whether a loop's counter moves by an int, which must not overflow, so that it is known beforehand how
        many iterations come: enough for the compiler to PTX, while the assembler needs a number."""
        moved = moved_in(loop)
        if moved is None or end_of(loop) is None or moved.register.type != INT:
            return False
        value = moved.value
        if not isinstance(value, low.Binary) or value.operator != "+" or value.type != INT:
            return False
        by = value.right if isinstance(value.left, low.Read) and value.left.register is moved.register else value.left
        return not walks.registers_set(parts_of(loop)) & set(walks.registers_read(by))

    def _is_left(self, loop: low.Loop, counter: low.Register, loads: Iterable[low.Load], starts: bool) -> bool:
        """Returns whether the compiler to PTX leaves a loop to the assembler, as it is.

        It does so where work-items have ends of their own that belong to the loop (``<=``), and where they do no more
        than go through places of an array that the loop itself computes from the number of the work-group.

        Args:
            starts: whether the counter starts at a number.
        """
        if self._ends_by_items(loop):
            return True
        if not starts or any(True for _ in walks.loops(loop.body)) or self._stores(loop):
            return False
        return any(self._is_moved_by_number(each.pointer, counter) and self._asks(each.pointer) for each in loads)

    def _ends_by_items(self, loop: low.Loop) -> bool:
        """Returns whether work-items have ends of their own that belong to the loop (``<=``)."""
        condition = condition_of(loop)
        is_up_to = isinstance(condition, low.Binary) and condition.operator in ("<=", ">=")
        return is_up_to and self._is_of(OF_ITEMS, end_of(loop))

    def _asks(self, value: low.Expression) -> bool:
        """Returns whether an expression itself asks for the number of the work-group, as the source has it."""
        for part in walks.walk(value):
            if isinstance(part, low.WorkItem) and part.function in OF_GROUPS:
                return True
            if isinstance(part, low.Read) and part.register.name.startswith(SHARED):
                given = self.origins.given_by(part.register)
                return any(self._asks(each) for statement in given for each in walks.expressions_of(statement))
        return False

    def _stores(self, loop: low.Loop) -> bool:
        nodes = (node for each in walks.simple_statements(loop.body) for node in walks.accesses_of(each))
        return any(isinstance(each, low.Store) and each.access.space == "global" for each in nodes)

    def _is_counted(self, loop: low.Loop, counter: low.Register, loads: Iterable[low.Load]) -> bool:
        """Returns whether a loop in PTX ends by a counter that moves by a number, as the assembler needs it.

        Another end is there where the counter is no int, or stands in a condition or in a remainder as well; and where
        an index that moves by more than one from a place that differs between work-items is kept beside it. Where data
        say how long a loop is, it is mostly too short.
        """
        if counter.type != INT or self._is_loaded(loop) or self._decides(loop, counter):
            return False
        pointers = [each.pointer for each in loads]
        if not all(self._is_linear(each, counter) for each in pointers):
            return False
        return not any(
            is_scaled(self.origins.behind([each]), counter) and self._is_of(OF_ITEMS, each) for each in pointers
        )

    def _is_loaded(self, loop: low.Loop) -> bool:
        bound = end_of(loop)
        return bound is None or any(isinstance(each, low.Load) for each in self.origins.behind([bound]))

    def _decides(self, loop: low.Loop, counter: low.Register) -> bool:
        """Returns whether conditions within a loop follow from its counter, other than by what is loaded."""
        waiting: list[low.Expression] = [low.Read(each.condition.type, each.condition) for each in _conditions(loop)]
        seen: set[low.Register] = set()
        while waiting:
            each = waiting.pop()
            if isinstance(each, low.Read) and each.register not in seen:
                seen.add(each.register)
                given = self.origins.given_by(each.register)
                waiting += [value for statement in given for value in walks.expressions_of(statement)]
            elif not isinstance(each, low.Load):
                waiting += walks.parts(each)
        return counter in seen

    def _is_of(self, functions: frozenset[str], value: low.Expression | None) -> bool:
        behind = self.origins.behind([] if value is None else [value])
        return any(isinstance(each, low.WorkItem) and each.function in functions for each in behind)

    def _is_moved_by_number(self, pointer: low.Expression, counter: low.Register) -> bool:
        behind = list(self.origins.behind([pointer]))
        is_moved = any(isinstance(each, low.Read) and each.register is counter for each in behind)
        return is_moved and not multiplies(behind, counter)

    def _is_linear(self, pointer: low.Expression, counter: low.Register) -> bool:
        """Returns whether an address moves with a counter step by step, if at all: no remainder of it is in it."""
        operations = (each for each in self.origins.behind([pointer]) if isinstance(each, low.Binary))
        return all(each.operator in LINEAR or counter not in walks.registers_read(each) for each in operations)


def _copied(size: int, iterations: int | None) -> int:
    """Returns the copies that the compiler to PTX makes of a body, which go into the iterations if these are known."""
    most = MOST_COPIED // max(size, 1)
    if iterations is None:
        return next((copies for copies in (COPIES, COPIES // 2) if copies <= most), 1)
    return max(copies for copies in range(1, max(min(most, iterations), 1) + 1) if iterations % copies == 0)


def _conditions(loop: low.Loop) -> Iterator[low.If]:
    return (each for each in walks.statements(loop.body) if isinstance(each, low.If))


def _has_rows_of_groups(parts: Iterable[object]) -> bool:
    """Returns whether a part of an address is the number of a work-group times what is no number."""
    products = [each for each in parts if isinstance(each, low.Binary) and each.operator == "*"]
    return any(
        whole_number(other) is None and any(isinstance(part, low.WorkItem) for part in walks.walk(own))
        for each in products
        for own, other in ((each.left, each.right), (each.right, each.left))
    )

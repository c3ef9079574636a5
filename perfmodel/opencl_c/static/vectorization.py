"""Finds what a processor's compiler, which makes vectors of work-items, does not see of a lowered kernel.

Intel's compiler takes work-items along the first axis as lanes of vectors. Two things in a source keep it from that,
as its build log and its machine code say of kernels of many kinds: indices of 32 bits, which might wrap around from one
work-item to the next, and functions of vectors, which it cannot widen.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Set
from enum import Enum
from functools import cached_property

from perfmodel.opencl_c import lowered as low
from perfmodel.opencl_c import walks
from perfmodel.opencl_c.operations import KernelOperations
from perfmodel.opencl_c.types import Vector, width_of
from perfmodel.opencl_c.visitor import walk as nodes_within

LANE_IDS = frozenset(("get_global_id", "get_local_id", "get_global_linear_id", "get_local_linear_id"))


class Form(Enum):
    """A form says how a whole number depends on the place of a work-item along the first axis.

    Attributes:
        NUMBER: not at all, as it is written in the source.
        SAME: not at all.
        WIDE: a place, plus what is the same for all, of 64 bits, or too small to wrap around.
        NARROW: a place of 32 bits, plus numbers.
        SUM: a place of 32 bits, plus something else that is the same for all, which is known not to overflow.
        OTHER: in any other way.
    """

    NUMBER = 0
    SAME = 1
    WIDE = 2
    NARROW = 3
    SUM = 4
    OTHER = 5

    @property
    def is_same(self) -> bool:
        return self in (Form.NUMBER, Form.SAME)


class Vectorization:
    """Says which accesses of a kernel are of neighbours that a compiler does not see.

    Args:
        written_out: the names of loops that compilers write out as a whole, so that their counters are numbers.
    """

    def __init__(self, kernel: low.LoweredKernel, operations: KernelOperations, written_out: Container[str]) -> None:
        self.kernel, self.assigned = kernel, operations.assigned
        self._forms: dict[low.Register, Form] = {}
        loops = list(walks.loops(kernel.body))
        counters = {
            register for loop in loops if loop.name in written_out for register in walks.registers_set(loop.step)
        }
        self._set_in_loops = _set_in(loops)
        self._set_in_staying = _set_in([loop for loop in loops if loop.name not in written_out]) - counters

    def hides_neighbours(self, pointer: low.Expression) -> bool:
        """Returns whether a compiler can't tell that an access of neighbouring work-items is one of neighbouring
        places, if it is: an index of 32 bits may have wrapped around in between."""
        for index, scale in self._indices(pointer):
            form = self.form(index)
            if form is Form.OTHER or (form is Form.NARROW and scale > 1) or self._is_bounded_by_what_it_lacks(index):
                return True
            if form is Form.SUM and (_is_unsigned(index) or self._moves_apart(index)):
                return True
        return False

    def _is_bounded_by_what_it_lacks(self, index: low.Expression) -> bool:
        """Returns whether an index is a place less a number that the kernel asks whether the place reaches: it is not
        negative then, and widened otherwise than the place."""
        lacks = self._difference(index)
        return lacks is not None and lacks in self._asked

    def _difference(self, value: low.Expression) -> tuple[low.Register, low.Register] | None:
        """Returns the place of 32 bits and the number of the launch or of a loop of which a value is the difference."""
        value = walks.unconverted(value)
        if isinstance(value, low.Read) and len(self._values(value.register)) == 1:
            return self._difference(self._values(value.register)[0])
        if not isinstance(value, low.Binary) or value.operator != "-":
            return None
        return self._place_and_number(value.left, value.right)

    def _place_and_number(
        self, left: low.Expression, right: low.Expression
    ) -> tuple[low.Register, low.Register] | None:
        if not (isinstance(left, low.Read) and isinstance(right, low.Read)):
            return None
        is_place = left.type.size == 4 and self.form(left) in (Form.WIDE, Form.NARROW)
        is_asked = is_place and self.form(right) is Form.SAME
        return (left.register, right.register) if is_asked else None

    @cached_property
    def _asked(self) -> set[tuple[low.Register, low.Register] | None]:
        """The places that the kernel compares with what is the same for all, from above."""
        found: set[tuple[low.Register, low.Register] | None] = set()
        for statement in walks.simple_statements(self.kernel.body):
            for node in nodes_within(statement):
                if isinstance(node, low.Binary) and node.operator in (">", ">=", "<", "<="):
                    sides = (node.left, node.right) if node.operator in (">", ">=") else (node.right, node.left)
                    found.add(self._place_and_number(*sides))
        return found

    def _moves_apart(self, index: low.Expression) -> bool:
        """Returns whether an index is widened in parts, one of them in a loop: where a loop stays, or where a test of
        the place against a number says that it is not negative."""
        return self._is_moving(index, self._set_in_staying) or (
            self._is_bounded_below and self._is_moving(index, self._set_in_loops)
        )

    @cached_property
    def _is_bounded_below(self) -> bool:
        """True if the kernel asks whether a work-item's place of 32 bits is below a number."""
        return any(
            isinstance(node, low.Binary)
            and node.operator in ("<", ">=", ">", "<=")
            and {self.form(node.left), self.form(node.right)} == {Form.NARROW, Form.NUMBER}
            for statement in walks.simple_statements(self.kernel.body)
            for node in nodes_within(statement)
        )

    def _indices(self, pointer: low.Expression) -> list[tuple[low.Expression, int]]:
        """Returns the indices that an address is made of, each with the bytes that it counts."""
        found: list[tuple[low.Expression, int]] = []
        met: set[low.Register] = set()
        while True:
            match pointer:
                case low.Offset():
                    found.append((pointer.index, pointer.scale))
                    pointer = pointer.pointer
                case low.Read(register=register) if register not in met and len(self._values(register)) == 1:
                    met.add(register)
                    pointer = self._values(register)[0]
                case low.Reinterpret() | low.Convert():
                    pointer = pointer.operand
                case _:
                    return found

    def form(self, value: low.Expression) -> Form:
        """Returns how a whole number depends on the work-item's place."""
        match value:
            case low.Constant():
                return Form.NUMBER
            case low.Read():
                return self._form_of_register(value.register)
            case low.WorkItem():
                return _form_of_id(value)
            case low.Convert():
                return _converted(self.form(value.operand), value)
            case low.Binary():
                return self._joined(value)
            case low.Load():
                return Form.SAME if self._is_of_one_place(value) else Form.OTHER
        same = all(self.form(part).is_same for part in walks.parts(value))
        return Form.SAME if same else Form.OTHER

    def _is_of_one_place(self, load: low.Load) -> bool:
        """Returns whether all work-items load from one place of an array that they share."""
        is_shared = load.access.variable is not None and load.access.space != "private"
        return is_shared and all(self.form(index).is_same for index, _ in self._indices(load.pointer))

    def _joined(self, value: low.Binary) -> Form:
        left, right = self.form(value.left), self.form(value.right)
        if left.is_same and right.is_same:
            return max(left, right, key=lambda form: form.value)
        place, other = (left, right) if right.is_same else (right, left)
        if value.operator not in ("+", "-", "|") or not other.is_same or (value.operator == "-" and left.is_same):
            return Form.OTHER
        if place is Form.NARROW and value.type.size == 4:
            if _is_unsigned(value):
                return Form.OTHER
            return Form.SUM if other is Form.SAME else Form.NARROW
        return place

    def _form_of_register(self, register: low.Register) -> Form:
        if register not in self._forms:
            self._forms[register] = Form.SAME  # a counter, as far as it depends on itself
            forms = {self.form(value) for value in self._values(register)}
            if all(form.is_same for form in forms):
                found = Form.SAME
            elif len(self._values(register)) == 1:
                (found,) = forms
            elif Form.OTHER in forms or self._joins_others(register):
                found = Form.OTHER
            else:  # a counter that starts at a place goes on from there, and is widened with it
                found = Form.WIDE
            self._forms[register] = found
        return self._forms[register]

    def _joins_others(self, register: low.Register) -> bool:
        """Returns whether a register has values of its own on several ways, such as a place or a border, so that
        neighbours may have been given different ones: not a counter, which only one value begins."""
        return sum(register not in self._origins(value) for value in self._values(register)) > 1

    def _origins(self, value: low.Expression) -> set[low.Register]:
        """Returns the registers that a value follows from, those set in one place looked through."""
        met: set[low.Register] = set()
        left = list(walks.registers_read(value))
        while left:
            register = left.pop()
            if register not in met:
                met.add(register)
                values = self._values(register)
                if len(values) == 1:
                    left += walks.registers_read(values[0])
        return met

    def _values(self, register: low.Register) -> list[low.Expression]:
        return self.assigned.get(register, [])

    def _is_moving(self, value: low.Expression, moving: Set[low.Register]) -> bool:
        """Returns whether a value follows from registers that move."""
        return any(len(self._values(each)) > 1 and each in moving for each in self._origins(value))


def _set_in(loops: Iterable[low.Loop]) -> set[low.Register]:
    return {register for loop in loops for register in walks.registers_set((*loop.test, *loop.body, *loop.step))}


def operations_of_scalar_code(kernel: low.LoweredKernel) -> float:
    """Returns how many operations an instruction does on average where a compiler makes no vectors of work-items; 0
    where it makes some.

    It does one work-item after the other where a kernel calls functions of vectors, or moves vectors that need not be
    aligned. The vectors of the source are what instructions work on then.
    """
    if not any(map(_is_apart, _nodes(kernel))):
        return 0.0
    widths = [width_of(node.type) for node in _nodes(kernel) if isinstance(node, low.Binary | low.Unary | low.Call)]
    return sum(widths) / len(widths) if widths else 1.0


def _nodes(kernel: low.LoweredKernel) -> Iterator[object]:
    return (node for statement in walks.simple_statements(kernel.body) for node in nodes_within(statement))


def _is_apart(node: object) -> bool:
    match node:
        case low.Call():
            return any(isinstance(each.type, Vector) for each in (node, *node.arguments))
        case low.Convert():
            return isinstance(node.type, Vector) and bool(node.saturate or node.rounding)
        case low.Load() | low.Store():
            return isinstance(node.access.type, Vector) and node.access.alignment < node.access.bytes
    return False


def _is_unsigned(value: low.Expression) -> bool:
    return getattr(value.type, "dtype", "").startswith("u")


def _form_of_id(value: low.WorkItem) -> Form:
    return Form.WIDE if differs_between_lanes(value) else Form.SAME


def differs_between_lanes(value: low.WorkItem) -> bool:
    """Returns whether an id differs between work-items side by side along the first axis."""
    is_first = not isinstance(value.axis, low.Constant) or value.axis.value == 0
    return is_first and value.function in LANE_IDS


def _converted(form: Form, value: low.Convert) -> Form:
    if form.is_same or form is Form.OTHER:
        return form
    size = value.type.size
    if form is Form.WIDE and value.operand.type.size == 8 and size == 4:
        # A place in a work-group is known to be small, but not as a number without a sign.
        return Form.WIDE if _is_local_id(value.operand) and not _is_unsigned(value) else Form.NARROW
    return Form.OTHER if size < 4 else form


def _is_local_id(value: low.Expression) -> bool:
    return isinstance(value, low.WorkItem) and "local" in value.function

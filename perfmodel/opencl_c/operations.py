"""The arithmetic of a lowered kernel's blocks is found by kind and type, as `OperationCount` counts it.

What work-items compute to know where and whether to work is left out, as for Loopy programs: whole numbers that
follow from sizes and coordinates alone and end in addresses or conditions. They are kept apart as index arithmetic.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from perfmodel.basics.graphs import reached
from perfmodel.counting.called_functions import has_reciprocal, operations_of, widened
from perfmodel.counting.chains import Operations
from perfmodel.opencl_c import lowered as low
from perfmodel.opencl_c import three_inputs, walks
from perfmodel.opencl_c.arithmetic import COMPARISONS
from perfmodel.opencl_c.types import BOOL, Pointer, Scalar, Vector, element_of, is_float, width_of

Operation: TypeAlias = tuple[str, str, int]
"""An operation is a kind, a type, and how often one work-item does it."""
OwnOperations: TypeAlias = Callable[[low.Expression], Iterator[Operation]]

_KINDS = {
    "+": "add",
    "-": "add",
    "*": "mul",
    "/": "div",
    "%": "mod",
    "&": "bitwise",
    "|": "bitwise",
    "^": "bitwise",
    "<<": "shift",
    ">>": "shift",
    **dict.fromkeys(COMPARISONS, "compare"),
}

_JOINED = {"add": "add", "mul": "mul", "min": "min", "max": "max"}
"""The kinds of operations that join values of a collective function; others are bitwise."""


@dataclass(frozen=True)
class BlockOperations:
    """One execution of a block does these: what is computed from data or for results, and index arithmetic.

    Attributes:
        roots: the addresses, and the whole numbers that end in addresses and conditions, with the operations of each.
    """

    values: Operations
    roots: tuple[tuple[low.Expression, Operations], ...]

    @cached_property
    def indices(self) -> Operations:
        return sum((operations for _, operations in self.roots), Operations())


class KernelOperations:
    """Decides which of a kernel's operations count, and how many each block has.

    Args:
        as_compiled: whether they are those of a compiled kernel: conversions between whole numbers and floats are
            operations, and quotients by numbers that are known are products and shifts.

    Attributes:
        of_data: registers whose values depend on what is in memory.
        of_floats: registers whose values are computed with floats, or by turning bits round: no index arithmetic is,
            whatever it ends in.
        of_values: registers whose values end in memory, or decide on data, and those that such values follow from.
    """

    def __init__(self, kernel: low.LoweredKernel, as_compiled: bool = False) -> None:
        self.kernel = kernel
        compiled = exactly_compiled_operations if kernel.is_exact else compiled_operations
        self.own = compiled if as_compiled else own_operations
        steps = (walks.straights(loop.step) for loop in walks.loops(kernel.body))
        self.steps = frozenset(block.number for own in steps for block in own)
        self.assigned: dict[low.Register, list[low.Expression]] = {}
        for statement in self.statements:
            if isinstance(statement, low.Assign):
                self.assigned.setdefault(statement.register, []).append(statement.value)
        self.of_data = self._of_data()
        self.of_floats = frozenset(
            register for register, values in self.assigned.items() if any(map(_is_no_index, values))
        )
        self.of_values = self._of_values()
        self._known: dict[int, BlockOperations] = {}

    @cached_property
    def blocks(self) -> tuple[low.Straight, ...]:
        return tuple(walks.straights(self.kernel.body))

    @property
    def statements(self) -> Iterator[low.Simple]:
        return (statement for block in self.blocks for statement in block.statements)

    def depends_on_data(self, expression: low.Expression) -> bool:
        return any(
            isinstance(part, low.Load) or (isinstance(part, low.Read) and part.register in self.of_data)
            for part in walks.walk(expression)
        )

    def _of_data(self) -> frozenset[low.Register]:
        found = {
            statement.result
            for statement in self.statements
            if isinstance(statement, low.Atomic | low.Collective) and statement.result is not None
        }
        self.of_data = frozenset(found)
        while True:
            more = {
                register
                for register, values in self.assigned.items()
                if register not in found and any(map(self.depends_on_data, values))
            }
            if not more:
                return self.of_data
            found |= more
            self.of_data = frozenset(found)

    def _of_values(self) -> frozenset[low.Register]:
        ends = [
            expression
            for statement in self.statements
            if isinstance(statement, low.Store | low.Atomic)
            for expression in ((statement.value,) if isinstance(statement, low.Store) else statement.operands)
        ]
        ends += [
            operand
            for statement in self.statements
            if isinstance(statement, low.Collective)
            for operand in statement.operands
        ]
        ends += [value for register, values in self.assigned.items() if register in self.of_data for value in values]
        ends += [value for values in self.assigned.values() for value in values if _is_no_index(value)]

        def behind(values: Iterable[low.Expression]) -> Iterator[low.Register]:
            return (register for value in values for register in _read_for_value(value))

        return frozenset(reached(behind(ends), lambda register: behind(self.assigned.get(register, ()))))

    def counts(self, register: low.Register) -> bool:
        """Returns whether what is computed for a register counts."""
        return register in self.of_values or register in self.of_data or register in self.of_floats

    def is_private(self, register: low.Register) -> bool:
        """Returns whether a register is a variable of the source that values are computed with."""
        return register.parameter is None and not register.name.startswith("_") and self.counts(register)

    def of(self, block: low.Straight) -> BlockOperations:
        """Returns what one execution of a block does; loops gone through iteration by iteration ask again and again."""
        if block.number not in self._known:
            self._known[block.number] = self._counted(block)
        return self._known[block.number]

    def _counted(self, block: low.Straight) -> BlockOperations:
        values = Operations()
        roots: list[tuple[low.Expression, Operations]] = []
        for statement in block.statements:
            match statement:
                case low.Assign():
                    # Loops count their iterations, even where something is computed from the counter.
                    is_control = block.number in self.steps and statement.register not in self.of_data
                    counts = self.counts(statement.register) and not is_control
                    found = values if counts else Operations()
                    _Counter(found, roots, self.own).count(statement.value)
                    if not counts:
                        roots.append((statement.value, found))
                case low.Store():
                    counter = _Counter(values, roots, self.own)
                    counter.count_address(statement.pointer)
                    counter.count(statement.value)
                case low.Atomic():
                    counter = _Counter(values, roots, self.own)
                    counter.count_address(statement.pointer)
                    for operand in statement.operands:
                        counter.count(operand)
                case low.Collective():
                    counter = _Counter(values, roots, self.own)
                    for operand in statement.operands:
                        counter.count(operand)
                    if statement.by:
                        # So many values are joined by one operation less, which is one for each work-item.
                        type_ = statement.result.type
                        values[_JOINED.get(statement.by, "bitwise"), element_of(type_).dtype] += width_of(type_)
        return BlockOperations(+values, tuple((root, +found) for root, found in roots if +found))


class _Counter:
    def __init__(self, found: Operations, roots: list[tuple[low.Expression, Operations]], own: OwnOperations) -> None:
        self.found, self.roots, self.own = found, roots, own

    def count_address(self, pointer: low.Expression) -> None:
        """Counts an address, whose whole numbers are index arithmetic, whatever they depend on."""
        found = Operations()
        _Counter(found, self.roots, self.own).count(pointer, floats=self.found)
        self.roots.append((pointer, found))

    def count(self, expression: low.Expression, floats: Operations | None = None) -> None:
        if self.own is not own_operations and three_inputs.is_logic(expression):
            width, dtype = width_of(expression.type), widened(element_of(expression.type).dtype)
            for kind, times in three_inputs.instructions(expression).items():
                self.found[kind, dtype] += times * width
            for part in three_inputs.inputs(expression):
                self.count(part, floats)
            return
        for kind, dtype, times in self.own(expression):
            (floats if floats is not None and _is_of_floats(dtype) else self.found)[kind, dtype] += times
        for part in self.parts(expression):
            if isinstance(part, low.Load):
                self.count_address(part.pointer)
            else:
                self.count(part, floats)

    def parts(self, expression: low.Expression) -> list[low.Expression]:
        if isinstance(expression, low.Load):
            self.count_address(expression.pointer)
            return []
        if is_sum(expression):
            return summands(expression)
        if is_product(expression):
            return factors(expression)
        return walks.parts(expression)


def own_operations(expression: low.Expression) -> Iterator[Operation]:
    """Iterates over the operations that an expression does itself, without its operands."""
    match expression:
        case low.Binary() if is_sum(expression):
            yield from _joined(summands(expression), expression, "add")
        case low.Binary() if is_product(expression):
            yield from _joined(factors(expression), expression, "mul")
        case low.Binary():
            if expression.type == BOOL and expression.operator not in COMPARISONS:
                return  # joins conditions
            type_ = expression.left.type
            if isinstance(type_, Pointer) or type_ == BOOL or is_constant(expression):
                return
            element = element_of(type_)
            yield _KINDS[expression.operator], element.dtype, width_of(type_)
        case low.Unary(operator="~"):
            element = element_of(expression.type)
            yield "bitwise", element.dtype, width_of(expression.type)
        case low.Call():
            types = tuple(argument.type for argument in expression.arguments)
            result = expression.type
            # What a comparison of floats gives is an int; it is an operation of floats.
            typed = types[0] if types and isinstance(types[0], Scalar | Vector) and not is_float(result) else result
            if isinstance(typed, Scalar | Vector):
                element = element_of(typed)
                for kind, times in operations_of_call(expression).items():
                    yield kind, element.dtype, times


def operations_of_call(call: low.Call) -> Mapping[str, int]:
    """Returns the operations that one call does, by kind."""
    width = max((width_of(argument.type) for argument in call.arguments), default=1)
    power = power_by_products(call)
    return {"mul": (power - 1) * width, "compare": width} if power else operations_of(call.function, width)


def power_by_products(call: low.Call) -> int:
    """Returns the power that a call raises floats to by products: 2 or 3 by ``pown``, of which NVIDIA's library makes
    no other powers so; 0 for other calls."""
    if call.function != "pown" or element_of(call.type).dtype != "float32":
        return 0
    power = walks.unconverted(call.arguments[1])
    return int(power.value) if isinstance(power, low.Constant) and power.value in (2, 3) else 0


def exactly_compiled_operations(expression: low.Expression) -> Iterator[Operation]:
    """Iterates over the operations of an expression as compilers write it if floats are divided as IEEE says."""
    return compiled_operations(expression, is_exact=True)


def compiled_operations(expression: low.Expression, is_exact: bool = False) -> Iterator[Operation]:
    """Iterates over the operations of an expression as compilers write it."""
    if isinstance(expression, low.Convert):
        source, target = expression.operand.type, expression.type
        if isinstance(source, Scalar | Vector) and isinstance(target, Scalar | Vector) and BOOL not in (source, target):
            elements = {element_of(source), element_of(target)}
            floats = [element for element in elements if element.is_float]
            if floats and len(elements) > 1:
                widest = max(floats, key=lambda scalar: scalar.size)
                yield "convert", widest.dtype, width_of(target)
        return
    for kind, narrow, times in own_operations(expression):
        dtype = widened(narrow)
        if kind == "add" and not _is_of_floats(dtype):
            width = width_of(expression.type)
            times = width * three_inputs.sums(times // width)
        right = expression.right if isinstance(expression, low.Binary) else None
        is_multiplied = is_power_of_two(right) or (dtype == "float32" and not is_exact and _is_multiplied(right))
        if kind == "div" and _is_of_floats(dtype) and is_multiplied:
            yield "mul", dtype, times
            continue
        if kind not in ("div", "mod") or _is_of_floats(dtype) or not isinstance(right, low.Constant):
            yield kind, dtype, times
            continue
        for simpler, number in _quotient_by(int(right.value), kind, is_signed=not dtype.startswith("u")).items():
            yield simpler, dtype, number * times


def is_power_of_two(divisor: low.Expression | None) -> bool:
    """Returns whether a float is divided by a number whose reciprocal is exact, so that compilers multiply."""
    return isinstance(divisor, low.Constant) and abs(math.frexp(float(divisor.value))[0]) == 0.5


def _is_multiplied(divisor: low.Expression | None) -> bool:
    """Returns whether compilers multiply by a number's reciprocal, as NVIDIA's assembler does where both are normal
    numbers: OpenCL's quotients of 32 bits may be off a little."""
    if isinstance(divisor, low.Unary) and divisor.operator == "-":
        divisor = divisor.operand
    return isinstance(divisor, low.Constant) and has_reciprocal(float(divisor.value))


def _is_of_floats(dtype: str) -> bool:
    return dtype.startswith("float")


def _quotient_by(divisor: int, kind: str, is_signed: bool) -> dict[str, int]:
    """Returns what a compiler makes of a division of whole numbers by one that it knows, or of its remainder."""
    if divisor in (0, 1):
        return {}
    if divisor & (divisor - 1) == 0:
        if not is_signed:
            return {"shift" if kind == "div" else "bitwise": 1}
        # Negative numbers are rounded up: by what their sign bits add.
        return {"shift": 2, "add": 1} if kind == "div" else {"shift": 1, "add": 2, "bitwise": 1}
    quotient = {"mul": 1, "shift": 1, **({"add": 1} if is_signed else {})}
    return quotient if kind == "div" else {**quotient, "madd": 1}


def _joined(operands: list[low.Expression], expression: low.Expression, kind: str) -> Iterator[Operation]:
    """Iterates over the operations that join operands from left to right; those of constants alone cost nothing."""
    element, width = element_of(expression.type), width_of(expression.type)
    leading = 0
    while leading < len(operands) and is_constant(operands[leading]):
        leading += 1
    joins = len(operands) - max(leading, 1)
    if kind == "add":
        fused = min(joins, sum(is_multiplication(operand) for operand in operands))
        yield "madd", element.dtype, fused * width
        yield "mul", element.dtype, -fused * width
        joins -= fused
    yield kind, element.dtype, joins * width


def joined_operands(operands: list[low.Expression], sum_: low.Expression) -> Operations:
    """Returns the operations that join some of the operands of a sum."""
    found = Operations()
    for kind, dtype, times in _joined(operands, sum_, "add") if operands else ():
        found[kind, dtype] += times
    return found


def is_sum(expression: low.Expression) -> bool:
    return (
        isinstance(expression, low.Binary)
        and expression.operator in "+-"
        and isinstance(expression.type, Scalar | Vector)
    )


def is_product(expression: low.Expression) -> bool:
    return isinstance(expression, low.Binary) and expression.operator == "*"


def summands(expression: low.Expression) -> list[low.Expression]:
    """Returns what is added up in one type, from left to right; a change of sign is no operation."""
    if isinstance(expression, low.Binary) and is_sum(expression):
        return [*summands(expression.left), *summands(expression.right)]
    if isinstance(expression, low.Unary) and expression.operator == "-" and is_sum(expression.operand):
        return summands(expression.operand)
    return [expression]


def factors(expression: low.Expression) -> list[low.Expression]:
    """Returns what is multiplied in one type, without factors of one and minus one."""
    if isinstance(expression, low.Unary) and expression.operator == "-":
        return factors(expression.operand)
    if isinstance(expression, low.Binary) and expression.operator == "*":
        return [*factors(expression.left), *factors(expression.right)]
    value = walks.unconverted(expression)  # as of an int that meets a half
    if isinstance(value, low.Unary) and value.operator == "-":
        value = value.operand
    if isinstance(value, low.Constant) and value.value in (1, -1):
        return []
    return [expression]


def is_multiplication(expression: low.Expression) -> bool:
    while isinstance(expression, low.Unary) and expression.operator == "-":
        expression = expression.operand
    if not is_product(expression):
        return False
    operands = factors(expression)
    return len(operands) > 1 and not all(map(is_constant, operands))


def is_constant(expression: low.Expression) -> bool:
    return all(isinstance(part, low.Constant) or walks.parts(part) for part in walks.walk(expression)) and not any(
        isinstance(part, low.Load | low.WorkItem | low.Call) for part in walks.walk(expression)
    )


def _is_no_index(value: low.Expression) -> bool:
    """Returns whether a value is a float or is computed with one, or with bits that are turned round."""
    return any(
        (isinstance(part.type, Scalar | Vector) and is_float(part.type)) or three_inputs.rotates(part)
        for part in walks.walk(value)
    )


def _read_for_value(expression: low.Expression) -> Iterator[low.Register]:
    """Iterates over the registers that an expression's value is computed from, not only its addresses."""
    if isinstance(expression, low.Read):
        yield expression.register
    elif not isinstance(expression, low.Load):
        for part in walks.parts(expression):
            yield from _read_for_value(part)

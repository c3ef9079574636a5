"""Built-ins that are no functions of values are lowered here: work-items, memory, conversions, synchronization."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perfmodel.basics.errors import SourceError
from perfmodel.opencl_c import lowered as low
from perfmodel.opencl_c import syntax as syn
from perfmodel.opencl_c.lowering.builder import Emission
from perfmodel.opencl_c.lowering.builtin_names import ATOMICS, BY_POINTER, FENCES, WORK_ITEM, Conversion, VectorAccess
from perfmodel.opencl_c.lowering.folding import converted
from perfmodel.opencl_c.lowering.lvalues import InMemory
from perfmodel.opencl_c.lowering.source_text import text_of
from perfmodel.opencl_c.types import HALF, INT, Pointer, Scalar, Vector, element_of

if TYPE_CHECKING:
    from perfmodel.opencl_c.lowering.expressions import Expressions


class BuiltinCalls:
    """Lowers calls of built-in functions."""

    def __init__(self, out: Emission, expressions: Expressions) -> None:
        self.out, self.expressions, self.places = out, expressions, expressions.places

    def value(self, expression: syn.BuiltinCall, wanted: bool) -> low.Expression:
        """Returns the value of a call; anything if it is not wanted."""
        name, type_ = expression.name, expression.type
        nothing = low.Constant(INT, 0)
        if name in WORK_ITEM:
            axis = self.expressions.value(expression.arguments[0]) if expression.arguments else None
            return low.WorkItem(type_, name, axis)
        if name in FENCES:
            if FENCES[name]:
                self.out.emit(low.Barrier(self.out.barriers, expression.place))
                self.out.barriers += 1
            return nothing
        if name == "prefetch":
            return nothing
        if name.startswith(("atomic_", "atom_")):
            return self.atomic(expression, wanted)
        if (vector := VectorAccess.of(name)) is not None:
            return self.vector_access(expression, vector)
        if (conversion := Conversion.of(name)) is not None:
            operand = self.expressions.value(expression.arguments[0])
            return low.Convert(type_, operand, conversion.rounding, conversion.saturate)
        if name.startswith("as_"):
            return low.Reinterpret(type_, self.expressions.value(expression.arguments[0]))
        if name in BY_POINTER and isinstance(expression.arguments[-1].type, Pointer):
            return self.by_pointer(expression)
        arguments = tuple(self.expressions.value(argument) for argument in expression.arguments)
        return low.Call(type_, name, arguments)

    def atomic(self, expression: syn.BuiltinCall, wanted: bool) -> low.Expression:
        operation = expression.name.removeprefix("atomic_").removeprefix("atom_")
        pointer, *operands = (self.expressions.value(argument) for argument in expression.arguments)
        if operation not in ATOMICS or not isinstance(pointer.type, Pointer):
            raise SourceError(
                f"{expression.name} is not supported; use the atomic functions of OpenCL C 1.2", *expression.place
            )
        place = InMemory(pointer, pointer.type.target, pointer.type.target.alignment)
        result = self.out.register("_old", place.type) if wanted else None
        text = text_of(expression.arguments[0])
        self.out.emit(
            low.Atomic(
                operation=operation,
                pointer=pointer,
                operands=tuple(operands),
                result=result,
                access=self.places.access("atomic", place, text),
            )
        )
        return low.Constant(INT, 0) if result is None else low.Read(place.type, result)

    def vector_access(self, expression: syn.BuiltinCall, access: VectorAccess) -> low.Expression:
        """Lowers vloadn, vstoren and their forms for half precision."""
        *data, index, pointer = (self.expressions.value(argument) for argument in expression.arguments)
        assert isinstance(pointer.type, Pointer)
        element = HALF if access.is_half else element_of(pointer.type.target)
        type_: Scalar | Vector = element if access.width == 1 else Vector(element, access.width)
        apart = type_.size if access.is_aligned else element.size * access.width
        alignment = type_.alignment if access.is_aligned else element.size
        moved = low.Offset(Pointer(type_, pointer.type.space), pointer, index, apart)
        place = InMemory(moved, type_, alignment)
        text = text_of(expression)
        if not data:
            loaded = low.Load(type_, moved, self.places.access("load", place, text))
            return converted(loaded, expression.type)
        value = low.Convert(type_, data[0], access.rounding) if access.is_half else data[0]
        self.out.emit(low.Store(moved, value, self.places.access("store", place, text)))
        return low.Constant(INT, 0)

    def by_pointer(self, expression: syn.BuiltinCall) -> low.Expression:
        """Lowers a function with a second result: what it stores is a call of its own."""
        *values, pointer = expression.arguments
        arguments = tuple(self.out.held(self.expressions.value(value), "_argument") for value in values)
        if isinstance(pointer, syn.Convert):
            pointer = pointer.operand
        if isinstance(pointer, syn.AddressOf):
            target = self.expressions.lvalue(pointer.target)
        else:
            address = self.expressions.value(pointer)
            assert isinstance(address.type, Pointer)
            target = InMemory(address, address.type.target, address.type.target.alignment)
        assert isinstance(pointer.type, Pointer)
        second = low.Call(pointer.type.target, f"{expression.name}.1", arguments)
        first = self.out.held(low.Call(expression.type, f"{expression.name}.0", arguments), "_result")
        self.places.store_value(target, second, text_of(pointer))
        return first

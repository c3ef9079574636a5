"""Built-ins that are no functions of values are lowered here: work-items, memory, conversions, synchronization."""

from __future__ import annotations

from collections.abc import Sequence

from perfmodel.basics.errors import SourceError
from perfmodel.opencl_c import lowered as low
from perfmodel.opencl_c import syntax as syn
from perfmodel.opencl_c.lowering.builder import Emission
from perfmodel.opencl_c.lowering.builtin_names import (
    ATOMICS,
    BY_POINTER,
    COPIES,
    FENCES,
    WORK_ITEM,
    CollectiveFunction,
    Conversion,
    VectorAccess,
    atomic_operation,
    block_access,
)
from perfmodel.opencl_c.lowering.expression_traits import has_effects
from perfmodel.opencl_c.lowering.expressions import Expressions
from perfmodel.opencl_c.lowering.folding import as_bool, converted
from perfmodel.opencl_c.lowering.images import Images
from perfmodel.opencl_c.lowering.lvalues import InMemory, Lvalue
from perfmodel.opencl_c.lowering.memory_layout import unconverted
from perfmodel.opencl_c.lowering.points_to import space_of
from perfmodel.opencl_c.lowering.source_text import text_of
from perfmodel.opencl_c.types import BOOL, HALF, INT, UINT, ULONG, Pointer, Scalar, Vector, element_of


class BuiltinCalls:
    """Lowers calls of built-in functions."""

    def __init__(self, out: Emission, expressions: Expressions) -> None:
        self.out, self.expressions, self.places = out, expressions, expressions.places
        self.images = Images(out, expressions)

    def value(self, expression: syn.BuiltinCall, wanted: bool) -> low.Expression:
        """Returns the value of a call; anything if it is not wanted."""
        name, type_ = expression.name, expression.type
        nothing = low.Constant(INT, 0)
        if name in WORK_ITEM:
            axis = self.expressions.value(expression.arguments[0]) if expression.arguments else None
            return low.WorkItem(type_, name, axis)
        if name in FENCES:
            if FENCES[name]:
                self.barrier(expression.place)
            return nothing
        if name == "sub_group_barrier":
            self.out.emit(low.Barrier(-1, expression.place, is_of_group=False))
            return nothing
        if name in ("prefetch", "printf"):
            for argument in expression.arguments:
                if has_effects(argument):
                    self.expressions.effects(argument)
            return nothing
        if name in COPIES:
            self.copy(expression)
            return low.Constant(type_, 0)
        if name == "wait_group_events":
            self.barrier(expression.place)
            return nothing
        if name.startswith(("atomic_compare_exchange", "atomic_flag")):
            return self.decided_atomic(expression)
        if name.startswith(("atomic_", "atom_")):
            return self.atomic(expression, wanted)
        if "_image" in name:
            return self.images.value(expression)
        if (collective := CollectiveFunction.of(name)) is not None:
            return self.collective(expression, collective)
        if (block := block_access(name)) is not None:
            return self.block_access(expression, *block)
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

    def barrier(self, place: syn.Place) -> None:
        self.out.emit(low.Barrier(self.out.barriers, place))
        self.out.barriers += 1

    # --- atomics

    def atomic(self, expression: syn.BuiltinCall, wanted: bool) -> low.Expression:
        operation = atomic_operation(expression.name)
        if operation not in ATOMICS:
            raise SourceError(
                f"{expression.name} is not supported; use the atomic functions of OpenCL C 1.2", *expression.place
            )
        given = [self.expressions.value(argument) for argument in expression.arguments[: ATOMICS[operation] + 1]]
        return self.changed(expression, operation, given[0], given[1:], wanted)

    def changed(
        self,
        expression: syn.BuiltinCall,
        operation: str,
        pointer: low.Expression,
        operands: Sequence[low.Expression],
        wanted: bool,
    ) -> low.Expression:
        """Returns what was in memory before an atomic, if that is wanted."""
        assert isinstance(pointer.type, Pointer)
        place = InMemory(pointer, pointer.type.target, pointer.type.target.alignment)
        result = self.out.register("_old", place.type) if wanted else None
        self.out.emit(
            low.Atomic(
                operation=operation,
                pointer=pointer,
                operands=tuple(converted(operand, place.type) for operand in operands),
                result=result,
                access=self.places.access("atomic", place, text_of(expression.arguments[0])),
            )
        )
        return low.Constant(INT, 0) if result is None else low.Read(place.type, result)

    def decided_atomic(self, expression: syn.BuiltinCall) -> low.Expression:
        """Lowers an atomic that returns whether something was so; a comparison also says what was there."""
        pointer = self.expressions.value(expression.arguments[0])
        assert isinstance(pointer.type, Pointer)
        type_, one = pointer.type.target, low.Constant(pointer.type.target, 1)
        if expression.name.startswith("atomic_flag_clear"):
            return self.changed(expression, "store", pointer, [low.Constant(type_, 0)], wanted=False)
        if expression.name.startswith("atomic_flag"):
            return as_bool(self.changed(expression, "xchg", pointer, [one], wanted=True))
        target = self.pointed_to(expression.arguments[1])
        text = text_of(expression.arguments[1])
        expected = self.out.held(self.places.load(target, type_, text), "_expected")
        desired = self.expressions.value(expression.arguments[2])
        old = self.changed(expression, "cmpxchg", pointer, [expected, desired], wanted=True)
        result = self.out.held(low.Binary(BOOL, "==", old, expected), "_result")
        self.places.store_value(target, old, text)
        return result

    # --- work-items together

    def collective(self, expression: syn.BuiltinCall, collective: CollectiveFunction) -> low.Expression:
        result = self.out.register("_together", expression.type)
        self.out.emit(
            low.Collective(
                operation=collective.operation,
                by=collective.by,
                kind=collective.kind,
                is_of_group=collective.is_of_group,
                operands=tuple(self.expressions.value(argument) for argument in expression.arguments),
                result=result,
                place=expression.place,
            )
        )
        return low.Read(result.type, result)

    def block_access(self, expression: syn.BuiltinCall, is_store: bool, width: int) -> low.Expression:
        """Lowers an access in which the work-items of a sub-group take neighbouring numbers, `width` times."""
        pointer = self.out.held(self.expressions.value(expression.arguments[0]), "_block")
        assert isinstance(pointer.type, Pointer)
        type_ = element_of(pointer.type.target)
        value = self.out.held(self.expressions.value(expression.arguments[1]), "_value") if is_store else None
        own = converted(low.WorkItem(UINT, "get_sub_group_local_id", None), ULONG)
        apart = converted(low.WorkItem(UINT, "get_max_sub_group_size", None), ULONG)
        text = text_of(expression)
        parts: list[low.Expression] = []
        for number in range(width):
            before = low.Binary(ULONG, "*", low.Constant(ULONG, number), apart)
            index = low.Binary(ULONG, "+", before, own) if number else own
            place = InMemory(low.Offset(pointer.type, pointer, index, type_.size), type_, type_.size)
            if value is None:
                parts.append(self.places.load(place, type_, text))
            else:
                self.places.store_value(place, value if width == 1 else low.Pick(type_, value, (number,)), text)
        if not parts:
            return low.Constant(INT, 0)
        return self.out.held(parts[0] if width == 1 else low.Join(expression.type, tuple(parts)), "_read")

    # --- copies

    def copy(self, expression: syn.BuiltinCall) -> None:
        """Lowers a copy by the whole group to a loop, in which every work-item takes its share."""
        to, from_, number, *rest = expression.arguments
        target, source = (self.out.held(self.expressions.value(side), "_side") for side in (to, from_))
        assert isinstance(target.type, Pointer)
        assert isinstance(source.type, Pointer)
        many = self.out.held(converted(self.expressions.value(number), ULONG), "_many")
        steps = {"to": 1, "from": 1}
        stride: low.Expression | None = None
        if expression.name == "async_work_group_strided_copy":
            stride = self.out.held(converted(self.expressions.value(rest[0]), ULONG), "_stride")
            is_load = space_of(target) == "local"
            steps["from" if is_load else "to"] = 0
        counter = self.out.register("_copied", ULONG)
        at = low.Read(ULONG, counter)
        together: low.Expression = low.WorkItem(ULONG, "get_local_size", low.Constant(UINT, 0))
        for axis in (1, 2):
            other = low.WorkItem(ULONG, "get_local_size", low.Constant(UINT, axis))
            together = low.Binary(ULONG, "*", together, other)
        self.out.assign(counter, low.WorkItem(ULONG, "get_local_linear_id", None))

        def place(pointer: low.Read, is_dense: int) -> InMemory:
            assert isinstance(pointer.type, Pointer)
            type_ = pointer.type.target
            index = at if is_dense or stride is None else low.Binary(ULONG, "*", at, stride)
            return InMemory(low.Offset(pointer.type, pointer, index, type_.size), type_, type_.alignment)

        def body(_: str) -> None:
            loading = place(source, steps["from"])
            loaded = self.places.load(loading, loading.type, text_of(from_))
            self.places.store_value(place(target, steps["to"]), loaded, text_of(to))

        self.out.loop(
            "copy",
            lambda: low.Binary(BOOL, "<", at, many),
            body,
            lambda: self.out.assign(counter, low.Binary(ULONG, "+", at, together)),
            expression.place,
        )

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
        target = self.pointed_to(pointer)
        assert isinstance(pointer.type, Pointer)
        second = low.Call(pointer.type.target, f"{expression.name}.1", arguments)
        first = self.out.held(low.Call(expression.type, f"{expression.name}.0", arguments), "_result")
        self.places.store_value(target, second, text_of(pointer))
        return first

    def pointed_to(self, pointer: syn.Expression) -> Lvalue:
        """Returns what a built-in function stores to; a variable whose address is given may be in a register."""
        place = unconverted(pointer)
        if isinstance(place, syn.AddressOf):
            return self.expressions.lvalue(place.target)
        address = self.expressions.value(pointer)
        assert isinstance(address.type, Pointer)
        return InMemory(address, address.type.target, address.type.target.alignment)

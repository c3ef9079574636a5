"""Expressions of the syntax tree become pure lowered ones; their effects become statements before them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from perfmodel.basics.errors import SourceError
from perfmodel.opencl_c import lowered as low
from perfmodel.opencl_c import syntax as syn
from perfmodel.opencl_c import walks
from perfmodel.opencl_c.arithmetic import COMPARISONS
from perfmodel.opencl_c.lowering.builder import Emission, Storage
from perfmodel.opencl_c.lowering.expression_traits import alignment_of, is_lvalue, is_simple
from perfmodel.opencl_c.lowering.folding import as_bool, converted, folded, inverted, program_constant
from perfmodel.opencl_c.lowering.lvalues import (
    InMemory,
    InRegister,
    Lvalue,
    LvalueEmitter,
    element_places,
    moved,
    whole,
)
from perfmodel.opencl_c.lowering.memory_layout import leaves
from perfmodel.opencl_c.lowering.source_text import text_of
from perfmodel.opencl_c.types import BOOL, LONG, Array, Pointer, Record, Scalar, Type, Vector


class Expressions:
    """Lowers expressions: their values, lvalues and effects.

    Args:
        inlined: emits a called function in place, and returns where its result is.
        statements: emits statements: those in the braces of an expression.
        builtin: lowers the call of a built-in function, and returns its value, which need not be one if nobody wants
            it.
    """

    def __init__(
        self,
        out: Emission,
        inlined: Callable[[syn.Call], Storage | None],
        statements: Callable[[Sequence[syn.Statement]], None],
        builtin: Callable[[syn.BuiltinCall, bool], low.Expression],
    ) -> None:
        self.out, self.inlined, self.statements, self.builtin = out, inlined, statements, builtin
        self.places = LvalueEmitter(out)

    # --- lvalues

    def lvalue(self, expression: syn.Expression) -> Lvalue:
        match expression:
            case syn.Name():
                return whole(self.out.frame.variables[expression.variable])
            case syn.Dereference():
                pointer = self.value(expression.pointer)
                return InMemory(pointer, expression.type, alignment_of(expression))
            case syn.Member():
                record = self.lvalue(expression.record)
                assert isinstance(record, InMemory)
                assert isinstance(record.type, Record)
                member = record.type.field(expression.name)
                return moved(record, member.offset, member.type)
            case syn.Swizzle():
                vector = self.lvalue(expression.vector)
                inner = vector.components
                picked = expression.components if inner is None else tuple(inner[c] for c in expression.components)
                if isinstance(vector, InRegister):
                    return InRegister(vector.register, picked)
                return InMemory(vector.pointer, vector.type, vector.alignment, picked)
            case syn.CompoundLiteral():
                variable = syn.Variable("literal", expression.type, "private", expression.place)
                storage = self.out.memory_object(variable, "private")
                self.initialize(storage, expression.initial, "literal")
                return whole(storage)
            case syn.Convert() if isinstance(expression.type, Record | Array):
                return self.lvalue(expression.operand)
            case syn.Conditional() if isinstance(expression.type, Record):
                return self.chosen_record(expression)
            case syn.Call() if isinstance(expression.type, Record):
                result = self.inlined(expression)
                assert isinstance(result, low.MemoryObject)
                return whole(result)
            case syn.Assign() if isinstance(expression.type, Record):
                target = self.lvalue(expression.target)
                self.put(target, expression.value, text_of(expression.target))
                return target
            case syn.Comma():
                self.effects(expression.first)
                return self.lvalue(expression.second)
            case syn.Block() if isinstance(expression.type, Record):
                self.statements(expression.statements)
                return self.lvalue(expression.value)
        raise SourceError(f"{text_of(expression)} has no address; assign it to a variable first", *expression.place)

    def chosen_record(self, expression: syn.Conditional) -> Lvalue:
        """Returns the struct that a condition chooses: where it lies, or a copy where both lie in other memory."""
        branches = expression.then, expression.otherwise
        decided, number, place = self.decided(expression.condition), self.out.branch(), self.out.place
        before = len(self.out.accesses)
        pointer = self.out.register("_chosen", Pointer(expression.type, "private"))
        types: list[Type] = []

        def choose(branch: syn.Expression) -> None:
            target = self.lvalue(branch)
            assert isinstance(target, InMemory)
            pointer.type = target.pointer.type
            types.append(pointer.type)
            self.out.assign(pointer, target.pointer)

        then, otherwise = (self.out.nested(partial(choose, branch)) for branch in branches)
        found = InMemory(low.Read(pointer.type, pointer), expression.type, expression.type.alignment)
        if types[0] != types[1]:
            del self.out.accesses[before:]
            variable = syn.Variable("chosen", expression.type, "private", expression.place)
            copied = whole(self.out.memory_object(variable, "private"))
            assert isinstance(copied, InMemory)
            found = copied
            then, otherwise = (self.out.nested(partial(self.put, found, each, text_of(each))) for each in branches)
        self.out.choice(
            low.If(number=number, condition=decided, then=then, otherwise=otherwise, place=place, is_choice=True)
        )
        return found

    def put(self, target: Lvalue, value: syn.Expression, text: str) -> None:
        """Assigns an expression, structs leaf by leaf."""
        if isinstance(value.type, Record):
            source = self.lvalue(value)
            assert isinstance(source, InMemory)
            assert isinstance(target, InMemory)
            for offset, type_ in leaves(value.type, self.out.place):
                part = self.places.load(moved(source, offset, type_), type_, text_of(value))
                self.places.store_value(moved(target, offset, type_), part, text)
        else:
            self.places.store_value(target, self.value(value), text)

    def initialize(self, storage: Storage, initial: syn.Expression | syn.InitializerList, name: str) -> None:
        target = whole(storage)
        if not isinstance(initial, syn.InitializerList):
            self.put(target, initial, name)
            return
        assert isinstance(target, InMemory)
        given = dict(initial.leaves)
        for offset, type_ in leaves(storage.type, self.out.place):
            inside = [given.pop(at) for at in sorted(given) if offset <= at < offset + type_.size]
            part = moved(target, offset, type_)
            if not inside:
                self.places.store_value(part, low.Constant(type_, 0), name)
            for value in inside:
                self.put(moved(target, offset, value.type), value, name)
        for offset, value in given.items():  # other members of a union than the one that it is laid out by
            self.put(moved(target, offset, value.type), value, name)

    # --- values

    def effects(self, expression: syn.Expression) -> None:
        """Evaluates an expression whose value nobody wants."""
        match expression:
            case syn.Increment():
                self.increment(expression, keep=False)
            case syn.Comma():
                self.effects(expression.first)
                self.effects(expression.second)
            case syn.Block():
                self.statements(expression.statements)
                self.effects(expression.value)
            case syn.Convert():
                self.effects(expression.operand)
            case syn.Call():
                self.inlined(expression)
            case syn.Assign():
                self.put(self.lvalue(expression.target), expression.value, text_of(expression.target))
            case syn.CompoundAssign():
                self.compound(expression, keep=False)
            case syn.BuiltinCall():
                self.builtin(expression, False)
            case syn.Conditional():
                self.choice(
                    expression.condition,
                    lambda: self.effects(expression.then),
                    lambda: self.effects(expression.otherwise),
                )
            case _ if is_simple(expression, self.is_in_memory):
                pass
            case _ if isinstance(expression.type, Record | Array):
                self.lvalue(expression)
            case _:
                value = self.value(expression)
                if any(isinstance(part, low.Load) for part in walks.walk(value)):
                    self.out.held(value, "_unused")

    def value(self, expression: syn.Expression) -> low.Expression:
        type_ = expression.type
        match expression:
            case syn.Constant():
                return low.Constant(type_, expression.value)
            case syn.Name() if (number := program_constant(expression)) is not None:
                return low.Constant(type_, number)
            case syn.Name() | syn.Dereference() | syn.Member() | syn.CompoundLiteral():
                return self.places.load(self.lvalue(expression), type_, text_of(expression))
            case syn.Swizzle():
                return self.picked(expression)
            case syn.Shift():
                assert isinstance(type_, Pointer)
                pointer, index = self.value(expression.pointer), self.value(expression.index)
                return low.Offset(type_, pointer, index, type_.target.size)
            case syn.PointerDifference():
                return self.pointer_difference(expression)
            case syn.AddressOf():
                return self.address(expression.target)
            case syn.Decay():
                pointer = self.address(expression.array)
                return low.Reinterpret(type_, pointer)
            case syn.Unary() if expression.operator == "!" and isinstance(expression.operand.type, Vector):
                operand = self.value(expression.operand)
                return low.Binary(type_, "==", operand, low.Constant(operand.type, 0))
            case syn.Unary() if expression.operator == "!":
                return converted(self.condition(expression), type_)
            case syn.Unary():
                return inverted(low.Unary(type_, expression.operator, self.value(expression.operand)))
            case syn.Binary() if isinstance(type_, Scalar) and expression.operator in COMPARISONS:
                return converted(self.condition(expression), type_)
            case syn.Binary():
                return self.binary(expression)
            case syn.Logical() if isinstance(type_, Vector):
                return self.vector_logical(expression)
            case syn.Logical():
                return converted(self.condition(expression), type_)
            case syn.Conditional():
                return self.conditional(expression)
            case syn.Convert():
                if type_ == BOOL:
                    return self.condition(expression.operand)
                return converted(self.value(expression.operand), type_)
            case syn.VectorLiteral():
                parts = tuple(self.value(part) for part in expression.parts)
                return converted(parts[0], type_) if len(parts) == 1 else low.Join(type_, parts)
            case syn.Call():
                return self.result_of(expression)
            case syn.BuiltinCall():
                return self.builtin(expression, True)
            case syn.Assign():
                target = self.places.fixed(self.lvalue(expression.target))
                value = self.out.held(self.value(expression.value), "_value")
                self.places.store_value(target, value, text_of(expression.target))
                return value
            case syn.CompoundAssign():
                return self.compound(expression, keep=True)
            case syn.Increment():
                return self.increment(expression, keep=True)
            case syn.Comma():
                self.effects(expression.first)
                return self.value(expression.second)
            case syn.Block():
                self.statements(expression.statements)
                return self.value(expression.value)

    def result_of(self, expression: syn.Call) -> low.Expression:
        result = self.inlined(expression)
        assert isinstance(result, low.Register)
        return low.Read(result.type, result)

    def binary(self, expression: syn.Binary) -> low.Expression:
        chain = [expression]
        while isinstance(left := chain[-1].left, syn.Binary) and left.operator not in COMPARISONS:
            chain.append(left)
        value = self.value(left)
        for count, each in enumerate(reversed(chain), start=1):
            value = folded(low.Binary(each.type, each.operator, value, self.value(each.right)))
            if count % syn.CHAIN == 0 and count < len(chain):
                value = self.out.held(value, "_part")
        return value

    def picked(self, expression: syn.Swizzle) -> low.Expression:
        if is_lvalue(expression):
            return self.places.load(self.lvalue(expression), expression.type, text_of(expression))
        return low.Pick(expression.type, self.value(expression.vector), expression.components)

    def pointer_difference(self, expression: syn.PointerDifference) -> low.Expression:
        assert isinstance(expression.left.type, Pointer)
        size = expression.left.type.target.size
        left, right = (low.Reinterpret(LONG, self.value(side)) for side in (expression.left, expression.right))
        bytes_ = low.Binary(LONG, "-", left, right)
        return converted(low.Binary(LONG, "/", bytes_, low.Constant(LONG, size)), expression.type)

    def address(self, target: syn.Expression) -> low.Expression:
        place = self.lvalue(target)
        if isinstance(place, InRegister):
            raise SourceError(f"{text_of(target)} has no address here; copy it into a variable", *target.place)
        if place.components is None:
            return place.pointer
        return next(element_places(place)).pointer

    def conditional(self, expression: syn.Conditional) -> low.Expression:
        if isinstance(expression.condition.type, Vector):
            parts = (self.value(part) for part in (expression.condition, expression.then, expression.otherwise))
            return low.Select(expression.type, *parts)
        if all(is_simple(part, self.is_in_memory) for part in (expression.then, expression.otherwise)):
            condition = self.condition(expression.condition)
            return low.Select(expression.type, condition, self.value(expression.then), self.value(expression.otherwise))
        if isinstance(expression.type, Record | Array):
            raise SourceError(f"{text_of(expression)} is no number; choose by an if statement", *expression.place)
        result = self.out.register("_chosen", expression.type)
        self.choice(
            expression.condition,
            lambda: self.places.store_value(InRegister(result), self.value(expression.then), text_of(expression)),
            lambda: self.places.store_value(InRegister(result), self.value(expression.otherwise), text_of(expression)),
        )
        return low.Read(result.type, result)

    def choice(self, condition: syn.Expression, then: Callable[[], object], otherwise: Callable[[], object]) -> None:
        decided, number, place = self.decided(condition), self.out.branch(), self.out.place
        inner, other = self.out.nested(then), self.out.nested(otherwise)
        self.out.choice(
            low.If(number=number, condition=decided, then=inner, otherwise=other, place=place, is_choice=True)
        )

    def vector_logical(self, expression: syn.Logical) -> low.Expression:
        sides = []
        for side in (expression.left, expression.right):
            value = self.value(side)
            sides.append(low.Binary(expression.type, "!=", value, low.Constant(value.type, 0)))
        return low.Binary(expression.type, expression.operator[0], *sides)

    def condition(self, expression: syn.Expression) -> low.Expression:
        """Returns the expression as a bool."""
        match expression:
            case syn.Logical() if not isinstance(expression.type, Vector):
                if is_simple(expression.right, self.is_in_memory):
                    left, right = self.condition(expression.left), self.condition(expression.right)
                    return low.Binary(BOOL, expression.operator[0], left, right)
                return self.short_circuit(expression)
            case syn.Unary(operator="!") if not isinstance(expression.type, Vector):
                return low.Unary(BOOL, "!", self.condition(expression.operand))
            case syn.Binary() if expression.operator in COMPARISONS and isinstance(expression.type, Scalar):
                left, right = self.value(expression.left), self.value(expression.right)
                return folded(low.Binary(BOOL, expression.operator, left, right))
            case syn.Convert() if isinstance(expression.type, Scalar) and isinstance(expression.operand.type, Scalar):
                if not expression.operand.type.is_float and expression.type.size >= expression.operand.type.size:
                    return self.condition(expression.operand)
        return as_bool(self.value(expression))

    def short_circuit(self, expression: syn.Logical) -> low.Expression:
        result = self.out.register("_both" if expression.operator == "&&" else "_either", BOOL)
        self.out.assign(result, self.condition(expression.left))
        number, place = self.out.branch(), self.out.place
        right = self.out.nested(lambda: self.out.assign(result, self.condition(expression.right)))
        then, otherwise = (right, ()) if expression.operator == "&&" else ((), right)
        self.out.structured(
            low.If(number=number, condition=result, then=then, otherwise=otherwise, place=place, is_choice=True)
        )
        return low.Read(BOOL, result)

    def decided(self, expression: syn.Expression) -> low.Register:
        value = self.condition(expression)
        register = self.out.register("_if", BOOL)
        self.out.assign(register, value)
        return register

    def compound(self, expression: syn.CompoundAssign, keep: bool) -> low.Expression:
        target = self.places.fixed(self.lvalue(expression.target))
        text = text_of(expression.target)
        operand = self.value(expression.value)
        old = self.places.load(target, expression.target.type, text)
        if isinstance(expression.type, Pointer):
            if expression.operator == "-":
                operand = low.Unary(LONG, "-", converted(operand, LONG))
            new: low.Expression = low.Offset(expression.type, old, operand, expression.type.target.size)
        else:
            computed = low.Binary(
                expression.computed, expression.operator, converted(old, expression.computed), operand
            )
            new = converted(computed, expression.target.type)
        if not keep:
            self.places.store_value(target, new, text)
            return new
        return self.places.written(target, new, text)

    def increment(self, expression: syn.Increment, keep: bool) -> low.Expression:
        target = self.places.fixed(self.lvalue(expression.target))
        text = text_of(expression.target)
        old = self.places.load(target, expression.target.type, text)
        before = old
        if keep and expression.is_postfix:
            old = self.out.held(old, "_old")
            # What a register held a moment ago is in it still, so that it is seen to move by a number.
            before = before if isinstance(target, InRegister) else old
        if isinstance(expression.type, Pointer):
            step = low.Constant(LONG, expression.step)
            new: low.Expression = low.Offset(expression.type, before, step, expression.type.target.size)
        else:
            operator = "+" if expression.step > 0 else "-"
            new = low.Binary(expression.type, operator, before, low.Constant(expression.type, abs(expression.step)))
        if not keep or expression.is_postfix:
            self.places.store_value(target, new, text)
            return old
        return self.places.written(target, new, text)

    def is_in_memory(self, variable: syn.Variable) -> bool:
        return isinstance(self.out.frame.variables.get(variable), low.MemoryObject)

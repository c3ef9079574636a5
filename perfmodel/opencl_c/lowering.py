"""From the syntax tree of a kernel to its `LoweredKernel`: calls inlined, side effects in order, addresses explicit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from perfmodel.errors import KernelError, SourceError, nearest
from perfmodel.opencl_c import lowered as low
from perfmodel.opencl_c import syntax as syn
from perfmodel.opencl_c.folding import as_bool, as_constant, converted, folded, joined
from perfmodel.opencl_c.lowered_calls import ATOMICS, BY_POINTER, FENCES, WORK_ITEM, Conversion, VectorAccess
from perfmodel.opencl_c.roots import assign_variables, space_of
from perfmodel.opencl_c.source_text import text_of
from perfmodel.opencl_c.storage import addressed_variables, aligned, leaves
from perfmodel.opencl_c.types import BOOL, HALF, INT, LONG, Array, Pointer, Record, Scalar, Type, Vector, element_of

MOST_BLOCKS = 100_000
"""Of one kernel after inlining; more is a source that doubles itself by calls."""


@dataclass(frozen=True)
class _InRegister:
    register: low.Register
    components: tuple[int, ...] | None = None


@dataclass(frozen=True)
class _InMemory:
    """A value in memory, or some components of a vector there."""

    pointer: low.Expression
    type: Type
    alignment: int
    components: tuple[int, ...] | None = None


_Lvalue: TypeAlias = _InRegister | _InMemory
_Storage: TypeAlias = low.Register | low.MemoryObject


def lower(unit: syn.Unit, name: str) -> low.LoweredKernel:
    """The kernel of this name.

    Raises:
        KernelError: if the source has no such kernel.
        SourceError: for what can't be lowered, with its place.
    """
    function = unit.functions.get(name)
    if function is None or not function.is_kernel:
        kernels = ", ".join(unit.kernels) or "none"
        raise KernelError(f"the source has no kernel {name!r}{nearest(name, unit.kernels)} (it has {kernels})")
    return _Lowering(unit).kernel(function)


@dataclass
class _Frame:
    """Where `return`, `break` and `continue` lead to, and what a function's variables are, in one inlined call."""

    function: syn.Function
    variables: dict[syn.Variable, _Storage]
    end: str
    result: _Storage | None
    breaks: list[str]
    continues: list[str]


class _Lowering:
    def __init__(self, unit: syn.Unit) -> None:
        self.unit = unit
        self.registers: list[low.Register] = []
        self.objects: list[low.MemoryObject] = []
        self.accesses: list[low.Access] = []
        self.bytes = {"private": 0, "local": 0, "constant": 0}
        self.blocks = self.branches = self.barriers = self.labels = 0
        self.left: set[str] = set()
        self.loop_names: list[str] = []
        self.addressed = addressed_variables(unit)
        self.tables: dict[syn.Variable, _Storage] = {table: self.table(table) for table in unit.tables}
        # The list that is being filled, and the simple statements that will become its next block.
        self.body: list[low.Statement] = []
        self.simple: list[low.Assign | low.Store | low.Atomic | low.Barrier] = []
        self.place = syn.Place("", 0, 0)
        self.frame: _Frame

    # --- the kernel

    def kernel(self, function: syn.Function) -> low.LoweredKernel:
        self.frame = _Frame(function, dict(self.tables), self.label("kernel"), None, [], [])
        self.place = function.place

        def fill() -> None:
            for position, parameter in enumerate(function.parameters):
                self.parameter(parameter, position)
            assert function.body is not None
            self.statements(function.body.statements)

        body = self.scoped(self.frame.end, fill)
        assign_variables(body, self.registers, function.parameters)
        return low.LoweredKernel(
            function.name,
            tuple(low.Parameter(p.name, p.type) for p in function.parameters),
            body,
            tuple(self.registers),
            tuple(self.objects),
            self.bytes["private"],
            self.bytes["local"],
            self.bytes["constant"],
            tuple(self.accesses),
            self.branches,
            self.blocks,
            self.barriers,
            function.work_group,
        )

    def parameter(self, parameter: syn.Variable, position: int) -> None:
        if isinstance(parameter.type, Record | Array):
            self.frame.variables[parameter] = self.memory_object(parameter, "private", position)
            return
        register = self.register(parameter.name, parameter.type, position)
        if parameter in self.addressed:
            storage = self.memory_object(parameter, "private")
            self.store_value(self.whole(storage), low.Read(register.type, register), parameter.name)
            self.frame.variables[parameter] = storage
        else:
            self.frame.variables[parameter] = register

    def table(self, table: syn.Variable) -> low.MemoryObject:
        """A program-scope variable in constant memory; its initial values are known before anything runs."""
        initial = []
        if isinstance(table.initial, syn.InitializerList):
            given: Iterable[tuple[int, syn.Expression]] = table.initial.leaves
        else:
            given = [] if table.initial is None else [(0, table.initial)]
        for offset, expression in given:
            value = as_constant(expression)
            if value is None:
                raise SourceError(
                    f"the initial value of {table.name!r} is no constant that perfmodel can compute; write the number",
                    *expression.place,
                )
            if not isinstance(expression.type, Scalar | Vector | Pointer):
                raise SourceError(f"{table.name!r} is initialized by a {expression.type}; write numbers", *table.place)
            initial.append((offset, expression.type, value))
        return self.memory_object(table, "constant", initial=tuple(initial))

    # --- storage

    def register(self, name: str, type_: Type, parameter: int | None = None) -> low.Register:
        register = low.Register(name, type_, parameter)
        self.registers.append(register)
        return register

    def memory_object(
        self,
        variable: syn.Variable,
        space: str,
        parameter: int | None = None,
        initial: tuple[tuple[int, Type, low.Number | tuple[low.Number, ...]], ...] = (),
    ) -> low.MemoryObject:
        offset = aligned(self.bytes[space], variable.type.alignment)
        self.bytes[space] = offset + variable.type.size
        found = low.MemoryObject(variable.name, variable.type, space, offset, initial, parameter)
        self.objects.append(found)
        return found

    def label(self, stem: str) -> str:
        self.labels += 1
        return f"{stem}{self.labels}"

    def whole(self, storage: _Storage) -> _Lvalue:
        if isinstance(storage, low.Register):
            return _InRegister(storage)
        pointer = low.Address(Pointer(storage.type, storage.space), storage)
        return _InMemory(pointer, storage.type, storage.type.alignment)

    # --- blocks

    def emit(self, statement: low.Assign | low.Store | low.Atomic | low.Barrier) -> None:
        self.simple.append(statement)

    def assign(self, register: low.Register, value: low.Expression) -> None:
        self.emit(low.Assign(register, value))

    def flush(self) -> None:
        if self.simple:
            if self.blocks >= MOST_BLOCKS:
                raise SourceError(
                    f"kernel {self.frame.function.name!r} has more than {MOST_BLOCKS} blocks of statements once its "
                    "calls are inlined; call fewer functions from functions",
                    *self.place,
                )
            self.body.append(low.Straight(self.blocks, tuple(self.simple), self.place))
            self.blocks += 1
            self.simple = []

    def structured(self, statement: low.If | low.Loop | low.Scope) -> None:
        self.flush()
        self.body.append(statement)

    def leave(self, label: str) -> None:
        self.flush()
        self.left.add(label)
        self.body.append(low.Leave(label))

    @property
    def is_dead(self) -> bool:
        """Whether control never comes here: after a jump."""
        return bool(self.body) and isinstance(self.body[-1], low.Leave) and not self.simple

    def nested(self, fill: Callable[[], object]) -> tuple[low.Statement, ...]:
        """What a function emits, as a list of its own."""
        self.flush()
        outer, self.body = self.body, []
        fill()
        self.flush()
        inner, self.body = self.body, outer
        return tuple(inner)

    def scoped(self, label: str, fill: Callable[[], object]) -> tuple[low.Statement, ...]:
        """The same in a scope that can be left, if anything leaves it before its end."""
        body = self.nested(fill)
        if body and isinstance(body[-1], low.Leave) and body[-1].label == label:
            body = body[:-1]
            if not any(_leaves(body, label)):
                return body
        elif label not in self.left:
            return body
        return (low.Scope(label, body),)

    # --- statements

    def statements(self, statements: Iterable[syn.Statement]) -> None:
        for statement in statements:
            if self.is_dead:
                return
            self.statement(statement)

    def statement(self, statement: syn.Statement) -> None:
        self.place = statement.place
        match statement:
            case syn.Compound():
                self.statements(statement.statements)
            case syn.Declare():
                self.declare(statement.variable)
            case syn.Evaluate():
                self.effects(statement.expression)
            case syn.If():
                condition = self.decided(statement.condition)
                number = self.branch()
                then = self.nested(lambda: self.statement(statement.then))
                otherwise: tuple[low.Statement, ...] = ()
                if statement.otherwise is not None:
                    other = statement.otherwise
                    otherwise = self.nested(lambda: self.statement(other))
                if then or otherwise:
                    self.structured(low.If(number, condition, then, otherwise, statement.place))
            case syn.Loop():
                self.loop(statement)
            case syn.Switch():
                self.switch(statement)
            case syn.Break():
                self.leave(self.frame.breaks[-1])
            case syn.Continue():
                self.leave(self.frame.continues[-1])
            case syn.Return():
                self.return_(statement)

    def branch(self) -> int:
        self.branches += 1
        return self.branches - 1

    def declare(self, variable: syn.Variable) -> None:
        storage: _Storage
        if variable.space in ("local", "constant"):
            self.frame.variables[variable] = (
                self.table(variable) if variable.space == "constant" else self.memory_object(variable, "local")
            )
            return
        if isinstance(variable.type, Array | Record) or variable in self.addressed:
            storage = self.memory_object(variable, "private")
        else:
            storage = self.register(variable.name, variable.type)
        # The initial value may not name the variable itself, but an inlined call may declare it once more.
        if variable.initial is not None:
            self.initialize(storage, variable.initial, variable.name)
        self.frame.variables[variable] = storage

    def initialize(self, storage: _Storage, initial: syn.Expression | syn.InitializerList, name: str) -> None:
        target = self.whole(storage)
        if not isinstance(initial, syn.InitializerList):
            self.put(target, initial, name)
            return
        assert isinstance(target, _InMemory)
        given = dict(initial.leaves)
        for offset, type_ in leaves(storage.type, self.place):
            inside = [given.pop(at) for at in sorted(given) if offset <= at < offset + type_.size]
            part = self.moved(target, offset, type_)
            if not inside:
                self.store_value(part, low.Constant(type_, 0), name)
            for value in inside:
                self.put(self.moved(target, offset, value.type), value, name)
        for offset, value in given.items():  # other members of a union than the one that it is laid out by
            self.put(self.moved(target, offset, value.type), value, name)

    def moved(self, target: _InMemory, offset: int, type_: Type) -> _InMemory:
        pointer = target.pointer
        if offset:
            space = pointer.type.space if isinstance(pointer.type, Pointer) else "private"
            pointer = low.Offset(Pointer(type_, space), pointer, low.Constant(LONG, offset), 1)
        return _InMemory(pointer, type_, min(type_.alignment, target.alignment))

    def loop(self, loop: syn.Loop) -> None:
        if loop.initial is not None:
            self.statement(loop.initial)
        number, label, after = self.branch(), self.label("loop"), self.label("next")
        condition = self.register("_go", BOOL)
        name = self.loop_name(loop)
        self.frame.breaks.append(label)
        self.frame.continues.append(after)
        self.loop_names.append(name)

        def test() -> None:
            self.place = loop.place
            always = low.Constant(BOOL, 1)
            self.assign(condition, always if loop.condition is None else self.condition(loop.condition))

        def step() -> None:
            self.place = loop.place
            if loop.step is not None:
                self.effects(loop.step)

        tested = self.nested(test)
        body = self.scoped(after, lambda: self.statement(loop.body))
        stepped = self.nested(step)
        self.frame.breaks.pop()
        self.frame.continues.pop()
        self.loop_names.pop()
        self.structured(
            low.Loop(number, label, tested, condition, body, stepped, loop.is_do, name, loop.unroll, loop.place)
        )

    def loop_name(self, loop: syn.Loop) -> str:
        target = getattr(loop.step, "target", None)
        name = target.variable.name if isinstance(target, syn.Name) else f"loop_{loop.place.line}"
        unique, times = name, 1
        while unique in self.loop_names:  # around this one
            times += 1
            unique = f"{name}_{times}"
        return unique

    def switch(self, switch: syn.Switch) -> None:
        """Cases one after the other: whoever comes to one by its value, or falls through from the one before."""
        value = self.held(self.value(switch.value), "_switch")
        label = self.label("switch")
        self.frame.breaks.append(label)

        def fill() -> None:
            falls: low.Register | None = None
            for case in switch.cases:
                condition = self.matches(value, case, switch)
                if falls is not None:
                    condition = low.Binary(BOOL, "|", low.Read(BOOL, falls), condition)
                here = self.register("_case", BOOL)
                self.assign(here, condition)
                number, place = self.branch(), self.place
                body = self.nested(partial(self.statements, case.body))
                if body:
                    self.structured(low.If(number, here, body, (), place))
                falls = None if body and isinstance(body[-1], low.Leave) else here

        body = self.scoped(label, fill)
        self.frame.breaks.pop()
        self.flush()
        self.body.extend(body)

    def matches(self, value: low.Read, case: syn.Case, switch: syn.Switch) -> low.Expression:
        tests: list[low.Expression] = [
            low.Binary(BOOL, "==", value, low.Constant(value.type, number))
            for number in case.values
            if number is not None
        ]
        if None in case.values:
            named = [number for other in switch.cases for number in other.values if number is not None]
            others: list[low.Expression] = [
                low.Binary(BOOL, "!=", value, low.Constant(value.type, number))
                for number in named
                if number not in case.values
            ]
            return joined("&", others) if others else low.Constant(BOOL, 1)
        return joined("|", tests)

    def return_(self, statement: syn.Return) -> None:
        if statement.value is not None:
            if self.frame.result is None:
                self.effects(statement.value)
            else:
                self.put(self.whole(self.frame.result), statement.value, "return")
        self.leave(self.frame.end)

    # --- lvalues

    def lvalue(self, expression: syn.Expression) -> _Lvalue:
        match expression:
            case syn.Name():
                return self.whole(self.frame.variables[expression.variable])
            case syn.Dereference():
                pointer = self.value(expression.pointer)
                return _InMemory(pointer, expression.type, _alignment(expression))
            case syn.Member():
                record = self.lvalue(expression.record)
                assert isinstance(record, _InMemory)
                assert isinstance(record.type, Record)
                member = record.type.field(expression.name)
                return self.moved(record, member.offset, member.type)
            case syn.Swizzle():
                vector = self.lvalue(expression.vector)
                inner = vector.components
                picked = expression.components if inner is None else tuple(inner[c] for c in expression.components)
                if isinstance(vector, _InRegister):
                    return _InRegister(vector.register, picked)
                return _InMemory(vector.pointer, vector.type, vector.alignment, picked)
            case syn.CompoundLiteral():
                variable = syn.Variable("literal", expression.type, "private", expression.place)
                storage = self.memory_object(variable, "private")
                self.initialize(storage, expression.initial, "literal")
                return self.whole(storage)
            case syn.Convert() if isinstance(expression.type, Record | Array):
                return self.lvalue(expression.operand)
            case syn.Conditional() if isinstance(expression.type, Record):
                return self.chosen_record(expression)
            case syn.Call() if isinstance(expression.type, Record):
                result = self.call(expression)
                assert isinstance(result, low.MemoryObject)
                return self.whole(result)
            case syn.Assign() if isinstance(expression.type, Record):
                target = self.lvalue(expression.target)
                self.put(target, expression.value, text_of(expression.target))
                return target
            case syn.Comma():
                self.effects(expression.first)
                return self.lvalue(expression.second)
        raise SourceError(f"{text_of(expression)} has no address; assign it to a variable first", *expression.place)

    def chosen_record(self, expression: syn.Conditional) -> _Lvalue:
        pointer = self.register("_chosen", Pointer(expression.type, "private"))

        def choose(branch: syn.Expression) -> None:
            target = self.lvalue(branch)
            assert isinstance(target, _InMemory)
            pointer.type = target.pointer.type
            self.assign(pointer, target.pointer)

        self.choice(expression.condition, lambda: choose(expression.then), lambda: choose(expression.otherwise))
        return _InMemory(low.Read(pointer.type, pointer), expression.type, expression.type.alignment)

    def fixed(self, target: _Lvalue) -> _Lvalue:
        """An lvalue that is read and written: its address is computed once."""
        if isinstance(target, _InRegister) or isinstance(target.pointer, low.Read | low.Address):
            return target
        pointer = self.held(target.pointer, "_address")
        return _InMemory(pointer, target.type, target.alignment, target.components)

    def held(self, value: low.Expression, name: str) -> low.Read:
        register = self.register(name, value.type)
        self.assign(register, value)
        return low.Read(value.type, register)

    def access(self, direction: str, place: _InMemory, text: str) -> low.Access:
        space = space_of(place.pointer)
        if space == "generic":
            raise SourceError(
                f"{text} is accessed by a pointer of no address space; declare it global, local or private", *self.place
            )
        found = low.Access(len(self.accesses), direction, space, place.type, None, place.alignment, text, self.place)
        self.accesses.append(found)
        return found

    def element_places(self, target: _InMemory) -> Iterator[_InMemory]:
        """The components of a vector in memory that are meant, each by itself."""
        assert target.components is not None
        element = element_of(target.type)
        assert isinstance(target.pointer.type, Pointer)
        pointer_type = Pointer(element, target.pointer.type.space)
        for component in target.components:
            at = low.Constant(LONG, component)
            yield _InMemory(low.Offset(pointer_type, target.pointer, at, element.size), element, element.size)

    def load(self, target: _Lvalue, type_: Type, text: str) -> low.Expression:
        if isinstance(target, _InRegister):
            read = low.Read(target.register.type, target.register)
            return read if target.components is None else low.Pick(type_, read, target.components)
        if isinstance(target.type, Array | Record):
            raise SourceError(f"{text} is a {target.type}, which is no number; name its elements", *self.place)
        if target.components is None:
            return low.Load(target.type, target.pointer, self.access("load", target, text))
        target = self.fixed(target)
        assert isinstance(target, _InMemory)
        parts = tuple(
            low.Load(place.type, place.pointer, self.access("load", place, text))
            for place in self.element_places(target)
        )
        return parts[0] if len(parts) == 1 else low.Join(type_, parts)

    def store_value(self, target: _Lvalue, value: low.Expression, text: str) -> None:
        if isinstance(target, _InRegister):
            self.settle(target.register, value)
            self.emit(low.Assign(target.register, value, target.components))
        elif target.components is None:
            self.emit(low.Store(target.pointer, value, self.access("store", target, text)))
        else:
            fixed = self.fixed(target)
            assert isinstance(fixed, _InMemory)
            places = list(self.element_places(fixed))
            if len(places) > 1:
                value = self.held(value, "_vector")
            for component, place in enumerate(places):
                part = value if len(places) == 1 else low.Pick(place.type, value, (component,))
                self.emit(low.Store(place.pointer, part, self.access("store", place, text)))

    def settle(self, register: low.Register, value: low.Expression) -> None:
        """A pointer declared without address space has that of what it first points to."""
        if not isinstance(register.type, Pointer) or isinstance(value, low.Constant):
            return
        space = space_of(value)
        if register.type.space == "generic" and space != "generic":
            register.type = Pointer(register.type.target, space)
        elif space != register.type.space:
            raise SourceError(
                f"{register.name} points to {register.type.space} and to {space} memory; use a pointer for each",
                *self.place,
            )

    def put(self, target: _Lvalue, value: syn.Expression, text: str) -> None:
        """Assigns an expression, of structs leaf by leaf."""
        if isinstance(value.type, Record):
            source = self.lvalue(value)
            assert isinstance(source, _InMemory)
            assert isinstance(target, _InMemory)
            for offset, type_ in leaves(value.type, self.place):
                part = self.load(self.moved(source, offset, type_), type_, text_of(value))
                self.store_value(self.moved(target, offset, type_), part, text)
        else:
            self.store_value(target, self.value(value), text)

    # --- expressions

    def effects(self, expression: syn.Expression) -> None:
        """Evaluates an expression whose value nobody wants."""
        match expression:
            case syn.Increment():
                self.increment(expression, keep=False)
            case syn.Comma():
                self.effects(expression.first)
                self.effects(expression.second)
            case syn.Convert():
                self.effects(expression.operand)
            case syn.Call():
                self.call(expression)
            case syn.Assign():
                self.put(self.lvalue(expression.target), expression.value, text_of(expression.target))
            case syn.CompoundAssign():
                self.compound(expression)
            case syn.BuiltinCall():
                self.builtin(expression, wanted=False)
            case syn.Conditional():
                self.choice(
                    expression.condition,
                    lambda: self.effects(expression.then),
                    lambda: self.effects(expression.otherwise),
                )
            case _ if _is_simple(expression, self.is_in_memory):
                pass
            case _ if isinstance(expression.type, Record | Array):
                self.lvalue(expression)
            case _:
                value = self.value(expression)
                if any(isinstance(part, low.Load) for part in low.walk(value)):
                    self.held(value, "_unused")

    def value(self, expression: syn.Expression) -> low.Expression:
        type_ = expression.type
        match expression:
            case syn.Constant():
                return low.Constant(type_, expression.value)
            case syn.Name() | syn.Dereference() | syn.Member():
                return self.load(self.lvalue(expression), type_, text_of(expression))
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
                return low.Unary(type_, expression.operator, self.value(expression.operand))
            case syn.Binary() if isinstance(type_, Scalar) and expression.operator in _COMPARISONS:
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
                return self.builtin(expression, wanted=True)
            case syn.Assign():
                target = self.fixed(self.lvalue(expression.target))
                value = self.held(self.value(expression.value), "_value")
                self.store_value(target, value, text_of(expression.target))
                return value
            case syn.CompoundAssign():
                return self.compound(expression)
            case syn.Increment():
                return self.increment(expression, keep=True)
            case syn.Comma():
                self.effects(expression.first)
                return self.value(expression.second)
            case syn.CompoundLiteral():
                return self.load(self.lvalue(expression), type_, text_of(expression))

    def binary(self, expression: syn.Binary) -> low.Expression:
        left, right = self.value(expression.left), self.value(expression.right)
        return folded(low.Binary(expression.type, expression.operator, left, right))

    def picked(self, expression: syn.Swizzle) -> low.Expression:
        if _is_lvalue(expression):
            return self.load(self.lvalue(expression), expression.type, text_of(expression))
        return low.Pick(expression.type, self.value(expression.vector), expression.components)

    def pointer_difference(self, expression: syn.PointerDifference) -> low.Expression:
        assert isinstance(expression.left.type, Pointer)
        size = expression.left.type.target.size
        left, right = (low.Reinterpret(LONG, self.value(side)) for side in (expression.left, expression.right))
        bytes_ = low.Binary(LONG, "-", left, right)
        return converted(low.Binary(LONG, "/", bytes_, low.Constant(LONG, size)), expression.type)

    def address(self, target: syn.Expression) -> low.Expression:
        place = self.lvalue(target)
        if isinstance(place, _InRegister):
            raise SourceError(f"{text_of(target)} has no address here; copy it into a variable", *target.place)
        if place.components is None:
            return place.pointer
        return next(self.element_places(place)).pointer

    def conditional(self, expression: syn.Conditional) -> low.Expression:
        if isinstance(expression.condition.type, Vector):
            parts = (self.value(part) for part in (expression.condition, expression.then, expression.otherwise))
            return low.Select(expression.type, *parts)
        if all(_is_simple(part, self.is_in_memory) for part in (expression.then, expression.otherwise)):
            condition = self.condition(expression.condition)
            return low.Select(expression.type, condition, self.value(expression.then), self.value(expression.otherwise))
        if isinstance(expression.type, Record | Array):
            raise SourceError(f"{text_of(expression)} is no number; choose by an if statement", *expression.place)
        result = self.register("_chosen", expression.type)
        self.choice(
            expression.condition,
            lambda: self.assign(result, self.value(expression.then)),
            lambda: self.assign(result, self.value(expression.otherwise)),
        )
        return low.Read(result.type, result)

    def choice(self, condition: syn.Expression, then: Callable[[], object], otherwise: Callable[[], object]) -> None:
        decided, number, place = self.decided(condition), self.branch(), self.place
        inner, other = self.nested(then), self.nested(otherwise)
        if inner or other:
            self.structured(low.If(number, decided, inner, other, place, is_choice=True))

    def vector_logical(self, expression: syn.Logical) -> low.Expression:
        sides = []
        for side in (expression.left, expression.right):
            value = self.value(side)
            sides.append(low.Binary(expression.type, "!=", value, low.Constant(value.type, 0)))
        return low.Binary(expression.type, expression.operator[0], *sides)

    def condition(self, expression: syn.Expression) -> low.Expression:
        """The expression as a bool."""
        match expression:
            case syn.Logical() if not isinstance(expression.type, Vector):
                if _is_simple(expression.right, self.is_in_memory):
                    left, right = self.condition(expression.left), self.condition(expression.right)
                    return low.Binary(BOOL, expression.operator[0], left, right)
                return self.short_circuit(expression)
            case syn.Unary(operator="!") if not isinstance(expression.type, Vector):
                return low.Unary(BOOL, "!", self.condition(expression.operand))
            case syn.Binary() if expression.operator in _COMPARISONS and isinstance(expression.type, Scalar):
                left, right = self.value(expression.left), self.value(expression.right)
                return folded(low.Binary(BOOL, expression.operator, left, right))
            case syn.Convert() if isinstance(expression.type, Scalar) and isinstance(expression.operand.type, Scalar):
                if not expression.operand.type.is_float and expression.type.size >= expression.operand.type.size:
                    return self.condition(expression.operand)
        return as_bool(self.value(expression))

    def short_circuit(self, expression: syn.Logical) -> low.Expression:
        result = self.register("_both" if expression.operator == "&&" else "_either", BOOL)
        self.assign(result, self.condition(expression.left))
        number, place = self.branch(), self.place
        right = self.nested(lambda: self.assign(result, self.condition(expression.right)))
        then, otherwise = (right, ()) if expression.operator == "&&" else ((), right)
        self.structured(low.If(number, result, then, otherwise, place, is_choice=True))
        return low.Read(BOOL, result)

    def decided(self, expression: syn.Expression) -> low.Register:
        value = self.condition(expression)
        register = self.register("_if", BOOL)
        self.assign(register, value)
        return register

    def compound(self, expression: syn.CompoundAssign) -> low.Expression:
        target = self.fixed(self.lvalue(expression.target))
        text = text_of(expression.target)
        operand = self.value(expression.value)
        old = self.load(target, expression.target.type, text)
        if isinstance(expression.type, Pointer):
            if expression.operator == "-":
                operand = low.Unary(LONG, "-", converted(operand, LONG))
            new: low.Expression = low.Offset(expression.type, old, operand, expression.type.target.size)
        else:
            computed = low.Binary(
                expression.computed, expression.operator, converted(old, expression.computed), operand
            )
            new = converted(computed, expression.target.type)
        return self.written(target, new, text)

    def written(self, target: _Lvalue, new: low.Expression, text: str) -> low.Expression:
        """Stores a value and gives it back."""
        if isinstance(target, _InRegister):
            self.store_value(target, new, text)
            return self.load(target, new.type, text)
        value = self.held(new, "_value")
        self.store_value(target, value, text)
        return value

    def increment(self, expression: syn.Increment, keep: bool) -> low.Expression:
        target = self.fixed(self.lvalue(expression.target))
        text = text_of(expression.target)
        old = self.load(target, expression.target.type, text)
        if keep and expression.is_postfix:
            old = self.held(old, "_old")
        if isinstance(expression.type, Pointer):
            step = low.Constant(LONG, expression.step)
            new: low.Expression = low.Offset(expression.type, old, step, expression.type.target.size)
        else:
            operator = "+" if expression.step > 0 else "-"
            new = low.Binary(expression.type, operator, old, low.Constant(expression.type, abs(expression.step)))
        if not keep or expression.is_postfix:
            self.store_value(target, new, text)
            return old
        return self.written(target, new, text)

    # --- calls

    def call(self, expression: syn.Call) -> _Storage | None:
        """Inlines a function; where its result is."""
        function, outer = expression.function, self.frame
        variables = dict(self.tables)
        for parameter, argument in zip(function.parameters, expression.arguments, strict=True):
            storage: _Storage
            if isinstance(parameter.type, Record) or parameter in self.addressed:
                storage = self.memory_object(parameter, "private")
            else:
                storage = self.register(parameter.name, parameter.type)
            self.put(self.whole(storage), argument, parameter.name)
            variables[parameter] = storage
        result: _Storage | None = None
        if isinstance(function.result, Record):
            result = self.memory_object(
                syn.Variable(f"_{function.name}", function.result, "private", function.place), "private"
            )
        elif function.result.size and not _is_void(function.result):
            result = self.register(f"_{function.name}", function.result)
        self.frame = _Frame(function, variables, self.label(function.name), result, [], [])
        place = self.place
        if function.body is None:
            raise SourceError(f"function {function.name!r} has no body; define it in the source", *expression.place)
        statements = function.body.statements
        body = self.scoped(self.frame.end, lambda: self.statements(statements))
        self.frame, self.place = outer, place
        self.flush()
        if not body or (len(body) == 1 and isinstance(body[0], low.Straight) and body[0].number == self.blocks - 1):
            # A function without branches belongs to the block that it is called from.
            self.body.extend(body)
            self.reopen()
            self.reopen()
        else:
            self.body.extend(body)
        return result

    def reopen(self) -> None:
        """Goes on with the block before, if nothing came between."""
        if self.body and isinstance(last := self.body[-1], low.Straight) and last.number == self.blocks - 1:
            self.body.pop()
            self.simple = [*last.statements, *self.simple]
            self.blocks -= 1

    def result_of(self, expression: syn.Call) -> low.Expression:
        result = self.call(expression)
        assert isinstance(result, low.Register)
        return low.Read(result.type, result)

    def builtin(self, expression: syn.BuiltinCall, wanted: bool) -> low.Expression:
        name, type_ = expression.name, expression.type
        nothing = low.Constant(INT, 0)
        if name in WORK_ITEM:
            axis = self.value(expression.arguments[0]) if expression.arguments else None
            return low.WorkItem(type_, name, axis)
        if name in FENCES:
            if FENCES[name]:
                self.emit(low.Barrier(self.barriers, expression.place))
                self.barriers += 1
            return nothing
        if name == "prefetch":
            return nothing
        if name.startswith(("atomic_", "atom_")):
            return self.atomic(expression, wanted)
        if (vector := VectorAccess.of(name)) is not None:
            return self.vector_access(expression, vector)
        if (conversion := Conversion.of(name)) is not None:
            operand = self.value(expression.arguments[0])
            return low.Convert(type_, operand, conversion.rounding, conversion.saturate)
        if name.startswith("as_"):
            return low.Reinterpret(type_, self.value(expression.arguments[0]))
        if name in BY_POINTER and isinstance(expression.arguments[-1].type, Pointer):
            return self.by_pointer(expression)
        arguments = tuple(self.value(argument) for argument in expression.arguments)
        return low.Call(type_, name, arguments)

    def atomic(self, expression: syn.BuiltinCall, wanted: bool) -> low.Expression:
        operation = ATOMICS.get(expression.name.removeprefix("atomic_").removeprefix("atom_"))
        pointer, *operands = (self.value(argument) for argument in expression.arguments)
        if operation is None or not isinstance(pointer.type, Pointer):
            raise SourceError(
                f"{expression.name} is not supported; use the atomic functions of OpenCL C 1.2", *expression.place
            )
        place = _InMemory(pointer, pointer.type.target, pointer.type.target.alignment)
        result = self.register("_old", place.type) if wanted else None
        text = text_of(expression.arguments[0])
        self.emit(low.Atomic(operation, pointer, tuple(operands), result, self.access("atomic", place, text)))
        return low.Constant(INT, 0) if result is None else low.Read(place.type, result)

    def vector_access(self, expression: syn.BuiltinCall, access: VectorAccess) -> low.Expression:
        """vloadn, vstoren and their forms for half precision."""
        *data, index, pointer = (self.value(argument) for argument in expression.arguments)
        assert isinstance(pointer.type, Pointer)
        element = HALF if access.is_half else element_of(pointer.type.target)
        type_: Scalar | Vector = element if access.width == 1 else Vector(element, access.width)
        apart = type_.size if access.is_aligned else element.size * access.width
        alignment = type_.alignment if access.is_aligned else element.size
        moved = low.Offset(Pointer(type_, pointer.type.space), pointer, index, apart)
        place = _InMemory(moved, type_, alignment)
        text = text_of(expression)
        if not data:
            loaded = low.Load(type_, moved, self.access("load", place, text))
            return converted(loaded, expression.type)
        value = low.Convert(type_, data[0], access.rounding) if access.is_half else data[0]
        self.emit(low.Store(moved, value, self.access("store", place, text)))
        return low.Constant(INT, 0)

    def by_pointer(self, expression: syn.BuiltinCall) -> low.Expression:
        """Functions with a second result: what they store is a call of its own."""
        *values, pointer = expression.arguments
        arguments = tuple(self.held(self.value(value), "_argument") for value in values)
        if isinstance(pointer, syn.Convert):
            pointer = pointer.operand
        if isinstance(pointer, syn.AddressOf):
            target = self.lvalue(pointer.target)
        else:
            address = self.value(pointer)
            assert isinstance(address.type, Pointer)
            target = _InMemory(address, address.type.target, address.type.target.alignment)
        assert isinstance(pointer.type, Pointer)
        second = low.Call(pointer.type.target, f"{expression.name}.1", arguments)
        first = self.held(low.Call(expression.type, f"{expression.name}.0", arguments), "_result")
        self.store_value(target, second, text_of(pointer))
        return first

    def is_in_memory(self, variable: syn.Variable) -> bool:
        return isinstance(self.frame.variables.get(variable), low.MemoryObject)


_COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")


def _alignment(expression: syn.Expression) -> int:
    """Of what an lvalue means: less than its type's within packed structs."""
    match expression:
        case syn.Member():
            return min(expression.type.alignment, _alignment(expression.record))
        case syn.Dereference():
            pointer = expression.pointer
            while isinstance(pointer, syn.Shift):
                pointer = pointer.pointer
            if isinstance(pointer, syn.Decay):
                return min(expression.type.alignment, _alignment(pointer.array))
    return expression.type.alignment


def _is_void(type_: Type) -> bool:
    return not isinstance(type_, Scalar | Vector | Pointer | Array | Record)


def _is_lvalue(expression: syn.Expression) -> bool:
    while isinstance(expression, syn.Swizzle):
        expression = expression.vector
    return isinstance(expression, syn.Name | syn.Dereference | syn.Member)


def _leaves(body: tuple[low.Statement, ...], label: str) -> Iterator[bool]:
    for statement in body:
        match statement:
            case low.Leave():
                yield statement.label == label
            case low.If():
                yield from _leaves(statement.then, label)
                yield from _leaves(statement.otherwise, label)
            case low.Loop():
                for part in (statement.test, statement.body, statement.step):
                    yield from _leaves(part, label)
            case low.Scope():
                yield from _leaves(statement.body, label)


def _is_simple(expression: syn.Expression, is_in_memory: Callable[[syn.Variable], bool]) -> bool:
    """Whether it may be evaluated though C would not: no memory is read, nothing is changed, nothing can fail."""
    match expression:
        case syn.Constant():
            return True
        case syn.Name():
            return not is_in_memory(expression.variable)
        case syn.Swizzle():
            return _is_simple(expression.vector, is_in_memory)
        case syn.Unary() | syn.Convert():
            return _is_simple(expression.operand, is_in_memory)
        case syn.Binary():
            if expression.operator in "/%" and not _is_float(expression.type):
                return False
            return _is_simple(expression.left, is_in_memory) and _is_simple(expression.right, is_in_memory)
        case syn.Logical():
            return _is_simple(expression.left, is_in_memory) and _is_simple(expression.right, is_in_memory)
        case syn.Conditional():
            parts = (expression.condition, expression.then, expression.otherwise)
            return all(_is_simple(part, is_in_memory) for part in parts)
        case syn.Shift():
            return _is_simple(expression.pointer, is_in_memory) and _is_simple(expression.index, is_in_memory)
        case syn.VectorLiteral():
            return all(_is_simple(part, is_in_memory) for part in expression.parts)
        case syn.Decay(array=syn.Name()):
            return True
        case syn.BuiltinCall():
            if expression.name in WORK_ITEM or expression.name.startswith(("as_", "convert_")):
                return all(_is_simple(argument, is_in_memory) for argument in expression.arguments)
            is_value = isinstance(expression.type, Scalar | Vector) and not any(
                isinstance(argument.type, Pointer) for argument in expression.arguments
            )
            return is_value and all(_is_simple(argument, is_in_memory) for argument in expression.arguments)
    return False


def _is_float(type_: Type) -> bool:
    return isinstance(type_, Scalar | Vector) and element_of(type_).is_float

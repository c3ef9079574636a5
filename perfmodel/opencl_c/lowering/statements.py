"""Statements, calls and the kernel as a whole."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from perfmodel.basics.errors import KernelError, SourceError, nearest
from perfmodel.opencl_c import lowered as low
from perfmodel.opencl_c import syntax as syn
from perfmodel.opencl_c.lowering.builtin_calls import BuiltinCalls
from perfmodel.opencl_c.lowering.emission import Frame, Storage
from perfmodel.opencl_c.lowering.folding import as_constant, joined
from perfmodel.opencl_c.lowering.roots import assign_variables
from perfmodel.opencl_c.lowering.simple import has_effects, is_void
from perfmodel.opencl_c.lowering.storage import addressed_variables
from perfmodel.opencl_c.types import BOOL, Array, Pointer, Record, Scalar, Vector


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
    return Lowering(unit).kernel(function)


class Lowering(BuiltinCalls):
    """Of one kernel of a source."""

    def __init__(self, unit: syn.Unit) -> None:
        super().__init__()
        self.addressed = addressed_variables(unit)
        self.tables: dict[syn.Variable, Storage] = {table: self.table(table) for table in unit.tables}

    def kernel(self, function: syn.Function) -> low.LoweredKernel:
        self.frame = Frame(function, dict(self.tables), self.label("kernel"), None, [], [])
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

    def declare(self, variable: syn.Variable) -> None:
        storage: Storage
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

    def loop(self, loop: syn.Loop) -> None:
        if loop.initial is not None:
            self.statement(loop.initial)
        number, label, after = self.branch(), self.label("loop"), self.label("next")
        condition = self.register("_go", BOOL)
        name = self.loop_name(loop)
        self.frame.breaks.append(label)
        self.frame.continues.append(after)

        # The first turn of a `do` loop has no test before it; a test that changes something belongs to the turns then.
        is_inside = loop.is_do and has_effects(loop.condition)

        def test() -> None:
            self.place = loop.place
            is_endless = is_inside or loop.condition is None
            always = low.Constant(BOOL, 1)
            self.assign(condition, always if is_endless else self.condition(loop.condition))  # type: ignore[arg-type]

        def turn() -> None:
            self.body.extend(self.scoped(after, lambda: self.statement(loop.body)))
            if is_inside and loop.condition is not None and not self.is_dead:
                goes_on, branch = self.decided(loop.condition), self.branch()
                ends = self.nested(lambda: self.leave(label))
                self.structured(low.If(branch, goes_on, (), ends, loop.place))

        def step() -> None:
            self.place = loop.place
            if loop.step is not None:
                self.effects(loop.step)

        tested = self.nested(test)
        body = self.nested(turn)
        stepped = self.nested(step)
        self.frame.breaks.pop()
        self.frame.continues.pop()
        self.structured(
            low.Loop(
                *(number, label, tested, condition, body, stepped),
                *(loop.is_do and not is_inside, name, loop.unroll, loop.place),
            )
        )

    def loop_name(self, loop: syn.Loop) -> str:
        target = getattr(loop.step, "target", None)
        name = target.variable.name if isinstance(target, syn.Name) else f"loop_{loop.place.line}"
        times = self.loop_names[name] = self.loop_names.get(name, 0) + 1
        return name if times == 1 else f"{name}__{times}"

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

    # --- calls

    def call(self, expression: syn.Call) -> Storage | None:
        """Inlines a function; where its result is."""
        function, outer = expression.function, self.frame
        variables = dict(self.tables)
        for parameter, argument in zip(function.parameters, expression.arguments, strict=True):
            storage: Storage
            if isinstance(parameter.type, Record) or parameter in self.addressed:
                storage = self.memory_object(parameter, "private")
            else:
                storage = self.register(parameter.name, parameter.type)
            self.put(self.whole(storage), argument, parameter.name)
            variables[parameter] = storage
        result: Storage | None = None
        if isinstance(function.result, Record):
            result = self.memory_object(
                syn.Variable(f"_{function.name}", function.result, "private", function.place), "private"
            )
        elif function.result.size and not is_void(function.result):
            result = self.register(f"_{function.name}", function.result)
        self.frame = Frame(function, variables, self.label(function.name), result, [], [])
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

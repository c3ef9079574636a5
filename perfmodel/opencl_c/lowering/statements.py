"""Statements, calls and the kernel as a whole are lowered here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial

from perfmodel.basics.errors import KernelError, SourceError, nearest
from perfmodel.opencl_c import lowered as low
from perfmodel.opencl_c import syntax as syn
from perfmodel.opencl_c.lowering.builder import Emission, Frame, Storage, Target
from perfmodel.opencl_c.lowering.builtin_calls import BuiltinCalls
from perfmodel.opencl_c.lowering.expression_traits import has_effects, is_void
from perfmodel.opencl_c.lowering.expressions import Expressions
from perfmodel.opencl_c.lowering.folding import as_constant, joined
from perfmodel.opencl_c.lowering.lvalues import whole
from perfmodel.opencl_c.lowering.memory_layout import addressed_variables, private_tables
from perfmodel.opencl_c.lowering.points_to import assign_variables
from perfmodel.opencl_c.lowering.scalar_replacement import replace_structs
from perfmodel.opencl_c.types import BOOL, FLOAT, SAMPLER, UINT, Array, Image, Pointer, Record, Sampler, Scalar, Vector
from perfmodel.opencl_c.visitor import walk


def lower(unit: syn.Unit, name: str) -> low.LoweredKernel:
    """Returns the lowered kernel of this name.

    Raises:
        KernelError: if the source has no such kernel.
        SourceError: for what can't be lowered, with its place.
    """
    function = unit.functions.get(name)
    if function is None or not function.is_kernel:
        kernels = ", ".join(unit.kernels) or "none"
        raise KernelError(f"the source has no kernel {name!r}{nearest(name, unit.kernels)} (it has {kernels})")
    return Lowering(unit).kernel(function)


class Lowering:
    """Lowers one kernel of a source: its statements, and the functions that it calls."""

    def __init__(self, unit: syn.Unit) -> None:
        self.out = Emission(unit.length)
        self.expressions = Expressions(self.out, self.inlined, self.statements, self.builtin)
        self.builtins = BuiltinCalls(self.out, self.expressions)
        self.addressed = addressed_variables(unit)
        self.private_tables = private_tables(unit)
        self.takes_constants = unit.takes_constants
        self.tables: dict[syn.Variable, Storage] = {
            table: self.table(table) for table in unit.tables if table.type != SAMPLER
        }

    def kernel(self, function: syn.Function) -> low.LoweredKernel:
        self.out.frame = Frame(function, dict(self.tables), self.out.label("kernel"), None)
        self.out.place = function.place

        def fill() -> None:
            for position, parameter in enumerate(function.parameters):
                self.parameter(parameter, position)
            assert function.body is not None
            self.statements(function.body.statements)

        body = self.out.scoped(self.out.frame.end, fill)
        body = replace_structs(body, self.out)
        assign_variables(body, self.out.registers, function.parameters)
        return low.LoweredKernel(
            name=function.name,
            parameters=tuple(low.Parameter(p.name, p.type, p.is_restrict) for p in function.parameters),
            body=body,
            registers=tuple(self.out.registers),
            objects=tuple(self.out.objects),
            private_bytes=self.out.bytes["private"],
            local_bytes=self.out.bytes["local"],
            constant_bytes=self.out.bytes["constant"],
            accesses=tuple(self.out.accesses),
            branches=self.out.branches,
            blocks=self.out.blocks,
            barriers=self.out.barriers,
            work_group=function.work_group,
            subgroup_size=function.subgroup_size,
            takes_constants=self.takes_constants,
        )

    def parameter(self, parameter: syn.Variable, position: int) -> None:
        if isinstance(parameter.type, Record | Array):
            self.out.frame.variables[parameter] = self.out.memory_object(parameter, "private", position)
            return
        type_ = parameter.type
        if isinstance(type_, Image):  # counted as an array of its pixels
            type_ = Pointer(Vector(FLOAT, 4), "global")
        elif isinstance(type_, Sampler):
            type_ = UINT
        register = self.out.register(parameter.name, type_, position)
        if parameter in self.addressed:
            storage = self.out.memory_object(parameter, "private")
            self.expressions.places.store_value(whole(storage), low.Read(register.type, register), parameter.name)
            self.out.frame.variables[parameter] = storage
        else:
            self.out.frame.variables[parameter] = register

    def table(self, table: syn.Variable) -> low.MemoryObject:
        """Returns a variable of the program, whose initial values are known before anything runs."""
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
        space = "constant" if table in self.private_tables else table.space
        return self.out.memory_object(table, space, initial=tuple(initial))

    # --- statements

    def statements(self, statements: Sequence[syn.Statement]) -> None:
        labels = [(at, statement) for at, statement in enumerate(statements) if isinstance(statement, syn.Label)]
        if labels:
            behind = statements[labels[-1][0] + 1 :]
            repeated = next(((at, label) for at, label in labels if _jump_to(label, behind)), None)
            at, label = repeated or labels[-1]
            end = Target(self.out.label(label.name))
            before = self.labelled({label.name: end}, end.leaves, partial(self.statements, statements[:at]))
            self.out.flush()
            self.out.body.extend(before)
            statements = statements[at + 1 :]
            if repeated:
                self.repeat(label, statements)
                return
        for statement in statements:
            if self.out.is_dead:
                return
            self.statement(statement)

    def labelled(
        self, targets: Mapping[str, Target], leaves: str, fill: Callable[[], object]
    ) -> tuple[low.Statement, ...]:
        """Returns what a function emits that may jump to some labels, in a scope that these jumps leave."""
        labels = self.out.frame.labels
        self.out.frame.labels = {**labels, **targets}
        found = self.out.scoped(leaves, fill)
        self.out.frame.labels = labels
        return found

    def repeat(self, label: syn.Label, statements: Sequence[syn.Statement]) -> None:
        """Lowers what stands behind a label to which it jumps back: a loop, which is left at its end."""

        def iteration(leaves: str) -> None:
            def fill() -> None:
                self.statements(statements)
                if not self.out.is_dead:
                    self.out.leave(leaves)

            again = Target(self.out.label(label.name))
            self.out.body.extend(self.labelled({label.name: again}, again.leaves, fill))

        self.out.loop(f"loop_{label.place.line}", lambda: low.Constant(BOOL, 1), iteration, lambda: None, label.place)

    def goto(self, goto: syn.Goto) -> None:
        target = self.out.frame.labels.get(goto.name)
        if target is None:
            reason = f"goto {goto.name} leads into a block, which perfmodel does not support; use a condition"
            raise SourceError(reason, *goto.place)
        for register, value in target.sets:
            self.out.assign(register, low.Constant(BOOL, value))
        self.out.leave(target.leaves)

    def statement(self, statement: syn.Statement) -> None:
        self.out.place = statement.place
        match statement:
            case syn.Compound():
                self.statements(statement.statements)
            case syn.Declare():
                self.declare(statement.variable)
            case syn.Evaluate():
                self.expressions.effects(statement.expression)
            case syn.If():
                condition = self.expressions.decided(statement.condition)
                number = self.out.branch()
                then = self.out.nested(lambda: self.statement(statement.then))
                otherwise: tuple[low.Statement, ...] = ()
                if statement.otherwise is not None:
                    other = statement.otherwise
                    otherwise = self.out.nested(lambda: self.statement(other))
                if then or otherwise:
                    self.out.structured(
                        low.If(
                            number=number, condition=condition, then=then, otherwise=otherwise, place=statement.place
                        )
                    )
            case syn.Loop():
                self.loop(statement)
            case syn.Switch():
                self.switch(statement)
            case syn.Break():
                self.out.leave(self.out.frame.breaks[-1])
            case syn.Continue():
                self.out.leave(self.out.frame.continues[-1])
            case syn.Return():
                self.return_(statement)
            case syn.Goto():
                self.goto(statement)

    def storage(self, variable: syn.Variable) -> Storage:
        if isinstance(variable.type, Array | Record) or variable in self.addressed:
            return self.out.memory_object(variable, "private")
        return self.out.register(variable.name, variable.type)

    def declare(self, variable: syn.Variable) -> None:
        if variable.type == SAMPLER:
            return
        if variable in self.private_tables:  # one for all calls of its function
            if variable not in self.tables:
                self.tables[variable] = self.table(variable)
            self.out.frame.variables[variable] = self.tables[variable]
            return
        if variable.space in ("local", "constant"):
            self.out.frame.variables[variable] = (
                self.table(variable) if variable.space == "constant" else self.out.memory_object(variable, "local")
            )
            return
        storage = self.storage(variable)
        # The initial value may not name the variable itself, but an inlined call may declare it once more.
        if variable.initial is not None:
            self.expressions.initialize(storage, variable.initial, variable.name)
        self.out.frame.variables[variable] = storage

    def loop(self, loop: syn.Loop) -> None:
        if loop.initial is not None:
            self.statement(loop.initial)
        # The first iteration of a `do` loop has no test before it; what one changes belongs to the body then.
        changing = loop.condition if loop.is_do and loop.condition and has_effects(loop.condition) else None
        changed: list[low.Expression] = []

        def test() -> low.Expression:
            self.out.place = loop.place if loop.condition is None else loop.condition.place
            if loop.condition is None or (changing and not changed):
                return low.Constant(BOOL, 1)
            return changed[0] if changing else self.expressions.condition(loop.condition)

        def iteration(label: str) -> None:
            after = self.out.label("next")
            self.out.frame.breaks.append(label)
            self.out.frame.continues.append(after)
            self.out.body.extend(self.out.scoped(after, lambda: self.statement(loop.body)))
            self.out.frame.breaks.pop()
            self.out.frame.continues.pop()
            if changing and not self.out.is_dead:
                changed.append(self.expressions.condition(changing))

        def step() -> None:
            self.out.place = loop.place
            if loop.step is not None:
                self.out.place = loop.step.place
                self.expressions.effects(loop.step)

        target = getattr(loop.step, "target", None)
        self.out.loop(
            target.variable.name if isinstance(target, syn.Name) else f"loop_{loop.place.line}",
            test,
            iteration,
            step,
            loop.place,
            is_do=loop.is_do,
            unroll=loop.unroll,
        )

    def switch(self, switch: syn.Switch) -> None:
        """Lowers cases in order: each has who comes to it by its value, or falls through from the one before.

        What stands behind a label to which other cases jump has who jumps there instead of a value.
        """
        value = self.out.held(self.expressions.value(switch.value), "_switch")
        label = self.out.label("switch")
        self.out.frame.breaks.append(label)

        def fill() -> None:
            falls: low.Register | None = None
            parts = [part for case in switch.cases for part in _parts(case)]
            jumped = {label: self.out.register(f"_{label}", BOOL) for _, label, _ in parts if label}
            for register in jumped.values():
                self.out.assign(register, low.Constant(BOOL, 0))
            for case, name, statements in parts:
                comes: list[low.Expression] = [] if falls is None else [low.Read(BOOL, falls)]
                comes.append(low.Read(BOOL, jumped.pop(name)) if name else self.matches(value, case, switch))
                here, end = self.out.register("_case", BOOL), self.out.label("case")
                self.out.assign(here, joined("|", comes))
                number, place = self.out.branch(), self.out.place
                targets = {label: Target(end, ((register, 1), (here, 0))) for label, register in jumped.items()}
                body = self.labelled(targets, end, partial(self.statements, statements))
                if body:
                    self.out.structured(low.If(number=number, condition=here, then=body, otherwise=(), place=place))
                falls = None if body and isinstance(body[-1], low.Leave) else here

        body = self.out.scoped(label, fill)
        self.out.frame.breaks.pop()
        self.out.flush()
        self.out.body.extend(body)

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
            if self.out.frame.result is None:
                self.expressions.effects(statement.value)
            else:
                self.expressions.put(whole(self.out.frame.result), statement.value, "return")
        self.out.leave(self.out.frame.end)

    def passed(self, argument: syn.Expression) -> Storage:
        """Returns where an image or sampler is that is passed on."""
        if isinstance(argument.type, Image):
            return self.builtins.images.register(argument)
        sampler = self.builtins.images.sampler(argument)
        return sampler.register if isinstance(sampler, low.Read) else self.out.held(sampler, "_sampler").register

    # --- calls

    def builtin(self, expression: syn.BuiltinCall, wanted: bool) -> low.Expression:
        return self.builtins.value(expression, wanted)

    def inlined(self, expression: syn.Call) -> Storage | None:
        """Inlines a function, and returns where its result is."""
        function, outer = expression.function, self.out.frame
        variables = dict(self.tables)
        for parameter, argument in zip(function.parameters, expression.arguments, strict=True):
            if isinstance(parameter.type, Image | Sampler):
                variables[parameter] = self.passed(argument)
                continue
            storage = self.storage(parameter)
            self.expressions.put(whole(storage), argument, parameter.name)
            variables[parameter] = storage
        result: Storage | None = None
        if isinstance(function.result, Record):
            result = self.out.memory_object(
                syn.Variable(f"_{function.name}", function.result, "private", function.place), "private"
            )
        elif function.result.size and not is_void(function.result):
            result = self.out.register(f"_{function.name}", function.result)
        self.out.frame = Frame(function, variables, self.out.label(function.name), result)
        place, called = self.out.place, self.out.called
        if function.body is None:
            raise SourceError(f"function {function.name!r} has no body; define it in the source", *expression.place)
        statements = function.body.statements
        self.out.flush()
        self.out.called = (expression.place, *called)
        body = self.out.scoped(self.out.frame.end, lambda: self.statements(statements))
        self.out.frame, self.out.place, self.out.called = outer, place, called
        self.out.flush()
        if not body or (len(body) == 1 and isinstance(body[0], low.Straight) and body[0].number == self.out.blocks - 1):
            # A function without branches belongs to the block that it is called from.
            self.out.body.extend(body)
            self.out.reopen()
            self.out.reopen()
        else:
            self.out.body.extend(body)
        return result


def _parts(case: syn.Case) -> Iterator[tuple[syn.Case, str, tuple[syn.Statement, ...]]]:
    """Iterates over what stands between the labels of a case, each with the label before it; the first has none.

    A label to which what stands behind it jumps back is no such: that is a loop.
    """
    name, first = "", 0
    for at, statement in enumerate(case.body):
        if isinstance(statement, syn.Label) and not _jump_to(statement, case.body[at + 1 :]):
            yield case, name, case.body[first:at]
            name, first = statement.name, at + 1
    yield case, name, case.body[first:]


def _jump_to(label: syn.Label, statements: Iterable[syn.Statement]) -> bool:
    """Returns whether some statements jump to a label."""
    nodes = (node for statement in statements for node in walk(statement))
    return any(isinstance(node, syn.Goto) and node.name == label.name for node in nodes)

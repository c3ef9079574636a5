"""A lowered kernel is optimized as by a compiler: what comes twice is computed once, invariants before loops.

Global value numbering over the structure of the program: an expression whose operands have the values that they had
before is the same expression, where that earlier place comes first on every way. Loads are the same until something is
stored where they may see it: what is `restrict`, and local and private arrays that a kernel declares, is told apart
from all else, and so are places of a private array whose indices are numbers, which are registers in the end.
What does not change in a loop is computed before it, unless that could fail; a load, where every iteration does it. So
a loop that does nothing loads what it would need.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from perfmodel.opencl_c import lowered as low
from perfmodel.opencl_c import walks
from perfmodel.opencl_c.lowering.folding import converted, folded, inverted
from perfmodel.opencl_c.operations import is_product, is_sum
from perfmodel.opencl_c.promotion import apart_from_others, promoted
from perfmodel.opencl_c.types import BOOL, Array, is_float
from perfmodel.opencl_c.unaligned import by_numbers
from perfmodel.opencl_c.visitor import Dispatch, rebuilt

OTHERS = ""
"""The arrays that nothing tells apart from each other."""
SHARED = "_shared"
"""Registers begin so that hold what an expression of the source gives in several places, or before a loop."""
_WITHOUT_ZERO = frozenset("+-|^") | {"<<", ">>"}
_COMMUTATIVE = frozenset("+*&|^") | {"==", "!="}


@lru_cache(maxsize=8)
def optimized(kernel: low.LoweredKernel) -> low.LoweredKernel:
    """Returns the kernel with common subexpressions and invariants of loops held in registers of their own.

    It computes what the kernel computes, bit by bit; the last ones are remembered.
    """
    return _Optimizer(promoted(by_numbers(kernel))).kernel()


@dataclass(eq=False)
class _Shared:
    """A shared expression may be asked for again: where it is, how often it is used, the register that holds it."""

    expression: low.Expression
    number: int
    level: int
    is_hoisted: bool
    uses: int = 1
    holder: low.Register | None = None


class _Use(low.Node):
    """This node stands for a shared expression until it is known how often it is used."""

    shared: _Shared


@dataclass
class _Preheader:
    """A preheader stands before a loop that is being gone through.

    Attributes:
        computed: the invariants that are computed there.
        outside: the place in the stack of scopes of the one around the loop.
    """

    computed: list[Any]
    outside: int


class _Optimizer:
    """Goes through statements twice: first expressions become uses of shared ones, then these get their registers.

    Attributes:
        numbers: of values, by what they are computed from; two of one number are equal.
        constants, stored: values that are written in the program, and registers and constants that were stored, by
            number.
        values, levels: of registers, the number of their value and how many of the loops around change them.
        places: of pointers to private arrays, by number: the array, and the bytes before the place in it.
        memory: by space, a number for what is in all of it (None), in each array of `apart`, and in the `OTHERS`; and
            how many of the loops around change it.
        elements: by private array, the same of each place that a number led to, and of all places that none did (None).
        is_sure: whether every iteration of the innermost loop comes here.
        scopes: what has been computed on every way to where control is, innermost last, by number.
    """

    def __init__(self, kernel: low.LoweredKernel) -> None:
        self.source = kernel
        self.numbers: dict[Hashable, int] = {}
        self.constants: dict[int, low.Constant] = {}
        self.stored: dict[int, low.Read | low.Constant] = {}
        self.values: dict[low.Register, int] = {}
        self.levels: dict[low.Register, int] = {}
        self.places: dict[int, tuple[str, int]] = {}
        self.memory: dict[tuple[str, str | None], tuple[int, int]] = {}
        self.elements: dict[tuple[str, int | None], tuple[int, int]] = {}
        self.private = {each.name: each for each in kernel.objects if each.space == "private"}
        self.apart = apart_from_others(kernel) | frozenset(self.private)
        self.is_sure = False
        self.scopes: list[dict[int, _Shared]] = [{}]
        self.loops: list[_Preheader] = []
        self.defined: list[Any] = []
        self.registers: list[low.Register] = []
        self.last, self.blocks = 0, kernel.blocks

    def kernel(self) -> low.LoweredKernel:
        body = tuple(map(self.resolved, self.body(self.source.body)))
        registers = (*self.source.registers, *self.registers)
        return replace(self.source, body=body, registers=registers, blocks=self.blocks)

    # --- statements, first pass

    def body(self, statements: Iterable[low.Statement]) -> list[Any]:
        return [each for statement in statements for each in self.statement(statement)]

    statement = Dispatch[[], list[Any]](low.Statement)

    @statement.on(low.Straight)
    def straight(self, block: low.Straight) -> list[Any]:
        """Returns the block, each of its statements behind what it is the first to compute."""
        found: list[Any] = []
        stores: dict[Hashable, Any] = {}
        for statement in block.statements:
            self.defined = []
            changed: Any = rebuilt(statement, self.expression)
            if isinstance(changed, low.Assign):
                number = self.number_of(changed.value) if changed.components is None else self.new()
                self.set(changed.register, number)
            found += [*self.defined, changed]
            if not isinstance(statement, low.Assign | low.Store) or any(map(_loads, found[-1 - len(self.defined) :])):
                stores.clear()
            if type(changed) is low.Store:
                self.change(changed.access.space, changed.access.variable, self.element(changed))
                self.note(changed)
                place = changed.access.type, self.number_of(changed.pointer)
                if place in stores:
                    found = [each for each in found if each is not stores[place]]
                stores[place] = changed
            else:
                self.affect(statement)
        return [replace(block, statements=tuple(found))]

    def note(self, store: low.Store) -> None:
        """Notes that a load finds what has just been stored at its place."""
        if store.value.type != store.access.type:
            return
        number = self.number_of(store.value)
        self.numbers[self.key_of(low.Load(store.value.type, store.pointer, store.access))] = number
        if isinstance(store.value, low.Read | low.Constant):
            self.stored[number] = store.value

    def affect(self, statement: Any) -> None:
        """Gives memory that a statement changes a new number."""
        match statement:
            case low.Store() | low.Atomic():
                self.change(statement.access.space, statement.access.variable)
                if isinstance(statement, low.Atomic) and statement.result is not None:
                    self.set(statement.result, self.new())
            case low.Collective():
                self.set(statement.result, self.new())
            case low.Barrier():
                self.change("global")
                self.change("local")

    def change(self, space: str, array: str | None = None, element: int | None = None) -> None:
        """Gives what a store changes new numbers: in one array, or where that is not known in a whole space.

        Args:
            element: the place in a private array that is stored to, where a number leads there.
        """
        changed = [array if array in self.apart else OTHERS] if array else [OTHERS, *self.apart]
        for each in (None, *changed):
            self.memory[space, each] = self.new(), len(self.loops)
            if space == "private" and each:
                self.elements[each, element] = self.memory[space, each]

    def seen(self, load: Any) -> tuple[int, int]:
        """Returns the number of what a load may see, and how many of the loops around change it."""
        access, array = load.access, load.access.variable
        element = self.element(load)
        if element is not None:
            return max(self.elements.get((array, each), (0, 0)) for each in (None, element))
        return self.memory.get((access.space, array if array in self.apart or not array else OTHERS), (0, 0))

    def element(self, accessing: Any) -> int | None:
        """Returns the bytes before the element of a private array that a load or store is at, if a number says so."""
        access = accessing.access
        found = self.private.get(access.variable) if access.space == "private" else None
        if found is None or not isinstance(found.type, Array) or found.type.element != access.type:
            return None
        array, before = self.places.get(self.number_of(accessing.pointer), ("", 0))
        return before if array == found.name else None

    @statement.on(low.If)
    def branch(self, branch: low.If) -> list[Any]:
        values, memory, is_sure = dict(self.values), dict(self.memory), self.is_sure
        elements = dict(self.elements)
        self.is_sure = False
        then = self.within(branch.then)
        self.values, self.memory, self.elements = values, memory, elements
        otherwise = self.within(branch.otherwise)
        self.is_sure = is_sure and not walks.labels_left((branch,))
        self.forget((*branch.then, *branch.otherwise))
        return [replace(branch, then=then, otherwise=otherwise)]

    @statement.on(low.Scope)
    def scope(self, scope: low.Scope) -> list[Any]:
        is_sure = self.is_sure
        inner = self.within(scope.body)
        self.is_sure = is_sure and not walks.labels_left((scope,))
        self.forget(scope.body)
        return [replace(scope, body=inner)]

    @statement.on(low.Leave)
    def leave(self, leave: low.Leave) -> list[Any]:
        return [leave]

    @statement.on(low.Loop)
    def loop(self, loop: low.Loop) -> list[Any]:
        preheader = _Preheader([], len(self.scopes) - 1)
        self.loops.append(preheader)
        self.forget((loop,))
        self.scopes.append({})
        # An iteration may end early, and the first one of a `do` loop has no test.
        is_sure, self.is_sure = self.is_sure, True
        test = () if loop.is_do else tuple(self.body(loop.test))
        body = self.within(loop.body)
        self.forget(loop.body)
        self.is_sure = False
        step = self.within(loop.step)
        if loop.is_do:
            self.forget(loop.step)
            test = self.within(loop.test)
        self.is_sure = is_sure and not walks.labels_left((loop,))
        self.scopes.pop()
        self.loops.pop()
        self.forget((loop,))
        changed = replace(loop, test=test, body=body, step=step)
        if not preheader.computed:
            return [changed]
        self.blocks += 1
        return [low.Straight(self.blocks - 1, tuple(preheader.computed), loop.place), changed]

    def within(self, body: Iterable[low.Statement]) -> tuple[Any, ...]:
        """Goes through statements that are not always executed: what they compute is not known behind them."""
        self.scopes.append({})
        found = tuple(self.body(body))
        self.scopes.pop()
        return found

    def forget(self, body: tuple[low.Statement, ...]) -> None:
        """Gives registers and memory that statements may have changed new numbers."""
        for statement in walks.simple_statements(body):
            self.affect(statement)
            if isinstance(statement, low.Assign):
                self.set(statement.register, self.new())

    def set(self, register: low.Register, number: int) -> None:
        self.values[register] = number
        self.levels[register] = len(self.loops)

    # --- expressions, first pass

    def expression(self, expression: low.Expression, in_sum: bool = False) -> Any:
        changed = _folded(self.with_parts(expression))
        # A product that is added to something costs nothing there, as one operation does both.
        if not _is_work(changed) or (in_sum and is_product(changed)):
            return changed
        number = self.number_of(changed)
        stored = self.stored.get(number) if isinstance(changed, low.Load) else None
        if stored is not None and self.number_of(stored) == number:
            return stored
        for scope in reversed(self.scopes):
            if shared := scope.get(number):
                shared.uses += 1
                return _Use(changed.type, shared)
        return _Use(changed.type, self.first(changed, number))

    def with_parts(self, expression: low.Expression) -> Any:
        expression = _by_quotient(expression)
        if isinstance(expression, low.Read):
            known = self.constants.get(self.values.get(expression.register, 0))
            return known if known is not None and known.type == expression.type else expression
        in_sum = is_sum(expression) or (isinstance(expression, low.Unary) and expression.operator == "-")
        return rebuilt(expression, lambda part: self.expression(part, in_sum))

    def first(self, expression: low.Expression, number: int) -> _Shared:
        """Returns a new shared expression, computed here or before the loops that do not change it."""
        level = self.level(expression)
        is_load, depth = isinstance(expression, low.Load), len(self.loops)
        if is_load and level < depth:  # out of the innermost loop alone: that around it need not come to it
            level = depth - 1 if self.is_sure else depth
        if level < depth and not low.may_divide_by_zero(expression):
            preheader = self.loops[level]
            shared = _Shared(expression, number, level, is_hoisted=True)
            preheader.computed.append(shared)
            self.scopes[preheader.outside][number] = shared
        else:
            shared = _Shared(expression, number, len(self.loops), is_hoisted=False)
            self.defined.append(shared)
            self.scopes[-1][number] = shared
        return shared

    def level(self, expression: Any) -> int:
        """Returns how many of the loops around change it; a loop that has ended counts as what is around it."""
        match expression:
            case _Use():
                return min(expression.shared.level, len(self.loops))
            case low.Read():
                return min(self.levels.get(expression.register, 0), len(self.loops))
            case low.Load():
                changed = min(self.seen(expression)[1], len(self.loops))
                return max(changed, self.level(expression.pointer))
        return max((self.level(part) for part in walks.parts(expression)), default=0)

    def number_of(self, expression: Any) -> int:
        match expression:
            case _Use():
                return expression.shared.number
            case low.Read():
                if expression.register not in self.values:
                    self.values[expression.register] = self.new()
                return self.values[expression.register]
        key = self.key_of(expression)
        if key not in self.numbers:
            self.numbers[key] = self.new()
            if (place := self.place(expression)) is not None:
                self.places[self.numbers[key]] = place
        if isinstance(expression, low.Constant):
            self.constants[self.numbers[key]] = expression
        return self.numbers[key]

    def place(self, pointer: Any) -> tuple[str, int] | None:
        """Returns the private array that a pointer leads into, and the bytes before the place, if a number says so."""
        match pointer:
            case low.Address() if pointer.object.space == "private":
                return pointer.object.name, 0
            case low.Reinterpret():
                return self.places.get(self.number_of(pointer.operand))
            case low.Offset(index=low.Constant(value=index)):
                array, before = self.places.get(self.number_of(pointer.pointer), ("", 0))
                return (array, before + int(index) * pointer.scale) if array else None
        return None

    def key_of(self, expression: Any) -> Hashable:
        """Returns what is equal for expressions that are computed alike from values of the same numbers."""
        operands = [self.number_of(part) for part in walks.parts(expression)]
        if isinstance(expression, low.Binary) and expression.operator in _COMMUTATIVE:
            operands.sort()
        return type(expression), expression.type, self.own(expression), *operands

    def own(self, expression: low.Expression) -> Hashable:
        """Returns what decides on a value beside the operands."""
        match expression:
            case low.Constant():
                return repr(expression.value)  # 0.0 is not -0.0
            case low.WorkItem() | low.Call():
                return expression.function
            case low.ImageSize():
                return expression.function, id(expression.image)
            case low.Unary() | low.Binary():
                return expression.operator
            case low.Convert():
                return expression.rounding, expression.saturate
            case low.Pick():
                return expression.components
            case low.Address():
                return id(expression.object)
            case low.Offset():
                return expression.scale
            case low.Load():
                return self.seen(expression)[0]
        return None

    def new(self) -> int:
        self.last += 1
        return self.last

    # --- second pass

    def resolved(self, node: Any) -> Any:
        """Returns a node without uses of shared expressions; None for what nobody shares in the end."""
        match node:
            case _Use():
                shared = node.shared
                return low.Read(node.type, shared.holder) if shared.holder else self.resolved(shared.expression)
            case _Shared():
                if node.uses == 1 and not node.is_hoisted:
                    return None
                node.holder = low.Register(f"{SHARED}{len(self.registers)}", node.expression.type)
                self.registers.append(node.holder)
                return low.Assign(node.holder, self.resolved(node.expression))
        return rebuilt(node, self.resolved)


def _folded(expression: Any) -> Any:
    """Returns what operators make of numbers that the program has; everything else as it is."""
    match expression:
        case low.Binary():
            found = folded(expression)
            return _without_effect(found) if isinstance(found, low.Binary) else found
        case low.Unary(operator="-" | "~"):
            return inverted(expression)
        case low.Convert(operand=low.Constant()) if not expression.rounding and not expression.saturate:
            return converted(expression.operand, expression.type) if expression.type != BOOL else expression
    return expression


def _without_effect(expression: low.Binary) -> Any:
    """Returns the operand that an operator leaves as it is, as the other one is 0 or 1."""
    left, right = expression.left, expression.right
    if expression.type == BOOL or not isinstance(right, low.Constant) or left.type != expression.type:
        return expression
    is_one = expression.operator in ("*", "/") and right.value == 1
    is_nothing = expression.operator in _WITHOUT_ZERO and right.value == 0 and not is_float(expression.type)
    return left if is_one or is_nothing else expression


def _loads(statement: Any) -> bool:
    """Returns whether a statement loads, as far as it is one that computes or stores."""
    root = statement.expression if isinstance(statement, _Shared) else statement
    return any(isinstance(each, low.Load) for each in walks.walk(root))


def _by_quotient(expression: low.Expression) -> low.Expression:
    """Writes a remainder of whole numbers by the quotient, which is often asked for as well; machines do so too."""
    if not isinstance(expression, low.Binary) or expression.operator != "%" or is_float(expression.type):
        return expression
    if isinstance(expression.right, low.Constant):
        return expression
    type_, left, right = expression.type, expression.left, expression.right
    quotient = low.Binary(type_, "/", left, right)
    return low.Binary(type_, "-", left, low.Binary(type_, "*", quotient, right))


def _is_work(expression: low.Expression) -> bool:
    """Returns whether an expression itself takes time; sums of addresses are part of their accesses."""
    if isinstance(expression, low.Convert):
        return is_float(expression.type) != is_float(expression.operand.type)
    return isinstance(expression, low.Binary | low.Call | low.Load | low.Select)

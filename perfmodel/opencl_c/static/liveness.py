"""A work-item of a lowered kernel holds so many words of 32 bits at once, by the liveness of its registers.

A register is live from where it gets a value to where that is last read; what a loop's next iteration reads lives
through the whole loop. Compilers move, unroll and spill; this is the source as it stands.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from perfmodel.opencl_c import lowered as low
from perfmodel.opencl_c import walks
from perfmodel.opencl_c.types import BOOL, Type, Vector
from perfmodel.opencl_c.visitor import Dispatch

WORD_BYTES = 4

Live = frozenset[low.Register]


def words_at_once(kernel: low.LoweredKernel) -> int:
    """Returns the most words that are live together, what expressions are computed from included.

    Conditions are none, as devices have registers of their own for them; so are arguments that the kernel does not
    change, which devices read from constant memory.
    """
    return _liveness(kernel).most


def words_around_loops(kernel: low.LoweredKernel) -> dict[str, int]:
    """Returns the words that are live from one iteration to the next, by the loops' names."""
    found = _liveness(kernel)
    around = {each.name: found.within[id(each)] for each in walks.loops(kernel.body)}
    return {name: sum(found.words[each] for each in again) for name, (again, _) in around.items()}


def live_before(kernel: low.LoweredKernel, body: Sequence[low.Statement], after: Live) -> Live:
    """Returns the registers whose values statements of a kernel need, or pass on to what needs some after them."""
    return _Liveness(kernel).before(body, after, {})


@lru_cache(maxsize=8)
def _liveness(kernel: low.LoweredKernel) -> _Liveness:
    return _Liveness(kernel)


class _Liveness:
    def __init__(self, kernel: low.LoweredKernel) -> None:
        changed = walks.registers_set(kernel.body)
        self.steps: dict[int, list[_Step]] = {}
        given = {r for r in kernel.registers if r.parameter is not None and r not in changed}
        read = components_read(kernel.body)
        self.words = {r: 0 if r in given else _words_read(r, read.get(r)) for r in kernel.registers}
        self.most = 0
        # What was live in a loop when it was last looked at is so again: loops around it only add to what is live.
        self.within: dict[int, tuple[Live, Live]] = {}
        self.before(kernel.body, frozenset(), {})

    def before(self, body: Sequence[low.Statement], after: Live, exits: Mapping[str, Live]) -> Live:
        """Returns what is live before statements, given what is live after them, and behind what they may leave for."""
        for statement in reversed(body):
            after = self.visit(statement, after, exits)
        return after

    visit = Dispatch[[Live, Mapping[str, Live]], Live](low.Statement)

    @visit.on(low.If)
    def branch(self, branch: low.If, after: Live, exits: Mapping[str, Live]) -> Live:
        ways = self.before(branch.then, after, exits) | self.before(branch.otherwise, after, exits)
        return ways | {branch.condition}

    @visit.on(low.Scope)
    def scope(self, scope: low.Scope, after: Live, exits: Mapping[str, Live]) -> Live:
        return self.before(scope.body, after, {**exits, scope.label: after})

    @visit.on(low.Leave)
    def leave(self, leave: low.Leave, after: Live, exits: Mapping[str, Live]) -> Live:
        return exits.get(leave.label, frozenset())

    @visit.on(low.Loop)
    def loop(self, loop: low.Loop, after: Live, exits: Mapping[str, Live]) -> Live:
        test, body = self.within.get(id(loop), (after, after))
        while True:
            head = self.before(loop.body, self.before(loop.step, test, exits), {**exits, loop.label: after})
            again = self.before(loop.test, head | after | {loop.condition}, exits)
            if (again, head) == (test, body):
                self.within[id(loop)] = again, head
                return head if loop.is_do else again
            test, body = again, head

    @visit.on(low.Straight)
    def straight(self, block: low.Straight, live: Live, exits: Mapping[str, Live]) -> Live:
        if id(block) not in self.steps:
            self.steps[id(block)] = [_step(statement) for statement in reversed(block.statements)]
        now = set(live)
        words = self.words
        held = sum(words[register] for register in live)
        for step in self.steps[id(block)]:
            if step.set_anew in now:
                now.remove(step.set_anew)
                held -= words[step.set_anew]
            for register in step.read - now:
                now.add(register)
                held += words[register]
            self.most = max(self.most, held + step.during)
        return frozenset(now)


@dataclass(frozen=True)
class _Step:
    """A statement, as it changes what is live.

    Attributes:
        set_anew: the register that gets a value as a whole.
        during: words beside registers to compute it.
    """

    set_anew: low.Register | None
    read: frozenset[low.Register]
    during: int


def _step(statement: low.Simple) -> _Step:
    changed, expressions = walks.register_set(statement), walks.expressions_of(statement)
    is_part = isinstance(statement, low.Assign) and statement.components is not None
    # What a statement reads for the last time may give its place to the result.
    during = _needed(expressions) if expressions or changed is None else words_of(changed.type)
    return _Step(None if is_part else changed, frozenset(walks.registers_read(statement)), during)


def _needed(expressions: Sequence[low.Expression]) -> int:
    """Returns words beside registers' to compute expressions, the most demanding first (Sethi & Ullman, 1970)."""
    demands = sorted(((_demand(e), _own(e)) for e in expressions), key=lambda both: both[1] - both[0])
    held = most = 0
    for demand, own in demands:
        most = max(most, held + demand)
        held += own
    return most


def _demand(expression: low.Expression) -> int:
    """Returns words beside those of registers to compute an expression, its result included."""
    return max(_needed(walks.parts(expression)), _own(expression))


def _own(expression: low.Expression) -> int:
    """Returns the words of an expression's result; constants stand in instructions, registers have theirs already."""
    return 0 if isinstance(expression, low.Constant | low.Read) else words_of(expression.type)


def components_read(body: Sequence[low.Statement]) -> dict[low.Register, frozenset[int]]:
    """Returns the components that are read of registers which hold vectors, of those that nothing reads as a whole."""
    read: Counter[low.Register] = Counter()
    picked: Counter[low.Register] = Counter()
    components: dict[low.Register, frozenset[int]] = {}
    for statement in walks.simple_statements(body):
        read.update(walks.registers_read(statement))
        for expression in walks.expressions_of(statement):
            for each in walks.walk(expression):
                if isinstance(each, low.Pick) and isinstance(each.vector, low.Read):
                    register = each.vector.register
                    picked[register] += 1
                    components[register] = components.get(register, frozenset()).union(each.components)
    return {register: parts for register, parts in components.items() if picked[register] == read[register]}


def _words_read(register: low.Register, components: frozenset[int] | None) -> int:
    """Returns the words of a register's value, of a vector those of the components that are read."""
    if components is None or not isinstance(register.type, Vector):
        return words_of(register.type)
    return len(components) * words_of(register.type.element)


def words_of(type_: Type) -> int:
    """Returns the words that a value of a type takes; conditions are none."""
    if type_ == BOOL:
        return 0
    size = type_.element.size * type_.width if isinstance(type_, Vector) else type_.size
    return -(-size // WORD_BYTES)

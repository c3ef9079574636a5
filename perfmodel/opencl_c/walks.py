"""Walks over lowered kernels are here: through statements, expressions, accesses and registers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, KeysView
from functools import lru_cache

from perfmodel.opencl_c import lowered as low
from perfmodel.opencl_c.visitor import children
from perfmodel.opencl_c.visitor import walk as nodes_within

_REMEMBERED = 4096
"""So many statements, which never change, have what is asked again and again of them remembered."""


def parts(expression: low.Expression) -> list[low.Expression]:
    """Returns the expressions that an expression is made of."""
    return children(expression)


def walk(expression: low.Expression) -> Iterator[low.Expression]:
    """Iterates over an expression and all within it, operands first."""
    return nodes_within(expression)


def unconverted(expression: low.Expression) -> low.Expression:
    """Returns the value that an expression's conversions start from; itself where it is none."""
    while isinstance(expression, low.Convert):
        expression = expression.operand
    return expression


def expressions_of(statement: low.Simple) -> list[low.Expression]:
    """Returns the expressions that a statement evaluates; of a store the address comes first."""
    return children(statement)


def statements(body: Iterable[low.Statement]) -> Iterator[low.Statement]:
    """Iterates over all statements, in the order of the source; one that has others comes before them."""
    for statement in body:
        yield statement
        if not isinstance(statement, low.Straight):
            yield from statements(children(statement))


def branches(body: Iterable[low.Statement]) -> Iterator[low.If | low.Loop]:
    """Iterates over all that conditions decide, in the order of the source."""
    return (statement for statement in statements(body) if isinstance(statement, low.If | low.Loop))


def loops(body: Iterable[low.Statement]) -> Iterator[low.Loop]:
    """Iterates over all loops, in the order of the source."""
    return (statement for statement in statements(body) if isinstance(statement, low.Loop))


def in_turn(loop: low.Loop) -> tuple[low.Statement, ...]:
    """Returns the statements of a loop in the order in which its first iteration comes to them."""
    return (*loop.body, *loop.step, *loop.test) if loop.is_do else (*loop.test, *loop.body, *loop.step)


def straights(body: Iterable[low.Statement]) -> Iterator[low.Straight]:
    """Iterates over all basic blocks, in the order of the source."""
    return (statement for statement in statements(body) if isinstance(statement, low.Straight))


def simple_statements(body: Iterable[low.Statement]) -> Iterator[low.Simple]:
    """Iterates over the statements of all basic blocks, in the order of the source."""
    return (statement for block in straights(body) for statement in block.statements)


def accesses_of(statement: low.Simple) -> Iterator[low.Load | low.Store | low.Atomic]:
    """Iterates over what accesses memory in a statement: its loads, and the statement itself if it stores."""
    return iter(_accesses_of(statement))


@lru_cache(maxsize=_REMEMBERED)
def _accesses_of(statement: low.Simple) -> tuple[low.Load | low.Store | low.Atomic, ...]:
    return tuple(node for node in nodes_within(statement) if isinstance(node, low.Load | low.Store | low.Atomic))


def registers_read(node: low.Expression | low.Simple) -> Iterator[low.Register]:
    """Iterates over the registers that an expression or a statement reads, each as often as it is read."""
    return (part.register for part in nodes_within(node) if isinstance(part, low.Read))


def register_set(statement: low.Simple) -> low.Register | None:
    """Returns the register that a statement gives a value, be it to some of its components only."""
    match statement:
        case low.Assign():
            return statement.register
        case low.Atomic() | low.Collective():
            return statement.result
    return None


def registers_set(body: Iterable[low.Statement]) -> KeysView[low.Register]:
    """Returns the registers that statements give values, in the order of the source."""
    return _registers_set(tuple(body))


@lru_cache(maxsize=_REMEMBERED)
def _registers_set(body: tuple[low.Statement, ...]) -> KeysView[low.Register]:
    found = map(register_set, simple_statements(body))
    return dict.fromkeys(register for register in found if register is not None).keys()


def labels_left(body: Iterable[low.Statement]) -> frozenset[str]:
    """Returns the labels of surrounding loops and scopes that statements leave."""
    return _labels_left(tuple(body))


@lru_cache(maxsize=_REMEMBERED)
def _labels_left(body: tuple[low.Statement, ...]) -> frozenset[str]:
    inside = list(statements(body))
    own = {statement.label for statement in inside if isinstance(statement, low.Loop | low.Scope)}
    return frozenset(statement.label for statement in inside if isinstance(statement, low.Leave)) - own


def always(statements: Iterable[low.Statement]) -> Iterator[low.Straight]:
    """Iterates over the blocks that are executed whenever all these statements are begun."""
    for each in statements:
        match each:
            case low.Straight():
                yield each
            case low.Scope():
                yield from always(each.body)
        if labels_left([each]):
            return


def carried_registers(iteration: Iterable[low.Statement]) -> frozenset[low.Register]:
    """Returns the registers that an iteration reads before it gives them values for the next."""
    first: set[low.Register] = set()
    written: set[low.Register] = set()
    for statement in simple_statements(iteration):
        first.update(register for register in registers_read(statement) if register not in written)
        register = register_set(statement)
        if register is not None:
            written.add(register)
    return frozenset(first & written)

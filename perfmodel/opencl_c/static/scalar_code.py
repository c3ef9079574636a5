"""Finds the kernels of which a processor's compiler makes no vectors of work-items, and does one after the other.

Intel's compiler cannot widen functions of vectors: it takes their arguments apart, lane by lane, and puts their results
together. It does so where the rest of the kernel gains more than that costs. The costs here follow from its build log,
for kernels of which the rest grew step by step, and for those of programs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from perfmodel.opencl_c import lowered as low
from perfmodel.opencl_c import walks
from perfmodel.opencl_c.static.uniformity import Uniformity
from perfmodel.opencl_c.types import Vector, width_of
from perfmodel.opencl_c.visitor import children
from perfmodel.opencl_c.visitor import walk as nodes_within

TAKEN_APART, MOVED, FUNCTION = 2, 16, 10
"""Taking an element of a vector apart, or putting it together, costs so many operations; so does loading or storing a
vector whose places differ between lanes; and a function of numbers gains so many."""
ITERATIONS = 30
"""So often the compiler takes a loop to run."""


def operations_of_scalar_code(kernel: low.LoweredKernel) -> float:
    """Returns how many operations an instruction does on average where a compiler makes no vectors of work-items; 0
    where it makes some.

    It does one work-item after the other where a kernel calls functions of vectors, or moves vectors that need not be
    aligned, and does little else. The vectors of the source are what instructions work on then.
    """
    nodes = [node for statement in walks.simple_statements(kernel.body) for node in nodes_within(statement)]
    if not any(map(_is_apart, nodes)) or _gains(kernel):
        return 0.0
    widths = [width_of(node.type) for node in nodes if isinstance(node, low.Binary | low.Unary | low.Call)]
    return sum(widths) / len(widths) if widths else 1.0


def _gains(kernel: low.LoweredKernel) -> bool:
    """Returns whether a kernel has operations enough beside those that are taken apart."""
    uniformity = Uniformity(kernel)
    gained = lost = 0.0
    for weight, statement in _weighted(kernel.body):
        for node in nodes_within(statement):
            if _is_apart(node):
                lost += weight * TAKEN_APART * sum(map(width_of, _vectors_taken_apart(node, uniformity)))
            elif isinstance(node, low.Binary | low.Unary | low.Convert | low.Call) and uniformity.differs(node):
                gained += weight * (FUNCTION if isinstance(node, low.Call) else width_of(node.type))
            if isinstance(node, low.Load | low.Store) and isinstance(node.access.type, Vector):
                lost += weight * MOVED * uniformity.differs(node.pointer)
    return gained >= lost


def _weighted(body: Iterable[low.Statement], weight: float = 1.0) -> Iterator[tuple[float, low.Simple]]:
    """Yields statements, each with how often it is taken to run."""
    for statement in body:
        if isinstance(statement, low.Straight):
            yield from ((weight, each) for each in statement.statements)
        else:
            yield from _weighted(children(statement), weight * (ITERATIONS if isinstance(statement, low.Loop) else 1))


def _is_apart(node: object) -> bool:
    """Returns whether an operation on vectors is none that a compiler widens."""
    match node:
        case low.Call():
            return any(isinstance(each.type, Vector) for each in (node, *node.arguments))
        case low.Convert():
            return isinstance(node.type, Vector) and isinstance(node.operand.type, Vector)
        case low.Load() | low.Store():
            return isinstance(node.access.type, Vector) and node.access.alignment < node.access.bytes
    return False


def _vectors_taken_apart(node: object, uniformity: Uniformity) -> list[Vector]:
    """Returns the vectors that such an operation works on or makes, as far as lanes differ in them."""
    match node:
        case low.Call():
            values = [*node.arguments, node]
        case low.Convert():
            values = [node.operand, node]
        case _:
            return []
    return [each.type for each in values if isinstance(each.type, Vector) and uniformity.differs(each)]

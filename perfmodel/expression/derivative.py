"""Lowers functions into primitives, and derives in reverse mode.

Reverse mode gives the derivatives with respect to all parameters at once, in a number of nodes proportional to the
expression's own, however many parameters there are and however often terms are shared.
"""

from __future__ import annotations

from collections.abc import Sequence

from perfmodel.expression.algebra import ONE, ZERO, add, call, divide, multiply, negate, power, subtract
from perfmodel.expression.functions import FUNCTIONS
from perfmodel.expression.tree import Binary, Call, Negation, Node, Number, Parameter, rewritten, walk

_MINUS_ONE = Number(-1.0)


def lowered(roots: Sequence[Node], differentiable: bool = False) -> list[Node]:
    """Returns the same expressions in primitives; functions that know their partial derivatives stay if
    `differentiable`."""

    def lower(node: Node, children: tuple[Node, ...]) -> Node | None:
        function = FUNCTIONS[node.function] if isinstance(node, Call) else None
        if function is None or not function.lower or (differentiable and function.partials):
            return None
        return function.lower(children)

    return rewritten(roots, lower)


def gradient(root: Node) -> dict[str, Node]:
    """Returns the derivatives with respect to every parameter below the root, as one shared graph."""
    (root,) = lowered([root], differentiable=True)
    order = list(walk(root))
    dependent = _dependent(order)
    adjoints: dict[Node, Node] = {root: ONE}
    rough: set[Node] = set()
    result: dict[str, Node] = {}
    for node in reversed(order):
        if node not in dependent:
            continue
        adjoint = adjoints.pop(node, ZERO)
        if isinstance(node, Parameter):
            result[node.name] = add(result.get(node.name, ZERO), adjoint)
            continue
        guarded = node in rough or _rough(node)
        for child, partial in zip(node.children, _partials(node), strict=True):
            if child in dependent:
                contribution = _guarded_product(adjoint, partial) if guarded else multiply(adjoint, partial)
                adjoints[child] = add(adjoints.get(child, ZERO), contribution)
                if guarded:
                    rough.add(child)
    return result


def is_affine(root: Node) -> bool:
    """Returns True if the expression is a sum of products of at most one parameter and anything without parameters."""
    degrees: dict[Node, int] = {}
    (root,) = lowered([root])
    for node in walk(root):
        degrees[node] = _degree(node, [degrees[child] for child in node.children])
    return degrees[root] <= 1


def _degree(node: Node, children: list[int]) -> int:
    """Returns a node's degree in the parameters: 0 without any, 1 if affine in them, else 2 or more."""
    if isinstance(node, Parameter):
        return 1
    if isinstance(node, Binary) and node.operator == "*":
        return min(sum(children), 2)
    if isinstance(node, Binary) and node.operator == "/" and children[1] == 0:
        return children[0]
    if isinstance(node, Binary) and node.operator == "**" and isinstance(node.right, Number) and node.right.value == 1:
        return children[0]
    if isinstance(node, Call) and node.function == "select" and children[:2] == [0, 0]:
        return max(children)
    degree = max(children, default=0)
    additive = isinstance(node, Negation) or (isinstance(node, Binary) and node.operator in "+-")
    return degree if additive or degree == 0 else 2


def _dependent(order: list[Node]) -> set[Node]:
    """Returns the nodes that contain a parameter."""
    dependent: set[Node] = set()
    for node in order:
        if isinstance(node, Parameter) or any(child in dependent for child in node.children):
            dependent.add(node)
    return dependent


def _partials(node: Node) -> tuple[Node, ...]:
    if isinstance(node, Call):
        partials = FUNCTIONS[node.function].partials
        if partials is None:
            raise NotImplementedError(f"second derivatives: {node.function} occurs in derivatives only")
        return partials(node.arguments, node)
    if isinstance(node, Binary):
        return _operator_partials(node)
    return (_MINUS_ONE,)


def _operator_partials(node: Binary) -> tuple[Node, Node]:
    left, right = node.left, node.right
    if node.operator == "+":
        return ONE, ONE
    if node.operator == "-":
        return ONE, _MINUS_ONE
    if node.operator == "*":
        return right, left
    if node.operator == "/":
        return divide(ONE, right), negate(divide(node, right))
    return _guarded_product(right, power(left, subtract(right, ONE))), call("power_log", left, right)


def _rough(node: Node) -> bool:
    """Returns True if a partial derivative can be infinite, or zero where the node no longer changes (see
    `Function.rough`)."""
    if isinstance(node, Call):
        return FUNCTIONS[node.function].rough
    if isinstance(node, Binary) and node.operator == "**":
        return not (isinstance(node.right, Number) and node.right.value >= 1)
    return isinstance(node, Binary) and node.operator == "/" and not isinstance(node.right, Number)


def _guarded_product(left: Node, right: Node) -> Node:
    """Returns a product that is 0 where one factor is 0, even if the other is infinite: sqrt(p*0) does not depend on
    p."""
    if isinstance(left, Number) or isinstance(right, Number):
        return multiply(left, right)
    return call("product", left, right)

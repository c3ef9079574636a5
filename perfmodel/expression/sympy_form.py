"""Model strings as sympy expressions, by the published formulas rather than the lowered ones.

Only for further symbolic work: sympy is never used to evaluate or differentiate a model string.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from perfmodel.expression.tree import Binary, Call, FeatureName, Negation, Node, Number, Parameter, walk


def to_sympy(root: Node) -> Any:
    """Returns a sympy expression of real symbols that have the names of parameters and features."""
    import sympy  # slow to import

    functions = _functions()
    done: dict[Node, Any] = {}
    for node in walk(root):
        children = [done[child] for child in node.children]
        match node:
            case Number(value):
                done[node] = sympy.Integer(int(value)) if value.is_integer() else sympy.Float(value)
            case Parameter(name) | FeatureName(name):
                done[node] = sympy.Symbol(name, real=True)
            case Binary(operator):
                done[node] = _OPERATORS[operator](*children)
            case Negation():
                done[node] = -children[0]
            case Call(function):
                done[node] = functions[function](*children)
    return done[root]


_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda x, y: x + y,
    "-": lambda x, y: x - y,
    "*": lambda x, y: x * y,
    "/": lambda x, y: x / y,
    "**": lambda x, y: x**y,
}


def _functions() -> dict[str, Callable[..., Any]]:
    import sympy  # slow to import

    def smooth_step(x: Any, p: Any) -> Any:
        return (sympy.tanh(p * x) + 1) / 2

    def overlap(*arguments: Any) -> Any:
        *resources, p = arguments
        return sum(resource**p for resource in resources) ** (1 / p)

    def saturating(n: Any, a: Any, b: Any, c: Any, a2: Any, c2: Any, n_sat: Any) -> Any:
        return sympy.Piecewise((a * n**b + c, n <= n_sat), (a2 * n + c2, True))

    def group_utilization(groups: Any, units: Any) -> Any:
        x = groups / units
        low, high = sympy.floor(x), sympy.ceiling(x)
        return low / high + (x - low) * (high - low) / high

    return {
        "tanh": sympy.tanh,
        "exp": sympy.exp,
        "log": sympy.log,
        "sqrt": sympy.sqrt,
        "abs": sympy.Abs,
        "ceil": sympy.ceiling,
        "floor": sympy.floor,
        "min": sympy.Min,
        "max": sympy.Max,
        "step": lambda x: sympy.Heaviside(x, 1),
        "smooth_step": smooth_step,
        "smooth_max": lambda a, b, p: a * smooth_step(a - b, p) + b * smooth_step(b - a, p),
        "overlap": overlap,
        "saturating": saturating,
        "group_utilization": group_utilization,
    }

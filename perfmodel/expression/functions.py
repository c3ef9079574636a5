"""The functions of the model language, one table: arguments, formula, LaTeX, evaluation and partial derivatives.

A function is either evaluated by numpy directly (`evaluate`) or replaced by simpler nodes first (`lower`).
`partials` gives the derivative with respect to each argument; a function without it is lowered before it is
differentiated. `PRIMITIVES` are what functions are lowered into and derivatives are made of; no model string can name
them, and only those that a lowering makes need derivatives.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from perfmodel.expression import formulas
from perfmodel.expression.algebra import ONE, call, chain, divide, multiply
from perfmodel.expression.formulas import HALF, Arguments, flat_partials
from perfmodel.expression.tree import Node


@dataclass(frozen=True, kw_only=True)
class Function:
    """A function of the language or a primitive.

    Attributes:
        signature: the arguments as shown in messages; ``…`` stands for any further number of the one before.
        formula: one line for messages and the reference.
        evaluate: elementwise numpy evaluation with a keyword `out`, which may be one of the arguments.
        lower: the same function in primitives and arithmetic.
        partials: from the arguments and the call's own node, the derivative with respect to each argument.
        rough: whether a partial derivative can be infinite, or zero for a branch that was not taken or where the
            function no longer changes: a product with it then has to be zero as soon as one factor is.
        exponents: the positions of arguments that are exponents, which may not contain features.
        latex: what stands before and after the arguments.
    """

    name: str
    signature: str
    formula: str
    evaluate: Callable[..., Any] | None = None
    lower: Callable[[Arguments], Node] | None = None
    partials: Callable[[Arguments, Node], tuple[Node, ...]] | None = None
    rough: bool = False
    exponents: tuple[int, ...] = ()
    latex: tuple[str, str] | None = None

    @property
    def arity(self) -> tuple[int, bool]:
        """The smallest number of arguments, and whether more are allowed."""
        names = self.signature.split(", ")
        return len(names) - ("…" in names), "…" in names

    def brackets(self) -> tuple[str, str]:
        """Returns the LaTeX before and after the arguments."""
        escaped = self.name.replace("_", r"\_")
        return self.latex or (rf"\operatorname{{{escaped}}}\left(", r"\right)")


_LANGUAGE = (
    Function(
        name="tanh",
        signature="x",
        formula="hyperbolic tangent",
        evaluate=np.tanh,
        partials=lambda arguments, node: (call("sech_squared", arguments[0]),),
        rough=True,
        latex=(r"\tanh\left(", r"\right)"),
    ),
    Function(
        name="exp",
        signature="x",
        formula="e to the power of x",
        evaluate=np.exp,
        partials=lambda arguments, node: (node,),
        rough=True,
        latex=(r"\exp\left(", r"\right)"),
    ),
    Function(
        name="log",
        signature="x",
        formula="natural logarithm",
        evaluate=np.log,
        partials=lambda arguments, node: (divide(ONE, arguments[0]),),
        rough=True,
        latex=(r"\log\left(", r"\right)"),
    ),
    Function(
        name="sqrt",
        signature="x",
        formula="square root",
        evaluate=np.sqrt,
        partials=lambda arguments, node: (divide(HALF, node),),
        rough=True,
        latex=(r"\sqrt{", "}"),
    ),
    Function(
        name="abs",
        signature="x",
        formula="x for x >= 0, else -x",
        evaluate=np.absolute,
        partials=lambda arguments, node: (call("sign", arguments[0]),),
        latex=(r"\left|", r"\right|"),
    ),
    Function(
        name="ceil",
        signature="x",
        formula="the smallest integer >= x",
        evaluate=np.ceil,
        partials=flat_partials,
        latex=(r"\left\lceil ", r"\right\rceil "),
    ),
    Function(
        name="floor",
        signature="x",
        formula="the largest integer <= x",
        evaluate=np.floor,
        partials=flat_partials,
        latex=(r"\left\lfloor ", r"\right\rfloor "),
    ),
    Function(
        name="min",
        signature="a, b, …",
        formula="the smallest argument",
        lower=lambda arguments: chain("minimum", arguments),
        latex=(r"\min\left(", r"\right)"),
    ),
    Function(
        name="max",
        signature="a, b, …",
        formula="the largest argument",
        lower=lambda arguments: chain("maximum", arguments),
        latex=(r"\max\left(", r"\right)"),
    ),
    Function(
        name="step",
        signature="x",
        formula="0 for x < 0, else 1",
        evaluate=formulas.step,
        partials=flat_partials,
    ),
    Function(
        name="smooth_step",
        signature="x, p",
        formula="(tanh(p*x) + 1)/2",
        lower=formulas.lower_smooth_step,
    ),
    Function(
        name="smooth_max",
        signature="a, b, p",
        formula="a*s(a - b) + b*s(b - a) with s(x) = (tanh(p*x) + 1)/2",
        evaluate=formulas.smooth_max,
        partials=formulas.smooth_max_partials,
        rough=True,
    ),
    Function(
        name="overlap",
        signature="a, b, …, p",
        formula="(a**p + b**p + …)**(1/p), p >= 1",
        lower=formulas.lower_overlap,
        partials=formulas.overlap_partials,
        exponents=(-1,),
    ),
    Function(
        name="saturating",
        signature="n, a, b, c, a2, c2, n_sat",
        formula="a*n**b + c for n <= n_sat, else a2*n + c2",
        lower=formulas.lower_saturating,
        exponents=(2,),
    ),
    Function(
        name="group_utilization",
        signature="n_groups, n_units",
        formula="floor(x)/ceil(x) + (x - floor(x))*(ceil(x) - floor(x))/ceil(x) with x = n_groups/n_units",
        lower=formulas.lower_group_utilization,
    ),
)

_PRIMITIVES = (
    Function(
        name="minimum",
        signature="x, y",
        formula="the smaller one",
        evaluate=np.minimum,
        partials=formulas.minimum_partials,
        rough=True,
    ),
    Function(
        name="maximum",
        signature="x, y",
        formula="the larger one",
        evaluate=np.maximum,
        partials=formulas.maximum_partials,
        rough=True,
    ),
    Function(
        name="select",
        signature="x, y, then, otherwise",
        formula="then where x <= y, else otherwise",
        evaluate=formulas.select,
        partials=formulas.select_partials,
        rough=True,
    ),
    Function(
        name="soft_step",
        signature="x",
        formula="(tanh(x) + 1)/2",
        evaluate=formulas.soft_step,
        partials=lambda arguments, node: (multiply(call("sech_squared", arguments[0]), HALF),),
        rough=True,
    ),
    Function(
        name="sech_squared",
        signature="x",
        formula="1/cosh(x)**2",
        evaluate=formulas.sech_squared,
    ),
    Function(
        name="sign",
        signature="x",
        formula="-1, 0 or 1",
        evaluate=np.sign,
    ),
    Function(
        name="ratio",
        signature="x, y",
        formula="x/y, but 1 where y is 0",
        evaluate=formulas.ratio,
    ),
    Function(
        name="product",
        signature="x, y",
        formula="x*y, but 0 where a factor is 0 and the other infinite",
        evaluate=formulas.product,
    ),
    Function(
        name="power_log",
        signature="x, y",
        formula="x**y * log(x), but 0 where x is 0",
        evaluate=formulas.power_log,
    ),
)

LANGUAGE = {function.name: function for function in _LANGUAGE}
FUNCTIONS = LANGUAGE | {function.name: function for function in _PRIMITIVES}

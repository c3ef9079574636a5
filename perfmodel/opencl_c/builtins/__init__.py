"""The built-in functions, conversions and operators of OpenCL C work on numpy values (`representation`).

Callers switch off numpy's warnings (``np.errstate(all="ignore")``): overflows and divisions by zero are what C has.
"""

from __future__ import annotations

from collections.abc import Mapping

from perfmodel.basics.errors import EmulationError, nearest
from perfmodel.opencl_c.builtins.common import COMMON, GEOMETRIC
from perfmodel.opencl_c.builtins.conversions import conversion, reinterpretation
from perfmodel.opencl_c.builtins.dot_products import DOT_PRODUCTS
from perfmodel.opencl_c.builtins.exact_math import PARTS
from perfmodel.opencl_c.builtins.integers import INTEGERS
from perfmodel.opencl_c.builtins.math_functions import MATH
from perfmodel.opencl_c.builtins.operators import binary, unary
from perfmodel.opencl_c.builtins.relational import RELATIONAL, SHUFFLES
from perfmodel.opencl_c.builtins.representation import Builder, Form
from perfmodel.opencl_c.lowering.builtin_names import ROUGH
from perfmodel.opencl_c.types import Type

__all__ = [
    "BUILTINS",
    "binary",
    "conversion",
    "function",
    "reinterpretation",
    "unary",
]

_MATH: Mapping[str, Builder] = {**MATH, **PARTS}

BUILTINS: Mapping[str, Builder] = {
    **{name: builder for name, builder in _MATH.items() if name not in ("divide", "recip")},
    **{f"{prefix}_{name}": _MATH[name] for prefix in ("half", "native") for name in ROUGH},
    **INTEGERS,
    **DOT_PRODUCTS,
    **COMMON,
    **GEOMETRIC,
    **RELATIONAL,
    **SHUFFLES,
}
"""This table holds all functions by name; `function` makes the form of one for some types."""


def function(name: str, result: Type, arguments: tuple[Type, ...]) -> Form:
    """Returns the numpy form of a built-in function for values of these types.

    Raises:
        EmulationError: there is no such function.
    """
    if name not in BUILTINS:
        raise EmulationError(f"the emulation has no built-in function {name!r}{nearest(name, BUILTINS)}")
    return BUILTINS[name](result, arguments)

"""Functions as compilers take them with ``-cl-fast-relaxed-math``: rough ones, of few instructions, for those of float.

What NVIDIA's compiler makes of each was read in its PTX: those that `ROUGH` names become what ``native_`` makes of
them, lengths lose what keeps them from overflowing, and others, such as ``pow`` and ``tanh``, stay what they are. To
divide by a number is to multiply by its reciprocal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import isfinite
from typing import Any

from perfmodel.opencl_c import lowered as low
from perfmodel.opencl_c.lowering.builtin_names import ROUGH
from perfmodel.opencl_c.types import Scalar, Vector, element_of, is_float
from perfmodel.opencl_c.visitor import rebuilt

OPTIONS = frozenset(("-cl-fast-relaxed-math", "-cl-unsafe-math-optimizations"))
_ROUGH = {
    **{f"{prefix}{name}": f"native_{name}" for prefix in ("", "half_") for name in ROUGH},
    **{name: f"fast_{name}" for name in ("length", "distance", "normalize")},
    "sincos.0": "native_sin",
    "sincos.1": "native_cos",
}


def relaxed(kernel: low.LoweredKernel, options: Sequence[str]) -> low.LoweredKernel:
    """Returns the kernel with the functions that a compiler takes with these build options."""
    if not OPTIONS & set(options):
        return kernel
    return replace(kernel, body=tuple(_rough(statement) for statement in kernel.body))


def _rough(node: Any) -> Any:
    node = rebuilt(node, _rough)
    if isinstance(node, low.Binary) and node.operator == "/" and (reciprocal := _reciprocal(node.right)) is not None:
        return replace(node, operator="*", right=reciprocal)
    if not isinstance(node, low.Call) or node.function not in _ROUGH or not isinstance(node.type, Scalar | Vector):
        return node
    is_float = all(
        isinstance(each.type, Scalar | Vector) and element_of(each.type).dtype == "float32" for each in node.arguments
    )
    return replace(node, function=_ROUGH[node.function]) if is_float else node


def _reciprocal(value: low.Expression) -> low.Constant | None:
    """Returns the reciprocal of a floating-point number that the program has; None of anything else."""
    if not isinstance(value, low.Constant) or not is_float(value.type) or not isfinite(value.value) or value.value == 0:
        return None
    return low.Constant(value.type, 1.0 / value.value)

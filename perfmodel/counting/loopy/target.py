"""Generates OpenCL C from Loopy as perfmodel wants it: half precision too, and bounds checks that every driver gets
right."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest import mock

import loopy as lp
import loopy.schedule
import numpy as np
import pyopencl.tools
from loopy.symbolic import Literal
from loopy.target.pyopencl import ExpressionToPyOpenCLCExpressionMapper, PyOpenCLCASTBuilder
from loopy.types import NumpyType
from pymbolic.primitives import Comparison, Sum

# Loopy asks pyopencl for the names of types, and pyopencl does not know this one.
pyopencl.tools.get_or_register_dtype("half", np.float16)


class OpenCLTarget(lp.PyOpenCLTarget):  # type: ignore[misc]
    # Loopy keeps generated code on disk: count this up when other code is generated for the same kernel.
    revision = 3
    # It keeps the programs too, pickled, and so this class by the name of its module: programs of a perfmodel in which
    # that module was another could not be read back, so they must have other keys.
    hash_fields = (*lp.PyOpenCLTarget.hash_fields, "revision", "__module__")

    def get_device_ast_builder(self) -> Any:
        return _Builder(self)


@contextmanager
def same_code() -> Iterator[None]:
    """Makes Loopy generate, within it, the same text for the same kernel in every process.

    By itself it goes through a set of instructions to find one that needs a barrier, which it then names in a comment:
    another one under another ``PYTHONHASHSEED``, so that a kernel would not find its own times in a store again.
    """
    reaching = loopy.schedule._insn_ids_reaching_end

    def in_order(*arguments: Any, **options: Any) -> list[str]:
        return sorted(reaching(*arguments, **options))

    with mock.patch.object(loopy.schedule, "_insn_ids_reaching_end", in_order):
        yield


class _Builder(PyOpenCLCASTBuilder):  # type: ignore[misc]
    def preamble_generators(self) -> Sequence[Any]:
        return [*super().preamble_generators(), _half_precision]

    def get_expression_to_c_expression_mapper(self, codegen_state: Any) -> Any:
        return _ExpressionMapper(codegen_state)


def _half_precision(preamble_info: Any) -> Iterator[tuple[str, str]]:
    if NumpyType(np.dtype(np.float16)) in preamble_info.seen_dtypes:
        yield "00_enable_half", "#pragma OPENCL EXTENSION cl_khr_fp16: enable\n"


class _ExpressionMapper(ExpressionToPyOpenCLCExpressionMapper):  # type: ignore[misc]
    def map_comparison(self, expression: Any, type_context: Any) -> Any:
        """Writes x - 1 >= 0 as x > 0.

        Loopy checks bounds by ``-1 + -16*gid(0) + -1*lid(0) + n >= 0``, for which Intel's CPU compiler (2025) lets
        work-items beyond n through.
        """
        left = expression.left
        if expression.operator == ">=" and expression.right == 0 and isinstance(left, Sum) and -1 in left.children:
            others = list(left.children)
            others.remove(-1)
            expression = Comparison(Sum(tuple(others)), ">", 0)
        return super().map_comparison(expression, type_context)

    def map_constant(self, constant: Any, type_context: Any) -> Any:
        """Writes numbers of half precision, for which Loopy has no letter."""
        is_half = isinstance(constant, np.float16)
        if is_half or (type_context is None and isinstance(constant, float) and np.isfinite(constant)):
            return Literal(f"((half) {float(constant)!r}f)")
        return super().map_constant(constant, type_context)

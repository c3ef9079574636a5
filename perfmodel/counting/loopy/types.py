"""The types of a Loopy kernel's expressions as the generated C has them, and the names of its functions."""

from __future__ import annotations

from typing import Any

import numpy as np
from loopy.type_inference import TypeReader
from loopy.types import NumpyType
from pymbolic.primitives import is_constant

from perfmodel.basics.errors import CountingError

FLOATS = ("float16", "float32", "float64")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")


class Typing:
    """Tells the types of a scheduled Loopy kernel's expressions, and the functions that they call."""

    def __init__(self, kernel: Any, callables: Any) -> None:
        self.kernel = kernel
        self.callables = callables
        self.guess = TypeReader(kernel, callables)
        self.readers = {name: _ContextReader(self.guess, name) for name in (*FLOATS, *INTEGERS)}

    def type_of(self, expression: Any, context: str | None) -> str:
        """Returns numpy's name of the type, where literals have the type `context`, or Loopy's guess with None.

        Raises:
            CountingError: for an expression whose type cannot be known.
        """
        for reader in (self.readers.get(context or "", self.guess), self.guess):
            if found := reader(expression, return_dtype_set=True):
                return str(getattr(found[0], "numpy_dtype", found[0]))
        raise CountingError(
            f"the type of {expression} in kernel {self.kernel.name!r} is unknown; call only functions that Loopy knows"
        )

    def function_of(self, call: Any) -> str:
        """Returns the function's name in the kernel's source; Loopy renames those that it calls with several types."""
        name = call.function.name
        return str(self.callables[name].name if name in self.callables else name)


class _ContextReader(TypeReader):  # type: ignore[misc]
    """Gives plain numbers the type of what they are assigned to, as Loopy does when it writes C."""

    def __init__(self, guess: TypeReader, context: str) -> None:
        super().__init__(guess.kernel, guess.callables)
        self.guess = guess
        self.context = context

    def map_constant(self, expression: Any) -> Any:
        if isinstance(expression, np.generic):  # which says its type itself
            return super().map_constant(expression)
        if self.context in FLOATS:
            return [NumpyType(np.dtype(self.context))]
        # C gives an int literal the type of what it meets.
        return [] if isinstance(expression, int) else super().map_constant(expression)

    def map_sum(self, expression: Any) -> Any:
        return self.combine([self.rec(child) for child in expression.children])

    map_product = map_sum

    def map_floor_div(self, expression: Any) -> Any:
        """Returns the type that Loopy guesses: such operators become functions of whole numbers, or powers."""
        return self.guess(expression, return_dtype_set=True)

    map_remainder = map_floor_div

    def map_power(self, expression: Any) -> Any:
        """Returns the type of the base of a square, which Loopy writes as a product."""
        is_square = is_constant(expression.exponent) and expression.exponent == 2
        return self.rec(expression.base) if is_square else self.map_floor_div(expression)

    # Loopy reads the operands of these anew, each by itself, where a literal has to have a type.
    map_comparison = map_logical_and = map_logical_or = map_logical_not = map_floor_div
    map_bitwise_or = map_bitwise_and = map_bitwise_xor = map_left_shift = map_right_shift = map_floor_div

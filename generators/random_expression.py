"""Kernels generated at random, each of one expression (Pöppl & Herz, "Quantitative Evaluation").

A kernel computes one expression of float for each element (x, y) of a matrix, and stores it. It reads the matrix; a
table ``xxx`` of 128 numbers, looked up by the last 7 bits of an index; and x and y themselves, as numbers. All of this,
and the form of the text, is as the slides print it. There x is the first index of a matrix stored by rows. Their model
takes ``matrix[x][y]`` for continuous, so neighbouring work-items are those of neighbouring y: x is a work-item's id
along axis 1, y that along axis 0. ``xxx[x & 0x7F]`` is then one address for all of a row of work-items, and
``xxx[y & 0x7F]`` a window that all re-read.

How often each form is drawn is ours, chosen so that the printed examples look typical; they are all there is to go by.
Three rules keep the programs' meaning beyond doubt:

- Whole numbers are unsigned, so that what overflows wraps around, and every index is a remainder or masked.
- Nothing is divided by what can be 0, and nothing overflows: that follows from bounds of each subexpression, for arrays
  of 0.5 to 1.5 and matrices of up to `LARGEST` rows. The example that divides by a multiple of x would not be drawn.
- A seed means the same text everywhere: of Python's generator only `random.Random.random` is used, which Python
  promises to keep, and bounds follow from additions, multiplications and divisions.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from perfmodel.collection.kernel_generator import KernelGenerator
from perfmodel.collection.tags import choice, number, work_group
from perfmodel.kernels.arguments import Array
from perfmodel.kernels.kernel import Kernel
from perfmodel.kernels.opencl_program import OpenCLProgram

T = TypeVar("T")

LARGEST = 65536
"""Rows of the largest matrix: x * y then fits into 32 bits."""
TABLE = 128
LEAST, MOST = 1e-12, 1e30
"""No divisor is smaller, and no subexpression larger."""

SOURCE = """\
#define WIDTH {n}
#define HEIGHT {n}

__kernel void random_expression(__global const float *elements, __global const float *xxx, __global float *result)
{{
    __global const float (*matrix)[WIDTH] = (__global const float (*)[WIDTH])elements;
    const uint x = get_global_id(1);
    const uint y = get_global_id(0);
    result[x * WIDTH + y] = {expression};
}}
"""


@dataclass(frozen=True)
class Values:
    """Holds what numpy evaluates an expression with.

    Attributes:
        matrix: n x n, and `table` of 128, of float64.
        x, y: of every work-item, as uint32.
    """

    matrix: NDArray[np.float64]
    table: NDArray[np.float64]
    x: NDArray[np.uint32]
    y: NDArray[np.uint32]


@dataclass(frozen=True)
class Bounded:
    """Real values, and by how much what a device computes in float32 may differ from them.

    A device may round sums and products to nearest or fuse them, and divides to 2.5 ulp (OpenCL 3.0 C specification,
    section "Relative error as ULPs"); errors of operands pass on.
    """

    values: NDArray[np.float64]
    error: NDArray[np.float64]

    def __add__(self, other: Bounded) -> Bounded:
        return _rounded(self.values + other.values, self.error + other.error)

    def __sub__(self, other: Bounded) -> Bounded:
        return _rounded(self.values - other.values, self.error + other.error)

    def __mul__(self, other: Bounded) -> Bounded:
        passed = np.abs(self.values) * other.error + np.abs(other.values) * self.error + self.error * other.error
        return _rounded(self.values * other.values, passed)

    def __truediv__(self, other: Bounded) -> Bounded:
        quotient = self.values / other.values
        # The divisor's error is far below it, as no divisor is close to 0.
        passed = (self.error + np.abs(quotient) * other.error) / (np.abs(other.values) - other.error)
        return _rounded(quotient, passed, ulp=2.5)


def _rounded(values: NDArray[np.float64], passed: NDArray[np.float64], ulp: float = 0.5) -> Bounded:
    # A device may take for 0 what is below the smallest normal number.
    return Bounded(values, passed + ulp * 2.0**-23 * (np.abs(values) + passed) + 2.0**-126)


def _exact(values: NDArray[Any]) -> Bounded:
    """Returns whole numbers as `Bounded`; those above 2^24 are rounded when they become float32."""
    real = values.astype(np.float64)
    return Bounded(real, np.where(np.abs(real) > 2**24, 2.0**-24 * np.abs(real), 0))


@dataclass(frozen=True)
class Whole:
    """A subexpression of whole numbers, modulo 2^32."""

    text: str
    at: Callable[[Values], NDArray[np.uint32]]


@dataclass(frozen=True)
class Real:
    """A subexpression that is used as a float.

    Attributes:
        low, high: bounds of its values.
        leaves: how many it has.
        whole: the same where C makes it of whole numbers, and converts only the result.
    """

    text: str
    at: Callable[[Values], Bounded]
    low: float
    high: float
    leaves: int = 1
    whole: Whole | None = None

    @property
    def can_divide(self) -> bool:
        return self.low > LEAST or self.high < -LEAST


class Draws:
    """Random decisions that are the same in every version of Python."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def between(self, first: int, last: int) -> int:
        return first + int(self._random.random() * (last - first + 1))

    def of(self, weights: Mapping[T, float]) -> T:
        """Returns one of the keys, as often as its weight says."""
        place = self._random.random() * sum(weights.values())
        *others, last = weights
        for value in others:
            place -= weights[value]
            if place < 0:
                return value
        return last

    def whole(self) -> int:
        """Returns a constant of one to five digits, as the printed ones have."""
        digits = self.between(1, 5)
        return self.between(10 ** (digits - 1), 10**digits - 1)


@dataclass(frozen=True)
class Style:
    """Says what the expressions of a set look like.

    Attributes:
        leaves: the fewest and the most.
        leaf, operator: how often each is drawn.
    """

    leaves: tuple[int, int]
    leaf: Mapping[str, float]
    operator: Mapping[str, float]


STYLES = {
    "realistic": Style(
        (3, 12),
        {
            "own element": 30,
            "table by x": 14,
            "table by y": 14,
            "table by constant": 8,
            "element by constants": 8,
            "literal": 16,
            "x": 4,
            "y": 4,
            "operation on x and y": 2,
        },
        {"+": 30, "-": 20, "*": 30, "/": 20},
    ),
    # 20 leaves have 39 nodes.
    "unrestricted": Style(
        (3, 20),
        {
            "own element": 32,
            "table by x": 7,
            "table by y": 5,
            "table by constant": 6,
            "table by expression": 11,
            "element by constants": 3,
            "element by expressions": 8,
            "literal": 18,
            "x": 3,
            "y": 2,
            "operation on x and y": 5,
        },
        {"+": 35, "-": 25, "*": 22, "/": 18},
    ),
}


def random_expression(style: Style, draws: Draws) -> Real:
    """Returns an expression; all that it is follows from what is drawn."""
    return _expression(draws.between(*style.leaves), style, draws)


def _expression(leaves: int, style: Style, draws: Draws) -> Real:
    if leaves == 1:
        return LEAVES[draws.of(style.leaf)](draws)
    left = draws.between(1, leaves - 1)
    operator = draws.of(style.operator)
    return _operation(operator, _expression(left, style, draws), _expression(leaves - left, style, draws), draws)


def _operation(operator: str, left: Real, right: Real, draws: Draws) -> Real:
    """Returns the operation, or one that is defined for all values instead."""
    if left.whole and right.whole:
        whole = _whole_operation("*" if operator == "/" else operator, left.whole, right.whole)
        return _converted(whole, 2.0**32, left.leaves + right.leaves)
    if operator == "/" and not right.can_divide:
        if left.can_divide:
            left, right = right, left
        elif right.low >= 0:
            # As the examples have it, where the sum of a literal and of something else is divided by.
            right = _operation("+", right, _literal(draws), draws)
        else:
            operator = "*"
    low, high = _bounds(operator, left, right)
    if max(-low, high) > MOST:
        operator = "-" if operator == "/" else "+"
        low, high = _bounds(operator, left, right)
    compute = REAL_OPERATIONS[operator]
    text = f"({left.text} {operator} {right.text})"
    return Real(
        text=text, at=lambda v: compute(left.at(v), right.at(v)), low=low, high=high, leaves=left.leaves + right.leaves
    )


def _bounds(operator: str, left: Real, right: Real) -> tuple[float, float]:
    ends = [END_OPERATIONS[operator](a, b) for a in (left.low, left.high) for b in (right.low, right.high)]
    low, high = min(ends), max(ends)
    others = (-right.high, -right.low) if operator == "-" else (right.low, right.high)
    if operator in "+-" and min(left.low, others[0]) < 0 < max(left.high, others[1]):
        # What cancels keeps the rounding errors of what it is computed from.
        slack = 1e-5 * max(-left.low, left.high, -right.low, right.high)
        return low - slack, high + slack
    return low, high


END_OPERATIONS: dict[str, Callable[[float, float], float]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
}
REAL_OPERATIONS: dict[str, Callable[[Bounded, Bounded], Bounded]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
}
WHOLE_OPERATIONS: dict[str, Callable[[NDArray[np.uint32], NDArray[np.uint32]], NDArray[np.uint32]]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
}
X = Whole("x", lambda v: v.x)
Y = Whole("y", lambda v: v.y)


def _constant(draws: Draws) -> Whole:
    value = draws.whole()
    return Whole(str(value), lambda v: np.full_like(v.x, value))


def _whole_operation(operator: str, left: Whole, right: Whole) -> Whole:
    compute = WHOLE_OPERATIONS[operator]
    return Whole(f"({left.text} {operator} {right.text})", lambda v: compute(left.at(v), right.at(v)))


def _index(draws: Draws) -> Whole:
    """Returns an index of two to four of x, y and constants, at least one of them no constant."""
    found = draws.of({X: 1, Y: 1})
    for _ in range(draws.between(1, 3)):
        other = draws.of({"x": 25, "y": 25, "constant": 50})
        operand = {"x": X, "y": Y}.get(other) or _constant(draws)
        left, right = (found, operand) if draws.between(0, 1) else (operand, found)
        found = _whole_operation(draws.of({"+": 45, "-": 15, "*": 40}), left, right)
    return found


def _own_element(_: Draws) -> Real:
    return Real("matrix[x][y]", lambda v: _exact(v.matrix), 0.5, 1.5)


def _element(row: Whole, column: Whole) -> Real:
    def at(v: Values) -> Bounded:
        height, width = v.matrix.shape
        return _exact(v.matrix[row.at(v) % np.uint32(height), column.at(v) % np.uint32(width)])

    return Real(f"matrix[{row.text} % HEIGHT][{column.text} % WIDTH]", at, 0.5, 1.5)


def _element_by_expressions(draws: Draws) -> Real:
    row = _index(draws)
    return _element(row, _constant(draws) if draws.between(0, 1) else _index(draws))


def _table(index: Whole) -> Real:
    return Real(f"xxx[{index.text} & 0x7F]", lambda v: _exact(v.table[index.at(v) % np.uint32(TABLE)]), 0.5, 1.5)


def _literal(draws: Draws) -> Real:
    """Returns a number from 1 to 1,000, with five decimals."""
    digits = draws.between(100_000, 99_999_999)
    value = float(np.float32(digits / 100_000))
    return Real(
        f"{digits // 100_000}.{digits % 100_000:05d}f",
        lambda v: _exact(np.full(v.x.shape, value)),
        *(digits / 100_000, digits / 100_000),
    )


def _operation_on_coordinates(draws: Draws) -> Real:
    operator = draws.of({"+": 1, "-": 1, "*": 1})
    left, right = (X, Y) if draws.between(0, 1) else (Y, X)
    return _converted(_whole_operation(operator, left, right), 2.0**32)


def _converted(whole: Whole, high: float, leaves: int = 1) -> Real:
    return Real(text=whole.text, at=lambda v: _exact(whole.at(v)), low=0.0, high=high, leaves=leaves, whole=whole)


LEAVES: dict[str, Callable[[Draws], Real]] = {
    "own element": _own_element,
    "element by constants": lambda draws: _element(_constant(draws), _constant(draws)),
    "element by expressions": _element_by_expressions,
    "table by x": lambda _: _table(X),
    "table by y": lambda _: _table(Y),
    "table by constant": lambda draws: _table(_constant(draws)),
    "table by expression": lambda draws: _table(_index(draws)),
    "literal": _literal,
    "x": lambda _: _converted(X, LARGEST - 1),
    "y": lambda _: _converted(Y, LARGEST - 1),
    "operation on x and y": _operation_on_coordinates,
}


def expression_of(kernel_set: str, seed: int) -> Real:
    """Returns the expression of a seed, from 1, in one of the sets."""
    return random_expression(STYLES[kernel_set], Draws(2 * seed + list(STYLES).index(kernel_set)))


class RandomExpression(KernelGenerator):
    """Each work-item computes one element of an n x n result by the expression of the seed."""

    name = "random_expression"
    summary = "one random expression of a matrix, a small table and coordinates for each element"
    source = "Pöppl & Herz, Quantitative Evaluation"
    limits = f"an n that is no multiple of lsize_0 and lsize_1, or above {LARGEST}"
    tags = (
        choice("set", "realistic: small, with simple accesses; unrestricted: up to 39 nodes, any accesses", *STYLES),
        number("seed", "which expression", *range(1, 9)),
        number("n", "rows and columns of the matrix, which the compiler knows", 512, 1024, 2048, default=2048),
        *work_group(256, 1),
    )
    # Of these seeds, no element is so ill-conditioned that rounding alone could exceed what verification allows: a test
    # holds their bounds of errors against that. Of others one in ten has such elements.
    checks = (
        ("seed:1..19,21..25", "n:16", "lsizes:8x2"),
        ("set:realistic", "seed:7", "n:512,1024,2048", "lsizes:256x1"),
        ("seed:1..8", "n:24", "lsizes:8x8,4x24,24x1"),
        ("seed:1..4", "n:32", "lsizes:8x32,16x16,32x8"),
        ("seed:2,3", "n:256", "lsizes:256x1"),
    )

    def program(self, variant: Mapping[str, str]) -> Any:
        n = int(variant["n"])
        text = expression_of(variant["set"], int(variant["seed"])).text
        return OpenCLProgram(
            SOURCE.format(n=n, expression=text),
            self.name,
            (n, n),
            (int(variant["lsize_0"]), int(variant["lsize_1"])),
            [
                Array("elements", "float32", n * n),
                Array("xxx", "float32", TABLE),
                Array("result", "float32", n * n, is_output=True),
            ],
        )

    def fits(self, variant: Mapping[str, str], sizes: Mapping[str, int]) -> bool:
        n = int(variant["n"])
        return n <= LARGEST and n % int(variant["lsize_0"]) == 0 and n % int(variant["lsize_1"]) == 0

    def reference(self, kernel: Kernel, arrays: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
        return {"result": bounded(kernel, arrays).values.ravel()}


def bounded(kernel: Kernel, arrays: Mapping[str, NDArray[Any]]) -> Bounded:
    """Returns what a kernel of this family computes, in float64, and how far a device may be from it."""
    n = int(kernel.tags["n"])
    x, y = np.indices((n, n), np.uint32)
    matrix = arrays["elements"].reshape(n, n).astype(np.float64)
    values = Values(matrix, arrays["xxx"].astype(np.float64), x, y)
    return expression_of(kernel.tags["set"], int(kernel.tags["seed"])).at(values)

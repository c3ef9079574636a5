"""Expressions and conditions over a kernel's sizes, as text: ``(n + 15) // 16 * 16``, ``n % 16 == 0``."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfmodel.basics.errors import CountingError, KernelError, nearest
from perfmodel.counting import symbolic
from perfmodel.counting.symbolic import Polynomial, compared, plain
from perfmodel.device.launch_shape import first_of, listed

# pymbolic's parser reads "n * n // 2" as n * (n // 2), so expressions are Python's own, with these operators only.
_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}


Extent = int | str
"""A number or size expression as people write it."""


def axes_of(what: str, kernel: str, given: Any) -> tuple[Extent, ...]:
    """Returns the extents of a kernel's launch by axis, of which one may be given by itself.

    Args:
        what: these extents are, such as its grid; for errors.

    Raises:
        KernelError: for what gives none.
    """
    if isinstance(given, int | str | np.integer):
        return (given,)  # type: ignore[return-value]  # numbers of numpy are taken as Python's are
    if isinstance(given, bytes) or not isinstance(given, Sequence):
        raise KernelError(
            f"{what} of kernel {kernel!r} cannot be {given!r:.40}; write whole numbers or expressions by axis"
        )
    return tuple(given)


class SizeExpression:
    """A whole number that follows from sizes, those of structs as C writes them; `role` says of what, for errors.

    Raises:
        KernelError: for anything else.
    """

    def __init__(self, role: str, given: Extent, sizes: Sequence[str]) -> None:
        self.role = role
        self.text = str(given).strip()
        if isinstance(given, bool) or not isinstance(given, str | int | np.integer):
            raise self._no_expression()
        try:
            self._tree = _FieldNames(sizes).visit(ast.parse(self.text, mode="eval").body)
            self.names = tuple(sorted(set(_names(self._tree))))
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise self._no_expression() from error
        for name in self.names:
            if name not in sizes:
                raise KernelError(
                    f"{role} needs {name!r}, which is no size of it{nearest(name, sizes)} (it has "
                    f"{', '.join(sizes) or 'none'})"
                )

    def _no_expression(self) -> KernelError:
        return KernelError(
            f"{self.role} cannot be {self.text[:40]!r}; write whole numbers and sizes, joined by + - * // % and "
            "brackets"
        )

    def value(self, sizes: Mapping[str, Any]) -> Any:
        return _value(self._tree, sizes)

    def values(self, sizes: Mapping[str, Any]) -> Any:
        """Returns the values of the expression at arrays of sizes, exact where they are beyond 64 bits too.

        Raises:
            KernelError: where it divides by zero.
        """
        sizes = {name: sizes[name] for name in self.names}
        if not all(type(size) is int for size in sizes.values()) and _bound(self._tree, sizes) >= 2**63:
            sizes = {name: np.asarray(size, dtype=object) for name, size in sizes.items()}
        try:
            with np.errstate(divide="raise"):
                return self.value(sizes)
        except (ZeroDivisionError, FloatingPointError) as error:
            zero = next(np.equal(divisor, 0) for divisor in self.divisors(sizes) if np.any(np.equal(divisor, 0)))
            raise self._division(first_of(zero, sizes)) from error

    def _division(self, sizes: Mapping[str, int]) -> KernelError:
        return KernelError(f"{self.role} {self} divides by zero at {listed(sizes)}; choose other sizes")

    def divisors(self, sizes: Mapping[str, Any]) -> list[Any]:
        """Returns the values of all divisors in the expression."""
        quotients = [
            n for n in ast.walk(self._tree) if isinstance(n, ast.BinOp) and isinstance(n.op, ast.FloorDiv | ast.Mod)
        ]
        return [_value(node.right, sizes) for node in quotients]

    def polynomial(self) -> Polynomial:
        """Returns the expression as a polynomial for counting.

        Raises:
            CountingError: for a quotient by something that may be zero.
        """
        try:
            return _polynomial(self._tree)
        except ZeroDivisionError as error:
            raise CountingError(f"{self.role} divides by {error}; divide by positive numbers") from error

    def at(self, sizes: Mapping[str, int]) -> int:
        try:
            return int(self.value(sizes))
        except ZeroDivisionError as error:
            raise self._division(sizes) from error

    def __str__(self) -> str:
        return self.text if self.text.isalnum() else f"({self.text})"


class _FieldNames(ast.NodeTransformer):
    """Puts the names of sizes in the place of fields as C writes them: ``s_dims_0`` for ``s.dims[0]``, ``v_1`` for
    ``v.y``; ValueError for other indices than whole numbers."""

    def __init__(self, sizes: Sequence[str]) -> None:
        self.sizes = sizes

    def visit_Attribute(self, node: ast.Attribute) -> ast.Name:
        record, component = self._name(node.value), "xyzw".find(node.attr)
        name = f"{record}_{node.attr}"
        return ast.Name(f"{record}_{component}" if name not in self.sizes and component >= 0 else name)

    def visit_Subscript(self, node: ast.Subscript) -> ast.Name:
        if not isinstance(node.slice, ast.Constant) or type(node.slice.value) is not int:
            raise ValueError
        return ast.Name(f"{self._name(node.value)}_{node.slice.value}")

    def _name(self, node: ast.expr) -> str:
        inner = self.visit(node)
        if not isinstance(inner, ast.Name):
            raise ValueError
        return inner.id


def _names(tree: ast.expr) -> list[str]:
    """Returns the names in a tree; ValueError if it has anything but names, whole numbers and the operators."""
    match tree:
        case ast.Name():
            return [tree.id]
        case ast.Constant() if type(tree.value) is int:
            return []
        case ast.BinOp() if type(tree.op) in _OPERATORS:
            return _names(tree.left) + _names(tree.right)
        case ast.UnaryOp(op=ast.USub()):
            return _names(tree.operand)
    raise ValueError


def _value(tree: ast.expr, sizes: Mapping[str, Any]) -> Any:
    match tree:
        case ast.Name():
            return sizes[tree.id]
        case ast.BinOp():
            return _OPERATORS[type(tree.op)](_value(tree.left, sizes), _value(tree.right, sizes))
        case ast.UnaryOp():
            return -_value(tree.operand, sizes)
        case ast.Constant():
            return tree.value
    raise AssertionError(tree)


def _bound(tree: ast.expr, sizes: Mapping[str, NDArray[Any]]) -> int:
    """Returns a bound on the magnitude of every intermediate result on the way to the tree's value."""
    match tree:
        case ast.Name():
            size = sizes[tree.id]
            return max(abs(int(np.max(size, initial=0))), abs(int(np.min(size, initial=0))))
        case ast.BinOp():
            left, right = _bound(tree.left, sizes), _bound(tree.right, sizes)
            return left * right if isinstance(tree.op, ast.Mult) else left + right
        case ast.UnaryOp():
            return _bound(tree.operand, sizes)
        case ast.Constant(value=int() as value):
            return value
    raise AssertionError(tree)


def _polynomial(tree: ast.expr) -> Polynomial:
    match tree:
        case ast.Name():
            return symbolic.name(tree.id)
        case ast.UnaryOp():
            return -_polynomial(tree.operand)
        case ast.BinOp():
            left, right = _polynomial(tree.left), _polynomial(tree.right)
            match tree.op:
                case ast.Add():
                    return left + right
                case ast.Sub():
                    return left - right
                case ast.Mult():
                    return left * right
            if right.constant is not None and right.constant <= 0:
                raise ZeroDivisionError(str(right))
            return (symbolic.quotient if isinstance(tree.op, ast.FloorDiv) else symbolic.remainder)(left, right, {})
        case ast.Constant(value=int() as value):
            return symbolic.number(value)
    raise AssertionError(tree)


_COMPARISONS: dict[type[ast.cmpop], tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Lt: ("<", operator.lt),
    ast.LtE: ("<=", operator.le),
    ast.Gt: (">", operator.gt),
    ast.GtE: (">=", operator.ge),
    ast.Eq: ("==", operator.eq),
    ast.NotEq: ("!=", operator.ne),
}


@dataclass(frozen=True)
class SizeCondition:
    """A comparison of two expressions over sizes."""

    left: SizeExpression
    comparison: type[ast.cmpop]
    right: SizeExpression

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self.left.names, *self.right.names)))

    def holds(self, sizes: Mapping[str, Any]) -> NDArray[np.bool_]:
        """Returns a mask of the sizes that fulfil the condition; false where it divides by zero."""
        with np.errstate(divide="ignore"):
            left, right = self.left.value(sizes), self.right.value(sizes)
        return np.asarray(_COMPARISONS[self.comparison][1](left, right) & self._is_defined(sizes))

    def _is_defined(self, sizes: Mapping[str, Any]) -> Any:
        divisors = [value for side in (self.left, self.right) for value in side.divisors(sizes)]
        return math.prod([np.not_equal(divisor, 0) for divisor in divisors], start=np.asarray(True))

    def isl(self, numbers: Mapping[str, Polynomial]) -> str | None:
        """Returns the condition in isl's notation, with these numbers in place of sizes; None where it is not
        affine."""
        operator_, _ = _COMPARISONS[self.comparison]
        left, right = (plain(side.polynomial().replaced(numbers)) for side in (self.left, self.right))
        return compared(operator_, left, right)

    def __str__(self) -> str:
        return f"{self.left.text} {_COMPARISONS[self.comparison][0]} {self.right.text}"


def conditions_of(text: str, role: str, sizes: Sequence[str]) -> tuple[SizeCondition, ...]:
    """Returns the comparisons that a condition over sizes consists of; `role` says of what, for errors.

    Raises:
        KernelError: for anything else.
    """
    if not isinstance(text, str):
        raise KernelError(f"{role} cannot be {text!r}; write comparisons such as n % 16 == 0 and n >= m")
    try:
        tree = ast.parse(text.strip(), mode="eval").body if text.strip() else None
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        tree = ast.Constant(value=None)
    found: list[SizeCondition] = []
    for part in tree.values if isinstance(tree, ast.BoolOp) and isinstance(tree.op, ast.And) else [tree]:
        if part is None:
            continue
        if not isinstance(part, ast.Compare) or any(type(op) not in _COMPARISONS for op in part.ops):
            raise KernelError(
                f"{role} cannot be {text[:60]!r}; write comparisons such as n % 16 == 0 and n >= m, joined by 'and'"
            )
        sides = [SizeExpression(role, ast.unparse(side), sizes) for side in (part.left, *part.comparators)]
        found += [SizeCondition(*three) for three in zip(sides, map(type, part.ops), sides[1:], strict=False)]
    return tuple(found)


def check_sizes(
    kernel: str, sizes: Mapping[str, Any], extending: Collection[str], conditions: Sequence[SizeCondition]
) -> None:
    """Checks sizes, as numbers or arrays of numbers, against what a kernel assumes of them.

    Args:
        extending: sizes that launches and arrays follow from, which can't be negative.

    Raises:
        KernelError: for a size that is negative, or breaks a condition.
    """
    for name, value in sizes.items():
        if name in extending and np.any(value < 0):
            raise KernelError(f"size {name}={int(np.min(value))} of kernel {kernel!r} is negative")
    arrays = {name: np.asarray(size) for name, size in sizes.items()} if conditions else {}
    for condition in conditions:
        good = condition.holds(arrays)
        if not good.all():
            bad = int(np.argmin(good))
            named = [name for name in sizes if name in condition.names]
            culprit = {name: int(np.broadcast_to(sizes[name], good.shape).flat[bad]) for name in named}
            raise KernelError(f"{listed(culprit)} breaks what kernel {kernel!r} assumes: {condition}")

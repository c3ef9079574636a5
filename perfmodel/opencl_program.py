"""OpenCL C source as a Program: what it is launched with follows from its sizes by expressions given beside it."""

from __future__ import annotations

import ast
import hashlib
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from perfmodel.errors import CountingError, KernelError, nearest
from perfmodel.measurement import Argument, ArrayArgument, Launch, LocalArgument, ScalarArgument

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray

    from perfmodel.counting.counts import KernelCounts
    from perfmodel.counting.symbolic import Polynomial
    from perfmodel.opencl_c.lowered import LoweredKernel

C_TYPES = {
    "int8": "char",
    "int16": "short",
    "int32": "int",
    "int64": "long",
    "uint8": "uchar",
    "uint16": "ushort",
    "uint32": "uint",
    "uint64": "ulong",
    "float16": "half",
    "float32": "float",
    "float64": "double",
}
"""OpenCL C's names for numpy's types."""


@dataclass(frozen=True)
class Array:
    """An array in global or constant memory.

    Attributes:
        dtype: of its elements; a vector type counts as its elements.
        extent: how many elements, as an expression over the sizes.
        is_output: whether the kernel writes it.
    """

    name: str
    dtype: DTypeLike
    extent: int | str
    is_output: bool = False


@dataclass(frozen=True)
class Scalar:
    """An argument passed by value; a size if its dtype is of whole numbers."""

    name: str
    dtype: DTypeLike


@dataclass(frozen=True)
class LocalArray:
    """Local memory that the launch provides: so many bytes a work-group, as an expression over the sizes."""

    name: str
    n_bytes: int | str


class OpenCLProgram:
    """A kernel in OpenCL C; see `perfmodel.kernel.Program`.

    Its sizes are the scalar arguments of integer type. Expressions over them are whole numbers or strings such as
    ``"(n + 15) // 16 * 16"``, with Python's ``+ - * // %`` and brackets.

    >>> OpenCLProgram(source, "scale", "n", 64, [Array("a", "float32", "n", is_output=True), Scalar("n", "int32")])

    Args:
        name: of the kernel in the source.
        global_size, local_size: work-items of the launch and of a work-group, an expression for each axis (or one
            for a single axis); the former has to be a multiple of the latter.
        arguments: an `Array`, `Scalar` or `LocalArray` for each of the kernel's arguments, in its order.
        build_options: for the OpenCL compiler, such as ``-DWIDTH=8``.
        assumptions: what holds for the sizes, as expressions that are compared: ``"n % 16 == 0 and n >= m"``; other
            sizes are refused.
        statistics: what data decide, for the counts: the expected turns of a loop, by its variable or as ``loop_LINE``,
            and the probability of a branch, as ``if_LINE``.
        observed: the same as `perfmodel.Kernel.observe` saw it, for what `statistics` leaves out.

    Raises:
        KernelError: for what cannot be a kernel.
    """

    def __init__(
        self,
        source: str,
        name: str,
        global_size: int | str | Sequence[int | str],
        local_size: int | str | Sequence[int | str],
        arguments: Sequence[Array | Scalar | LocalArray],
        build_options: Sequence[str] = (),
        assumptions: str = "",
        statistics: Mapping[str, float] | None = None,
        observed: Mapping[int, Fraction] | None = None,
    ) -> None:
        if not isinstance(source, str) or not isinstance(name, str):
            raise KernelError(f"kernel {name!r} has no source; give the text of its OpenCL C and its name in there")
        if isinstance(build_options, str) or not all(isinstance(option, str) for option in build_options):
            raise KernelError(f"build options {build_options!r} of kernel {name!r} are no strings; give a list of them")
        for option in build_options:
            first, *others = option.split() or [""]
            if not first or len(others) > (first in ("-D", "-U", "-I")):
                raise KernelError(
                    f"build option {option!r} of kernel {name!r} has blanks, where drivers split it; write it without"
                )
        self.source, self.name, self.build_options = source, name, tuple(build_options)
        self._declared = tuple(self._plain(argument) for argument in arguments)
        names = [argument.name for argument in self._declared]
        if twice := [argument for argument in names if names.count(argument) > 1]:
            raise KernelError(f"kernel {name!r} has two arguments {twice[0]!r}; rename one of them")
        scalars = [argument for argument in self._declared if isinstance(argument, Scalar)]
        self.arguments: tuple[str, ...] = tuple(scalar.name for scalar in scalars)
        self.sizes: tuple[str, ...] = tuple(s.name for s in scalars if np.dtype(s.dtype).kind in "iu")

        self._global_size = self._axes("global size", global_size)
        self._local_size = self._axes("local size", local_size)
        if len(self._global_size) != len(self._local_size) or not 1 <= len(self._local_size) <= 3:
            raise KernelError(
                f"kernel {name!r} has {len(self._global_size)} axes of work-items and {len(self._local_size)} of "
                "work-groups; give 1 to 3, the same for both"
            )
        self._extents = {
            argument.name: self._expression(
                f"extent of array {argument.name!r}",
                argument.extent if isinstance(argument, Array) else argument.n_bytes,
            )
            for argument in self._declared
            if isinstance(argument, Array | LocalArray)
        }
        expressions = [*self._global_size, *self._local_size, *self._extents.values()]
        self._extending = frozenset(name for expression in expressions for name in expression.names)
        self.assumptions, self.statistics = assumptions, dict(statistics or {})
        self.observed = dict(observed or {})
        self._conditions = _conditions(self.assumptions, name, self.sizes)
        self._counts: dict[Any, KernelCounts | CountingError] = {}

    def __reduce__(self) -> tuple[object, ...]:
        return (OpenCLProgram, (*self._given, self.assumptions, self.statistics, self.observed))

    @property
    def _given(self) -> tuple[object, ...]:
        """All that the device is given, as plain values in one form."""
        return (
            self.source,
            self.name,
            tuple(axis.text for axis in self._global_size),
            tuple(axis.text for axis in self._local_size),
            self._declared,
            self.build_options,
        )

    @cached_property
    def content(self) -> str:
        return hashlib.sha256(repr(self._given).encode()).hexdigest()

    def counts_for(self, subgroup_size: int | None = None, at: Mapping[str, int] | None = None) -> KernelCounts:
        key = (subgroup_size, None if at is None else tuple(at.items()))
        if key not in self._counts:
            from perfmodel.counting.cache import cached_counts

            parts = [self.content, self.assumptions, key[1], [(n, str(f)) for n, f in sorted(self.observed.items())]]
            count = partial(self._counted, subgroup_size, at)
            try:
                self._counts[key] = cached_counts(lambda: parts, self.statistics, subgroup_size, count)
            except CountingError as error:
                self._counts[key] = error
        found = self._counts[key]
        if isinstance(found, CountingError):
            raise found
        return found

    def _counted(self, subgroup_size: int | None, at: Mapping[str, int] | None = None) -> KernelCounts:
        from perfmodel.counting.symbolic import number
        from perfmodel.opencl_c.static import count_opencl
        from perfmodel.opencl_c.static.accesses import GlobalArray
        from perfmodel.opencl_c.static.grid import Grid

        numbers = {name: number(value) for name, value in (at or {}).items()}
        global_size, local_size = (
            [axis.polynomial().replaced(numbers) for axis in axes] for axes in (self._global_size, self._local_size)
        )
        items = [axis.constant for axis in local_size]
        if None in items:
            raise CountingError(
                f"kernel {self.name!r} has work-groups of a size that depends on {', '.join(self.sizes)}; to count it, "
                "give the local size as numbers"
            )
        arrays = {
            a.name: GlobalArray(
                str(a.dtype), np.dtype(a.dtype).itemsize, self._extents[a.name].polynomial().replaced(numbers)
            )
            for a in self._declared
            if isinstance(a, Array)
        }
        conditions = [] if at else [text for condition in self._conditions if (text := condition.isl()) is not None]
        sizes = [name for name in self.sizes if name not in numbers]
        grid = Grid(self.name, sizes, global_size, [size for size in items if size is not None], conditions)
        self._check_signature()
        return count_opencl(self.lowered, grid, arrays, self.statistics, subgroup_size, numbers, self.observed)

    @property
    def local_arguments(self) -> tuple[_Expression, ...]:
        """Bytes of the local memory that the launch provides to a work-group, by argument."""
        return tuple(self._extents[a.name] for a in self._declared if isinstance(a, LocalArray))

    @cached_property
    def lowered(self) -> LoweredKernel:
        """The source, read: what is counted and emulated.

        Raises:
            SourceError: for what is no OpenCL C, or not supported, with its place.
        """
        from perfmodel.opencl_c import lowered_kernel

        return lowered_kernel(self.source, self.name, self.build_options)

    def _check_signature(self) -> None:
        """Refuses arguments that are not those of the source."""
        names = [parameter.name for parameter in self.lowered.parameters]
        given = [argument.name for argument in self._declared]
        if names != given:
            raise KernelError(
                f"kernel {self.name!r} has the arguments {', '.join(names) or 'none'} in its source, but "
                f"{', '.join(given) or 'none'} beside it; name them as in the source, in its order"
            )

    def as_opencl(self) -> OpenCLProgram:
        return self

    def observing(self, observed: Mapping[int, Fraction]) -> OpenCLProgram:
        """The same program with other statistics of its branches."""
        twin = copy(self)
        twin.observed, twin._counts = dict(observed), {}
        return twin

    def check(self, sizes: Mapping[str, NDArray[Any]]) -> None:
        for name, value in sizes.items():
            if name in self._extending and np.any(value < 0):
                raise KernelError(f"size {name}={int(np.min(value))} of kernel {self.name!r} is negative")
        for condition in self._conditions:
            good = condition.holds(sizes)
            if not good.all():
                bad = int(np.argmin(good))
                named = [name for name in sizes if name in condition.names]
                culprit = {n: int(np.broadcast_to(sizes[n], good.shape).flat[bad]) for n in named}
                raise KernelError(f"{_listed(culprit)} breaks what kernel {self.name!r} assumes: {condition}")

    def launch(self, arguments: Mapping[str, float]) -> Launch:
        """The launch at these scalar arguments (a value for each of `arguments`)."""
        sizes = {name: int(arguments[name]) for name in self.sizes}
        global_size = tuple(axis.at(sizes) for axis in self._global_size)
        local_size = tuple(axis.at(sizes) for axis in self._local_size)
        for axis, total, group in zip(self._global_size, global_size, local_size, strict=True):
            if group > 0 and total % group:  # a launch refuses what is empty
                raise KernelError(
                    f"{axis.role} {axis} is {total} at {_listed(sizes)}, no multiple of its work-group's {group}; "
                    "choose other sizes or round it up"
                )
        bound: list[Argument] = []
        for argument in self._declared:
            if isinstance(argument, LocalArray):
                bound.append(LocalArgument(argument.name, self._extents[argument.name].at(sizes)))
                continue
            dtype = np.dtype(argument.dtype)
            if isinstance(argument, Array):
                extent = self._extents[argument.name].at(sizes)
                bound.append(ArrayArgument(argument.name, dtype.name, extent, argument.is_output))
            else:
                value = arguments[argument.name]
                if dtype.kind in "iu" and not np.iinfo(dtype).min <= value <= np.iinfo(dtype).max:
                    raise KernelError(
                        f"{argument.name}={value} of kernel {self.name!r} does not fit into {dtype.name}; declare a "
                        "wider argument"
                    )
                bound.append(ScalarArgument(argument.name, dtype.name, value))
        return Launch(self.source, self.name, global_size, local_size, tuple(bound), self.build_options)

    def _plain(self, argument: Array | Scalar | LocalArray) -> Array | Scalar | LocalArray:
        """The argument in one form, as equal programs have equal content."""
        if not isinstance(argument, Array | Scalar | LocalArray) or not isinstance(argument.name, str):
            raise KernelError(
                f"argument {argument!r} of kernel {self.name!r} is no Array, Scalar or LocalArray; give one by name"
            )
        if isinstance(argument, LocalArray):
            return replace(argument, n_bytes=str(argument.n_bytes).strip())
        try:
            dtype = "" if argument.dtype is None else np.dtype(argument.dtype).name
        except TypeError:
            dtype = ""
        if dtype not in C_TYPES:
            raise KernelError(
                f"argument {argument.name!r} of kernel {self.name!r} has dtype {argument.dtype!r}; give one of "
                f"{', '.join(C_TYPES)}"
            )
        if isinstance(argument, Array):
            return replace(argument, dtype=dtype, extent=str(argument.extent).strip())
        return replace(argument, dtype=dtype)

    def _axes(self, role: str, given: int | str | Sequence[int | str]) -> tuple[_Expression, ...]:
        axes = [given] if isinstance(given, str) or not isinstance(given, Sequence) else given
        return tuple(self._expression(role, axis) for axis in axes)

    def _expression(self, role: str, given: int | str) -> _Expression:
        return _Expression(f"{role} of kernel {self.name!r}", given, self.sizes)


# pymbolic's parser reads "n * n // 2" as n * (n // 2), so expressions are Python's own, with these operators only.
_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}


class _Expression:
    """A whole number that follows from sizes; `role` says of what, for errors.

    Raises:
        KernelError: for anything else.
    """

    def __init__(self, role: str, given: int | str, sizes: Sequence[str]) -> None:
        self.role = role
        self.text = str(given).strip()
        try:
            self._tree = ast.parse(self.text, mode="eval").body
            self.names = tuple(sorted(set(_names(self._tree))))
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise KernelError(
                f"{role} cannot be {self.text[:40]!r}; write whole numbers and sizes, joined by + - * // % and brackets"
            ) from error
        for name in self.names:
            if name not in sizes:
                raise KernelError(
                    f"{role} needs {name!r}, which is no size of it{nearest(name, sizes)} (it has "
                    f"{', '.join(sizes) or 'none'})"
                )

    def value(self, sizes: Mapping[str, Any]) -> Any:
        return _value(self._tree, sizes)

    def divisors(self, sizes: Mapping[str, Any]) -> list[Any]:
        """What it divides by."""
        quotients = [
            n for n in ast.walk(self._tree) if isinstance(n, ast.BinOp) and isinstance(n.op, ast.FloorDiv | ast.Mod)
        ]
        return [_value(node.right, sizes) for node in quotients]

    def polynomial(self) -> Polynomial:
        """The same for counting.

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
            raise KernelError(f"{self.role} {self} divides by zero at {_listed(sizes)}; choose other sizes") from error

    def __str__(self) -> str:
        return self.text if self.text.isalnum() else f"({self.text})"


def _names(tree: ast.expr) -> list[str]:
    """The names in a tree; ValueError if it has anything but names, whole numbers and the operators."""
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


def _polynomial(tree: ast.expr) -> Polynomial:
    from perfmodel.counting.symbolic import name, number, quotient, remainder

    match tree:
        case ast.Name():
            return name(tree.id)
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
            return (quotient if isinstance(tree.op, ast.FloorDiv) else remainder)(left, right, {})
        case ast.Constant(value=int() as value):
            return number(value)
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
class _Condition:
    """A comparison of two expressions over sizes."""

    left: _Expression
    comparison: type[ast.cmpop]
    right: _Expression

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self.left.names, *self.right.names)))

    def holds(self, sizes: Mapping[str, Any]) -> NDArray[np.bool_]:
        """Where sizes fulfil it; not where it divides by zero."""
        with np.errstate(divide="ignore"):
            left, right = self.left.value(sizes), self.right.value(sizes)
        return np.asarray(_COMPARISONS[self.comparison][1](left, right) & self._is_defined(sizes))

    def _is_defined(self, sizes: Mapping[str, Any]) -> Any:
        divisors = [value for side in (self.left, self.right) for value in side.divisors(sizes)]
        return math.prod([np.not_equal(divisor, 0) for divisor in divisors], start=np.asarray(True))

    def isl(self) -> str | None:
        """For counting; None where it is not affine."""
        from perfmodel.counting.symbolic import compared, plain

        operator_, _ = _COMPARISONS[self.comparison]
        return compared(operator_, plain(self.left.polynomial()), plain(self.right.polynomial()))

    def __str__(self) -> str:
        return f"{self.left.text} {_COMPARISONS[self.comparison][0]} {self.right.text}"


def _conditions(text: str, kernel: str, sizes: Sequence[str]) -> tuple[_Condition, ...]:
    """The comparisons that assumptions consist of.

    Raises:
        KernelError: for anything else.
    """
    role = f"assumption of kernel {kernel!r}"
    if not isinstance(text, str):
        raise KernelError(f"{role} cannot be {text!r}; write comparisons such as n % 16 == 0 and n >= m")
    try:
        tree = ast.parse(text.strip(), mode="eval").body if text.strip() else None
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        tree = ast.Constant(value=None)
    found: list[_Condition] = []
    for part in tree.values if isinstance(tree, ast.BoolOp) and isinstance(tree.op, ast.And) else [tree]:
        if part is None:
            continue
        if not isinstance(part, ast.Compare) or any(type(op) not in _COMPARISONS for op in part.ops):
            raise KernelError(
                f"{role} cannot be {text[:60]!r}; write comparisons such as n % 16 == 0 and n >= m, joined by 'and'"
            )
        sides = [_Expression(role, ast.unparse(side), sizes) for side in (part.left, *part.comparators)]
        found += [_Condition(*three) for three in zip(sides, map(type, part.ops), sides[1:], strict=False)]
    return tuple(found)


def _listed(sizes: Mapping[str, int]) -> str:
    return ", ".join(f"{name}={value}" for name, value in sizes.items()) or "no sizes"

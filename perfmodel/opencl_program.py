"""OpenCL C source as a Program: what it is launched with follows from its sizes by expressions given beside it."""

from __future__ import annotations

import ast
import hashlib
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from perfmodel.errors import CountingError, KernelError, nearest
from perfmodel.measurement import ArrayArgument, Launch, ScalarArgument

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray

    from perfmodel.counting.counts import KernelCounts

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


class OpenCLProgram:
    """A kernel in OpenCL C; see `perfmodel.kernel.Program`. Local memory is declared in the source.

    Its sizes are the scalar arguments of integer type. Expressions over them are whole numbers or strings such as
    ``"(n + 15) // 16 * 16"``, with Python's ``+ - * // %`` and brackets.

    >>> OpenCLProgram(source, "scale", "n", 64, [Array("a", "float32", "n", is_output=True), Scalar("n", "int32")])

    Args:
        name: of the kernel in the source.
        global_size, local_size: work-items of the launch and of a work-group, an expression for each axis (or one
            for a single axis); the former has to be a multiple of the latter.
        arguments: an `Array` or a `Scalar` for each of the kernel's arguments, in its order.
        build_options: for the OpenCL compiler, such as ``-DWIDTH=8``.
        multiples: the expression that a size must be a multiple of, by size; others are refused.

    Raises:
        KernelError: for what cannot be a kernel.
    """

    def __init__(
        self,
        source: str,
        name: str,
        global_size: int | str | Sequence[int | str],
        local_size: int | str | Sequence[int | str],
        arguments: Sequence[Array | Scalar],
        build_options: Sequence[str] = (),
        multiples: Mapping[str, int | str] | None = None,
    ) -> None:
        if not isinstance(source, str) or not isinstance(name, str):
            raise KernelError(f"kernel {name!r} has no source; give the text of its OpenCL C and its name in there")
        if isinstance(build_options, str) or not all(isinstance(option, str) for option in build_options):
            raise KernelError(f"build options {build_options!r} of kernel {name!r} are no strings; give a list of them")
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
            argument.name: self._expression(f"extent of array {argument.name!r}", argument.extent)
            for argument in self._declared
            if isinstance(argument, Array)
        }
        for size in multiples or {}:
            if size not in self.sizes:
                raise KernelError(f"kernel {name!r} has no size {size!r} with multiples{nearest(size, self.sizes)}")
        self._multiples = {n: self._expression(f"multiple of size {n!r}", m) for n, m in (multiples or {}).items()}

    def __reduce__(self) -> tuple[object, ...]:
        multiples = {name: multiple.text for name, multiple in self._multiples.items()}
        return (OpenCLProgram, (*self._given, multiples))

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

    def counts_for(self, subgroup_size: int | None = None) -> KernelCounts:
        raise CountingError(
            f"kernel {self.name!r} is OpenCL C source, which cannot be counted yet; measure it, or give it as a Loopy "
            "program"
        )

    def check(self, sizes: Mapping[str, NDArray[Any]]) -> None:
        for name, value in sizes.items():
            if np.any(value < 0):
                raise KernelError(f"size {name}={int(np.min(value))} of kernel {self.name!r} is negative")
        for name, multiple in self._multiples.items():
            with np.errstate(divide="ignore"):  # of zero, there is no multiple
                step = multiple.value(sizes)
            bad = (step < 1) | (sizes[name] % np.maximum(step, 1) != 0)
            if np.any(bad):
                place = int(np.argmax(bad))
                involved = {n: int(np.broadcast_to(sizes[n], bad.shape).flat[place]) for n in (name, *multiple.names)}
                raise KernelError(
                    f"{_listed(involved)} breaks what kernel {self.name!r} assumes: {name} mod {multiple} = 0"
                )

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
        bound: list[ArrayArgument | ScalarArgument] = []
        for argument in self._declared:
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

    def _plain(self, argument: Array | Scalar) -> Array | Scalar:
        """The argument in one form, as equal programs have equal content."""
        if not isinstance(argument, Array | Scalar) or not isinstance(argument.name, str):
            raise KernelError(f"argument {argument!r} of kernel {self.name!r} is no Array or Scalar; give one by name")
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


def _listed(sizes: Mapping[str, int]) -> str:
    return ", ".join(f"{name}={value}" for name, value in sizes.items()) or "no sizes"

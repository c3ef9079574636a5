"""A program in source or machine code, beside which stand its arguments and, as expressions over sizes, its launch."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar, TypeVar

import numpy as np

from perfmodel.basics.brief import brief
from perfmodel.basics.errors import KernelError
from perfmodel.device.launch_shape import check_extent
from perfmodel.kernels.arguments import (
    Argument,
    Array,
    Derived,
    Image,
    LocalArray,
    Sampler,
    Scalar,
    Struct,
    arrays_of,
    check_range,
    scalars_of,
    whole_numbers,
)
from perfmodel.kernels.size_expression import Extent, SizeExpression, axes_of, check_sizes, conditions_of

A = TypeVar("A", bound=Array | Derived)


class DeclaredProgram(ABC):
    """A program of which arguments and extents are declared; see `perfmodel.kernels.program.Program`.

    Args:
        arguments: for each of the kernel's parameters, in its order.
        assumptions: what holds for the sizes, as expressions that are compared: ``"n % 16 == 0 and n >= m"``; other
            sizes are refused.
        free: sizes that are no arguments: grid, arrays and derived numbers follow from them.

    Raises:
        KernelError: for what cannot be a kernel.
    """

    KINDS: ClassVar[tuple[type, ...]]
    """The kinds of arguments that it takes."""

    def __init__(
        self, name: str, arguments: Sequence[Argument | Derived], assumptions: str, free: Sequence[str] = ()
    ) -> None:
        self.name, self.assumptions = name, assumptions
        self.declared = tuple(map(self._plain, arguments))
        scalars = [scalar for each in self.declared for scalar in scalars_of(each)]
        held = [array for each in self.declared if isinstance(each, Struct) for array in each.arrays]
        names = [each.name for each in self.declared if not isinstance(each, Scalar)]
        names += [scalar.name for scalar in scalars] + [array.name for array in held]
        if twice := [each for each in names if names.count(each) > 1]:
            raise KernelError(f"kernel {name!r} has two arguments {twice[0]!r}; rename one of them")
        self._integers = whole_numbers({scalar.name: scalar.dtype for scalar in scalars})
        self.free = tuple(each for each in free if each not in names)
        self.arguments: tuple[str, ...] = (*(scalar.name for scalar in scalars), *self.free)
        self.sizes: tuple[str, ...] = (*self._integers, *self.free)

    def _follows(self, *shape: SizeExpression) -> None:
        """Takes in from which sizes the launch's shape and the arguments' extents follow."""
        self._image_sizes = {
            each.name: [self._expression(f"size of image {each.name!r}", size) for size in each.sizes]
            for each in self.declared
            if isinstance(each, Image)
        }
        self._extents = {
            each.name: self._expression(
                f"extent of {'' if isinstance(each, Derived) else 'array '}{each.name!r}",
                each.n_bytes if isinstance(each, LocalArray) else each.extent,
            )
            for each in (*self.declared, *self.declared_arrays)
            if isinstance(each, Array | LocalArray | Derived)
        }
        self._shaping = frozenset(name for axis in shape for name in axis.names)
        self._extending = self._shaping.union(*(extent.names for extent in self._extents.values()))
        self._conditions = conditions_of(self.assumptions, f"assumption of kernel {self.name!r}", self.sizes)

    @property
    @abstractmethod
    def _given(self) -> tuple[object, ...]:
        """Returns all that the device is given, as plain values in one form."""

    @cached_property
    def content(self) -> str:
        return hashlib.sha256(repr(self._given).encode()).hexdigest()

    @property
    def declared_arrays(self) -> list[Array]:
        """The arrays among the arguments, and those that pointers of structs point to."""
        return [array for each in self.declared for array in arrays_of(each)]

    def check(self, sizes: Mapping[str, Any]) -> None:
        check_sizes(self.name, sizes, self._extending, self._conditions)
        check_range(self.name, sizes, self._integers)

    def _check_extents(self, sizes: Mapping[str, Any]) -> None:
        for each in (*self.declared, *self.declared_arrays):
            if isinstance(each, Array | LocalArray):
                extent = self._extents[each.name]
                known = {size: value for size, value in sizes.items() if size in extent.names}
                check_extent(self.name, each.name, extent.values(known), known)

    def _shaping_of(self, sizes: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the sizes that the launch's shape follows from."""
        return {name: size for name, size in sizes.items() if name in self._shaping}

    def _bound(self, argument: Argument | Derived, values: Mapping[str, float], sizes: Mapping[str, int]) -> Argument:
        """Returns an argument in numbers."""
        match argument:
            case Image():
                sizes_of_axes = tuple(axis.at(sizes) for axis in self._image_sizes[argument.name])
                return replace(argument, extent=self._extents[argument.name].at(sizes), sizes=sizes_of_axes)
            case Array():
                return replace(argument, extent=self._extents[argument.name].at(sizes))
            case Sampler():
                return argument
            case LocalArray():
                return replace(argument, n_bytes=self._extents[argument.name].at(sizes))
            case Derived():
                return Scalar(argument.name, argument.dtype, self._extents[argument.name].at(sizes))
            case Struct():
                arrays = tuple(replace(each, extent=self._extents[each.name].at(sizes)) for each in argument.arrays)
                fields = tuple(self._with_value(field, values) for field in argument.fields)
                return replace(argument, fields=fields, arrays=arrays)
        return self._with_value(argument, values)

    def _with_value(self, scalar: Scalar, values: Mapping[str, float]) -> Scalar:
        return replace(scalar, value=values[scalar.name])

    def _plain(self, argument: Argument | Derived) -> Argument | Derived:
        """Returns the argument in one form, as equal programs have equal content."""
        if not isinstance(argument, self.KINDS) or not isinstance(argument.name, str):
            *kinds, last = (kind.__name__ for kind in self.KINDS)
            raise KernelError(
                f"argument {argument!r} of kernel {self.name!r} is no {', '.join(kinds)} or {last}; give one by name"
            )
        match argument:
            case Sampler():
                return argument
            case Image():
                return replace(self._plain_array(argument), sizes=tuple(map(str, argument.sizes)))
            case LocalArray():
                return replace(argument, n_bytes=str(argument.n_bytes).strip())
            case Struct():
                arrays = tuple(self._plain_array(each) for each in argument.arrays)
                fields = tuple(Scalar(each.name, self._dtype(each)) for each in argument.fields)
                return replace(argument, fields=fields, arrays=arrays)
            case Scalar():
                return Scalar(argument.name, self._dtype(argument))
        return self._plain_array(argument)

    def _plain_array(self, argument: A) -> A:
        return replace(argument, dtype=self._dtype(argument), extent=str(argument.extent).strip())

    def _dtype(self, declared: Array | Scalar | Derived) -> str:
        """Returns numpy's name of a declared type."""
        return str(np.dtype(declared.dtype).name)

    def _axes(self, role: str, given: Extent | Sequence[Extent]) -> tuple[SizeExpression, ...]:
        return tuple(self._expression(role, axis) for axis in axes_of(role, self.name, given))

    def _expression(self, role: str, given: Extent) -> SizeExpression:
        return SizeExpression(f"{role} of kernel {self.name!r}", given, self.sizes)

    def __repr__(self) -> str:
        return brief(self, self.name, f"sizes {', '.join(self.sizes) or 'none'}")

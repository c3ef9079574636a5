"""Makes programs of Numba's kernels, with arrays as it passes them: a struct of pointer, shape and strides each."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from perfmodel.basics.errors import KernelError
from perfmodel.kernels.arguments import Argument, Array, Derived, Scalar, check_known
from perfmodel.kernels.given_arguments import (
    GivenArray,
    GivenNumber,
    GivenTiles,
    by_name,
    given,
    names_in,
)
from perfmodel.kernels.numba_compiler import compiled, function_of, types_of_numba
from perfmodel.kernels.ptx_program import PtxProgram
from perfmodel.kernels.size_expression import Extent, axes_of
from perfmodel.ptx.code import code_of
from perfmodel.ptx.parameters import parameters_of

_HELD = {"bool": "int8"}
"""The types by which numbers are passed, where they are others."""


def numba_program(
    kernel: Any,
    grid: Extent | Sequence[Extent],
    block: Extent | Sequence[Extent],
    args: Mapping[str, Any] | Sequence[Any],
    shared: Extent,
    target: str,
    assumptions: str,
    numbers: Mapping[str, Any],
) -> tuple[PtxProgram, dict[str, Any]]:
    """Compiles a kernel of Numba, and returns it with its numbers; see `perfmodel.Kernel.from_numba`."""
    types = types_of_numba()
    function, options = function_of(kernel)
    name = function.__name__
    parameters = list(inspect.signature(function).parameters)
    called = by_name(name, parameters, args, numbers)
    values = {each: called.get(each, numbers.get(each, each)) for each in parameters}
    arguments = {each: _plain_given(each, value) for each, value in values.items()}
    orders = {each: _order(value) for each, value in values.items()}
    signature = [_type(types, n, each, orders[n]) for n, each in arguments.items()]
    text, entry = compiled(function, signature, target, bool(options.get("fastmath")))
    expressions: list[Extent] = [shared]
    expressions += [*axes_of("grid", name, grid), *axes_of("block", name, block)]
    for each in arguments.values():
        expressions += each.shape if isinstance(each, GivenArray) else [each.expression]
    free = tuple(each for each in names_in(expressions) if each not in arguments)
    known = {n: each.value for n, each in arguments.items() if isinstance(each, GivenNumber) and each.value is not None}
    check_known(name, numbers, (*arguments, *free))
    outputs = [parameter.is_output for parameter in parameters_of(code_of(text, entry))]
    declared: list[Argument | Derived] = []
    for own, each in arguments.items():
        if isinstance(each, GivenArray):
            is_output = outputs[len(declared) + 4]
            declared += _struct(own, each, orders[own], is_output)
        elif each.expression and each.expression != own:
            declared.append(Derived(own, _held(each), each.expression))
        else:
            declared.append(Scalar(own, _held(each)))
    contents = {n: _laid(each, orders[n]) for n, each in arguments.items() if isinstance(each, GivenArray)}
    program = PtxProgram(
        text,
        entry,
        name,
        grid,
        block,
        declared,
        shared,
        assumptions,
        {own: content for own, content in contents.items() if content is not None},
        free=free,
    )
    bound = {**{n: value for n, value in numbers.items() if n in free}, **known}
    return program, {n: int(value) if isinstance(value, bool) else value for n, value in bound.items()}


def _plain_given(name: str, value: Any) -> GivenArray | GivenNumber:
    found = given(name, value)
    if isinstance(found, GivenTiles):
        raise KernelError(f"argument {name!r} is a tensor descriptor, which Numba's kernels don't take; give its array")
    return found


def _order(value: Any) -> str:
    """Returns ``F`` for an array whose first axis is the fastest, and ``C`` else."""
    is_f = isinstance(value, np.ndarray) and value.flags.f_contiguous and not value.flags.c_contiguous
    return "F" if is_f else "C"


def _laid(array: GivenArray, order: str) -> Any:
    """Returns an array's contents, whose bytes in numpy's order are those in memory."""
    return array.contents.T if order == "F" else array.contents


def _type(types: Any, name: str, each: GivenArray | GivenNumber, order: str) -> Any:
    """Returns Numba's type of an argument, as it has it for a launch."""
    dtype = each.type if isinstance(each, GivenArray) else _number(each)
    own = {"bool": "boolean"}.get(dtype, dtype)
    found = getattr(types, own, None)
    if found is None:
        raise KernelError(f"argument {name!r} holds {dtype}, which Numba's kernels don't take")
    return types.Array(found, len(each.shape), order) if isinstance(each, GivenArray) else found


def _number(number: GivenNumber) -> str:
    """Returns the type of a number: Numba's integers and floats have 64 bits."""
    if number.dtype:
        return number.dtype
    return "bool" if isinstance(number.value, bool) else "float64" if isinstance(number.value, float) else "int64"


def _held(number: GivenNumber) -> str:
    dtype = _number(number)
    return _HELD.get(dtype, dtype)


def _struct(name: str, array: GivenArray, order: str, is_output: bool) -> list[Argument | Derived]:
    """Returns the parameters by which Numba passes an array."""
    item = np.dtype(array.dtype).itemsize
    axes = list(range(len(array.shape)))
    faster = [axes[:axis] if order == "F" else axes[axis + 1 :] for axis in axes]
    strides = [" * ".join([str(item), *(f"({array.shape[each]})" for each in others)]) for others in faster]
    return [
        Derived(f"{name}_meminfo", "uint64", 0),
        Derived(f"{name}_parent", "uint64", 0),
        Derived(f"{name}_size", "int64", array.extent),
        Derived(f"{name}_itemsize", "int64", item),
        Array(name, array.dtype, array.extent, is_output),
        *(Derived(f"{name}_shape_{axis}", "int64", array.shape[axis]) for axis in axes),
        *(Derived(f"{name}_strides_{axis}", "int64", strides[axis]) for axis in axes),
    ]

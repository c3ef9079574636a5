"""Makes programs of Triton's kernels, from arguments as a call of the kernel has them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from perfmodel.basics.errors import KernelError, one_line
from perfmodel.kernels.arguments import Argument, Array, Derived, Described, Scalar, check_known
from perfmodel.kernels.given_arguments import (
    Given,
    GivenArray,
    GivenNumber,
    GivenTiles,
    by_name,
    given,
    names_in,
    value_of,
    with_numbers,
)
from perfmodel.kernels.ptx_program import PtxProgram
from perfmodel.kernels.size_expression import Extent, axes_of
from perfmodel.kernels.triton_compiler import Decorated, TritonText, backend_of, compiled, undecorated
from perfmodel.ptx.code import code_of
from perfmodel.ptx.parameters import Parameter, parameters_of

_TYPES = {
    **{f"int{bits}": f"i{bits}" for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": f"u{bits}" for bits in (8, 16, 32, 64)},
    **{f"float{bits}": f"fp{bits}" for bits in (16, 32, 64)},
    "bool": "i1",
    "bfloat16": "bf16",
    "float8_e4m3fn": "fp8e4nv",
    "float8_e5m2": "fp8e5",
}
ALIGNED = 16
"""Triton compiles for whether an argument is a multiple of this."""
Grid = Extent | Sequence[Extent] | Callable[[Mapping[str, Any]], Any]


@dataclass(frozen=True)
class _Call:
    """Arguments of a call of a kernel.

    Attributes:
        arguments: by name, those that are no constants, and of tuples each part: ``strides_0`` …
        parts: the names of the parts of each tuple.
        constants: the values of those that are.
        numbers: all that is known: constants, values and sizes.
        options: of Triton's compiler.
    """

    arguments: Mapping[str, Given]
    parts: Mapping[str, tuple[str, ...]]
    constants: Mapping[str, Any]
    numbers: Mapping[str, Any]
    options: Mapping[str, Any]


def triton_program(
    fn: Any,
    grid: Grid,
    args: Mapping[str, Any] | Sequence[Any],
    target: str,
    assumptions: str,
    keywords: Mapping[str, Any],
) -> tuple[PtxProgram, dict[str, float]]:
    """Compiles a kernel of Triton, and returns it with the values of its arguments; see `perfmodel.Kernel.from_triton`.

    Args:
        keywords: constants, sizes and other numbers, and options of Triton's compiler.
    """
    _, backend = backend_of(target)
    decorated = undecorated(fn)
    function = decorated.fn
    if not isinstance(assumptions, str):
        raise KernelError(
            f"assumption of kernel {function.__name__!r} cannot be {assumptions!r:.40}; write comparisons such as "
            "n % 16 == 0 and n >= m"
        )
    call = _called(decorated, args, keywords, frozenset(backend.parse_options({}).__dict__))
    sizes, free = _sizes(function.__name__, call, grid, keywords)
    signature, constants, divisible, said = _specialized(function, call, sizes, assumptions)
    text = compiled(function, target, call.parts, signature, constants, divisible, call.options)
    whole = {name: int(value) for name, value in call.constants.items() if isinstance(value, int)}
    grid = _grid(function.__name__, grid, {**sizes, **call.numbers, **call.options})
    declared = _declared(text, call, signature, grid, whole)
    program = PtxProgram(
        text.ptx,
        text.name,
        function.__name__,
        [with_numbers(axis, whole) for axis in grid],
        text.threads,
        declared,
        text.shared,
        " and ".join(filter(None, [assumptions, *said])),
        {n: each.contents for n, each in _arrays(call).items() if each.contents is not None},
        free=free,
    )
    bound = {name: value for name, value in sizes.items() if name in program.arguments}
    return program, {name: int(value) if isinstance(value, bool) else value for name, value in bound.items()}


def _arrays(call: _Call) -> dict[str, GivenArray]:
    """Returns the arrays of a call, also those of tensor descriptors."""
    found = {n: each.array if isinstance(each, GivenTiles) else each for n, each in call.arguments.items()}
    return {name: each for name, each in found.items() if isinstance(each, GivenArray)}


def _called(
    decorated: Decorated,
    args: Mapping[str, Any] | Sequence[Any],
    keywords: Mapping[str, Any],
    known_options: frozenset[str],
) -> _Call:
    """Returns the arguments of a call, as Triton would bind them.

    A keyword that names both a constant and an option of the compiler (``num_warps``) is both.
    """
    function = decorated.fn
    name, names = function.__name__, list(function.arg_names)
    if len(decorated.configurations) == 1:
        keywords = {**decorated.configurations[0], **keywords}
    numbers = {n: value for n, value in keywords.items() if n not in known_options or n in names}
    args = by_name(name, names, args, numbers)
    defaults = {p.name: p.default for p in function.params if p.has_default}
    values = {**defaults, **args, **{n: value for n, value in numbers.items() if n in names}}
    chosen = {n: value for n, value in keywords.items() if n in known_options}
    for constant, rule in decorated.heuristics:
        value = _computed(name, constant, rule, {**values, **keywords})
        values[constant] = value
        if constant in known_options:
            chosen[constant] = value
    constants: dict[str, Any] = {}
    arguments: dict[str, Given] = {}
    parts: dict[str, tuple[str, ...]] = {}
    for parameter in function.params:
        value = values.get(parameter.name, parameter.name)
        if parameter.is_constexpr:
            if parameter.name not in values:
                raise KernelError(
                    f"kernel {name!r} needs the constant {parameter.name!r}; give it as {parameter.name}=…"
                    f"{_tuned(decorated)}"
                )
            constants[parameter.name] = getattr(value, "value", value) if type(value).__name__ == "constexpr" else value
        elif value is None:
            constants[parameter.name] = None
        elif isinstance(value, tuple | list):
            parts[parameter.name] = tuple(f"{parameter.name}_{place}" for place in range(len(value)))
            of_parts = dict(zip(parts[parameter.name], value, strict=True))
            arguments |= {part: given(part, each) for part, each in of_parts.items() if each is not None}
            constants |= {part: None for part, each in of_parts.items() if each is None}
        else:
            arguments[parameter.name] = given(parameter.name, value)
    plain = {n: each.value for n, each in arguments.items() if isinstance(each, GivenNumber) and each.value is not None}
    return _Call(
        arguments=arguments,
        parts=parts,
        constants=constants,
        numbers={**numbers, **constants, **plain},
        options=chosen,
    )


def _computed(kernel: str, constant: str, rule: Callable[[dict[str, Any]], Any], known: dict[str, Any]) -> Any:
    """Returns what a heuristic says of a constant; what was given, where it asks for more than is known."""
    try:
        return rule(known)
    except Exception as error:  # it is the user's own function
        if constant in known:
            return known[constant]
        raise KernelError(
            f"the heuristic for {constant!r} of kernel {kernel!r} fails on what is given ({one_line(error)}); give "
            f"{constant}=…, or tensors that have what it asks for"
        ) from error


def _tuned(decorated: Decorated) -> str:
    """Returns the first configuration of an autotuner in words."""
    if not decorated.configurations:
        return ""
    first = ", ".join(f"{name}={value!r}" for name, value in decorated.configurations[0].items())
    return f" (the first of its autotuner's {len(decorated.configurations)} configurations is {first})"


def _sizes(name: str, call: _Call, grid: Grid, numbers: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Returns the values of sizes and other numbers that are known, and the names of sizes that are no arguments."""
    expressions: list[Extent] = [] if callable(grid) else [*axes_of("grid", name, grid)]
    for each in call.arguments.values():
        if isinstance(each, GivenTiles):
            expressions += [*each.array.shape, *each.strides]
        else:
            expressions += each.shape if isinstance(each, GivenArray) else [each.expression]
    constants = {n for n, value in call.constants.items()}
    free = tuple(n for n in names_in(expressions) if n not in call.arguments and n not in constants)
    check_known(name, numbers, (*call.arguments, *call.constants, *free, *call.options))
    return {n: v for n, v in call.numbers.items() if n not in constants}, free


def _specialized(
    function: Any, call: _Call, sizes: Mapping[str, Any], assumptions: str
) -> tuple[dict[str, str], dict[str, Any], tuple[str, ...], list[str]]:
    """Returns what Triton compiles for: types, constants, what is a multiple of 16, and what that assumes of sizes."""
    signature: dict[str, str] = {}
    constants = dict(call.constants)
    divisible: list[str] = []
    assumed: list[str] = []
    named = [(part, each) for each in function.params for part in call.parts.get(each.name, (each.name,))]
    for name, parameter in named:
        if name in constants:
            signature[name] = "constexpr"
            continue
        each = call.arguments[name]
        if isinstance(each, GivenArray):
            signature[name] = f"*{_type(name, each.type)}"
            divisible.append(name)
            continue
        if isinstance(each, GivenTiles):
            signature[name] = f"tensordesc<{_type(name, each.array.type)}[{','.join(map(str, each.box))}]>"
            continue
        value = each.value if not each.expression else value_of(each.expression, sizes)
        signature[name] = parameter.annotation_type or _number_type(name, each, value)
        is_whole = signature[name][:1] in "iu" and signature[name] != "i1"
        expression = each.expression or name
        if not is_whole or parameter.do_not_specialize:
            continue
        if value is None:
            if _is_assumed_multiple(expression, assumptions) and not parameter.do_not_specialize_on_alignment:
                divisible.append(name)
            continue
        if value == 1 and not parameter.annotation_type:
            constants[name], signature[name] = 1, "constexpr"
            if each.expression and names_in([expression]):
                assumed.append(f"{expression} == 1")
        elif value % ALIGNED == 0 and not parameter.do_not_specialize_on_alignment:
            divisible.append(name)
            if names_in([expression]):
                assumed.append(f"({expression}) % {ALIGNED} == 0")
    return signature, constants, tuple(divisible), list(dict.fromkeys(assumed))


def _is_assumed_multiple(size: str, assumptions: str) -> bool:
    """Returns whether assumptions say that a size is a multiple of 16."""
    found = re.findall(rf"\b{re.escape(size)}\s*%\s*(\d+)\s*==\s*0\b", assumptions)
    return any(int(number) and int(number) % ALIGNED == 0 for number in found)


def _type(name: str, dtype: str) -> str:
    if dtype not in _TYPES:
        raise KernelError(
            f"argument {name!r} holds {dtype}, which Triton's kernels don't take; give {', '.join(_TYPES)}"
        )
    return _TYPES[dtype]


def _number_type(name: str, number: GivenNumber, value: float | None) -> str:
    """Returns the type that Triton gives a number."""
    if number.dtype:
        return _type(name, number.dtype)
    if isinstance(value, bool):
        return "i1"
    if isinstance(value, float):
        return "fp32"
    return "i32" if value is None or -(2**31) <= value < 2**31 else "i64" if value < 2**63 else "u64"


def _grid(name: str, grid: Grid, known: Mapping[str, Any]) -> tuple[Extent, ...]:
    if callable(grid):
        try:
            axes = grid(dict(known))
            return (axes,) if isinstance(axes, int) else tuple(int(axis) for axis in axes)
        except KeyError as error:
            raise KernelError(f"the grid of kernel {name!r} needs {error}; give it a value") from error
        except Exception as error:  # it is the user's own function
            raise KernelError(
                f"the grid of kernel {name!r} fails on what is given ({one_line(error)}); let it return whole numbers, "
                "or give them by axis"
            ) from error
    return axes_of("grid", name, grid)


def _declared(
    text: TritonText,
    call: _Call,
    signature: Mapping[str, str],
    grid: Sequence[Extent],
    whole: Mapping[str, int],
) -> list[Argument | Derived]:
    """Returns the arguments of the compiled kernel, at last the pointers of Triton's runtime."""
    parameters = parameters_of(code_of(text.ptx, text.name))
    kept_ones = [name for name, type_ in signature.items() if type_ != "constexpr"]
    maps = iter(text.maps)
    found: list[Argument | Derived] = []
    for name in kept_ones:
        each = call.arguments[name]
        if isinstance(each, GivenTiles):
            found += _described(name, each, next(maps, None), whole, parameters[len(found) :])
        elif isinstance(each, GivenArray):
            is_output = len(found) < len(parameters) and parameters[len(found)].is_output
            found.append(Array(name, each.dtype, with_numbers(each.extent, whole), is_output))
        else:
            type_ = signature[name]
            dtype = next((numpy for numpy, own in _TYPES.items() if own == type_), "int32")
            dtype = {"i1": "int8"}.get(type_, dtype)
            if each.expression and each.expression != name:
                found.append(Derived(name, dtype, with_numbers(each.expression, whole)))
            else:
                found.append(Scalar(name, dtype))
    blocks = " * ".join(f"({with_numbers(axis, whole)})" for axis in grid)
    for place in range(len(parameters) - len(found)):
        extent = f"{text.scratch} * {blocks}" if place == 0 and text.scratch else 1
        found.append(Array(f"triton_runtime_{place}", "uint8", extent))
    return found


def _described(
    name: str,
    tiles: GivenTiles,
    made: Sequence[Any] | None,
    whole: Mapping[str, int],
    parameters: Sequence[Parameter],
) -> list[Argument | Derived]:
    """Returns the parameters of a tensor descriptor: a tensor map, or where there are none, the numbers in it.

    Args:
        parameters: of the compiled kernel from here on, whose bytes tell how many flags there are.
    """
    array = tiles.array
    extent = with_numbers(array.extent, whole)
    both = [("shape", "int32", array.shape), ("strides", "int64", tiles.strides)]
    numbers = [
        Derived(f"{name}_{what}_{axis}", dtype, with_numbers(value, whole))
        for what, dtype, values in both
        for axis, value in enumerate(values)
    ]
    if made is not None:
        swizzle, element, box = made
        return [
            Described(
                name=name,
                dtype=array.dtype,
                extent=extent,
                is_output=False,
                box=tuple(box),
                element=element,
                swizzle=swizzle,
            ),
            *numbers,
        ]
    wide = [Derived(f"{each.name}_again", "int64", each.extent) for each in numbers]
    flags: list[Derived] = []
    for parameter in parameters[1 + len(wide) :]:
        if parameter.n_bytes != 1:
            break
        flags.append(Derived(f"{name}_flag_{len(flags)}", "int8", 0))
    return [Array(name, array.dtype, extent), *wide, *flags, *numbers]

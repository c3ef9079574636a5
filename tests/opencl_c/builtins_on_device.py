"""Runs built-in functions on a real device: many of them in few kernels, on edge cases and random numbers."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyopencl as cl
from numpy.typing import NDArray

from perfmodel.device import Device
from perfmodel.opencl_c.builtins.representation import dtype_of
from perfmodel.opencl_c.types import Scalar, Type, Vector, element_of, width_of

Value = NDArray[Any]
"""A value as the emulation has it: one number per lane, with an axis of components in front if it is a vector."""

LANES = 1200
FLOAT_EDGES = (
    *(0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 7.0, 8.0, 10.0, 20.0, 33.5, 89.0, 100.0, 127.5),
    *(128.0, 255.5, 256.0, 2049.0, 32767.5, 65504.0, 65520.0, 8388607.5, 8388608.5, 2.0**24 + 2, 2.0**31, 2.0**32),
    *(2.0**53, 2.0**62, 2.0**63, 2.0**64, 1e-5, 1e-20, 0.1, 0.7, 1 / 3, np.pi, np.e, np.inf, np.nan),
)
FEW_FLOATS = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 7.5, 100.0, 2.0**24, 1e-20, 1 / 3, np.inf, np.nan)


@dataclass(frozen=True)
class Case:
    """One call: `code` computes `result` from the arguments ``a``, ``b`` and ``c``, and may be several statements."""

    name: str
    code: str
    result: Type
    arguments: tuple[Type, ...]

    def __str__(self) -> str:
        return f"{self.result} {self.name}({', '.join(map(str, self.arguments))})"


def call(name: str, result: Type, *arguments: Type) -> Case:
    """Returns a call of a built-in; the number after a dot chooses what is returned or what is stored."""
    letters = ", ".join("abc"[: len(arguments)])
    function, _, part = name.partition(".")
    if not part:
        return Case(name, f"r = {function}({letters});", result, arguments)
    stored = result if part == "1" or function in ("fract", "modf", "sincos") else _with_int(result)
    if part == "1":
        returned = arguments[0]
        return Case(name, f"{stored} p; {returned} q = {function}({letters}, &p); r = p;", result, arguments)
    return Case(name, f"{stored} p; r = {function}({letters}, &p);", result, arguments)


def _with_int(type_: Type) -> Type:
    integer = Scalar("int", "int32")
    return Vector(integer, type_.width) if isinstance(type_, Vector) else integer


@dataclass
class Batch:
    """Cases of the same arguments, so of one kernel, with their values and the device's results."""

    arguments: tuple[Type, ...]
    cases: list[Case]
    values: tuple[Value, ...] = ()
    results: dict[Case, Value] = field(default_factory=dict)


def evaluated(
    device: Device, cases: Iterable[Case], values: Callable[[tuple[Type, ...]], tuple[Value, ...]]
) -> list[Batch]:
    """Evaluates all cases on the device, on the values that belong to their arguments' types."""
    batches: dict[tuple[Type, ...], Batch] = {}
    for case in cases:
        batches.setdefault(case.arguments, Batch(case.arguments, [])).cases.append(case)
    for batch in batches.values():
        batch.values = values(batch.arguments)
    sources = [_kernel(f"batch{number}", batch) for number, batch in enumerate(batches.values())]
    source = "#pragma OPENCL EXTENSION cl_khr_fp16 : enable\n" + "\n".join(sources)
    program = cl.Program(device.context(), source).build(["-cl-std=CL3.0"])
    for number, batch in enumerate(batches.values()):
        _run(device, cl.Kernel(program, f"batch{number}"), batch)
    return list(batches.values())


def _kernel(name: str, batch: Batch) -> str:
    parameters = [f"global const {type_} *p{letter}" for type_, letter in zip(batch.arguments, "abc", strict=False)]
    lines = [f"kernel void {name}({', '.join(parameters)}, global uchar *out, const ulong lanes) {{"]
    lines.append("    const size_t i = get_global_id(0);")
    for type_, letter in zip(batch.arguments, "abc", strict=False):
        lines.append(f"    const {type_} {letter} = p{letter}[i];")
    offset = 0
    for case in batch.cases:
        store = f"((global {case.result} *)(out + {offset} * lanes))[i] = r;"
        lines.append(f"    {{ {case.result} r; {case.code} {store} }}")
        offset += _room(case.result)
    return "\n".join([*lines, "}"])


def _room(type_: Type) -> int:
    return max(type_.size, 16)  # keeps all results aligned


def _run(device: Device, kernel: Any, batch: Batch) -> None:
    lanes = batch.values[0].shape[-1]
    context, queue, flags = device.context(), device.queue(), cl.mem_flags
    buffers = [
        cl.Buffer(context, flags.READ_ONLY | flags.COPY_HOST_PTR, hostbuf=_stored(value, type_))
        for value, type_ in zip(batch.values, batch.arguments, strict=True)
    ]
    out = np.zeros(lanes * sum(_room(case.result) for case in batch.cases), np.uint8)
    output = cl.Buffer(context, flags.READ_WRITE | flags.COPY_HOST_PTR, hostbuf=out)
    kernel(queue, (lanes,), None, *buffers, output, np.uint64(lanes))
    cl.enqueue_copy(queue, out, output)
    offset = 0
    for case in batch.cases:
        room = lanes * case.result.size
        batch.results[case] = _loaded(out[offset * lanes : offset * lanes + room], case.result)
        offset += _room(case.result)


def _stored(value: Value, type_: Type) -> Value:
    if not isinstance(type_, Vector):
        return np.ascontiguousarray(value)
    room = np.zeros((value.shape[-1], type_.size // type_.element.size), value.dtype)
    room[:, : type_.width] = value.T
    return room


def _loaded(bytes_: Value, type_: Type) -> Value:
    values = bytes_.view(dtype_of(type_))
    if not isinstance(type_, Vector):
        return values
    return np.ascontiguousarray(values.reshape(-1, type_.size // type_.element.size)[:, : type_.width].T)


# --- values


def some_values(arguments: Sequence[Type]) -> tuple[Value, ...]:
    """Returns all combinations of edge cases, and random numbers of all magnitudes and of a moderate one."""
    random = np.random.default_rng(len(arguments))
    elements = [element_of(type_).numpy for type_ in arguments]
    edges = [_edges(dtype, few=len(arguments) > 1) for dtype in elements]
    if len(arguments) == 3:
        edges = [part[:: len(part) // 13 or 1] for part in edges]
    combined = [np.array(part) for part in zip(*itertools.product(*edges), strict=True)]
    columns = [
        np.concatenate([np.array(part, dtype), _random(dtype, random)])
        for part, dtype in zip(combined, elements, strict=True)
    ]
    width = max(map(width_of, arguments))
    lanes = -(-len(columns[0]) // width)
    columns = [np.resize(column, lanes * width) for column in columns]
    return tuple(
        np.ascontiguousarray(column[: lanes * width_of(type_)].reshape(lanes, -1).T)
        if isinstance(type_, Vector)
        else column[:lanes]
        for column, type_ in zip(columns, arguments, strict=True)
    )


def _edges(dtype: np.dtype[Any], few: bool) -> list[Any]:
    with np.errstate(all="ignore"):
        if dtype.kind == "f":
            info = np.finfo(dtype)
            sizes = [*(FEW_FLOATS if few else FLOAT_EDGES), info.max, info.smallest_normal, info.smallest_subnormal]
            near = [] if few else [np.nextafter(dtype.type(1), dtype.type(side)) for side in (0, 2)]
            positive = np.array([*sizes, *near], dtype)
            return list(np.concatenate([positive, -positive]))
    info = np.iinfo(dtype)  # type: ignore[assignment]
    bits = 8 * dtype.itemsize
    numbers = {0, 1, 2, 3, 5, 7, bits - 1, bits, bits + 1, 2 ** (bits // 2), 2 ** (bits // 2) - 1}
    numbers |= {info.max, info.max - 1, info.max // 2, info.max // 2 + 1, info.min, info.min + 1}
    numbers |= {-number for number in numbers} if dtype.kind == "i" else set()
    return [dtype.type(number) for number in sorted(numbers) if info.min <= number <= info.max]


def _random(dtype: np.dtype[Any], random: np.random.Generator) -> Value:
    with np.errstate(all="ignore"):
        if dtype.kind == "f":
            info = np.finfo(dtype)
            signs = random.choice([-1.0, 1.0], LANES)
            anywhere = np.exp2(random.uniform(info.minexp - 2, info.maxexp, LANES)) * signs
            moderate = np.exp2(random.uniform(-4, 4, LANES)) * signs
            return np.concatenate([anywhere, moderate, random.uniform(-1, 1, LANES)]).astype(dtype)
        bits = random.integers(0, 2**64, LANES, dtype=np.uint64)
        anywhere = bits.view(np.int64) >> random.integers(0, 64, LANES)
        return np.concatenate([bits, anywhere.view(np.uint64), random.integers(0, 20, LANES).view(np.uint64)]).astype(
            dtype
        )

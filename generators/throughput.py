"""Arithmetic throughput: independent accumulators in registers, one operation each (journal version of the slides)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import loopy as lp
import numpy as np
import pymbolic
from numpy.typing import NDArray

from perfmodel.collection.kernel_generator import KernelGenerator
from perfmodel.collection.tags import choice, size, work_group
from perfmodel.kernels.kernel import Kernel

Values = NDArray[Any]


@dataclass(frozen=True)
class Operation:
    """One operation, as Loopy writes it and as numpy does.

    Attributes:
        text: of `acc`, an accumulator; `next`, the one behind it; `x`, a loaded number; and `CONSTANTS`.
        step: the same of numpy's arrays: acc, next, x.
        start: of accumulator number `j`.
        is_ring: whether behind the last accumulator comes the first, rather than a number that stays.
    """

    text: str
    step: Callable[[Values, Values, Values], Values]
    start: str
    is_ring: bool = True


# What the compiler must not know, or it folds operations away. x is in [0.5, 1.5), or whole and from 1 to 7.
CONSTANTS = {
    "f": {"one": "x / x", "quarter": "one * 0.25"},
    "i": {"zero": "x >> 3", "one": "zero + 1"},
}


def _real(text: str, step: Callable[[Values, Values, Values], Values]) -> Operation:
    return Operation(text, step, "x + {j} * quarter")


def _whole(
    text: str, step: Callable[[Values, Values, Values], Values], start: str = "x + {j} * one", is_ring: bool = True
) -> Operation:
    return Operation(text, step, start, is_ring)


def _erf(values: Values) -> Values:
    from scipy import special  # slow to import, and only verification needs it

    found: Values = special.erf(values)
    return found


# All are maps with a bounded orbit, or one that grows by x a round, so that no value overflows or becomes denormal,
# which some devices are slow at. What a compiler may reassociate, or what changes nothing when it is repeated, is done
# to two accumulators, both of which change. Functions that change nothing when repeated (abs, floor …) can't be had.
REAL = {
    "madd": _real("acc * quarter + x", lambda acc, _, x: acc * x.dtype.type(0.25) + x),
    "add": _real("acc + x", lambda acc, _, x: acc + x),
    "mul": _real("acc * one", lambda acc, _, x: acc),
    "div": _real("x / acc", lambda acc, _, x: x / acc),
    "min": _real("min(acc, next)", lambda acc, behind, x: np.minimum(acc, behind)),
    "max": _real("max(acc, next)", lambda acc, behind, x: np.maximum(acc, behind)),
    "pow": _real("acc ** quarter", lambda acc, _, x: acc ** x.dtype.type(0.25)),
    "sqrt": _real("sqrt(acc)", lambda acc, _, x: np.sqrt(acc)),
    "rsqrt": _real("rsqrt(acc)", lambda acc, _, x: 1 / np.sqrt(acc)),
    "exp": _real("exp(-acc)", lambda acc, _, x: np.exp(-acc)),
    # Repeated logarithms reach numbers that have none, wherever they start: an addition comes with each.
    "log": _real("log(acc + 3)", lambda acc, _, x: np.log(acc + x.dtype.type(3))),
    "log10": _real("log10(acc + 3)", lambda acc, _, x: np.log10(acc + x.dtype.type(3))),
    "sin": _real("sin(acc)", lambda acc, _, x: np.sin(acc)),
    "cos": _real("cos(acc)", lambda acc, _, x: np.cos(acc)),
    "atan": _real("atan(acc)", lambda acc, _, x: np.arctan(acc)),
    "tanh": _real("tanh(acc)", lambda acc, _, x: np.tanh(acc)),
    "erf": _real("erf(acc)", lambda acc, _, x: _erf(acc)),
}
# Sums are of zeros and products of ones, which only the compiler doesn't know: others would overflow. A divisor that
# stayed the same would be inverted once and for all, so quotients alternate between x and 1, and remainders are of 1,
# 2, 3 …, each divided by the next. Both are Loopy's, which rounds towards minus infinity, whatever that takes.
WHOLE = {
    "madd": _whole("acc * one + x", lambda acc, _, x: acc + x),
    "add": _whole("acc + next", lambda acc, behind, x: acc + behind, "({j} + 1) * zero"),
    "mul": _whole("acc * next", lambda acc, behind, x: acc * behind, "{j} * zero + one"),
    "div": _whole("x // acc", lambda acc, _, x: x // acc, "{j} * zero + x"),
    "mod": _whole("acc % next", lambda acc, behind, x: acc % behind, "({j} + 1) * one", is_ring=False),
    "shift": _whole("x >> acc", lambda acc, _, x: x >> acc, "{j} * zero + x"),
    "bitwise": _whole("acc | next", lambda acc, behind, x: acc | behind),
    "min": _whole("min(acc, next)", lambda acc, behind, x: np.minimum(acc, behind)),
    "max": _whole("max(acc, next)", lambda acc, behind, x: np.maximum(acc, behind)),
}
OPERATIONS = {"f": REAL, "i": WHOLE}
# One instruction on most devices. Others, unrolled by 8 as well, would not fit a GPU's instruction cache: an H200 then
# takes twice as long for an exponential of float64.
SIMPLE = ("madd", "add", "mul", "min", "max", "shift", "bitwise")


class Throughput(KernelGenerator):
    """Every work-item does m rounds of one operation on each of its accumulators."""

    name = "throughput"
    summary = "throughput of one arithmetic operation"
    source = "journal version of the 2018 slides, measurement kernels"
    limits = "operations that a dtype does not have, and with accumulators:1 or unroll:64 those on two accumulators"
    tags = (
        choice("dtype", "type of the operands", "float32", "float64", "int32", "int64"),
        choice("op", "operation (log and log10 come with an addition)", *(REAL | WHOLE)),
        choice(
            "accumulators",
            "independent values a work-item works on; one or few show latency",
            *("1", "2", "4", "8", "16", "32"),
            default="32",
        ),
        choice(
            "unroll",
            "rounds that the device's compiler is asked to unroll; auto is 8 for single instructions, 1 for others",
            *("auto", "1", "8", "64"),
        ),
        *work_group(256),
        size("n", "work-items", 2**18, 2**19, 2**20),
        size("m", "operations on each accumulator", 128, 256),
    )
    checks = (
        ("accumulators:8", "unroll:auto", "lsize_0:64", "n:64", "m:16"),
        ("dtype:float32,int32", "op:madd,min", "lsize_0:64", "n:128", "m:67"),
        ("dtype:float32", "op:madd", "accumulators:8", "unroll:64", "lsize_0:128,256,512", "n:512", "m:130"),
    )

    def program(self, variant: Mapping[str, str]) -> Any:
        dtype = np.dtype(variant["dtype"])
        operation = OPERATIONS[dtype.kind][variant["op"]]
        lsize, accumulators = int(variant["lsize_0"]), int(variant["accumulators"])
        slots = accumulators if operation.is_ring else accumulators + 1
        acc, j = pymbolic.var("acc"), pymbolic.var("j")
        # Not as text: Loopy's parser takes min and max for reductions.
        step = pymbolic.substitute(pymbolic.parse(operation.text), {"acc": acc[j], "next": acc[(j + 1) % slots]})
        constants = list(CONSTANTS[dtype.kind].items())
        known = ["x", *(name for name, _ in constants)]
        program = lp.make_kernel(
            [
                "{[i, k]: 0 <= i < n and 0 <= k < m}",
                f"{{[j, j0, j1]: 0 <= j, j1 < {accumulators} and 0 <= j0 < {slots}}}",
            ],
            [
                "<> x = a[i] {id=x, inames=i}",
                *(
                    f"<> {name} = {value} {{id={name}, inames=i, dep={':'.join(known[: place + 1])}}}"
                    for place, (name, value) in enumerate(constants)
                ),
                f"acc[j0] = {operation.start.format(j='j0')} {{id=start, inames=i:j0, dep={':'.join(known)}}}",
                lp.Assignment(
                    acc[j],
                    step,
                    id="step",
                    within_inames=frozenset("ikj"),
                    depends_on=frozenset({"start", *known}),
                ),
                "out[i] = sum(j1, acc[j1]) {inames=i, dep=step}",
            ],
            [
                lp.GlobalArg("a", dtype, shape="n"),
                lp.GlobalArg("out", dtype, shape="n", is_input=False),
                lp.TemporaryVariable("acc", dtype, shape=(slots,)),
                lp.ValueArg("n, m", np.int32),
            ],
            name=self.name,
            assumptions=f"n >= 1 and m >= 1 and n mod {lsize} = 0",
            lang_version=(2018, 2),
        )
        program = lp.split_iname(program, "i", lsize, outer_tag="g.0", inner_tag="l.0")
        # Loopy itself would take a minute to write out 32 accumulators 64 times.
        unroll = variant["unroll"].replace("auto", "8" if variant["op"] in SIMPLE else "1")
        program = lp.tag_inames(program, {"j": "unr", "j0": "unr", "j1": "unr", "k": f"unr_hint.{unroll}"})
        # Unasked, Loopy would make a loop of its own for every unrolled operation.
        return lp.prioritize_loops(program, "k,j")

    def multiples(self, variant: Mapping[str, str]) -> Mapping[str, int]:
        return {"n": int(variant["lsize_0"])}

    def fits(self, variant: Mapping[str, str], sizes: Mapping[str, int]) -> bool:
        operation = OPERATIONS[np.dtype(variant["dtype"]).kind].get(variant["op"])
        if operation is None or (variant["accumulators"] == "1" and "next" in operation.text):
            return False
        # In 64 rounds of sums of each other, compilers look for algebra for minutes.
        return variant["unroll"] != "64" or operation in REAL.values() or "next" not in operation.text

    def reference(self, kernel: Kernel, arrays: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
        x = arrays["a"]
        operation = OPERATIONS[x.dtype.kind][kernel.tags["op"]]
        accumulators = int(kernel.tags["accumulators"])
        constants = {"x": x, "zero": x.dtype.type(0), "one": x.dtype.type(1), "quarter": x.dtype.type(0.25)}
        acc = [
            np.broadcast_to(pymbolic.evaluate(pymbolic.parse(operation.start.format(j=j)), constants), x.shape)
            for j in range(accumulators + (not operation.is_ring))
        ]
        for _, j in np.ndindex(kernel.sizes["m"], accumulators):
            acc[j] = operation.step(acc[j], acc[(j + 1) % len(acc)], x)
        return {"out": np.sum(acc[:accumulators], axis=0)}

"""Few operations of one kind in straight lines, one line or several at once (Pöppl & Herz, "Basic Operations").

What a first operation costs differs from what the next ones do: most is hidden behind the load and the store, and
chains that wait for nothing but themselves overlap. So this counts from one operation, where `throughput` fills a loop.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfmodel.collection.kernel_generator import KernelGenerator
from perfmodel.collection.tags import choice, number, size, work_group
from perfmodel.kernels.arguments import C_TYPES, Array, Scalar
from perfmodel.kernels.kernel import Kernel
from perfmodel.kernels.opencl_program import OpenCLProgram

Values = NDArray[Any]


@dataclass(frozen=True)
class Operation:
    """One step of a chain, as OpenCL C writes it and as numpy does.

    Attributes:
        text: of t, the value so far; p, the one before it, at first y; and of the loaded x and y.
        step: the same of numpy's arrays: t, p, x, y.
        start: the first t, of what is loaded for the chain, one of `STARTS`.
        x, y: of another loaded number, the same for all chains.
    """

    text: str
    step: Callable[[Values, Values, Values, Values], Values]
    start: str = "{}"
    x: str = "{}"
    y: str = "{}"

    @property
    def constants(self) -> dict[str, str]:
        """Returns those of the constants x and y that the text needs."""
        needs = {"x": "{x}" in self.text, "y": "{y}" in self.text or "{p}" in self.text}
        return {name: text for name, text in (("x", self.x), ("y", self.y)) if needs[name]}


STARTS: dict[str, Callable[[Values], Values]] = {
    "{}": lambda z: z,
    "{} + 3": lambda z: z + z.dtype.type(3),
    "{} >> 3": lambda z: z >> 3,
    "({} >> 3) + 1": lambda z: (z >> 3) + z.dtype.type(1),
}

# No compiler may know a value, take two steps together, or see one that is undone by the next; and no value overflows
# or becomes denormal, for loaded numbers as perfmodel measures with: from 0.5 to 1.5, or whole and from 1 to 7.
REAL = {
    "add": Operation("{t} + {y}", lambda t, p, x, y: t + y),
    "mul": Operation("{t} * {y}", lambda t, p, x, y: t * y),
    "madd": Operation("{t} * {x} + {y}", lambda t, p, x, y: t * x + y),
    "div": Operation("{y} / {t}", lambda t, p, x, y: y / t),
    "sqrt": Operation("sqrt({t})", lambda t, p, x, y: np.sqrt(t)),
    "rsqrt": Operation("rsqrt({t})", lambda t, p, x, y: 1 / np.sqrt(t)),
    "exp": Operation("exp(-{t})", lambda t, p, x, y: np.exp(-t)),
    # Repeated logarithms reach numbers that have none.
    "log": Operation("log({t} + {y})", lambda t, p, x, y: np.log(t + y), y="{} + 3"),
    "sin": Operation("sin({t})", lambda t, p, x, y: np.sin(t)),
    "cos": Operation("cos({t})", lambda t, p, x, y: np.cos(t)),
}
# Sums of the same number would become a product, so each is of the two values before it: of zeros, which only the
# compiler doesn't know; products are of ones. What a quotient divides by is never 0, nor is what a remainder is of.
WHOLE = {
    "add": Operation("{t} + {p}", lambda t, p, x, y: t + p, start="{} >> 3", y="{} >> 3"),
    "mul": Operation("{t} * {p}", lambda t, p, x, y: t * p, start="({} >> 3) + 1", y="({} >> 3) + 1"),
    "madd": Operation("{t} * {x} + {y}", lambda t, p, x, y: t * x + y, x="({} >> 3) + 1", y="{} >> 3"),
    "div": Operation("{x} / {t}", lambda t, p, x, y: x // t, start="({} >> 3) + 1"),
    "mod": Operation("{x} % ({t} | 4)", lambda t, p, x, y: x % (t | t.dtype.type(4))),
}
OPERATIONS = {"f": REAL, "i": WHOLE, "u": WHOLE}
LONGEST_SUM = 40
"""Terms after which sums of the two numbers before, from 1 and 1, come near the end of 32 bits."""


class StraightOperations(KernelGenerator):
    """Each work-item does m operations, loads a number for each chain and one more, and stores the chains' sum."""

    name = "straight_operations"
    summary = "few operations of one kind for each element, without a loop"
    source = "Pöppl & Herz, Basic Operations"
    limits = "operations that a dtype does not have, and an m that is no multiple of the chains"
    tags = (
        choice("dtype", "type of the operands", "float32", "float64", "int32", "uint32"),
        choice("op", "operation (real log: and an addition; mod: and a bitwise or)", *(REAL | WHOLE)),
        number("m", "operations of a work-item, beside the sum of its chains", 1, 2, 4, 8, 16, 32, 64),
        number("chains", "as many operations don't wait for each other", 1, 2, 4),
        *work_group(256),
        size("n", "work-items", 2**18, 2**20, 2**22),
    )
    checks = (
        ("m:8", "chains:1,4", "lsize_0:64", "n:128"),
        ("dtype:float32,int32,uint32", "op:add,mul,div", "m:1,2,4,16,32,64", "chains:1,2", "lsize_0:64", "n:64"),
        ("op:madd", "m:8", "chains:4", "lsize_0:128,256,512", "n:512"),
    )

    def program(self, variant: Mapping[str, str]) -> Any:
        dtype, lsize = np.dtype(variant["dtype"]), int(variant["lsize_0"])
        m, chains = int(variant["m"]), int(variant["chains"])
        operation, kind = OPERATIONS[dtype.kind][variant["op"]], C_TYPES[dtype.name]
        constants = operation.constants
        lines = ["b = numbers[i]"] if constants else []
        lines += [f"{name} = {text.format('b')}" for name, text in constants.items()]
        for j in range(chains):
            place = f"{j} * n + i" if j else "i"
            lines.append(f"t{j}_0 = {operation.start.format(f'starts[{place}]')}")
        for k in range(1, m // chains + 1):
            for j in range(chains):
                before = f"t{j}_{k - 2}" if k > 1 else "y"
                lines.append(f"t{j}_{k} = {operation.text.format(t=f't{j}_{k - 1}', p=before, x='x', y='y')}")
        total = " + ".join(f"t{j}_{m // chains}" for j in range(chains))
        body = "\n    ".join(f"const {kind} {line};" for line in lines)
        source = f"""\
__kernel void {self.name}(__global const {kind} *starts, __global const {kind} *numbers, __global {kind} *out,
                                  const uint n)
{{
    const uint i = get_global_id(0);
    {body}
    out[i] = {total};
}}
"""
        return OpenCLProgram(
            source,
            self.name,
            "n",
            lsize,
            [
                Array("starts", dtype, f"{chains} * n"),
                Array("numbers", dtype, "n"),
                Array("out", dtype, "n", is_output=True),
                Scalar("n", "uint32"),
            ],
            assumptions=f"n % {lsize} == 0",
        )

    def multiples(self, variant: Mapping[str, str]) -> Mapping[str, int]:
        return {"n": int(variant["lsize_0"])}

    def fits(self, variant: Mapping[str, str], sizes: Mapping[str, int]) -> bool:
        has_op = variant["op"] in OPERATIONS[np.dtype(variant["dtype"]).kind]
        return has_op and int(variant["m"]) % int(variant["chains"]) == 0

    def inputs(self, kernel: Kernel, random: np.random.Generator) -> Mapping[str, NDArray[Any]]:
        """Returns inputs, whole numbers other than in measurements, where sums would be of zeros, and products of
        ones."""
        arrays = dict(super().inputs(kernel, random))
        dtype = np.dtype(kernel.tags["dtype"])
        steps = int(kernel.tags["m"]) // int(kernel.tags["chains"])
        if dtype.kind == "f" or (kernel.tags["op"] == "add" and steps > LONGEST_SUM):
            return arrays
        if dtype.kind == "i" and kernel.tags["op"] in ("mul", "madd"):
            # Factors of 1 and -1.
            return {name: random.choice([5, -9], values.size).astype(dtype) for name, values in arrays.items()}
        # Sums of zeros and ones, and no start above the x that it divides.
        low, high = {"add": (0, 16), "div": (50, 200)}.get(kernel.tags["op"], (1, 1000))
        return {name: random.integers(low, high, values.size).astype(dtype) for name, values in arrays.items()}

    def reference(self, kernel: Kernel, arrays: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
        b, m, chains = arrays["numbers"], int(kernel.tags["m"]), int(kernel.tags["chains"])
        operation = OPERATIONS[b.dtype.kind][kernel.tags["op"]]
        x, y = (STARTS[text](b) for text in (operation.x, operation.y))
        total = np.zeros_like(b)
        for z in arrays["starts"].reshape(chains, -1):
            t, p = STARTS[operation.start](z), y
            for _ in range(m // chains):
                t, p = operation.step(t, p, x, y), t
            total += t
        return {"out": total}

"""Accesses of one class, few or many of them, in straight lines (Pöppl & Herz, "Memory accesses").

The classes are those of neighbouring work-items, see `perfmodel.counting.access_classes`, beside some that a model may
tell apart: ``row_interval`` re-reads a window too, but all of a row of work-items one element of it, which is a class
of ``constant``; ``same`` are accesses to one element of a work-item's own, through expressions of which only the caller
knows that they are equal; ``strided`` leaves gaps. ``identical`` is where two neighbours share an element.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfmodel.collection.kernel_generator import KernelGenerator
from perfmodel.collection.tags import choice, number, size, work_group
from perfmodel.kernels.arguments import C_TYPES, Array, Scalar
from perfmodel.kernels.kernel import Kernel
from perfmodel.kernels.opencl_program import OpenCLProgram

ROW = 1024
"""Work-items of a row where the launch has two axes."""
INTERVAL = 128
APART = 32
"""Elements between the constant addresses, so that each is in a cache line of its own."""
SCATTER = 2654435761
"""The distance of a work-item's accesses that are spread over a window: an odd number near 2^32 by the golden ratio."""
PRIVATE = 16
"""Elements of a work-item's private array, a power of two."""

# The index of access number k, of item i of n, in row x; zero is an argument that is 0.
PLACES = {
    "continuous": "{k} * n + i",
    "constant": "{constant}",
    "interval": "(i + {spread}) & 127",
    "row_interval": "(x + {spread}) & 127",
    "same": "i + {k} * zero",
    "identical": "{k} * n + i / 2",
    "strided": "({k} * n + i) * STRIDE",
    # Neighbours differ by 4 i + 3, and i of a power of two have as many indices.
    "complex": "(i * (2 * i + 1) + {scattered}u) % WINDOW",
}
# Where stores differ, so that no two work-items have one element.
STORED = {"complex": "{k} * WINDOW + (i * (2 * i + 1)) % WINDOW"}
EXTENTS = {
    "continuous": "{m} * n",
    "constant": f"{{m}} * {APART}",
    "interval": f"{INTERVAL}",
    "row_interval": f"{INTERVAL}",
    "same": "n",
    "identical": "{m} * n",
    "strided": "{m} * n * {stride}",
    "complex": "{window}",
    "local": "n",
    "private": "n",
}
WITHOUT_WINDOW = tuple(access for access in EXTENTS if access != "complex")
STORED_EXTENTS = {"complex": "{m} * {window}"}
NO_STORES = ("constant", "interval", "row_interval", "identical")


class AccessClasses(KernelGenerator):
    """Each work-item loads m numbers and stores their sum, or stores m whole numbers, from 1 on."""

    name = "access_classes"
    summary = "global accesses of one class, local or private ones, without a loop"
    source = "Pöppl & Herz, Memory accesses"
    limits = (
        "stores of several work-items to one element, rows in one axis, a stride or window for accesses that have "
        "none, a window of stores that is smaller than n or no power of two, and m beyond 16 of private stores"
    )
    tags = (
        choice("dtype", "element type", "float32", "float64"),
        choice("access", "class, or the memory if it is another one than global", *EXTENTS),
        choice("direction", "load (summed, the sum stored) or store", "load", "store"),
        number("m", "accesses of a work-item", 1, 2, 4, 8, 16),
        choice("axes", f"of the launch; with 2, rows of {ROW} work-items", "1", "2"),
        number("stride", "elements from one work-item to the next, of access:strided", 8, 2, 32),
        number("window", "elements that access:complex is spread over", 2**22, 2**10, 2**14, 2**18),
        *work_group(256),
        size("n", "work-items", 2**18, 2**20, 2**22),
    )
    checks = (
        (f"access:{','.join(WITHOUT_WINDOW)}", "m:1,4,16", "stride:8", "lsize_0:64", "n:2048"),
        ("access:complex", "m:1,4,16", "stride:8", "window:1024,16384,262144", "n:1024", "lsize_0:64"),
        ("access:complex", "direction:load", "dtype:float32", "m:8", "window:4194304", "n:2048", "lsize_0:64"),
        ("access:strided", "m:2", "stride:2,8,32", "n:1024", "lsize_0:128,256,512"),
    )

    def program(self, variant: Mapping[str, str]) -> Any:
        kind, lsize, m = C_TYPES[variant["dtype"]], int(variant["lsize_0"]), int(variant["m"])
        is_2d, is_load = variant["axes"] == "2", variant["direction"] == "load"
        access = variant["access"]
        lines = [
            f"const uint x = get_global_id(1), i = x * {ROW} + get_global_id(0)"
            if is_2d
            else "const uint i = get_global_id(0)"
        ]
        lines += _loads(access, m, kind, lsize) if is_load else _stores(access, m, kind, lsize)
        body = "\n    ".join(f"{line};" for line in lines)
        extent = (EXTENTS if is_load else EXTENTS | STORED_EXTENTS)[access].format(**variant)
        arrays = [Array("a", variant["dtype"], extent)] if is_load else []
        declared = [f"__global const {kind} *a"] if is_load else []
        source = f"""\
#define STRIDE {variant["stride"]}
#define WINDOW {variant["window"]}

__kernel void {self.name}({", ".join([*declared, f"__global {kind} *out"])}, const uint n, const uint zero)
{{
    {body}
}}
"""
        return OpenCLProgram(
            source,
            self.name,
            (ROW, f"n // {ROW}") if is_2d else "n",
            (lsize, 1) if is_2d else lsize,
            [
                *arrays,
                Array("out", variant["dtype"], "n" if is_load else extent, is_output=True),
                Scalar("n", "uint32"),
                Scalar("zero", "uint32"),
            ],
            assumptions=f"n % {ROW if is_2d else lsize} == 0",
        )

    def multiples(self, variant: Mapping[str, str]) -> Mapping[str, int]:
        return {"n": ROW if variant["axes"] == "2" else int(variant["lsize_0"])}

    def arguments(self, variant: Mapping[str, str], sizes: Mapping[str, int]) -> Mapping[str, float]:
        return {**sizes, "zero": 0}

    def fits(self, variant: Mapping[str, str], sizes: Mapping[str, int]) -> bool:
        access, window = variant["access"], int(variant["window"])
        if variant["axes"] == "2" and ROW % int(variant["lsize_0"]):
            return False
        if access == "row_interval" and variant["axes"] == "1":
            return False
        if variant["direction"] == "store":
            if access in NO_STORES or (access == "private" and int(variant["m"]) > PRIVATE):
                return False
            if access == "complex" and (window & (window - 1) or window < sizes.get("n", 1)):
                return False
        defaults = {tag.name: tag.default[0] for tag in self.tags}
        return (access == "strided" or variant["stride"] == defaults["stride"]) and (
            access == "complex" or variant["window"] == defaults["window"]
        )

    def reference(self, kernel: Kernel, arrays: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
        access, m, n = kernel.tags["access"], int(kernel.tags["m"]), kernel.sizes["n"]
        lsize, out = int(kernel.tags["lsize_0"]), arrays["out"].copy()
        i = np.arange(n)
        if kernel.tags["direction"] == "load":
            if access == "private":
                return {"out": m * arrays["a"] + sum(5 * k % PRIVATE for k in range(m))}
            if access == "local":
                places = [i // lsize * lsize + (i + _spread(k)) % lsize for k in range(m)]
            else:
                places = [_places(kernel, i, k) for k in range(m)]
            return {"out": np.sum([arrays["a"][place] for place in places], axis=0)}
        if access in ("local", "private"):
            return {"out": np.full(n, m if access == "local" else 1, out.dtype)}
        for k in range(m):
            out[_places(kernel, i, k)] = k + 1
        return {"out": out}


def _spread(k: int) -> int:
    """Returns how far access number k moves within a window."""
    return 29 * k


def _place(access: str, k: int, is_load: bool) -> str:
    places = PLACES if is_load else PLACES | STORED
    text = places[access].format(k=k, constant=k * APART, spread=_spread(k), scattered=k * SCATTER % 2**32)
    return text.replace("0 * n + ", "").replace(" + 0 * zero", "").replace("0 * WINDOW + ", "") if k == 0 else text


def _loads(access: str, m: int, kind: str, lsize: int) -> list[str]:
    if access == "local":
        before = [
            f"__local {kind} tile[{lsize}]",
            "const uint l = get_local_id(0)",
            "tile[l] = a[i]",
            "barrier(CLK_LOCAL_MEM_FENCE)",
        ]
        return [*before, "out[i] = " + " + ".join(f"tile[(l + {_spread(k)}) % {lsize}]" for k in range(m))]
    if access == "private":
        before = [f"{kind} own[{PRIVATE}]", f"const {kind} number = a[i]"]
        before += [f"own[{j}] = number + {j}" for j in range(PRIVATE)]
        return [*before, "out[i] = " + " + ".join(f"own[({5 * k} + zero) & {PRIVATE - 1}]" for k in range(m))]
    return ["out[i] = " + " + ".join(f"a[{_place(access, k, True)}]" for k in range(m))]


def _stores(access: str, m: int, kind: str, lsize: int) -> list[str]:
    if access == "local":
        # Each work-item gives on what the one beside it stored last; that it stores to one element, no compiler knows.
        before = [f"__local {kind} tile[{lsize}]", "const uint l = get_local_id(0)"]
        before += [f"tile[l + {k} * zero] = {k + 1}" for k in range(m)]
        return [*before, "barrier(CLK_LOCAL_MEM_FENCE)", f"out[i] = tile[(l + 1) % {lsize}]"]
    if access == "private":
        before = [f"{kind} own[{PRIVATE}]", *(f"own[({k} + zero) & {PRIVATE - 1}] = {k + 1}" for k in range(m))]
        return [*before, f"out[i] = own[zero & {PRIVATE - 1}]"]
    return [f"out[{_place(access, k, False)}] = {k + 1}" for k in range(m)]


def _places(kernel: Kernel, i: NDArray[np.int64], k: int) -> NDArray[np.int64]:
    """Returns the addresses that work-items access in global memory, in numpy."""
    n, stride, window = kernel.sizes["n"], int(kernel.tags["stride"]), int(kernel.tags["window"])
    scattered = i * (2 * i + 1) % 2**32
    found = {
        "continuous": k * n + i,
        "constant": np.full_like(i, k * APART),
        "interval": (i + _spread(k)) % INTERVAL,
        "row_interval": (i // ROW + _spread(k)) % INTERVAL,
        "same": i,
        "identical": k * n + i // 2,
        "strided": (k * n + i) * stride,
        "complex": (scattered + k * SCATTER) % 2**32 % window,
    }
    if kernel.tags["direction"] == "store":
        found["complex"] = k * window + scattered % window
    return found[kernel.tags["access"]]

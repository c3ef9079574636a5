"""Measures one global memory access pattern by itself (journal version of the slides, measurement kernels).

What an access costs depends on its strides across work-items, work-groups and the iterations of a loop, and on how
often each element is accessed (2018 slides, "Memory access pattern variants"). These are a matrix multiplication's, of
its left and right matrix, first with tiles in local memory and then without:

    lstride_0:1 lstride_1:n gstride_0:0    gstride_1:tile loopstride:tile_0
    lstride_0:1 lstride_1:n gstride_0:tile gstride_1:0    loopstride:tile_1
    lstride_0:0 lstride_1:n gstride_0:0    gstride_1:tile loopstride:1
    lstride_0:1 lstride_1:0 gstride_0:tile gstride_1:0    loopstride:n
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import loopy as lp
import numpy as np
import pymbolic
from numpy.typing import NDArray

from perfmodel.collection.kernel_generator import KernelGenerator
from perfmodel.collection.tags import DTYPE, Tag, choice, number, size, work_group
from perfmodel.kernels.kernel import Kernel

STRIDE_TAGS = ("lstride_0", "lstride_1", "gstride_0", "gstride_1", "loopstride")


def _stride(name: str, summary: str, *values: str, default: str) -> Tag:
    pattern = r"[1-9]\d{0,8}|([2-9]|[1-9]\d{1,4})n"
    return Tag(name, summary, (default,), values, is_open=True, pattern=pattern, others="other k and kn, as 5 and 5n")


class AccessPattern(KernelGenerator):
    """n x n work-items, or n where groups have one row, access arrays at an index that is affine in the loop variables.

    Without a stride that is a multiple of n, the arrays have one axis. With one they have rows of n elements, which the
    other strides together must not leave. Where groups have one row, nothing moves along axis 1.
    """

    name = "access_pattern"
    summary = "one global memory access pattern, of any strides"
    source = "2018 slides, Memory access pattern variants; their journal version, measurement kernels"
    limits = (
        "m:1 with a loop and more iterations without one, strides that leave a row of n, loops that stay at one element"
    )
    tags = (
        DTYPE,
        choice(
            "direction", "loads (summed, the sum stored), stores, or a load and a store each", "load", "store", "copy"
        ),
        number("arrays", "arrays that are accessed, all at the same index", 1, 2, 4),
        _stride(
            "lstride_0",
            "elements from one work-item to the next along axis 0; n as in n x n work-items",
            *("0", "1", "2", "3", "4", "8", "16", "32", "64", "n"),
            default="1",
        ),
        _stride("lstride_1", "the same along axis 1", "0", "1", "16", "64", "n", default="n"),
        _stride(
            "gstride_0",
            "elements from one work-group to the next along axis 0; tile is what a group's local strides come to there",
            *("0", "1", "16", "256", "n", "16n", "tile"),
            default="tile",
        ),
        _stride("gstride_1", "the same along axis 1", "0", "1", "16", "256", "n", "16n", "tile", default="tile"),
        _stride(
            "loopstride",
            "elements from one iteration of the loop to the next; 0 is no loop, tile_0, tile_1 the tile along an axis",
            *("0", "1", "16", "256", "n", "16n", "tile_0", "tile_1"),
            default="0",
        ),
        *work_group(16, 16),
        size("n", "work-items along each axis", 2048, 4096, 8192),
        size("m", "iterations of the loop; 1 is for no loop", 1, 16, 64),
    )
    checks = tuple(
        (*(f"{name}:{value}" for name, value in zip(STRIDE_TAGS, strides.split(), strict=True)), *others)
        for strides, *others in (
            # A matrix multiplication's, see above.
            ("1 n 0,tile tile tile_0", "lsize_0:16", "lsize_1:8", "n:32,48", "m:2"),
            ("1 n tile 0 tile_1", "dtype:float32", "lsize_0:8", "lsize_1:16", "n:48", "m:3"),
            ("0 n 0 tile 1", "dtype:float32", "n:16,48", "m:16"),
            ("1 0 tile 0 n", "dtype:float32", "n:16,48", "m:16"),
            # The matrices, vectors and results of discontinuous Galerkin differentiation.
            ("64 0 0,tile 0 1,16", "dtype:float32", "n:32", "m:16"),
            ("0,1 64 0,16 tile 1,16", "dtype:float32", "n:32", "m:4"),
            # Each element once, gaps, and a group's elements by all groups.
            ("1,3 n 16 16n 0", "arrays:1,2", "n:16,48", "m:1"),
            ("0,2,16 0 0,tile 0 0,n,256", "dtype:float32", "arrays:2", "lsize_0:32", "lsize_1:1", "n:64", "m:1,3"),
            # Every other listed stride, and some that are not.
            ("3,4,9 16 1 256 1", "dtype:float32", "lsizes:2x2", "n:4", "m:2"),
            ("8,32 1 256 1,16,100 5", "dtype:float32", "lsizes:2x2", "n:4", "m:2"),
            ("n 0 n,16n n 16n,7n", "dtype:float32", "arrays:4", "lsizes:8x4", "n:16", "m:2"),
            ("1 n tile tile 0", "dtype:float32", "lsizes:8x32,32x8", "n:32", "m:1"),
        )
    )

    def program(self, variant: Mapping[str, str]) -> Any:
        dtype = np.dtype(variant["dtype"])
        pattern = _Pattern(variant)
        place, shape = pattern.index, pattern.shape
        numbers = range(int(variant["arrays"]))
        arrays: list[Any] = []
        instructions: list[str] = []
        if variant["direction"] != "store":
            arrays += [lp.GlobalArg(f"a{k}", dtype, shape=shape) for k in numbers]
        if variant["direction"] == "load":
            value = " + ".join(f"a{k}[{place}]" for k in numbers)
            if pattern.has_loop:
                value = f"sum(k, {value})"
            instructions += [f"out[{pattern.item}] = {value} {{inames={':'.join(pattern.grid)}}}"]
            arrays.append(lp.GlobalArg("out", dtype, shape=("n",) * len(pattern.sides), is_input=False))
        else:
            inames = ":".join(axis.iname for axis in pattern.axes)
            for k in numbers:
                value = "1" if variant["direction"] == "store" else f"a{k}[{place}]"
                before = f", dep=step{k - 1}" if k else ""
                instructions.append(f"b{k}[{place}] = {value} {{id=step{k}, inames={inames}{before}}}")
            arrays += [lp.GlobalArg(f"b{k}", dtype, shape=shape, is_input=False) for k in numbers]
        program = lp.make_kernel(
            pattern.domain,
            instructions,
            [*arrays, lp.ValueArg("n, m" if pattern.has_loop else "n", np.int32)],
            name=self.name,
            assumptions=pattern.assumptions,
            # Work-items may share an element; what they store there is the same for all.
            silenced_warnings=["write_race(step*)"],
            lang_version=(2018, 2),
        )
        return lp.tag_inames(program, {iname: f"{iname[0]}.{iname[1]}" for iname in pattern.grid})

    def multiples(self, variant: Mapping[str, str]) -> Mapping[str, int]:
        return {"n": math.lcm(*_Pattern(variant).sides)}

    def fits(self, variant: Mapping[str, str], sizes: Mapping[str, int]) -> bool:
        pattern = _Pattern(variant)
        return pattern.has_loop == (sizes["m"] > 1) and pattern.is_possible(sizes)

    def arguments(self, variant: Mapping[str, str], sizes: Mapping[str, int]) -> Mapping[str, float]:
        return sizes if _Pattern(variant).has_loop else {"n": sizes["n"]}

    def reference(self, kernel: Kernel, arrays: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
        pattern = _Pattern(kernel.tags)
        numbers = range(int(kernel.tags["arrays"]))
        places = pattern.elements(kernel.sizes)
        if kernel.tags["direction"] == "load":
            return {"out": np.sum([arrays[f"a{k}"][places].sum(axis=1) for k in numbers], axis=0)}
        results = {}
        for k in numbers:
            results[f"b{k}"] = arrays[f"b{k}"].copy()
            results[f"b{k}"][places] = 1 if kernel.tags["direction"] == "store" else arrays[f"a{k}"][places]
        return results


@dataclass(frozen=True)
class _Axis:
    """A loop variable of the kernel, and how an access moves along it.

    Attributes:
        turns: how many values it has, of n and m.
        rows, columns: from one value to the next; a row has n elements.
    """

    iname: str
    turns: str
    rows: int
    columns: int


class _Pattern:
    """The array index that the work-items of a variant access.

    Attributes:
        sides: of a work-group, without axis 1 where that has one row.
        axes: of the grid, in the order of an array of its work-items, and of the loop.
    """

    def __init__(self, variant: Mapping[str, str]) -> None:
        both = [int(variant[f"lsize_{axis}"]) for axis in (0, 1)]
        self.sides = both if both[1] > 1 else both[:1]
        local = [_rows_and_columns(variant[f"lstride_{axis}"]) for axis in (0, 1)]
        tiles = [(side * rows, side * columns) for side, (rows, columns) in zip(both, local, strict=True)]
        self.axes = []
        for axis, side in reversed(list(enumerate(self.sides))):
            group = variant[f"gstride_{axis}"]
            between = tiles[axis] if group == "tile" else _rows_and_columns(group)
            self.axes += [_Axis(f"g{axis}", f"n // {side}", *between), _Axis(f"l{axis}", str(side), *local[axis])]
        self.grid = [axis.iname for axis in self.axes]
        loop = variant["loopstride"]
        self.has_loop = loop != "0"
        if self.has_loop:
            step = tiles[int(loop[-1])] if loop.startswith("tile") else _rows_and_columns(loop)
            self.axes.append(_Axis("k", "m", *step))

    @property
    def item(self) -> str:
        """Returns the work-item's index in an array of all work-items."""
        return ", ".join(f"{side}*g{axis} + l{axis}" for axis, side in reversed(list(enumerate(self.sides))))

    @property
    def index(self) -> str:
        rows = _sum((axis.rows, axis.iname) for axis in self.axes)
        columns = _sum((axis.columns, axis.iname) for axis in self.axes)
        return f"{rows}, {columns}" if self.has_rows else columns

    @property
    def shape(self) -> str:
        rows, columns = self.last
        return f"{rows} + 1, n" if self.has_rows else f"{columns} + 1"

    @property
    def has_rows(self) -> bool:
        return any(axis.rows for axis in self.axes)

    @property
    def last(self) -> tuple[str, str]:
        """Returns the last row and column accessed, of n and m."""
        rows = _sum((axis.rows, f"({axis.turns} - 1)") for axis in self.axes)
        return rows, _sum((axis.columns, f"({axis.turns} - 1)") for axis in self.axes)

    @property
    def domain(self) -> str:
        bounds = " and ".join(f"0 <= {axis.iname} < {_floors(axis.turns)}" for axis in self.axes)
        return f"{{[{', '.join(axis.iname for axis in self.axes)}]: {bounds}}}"

    @property
    def assumptions(self) -> str:
        conditions = ["n >= 1", *(f"n mod {side} = 0" for side in self.sides)]
        conditions += ["m >= 1"] if self.has_loop else []
        conditions += [f"{_floors(self.last[1])} < n"] if self.has_rows else []
        return " and ".join(conditions)

    def is_possible(self, sizes: Mapping[str, int]) -> bool:
        """Returns False where a row is left, and where every iteration accesses the same, which a compiler would do
        once."""
        stays = not self.has_rows or self._value(self.last[1], sizes) < sizes["n"]
        return stays and (not self.has_loop or self.axes[-1].rows + self.axes[-1].columns > 0)

    def elements(self, sizes: Mapping[str, int]) -> NDArray[np.int64]:
        """Returns the elements of the flat array that are accessed, by work-item and iteration."""
        counts = [self._value(axis.turns, sizes) for axis in self.axes]
        found = np.zeros(counts, np.int64)
        for place, axis in enumerate(self.axes):
            steps = (axis.rows * sizes["n"] + axis.columns) * np.arange(counts[place])
            found += steps.reshape(-1, *(1 for _ in counts[place + 1 :]))
        return found.reshape(-1, sizes.get("m", 1) if self.has_loop else 1)

    def _value(self, text: str, sizes: Mapping[str, int]) -> int:
        return int(pymbolic.evaluate(pymbolic.parse(text), sizes))


def _rows_and_columns(stride: str) -> tuple[int, int]:
    return (int(stride[:-1] or 1), 0) if stride.endswith("n") else (0, int(stride))


def _sum(terms: Iterable[tuple[int, str]]) -> str:
    return " + ".join(term if factor == 1 else f"{factor}*{term}" for factor, term in terms if factor) or "0"


def _floors(text: str) -> str:
    """Returns Loopy's whole quotients in isl's terms."""
    return re.sub(r"n // (\d+)", r"floor(n/\1)", text)

"""Matrix transposition, with a tile in local memory or with strides on one side (2016, section 4.1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import loopy as lp
import numpy as np
from numpy.typing import NDArray

from perfmodel.collection.kernel_generator import KernelGenerator
from perfmodel.collection.tags import DTYPE, GROUPS_FIT, assumed_multiples, choice, size, work_group
from perfmodel.kernels.kernel import Kernel


class Transpose(KernelGenerator):
    """b[i, j] = a[j, i], one work-item an element.

    Of the tiled kind, a work-group writes a part of b shaped as itself, and reads the part of a that is its mirror
    image: lsize_0 rows of lsize_1 elements. If it is not square, some work-items read nothing or several elements.
    """

    name = "transpose"
    summary = "matrix transposition, with a tile in local memory or strided reads or writes"
    source = "2016, section 4.1, transpose"
    limits = "padding:1 without tiles, and tiles of one row or column"
    tags = (
        DTYPE,
        choice(
            "access",
            "stride-1 reads and writes by way of a tile, or one of them strided",
            "tiled",
            "strided_reads",
            "strided_writes",
        ),
        choice("padding", "elements between the rows of a tile, against bank conflicts", "0", "1"),
        *work_group(16, 16),
        GROUPS_FIT,
        size("n", "rows and columns", 1024, 2048, 4096, 8192),
    )
    checks = (
        ("groups_fit:True", "lsizes:16x12,12x16", "n:48,96"),
        ("groups_fit:False", "lsizes:16x12,8x32", "n:1,7,75"),
        ("groups_fit:*", "dtype:float32", "lsizes:8x16,16x32,32x8", "n:32,33"),
    )

    def program(self, variant: Mapping[str, str]) -> Any:
        dtype = np.dtype(variant["dtype"])
        width, height = int(variant["lsize_0"]), int(variant["lsize_1"])
        multiples = assumed_multiples(variant, "n", width, height)
        program = lp.make_kernel(
            "{[i, j]: 0 <= i, j < n}",
            "b[i, j] = a[j, i]",
            [
                lp.GlobalArg("a", dtype, shape="n, n"),
                lp.GlobalArg("b", dtype, shape="n, n", is_input=False),
                lp.ValueArg("n", np.int32),
            ],
            name=self.name,
            assumptions=f"n >= 1{multiples}",
            lang_version=(2018, 2),
        )
        row, column = ("j", "i") if variant["access"] == "strided_writes" else ("i", "j")
        program = lp.split_iname(program, row, height, outer_tag="g.1", inner_tag="l.1")
        program = lp.split_iname(program, column, width, outer_tag="g.0", inner_tag="l.0")
        if variant["access"] == "tiled":
            program = lp.add_prefetch(
                program,
                "a",
                ["j_inner", "i_inner"],
                fetch_outer_inames="i_outer,j_outer",
                temporary_name="tile",
                default_tag="l.auto",
            )
            program = _padded(program, "tile", int(variant["padding"]))
        return program

    def fits(self, variant: Mapping[str, str], sizes: Mapping[str, int]) -> bool:
        if variant["access"] == "tiled":
            return min(int(variant["lsize_0"]), int(variant["lsize_1"])) > 1
        return variant["padding"] == "0"

    def reference(self, kernel: Kernel, arrays: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
        n = kernel.sizes["n"]
        return {"b": arrays["a"].reshape(n, n).T.ravel()}


def _padded(program: Any, name: str, padding: int) -> Any:
    """Returns the program with unused elements after each row of a local array."""
    kernel = program.default_entrypoint
    array = kernel.temporary_variables[name]
    rows, columns = array.shape
    pitch = columns + padding
    padded = lp.TemporaryVariable(
        name,
        array.dtype,
        shape=array.shape,
        storage_shape=(rows, pitch),
        strides=(pitch, 1),
        address_space=array.address_space,
    )
    return program.with_kernel(kernel.copy(temporary_variables={**kernel.temporary_variables, name: padded}))

"""Products of matrices by kernels of `tests.kernels.triton.sources`, in the types of tensor cores."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.kernels.triton.case import (
    CASES,
    RANDOM,
    Case,
    Narrow,
    Values,
    floats,
    halves,
    narrow,
    zeros,
)


def product(
    title: str,
    a: Any,
    b: Any,
    c: Any,
    type_: str = "",
    target: str = "sm_90",
    tolerance: float = 1e-3,
    blocks: tuple[int, int, int] = (64, 64, 32),
    precision: str = "tf32",
    activation: str = "",
    accumulator: str = "float32",
    transposed: str = "",
    **options: int,
) -> None:
    """Adds a product of matrices; `transposed` says which of them lie column by column."""
    left, right = (each.values if isinstance(each, Narrow) else each for each in (a, b))
    (m, k), n = left.shape, right.shape[1]

    def strides(which: str, rows: int, columns: int) -> tuple[int, int]:
        return (1, rows) if which in transposed else (columns, 1)

    def laid(which: str, matrix: Any) -> Any:
        if which not in transposed:
            return matrix
        if isinstance(matrix, Narrow):
            return Narrow(matrix.type, np.ascontiguousarray(matrix.bits.T))
        return np.ascontiguousarray(matrix.T)

    def wanted() -> dict[str, Values]:
        whole = accumulator != "float32"
        found = left.astype("int64" if whole else "float64") @ right.astype("int64" if whole else "float64")
        if activation:
            found = np.where(found >= 0, found, 0.01 * found)
        return {"c": found}

    arguments = {"a": laid("a", a), "b": laid("b", b), "c": c, "M": m, "N": n, "K": k}
    for name, pair in (("a", strides("a", m, k)), ("b", strides("b", k, n)), ("c", (n, 1))):
        arguments |= dict(zip((f"stride_{name}m", f"stride_{name}n"), pair, strict=True))
    renamed = {"stride_an": "stride_ak", "stride_bm": "stride_bk"}
    arguments = {renamed.get(name, name): value for name, value in arguments.items()}
    bm, bn, bk = blocks
    constants = {"BM": bm, "BN": bn, "BK": bk, "GROUP": 2, "PRECISION": precision, **options}
    functions = {"ACCUMULATOR": f"tl.{accumulator}", "ACTIVATION": activation or "None"}
    grid = (-(-m // bm) * -(-n // bn),)
    CASES[title] = Case(
        function="matmul",
        grid=grid,
        arguments=arguments,
        constants=constants,
        wanted=wanted,
        tolerance=tolerance,
        type=type_,
        target=target,
        functions=functions,
    )


product("matmul fp16", halves(100, 96), halves(96, 72), zeros(100, 72, dtype="float16"), tolerance=1e-2)
product("matmul fp16 leaky", halves(64, 64), halves(64, 64), zeros(64, 64), activation="leaky")
product("matmul fp16 nt", halves(128, 64), halves(64, 128), zeros(128, 128), blocks=(128, 128, 64), transposed="b")
product("matmul fp16 tn", halves(64, 96), halves(96, 64), zeros(64, 64), transposed="a", num_stages=2)
product("matmul fp16 8 warps", halves(128, 64), halves(64, 256), zeros(128, 256), blocks=(128, 256, 64), num_warps=8)
product(
    "matmul bf16",
    narrow("bfloat16", 64, 80),
    narrow("bfloat16", 80, 64),
    zeros(64, 64, dtype="uint16"),
    "bfloat16",
    tolerance=3e-2,
)
product("matmul tf32", floats(64, 64), floats(64, 64), zeros(64, 64), tolerance=2e-2)
product(
    "matmul ieee", floats(64, 48), floats(48, 64), zeros(64, 64), precision="ieee", blocks=(32, 32, 16), tolerance=1e-4
)
product("matmul tf32x3", floats(64, 32), floats(32, 64), zeros(64, 64), precision="tf32x3", tolerance=1e-3)
product(
    "matmul fp8",
    narrow("float8_e4m3fn", 64, 128),
    narrow("float8_e4m3fn", 128, 64),
    zeros(64, 64),
    blocks=(64, 64, 64),
    transposed="b",
    tolerance=2e-2,
)
product(
    "matmul e5m2",
    narrow("float8_e5m2", 64, 64),
    narrow("float8_e5m2", 64, 64),
    zeros(64, 64),
    blocks=(64, 64, 64),
    transposed="b",
    tolerance=2e-2,
)
product(
    "matmul int8",
    RANDOM.integers(-99, 99, (64, 96)).astype("int8"),
    RANDOM.integers(-99, 99, (96, 64)).astype("int8"),
    zeros(64, 64, dtype="int32"),
    accumulator="int32",
    tolerance=0,
)
product("matmul fp16 sm_80", halves(64, 96), halves(96, 64), zeros(64, 64), target="sm_80")
product("matmul bf16 sm_80", narrow("bfloat16", 64, 64), narrow("bfloat16", 64, 64), zeros(64, 64), target="sm_80")
product("matmul tf32 sm_80", floats(64, 64), floats(64, 64), zeros(64, 64), target="sm_80", tolerance=2e-2)
product(
    "matmul int8 sm_80",
    RANDOM.integers(-99, 99, (64, 64)).astype("int8"),
    RANDOM.integers(-99, 99, (64, 64)).astype("int8"),
    zeros(64, 64, dtype="int32"),
    accumulator="int32",
    target="sm_80",
    tolerance=0,
)
product(
    "matmul fp8 sm_89",
    narrow("float8_e4m3fn", 64, 64),
    narrow("float8_e4m3fn", 64, 64),
    zeros(64, 64),
    target="sm_89",
    tolerance=2e-2,
)

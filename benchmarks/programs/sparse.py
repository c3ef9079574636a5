"""Holds products with sparse matrices, and steps of sparse solvers."""

from __future__ import annotations

import numpy as np

from benchmarks.programs.program import Array, Arrays, Group, Launch, Random, Rng, Zeros, up

GROUP = Group("sparse", "sparse.cl")
TRIPLE = np.dtype([("row", "i4"), ("col", "i4"), ("value", "i4")], align=True)


def pattern(rng: Rng, rows: int, columns: int, most: int) -> tuple[Array, Array]:
    """Returns row pointers and columns of a matrix whose rows have 1 to `most` entries."""
    pointers = np.zeros(rows + 1, np.int32)
    np.cumsum(rng.integers(1, most + 1, rows), out=pointers[1:])
    return pointers, rng.integers(0, columns, pointers[-1], np.int32)


def sums(pointers: Array, products: Array) -> Array:
    """Returns the sum of each row's products; no row is empty."""
    return np.asarray(np.add.reduceat(products.astype(np.float64), pointers[:-1]))


def csr(rng: Rng, n: int, most: int, dtype: str) -> Launch:
    pointers, columns = pattern(rng, n, n, most)
    return Launch(
        (up(n, 64),),
        (64,),
        {
            "nrows": np.int32(n),
            "row_ptr": pointers,
            "col_idx": columns,
            "vals": Random(dtype, len(columns), -1, 1),
            "x": Random(dtype, n, -1, 1),
            "y": Zeros(dtype, n),
        },
        lambda a: {"y": sums(pointers, a["vals"] * a["x"][columns])},
    )


@GROUP.case(cpu={"n": 3001}, gpu={"n": 500009})
def csr_scalar(rng: Rng, n: int) -> Launch:
    return csr(rng, n, 30, "float32")


@GROUP.case(cpu={"n": 1503}, gpu={"n": 200003}, kernel="csr_scalar", options=("-DT=double",))
def csr_scalar_double(rng: Rng, n: int) -> Launch:
    return csr(rng, n, 60, "float64")


@GROUP.case(cpu={"n": 777}, gpu={"n": 100003})
def csr_vector(rng: Rng, n: int) -> Launch:
    pointers, columns = pattern(rng, n, n, 150)
    return Launch(
        (up(32 * n, 128),),
        (128,),
        {
            "row_ptr": pointers,
            "col_idx": columns,
            "vals": Random("float32", len(columns), -1, 1),
            "x": Random("float32", n, -1, 1),
            "y": Zeros("float32", n),
            "nrows": np.int32(n),
        },
        lambda a: {"y": sums(pointers, a["vals"] * a["x"][columns])},
    )


@GROUP.case(cpu={"n": 1001, "width": 9}, gpu={"n": 700001, "width": 12})
def ell_spmv(rng: Rng, n: int, width: int) -> Launch:
    near = np.arange(n, dtype=np.int32) + rng.integers(-500, 500, (width, n), np.int32)
    lengths = rng.integers(1, width + 1, n)
    columns = np.where(np.arange(width)[:, None] < lengths, np.clip(near, 0, n - 1), np.int32(-1))

    def reference(a: Arrays) -> Arrays:
        return {"y": (np.where(columns < 0, 0, a["x"][columns]) * a["vals"].reshape(width, n)).sum(0)}

    return Launch(
        (up(n, 128),),
        (128,),
        {
            "cols": columns.reshape(-1),
            "vals": Random("float64", n * width, -1, 1),
            "x": Random("float64", n, -1, 1),
            "y": Zeros("float64", n),
            "n": np.int32(n),
            "width": np.int32(width),
        },
        reference,
        tolerance=1e-10,
    )


@GROUP.case(cpu={"n": 1000, "nnz": 20011, "items": 512}, gpu={"n": 300000, "nnz": 4000037, "items": 262144})
def coo_atomic(rng: Rng, n: int, nnz: int, items: int) -> Launch:
    entries = np.zeros(nnz, TRIPLE)
    entries["row"] = rng.integers(0, n, nnz)
    entries["col"] = rng.integers(0, n, nnz)
    entries["value"] = rng.integers(-9, 10, nnz)

    def reference(a: Arrays) -> Arrays:
        y = np.zeros(n, np.int32)
        np.add.at(y, entries["row"], entries["value"] * a["x"][entries["col"]])
        return {"y": y}

    return Launch(
        (items,),
        (128,),
        {"entries": entries, "nnz": np.int32(nnz), "x": Random("int32", n, -50, 50), "y": Zeros("int32", n)},
        reference,
    )


@GROUP.case(cpu={"n": 500, "nnz": 9001}, gpu={"n": 200000, "nnz": 3000001})
def coo_float_cas(rng: Rng, n: int, nnz: int) -> Launch:
    rows = np.sort(rng.integers(0, n, nnz, np.int32))
    columns = rng.integers(0, n, nnz, np.int32)

    def reference(a: Arrays) -> Arrays:
        return {"y": np.bincount(rows, a["vals"].astype(np.float64) * a["x"][columns], n)}

    return Launch(
        (up(nnz, 256),),
        (256,),
        {
            "nnz": np.int32(nnz),
            "rows": rows,
            "cols": columns,
            "vals": Random("float32", nnz),
            "x": Random("float32", n),
            "y": Zeros("float32", n),
        },
        reference,
    )


@GROUP.case(cpu={"rows": 301}, gpu={"rows": 200003})
def bsr_4x4(rng: Rng, rows: int) -> Launch:
    pointers, columns = pattern(rng, rows, rows, 12)

    def reference(a: Arrays) -> Arrays:
        products = np.einsum("bij,bj->bi", a["blocks"].reshape(-1, 4, 4), a["x"].reshape(-1, 4)[columns])
        return {"y": np.add.reduceat(products, pointers[:-1])}

    return Launch(
        (up(4 * rows, 64),),
        (64,),
        {
            "block_ptr": pointers,
            "block_col": columns,
            "blocks": Random("float32", 16 * len(columns), -1, 1),
            "x": Random("float32", 4 * rows, -1, 1),
            "y": Zeros("float32", 4 * rows),
            "block_rows": np.int32(rows),
        },
        reference,
    )


@GROUP.case(cpu={"side": 40}, gpu={"side": 1400})
def jacobi_sweep(rng: Rng, side: int) -> Launch:
    n = side * side
    cell = np.arange(n)
    x, y = cell % side, cell // side
    steps = ((0, -1), (-1, 0), (0, 0), (1, 0), (0, 1))
    there = np.stack([(x + i >= 0) & (x + i < side) & (y + j >= 0) & (y + j < side) for i, j in steps], 1)
    neighbours = np.stack([cell + i + j * side for i, j in steps], 1)
    pointers = np.concatenate([[0], np.cumsum(there.sum(1))]).astype(np.int32)
    columns = neighbours[there].astype(np.int32)
    values = np.where(np.arange(5) == 2, 4, -1)[None].repeat(n, 0)[there].astype(np.float32)

    def reference(a: Arrays) -> Arrays:
        off = np.where(values < 0, values * a["x_old"][columns], 0)
        return {"x_new": 0.2 * a["x_old"] + 0.8 * (a["b"] - sums(pointers, off)) / 4}

    return Launch(
        (up(n, 128),),
        (128,),
        {
            "ptr": pointers,
            "idx": columns,
            "a": values,
            "b": Random("float32", n),
            "x_old": Random("float32", n),
            "x_new": Zeros("float32", n),
            "omega": np.float32(0.8),
            "n": np.int32(n),
        },
        reference,
    )


@GROUP.case(cpu={"n": 4000, "level": 1500}, gpu={"n": 1000000, "level": 600000})
def sptrsv_level(rng: Rng, n: int, level: int) -> Launch:
    """Rows below n - level are solved; the level's rows refer to them and to themselves."""
    pointers, _ = pattern(rng, n, n, 16)
    columns = rng.integers(0, n - level, pointers[-1], np.int32)
    columns[pointers[1:] - 1] = np.arange(n)
    rows = (n - level + rng.permutation(level)).astype(np.int32)
    values = 0.5 + rng.random(len(columns))

    def reference(a: Arrays) -> Arrays:
        products = values * a["x"][columns]
        products[pointers[1:] - 1] = 0
        x = a["x"].copy()
        x[rows] = ((a["rhs"] - sums(pointers, products)) / values[pointers[1:] - 1])[rows]
        return {"x": x}

    return Launch(
        (up(level, 64),),
        (64,),
        {
            "level_rows": rows,
            "begin": np.int32(0),
            "end": np.int32(level),
            "ptr": pointers,
            "idx": columns,
            "val": values,
            "rhs": Random("float64", n),
            "x": Random("float64", n),
        },
        reference,
        tolerance=1e-10,
    )


@GROUP.case(cpu={"n": 2001}, gpu={"n": 1000003})
def csr_count_above(rng: Rng, n: int) -> Launch:
    pointers, _ = pattern(rng, n, 1, 40)

    def reference(a: Arrays) -> Arrays:
        size = np.abs(a["val"])
        kept = size > a["threshold"]
        largest = np.maximum.reduceat(np.where(kept, size, 0), pointers[:-1])
        return {"kept": np.add.reduceat(kept.astype(np.uint32), pointers[:-1]), "largest": largest}

    return Launch(
        (up(n, 256),),
        (256,),
        {
            "ptr": pointers,
            "val": Random("float32", int(pointers[-1]), -1, 1),
            "threshold": np.float32(0.6),
            "kept": Zeros("uint32", n),
            "largest": Zeros("float32", n),
            "n": np.uint32(n),
        },
        reference,
    )

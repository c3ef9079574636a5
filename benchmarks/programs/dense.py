"""Holds products, factorisations and transposes of dense matrices."""

from __future__ import annotations

import numpy as np

from benchmarks.programs.program import Arrays, Group, Launch, Local, Random, Rng, Zeros, up

GROUP = Group("dense", "dense.cl")
INFO = np.dtype([("rows", "i4"), ("cols", "i4"), ("stride", "i4"), ("scale", "f4")], align=True)


@GROUP.case(cpu={"m": 70, "n": 93, "k": 101}, gpu={"m": 1500, "n": 1111, "k": 1300})
def gemm_naive(rng: Rng, m: int, n: int, k: int) -> Launch:
    return Launch(
        (up(n, 16), up(m, 16)),
        (16, 16),
        {
            "A": Random("float32", m * k, -1, 1),
            "B": Random("float32", k * n, -1, 1),
            "C": Zeros("float32", m * n),
            "m": np.int32(m),
            "n": np.int32(n),
            "k": np.int32(k),
        },
        lambda a: {"C": a["A"].reshape(m, k) @ a["B"].reshape(k, n)},
    )


@GROUP.case(cpu={"m": 65, "n": 50, "k": 77}, gpu={"m": 2001, "n": 2050, "k": 1999})
def gemm_tiled_edges(rng: Rng, m: int, n: int, k: int) -> Launch:
    def reference(a: Arrays) -> Arrays:
        return {"C": 1.5 * a["A"].reshape(m, k) @ a["B"].reshape(k, n) + 0.25 * a["C"].reshape(m, n)}

    return Launch(
        (up(n, 16), up(m, 16)),
        (16, 16),
        {
            "m": np.int32(m),
            "n": np.int32(n),
            "k": np.int32(k),
            "alpha": np.float32(1.5),
            "A": Random("float32", m * k, -1, 1),
            "B": Random("float32", k * n, -1, 1),
            "beta": np.float32(0.25),
            "C": Random("float32", m * n),
        },
        reference,
    )


@GROUP.case(cpu={"m": 61, "n": 40, "k": 55}, gpu={"m": 1021, "n": 1000, "k": 900})
def dgemm_four_rows(rng: Rng, m: int, n: int, k: int) -> Launch:
    return Launch(
        (up(-(-m // 4), 32), up(n, 4)),
        (32, 4),
        {
            "A": Random("float64", m * k, -1, 1),
            "B": Random("float64", k * n, -1, 1),
            "C": Zeros("float64", m * n),
            "m": np.uint32(m),
            "n": np.uint32(n),
            "k": np.uint32(k),
        },
        lambda a: {"C": (a["A"].reshape(k, m).T @ a["B"].reshape(n, k).T).T},
        tolerance=1e-12,
    )


@GROUP.case(cpu={"rows": 301, "cols": 211}, gpu={"rows": 20000, "cols": 3001})
def gemv_rows(rng: Rng, rows: int, cols: int) -> Launch:
    stride = up(cols, 32)
    return Launch(
        (up(rows, 128),),
        (128,),
        {
            "info": np.array((rows, cols, stride, 0.5), INFO)[()],
            "mat": Random("float32", rows * stride),
            "x": Random("float32", cols, -1, 1),
            "y": Zeros("float32", rows),
        },
        lambda a: {"y": 0.5 * a["mat"].reshape(rows, stride)[:, :cols] @ a["x"]},
    )


@GROUP.case(cpu={"rows": 301, "cols": 211}, gpu={"rows": 5000, "cols": 10007})
def gemv_transposed(rng: Rng, rows: int, cols: int) -> Launch:
    return Launch(
        (up(cols, 32), 8),
        (32, 8),
        {
            "rows": np.int32(rows),
            "cols": np.int32(cols),
            "a": Random("float32", rows * cols),
            "x": Random("float32", rows, -1, 1),
            "y": Zeros("float32", cols),
        },
        lambda a: {"y": a["x"] @ a["a"].reshape(rows, cols)},
    )


@GROUP.case(cpu={"n": 100, "k": 60}, gpu={"n": 2000, "k": 700})
def syrk_lower(rng: Rng, n: int, k: int) -> Launch:
    def reference(a: Arrays) -> Arrays:
        rows, c = a["a"].reshape(n, k), a["c"].reshape(n, n)
        return {"c": np.where(np.tri(n, dtype=bool), 0.5 * c + 2 * (rows @ rows.T), c)}

    return Launch(
        (up(n, 16), up(n, 16)),
        (16, 16),
        {
            "a": Random("float32", n * k, -1, 1),
            "c": Random("float32", n * n),
            "n": np.int32(n),
            "k": np.int32(k),
            "alpha": np.float32(2),
            "beta": np.float32(0.5),
        },
        reference,
    )


@GROUP.case(cpu={"n": 300, "rhs": 41, "step": 17}, gpu={"n": 4000, "rhs": 3001, "step": 100})
def trsm_step(rng: Rng, n: int, rhs: int, step: int) -> Launch:
    def reference(a: Arrays) -> Arrays:
        matrix, x = a["l"].reshape(n, n), a["x"].reshape(n, rhs).copy()
        x[step + 1 :] -= np.outer(matrix[step + 1 :, step], x[step] / matrix[step, step])
        return {"x": x}

    return Launch(
        (up(rhs, 64), up(n - step - 1, 2)),
        (64, 2),
        {
            "l": Random("float64", n * n, 1, 2),
            "x": Random("float64", n * rhs, -1, 1),
            "n": np.int32(n),
            "rhs": np.int32(rhs),
            "step": np.int32(step),
        },
        reference,
        tolerance=1e-12,
    )


@GROUP.case(cpu={"n": 45, "k": 11, "count": 30}, gpu={"n": 30, "k": 3, "count": 100000})
def lu_multipliers(rng: Rng, n: int, k: int, count: int) -> Launch:
    def reference(a: Arrays) -> Arrays:
        matrices = a["matrices"].reshape(count, n, n).copy()
        matrices[:, k + 1 :, k] /= matrices[:, k, k, None]
        return {"matrices": matrices}

    return Launch(
        (up(n - k - 1, 32), count),
        (32, 1),
        {"matrices": Random("float32", count * n * n, 1, 2), "n": np.int32(n), "k": np.int32(k)},
        reference,
    )


@GROUP.case(cpu={"n": 300, "k": 11}, gpu={"n": 6001, "k": 300})
def lu_update(rng: Rng, n: int, k: int) -> Launch:
    def reference(a: Arrays) -> Arrays:
        matrix = a["a"].reshape(n, n).copy()
        matrix[k + 1 :, k + 1 :] -= np.outer(matrix[k + 1 :, k], matrix[k, k + 1 :])
        return {"a": matrix}

    size = n - k - 1
    return Launch(
        (up(size, 32), up(size, 8)),
        (32, 8),
        {"a": Random("float32", n * n, 1, 2), "n": np.int32(n), "k": np.int32(k)},
        reference,
    )


@GROUP.case(cpu={"n": 23, "count": 9}, gpu={"n": 48, "count": 2000})
def cholesky_batch(rng: Rng, n: int, count: int) -> Launch:
    root = rng.random((count, n, n), np.float32) - np.float32(0.5)
    matrices = root @ root.transpose(0, 2, 1) + n * np.eye(n, dtype=np.float32)
    return Launch(
        (count * 64,),
        (64,),
        {"matrices": matrices.reshape(-1), "t": Local(4 * n * n), "n": np.int32(n)},
        lambda a: {"matrices": np.linalg.cholesky(a["matrices"].reshape(count, n, n))},
    )


@GROUP.case(cpu={"n": 150, "pairs": 40}, gpu={"n": 6000, "pairs": 1500})
def givens_rows(rng: Rng, n: int, pairs: int) -> Launch:
    angles = rng.random(pairs)
    rows = rng.permutation(n)[: 2 * pairs].astype(np.int32)
    turns = np.stack([np.cos(angles), np.sin(angles)], 1).astype(np.float32)

    def reference(a: Arrays) -> Arrays:
        matrix = a["a"].reshape(n, n).copy()
        upper, lower = rows.reshape(-1, 2).T
        c, s = turns[:, :1], turns[:, 1:]
        matrix[upper], matrix[lower] = c * matrix[upper] + s * matrix[lower], c * matrix[lower] - s * matrix[upper]
        return {"a": matrix}

    return Launch(
        (up(n, 64), up(pairs, 4)),
        (64, 4),
        {
            "a": Random("float32", n * n),
            "pairs": rows,
            "cs": turns.reshape(-1),
            "npairs": np.int32(pairs),
            "n": np.int32(n),
        },
        reference,
    )


@GROUP.case(cpu={"width": 333, "height": 190}, gpu={"width": 5003, "height": 7001})
def transpose_naive(rng: Rng, width: int, height: int) -> Launch:
    return Launch(
        (up(width, 16), up(height, 16)),
        (16, 16),
        {
            "in": Random("float32", width * height),
            "out": Zeros("float32", width * height),
            "width": np.int32(width),
            "height": np.int32(height),
        },
        lambda a: {"out": a["in"].reshape(height, width).T},
    )


@GROUP.case(cpu={"width": 130, "height": 171}, gpu={"width": 4100, "height": 3999})
def transpose_padded(rng: Rng, width: int, height: int) -> Launch:
    return Launch(
        (up(width, 16), up(height, 16)),
        (16, 16),
        {
            "in": Random("float64", width * height),
            "out": Zeros("float64", width * height),
            "width": np.int32(width),
            "height": np.int32(height),
        },
        lambda a: {"out": a["in"].reshape(height, width).T},
    )


@GROUP.case(cpu={"rows": 40, "cols": 333}, gpu={"rows": 8192, "cols": 5000})
def row_abs_max(rng: Rng, rows: int, cols: int) -> Launch:
    return Launch(
        (rows * 128,),
        (128,),
        {
            "a": Random("float32", rows * cols, -2, 1),
            "norms": Zeros("float32", rows),
            "cols": np.int32(cols),
            "best": Local(128 * 4),
        },
        lambda a: {"norms": np.abs(a["a"].reshape(rows, cols)).max(1)},
    )

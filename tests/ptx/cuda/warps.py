"""CUDA kernels whose threads exchange values in a warp, or by atomics."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.ptx.cuda.case import ID, Arrays, case, whole, zeros

# --- sub-groups, atomics

case(
    f"__global__ void votes(const int* x, int* z, unsigned* b) {{ {ID} int v = x[i] > 500; b[i] ="
    " __ballot_sync(~0u, v);"
    " z[i] = __any_sync(~0u, x[i] > 990) + 2 * __all_sync(~0u, x[i] > 5) + 4 * __shfl_xor_sync(~0u, v, 1)"
    " + 8 * __shfl_sync(~0u, v, 3) + 16 * __shfl_up_sync(~0u, v, 2, 8); }",
    2,
    64,
    {"x": whole(128), "z": zeros(128, dtype="int32"), "b": zeros(128, dtype="uint32")},
    lambda a: _votes(a["x"]),
)


def _votes(x: NDArray[Any]) -> Arrays:
    rows = x.reshape(-1, 32)
    v = (rows > 500).astype(int)
    lane = np.arange(32)
    up = np.where(lane % 8 >= 2, lane - 2, lane)
    ballot = (v << lane).sum(1).astype("uint32")
    z = (
        (rows > 990).any(1, keepdims=True)
        + 2 * (rows > 5).all(1, keepdims=True)
        + 4 * v[:, lane ^ 1]
        + 8 * v[:, 3:4]
        + 16 * v[:, up]
    )
    return {"z": z.ravel(), "b": np.repeat(ballot, 32)}


case(
    f"__global__ void atomics(const int* x, int* r, int* old, float* f, unsigned long long* w) {{ {ID} old[i] ="
    " atomicAdd(&r[0], 2);"
    " atomicMax(&r[1], x[i]); atomicMin(&r[2], x[i]); atomicOr(&r[3], x[i]); atomicXor(&r[4], x[i]);"
    " atomicAdd(f, 0.5f);"
    " atomicAdd(w, 1ull << 33); if (atomicCAS(&r[5], 0, i + 1) == 0) r[6] = i; atomicInc((unsigned*)&r[7], 9);"
    " atomicExch(&r[8], 4); }",
    2,
    64,
    {
        "x": whole(128),
        "r": np.array([0, 0, 5000, 0, 0, 0, 0, 0, 0], "int32"),
        "old": zeros(128, dtype="int32"),
        "f": zeros(1),
        "w": zeros(1, dtype="uint64"),
    },
    lambda a: {
        "r": np.array(
            [
                256,
                a["x"].max(),
                a["x"].min(),
                np.bitwise_or.reduce(a["x"]),
                np.bitwise_xor.reduce(a["x"]),
                1,
                0,
                128 % 10,
                4,
            ]
        ),
        "old": np.arange(128) * 2,
        "f": np.array([64.0]),
        "w": np.array([128 << 33], "uint64"),
    },
)
case(
    f"__global__ void reduced(const int* x, int* z) {{ {ID} z[i] = __reduce_add_sync(~0u, x[i]) +"
    " __reduce_max_sync(~0u, x[i])"
    " + __popc(__match_any_sync(~0u, x[i] & 3)); }",
    2,
    64,
    {"x": whole(128), "z": zeros(128, dtype="int32")},
    lambda a: {
        "z": np.concatenate(
            [
                row.sum() + row.max() + np.array([((row & 3) == (v & 3)).sum() for v in row])
                for row in a["x"].reshape(-1, 32)
            ]
        )
    },
)
case(
    f"__global__ void counted(const int* x, int* z) {{ {ID} z[i] = __syncthreads_count(x[i] > 500) +"
    " __syncthreads_or(x[i] > 998) * 1000"
    " + __syncthreads_and(x[i] >= 0) * 2000; }",
    2,
    64,
    {"x": whole(128), "z": zeros(128, dtype="int32")},
    lambda a: {
        "z": np.repeat([(row > 500).sum() + 1000 * (row > 998).any() + 2000 for row in a["x"].reshape(2, 64)], 64)
    },
)

"""CUDA kernels with shared memory, loops and branches, also those that data decide."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.ptx.cuda.case import ID, case, floats, whole, zeros

# --- shared memory

case(
    "__global__ void transpose(const float* x, float* z, int n) { __shared__ float t[16][17];"
    " int i = blockIdx.x * 16 + threadIdx.x, j = blockIdx.y * 16 + threadIdx.y; t[threadIdx.y][threadIdx.x] ="
    " x[j * n + i];"
    " __syncthreads(); i = blockIdx.y * 16 + threadIdx.x; j = blockIdx.x * 16 + threadIdx.y; z[j * n + i] ="
    " t[threadIdx.x][threadIdx.y]; }",
    (3, 3),
    (16, 16),
    {"x": floats(48, 48), "z": zeros(48, 48)},
    lambda a: {"z": a["x"].T},
    n=48,
)
MATMUL = """
__global__ void matmul(const float* a, const float* b, float* c, int n) {
  __shared__ float A[16][16], B[16][16];
  int x = threadIdx.x, y = threadIdx.y, i = blockIdx.y * 16 + y, j = blockIdx.x * 16 + x;
  float s = 0;
  for (int k = 0; k < n; k += 16) {
    A[y][x] = a[i * n + k + x]; B[y][x] = b[(k + y) * n + j]; __syncthreads();
    for (int q = 0; q < 16; q++) s += A[y][q] * B[q][x];
    __syncthreads(); }
  c[i * n + j] = s; }
"""
case(
    MATMUL,
    (4, 4),
    (16, 16),
    {"a": floats(64, 64), "b": floats(64, 64, seed=3), "c": zeros(64, 64)},
    lambda a: {"c": a["a"] @ a["b"]},
    name="matmul",
    n=64,
    tolerance=1e-5,
)
case(
    "extern __shared__ float part[];"
    "__global__ void tree_sum(const float* x, float* sums) { int t = threadIdx.x;"
    " part[t] = x[blockIdx.x * blockDim.x + t]; __syncthreads();"
    " for (int h = blockDim.x / 2; h > 0; h /= 2) { if (t < h) part[t] += part[t + h]; __syncthreads(); }"
    " if (t == 0) sums[blockIdx.x] = part[0]; }",
    5,
    128,
    {"x": floats(640), "sums": zeros(5)},
    lambda a: {"sums": a["x"].reshape(5, 128).sum(1)},
    name="tree_sum",
    shared=512,
    tolerance=1e-5,
)
case(
    "__global__ void warp_sum(const float* x, float* sum, int n) { float s = 0;"
    " for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) s += x[i];"
    " for (int d = 16; d; d /= 2) s += __shfl_down_sync(0xffffffff, s, d);"
    " if (threadIdx.x % 32 == 0) atomicAdd(sum, s); }",
    4,
    96,
    {"x": floats(5000), "sum": zeros(1)},
    lambda a: {"sum": a["x"].sum(keepdims=True)},
    n=5000,
    tolerance=1e-4,
)
case(
    "__global__ void histogram(const int* x, int* h, int n) { __shared__ int own[64];"
    " if (threadIdx.x < 64) own[threadIdx.x] = 0; __syncthreads();"
    f" {ID} if (i < n) atomicAdd(&own[x[i] & 63], 1); __syncthreads();"
    " if (threadIdx.x < 64) atomicAdd(&h[threadIdx.x], own[threadIdx.x]); }",
    5,
    256,
    {"x": whole(1200), "h": zeros(64, dtype="int32")},
    lambda a: {"h": np.bincount(a["x"] & 63, minlength=64)},
    n=1200,
)
case(
    "__global__ void scan(const int* x, int* z) { __shared__ int t[256]; int i = threadIdx.x; t[i] ="
    " x[blockIdx.x * 256 + i];"
    " __syncthreads(); for (int d = 1; d < 256; d *= 2) { int v = i >= d ? t[i - d] : 0; __syncthreads(); t[i] += v;"
    " __syncthreads(); } z[blockIdx.x * 256 + i] = t[i]; }",
    3,
    256,
    {"x": whole(768), "z": zeros(768, dtype="int32")},
    lambda a: {"z": a["x"].reshape(3, 256).cumsum(1).ravel()},
)
case(
    "__global__ void softmax(const float* x, float* z, int m) { __shared__ float t[128]; int i = threadIdx.x;"
    " const float* row = x + blockIdx.x * m; float high = -1e30f; for (int k = i; k < m; k += 128) high ="
    " fmaxf(high, row[k]);"
    " t[i] = high; __syncthreads(); for (int d = 64; d; d /= 2) { if (i < d) t[i] = fmaxf(t[i], t[i + d]);"
    " __syncthreads(); }"
    " high = t[0]; __syncthreads(); float s = 0; for (int k = i; k < m; k += 128) s += expf(row[k] - high); t[i] = s;"
    " __syncthreads(); for (int d = 64; d; d /= 2) { if (i < d) t[i] += t[i + d]; __syncthreads(); }"
    " s = 1 / t[0]; for (int k = i; k < m; k += 128) z[blockIdx.x * m + k] = expf(row[k] - high) * s; }",
    3,
    128,
    {"x": floats(3, 300), "z": zeros(3, 300)},
    lambda a: {"z": np.exp(a["x"]) / np.exp(a["x"]).sum(1, keepdims=True)},
    m=300,
    tolerance=1e-5,
)
case(
    "__global__ void sort_step(int* x, int j, int k) { int i = blockIdx.x * blockDim.x + threadIdx.x, o = i ^ j;"
    " if (o > i) { int a = x[i], b = x[o]; bool up = (i & k) == 0; if ((a > b) == up) { x[i] = b; x[o] = a; } } }",
    4,
    64,
    {"x": whole(256)},
    lambda a: {
        "x": (
            lambda x, i: np.where(
                ((i & 4) == 0) != (i & 8 != 0), np.minimum(x[i], x[i ^ 4]), np.maximum(x[i], x[i ^ 4])
            )
        )(a["x"], np.arange(256))
    },
    j=4,
    k=8,
)
case(
    "__global__ void bitonic(int* x) { __shared__ int s[256]; int i = threadIdx.x; s[i] = x[i + blockIdx.x *"
    " 256]; __syncthreads();"
    " for (int k = 2; k <= 256; k *= 2) for (int j = k / 2; j; j /= 2) { int o = i ^ j; if (o > i) { bool up ="
    " !(i & k);"
    " if ((s[i] > s[o]) == up) { int t = s[i]; s[i] = s[o]; s[o] = t; } } __syncthreads(); } x[i + blockIdx.x *"
    " 256] = s[i]; }",
    2,
    256,
    {"x": whole(512)},
    lambda a: {"x": np.sort(a["x"].reshape(2, 256), axis=1).ravel()},
)

# --- control flow

case(
    f"__global__ void collatz(const int* x, int* steps) {{ {ID} int v = x[i], s = 0;"
    " while (v != 1) { v = v % 2 ? 3 * v + 1 : v / 2; s++; } steps[i] = s; }",
    2,
    64,
    {"x": np.arange(1, 129, dtype="int32"), "steps": zeros(128, dtype="int32")},
    lambda a: {"steps": np.array([_collatz(v) for v in a["x"].tolist()])},
)


def _collatz(v: int) -> int:
    steps = 0
    while v != 1:
        v = 3 * v + 1 if v % 2 else v // 2
        steps += 1
    return steps


def _mandelbrot(n: int, most: int) -> NDArray[Any]:
    found = np.full((n, n), most, "int32")
    for j in range(n):
        for i in range(n):
            x, y = np.float32(i * 3.0 / n - 2), np.float32(j * 2.0 / n - 1)
            a = b = np.float32(0)
            for k in range(most):
                if a * a + b * b > 4:
                    found[j, i] = k
                    break
                a, b = a * a - b * b + x, 2 * a * b + y
    return found


case(
    "__global__ void mandelbrot(int* z, int n, int most) { int i = blockIdx.x * blockDim.x + threadIdx.x,"
    " j = blockIdx.y * blockDim.y + threadIdx.y; if (i >= n || j >= n) return; float x = (float)(i * 3.0 / n - 2),"
    " y = (float)(j * 2.0 / n - 1), a = 0, b = 0; int k = 0; for (; k < most; k++) { float p = __fmul_rn(a, a),"
    " q = __fmul_rn(b, b);"
    " if (__fadd_rn(p, q) > 4) break; float c = __fmul_rn(__fmul_rn(2, a), b); a = __fadd_rn(__fsub_rn(p, q),"
    " x); b = __fadd_rn(c, y); } z[j * n + i] = k; }",
    (3, 3),
    (8, 8),
    {"z": zeros(20, 20, dtype="int32")},
    lambda a: {"z": _mandelbrot(20, 40)},
    n=20,
    most=40,
)
case(
    f"__global__ void switched(const int* x, int* z) {{ {ID} int v = x[i]; switch (v % 7) {{ case 0: v += 1; break;"
    " case 1: v *= 2; case 2: v -= 3; break; case 3: return; case 4: v ^= 5; break; case 5: v = -v; break;"
    " default: v = 9; } z[i] = v; }",
    2,
    64,
    {"x": whole(128), "z": zeros(128, dtype="int32")},
    lambda a: {"z": np.array([(v + 1, v * 2 - 3, v - 3, 0, v ^ 5, -v, 9)[v % 7] for v in a["x"].tolist()])},
)
case(
    f"__global__ void nested(const int* x, int* z) {{ {ID} int s = 0; for (int a = 0; a < x[i] % 5; a++)"
    " for (int b = a; b < 6; b++) { if ((a + b) % 3 == 0) continue; if (b > x[i] % 9) break; s += a * b + 1; }"
    " z[i] = s; }",
    2,
    64,
    {"x": whole(128), "z": zeros(128, dtype="int32")},
    lambda a: {"z": np.array([_nested(v) for v in a["x"].tolist()])},
)


def _nested(v: int) -> int:
    s = 0
    for a in range(v % 5):
        for b in range(a, 6):
            if (a + b) % 3 == 0:
                continue
            if b > v % 9:
                break
            s += a * b + 1
    return s


case(
    f"__global__ void ternaries(const float* x, float* z) {{ {ID} float v = x[i]; z[i] = v > 1 ? (v > 1.25f ? v *"
    " 2 : v + 1) :"
    " fminf(fmaxf(v, 0.6f), 0.9f); }",
    2,
    64,
    {"x": floats(128), "z": zeros(128)},
    lambda a: {
        "z": np.where(
            a["x"] > 1,
            np.where(a["x"] > 1.25, a["x"] * 2, a["x"] + 1),
            np.clip(a["x"], np.float32(0.6), np.float32(0.9)),
        )
    },
)
case(
    "__global__ void early(const int* x, int* z, int n) { for (int i = threadIdx.x; i < n; i += 32) {"
    " if (x[i] < 0) return; z[i] = x[i] + 1; } }",
    1,
    32,
    {"x": whole(96, low=-20), "z": zeros(96, dtype="int32")},
    lambda a: {"z": np.where(np.minimum.accumulate(a["x"].reshape(3, 32), axis=0).ravel() < 0, 0, a["x"] + 1)},
    n=96,
)

# --- data decide where

case(
    f"__global__ void gather(const float* x, const int* at, float* z) {{ {ID} z[i] = x[at[i]]; }}",
    2,
    128,
    {"x": floats(1000), "at": whole(256), "z": zeros(256)},
    lambda a: {"z": a["x"][a["at"]]},
)
case(
    "__global__ void spmv(const int* rows, const int* columns, const float* values, const float* x, float* y,"
    " int n) {"
    f" {ID} if (i >= n) return; float s = 0; for (int k = rows[i]; k < rows[i + 1]; k++) s += values[k] *"
    " x[columns[k]]; y[i] = s; }",
    2,
    64,
    {
        "rows": np.r_[0, np.cumsum(whole(100, high=9))].astype("int32"),
        "columns": whole(1000, high=100),
        "values": floats(1000),
        "x": floats(100, seed=9),
        "y": zeros(100),
    },
    lambda a: {
        "y": np.array(
            [
                (a["values"][s:e] * a["x"][a["columns"][s:e]]).sum()
                for s, e in zip(a["rows"][:-1], a["rows"][1:], strict=True)
            ]
        )
    },
    n=100,
    tolerance=1e-5,
)
case(
    f"__global__ void find(const int* sorted, const int* keys, int* at, int n) {{ {ID} int low = 0, high = n;"
    " while (low < high) { int m = (low + high) / 2; if (sorted[m] < keys[i]) low = m + 1; else high = m; }"
    " at[i] = low; }",
    1,
    128,
    {"sorted": np.sort(whole(500)), "keys": whole(128, seed=8), "at": zeros(128, dtype="int32")},
    lambda a: {"at": np.searchsorted(a["sorted"], a["keys"])},
    n=500,
)

"""CUDA kernels of textbooks: sums, scans, sorts, matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.ptx.cuda.case import Arrays, case, floats, whole, zeros

# --- sums, scans, sorts

case(
    """__global__ void work_efficient_scan(const int *x, int *z) {
  __shared__ int s[256 + 8]; int t = threadIdx.x, a = 2 * t, b = 2 * t + 1, offset = 1;
  auto at = [](int i) { return i + (i >> 5); };
  s[at(a)] = x[blockIdx.x * 256 + a]; s[at(b)] = x[blockIdx.x * 256 + b];
  for (int d = 128; d > 0; d >>= 1) { __syncthreads();
    if (t < d) s[at(offset * (b + 1) - 1)] += s[at(offset * (a + 1) - 1)]; offset *= 2; }
  if (t == 0) s[at(255)] = 0;
  for (int d = 1; d < 256; d *= 2) { offset >>= 1; __syncthreads();
    if (t < d) { int i = at(offset * (a + 1) - 1), j = at(offset * (b + 1) - 1), v = s[i]; s[i] = s[j]; s[j] += v; } }
  __syncthreads(); z[blockIdx.x * 256 + a] = s[at(a)]; z[blockIdx.x * 256 + b] = s[at(b)]; }""",
    2,
    128,
    {"x": whole(512), "z": zeros(512, dtype="int32")},
    lambda a: {"z": (a["x"].reshape(2, 256).cumsum(1) - a["x"].reshape(2, 256)).ravel()},
)
case(
    """template <int BLOCK> __global__ void unrolled_sum(const double *x, double *sum, int n) {
  __shared__ double s[BLOCK]; int t = threadIdx.x; double own = 0;
  for (int i = blockIdx.x * BLOCK * 2 + t; i < n;
    i += BLOCK * 2 * gridDim.x) own += x[i] + (i + BLOCK < n ? x[i + BLOCK] : 0);
  s[t] = own; __syncthreads();
  if (BLOCK >= 256) { if (t < 128) s[t] += s[t + 128]; __syncthreads(); }
  if (BLOCK >= 128) { if (t < 64) s[t] += s[t + 64]; __syncthreads(); }
  if (t < 32) { double v = s[t] + s[t + 32]; for (int d = 16; d; d >>= 1) v += __shfl_down_sync(~0u, v, d);
    if (t == 0) atomicAdd(sum, v); } }""",
    3,
    256,
    {"x": floats(5000, dtype="float64"), "sum": zeros(1, dtype="float64")},
    lambda a: {"sum": a["x"].sum(keepdims=True)},
    name="unrolled_sum<256>",
    n=5000,
    tolerance=1e-12,
)
case(
    """__global__ void radix_pass(const unsigned *x, unsigned *z, int bit) {
  __shared__ int zeros_of[8]; int t = threadIdx.x, lane = t & 31, warp = t >> 5;
    unsigned v = x[t], one = v >> bit & 1;
  unsigned ballot = __ballot_sync(~0u, !one); if (lane == 0) zeros_of[warp] = __popc(ballot); __syncthreads();
  int before = 0, all = 0; for (int w = 0; w < 8; w++) { if (w < warp) before += zeros_of[w]; all += zeros_of[w]; }
  int rank = before + __popc(ballot & ((1u << lane) - 1)); z[one ? all + t - rank : rank] = v; }""",
    1,
    256,
    {"x": whole(256, dtype="uint32"), "z": zeros(256, dtype="uint32")},
    lambda a: {"z": a["x"][np.argsort(a["x"] >> 3 & 1, kind="stable")]},
    bit=3,
)
case(
    """__global__ void merge_path(const int *a, const int *b, int *z, int n, int m) {
  int d = blockIdx.x * blockDim.x + threadIdx.x; if (d >= n + m) return; int low = max(0, d - m), high = min(d, n);
  while (low < high) { int i = (low + high) / 2; if (a[i] <= b[d - 1 - i]) low = i + 1; else high = i; }
  int i = low, j = d - low; z[d] = j >= m || (i < n && a[i] <= b[j]) ? a[i] : b[j]; }""",
    3,
    64,
    {"a": np.sort(whole(90)), "b": np.sort(whole(70, seed=3)), "z": zeros(160, dtype="int32")},
    lambda a: {"z": np.sort(np.r_[a["a"], a["b"]])},
    n=90,
    m=70,
)
case(
    """__global__ void odd_even(int *x) { __shared__ int s[128]; int t = threadIdx.x; s[t] = x[t];
    s[t + 64] = x[t + 64]; __syncthreads();
  for (int k = 0; k < 128; k++) { int i = 2 * t + (k & 1); if (i + 1 < 128 && s[i] > s[i + 1]) { int v = s[i];
    s[i] = s[i + 1]; s[i + 1] = v; } __syncthreads(); }
  x[t] = s[t]; x[t + 64] = s[t + 64]; }""",
    1,
    64,
    {"x": whole(128)},
    lambda a: {"x": np.sort(a["x"])},
)

# --- matrices

case(
    """__global__ void register_tiles(const float *a, const float *b, float *c, int n) {
  __shared__ float A[8][33], B[8][32]; int x = threadIdx.x, y = threadIdx.y, t = y * 8 + x; float s[4][4] = {};
  for (int k = 0; k < n; k += 8) {
    for (int i = t; i < 256; i += 64) { A[i % 8][i / 8] = a[(blockIdx.y * 32 + i / 8) * n + k + i % 8];
    B[i / 32][i % 32] = b[(k + i / 32) * n + blockIdx.x * 32 + i % 32]; }
    __syncthreads();
#pragma unroll
    for (int q = 0; q < 8; q++) for (int i = 0; i < 4; i++) for (int j = 0; j < 4;
    j++) s[i][j] += A[q][y * 4 + i] * B[q][x * 4 + j];
    __syncthreads(); }
  for (int i = 0; i < 4; i++) for (int j = 0; j < 4;
    j++) c[(blockIdx.y * 32 + y * 4 + i) * n + blockIdx.x * 32 + x * 4 + j] = s[i][j]; }""",
    (2, 2),
    (8, 8),
    {"a": floats(64, 64), "b": floats(64, 64, seed=3), "c": zeros(64, 64)},
    lambda a: {"c": a["a"] @ a["b"]},
    n=64,
    tolerance=1e-5,
)
case(
    """__global__ void rows_by_warps(const int *starts, const int *columns, const float *values, const float *x,
    float *y, int n) {
  int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x & 31; if (row >= n) return; float s = 0;
  for (int k = starts[row] + lane; k < starts[row + 1]; k += 32) s += values[k] * __ldg(&x[columns[k]]);
  for (int d = 16; d; d >>= 1) s += __shfl_xor_sync(~0u, s, d); if (lane == 0) y[row] = s; }""",
    5,
    64,
    {
        "starts": np.r_[0, np.cumsum(whole(10, low=1, high=90))].astype("int32"),
        "columns": whole(1000, high=80),
        "values": floats(1000),
        "x": floats(80, seed=4),
        "y": zeros(10),
    },
    lambda a: {
        "y": np.array(
            [
                (a["values"][s:e].astype(float) * a["x"][a["columns"][s:e]]).sum()
                for s, e in zip(a["starts"][:-1], a["starts"][1:], strict=True)
            ]
        )
    },
    n=10,
    tolerance=1e-5,
)
case(
    """__global__ void padded_rows(const int *columns, const double *values, const double *x, double *y, int n,
    int most) {
  int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= n) return; double s = 0;
  for (int k = 0; k < most; k++) { int c = columns[k * n + i]; if (c >= 0) s += values[k * n + i] * x[c];
    } y[i] = s; }""",
    2,
    64,
    {
        "columns": whole(5, 100, low=-30, high=100),
        "values": floats(5, 100, dtype="float64"),
        "x": floats(100, seed=4, dtype="float64"),
        "y": zeros(100, dtype="float64"),
    },
    lambda a: {"y": np.where(a["columns"] >= 0, a["values"] * a["x"][np.maximum(a["columns"], 0)], 0).sum(0)},
    n=100,
    most=5,
    tolerance=1e-12,
)
case(
    """__global__ void cholesky(float *a) { __shared__ float s[16][17]; int x = threadIdx.x, y = threadIdx.y;
    float *own = a + blockIdx.x * 256;
  s[y][x] = own[y * 16 + x]; __syncthreads();
  for (int k = 0; k < 16; k++) { if (x == k && y == k) s[k][k] = sqrtf(s[k][k]); __syncthreads();
    if (x == k && y > k) s[y][k] /= s[k][k]; __syncthreads(); if (x > k && y >= x) s[y][x] -= s[y][k] * s[x][k];
    __syncthreads(); }
  own[y * 16 + x] = y >= x ? s[y][x] : 0; }""",
    2,
    (16, 16),
    {"a": np.stack([q @ q.T + 16 * np.eye(16) for q in floats(2, 16, 16)]).astype("float32")},
    lambda a: {"a": np.linalg.cholesky(a["a"].astype(float))},
    tolerance=1e-5,
)
case(
    """__global__ void thomas(const float *a, const float *b, const float *c, const float *d, float *x, float *w,
    int n, int m) {
  int s = blockIdx.x * blockDim.x + threadIdx.x; if (s >= m) return; float g = d[s] / b[s]; w[s] = c[s] / b[s];
    x[s] = g;
  for (int i = 1; i < n; i++) { float q = 1 / (b[i * m + s] - a[i * m + s] * w[(i - 1) * m + s]);
    w[i * m + s] = c[i * m + s] * q;
    g = (d[i * m + s] - a[i * m + s] * g) * q; x[i * m + s] = g; }
  for (int i = n - 2; i >= 0; i--) { g = x[i * m + s] - w[i * m + s] * g; x[i * m + s] = g; } }""",
    1,
    64,
    {
        "a": floats(12, 50),
        "b": floats(12, 50) + 4,
        "c": floats(12, 50, seed=3),
        "d": floats(12, 50, seed=4),
        "x": zeros(12, 50),
        "w": zeros(12, 50),
    },
    lambda a: {"x": _tridiagonal(a)},
    n=12,
    m=50,
    tolerance=1e-5,
)


def _tridiagonal(given: Arrays) -> NDArray[Any]:
    a, b, c, d = (given[name].astype(float) for name in "abcd")
    found = np.zeros_like(d)
    for s in range(d.shape[1]):
        matrix = np.diag(b[:, s]) + np.diag(a[1:, s], -1) + np.diag(c[:-1, s], 1)
        found[:, s] = np.linalg.solve(matrix, d[:, s])
    return found

"""CUDA kernels with templates, structs, constants, and what else the language has."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.ptx.cuda.case import ID, Arrays, case, floats, whole, zeros

# --- templates, structs, constants

case(
    f"template <int N, typename T> __global__ void scale(const T* x, T* z) {{ {ID} T s = 0;"
    " for (int k = 0; k < N; k++) s += x[i * N + k]; z[i] = s; }",
    2,
    64,
    {"x": floats(128, 6), "z": zeros(128)},
    lambda a: {"z": a["x"].sum(1)},
    name="scale<6, float>",
    tolerance=1e-6,
)
case(
    "template <typename T, typename F> __device__ T apply(T v, F f) { return f(v); }"
    f"template <typename T> __global__ void lambdas(T* x) {{ {ID} T c = 3; x[i] = apply(x[i], [=](T v) {{ return"
    " v * c + 1; }); }",
    2,
    64,
    {"x": floats(128, dtype="float64")},
    lambda a: {"x": a["x"] * 3 + 1},
    name="lambdas<double>",
)
case(
    "struct Point { float x, y; int tag; };"
    f"__global__ void points(const Point* p, float* z) {{ {ID} z[i] = p[i].x * p[i].y + p[i].tag; }}",
    1,
    64,
    {"p": np.stack([floats(64), floats(64, seed=4), np.arange(64, dtype="int32").view("float32")], 1), "z": zeros(64)},
    lambda a: {"z": a["p"][:, 0] * a["p"][:, 1] + np.arange(64, dtype="float32")},
    name="points",
)
case(
    "__constant__ float weights[5] = {1, 2, 3, 2, 1};"
    f"__global__ void smooth(const float* x, float* z, int n) {{ {ID} if (i < 2 || i >= n - 2) return; float s = 0;"
    " for (int k = -2; k <= 2; k++) s += weights[k + 2] * x[i + k]; z[i] = s; }",
    4,
    64,
    {"x": floats(250), "z": zeros(250)},
    lambda a: {"z": np.r_[0, 0, np.convolve(a["x"], [1, 2, 3, 2, 1], "valid"), 0, 0]},
    name="smooth",
    n=250,
)
case(
    f"__global__ void table(const int* x, float* z) {{ const float t[4] = {{1.5f, 2.5f, 4.5f, 8.5f}}; {ID} z[i] ="
    " t[x[i] & 3]; }",
    1,
    64,
    {"x": whole(64), "z": zeros(64)},
    lambda a: {"z": np.array([1.5, 2.5, 4.5, 8.5], "float32")[a["x"] & 3]},
)
case(
    f"__global__ void private_array(const int* x, int* z) {{ {ID} int own[8]; for (int k = 0; k < 8; k++) own[k]"
    " = x[i] + k * k;"
    " own[x[i] & 7] = 100; int s = 0; for (int k = 0; k < 8; k++) s += own[(k + x[i]) & 7] * k; z[i] = s; }",
    1,
    64,
    {"x": whole(64), "z": zeros(64, dtype="int32")},
    lambda a: {"z": np.array([_private(v) for v in a["x"].tolist()])},
)


def _private(v: int) -> int:
    own = [v + k * k for k in range(8)]
    own[v & 7] = 100
    return sum(own[(k + v) & 7] * k for k in range(8))


# --- what else the language has

case(
    "__device__ double add_to(double* at, double v) { unsigned long long* p = (unsigned long long*)at, old = *p,"
    " seen;"
    " do { seen = old; old = atomicCAS(p, seen, __double_as_longlong(v + __longlong_as_double(seen))); } while"
    " (seen != old);"
    " return __longlong_as_double(old); }"
    "__global__ void doubles_by_cas(const double* x, double* sum) { if (threadIdx.x % 32 == 0) add_to(sum,"
    " x[threadIdx.x]); }",
    1,
    256,
    {"x": floats(256, dtype="float64"), "sum": zeros(1, dtype="float64")},
    lambda a: {"sum": a["x"][::32].sum(keepdims=True)},
    name="doubles_by_cas",
    tolerance=1e-12,
)
case(
    f'__global__ void printing(int* x) {{ {ID} if (i == 3) printf("%d\\n", i); x[i] = i; }}',
    1,
    64,
    {"x": zeros(64, dtype="int32")},
    lambda a: {"x": np.arange(64)},
)
case(
    f"__global__ void fenced(volatile int* x, int* z) {{ {ID} x[i] = i; __threadfence(); z[i] = x[i] * 2; }}",
    1,
    64,
    {"x": zeros(64, dtype="int32"), "z": zeros(64, dtype="int32")},
    lambda a: {"x": np.arange(64), "z": np.arange(64) * 2},
)
case(
    "union Word { float f; unsigned u; unsigned char b[4]; };"
    f"__global__ void unions(const float* x, unsigned* z) {{ {ID} Word w; w.f = x[i]; w.b[0] ^= 255; z[i] = w.u; }}",
    1,
    64,
    {"x": floats(64), "z": zeros(64, dtype="uint32")},
    lambda a: {"z": a["x"].view("uint32") ^ 255},
    name="unions",
)
case(
    "template <int N> struct Power { static __device__ float of(float x) { return x * Power<N - 1>::of(x); } };"
    "template <> struct Power<0> { static __device__ float of(float) { return 1; } };"
    f"__global__ void powers(const float* x, float* z) {{ {ID} z[i] = Power<7>::of(x[i]); }}",
    1,
    64,
    {"x": floats(64), "z": zeros(64)},
    lambda a: {"z": a["x"] ** 7},
    name="powers",
    tolerance=1e-5,
)
case(
    "struct Complex { float re, im; __device__ Complex operator*(Complex o) const { return {re * o.re - im *"
    " o.im, re * o.im"
    " + im * o.re}; } };"
    f"__global__ void products(const Complex* x, Complex* z) {{ {ID} Complex p = x[i]; for (int k = 0; k < 3;"
    " k++) p = p * x[i]; z[i] = p; }",
    1,
    64,
    {"x": floats(64, 2), "z": zeros(64, 2)},
    lambda a: {
        "z": (lambda c: np.stack([(c**4).real, (c**4).imag], 1))(a["x"][:, 0].astype(complex) + 1j * a["x"][:, 1])
    },
    name="products",
    tolerance=1e-5,
)
case(
    "__global__ void three_axes(int* z, int nx, int ny) { int x = blockIdx.x * blockDim.x + threadIdx.x,"
    " y = blockIdx.y * blockDim.y + threadIdx.y, w = blockIdx.z * blockDim.z + threadIdx.z;"
    " z[(w * ny + y) * nx + x] = x + 100 * y + 10000 * w + gridDim.z; }",
    (2, 3, 2),
    (4, 2, 3),
    {"z": zeros(6, 6, 8, dtype="int32")},
    lambda a: {"z": np.arange(8) + 100 * np.arange(6)[:, None] + 10000 * np.arange(6)[:, None, None] + 2},
    nx=8,
    ny=6,
)
case(
    "__global__ void dots(const int* x, const int* y, int* z, unsigned long long* w) { int i = threadIdx.x;"
    " z[i] = __dp4a(x[i], y[i], 5) + __sad(x[i], y[i], 3) + __mulhi(x[i], y[i]) + __rhadd(x[i], y[i]);"
    " w[i] = __popcll((long long)x[i] << 20) + __clzll(x[i]) * 100 + __ffsll(x[i]) * 10000; }",
    1,
    64,
    {
        "x": whole(64, high=2**30),
        "y": whole(64, high=2**30, seed=4),
        "z": zeros(64, dtype="int32"),
        "w": zeros(64, dtype="uint64"),
    },
    lambda a: _dots(a["x"].tolist(), a["y"].tolist()),
)

case(
    "__global__ void dots_of_halves(const int* x, const int* y, int* z) { int i = threadIdx.x;"
    " z[i] = __dp2a_lo(x[i], y[i], 5) + 3 * __dp2a_hi(x[i], y[i], -7); }",
    1,
    64,
    {"x": whole(64, high=2**30), "y": whole(64, high=2**30, seed=4), "z": zeros(64, dtype="int32")},
    lambda a: {"z": _halves(a["x"], a["y"], 0) + 5 + 3 * (_halves(a["x"], a["y"], 2) - 7)},
)


def _halves(x: NDArray[np.int32], y: NDArray[np.int32], first: int) -> NDArray[np.int32]:
    """Returns the sums of products of both halves of each number with two of the bytes of others."""
    halves, bytes_ = x.view(np.int16).reshape(-1, 2), y.view(np.int8).reshape(-1, 4)[:, first : first + 2]
    return np.asarray((halves.astype(np.int32) * bytes_).sum(axis=1), np.int32)


def _dots(x: list[int], y: list[int]) -> Arrays:
    def signed(v: int, place: int) -> int:
        byte = v >> 8 * place & 255
        return byte - 256 if byte > 127 else byte

    z = [
        sum(signed(v, k) * signed(w, k) for k in range(4)) + 5 + abs(v - w) + 3 + (v * w >> 32) + (v + w + 1 >> 1)
        for v, w in zip(x, y, strict=True)
    ]
    bits = [v.bit_count() + (64 - v.bit_length()) * 100 + (v & -v).bit_length() * 10000 for v in x]
    return {"z": np.array(z).astype("int32"), "w": np.array(bits, "uint64")}


case(
    "__global__ void last_block(const float* x, float* sums, unsigned* done, float* total, int blocks) {"
    " __shared__ float s[64];"
    " __shared__ bool last; s[threadIdx.x] = x[blockIdx.x * 64 + threadIdx.x]; __syncthreads();"
    " for (int d = 32; d; d /= 2) { if (threadIdx.x < d) s[threadIdx.x] += s[threadIdx.x + d]; __syncthreads(); }"
    " if (threadIdx.x == 0) { sums[blockIdx.x] = s[0]; __threadfence(); last = atomicInc(done, blocks) == blocks"
    " - 1; }"
    " __syncthreads(); if (last && threadIdx.x == 0) { float t = 0; for (int b = 0; b < blocks; b++) t +="
    " sums[b]; *total = t; } }",
    6,
    64,
    {"x": floats(384), "sums": zeros(6), "done": zeros(1, dtype="uint32"), "total": zeros(1)},
    lambda a: {"total": a["x"].sum(keepdims=True), "done": np.array([6])},
    blocks=6,
    tolerance=1e-5,
)
case(
    "__global__ void segments(const int* x, int* z) { int lane = threadIdx.x & 31, v = x[threadIdx.x];"
    " for (int d = 1; d < 32; d *= 2) { int o = __shfl_up_sync(~0u, v, d); if (lane >= d) v += o; } __shared__"
    " int sums[8];"
    " if (lane == 31) sums[threadIdx.x / 32] = v; __syncthreads(); if (threadIdx.x < 8) { int w = sums[threadIdx.x];"
    " for (int d = 1; d < 8; d *= 2) { int o = __shfl_up_sync(0xff, w, d); if (threadIdx.x >= d) w += o; }"
    " sums[threadIdx.x] = w; }"
    " __syncthreads(); z[threadIdx.x] = v + (threadIdx.x >= 32 ? sums[threadIdx.x / 32 - 1] : 0); }",
    1,
    256,
    {"x": whole(256), "z": zeros(256, dtype="int32")},
    lambda a: {"z": a["x"].cumsum()},
)
case(
    "__global__ void life(const unsigned char* x, unsigned char* z, int n) { int i = blockIdx.x * blockDim.x +"
    " threadIdx.x,"
    " j = blockIdx.y * blockDim.y + threadIdx.y; if (i >= n || j >= n) return; int c = 0; for (int b = -1; b <="
    " 1; b++)"
    " for (int a = -1; a <= 1; a++) c += x[(j + b + n) % n * n + (i + a + n) % n]; bool on = x[j * n + i];"
    " z[j * n + i] = on ? (c == 3 || c == 4) : c == 3; }",
    (3, 3),
    (8, 8),
    {"x": whole(20, 20, high=2, dtype="uint8"), "z": zeros(20, 20, dtype="uint8")},
    lambda a: {"z": _life(a["x"])},
    n=20,
)


def _life(x: NDArray[Any]) -> NDArray[Any]:
    around = sum(np.roll(x, (a, b), (0, 1)).astype(int) for a in (-1, 0, 1) for b in (-1, 0, 1))
    return np.where(x == 1, (around == 3) | (around == 4), around == 3).astype("uint8")


case(
    "__global__ void edges(const float* x, float* z, int n) { int i = blockIdx.x * 16 + threadIdx.x, j ="
    " blockIdx.y * 16 + threadIdx.y;"
    " int l = max(i - 1, 0), r = min(i + 1, n - 1), u = max(j - 1, 0), d = min(j + 1, n - 1);"
    " float gx = x[j * n + r] - x[j * n + l], gy = x[d * n + i] - x[u * n + i]; z[j * n + i] = sqrtf(gx * gx +"
    " gy * gy); }",
    (2, 2),
    (16, 16),
    {"x": floats(32, 32), "z": zeros(32, 32)},
    lambda a: {
        "z": (lambda p: np.sqrt((p[1:-1, 2:] - p[1:-1, :-2]) ** 2 + (p[2:, 1:-1] - p[:-2, 1:-1]) ** 2))(
            np.pad(a["x"], 1, "edge")
        )
    },
    n=32,
    tolerance=1e-5,
)
case(
    "__global__ void floyd(int* d, int n, int k) { int i = blockIdx.x * 16 + threadIdx.x, j = blockIdx.y * 16 +"
    " threadIdx.y;"
    " d[j * n + i] = min(d[j * n + i], d[j * n + k] + d[k * n + i]); }",
    (2, 2),
    (16, 16),
    {"d": whole(32, 32, low=1)},
    lambda a: {"d": np.minimum(a["d"], a["d"][:, 5:6] + a["d"][5:6, :])},
    n=32,
    k=5,
)
case(
    "__global__ void breadth(const int* starts, const int* to, const int* level, int* next, int n, int at) {"
    f" {ID} if (i >= n || level[i] != at) return; for (int k = starts[i]; k < starts[i + 1]; k++)"
    " atomicMin(&next[to[k]], at + 1); }",
    1,
    64,
    {
        "starts": np.arange(0, 183, 3, dtype="int32"),
        "to": whole(180, high=60),
        "level": whole(60, high=3),
        "next": np.full(60, 99, "int32"),
    },
    lambda a: {
        "next": np.where(np.isin(np.arange(60), a["to"].reshape(60, 3)[a["level"] == 1]), 2, 99),
    },
    n=60,
    at=1,
)
case(
    "__global__ void monte_carlo(unsigned long long* hits, int rounds) { unsigned long long s = blockIdx.x *"
    " blockDim.x + threadIdx.x + 1;"
    " unsigned own = 0; for (int k = 0; k < rounds; k++) { s = s * 6364136223846793005ull + 1442695040888963407ull;"
    " float x = (s >> 40) * (1.0f / (1 << 24)); s = s * 6364136223846793005ull + 1442695040888963407ull;"
    " float y = (s >> 40) * (1.0f / (1 << 24)); own += x * x + y * y < 1; } atomicAdd(hits, (unsigned long"
    " long)own); }",
    2,
    64,
    {"hits": zeros(1, dtype="uint64")},
    lambda a: {"hits": np.array([_hits(128, 20)], "uint64")},
    rounds=20,
)


def _hits(items: int, rounds: int) -> int:
    s = np.arange(1, items + 1, dtype="uint64")
    own = 0
    for _ in range(rounds):
        pair = []
        for _ in range(2):
            s = s * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
            pair.append((s >> np.uint64(40)).astype("float32") * np.float32(2.0**-24))
        own += int((pair[0] ** 2 + pair[1] ** 2 < 1).sum())
    return own


case(
    "#include <cooperative_groups.h>\n#include <cooperative_groups/reduce.h>\nnamespace cg = cooperative_groups;"
    "__global__ void cooperative(const int* x, int* z) { auto block = cg::this_thread_block();"
    " auto warp = cg::tiled_partition<32>(block); int own = x[block.thread_rank()], low = own;"
    " for (int d = warp.size() / 2; d; d /= 2) low = min(low, warp.shfl_xor(low, d)); block.sync();"
    " z[block.thread_rank()] = cg::reduce(warp, own, cg::plus<int>()) + low; }",
    1,
    64,
    {"x": whole(64), "z": zeros(64, dtype="int32")},
    lambda a: {"z": np.repeat([row.sum() + row.min() for row in a["x"].reshape(2, 32)], 32)},
    name="cooperative",
)

"""CUDA kernels with launches, data, and what numpy says that they compute."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import erf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfmodel import Kernel

Arrays = dict[str, NDArray[Any]]
CASES: dict[str, Case] = {}


@dataclass(frozen=True)
class Case:
    """A kernel at one launch.

    Attributes:
        expected: what arrays hold afterwards, from what they held before.
        tolerance: relative, of floats.
        elements: of arrays of vectors, where they differ from numpy's.
    """

    source: str
    name: str
    grid: Any
    block: Any
    arrays: Arrays
    scalars: Mapping[str, float]
    expected: Callable[[Arrays], Arrays]
    tolerance: float = 1e-6
    shared: int = 0
    options: tuple[str, ...] = ()
    elements: Mapping[str, int] = field(default_factory=dict)

    def kernel(self) -> Kernel:
        elements = {name: array.size for name, array in self.arrays.items()} | dict(self.elements)
        kernel = Kernel.from_cuda(
            self.source, self.name, self.grid, self.block, elements, self.options, shared=self.shared
        )
        return kernel.at(**self.scalars)


def case(
    source: str,
    grid: Any,
    block: Any,
    arrays: Arrays,
    expected: Callable[[Arrays], Arrays],
    name: str = "",
    **more: Any,
) -> None:
    """Adds a case; what is no field of it is a scalar argument."""
    fields = {key: more.pop(key) for key in ("tolerance", "shared", "options", "elements", "title") if key in more}
    title = fields.pop("title", "") or name or source.partition("(")[0].split()[-1]
    assert title not in CASES
    kernel = name or source[source.index("__global__") :].partition("(")[0].split()[-1]
    CASES[title] = Case(source, kernel, grid, block, arrays, more, expected, **fields)


def floats(*shape: int, seed: int = 1, dtype: str = "float32") -> NDArray[Any]:
    return np.random.default_rng(seed).uniform(0.5, 1.5, shape).astype(dtype)


def whole(*shape: int, low: int = 0, high: int = 1000, seed: int = 2, dtype: str = "int32") -> NDArray[Any]:
    return np.random.default_rng(seed).integers(low, high, shape).astype(dtype)


def zeros(*shape: int, dtype: str = "float32") -> NDArray[Any]:
    return np.zeros(shape, dtype)


ID = "int i = blockIdx.x * blockDim.x + threadIdx.x;"

# --- plain

case(
    f"__global__ void add(const float* x, const float* y, float* z, int n) {{ {ID} if (i < n) z[i] = x[i] + y[i]; }}",
    4,
    256,
    {"x": floats(1000), "y": floats(1000, seed=2), "z": zeros(1000)},
    lambda a: {"z": a["x"] + a["y"]},
    n=1000,
)
case(
    f"__global__ void saxpy(float a, const float* x, float* y, int n) {{ {ID} if (i >= n) return; y[i] = a * x[i]"
    " + y[i]; }",
    5,
    192,
    {"x": floats(900), "y": floats(900, seed=2)},
    lambda a: {"y": np.float32(2.5) * a["x"] + a["y"]},
    a=2.5,
    n=900,
)
case(
    f"__global__ void strided(const float* x, float* z, int s) {{ {ID} z[i * s] = x[i * s]; }}",
    4,
    64,
    {"x": floats(768), "z": zeros(768)},
    lambda a: {"z": np.where(np.arange(768) % 3 == 0, a["x"], 0)},
    s=3,
)
case(
    "__global__ void grid_stride(const float* x, float* z, int n) {"
    " for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) z[i] = 2 * x[i]; }",
    3,
    128,
    {"x": floats(1111), "z": zeros(1111)},
    lambda a: {"z": 2 * a["x"]},
    n=1111,
)
case(
    f"__global__ void vectors(const float4* x, float4* z) {{ {ID} float4 v = x[i]; v.x += v.y; v.z *= v.w; z[i] ="
    " v; }",
    2,
    64,
    {"x": floats(512), "z": zeros(512)},
    lambda a: {
        "z": np.stack(
            [
                a["x"][0::4] + a["x"][1::4],
                a["x"][1::4],
                a["x"][2::4] * a["x"][3::4],
                a["x"][3::4],
            ],
            1,
        ).ravel()
    },
    elements={"x": 128, "z": 128},
)
case(
    f"__global__ void wide(const double* x, double* z, double c) {{ {ID} z[i] = fma(x[i], c, sqrt(x[i])) / (x[i]"
    " + 1); }",
    2,
    128,
    {"x": floats(256, dtype="float64"), "z": zeros(256, dtype="float64")},
    lambda a: {"z": (a["x"] * 1.5 + np.sqrt(a["x"])) / (a["x"] + 1)},
    c=1.5,
    tolerance=1e-14,
)
case(
    f"__global__ void bytes(const unsigned char* x, unsigned char* z, short* s) {{ {ID}"
    " z[i] = x[i] * 3 + 7; s[i] = (short)(x[i] - 100) * (short)x[i]; }",
    2,
    64,
    {"x": whole(128, high=256, dtype="uint8"), "z": zeros(128, dtype="uint8"), "s": zeros(128, dtype="int16")},
    lambda a: {
        "z": (a["x"].astype(int) * 3 + 7).astype("uint8"),
        "s": ((a["x"].astype(int) - 100) * a["x"].astype(int)).astype("int16"),
    },
)
case(
    "__global__ void wide_index(const float* x, float* z, long long n) {"
    " long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; if (i < n) z[n - 1 - i] = x[i]; }",
    4,
    128,
    {"x": floats(500), "z": zeros(500)},
    lambda a: {"z": a["x"][::-1]},
    n=500,
)
case(
    f"__global__ void quotients(const int* x, int* q, int* r, unsigned* u, int d) {{ {ID}"
    " q[i] = x[i] / d; r[i] = x[i] % 7; u[i] = (unsigned)x[i] / 10u; }",
    2,
    128,
    {
        "x": whole(256, low=-5000, high=5000),
        "q": zeros(256, dtype="int32"),
        "r": zeros(256, dtype="int32"),
        "u": zeros(256, dtype="uint32"),
    },
    lambda a: {
        "q": np.trunc(a["x"] / 13).astype("int32"),
        "r": np.fmod(a["x"], 7),
        "u": a["x"].view("uint32") // 10,
    },
    d=13,
)
case(
    f"__global__ void quotients64(const long long* x, long long* q, unsigned long long* u, long long d) {{ {ID}"
    " q[i] = x[i] / d + x[i] % d; u[i] = __umul64hi(x[i], d); }",
    1,
    128,
    {
        "x": whole(128, low=-(2**40), high=2**40, dtype="int64"),
        "q": zeros(128, dtype="int64"),
        "u": zeros(128, dtype="uint64"),
    },
    lambda a: {
        "q": np.array([int(abs(v) // 77) * (1 if v >= 0 else -1) + int(np.fmod(v, 77)) for v in a["x"].tolist()]),
        "u": np.array([(v % 2**64) * 77 >> 64 for v in a["x"].tolist()], "uint64"),
    },
    d=77,
)
case(
    f"__global__ void bits(const unsigned* x, unsigned* z, int* c) {{ {ID} unsigned v = x[i];"
    " c[i] = __popc(v) + __clz(v) * 100 + __ffs(v) * 10000;"
    " z[i] = (__brev(v) ^ (v >> 3)) + ((v << 5) | (v & 0xff)) + __byte_perm(v, 7, 0x2143) + __funnelshift_l(v,"
    " 9, 5); }",
    2,
    64,
    {"x": whole(128, high=2**31, dtype="uint32"), "z": zeros(128, dtype="uint32"), "c": zeros(128, dtype="int32")},
    lambda a: {
        "c": np.array(
            [v.bit_count() + (32 - v.bit_length()) * 100 + ((v & -v).bit_length()) * 10000 for v in a["x"].tolist()]
        ),
        "z": np.array(
            [
                (
                    (int(f"{v:032b}"[::-1], 2) ^ (v >> 3))
                    + ((v << 5) % 2**32 | (v & 255))
                    + sum(((7 << 32 | v) >> 8 * s & 255) << 8 * k for k, s in enumerate((3, 4, 1, 2)))
                    + (((9 << 32 | v) << 5 >> 32) % 2**32)
                )
                % 2**32
                for v in a["x"].tolist()
            ],
            "uint32",
        ),
    },
)
case(
    f"__global__ void conversions(const float* x, int* a, unsigned char* b, double* d, float* f, long long* l) {{"
    f" {ID}"
    " a[i] = __float2int_rn(x[i]); b[i] = (unsigned char)x[i]; d[i] = x[i]; f[i] = rintf(x[i]) + floorf(x[i]) * 10 +"
    " ceilf(x[i]) * 100; l[i] = (long long)(x[i] * 1e6f); }",
    1,
    64,
    {
        "x": floats(64) * 40,
        "a": zeros(64, dtype="int32"),
        "b": zeros(64, dtype="uint8"),
        "d": zeros(64, dtype="float64"),
        "f": zeros(64),
        "l": zeros(64, dtype="int64"),
    },
    lambda a: {
        "a": np.rint(a["x"]).astype("int32"),
        "b": a["x"].astype("uint8"),
        "d": a["x"].astype("float64"),
        "f": np.rint(a["x"]) + np.floor(a["x"]) * 10 + np.ceil(a["x"]) * 100,
        "l": (a["x"] * np.float32(1e6)).astype("int64"),
    },
)

# --- functions

case(
    f"__global__ void functions(const float* x, float* z) {{ {ID} float v = x[i];"
    " z[i] = expf(v) + logf(v) * sinf(v) - cosf(v) + powf(v, 1.7f) + tanhf(v) + rsqrtf(v) + atanf(v) + erff(v) +"
    " cbrtf(v); }",
    2,
    128,
    {"x": floats(256), "z": zeros(256)},
    lambda a: {
        "z": (
            lambda v: (
                np.exp(v)
                + np.log(v) * np.sin(v)
                - np.cos(v)
                + v**1.7
                + np.tanh(v)
                + v**-0.5
                + np.arctan(v)
                + np.vectorize(erf)(v)
                + np.cbrt(v)
            )
        )(a["x"].astype("float64"))
    },
    tolerance=5e-6,
)
case(
    f"__global__ void fast(const float* x, float* z) {{ {ID} float v = x[i];"
    " z[i] = __expf(v) + __logf(v) * __sinf(v) + __fdividef(v, 3.0f) + sqrtf(v); }",
    2,
    128,
    {"x": floats(256), "z": zeros(256)},
    lambda a: {"z": np.exp(a["x"]) + np.log(a["x"]) * np.sin(a["x"]) + a["x"] / 3 + np.sqrt(a["x"])},
    tolerance=1e-5,
    options=("--use_fast_math",),
)
case(
    f"__global__ void double_functions(const double* x, double* z) {{ {ID} double v = x[i];"
    " z[i] = exp(v) + log(v) * sin(v) - cos(v) + pow(v, 1.7) + tanh(v) + rsqrt(v); }",
    1,
    128,
    {"x": floats(128, dtype="float64"), "z": zeros(128, dtype="float64")},
    lambda a: {"z": (lambda v: np.exp(v) + np.log(v) * np.sin(v) - np.cos(v) + v**1.7 + np.tanh(v) + v**-0.5)(a["x"])},
    tolerance=1e-12,
)
case(
    f"__global__ void large_angles(const float* x, float* z) {{ {ID} z[i] = sinf(x[i] * 1e6f); }}",
    1,
    64,
    {"x": floats(64), "z": zeros(64)},
    lambda a: {"z": np.sin((a["x"] * np.float32(1e6)).astype("float64"))},
    tolerance=1e-4,
)
case(
    "__device__ __noinline__ float square(float x, int* calls) { return x * x + calls[0]; }"
    "__device__ __noinline__ float twice(float x, int* calls) { return square(x, calls) + square(x + 1, calls); }"
    f"__global__ void called(const float* x, float* z, int* calls) {{ {ID} z[i] = i % 3 ? twice(x[i], calls) :"
    " square(x[i], calls); }",
    2,
    64,
    {"x": floats(128), "z": zeros(128), "calls": np.array([2], "int32")},
    lambda a: {"z": np.where(np.arange(128) % 3 > 0, a["x"] ** 2 + (a["x"] + 1) ** 2 + 4, a["x"] ** 2 + 2)},
    name="called",
)

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

# --- of the books

case(
    "__global__ void nbody(const float4* p, float3* f, int n) { __shared__ float4 t[64]; int i = blockIdx.x * 64"
    " + threadIdx.x;"
    " float4 me = p[i]; float x = 0, y = 0, z = 0; for (int b = 0; b < n; b += 64) { t[threadIdx.x] = p[b +"
    " threadIdx.x];"
    " __syncthreads(); for (int k = 0; k < 64; k++) { float dx = t[k].x - me.x, dy = t[k].y - me.y, dz = t[k].z"
    " - me.z;"
    " float r = rsqrtf(dx * dx + dy * dy + dz * dz + 0.01f), s = t[k].w * r * r * r; x += s * dx; y += s * dy; z"
    " += s * dz; }"
    " __syncthreads(); } f[i] = make_float3(x, y, z); }",
    2,
    64,
    {"p": floats(128, 4), "f": zeros(128, 3)},
    lambda a: {"f": _forces(a["p"].astype("float64"))},
    elements={"p": 128, "f": 128},
    n=128,
    tolerance=1e-4,
)


def _forces(p: NDArray[Any]) -> NDArray[Any]:
    d = p[None, :, :3] - p[:, None, :3]
    s = p[None, :, 3] * ((d**2).sum(2) + 0.01) ** -1.5
    return np.asarray((s[:, :, None] * d).sum(1))


case(
    "__device__ float cnd(float d) { const float k = 1.0f / (1.0f + 0.2316419f * fabsf(d)); float c ="
    " 0.39894228f * expf(-0.5f * d * d) *"
    " (k * (0.31938153f + k * (-0.356563782f + k * (1.781477937f + k * (-1.821255978f + k * 1.330274429f)))));"
    " return d > 0 ? 1.0f - c : c; }"
    f"__global__ void black_scholes(const float* s, const float* x, const float* t, float* call, float r, float"
    f" v) {{ {ID}"
    " float q = sqrtf(t[i]), d = (logf(s[i] / x[i]) + (r + 0.5f * v * v) * t[i]) / (v * q);"
    " call[i] = s[i] * cnd(d) - x[i] * expf(-r * t[i]) * cnd(d - v * q); }",
    2,
    128,
    {"s": floats(256) * 20, "x": floats(256, seed=5) * 20, "t": floats(256, seed=6), "call": zeros(256)},
    lambda a: {"call": _calls(a, 0.02, 0.3)},
    name="black_scholes",
    r=0.02,
    v=0.3,
    tolerance=1e-4,
)


def _calls(arrays: Arrays, r: float, v: float) -> NDArray[Any]:
    s, x, t = (arrays[name].astype("float64") for name in ("s", "x", "t"))
    normal = np.vectorize(lambda d: 0.5 * (1 + erf(d / 2**0.5)))
    q = np.sqrt(t)
    d = (np.log(s / x) + (r + 0.5 * v * v) * t) / (v * q)
    return np.asarray(s * normal(d) - x * np.exp(-r * t) * normal(d - v * q))


case(
    "__global__ void jacobi(const float* x, float* z, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x,"
    " j = blockIdx.y * blockDim.y + threadIdx.y; if (i > 0 && j > 0 && i < n - 1 && j < n - 1)"
    " z[j * n + i] = 0.25f * (x[j * n + i - 1] + x[j * n + i + 1] + x[(j - 1) * n + i] + x[(j + 1) * n + i]); }",
    (4, 8),
    (16, 8),
    {"x": floats(60, 60), "z": zeros(60, 60)},
    lambda a: {"z": np.pad(0.25 * (a["x"][1:-1, :-2] + a["x"][1:-1, 2:] + a["x"][:-2, 1:-1] + a["x"][2:, 1:-1]), 1)},
    n=60,
)
case(
    "__global__ void convolve(const float* x, const float* w, float* z, int n) { __shared__ float t[18][18];"
    " int a = threadIdx.x, b = threadIdx.y, i = blockIdx.x * 16 + a, j = blockIdx.y * 16 + b; for (int q = b; q"
    " < 18; q += 16)"
    " for (int p = a; p < 18; p += 16) t[q][p] = x[(blockIdx.y * 16 + q) * (n + 2) + blockIdx.x * 16 + p];"
    " __syncthreads();"
    " float s = 0; for (int q = 0; q < 3; q++) for (int p = 0; p < 3; p++) s += w[q * 3 + p] * t[b + q][a + p];"
    " z[j * n + i] = s; }",
    (2, 2),
    (16, 16),
    {"x": floats(34, 34), "w": floats(9), "z": zeros(32, 32)},
    lambda a: {"z": sum(a["w"][q * 3 + p] * a["x"][q : q + 32, p : p + 32] for q in range(3) for p in range(3))},
    n=32,
    tolerance=1e-5,
)
case(
    "__global__ void layer_norm(const float* x, float* z, int m) { float s = 0, q = 0; const float* row = x +"
    " blockIdx.x * m;"
    " for (int k = threadIdx.x; k < m; k += 32) { s += row[k]; q += row[k] * row[k]; }"
    " for (int d = 16; d; d /= 2) { s += __shfl_xor_sync(~0u, s, d); q += __shfl_xor_sync(~0u, q, d); }"
    " s /= m; q = rsqrtf(q / m - s * s + 1e-5f); for (int k = threadIdx.x; k < m; k += 32) z[blockIdx.x * m + k]"
    " = (row[k] - s) * q; }",
    4,
    32,
    {"x": floats(4, 200), "z": zeros(4, 200)},
    lambda a: {"z": (a["x"] - a["x"].mean(1, keepdims=True)) / np.sqrt(a["x"].var(1, keepdims=True) + 1e-5)},
    m=200,
    tolerance=1e-4,
)
case(
    f"__global__ void random(unsigned* z, int rounds) {{ {ID} unsigned s = i * 747796405u + 2891336453u;"
    " for (int k = 0; k < rounds; k++) { s = s * 1664525u + 1013904223u; s ^= s >> 16; } z[i] = s; }",
    2,
    64,
    {"z": zeros(128, dtype="uint32")},
    lambda a: {"z": _lcg(128, 10)},
    rounds=10,
)


def _lcg(n: int, rounds: int) -> NDArray[Any]:
    s = np.arange(n, dtype="uint64") * 747796405 + 2891336453 & 0xFFFFFFFF
    for _ in range(rounds):
        s = s * 1664525 + 1013904223 & 0xFFFFFFFF
        s = s ^ s >> 16
    return s.astype("uint32")


case(
    "__global__ void carried(const unsigned long long* x, unsigned long long* z) { int i = threadIdx.x; unsigned"
    " __int128 a = x[i];"
    " a = a * x[i] + x[63 - i]; z[2 * i] = (unsigned long long)a; z[2 * i + 1] = (unsigned long long)(a >> 64); }",
    1,
    64,
    {"x": whole(64, high=2**62, dtype="uint64"), "z": zeros(128, dtype="uint64")},
    lambda a: {
        "z": np.array(
            [
                part
                for v, w in zip(a["x"].tolist(), a["x"][::-1].tolist(), strict=True)
                for part in ((v * v + w) % 2**64, (v * v + w) >> 64)
            ],
            "uint64",
        )
    },
    options=("--device-int128",),
)
case(
    "#include <cuda_fp16.h>\n"
    f"__global__ void halves(const __half* x, __half* z, const __half2* p, __half2* q) {{ {ID}"
    " z[i] = __hfma(x[i], x[i], __float2half(0.5f)); q[i] = __hadd2(p[i], __hmul2(p[i], p[i])); }",
    1,
    64,
    {
        "x": floats(64, dtype="float16"),
        "z": zeros(64, dtype="float16"),
        "p": floats(128, dtype="float16", seed=4),
        "q": zeros(128, dtype="float16"),
    },
    lambda a: {
        "z": (a["x"].astype("float64") ** 2 + 0.5).astype("float16"),
        "q": (a["p"] + a["p"] * a["p"]),
    },
    name="halves",
    elements={"p": 64, "q": 64},
    tolerance=2e-3,
)

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

"""CUDA kernels whose threads each compute elements of their own: arithmetic and functions."""

from __future__ import annotations

from math import erf

import numpy as np

from tests.ptx.cuda.case import ID, case, floats, whole, zeros

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

"""CUDA kernels of algorithms that books begin with."""

from __future__ import annotations

from math import erf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.ptx.cuda.case import ID, Arrays, case, floats, whole, zeros

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

"""CUDA C++ for tensor cores and the types that come with them, and what numpy computes of it.

``python -m tests.ptx.tensor_cases`` compiles it and keeps the PTX, for tests without the compiler.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfmodel import Kernel
from perfmodel.ptx.emulation.narrow_floats import as_tf32, decoded, encoded
from tests.ptx.stored_kernels import store

PATH = Path(__file__).with_name("tensor_texts.json.xz")
RANDOM = np.random.default_rng(1)
Values = NDArray[Any]

WMMA = """
#include <mma.h>
#include <cuda_bf16.h>
using namespace nvcuda;
template <bool> struct order { typedef wmma::col_major type; };
template <> struct order<true> { typedef wmma::row_major type; };
template <typename T, typename S, typename R, int M, int N, int K, bool BY_ROW, bool B_BY_ROW, bool TO_COLUMNS>
__global__ void product(const S *a, const S *b, R *c, int m, int n, int k) {
  wmma::fragment<wmma::matrix_a, M, N, K, T, typename order<BY_ROW>::type> x;
  wmma::fragment<wmma::matrix_b, M, N, K, T, typename order<B_BY_ROW>::type> y;
  wmma::fragment<wmma::accumulator, M, N, K, R> z;
  int row = (blockIdx.x * blockDim.y + threadIdx.y) * M, column = blockIdx.y * N;
  wmma::fill_fragment(z, R(0));
  for (int i = 0; i < k; i += K) {
    wmma::load_matrix_sync(x, a + (BY_ROW ? row * k + i : i * m + row), BY_ROW ? k : m);
    wmma::load_matrix_sync(y, b + (B_BY_ROW ? i * n + column : column * k + i), B_BY_ROW ? n : k);
    wmma::mma_sync(z, x, y, z);
  }
  for (int i = 0; i < z.num_elements; i++) z.x[i] = z.x[i] + z.x[i];
  if (TO_COLUMNS) wmma::store_matrix_sync(c + column * m + row, z, m, wmma::mem_col_major);
  else wmma::store_matrix_sync(c + row * n + column, z, n, wmma::mem_row_major);
}
"""
MMA = """
#include <cuda_fp16.h>
// One product of fragments that are laid out by hand, as the PTX ISA manual draws them.
extern "C" __global__ void halves(const half *a, const half *b, half *c) {
  int g = threadIdx.x / 4, t = threadIdx.x % 4;
  unsigned x[2], y[1], z[2] = {0, 0};
  x[0] = *(const unsigned *)(a + g * 8 + 2 * t);
  x[1] = *(const unsigned *)(a + (g + 8) * 8 + 2 * t);
  half pair[2] = {b[(2 * t) * 8 + g], b[(2 * t + 1) * 8 + g]};
  y[0] = *(unsigned *)pair;
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%0,%1}, {%2,%3}, {%4}, {%0,%1};"
      : "+r"(z[0]), "+r"(z[1]) : "r"(x[0]), "r"(x[1]), "r"(y[0]));
  *(unsigned *)(c + g * 8 + 2 * t) = z[0];
  *(unsigned *)(c + (g + 8) * 8 + 2 * t) = z[1];
}
extern "C" __global__ void cut(const float *a, const float *b, float *c) {
  int g = threadIdx.x / 4, t = threadIdx.x % 4;
  float z[4] = {0, 0, 0, 0};
  asm volatile("mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
      : "+f"(z[0]), "+f"(z[1]), "+f"(z[2]), "+f"(z[3])
      : "r"(__float_as_uint(a[g * 4 + t])), "r"(__float_as_uint(a[(g + 8) * 4 + t])),
        "r"(__float_as_uint(b[t * 8 + g])));
  for (int i = 0; i < 4; i++) c[(g + 8 * (i / 2)) * 8 + 2 * t + i % 2] = z[i];
}
extern "C" __global__ void doubles(const double *a, const double *b, double *c) {
  int g = threadIdx.x / 4, t = threadIdx.x % 4;
  double z[2] = {0, 0};
  asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};"
      : "+d"(z[0]), "+d"(z[1]) : "d"(a[g * 4 + t]), "d"(b[t * 8 + g]));
  c[g * 8 + 2 * t] = z[0]; c[g * 8 + 2 * t + 1] = z[1];
}
extern "C" __global__ void bytes(const signed char *a, const unsigned char *b, int *c) {
  int g = threadIdx.x / 4, t = threadIdx.x % 4;
  int z[4] = {0, 0, 0, 0};
  unsigned y = 0;
  for (int i = 0; i < 4; i++) y |= (unsigned)b[(4 * t + i) * 8 + g] << 8 * i;
  asm volatile("mma.sync.aligned.m16n8k16.row.col.s32.s8.u8.s32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
      : "+r"(z[0]), "+r"(z[1]), "+r"(z[2]), "+r"(z[3])
      : "r"(*(const unsigned *)(a + g * 16 + 4 * t)), "r"(*(const unsigned *)(a + (g + 8) * 16 + 4 * t)), "r"(y));
  for (int i = 0; i < 4; i++) c[(g + 8 * (i / 2)) * 8 + 2 * t + i % 2] = z[i];
}
extern "C" __global__ void mirrored(const float *x, float *y, int n) {
  __shared__ __align__(128) float own[2][64];
  __shared__ __align__(8) unsigned long long full, read;
  unsigned at = __cvta_generic_to_shared(own), bar = __cvta_generic_to_shared(&full);
  unsigned other = __cvta_generic_to_shared(&read);
  int t = threadIdx.x;
  if (t == 0) {
    asm volatile("mbarrier.init.shared.b64 [%0], 1;" :: "r"(bar));
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" :: "r"(other), "r"(blockDim.x));
  }
  __syncthreads();
  for (int i = 0; i < n; i++) {
    int start = (blockIdx.x * n + i) * 64;
    if (t == 0) {
      asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], 256;" :: "r"(bar));
      asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 256, [%2];"
          :: "r"(at), "l"(x + start), "r"(bar));
    }
    asm volatile(
        "{ .reg .pred p; again: mbarrier.try_wait.parity.shared.b64 p, [%0], %1; @p bra done; bra again; done: }"
        :: "r"(bar), "r"(i & 1));
    own[1][t] = own[0][63 - t];
    unsigned long long state;
    asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(state) : "r"(other));
    asm volatile("{ .reg .pred p; again: mbarrier.test_wait.shared.b64 p, [%0], %1; @!p bra again; }"
        :: "r"(other), "l"(state));
    if (t == 0) {
      asm volatile("fence.proxy.async.shared::cta;");
      asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 256;" :: "l"(y + start), "r"(at + 256));
      asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;");
    }
    __syncthreads();
  }
}
extern "C" __global__ void turned(const half *x, half *y) {
  __shared__ __align__(16) half own[16][16];
  int t = threadIdx.x;
  for (int i = t; i < 256; i += 32) own[i / 16][i % 16] = x[i];
  __syncthreads();
  unsigned p[4];
  unsigned at = (unsigned)__cvta_generic_to_shared(&own[t % 16][t / 16 * 8]);
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
      : "=r"(p[0]), "=r"(p[1]), "=r"(p[2]), "=r"(p[3]) : "r"(at));
  __syncthreads();
  at = (unsigned)__cvta_generic_to_shared(&own[t / 16 * 8 + t % 8][t / 8 % 2 * 8]);
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1,%2,%3,%4};"
      :: "r"(at), "r"(p[0]), "r"(p[1]), "r"(p[2]), "r"(p[3]));
  __syncthreads();
  for (int i = t; i < 256; i += 32) y[i] = own[i / 16][i % 16];
}
"""
NARROW = """
#include <cuda_bf16.h>
#include <cuda_fp8.h>
extern "C" __global__ void brains(const __nv_bfloat16 *x, const __nv_bfloat162 *y, __nv_bfloat16 *z, int *n) {
  int i = threadIdx.x;
  __nv_bfloat162 pair = __hfma2(y[i], y[i], __float2bfloat162_rn(0.5f));
  __nv_bfloat16 v = __hmul(__hadd(x[i], __low2bfloat16(pair)), __hmax(x[i], __high2bfloat16(pair)));
  z[i] = __hneg(__float2bfloat16_rz(__bfloat162float(v)));
  n[i] = __hlt(x[i], v) + 2 * __bfloat162int_rn(x[i]);
}
extern "C" __global__ void eights(const float *x, unsigned char *y, float *z) {
  int i = threadIdx.x;
  __nv_fp8_e4m3 v(x[i]);
  __nv_fp8_e5m2 w(x[i]);
  y[2 * i] = v.__x; y[2 * i + 1] = w.__x;
  z[i] = float(v) - float(w);
}
"""


@dataclass(frozen=True)
class Case:
    """A kernel with its launch, and what its arrays hold before and after."""

    source: str
    name: str
    grid: Any
    block: Any
    arrays: Mapping[str, Values]
    wanted: Callable[[], Mapping[str, Values]]
    numbers: Mapping[str, int]
    tolerance: float = 1e-3

    def kernel(self) -> Kernel:
        sizes = {name: array.size for name, array in self.arrays.items()}
        if self.name == "brains":
            sizes["y"] //= 2
        return Kernel.from_cuda(self.source, self.name, self.grid, self.block, sizes).at(**self.numbers)


def made(kind: str, *shape: int) -> tuple[Values, Values]:
    """Returns random bits of a type, and their numbers."""
    if kind == "s8":
        whole = RANDOM.integers(-100, 100, shape).astype("int8")
        return whole, whole.astype("int64")
    values = RANDOM.normal(size=shape)
    if kind == "bf16":
        bits = encoded(values, kind)
        return bits, decoded(bits, kind)
    found = values.astype({"f16": "float16", "f64": "float64"}.get(kind, "float32"))
    return found, as_tf32(found).astype("float64") if kind == "tf32" else found.astype("float64")


CASES: dict[str, Case] = {}
_ELEMENTS = {
    "f16": ("half", "half"),
    "bf16": ("__nv_bfloat16", "__nv_bfloat16"),
    "tf32": ("wmma::precision::tf32", "float"),
    "s8": ("signed char", "signed char"),
    "f64": ("double", "double"),
}


def wmma(kind: str, shape: tuple[int, int, int], result: str, layouts: str, to_columns: bool = False) -> None:
    m, n, k = shape[0] * 4, shape[1] * 2, shape[2] * 2
    (a, x), (b, y) = made(kind, m, k), made(kind, k, n)
    if layouts[0] == "c":
        a = np.ascontiguousarray(a.T)
    if layouts[1] == "c":
        b = np.ascontiguousarray(b.T)
    words = ["true" if letter == "r" else "false" for letter in layouts]
    held = {"float": "float32", "half": "float16", "int": "int32", "double": "float64"}[result]
    arguments = [*_ELEMENTS[kind], result, *map(str, shape), *words, "true" if to_columns else "false"]
    title = f"wmma {kind} {'x'.join(map(str, shape))} {result} {layouts}{' to columns' * to_columns}"

    def wanted() -> Mapping[str, Values]:
        found = 2 * (x @ y)
        return {"c": found.T if to_columns else found}

    arrays = {"a": a, "b": b, "c": np.zeros((n, m) if to_columns else (m, n), held)}
    numbers = {"m": m, "n": n, "k": k}
    tolerance = 1e-2 if result == "half" else 1e-4
    name = f"product<{', '.join(arguments)}>"
    CASES[title] = Case(
        source=WMMA,
        name=name,
        grid=(2, 2),
        block=(32, 2),
        arrays=arrays,
        wanted=wanted,
        numbers=numbers,
        tolerance=tolerance,
    )


wmma("f16", (16, 16, 16), "float", "rr")
wmma("f16", (16, 16, 16), "half", "rc", True)
wmma("f16", (32, 8, 16), "float", "cr")
wmma("f16", (8, 32, 16), "float", "cc", True)
wmma("bf16", (16, 16, 16), "float", "rc")
wmma("tf32", (16, 16, 8), "float", "rc")
wmma("s8", (16, 16, 16), "int", "rc")
wmma("f64", (8, 8, 4), "double", "rc")


def mma(name: str, kinds: tuple[str, str], shape: tuple[int, int, int], held: str) -> None:
    m, n, k = shape
    (a, x), (b, y) = made(kinds[0], m, k), made(kinds[1], k, n)
    if name == "bytes":
        b, y = b.view("uint8"), b.view("uint8").astype("int64")
    arrays = {"a": a, "b": b, "c": np.zeros((m, n), held)}
    CASES[f"mma {name}"] = Case(
        source=MMA,
        name=name,
        grid=1,
        block=32,
        arrays=arrays,
        wanted=lambda: {"c": x @ y},
        numbers={},
        tolerance=1e-2 if held == "float16" else 1e-4,
    )


mma("halves", ("f16", "f16"), (16, 8, 8), "float16")
mma("cut", ("tf32", "tf32"), (16, 8, 4), "float32")
mma("doubles", ("f64", "f64"), (8, 8, 4), "float64")
mma("bytes", ("s8", "s8"), (16, 8, 16), "int32")
TURNED = made("f16", 16, 16)[0]
CASES["ldmatrix"] = Case(
    source=MMA,
    name="turned",
    grid=1,
    block=32,
    arrays={"x": TURNED, "y": np.zeros_like(TURNED)},
    wanted=lambda: {"y": TURNED.T},
    numbers={},
    tolerance=0,
)
MIRRORED = made("f32", 2 * 3 * 64)[0]
CASES["bulk copies"] = Case(
    source=MMA,
    name="mirrored",
    grid=2,
    block=64,
    arrays={"x": MIRRORED, "y": np.zeros_like(MIRRORED)},
    wanted=lambda: {"y": MIRRORED.reshape(6, 64)[:, ::-1].ravel()},
    numbers={"n": 3},
    tolerance=0,
)
(BX, VX), (BY, VY) = made("bf16", 64), made("bf16", 64, 2)
BX[:2], VX[:2] = encoded(np.array([2.5, -0.0]), "bf16"), (2.5, -0.0)


def brains() -> Mapping[str, Values]:
    def near(values: Values) -> Values:
        return decoded(encoded(values, "bf16"), "bf16")

    pair = near(VY * VY + 0.5)
    product = near(near(VX + pair[:, 0]) * np.maximum(VX, pair[:, 1]))
    return {"z": encoded(-product, "bf16"), "n": (product > VX) + 2 * np.rint(VX)}


ARRAYS = {"x": BX, "y": BY, "z": np.zeros(64, "uint16"), "n": np.zeros(64, "int32")}
CASES["bfloat16"] = Case(
    source=NARROW, name="brains", grid=1, block=64, arrays=ARRAYS, wanted=brains, numbers={}, tolerance=0
)
FX = (RANDOM.normal(size=128) * 10.0 ** RANDOM.integers(-4, 6, 128)).astype("float32")


def eights() -> Mapping[str, Values]:
    kinds = ("e4m3", "e5m2")
    bits = np.stack([encoded(FX, kind, is_saturated=True) for kind in kinds], 1)
    return {"y": bits.ravel(), "z": decoded(bits[:, 0], kinds[0]) - decoded(bits[:, 1], kinds[1])}


ARRAYS = {"x": FX, "y": np.zeros(256, "uint8"), "z": np.zeros(128, "float32")}
CASES["float8"] = Case(
    source=NARROW, name="eights", grid=1, block=128, arrays=ARRAYS, wanted=eights, numbers={}, tolerance=0
)

if __name__ == "__main__":
    store(PATH, {title: case.kernel() for title, case in CASES.items()})

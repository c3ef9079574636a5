"""CUDA kernels with what headers bring: atomics, halves, asynchronous copies, functions; and some written by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.ptx.cuda.case import ID, Arrays, case, floats, whole, zeros

# --- atomics

case(
    f"""__global__ void more_atomics(const unsigned *x, unsigned *r, long long *w, double *d, float *f) {{ {ID}
  atomicSub(&r[0], 3u); atomicAnd(&r[1], x[i] | 0xff00u); atomicDec(&r[2], 50u); atomicMax(&r[3], x[i]);
  atomicMin(&r[4], x[i]); atomicMax(&w[0], (long long)x[i] << 33); atomicMin(&w[1], -(long long)x[i]);
  atomicXor((unsigned long long *)&w[2], (unsigned long long)x[i] << 20); atomicAdd(d, 0.25);
  atomicExch(f, 1.5f); atomicAdd_block(&r[5], 1u); atomicAdd_system(&r[6], 2u); }}""",
    1,
    64,
    {
        "x": whole(64, dtype="uint32"),
        "r": np.array([1000, 2**32 - 1, 10, 0, 5000, 0, 0], "uint32"),
        "w": zeros(3, dtype="int64"),
        "d": zeros(1, dtype="float64"),
        "f": zeros(1),
    },
    lambda a: {
        "r": np.array(
            [
                1000 - 192,
                np.bitwise_and.reduce(a["x"] | 0xFF00),
                (10 - 64) % 51,
                a["x"].max(),
                a["x"].min(),
                64,
                128,
            ]
        ),
        "w": np.array([int(a["x"].max()) << 33, -int(a["x"].max()), int(np.bitwise_xor.reduce(a["x"])) << 20], "int64"),
        "d": np.array([16.0]),
        "f": np.array([1.5]),
    },
    name="more_atomics",
)
case(
    """#include <cuda_fp16.h>
#include <cuda_bf16.h>
__global__ void atomics_of_halves(__half *h, __half2 *p, __nv_bfloat16 *b, unsigned short *c) {
  atomicAdd(h, __float2half(1.0f)); atomicAdd(p, __floats2half2_rn(1.0f, 2.0f)); atomicAdd(b, __float2bfloat16(1.0f));
  unsigned short old = *c, seen; do { seen = old; old = atomicCAS(c, seen, (unsigned short)(seen + 1));
    } while (seen != old); }""",
    1,
    64,
    {
        "h": zeros(1, dtype="float16"),
        "p": zeros(2, dtype="float16"),
        "b": zeros(1, dtype="uint16"),
        "c": zeros(1, dtype="uint16"),
    },
    lambda a: {
        "h": np.array([64.0]),
        "p": np.array([64.0, 128.0]),
        "b": np.array([np.float32(64).view(np.uint32) >> 16]),
        "c": np.array([64]),
    },
    name="atomics_of_halves",
    elements={"p": 1},
)
case(
    """__global__ void atomics_in_shared(const int *x, int *z, float *f) {
  __shared__ int s[6]; __shared__ float t; int i = threadIdx.x; if (i < 6) s[i] = i == 1 ? 5000 : 0;
    if (i == 0) t = 0;
  __syncthreads(); atomicMax(&s[0], x[i]); atomicMin(&s[1], x[i]); atomicOr(&s[2], x[i]); atomicXor(&s[3], x[i]);
  atomicInc((unsigned *)&s[4], 20u); atomicAdd(&t, 0.5f); atomicCAS(&s[5], 0, 9); __syncthreads();
  if (i < 6) z[i] = s[i]; if (i == 0) *f = t; }""",
    1,
    64,
    {"x": whole(64), "z": zeros(6, dtype="int32"), "f": zeros(1)},
    lambda a: {
        "z": np.array(
            [a["x"].max(), a["x"].min(), np.bitwise_or.reduce(a["x"]), np.bitwise_xor.reduce(a["x"]), 64 % 21, 9]
        ),
        "f": np.array([32.0]),
    },
)
case(
    """__global__ void least_float(const float *x, int *least) {
  int i = threadIdx.x; atomicMin(least, __float_as_int(x[i])); }""",
    1,
    128,
    {"x": floats(128), "least": np.array([2**31 - 1], "int32")},
    lambda a: {"least": a["x"].min(keepdims=True).view("int32")},
)
case(
    """#include <cuda/atomic>
__global__ void references(const int *x, int *most, unsigned long long *sum) {
  int i = threadIdx.x; cuda::atomic_ref<int, cuda::thread_scope_device> m(*most);
    m.fetch_max(x[i], cuda::memory_order_relaxed);
  cuda::atomic_ref<unsigned long long> s(*sum); s.fetch_add(x[i], cuda::std::memory_order_relaxed); }""",
    1,
    64,
    {"x": whole(64), "most": zeros(1, dtype="int32"), "sum": zeros(1, dtype="uint64")},
    lambda a: {"most": a["x"].max(keepdims=True), "sum": a["x"].sum(keepdims=True)},
    name="references",
)
case(
    """__global__ void hash_table(const unsigned *keys, unsigned *table, unsigned *found, int capacity) {
  unsigned key = keys[threadIdx.x], slot = key * 2654435769u % capacity;
  while (true) { unsigned seen = atomicCAS(&table[slot], 0xffffffffu, key);
    if (seen == 0xffffffffu || seen == key) break; slot = (slot + 1) % capacity; }
  __syncthreads(); slot = key * 2654435769u % capacity; while (table[slot] != key) slot = (slot + 1) % capacity;
  found[threadIdx.x] = table[slot]; }""",
    1,
    64,
    {
        "keys": np.random.default_rng(5).permutation(1000)[:64].astype("uint32"),
        "table": np.full(128, 2**32 - 1, "uint32"),
        "found": zeros(64, dtype="uint32"),
    },
    lambda a: {"found": a["keys"]},
    capacity=128,
)

# --- halves

case(
    """#include <cuda_fp16.h>
__global__ void functions_of_halves(const __half *x, __half *z, float *f, int *k) {
  int i = threadIdx.x; __half v = x[i]; z[i] = hsqrt(v) + hexp(v) * hlog(v) - hsin(v) / hrcp(v);
  f[i] = __half2float(__hmax(v, __float2half(0.9f))) + (__hgt(v, __float2half(1.0f)) ? 10.0f : 0.0f);
  k[i] = __half2int_rn(v * __int2half_rn(100)) + (__hisnan(v) ? 1000 : 0); }""",
    1,
    64,
    {"x": floats(64, dtype="float16"), "z": zeros(64, dtype="float16"), "f": zeros(64), "k": zeros(64, dtype="int32")},
    lambda a: (
        lambda v: {
            "z": np.sqrt(v) + np.exp(v) * np.log(v) - np.sin(v) * v,
            "f": np.maximum(v, np.float16(0.9)) + 10.0 * (v > 1),
            "k": np.rint((a["x"] * np.float16(100)).astype("float64")),
        }
    )(a["x"].astype("float64")),
    name="functions_of_halves",
    tolerance=8e-3,
)
case(
    """#include <cuda_fp16.h>
__global__ void pairs_of_halves(const __half2 *x, __half2 *z, float *f) {
  int i = threadIdx.x; __half2 v = x[i]; z[i] = __hfma2(v, __half2half2(__low2half(v)), __lowhigh2highlow(v));
  float2 w = __half22float2(__h2div(v, __hadd2(v, v))); f[i] = w.x + w.y + __low2float(__hmul2(v, v)); }""",
    1,
    64,
    {"x": floats(64, 2, dtype="float16"), "z": zeros(64, 2, dtype="float16"), "f": zeros(64)},
    lambda a: (lambda v: {"z": v * v[:, :1] + v[:, ::-1], "f": 1 + v[:, 0] ** 2})(a["x"].astype("float64")),
    name="pairs_of_halves",
    elements={"x": 64, "z": 64},
    tolerance=4e-3,
)
case(
    """#include <cuda_bf16.h>
__global__ void brains(const __nv_bfloat16 *x, float *z, __nv_bfloat16 *y) {
  int i = threadIdx.x; __nv_bfloat16 v = x[i];
    z[i] = __bfloat162float(v * v + __float2bfloat16(0.5f)) + float(hexp(v));
  y[i] = __hmax(__hfma(v, v, v), __hneg(v)); }""",
    1,
    64,
    {
        "x": (floats(64).view("uint32") >> 16).astype("uint16"),
        "z": zeros(64),
        "y": zeros(64, dtype="uint16"),
    },
    lambda a: (lambda v: {"z": v * v + 0.5 + np.exp(v)})(
        (a["x"].astype("uint32") << 16).view("float32").astype("float64")
    ),
    name="brains",
    tolerance=2e-2,
)

# --- asynchronous copies

case(
    """#include <cuda_pipeline.h>
__global__ void copied_ahead(const float4 *x, float4 *z, int turns) {
  __shared__ float4 s[2][64]; int t = threadIdx.x; const float4 *own = x + blockIdx.x * turns * 64;
  __pipeline_memcpy_async(&s[0][t], own + t, 16); __pipeline_commit(); float4 sum = make_float4(0, 0, 0, 0);
  for (int k = 0; k < turns; k++) {
    if (k + 1 < turns) __pipeline_memcpy_async(&s[(k + 1) & 1][t], own + (k + 1) * 64 + t, 16);
    __pipeline_commit(); __pipeline_wait_prior(1); __syncthreads();
    float4 v = s[k & 1][63 - t]; sum.x += v.x; sum.y += v.y; sum.z += v.z; sum.w += v.w; __syncthreads(); }
  z[blockIdx.x * 64 + t] = sum; }""",
    2,
    64,
    {"x": floats(2, 5, 64, 4), "z": zeros(2, 64, 4)},
    lambda a: {"z": a["x"].sum(1)[:, ::-1]},
    name="copied_ahead",
    elements={"x": 640, "z": 128},
    turns=5,
    tolerance=1e-5,
)
case(
    """#include <cuda/pipeline>
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__global__ void piped(const int *x, int *z, int turns) {
  auto block = cg::this_thread_block(); __shared__ int s[2][64];
  auto pipe = cuda::make_pipeline(); int t = threadIdx.x, sum = 0;
  pipe.producer_acquire(); cuda::memcpy_async(&s[0][t], x + t, sizeof(int), pipe); pipe.producer_commit();
  for (int k = 0; k < turns; k++) { pipe.producer_acquire();
    if (k + 1 < turns) cuda::memcpy_async(&s[(k + 1) & 1][t], x + (k + 1) * 64 + t, sizeof(int), pipe);
    pipe.producer_commit(); cuda::pipeline_consumer_wait_prior<1>(pipe); block.sync(); sum += s[k & 1][t ^ 1];
    block.sync(); pipe.consumer_release(); }
  z[t] = sum; }""",
    1,
    64,
    {"x": whole(4, 64), "z": zeros(64, dtype="int32")},
    lambda a: {"z": a["x"].sum(0)[np.arange(64) ^ 1]},
    name="piped",
    turns=4,
)
case(
    """#include <cuda/barrier>
__global__ void barriers_in_memory(const int *x, int *z) {
  __shared__ cuda::barrier<cuda::thread_scope_block> bar; __shared__ int s[64]; int t = threadIdx.x;
  if (t == 0) init(&bar, blockDim.x); __syncthreads(); s[t] = x[t]; bar.arrive_and_wait(); int v = s[63 - t];
  auto token = bar.arrive(); v *= 3; bar.wait(cuda::std::move(token)); s[t] = v; bar.arrive_and_wait();
    z[t] = s[t ^ 7]; }""",
    1,
    64,
    {"x": whole(64), "z": zeros(64, dtype="int32")},
    lambda a: {"z": 3 * a["x"][::-1][np.arange(64) ^ 7]},
    name="barriers_in_memory",
)

# --- of NVIDIA's library

case(
    """#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_scan.cuh>
__global__ void by_library(const unsigned *x, unsigned *z, int *sums) {
  typedef cub::BlockRadixSort<unsigned, 64, 2> Sort; typedef cub::BlockScan<int, 64> Scan; int t = threadIdx.x;
  __shared__ union { typename Sort::TempStorage sort; typename Scan::TempStorage scan; } s;
  unsigned v[2] = {x[2 * t], x[2 * t + 1]}; Sort(s.sort).Sort(v); z[2 * t] = v[0]; z[2 * t + 1] = v[1];
  __syncthreads(); int sum; Scan(s.scan).ExclusiveSum(int(v[0] + v[1]), sum); sums[t] = sum; }""",
    1,
    64,
    {"x": whole(128, dtype="uint32"), "z": zeros(128, dtype="uint32"), "sums": zeros(64, dtype="int32")},
    lambda a: (lambda z: {"z": z, "sums": np.r_[0, z.reshape(64, 2).sum(1).cumsum()[:-1]]})(np.sort(a["x"])),
    name="by_library",
)

# --- written by hand

case(
    """__global__ void inline_ptx(const unsigned *x, unsigned *z, unsigned *lanes) {
  int i = threadIdx.x; unsigned v = x[i], a, b, c, lane, below;
  asm("lop3.b32 %0, %1, %2, %3, 0x96;" : "=r"(a) : "r"(v), "r"(v >> 3), "r"(0x55u));
  asm("bfe.u32 %0, %1, 4, 9;" : "=r"(b) : "r"(v));
  asm("bfi.b32 %0, %1, %2, 8, 12;" : "=r"(c) : "r"(v), "r"(0xf000000fu));
  asm("mov.u32 %0, %%laneid;" : "=r"(lane)); asm("mov.u32 %0, %%lanemask_lt;" : "=r"(below));
  z[i] = a + 3 * b + c; lanes[i] = lane * 1000 + __popc(below); }""",
    1,
    64,
    {"x": whole(64, high=2**31, dtype="uint32"), "z": zeros(64, dtype="uint32"), "lanes": zeros(64, dtype="uint32")},
    lambda a: {
        "z": (a["x"] ^ a["x"] >> 3 ^ 0x55)
        + 3 * (a["x"] >> 4 & 0x1FF)
        + (np.uint32(0xF000000F) & ~np.uint32(0xFFF00) | (a["x"] & 0xFFF) << 8),
        "lanes": np.arange(64) % 32 * 1001,
    },
)
case(
    """__global__ void labels(const int *x, int *z) {
  int i = threadIdx.x, v = x[i], s = 0;
again: if (v > 40) { v -= 37; s++; goto again; }
  do { if (v & 1) { v += 5; continue; } v >>= 1; s += 100; } while (v > 6);
  z[i] = s * 1000 + v; }""",
    1,
    64,
    {"x": whole(64), "z": zeros(64, dtype="int32")},
    lambda a: {"z": np.array([_labels(v) for v in a["x"].tolist()])},
)


def _labels(v: int) -> int:
    s = 0
    while v > 40:
        v, s = v - 37, s + 1
    while True:
        if v & 1:
            v += 5
        else:
            v, s = v >> 1, s + 100
        if v <= 6:
            return s * 1000 + v


case(
    """#include <assert.h>
__global__ void asserted(const int *x, int *z) { int i = threadIdx.x; assert(x[i] >= 0);
    if (x[i] > 100000) __trap(); z[i] = x[i] + 1; }""",
    1,
    64,
    {"x": whole(64), "z": zeros(64, dtype="int32")},
    lambda a: {"z": a["x"] + 1},
    name="asserted",
)
case(
    """__global__ void double_single(const float *x, float *high, float *low, int n) {
  float s = 0, c = 0; for (int k = threadIdx.x; k < n; k += blockDim.x) {
    float t = __fadd_rn(s, x[k]), b = __fsub_rn(t, s); c = __fadd_rn(c, __fadd_rn(__fsub_rn(s, __fsub_rn(t, b)),
    __fsub_rn(x[k], b))); s = t; }
  high[threadIdx.x] = s; low[threadIdx.x] = c; }""",
    1,
    32,
    {"x": floats(32 * 50) * 1000, "high": zeros(32), "low": zeros(32)},
    lambda a: _double_single(a["x"].reshape(50, 32)),
    n=1600,
    tolerance=1e-5,
)


def _double_single(x: NDArray[Any]) -> Arrays:
    s = c = np.zeros(32, np.float32)
    for row in x:
        t = s + row
        b = t - s
        s, c = t, c + ((s - (t - b)) + (row - b))
    return {"high": s, "low": c}

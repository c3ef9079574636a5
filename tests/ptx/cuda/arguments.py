"""CUDA kernels by what is passed to them, and with templates, lambdas and lanes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.ptx.cuda.case import case, floats, whole, zeros

# --- what is passed

case(
    """struct Line { float a, b; int n; };
__global__ void struct_by_value(const float *x, float *z, Line line) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < line.n) z[i] = line.a * x[i] + line.b; }""",
    2,
    64,
    {"x": floats(128), "z": zeros(128)},
    lambda a: {"z": np.where(np.arange(128) < 100, np.float32(2) * a["x"] + np.float32(0.5), 0)},
    name="struct_by_value",
    line_0=int(np.float32(2).view(np.int32)),
    line_1=int(np.float32(0.5).view(np.int32)),
    line_2=100,
)
case(
    """struct Weights { int w[4]; };
__global__ void array_by_value(const int *x, int *z, Weights p) {
  int i = threadIdx.x, s = 0;
  for (int k = 0; k < 4; k++) s += p.w[k] * x[i + k];
  z[i] = s + p.w[x[i] & 3]; }""",
    1,
    64,
    {"x": whole(67), "z": zeros(64, dtype="int32")},
    lambda a: {
        "z": sum((k + 2) * a["x"][k : 64 + k] for k in range(4)) + np.array([2, 3, 4, 5])[a["x"][:64] & 3],
    },
    name="array_by_value",
    p_0=2,
    p_1=3,
    p_2=4,
    p_3=5,
)
case(
    """extern __shared__ unsigned char raw[];
__global__ void carved_shared(const float *x, const int *k, float *z) {
  int t = threadIdx.x; float *values = (float *)raw; int *keys = (int *)(values + blockDim.x);
  values[t] = x[t]; keys[t] = k[t]; __syncthreads();
  z[t] = values[keys[t] % blockDim.x] + keys[blockDim.x - 1 - t]; }""",
    1,
    96,
    {"x": floats(96), "k": whole(96), "z": zeros(96)},
    lambda a: {"z": a["x"][a["k"] % 96] + a["k"][::-1]},
    name="carved_shared",
    shared=96 * 8,
    tolerance=1e-6,
)
case(
    """__device__ int counter; __device__ float offsets[4] = {0.5f, 1.5f, 2.5f, 3.5f};
__global__ void module_variables(int *z, float *f) {
  int i = threadIdx.x; atomicAdd(&counter, 1); __syncthreads(); z[i] = counter; f[i] = offsets[i & 3]; }""",
    1,
    64,
    {"z": zeros(64, dtype="int32"), "f": zeros(64)},
    lambda a: {"z": np.full(64, 64), "f": np.arange(64) % 4 + 0.5},
    name="module_variables",
)
case(
    """__global__ void __launch_bounds__(128, 2) read_only(const float *__restrict__ x, float *__restrict__ z,
    int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) __stcs(z + i, __ldg(x + i) + __ldcs(x + i) * __ldcg(x + n - 1 - i) + __ldca(x + i)); }""",
    2,
    128,
    {"x": floats(200), "z": zeros(200)},
    lambda a: {"z": a["x"] + a["x"] * a["x"][::-1] + a["x"]},
    name="read_only",
    n=200,
)

# --- templates and lambdas

case(
    """template <typename T, bool SQUARED, int... STEPS> __global__ void folded(const T *x, T *z) {
  int i = threadIdx.x; T s = (x[i + STEPS] + ...); if constexpr (SQUARED) s *= s; z[i] = s; }""",
    1,
    64,
    {"x": whole(70), "z": zeros(64, dtype="int32")},
    lambda a: {"z": (a["x"][:64] + a["x"][2:66] + a["x"][5:69]) ** 2},
    name="folded<int, true, 0, 2, 5>",
    options=("--std=c++17",),
)
case(
    """template <typename F, typename G> __device__ auto composed(F f, G g) { return [=](auto v) { return f(g(v));
    }; }
__global__ void generic_lambdas(const int *x, int *z, int a) {
  int i = threadIdx.x, calls = 0;
  auto twice = [](auto v) { return 2 * v; }; auto add = [&](int v) { calls++; return v + a; };
  z[i] = composed(twice, add)(x[i]) + add(x[i]) * 3 + calls; }""",
    1,
    64,
    {"x": whole(64), "z": zeros(64, dtype="int32")},
    lambda a: {"z": 2 * (a["x"] + 7) + 3 * (a["x"] + 7) + 2},
    name="generic_lambdas",
    a=7,
)
case(
    """template <int N> struct Tile { float v[N][N];
  __device__ float trace() const { float s = 0; for (int i = 0; i < N; i++) s += v[i][i]; return s; } };
template <int N> __global__ void class_templates(const float *x, float *z) {
  int t = threadIdx.x; Tile<N> own; for (int i = 0; i < N; i++) for (int j = 0; j < N; j++)
  own.v[i][j] = x[t * N * N + j * N + i]; z[t] = own.trace(); }""",
    1,
    32,
    {"x": floats(32, 5, 5), "z": zeros(32)},
    lambda a: {"z": np.trace(a["x"], axis1=1, axis2=2)},
    name="class_templates<5>",
    tolerance=1e-6,
)
case(
    """template <typename T> struct Plus { static constexpr T zero = 0;
    __device__ T operator()(T a, T b) { return a + b; } };
template <typename T> struct Most { static constexpr T zero = -1000000;
    __device__ T operator()(T a, T b) { return a > b ? a : b; } };
template <typename T, template <typename> class OP> __global__ void by_operator(const T *x, T *z) {
  __shared__ T s[64]; int t = threadIdx.x; OP<T> op; s[t] = op(OP<T>::zero, x[t]); __syncthreads();
  for (int d = 32; d; d >>= 1) { if (t < d) s[t] = op(s[t], s[t + d]); __syncthreads(); }
  if (t == 0) *z = s[0]; }""",
    1,
    64,
    {"x": whole(64, low=-500, high=500), "z": zeros(1, dtype="int32")},
    lambda a: {"z": a["x"].max(keepdims=True)},
    name="by_operator<int, Most>",
)

# --- lanes

case(
    """__global__ void shuffles_of_all_types(const double *x, const long long *w, double *z, long long *v, float *f) {
  int i = threadIdx.x; z[i] = __shfl_xor_sync(~0u, x[i], 5); v[i] = __shfl_down_sync(~0u, w[i], 3, 16);
  f[i] = __shfl_sync(~0u, (float)i, i / 2, 8); }""",
    1,
    64,
    {
        "x": floats(64, dtype="float64"),
        "w": whole(64, high=2**50, dtype="int64"),
        "z": zeros(64, dtype="float64"),
        "v": zeros(64, dtype="int64"),
        "f": zeros(64),
    },
    lambda a: {
        "z": a["x"][np.arange(64) ^ 5],
        "v": a["w"][np.where(np.arange(64) % 16 < 13, np.arange(64) + 3, np.arange(64))],
        "f": np.arange(64) // 8 * 8 + np.arange(64) // 2 % 8,
    },
)
case(
    """__global__ void compacted(const int *x, int *z, int *count) {
  int lane = threadIdx.x & 31, i = blockIdx.x * blockDim.x + threadIdx.x; bool kept = x[i] % 3 == 0;
  unsigned chosen = __ballot_sync(~0u, kept); int place = __popc(chosen & ((1u << lane) - 1)), first = 0;
  if (lane == 0) first = atomicAdd(count, __popc(chosen)); first = __shfl_sync(~0u, first, 0);
  if (kept) z[first + place] = x[i]; }""",
    1,
    32,
    {"x": whole(32), "z": zeros(32, dtype="int32"), "count": zeros(1, dtype="int32")},
    lambda a: {
        "z": (lambda kept: np.r_[kept, np.zeros(32 - len(kept), int)])(a["x"][a["x"] % 3 == 0]),
        "count": np.array([(a["x"] % 3 == 0).sum()]),
    },
)
case(
    """__global__ void active_lanes(const int *x, int *z) {
  int i = threadIdx.x; if (x[i] & 1) z[i] = __popc(__activemask()); else z[i] = -__popc(__activemask());
  __syncwarp(); int all; unsigned same = __match_all_sync(~0u, x[i] > 5000, &all);
    z[i] += 100 * all + 1000 * (same == ~0u); }""",
    1,
    64,
    {"x": whole(64), "z": zeros(64, dtype="int32")},
    lambda a: {
        "z": np.concatenate([np.where(r & 1, (r & 1).sum(), -(1 - (r & 1)).sum()) for r in a["x"].reshape(2, 32)])
        + 1100
    },
)
case(
    """__global__ void warp_aggregated(const int *x, int *bins) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, key = x[i] & 7; unsigned same = __match_any_sync(~0u, key);
  if ((threadIdx.x & 31) == __ffs(same) - 1) atomicAdd(&bins[key], __popc(same)); }""",
    3,
    64,
    {"x": whole(192), "bins": zeros(8, dtype="int32")},
    lambda a: {"bins": np.bincount(a["x"] & 7, minlength=8)},
)
case(
    """__global__ void reductions_of_lanes(const unsigned *x, unsigned *z) {
  int i = threadIdx.x; z[i] = __reduce_and_sync(~0u, x[i] | 3) + __reduce_or_sync(~0u, x[i]) * 3
  + __reduce_xor_sync(~0u, x[i]) * 5 + __reduce_min_sync(~0u, x[i]) * 7; }""",
    1,
    64,
    {"x": whole(64, dtype="uint32"), "z": zeros(64, dtype="uint32")},
    lambda a: {
        "z": np.repeat(
            [
                np.bitwise_and.reduce(r | 3) + 3 * np.bitwise_or.reduce(r) + 5 * np.bitwise_xor.reduce(r) + 7 * r.min()
                for r in a["x"].reshape(2, 32)
            ],
            32,
        )
    },
)
case(
    """#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__global__ void small_tiles(const int *x, int *z) {
  auto tile = cg::tiled_partition<8>(cg::this_thread_block()); int i = cg::this_grid().thread_rank();
  int v = x[i] + tile.shfl(x[i], 2) + tile.shfl_down(x[i], 1) * tile.any(x[i] > 990) + tile.ballot(x[i] & 1);
  z[i] = v + tile.meta_group_rank() * 1000 + tile.thread_rank() + tile.size(); }""",
    2,
    64,
    {"x": whole(128), "z": zeros(128, dtype="int32")},
    lambda a: {"z": _small_tiles(a["x"].reshape(-1, 8))},
    name="small_tiles",
)


def _small_tiles(x: NDArray[Any]) -> NDArray[Any]:
    lane, tile = np.arange(8), np.arange(len(x))[:, None]
    down = x[:, np.minimum(lane + 1, 7)]
    found = x + x[:, 2:3] + down * (x > 990).any(1, keepdims=True) + ((x & 1) << lane).sum(1, keepdims=True)
    return np.asarray(found + tile % 8 * 1000 + lane + 8).ravel()


case(
    """#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__global__ void coalesced(const int *x, int *z, int *count) {
  int i = threadIdx.x; if (x[i] % 3) return; auto active = cg::coalesced_threads(); int first;
  if (active.thread_rank() == 0) first = atomicAdd(count, active.size());
  z[active.shfl(first, 0) + active.thread_rank()] = x[i]; }""",
    1,
    32,
    {"x": whole(32), "z": zeros(32, dtype="int32"), "count": zeros(1, dtype="int32")},
    lambda a: {"z": (lambda kept: np.r_[kept, np.zeros(32 - len(kept), int)])(a["x"][a["x"] % 3 == 0])},
    name="coalesced",
)
case(
    """#include <cooperative_groups.h>
#include <cooperative_groups/scan.h>
namespace cg = cooperative_groups;
__global__ void scanned_group(const int *x, int *z) {
  auto block = cg::this_thread_block(); auto warp = cg::tiled_partition<32>(block); int i = block.thread_rank();
  z[i] = cg::inclusive_scan(warp, x[i]) + cg::exclusive_scan(warp, x[i], cg::plus<int>()) + block.group_index().x
  + block.thread_index().y * 2 + block.dim_threads().x; }""",
    1,
    (16, 4),
    {"x": whole(64), "z": zeros(64, dtype="int32")},
    lambda a: {
        "z": np.concatenate([2 * r.cumsum() - r for r in a["x"].reshape(2, 32)]) + np.arange(64) // 16 * 2 + 16,
    },
    name="scanned_group",
)

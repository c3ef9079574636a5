"""Loops beyond the budget have some of their iterations run for the others; counts are near those of all."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from perfmodel import Kernel
from perfmodel.counting.counts import KernelCounts
from perfmodel.vocabulary.named_features import feature

pytest.importorskip("nvidia.cuda_nvrtc", reason="the compiler of the extra nvidia is not installed")

TRIANGLE = """
__global__ void triangle(const float *a, float *c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float best = 0;
  for (int t = 0; t < n; t++) {
    float sum = 0;
    #pragma unroll 1
    for (int s = 0; s <= t; s++) sum += a[t * n + s] * s;
    if (sum > a[i]) best = fmaxf(best, sum);
  }
  c[i] = best;
}
"""
TRIPLE = """
__global__ void triple(const float *a, float *c, int n) {
  float sum = 0;
  for (int t = 0; t < n; t++) {
    for (int s = 0; s < n; s++) {
      #pragma unroll 1
      for (int r = 0; r < n; r++) sum += a[t * n + r] * a[s * n + r];
      sum = sqrtf(sum);
    }
    c[threadIdx.x] = sum;
  }
}
"""
SWAPPED = """
__global__ void swapped(const float *a, float *c, int n) {
  __shared__ float rows[2][64];
  float *now = rows[0], *next = rows[1];
  int place = threadIdx.x;
  now[threadIdx.x] = a[threadIdx.x];
  #pragma unroll 1
  for (int t = 0; t < n; t++) {
    __syncthreads();
    next[threadIdx.x] = now[place & 63] + 1;
    place = (place * 5 + 3) & 63;
    float *other = now; now = next; next = other;
    if (a[t & 1023] > 0.5f) c[threadIdx.x] = next[0];
  }
}
"""
NEAREST = """
__global__ void nearest(const float *a, int *c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, found = 0;
  float best = 1e30f;
  for (int j = 0; j < n; j++) {
    float d = fabsf(a[j] - a[i]);
    if (d < best) { best = d; found = j; c[i] = found; }
  }
}
"""

KEPT = """
__global__ void kept(const float *a, float *c, int n, int k) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float best[32];
  for (int j = 0; j < k; j++) best[j] = 1e30f;
  #pragma unroll 1
  for (int j = 0; j < n; j++) {
    float d = fabsf(a[j] - a[i]);
    if (d < best[k - 1]) {
      best[k - 1] = d;
      #pragma unroll 1
      for (int m = k - 1; m > 0 && best[m] < best[m - 1]; m--) {
        float other = best[m]; best[m] = best[m - 1]; best[m - 1] = other;
      }
    }
  }
  c[i] = best[0];
}
"""


def triangle(n: int = 1024) -> Kernel:
    return Kernel.from_cuda(TRIANGLE, "triangle", 4, 64, {"a": "n*n", "c": 256}, n=n)


def nearest(n: int = 20000) -> Kernel:
    return Kernel.from_cuda(NEAREST, "nearest", 16, 128, {"a": "n", "c": 2048}, n=n)


def counts(kernel: Kernel, budget: float) -> KernelCounts:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return kernel.with_budget(budget).counts_for(32)


def operations(found: KernelCounts) -> dict[tuple[str, str], float]:
    total: dict[tuple[str, str], float] = {}
    for each in found.operations:
        key = each.kind, each.dtype
        total[key] = total.get(key, 0) + each.per_execution * float(each.executions.workitem({}))
    return total


def test_work_ends_and_counts_are_near_all() -> None:
    every, some = (operations(counts(triangle(256), budget)) for budget in (100, 0.01))
    assert some.keys() == every.keys()
    for key, number in every.items():
        assert some[key] == pytest.approx(number, rel=0.1), key


def test_pointers_that_change_places_stay_within_their_arrays() -> None:
    kernel = Kernel.from_cuda(SWAPPED, "swapped", 4, 64, {"a": 1024, "c": 64}, n=20000)
    every, some = (operations(counts(kernel, budget)) for budget in (100, 0.01))
    assert some["add", "float32"] == every["add", "float32"]


def test_loops_that_are_skipped_through_count_in_loops_that_are_cut() -> None:
    kernel = Kernel.from_cuda(TRIPLE, "triple", 4, 64, {"a": "n*n", "c": 256}, n=200)
    every, some = (operations(counts(kernel, budget)) for budget in (100, 0.002))
    assert some["madd", "float32"] == pytest.approx(every["madd", "float32"], rel=0.02)


def test_loops_of_which_the_end_is_known_are_counted_exactly() -> None:
    every, some = (operations(counts(nearest(), budget)) for budget in (100, 0.05))
    assert some["add", "float32"] == every["add", "float32"]


def test_estimates_say_how_far_they_are_off() -> None:
    found = counts(nearest(), 0.05)
    assert found.sampled
    assert found.replicas
    stores = [each for each in found.accesses if each.direction == "store"]
    assert all(factor != 1 for access in stores for replica in access.executions.spread for factor in replica[:1])
    assert not counts(nearest(), 100).replicas


def test_nothing_changes_within_the_budget() -> None:
    kernel = nearest(2500)
    assert operations(counts(kernel, 1)) == operations(counts(kernel, 100))
    assert not counts(kernel, 1).replicas


def test_footprints_stay_known() -> None:
    every, some = (
        {(each.variable, each.direction): each.elements for each in counts(nearest(), budget).footprints}
        for budget in (100, 0.02)
    )
    assert {key for key, count in some.items() if count is None} == {k for k, count in every.items() if count is None}
    loaded = every["a", "load"]
    if loaded is not None:
        assert float(some["a", "load"]({})) == pytest.approx(float(loaded({})), rel=0.05)  # type: ignore[misc]


def test_budget_is_of_work() -> None:
    kernel = nearest()
    first, second = (operations(counts(kernel, 0.05)) for _ in range(2))
    assert first == second
    assert feature("f_op_float32_add").eval(kernel.with_budget(0.05)) == first["add", "float32"]


def test_an_end_that_is_loaded_in_the_loop_is_known() -> None:
    """Compilers leave a parameter's load where it is used, though it is the same in every iteration."""
    text = """.version 8.0
.target sm_90
.address_size 64
.visible .entry f(.param .u64 out, .param .u32 n) {
  .reg .pred %p<3>; .reg .b32 %r<6>; .reg .f32 %f<2>; .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, 0;
  mov.f32 %f1, 0f00000000;
$L1:
  add.f32 %f1, %f1, 0f3F800000;
  add.s32 %r2, %r1, 1;
  and.b32 %r3, %r2, 15;
  setp.ne.s32 %p1, %r3, 0;
  @%p1 bra $L2;
  st.global.f32 [%rd1], %f1;
$L2:
  ld.param.u32 %r4, [n];
  shl.b32 %r5, %r4, 1;
  setp.lt.s32 %p2, %r2, %r5;
  mov.u32 %r1, %r2;
  @%p2 bra $L1;
  ret;
}
"""
    kernel = Kernel.from_ptx(text, "f", 1, 32, {"out": 1}, n=2000)
    every, some = counts(kernel, 100), counts(kernel, 0.005)
    assert operations(every)["add", "float32"] == operations(some)["add", "float32"] == 4000 * 32
    assert some.sampled
    assert not every.sampled


COLUMNS = """
__global__ void columns(const float *a, float *c, int n, int w) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, base = i / w * w * n + i % w, last = 0;
  float best = 0;
  for (int k = 0; k < n; k++) {
    float v = a[base + k * w] + a[base + last * w];
    if (v > best) { best = v; last = k; }
  }
  c[i] = best;
}
"""


def columns(again: str = "k * w") -> Kernel:
    text = COLUMNS.replace("k * w", again, 1)
    given = np.random.default_rng(1).uniform(0, 1, 264 * 3000).astype(np.float32)
    return Kernel.from_cuda(text, "columns", 4, 64, {"a": len(given), "c": 256}, n=3000, w=24).as_observed({"a": given})


@pytest.mark.parametrize(("again", "rows"), [("k * w", 3000), ("k % 16 * w", 16)])
def test_iterations_that_are_not_run_go_on_to_other_places_or_not_as_those_that_are(again: str, rows: int) -> None:
    loaded = feature("f_mem_footprint_global_load_granularity:workgroup_block:32")
    every, some = (float(loaded.eval(columns(again).with_budget(budget))) for budget in (100, 0.01))
    assert counts(columns(again), 0.01).sampled
    assert every == pytest.approx(256 * rows * 4, rel=0.6)  # rows of 24 floats, each three sectors
    assert some == pytest.approx(every, rel=0.15)


UNTIL_FOUND = """
__global__ void found(const float *a, int *c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, count = 0;
  for (int k = 0; k < n; k++) {
    if (a[k] > a[i]) {
      c[i * 64 + (count & 63)] = k;
      if (++count == 1000000) break;
    }
  }
}
"""


def test_loops_that_data_may_end_and_do_not_are_counted_for_those_that_are_not_run() -> None:
    """A loop of which running all takes too long is cut into parts although it might end earlier."""
    n = 60_000
    given = np.random.default_rng(2).uniform(0, 1, n).astype(np.float32)
    kernel = Kernel.from_cuda(UNTIL_FOUND, "found", 2, 128, {"a": n, "c": 256 * 64}, n=n).as_observed({"a": given})
    loads = feature("f_mem_access_global_load")
    some = kernel.with_budget(0.02)
    assert float(loads.eval(some)) == pytest.approx(2 * 256 * n, rel=0.05)  # of both sides of the test
    assert counts(kernel, 0.02).sampled


NEIGHBOURS = """
__global__ void neighbours(const float *a, float *c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  for (int j = 0; j < n; j++)
    if (fabsf(a[j] - a[i]) < 0.0015f) c[i] += sqrtf(a[j]) / (1.0f + a[i]);
}
"""


@pytest.mark.parametrize("is_even", [True, False])
def test_the_busiest_sub_group_is_not_the_one_whose_run_iterations_happen_to_do_most(is_even: bool) -> None:
    """Sub-groups that all do about as much do so by some iterations, too; one that does more is still told."""
    n, items = 30_000, 512
    given = np.random.default_rng(4).uniform(0, 1, n).astype(np.float32)
    if not is_even:  # a third of all values are those that one block has
        given[:32] = np.linspace(0.4999, 0.5001, 32)
        given[n // 3 :: 3] = 0.5
    near = np.abs(given[:items, None] - given[None]) < 0.0015
    truth = near.reshape(-1, 32, n).any(axis=1).sum(axis=1)
    kernel = Kernel.from_cuda(NEIGHBOURS, "neighbours", items // 128, 128, {"a": n, "c": items}, n=n)
    (stored,) = [each for each in counts(kernel.as_observed({"a": given}), 0.02).accesses if each.direction == "store"]
    busiest = float(stored.executions.longest[0]({})) / items
    if is_even:
        assert busiest == pytest.approx(truth.max(), rel=0.3)
    else:
        assert truth.max() > busiest > 1.4 * np.median(truth)


def test_what_is_kept_is_kept_ever_more_seldom() -> None:
    """The n-th of random numbers is among the k least until then with a probability of k / n."""
    n, k, items = 1024, 8, 128
    kernel = Kernel.from_cuda(KEPT, "kept", items // 128, 128, {"a": "n", "c": items}, n=n, k=k)
    every, some = (
        sum(
            float(each.executions.workitem({}))
            for each in counts(kernel, budget).accesses
            if each.space in ("private", "scratch") and each.direction == "store"
        )
        for budget in (100, 0.02)
    )
    assert every > items * k * (1 + np.log(n / k)) * k / 2  # as many are kept, and moved up half of the way
    assert some == pytest.approx(every, rel=0.35)

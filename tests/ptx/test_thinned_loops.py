"""Loops beyond the budget have some of their iterations run for the others; counts are near those of all."""

from __future__ import annotations

import warnings

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
    every, some = (operations(counts(triangle(), budget)) for budget in (100, 0.05))
    assert some.keys() == every.keys()
    for key, number in every.items():
        assert some[key] == pytest.approx(number, rel=0.1), key


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
        for budget in (100, 0.05)
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

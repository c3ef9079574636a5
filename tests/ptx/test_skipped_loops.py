"""Counts of loops whose turns are not all run are those of running all of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from benchmarks.cuda_kernels.twins import TWINS
from perfmodel import Kernel
from perfmodel.ptx.emulation.deciding import Deciding
from perfmodel.vocabulary.named_features import feature
from tests.ptx.cuda import CASES
from tests.ptx.executed import executions

pytest.importorskip("nvidia.cuda_nvrtc", reason="the compiler of the extra nvidia is not installed")

WITHOUT_DATA = ("matmul", "grid_stride", "nbody", "random", "jacobi", "tree_sum", "scan", "layer_norm", "softmax")


TRIED_AGAIN = ("atomics_of_halves", "doubles_by_cas")
"""Their comparisons and exchanges are made until they succeed."""


@pytest.mark.parametrize("title", TRIED_AGAIN)
def test_what_is_tried_until_it_succeeds_is_tried_once_as_if_each_lane_came_alone(title: str) -> None:
    case = CASES[title]
    kernel = case.kernel()
    every, _, _ = executions(kernel, case.arrays, False)
    some, _, _ = executions(kernel, case.arrays, True)
    lanes = [[np.array(block[0]) for block in blocks] for blocks in (every, some)]
    assert all((ours <= theirs).all() for theirs, ours in zip(*lanes, strict=True))
    assert sum(int(ours.sum()) for ours in lanes[1]) < sum(int(theirs.sum()) for theirs in lanes[0])


@pytest.mark.parametrize("title", [title for title in CASES if title not in TRIED_AGAIN])
def test_executions_are_the_same(title: str) -> None:
    case = CASES[title]
    kernel = case.kernel()
    every, every_place, none = executions(kernel, case.arrays, False)
    some, some_places, _ = executions(kernel, case.arrays, True)
    assert none == 0
    assert some == every
    assert some_places == every_place


NESTED = """
__global__ void nested(const float *a, const float *b, float *c, int n, int m, int k) {
  __shared__ float tile[256];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0;
  for (int q = 0; q < m; q++) {
    tile[threadIdx.x] = a[q * n + i];
    __syncthreads();
    for (int p = 0; p < k; p++) {
      float r = 0;
      for (int x = 0; x < n / 64; x++) r += tile[x] * b[p * n + x];
      sum += expf(r);
    }
    __syncthreads();
    c[q * n + i] = sum;
  }
}
"""


def nested() -> Kernel:
    """A loop whose turns are alike, in another such, in a third."""
    arrays = {"a": "n*m", "b": "n*k", "c": "n*m"}
    return Kernel.from_cuda(NESTED, "nested", "n / 256", 256, arrays, n=4096, m=14, k=20)


WALKED = """
.version 8.8
.target sm_90
.address_size 64
.visible .entry walked(.param .u64 x, .param .u64 y, .param .u32 n, .param .u32 k)
{{
  .reg .pred %p<2>; .reg .b32 %r<8>; .reg .b64 %rd<8>; .reg .f32 %f<3>;
  ld.param.u64 %rd1, [x];
  ld.param.u64 %rd2, [y];
  ld.param.u32 %r1, [n];
  ld.param.u32 %r2, [k];
  mov.u32 %r3, %tid.x;
  mul.wide.u32 %rd3, %r3, 4;
  add.s64 %rd4, %rd1, %rd3;
  add.s64 %rd5, %rd2, %rd3;
  mov.u32 %r4, 0;
  mov.f32 %f1, 0f00000000;
AGAIN:
  ld.global.f32 %f2, [%rd4];
  add.f32 %f1, %f1, %f2;
  shl.b32 %r5, %r1, 2;
  cvt.s64.s32 %rd6, %r5;
  add.s64 %rd4, %rd4, %rd6;
  {}
  setp.lt.s32 %p1, %r4, %r2;
  @%p1 bra AGAIN;
  st.global.f32 [%rd5], %f1;
  ret;
}}
"""


COUNTED = ("add.s32 %r4, %r4, 1;", "cvt.s64.s32 %rd7, %r4; cvt.u32.u64 %r6, %rd7; add.s32 %r4, %r6, 1;")
"""A loop counts its iterations in one of these ways; where it needs the number in 64 bits as well, it goes on there."""


@pytest.mark.parametrize("counted", COUNTED)
def test_steps_that_iterations_compute_anew_are_skipped_over(counted: str) -> None:
    """Compilers leave them in the loop where they cost less than a register."""
    kernel = Kernel.from_ptx(WALKED.format(counted), None, 1, 64, {"x": "n*k", "y": 64}, n=64, k=500)
    every, every_place, none = executions(kernel, None, False)
    some, some_places, skipped = executions(kernel, None, True)
    assert (none, skipped) == (0, 496)
    assert some == every
    assert some_places == every_place


@pytest.mark.parametrize("name", ["column sums", "row sums", "tiled product", "nested"])
def test_features_are_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = nested() if name == "nested" else TWINS[name].cuda()
    names = [
        "f_op_float32_madd",
        "f_op_float32_add_granularity:subgroup",
        "f_op_float32_carried_granularity:longest",
        "f_mem_rounds_global_granularity:longest",
        "f_mem_footprint_global_load",
        "f_mem_footprint_global_load_granularity:workgroup_block:32",
        "f_mem_transactions_global_load_block:128",
        "f_mem_transactions_local_banks:32",
        "f_sync_barrier_local",
        "f_branch_loop",
    ]
    program: Any = kernel.program
    assert executions(kernel, None, True)[2] > (5 if name == "nested" else 20)
    found = {name: feature(name).eval(kernel) for name in names}
    plain = type(program).emulated
    monkeypatch.setattr(type(program), "emulated", lambda own, v, **o: plain(own, v, **{**o, "extrapolate": False}))
    program._counts.clear()
    assert {name: feature(name).eval(kernel) for name in names} == found


def test_iterations_of_nested_loops_are_skipped() -> None:
    kernel = nested()
    every, every_place, none = executions(kernel, None, False)
    some, some_places, _ = executions(kernel, None, True)
    assert (some, some_places, none) == (every, every_place, 0)
    inner, middle = (executions(kernel.at(m=1, k=k), None, True)[2] for k in (1, 20))
    assert 0 < middle < 20 * inner / 2, "turns of the middle loop are skipped with those of the inner one in them"


def test_what_data_decide_is_run() -> None:
    kernel = CASES["collatz"].kernel()
    assert executions(kernel, {"x": np.full(128, 27, "int32")}, True)[2] == 0


ORDERED = """
__global__ void ordered(const int *order, const float *x, float *y, int n, int m) {
  __shared__ int places[128];
  __shared__ float sums[128];
  int t = threadIdx.x, i = blockIdx.x * 128 + t;
  places[t] = order[i] / 2;
  places[t] += order[i] % 2;
  __syncthreads();
  int j = places[127 - t];
  float sum = 0;
  for (int k = 0; k < m; k++) sum += expf(x[k * n + j]);
  sums[t] = sum;
  __syncthreads();
  y[i] = sums[t ^ 1];
}
"""


def test_only_what_decides_is_run_where_data_decide() -> None:
    """Places that a kernel stores and loads again are computed; the sums that it then makes are not."""
    kernel = Kernel.from_cuda(ORDERED, "ordered", "n / 128", 128, {"order": "n", "x": "n * m", "y": "n"}, n=1024, m=300)
    order = {"order": np.random.default_rng(5).permutation(1024).astype(np.int32)}
    every, every_place, none = executions(kernel, order, False)
    some, some_places, _ = executions(kernel, order, True)
    assert (some, some_places, none) == (every, every_place, 0)
    program: Any = kernel.program
    needed = Deciding(program.code).instructions
    assert any(each.opcode == "st" for each in needed)
    assert not any(type_.is_float for each in needed for type_ in each.types)
    names = [
        "f_mem_transactions_global_load_block:32",
        "f_mem_transactions_local_banks:32",
        "f_op_float32_native",
    ]
    observed = kernel.as_observed(order)
    found = [feature(name).eval(observed) for name in names]
    program = observed.program
    with pytest.MonkeyPatch.context() as patch:
        plain = type(program).emulated
        patch.setattr(type(program), "emulated", lambda own, v, **o: plain(own, v, **{**o, "extrapolate": False}))
        program._counts.clear()
        assert [feature(name).eval(observed) for name in names] == found


def test_time_does_not_grow_with_loops() -> None:
    source = """
extern "C" __global__ void sums(const float *u, float *s, int n, int m) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float t = 0;
  for (int k = 0; k < m; k++) t += u[k];
  s[i] = t;
}
"""
    kernel = Kernel.from_cuda(source, "sums", "n / 64", 64, {"u": "m", "s": "n"}, n=6400, m=10**9)
    assert feature("f_op_float32_add").eval(kernel) == 6400 * 10**9
    assert feature("f_mem_footprint_global_load").eval(kernel) == 4 * 10**9

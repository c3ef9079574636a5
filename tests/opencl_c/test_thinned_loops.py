"""Loops of kernels that data decide have some iterations run for the others beyond the budget; counts stay near."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import perfmodel as pm
from perfmodel.basics.errors import EmulationError
from perfmodel.counting.counts import CountingWarning, KernelCounts
from perfmodel.modelling.prediction import predict

NEAR = """__kernel void near(__global const float *x, __global float *out, const int n)
{
    int i = get_global_id(0);
    float sum = 0;
    for (int j = 0; j < n; j++) {
        float d = x[j] - x[i];
        if (d * d < 0.04f) sum += exp(d);
    }
    out[i] = sum;
}"""
NEAR_AT_THE_END = """__kernel void near_at_the_end(__global const float *x, __global float *out, const int n)
{
    int i = get_global_id(0), j = 0;
    float sum = 0;
    do {
        float d = x[j] - x[i];
        if (d * d < 0.04f) sum += exp(d);
    } while (++j < n);
    out[i] = sum;
}"""
PAIRS = """__kernel void pairs(__global const float *x, __global int *out, const int n)
{
    int i = get_global_id(0), found = 0;
    for (int j = i + 1; j < n; j++)
        if (x[j] - x[i] > 0.2f) found += j;
    out[i] = found;
}"""
TILED = """__kernel void tiled(__global const float *x, __global float *out, const int n)
{
    __local float tile[64];
    int i = get_global_id(0), l = get_local_id(0);
    float me = x[i], sum = 0;
    for (int start = 0; start < n; start += 64) {
        tile[l] = x[start + l];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int k = 0; k < 64; k++)
            if (tile[k] > me) sum += tile[k] * me;
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    out[i] = sum;
}"""
LEAST = """__kernel void least(__global const float *x, __global int *out, const int n)
{
    int i = get_global_id(0), at = 0;
    float best = 1e30f;
    for (int j = 0; j < n; j++) {
        float d = fabs(x[j] - x[i]);
        if (d < best) { best = d; at = j; out[i] = at; }
    }
}"""
SEARCH = """__kernel void search(__global const float *x, __global int *out, const int n)
{
    int i = get_global_id(0), j = 0;
    for (j = 0; j < n; j++)
        if (x[j] > 1.999f * x[i] - 0.98f) break;
    out[i] = j;
}"""
CATCHES_UP = """__kernel void catches_up(__global const float *x, __global int *out, const int n)
{
    int i = get_global_id(0), behind = 0, seen = 0;
    for (int j = 0; j < n; j++)
        while (behind < j) { if (x[behind] > x[i]) seen++; behind++; }
    out[i] = seen;
}"""
N = 4096


def kernel(source: str, n: int = N) -> pm.Kernel:
    name = source.split("(")[0].split()[-1]
    return pm.Kernel.from_opencl(source, name, "n", 64, {"x": "n", "out": "n"}, n=n)


def data(n: int = N) -> dict[str, np.ndarray]:
    return {"x": np.random.default_rng(3).random(n, np.float32)}


def observed(source: str, budget: float, n: int = N) -> pm.Kernel:
    found = kernel(source, n).with_budget(budget).as_countable(data(n))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found.counts_for(32)
    return found


def executions(counts: KernelCounts) -> dict[str, float]:
    """Returns executions by work-items of all operations, and by work-items and sub-groups of all accesses."""
    found: dict[str, float] = {}
    for operation in counts.operations:
        key = f"{operation.kind} {operation.dtype}"
        found[key] = found.get(key, 0) + float(operation.executions.workitem({"n": N}))
    for access in counts.accesses:
        key = f"{access.direction} {access.variable} {access.instruction}"
        found[key] = float(access.executions.workitem({"n": N}))
        assert access.executions.subgroup is not None
        found[f"sub-groups: {key}"] = float(access.executions.subgroup({"n": N}))
    return found


@pytest.mark.parametrize("source", [NEAR, NEAR_AT_THE_END, PAIRS, TILED])
def test_counts_are_near_those_of_all_iterations(source: str) -> None:
    every, some = (observed(source, budget).counts_for(32) for budget in (100, 0.02))
    assert some.replicas > every.replicas
    found, expected = executions(some), executions(every)
    assert found != expected
    for key, number in expected.items():
        assert found[key] == pytest.approx(number, rel=0.1), key


def test_a_loop_with_its_test_at_the_end_is_as_one_with_it_at_the_beginning() -> None:
    one, other = (observed(source, 0.02).counts_for(32) for source in (NEAR, NEAR_AT_THE_END))
    for kind in ("mul float32", "exp float32"):
        assert executions(other)[kind] == pytest.approx(executions(one)[kind], rel=0.1)


@pytest.mark.parametrize("n", [64, 832, N])
def test_iterations_of_a_loop_with_its_test_at_the_end_are_all_counted(n: int) -> None:
    loads = [each for each in observed(NEAR_AT_THE_END, 0.02, n).counts_for(32).accesses if each.text == "x[j]"]
    assert [float(each.executions.workitem({"n": n})) for each in loads] == [pytest.approx(n * n, rel=1e-3)]


def test_less_work_is_done() -> None:
    full, cut = (pm.emulate(kernel(NEAR), data(), groups="sample", work=work) for work in (1e9, 2000))
    assert not full.is_extrapolated
    assert cut.is_extrapolated
    assert cut.emulation.steps < full.emulation.steps / 4
    assert any(line.startswith("not all iterations were run") for line in cut.headings())
    with pytest.raises(EmulationError, match="are not known"):
        cut.array("out")


def test_nothing_changes_within_the_budget() -> None:
    usual, large = (observed(NEAR, budget, 512).counts_for(32) for budget in (1, 1000))
    assert executions(usual) == executions(large)
    assert usual.replicas == large.replicas


@pytest.mark.parametrize("source", [SEARCH, CATCHES_UP])
def test_loops_whose_end_depends_on_their_state_are_run(source: str) -> None:
    found = pm.emulate(kernel(source, 512), data(512), groups="sample", work=100)
    assert not found.is_extrapolated


def test_intervals_hold_what_a_state_leaves_open() -> None:
    calibration = pm.Calibration.shipped("unified-plus", device="H200")
    every, some = (predict(calibration, observed(LEAST, budget), {}) for budget in (100, 0.02))
    assert some.sampling > every.sampling
    assert abs(np.log(float(some.seconds) / float(every.seconds))) < 3 * some.sampling


def test_estimates_follow_from_work_alone_and_say_so() -> None:
    once, again = (executions(observed(NEAR, 0.02).counts_for(32)) for _ in range(2))
    assert once == again
    with pytest.warns(CountingWarning, match="some iterations of its loops stood for the others"):
        kernel(NEAR).with_budget(0.02).as_countable(data()).counts_for(32)
    with pytest.warns(CountingWarning, match="random data showed how often.*; some iterations of its long loops"):
        kernel(NEAR).with_budget(0.02).counts_for(32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kernel(NEAR).with_budget(100).as_countable(data()).counts_for(32)

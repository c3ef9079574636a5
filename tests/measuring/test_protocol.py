"""Timing one launch: right results, honest trials, and errors that say what to do."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfmodel.basics.errors import KernelError, MeasurementError
from perfmodel.device import Device, find_device
from perfmodel.device.buffers import BufferPool
from perfmodel.device.opencl_memory import OpenCLMemory
from perfmodel.kernels.arguments import Array, Scalar
from perfmodel.kernels.launch import Launch
from perfmodel.measuring import opencl_launch
from perfmodel.measuring import protocol as measurement
from perfmodel.measuring.protocol import (
    PROTOCOLS,
    Protocol,
    Timing,
    check_launch,
    launch_overhead,
    run_launch,
    time_launch,
)

AXPY = """
__kernel void axpy(TYPE const a, __global TYPE const *x, __global TYPE *y)
{ size_t i = get_global_id(0); y[i] = a * x[i] + y[i]; }
"""
SPIN = """
__kernel void spin(int const rounds, __global float *y)
{ float v = y[get_global_id(0)]; for (int i = 0; i < rounds; ++i) v = v * 0.999f + 0.001f; y[get_global_id(0)] = v; }
"""
THREE = Protocol("three", trials=5, dropped=2, statistic="min")


@pytest.fixture(scope="module")
def device() -> Device:
    return find_device("cpu")


def axpy(size: int, dtype: str = "float32", local: int = 8) -> Launch:
    c_type = {"float32": "float", "float64": "double", "int32": "int", "uint8": "uchar"}[dtype]
    arguments = (
        Scalar("a", dtype, 3),
        Array("x", dtype, size, is_output=False),
        Array("y", dtype, size, is_output=True),
    )
    return Launch(
        source=AXPY,
        kernel_name="axpy",
        global_size=(size,),
        local_size=(local,),
        arguments=arguments,
        options=(f"-DTYPE={c_type}",),
    )


def spin(rounds: int, size: int = 64) -> Launch:
    arguments = (Scalar("rounds", "int32", rounds), Array("y", "float32", size, is_output=True))
    return Launch(
        source=SPIN, kernel_name="spin", global_size=(size,), local_size=(min(size, 64),), arguments=arguments
    )


def source(body: str, *arguments: Array | Scalar, declared: str = "void", local: int = 2) -> Launch:
    return Launch(
        source=f"__kernel void k({declared}) {{ {body} }}",
        kernel_name="k",
        global_size=(4,),
        local_size=(local,),
        arguments=arguments,
    )


# --- what a launch computes


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint8"])
def test_a_run_computes_what_numpy_computes(device: Device, dtype: str) -> None:
    x, y = np.arange(64).astype(dtype), (np.arange(64) % 5).astype(dtype)
    given_y = y.copy()
    result = run_launch(axpy(64, dtype), device, {"x": x, "y": y})
    assert set(result) == {"y"}
    assert result["y"].dtype == x.dtype
    np.testing.assert_array_equal(result["y"], np.dtype(dtype).type(3) * x + y)
    np.testing.assert_array_equal(y, given_y)  # the caller's array is left alone


def test_arrays_travel_in_memory_order_and_outputs_left_out_are_zero(device: Device) -> None:
    x = np.asfortranarray(np.arange(16, dtype="float32").reshape(4, 4))
    y = np.asfortranarray(np.ones((4, 4), "float32"))
    result = run_launch(axpy(16), device, {"x": x, "y": y})["y"]
    np.testing.assert_array_equal(result, 3 * x + 1)
    np.testing.assert_array_equal(run_launch(axpy(16), device, {"x": x})["y"], 3 * x.ravel(order="F"))


def test_the_launch_shape_reaches_the_kernel(device: Device) -> None:
    body = (
        "a[get_global_id(1) * 4 + get_global_id(0)] = 100 * get_group_id(1) + 10 * get_local_size(0) + get_local_id(0);"
    )
    launch = Launch(
        source=f"__kernel void k(__global int *a) {{ {body} }}",
        kernel_name="k",
        global_size=(4, 6),
        local_size=(2, 3),
        arguments=(Array("a", "int32", 24, True),),
    )
    expected = [[100 * (row // 3) + 20 + column % 2 for column in range(4)] for row in range(6)]
    np.testing.assert_array_equal(run_launch(launch, device, {})["a"].reshape(6, 4), expected)


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({}, "input 'x' of kernel 'axpy' is missing"),
        ({"x": np.zeros(9, "float32")}, "array 'x' of kernel 'axpy' has 9 elements of float32: give 8 of float32"),
        ({"x": np.zeros(8)}, "has 8 elements of float64: give 8 of float32"),
        ({"X": np.zeros(8), "x": np.zeros(8, "float32")}, "kernel 'axpy' has no array 'X'"),
    ],
)
def test_wrong_host_arrays_are_refused(device: Device, arrays: dict[str, Any], words: str) -> None:
    with pytest.raises(KernelError, match=words):
        run_launch(axpy(8), device, arrays)


# --- trials


def test_trials_are_all_kept_and_the_first_do_not_count(device: Device) -> None:
    timing = time_launch(spin(20_000), device, PROTOCOLS["unified"])
    assert len(timing.trials) == 30
    assert timing.dropped == 4
    assert timing.seconds == min(timing.trials[4:])
    assert all(seconds > 0 for seconds in timing.trials)


def test_more_work_takes_longer(device: Device) -> None:
    short, long = (time_launch(spin(rounds), device, PROTOCOLS["unified"]).seconds for rounds in (5_000, 50_000))
    assert 4 < long / short < 25


def test_a_budget_ends_trials_but_not_before_enough_are_kept(device: Device) -> None:
    hasty = Protocol("hasty", trials=30, dropped=2, statistic="min", budget_s=0.0, min_trials=3)
    assert len(time_launch(spin(100), device, hasty).trials) == 5
    patient = replace(hasty, budget_s=1e6)
    assert len(time_launch(spin(100), device, patient).trials) == 30


def test_the_published_protocols() -> None:
    unified, perflex, quick = (PROTOCOLS[name] for name in ("unified", "perflex", "quick"))
    assert (unified.trials, unified.dropped, unified.statistic, unified.budget_s) == (30, 4, "min", None)
    assert (perflex.trials, perflex.dropped, perflex.statistic, perflex.budget_s) == (60, 0, "mean", None)
    assert (quick.trials, quick.dropped, quick.statistic, quick.budget_s) == (30, 4, "min", 2.0)


@given(st.lists(st.floats(1e-9, 1e3), min_size=1, max_size=40), st.data())
def test_the_time_is_the_statistic_of_the_kept_trials(trials: list[float], data: st.DataObject) -> None:
    dropped = data.draw(st.integers(0, len(trials) - 1))
    kept = np.array(trials[dropped:])
    for name, oracle in (("min", np.min), ("mean", np.mean), ("median", np.median)):
        timing = Timing(tuple(trials), dropped, name)
        assert math.isclose(timing.seconds, oracle(kept), rel_tol=1e-12)
        lower, median, upper = np.quantile(kept, [0.25, 0.5, 0.75])
        spread = lower / kept.min() - 1 if name == "min" else (upper - lower) / 2 / median
        assert math.isclose(timing.spread, spread, rel_tol=1e-9, abs_tol=1e-12)


def test_protocols_that_make_no_sense_are_refused() -> None:
    with pytest.raises(MeasurementError, match=r"no statistic 'meen'.*did you mean"):
        Protocol("mine", 10, 0, "meen")
    for trials, dropped, kept in ((4, 4, 1), (4, -1, 1), (4, 2, 3), (4, 2, 0)):
        with pytest.raises(MeasurementError, match="protocol 'mine' keeps no trial"):
            Protocol("mine", trials, dropped, "min", min_trials=kept)
    with pytest.raises(MeasurementError, match="'min' of 0 trials is no time"):
        _ = Timing((1.0,), 1, "min").seconds


# --- flags and the device's clock


def scripted(monkeypatch: pytest.MonkeyPatch, nanoseconds: list[float], overhead: float) -> None:
    """Makes the profiling clock tell these times, one a trial, over a device of that launch overhead."""
    times: Iterator[float] = iter(nanoseconds)

    def enqueued(*_: object) -> SimpleNamespace:
        return SimpleNamespace(wait=lambda: None, profile=SimpleNamespace(start=1000, end=1000 + next(times)))

    monkeypatch.setattr(opencl_launch, "enqueued", enqueued)
    monkeypatch.setattr(measurement, "launch_overhead", lambda device: overhead)


@pytest.mark.parametrize(
    ("nanoseconds", "overhead", "flags"),
    [
        ([9e9, 9e9, 3000, 3010, 3020], 0.9e-6, ()),
        ([9e9, 9e9, 3000, 3010, 3020], 1.1e-6, ("near-launch-overhead",)),
        ([9e9, 9e9, 3000, 3310, 3010], 0.9e-6, ()),
        ([9e9, 9e9, 3000, 4790, 4790], 0.9e-6, ()),
        ([9e9, 9e9, 3000, 5000, 5000], 0.9e-6, ("noisy",)),
        ([9e9, 9e9, 3000, 5000, 3010], 0.9e-6, ()),
        ([9e9, 9e9, 3000, 5300, 5300], 1.1e-6, ("near-launch-overhead", "noisy")),
    ],
)
def test_doubtful_times_are_flagged(
    device: Device, monkeypatch: pytest.MonkeyPatch, nanoseconds: list[float], overhead: float, flags: tuple[str, ...]
) -> None:
    scripted(monkeypatch, nanoseconds, overhead)
    timing = time_launch(spin(1), device, THREE)
    assert timing.flags == flags
    assert timing.trials == tuple(value / 1e9 for value in nanoseconds)
    assert timing.seconds == 3e-6


@pytest.mark.parametrize("broken", [0, -5, math.nan])
def test_a_clock_that_stands_still_is_an_error(device: Device, monkeypatch: pytest.MonkeyPatch, broken: float) -> None:
    scripted(monkeypatch, [100, broken, 100, 100, 100], 1e-9)
    with pytest.raises(MeasurementError, match=r"profiling clock of .* for kernel 'spin': use larger sizes"):
        time_launch(spin(1), device, THREE)


def test_launch_overhead_is_measured_once_and_below_any_real_kernel(device: Device) -> None:
    overhead = launch_overhead(device)
    assert 0 < overhead == launch_overhead(device)
    timing = time_launch(spin(200_000), device, THREE)
    assert overhead < timing.seconds
    assert "near-launch-overhead" not in timing.flags


# --- device memory


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int32", "uint8", "complex64"])
@pytest.mark.parametrize("size", [1, 7, 4096, (3 << 20) // 4 + 5])
def test_every_element_is_filled_with_moderate_numbers(device: Device, dtype: str, size: int) -> None:
    import pyopencl as cl

    host = np.zeros(size, dtype)
    pool = device.session().buffers
    with pool.lent([host.nbytes]) as (buffer,):
        pool.fill(buffer, host.nbytes, dtype)
        cl.enqueue_copy(device.queue(), host, buffer)
    assert np.all(host.real >= (0.5 if host.dtype.kind in "fc" else 1))
    assert np.all(host.real <= (1.5 if host.dtype.kind in "fc" else 7))
    assert size < 100 or len(np.unique(host)) > 5


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Returns the sizes of the buffers that are held at present, of those made during the test."""
    import pyopencl as cl

    sizes: list[int] = []

    class Recorded(cl.Buffer):  # type: ignore[misc]
        def __init__(self, context: Any, flags: Any, size: int) -> None:
            if sum(sizes) + size > 1000:
                no_memory()
            super().__init__(context, flags, size)
            sizes.append(size)

        def release(self) -> None:
            sizes.remove(self.size)
            super().release()

    monkeypatch.setattr(cl, "Buffer", Recorded)
    return sizes


def test_buffers_are_kept_between_launches_up_to_a_limit(device: Device, held: list[int]) -> None:
    pool = BufferPool(OpenCLMemory(device.context(), device.queue()), limit=500)
    for sizes, kept in (
        ([100, 200], [100, 200]),
        ([200, 100], [100, 200]),  # used again
        ([100, 100], [100, 100, 200]),
        ([150], [150]),  # would pass the limit: all others go
        ([600], []),  # larger than the limit: neither it nor anything else stays
    ):
        with pool.lent(sizes) as lent:
            assert [buffer.size for buffer in lent] == sizes
        assert sorted(held) == kept


def test_spare_buffers_make_room_when_memory_is_short(device: Device, held: list[int]) -> None:
    pool = BufferPool(OpenCLMemory(device.context(), device.queue()), limit=10_000)
    for sizes in ([600, 300], [300, 500], [1000]):
        with pool.lent(sizes):
            pass
    assert held == [1000]
    with pytest.raises(Exception, match="ALLOCATION_FAILURE"), pool.lent([600, 600]):
        pass
    assert held == []


def no_memory(*_: object) -> Any:
    import pyopencl as cl

    code = cl.status_code.MEM_OBJECT_ALLOCATION_FAILURE
    raise cl.MemoryError(cl._cl._ErrorRecord(msg="", code=code, routine="clCreateBuffer"))


def test_running_out_of_memory_is_one_sentence(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    import pyopencl as cl

    with monkeypatch.context() as patch:
        patch.setattr(cl, "Buffer", no_memory)
        words = "kernel 'axpy' ran out of memory or resources on .*ALLOCATION_FAILURE.*: use smaller sizes"
        with pytest.raises(KernelError, match=words):
            time_launch(axpy(123 * 8), device, THREE)
    assert time_launch(axpy(123 * 8), device, THREE).seconds > 0


# --- launches that cannot run

BIG = {"global_memory": 1000, "max_allocation": 800, "max_work_group_size": 16, "max_work_item_sizes": (16, 8, 4)}


@pytest.mark.parametrize(
    ("launch", "words"),
    [
        (axpy(512), "array 'x' of kernel 'axpy' takes 2048 bytes, more than one allocation .*800.*: use smaller sizes"),
        (axpy(160), "kernel 'axpy' needs 1280 bytes, more than .* has .1000.: use smaller sizes"),
        (
            axpy(64, local=32),
            r"work-groups of \(32,\) work-items, more than .* allows .16 along axis 0.: use a smaller",
        ),
        (replace(axpy(64), global_size=(8, 8), local_size=(4, 8)), "allows .16.: use a smaller local size"),
        (replace(axpy(64), global_size=(1, 16), local_size=(1, 16)), "allows .8 along axis 1."),
        (replace(axpy(64), global_size=(60,)), "60 work-items in groups of 8, which is no whole number of work-groups"),
        (replace(axpy(64), global_size=(8, 8)), "give 1 to 3 axes, the same for both"),
        (replace(axpy(64), global_size=(), local_size=()), "give 1 to 3 axes"),
        (replace(axpy(64), global_size=(0,)), "0 work-items in groups of 8, which is empty along axis 0"),
        (replace(axpy(64), arguments=(Array("x", "float32", 0, False),)), "array 'x' .* has no element"),
        (replace(axpy(64), arguments=(Array("x", "flot32", 4, False),)), "'x' .* has dtype 'flot32'"),
        (replace(axpy(64), arguments=(Scalar("s", "object", 4),)), "'s' .* has dtype 'object'"),
    ],
)
def test_what_does_not_fit_is_refused_before_allocation(device: Device, launch: Launch, words: str) -> None:
    with pytest.raises(KernelError, match=words):
        check_launch(launch, replace(device, **BIG))  # type: ignore[arg-type]


def test_what_fits_exactly_is_accepted(device: Device) -> None:
    small = replace(device, **BIG)  # type: ignore[arg-type]
    check_launch(replace(axpy(120), local_size=(8,)), small)  # 960 of 1000 bytes
    check_launch(replace(axpy(64), global_size=(4, 8), local_size=(2, 8)), small)


@pytest.mark.parametrize(
    ("launch", "words"),
    [
        (source("b[0] = 1;"), r"(?s)kernel 'k' does not compile on .*\n.*undeclared identifier 'b'"),
        (replace(source(""), kernel_name="j"), "the source has no kernel 'j'; it has k"),
        (source("", Scalar("a", "int32", 1)), "kernel 'k' takes 0 arguments, not 1"),
        (source("", Scalar("a", "float64", 1), declared="float a"), "argument 1 of kernel 'k' cannot be 'a'"),
        (source("", Scalar("a", "int32", 2**40), declared="int a"), "the scalar 1099511627776 of int32"),
        (source("", Array("a", "int32", 4, True), declared="int a"), "cannot be 'a', an array of int32"),
        (
            source(
                "__local int t[1 << 20]; t[get_local_id(0)] = a[0]; barrier(CLK_LOCAL_MEM_FENCE); a[1] = t[5];",
                Array("a", "int32", 4, True),
                declared="__global int *a",
            ),
            "needs 4194304 bytes of local memory to a work-group.*use smaller tiles",
        ),
    ],
)
def test_what_the_compiler_finds_is_told(device: Device, launch: Launch, words: str) -> None:
    with pytest.raises(KernelError, match=words):
        time_launch(launch, device, THREE)


def test_a_refused_launch_leaves_the_device_usable(device: Device) -> None:
    before = device.queue()
    fixed = "__kernel __attribute__((reqd_work_group_size(8, 1, 1))) void k(void) {}"
    with pytest.raises(KernelError, match=r"refuses the launch of kernel 'k' .INVALID_WORK_GROUP_SIZE.: use another"):
        time_launch(
            Launch(source=fixed, kernel_name="k", global_size=(4,), local_size=(2,), arguments=()), device, THREE
        )
    assert device.queue() is not before  # several drivers leave a failed launch's context unusable
    assert time_launch(spin(10), device, THREE).seconds > 0


def test_compilers_are_silent(device: Device, recwarn: pytest.WarningsRecorder) -> None:
    warned = source("int unused; a[0] = 1 / 2.0;", Array("a", "int32", 4, True), declared="__global int *a")
    time_launch(replace(warned, options=("-Wall",)), device, THREE)
    assert not [warning for warning in recwarn if "ompiler" in str(warning.message)]

"""Programs that use pyopencl, with their launches recorded: what is known of each, and that nothing else changes."""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import perfmodel as pm
from perfmodel.basics.errors import CalibrationError, CountingError, KernelError, SourceError
from perfmodel.device import Device
from perfmodel.device.drivers import opencl
from perfmodel.interception import InterceptionWarning, LaunchLog
from perfmodel.interception.script import split
from perfmodel.modelling.calibration import calibration_called

cl: Any = None
pytestmark = [
    pytest.mark.filterwarnings("ignore::Warning:pyopencl.*"),
    pytest.mark.filterwarnings("ignore:Kernel .* has been retrieved more than once"),
    pytest.mark.filterwarnings("ignore::Warning:loopy.*"),
]

PROGRAM = Path(__file__).parents[2] / "docs" / "pyopencl_program.py"
SCALE = """
__kernel void scale(__global float *a, const float factor, const int n)
{
    const int i = get_global_id(0);
    if (i < n)
        a[i] *= factor;
}
__kernel void row_sums(__global const float4 *a, __global float *sums, __local float *part)
{
    const int l = get_local_id(0), r = get_group_id(0);
    const float4 v = a[get_global_id(0)];
    part[l] = v.x + v.y + v.z + v.w;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (l == 0) {
        float sum = 0;
        for (int k = 0; k < get_local_size(0); ++k)
            sum += part[k];
        sums[r] = sum;
    }
}
__kernel void positions(__global int *a, const int2 shift, const ulong big)
{
    a[get_global_id(0)] = get_global_id(0) + shift.x + shift.y + (int)big;
}
"""


@pytest.fixture(scope="module", autouse=True)
def _pyopencl() -> None:
    global cl
    cl = opencl()


class Bench:
    """A context, a queue and the kernels above, as a program would have them."""

    def __init__(self, device: Device) -> None:
        self.context, self.queue = device.context(), device.queue()
        self.program = cl.Program(self.context, SCALE).build(["-DUNUSED=1"])
        self.scale = self.program.scale

    def buffer(self, data: Any, flags: int = 0) -> Any:
        flags = flags or cl.mem_flags.READ_WRITE
        return cl.Buffer(self.context, flags | cl.mem_flags.COPY_HOST_PTR, hostbuf=np.ascontiguousarray(data))

    def read(self, buffer: Any, dtype: Any = np.float32) -> Any:
        data = np.empty(buffer.size // np.dtype(dtype).itemsize, dtype)
        cl.enqueue_copy(self.queue, data, buffer)
        return data


@pytest.fixture(scope="module")
def bench(cpu: Device, _pyopencl: None) -> Bench:
    return Bench(cpu)


NUMBERS = np.arange(16, dtype=np.float32)


# --- what is recorded


def test_a_call_is_recorded_with_its_arguments(bench: Bench, cpu: Device) -> None:
    buffer = bench.buffer(NUMBERS)
    with pm.intercept() as log:
        event = bench.scale(bench.queue, (16,), (8,), buffer, np.float32(3), np.int32(16))
        event.wait()
    assert isinstance(event, cl.Event)
    (record,) = log
    assert (record.name, record.source, record.build_options) == ("scale", SCALE, ("-DUNUSED=1",))
    assert (record.global_size, record.local_size, record.global_offset) == ((16,), (8,), ())
    assert (record.device, record.problem, record.notes[1:]) == (cpu.name, "", ())
    a, factor, n = record.arguments
    assert (a.name, a.kind, a.type, a.dtype, a.n_bytes) == ("a", "array", "global float*", "float32", 64)
    assert (a.contents, a.problem) == (None, "contents were not asked for")
    assert (factor.name, factor.kind, factor.value, factor.dtype) == ("factor", "scalar", 3, "float32")
    assert (n.value, n.dtype, n.n_bytes) == (16, "int32", 4)
    assert record.seconds == pytest.approx((event.profile.end - event.profile.start) * 1e-9)
    np.testing.assert_array_equal(bench.read(buffer), 3 * NUMBERS)


def test_every_way_to_set_and_launch(bench: Bench) -> None:
    from pyopencl import enqueue_nd_range_kernel

    buffer = bench.buffer(np.zeros(16, np.float32))
    kernel = cl.Kernel(bench.program, "scale")
    with pm.intercept() as log:
        kernel.set_args(buffer, np.float32(1), np.int32(1))
        cl.enqueue_nd_range_kernel(bench.queue, kernel, (16,), None)
        kernel.set_arg(2, np.int32(2))
        cl._cl.enqueue_nd_range_kernel(bench.queue, kernel, [16], [4])
        kernel.set_scalar_arg_dtypes([None, np.float32, np.int32])
        kernel(bench.queue, iter([4]), (4,), buffer, 1, 3, g_times_l=True)
        clone = kernel.clone()
        clone.set_arg(2, np.int32(4))
        cl.enqueue_nd_range_kernel(
            queue=bench.queue, kernel=clone, global_work_size=np.array([16]), local_work_size=(4,)
        )
        kernel(bench.queue, (16,), (4,), buffer, 1, 5, wait_for=iter([]), global_offset=(4,))
        (again,) = [found for found in bench.program.all_kernels() if found.function_name == "scale"]
        again(bench.queue, (16,), (4,), buffer, np.float32(1), np.int32(6))
    assert [record.arguments[2].value for record in log] == [1, 2, 3, 4, 5, 6]
    assert {(record.name, record.global_size, record.source) for record in log} == {("scale", (16,), SCALE)}
    assert [record.local_size for record in log[:2]] == [None, (4,)]
    assert log[4].global_offset == (4,)

    module: Any = sys.modules[__name__]
    module.launch = enqueue_nd_range_kernel  # as `from pyopencl import … as launch` does
    with pm.intercept() as log:
        kernel.set_args(buffer, 1, 1)
        module.launch(bench.queue, kernel, (16,), None)
    assert len(log) == 1
    assert module.launch is enqueue_nd_range_kernel is cl.enqueue_nd_range_kernel
    bench.queue.finish()


def test_vectors_and_wide_numbers(bench: Bench) -> None:
    buffer = bench.buffer(np.zeros(8, np.int32))
    shift = cl.cltypes.make_int2(1, 2) if hasattr(cl, "cltypes") else np.array([1, 2], np.int32)
    with pm.intercept() as log:
        bench.program.positions(bench.queue, (8,), None, buffer, shift, np.uint64(2**63))
    _, vector, big = log[0].arguments
    assert vector.value.tolist() == [1, 2]
    assert (big.value, big.dtype) == (2**63, "uint64")
    emulation = log[0].emulate(groups="all")
    np.testing.assert_array_equal(emulation.array("a"), bench.read(buffer, np.int32))


def test_pyopencl_s_own_arrays_and_kernels(bench: Bench) -> None:
    import pyopencl.array as cla
    from pyopencl.elementwise import ElementwiseKernel
    from pyopencl.reduction import ReductionKernel
    from pyopencl.scan import InclusiveScanKernel

    with pm.intercept() as log:
        a = cla.to_device(bench.queue, NUMBERS)
        b = a + 2 * a
        ElementwiseKernel(bench.context, "float *x, float y", "x[i] *= y", "times")(b, np.float32(2))
        adding = {"neutral": "0", "reduce_expr": "a+b", "map_expr": "x[i]", "arguments": "float *x"}
        total = ReductionKernel(bench.context, np.float32, **adding)(b).get()
        InclusiveScanKernel(bench.context, np.float32, "a+b", neutral="0")(b)
    assert total == 6 * NUMBERS.sum()
    np.testing.assert_allclose(b.get(), np.cumsum(6 * NUMBERS))
    names = [record.name for record in log]
    assert names[:4] == ["axpb", "axpbyz", "times", "reduce_kernel_stage1"]
    assert len(names) > 5
    assert all(record.source for record in log)
    assert [each.kind for each in log[2].arguments] == ["array", "scalar", "scalar", "scalar"]
    assert log[2].arguments[2].value == 2


def test_pooled_and_shared_memory(bench: Bench) -> None:
    pool = cl.tools.MemoryPool(cl.tools.ImmediateAllocator(bench.queue))
    with pm.intercept(contents=True) as log:
        bench.scale(bench.queue, (4,), None, pool.allocate(64), np.float32(1), np.int32(4))
        bench.scale(bench.queue, (4,), None, None, np.float32(1), np.int32(0))
        shared = cl.SVMAllocation(bench.context, 64, 0, cl.svm_mem_flags.READ_WRITE)
        bench.scale(bench.queue, (4,), None, shared, np.float32(1), np.int32(4))
        bench.queue.finish()
    assert [record.arguments[0].kind for record in log] == ["array", "null", "svm"]
    assert log[0].arguments[0].contents is not None
    assert (log[2].arguments[0].value, log[2].arguments[0].n_bytes) == (shared.svm_ptr, 64)
    assert log[2].arguments[0].problem == "it is shared virtual memory"
    assert [record.kernel.program.launch({"factor": 1, "n": 4}).arrays()[0].size for record in log] == [16, 0, 16]


def test_a_loopy_kernel(bench: Bench) -> None:
    import loopy as lp

    knl = lp.make_kernel("{[i]: 0<=i<n}", "out[i] = 2*a[i]", "n, a, out", target=lp.PyOpenCLTarget())
    knl = lp.split_iname(lp.add_dtypes(knl, {"a": np.float32}), "i", 16, outer_tag="g.0", inner_tag="l.0")
    with pm.intercept(contents=True) as log:
        _, (out,) = knl(bench.queue, a=NUMBERS)
    np.testing.assert_array_equal(out, 2 * NUMBERS)
    (record,) = log
    by_name = {each.name: each for each in record.arguments}
    assert by_name["n"].value == 16
    np.testing.assert_array_equal(by_name["a"].contents, NUMBERS)
    assert record.kernel.sizes["n"] == 16
    np.testing.assert_array_equal(record.emulate(groups="all").array("out"), 2 * NUMBERS)


def test_binaries_have_no_source(bench: Bench) -> None:
    (binary,) = bench.program.binaries
    program = cl.Program(bench.context, bench.context.devices, [binary]).build()
    with pm.intercept(contents=True) as log:
        program.scale(bench.queue, (16,), (4,), bench.buffer(NUMBERS), np.float32(1), np.int32(16))
    (record,) = log
    assert record.source is None
    assert record.problem.startswith("kernel 'scale' has no source, as its program was linked or built from binaries")
    assert [(each.name, each.kind) for each in record.arguments] == [
        ("#0", "array"),
        ("#1", "scalar"),
        ("#2", "scalar"),
    ]
    assert record.arguments[1].value == np.float32(1).tobytes()
    for fails in (
        lambda: record.kernel,
        record.emulate,
        lambda: record.predict(calibration_called("unified-plus@h200")),
    ):
        with pytest.raises(KernelError, match="has no source"):
            fails()
    assert "has no source" in str(log)


def test_a_source_that_is_not_supported(bench: Bench) -> None:
    source = "__kernel void f(__global int *a) { a[1] = a[0] ?: 2; }"
    try:
        kernel = cl.Program(bench.context, source).build().f
    except cl.Error:
        pytest.skip("the driver does not take it either")
    with pm.intercept() as log:
        kernel(bench.queue, (1,), (1,), bench.buffer(np.zeros(2, np.int32)))
    assert log[0].problem.startswith("kernel.cl:1:")
    assert log[0].arguments[0].name == "#0"
    with pytest.raises(SourceError):
        _ = log[0].kernel
    assert log.predict(calibration_called("unified-plus@h200")).problem[0] == log[0].problem


def test_arguments_that_were_set_before_are_unknown(bench: Bench) -> None:
    kernel = bench.program.scale
    buffer = bench.buffer(NUMBERS)
    kernel.set_args(buffer, np.float32(1), np.int32(16))
    with pm.intercept() as log:
        cl.enqueue_nd_range_kernel(bench.queue, kernel, (16,), None)
        kernel.set_arg(0, buffer)
        cl.enqueue_nd_range_kernel(bench.queue, kernel, (16,), None)
    other = bench.buffer(NUMBERS[:4])
    kernel.set_arg(0, other)
    with log:  # what was noted in the former block may have changed since
        cl.enqueue_nd_range_kernel(bench.queue, kernel, (4,), None)
    kinds = [[each.kind for each in record.arguments] for record in log]
    assert kinds == [["unknown"] * 3, ["array", "unknown", "unknown"], ["unknown"] * 3]
    with pytest.raises(
        KernelError, match=r"argument 'factor' of kernel 'scale' is not known .set before the interception"
    ):
        _ = log[1].kernel


# --- contents


def test_contents_are_those_from_before_the_launch(bench: Bench) -> None:
    buffer = bench.buffer(NUMBERS)
    with pm.intercept(contents=True) as log:
        for _ in range(3):
            bench.scale(bench.queue, (16,), None, buffer, np.float32(2), np.int32(16))
    for times, record in zip((1, 2, 4), log, strict=True):
        contents = record.arguments[0].contents
        assert contents is not None
        np.testing.assert_array_equal(contents, times * NUMBERS)
        assert not contents.flags.writeable
        np.testing.assert_array_equal(record.emulate(groups="all").array("a"), 2 * times * NUMBERS)


def test_contents_without_order_on_the_queue(bench: Bench) -> None:
    properties = cl.command_queue_properties
    queue = cl.CommandQueue(bench.context, properties=properties.OUT_OF_ORDER_EXEC_MODE_ENABLE)
    buffer, gate = bench.buffer(NUMBERS), cl.UserEvent(bench.context)
    with pm.intercept(contents=True) as log:
        event = bench.scale(queue, (16,), None, buffer, np.float32(2), np.int32(16), wait_for=[gate])
        second = bench.scale(queue, (16,), None, buffer, np.float32(2), np.int32(16), wait_for=(event,))
        queue.flush()
        assert event.command_execution_status > cl.command_execution_status.COMPLETE
    gate.set_status(cl.command_execution_status.COMPLETE)
    second.wait()
    for times, record in zip((1, 2), log, strict=True):
        np.testing.assert_array_equal(record.arguments[0].contents, times * NUMBERS)
    assert [record.seconds for record in log] == [None, None]
    np.testing.assert_array_equal(bench.read(buffer), 4 * NUMBERS)


def test_contents_that_are_not_kept(bench: Bench) -> None:
    flags = cl.mem_flags
    large, small = bench.buffer(np.zeros(1000, np.float32)), bench.buffer(NUMBERS)
    written, hidden = (
        bench.buffer(NUMBERS, flags.WRITE_ONLY),
        bench.buffer(NUMBERS, flags.HOST_NO_ACCESS | flags.READ_WRITE),
    )
    arguments = np.float32(2), np.int32(16)
    with pm.intercept(contents=True, limit_bytes=64) as log:
        for buffer in (large, small, written, hidden):
            bench.scale(bench.queue, (16,), None, buffer, *arguments)
    problems = [record.arguments[0].problem for record in log]
    assert problems[0] == "the launch's arrays have 4000 bytes, more than limit_bytes=64"
    assert problems[1:3] == ["", "the kernel only writes it"]
    assert problems[3].startswith("the device does not let it be read (")
    with pytest.warns(InterceptionWarning, match="emulated on zeros .* more than limit_bytes=64.; intercept with"):
        assert not log[0].emulate().array("a").any()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        log[2].emulate()
    assert "the contents of 'a' are not kept: the launch's arrays" in log[0].notes[1]


def test_contents_of_first_launches(bench: Bench) -> None:
    buffer = bench.buffer(NUMBERS)
    with pm.intercept(contents="first") as log:
        for n in (8, 16, 8):
            bench.scale(bench.queue, (16,), None, buffer, np.float32(2), np.int32(n))
    assert [record.arguments[0].contents is not None for record in log] == [True, True, False]


def test_local_memory_and_one_array_twice(bench: Bench) -> None:
    a, sums = bench.buffer(np.arange(64, dtype=np.float32)), bench.buffer(np.zeros(4, np.float32))
    with pm.intercept(contents=True) as log:
        bench.program.row_sums(bench.queue, (16,), (4,), a, sums, cl.LocalMemory(16))
        bench.program.row_sums(bench.queue, (16,), (4,), a, a, cl.LocalMemory(16))
    first, second = log
    assert [(each.kind, each.dtype, each.n_bytes) for each in first.arguments] == [
        ("array", "float32", 256),
        ("array", "float32", 16),
        ("local", "float32", 16),
    ]
    emulation = first.emulate(groups="all")
    np.testing.assert_array_equal(emulation.array("sums"), bench.read(sums))
    assert not emulation.findings
    assert first.kernel.launch().arguments[2].n_bytes == 16  # type: ignore[union-attr]
    assert (first.n_bytes, second.n_bytes) == (272, 256)
    assert second.emulate(groups=[0]).array("sums")[0] == np.arange(16).sum()


def test_nothing_is_kept_alive(bench: Bench) -> None:
    with pm.intercept() as log:
        buffer = bench.buffer(NUMBERS)
        count = sys.getrefcount(buffer)
        bench.scale(bench.queue, (16,), None, buffer, np.float32(2), np.int32(16))
        assert sys.getrefcount(buffer) == count
        kernel = cl.Kernel(bench.program, "scale")
        kernel.set_args(buffer, np.float32(2), np.int32(16))
        bench.queue.finish()
        del buffer
        with pm.intercept(contents=True) as inner:
            kernel.set_arg(0, bench.buffer(NUMBERS))  # freed at once, which pyopencl says not to do
            keep = bench.buffer(NUMBERS)
            kernel.set_arg(0, keep)
            cl.enqueue_nd_range_kernel(bench.queue, kernel, (16,), None).wait()
    assert inner[0] is log[1]
    np.testing.assert_array_equal(inner[0].arguments[0].contents, NUMBERS)


# --- programs behave as without it


def test_exceptions_are_the_same(bench: Bench) -> None:
    buffer = bench.buffer(NUMBERS)
    kernel = bench.program.scale
    wrong: list[Callable[[], Any]] = [
        lambda: kernel(bench.queue, (16,), (5,), buffer, np.float32(2), np.int32(16)),
        lambda: kernel(bench.queue, (16,), None, buffer, 2, np.int32(16)),
        lambda: kernel(bench.queue, (16,), None, buffer),
        lambda: kernel(bench.queue, 16, None, buffer, np.float32(2), np.int32(16)),
        lambda: kernel(bench.queue, (), None, buffer, np.float32(2), np.int32(16)),
        lambda: kernel(bench.queue, (16, 16), (4,), buffer, np.float32(2), np.int32(16)),
        lambda: kernel(bench.queue, (16,), None, buffer, np.float32(2), np.int32(16), wait_for=[3]),
        lambda: kernel(bench.queue, (16,), None, buffer, np.float32(2), np.int32(16), wait_for=3),
        lambda: kernel(bench.queue, (16,), None, buffer, np.float32(2), np.int32(16), nonsense=3),
        lambda: kernel(None, (16,), None, buffer, np.float32(2), np.int32(16)),
        lambda: cl.enqueue_nd_range_kernel(),
        lambda: cl.enqueue_nd_range_kernel(bench.queue, kernel, ("a",), None),
        lambda: cl.enqueue_nd_range_kernel(bench.queue, kernel),
        lambda: kernel.set_arg(7, np.float32(2)),
        lambda: kernel.set_arg(0, object()),
        lambda: kernel.set_arg(0),
        lambda: kernel.set_args(buffer),
        lambda: bench.program.nothing,
    ]

    def failure(call: Callable[[], Any]) -> tuple[type[BaseException], str, bool]:
        with pytest.raises(Exception) as caught:  # noqa: PT011
            call()
        return caught.type, str(caught.value).split(" object at 0x")[0], caught.value.__context__ is None

    plain = [failure(call) for call in wrong]
    with pm.intercept(contents=True) as log:
        recorded = [failure(call) for call in wrong]
    assert recorded == plain
    assert not log
    assert str(log) == "no launches"


def test_results_are_the_same_and_patches_are_undone(bench: Bench) -> None:
    places = [(cl, "enqueue_nd_range_kernel"), (cl._cl, "enqueue_nd_range_kernel")]
    places += [(cl.Kernel, name) for name in dir(cl.Kernel)] + [(cl.Program, name) for name in dir(cl.Program)]
    before = [inspect.getattr_static(owner, name) for owner, name in places]
    buffer = bench.buffer(NUMBERS)
    log = pm.intercept()
    with suppress(ZeroDivisionError), log:
        assert cl.Kernel.set_arg.__name__ == "set_arg"
        bench.scale(bench.queue, (16,), None, buffer, np.float32(2), np.int32(16))
        _ = 1 / 0
    after = [inspect.getattr_static(owner, name) for owner, name in places]
    assert all(one is other for one, other in zip(before, after, strict=True))
    bench.scale(bench.queue, (16,), None, buffer, np.float32(2), np.int32(16))
    assert len(log) == 1
    np.testing.assert_array_equal(bench.read(buffer), 4 * NUMBERS)


def test_functions_taken_within_a_block_work_after_it(bench: Bench) -> None:
    with pm.intercept() as log:
        launch, set_arg = cl.enqueue_nd_range_kernel, cl.Kernel.set_arg
    kernel, buffer = bench.program.scale, bench.buffer(NUMBERS)
    kernel.set_args(buffer, np.float32(2), np.int32(16))
    set_arg(kernel, 1, np.float32(3))
    launch(bench.queue, kernel, (16,), None).wait()
    np.testing.assert_array_equal(bench.read(buffer), 3 * NUMBERS)
    assert len(log) == 0


def test_blocks_nest_and_repeat(bench: Bench) -> None:
    buffer = bench.buffer(NUMBERS)

    def launch(n: int) -> None:
        bench.scale(bench.queue, (16,), None, buffer, np.float32(1), np.int32(n))

    with pm.intercept() as outer:
        launch(1)
        with pm.intercept() as inner, outer:
            launch(2)
        launch(3)
    with inner:
        launch(4)
    assert [record.arguments[2].value for record in outer] == [1, 2, 3]
    assert [record.arguments[2].value for record in inner] == [2, 4]
    overlapping, other = pm.intercept(), pm.intercept()
    overlapping.__enter__()
    other.__enter__()
    overlapping.__exit__(None, None, None)
    launch(5)
    other.__exit__(None, None, None)
    launch(6)
    assert (len(overlapping), len(other)) == (0, 1)


def test_threads(bench: Bench) -> None:
    def work(number: int) -> None:
        kernel = cl.Kernel(bench.program, "scale")
        for n in range(50):
            with pm.intercept() as own:
                kernel(bench.queue, (16,), None, buffers[number], np.float32(1), np.int32(100 * number + n))
            assert own

    buffers = [bench.buffer(NUMBERS) for _ in range(4)]
    with pm.intercept() as log:
        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    values = [record.arguments[2].value for record in log]
    assert sorted(values) == sorted(100 * number + n for number in range(4) for n in range(50))


def test_an_empty_launch_is_none(bench: Bench) -> None:
    buffer = bench.buffer(NUMBERS)
    with pm.intercept() as log:
        event = bench.scale(bench.queue, (0,), None, buffer, np.float32(2), np.int32(16), allow_empty_ndrange=True)
        event.wait()
    assert len(log) == 0


@pytest.mark.parametrize("wrong", [{"contents": "all"}, {"limit_bytes": -1}, {"limit_bytes": "1 GB"}])
def test_options_that_are_none(wrong: dict[str, Any]) -> None:
    with pytest.raises(KernelError, match=next(iter(wrong))):
        pm.intercept(**wrong)


# --- what follows from a record


@pytest.fixture(scope="module")
def some(bench: Bench) -> LaunchLog:
    buffer = bench.buffer(np.zeros(4096, np.float32))
    with pm.intercept() as log:
        for n in (4096, 2048, 4096):
            bench.scale(bench.queue, (4096,), None, buffer, np.float32(2), np.int32(n))
    return log


def test_a_record_gives_a_kernel(some: LaunchLog) -> None:
    record = some[0]
    assert record.group_size == (256,)
    assert record.notes[0] == "the driver chose the local size; (256,) is taken"
    launch = record.kernel.launch()
    assert (launch.global_size, launch.local_size, launch.arrays()[0].size) == ((4096,), (256,), 4096)
    assert launch.arrays()[0].is_output
    assert record.kernel.bound == {"factor": 2, "n": 4096}
    assert pm.feature("f_op_float32_mul").eval(record.kernel) == 4096
    assert pm.feature("f_op_float32_mul").eval(some[1].kernel) == 2048
    assert record.key == some[2].key != some[1].key


def test_predictions_and_choices(some: LaunchLog, monkeypatch: pytest.MonkeyPatch) -> None:
    h200, epyc = (calibration_called(f"unified-plus@{name}") for name in ("h200", "amd"))
    time = some[0].predict(h200)
    assert time == h200.predict(some[0].kernel)
    chosen = some[0].choose([epyc, h200])
    times = {h200.device["name"]: time, epyc.device["name"]: some[0].predict(epyc)}
    assert chosen == sorted(times.items(), key=lambda pair: pair[1])
    fastest = min({"a": epyc, "b": h200}, key=lambda name: {"a": epyc, "b": h200}[name].predict(some[0].kernel))
    assert some[0].choose({"a": epyc, "b": h200})[0][0] == fastest
    assert {name for name, _ in some[0].choose([epyc, epyc])} == {f"{epyc.device['name']} #{n}" for n in (1, 2)}
    calls: list[Any] = []
    predict: Any = pm.Calibration.predict

    def counted(*arguments: Any) -> Any:
        calls.append(arguments)
        return predict(*arguments)

    monkeypatch.setattr(pm.Calibration, "predict", counted)
    table = some.predict(h200)
    assert len(calls) == len(table) == 2
    assert table.launches.tolist() == [2, 1]
    assert table.predicted_s[0] == time
    assert (table.measured_s > 0).all()
    assert table.sizes[1] == {"factor": 2, "n": 2048}
    assert set(table.problem) == {""}


def test_statistics_of_data_dependent_loops(bench: Bench) -> None:
    source = """__kernel void walk(__global int *next) {
    int at = next[get_global_id(0)];
    while (at > 0)
        at = next[at];
    next[get_global_id(0)] = at;
}"""
    with pm.intercept(contents=True) as log:
        cl.Program(bench.context, source).build().walk(bench.queue, (8,), (8,), bench.buffer(np.zeros(8, np.int32)))
    h200 = calibration_called("unified-plus@h200")
    with pytest.raises(CountingError, match="statistics="):
        log[0].predict(h200)
    problem = log.predict(h200).problem[0]
    assert "statistics=" in problem
    loop = problem.split("statistics={'")[1].split("'")[0]
    assert log[0].predict(h200, {loop: 10}) > 0
    assert log.predict(h200, {"walk": {loop: 10}}).predicted_s[0] == log[0].predict(h200, {loop: 10})


def test_tables(some: LaunchLog) -> None:
    table = some.table()
    assert isinstance(table, pd.DataFrame)
    assert table.kernel.tolist() == ["scale"] * 3
    assert table.argument_bytes.tolist() == [16384] * 3
    assert table.measured_s.dtype == np.float64
    assert pm.intercept().table().empty
    assert pm.intercept().predict(calibration_called("unified-plus@h200")).empty
    lines = str(some).splitlines()
    assert lines[0].split() == ["kernel", "launches", "global", "local", "argument", "bytes", "measured"]
    assert lines[2].split()[:5] == ["scale", "2", "4096", "any", "16384"]
    assert repr(some[0]) == "LaunchRecord(scale (4096,) in groups of any size)"
    assert [record.name for record in some[1:]] == ["scale", "scale"]


def test_a_scalar_of_an_unlucky_name(bench: Bench) -> None:
    source = "__kernel void f(__global int *source, int name, int tags) { source[0] = name + tags; }"
    with pm.intercept() as log:
        f = cl.Program(bench.context, source).build().f
        f(bench.queue, (1,), None, bench.buffer(np.zeros(1, np.int32)), np.int32(1), np.int32(1))
    assert log[0].kernel.bound == {"name": 1, "tags": 1}


def test_measuring_within_a_block(bench: Bench, cpu: Device, some: LaunchLog) -> None:
    from perfmodel.measuring.protocol import PROTOCOLS, time_launch

    with pm.intercept() as log:
        timing = time_launch(some[0].kernel.launch(), cpu, PROTOCOLS["quick"])
    ours = [record for record in log if record.name == "scale"]
    assert [record.seconds for record in ours] == pytest.approx(list(timing.trials))


def test_an_offset_is_emulated(bench: Bench) -> None:
    buffer = bench.buffer(np.zeros(12, np.int32))
    with pm.intercept(contents=True) as log:
        vector = np.array([1, 2], np.int32)
        bench.program.positions(bench.queue, (8,), (4,), buffer, vector, np.uint64(1), global_offset=(4,))
    assert log[0].notes == ("the global offset (4,) is left out of counts and predictions",)
    np.testing.assert_array_equal(log[0].emulate(groups="all").array("a"), bench.read(buffer, np.int32))


def test_names_of_calibrations() -> None:
    with pytest.raises(CalibrationError, match=r"^'nothing' names no calibration; give .* unified-plus@nvidia-h200"):
        calibration_called("nothing")
    with pytest.raises(CalibrationError, match="names no calibration"):
        calibration_called("unified-plus")
    with pytest.raises(CalibrationError, match=r"no\.json"):
        calibration_called("no.json")


# --- the command


def run(
    *arguments: str, code: str | None = None, folder: Path | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    if code is not None:
        assert folder is not None
        (folder / "script.py").write_text(code)
        arguments = (*(str(folder / "script.py") if word == "SCRIPT" else word for word in arguments),)
    command = [sys.executable, "-m", "perfmodel", "run", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **environment})


def test_the_command_runs_a_program(cpu: Device) -> None:
    done = run(str(PROGRAM), "2048", "--predict", "unified-plus@h200", "--emulate")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "sum: 2048.0"
    assert lines[1].startswith("kernel ")
    assert lines[1].split()[1:8] == ["launches", "global", "local", "argument", "bytes", "measured", "predicted"]
    assert lines[3].split()[:5] == ["smooth", "4", "2048", "64", "16384"]
    assert lines[3].split()[-7:] == ["189", "63", "35", "0", "0", "0", "0"]
    done = run("--json", str(PROGRAM), "2048")
    first = json.loads(done.stdout.splitlines()[-1])["launches"][0]
    assert (first["kernel"], first["launches"], first["sizes"]) == ("smooth", 4, {"n": 2048})
    assert first["measured_s"] > 0


def test_sources_are_known_where_pyopencl_has_cached_binaries(cpu: Device, tmp_path: Path) -> None:
    code = """import numpy as np, pyopencl as cl
context = cl.Context(cl.get_platforms()[0].get_devices())
queue = cl.CommandQueue(context)
program = cl.Program(context, "__kernel void f(__global int *a) { a[0] = K; }").build("-DK=3")
print(program._build_duration_info[1])
a = cl.Buffer(context, cl.mem_flags.READ_WRITE, 4)
program.f(queue, (1,), None, a)
program.all_kernels()[0](queue, (1,), None, a)
"""
    environment = {"PYOPENCL_NO_CACHE": "0", "XDG_CACHE_HOME": str(tmp_path)}
    for is_cached in (False, True):
        done = run("SCRIPT", "--emulate", "--json", code=code, folder=tmp_path, **environment)
        first, second = done.stdout.splitlines()
        assert first == str(is_cached), done.stderr
        (launches,) = json.loads(second)["launches"]
        assert (launches["launches"], launches["problems"]) == (2, [])
        assert launches["first_group"]["global_stores"] == 1


def test_the_command_s_script_is_as_python_runs_it(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("NUMBER = 7\n")
    code = "import sys, beside\nprint(__name__, sys.argv[1:], beside.NUMBER)\nsys.exit(beside.NUMBER)\n"
    done = run("--emulate", "SCRIPT", "-n", "5", "--json", "--", "--json", "--", code=code, folder=tmp_path)
    assert done.stdout.splitlines()[0] == "__main__ ['-n', '5', '--json', '--'] 7"
    assert json.loads(done.stdout.splitlines()[1]) == {"launches": []}
    assert (done.returncode, done.stderr) == (7, "")
    done = run("SCRIPT", code="raise SystemExit('no data')", folder=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (1, "no launches\n", "no data\n")
    done = run("SCRIPT", code="import warnings\ndef f(): return 1 / 0\nwarnings.warn('odd')\nf()\n", folder=tmp_path)
    assert done.returncode == 1
    assert "script.py:3: UserWarning: odd" in done.stderr
    assert "perfmodel" not in done.stderr.replace(str(tmp_path), "")
    assert done.stderr.endswith("ZeroDivisionError: division by zero\n")
    assert done.stdout == "no launches\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ["nothing.py"],
            "perfmodel: script 'nothing.py' cannot be read (No such file or directory); give a Python file",
        ),
        ([str(PROGRAM.parent)], "cannot be read (Is a directory); give a Python file"),
        ([str(PROGRAM.parent / "measuring.md")], "is not Python ("),
        ([str(PROGRAM), "--predict", "nothing"], "perfmodel: 'nothing' names no calibration; give a file"),
        ([], "the following arguments are required: SCRIPT"),
        (["--nonsense", str(PROGRAM)], "unrecognized arguments: --nonsense"),
        ([str(PROGRAM), "--predict"], "argument --predict: expected one argument"),
    ],
)
def test_the_command_refuses(arguments: list[str], words: str) -> None:
    done = run(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_what_is_whose() -> None:
    assert split(["--json", "a.py", "-x", "--predict", "c", "y"]) == (["--json", "a.py", "--predict", "c"], ["-x", "y"])
    assert split(["--predict=c", "a.py", "--", "--json"]) == (["--predict=c", "a.py"], ["--json"])
    assert split(["--json", "--", "-a.py", "--json"]) == (["--json", "--", "-a.py"], ["--json"])
    assert split([]) == ([], [])

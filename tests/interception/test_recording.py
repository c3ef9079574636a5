"""A launch is recorded with its source, sizes and arguments, however it was made."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

import perfmodel as pm
from perfmodel.basics.errors import KernelError, SourceError
from perfmodel.device import Device
from perfmodel.modelling.calibration import calibration_called
from tests.interception.program import NUMBERS, SCALE, Bench

pytestmark = [
    pytest.mark.filterwarnings("ignore::Warning:pyopencl.*"),
    pytest.mark.filterwarnings("ignore:Kernel .* has been retrieved more than once"),
    pytest.mark.filterwarnings("ignore::Warning:loopy.*"),
]


def test_a_call_is_recorded_with_its_arguments(bench: Bench, cpu: Device, cl: Any) -> None:
    buffer = bench.buffer(NUMBERS)
    with pm.intercept() as log:
        event = bench.scale(bench.queue, (16,), (8,), buffer, np.float32(3), np.int32(16))
        event.wait()
    assert isinstance(event, cl.Event)
    (record,) = log
    assert (record.name, record.source, record.options) == ("scale", SCALE, ("-DUNUSED=1",))
    assert (record.global_size, record.local_size, record.global_offset) == ((16,), (8,), ())
    assert (record.device, record.problem, record.notes[1:]) == (cpu.name, "", ())
    a, factor, n = record.arguments
    assert (a.name, a.kind, a.type, a.dtype, a.n_bytes) == ("a", "array", "global float*", "float32", 64)
    assert (a.contents, a.problem) == (None, "contents were not asked for")
    assert (factor.name, factor.kind, factor.value, factor.dtype) == ("factor", "scalar", 3, "float32")
    assert (n.value, n.dtype, n.n_bytes) == (16, "int32", 4)
    assert record.seconds == pytest.approx((event.profile.end - event.profile.start) * 1e-9)
    np.testing.assert_array_equal(bench.read(buffer), 3 * NUMBERS)


def test_every_way_to_set_and_launch(bench: Bench, cl: Any) -> None:
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


def test_vectors_and_wide_numbers(bench: Bench, cl: Any) -> None:
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


def test_pooled_and_shared_memory(bench: Bench, cl: Any) -> None:
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


def test_binaries_have_no_source(bench: Bench, cl: Any) -> None:
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


def test_a_source_that_is_not_supported(bench: Bench, cl: Any) -> None:
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


def test_arguments_that_were_set_before_are_unknown(bench: Bench, cl: Any) -> None:
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

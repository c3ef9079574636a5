"""Contents of arrays, kept as they were before each launch."""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np
import pytest

import perfmodel as pm
from perfmodel.interception import InterceptionWarning
from tests.interception.program import NUMBERS, Bench

pytestmark = [
    pytest.mark.filterwarnings("ignore::Warning:pyopencl.*"),
    pytest.mark.filterwarnings("ignore:Kernel .* has been retrieved more than once"),
    pytest.mark.filterwarnings("ignore::Warning:loopy.*"),
]


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


def test_contents_without_order_on_the_queue(bench: Bench, cl: Any) -> None:
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


def test_contents_that_are_not_kept(bench: Bench, cl: Any) -> None:
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


def test_local_memory_and_one_array_twice(bench: Bench, cl: Any) -> None:
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


def test_nothing_is_kept_alive(bench: Bench, cl: Any) -> None:
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

"""Programs behave as they do without being recorded."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

import perfmodel as pm
from perfmodel.basics.errors import KernelError
from tests.interception.program import NUMBERS, Bench

pytestmark = [
    pytest.mark.filterwarnings("ignore::Warning:pyopencl.*"),
    pytest.mark.filterwarnings("ignore:Kernel .* has been retrieved more than once"),
    pytest.mark.filterwarnings("ignore::Warning:loopy.*"),
]


def test_exceptions_are_the_same(bench: Bench, cl: Any) -> None:
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


def test_results_are_the_same_and_patches_are_undone(bench: Bench, cl: Any) -> None:
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


def test_functions_taken_within_a_block_work_after_it(bench: Bench, cl: Any) -> None:
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


def test_threads(bench: Bench, cl: Any) -> None:
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

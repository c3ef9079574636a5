"""Programs have totals by kernel, copies, and a time line."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import perfmodel as pm
from perfmodel.basics.errors import PerfmodelError
from perfmodel.interception.time_line import Event, time_line
from perfmodel.modelling.calibration import calibration_called
from tests.interception.program import NUMBERS, Bench

pytestmark = [
    pytest.mark.filterwarnings("ignore::Warning:pyopencl.*"),
    pytest.mark.filterwarnings("ignore:Kernel .* has been retrieved more than once"),
]


def drawn(*events: tuple[str, float, float]) -> list[str]:
    return time_line([Event(*event) for event in events]).splitlines()


def test_a_time_line_is_higher_where_more_is_done() -> None:
    title, long, short = drawn(("long", 5, 50), ("short", 55, 1), ("short", 57, 24))
    assert title.startswith("time line of 76 s; a column is about 1.041 s")
    assert long == "long  |" + "█" * 48 + "▁"
    assert short.index("|") == 6
    assert set(short[7:55]) == {" "}
    # A column is 76 s / 73: the 49th is from 49.97 to 51.01 s, so 96 % short, the 50th is so for 0.05 s only.
    assert short[55:] == "█▁" + "█" * 23


def test_a_time_line_leaves_out_what_lasts_long_and_does_nothing() -> None:
    title, line = drawn(("kernel", 0, 1), ("kernel", 1000, 1))
    assert title == "time line of 1001 s; a column is about 28.57 ms (¦: a long pause)"
    assert line == "kernel |" + "█" * 35 + "¦" + "█" * 35
    line = drawn(*(("kernel", 1000.0 * number, 1.0 + number) for number in range(20)))[1]
    assert line.count("¦") == 8
    assert len(line) <= 80
    assert time_line([]) == ""
    assert drawn(("instant", 3, 0))[1] == "instant |█"


def test_a_time_line_has_a_dozen_lines_at_most() -> None:
    lines = drawn(*((f"kernel {number}", number, 1 + number / 100) for number in range(20)))
    assert len(lines) == 13
    assert lines[-1].startswith("all others |")
    assert [line.split(" |")[0].strip() for line in lines[1:-1]] == [f"kernel {number}" for number in range(9, 20)]


def test_copies_are_told_apart_by_their_ways(bench: Bench, cl: Any) -> None:
    data = np.arange(64, dtype=np.float32).reshape(8, 8)
    with pm.intercept() as log:
        one = bench.buffer(data)
        two = cl.Buffer(bench.context, cl.mem_flags.READ_WRITE, 256)
        cl.enqueue_copy(bench.queue, two, one, byte_count=128)
        cl.enqueue_copy(bench.queue, two, one)
        cl.enqueue_fill(bench.queue, two, np.float32(1), 64)
        cl.enqueue_copy(bench.queue, two, data[:2])
        cl.enqueue_copy(
            bench.queue, one, data, buffer_origin=(0, 0), host_origin=(0, 0), region=(16, 4), buffer_pitches=(32,)
        )
        cl.enqueue_copy(bench.queue, data, two)
        with pytest.raises(cl.Error):
            cl.enqueue_copy(bench.queue, two, np.zeros(1000))
    ways = [(copy.direction, copy.n_bytes) for copy in log.copies]
    assert ways == [("to", 256), ("on", 128), ("on", 256), ("on", 64), ("to", 64), ("to", 64), ("from", 256)]
    assert all(copy.seconds is not None and copy.seconds > 0 for copy in log.copies)
    assert repr(log.copies[-1]) == "CopyRecord(from the device, 256 bytes)"


def test_contents_that_are_kept_are_no_copies_of_the_program(bench: Bench) -> None:
    buffer = bench.buffer(NUMBERS)
    with pm.intercept(contents=True) as log:
        bench.scale(bench.queue, (16,), None, buffer, np.float32(2), np.int32(16))
    assert len(log) == 1
    assert log.copies == []


def test_totals_are_launches_times_predictions(bench: Bench) -> None:
    gpu, plus = calibration_called("@h200"), calibration_called("unified-plus@h200")
    with pm.intercept() as log:
        buffer = bench.buffer(np.zeros(2**20, np.float32))
        for n in (2**20, 2**10, 2**20):
            bench.scale(bench.queue, (n,), (64,), buffer, np.float32(2), np.int32(n))
        bench.read(buffer)
    times = log.times({"gpu": gpu, "plus": plus})
    large, small, to, back = times.lines
    assert large.predicted == {"gpu": 2 * log[0].predict(gpu), "plus": 2 * log[0].predict(plus)}
    assert small.predicted["gpu"] == log[1].predict(gpu)
    # Transfers have prices of their own in the model: a latency, and so much a byte.
    prices = gpu.parameters
    assert to.predicted["gpu"] == pytest.approx(prices["p_to_latency"] + 2**22 * prices["p_to"])
    assert back.predicted["gpu"] == pytest.approx(prices["p_from_latency"] + 2**22 * prices["p_from"])
    assert to.predicted["plus"] is None
    assert times.predicted_total("gpu") == pytest.approx(sum(line.predicted["gpu"] or 0 for line in times.lines))
    assert large.total == pytest.approx((log[0].seconds or 0) + (log[2].seconds or 0))
    shown = str(times)
    assert "not in the predicted total: copies to device, copies from device" in shown
    assert [line.split()[0] for line in shown.splitlines() if line.startswith("scale 1")] == ["scale", "scale"]
    assert max(map(len, shown.splitlines())) <= 80


def test_profiling_only_where_it_is_asked_for(bench: Bench, cl: Any) -> None:
    def properties() -> int:
        return int(cl.CommandQueue(bench.context).properties)

    with pm.intercept():
        assert properties() == 0
        with pm.intercept(profiles=True):
            assert properties() == cl.command_queue_properties.PROFILING_ENABLE
        assert properties() == 0

    class Mine(cl.CommandQueue):  # type: ignore[misc]
        """A queue of a program's own."""

    with pm.intercept(profiles=True), pytest.raises(cl.Error):
        cl.CommandQueue(bench.context, properties=2**40)
    assert isinstance(Mine(bench.context), cl.CommandQueue)
    with pytest.raises(PerfmodelError, match="profiles='yes'"):
        pm.intercept(profiles="yes")  # type: ignore[arg-type]

"""Recorded launches give kernels, predictions, tables and emulations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import perfmodel as pm
from perfmodel.basics.errors import CalibrationError
from perfmodel.device import Device
from perfmodel.interception import LaunchLog
from perfmodel.modelling.calibration import calibration_called
from tests.interception.program import Bench

pytestmark = [
    pytest.mark.filterwarnings("ignore::Warning:pyopencl.*"),
    pytest.mark.filterwarnings("ignore:Kernel .* has been retrieved more than once"),
    pytest.mark.filterwarnings("ignore::Warning:loopy.*"),
]


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


def test_statistics_of_data_dependent_loops(bench: Bench, cl: Any) -> None:
    source = """__kernel void walk(__global int *next) {
    int at = next[get_global_id(0)];
    while (at > 0)
        at = next[at];
    next[get_global_id(0)] = at;
}"""
    with pm.intercept(contents=True) as log:
        cl.Program(bench.context, source).build().walk(bench.queue, (8,), (8,), bench.buffer(np.zeros(8, np.int32)))
    h200 = calibration_called("unified-plus@h200")
    # The contents that were kept say that nobody goes anywhere; without them, random numbers would be asked.
    loads = pm.feature("f_mem_access_global_int32_load")
    assert loads.eval(log[0].kernel) == 8
    walk = {"loop_3": 10}
    assert loads.eval(log[0].kernel_with(walk)) == 8 + 80
    assert log[0].predict(h200, walk) > log[0].predict(h200)
    assert log.predict(h200, {"walk": walk}).predicted_s[0] == log[0].predict(h200, walk)


def test_tables(some: LaunchLog) -> None:
    table = some.table()
    assert isinstance(table, pd.DataFrame)
    assert table.kernel.tolist() == ["scale"] * 3
    assert table.argument_bytes.tolist() == [16384] * 3
    assert table.measured_s.dtype == np.float64
    assert pm.intercept().table().empty
    assert pm.intercept().predict(calibration_called("unified-plus@h200")).empty
    lines = str(some).splitlines()
    assert lines[0].split() == ["kernel", "times", "global", "local", "bytes", "each", "total", "share"]
    assert lines[2].split()[:6] == ["scale", "2", "4096", "any", "16", "KiB"]
    assert repr(some[0]) == "LaunchRecord(scale (4096,) in groups of any size)"
    assert [record.name for record in some[1:]] == ["scale", "scale"]


def test_a_scalar_of_an_unlucky_name(bench: Bench, cl: Any) -> None:
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

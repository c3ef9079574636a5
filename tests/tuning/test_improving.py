"""Improvements are predicted to be faster, compute the same, and are measured where their device is here."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import loopy as lp
import pytest

import perfmodel as pm
from perfmodel.cli.command_line import main
from perfmodel.device import Device
from perfmodel.kernels.kernel import Kernel
from perfmodel.measuring.ptx_texts import EMPTY_NAME, EMPTY_TEXT
from perfmodel.tuning.improving import improve as improving
from perfmodel.tuning.improving.comparing import Comparer
from tests.kernels.test_changes import STRIDED, TILED, WRONG, matmul, tiled

pytestmark = pytest.mark.filterwarnings("ignore::Warning:loopy.*")


@pytest.fixture(scope="module")
def h200() -> pm.Calibration:
    return pm.Calibration.shipped(device="H200")


def test_a_loopy_program_is_shared_out_and_tiled(h200: pm.Calibration, cpu: Device) -> None:
    found = improving(matmul(), h200, n=256, most=16)
    first = found.found[0]
    assert found.measured_on == ""
    assert 1 <= found.tried <= 16
    assert first.seconds == pytest.approx(float(h200.predict(found.best)))
    assert found.original.seconds == pytest.approx(float(h200.predict(Kernel(matmul(), n=256))))
    assert first.saving == pytest.approx(1 - first.seconds / found.original.seconds)
    assert [each.seconds for each in found] == sorted(each.seconds for each in found)
    names = {"lp": lp, "program": matmul()}
    exec("\n".join(first.code), names)
    assert Kernel(names["program"], n=256) == found.best
    shown = str(found)
    assert "compute the same as the original" in shown
    assert "not measured, as this machine has no NVIDIA H200" in shown


def test_a_kernel_of_opencl_c_is_changed_and_verified(h200: pm.Calibration, cpu: Device) -> None:
    kernel = pm.Kernel.from_opencl(
        TILED, "transpose", ("n", "n"), (32, 32), {"out": "n*n", "a": "n*n"}, ["-DT=32"], n=4096
    )
    found = pm.improve(kernel, h200, most=16)
    words = [each.words for each in found]
    assert "padding the rows of tile by one element" in words
    assert "-DT=16 instead of 32, in work-groups of 16 × 16" in words
    # A tile for groups of another size is not the same kernel: that is found by running it.
    rejected = {each.words: each.differs for each in found.rejected}
    assert not set(rejected) & set(words)
    assert all(rejected.values())
    assert any("elements differ" in why for why in rejected.values())


def test_more_work_items_where_loops_take_steps_of_them(h200: pm.Calibration, cpu: Device) -> None:
    kernel = pm.Kernel.from_opencl(STRIDED, "add", 1024, 64, {"x": "n"}, n=2**22)
    found = pm.improve(kernel, h200, most=10)
    assert found.found[0].words.startswith("four times the work-items (4096)")


def test_a_kernel_that_no_change_is_known_of_is_said_to_be_one(h200: pm.Calibration, cpu: Device) -> None:
    found = pm.improve(pm.Kernel.from_ptx(EMPTY_TEXT, EMPTY_NAME, 64, 32), h200)
    assert (found.tried, len(found)) == (0, 0)
    assert "no change of such a kernel is known; write variants of it, and let rank compare them" in " ".join(
        str(found).split()
    )


def test_what_crashes_is_another_kernel(cpu: Device) -> None:
    kernel = tiled()
    wild = TILED.replace("tile[y][x] = a", "out[-(1L << 44)] = 1; tile[y][x] = a")
    crashing = Kernel(kernel.program.as_opencl().with_source(wild), {}, None, n=64)
    slow = TILED.replace("int x =", "while (n > 0 && a[0] > 0) barrier(CLK_LOCAL_MEM_FENCE); int x =")
    with Comparer(kernel, cpu) as comparer:
        assert "it ended its process (SIG" in comparer.difference(crashing)
        assert comparer.difference(kernel) == ""
        wrong = Kernel(kernel.program.as_opencl().with_source(WRONG), {}, None, n=64)
        assert "elements differ" in comparer.difference(wrong)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("perfmodel.tuning.improving.comparing.LIMIT_S", 1.0)
            endless = Kernel(kernel.program.as_opencl().with_source(slow), {}, None, n=64)
            assert comparer.difference(endless) == "it took more than 1 s"


def test_parameters_of_a_function_are_tried(h200: pm.Calibration, cpu: Device) -> None:
    def product(tile: int = 8, unused: bool = True) -> Any:
        if tile == 16:
            raise ZeroDivisionError
        made = lp.split_iname(matmul(), "i", tile, outer_tag="g.1", inner_tag="l.1")
        return lp.split_iname(made, "j", tile, outer_tag="g.0", inner_tag="l.0")

    found = pm.improve(product, h200, n=1024, most=3)
    assert found.found[0].words == "tile=32 instead of 8"
    assert found.found[0].code == ("program = product(tile=32)",)


def test_the_best_are_measured_where_the_device_is(
    h200: pm.Calibration, cpu: Device, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("perfmodel.tuning.improving.improve_kernel._device_here", lambda _: cpu)
    kernel = pm.Kernel.from_opencl(STRIDED, "add", 256, 64, {"x": "n"}, n=2**20)
    found = pm.improve(kernel, h200, most=6, measure=2, store=tmp_path / "times.sqlite")
    assert found.measured_on == cpu.name
    assert found.original.measured_s is not None
    measured = [each.measured_s for each in found if each.measured_s is not None]
    assert len(measured) == 2
    assert measured == sorted(measured)
    assert [each.measured_s for each in found][:2] == measured
    assert "measured" in str(found)
    again = pm.improve(kernel, h200, most=6, measure=2, store=tmp_path / "times.sqlite")
    assert [each.measured_s for each in again][:2] == measured


def test_a_device_that_was_carried_over_to_is_known_by_its_name(cpu: Device, tmp_path: Path) -> None:
    carried = pm.Calibration.shipped("cpu", device="epyc_9755")
    here = replace(carried, device={**carried.device, "name": cpu.name, "key": "here"})
    kernel = pm.Kernel.from_opencl(STRIDED, "add", 256, 64, {"x": "n"}, n=2**20)
    found = pm.improve(kernel, here, most=6, measure=1, store=tmp_path / "times.sqlite")
    assert found.measured_on == cpu.name
    assert not found.unmeasured


def test_the_command(capsys: pytest.CaptureFixture[str], tmp_path: Path, cpu: Device) -> None:
    file = tmp_path / "own.py"
    file.write_text(
        "import loopy as lp, numpy as np\n"
        "def double(rows=16):\n"
        "    arrays = [lp.GlobalArg('x,y', np.float32, 'n'), '...']\n"
        "    made = lp.make_kernel('{[i]: 0 <= i < n}', 'x[i] = 2 * y[i]', arrays,\n"
        "                          assumptions='n >= 1', lang_version=(2018, 2))\n"
        "    return lp.split_iname(made, 'i', rows, outer_tag='g.0', inner_tag='l.0')\n"
    )
    command = ["improve", "--device", "h200", f"{file}:double", "n=1000000", "--most", "4"]
    assert main([*command, "--json", "--out", str(tmp_path / "best.cl")]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["improvements"][0]["changes"] == ["rows=64 instead of 16"]
    assert found["measured_on"] is None
    assert "reqd_work_group_size(64, 1, 1)" in (tmp_path / "best.cl").read_text()
    assert main(command) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "1: rows=64 instead of 16" in lines
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        (["matmul_sq", "tiled_prefetch:*", "n:512"], "takes one kernel, and the words select 2; choose by more tags"),
        (["matmul_sq", "n:512", "--most", "0"], "most=0 and measure=3 leave nothing to do; give 1 or more"),
        (["matmul_sq", "n:512", "--out", "/nowhere/best.cl"], "'/nowhere/best.cl' cannot be written"),
    ],
)
def test_mistakes(words: list[str], answer: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["improve", "--device", "h200", *words]) == 2
    assert answer in capsys.readouterr().err

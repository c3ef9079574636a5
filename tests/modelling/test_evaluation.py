"""Evaluations against times from a store: errors by hand, and no kernel that the fit has seen among them."""

from __future__ import annotations

import json
import lzma
import re
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

import perfmodel as pm
from perfmodel.basics.errors import DeviceError, FeatureError, PerfmodelError
from perfmodel.cli.command_line import main
from perfmodel.device import Device
from perfmodel.measuring.protocol import PROTOCOLS
from perfmodel.measuring.store import Measurement, measurement_key
from perfmodel.modelling.evaluation import FITTED, evaluate

MADDS = "p_madd * f_op_float32_madd"
RATE = 1e-11
PROTOCOL = PROTOCOLS["quick"]
TIMES = {64: 1.0, 128: 1.0, 256: 1.25, 320: 2.0, 384: 1.0}
"""A kernel's time as a multiple of what the model says, by size."""


@pytest.fixture(scope="module")
def elsewhere(cpu: Device) -> Mapping[str, Any]:
    """Returns a device that is on no machine."""
    return cpu.fingerprint() | {"key": "abacus-000000", "name": "Abacus"}


def matmul(collection: pm.KernelCollection, *sizes: int) -> list[pm.Kernel]:
    return collection.generate_kernels(["matmul_sq", f"n:{','.join(map(str, sizes))}"])


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory, collection: pm.KernelCollection, elsewhere: Any) -> Path:
    path = tmp_path_factory.mktemp("evaluation") / "times.sqlite"
    with pm.Store(path) as opened:
        for kernel in matmul(collection, *TIMES):
            n = kernel.sizes["n"]
            opened.put(
                Measurement(
                    key=measurement_key(kernel.program.content, kernel.sizes, elsewhere, PROTOCOL),
                    kernel=kernel.name,
                    content="c" * 64,
                    sizes=kernel.sizes,
                    tags=dict(kernel.tags),
                    device=dict(elsewhere),
                    protocol=asdict(PROTOCOL),
                    trials=(TIMES[n] * RATE * n**3,),
                    dropped=0,
                    statistic="min",
                    flags=(),
                    created="2026-11-21T12:00:00+00:00",
                    versions={},
                )
            )
    return path


@pytest.fixture(scope="module")
def calibration(store: Path, collection: pm.KernelCollection) -> pm.Calibration:
    model = pm.Model("f_cl_wall_time", MADDS)
    table = pm.measure(matmul(collection, 64, 128), model, device="abacus", store=store, protocol=PROTOCOL)
    return model.fit(table)


def test_errors_are_those_by_hand(calibration: pm.Calibration, store: Path, collection: pm.KernelCollection) -> None:
    found = evaluate(calibration, matmul(collection, 256, 320, 384), store=store)
    assert [each.error for each in found.kernels] == pytest.approx([0.2, 0.5, 0.0], abs=1e-6)
    errors = found.over_all
    assert errors is not None
    assert errors.mean == pytest.approx(0.7 / 3, abs=1e-6)
    assert errors.maximum == pytest.approx(0.5)
    assert errors.within_10_percent == pytest.approx(1 / 3)
    assert errors.within_30_percent == pytest.approx(2 / 3)
    assert errors.geometric_mean == pytest.approx((0.2 * 0.5 * 1e-6) ** (1 / 3), rel=1e-3)
    assert found.by_family == {"matmul_sq": errors}
    assert found.notes == ()
    assert found.device["key"] == "abacus-000000"


def test_kernels_of_the_fit_take_no_part(
    calibration: pm.Calibration, store: Path, collection: pm.KernelCollection
) -> None:
    found = evaluate(calibration, matmul(collection, 64, 256), store=store)
    assert [each.left_out for each in found.kernels] == [FITTED, ""]
    errors = found.over_all
    assert errors is not None
    assert errors.count == 1
    assert "fitted to 1 of 2 kernels" in found.notes[0]
    with pytest.raises(PerfmodelError, match="fitted to all of these kernels"):
        evaluate(calibration, matmul(collection, 64, 128), store=store)


def test_kernels_of_the_fit_are_known_under_another_protocol_and_device(
    calibration: pm.Calibration, collection: pm.KernelCollection
) -> None:
    with pytest.raises(PerfmodelError, match="fitted to this kernel"):
        evaluate(calibration, matmul(collection, 64), device="cpu", protocol="unified")


def test_a_kernel_without_a_time_is_left_out_and_the_others_judged(
    calibration: pm.Calibration, store: Path, collection: pm.KernelCollection
) -> None:
    found = evaluate(calibration, matmul(collection, 256, 512), store=store)
    assert [bool(each.left_out) for each in found.kernels] == [False, True]
    assert found.kernels[1].measured_s is None
    assert found.kernels[1].predicted_s == pytest.approx(RATE * 512**3)
    assert "1 of 2 kernels have no time" in found.notes[0]


class Picky:
    """A feature that some kernels can't give."""

    def eval(self, knl: pm.Kernel) -> float:
        if knl.sizes["n"] == 320:
            raise FeatureError("320 has none")
        return float(knl.sizes["n"]) ** 3


def test_a_kernel_that_cannot_be_predicted_is_left_out_and_the_others_judged(
    store: Path, collection: pm.KernelCollection
) -> None:
    model = pm.Model("f_cl_wall_time", "p_madd * f_picky", {"f_picky": Picky()})
    table = pm.measure(matmul(collection, 64, 128), model, device="abacus", store=store, protocol=PROTOCOL)
    found = evaluate(model.fit(table), matmul(collection, 256, 320), store=store)
    assert [each.left_out for each in found.kernels] == ["", "it cannot be predicted: 320 has none"]
    assert found.over_all is not None
    assert found.over_all.count == 1


def test_a_calibration_without_its_rows_is_said_to_hide_them(
    calibration: pm.Calibration, store: Path, collection: pm.KernelCollection
) -> None:
    found = evaluate(calibration.to_ship(), matmul(collection, 64), store=store)
    assert "without the list of kernels" in found.notes[0]


def test_times_of_another_device_are_said_to_be(
    calibration: pm.Calibration, store: Path, collection: pm.KernelCollection, tmp_path: Path
) -> None:
    with pytest.raises(DeviceError, match=r"abacus-000000.*give a store with times of it"):
        evaluate(calibration, matmul(collection, 256), store=tmp_path / "empty.sqlite")


def test_the_command_prints_tables_or_one_document_and_fails_above_a_limit(
    calibration: pm.Calibration, store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "madd.json"
    calibration.save(path)
    command = ["evaluate", str(path), "matmul_sq", "n:64,256,320", "--store", str(store)]
    assert main([*command, "--fail-above", "50"]) == 0
    shown = capsys.readouterr().out
    common, kernels, families, notes = shown.split("\n\n")
    assert notes.endswith("history: the first evaluation of these kernels, 31.6%\n")
    assert common.startswith("matmul_sq dtype=float32")
    assert [line.split()[-1] for line in kernels.splitlines()[2:]] == ["it", "20.0%", "50.0%"]
    assert families.splitlines()[2].split() == ["matmul_sq", "31.6%", "35.0%", "50.0%", "0.0%", "50.0%", "2"]
    assert notes.startswith("note: the calibration was fitted to 1 of 3 kernels")
    assert main([*command, "--fail-above", "31", "--json"]) == 1
    printed = capsys.readouterr()
    document = json.loads(printed.out)
    assert document["errors"]["geometric_mean"] == pytest.approx(0.1**0.5)
    assert [kernel["error"] for kernel in document["kernels"]] == pytest.approx([0, 0.2, 0.5], abs=1e-6)
    assert document["device"] == "abacus-000000"
    history, verdict = printed.err.splitlines()
    assert verdict == "perfmodel: the geometric mean, 31.6%, is above 31%"
    assert re.fullmatch(r"history: 31\.6% after 31\.6%; 2 evaluations since \d{4}-\d\d-\d\d: ██", history)
    assert main(["store", "history", str(store), "--json"]) == 0
    kept = json.loads(capsys.readouterr().out)["evaluations"]
    assert [(each["calibration"], each["limit"], each["fails"]) for each in kept] == [
        ("madd.json", 0.5, False),
        ("madd.json", 0.31, True),
    ]
    assert main(["report", str(path), "--store", str(store), "--out", str(tmp_path / "report.html")]) == 0
    page = (tmp_path / "report.html").read_text()
    assert "Evaluations over time" in page
    assert page.count('class="history"') == 1
    packed = tmp_path / "packed.sqlite.xz"
    packed.write_bytes(lzma.compress(store.read_bytes()))
    assert main([*command[:-1], str(packed), "--fail-above", "50"]) == 0
    assert f"history: not kept, as store {packed} is compressed and only read" in capsys.readouterr().out


def test_the_store_beside_the_calibration_is_used(
    calibration: pm.Calibration, store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    calibration.save(tmp_path / "madd.json")
    (tmp_path / "madd.sqlite").write_bytes(store.read_bytes())
    assert main(["evaluate", str(tmp_path / "madd.json"), "matmul_sq", "n:256"]) == 0
    assert "20.0%" in capsys.readouterr().out

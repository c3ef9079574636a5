"""The study of device selection: its figures from known times, its devices, and its files."""

from __future__ import annotations

import json
import math
import re
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import perfmodel as pm
from perfmodel.basics.errors import DeviceError
from perfmodel.cli.command_line import main
from perfmodel.device import Device, find_device
from perfmodel.measuring.protocol import PROTOCOLS
from perfmodel.measuring.store import Measurement, Store, measurement_key
from perfmodel.models.projection import APPLICATIONS, PUBLISHED, chosen_devices, reproduce
from perfmodel.models.projection_cases import ProjectionCase, crossover, relative_error
from perfmodel.models.projection_study import (
    Application,
    DeviceStudy,
    EmulationCost,
    ProjectionFindings,
    emulation_seconds,
)
from perfmodel.models.projection_tables import text, write
from perfmodel.projection.characterization import _Microbenchmarks
from perfmodel.recipes.study import StudyOptions, studies
from tests.projection.test_device_profile import GPU

TIMES = st.lists(st.floats(1e-6, 1.0), min_size=2, max_size=5)


def case(application: str, size: int, measured: tuple[float, ...], predicted: tuple[float, ...]) -> ProjectionCase:
    names = "abcd"
    return ProjectionCase(
        application=application,
        size=size,
        is_table=size == 2,
        transfers=False,
        measured=dict(zip(names, measured, strict=False)),
        predicted=dict(zip(names, predicted, strict=False)),
        limits=dict.fromkeys(names, "compute"),
        predicted_std=dict.fromkeys(names, 0.1),
    )


@given(actual=TIMES, factor=st.floats(0.01, 100))
def test_relative_error_knows_ratios_only(actual: list[float], factor: float) -> None:
    assert relative_error(actual, [factor * each for each in actual]) == pytest.approx(0, abs=1e-7)


@given(actual=TIMES, projected=TIMES)
def test_relative_error_is_numpys(actual: list[float], projected: list[float]) -> None:
    both = min(len(actual), len(projected))
    one, two = np.array(actual[:both]), np.array(projected[:both])
    # |u - v|^2 = 2 - 2 cos for unit vectors.
    cosine = one @ two / np.sqrt((one @ one) * (two @ two))
    expected = math.sqrt(max(0.0, 1 - cosine))
    assert relative_error(actual[:both], projected[:both]) == pytest.approx(expected, abs=1e-7)
    assert 0 <= relative_error(actual[:both], projected[:both]) <= 1


def test_relative_error_is_one_for_opposites() -> None:
    assert relative_error([1, 0], [0, 1]) == pytest.approx(1)


def test_the_penalty_of_a_wrong_choice() -> None:
    wrong = case("x", 2, (3.0, 2.0), (1.0, 4.0))
    assert (wrong.chosen, wrong.fastest) == ("a", "b")
    assert wrong.penalty == pytest.approx(0.5)
    assert case("x", 2, (3.0, 2.0), (4.0, 1.0)).penalty == 0


def test_crossovers_are_where_one_device_stays_faster() -> None:
    cases = [
        case("x", 1, (1.0, 2.0), (5.0, 2.0)),
        case("x", 4, (3.0, 2.0), (1.0, 4.0)),
        case("x", 8, (1.0, 2.0), (1.0, 4.0)),
    ]
    assert crossover(cases, "a", "b", predicted=True) == 4
    assert crossover(cases, "a", "b", predicted=False) == 8
    assert crossover(cases, "b", "a", predicted=False) is None


def test_the_summary_counts_choices(tmp_path: Path) -> None:
    cases = (case("x", 1, (3.0, 2.0), (1.0, 4.0)), case("x", 2, (1.0, 2.0), (1.0, 2.0)))
    device = find_device("cpu")
    devices = {
        "a": {**device.fingerprint(), "kind": "gpu"},
        "b": {**device.fingerprint(), "kind": "cpu"},
    }
    emulated = (
        EmulationCost(
            application="x",
            size=2,
            work_groups=10,
            one_s=1e-3,
            all_s=1e-1,
            is_estimate=False,
            error_size=2,
            error_one=0.2,
            error_all=0.1,
        ),
    )
    findings = ProjectionFindings(
        devices=devices,
        profiles={"a": "made up", "b": "made up"},
        cases=cases,
        emulated=emulated,
        costs={"Reduction": ((1, 1.0, 2.0),)},
        notes=(),
    )
    summary = findings.summary()
    every, table = summary["all sizes, without transfers"], summary["table sizes, without transfers"]
    assert (every["cases"], every["fastest_chosen"], every["largest_penalty"]) == (2, 1, 0.5)
    assert (table["cases"], table["fastest_chosen"], table["mean_relative_error"]) == (1, 1, 0)
    # Beside them stands what it is worth to look at no kernel at all, and how wrong the times are.
    assert every["always"] == {
        "a": {"cases": 2, "fastest_chosen": 1, "largest_penalty": 0.5, "mean_penalty": 0.25},
        "b": {"cases": 2, "fastest_chosen": 1, "largest_penalty": 1.0, "mean_penalty": 0.5},
    }
    errors = every["time_errors"]
    assert errors["a"]["mean"] == pytest.approx(1 / 3)
    assert (errors["b"]["maximum"], errors["b"]["within_30_percent"], errors["b"]["count"]) == (1, 0.5, 2)
    assert summary["emulation"] == {"relative_error_one_group": 0.2, "relative_error_all_groups": 0.1}
    shown = text(findings, PUBLISHED)
    assert "7 of 8" in shown
    assert "33.7%" in shown
    assert re.search(r"^  always b +1 of 2 +100\.0% +50\.0%$", shown, re.MULTILINE)
    assert re.search(r"^all sizes, without transfers: b +\S+ +50\.0% +100\.0% +50\.0% +2$", shown, re.MULTILINE)
    written = write(findings, PUBLISHED, "the command", "quick", tmp_path, shown)
    assert [path.name for path in written] == ["results.json", "table.txt", "figure-6.png"]
    results = json.loads((tmp_path / "results.json").read_text())
    assert {"recipe", "perfmodel", "command", "rows", "summary", "published", "notes", "protocol"} <= results.keys()
    assert len(results["rows"]) == 4
    assert results["rows"][0]["measured_s"] == 3.0


def test_the_applications_are_those_of_table_ii(collection: pm.KernelCollection) -> None:
    assert len(APPLICATIONS) == 8
    assert {application.name for application in APPLICATIONS} == PUBLISHED["emulation_ratio"].keys()  # type: ignore[attr-defined]
    measured_by_profiles = {"global_copy", "throughput", "local_access", "launch", "empty", "access_pattern"}
    for application in APPLICATIONS:
        assert len(application.sizes) >= 5
        assert application.table in application.sizes
        assert application.kernel(application.sizes[0], collection).name not in measured_by_profiles


def test_cases_come_from_times_and_profiles() -> None:
    """Every choice is right, and no relative error is left, if the times are those that the profiles say."""
    applications = [
        Application(
            name="Reduction", tags="reduction dtype:float32 lsize_0:64", size="n", sizes=(1024, 4096), table=4096
        )
    ]
    profiles = {"a": GPU, "b": replace(GPU, compute_units=2)}
    with Store() as store:
        study = DeviceStudy(applications, store, "quick")
        times = {
            name: {key: float(profile.calibration().predict(kernel)) for key, kernel in study.kernels.items()}
            for name, profile in profiles.items()
        }
        cases = study.cases(times, profiles)
        assert len(cases) == 4
        assert all(each.penalty == 0 and each.relative_error == pytest.approx(0, abs=1e-7) for each in cases)
        (emulated,) = study.emulation(cases, profiles, 20)
        assert emulated.work_groups == 32
        assert emulated.error_all == pytest.approx(0, abs=1e-7)


def test_emulating_all_groups_is_estimated_from_a_sample(collection: pm.KernelCollection) -> None:
    (kernel,) = collection.generate_kernels(["reduction", "lsize_0:64", "dtype:float32", "n:8192"])
    one, whole, groups = emulation_seconds(kernel.as_emulated())
    assert groups == 64
    assert 0 < one < whole * groups


def test_parts_of_processors_are_devices() -> None:
    cpu = find_device("cpu")
    part = find_device("cpu/1")
    assert part == find_device(f"{cpu.key}/1")
    assert (part.key, part.compute_units) == (f"{cpu.key}/1", 1)
    assert part.is_here
    with pytest.raises(DeviceError, match="from 1 to"):
        find_device(f"cpu/{cpu.compute_units + 1}")
    with Store() as store:
        assert chosen_devices("cpu,cpu/1", store) == [cpu, part]
        if cpu.compute_units > 1:
            assert part in chosen_devices(None, store)


def test_it_is_a_study_of_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "projection" in studies()
    store = str(tmp_path / "times.sqlite")
    assert main(["reproduce", "projection", "--device", "nothing-like-it", "--store", store]) == 2
    assert "no device is called 'nothing-like-it'" in capsys.readouterr().err


def test_devices_that_only_a_store_knows_take_part(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Times that follow from two profiles, of devices that are elsewhere: all that the command writes follows too."""
    applications = (
        Application(
            name="Reduction", tags="reduction dtype:float32 lsize_0:64", size="n", sizes=(1024, 65536), table=1024
        ),
        Application(
            name="MatMul (lmem)",
            tags="matmul_sq tiled_prefetch:True dtype:float32 lsizes:16x16",
            size="n",
            sizes=(32, 64),
            table=64,
        ),
    )
    here = find_device("cpu")
    path = tmp_path / "times.sqlite"
    with Store(path) as store:
        for kind, key, profile in (("gpu", "far-gpu-000000", GPU), ("cpu", "far-cpu-000000", slow_cpu())):
            device = replace(here, key=key, name=key, kind=kind, compute_units=4, sub_group_size=32)
            kernels = [
                *_Microbenchmarks(device).kernels.values(),
                *DeviceStudy(applications, store, "quick").kernels.values(),
            ]
            for kernel in kernels:
                put(store, kernel, device, float(profile.calibration().predict(kernel)))
    names = "far-gpu-000000,far-cpu-000000"
    options = StudyOptions(tmp_path / "out", str(path), names, "quick", measure_only=False, command="the command")
    reproduce(applications, PUBLISHED, options)
    shown = capsys.readouterr().out
    assert "known from the store only" in shown
    assert "faster than far-cpu-000000" in shown
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    assert {row["device"] for row in results["rows"]} == {"far-gpu-000000", "far-cpu-000000"}
    assert len(results["rows"]) == 2 * 2 * 2 * 2
    assert results["summary"]["all sizes, without transfers"]["fastest_chosen"] == 4
    assert (tmp_path / "out" / "figure-7.png").read_bytes().startswith(b"\x89PNG")


def slow_cpu() -> pm.DeviceProfile:
    return replace(GPU, name="slow", kind="cpu", banks=0, resident_items=0, instructions={"float32": 1e8, "int32": 1e8})


def put(store: Store, kernel: pm.Kernel, device: Device, seconds: float) -> None:
    protocol = PROTOCOLS["quick"]
    fingerprint = device.fingerprint()
    key = measurement_key(kernel.program.content, kernel.sizes, fingerprint, protocol)
    trials = (seconds,) * 7
    store.put(
        Measurement(
            key=key,
            kernel=kernel.name,
            content=kernel.program.content,
            sizes=kernel.sizes,
            tags=dict(kernel.tags),
            device=fingerprint,
            protocol=asdict(protocol),
            trials=trials,
            dropped=protocol.dropped,
            statistic=protocol.statistic,
            flags=(),
            created="2026-01-01T00:00:00+00:00",
            versions={},
        )
    )

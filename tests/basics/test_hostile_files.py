"""Files that somebody else wrote: each is read within limits, or refused in one sentence; none ends in a traceback."""

from __future__ import annotations

import gzip
import json
import os
import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import perfmodel as pm
from perfmodel.basics import json_values
from perfmodel.basics.errors import CalibrationError, DeviceError, PerfmodelError, StoreError
from perfmodel.measuring.store import Store, import_file
from perfmodel.measuring.store.rows import COLUMNS, Measurement
from perfmodel.projection.device_profile import DeviceProfile
from perfmodel.report.reported import reported

RESULTS = Path(__file__).parents[2] / "docs" / "results" / "demo-nvidia-h200-e38dd1"
Damage = Callable[[dict[str, Any]], object]

DAMAGES: dict[str, Damage] = {
    "an infinite size": lambda c: c["rows"][0]["sizes"].update(n=float("inf")),
    "a size of half an element": lambda c: c["rows"][0]["sizes"].update(n=1.5),
    "a size that is text": lambda c: c["rows"][0]["sizes"].update(n="8"),
    "a size of 400 digits": lambda c: c["rows"][0]["sizes"].update(n=10**400),
    "a parameter of 400 digits": lambda c: c["parameters"].update(dict.fromkeys(c["parameters"], 10**400)),
    "a kernel that is no name": lambda c: c["rows"][0].update(kernel={}),
    "a variant that is no text": lambda c: c["rows"][0].update(variant=1),
    "a row that is none": lambda c: c["rows"].append(None),
    "a negative time": lambda c: c["rows"][0].update(measured_s=-1.0),
    "an infinite device": lambda c: c["device"].update(compute_units=float("-inf")),
    "a device whose name is none": lambda c: c["device"].update(name=["x"]),
    "a device that is a list": lambda c: c.update(device=[["name", "x"]]),
    "text that cannot be printed": lambda c: c["device"].update(name="\ud800"),
    "levels without end": lambda c: c.update(report=json.loads("[" * 90 + "]" * 90)),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_calibration_is_refused(damage: Damage, tmp_path: Path) -> None:
    content = json.loads((RESULTS / "calibration-overlap.json").read_text())
    damage(content)
    path = tmp_path / "cal.json"
    path.write_text(json.dumps(content))
    with pytest.raises(CalibrationError, match=r"^calibration .*cal\.json is damaged \([^\n]*\); calibrate again"):
        pm.Calibration.load(path)


def test_what_is_infinite_is_saved_as_unknown(tmp_path: Path) -> None:
    calibration = pm.Calibration.load(RESULTS / "calibration-overlap.json")
    calibration.device["clock_mhz"] = float("-inf")
    calibration.save(tmp_path / "cal.json")
    assert pm.Calibration.load(tmp_path / "cal.json").device["clock_mhz"] is None


@pytest.mark.parametrize(
    "damage",
    [
        lambda c: c.update(kind=3),
        lambda c: c.update(compute_units="132"),
        lambda c: c.update(name=None),
        lambda c: c.update(launch_s=float("inf")),
        lambda c: c.update(transaction_bytes=10**400),
        lambda c: c["instructions"].update(float32=10**400),
    ],
)
def test_a_damaged_device_profile_is_refused(damage: Damage, tmp_path: Path) -> None:
    name = DeviceProfile.names()[0]
    DeviceProfile.shipped(name).save(tmp_path / "profile.json")
    content = json.loads((tmp_path / "profile.json").read_text())
    damage(content)
    (tmp_path / "profile.json").write_text(json.dumps(content))
    with pytest.raises(DeviceError, match=r"^device profile .* is damaged"):
        DeviceProfile.load(tmp_path / "profile.json")


@pytest.mark.parametrize(
    "damage",
    [
        lambda c: c["rows"][0].update(kernel={}),
        lambda c: c["rows"][0].update(measured_s=-1),
        lambda c: c["rows"][0].update(predicted_s="1"),
        lambda c: c["rows"][0].update(variant=1),
        lambda c: c["rows"][0]["sizes"].update(n=float("inf")),
    ],
)
def test_damaged_results_are_refused(damage: Damage, tmp_path: Path) -> None:
    content = json.loads((RESULTS / "results.json").read_text())
    damage(content)
    (tmp_path / "results.json").write_text(json.dumps(content))
    with pytest.raises(PerfmodelError, match=r"^results.json of .*; reproduce it again$"):
        reported([str(tmp_path)])


def test_packed_results_are_not_unpacked_beyond_the_limit(tmp_path: Path) -> None:
    (tmp_path / "results.json.gz").write_bytes(gzip.compress(bytes(2 * json_values.MAX_BYTES)))
    with pytest.raises(PerfmodelError, match=f"holds more than {json_values.MAX_BYTES} bytes"):
        reported([str(tmp_path)])
    (tmp_path / "results.json.gz").write_bytes(gzip.compress(bytes(100))[:-4])
    with pytest.raises(PerfmodelError, match="cannot be read"):
        reported([str(tmp_path)])


def test_a_fifo_is_no_file_to_wait_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "cal.json")
    with pytest.raises(CalibrationError, match="no regular file"):
        pm.Calibration.load(tmp_path / "cal.json")


@pytest.mark.parametrize(
    ("text", "words"),
    {
        "NaN": "no number of JSON",
        "-Infinity": "no number of JSON",
        "1e400": "beyond all numbers",
        "1" * 30: "more than 64 bits",
        "[" * 70 + "]" * 70: "nested more than 64 deep",
        "[" * 10**6: "nested more than 64 deep",
        '"\\ud800"': "surrogates not allowed",
    }.items(),
    ids=lambda value: value[:12],
)
def test_json_that_others_do_not_read_is_refused(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        json_values.parse(text)


def test_a_document_of_too_many_values_is_refused_before_it_is_parsed() -> None:
    with pytest.raises(ValueError, match=f"more than {json_values.MAX_VALUES} values"):
        json_values.parse("[" + "{}," * json_values.MAX_VALUES)


@pytest.mark.parametrize("rows", [40, 4000])
def test_a_small_parquet_file_of_large_texts_is_not_unpacked(rows: int, tmp_path: Path) -> None:
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    names = [*COLUMNS[Measurement], "failure"]
    long = pyarrow.DictionaryArray.from_arrays(pyarrow.array([0] * rows), pyarrow.array(["x" * 2_000_000]))
    table = pyarrow.table(dict.fromkeys(names, long))
    parquet.write_table(table, tmp_path / "rows.parquet", compression="zstd")
    assert (tmp_path / "rows.parquet").stat().st_size < 100_000
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with Store() as store, pytest.raises(StoreError, match=r"no JSON|unpacks to more than 67108864 bytes: part it"):
        import_file(store, tmp_path / "rows.parquet")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 400_000  # kB


def test_lines_without_end_are_refused(tmp_path: Path) -> None:
    for name, text in (("rows.csv", "a," * 10**7), ("rows.jsonl", "[" * 10**7)):
        (tmp_path / name).write_text(text)
        with Store() as store, pytest.raises(StoreError, match="line 1 is longer than 8388608"):
            import_file(store, tmp_path / name)

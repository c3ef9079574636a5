"""A command that is given something wrong creates nothing: no store, no folder, no part of a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfmodel.cli.command_line import main

MADD, TAGS = "p_madd * f_op_float32_madd", ["matmul_sq", "n:64"]
NO_DEVICE, NO_TAG = ["--device", "abacus"], ["matmul_sq", "colour:blue"]
WRONG: dict[str, list[str]] = {
    "calibrate, device": ["calibrate", MADD, "--tags", *TAGS, *NO_DEVICE],
    "calibrate, device and store": ["calibrate", MADD, "--tags", *TAGS, *NO_DEVICE, "--store", "s.sqlite"],
    "calibrate, tag": ["calibrate", MADD, "--tags", *NO_TAG, "--device", "cpu"],
    "calibrate, model": ["calibrate", "p_madd * f_op_flaot32_madd", "--tags", *TAGS, "--device", "cpu"],
    "calibrate, protocol": ["calibrate", MADD, "--tags", *TAGS, "--device", "cpu", "--protocol", "slow"],
    "calibrate, feature": ["calibrate", "p_x * f_occupancy_cc:1.0", "--tags", *TAGS, "--device", "cpu"],
    "suggest, device": ["suggest", "--measurements", *TAGS, *NO_DEVICE],
    "suggest, tag": ["suggest", "--measurements", *NO_TAG, "--device", "cpu"],
    "suggest, terms": ["suggest", "--measurements", *TAGS, "--device", "cpu", "--terms", "0"],
    "measure, device": ["measure", *TAGS, "--store", "s.sqlite", "--device", "abacus"],
    "measure, dry run": ["measure", *TAGS, "--store", "s.sqlite", "--device", "abacus", "--dry-run"],
    "measure, tag": ["measure", *NO_TAG, "--store", "s.sqlite", "--device", "cpu"],
    "measure, protocol": ["measure", *TAGS, "--store", "s.sqlite", "--device", "cpu", "--protocol", "slow"],
    "measure, limit": ["measure", *TAGS, "--store", "s.sqlite", "--device", "cpu", "--memory-limit", "-1"],
    "measure, time": ["measure", *TAGS, "--store", "s.sqlite", "--device", "cpu", "--time-limit", "-1"],
    "measure, budget": ["measure", *TAGS, "--store", "s.sqlite", "--device", "cpu", "--budget", "-1"],
    "demo, device": ["demo", *NO_DEVICE],
    "demo, no GPU": ["demo", "--device", "gpu:7"],
    "demo, protocol": ["demo", "--device", "cpu", "--protocol", "slow"],
    "demo, budget": ["demo", "--device", "cpu", "--budget", "-1"],
    "reproduce, name": ["reproduce", "unifid"],
    "reproduce, device": ["reproduce", "unified", *NO_DEVICE],
    "reproduce, study's device": ["reproduce", "projection", *NO_DEVICE],
    "characterize, device": ["characterize", *NO_DEVICE, "--out", "profile.json"],
    "characterize, protocol": ["characterize", "--device", "cpu", "--out", "profile.json", "--protocol", "slow"],
    "evaluate, tag": ["evaluate", "unified@h200", *NO_TAG, "--store", "s.sqlite"],
    "evaluate, device": ["evaluate", "unified@h200", *TAGS, "--store", "s.sqlite", *NO_DEVICE],
    "evaluate, calibration": ["evaluate", "unifid@h200", *TAGS, "--store", "s.sqlite"],
    "report, calibration": ["report", "unifid@h200", "--out", "page.html"],
    "predict, tag": ["predict", "unified@h200", *NO_TAG],
    "count, tag": ["count", *NO_TAG],
    "verify, device": ["verify", "matmul_sq", *NO_DEVICE],
    "occupancy, device": ["occupancy", "none.cl", "--out", "curves", *NO_DEVICE],
    "project, device": ["project", *TAGS, "--device", "abacus"],
    "doctor, device": ["doctor", *NO_DEVICE],
    "import, file": ["store", "import", "s.sqlite", "none.csv"],
    "import, form": ["store", "import", "s.sqlite", "wrong.xyz"],
    "merge, file": ["store", "merge", "s.sqlite", "none.sqlite"],
    "export, store": ["store", "export", "none.sqlite", "table.csv"],
    "vacuum, store": ["store", "vacuum", "none.sqlite"],
}


@pytest.mark.parametrize("arguments", WRONG.values(), ids=WRONG)
def test_nothing_is_left_behind(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PERFMODEL_DEVICE", raising=False)
    try:
        status: object = main(arguments)
    except SystemExit as left:  # by argparse
        status = left.code
    said = capsys.readouterr().err
    assert status == 2, said
    assert "defect" not in said
    assert [str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")] == []

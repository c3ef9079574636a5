"""A report begins with a verdict: how good a model is, whether it chooses well, what limits its kernels."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from perfmodel.cli.command_line import main
from perfmodel.modelling.rows import CALIBRATION, EVALUATION, Row
from perfmodel.report.chart_data import Charts
from perfmodel.report.reported import ReportedModel, reported
from perfmodel.report.sample import ReportedSample
from perfmodel.report.verdicts import sentences

DEMO = Path(__file__).parents[2] / "docs" / "results" / "demo-nvidia-h200-e38dd1"
STORE = str(DEMO / "measurements.sqlite.xz")
HELD_OUT = ["--evaluate", "matmul_sq", "tiled_prefetch:*", "n=2560,3072", "--store", STORE]


def row(variant: str, n: int, measured: float, predicted: float, role: str = EVALUATION) -> Row:
    return Row(
        kernel="matmul",
        variant=variant,
        sizes={"n": n},
        measured_s=measured,
        predicted_s=predicted,
        role=role,
        flags=(),
    )


def verdict(*rows: Row) -> list[str]:
    model = ReportedModel("mine", {"name": "Abacus"}, {}, rows)
    return sentences(Charts.of(model, ReportedSample({}, 0, 0)))


def test_errors_choices_and_outliers_are_said() -> None:
    said = verdict(
        row("tiled", 64, 1.0, 1.1),
        row("direct", 64, 2.0, 2.0),
        row("tiled", 128, 4.0, 8.0),
        row("direct", 128, 5.0, 5.0),
        row("tiled", 32, 1.0, 9.0, CALIBRATION),
    )
    assert "over 4 times that no fit has seen; 75.0% of them lie within ±30 %" in said[0]
    assert said[1] == "Furthest off: matmul tiled n=128 (100.0%)."
    assert said[2] == (
        "It names the fastest variant in 1 of 2 comparisons; the worst choice takes 1.25 times as long as the best."
    )
    assert len(said) == 3


def test_of_a_fit_alone_that_is_said() -> None:
    assert "over 1 times of the fit itself" in verdict(row("tiled", 64, 1.0, 1.1, CALIBRATION))[0]
    assert verdict() == []


def test_only_the_three_furthest_are_named() -> None:
    said = verdict(*(row("tiled", n, 1.0, 2.0 + n) for n in range(5)))
    assert said[1].endswith("n=2 (300.0%) and 2 more.")


def document(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    assert main(["report", *arguments, "--json"]) == 0, capsys.readouterr().err
    return json.loads(capsys.readouterr().out)


def test_a_calibration_is_judged_by_kernels_that_it_was_not_fitted_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PERFMODEL_DEVICE", raising=False)
    (found,) = document(capsys, str(DEMO / "calibration-overlap.json"), *HELD_OUT)["models"]
    assert [each["role"] for each in found["rows"]].count(EVALUATION) == 4
    assert "over 4 times that no fit has seen" in found["verdict"][0]
    assert found["verdict"][1] == "It names the fastest variant in 2 of 2 comparisons."
    (whole,) = [model for model in reported([str(DEMO)]) if model.name == "overlap"]
    known = {(r.variant, r.sizes["n"]): r.predicted_s for r in whole.rows if r.role == EVALUATION}
    for each in found["rows"]:
        if each["role"] == EVALUATION:
            assert each["predicted_s"] == pytest.approx(known[each["variant"], each["sizes"]["n"]], rel=1e-6)
    assert main(["report", str(DEMO / "calibration-overlap.json"), *HELD_OUT]) == 0
    page = (tmp_path / "report.html").read_text()
    assert page.index("Predictions are off by") < page.index("Measured against predicted")


def test_a_model_without_a_calibration_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    folder = str(DEMO.parent / "perflex-fd-nvidia-h200-e38dd1")
    assert main(["report", folder, *HELD_OUT]) == 2
    assert "has no calibration to evaluate; leave it out, or reproduce it again" in capsys.readouterr().err


def test_a_row_without_times_is_no_verdict() -> None:
    assert verdict(replace(row("tiled", 64, 1.0, 1.1), measured_s=None)) == []


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        (["memory"], "The kernel that was explained is limited by memory."),
        (["memory", "waits"], "Of 2 kernels that were explained, 1 is limited by memory; others by waits."),
        (["memory", "memory"], "Of 2 kernels that were explained, 2 are limited by memory."),
    ],
)
def test_what_limits_is_said_of_one_kernel_and_of_several(limits: list[str], said: str) -> None:
    charts = Charts.of(ReportedModel("mine", {"name": "Abacus"}, {}, ()), ReportedSample({}, 0, 0))
    breakdowns: Any = [SimpleNamespace(parts=[(name, 1.0)]) for name in limits]
    assert sentences(replace(charts, breakdowns=breakdowns)) == [said]

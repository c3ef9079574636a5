"""Recipes: the demonstration on the CPU device, its files, and the wall between calibration and evaluation."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

import perfmodel as pm
from perfmodel import recipe, report
from perfmodel.device import Device
from perfmodel.errors import PerfmodelError
from perfmodel.recipe import Outcome, Recipe, TagFilter


class TinyRecipe(Recipe):
    name = "tiny"
    summary = "the demonstration's machinery on four small kernels"
    protocol = "quick"
    models: ClassVar = {
        "one-term": "p_madd * f_op_float32_madd",
        "two-term": "p_l * f_sync_kernel_launch + p_m * f_op_float32_madd",
    }
    evaluation: Sequence[TagFilter] = (["matmul_sq", "tiled_prefetch:*", "n:96,192"],)

    def measurement_tags(self, seconds_of: Callable[[TagFilter], float]) -> Sequence[TagFilter]:
        assert seconds_of(["matmul_sq", "n:64"]) > 0
        return [["matmul_sq", "tiled_prefetch:*", "n:64,128"]]

    def evaluation_tags(self, seconds_of: Callable[[TagFilter], float]) -> Sequence[TagFilter]:
        return self.evaluation


@pytest.fixture(scope="module")
def outcome(cpu: Device) -> Outcome:
    with pm.Store() as store:
        return recipe.run(TinyRecipe(), device=cpu, store=store, command="perfmodel tiny")


def test_every_summary_figure_follows_from_the_rows(outcome: Outcome, tmp_path: Path) -> None:
    report.write(outcome, tmp_path)
    saved = json.loads((tmp_path / "results.json").read_text())
    assert saved["summary"] == json.loads(json.dumps(recipe.summarize(outcome.rows, list(TinyRecipe.models))))
    for model in TinyRecipe.models:
        rows = [r for r in saved["rows"] if r["model"] == model and r["role"] == "evaluation"]
        assert len(rows) == 4
        for variant, errors in saved["summary"][model]["errors"].items():
            relative = [
                abs(r["predicted_s"] - r["measured_s"]) / r["measured_s"]
                for r in rows
                if f"{r['kernel']} {r['variant']}" == variant
            ]
            assert errors["geometric_mean"] == pytest.approx(np.exp(np.mean(np.log(relative))))
            assert errors["mean"] == pytest.approx(np.mean(relative))
            assert errors["maximum"] == pytest.approx(max(relative))


def test_all_files_are_written_and_whole(outcome: Outcome, tmp_path: Path) -> None:
    written = report.write(outcome, tmp_path / "new" / "folder")
    assert {path.name for path in written} == {
        *("results.json", "table.txt", "predicted.png", "report.html"),
        *("calibration-one-term.json", "calibration-two-term.json"),
    }
    assert (tmp_path / "new" / "folder" / "predicted.png").read_bytes().startswith(b"\x89PNG")
    loaded = pm.Calibration.load(tmp_path / "new" / "folder" / "calibration-two-term.json")
    assert loaded.parameters == outcome.calibrations["two-term"].parameters


def test_the_page_stands_alone(outcome: Outcome, tmp_path: Path) -> None:
    """No script, no link and no source outside the file itself; what comes from outside is escaped."""
    report.write(outcome, tmp_path)
    page = (tmp_path / "report.html").read_text()
    assert not re.search(r"<script|<link|@import|url\(", page)
    assert all(source.startswith("data:") for source in re.findall(r'src="([^"]*)"', page))
    for text in ("p_madd * f_op_float32_madd", outcome.device["driver"], "geometric mean", "perfmodel tiny"):
        assert text in page
    hostile = Outcome(
        outcome.recipe, "<script>alert(1)</script>", {**outcome.device, "name": "<b>x</b>"}, outcome.protocol,
        outcome.calibrations, outcome.rows, outcome.summary,
    )  # fmt: skip
    report.write(hostile, tmp_path)
    page = (tmp_path / "report.html").read_text()
    assert "<script>" not in page
    assert "<b>x</b>" not in page


def test_tables_show_measured_predicted_and_error_side_by_side(outcome: Outcome) -> None:
    lines = report.comparison(outcome).splitlines()
    assert lines[0].split() == ["kernel", "size", "measured", "one-term", "error", "two-term", "error"]
    assert len(lines) == 2 + 4
    assert lines[2].startswith("tiled_prefetch=True  ")
    told = report.verdict(outcome)
    assert "one-term: predicts the same time for all variants" in told
    assert "measured fastest: tiled_prefetch=" in told


def test_a_recipe_cannot_judge_itself_on_what_it_was_fitted_to(cpu: Device) -> None:
    class Cheating(TinyRecipe):
        evaluation = (["matmul_sq", "n:96,128"],)

    with pm.Store() as store, pytest.raises(PerfmodelError, match=r"would judge itself on .*n=128"):
        recipe.run(Cheating(), device=cpu, store=store)


def test_unknown_recipes_are_named() -> None:
    with pytest.raises(PerfmodelError, match=r"no recipe 'dem'; did you mean 'demo'\?"):
        recipe.recipe("dem")


def test_the_folder_must_be_writable(outcome: Outcome, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(PerfmodelError, match="cannot be made"):
        report.write(outcome, tmp_path / "file")


def test_the_demonstration_holds_out_sizes_beyond_twice_the_fit(cpu: Device) -> None:
    chosen = recipe.recipe("demo")
    for slow_or_fast in (lambda _: 1e-3, lambda _: 1e-5):
        sizes = []
        for filters in (chosen.measurement_tags(slow_or_fast), chosen.evaluation_tags(slow_or_fast)):
            (tag,) = [tag for tag in filters[0] if tag.startswith("n:")]
            sizes.append([int(n) for n in tag[2:].split(",")])
        fitted, predicted = sizes
        assert not set(fitted) & set(predicted)
        assert max(predicted) >= 2 * max(fitted)


def test_the_demonstration_runs_and_resumes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The main job on the CPU device; its accuracy is a figure for benchmarks and docs, its direction is not."""
    from perfmodel.cli import main

    assert main(["demo", "--device", "cpu", "--protocol", "quick", "--out", str(tmp_path)]) == 0
    first = json.loads((tmp_path / "results.json").read_text())
    assert main(["demo", "--device", "cpu", "--protocol", "quick", "--out", str(tmp_path)]) == 0
    again = json.loads((tmp_path / "results.json").read_text())
    assert [row["measured_s"] for row in again["rows"]] == [row["measured_s"] for row in first["rows"]]
    assert "right at" in capsys.readouterr().out
    errors = first["summary"]["overlap"]["errors"]
    assert len(errors) == 2
    assert all(entry["count"] == 13 for entry in errors.values())

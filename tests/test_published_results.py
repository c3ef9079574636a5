"""Tables of docs/results follow from the measurements beside them, on a machine without their device."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

import perfmodel
from perfmodel.cli import main

RESULTS = Path(perfmodel.__file__).parents[1] / "docs" / "results"
H200 = RESULTS / "unified-plus-nvidia-h200-e38dd1" / "measurements.sqlite.xz"


def errors(file: Path) -> dict[str, Any]:
    """Every model's geometric mean for each line of the table; baselines depend on the order of their features."""
    text = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
    summary = json.loads(text)["summary"]
    models = set(summary) - {"roofline", "random-forest"}
    return {f"{name} {line}": e["geometric_mean"] for name in models for line, e in summary[name]["errors"].items()}


def test_the_unified_models_table_on_an_h200(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--device", "h200", "--store", str(H200), "--out", str(tmp_path)]
    assert main(["reproduce", "unified", *arguments]) == 0
    shown = capsys.readouterr().out
    assert "nvidia-h200-e38dd1" in shown
    assert f"not on this machine; all times are those of {H200}" in shown
    committed = errors(RESULTS / "unified-nvidia-h200-e38dd1" / "results.json.gz")
    assert errors(tmp_path / "results.json") == pytest.approx(committed, rel=1e-3)


@pytest.mark.parametrize("name", ["perflex-fd", "perflex-matmul-plus"])
def test_the_tables_of_perflex_on_an_h200(name: str, tmp_path: Path) -> None:
    assert main(["reproduce", name, "--device", "h200", "--store", str(H200), "--out", str(tmp_path)]) == 0
    committed = errors(RESULTS / f"{name}-nvidia-h200-e38dd1" / "results.json.gz")
    assert errors(tmp_path / "results.json") == pytest.approx(committed, rel=1e-3)

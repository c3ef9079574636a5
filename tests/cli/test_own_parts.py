"""Features and generators of a file of one's own: by --load and perfmodel.toml, in every command, also in report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import perfmodel as pm
from perfmodel.cli import own_parts
from perfmodel.cli.command_line import main
from perfmodel.collection.collection import select_kernels
from tests.cli.test_selection import MINE
from tests.conftest import SimulatedTime

FEATURE = """
from perfmodel.vocabulary.named_features import CountedFeature, FeatureFamily

class Rows(CountedFeature):
    "Rows of whatever is computed."
    unit = "row"

    def values(self, counts, sizes):
        return counts.work_items(sizes)

class RowFamily(FeatureFamily):
    prefix = ("rows",)
    summary = "rows of whatever is computed"
    examples = ("f_rows",)

    def parse(self, name, words):
        return Rows(name)
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Returns the working folder, with a file of a feature and generators, and a calibration that needs both."""
    (tmp_path / "mine.py").write_text(MINE + FEATURE)
    monkeypatch.chdir(tmp_path)
    time = SimulatedTime(lambda count: 1e-6 * count("f_rows"))
    with own_parts.loaded(["mine.py"]):
        model = pm.Model("f_cl_wall_time", "p_row * f_rows", features={"f_cl_wall_time": time})
        kernels = select_kernels(["maps", "n:128,256,512"])
        model.fit(pm.measure(kernels, model)).save("c.json")
    return tmp_path


def ran(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    assert main([*arguments, "--json"]) == 0, capsys.readouterr().err
    return json.loads(capsys.readouterr().out)


def test_a_feature_of_a_file_is_described_and_gone_afterwards(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["features", "f_rows", "--load", "mine.py"]) == 0
    shown = capsys.readouterr().out
    assert "rows of whatever is computed" in shown
    assert "its parameter is in s/row" in shown
    assert main(["features", "f_rows"]) == 2
    assert "no feature family knows 'f_rows'" in capsys.readouterr().err


@pytest.mark.parametrize("by_file", [False, True], ids=["--load", "perfmodel.toml"])
def test_a_calibration_with_both_predicts(by_file: bool, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    load = [] if by_file else ["--load", "mine.py"]
    if by_file:
        (folder / "perfmodel.toml").write_text('[defaults]\nload = ["mine.py"]\n')
    (found,) = ran(capsys, "predict", "c.json", "maps", "n=1024", *load)["predictions"]
    assert found["predicted_s"] == pytest.approx(1024e-6)
    assert ran(capsys, "rank", "c.json", "mine.py", "n=1024", *load)["ranking"][0]["predicted_s"] > 0


def test_a_report_explains_kernels_of_a_file(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "c.json", "--load", "mine.py"]) == 0, capsys.readouterr().err
    page = (folder / "report.html").read_text()
    assert "could not be generated again" not in page
    assert "f_rows" in page


def test_what_does_not_load_is_one_sentence(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "broken.py").write_text("1 / 0\n")
    assert main(["kernels", "--load", "broken.py"]) == 2
    assert "broken.py raises ZeroDivisionError: division by zero (line 1)" in capsys.readouterr().err

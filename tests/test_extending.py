"""docs/extending.md: its files make a package that perfmodel finds, verifies, measures and predicts with."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parent.parent / "docs" / "extending.md"
GROUPS = {"intensity": "features", "axpy_chain": "generators", "quick_look": "models"}


@pytest.fixture(scope="module")
def studio(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the page's files as an installed package, as its pyproject.toml announces them."""
    folder = tmp_path_factory.mktemp("studio")
    package, info = folder / "studio", folder / "studio-1.0.dist-info"
    package.mkdir()
    info.mkdir()
    (package / "__init__.py").touch()
    page = PAGE.read_text(encoding="utf-8")
    for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        (package / block.partition("\n")[0].removeprefix("# ")).write_text(block, encoding="utf-8")
    announced = re.findall(r'\[project\.entry-points\."(.*)"\]\n(\w+) = "(.*)"\n', page)
    assert {name: group.removeprefix("perfmodel.") for group, name, _ in announced} == GROUPS
    points = "".join(f"[{group}]\n{name} = {module}\n" for group, name, module in announced)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: studio\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(points)
    return folder


def ran(folder: Path, *arguments: str) -> str:
    """Returns what a command prints in a process that has the package installed."""
    environment = os.environ | {"PYTHONPATH": str(folder), "PERFMODEL_DEVICE": "cpu", "COLUMNS": "200"}
    done = subprocess.run(
        [sys.executable, "-m", "perfmodel", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        cwd=PAGE.parent.parent,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_feature_is_one_of_a_model(studio: Path) -> None:
    assert "f_intensity_float32" in ran(studio, "features")
    program = """
import perfmodel as pm
tags = ["axpy_chain", "dtype:float32", "length:*", "n:512"]
kernels = pm.KernelCollection(pm.ALL_GENERATORS).generate_kernels(tags)
print([pm.feature("f_intensity_float32").eval(each) for each in kernels])
try:
    pm.feature("f_intensity_int8")
except pm.PerfmodelError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONPATH": f"{studio}{os.pathsep}{PAGE.parent.parent}"},
    )
    values, refused = done.stdout.splitlines()
    # Each element is loaded once for every time that its text names it, and stored once.
    assert json.loads(values) == pytest.approx([each / ((each + 1 + 1) * 4) for each in (1, 8, 64)])
    assert "float32" in refused


def test_the_generator_is_listed_and_verified(studio: Path) -> None:
    assert "axpy_chain" in ran(studio, "kernels")
    assert "axpy_chain" in ran(studio, "verify", "axpy_chain")


@pytest.mark.timed
def test_the_recipe_is_reproduced(studio: Path, tmp_path: Path) -> None:
    ran(studio, "reproduce", "quick-look", "--out", str(tmp_path / "out"), "--budget", "60")
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    assert results["recipe"] == "quick-look"
    judged = [row for row in results["rows"] if row["role"] == "evaluation"]
    assert {row["kernel"] for row in judged} == {"axpy_chain"}
    assert all(row["predicted_s"] > 0 for row in judged)


def test_programs_of_the_front_end_are_counted_emulated_and_predicted(studio: Path) -> None:
    file = str(studio / "studio" / "elementwise_line.py")
    counted = json.loads(ran(studio, "count", f"{file}:kernel", "--json"))
    (table,) = counted["kernels"]
    operations = {(row["kind"], row["dtype"]): row for row in table["operations"]}
    assert ("madd", "float32") in operations
    assert "line" in ran(studio, "emulate", f"{file}:kernel", "n:1024")
    predicted = json.loads(ran(studio, "predict", "unified-plus@h200", f"{file}:kernel", "--json"))
    assert predicted["predictions"][0]["predicted_s"] > 0

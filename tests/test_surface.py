"""Tests what `import perfmodel as pm` offers, and what holds of all of it: warnings of one base, JSON of one type."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import perfmodel as pm
from perfmodel.basics import files
from perfmodel.basics.json_values import plain

NAMES = {
    *("Model", "Meaning", "feature", "register", "Feature"),
    *("Kernel", "KernelCollection", "KernelGenerator", "ALL_GENERATORS"),
    *("devices", "Device", "Protocol", "measure", "Campaign", "Store"),
    *("Calibration", "calibrate", "evaluate", "suggest", "ModelRegressor", "Recipe"),
    *("prune", "tune", "choose_device", "DeviceProfile"),
    *("emulate", "occupancy", "intercept", "improve"),
    *("PerfmodelError", "PerfmodelWarning"),
}


def test_the_names_are_these_and_no_others() -> None:
    for _ in range(2):  # before and after their modules were imported
        assert {name for name in dir(pm) if not name.startswith("__")} == NAMES
        assert sorted(pm.__all__) == sorted(NAMES)
        assert all(getattr(pm, name) is not None for name in NAMES)


def test_the_reference_has_each_once_by_its_short_name() -> None:
    pages = sorted((Path(__file__).parent.parent / "docs").glob("reference-*.md"))
    listed = [name for page in pages for name in re.findall(r"^\.\. auto\w+:: pm\.(\w+)$", page.read_text(), re.M)]
    assert sorted(listed) == sorted(NAMES - {"ALL_GENERATORS"})
    assert all("```python" in page.read_text() for page in pages)


def test_importing_loads_next_to_nothing() -> None:
    program = "import sys, perfmodel; dir(perfmodel); print(*(n for n in sys.modules if n.startswith('perfmodel')))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) == {"perfmodel", "perfmodel.basics", "perfmodel.basics.version"}


def test_all_names_are_there_without_scikit_learn() -> None:
    program = "import sys; sys.modules['sklearn'] = None; from perfmodel import *; ModelRegressor('p_a * f_op')"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1].startswith("perfmodel.basics.errors.FitError: estimators need scikit-learn")


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="'nothing'"):
        pm.nothing  # noqa: B018


def _sources() -> list[Path]:
    root = Path(pm.__file__).parent
    folders = [root, *(root.parent / name for name in ("features", "generators", "models"))]
    return [path for folder in folders for path in folder.rglob("*.py")]


def test_every_warning_is_of_the_one_base() -> None:
    """Every warning that is given anywhere is of a named class that derives from `PerfmodelWarning`."""
    given, known, bases = set(), {"PerfmodelWarning"}, {}
    for path in _sources():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "warnings.warn":
                assert len(node.args) == 2, f"{path}:{node.lineno} names no class of warning"
                given.add(ast.unparse(node.args[1]))
            elif isinstance(node, ast.ClassDef) and node.bases:
                bases[node.name] = ast.unparse(node.bases[0])
    known |= {name for name, base in bases.items() if base in known}
    assert given <= known
    assert len(given) > 5
    assert not {name for name, base in bases.items() if base.endswith("Warning")} - known
    assert issubclass(pm.PerfmodelWarning, UserWarning)


@pytest.fixture(scope="module")
def calibration() -> pm.Calibration:
    return pm.Calibration.shipped("unified-plus", device="H200")


@pytest.fixture(scope="module")
def kernel() -> pm.Kernel:
    return pm.KernelCollection(pm.ALL_GENERATORS).generate_kernels(["vector_add", "n:4096"])[0]


AS_JSON: dict[str, Callable[[pm.Calibration, pm.Kernel], Any]] = {
    "calibration": lambda calibration, kernel: calibration.as_json(),
    "explanation": lambda calibration, kernel: calibration.explain(kernel).as_json(),
    "comparison": lambda calibration, kernel: calibration.compare(kernel, kernel.at(n=8192)).as_json(),
    "profile": lambda calibration, kernel: pm.emulate(kernel).as_json(),
    "device profile": lambda calibration, kernel: pm.DeviceProfile.shipped("H200").as_json(),
    "choice": lambda calibration, kernel: pm.choose_device(kernel, ["C2050"]).as_json(),
}


@pytest.mark.parametrize("make", AS_JSON.values(), ids=AS_JSON)
def test_as_json_gives_plain_values(
    make: Callable[[pm.Calibration, pm.Kernel], Any], calibration: pm.Calibration, kernel: pm.Kernel
) -> None:
    found = make(calibration, kernel)
    assert isinstance(found, dict)
    assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_nothing_called_as_json_gives_text() -> None:
    for path in _sources():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef) and "as_json" in node.name:
                returned = ast.unparse(node.returns) if node.returns else ""
                assert returned.startswith(("dict[str,", "list[")), f"{path}:{node.lineno} returns {returned}"


def test_plain_values() -> None:
    import numpy as np

    given = {"a": np.float64(1.5), "b": (np.int64(2), float("nan"), "x"), "c": np.array([[1.0, np.inf]]), "d": b"\x01"}
    assert plain(given) == {"a": 1.5, "b": [2, None, "x"], "c": [[1.0, None]], "d": "01"}


SAVED: dict[str, Callable[[Path], None]] = {
    "calibration": lambda path: pm.Calibration.shipped("unified-plus", device="H200").save(path),
    "device profile": lambda path: pm.DeviceProfile.shipped("H200").save(path),
}


@pytest.mark.parametrize("save", SAVED.values(), ids=SAVED)
def test_what_was_there_stays_until_all_is_written(
    save: Callable[[Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: Path, target: Path) -> None:
        raise OSError(28, "No space left on device")

    target = tmp_path / "saved.json"
    target.write_text("before")
    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", full)
        with pytest.raises(pm.PerfmodelError, match="cannot be written"):
            save(target)
    assert target.read_text() == "before"
    assert list(tmp_path.iterdir()) == [target]
    save(target)
    assert json.loads(target.read_text())
    assert list(tmp_path.iterdir()) == [target]


def test_a_link_stays_one_and_what_is_no_file_is_written_to(tmp_path: Path) -> None:
    target, link, pipe = tmp_path / "target", tmp_path / "link", tmp_path / "pipe"
    link.symlink_to(target)
    files.write(link, "one")
    assert link.is_symlink()
    assert target.read_text() == "one"
    os.mkfifo(pipe)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    files.write(pipe, "two")
    reader.join(10)
    assert read == ["two"]
    assert pipe.is_fifo()

"""The wheel and the sdist: built, installed into an empty environment, and complete."""

from __future__ import annotations

import re
import subprocess
import sys
import sysconfig
import tomllib
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

CHECK = """
import importlib, pathlib, perfmodel
from importlib.metadata import version
from importlib.resources import files
where = pathlib.Path(perfmodel.__file__).parent
assert where.is_relative_to(ENVIRONMENT), where
for catalogue in ("features", "generators", "models"):
    module = importlib.import_module(f"perfmodel.{catalogue}")
    assert pathlib.Path(module.__file__).is_relative_to(ENVIRONMENT), module.__file__
assert version("perfmodel") == perfmodel.__version__
assert "$title" in (files("perfmodel.report") / "page.html").read_text()
assert all((files("perfmodel.report") / f"page.{kind}").is_file() for kind in ("css", "js"))
assert (files("perfmodel.report.browsing") / "page.js").is_file()
assert (files("perfmodel") / "py.typed").is_file()
assert {g.name for g in perfmodel.ALL_GENERATORS} >= {"matmul_sq", "global_copy", "throughput", "empty"}
assert perfmodel.feature("f_op_float32_madd")
from perfmodel.recipes.recipe import recipes
assert "demo" in recipes()
assert perfmodel.Calibration.shipped("unified-plus", device="H200").parameters
print("complete")
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a source archive, and wheels made from the checkout and from that archive alone."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_wheel_works_in_an_empty_environment(built: Path, tmp_path: Path) -> None:
    """`build` makes the wheel from the sdist, so that whatever the sdist lacks is missing here too."""
    (wheel,) = built.glob("*.whl")
    venv.create(tmp_path / "empty", with_pip=False)
    python = tmp_path / "empty" / "bin" / "python"
    install = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*install, str(wheel)], check=True)
    # The dependencies are those of this environment, found after the new one's own packages; its editable perfmodel
    # does not come along, since .pth files in folders added this way are not read.
    site = Path(sysconfig.get_path("purelib", vars={"base": str(tmp_path / "empty")}))
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    check = f"import pathlib\nENVIRONMENT = pathlib.Path({str(tmp_path)!r})\n{CHECK}"
    done = subprocess.run([str(python), "-c", check], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.stdout.strip().endswith("complete"), done.stderr
    script = subprocess.run(
        [str(tmp_path / "empty" / "bin" / "perfmodel"), "--version"],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )
    assert script.stdout.startswith("perfmodel ")


def test_an_uninstalled_checkout_works_too(tmp_path: Path) -> None:
    """Only the checkout is on the path, as when a test runner is started in it."""
    program = "import perfmodel.features, perfmodel.models, perfmodel; print(len(perfmodel.ALL_GENERATORS))"
    (tmp_path / "perfmodel").symlink_to(ROOT / "perfmodel")
    dependencies = sysconfig.get_path("purelib")
    command = [sys.executable, "-S", "-c", f"import sys; sys.path[:0] = [{str(ROOT)!r}, {dependencies!r}]; {program}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert int(done.stdout) >= 5, done.stderr


def test_the_lock_pins_everything_and_names_no_address() -> None:
    lines = (ROOT / "requirements.lock").read_text().splitlines()
    assert all("==" in line for line in lines)
    assert not any("://" in line for line in lines)
    names = {line.split("==")[0] for line in lines}
    assert "islpy-barvinok" in names
    assert "islpy" not in names


def test_whatever_the_developers_extra_asks_for_is_pinned() -> None:
    """Pins are installed without their dependencies: what lacks one is missing, and tests that need it are skipped."""

    def name(requirement: str) -> str:
        return re.split(r"[^\w.-]", requirement, maxsplit=1)[0].lower().replace("_", "-")

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    (own,) = (line for line in extras["dev"] if line.startswith("perfmodel["))
    asked = [*project["dependencies"], *extras["dev"]]
    asked += [line for extra in re.findall(r"\w+", own)[1:] for line in extras[extra]]
    pinned = {name(line) for line in (ROOT / "requirements.lock").read_text().splitlines()}
    assert {name(line) for line in asked} - pinned == {"perfmodel"}

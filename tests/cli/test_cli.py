"""The command line as a person uses it: what it prints, and what it says to wrong input."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest

import perfmodel as pm
from perfmodel.cli.command_line import main
from perfmodel.recipes.recipe import Recipe, TagFilter

MADDS = "p_madd * f_op_float32_madd"
QUICK = ["--device", "cpu", "--protocol", "quick"]


@pytest.fixture(scope="module")
def calibration(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("calibration")
    path = folder / "madd.json"
    store = ["--store", str(folder / "times.sqlite")]
    assert main(["calibrate", MADDS, "--tags", "matmul_sq", "n:128,192", *QUICK, *store, "--out", str(path)]) == 0
    return path


def test_devices_are_listed_with_their_keys(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["devices"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["key", "units", "clock", "local", "global"]
    assert "KiB" in lines[2]
    assert max(map(len, lines)) <= 80


def test_kernels_lists_families_and_selections(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kernels"]) == 0
    overview = capsys.readouterr().out
    assert "matmul_sq: square matrix multiplication" in overview
    assert "    tiled_prefetch: " in overview
    assert main(["kernels", "matmul_sq", "n:64,128"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2
    assert lines[0].endswith("n=64")


def test_kernels_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kernels", "--json"]) == 0
    everything = json.loads(capsys.readouterr().out)
    families = {family["name"]: family for family in everything["generators"]}
    assert set(families) == {generator.name for generator in pm.ALL_GENERATORS}
    size = next(tag for tag in families["matmul_sq"]["tags"] if tag["name"] == "n")
    assert size["is_size"]
    assert size["default"] == ["256", "512", "1024", "2048"]
    assert everything["work_group_sets"]["2-D_Med"] == ["16x12", "16x16", "32x16"]
    assert "kernels" not in everything
    assert main(["kernels", "matmul_sq", "n:64", "tiled_prefetch:*", "--json"]) == 0
    selected = json.loads(capsys.readouterr().out)
    assert [family["name"] for family in selected["generators"]] == ["matmul_sq"]
    assert [(k["variant"]["tiled_prefetch"], k["sizes"]) for k in selected["kernels"]] == [
        ("True", {"n": 64}),
        ("False", {"n": 64}),
    ]


def test_verify_compares_with_the_references(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", "empty", "--device", "cpu"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"empty: \d+ kernels equal their reference", lines[1])
    assert lines[2].endswith("kernels in all")


def test_features_lists_the_families(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["features"]) == 0
    shown = capsys.readouterr().out
    for family in ("f_cl_wall_time", "f_mem_access", "f_op", "f_sync_barrier_local", "f_thread_groups", "f_work_items"):
        assert f"{family}: " in shown


def test_calibrate_predict_explain_and_rank(calibration: Path, capsys: pytest.CaptureFixture[str]) -> None:
    saved = json.loads(calibration.read_text())
    seconds = saved["parameters"]["p_madd"] * 256**3
    assert main(["predict", str(calibration), "matmul_sq", "n:256"]) == 0
    predicted = capsys.readouterr().out
    assert f"{seconds * 1e3:.4g} ms" in predicted or f"{seconds * 1e6:.4g} us" in predicted
    assert main(["explain", str(calibration), "matmul_sq", "n:256"]) == 0
    assert "limited by p_madd" in capsys.readouterr().out
    assert main(["rank", str(calibration), "matmul_sq", "n:128,256"]) == 0
    shown = capsys.readouterr().out
    assert re.findall(r"^(\d) .* ([\d.]+) +(\d+%)$", shown, re.MULTILINE) == [
        ("1", "1.00", "100%"),
        ("2", "8.00", "0%"),
    ]


def test_a_model_can_come_from_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "model.txt").write_text("# one term\nwork = p_madd * f_op_float32_madd\nwork\n")
    arguments = [
        f"@{tmp_path / 'model.txt'}",
        "--tags",
        "matmul_sq",
        "n:64,128",
        *QUICK,
        "--out",
        str(tmp_path / "c.json"),
    ]
    assert main(["calibrate", *arguments]) == 0
    assert "p_madd" in capsys.readouterr().out


WRONG = {
    "string": (["calibrate", "p_madd **", "--tags", "matmul_sq"], ["line 1, column", "^"]),
    "feature": (["calibrate", "p_a * f_op_float32_mad", "--tags", "matmul_sq"], ["'mad'", "'madd'"]),
    "family": (["calibrate", "p_a * f_ops_float32_madd", "--tags", "matmul_sq"], ["f_ops_float32_madd", "f_op"]),
    "code": (["calibrate", "__import__('os').getcwd()", "--tags", "matmul_sq"], ["line 1, column 1"]),
    "output": (["calibrate", MADDS, "--measured", "f_time", "--tags", "matmul_sq"], ["f_time", "f_cl_wall_time"]),
    "tag": (["calibrate", MADDS, "--tags", "matmul_sq", "dtyp:float32"], ["'dtyp'", "'dtype'"]),
    "generator": (["kernels", "matmull_sq"], ["'matmull_sq'", "'matmul_sq'"]),
    "generator to verify": (["verify", "matmull_sq"], ["'matmull_sq'", "'matmul_sq'"]),
    "series": (["kernels", "matmul_sq", "n:2^(7+u)"], ["'n' has no value '2^(7+u)'", "2^(7+t)"]),
    "device": (["calibrate", MADDS, "--tags", "matmul_sq", "n:64", "--device", "abacus"], ["abacus"]),
    "protocol": (["calibrate", MADDS, "--tags", "matmul_sq", "n:64", "--protocol", "quik"], ["'quik'", "'quick'"]),
    "model file": (["calibrate", "@nowhere.txt", "--tags", "matmul_sq"], ["nowhere.txt"]),
    "calibration file": (["predict", "nowhere.json", "matmul_sq"], ["nowhere.json"]),
    "store folder": (["calibrate", MADDS, "--tags", "matmul_sq", "n:64", "--store", "no/where.sqlite"], ["no/where"]),
    "too few measurements": (
        ["calibrate", "p_a * f_op_float32_madd + p_b * f_thread_groups", "--tags", "matmul_sq", "n:64", *QUICK],
        ["2 parameters", "1 measurement"],
    ),
    "recipe": (["reproduce", "demoo"], ["no recipe 'demoo'", "'demo'"]),
    "budget": (["reproduce", "demo", *QUICK, "--budget", "-1"], ["a budget of -1 s is none"]),
    "folder for results": (["reproduce", "demo", *QUICK, "--out", "/dev/null/x"], ["/dev/null/x", "another one"]),
    "no memory": (["calibrate", MADDS, "--tags", "matmul_sq", "n:46336", *QUICK], ["n=46336"]),
    "no file to write": (["calibrate", MADDS, "--tags", "matmul_sq", "n:64", "--out", ""], ["--out ''"]),
    "no folder to write": (["calibrate", MADDS, "--tags", "matmul_sq", "n:64", "--out", "no/c.json"], ["no/c.json"]),
    "too many digits": (["kernels", "matmul_sq", "n:" + "9" * 5000], ["'n' has no value '999"]),
    "index overflow": (["calibrate", MADDS, "--tags", "matmul_sq", "n:65536", *QUICK], ["n=65536", "index"]),
}


@pytest.mark.parametrize(("arguments", "words"), WRONG.values(), ids=WRONG)
def test_wrong_input_gets_a_sentence_and_status_2(
    arguments: list[str],
    words: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    message = capsys.readouterr().err
    assert message.startswith("perfmodel: ")
    assert "Traceback" not in message
    for word in words:
        assert word in message


class TinyRecipe(Recipe):
    name = "tiny"
    summary = "the command line's part of a recipe"
    models: ClassVar = {"madds": "p_l * f_sync_kernel_launch + p_m * f_op_float32_madd"}

    def measurement_tags(self, seconds_of: Callable[[TagFilter], float]) -> Sequence[TagFilter]:
        return [["matmul_sq", "n:64,128"]]

    def evaluation_tags(self, seconds_of: Callable[[TagFilter], float]) -> Sequence[TagFilter]:
        return [["matmul_sq", "n:96"]]


def test_reproduce_writes_tables_and_goes_on_from_its_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("perfmodel.recipes.recipe.recipes", lambda: {"tiny": TinyRecipe()})
    monkeypatch.chdir(tmp_path)
    store = ["--store", str(tmp_path / "times.sqlite")]
    assert main(["reproduce", "tinny", *QUICK]) == 2
    assert "no recipe 'tinny'; did you mean 'tiny'?" in capsys.readouterr().err
    assert main(["reproduce", "tiny", *QUICK, *store, "--budget", "1000"]) == 0
    told = capsys.readouterr().out
    for shown in (
        "measuring 2 kernels",
        "p_m",
        "baseline roofline:",
        "part within ±30 %",
        "written: tiny-out/table.txt",
    ):
        assert shown in told
    files = {path.name for path in (tmp_path / "tiny-out").iterdir()}
    assert files == {"calibration-madds.json", "results.json", "table.txt", "predicted.png", "report.html"}
    table = (tmp_path / "tiny-out" / "table.txt").read_text()
    assert main(["reproduce", "tiny", *QUICK, *store, "--out", "again", "--budget", "0"]) == 0
    assert (tmp_path / "again" / "table.txt").read_text() == table


def test_reproduce_calibrates_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("perfmodel.recipes.recipe.recipes", lambda: {"tiny": TinyRecipe()})
    monkeypatch.chdir(tmp_path)
    assert main(["reproduce", "tiny", *QUICK, "--calibrate-only", "--json"]) == 0
    found = one_document(capsys)
    assert found["written"] == ["tiny-out/calibration-madds.json"]
    assert {path.name for path in (tmp_path / "tiny-out").iterdir()} == {"calibration-madds.json", "perfmodel.sqlite"}
    assert len(pm.Calibration.load("tiny-out/calibration-madds.json").rows) == 2
    assert main(["reproduce", "projection", "--calibrate-only"]) == 2
    assert "'projection' has no models of its own to calibrate" in capsys.readouterr().err


def one_document(capsys: pytest.CaptureFixture[str]) -> Any:
    """Returns what was printed, which has to be JSON without NaN."""

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    return json.loads(capsys.readouterr().out, parse_constant=refuse)


def test_what_measures_prints_one_document(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("perfmodel.recipes.recipe.recipes", lambda: {"tiny": TinyRecipe()})
    monkeypatch.chdir(tmp_path)
    store = ["--store", "times.sqlite", "--json"]
    assert main(["measure", "matmul_sq", "n:64,128", "--device", "cpu", "--protocol", "quick", *store]) == 0
    assert one_document(capsys)["devices"][0]["kernels"] == 2
    assert main(["calibrate", MADDS, "--tags", "matmul_sq", "n:64", *QUICK, *store, "--out", "c.json"]) == 0
    calibrated = one_document(capsys)
    assert calibrated["parameters"]["p_madd"]["unit"] == "s/operation"
    assert calibrated["parameters"]["p_madd"]["stderr"] is None  # one time for one parameter
    assert calibrated["written"] == "c.json"
    assert main(["evaluate", "c.json", "matmul_sq", "n:64,128", *QUICK, *store]) == 0
    evaluated = one_document(capsys)
    assert [kernel["left_out"] for kernel in evaluated["kernels"]] == ["the calibration was fitted to it", ""]
    assert evaluated["errors"]["count"] == 1
    assert main(["reproduce", "tiny", *QUICK, *store, "--budget", "1000"]) == 0
    reproduced = one_document(capsys)
    assert reproduced["written"][-1] == "tiny-out/report.html"
    assert "madds" in reproduced["summary"]


def test_damaged_stores_and_calibrations_are_refused_and_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    damaged = tmp_path / "damaged"
    damaged.write_bytes(b"SQLite format 3\x00" + b"\x07" * 5000)
    before = damaged.read_bytes()
    assert main(["calibrate", MADDS, "--tags", "matmul_sq", "n:64", *QUICK, "--store", str(damaged)]) == 2
    assert main(["predict", str(damaged), "matmul_sq"]) == 2
    assert main(["demo", *QUICK, "--store", str(damaged), "--out", str(tmp_path / "out")]) == 2
    assert capsys.readouterr().err.count(str(damaged)) == 3
    assert damaged.read_bytes() == before


def test_what_was_measured_before_a_failure_is_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The second kernel does not fit in memory: the first one's time is in the store all the same."""

    store = tmp_path / "times.sqlite"
    arguments = ["calibrate", MADDS, "--tags", "matmul_sq", "n:64,46336", *QUICK, "--store", str(store)]
    assert main([*arguments, "--out", str(tmp_path / "c.json")]) == 0
    assert "n=46336" in capsys.readouterr().err
    with pm.Store(store) as opened:
        assert [row.sizes for row in opened] == [{"n": 64}]


@pytest.mark.parametrize(
    "environment",
    [{"PYTHONIOENCODING": "ascii"}, {"XDG_CACHE_HOME": "/proc/nowhere"}, {"LC_ALL": "POSIX", "PYTHONUTF8": "0"}],
    ids=lambda environment: next(iter(environment)),
)
def test_poor_surroundings_do_not_end_a_command(environment: dict[str, str], calibration: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "perfmodel", "explain", str(calibration), "matmul_sq", "n:256"],
        capture_output=True,
        check=False,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stderr
    assert b"limited by p_madd" in done.stdout


def test_what_calibrate_measures_is_kept_beside_its_result(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Measurements are kept even where the fit then fails, here for want of measurements."""

    model = "p_a * f_op_float32_madd + p_b * f_thread_groups"
    arguments = ["calibrate", model, "--tags", "matmul_sq", "n:64", *QUICK, "--out", str(tmp_path / "two.json")]
    assert main(arguments) == 2
    assert "1 measurement" in capsys.readouterr().err
    with pm.Store(tmp_path / "two.sqlite") as store:
        assert [row.sizes for row in store] == [{"n": 64}]


def test_deeply_nested_and_full_files_are_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "deep.json").write_text("[" * 100_000)
    command = [sys.executable, "-m", "perfmodel", "predict", str(tmp_path / "deep.json"), "matmul_sq"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "perfmodel", "kernels"]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode != 0
    assert "Traceback" not in done.stderr


def test_a_missing_command_is_said_in_one_line() -> None:
    done = subprocess.run([sys.executable, "-m", "perfmodel"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == "perfmodel: the following arguments are required: COMMAND (perfmodel --help lists them)\n"


@pytest.mark.parametrize("arguments", [["--help"], ["calibrate", "--help"], ["--version"]])
def test_help_needs_neither_numpy_nor_a_driver(arguments: list[str], tmp_path: Path) -> None:
    """Imports that cost are made when needed: `import perfmodel` and help load none of the big packages."""
    program = (
        "import sys, perfmodel.cli.command_line\n"
        "try:\n    perfmodel.cli.command_line.main(sys.argv[1:])\nfinally:\n"
        "    big = {'numpy', 'scipy', 'sympy', 'pandas', 'loopy.kernel', 'pyopencl', 'lmfit', 'matplotlib', 'rich'}\n"
        "    print('loaded:', sorted(big & set(sys.modules)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "OCL_ICD_VENDORS": str(tmp_path)},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "loaded: []"


def test_without_any_device_the_error_says_where_to_get_one(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "perfmodel", "devices"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "OCL_ICD_VENDORS": str(tmp_path)},
    )
    assert done.returncode == 2
    assert "intel-opencl-rt" in done.stderr
    assert "Traceback" not in done.stderr

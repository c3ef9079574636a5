"""``.cl`` files on the command line: counted, emulated, predicted; and what is wrong with them in one sentence."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from perfmodel.cli.command_line import main
from perfmodel.kernels.bound_kernel import BoundKernel

SOURCE = """\
#define T 8
__kernel void tiles(__global const float *a, __global float *out, __local float *tile, const float by, const int n)
{
    const int l = get_local_id(0), i = get_global_id(0);
    tile[l] = a[i];
    barrier(CLK_LOCAL_MEM_FENCE);
    float sum = 0;
    for (int k = 0; k < T; ++k)
        sum += by * tile[k];
    if (a[i] > 0.9f)
        out[i] = sum;
}
"""
LAUNCH = ["--global", "n", "--local", "8", "--arg", "a=n", "--arg", "out=n", "--arg", "tile=32"]
BOUND = [*LAUNCH, "--arg", "n=64", "--arg", "by=0.5"]


@pytest.fixture
def source(tmp_path: Path) -> str:
    path = tmp_path / "tiles.cl"
    path.write_text(SOURCE)
    return str(path)


def test_a_file_is_counted(source: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["count", source, *LAUNCH, "--statistic", "if_10=0.25", "--at", "n=64,128"]) == 0
    printed = capsys.readouterr().out
    madd = next(line for line in printed.splitlines() if line.startswith("madd") and "work-item" in line)
    assert madd.split()[-3:] == ["n", "512", "1,024"]
    assert "a[i]" in printed


def test_a_file_is_counted_as_json(source: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["count", source, *BOUND, "--statistic", "if_10=0.25", "--json"]) == 0
    (table,) = json.loads(capsys.readouterr().out)["kernels"]
    stores = [a for a in table["accesses"] if (a["space"], a["direction"]) == ("global", "store")]
    assert [store["count"]["workitem"]["at"] for store in stores] == [[16.0]]


def test_what_has_no_counts_for_all_sizes_is_counted_at_each(source: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path(source).write_text("__kernel void f(__global float *a, int n) { for (int k = n; k > 1; k /= 2) a[k] = 1; }")
    given = ["count", source, "--global", "8", "--local", "8", "--arg", "a=n + 1"]
    assert main([*given, "--at", "n=64,1024"]) == 0
    stores = re.findall(r"^a\[k\] +global +store", capsys.readouterr().out, re.MULTILINE)
    assert len(stores) == 6 + 10
    assert main(given) == 2
    assert "tiles.cl:1:44: the loop" not in capsys.readouterr().out


def test_a_file_is_emulated(source: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.save(tmp_path / "a.npy", np.linspace(0, 1.8, 64, dtype=np.float32))
    given = [*LAUNCH, "--arg", "n=64", "--arg", "by=0.5"]
    given[given.index("a=n")] = f"a={tmp_path / 'a.npy'}"
    given[given.index("out=n")] = "out=zeros:float32:n"
    assert main(["emulate", source, *given, "--groups", "all", "--json"]) == 0
    profile = json.loads(capsys.readouterr().out)
    assert (profile["work_groups"], len(profile["emulated_groups"]), profile["findings"]) == (8, 8, [])
    (madd,) = [row for row in profile["operations"] if (row["kind"], row["dtype"]) == ("madd", "float32")]
    assert (madd["use"], madd["count"]) == ("values", 64)
    (store,) = [row for row in profile["accesses"] if (row["space"], row["direction"]) == ("global", "store")]
    assert (store["count"], store["least"], store["most"], store["line"]) == (4, 0, 8, 11)
    assert profile["barriers"] == 1


def test_emulation_with_data_counts_nothing(
    source: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delattr(BoundKernel, "counts_for")
    given = [*BOUND, "--groups", "first", "--json"]
    given[given.index("out=n")] = "out=zeros:float32:n"
    assert main(["emulate", source, *given]) == 0
    assert json.loads(capsys.readouterr().out)["barriers"] == 1


def test_a_profile_is_printed(source: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["emulate", source, *BOUND, "--groups", "sample", "--subgroup", "4"]) == 0
    printed = capsys.readouterr().out
    assert "tiles: 64 work-items in groups of 8, 8 groups" in printed
    assert "sub-groups of 4, transactions of 32 bytes" in printed
    assert "barriers: 1" in printed


def test_mistakes_of_a_kernel_are_shown(source: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path(source).write_text(SOURCE.replace("tile[k]", "tile[k + 1]").replace("    barrier(CLK_LOCAL_MEM_FENCE);\n", ""))
    assert main(["emulate", source, *BOUND]) == 0
    printed = capsys.readouterr().out
    assert "tiles.cl:8:" in printed
    assert "race" in printed
    assert "out of bounds" in printed


def test_generators_are_emulated_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["emulate", "matmul_sq", "tiled_prefetch:True", "lsize_0:8", "lsize_1:8", "n:32"]) == 0
    assert "32 × 32 work-items in groups of 8 × 8, 16 groups" in capsys.readouterr().out


def test_a_file_is_predicted(source: str, capsys: pytest.CaptureFixture[str]) -> None:
    calibration = str(next((Path(__file__).parents[2] / "models").glob("unified-plus@nvidia*.json")))
    assert main(["predict", calibration, source, *BOUND, "--statistic", "if_10=0.25"]) == 0
    assert "us" in capsys.readouterr().out


def test_a_device_is_enough_to_predict_by(source: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The device's default model predicts, wherever the option stands, as if its calibration had been named."""
    given = [source, *BOUND, "--statistic", "if_10=0.25", "--json"]
    shown = []
    for words in (["gpu@h200"], ["@h200"], ["--device", "H200"]):
        for command in ("predict", "explain", "rank"):
            assert main([command, *words, *given]) == 0
            shown.append(capsys.readouterr().out)
    assert shown[:3] == shown[3:6] == shown[6:]
    assert main(["predict", *given, "--device=h200"]) == 0
    assert capsys.readouterr().out == shown[0]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "names no calibration; put one before the kernel, such as gpu@h200, or give a device by --device"),
        (["--device", "MI300"], "no calibration for 'MI300' is shipped; did you mean 'mi300x'"),
        (["--device", "abacus"], "no calibration for 'abacus' is shipped (there are cpu@intel"),
        (["--device", "h200", "gpu@h200"], "'gpu@h200' and --device h200 each name a calibration; leave out one"),
        (["--device", ""], "a calibration is of one device; name it, as in cpu@intel"),
    ],
)
def test_a_missing_calibration_is_one_sentence(
    words: list[str], sentence: str, source: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["predict", *words, source, *BOUND]) == 2
    error = capsys.readouterr().err
    assert sentence in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (["--kernel", "tile"], "the source has no kernel 'tile'; did you mean 'tiles'?"),
        (["--global", ""], "needs --global; write the work-items by axis, as --global 1024,1024"),
        (["--global", "n,n"], "kernel 'tiles' has 2 axes of work-items and 1 of work-groups"),
        (["--global", "m"], "global size of kernel 'tiles' needs 'm', which is no size of it"),
        (["--arg", "b=4"], "--arg b: kernel 'tiles' has no such argument; did you mean 'by'? (it has a, out,"),
        (["--arg", "a"], "--arg 'a' gives no value; write --arg NAME=VALUE"),
        (["--arg", "a=n"], "--arg a is given twice; give it once"),
        (["--option=-Dsum=k k"], "tiles.cl:7:"),
        (["--option=--fast"], "--fast"),
        (["--assume", "n mod 8 = 0"], "assumption of kernel 'tiles' cannot be 'n mod 8 = 0'; write comparisons"),
        (["--statistic", "if_11=often"], "--statistic if_11=often is no number"),
        (["--statistic", "if_99=1"], "has no loop or branch 'if_99' that depends on data"),
        (["extra"], "'extra' gives no size; write name:value"),
    ],
)
def test_wrong_options_are_one_sentence(
    changes: list[str], words: str, source: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["count", source, *BOUND, "--statistic", "if_10=0.25", *changes]) == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("argument", "words"),
    [
        ("a=random:float33:64", "'float33' is no type of numbers"),
        ("a=random:int32:64", "--arg a is an array of int32, but argument 'a' of kernel 'tiles' is one of float32"),
        ("a=random:float32", "is not understood; write random:DTYPE:SIZE"),
        ("a=random:float32:64:low:high", "--arg a=low is no number"),
        ("a=ones:float32:64", "is not understood; write random"),
        ("a=nowhere.npy", "nowhere.npy cannot be read; give a file that numpy.save wrote"),
        ("a=n n", "extent of array 'a' of kernel 'tiles' cannot be 'n n'"),
        ("a=32", "out of bounds"),
    ],
)
def test_wrong_arguments_are_one_sentence(
    argument: str, words: str, source: str, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [argument if each == "a=n" else each for each in BOUND]
    assert main(["emulate", source, *given, "--groups", "all"]) == (0 if words == "out of bounds" else 2)
    captured = capsys.readouterr()
    assert words in captured.out + captured.err


def test_endless_loops_are_stopped(source: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path(source).write_text("__kernel void f(__global int *a) { while (a[0] >= 0) a[0] += 1; }")
    assert main(["emulate", source, "--global", "1", "--local", "1", "--arg", "a=1", "--steps", "1000"]) == 2
    error = capsys.readouterr().err
    assert "f.cl" not in error
    assert "tiles.cl:1:" in error
    assert "steps" in error


def test_a_source_without_kernels_or_with_many(source: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path(source).write_text("__kernel void f() {} __kernel void g() {}")
    assert main(["count", source, "--global", "8", "--local", "8"]) == 2
    assert "has 2 kernels (f, g); name one by --kernel" in capsys.readouterr().err
    assert main(["count", source, "--global", "8", "--local", "8", "--kernel", "g"]) == 0


def test_data_that_are_given_decide(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Twice, as what is found of the kernel without data is kept on disk."""
    path, data = tmp_path / "rows.cl", tmp_path / "starts.npy"
    path.write_text(
        "__kernel void rows(__global const int *starts, __global float *sums) { const int row = get_global_id(0);"
        " float sum = 0; for (int k = starts[row]; k < starts[row + 1]; ++k) sum += k; sums[row] = sum; }"
    )
    np.save(data, np.arange(0, 65 * 7, 7, dtype=np.int32))
    command = ["count", str(path), "--global", "64", "--local", "32", "--arg", "sums=64", "--json"]
    for _ in range(2):
        assert main([*command, "--arg", f"starts={data}"]) == 0
        captured = capsys.readouterr()
        (kernel,) = json.loads(captured.out)["kernels"]
        assert captured.err == ""
        assert "448" in json.dumps(kernel["operations"])
    assert main([*command, "--arg", "starts=65"]) == 0
    assert "data decide what kernel 'rows' does" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        ["rows.cl", "--global", "n", "--local", "32", "--arg", "sums=n", "--at", "n=64"],
        ["own.py:rows", "--at", "n=64"],
        ["own.py:rows", "--arg", "n=64"],
    ],
)
def test_data_decide_wherever_sizes_and_kernels_come_from(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("rows.cl").write_text(
        "__kernel void rows(__global const int *starts, __global float *sums, int n) { const int i = get_global_id(0);"
        " float sum = 0; for (int k = starts[i]; k < starts[i + 1]; ++k) sum += k; sums[i] = sum; }"
    )
    Path("own.py").write_text(
        "import perfmodel as pm\n"
        "rows = pm.Kernel.from_opencl('rows.cl', 'rows', 'n', 32, {'starts': 'n + 1', 'sums': 'n'})\n"
    )
    np.save("starts.npy", np.arange(0, 65 * 7, 7, dtype=np.int32))
    assert main(["predict", "unified-plus@h200", *words, "--arg", "starts=starts.npy"]) == 0
    assert capsys.readouterr().err == ""  # and no warning that data decide


def test_a_kernel_is_counted_within_the_budget_that_options_give(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "corner.cl"
    file.write_text(
        "__kernel void corner(__global float *a, int n) {\n"
        "    int x = get_global_id(0), y = get_global_id(1);\n"
        "    for (int k = max(x - 4, 0); k < min(x + 4, n) && x + y < n; k++) a[y * n + k] += 1.5f;\n"
        "}"
    )
    corner = ["count", str(file), "--global", "n,n", "--local", "16,4", "--arg", "a=n*n", "--arg", "n=512"]
    assert main(corner) == 0
    assert "from samples" not in capsys.readouterr().out
    assert main([*corner, "--effort", "0.001"]) == 0
    said = capsys.readouterr()
    assert "from samples" in said.out
    assert "takes too long to count" in said.err
    assert main([*corner, "--effort", "0"]) == 2
    assert "leaves nothing for counting" in capsys.readouterr().err

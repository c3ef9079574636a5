"""Every command takes kernels of generators, of Python files, of files of generators and of ``.cl`` files alike."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import perfmodel as pm
from perfmodel.cli.command_line import command_parser, main
from perfmodel.kernels.resources import resources
from tests.conftest import SimulatedTime

SCALE = """\
__kernel void scale(__global const float *a, __global float *out, const float by, const int n)
{
    out[get_global_id(0)] = by * a[get_global_id(0)] + 1;
}
"""
CUBE = """\
__kernel void cube(__global const float *a, __global float *out, const int n)
{
    const float x = a[get_global_id(0)];
    out[get_global_id(0)] = x * x * x;
}
"""
MINE = """
import loopy as lp
import numpy as np
import perfmodel as pm
from perfmodel.collection.tags import choice, size

def program(term):
    arrays = [lp.GlobalArg("a", np.float32, shape="n"), lp.GlobalArg("c", np.float32, shape="n", is_input=False)]
    made = lp.make_kernel("{[i]: 0 <= i < n}", f"c[i] = {term}", [*arrays, lp.ValueArg("n", np.int32)],
                          assumptions="n >= 1 and n mod 64 = 0", lang_version=(2018, 2))
    return lp.split_iname(made, "i", 64, outer_tag="g.0", inner_tag="l.0")

class Maps(pm.KernelGenerator):
    name = "maps"
    summary = "c = f(a)"
    tags = (choice("f", "what", "double", "square"), size("n", "elements", 1024, 4096))
    checks = (("n:128",),)

    def program(self, variant):
        return program({"double": "2*a[i] + 1", "square": "a[i]*a[i] + 1"}[variant["f"]])

    def reference(self, kernel, arrays):
        a = arrays["a"]
        return {"c": (2 * a if kernel.tags["f"] == "double" else a * a) + 1}

class Others(Maps):
    name = "others"
    tags = (choice("f", "what", "square", "double"), size("n", "elements", 1024, 4096))
    checks = (("n:64",),)

doubled = program("2*a[i] + 1")
"""
LAUNCH = ["--global", "n", "--local", "64", "--arg", "a=n", "--arg", "out=n"]
BY = ["--arg", "by=0.5"]
SELECTIONS = {
    "tags": ["matmul_sq", "n:64"],
    "kernel of a Python file": ["mine.py:doubled", "n:64"],
    "file of generators": ["mine.py", "n:64"],
    "one class of a file": ["mine.py:Maps", "n:64"],
    "generator of a file by its name": ["mine.py", "maps", "n:64"],
    "source": ["scale.cl", "n:64", *LAUNCH, *BY],
    "kernel of a source": ["scale.cl:scale", *LAUNCH, *BY, "--at", "n=64"],
    "two sources": ["scale.cl", "cube.cl", "n:64", *LAUNCH, *BY],
    "both languages": ["mine.py:doubled", "cube.cl", "n:64", *LAUNCH],
}
NAMES = {
    "tags": ["matmul_sq"],
    "kernel of a Python file": ["mine.py:doubled"],
    "file of generators": ["maps", "others"],
    "one class of a file": ["maps"],
    "generator of a file by its name": ["maps"],
    "source": ["scale"],
    "kernel of a source": ["scale"],
    "two sources": ["scale", "cube"],
    "both languages": ["mine.py:doubled", "cube"],
}
QUICK = ["--protocol", "quick"]
MADDS = "p_l * f_sync_kernel_launch + p_m * f_op_float32_madd"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Returns the working folder, with a file of each kind and a calibration."""
    (tmp_path / "scale.cl").write_text(SCALE)
    (tmp_path / "cube.cl").write_text(CUBE)
    (tmp_path / "mine.py").write_text(MINE)
    monkeypatch.chdir(tmp_path)
    time = SimulatedTime(lambda count: 1e-5 + 1e-9 * count("f_op_float32_madd"))
    model = pm.Model("f_cl_wall_time", MADDS, features={"f_cl_wall_time": time})
    kernels = pm.KernelCollection(pm.ALL_GENERATORS).generate_kernels(["matmul_sq", "n:16,32,48"])
    model.fit(pm.measure(kernels, model)).save("c.json")
    return tmp_path


@pytest.mark.parametrize(
    "words",
    [
        ["matmul_sq", "n=64"],
        ["matmul_sq", "--at", "n:64"],
        ["mine.py:doubled", "n=64"],
        ["mine.py", "f=double", "n=64"],
        ["scale.cl", "n=64", "--global", "n", "--local", "64", "--arg", "a:n", "--arg", "out:n", "--arg", "by:0.5"],
    ],
)
def test_sizes_are_given_by_either_mark(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    swapped = [word.translate(str.maketrans(":=", "=:")) if "py" not in word else word for word in words]
    found, same = printed(capsys, "kernels", *words), printed(capsys, "kernels", *swapped)
    assert found["kernels"] == same["kernels"]
    assert {row["sizes"]["n"] for row in found["kernels"]} == {64}


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    """Returns the document that a command prints."""
    assert main([*arguments, "--json"]) == 0, capsys.readouterr().err
    return json.loads(capsys.readouterr().out)


def listed(document: Any) -> list[Any]:
    return document if isinstance(document, list) else [document]


each_selection = pytest.mark.parametrize(
    ("words", "names"), [(SELECTIONS[key], NAMES[key]) for key in SELECTIONS], ids=SELECTIONS
)


@each_selection
def test_what_looks_at_kernels_takes_all_kinds(
    words: list[str], names: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """They are listed, counted, emulated, predicted, explained, ranked and projected, and their occupancy is told."""
    assert [each["generator"] for each in printed(capsys, "kernels", *words)["kernels"]] == names
    assert [each["kernel"] for each in printed(capsys, "count", *words)["kernels"]] == names
    assert [each["kernel"].split()[0] for each in listed(printed(capsys, "emulate", *words))] == names
    assert [each["kernel"] for each in printed(capsys, "predict", "c.json", *words)["predictions"]] == names
    assert len(printed(capsys, "explain", "c.json", *words)["explanations"]) == len(names)
    assert {each["kernel"] for each in printed(capsys, "rank", "c.json", *words)["ranking"]} == set(names)
    assert len(listed(printed(capsys, "project", *words, "--device", "H200"))) == len(names)
    occupancies = listed(printed(capsys, "occupancy", *words, "--compute-capability", "9.0"))
    assert [each["kernel"] for each in occupancies] == names


@each_selection
def test_what_measures_takes_all_kinds(words: list[str], names: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """A dry run says how many kernels there are; the other commands choose theirs in the same way."""
    store = ["--store", "times.sqlite"]
    (share,) = printed(capsys, "measure", *words, "--device", "cpu", *QUICK, *store, "--dry-run")["devices"]
    assert share["missing"] == len(names)


@pytest.mark.usefixtures("unflagged")
def test_calibrate_evaluate_and_report_take_all_kinds(capsys: pytest.CaptureFixture[str]) -> None:
    """A calibration of generators, one's own and others, and of kernels of both languages; evaluated at other sizes."""
    kinds = ["--tags", "mine.py", "f:*", "--tags", "scale.cl", "mine.py:doubled", "n:64,1024", "--tags", "matmul_sq"]
    cpu = ["--device", "cpu", *QUICK, "--store", "times.sqlite"]
    made = printed(capsys, "calibrate", MADDS, *kinds, "n:64", *LAUNCH, *BY, *cpu, "--out", "own.json")
    assert made["kernels"] + len(made["left_out"]) == 2 * 4 + 2 * 2 + 1
    found = printed(capsys, "evaluate", "own.json", "scale.cl", "--at", "n=64,2048", *LAUNCH, *BY, *cpu)
    assert [(each["kernel"], each["sizes"]) for each in found["kernels"]] == [
        ("scale", {"n": 64}),
        ("scale", {"n": 2048}),
    ]
    assert found["kernels"][0]["left_out"]
    assert main(["report", "own.json", "--out", "without.html"]) == 0
    kinds = ["--kernels", "mine.py", "f:*", "--kernels", "scale.cl", "mine.py:doubled", "--at", "n=64"]
    assert main(["report", "own.json", *kinds, *LAUNCH, *BY, "--out", "with.html"]) == 0
    assert "could not be generated again" in Path("without.html").read_text()
    assert "could not be generated again" not in Path("with.html").read_text()


@pytest.mark.usefixtures("unflagged")
def test_suggest_takes_all_kinds(capsys: pytest.CaptureFixture[str]) -> None:
    sizes = "n:1024,4096,16384"
    own = ["--measurements", "mine.py", "f:*", sizes, "--measurements", "scale.cl", "cube.cl", sizes]
    checks = ["--evaluation", "mine.py:doubled", "scale.cl", "n:8192"]
    cpu = ["--device", "cpu", *QUICK, "--store", "times.sqlite", "--terms", "2"]
    found = printed(capsys, "suggest", *own, *checks, *LAUNCH, *BY, *cpu)
    assert found["kernels"] + len(found["left_out"]) == 2 * 2 * 3 + 2 * 3
    assert [each["kernel"] for each in found["evaluation"]] == ["mine.py:doubled", "scale"]


def test_verify_takes_files_of_generators(capsys: pytest.CaptureFixture[str]) -> None:
    own = printed(capsys, "verify", "mine.py", "--device", "cpu")
    assert own["by_generator"] == {"maps": 2, "others": 2}
    assert printed(capsys, "verify", "mine.py:Others", "--device", "cpu")["by_generator"] == {"others": 2}


def test_a_file_of_generators_lists_its_tags(capsys: pytest.CaptureFixture[str]) -> None:
    found = printed(capsys, "kernels", "mine.py")
    assert found["definitions"] == {"doubled": "Loopy program", "Maps": "generator maps", "Others": "generator others"}
    assert [family["name"] for family in found["generators"]] == ["maps", "others"]
    assert [family["name"] for family in printed(capsys, "kernels", "mine.py:Maps", "n:64")["generators"]] == ["maps"]
    assert main(["kernels", "mine.py"]) == 0
    assert "    f: what: double, square" in capsys.readouterr().out


def test_a_source_lists_its_kernels(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kernels", "scale.cl"]) == 0
    assert capsys.readouterr().out == "scale.cl:scale: kernel (a, out, by, n)\n"


def test_several_sizes_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    """`--at` takes the place of other sizes; a program whose kernels differ only in these is taken once."""
    for words in (["scale.cl", *LAUNCH, *BY], ["mine.py:doubled"], ["mine.py:Maps"], ["mine.py:Maps", "n:64,128"]):
        predicted = printed(capsys, "predict", "c.json", *words, "--at", "n=256,512")["predictions"]
        assert [each["sizes"] for each in predicted] == [{"n": 256}, {"n": 512}]


def test_kernels_of_one_name_are_told_apart_by_their_files(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "again.cl").write_text(SCALE.replace("+ 1", "+ 2"))
    found = printed(capsys, "kernels", "scale.cl", "again.cl:scale", "n:64", *LAUNCH, *BY)["kernels"]
    assert [each["generator"] for each in found] == ["scale.cl:scale", "again.cl:scale"]


def test_arguments_are_of_all_kinds_of_kernels(capsys: pytest.CaptureFixture[str]) -> None:
    """Options give numbers to any kernel, and contents of arrays to any that is emulated."""
    (profile,) = listed(printed(capsys, "emulate", "mine.py:doubled", "n:64", "--arg", "a=zeros:float32:n"))
    assert profile["findings"] == []
    (kernel,) = printed(capsys, "kernels", "mine.py:doubled", "--arg", "n=128")["kernels"]
    assert kernel["sizes"] == {"n": 128}


@pytest.mark.parametrize("command", ["kernels", "count", "emulate", "predict", "measure", "calibrate", "suggest"])
def test_every_command_has_the_options_of_sources(command: str) -> None:
    shown = " ".join(_help_of(command).split())
    for option in ("--global", "--local", "--arg", "--at", "--kernel", "--statistic"):
        assert option in shown


def _help_of(command: str) -> str:
    for action in command_parser()._actions:
        if isinstance(action.choices, dict) and command in action.choices:
            found: str = action.choices[command].format_help()
            return found
    raise AssertionError(command)


WRONG = {
    "no launch": (
        ["predict", "c.json", "scale.cl"],
        "scale.cl needs --global and --local; write the work-items by axis, as --global 1024,1024 --local 16,16",
    ),
    "no launch in a measurement": (["measure", "scale.cl", "--store", "t.sqlite"], "scale.cl needs --global"),
    "no source": (["predict", "c.json", "matmul_sq", "--local", "8"], "--local says how a FILE.cl is launched"),
    "no size": (["predict", "c.json", "scale.cl", *LAUNCH, *BY], "kernel 'scale' needs a value for n"),
    "no such size": (["predict", "c.json", "scale.cl", "m:3", *LAUNCH, *BY], "has no size or argument 'm'"),
    "tags beside a source": (["kernels", "scale.cl", "matmul_sq", *LAUNCH], "'matmul_sq' gives no size"),
    "generators beside kernels": (["kernels", "mine.py:Maps", "mine.py:doubled"], "are kernels and generators"),
    "generators beside a source": (["kernels", "mine.py", "scale.cl", *LAUNCH], "are kernels and generators"),
    "no such class": (["kernels", "mine.py:Map"], "mine.py defines no kernel 'Map'"),
    "no generator": (["measure", "empty.py", "--store", "t.sqlite"], "empty.py needs the name of a kernel"),
    "no tag of it": (["kernels", "mine.py:Maps", "g:1"], "no tag 'g' in maps"),
    "unknown argument of two": (
        ["kernels", "scale.cl", "cube.cl", "n:64", *LAUNCH, *BY, "--arg", "b=1"],
        "--arg b: kernel 'cube' has no such argument",
    ),
    "unknown argument of a Loopy kernel": (
        ["emulate", "mine.py:doubled", "n:64", "--arg", "b=1"],
        "--arg b: kernel 'mine.py:doubled' has no such argument (it has a, c, n)",
    ),
    "wrong elements": (
        ["emulate", "mine.py:doubled", "n:64", "--arg", "a=zeros:float32:2*n"],
        "--arg a has 128 elements, and that of kernel 'mine.py:doubled' 64; give these",
    ),
    "elements of a kernel that says them": (
        ["emulate", "mine.py:doubled", "n:64", "--arg", "a=64"],
        "kernel 'mine.py:doubled' says itself how many elements 'a' has; leave --arg a out",
    ),
    "wrong type": (
        ["emulate", "mine.py:doubled", "n:64", "--arg", "a=zeros:float64:n"],
        "--arg a is an array of float64, but argument 'a' of kernel 'mine.py:doubled' is one of float32",
    ),
    "contents of what is measured": (
        ["measure", "mine.py:doubled", "n:64", "--arg", "a=zeros:float32:n", "--store", "t.sqlite"],
        "--arg a says what an array holds, and kernels are measured with random numbers",
    ),
    "reference of a source": (["verify", "scale.cl"], "numpy reference, which scale.cl has not; name a generator"),
    "reference of a kernel": (["verify", "mine.py:doubled"], "which mine.py:doubled has not; name a generator"),
    "Python file of tuned kernels": (
        ["store", "import", "t.sqlite", "cache.json", "--source", "mine.py:doubled"],
        "mine.py:doubled is no FILE.cl or FILE.cu; give import_kernel_tuner or perfmodel.tune, in Python, a function",
    ),
    "lacking class": (["kernels", "lacking.py:Some", "n:1"], "generator Some of module kernel file lacking.py lacks"),
    "no kernels": (["kernels", "empty.cl"], "empty.cl defines no kernel"),
    "curves of several": (
        ["occupancy", "mine.py", "--compute-capability", "9.0", "--out", "curves"],
        "--out draws the curves of one kernel, and 4 are selected",
    ),
}


@pytest.mark.parametrize(("arguments", "words"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_one_sentence(
    arguments: list[str], words: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "empty.py").write_text("")
    (folder / "empty.cl").write_text("float f(float x) { return x; }")
    (folder / "lacking.py").write_text("import perfmodel as pm\nclass Some(pm.KernelGenerator):\n    name = 'some'\n")
    assert main(arguments) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert words in shown.err
    assert shown.err.count("\n") == 1
    assert not (folder / "t.sqlite").exists()


def test_the_same_in_python() -> None:
    """Loopy programs, OpenCL C and files of generators are given to the library's functions as they are."""
    collection = pm.KernelCollection(pm.ALL_GENERATORS)
    maps = collection.generate_kernels(["mine.py:Maps", "f:*", "n:64,128"])
    assert [kernel.name for kernel in maps] == ["maps"] * 4
    (doubled,) = collection.generate_kernels(["mine.py:doubled", "n:64"])
    with pytest.raises(pm.PerfmodelError, match="from_opencl"):
        collection.generate_kernels(["scale.cl", "n:64"])
    scale = pm.Kernel.from_opencl("scale.cl", "scale", "n", 64, {"a": "n", "out": "n"}, n=64, by=0.5)
    calibration = pm.Calibration.load("c.json")
    for kernel in (maps[0], doubled, scale):
        (choice,) = pm.choose_device(kernel, ["H200"]).ranked
        assert choice.seconds > 0
        assert not pm.emulate(kernel).findings
        assert resources(kernel).registers
    ranked = calibration.rank([*maps, doubled, scale])
    assert len(ranked) == 6
    assert len(pm.prune([*maps, doubled, scale], calibration.predict)) == 6
    model = pm.Model("f_cl_wall_time", "p_m * f_op_float32_madd", features={"f_cl_wall_time": SimulatedTime(len_of)})
    assert len(pm.measure([*maps, doubled, scale], model)) == 6
    assert math.isclose(float(calibration.predict(scale)), float(calibration.predict(doubled)))


def len_of(count: Any) -> float:
    return 1e-9 * float(count("f_work_items"))


def test_every_command_tells_kernels_of_one_name_apart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "two.py"
    file.write_text(
        "import perfmodel as pm\n"
        "source = '__kernel void f(__global float *x, int n) { x[get_global_id(0)] = get_local_size(0); }'\n"
        "def made(group): return pm.Kernel.from_opencl(source, 'f', 'n', group, {'x': 'n'}, tags={}, name='same')\n"
        "a, b = made(32), made(64)\n"
    )
    words = [f"{file}:a", f"{file}:b", "n:256"]
    expected = ["group=32", "group=64"]
    ways: list[tuple[list[str], Callable[[Any], list[str]]]] = [
        (["predict", "gpu@h200", *words], lambda data: [each["variant"] for each in data["predictions"]]),
        (["explain", "gpu@h200", *words], lambda data: [each["variant"] for each in data["explanations"]]),
        (["emulate", *words], lambda data: [each["variant"] for each in data]),
        (["count", *words], lambda data: [each["variant"] for each in data["kernels"]]),
        (["project", *words, "--device", "H200"], lambda data: [each["kernel"].split()[1] for each in data]),
    ]
    for command, found in ways:
        assert main([*command, "--json"]) == 0
        assert found(json.loads(capsys.readouterr().out)) == expected, command[0]
    assert main(["emulate", *words]) == 0
    assert "same group=64 n=256\n" in capsys.readouterr().out

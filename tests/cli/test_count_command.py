"""`perfmodel count`, and kernels from a user's own Python file instead of tags."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import perfmodel as pm
from perfmodel.cli.command_line import main
from perfmodel.report.count_table import count_tables
from perfmodel.report.count_text import as_text
from tests.conftest import SimulatedTime

KERNELS = """
import loopy as lp
import numpy as np
import perfmodel as pm

print("loading")

def make(body, *sizes, shape="n"):
    scalars = [lp.ValueArg(size, np.int32) for size in sizes]
    arrays = [lp.GlobalArg(name, np.float32, shape=shape) for name in ("a", "o")]
    return lp.make_kernel("{[i]: 0 <= i < n}", body, [*arrays, *scalars], lang_version=(2018, 2))

scaled = make("o[i] = 2*a[i] + 1", "n")
bound = pm.Kernel(make("o[i] = a[i]", "n"), n=100)
factor = 3

def shifted():
    return make("o[i] = a[i + m]", "n", "m", shape="n + m")

def failing():
    raise ValueError("no such\\nvariant")

def number():
    return 7

def _hidden():
    return scaled

def needs(argument):
    return scaled
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Returns the working directory, with a file of kernels in it."""
    (tmp_path / "mine.py").write_text(KERNELS)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def document(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert main(["count", *arguments, "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def at(count: dict[str, dict[str, Any]]) -> list[float]:
    """Returns a count by work-item, sub-group and work-group, at the first point."""
    return [count[each]["at"][0] for each in ("workitem", "subgroup", "workgroup")]


def test_tiled_matmul_by_hand(capsys: pytest.CaptureFixture[str]) -> None:
    """n = 64 in tiles of 16 x 16: 16 work-groups of 256 work-items or 8 sub-groups of 32; 4 tiles of a and b each.

    A work-item does n multiply-adds, in all n^3 = 262144, of which a sub-group does 32 at a time and a work-group 256.
    It fetches one element of a and of b a tile, n^3/16 = 16384 in all, each n^2 elements 4 times, and meets 2 barriers
    a tile: 8 times 4096 work-items. a, b and c have n^2 = 4096 elements of 4 bytes.
    """
    found = document(capsys, "matmul_sq", "n:64,128")
    (table,) = found["kernels"]
    assert table["kernel"] == "matmul_sq"
    assert table["points"] == [{"n": 64}, {"n": 128}]
    assert (table["sizes"], table["subgroup_size"], table["exact"]) == (["n"], 32, True)
    (madds,) = table["operations"]
    assert (madds["kind"], madds["dtype"]) == ("madd", "float32")
    assert at(madds["count"]) == [64**3, 64**3 // 32, 64**3 // 256]
    assert madds["count"]["workitem"] == {"symbolic": "n^3", "at": [64**3, 128**3]}
    fetches = {a["variable"]: a for a in table["accesses"] if (a["space"], a["direction"]) == ("global", "load")}
    assert set(fetches) == {"a", "b"}
    for fetch in fetches.values():
        assert (fetch["dtype"], fetch["bits"], fetch["afr"]) == ("float32", 32, [4, 8])
        assert at(fetch["count"]) == [64**3 // 16, 64**3 // 16 // 32, 64**3 // 16 // 256]
        assert {axis: stride["at"] for axis, stride in fetch["local_strides"].items()} == {"0": [1, 1], "1": [64, 128]}
    strides = {
        name: [stride["at"][0] for stride in [*fetch["group_strides"].values(), *fetch["loop_strides"].values()]]
        for name, fetch in fetches.items()
    }
    assert strides == {"a": [16 * 64, 16], "b": [16, 16 * 64]}  # a: along group axis 1, then along the tiles
    (store,) = [a for a in table["accesses"] if a["variable"] == "c"]
    assert (store["afr"], store["footprint"]["symbolic"]) == ([1, 1], "n^2")
    touched = {(f["variable"], f["direction"]): f["bytes"]["at"][0] for f in table["footprints"]}
    assert {touched["a", "load"], touched["b", "load"], touched["c", "store"]} == {4 * 64**2}
    assert at(table["barriers"]) == [8 * 4096, 8 * 128, 8 * 16]
    assert [table[name]["at"][0] for name in ("launches", "work_groups", "work_items")] == [1, 16, 4096]


FETCH_OF_A = "a[a_dim_0 + 16*i_outer, a_dim_1 + 16*k_outer]"


def test_the_text_says_what_the_document_says(capsys: pytest.CaptureFixture[str]) -> None:
    (table,) = document(capsys, "matmul_sq", "--at", "n=1024")["kernels"]
    assert main(["count", "matmul_sq", "--at", "n=1024"]) == 0
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= 80
    title, *blocks = ([re.split(r" {2,}", line) for line in b.splitlines()] for b in text.split("\n\n"))
    assert title[0][0].startswith("matmul_sq dtype=float32")
    assert [block[0][0] for block in blocks] == [
        *("operation", "carried operation", "access", "access", "access", "footprint", "launch")
    ]
    operations, carried, *_, launch = (block[2:] for block in blocks)  # without header and rule
    assert operations[0] == ["madd", "float32", "work-item", "n^3", "1,073,741,824"]
    assert carried == [["madd", "float32", "k_outer, k_inner", "n^3", "1,073,741,824"]]
    assert table["chains"][0]["count"] == {"symbolic": "n^3", "at": [1024**3]}
    assert launch[-1] == ["work-items", "n^2", "1,048,576"]


def test_the_table_of_accesses_says_what_the_document_says(capsys: pytest.CaptureFixture[str]) -> None:
    (table,) = document(capsys, "matmul_sq", "--at", "n=1024")["kernels"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("perfmodel.basics.terminal.PLAIN_WIDTH", 300)
        assert main(["count", "matmul_sq", "--at", "n=1024"]) == 0
    blocks = [[re.split(r" {2,}", line) for line in b.splitlines()] for b in capsys.readouterr().out.split("\n\n")]
    (accesses,) = (block[2:] for block in blocks if block[0][0] == "access")
    for access, (label, space, direction, *_, footprint, afr) in zip(table["accesses"], accesses, strict=True):
        assert [label, space, direction] == [access["text"], access["space"], access["direction"]]
        if access["space"] != "private":
            assert [footprint, afr] == ["n^2", f"{access['afr'][0]:.4g}"]
    (fetch,) = [line for line in accesses if line[:3] == [FETCH_OF_A, "global", "load"]]
    assert fetch[5:8] == ["{0:1;1:n}", "{1:16*n}", "{k_outer:16}"]
    assert fetch[8:11] == ["continuous", "1/16 * n^3", "67,108,864"]


def test_long_counts_stand_below_the_table_and_are_cut(capsys: pytest.CaptureFixture[str]) -> None:
    tags = ["matmul_sq", "groups_fit:False", "lsize_0:8", "lsize_1:8", "n:13"]
    (table,) = document(capsys, *tags)["kernels"]
    by_subgroup = table["operations"][0]["count"]["subgroup"]
    assert by_subgroup["at"] == [104]  # 4 work-groups with 2 sub-groups of 4 rows each, 13 times
    assert main(["count", *tags]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(re.split(r" {2,}", line)[2:] == ["sub-group", "[1]", "104"] for line in lines)
    first, *others = by_subgroup["symbolic"].split("; ")
    assert f"[1] {first}"[:70] in "\n".join(lines)
    assert [line for line in lines if line.startswith(f"    {others[0]}"[:60])]
    assert max(map(len, lines)) <= 80


def test_a_program_is_shown_once_and_programs_by_themselves(capsys: pytest.CaptureFixture[str]) -> None:
    tables = document(capsys, "matmul_sq", "tiled_prefetch:*", "n:64,128", "--at", "n=16,32,16")["kernels"]
    assert ["tiled_prefetch=True" in table["variant"] for table in tables] == [True, False]
    assert [table["points"] for table in tables] == [[{"n": 16}, {"n": 32}]] * 2


def test_operations_of_several_instructions_are_added_up(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "two.py").write_text(
        "import loopy as lp, numpy as np\n"
        "knl = lp.make_kernel('{[i, j]: 0 <= i < n and 0 <= j < m}', 'o[i] = a[i]*2 + 1\\n"
        "p[i, j] = (a[i]*3 + 1)*b[j] + 2', lang_version=(2018, 2))\n"
        "knl = lp.add_dtypes(knl, dict(a=np.float32, b=np.float32, n=np.int32, m=np.int32))\n"
    )
    (table,) = document(capsys, "two.py:knl", "--at", "n=5", "m=2,3")["kernels"]
    (madds,) = table["operations"]
    assert table["points"] == [{"m": 2, "n": 5}, {"m": 3, "n": 5}]
    assert madds["count"]["workitem"]["at"] == [5 + 2 * 5 * 2, 5 + 2 * 5 * 3]


def test_a_wider_subgroup_has_fewer_to_count(capsys: pytest.CaptureFixture[str]) -> None:
    (table,) = document(capsys, "matmul_sq", "n:64", "--subgroup", "64")["kernels"]
    assert at(table["operations"][0]["count"]) == [64**3, 64**3 // 64, 64**3 // 256]
    assert table["subgroup_size"] == 64


def test_kernels_of_a_file(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for argument, points, symbolic in (
        ("mine.py:scaled", [], "n"),
        ("mine.py:bound", [{"n": 100}], "n"),
        ("mine.py:shifted", [], "n"),
    ):
        (table,) = document(capsys, argument)["kernels"]
        assert table["points"] == points
        assert table["accesses"][0]["count"]["workitem"]["symbolic"].split(" :")[0] == symbolic
    (table,) = document(capsys, str(folder / "mine.py") + ":shifted", "n:7,8", "m:2")["kernels"]
    assert table["kernel"] == "mine.py:shifted"
    assert table["points"] == [{"n": 7, "m": 2}, {"n": 8, "m": 2}]


@pytest.mark.parametrize("command", ["count", "kernels"])
def test_a_file_alone_lists_what_it_defines(command: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, "mine.py"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "mine.py:scaled: Loopy program",
        "mine.py:bound: kernel",
        "mine.py:shifted: function",
        "mine.py:failing: function",
        "mine.py:number: function",
    ]


def test_kernels_of_a_file_take_the_place_of_tags(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kernels", "mine.py:scaled", "mine.py:bound", "n:64,128"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.rsplit(" ", 1)[1] for line in lines] == ["n=64", "n=128", "n=64", "n=128"]
    device = SimulatedTime(lambda count: 1e-9 * count("f_op_float32_madd"))
    model = pm.Model("f_cl_wall_time", "p_madd * f_op_float32_madd", features={"f_cl_wall_time": device})
    kernels = pm.KernelCollection(pm.ALL_GENERATORS).generate_kernels(["matmul_sq", "n:16,32"])
    model.fit(pm.measure(kernels, model)).save("c.json")
    for command in ("predict", "rank", "explain"):
        assert main([command, "c.json", "mine.py:scaled", "n:64,128"]) == 0
        shown = capsys.readouterr().out
        assert "mine.py:scaled" in shown
        if command == "predict":
            assert "64 ns" in shown
            assert "128 ns" in shown


def test_a_file_may_import_its_neighbours(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "inner").mkdir()
    (folder / "inner" / "neighbour_of_kernels.py").write_text(KERNELS)
    (folder / "inner" / "outer.py").write_text("import neighbour_of_kernels\nknl = neighbour_of_kernels.scaled\n")
    (table,) = document(capsys, "inner/outer.py:knl")["kernels"]
    assert table["operations"][0]["kind"] == "madd"


def test_counts_that_are_only_bounds_say_so(collection: pm.KernelCollection) -> None:
    (table,) = count_tables(collection.generate_kernels(["launch", "groups:4"]))
    assert "bounds" not in as_text(table)
    assert "upper bounds" in as_text(table | {"exact": False})


WRONG = {
    "missing file": (["nowhere.py:knl"], ["nowhere.py", "No such file"]),
    "folder": (["folder.py:knl"], ["folder.py", "directory"]),
    "not Python": (["syntax.py:knl"], ["syntax.py", "SyntaxError", "line 2"]),
    "not text": (["binary.py:knl"], ["binary.py"]),
    "raising": (["raising.py:knl"], ["raising.py", "ZeroDivisionError: division by zero", "line 3"]),
    "leaving": (["leaving.py:knl"], ["leaving.py", "SystemExit: bye", "line 1"]),
    "raising function": (["mine.py:failing"], ["mine.py", "ValueError: no such variant", "line 21"]),
    "misspelt": (["mine.py:scale"], ["'scale'", "did you mean 'scaled'", "shifted"]),
    "hidden": (["mine.py:_hidden"], ["'_hidden'"]),
    "with arguments": (["mine.py:needs"], ["'needs'"]),
    "no name": (["mine.py:"], ["mine.py:NAME", "scaled"]),
    "number": (["mine.py:factor"], ["mine.py:factor", "int", "no kernel"]),
    "number from function": (["mine.py:number"], ["mine.py:number", "int", "no kernel"]),
    "no such size": (["mine.py:scaled", "--at", "m=3"], ["'m'", "it has n"]),
    "no such size in a tag": (["mine.py:scaled", "m:3"], ["'m'", "it has n"]),
    "missing size": (["mine.py:shifted", "--at", "n=3"], ["needs a value for m"]),
    "no pair": (["mine.py:scaled", "--at", "n"], ["'n'", "name=value"]),
    "generator beside a file": (["mine.py:scaled", "matmul_sq"], ["'matmul_sq'", "name:value"]),
    "no number": (["mine.py:scaled", "--at", "n=many"], ["'n=many'", "whole number"]),
    "fraction": (["mine.py:scaled", "--at", "n=1.5"], ["'n=1.5'", "whole number"]),
    "too large": (["mine.py:scaled", "--at", "n=9999999999999999999"], ["n=9999999999999999999"]),
    "twice": (["mine.py:scaled", "--at", "n=1", "n=2"], ["'n'", "twice"]),
    "assumption": (["matmul_sq", "--at", "n=17"], ["n=17", "assumes"]),
    "misspelt size": (["matmul_sq", "--at", "m=17"], ["'m'", "it has n"]),
    "no sub-group": (["matmul_sq", "--subgroup", "0"], ["0 work-items"]),
    "generator": (["matmull_sq"], ["'matmul_sq'"]),
}


@pytest.mark.parametrize(("arguments", "words"), WRONG.values(), ids=WRONG)
def test_wrong_input_gets_a_sentence_and_status_2(
    arguments: list[str], words: list[str], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "folder.py").mkdir()
    (folder / "syntax.py").write_text("a = 1\nb = (\n")
    (folder / "binary.py").write_bytes(b"\x00\xff\xfe")
    (folder / "raising.py").write_text("\n\nknl = 1 / 0\n")
    (folder / "leaving.py").write_text("raise SystemExit('bye')\n")
    assert main(["count", *arguments]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    (message,) = [line for line in shown.err.splitlines() if line != "loading"]
    assert message.startswith("perfmodel: ")
    for word in words:
        assert word in message

"""The command that runs a program, and says what it launched."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from perfmodel.device import Device
from perfmodel.interception.script import split

PROGRAM = Path(__file__).parents[2] / "docs" / "pyopencl_program.py"


def run(
    *arguments: str, code: str | None = None, folder: Path | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    if code is not None:
        assert folder is not None
        (folder / "script.py").write_text(code)
        arguments = (*(str(folder / "script.py") if word == "SCRIPT" else word for word in arguments),)
    command = [sys.executable, "-m", "perfmodel", "run", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **environment})


def test_the_command_runs_a_program(cpu: Device) -> None:
    done = run(str(PROGRAM), "2048", "--predict", "unified-plus@h200", "--emulate")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "sum: 2048.0"
    assert lines[1].startswith("kernel ")
    assert max(map(len, lines)) <= 80
    rows = [line.split() for line in lines if line.startswith("smooth")]
    assert rows[0][:6] == ["smooth", "4", "2048", "64", "16", "KiB"]
    assert ["smooth", "189", "63", "35", "0", "0"] in rows
    assert any(line.startswith("smooth ") and "|" in line for line in lines)
    done = run("--json", str(PROGRAM), "2048", "--predict", "@h200", "--predict", "unified-plus@h200")
    found = json.loads(done.stdout.splitlines()[-1])
    first = found["launches"][0]
    assert (first["kernel"], first["launches"], first["sizes"]) == ("smooth", 4, {"n": 2048})
    assert first["measured_s"] > 0
    for name in ("@h200", "unified-plus@h200"):
        assert first["predicted"][name]["total_s"] == 4 * first["predicted"][name]["seconds"] > 0
        kernels = [each["predicted"][name]["total_s"] for each in (*found["launches"], *found["copies"])]
        assert found["predicted_s"][name] == pytest.approx(sum(each for each in kernels if each is not None))
    shares = [each["share"] for each in (*found["launches"], *found["copies"])]
    assert sum(shares) == pytest.approx(1)
    ways = {each["what"]: (each["copies"], each["bytes"]) for each in found["copies"]}
    assert ways == {"copies to device": (1, 8192), "copies on device": (1, 8192), "copies from device": (1, 4)}


def test_queues_tell_times_although_the_program_did_not_ask(cpu: Device, tmp_path: Path) -> None:
    code = """import numpy as np, pyopencl as cl
from pyopencl import CommandQueue
context = cl.Context(cl.get_platforms()[0].get_devices())
queues = [CommandQueue(context), cl.CommandQueue(context, None, 0), cl.CommandQueue(context, properties=[0x1093, 1, 0])]
program = cl.Program(context, "__kernel void f(__global int *a) { a[get_global_id(0)] += 1; }").build()
a = cl.Buffer(context, cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR, hostbuf=np.zeros(8, np.int32))
for queue in queues:
    program.f(queue, (8,), None, a).wait()
b = np.empty(8, np.int32)
cl.enqueue_copy(queues[0], b, a)
print(b[0], all(isinstance(queue, cl.CommandQueue) for queue in queues), type(a) is cl.Buffer, cl.Buffer == type(a))
"""
    done = run("SCRIPT", "--json", code=code, folder=tmp_path)
    said, found = done.stdout.splitlines()
    assert said == "3 True False True"
    data = json.loads(found)
    assert [(each["launches"], each["measured_s"] > 0) for each in data["launches"]] == [(3, True)]
    assert {each["what"]: each["bytes"] for each in data["copies"]} == {
        "copies to device": 32,
        "copies from device": 32,
    }
    assert [each["what"] for each in data["events"]] == ["copies to device", *["f"] * 3, "copies from device"]
    starts = [each["start_s"] for each in data["events"]]
    assert 0 < starts[0] < starts[-1] < data["program_s"]


def test_sources_are_known_where_pyopencl_has_cached_binaries(cpu: Device, tmp_path: Path, cl: Any) -> None:
    code = """import numpy as np, pyopencl as cl
context = cl.Context(cl.get_platforms()[0].get_devices())
queue = cl.CommandQueue(context)
program = cl.Program(context, "__kernel void f(__global int *a) { a[0] = K; }").build("-DK=3")
print(program._build_duration_info[1])
a = cl.Buffer(context, cl.mem_flags.READ_WRITE, 4)
program.f(queue, (1,), None, a)
program.all_kernels()[0](queue, (1,), None, a)
"""
    environment = {"PYOPENCL_NO_CACHE": "0", "XDG_CACHE_HOME": str(tmp_path)}
    for is_cached in (False, True):
        done = run("SCRIPT", "--emulate", "--json", code=code, folder=tmp_path, **environment)
        first, second = done.stdout.splitlines()
        assert first == str(is_cached), done.stderr
        (launches,) = json.loads(second)["launches"]
        assert (launches["launches"], launches["problems"]) == (2, [])
        assert launches["first_group"]["global_stores"] == 1


def test_the_command_s_script_is_as_python_runs_it(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("NUMBER = 7\n")
    code = "import sys, beside\nprint(__name__, sys.argv[1:], beside.NUMBER)\nsys.exit(beside.NUMBER)\n"
    done = run("--emulate", "SCRIPT", "-n", "5", "--json", "--", "--json", "--", code=code, folder=tmp_path)
    assert done.stdout.splitlines()[0] == "__main__ ['-n', '5', '--json', '--'] 7"
    assert json.loads(done.stdout.splitlines()[1])["launches"] == []
    assert (done.returncode, done.stderr) == (7, "")
    done = run("SCRIPT", code="raise SystemExit('no data')", folder=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (1, "no launches\n", "no data\n")
    done = run("SCRIPT", code="import warnings\ndef f(): return 1 / 0\nwarnings.warn('odd')\nf()\n", folder=tmp_path)
    assert done.returncode == 1
    assert "script.py:3: UserWarning: odd" in done.stderr
    assert "perfmodel" not in done.stderr.replace(str(tmp_path), "")
    assert done.stderr.endswith("ZeroDivisionError: division by zero\n")
    assert done.stdout == "no launches\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ["nothing.py"],
            "perfmodel: script 'nothing.py' cannot be read (No such file or directory); give a Python file",
        ),
        ([str(PROGRAM.parent)], "cannot be read (Is a directory); give a Python file"),
        ([str(PROGRAM.parent / "measuring.md")], "is not Python ("),
        ([str(PROGRAM), "--predict", "nothing"], "perfmodel: 'nothing' names no calibration; give a file"),
        ([], "the following arguments are required: SCRIPT"),
        (["--nonsense", str(PROGRAM)], "there is no option --nonsense"),
        ([str(PROGRAM), "--predict"], "argument --predict: expected one argument"),
    ],
)
def test_the_command_refuses(arguments: list[str], words: str) -> None:
    done = run(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_what_is_whose() -> None:
    assert split(["--json", "a.py", "-x", "--predict", "c", "y"]) == (["--json", "a.py", "--predict", "c"], ["-x", "y"])
    assert split(["--predict=c", "a.py", "--", "--json"]) == (["--predict=c", "a.py"], ["--json"])
    assert split(["--json", "--", "-a.py", "--json"]) == (["--json", "--", "-a.py"], ["--json"])
    assert split([]) == ([], [])

"""Typical mistakes on the command line are answered in one sentence that says what to do."""

from __future__ import annotations

import json
import math
import shlex
from pathlib import Path

import pytest

from perfmodel.cli.command_line import main

BLUR = """__kernel void blur(__global float *out, __global const float *image, const int n)
{
    int i = get_global_id(1) * n + get_global_id(0);
    out[i] = 0.5f * image[i];
}
"""
GPU = json.loads((Path(__file__).parents[2] / "models" / "gpu@nvidia-h200-e38dd1.json").read_text())
FILES = {
    "negative.json": json.dumps({**GPU, "parameters": {**GPU["parameters"], "p_to": -1}}),
    "nan.json": json.dumps({**GPU, "parameters": {**GPU["parameters"], "p_to": math.nan}}),
    "blur.cl": BLUR,
    "two.cl": "__kernel void a(__global float *x) { x[0] = 1; } __kernel void b(__global float *x) { x[0] = 1; }",
    "bad.cl": "__kernel void a(__global float *x) { x[0] = 1 }",
    "mine.py": "x = 1\n",
    "syntax.py": "def (\n",
    "not.json": "{}",
    "text.txt": "p_a *",
    "empty.cl": "",
    "empty.cu": "",
    "zero.cl": "\0\0",
    "empty.json": "",
    "cuda.cl": "#include <cstdio>\n__global__ void scale(float *x) { x[threadIdx.x] *= 2; }",
    "opencl.cu": BLUR,
    "scale.cu": "__global__ void scale(float *x) { x[threadIdx.x] *= 2; }",
    "scale.cl": "__kernel void scale(__global float *x, float f) { x[get_global_id(0)] *= f; }",
}
LAUNCH = "--global n,n --local 16,16 --arg out=n*n --arg image=n*n"
OTHERS = "--arg out=n*n --arg image=n*n n=64"
MISTAKES = {
    # commands and options
    "calibrat": "there is no command 'calibrat'; did you mean 'calibrate'?",
    "predcit gpu@h200 matmul_sq": "did you mean 'predict' or 'project'?",
    "help": "there is no command 'help' (perfmodel --help lists them)",
    "n=64": "put one before it, such as perfmodel predict gpu@h200 n=64",
    "blur.cl": "put one before it, such as perfmodel predict gpu@h200 blur.cl",
    "--device h200 predict": "--device stands before the command; write it behind",
    "predict": "no calibration is named, and no kernel; name both, as in gpu@h200 matmul_sq n=1024 or --device h200",
    "predict --device h200": "none is named; put one behind it: --device h200 matmul_sq n=1024",
    "rank --device h200": "none is named; put one behind it: --device h200 matmul_sq n=1024",
    "predict negative.json matmul_sq n=64": "negative.json is damaged (p_to is -1, less than nothing); calibrate again",
    "predict nan.json matmul_sq n=64": "nan.json is damaged",
    "predict gpu@h200 matmul_sq --devise h200": "no option --devise; did you mean '--device'?",
    "predict gpu@h200 matmul_sq --budget 10": "there is no option --budget; write, for example",
    "predict gpu@h200 matmul_sq --effort much": "argument --effort: invalid float value: 'much'",
    "predict gpu@h200 matmul_sq --size 64": "there is no option --size; write, for example",
    "devices gpu": "'gpu' is one word more than the command takes",
    "completion csh": "invalid choice: 'csh' (choose from",
    "store exprt x": "did you mean 'export'",
    # calibrations
    "predict matmul_sq": "put one before the kernel, such as gpu@h200, or give a device by --device",
    "predict gpu@h200": "none is named; put one behind it: matmul_sq n=1024",
    "predict gpu matmul_sq": "did you mean 'gpu@nvidia-h200-e38dd1'?",
    "predict h200 matmul_sq": "did you mean 'gpu@nvidia-h200-e38dd1' or 'unified-plus@nvidia-h200-e38dd1'?",
    "predict @h300 matmul_sq": "calibrate yourself by 'perfmodel reproduce gpu'",
    "predict nothing.json matmul_sq": "cannot be read (No such file or directory); check the path",
    "predict not.json matmul_sq": "not.json is not a calibration; give a file that calibrate wrote",
    "predict gpu@h200 matmul_sq --device h200": "each name a calibration; leave out one of them",
    # tags and sizes
    "predict gpu@h200 matmul_qs": "did you mean 'matmul_sq'",
    "kernels matmul_sqq": "did you mean 'matmul_sq'",
    "predict gpu@h200 64": "no generator '64' (known: access_classes, ",
    "predict gpu@h200 matmul_sq m=64": "no tag 'm' in matmul_sq (known: dtype, groups_fit,",
    "predict gpu@h200 matmul_sq prefetch=True": "no tag 'prefetch' in matmul_sq; did you mean 'tiled_prefetch'?",
    "predict gpu@h200 matmul_sq n": "'n' is a tag, write 'n:value'",
    "predict gpu@h200 matmul_sq n=": "tag 'n' has no value ''",
    "predict gpu@h200 matmul_sq n=abc": "tag 'n' has no value 'abc'",
    "predict gpu@h200 matmul_sq n=0": "tag 'n' has no value '0'",
    "predict gpu@h200 matmul_sq n=-5": "tag 'n' has no value '-5'",
    "predict gpu@h200 matmul_sq n=65": "ask for n:64 or n:80, or groups_fit:False",
    "predict gpu@h200 matmul_sq n=64 n=128": "given twice; write 'n:64,128' for both",
    "predict gpu@h200 matmul_sq dtype=float": "did you mean 'float64' or 'float32' or 'float16'?",
    "predict gpu@h200 matmul_sq tiled_prefetch=yes": "(it has True, False)",
    "count matmul_sq --at n": "'n' gives no size; write name=value or name=a,b",
    "count matmul_sq --at n:64 n:128": "given twice; write all its values as n=a,b",
    "explain gpu@h200 matmul_sq --compare": "takes two kernels, and the tags select 4; choose by more tags",
    # files of kernels
    "predict gpu@h200 blur.cl": (
        "needs --global and --local; write the work-items by axis, as --global 1024,1024 --local 16,16"
    ),
    "predict gpu@h200 blur.cl --global n,n": "needs --local",
    f"predict gpu@h200 blur.cl {LAUNCH}": "needs a value for n; give it by --arg n=…",
    f"predict gpu@h200 blur.cl {LAUNCH} n=100": "choose other sizes, or round the global size up",
    f"predict gpu@h200 blur.cl {LAUNCH} n=64 --arg m=3": "no such argument (it has out, image, n)",
    f"predict gpu@h200 blur.cl {LAUNCH} --arg n": "--arg 'n' gives no value; write --arg NAME=VALUE",
    "predict gpu@h200 blur.cl --global n,n --local 16,16 n=64": (
        "needs the number of elements of its arguments 'out', 'image'; give them by --arg out=… --arg image=…"
    ),
    f"predict gpu@h200 blur.cl --global n,n --local 16 {OTHERS}": "2 axes of work-items and 1 of work-groups",
    f"predict gpu@h200 blur.cl {LAUNCH.replace('out=n*n', 'out=n^2')}": "joined by + - * // % and brackets",
    f"predict gpu@h200 blur.cl {LAUNCH.replace('out=n*n', 'out=k*n')}": "needs 'k', which is no size of it (it has n)",
    f"predict gpu@h200 blurr.cl {LAUNCH} n=64": "blurr.cl cannot be read (No such file or directory)",
    f"predict gpu@h200 blur.cl:blurr {LAUNCH} n=64": "no kernel 'blurr'; did you mean 'blur'?",
    "predict gpu@h200 two.cl --global 64 --local 64 --arg x=64": "has 2 kernels (a, b); name one by --kernel",
    "predict gpu@h200 bad.cl --global 64 --local 64 --arg x=64": "bad.cl:1:46: expected ';' after expression",
    "predict gpu@h200 mine.py": "write mine.py:NAME (it has none)",
    "predict gpu@h200 mine.py:x": "make it a Loopy program or a perfmodel.Kernel",
    "predict gpu@h200 mine.py:y": "defines no kernel 'y' (it has none)",
    "predict gpu@h200 syntax.py:y": "raises SyntaxError: invalid syntax (line 1); correct it",
    "predict gpu@h200 matmul_sq --global n,n": "and there is none; leave it out",
    "predict gpu@h200 matmul_sq --load nothing.py": "nothing.py cannot be read (No such file or directory)",
    "predict two.cl:a n=64": "put one before the kernel, such as gpu@h200, or give a device by --device",
    f"predict --device h200,a100 blur.cl {LAUNCH} n=64": "names 2 devices, and a calibration is of one; ask for each",
    f"predict gpu@h200 blur.cl {LAUNCH} n=99999999999999999999": "with whole numbers of up to 19 digits",
    "emulate blur.cl": "needs --global",
    f"emulate blur.cl {LAUNCH} n=64 --groups sample --seed -1": "seed=-1 begins no random numbers; give a whole number",
    f"tune blur.cl {LAUNCH} --arg n=64 --param n=64 --dry-run --predict @h200": "an argument of the kernel; rename",
    f"tune blur.cl {LAUNCH} --arg n=64 --space no.json --dry-run": "no.json cannot be read (No such file or directory)",
    f"tune blur.cl {LAUNCH} --arg n=64 --param t=64 --dry-run --budget nan": "a budget of nan s is none",
    "kernels blur.cl:blurr": "no kernel 'blurr'; did you mean 'blur'?",
    "predict gpu@h200 cuda.cl --global 64 --local 64": "is CUDA C++, as it has __global__, and is read as OpenCL C;",
    "kernels cuda.cl": "give it to from_cuda, or as a .cu file",
    "kernels opencl.cu": "the source is OpenCL C, as it has __kernel, and is read as CUDA C++; give it to",
    "kernels scale.cu:gone": "has no kernel 'gone'",
    "predict gpu@h200 opencl.cu --grid 64 --block 64": "give it to from_opencl, or as a .cl file",
    "predict gpu@h200 scale.cu --grid 4 --block 64 --arg x=64 --shared -1": "has -1 bytes of dynamic shared memory",
    "predict gpu@h200 scale.cu --grid 4 --block 64 --arg x=64 --shared 300000": "GPUs take up to 232448",
    "predict gpu@h200 scale.cu --grid 4 --block 2048 --arg x=64": "has 2048 threads in a block; NVIDIA's GPUs take",
    "predict gpu@h200 empty.cl --global 64 --local 64": "empty.cl has no kernel; give a file with a function",
    "predict gpu@h200 empty.cu --grid 64 --block 64": "empty.cu has no kernel; give a file with a function",
    "predict gpu@h200 zero.cl --global 64 --local 64": "zero.cl is no text in UTF-8; save it so",
    "predict empty.json matmul_sq n=64": "calibration empty.json is damaged",
    f"predict gpu@h200 blur.cl {LAUNCH} n=0": "is launched with 0 × 0 work-items in groups of 16 × 16 at n=0, which is",
    f"predict gpu@h200 blur.cl {LAUNCH} n=-16": "'n=-16' gives no size",
    f"predict gpu@h200 blur.cl {LAUNCH} n=1e3": "'n=1e3' gives no size",
    f"predict gpu@h200 blur.cl {LAUNCH} n=1600000000000": "does not fit into int32; declare a wider argument",
    f"predict gpu@h200 blur.cl --global n,n --local 0,16 {OTHERS}": "in groups of 0 × 16 at n=64, which is empty",
    "predict gpu@h200 scale.cl --global 64 --local 64 --arg x=0": "array 'x' of kernel 'scale' has no element; give",
    "predict gpu@h200 scale.cl --global 64 --local 64 --arg x=64 --arg x=64": "--arg x is given twice; give it once",
    "predict gpu@h200 scale.cl --global 64 --local 64 --arg x=64 --arg f=abc": "--arg f=abc is no number; write one",
    "predict gpu@h200 scale.cl --global 64 --local 64 --arg x=no.npy": "no.npy cannot be read; give a file that numpy",
    "predict gpu@h200 scale.cl --global 64,,3 --local 64 --arg x=64": "global size of kernel 'scale' cannot be ''",
    "predict gpu@h200 scale.cl -DN=3 --global 64 --local 64": "did you mean '--option=-DN=3'?",
    # features and models
    "features f_opp": "no feature family knows 'f_opp'; did you mean 'f_op'",
    "features f_op_float32_maddd": "did you mean 'madd' or 'add'?",
    "features f_op_flot32_madd": "did you mean 'float32'",
    "features op": "is not a feature's name; those start with 'f_'",
    "calibrate p_a": "select them by --tags, such as --tags matmul_sq",
    "calibrate p_a --tags matmul_sq n=64 --prior @cpu": "--prior is for the model that comes along; leave it out",
    "calibrate --hold p_a=1": "--hold is for a model string, of which there is none; give one, or leave it out",
    "calibrate --kernels 4 --tags matmul_sq": "both say what to measure; leave one out",
    "calibrate --kernels 0 --device cpu": "0 kernels teach nothing; give 1 or more",
    "calibrate --prior not.json": "not.json is not a calibration; give a file that calibrate wrote",
    "calibrate p_a --tags matmul_sq --out /nonexistent/x.json": "give a file in a folder that is there",
    "calibrate 'p_a*' --tags matmul_sq n=64": "expected a number, a name or '(', got end of the model string",
    "calibrate 'p_a*f_opp' --tags matmul_sq n=64": "did you mean 'f_op'",
    "calibrate 'a*f_op' --tags matmul_sq n=64": "a parameter starts with p_, a feature with f_",
    "calibrate @nothing.txt --tags matmul_sq n=64": "cannot be read",
    "calibrate @text.txt --tags matmul_sq n=64": "(line 1, column 6)",
    "calibrate p_a --tags matmul_sq n=64 --hold p_b=1": "no parameter of the model; did you mean 'p_a'?",
    "calibrate p_a --tags matmul_sq n=64 --hold p_a": "is not NAME=VALUE; write it so",
    "calibrate p_a --tags matmul_sq n=64 --protocol slow": "no protocol 'slow' (known: perflex, quick, unified)",
    # measuring, stores and the rest
    "measure matmul_sq n=64": "give --store FILE, or store in perfmodel.toml",
    "measure matmul_sq n=64 --store not.json": "no SQLite file: give another path",
    "store ls nothing.sqlite": "give the path of a store that measuring made",
    "browse blur.cl --port 99999": "port 99999 is none; give one up to 65535",
    "browse nothing.sqlite": "give a file that measure or calibrate wrote",
    "evaluate gpu@h200 matmul_sq n=64 --fail-above x": "invalid float value: 'x'",
    "report gpu@h200 --out /nonexistent/r.html": "cannot be written (No such file or directory); give another path",
    "run --device h200 nothing.py": "did you mean '--predict @DEVICE'?",
    "run nothing.py": "cannot be read (No such file or directory); give a Python file",
    "occupancy --compute-capability 12.9 --block 64": "no limits of compute capability 12.9 are known; there are 5.0",
    "occupancy --arch gfx99": "did you mean 'gfx909'",
    "reproduce unifeid": "did you mean 'unified'",
    "doctor --device abacus": "no device is called 'abacus'; there are",
    "survey nothing": "nothing is no folder; give one with a file survey.json",
}
MOST_LINES, MOST_CHARACTERS = 3, 330


@pytest.mark.parametrize("line", MISTAKES)
def test_a_mistake_is_answered(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PERFMODEL_DEVICE", raising=False)
    try:
        status = main(shlex.split(line))
    except SystemExit as ended:
        status = int(ended.code or 0)
    shown = capsys.readouterr()
    assert status == 2
    assert shown.out == ""
    assert MISTAKES[line] in shown.err
    assert shown.err.startswith("perfmodel")
    assert shown.err.count("\n") <= MOST_LINES  # a model string is shown with a caret below it
    assert len(shown.err) <= MOST_CHARACTERS
    assert not any(call in shown.err for call in ("kernel.", "Kernel.from", "pm.", "args="))


SCALE = "__kernel void scale(__global float *x) { x[get_global_id(0)] *= 2; }"
READABLE = {
    "Windows' ends of lines": f"#define A(a) \\\r\n (a)\r\n{SCALE}\r\n".encode(),
    "a mark of UTF-8": b"\xef\xbb\xbf" + SCALE.encode(),
    "Latin-1 in a comment": b"// \xe9\n" + SCALE.encode(),
}


@pytest.mark.parametrize("kind", READABLE)
def test_sources_of_any_editor_are_read(kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "a file.cl"
    file.write_bytes(READABLE[kind])
    assert main(["predict", "gpu@h200", str(file), *shlex.split("--global 64 --local 64 --arg x=64")]) == 0
    shown = capsys.readouterr()
    assert "scale" in shown.out
    assert shown.err == ""


DOUBTFUL = {
    f"{LAUNCH.replace('out=n*n', 'out=16')} n=64": "touches 4096 elements of 'out', which has 16; give it more",
    f"{LAUNCH.replace('16,16', '64,64')} n=64": "has work-groups of 4096 work-items, and NVIDIA H200 takes up to 1024",
    f"{LAUNCH} n=64": "",
}


@pytest.mark.parametrize("launch", DOUBTFUL)
def test_launches_that_would_fail_are_predicted_with_a_warning(
    launch: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("blur.cl").write_text(BLUR)
    assert main(["predict", "gpu@h200", "blur.cl", *shlex.split(launch)]) == 0
    said = capsys.readouterr().err
    assert said.count("\n") == bool(DOUBTFUL[launch])
    assert DOUBTFUL[launch] in said


SHARED = {
    ("a100", 166_912): "",
    ("a100", 166_913): "has 166913 bytes of dynamic shared memory, and A100 PCIe 40 GB gives a block up to 166912; use",
    ("h200", 232_448): "",
}


@pytest.mark.parametrize(("device", "shared"), SHARED)
def test_more_shared_memory_than_a_device_gives_is_a_warning(
    device: str, shared: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("scale.cu").write_text(FILES["scale.cu"])
    launch = f"--grid 4 --block 64 --arg x=64 --shared {shared}"
    assert main(["predict", "--device", device, "scale.cu", *shlex.split(launch)]) == 0
    said = capsys.readouterr().err
    assert ("shared memory" in said) == bool(SHARED[device, shared])
    assert SHARED[device, shared] in said


def test_there_are_many() -> None:
    assert len(MISTAKES) >= 60

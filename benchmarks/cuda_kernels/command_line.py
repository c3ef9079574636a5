"""The command line of a set of kernels that are compiled here, and timed, predicted and judged on a GPU."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.cuda_kernels.judging import PREDICTED, predicted
from benchmarks.cuda_kernels.measuring import Timed, measure, work
from perfmodel import Calibration


@dataclass(frozen=True)
class Suite:
    """Kernels, and what is done with them.

    Attributes:
        module: which is run for it.
        runtimes: by way of which its kernels are timed.
        compiler: what compiling them needs.
        compiled: the file of their PTX.
        compile_all: makes that file, tells of each kernel, and returns how many there are.
        named: returns the kernels of these names, or all for none, in parts that are measured one after the other.
        row: returns what a kernel is predicted to take, and why it can't be, by ``seconds`` and ``why``.
        as_text: returns the times and predictions of a folder as tables.
        native: times kernels as their own language launches them, if it does.
    """

    module: str
    told: str
    runtimes: Sequence[str]
    compiler: str
    compiled: Path
    compile_all: Callable[[Callable[[str], None]], int]
    named: Callable[[Sequence[str]], list[list[Any]]]
    row: Callable[[Any, Calibration], dict[str, Any]]
    as_text: Callable[[Path], str]
    native: Callable[[Sequence[Any], Path], None] | None = None


def run(suite: Suite) -> int:
    """Runs the command that is asked for, and returns its exit status."""
    parsed = _parser(suite).parse_args()
    if parsed.command == "compile":
        print(f"{suite.compile_all(print)} kernels in {suite.compiled}")
        return 0
    folder: Path = parsed.folder
    folder.mkdir(parents=True, exist_ok=True)
    if parsed.command == "judge":
        print(suite.as_text(folder))
        return 0
    parts: list[list[Timed]] = suite.named(parsed.only)
    everything = [case for part in parts for case in part]
    match parsed.command:
        case "measure":
            for part in parts:
                measure(part, folder, parsed.gpu, suite.runtimes, suite.module)
        case "worker":
            work(everything, folder, parsed.gpu, suite.runtimes)
        case "native":
            assert suite.native is not None
            suite.native(everything, folder)
        case "predict":
            calibration = Calibration.shipped(parsed.calibration, device=parsed.device)
            _predict(suite, everything, folder, calibration, parsed.again)
    return 0


def _parser(suite: Suite) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=f"python -m {suite.module}", description=suite.told)
    commands = parser.add_subparsers(dest="command", required=True)
    needed = f"write the PTX of all kernels into {suite.compiled.name}; needs {suite.compiler}"
    commands.add_parser("compile", help=needed)
    for name, told in (
        ("measure", f"time kernels ({', '.join(suite.runtimes)}); the same command goes on where it ended"),
        ("worker", "measure kernels with data in this process (measure starts it)"),
        ("native", f"time the exam as {suite.compiler} itself compiles and launches it; needs PyTorch, too"),
        ("predict", "predict kernels, and keep that"),
        ("judge", "compare times with predictions"),
    ):
        if name == "native" and suite.native is None:
            continue
        added = commands.add_parser(name, help=told)
        added.add_argument("folder", type=Path, help="where times and predictions are kept")
        if name != "judge":
            added.add_argument("--only", nargs="+", default=[], metavar="NAME", help="these kernels (default: all)")
        if name in ("measure", "worker"):
            added.add_argument("--gpu", default="gpu", help="a word that names the GPU (default: gpu)")
        if name == "predict":
            added.add_argument("--calibration", default="gpu", help="name of a shipped one (default: gpu)")
            added.add_argument("--device", default="H200", help="that it is of (default: H200)")
            added.add_argument("--again", action="store_true", help="also what was predicted before")
    return parser


def _predict(suite: Suite, wanted: Sequence[Timed], folder: Path, calibration: Calibration, again: bool) -> None:
    """Writes what is predicted of kernels; of those that the folder has, only if asked again."""
    known = predicted(folder)
    for case in wanted:
        if case.name in known and not again:
            continue
        known[case.name] = {"name": case.name, **suite.row(case, calibration)}
        print(json.dumps(known[case.name]), flush=True)
        text = "".join(json.dumps(row) + "\n" for row in known.values())
        (folder / PREDICTED).write_text(text, encoding="utf-8")

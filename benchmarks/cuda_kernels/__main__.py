"""Compiles, measures, predicts and judges CUDA kernels."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from benchmarks.cuda_kernels import cases, judging, measuring
from perfmodel import Calibration


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cuda_kernels", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("compile", help=f"write the PTX of all kernels into {cases.COMPILED.name}; needs the compiler")
    for name, told in (
        ("measure", "time kernels by way of CUDA and of OpenCL; the same command goes on where it ended"),
        ("worker", "measure kernels with data in this process (measure starts it)"),
        ("predict", "predict kernels in both languages, and keep that"),
        ("judge", "compare times with predictions"),
    ):
        added = commands.add_parser(name, help=told)
        added.add_argument("folder", type=Path, help="where times and predictions are kept")
        if name != "judge":
            added.add_argument("--only", nargs="+", default=[], metavar="NAME", help="these kernels (default: all)")
        if name in ("measure", "worker"):
            added.add_argument(
                "--gpu", default="gpu", help="a word that names the GPU for both runtimes (default: gpu)"
            )
        if name == "predict":
            added.add_argument("--calibration", default="gpu", help="name of a shipped one (default: gpu)")
            added.add_argument("--device", default="H200", help="that it is of (default: H200)")
            added.add_argument("--again", action="store_true", help="also what was predicted before")
    parsed = parser.parse_args()
    if parsed.command != "compile":
        parsed.folder.mkdir(parents=True, exist_ok=True)
    match parsed.command:
        case "compile":
            print(f"{cases.compile_all(print)} kernels in {cases.COMPILED}")
        case "measure":
            wanted, runtimes = cases.compiled_cases(parsed.only), measuring.RUNTIMES
            measuring.measure(wanted, parsed.folder, parsed.gpu, runtimes, "benchmarks.cuda_kernels")
        case "worker":
            measuring.work(cases.compiled_cases(parsed.only), parsed.folder, parsed.gpu, measuring.RUNTIMES)
        case "predict":
            calibration = Calibration.shipped(parsed.calibration, device=parsed.device)
            judging.predict(parsed.folder, calibration, parsed.only, parsed.again)
        case "judge":
            print(judging.as_text(*judging.rows(parsed.folder)))
    return 0


if __name__ == "__main__":
    sys.exit(main())

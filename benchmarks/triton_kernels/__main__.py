"""Compiles, measures, predicts and judges kernels of Triton."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from benchmarks.cuda_kernels import measuring
from benchmarks.triton_kernels import cases, judging
from perfmodel import Calibration
from perfmodel.device import CUDA

MODULE = "benchmarks.triton_kernels"


def main() -> int:
    parser = argparse.ArgumentParser(prog=f"python -m {MODULE}", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("compile", help=f"write the PTX of all kernels into {cases.COMPILED.name}; needs Triton")
    for name, told in (
        ("measure", "time kernels by way of CUDA; the same command goes on where it ended"),
        ("worker", "measure kernels with data in this process (measure starts it)"),
        ("native", "time the exam as Triton itself compiles and launches it; needs Triton and PyTorch"),
        ("predict", "predict kernels, and keep that"),
        ("judge", "compare times with predictions"),
    ):
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
    parsed = parser.parse_args()
    if parsed.command != "compile":
        parsed.folder.mkdir(parents=True, exist_ok=True)
    match parsed.command:
        case "compile":
            print(f"{cases.compile_all(print)} kernels in {cases.COMPILED}")
        case "measure":
            for origin in cases.ORIGINS:
                wanted = [each for each in cases.named(parsed.only) if each.origin == origin]
                measuring.measure(wanted, parsed.folder, parsed.gpu, [CUDA], MODULE)
        case "worker":
            measuring.work(cases.named(parsed.only), parsed.folder, parsed.gpu, [CUDA])
        case "native":
            from benchmarks.triton_kernels import native  # which needs Triton and PyTorch

            native.measure(cases.named(parsed.only), parsed.folder)
        case "predict":
            calibration = Calibration.shipped(parsed.calibration, device=parsed.device)
            judging.predict(cases.named(parsed.only), parsed.folder, calibration, parsed.again)
        case "judge":
            print(judging.as_text(parsed.folder))
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Compiles, measures, predicts and judges kernels of Triton."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.cuda_kernels.command_line import Suite, run
from benchmarks.triton_kernels import cases, judging
from perfmodel.device import CUDA


def native(wanted: Sequence[cases.Case], folder: Path) -> None:
    from benchmarks.triton_kernels import native  # which needs Triton and PyTorch

    native.measure(wanted, folder)


SUITE = Suite(
    module="benchmarks.triton_kernels",
    told=__doc__,
    runtimes=[CUDA],
    compiler="Triton",
    compiled=cases.COMPILED,
    compile_all=cases.compile_all,
    named=lambda names: [[c for c in cases.named(names) if c.origin == origin] for origin in cases.ORIGINS],
    row=judging.predicted_row,
    as_text=judging.as_text,
    native=native,
)

if __name__ == "__main__":
    sys.exit(run(SUITE))

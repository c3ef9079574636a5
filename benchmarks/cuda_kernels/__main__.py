"""Compiles, measures, predicts and judges CUDA kernels."""

from __future__ import annotations

import sys

from benchmarks.cuda_kernels import cases, judging, measuring
from benchmarks.cuda_kernels.command_line import Suite, run

SUITE = Suite(
    module="benchmarks.cuda_kernels",
    told=__doc__,
    runtimes=measuring.RUNTIMES,
    compiler="the compiler",
    compiled=cases.COMPILED,
    compile_all=cases.compile_all,
    named=lambda names: [cases.compiled_cases(names)],
    row=judging.predicted_row,
    as_text=lambda folder: judging.as_text(*judging.rows(folder)),
)

if __name__ == "__main__":
    sys.exit(run(SUITE))

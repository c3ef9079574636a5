"""Compares how often a processor's machine code is executed, as predicted, with a simulator that counts instructions.

    python -m benchmarks.executed_instructions FOLDER --launch cpu --out TABLE [--cases NAME …]

FOLDER is a survey's (docs/surveys.md). Each case is launched on Intel's driver in Valgrind's callgrind (Debian has it
as valgrind), in a process of its own; code is made for AVX2, which Valgrind knows. A table tells for each kernel the
instructions that a work-group executes on average, as counted and as `perfmodel.x86` says.
"""

from __future__ import annotations

import argparse
import os
import pickle
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import numpy as np

import perfmodel as pm
from perfmodel.basics.errors import PerfmodelError
from perfmodel.basics.tables import grid
from perfmodel.device import find_device
from perfmodel.kernels.core_code import code_of
from perfmodel.kernels.driver_code import TARGET
from perfmodel.measuring.protocol import run_launch
from perfmodel.surveying import Case, load_cases
from perfmodel.x86.work import entry_of, executed_code

AVX2 = "core-avx2"
LIMIT_S = 300.0
ENOUGH = 0.5
"""Code is found if so many of the instructions that should be executed lie at addresses that are."""
UNKNOWN = "ob=???"
"""A line of callgrind's that names the object of what comes next: none, for code that was made as the process runs."""


def predicted(case: Case) -> tuple[dict[int, float], int]:
    """Returns how often a work-group executes the instruction at each address of the driver's code, as predicted, and
    the address of its first one."""
    kernel = case.as_kernel().as_countable(case.sampled).as_core_code()
    pm.feature("f_core_slots").eval(kernel)  # looks at what data decide
    source = kernel.program.as_opencl()
    program = next(iter(source.samples.values()), source)
    values = {**dict.fromkeys(program.arguments, 1), **kernel.sizes}
    made = code_of(program, program.launch(values), values)
    if made is None:
        raise PerfmodelError("no driver tells its machine code")
    found: dict[int, float] = {}
    first = 0
    for part, executed in executed_code(entry_of(*made)):
        first = part.flow.blocks[0].instructions[0].address if part.is_kernel else first
        for number, block in part.flow.blocks.items():
            found |= {each.address: executed.times[number] for each in block.instructions}
    return found, first


def counted(case: Case, folder: Path) -> dict[int, int]:
    """Returns how often a launch executes the instruction at each address of code that the driver made."""
    kernel = case.as_kernel()
    launch = kernel.launch()
    job, counts = folder / "job", folder / "counts"
    job.write_bytes(pickle.dumps((launch, case.host_arrays(kernel))))
    options = ["--dump-instr=yes", "--instr-atstart=no", "--compress-pos=no", "--compress-strings=no"]
    command = ["valgrind", "--tool=callgrind", *options, f"--callgrind-out-file={counts}"]
    child = [sys.executable, "-m", "benchmarks.executed_instructions", "--job", str(job)]
    done = subprocess.run([*command, *child], capture_output=True, timeout=LIMIT_S, check=False)
    if done.returncode:
        raise PerfmodelError("Valgrind does not know an instruction of it, or the launch failed")
    found: Counter[int] = Counter()
    is_here = is_call = False
    for line in counts.read_text(errors="replace").splitlines():
        if line.startswith("ob="):
            is_here = line == UNKNOWN
        elif line.startswith("calls="):
            is_call = True
        elif line.startswith("0x") and is_call:
            is_call = False  # what the called function executes
        elif line.startswith("0x") and is_here:
            address, _, *cost = line.split()
            found[int(address, 16)] += int(cost[0]) if cost else 0
    return found


def launched(job: Path) -> None:
    """Launches what a file holds, in Valgrind: once to have it built, and once while instructions are counted."""
    launch, arrays = pickle.loads(job.read_bytes())
    device = find_device("cpu")
    run_launch(launch, device, arrays)
    for switch in ("on", "off"):
        subprocess.run(["callgrind_control", "-i", switch, str(os.getpid())], stdout=subprocess.DEVNULL, check=True)
        if switch == "on":
            run_launch(launch, device, arrays)


def compared(case: Case) -> tuple[float, float]:
    """Returns the instructions that a work-group executes, as counted and as predicted."""
    times, first = predicted(case)
    with tempfile.TemporaryDirectory() as folder:
        counts = counted(case, Path(folder))
    launch = case.as_kernel().launch()
    groups = float(np.prod(launch.global_size) / np.prod(launch.local_size))
    expected = [address - first for address, often in times.items() if often]

    def executed(start: int) -> int:
        return sum(start + address in counts for address in expected)

    start = max(counts, key=executed, default=0)
    if executed(start) < ENOUGH * len(expected):
        raise PerfmodelError("its code was not found among what was executed")
    return sum(counts.get(start + address - first, 0) for address in times) / groups, sum(times.values())


def table_of(found: Mapping[str, tuple[float, float]]) -> str:
    """Returns a table of what kernels execute, those that are furthest off last."""
    rows = sorted(found.items(), key=lambda each: abs(np.log(each[1][1] / each[1][0])))
    lines = [[name, f"{true:.4g}", f"{said:.4g}", f"{said / true:.2f}"] for name, (true, said) in rows]
    near = [sum(abs(said / true - 1) <= most for true, said in found.values()) for most in (0.1, 0.25)]
    told = f"{len(found)} kernels, {near[0]} within 10 %, {near[1]} within 25 %"
    return grid(["kernel", "executed", "predicted", "ratio"], lines) + f"\n\n{told}\n"


def main() -> None:
    parser = argparse.ArgumentParser(description="executions of machine code, as predicted and as Valgrind counts them")
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--launch", default="cpu")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--cases", nargs="+", default=[], help="parts of their names (default: all)")
    parser.add_argument("--job", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    if arguments.job:
        launched(arguments.job)
        return
    os.environ[TARGET] = AVX2
    found: dict[str, tuple[float, float]] = {}
    for case in load_cases(arguments.folder, arguments.launch):
        if arguments.cases and not any(part in case.name for part in arguments.cases):
            continue
        try:
            found[case.name] = compared(case)
            print(case.name, "{:.4g} {:.4g}".format(*found[case.name]), flush=True)
        except (PerfmodelError, subprocess.TimeoutExpired, ValueError) as error:
            print(f"{case.name}: {error}", flush=True)
    table = table_of(found)
    print(table)
    if arguments.out:
        arguments.out.write_text(table, encoding="utf-8")


if __name__ == "__main__":
    main()

"""Measures how much of the processor's time short commands take, and the same of another checkout beside it.

    python -m benchmarks.start_times [--beside OTHER/.venv/bin/python] [--rounds 6]

Commands take turns, and the smallest time of each counts, as other processes only add to it.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

SOURCE = """__kernel void saxpy(__global float *y, __global const float *x, const float a, const int n)
{
    y[get_global_id(0)] += a * x[get_global_id(0)];
}
"""
LAUNCH = ("--global", "n", "--local", "128", "--arg", "x=n", "--arg", "y=n", "n=1048576")
COMMANDS = {
    "--help": ("--help",),
    "predict a .cl kernel": ("predict", "--device", "h200", "saxpy.cl", *LAUNCH),
    "predict a generator's kernel": ("predict", "--device", "h200", "matmul_sq", "n:1024"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--beside", help="the Python of another checkout")
    parser.add_argument("--rounds", type=int, default=6)
    parsed = parser.parse_args()
    pythons = {"here": sys.executable} | ({"beside": parsed.beside} if parsed.beside else {})
    found: dict[tuple[str, str], float] = {}
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "saxpy.cl").write_text(SOURCE)
        for _ in range(parsed.rounds + 1):  # in the first round, caches are filled
            for where, python in pythons.items():
                for name, words in COMMANDS.items():
                    seconds = processor_seconds([python, "-m", "perfmodel", *words], folder)
                    found[name, where] = min(found.get((name, where), seconds), seconds)
            seconds = processor_seconds([sys.executable, "-c", "import numpy"], folder)
            found["import numpy", "here"] = min(found.get(("import numpy", "here"), seconds), seconds)
    for (name, where), seconds in sorted(found.items()):
        print(f"{name:30s} {where:8s} {seconds:.3f} s")


def processor_seconds(command: Sequence[str], folder: str) -> float:
    """Returns the seconds that a command takes of the processor, as user and as system."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    main()

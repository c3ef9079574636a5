"""Times the first count of every family's kernels: of the Loopy program, and through the OpenCL C that Loopy writes.

    python -m benchmarks.first_counts

Nothing is looked up: Loopy's caches are off, every round gets a program of its own, and the source is read anew. Both
ways begin with Loopy's preprocessing and its order of instructions, each done once. The kernels are those that
tests/opencl_c/test_families.py asserts to have the same counts both ways, one for every value of every choice.
"""

from __future__ import annotations

import argparse
import pickle
import time
import warnings
from typing import Any

import loopy as lp
import numpy as np

import perfmodel as pm
from perfmodel import opencl_c
from perfmodel.basics.statistics import geometric_mean
from perfmodel.basics.tables import grid
from perfmodel.counting.loopy.counts import count_loopy
from perfmodel.counting.loopy.target import same_code
from perfmodel.kernels.loopy_program import LoopyProgram
from perfmodel.kernels.opencl_program import OpenCLProgram
from tests.opencl_c.test_families import FAMILIES, SUBGROUP, in_opencl, variants

ROUNDS = 2
"""The faster one counts."""


def main() -> None:
    parser = argparse.ArgumentParser(description="first counts of Loopy programs, themselves and as OpenCL C")
    parser.add_argument("families", nargs="*", default=FAMILIES)
    parser.add_argument("--every", type=int, default=1, help="take every so many kernels only")
    parsed = parser.parse_args()
    warnings.simplefilter("ignore")
    collection = pm.KernelCollection(pm.ALL_GENERATORS)
    rows, found = [], list[list[float]]()
    with lp.CacheMode(False):
        for family in parsed.families:
            kernels = [variant.kernel for variant in variants(collection.generator(family))[:: parsed.every]]
            times = [_times(kernel) for kernel in kernels if isinstance(kernel.program, LoopyProgram)]
            if times:
                rows.append(_row(family, times))
                found += times
    headers = [
        "family",
        "kernels",
        "Loopy program",
        "code",
        "code and counts",
        "ratio",
        "largest",
        "ratio of code alone",
    ]
    print(grid(headers, [*rows, _row("all", found)]))


def _times(kernel: pm.Kernel) -> list[float]:
    """Returns seconds for the Loopy program's counts, for its code as it is read, and for that and its counts."""
    rounds = [(_as_loopy(_new(kernel)), *_as_opencl(_new(kernel))) for _ in range(ROUNDS)]
    return [min(times) for times in zip(*rounds, strict=True)]


def _new(kernel: pm.Kernel) -> pm.Kernel:
    """Returns a kernel that remembers nothing."""
    lp.clear_in_mem_caches()
    return pickle.loads(pickle.dumps(kernel))  # type: ignore[no-any-return]


def _as_loopy(kernel: pm.Kernel) -> float:
    program: Any = kernel.program
    start = time.perf_counter()
    count_loopy(program.translation_unit, program.statistics, SUBGROUP)
    return time.perf_counter() - start


def _as_opencl(kernel: pm.Kernel) -> tuple[float, float]:
    program: Any = kernel.program
    start = time.perf_counter()
    with same_code():
        unit = lp.preprocess_program(lp.infer_unknown_types(program.translation_unit))
        ordered = lp.get_one_linearized_kernel(unit.default_entrypoint, unit.callables_table)
        source = lp.generate_code_v2(unit.with_kernel(ordered)).device_code()
    written = time.perf_counter() - start
    converted = in_opencl(kernel).program
    assert isinstance(converted, OpenCLProgram)
    assert converted.source == source
    opencl_c._lowered_kernel.cache_clear()
    start = time.perf_counter()
    assert converted.lowered
    read = time.perf_counter() - start
    converted._counted(SUBGROUP)
    return written + read, written + time.perf_counter() - start


def _row(family: str, times: list[list[float]]) -> list[str]:
    loopy, code, both = np.array(times).T
    return [
        family,
        str(len(times)),
        f"{loopy.sum():.2f} s",
        f"{code.sum():.2f} s",
        f"{both.sum():.2f} s",
        f"{geometric_mean(both / loopy):.2f}",
        f"{(both / loopy).max():.2f}",
        f"{geometric_mean(code / loopy):.2f}",
    ]


if __name__ == "__main__":
    main()

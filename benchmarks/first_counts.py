"""Times the first count of every family's kernels: of the Loopy program, and through the OpenCL C that Loopy writes.

    python -m benchmarks.first_counts
    python -m benchmarks.first_counts --beside-loopy

Nothing is looked up: Loopy's caches are off, every round gets a program of its own, and the source is read anew. Both
ways begin with Loopy's preprocessing and its order of instructions, each done once. The kernels are those that
tests/opencl_c/test_families.py asserts to have the same counts both ways, one for every value of every choice.

Beside Loopy's own statistics (`get_op_map`, `get_mem_access_map` and `get_synchronization_map`), it is the first kernel
of each family. Every count is made in a process of its own, which has counted nothing but an addition of vectors, so
that neither finds anything in memory; the ways take turns, and the shortest of the processor's times counts.
"""

from __future__ import annotations

import argparse
import multiprocessing
import pickle
import time
import warnings
from collections.abc import Callable
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
TURNS = 5
"""The fastest one counts, beside Loopy."""
WARMED_UP = "vector_add"


def main() -> None:
    parser = argparse.ArgumentParser(description="first counts of Loopy programs, themselves and as OpenCL C")
    parser.add_argument("families", nargs="*", default=FAMILIES)
    parser.add_argument("--every", type=int, default=1, help="take every so many kernels only")
    parser.add_argument("--beside-loopy", action="store_true", help="beside Loopy's own statistics")
    parsed = parser.parse_args()
    warnings.simplefilter("ignore")
    with lp.CacheMode(False):
        print(beside_loopy(parsed.families) if parsed.beside_loopy else both_ways(parsed.families, parsed.every))


def both_ways(families: list[str], every: int) -> str:
    """Returns a table of first counts, of Loopy programs and of their OpenCL C."""
    collection = pm.KernelCollection(pm.ALL_GENERATORS)
    rows, found = [], list[list[float]]()
    for family in families:
        kernels = [variant.kernel for variant in variants(collection.generator(family))[::every]]
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
    return grid(headers, [*rows, _row("all", found)])


def beside_loopy(families: list[str]) -> str:
    """Returns a table of first counts, ours beside the three calls that Loopy's statistics take."""
    collection = pm.KernelCollection(pm.ALL_GENERATORS)
    kernels = [next(iter(collection.generate_kernels([family]))) for family in families]
    kernels = [kernel for kernel in kernels if isinstance(kernel.program, LoopyProgram)]
    (addition,) = collection.generate_kernels([WARMED_UP])[:1]
    for count in COUNTS.values():
        count(_new(addition).program)
    times = np.array([_in_turns(kernel) for kernel in kernels])
    ours, *theirs = times.T
    ratios = np.array([ours / each for each in theirs])
    rows = [
        [kernel.name, *(f"{1e3 * seconds:.1f}" for seconds in row), *(f"{each:.2f}" for each in of_kernel)]
        for kernel, row, of_kernel in zip(kernels, times, ratios.T, strict=True)
    ]
    together: dict[str, Callable[[Any], Any]] = {"geometric mean": geometric_mean, "mean": np.mean, "largest": np.max}
    rows += [[name, "", "", "", *(f"{of_all(each):.2f}" for each in ratios)] for name, of_all in together.items()]
    in_all = [ours.sum() / each.sum() for each in theirs]
    rows.append(["all together", *(f"{1e3 * each:.0f}" for each in times.sum(axis=0)), *(f"{r:.2f}" for r in in_all)])
    headers = ["family", *(f"{name}, ms" for name in COUNTS)]
    return grid([*headers, *(f"ours ÷ {name}" for name in list(COUNTS)[1:])], rows)


def _in_turns(kernel: pm.Kernel) -> list[float]:
    """Returns the processor's seconds of each way to count a kernel."""
    context = multiprocessing.get_context("fork")
    turns = []
    for _ in range(TURNS):
        with context.Pool(1, maxtasksperchild=1) as pool:
            turns.append(pool.starmap(_seconds, [(name, kernel) for name in COUNTS], chunksize=1))
    return [min(times) for times in zip(*turns, strict=True)]


def _seconds(name: str, kernel: pm.Kernel) -> float:
    program = _new(kernel).program
    start = time.process_time()
    COUNTS[name](program)
    return time.process_time() - start


def _ours(program: Any) -> None:
    count_loopy(program.translation_unit, program.statistics, SUBGROUP)


def _three_calls(program: Any) -> None:
    _three_maps(program.translation_unit)


def _preprocessed_once(program: Any) -> None:
    _three_maps(lp.preprocess_program(lp.infer_unknown_types(program.translation_unit)))


def _three_maps(unit: Any) -> None:
    lp.get_op_map(unit, subgroup_size=SUBGROUP, count_redundant_work=True)
    lp.get_mem_access_map(unit, subgroup_size=SUBGROUP, count_redundant_work=True)
    lp.get_synchronization_map(unit, subgroup_size=SUBGROUP)


COUNTS: dict[str, Callable[[Any], None]] = {
    "ours": _ours,
    "Loopy's calls": _three_calls,
    "the same, preprocessed once": _preprocessed_once,
}


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

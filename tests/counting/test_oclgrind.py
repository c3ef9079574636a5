"""Counts against those of oclgrind, a simulator that counts what each work-item executes of the generated OpenCL C."""

from __future__ import annotations

import os
import pickle
import re
import shutil
import subprocess
import sys
from pathlib import Path

import loopy as lp
import pytest

import perfmodel as pm
from tests.counting_kernels import make, tagged

pytestmark = pytest.mark.skipif(shutil.which("oclgrind") is None, reason="the program oclgrind is not installed")

# What oclgrind prints, and the feature that counts the same. It counts barriers, like all else, by work-item. What is
# private is left out: without optimisation every scalar and loop variable lies in private memory. Vectors and structs
# are one load or store there whatever they hold, and accesses that an optimiser merges or unrolls are fewer: hence
# -cl-opt-disable, and scalars only.
FEATURES = {
    "load global": "f_mem_access_global_load",
    "store global": "f_mem_access_global_store",
    "load local": "f_mem_access_local_load",
    "store local": "f_mem_access_local_store",
    "call _Z7barrierj()": "f_sync_barrier_local",
}
OPERATIONS = {
    "call llvm.fmuladd.f32()": "f_op_madd",
    "call llvm.fmuladd.f64()": "f_op_madd",
    "fadd": "f_op_add",
    "fsub": "f_op_add",
    "fmul": "f_op_mul",
    "fdiv": "f_op_div",
}
REALS = ("float32", "float64")
BYTES = {name: feature.replace("access", "bytes") for name, feature in FEATURES.items() if "mem" in feature}

# How often each instruction was executed, and the bytes that it moved.
Instructions = dict[str, tuple[int, int]]

SELECTIONS = (
    "matmul_sq tiled_prefetch:* lsize_0:8 lsize_1:8,16 n:16",
    "matmul_sq dtype:float64 lsize_0:8 lsize_1:16 n:16",
    "matmul_sq tiled_prefetch:* groups_fit:False lsize_0:8 lsize_1:8 n:5,13",
    "matmul_sq tiled_prefetch:True work_removed:True lsize_0:8 lsize_1:16 n:16",
    "global_copy loads:* stride:1,3 lsize_0:64 n:128",
    "global_copy dtype:float64 loads:1 stride:16 lsize_0:64 n:128",
    "throughput op:add,mul,madd,div,sqrt accumulators:8 lsize_0:64 n:64 m:16",
    "throughput dtype:float64 accumulators:1,8 lsize_0:64 n:64 m:16",
    "launch lsize_0:64 groups:2",
)


def triangle() -> pm.Kernel:
    """Returns a kernel of rows of a triangle, one to a work-item: none has as much to do as its neighbour."""
    program = make("{[i, j]: 0 <= i < n and 0 <= j <= i}", "o[i, j] = a[i, j]*2 + a[j, i]", {"a, o": "n, n"})
    return pm.Kernel(lp.split_iname(program, "i", 8, outer_tag="g.0", inner_tag="l.0"), n=21)


def stencil(n: int) -> pm.Kernel:
    """Returns a kernel of 5 points from a tile with its halo in local memory; the last tiles jut out of the grid."""
    program = make(
        "{[i, j]: 0 <= i, j < n}",
        "o[i, j] = u[i, j+1] + u[i+2, j+1] + u[i+1, j] + u[i+1, j+2] - 4*u[i+1, j+1]",
        {"u": "n + 2, n + 2", "o": "n, n"},
        assumptions="n >= 1",
    )
    program = lp.split_iname(program, "i", 8, outer_tag="g.1", inner_tag="l.1")
    program = lp.split_iname(program, "j", 8, outer_tag="g.0", inner_tag="l.0")
    outer = "i_outer,j_outer"
    program = lp.add_prefetch(program, "u", ["i_inner", "j_inner"], fetch_outer_inames=outer, default_tag="l.auto")
    return pm.Kernel(program, n=n)


def row_sums() -> pm.Kernel:
    """Returns a kernel in which each work-group sums a row: every work-item a part of it, the first one the parts,
    which lie in local memory."""
    program = make(
        "{[i, j]: 0 <= i < n and 0 <= j < m}",
        "o[i] = sum(j, a[i, j])",
        {"a": "n, m", "o": "n"},
        sizes=("n", "m"),
        assumptions="n >= 1 and m >= 1 and m mod 16 = 0",
    )
    program = lp.split_iname(program, "j", 16, inner_tag="l.0")
    program = lp.split_reduction_outward(program, "j_inner")
    return pm.Kernel(tagged(program, i="g.0"), n=3, m=48)


def tiles_below() -> pm.Kernel:
    """Returns a kernel whose work-group g goes through g + 1 tiles, with two barriers a tile."""
    program = make(
        "{[g, l, k, j]: 0 <= g < n and 0 <= k <= g and 0 <= l, j < 8}",
        "o[g, l] = sum([k, j], a[k, j] * b[g, l])",
        {"a, b, o": "n, 8"},
        assumptions="n >= 1",
    )
    program = lp.prioritize_loops(tagged(program, g="g.0", l="l.0"), "k,j")
    program = lp.add_prefetch(program, "a", "j", fetch_outer_inames="g,k", default_tag="l.auto")
    return pm.Kernel(program, n=6)


def branch() -> pm.Kernel:
    """Returns a kernel with an affine predicate within a loop."""
    program = make(
        "{[i, k]: 0 <= i < n and 0 <= k < 7}",
        """
        for i, k
            if k < i
                o[i] = o[i] + a[i + k] {dep=*}
            end
        end
        """,
        {"a": "n + 7", "o": "n"},
    )
    return pm.Kernel(lp.split_iname(program, "i", 4, outer_tag="g.0", inner_tag="l.0"), n=10)


def own_kernels() -> list[pm.Kernel]:
    return [triangle(), stencil(16), stencil(13), row_sums(), tiles_below(), branch()]


def simulated(kernels: list[pm.Kernel]) -> list[Instructions]:
    done = subprocess.run(
        ["oclgrind", "--inst-counts", sys.executable, "-m", "tests.oclgrind_runner"],
        input=pickle.dumps([kernel.launch() for kernel in kernels]),
        capture_output=True,
        check=False,
        cwd=Path(__file__).parents[2],
        # oclgrind brings its driver along itself; pyopencl's cache does not know of it.
        env={**{k: v for k, v in os.environ.items() if k != "OCL_ICD_VENDORS"}, "PYOPENCL_NO_CACHE": "1"},
    )
    assert done.returncode == 0, done.stderr.decode()
    _, *blocks = done.stdout.decode().split("Instructions executed for kernel ")
    assert len(blocks) == len(kernels)
    line = re.compile(r"^ +(\d+) - (.*?)(?: \((\d+) bytes\))?$", re.MULTILINE)
    return [{name: (int(times), int(moved or 0)) for times, name, moved in line.findall(block)} for block in blocks]


@pytest.fixture(scope="module")
def runs(collection: pm.KernelCollection) -> list[tuple[pm.Kernel, Instructions]]:
    kernels = [kernel for tags in SELECTIONS for kernel in collection.generate_kernels(tags.split())] + own_kernels()
    return list(zip(kernels, simulated(kernels), strict=True))


def test_accesses_and_barriers_are_what_a_simulator_sees(runs: list[tuple[pm.Kernel, Instructions]]) -> None:
    for kernel, found in runs:
        counted = {name: pm.feature(feature).eval(kernel) for name, feature in FEATURES.items()}
        assert counted == {name: found.get(name, (0, 0))[0] for name in FEATURES}, kernel
        moved = {name: pm.feature(feature).eval(kernel) for name, feature in BYTES.items()}
        assert moved == {name: found.get(name, (0, 0))[1] for name in BYTES}, kernel


def test_operations_are_what_a_simulator_sees(runs: list[tuple[pm.Kernel, Instructions]]) -> None:
    for kernel, found in runs:
        if kernel.tags.get("op") == "exp":  # of -x, and a change of sign, no operation to us, is an fmul there
            continue
        seen = dict.fromkeys(OPERATIONS.values(), 0)
        for instruction, feature in OPERATIONS.items():
            seen[feature] += found.get(instruction, (0, 0))[0]
        # Whole numbers are combined by other instructions, together with those of indices.
        counted = {
            feature: sum(pm.feature(feature.replace("f_op", f"f_op_{dtype}")).eval(kernel) for dtype in REALS)
            for feature in seen
        }
        assert counted == seen, kernel

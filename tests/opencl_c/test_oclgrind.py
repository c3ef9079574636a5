"""Compares what the emulation counts of OpenCL C with oclgrind, which counts the instructions of each work-item."""

from __future__ import annotations

import math
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import perfmodel as pm
from perfmodel.kernels.arguments import Argument as LaunchArgument
from perfmodel.kernels.arguments import Array, LocalArray, Scalar
from perfmodel.kernels.launch import Launch as DeviceLaunch
from perfmodel.opencl_c import lowered_kernel
from perfmodel.opencl_c.emulation import Argument, LocalBytes, Zeros, emulate
from tests.counting.test_oclgrind import Instructions, simulated
from tests.opencl_c.kernel_files import Launch, launches
from tests.opencl_c.tally import Tally, emulated, everything

pytestmark = pytest.mark.skipif(shutil.which("oclgrind") is None, reason="the program oclgrind is not installed")

ACCESSES = {
    "load global": ("global", "load"),
    "load constant": ("global", "load"),
    "store global": ("global", "store"),
    "load local": ("local", "load"),
    "store local": ("local", "store"),
}
"""Spaces that are compared; private memory is left out: without optimisation every variable lies there."""
BARRIER = "call _Z7barrierj()"
OPERATIONS = {
    "call llvm.fmuladd.f32()": "madd",
    "call llvm.fmuladd.f64()": "madd",
    "fadd": "add",
    "fsub": "add",
    "fmul": "mul",
    "fdiv": "div",
}

COMPONENTS = "reads a whole vector from memory where only components of it are used"
LIBRARY = "calls a function of its library for what we take as an access: vload, vstore, and results by pointer"
ATOMIC = "counts atomics as calls"
LEFT_OUT = {
    "by_value-by_value": "passes a struct by value, which the runner cannot",
    "generic-generic_sums": "has no OpenCL C 2.0",
    "generic_pointers-generic_pointers": "has no OpenCL C 2.0",
    "copies-copies": "copies by means of its own",
    "dot_products-dot_products": "has no dot products of whole numbers",
    "sub_groups-sub_groups": "has no sub-groups",
    "sub_groups_of_intel-sub_groups_of_intel": "has no sub-groups",
    "work_group_functions-work_group_functions": "has no collective functions",
    "half_arithmetic-half_arithmetic": "has no arithmetic of halves",
    "atomics-atomics": ATOMIC,
    "atomics_2-atomics_2": "has no OpenCL C 2.0",
    "histogram-histogram": ATOMIC,
    "compound_assignments-compound_assignments": COMPONENTS,
    "compound_literals-compound_literals": "copies structs by its own means",
    "conversions-conversions": COMPONENTS,
    "daxpy-daxpy": COMPONENTS,
    "geometric-geometric": COMPONENTS,
    "half_storage-half_storage": LIBRARY,
    "layouts-layouts": COMPONENTS,
    "long_arithmetic-long_arithmetic": COMPONENTS,
    "nbody-nbody": COMPONENTS,
    "particles-particles": "copies structs by its own means",
    "pointers-pointers": COMPONENTS,
    "results_by_pointer-results_by_pointer": LIBRARY,
    "swizzles-swizzles": COMPONENTS,
    "triples-triples": LIBRARY,
    "wide_vectors-wide_vectors": LIBRARY,
}
"""Reasons why accesses of some launches are not compared: what oclgrind does of them, or cannot do."""
VECTORS = "is of vectors, of which oclgrind counts one instruction"
OTHER_OPERATIONS = {
    "black_scholes-black_scholes": "is in a branch of ?:, of which we count both as they are cheap",
    "fft-fft": VECTORS,
    "mathematics-mathematics": VECTORS,
    "matmul_tiled-matmul": "is mad(), a call to oclgrind",
    "template_kernels-axpy_float4": "is mad(), a call to oclgrind",
    "widened-widened": VECTORS,
}
"""Arithmetic of launches that is not compared."""
FROM_PRIVATE_TABLES = {"strings-strings": 12}
"""Loads of a byte each from private arrays of constants, which oclgrind has in private memory and we in constant
memory: those of the work-items 20 to 31 from `word`.
"""
COMPARED = [launch for launch in launches() if str(launch) not in LEFT_OUT]

SELECTIONS = (
    "matmul_sq tiled_prefetch:* groups_fit:False lsize_0:8 lsize_1:8 n:13",
    "matmul_tiled dtype:float32 lsizes:4x6 tile_rows:2 tile_cols:4 n:96",
    "finite_difference fetch:* groups_fit:False dtype:float32 lsizes:8x8 n:15",
    "transpose dtype:float32 groups_fit:False lsizes:8x4 n:21",
    "column_sum dtype:float32 groups_fit:False lsize_0:15 n:50 m:33",
    "matvec dtype:float64 groups_fit:True lsize_0:16 n:48",
    "reduction groups_fit:False lsize_0:16 n:200",
    "barrier lsize_0:64 n:64 m:8",
)


def device_launch(launch: Launch) -> DeviceLaunch:
    arguments: list[LaunchArgument] = []
    for given in launch.arguments:
        if "array" in given:
            arguments.append(Array(given["name"], given["array"], given["size"], given.get("output", False)))
        elif "scalar" in given:
            arguments.append(Scalar(given["name"], given["scalar"], given["value"]))
        else:
            arguments.append(LocalArray(given["name"], given["local_bytes"]))
    options = (*launch.options, *(f"-I{folder}" for folder in launch.folders))
    return DeviceLaunch(
        source=launch.source,
        kernel_name=launch.kernel,
        global_size=launch.global_size,
        local_size=launch.local_size,
        arguments=tuple(arguments),
        options=options,
    )


def ours(launch: DeviceLaunch) -> Tally:
    """Returns the tally of the same launch emulated, with ones in all arrays as the runner of oclgrind has them."""
    kernel = lowered_kernel(launch.source, launch.kernel_name, launch.options)
    arguments: dict[str, Argument] = {}
    for given in launch.arguments:
        match given:
            case Array():
                arguments[given.name] = np.ones(max(given.size, 1), given.dtype)
            case Scalar():
                arguments[given.name] = given.number
            case LocalArray():
                arguments[given.name] = LocalBytes(given.size)
    return emulated(kernel, everything(kernel, launch.global_size, launch.local_size, arguments))


def accesses_of(found: Instructions) -> dict[tuple[str, ...], int]:
    seen: dict[tuple[str, ...], int] = {}
    for instruction, key in ACCESSES.items():
        times, moved = found.get(instruction, (0, 0))
        for what, number in (("work-items", times), ("bytes", moved)):
            seen[what, *key] = seen.get((what, *key), 0) + number
    return {key: number for key, number in seen.items() if number}


def accesses_in(tally: Tally) -> dict[tuple[str, ...], int]:
    return {
        key: n for key, n in tally.items() if key[0] in ("work-items", "bytes") and key[1] not in ("private", "scratch")
    }


def operations_of(found: Instructions) -> dict[str, int]:
    seen: dict[str, int] = {}
    for instruction, kind in OPERATIONS.items():
        seen[kind] = seen.get(kind, 0) + found.get(instruction, (0, 0))[0]
    return {kind: number for kind, number in seen.items() if number}


def operations_in(tally: Tally) -> dict[str, int]:
    seen: dict[str, int] = {}
    for key, number in tally.items():
        if key[0] == "operations" and key[1] in OPERATIONS.values() and key[2] in ("float32", "float64"):
            seen[key[1]] = seen.get(key[1], 0) + number
    return seen


class _Given:
    """A launch as `simulated` takes it."""

    def __init__(self, launch: DeviceLaunch) -> None:
        self._launch = launch

    def launch(self) -> DeviceLaunch:
        return self._launch


Run = tuple[str, DeviceLaunch, Instructions]


@pytest.fixture(scope="module")
def runs(collection: pm.KernelCollection) -> list[Run]:
    """Returns runs of test kernels and of families in their OpenCL C form."""
    given = [(str(launch), device_launch(launch)) for launch in COMPARED]
    for tags in SELECTIONS:
        given += [(repr(kernel), kernel.as_opencl().launch()) for kernel in collection.generate_kernels(tags.split())]
    found = simulated([_Given(launch) for _, launch in given])  # type: ignore[misc]
    return [(name, launch, seen) for (name, launch), seen in zip(given, found, strict=True)]


def test_enough_kernels_are_compared() -> None:
    assert len(COMPARED) >= 25
    assert {str(launch) for launch in launches()} >= LEFT_OUT.keys() | OTHER_OPERATIONS.keys()


def test_loads_stores_and_barriers_are_those_that_a_simulator_sees(runs: list[Run]) -> None:
    for name, launch, seen in runs:
        tally = ours(launch)
        for what in ("work-items", "bytes"):
            tally[what, "global", "load"] -= FROM_PRIVATE_TABLES.get(name, 0)
        assert accesses_in(+tally) == accesses_of(seen), name
        # It counts barriers, as all else, by work-item.
        assert tally["barriers",] * math.prod(launch.local_size) == seen.get(BARRIER, (0, 0))[0], name


def test_float_arithmetic_is_what_a_simulator_sees(runs: list[Run]) -> None:
    compared = [run for run in runs if run[0] not in OTHER_OPERATIONS]
    assert sum(bool(operations_of(seen)) for _, _, seen in compared) >= 15
    for name, launch, seen in compared:
        assert operations_in(ours(launch)) == operations_of(seen), name


# --- races

RACY = {
    "neighbours": "a[i / 2] = i;",
    "one place": "a[0] = i;",
    "missing barrier": "s[l] = i; a[i] = s[7 - l];",
    "barrier too late": "s[l] = i; a[i] = s[(l + 1) % 8]; barrier(CLK_LOCAL_MEM_FENCE);",
    "loop without second barrier": "for (int k = 0; k < 3; k++) { s[l] = k; barrier(1); a[i] = s[7 - l] + i; }",
}
CLEAN = {
    "own places": "a[i] = i;",
    "barrier between": "s[l] = i; barrier(CLK_LOCAL_MEM_FENCE); a[i] = s[7 - l];",
    "loop with both barriers": "for (int k = 0; k < 3; k++) { s[l] = k; barrier(1); a[i] = s[7 - l]; barrier(1); }",
    "atomics": "atomic_add(&a[0], i);",
    "one writer": "if (l == 0) s[0] = i; barrier(CLK_LOCAL_MEM_FENCE); a[i] = s[0];",
}


def racing(body: str) -> str:
    return f"""__kernel void k(__global int *a) {{
  __local int s[8];
  int i = get_global_id(0), l = get_local_id(0);
  {body}
}}"""


@pytest.mark.parametrize("name", [*RACY, *CLEAN])
def test_races_are_those_that_a_simulator_finds(name: str, tmp_path: Path) -> None:
    source = racing({**RACY, **CLEAN}[name])
    (tmp_path / "k.cl").write_text(source)
    (tmp_path / "k.sim").write_text("k.cl\nk\n16 1 1\n8 1 1\n<size=64 fill=0 int>\n")
    done = subprocess.run(
        ["oclgrind-kernel", "--data-races", "--build-options", "-cl-opt-disable", "k.sim"],
        capture_output=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    theirs = b"data race" in done.stdout + done.stderr
    run = emulate(lowered_kernel(source, "k"), 16, 8, {"a": Zeros(16)}, groups="all")
    assert theirs == (name in RACY)
    assert ("race" in {finding.kind for finding in run.findings}) == theirs

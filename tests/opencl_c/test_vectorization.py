"""A processor's compiler sees some neighbours and no functions of vectors, as Intel's says of the same kernels."""

from __future__ import annotations

import re

import numpy as np
import pytest

import perfmodel as pm
from perfmodel.device import Device

WIDE = "size_t x = get_global_id(0), y = get_global_id(1);"
SIGNED = "int x = get_global_id(0), y = get_global_id(1);"
UNSIGNED = "uint x = get_global_id(0), y = get_global_id(1);"
WINDOW = (
    "float s = 0; for (int v = -1; v <= 1; ++v) for (int u = -1; u <= 1; ++u) s += a[(y + v) * n + x + u]; "
    "b[y * n + x] = s;"
)
COLUMN = "float s = 0; for (int k = 0; k < n; ++k) s += a[k * n + x]; b[y * n + x] = s;"
GATHERED = {
    "wide": (WIDE, "b[x] = a[x];", False),
    "wide, further on": (WIDE, "b[x] = a[x + 1];", False),
    "wide, in a plane": (WIDE, "b[y * n + x] = a[y * n + x];", False),
    "wide, in a loop": (WIDE, COLUMN, False),
    "a place by itself": (SIGNED, "b[x] = a[x];", True),
    "a place and a number": (SIGNED, "b[x] = a[x + 1];", True),
    "a place and what is no number": (SIGNED, "b[n + x] = a[n + x];", False),
    "a place and a row": (SIGNED, "b[y * n + x] = a[y * n + x];", False),
    "a place and a row, behind a guard": (SIGNED, "if (x < n && y < n) b[y * n + x] = a[y * n + x];", False),
    "a place and a row in a loop": (SIGNED, COLUMN, True),
    "a place and a row in loops that are written out": (SIGNED, WINDOW, False),
    "the same where a test says that it is no less than a number": (SIGNED, f"if (x < 1) return; {WINDOW}", True),
    "the same where a test says that it is no more": (SIGNED, f"if (x >= n - 1) return; {WINDOW}", False),
    "unsigned": (UNSIGNED, "b[x] = a[x];", True),
    "unsigned, in a plane": (UNSIGNED, "b[y * n + x] = a[y * n + x];", True),
    "what is kept within bounds": (SIGNED, "b[y * n + x] = a[y * n + clamp(x + 1, 0, n - 1)];", True),
    "a place or a border, by tests": (
        SIGNED,
        "int k = x + 1; if (k < 0) k = 0; if (k > n - 1) k = n - 1; b[y * n + x] = a[y * n + k];",
        True,
    ),
    "a counter that starts at a place": (SIGNED, "for (int k = x; k < n; k += 64) b[k] = a[k];", False),
    "data": (WIDE, "b[x] = a[(int)b[x]];", True),
}
LOCAL = {
    "signed": ("int l", "b[x] = t[l];", False),
    "signed, and what is no number": ("int l", "b[x] = t[l + n];", False),
    "wide": ("size_t l", "b[x] = t[l];", False),
    "unsigned": ("uint l", "b[x] = t[l];", True),
    "unsigned, and what is no number": ("uint l", "b[x] = t[l + n];", True),
    "less a number that a test asks for": (
        "int l",
        "int d = n / 16; float v = l >= d ? t[l - d] : 0.0f; b[x] = v;",
        True,
    ),
    "less a number that no test asks for": ("int l", "b[x] = t[l - n];", False),
}
FUNCTIONS = {
    "sums of vectors": ("c[x] = c[x] * 0.5f + 1.0f;", True),
    "a product": ("b[x] = dot(c[x], c[x]);", False),
    "a function by number": ("c[x] = fmin(c[x] * 0.5f, 1.0f);", False),
    "a vector from anywhere": ("vstore4(vload4(x, a), x, b);", False),
    "a function of one number": ("b[x] = exp(a[x]);", True),
}


def kernel(body: str) -> pm.Kernel:
    arrays = {"a": 2**14, "b": 2**14, "c": 2**14}
    return pm.Kernel.from_opencl(source(body), "f", (64, 64), (16, 4), arrays).at(n=64)


def source(body: str) -> str:
    return (
        "__kernel void f(__global const float *a, __global float *b, __global float4 *c, const int n)\n{\n    "
        f"{body}\n}}\n"
    )


def log_of(body: str, cpu: Device) -> str:
    """Returns what Intel's compiler says of a kernel."""
    from perfmodel.device.drivers import opencl

    cl, raw = opencl(), cpu.session().raw
    program = cl.Program(cl.Context([raw]), source(body)).build()
    return str(program.get_build_info(raw, cl.program_build_info.LOG))


@pytest.fixture
def intel(cpu: Device) -> Device:
    if "vectorized" not in log_of("b[get_global_id(0)] = 1;", cpu) or "Intel" not in cpu.platform:
        pytest.skip("the driver says nothing of vectors")
    return cpu


@pytest.mark.parametrize("case", GATHERED)
def test_loads_are_gathered_where_neighbours_are_not_seen(case: str) -> None:
    start, body, is_gathered = GATHERED[case]
    found = kernel(f"{start} {body}")
    if case == "data":
        found = found.as_countable({})
    loaded = {kind: pm.feature(f"f_mem_lanes_global_load_{kind}_width:16").eval(found) for kind in ("unit", "gathered")}
    assert (loaded["gathered"] > 0) == is_gathered
    assert (loaded["unit"] > 0) == (not is_gathered or case == "data")


ROW = "int r = (int)b[y]; if (r < 0) return; b[r * n + x] = a[r * n + x];"


def test_neighbours_along_a_row_that_data_name_are_seen_where_groups_were_looked_at() -> None:
    found = kernel(f"{SIGNED} {ROW}")
    rows = np.random.default_rng(1).integers(0, 64, 2**14).astype(np.float32)
    looked_at = found.as_countable({"b": rows})
    unit, gathered = (f"f_mem_lanes_global_load_{kind}_width:16" for kind in ("unit", "gathered"))
    assert pm.feature(unit).eval(looked_at) == 64 * 64 / 16
    assert pm.feature(gathered).eval(looked_at) == 0
    assert pm.feature(gathered).eval(found) == 64 * 64 / 16  # nobody looked


@pytest.mark.filterwarnings("ignore:Non-empty compiler output")
def test_the_driver_sees_neighbours_along_a_row_that_data_name(intel: Device) -> None:
    assert re.search(r"Kernel was \d+-way vectorized\s*$", log_of(f"{SIGNED} {ROW}", intel), re.MULTILINE)


@pytest.mark.filterwarnings("ignore:Non-empty compiler output")
@pytest.mark.parametrize("case", GATHERED)
def test_the_driver_gathers_the_same_loads(case: str, intel: Device) -> None:
    start, body, is_gathered = GATHERED[case]
    said = re.search(r"Kernel was \d+-way vectorized(?:(\d+) gathers)?", log_of(f"{start} {body}", intel))
    assert said
    assert (said[1] is not None) == is_gathered


def through_local_memory(case: str) -> str:
    place, body, _ = LOCAL[case]
    return (
        f"__local float t[256]; size_t x = get_global_id(0); {place} = get_local_id(0); t[l] = a[x]; "
        f"barrier(CLK_LOCAL_MEM_FENCE); {body}"
    )


@pytest.mark.parametrize("case", LOCAL)
def test_loads_from_local_memory_are_gathered_where_neighbours_are_not_seen(case: str) -> None:
    found = kernel(through_local_memory(case))
    loaded = {kind: pm.feature(f"f_mem_lanes_local_load_{kind}_width:16").eval(found) for kind in ("unit", "gathered")}
    assert (loaded["gathered"] > 0) == LOCAL[case][2]
    assert (loaded["unit"] > 0) == (not LOCAL[case][2])


@pytest.mark.filterwarnings("ignore:Non-empty compiler output")
@pytest.mark.parametrize("case", LOCAL)
def test_the_driver_gathers_the_same_loads_from_local_memory(case: str, intel: Device) -> None:
    said = re.search(r"Kernel was \d+-way vectorized(?:(\d+) gathers)?", log_of(through_local_memory(case), intel))
    assert said
    assert (said[1] is not None) == LOCAL[case][2]


@pytest.mark.parametrize("case", FUNCTIONS)
def test_kernels_that_call_functions_of_vectors_have_no_lanes(case: str) -> None:
    body, has_lanes = FUNCTIONS[case]
    found = kernel(f"{WIDE} {body}")
    vectors = pm.feature("f_vector_steps_width:16").eval(found)
    left_over = pm.feature("f_vector_steps_left_width:16").eval(found)
    assert (vectors, left_over) == (256, 0) if has_lanes else vectors == 0 and 0 < left_over <= 4096


@pytest.mark.filterwarnings("ignore:Non-empty compiler output")
@pytest.mark.parametrize("case", FUNCTIONS)
def test_the_driver_makes_vectors_of_the_same_kernels(case: str, intel: Device) -> None:
    body, has_lanes = FUNCTIONS[case]
    assert ('Kernel "f" was not vectorized' in log_of(f"{WIDE} {body}", intel)) != has_lanes


@pytest.mark.parametrize(("kind", "words"), [("uchar", {"narrow"}), ("float", {"gathered"}), ("double", {"gathered"})])
def test_narrow_numbers_that_lie_apart_count_by_themselves(kind: str, words: set[str]) -> None:
    text = f"__kernel void f(__global const {kind} *a, __global int *b) {{ {WIDE} b[x] = a[7 * x]; }}"
    found = pm.Kernel.from_opencl(text, "f", 256, 64, {"a": 2048, "b": 256})
    counted = {
        word: pm.feature(f"f_mem_lanes_global_load_{word}_width:16").eval(found)
        for word in ("uniform", "unit", "gathered", "narrow")
    }
    assert {word for word, number in counted.items() if number} == words
    assert sum(counted.values()) == 256 / 16

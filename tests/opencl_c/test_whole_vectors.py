"""Vectors in memory are loaded as a whole, be it for one number, and those of three are stored by two and one.

So does NVIDIA's OpenCL, as its PTX says (driver 580.159.04).
"""

from __future__ import annotations

import numpy as np
import pytest

import perfmodel as pm
from tests.opencl_c.test_machine_code import check

ITEMS = 64


def kernel_of(type_: str, width: int, body: str) -> pm.Kernel:
    source = f"__kernel void k(__global {type_}{width} *a, __global float *y) {{ int i = get_global_id(0); {body} }}"
    return pm.Kernel.from_opencl(source, "k", ITEMS, ITEMS, {"a": 2 * ITEMS, "y": ITEMS})


@pytest.mark.parametrize(
    ("type_", "width", "body", "loads", "n_bytes"),
    [
        ("float", 4, "y[i] = a[i].x;", 1, 16),
        ("float", 4, "y[i] = a[i].y + a[i].z;", 1, 16),
        ("float", 4, "float4 v = a[i]; y[i] = v.x + v.z;", 1, 16),
        ("float", 2, "y[i] = a[i].y;", 1, 8),
        ("double", 2, "y[i] = a[i].x;", 1, 16),
        ("short", 4, "y[i] = a[i].w;", 1, 8),
        ("float", 8, "y[i] = a[i].s6;", 1, 16),
        ("float", 4, "__local float4 t[64]; t[i] = a[i]; barrier(1); y[i] = t[63 - i].z;", 1, 16),
        ("float", 4, "float s = 0; for (int k = 0; k < 8; k++) if (a[i + k].x > 0) s += a[i + k].y; y[i] = s;", 8, 16),
    ],
)
def test_a_number_of_a_vector_brings_the_vector(type_: str, width: int, body: str, loads: int, n_bytes: int) -> None:
    counted = kernel_of(type_, width, body).as_machine_code()
    assert float(pm.feature("f_mem_access_global_load").eval(counted)) == loads * ITEMS
    assert float(pm.feature("f_mem_bytes_global_load").eval(counted)) == loads * n_bytes * ITEMS


@pytest.mark.parametrize(("type_", "stores", "n_bytes"), [("float", 2, 12), ("int", 2, 12), ("short", 2, 6)])
def test_a_vector_of_three_is_stored_without_what_lies_behind_it(type_: str, stores: int, n_bytes: int) -> None:
    counted = kernel_of(type_, 3, f"a[i] = a[i + ITEMS] * ({type_})2;".replace("ITEMS", str(ITEMS))).as_machine_code()
    assert float(pm.feature("f_mem_access_global_load").eval(counted)) == ITEMS
    assert float(pm.feature("f_mem_access_global_store").eval(counted)) == stores * ITEMS
    assert float(pm.feature("f_mem_bytes_global_store").eval(counted)) == n_bytes * ITEMS


@pytest.mark.parametrize(
    ("width", "body"),
    [
        (4, "y[i] = a[i].y;"),
        (4, "float4 v = a[i + 3]; a[i].z = v.x; y[i] = a[i].z + v.w;"),
        (3, "float3 v = a[i]; a[i] = v.zxy; y[i] = v.z;"),
    ],
)
def test_they_hold_the_same_numbers(width: int, body: str) -> None:
    numbers = np.random.default_rng(3).random(8 * ITEMS).astype(np.float32)
    check(kernel_of("float", width, body), {"a": numbers, "y": np.zeros(ITEMS, np.float32)})

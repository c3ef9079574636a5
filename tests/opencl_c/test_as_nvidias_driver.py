"""OpenCL C is printed so that a compiler of CUDA C++ copies loops and shares loads as NVIDIA's OpenCL does it.

What is expected was read in its PTX (driver 580.159.04).
"""

from __future__ import annotations

import pytest

import perfmodel as pm
from perfmodel.kernels.machine_code import MachineCode

pytest.importorskip("nvidia.cuda_nvrtc", reason="needs the extra nvidia")

ITEMS = 64


def ptx_of(body: str, m: int = 16) -> str:
    source = f"__kernel void k(__global float *a, __global float *y, int m) {{ int i = get_global_id(0); {body} }}"
    kernel = pm.Kernel.from_opencl(source, "k", ITEMS, ITEMS, {"a": 64 * ITEMS, "y": ITEMS}, m=m)
    form = kernel.as_machine_code().program
    assert isinstance(form, MachineCode)
    made = form.made_at(kernel.bound)
    assert made is not None
    return made.text


@pytest.mark.parametrize(
    ("start", "end", "copies"),
    [("0", "16", 16), ("0", "m", 1), ("i", "16", 1), ("0", "(int)a[0]", 1)],
)
def test_a_loop_is_written_out_as_asked_where_the_number_of_its_iterations_is_known(
    start: str, end: str, copies: int
) -> None:
    loop = f"for (int k = {start}; k < {end}; k++) s = s * 0.5f + a[64 * k + i];"
    text = ptx_of(f"float s = 0;\n#pragma unroll\n{loop} y[i] = s;")
    assert text.count("ld.global") == copies + ("a[0]" in end)


@pytest.mark.parametrize("place", ["(int)x", "(uint)x", "convert_int(x)", "convert_int_rtz(x)", "(int)(x + 0.5f)"])
def test_iterations_share_what_is_at_a_place_that_was_a_float(place: str) -> None:
    body = f"float x = y[i], s = 0;\n#pragma unroll\nfor (int k = 0; k < 4; k++) s += a[{place}] * k; y[i] = s;"
    assert ptx_of(body).count("ld.global") == 2

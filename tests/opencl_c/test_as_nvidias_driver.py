"""OpenCL C is printed so that a compiler of CUDA C++ copies loops and shares loads as NVIDIA's OpenCL does it.

What is expected was read in its PTX (driver 580.159.04).
"""

from __future__ import annotations

import numpy as np
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


COPY = """
__constant sampler_t at = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP_TO_EDGE | CLK_FILTER_NEAREST;

__kernel void sums(read_only image2d_t image, write_only image2d_t sums)
{
    const int y = get_global_id(0);
    float sum = 0;
    for (int x = 0; x < 64; x++) {
        sum += read_imagef(image, at, (int2)(x, y)).x;
        write_imagef(sums, (int2)(x, y), (float4)(sum, 0.5f, 0.25f, 2.0f));
    }
}"""


@pytest.mark.parametrize("order", ["r", "rg", "rgba"])
def test_each_write_follows_the_order_of_the_channels_and_reads_wait_for_it(order: str) -> None:
    pixels = np.random.default_rng(3).random((ITEMS, 64, len(order)), np.float32)
    images = dict.fromkeys(("image", "sums"), f"image:{order}:float32:64:{ITEMS}")
    kernel = pm.Kernel.from_opencl(COPY, "sums", ITEMS, 32, images).as_machine_code()
    run = pm.emulate(kernel, {"image": pixels, "sums": np.zeros_like(pixels)}, groups="all")
    sums = np.add.accumulate(pixels[:, :, 0], axis=1, dtype=np.float32)
    wanted = [np.full_like(sums, each) for each in (0.5, 0.25, 2.0)]
    np.testing.assert_array_equal(run.array("sums"), np.dstack([sums, *wanted])[:, :, : len(order)].squeeze())
    assert pm.feature("f_mem_waits_global_granularity:longest").eval(kernel) / ITEMS >= 64

"""Loops of OpenCL C are copied as NVIDIA's OpenCL copies them: what a wait is shared by shows it."""

import pytest

import perfmodel as pm
from perfmodel.sass.toolchain import is_installed

ITEMS = 4096


@pytest.mark.parametrize(
    ("loop", "waits"),
    [
        ("for (int j = 0; j < m; j++) s += x[get_global_id(0) * m + j];", 1000 / 4),
        ("for (int j = 0; j < m; j++) s += x[get_group_id(0) * m + j];", 1000 / 16),
        ("for (int j = 0; j < m; j++) s += x[i * m + j];", 1000 / 16),
        ("for (int j = 0; j <= (int)get_global_id(0); j++) s += x[j];", ITEMS / 4),
        ("for (int j = 0; j <= i; j++) s += x[j];", ITEMS / 16),
        ("int last = i % 2 + m;\nfor (int j = 0; j <= last; j++) s += x[i * 1024 + j];", 1000 / 16),
        ("int last = i % 2 + m;\n#pragma unroll 1\nfor (int j = 0; j <= last; j++) s += x[i * 1024 + j];", 1000),
    ],
)
def test_loops_that_ask_for_the_item_are_copied_by_the_assembler_alone(loop: str, waits: float) -> None:
    """So does NVIDIA's OpenCL (driver 580.159.04), which makes four copies of the others first, of which the assembler
    makes four again; none where the source asks for it."""
    if not is_installed():
        pytest.skip("NVIDIA's assembler and disassembler are not installed")
    source = f"""__kernel void k(__global const float *x, __global float *y, int m) {{
        int i = get_global_id(0);
        float s = 0;
        {loop}
        y[i] = s;
    }}"""
    kernel = pm.Kernel.from_opencl(source, "k", ITEMS, 64, {"x": ITEMS * 1024, "y": ITEMS}, m=1000)
    found = pm.feature("f_mem_waits_global_granularity:longest").eval(kernel.as_machine_code())
    assert float(found) / ITEMS == pytest.approx(waits, rel=0.05)

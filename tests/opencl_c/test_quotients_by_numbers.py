"""Quotients of floats by numbers are products with their reciprocals, where OpenCL lets them be off a little."""

from __future__ import annotations

import pytest

import perfmodel as pm

N = 256
SOURCE = "__kernel void k(__global float *a, __global float *b) {{ int i = get_global_id(0); a[i] = {}; }}"
QUOTIENTS = {  # and what NVIDIA's assembler makes of them: MUFU.RCP or FMUL
    "a[i] / 255.0f": "mul",
    "a[i] / -3.0f": "mul",
    "a[i] / 255": "mul",
    "a[i] / 2.0f": "mul",
    "a[i] / b[i]": "div",
    "255.0f / a[i]": "div",
    "a[i] / 1e-40f": "div",
    "a[i] / 3e38f": "div",
}


@pytest.mark.parametrize(("quotient", "kind"), QUOTIENTS.items())
@pytest.mark.parametrize("form", ["as_compiled", "as_machine_code"])
def test_quotients_by_numbers_are_products(quotient: str, kind: str, form: str) -> None:
    if form == "as_machine_code":
        pytest.importorskip("nvidia.cuda_nvrtc", reason="needs the extra nvidia")
    kernel = getattr(pm.Kernel.from_opencl(SOURCE.format(quotient), "k", N, 64, {"a": N, "b": N}), form)()
    assert pm.feature(f"f_op_float32_{kind}").eval(kernel) == N
    assert pm.feature("f_op_float32").eval(kernel) == N


def test_quotients_that_round_as_ieee_says_and_doubles_are_divided() -> None:
    exact = "-cl-fp32-correctly-rounded-divide-sqrt"
    plain = SOURCE.format("a[i] / 255.0f")
    kernel = pm.Kernel.from_opencl(plain, "k", N, 64, {"a": N, "b": N}, options=[exact])
    assert pm.feature("f_op_float32_div").eval(kernel.as_compiled()) == N
    source = SOURCE.format("a[i] / 255.0").replace("float", "double")
    doubles = pm.Kernel.from_opencl(source, "k", N, 64, {"a": N, "b": N})
    assert pm.feature("f_op_float64_div").eval(doubles.as_compiled()) == N

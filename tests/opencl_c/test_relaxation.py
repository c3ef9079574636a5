"""Functions count as what compilers make of them: precise ones, native ones, and those of relaxed build options."""

from __future__ import annotations

import numpy as np
import pytest

import perfmodel as pm

N = 64
KINDS = ("native", "mul", "div", "exp", "log", "sin", "sqrt", "rsqrt", "pow", "tanh")
RELAXED = ("-cl-fast-relaxed-math",)
# What NVIDIA's compiler writes into PTX for each, as instructions of the special-function units and products.
CASES = [
    ("exp(x)", (), {"exp": 1}),
    ("native_exp(x)", (), {"native": 1, "mul": 1}),
    ("half_exp(x)", (), {"exp": 1}),
    ("exp(x)", RELAXED, {"native": 1, "mul": 1}),
    ("half_exp(x)", RELAXED, {"native": 1, "mul": 1}),
    ("exp(x)", ("-cl-unsafe-math-optimizations",), {"native": 1, "mul": 1}),
    ("exp(x)", ("-cl-mad-enable", "-cl-finite-math-only"), {"exp": 1}),
    ("log2(x)", RELAXED, {"native": 1}),
    ("sin(x)", RELAXED, {"native": 1}),
    ("native_powr(x, 0.3f)", (), {"native": 2, "mul": 1}),
    ("native_tan(x)", (), {"native": 2, "div": 1}),
    ("powr(x, 0.3f)", (), {"log": 1, "exp": 1, "mul": 1}),
    ("pow(x, 0.3f)", RELAXED, {"pow": 1}),
    ("tanh(x)", RELAXED, {"tanh": 1}),
    ("native_sqrt(x)", (), {"sqrt": 1}),
    ("native_divide(x, 3.0f)", (), {"div": 1}),
    ("pown(x, 2)", (), {"mul": 1}),
    ("pown(x, 3)", (), {"mul": 2}),
    ("pown(x, 5)", (), {"pow": 2}),
    ("x / 3.0f", (), {"mul": 1}),
    ("x / 3.0f", RELAXED, {"mul": 1}),
    ("3.0f / x", RELAXED, {"div": 1}),
]


def kernel(expression: str, options: tuple[str, ...], real: str = "float") -> pm.Kernel:
    source = (
        f"__kernel void f(__global {real} *a) {{ {real} x = a[get_global_id(0)]; a[get_global_id(0)] = {expression}; }}"
    )
    return pm.Kernel.from_opencl(source, "f", N, N, {"a": N}, options=options)


def counted(of: pm.Kernel, dtype: str = "float32") -> dict[str, float]:
    found = {kind: pm.feature(f"f_op_{dtype}_{kind}").eval(of.as_compiled()) / N for kind in KINDS}
    return {kind: number for kind, number in found.items() if number}


@pytest.mark.parametrize(("expression", "options", "expected"), CASES)
def test_functions_count_as_what_compilers_make_of_them(
    expression: str, options: tuple[str, ...], expected: dict[str, int]
) -> None:
    assert counted(kernel(expression, options)) == expected


def test_options_change_nothing_of_double_precision() -> None:
    assert counted(kernel("exp(x)", RELAXED, "double"), "float64") == {"exp": 1}


def test_vectors_take_one_for_each_component() -> None:
    source = "__kernel void f(__global float4 *a) { a[get_global_id(0)] = native_exp2(a[get_global_id(0)]); }"
    of = pm.Kernel.from_opencl(source, "f", N, N, {"a": N})
    assert counted(of) == {"native": 4}


def test_lengths_lose_what_keeps_them_from_overflowing() -> None:
    expression = "length((float4)(x, 2 * x, 3 * x, 4 * x))"
    assert counted(kernel(expression, ())).get("div", 0) > 0
    assert counted(kernel(expression, RELAXED)) == counted(kernel(expression.replace("length", "fast_length"), ()))


def test_results_stay_what_they_are() -> None:
    x = np.linspace(0.5, 1.5, N, dtype=np.float32)
    run = pm.emulate(kernel("exp(x) + half_sin(x)", RELAXED), {"a": x}).emulation
    np.testing.assert_allclose(run.array("a"), np.exp(x) + np.sin(x), rtol=1e-6)

"""Functions of CUDA's mathematical library, which a compiler writes as their instructions, give what scipy gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import special

from perfmodel import Kernel, emulate, feature

pytest.importorskip("nvidia.cuda_nvrtc", reason="the compiler of the extra nvidia is not installed")

FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{
        name: getattr(np, name) for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "exp", "exp2", "expm1", "log")
    },
    **{
        name: getattr(np, name) for name in ("log2", "log10", "log1p", "sqrt", "cbrt", "floor", "ceil", "rint", "trunc")
    },
    "fabs": np.abs,
    "asinh": np.arcsinh,
    "atan": np.arctan,
    "erf": special.erf,
    "erfc": special.erfc,
    "tgamma": special.gamma,
    "lgamma": special.gammaln,
    "rsqrt": lambda x: x**-0.5,
    "j0": special.j0,
    "exp10": lambda x: 10.0**x,
    "sinpi": lambda x: np.sin(np.pi * x),
    "normcdf": special.ndtr,
    "acosh": lambda x: np.arccosh(x),
    "round": lambda x: np.floor(x + 0.5),
}
OF_TWO: dict[str, Callable[..., Any]] = {
    "pow": np.power,
    "atan2": np.arctan2,
    "fmod": np.fmod,
    "hypot": np.hypot,
    "fmax": np.fmax,
    "fmin": np.fmin,
    "copysign": np.copysign,
    "fdim": lambda x, y: np.maximum(x - y, 0),
    "remainder": lambda x, y: x - y * np.rint(x / y),
}
SOURCE = """
__global__ void f(const {type} *x, const {type} *y, {type} *z) {{
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  z[i] = {call};
}}
"""
COUNT = 256


def values(type_: str, call: str) -> tuple[Any, Any, Any]:
    """Returns two arrays, and what a kernel makes of them."""
    random = np.random.default_rng(7)
    dtype = "float32" if type_ == "float" else "float64"
    x, y = (random.uniform(1.01, 3.0, COUNT).astype(dtype) for _ in range(2))
    kernel = Kernel.from_cuda(SOURCE.format(type=type_, call=call), "f", 2, 128, dict.fromkeys("xyz", COUNT))
    return x, y, emulate(kernel, {"x": x, "y": y, "z": np.zeros(COUNT, dtype)}, groups="all").array("z")


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("type_", ["float", "double"])
def test_function_of_one(name: str, type_: str) -> None:
    x, _, found = values(type_, f"{name}{'f' if type_ == 'float' else ''}(x[i])")
    tolerance = 4e-6 if type_ == "float" else 1e-13
    np.testing.assert_allclose(found, FUNCTIONS[name](x.astype("float64")), tolerance, tolerance)


@pytest.mark.parametrize("name", OF_TWO)
@pytest.mark.parametrize("type_", ["float", "double"])
def test_function_of_two(name: str, type_: str) -> None:
    x, y, found = values(type_, f"{name}{'f' if type_ == 'float' else ''}(x[i], y[i])")
    tolerance = 4e-6 if type_ == "float" else 1e-13
    np.testing.assert_allclose(found, OF_TWO[name](x.astype("float64"), y.astype("float64")), tolerance, tolerance)


def test_large_and_special_arguments() -> None:
    x, _, found = values(
        "float", "sinf(x[i] * 1e7f) + expf(-x[i] * 40.0f) + logf(x[i] * 1e-30f) + 1.0f / (x[i] - x[i])"
    )
    assert np.isinf(found).all()
    x, _, found = values("float", "sinf(x[i] * 1e7f) + expf(-x[i] * 40.0f) + logf(x[i] * 1e-30f)")
    large = (x * np.float32(1e7)).astype("float64")
    np.testing.assert_allclose(found, np.sin(large) + np.log(x.astype("float64") * np.float32(1e-30)), 1e-5)


@pytest.mark.parametrize(
    ("call", "native"), [("__sinf(x[i])", 1), ("__log2f(x[i])", 1), ("__expf(x[i])", 1), ("__powf(x[i], 3.5f)", 2)]
)
def test_functions_of_one_instruction_are_native(call: str, native: int) -> None:
    source = f"__global__ void f(const float *x, float *z) {{ int i = threadIdx.x; z[i] = {call}; }}"
    kernel = Kernel.from_cuda(source, "f", 1, 32, {"x": 32, "z": 32})
    assert feature("f_op_float32_native").eval(kernel) == 32 * native


def test_tables_in_constant_memory_have_a_tag() -> None:
    source = """__constant__ float table[64];
    __global__ void f(const float *x, float *z) { int i = threadIdx.x; z[i] = x[i] * table[i & 15]; }"""
    kernel = Kernel.from_cuda(source, "f", 1, 32, {"x": 32, "z": 32})
    assert feature("f_mem_access_global_load_tag:constant").eval(kernel) == 32
    places = feature("f_mem_transactions_global_load_block:4_tag:constant").eval(kernel)
    assert places == pytest.approx(16)

"""The optimized form of a kernel computes the same, bit by bit, and does no more."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import perfmodel as pm
from perfmodel.basics.errors import FeatureError
from perfmodel.opencl_c import lowered as low
from perfmodel.opencl_c import lowered_kernel
from perfmodel.opencl_c.emulation import emulate
from perfmodel.opencl_c.optimization import optimized
from perfmodel.opencl_c.types import Pointer, Scalar
from tests.covering import examples
from tests.opencl_c.random_kernels import LENGTH, RandomChooser, random_kernel

N = 3


def arguments(kernel: low.LoweredKernel, seed: int) -> dict[str, Any]:
    random = np.random.default_rng(seed)
    found: dict[str, Any] = {}
    for parameter in kernel.parameters:
        if isinstance(parameter.type, Pointer):
            assert isinstance(parameter.type.target, Scalar)
            dtype = parameter.type.target.numpy
            values = (
                random.uniform(0.5, 1.5, LENGTH) if parameter.type.target.is_float else random.integers(0, 5, LENGTH)
            )
            found[parameter.name] = values.astype(dtype)
        else:
            assert isinstance(parameter.type, Scalar)
            found[parameter.name] = np.dtype(parameter.type.dtype).type(N)
    return found


@settings(max_examples=examples(25), deadline=None)
@given(seed=st.integers(0, 10**6))
def test_random_kernels_compute_the_same(seed: int) -> None:
    import random

    made = random_kernel(RandomChooser(random.Random(seed)))
    kernel = lowered_kernel(made.source, "k")
    runs = [
        emulate(form, made.shape(N), made.local_size, arguments(kernel, seed), groups="all", checks=False)
        for form in (kernel, optimized(kernel))
    ]
    for name in ("a", "o"):
        assert runs[0].array(name).tobytes() == runs[1].array(name).tobytes()
    before, after = (run.accesses["executions"].sum(axis=0) for run in runs)
    # Loops that run seldom load what they would need.
    assert after[before > 0].sum() <= 2 * before.sum()


def counted(
    body: str, names: str, parameters: str = "__global float *o, __global const float *a, int n"
) -> list[float]:
    """Returns features of one work-item of a kernel of these statements, as compiled."""
    source = f"__kernel void k({parameters}) {{ int i = get_global_id(0); {body} }}"
    arrays = {name: "n + 4096" for name in ("o", "a", "b") if f"*{name}" in parameters}
    kernel = pm.Kernel.from_opencl(source, "k", "n", 64, arrays, assumptions="n % 64 == 0", n=1024).as_compiled()
    return [float(pm.feature(name).eval(kernel)) / 1024 for name in names.split()]


LOADS, STORES, ADDS, MULS = (
    "f_mem_access_global_load",
    "f_mem_access_global_store",
    "f_op_float32_add",
    "f_op_float32_mul",
)


@pytest.mark.parametrize(
    ("body", "names", "values"),
    [
        # A repeated load is one load, until something is stored; a repeated product one product.
        ("o[i] = a[i] * a[i] - a[i];", f"{LOADS} f_op_float32_madd", [1, 1]),
        ("o[i] = a[i]; o[i + 1] = a[i];", LOADS, [2]),
        # What was stored is known at its place until something else may have been stored there.
        ("o[i] = a[i]; o[i + 1] = o[i];", LOADS, [1]),
        ("o[i] = a[i]; o[i + n] = 2.0f; o[i + 1] = o[i];", LOADS, [2]),
        # A store that another one at its place follows, with no load between them, is none.
        ("o[i] = a[i]; o[i] = 2.0f;", f"{LOADS} {STORES}", [0, 1]),
        ("o[i] = a[i]; o[i] = a[i + 1];", f"{LOADS} {STORES}", [2, 2]),
        ("o[i] = a[i]; o[i + 1] = o[i + n]; o[i] = a[i + 1];", STORES, [3]),
        # Numbers of the program stay numbers in variables.
        ("uint m = 32; m -= 7; o[i] = (uint)i >> m;", "f_op_uint32_add f_op_uint32_shift", [0, 1]),
        ("float x = a[i]; o[i] = x; o[i + 1] = x;", LOADS, [1]),
        ("o[i] = (a[i] + 1.0f) / (a[i] + 1.0f);", f"{ADDS} f_op_float32_div", [1, 1]),
        ("o[i] = (a[i] + a[i + 1]) / (a[i + 1] + a[i]);", f"{LOADS} {ADDS}", [2, 1]),
        # Products that are added to something cost nothing there.
        ("o[i] = (a[i] * 2.0f + 1.0f) / (a[i] * 2.0f + 3.0f);", f"f_op_float32_madd {MULS}", [2, 0]),
        # What was computed in a branch isn't known behind it; what came before it is known in it.
        ("float x = 0.0f; if (i < 32) x = 3.0f / a[i]; o[i] = x + 3.0f / a[i];", "f_op_float32_div", [1 + 32 / 1024]),
        ("float x = 3.0f / a[i]; if (i < 512) x += 3.0f / a[i]; o[i] = x;", "f_op_float32_div", [1]),
        # Loops: invariants go before them, and loads stay, but those that a loop that is written out repeats.
        (
            "float x = 0.0f; for (int j = 0; j < 8; j++) x += a[j] * (3.0f / a[i]); o[i] = x;",
            f"{LOADS} f_op_float32_div",
            [9, 1],
        ),
        (
            "float y = a[i], x = 0.0f; for (int j = 0; j < 8; j++) x += a[j] * (3.0f / y); o[i] = x;",
            f"{LOADS} f_op_float32_div",
            [9, 1],
        ),
        # Places of a private array that numbers lead to are told apart; others are not.
        (
            "float x[4]; x[0] = a[i]; x[1] = 3.0f / x[0]; x[2] += a[0]; o[i] = x[1] + x[2] + 3.0f / x[0];",
            "f_op_float32_div",
            [1],
        ),
        (
            "float x[4]; x[0] = a[i]; x[1] = 3.0f / x[0]; x[n % 4] += a[0]; o[i] = x[1] + 3.0f / x[0];",
            "f_op_float32_div",
            [2],
        ),
        # Conversions, and quotients by numbers that are known.
        ("o[i] = a[i] + i;", "f_op_float32_convert", [1]),
        ("o[i] = (float)i * a[(uint)i % 64];", "f_op_uint32_bitwise_index f_op_uint32_mod_index", [1, 0]),
        ("o[i] = a[(uint)i / 100];", "f_op_uint32_mul_index f_op_uint32_shift_index f_op_uint32_div_index", [1, 1, 0]),
        ("o[i] = a[i / n];", "f_op_int32_div_index", [1]),
    ],
)
def test_counts_by_hand(body: str, names: str, values: list[float]) -> None:
    assert counted(body, names) == pytest.approx(values)


def test_vectors_are_loaded_and_stored_as_a_whole() -> None:
    """One component is loaded with its vector, and stored by loading, changing and storing the vector."""
    parameters = "__global float4 *o, __global const float4 *a, int n"
    wide = [f"f_mem_access_global_bits:128_{way}" for way in ("load", "store")]
    assert counted("o[i].y = 1.0f;", " ".join(wide), parameters) == [1, 1]
    assert counted("o[i] = a[i].x + a[i].y;", " ".join([*wide, LOADS]), parameters) == [1, 1, 1]
    assert counted("o[i] = (float4)(1.0f);", " ".join(wide), parameters) == [0, 1]


def test_numbers_are_followed_through_functions() -> None:
    source = """
    uint turned(uint x, uint n) { return (x << n) | (x >> (32 - n)); }
    __kernel void k(__global uint *o) { int i = get_global_id(0); o[i] = turned(o[i], 7) ^ turned(o[i], 32 - 7); }
    """
    kernel = pm.Kernel.from_opencl(source, "k", 64, 64, {"o": 64}).as_compiled()
    assert pm.feature("f_op_uint32_add").eval(kernel) == 0
    assert pm.feature("f_op_uint32_shift").eval(kernel) == 2 * 64  # turning by a number is one instruction


def test_what_turns_bits_round_is_no_index() -> None:
    source = """__kernel void k(__global uint *o, const uint key) {
        uint v = get_global_id(0);
        for (int j = 0; j < 64; j++) { v = rotate(v, 7u); v ^= key; }
        if (v == 0) o[v & 0xff] = 1;
    }"""
    kernel = pm.Kernel.from_opencl(source, "k", 64, 64, {"o": 256}, key=3).as_compiled()
    assert [float(pm.feature(f"f_op_uint32_{kind}").eval(kernel)) / 64 for kind in ("shift", "bitwise")] == [64, 64]


def test_index_arithmetic_is_of_compiled_kernels_only() -> None:
    kernel = pm.Kernel.from_opencl(
        "__kernel void k(__global float *o) { o[get_global_id(0)] = 1.0f; }", "k", 64, 64, {"o": 64}
    )
    with pytest.raises(FeatureError, match="as_compiled"):
        pm.feature("f_op_int32_add_index").eval(kernel)


def test_a_compiled_kernel_is_stored_as_what_it_is(collection: pm.KernelCollection) -> None:
    (kernel,) = collection.generate_kernels(["vector_add", "n:1024"])
    assert kernel.as_compiled().program.content == kernel.program.content
    assert kernel.as_compiled().launch() == kernel.launch()

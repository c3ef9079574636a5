"""Bitwise operations of three inputs, sums of three numbers and rotations count once, as compiled; divisions may be
products."""

from __future__ import annotations

import pytest

import perfmodel as pm

N = 256
FRAME = """__kernel void f(__global uint *a, const uint n)
{{
    const uint i = get_global_id(0), b = a[i], c = a[i + n], d = a[i + 2 * n], e = a[i + 3 * n];
    a[i] = {};
}}
"""
# One instruction joins three inputs (LOP3, IADD3) or rotates (SHF): written down by hand.
CASES = {
    "b ^ c": {"bitwise": 1},
    "b ^ c ^ d": {"bitwise": 1},
    "b ^ c ^ d ^ e": {"bitwise": 2},
    "b ^ c ^ d ^ e ^ 5u": {"bitwise": 2},
    "(b & c) | (~b & d)": {"bitwise": 1},
    "(b & c) ^ (b & d) ^ (c & d)": {"bitwise": 1},
    "~b": {"bitwise": 1},
    "(b << 7) | (b >> 25)": {"shift": 1},
    "(b << 7) | (b >> 24)": {"bitwise": 1, "shift": 2},
    "(b << 7) | (c >> 25)": {"shift": 1},
    "(b << 7) | (c >> 24)": {"bitwise": 1, "shift": 2},
    "((b ^ c) << 7) | ((b ^ c) >> 25)": {"bitwise": 1, "shift": 1},
    "bitselect(b ^ d, b, c)": {"bitwise": 1},
    "bitselect(b, c, d) ^ e ^ (b & c)": {"bitwise": 2},
    "((b << 7) | (b >> 25)) ^ c": {"bitwise": 1, "shift": 1},
    "((b << 7) | (b >> 25)) ^ ((b << 18) | (b >> 14)) ^ (b >> 3)": {"bitwise": 1, "shift": 3},
    "b + c": {"add": 1},
    "b + c + d": {"add": 1},
    "b + c + d + e + 7u": {"add": 2},
    "b * c + d + e": {"madd": 1, "add": 1},
}


@pytest.mark.parametrize("expression", CASES)
def test_instructions_of_three_inputs_count_once(expression: str) -> None:
    kernel = pm.Kernel.from_opencl(FRAME.format(expression), "f", "n", 64, {"a": "4 * n"}, n=N).as_compiled()
    found = {
        kind: pm.feature(f"f_op_uint32_{kind}").eval(kernel) / N for kind in ("bitwise", "shift", "add", "madd", "mul")
    }
    assert {kind: number for kind, number in found.items() if number} == CASES[expression]


def test_sources_count_as_they_are_written() -> None:
    kernel = pm.Kernel.from_opencl(FRAME.format("b ^ c ^ d"), "f", "n", 64, {"a": "4 * n"}, n=N)
    assert pm.feature("f_op_uint32_bitwise").eval(kernel) == 2 * N


def test_narrow_numbers_are_computed_in_registers_of_32_bits() -> None:
    source = "__kernel void f(__global uchar4 *a) { const int i = get_global_id(0); a[i] = a[i] * a[i]; }"
    kernel = pm.Kernel.from_opencl(source, "f", N, 64, {"a": N})
    assert pm.feature("f_op_uint8_mul").eval(kernel) == 4 * N
    assert pm.feature("f_op_uint32_mul").eval(kernel.as_compiled()) == 4 * N


@pytest.mark.parametrize(
    ("divisor", "kind"), [("4.0f", "mul"), ("(float)(1 << 20)", "mul"), ("3.0f", "mul"), ("x[0]", "div")]
)
def test_compilers_multiply_by_the_reciprocal_of_a_number(divisor: str, kind: str) -> None:
    source = f"__kernel void f(__global float *x) {{ int i = get_global_id(0); x[i] = x[i] / {divisor}; }}"
    kernel = pm.Kernel.from_opencl(source, "f", 1024, 64, {"x": 1024})
    assert pm.feature(f"f_op_float32_{kind}").eval(kernel.as_compiled()) == 1024
    assert pm.feature("f_op_float32_div").eval(kernel) == 1024

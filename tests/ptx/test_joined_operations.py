"""One instruction of the machine does what several of PTX do: sums of three numbers, and shifts in sums."""

from __future__ import annotations

import pytest

import perfmodel as pm

pytest.importorskip("nvidia.cuda_nvrtc", reason="needs the extra nvidia")

N, BLOCK = 1024, 64
SOURCE = """
__global__ void k(const T *x, T *out, T u)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const T a = x[i], b = x[i + N], c = x[i + 2 * N], d = x[i + 3 * N], e = x[i + 4 * N];
    out[i] = BODY;
}
""".replace("N", str(N))
# How many instructions ptxas 12.9 makes of each for sm_90: IADD3, LEA, IMAD, LEA.HI, SHF and LOP3.
OF_32_BITS = {
    "a + b": 1,
    "a + b + c": 1,
    "a - b - c": 1,
    "a + b + c + d": 2,
    "a + b + c + d + e": 2,
    "(a << 5) + b": 1,
    "(a >> 3) + b": 1,
    "((a << 7) | (a >> 25)) + b": 1,
    "((a << 7) | (a >> 25)) + b + c": 2,
    "((a << 7) | (a >> 25)) ^ b": 2,
    "(a << b) + c": 2,
    "(a << 5) + b + c": 2,
    "(a ^ b ^ c) + d + e": 2,
    "((a + b) & c) + d": 3,
}


def counted(expression: str, dtype: str, name: str) -> float:
    source = SOURCE.replace("T", name).replace("BODY", expression)
    kernel = pm.Kernel.from_cuda(source, "k", N // BLOCK, BLOCK, {"x": 5 * N, "out": N}, u=3)
    kinds = [f"f_op_{sign}int{dtype}_{kind}" for sign in ("", "u") for kind in ("add", "shift", "bitwise")]
    return sum(float(pm.feature(kind).eval(kernel)) for kind in kinds) / N


@pytest.mark.parametrize("expression", OF_32_BITS)
def test_operations_are_as_many_as_the_assembler_has_instructions(expression: str) -> None:
    assert counted(expression, "32", "unsigned") == OF_32_BITS[expression]


def test_sums_of_three_are_those_of_two_with_64_bits() -> None:
    """IADD3 and IADD3.X add up two numbers, or three."""
    found = [counted(each, "64", "unsigned long long") for each in ("a + b", "a + b + c", "a + b + c + d", "a - b + c")]
    assert found == [1, 1, 2, 1]


def test_registers_that_braces_declare_are_others_than_those_of_the_same_name_in_other_braces() -> None:
    """Each pair of braces has one sum of three numbers, as no other reads what it adds up on the way."""
    braces = 'asm volatile("{ .reg .u32 t; add.u32 t, %1, %2; add.u32 %0, t, %1; }" : "=r"(r) : "r"(r), "r"(b));'
    source = SOURCE.replace("T", "unsigned").replace("out[i] = BODY;", f"unsigned r = a; {2 * braces} out[i] = r;")
    kernel = pm.Kernel.from_cuda(source, "k", N // BLOCK, BLOCK, {"x": 5 * N, "out": N}, u=3)
    assert pm.feature("f_op_uint32_add").eval(kernel) / N == 2

"""Functions of vectors take the cycles that processors took for them, by their names in the driver's library."""

from __future__ import annotations

import pytest

from perfmodel.x86.units import function_cycles


@pytest.mark.parametrize(
    ("name", "others"),
    [
        ("log1pf16", ("expf16", "log2f16")),
        ("erf8", ("exp8", "hypot8")),
        ("erff16", ("expf16", "sinf16")),
        ("powf16", ("expf16", "logf16")),
        ("expf16", ("expf16_native", "exp2f16_native")),
        ("sin8", ("exp8",)),
    ],
)
def test_some_functions_take_longer_than_others(name: str, others: tuple[str, ...]) -> None:
    """A Xeon, a Zen 4 and a Zen 5 take longer for them, all three (benchmarks.function_cycles)."""
    cycles = function_cycles(f"__ocl_svml_z0_{name}")
    assert all(cycles > function_cycles(f"__ocl_svml_z0_{other}") > 0 for other in others)


def test_two_registers_of_doubles_take_twice_as_long() -> None:
    for function in ("exp", "sincos", "erf", "log1p"):
        one, two = (function_cycles(f"__ocl_svml_z0_{function}{lanes}") for lanes in (8, 16))
        assert two == 2 * one > 0


def test_no_other_function_is_one_of_vectors() -> None:
    assert function_cycles("memcpy") == function_cycles("__ocl_svml_z0_") == 0

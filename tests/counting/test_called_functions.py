"""One call of a function counts as the operations that a person expects."""

from __future__ import annotations

import pytest

from perfmodel.counting.called_functions import operations_of


@pytest.mark.parametrize(
    ("name", "width", "counts"),
    [
        ("fma", 1, {"madd": 1}),
        ("mad24", 4, {"madd": 4}),
        ("fmin", 4, {"min": 4}),
        ("clamp", 3, {"min": 3, "max": 3}),
        ("dot", 3, {"mul": 1, "madd": 2}),
        ("dot", 1, {"mul": 1}),
        ("fast_length", 2, {"mul": 1, "madd": 1, "sqrt": 1}),
        ("fast_normalize", 3, {"mul": 4, "madd": 2, "rsqrt": 1}),
        # Divided by the largest component first, unless all are 0 or one is infinite, and multiplied by it afterwards.
        ("distance", 4, {"add": 4, "fabs": 4, "max": 3, "compare": 5, "div": 4, "mul": 2, "madd": 3, "sqrt": 1}),
        ("normalize", 3, {"fabs": 3, "max": 2, "compare": 4, "div": 6, "mul": 2, "madd": 2, "sqrt": 1}),
        ("cross", 4, {"mul": 3, "madd": 3}),
        ("mix", 1, {"add": 1, "madd": 1}),
        ("native_exp", 1, {"native": 1, "mul": 1}),
        ("half_divide", 1, {"div": 1}),
        ("native_recip", 1, {"div": 1}),
        ("sincos.0", 1, {"sin": 1}),
        ("sincos.1", 1, {"madd": 6}),
        ("modf.1", 1, {}),
        ("popcount", 2, {"popcount": 2}),
        ("select", 2, {"bitwise": 2}),
        ("shuffle", 4, {}),
        ("nan", 1, {}),
    ],
)
def test_what_a_call_counts_as(name: str, width: int, counts: dict[str, int]) -> None:
    assert operations_of(name, width) == counts

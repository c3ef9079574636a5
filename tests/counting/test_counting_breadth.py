"""Kernels as people write them after Loopy's tutorial count without error."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import loopy as lp
import numpy as np
import pytest

import perfmodel as pm
from tests.counting_kernels import counted, is_whole, make, tagged


def rank_one() -> Any:
    """Returns the outer product of two vectors, tiled, with both vectors fetched to local memory."""
    program = make("{[i, j]: 0 <= i, j < n}", "c[i, j] = a[i] * b[j]", {"a, b": "n", "c": "n, n"}, assumptions="n >= 1")
    program = lp.split_iname(program, "i", 16, outer_tag="g.0", inner_tag="l.0")
    program = lp.split_iname(program, "j", 16, outer_tag="g.1", inner_tag="l.1")
    program = lp.add_prefetch(program, "a", ["i_inner"], default_tag="l.auto")
    return lp.add_prefetch(program, "b", ["j_inner"], default_tag="l.auto")


def transpose() -> Any:
    """Returns a transposition in which a tile of the input goes through local memory, so that both sides are accessed
    in order."""
    program = make(
        "{[i, j]: 0 <= i, j < n}", "out[i, j] = a[j, i]", {"a, out": "n, n"}, assumptions="n mod 16 = 0 and n >= 16"
    )
    program = lp.split_iname(program, "i", 16, outer_tag="g.1", inner_tag="l.1")
    program = lp.split_iname(program, "j", 16, outer_tag="g.0", inner_tag="l.0")
    return lp.add_prefetch(program, "a", ["i_inner", "j_inner"], default_tag="l.auto")


def unrolled_scaling() -> Any:
    """Returns y = alpha x, four elements a work-item, unrolled."""
    program = make("{[i]: 0 <= i < n}", "y[i] = 2.5 * x[i]", {"x, y": "n"}, assumptions="n mod 512 = 0")
    program = lp.split_iname(program, "i", 512, outer_tag="g.0", slabs=(0, 0))
    return lp.split_iname(program, "i_inner", 128, outer_tag="unr", inner_tag="l.0")


def with_precomputed_rows() -> Any:
    """Returns a program in which a row's squares are computed once and used by all columns."""
    program = make(
        ["{[i, j]: 0 <= i < n and 0 <= j < 16}"],
        "square(k) := x[i, k] * x[i, k]\nout[i, j] = square(j) + square(15 - j)",
        {"x, out": "n, 16"},
    )
    return tagged(lp.precompute(program, "square", "j", default_tag=None), i="g.0")


def two_reductions() -> Any:
    """Returns mean and sum of squares of every row."""
    return tagged(
        make(
            "{[i, j, k]: 0 <= i < n and 0 <= j, k < n}",
            "for i\n<> mean = sum(j, x[i, j]) / n {id=mean}\nout[i] = sum(k, (x[i, k] - mean)**2) {dep=mean}\nend",
            {"x": "n, n", "out": "n"},
        ),
        i="g.0",
    )


def group_reduction() -> Any:
    """Returns a sum in which the work-items of a group work together through local memory."""
    program = make("{[i]: 0 <= i < 1024}", "out[0] = sum(i, x[i])", {"x": "1024", "out": "1"}, sizes=())
    program = lp.split_iname(program, "i", 64, inner_tag="l.0")
    return lp.split_reduction_outward(program, "i_inner")


def lower_triangular_solve_step() -> Any:
    """Returns one step of a forward substitution, with a triangular domain."""
    return make(
        "{[i, k]: 0 <= i < n and 0 <= k < i}", "r[i] = b[i] - sum(k, l[i, k] * x[k])", {"l": "n, n", "r, b, x": "n"}
    )


def wave_stencil() -> Any:
    """Returns a second-order wave equation in two dimensions, interior points, three time levels."""
    return make(
        "{[i, j]: 1 <= i, j < n - 1}",
        "u2[i, j] = 2*u1[i, j] - u0[i, j] + 0.1*(u1[i+1, j] + u1[i-1, j] + u1[i, j+1] + u1[i, j-1] - 4*u1[i, j])",
        {"u0, u1, u2": "n, n"},
        assumptions="n >= 3",
    )


def conditional() -> Any:
    """Returns a reflection at the ends of an interval, with if-expressions."""
    return make(
        "{[i]: 0 <= i < n}",
        "out[i] = if(i == 0, x[0], x[i - 1]) + if(i == n - 1, x[n - 1], x[i + 1])",
        {"x, out": "n"},
        assumptions="n >= 2",
    )


def complex_axpy() -> Any:
    return make("{[i]: 0 <= i < n}", "z[i] = a[i] * x[i] + y[i]", {"a, x, y, z": {"shape": "n", "dtype": np.complex64}})


def integer_hash() -> Any:
    return make("{[i]: 0 <= i < n}", "h[i] = (k[i] * 31 + 7) % 1024", {"h, k": {"shape": "n", "dtype": np.int32}})


TUTORIAL: dict[Callable[[], Any], dict[str, float]] = {
    rank_one: {"f_op_float32_mul": 96**2, "f_mem_access_local_load": 2 * 96**2},
    transpose: {"f_mem_access_global_store_lstrides:{0:1}": 96**2, "f_mem_access_global_load_lstrides:{0:1}": 96**2},
    unrolled_scaling: {"f_op_float32_mul": 96 * 512, "f_work_items": 96 * 128},
    with_precomputed_rows: {"f_op_float32_mul": 96 * 16, "f_op_float32_add": 96 * 16},
    two_reductions: {"f_op_float32_div": 96, "f_op_float32_add": 3 * 96**2 - 96**2},
    group_reduction: {"f_mem_access_global_load": 1024},
    lower_triangular_solve_step: {"f_op_float32_madd": 96 * 95 / 2},
    wave_stencil: {"f_mem_access_global_store": 94**2, "f_mem_access_global_load": 7 * 94**2},
    conditional: {"f_mem_access_global_load": 4 * 96, "f_op_float32_add": 96},
    complex_axpy: {"f_op_complex64_madd": 96, "f_mem_bytes_global_load": 96 * 24},
    integer_hash: {"f_op_int32_madd": 96, "f_op_int32_mod": 96},
}


@pytest.mark.parametrize("program", TUTORIAL, ids=lambda program: program.__name__)
def test_tutorial_kernels_count(program: Callable[[], Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        kernel = pm.Kernel(program())
        if kernel.program.sizes:
            kernel = kernel.at(n=96 * 512 if program is unrolled_scaling else 96)
        assert is_whole(kernel.program.counts_for(32), kernel.bind({}))
        found = {name: counted(name, kernel) for name in TUTORIAL[program]}
    assert found == TUTORIAL[program]

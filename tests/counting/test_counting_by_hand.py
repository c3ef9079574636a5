"""Counts that a person derives from the source: of expressions, and of four well-known kernels."""

from __future__ import annotations

from collections import Counter

import loopy as lp
import numpy as np
import pytest

import perfmodel as pm
from perfmodel.generators.matmul import SquareMatmul
from tests.counting_kernels import counted, make, tagged

# --- one expression at a time


def expression_counts(expression: str) -> dict[tuple[str, str], int]:
    program = make(
        "{[i]: 0 <= i < n}",
        f"o[i] = {expression}",
        {
            "x, y, z, w, o": "n",
            "d, e": {"shape": "n", "dtype": np.float64},
            "h": {"shape": "n", "dtype": np.float16},
            "k": {"shape": "n", "dtype": np.int32},
            "c": {"shape": "n", "dtype": np.complex64},
        },
    )
    found: Counter[tuple[str, str]] = Counter()
    for operation in pm.Kernel(program, n=1).counts.operations:
        found[operation.kind, operation.dtype] += operation.per_execution
    return dict(found)


@pytest.mark.parametrize(
    ("expression", "operations"),
    [
        ("x[i]", {}),
        ("-x[i]", {}),
        ("x[i] + y[i]", {"add": 1}),
        ("x[i] - y[i]", {"add": 1}),
        ("x[i] - (y[i] + z[i])", {"add": 2}),
        ("x[i] * y[i]", {"mul": 1}),
        ("x[i] * (-y[i])", {"mul": 1}),
        ("x[i] * y[i] * z[i]", {"mul": 2}),
        ("x[i] / y[i]", {"div": 1}),
        ("x[i]*y[i] + z[i]", {"madd": 1}),
        ("z[i] - x[i]*y[i]", {"madd": 1}),
        ("2*x[i] + 1", {"madd": 1}),
        ("x[i]*y[i]*z[i] + w[i]", {"madd": 1, "mul": 1}),
        ("x[i]*y[i] + z[i]*w[i]", {"madd": 1, "mul": 1}),
        ("x[i]*y[i] + z[i]*w[i] + x[i]", {"madd": 2}),
        ("x[i]*y[i] + z[i] + w[i]", {"madd": 1, "add": 1}),
        ("(x[i]*y[i] + z[i])*w[i]", {"madd": 1, "mul": 1}),
        ("x[i]/y[i] + 1", {"div": 1, "add": 1}),
        ("(x[i] + y[i])*(x[i] + y[i])", {"add": 2, "mul": 1}),
        ("exp(x[i])*exp(x[i])", {"exp": 2, "mul": 1}),
        ("x[i] + 2 + 3", {"add": 2}),
        ("1 + 2 + x[i]", {"add": 1}),
        ("2*(3*x[i])", {"mul": 1}),
        ("x[i]**2", {"mul": 1}),
        ("x[i]**3", {"pow": 1}),
        ("x[i]**y[i]", {"pow": 1}),
        ("sin(x[i]) * rsqrt(y[i])", {"sin": 1, "rsqrt": 1, "mul": 1}),
        ("pow(x[i], y[i])", {"pow": 1}),
        ("fmin(x[i], y[i])", {"min": 1}),
        ("abs(x[i])", {"abs": 1}),
        ("x[i] if x[i] > y[i] else y[i] + 1", {"compare": 1, "add": 1}),
    ],
)
def test_operations_of_float32_expressions(expression: str, operations: dict[str, int]) -> None:
    assert expression_counts(expression) == {(kind, "float32"): times for kind, times in operations.items()}


ADD64 = ("add", "float64")


@pytest.mark.parametrize(
    ("expression", "operations"),
    [
        ("d[i]*e[i] + d[i]", {("madd", "float64"): 1}),
        ("h[i]*h[i] + h[i]", {("madd", "float16"): 1}),
        ("k[i]*k[i] + k[i]", {("madd", "int32"): 1}),
        # o is float32, and Loopy writes a literal in the type of what it is assigned to.
        ("0.1*x[i] + y[i]", {("madd", "float32"): 1}),
        ("2*k[i] + 1", {("madd", "float32"): 1}),
        ("0.1*d[i] + 1", {("madd", "float64"): 1}),
        ("exp(0.1*x[i])", {("mul", "float64"): 1, ("exp", "float64"): 1}),
        ("exp(0.5*x[i]) + exp(d[i])", {("mul", "float32"): 1, ("exp", "float32"): 1, ("exp", "float64"): 1, ADD64: 1}),
        ("k[i]//3 + k[i] % 2", {("div", "int32"): 1, ("mod", "int32"): 1, ("add", "int32"): 1}),
        ("(k[i] & 3) | (k[i] << 2)", {("bitwise", "int32"): 2, ("shift", "int32"): 1}),
        ("x[i] + y[i] + d[i]", {("add", "float32"): 1, ("add", "float64"): 1}),
        ("d[i] + x[i] + y[i]", {("add", "float64"): 2}),
        ("x[i]*y[i]*d[i]", {("mul", "float32"): 1, ("mul", "float64"): 1}),
        ("x[i]*y[i] + d[i]", {("mul", "float32"): 1, ("add", "float64"): 1}),
        ("x[i] if 1 > d[i] else y[i]", {("compare", "float64"): 1}),
    ],
)
def test_operations_of_other_and_mixed_types(expression: str, operations: dict[tuple[str, str], int]) -> None:
    assert expression_counts(expression) == operations


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint32", "int64"])
def test_literals_take_the_type_of_their_target(dtype: str) -> None:
    array = {"shape": "n", "dtype": np.dtype(dtype)}
    program = make("{[i]: 0 <= i < n}", "o[i] = 2*a[i] + 1", {"a, o": array})
    assert counted(f"f_op_{dtype}_madd", pm.Kernel(program), n=7) == 7


def test_a_literal_makes_the_arithmetic_of_a_wider_target_wider() -> None:
    program = make("{[i]: 0 <= i < n}", "o[i] = 2*a[i] + 1", {"a": "n", "o": {"shape": "n", "dtype": np.float64}})
    kernel = pm.Kernel(program, n=7)
    assert "2.0 * a[i] + 1.0" in kernel.program.source  # type: ignore[attr-defined]
    assert counted("f_op_float64_madd", kernel) == 7


def test_complex_operations_have_their_own_type() -> None:
    program = make("{[i]: 0 <= i < n}", "c[i] = c[i]*c[i] + c[i]", {"c": {"shape": "n", "dtype": np.complex64}})
    assert counted("f_op_complex64_madd", pm.Kernel(program), n=7) == 7


def test_index_arithmetic_is_not_counted() -> None:
    program = make("{[i]: 0 <= i < n}", "o[2*i + 1] = a[3*i + 2]", {"a": "3*n + 2", "o": "2*n + 2"})
    assert counted("f_op", pm.Kernel(program), n=5) == 0


def test_every_occurrence_of_a_load_is_counted() -> None:
    program = make("{[i]: 0 <= i < n}", "o[i] = x[i]*x[i] + x[i]", {"x, o": "n"})
    assert counted("f_mem_access_load", pm.Kernel(program), n=5) == 15


def test_max_reduction_counts_a_max_per_element() -> None:
    program = make("{[i, j]: 0 <= i < n and 0 <= j < 8}", "o[i] = reduce(max, j, a[i, j])", {"a": "n, 8", "o": "n"})
    found = {(o.kind, o.dtype): o.per_execution for o in pm.Kernel(program).counts.operations}
    assert found == {("max", "float32"): 1}


# --- derived by hand


def test_tiled_matmul_by_hand() -> None:
    """16x16 tiles, n = 16 t. Groups: t^2; work-items: n^2. Each work-item runs n multiply-adds, over t tiles.

    A tile fetches one element of a and one of b per work-item: t loads from and t stores to either tile, n^2 t = n^3/16
    in all; n loads of either tile from local memory; one store of c. Two barriers a tile: before the fetch and after.
    In c = a b, a tile of a is fetched as a[16 g1 + l1, 16 k + l0]: strides l0: 1, l1: n, g1: 16 n, g0: 0, and the same
    n^2 elements are read by the t groups along g0: ratio n/16. For b: l0: 1, l1: n, g0: 16, g1: 0.
    """
    variant = {"dtype": "float32", "lsize_0": "16", "lsize_1": "16", "tiled_prefetch": "True", "groups_fit": "True"}
    n = 64
    kernel = pm.Kernel(SquareMatmul().program(variant), n=n)
    expected = {
        "f_op_float32_madd": n**3,
        "f_op": n**3,
        "f_op_float32_mul_contract:off": n**3,
        "f_op_contract:off": 2 * n**3,
        "f_mem_access_local_float32": 2 * n**3 + 2 * n**3 / 16,
        "f_mem_access_local_store": 2 * n**3 / 16,
        "f_mem_access_global_float32_load": 2 * n**3 / 16,
        "f_mem_access_global_float32_load_lstrides:{0:1;1:64}_gstrides:{0:0;1:1024}_afr:4": n**3 / 16,
        "f_mem_access_global_float32_load_lstrides:{0:1;1:64}_gstrides:{0:16;1:0}_afr:4": n**3 / 16,
        "f_mem_access_global_float32_load_lstrides:{0:1;1:>15}_gstrides:{0:0}_ratio:>1": n**3 / 16,
        "f_mem_access_global_float32_load_ratio:<4": 0,
        "f_mem_access_global_float32_store_lstrides:{0:1}_afr:1": n**2,
        "f_mem_access_var:a": n**3 / 16,
        "f_sync_barrier_local": 2 * (n // 16) * n**2,
        "f_sync_kernel_launch": 1,
        "f_thread_groups": (n // 16) ** 2,
        "f_work_items": n**2,
    }
    assert {name: counted(name, kernel) for name in expected} == expected


def test_stencil_with_halo_by_hand() -> None:
    """5 points, 16x16 work-items, a tile with its halo: 16x16 + 4*16 = 320 elements for 256 results.

    u_n + u_s + u_e + u_w - 4 u_c is 3 additions and 1 multiply-add. One barrier, between fetch and use.
    """
    program = make(
        "{[i, j]: 0 <= i, j < n}",
        "o[i, j] = u[i, j+1] + u[i+2, j+1] + u[i+1, j] + u[i+1, j+2] - 4*u[i+1, j+1]",
        {"u": "n + 2, n + 2", "o": "n, n"},
        assumptions="n >= 16 and n mod 16 = 0",
    )
    program = lp.split_iname(program, "i", 16, outer_tag="g.1", inner_tag="l.1")
    program = lp.split_iname(program, "j", 16, outer_tag="g.0", inner_tag="l.0")
    program = lp.add_prefetch(
        program, "u", ["i_inner", "j_inner"], fetch_outer_inames="i_outer,j_outer", default_tag="l.auto"
    )
    kernel, n = pm.Kernel(program, n=64), 64
    groups = (n // 16) ** 2
    expected = {
        "f_op_float32_madd": n**2,
        "f_op_float32_add": 3 * n**2,
        "f_mem_access_global_load": 320 * groups,
        "f_mem_access_local_store": 320 * groups,
        "f_mem_access_local_load": 5 * n**2,
        "f_mem_access_global_store": n**2,
        "f_sync_barrier_local": n**2,
        "f_thread_groups": groups,
    }
    assert {name: counted(name, kernel) for name in expected} == expected
    # Each element of the (n+2)^2 grid is read at least once: the ratio is 5120 over 66^2 - 4, 1.18.
    assert counted("f_mem_access_global_load_afr:1.17..1.18", kernel) == 320 * groups


def test_all_pairs_by_hand() -> None:
    """N bodies: n^2 interactions, each with 3 subtractions, 3 multiply-adds for r^2 with its softening, 1 rsqrt,
    2 multiplications for its cube, and 1 multiply-add for the force along the first axis.

    Loads of an interaction: 3 coordinates of either body and the softening, 7 in all. Those of j have stride 0 along
    work-items, and n work-items read each: ratio n. Those of i have stride 3 and, over j, ratio n as well.
    """
    program = make(
        "{[i, j]: 0 <= i, j < n}",
        """
        for i
            <> force = 0 {id=start}
            for j
                <> dx = x[j, 0] - x[i, 0]
                <> dy = x[j, 1] - x[i, 1]
                <> dz = x[j, 2] - x[i, 2]
                <> r = rsqrt(dx*dx + dy*dy + dz*dz + eps[0])
                <> s = r*r*r
                force = force + dx*s {id=sum, dep=start}
            end
            f[i] = force {dep=sum}
        end
        """,
        {"x": "n, 3", "eps": "1", "f": "n"},
        assumptions="n >= 64 and n mod 64 = 0",
    )
    program = lp.add_dtypes(program, {"force": np.float32})
    program = lp.split_iname(program, "i", 64, outer_tag="g.0", inner_tag="l.0")
    kernel, n = pm.Kernel(program, n=128), 128
    expected = {
        "f_op_float32_add": 3 * n**2,
        "f_op_float32_madd": (3 + 1) * n**2,
        "f_op_float32_mul": 2 * n**2,
        "f_op_float32_rsqrt": n**2,
        "f_op_float32_special": n**2,
        "f_mem_access_global_load": 7 * n**2,
        "f_mem_access_global_load_lstrides:{0:0}_afr:128": 3 * n**2,
        "f_mem_access_global_load_lstrides:{0:3}_gstrides:{0:192}": 3 * n**2,
        "f_mem_access_var:eps": n**2,
        "f_mem_access_global_store_lstrides:{0:1}": n,
        "f_thread_groups": 2,
    }
    assert {name: counted(name, kernel) for name in expected} == expected


def test_convolution_by_hand() -> None:
    """Images n x n, filters 7 x 7, valid part (n-6)^2: 49 multiply-adds an output, loads of image and filter alike.

    With n = 20 there are 196 outputs: 9604 loads of the 400 elements of the image, and of the 49 of the filter.
    """
    program = make(
        ["{[i, j]: 0 <= i, j < n - 6}", "{[p, q]: 0 <= p, q < 7}"],
        "o[i, j] = sum([p, q], image[i + p, j + q] * filter[p, q])",
        {"image": "n, n", "filter": "7, 7", "o": "n - 6, n - 6"},
        assumptions="n >= 7",
    )
    kernel, n = pm.Kernel(program, n=20), 20
    outputs = (n - 6) ** 2
    expected = {
        "f_op_float32_madd": 49 * outputs,
        "f_op": 49 * outputs,
        "f_mem_access_load": 98 * outputs,
        "f_mem_access_var:image_ratio:24.01": 49 * outputs,
        "f_mem_access_var:filter_ratio:196": 49 * outputs,
        "f_mem_access_store": outputs,
        "f_mem_footprint_global_load_var:image": 4 * 400,
        "f_mem_footprint_global_load_var:filter": 4 * 49,
    }
    assert {name: counted(name, kernel) for name in expected} == expected


def test_triangular_nest_by_hand() -> None:
    program = make("{[i, j]: 0 <= i < n and 0 <= j <= i}", "o[i, j] = a[i, j]*2 + 1", {"a, o": "n, n"})
    for n in (1, 2, 7, 100, 99_999):
        assert counted("f_op_float32_madd", pm.Kernel(program), n=n) == n * (n + 1) // 2


def test_work_that_does_not_use_an_axis_is_repeated_along_it() -> None:
    """All 4 work-items repeat the first instruction in a grid of n/4 groups of 4, if only the second one has j along
    l.0."""
    program = make(
        "{[i, j]: 0 <= i < n and 0 <= j < 4}",
        "<> t = a[i] + 1\no[i, j] = t",
        {"a": "n", "o": "n, 4"},
    )
    kernel = pm.Kernel(tagged(program, i="g.0", j="l.0"), n=6)
    assert counted("f_op_float32_add", kernel) == 24
    assert counted("f_mem_access_var:a_lstrides:{0:0}_gstrides:{0:1}_ratio:4", kernel) == 24


def test_accesses_are_selected_by_their_authors_tags() -> None:
    program = make("{[i]: 0 <= i < n}", "o[i] = a$first[i] + a$second_row[i + n]*b[i]", {"a": "2*n", "b, o": "n"})
    kernel = pm.Kernel(program, n=5)
    assert counted("f_mem_access_tag:first", kernel) == 5
    assert counted("f_mem_access_tag:{second_row}_load", kernel) == 5
    assert counted("f_mem_access_tag:third", kernel) == 0
    assert counted("f_mem_access_load", kernel) == 15


def test_variables_may_be_named_like_words_of_features() -> None:
    program = make("{[i]: 0 <= i < n}", "load[i] = global[i] + tag[i]", {"load, global, tag": "n"})
    kernel = pm.Kernel(program, n=5)
    assert counted("f_mem_access_var:global", kernel) == 5
    assert counted("f_mem_access_var:load_store", kernel) == 5
    assert counted("f_mem_access_var:load_load", kernel) == 0

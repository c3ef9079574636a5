"""Counts are exact: equal to what the generated code does, and to what a person derives by hand."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import loopy as lp
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from perfmodel.generators.matmul import SquareMatmul

import perfmodel as pm
from perfmodel.errors import CountingError, FeatureError, KernelError
from tests import counting_oracle as oracle

# A long run, with other examples each time: PERFMODEL_EXAMPLES=1000 pytest tests/test_counting.py
EXAMPLES = int(os.environ.get("PERFMODEL_EXAMPLES", "0"))
generated = settings(
    max_examples=EXAMPLES or 40,
    derandomize=not EXAMPLES,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)


def make(domains: Any, instructions: str, arrays: dict[str, Any], **options: Any) -> Any:
    """A Loopy program; `arrays` maps "a, b" to a shape or to options of GlobalArg, other names to sizes."""
    arguments: list[Any] = []
    for name, given_ in arrays.items():
        spec = {"shape": given_} if isinstance(given_, str) else dict(given_)
        arguments.append(lp.GlobalArg(name, spec.pop("dtype", np.float32), **spec))
    sizes = [lp.ValueArg(name, np.int32) for name in options.pop("sizes", ("n",))]
    return lp.make_kernel(domains, instructions, [*arguments, *sizes], lang_version=(2018, 2), **options)


def counted(name: str, kernel: pm.Kernel, **sizes: int) -> float:
    return pm.feature(name).eval(kernel.at(**sizes))


def agree(kernel: pm.Kernel) -> oracle.Tally:
    """Asserts that every count of the kernel equals the oracle's."""
    done, counts, sizes = oracle.tally_of(kernel), kernel.counts, kernel.bind({})
    operations: Counter[tuple[str, str]] = Counter()
    for operation in counts.operations:
        times = operation.per_execution * float(operation.executions(sizes))
        operations[operation.kind, operation.dtype] += int(times)
    assert +operations == done.operations
    assert float(counts.barriers(sizes)) == done.barriers
    assert float(counts.work_groups(sizes)) == done.work_groups
    assert float(counts.work_items(sizes)) == done.work_items
    assert float(counts.launches(sizes)) == 1

    def described(access: Any) -> tuple[Any, ...]:
        return access.variable, access.direction, access.space, access.dtype

    rank = len(kernel.launch().local_size)
    ours: dict[Any, list[Any]] = {}
    for access in counts.accesses:
        if executions := int(access.executions(sizes)):
            assert access.footprint is not None
            strides = [
                [int(stride(sizes)) if (stride := by_axis.get(axis)) else 0 for axis in range(rank)]
                for by_axis in (access.local_strides, access.group_strides)
            ]
            ours.setdefault((*described(access), executions, int(access.footprint(sizes))), []).append(strides)
    theirs: dict[Any, list[Any]] = {}
    for site in done.sites:
        if site.executions:
            seen = site.strides("local", rank), site.strides("group", rank)
            theirs.setdefault((*described(site), site.executions, site.footprint), []).append(seen)
    assert {k: len(v) for k, v in ours.items()} == {k: len(v) for k, v in theirs.items()}
    for key, found in ours.items():
        assert any(map(same_strides, itertools.repeat(found), itertools.permutations(theirs[key]))), key
    return done


def same_strides(ours: Any, seen: Any) -> bool:
    """Whether strides agree wherever the run has shown one (no neighbours, no stride)."""
    return all(
        b is None or a == b
        for one, other in zip(ours, seen, strict=True)
        for local, shown in zip(one, other, strict=True)
        for a, b in zip(local, shown, strict=True)
    )


# --- generated loop nests against the oracle


@dataclass(frozen=True)
class Nest:
    """A drawn loop nest: everything needed to write it down in Loopy's language."""

    inner: str
    statements: tuple[tuple[str, str, str], ...]
    orders: str
    splits: tuple[tuple[str, int, bool], ...]
    divisible: bool

    def program(self) -> Any:
        inner = {"rectangle": "0 <= j < m", "triangle": "0 <= j <= i", "band": "i <= j < i + 3"}[self.inner]
        text = ""
        arrays: dict[str, Any] = {
            "a": {"shape": "3*n + 3*m + 20, 3*n + 3*m + 20", "order": self.orders[0]},
            "b": {"shape": "3*n + 3*m + 20, 3*n + 3*m + 20", "order": self.orders[1], "dtype": np.float64},
            "v": {"shape": "3*n + 3*m + 20"},
        }
        for number, (loops, predicate, expression) in enumerate(self.statements):
            target = f"o{number}[{', '.join(loops)}]"
            text += f"for {', '.join(loops)}\n"
            text += f"if {predicate}\n{target} = {expression}\nend\n" if predicate else f"{target} = {expression}\n"
            text += "end\n"
            arrays[f"o{number}"] = ", ".join(["3*n + 3*m + 20"] * len(loops))
        domains = f"{{[i, j]: 0 <= i < n and {inner}}}"
        assumptions = "n >= 0 and m >= 0" if self.inner == "rectangle" else "n >= 0"
        if self.divisible:
            assumptions += "".join(f" and {'n' if i == 'i' else 'm'} mod {length} = 0" for i, length, _ in self.splits)
        program = make([domains], text, arrays, sizes=("n", "m"), assumptions=assumptions)
        for axis, (iname, length, parallel) in enumerate(self.splits):
            tags = {"outer_tag": f"g.{axis}", "inner_tag": f"l.{axis}"} if parallel else {}
            program = lp.split_iname(program, iname, length, **tags)
        return program

    def multiple(self, iname: str) -> int:
        return next((length for i, length, _ in self.splits if i == iname and self.divisible), 1)


def loads(loops: str) -> list[str]:
    if loops == "ij":
        return ["a[i, j]", "a[j + 1, 2*i]", "b[2*i + 1, j]", "b[j, i]", "a[i, 3]", "v[i + 2*j]", "v[j]", "v[2]"]
    return ["a[i, 2*i + 1]", "v[i]", "v[2*i + 1]", "b[4, i]"]


@st.composite
def expressions(draw: st.DrawFn, loops: str, depth: int = 2) -> str:
    if depth == 0:
        return draw(st.sampled_from(loads(loops)))
    part = expressions(loops, depth - 1)
    form = draw(
        st.sampled_from(["{0}", "{0} + {1}", "{0} - {1}", "{0} * {1}", "{0} / {1}", "2.5*{0} + {1}", "({0} + {1})*{2}"])
        | st.sampled_from(["{0}*{1} + {2}", "{0} - {1}*{2}", "exp({0})*{1}", "-{0} + 1.5", "{0} * {1} * {2} + 0.5"])
    )
    return "(" + form.format(draw(part), draw(part), draw(part)) + ")"


@st.composite
def nests(draw: st.DrawFn) -> Nest:
    inner = draw(st.sampled_from(["rectangle", "triangle", "band"]))
    split_i = draw(st.integers(0, 4))
    split_j = draw(st.integers(0, 4)) if inner == "rectangle" else 0
    parallel_i = split_i > 1 and draw(st.booleans())
    parallel_j = parallel_i and split_j > 1 and draw(st.booleans())
    splits = []
    if split_i > 1:
        splits.append(("i", split_i, parallel_i))
    if split_j > 1:
        splits.append(("j", split_j, parallel_j))
    statements = []
    for _ in range(draw(st.integers(1, 2))):
        loops = "ij" if parallel_j else draw(st.sampled_from(["i", "ij"]))
        conditions = ["", "i > 2", "i + 1 < n", "i % 3 == 1"] + (["i > j", "i + j < n"] if loops == "ij" else [])
        statements.append((loops, draw(st.sampled_from(conditions)), draw(expressions(loops))))
    orders = draw(st.sampled_from(["CC", "CF", "FC"]))
    return Nest(inner, tuple(statements), orders, tuple(splits), draw(st.booleans()))


@generated
@given(nests(), st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=2, max_size=2))
def test_counts_of_generated_nests_equal_enumeration(nest: Nest, sizes: list[tuple[int, int]]) -> None:
    kernel = pm.Kernel(nest.program())
    for n, m in sizes:
        agree(kernel.at(n=n - n % nest.multiple("i"), m=m - m % nest.multiple("j")))


@generated
@given(
    st.sampled_from(["float32", "float64"]),
    st.tuples(st.integers(2, 4), st.integers(2, 4), st.integers(0, 2)),
    st.booleans(),
    st.integers(1, 9),
)
def test_counts_with_halo_prefetch_equal_enumeration(
    dtype: str, shape: tuple[int, int, int], divisible: bool, n: int
) -> None:
    width, height, halo = shape
    if divisible:
        n = min(n, 2) * width * height
    taps = " + ".join(f"a[i + {k}, j + {m}]" for k in range(halo + 1) for m in range(halo + 1))
    program = make(
        "{[i, j]: 0 <= i, j < n}",
        f"o[i, j] = {taps}",
        {
            "a": {"shape": f"n + {halo}, n + {halo}", "dtype": np.dtype(dtype)},
            "o": {"shape": "n, n", "dtype": np.dtype(dtype)},
        },
        assumptions=f"n >= 1 and n mod {width} = 0 and n mod {height} = 0" if divisible else "n >= 1",
    )
    program = lp.split_iname(program, "j", width, outer_tag="g.0", inner_tag="l.0")
    program = lp.split_iname(program, "i", height, outer_tag="g.1", inner_tag="l.1")
    program = lp.add_prefetch(
        program, "a", ["i_inner", "j_inner"], fetch_outer_inames="i_outer,j_outer", default_tag="l.auto"
    )
    agree(pm.Kernel(program, n=n))


@pytest.mark.parametrize("prefetch", ["True", "False"])
@pytest.mark.parametrize("fit", ["True", "False"])
def test_counts_of_matmul_equal_enumeration(prefetch: str, fit: str) -> None:
    variant = {"dtype": "float32", "lsize_0": "4", "lsize_1": "2", "tiled_prefetch": prefetch, "groups_fit": fit}
    kernel = pm.Kernel(SquareMatmul().program(variant))
    for n in (4, 12) if fit == "True" else (1, 5, 8, 11):
        agree(kernel.at(n=n))


def tagged(program: Any, **tags: str) -> Any:
    return lp.tag_inames(program, tags)


def barrier_in_triangle() -> Any:
    program = make(
        ["{[i, l]: 0 <= i < n and 0 <= l < 4}", "{[t]: 0 <= t <= i}", "{[l2]: 0 <= l2 < 4}"],
        """
        for i, t
            for l
                <> s[l] = a[i, l] {id=fetch}
            end
            for l2
                o[i, l2] = s[3 - l2] {dep=fetch}
            end
        end
        """,
        {"a, o": "n, 4"},
    )
    return tagged(lp.set_temporary_address_space(program, "s", "local"), i="g.0", l="l.0", l2="l.0")


def barrier_last_in_loop() -> Any:
    program = make(
        "{[i, t, l]: 0 <= i < n and 0 <= t < m and 0 <= l < 4}",
        """
        for i, t, l
            o[i, l] = a[l, t] {id=store}
            ... lbarrier {dep=store}
        end
        """,
        {"a": "4, m", "o": "n, 4"},
        sizes=("n", "m"),
    )
    return tagged(program, i="g.0", l="l.0")


def reduction_across_items() -> Any:
    program = make("{[i, j]: 0 <= i < n and 0 <= j < 8}", "o[i] = sum(j, a[i, j])", {"a": "n, 8", "o": "n"})
    return tagged(program, i="g.0", j="l.0")


def leading_dimension() -> Any:
    program = make(
        "{[i, j]: 0 <= i, j < n}",
        "o[i, j] = a[i, j]",
        {"a": {"shape": "n, n", "strides": "lda, 1"}, "o": "n, n"},
        sizes=("n", "lda"),
    )
    return lp.split_iname(tagged(program, i="g.0"), "j", 3, inner_tag="l.0")


def three_axes() -> Any:
    program = make("{[i, j, k]: 0 <= i, j, k < n}", "o[k, j, i] = 2*o[k, j, i] + a[i]", {"o": "n, n, n", "a": "n"})
    for axis, iname in enumerate("ijk"):
        program = lp.split_iname(program, iname, 2, outer_tag=f"g.{axis}", inner_tag=f"l.{axis}")
    return program


def flat_subscript() -> Any:
    program = make("{[i]: 0 <= i < n}", "o[i] = a[[2*i + 1]]", {"a": "n, 2", "o": "n"})
    return lp.split_iname(program, "i", 3, outer_tag="g.0", inner_tag="l.0")


def predicate_on_size() -> Any:
    return make("{[i]: 0 <= i < n}", "if i < m\no[i] = a[i]\nend", {"a, o": "n"}, sizes=("n", "m"))


def loopy_defaults() -> Any:
    """The slides' kernel: shapes and offsets are left to Loopy."""
    return lp.add_dtypes(lp.make_kernel("{[i, j]: 0 <= i, j < n}", "a[i, j] = b[j, i]"), {"a": "f4", "b": "f4"})


@pytest.mark.parametrize(
    ("program", "sizes"),
    [
        (barrier_in_triangle, [{"n": 1}, {"n": 5}]),
        (barrier_last_in_loop, [{"n": 3, "m": 0}, {"n": 3, "m": 4}]),
        (reduction_across_items, [{"n": 1}, {"n": 3}]),
        (leading_dimension, [{"n": 7, "lda": 11}, {"n": 6, "lda": 6}]),
        (three_axes, [{"n": 2}, {"n": 5}]),
        (flat_subscript, [{"n": 7}]),
        (predicate_on_size, [{"n": 5, "m": 3}, {"n": 5, "m": 9}, {"n": 5, "m": 0}]),
        (loopy_defaults, [{"n": 4}]),
    ],
)
def test_counts_of_special_kernels_equal_enumeration(program: Any, sizes: list[dict[str, int]]) -> None:
    kernel = pm.Kernel(program())
    for size in sizes:
        agree(kernel.at(**size))


def test_the_oracle_sees_a_wrong_count() -> None:
    """Otherwise all of the above would prove nothing."""
    kernel = pm.Kernel(three_axes(), n=4)
    done = agree(kernel)
    assert done.operations == {("madd", "float32"): 64}
    assert done.accesses(direction="load") == 128
    assert done.accesses(variable="a") == 64


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
        ("fmin(x[i], y[i])", {"fmin": 1}),
        ("abs(x[i])", {"abs": 1}),
        ("x[i] if x[i] > y[i] else y[i] + 1", {"compare": 1, "add": 1}),
    ],
)
def test_operations_of_float32_expressions(expression: str, operations: dict[str, int]) -> None:
    assert expression_counts(expression) == {(kind, "float32"): times for kind, times in operations.items()}


@pytest.mark.parametrize(
    ("expression", "operations"),
    [
        ("d[i]*e[i] + d[i]", {("madd", "float64"): 1}),
        ("h[i]*h[i] + h[i]", {("madd", "float16"): 1}),
        ("k[i]*k[i] + k[i]", {("madd", "int32"): 1}),
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
    """Images n x n, filters 5 x 5, valid part (n-4)^2: 25 multiply-adds an output, loads of image and filter alike."""
    program = make(
        ["{[i, j]: 0 <= i, j < n - 4}", "{[p, q]: 0 <= p, q < 5}"],
        "o[i, j] = sum([p, q], image[i + p, j + q] * filter[p, q])",
        {"image": "n, n", "filter": "5, 5", "o": "n - 4, n - 4"},
        assumptions="n >= 5",
    )
    kernel, n = pm.Kernel(program, n=20), 20
    outputs = (n - 4) ** 2
    expected = {
        "f_op_float32_madd": 25 * outputs,
        "f_op": 25 * outputs,
        "f_mem_access_load": 50 * outputs,
        "f_mem_access_var:image_ratio:16": 25 * outputs,  # 6400 accesses of 400 elements
        "f_mem_access_var:filter_ratio:256": 25 * outputs,  # 6400 accesses of 25 elements
        "f_mem_access_store": outputs,
    }
    assert {name: counted(name, kernel) for name in expected} == expected


def test_triangular_nest_by_hand() -> None:
    program = make("{[i, j]: 0 <= i < n and 0 <= j <= i}", "o[i, j] = a[i, j]*2 + 1", {"a, o": "n, n"})
    for n in (1, 2, 7, 100, 99_999):
        assert counted("f_op_float32_madd", pm.Kernel(program), n=n) == n * (n + 1) // 2


def test_work_that_does_not_use_an_axis_is_repeated_along_it() -> None:
    """With a grid of n/4 groups of 4 and j along l.0 only in the second instruction, all 4 repeat the first."""
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


# --- what has no count


def indirect() -> pm.Kernel:
    program = make(
        "{[i]: 0 <= i < n}",
        "o[i] = a[idx[i]] + b[i]",
        {"a, b, o": "n", "idx": {"shape": "n", "dtype": np.int32}},
    )
    return pm.Kernel(lp.split_iname(program, "i", 4, outer_tag="g.0", inner_tag="l.0"), n=8)


def test_indirect_accesses_are_counted_and_their_index_too() -> None:
    assert counted("f_mem_access_global_float32_load", indirect()) == 16
    assert counted("f_mem_access_global_int32_load_lstrides:{0:1}_afr:1", indirect()) == 8


@pytest.mark.parametrize(
    ("name", "lacking"),
    [
        ("f_mem_access_global_float32_load_lstrides:{0:1}", "a constant stride along axis 0"),
        ("f_mem_access_global_float32_load_gstrides:{0:4}", "a constant stride along axis 0"),
        ("f_mem_access_global_float32_afr:1", "a footprint"),
    ],
)
def test_an_indirect_access_has_no_pattern(name: str, lacking: str) -> None:
    with pytest.raises(
        FeatureError, match=rf"'{name}' is not defined for the load 'a\[idx.*{lacking}.*exclude it by var"
    ):
        counted(name, indirect())


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("f_mem_access_var:b_lstrides:{0:1}", 8),
        ("f_mem_access_int32_lstrides:{0:1}", 8),
        ("f_mem_access_store_afr:1", 8),
        ("f_mem_access_load_lstrides:{0:1;1:3}", 0),
        ("f_mem_access_load_lstrides:{0:1}_gstrides:{1:3}", 0),
    ],
)
def test_an_unknown_pattern_matters_only_where_all_other_conditions_hold(name: str, count: int) -> None:
    assert counted(name, indirect()) == count


def test_an_index_held_in_a_register_has_no_known_stride() -> None:
    program = make(
        "{[i]: 0 <= i < n}",
        "<> k = idx[i]\no[i] = a[k]",
        {"a, o": "n", "idx": {"shape": "n", "dtype": np.int32}},
    )
    kernel = pm.Kernel(lp.split_iname(program, "i", 4, outer_tag="g.0", inner_tag="l.0"), n=8)
    with pytest.raises(FeatureError, match="constant stride along axis 0"):
        counted("f_mem_access_var:a_lstrides:{0:0}", kernel)


@pytest.mark.parametrize("index", ["i*i", "(i % 3)", "(i // 2)"])
def test_a_nonlinear_index_has_no_stride(index: str) -> None:
    program = make("{[i]: 0 <= i < n}", f"o[i] = a[{index}]", {"a": "n*n", "o": "n"})
    kernel = pm.Kernel(tagged(program, i="g.0"), n=8)
    assert counted("f_mem_access_var:a", kernel) == 8
    with pytest.raises(FeatureError, match="constant stride along axis 0"):
        counted("f_mem_access_var:a_gstrides:{0:1}", kernel)


def with_callee() -> Any:
    callee = lp.make_function("{[i]: 0 <= i < 4}", "y[i] = 2*x[i]", name="twice")
    caller = lp.make_kernel(
        ["{[i]: 0 <= i < n}", "{[l, m]: 0 <= l, m < 4}"],
        "[l]: o[i, l] = twice([m]: a[i, m])",
        [lp.GlobalArg("a, o", np.float32, shape="n, 4"), lp.ValueArg("n", np.int32)],
        name="caller",
    )
    return lp.merge([caller, callee])


def with_c_instruction() -> Any:
    return lp.make_kernel(
        "{[i]: 0 <= i < n}",
        [lp.CInstruction("i", "o[i] = 2;", assignees="o[i]", id="raw")],
        [lp.GlobalArg("o", np.float32, shape="n"), lp.ValueArg("n", np.int32)],
        lang_version=(2018, 2),
    )


def with_bound_from_data() -> Any:
    return make(
        ["{[i]: 0 <= i < n}", "{[j]: 0 <= j < length}"],
        "for i\n<> length = lengths[i]\no[i] = sum(j, a[j])\nend",
        {"a, o": "n", "lengths": {"shape": "n", "dtype": np.int32}},
    )


@pytest.mark.parametrize(
    ("program", "words"),
    [
        (with_callee, r"'caller' calls other kernels \(twice\), which are not counted; inline them"),
        (with_c_instruction, "'raw' is CInstruction, whose work can't be seen; write it as Loopy assignments"),
        (with_bound_from_data, "depend on length, known only when the kernel runs; make the bound a size"),
        (
            lambda: make("{[i]: 0 <= i < n}", "if a[i] > 0\no[i] = 1 {id=set}\nend", {"a, o": "n"}),
            r"'set' runs only if a\[i\] > 0, which depends on data; only affine",
        ),
        (
            lambda: make("{[i]: 0 <= i < n}", "o[i] = mystery(o[i])", {"o": "n"}),
            "unknown; call only functions that Loopy knows|Loopy cannot analyse",
        ),
        (lambda: make("{[i]: 0 <= i}", "o[i] = 1", {"o": "n"}), "bound the loop|Loopy cannot analyse"),
    ],
)
def test_what_cannot_be_counted_says_why(program: Any, words: str) -> None:
    with pytest.raises(CountingError, match=words) as caught:
        _ = pm.Kernel(program()).counts
    assert "\n" not in str(caught.value)


# --- whole arrays of sizes


@generated
@given(nests())
def test_arrays_of_sizes_give_what_single_sizes_give(nest: Nest) -> None:
    kernel = pm.Kernel(nest.program())
    n = np.arange(0, 12, nest.multiple("i"))[:, None]
    m = np.arange(0, 12, nest.multiple("j"))[None, :]
    counts = kernel.counts
    quantities = [o.executions for o in counts.operations] + [counts.work_groups, counts.work_items, counts.barriers]
    quantities += [q for a in counts.accesses for q in (a.executions, a.footprint) if q is not None]
    for quantity in quantities:
        whole = np.broadcast_to(quantity(kernel.bind({"n": n, "m": m})), (n.size, m.size))
        single = [[float(quantity(kernel.bind({"n": a, "m": b}))) for b in m.flat] for a in n.flat]
        assert whole.tolist() == single


def test_large_counts_are_exact_whole_numbers() -> None:
    variant = {"dtype": "float32", "lsize_0": "16", "lsize_1": "16", "tiled_prefetch": "False", "groups_fit": "False"}
    kernel = pm.Kernel(SquareMatmul().program(variant))
    sizes = np.array([99_991, 100_000, 131_072])
    madds = next(o for o in kernel.counts.operations if o.kind == "madd").executions(kernel.bind({"n": sizes}))
    assert [int(m) for m in madds] == [int(n) ** 3 for n in sizes]


def test_a_count_in_pieces_is_right_on_both_sides_of_the_edge() -> None:
    program = make("{[i]: 0 <= i < n}", "if i >= 10\no[i] = a[i] + 1\nend", {"a, o": "n"})
    kernel = pm.Kernel(program)
    adds = kernel.counts.operations[0].executions
    sizes = np.array([0, 1, 9, 10, 11, 25])
    assert adds(kernel.bind({"n": sizes})).tolist() == [max(0, n - 10) for n in sizes]
    assert counted("f_mem_access_load_afr:1", kernel, n=5) == 0


def test_counting_needs_no_opencl_driver(tmp_path: Path) -> None:
    script = (
        "import perfmodel as pm\n"
        "from perfmodel.generators.matmul import SquareMatmul\n"
        "variant = dict(dtype='float32', lsize_0='16', lsize_1='16', tiled_prefetch='True', groups_fit='True')\n"
        "print(pm.feature('f_op_float32_madd').eval(pm.Kernel(SquareMatmul().program(variant), n=32)))\n"
    )
    environment = {**os.environ, "OCL_ICD_VENDORS": str(tmp_path), "OPENCL_VENDOR_PATH": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "32768.0", done.stderr


def test_a_missing_counting_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    import islpy

    monkeypatch.delattr(islpy.Set, "card")
    with pytest.raises(KernelError, match="pip install --force-reinstall --no-deps islpy-barvinok"):
        _ = pm.Kernel(three_axes()).counts

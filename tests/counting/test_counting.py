"""Counts of generated and of special loop nests equal what the generated code does."""

from __future__ import annotations

import itertools
import math
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import loopy as lp
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import perfmodel as pm
from perfmodel.counting.counts import KernelCounts
from perfmodel.counting.quasipolynomial import Piece, QuasiPolynomial, Term
from perfmodel.generators.matmul import SquareMatmul
from tests import counting_oracle as oracle
from tests.counting_kernels import counted, make, tagged
from tests.covering import EXAMPLES, examples

WIDTH = 4  # of a sub-group: smaller than most work-groups here, so that some are partly active
generated = settings(
    max_examples=examples(10),
    derandomize=not EXAMPLES,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)


def at(sizes: Mapping[str, Any]) -> dict[str, Any]:
    """Returns sizes as `Kernel.bind` gives them, also those of empty launches."""
    return {name: np.asarray(size) for name, size in sizes.items()}


def agree(kernel: pm.Kernel) -> oracle.Tally:
    """Asserts that every count of the kernel equals the oracle's."""
    done, counts, sizes = oracle.tally_of(kernel), kernel.program.counts_for(WIDTH), at(kernel.sizes)
    local_size = oracle.launch_of(kernel).local_size
    groups_wide = -(-math.prod(local_size) // WIDTH)
    operations: Counter[tuple[str, str]] = Counter()
    for operation in counts.operations:
        times = operation.per_execution * float(operation.executions.workitem(sizes))
        operations[operation.kind, operation.dtype] += int(times)
    assert +operations == done.operations
    assert float(counts.barriers.workitem(sizes)) == done.barriers
    assert float(counts.barriers.workgroup(sizes)) * math.prod(local_size) == done.barriers
    assert counts.barriers.subgroup is not None
    assert float(counts.barriers.subgroup(sizes)) * math.prod(local_size) == done.barriers * groups_wide
    assert float(counts.work_groups(sizes)) == done.work_groups
    assert float(counts.work_items(sizes)) == done.work_items
    assert float(counts.launches(sizes)) == 1

    def described(access: Any) -> tuple[Any, ...]:
        return access.variable, access.direction, access.space, access.dtype

    rank = len(oracle.launch_of(kernel).local_size)
    ours: dict[Any, list[Any]] = {}
    for access in counts.accesses:
        executions = int(access.executions.workitem(sizes))
        if executions and access.space != "private":
            assert access.footprint is not None
            assert access.executions.subgroup is not None
            wider = int(access.executions.subgroup(sizes)), int(access.executions.workgroup(sizes))
            strides = [
                [int(stride(sizes)) if (stride := by_axis.get(axis)) else 0 for axis in range(rank)]
                for by_axis in (access.local_strides, access.group_strides)
            ]
            key = (*described(access), executions, *wider, int(access.footprint(sizes)))
            ours.setdefault(key, []).append(strides)
    theirs: dict[Any, list[Any]] = {}
    for site in done.sites:
        if site.executions:
            seen = site.strides("local", rank), site.strides("group", rank)
            wider = site.subgroups(local_size, WIDTH), site.groups
            theirs.setdefault((*described(site), site.executions, *wider, site.footprint), []).append(seen)
    assert {k: len(v) for k, v in ours.items()} == {k: len(v) for k, v in theirs.items()}
    for key, found in ours.items():
        assert any(map(same_strides, itertools.repeat(found), itertools.permutations(theirs[key]))), key
    assert_footprints(counts, sizes, done)
    return done


def assert_footprints(counts: KernelCounts, sizes: Any, done: oracle.Tally) -> None:
    """Asserts what all accesses of an array touch together, by direction."""
    for footprint in counts.footprints:
        sites = [s for s in done.sites if s.variable == footprint.variable]
        chosen = [s for s in sites if footprint.direction in ("any", s.direction)]
        touched = {address for site in chosen for address in site.addresses.values()}
        assert footprint.elements is not None
        assert float(footprint.elements(sizes)) == len(touched), footprint


def same_strides(ours: Any, seen: Any) -> bool:
    """Returns True if strides agree wherever the run has shown one (no neighbours, no stride)."""
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
        st.sampled_from(["{0}", "{0} + {1}", "{0} - {1}", "{0} * {1}", "{0} / {1}", "0.1*{0} + {1}", "({0} + {1})*{2}"])
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
    return Nest(
        inner=inner, statements=tuple(statements), orders=orders, splits=tuple(splits), divisible=draw(st.booleans())
    )


@settings(generated, max_examples=examples(12))
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
    """Returns the slides' kernel: shapes and offsets are left to Loopy."""
    program = lp.make_kernel("{[i, j]: 0 <= i, j < n}", "a[i, j] = b[j, i]", lang_version=(2018, 2))
    return lp.add_dtypes(program, {"a": np.float32, "b": np.float32})


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


# --- whole arrays of sizes


@generated
@given(nests())
def test_arrays_of_sizes_give_what_single_sizes_give(nest: Nest) -> None:
    kernel = pm.Kernel(nest.program())
    n = np.arange(0, 12, nest.multiple("i"))[:, None]
    m = np.arange(0, 12, nest.multiple("j"))[None, :]
    counts = kernel.counts
    executions = [counts.barriers, *(o.executions for o in counts.operations), *(a.executions for a in counts.accesses)]
    quantities = [count for e in executions for count in (e.workitem, e.subgroup, e.workgroup) if count is not None]
    quantities += [counts.work_groups, counts.work_items, *(a.footprint for a in counts.accesses if a.footprint)]
    for quantity in quantities:
        whole = np.broadcast_to(quantity(at({"n": n, "m": m})), (n.size, m.size))
        single = [[float(quantity(at({"n": a, "m": b}))) for b in m.flat[::3]] for a in n.flat[::2]]
        assert whole[::2, ::3].tolist() == single


def test_large_counts_are_exact_whole_numbers() -> None:
    variant = {"dtype": "float32", "lsize_0": "16", "lsize_1": "16", "tiled_prefetch": "False", "groups_fit": "False"}
    kernel = pm.Kernel(SquareMatmul().program(variant))
    sizes = np.array([99_991, 100_000, 131_072])
    madds = next(o for o in kernel.counts.operations if o.kind == "madd").executions.workitem(at({"n": sizes}))
    assert [int(m) for m in madds] == [int(n) ** 3 for n in sizes]


def test_terms_that_cancel_leave_an_exact_count() -> None:
    """Barvinok's interpolation can give terms far above 2^53 for a small count."""
    big = 3 * 10**40
    terms = (Term(big + 3, (("n", 2),), ()), Term(-big, (("n", 2),), ()), Term(3, (("n", 1),), ()))
    count = QuasiPolynomial((Piece(((),), terms, 3),), "")
    assert count({"n": np.array([0, 5, 7, 100_000])}).tolist() == [0, 30, 56, 100_000 * 100_001]
    assert float(count({"n": np.asarray(7)})) == 56


def test_a_count_in_pieces_is_right_on_both_sides_of_the_edge() -> None:
    program = make("{[i]: 0 <= i < n}", "if i >= 10\no[i] = a[i] + 1\nend", {"a, o": "n"})
    kernel = pm.Kernel(program)
    adds = kernel.counts.operations[0].executions.workitem
    sizes = np.array([0, 1, 9, 10, 11, 25])
    assert adds(at({"n": sizes})).tolist() == [max(0, n - 10) for n in sizes]
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

"""Branches as static counts see them, against hand counts and against emulations of all work-groups."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any

import loopy as lp
import numpy as np
import pytest

import perfmodel as pm
from perfmodel.basics.errors import CountingError, FeatureError, OutOfBudgetError
from perfmodel.counting.counts import BranchCount, KernelCounts
from perfmodel.opencl_c import lowered as low
from perfmodel.opencl_c.emulation import Emulation, Machine
from tests.opencl_c.kernel_files import Launch, launches
from tests.opencl_c.tally import SUBGROUP, arguments_of, everything, kernel_of

ARGUMENTS = {"o": "n", "a": "n"}


def made(body: str, local_size: int = 64, n: int = 200, statistics: Mapping[str, float] | None = None) -> pm.Kernel:
    """Returns a kernel of n work-items, rounded up to whole groups, with their numbers x in the launch and l in the
    group."""
    source = f"""__kernel void f(__global int *o, __global const int *a, int n) {{
    int x = get_global_id(0), l = get_local_id(0);
    {body}
    }}"""
    padded = f"(n + {local_size - 1}) // {local_size} * {local_size}"
    return pm.Kernel.from_opencl(source, "f", padded, local_size, ARGUMENTS, statistics=statistics, n=n)


def at(quantity: Any, kernel: pm.Kernel) -> int | None:
    return None if quantity is None else int(quantity(kernel.bind({})))


def numbers(kernel: pm.Kernel, subgroup_size: int = 32) -> list[tuple[str, int | None, int | None, str, int | None]]:
    """Returns, by branch, kind, met and taken by work-items, divergence, and how often sub-groups parted."""
    return [
        (
            b.kind,
            at(b.met and b.met.workitem, kernel),
            at(None if b.taken is None else b.taken.workitem, kernel),
            b.divergence,
            at(b.divergent, kernel),
        )
        for b in kernel.counts_for(subgroup_size).branches
    ]


def test_the_guard_of_the_last_group() -> None:
    """200 items in 4 groups of 64, so 8 sub-groups of 32: the seventh has 8 items in the array, the eighth none."""
    kernel = made("if (x < n) o[x] = 1;")
    assert numbers(kernel) == [("if", 256, 200, "by work-item", 1)]
    (branch,) = kernel.counts_for(32).branches
    assert (at(branch.met and branch.met.subgroup, kernel), at(branch.taken and branch.taken.subgroup, kernel)) == (
        8,
        7,
    )
    assert branch.text == "kernel.cl:3:5"
    assert numbers(kernel.at(n=192)) == [("if", 192, 192, "by work-item", 0)]


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("n > 100", ("if", 256, 256, "none", 0)),
        ("get_group_id(0) == 1", ("if", 256, 64, "none", 0)),
        ("l < 32", ("if", 256, 128, "none", 0)),  # whole sub-groups
        ("l < 40", ("if", 256, 160, "by work-item", 4)),
        ("l == 0", ("if", 256, 4, "by work-item", 4)),
        ("l % 2 == 0", ("if", 256, 128, "by work-item", 8)),
        ("(l / 32) % 2 == 0", ("if", 256, 128, "none", 0)),
        ("x == 77", ("if", 256, 1, "by work-item", 1)),
    ],
)
def test_conditions_by_hand(condition: str, expected: tuple[object, ...]) -> None:
    assert numbers(made(f"if ({condition}) o[l] = 1;")) == [expected]


def test_without_subgroups_work_groups_decide() -> None:
    kernel = made("if (l < 32) o[x] = 1; if (get_group_id(0) == 1) o[x] = 2;")
    branches = kernel.counts.branches
    assert [(b.divergence, b.divergent) for b in branches] == [("by work-item", None), ("none", None)]


def test_a_loop_is_asked_once_more_than_it_turns() -> None:
    """Item l does 64 - l iterations: of the sub-groups 0-31 and 32-63, each is asked as long as its first item goes on,
    and once more, and parts whenever some have ended and others not: 31 times."""
    kernel = made("for (int k = l; k < 64; k++) o[k] = x;", n=64)
    (branch,) = kernel.counts_for(32).branches
    turns = 64 * 65 // 2
    assert numbers(kernel) == [("loop", turns + 64, turns, "by work-item", 2 * 31)]
    assert (at(branch.met and branch.met.subgroup, kernel), at(branch.taken and branch.taken.subgroup, kernel)) == (
        65 + 33,
        64 + 32,
    )
    assert numbers(made("for (int k = 0; k < n; k++) o[k] = x;", n=64)) == [("loop", 65 * 64, 64 * 64, "none", 0)]
    assert numbers(made("int k = 0; do { o[k] = x; k++; } while (k < n);", n=64)) == [
        ("loop", 64 * 64, 63 * 64, "none", 0)
    ]


def test_turn_by_turn_there_is_one_for_each() -> None:
    kernel = made("for (int s = 32; s > 0; s /= 2) if (l < s) o[l] += o[l + s];", n=64)
    found = Counter((kind, divergence) for kind, _, _, divergence, _ in numbers(kernel))
    assert found == {("loop", "none"): 7, ("if", "none"): 1, ("if", "by work-item"): 5}
    assert pm.feature("f_branch_divergent").eval(kernel) == 5
    assert pm.feature("f_branch_loop_granularity:workgroup").eval(kernel) == 7
    assert pm.feature("f_branch_if_granularity:subgroup").eval(kernel) == 6 * 2
    assert pm.feature("f_branch").eval(kernel) == (7 + 6) * 64


def test_choices_are_branches_where_they_skip_something() -> None:
    found = numbers(made("if (x < n && a[x] > 3) o[x] = 1;", statistics={"if_3": 0.25}))
    assert found == [
        ("choice", 256, 200, "by work-item", 1),
        ("if", 256, 64, "by data", None),
    ]


def test_what_data_decide() -> None:
    body = "int s = 0; for (int k = 0; k < a[x]; k++) if (l < 8) s += a[k]; if (s > 5) s = 7; o[x] = s;"
    found = numbers(made(body, n=64, statistics={"k": 3}))
    assert found == [
        ("loop", 4 * 64, 3 * 64, "by data", None),
        ("if", 3 * 64, 3 * 8, "by work-item", None),  # statistics say how often, and nothing of who
        ("if", 64, None, "by data", None),  # it changes no count, so nobody has to say how often
    ]


def test_divergence_of_data_is_no_feature() -> None:
    kernel = made("if (a[x] > 3) o[x] = 1;", statistics={"if_3": 0.5})
    assert pm.feature("f_branch").eval(kernel) == 256
    with pytest.raises(FeatureError, match=r"the if at kernel.cl:3:5, which depends on data; perfmodel.emulate counts"):
        pm.feature("f_branch_divergent").eval(kernel)
    assert pm.feature("f_branch_divergent_loop").eval(kernel) == 0


def test_names_of_features() -> None:
    kernel = made("if (l < 40) o[x] = 1;", local_size=128, n=128)
    assert pm.feature("f_branch_divergent").eval(kernel) == 1
    assert pm.feature("f_branch_divergent_granularity:subgroup64").eval(kernel) == 1
    assert pm.feature("f_branch_divergent_if_granularity:subgroup8").eval(kernel) == 0
    with pytest.raises(FeatureError, match="is of sub-groups"):
        pm.feature("f_branch_divergent_granularity:workitem")
    with pytest.raises(FeatureError, match="did you mean 'choice'"):
        pm.feature("f_branch_choise")


def test_predicates_of_loopy_programs() -> None:
    """64 x 64 work-items in groups of 32 x 1: five of every first group's work-items, and half of those of data."""
    program = lp.make_kernel(
        "{[i, j]: 0 <= i, j < n}",
        """
        o[i, j] = 1 {id=first, if=j < 5}
        p[i, j] = 2 {id=second, if=j < 5}
        q[i, j] = 3 {id=third, if=a[j] > 0}
        """,
        [
            lp.GlobalArg("o, p, q", np.float32, shape="n, n"),
            lp.GlobalArg("a", np.float32, shape="n"),
            lp.ValueArg("n", np.int32),
        ],
        assumptions="n >= 32 and n mod 32 = 0",
        lang_version=(2018, 2),
    )
    program = lp.tag_inames(lp.split_iname(program, "j", 32, outer_tag="g.0", inner_tag="l.0"), {"i": "g.1"})
    kernel = pm.Kernel(program, statistics={"third": 0.5}, n=64)
    assert sorted(numbers(kernel), key=str) == [
        ("if", 4096, 2048, "by data", None),
        ("if", 4096, 320, "by work-item", 64),
    ]
    assert not pm.Kernel(lp.make_kernel("{[i]: 0 <= i < 4}", "o[i] = i", lang_version=(2018, 2))).counts.branches


# --- emulations


def by_place(branches: Mapping[tuple[str, str], list[Any]]) -> dict[tuple[str, str], tuple[int, ...]]:
    return {key: tuple(map(int, np.sum(found, axis=0))) for key, found in branches.items()}


def seen(run: Emulation) -> dict[tuple[str, str], tuple[int, ...]]:
    """Returns how often sub-groups met the branches of one kind and line, and how often they went both ways."""
    found: dict[tuple[str, str], list[Any]] = defaultdict(list)

    def walk(body: tuple[low.Statement, ...]) -> None:
        for statement in body:
            match statement:
                case low.If():
                    kind = "choice" if statement.is_choice else "if"
                    found[kind, str(statement.place)].append(run.branches[:, statement.number].sum(axis=0))
                    walk((*statement.then, *statement.otherwise))
                case low.Loop():
                    found["loop", str(statement.place)].append(run.branches[:, statement.number].sum(axis=0))
                    walk((*statement.test, *statement.body, *statement.step))
                case low.Scope():
                    walk(statement.body)

    walk(run.kernel.body)
    return by_place(found)


def expected(counts: KernelCounts, kernel: pm.Kernel) -> dict[tuple[str, str], tuple[int, ...]]:
    """Returns the same numbers from static counts, without the branches that depend on data."""
    found: dict[tuple[str, str], list[Any]] = defaultdict(list)
    unknown = {(b.kind, b.text) for b in counts.branches if b.divergent is None or not is_whole(b, kernel)}
    for branch in counts.branches:
        if (branch.kind, branch.text) not in unknown:
            found[branch.kind, branch.text].append(
                (at(branch.met and branch.met.subgroup, kernel), at(branch.divergent, kernel))
            )
    return by_place(found)


def is_whole(branch: BranchCount, kernel: pm.Kernel) -> bool:
    assert branch.met is not None
    assert branch.met.subgroup is not None
    return float(branch.met.subgroup(kernel.bind({}))).is_integer()


def agree(kernel: pm.Kernel, run: Emulation, counts: KernelCounts) -> int:
    """Asserts that static counts and emulation agree; returns on how many branches."""
    known, emulated = expected(counts, kernel), seen(run)
    assert known == {key: emulated[key] for key in known}
    assert {key for key, (met, _) in emulated.items() if met} <= {(b.kind, b.text) for b in counts.branches}
    return len(known)


DATA_DECIDE = frozenset(
    f"{file}-{kernel}"
    for file, kernel in (
        *((name, name) for name in ("bitonic_sort", "commas", "early_returns", "falling_through", "floyd_warshall")),
        *((name, name) for name in ("histogram", "interpreter", "life", "mandelbrot", "spmv", "unrolled")),
        *(("do_while", "collatz"), ("jumps", "jumps"), ("jumps_back", "jumps_back"), ("atomics_2", "atomics_2")),
        ("private_arrays", "medians"),
    )
)
"""Kernels of which no count is known without statistics of their data."""
STRUCT_BY_VALUE = "by_value-by_value"


@pytest.mark.parametrize(
    "launch", [each for each in launches() if not each.needs and str(each) != STRUCT_BY_VALUE], ids=str
)
def test_kernels_of_files(launch: Launch) -> None:
    kernel = kernel_of(launch)
    if str(launch) in DATA_DECIDE:
        with pytest.raises(CountingError, match="data"):
            kernel.program.counts_for(SUBGROUP, kernel.sizes)
        return
    run = everything(kernel.as_opencl().program.lowered, launch.global_size, launch.local_size, arguments_of(launch))  # type: ignore[attr-defined]
    assert agree(kernel, run, kernel.counts_for(SUBGROUP)) == len(seen(run))


BODIES = (
    "if (x < n) o[x] = a[x]; else if (l > 3) o[l] = 1;",
    "for (int k = l; k < n; k += 64) o[k] = a[k];",
    "for (int k = x; k < n; k += 64) { if (k < 30) continue; if (k > 150) break; o[k] = 1; }",
    "if (x >= n) return; for (int k = 0; k <= x; k++) if (k > l) o[k] = 1;",
    "int k = l; do { o[k] = 1; k += 7; } while (k < 40);",
    "for (int i = 0; i < 4; i++) for (int j = i; j < l; j++) o[j] += (j & 1) ? a[j] : 0;",
    "for (int s = 1; s < 64; s *= 2) if (l % (2 * s) == 0) o[l] += o[l + s];",
    "switch (l & 3) { case 0: o[x % n] = 1; break; case 1: o[l] = 2; case 2: o[l] = 3; }",
    "o[l] = x < n && a[x] > 0 || l == 5;",
    "while (1) { if (l < 3) break; o[l] = 1; if (l < 40) break; l -= 40; }",
)


@pytest.mark.parametrize("n", [64, 128, 200])
@pytest.mark.parametrize("body", BODIES)
def test_branches_are_those_of_the_emulation(body: str, n: int) -> None:
    kernel = made(body, n=n)
    try:
        kernel.program.counts_for(8, kernel.sizes)
    except CountingError:
        kernel = kernel.as_observed(groups="all")
    counts = kernel.counts_for(8)
    run = pm.emulate(kernel, groups="all", machine=Machine(subgroup_size=8)).emulation
    assert agree(kernel, run, counts)


@pytest.mark.parametrize("shape", [(16, 4), (4, 16), (8, 3), (3, 5), (2, 3, 4), (5, 7), (1, 24), (12, 2)], ids=str)
def test_groups_of_several_axes(shape: tuple[int, ...]) -> None:
    """Sub-groups of 8 are parts of rows, whole rows, or rows torn apart."""
    source = """__kernel void f(__global int *o, int n) {
        int x = get_local_id(0), y = get_local_id(1), z = get_local_id(2);
        if (get_global_id(0) < n) o[x] = 1;
        if (y < 2) o[x] = 2;
        if (x + 2 * y < 7) o[x] = 3;
        if (x == 1 && z == 0) o[x] = 4;
        for (int k = y; k < 5; k += 2) o[k] = x;
    }"""
    kernel = pm.Kernel.from_opencl(source, "f", [2 * size for size in shape], shape, {"o": 64}, n=7)
    run = pm.emulate(kernel, groups="all", machine=Machine(subgroup_size=8)).emulation
    assert agree(kernel, run, kernel.counts_for(8)) == len(seen(run))


def test_what_is_too_hard_for_all_sizes_is_counted_at_its_own() -> None:
    kernel = made(
        "for (int k = x; k < n; k += 100) { if (k % 3 == 0) continue; if (k > 150) break; o[k] = 1; }"
    ).with_budget(0.1)
    with pytest.raises(OutOfBudgetError):
        kernel.program.counts_for(8)
    assert all(branch.met is not None and branch.taken is not None for branch in kernel.counts_for(8).branches)


@pytest.mark.parametrize("condition", ["abs(u) + abs(v) == 2", "u * u + v * v < r", "u * v > 1", "abs(u - v) < 2"])
def test_windows_that_are_no_boxes_are_counted(condition: str) -> None:
    source = f"""kernel void window(global const float *a, global float *b, const int r) {{
    int i = get_global_id(0);
    float sum = 0;
    for (int u = -3; u <= 3; u++)
        for (int v = -2; v <= 2; v++)
            if ({condition}) sum += a[i + 3 + u + (v + 2) * 100];
    b[i] = sum;
}}"""
    made = pm.Kernel.from_opencl(source, "window", 4096, 64, {"a": 8192, "b": 4096})
    loads = next(each for each in made.counts_at({}).accesses if each.variable == "a")
    for r in (0, 1, 5, 100):
        inside = sum(eval(condition, {"u": u, "v": v, "r": r}) for u in range(-3, 4) for v in range(-2, 3))
        assert loads.executions.workitem({"r": r}) == 4096 * inside

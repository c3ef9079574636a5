"""The class of an access is what its work-items' addresses show, one by one."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence

import loopy as lp
import numpy as np
import pytest

import perfmodel as pm
from perfmodel.basics.errors import FeatureError
from perfmodel.counting.counts import ACCESS_CLASSES
from tests.counting_kernels import make


def kernel_of(
    body: str, global_size: Sequence[int | str] = ("n",), local_size: Sequence[int] = (16,), n: int = 96
) -> pm.Kernel:
    """Returns a kernel with the work-item's coordinates x, y (in the launch), lx, ly (in its group), gx, gy (of its
    group)."""
    source = f"""
    __kernel void f(__global float *o, __global const float *a, __global const int *index, int n) {{
        __local float tile[256];
        int x = get_global_id(0), y = get_global_id(1), lx = get_local_id(0), ly = get_local_id(1);
        int gx = get_group_id(0), gy = get_group_id(1);
        {body}
    }}"""
    arrays: dict[str, int | str] = {"o": "n * n", "a": "n * n", "index": "n"}
    return pm.Kernel.from_opencl(source, "f", global_size, local_size, arrays, n=n)


def classes(kernel: pm.Kernel, variable: str = "a") -> list[str]:
    return [access.pattern for access in kernel.program.counts_for().accesses if access.variable == variable]


@pytest.mark.parametrize(
    ("index", "expected"),
    [
        # one address for all
        ("0", "constant"),
        ("n - 1", "constant"),
        ("gx", "constant"),
        ("gx & 3", "constant"),
        # neighbours beside each other
        ("x", "continuous"),
        ("x + 7", "continuous"),
        ("n - 1 - x", "continuous"),
        ("gx * n + lx", "continuous"),
        ("x % 16 + 32 * gx", "continuous"),  # the remainder is lx
        ("max(x - 1, 0)", "continuous"),  # the case 0 holds for one work-item
        ("(x & 31) + gx", "continuous"),  # every group has a window of its own
        # a window that all read again
        ("x & 31", "interval"),
        ("(x + 454) & 31", "interval"),
        ("x % n", "interval"),
        ("5 * x % n", "interval"),
        ("(44190 * (20 + x)) % n * n + 3", "interval"),  # Pöppl & Herz: matrix[... % HEIGHT][1094 % WIDTH]
        ("x % (n + 1)", "interval"),
        ("n + (x & 31) * 4", "interval"),
        ("lx", "interval"),
        ("x % 16", "interval"),
        # two and two
        ("x / 2", "identical"),
        ("x >> 1", "identical"),
        ("(x + 1) / 2 + n", "identical"),
        ("n - x / 2", "identical"),
        # all else
        ("2 * x", "complex"),
        ("x * n", "complex"),
        ("lx * n", "complex"),
        ("x / 4", "complex"),
        ("x / 2 * 2", "complex"),
        ("x * x", "complex"),
        ("index[x]", "complex"),
        ("(index[x] & 7)", "complex"),
        ("min(x, 20)", "complex"),  # beside each other, and further on all the same
    ],
)
def test_classes_by_hand(index: str, expected: str) -> None:
    assert classes(kernel_of(f"o[x] = a[{index}];")) == [expected]


@pytest.mark.parametrize(
    ("index", "expected"),
    [
        ("y * n + x", "continuous"),
        ("x * n + y", "complex"),
        ("y * n", "constant"),  # a row of the group has one address
        ("y", "constant"),
        ("y * n + x / 2", "identical"),
        ("lx + 8 * ly", "interval"),
        ("(y % n) * n + (x & 15)", "interval"),
        ("(y % 4) * 4 + x % 4", "interval"),
        ("y * n + (x & 15)", "continuous"),  # another window for every y
        ("gy * n + lx", "continuous"),
    ],
)
def test_groups_of_two_axes(index: str, expected: str) -> None:
    assert classes(kernel_of(f"o[y * n + x] = a[{index}];", ("n", "n"), (8, 4))) == [expected]


def test_the_row_lies_along_the_first_axis_with_several_work_items() -> None:
    kernel = kernel_of("o[y] = a[y] + a[n - y] + a[x];", ("n", "n"), (1, 16))
    assert classes(kernel) == ["continuous", "continuous", "constant"]


def test_loops_stand_still() -> None:
    """The class of an access does not depend on how it moves on from iteration to iteration, nor on unrolling."""
    body = (
        "float s = 0; for (int k = 0; k < n; k++) s += a[k] + a[k * n + x] + a[x * n + k] + a[(x + k) % n]; o[x] = s;"
    )
    assert classes(kernel_of(body)) == ["constant", "continuous", "complex", "interval"]
    by_tens = "for (int k = x; k < n; k += 64) o[k] = a[k / 2];"
    assert classes(kernel_of(by_tens), "o") == ["continuous"]


def test_vectors_are_one_element() -> None:
    body = "float4 v = ((__global const float4 *)a)[n - x]; o[x] = vload4(x, a).x + v.y + a[4 * x];"
    assert classes(kernel_of(body)) == ["continuous", "continuous", "complex"]


def test_local_memory_has_windows_by_remainders_only() -> None:
    body = """
        tile[lx] = a[x];
        tile[2 * lx] = 1;
        o[x] = tile[3] + tile[15 - lx] + tile[(lx + n) & 7] + tile[lx / 2] + tile[gx + lx];
    """
    assert classes(kernel_of(body), "tile") == [
        *("continuous", "complex"),
        *("constant", "continuous", "interval", "identical", "continuous"),
    ]


def test_private_memory_has_none() -> None:
    counts = kernel_of("float t[4]; t[index[x] & 3] = a[x]; float s = t[1]; o[x] = s * 2;").counts
    assert {a.pattern for a in counts.accesses if a.space == "private"} == {""}


def test_where_only_one_of_a_row_takes_part_all_have_one_address() -> None:
    assert classes(kernel_of("if (lx == 3) o[x] = 1;"), "o") == ["constant"]
    assert classes(kernel_of("if (x < 40) o[x] = 1;"), "o") == ["continuous"]
    assert classes(kernel_of("if (lx % 2 == 0) o[x] = 1;"), "o") == ["continuous"]  # as if the others took part


def test_a_single_group_re_reads_nothing() -> None:
    assert classes(kernel_of("o[x] = a[lx] + a[x & 7];", (16,), (16,))) == ["continuous", "interval"]


def test_a_remainder_that_leaves_its_value_is_none() -> None:
    assert classes(kernel_of("o[x] = a[x % n];")) == ["interval"]
    at_its_size = kernel_of("o[x] = a[x % n];").program.counts_for(None, {"n": 96})
    assert [access.pattern for access in at_its_size.accesses] == ["continuous", "continuous"]


# --- one by one

INDICES = (
    *("0", "x", "x + y", "x - y + n", "n - x", "2 * x", "x / 2", "x / 3", "(x + 1) / 2", "x / 2 + y", "(x + y) / 2"),
    *("x * n + y", "y * n + x", "y * n - x + n", "y", "gx", "lx", "ly * 8 + lx", "lx / 2 + gx * 4", "x / 2 * 2"),
    *("max(x, 3)", "min(x, 5)", "max(x - 1, 0)", "x < n ? x : 0", "(x & 7) + 8 * gx", "(x & 3) + 8 * gx"),
    *("x - 2 * (x / 2) + x", "x + x / 8", "x / 8", "lx * lx", "x * y"),
)


@pytest.mark.parametrize("local_size", [(8, 2), (4, 4), (1, 8)], ids=str)
@pytest.mark.parametrize("index", INDICES)
def test_the_class_is_that_of_the_addresses(index: str, local_size: tuple[int, int]) -> None:
    n = 16
    (found,) = classes(kernel_of(f"o[y * n + x] = a[{index}];", ("n", "n"), local_size, n))
    expected = "complex"
    rows = list(addresses(index, n, local_size))
    steps = {b - a for row in rows for a, b in itertools.pairwise(row)}
    by_two = {b - a for row in rows for a, b in zip(row, row[2:], strict=False)}
    if steps == {0}:
        expected = "constant"
    elif steps in ({1}, {-1}):
        expected = "continuous"
    elif len(by_two) == 1 and by_two <= {1, -1} and steps == by_two | {0}:
        expected = "identical"
    if found == "interval":  # what one group reads, all others do
        count = len(rows) // ((n // local_size[0]) * (n // local_size[1]))
        groups = [sorted(rows[at : at + count]) for at in range(0, len(rows), count)]
        assert expected == "continuous"
        assert all(group == groups[0] for group in groups)
    elif "max" in index or "min" in index or "?" in index:
        assert found in (expected, "continuous")  # where cases meet, neighbours belong to none
    else:
        assert found == expected


def addresses(index: str, n: int, local_size: tuple[int, int]) -> Iterator[list[int]]:
    """Yields the elements of every row, group by group."""
    python = re.sub(r"(.*) < n \? x : 0", r"x if \1 < n else 0", index).replace("/", "//")
    width, height = local_size
    for gy, gx in itertools.product(range(n // height), range(n // width)):
        items = np.array([[(gx * width + lx, gy * height + ly) for lx in range(width)] for ly in range(height)])
        rows = items if width > 1 else items.swapaxes(0, 1)
        for row in rows:
            places = [{"x": int(x), "y": int(y), "lx": int(x) % width, "ly": int(y) % height} for x, y in row]
            yield [eval(python, {"max": max, "min": min}, {**p, "gx": gx, "gy": gy, "n": n}) for p in places]


# --- Loopy programs, and features


def program() -> pm.Kernel:
    """Returns a kernel of n x n work-items in groups of 8 x 4 along (j, i)."""
    made = lp.make_kernel(
        "{[i, j, k]: 0 <= i, j < n and 0 <= k < 4}",
        """
        o[i, j] = a[i, j] + b[j, i] + c[j % 5] + d[0] + e[i, j // 2] + f[i, 2*(j // 2)] + p[j % n] + q[index[j]] {id=o}
        r[i, j, k] = i + k {dep=o}
        """,
        [
            lp.GlobalArg("a, b, o", np.float32, shape="n, n"),
            lp.GlobalArg("e, f", np.float32, shape="n, n"),
            lp.GlobalArg("c, d, p, q", np.float32, shape="n"),
            lp.GlobalArg("index", np.int32, shape="n"),
            lp.GlobalArg("r", np.float32, shape="n, n, 4"),
            lp.ValueArg("n", np.int32),
        ],
        assumptions="n >= 8 and n mod 8 = 0",
        lang_version=(2018, 2),
    )
    made = lp.split_iname(made, "j", 8, outer_tag="g.0", inner_tag="l.0")
    made = lp.split_iname(made, "i", 4, outer_tag="g.1", inner_tag="l.1")
    return pm.Kernel(made, n=16)


def test_loopy_programs_have_the_same_classes() -> None:
    found = {access.variable: access.pattern for access in program().counts.accesses}
    by_class: dict[str, str] = {}
    for variable, pattern in sorted(found.items()):
        by_class[pattern] = f"{by_class.get(pattern, '')} {variable}".strip()
    assert by_class == {
        "continuous": "a index o",
        "constant": "d",
        "interval": "c p",
        "identical": "e",
        "complex": "b f q r",
    }


@pytest.mark.parametrize("variant", [["matmul_sq", "n:64"], ["reduction", "n:*"]], ids=str)
def test_a_program_and_its_opencl_form_agree(collection: pm.KernelCollection, variant: list[str]) -> None:
    kernel = collection.generate_kernels(variant)[0]

    def classified(of: pm.Kernel) -> list[tuple[str, str, str]]:
        accesses = [a for a in of.counts.accesses if a.space == "global"]
        return sorted((a.variable, a.direction, a.pattern) for a in accesses)

    assert classified(kernel) == classified(kernel.as_opencl())


def test_features_select_by_class() -> None:
    kernel = program()
    for name in ACCESS_CLASSES:
        chosen = [a for a in kernel.counts.accesses if a.pattern == name]
        expected = sum(int(a.executions.workitem({"n": 16})) for a in chosen)
        assert pm.feature(f"f_mem_access_class:{name}").eval(kernel) == expected > 0
    assert pm.feature("f_mem_bytes_global_load_class:interval").eval(kernel) == 2 * 4 * 256


def test_a_misspelt_class_is_named() -> None:
    with pytest.raises(FeatureError, match=r"did you mean 'interval'\? \(known: continuous, constant"):
        pm.feature("f_mem_access_class:intervals")
    with pytest.raises(FeatureError, match="needs a condition"):
        pm.feature("f_mem_access_class")


def test_a_flat_index_of_loopys_own_arrays() -> None:
    kernel = pm.Kernel(make("{[i]: 0 <= i < n}", "o[i] = a[n - 1 - i] + a[0]", {"a, o": "n"}), n=8)
    assert {a.pattern for a in kernel.counts.accesses} == {"constant"}  # its only work-item has one address at a time

"""``granularity:longest``: what all work-items together would do if each did as much as the one that does most."""

from __future__ import annotations

import loopy as lp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import perfmodel as pm
from tests.counting_kernels import counted, make


def sums(bounds: str, group: int, fits: bool = True) -> pm.Kernel:
    """Returns a kernel of o[i] = the sum of row i of a, from `bounds`, a work-item each."""
    program = make(
        f"{{[i, k]: 0 <= i < n and {bounds}}}",
        "o[i] = sum(k, a[i, k])",
        {"a": "n, n", "o": "n"},
        assumptions=f"n >= 1 and n mod {group} = 0" if fits else "n >= 1",
    )
    return pm.Kernel(lp.split_iname(program, "i", group, outer_tag="g.0", inner_tag="l.0"))


@settings(deadline=None, max_examples=25)
@given(
    st.sampled_from(
        ["0 <= k <= i", "i <= k < n", "0 <= k < n", "0 <= k < 7", "i <= k < i + 5 and k < n", "0 <= k < 2*i"]
    ),
    st.sampled_from([1, 4, 32, 60]),
    st.integers(1, 40),
    st.booleans(),
)
def test_of_rows_it_is_the_longest(bounds: str, group: int, groups: int, fits: bool) -> None:
    """Rows that grow, shrink or stay: the longest, found by hand, times the work-items of the launch."""
    n = group * groups if fits else group * groups - group // 2
    if n < 1:
        return
    ranges = {
        "0 <= k <= i": lambda i: i + 1,
        "i <= k < n": lambda i: n - i,
        "0 <= k < n": lambda i: n,
        "0 <= k < 7": lambda i: 7,
        "i <= k < i + 5 and k < n": lambda i: min(i + 5, n) - i,
        "0 <= k < 2*i": lambda i: 2 * i,
    }
    if not any(map(ranges[bounds], range(n))):  # of which Loopy makes no launch
        return
    kernel = sums(bounds, group, fits)
    longest = max(map(ranges[bounds], range(n))) * counted("f_work_items", kernel, n=n)
    load = "f_mem_access_global_load_var:a_granularity:longest"
    assert counted(load, kernel, n=n) == longest
    assert counted("f_mem_rounds_global_granularity:longest", kernel, n=n) == longest
    assert counted("f_op_float32_add_carried_granularity:longest", kernel, n=n) == longest
    assert longest >= counted("f_mem_rounds_global", kernel, n=n)


@pytest.mark.parametrize("around", ["", "if (i % 2 == 0)"])
def test_who_does_most_of_one_loop_may_do_least_of_the_next(around: str) -> None:
    """Every work-item goes through what lies left of it, then through what lies right of it: n - 1 in all."""
    source = f"""__kernel void others(__global const float *a, __global float *o, const int n) {{
        const int i = get_global_id(0);
        float s = 0;
        {around} {{
            for (int j = 0; j < i; j++) s += a[j];
            for (int j = i + 1; j < n; j++) s += 2 * a[j];
        }}
        o[i] = s;
    }}"""
    kernel = pm.Kernel.from_opencl(source, "others", "n", 64, {"a": "n", "o": "n"}, assumptions="n % 64 == 0", n=256)
    for feature in ("f_mem_rounds_global", "f_mem_access_global_load", "f_op_float32_add_carried"):
        longest = pm.feature(f"{feature}_granularity:longest").eval(kernel) / 256
        assert longest == pytest.approx(255, abs=2)  # each loop's own first and last, of which one does nothing


def test_it_is_a_function_of_arrays_of_sizes() -> None:
    kernel = sums("0 <= k <= i", 32)
    sizes = np.array([32, 64, 320])
    feature = pm.feature("f_op_float32_granularity:longest")
    values = feature.values(kernel.counts, kernel.bind({"n": sizes}))  # type: ignore[attr-defined]
    assert values.tolist() == (sizes**2).tolist()


def test_a_loop_that_depends_on_data_is_as_long_as_its_statistics_say() -> None:
    program = make(
        ["{[i]: 0 <= i < n}", "{[j]: 0 <= j < length}"],
        "for i\n<> length = lengths[i]\no[i] = sum(j, a[i, j])\nend",
        {"a": "n, n", "o": "n", "lengths": {"shape": "n", "dtype": np.int32}},
        assumptions="n >= 1 and n mod 32 = 0",
    )
    program = lp.split_iname(program, "i", 32, outer_tag="g.0", inner_tag="l.0")
    kernel = pm.Kernel(program, statistics={"j": 7.5}, n=64)
    assert pm.feature("f_mem_access_global_load_var:a_granularity:longest").eval(kernel) == 64 * 7.5


@pytest.mark.parametrize(
    ("variant", "each"),
    [("fetch:none", 1), ("fetch:group", 1), ("fetch:halo", 4)],
)
def test_guarded_loads_of_a_halo(variant: str, each: int, collection: pm.KernelCollection) -> None:
    """The work-items of a corner load four elements of a tile that is two points larger each way."""
    n = "n:112"
    (kernel,) = collection.generate_kernels(["finite_difference", variant, "lsizes:16x16", n])
    items = pm.feature("f_work_items").eval(kernel)
    assert pm.feature("f_mem_rounds_global_granularity:longest").eval(kernel) == each * items


def test_barriers_and_sub_groups_keep_their_meaning(collection: pm.KernelCollection) -> None:
    (kernel,) = collection.generate_kernels(["matmul_sq", "tiled_prefetch:True", "n:64"])
    for name in ("f_sync_barrier_local", "f_op_float32_madd", "f_mem_access_local_load"):
        assert counted(f"{name}_granularity:longest", kernel) == counted(name, kernel)
    assert counted("f_mem_rounds_global_granularity:subgroup", kernel) == counted("f_mem_rounds_global", kernel) / 32

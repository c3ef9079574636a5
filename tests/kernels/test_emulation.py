"""Emulation profiles of work-groups, and kernels whose data-dependent control they explain."""

from __future__ import annotations

import warnings
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import perfmodel as pm
from perfmodel.basics.errors import CountingError, EmulationError, KernelError
from perfmodel.counting.counts import CountingWarning
from perfmodel.opencl_c.emulation import Machine

SPMV = """
__kernel void spmv(__global const int *starts, __global const int *columns, __global const float *values,
                   __global const float *x, __global float *y, const int rows)
{
    const int row = get_global_id(0);
    if (row >= rows)
        return;
    float sum = 0;
    for (int k = starts[row]; k < starts[row + 1]; ++k)
        sum += values[k] * x[columns[k]];
    y[row] = sum > 4 ? 4 : sum;
}
"""
TRANSPOSE = """
__kernel void transpose(__global const float *a, __global float *b, const int n)
{
    __local float tile[16 * 16];
    const int lx = get_local_id(0), ly = get_local_id(1), gx = get_group_id(0), gy = get_group_id(1);
    tile[16 * ly + lx] = a[(16 * gy + ly) * n + 16 * gx + lx];
    barrier(CLK_LOCAL_MEM_FENCE);
    b[(16 * gx + ly) * n + 16 * gy + lx] = tile[16 * lx + ly];
}
"""


def spmv(rows: int = 40) -> tuple[pm.Kernel, dict[str, Any]]:
    """Returns a sparse matrix-vector product; row r has r % 4 entries."""
    lengths = np.arange(rows) % 4
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    entries = int(starts[-1])
    random = np.random.default_rng(1)
    arrays = {
        "starts": starts,
        "columns": random.integers(0, rows, entries).astype(np.int32),
        "values": random.uniform(0.5, 1.5, entries).astype(np.float32),
        "x": random.uniform(0.5, 1.5, rows).astype(np.float32),
    }
    args: dict[str, int | str] = {"starts": "rows + 1", "columns": entries, "values": entries, "x": "rows", "y": "rows"}
    return pm.Kernel.from_opencl(SPMV, "spmv", "(rows + 15) // 16 * 16", 16, args, rows=rows), arrays


def transpose(n: int = 64) -> pm.Kernel:
    return pm.Kernel.from_opencl(TRANSPOSE, "transpose", ("n", "n"), (16, 16), {"a": "n*n", "b": "n*n"}, n=n)


def _rows(table: Any) -> list[Any]:
    return [SimpleNamespace(**row) for row in table.to_dict("records")]


def test_what_groups_compute() -> None:
    knl, arrays = spmv()
    profile = pm.emulate(knl, arrays, groups="all")
    rows = np.split(arrays["values"] * arrays["x"][arrays["columns"]], arrays["starts"][1:-1])
    np.testing.assert_allclose(profile.array("y"), [min(row.sum(), 4) for row in rows], rtol=1e-5)
    assert profile.findings == ()


def test_operations_of_groups_and_their_spread() -> None:
    knl, arrays = spmv()
    profile = pm.emulate(knl, arrays, groups="all")
    operations = {(row.use, row.kind, row.dtype): [row.count, row.least, row.most] for row in _rows(profile.operations)}
    assert profile.work_groups == 3
    # 16, 16 and 8 rows of 0, 1, 2, 3 entries.
    assert operations["values", "madd", "float32"] == [20, 12, 24]
    assert operations["values", "compare", "float32"] == [pytest.approx(40 / 3), 8, 16]


def test_transactions_and_bank_conflicts_follow_the_machine() -> None:
    knl = transpose()
    accesses = pm.emulate(knl).accesses.set_index("text")
    load = accesses.loc["a[(16 * gy + ly) * n + 16 * gx + lx]"]
    assert (load["count"], load["subgroups"], load["transactions"], load["efficiency"]) == (256, 8, 32, 1)
    column = accesses.loc["tile[16 * lx + ly]"]
    # Two columns of 16 work-items each, 16 words apart: two banks a column.
    assert (column["bank_cycles"], column["bank_conflicts"]) == (8 * 8, 8 * 7)
    wide = pm.emulate(knl, machine=Machine(subgroup_size=64, transaction_bytes=128, banks=16)).accesses.set_index(
        "text"
    )
    assert wide.loc["a[(16 * gy + ly) * n + 16 * gx + lx]"]["transactions"] == 16
    assert wide.loc["tile[16 * lx + ly]"]["bank_cycles"] == 4 * 16


def test_divergence_and_footprints() -> None:
    knl, arrays = spmv()
    profile = pm.emulate(knl, arrays, groups="all", machine=Machine(subgroup_size=16))
    guard = profile.branches.iloc[0]
    assert (guard["branch"], guard["subgroups"], guard["divergent"]) == ("if", 1, pytest.approx(1 / 3))
    footprints = profile.footprints.set_index("variable")
    assert footprints.loc["y"]["store_bytes"] == pytest.approx(4 * 40 / 3)


def test_it_is_printed_and_written() -> None:
    profile = pm.emulate(transpose(), groups="sample")
    assert "transpose: 64 × 64 work-items in groups of 16 × 16, 16 groups" in str(profile)
    document = profile.as_json()
    assert document["barriers"] == 1
    assert {row["text"] for row in document["accesses"]} == set(profile.accesses["text"])


def test_loopy_programs_are_emulated_by_their_code(collection: pm.KernelCollection) -> None:
    (knl,) = collection.generate_kernels(["matmul_sq", "tiled_prefetch:True", "lsize_0:8", "lsize_1:8", "n:32"])
    a, b = np.random.default_rng(2).uniform(0.5, 1.5, (2, 32, 32)).astype(np.float32)
    profile = pm.emulate(knl, {"a": a, "b": b}, groups="all")
    np.testing.assert_allclose(profile.array("c").reshape(32, 32), a @ b, rtol=1e-5)


def test_the_cost_does_not_depend_on_the_grid() -> None:
    steps = {n: pm.emulate(transpose(n)).emulation.steps for n in (64, 2**15)}  # 4 GiB an array
    assert len(set(steps.values())) == 1


def test_long_loops_are_extrapolated_if_asked(collection: pm.KernelCollection) -> None:
    (knl,) = collection.generate_kernels(["matmul_sq", "tiled_prefetch:True", "lsize_0:8", "lsize_1:8", "n:1024"])
    whole, part = pm.emulate(knl), pm.emulate(knl, extrapolate=True)
    assert not whole.emulation.extrapolated
    assert part.emulation.extrapolated
    assert part.operations.equals(whole.operations)
    assert "not all iterations were run of the loop 'k_outer' at " in str(part)
    assert "were, and counts are of all of them\n" in str(part)
    with pytest.raises(EmulationError, match="loops were extrapolated"):
        part.array("c")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"arrays": {"c": np.zeros(4)}}, r"kernel 'transpose' has no array 'c' \(it has a, b\)"),
        ({"groups": "frist"}, "is none of 'first', 'all' and 'sample'"),
        ({"groups": [(9, 9)]}, r"there is no group \(9, 9\)"),
    ],
)
def test_what_cannot_be_emulated(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(pm.PerfmodelError, match=words) as caught:
        pm.emulate(transpose(), **changes)
    assert "\n" not in str(caught.value)


# --- what data decide


def test_data_that_decide_have_to_be_known() -> None:
    knl, _ = spmv()
    with pytest.raises(CountingError, match=r"kernel.cl:9:5.* depends on data.*statistics=\{'k': …\}"):
        _ = knl.program.counts_for()
    with pytest.raises(CountingError, match="depends on data"):
        _ = pm.Kernel(knl.program).counts  # whose sizes are open, so that it cannot be emulated


def test_data_that_decide_are_observed_with_a_warning() -> None:
    """Random row starts, from 1 to 7, only give a guess of the loop; data of one's own give its iterations."""
    knl, arrays = spmv()
    with pytest.warns(CountingWarning, match=r"data decide what kernel 'spmv' does.* kernel.as_observed\(arrays\)"):
        guessed = pm.feature("f_op_float32_madd").eval(knl)
    assert 0 < guessed < 40 * 7
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        known = knl.as_countable(arrays)
        assert pm.feature("f_op_float32_madd").eval(known) == pytest.approx(60)
    plain = transpose()
    assert plain.as_countable() is plain


def test_emulation_that_fails_leaves_the_question_open() -> None:
    source = "__kernel void f(__global int *a) { while (a[0] > 0) a[0] += 0; }"
    knl = pm.Kernel.from_opencl(source, "f", 8, 8, {"a": 8})
    with pytest.raises(CountingError, match=r"the loop at kernel.cl:1:36 .* depends on data"):
        _ = knl.counts


def test_observed_kernels_are_counted() -> None:
    knl, arrays = spmv()
    seen = knl.as_observed(arrays, groups="all")
    assert pm.feature("f_op_float32_madd").eval(seen) == pytest.approx(60)
    loads = pm.feature("f_mem_access_global_load")
    # Two starts a test, and a column, a value and an x an iteration.
    assert loads.eval(seen) == pytest.approx(40 + (60 + 40) + 3 * 60)
    # Statistics are of one work-item, so that they hold for other sizes as well.
    assert loads.eval(seen.at(rows=80)) == pytest.approx(2 * loads.eval(seen))


IRREGULAR = """
__kernel void irregular(__global const int *a, __global float *rare, __global float *often, __global float *walked,
                        __global float *left, __global float *kept)
{
    const int i = get_global_id(0);
    if (a[i] == 0)
        rare[i] = 1;
    else {
        often[i] = 2;
        if (a[i] > 90)
            return;
    }
    for (int k = 0; k < a[i]; k++) {
        walked[i] = k;
        if (k == a[0])
            break;
    }
    left[i] = 3;
    if (a[i] == 1)
        kept[i] = 4;
}
"""


def test_what_is_observed_tells_sub_groups_and_groups_from_work_items() -> None:
    """A sub-group does what one of its work-items does, and runs as long as its longest; so does a group."""
    names = ("rare", "often", "walked", "left", "kept")
    knl = pm.Kernel.from_opencl(IRREGULAR, "irregular", 4096, 128, {"a": 4096, **dict.fromkeys(names, 4096)})
    random = np.random.default_rng(3)
    numbers = np.where(random.random(4096) < 0.01, 0, random.integers(1, 100, 4096)).astype(np.int32)
    numbers[1024:2048] = 50
    arrays = {"a": numbers}
    blocks = pm.emulate(knl, arrays, groups="all").emulation
    by_access = {
        access.variable: (int(row["executions"].sum()), int(row["subgroups"].sum()))
        for access, row in zip(blocks.kernel.accesses, blocks.accesses.transpose(), strict=True)
        if access.direction == "store"
    }
    counts = knl.as_observed(arrays, groups="all").counts_for(32)
    stores = {each.variable: each.executions for each in counts.accesses if each.direction == "store"}
    for name in names:
        items, subgroups = by_access[name]
        found = stores[name]
        assert found.subgroup is not None
        assert float(found.workitem({})) == pytest.approx(items, rel=1e-9), name
        assert float(found.subgroup({})) == pytest.approx(subgroups, rel=1e-9), name
    assert by_access["rare"][0] * 3 < by_access["rare"][1] * 4  # mostly alone in their sub-groups
    assert by_access["walked"][1] * 32 > 1.3 * by_access["walked"][0]
    assert float(stores["kept"].workgroup({})) == (numbers.reshape(32, 128) == 1).any(axis=1).sum()


def test_observed_kernels_are_other_kernels_to_the_cache_only() -> None:
    knl, arrays = spmv()
    seen = knl.as_observed(arrays)
    assert seen.program.content == knl.program.content
    with pytest.raises(CountingError):
        _ = knl.program.counts_for()
    assert seen.counts


def test_statistics_win_over_what_was_observed() -> None:
    _knl, arrays = spmv()
    given = pm.Kernel.from_opencl(
        SPMV,
        "spmv",
        "(rows + 15) // 16 * 16",
        16,
        {"starts": "rows + 1", "columns": 60, "values": 60, "x": "rows", "y": "rows"},
        statistics={"k": 10},
        rows=40,
    )
    assert pm.feature("f_op_float32_madd").eval(given.as_observed(arrays)) == 400


def test_negative_arguments_are_no_sizes() -> None:
    source = "__kernel void f(__global int *a, int n, int by) { if (by < 0) a[get_global_id(0)] = by; }"
    knl = pm.Kernel.from_opencl(source, "f", "n", 8, {"a": "n"}, n=16)
    store = pm.feature("f_mem_access_global_store")
    assert [store.eval(knl.at(by=by)) for by in (-3, 0, 3)] == [16, 0, 0]
    with pytest.raises(KernelError, match="size n=-16 of kernel 'f' is negative"):
        knl.at(n=-16, by=1)

"""Counts from emulated work-groups: equal to static ones where groups are alike, and refused where there are none."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import perfmodel as pm
from perfmodel.basics.errors import FeatureError, KernelError
from perfmodel.counting.counts import KernelCounts
from perfmodel.opencl_c.emulation import Machine

FEATURES = (
    "f_op_float32",
    "f_op_float32_madd",
    "f_op_int32",
    "f_op_float32_special_granularity:subgroup",
    "f_mem_access_global_load",
    "f_mem_access_global_store_granularity:subgroup16",
    "f_mem_access_local_load_granularity:workgroup",
    "f_mem_access_local_load_granularity:longest",
    "f_mem_bytes_global",
    "f_mem_bytes_local",
    "f_mem_min_global",
    "f_mem_footprint_global_load_granularity:workgroup",
    "f_mem_transactions_global_load_block:32",
    "f_mem_transactions_global_store_block:128",
    "f_mem_transactions_global_block:64_granularity:subgroup64",
    "f_mem_transactions_local_banks:32",
    "f_mem_transactions_local_banks:16_granularity:subgroup16",
    "f_sync_barrier_local",
    "f_sync_barrier_local_granularity:subgroup",
    "f_sync_kernel_launch",
    "f_thread_groups",
    "f_work_items",
)
ALIKE = (
    "matmul_sq tiled_prefetch:True dtype:float32 lsizes:16x16 n:64",
    "matmul_sq tiled_prefetch:False dtype:float32 lsizes:16x16 n:64",
    "reduction dtype:float32 lsize_0:128 n:4096",
    "nbody dtype:float32 lsize_0:64 n:256",
    "transpose access:tiled padding:0,1 dtype:float32 lsizes:16x16 n:64",
    "transpose access:strided_reads dtype:float64 lsizes:16x16 n:64",
    "global_copy dtype:float32 stride:3 loads:2 lsize_0:64 n:512",
    "local_access direction:copy dtype:float32 lstride_0:4 lsize_0:64 n:256 m:3",
)

BY_DATA = """
__kernel void steps(__global const int *turns, __global float *sums)
{
    const int i = get_global_id(0);
    float sum = 0;
    for (int k = 0; k < turns[i]; ++k)
        sum += 2.0f * k;
    sums[i] = sum;
}
"""


def by_data() -> pm.Kernel:
    return pm.Kernel.from_opencl(BY_DATA, "steps", 256, 32, {"turns": 256, "sums": 256})


@pytest.mark.parametrize("tags", ALIKE)
def test_counts_equal_static_ones_where_groups_are_alike(collection: pm.KernelCollection, tags: str) -> None:
    for kernel in collection.generate_kernels(tags.split()):
        static, emulated = kernel.as_opencl(), kernel.as_emulated()
        for name in FEATURES:
            feature = pm.feature(name)
            assert feature.eval(emulated) == pytest.approx(feature.eval(static), rel=1e-12), name


@settings(max_examples=15, deadline=None)
@given(n=st.integers(1, 12).map(lambda each: 16 * each))
def test_counts_follow_the_sizes(collection: pm.KernelCollection, n: int) -> None:
    (kernel,) = collection.generate_kernels(
        ["matmul_sq", "tiled_prefetch:True", "lsizes:16x16", "dtype:float32", "n:64"]
    )
    emulated = kernel.as_emulated().at(n=n)
    assert pm.feature("f_op_float32_madd").eval(emulated) == n**3
    assert pm.feature("f_thread_groups").eval(emulated) == (n // 16) ** 2
    # Both tiles are read in rows of 64 bytes, half a sub-group each.
    assert pm.feature("f_mem_transactions_global_load_block:64").eval(emulated) == 2 * n**3 / 16 / 16


@settings(max_examples=10, deadline=None)
@given(n=st.integers(1, 40).filter(lambda n: n % 16))
def test_all_groups_count_exactly_where_they_differ(collection: pm.KernelCollection, n: int) -> None:
    tags = ["transpose", "access:tiled", "groups_fit:False", "lsizes:16x16", "dtype:float32", f"n:{n}"]
    (kernel,) = collection.generate_kernels(tags)
    for name in ("f_mem_access_global_load", "f_mem_bytes_global_store", "f_sync_barrier_local"):
        assert pm.feature(name).eval(kernel.as_emulated(groups="all")) == pm.feature(name).eval(kernel.as_opencl())


def test_what_data_decide_is_that_of_the_data() -> None:
    turns = np.zeros(256, np.int32)
    turns[:32] = 3
    first = by_data().as_emulated({"turns": turns})
    every = by_data().as_emulated({"turns": turns}, groups="all")
    # Groups of 32: the first stands for all eight, or each for itself.
    assert pm.feature("f_op_float32_madd").eval(first) == 3 * 32 * 8
    assert pm.feature("f_op_float32_madd").eval(every) == 3 * 32
    assert pm.feature("f_branch_divergent").eval(every) == 0
    turns[0] = 4
    parted = by_data().as_emulated({"turns": turns}, groups="all")
    assert pm.feature("f_branch_divergent").eval(parted) == 1


def test_a_scatter_has_the_transactions_of_its_places() -> None:
    source = "__kernel void scatter(__global const int *to, __global int *out) { out[to[get_global_id(0)]] = 1; }"
    kernel = pm.Kernel.from_opencl(source, "scatter", 32, 32, {"to": 32, "out": 1024})
    places = {"together": np.arange(32) // 2, "apart": np.arange(32) * 32}
    expected = {"together": 2, "apart": 32}  # 16 words are two blocks of 32 bytes
    for name, to in places.items():
        emulated = kernel.as_emulated({"to": to.astype(np.int32)})
        assert pm.feature("f_mem_transactions_global_store_block:32").eval(emulated) == expected[name]


def test_each_machine_is_emulated_once(monkeypatch: pytest.MonkeyPatch, collection: pm.KernelCollection) -> None:
    from perfmodel.kernels import emulated_program, emulation

    machines: list[Machine | None] = []
    original = emulation.emulate

    def counting(*arguments: object, **options: object) -> emulation.Profile:
        machines.append(options["machine"])  # type: ignore[arg-type]
        return original(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(emulated_program, "emulate", counting)
    (kernel,) = collection.generate_kernels(["reduction", "lsize_0:64", "dtype:float32", "n:1024"])
    emulated = kernel.as_emulated()
    emulated.program.prepare(Machine(16, 64, 16), emulated.sizes)  # type: ignore[attr-defined]
    for name in (
        "f_op_float32_add",
        "f_thread_groups",
        "f_mem_transactions_global_load_block:64_granularity:subgroup16",
        "f_mem_transactions_local_banks:16_granularity:subgroup16",
    ):
        pm.feature(name).eval(emulated)
        pm.feature(name).eval(emulated)
    assert machines == [Machine(16, 64, 16)]
    pm.feature("f_mem_transactions_global_load_block:32").eval(emulated)
    assert machines[1:] == [Machine(32, 32, 32)]


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("f_op_float32_carried", "carried"),
        ("f_mem_access_global_load_lstrides:{0:1}", "lstrides"),
        ("f_mem_access_global_load_loopstride:1", "loopstride"),
        ("f_mem_access_global_class:continuous", "class"),
        ("f_mem_access_global_afr:>1", "afr"),
        ("f_mem_access_global_asf:1", "asf"),
        ("f_mem_rounds_global", "rounds"),
        ("f_mem_access_private", "private"),
        ("f_mem_footprint_global", "footprint"),
        ("f_mem_footprint_global_granularity:workgroup_block:32", "footprint"),
        ("f_branch", "branch"),
    ],
)
def test_what_emulation_does_not_tell_is_refused(name: str, word: str) -> None:
    emulated = by_data().as_emulated()
    with pytest.raises(FeatureError, match=rf"{word}.*'steps', which was emulated; leave such features out"):
        pm.feature(name).eval(emulated)


def test_it_is_the_same_kernel_that_runs(collection: pm.KernelCollection) -> None:
    (kernel,) = collection.generate_kernels(["reduction", "lsize_0:64", "dtype:float32", "n:1024"])
    emulated = kernel.as_emulated()
    assert emulated == kernel
    assert emulated.launch() == kernel.launch()
    assert emulated.as_opencl().counts == kernel.counts
    again = pickle.loads(pickle.dumps(emulated))
    assert pm.feature("f_op_float32_add").eval(again) == pm.feature("f_op_float32_add").eval(kernel)


def test_transfers_are_those_of_the_arrays_in_the_source(collection: pm.KernelCollection) -> None:
    (kernel,) = collection.generate_kernels(["reduction", "lsize_0:64", "dtype:float32", "n:1024"])
    for each in (kernel.as_emulated().with_transfers(), kernel.with_transfers().as_emulated()):
        assert pm.feature("f_transfer_bytes_to").eval(each) == 4 * 1024
        assert pm.feature("f_transfer_bytes_from").eval(each) == 4 * 8
        assert each.launch() == kernel.with_transfers().launch()


def test_numbers_that_are_no_sizes_decide_as_well() -> None:
    source = "__kernel void f(__global float *a, const float x) { if (x > 2) a[get_global_id(0)] += x; }"
    kernel = pm.Kernel.from_opencl(source, "f", 64, 32, {"a": 64})
    assert pm.feature("f_op_float32_add").eval(kernel.at(x=3.0).as_emulated()) == 64
    assert pm.feature("f_op_float32_add").eval(kernel.at(x=1.0).as_emulated()) == 0


def test_sizes_have_to_be_numbers(collection: pm.KernelCollection) -> None:
    (kernel,) = collection.generate_kernels(["reduction", "lsize_0:64", "dtype:float32", "n:1024"])
    open_ = pm.Kernel(kernel.as_emulated().program, {}, None)
    with pytest.raises(KernelError, match="numbers"):
        open_.counts_for()
    values = pm.Model("f_cl_wall_time", "p_a * f_op_float32_add").features
    from perfmodel.vocabulary.named_features import evaluate_all

    found = evaluate_all(values, kernel.as_emulated(), kernel.bind({"n": [1024, 4096]}))["f_op_float32_add"]
    static = evaluate_all(values, kernel, kernel.bind({"n": [1024, 4096]}))["f_op_float32_add"]
    assert found.tolist() == static.tolist()


def test_counts_are_the_plain_data_of_every_program() -> None:
    counts = by_data().as_emulated().counts
    assert isinstance(counts, KernelCounts)
    assert counts.unknown_addresses == 0

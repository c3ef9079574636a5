"""Kernels with all work but one global access removed: the access stays as it was, and stays on a device."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from typing import Any

import loopy as lp
import numpy as np
import pytest

import perfmodel as pm
from perfmodel.basics.errors import KernelError, TagError
from perfmodel.counting.counts import AccessCount
from perfmodel.device import Device
from perfmodel.kernels.work_removal import WorkRemovalWarning
from perfmodel.measuring.protocol import run_launch
from tests.counting_kernels import make, tagged
from tests.counting_oracle import Site, tally_of

SELECTIONS = (
    "matmul_sq tiled_prefetch:* lsize_0:8 lsize_1:4 n:16",
    "matmul_sq tiled_prefetch:* lsize_0:8 lsize_1:4 groups_fit:False n:5,13",
    "global_copy loads:* stride:1,3 lsize_0:64 n:128",
    "global_copy dtype:float16,float64 stride:1 lsize_0:64 n:128",
    "throughput op:madd lsize_0:64 n:64 m:8 accumulators:8",
)


def global_accesses(kernel: pm.Kernel) -> dict[str, AccessCount]:
    return {f"{a.direction} {a.text}": a for a in kernel.counts.accesses if a.space == "global"}


def assert_equal(one: AccessCount, other: AccessCount) -> None:
    """Asserts equal accesses; the longest work-item's counts by their values, since they may be written in several
    ways."""
    sizes: dict[str, Any] = {"n": np.arange(1, 200), "m": 8}
    for part in ("executions", "rounds"):
        first, second = (
            reduce(np.maximum, [count(sizes) for count in getattr(access, part).longest]) for access in (one, other)
        )
        np.testing.assert_array_equal(first, second)
        one, other = (replace(a, **{part: replace(getattr(a, part), longest=())}) for a in (one, other))
    assert one == other


def selected(collection: pm.KernelCollection) -> list[pm.Kernel]:
    return [kernel for tags in SELECTIONS for kernel in collection.generate_kernels(tags.split())]


def test_the_kept_access_counts_as_before_and_nothing_else_is_left(collection: pm.KernelCollection) -> None:
    for kernel in selected(collection):
        before, launch = global_accesses(kernel), kernel.launch()
        for name, access in before.items():
            kept = kernel.with_one_access(access)
            assert kept.tags == {**kernel.tags, "kept": name}
            assert kept.sizes == kernel.sizes
            assert (kept.launch().global_size, kept.launch().local_size) == (launch.global_size, launch.local_size)
            after = global_accesses(kept)
            assert_equal(after.pop(name), access)
            assert pm.feature("f_mem_access_local").eval(kept) == pm.feature("f_sync_barrier_local").eval(kept) == 0
            assert sum(float(a.executions.workitem(kept.sizes)) for a in after.values()) == 0


def site(kernel: pm.Kernel, variable: str) -> Site:
    (found,) = [site for site in tally_of(kernel).sites if site.variable == variable]
    return found


@pytest.mark.parametrize("prefetch", ["True", "False"])
@pytest.mark.parametrize("fit", ["groups_fit:True n:16", "groups_fit:False n:11"])
def test_every_work_item_reaches_the_same_addresses_in_the_same_loops(
    prefetch: str, fit: str, collection: pm.KernelCollection
) -> None:
    """The generated code of both is run, and reaches the same addresses."""
    tags = ["matmul_sq", f"tiled_prefetch:{prefetch}", "lsize_0:4", "lsize_1:8", *fit.split()]
    (kernel,) = collection.generate_kernels(tags)
    for variable in "abc":
        before, after = site(kernel, variable), site(kernel.with_one_access(variable), variable)
        assert before.addresses == after.addresses
        assert before.direction == after.direction


def test_what_is_loaded_is_summed_up_and_stored_if_negative(collection: pm.KernelCollection, cpu: Device) -> None:
    (kernel,) = collection.generate_kernels(["matmul_sq", "tiled_prefetch:False", "lsize_0:8", "lsize_1:4", "n:16"])
    kept = kernel.with_one_access("a")
    a = -np.random.default_rng(3).uniform(0.5, 1.5, (16, 16)).astype(np.float32)
    (result,) = [array for array in kept.launch().arrays() if array.is_output]
    sums = run_launch(kept.launch(), cpu, {"a": a})[result.name].reshape(4, 2, 4, 8)  # groups, then work-items
    expected = np.broadcast_to(a.sum(axis=1).reshape(4, 1, 4, 1), sums.shape)
    np.testing.assert_allclose(sums, expected, rtol=1e-5)
    assert not run_launch(kept.launch(), cpu, {"a": -a})[result.name].any()


def test_a_kept_store_stores(collection: pm.KernelCollection, cpu: Device) -> None:
    (kernel,) = collection.generate_kernels(["global_copy", "loads:2", "stride:3", "lsize_0:64", "n:128"])
    kept = kernel.with_one_access("out")
    out = run_launch(kept.launch(), cpu, {"out": np.zeros(384, np.float32)})["out"]
    assert out.tolist() == [1.0, 0.0, 0.0] * 128
    assert [array.name for array in kept.launch().arrays()] == ["out"]


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint32", "int64", "uint64", "float64"])
def test_values_of_any_type_are_summed_up(dtype: str, cpu: Device) -> None:
    arrays = {"a": {"shape": "n", "dtype": np.dtype(dtype)}, "out": {"shape": "n", "dtype": np.dtype(dtype)}}
    program = make("{[i]: 0 <= i < n}", "out[i] = a[i] + a[n - 1 - i]", arrays, assumptions="n >= 1")
    kernel = pm.Kernel(lp.split_iname(program, "i", 16, outer_tag="g.0", inner_tag="l.0"), n=20)
    is_signed = np.dtype(dtype).kind != "u"
    for kept in kernel.with_each_access():
        if "store" in kept.tags["kept"]:
            assert run_launch(kept.launch(), cpu, {})["out"].tolist() == [1] * 20
        else:
            assert loaded_sums(kept, cpu, {"a": np.full(20, -1 if is_signed else 1, dtype)}) == [-1] * 20 * is_signed


def loaded_sums(kept: pm.Kernel, cpu: Device, arrays: dict[str, np.ndarray]) -> list[float]:
    """Returns what work-items stored of the sums of their loads: those that are negative."""
    (result,) = [array for array in kept.launch().arrays() if array.is_output]
    sums = run_launch(kept.launch(), cpu, arrays)[result.name].ravel()
    return list(sums[sums != 0].tolist())


def test_one_kernel_for_each_distinct_pattern(collection: pm.KernelCollection) -> None:
    def isolated(*tags: str) -> list[str]:
        (kernel,) = collection.generate_kernels(list(tags))
        return [kept.tags["kept"].split("[")[0] for kept in kernel.with_each_access()]

    assert sorted(isolated("matmul_sq", "n:64")) == ["load a", "load b", "store c"]
    # Four arrays read alike are one pattern.
    assert sorted(isolated("global_copy", "loads:4", "n:1024")) == ["load in0", "store out"]
    # Neighbours in a row and in a column have the strides of the point itself; the transposed access has others.
    stencil = make(
        "{[i, j]: 0 <= i, j < n}",
        "o[i, j] = u[i, j + 1] + u[i + 2, j + 1] + u[i + 1, j] + u[i + 1, j + 2] + v[j, i]",
        {"u": "n + 2, n + 2", "v, o": "n, n"},
        assumptions="n >= 1",
    )
    stencil = lp.split_iname(stencil, "j", 16, outer_tag="g.0", inner_tag="l.0")
    kept = pm.Kernel(tagged(stencil, i="g.1")).with_each_access()
    assert [k.tags["kept"].split("[")[0] for k in kept] == ["load u", "load v", "store o"]


def test_a_filter_asks_for_single_accesses(collection: pm.KernelCollection) -> None:
    kernels = collection.generate_kernels(["matmul_sq", "work_removed:*", "n:64,128"])
    found = [(k.tags.get("kept", "whole").split("[")[0], k.sizes["n"]) for k in kernels]
    assert sorted(set(found)) == sorted(
        (access, n) for access in ("whole", "load a", "load b", "store c") for n in (64, 128)
    )
    assert len({k.program.content for k in kernels}) == 4
    with pytest.raises(TagError, match="'work_removed' has no value 'yes'"):
        collection.generate_kernels(["matmul_sq", "work_removed:yes"])


def test_the_order_of_loops_stays_what_loopy_chose() -> None:
    program = make("{[i, j, k]: 0 <= i, j, k < n}", "o[i] = sum([k, j], a[k, j])", {"a": "n, n", "o": "n"})
    kernel = pm.Kernel(program, n=5)
    assert site(kernel, "a").addresses == site(kernel.with_one_access("a"), "a").addresses


def test_statistics_of_loops_stay_with_the_access() -> None:
    """A sparse row: how long it is, data say; how long on average, the user."""
    program = make(
        ["{[i]: 0 <= i < n}", "[length] -> {[j]: 0 <= j < length}"],
        """
        for i
            <> length = lengths[i]
            out[i] = sum(j, a[i, j])
        end
        """,
        {"lengths": {"shape": "n", "dtype": np.int32}, "a": "n, 64", "out": "n"},
    )
    kernel = pm.Kernel(program, statistics={"j": 7}, n=10)
    with pytest.raises(KernelError, match="runs in a loop that depends on length"):
        kernel.with_one_access("a")
    kept = kernel.with_one_access("lengths")
    assert pm.feature("f_mem_access_global_load").eval(kept) == 10


def gather() -> Any:
    return make(
        "{[i]: 0 <= i < n}",
        "out[i] = a[places[i]]",
        {"places": {"shape": "n", "dtype": np.int32}, "a, out": "n"},
    )


def test_an_index_that_is_loaded_stays_loaded() -> None:
    kept = pm.Kernel(gather(), n=16).with_one_access("load a")
    assert pm.feature("f_mem_access_global_load_var:a").eval(kept) == 16


@pytest.mark.parametrize(
    ("keep", "words"),
    {
        "misspelt": ("load ab", ["no global access 'load ab'", "keep one of load a[", "store c["]),
        "wrong direction": ("store a", ["no global access 'store a'"]),
        "local": ("a_fetch", ["no global access 'a_fetch'"]),
    }.values(),
)
def test_what_is_no_global_access_is_refused(keep: str, words: list[str], collection: pm.KernelCollection) -> None:
    (kernel,) = collection.generate_kernels(["matmul_sq", "n:64"])
    with pytest.raises(KernelError) as caught:
        kernel.with_one_access(keep)
    for word in words:
        assert word in str(caught.value)


def test_a_name_with_several_accesses_is_refused() -> None:
    program = make("{[i]: 0 <= i < n}", "a[i] = a[i] + a[i + 1]", {"a": "n + 1"})
    kernel = pm.Kernel(program, n=8)
    with pytest.raises(KernelError, match="has 3 accesses 'a'; keep one of load a"):
        kernel.with_one_access("a")
    assert kernel.with_one_access("store a").tags["kept"].startswith("store a[i]")
    assert kernel.with_one_access("a[i + 1]").tags["kept"] == "load a[i + 1]"


def test_an_address_from_data_in_a_register_is_refused() -> None:
    program = make(
        "{[i]: 0 <= i < n}",
        """
        for i
            <> place = places[i]
            out[i] = a[place]
        end
        """,
        {"places": {"shape": "n", "dtype": np.int32}, "a, out": "n"},
    )
    with pytest.raises(KernelError, match=r"load 'a\[place\]' .* has an address that depends on place; keep another"):
        pm.Kernel(program, n=8).with_one_access("a")


def test_one_text_in_two_instructions_is_two_accesses() -> None:
    program = make(
        "{[i, k]: 0 <= i < n and 0 <= k < 5}",
        """
        for i
            <> t = 0 {id=z}
            for k
                t = t + a[i] {id=u, dep=z}
            end
            out[i] = t + a[i] {dep=u}
        end
        """,
        {"a, out": "n"},
    )
    kernel = pm.Kernel(program, n=20)
    loads = [a for a in kernel.counts.accesses if a.variable == "a"]
    found = [pm.feature("f_mem_access_global_load").eval(kernel.with_one_access(access)) for access in loads]
    assert sorted(found) == [20, 100]
    kept = [k for k in kernel.with_each_access() if "load" in k.tags["kept"]]
    assert sorted(pm.feature("f_mem_access_global_load").eval(k) for k in kept) == [20, 100]
    with pytest.raises(KernelError, match="has 2 accesses 'a'"):
        kernel.with_one_access("a")


@pytest.mark.parametrize("dtype", ["int8", "int16", "uint8"])
def test_sums_of_short_types_do_not_become_negative(dtype: str, cpu: Device) -> None:
    arrays = {name: {"shape": "n, 64" if name == "a" else "n", "dtype": np.dtype(dtype)} for name in ("a", "out")}
    kernel = pm.Kernel(make("{[i, k]: 0 <= i < n and 0 <= k < 64}", "out[i] = sum(k, a[i, k])", arrays), n=20)
    kept = kernel.with_one_access("a")
    (result,) = [array for array in kept.launch().arrays() if array.is_output]
    assert not run_launch(kept.launch(), cpu, {"a": np.full(20 * 64, 7, dtype)})[result.name].any()


def test_what_cannot_be_isolated_is_left_out_with_a_warning() -> None:
    program = make(
        "{[i]: 0 <= i < n}",
        "o[i] = if(i > 0, a[i - 1], 0) + b[2 * i]",
        {"a, o": "n", "b": "2 * n"},
    )
    with pytest.warns(WorkRemovalWarning, match=r"left out: load 'a\[i \+ -1\]' .* is part of an if-expression"):
        kept = pm.Kernel(program, n=8).with_each_access()
    assert [k.tags["kept"].split("[")[0] for k in kept] == ["load b", "store o"]
    numbers = make("{[i]: 0 <= i < n}", "o[i] = 2 * a[i]", {"a, o": {"shape": "n", "dtype": np.dtype(np.complex64)}})
    with pytest.raises(KernelError, match="is of complex numbers"):
        pm.Kernel(numbers, n=8).with_one_access("a")


def test_arguments_that_loopy_adds_or_keeps_apart(cpu: Device) -> None:
    """An offset of its own making, and an array in constant memory."""
    program = lp.make_kernel(
        "{[i]: 0 <= i < n}",
        "o[i] = a[i] + c[i]",
        [
            lp.GlobalArg("a", np.float32, shape="n", offset=lp.auto),
            lp.ConstantArg("c", np.float32, shape="n"),
            lp.GlobalArg("o", np.float32, shape="n"),
            lp.ValueArg("n", np.int32),
        ],
        lang_version=(2018, 2),
    )
    for kept in pm.Kernel(program, n=16).with_each_access():
        arrays = {array.name: np.full(16, -1, np.float32) for array in kept.launch().arrays() if not array.is_output}
        if "store" in kept.tags["kept"]:
            assert run_launch(kept.launch(), cpu, arrays)["o"].tolist() == [1] * 16
        else:
            assert loaded_sums(kept, cpu, arrays) == [-16]  # of the only work-item

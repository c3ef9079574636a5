"""Tests what the names of perfmodel's own feature families select."""

from __future__ import annotations

import itertools
import pickle
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import loopy as lp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import perfmodel as pm
from perfmodel.features.operations import ARITHMETIC, DTYPES, SPECIAL_FUNCTIONS
from perfmodel.vocabulary.named_features import CountedFeature, evaluate, families
from tests.counting_kernels import make
from tests.counting_oracle import Site, cycles_of_banks, tally_of


@cache
def kernel() -> pm.Kernel:
    """Returns a kernel of n x n work-items in groups of 8 x 4 along (j, i); b is read transposed and w by all alike,
    all of it by tiles."""
    program = lp.make_kernel(
        "{[i, j]: 0 <= i, j < n}",
        "o[i, j] = 2*a$left[i, j] + b$right_part[j, i] * d[i, 3] + exp(w[j % 2])",
        [
            lp.GlobalArg("a, b, o", np.float32, shape="n, n"),
            lp.GlobalArg("d", np.float64, shape="n, n"),
            lp.GlobalArg("w", np.float32, shape="2"),
            lp.ValueArg("n", np.int32),
        ],
        assumptions="n >= 8 and n mod 8 = 0",
        lang_version=(2018, 2),
    )
    program = lp.split_iname(program, "j", 8, outer_tag="g.0", inner_tag="l.0")
    program = lp.split_iname(program, "i", 4, outer_tag="g.1", inner_tag="l.1")
    return pm.Kernel(program, n=16)


N2 = 256


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("f_mem_access", 5 * N2),
        ("f_mem_access_load", 4 * N2),
        ("f_mem_access_store", N2),
        ("f_mem_access_global", 5 * N2),
        ("f_mem_access_local", 0),
        ("f_mem_access_float64", N2),
        ("f_mem_access_float32_load", 3 * N2),
        ("f_mem_access_tag:left", N2),
        ("f_mem_access_tag:{right_part}", N2),
        ("f_mem_access_tag:left_store", 0),
        ("f_mem_access_var:w_afr:128", N2),
        # The load of w[j % 2] has no stride: conditions on strides have to exclude it by others.
        ("f_mem_access_store_lstrides:{0:1}", N2),
        ("f_mem_access_tag:left_lstrides:{0:1;1:16}", N2),
        ("f_mem_access_lstrides:{0:>15;1:1}", N2),
        ("f_mem_access_lstrides:{0:1;1:16}_afr:<2", 2 * N2),
        ("f_mem_access_var:d_lstrides:{0:0;1:16}_gstrides:{0:0;1:64}", N2),
        ("f_mem_access_var:b_gstrides:{0:128;1:4}", N2),
        ("f_mem_access_var:a_lstrides:{2:0}", N2),
        ("f_mem_access_var:a_lstrides:{0:0..2;1:<=16}", N2),
        ("f_mem_access_var:a_afr:1", N2),
        ("f_mem_access_var:d_afr:16", N2),
        ("f_mem_access_var:{a}_ratio:<2", N2),
        ("f_mem_access_var:{a}_ratio:<1", 0),
        ("f_work_items", N2),
        ("f_thread_groups", N2 / 32),
        ("f_sync_kernel_launch", 1),
        ("f_sync_barrier_local", 0),
    ],
)
def test_features_of_a_kernel_by_hand(name: str, count: float) -> None:
    assert pm.feature(name).eval(kernel()) == count


WORDS = ["global", "float32", "load", "lstrides:{0:1;1:>15}", "afr:<2", "tag:left"]


@given(st.permutations(WORDS))
def test_the_order_of_words_does_not_matter(words: list[str]) -> None:
    assert pm.feature("_".join(["f_mem_access", *words])).eval(kernel()) == N2


@given(st.permutations(["float64", "mul", "contract:off"]))
def test_the_order_of_words_of_operations_does_not_matter(words: list[str]) -> None:
    ordered = pm.feature("f_op_float64_mul_contract:off").eval(kernel())
    assert pm.feature("_".join(["f_op", *words])).eval(kernel()) == ordered == N2


@pytest.mark.parametrize("condition", ["1", "<2", ">1", ">=128", "2..200", "{<=16}"])
def test_afr_and_ratio_are_synonyms(condition: str) -> None:
    afr, ratio = (pm.feature(f"f_mem_access_load_{word}:{condition}").eval(kernel()) for word in ("afr", "ratio"))
    assert afr == ratio


def test_disjoint_conditions_partition_a_count() -> None:
    parts = ["afr:<2", "afr:{2..64}", "afr:>64"]
    assert sum(pm.feature(f"f_mem_access_{part}").eval(kernel()) for part in parts) == 5 * N2


def test_operations_partition_by_kind_and_by_type() -> None:
    total = pm.feature("f_op").eval(kernel())
    kinds = [*ARITHMETIC, *SPECIAL_FUNCTIONS]
    assert sum(pm.feature(f"f_op_{kind}").eval(kernel()) for kind in kinds) == total > 0
    assert sum(pm.feature(f"f_op_{dtype}").eval(kernel()) for dtype in DTYPES) == total
    assert sum(pm.feature(f"f_op_{kind}").eval(kernel()) for kind in (*ARITHMETIC, "special")) == total
    pairs = itertools.product(DTYPES, kinds)
    assert sum(pm.feature(f"f_op_{dtype}_{kind}").eval(kernel()) for dtype, kind in pairs) == total


def test_contraction_splits_every_multiply_add() -> None:
    def count(name: str) -> float:
        return pm.feature(name).eval(kernel())

    assert count("f_op_mul_contract:off") == count("f_op_mul") + count("f_op_madd")
    assert count("f_op_add_contract:off") == count("f_op_add") + count("f_op_madd")
    assert count("f_op_contract:off") == count("f_op") + count("f_op_madd")
    assert count("f_op_contract:on") == count("f_op")
    assert count("f_op_special_contract:off") == count("f_op_special") == N2


def test_a_feature_of_an_array_of_sizes_is_an_array() -> None:
    found = pm.feature("f_mem_access_var:d_gstrides:{1:>64}")
    assert isinstance(found, CountedFeature)
    sizes = kernel().bind({"n": np.array([8, 16, 24])})
    # The group stride of d[i, 3] is 4 n, above 64 from n = 24 on.
    assert found.values(kernel().counts, sizes).tolist() == [0, 0, 576]


def test_a_ratio_without_accesses_is_zero() -> None:
    program = lp.make_kernel(
        "{[i]: 0 <= i < n}", "o[i] = 1", [lp.GlobalArg("o", np.float32, shape="n"), lp.ValueArg("n", np.int32)],
        lang_version=(2018, 2),
    )  # fmt: skip
    none: Any = pm.feature("f_mem_access_afr:0")
    assert none.values(pm.Kernel(program).counts, {"n": np.asarray(0)}) == 0
    assert pm.feature("f_mem_access_afr:1").eval(pm.Kernel(program, n=3)) == 3


@pytest.mark.parametrize("family", families(), ids=lambda family: family.name)
def test_every_family_documents_itself_with_working_examples(family: object) -> None:
    assert family.summary  # type: ignore[attr-defined]
    for example in family.examples:  # type: ignore[attr-defined]
        assert example.startswith(family.name)  # type: ignore[attr-defined]
        found = pm.feature(example)
        assert callable(found.eval)
        assert pickle.loads(pickle.dumps(found)).name == example


@pytest.mark.parametrize("name", ["f_op_float32_madd", "f_mem_access_global_store_lstrides:{0:1}", "f_thread_groups"])
def test_features_survive_pickling(name: str) -> None:
    found = pm.feature(name)
    again = pickle.loads(pickle.dumps(found))
    assert again == found
    assert hash(again) == hash(found)
    assert again.eval(kernel()) == found.eval(kernel())
    assert found != pm.feature("f_work_items")


# --- what sub-groups and work-groups ask of memory, against the addresses that the generated code computes

MEMORY_KERNELS = (
    "matmul_sq tiled_prefetch:* lsizes:8x8,16x4 n:16",
    "transpose access:* padding:* lsizes:8x8 n:16",
    "global_copy stride:1,3,8 loads:2 lsize_0:64 n:128",
    "filled_stride stride:3 lsize_0:64 n:128",
    "finite_difference fetch:none lsizes:8x4 n:16",
)


def sites_of(tags: str) -> Iterator[tuple[pm.Kernel, list[Site]]]:
    for knl in pm.KernelCollection(pm.ALL_GENERATORS).generate_kernels(tags.split()):
        yield knl, tally_of(knl).sites


def served(knl: pm.Kernel, site: Site, cost: Callable[[set[int]], int]) -> int:
    """Sums a cost over executions by sub-groups; addresses are in bytes, from the lowest one of a group at one
    execution."""
    local_size, item = knl.launch().local_size, np.dtype(site.dtype).itemsize
    lowest: dict[Any, int] = {}
    together: dict[Any, set[int]] = {}
    for (group, place, loops), address in site.addresses.items():
        lowest[group, loops] = min(address, lowest.get((group, loops), address))
        linear = sum(p * int(np.prod(local_size[:axis])) for axis, p in enumerate(place))
        together.setdefault((group, loops, linear // 32), set()).add(address)
    return sum(cost({(a - lowest[key[:2]]) * item for a in found}) for key, found in together.items())


@pytest.mark.parametrize("tags", MEMORY_KERNELS)
def test_transactions_are_those_of_the_addresses(tags: str) -> None:
    for knl, sites in sites_of(tags):
        for space, name, cost in (
            ("global", "global_block:32", lambda found: len({a // 32 for a in found})),
            ("global", "global_block:128", lambda found: len({a // 128 for a in found})),
            ("global", "global_banks:32", lambda found: max(Counter(w % 32 for w in {a // 4 for a in found}).values())),
            ("local", "local_banks:32", lambda found: max(Counter(w % 32 for w in {a // 4 for a in found}).values())),
        ):
            expected = sum(served(knl, site, cost) for site in sites if site.space == space)
            assert pm.feature(f"f_mem_transactions_{name}").eval(knl) == pytest.approx(expected), (knl, name)


BOX = """__kernel void box(__global TYPE *a, const int s, const int t, const int u)
{
    a[s * (int)get_local_id(0) - t * (int)get_local_id(1) + u * (int)get_local_id(2)] = 0;
}"""


# Cycles of one load by 32 work-items, from local memory and from a first-level cache, as an H100 takes them.
MEASURED = {
    ("float", "17"): (1.04, 1.06),
    ("float", "l"): (1.04, 1.06),
    ("float", "(l / 16) * 64"): (2.03, 2.05),
    ("float2", "17"): (1.12, 2.06),
    ("float2", "l"): (2.02, 2.06),
    ("float2", "l / 2"): (1.12, 2.06),
    ("float4", "17"): (2.19, 4.09),
    ("float4", "l"): (4.06, 4.09),
    ("float4", "l / 4"): (2.19, 4.09),
    ("float4", "(l / 16) * 64"): (2.19, 4.09),
    ("float4", "(l / 8) * 64"): (4.04, 4.10),
    ("float4", "l % 8"): (4.06, 4.09),
}


@pytest.mark.parametrize(("dtype", "place"), MEASURED)
def test_wide_loads_take_the_cycles_that_were_measured(dtype: str, place: str) -> None:
    source = f"""__kernel void k(__global const {dtype} *restrict a, __global {dtype} *restrict c)
    {{
        __local {dtype} tile[512];
        const int l = get_local_id(0);
        c[get_global_id(0)] = tile[{place}];
        c[get_global_id(0)] += a[{place}];
    }}"""
    kernel = pm.Kernel.from_opencl(source, "k", 32, 32, {"a": 512, "c": 32}).as_compiled()
    own = pm.Kernel.from_opencl(source.replace(f"a[{place}]", "1"), "k", 32, 32, {"a": 512, "c": 32}).as_compiled()
    local = pm.feature("f_mem_transactions_local_load_banks:32").eval(kernel)
    cached = pm.feature("f_mem_transactions_global_load_banks:32")
    assert (local, cached.eval(kernel) - cached.eval(own)) == pytest.approx(MEASURED[dtype, place], rel=0.15)


@pytest.mark.parametrize("dtype", ["uchar", "float", "double", "float4", "float8"])
@pytest.mark.parametrize("name", ["block:32", "block:128", "block:100", "banks:32", "banks:16"])
def test_transactions_at_many_strides_are_those_of_the_addresses(dtype: str, name: str) -> None:
    """Small, equal and neighbouring strides too, which reach into each other, and those that are periods apart."""
    local_size = (6, 5, 4)
    knl = pm.Kernel.from_opencl(BOX, "box", local_size, local_size, {"a": 2**20}, [f"-DTYPE={dtype}"])
    rng = np.random.default_rng(len(dtype + name))
    strides = np.concatenate(
        [
            rng.integers(0, 12, (100, 3)),
            rng.integers(0, 400, (100, 3)),
            2 ** rng.integers(0, 20, (100, 3)) + rng.integers(-1, 2, (100, 3)),
            rng.integers(0, 3, (100, 3)) * rng.integers(1, 5000, (100, 1)),
        ]
    )
    kind, size = name.split(":")
    item = knl.counts.accesses[0].bits // 8
    places = np.stack([axis.ravel(order="F") for axis in np.meshgrid(*map(np.arange, local_size), indexing="ij")])
    expected: list[float] = []
    for row in strides:
        addresses = (row * [1, -1, 1]) @ places * item
        addresses -= addresses.min()
        of_subgroups = [addresses[start : start + 32] for start in range(0, len(addresses), 32)]
        if kind == "block":
            touched = [{a + k for a in found for k in range(item)} for found in of_subgroups]
            expected.append(sum(len({byte // int(size) for byte in each}) for each in touched))
        else:
            expected.append(sum(cycles_of_banks(each.tolist(), item, int(size)) for each in of_subgroups))
    feature = pm.feature(f"f_mem_transactions_global_{name}")
    sizes = dict(zip("stu", strides.T, strict=True))
    assert evaluate(feature, knl, knl.bind(sizes)).tolist() == pytest.approx(expected)


@pytest.mark.parametrize("tags", MEMORY_KERNELS)
def test_footprints_of_work_groups_are_those_of_the_addresses(tags: str) -> None:
    for knl, sites in sites_of(tags):
        for direction in ("load", "store"):
            touched = {
                (site.variable, group, address)
                for site in sites
                if site.space == "global" and site.direction == direction
                for (group, _, _), address in site.addresses.items()
            }
            found = pm.feature(f"f_mem_footprint_global_{direction}_granularity:workgroup").eval(knl)
            assert found == 4 * len(touched), (knl, direction)


def test_arrays_that_work_groups_have_in_common_count_once() -> None:
    body = """int i = get_local_id(0), row = get_group_id(0);
    a[row * 64 + i] += b[i] * (i < 16 ? c[i % 16] : 1);"""
    source = f"__kernel void k(__global float *a, __global const float *b, __global const float *c) {{ {body} }}"
    arrays = {"a": 64 * 64, "b": 64, "c": 64}
    kernel = pm.Kernel.from_opencl(source, "k", 64 * 64, 64, arrays)
    loaded = "f_mem_footprint_global_load_granularity:workgroup_block:32"
    for variable, each, once in (("a", 256 * 64, 256 * 64), ("b", 256 * 64, 256), ("c", 64 * 64, 64)):
        assert pm.feature(f"{loaded}_var:{variable}").eval(kernel) == each
        assert pm.feature(f"{loaded}_once_var:{variable}").eval(kernel) == once
    assert pm.feature(f"{loaded}_once").eval(kernel) == 256 * 64 + 256 + 64


def test_gaps_cost_up_to_a_block() -> None:
    def moved(stride: int, block: int) -> float:
        tags = ["global_copy", "loads:0", f"stride:{stride}", "n:1024"]
        (knl,) = pm.KernelCollection(pm.ALL_GENERATORS).generate_kernels(tags)
        return pm.feature(f"f_mem_footprint_global_block:{block}").eval(knl)

    assert [moved(stride, 64) for stride in (1, 2, 8, 16, 32)] == [4096, 8192, 32768, 65536, 65536]
    assert moved(32, 32) == 32768


def test_accesses_that_are_not_affine_have_a_block_each_within_their_array() -> None:
    program = lp.make_kernel(
        "{[i]: 0 <= i < n}",
        "o[i] = a[p[i]]",
        [
            lp.GlobalArg("a, o", np.float32, shape="n"),
            lp.GlobalArg("p", np.int32, shape="n"),
            lp.ValueArg("n", np.int32),
        ],
        assumptions="n mod 64 = 0",
        lang_version=(2018, 2),
    )
    knl = pm.Kernel(lp.split_iname(program, "i", 64, outer_tag="g.0", inner_tag="l.0"), n=128)
    assert pm.feature("f_mem_footprint_global_load_var:a_block:4").eval(knl.at(n=256)) == 256 * 4
    assert pm.feature("f_mem_footprint_global_load_var:a_block:64").eval(knl) == 128 * 4  # not more than there is
    assert pm.feature("f_mem_footprint_global_load_var:a_granularity:workgroup_block:64").eval(knl) == 2 * 128 * 4
    # 32 work-items each hit one of 16 blocks: some of them the same, as often as chance has it.
    hit = 4 * 16 * (1 - (15 / 16) ** 32)
    assert pm.feature("f_mem_transactions_global_load_var:a_block:32").eval(knl) == pytest.approx(hit)
    with pytest.raises(pm.PerfmodelError, match="or say block"):
        pm.feature("f_mem_footprint_global_load_var:a").eval(knl)


def test_rounds_count_the_loads_of_a_loop_body_once() -> None:
    (knl,) = pm.KernelCollection(pm.ALL_GENERATORS).generate_kernels(
        ["matmul_sq", "tiled_prefetch:False", "lsizes:8x8", "n:16"]
    )
    assert pm.feature("f_mem_access_global_load").eval(knl) == 2 * 16**3
    assert pm.feature("f_mem_rounds_global").eval(knl) == 16**3
    assert pm.feature("f_mem_rounds_local").eval(knl) == 0


def test_unrolled_loops_are_no_rounds() -> None:
    arrays = {"a": "n, 4, 8", "o": "n, 4"}
    domain = "{[i, j, k]: 0 <= i < n and 0 <= j < 4 and 0 <= k < 8}"
    program = make(domain, "o[i, j] = sum(k, a[i, j, k])", arrays, assumptions="n mod 32 = 0")
    program = lp.prioritize_loops(program, "j,k")
    program = lp.split_iname(program, "i", 32, outer_tag="g.0", inner_tag="l.0")
    for unrolled, rounds in {(): 32, ("k",): 4, ("j",): 8, ("j", "k"): 1}.items():
        knl = pm.Kernel(lp.tag_inames(program, dict.fromkeys(unrolled, "unr")), n=64)
        assert pm.feature("f_mem_rounds_global").eval(knl) == 64 * rounds
        assert pm.feature("f_mem_access_global_load").eval(knl) == 64 * 32
        assert pm.feature("f_mem_rounds_global_store").eval(knl) == 64 * (1 if "j" in unrolled else 4)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("f_mem_transactions_global_load", ["needs one of block:BYTES, banks:NUMBER and passes:BYTES"]),
        ("f_mem_transactions_global_block:32_banks:32", ["needs one of block:BYTES"]),
        ("f_mem_transactions_block:32", ["is of global, local or scratch memory"]),
        ("f_mem_transactions_global_block:many", ["block:many is no whole number"]),
        ("f_mem_transactions_global_block:32_granularity:subgroup", ["is by sub-groups"]),
        ("f_mem_rounds", ["of one kind of memory; write which of global, local"]),
        ("f_mem_rounds_scratch", ["unknown word 'scratch'"]),
        ("f_mem_depth", ["of one kind of memory; write which of global, local, scratch"]),
        ("f_mem_depth_load_global", ["unknown word 'load'"]),
        ("f_mem_waits_private", ["unknown word 'private'", "scratch"]),
        ("f_mem_transactions_global_load_block:32_fresh:2", ["unknown word 'fresh'"]),
        ("f_mem_transactions_global_load_banks:32_fresh", ["is of banks", "'fresh'"]),
        ("f_mem_rounds_globl", ["globl", "global"]),
        ("f_mem_footprint_global_granularity:subgroup", ["granularity:workgroup"]),
        ("f_mem_footprint_global_load_once", ["counts every array once anyway", "granularity:workgroup"]),
        ("f_mem_footprint_global_store_brought", ["is not of loads", "write load, too"]),
        ("f_mem_transactions_local_banks:32_joint", ["of banks", "write block:BYTES"]),
        ("f_mem_rounds_global_granularity:longset", ["granularity:longset", "granularity:longest"]),
        ("f_mem_rounds_global_granularity:longest_granularity:workitem", ["granularity twice"]),
        ("f_mem_rounds_granularity:longest", ["of one kind of memory"]),
        ("f_op_float32_carried_contract:off", ["carried operations", "leave contract out"]),
        ("f_op_float32_carried:2", ["'carried'", "takes no condition"]),
        ("f_op_float32_carryed", ["'carryed'", "'carried'"]),
    ],
)
def test_wrong_words_of_features_are_named(name: str, words: list[str]) -> None:
    with pytest.raises(pm.PerfmodelError) as caught:
        pm.feature(name)
    for word in words:
        assert word in str(caught.value)


def test_tiles_are_not_scattered_whatever_shape_a_group_brings_them_in() -> None:
    """The next group's places are known, so that footprints have what is touched; a hash of the whole id is not."""
    source = """__kernel void k(__global const float *a, __global float *out, const int n)
    {
        const int item = get_local_id(0);
        float s = 0;
        for (int j = 0; j < n; j++) s += a[j * n + get_group_id(0) * 64 + (item % 8) * 8 + item / 8];
        out[get_global_id(0)] = s;
    }"""
    tile = "j * n + get_group_id(0) * 64 + (item % 8) * 8 + item / 8"
    hashed = source.replace(tile, "((uint)get_global_id(0) * 2654435761u + j) % 16777216u")
    feature = pm.feature("f_mem_scattered_global_load_missed_block:32_reach:>8000000")
    found = [
        feature.eval(pm.Kernel.from_opencl(text, "k", "n", 64, {"a": "n * n", "out": "n"}, n=4096).as_compiled())
        for text in (source, hashed)
    ]
    assert found[0] == 0
    assert found[1] > 0

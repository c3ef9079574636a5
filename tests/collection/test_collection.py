"""Tag filters: what they select, in which order, and what they say when they select nothing."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from typing import Any

import pytest

import perfmodel as pm
from perfmodel.basics.errors import TagError
from perfmodel.cli.command_line import main
from perfmodel.collection.auto_size import sizes_for
from perfmodel.collection.kernel_generator import KernelGenerator
from perfmodel.collection.verification import verify
from perfmodel.device import Device
from perfmodel.measuring.protocol import PROTOCOLS, launch_overhead, time_launch
from tests.collection.doubled import Doubled


def selected(collection: pm.KernelCollection, *tags: str) -> list[tuple[str, str, int]]:
    return [(k.name, k.tags["tiled_prefetch"], k.sizes["n"]) for k in collection.generate_kernels(list(tags))]


def test_the_slides_tags_work_as_they_stand(collection: pm.KernelCollection) -> None:
    tags = ["matmul_sq", "groups_fit:True", "dtype:float32", "lsize_0:16", "lsize_1:16", "tiled_prefetch:True"]
    kernels = collection.generate_kernels(tags)
    assert [k.sizes["n"] for k in kernels] == [256, 512, 1024, 2048]
    assert {k.tags["tiled_prefetch"] for k in kernels} == {"True"}


def test_a_tag_that_is_not_mentioned_has_its_default_and_a_star_means_all(collection: pm.KernelCollection) -> None:
    assert selected(collection, "matmul_sq", "n:64") == [("matmul_sq", "True", 64)]
    assert selected(collection, "matmul_sq", "n:64", "tiled_prefetch:*") == [
        ("matmul_sq", "True", 64),
        ("matmul_sq", "False", 64),
    ]
    assert selected(collection, "matmul_sq", "n:64,32,64", "tiled_prefetch:False,True") == [
        ("matmul_sq", "False", 64),
        ("matmul_sq", "False", 32),
        ("matmul_sq", "True", 64),
        ("matmul_sq", "True", 32),
    ]


def test_tags_alone_select_the_generators_that_have_them_all(collection: pm.KernelCollection) -> None:
    assert {k.name for k in collection.generate_kernels(["tiled_prefetch:False", "shape:skinny", "n:64"])} == {"matmul"}
    assert {k.name for k in collection.generate_kernels(["loads:1", "stride:2", "n:1024"])} == {"global_copy"}


def test_among_several_generators_a_tag_applies_to_those_that_have_it(collection: pm.KernelCollection) -> None:
    kernels = collection.generate_kernels(["empty", "global_copy", "loads:2", "n:256"])
    assert [(k.name, k.tags.get("loads")) for k in kernels] == [("empty", None), ("global_copy", "2")]


@pytest.mark.filterwarnings("ignore:left out")
def test_families_without_the_values_asked_for_are_left_out(collection: pm.KernelCollection) -> None:
    def names(*tags: str) -> set[str]:
        return {kernel.name for kernel in collection.generate_kernels(list(tags))}

    assert names("dtype:int32", "op:madd", "m:16", "n:256") == {"throughput", "straight_operations"}
    assert names("lsizes:16x12", "fetch:*", "n:96") == {"convolution", "finite_difference", "pairwise"}
    accesses = names("work_removed:True", "n:512", "dtype:float32")
    assert {"matmul_sq", "vector_add"} <= accesses
    assert "reduction" not in accesses  # OpenCL C
    with pytest.raises(TagError, match="'dtype' has no value 'int32'"):
        names("matmul_sq", "dtype:int32")


@pytest.mark.parametrize(
    "tags",
    [
        ["filled_stride", "lsize_0:*,1", "n:512"],
        ["nbody", "prefetch:*", "lsize_0:1", "n:4"],
        ["transpose", "access:*", "lsizes:64x1,1x64,1x1", "n:64"],
        ["matmul", "tiled_prefetch:*", "lsizes:64x1,1x64,1x1", "n:64"],
        ["matmul_sq", "tiled_prefetch:*", "lsizes:64x1,1x64,1x1", "n:64"],
        ["dg", "fetch:*", "lsizes:1x1,2x1,1x2", "nodes:1,2", "elements:2"],
        ["finite_difference", "fetch:*", "lsizes:2x16,1x1", "n:32"],
    ],
)
def test_groups_with_a_short_side_are_left_out_where_they_cannot_be(
    tags: list[str], collection: pm.KernelCollection
) -> None:
    kernels = collection.generate_kernels([tag.replace("*,1", "64,1") for tag in tags])
    assert all(kernel.launch().global_size for kernel in kernels)


def test_strides_may_be_any_number(collection: pm.KernelCollection, cpu: Device) -> None:
    strides = ["lstride_0:7", "lstride_1:5n", "gstride_0:0", "gstride_1:40n", "loopstride:13"]
    (kernel,) = collection.generate_kernels(["access_pattern", *strides, "lsizes:4x8", "n:64", "m:2"])
    verify(collection.generators["access_pattern"], kernel, cpu)


def test_sizes_that_do_not_fit_the_groups_are_left_out(collection: pm.KernelCollection) -> None:
    assert selected(collection, "matmul_sq", "n:64,65") == [("matmul_sq", "True", 64)]
    assert selected(collection, "matmul_sq", "n:64,65", "groups_fit:False") == [("matmul_sq", "True", 65)]


@pytest.mark.parametrize(
    ("tags", "words"),
    {
        "unknown generator": (["matmul_sqr"], ["no generator 'matmul_sqr'", "did you mean 'matmul_sq'"]),
        "tag without value": (["matmul_sq", "dtype"], ["'dtype' is a tag", "dtype:value"]),
        "unknown tag": (["matmul_sq", "tiled_prefech:True"], ["no tag 'tiled_prefech'", "'tiled_prefetch'"]),
        "unknown tag alone": (["shap:skinny"], ["no generator has a tag 'shap'", "'shape'"]),
        "tags of different families": (["shape:skinny", "op:madd"], ["no generator has all of", "shape, op"]),
        "unknown value": (["matmul_sq", "dtype:float33"], ["'dtype' has no value 'float33'", "float32"]),
        "value that is no number": (["matmul_sq", "n:many"], ["'n' has no value 'many'", "other whole numbers"]),
        "zero": (["matmul_sq", "n:0"], ["'n' has no value '0'"]),
        "negative": (["matmul_sq", "n:-16"], ["'n' has no value '-16'"]),
        "twice": (["matmul_sq", "n:16", "n:32"], ["'n' is given twice", "n:16,32"]),
        "no multiple": (
            ["matmul_sq", "n:100"],
            ["n must be a multiple of 16 with groups_fit:True", "n:96 or n:112, or groups_fit:False"],
        ),
        "below a group": (["matmul_sq", "n:7"], ["ask for n:16, or groups_fit:False"]),
        "a multiple": (
            ["matmul_sq", "n:96", "groups_fit:False"],
            ["n can't be a multiple", "n:95, or groups_fit:True"],
        ),
        "always fits": (["throughput", "n:100"], ["n must be a multiple of 256; ask for n:256"]),
        "no other size": (["overlap", "m:100"], ["such as n:1048576 m:16", "an m of more than 64"]),
        "no variant": (["throughput", "op:shift"], ["no size has such a variant", "operations that a dtype"]),
        "group for no size": (["reduction", "lsize_0:48"], ["no size has such a variant", "no power of two"]),
        "no access": (["launch", "work_removed:True"], ["no global access", "leave out work_removed:True"]),
        "tiles of a row": (["transpose", "lsizes:64x1"], ["no size has such a variant", "one row or column"]),
        "value of no family": (["dtype:float33"], ["'dtype' has no value 'float33'"]),
        "stride": (["access_pattern", "lstride_0:03n"], ["'lstride_0' has no value '03n'", "other k and kn"]),
        "empty value": (["matmul_sq", "n:"], ["'n' has no value ''"]),
    }.values(),
)
def test_wrong_tags_are_named(tags: list[str], words: list[str], collection: pm.KernelCollection) -> None:
    with pytest.raises(TagError) as caught:
        collection.generate_kernels(tags)
    for word in words:
        assert word in str(caught.value)


def test_options_stand_between_tags(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kernels", "matmul_sq", "--json", "n:64"]) == 0
    assert [kernel["sizes"] for kernel in json.loads(capsys.readouterr().out)["kernels"]] == [{"n": 64}]


def test_an_unknown_device_is_refused_where_none_is_needed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kernels", "matmul_sq", "--device", "nonsense", "n:64"]) == 2
    assert "nonsense" in capsys.readouterr().err


def test_a_string_is_not_a_list_of_tags(collection: pm.KernelCollection) -> None:
    with pytest.raises(TagError, match=r"write \['matmul_sq'\]"):
        collection.generate_kernels("matmul_sq")


def sizes(collection: pm.KernelCollection, *tags: str, **options: Any) -> list[int]:
    return [k.sizes["n"] for k in collection.generate_kernels(list(tags), **options)]


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("64,2^5", [64, 32]),
        ("2^(5+t)", [32, 64, 128, 256]),
        ("2^(5+t):2", [32, 64]),
        ("2^(5+2t):3", [32, 128, 512]),
        ("2^(5+2*t):3,48", [32, 128, 512, 48]),
        ("2^(3+t)", [16, 32, 64]),  # what is smaller than a work-group becomes one
    ],
)
def test_sizes_are_numbers_powers_and_series(asked: str, expected: list[int], collection: pm.KernelCollection) -> None:
    assert sizes(collection, "matmul_sq", f"n:{asked}") == expected


def test_a_series_has_the_published_step_and_cases(collection: pm.KernelCollection) -> None:
    """2016, section 4.1: vector scale and add, and stride-1 global access."""
    assert len(sizes(collection, "global_copy", "n:2^(8+t)")) == 9
    with pytest.raises(TagError, match="'n' has no value '2"):
        sizes(collection, "matmul_sq", "n:2^(60+t)")


def test_powers_are_moved_to_fit_groups_and_numbers_are_not(collection: pm.KernelCollection) -> None:
    assert sizes(collection, "matmul_sq", "lsizes:16x12", "n:2^(7+t):2") == [144, 288]
    assert sizes(collection, "matmul_sq", "lsizes:16x12", "n:128,144") == [144]
    assert sizes(collection, "matmul_sq", "groups_fit:False", "n:2^(5+t):2") == [31, 63]
    assert sizes(collection, "matmul_sq", "groups_fit:False", "lsizes:16x12", "n:2^(5+t):2") == [32, 64]
    assert all(n % 16 for n in sizes(collection, "matmul_sq", "groups_fit:False"))


def test_work_groups_are_chosen_whole(collection: pm.KernelCollection) -> None:
    """The sets of 2016, section 4.1."""

    def groups(*tags: str) -> list[tuple[str, ...]]:
        kernels = collection.generate_kernels(list(tags))
        assert all(k.launch().local_size == tuple(int(s) for k_, s in k.tags.items() if "lsize" in k_) for k in kernels)
        return [tuple(value for tag, value in k.tags.items() if tag.startswith("lsize_")) for k in kernels]

    assert groups("matmul_sq", "lsizes:2-D_Med", "n:2^5") == [("16", "12"), ("16", "16"), ("32", "16")]
    assert groups("matmul_sq", "lsizes:2-D Small, 8x4", "n:2^5")[2:] == [("16", "16"), ("8", "4")]
    assert groups("global_copy", "lsizes:1-d_large,256,64", "n:2^10") == [("256",), ("384",), ("512",), ("64",)]


@pytest.mark.parametrize(
    ("tags", "words"),
    {
        "unknown set": (["matmul_sq", "lsizes:2-D_Medium"], ["lsizes has no value '2-D_Medium'", "2-D_Med"]),
        "no shape": (["matmul_sq", "lsizes:16x"], ["lsizes has no value '16x'", "16x12"]),
        "other rank": (["matmul_sq", "lsizes:1-D_Med"], ["groups of 1 axes", "have 2"]),
        "both": (["matmul_sq", "lsizes:8x8", "lsize_0:8"], ["lsizes and lsize_0", "leave one out"]),
        "no work-groups": (["doubled", "lsizes:64"], ["no tag 'lsizes'"]),
    }.values(),
)
def test_wrong_work_groups_are_named(tags: list[str], words: list[str], collection: pm.KernelCollection) -> None:
    with pytest.raises(TagError) as caught:
        pm.KernelCollection([*collection.generators.values(), Doubled()]).generate_kernels(tags)
    for word in words:
        assert word in str(caught.value)


def test_automatic_sizes_exceed_launch_overhead(collection: pm.KernelCollection, cpu: Device) -> None:
    found = sizes(collection, "global_copy", "n:auto:3", device=cpu)
    assert len(found) == 3
    assert [b // a for a, b in itertools.pairwise(found)] == [2, 2]
    (smallest,) = collection.generate_kernels(["global_copy", f"n:{found[0]}"])
    # It was ten times the overhead when it was chosen; clocks and neighbours change.
    assert time_launch(smallest.launch(), cpu, PROTOCOLS["quick"]).seconds > 3 * launch_overhead(cpu)


def test_automatic_sizes_respect_memory_and_time(cpu: Device) -> None:
    kernels = [
        pm.KernelCollection(pm.ALL_GENERATORS).generate_kernels(["global_copy", f"n:{2**k}"])[0] for k in range(8, 31)
    ]
    by_size = {k.sizes["n"]: k for k in kernels}
    small = replace(cpu, global_memory=2 * by_size[2**20].launch().arrays()[0].size * 4 * 2)
    assert max(sizes_for(small, 1, 40, by_size.__getitem__, at_least=256)) == 2**20
    assert max(sizes_for(cpu, 2, 40, by_size.__getitem__, at_least=256, budget_s=1e-3)) < 2**20


def test_only_one_size_is_automatic(collection: pm.KernelCollection, cpu: Device) -> None:
    with pytest.raises(TagError, match="n and m of 'throughput' are both auto; give all but one by number"):
        collection.generate_kernels(["throughput", "n:auto", "m:auto"], cpu)


def test_a_sample_takes_families_in_turn_and_is_always_the_same(
    collection: pm.KernelCollection, monkeypatch: pytest.MonkeyPatch
) -> None:
    filters = [["matmul_sq", "n:*", "tiled_prefetch:*"], ["global_copy", "loads:1,2", "n:1024"], ["empty", "n:*"]]
    every = {kernel for tags in filters for kernel in collection.generate_kernels(tags)}
    made: list[str] = []
    kept = KernelGenerator.made

    def noted(generator: KernelGenerator, *given: Any) -> list[pm.Kernel]:
        made.append(generator.name)
        return kept(generator, *given)

    monkeypatch.setattr(KernelGenerator, "made", noted)
    some = collection.sample_kernels(filters, 7)
    assert len(made) == 7  # no program of the others is made
    assert [kernel.name for kernel in some[:3]] == ["matmul_sq", "global_copy", "empty"]
    assert set(some) < every
    assert some == collection.sample_kernels(filters, 7) == collection.sample_kernels(filters, 9)[:7]
    assert set(collection.sample_kernels(filters, 10**6)) == every
    with pytest.raises(TagError, match="no tag 'loadz'"):
        collection.sample_kernels([["global_copy", "loadz:1"]], 3)

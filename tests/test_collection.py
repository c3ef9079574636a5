"""Tag filters: what they select, in which order, and what they say when they select nothing."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import loopy as lp
import numpy as np
import pytest

import perfmodel as pm
from perfmodel.auto_size import sizes_for
from perfmodel.collection import Tag, choice, size, work_group
from perfmodel.device import Device
from perfmodel.errors import KernelError, PerfmodelError, TagError
from perfmodel.measurement import PROTOCOLS, launch_overhead, time_launch
from perfmodel.verification import verify, verify_family


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
        "nothing fits": (["matmul_sq", "n:17"], ["select no kernel", "sizes"]),
        "empty value": (["matmul_sq", "n:"], ["'n' has no value ''"]),
    }.values(),
)
def test_wrong_tags_are_named(tags: list[str], words: list[str], collection: pm.KernelCollection) -> None:
    with pytest.raises(TagError) as caught:
        collection.generate_kernels(tags)
    for word in words:
        assert word in str(caught.value)


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
        pm.KernelCollection(pm.ALL_GENERATORS).generate_kernels(["global_copy", f"n:{2**k}"])[0] for k in range(8, 40)
    ]
    by_size = {k.sizes["n"]: k for k in kernels}
    small = replace(cpu, global_memory=2 * by_size[2**20].launch().arrays()[0].size * 4 * 2)
    assert max(sizes_for(small, 1, 40, by_size.__getitem__, at_least=256)) == 2**20
    assert max(sizes_for(cpu, 2, 40, by_size.__getitem__, at_least=256, budget_s=1e-3)) < 2**20


def test_only_one_size_is_automatic(collection: pm.KernelCollection, cpu: Device) -> None:
    with pytest.raises(TagError, match="n and m of 'throughput' are both auto; give all but one by number"):
        collection.generate_kernels(["throughput", "n:auto", "m:auto"], cpu)


class Doubled(pm.KernelGenerator):
    """A family without work-groups."""

    name = "doubled"
    summary = "twice a vector"
    tags: tuple[Tag, ...] = (size("n", "elements", 256),)
    checks = (("n:5",),)

    def program(self, variant: Mapping[str, str]) -> Any:
        arrays = [lp.GlobalArg("a,b", np.float32, shape="n"), lp.ValueArg("n", np.int32)]
        return lp.make_kernel("{[i]: 0 <= i < n}", "b[i] = 2*a[i]", arrays, lang_version=(2018, 2))

    def reference(self, kernel: pm.Kernel, arrays: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"b": (3 if kernel.sizes["n"] == 6 else 2) * arrays["a"]}


def test_verification_finds_a_wrong_element(cpu: Device) -> None:
    generator = Doubled()
    assert verify_family(generator, cpu) == 1
    (wrong,) = pm.KernelCollection([generator]).generate_kernels(["doubled", "n:6"])
    with pytest.raises(KernelError, match=r"computes b\[0\] = .*, its reference .* \(6 of 6 elements differ\)"):
        verify(generator, wrong, cpu)


class VectorMean(pm.KernelGenerator):
    """A generator as a user writes it."""

    name = "vector_mean"
    summary = "c = a + b"
    tags: tuple[Tag, ...] = (
        choice("dtype", "element type", "float32", "float64"),
        *work_group(64),
        size("n", "elements", 256, 512),
    )
    checks = (("n:256",),)

    def program(self, variant: Mapping[str, str]) -> Any:
        program = lp.make_kernel(
            "{[i]: 0 <= i < n}",
            "c[i] = a[i] + b[i]",
            [lp.GlobalArg("a,b,c", np.dtype(variant["dtype"]), shape="n"), lp.ValueArg("n", np.int32)],
            lang_version=(2018, 2),
        )
        return lp.split_iname(program, "i", int(variant["lsize_0"]), outer_tag="g.0", inner_tag="l.0")

    def reference(self, kernel: pm.Kernel, arrays: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"c": arrays["a"] + arrays["b"]}


def test_a_users_generator_stands_beside_the_others() -> None:
    collection = pm.KernelCollection([*pm.ALL_GENERATORS, VectorMean()])
    kernels = collection.generate_kernels(["vector_mean", "lsize_0:32,64"])
    assert [(k.tags["lsize_0"], k.sizes["n"]) for k in kernels] == [("32", 256), ("32", 512), ("64", 256), ("64", 512)]
    assert pm.feature("f_op_float32_add").eval(kernels[1]) == 512


def test_two_generators_of_one_name_are_refused() -> None:
    with pytest.raises(PerfmodelError, match="two generators are called 'vector_mean'"):
        pm.KernelCollection([VectorMean(), VectorMean()])

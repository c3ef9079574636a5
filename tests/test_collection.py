"""Tag filters: what they select, in which order, and what they say when they select nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

import perfmodel as pm
from perfmodel.collection import Tag, choice, number, size
from perfmodel.errors import PerfmodelError, TagError


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
    assert {k.name for k in collection.generate_kernels(["pattern:row", "n:64"])} == {"tile_access"}
    assert {k.name for k in collection.generate_kernels(["loads:1", "stride:2", "n:1024"])} == {"global_copy"}


def test_among_several_generators_a_tag_applies_to_those_that_have_it(collection: pm.KernelCollection) -> None:
    kernels = collection.generate_kernels(["empty", "global_copy", "loads:2", "n:1024"])
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
        "unknown tag alone": (["patern:row"], ["no generator has a tag 'patern'", "'pattern'"]),
        "tags of different families": (["pattern:row", "op:madd"], ["no generator has all of", "pattern, op"]),
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


class VectorAdd(pm.KernelGenerator):
    """A generator as a user writes it."""

    name = "vector_add"
    summary = "c = a + b"
    tags: tuple[Tag, ...] = (
        choice("dtype", "element type", "float32", "float64"),
        number("lsize", "work-items of a work-group", 64, 128),
        size("n", "elements", 256, 512),
    )

    def program(self, variant: Mapping[str, str]) -> Any:
        import loopy as lp
        import numpy as np

        program = lp.make_kernel(
            "{[i]: 0 <= i < n}",
            "c[i] = a[i] + b[i]",
            [lp.GlobalArg("a,b,c", np.dtype(variant["dtype"]), shape="n"), lp.ValueArg("n", np.int32)],
            lang_version=(2018, 2),
        )
        return lp.split_iname(program, "i", int(variant["lsize"]), outer_tag="g.0", inner_tag="l.0")

    def reference(self, kernel: pm.Kernel, arrays: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"c": arrays["a"] + arrays["b"]}


def test_a_users_generator_stands_beside_the_others() -> None:
    collection = pm.KernelCollection([*pm.ALL_GENERATORS, VectorAdd()])
    kernels = collection.generate_kernels(["vector_add", "lsize:32,64"])
    assert [(k.tags["lsize"], k.sizes["n"]) for k in kernels] == [("32", 256), ("32", 512), ("64", 256), ("64", 512)]
    assert pm.feature("f_op_float32_add").eval(kernels[1]) == 512


def test_two_generators_of_one_name_are_refused() -> None:
    with pytest.raises(PerfmodelError, match="two generators are called 'vector_add'"):
        pm.KernelCollection([VectorAdd(), VectorAdd()])

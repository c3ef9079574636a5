"""Tag filters: what they select, in which order, and what they say when they select nothing."""

from __future__ import annotations

import itertools
import json
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import loopy as lp
import numpy as np
import pytest

import perfmodel as pm
from perfmodel.basics import registry
from perfmodel.basics.errors import KernelError, PerfmodelError, TagError
from perfmodel.cli.command_line import main
from perfmodel.collection.auto_size import sizes_for
from perfmodel.collection.tags import Tag, choice, number, size, work_group
from perfmodel.collection.verification import small_variants, verify, verify_family
from perfmodel.device import Device
from perfmodel.measuring.protocol import PROTOCOLS, launch_overhead, time_launch


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


def test_a_variant_keeps_its_program_unless_its_generator_may_change() -> None:
    def programs(generator: Doubled) -> list[Any]:
        made = pm.KernelCollection([generator])
        return [made.generate_kernels(["doubled", f"n:{n}"])[0].program for n in (5, 6)]

    first, second = programs(Doubled())
    assert first is second
    holding = Doubled()
    holding.summary = "something that a program may follow from"
    first, second = programs(holding)
    assert first is not second


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


def failing(*_: Any) -> Any:
    return dict[str, str]()["m"]


def with_attributes(**attributes: Any) -> pm.KernelGenerator:
    generator: pm.KernelGenerator = type("Changed", (VectorMean,), attributes)()
    return generator


@pytest.mark.parametrize(
    ("attributes", "words"),
    {
        "name": ({"name": 3}, "called 3; name it with letters"),
        "colon": ({"name": "a:b"}, "called 'a:b'; name it with letters"),
        "tag alone": ({"tags": size("n", "elements", 256)}, "no tuple of tags; write tags = "),
        "twice": ({"tags": (size("n", "a", 1), number("n", "b", 2))}, "has two tags 'n'; rename one"),
        "reserved": ({"tags": (size("n", "a", 1), choice("kept", "b", "x"))}, "has a tag 'kept'; name it .*none of"),
    }.values(),
)
def test_wrong_generators_are_refused(attributes: dict[str, Any], words: str) -> None:
    with pytest.raises(TagError, match=f"generator Changed of module .*{words}"):
        pm.KernelCollection([with_attributes(**attributes)])


@pytest.mark.parametrize("attribute", ["name", "summary", "tags", "checks"])
def test_generators_that_lack_an_attribute_are_refused(attribute: str) -> None:
    given = {"name": "bare", "summary": "", "tags": (size("n", "a", 1),), "checks": ()}
    methods = {"program": failing, "reference": failing}
    del given[attribute]
    with pytest.raises(TagError, match=f"generator Bare of module .* has no {attribute}; give it one"):
        pm.KernelCollection([type("Bare", (pm.KernelGenerator,), {**given, **methods})()])


def test_a_class_is_no_generator() -> None:
    with pytest.raises(TagError, match=r"is no generator; give VectorMean\(\)"):
        pm.KernelCollection([VectorMean])  # type: ignore[list-item]


@pytest.mark.parametrize("method", ["program", "arguments", "multiples", "fits"])
def test_errors_in_generators_are_said_of_them(method: str) -> None:
    collection = pm.KernelCollection([with_attributes(**{method: failing})])
    with pytest.raises(TagError, match=rf"'vector_mean' failed in {method}\(…\) with KeyError: 'm'; mend it") as caught:
        collection.generate_kernels(["n:256"])  # not left out, although it was not asked for by name
    assert isinstance(caught.value.__cause__, KeyError)


@pytest.mark.parametrize(
    ("method", "result", "words"),
    [
        ("multiples", {"n": 0}, "'n' must be a multiple of 0; return a whole number"),
        ("multiples", {"k": 4}, "has 'k', which is no size; name one of n"),
        ("multiples", None, "gives None; return a dictionary"),
        ("program", None, "gives None; return the program"),
        ("arguments", [("n", 4)], "gives .*; return a dictionary"),
    ],
)
def test_wrong_results_of_generators_are_named(method: str, result: Any, words: str) -> None:
    collection = pm.KernelCollection([with_attributes(**{method: lambda *_: result})])
    with pytest.raises(TagError, match=rf"{method}\(…\) of generator 'vector_mean' .*{words}"):
        collection.generate_kernels(["vector_mean"])


@pytest.mark.parametrize(
    ("attributes", "words"),
    [
        ({"checks": ("n:256",)}, "checks of generator 'vector_mean' are no filters .* a comma behind each"),
        ({"checks": ()}, "checks of generator 'vector_mean' are no filters"),
        ({"reference": failing}, "failed in reference.* with KeyError: 'm'; return a dictionary of arrays"),
        ({"inputs": failing}, "failed in inputs.* with KeyError: 'm'; return a dictionary of arrays"),
        ({"reference": lambda *_: None}, "failed in reference.*; return a dictionary of arrays by name"),
        ({"reference": lambda *_: {"c": "sum"}}, "gives 'c' as <U3; return numbers"),
    ],
)
def test_verification_names_what_a_generator_lacks(attributes: dict[str, Any], words: str, cpu: Device) -> None:
    with pytest.raises(TagError, match=words):
        verify_family(with_attributes(**attributes), cpu)


def test_verification_leaves_out_what_the_device_cannot_run(cpu: Device) -> None:
    generator = with_attributes(checks=(("n:256", "lsize_0:64,256"),))
    assert verify_family(generator, cpu) == 4
    assert verify_family(generator, replace(cpu, double_precision=False)) == 2
    assert verify_family(generator, replace(cpu, max_work_group_size=128)) == 2


class Overwriting(Doubled):
    """A family whose kernel writes an array that it declares as read only."""

    def program(self, variant: Mapping[str, str]) -> Any:
        from perfmodel.kernels.arguments import Array, Scalar
        from perfmodel.kernels.opencl_program import OpenCLProgram

        return OpenCLProgram(
            """
            __kernel void doubled(__global float *a, __global float *b, const int n)
            {
                b[get_global_id(0)] = 2 * a[get_global_id(0)];
                if (get_global_id(0) == 3) a[3] = 0;
            }
            """,
            "doubled",
            "n",
            1,
            [Array("a", "float32", "n"), Array("b", "float32", "n", is_output=True), Scalar("n", "int32")],
        )


def test_verification_finds_writes_to_inputs(cpu: Device) -> None:
    with pytest.raises(KernelError, match="writes 'a', which is not declared as an output"):
        verify_family(Overwriting(), cpu)


@pytest.mark.parametrize("family", [generator.name for generator in pm.ALL_GENERATORS])
def test_every_listed_value_is_checked(family: str, collection: pm.KernelCollection) -> None:
    generator = collection.generators[family]
    checked = [variant for variant, _ in small_variants(generator)]
    for tag in generator.tags:
        if not tag.is_size:
            assert set(tag.values) <= {variant[tag.name] for variant in checked}, tag.name


USERS = """
import perfmodel as pm
from perfmodel.collection.tags import size


class VectorMean(pm.KernelGenerator):
    name = "vector_mean"
    summary = "c = a + b"
    tags = (size("n", "elements", 256),)
    checks = (("n:256",),)

    def program(self, variant): ...

    def reference(self, kernel, arrays): ...
"""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], tuple[Any, ...]]:
    """Returns all generators beside those of an installed package with this name and source."""

    def install(name: str, source: str) -> tuple[Any, ...]:
        package = tmp_path / name
        package.mkdir()
        (package / "__init__.py").write_text(f"from {name}.means import *")
        (package / "means.py").write_text(textwrap.dedent(source))
        info = tmp_path / f"{name}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        points = f"[perfmodel.generators]\nmeans = {name}.means\npackage = {name}\n"
        (info / "entry_points.txt").write_text(points)
        monkeypatch.syspath_prepend(tmp_path)
        return registry.entries.__wrapped__("generators", pm.KernelGenerator)

    return install


def test_a_package_may_take_its_generators_from_its_modules(installed: Callable[[str, str], tuple[Any, ...]]) -> None:
    found = installed("good_means", USERS)
    assert [type(g).__module__ for g in found if g.name == "vector_mean"] == ["good_means.means"]
    assert len(found) == len(pm.ALL_GENERATORS) + 1


@pytest.mark.parametrize(
    ("package", "old", "new", "words"),
    [
        ("no_reference", "def reference", "def refrence", "module no_reference.means lacks reference; define it"),
        ("no_name", 'name = "vector_mean"', "", "module no_name.means has no name; give it one"),
        (
            "bad_init",
            "def program",
            "def __init__(self): self.n\n\n    def program",
            r"cannot be made .*AttributeError",
        ),
        ("bad_import", "import perfmodel as pm", "import perfmodel as pm; pm.nothing", "of bad_import does not load"),
    ],
)
def test_a_package_that_cannot_be_used_is_named(
    package: str, old: str, new: str, words: str, installed: Callable[[str, str], tuple[Any, ...]]
) -> None:
    with pytest.raises(PerfmodelError, match=words):
        installed(package, USERS.replace(old, new))

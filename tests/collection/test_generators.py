"""Families of kernels, those of one's own too: what they have to say, how results are verified, and who brings them."""

from __future__ import annotations

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
from perfmodel.collection.tags import Tag, choice, number, size, work_group
from perfmodel.collection.verification import small_variants, verify, verify_family
from perfmodel.device import Device
from tests.collection.doubled import Doubled


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

"""Every family of kernels, also in its OpenCL C form: what it computes, and that all who count it agree."""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pytest

import perfmodel as pm
from perfmodel.collection.kernel_generator import TOLERANCES, KernelGenerator
from perfmodel.collection.verification import can_run, verify
from perfmodel.counting.counts import KernelCounts
from perfmodel.device import Device
from perfmodel.kernels.arguments import Image, LocalArray, Scalar
from perfmodel.kernels.opencl_program import OpenCLProgram
from perfmodel.opencl_c.emulation import Argument, LocalBytes
from perfmodel.opencl_c.emulation import Image as ImageArray
from perfmodel.vocabulary.named_features import evaluate_all
from tests.counting_kernels import is_whole
from tests.covering import EXAMPLES, Variant, each_value, few, small, typical
from tests.opencl_c.tally import counted, emulated, everything, without_unknown

FAMILIES = sorted(generator.name for generator in pm.ALL_GENERATORS)
SUBGROUP = 32
LARGE = 150
"""Sizes that add up to more are not taken, where a variant has smaller ones."""

FEATURES = (
    "f_mem_bytes_global",
    "f_mem_footprint_global",
    "f_mem_footprint_global_granularity:workgroup",
    "f_mem_footprint_global_granularity:workgroup_block:32",
    "f_mem_access_global_load_granularity:subgroup",
    "f_mem_access_global_store_granularity:subgroup",
    "f_mem_access_local_load_granularity:subgroup",
    "f_mem_access_global_load_granularity:longest",
    "f_mem_rounds_global",
    "f_mem_rounds_local",
    "f_mem_transactions_global_load_block:32",
    "f_mem_transactions_global_store_block:32",
    "f_mem_transactions_local_banks:32",
    "f_op_float32_madd_carried",
    "f_op_float64_madd_carried",
    "f_op_float32_add_carried",
    "f_op_int32_madd_carried",
    "f_sync_barrier_local",
    "f_sync_barrier_local_granularity:workgroup",
    "f_thread_groups",
)

OVERLAPPING = {"access_pattern": {"race"}, "local_access": {"race"}}
"""Families whose patterns let several work-items store the same value in one element."""
FOLDED = frozenset({"throughput"})
"""Families whose products by 0 and 1 Loopy's code generator leaves out: there, a multiply that feeds an add is an add
too."""
OTHERWISE = {
    # What neighbours have in common by a quotient, as in a[i / 2], is seen in the source only.
    "resample": ("transactions",),
    # Loopy fills the gaps between three coordinates beyond the array's end.
    "nbody": ("workgroup_block:32",),
}
"""Features that a family's two forms rightly differ in."""
APART = frozenset({"access_pattern", "throughput"})
"""Families of which only variants that differ from the default in one choice are compared: remainders of whole numbers
in chains, and blocks between strides along two axes, count otherwise in the source."""
WRITTEN_IN_OPENCL = frozenset(
    {
        *("access_classes", "fast_walsh", "index_arithmetic", "random_expression", "reduction", "sq_mod"),
        *("straight_operations", "table_cipher", "work_group_size"),
        *("atomic_update", "constant_lookups", "decisions", "dependent_steps", "image_reads", "pointer_chase"),
        *("row_passes", "sparse_rows", "vector_functions", "windows"),
        *("group_sums", "records", "selections", "texts"),
        *("private_array", "residency", "special_functions"),
    }
)
"""Families that have no other form."""
NUMBERS = ("float32", "int32", "uint32")
"""Types of which variants are counted."""
OF_RANDOM_LENGTH = frozenset({"records", "selections", "sparse_rows", "texts"})
"""Families whose loops and conditions data decide, which are observed with other data than are verified."""
DECIDED_BY_DATA = {"floyd_warshall": ("if (found < known)", 0.0)}
"""A branch whose probability the generator gives to Loopy, which its source cannot say."""

HUGE = ("span", str(2**26))
"""A tag whose arrays take a quarter of a GiB: for `make fuzz` and `make table`."""

CLAMPED = {"image_reads": "photo", "windows": "x"}
"""Pictures that are read beyond their edges: only the emulation sees all that pixels of the edge are given for."""


def variants(generator: KernelGenerator) -> list[Variant]:
    """Returns the variants that a device is asked, each at its smallest sizes, so that their programs are made once.

    Where all variants are asked for, and where choices that come together make the two forms differ, those are returned
    with every value of every choice, the other choices at their defaults.
    """
    if EXAMPLES:
        return _one_choice_each(generator)
    if generator.name in APART:
        return each_value(_one_choice_each(generator))
    every, chosen = _checked(generator), {}
    for variant in few(every):
        alike = [other for other in every if other.tags == variant.tags]
        chosen[tuple(variant.tags.items())] = min(alike, key=_size)
    return list(chosen.values())


def _checked(generator: KernelGenerator) -> list[Variant]:
    """Returns every variant by a family's checks, without huge ones unless all are asked for."""
    return [variant for variant in small(generator) if EXAMPLES or HUGE not in variant.tags.items()]


def _one_choice_each(generator: KernelGenerator) -> list[Variant]:
    found: dict[tuple[tuple[str, str], ...], Variant] = {}
    for number, check in enumerate(generator.checks[:2]):
        given = dict(tag.split(":") for tag in check)
        choices = [tag.name for tag in generator.tags if not tag.is_size and not tag.is_open and tag.name not in given]
        if number:  # types are the same where work-groups do not fit
            choices = [choice for choice in choices if choice != "dtype"]
        for choice in choices or [""]:
            # There may be none, where no value of this choice has such sizes.
            selected = generator.selected({**({choice: "*"} if choice else {}), **given})
            some = [Variant(generator, tags, each) for tags, sizes in selected for each in sizes]
            shown = typical(variant.tags.get(choice, "") for variant in some)
            some = [variant for variant in some if variant.tags.get(choice, "") in shown]
            for variant in sorted(some, key=_size, reverse=True):
                key = tuple((tag, value) for tag, value in variant.tags.items() if not tag.startswith("lsize"))
                if key not in found or _size(found[key]) > LARGE:
                    found[key] = variant
    return list(found.values())


def _size(variant: Variant) -> float:
    return sum(variant.generator.arguments(variant.tags, variant.sizes).values())


def in_opencl(kernel: pm.Kernel) -> pm.Kernel:
    converted = kernel.as_opencl()
    if kernel.name not in DECIDED_BY_DATA:
        return converted
    program = converted.program
    assert isinstance(program, OpenCLProgram)
    text, probability = DECIDED_BY_DATA[kernel.name]
    (line,) = [number for number, line in enumerate(program.source.splitlines(), 1) if text in line]
    given: Any = (*program._given, program.assumptions, {f"if_{line}": probability})
    return pm.Kernel(OpenCLProgram(*given), kernel.tags, None, **converted.bound)


def operations(counts: KernelCounts, sizes: Mapping[str, Any], family: str) -> Counter[tuple[str, ...]]:
    """Returns operations by kind, type and granularity, the zeros left out."""
    found: Counter[tuple[str, ...]] = Counter()
    for operation in counts.operations:
        kind = operation.kind
        if family in FOLDED:
            if kind == "mul":
                continue
            kind = "add" if kind == "madd" else kind
        longest = max(float(count(sizes)) for count in operation.executions.longest)
        for granularity, times in (
            ("work-item", float(operation.executions.workitem(sizes))),
            ("sub-group", _number(operation.executions.subgroup, sizes)),
            ("work-group", float(operation.executions.workgroup(sizes))),
            ("longest", longest),
        ):
            found[kind, operation.dtype, granularity] += int(operation.per_execution * times)
    return +found


def accesses(counts: KernelCounts, sizes: Mapping[str, Any]) -> Counter[tuple[str, ...]]:
    """Returns executions and bytes by space, array, direction, type and granularity.

    Without private memory: Loopy's private arrays and temporaries are registers of the source, of which those that
    values are computed with count, at every use.
    """
    found: Counter[tuple[str, ...]] = Counter()
    for access in counts.accesses:
        if access.space == "private":
            continue
        key = access.space, access.variable, access.direction, access.dtype
        found[*key, "work-item"] += int(float(access.executions.workitem(sizes)))
        found[*key, "bytes"] += access.bits // 8 * int(float(access.executions.workitem(sizes)))
        found[*key, "sub-group"] += int(_number(access.executions.subgroup, sizes))
    return +found


def _number(quantity: Any, sizes: Mapping[str, Any]) -> float:
    assert quantity is not None
    return float(quantity(sizes))


@dataclass
class Forms:
    """One kernel of a family, and its OpenCL C form."""

    kernel: pm.Kernel

    @cached_property
    def converted(self) -> pm.Kernel:
        return in_opencl(self.kernel)


@pytest.fixture(scope="module", params=FAMILIES)
def generator(request: pytest.FixtureRequest, collection: pm.KernelCollection) -> KernelGenerator:
    return collection.generator(request.param)


@pytest.fixture(scope="module")
def family(generator: KernelGenerator) -> list[Forms]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [Forms(variant.kernel) for variant in variants(generator)]


def test_a_device_computes_the_reference(generator: KernelGenerator, cpu: Device) -> None:
    variants = _checked(generator)
    # Code is made to see what can run, so that only the chosen ones are asked.
    while unable := [variant for variant in few(variants) if not can_run(variant.kernel, cpu)]:
        variants = [variant for variant in variants if variant not in unable]
    assert variants
    for variant in few(variants):
        verify(generator, variant.kernel, cpu)


def test_every_variant_counts(generator: KernelGenerator) -> None:
    """Those of other types count alike. Footprints of irregular strides keep isl busy for long."""
    strides = {tag.name: tag.values for tag in generator.tags if tag.pattern}
    regular = [
        variant for variant in small(generator) if all(variant.tags[name] in listed for name, listed in strides.items())
    ]
    chosen = [variant for variant in few(regular) if variant.tags.get("dtype", "float32") in NUMBERS]
    assert chosen
    for variant in chosen:
        # Sub-groups of large work-groups with remainders take isl some ten seconds.
        sides = [int(value) for name, value in variant.tags.items() if name.startswith("lsize_")]
        kernel = variant.kernel
        counts = kernel.counts_for(SUBGROUP if math.prod(sides) <= 256 else None)
        assert counts.exact
        assert is_whole(counts, kernel.bind({})), kernel


def test_static_counts_of_the_source_are_those_of_the_loopy_program(
    generator: KernelGenerator, family: list[Forms]
) -> None:
    name = generator.name
    assert family
    if name in WRITTEN_IN_OPENCL:
        assert all(isinstance(forms.kernel.program, OpenCLProgram) for forms in family)
        return
    leave_out = OTHERWISE.get(name, ())
    features = {name: pm.feature(name) for name in FEATURES if not any(part in name for part in leave_out)}
    for forms in family:
        kernel, converted = forms.kernel, forms.converted
        sizes = kernel.bind({})
        ours, theirs = converted.counts_for(SUBGROUP), kernel.counts_for(SUBGROUP)
        assert operations(ours, sizes, name) == operations(theirs, sizes, name), kernel
        assert accesses(ours, sizes) == accesses(theirs, sizes), kernel
        found, expected = (evaluate_all(features, each, sizes) for each in (converted, kernel))
        assert found.keys() == expected.keys()
        for feature in found:
            assert found[feature] == pytest.approx(expected[feature], rel=1e-12), (kernel, feature)


def test_the_emulation_computes_the_reference_and_counts_as_the_static_counts(
    generator: KernelGenerator, family: list[Forms]
) -> None:
    for forms in family:
        kernel, converted = forms.kernel, forms.converted
        assert isinstance(converted.program, OpenCLProgram)
        lowered, launch = converted.program.lowered, kernel.launch()
        arrays = dict(generator.inputs(kernel, np.random.default_rng(7)))
        expected = generator.reference(kernel, {name: values.copy() for name, values in arrays.items()})
        given: dict[str, Argument] = dict(arrays)
        for argument in launch.arguments:
            if isinstance(argument, Scalar):
                given[argument.name] = argument.number
            elif isinstance(argument, LocalArray):
                given[argument.name] = LocalBytes(argument.size)
            elif isinstance(argument, Image):
                given[argument.name] = ImageArray(arrays[argument.name].reshape(argument.shape), argument.normalized)
        run = everything(lowered, launch.global_size, launch.local_size, given, SUBGROUP)
        assert {finding.kind for finding in run.findings} <= OVERLAPPING.get(generator.name, set()), kernel
        for name, values in expected.items():
            assert_close(run.array(name).ravel(), values.ravel(), f"{name} of {kernel}")
        if generator.name not in DECIDED_BY_DATA.keys() | OF_RANDOM_LENGTH:
            seen = without_unknown(emulated(lowered, run), converted, SUBGROUP)
            found = counted(converted, SUBGROUP)
            for key in [key for key in found | seen if key[:2] == ("footprint", CLAMPED.get(generator.name))]:
                assert found.pop(key) >= seen.pop(key), kernel
            assert found == seen, kernel


def assert_close(found: Any, expected: Any, what: str) -> None:
    """Asserts that whole numbers are equal, and floats within the rounding that verification on devices allows."""
    assert found.shape == expected.shape, what
    if found.dtype.kind != "f":
        np.testing.assert_array_equal(found, expected, err_msg=what)
        return
    limit = TOLERANCES[found.dtype.name] * np.maximum(np.abs(expected), 1e-3 * np.max(np.abs(expected), initial=0))
    assert np.all(np.abs(found.astype(expected.dtype) - expected) <= limit), what

"""Tests the programs of benchmarks/programs: each can be launched and judged, exports are whole, some are run."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.programs import cases, named
from benchmarks.programs.checking import compare, run
from benchmarks.programs.exporting import export
from benchmarks.programs.program import FOLDER, SIZES, Case, Local, Random, Zeros
from perfmodel.device import find_device
from perfmodel.kernels.driver_code import intel_processor
from perfmodel.surveying import load_cases
from perfmodel.vocabulary.named_features import feature

CASES = cases()
ONE_OF_EACH_GROUP = list({case.group: name for name, case in reversed(CASES.items())}.values())
SPECIFICATION = re.compile(r"zeros:[a-z]+\d+:\d+|random:[a-z]+\d+:\d+:-?[\d.e+-]+:-?[\d.e+-]+")


def bytes_of(value: Any) -> int:
    match value:
        case Random() | Zeros():
            return value.size * np.dtype(value.dtype).itemsize
        case np.ndarray():
            return value.nbytes
        case _:
            return 0


def test_there_are_many_programs_of_many_groups() -> None:
    assert len(CASES) >= 120
    groups = [case.group for case in CASES.values()]
    assert min(groups.count(group) for group in set(groups)) >= 6


def test_every_kernel_of_a_source_is_a_case() -> None:
    kernels = {
        (file.name, kernel)
        for file in FOLDER.glob("*.cl")
        for kernel in re.findall(r"__kernel\s+void\s+(\w+)", file.read_text(encoding="utf-8"))
    }
    assert kernels == {(case.source, case.kernel) for case in CASES.values()}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_case_says_how_it_is_launched_and_judged(case: Case) -> None:
    launch = case.launch("cpu")
    assert launch.reference is not None or launch.invariant is not None
    assert len(launch.global_size) == len(launch.local_size) <= 3
    assert all(size % group == 0 for size, group in zip(launch.global_size, launch.local_size, strict=True))
    assert all(
        isinstance(value, Local | Random | Zeros | np.generic | np.ndarray) for value in launch.arguments.values()
    )
    parameters = re.search(rf"__kernel\s+void\s+{case.kernel}\s*\(([^)]*)\)", case.text)
    assert parameters is not None
    names = [parameter.split()[-1].lstrip("*") for parameter in parameters[1].split(",")]
    assert names == list(launch.arguments)
    assert set(case.sizes) == set(SIZES)
    assert set(case.any_order + case.any_rounding) <= set(names)
    assert sum(bytes_of(value) for value in launch.arguments.values()) < 2e7


def test_a_launch_has_the_same_arrays_each_time() -> None:
    case = CASES["csr_scalar"]
    one, other = (case.arrays("cpu", case.launch("cpu")) for _ in range(2))
    assert all(np.array_equal(one[name], other[name]) for name in one)


def test_random_numbers_stay_below_their_upper_bound() -> None:
    class Highest:
        def random(self, size: int, dtype: Any) -> Any:
            return np.nextafter(np.ones(size, dtype), dtype(0))

    assert Random("float32", 3, 1, 1000).array(Highest()).max() < 1000  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ONE_OF_EACH_GROUP)
def test_a_program_of_each_group_computes_its_reference(name: str) -> None:
    assert run(CASES[name], "cpu", find_device("cpu")).why == ""


def test_a_wrong_result_is_told() -> None:
    found, expected = np.array([1, 2, 3]), np.array([1, 5, 3])
    with pytest.raises(AssertionError, match=r"y\[1\] is 2 instead of 5, with 1 of 3 elements wrong"):
        compare("y", found, expected, 0, 0)
    compare("y", found, expected, 0, outliers=0.4)


def test_structs_are_compared_by_field() -> None:
    dtype = np.dtype([("a", "i4"), ("b", "f4")])
    with pytest.raises(AssertionError, match=r"s\.b\[0\]"):
        compare("s", np.array([(1, 2.0)], dtype), np.array([(1, 2.5)], dtype), 0.01, 0)


def test_exports_can_be_read(tmp_path: Path) -> None:
    chosen = named(["gemv_rows", "csr_vector", "coo_atomic", "nbody_structs", "leapfrog_atoms", "csr_scalar_double"])
    survey = json.loads(export(chosen, tmp_path, ["cpu"]).read_text(encoding="utf-8"))
    assert (survey["format"], survey["version"]) == ("perfmodel-survey", 1)
    assert [case["name"] for case in survey["cases"]] == [case.name for case in chosen]
    for case in survey["cases"]:
        assert f"void {case['kernel']}" in (tmp_path / case["source"]).read_text(encoding="utf-8")
        assert set(case["launches"]) == {"cpu"}
        launch = CASES[case["name"]].launch("cpu")
        given = case["launches"]["cpu"]
        assert (given["global"], given["local"]) == (list(launch.global_size), list(launch.local_size))
        for name, value in given["arguments"].items():
            if isinstance(value, str) and value.endswith(".npy"):
                assert np.array_equal(np.load(tmp_path / value), launch.arguments[name])
            elif isinstance(value, str):
                assert SPECIFICATION.fullmatch(value), value
    by_name = {case["name"]: case["launches"]["cpu"]["arguments"] for case in survey["cases"]}
    assert by_name["gemv_rows"]["info"] == {"rows": 301, "cols": 211, "stride": 224, "scale": 0.5}
    assert by_name["nbody_structs"]["out"] == f"zeros:uint8:{501 * 28}"
    assert {case["name"]: case["options"] for case in survey["cases"]}["csr_scalar_double"] == ["-DT=double"]


def test_local_memory_is_exported_by_its_bytes(tmp_path: Path) -> None:
    survey = json.loads(export(named(["layer_norm"]), tmp_path, SIZES).read_text(encoding="utf-8"))
    assert survey["cases"][0]["launches"]["gpu"]["arguments"]["t"] == {"local_bytes": 1024}


def test_unknown_names_are_refused() -> None:
    with pytest.raises(KeyError, match="no case or group is named 'gemmm'"):
        named(["gemmm"])


def test_the_readme_counts_the_kernels_of_each_group() -> None:
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    groups = [case.group for case in CASES.values()]
    assert {name: int(count) for name, count in re.findall(r"^\| (\w+) \| (\d+) \|", text, re.MULTILINE)} == {
        group: groups.count(group) for group in groups
    }


@pytest.mark.skipif(intel_processor() is None, reason="Intel's driver for processors is not here")
@pytest.mark.parametrize("name", ["kmp_chunks", "md5_search", "hash_build", "components_hook"])
def test_machine_code_does_what_the_source_does(name: str, tmp_path: Path) -> None:
    """However far a compiler goes, it executes a tenth of a program's operations at least, by vectors of lanes."""
    export(named([name]), tmp_path, ["cpu"])
    (case,) = load_cases(tmp_path, "cpu")
    kernel = case.as_kernel().as_countable(case.sampled)
    of_source = sum(
        each.per_execution * float(each.executions.workitem(kernel.sizes)) for each in kernel.counts_for(8).operations
    )
    core = kernel.as_core_code()
    issued = float(feature("f_core_slots").eval(core))
    assert issued * 8 > of_source / 10

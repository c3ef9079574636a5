"""Programs that several processes make are those that one makes, and are found by who asks for them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import perfmodel as pm
from perfmodel.basics import side_by_side
from perfmodel.collection import collection, kernel_generator
from perfmodel.kernels.loopy_program import LoopyProgram
from perfmodel.kernels.opencl_program import OpenCLProgram
from perfmodel.kernels.remembered_program import ENTRIES, RememberedProgram, remembering

FILTERS = (
    ["matmul_sq", "tiled_prefetch:*", "n:64,128"],
    ["global_copy", "loads:1,2", "n:65536"],
    ["windows", "border:*", "dtype:float32", "reach:1", "n:128"],
    ["matmul_sq", "n:64"],
    ["matmul_sq", "no_such_tag:1"],
)


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.delenv("PERFMODEL_NO_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(collection, "FEWEST_APART", 2)
    monkeypatch.setattr(side_by_side, "processors", lambda: 2)
    kernel_generator._open.cache_clear()
    yield
    kernel_generator._open.cache_clear()


def kernels() -> list[pm.Kernel]:
    kernel_generator._open.cache_clear()
    chosen = pm.KernelCollection(pm.ALL_GENERATORS)
    return [kernel for tags in FILTERS[:-1] for kernel in chosen.generate_kernels(tags)]


def test_they_are_made_once_and_found_again() -> None:
    told: list[tuple[int, int]] = []
    with remembering():
        every = pm.KernelCollection(pm.ALL_GENERATORS)
        every.make_programs(FILTERS, lambda done, of: told.append((done, of)))
        kept = kernels()
        every.make_programs(FILTERS, lambda done, of: told.append((done, of)))
    made = kernels()
    programs = len({id(kernel.program) for kernel in kernels()})
    assert told == [(done, programs) for done in range(1, programs + 1)]
    assert {type(kernel.program) for kernel in kept} == {RememberedProgram, OpenCLProgram}
    assert {type(kernel.program) for kernel in made} == {LoopyProgram, OpenCLProgram}
    assert kept == made
    assert [kernel.launch() for kernel in kept] == [kernel.launch() for kernel in made]


def test_where_nothing_is_kept_they_are_made_where_they_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERFMODEL_NO_CACHE", "1")
    told: list[int] = []
    with remembering():
        pm.KernelCollection(pm.ALL_GENERATORS).make_programs(FILTERS, lambda done, of: told.append(done))
        found = kernels()
    assert not told
    assert not ENTRIES.folder().exists()
    assert {type(kernel.program) for kernel in found} == {LoopyProgram, OpenCLProgram}

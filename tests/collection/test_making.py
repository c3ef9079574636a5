"""Programs that several processes make are those that one makes, and are found by who asks for them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import perfmodel as pm
from perfmodel.basics import side_by_side
from perfmodel.collection import kernel_generator, selected
from perfmodel.kernels.loopy_program import LoopyProgram
from perfmodel.kernels.opencl_program import OpenCLProgram
from perfmodel.kernels.remembered_program import ENTRIES, RememberedProgram, remembering

FILTERS = (
    ["matmul_sq", "tiled_prefetch:*", "n:64,128"],
    ["global_copy", "loads:1,2", "n:65536"],
    ["windows", "border:*", "dtype:float32", "reach:1", "n:128"],
    ["matmul_sq", "n:64"],
)


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.delenv("PERFMODEL_NO_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(selected, "FEWEST_APART", 2)
    monkeypatch.setattr(side_by_side, "processors", lambda: 2)
    kernel_generator._open.cache_clear()
    yield
    kernel_generator._open.cache_clear()


def kernels() -> list[pm.Kernel]:
    kernel_generator._open.cache_clear()
    chosen = pm.KernelCollection(pm.ALL_GENERATORS)
    return [kernel for tags in FILTERS for kernel in chosen.generate_kernels(tags)]


def variants() -> list[selected.Selected]:
    every = pm.KernelCollection(pm.ALL_GENERATORS)
    return [each for tags in FILTERS for each in every.selected(tags)]


def test_they_are_made_once_and_found_again() -> None:
    told: list[tuple[int, int]] = []
    with remembering():
        selected.make_programs(variants(), lambda done, of: told.append((done, of)))
        kept = kernels()
        selected.make_programs(variants(), lambda done, of: told.append((done, of)))
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
        selected.make_programs(variants(), lambda done, of: told.append(done))
        found = kernels()
    assert not told
    assert not ENTRIES.folder().exists()
    assert {type(kernel.program) for kernel in found} == {LoopyProgram, OpenCLProgram}


def test_a_sample_has_every_value_of_every_tag_and_all_sizes_of_a_variant() -> None:
    every = pm.KernelCollection(pm.ALL_GENERATORS)
    windows = every.selected(["windows", "border:*", "dtype:*", "index:*", "reach:1,2", "n:128,256"])
    more = every.selected(["windows", "reach:2", "n:256,512"])
    copies = every.selected(["global_copy", "n:65536"])
    taken = selected.sample([*windows, *copies, *more], 4)
    assert taken == selected.sample([*windows, *copies, *more], 4)
    assert taken[-len(copies) :] == copies
    few = taken[: -len(copies)]
    values = {value for each in windows for value in each.variant.items()}
    most = max(sum(name == tag for name, _ in values) for tag, _ in values)
    assert {value for each in few for value in each.variant.items()} == values
    assert max(4, most) <= len(few) < len(windows) / 4
    everything = {tuple(each.variant.values()): each.sizes for each in selected.sample([*windows, *more], None)}
    assert len(everything) == len(windows)
    assert everything[tuple(more[0].variant.values())] == ({"n": 128}, {"n": 256}, {"n": 512})

"""Kernels written by hand in OpenCL C compute and count as those of the generators that they stand beside."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import perfmodel as pm
from benchmarks.opencl_c import Handwritten, files, kernels, kernels_of
from perfmodel.collection.verification import verify
from perfmodel.device import Device

KERNELS = kernels()
MOVED_AND_LAUNCHED = (
    *("f_mem_bytes_global_load", "f_mem_bytes_global_store", "f_mem_access_local_load", "f_mem_access_local_store"),
    *("f_sync_barrier_local", "f_thread_groups", "f_work_items"),
)
LARGEST_ARRAY = 4 << 30

IN_SOURCE = {
    "access_classes",
    "atomic_update",
    "constant_lookups",
    "decisions",
    "group_sums",
    "records",
    "selections",
    "texts",
    "dependent_steps",
    "image_reads",
    "residency",
    "special_functions",
    "index_arithmetic",
    "pointer_chase",
    "row_passes",
    "sparse_rows",
    "private_array",
    "random_expression",
    "sq_mod",
    "straight_operations",
    "vector_functions",
    "windows",
    "work_group_size",
}
"""Families that are OpenCL C themselves, and have to be as they are there."""


def test_every_family_is_written_by_hand(collection: pm.KernelCollection) -> None:
    assert {kernel.generator for kernel in KERNELS} == set(collection.generators) - IN_SOURCE


@pytest.mark.parametrize("file", files(), ids=lambda file: file.stem)
def test_a_file_says_what_it_covers(file: Path) -> None:
    first = file.read_text(encoding="utf-8").splitlines()[0]
    families = {kernel.generator for kernel in kernels_of(file)}
    assert families == {file.stem}
    assert first.startswith(f"// Covers: family {file.stem}; ")


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_it_computes_what_the_reference_says(kernel: Handwritten, collection: pm.KernelCollection, cpu: Device) -> None:
    written, _ = kernel.both(kernel.small)
    verify(collection.generator(kernel.generator), written, cpu)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_it_has_the_same_arrays_at_the_measured_sizes(kernel: Handwritten) -> None:
    assert len(kernel.sizes) == 2
    for sizes in kernel.sizes:
        written, generated = ({a.name: a for a in each.launch().arrays()} for each in kernel.both(sizes))
        assert written == generated
        assert all(each.size * np.dtype(each.dtype).itemsize < LARGEST_ARRAY for each in written.values())


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_it_counts_the_same_but_where_its_file_says(kernel: Handwritten) -> None:
    for sizes in (kernel.small, kernel.sizes[0]):
        written, generated = kernel.both(sizes)
        different = {
            name: values
            for name in _compared(written, generated)
            if len(set(values := [pm.feature(name).eval(each) for each in (written, generated)])) > 1
        }
        assert different.keys() == kernel.differences.keys(), different


def _compared(*forms: pm.Kernel) -> list[str]:
    """Returns features of all operations that one of the kernels has, and of what it moves and launches."""
    operations = {f"f_op_{each.dtype}_{each.kind}" for form in forms for each in form.counts.operations}
    return [*sorted(operations), *MOVED_AND_LAUNCHED]

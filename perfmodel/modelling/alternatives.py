"""Yields kernels that do the same as another in a slightly different way: siblings, work-groups, padded tiles."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from perfmodel.basics.errors import PerfmodelError
from perfmodel.kernels.changes import Changed
from perfmodel.kernels.changes.of_loopy import transformed
from perfmodel.kernels.changes.of_opencl import (
    groups_matter,
    with_other_groups,
    with_other_launches,
    with_padded_tiles,
)
from perfmodel.kernels.kernel import Kernel
from perfmodel.kernels.loopy_program import LoopyProgram
from perfmodel.kernels.opencl_program import OpenCLProgram

MOST_SIBLINGS = 6
"""Siblings of a generator's kernel that are looked at: counting each takes a while."""
SAME_WORK = ("dtype", "work_removed", "transfers", "groups_fit")
"""Tags whose other values are other work."""


def alternatives(kernel: Kernel) -> Iterator[Changed]:
    """Yields changed kernels at the same sizes."""
    yield from siblings(kernel)
    program = kernel.program
    if isinstance(program, OpenCLProgram):
        yield from with_padded_tiles(kernel, program)
        yield from with_other_launches(kernel, program)
        if not groups_matter(program):
            yield from with_other_groups(kernel, program)
    elif isinstance(program, LoopyProgram) and not kernel.is_of_generator:
        yield from itertools.islice(transformed(kernel, program), MOST_SIBLINGS)


def siblings(kernel: Kernel) -> Iterator[Changed]:
    """Yields kernels of the same generator, of which one tag has another value."""
    from perfmodel.collection.collection import ALL_GENERATORS, KernelCollection  # slow to import

    known = {generator.name: generator for generator in ALL_GENERATORS}
    generator = known.get(kernel.tags.get("generator", ""))
    if generator is None or not set(kernel.tags) - {"generator"} <= {tag.name for tag in generator.tags}:
        return
    sizes = {tag.name: kernel.sizes[tag.name] for tag in generator.tags if tag.is_size and tag.name in kernel.sizes}
    fixed = {name: value for name, value in kernel.tags.items() if name != "generator"}
    found = 0
    for tag in generator.tags:
        if tag.is_size or tag.name in SAME_WORK or tag.name not in fixed or found >= MOST_SIBLINGS:
            continue
        for value in [each for each in tag.values if each != fixed[tag.name]][:2]:
            asked = {**fixed, **{name: str(size) for name, size in sizes.items()}, tag.name: value}
            filters = [generator.name, *(f"{name}:{each}" for name, each in asked.items())]
            try:
                made = KernelCollection([generator]).generate_kernels(filters)
            except PerfmodelError:
                continue
            if len(made) == 1 and made[0].sizes == kernel.sizes:
                found += 1
                words = f"{tag.name}={value} instead of {fixed[tag.name]}"
                yield Changed(made[0], tag.name, words, (f"# {words}",))

"""Yields kernels that do the same as another in a slightly different way: siblings, work-groups, padded tiles."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from perfmodel.basics.errors import PerfmodelError
from perfmodel.kernels.kernel import Kernel
from perfmodel.kernels.opencl_program import OpenCLProgram

MOST_SIBLINGS = 6
"""Siblings of a generator's kernel that are looked at: counting each takes a while."""
MOST_ITEMS = 1024
"""Work-items of the largest work-group that is proposed."""
SAME_WORK = ("dtype", "work_removed", "transfers", "groups_fit")
"""Tags whose other values are other work."""
USES_GROUPS = re.compile(
    r"\b(?:get_(?:local|group|num_group|enqueued_local|sub_group|num_sub_group)\w*|\w*barrier|__local|local|"
    r"sub_group_\w+|work_group_\w+|reqd_work_group_size)\b"
)
"""Words of a source in which the size of work-groups may matter to what is computed."""
TILE = re.compile(r"\b((?:__)?local\s+[\w\s]*?)(\w+)((?:\s*\[[^\]]+\])+)(\s*\[)([^\]]+)(\]\s*;)")
"""The declaration of an array in local memory of at least two dimensions."""
Changed = tuple[str, str, Kernel]


def alternatives(kernel: Kernel) -> Iterator[Changed]:
    """Yields changed kernels at the same sizes, each with what is changed, and how, in words."""
    yield from _siblings(kernel)
    if isinstance(kernel.program, OpenCLProgram):
        yield from _with_padded_tiles(kernel, kernel.program)
        yield from _with_other_groups(kernel, kernel.program)


def _siblings(kernel: Kernel) -> Iterator[Changed]:
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
            words = [generator.name, *(f"{name}:{each}" for name, each in asked.items())]
            try:
                made = KernelCollection([generator]).generate_kernels(words)
            except PerfmodelError:
                continue
            if len(made) == 1 and made[0].sizes == kernel.sizes:
                found += 1
                yield tag.name, f"{tag.name}={value} instead of {fixed[tag.name]}", made[0]


def _with_padded_tiles(kernel: Kernel, program: OpenCLProgram) -> Iterator[Changed]:
    """Yields the kernel with an array in local memory whose rows are one element longer, for each such array."""
    for declared in TILE.finditer(program.source):
        before, name, rows, opening, length, closing = declared.groups()
        padded = f"{before}{name}{rows}{opening}({length}) + 1{closing}"
        source = program.source[: declared.start()] + padded + program.source[declared.end() :]
        yield name, f"padding the rows of {name} by one element", _made(kernel, program.with_source(source))


def _with_other_groups(kernel: Kernel, program: OpenCLProgram) -> Iterator[Changed]:
    """Yields the kernel in other work-groups, where these don't matter to what is computed."""
    launch = kernel.launch()
    if USES_GROUPS.search(program.source):
        return
    for group in _groups_like(launch.local_size):
        fits = all(total % side == 0 for total, side in zip(launch.global_size, group, strict=True))
        if fits and math.prod(group) <= MOST_ITEMS:
            shown, before = (" × ".join(map(str, sides)) for sides in (group, launch.local_size))
            words = f"work-groups of {shown} instead of {before}"
            yield "work-group", words, _made(kernel, program.with_local_size(group))


def _groups_like(sides: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Yields work-groups with the first two sides halved, doubled, or made longer and flatter."""
    for first, second in ((2, 1), (0.5, 1), (4, 1), (2, 0.5), (0.5, 2), (4, 0.25), (1, 2), (1, 0.5)):
        factors = (first, second, 1)[: len(sides)]
        changed = [side * factor for side, factor in zip(sides, factors, strict=True)]
        if (second == 1 or len(sides) > 1) and all(side >= 1 and side == int(side) for side in changed):
            yield tuple(map(int, changed))


def _made(kernel: Kernel, program: OpenCLProgram) -> Kernel:
    return Kernel(program, kernel.tags, None, **kernel.bound)

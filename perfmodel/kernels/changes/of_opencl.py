"""Changes OpenCL C without knowing what it computes: padded tiles, other work-groups, launches and ``-D`` numbers."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from perfmodel.basics.errors import PerfmodelError
from perfmodel.kernels.changes import MOST_ITEMS, Changed
from perfmodel.kernels.kernel import Kernel
from perfmodel.kernels.opencl_program import OpenCLProgram

USES_GROUPS = re.compile(
    r"\b(?:get_(?:local|group|num_group|enqueued_local|sub_group|num_sub_group)\w*|\w*barrier|__local|local|"
    r"sub_group_\w+|work_group_\w+|reqd_work_group_size)\b"
)
"""Words of a source in which the size of work-groups may matter to what is computed."""
STRIDES_BY_GRID = re.compile(r"\+=[^;)]*\bget_global_size\s*\(")
"""A step of a loop by the size of the launch: such a kernel does the same work with any number of work-items."""
TILE = re.compile(r"\b((?:__)?local\s+[\w\s]*?)(\w+)((?:\s*\[[^\]]+\])+)(\s*\[)([^\]]+)(\]\s*;)")
"""The declaration of an array in local memory of at least two dimensions."""
NUMBER = re.compile(r"-D\s*(\w+)=(\d{1,9})")
"""A build option that gives a whole number."""


def with_padded_tiles(kernel: Kernel, program: OpenCLProgram) -> Iterator[Changed]:
    """Yields the kernel with an array in local memory whose rows are one element longer, for each such array."""
    for declared in TILE.finditer(program.source):
        before, name, rows, opening, length, closing = declared.groups()
        padded = f"{before}{name}{rows}{opening}({length}) + 1{closing}"
        source = program.source[: declared.start()] + padded + program.source[declared.end() :]
        words = f"padding the rows of {name} by one element"
        yield from _made(kernel, name, words, partial(program.with_source, source))


def groups_matter(program: OpenCLProgram) -> bool:
    """Returns True if what a kernel computes may depend on the size of its work-groups."""
    return bool(USES_GROUPS.search(program.source))


def with_other_groups(kernel: Kernel, program: OpenCLProgram) -> Iterator[Changed]:
    """Yields the kernel in other work-groups; see `groups_matter`."""
    launch = kernel.launch()
    for group in _groups_like(launch.local_size):
        fits = all(total % side == 0 for total, side in zip(launch.global_size, group, strict=True))
        if fits and math.prod(group) <= MOST_ITEMS:
            words = f"work-groups of {_shown(group)} instead of {_shown(launch.local_size)}"
            yield from _made(kernel, "work-group", words, partial(program.with_local_size, group))


def with_other_launches(kernel: Kernel, program: OpenCLProgram) -> Iterator[Changed]:
    """Yields the kernel with twice and four times the work-items, and half of them, where its loops take steps of all
    work-items, so that each then does the less."""
    launch = kernel.launch()
    if not STRIDES_BY_GRID.search(program.source):
        return
    for factor, words in ((2, "twice the work-items"), (4, "four times the work-items"), (0.5, "half the work-items")):
        items = [launch.global_size[0] * factor, *launch.global_size[1:]]
        if items[0] % launch.local_size[0] == 0:
            shown = f"{words} ({_shown(tuple(map(int, items)))})"
            yield from _made(kernel, "launch", shown, partial(program.with_global_size, [int(each) for each in items]))


def with_other_numbers(kernel: Kernel, program: OpenCLProgram) -> Iterator[Changed]:
    """Yields the kernel with each number of a build option ``-DTILE=16`` halved and doubled, alone and with the sides
    of the work-group that are as long."""
    local_size = kernel.launch().local_size
    for place, option in enumerate(program.options):
        found = NUMBER.fullmatch(option.strip())
        if found is None:
            continue
        name, value = found[1], int(found[2])
        for other in sorted({value // 2, value * 2} - {0, value}):
            options = (*program.options[:place], f"-D{name}={other}", *program.options[place + 1 :])
            words = f"-D{name}={other} instead of {value}"
            yield from _made(kernel, name, words, partial(program.with_options, options))
            group = tuple(other if side == value else side for side in local_size)
            if group != local_size and math.prod(group) <= MOST_ITEMS:
                both = f"{words}, in work-groups of {_shown(group)}"
                yield from _made(
                    kernel,
                    name,
                    both,
                    partial(_with_both, program, options, group),
                )


def _with_both(program: OpenCLProgram, options: Sequence[str], group: Sequence[int]) -> OpenCLProgram:
    return program.with_options(options).with_local_size(group)


def _groups_like(sides: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Yields work-groups with the first two sides halved, doubled, or made longer and flatter."""
    for first, second in ((2, 1), (0.5, 1), (4, 1), (2, 0.5), (0.5, 2), (4, 0.25), (1, 2), (1, 0.5)):
        factors = (first, second, 1)[: len(sides)]
        changed = [side * factor for side, factor in zip(sides, factors, strict=True)]
        if (second == 1 or len(sides) > 1) and all(side >= 1 and side == int(side) for side in changed):
            yield tuple(map(int, changed))


def _shown(sides: Sequence[int]) -> str:
    return " × ".join(map(str, sides))


def _made(kernel: Kernel, what: str, words: str, make: Callable[[], OpenCLProgram]) -> Iterator[Changed]:
    """Yields a kernel of the program that `make` gives, if there is such a program."""
    try:
        yield Changed(Kernel(make(), kernel.tags, None, **kernel.bound), what, words)
    except PerfmodelError:
        return

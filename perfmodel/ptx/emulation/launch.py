"""A launch gives an emulated kernel its grid and its arguments, and says which blocks are run."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from perfmodel.basics.errors import KernelError
from perfmodel.basics.image_sampling import Pixels
from perfmodel.counting.resampling import SAMPLES

LEAST_STRATA = 4
THREADS = 4096
"""The parts have about so many threads together."""


@dataclass(frozen=True)
class Image:
    """An array is an image, whose address stands for it in the argument.

    Attributes:
        flags: say how it is read, as those of a sampler.
    """

    pixels: Pixels
    flags: int


@dataclass(frozen=True, eq=False)
class Buffer:
    """An array that a pointer argument points to.

    Attributes:
        contents: an array, which is copied; None for what `fill` makes.
        fill: writes what a page of bytes holds at first; zeros without.
        behind: bytes that stand behind its address in the argument, as those of a tensor map do.
        image: the form of its pixels, for an image.
    """

    name: str
    n_bytes: int
    contents: NDArray[Any] | None = None
    fill: Callable[[NDArray[np.uint8], int], None] | None = None
    behind: bytes = b""
    image: Image | None = None


@dataclass(frozen=True, eq=False)
class Holder:
    """A struct by value that holds the addresses of arrays.

    Attributes:
        contents: its bytes, with nothing yet where the addresses lie.
        buffers: the arrays, by the places of their addresses.
    """

    contents: bytes
    buffers: Mapping[int, Buffer]


Given: TypeAlias = Buffer | Holder | bytes
"""One argument of a launch: an array, a struct with pointers, or the bytes of a number or of another struct."""


@dataclass(frozen=True, eq=False)
class Launch:
    """A launch of a kernel, in CUDA's words: blocks of the grid, threads of a block, and bytes of shared memory that
    it provides to each block beside what the kernel declares.

    Attributes:
        variables: what variables of the module hold in the place of what the text says, by name.
    """

    grid: tuple[int, ...]
    block: tuple[int, ...]
    arguments: tuple[Given, ...]
    shared: int = 0
    variables: Mapping[str, NDArray[Any]] = field(default_factory=dict)

    @property
    def blocks(self) -> int:
        return math.prod(self.grid)


@dataclass(frozen=True)
class Sample:
    """Some blocks of a grid, and how many of the grid each of them stands for.

    Attributes:
        blocks: their linear numbers, in order.
    """

    blocks: tuple[int, ...]
    weights: tuple[float, ...]


def sampled(
    grid: Sequence[int],
    groups: str | Sequence[int] = "sample",
    seed: int = 0,
    threads: int = 256,
    samples: int = SAMPLES,
) -> Sample:
    """Chooses blocks of a grid.

    Of a sample, blocks at the grid's edges stand for the edges, as conditions there differ; the inside is cut into
    parts of equal size, one block of each is chosen by chance, and stands for its part.

    Args:
        threads: of a block; of large ones, fewer blocks are sampled.
        samples: parts of the inside, for small blocks.
        groups: ``first``, ``sample`` or ``all``, or linear numbers of blocks; those all stand for equal parts.
    """
    total = math.prod(grid)
    if isinstance(groups, str):
        if groups == "all" or (groups == "sample" and total <= samples + 4):
            return Sample(tuple(range(total)), (1.0,) * total)
        if groups == "first":
            return Sample((0,), (float(total),))
        if groups != "sample":
            raise KernelError(f"groups={groups!r} are no blocks; give 'first', 'sample', 'all', or a list of them")
        strata = max(LEAST_STRATA, min(SAMPLES, THREADS // threads))
        return _by_edges(tuple(grid), seed, strata * samples // SAMPLES)
    chosen = tuple(sorted({int(number) for number in groups}))
    if not chosen or chosen[0] < 0 or chosen[-1] >= total:
        raise KernelError(f"blocks {list(groups)[:8]} are not all of the grid, which has {total}; give such")
    return Sample(chosen, (total / len(chosen),) * len(chosen))


def _by_edges(grid: tuple[int, ...], seed: int, strata: int) -> Sample:
    random = np.random.default_rng(seed)
    parts = [[(0, extent)] if extent < 3 else [(0, 1), (1, extent - 1), (extent - 1, extent)] for extent in grid]
    while len(parts) < 3:
        parts.append([(0, 1)])
    found: dict[int, float] = {}
    for z in parts[2]:
        for y in parts[1]:
            for x in parts[0]:
                lengths = [end - start for start, end in (x, y, z)]
                size = math.prod(lengths)
                inner = all(length > 1 or extent < 3 for length, extent in zip(lengths, grid, strict=False))
                count = min(size, strata if inner else 2)
                for part in range(count):
                    start, end = part * size // count, (part + 1) * size // count
                    number = int(random.integers(start, end))
                    place = []
                    for length in lengths:
                        place.append(number % length)
                        number //= length
                    at = [offset + first for offset, (first, _) in zip(place, (x, y, z), strict=True)]
                    linear = at[0] + (at[1] + at[2] * (grid[1] if len(grid) > 1 else 1)) * grid[0]
                    found[linear] = found.get(linear, 0.0) + end - start
    blocks = tuple(sorted(found))
    return Sample(blocks, tuple(found[block] for block in blocks))


def with_blocks(sample: Sample, blocks: Collection[int]) -> Sample:
    """Returns a sample with blocks that stand for themselves alone; the others stand for the rest."""
    weights = {
        block: weight for block, weight in zip(sample.blocks, sample.weights, strict=True) if block not in blocks
    }
    if not weights:
        return sample
    rest = (sum(sample.weights) - len(blocks)) / sum(weights.values())
    found = {**{block: weight * rest for block, weight in weights.items()}, **dict.fromkeys(blocks, 1.0)}
    return Sample(tuple(sorted(found)), tuple(found[block] for block in sorted(found)))

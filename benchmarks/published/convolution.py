"""Writes a tunable convolution (van Werkhoven, Maassen, Bal, Seinstra 2014) as OpenCL C.

A work-group computes a tile of the image, each work-item some pixels that lie a work-group's size apart; what the group
needs of the input lies in local memory, or is read where it is needed. As loops over the filter and over a work-item's
pixels are unrolled, a compiler loads each element of the input once, however many of a work-item's pixels need it. So
the source does: it goes through stretches of offsets that the same pixels need. The filter is an argument by value,
which is constant memory on GPUs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

import perfmodel as pm
from perfmodel.opencl_c.static.unrolling import MOST_ASKED_FOR

SIDE, FILTER = 4096, 15
BANKS = 32
UNROLLED = "#pragma unroll\n"
SUMMED = 6
"""A sum has so many instructions: its own place, the pixel and the weight loaded, a product, an addition and a store.
Where all of them are more than `MOST_ASKED_FOR`, the loop over the filter's rows stays, and what it loads is not kept
from row to row."""


@dataclass(frozen=True)
class Stretch:
    """Holds offsets along one axis at which the same pixels of a work-item read.

    Attributes:
        first, end: the offsets.
        reads: for each element that is loaded at an offset, how much further it lies, and the pixels that use it, each
            with how far its own first element lies from there.
    """

    first: int
    end: int
    reads: tuple[tuple[int, tuple[tuple[int, int], ...]], ...]


def stretches(block: int, tile: int, width: int, *, are_kept: bool = True) -> Iterator[Stretch]:
    """Yields the stretches of a filter's `width` for `tile` pixels that lie `block` apart, where compilers keep what
    one of them has loaded for the others."""
    if block >= width or not are_kept:  # no element is of use to two pixels
        yield Stretch(0, width, tuple((pixel * block, ((pixel, 0),)) for pixel in range(tile)))
        return
    edges = sorted({edge for pixel in range(tile) for edge in (pixel * block, pixel * block + width)})
    for first, end in pairwise(edges):
        using = [pixel for pixel in range(tile) if pixel * block <= first and end <= pixel * block + width]
        yield Stretch(first, end, ((0, tuple((pixel, pixel * block) for pixel in using)),))


def pitch(block: int, tile: int, width: int, *, padded: bool) -> int:
    """Returns the elements of a row in local memory: with padding, a row begins a work-group's width of banks further
    than the one before, if neither that width nor the rest of the row is a multiple of the banks already."""
    need = block * tile + width - 1
    if padded and block % BANKS and (need - block) % BANKS:
        return need + -(need - block) % BANKS
    return need


def source(configuration: Mapping[str, int], side: int = SIDE, width: int = FILTER) -> str:
    """Returns the source of a configuration for an image of `side` x `side` pixels."""
    bx, by, tx, ty = (configuration[name] for name in ("block_size_x", "block_size_y", "tile_size_x", "tile_size_y"))
    across, sticks_out = side + width - 1, bool(side % (bx * tx) or side % (by * ty))
    lines = [
        f"typedef struct {{ float at[{width * width}]; }} weights;",
        f"__kernel __attribute__((reqd_work_group_size({bx}, {by}, 1)))",
        "void convolution(__global float *restrict out, __global const float *restrict in, const weights filter)",
        "{",
        "const int x = get_local_id(0), y = get_local_id(1);",
        f"const int first_x = get_group_id(0) * {bx * tx}, first_y = get_group_id(1) * {by * ty};",
        f"float sums[{ty}][{tx}];",
        *_loops(ty, tx),
        "sums[b][a] = 0.0f;",
    ]
    if configuration.get("use_shmem", 1):
        row = pitch(bx, tx, width, padded=bool(configuration["use_padding"]))
        rows, columns = by * ty + width - 1, bx * tx + width - 1
        lines += [
            f"__local float tile[{rows * row}];",
            f"for (int b = y; b < {rows}; b += {by})",
            f"for (int a = x; a < {columns}; a += {bx})",
            f"tile[b * {row} + a] = in[(first_y + b) * {across} + first_x + a];",
            "barrier(CLK_LOCAL_MEM_FENCE);",
            f"__local const float *own = tile + y * {row} + x;",
            *_from_local_memory(bx, by, tx, ty, width, row),
        ]
    else:
        lines.append(f"__global const float *own = in + (first_y + y) * {across} + first_x + x;")
        if sticks_out:
            lines += _guarded(bx, by, tx, ty, width, across)
        else:
            lines += _from_global_memory(bx, by, tx, ty, width, across)
    inside = f"if (out_x < {side} && out_y < {side}) " if sticks_out else ""
    lines += [
        *_loops(ty, tx),
        "{",
        f"const int out_x = first_x + x + a * {bx}, out_y = first_y + y + b * {by};",
        f"{inside}out[out_y * {side} + out_x] = sums[b][a];",
        "}",
        "}",
    ]
    return "\n".join(lines)


def kernel(configuration: Mapping[str, int], side: int = SIDE, width: int = FILTER) -> pm.Kernel:
    """Returns the kernel of a configuration; its input has rows and columns to spare, so that only stores are guarded.

    Whether the input is read through the read-only cache (`read_only`) is the same program in OpenCL C.
    """
    bx, by, tx, ty = (configuration[name] for name in ("block_size_x", "block_size_y", "tile_size_x", "tile_size_y"))
    groups_x, groups_y = -(-side // (bx * tx)), -(-side // (by * ty))
    across, rows = side + width - 1, groups_y * by * ty + width - 1
    return pm.Kernel.from_opencl(
        source(configuration, side, width),
        "convolution",
        (groups_x * bx, groups_y * by),
        (bx, by),
        {"out": side * side, "in": rows * across + groups_x * bx * tx},
        tags={name: str(value) for name, value in configuration.items()},
    )


def _from_local_memory(bx: int, by: int, tx: int, ty: int, width: int, row: int) -> Iterator[str]:
    is_short = SUMMED * width * width * tx * ty <= MOST_ASKED_FOR
    for down in stretches(by, ty, width, are_kept=is_short):
        for along in stretches(bx, tx, width):
            yield f"{UNROLLED if is_short else ''}for (int j = {down.first}; j < {down.end}; ++j)"
            yield f"{UNROLLED}for (int i = {along.first}; i < {along.end}; ++i) {{"
            for further_j, pixels_j in down.reads:
                for further_i, pixels_i in along.reads:
                    name = f"pixel_{further_j}_{further_i}"
                    yield f"const float {name} = own[j * {row} + i + {further_j * row + further_i}];"
                    for b, back_j in pixels_j:
                        for a, back_i in pixels_i:
                            weight = f"filter.at[j * {width} + i - {back_j * width + back_i}]"
                            yield f"sums[{b}][{a}] += {name} * {weight};"
            yield "}"


def _guarded(bx: int, by: int, tx: int, ty: int, width: int, across: int) -> Iterator[str]:
    """Yields the sums of groups that may stick out of the input: each load of a pixel has a condition of its own, so
    that no other pixel can use what it loads."""
    for counter, end in (("j", width), ("i", width), ("b", ty), ("a", tx)):
        yield f"{UNROLLED}for (int {counter} = 0; {counter} < {end}; ++{counter})"
    yield f"if (first_y + y + b * {by} + j < {across} && first_x + x + a * {bx} + i < {across})"
    yield f"sums[b][a] += own[(b * {by} + j) * {across} + i + a * {bx}] * filter.at[j * {width} + i];"


def _from_global_memory(bx: int, by: int, tx: int, ty: int, width: int, row: int) -> Iterator[str]:
    """Yields the sums with one load in the source, of a column of elements at a time, as each is slow to count.

    Columns are not shared between pixels: groups that read global memory are wider than the filter.
    """
    is_shared = by < width
    rows = (ty - 1) * by + width if is_shared else ty * width
    yield f"{UNROLLED}for (int i = 0; i < {width}; ++i) {{"
    yield f"float column[{rows}][{tx}];"
    if is_shared:
        yield f"{UNROLLED}for (int j = 0; j < {rows}; ++j)"
    else:
        yield f"{UNROLLED}for (int b = 0; b < {ty}; ++b)"
        yield f"{UNROLLED}for (int j = 0; j < {width}; ++j)"
    first, place = ("j", "j") if is_shared else (f"b * {width} + j", f"(b * {by} + j)")
    yield f"{UNROLLED}for (int a = 0; a < {tx}; ++a)"
    yield f"column[{first}][a] = own[{place} * {row} + i + a * {bx}];"
    for down in stretches(by, ty, width):
        yield f"{UNROLLED}for (int j = {down.first}; j < {down.end}; ++j) {{"
        for further, pixels in down.reads:
            for b, back in pixels:
                for a in range(tx):
                    held = f"column[j + {further // by * width}][{a}]"
                    yield f"sums[{b}][{a}] += {held} * filter.at[(j - {back}) * {width} + i];"
        yield "}"
    yield "}"


def _loops(ty: int, tx: int) -> list[str]:
    return [f"{UNROLLED}for (int b = 0; b < {ty}; ++b)", f"{UNROLLED}for (int a = 0; a < {tx}; ++a)"]

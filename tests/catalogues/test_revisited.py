"""Bytes that rows and planes of work-groups bring from memory again, against a cache that is gone through in order."""

from __future__ import annotations

from collections import OrderedDict

import pytest

import perfmodel as pm
from perfmodel.basics.errors import FeatureError

BLOCK, KEEPS, TILE = 64, 1_000_000, 16
WIDTH, HEIGHT, CHANNELS = 1024, 512, 3
SOURCE = """__kernel void f(__global const float *a, __global float *b, const int w, const int h, const int c)
{
    const int x = get_global_id(0), y = get_global_id(1), z = get_global_id(2);
    b[INDEX] = 2 * a[INDEX];
}
"""
# How a picture of some channels lies in memory: interleaved, or plane by plane.
INDICES = {"interleaved": "(y * w + x) * c + z", "planes": "(z * h + y) * w + x"}


def revisited(is_interleaved: bool) -> int:
    """Returns the bytes of one array that come again, where two arrays share a cache whose oldest blocks go first."""
    kept: OrderedDict[tuple[str, int], None] = OrderedDict()
    known: set[tuple[str, int]] = set()
    again = 0
    for z in range(CHANNELS):
        for y in range(HEIGHT):
            first = y * WIDTH * CHANNELS + z if is_interleaved else (z * HEIGHT + y) * WIDTH
            last = first + (WIDTH - 1) * (CHANNELS if is_interleaved else 1)
            for block in range(first * 4 // BLOCK, last * 4 // BLOCK + 1):
                for array in "ab":
                    place = (array, block)
                    again += place in known and place not in kept
                    known.add(place)
                    kept[place] = None
                    kept.move_to_end(place)
                    if len(kept) * BLOCK > KEEPS:
                        kept.popitem(last=False)
    return again // 2 * BLOCK


@pytest.mark.parametrize("layout", INDICES)
@pytest.mark.parametrize("direction", ["load", "store"])
def test_what_planes_of_groups_have_in_common_is_brought_again(layout: str, direction: str) -> None:
    n = WIDTH * HEIGHT * CHANNELS
    kernel = pm.Kernel.from_opencl(
        SOURCE.replace("INDEX", INDICES[layout]),
        "f",
        (WIDTH, HEIGHT, CHANNELS),
        (TILE, TILE, 1),
        {"a": n, "b": n},
        w=WIDTH,
        h=HEIGHT,
        c=CHANNELS,
    )
    feature = pm.feature(f"f_mem_revisited_global_{direction}_keeps:{KEEPS}")
    assert feature.eval(kernel) == pytest.approx(revisited(layout == "interleaved"), rel=0.08)
    large = pm.feature(f"f_mem_revisited_global_{direction}_keeps:{100 * KEEPS}")
    assert large.eval(kernel) == pytest.approx(0.0, abs=1.0)


def test_names_that_say_too_little_are_refused() -> None:
    with pytest.raises(FeatureError, match="keeps"):
        pm.feature("f_mem_revisited_global_load")
    with pytest.raises(FeatureError, match="local"):
        pm.feature("f_mem_revisited_local_load_keeps:1000")

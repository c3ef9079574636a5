"""Footprints of accesses by sums of independent steps equal what enumerating all work-items touches."""

from __future__ import annotations

import itertools

import pytest

import perfmodel as pm
from tests.covering import examples

GROUPS, ITEMS, OUTER, INNER = 3, 8, 4, 5
NAMES = {"g": range(GROUPS), "l": range(ITEMS), "i": range(OUTER), "j": range(INNER)}
INDICES = (
    "g * 8 + l",
    "g * 160 + l * 20 + i * 5 + j",
    "l * 5 + j",
    "l * 3 + j",
    "l * 40 + i * 8 + j",
    "i * 100 - l + 8",
    "l / 2 * 10 + l % 2 + 2 * j",
    "l / 4 * 64 + l % 4 * 2 + i * 8 + g * 128",
    "l / 2 + l / 4 * 100 + i",
    "l % 4 + g * 2",
    "(l + 1) / 2 * 7 + j",
    "i * 5 + i",
    "l * 6 + i * 4 + j",
    "7",
    "g * 2 + i * 3",
)
"""Sums of steps that lie apart, fill gaps, or overlap; digits of ids; some that are no product."""
SECOND = ("", "g * 8 + l", "g * 8 + l + 1")
"""Indices that are loaded besides: none, one that some have as well, and one that overlaps."""

SOURCE = """
kernel void touch(global const {type} *a, global float *out, const int n, const int m)
{{
    const int g = get_group_id(0), l = get_local_id(0);
    float sum = 0.0f;
    for (int i = 0; i < n; ++i)
        for (int j = 0; j < m; ++j) {{
            sum += {loads};
        }}
    out[get_global_id(0)] = sum;
}}
"""


def counted(loads: str, type_: str, **sizes: int) -> dict[str, int]:
    kernel = pm.Kernel.from_opencl(
        SOURCE.format(type=type_, loads=loads),
        "touch",
        GROUPS * ITEMS,
        ITEMS,
        {"a": 2000, "out": GROUPS * ITEMS},
        n=OUTER,
        m=INNER,
    )
    counts = kernel.at(**sizes).counts_at({}) if sizes else kernel.counts_at(kernel.sizes)
    footprint = counts.footprint_of("a", "any")
    assert footprint is not None
    assert footprint.elements is not None
    assert footprint.by_group is not None
    at = kernel.at(**sizes).sizes
    return {"elements": int(footprint.elements(at)), "by group": int(footprint.by_group(at))}


def touched(indices: list[str], components: int, outer: int = OUTER, inner: int = INNER) -> dict[str, int]:
    """Returns the same by going through all work-items and iterations."""
    places = [compile(index.replace("/", "//"), "index", "eval") for index in indices]
    names = {**NAMES, "i": range(outer), "j": range(inner)}
    pairs = {
        (values[0], components * eval(place, {}, dict(zip(names, values, strict=True))) + part)
        for values in itertools.product(*names.values())
        for place in places
        for part in range(components)
    }
    return {"elements": len({place for _, place in pairs}), "by group": len(pairs)}


@pytest.mark.parametrize("second", SECOND)
@pytest.mark.parametrize("index", INDICES)
def test_footprints_are_what_work_items_touch(index: str, second: str) -> None:
    indices = [each for each in (index, second) if each]
    loads = " + ".join(f"a[{each}]" for each in indices)
    assert counted(loads, "float") == touched(indices, 1)


@pytest.mark.parametrize("index", INDICES[:: 1 if examples(1) > 1 else 3])
def test_vectors_are_touched_as_a_whole(index: str) -> None:
    """A component's load brings its whole vector, as compilers make it."""
    assert counted(f"a[{index}].x", "float4") == touched([index], 4)


@pytest.mark.parametrize(("outer", "inner"), [(OUTER, INNER), (1, 1), (0, 3), (7, 2)])
@pytest.mark.parametrize("index", ["i * 16 + g * 8 + l", "g * 2 + l % 2 + i * 6", "l / 2 * 2 + l % 2 + j * 8", "l"])
def test_footprints_hold_for_all_sizes(index: str, outer: int, inner: int) -> None:
    assert counted(f"a[{index}]", "float", n=outer, m=inner) == touched([index], 1, outer, inner)


def test_variables_have_any_name() -> None:
    """A loop's variable is not mistaken for a component of a vector."""
    source = """
    kernel void touch(global const float4 *a, global float *out)
    {
        float sum = 0.0f;
        for (int part = 0; part < 3; ++part)
            sum += a[get_global_id(0) * 4 + part].x;
        out[get_global_id(0)] = sum;
    }
    """
    kernel = pm.Kernel.from_opencl(source, "touch", 64, 32, {"a": 300, "out": 64})
    footprint = kernel.counts.footprint_of("a", "any")
    assert footprint is not None
    assert footprint.elements is not None
    assert float(footprint.elements({})) == 64 * 3 * 4


@pytest.mark.parametrize("n", [0, 1, 32, 33, 64, 100])
def test_who_is_below_a_size_takes_part(n: int) -> None:
    """Sizes decide how many work-items of a group take part, in a region that is a box."""
    source = """
    kernel void part(global float *out, const int n)
    {
        if (get_local_id(0) < n)
            out[get_global_id(0)] = 1.0f;
    }
    """
    kernel = pm.Kernel.from_opencl(source, "part", 640, 64, {"out": 640}, n=n)
    items = min(n, 64)
    for granularity, times in (("workitem", items), ("subgroup", -(-items // 32)), ("workgroup", int(n > 0))):
        name = f"f_mem_access_global_float32_store_granularity:{granularity}"
        assert pm.feature(name).eval(kernel) == 10 * times

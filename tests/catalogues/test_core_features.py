"""Features of processors: lanes of vectors, and what a core's cache misses, against a cache that is simulated."""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import perfmodel as pm
from features.core_order import Step, distinct

LANES, LINE, SETS, WAYS = 16, 64, 64, 8
FIRST = SETS * WAYS * LINE

WALK = """__kernel void walk(__global const float *a, __global float *out, const int pitch, const int m)
{
    const int x = get_global_id(0), y = get_global_id(1);
    float sum = 0.0f;
    for (int k = 0; k < m; ++k)
        sum += a[%s];
    out[y * pitch + x] = sum;
}"""


def walk(index: str, group: tuple[int, int], items: tuple[int, int], **sizes: Any) -> pm.Kernel:
    arrays: dict[str, int | str] = {"a": "4096 * pitch", "out": "4096 * pitch"}
    return pm.Kernel.from_opencl(WALK % index, "walk", list(items), list(group), arrays, **sizes)


def vectors(group: tuple[int, int], items: tuple[int, int]) -> Iterator[tuple[Any, int]]:
    """Yields the work-items of a launch as a core takes them: work-groups, rows of them, vectors of a row."""
    for top in range(0, items[1], group[1]):
        for left in range(0, items[0], group[0]):
            for y in range(top, top + group[1]):
                for x in range(left, left + group[0], LANES):
                    yield np.arange(x, x + LANES), y


def simulated(trace: Iterable[int], sets: int, ways: int) -> int:
    """Returns the lines that a cache fetches that was filled by the same launch before, the least recently used lines
    of each set leaving it."""
    kept: list[OrderedDict[int, None]] = [OrderedDict() for _ in range(sets)]
    lines = list(trace)
    fetched = 0
    for turn in range(2):
        for line in lines:
            here = kept[line % sets]
            if line not in here:
                fetched += turn
                if len(here) == ways:
                    here.popitem(last=False)
            here[line] = None
            here.move_to_end(line)
    return fetched


@pytest.mark.parametrize(
    ("index", "address", "pitch", "m"),
    [
        ("y * pitch + k", lambda x, y, k, pitch: y * pitch + 0 * x + k, 1040, 64),  # a place for all lanes
        ("k * pitch + x", lambda x, y, k, pitch: k * pitch + x, 1040, 32),  # kept from row to row of the group
        ("k * pitch + x", lambda x, y, k, pitch: k * pitch + x, 1040, 1024),  # more lines than the cache has
        ("k * pitch + x", lambda x, y, k, pitch: k * pitch + x, 1024, 64),  # few, but all in one set
        ("x * pitch + k", lambda x, y, k, pitch: x * pitch + k, 1040, 64),  # a line for each lane
        ("x * pitch + k", lambda x, y, k, pitch: x * pitch + k, 1024, 64),  # all of these in one set
        ("32 * x + 256 * k", lambda x, y, k, pitch: 32 * x + 256 * k, 1040, 8),  # lanes that the next steps meet again
        ("32 * x + 256 * k", lambda x, y, k, pitch: 32 * x + 256 * k, 1040, 256),  # the same, beyond the cache
    ],
)
def test_what_a_cache_misses_is_what_a_simulated_one_fetches(
    index: str, address: Callable[..., Any], pitch: int, m: int
) -> None:
    group, items = (32, 8), (64, 16)
    kernel = walk(index, group, items, pitch=pitch, m=m)

    def trace() -> Iterator[int]:
        for x, y in vectors(group, items):
            for k in range(m):
                yield from np.unique(4 * address(x, y, k, pitch) // LINE).tolist()

    fetched = simulated(trace(), SETS, WAYS)
    found = pm.feature(f"f_mem_missed_keeps:{FIRST}").eval(kernel) / LINE
    stored = 64 * 16 * 4 / LINE  # which the simulated cache does not see
    assert found == pytest.approx(fetched, rel=0.25, abs=3 * stored)
    assert pm.feature(f"f_mem_missed_keeps:{2**30}").eval(kernel) < 1


def test_rows_a_power_of_two_apart_are_fetched_again_and_again() -> None:
    powers = [walk("x * pitch + k", (64, 1), (64, 1), pitch=pitch, m=256) for pitch in (1024, 1040)]
    shared, apart = (pm.feature(f"f_mem_missed_keeps:{FIRST}").eval(kernel) for kernel in powers)
    assert shared > 10 * apart


PLANES = """__kernel void planes(__global const float *a, __global float *out, const int n)
{
    const int i = get_global_id(0);
    out[i] = a[i] + a[i + 4 * n] + a[i + 8 * n] + a[i + 12 * n];
}"""
FIELDS = """__kernel void fields(__global const float *a, __global float *out, const int n)
{
    const int i = get_global_id(0);
    out[i] = a[4 * i] + a[4 * i + 1] + a[4 * i + 2] + a[4 * i + 3];
}"""


PAIRS = """__kernel void pairs(__global const float4 *a, __global float *out, const int n)
{
    const int i = get_global_id(0);
    const float4 both = a[i] + a[i + 2 * n];
    out[i] = both.x + both.w;
}"""


@pytest.mark.parametrize(("source", "name"), [(PLANES, "planes"), (FIELDS, "fields"), (PAIRS, "pairs")])
def test_accesses_of_one_array_fetch_what_they_touch_together(source: str, name: str) -> None:
    """Planes of an array lie apart, and fields of records share their lines."""
    n = 2**20
    kernel = pm.Kernel.from_opencl(source, name, n, 256, {"a": 16 * n, "out": n}, n=n)
    loaded, stored = (2 * 16 if name == "pairs" else 4 * 4) * n, 4 * n
    assert pm.feature("f_mem_missed_keeps:32768").eval(kernel) == pytest.approx(loaded + stored, rel=0.05)


SUMS = """__kernel void sums(__global const float *a, __global float *out, const int m)
{
    __local float sum[64];
    const int l = get_local_id(0);
    %s
    for (int k = 0; k < m; ++k)
        %s += a[k * 4096 + get_global_id(0)];
    %s
    barrier(CLK_LOCAL_MEM_FENCE);
    out[get_global_id(0)] = sum[l ^ 1];
}"""


def test_only_loops_with_barriers_are_gone_through_by_all_vectors_of_a_group_in_turn() -> None:
    """A vector goes through all of a loop before the next one, be its sum in local memory or not."""
    bodies = [("sum[l] = 0;", "sum[l]", ""), ("float own = 0;", "own", "sum[l] = own;")]
    found = []
    for body in bodies:
        kernel = pm.Kernel.from_opencl(SUMS % body, "sums", 128, 64, {"a": 4096 * 2048, "out": 128}, m=2048)
        found.append(float(pm.feature("f_mem_missed_keeps:32768_width:8").eval(kernel)))
    assert found[0] == pytest.approx(found[1], rel=0.01)
    assert found[0] == pytest.approx(2 * 4 * 128 * 2048, rel=0.05)  # two vectors share each line, which is lost between


WINDOW = """__constant float weight[3] = {0.25f, 0.5f, 0.25f};

__kernel void window(__global const float *a, __global float *out, const int n)
{
    const int x = get_global_id(0), y = get_global_id(1);
    out[y * n + x] = weight[0] * a[y * n + x] + weight[1] * a[(y + 1) * n + x] + weight[2] * a[(y + 2) * n + x];
}"""


def test_rows_of_a_window_are_the_next_rows_own_and_tables_stay() -> None:
    """A launch touches the array once, whatever its windows; a cache that has room for two such arrays keeps it."""
    n = 512
    kernel = pm.Kernel.from_opencl(WINDOW, "window", [n, n], [16, 16], {"a": "(n + 2) * n", "out": "n * n"}, n=n)
    both = 2 * 4 * n * n
    kept, lost = (pm.feature(f"f_mem_missed_keeps:{size}").eval(kernel) for size in (2 * both, both // 2))
    assert kept < 0.1 * both
    assert lost == pytest.approx(both, rel=0.1)


def test_stores_that_jump_are_lines_with_none_before_them() -> None:
    kernel = walk("y * pitch + k", (16, 64), (1024, 1024), pitch=1024, m=4)
    few = walk("y * pitch + k", (16, 8), (1024, 1024), pitch=1024, m=4)
    wide = walk("y * pitch + k", (256, 1), (1024, 1024), pitch=1056, m=4)
    near = walk("y * pitch + k", (256, 1), (1024, 1024), pitch=1040, m=4)
    jumps = [pm.feature("f_mem_missed_store_jumps_keeps:32768").eval(each) for each in (kernel, wide, near, few)]
    assert jumps[0] == pytest.approx(1024 * 1024 / 16, rel=0.02)  # a line of each row of a group
    assert jumps[3] == pytest.approx(1024, rel=0.02)  # rows of a few go on side by side, from group to group
    assert jumps[1] == pytest.approx(jumps[0] / 64, rel=0.02)  # a jump for each row
    assert jumps[2] < 2  # a line that is left out is none


def test_misses_are_the_same_for_many_sizes_and_for_one() -> None:
    kernel = walk("k * pitch + x", (32, 8), (64, 16), pitch=1024, m=64)
    model = pm.Model("f_cl_wall_time", "p_a * f_mem_missed_keeps:32768 + p_b * f_mem_missed_jumps_keeps:4096")
    pitches = np.array([1024, 1040, 2048, 4096])
    for name, found in model.features.items():
        together = pm.vocabulary.named_features.evaluate(found, kernel, kernel.bind({"pitch": pitches, "m": 64}))
        single = [found.eval(kernel.at(pitch=int(pitch))) for pitch in pitches]
        assert together == pytest.approx(single), name


GATHER = """__kernel void gather(__global const int *index, __global const float *table, __global float *out)
{
    out[get_global_id(0)] = table[index[get_global_id(0)]];
}"""


def test_what_data_decide_stays_within_its_array() -> None:
    def missed(words: int) -> float:
        arrays: dict[str, int | str] = {"index": 2**20, "table": words, "out": 2**20}
        kernel = pm.Kernel.from_opencl(GATHER, "gather", 2**20, 256, arrays)
        return float(pm.feature("f_mem_missed_keeps:1048576").eval(kernel))

    streamed = 2 * 4 * 2**20
    assert missed(2**10) == pytest.approx(streamed, rel=0.01)  # a small table is kept
    assert missed(2**26) == pytest.approx(streamed + 64 * 2**20, rel=0.01)  # of a large one, each needs a line


HASHED = """__kernel void hashed(__global const float *table, __global float *out, const uint m, const uint n)
{
    const uint i = get_global_id(0);
    float sum = 0.0f;
    for (uint k = 0; k < m; ++k) {
        uint x = (i + k * n) * 2654435761u;
        x ^= x >> 15;
        sum += table[x & (WORDS - 1)];
    }
    out[i] = sum;
}"""


TAPS = """typedef __global float (*out_t)[2][1024][256][2];
__kernel void taps(__global %s *p)
{
    out_t out = (out_t)p;
    const uint item = get_global_id(0), channel = (item >> 1) %% 256, part = (item >> 1) / 256;
    for (uint t = 0; t < 1024; t += 4) {
        %s
    }
}"""


@pytest.mark.parametrize(("type_", "elements"), [("float", 2**20), ("void", 2**22), ("char", 2**22)])
def test_places_by_remainders_of_ids_are_stored_to_whatever_type_a_pointer_had(type_: str, elements: int) -> None:
    """Each place of 4 MB is stored to once, so that a cache of 1 MB keeps none of it to the next launch."""
    stores = "".join(f"(*out)[part][t + {k}][channel][item & 1] = t; " for k in range(4))
    kernel = pm.Kernel.from_opencl(TAPS % (type_, stores), "taps", 1024, 256, {"p": elements})
    assert pm.feature("f_mem_footprint_global_store_block:4").eval(kernel) == 2**22
    assert pm.feature("f_mem_missed_keeps:1000000_width:16").eval(kernel) == pytest.approx(2**22, rel=0.1)


@pytest.mark.parametrize("words", [2**10, 2**14, 2**15, 2**16])
def test_places_all_over_an_array_are_fetched_as_often_as_by_a_simulated_cache(words: int) -> None:
    items, m = 2**15, 2  # a work-group alone touches less than the cache keeps
    kernel = pm.Kernel.from_opencl(
        HASHED.replace("WORDS", str(words)), "hashed", items, 64, {"table": words, "out": items}, m=m, n=items
    )

    def trace() -> Iterator[int]:
        for x, _ in vectors((64, 1), (items, 1)):
            for k in range(m):
                at = ((x + k * items) * 2654435761) & 0xFFFFFFFF
                at ^= at >> 15
                yield from (4 * (at & (words - 1)) // LINE).tolist()

    fetched = simulated(trace(), SETS, WAYS)
    found = pm.feature(f"f_mem_missed_keeps:{FIRST}").eval(kernel) / LINE
    stored = items * 4 / LINE  # which the trace leaves out
    assert found - stored == pytest.approx(fetched, rel=0.1, abs=stored / 4)


COPY = """__kernel void copy(__global const float *a, __global float *out, __local float *tile, const int n)
{
    const int x = get_local_id(0), y = get_local_id(1);
    tile[%d * y + x] = a[n * y + x];
    barrier(CLK_LOCAL_MEM_FENCE);
    out[n * y + x] = tile[%d * x + y] + a[y];
}"""


@pytest.mark.parametrize(
    ("width", "pitch", "steps", "left"),
    [(32, 32, 4 * 2, 0), (24, 32, 4, 4 * 8), (8, 32, 0, 4 * 8), (32, 33, 8, 0)],
)
def test_lanes_are_neighbours_along_the_first_axis(width: int, pitch: int, steps: int, left: int) -> None:
    arrays: dict[str, int | str] = {"a": "4 * n", "out": "4 * n", "tile": pitch * 32}
    kernel = pm.Kernel.from_opencl(COPY % (pitch, pitch), "copy", [width, 4], [width, 4], arrays, n=100)
    found = {
        name: pm.feature(f"f_{name}_width:16").eval(kernel)
        for name in (
            *("vector_steps", "vector_steps_left", "mem_lanes_global_load_unit", "mem_lanes_global_load_uniform"),
            *("mem_lanes_local_store_unit", "mem_lanes_local_store_gathered", "mem_lanes_local_load_gathered"),
        )
    }
    assert (found["vector_steps"], found["vector_steps_left"]) == (steps, left)
    vectors_ = -(-4 * width // 16)  # sub-groups of 16 of the whole group
    assert found["mem_lanes_global_load_unit"] == found["mem_lanes_global_load_uniform"] == vectors_
    is_odd = pitch == 33  # which compilers don't see to be neighbours
    assert found["mem_lanes_local_store_unit"] == (0 if is_odd else vectors_)
    assert found["mem_lanes_local_store_gathered"] == (vectors_ if is_odd else 0)
    assert found["mem_lanes_local_load_gathered"] == vectors_


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("f_mem_missed", "what the cache keeps"),
        ("f_mem_missed_keeps:32768_load", "unknown word"),
        ("f_mem_lanes_global_unit_width:16", "no direction"),
        ("f_mem_lanes_global_load_unit", "how wide"),
        ("f_vector_steps", "how wide"),
    ],
)
def test_names_say_what_they_count(name: str, said: str) -> None:
    with pytest.raises(pm.PerfmodelError, match=said):
        pm.feature(name)


def test_counts_know_the_work_groups_along_each_axis() -> None:
    kernel = walk("k * pitch + x", (32, 8), (64, 64), pitch=1024, m=64)
    for form in (kernel, kernel.as_compiled()):
        assert [count({}) for count in form.counts.grid] == [2, 8]


@pytest.mark.parametrize(("type_", "width"), [("float", 1), ("float2", 2), ("float4", 4), ("char", 0.25)])
def test_elements_of_several_numbers_are_as_far_apart_as_they_are_long(type_: str, width: float) -> None:
    source = f"__kernel void copy(__global const {type_} *a, __global {type_} *b, const int n)"
    source += "{ b[get_global_id(0)] = a[get_global_id(0)]; }"
    numbers = 2**20
    kernel = pm.Kernel.from_opencl(source, "copy", "n", 256, {"a": "n", "b": "n"}, n=int(numbers / width))
    assert pm.feature(f"f_mem_missed_keeps:{FIRST}").eval(kernel) == pytest.approx(2 * 4 * numbers, rel=1e-3)


def test_loops_known_only_together_do_not_seem_to_cross() -> None:
    nested = [
        Step(("loop", n), np.asarray(32.0), np.asarray(stride), True) for n, stride in enumerate((4096.0, 65536.0))
    ]
    blocks, _ = distinct(nested, 4, 64)
    assert blocks == 32 * 32
    exact = [replace(step, is_guessed=False) for step in nested]
    assert distinct(exact, 4, 64)[0] == 32 + 31 * 16

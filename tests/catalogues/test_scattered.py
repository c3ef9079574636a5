"""Work-groups that touch a little all over an array bring it from memory again and again; others do not."""

from __future__ import annotations

import warnings
from collections import OrderedDict

import numpy as np
import pytest

import perfmodel as pm
from perfmodel.counting.recording import Recording
from perfmodel.features.scattered import rooms
from perfmodel.vocabulary.named_features import CountedFeature, feature

ITEMS, LOADS, SPAN = 8192, 16, 2**23
NAME = "f_mem_scattered_global_load_missed_block:32_reach:>8000000"
SOURCE = """uint hash(uint x) {{ x *= 2654435761u; return x ^ (x >> 15); }}
__kernel void k(__global const float *a, __global float *o, const int m, const int n)
{{
    const uint i = get_global_id(0);
    float s = 0;
    for (int j = 0; j < m; j++) s += a[{}];
    o[i] = s;
}}"""
PLACES = {
    "all over": ("hash(i + j * n) & (8388608 - 1)", ITEMS * LOADS * 32),
    "near": ("(i * 512 + (hash(i + j * n) & 511)) & (8388608 - 1)", 0),
    "in order": ("i + j * n", 0),
}


@pytest.mark.parametrize("case", PLACES)
def test_groups_that_touch_a_little_of_every_page_jump_about(case: str) -> None:
    place, expected = PLACES[case]
    kernel = pm.Kernel.from_opencl(SOURCE.format(place), "k", "n", 128, {"a": SPAN, "o": "n"}, n=ITEMS, m=LOADS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pm.PerfmodelWarning)
        counted = kernel.as_compiled().as_countable()
    assert pm.feature(NAME).eval(counted) == pytest.approx(expected, rel=0.01)


def counted(loads: int) -> pm.Kernel:
    source = SOURCE.format("hash(i + j * n + (int)s) & (8388608 - 1)")  # data decide
    kernel = pm.Kernel.from_opencl(source, "k", "n", 128, {"a": SPAN, "o": "n"}, n=ITEMS, m=loads)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pm.PerfmodelWarning)
        return kernel.as_compiled().as_countable()


def test_blocks_that_footprints_bring_are_told_from_what_comes_again() -> None:
    once = pm.feature("f_mem_scattered_global_load_missed_first_block:64_reach:>8000000")
    few, many = 16, 1024
    assert once.eval(counted(few)) == ITEMS * few * 64
    assert once.eval(counted(many)) == 4 * SPAN


@pytest.mark.parametrize("room", [0.25, 0.5, 0.75, 0.9, 1.0])
def test_random_sectors_miss_a_cache_of_lines_as_often_as_if_all_were_played_through(room: float) -> None:
    loads, array = 1024, 4 * SPAN
    name = f"f_mem_scattered_global_load_missed_keeps:{int(room * array)}_block:32_reach:>8000000"
    assert pm.feature(name).eval(counted(loads)) / (ITEMS * loads * 32) == pytest.approx(missed(room), abs=0.02)


def missed(room: float) -> float:
    """Returns the part of random accesses to sectors that miss a cache of lines, the least recently used of which goes
    first, with room for a part of them."""
    lines, random = 400, np.random.default_rng(7)
    held: dict[int, set[int]] = {}
    misses = 0
    places = random.integers(0, lines * 4, 60_000).tolist()
    for number, place in enumerate(places):
        line, sector = divmod(place, 4)
        sectors = held.pop(line, set())
        misses += number >= len(places) // 2 and sector not in sectors
        held[line] = sectors | {sector}  # the last of the dictionary
        if len(held) > room * lines:
            del held[next(iter(held))]
    return misses / (len(places) - len(places) // 2)


COUNTED = """
extern "C" __global__ void k(double *a, const int *at)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    atomicAdd(&a[at[i]], 1.0);
}
"""


@pytest.mark.parametrize("is_anywhere", [True, False])
def test_atomics_go_anywhere_if_each_group_goes_to_all_of_an_array(is_anywhere: bool) -> None:
    """Memory brings a sector and takes it back for each, unless groups add to parts of their own, however random."""
    pytest.importorskip("nvidia.cuda_nvrtc", reason="the compiler of the extra nvidia is not installed")
    items, numbers = 2**18, 2**24
    at = np.random.default_rng(1).integers(0, numbers, items, np.int32)
    given = at if is_anywhere else np.sort(at).reshape(-1, 128)[:, ::-1].ravel()
    kernel = pm.Kernel.from_cuda(COUNTED, "k", items // 128, 128, {"a": numbers, "at": items})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pm.PerfmodelWarning)
        found = kernel.as_countable({"at": np.ascontiguousarray(given)})
    missed = float(pm.feature(NAME.replace("load", "atomic")).eval(found))
    assert missed == pytest.approx(32 * items if is_anywhere else 0, rel=0.05)


@pytest.mark.parametrize(
    ("lines", "touches"), [((4000, 500), (1, 1)), ((3000, 3000), (1, 4)), ((900, 2500, 300), (3, 2, 1))]
)
def test_lines_that_are_touched_more_often_are_in_a_cache_more_often(
    lines: tuple[int, ...], touches: tuple[int, ...]
) -> None:
    """A cache that keeps what was touched last has each array's lines as often as is predicted."""
    keeps, random, held = 2000, np.random.default_rng(5), OrderedDict[tuple[int, int], None]()
    arrays = random.choice(len(lines), 60_000, p=np.array(touches) / sum(touches))
    found, asked = np.zeros(len(lines)), np.zeros(len(lines))
    for number, array in enumerate(arrays.tolist()):
        line = array, int(random.integers(lines[array]))
        if number > 20_000:
            asked[array] += 1
            found[array] += line in held
        held[line] = None
        held.move_to_end(line)
        if len(held) > keeps:
            held.popitem(last=False)
    names = [f"a{number}" for number in range(len(lines))]
    reaches = {name: np.asarray(128.0 * count) for name, count in zip(names, lines, strict=True)}
    often = {name: np.asarray(float(count)) for name, count in zip(names, touches, strict=True)}
    expected = rooms(128.0 * keeps, reaches, often, {})
    for name, share in zip(names, found / asked, strict=True):
        assert float(expected[name]) == pytest.approx(share, abs=0.02)


def test_what_stays_of_two_arrays_is_recorded_as_it_is_evaluated() -> None:
    source = """uint hash(uint x) { x *= 2654435761u; return x ^ (x >> 15); }
    __kernel void k(__global const float *a, __global const float *b, __global float *o, const int n)
    {
        const uint i = get_global_id(0);
        o[i] = a[hash(i) & 33554431] + b[hash(7 * i) & 4194303] + b[hash(9 * i) & 4194303];
    }"""
    kernel = pm.Kernel.from_opencl(source, "k", "n", 128, {"a": 2**25, "b": 2**22, "o": "n"}, n=2**20).as_compiled()
    name = "f_mem_scattered_global_load_missed_keeps:50000000_block:32_reach:>8000000"
    recording = Recording(["n"])
    found = feature(name)
    assert isinstance(found, CountedFeature)
    again = recording.function(found.values(kernel.counts_at({}, 32), recording))
    for n in (2**16, 2**20, 2**24):
        assert again(n)[0] == pytest.approx(pm.feature(name).eval(kernel.at(n=n)), rel=1e-9)

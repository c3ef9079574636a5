"""Work-items that walk on from places that data name, against what they touch, gone through one by one."""

from __future__ import annotations

import numpy as np
import pytest

import perfmodel as pm

ROWS, LENGTH, WIDTH = 2048, 24, 32
RNG = np.random.default_rng(7)
STARTS = (np.cumsum(RNG.integers(LENGTH, LENGTH + 9, ROWS)) - LENGTH).astype(np.int32)
WALKS: dict[str, tuple[str, int]] = {
    "a counter that begins there": ("for (int k = start[i]; k < start[i] + LENGTH; k++) s += a[k];", 1),
    "a place and a counter": ("const int at = start[i]; for (int k = 0; k < LENGTH; k++) s += a[at + 2 * k];", 2),
    "a pointer that moves": (
        "__global const float *p = a + start[i]; for (int k = 0; k < LENGTH; k++) { s += *p; p++; }",
        1,
    ),
    "a counter that others follow": (
        "int k = start[i]; while (k < start[i] + LENGTH) { const float v = a[k++]; if (v > 2) continue; s += v; }",
        1,
    ),
}


def walking(loop: str, size: int, starts: np.ndarray = STARTS) -> pm.Kernel:
    source = f"""__kernel void walk(__global const int *start, __global const float *restrict a, __global float *out)
    {{
        const int i = get_global_id(0);
        float s = 0;
        {loop.replace("LENGTH", str(LENGTH))}
        out[i] = s;
    }}"""
    kernel = pm.Kernel.from_opencl(source, "walk", ROWS, 64, {"start": ROWS, "a": size, "out": ROWS})
    arrays = {"start": starts, "a": RNG.random(size).astype(np.float32)}
    return kernel.as_countable(arrays)


def touched(step: int) -> np.ndarray:
    """Returns the sectors by iteration and work-item."""
    places = STARTS[None, :] + step * np.arange(LENGTH)[:, None]
    return places * 4 // 32


@pytest.mark.parametrize("walk", WALKS)
def test_steps_are_known_wherever_a_walk_begins(walk: str) -> None:
    """Those sectors of an iteration are fresh that its step leads to, and those rounds in which anyone has some."""
    loop, step = WALKS[walk]
    kernel = walking(loop, int(STARTS[-1]) + step * LENGTH + 64).as_compiled()
    sectors = touched(step)
    moved = sectors[1:] != sectors[:-1]
    of_loads = "f_mem_transactions_global_load_var:a_block:32"
    fresh = pm.feature(f"{of_loads}_fresh").eval(kernel) / pm.feature(of_loads).eval(kernel)
    assert fresh == pytest.approx(moved.mean(), rel=0.1)
    rounds = moved.reshape(LENGTH - 1, -1, WIDTH).any(axis=2).mean()
    found = pm.feature("f_mem_rounds_global_fresh").eval(kernel) / pm.feature("f_mem_rounds_global").eval(kernel)
    assert found == pytest.approx(rounds, rel=0.1)


def test_what_is_lost_comes_again_once_a_wait() -> None:
    """Iterations that wait together ask for a sector once; of those whose wait is their own, all but the fresh do."""
    loop, step = WALKS["a place and a counter"]
    size = int(STARTS[-1]) + step * LENGTH + 64
    of_loads = "f_mem_transactions_global_load_var:a_block:32"

    def share(kernel: pm.Kernel) -> float:
        return pm.feature(f"{of_loads}_again").eval(kernel) / pm.feature(of_loads).eval(kernel)

    together = walking(loop, size)
    waits = pm.feature("f_mem_waits_global").eval(together) / ROWS
    assert share(together) == pytest.approx(max((waits - 1) / LENGTH - step * 4 / 32, 0), abs=0.02)
    one_by_one = walking(loop.replace("for (", "\n#pragma unroll 1\nfor ("), size)
    assert share(one_by_one) == pytest.approx(1 - step * 4 / 32, rel=0.02)


def test_lone_sectors_are_those_of_gathers_alone() -> None:
    """Each sector that a gather asks for by itself counts three quarters of its bytes, those of rows nothing."""
    source = """__kernel void gather(__global const int *where, __global const float *x, __global const float *y,
                                     __global float *out)
    {
        const int i = get_global_id(0);
        out[i] = x[where[i]] + y[i];
    }"""
    size, items = 1 << 20, 4 * ROWS
    arrays = {"where": items, "x": size, "y": items, "out": items}
    kernel = pm.Kernel.from_opencl(source, "gather", items, 64, arrays)
    where = RNG.permutation(size)[:items].astype(np.int32)
    seen = kernel.as_countable({"where": where}).as_compiled()
    assert pm.feature("f_mem_lone_sectors").eval(seen) == pytest.approx(items * 32 * 0.75, rel=0.05)
    straight = kernel.as_countable({"where": np.arange(items, dtype=np.int32)}).as_compiled()
    assert pm.feature("f_mem_lone_sectors").eval(straight) == pytest.approx(0, abs=32)


def test_the_longest_of_what_data_decide_is_that_of_each_group() -> None:
    """One row of each group is long: the group is waited for, where a mean row has hardly anything to do."""
    lengths = np.full(ROWS, 2, np.int32)
    lengths[::64] = 100
    source = """__kernel void rows(__global const int *length, __global const float *a, __global float *out)
    {
        const int i = get_global_id(0);
        float s = 0;
        for (int k = 0; k < length[i]; k++) s += a[k * 2048 + i];
        out[i] = s;
    }"""
    kernel = pm.Kernel.from_opencl(source, "rows", ROWS, 64, {"length": ROWS, "a": ROWS * 128, "out": ROWS})
    seen = kernel.as_countable({"length": lengths}).as_compiled()
    loads = "f_mem_access_global_load_var:a"
    assert pm.feature(loads).eval(seen) == pytest.approx(lengths.sum())
    assert pm.feature(f"{loads}_granularity:longest").eval(seen) == pytest.approx(100 * ROWS)


ROWS_OF_GROUPS = """__kernel void rows(__global const int *start, __global const float *restrict a, __global float *out)
{
    const int row = get_group_id(0);
    float s = 0;
    for (int k = start[row]; k < start[row + 1]; k++)
        s += a[k] == get_local_id(0);
    out[get_global_id(0)] = s;
}"""


def test_rows_of_different_lengths_bring_each_of_their_sectors() -> None:
    """Work-groups whose work-items go through one row together, each its own, have its sectors brought once."""
    lengths = np.random.default_rng(3).integers(100, 900, 64)
    start = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    arrays = {"start": start, "a": np.zeros(start[-1], np.float32)}
    kernel = pm.Kernel.from_opencl(
        ROWS_OF_GROUPS, "rows", 64 * 32, 32, {"start": 65, "a": int(start[-1]), "out": 64 * 32}
    )
    fresh = pm.feature("f_mem_transactions_global_load_var:a_block:32_fresh").eval(
        kernel.as_countable(arrays).as_compiled()
    )
    assert fresh == pytest.approx(int(lengths.sum()) * 4 / 32, rel=0.05)


@pytest.mark.parametrize("phases", [(0,), (0, 4), (0, 2, 4, 6)])
def test_rows_that_begin_alike_come_to_their_next_sectors_together(phases: tuple[int, ...]) -> None:
    """Work-items go through rows anywhere, of which each begins at one of a few places in its sector."""
    pytest.importorskip("nvidia.cuda_nvrtc", reason="needs the extra nvidia")
    rng = np.random.default_rng(8)
    starts = (rng.permutation(ROWS) * 32 + rng.choice(phases, ROWS)).astype(np.int32)
    loop = "const int at = start[i];\n#pragma unroll 1\nfor (int k = 0; k < LENGTH; k++) s += a[at + k];"
    kernel = walking(loop, 32 * ROWS + LENGTH, starts).as_machine_code()
    sectors = (starts[None, :] + np.arange(LENGTH)[:, None]) * 4 // 32
    moved = (sectors[1:] != sectors[:-1]).reshape(LENGTH - 1, -1, WIDTH).any(axis=2)
    of_walks = pm.feature("f_mem_rounds_global_fresh").eval(kernel) - ROWS  # each loads where it begins, too
    assert of_walks == pytest.approx(ROWS * (1 + moved.sum(axis=0).mean()), rel=0.01)

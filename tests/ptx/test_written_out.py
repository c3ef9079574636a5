"""Copies of an access that a compiler wrote out are counted at the places that they go to."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

import perfmodel as pm
from perfmodel.ptx.counting.written_out import steps_of


def test_rows_of_places_are_nested_loops() -> None:
    assert steps_of([8, 4, 0]) == ((4, 3),)
    assert steps_of([0, 4, 8, 100, 104, 108]) == ((100, 2), (4, 3))
    assert steps_of([16, 16]) == ()
    assert steps_of([0, 4, 100]) is None


@given(st.lists(st.tuples(st.integers(1, 5), st.integers(2, 5)), max_size=3), st.randoms(use_true_random=False))
def test_nested_loops_go_through_the_places_that_they_are_found_in(loops, random) -> None:  # type: ignore[no-untyped-def]
    places, span = [7], 4
    for gap, number in loops:
        places = [place + time * span * gap for time, place in itertools.product(range(number), places)]
        span *= gap * number
    random.shuffle(places)
    found = steps_of(places)
    assert found is not None
    again = {sum(step * time for (step, _), time in zip(found, times, strict=True)) for times in every(found)}
    assert {place - min(places) for place in places} == again


def every(steps: tuple[tuple[int, int], ...]) -> itertools.product[tuple[int, ...]]:
    return itertools.product(*(range(number) for _, number in steps))


@pytest.mark.parametrize("rows", [4, 7])
def test_a_window_brings_its_rows_once_however_it_is_written_out(rows: int) -> None:
    """Two pixels of a work-item side by side, 7 columns and some rows: the compiler writes the columns out, and of
    seven rows two at a time, with a way out in the middle."""
    pytest.importorskip("nvidia.cuda_nvrtc", reason="needs the extra nvidia")
    text = f"""
    __global__ void f(const float *__restrict__ image, float *out)
    {{
        const int x = 2 * (blockIdx.x * blockDim.x + threadIdx.x), y = blockIdx.y * blockDim.y + threadIdx.y;
        float left = 0, right = 0;
        for (int j = 0; j < {rows}; j++)
            for (int i = 0; i < 7; i++) {{
                left += image[(y + j) * 4102 + x + i] * (i + j);
                right += image[(y + j) * 4102 + x + 1 + i] * (i + j);
            }}
        out[y * 4096 + x] = left;
        out[y * 4096 + x + 1] = right;
    }}"""
    arrays = {"image": 4102 * 4102, "out": 4096 * 4096}
    knl = pm.Kernel.from_cuda(text, "f", (16, 2048), (128, 2), arrays)
    assert float(pm.feature("f_mem_revisited_global_load_keeps:50000000").eval(knl)) < 0.01 * 4102 * 4102 * 4

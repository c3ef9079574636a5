"""Blocks that ask a counter for the next piece of work until none is left do as much together as there is."""

from __future__ import annotations

import numpy as np
import pytest

from perfmodel import Kernel, feature

ROWS, BLOCKS, THREADS = 100_000, 64, 128
HEAD = """.version 8.0
.target sm_80
.address_size 64
.visible .entry take(.param .u64 next, .param .u64 x, .param .u32 rows)
{
    .reg .b32 %r<9>;
    .reg .b64 %rd<9>;
    .reg .f32 %f<3>;
    .reg .pred %p<3>;
    .shared .align 4 .b32 taken;
    ld.param.u64 %rd1, [next];
    ld.param.u64 %rd2, [x];
    ld.param.u32 %r1, [rows];
    mov.u32 %r2, %tid.x;
"""
BY_THREADS = """
$next:
    atom.global.add.u32 %r3, [%rd1], 1;
    setp.ge.u32 %p1, %r3, %r1;
    @%p1 bra $done;
    mov.u32 %r5, %r3;
"""
BY_BLOCKS = """
$next:
    setp.ne.u32 %p1, %r2, 0;
    @%p1 bra $wait;
    atom.global.add.u32 %r3, [%rd1], 128;
    st.shared.u32 [taken], %r3;
$wait:
    bar.sync 0;
    ld.shared.u32 %r4, [taken];
    bar.sync 0;
    setp.ge.u32 %p2, %r4, %r1;
    @%p2 bra $done;
    add.u32 %r5, %r4, %r2;
"""
DOUBLED = """
    mul.wide.u32 %rd3, %r5, 4;
    add.u64 %rd4, %rd2, %rd3;
    ld.global.f32 %f1, [%rd4];
    add.f32 %f1, %f1, %f1;
    st.global.f32 [%rd4], %f1;
    bra $next;
$done:
    ret;
}
"""


@pytest.mark.parametrize("body", [BY_THREADS, BY_BLOCKS], ids=["threads", "blocks"])
def test_all_blocks_together_do_what_there_is(body: str) -> None:
    arrays = {"next": 1, "x": ROWS + THREADS}
    kernel = Kernel.from_ptx(HEAD + body + DOUBLED, None, BLOCKS, THREADS, arrays, rows=ROWS)
    kernel = kernel.as_observed({"next": np.zeros(1, np.int32)})
    stored = feature("f_mem_access_global_store").eval(kernel)
    assert stored == pytest.approx(ROWS, rel=0.05)


def test_a_counter_that_ends_no_loop_counts_up_as_it_stands() -> None:
    """A place in a list of results is the next one, however many blocks are looked at."""
    body = """
    mov.u32 %r4, 0;
$next:
    atom.global.add.u32 %r3, [%rd1], 1;
    mul.wide.u32 %rd3, %r3, 4;
    add.u64 %rd4, %rd2, %rd3;
    st.global.u32 [%rd4], %r4;
    add.u32 %r4, %r4, 1;
    setp.lt.u32 %p1, %r4, %r1;
    @%p1 bra $next;
    ret;
}
"""
    turns = 12
    arrays = {"next": 1, "x": BLOCKS * THREADS * turns}
    kernel = Kernel.from_ptx(HEAD + body, None, BLOCKS, THREADS, arrays, rows=turns)
    kernel = kernel.as_observed({"next": np.zeros(1, np.int32)})
    assert feature("f_mem_access_global_store").eval(kernel) == BLOCKS * THREADS * turns

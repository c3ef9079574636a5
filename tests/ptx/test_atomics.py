"""Atomics of CUDA's threads that meet at one place take a pass each, in shared and in global memory."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from perfmodel import Kernel, feature
from perfmodel.ptx.emulation.atomics import update

N = 256 * 16
HISTOGRAM = Path(__file__).parent / "texts" / "histogram.ptx"
TO_GLOBAL = """.version 8.0
.target sm_80
.address_size 64
.visible .entry bins(.param .u64 keys, .param .u64 out)
{
    .reg .b32 %r<9>;
    .reg .b64 %rd<9>;
    ld.param.u64 %rd1, [keys];
    ld.param.u64 %rd2, [out];
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, %ctaid.x;
    mad.lo.s32 %r3, %r2, 256, %r1;
    mul.wide.u32 %rd3, %r3, 4;
    add.u64 %rd4, %rd1, %rd3;
    ld.global.u32 %r4, [%rd4];
    mul.wide.u32 %rd5, %r4, 4;
    add.u64 %rd6, %rd2, %rd5;
    red.global.add.u32 [%rd6], 1;
    red.global.add.u32 [%rd2], %r1;
    ret;
}
"""


@pytest.fixture(name="keys")
def a_few_bins_with_most() -> np.ndarray:
    return (np.random.default_rng(3).random(N) ** 3 * 64).astype(np.int32)


def test_shared_memory_takes_the_most_at_a_bank(keys: np.ndarray) -> None:
    keys_of, out, n = (f"_Z9histogramPKiPii_param_{number}" for number in range(3))
    kernel = Kernel.from_ptx(HISTOGRAM, None, N // 256, 256, {keys_of: N, out: 64}).at(**{n: N})
    met = [np.bincount(own % 32, minlength=32).max() for own in keys.reshape(-1, 32)]
    found = feature("f_mem_transactions_local_atomic_banks:32").eval(kernel.as_observed({keys_of: keys}))
    assert found == pytest.approx(sum(met))


def test_global_memory_takes_the_most_at_a_place_of_each_sector(keys: np.ndarray) -> None:
    kernel = Kernel.from_ptx(TO_GLOBAL, None, N // 256, 256, {"keys": N, "out": 64})
    met = [np.bincount(own, minlength=64).reshape(8, 8).max(axis=1).sum() for own in keys.reshape(-1, 32)]
    found = feature("f_mem_contended_global_atomic_block:512").eval(kernel.as_observed({"keys": keys}))
    assert found == pytest.approx(sum(met) + N / 32)  # what all have for one place is added up first


ONE_PLACE = """.version 8.0
.target sm_80
.address_size 64
.visible .entry sums(.param .u64 out, .param .u64 given)
{
    .shared .align 8 .b8 own[4096];
    .reg .b64 %rd<6>;
    .reg .b32 %r<6>;
    .reg .bBITS %x<3>;
    ld.param.u64 %rd1, [out];
    ld.param.u64 %rd2, [given];
    ld.global.TYPE %x1, [%rd2];
    PLACE
    UPDATE
    ret;
}
"""
OWN_PLACE = "mov.u32 %r1, %tid.x; and.b32 %r1, %r1, 0; mul.wide.u32 %rd3, %r1, 4; add.u64 %rd1, %rd1, %rd3;"
NEIGHBOURS = "mov.u32 %r1, %tid.x; mul.wide.u32 %rd3, %r1, SIZE; add.u64 %rd1, %rd1, %rd3;"


def of_one_place(update: str, place: str = "", out: int | None = 128) -> Kernel:
    """Returns a kernel of four blocks of 128 threads that update an array."""
    type_ = update.split("[")[0].split(".")[-1].split()[0]
    text = ONE_PLACE.replace("PLACE", place).replace("SIZE", str(int(type_[1:]) // 8))
    text = text.replace("UPDATE", update).replace("TYPE", type_).replace("BITS", type_[1:])
    if out is None:
        return Kernel.from_ptx(text, None, 4, 128, {"given": 64}, out=0)
    return Kernel.from_ptx(text, None, 4, 128, {"out": out, "given": 64})


@pytest.mark.parametrize(
    ("update", "passes"),
    [
        ("red.global.add.u32 [%rd1], %x1;", 1),
        ("atom.global.add.u32 %x2, [%rd1], %x1; st.global.u32 [%rd2], %x2;", 1),
        ("atom.global.max.u32 %x2, [%rd1], %x1;", 1),
        ("atom.global.max.u32 %x2, [%rd1], %x1; st.global.u32 [%rd2], %x2;", 32),  # which was there, each wants to know
        ("atom.global.exch.b32 %x2, [%rd1], %x1;", 32),
        ("atom.global.inc.u32 %x2, [%rd1], %x1;", 32),
        ("red.global.add.u64 [%rd1], %x1;", 32),
        ("red.global.add.f32 [%rd1], %x1;", 32),
    ],
)
def test_only_some_updates_of_a_subgroup_are_combined(update: str, passes: int) -> None:
    kernel = of_one_place(update)
    assert feature("f_mem_transactions_global_atomic_passes:32").eval(kernel) == 16 * passes
    slower = 2.4 if ".f32" in update else 1  # a sector takes that much longer to add floats
    assert feature("f_mem_contended_global_atomic_block:512").eval(kernel) == pytest.approx(16 * passes * slower)


def test_a_place_that_follows_from_ids_is_not_known_to_be_one() -> None:
    kernel = of_one_place("red.global.add.u32 [%rd1], %x1;", OWN_PLACE)
    assert feature("f_mem_transactions_global_atomic_passes:32").eval(kernel) == 16 * 32


def in_shared_memory(update: str, place: str) -> float:
    """Returns the passes of one sub-group's update of an array in shared memory."""
    kernel = of_one_place(update.replace("global", "shared"), f"mov.u64 %rd1, own; {place}", None)
    return feature("f_mem_transactions_local_atomic_banks:32").eval(kernel) / 16


def test_sums_of_floats_in_shared_memory_take_a_round_for_each_that_meet() -> None:
    apart = in_shared_memory("red.global.add.f32 [%rd1], %x1;", NEIGHBOURS)
    together = in_shared_memory("red.global.add.f32 [%rd1], %x1;", "")
    whole = in_shared_memory("red.global.add.u32 [%rd1], %x1;", OWN_PLACE)
    assert whole == 32
    assert 1 < apart < 8
    assert together > 4 * whole  # an H100 takes 21 ns for whole numbers, and some 140 ns for floats of four sub-groups
    assert in_shared_memory("red.global.add.f64 [%rd1], %x1;", "") > together


@pytest.mark.parametrize("operation", ["add.u64", "xor.b64", "max.u64", "or.b64"])
def test_updates_of_64_bits_in_shared_memory_are_loops_as_sums_of_doubles_are(operation: str) -> None:
    """NVIDIA's assembler makes a loop of a load and a comparison of each of them for sm_90."""
    for place in ("", NEIGHBOURS):
        found = in_shared_memory(f"red.global.{operation} [%rd1], %x1;", place)
        assert found == in_shared_memory("red.global.add.f64 [%rd1], %x1;", place)


ROWS_OF = "mov.u32 %r1, %tid.x; div.u32 %r1, %r1, ROW; mul.wide.u32 %rd3, %r1, 4; add.u64 %rd1, %rd1, %rd3;"


def test_other_sub_groups_come_between_rounds_only_where_they_meet() -> None:
    """An H200 takes 12.3 ps for a float where 30 work-items in a row have one place, and 57 ps where all have it."""
    own, beside = (
        in_shared_memory("red.global.add.f32 [%rd1], %x1;", ROWS_OF.replace("ROW", row)) for row in ("32", "30")
    )
    everybody = in_shared_memory("red.global.add.f32 [%rd1], %x1;", "")
    assert own < 0.6 * everybody
    assert beside < 1.2 * own


def test_comparisons_in_shared_memory_take_longer_than_sums() -> None:
    sums = in_shared_memory("red.global.add.u32 [%rd1], %x1;", NEIGHBOURS)
    assert 1.5 * sums < in_shared_memory("atom.global.cas.b32 %x2, [%rd1], %x1, %x1;", NEIGHBOURS) < 2 * sums


TRIED_AGAIN = """.version 8.0
.target sm_80
.address_size 64
.visible .entry sums(.param .u64 keys, .param .u64 out)
{
    .reg .pred %p<3>;
    .reg .b64 %rd<9>;
    .reg .b32 %r<12>;
    ld.param.u64 %rd1, [keys];
    ld.param.u64 %rd2, [out];
    mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x;
    mad.lo.u32 %r4, %r2, %r3, %r1;
    mul.wide.u32 %rd3, %r4, 4;
    add.u64 %rd4, %rd1, %rd3;
    ld.global.u32 %r5, [%rd4];
    mul.wide.u32 %rd5, %r5, 4;
    add.u64 %rd6, %rd2, %rd5;
    ld.global.u32 %r6, [%rd6];
again:
    add.u32 %r7, %r6, 1;
    mov.u32 %r8, %r6;
    atom.global.cas.b32 %r6, [%rd6], %r8, %r7;
    setp.ne.u32 %p1, %r6, %r8;
    @%p1 bra again;
    ret;
}
"""


@pytest.mark.parametrize("places", [16, 128])
def test_comparisons_fail_for_all_others_at_their_place(places: int) -> None:
    n = 2**14
    keys = np.random.default_rng(places).integers(0, places, n).astype(np.int32)
    kernel = Kernel.from_ptx(TRIED_AGAIN, None, n // 256, 256, {"keys": n, "out": places})
    kernel = kernel.as_observed({"keys": keys, "out": np.zeros(places, np.int32)})
    rounds = n / places  # one update of each place succeeds in each
    assert feature("f_mem_retries_global").eval(kernel) == pytest.approx(rounds, rel=0.2)
    assert feature("f_mem_retries_global_all").eval(kernel) == pytest.approx(rounds, rel=0.2)
    # Each of 32 work-items asks for itself, together with those of its sub-group that ask for the same 256 bytes.
    together = 32 / max(4 * places // 256, 1)
    requests = (1 + 0.1 * (together - 1)) / 32
    assert feature("f_mem_retries_global_block:512").eval(kernel) == pytest.approx(rounds * requests, rel=0.2)


def test_work_items_side_by_side_ask_for_a_block_by_one_request() -> None:
    n, places = 2**16, 4096
    keys = np.arange(n, dtype=np.int32) % places
    kernel = Kernel.from_ptx(TRIED_AGAIN, None, n // 256, 256, {"keys": n, "out": places})
    kernel = kernel.as_observed({"keys": keys, "out": np.zeros(places, np.int32)}, groups="all")
    asking = 128 / places  # of all work-items, for the same 512 bytes
    requests = asking / 32 + 0.1 * (asking - asking / 32)
    found = feature("f_mem_retries_global_block:512").eval(kernel)
    assert found == pytest.approx(n / places * requests, rel=0.2)


def test_a_work_item_tries_one_update_at_a_time() -> None:
    source = "__device__ void add(float *a, float v) { int *p = (int *)a, o = *p, e; do { e = o; o = atomicCAS(p, e,"
    source += " __float_as_int(v + __int_as_float(e))); } while (o != e); }"
    source += "__global__ void k(float *a, float *b) { int i = blockIdx.x * blockDim.x + threadIdx.x; add(a, i);"
    found = {}
    for updates in ("", " add(b, i);"):
        kernel = Kernel.from_cuda(f"{source}{updates} }}", "k", 64, 256, {"a": 1, "b": 1})
        for word in ("", "_all"):
            found[updates, word] = float(feature(f"f_mem_retries_global{word}").eval(kernel))
    assert found[" add(b, i);", ""] == pytest.approx(2 * found["", ""])  # rounds
    assert found[" add(b, i);", "_all"] == pytest.approx(found["", "_all"])  # each is asked for by half of them


def test_comparisons_that_go_on_to_the_next_place_are_not_tried_again() -> None:
    moving = TRIED_AGAIN.replace("@%p1 bra again;", "add.u64 %rd6, %rd6, 4;\n    @%p1 bra again;")
    n, places = 2**12, 128
    kernel = Kernel.from_ptx(moving, None, n // 256, 256, {"keys": n, "out": places + n})
    kernel = kernel.as_observed({"keys": np.zeros(n, np.int32), "out": np.zeros(places + n, np.int32)})
    assert feature("f_mem_retries_global").eval(kernel) == 0


def test_a_comparison_that_is_made_once_is_not_tried_again() -> None:
    kernel = of_one_place("atom.global.cas.b32 %x2, [%rd1], %x1, %x1;")
    assert feature("f_mem_retries_global").eval(kernel) == 0


@pytest.mark.parametrize("values", [2, 50])
def test_exchanges_go_one_after_the_other(values: int) -> None:
    random = np.random.default_rng(values)
    cells = random.integers(0, values, 5, np.uint32)
    places, expected, new = (random.integers(0, top, 500) for top in (5, values, values))
    wanted, one_by_one = cells.copy(), []
    for place, old, value in zip(places, expected, new, strict=True):
        one_by_one.append(wanted[place])
        wanted[place] = value if wanted[place] == old else wanted[place]
    found = update(cells, places, "cas", expected.astype(np.uint32), new.astype(np.uint32), True)
    np.testing.assert_array_equal(found, one_by_one)
    np.testing.assert_array_equal(cells, wanted)


def test_contention_is_known_of_blocks_of_any_size() -> None:
    keys = np.random.default_rng(5).integers(0, 2**12, N).astype(np.int32)
    kernel = Kernel.from_ptx(TRIED_AGAIN, None, N // 256, 256, {"keys": N, "out": 2**12})
    observed = kernel.as_observed({"keys": keys, "out": np.zeros(2**12, np.int32)})
    found = [feature(f"f_mem_contended_global_atomic_block:{size}").eval(observed) for size in (32, 128, 512)]
    assert sorted(found) == found
    assert found[0] < found[2]

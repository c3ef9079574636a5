"""Threads wait for loads, and for operations on them, by what the assembler makes of PTX's loops."""

from __future__ import annotations

import numpy as np
import pytest

from perfmodel import Kernel
from perfmodel.counting.waits import LATENCIES
from perfmodel.ptx.counting.latencies import CONDITION, CONVERSION, OF_DOUBLES, SHUFFLE
from perfmodel.vocabulary.named_features import feature

THREADS, ITERATIONS, UNROLLED = 1024, 10, 4
TEXT = """.version 8.8
.target sm_90
.address_size 64
.shared .align 4 .b8 s[1024];
.visible .entry k(.param .u64 x)
{
  .reg .pred %p<2>; .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .f32 %f<9>; .reg .f64 %d<9>;
  ld.param.u64 %rd1, [x];
  cvta.to.global.u64 %rd2, %rd1;
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mad.lo.s32 %r4, %r2, %r3, %r1;
  mul.wide.s32 %rd3, %r4, 4;
  add.s64 %rd4, %rd2, %rd3;
  shl.b32 %r5, %r1, 2;
  mov.f32 %f1, 0f00000000;
  mov.f32 %f2, 0f3F800000;
  mov.u32 %r6, 0;
$again:
  BODY
  add.s64 %rd4, %rd4, 4;
  add.s32 %r6, %r6, 1;
  setp.lt.s32 %p1, %r6, 10;
  @%p1 bra $again;
  st.global.f32 [%rd4], %f1;
  ret;
}
"""
GLOBAL, SHARED = "ld.global.f32 %f3, [%rd4];", "ld.shared.f32 %f3, [%r5];"
SUM = "add.f32 %f1, %f1, %f3;"
SQUARE = "mul.f32 %f3, %f3, %f3;"
TO_INT, TO_DOUBLE, TO_FLOAT = "cvt.rzi.s32.f32 %r7, %f3;", "cvt.f64.f32 %d1, %f3;", "cvt.rn.f32.f64 %f3, %d1;"
SHUFFLED = "mov.b32 %r7, %f3; shfl.sync.down.b32 %r8, %r7, 1, 31, -1; mov.b32 %f3, %r8;"
OF_DOUBLE = "mul.f64 %d1, %d1, %d1;"
ELSEWHERE = "add.s64 %rd5, %rd2, %rd3; st.global.f32 [%rd5], %f1;"
TO_GLOBAL, TO_SHARED = "st.global.f32 [%rd4], %f1;", "st.shared.f32 [%r5], %f1;"


def value(body: str, name: str) -> float:
    """Returns a feature of a thread, whose loop has ten iterations of these instructions."""
    kernel = Kernel.from_ptx(TEXT.replace("BODY", body), None, THREADS // 64, 64, {"x": THREADS + 11})
    return float(feature(name).eval(kernel)) / THREADS


# Waits for global and for shared memory, of ten iterations of which four have their loads under way together.
WAITS = {
    "a sum": (GLOBAL + SUM, ITERATIONS / UNROLLED, 0),
    "a sum of shared memory": (SHARED + SUM, 0, ITERATIONS / UNROLLED),
    "stores that may be seen": (GLOBAL + SUM + ELSEWHERE, ITERATIONS, 0),
    "stores where was loaded, a number of bytes on each time": (GLOBAL + SUM + TO_GLOBAL, ITERATIONS / UNROLLED, 0),
    "stores to where the next iteration loads": (GLOBAL + SUM + "st.global.f32 [%rd4+4], %f1;", ITERATIONS, 0),
    "stores of what was there before": (GLOBAL + SUM + ELSEWHERE.replace("%f1", "%f2"), ITERATIONS / UNROLLED, 0),
    "stores to shared memory that may be seen": (SHARED + SUM + TO_SHARED, 0, ITERATIONS),
    "stores that come first": (TO_SHARED + SHARED + SUM, 0, ITERATIONS),
    "stores to global memory are not to shared": (SHARED + SUM + TO_GLOBAL, 0, ITERATIONS / UNROLLED),
    "stores to shared memory are not to global": (GLOBAL + SUM + TO_SHARED, ITERATIONS / UNROLLED, 0),
    "stores that loads through the read-only way don't see": (
        GLOBAL.replace("global", "global.nc") + SUM + TO_GLOBAL,
        ITERATIONS / UNROLLED,
        0,
    ),
    "a load before a store and one behind it": (
        SHARED + TO_SHARED + "ld.shared.f32 %f4, [%r5+4];" + SUM,
        0,
        ITERATIONS,
    ),
    "two loads": (SHARED + "ld.shared.f32 %f4, [%r5+4];" + SUM, 0, ITERATIONS / UNROLLED),
    "loads of both": (SHARED + GLOBAL + SUM, ITERATIONS / UNROLLED, ITERATIONS / UNROLLED),
    "a barrier": (GLOBAL + SUM + "bar.sync 0;", ITERATIONS, 0),
}


@pytest.mark.parametrize("case", WAITS)
def test_stores_that_loads_may_see_make_each_iteration_wait(case: str) -> None:
    body, of_global, of_shared = WAITS[case]
    assert value(body, "f_mem_waits_global") == of_global
    assert value(body, "f_mem_waits_local") == of_shared


# Loops that the assembler leaves as they are, and how they go on ten times.
NOT_UNROLLED = {
    "a step that is no number": ("%r6, 1;", "%r6, %r3;", "%r6, 10;", "%r6, 640;"),
    "a counter of another width": ("%r6, 1;", "%r6, 1; and.b32 %r7, %r6, 65535;", "%r6, 10;", "%r7, 10;"),
    "two blocks": (GLOBAL, "setp.gt.s32 %p1, %r6, 20; @%p1 bra $on; $on: " + GLOBAL, "", ""),
}


STEPS = {
    "a warp's width": ("mov.u32 %r8, WARP_SZ;", ITERATIONS / UNROLLED),
    "a number": ("mov.u32 %r8, 32;", ITERATIONS / UNROLLED),
    "a number of either way": ("mov.u32 %r8, 32; @%p1 bra $on; mov.u32 %r8, 32; $on:", ITERATIONS / UNROLLED),
    "a number of one way": ("mov.u32 %r8, %r3; @%p1 bra $on; mov.u32 %r8, 32; $on:", ITERATIONS),
    "none": ("mov.u32 %r8, %r3; shr.u32 %r8, %r8, 1;", ITERATIONS),
}


@pytest.mark.parametrize("case", STEPS)
def test_steps_that_registers_hold_are_numbers_where_no_way_gives_them_another_value(case: str) -> None:
    before, waits = STEPS[case]
    text = TEXT.replace("BODY", GLOBAL + SUM).replace("add.s32 %r6, %r6, 1;", "add.s32 %r6, %r6, %r8;")
    text = text.replace("%r6, 10;", "%r6, 320;").replace("$again:", f"setp.gt.s32 %p1, %r1, 99; {before}\n$again:")
    kernel = Kernel.from_ptx(text, None, THREADS // 64, 64, {"x": THREADS + 11})
    assert feature("f_mem_waits_global").eval(kernel) / THREADS == waits


@pytest.mark.parametrize("case", NOT_UNROLLED)
def test_iterations_wait_one_by_one_where_the_assembler_unrolls_no_loop(case: str) -> None:
    before, after, bound, changed = NOT_UNROLLED[case]
    text = TEXT.replace("BODY", GLOBAL + SUM).replace(before, after).replace(bound, changed)
    kernel = Kernel.from_ptx(text, None, THREADS // 64, 64, {"x": THREADS + 11})
    assert feature("f_mem_waits_global").eval(kernel) == ITERATIONS * THREADS


def test_loads_under_a_condition_share_waits_unless_threads_branch_over_them() -> None:
    copies = "".join(
        f"setp.gt.s32 %p1, %r6, {50 + each}; @%p1 bra $on{each}; .loc 1 7 0; ld.global.f32 %f3, [%rd4+{4 * each}];"
        f" {SUM} WORK $on{each}:"
        for each in range(4)
    )
    found = []
    for work in ("", 20 * "mul.f32 %f2, %f2, %f3;"):
        body = TEXT.replace("BODY", copies.replace("WORK", work))
        kernel = Kernel.from_ptx(body, None, THREADS // 64, 64, {"x": THREADS + 20})
        found.append(float(feature("f_mem_waits_global").eval(kernel)) / THREADS)
    assert found == [ITERATIONS, 4 * ITERATIONS]


LOADED = ".loc 1 7 0; ld.global.f32 %f3, [%rd4+PLACE];"
NEVER = "setp.gt.f32 %p1, %f3, 0f7F800000; @%p1 bra $onCOPY;"


def copies(body: str) -> Kernel:
    """Returns a kernel whose loop holds four copies of these instructions."""
    several = "".join(body.replace("PLACE", str(4 * each)).replace("COPY", str(each)) for each in range(4))
    return Kernel.from_ptx(TEXT.replace("BODY", several), None, THREADS // 64, 64, {"x": THREADS + 20})


@pytest.mark.parametrize(
    ("behind", "waits"), [(SUM, 1), (ELSEWHERE.replace("%f1", "%f2"), 4)], ids=["a sum", "a store"]
)
def test_copies_wait_for_a_store_under_a_condition_on_what_was_loaded(behind: str, waits: int) -> None:
    """The value that is stored was there before, but no store is issued before its condition is known."""
    kernel = copies(f"{LOADED} {NEVER} {behind} $onCOPY:")
    assert feature("f_mem_waits_global").eval(kernel) / THREADS == waits * ITERATIONS


def test_a_load_under_a_condition_on_what_was_loaded_comes_after_it() -> None:
    """A short block is executed under a predicate, which has to be known."""
    found = []
    for behind in ("", "$onCOPY:"):  # in the block, and behind it
        body = f"{LOADED} {NEVER} {SUM} {behind} ld.global.f32 %f4, [%rd4+32]; add.f32 %f1, %f1, %f4;"
        kernel = Kernel.from_ptx(
            TEXT.replace("BODY", (body if behind else body + "$onCOPY:").replace("PLACE", "0").replace("COPY", "0")),
            None,
            THREADS // 64,
            64,
            {"x": THREADS + 20},
        )
        found.append(feature("f_mem_waits_global").eval(kernel) / THREADS)
    assert found == [2 * ITERATIONS, ITERATIONS]


def test_copies_do_operations_one_after_the_other_where_what_they_compute_decides() -> None:
    """Nothing behind a condition is issued before it is known, be it under a predicate or not."""
    products = 3
    found = []
    for condition in (NEVER, NEVER.replace("setp.gt.f32 %p1, %f3, 0f7F800000", "setp.gt.s32 %p1, %r6, 99")):
        kernel = copies(f"{LOADED} {products * SQUARE} {condition} {SUM} $onCOPY:")
        found.append(feature("f_mem_depth_global").eval(kernel) / THREADS / ITERATIONS)
    decided, apart = found
    assert decided == 4 * (products + 1 + CONDITION)
    assert apart == products  # all four side by side


def test_values_that_stay_take_registers_from_loads() -> None:
    found = []
    for held in (0, 12, 20):
        names = [f"%h{each}" for each in range(held)]
        text = TEXT.replace(".reg .f32 %f<9>;", ".reg .f32 %f<9>; .reg .f32 %h<33>;")
        text = text.replace(
            "  mov.u32 %r6, 0;", "".join(f"mov.f32 {each}, %f1;" for each in names) + "  mov.u32 %r6, 0;"
        )
        more = "".join(f"ld.global.f32 %h{32 - each}, [%rd4+{4 * each}];" for each in range(1, 4))
        sums = "".join(f"add.f32 {each}, {each}, %f3;" for each in names)
        text = text.replace("BODY", GLOBAL + SUM + more + sums)
        text = text.replace("  ret;", "".join(f"st.global.f32 [%rd4], {each};" for each in names) + "  ret;")
        kernel = Kernel.from_ptx(text, None, THREADS // 64, 64, {"x": THREADS + 20})
        found.append(float(feature("f_mem_waits_global").eval(kernel)) / THREADS / ITERATIONS)
    assert found[0] == 1 / 4  # 16 loads of four iterations, all under way
    assert found[0] < found[1] < found[2] <= 1


# Operations on floats that come one after the other in an iteration, and the iterations that are done side by side.
DEPTHS = {
    "a sum": (GLOBAL + SUM, 0, UNROLLED),
    "products": (GLOBAL + 3 * SQUARE + SUM, 3, UNROLLED),
    "a multiply-add is one": (GLOBAL + "fma.rn.f32 %f3, %f3, %f3, %f3;" + SUM, 1, UNROLLED),
    "one that goes on is none": (GLOBAL + "fma.rn.f32 %f1, %f3, %f3, %f1;", 0, UNROLLED),
    "the longer of two ways": (GLOBAL + "mul.f32 %f4, %f3, %f3;" + 2 * SQUARE + "add.f32 %f3, %f3, %f4;" + SUM, 3, 4),
    "a power of two": (GLOBAL + "ex2.approx.f32 %f3, %f3;" + SUM, LATENCIES["exp2"], UNROLLED),
    "what another lane has": (GLOBAL + SHUFFLED + SUM, SHUFFLE, UNROLLED),
    "a reciprocal root": (GLOBAL + "rsqrt.approx.f32 %f3, %f3;" + SUM, LATENCIES["rsqrt"], UNROLLED),
    "a quotient": (GLOBAL + "div.full.f32 %f3, %f3, %f2;" + SUM, LATENCIES["div"], UNROLLED),
    "an exact quotient, which is waited for": (GLOBAL + "div.rn.f32 %f3, %f3, %f2;" + SUM, LATENCIES["div"], 1),
    "a quotient by a number": (GLOBAL + "div.full.f32 %f3, %f3, 0f437F0000;" + SUM, 1, UNROLLED),
    # An H200 takes 4.5 cycles for a sum; 19 for each of these, but for a whole number's conversion to a float.
    "a float that is rounded": (GLOBAL + "cvt.rni.f32.f32 %f3, %f3;" + SUM, CONVERSION, UNROLLED),
    "to a whole number and back": (GLOBAL + TO_INT + "cvt.rn.f32.s32 %f3, %r7;" + SUM, CONVERSION + 1, UNROLLED),
    "to a double and back": (GLOBAL + TO_DOUBLE + TO_FLOAT + SUM, 2 * CONVERSION, UNROLLED),
    "a product of doubles": (GLOBAL + TO_DOUBLE + OF_DOUBLE + TO_FLOAT + SUM, 2 * CONVERSION + OF_DOUBLES, UNROLLED),
    "products between stores": (GLOBAL + 2 * SQUARE + SUM + ELSEWHERE, 2, 1),
}


@pytest.mark.parametrize("case", DEPTHS)
def test_operations_on_what_is_loaded_come_one_after_the_other(case: str) -> None:
    body, operations, at_once = DEPTHS[case]
    assert value(body, "f_mem_depth_global") == operations * ITERATIONS / at_once
    assert value(body.replace(GLOBAL, SHARED), "f_mem_depth_global") == 0
    if ELSEWHERE not in body:
        assert value(body.replace(GLOBAL, SHARED), "f_mem_depth_local") == operations * ITERATIONS / at_once


PADDED = """
extern "C" __global__ void padded(const float *a, float *c, int n)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
    float s = 0;
    #pragma unroll
    for (int j = -1; j <= 1; j++)
        #pragma unroll
        for (int i = -1; i <= 1; i++)
            if (x + i >= 0 && x + i < n && y + j >= 0 && y + j < n) {
                float v = a[(y + j) * n + x + i];
                OPERATIONS
                s += v;
            }
    c[y * n + x] = s;
}
"""


@pytest.mark.parametrize(("operations", "waits"), [(0, 3), (24, 9)])
def test_short_conditions_in_no_loop_share_a_wait_and_long_ones_are_branched_over(operations: int, waits: int) -> None:
    """The assembler executes short blocks under a predicate, so that their loads are issued one after the other, and
    branches over each row, in which several are; its machine code waits three times, and nine times with long blocks.
    """
    pytest.importorskip("nvidia.cuda_nvrtc", reason="the compiler of the extra nvidia is not installed")
    n = 256
    source = PADDED.replace("OPERATIONS", operations * "v = v * v + 1.5f; ")
    kernel = Kernel.from_cuda(source, "padded", (n // 64, n), 64, {"a": n * n, "c": n * n}, n=n)
    inside = (3 * n - 2) ** 2 / 9 / n**2  # the part of the places that are within the image
    assert feature("f_mem_waits_global").eval(kernel) == pytest.approx(waits * inside * n * n)


OTHERS = """
extern "C" __global__ void others(const float *a, float *c)
{
    __shared__ float tile[256];
    tile[threadIdx.x] = a[threadIdx.x];
    __syncthreads();
    float s = 0;
    #pragma unroll 4
    for (int k = 0; k < 256; k++)
        if (k != blockIdx.x) {
            float v = tile[k];
            OPERATIONS
            s += v;
        }
    c[blockIdx.x * blockDim.x + threadIdx.x] = s;
}
"""


@pytest.mark.parametrize(
    ("operations", "together"),
    [("v = v * v + 1.5f; " * 4, 4), ("v = v * v + 1.5f; " * 8, 1), ("v = rsqrtf(v) + 1.5f; " * 2, 1)],
)
def test_conditions_around_loads_from_shared_memory_are_branched_over_sooner(operations: str, together: int) -> None:
    """The assembler branches over more than eight instructions, also of those that functions become."""
    pytest.importorskip("nvidia.cuda_nvrtc", reason="the compiler of the extra nvidia is not installed")
    kernel = Kernel.from_cuda(OTHERS.replace("OPERATIONS", operations), "others", 512, 256, {"a": 256, "c": 2**17})
    waits = feature("f_mem_waits_local").eval(kernel) / 2**17
    assert waits == pytest.approx(256 / together, rel=0.05)


EITHER = """
extern "C" __global__ void either(const int *place, const float *a, float *c, int m)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x;
    float s = 0, own = 0;
    #pragma unroll 4
    for (int k = 0; k < m; k++) {
        const int i = place[k * 4096 + x];
        if (i == x) { own = a[k * 4096 + x] OPERATIONS; } else { s += a[i] * a[k * 4096 + x]; }
    }
    c[x] = s / own;
}
"""


@pytest.mark.parametrize(("operations", "together"), [("", 4), ("* a[k] + 1.5f" * 16, 1)])
def test_both_sides_of_a_short_choice_are_predicated(operations: str, together: int) -> None:
    """The machine code loads four places, and then four values; behind a long side it branches, one by one."""
    pytest.importorskip("nvidia.cuda_nvrtc", reason="the compiler of the extra nvidia is not installed")
    n, m = 4096, 64
    source = EITHER.replace("OPERATIONS", operations.replace("k]", "x]"))
    kernel = Kernel.from_cuda(source, "either", n // 128, 128, {"place": n * m, "a": n * m, "c": n}, m=m)
    observed = kernel.as_observed({"place": np.random.default_rng(1).integers(0, n * m, n * m).astype(np.int32)})
    waits = feature("f_mem_waits_global_granularity:longest").eval(observed) / n
    assert waits == pytest.approx(2 * m / together, abs=6) if together > 1 else waits >= 2 * m


NEIGHBOURS = """
extern "C" __global__ void neighbours(const float *a, const int *place, float *c, int n, int wraps)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x;
    float s = 0;
    #pragma unroll
    for (int k = 1; k <= 3; k++) {
        const int i = wraps & k ? (x + k) % n : min(x + k, n - 1);
        s += a[place[i]];
    }
    c[x] = s;
}
"""


def test_loads_behind_a_branch_come_after_those_that_are_used_before_it() -> None:
    """Each neighbour's place, which a branch with a remainder chooses, is waited for, and then its value: six times.

    The machine code waits five times, as it moves one addition behind a branch.
    """
    pytest.importorskip("nvidia.cuda_nvrtc", reason="the compiler of the extra nvidia is not installed")
    n = 4096
    kernel = Kernel.from_cuda(
        NEIGHBOURS, "neighbours", n // 128, 128, {"a": n, "place": n, "c": n}, n=n, wraps=0
    ).as_observed({"place": np.arange(n, dtype=np.int32)})
    assert feature("f_mem_waits_global").eval(kernel) / n == 6


UNEVEN = """
extern "C" __global__ void uneven(const int *ends, const float *a, float *c)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x;
    float s = 0;
    for (int row = 0; row < 4; row++)
        for (int j = 0; j < ends[(x + row) % 4]; j++)
            s = s * a[j] + 1.0f / s;
    c[x] = s;
}
"""


def test_a_sub_group_waits_for_whatever_any_of_its_lanes_loads() -> None:
    """Each row is as long as its longest lane has it, which is another one in each; no lane has all of them."""
    pytest.importorskip("nvidia.cuda_nvrtc", reason="the compiler of the extra nvidia is not installed")
    n, ends = 1024, np.array([16, 0, 0, 0], np.int32)
    kernel = Kernel.from_cuda(UNEVEN, "uneven", n // 64, 64, {"ends": 4, "a": 64, "c": n}).as_observed({"ends": ends})
    name = "f_mem_access_global_load_var:a_granularity"
    assert feature(f"{name}:workitem").eval(kernel) == 16 * n
    assert feature(f"{name}:subgroup").eval(kernel) == 4 * 16 * n / 32
    assert feature(f"{name}:longest").eval(kernel) == 4 * 16 * n
    assert feature(f"{name}:workgroup").eval(kernel) == 4 * 16 * n / 64


APART = """
extern "C" __global__ void apart(const float *a, float *c, int m)
{
    __shared__ float s[256];
    const int i = threadIdx.x;
    s[i] = a[i];
    __syncthreads();
    float r = 0;
    #pragma unroll COPIES
    for (int k = 0; k < m; k++)
        if (k != i) {
            float q = s[k];
            q = q * q + 1.5f; q = q * q + 2.5f; q = q * q + 3.5f; q = q * q + 4.5f; q = q * q + 5.5f; q = q * q + 6.5f;
            q = q * q + 7.5f; q = q * q + 8.5f; q = q * q + 9.5f; q = q * q + 1.25f; q = q * q + 2.25f;
            r += q;
        }
    c[i] = r;
}
"""


def test_chains_behind_branches_are_gone_through_one_after_the_other() -> None:
    """Copies of a loop's body that branches lead to are issued in order, each behind the end of the one before."""
    pytest.importorskip("nvidia.cuda_nvrtc", reason="the compiler of the extra nvidia is not installed")
    depths = []
    for copies in (1, 4):
        kernel = Kernel.from_cuda(APART.replace("COPIES", str(copies)), "apart", 1, 256, {"a": 256, "c": 256}, m=256)
        depths.append(feature("f_mem_depth_local_granularity:longest").eval(kernel))
    assert depths[1] == pytest.approx(depths[0], rel=0.3)


EXCHANGED = """
extern "C" __global__ void exchanged(const float *a, float *c, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32;
    const float own = a[i];
    float s = 0;
    #pragma unroll 1
    for (int j = 0; j < n; j += 32) {
        const float x = a[j + lane];
        #pragma unroll
        for (int k = 0; k < COPIES; k++) {
            const float d = __shfl_sync(0xffffffff, x, k) - own, e = __shfl_sync(0xffffffff, x, k + 1) * own;
            s += d * d * e;
        }
    }
    c[i] = s;
}
"""


@pytest.mark.parametrize(("copies", "in_turn"), [(8, 1), (16, 2), (32, 4)])
def test_copies_with_shuffles_take_turns_where_registers_have_no_room_for_all(copies: int, in_turn: int) -> None:
    """A shuffle, a difference and a product are done before the sum; 64 shuffles take the room of 16 words in turn."""
    pytest.importorskip("nvidia.cuda_nvrtc", reason="needs the extra nvidia")
    source = EXCHANGED.replace("COPIES", str(copies))
    kernel = Kernel.from_cuda(source, "exchanged", THREADS // 64, 64, {"a": "n", "c": "n"}, n=THREADS)
    depth = float(feature("f_mem_depth_global").eval(kernel)) / THREADS / (THREADS / 32)
    assert depth == in_turn * (SHUFFLE + 2)

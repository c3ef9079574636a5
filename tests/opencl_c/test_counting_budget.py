"""Counting ends within its budget of work, whatever a kernel's indices and conditions are."""

from __future__ import annotations

import itertools
import pickle
import time
import warnings

import islpy as isl
import loopy as lp
import pytest

import perfmodel as pm
from perfmodel.basics.errors import KernelError, OutOfBudgetError
from perfmodel.counting.budget import MOST_WORK, TooHardError, done_once, limited, within_budget
from perfmodel.counting.counts import CountingWarning, KernelCounts
from perfmodel.counting.points import Points
from perfmodel.report.count_table import count_tables
from perfmodel.report.count_text import as_text
from tests.counting_kernels import STEPS

SORT = """#define EXCHANGE(at) { \\
    int low = (at) / stride * stride * 2 + (at) % stride, up = ((at) / (size / 2) & 1) == 0; \\
    float a = keys[low], b = keys[low + stride]; \\
    if (up) { keys[low] = fmin(a, b); keys[low + stride] = fmax(a, b); } \\
    else { keys[low + stride] = fmin(a, b); keys[low] = fmax(a, b); } }
__kernel void sorts(__global float *out, __local float *keys) {
    int i = get_local_id(0);
    keys[i] = out[get_global_id(0)];
    for (int size = 2; size <= 8192; size <<= 1)
        for (int stride = size / 2; stride > 0; stride >>= 1) {
            barrier(CLK_LOCAL_MEM_FENCE);
            EXCHANGE(i) EXCHANGE(i + 256) EXCHANGE(i + 512) EXCHANGE(i + 768)
        }
    barrier(CLK_LOCAL_MEM_FENCE);
    out[get_global_id(0)] = keys[i];
}"""

RING = """
__kernel void ring(__global const float *table, __global float *out, const int w) {
    int x = get_global_id(0), y = get_global_id(1), at = (w * y + x) * 20 % 95273;
    float sum = 0;
    for (int i = 0; i < 4; i++) {
        int here = at++;
        if (at >= 95273) at = 0;
        sum += table[here];
    }
    out[w * y + x] = sum;
}"""

MOST_SECONDS = 20.0
"""A generous limit on the processor's time; the budget itself is of operations, about two seconds of them."""

FFT_STAGE = """
__kernel void stage(__global const float2 *in, __global float2 *out, const int p, const int n) {
    int i = get_global_id(0), half_n = n / 2, k = i & (p - 1), j = ((i - k) << 1) + k;
    if (i >= half_n) return;
    float angle = -3.14159265f * k / p, c = cos(angle), s = sin(angle);
    float2 u = in[i], v = in[i + half_n], w = (float2)(v.x * c - v.y * s, v.x * s + v.y * c);
    out[j] = u + w;
    out[j + p] = u - w;
}"""

PATCHES = """
__kernel void patches(__global const float *image, __global float *columns, int channels, int height, int width,
                      int k) {
    int at = get_global_id(0);
    if (at >= channels * k * k * height * width) return;
    int x = at % width, y = at / width % height, area = width * height;
    int yy = y + at / (area * k) % k - k / 2, xx = x + at / area % k - k / 2, c = at / (area * k * k);
    bool inside = yy >= 0 && xx >= 0 && yy < height && xx < width;
    columns[at] = inside ? 2.0f * image[(c * height + yy) * width + xx] : 0.0f;
}"""

PADDED = """
__kernel void padded(int rows, int columns, int pitch, __global const float *from, int to_rows, int to_columns,
                     int to_pitch, int start, __global float *to, int upper, int lower) {
    for (int p = 0; p < 2; ++p) {
        int column = (get_group_id(0) * 2 + p) * get_local_size(0) + get_local_id(0);
        for (int q = 0; q < 4; ++q) {
            int row = (get_group_id(1) * 4 + q) * get_local_size(1) + get_local_id(1);
            bool is_there = true;
            if (upper == 1) is_there = row >= column;
            else if (lower == 1) is_there = row <= column;
            if (is_there && row < to_rows && column < to_columns) {
                float value = 0;
                if (row < rows && column < columns) value = from[row * pitch + column];
                to[row * to_pitch + column + start] = 2.0f * value;
            }
        }
    }
}"""

WINDOWS = """
__kernel void windows(__global const float *in, __global float *out, int w, int h, int radius) {
    int x = get_global_id(0), y = get_global_id(1);
    if (x >= w || y >= h) return;
    float sum = 0;
    for (int j = max(y - radius, 0); j <= min(y + radius, h - 1); j++)
        for (int i = max(x - radius, 0); i <= min(x + radius, w - 1); i++)
            sum += in[j * w + i];
    out[y * w + x] = sum;
}"""


def fft_stage(n: int, p: int) -> pm.Kernel:
    return pm.Kernel.from_opencl(FFT_STAGE, "stage", "n // 2", 256, {"in": "n", "out": "n"}, n=n, p=p)


def patches(channels: int, size: int, k: int) -> pm.Kernel:
    total = "channels * k * k * height * width"
    return pm.Kernel.from_opencl(
        PATCHES,
        "patches",
        f"({total} + 255) // 256 * 256",
        256,
        {"image": "channels * height * width", "columns": total},
        channels=channels,
        height=size,
        width=size,
        k=k,
    )


def padded(size: int) -> pm.Kernel:
    shape = ("(to_columns + 31) // 32 * 16", "(to_rows + 63) // 64 * 16")
    extents = {"from": "pitch * rows", "to": "to_pitch * to_rows + start"}
    return pm.Kernel.from_opencl(PADDED, "padded", shape, (16, 16), extents).at(
        **dict.fromkeys(("rows", "columns", "pitch"), size - 24),
        **dict.fromkeys(("to_rows", "to_columns", "to_pitch"), size),
        **dict.fromkeys(("start", "upper", "lower"), 0),
    )


def windows(size: int, radius: int) -> pm.Kernel:
    extents = {"in": "w * h", "out": "w * h"}
    shape = ("(w + 15) // 16 * 16", "(h + 7) // 8 * 8")
    return pm.Kernel.from_opencl(WINDOWS, "windows", shape, (16, 8), extents, w=size, h=size, radius=radius)


def counted(kernel: pm.Kernel, stored: int) -> KernelCounts:
    """Returns the counts of a hard kernel, after a check that they take seconds only, and of what it stores."""
    started = time.process_time()
    counts = kernel.counts_for(32)
    assert time.process_time() - started < MOST_SECONDS
    found = [
        a.executions.workitem(kernel.sizes) for a in counts.accesses if (a.space, a.direction) == ("global", "store")
    ]
    # Vectors of two are one access; what is sampled is near.
    assert sum(map(float, found)) == pytest.approx(stored, rel=0.05 if counts.sampled else 0)
    return counts


def test_a_hard_kernel_is_counted_within_seconds() -> None:
    counted(fft_stage(2**27, 65536), 2**27)


def test_what_is_too_hard_for_all_sizes_is_counted_at_its_own() -> None:
    kernel = padded(1024).with_budget(0.1)  # the usual budget ends so, too, after seconds
    counts = counted(kernel, 1024**2)
    assert [o.executions.workitem(kernel.sizes) for o in counts.operations if o.kind == "mul"] == [1024**2]
    with pytest.raises(OutOfBudgetError, match=r"takes too long; count it at sizes that are numbers"):
        kernel.program.counts_for(32)


def test_what_is_sampled_says_so_and_is_near_what_all_groups_do() -> None:
    kernel = patches(3, 27, 3)
    with pytest.warns(CountingWarning, match="takes too long to count, and a sample of work-groups"):
        counts = counted(kernel, 3 * 9 * 27**2)
    assert counts.sampled
    assert "from samples" in repr(counts)
    assert "from samples" in as_text(count_tables([kernel])[0])
    run = pm.emulate(kernel, groups="all")
    loads = run.accesses.set_index("text")["count"].filter(like="image").sum() * run.work_groups
    found = [a.executions.workitem(kernel.sizes) for a in counts.accesses if a.variable == "image"]
    assert sum(map(float, found)) == pytest.approx(loads, rel=0.1)


def test_a_budget_stops_what_takes_more() -> None:
    import islpy as isl

    def work() -> object:
        return isl.Set("[n] -> { [i, j] : 0 <= i < n and 0 <= j <= i and exists (k : i + 3j = 7k + 2) }").complement()

    with pytest.raises(TooHardError):
        limited(work, 100)
    assert limited(work, 10_000_000) is not None
    with pytest.raises(OutOfBudgetError, match="counting kernel 'k' takes too long"), within_budget("k", 0.0001):
        work()
    with within_budget("k", 4):  # a part that is too hard leaves the rest its budget
        with pytest.raises(TooHardError):
            limited(work, 100)
        work()
    work()


def test_what_is_done_once_for_several_counts_is_charged_to_each() -> None:
    calls: list[int] = []

    def work() -> object:
        calls.append(1)
        sets = [isl.Set(f"[n] -> {{ [i] : 0 <= i < n and exists (k : i = {step}k) }}") for step in range(2, 40)]
        return [each.complement() for each in sets]

    known: dict[str, tuple[object, int]] = {}
    with within_budget("k"):
        first = done_once(work, known, "complement")
        assert done_once(work, known, "complement") is first
    assert len(calls) == 1
    (_, operations) = known["complement"]
    assert operations > 1000
    for times in (1, 2):  # a count that has done it before may do as much beside as one that does it itself
        part = 1.5 * operations / MOST_WORK
        with within_budget("k", part):
            assert done_once(work, known, "complement") is first
            if times == 1:
                isl.Set("{ [i] : 0 <= i < 9 }").complement()
                continue
            with pytest.raises(TooHardError):
                done_once(work, known, "complement")
            with pytest.raises(TooHardError):
                limited(lambda: isl.Set("{ [i] : 0 <= i < 9 }").complement(), MOST_WORK)
    assert len(calls) == 1
    with pytest.raises(OutOfBudgetError), within_budget("k", 0.5 * operations / MOST_WORK):
        work()


def test_a_kernel_is_counted_within_the_budget_that_it_is_given() -> None:
    kernel = windows(500, 4)
    exact = counted(kernel, 500**2)
    with pytest.warns(CountingWarning, match="a sample of work-groups"):
        sampled = kernel.with_budget(0.01).counts_for(32)
    assert (exact.sampled, sampled.sampled) == (False, True)
    given = pm.Kernel.from_opencl(
        WINDOWS,
        "windows",
        ("(w + 15) // 16 * 16", "(h + 7) // 8 * 8"),
        (16, 8),
        {"in": "w*h", "out": "w*h"},
        budget=0.001,
    )
    with pytest.warns(CountingWarning, match="a sample of work-groups"):  # its other forms have the same budget
        assert (
            pickle.loads(pickle.dumps(given.as_compiled().with_transfers())).at(**kernel.sizes).counts_for(32).sampled
        )


@pytest.mark.parametrize("budget", [0, -1, float("nan"), float("inf"), True, "long"])
def test_a_budget_that_leaves_nothing_is_refused(budget: object) -> None:
    with pytest.raises(KernelError, match=r"leaves nothing for counting; give a number above 0"):
        windows(500, 4).with_budget(budget)  # type: ignore[arg-type]


def test_whatever_step_takes_the_last_operation_is_over_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where islpy converts one type into another, and says that there is no such type."""
    monkeypatch.setenv("PERFMODEL_NO_CACHE", "1")
    source = """__kernel void f(__global float *c, __global const float *a, const int n, const int m) {
        const int x = get_global_id(0), y = get_global_id(1);
        for (int i = 0; i < n; i += 3)
            for (int j = i; j < m; ++j)
                if ((i + j + x) % 5 < y % 7) c[(i * m + j) % 64 + x] += a[i * 3 + j + y];
    }"""
    kernel = pm.Kernel.from_opencl(source, "f", ("n", "m"), (16, 8), {"c": "n*m", "a": "n*m"})
    for budget in range(40, 60):
        with pytest.raises(OutOfBudgetError):
            kernel.with_budget(budget / 5000).program.counts_for(32)


def test_a_loopy_program_beyond_its_budget_is_counted_at_its_sizes_or_sampled_once() -> None:
    program = lp.make_kernel(
        "{ [i, k]: 0 <= i, k < n }",
        "out[i] = sum(k, a[(i*5 + k*3) // 7 % 11 + k])",
        [
            lp.GlobalArg("out", "float32", shape="n"),
            lp.GlobalArg("a", "float32", shape="2*n"),
            lp.ValueArg("n", "int32"),
        ],
        assumptions="n >= 64 and n mod 64 = 0",
        lang_version=(2018, 2),
    )
    kernel = pm.Kernel(lp.split_iname(program, "i", 64, outer_tag="g.0", inner_tag="l.0"), n=1024)
    adds = pm.feature("f_op_float32_add")
    with pytest.raises(OutOfBudgetError):
        kernel.with_budget(0.01).program.counts_for(32)
    assert adds.eval(kernel.with_budget(0.01)) == adds.eval(kernel) == 1024**2
    least = kernel.with_budget(0.001)
    with pytest.warns(CountingWarning, match="a sample of work-groups"):
        counts = least.counts_for(32)
    assert counts.sampled
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert least.counts_for(32) == counts


def test_remainders_by_large_numbers_take_no_minutes() -> None:
    n = 12_800
    kernel = pm.Kernel.from_opencl(STEPS, "steps", "n", 64, {"a": "n"}, n=n)
    started = time.process_time()
    counts = kernel.counts_for(32)
    assert time.process_time() - started < MOST_SECONDS
    (madds,) = [each.executions.workitem({"n": n}) for each in counts.operations if each.kind == "madd"]
    assert madds == sum(i % 1000 + i // 64 % 7 * 50 for i in range(n))


def test_a_sample_of_loops_that_go_one_by_one_is_counted_where_they_are_too_hard() -> None:
    extents = {"out": 1 << 18, "keys": 4 * 2 * 8192}
    made = pm.Kernel.from_opencl(SORT, "sorts", 1 << 18, 256, extents)
    with pytest.warns(CountingWarning, match="takes too long to count"):
        counts = made.counts_for(32)
    assert counts.sampled
    steps = sum(range(1, 14))
    assert counts.barriers.workitem({}) == (1 << 18) * (steps + 1)


def test_what_is_too_hard_at_sizes_that_are_numbers_is_counted_for_all_sizes() -> None:
    extents: dict[str, int | str] = {"table": 95273, "out": "w * 512"}
    made = pm.Kernel.from_opencl(RING, "ring", ("w", 512), (16, 16), extents, w=512)
    with pytest.raises(OutOfBudgetError):
        made.counts_at(made.sizes, 32)
    counts = made.counts_for(32)
    assert not counts.sampled
    loads = [each.executions.workitem(made.sizes) for each in counts.accesses if each.variable == "table"]
    assert sum(loads) == 4 * 512 * 512


def test_barvinok_gets_no_steps_that_wrap_around_in_a_large_window_in_many_dimensions() -> None:
    within = "0 <= a < 32 and 0 <= b < 32 and 0 <= c < 5 and 0 <= d < 8"
    here = "16 a + 8832 b - 38109 c + 1104 d"
    points = isl.Set(f"{{ [a, b, c, d] : {within} and ({here}) mod 95273 < 16 }}")
    nothing = isl.Set("{ : }")
    with pytest.raises(TooHardError):
        Points([], nothing).cardinality(points)
    even = isl.Set(f"{{ [a, b, c, d] : {within} and ({here}) mod 16 < 8 }}")
    count = Points([], nothing).finished(Points([], nothing).cardinality(even))
    there = itertools.product(range(32), range(32), range(5), range(8))
    assert count({}) == sum((16 * a + 8832 * b - 38109 * c + 1104 * d) % 16 < 8 for a, b, c, d in there)


def test_barvinok_ends_where_its_range_of_directions_overflows() -> None:
    row = 65536
    source = f"""__kernel void k(__global const float *a, __global float *c, int n) {{
        const int x = get_global_id(0), y = get_global_id(1);
        if (x >= n || y >= n) return;
        float s = 0;
        for (int i = 0; i < n; i++) s += a[y * {row} + i] * a[i * {row} + x];
        c[y * {row} + x] = s;
    }}"""
    arrays = {"a": row * 1024, "c": row * 1024}
    kernel = pm.Kernel.from_opencl(source, "k", [1024, 1024], [16, 16], arrays, n=1024)
    start = time.perf_counter()
    counts = kernel.counts_for(32)
    assert time.perf_counter() - start < 10
    elements = {(each.variable, each.direction): each.elements for each in counts.footprints}
    assert elements["a", "load"] is not None
    assert [elements["a", "load"]({"n": n}) for n in (1, 100, 1024)] == [1, 100 * 100, 1024 * 1024]

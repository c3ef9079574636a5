"""Waits follow from what compilers do with a loop: the machine code of such loops says how many loads they issue first.

The expected numbers were counted in machine code for compute capability 9.0 (of NVIDIA's OpenCL driver, release 580,
and of NVRTC and ptxas 13.0): loads between one wait and the next, in the main loop.
"""

from __future__ import annotations

import pytest

import perfmodel as pm
from perfmodel.vocabulary.named_features import feature

ITEMS, ITERATIONS = 1024, 64
ARRAYS = {"a": "n * m + m", "b": "n * m + m", "c": "n * m", "places": "n * m"}
FRAME = """__kernel void k(__global const float *restrict a, __global const float *restrict b,
                            __global const int *restrict places, __global float *{0} c, const int m, const int n)
{{
    const int i = get_global_id(0);
    float s = 0, t = n;
    {1}
    c[i] = s * t;
}}"""
LOOP = "for (int j = 0; j < m; j++) "

# What stands in the loop, and how many waits m iterations have.
BODIES = {
    "a column": (LOOP + "s += a[j * n + i];", ITERATIONS / 16),
    "a column, and stores to an array that nothing else leads to": (
        LOOP + "{ s += a[j * n + i]; c[j * n + i] = s; }",
        ITERATIONS / 16,
    ),
    "a row": (LOOP + "s += a[i * m + j];", ITERATIONS / 16),
    "a row that a work-group shares": (
        "for (int j = get_local_id(0); j < m * 64; j += 64) s += a[get_group_id(0) * m * 64 + j];",
        ITERATIONS / 16,
    ),
    "a row up to its end": ("for (int j = 0; j <= m - 1; j++) s += a[i * m + j];", ITERATIONS / 16),
    "a row whose place the loop itself asks for": (LOOP + "s += a[get_global_id(0) * m + j];", ITERATIONS / 4),
    "a column whose place the loop itself asks for": (LOOP + "s += a[j * n + get_global_id(0)];", ITERATIONS / 16),
    "places that lie apart, from one of a work-item's own": (LOOP + "s += a[i + 16 * j];", ITERATIONS / 4),
    "a condition on the counter": (LOOP + "if (i + j < n) s += a[j * n + i];", ITERATIONS / 4),
    "the same row for all, up to its end": ("for (int j = 0; j <= m - 1; j++) s += a[j];", ITERATIONS / 16),
    "a column up to its end": ("for (int j = 0; j <= m - 1; j++) s += a[j * n + i];", ITERATIONS / 16),
    "ends of work-items": ("for (int j = i; j < m * 64 + i; j += 64) s += a[j];", ITERATIONS / 16),
    "ends of work-items, which belong to rows": (
        "for (int j = i; j <= i + m * 64 - 1; j += 64) s += a[j];",
        ITERATIONS / 4,
    ),
    "remainders of a counter": (LOOP + "s += a[i + j % 8];", ITERATIONS / 4),
    "an unsigned counter": ("for (uint j = 0; j < m; j++) s += a[j * n + i];", ITERATIONS / 4),
    "two columns": (LOOP + "s += a[j * n + i] * b[j * n + i];", ITERATIONS / 8),
    "places that are loaded first": (LOOP + "s += a[places[j * n + i]];", 2 * ITERATIONS / 8),
    "a condition on what is loaded": (LOOP + "if (a[j * n + i] > 0) s += b[j * n + i];", 2 * ITERATIONS / 8),
    "a short block under a condition": (LOOP + "if (i + j < n) { s += b[j * n + i] * t; }", ITERATIONS / 4),
    "a long block under a condition": (
        LOOP + "if (i + j < n) { float x = b[j * n + i];" + 8 * "x = x * x + t;" + 8 * "x = fabs(x) - t;" + "s += x; }",
        ITERATIONS,
    ),
    "a condition on what is loaded, on which a long block is": (
        LOOP + "if (a[j * n + i] > 0) { float x = b[j * n + i];" + 20 * "x = x * x + t;" + "s += x; }",
        2 * ITERATIONS,
    ),
    "a long block behind a condition on which the iteration ends": (
        LOOP + "{ if (a[j * n + i] < 0) continue; float x = b[j * n + i];" + 20 * "x = x * x + t;" + "s += x; }",
        2 * ITERATIONS,
    ),
    "eight operations": (LOOP + "{ float x = a[j * n + i];" + 8 * "x = x * x + 1.5f;" + "s += x; }", ITERATIONS / 16),
    "sixteen operations": (LOOP + "{ float x = a[j * n + i];" + 16 * "x = x * x + 1.5f;" + "s += x; }", ITERATIONS / 4),
    "forty operations": (LOOP + "{ float x = a[j * n + i];" + 40 * "x = x * x + 1.5f;" + "s += x; }", ITERATIONS / 2),
    "ninety operations": (LOOP + "{ float x = a[j * n + i];" + 90 * "x = x * x + 1.5f;" + "s += x; }", ITERATIONS),
    "three columns": (LOOP + "s += a[j * n + i] + a[j * n + i + 1] + a[j * n + i + 2];", 3 * ITERATIONS / 15),
    "a known number of iterations": (
        "for (int j = 0; j < 60; j++) { float x = a[j * n + i];" + 16 * "x = x * x + 1.5f;" + "s += x; }",
        60 / 6,
    ),
    "a chain of places": ("int p = i;" + LOOP + "p = places[p]; s = p;", ITERATIONS),
    "steps that are no number": ("for (int j = i; j < m * n; j += get_global_size(0)) s += a[j];", ITERATIONS),
    "steps that are one int": (
        "const int all = get_global_size(0); for (int j = i; j < m * n; j += all) s += a[j];",
        ITERATIONS / 4,
    ),
    "an early end": (LOOP + "{ s += a[j * n + i]; if (j * n > 100000000) break; }", ITERATIONS),
    "sines, which are called": (LOOP + "s += sin(a[j * n + i]);", ITERATIONS),
    "native sines": (LOOP + "s += native_sin(a[j * n + i]);", ITERATIONS / 16),
    "quotients, which are not": (LOOP + "s += a[j * n + i] / t;", ITERATIONS / 4),
    "64 bits, whose quotients are called": (LOOP + "s += (float)((double)a[j * n + i] / (t + 1.0 * m));", ITERATIONS),
    "a loop of 8": ("for (int j = 0; j < 8; j++) s += a[j * n + i];", 1),
    "no loop": ("s = a[i];", 1),
}


def waits(
    body: str, restrict: str = "restrict", options: tuple[str, ...] = (), name: str = "f_mem_waits_global"
) -> float:
    source = FRAME.format(restrict, body)
    kernel = pm.Kernel.from_opencl(source, "k", "n", 64, ARRAYS, options, n=ITEMS, m=ITERATIONS, assumptions="m >= 1")
    return feature(name).eval(kernel.as_compiled()) / ITEMS


NEAR = 0.2
"""The room in registers is estimated; compilers write out twice as many iterations, or four times."""


@pytest.mark.parametrize("case", BODIES)
def test_iterations_have_their_loads_under_way_together(case: str) -> None:
    body, expected = BODIES[case]
    assert waits(body) == pytest.approx(expected, rel=NEAR)


@pytest.mark.parametrize(("iterations", "expected"), [(4, 1), (16, 1), (32, 2), (128, 8)])
def test_each_time_that_a_loop_is_begun_is_waited_for(iterations: int, expected: int) -> None:
    sums = f"for (int j = get_local_id(0); j < {64 * iterations}; j += 64) s += a[get_group_id(0) * m + j];"
    unknown = sums.replace(str(64 * iterations), f"{iterations} * m")  # m is 64
    for body in (unknown, f"for (int e = 0; e < n; e += 8) {{ {unknown} t += s; }}"):
        times = 1 if body == unknown else ITEMS / 8
        assert waits(body) == pytest.approx(times * expected, rel=NEAR)
        assert waits(body, name="f_mem_waits_global_granularity:longest") == pytest.approx(waits(body))


COLUMN = """__kernel void k(__global const {0} *restrict a, __global {0} *restrict c, const int m, const int n)
{{
    const int i = get_global_id(0);
    {0} s = 0;
    {1}
    for (int j = 0; j < m; j++) {{ {0} x = a[j * n + i]; s += x; {2} }}
    c[i] = s; {3}
}}"""


def waits_of_column(type_: str, held: int = 0, attribute: str = "") -> float:
    """Returns the waits of an iteration that holds so many values beside its sum."""
    kept = [f"u{each}" for each in range(held)]
    before = "".join(f"{type_} {each} = c[i + n];" for each in kept)
    source = COLUMN.format(
        type_,
        before,
        "".join(f"{each} += x;" for each in kept),
        "".join(f"c[i + {place} * n] = {each};" for place, each in enumerate(kept, 1)),
    )
    arrays = {"a": "n * m", "c": "n * 40"}
    source = source.replace("__kernel", f"__kernel {attribute}")
    kernel = pm.Kernel.from_opencl(source, "k", "n", 64, arrays, n=ITEMS, m=ITERATIONS, assumptions="m >= 1")
    outside = 1 if held else 0
    return (feature("f_mem_waits_global").eval(kernel.as_compiled()) / ITEMS - outside) / ITERATIONS


@pytest.mark.parametrize(("type_", "together"), [("float", 16), ("double", 8), ("float2", 8), ("float4", 4)])
def test_registers_limit_what_is_under_way(type_: str, together: int) -> None:
    assert waits_of_column(type_) == pytest.approx(1 / together, rel=0.35)


def test_values_that_stay_take_registers_from_loads() -> None:
    """Machine code for CUDA has 16, 8 and 4 loads under way beside none, 6 and 12 such values."""
    for held, together in ((0, 16), (6, 8), (12, 4)):
        assert together / 2 <= 1 / waits_of_column("float", held) <= together * 2
    assert waits_of_column("float") < waits_of_column("float", 6) < waits_of_column("float", 12)


def test_compilers_that_know_how_large_work_groups_are_use_more_registers() -> None:
    """The driver's machine code of tiled products, whose size is given, has up to 40 loads under way."""
    known = "__attribute__((reqd_work_group_size(64, 1, 1)))"
    assert 1 / waits_of_column("float", 6, known) == pytest.approx(16, rel=0.1)
    assert 1 / waits_of_column("float", 6) < 12


def test_loads_do_not_pass_stores_that_they_may_see() -> None:
    body = LOOP + "{ s += a[j * n + i]; c[j * n + i] = s; }"
    assert waits(body) == ITERATIONS / 16
    unknown = FRAME.format("", body).replace("*restrict a", "*a")
    kernel = pm.Kernel.from_opencl(unknown, "k", "n", 64, ARRAYS, n=ITEMS, m=ITERATIONS)
    assert feature("f_mem_waits_global").eval(kernel.as_compiled()) == ITEMS * ITERATIONS
    in_memory = LOOP + "c[i] += a[j * n + i];"
    assert waits(in_memory, restrict="") == ITERATIONS  # each sum is loaded again
    assert waits(in_memory) == ITERATIONS / 16 + 1  # it is kept in a register while the loop runs


def test_loads_of_what_the_kernel_has_stored_pass_no_store() -> None:
    """The driver's machine code for tridiagonal systems has each load of the way back wait for the store before it."""
    frame = FRAME.format("restrict", "{}").replace("const int m,", "__global float *restrict d, const int m,")
    back = LOOP + "{ s += c[j * n + i]; d[j * n + i] = s; }"
    arrays = {**ARRAYS, "d": "n * m"}
    for body, expected in (
        (LOOP + "c[j * n + i] = t;" + back, ITERATIONS),
        (back.replace("c[", "b["), ITERATIONS / 16),
    ):
        kernel = pm.Kernel.from_opencl(frame.replace("{}", body), "k", "n", 64, arrays, n=ITEMS, m=ITERATIONS)
        assert feature("f_mem_waits_global").eval(kernel.as_compiled()) == ITEMS * expected


LOCAL = "__local float own[64], other[64]; const int l = get_local_id(0);"
PRIVATE = "float own[64], other[64];" + LOOP + "{ own[j] = a[j * n + i]; other[j] = 0; }"
PLACE = "(j * 7) % 64"

# Waits for loads from local memory or from private arrays, of m iterations of which four are written out. All local
# memory is one to an assembler; a private array is seen to be another than its neighbour.
WITHIN = {
    "local": (LOCAL + LOOP + f"s += own[l + {PLACE}];", "local", ITERATIONS / 4),
    "local, step by step": (LOCAL + LOOP + "s += own[j];", "local", ITERATIONS / 4),
    "local, and stores to it": (LOCAL + LOOP + f"{{ s += own[l + {PLACE}]; own[l] = s; }}", "local", ITERATIONS),
    "local, and stores beside it": (LOCAL + LOOP + f"{{ s += own[l + {PLACE}]; other[l] = s; }}", "local", ITERATIONS),
    "local, and stores to others": (LOCAL + LOOP + f"{{ s += own[l + {PLACE}]; c[i] = s; }}", "local", ITERATIONS / 4),
    "private": (PRIVATE + LOOP + f"s += own[{PLACE}];", "scratch", ITERATIONS / 4),
    "private, step by step": (PRIVATE + LOOP + "s += own[j];", "scratch", ITERATIONS / 4),
    "private, with global memory": (PRIVATE + LOOP + "s += own[j] * a[j * n + i];", "scratch", ITERATIONS / 16),
    "private, and stores to it": (PRIVATE + LOOP + f"{{ s += own[{PLACE}]; own[j] = s; }}", "scratch", ITERATIONS),
    "private, and stores beside it": (
        PRIVATE + LOOP + f"{{ s += own[{PLACE}]; other[j] = s; }} s = other[i % 64];",
        "scratch",
        ITERATIONS / 4 + 1,
    ),
    "private, and stores to others": (
        PRIVATE + LOOP + f"{{ s += own[{PLACE}]; c[i] = s; }}",
        "scratch",
        ITERATIONS / 4,
    ),
    "private, in registers": ("float own[4]; own[1] = a[i]; own[2] = t; s = own[1] + own[2];", "scratch", 0),
}


@pytest.mark.parametrize("case", WITHIN)
def test_local_and_private_memory_are_waited_for(case: str) -> None:
    body, space, expected = WITHIN[case]
    assert waits(body, name=f"f_mem_waits_{space}") == expected


def test_what_registers_have_no_room_for_passes_stores_to_other_elements() -> None:
    """A compiler that knows every element's place moves loads ahead of stores to others, as many as have room."""
    every = "\n#pragma unroll\nfor (int l = 0; l < 300; l++) "
    found = {}
    for place in ("l", "(l + m) % 300"):  # the second is known to no compiler
        body = f"float own[300]; {every} own[l] = l; {LOOP} {{ {every} own[{place}] += a[j * n + i]; }} s = own[7];"
        found[place] = waits(body, name="f_mem_waits_scratch") / waits(body, name="f_mem_access_scratch_load")
    assert found["l"] < 1 / 8
    assert found["(l + m) % 300"] == pytest.approx(1, abs=0.1)


def test_loads_from_global_memory_pass_stores_to_other_memory() -> None:
    assert waits(LOCAL + LOOP + "{ s += a[j * n + i]; own[l] = s; }") == ITERATIONS / 16
    assert waits(PRIVATE) == ITERATIONS / 16


EIGHT = "for (int l = 0; l < 8; l++) "


def test_iterations_that_are_written_out_wait_for_stores_in_them() -> None:
    assert waits(EIGHT + "s += a[l * n + i]; c[i] = s;") == 1
    assert waits(EIGHT + "c[l * n + i] += a[l * n + i];") == 8
    assert waits(EIGHT + "c[l * n + i] += a[l * n + i] * b[l * n + i];") == 8
    assert waits(LOOP + "{" + EIGHT + "c[j * n + i + l] += a[j * n + i + l]; }") == 8 * ITERATIONS
    # Loads of one iteration have theirs under way together.
    inner = "for (int k = 0; k < 4; k++) s += c[(4 * l + k) * n + i]; c[l * n + i] = s;"
    assert waits(EIGHT + "{" + inner + "}") == 8


PRAGMA = "\n#pragma unroll {}\n"


@pytest.mark.parametrize(
    ("pragma", "body", "expected"),
    [
        ("", EIGHT + "s += a[l * n + i];", 1),
        ("", EIGHT + "c[l * n + i] += a[l * n + i];", 8),  # which loads may see
        ("", LOOP + "s += a[j * n + i];", ITERATIONS / 16),  # as if nobody asked: how many there are is not known
        ("", LOOP + "c[j * n + i] *= 2.0f;", ITERATIONS),
        ("1", EIGHT + "s += a[l * n + i];", 8),
        ("1", LOOP + "s += a[j * n + i];", ITERATIONS),
        ("", EIGHT + "{ t = t * s + 1.0f;" + 60 * "t = t * s + a[l * n + i];" + "}", 1),  # however long it becomes
    ],
)
def test_pragmas_ask_for_loops_to_be_written_out(pragma: str, body: str, expected: float) -> None:
    written = PRAGMA.format(pragma) + body
    assert waits(written) == expected
    # What waits for its own is a round of its own.
    rounds = ITERATIONS if LOOP in body else 1 if pragma == "" and expected == 1 else 8
    assert waits(written, name="f_mem_rounds_global") == rounds


def test_loads_around_loops_that_are_written_out_are_under_way_with_those_in_them() -> None:
    inner = "for (int l = 0; l < 2; l++) s += a[j * n + k + l + i] * x * y;"
    body = LOOP + "{ float x = b[j * n + i]; for (int k = 0; k < 2; k++) { float y = b[j * n + k]; " + inner + "} }"
    assert waits(body) == pytest.approx(ITERATIONS / (16 // (1 + 2 + 4)), rel=NEAR)
    # One operation, of as many iterations side by side.
    assert waits(body, name="f_mem_depth_global") == pytest.approx(ITERATIONS / (16 // (1 + 2 + 4)), rel=NEAR)


def test_options_decide_what_is_called() -> None:
    body = LOOP + "s += sin(a[j * n + i]);"
    assert waits(body, options=("-cl-fast-relaxed-math",)) == ITERATIONS / 16
    body = LOOP + "s += a[j * n + i] / t;"
    assert waits(body, options=("-cl-fp32-correctly-rounded-divide-sqrt",)) == ITERATIONS


def test_barriers_and_inner_loops_end_a_body() -> None:
    tile = "__local float own[64]; const int l = get_local_id(0);"
    body = (
        tile
        + LOOP
        + "{ own[l] = a[j * n + i]; barrier(CLK_LOCAL_MEM_FENCE); s += own[63 - l]; barrier(CLK_LOCAL_MEM_FENCE); }"
    )
    assert waits(body) == ITERATIONS
    assert waits(body, name="f_mem_waits_local") == ITERATIONS
    inner = LOOP + "{ t += a[j * n + i]; for (int l = 0; l < m; l++) s = s * t + 1; }"
    assert waits(inner) == ITERATIONS


def test_the_longest_work_item_waits_for_all() -> None:
    body = "for (int j = 0; j < m; j++) if (i < 32) s += a[places[j * n + i]];"
    longest = waits(body, name="f_mem_waits_global_granularity:longest")
    assert longest == pytest.approx(2 * ITERATIONS / 8, rel=NEAR)
    assert waits(body) == pytest.approx(longest * 32 / ITEMS)


PAIRS = """__kernel void pairs(__global const float4 *p, __global float4 *out, const int n)
{
    const int i = get_global_id(0);
    const float4 own = p[i];
    float x = 0, y = 0, z = 0;
    for (int j = 0; j < n; j++) {
        ELEMENT
        const float dx = X - own.x, dy = Y - own.y, dz = Z - own.z;
        const float s = W * rsqrt(dx * dx + dy * dy + dz * dz + 0.01f);
        x += dx * s; y += dy * s; z += dz * s;
    }
    out[i] = (float4)(x, y, z, 0);
}"""


def test_components_of_one_element_wait_as_the_whole_element_does() -> None:
    def waits(element: str, name: str) -> float:
        source = PAIRS.replace("ELEMENT", element)
        for letter in "XYZW":
            source = source.replace(f" {letter} ", f" {name}.{letter.lower()} ")
        kernel = pm.Kernel.from_opencl(source, "pairs", 4096, 256, {"p": 4096 * 4, "out": 4096 * 4}, n=1024)
        return float(pm.feature("f_mem_waits_global_granularity:longest").eval(kernel.as_compiled())) / 4096

    whole = waits("const float4 other = p[j];", "other")
    assert waits("", "p[j]") == whole < 1024 / 2


def test_a_load_in_the_step_of_a_loop_that_is_written_out_is_waited_for_each_time() -> None:
    source = "__kernel void k(__global const int *x, __global int *y) { int i = get_global_id(0), at = i, s = 0;"
    source += " for (int j = 0; j < 4; j++, at += x[at]) { y[s & 63] = at; s += x[at + 1] + y[at]; } y[i] = s; }"
    kernel = pm.Kernel.from_opencl(source, "k", 64, 64, {"x": 4096, "y": 64}).as_compiled()
    assert float(pm.feature("f_mem_waits_global").eval(kernel)) == 64 * 2 * 4  # the next place, and what is there

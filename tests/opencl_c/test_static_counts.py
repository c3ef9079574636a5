"""Static counts of OpenCL C: against emulation, of whole kernels and random ones, and by hand on small sources."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import perfmodel as pm
from perfmodel.basics.errors import CountingError, KernelError
from perfmodel.counting.counts import AccessCount
from perfmodel.kernels.opencl_program import OpenCLProgram
from perfmodel.vocabulary.named_features import evaluate
from tests.covering import EXAMPLES, examples
from tests.opencl_c.kernel_files import Launch, launches
from tests.opencl_c.random_kernels import LENGTH, random_kernel
from tests.opencl_c.tally import arguments_of, counted, emulated, everything, kernel_of, only, without_unknown

# --- the test kernels

DECIDED_BY_DATA = frozenset(
    {
        *("bitonic_sort-bitonic_sort", "commas-commas", "do_while-collatz", "early_returns-early_returns"),
        *("falling_through-falling_through", "floyd_warshall-floyd_warshall", "histogram-histogram"),
        *("interpreter-interpreter", "life-life", "mandelbrot-mandelbrot", "private_arrays-medians", "spmv-spmv"),
        *("unrolled-unrolled", "jumps-jumps", "jumps_back-jumps_back", "atomics_2-atomics_2"),
    }
)
"""Launches that need statistics."""
BY_VALUE = frozenset({"by_value-by_value"})
"""Structs as arguments, which no Kernel can be given."""
OTHER_BYTES = {
    # What may be in either of two arrays is in none of the static footprints.
    "pointers-pointers": ("footprint",),
    # A row of a clamped index: the last column counts as the one before the next row's first.
    "convolution-convolution": ("footprint",),
    # An atomic is a load too, but the emulation's footprints have it as a store only.
    "atomics-atomics": ("footprint",),
    # A vector of three moves the fourth along, which the emulation leaves out.
    "triples-triples": ("bytes",),
    "layouts-layouts": ("bytes", "footprint"),
}
COUNTABLE = [launch for launch in launches() if str(launch) not in DECIDED_BY_DATA | BY_VALUE]


def test_most_test_kernels_are_countable() -> None:
    assert len(COUNTABLE) >= 45
    assert {str(launch) for launch in launches()} >= DECIDED_BY_DATA | BY_VALUE | set(OTHER_BYTES)


@pytest.mark.parametrize("launch", COUNTABLE, ids=str)
def test_static_counts_of_a_test_kernel_are_what_all_its_work_items_do(launch: Launch) -> None:
    kernel = kernel_of(launch)
    assert isinstance(kernel.program, OpenCLProgram)
    lowered = kernel.program.lowered
    run = everything(lowered, launch.global_size, launch.local_size, arguments_of(launch))
    seen, ours = without_unknown(emulated(lowered, run), kernel), counted(kernel)
    left_out = OTHER_BYTES.get(str(launch), ())
    kinds = ("operations", "work-items", "sub-groups", "bytes", "barriers", "footprint")
    compared = [kind for kind in kinds if kind not in left_out]
    assert only(ours, *compared) == only(seen, *compared)


@pytest.mark.parametrize("launch", [each for each in launches() if str(each) in DECIDED_BY_DATA], ids=str)
def test_what_data_decide_is_refused_with_the_name_of_its_statistic(launch: Launch) -> None:
    with pytest.raises(CountingError, match=r"statistics=\{'\w+': …\}, or emulate the kernel"):
        kernel_of(launch).program.counts_for()


# --- by hand


def kernel(
    body: str,
    parameters: str = "__global float *a, int n, int m",
    global_size: int | str | Sequence[int | str] = 1,
    local_size: int | Sequence[int] = 1,
    args: Mapping[str, int | str] | None = None,
    before: str = "",
    **options: Any,
) -> pm.Kernel:
    """Returns a kernel in which ``x`` is a float, ``i`` the global and ``l`` the local id along the first axis."""
    source = f"""{before}
__kernel void k({parameters}) {{
  int i = get_global_id(0), l = get_local_id(0);
  float x = 0.0f;
  {body}
  a[0] = x;
}}"""
    return pm.Kernel.from_opencl(source, "k", global_size, local_size, args or {"a": 1000}, **options)


def madds(knl: pm.Kernel, **sizes: Any) -> Any:
    """Returns how often ``x = x * 2.0f + 1.0f`` is done."""
    return evaluate(pm.feature("f_op_float32_madd"), knl, knl.bind(sizes)).tolist()


STEP = "x = x * 2.0f + 1.0f;"
HALVED = f"for (int s = n; s > 0; s /= 2) {{ {STEP} }}"


@pytest.mark.parametrize(
    ("body", "formula"),
    [
        (f"for (int p = 0; p < n; p++) for (int q = 0; q <= p; q++) {{ {STEP} }}", lambda n, m: n * (n + 1) // 2),
        (f"for (int p = 0; p < n; p++) for (int q = p; q < m; q++) {{ {STEP} }}", lambda n, m: _trapezoid(n, m)),
        (f"for (int p = 0; p < n; p++) if (p < m) {{ {STEP} }}", min),
        (f"for (int p = 0; p < min(n, m); p++) {{ {STEP} }}", min),
        (f"for (int p = 0; p < max(n, m); p++) {{ {STEP} }}", max),
        (f"for (int p = 0; p < n; p++) {{ if (p >= m) break; {STEP} }}", min),
        (f"for (int p = 0; p < n; p++) {{ if (p < m) continue; {STEP} }}", lambda n, m: max(n - m, 0)),
        (f"for (int p = 0; p < n; p++) {{ {STEP} if (p == m) break; }}", lambda n, m: min(n, m + 1)),
        (f"if (n > m) return; {STEP}", lambda n, m: int(n <= m)),
        (f"for (int p = 0; p < n; p++) {{ {STEP} if (p == m) return; }} {STEP}", lambda n, m: min(n, m) + 1),
        (f"int p = 0; do {{ {STEP} p++; }} while (p < n);", lambda n, m: max(n, 1)),
        (f"int p = 0; do {{ {STEP} }} while (++p < n);", lambda n, m: max(n, 1)),
        (f"int p = n; do {{ {STEP} }} while (p-- > 1);", lambda n, m: max(n, 1)),
        (f"for (int p = 0; p != n; ++p) {{ {STEP} }}", lambda n, m: n),
        (f"for (int p = m; p < m + n; p += 3) {{ {STEP} }}", lambda n, m: -(-n // 3)),
        (f"for (int p = n - 1; p >= 0; p -= 2) {{ {STEP} }}", lambda n, m: -(-n // 2)),
        (f"for (int p = n; p > 0; p--) {{ {STEP} }}", lambda n, m: n),
        (f"int p = 0; while (1) {{ if (p >= n) break; {STEP} p += 2; }}", lambda n, m: -(-n // 2)),
        (
            f"for (int p = 0; p < 4; p++) switch (p) {{ case 1: {STEP} case 2: {STEP} break; default: ; }}",
            lambda n, m: 3,
        ),
        (
            f"for (int p = 0; p < n; p++) {{ int q = twice(p); if (q < m) {{ {STEP} }} }}",
            lambda n, m: min(n, -(-m // 2)),
        ),
        (f"for (int p = 0; p < n && p < m; p++) {{ {STEP} }}", min),
        (f"for (int p = n > m ? m : 0; p < n; p++) {{ {STEP} }}", lambda n, m: n - m if n > m else n),
        (f"for (int s = 64; s > 0; s >>= 1) {{ {STEP} }}", lambda n, m: 7),
        ("for (int p = 0; p < n; p++) x = step_of(x);", lambda n, m: n),
        (f"for (int p = early(n); p < 9; p++) {{ {STEP} }}", lambda n, m: 9 - (n + 1 if n > 3 else n - 1)),
    ],
)
def test_operations_are_those_of_the_formula(body: str, formula: Any) -> None:
    helpers = """
int twice(int p) { return 2 * p; }
float step_of(float y) { return y * 2.0f + 1.0f; }
int early(int n) { if (n > 3) return n + 1; return n - 1; }"""
    knl = kernel(body, before=helpers)
    sizes = [(n, m) for n in (1, 2, 3, 7, 8) for m in (0, 1, 3, 8)]
    n, m = np.array(sizes).T
    assert madds(knl, n=n, m=m) == [formula(*pair) for pair in sizes]


def _trapezoid(n: int, m: int) -> int:
    return sum(max(m - p, 0) for p in range(n))


def test_a_grid_stride_loop_does_each_element_once() -> None:
    knl = kernel(
        f"for (int p = i; p < n; p += get_global_size(0)) {{ a[p] = 1; {STEP} }}", global_size=64, local_size=16
    )
    assert madds(knl, n=[1, 63, 64, 65, 1000], m=0) == [1, 63, 64, 65, 1000]
    assert pm.feature("f_mem_footprint_global_store").eval(knl.at(n=100, m=0)) == 400


def test_a_guard_leaves_out_the_work_items_beyond_the_end() -> None:
    knl = kernel(f"if (i < n) {{ {STEP} }}", global_size="(n + 15) // 16 * 16", local_size=16)
    assert madds(knl, n=[1, 16, 17, 100], m=0) == [1, 16, 17, 100]
    subgroups = pm.feature("f_op_float32_madd_granularity:subgroup")
    assert subgroups.eval(knl.at(n=17, m=0)) == 2 * 1


def accesses(knl: pm.Kernel, space: str = "global") -> list[AccessCount]:
    """Returns all accesses but the last one, which `kernel` adds."""
    return [a for a in knl.counts.accesses if a.space == space and a.text != "a[0]"]


def strides(knl: pm.Kernel, **sizes: int) -> tuple[dict[Any, Any], ...]:
    """Returns the strides of the first access: along local axes, group axes and loops."""
    access, bound = accesses(knl)[0], knl.bind(sizes)
    found = (access.local_strides, access.group_strides, access.loop_strides)
    return tuple({key: None if v is None else float(v(bound)) for key, v in by.items()} for by in found)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("x = a[i];", ({0: 1}, {0: 8}, {})),
        ("x = a[3 * l + n * get_group_id(0)];", ({0: 3}, {0: 5}, {})),
        ("for (int p = 0; p < m; p++) x = a[p * n + i];", ({0: 1}, {0: 8}, {"p": 5})),
        ("for (int p = m; p > 0; p -= 2) x = a[p];", ({}, {}, {"p": -2})),
        ("__global float *q = a + l; for (int p = 0; p < m; p++, q += n) x = *q;", ({0: 1}, {}, {"loop_5": 5})),
        ("x = a[l / 2];", ({0: None}, {}, {})),
    ],
)
def test_strides(body: str, expected: Any) -> None:
    knl = kernel(body, global_size="8 * (m + 1)", local_size=8)
    assert strides(knl, n=5, m=3) == expected


@pytest.mark.parametrize(
    ("index", "elements"),
    [
        ("row * n + column", 12 * 12),
        ("row * (n + 2) + column", 12 * 12),
        ("(row + 1) * (n + 2) + column + 1", 12 * 12),
        ("column * n + row", 12 * 12),
        ("row * n + n - 1 - column", 12 * 12),
        ("row * n", 12),
        ("row * n + column / 2", 12 * 6),
        ("(row / 3) * n + column", 4 * 12),
    ],
)
def test_footprints_of_two_axes(index: str, elements: int) -> None:
    body = f"int column = get_global_id(0), row = get_global_id(1); x = a[{index}];"
    knl = kernel(body, global_size=("n", "n"), local_size=(4, 4), args={"a": "(n + 2) * (n + 2)"}, n=12, m=0)
    (load,) = accesses(knl)
    assert load.footprint is not None
    assert float(load.footprint(knl.sizes)) == elements


def test_neighbours_share_what_they_touch() -> None:
    body = "int row = get_global_id(1) + 1; i++; x = a[row * (n + 2) + i - 1] + a[row * (n + 2) + i + 1];"
    knl = kernel(body, global_size=("n", "n"), local_size=(4, 4), args={"a": "(n + 2) * (n + 2)"}, n=12, m=0)
    (footprint,) = [f for f in knl.counts.footprints if f.direction == "load"]
    assert footprint.elements is not None
    assert float(footprint.elements(knl.sizes)) == 12 * 14


def test_local_arrays_of_two_axes_and_barriers() -> None:
    body = """__local float tile[4][5]; int y = get_local_id(1);
      for (int p = 0; p < n; p++) { tile[l][y] = p; barrier(CLK_LOCAL_MEM_FENCE); x += tile[y][l]; }"""
    knl = kernel(body, global_size=(8, 4), local_size=(4, 4), n=3, m=0)
    store, load = accesses(knl, "local")
    assert (store.local_strides[0], store.local_strides[1]) != (None, None)
    assert [float(store.local_strides[axis](knl.sizes)) for axis in (0, 1)] == [5, 1]  # type: ignore[misc]
    assert [float(load.local_strides[axis](knl.sizes)) for axis in (0, 1)] == [1, 5]  # type: ignore[misc]
    assert pm.feature("f_sync_barrier_local_granularity:workgroup").eval(knl) == 2 * 3
    assert pm.feature("f_mem_access_local").eval(knl) == 2 * 3 * 32


def test_vectors_are_one_access_of_their_width() -> None:
    (load,) = accesses(kernel("float4 v = vload4(i, a); x = v.x + v.w;", global_size=8, local_size=8, n=1, m=1))
    assert (load.bits, float(load.executions.workitem({}))) == (128, 8)
    assert load.footprint is not None
    assert float(load.footprint({})) == 8


def test_atomics_are_a_direction_of_their_own() -> None:
    knl = kernel("atomic_add(&b[i % 4], 1);", "__global float *a, __global int *b", 32, 8, {"a": 1, "b": 4})
    found = {(a.variable, a.direction): float(a.executions.workitem({})) for a in accesses(knl)}
    assert found == {("b", "atomic"): 32}


def test_fields_of_structs_lie_as_far_apart_as_structs_are_long() -> None:
    before = "typedef struct { float x, y; int n; } part;"
    parameters = "__global float *a, __global const part *b"
    knl = kernel("x = b[i].y * b[i].n;", parameters, 16, 8, {"a": 1, "b": 16}, before=before)
    first, second = accesses(knl)
    assert (first.dtype, second.dtype) == ("float32", "int32")
    assert float(first.local_strides[0]({})) == 3  # type: ignore[misc]


# --- sizes, and what is not affine in them


def test_what_is_not_affine_is_counted_at_the_sizes_of_a_kernel() -> None:
    knl = kernel(STEP, global_size="n * m * 8", local_size=8)
    with pytest.raises(CountingError, match=r"n\*m|n \* m|m\*n"):
        knl.counts  # noqa: B018
    bound = kernel(STEP, global_size="n * m * 8", local_size=8, n=3, m=5)
    assert madds(bound) == 120


@pytest.mark.parametrize(("n", "turns"), [(1, 1), (2, 2), (64, 7), (100, 7)])
def test_loops_that_halve_a_size_are_counted_at_that_size(n: int, turns: int) -> None:
    assert madds(kernel(HALVED, n=n, m=0)) == turns


def test_a_loop_that_halves_a_size_needs_the_size() -> None:
    with pytest.raises(CountingError, match=r"the loop at kernel\.cl:5"):
        kernel(HALVED).counts  # noqa: B018


@pytest.mark.parametrize("type_", ["uint", "size_t"])
def test_negative_numbers_that_become_unsigned_are_steps_back(type_: str) -> None:
    """``(y + (-1)) * n`` of unsigned numbers is the row above, as a guard keeps the first row out."""
    source = f"""
    __kernel void k(__global const float *a, __global float *b, const int n)
    {{
        {type_} x = get_global_id(0), y = get_global_id(1);
        if (x == 0 || y == 0 || x >= n - 1 || y >= n - 1)
            return;
        b[y * n + x] = a[(y + (-1)) * n + x + (-1)] + a[(y - 1) * n + x] + a[(y + 1) * n + x];
    }}"""
    kernel = pm.Kernel.from_opencl(source, "k", ("n", "n"), (16, 16), {"a": "n * n", "b": "n * n"}, n=64)
    (load,) = (each for each in kernel.counts.footprints if (each.variable, each.direction) == ("a", "load"))
    assert load.elements is not None
    inner = range(1, 63)
    touched = {place for y in inner for x in inner for place in ((y - 1, x - 1), (y - 1, x), (y + 1, x))}
    assert float(load.elements(kernel.bind({}))) == len(touched)


# --- statistics

DATA = f"""for (int p = 0; p < a[1]; p++) {{ {STEP} }}
  if (a[2] > 0) {{ {STEP} }}"""


def test_statistics_say_what_data_decide() -> None:
    assert madds(kernel(DATA, statistics={"p": 10, "if_6": 0.25}, n=1, m=1)) == 10.25
    assert madds(kernel(DATA, statistics={"loop_5": 2.5, "if_6": 1}, n=1, m=1)) == 3.5


@pytest.mark.parametrize(
    ("statistics", "message"),
    [
        ({}, "the loop at kernel.cl:5.*'p': …"),
        ({"p": 3}, "the if or case at kernel.cl:6.*'if_6': …"),
        ({"p": 3, "if_6": 1.5}, "probability of 'if_6' is 1.5; give one from 0 to 1"),
        ({"p": 3, "if_6": 0.5, "loop_9": 1}, "no loop or branch 'loop_9'"),
        ({"p": -1, "if_6": 0.5}, "p"),
    ],
)
def test_statistics_that_are_missing_or_wrong(statistics: dict[str, float], message: str) -> None:
    with pytest.raises(KernelError, match=message):
        kernel(DATA, statistics=statistics, n=1, m=1).program.counts_for()


# --- random kernels


class Drawn:
    """Choices that hypothesis makes, and can make smaller."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw

    def one_of(self, options: Sequence[Any]) -> Any:
        return self.draw(st.sampled_from(options))

    def number(self, low: int, high: int) -> int:
        return self.draw(st.integers(low, high))


@st.composite
def kernels(draw: st.DrawFn) -> Any:
    return random_kernel(Drawn(draw))


UNTOUCHED = -12345.0


@settings(
    max_examples=examples(15),
    derandomize=not EXAMPLES,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)
@given(kernels(), st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=2, max_size=2))
def test_static_counts_of_random_kernels_are_what_all_their_work_items_do(
    drawn: Any, sizes: list[tuple[int, int]]
) -> None:
    extents = {"a": LENGTH, "o": LENGTH}
    knl = pm.Kernel.from_opencl(drawn.source, "k", drawn.global_size, drawn.local_size, extents)
    assert isinstance(knl.program, OpenCLProgram)
    lowered = knl.program.lowered
    for n, m in sizes:
        q = float(m % 2)
        bound, shape = knl.at(n=n, m=m, q=q), drawn.shape(n)
        arguments: dict[str, Any] = {
            "a": np.ones(LENGTH, np.float32),
            "o": np.full(LENGTH, UNTOUCHED, np.float32),
            "n": n,
            "m": m,
            "q": np.float32(q),
        }
        run = everything(lowered, shape, drawn.local_size, arguments)
        assert not [finding for finding in run.findings if finding.kind == "out of bounds"]
        ours, seen = counted(bound), without_unknown(emulated(lowered, run), bound)
        kinds = ["operations", "work-items", "sub-groups", "bytes", "barriers"]
        if shape == drawn.local_size:  # what accesses along different axes of groups share is counted twice
            kinds.append("footprint")
        assert only(ours, *kinds) == only(seen, *kinds), (n, m)
        stored = [f.elements for f in bound.counts.footprints if (f.variable, f.direction) == ("o", "store")]
        elements = sum(float(count(bound.sizes)) for count in stored if count is not None)
        assert elements == np.count_nonzero(run.array("o") != UNTOUCHED), (n, m)

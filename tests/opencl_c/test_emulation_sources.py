"""Emulating kernels as people write them, against numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import perfmodel as pm
from perfmodel.basics.errors import SourceError
from perfmodel.opencl_c.emulation import Argument, Emulation, LocalBytes, Random, Zeros, emulate
from perfmodel.opencl_c.lowered import LoweredKernel
from perfmodel.opencl_c.lowering import lower
from perfmodel.opencl_c.reading import read


def kernel(source: str, name: str = "k") -> LoweredKernel:
    return lower(read(source), name)


def run(source: str, global_size: Any, local_size: Any, /, groups: Any = "all", **arguments: Argument) -> Emulation:
    return emulate(kernel(source), global_size, local_size, arguments, groups=groups)


def floats(*shape: int, seed: int = 0) -> NDArray[np.float32]:
    return np.random.default_rng(seed).random(shape, dtype=np.float32)


BRACES = """
#define SWAP(a, b) ({ float t; t = a; a = b; b = t; })
#define LARGER(a, b) ({ __typeof__(a) x = (a); __typeof__(b) y = (b); x > y ? x : y; })
typedef struct { float first, second; } Two;
__kernel void k(__global float *a, __global float *most, __global int *turns) {
  int i = get_global_id(0), n = 0;
  if (a[2 * i] > a[2 * i + 1])
    SWAP(a[2 * i], a[2 * i + 1]);
  Two both = ({ Two made = {a[2 * i], a[2 * i + 1]}; made; });
  most[i] = LARGER(both.first, LARGER(both.second, 0.5f)) + ({ float s = 0; for (int j = 0; j < i; j++) s += j; s; });
  while (({ n++; n * n; }) < i) ;
  turns[i] = n;
}"""


def test_statements_in_braces_have_the_value_at_their_end() -> None:
    a = floats(64)
    found = run(BRACES, 32, 8, a=a, most=np.zeros(32, np.float32), turns=np.zeros(32, np.int32))
    np.testing.assert_array_equal(found.array("a").reshape(-1, 2), np.sort(a.reshape(-1, 2), axis=1))
    i = np.arange(32)
    most = np.maximum(a.reshape(-1, 2).max(axis=1), np.float32(0.5)) + (i * (i - 1) // 2).astype(np.float32)
    np.testing.assert_allclose(found.array("most"), most, rtol=1e-6)
    np.testing.assert_array_equal(found.array("turns"), np.maximum(np.ceil(np.sqrt(i)), 1).astype(int))


MATMUL = """
#define T 8
__kernel void k(int n, __global const float *a, __global const float *b, __global float *c) {
  __local float as[T][T], bs[T * T];
  int tx = get_local_id(0), ty = get_local_id(1), col = get_global_id(0), row = get_global_id(1);
  float sum = 0.0f;
  for (int t = 0; t < n / T; t++) {
    as[ty][tx] = a[row * n + t * T + tx];
    bs[ty * T + tx] = b[(t * T + ty) * n + col];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int k = 0; k < T; k++)
      sum += as[ty][k] * bs[k * T + tx];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  c[row * n + col] = sum;
}"""


def test_matrix_multiplication() -> None:
    a, b = floats(32, 32), floats(32, 32, seed=1)
    c = np.zeros((32, 32), np.float32)
    found = run(MATMUL, (32, 32), (8, 8), n=32, a=a, b=b, c=c)
    np.testing.assert_allclose(found.array("c"), a @ b, rtol=1e-5)
    assert not c.any()
    assert not found.findings
    # Of 16 groups each, 4 tiles: two loads and stores of local memory to fill a tile, 8 iterations to use it.
    assert (found.barriers == 8 // 2).all()
    executions = found.accesses["executions"].sum(axis=1)
    assert (executions == 64 * (4 * 4 + 32 * 2 + 1)).all()
    footprint = dict(zip(found.variables, found.footprints[5].tolist(), strict=True))
    assert footprint["global", "a"][0] == 8 * 32 * 4
    assert footprint["global", "c"] == (0, 0, 0, 256, 8, 1, 256, 8, 1)  # bytes, blocks and pages: loads, stores, both
    assert footprint["local", "as"] == (256, 8, 1, 256, 8, 1, 256, 8, 1)


def test_arrays_are_written_back_if_asked() -> None:
    a, b = floats(32, 32), floats(32, 32, seed=1)
    c = np.zeros((32, 32), np.float32)
    arguments: dict[str, Argument] = {"n": 32, "a": a, "b": b, "c": c}
    emulate(kernel(MATMUL), (32, 32), (8, 8), arguments, groups="all", write_back=True)
    np.testing.assert_allclose(c, a @ b, rtol=1e-5)


REDUCTION = """
__kernel void k(__global const float *in, __global float *out, __local float *part, uint n) {
  uint l = get_local_id(0), i = get_global_id(0);
  float sum = 0;
  while (i < n) { sum += in[i]; i += get_global_size(0); }
  part[l] = sum;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (uint s = get_local_size(0) / 2; s > 0; s >>= 1) {
    if (l < s) part[l] += part[l + s];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (l == 0) out[get_group_id(0)] = part[0];
}"""


def test_reduction() -> None:
    data = floats(5000)
    out = np.zeros(8, np.float32)
    found = run(REDUCTION, 1024, 128, **{"in": data}, out=out, part=LocalBytes(512), n=5000)
    assert not found.findings
    np.testing.assert_allclose(found.array("out").sum(), data.sum(), rtol=1e-5)
    assert (found.barriers == [[1, 7]] * 8).all()


def test_a_missing_barrier_is_a_race() -> None:
    source = REDUCTION.replace("    barrier(CLK_LOCAL_MEM_FENCE);\n  }", "  }")
    found = run(source, 1024, 128, **{"in": floats(5000)}, out=Zeros(8), part=LocalBytes(512), n=5000)
    assert {finding.kind for finding in found.findings} == {"race"}
    assert "without a barrier" in found.findings[0].message


N_BODY = """
__kernel void k(__global const float4 *pos, __global float4 *acc, int n, float eps) {
  __local float4 tile[64];
  int i = get_global_id(0), l = get_local_id(0);
  float4 me = pos[i];
  float3 a = (float3)(0.0f);
  for (int t = 0; t < n; t += get_local_size(0)) {
    tile[l] = pos[t + l];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int j = 0; j < get_local_size(0); ++j) {
      float3 d = tile[j].xyz - me.xyz;
      float inv = rsqrt(dot(d, d) + eps);
      a += d * (tile[j].w * inv * inv * inv);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  acc[i] = (float4)(a, 0.0f);
}"""


def test_n_body() -> None:
    positions = floats(256, 4)
    found = run(N_BODY, 256, 64, pos=positions, acc=np.zeros((256, 4), np.float32), n=256, eps=0.01)
    d = positions[None, :, :3].astype(float) - positions[:, None, :3]
    weights = positions[None, :, 3] / ((d**2).sum(axis=2) + 0.01) ** 1.5
    expected = (d * weights[..., None]).sum(axis=1)
    np.testing.assert_allclose(found.array("acc")[:, :3], expected, rtol=1e-3, atol=1e-3)
    assert not found.findings


BITONIC = """
__kernel void k(__global int *data) {
  __local int part[256];
  int l = get_local_id(0);
  part[l] = data[get_global_id(0)];
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int size = 2; size <= 256; size <<= 1)
    for (int stride = size / 2; stride > 0; stride /= 2) {
      int other = l ^ stride;
      if (other > l) {
        bool up = (l & size) == 0;
        int x = part[l], y = part[other];
        if ((x > y) == up) { part[l] = y; part[other] = x; }
      }
      barrier(CLK_LOCAL_MEM_FENCE);
    }
  data[get_global_id(0)] = part[l];
}"""


def test_bitonic_sort() -> None:
    data = np.random.default_rng(0).integers(-1000, 1000, 1024).astype(np.int32)
    found = run(BITONIC, 1024, 256, data=data)
    assert (found.array("data") == np.sort(data.reshape(4, 256), axis=1).ravel()).all()
    assert not found.findings
    assert found.branches[:, :, 1].sum() > 0


HISTOGRAM = """
__kernel void k(__global const uchar *data, __global uint *bins, int each) {
  __local uint mine[256];
  for (int b = get_local_id(0); b < 256; b += get_local_size(0)) mine[b] = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int i = 0; i < each; i++)
    atomic_inc(&mine[data[get_global_id(0) + i * get_global_size(0)]]);
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int b = get_local_id(0); b < 256; b += get_local_size(0)) atomic_add(&bins[b], mine[b]);
}"""


def test_histogram() -> None:
    data = np.random.default_rng(0).integers(0, 200, 4096).astype(np.uint8)
    found = run(HISTOGRAM, 512, 64, data=data, bins=Zeros(256), each=8)
    assert (found.array("bins") == np.bincount(data, minlength=256)).all()
    assert not found.findings


MANDELBROT = """
__kernel void k(__global int *out, int most, float scale) {
  int x = get_global_id(0), y = get_global_id(1), w = get_global_size(0);
  if (x >= w - 3) return;
  float cr = x * scale - 2.0f, ci = y * scale - 1.0f, zr = 0, zi = 0;
  int n = 0;
  do {
    float t = zr * zr - zi * zi + cr;
    zi = 2 * zr * zi + ci;
    zr = t;
    if (zr * zr + zi * zi > 4.0f) break;
    if (n % 7 == 3) { n += 2; continue; }
    n++;
  } while (n < most);
  out[y * w + x] = n;
}"""


def test_loops_that_lanes_leave_at_different_times() -> None:
    found = run(MANDELBROT, (32, 16), (8, 8), out=Zeros(512), most=50, scale=0.125)
    expected = np.zeros((16, 32), np.int32)
    f = np.float32
    for y in range(16):
        for x in range(29):
            cr, ci = f(x) * f(0.125) - f(2), f(y) * f(0.125) - f(1)
            zr = zi = f(0)
            n = 0
            while True:
                zr, zi = zr * zr - zi * zi + cr, f(2) * zr * zi + ci
                if zr * zr + zi * zi > 4:
                    break
                n += 2 if n % 7 == 3 else 1
                if n >= 50:
                    break
            expected[y, x] = n
    assert (found.array("out").reshape(16, 32) == expected).all()


FUNCTIONS = """
typedef struct { float scale; int shift[3]; } Options;
int find(__global const int *keys, int n, int key) {
  int low = 0, high = n;
  while (low < high) {
    int middle = (low + high) / 2;
    if (keys[middle] == key) return middle;
    if (keys[middle] < key) low = middle + 1; else high = middle;
  }
  return -1;
}
__constant int TABLE[4] = {10, 20, 30, 40};
__kernel void k(__global const int *keys, __global float *out, int n, Options o) {
  int i = get_global_id(0);
  int last[4];
  for (int j = 0; j < 4; j++) last[j] = TABLE[(i + j) % 4] * j;
  int at = find(keys, n, i);
  out[i] = at * o.scale + o.shift[i % 3] + last[i & 3];
}"""


def test_constants_are_made_of_constants() -> None:
    source = """__constant uint LOW = 5;
    __constant uint HIGH = (1 << 18) - 1 - LOW, INVERTED = ~LOW;
    __constant float HALF = 0.5f;
    __constant float TURNED = HALF * -3.0f;
    __kernel void k(__global uint *out, __global float *other) { out[0] = HIGH; out[1] = INVERTED; *other = TURNED; }"""
    found = run(source, 1, 1, out=np.zeros(2, np.uint32), other=Zeros(1))
    assert found.array("out").tolist() == [2**18 - 6, 2**32 - 6]
    assert found.array("other").tolist() == [-1.5]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("sizeof(double) == 8", 1),
        ("2.5f > 3 || !(4 <= 4)", 0),
        ("1 && 0 / 1 < 1", 1),
        ("0 && 1 / 0", 0),
        ("1 != 1 ? 7 : sizeof(int) + 3", 7),
    ],
)
def test_constants_are_made_of_conditions(text: str, value: int) -> None:
    source = f"__constant int IT = {text}; __kernel void k(__global int *out) {{ out[0] = IT; }}"
    assert run(source, 1, 1, out=np.zeros(1, np.int32)).array("out").tolist() == [value]


def test_functions_structs_tables_and_private_arrays() -> None:
    keys = np.arange(0, 100, 3).astype(np.int32)
    options = np.array([(2.0, [1, 2, 3])], dtype=[("scale", "f4"), ("shift", "i4", 3)])
    found = run(FUNCTIONS, 96, 32, keys=keys, out=Zeros(96), n=len(keys), o=options)
    i = np.arange(96)
    at = np.where(i % 3 == 0, i // 3, -1)
    table = np.array([10, 20, 30, 40])
    expected = at * 2 + np.array([1, 2, 3])[i % 3] + table[(i + (i & 3)) % 4] * (i & 3)
    assert (found.array("out") == expected).all()
    assert not found.findings


def test_all_groups_at_once_or_one_at_a_time() -> None:
    data = np.random.default_rng(0).integers(0, 200, 4096).astype(np.uint8)
    program = kernel(HISTOGRAM)
    bins = np.zeros(256, np.uint32)
    arguments: dict[str, Argument] = {"data": data, "bins": bins, "each": 8}
    whole = emulate(program, 512, 64, arguments, groups="all")
    for group in range(8):
        one = emulate(program, 512, 64, arguments, groups=[group], write_back=True)
        for name in ("blocks", "branches", "barriers", "accesses", "footprints"):
            assert (getattr(one, name)[0] == getattr(whole, name)[group]).all(), name
    assert (bins == whole.array("bins")).all()


def test_gigabytes_cost_nothing() -> None:
    source = "__kernel void k(__global const float *a, __global float *b) { size_t i = get_global_id(0); b[i] = a[i]; }"
    n = 1 << 30
    found = run(source, n, 256, groups=[0, (n // 256) - 1], a=Random(n, seed=3), b=Zeros(n))
    assert found.seconds < 1
    assert found.footprints["any_bytes"].tolist() == [[1024, 1024]] * 2


@pytest.mark.parametrize("local", [1, 7, 32, 33])
def test_any_size_of_groups(local: int) -> None:
    found = run(
        REDUCTION, 5 * local, local, **{"in": np.ones(50, np.float32)}, out=Zeros(5), part=LocalBytes(256), n=50
    )
    assert found.blocks[:, 0].tolist() == [[local, -(-local // 32), 1]] * 5


def test_a_jump_into_a_block_is_refused_with_its_place() -> None:
    source = "__kernel void k(__global int *a)\n{\n  if (a[0] < 4) goto inside;\n  { inside: a[0]++; }\n}"
    with pytest.raises(SourceError, match=r"kernel.cl:3:17: goto inside leads into a block.*use a condition"):
        kernel(source)


def test_arrays_that_are_parameters_are_pointers() -> None:
    """Their address space is that of their elements, however many brackets they have."""
    source = """
    typedef struct { float x, y; } place;
    typedef float row[4];
    kernel void k(global const place from[], global const uint tables[3][8], local float own[2][8],
                  global const row rows[], global float out[], int n)
    {
        const int l = get_local_id(0);
        global const uint *first = tables;
        own[0][l] = from[l].x;
        own[1][7 - l] = from[l].y;
        barrier(CLK_LOCAL_MEM_FENCE);
        out[l] = own[0][l] + own[1][l] + tables[2][l] + first[l + 8] + rows[l][n];
    }
    """
    places = np.zeros(8, dtype=[("x", "f4"), ("y", "f4")])
    places["x"], places["y"] = floats(2, 8)
    tables, rows = np.arange(24, dtype=np.uint32), floats(8, 4, seed=1)
    found = run(
        source, 8, 8, **{"from": places}, tables=tables, own=LocalBytes(64), rows=rows, out=np.zeros(8, "float32"), n=2
    )
    expected = places["x"] + places["y"][::-1] + tables[16:24] + tables[8:16] + rows[:, 2]
    assert np.allclose(found.array("out"), expected)
    assert not found.findings
    counted = pm.Kernel.from_opencl(source, "k", 8, 8, {"from": 8, "tables": 3, "own": 64, "rows": 8, "out": 8}, n=2)
    assert pm.feature("f_mem_access_global_load").eval(counted) == 5 * 8
    assert pm.feature("f_mem_access_local_load").eval(counted) == 2 * 8


def test_a_variable_chooses_a_component_of_a_vector() -> None:
    source = """__kernel void k(__global float4 *x, __global float *y)
    {
        const int i = get_global_id(0);
        float4 own = x[i];
        float total = 0;
        for (int j = 0; j < 4; j++) total += own[j] * (j + 1);
        own[i & 3] = 5;
        x[i][i & 3] = 7;
        y[i] = total + 10 * dot(own, (float4)(1, 2, 3, 4));
    }"""
    kernel = pm.Kernel.from_opencl(source, "k", 64, 64, {"x": 64, "y": 64})
    before = np.random.default_rng(1).random((64, 4), np.float32)
    profile = pm.emulate(kernel, {"x": before.reshape(-1).copy()}, groups="all")
    rows, factors = np.arange(64), np.array([1, 2, 3, 4])
    changed, own = before.copy(), before.copy()
    changed[rows, rows % 4], own[rows, rows % 4] = 7, 5
    np.testing.assert_allclose(profile.array("y"), before @ factors + 10 * (own @ factors), rtol=1e-5)
    np.testing.assert_array_equal(profile.array("x"), changed.reshape(-1))

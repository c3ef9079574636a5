"""Times of small kernels on an H200 that show one mechanism of its caches each, and that no fit has seen."""

from __future__ import annotations

import pytest

import perfmodel as pm

pytest.importorskip("nvidia.cuda_nvrtc", reason="needs the extra nvidia")

HASHED = """
__device__ unsigned hashed(unsigned x) {{ x *= 0x9E3779B1u; x ^= x >> 15; x *= 0x85EBCA77u; return x ^ x >> 13; }}
__global__ void scattered(float *o, unsigned lanes, unsigned rounds, unsigned mask)
{{
    unsigned t = blockIdx.x * blockDim.x + threadIdx.x, w = t >> 5, l = t & 31;
    #pragma unroll 8
    for (unsigned r = 0; r < rounds; r++) {{
        unsigned i = (hashed(w * rounds + r) * 32 + l * lanes) & mask;
        {};
    }}
}}
"""
ADDED, STORED = "atomicAdd(o + i, 1.f)", "o[i] = 1.f"
# What is done, elements from one work-item of a sub-group to the next, work-groups of 512, and microseconds.
SENT = [
    (ADDED, 8, 16, 90.2),
    (ADDED, 32, 1, 73.0),
    (ADDED, 32, 16, 77.4),
    (ADDED, 32, 132, 172.1),
    (STORED, 32, 132, 237.1),
]
ALONE = "__global__ void alone(float *o, unsigned s) {{ size_t t = blockIdx.x * 256 + threadIdx.x; {} }}"
LOADED = "float v = o[t * s]; if (v == 7) o[t * s] = v + 1;"
# What is done, bytes from one work-item to the next, work-items, and microseconds.
OF_LINES = [
    (LOADED, 32, 1 << 20, 9.5),
    (LOADED, 128, 1 << 19, 14.1),
    (LOADED, 128, 1 << 20, 22.5),
    (LOADED, 256, 1 << 20, 27.0),
    ("o[t * s] = 1;", 256, 1 << 20, 61.0),
]
CHANNELS = """
__global__ void channels(const float *a, const float *b, float *o, float *p, int W, int H, int C)
{
    int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
    if (x < W && y < H) { int i = (y * W + x) * C + blockIdx.z; o[i] = a[i] + b[i]; p[i] = a[i]; }
}
"""


def seconds(kernel: pm.Kernel) -> float:
    return float(pm.Calibration.shipped("gpu", device="h200").predict(kernel))


@pytest.mark.parametrize(("update", "lanes", "groups", "measured"), SENT)
def test_compute_units_send_atomics_sector_by_sector(update: str, lanes: int, groups: int, measured: float) -> None:
    kernel = pm.Kernel.from_cuda(
        HASHED.format(update), "scattered", groups, 512, {"o": 1 << 22}, lanes=lanes, rounds=256, mask=(1 << 22) - 1
    )
    assert seconds(kernel) == pytest.approx(measured * 1e-6, rel=0.35)


@pytest.mark.parametrize(("access", "stride", "items", "measured"), OF_LINES)
def test_single_sectors_fill_lines_of_the_last_level_cache(
    access: str, stride: int, items: int, measured: float
) -> None:
    kernel = pm.Kernel.from_cuda(
        ALONE.format(access), "alone", items // 256, 256, {"o": items * stride // 4}, s=stride // 4
    )
    assert seconds(kernel) == pytest.approx(measured * 1e-6, rel=0.35)


def test_channels_that_are_worked_on_one_after_the_other_come_from_memory_each_time() -> None:
    def of(channels: int) -> pm.Kernel:
        arrays = dict.fromkeys("abop", 1 << 24)
        grid, width = (360 // channels, 68, channels), 5760 // channels
        return pm.Kernel.from_cuda(CHANNELS, "channels", grid, (16, 16), arrays, W=width, H=1080, C=channels)

    assert seconds(of(1)) == pytest.approx(36.7e-6, rel=0.2)
    assert 80e-6 < seconds(of(3)) < 160e-6  # 136.1 were measured


RANDOM = """
__device__ unsigned mix(unsigned x)
{{ x ^= x >> 16; x *= 0x7feb352du; x ^= x >> 15; x *= 0x846ca68bu; return x ^ x >> 16; }}
__global__ void jumping(unsigned *b, unsigned *o, unsigned m, unsigned mask)
{{
    unsigned t = blockIdx.x * blockDim.x + threadIdx.x, p = mix(t);
    for (unsigned k = 0; k < m; k++) {}
    o[t] = p;
}}
"""
CHAINED, SPREAD = "p = mix(p + b[p & mask] + k);", "b[mix(t * m + k) & mask] = k;"
# What is done, megabytes, work-items, and microseconds.
JUMPS = [
    (CHAINED, 64, 1 << 20, 219.6),
    (CHAINED, 256, 1 << 18, 93.4),
    (CHAINED, 256, 1 << 20, 353.1),
    (CHAINED, 1024, 1 << 18, 104.3),
    (SPREAD, 64, 1 << 18, 178.9),
    (SPREAD, 256, 1 << 18, 249.5),
    (SPREAD, 1024, 1 << 20, 1029.3),
]


@pytest.mark.parametrize(("done", "megabytes", "items", "measured"), JUMPS)
def test_random_sectors_miss_a_cache_of_lines_and_cost_the_same_each_time(
    done: str, megabytes: int, items: int, measured: float
) -> None:
    words = megabytes << 18
    arrays = {"b": words, "o": items}
    kernel = pm.Kernel.from_cuda(RANDOM.format(done), "jumping", items // 256, 256, arrays, m=16, mask=words - 1)
    assert seconds(kernel) == pytest.approx(measured * 1e-6, rel=0.3)


ROWS = """
__global__ void summed(const double *x, double *y, int m)
{
    size_t t = blockIdx.x * 256ul + threadIdx.x;
    for (int k = 0; k < m; k++) y[t * m + k] = 0.5 * x[t * m + k] + y[t * m + k];
}
__global__ void filled(const double *x, double *y, double *z, int m, int every)
{
    size_t t = blockIdx.x * 256ul + threadIdx.x;
    double v = 0;
    for (int k = 0; k < m; k++) { v += x[k]; if (k % every == 0) { y[t * m + k] = v; z[t * m + k] = v; } }
}
"""


def cost(kernel: pm.Kernel, parameter: str) -> float:
    """Returns the seconds of a price by itself."""
    explained = pm.Calibration.shipped("gpu", device="h200").explain(kernel)
    return next((each.seconds for each in explained.costs if each.name == parameter), 0.0)


def test_loads_that_both_caches_have_lost_come_from_memory_again() -> None:
    def of(groups: int) -> pm.Kernel:
        arrays = dict.fromkeys("xy", groups * 256 * 64)
        return pm.Kernel.from_cuda(ROWS, "summed", groups, 256, arrays, m=64)

    assert cost(of(64), "p_scatter") < 1e-7 < 1e-4 < cost(of(1024), "p_scatter")


def test_stores_under_a_condition_hold_fewer_sectors_open() -> None:
    def of(every: int) -> pm.Kernel:
        arrays = {"x": 64, "y": 1 << 24, "z": 1 << 24}
        return pm.Kernel.from_cuda(ROWS, "filled", 1024, 256, arrays, m=64, every=every)

    assert 0 < cost(of(2), "p_scatter_store") < 0.2 * cost(of(1), "p_scatter_store")

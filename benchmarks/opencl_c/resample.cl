// Covers: family resample; loops over a square of places, vload2, and quotients of the work-item's numbers.
// kernel: {"name": "down", "generator": "resample", "tags": ["direction:down", "factor:3", "lsizes:16x16"],
//   "global": ["(n + 15) // 16 * 16", "(n + 15) // 16 * 16"], "local": [16, 16], "options": ["-DFACTOR=3"],
//   "args": {"a": "9*n*n", "out": "n*n"}, "small": {"n": 32}, "sizes": [{"n": 2048}, {"n": 4096}]}
// kernel: {"name": "down_by_two", "generator": "resample", "tags": ["direction:down", "factor:2", "lsizes:32x8"],
//   "global": ["n", "n"], "local": [32, 8], "args": {"a": "4*n*n", "out": "n*n"}, "assumptions": "n % 32 == 0",
//   "small": {"n": 32}, "sizes": [{"n": 2048}, {"n": 4096}]}
// kernel: {"name": "up", "generator": "resample", "tags": ["direction:up", "factor:2", "lsizes:16x16"],
//   "global": ["(n + 15) // 16 * 16", "(n + 15) // 16 * 16"], "local": [16, 16], "options": ["-DFACTOR=2"],
//   "args": {"a": "n*n", "out": "4*n*n"}, "small": {"n": 32}, "sizes": [{"n": 2048}, {"n": 4096}]}
// kernel: {"name": "up_gather", "generator": "resample", "tags": ["direction:up_gather", "factor:4", "lsizes:32x8"],
//   "global": ["4 * n", "4 * n"], "local": [32, 8], "args": {"a": "n*n", "out": "16*n*n"},
//   "options": ["-DFACTOR=4"], "assumptions": "n % 8 == 0",
//   "small": {"n": 32}, "sizes": [{"n": 2048}, {"n": 4096}]}
// differs: down_by_two: f_op_float32_add: Loopy adds up the four elements from zero on
#ifndef FACTOR
#define FACTOR 2
#endif

__kernel void down(__global const float *a, __global float *out, const int n)
{
    const int x = get_global_id(0), y = get_global_id(1);
    if (x >= n || y >= n)
        return;
    float sum = 0.0f;
#pragma unroll
    for (int p = 0; p < FACTOR; p++)
#pragma unroll
        for (int q = 0; q < FACTOR; q++)
            sum += a[(FACTOR * y + p) * FACTOR * n + FACTOR * x + q];
    out[y * n + x] = sum * (1.0f / (FACTOR * FACTOR));
}

__kernel void down_by_two(__global const float *a, __global float *out, const int n)
{
    const size_t x = get_global_id(0), y = get_global_id(1);
    const float2 upper = vload2(2 * y * n + x, a), lower = vload2((2 * y + 1) * n + x, a);
    const float2 both = upper + lower;
    out[y * n + x] = 0.25f * (both.x + both.y);
}

__kernel void up(__global const float *a, __global float *out, const int n)
{
    const int x = get_global_id(0), y = get_global_id(1);
    if (x >= n || y >= n)
        return;
    const float value = a[y * n + x];
    __global float *corner = out + FACTOR * y * (FACTOR * n) + FACTOR * x;
    for (int p = 0; p < FACTOR; p++)
        for (int q = 0; q < FACTOR; q++)
            corner[p * FACTOR * n + q] = value;
}

__kernel void up_gather(__global const float *a, __global float *out, const int n)
{
    const int x = get_global_id(0), y = get_global_id(1);
    out[y * (FACTOR * n) + x] = a[y / FACTOR * n + x / FACTOR];
}

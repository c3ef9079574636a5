// Covers: family matmul_sq; tiles in local memory, the naive loop, and float64.
// kernel: {"name": "matmul_sq", "generator": "matmul_sq", "tags": ["tiled_prefetch:True", "lsizes:16x16"],
//   "global": ["n", "n"], "local": [16, 16], "args": {"a": "n*n", "b": "n*n", "c": "n*n"}, "options": ["-DT=16"],
//   "assumptions": "n % 16 == 0", "small": {"n": 48}, "sizes": [{"n": 1024}, {"n": 2048}]}
// kernel: {"name": "naive", "generator": "matmul_sq", "tags": ["tiled_prefetch:False", "lsizes:32x8"],
//   "global": ["n", "n"], "local": [32, 8], "args": {"a": "n*n", "b": "n*n", "c": "n*n"}, "options": ["-DT=16"],
//   "assumptions": "n % 32 == 0", "small": {"n": 64}, "sizes": [{"n": 1024}, {"n": 2048}]}
// kernel: {"name": "naive64", "generator": "matmul_sq",
//   "tags": ["dtype:float64", "tiled_prefetch:False", "lsizes:16x16"],
//   "global": ["(n + 15) // 16 * 16", "(n + 15) // 16 * 16"], "local": [16, 16],
//   "args": {"a": "n*n", "b": "n*n", "c": "n*n"}, "options": ["-DT=16"],
//   "small": {"n": 48}, "sizes": [{"n": 1024}, {"n": 2048}]}
#pragma OPENCL EXTENSION cl_khr_fp64 : enable

__kernel void matmul_sq(__global const float *a, __global const float *b, __global float *c, const int n)
{
    __local float left[T][T], right[T][T];
    const int x = get_local_id(0), y = get_local_id(1);
    const int row = get_group_id(1) * T + y, column = get_group_id(0) * T + x;
    float sum = 0.0f;
    for (int tile = 0; tile < n / T; tile++) {
        left[y][x] = a[row * n + tile * T + x];
        right[y][x] = b[(tile * T + y) * n + column];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int k = 0; k < T; k++)
            sum += left[y][k] * right[k][x];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    c[row * n + column] = sum;
}

__kernel void naive(__global const float *a, __global const float *b, __global float *c, const int n)
{
    const size_t row = get_global_id(1), column = get_global_id(0);
    float sum = 0.0f;
    for (size_t k = 0; k < n; k++)
        sum = fma(a[row * n + k], b[k * n + column], sum);
    c[row * n + column] = sum;
}

__kernel void naive64(__global const double *a, __global const double *b, __global double *c, const int n)
{
    const int row = get_global_id(1), column = get_global_id(0);
    if (row >= n || column >= n)
        return;
    double sum = 0.0;
    for (int k = 0; k < n; k++)
        sum += a[row * n + k] * b[k * n + column];
    c[row * n + column] = sum;
}

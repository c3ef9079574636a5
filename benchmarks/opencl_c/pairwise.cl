// Covers: family pairwise; rows of two sets of points, and tiles of both in local memory.
// kernel: {"name": "pairwise", "generator": "pairwise", "tags": ["layout:points", "fetch:none", "lsizes:16x16"],
//   "global": ["n", "n"], "local": [16, 16], "args": {"a": "n*d", "b": "n*d", "out": "n*n"},
//   "assumptions": "n % 16 == 0", "small": {"n": 32, "d": 16}, "sizes": [{"n": 1024, "d": 64}, {"n": 2048, "d": 64}]}
// kernel: {"name": "pairwise_tiled", "generator": "pairwise",
//   "tags": ["layout:coordinates", "fetch:local", "lsizes:16x16"],
//   "global": ["n", "n"], "local": [16, 16], "args": {"a": "n*d", "b": "n*d", "out": "n*n"},
//   "assumptions": "n % 16 == 0 and d % 16 == 0",
//   "small": {"n": 32, "d": 32}, "sizes": [{"n": 1024, "d": 256}, {"n": 2048, "d": 64}]}
// differs: pairwise: f_op_float32_add, f_op_float32_mul, f_op_float32_madd: a product that a helper returns is no madd
#define TILE 16

float square(const float x)
{
    return x * x;
}

__kernel void pairwise(__global const float *a, __global const float *b, __global float *out, const int n, const int d)
{
    const int i = get_global_id(1), j = get_global_id(0);
    __global const float *left = a + i * d, *right = b + j * d;
    float sum = 0.0f;
    for (int e = 0; e < d; e++)
        sum += square(left[e] - right[e]);
    out[i * n + j] = sum;
}

__kernel void pairwise_tiled(__global const float *a, __global const float *b, __global float *out, const int n,
                             const int d)
{
    __local float left[TILE][TILE], right[TILE][TILE];
    const int x = get_local_id(0), y = get_local_id(1);
    const int i = TILE * get_group_id(1), j = TILE * get_group_id(0);
    float sum = 0.0f;
    for (int first = 0; first < d; first += TILE) {
        left[y][x] = a[(first + y) * n + i + x];
        right[y][x] = b[(first + y) * n + j + x];
        barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll 4
        for (int e = 0; e < TILE; e++) {
            const float gap = left[e][y] - right[e][x];
            sum = mad(gap, gap, sum);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    out[(i + y) * n + j + x] = sum;
}

// Covers: family filled_stride; columns of a few rows that a group copies to local memory, and sums.
// kernel: {"name": "sum_columns", "generator": "filled_stride", "tags": ["stride:3", "lsize_0:256"],
//   "global": "n", "local": 256, "args": {"a": "3*n", "out": "n"}, "options": ["-DSTRIDE=3"],
//   "assumptions": "n % 256 == 0", "small": {"n": 512}, "sizes": [{"n": 1048576}, {"n": 4194304}]}
#define LSIZE 256

__kernel void sum_columns(__global const float *a, __global float *out, const int n)
{
    __local float columns[STRIDE][LSIZE];
    const int l = get_local_id(0), column = get_global_id(0);
    for (int row = 0; row < STRIDE; row++)
        columns[row][l] = a[column * STRIDE + row];
    barrier(CLK_LOCAL_MEM_FENCE);
    float sum = 0.0f;
    for (int k = 0; k < LSIZE; k++)
        sum += columns[0][k] + columns[1][k] + columns[2][k];
    out[column] = sum;
}

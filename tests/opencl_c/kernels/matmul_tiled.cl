// Covers: two-dimensional local arrays, barriers in a loop, a macro as the size of a tile, mad.
// launch: {"kernel": "matmul", "global": [32, 32], "local": [8, 8], "args": [{"name": "a", "array": "float32", "size": 1024}, {"name": "b", "array": "float32", "size": 1024}, {"name": "c", "array": "float32", "size": 1024, "output": true}, {"name": "n", "scalar": "int32", "value": 32}], "options": ["-DTILE=8"]}
#ifndef TILE
#error TILE is not defined
#endif
#define AT(m, row, column) m[(row) * n + (column)]

__kernel void matmul(__global const float *a, __global const float *b, __global float *c, const int n)
{
    __local float a_tile[TILE][TILE], b_tile[TILE][TILE + 1];
    const int x = get_local_id(0), y = get_local_id(1);
    const int column = get_global_id(0), row = get_global_id(1);
    float sum = 0.0f;
    for (int t = 0; t < n / TILE; ++t) {
        a_tile[y][x] = AT(a, row, t * TILE + x);
        b_tile[y][x] = AT(b, t * TILE + y, column);
        barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
        for (int k = 0; k < TILE; ++k)
            sum = mad(a_tile[y][k], b_tile[k][x], sum);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    AT(c, row, column) = sum;
}

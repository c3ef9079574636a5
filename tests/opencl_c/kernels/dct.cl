// Covers: two-dimensional tables in constant memory, a helper that takes a constant pointer, a table inside a kernel.
// launch: {"kernel": "dct", "global": [8, 8], "local": [4, 4], "args": [{"name": "a", "array": "float32", "size": 64}, {"name": "b", "array": "float32", "size": 64, "output": true}]}
#define ROW(c) {c, c / 2, -c, 2 * c}
__constant float BASIS[4][4] = {ROW(0.5f), ROW(0.25f), {0.1f, -0.1f}, {[3] = 1e-1f}};

float row_sum(__constant float *row, __local const float *column, int stride)
{
    float sum = 0;
    for (int k = 0; k < 4; k++, column += stride)
        sum += row[k] * *column;
    return sum;
}

__kernel void dct(__global const float *a, __global float *b)
{
    __constant float scale[2] = {1.0f, M_SQRT2_F};
    __local float block[4][4], half_done[4][4];
    const int x = get_local_id(0), y = get_local_id(1), at = get_global_id(1) * 8 + get_global_id(0);
    block[y][x] = a[at];
    barrier(CLK_LOCAL_MEM_FENCE);
    half_done[y][x] = row_sum(BASIS[y], &block[0][x], 4);
    barrier(CLK_LOCAL_MEM_FENCE);
    b[at] = row_sum(BASIS[x], half_done[y], 1) * scale[(x + y) % 2];
}

// Covers: a halo loaded into local memory, conditions with || and &&, negative offsets of pointers.
// launch: {"kernel": "stencil", "global": [16, 16], "local": [8, 8], "args": [{"name": "a", "array": "float32", "size": 256}, {"name": "b", "array": "float32", "size": 256, "output": true}, {"name": "n", "scalar": "int32", "value": 16}, {"name": "c0", "scalar": "float32", "value": 0.5}, {"name": "c1", "scalar": "float32", "value": 0.125}]}
#define W 8
__kernel void stencil(__global const float *a, __global float *b, int n, float c0, float c1)
{
    __local float tile[W + 2][W + 2];
    int gx = get_global_id(0), gy = get_global_id(1), x = get_local_id(0) + 1, y = get_local_id(1) + 1;
    __global const float *centre = a + gy * n + gx;
    tile[y][x] = *centre;
    if (x == 1)
        tile[y][0] = gx > 0 ? centre[-1] : 0.0f;
    if (x == W)
        tile[y][W + 1] = gx + 1 < n ? *(centre + 1) : 0.0f;
    if (y == 1)
        tile[0][x] = gy > 0 ? *(centre - n) : 0.0f;
    if (y == W)
        tile[W + 1][x] = gy + 1 < n ? centre[n] : 0.0f;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (gx == 0 || gy == 0 || gx == n - 1 || gy == n - 1)
        b[gy * n + gx] = tile[y][x];
    else
        b[gy * n + gx] = c0 * tile[y][x] + c1 * (tile[y][x - 1] + tile[y][x + 1] + tile[y - 1][x] + tile[y + 1][x]);
}

// Covers: family matmul_tiled; a tile of results in private memory, with factors in local memory or not.
// kernel: {"name": "matmul_tiled", "generator": "matmul_tiled",
//   "tags": ["tiled_prefetch:True", "tile_rows:4", "tile_cols:4", "lsizes:16x16"],
//   "global": ["n // 4", "n // 4"], "local": [16, 16], "args": {"a": "n*n", "b": "n*n", "c": "n*n"},
//   "options": ["-DROWS=4", "-DCOLUMNS=4"], "assumptions": "n % 64 == 0",
//   "small": {"n": 64}, "sizes": [{"n": 1024}, {"n": 2048}]}
// kernel: {"name": "matmul_registers", "generator": "matmul_tiled",
//   "tags": ["tiled_prefetch:False", "tile_rows:4", "tile_cols:2", "lsizes:16x16"],
//   "global": ["n // 2", "n // 4"], "local": [16, 16], "args": {"a": "n*n", "b": "n*n", "c": "n*n"},
//   "options": ["-DROWS=4", "-DCOLUMNS=2"], "assumptions": "n % 64 == 0",
//   "small": {"n": 64}, "sizes": [{"n": 1024}, {"n": 2048}]}
#define SIDE 16
#define DEPTH 16

__kernel void matmul_tiled(__global const float *a, __global const float *b, __global float *c, const int n)
{
    __local float left[ROWS * SIDE][DEPTH], right[DEPTH][COLUMNS * SIDE];
    float sum[ROWS][COLUMNS] = {{0.0f}};
    const int x = get_local_id(0), y = get_local_id(1);
    const int top = get_group_id(1) * ROWS * SIDE, first = get_group_id(0) * COLUMNS * SIDE;
    for (int tile = 0; tile < n; tile += DEPTH) {
#pragma unroll
        for (int r = 0; r < ROWS; r++)
            left[r * SIDE + y][x] = a[(top + r * SIDE + y) * n + tile + x];
#pragma unroll
        for (int s = 0; s < COLUMNS; s++)
            right[y][s * SIDE + x] = b[(tile + y) * n + first + s * SIDE + x];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int k = 0; k < DEPTH; k++) {
            float column[ROWS], row[COLUMNS];
#pragma unroll
            for (int r = 0; r < ROWS; r++)
                column[r] = left[r * SIDE + y][k];
#pragma unroll
            for (int s = 0; s < COLUMNS; s++)
                row[s] = right[k][s * SIDE + x];
#pragma unroll
            for (int r = 0; r < ROWS; r++)
#pragma unroll
                for (int s = 0; s < COLUMNS; s++)
                    sum[r][s] += column[r] * row[s];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
#pragma unroll
    for (int r = 0; r < ROWS; r++)
#pragma unroll
        for (int s = 0; s < COLUMNS; s++)
            c[(top + r * SIDE + y) * n + first + s * SIDE + x] = sum[r][s];
}

__kernel void matmul_registers(__global const float *a, __global const float *b, __global float *c, const int n)
{
    const int row = get_group_id(1) * ROWS * SIDE + get_local_id(1);
    const int column = get_group_id(0) * COLUMNS * SIDE + get_local_id(0);
    float4 sum0 = 0.0f, sum1 = 0.0f;
    for (int k = 0; k < n; k++) {
        const float4 left = (float4)(a[row * n + k], a[(row + SIDE) * n + k], a[(row + 2 * SIDE) * n + k],
                                     a[(row + 3 * SIDE) * n + k]);
        const float right0 = b[k * n + column], right1 = b[k * n + column + SIDE];
        sum0 += left * right0;
        sum1 += left * right1;
    }
    __global float *out = c + row * n + column;
    out[0] = sum0.x, out[SIDE] = sum1.x, out += SIDE * n;
    out[0] = sum0.y, out[SIDE] = sum1.y, out += SIDE * n;
    out[0] = sum0.z, out[SIDE] = sum1.z, out += SIDE * n;
    out[0] = sum0.w, out[SIDE] = sum1.w;
}

// Covers: family transpose; a padded tile in local memory, and strided writes and reads.
// kernel: {"name": "transpose", "generator": "transpose", "tags": ["access:tiled", "padding:1", "lsizes:16x16"],
//   "global": ["n", "n"], "local": [16, 16], "args": {"a": "n*n", "b": "n*n"}, "options": ["-DTILE=16"],
//   "assumptions": "n % 16 == 0", "small": {"n": 48}, "sizes": [{"n": 4096}, {"n": 8192}]}
// kernel: {"name": "transpose_writing", "generator": "transpose",
//   "tags": ["access:strided_writes", "padding:0", "lsizes:32x8"],
//   "global": ["n", "n"], "local": [32, 8], "args": {"a": "n*n", "b": "n*n"}, "options": ["-DTILE=16"],
//   "assumptions": "n % 32 == 0", "small": {"n": 64}, "sizes": [{"n": 4096}, {"n": 8192}]}
// kernel: {"name": "transpose_reading", "generator": "transpose",
//   "tags": ["access:strided_reads", "padding:0", "lsizes:16x16"],
//   "global": ["(n + 15) // 16 * 16", "(n + 15) // 16 * 16"], "local": [16, 16], "args": {"a": "n*n", "b": "n*n"},
//   "options": ["-DTILE=16"], "small": {"n": 48}, "sizes": [{"n": 4096}, {"n": 8192}]}
__kernel __attribute__((reqd_work_group_size(TILE, TILE, 1)))
void transpose(__global const float *a, __global float *b, const int n)
{
    __local float tile[TILE][TILE + 1];
    const int x = get_local_id(0), y = get_local_id(1);
    const int left = get_group_id(0) * TILE, top = get_group_id(1) * TILE;
    tile[y][x] = a[(left + y) * n + top + x];
    barrier(CLK_LOCAL_MEM_FENCE);
    b[(top + y) * n + left + x] = tile[x][y];
}

__kernel void transpose_writing(__global const float *a, __global float *b, const int n)
{
    const size_t x = get_global_id(0), y = get_global_id(1);
    b[x * n + y] = a[y * n + x];
}

__kernel void transpose_reading(__global const float *a, __global float *b, const int n)
{
    const int x = get_global_id(0);
    const int y = get_global_id(1);
    if (x < n && y < n)
        b[x + y * n] = a[y + x * n];
}

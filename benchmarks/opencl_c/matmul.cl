// Covers: family matmul; tiles of rectangular matrices that are fetched by a loop, and the naive loop.
// kernel: {"name": "matmul", "generator": "matmul", "tags": ["tiled_prefetch:True", "shape:short_m", "lsizes:32x16"],
//   "global": ["l", "n"], "local": [32, 16], "args": {"a": "n*m", "b": "m*l", "c": "n*l"},
//   "options": ["-DWIDTH=32", "-DHEIGHT=16"], "assumptions": "l % 32 == 0 and n % 16 == 0 and m % 32 == 0",
//   "small": {"n": 64}, "sizes": [{"n": 1024}, {"n": 2048}]}
// kernel: {"name": "matmul", "generator": "matmul", "tags": ["tiled_prefetch:True", "shape:skinny", "lsizes:16x16"],
//   "global": ["l", "n"], "local": [16, 16], "args": {"a": "n*m", "b": "m*l", "c": "n*l"},
//   "options": ["-DWIDTH=16", "-DHEIGHT=16"], "assumptions": "l % 16 == 0 and n % 16 == 0 and m % 16 == 0",
//   "small": {"n": 32}, "sizes": [{"n": 512}, {"n": 1024}]}
// kernel: {"name": "naive", "generator": "matmul", "tags": ["tiled_prefetch:False", "shape:short_l", "lsizes:16x8"],
//   "global": ["l", "n"], "local": [16, 8], "args": {"a": "n*m", "b": "m*l", "c": "n*l"},
//   "options": ["-DWIDTH=16", "-DHEIGHT=8"], "assumptions": "l % 16 == 0 and n % 8 == 0",
//   "small": {"n": 64}, "sizes": [{"n": 1024}, {"n": 2048}]}
__kernel void matmul(__global const float *a, __global const float *b, __global float *c, const int n, const int m,
                     const int l)
{
    __local float left[HEIGHT][WIDTH], right[WIDTH][WIDTH];
    const int x = get_local_id(0), y = get_local_id(1), row = get_global_id(1), column = get_global_id(0);
    float sum = 0.0f;
    for (int first = 0; first < m; first += WIDTH) {
        left[y][x] = a[row * m + first + x];
        for (int k = y; k < WIDTH; k += HEIGHT)
            right[k][x] = b[(first + k) * l + column];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int k = 0; k < WIDTH; k++)
            sum += left[y][k] * right[k][x];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    c[row * l + column] = sum;
}

__kernel void naive(__global const float *a, __global const float *b, __global float *c, const int n, const int m,
                    const int l)
{
    const int row = get_global_id(1), column = get_global_id(0);
    __global const float *left = a + row * m, *right = b + column;
    float sum = 0.0f;
    for (int k = 0; k < m; k++) {
        sum += *left * *right;
        left++;
        right += l;
    }
    c[row * l + column] = sum;
}

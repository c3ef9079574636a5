// Covers: family matrix_add; rows and columns with an early return, and a branch by the column.
// kernel: {"name": "matrix_add", "generator": "matrix_add", "tags": ["branch:none", "lsizes:16x16"],
//   "global": ["(n + 15) // 16 * 16", "(n + 15) // 16 * 16"], "local": [16, 16],
//   "args": {"a": "n*n", "b": "n*n", "c": "n*n"},
//   "small": {"n": 48}, "sizes": [{"n": 4096}, {"n": 8192}]}
// kernel: {"name": "matrix_add_divergent", "generator": "matrix_add", "tags": ["branch:divergent", "lsizes:32x8"],
//   "global": ["n", "n"], "local": [32, 8], "args": {"a": "n*n", "b": "n*n", "c": "n*n"},
//   "assumptions": "n % 32 == 0", "small": {"n": 64}, "sizes": [{"n": 4096}, {"n": 8192}]}
__kernel void matrix_add(__global const float *a, __global const float *b, __global float *c, const int n)
{
    const int row = get_global_id(1), column = get_global_id(0);
    if (row >= n || column >= n)
        return;
    const int place = row * n + column;
    c[place] = a[place] + b[place];
}

__kernel void matrix_add_divergent(__global const float *a, __global const float *b, __global float *c, const int n)
{
    const size_t column = get_global_id(0);
    const size_t place = get_global_id(1) * n + column;
    const float x = a[place], y = b[place];
    float v = x + y;
    if (column % 2 == 0) {
        v = v * x + y;
        v = v * x + y;
        v = v * x + y;
        v = v * x + y;
    } else {
        v = x / (y + v);
        v = x / (y + v);
        v = x / (y + v);
        v = x / (y + v);
    }
    c[place] = v;
}

// Covers: family column_sum; a pointer that walks down a column, running sums, and a second loop.
// kernel: {"name": "column_sum", "generator": "column_sum", "tags": ["result:sum", "lsize_0:256"],
//   "global": "n", "local": 256, "args": {"a": "m*n", "out": "n"}, "assumptions": "n % 256 == 0 and m >= 1",
//   "small": {"n": 256, "m": 20}, "sizes": [{"n": 8192, "m": 2048}, {"n": 65536, "m": 512}]}
// kernel: {"name": "column_prefix", "generator": "column_sum", "tags": ["result:prefix", "lsize_0:64"],
//   "global": "(n + 63) // 64 * 64", "local": 64, "args": {"a": "m*n", "out": "m*n"}, "assumptions": "m >= 1",
//   "small": {"n": 128, "m": 20}, "sizes": [{"n": 8192, "m": 2048}, {"n": 65536, "m": 512}]}
// kernel: {"name": "column_scaled", "generator": "column_sum", "tags": ["result:scaled", "lsize_0:256"],
//   "global": "n", "local": 256, "args": {"a": "m*n", "out": "m*n"}, "assumptions": "n % 256 == 0 and m >= 1",
//   "small": {"n": 256, "m": 20}, "sizes": [{"n": 8192, "m": 2048}, {"n": 65536, "m": 512}]}
__kernel void column_sum(__global const float *a, __global float *out, const int n, const int m)
{
    const int column = get_global_id(0);
    float sum = 0.0f;
    __global const float *element = a + column;
    for (int row = 0; row < m; row++) {
        sum += *element;
        element += n;
    }
    out[column] = sum;
}

__kernel void column_prefix(__global const float *a, __global float *out, const int n, const int m)
{
    const size_t column = get_global_id(0);
    if (column >= n)
        return;
    float sum = 0.0f;
    for (size_t row = 0; row < m; row++) {
        sum += a[row * n + column];
        out[row * n + column] = sum;
    }
}

__kernel void column_scaled(__global const float *a, __global float *out, const int n, const int m)
{
    const int column = get_global_id(0);
    float sum = 0.0f;
    for (int row = 0; row < m; row++)
        sum += a[row * n + column];
    for (int row = 0; row < m; row++)
        out[row * n + column] = a[row * n + column] / sum;
}

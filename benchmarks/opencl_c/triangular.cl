// Covers: family triangular; loops as long as the work-item's number.
// kernel: {"name": "triangle_rows", "generator": "triangular", "tags": ["access:rows", "lsize_0:256"],
//   "global": "n", "local": 256, "args": {"a": "n*n", "out": "n"}, "assumptions": "n % 256 == 0",
//   "small": {"n": 256}, "sizes": [{"n": 2048}, {"n": 4096}]}
// kernel: {"name": "triangle_columns", "generator": "triangular", "tags": ["access:columns", "lsize_0:64"],
//   "global": "n", "local": 64, "args": {"a": "n*n", "out": "n"}, "assumptions": "n % 64 == 0",
//   "small": {"n": 128}, "sizes": [{"n": 2048}, {"n": 4096}]}
// kernel: {"name": "triangular_product", "generator": "triangular", "tags": ["access:product", "lsize_0:256"],
//   "global": ["n", "n"], "local": [16, 16], "args": {"a": "n*n", "b": "n*n", "out": "n*n"},
//   "assumptions": "n % 16 == 0", "small": {"n": 48}, "sizes": [{"n": 1024}, {"n": 2048}]}
__kernel void triangle_rows(__global const float *a, __global float *out, const int n)
{
    const int row = get_global_id(0);
    float sum = 0.0f;
    for (int k = 0; k <= row; k++)
        sum += a[row * n + k];
    out[row] = sum;
}

__kernel void triangle_columns(__global const float *a, __global float *out, const int n)
{
    const size_t column = get_global_id(0);
    float sum = 0.0f;
    for (size_t k = 0; k < column + 1; k++)
        sum += a[k * n + column];
    out[column] = sum;
}

__kernel void triangular_product(__global const float *a, __global const float *b, __global float *out, const int n)
{
    const int row = get_global_id(1), column = get_global_id(0);
    float sum = 0.0f;
    for (int k = row; k >= 0; --k)
        sum += a[row * n + k] * b[k * n + column];
    out[row * n + column] = sum;
}

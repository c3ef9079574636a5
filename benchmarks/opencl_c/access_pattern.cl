// Covers: family access_pattern; a sum of a row's successive elements, rows that are walked down, and places shared.
// kernel: {"name": "window_sum", "generator": "access_pattern",
//   "tags": ["direction:load", "arrays:1", "lstride_0:1", "lstride_1:0", "gstride_0:tile", "gstride_1:0",
//     "loopstride:1", "lsizes:256x1"],
//   "global": "n", "local": 256, "args": {"a0": "n + m - 1", "out": "n"}, "assumptions": "n % 256 == 0 and m >= 1",
//   "small": {"n": 256, "m": 16}, "sizes": [{"n": 262144, "m": 256}, {"n": 4194304, "m": 256}]}
// kernel: {"name": "tiles_of_rows", "generator": "access_pattern",
//   "tags": ["direction:load", "arrays:1", "lstride_0:1", "lstride_1:n", "gstride_0:0", "gstride_1:tile",
//     "loopstride:tile_0", "lsizes:16x16"],
//   "global": ["n", "n"], "local": [16, 16], "args": {"a0": "n*n", "out": "n*n"},
//   "assumptions": "n % 16 == 0 and 16 * m <= n and m >= 1",
//   "small": {"n": 48, "m": 3}, "sizes": [{"n": 4096, "m": 16}, {"n": 4096, "m": 64}]}
// kernel: {"name": "copy_two", "generator": "access_pattern",
//   "tags": ["direction:copy", "arrays:2", "lstride_0:1", "lstride_1:n", "gstride_0:tile", "gstride_1:tile",
//     "loopstride:0", "lsizes:16x16"],
//   "global": ["n", "n"], "local": [16, 16], "args": {"a0": "n*n", "a1": "n*n", "b0": "n*n", "b1": "n*n"},
//   "assumptions": "n % 16 == 0", "small": {"n": 48, "m": 1}, "sizes": [{"n": 4096, "m": 1}, {"n": 8192, "m": 1}]}
__kernel void window_sum(__global const float *a0, __global float *out, const int n, const int m)
{
    const int i = get_global_id(0);
    float sum = 0.0f;
    for (int k = i; k < i + m; k++)
        sum += a0[k];
    out[i] = sum;
}

__kernel void tiles_of_rows(__global const float *a0, __global float *out, const int n, const int m)
{
    const int row = get_global_id(1), width = get_local_size(0);
    __global const float *element = a0 + row * n + get_local_id(0);
    float sum = 0.0f;
    for (int tile = 0; tile < m; tile++, element += width)
        sum += *element;
    out[row * n + get_global_id(0)] = sum;
}

__kernel void copy_two(__global const float *a0, __global const float *a1, __global float *b0, __global float *b1,
                       const int n)
{
    const size_t place = get_global_id(0) + get_global_id(1) * get_global_size(0);
    b0[place] = a0[place];
    b1[place] = a1[place];
}

// Covers: family permute_axes; work-groups in three dimensions, and a macro for the place of an element.
// kernel: {"name": "permute_axes", "generator": "permute_axes",
//   "tags": ["order:kij", "coalesced:load", "lsizes:32x8"],
//   "global": ["n", "n", "n"], "local": [32, 8, 1], "args": {"a": "n*n*n", "out": "n*n*n"},
//   "assumptions": "n % 32 == 0", "small": {"n": 32}, "sizes": [{"n": 256}, {"n": 512}]}
// kernel: {"name": "reverse_axes", "generator": "permute_axes",
//   "tags": ["order:kji", "coalesced:store", "lsizes:32x8"],
//   "global": ["(n + 31) // 32 * 32", "(n + 7) // 8 * 8", "n"], "local": [32, 8, 1],
//   "args": {"a": "n*n*n", "out": "n*n*n"}, "small": {"n": 32}, "sizes": [{"n": 256}, {"n": 512}]}
#define PLACE(x, y, z) (((x) * n + (y)) * n + (z))

__kernel void permute_axes(__global const float *a, __global float *out, const int n)
{
    const int i = get_global_id(2), j = get_global_id(1), k = get_global_id(0);
    out[PLACE(k, i, j)] = a[PLACE(i, j, k)];
}

__kernel void reverse_axes(__global const float *a, __global float *out, const int n)
{
    const size_t i = get_global_id(0), j = get_global_id(1), k = get_global_id(2);
    if (i >= n || j >= n || k >= n)
        return;
    out[PLACE(k, j, i)] = a[PLACE(i, j, k)];
}

// Covers: family global_copy; a copy by float4, sums of two arrays at a stride, and indices stored.
// kernel: {"name": "copy4", "generator": "global_copy", "tags": ["stride:1", "loads:1", "lsize_0:256"],
//   "global": "n // 4", "local": 256, "args": {"in0": "n // 4", "out": "n // 4"}, "assumptions": "n % 1024 == 0",
//   "small": {"n": 2048}, "sizes": [{"n": 16777216}, {"n": 67108864}]}
// kernel: {"name": "add_strided", "generator": "global_copy", "tags": ["stride:2", "loads:2", "lsize_0:256"],
//   "global": "(n + 255) // 256 * 256", "local": 256, "args": {"in0": "2*n", "in1": "2*n", "out": "2*n"},
//   "small": {"n": 512}, "sizes": [{"n": 16777216}, {"n": 67108864}]}
// kernel: {"name": "store_index", "generator": "global_copy", "tags": ["stride:1", "loads:0", "lsize_0:512"],
//   "global": "n", "local": 512, "args": {"out": "n"}, "assumptions": "n % 512 == 0",
//   "small": {"n": 1024}, "sizes": [{"n": 16777216}, {"n": 67108864}]}
// differs: copy4: f_thread_groups: each work-item copies four elements
// differs: copy4: f_work_items: each work-item copies four elements
// differs: store_index: f_op_int32_madd: the index comes from get_global_id; Loopy computes it from group and item
__kernel void copy4(__global const float4 *in0, __global float4 *out, const int n)
{
    const int i = get_global_id(0);
    if (i >= n / 4)
        return;
    out[i] = in0[i];
}

__kernel void add_strided(__global const float *in0, __global const float *in1, __global float *out, const int n)
{
    const int item = get_global_id(0);
    if (item >= n)
        return;
    const int i = item << 1;
    out[i] = in0[i] + in1[i];
}

__kernel void store_index(__global float *out, const int n)
{
    const int i = get_global_id(0);
    out[i] = i;
}

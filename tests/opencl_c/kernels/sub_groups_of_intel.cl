// Covers: Intel's functions of sub-groups.
// launch: {"kernel": "sub_groups_of_intel", "global": [64], "local": [32], "options": ["-cl-std=CL3.0"], "args": [{"name": "u", "array": "uint32", "size": 256}, {"name": "out", "array": "uint32", "size": 512, "output": true}], "needs": "cl_intel_subgroups", "exact": true}
__attribute__((intel_reqd_sub_group_size(8)))
__kernel void sub_groups_of_intel(__global const uint *u, __global uint *out)
{
    const int i = get_global_id(0), first = i - get_sub_group_local_id();
    const uint v = u[i], w = u[i + 64];
    out[i] = intel_sub_group_shuffle(v, 7 - get_sub_group_local_id());
    out[i + 64] = intel_sub_group_shuffle_xor(v, 3);
    out[i + 128] = intel_sub_group_shuffle_up(v, w, 2);
    out[i + 192] = intel_sub_group_shuffle_down(v, w, 3);
    const uint2 two = intel_sub_group_block_read2(u + 2 * first);
    out[i + 256] = two.x + 3 * two.y + intel_sub_group_block_read(u + first);
    intel_sub_group_block_write2(out + 320 + 2 * first, two + 1);
}

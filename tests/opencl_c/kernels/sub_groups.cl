// Covers: sub-groups: reductions, scans, shuffles, broadcasts, votes and ballots, of some work-items too.
// launch: {"kernel": "sub_groups", "global": [64], "local": [32], "options": ["-cl-std=CL3.0"], "args": [{"name": "a", "array": "float32", "size": 64}, {"name": "u", "array": "int32", "size": 64, "range": [-50, 50]}, {"name": "x", "array": "float32", "size": 512, "output": true}, {"name": "out", "array": "int32", "size": 1536, "output": true}], "needs": "cl_intel_required_subgroup_size", "optimized": true}
__attribute__((intel_reqd_sub_group_size(16)))
__kernel void sub_groups(__global const float *a, __global const int *u, __global float *x, __global int *out)
{
    const int i = get_global_id(0);
    const uint lane = get_sub_group_local_id();
    const float v = a[i];
    const int n = u[i];
    x[i] = sub_group_reduce_add(v);
    x[i + 64] = sub_group_scan_inclusive_max(v);
    x[i + 128] = sub_group_scan_exclusive_add(v);
    x[i + 192] = sub_group_shuffle_xor(v, 5);
    x[i + 256] = sub_group_broadcast(v, 3);
    const float2 both = (float2)(v, 2 * v);
    const float2 other = sub_group_broadcast(both, 9);
    x[i + 320] = other.x + other.y;
    x[i + 384] = sub_group_non_uniform_scan_exclusive_mul(v);
    x[i + 448] = sub_group_rotate(v, 3);
    out[i] = sub_group_reduce_min(n);
    out[i + 64] = sub_group_scan_exclusive_max(n);
    out[i + 128] = sub_group_all(n > -40) + 2 * sub_group_any(n > 40);
    out[i + 192] = get_sub_group_size() + 100 * get_sub_group_id() + 1000 * get_num_sub_groups();
    out[i + 256] = get_max_sub_group_size() + lane;
    const uint4 said = sub_group_ballot(n > 0);
    out[i + 320] = said.x;
    out[i + 384] = sub_group_ballot_bit_count(said) + 100 * sub_group_ballot_exclusive_scan(said);
    out[i + 448] = sub_group_ballot_find_lsb(said) + 100 * sub_group_ballot_find_msb(said);
    out[i + 512] = sub_group_inverse_ballot(said) + 2 * sub_group_ballot_bit_extract(said, 2);
    out[i + 576] = get_sub_group_lt_mask().x;
    int sum = 0;
    if (lane % 3 == 1) {
        sum = sub_group_non_uniform_reduce_add(n) + (sub_group_elect() ? 1000 : 0);
        sum += sub_group_non_uniform_scan_inclusive_max(n);
        sum += sub_group_non_uniform_all(n > -50);
    }
    out[i + 640] = sum;
    out[i + 704] = sub_group_broadcast_first(n) + sub_group_non_uniform_all_equal(n);
    out[i + 768] = lane < 12 ? sub_group_shuffle_down(n, 4) : 0;
    out[i + 832] = lane >= 4 ? sub_group_shuffle_up(n, 4) : 0;
    x[i + 448] += sub_group_clustered_reduce_max(v, 4);
    sub_group_barrier(CLK_GLOBAL_MEM_FENCE);
}

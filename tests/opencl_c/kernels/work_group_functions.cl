// Covers: functions of work-groups: reductions, scans, broadcasts, votes.
// launch: {"kernel": "work_group_functions", "global": [16, 8], "local": [8, 4], "options": ["-cl-std=CL3.0"], "args": [{"name": "a", "array": "float32", "size": 128}, {"name": "u", "array": "int32", "size": 128, "range": [-50, 50]}, {"name": "x", "array": "float32", "size": 512, "output": true}, {"name": "out", "array": "int32", "size": 640, "output": true}]}
__kernel void work_group_functions(__global const float *a, __global const int *u, __global float *x,
                                   __global int *out)
{
    const int i = get_global_id(1) * 16 + get_global_id(0);
    x[i] = work_group_reduce_add(a[i]);
    x[i + 128] = work_group_scan_inclusive_add(a[i]);
    x[i + 256] = work_group_scan_exclusive_min(a[i]);
    x[i + 384] = work_group_broadcast(a[i], 3, 2);
    out[i] = work_group_reduce_max(u[i]);
    out[i + 128] = work_group_scan_exclusive_add(u[i]);
    out[i + 256] = work_group_all(u[i] < 50) + 2 * work_group_any(u[i] > 48);
    out[i + 384] = work_group_scan_inclusive_min(u[i]);
    out[i + 512] = get_local_linear_id() + get_group_id(0);
}

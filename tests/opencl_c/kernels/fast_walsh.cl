// Covers: pairs found by % and division, butterflies in local memory.
// launch: {"kernel": "fast_walsh", "global": [64], "local": [32], "args": [{"name": "a", "array": "int32", "size": 128, "output": true}], "exact": true}
__kernel void fast_walsh(__global int *a)
{
    __local int part[64];
    const int tid = get_local_id(0), base = get_group_id(0) * 64;
    part[tid] = a[base + tid];
    part[tid + 32] = a[base + tid + 32];
    for (int step = 1; step < 64; step *= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        const int group = tid % step, pair = 2 * step * (tid / step) + group, match = pair + step;
        const int t1 = part[pair], t2 = part[match];
        part[pair] = t1 + t2;
        part[match] = t1 - t2;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    a[base + tid] = part[tid];
    a[base + tid + 32] = part[tid + 32];
}

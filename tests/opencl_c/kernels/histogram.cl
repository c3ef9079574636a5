// Covers: atomics on local and global memory whose results do not depend on their order.
// launch: {"kernel": "histogram", "global": [128], "local": [32], "args": [{"name": "data", "array": "uint8", "size": 512, "range": [0, 255]}, {"name": "counts", "array": "uint32", "size": 16, "output": true, "range": [0, 1]}, {"name": "n", "scalar": "uint32", "value": 512}], "exact": true}
#define BINS 16
__kernel void histogram(__global const uchar *data, __global uint *counts, uint n)
{
    __local uint mine[BINS];
    for (uint bin = get_local_id(0); bin < BINS; bin += get_local_size(0))
        mine[bin] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint i = get_global_id(0); i < n; i += get_global_size(0))
        atomic_inc(&mine[data[i] % BINS]);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint bin = get_local_id(0); bin < BINS; bin += get_local_size(0))
        if (mine[bin])
            atomic_add(counts + bin, mine[bin]);
}

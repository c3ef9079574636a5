// Covers: a tree reduction in a local argument, a grid-stride loop, halving by a shift.
// launch: {"kernel": "sum", "global": [256], "local": [64], "args": [{"name": "a", "array": "float32", "size": 1024}, {"name": "sums", "array": "float32", "size": 4, "output": true}, {"name": "part", "local_bytes": 256}, {"name": "n", "scalar": "int32", "value": 1000}]}
__kernel void sum(__global const float *a, __global float *sums, __local float *part, int n)
{
    const uint l = get_local_id(0);
    float mine = 0;
    for (uint i = get_global_id(0); i < n; i += get_global_size(0))
        mine += a[i];
    part[l] = mine;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint half_size = get_local_size(0) >> 1; half_size > 0; half_size >>= 1) {
        if (l < half_size)
            part[l] += part[l + half_size];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (!l)
        sums[get_group_id(0)] = part[0];
}

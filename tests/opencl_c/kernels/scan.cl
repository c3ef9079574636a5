// Covers: an exclusive scan up and down a tree, indices of leaves computed from an offset that doubles.
// launch: {"kernel": "scan", "global": [64], "local": [32], "args": [{"name": "input", "array": "int32", "size": 128}, {"name": "output", "array": "int32", "size": 128, "output": true}, {"name": "temp", "local_bytes": 256}, {"name": "n", "scalar": "int32", "value": 64}], "exact": true}
__kernel void scan(__global const int *input, __global int *output, __local int *temp, const int n)
{
    const int l = get_local_id(0), base = get_group_id(0) * n;
    int offset = 1;
    temp[2 * l] = input[base + 2 * l];
    temp[2 * l + 1] = input[base + 2 * l + 1];
    for (int d = n >> 1; d > 0; d >>= 1, offset *= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (l < d) {
            int ai = offset * (2 * l + 1) - 1, bi = offset * (2 * l + 2) - 1;
            temp[bi] += temp[ai];
        }
    }
    if (l == 0)
        temp[n - 1] = 0;
    for (int d = 1; d < n; d *= 2) {
        offset >>= 1;
        barrier(CLK_LOCAL_MEM_FENCE);
        if (l < d) {
            int ai = offset * (2 * l + 1) - 1, bi = offset * (2 * l + 2) - 1, t = temp[ai];
            temp[ai] = temp[bi];
            temp[bi] += t;
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    output[base + 2 * l] = temp[2 * l];
    output[base + 2 * l + 1] = temp[2 * l + 1];
}

// Covers: nested loops of barriers, xor of indices, a helper that swaps through local pointers.
// launch: {"kernel": "bitonic_sort", "global": [128], "local": [64], "args": [{"name": "keys", "array": "uint32", "size": 128, "output": true, "range": [0, 100000]}], "exact": true}
void order(__local uint *a, __local uint *b, bool is_up)
{
    if ((*a > *b) == is_up) {
        uint kept = *a;
        *a = *b;
        *b = kept;
    }
}

__kernel void bitonic_sort(__global uint *keys)
{
    __local uint part[64];
    const uint l = get_local_id(0), g = get_global_id(0);
    part[l] = keys[g];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint size = 2; size <= 64; size <<= 1)
        for (uint stride = size >> 1; stride; stride >>= 1) {
            const uint other = l ^ stride;
            if (other > l)
                order(part + l, &part[other], (l & size) == 0);
            barrier(CLK_LOCAL_MEM_FENCE);
        }
    keys[g] = part[l];
}

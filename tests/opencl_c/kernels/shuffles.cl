// Covers: shuffle and shuffle2 with masks from data and of other widths.
// launch: {"kernel": "shuffles", "global": [16], "local": [4], "args": [{"name": "a", "array": "float32", "size": 64}, {"name": "masks", "array": "uint32", "size": 64}, {"name": "b", "array": "float32", "size": 64, "output": true}], "exact": true}
__kernel void shuffles(__global const float4 *a, __global const uint4 *masks, __global float4 *b)
{
    const int i = get_global_id(0);
    float4 v = shuffle(a[i], masks[i] % 4u);
    float2 w = shuffle(v, (uint2)(3, 0));
    float8 both = shuffle2(a[i], v, (uint8)(0, 4, 1, 5, 2, 6, 3, 7));
    b[i] = shuffle2(w, both.odd.lo, masks[i] & 3u);
}

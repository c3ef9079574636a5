// Covers: half as storage: vload_half, vstore_half with roundings, vectors of halves, pointers to half.
// launch: {"kernel": "half_storage", "global": [32], "local": [8], "args": [{"name": "a", "array": "float16", "size": 160}, {"name": "b", "array": "float16", "size": 160, "output": true}, {"name": "c", "array": "float32", "size": 32, "output": true}], "exact": true}
__kernel void half_storage(__global const half *a, __global half *b, __global float *c)
{
    const int i = get_global_id(0);
    float x = vload_half(i, a);
    float4 v = vload_half4(i, a + 32);
    vstore_half(x * 2.0f, i, b);
    vstore_half4_rte(v.wzyx, i, b + 32);
    c[i] = x + v.x;
}

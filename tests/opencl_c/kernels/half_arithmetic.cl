// Covers: arithmetic in half and half vectors, conversions from and to half.
// launch: {"kernel": "half_arithmetic", "global": [32], "local": [8], "args": [{"name": "a", "array": "float16", "size": 64}, {"name": "b", "array": "float16", "size": 64, "output": true}], "needs": "fp16"}
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
__kernel void half_arithmetic(__global const half2 *a, __global half2 *b)
{
    const int i = get_global_id(0);
    half2 v = a[i];
    half s = (half)2.0f * v.x;
    v.y += s;
    b[i] = v * (half)0.5h + convert_half2((float2)(1.0f, (float)s));
}

// Covers: built-ins that take a scalar for all components of a vector.
// launch: {"kernel": "widened", "global": [16], "local": [8], "args": [{"name": "a", "array": "float32", "size": 64, "range": [-2, 2]}, {"name": "n", "array": "int32", "size": 64, "range": [-9, 9]}, {"name": "b", "array": "float32", "size": 64, "output": true}, {"name": "m", "array": "int32", "size": 64, "output": true}]}
__kernel void widened(__global const float4 *a, __global const int4 *n, __global float4 *b, __global int4 *m)
{
    const int i = get_global_id(0);
    float4 v = a[i];
    float4 r = fmin(v, 0.5f) + fmax(v, -0.5f) + min(v, 1) + max(v, v.x) + clamp(v, -1.0f, 1.0f) + mix(v, v.yzwx, 0.25f);
    r += step(0.1f, v) + smoothstep(-1.0f, 1.0f, v) + ldexp(v, 2) + ldexp(v, n[i]) + pown(v, n[i] & 3);
    b[i] = r * 2 + 1.0f / (v * v + 1);
    m[i] = clamp(n[i], -3, 3) + max(n[i], 1) * (n[i] > 0 ? (int4)1 : (int4)-1);
}

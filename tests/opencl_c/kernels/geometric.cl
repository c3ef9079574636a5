// Covers: dot, cross, normalize, length, distance and their fast forms, of vectors of two, three and four.
// launch: {"kernel": "geometric", "global": [16], "local": [8], "args": [{"name": "a", "array": "float32", "size": 64}, {"name": "b", "array": "float32", "size": 64, "range": [-1, 1]}, {"name": "c", "array": "float32", "size": 64, "output": true}]}
__kernel void geometric(__global const float4 *a, __global const float4 *b, __global float4 *c)
{
    const int i = get_global_id(0);
    float3 u = a[i].xyz, v = b[i].xyz;
    float3 normal = cross(u, v);
    float4 r = cross(a[i], b[i]);
    r.w = dot(u, v) + length(normal) + distance(a[i], b[i]) + fast_length(u.xy) + dot(u.x, v.x);
    r.xyz += normalize(u) + fast_normalize(u) * fast_distance(a[i].lo, b[i].hi);
    c[i] = r;
}

// Covers: select and bitselect of scalars and vectors, any and all, as_type between vectors.
// launch: {"kernel": "selections", "global": [16], "local": [16], "args": [{"name": "a", "array": "float32", "size": 64, "range": [-2, 2]}, {"name": "b", "array": "float32", "size": 64, "range": [-2, 2]}, {"name": "c", "array": "float32", "size": 64, "output": true}, {"name": "d", "array": "int32", "size": 16, "output": true}], "exact": true}
__kernel void selections(__global const float4 *a, __global const float4 *b, __global float4 *c, __global int *d)
{
    const int i = get_global_id(0);
    float4 u = a[i], v = b[i];
    int4 less = u < v;
    float4 smaller = select(v, u, less), mixed = bitselect(u, v, as_float4((uint4)(0x0000ffffu)));
    float one = select(u.x, v.y, as_uint(u.z) >> 31), two = bitselect(u.w, v.w, as_float(0x7f0000ff));
    c[i] = (float4)(smaller.xy, mixed.z, one > two ? one : two);
    d[i] = any(less) + 2 * all(less) + 4 * any(u.xy > 0.0f) + select(8, 16, less.y) + all((short2)(-1, -1));
}

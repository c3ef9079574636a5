// Covers: comparisons, logic and conditionals of vectors, component by component; ! of vectors.
// launch: {"kernel": "vector_logic", "global": [16], "local": [8], "args": [{"name": "a", "array": "float32", "size": 64, "range": [-2, 2]}, {"name": "n", "array": "int32", "size": 64, "range": [-3, 3]}, {"name": "b", "array": "float32", "size": 64, "output": true}, {"name": "m", "array": "int32", "size": 64, "output": true}], "exact": true}
__kernel void vector_logic(__global const float4 *a, __global const int4 *n, __global float4 *b, __global int4 *m)
{
    const int i = get_global_id(0);
    float4 v = a[i], w = v.wzyx;
    int4 k = n[i];
    b[i] = v < w ? v : w;
    b[i] = (k != 0 && v > 0.0f) ? b[i] : -b[i];
    int4 r = !k + (k >= 1) * 2 + (v == v.xxyy) * 4 + ((v <= w) & ~(k < 0)) + (v || w) * 8;
    r = i > 7 ? r : -r;
    r ^= k ? (int4)(1, 2, 3, 4) : k.yzwx;
    m[i] = r;
}

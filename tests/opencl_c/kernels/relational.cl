// Covers: isnan and its kin of scalars and vectors, infinities and NaN as constants, signbit.
// launch: {"kernel": "relational", "global": [16], "local": [4], "args": [{"name": "a", "array": "float32", "size": 64, "range": [-2, 2]}, {"name": "out", "array": "int32", "size": 64, "output": true}], "exact": true}
__kernel void relational(__global const float4 *a, __global int4 *out)
{
    const int i = get_global_id(0);
    float4 v = a[i];
    if (i % 3 == 0)
        v.x = NAN;
    if (i % 4 == 1)
        v.y = -INFINITY;
    int4 r = isnan(v) + 2 * isinf(v) + 4 * isgreater(v, v.yzwx) + 8 * isfinite(v) + 16 * isordered(v, v.wxyz);
    r += islessgreater(v, (float4)0.0f) * 32 + signbit(v) * 64 + isnotequal(v, v) * 128;
    r.x += isnan(v.x) + isnormal(v.z) * 2 + (isunordered(v.x, v.y) << 2) + (v.x == v.x) + isequal(v.w, MAXFLOAT);
    out[i] = r;
}

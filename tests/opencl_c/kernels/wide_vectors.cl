// Covers: float8 and float16, sums over halves, vloadn and vstoren with other widths.
// launch: {"kernel": "wide_vectors", "global": [8], "local": [4], "args": [{"name": "a", "array": "float32", "size": 136}, {"name": "b", "array": "float32", "size": 64, "output": true}]}
float total(float16 v)
{
    float8 a = v.lo + v.hi;
    float4 b = a.lo + a.hi;
    float2 c = b.lo + b.hi;
    return c.x + c.y;
}

__kernel void wide_vectors(__global const float *a, __global float *b)
{
    const int i = get_global_id(0);
    float16 v = vload16(i, a);
    float8 w = vload8(0, a + i) * v.even - v.odd;
    w.s7 = total(v);
    w.lo += vload4(i, a);
    w.hi.lo = vload2(i, a + 1) / 2.0f;
    vstore8(w, i, b);
}

// Covers: every way to name components, as values and as targets, nested, of vectors up to 16.
// launch: {"kernel": "swizzles", "global": [8], "local": [4], "args": [{"name": "a", "array": "int32", "size": 128}, {"name": "out", "array": "int32", "size": 128, "output": true}], "exact": true}
__kernel void swizzles(__global const int16 *a, __global int16 *out)
{
    const int i = get_global_id(0);
    int16 v = a[i];
    int8 w = v.sfEdC3210;
    int4 x = w.s0246, y = w.odd;
    x.xz = y.yw;
    x.hi.y += y.lo.x;
    y.wzyx = x;
    v.s01ab = (int4)(y.x, x.yyy);
    v.hi.lo.even *= (int2)(2, 3);
    out[i] = v;
    out[i].s7 = x.x + y.s3;
    out[i].sab += x.zw;
}

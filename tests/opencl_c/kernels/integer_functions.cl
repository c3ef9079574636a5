// Covers: the integer built-ins, of scalars and vectors of several sizes.
// launch: {"kernel": "integer_functions", "global": [16], "local": [8], "args": [{"name": "a", "array": "uint32", "size": 64, "range": [0, 4294967295]}, {"name": "b", "array": "uint32", "size": 64, "range": [0, 4294967295]}, {"name": "out", "array": "uint32", "size": 64, "output": true}, {"name": "wide", "array": "int64", "size": 16, "output": true}], "exact": true}
__kernel void integer_functions(__global const uint4 *a, __global const uint4 *b, __global uint4 *out, __global long *wide)
{
    const int i = get_global_id(0);
    uint4 u = a[i], v = b[i], r;
    int4 s = as_int4(u), t = as_int4(v);
    r = popcount(u) + clz(v) + rotate(u, v & 31u) + hadd(u, v) + rhadd(u, v) + mul_hi(u, v) + mad_hi(u, v, u);
    r ^= add_sat(u, v) ^ sub_sat(u, v) ^ mad_sat(u & 0xffffu, v & 0xffffu, v) ^ abs_diff(s, t) ^ abs(s >> 1);
    r += as_uint4(add_sat(s, t) ^ sub_sat(s, t) ^ mul_hi(s, t) ^ hadd(s, t) ^ max(s, t) ^ min(s, 7) ^ clamp(t, -9, 9));
    r.x += mul24(u.x & 0xfffu, v.x & 0xfffu) + mad24((int)(u.y & 0xff), (int)(v.y & 0xff), 3);
    r.y += (uint)upsample((uchar)(u.z & 0xff), (uchar)1) + (uint)upsample((short)(u.w & 0x7f), (ushort)2);
    r.z += rotate((uchar)(u.x & 0xff), (uchar)3) + clz((ushort)(v.x & 0xff)) + popcount((char)(u.y & 0x7f));
    out[i] = r;
    wide[i] = mul_hi((long)s.x << 20, (long)t.x << 20) + upsample(s.y, v.y) + (long)abs((long)s.z);
}

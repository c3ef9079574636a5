// Covers: casts, convert_ functions with saturation and roundings, as_ functions, conversions that nobody writes.
// launch: {"kernel": "conversions", "global": [16], "local": [8], "args": [{"name": "a", "array": "float32", "size": 64, "range": [-300, 300]}, {"name": "n", "array": "int32", "size": 64, "range": [-70000, 70000]}, {"name": "out", "array": "int32", "size": 64, "output": true}, {"name": "f", "array": "float32", "size": 64, "output": true}, {"name": "small", "array": "int16", "size": 16, "output": true}], "exact": true}
__kernel void conversions(__global const float4 *a, __global const int4 *n, __global int4 *out, __global float4 *f, __global short *small)
{
    const int i = get_global_id(0);
    float4 v = a[i];
    int4 m = n[i];
    int4 r = convert_int4(v) + convert_int4_rte(v) * 2 + convert_int4_rtp(v) * 3 + convert_int4_rtn(v) * 5;
    r += convert_int4(convert_uchar4_sat(v)) + convert_int4(convert_char4_sat_rte(v)) + convert_int4(convert_short4_sat(m));
    r.x += (int)v.x + (char)m.x + (ushort)m.y + (int)(uchar)m.z;
    out[i] = r;
    f[i] = convert_float4(m) + as_float4(as_int4(v)) + convert_float4_rtz(m);
    f[i].x = m.x;
    char c = (char)(m.y & 63);
    c += 1.5f;
    c <<= 1;
    short s = convert_short_sat(v.x * 200.0f);
    s ^= c;
    small[i] = s + (m.x > 0) + as_char2((short)(s & 0x7f7f)).y;
    uint u = -1;
    long wide = u + m.x;
    out[i].w += wide > 0 ? (int)(wide >> 8) : (int)convert_uchar(c);
}

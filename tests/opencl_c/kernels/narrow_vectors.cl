// Covers: vectors of char, uchar, short and ushort: saturation, comparisons, averages, shifts.
// launch: {"kernel": "narrow_vectors", "global": [8], "local": [4], "args": [{"name": "a", "array": "uint8", "size": 128, "range": [0, 255]}, {"name": "b", "array": "int8", "size": 128, "range": [-128, 127]}, {"name": "out", "array": "uint8", "size": 128, "output": true}, {"name": "shorts", "array": "int16", "size": 64, "output": true}], "exact": true}
__kernel void narrow_vectors(__global const uchar16 *a, __global const char16 *b, __global uchar16 *out, __global short8 *shorts)
{
    const int i = get_global_id(0);
    uchar16 u = a[i];
    char16 c = b[i];
    uchar16 r = add_sat(u, u.s0) ^ rhadd(u, as_uchar16(c)) ^ abs_diff(c, c.s1032547698badcfe) ^ (u >> (uchar)2);
    char16 mask = c > (char16)(5) || u == (uchar16)(7);
    out[i] = mask ? r : ~r;
    short8 s = convert_short8(u.lo) * (short)3 - convert_short8(c.hi);
    s = s < (short8)(0) ? -s : s;
    s.s0 = !u.x + -c.y;
    shorts[i] = s % (short8)(100) + (short8)(popcount(u.s0));
}

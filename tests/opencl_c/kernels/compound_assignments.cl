// Covers: every compound assignment, on scalars, vectors, components, pointers and elements.
// launch: {"kernel": "compound_assignments", "global": [16], "local": [8], "args": [{"name": "a", "array": "int32", "size": 68}, {"name": "out", "array": "int32", "size": 64, "output": true}], "exact": true}
__kernel void compound_assignments(__global const int *a, __global int4 *out)
{
    const int i = get_global_id(0);
    __global const int *p = a;
    p += 2 * i;
    p -= i;
    int x = p[3] + 1, y = *p++ + 7, z = *++p;
    x += y;
    x -= 3;
    x *= 5;
    y /= 2;
    y %= 4;
    x &= 0xff;
    x |= 0x100;
    x ^= y;
    x <<= 2;
    x >>= 1;
    uchar narrow = 250;
    narrow += x;
    narrow >>= 1;
    int4 v = (int4)(x, y, z, narrow);
    v += 1;
    v *= v.wzyx;
    v.xy <<= 3;
    v.zw -= (int2)(5, 6);
    v &= (int4)(0xffff);
    v %= 1000;
    v >>= (int4)(0, 1, 2, 3);
    out[i] = v;
    out[i].y |= 1;
    out[i].x++;
    --out[i].z;
    ((__global int *)out)[4 * i + 3] += a[i];
}

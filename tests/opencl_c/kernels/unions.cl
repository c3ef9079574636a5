// Covers: unions that show a number's bits, an anonymous union inside a struct.
// launch: {"kernel": "unions", "global": [32], "local": [8], "args": [{"name": "a", "array": "float32", "size": 32, "range": [-4, 4]}, {"name": "bits", "array": "uint32", "size": 32, "output": true}, {"name": "bytes", "array": "uint8", "size": 32, "output": true}], "exact": true}
union Bits {
    float f;
    uint u;
    uchar4 c;
    ushort half_words[2];
};

struct Tagged {
    int kind;
    union {
        int i;
        float f;
    };
};

__kernel void unions(__global const float *a, __global uint *bits, __global uchar *bytes)
{
    int i = get_global_id(0);
    union Bits b;
    b.f = a[i];
    b.u ^= 0x80000000u;
    struct Tagged t = {1, {0}};
    t.f = b.f;
    bits[i] = as_uint(t.f) ^ (uint)t.i ^ b.u ^ (uint)b.half_words[1];
    bytes[i] = b.c.w + (uchar)t.kind;
}

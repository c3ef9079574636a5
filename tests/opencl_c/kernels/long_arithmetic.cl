// Covers: 64-bit integers: hashing, shifts by long counts, division and remainder of negative numbers, literals.
// launch: {"kernel": "long_arithmetic", "global": [32], "local": [8], "args": [{"name": "a", "array": "int64", "size": 32, "range": [-1000000, 1000000]}, {"name": "out", "array": "uint64", "size": 32, "output": true}, {"name": "q", "array": "int64", "size": 64, "output": true}], "exact": true}
__kernel void long_arithmetic(__global const long *a, __global ulong *out, __global long2 *q)
{
    const size_t i = get_global_id(0);
    ulong h = 14695981039346656037UL;
    for (int byte = 0; byte < 8; ++byte) {
        h ^= ((ulong)a[i] >> (8 * byte)) & 0xff;
        h *= 1099511628211UL;
    }
    out[i] = h ^ (h >> 33) ^ rotate(h, 13UL);
    long d = (long)(i % 7) - 3;
    if (d != 0)
        q[i] = (long2)(a[i] / d, a[i] % d);
    else
        q[i] = (long2)(LONG_MIN, LONG_MAX - 1);
    q[i].y += a[i] >> 3;
    q[i] += (long2)(-1L, i << 3L) & (a[i] < 0 ? (long2)(3) : (long2)(~0L));
}

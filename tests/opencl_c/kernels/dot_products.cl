// Covers: products of bytes, packed in words and as vectors, summed in whole numbers.
// launch: {"kernel": "dot_products", "global": [32], "local": [16], "options": ["-cl-std=CL3.0"], "args": [{"name": "a", "array": "uint32", "size": 64, "range": [0, 4294967295]}, {"name": "out", "array": "int32", "size": 256, "output": true}], "exact": true, "needs": "cl_khr_integer_dot_product"}
__kernel void dot_products(__global const uint *a, __global int *out)
{
    const int i = get_global_id(0);
    const uint x = a[i], y = a[i + 32];
    out[8 * i] = dot_4x8packed_ss_int(x, y);
    out[8 * i + 1] = dot_4x8packed_uu_uint(x, y);
    out[8 * i + 2] = dot_4x8packed_us_int(x, y);
    out[8 * i + 3] = dot_acc_sat_4x8packed_su_int(x, y, 5);
    out[8 * i + 4] = dot_acc_sat_4x8packed_ss_int(x, y, 2147483000);
    out[8 * i + 5] = dot(as_char4(x), as_char4(y));
    out[8 * i + 6] = dot(as_uchar4(x), as_uchar4(y));
    out[8 * i + 7] = dot_acc_sat(as_char4(x), as_uchar4(y), i);
}

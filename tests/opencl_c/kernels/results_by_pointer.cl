// Covers: fract, modf, sincos, frexp, remquo, lgamma_r: second results through pointers to private, local and global, and to a vector's first component.
// launch: {"kernel": "results_by_pointer", "global": [16], "local": [8], "args": [{"name": "a", "array": "float32", "size": 16, "range": [1, 9]}, {"name": "b", "array": "float32", "size": 64, "output": true}, {"name": "n", "array": "int32", "size": 32, "output": true}]}
__kernel void results_by_pointer(__global const float *a, __global float4 *b, __global int *n)
{
    __local float wholes[8];
    const int i = get_global_id(0), l = get_local_id(0);
    float cosine, floor_of;
    int exponent, sign, quotient;
    float4 r;
    r.x = fract(a[i], &floor_of) + 10.0f * floor_of;
    r.y = modf(-a[i], wholes + l) + wholes[l];
    r.z = sincos(a[i], &cosine) * cosine;
    r.w = frexp(a[i], &exponent) + remquo(a[i], 0.75f, &quotient) + lgamma_r(a[i] + 0.5f, &sign);
    float2 whole2, part2 = fract(r.xy, &whole2);
    float2 circle;
    circle.y = sincos(a[i], (float *)&circle);
    b[i] = r + (float4)(part2, whole2) + circle.xyxy;
    n[i] = exponent + 100 * sign + 1000 * (quotient & 7);
    n[i + 16] = ilogb(a[i]);
}

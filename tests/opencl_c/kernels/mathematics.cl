// Covers: the mathematical built-ins that one meets, of scalars and vectors, native_ and half_ ones among them.
// launch: {"kernel": "mathematics", "global": [16], "local": [8], "args": [{"name": "a", "array": "float32", "size": 64}, {"name": "b", "array": "float32", "size": 64, "output": true}]}
__kernel void mathematics(__global const float4 *a, __global float4 *b)
{
    const int i = get_global_id(0);
    float4 v = a[i], r;
    r = exp2(v) + log2(v) + exp10(v * 0.1f) + log10(v) + pow(v, v.wzyx) + powr(v, (float4)1.5f) + cbrt(v) + hypot(v, v.yxwz);
    r += floor(v * 3) + ceil(v * 3) + trunc(v * 3) + round(v * 3) + rint(v * 3) + fabs(-v) + fmod(v, (float4)0.3f);
    r += sinh(v) + cosh(v) + tanh(v) + atan2(v, v.zwxy) + asin(v * 0.5f) + acos(v * 0.5f) + atan(v) + tan(v) + sinpi(v) + cospi(v);
    r += expm1(v) + log1p(v) + erf(v) + copysign(v, (float4)(-1, 1, -1, 1)) + fdim(v, v.yzwx) + maxmag(v, -v.yxwz) + minmag(v, v.yxwz);
    r.x += native_sin(v.x) + half_cos(v.x) + native_divide(v.x, v.y) + native_recip(v.z) + half_sqrt(v.w) + rootn(v.x, 3);
    r.y += degrees(v.x) + radians(v.y) + sign(v.z) + remainder(v.w, 0.3f) + logb(v.x) + nextafter(v.y, 2.0f) + tgamma(v.x + 1);
    r.z += mad(v.x, v.y, v.z) + fma(v.x, v.y, v.z) + (float)ilogb(v.w) + native_exp(v.x) + native_log(v.y) + native_rsqrt(v.z);
    b[i] = r;
}

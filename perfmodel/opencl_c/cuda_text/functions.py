"""The built-in functions of OpenCL C as functions of CUDA C++, each what NVIDIA's OpenCL makes of it or close to it.

Its functions are older than those of CUDA. So powers are exponentials of logarithms in two floats, the sum of a series
over (m - 1) / (m + 1) and of an exponent; sines in double precision are reduced after Cody and Waite, by three parts of
pi / 2, and go on with one of two polynomials (those of Cephes, Moshier 1989), each by itself.
"""

from __future__ import annotations

import re

WHOLE = frozenset(
    (
        *("dot", "cross", "length", "distance", "normalize", "fast_length", "fast_distance", "fast_normalize"),
        *("any", "all", "shuffle", "shuffle2"),
    )
)
"""These functions look at all numbers of a vector, the others at one after the other."""
TESTS = frozenset(
    f"is{name}"
    for name in (
        *("equal", "notequal", "greater", "greaterequal", "less", "lessequal", "lessgreater"),
        *("finite", "inf", "nan", "normal", "ordered", "unordered"),
    )
) | {"signbit"}
"""These functions give 1 where something is so, and -1 in the numbers of a vector."""

_SAME = (
    *("acos", "acosh", "asin", "asinh", "atan", "atanh", "cbrt", "ceil", "cosh", "cospi", "erf", "erfc", "exp"),
    *("exp10", "exp2", "expm1", "fabs", "floor", "lgamma", "log", "log10", "log1p", "log2", "logb", "rint", "round"),
    *("rsqrt", "sinh", "sinpi", "sqrt", "tan", "tanh", "tgamma", "trunc"),
)
_SAME_OF_TWO = ("atan2", "copysign", "fdim", "fmax", "fmin", "fmod", "nextafter", "remainder")
_HALF = ("cos", "exp", "exp10", "exp2", "log", "log10", "log2", "rsqrt", "sin", "sqrt", "tan")
_ROUGH = ("cos", "exp", "exp10", "log", "log10", "log2", "sin", "tan")

FUNCTIONS = (
    """#include <cuda_fp16.h>
#define CL static __device__ __forceinline__
#define ONE(name) \\
    CL float cl_##name(float x) { return name##f(x); } \\
    CL double cl_##name(double x) { return name(x); }
#define TWO(name) \\
    CL float cl_##name(float x, float y) { return name##f(x, y); } \\
    CL double cl_##name(double x, double y) { return name(x, y); }
CL float cl_sin(float x) { return sinf(x); }
CL float cl_cos(float x) { return cosf(x); }
#define ROUGH(name) CL float cl_native_##name(float x) { return __##name##f(x); }
#define HALF(name) CL float cl_half_##name(float x) { return cl_##name(x); }
"""
    + "\n".join(
        [
            *(f"ONE({name})" for name in _SAME),
            *(f"TWO({name})" for name in _SAME_OF_TWO),
            *(f"ROUGH({name})" for name in _ROUGH),
            *(f"HALF({name})" for name in _HALF),
        ]
    )
    + r"""
CL unsigned int cl_groups_x() { unsigned int n; asm("mov.u32 %0, %%nctaid.x;" : "=r"(n)); return n; }
CL unsigned int cl_groups_y() { unsigned int n; asm("mov.u32 %0, %%nctaid.y;" : "=r"(n)); return n; }
CL unsigned int cl_groups_z() { unsigned int n; asm("mov.u32 %0, %%nctaid.z;" : "=r"(n)); return n; }
template <int N> struct cl_bytes { char bytes[N]; };
template <int N> struct cl_unsigned { typedef unsigned char type; };
template <> struct cl_unsigned<2> { typedef unsigned short type; };
template <> struct cl_unsigned<4> { typedef unsigned int type; };
template <> struct cl_unsigned<8> { typedef unsigned long long type; };
template <typename T, int N> struct __attribute__((packed, aligned(N))) cl_packed { T number; };
template <typename R, typename S> CL R cl_bits(S given) {
    R found;
    memcpy(&found, &given, sizeof(R));
    return found;
}
CL float cl_power(float size, float y) {
    bool is_small = size < 1.17549435e-38f;
    unsigned int bits = __float_as_uint(is_small ? size * 16777216.0f : size);
    float part = __uint_as_float((bits & 0x7fffffu) | 0x3f800000u);
    float binary = (is_small ? -151.0f : -127.0f) + (float)(bits >> 23);
    bool is_above = part > 1.41421354f;
    binary = is_above ? binary + 1.0f : binary;
    part = is_above ? part * 0.5f : part;
    float above = part - 1.0f, inverse;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(part + 1.0f));
    float near = inverse * (above + above), square = near * near;
    float more = fmaf(fmaf(2.232142857e-3f, square, 1.25e-2f), square, 8.333333333e-2f);
    more = __fmul_rn(__fmul_rn(more, square), near);
    float off = above - near;
    off = __fmul_rn(inverse, fmaf(-near, above, off + off));
    float sum = more + near, low = off + (more + (near - sum));
    float high = sum + low;
    low = low + (sum - high);
    float whole = __fmul_rn(binary, 0.693145752f);
    sum = whole + high;
    low = __fmul_rn(binary, 1.42860677e-6f) + (low + (high + (whole - sum)));
    high = sum + low;
    low = low + (sum - high);
    float scaled = fabsf(y) > 1e34f ? y * 1.220703125e-4f : y;
    float product = __fmul_rn(scaled, high), rest = fmaf(scaled, low, fmaf(scaled, high, -product));
    float logarithm = __fadd_rn(product, rest);
    rest = __fadd_rn(__fadd_rn(product, -logarithm), rest);
    int last = __float_as_int(logarithm);
    rest = last == 0x42b17218 ? rest + 3.0517578125e-5f : rest;
    logarithm = last == 0x42b17218 ? __int_as_float(last - 1) : logarithm;
    float twos = truncf(__fmul_rn(logarithm, 1.44269502f));
    twos = fabsf(twos) > 126.0f ? copysignf(126.0f, twos) : twos;
    float left = fmaf(twos, 1.90465421e-9f, fmaf(twos, -0.693147182f, logarithm)) * 1.44269502f, power;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(left));
    power *= __int_as_float(__float_as_int(twos + 12583039.0f) << 23);
    return isinf(power) ? power : fmaf(power, rest, power);
}
CL float cl_pow_of_others(float x, float y) {
    float parity = fabsf(y - 2.0f * truncf(y * 0.5f)), size = fabsf(x), power = cl_power(size, y);
    if (x == 0.0f) power = y < 0.0f ? __int_as_float(0x7f800000) : parity == 1.0f ? x : 0.0f;
    else if (x < 0.0f) power = truncf(y) != y ? __int_as_float(0x7fffffff) : parity == 1.0f ? -power : power;
    if (__float_as_int(size + fabsf(y)) < 0x7f800000) return power;
    if (isnan(x) || isnan(y)) return x + y;
    if (isinf(y)) return size == 1.0f ? 1.0f : (size > 1.0f) == (y > 0.0f) ? fabsf(y) : 0.0f;
    return isinf(x) ? (y < 0.0f ? 0.0f : size) * (x < 0.0f && parity == 1.0f ? -1.0f : 1.0f) : power;
}
CL float cl_pow(float x, float y) {
    float power = cl_pow_of_others(x, y);
    return x == 1.0f || y == 0.0f ? 1.0f : power;
}
CL double cl_pow(double x, double y) { return pow(x, y); }
CL double cl_sine(double x, int turn) {
    asm volatile("" : "+d"(x));
    if (isinf(x)) return __longlong_as_double(0x7ff8000000000000ll);
    if (fabs(x) > 2147483648.0) return turn ? cos(x) : sin(x);
    int turns = __double2int_rn(x * 0.63661977236758134);
    double n = -turns, rest = fma(n, 6.123233995736766e-17, fma(n, 1.5707963267948966, x)), sine;
    rest = fma(n, -1.4973849048591833e-33, rest);
    double square = rest * rest;
    turns += turn;
    if (turns & 1) {
        sine = fma(-1.135853652138768173e-11, square, 2.08757008419747316778e-9);
        sine = fma(sine, square, -2.75573141792967388112e-7);
        sine = fma(sine, square, 2.48015872888517045348e-5);
        sine = fma(sine, square, -1.38888888888730564116e-3);
        sine = fma(sine, square, 4.16666666666665929218e-2);
        sine = fma(fma(sine, square, -0.5), square, 1.0);
    } else {
        sine = fma(1.5896230157654656806e-10, square, -2.50507477628578072866e-8);
        sine = fma(sine, square, 2.75573136213857245213e-6);
        sine = fma(sine, square, -1.98412698295895385996e-4);
        sine = fma(sine, square, 8.33333333332211858878e-3);
        sine = fma(sine, square, -1.66666666666666307295e-1);
        sine = fma(sine * square, rest, rest);
    }
    return turns & 2 ? -sine : sine;
}
CL double cl_sin(double x) { return cl_sine(x, 0); }
CL double cl_cos(double x) { return cl_sine(x, 1); }
#define OF_FLOATS(T, S) \
    CL T cl_acospi(T x) { return cl_acos(x) * (T)0.318309886183790671538; } \
    CL T cl_asinpi(T x) { return cl_asin(x) * (T)0.318309886183790671538; } \
    CL T cl_atanpi(T x) { return cl_atan(x) * (T)0.318309886183790671538; } \
    CL T cl_atan2pi(T y, T x) { return cl_atan2(y, x) * (T)0.318309886183790671538; } \
    CL T cl_tanpi(T x) { return cl_sinpi(x) / cl_cospi(x); } \
    CL T cl_clamp(T x, T low, T high) { return cl_fmin(cl_fmax(x, low), high); } \
    CL T cl_max(T x, T y) { return cl_fmax(x, y); } \
    CL T cl_min(T x, T y) { return cl_fmin(x, y); } \
    CL T cl_mix(T x, T y, T part) { return x + (y - x) * part; } \
    CL T cl_step(T edge, T x) { return x < edge ? (T)0 : (T)1; } \
    CL T cl_smoothstep(T low, T high, T x) { \
        T t = cl_clamp((x - low) / (high - low), (T)0, (T)1); \
        return t * t * ((T)3 - (T)2 * t); \
    } \
    CL T cl_sign(T x) { return x > 0 ? (T)1 : x < 0 ? (T)-1 : x == 0 ? x : (T)0; } \
    CL T cl_degrees(T x) { return x * (T)57.295779513082320877; } \
    CL T cl_radians(T x) { return x * (T)0.017453292519943295769; } \
    CL T cl_mad(T x, T y, T z) { return cl_fma(x, y, z); } \
    CL T cl_powr(T x, T y) { return cl_pow(x, y); } \
    CL T cl_maxmag(T x, T y) { \
        return cl_fabs(x) > cl_fabs(y) ? x : cl_fabs(y) > cl_fabs(x) ? y : cl_fmax(x, y); \
    } \
    CL T cl_minmag(T x, T y) { \
        return cl_fabs(x) < cl_fabs(y) ? x : cl_fabs(y) < cl_fabs(x) ? y : cl_fmin(x, y); \
    } \
    CL T cl_fract_0(T x) { return cl_fmin(x - cl_floor(x), (T)S); } \
    CL T cl_fract_1(T x) { return cl_floor(x); } \
    CL T cl_modf_0(T x) { return x - cl_trunc(x); } \
    CL T cl_modf_1(T x) { return cl_trunc(x); } \
    CL T cl_lgamma_r_0(T x) { return cl_lgamma(x); } \
    CL int cl_lgamma_r_1(T x) { return x < 0 && cl_floor(x) != x && cl_fmod(cl_floor(x), (T)2) != 0 ? -1 : 1; } \
    CL int cl_isequal(T x, T y) { return x == y; } \
    CL int cl_isnotequal(T x, T y) { return x != y; } \
    CL int cl_isgreater(T x, T y) { return x > y; } \
    CL int cl_isgreaterequal(T x, T y) { return x >= y; } \
    CL int cl_isless(T x, T y) { return x < y; } \
    CL int cl_islessequal(T x, T y) { return x <= y; } \
    CL int cl_islessgreater(T x, T y) { return x < y || x > y; } \
    CL int cl_isordered(T x, T y) { return x == x && y == y; } \
    CL int cl_isunordered(T x, T y) { return x != x || y != y; } \
    CL int cl_isnan(T x) { return isnan(x) ? 1 : 0; } \
    CL int cl_isinf(T x) { return isinf(x) ? 1 : 0; } \
    CL int cl_isfinite(T x) { return isfinite(x) ? 1 : 0; }
CL float cl_fma(float x, float y, float z) { return fmaf(x, y, z); }
CL double cl_fma(double x, double y, double z) { return fma(x, y, z); }
CL float cl_hypot(float x, float y) { return hypotf(x, y); }
CL double cl_hypot(double x, double y) {
    if (isinf(x) || isinf(y)) return __longlong_as_double(0x7ff0000000000000ll);
    if (isnan(x) || isnan(y)) return x + y;
    double larger = fmax(fabs(x), fabs(y)), smaller = fmin(fabs(x), fabs(y)), part = smaller / larger;
    return larger == 0 ? larger + smaller : larger * __dsqrt_rn(fma(part, part, 1.0));
}
CL float cl_rounded_root(float x) { return __fsqrt_rn(x); }
CL double cl_rounded_root(double x) { return __dsqrt_rn(x); }
template <typename T, int N> CL T cl_largest(const T (&v)[N]) {
    T found = cl_fabs(v[0]);
    for (int i = 1; i < N; i++) found = found < cl_fabs(v[i]) ? cl_fabs(v[i]) : found;
    return found;
}
template <typename T, int N> CL T cl_scaled_root(const T (&v)[N], T largest) {
    T sum = cl_fabs(v[0]) / largest;
    sum *= sum;
    for (int i = 1; i < N; i++) {
        T part = cl_fabs(v[i]) / largest;
        sum = cl_fma(part, part, sum);
    }
    return cl_rounded_root(sum);
}
template <typename T, int N> CL T cl_length(const T (&v)[N]) {
    T largest = cl_largest(v);
    bool is_infinite = false;
    for (int i = 0; i < N; i++) is_infinite |= isinf(v[i]);
    if (is_infinite) return (T)__int_as_float(0x7f800000);
    return largest == 0 ? largest : largest * cl_scaled_root(v, largest);
}
template <typename T, int N> CL void cl_normalize(T (&v)[N]) {
    for (int i = 0; i < N; i++) if (isnan(v[i])) {
        for (int j = 0; j < N; j++) v[j] = (T)__int_as_float(0x7fffffff);
        return;
    }
    T largest = cl_largest(v);
    if (largest == 0) return;
    if (isinf(largest)) {
        for (int i = 0; i < N; i++) v[i] = cl_copysign(isinf(v[i]) ? (T)1 : (T)0, v[i]);
        largest = 1;
    }
    T root = cl_scaled_root(v, largest), whole = largest * root;
    if (!isinf(whole)) {
        for (int i = 0; i < N; i++) v[i] = v[i] / whole;
        return;
    }
    for (int i = 0; i < N; i++) v[i] = v[i] / root / largest;
}
OF_FLOATS(float, 0x1.fffffep-1f)
OF_FLOATS(double, 0x1.fffffffffffffp-1)
CL float cl_pown(float x, int n) {
    asm("mov.u32 %0, %0;" : "+r"(n));
    int most = n / 65536 * 65536;
    return cl_pow(x, (float)most) * cl_pow(x, (float)(n - most));
}
CL double cl_pown(double x, int n) {
    asm("mov.u32 %0, %0;" : "+r"(n));
    return cl_pow(x, (double)n);
}
CL float cl_rootn(float x, int n) {
    float part = 1 / (float)n;
    return cl_pow(x, part) * cl_pow(x, fmaf(-part, (float)n, 1.0f) / (float)n);
}
CL double cl_rootn(double x, int n) { return cl_pow(x, 1 / (double)n); }
CL int cl_isnormal(float x) { return isfinite(x) && fabsf(x) >= 1.17549435e-38f; }
CL int cl_isnormal(double x) { return isfinite(x) && fabs(x) >= 2.2250738585072014e-308; }
CL int cl_signbit(float x) { return __float_as_int(x) < 0; }
CL int cl_signbit(double x) { return __double2hiint(x) < 0; }
CL float cl_ldexp(float x, int n) { return ldexpf(x, n); }
CL double cl_ldexp(double x, int n) { return ldexp(x, n); }
CL int cl_ilogb(float x) { return ilogbf(x); }
CL int cl_ilogb(double x) { return ilogb(x); }
CL float cl_frexp_0(float x) { int n; return frexpf(x, &n); }
CL int cl_frexp_1(float x) { int n; frexpf(x, &n); return n; }
CL double cl_frexp_0(double x) { int n; return frexp(x, &n); }
CL int cl_frexp_1(double x) { int n; frexp(x, &n); return n; }
CL float cl_remquo_0(float x, float y) { int n; return remquof(x, y, &n); }
CL int cl_remquo_1(float x, float y) { int n; remquof(x, y, &n); return n; }
CL double cl_remquo_0(double x, double y) { int n; return remquo(x, y, &n); }
CL int cl_remquo_1(double x, double y) { int n; remquo(x, y, &n); return n; }
CL void cl_sincos(float x, float &sine, float &cosine) { sincosf(x, &sine, &cosine); }
CL void cl_sincos(double x, double &sine, double &cosine) { sincos(x, &sine, &cosine); }
CL float cl_nan(unsigned int n) { return __uint_as_float(0x7fc00000u | n); }
CL double cl_nan(unsigned long long n) { return __longlong_as_double(0x7ff8000000000000ull | n); }
CL float cl_native_exp2(float x) { float y; asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x)); return y; }
CL float cl_native_powr(float x, float y) { return __powf(x, y); }
CL float cl_half_powr(float x, float y) { return cl_powr(x, y); }
CL float cl_native_divide(float x, float y) { return __fdividef(x, y); }
CL float cl_half_divide(float x, float y) { return x / y; }
CL float cl_native_recip(float x) { return __fdividef(1.0f, x); }
CL float cl_half_recip(float x) { return 1.0f / x; }
CL float cl_native_rsqrt(float x) { return rsqrtf(x); }
CL float cl_native_sqrt(float x) { return sqrtf(x); }
#define OF_WHOLE(T, U, BITS) \
    CL T cl_max(T x, T y) { return x > y ? x : y; } \
    CL T cl_min(T x, T y) { return x < y ? x : y; } \
    CL T cl_clamp(T x, T low, T high) { return cl_min(cl_max(x, low), high); } \
    CL U cl_abs(T x) { return (U)(x < (T)0 ? -x : x); } \
    CL U cl_abs_diff(T x, T y) { return x > y ? (U)((U)x - (U)y) : (U)((U)y - (U)x); } \
    CL T cl_hadd(T x, T y) { return (T)((x & y) + ((x ^ y) >> 1)); } \
    CL T cl_rhadd(T x, T y) { return (T)((x | y) - ((x ^ y) >> 1)); } \
    CL T cl_rotate(T x, T n) { \
        if (BITS == 32) return (T)__funnelshift_l((unsigned int)(U)x, (unsigned int)(U)x, (unsigned int)n); \
        return (T)(((U)x << (n & (BITS - 1))) | ((U)x >> ((BITS - n) & (BITS - 1)))); \
    } \
    CL T cl_popcount(T x) { \
        return (T)(BITS == 64 ? __popcll((unsigned long long)(U)x) : __popc((unsigned int)(U)x)); \
    } \
    CL T cl_clz(T x) { \
        return (T)(BITS == 64 ? __clzll((long long)x) : __clz((int)(unsigned int)(U)x) - (32 - (BITS & 63))); \
    } \
    CL T cl_ctz(T x) { return (T)cl_popcount((T)(~x & (x - (T)1))); } \
    CL T cl_mad24(T x, T y, T z) { return (T)(x * y + z); } \
    CL T cl_mul24(T x, T y) { return (T)(x * y); }
#define SHORT(T, BITS) \
    CL T cl_mul_hi(T x, T y) { return (T)(((int)x * (int)y) >> BITS); } \
    CL T cl_add_sat(T x, T y) { return (T)cl_clamp((int)x + (int)y, (int)(T)LOW(T, BITS), (int)(T)HIGH(T, BITS)); } \
    CL T cl_sub_sat(T x, T y) { return (T)cl_clamp((int)x - (int)y, (int)(T)LOW(T, BITS), (int)(T)HIGH(T, BITS)); }
#define LOW(T, BITS) ((T)-1 < (T)0 ? -(1 << (BITS - 1)) : 0)
#define HIGH(T, BITS) ((T)-1 < (T)0 ? (1 << (BITS - 1)) - 1 : (1 << BITS) - 1)
OF_WHOLE(signed char, unsigned char, 8) OF_WHOLE(unsigned char, unsigned char, 8)
OF_WHOLE(short, unsigned short, 16) OF_WHOLE(unsigned short, unsigned short, 16)
OF_WHOLE(int, unsigned int, 32) OF_WHOLE(unsigned int, unsigned int, 32)
OF_WHOLE(long long, unsigned long long, 64) OF_WHOLE(unsigned long long, unsigned long long, 64)
SHORT(signed char, 8) SHORT(unsigned char, 8) SHORT(short, 16) SHORT(unsigned short, 16)
CL int cl_mul_hi(int x, int y) { return __mulhi(x, y); }
CL unsigned int cl_mul_hi(unsigned int x, unsigned int y) { return __umulhi(x, y); }
CL long long cl_mul_hi(long long x, long long y) { return __mul64hi(x, y); }
CL unsigned long long cl_mul_hi(unsigned long long x, unsigned long long y) { return __umul64hi(x, y); }
template <typename T> CL T cl_mad_hi(T x, T y, T z) { return cl_mul_hi(x, y) + z; }
CL unsigned int cl_add_sat(unsigned int x, unsigned int y) { return x + y < x ? 0xffffffffu : x + y; }
CL unsigned int cl_sub_sat(unsigned int x, unsigned int y) { return x > y ? x - y : 0u; }
CL unsigned long long cl_add_sat(unsigned long long x, unsigned long long y) { return x + y < x ? ~0ull : x + y; }
CL unsigned long long cl_sub_sat(unsigned long long x, unsigned long long y) { return x > y ? x - y : 0ull; }
CL int cl_add_sat(int x, int y) { return (int)cl_clamp((long long)x + y, -2147483648ll, 2147483647ll); }
CL int cl_sub_sat(int x, int y) { return (int)cl_clamp((long long)x - y, -2147483648ll, 2147483647ll); }
CL short cl_upsample(signed char x, unsigned char y) { return (short)(((int)x << 8) | y); }
CL unsigned short cl_upsample(unsigned char x, unsigned char y) { return (unsigned short)((x << 8) | y); }
CL int cl_upsample(short x, unsigned short y) { return ((int)x << 16) | y; }
CL unsigned int cl_upsample(unsigned short x, unsigned short y) { return ((unsigned int)x << 16) | y; }
CL long long cl_upsample(int x, unsigned int y) { return ((long long)x << 32) | y; }
CL unsigned long long cl_upsample(unsigned int x, unsigned int y) { return ((unsigned long long)x << 32) | y; }
template <typename T, typename C> CL T cl_select(T other, T then, C condition) { return condition ? then : other; }
CL float cl_bitselect(float x, float y, float mask) {
    int m = __float_as_int(mask);
    return __int_as_float((__float_as_int(x) & ~m) | (__float_as_int(y) & m));
}
template <typename T> CL T cl_bitselect(T x, T y, T mask) { return (T)((x & ~mask) | (y & mask)); }
#define ATOMIC(name, function, T) CL T cl_atomic_##name(T *at, T given) { return function(at, given); }
#define ATOMICS(T) \
    ATOMIC(add, atomicAdd, T) ATOMIC(xchg, atomicExch, T) ATOMIC(min, atomicMin, T) ATOMIC(max, atomicMax, T) \
    ATOMIC(and, atomicAnd, T) ATOMIC(or, atomicOr, T) ATOMIC(xor, atomicXor, T) \
    CL T cl_atomic_sub(T *at, T given) { return atomicAdd(at, (T)-given); } \
    CL T cl_atomic_inc(T *at) { return atomicAdd(at, (T)1); } \
    CL T cl_atomic_dec(T *at) { return atomicAdd(at, (T)-1); } \
    CL T cl_atomic_cmpxchg(T *at, T old, T given) { return atomicCAS(at, old, given); } \
    CL T cl_atomic_load(T *at) { return *(volatile T *)at; } \
    CL void cl_atomic_store(T *at, T given) { *(volatile T *)at = given; }
ATOMICS(int) ATOMICS(unsigned int) ATOMICS(unsigned long long)
#define LONG(name) \
    CL long long cl_atomic_##name(long long *at, long long given) { \
        return (long long)cl_atomic_##name((unsigned long long *)at, (unsigned long long)given); \
    }
LONG(add) LONG(sub) LONG(xchg) LONG(and) LONG(or) LONG(xor)
CL long long cl_atomic_min(long long *at, long long given) { return atomicMin(at, given); }
CL long long cl_atomic_max(long long *at, long long given) { return atomicMax(at, given); }
CL long long cl_atomic_inc(long long *at) { return cl_atomic_add(at, 1ll); }
CL long long cl_atomic_dec(long long *at) { return cl_atomic_add(at, -1ll); }
CL long long cl_atomic_cmpxchg(long long *at, long long old, long long given) {
    return (long long)atomicCAS((unsigned long long *)at, (unsigned long long)old, (unsigned long long)given);
}
CL float cl_atomic_add(float *at, float given) { return atomicAdd(at, given); }
CL float cl_atomic_xchg(float *at, float given) { return atomicExch(at, given); }
CL double cl_atomic_add(double *at, double given) { return atomicAdd(at, given); }
CL float cl_atomic_load(float *at) { return *(volatile float *)at; }
CL void cl_atomic_store(float *at, float given) { *(volatile float *)at = given; }
"""
)

KNOWN = frozenset(re.findall(r"\bcl_(\w+)\(", FUNCTIONS)) | {
    *_SAME,
    *_SAME_OF_TWO,
    *(f"native_{name}" for name in _ROUGH),
    *(f"half_{name}" for name in _HALF),
}
"""The functions that are there, dots in their names as ``_``."""

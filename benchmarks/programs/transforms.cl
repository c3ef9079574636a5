// Fourier, cosine, wavelet and Hadamard transforms, mostly a stage a launch.

inline float2 cmul(float2 a, float2 b) { return (float2)(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x); }

// A decimation-in-time stage in place; the input is in bit-reversed order.
__kernel void fft_radix2_stage(__global float2 *data, int n, int half_size)
{
    int t = get_global_id(0);
    if (t >= n / 2) return;
    int j = t % half_size;
    int i = (t / half_size) * 2 * half_size + j;
    float angle = -M_PI_F * j / half_size;
    float2 w = (float2)(cos(angle), sin(angle));
    float2 u = data[i];
    float2 v = cmul(w, data[i + half_size]);
    data[i] = u + v;
    data[i + half_size] = u - v;
}

// Stockham, radix 4, from one array to the other; p is the product of the radices before.
__kernel void fft_radix4_stockham(__global const float2 *x, __global float2 *y, const int n, const int p)
{
    const int t = n / 4;
    const int i = get_global_id(0);
    if (i >= t) return;
    const int k = i & (p - 1);
    const float alpha = -2 * M_PI_F * (float)k / (float)(4 * p);
    float c1;
    const float s1 = sincos(alpha, &c1);
    const float2 w1 = (float2)(c1, s1), w2 = cmul(w1, w1), w3 = cmul(w1, w2);
    float2 a = x[i];
    float2 b = cmul(w1, x[i + t]);
    float2 c = cmul(w2, x[i + 2 * t]);
    float2 d = cmul(w3, x[i + 3 * t]);
    float2 s = a + c, m = a - c, q = b + d, r = b - d;
    r = (float2)(r.y, -r.x);
    const int out = ((i - k) << 2) + k;
    y[out] = s + q;
    y[out + p] = m + r;
    y[out + 2 * p] = s - q;
    y[out + 3 * p] = m - r;
}

__kernel void fft_local_256(__global const float *re, __global const float *im, __global float2 *out, int batch)
{
    __local float2 s[256];
    int l = get_local_id(0), b = get_group_id(0);
    if (b >= batch) return;
    // bit reversal while loading
    for (int e = l; e < 256; e += 128) {
        int r = 0, v = e;
        for (int bit = 0; bit < 8; bit++) {
            r = (r << 1) | (v & 1);
            v >>= 1;
        }
        s[r] = (float2)(re[b * 256 + e], im[b * 256 + e]);
    }
    for (int h = 1; h < 256; h <<= 1) {
        barrier(CLK_LOCAL_MEM_FENCE);
        int j = l & (h - 1);
        int i = ((l - j) << 1) + j;
        float ang = -3.14159265358979f * j / h;
        float2 w = (float2)(native_cos(ang), native_sin(ang));
        float2 u = s[i], v = cmul(w, s[i + h]);
        s[i] = u + v;
        s[i + h] = u - v;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    out[b * 256 + l] = s[l];
    out[b * 256 + l + 128] = s[l + 128];
}

__kernel void bit_reverse(__global const double2 *in, __global double2 *out, uint log2n)
{
    uint i = get_global_id(0);
    if (i >> log2n) return;
    uint r = i;
    r = ((r >> 1) & 0x55555555u) | ((r & 0x55555555u) << 1);
    r = ((r >> 2) & 0x33333333u) | ((r & 0x33333333u) << 2);
    r = ((r >> 4) & 0x0f0f0f0fu) | ((r & 0x0f0f0f0fu) << 4);
    r = ((r >> 8) & 0x00ff00ffu) | ((r & 0x00ff00ffu) << 8);
    r = (r >> 16) | (r << 16);
    out[r >> (32 - log2n)] = in[i];
}

__constant float dct_table[8][8] = {
    {0.35355339f, 0.35355339f, 0.35355339f, 0.35355339f, 0.35355339f, 0.35355339f, 0.35355339f, 0.35355339f},
    {0.49039264f, 0.41573481f, 0.27778512f, 0.09754516f, -0.09754516f, -0.27778512f, -0.41573481f, -0.49039264f},
    {0.46193977f, 0.19134172f, -0.19134172f, -0.46193977f, -0.46193977f, -0.19134172f, 0.19134172f, 0.46193977f},
    {0.41573481f, -0.09754516f, -0.49039264f, -0.27778512f, 0.27778512f, 0.49039264f, 0.09754516f, -0.41573481f},
    {0.35355339f, -0.35355339f, -0.35355339f, 0.35355339f, 0.35355339f, -0.35355339f, -0.35355339f, 0.35355339f},
    {0.27778512f, -0.49039264f, 0.09754516f, 0.41573481f, -0.41573481f, -0.09754516f, 0.49039264f, -0.27778512f},
    {0.19134172f, -0.46193977f, 0.46193977f, -0.19134172f, -0.19134172f, 0.46193977f, -0.46193977f, 0.19134172f},
    {0.09754516f, -0.27778512f, 0.41573481f, -0.49039264f, 0.49039264f, -0.41573481f, 0.27778512f, -0.09754516f}};

// 8 x 8 blocks of an image of bytes, as in still-picture coders.
__kernel void dct_8x8(__global const uchar *image, __global float *coef, int width)
{
    __local float block[8][8], rows[8][8];
    int lx = get_local_id(0), ly = get_local_id(1);
    int x = get_global_id(0), y = get_global_id(1);
    block[ly][lx] = (float)image[y * width + x] - 128.0f;
    barrier(CLK_LOCAL_MEM_FENCE);
    float s = 0.0f;
    for (int k = 0; k < 8; k++)
        s += dct_table[lx][k] * block[ly][k];
    rows[ly][lx] = s;
    barrier(CLK_LOCAL_MEM_FENCE);
    s = 0.0f;
    for (int k = 0; k < 8; k++)
        s += dct_table[ly][k] * rows[k][lx];
    coef[y * width + x] = s;
}

__kernel void haar_level(__global const float *in, __global float *out, int length)
{
    int i = get_global_id(0);
    int pairs = length / 2;
    if (i >= pairs) return;
    float a = in[2 * i], b = in[2 * i + 1];
    out[i] = (a + b) * M_SQRT1_2_F;
    out[pairs + i] = (a - b) * M_SQRT1_2_F;
}

// The reversible 5/3 transform of all rows: first the odd samples, then the even ones, mirrored at the ends.
__kernel void wavelet_53_rows(__global const short *img, __global short *low, __global short *high, int width, int height)
{
    int i = get_global_id(0);
    int row = get_global_id(1);
    int half_width = (width + 1) / 2;
    if (row >= height || i >= half_width) return;
    __global const short *s = img + row * width;
    int c = 2 * i;
    #define SAMPLE(p) ((int)s[(p) < 0 ? -(p) : (p) >= width ? 2 * width - 2 - (p) : (p)])
    int before = SAMPLE(c - 1) - ((SAMPLE(c - 2) + SAMPLE(c)) >> 1);
    int after = SAMPLE(c + 1) - ((SAMPLE(c) + SAMPLE(c + 2)) >> 1);
    low[row * half_width + i] = SAMPLE(c) + ((before + after + 2) >> 2);
    if (c + 1 < width)
        high[row * (width / 2) + i] = after;
    #undef SAMPLE
}

// All levels of a Walsh-Hadamard transform of 512 numbers within a work-group.
__kernel void walsh_hadamard(__global int *data, __local int *t)
{
    __global int *mine = data + get_group_id(0) * 512;
    int l = get_local_id(0);
    t[l] = mine[l];
    t[l + 256] = mine[l + 256];
    for (int h = 256; h >= 1; h >>= 1) {
        barrier(CLK_LOCAL_MEM_FENCE);
        int i = (l / h) * 2 * h + l % h;
        int a = t[i], b = t[i + h];
        t[i] = a + b;
        t[i + h] = a - b;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    mine[l] = t[l];
    mine[l + 256] = t[l + 256];
}

// The naive discrete Fourier transform of a real signal, in double precision.
__kernel void dft_naive(__global const double *x, __global double2 *spectrum, int n)
{
    int k = get_global_id(0);
    if (k > n / 2) return;
    double re = 0.0, im = 0.0;
    for (int t = 0; t < n; ++t) {
        double a = -2.0 * M_PI * (double)((long)k * t % n) / n;
        re += x[t] * cos(a);
        im += x[t] * sin(a);
    }
    spectrum[k] = (double2)(re, im);
}

// Number-theoretic transform stage modulo 998244353.
#define MOD 998244353u
uint mul_mod(uint a, uint b) { return (ulong)a * b % MOD; }

__kernel void ntt_stage(__global uint *a, __global const uint *roots, uint n, uint len)
{
    uint t = get_global_id(0);
    if (t >= n / 2) return;
    uint h = len / 2, j = t & (h - 1), i = (t - j) * 2 + j;
    uint u = a[i], v = mul_mod(a[i + h], roots[j * (n / len)]);
    uint s = u + v, d = u + MOD - v;
    a[i] = s >= MOD ? s - MOD : s;
    a[i + h] = d >= MOD ? d - MOD : d;
}

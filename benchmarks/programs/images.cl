// Image filters.

__kernel void gauss_rows(__global const float *src, __global float *dst, __constant float *weight, int radius, int w, int h)
{
    int x = get_global_id(0), y = get_global_id(1);
    if (x >= w || y >= h) return;
    float s = 0;
    for (int k = -radius; k <= radius; k++) {
        int xx = x + k;
        if (xx < 0) xx = 0;
        if (xx > w - 1) xx = w - 1;
        s += weight[k + radius] * src[y * w + xx];
    }
    dst[y * w + x] = s;
}

// Columns through a tile of pixels with an apron above and below.
#define R 4
#define CW 16
#define CH 16
__kernel void gauss_columns(__global const uchar4 *src, __global uchar4 *dst, __constant float *weight, int w, int h)
{
    __local float4 tile[CH + 2 * R][CW];
    int lx = get_local_id(0), ly = get_local_id(1);
    int x = min((int)get_global_id(0), w - 1), y0 = get_group_id(1) * CH;
    for (int r = ly; r < CH + 2 * R; r += CH) {
        int y = clamp(y0 + r - R, 0, h - 1);
        tile[r][lx] = convert_float4(src[y * w + x]);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    int y = y0 + ly;
    if (get_global_id(0) >= w || y >= h) return;
    float4 s = (float4)(0.0f);
    for (int k = 0; k <= 2 * R; k++)
        s += weight[k] * tile[ly + k][lx];
    dst[y * w + x] = convert_uchar4_sat_rte(s);
}

__kernel void sobel(__global const uchar *img, __global uchar *edges, const uint width, const uint height)
{
    uint x = get_global_id(0);
    uint y = get_global_id(1);
    if (x >= width || y >= height) return;
    if (x == 0 || y == 0 || x == width - 1 || y == height - 1) {
        edges[y * width + x] = 0;
        return;
    }
#define P(dx, dy) ((int)img[(y + (dy)) * width + x + (dx)])
    int gx = P(1, -1) + 2 * P(1, 0) + P(1, 1) - P(-1, -1) - 2 * P(-1, 0) - P(-1, 1);
    int gy = P(-1, 1) + 2 * P(0, 1) + P(1, 1) - P(-1, -1) - 2 * P(0, -1) - P(1, -1);
#undef P
    int m = abs(gx) + abs(gy);
    edges[y * width + x] = m > 255 ? 255 : m;
}

#define SWAP(a, b) { uchar t = min(v[a], v[b]); v[b] = max(v[a], v[b]); v[a] = t; }
__kernel void median_3x3(__global const uchar *in, __global uchar *out, int w, int h)
{
    int x = get_global_id(0), y = get_global_id(1);
    if (x >= w || y >= h) return;
    uchar v[9];
    int k = 0;
    for (int j = -1; j <= 1; j++)
        for (int i = -1; i <= 1; i++)
            v[k++] = in[clamp(y + j, 0, h - 1) * w + clamp(x + i, 0, w - 1)];
    SWAP(1, 2) SWAP(4, 5) SWAP(7, 8) SWAP(0, 1) SWAP(3, 4) SWAP(6, 7) SWAP(1, 2) SWAP(4, 5) SWAP(7, 8)
    SWAP(0, 3) SWAP(5, 8) SWAP(4, 7) SWAP(3, 6) SWAP(1, 4) SWAP(2, 5) SWAP(4, 7) SWAP(4, 2) SWAP(6, 4) SWAP(4, 2)
    out[y * w + x] = v[4];
}

__kernel void bilateral(__global const float *in, __global float *out, int w, int h, int radius, float sigma_s,
                        float sigma_r)
{
    int x = get_global_id(0), y = get_global_id(1);
    if (x >= w || y >= h) return;
    float centre = in[y * w + x], sum = 0, norm = 0;
    for (int j = max(0, y - radius); j <= min(h - 1, y + radius); j++)
        for (int i = max(0, x - radius); i <= min(w - 1, x + radius); i++) {
            float v = in[j * w + i], d = v - centre;
            float space = (float)((i - x) * (i - x) + (j - y) * (j - y));
            float weight = exp(-space / (2 * sigma_s * sigma_s) - d * d / (2 * sigma_r * sigma_r));
            sum += weight * v;
            norm += weight;
        }
    out[y * w + x] = sum / norm;
}

// Directions are 0, 45, 90 or 135 degrees as 0 to 3.
__kernel void non_maximum(__global const float *mag, __global const uchar *direction, __global float *out, int w, int h)
{
    int x = get_global_id(0) + 1, y = get_global_id(1) + 1;
    if (x >= w - 1 || y >= h - 1) return;
    int at = y * w + x, step;
    switch (direction[at]) {
    case 0: step = 1; break;
    case 1: step = w - 1; break;
    case 2: step = w; break;
    default: step = w + 1; break;
    }
    float m = mag[at];
    out[at] = (m >= mag[at - step] && m > mag[at + step]) ? m : 0.0f;
}

__kernel void dilate_cross(__global const uchar *in, __global uchar *out, int w, int h, int reach)
{
    int x = get_global_id(0), y = get_global_id(1);
    if (x >= w || y >= h) return;
    uchar top = in[y * w + x];
    for (int k = 1; k <= reach && top < 255; k++) {
        if (x - k >= 0) top = max(top, in[y * w + x - k]);
        if (x + k < w) top = max(top, in[y * w + x + k]);
        if (y - k >= 0) top = max(top, in[(y - k) * w + x]);
        if (y + k < h) top = max(top, in[(y + k) * w + x]);
    }
    out[y * w + x] = top;
}

typedef struct { uchar r, g, b; } Rgb;

// Full Y, and U and V of every second pixel of every second row.
__kernel void rgb_to_yuv420(__global const Rgb *rgb, __global uchar *luma, __global uchar *u, __global uchar *v, int w, int h)
{
    int x = 2 * get_global_id(0), y = 2 * get_global_id(1);
    if (x >= w || y >= h) return;
    int r = 0, g = 0, b = 0;
    for (int j = 0; j < 2; j++)
        for (int i = 0; i < 2; i++) {
            Rgb p = rgb[(y + j) * w + x + i];
            luma[(y + j) * w + x + i] = ((66 * p.r + 129 * p.g + 25 * p.b + 128) >> 8) + 16;
            r += p.r; g += p.g; b += p.b;
        }
    r /= 4; g /= 4; b /= 4;
    int c = (y / 2) * (w / 2) + x / 2;
    u[c] = ((-38 * r - 74 * g + 112 * b + 128) >> 8) + 128;
    v[c] = ((112 * r - 94 * g - 18 * b + 128) >> 8) + 128;
}

__kernel void equalise_apply(__global uchar4 *pixels, __global const uint *cdf, uint lowest, uint total, uint n)
{
    __local uchar map[256];
    for (uint i = get_local_id(0); i < 256; i += get_local_size(0))
        map[i] = cdf[i] <= lowest ? 0 : (uchar)(((ulong)(cdf[i] - lowest) * 255u) / (total - lowest));
    barrier(CLK_LOCAL_MEM_FENCE);
    uint i = get_global_id(0);
    if (i >= n) return;
    uchar4 p = pixels[i];
    pixels[i] = (uchar4)(map[p.x], map[p.y], map[p.z], p.w);
}

__kernel void resize_bilinear(__global const uchar4 *src, __global uchar4 *dst, int sw, int sh, int dw, int dh)
{
    int x = get_global_id(0), y = get_global_id(1);
    if (x >= dw || y >= dh) return;
    float sx = (x + 0.5f) * sw / dw - 0.5f, sy = (y + 0.5f) * sh / dh - 0.5f;
    int x0 = (int)floor(sx), y0 = (int)floor(sy);
    float fx = sx - x0, fy = sy - y0;
    int x1 = min(x0 + 1, sw - 1), y1 = min(y0 + 1, sh - 1);
    x0 = max(x0, 0);
    y0 = max(y0, 0);
    float4 a = mix(convert_float4(src[y0 * sw + x0]), convert_float4(src[y0 * sw + x1]), fx);
    float4 b = mix(convert_float4(src[y1 * sw + x0]), convert_float4(src[y1 * sw + x1]), fx);
    dst[y * dw + x] = convert_uchar4_sat_rte(mix(a, b, fy));
}

// Running sums of rows, one work-item a row.
__kernel void integral_rows(__global const uchar *img, __global uint *sums, int w, int h)
{
    int y = get_global_id(0);
    if (y >= h) return;
    uint s = 0;
    for (int x = 0; x < w; x++)
        sums[y * w + x] = s += img[y * w + x];
}

#define WEAK 1
#define STRONG 2
// Weak edges beside strong ones become strong within a tile until nothing changes there, at most 8 times.
__kernel void canny_hysteresis(__global uchar *edge, __global int *changed, int w, int h)
{
    __local uchar t[18][18];
    __local int again;
    int lx = get_local_id(0), ly = get_local_id(1);
    int x0 = get_group_id(0) * 16 - 1, y0 = get_group_id(1) * 16 - 1;
    for (int i = ly * 16 + lx; i < 18 * 18; i += 256) {
        int x = x0 + i % 18, y = y0 + i / 18;
        t[i / 18][i % 18] = (x < 0 || y < 0 || x >= w || y >= h) ? 0 : edge[y * w + x] & 3;
    }
    bool mine = false;
    for (int round = 0; round < 8; round++) {
        if (lx == 0 && ly == 0) again = 0;
        barrier(CLK_LOCAL_MEM_FENCE);
        bool now = false;
        if (t[ly + 1][lx + 1] == WEAK)
            for (int j = 0; j < 3 && !now; j++)
                for (int i = 0; i < 3; i++)
                    if (t[ly + j][lx + i] == STRONG) {
                        now = true;
                        break;
                    }
        barrier(CLK_LOCAL_MEM_FENCE);
        if (now) {
            t[ly + 1][lx + 1] = STRONG;
            mine = true;
            again = 1;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        if (!again) break;
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    int x = get_global_id(0), y = get_global_id(1);
    if (mine && x < w && y < h) {
        edge[y * w + x] = 4 | STRONG;      // the bit of 4 keeps other groups from seeing it within this launch
        *changed = 1;
    }
}

__constant uchar quality[64] = {16, 11, 10, 16, 24, 40, 51, 61, 12, 12, 14, 19, 26, 58, 60, 55, 14, 13, 16, 24, 40, 57,
    69, 56, 14, 17, 22, 29, 51, 87, 80, 62, 18, 22, 37, 56, 68, 109, 103, 77, 24, 35, 55, 64, 81, 104, 113, 92, 49, 64,
    78, 87, 103, 121, 120, 101, 72, 92, 95, 98, 112, 100, 103, 99};

// Quantises blocks of 64 coefficients and writes them in zigzag order, with the number up to the last that is not 0.
__kernel void quantise_zigzag(__global const float *coef, __constant uchar *zigzag, __global short *out,
                              __global uchar *used, int blocks, float scale)
{
    int b = get_global_id(0);
    if (b >= blocks) return;
    int last = 0;
    for (int k = 0; k < 64; k++) {
        int at = zigzag[k];
        float step = fmax(1.0f, quality[at] * scale);
        short q = convert_short_rte(coef[b * 64 + at] / step);
        out[b * 64 + k] = q;
        if (q != 0) last = k + 1;
    }
    used[b] = last;
}

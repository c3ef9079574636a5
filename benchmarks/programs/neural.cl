// Layers of neural networks, batch by channel by row by column unless said otherwise.

typedef struct {
    int channels, height, width;
    int filters, size, stride, pad;
    int out_height, out_width;
} ConvShape;

__kernel void conv2d_direct(__global const float *in, __global const float *weight, __global const float *bias,
                            __global float *out, ConvShape s)
{
    int x = get_global_id(0), y = get_global_id(1), f = get_global_id(2);
    if (x >= s.out_width || y >= s.out_height || f >= s.filters) return;
    float acc = bias[f];
    for (int c = 0; c < s.channels; c++)
        for (int i = 0; i < s.size; i++) {
            int yy = y * s.stride - s.pad + i;
            if (yy < 0 || yy >= s.height) continue;
            for (int j = 0; j < s.size; j++) {
                int xx = x * s.stride - s.pad + j;
                if (xx < 0 || xx >= s.width) continue;
                acc += in[(c * s.height + yy) * s.width + xx] * weight[((f * s.channels + c) * s.size + i) * s.size + j];
            }
        }
    out[(f * s.out_height + y) * s.out_width + x] = acc > 0 ? acc : 0.01f * acc;
}

__kernel void depthwise_3x3(__global const float *in, __global const float *w, __global float *out, int channels, int size)
{
    int g = get_global_id(0);
    if (g >= channels * size * size) return;
    int x = g % size, y = (g / size) % size, c = g / (size * size);
    float acc = 0.f;
    #pragma unroll
    for (int i = -1; i <= 1; i++)
        #pragma unroll
        for (int j = -1; j <= 1; j++)
            if (x + j >= 0 && x + j < size && y + i >= 0 && y + i < size)
                acc = mad(in[g + i * size + j], w[c * 9 + (i + 1) * 3 + j + 1], acc);
    out[g] = fmin(fmax(acc, 0.f), 6.f);
}

__kernel void im2col(__global const float *image, __global float *columns, int channels, int height, int width, int k,
                     int pad)
{
    int at = get_global_id(0);
    int total = channels * k * k * height * width;
    if (at >= total) return;
    int x = at % width;
    int y = at / width % height;
    int kj = at / (width * height) % k;
    int ki = at / (width * height * k) % k;
    int c = at / (width * height * k * k);
    int yy = y + ki - pad, xx = x + kj - pad;
    bool inside = yy >= 0 && xx >= 0 && yy < height && xx < width;
    columns[at] = inside ? image[(c * height + yy) * width + xx] : 0.0f;
}

__kernel void max_pool_2x2(__global const float *in, __global float *out, __global uchar *argmax, int planes, int h, int w)
{
    int x = get_global_id(0), y = get_global_id(1), p = get_global_id(2);
    int oh = h / 2, ow = w / 2;
    if (x >= ow || y >= oh || p >= planes) return;
    float best = -FLT_MAX;
    uchar where = 0;
    for (uchar k = 0; k < 4; k++) {
        float v = in[(p * h + 2 * y + k / 2) * w + 2 * x + k % 2];
        if (v > best) {
            best = v;
            where = k;
        }
    }
    out[(p * oh + y) * ow + x] = best;
    argmax[(p * oh + y) * ow + x] = where;
}

// The mean of each plane by a work-group, several elements a work-item.
__kernel void global_average_pool(__global const float *in, __global float *out, int area)
{
    __local float part[64];
    int l = get_local_id(0);
    __global const float *plane = in + get_group_id(0) * area;
    float s = 0;
    for (int i = l; i < area; i += 64) s += plane[i];
    part[l] = s;
    for (int d = 32; d; d >>= 1) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (l < d) part[l] += part[l + d];
    }
    if (l == 0) out[get_group_id(0)] = part[0] / area;
}

__kernel void batch_norm(__global float *x, __global const float *mean, __global const float *var,
                         __global const float *gamma, __global const float *beta, float eps, int channels, int area, int n)
{
    int i = get_global_id(0);
    if (i >= n) return;
    int c = (i / area) % channels;
    float scale = gamma[c] * rsqrt(var[c] + eps);
    x[i] = x[i] * scale + (beta[c] - mean[c] * scale);
}

// One work-group a row: mean, variance, and then the row again.
__kernel void layer_norm(__global const float *in, __global float *out, __global const float *gamma,
                         __global const float *beta, int width, float eps, __local float *t)
{
    int row = get_group_id(0), l = get_local_id(0), n = get_local_size(0);
    __global const float *x = in + row * width;
    float s = 0, s2 = 0;
    for (int i = l; i < width; i += n) {
        float v = x[i];
        s += v;
        s2 += v * v;
    }
    t[l] = s;
    t[n + l] = s2;
    for (int d = n / 2; d > 0; d /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (l < d) {
            t[l] += t[l + d];
            t[n + l] += t[n + l + d];
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    float mean = t[0] / width, inv = rsqrt(t[n] / width - mean * mean + eps);
    for (int i = l; i < width; i += n)
        out[row * width + i] = (x[i] - mean) * inv * gamma[i] + beta[i];
}

// One work-item a row, three passes, as first versions are.
__kernel void softmax_rows(__global const float *x, __global float *y, int rows, int cols)
{
    int r = get_global_id(0);
    if (r >= rows) return;
    x += r * cols;
    y += r * cols;
    float top = x[0];
    for (int c = 1; c < cols; c++)
        if (x[c] > top) top = x[c];
    float sum = 0;
    for (int c = 0; c < cols; c++)
        sum += y[c] = exp(x[c] - top);
    for (int c = 0; c < cols; c++)
        y[c] /= sum;
}

__kernel void gelu(__global const float4 *x, __global float4 *y, int n4, int exact)
{
    int i = get_global_id(0);
    if (i >= n4) return;
    float4 v = x[i];
    if (exact)
        y[i] = 0.5f * v * (1.0f + erf(v * M_SQRT1_2_F));
    else
        y[i] = 0.5f * v * (1.0f + tanh(0.79788456f * (v + 0.044715f * v * v * v)));
}

// Scores of queries and keys with a causal mask, a head a slice of the third dimension.
__kernel void attention_scores(__global const float *q, __global const float *k, __global float *scores, int tokens, int dim)
{
    int key = get_global_id(0), query = get_global_id(1), head = get_global_id(2);
    if (key >= tokens || query >= tokens) return;
    __global float *to = scores + (head * tokens + query) * tokens + key;
    if (key > query) {
        *to = -INFINITY;
        return;
    }
    float s = 0;
    for (int d = 0; d < dim; d++)
        s += q[(head * tokens + query) * dim + d] * k[(head * tokens + key) * dim + d];
    *to = s / sqrt((float)dim);
}

// Blocks of 32 weights: a scale, and bytes or half bytes. Rows by work-groups of 32.
#define QB 32
typedef struct { float scale; char q[QB]; } Block8;
typedef struct { float scale; uchar q[QB / 2]; } Block4;

__kernel void matvec_int8(__global const Block8 *w, __global const float *x, __global float *y, int blocks)
{
    __local float part[32];
    int row = get_group_id(0), l = get_local_id(0);
    float acc = 0;
    for (int b = l; b < blocks; b += 32) {
        __global const Block8 *block = &w[row * blocks + b];
        float s = 0;
        for (int k = 0; k < QB; k++)
            s += block->q[k] * x[b * QB + k];
        acc += block->scale * s;
    }
    part[l] = acc;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int d = 16; d > 0; d >>= 1) {
        if (l < d) part[l] += part[l + d];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (l == 0) y[row] = part[0];
}

__kernel void matvec_int4(__global const Block4 *w, __global const float *x, __global float *y, int blocks, int rows)
{
    int row = get_global_id(0);
    if (row >= rows) return;
    float acc = 0;
    for (int b = 0; b < blocks; b++) {
        Block4 block = w[row * blocks + b];
        float s = 0;
        for (int k = 0; k < QB / 2; k++) {
            int low = (block.q[k] & 15) - 8, high = (block.q[k] >> 4) - 8;
            s += low * x[b * QB + k] + high * x[b * QB + k + QB / 2];
        }
        acc += block.scale * s;
    }
    y[row] = acc;
}

__kernel void embedding_gather(__global const int *tokens, __global const float *table, __global const float *position,
                               __global float *out, int dim, int length, int vocabulary)
{
    int d = get_global_id(0), t = get_global_id(1);
    if (d >= dim) return;
    int id = tokens[t];
    float v = id >= 0 && id < vocabulary ? table[id * dim + d] : 0.0f;
    out[t * dim + d] = v + position[(t % length) * dim + d];
}

float sigmoid(float v) { return 1.0f / (1.0f + exp(-v)); }

// Gates i, f, g, o are already summed of inputs and states, one behind the other.
__kernel void lstm_cell(__global const float *gates, __global const float *bias, __global float *c, __global float *h,
                        int hidden, int batch)
{
    int j = get_global_id(0), b = get_global_id(1);
    if (j >= hidden || b >= batch) return;
    __global const float *g = gates + b * 4 * hidden + j;
    float in = sigmoid(g[0] + bias[j]);
    float forget = sigmoid(g[hidden] + bias[hidden + j] + 1.0f);
    float cell = tanh(g[2 * hidden] + bias[2 * hidden + j]);
    float out = sigmoid(g[3 * hidden] + bias[3 * hidden + j]);
    float new_c = forget * c[b * hidden + j] + in * cell;
    c[b * hidden + j] = new_c;
    h[b * hidden + j] = out * tanh(new_c);
}

// Adam, with structs of both moments.
typedef struct { float m, v; } Moments;
__kernel void adam_step(__global float *w, __global const float *grad, __global Moments *moments, float rate, float b1,
                        float b2, float c1, float c2, int n)
{
    int i = get_global_id(0);
    if (i >= n) return;
    float g = grad[i];
    Moments s = moments[i];
    s.m = b1 * s.m + (1 - b1) * g;
    s.v = b2 * s.v + (1 - b2) * g * g;
    moments[i] = s;
    w[i] -= rate * (s.m * c1) / (sqrt(s.v * c2) + 1e-8f);
}

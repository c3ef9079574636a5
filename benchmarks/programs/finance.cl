// Options, and Monte Carlo methods with several generators of random numbers.

inline float normal_cdf(float d)
{
    const float a1 = 0.31938153f, a2 = -0.356563782f, a3 = 1.781477937f, a4 = -1.821255978f, a5 = 1.330274429f;
    float k = 1.0f / (1.0f + 0.2316419f * fabs(d));
    float tail = 0.39894228f * exp(-0.5f * d * d) * (k * (a1 + k * (a2 + k * (a3 + k * (a4 + k * a5)))));
    return d > 0 ? 1.0f - tail : tail;
}

__kernel void black_scholes(__global const float *price, __global const float *strike, __global const float *years,
                            __global float *call, __global float *put, float rate, float vol, int n)
{
    for (int i = get_global_id(0); i < n; i += get_global_size(0)) {
        float s = price[i], x = strike[i], t = years[i];
        float root = sqrt(t);
        float d1 = (log(s / x) + (rate + 0.5f * vol * vol) * t) / (vol * root);
        float d2 = d1 - vol * root;
        float c1 = normal_cdf(d1), c2 = normal_cdf(d2);
        float discounted = x * exp(-rate * t);
        call[i] = s * c1 - discounted * c2;
        put[i] = discounted * (1.0f - c2) - s * (1.0f - c1);
    }
}

typedef struct {
    float spot, strike, years, rate, vol;
    char is_put;
    char american;
} Option;

// A work-group an option; levels shrink by one each step.
#define MAX_STEPS 256
__kernel void binomial_tree(__global const Option *options, __global float *value, int steps)
{
    __local float v[MAX_STEPS + 1];
    const Option o = options[get_group_id(0)];
    const float dt = o.years / steps;
    const float u = exp(o.vol * sqrt(dt)), d = 1 / u;
    const float grow = exp(o.rate * dt), p = (grow - d) / (u - d), discount = 1 / grow;
    const int l = get_local_id(0);
    for (int j = l; j <= steps; j += get_local_size(0)) {
        float s = o.spot * pown(u, 2 * j - steps);
        v[j] = fmax(o.is_put ? o.strike - s : s - o.strike, 0.0f);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = steps - 1; i >= 0; i--) {
        float keep[4];
        int k = 0;
        for (int j = l; j <= i; j += get_local_size(0)) {
            float hold = discount * (p * v[j + 1] + (1 - p) * v[j]);
            if (o.american) {
                float s = o.spot * pown(u, 2 * j - i);
                hold = fmax(hold, o.is_put ? o.strike - s : s - o.strike);
            }
            keep[k++] = hold;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        k = 0;
        for (int j = l; j <= i; j += get_local_size(0))
            v[j] = keep[k++];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (l == 0) value[get_group_id(0)] = v[0];
}

uint xorshift32(uint *state)
{
    uint x = *state;
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    return *state = x;
}

__kernel void pi_xorshift(__global const uint *seeds, __global uint *hits, int rounds, int n)
{
    int i = get_global_id(0);
    if (i >= n) return;
    uint state = seeds[i];
    uint count = 0;
    for (int r = 0; r < rounds; r++) {
        float x = (xorshift32(&state) >> 8) * 0x1p-24f;
        float y = (xorshift32(&state) >> 8) * 0x1p-24f;
        if (x * x + y * y <= 1.0f)
            count++;
    }
    hits[i] = count;
}

// The product is kept exact; a linear congruential generator that jumps ahead for each work-item.
__kernel void lcg_sequence(__global ulong *out, ulong seed, ulong multiplier, ulong increment, uint n)
{
    uint id = get_global_id(0);
    if (id >= n) return;
    ulong a = 1, c = 0, am = multiplier, cm = increment;
    for (uint k = id + 1; k; k >>= 1) {
        if (k & 1) {
            a *= am;
            c = c * am + cm;
        }
        cm = (am + 1) * cm;
        am *= am;
    }
    out[id] = a * seed + c;
}

typedef struct { uint v[4]; } Counter;

// A counter-based generator: ten rounds of products and exclusive ors.
static Counter philox(Counter c, uint k0, uint k1)
{
    for (int round = 0; round < 10; ++round) {
        uint h0 = mul_hi(0xD2511F53u, c.v[0]), l0 = 0xD2511F53u * c.v[0];
        uint h1 = mul_hi(0xCD9E8D57u, c.v[2]), l1 = 0xCD9E8D57u * c.v[2];
        Counter next = {{h1 ^ c.v[1] ^ k0, l1, h0 ^ c.v[3] ^ k1, l0}};
        c = next;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return c;
}

__kernel void philox_fill(__global uint4 *out, uint key0, uint key1, uint n)
{
    uint i = get_global_id(0);
    if (i >= n) return;
    Counter c = {{i, 0, 0, 7}};
    c = philox(c, key0, key1);
    out[i] = (uint4)(c.v[0], c.v[1], c.v[2], c.v[3]);
}

// Normal numbers by Box and Muller from a given sequence of bits.
__kernel void box_muller(__global const uint2 *bits, __global float2 *normals, int n)
{
    int i = get_global_id(0);
    if (i >= n) return;
    float u1 = ((bits[i].x >> 9) + 0.5f) * 0x1p-23f;
    float u2 = (bits[i].y >> 8) * 0x1p-24f;
    float r = sqrt(-2.0f * log(u1));
    float c, s = sincos(6.2831853f * u2, &c);
    normals[i] = (float2)(r * c, r * s);
}

typedef struct {
    double s0, strike, rate, vol, dt;
    int steps;
} Asian;

// The mean over a path of given normal numbers, which lie step by step; pay-offs are discounted.
__kernel void asian_paths(__global const float *normals, __global double *payoff, Asian deal, int paths)
{
    int p = get_global_id(0);
    if (p >= paths) return;
    double drift = (deal.rate - 0.5 * deal.vol * deal.vol) * deal.dt;
    double diffusion = deal.vol * sqrt(deal.dt);
    double s = deal.s0, sum = 0.0;
    for (int t = 0; t < deal.steps; t++) {
        s *= exp(drift + diffusion * normals[t * paths + p]);
        sum += s;
    }
    double gain = sum / deal.steps - deal.strike;
    payoff[p] = gain > 0 ? gain * exp(-deal.rate * deal.dt * deal.steps) : 0.0;
}

// A barrier option with a generator for each path; the path ends when it is knocked out.
__kernel void barrier_option(__global const uint *seeds, __global float *payoff, __global int *alive, float s0,
                             float strike, float knock, float up, float down, int steps, int n)
{
    int i = get_global_id(0);
    if (i >= n) return;
    uint state = seeds[i];
    float s = s0;
    int t;
    for (t = 0; t < steps; t++) {
        s *= (xorshift32(&state) & 0x10000) ? up : down;
        if (s >= knock)
            break;
    }
    alive[i] = t;
    payoff[i] = t == steps && s > strike ? s - strike : 0.0f;
}

// Present values of bonds with coupons by a table of discount factors, and their durations.
typedef struct { float coupon; ushort first; ushort count; } Bond;
__kernel void bond_values(__global const Bond *bonds, __constant float *discount, __global float2 *value, int n)
{
    int i = get_global_id(0);
    if (i >= n) return;
    Bond b = bonds[i];
    float pv = 0, weighted = 0;
    for (ushort k = b.first; k < b.first + b.count; k++) {
        float cash = b.coupon + (k == b.first + b.count - 1 ? 100.0f : 0.0f);
        pv += cash * discount[k];
        weighted += cash * discount[k] * (k + 1);
    }
    value[i] = (float2)(pv, weighted / pv);
}

// Histograms, scans, reductions and sorts.

__kernel void histogram_256(__global const uchar *data, __global uint *hist, uint n)
{
    __local uint bins[256];
    uint t = get_local_id(0);
    for (uint b = t; b < 256; b += get_local_size(0))
        bins[b] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint i = get_global_id(0); i < n; i += get_global_size(0))
        atomic_inc(&bins[data[i]]);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint b = t; b < 256; b += get_local_size(0))
        if (bins[b])
            atomic_add(&hist[b], bins[b]);
}

// Straight into global memory, bins of different widths found by bisection.
__kernel void histogram_bisect(__global const float *x, __constant float *edges, __global int *counts, int nbins, int n)
{
    int i = get_global_id(0);
    if (i >= n) return;
    float v = x[i];
    if (v < edges[0] || v >= edges[nbins]) return;
    int lo = 0, hi = nbins;
    while (hi - lo > 1) {
        int mid = (lo + hi) >> 1;
        if (v < edges[mid])
            hi = mid;
        else
            lo = mid;
    }
    atomic_add(&counts[lo], 1);
}

// Blelloch's exclusive scan of 2 * local size elements; the sums of blocks come out beside.
__kernel void scan_blelloch(__global const int *in, __global int *out, __global int *block_sums, __local int *t, int n)
{
    int l = get_local_id(0), size = get_local_size(0);
    int base = get_group_id(0) * size * 2;
    t[2 * l] = base + 2 * l < n ? in[base + 2 * l] : 0;
    t[2 * l + 1] = base + 2 * l + 1 < n ? in[base + 2 * l + 1] : 0;
    int offset = 1;
    for (int d = size; d > 0; d >>= 1) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (l < d) {
            int a = offset * (2 * l + 1) - 1, b = offset * (2 * l + 2) - 1;
            t[b] += t[a];
        }
        offset *= 2;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (l == 0) {
        block_sums[get_group_id(0)] = t[2 * size - 1];
        t[2 * size - 1] = 0;
    }
    for (int d = 1; d < 2 * size; d *= 2) {
        offset >>= 1;
        barrier(CLK_LOCAL_MEM_FENCE);
        if (l < d) {
            int a = offset * (2 * l + 1) - 1, b = offset * (2 * l + 2) - 1;
            int s = t[a];
            t[a] = t[b];
            t[b] += s;
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (base + 2 * l < n) out[base + 2 * l] = t[2 * l];
    if (base + 2 * l + 1 < n) out[base + 2 * l + 1] = t[2 * l + 1];
}

#define SCAN 256
__kernel void scan_hillis_steele(__global const uint *in, __global uint *out, uint n)
{
    __local uint a[SCAN], b[SCAN];
    __local uint *src = a, *dst = b;
    uint l = get_local_id(0), g = get_global_id(0);
    src[l] = g < n ? in[g] : 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint d = 1; d < SCAN; d <<= 1) {
        dst[l] = l >= d ? src[l] + src[l - d] : src[l];
        barrier(CLK_LOCAL_MEM_FENCE);
        __local uint *swap = src;
        src = dst;
        dst = swap;
    }
    if (g < n) out[g] = src[l];
}

// Sums restart where a flag is set; within a work-group.
__kernel void scan_segmented(__global const float *values, __global const uchar *flags, __global float *out, int n)
{
    __local float v[128];
    __local uchar f[128];
    int l = get_local_id(0), g = get_global_id(0);
    v[l] = g < n ? values[g] : 0.0f;
    f[l] = g < n ? flags[g] : 1;
    for (int d = 1; d < 128; d *= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        float mine = v[l];
        uchar flag = f[l];
        if (l >= d && !flag) {
            mine += v[l - d];
            flag = f[l - d];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        v[l] = mine;
        f[l] = flag;
    }
    if (g < n) out[g] = v[l];
}

__kernel void reduce_tree(__global const float *in, __global float *partial, __local float *scratch, const int n)
{
    int l = get_local_id(0);
    float sum = 0.0f;
    int i = get_global_id(0);
    while (i < n) {
        sum += in[i];
        i += get_global_size(0);
    }
    scratch[l] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int half_size = get_local_size(0) / 2; half_size > 0; half_size /= 2) {
        if (l < half_size)
            scratch[l] += scratch[l + half_size];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (l == 0) partial[get_group_id(0)] = scratch[0];
}

// As a beginner writes it: interleaved, with a remainder in each step, one element a work-item.
__kernel void reduce_modulo(__global const int *in, __global int *out, int n)
{
    __local int s[256];
    unsigned int tid = get_local_id(0), i = get_global_id(0);
    s[tid] = i < n ? in[i] : 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (unsigned int step = 1; step < get_local_size(0); step *= 2) {
        if (tid % (2 * step) == 0)
            s[tid] += s[tid + step];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (tid == 0) out[get_group_id(0)] = s[0];
}

// float4 loads, minimum, maximum and sum at once, and a struct for each group.
typedef struct { float lowest, highest; double sum; } Summary;

__kernel void reduce_summary(__global const float4 *in, __global Summary *out, int n4)
{
    __local float lo[64], hi[64];
    __local double total[64];
    float4 a = (float4)(INFINITY), b = (float4)(-INFINITY);
    double s = 0;
    for (int i = get_global_id(0); i < n4; i += get_global_size(0)) {
        float4 v = in[i];
        a = fmin(a, v);
        b = fmax(b, v);
        s += (double)v.x + v.y + v.z + v.w;
    }
    int l = get_local_id(0);
    lo[l] = fmin(fmin(a.x, a.y), fmin(a.z, a.w));
    hi[l] = fmax(fmax(b.s0, b.s1), fmax(b.s2, b.s3));
    total[l] = s;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (l == 0) {
        Summary r = {lo[0], hi[0], total[0]};
        for (int k = 1; k < 64; k++) {
            r.lowest = fmin(r.lowest, lo[k]);
            r.highest = fmax(r.highest, hi[k]);
            r.sum += total[k];
        }
        out[get_group_id(0)] = r;
    }
}

__kernel void bitonic_step(__global uint *keys, int stage_span, int distance)
{
    int i = get_global_id(0);
    int partner = i ^ distance;
    if (partner <= i) return;
    uint a = keys[i], b = keys[partner];
    bool ascending = (i & stage_span) == 0;
    if ((a > b) == ascending) {
        keys[i] = b;
        keys[partner] = a;
    }
}

// A whole bitonic sort of pairs in local memory; the last group's missing keys are larger than all.
__kernel void bitonic_local(__global float *keys, __global int *values, int n)
{
    __local float k[256];
    __local int v[256];
    int l = get_local_id(0), g = get_global_id(0);
    k[l] = g < n ? keys[g] : FLT_MAX;
    v[l] = g < n ? values[g] : -1;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int span = 2; span <= 256; span <<= 1)
        for (int d = span >> 1; d > 0; d >>= 1) {
            int p = l ^ d;
            if (p > l) {
                bool up = (l & span) == 0;
                if ((k[l] > k[p]) == up) {
                    float tk = k[l]; k[l] = k[p]; k[p] = tk;
                    int tv = v[l]; v[l] = v[p]; v[p] = tv;
                }
            }
            barrier(CLK_LOCAL_MEM_FENCE);
        }
    if (g < n) {
        keys[g] = k[l];
        values[g] = v[l];
    }
}

#define RADIX 16
// Counts of digits by contiguous chunks, digit-major, for a scan between this and the scatter.
__kernel void radix_count(__global const uint *keys, __global int *counts, int n, int chunk, int shift)
{
    int t = get_global_id(0), threads = get_global_size(0);
    int mine[RADIX];
    for (int d = 0; d < RADIX; d++) mine[d] = 0;
    int end = min((t + 1) * chunk, n);
    for (int i = t * chunk; i < end; i++)
        mine[(keys[i] >> shift) & (RADIX - 1)]++;
    for (int d = 0; d < RADIX; d++)
        counts[d * threads + t] = mine[d];
}

__kernel void radix_scatter(__global const uint *keys, __global uint *sorted, __global const int *offsets, int n,
                            int chunk, int shift)
{
    int t = get_global_id(0), threads = get_global_size(0);
    int at[RADIX];
    for (int d = 0; d < RADIX; d++)
        at[d] = offsets[d * threads + t];
    int end = min((t + 1) * chunk, n);
    for (int i = t * chunk; i < end; i++) {
        uint key = keys[i];
        sorted[at[key >> shift & (RADIX - 1)]++] = key;
    }
}

__kernel void odd_even_merge_step(__global int *a, int n, int p, int k)
{
    int i = get_global_id(0);
    // work-item i stands for the i-th element that has a partner k further within blocks of 2p
    int j = k % p + (i / k) * 2 * k + i % k;
    if (j + k >= n) return;
    if (j / (2 * p) != (j + k) / (2 * p)) return;
    int x = a[j], y = a[j + k];
    if (x > y) {
        a[j] = y;
        a[j + k] = x;
    }
}

// Keeps what passes a test; the order within the output is by chance.
__kernel void compact_atomic(__global const int *in, __global int *out, __global int *count, int n, int divisor)
{
    __local int found, base;
    if (get_local_id(0) == 0) found = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    int i = get_global_id(0), at = -1, v = 0;
    if (i < n) {
        v = in[i];
        if (v % divisor == 0) at = atomic_inc(&found);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (get_local_id(0) == 0) base = atomic_add(count, found);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (at >= 0) out[base + at] = v;
}

__kernel void compact_scatter(__global const float2 *in, __global const uchar *keep, __global const int *position,
                              __global float2 *out, int n)
{
    int i = get_global_id(0);
    if (i >= n || !keep[i]) return;
    out[position[i]] = in[i];
}

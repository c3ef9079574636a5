// Covers: family normalization; a private array in unrolled loops, and an early return for remainders.
// kernel: {"name": "normalization", "generator": "normalization", "tags": ["held:8", "lsize_0:256"],
//   "global": "(n + 255) // 256 * 256", "local": 256, "args": {"x": "8 * n", "out": "8 * n"},
//   "small": {"n": 512}, "sizes": [{"n": 4194304}, {"n": 16777216}]}
#define HELD 8

__kernel void normalization(__global const float *x, __global float *out, const int n)
{
    const int i = get_global_id(0);
    if (i >= n)
        return;
    float held[HELD];
    float sum = held[0] = x[i];
    #pragma unroll
    for (int k = 1; k < HELD; k++) {
        held[k] = x[k * n + i];
        sum += held[k];
    }
    const float scale = 1.0f / sum;
    #pragma unroll
    for (int k = 0; k < HELD; k++)
        out[k * n + i] = held[k] * scale;
}

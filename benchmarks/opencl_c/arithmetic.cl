// Covers: family arithmetic; loops of chained operations on numbers that follow from the work-item's place.
// kernel: {"name": "additions", "generator": "arithmetic", "tags": ["op:add", "lsizes:16x16"],
//   "global": ["n", "n"], "local": [16, 16], "args": {"out": "n*n"}, "assumptions": "n % 16 == 0",
//   "small": {"n": 32, "k": 7}, "sizes": [{"n": 512, "k": 512}, {"n": 1024, "k": 512}]}
// kernel: {"name": "quotients", "generator": "arithmetic", "tags": ["op:div", "lsizes:16x16"],
//   "global": ["(n + 15) // 16 * 16", "(n + 15) // 16 * 16"], "local": [16, 16], "args": {"out": "n*n"},
//   "small": {"n": 32, "k": 7}, "sizes": [{"n": 512, "k": 512}, {"n": 1024, "k": 512}]}
// kernel: {"name": "roots", "generator": "arithmetic", "tags": ["op:rsqrt", "lsizes:32x16"],
//   "global": ["n", "n"], "local": [32, 16], "args": {"out": "n*n"}, "assumptions": "n % 32 == 0",
//   "small": {"n": 32, "k": 7}, "sizes": [{"n": 512, "k": 512}, {"n": 1024, "k": 512}]}
// differs: additions: f_op_int32_madd: i and j come from get_global_id; Loopy computes them from group and item
// differs: quotients: f_op_int32_madd: i and j come from get_global_id; Loopy computes them from group and item
// differs: roots: f_op_int32_madd: i and j come from get_global_id; Loopy computes them from group and item
#define NEAR_ONE(distance) (1.0f + 0.0000152587890625f * (distance))

__kernel void additions(__global float *out, const int n, const int k)
{
    const int j = get_global_id(0), i = get_global_id(1);
    const float x = NEAR_ONE((float)(i - j));
    float total = 0.0f;
    for (int s = 1; s <= k; s++) {
        const float t = s;
        total += t + x + t - x + t + x + t - x + t;
    }
    out[i * n + j] = total;
}

__kernel void quotients(__global float *out, const int n, const int k)
{
    const int j = get_global_id(0), i = get_global_id(1);
    if (i >= n || j >= n)
        return;
    const float x = NEAR_ONE((float)(i - j));
    float total = 0.0f;
    for (int s = 1; s <= k; s++) {
        float t = (float)s;
        for (int step = 0; step < 6; step++)
            t = x / t;
        total += t;
    }
    out[i * n + j] = total;
}

__kernel void roots(__global float *out, const int n, const int k)
{
    const int j = get_global_id(0), i = get_global_id(1);
    const float x = NEAR_ONE((float)(i - j));
    float total = 0.0f;
    for (int s = 1; s <= k; s++)
        total += rsqrt(rsqrt(rsqrt(rsqrt(rsqrt(rsqrt(rsqrt(rsqrt(s * x))))))));
    out[i * n + j] = total;
}

// Covers: family throughput; accumulators in vectors and in a private array, and a pragma that unrolls some turns.
// kernel: {"name": "madds", "generator": "throughput", "tags": ["op:madd", "accumulators:8", "lsize_0:256"],
//   "global": "n", "local": 256, "args": {"a": "n", "out": "n"}, "assumptions": "n % 256 == 0",
//   "small": {"n": 256, "m": 16}, "sizes": [{"n": 262144, "m": 256}, {"n": 1048576, "m": 256}]}
// kernel: {"name": "exponentials", "generator": "throughput", "tags": ["op:exp", "accumulators:8", "lsize_0:64"],
//   "global": "n", "local": 64, "args": {"a": "n", "out": "n"}, "assumptions": "n % 64 == 0",
//   "small": {"n": 128, "m": 16}, "sizes": [{"n": 262144, "m": 256}, {"n": 1048576, "m": 256}]}
// kernel: {"name": "shifts", "generator": "throughput",
//   "tags": ["dtype:int32", "op:shift", "accumulators:32", "lsize_0:256"],
//   "global": "n", "local": 256, "args": {"a": "n", "out": "n"}, "assumptions": "n % 256 == 0",
//   "small": {"n": 256, "m": 16}, "sizes": [{"n": 262144, "m": 128}, {"n": 1048576, "m": 128}]}
// differs: madds: f_op_float32_add: Loopy adds up the eight accumulators from zero on
// differs: shifts: f_op_int32_add: Loopy adds up the accumulators from zero on, and starts the first from a sum too
float total_of(const float4 v)
{
    return v.x + v.y + v.z + v.w;
}

__kernel void madds(__global const float *a, __global float *out, const int n, const int m)
{
    const int i = get_global_id(0);
    const float x = a[i], one = x / x, quarter = one * 0.25f;
    float4 low = x + (float4)(0.0f, 1.0f, 2.0f, 3.0f) * quarter;
    float4 high = x + (float4)(4.0f, 5.0f, 6.0f, 7.0f) * quarter;
#pragma unroll 8
    for (int k = 0; k < m; k++) {
        low = mad(low, quarter, x);
        high = mad(high, quarter, x);
    }
    out[i] = total_of(low) + total_of(high);
}

__kernel void exponentials(__global const float *a, __global float *out, const int n, const int m)
{
    const size_t i = get_global_id(0);
    const float x = a[i], one = x / x, quarter = one * 0.25f;
    float acc[8], sum = 0.0f;
#pragma unroll
    for (int j = 0; j < 8; j++)
        acc[j] = x + j * quarter;
    for (int k = 0; k < m; k++)
#pragma unroll
        for (int j = 0; j < 8; j++)
            acc[j] = exp(-acc[j]);
#pragma unroll
    for (int j = 0; j < 8; j++)
        sum += acc[j];
    out[i] = sum;
}

__kernel void shifts(__global const int *a, __global int *out, const int n, const int m)
{
    const int i = get_global_id(0);
    const int x = a[i], zero = x >> 3;
    int16 low = (int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15) * zero + x;
    int16 high = (int16)(16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31) * zero + x;
#pragma unroll 8
    for (int k = 0; k < m; k++) {
        low = (int16)x >> low;
        high = (int16)x >> high;
    }
    const int16 both = low + high;
    const int8 eight = both.lo + both.hi;
    const int4 four = eight.lo + eight.hi;
    out[i] = four.x + four.y + four.z + four.w;
}

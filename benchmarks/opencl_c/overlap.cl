// Covers: family overlap; rounds of multiply-adds of a vector, or of elements of local memory, for each load.
// kernel: {"name": "overlap", "generator": "overlap", "tags": ["onchip:madd", "ratio:4", "lsize_0:256"],
//   "global": "n", "local": 256, "args": {"a": "m*n", "out": "n"}, "options": ["-DRATIO=4"],
//   "assumptions": "n % 256 == 0", "small": {"n": 256, "m": 3},
//   "sizes": [{"n": 262144, "m": 64}, {"n": 1048576, "m": 64}]}
// kernel: {"name": "overlap_local", "generator": "overlap", "tags": ["onchip:local", "ratio:1", "lsize_0:256"],
//   "global": "n", "local": 256, "args": {"a": "m*n", "out": "n", "b": "256"}, "options": ["-DRATIO=1"],
//   "assumptions": "n % 256 == 0 and m <= 64", "small": {"n": 256, "m": 3},
//   "sizes": [{"n": 262144, "m": 64}, {"n": 1048576, "m": 64}]}
// differs: overlap: f_op_float32_add: Loopy adds up its four results from zero on
// differs: overlap_local: f_op_float32_add: Loopy adds up its four results from zero on
#define LSIZE 256
#define GAP 9
#define PLACES (2 * LSIZE)

__kernel void overlap(__global const float *a, __global float *out, const int n, const int m)
{
    const size_t i = get_global_id(0);
    float total = 0.0f;
    float4 work = (float4)(0.0f, 1.0f, 2.0f, 3.0f);
    for (int k = 0; k < m; k++) {
        const float x = a[(size_t)k * n + i];
        total += x;
        for (int round = 0; round < RATIO; round++)
            work = work * 0.25f + x;
    }
    out[i] = total + work.x + work.y + work.z + work.w;
}

__kernel void overlap_local(__global const float *a, __global float *out, __global const float *b, const int n,
                            const int m)
{
    __local float shared[PLACES];
    const int i = get_global_id(0), l = get_local_id(0);
    for (int place = l; place < PLACES; place += LSIZE)
        shared[place] = b[l];
    barrier(CLK_LOCAL_MEM_FENCE);
    float total = 0.0f, work[4] = {0.0f, 1.0f, 2.0f, 3.0f};
    for (int k = 0; k < m; k++) {
        const float x = a[k * n + i];
        total += x;
        for (int round = 0; round < RATIO; round++)
#pragma unroll
            for (int j = 0; j < 4; j++)
                work[j] += x * shared[l + k + GAP * (4 * round + j)];
    }
    out[i] = total + (work[0] + work[1]) + (work[2] + work[3]);
}

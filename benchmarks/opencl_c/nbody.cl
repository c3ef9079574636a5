// Covers: family nbody; positions by vload3, blocks of positions in local memory.
// kernel: {"name": "nbody", "generator": "nbody", "tags": ["prefetch:True", "lsize_0:256"],
//   "global": "n", "local": 256, "args": {"x": "3*n", "out": "n"}, "options": ["-DBLOCK=256"],
//   "assumptions": "n % 256 == 0", "small": {"n": 512}, "sizes": [{"n": 16384}, {"n": 32768}]}
// kernel: {"name": "nbody_global", "generator": "nbody", "tags": ["prefetch:False", "lsize_0:128"],
//   "global": "(n + 127) // 128 * 128", "local": 128, "args": {"x": "3*n", "out": "n"}, "options": ["-DBLOCK=128"],
//   "small": {"n": 256}, "sizes": [{"n": 16384}, {"n": 32768}]}
#define SOFTENING 0.0009765625f

float inverse_distance(const float3 a, const float3 b)
{
    const float3 d = a - b;
    return rsqrt(d.x * d.x + d.y * d.y + d.z * d.z + SOFTENING);
}

__kernel void nbody(__global const float *x, __global float *out, const int n)
{
    __local float block[3][BLOCK];
    const int i = get_global_id(0), l = get_local_id(0);
    const float3 mine = (float3)(x[3 * i], x[3 * i + 1], x[3 * i + 2]);
    float total = 0.0f;
    for (int first = 0; first < n; first += BLOCK) {
        for (int axis = 0; axis < 3; axis++)
            block[axis][l] = x[3 * (first + l) + axis];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int j = 0; j < BLOCK; j++)
            total += inverse_distance(mine, (float3)(block[0][j], block[1][j], block[2][j]));
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    out[i] = total;
}

__kernel void nbody_global(__global const float *x, __global float *out, const int n)
{
    const size_t i = get_global_id(0);
    if (i >= n)
        return;
    const float3 mine = vload3(i, x);
    float total = 0.0f;
    for (size_t j = 0; j < n; j++)
        total += inverse_distance(mine, vload3(j, x));
    out[i] = total;
}

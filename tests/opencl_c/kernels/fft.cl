// Covers: complex numbers as float2, bit reversal, twiddle factors by native functions of CPUs and GPUs alike.
// launch: {"kernel": "fft", "global": [32], "local": [16], "args": [{"name": "data", "array": "float32", "size": 128, "output": true}]}
#define N 32
float2 times(float2 a, float2 b)
{
    return (float2)(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}

uint reversed(uint x)
{
    uint r = 0;
    for (uint k = N >> 1; k; k >>= 1, x >>= 1)
        r = (r << 1) | (x & 1);
    return r;
}

__kernel void fft(__global float2 *data)
{
    __local float2 part[N];
    __global float2 *mine = data + get_group_id(0) * N;
    const uint l = get_local_id(0);
    part[reversed(l)] = mine[l];
    part[reversed(l + N / 2)] = mine[l + N / 2];
    for (uint half_size = 1; half_size < N; half_size *= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        uint k = l & (half_size - 1), at = ((l - k) << 1) + k;
        float angle = -M_PI_F * (float)k / (float)half_size;
        float2 w = (float2)(cos(angle), sin(angle)), t = times(w, part[at + half_size]), e = part[at];
        part[at] = e + t;
        part[at + half_size] = e - t;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    mine[l] = part[l];
    mine[l + N / 2] = part[l + N / 2];
}

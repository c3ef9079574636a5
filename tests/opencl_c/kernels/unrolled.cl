// Covers: #pragma unroll with and without a factor and with a macro, opencl_unroll_hint, _Pragma, nounroll.
// launch: {"kernel": "unrolled", "global": [16], "local": [8], "args": [{"name": "a", "array": "int32", "size": 256}, {"name": "out", "array": "int32", "size": 16, "output": true}], "options": ["-D", "N=16"], "exact": true}
#define FACTOR (N / 4)
#define UNROLLED _Pragma("unroll 2")
__kernel void unrolled(__global const int *a, __global int *out)
{
    const int i = get_global_id(0);
    int sum = 0;
#pragma unroll
    for (int k = 0; k < N; ++k)
        sum += a[i * N + k];
#pragma unroll FACTOR
    for (int k = 0; k < N; ++k)
        sum ^= a[i * N + k];
    __attribute__((opencl_unroll_hint(8)))
    for (int k = 0; k < N; ++k)
        sum += a[i * N + k] << 1;
    UNROLLED for (int k = 0; k < N; ++k)
        sum -= a[k];
#pragma nounroll
    while (sum > 1000)
        sum -= 7;
    out[i] = sum;
}

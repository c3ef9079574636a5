"""Kernels of which the tests have machine code."""

SPILLING = """
extern "C" __global__ void __launch_bounds__(1024, 2) spilling(const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v[64];
#pragma unroll
    for (int k = 0; k < 64; k++) v[k] = x[i + k * 4096];
    for (int t = 0; t < n; t++)
#pragma unroll
        for (int k = 0; k < 64; k++) v[k] = v[k] * v[(k + 17) % 64] + v[(k + 5) % 64];
    float s = 0;
#pragma unroll
    for (int k = 0; k < 64; k++) s += v[k];
    y[i] = s;
}
"""
"""64 values live at once where a thread may have 32 registers."""

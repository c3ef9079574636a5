// Covers: family scale_add; scalar arguments, a stride by macro, and float4.
// kernel: {"name": "scale_add4", "generator": "scale_add", "tags": ["stride:1", "lsize_0:256"],
//   "global": "n // 4", "local": 64, "args": {"x": "n // 4", "y": "n // 4", "z": "n // 4"},
//   "assumptions": "n % 256 == 0", "small": {"n": 512}, "sizes": [{"n": 16777216}, {"n": 67108864}]}
// kernel: {"name": "scale_add", "generator": "scale_add", "tags": ["stride:3", "lsize_0:256"],
//   "global": "(n + 255) // 256 * 256", "local": 256, "args": {"x": "3*n", "y": "3*n", "z": "3*n"},
//   "options": ["-D STRIDE=3"], "small": {"n": 512}, "sizes": [{"n": 16777216}, {"n": 67108864}]}
// differs: scale_add4: f_work_items: each work-item computes four elements
#ifndef STRIDE
#define STRIDE 1
#endif

__kernel void scale_add(const float alpha, const float beta, __global const float *x, __global const float *y,
                        __global float *z, const int n)
{
    const int i = STRIDE * get_global_id(0);
    if (i < STRIDE * n)
        z[i] = alpha * x[i] + beta * y[i];
}

__kernel void scale_add4(const float alpha, const float beta, __global const float4 *x, __global const float4 *y,
                         __global float4 *z, const int n)
{
    const size_t i = get_global_id(0);
    z[i] = alpha * x[i] + beta * y[i];
}

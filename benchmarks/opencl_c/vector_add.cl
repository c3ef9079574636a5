// Covers: family vector_add; an early return for remainders, a divergent branch with helpers, and float4.
// kernel: {"name": "vector_add", "generator": "vector_add", "tags": ["branch:none", "lsize_0:256"],
//   "global": "(n + 255) // 256 * 256", "local": 256, "args": {"a": "n", "b": "n", "c": "n"},
//   "small": {"n": 512}, "sizes": [{"n": 16777216}, {"n": 67108864}]}
// kernel: {"name": "vector_add_divergent", "generator": "vector_add", "tags": ["branch:divergent", "lsize_0:256"],
//   "global": "(n + 255) // 256 * 256", "local": 256, "args": {"a": "n", "b": "n", "c": "n"},
//   "small": {"n": 512}, "sizes": [{"n": 16777216}, {"n": 67108864}]}
// kernel: {"name": "vector_add4", "generator": "vector_add", "tags": ["branch:none", "lsize_0:256"],
//   "global": "n // 4", "local": 256, "args": {"a": "n // 4", "b": "n // 4", "c": "n // 4"},
//   "assumptions": "n % 1024 == 0", "small": {"n": 2048}, "sizes": [{"n": 16777216}, {"n": 67108864}]}
// differs: vector_add4: f_thread_groups: each work-item adds four elements
// differs: vector_add4: f_work_items: each work-item adds four elements
#define ROUNDS 4

__kernel void vector_add(__global const float *a, __global const float *b, __global float *c, const int n)
{
    const int i = get_global_id(0);
    if (i >= n)
        return;
    c[i] = a[i] + b[i];
}

float multiplied(float v, const float x, const float y)
{
    for (int round = 0; round < ROUNDS; round++)
        v = v * x + y;
    return v;
}

float divided(float v, const float x, const float y)
{
    for (int round = 0; round < ROUNDS; round++)
        v = x / (y + v);
    return v;
}

__kernel void vector_add_divergent(__global const float *a, __global const float *b, __global float *c, const int n)
{
    const size_t i = get_global_id(0);
    if (i >= n)
        return;
    const float x = a[i], y = b[i];
    if (i & 1)
        c[i] = divided(x + y, x, y);
    else
        c[i] = multiplied(x + y, x, y);
}

__kernel void vector_add4(__global const float4 *a, __global const float4 *b, __global float4 *c, const int n)
{
    const size_t i = get_global_id(0);
    if (4 * i < n)
        c[i] = a[i] + b[i];
}

// Covers: family dot_product; a tree in local memory with a loop of halves, remainders, and a local argument.
// kernel: {"name": "dot_product", "generator": "dot_product", "tags": ["branch:none", "lsize_0:256"],
//   "global": "(n + 255) // 256 * 256", "local": 256,
//   "args": {"a": "n", "b": "n", "partial": "(n + 255) // 256"},
//   "small": {"n": 768}, "sizes": [{"n": 16777216}, {"n": 67108864}]}
// kernel: {"name": "dot_product_divergent", "generator": "dot_product", "tags": ["branch:divergent", "lsize_0:128"],
//   "global": "n", "local": 128, "args": {"a": "n", "b": "n", "partial": "n // 128", "part": "512"},
//   "assumptions": "n % 128 == 0", "small": {"n": 256}, "sizes": [{"n": 16777216}, {"n": 67108864}]}
// differs: dot_product_divergent: f_sync_barrier_local: none behind the last round, whose sum its own work-item stores
#define LSIZE 256

__kernel void dot_product(__global const float *a, __global const float *b, __global float *partial, const int n)
{
    __local float part[LSIZE];
    const int i = get_global_id(0), l = get_local_id(0);
    part[l] = i < n ? a[i] * b[i] : 0.0f;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int half_size = LSIZE / 2; half_size > 0; half_size >>= 1) {
        if (l < half_size)
            part[l] += part[l + half_size];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (l == 0)
        partial[get_group_id(0)] = part[0];
}

float branched(const float v, const float x, const float y, const bool is_even)
{
    if (is_even)
        return (((v * x + y) * x + y) * x + y) * x + y;
    return x / (y + x / (y + x / (y + x / (y + v))));
}

__kernel void dot_product_divergent(__global const float *a, __global const float *b, __global float *partial,
                                    __local float *part, const int n)
{
    const size_t i = get_global_id(0), l = get_local_id(0);
    const float x = a[i], y = b[i];
    part[l] = branched(x * y, x, y, i % 2 == 0);
    for (size_t active = get_local_size(0) / 2; active > 0; active /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (l < active)
            part[l] += part[l + active];
    }
    if (l == 0)
        partial[get_group_id(0)] = part[0];
}

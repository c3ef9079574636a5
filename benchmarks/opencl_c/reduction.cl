// Covers: family reduction; elements half a group's part apart, and pairs by float2 in a doubling tree.
// kernel: {"name": "reduce", "generator": "reduction", "tags": ["dtype:float32", "lsize_0:256"],
//   "global": "n // 2", "local": 256, "args": {"values": "n", "sums": "n // 512"}, "assumptions": "n % 512 == 0",
//   "small": {"n": 1024}, "sizes": [{"n": 16777216}, {"n": 67108864}]}
// kernel: {"name": "reduce_pairs", "generator": "reduction", "tags": ["dtype:float32", "lsize_0:128"],
//   "global": "n // 2", "local": 128, "args": {"values": "n // 2", "sums": "n // 256", "part": "512"},
//   "assumptions": "n % 256 == 0", "small": {"n": 512}, "sizes": [{"n": 16777216}, {"n": 67108864}]}
// differs: reduce: f_sync_barrier_local: none behind the last round, whose sum its own work-item stores
#define LSIZE 256

__kernel void reduce(__global const float *values, __global float *sums, const int n)
{
    __local float part[LSIZE];
    const size_t l = get_local_id(0), first = 2 * LSIZE * get_group_id(0) + l;
    part[l] = values[first] + values[first + LSIZE];
    for (size_t active = LSIZE / 2; active > 0; active >>= 1) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (l < active)
            part[l] += part[l + active];
    }
    if (l == 0)
        sums[get_group_id(0)] = *part;
}

__kernel void reduce_pairs(__global const float2 *values, __global float *sums, const int n, __local float *part)
{
    const int l = get_local_id(0), items = get_local_size(0);
    const float2 both = values[get_global_id(0)];
    part[l] = both.x + both.y;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int step = 1; step < items; step *= 2) {
        if (l % (2 * step) == 0)
            part[l] += part[l + step];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (l == 0)
        sums[get_group_id(0)] = part[0];
}

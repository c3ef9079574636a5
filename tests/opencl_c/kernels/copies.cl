// Covers: asynchronous copies, strided ones, prefetching.
// launch: {"kernel": "copies", "global": [128], "local": [32], "options": ["-cl-std=CL2.0"], "args": [{"name": "a", "array": "float32", "size": 256}, {"name": "out", "array": "float32", "size": 256, "output": true}, {"name": "tile", "local_bytes": 256}]}
__kernel void copies(__global const float *a, __global float *out, __local float *tile)
{
    const int l = get_local_id(0), g = get_group_id(0);
    event_t copied = async_work_group_copy(tile, a + 64 * g, 48, 0);
    copied = async_work_group_strided_copy(tile + 48, a + 64 * g + 1, 16, 3, copied);
    prefetch(a + 64 * g, 64);
    wait_group_events(1, &copied);
    const float sum = tile[l] + 2 * tile[63 - l];
    barrier(CLK_LOCAL_MEM_FENCE);
    tile[l] = sum;
    tile[l + 32] = -sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    event_t back = async_work_group_copy(out + 64 * g, tile, 32, 0);
    wait_group_events(1, &back);
    back = async_work_group_strided_copy(out + 64 * g + 33, tile + 32, 16, 2, 0);
    wait_group_events(1, &back);
}

// Covers: a tile with a column of padding, group ids, reqd_work_group_size.
// launch: {"kernel": "transpose", "global": [32, 16], "local": [8, 8], "args": [{"name": "a", "array": "float32", "size": 512}, {"name": "b", "array": "float32", "size": 512, "output": true}, {"name": "width", "scalar": "int32", "value": 32}, {"name": "height", "scalar": "int32", "value": 16}], "exact": true}
#define T 8
__attribute__((reqd_work_group_size(T, T, 1)))
__kernel void transpose(__global const float *a, __global float *b, int width, int height)
{
    __local float tile[T * (T + 1)];
    int x = get_group_id(0) * T + get_local_id(0);
    int y = get_group_id(1) * T + get_local_id(1);
    if (x < width && y < height)
        tile[get_local_id(1) * (T + 1) + get_local_id(0)] = a[y * width + x];
    barrier(CLK_LOCAL_MEM_FENCE);
    x = get_group_id(1) * T + get_local_id(0);
    y = get_group_id(0) * T + get_local_id(1);
    if (x < height && y < width)
        b[y * height + x] = tile[get_local_id(0) * (T + 1) + get_local_id(1)];
}

// Covers: OpenCL C 2.0: a helper that takes a pointer of any address space, work_group_barrier, loops of declarations.
// launch: {"kernel": "generic_sums", "global": [32], "local": [8], "args": [{"name": "a", "array": "int32", "size": 256}, {"name": "out", "array": "int32", "size": 32, "output": true}], "options": ["-cl-std=CL2.0"], "exact": true}
int sum_of(const int *values, int n)
{
    int sum = 0;
    for (int i = 0; i < n; i++)
        sum += values[i];
    return sum;
}

kernel void generic_sums(global const int *a, global int *out)
{
    local int shared[8];
    int mine[4] = {1, 2, 3, 4};
    const int l = get_local_id(0);
    shared[l] = a[get_global_id(0)];
    work_group_barrier(CLK_LOCAL_MEM_FENCE);
    out[get_global_id(0)] = sum_of(a + 8 * get_group_id(0), 8) + sum_of(shared, 8) * 2 + sum_of(mine, 4) * 3;
}

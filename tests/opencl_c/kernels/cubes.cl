// Covers: three-dimensional local arrays, pointers to rows of arrays as parameters, loops over all of them.
// launch: {"kernel": "cubes", "global": [16], "local": [8], "args": [{"name": "a", "array": "int32", "size": 54}, {"name": "out", "array": "int32", "size": 16, "output": true}], "exact": true}
int plane_sum(__local int (*plane)[3], int n)
{
    int sum = 0;
    for (int y = 0; y < n; y++)
        for (int x = 0; x < 3; x++)
            sum += plane[y][x] * (x + 1);
    return sum;
}

__kernel void cubes(__global const int *a, __global int *out)
{
    __local int cube[3][3][3];
    const int l = get_local_id(0);
    for (int k = l; k < 27; k += get_local_size(0))
        cube[k / 9][k / 3 % 3][k % 3] = a[get_group_id(0) * 27 + k];
    barrier(CLK_LOCAL_MEM_FENCE);
    out[get_global_id(0)] = plane_sum(cube[l % 3], 3) + cube[2][l % 3][1];
}

// Covers: several kernels in one source, one calling another, prototypes before definitions, an unused helper.
// launch: {"kernel": "scaled", "global": [16], "local": [8], "args": [{"name": "a", "array": "int32", "size": 16, "output": true}, {"name": "factor", "scalar": "int32", "value": 3}], "exact": true}
// launch: {"kernel": "scaled_twice", "global": [16], "local": [8], "args": [{"name": "a", "array": "int32", "size": 16, "output": true}], "exact": true}
int times(int, int);
static int unused(int x) { return x; }

__kernel void scaled(__global int *a, int factor)
{
    a[get_global_id(0)] = times(a[get_global_id(0)], factor);
}

__kernel void scaled_twice(__global int *a)
{
    scaled(a, 2);
}

int times(int x, int y)
{
    return x * y;
}

// Covers: returns from the middle of kernels and helpers, from inside loops.
// launch: {"kernel": "early_returns", "global": [40], "local": [8], "args": [{"name": "a", "array": "int32", "size": 40}, {"name": "out", "array": "int32", "size": 40, "output": true}, {"name": "n", "scalar": "int32", "value": 33}], "exact": true}
int first_above(__global const int *a, int n, int limit)
{
    for (int i = 0; i < n; ++i) {
        if (a[i] > limit)
            return i;
    }
    return -1;
}

int sign_of(int x)
{
    if (x > 0)
        return 1;
    else if (x < 0)
        return -1;
    return 0;
}

__kernel void early_returns(__global const int *a, __global int *out, int n)
{
    const int i = get_global_id(0);
    if (i >= n)
        return;
    if (a[i] == 0) {
        out[i] = -100;
        return;
    }
    out[i] = first_above(a, n, a[i]) * 10 + sign_of(a[i] - 5);
}

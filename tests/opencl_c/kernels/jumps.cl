// Covers: goto forwards, out of loops, and within functions that are inlined.
// launch: {"kernel": "jumps", "global": [64], "local": [16], "args": [{"name": "a", "array": "int32", "size": 64, "range": [-20, 20]}, {"name": "out", "array": "int32", "size": 64, "output": true}, {"name": "n", "scalar": "int32", "value": 50}], "exact": true}
int sign_of(int x)
{
    if (x > 0)
        goto positive;
    if (x < 0)
        goto negative;
    return 0;
positive:
    return 1;
negative:
    return -1;
}

__kernel void jumps(__global const int *a, __global int *out, int n)
{
    int i = get_global_id(0);
    int sum = 0;
    if (i >= n)
        goto end;
    for (int k = 0; k < 8; k++) {
        for (int l = 0; l < 4; l++) {
            if (a[(i + k * l) % 64] == 13)
                goto found;
            sum += a[(i + k + l) % 64];
        }
        if (sum > 100)
            goto next;
        sum += 2;
    next:;
    }
    sum *= 3;
found:
    sum += sign_of(a[i]);
end:
    out[i] = sum;
}

// Covers: goto backwards, across other labels and out of loops, and into cases of a switch from others.
// launch: {"kernel": "jumps_back", "global": [64], "local": [16], "args": [{"name": "a", "array": "int32", "size": 64, "range": [-20, 20]}, {"name": "out", "array": "int32", "size": 64, "output": true}, {"name": "n", "scalar": "int32", "value": 50}], "exact": true}
int steps_of(int x)
{
    int steps = 0;
again:
    if (x <= 1)
        return steps;
    steps++;
    x = x % 2 ? 3 * x + 1 : x / 2;
    if (steps < 40)
        goto again;
    return -1;
}

int kind_of(int x)
{
    int kind = 0;
    switch (x % 7) {
    case 0:
        goto even;
    case 1:
        kind = 5;
        if (x > 10)
            goto odd;
        goto even;
    case 2:
        kind++;
    even:
        kind += 2;
    twice:
        kind *= 2;
        if (kind < 50)
            goto twice;
        break;
    case 3:
        if (x < 0)
            break;
        kind = 7;
    odd:
        kind += 100;
    default:
        kind++;
    }
    return kind;
}

__kernel void jumps_back(__global const int *a, __global int *out, int n)
{
    int i = get_global_id(0);
    int sum = 0, rounds = 0;
    if (i >= n)
        goto end;
first:
    rounds++;
    for (int k = 0; k < 4; k++) {
        if (a[(i + k * rounds) % 64] == 7)
            goto second;
        sum += k;
    }
    sum += 1000;
second:
    sum += steps_of(a[(i + rounds) % 64]);
    if (rounds < 3 && sum < 3000)
        goto first;
    sum += kind_of(a[i]) + 10 * kind_of(a[(i + 1) % 64]);
end:
    out[i] = sum;
}

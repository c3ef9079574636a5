// Covers: private arrays passed to helpers by pointer, an insertion sort, a pointer that walks.
// launch: {"kernel": "medians", "global": [32], "local": [8], "args": [{"name": "a", "array": "int32", "size": 256}, {"name": "out", "array": "int32", "size": 32, "output": true}], "exact": true}
#define N 8
void sort(int *values, int n)
{
    for (int i = 1; i < n; i++) {
        int value = values[i], j = i - 1;
        for (; j >= 0 && values[j] > value; j--)
            values[j + 1] = values[j];
        values[j + 1] = value;
    }
}

int total(const int values[N])
{
    int sum = 0;
    const int *p = values, *end = values + N;
    while (p != end)
        sum += *p++;
    return sum + (int)(end - values);
}

__kernel void medians(__global const int *a, __global int *out)
{
    int mine[N];
    for (int k = 0; k < N; k++)
        mine[k] = a[k * get_global_size(0) + get_global_id(0)];
    sort(mine, N);
    out[get_global_id(0)] = 100 * total(mine) + mine[N / 2];
}

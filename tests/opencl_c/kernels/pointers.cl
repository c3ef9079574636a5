// Covers: pointers to pointers, arrays of pointers, comparisons and differences of pointers, casts between them.
// launch: {"kernel": "pointers", "global": [16], "local": [4], "args": [{"name": "a", "array": "int32", "size": 64}, {"name": "b", "array": "int32", "size": 64}, {"name": "out", "array": "int32", "size": 16, "output": true}], "exact": true}
void advance(__global const int **p, int n)
{
    *p += n;
}

__kernel void pointers(__global const int *a, __global const int *b, __global int *out)
{
    const int i = get_global_id(0);
    __global const int *both[2] = {a, b};
    __global const int *p = both[i & 1], *start = p;
    __global const int **q = &p;
    advance(&p, i);
    int values[4] = {1, 2, 3, 4}, (*row)[4] = &values;
    int *inner = &(*row)[2];
    inner[-1] = (int)(p - start) * 100;
    *(inner - 2) = p > start ? 1 : 0;
    __global const short *halves = (__global const short *)*q;
    out[i] = **q + values[0] + values[1] + (p == both[i & 1]) + halves[0] + ((__global const int2 *)a + 1)->y;
}

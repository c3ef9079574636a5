// Covers: commas, nested conditionals, assignments as values, increments inside expressions, short circuits.
// launch: {"kernel": "commas", "global": [32], "local": [8], "args": [{"name": "a", "array": "int32", "size": 33}, {"name": "out", "array": "int32", "size": 32, "output": true}], "exact": true}
__kernel void commas(__global const int *a, __global int *out)
{
    const int i = get_global_id(0);
    int x, y, z = 0;
    x = y = a[i];
    for (int k = 0, m = 10; k < m; k += 2, m--)
        z += (k++, k * m);
    int sign = x > 5 ? 1 : x > 3 ? 0 : x < 1 ? -2 : -1;
    bool both = x > 2 && a[i + 1] > 2, either = !x || (y += 3) > 6;
    z += (x += 2, y -= x--, x * y) + sign * 100 + both * 1000;
    z += either ? ++y : y--;
    out[i] = z + (a[i] ? 10 / a[i] : 0) + y;
}

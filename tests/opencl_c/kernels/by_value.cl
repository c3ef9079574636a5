// Covers: a struct as an argument of the kernel, by value; scalars of all sizes; vector arguments.
// launch: {"kernel": "by_value", "global": [8], "local": [4], "args": [{"name": "p", "struct": "uint8", "bytes": [1, 0, 0, 0, 0, 0, 0, 63, 0, 0, 128, 63, 0, 0, 0, 64]}, {"name": "c", "scalar": "int8", "value": -3}, {"name": "u", "scalar": "uint64", "value": 5000000000}, {"name": "d", "scalar": "float64", "value": 0.5}, {"name": "out", "array": "float32", "size": 8, "output": true}], "exact": true}
typedef struct {
    int count;
    float weights[3];
} Parameters;

__kernel void by_value(Parameters p, char c, ulong u, double d, __global float *out)
{
    const int i = get_global_id(0);
    float sum = (float)c + (float)(u >> 30) + (float)d;
    for (int k = 0; k <= p.count; k++)
        sum += p.weights[(i + k) % 3];
    p.count = 100;
    out[i] = sum + p.count;
}

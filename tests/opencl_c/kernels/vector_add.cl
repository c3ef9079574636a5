// Covers: the simplest kernel; a guard against work-items beyond the end; const and restrict parameters.
// launch: {"kernel": "vector_add", "global": [256], "local": [64], "args": [{"name": "a", "array": "float32", "size": 256}, {"name": "b", "array": "float32", "size": 256}, {"name": "c", "array": "float32", "size": 256, "output": true}, {"name": "n", "scalar": "int32", "value": 250}], "exact": true}
__kernel void vector_add(__global const float *restrict a, __global const float *restrict b, __global float *restrict c,
                         const int n)
{
    const int i = get_global_id(0);
    if (i < n)
        c[i] = a[i] + b[i];
}

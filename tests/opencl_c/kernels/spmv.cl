// Covers: rows of different lengths, data-dependent reads, an inner while loop.
// launch: {"kernel": "spmv", "global": [64], "local": [16], "args": [{"name": "values", "array": "float32", "size": 640}, {"name": "columns", "array": "int32", "size": 640, "range": [0, 99]}, {"name": "lengths", "array": "int32", "size": 64, "range": [0, 10]}, {"name": "x", "array": "float32", "size": 100}, {"name": "y", "array": "float32", "size": 64, "output": true}, {"name": "rows", "scalar": "int32", "value": 60}]}
__kernel void spmv(__global const float *values, __global const int *columns, __global const int *lengths,
                   __global const float *x, __global float *y, int rows)
{
    int row = get_global_id(0);
    if (row >= rows)
        return;
    int at = row * 10, end = at + lengths[row];
    float sum = 0.f;
    while (at < end) {
        sum += values[at] * x[columns[at]];
        ++at;
    }
    y[row] = sum;
}

// Covers: family batched_matmul; group numbers as pointers to matrices, both factors in local memory or none.
// kernel: {"name": "batched_matmul", "generator": "batched_matmul", "tags": ["order:16", "fetch:both"],
//   "global": ["16 * n", 16], "local": [16, 16], "args": {"a": "256 * n", "b": "256 * n", "c": "256 * n"},
//   "options": ["-DORDER=16"], "small": {"n": 5}, "sizes": [{"n": 65536}, {"n": 262144}]}
// kernel: {"name": "batched_matmul_right", "generator": "batched_matmul", "tags": ["order:32", "fetch:right"],
//   "global": ["32 * n", 32], "local": [32, 32], "args": {"a": "1024 * n", "b": "1024 * n", "c": "1024 * n"},
//   "options": ["-DORDER=32"], "small": {"n": 3}, "sizes": [{"n": 16384}, {"n": 65536}]}
// kernel: {"name": "batched_matmul_global", "generator": "batched_matmul", "tags": ["order:8", "fetch:none"],
//   "global": ["8 * n", 8], "local": [8, 8], "args": {"a": "64 * n", "b": "64 * n", "c": "64 * n"},
//   "options": ["-DORDER=8"], "small": {"n": 5}, "sizes": [{"n": 65536}, {"n": 262144}]}
#define ELEMENTS (ORDER * ORDER)

__kernel __attribute__((reqd_work_group_size(ORDER, ORDER, 1)))
void batched_matmul(__global const float *a, __global const float *b, __global float *c, const int n)
{
    __local float left[ELEMENTS], right[ELEMENTS];
    const int column = get_local_id(0), row = get_local_id(1), element = row * ORDER + column;
    const int first = get_group_id(0) * ELEMENTS;
    left[element] = a[first + element];
    right[element] = b[first + element];
    barrier(CLK_LOCAL_MEM_FENCE);
    float sum = 0.0f;
    for (int k = 0; k < ORDER; ++k)
        sum += left[row * ORDER + k] * right[k * ORDER + column];
    c[first + element] = sum;
}

__kernel void batched_matmul_right(__global const float *a, __global const float *b, __global float *c, const int n)
{
    __local float right[ORDER][ORDER];
    const size_t column = get_local_id(0), row = get_local_id(1), first = get_group_id(0) * ELEMENTS;
    __global const float *elements = a + first + row * ORDER;
    right[row][column] = b[first + row * ORDER + column];
    barrier(CLK_LOCAL_MEM_FENCE);
    float sum = 0.0f;
    for (int k = 0; k < ORDER; ++k)
        sum = mad(elements[k], right[k][column], sum);
    c[first + row * ORDER + column] = sum;
}

__kernel void batched_matmul_global(__global const float *a, __global const float *b, __global float *c, const int n)
{
    const size_t place = get_group_id(0) * ELEMENTS;
    a += place, b += place, c += place;
    const int column = get_local_id(0), row = get_local_id(1);
    float sum = 0.0f;
    for (int k = 0; k < ORDER; ++k)
        sum += a[row * ORDER + k] * b[k * ORDER + column];
    c[row * ORDER + column] = sum;
}

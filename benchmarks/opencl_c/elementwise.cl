// Covers: family elementwise; float4, helpers with exp and tanh, a polynomial by a loop, logarithms and square roots.
// kernel: {"name": "triad", "generator": "elementwise", "tags": ["function:triad", "elements:4", "lsize_0:256"],
//   "global": "n // 4", "local": 256, "args": {"a": "n // 4", "b": "n // 4", "c": "n // 4"},
//   "assumptions": "n % 1024 == 0", "small": {"n": 2048}, "sizes": [{"n": 16777216}, {"n": 67108864}]}
// kernel: {"name": "gelu", "generator": "elementwise", "tags": ["function:gelu", "elements:1", "lsize_0:256"],
//   "global": "(n + 255) // 256 * 256", "local": 256, "args": {"a": "n", "b": "n", "c": "n"},
//   "small": {"n": 512}, "sizes": [{"n": 16777216}, {"n": 67108864}]}
// kernel: {"name": "polynomial32", "generator": "elementwise",
//   "tags": ["function:polynomial32", "elements:2", "lsize_0:256"],
//   "global": "n // 2", "local": 256, "args": {"a": "n", "b": "n", "c": "n"}, "assumptions": "n % 512 == 0",
//   "small": {"n": 1024}, "sizes": [{"n": 16777216}, {"n": 67108864}]}
// kernel: {"name": "log_ratio", "generator": "elementwise", "tags": ["function:log_ratio", "elements:1", "lsize_0:64"],
//   "global": "n", "local": 64, "args": {"a": "n", "b": "n", "c": "n"}, "assumptions": "n % 64 == 0",
//   "small": {"n": 256}, "sizes": [{"n": 16777216}, {"n": 67108864}]}
// kernel: {"name": "sigmoid", "generator": "elementwise", "tags": ["function:sigmoid", "elements:4", "lsize_0:256"],
//   "global": "n // 4", "local": 256, "args": {"a": "n // 4", "b": "n // 4", "c": "n // 4"},
//   "assumptions": "n % 1024 == 0", "small": {"n": 2048}, "sizes": [{"n": 16777216}, {"n": 67108864}]}
#define SCALE 0.7978515625f
#define CUBE 0.044708251953125f

__kernel void triad(__global const float4 *a, __global const float4 *b, __global float4 *c, const int n)
{
    const int i = get_global_id(0);
    c[i] = a[i] + 2.5f * b[i];
}

float gelu_of(const float x)
{
    return 0.5f * x * (1.0f + tanh(SCALE * (x + CUBE * x * x * x)));
}

__kernel void gelu(__global const float *a, __global const float *b, __global float *c, const int n)
{
    const int i = get_global_id(0);
    if (i >= n)
        return;
    c[i] = gelu_of(a[i]) * b[i];
}

float horner(const float x, const float coefficient)
{
    float value = coefficient;
    for (int power = 0; power < 32; power++)
        value = value * x + coefficient;
    return value;
}

__kernel void polynomial32(__global const float *a, __global const float *b, __global float *c, const int n)
{
    for (int i = get_global_id(0), turn = 0; turn < 2; i += n / 2, turn++)
        c[i] = horner(a[i], b[i]);
}

__kernel void log_ratio(__global const float *a, __global const float *b, __global float *c, const int n)
{
    const size_t i = get_global_id(0);
    const float y = b[i];
    c[i] = log(a[i] / y) * sqrt(y);
}

__kernel void sigmoid(__global const float4 *a, __global const float4 *b, __global float4 *c, const int n)
{
    const size_t i = get_global_id(0);
    c[i] = a[i] / (1.0f + exp(-b[i]));
}

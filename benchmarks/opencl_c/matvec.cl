// Covers: family matvec; a pointer to the work-item's row, and a branch within the loop.
// kernel: {"name": "matvec", "generator": "matvec", "tags": ["branch:none", "lsize_0:256"],
//   "global": "n", "local": 256, "args": {"a": "n*n", "b": "n", "c": "n"},
//   "assumptions": "n % 256 == 0", "small": {"n": 256}, "sizes": [{"n": 2048}, {"n": 8192}]}
// kernel: {"name": "matvec_divergent", "generator": "matvec", "tags": ["branch:divergent", "lsize_0:64"],
//   "global": "n", "local": 64, "args": {"a": "n*n", "b": "n", "c": "n"},
//   "assumptions": "n % 64 == 0", "small": {"n": 128}, "sizes": [{"n": 2048}, {"n": 4096}]}
__kernel void matvec(__global const float *a, __global const float *b, __global float *c, const int n)
{
    const size_t row = get_global_id(0);
    __global const float *elements = a + row * n;
    float sum = 0.0f;
    for (int k = 0; k < n; ++k)
        sum += elements[k] * b[k];
    c[row] = sum;
}

__kernel void matvec_divergent(__global const float *a, __global const float *b, __global float *c, const int n)
{
    const int row = get_global_id(0);
    float sum = 0.0f;
    for (int k = 0; k < n; ++k) {
        const float x = a[row * n + k], y = b[k];
        float v = x * y;
        if (row % 2 == 0)
            v = (((v * x + y) * x + y) * x + y) * x + y;
        else
            v = x / (y + x / (y + x / (y + x / (y + v))));
        sum += v;
    }
    c[row] = sum;
}

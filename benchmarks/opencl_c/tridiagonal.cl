// Covers: family tridiagonal; a sweep forward and one that counts down, and a macro for the place of an equation.
// kernel: {"name": "tridiagonal", "generator": "tridiagonal", "tags": ["layout:interleaved", "lsize_0:256"],
//   "global": "(n + 255) // 256 * 256", "local": 256,
//   "args": {"a": "m*n", "b": "m*n", "c": "m*n", "d": "m*n", "c_new": "m*n", "d_new": "m*n", "x": "m*n"},
//   "options": ["-DPLACE(e)=((e)*n+i)"], "assumptions": "m >= 1",
//   "small": {"n": 256, "m": 9}, "sizes": [{"n": 32768, "m": 64}, {"n": 262144, "m": 64}]}
// kernel: {"name": "tridiagonal", "generator": "tridiagonal", "tags": ["layout:contiguous", "lsize_0:64"],
//   "global": "(n + 63) // 64 * 64", "local": 64,
//   "args": {"a": "m*n", "b": "m*n", "c": "m*n", "d": "m*n", "c_new": "m*n", "d_new": "m*n", "x": "m*n"},
//   "options": ["-DPLACE(e)=(i*m+(e))"], "assumptions": "m >= 1",
//   "small": {"n": 64, "m": 9}, "sizes": [{"n": 32768, "m": 64}, {"n": 262144, "m": 64}]}
__kernel void tridiagonal(__global const float *a, __global const float *b, __global const float *c,
                          __global const float *d, __global float *c_new, __global float *d_new, __global float *x,
                          const int n, const int m)
{
    const int i = get_global_id(0);
    if (i >= n)
        return;
    float upper = 0.0f, right = 0.0f;
    for (int e = 0; e < m; e++) {
        const float lower = a[PLACE(e)];
        const float pivot = b[PLACE(e)] - lower * upper;
        upper = c[PLACE(e)] / pivot;
        right = (d[PLACE(e)] - lower * right) / pivot;
        c_new[PLACE(e)] = upper;
        d_new[PLACE(e)] = right;
    }
    float found = 0.0f;
    for (int e = m - 1; e >= 0; e--) {
        found = d_new[PLACE(e)] - c_new[PLACE(e)] * found;
        x[PLACE(e)] = found;
    }
}

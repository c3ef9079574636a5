// Covers: family barrier; a loop of barriers with an addition before each.
// kernel: {"name": "meet", "generator": "barrier", "tags": ["lsize_0:256"],
//   "global": "n", "local": 256, "args": {"a": "n", "out": "n"}, "assumptions": "n % 256 == 0",
//   "small": {"n": 512, "m": 7}, "sizes": [{"n": 262144, "m": 256}, {"n": 1048576, "m": 256}]}
__kernel void meet(__global const float *a, __global float *out, const int n, const int m)
{
    const size_t i = get_global_id(0);
    const float x = a[i];
    float total = x;
    for (int k = 0; k < m; k++) {
        total += x;
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    out[i] = total;
}
